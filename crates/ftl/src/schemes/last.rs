//! LAST: sequential requests to log blocks of one data block each, random ones to shared log blocks, separated by how
//! often their pages are written (Lee et al., SPEED 2008, as Hu 2012, section 1.2.1, and Gupta 2009, section 2, report
//! it; the paper itself gives an abstract view only).
//!
//! ```text
//!   write(page) ─► home can be programmed, no newer copy? ─ yes ─► program it
//!                        │ no
//!                  large request? ─ yes ─► sequential log of its block, at the page's own offset
//!                        │ no
//!                  among the last k pages written at random? ─ yes ─► open hot log
//!                        └──────────────────────────────────── no ──► open cold log
//! ```
//!
//! A sequential log is retired when it is complete, when a page before its next offset arrives, or when another block
//! needs a log (the least recently written one is retired). It becomes the data block at once (*switch*) or after its
//! tail is copied in (*partial*); a log with a hole or a superseded page needs an erased block (*full*). If a full
//! random log has no current page, which is the purpose of hot logs, an erase makes room. Otherwise the full log whose
//! pages belong to the fewest logical blocks is reclaimed, and each of those is merged as in FAST.
//!
//! Invariants: page i of a sequential log lies at position i, and a logical block has at most one such log; at most one
//! copy of a page is valid; the map of the random logs holds exactly their valid pages; each random log knows how many
//! logical blocks its valid pages belong to, and full ones are kept in that order. One erased block beyond the logs
//! stays free for full merges.

mod pairs;
mod recent;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use super::{BuildScheme, SchemeContext};
use crate::durable::{MountError, Scan, consolidate};
use crate::merge::{
    ErasedBlocks, LogMap, LogicalBlocks, MERGE_RESERVE, Mover, NONE, Queues, audit_map, current_home, log_blocks,
    log_problems, spare_problem,
};
use crate::{Cause, CleansInSteps, Flash, Ftl, LpnRun, Merges, OutOfSpace, SchemeFigures, ServesRam, Violation};
use flashwright_block::Bytes;
use flashwright_nand::{BlockId, Geometry, Lpn, Ppn, prefetch, table};
use pairs::PairCounts;
use recent::Recent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// `[ftl.last]`: sequential, hot and cold log blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LastSettings {
    /// Log blocks of all kinds (M) as a share of all blocks, rounded down, at least two: 0.03 in Gupta 2009.
    #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0), extend("x-expected" = "a share of all blocks {range}, such as 0.03"))]
    pub log_fraction: f64,
    /// Number of log blocks; it overrides `log-fraction` unless it is 0.
    pub log_blocks: u32,
    /// Number of sequential ones among the log blocks (m); 0 means a quarter, at least one.
    pub sequential_logs: u32,
    /// Share of the random logs that the hot partition may take, 0 to 1, rounded down; at least one log is left for the
    /// cold partition.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expected" = "a share of the random logs from {range}, such as 0.5"))]
    pub hot_share: f64,
    /// A request of more bytes than this, rounded to whole pages, is sequential: 4 KiB in Hu 2012. If pages are larger
    /// than this, no request is random; then raise it to the page size or more.
    pub seq_threshold: Bytes,
    /// A page is hot if it is among this many pages most recently written at random (k); 0 means the number of pages of
    /// the hot partition.
    pub recent_pages: u32,
    /// Whether a page goes to its home in the data block if that can still be programmed; otherwise every page goes to
    /// a log.
    pub home_first: bool,
}

impl Default for LastSettings {
    fn default() -> Self {
        Self {
            log_fraction: 0.03,
            log_blocks: 0,
            sequential_logs: 0,
            hot_share: 0.5,
            seq_threshold: Bytes(4096),
            recent_pages: 0,
            home_first: true,
        }
    }
}

/// The number of logs of each kind.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct LogCounts {
    sequential: u32,
    random: u32,
    /// Random logs that may be hot.
    hot_max: u32,
}

