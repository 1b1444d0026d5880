//! GC-ARM: a write buffer that compares how many pages an erase would free before it evicts a page or a block. It
//! shares the RAM with a mapping table in groups (Hu 2012, chapter 3).
//!
//! ```text
//!   B_page  = pages that an erase of the victim of greedy cleaning would free now      (Eq. 3.1)
//!   B_block = v - (Np - v), v pages of the fullest block of the buffer                 (Eq. 3.2)
//!
//!   full ── B_block > B_page? ── yes ─► the block, completed by padding, into an erase block of its own
//!                │ no
//!        an entry of the table is clean? ── yes ─► the page written longest ago
//!                │ no
//!        the page written longest ago of those whose entries lie in the largest group of the table, if there is one
//! ```
//!
//! **Interpretation.** B_block is that of the fullest block, among equals of the least recently written. B_page is a
//! whole block while none is sealed. The dissertation leaves a tie of both values open: a page is evicted, or the block
//! with `tie = "block"`. This matters for whole blocks: a block that overwrites a whole block leaves a victim without a
//! valid page, and B_page is Np, which no block exceeds, until that victim is cleaned. `block-destage = "append"`
//! writes the pages of the block as a run to the open block, without padding, as in Figure 3.2; the values are the
//! same. Reads are answered but change nothing.
//!
//! **Partition** (3.2.3). Every `window` requests: D different blocks touched, W writes. With D of at least half the
//! window the table grows by `step` bytes; with less, and W of at least half, the buffer grows. `random-share` is that half. The dissertation does not say how
//! the split starts: `map-start-share` of the RAM is the table's, half by default. Each side keeps at least one step, and RAM that the whole table does not need stays with the buffer. The
//! dissertation leaves a better measure of randomness to future work: with `randomness = "measured"` the side grows
//! whose last step's worth of evictions would have saved more flash time. Under a random workload entries are reused
//! and pages are not; this is detected without a threshold, at the price of ghosts, which take 8 B per identifier under
//! `ram.charge-metadata`.
//!
//! **Other layers.** Under page mapping with the map in RAM there is no table, so all RAM is buffer and pages leave by
//! the last write. Log-block and block-mapped layers have no victim block that defines B_page. Eq. 3.1 states how many
//! pages an erase frees for pages evicted one by one. There, the recent cost replaces it: the number of pages evicted
//! alone, divided by the erases between each such eviction and the next eviction of any kind, both halved every 1,024
//! pages; a whole block while there was no erase. Pages of blocks less than half full are always evicted alone, so the
//! value continues to be measured.
//!
//! O(log n) per page in the number of held blocks. 62 bytes per held page, 4 per logical page and block, 16 per page of
//! the mapping table.

use super::{RamContext, RamManager, View};
use crate::partition::{Balance, Better, Partition, START_SHARE, STEP, WINDOW, ghosts_bytes};
use crate::{Destage, Groups, Pages};
use flashwright_block::{Bytes, RequestKind};
use flashwright_ftl::{Flash, LpnRun, OpKind, ServesRam, SlotLists, Violation, Watch};
use flashwright_nand::Lpn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// How a block is evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BlockDestage {
    /// Padded, into an erase block of its own (3.2.2).
    #[default]
    Own,
    /// Without padding, to the open block (Figure 3.2).
    Append,
}

/// What is evicted if both values are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tie {
    /// A page.
    #[default]
    Page,
    /// The block. Sequential whole blocks are then always evicted as blocks, as the dissertation reports for TPC-E.
    Block,
}

/// How the partition follows the workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Randomness {
    /// By different blocks touched: if there are at least half as many as requests, the window counts as random
    /// (3.2.3).
    #[default]
    Fixed,
    /// By the flash time that one more step would have saved on either side.
    Measured,
}