impl LogCounts {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of a count of 32 bits
    fn new(settings: &LastSettings, blocks: u32) -> Self {
        let all = log_blocks(settings.log_blocks, settings.log_fraction, 2, blocks);
        let sequential = match settings.sequential_logs {
            0 => (all / 4).max(1),
            given => given,
        };
        let random = all.saturating_sub(sequential);
        let hot_max = ((f64::from(random) * settings.hot_share) as u32).min(random.saturating_sub(1));
        Self { sequential, random, hot_max }
    }

    fn all(self) -> u32 {
        self.sequential + self.random
    }
}

/// A sequential log; without an owner the other fields have no meaning.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct SequentialLog {
    owner: u32,
    block: BlockId,
}

/// A random log. Without a block ([`NONE`]) the other fields have no meaning.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct RandomLog {
    block: u32,
    partition: usize,
    /// The number of logs opened before it.
    order: u64,
    /// Logical blocks that its valid pages belong to.
    associated: u32,
}

/// The cold or the hot random logs.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Partition {
    /// The log that takes pages, or [`NONE`].
    open: u32,
    /// Logs, the open one included.
    used: u32,
    /// The full logs: how many logical blocks their pages belong to, their age, and the slot.
    full: BTreeSet<(u32, u64, u32)>,
}

const COLD: usize = 0;
const HOT: usize = 1;
/// A kind of write, in addition to [`COLD`] and [`HOT`].
const SEQUENTIAL: usize = 2;

/// The one queue of sequential logs, and that of recent pages.
const ORDER: usize = 0;

/// `ftl.scheme = "last"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Last {
    logical: LogicalBlocks,
    /// The data block of each logical block, or [`NONE`].
    data: Vec<u32>,
    /// Current pages of each logical block in random logs.
    in_random: Vec<u16>,
    /// The slot of the sequential log of each logical block, or [`NONE`].
    sequential_of: Vec<u32>,
    sequential: Vec<SequentialLog>,
    sequential_unused: Vec<u32>,
    /// Sequential logs in use, the least recently written first.
    sequential_order: Queues,
    random: Vec<RandomLog>,
    random_unused: Vec<u32>,
    /// By block: the slot of the random log that it is, or [`NONE`].
    random_of: Vec<u32>,
    partitions: [Partition; 2],
    opened: u64,
    map: LogMap,
    pairs: PairCounts,
    recent: Recent,
    counts: LogCounts,
    /// A request of at least this many pages is sequential.
    sequential_from: u32,
    home_first: bool,
    erased: ErasedBlocks,
    entry_bytes: u32,
    figures: Figures,
    #[serde(skip)]
    mover: Mover,
    /// Pages that a merge took out of random logs, until they are marked as invalid.
    #[serde(skip)]
    leaving: Vec<Ppn>,
    /// Pages of the current victim.
    #[serde(skip)]
    victim_pages: Vec<Ppn>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Figures {
    merges: Merges,
    /// Pages written: cold, hot, sequential.
    written: [u64; 3],
    reclaims: u64,
    /// Current pages in random logs when they were reclaimed.
    reclaimed_pages_valid: u64,
    /// Reclaimed random logs without a current page.
    reclaimed_dead: u64,
    /// Reclaimed sequential logs without a current page.
    sequential_dead: u64,
}

impl BuildScheme for Last {
    const NAME: &'static str = "last";
    const ABOUT: &'static str = "LAST: sequential log blocks, and random ones split into hot and cold (Lee 2008)";
    type Settings = LastSettings;

    fn problems(context: &SchemeContext, flash: &Flash) -> Vec<String> {
        let settings = &context.ftl.schemes.last;
        let mut problems = log_problems(Self::NAME, settings.log_blocks, 2);
        let counts = LogCounts::new(settings, flash.geometry().blocks());
        if counts.random == 0 {
            problems.push(format!(
                "ftl.last.sequential-logs: found {}, but there are {} log blocks by ftl.last.log-fraction or log-blocks, \
                 and random writes need one of them; lower it, or set 0 for a quarter",
                settings.sequential_logs,
                log_blocks(settings.log_blocks, settings.log_fraction, 2, flash.geometry().blocks()),
            ));
            return problems;
        }
        let why =
            format!("{} log blocks by ftl.last.log-fraction or log-blocks, and one for full merges", counts.all());
        problems.extend(spare_problem(context, flash, u64::from(counts.all()) + MERGE_RESERVE as u64, &why));
        problems
    }

    fn table_bytes(settings: &LastSettings, _: u32, geometry: &Geometry) -> u64 {
        let logs = log_blocks(settings.log_blocks, settings.log_fraction, 2, geometry.blocks());
        LogMap::bytes(logs.saturating_mul(geometry.pages_per_block()))
    }

    fn new(context: &SchemeContext, flash: &mut Flash) -> Self {
        let settings = &context.ftl.schemes.last;
        let geometry = flash.geometry();
        let logical = LogicalBlocks::new(context.logical_pages, geometry);
        let counts = LogCounts::new(settings, geometry.blocks());
        let partition = Partition { open: NONE, used: 0, full: BTreeSet::new() };
        let recent = match settings.recent_pages {
            0 => counts.hot_max.saturating_mul(logical.per_block()),
            given => given,
        };
        let pages = settings.seq_threshold.0 / geometry.page_size().0;
        Self {
            logical,
            data: table(NONE, logical.count() as usize),
            in_random: table(0, logical.count() as usize),
            sequential_of: table(NONE, logical.count() as usize),
            sequential: vec![SequentialLog { owner: NONE, block: BlockId(0) }; counts.sequential as usize],
            sequential_unused: (0..counts.sequential).rev().collect(),
            sequential_order: Queues::new(counts.sequential, 1),
            random: vec![RandomLog { block: NONE, partition: COLD, order: 0, associated: 0 }; counts.random as usize],
            random_unused: (0..counts.random).rev().collect(),
            random_of: table(NONE, geometry.blocks() as usize),
            partitions: [partition.clone(), partition],
            opened: 0,
            map: LogMap::new(counts.random * logical.per_block()),
            pairs: PairCounts::new(counts.random * logical.per_block()),
            recent: Recent::new(recent.min(context.logical_pages)),
            counts,
            sequential_from: u32::try_from(pages).map_or(u32::MAX, |pages| pages.saturating_add(1)),
            home_first: settings.home_first,
            erased: ErasedBlocks::new(context, flash),
            entry_bytes: context.ftl.entry_bytes,
            figures: Figures::default(),
            mover: Mover::default(),
            leaving: Vec::new(),
            victim_pages: Vec::new(),
        }
    }

    fn mount(context: &SchemeContext, scan: &mut Scan, flash: &mut Flash) -> Result<Self, MountError> {
        let mut scheme = Self::new(context, flash);
        scheme.data = consolidate(scheme.logical, &mut scheme.erased, scan, flash)?;
        Ok(scheme)
    }
}

impl Ftl for Last {
    #[inline]
    fn write(&mut self, run: LpnRun, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let sequential = run.pages >= self.sequential_from;
        for lpn in run.iter() {
            let kind = match sequential {
                true => SEQUENTIAL,
                false if self.recent.note(lpn) && self.counts.hot_max > 0 => HOT,
                false => COLD,
            };
            self.write_page(lpn, kind, flash)?;
            self.figures.written[kind] += 1;
        }
        Ok(())
    }

    fn trim(&mut self, run: LpnRun, flash: &mut Flash) {
        for lpn in run.iter() {
            let (lbn, offset) = self.logical.split(lpn);
            self.drop_copy(lpn, lbn, offset, flash);
        }
    }

    /// At most one copy of a page is valid, so the order of the checks does not matter: home first, where most pages
    /// are.
    #[inline]
    fn lookup(&self, lpn: Lpn, flash: &Flash) -> Option<Ppn> {
        let (lbn, offset) = self.logical.split(lpn);
        current_home(self.data[lbn as usize], offset, flash)
            .or_else(|| self.in_sequential(lbn, offset, flash))
            .or_else(|| if self.in_random[lbn as usize] > 0 { self.map.get(lpn) } else { None })
    }