/// `[ram.gc-arm]`: settings of `ram.manager = "gc-arm"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct GcArmSettings {
    /// How a block is evicted: to its `"own"` erase block with padding, or with `"append"` to the open block.
    pub block_destage: BlockDestage,
    /// What is evicted if both values are equal: a `"page"` or the `"block"`.
    pub tie: Tie,
    /// How the partition follows the workload: `"fixed"` thresholds, or `"measured"`.
    pub randomness: Randomness,
    /// With `randomness = "fixed"`: different blocks touched for each request from which a window counts as random.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expected" = "a share from {range}, such as ram.gc-arm.random-share = 0.5"))]
    pub random_share: f64,
    /// Share of the RAM that the table has at first; each side has at least a step, and the table no more than it needs.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expected" = "a share from {range}, such as ram.gc-arm.map-start-share = 0.5"))]
    pub map_start_share: f64,
    /// Requests between two decisions on the partition.
    #[schemars(range(min = 1), extend("x-expected" = "{range} requests"))]
    pub window: u32,
    /// RAM that moves per decision, rounded down to whole pages; each side keeps at least this much.
    pub step: Bytes,
}

impl Default for GcArmSettings {
    fn default() -> Self {
        Self {
            block_destage: BlockDestage::Own,
            tie: Tie::Page,
            randomness: Randomness::Fixed,
            random_share: 0.5,
            map_start_share: START_SHARE,
            window: WINDOW,
            step: STEP,
        }
    }
}

/// `ram.manager = "gc-arm"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GcArm {
    pages: Pages,
    /// All pages by last write.
    order: SlotLists,
    /// Pages on the list of their translation page, by last write; none without a cached table.
    by_table: Option<ByTable>,
    groups: Groups,
    /// By slot of a group: its last write.
    written: Vec<u64>,
    /// Groups, the fullest first, among equals the least recently written.
    fullest: BTreeSet<(Reverse<u32>, u64, u32)>,
    writes: u64,
    partition: Partition,
    balance: Option<Balance>,
    append: bool,
    tie: Tie,
    window: u32,
    random_share: f64,
    sample: Window,
    cost: PageCost,
    /// The last choice of [`RamManager::choose`]: the values, and whether it was a block.
    chosen: (f64, i64, bool),
    figures: Figures,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ByTable {
    entries_per_page: u32,
    lists: SlotLists,
}

/// The requests since the last decision.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Window {
    requests: u32,
    writes: u32,
    blocks: u32,
    /// Windows so far, from 1; by block: the last one that touched it.
    number: u32,
    touched: Vec<u32>,
}

/// The cost of pages evicted alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct PageCost {
    pages: u32,
    erases: u32,
    /// Erases of the drive at the last eviction, and whether that was a single page.
    erases_before: u64,
    single: bool,
}

/// Pages after which [`PageCost`] forgets half.
const MEMORY: u32 = 1024;

impl PageCost {
    /// An eviction: the erases since the last eviction are the cost of that one.
    fn settle(&mut self, flash: &Flash) {
        let erases = flash.counters().total(OpKind::Erase);
        if std::mem::take(&mut self.single) {
            self.pages += 1;
            let cost = erases.saturating_sub(self.erases_before);
            self.erases = self.erases.saturating_add(u32::try_from(cost).unwrap_or(u32::MAX));
        }
        if self.pages >= MEMORY {
            (self.pages, self.erases) = (self.pages / 2, self.erases / 2);
        }
        self.erases_before = erases;
    }
    /// Pages per erase, at most a block.
    fn pages_an_erase(&self, pages_per_block: u32) -> f64 {
        let limit = f64::from(pages_per_block);
        if self.erases == 0 { limit } else { (f64::from(self.pages) / f64::from(self.erases)).min(limit) }
    }
}

/// The counts of the manager.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Figures {
    pages: u64,
    blocks: u64,
    /// Sums of both values over all evictions.
    page_value: f64,
    block_value: i64,
    /// Windows that moved the border towards the table, and towards the buffer.
    moves: [u64; 2],
    /// Windows, and different blocks touched in them.
    windows: u64,
    window_blocks: u64,
}