    fn audit(&self, flash: &Flash, violations: &mut Vec<Violation>) {
        audit_map(self.logical, flash, |lpn| self.lookup(lpn, flash), violations);
        let data = self.data.iter().filter(|block| **block != NONE).map(|block| (BlockId(*block), "data"));
        let sequential = self.sequential.iter().filter(|log| log.owner != NONE);
        let sequential = sequential.map(|log| (log.block, "a sequential log"));
        let random = self.random.iter().filter(|log| log.block != NONE);
        let random = random.map(|log| (BlockId(log.block), "a random log"));
        self.erased.audit(flash, data.chain(sequential).chain(random), violations);
        self.audit_sequential(flash, violations);
        self.audit_random(flash, violations);
        self.audit_association(flash, violations);
        self.recent.audit(violations);
    }

    fn figures(&self) -> SchemeFigures {
        let Figures { merges, written, reclaims, reclaimed_pages_valid, reclaimed_dead, sequential_dead } =
            &self.figures;
        let log_pages = u64::from(self.counts.all()) * u64::from(self.logical.per_block());
        // The map of blocks, the page map of the logs, owner and cursor of each sequential log.
        let entries = self.data.len() as u64 + log_pages + 2 * u64::from(self.counts.sequential);
        let all = (written.iter().sum::<u64>() as f64).max(1.0);
        SchemeFigures {
            merges: Some(merges.clone()),
            ram_bytes: entries * u64::from(self.entry_bytes),
            extra: vec![
                ("writes_sequential_share".to_owned(), written[SEQUENTIAL] as f64 / all),
                ("writes_hot_share".to_owned(), written[HOT] as f64 / all),
                ("writes_cold_share".to_owned(), written[COLD] as f64 / all),
                ("reclaims_blocks".to_owned(), *reclaims as f64),
                ("reclaims_dead_blocks".to_owned(), *reclaimed_dead as f64),
                ("valid_at_reclaim_pages".to_owned(), *reclaimed_pages_valid as f64 / (*reclaims as f64).max(1.0)),
                ("sequential_dead_blocks".to_owned(), *sequential_dead as f64),
                ("logs_blocks".to_owned(), f64::from(self.counts.all())),
                ("logs_sequential_blocks".to_owned(), f64::from(self.counts.sequential)),
                ("logs_hot_max_blocks".to_owned(), f64::from(self.counts.hot_max)),
            ],
            ..SchemeFigures::default()
        }
    }

    fn reset_figures(&mut self) {
        self.figures = Figures::default();
    }

    #[inline(always)]
    fn expect_far(&self, lpn: Lpn) {
        let lbn = self.logical.block_of(lpn) as usize;
        prefetch(&self.data, lbn);
        prefetch(&self.in_random, lbn);
        prefetch(&self.sequential_of, lbn);
        self.map.expect(lpn);
    }

    #[inline(always)]
    fn expect_near(&self, lpn: Lpn, flash: &Flash) {
        self.logical.expect_home(lpn, &self.data, flash);
        // Prefetches the counts of the log that a page may go to, and of the one that it leaves.
        let lbn = self.logical.block_of(lpn);
        for partition in &self.partitions {
            self.pairs.expect(partition.open, lbn);
        }
        if let Some(page) = self.map.get(lpn) {
            flash.expect_invalidation(page);
            self.pairs.expect(self.random_of[flash.geometry().block_of(page).index()], lbn);
        }
    }
}

impl CleansInSteps for Last {}

impl ServesRam for Last {}

impl Last {
    #[inline]
    fn write_page(&mut self, lpn: Lpn, kind: usize, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let (lbn, offset) = self.logical.split(lpn);
        if self.home_first
            && let Some(home) = self.programmable_home(lpn, lbn, offset, flash)?
        {
            flash.program(home, lpn, Cause::Host);
            return Ok(());
        }
        match kind {
            SEQUENTIAL => self.append_sequential(lpn, lbn, offset, flash),
            partition => self.append_random(lpn, lbn, offset, partition, flash),
        }
    }

    /// The home of a page that has no newer copy, if it can be programmed. Assigns a data block to a block without one.
    #[inline]
    fn programmable_home(
        &mut self,
        lpn: Lpn,
        lbn: u32,
        offset: u32,
        flash: &mut Flash,
    ) -> Result<Option<Ppn>, OutOfSpace> {
        if self.lookup(lpn, flash).is_some() {
            return Ok(None);
        }
        let mut data = self.data[lbn as usize];
        if data == NONE {
            if self.in_random[lbn as usize] > 0 || self.sequential_of[lbn as usize] != NONE {
                return Ok(None);
            }
            data = self.take_block(flash)?.0;
            self.data[lbn as usize] = data;
        }
        let home = flash.geometry().page_at(BlockId(data), offset);
        Ok(flash.nand().is_programmable(home).then_some(home))
    }

    /// Writes a page at its own offset in the sequential log of its block.
    #[inline]
    fn append_sequential(&mut self, lpn: Lpn, lbn: u32, offset: u32, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let mut slot = self.sequential_of[lbn as usize];
        if slot != NONE && offset < flash.nand().next_page(self.sequential[slot as usize].block) {
            self.retire(slot, flash)?;
            slot = NONE;
        }
        if slot == NONE {
            slot = self.open_sequential(lbn, flash)?;
        }
        let block = self.sequential[slot as usize].block;
        self.drop_copy(lpn, lbn, offset, flash);
        flash.program(flash.geometry().page_at(block, offset), lpn, Cause::Host);
        self.sequential_order.touch(ORDER, slot);
        if flash.pages_valid(block) == self.logical.per_block() {
            self.retire(slot, flash)?;
        }
        Ok(())
    }

    /// Assigns an erased sequential log to a logical block without one.
    fn open_sequential(&mut self, lbn: u32, flash: &mut Flash) -> Result<u32, OutOfSpace> {
        if self.sequential_unused.is_empty()
            && let Some(oldest) = self.sequential_order.first(ORDER)
        {
            self.retire(oldest, flash)?;
        }
        let block = self.take_block(flash)?;
        let slot = self.sequential_unused.pop().expect("a log was retired");
        self.sequential[slot as usize] = SequentialLog { owner: lbn, block };
        self.sequential_of[lbn as usize] = slot;
        self.sequential_order.push(ORDER, slot);
        Ok(slot)
    }

    /// Takes a sequential log from its owner; the caller now owns the block.
    fn close_sequential(&mut self, slot: u32) -> BlockId {
        let SequentialLog { owner, block } = self.sequential[slot as usize];
        self.sequential[slot as usize].owner = NONE;
        self.sequential_of[owner as usize] = NONE;
        self.sequential_order.remove(ORDER, slot);
        self.sequential_unused.push(slot);
        block
    }

    /// Merges a sequential log with its data block.
    fn retire(&mut self, slot: u32, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let full = self.figures.merges.full;
        self.retire_uncounted(slot, flash)?;
        if self.figures.merges.full > full {
            self.figures.merges.count_reclaim(1);
        }
        Ok(())
    }

    /// As [`Last::retire`], but the current reclaim counts the data blocks of full merges.
    fn retire_uncounted(&mut self, slot: u32, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let SequentialLog { owner, block } = self.sequential[slot as usize];
        let (next, per_block) = (flash.nand().next_page(block), self.logical.per_block());
        match flash.pages_valid(block) {
            0 => {
                self.close_sequential(slot);
                self.erased.release(block, Cause::Merge, flash);
                self.figures.sequential_dead += 1;
            }
            valid if valid < next => self.merge_full(owner, flash)?,
            _ => {
                self.close_sequential(slot);
                self.gather_and_move(owner, block, next..per_block, None, flash);
                let old = std::mem::replace(&mut self.data[owner as usize], block.0);
                self.erased.take_back(old, flash);
                let merges = &mut self.figures.merges;
                let kind = if next == per_block { &mut merges.switch } else { &mut merges.partial };
                *kind += 1;
            }
        }
        Ok(())
    }

    /// Merges all pages of a logical block into an erased one. Its sequential log, if any, is released too.
    fn merge_full(&mut self, lbn: u32, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let target = self.erased.take().ok_or_else(|| self.erased.exhausted(flash))?;
        let slot = self.sequential_of[lbn as usize];
        let sequential = (slot != NONE).then(|| self.close_sequential(slot));
        self.gather_and_move(lbn, target, 0..self.logical.per_block(), sequential, flash);
        let old = std::mem::replace(&mut self.data[lbn as usize], target.0);
        self.erased.take_back(old, flash);
        if let Some(log) = sequential {
            self.erased.take_back(log.0, flash);
        }
        self.figures.merges.full += 1;
        Ok(())
    }