/// The only list of all pages.
const ALL: u32 = 0;

impl GcArm {
    /// Removes a group from the order of groups, before its count or its last write changes.
    fn unrank(&mut self, slot: u32) {
        self.fullest.remove(&(Reverse(self.groups.count(slot)), self.written[slot as usize], slot));
    }
    fn rank(&mut self, slot: u32) {
        self.fullest.insert((Reverse(self.groups.count(slot)), self.written[slot as usize], slot));
    }
    /// Records a write to a group.
    fn note_write(&mut self, slot: u32) {
        self.writes += 1;
        self.written[slot as usize] = self.writes;
    }

    /// The page to evict alone.
    fn page_to_leave(&self, view: View) -> Option<u32> {
        let oldest = self.order.oldest(ALL);
        let Some(ByTable { lists, .. }) = &self.by_table else { return oldest };
        let cache = view.scheme.map_cache().unwrap_or_default();
        let group = cache.largest_group.filter(|_| cache.has_clean == Some(false));
        group.and_then(|page| lists.oldest(page)).or(oldest)
    }
}

impl RamManager for GcArm {
    const NAME: &'static str = "gc-arm";
    const ABOUT: &'static str =
        "evicts a page or a padded block, depending on what an erase frees; shares RAM with the table (Hu 2012, 3)";
    const METADATA_BYTES: u64 = 16;
    const NEEDS: &'static [(&'static str, &'static str, &'static str)] =
        &[("dftl", "ftl.dftl.replacement", "\"grouped\"")];
    type Settings = GcArmSettings;

    fn problems(settings: &Self::Settings, context: &RamContext) -> Vec<String> {
        let lessened = without_ghosts(settings, context);
        let mut problems = Partition::problems(Self::NAME, settings.step, &lessened);
        if context.map_cache.is_some_and(|cache| cache.has_clean.is_none()) {
            let (_, key, value) = Self::NEEDS[0];
            problems.push(format!(
                "{key}: ram.manager = \"gc-arm\" works with a mapping table in groups; set {key} = {value}, or choose \
                 ram.manager = \"ap\", which works with any replacement"
            ));
        }
        problems
    }

    fn new(settings: &Self::Settings, context: RamContext) -> Self {
        let context = without_ghosts(settings, &context);
        let partition = Partition::new(settings.step, settings.map_start_share, &context);
        let blocks = context.logical_pages.div_ceil(context.pages_per_block);
        let measured = settings.randomness == Randomness::Measured && context.map_cache.is_some();
        Self {
            pages: Pages::new(context.pages_held_max(), context.logical_pages),
            order: SlotLists::new(1, context.pages_held_max()),
            by_table: context.map_cache.map(|cache| ByTable {
                entries_per_page: cache.entries_per_page,
                lists: SlotLists::new(context.logical_pages.div_ceil(cache.entries_per_page), context.pages_held_max()),
            }),
            groups: Groups::new(context.pages_per_block, context.logical_pages),
            written: Vec::new(),
            fullest: BTreeSet::new(),
            writes: 0,
            balance: measured.then(|| Balance::new(partition.step().0, false, &context)),
            partition,
            append: settings.block_destage == BlockDestage::Append,
            tie: settings.tie,
            window: settings.window,
            random_share: settings.random_share,
            sample: Window { requests: 0, writes: 0, blocks: 0, number: 1, touched: vec![0; blocks as usize] },
            cost: PageCost::default(),
            chosen: (0.0, 0, false),
            figures: Figures::default(),
        }
    }

    fn watch(&self) -> Watch {
        Watch { reclaimable: true, map_ghosts: self.balance.as_ref().map_or(0, |_| self.partition.step().1) }
    }
    #[inline(always)]
    fn capacity(&self) -> u32 {
        self.partition.buffer_pages()
    }
    fn map_entries(&self) -> Option<u32> {
        self.partition.map_entries()
    }
    #[inline(always)]
    fn pages(&self) -> u32 {
        self.pages.len()
    }
    #[inline(always)]
    fn is_dirty(&self, lpn: Lpn) -> Option<bool> {
        self.pages.slot(lpn).map(|_| true)
    }

    fn overwrite(&mut self, lpn: Lpn) -> bool {
        let Some(slot) = self.pages.slot(lpn) else { return false };
        self.order.move_to(ALL, slot);
        if let Some(ByTable { lists, .. }) = &mut self.by_table {
            lists.move_to(lists.list_of(slot), slot);
        }
        if let Some((group, _)) = self.groups.find(lpn) {
            self.unrank(group);
            self.note_write(group);
            self.rank(group);
        }
        true
    }
    fn take_in(&mut self, lpn: Lpn, dirty: bool) {
        if let Some(balance) = &mut self.balance {
            balance.wanted(lpn, dirty);
        }
        let slot = self.pages.insert(lpn, dirty);
        self.order.push(ALL, slot);
        if let Some(ByTable { lists, entries_per_page }) = &mut self.by_table {
            lists.push(lpn.0 / *entries_per_page, slot);
        }
        if let Some(group) = self.groups.slot(self.groups.place(lpn).0) {
            self.unrank(group);
        }
        let (group, _) = self.groups.insert(lpn, dirty);
        self.written.resize(self.written.len().max(group as usize + 1), 0);
        self.note_write(group);
        self.rank(group);
    }
    fn read(&mut self, lpn: Lpn) -> bool {
        let held = self.pages.slot(lpn).is_some();
        if let Some(balance) = self.balance.as_mut().filter(|_| !held) {
            balance.read_outside(lpn);
        }
        held
    }

    fn choose(&mut self, view: View, out: &mut Destage) {
        self.cost.settle(view.flash);
        let pages_per_block = self.groups.pages_per_block();
        let page_value = match view.scheme.reclaimable_pages(view.flash) {
            Some(pages) => f64::from(pages),
            None => self.cost.pages_an_erase(pages_per_block),
        };
        let Some((Reverse(count), _, group)) = self.fullest.first().copied() else { return };
        let block_value = 2 * i64::from(count) - i64::from(pages_per_block);
        let value = block_value as f64;
        let block = value > page_value || self.tie == Tie::Block && value >= page_value;
        self.chosen = (page_value, block_value, block);
        if block {
            out.pages.extend(self.groups.pages_of(group).map(|(lpn, _)| lpn.0));
            if !self.append {
                (out.pad_block, out.own_block) = (Some(self.groups.block(group)), true);
            }
        } else if let Some(slot) = self.page_to_leave(view) {
            out.pages.push(self.pages.lpn(slot).0);
        }
    }
    fn remove(&mut self, lpn: Lpn) -> bool {
        if let Some(balance) = &mut self.balance {
            balance.forget(lpn);
        }
        let Some(slot) = self.pages.remove(lpn) else { return false };
        self.order.unlink(slot);
        if let Some(ByTable { lists, .. }) = &mut self.by_table {
            lists.unlink(slot);
        }
        if let Some((group, _)) = self.groups.find(lpn) {
            self.unrank(group);
            if self.groups.remove(lpn).is_some_and(|(_, empty)| !empty) {
                self.rank(group);
            }
        }
        true
    }
    fn left(&mut self, out: &Destage) {
        let (page_value, block_value, block) = self.chosen;
        self.figures.page_value += page_value;
        self.figures.block_value += block_value;
        *(if block { &mut self.figures.blocks } else { &mut self.figures.pages }) += 1;
        self.cost.single = !block;
        for lpn in &out.pages {
            self.remove(Lpn(*lpn));
            if let Some(balance) = &mut self.balance {
                balance.left(Lpn(*lpn));
            }
        }
    }
    fn dirty_pages(&self, out: &mut Vec<u32>) {
        self.pages.dirty_pages(out);
    }
    #[inline(always)]
    fn leaves_after(&self, slot: Option<u32>) -> Option<(u32, Lpn)> {
        let next = slot.map_or_else(|| self.order.oldest(ALL), |slot| self.order.after(slot))?;
        let lpn = self.pages.lpn(next);
        self.pages.expect(lpn);
        Some((next, lpn))
    }

    fn request_done(&mut self, kind: RequestKind, run: LpnRun, view: View) -> bool {
        let sample = &mut self.sample;
        sample.requests += 1;
        sample.writes += u32::from(kind == RequestKind::Write);
        let of = |lpn: u32| lpn / self.groups.pages_per_block();
        for block in of(run.first.0)..=of(run.first.0 + run.pages - 1) {
            let last = &mut sample.touched[block as usize];
            if std::mem::replace(last, sample.number) != sample.number {
                sample.blocks += 1;
            }
        }
        if sample.requests < self.window {
            return false;
        }
        let (blocks, writes) = (sample.blocks, sample.writes);
        (sample.requests, sample.writes, sample.blocks) = (0, 0, 0);
        sample.number = sample.number.wrapping_add(1);
        self.figures.windows += 1;
        self.figures.window_blocks += u64::from(blocks);
        let better = match &mut self.balance {
            Some(balance) => balance.weigh(view),
            None if f64::from(blocks) >= self.random_share * f64::from(self.window) => Better::Map,
            None if 2 * u64::from(writes) >= u64::from(self.window) => Better::Buffer,
            None => Better::Neither,
        };
        let moved = match better {
            Better::Map => self.partition.grow_map().then_some(0),
            Better::Buffer => self.partition.grow_buffer().then_some(1),
            Better::Neither => None,
        };
        moved.inspect(|side: &usize| self.figures.moves[*side] += 1).is_some()
    }

    fn figures(&self) -> Vec<(String, f64)> {
        let Figures { pages, blocks, page_value, block_value, moves, windows, window_blocks } = &self.figures;
        let count = (pages + blocks).max(1) as f64;
        let mut figures = vec![
            ("block_destages_share", *blocks as f64 / count),
            ("benefit_page_mean_pages", page_value / count),
            ("benefit_block_mean_pages", *block_value as f64 / count),
            ("window_mean_blocks", *window_blocks as f64 / (*windows).max(1) as f64),
            ("map_grown_steps", moves[0] as f64),
            ("buffer_grown_steps", moves[1] as f64),
        ];
        if let Some(balance) = &self.balance {
            figures.extend([("ghost_buffer_hits", balance.hits[0] as f64), ("ghost_map_hits", balance.hits[1] as f64)]);
        }
        figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
    fn reset_figures(&mut self) {
        self.figures = Figures::default();
        self.balance.iter_mut().for_each(|balance| balance.hits = [0; 2]);
    }

    fn audit(&self, violations: &mut Vec<Violation>) {
        let pages = self.pages.len();
        let listed = self.by_table.as_ref().map_or(pages, |table| table.lists.total());
        if [self.order.total(), listed, self.groups.pages()] != [pages; 3] {
            violations.push(Violation(format!(
                "the write buffer holds {pages} pages, {} are in its order, {listed} on lists of the table, {} in groups",
                self.order.total(),
                self.groups.pages()
            )));
        }
        let right = |(Reverse(count), written, slot): &(Reverse<u32>, u64, u32)| {
            self.groups.count(*slot) == *count && self.written[*slot as usize] == *written
        };
        if self.fullest.len() != self.groups.len() as usize || !self.fullest.iter().all(right) {
            violations.push(Violation(format!(
                "{} blocks are in the order by pages, the write buffer holds {}",
                self.fullest.len(),
                self.groups.len()
            )));
        }
    }
}

/// The context without the RAM of the ghosts, if there are any.
fn without_ghosts(settings: &GcArmSettings, context: &RamContext) -> RamContext {
    match settings.randomness {
        Randomness::Fixed => *context,
        Randomness::Measured => context.less(ghosts_bytes(settings.step, context)),
    }
}