    /// Copies the current pages of a logical block at `offsets` home to `target`; those of random logs leave these.
    fn gather_and_move(
        &mut self,
        lbn: u32,
        target: BlockId,
        offsets: std::ops::Range<u32>,
        sequential: Option<BlockId>,
        flash: &mut Flash,
    ) {
        let (data, first_lpn) = (self.data[lbn as usize], self.logical.first_page(lbn));
        let mut leaving = std::mem::take(&mut self.leaving);
        let Self { mover, map, in_random, .. } = self;
        let in_random = &mut in_random[lbn as usize];
        mover.move_home(flash, target, first_lpn, offsets, 0..0, |offset, flash| {
            let sequential = sequential.map(|log| flash.geometry().page_at(log, offset));
            current_home(data, offset, flash).or_else(|| sequential.filter(|page| flash.is_valid(*page))).or_else(
                || {
                    let page = if *in_random > 0 { map.remove(Lpn(first_lpn + offset)) } else { None };
                    page.inspect(|page| {
                        *in_random -= 1;
                        leaving.push(*page);
                    })
                },
            )
        });
        for page in leaving.drain(..) {
            self.leave_random(page, lbn, flash);
        }
        self.leaving = leaving;
    }

    /// Appends a page to the open log of a partition.
    #[inline]
    fn append_random(
        &mut self,
        lpn: Lpn,
        lbn: u32,
        offset: u32,
        partition: usize,
        flash: &mut Flash,
    ) -> Result<(), OutOfSpace> {
        let slot = match self.partitions[partition].open {
            NONE => self.open_random(partition, flash)?,
            open => open,
        };
        let block = BlockId(self.random[slot as usize].block);
        let position = flash.nand().next_page(block);
        let ppn = flash.geometry().page_at(block, position);
        flash.program(ppn, lpn, Cause::Host);
        if let Some(page) =
            current_home(self.data[lbn as usize], offset, flash).or_else(|| self.in_sequential(lbn, offset, flash))
        {
            flash.invalidate(page);
        }
        if self.pairs.add(slot, lbn) {
            self.random[slot as usize].associated += 1;
        }
        match self.map.insert(lpn, ppn) {
            Some(old) => self.leave_random(old, lbn, flash),
            None => self.in_random[lbn as usize] += 1,
        }
        if position + 1 == self.logical.per_block() {
            let RandomLog { order, associated, .. } = self.random[slot as usize];
            let partition = &mut self.partitions[partition];
            partition.open = NONE;
            partition.full.insert((associated, order, slot));
        }
        Ok(())
    }

    /// Marks a page of a random log as invalid, and updates the count of logical blocks that the log has pages of.
    #[inline]
    fn leave_random(&mut self, page: Ppn, lbn: u32, flash: &mut Flash) {
        let (block, _) = flash.invalidate(page);
        let slot = self.random_of[block.index()];
        if self.pairs.remove(slot, lbn) {
            let log = &mut self.random[slot as usize];
            let partition = &mut self.partitions[log.partition];
            if partition.open != slot {
                partition.full.remove(&(log.associated, log.order, slot));
                partition.full.insert((log.associated - 1, log.order, slot));
            }
            log.associated -= 1;
        }
    }

    /// Opens a log of a partition, making room among the random logs first.
    fn open_random(&mut self, partition: usize, flash: &mut Flash) -> Result<u32, OutOfSpace> {
        loop {
            let at_cap = partition == HOT && self.partitions[HOT].used >= self.counts.hot_max;
            if !at_cap && !self.random_unused.is_empty() {
                break;
            }
            let victim = match (self.dead_log(), at_cap) {
                (Some(dead), _) => dead,
                (None, true) => self.fewest_associated([HOT, HOT]).expect("all logs of a full partition are full"),
                (None, false) => self.fewest_associated([COLD, HOT]).expect("one of two logs is full"),
            };
            self.reclaim(victim, flash)?;
        }
        let block = self.take_block(flash)?;
        let slot = self.random_unused.pop().expect("room was made");
        self.random[slot as usize] = RandomLog { block: block.0, partition, order: self.opened, associated: 0 };
        self.opened += 1;
        self.random_of[block.index()] = slot;
        let partition = &mut self.partitions[partition];
        partition.used += 1;
        partition.open = slot;
        Ok(slot)
    }

    /// A full log without a current page, hot ones first.
    fn dead_log(&self) -> Option<u32> {
        let first = |partition: usize| self.partitions[partition].full.first();
        [HOT, COLD].into_iter().find_map(|partition| first(partition).filter(|log| log.0 == 0)).map(|log| log.2)
    }

    /// The full log whose pages belong to the fewest logical blocks, of the first of these partitions that has one.
    fn fewest_associated(&self, partitions: [usize; 2]) -> Option<u32> {
        partitions.into_iter().find_map(|partition| self.partitions[partition].full.first()).map(|log| log.2)
    }

    /// An erased block beyond the reserve, after reclaiming logs if necessary.
    fn take_block(&mut self, flash: &mut Flash) -> Result<BlockId, OutOfSpace> {
        loop {
            if let Some(block) = self.erased.take_leaving(MERGE_RESERVE) {
                return Ok(block);
            }
            let open = || self.partitions.iter().map(|partition| partition.open).find(|slot| *slot != NONE);
            if let Some(dead) = self.dead_log() {
                self.reclaim(dead, flash)?;
            } else if let Some(oldest) = self.sequential_order.first(ORDER) {
                self.retire(oldest, flash)?;
            } else if let Some(victim) = self.fewest_associated([COLD, HOT]).or_else(open) {
                self.reclaim(victim, flash)?;
            } else {
                return Err(self.erased.exhausted(flash));
            }
        }
    }

    /// Reclaims a random log: merges every logical block that has a current page in it.
    fn reclaim(&mut self, slot: u32, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let victim = BlockId(self.random[slot as usize].block);
        let mut pages = std::mem::take(&mut self.victim_pages);
        pages.clear();
        pages.extend(flash.valid_pages(victim));
        let mut data_blocks = 0;
        let mut merged = Ok(());
        for page in &pages {
            if !flash.is_valid(*page) {
                continue; // was moved with an earlier page of its block
            }
            let lbn = self.logical.block_of(flash.nand().spare(*page).expect("a valid page names its owner"));
            let log = self.sequential_of[lbn as usize];
            merged = if log != NONE && flash.pages_valid(self.sequential[log as usize].block) > 0 {
                self.retire_uncounted(log, flash)
            } else {
                self.merge_full(lbn, flash)
            };
            if merged.is_err() {
                break;
            }
            data_blocks += 1;
        }
        let valid = pages.len() as u64;
        self.victim_pages = pages;
        merged?;
        let RandomLog { partition, order, associated, .. } = self.random[slot as usize];
        let partition = &mut self.partitions[partition];
        if partition.open == slot {
            partition.open = NONE;
        }
        partition.full.remove(&(associated, order, slot));
        partition.used -= 1;
        self.random[slot as usize].block = NONE;
        self.random_of[victim.index()] = NONE;
        self.random_unused.push(slot);
        self.erased.release(victim, Cause::Merge, flash);
        self.figures.reclaims += 1;
        self.figures.reclaimed_pages_valid += valid;
        self.figures.reclaimed_dead += u64::from(valid == 0);
        self.figures.merges.count_reclaim(data_blocks);
        Ok(())
    }

    /// The copy of a page in the sequential log of its block.
    #[inline(always)]
    fn in_sequential(&self, lbn: u32, offset: u32, flash: &Flash) -> Option<Ppn> {
        let slot = self.sequential_of[lbn as usize];
        if slot == NONE {
            return None;
        }
        let page = flash.geometry().page_at(self.sequential[slot as usize].block, offset);
        flash.is_valid(page).then_some(page)
    }

    /// Marks the current copy of a page as invalid, if there is one.
    #[inline]
    fn drop_copy(&mut self, lpn: Lpn, lbn: u32, offset: u32, flash: &mut Flash) {
        if let Some(page) =
            current_home(self.data[lbn as usize], offset, flash).or_else(|| self.in_sequential(lbn, offset, flash))
        {
            flash.invalidate(page);
        } else if self.in_random[lbn as usize] > 0
            && let Some(page) = self.map.remove(lpn)
        {
            self.in_random[lbn as usize] -= 1;
            self.leave_random(page, lbn, flash);
        }
    }

    fn audit_sequential(&self, flash: &Flash, violations: &mut Vec<Violation>) {
        let in_use = || (0..).zip(&self.sequential).filter(|(_, log)| log.owner != NONE);
        let mut queued: Vec<u32> = self.sequential_order.iter(ORDER).collect();
        queued.sort_unstable();
        if queued != in_use().map(|(slot, _)| slot).collect::<Vec<_>>()
            || self.sequential_of.iter().filter(|slot| **slot != NONE).count() != queued.len()
            || self.sequential_unused.len() + queued.len() != self.sequential.len()
        {
            violations.push(Violation(format!("{} sequential logs are queued, others are in use", queued.len())));
        }
        for (slot, log) in in_use() {
            if self.sequential_of[log.owner as usize] != slot {
                violations.push(Violation(format!("block {} does not know its sequential log {slot}", log.owner)));
            }
            let first_lpn = self.logical.first_page(log.owner);
            for position in 0..flash.nand().next_page(log.block) {
                let spare = flash.nand().spare(flash.geometry().page_at(log.block, position));
                if spare.is_some_and(|lpn| lpn != Lpn(first_lpn + position)) {
                    violations.push(Violation(format!(
                        "the sequential log of block {} names {spare:?} at {position}",
                        log.owner
                    )));
                }
            }
        }
    }

    fn audit_random(&self, flash: &Flash, violations: &mut Vec<Violation>) {
        let in_use = || self.random.iter().filter(|log| log.block != NONE);
        let covers = |block: BlockId| self.random_of[block.index()] != NONE;
        self.map.audit(in_use().map(|log| BlockId(log.block)), &self.in_random, covers, flash, violations);
        if in_use().count() + self.random_unused.len() != self.random.len()
            || self.partitions[HOT].used > self.counts.hot_max
        {
            violations.push(Violation(format!(
                "{} random logs are in use, {} of them hot, of {:?}",
                in_use().count(),
                self.partitions[HOT].used,
                self.counts
            )));
        }
    }

    /// Recounts the logical blocks that each random log has pages of, and checks that the log is at the matching place.
    fn audit_association(&self, flash: &Flash, violations: &mut Vec<Violation>) {
        let mut pairs = BTreeMap::new();
        let mut used = [0; 2];
        for (slot, log) in (0..).zip(&self.random).filter(|(_, log)| log.block != NONE) {
            let block = BlockId(log.block);
            used[log.partition] += 1;
            let mut owners = BTreeSet::new();
            for lbn in flash.valid_pages(block).filter_map(|page| flash.nand().spare(page)) {
                let lbn = self.logical.block_of(lbn);
                owners.insert(lbn);
                *pairs.entry((slot, lbn)).or_insert(0) += 1;
            }
            let partition = &self.partitions[log.partition];
            let full = flash.nand().next_page(block) == self.logical.per_block();
            if self.random_of[block.index()] != slot
                || owners.len() != log.associated as usize
                || full == (partition.open == slot)
                || full != partition.full.contains(&(log.associated, log.order, slot))
            {
                violations
                    .push(Violation(format!("random log {slot} has pages of {owners:?}, but is kept as {log:?}")));
            }
        }
        for (partition, used) in self.partitions.iter().zip(used) {
            let open = usize::from(partition.open != NONE);
            if partition.used != used || partition.full.len() + open != used as usize {
                violations.push(Violation(format!("a partition counts {} logs and has {used}", partition.used)));
            }
        }
        if pairs.len() != self.pairs.len
            || pairs.into_iter().any(|((slot, lbn), pages)| self.pairs.get(slot, lbn) != pages)
        {
            violations.push(Violation("the pages by random log and logical block are miscounted".to_owned()));
        }
    }
}
