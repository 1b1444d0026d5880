//! Adaptive partitioning (AP): a page cache and the cached mapping table share the RAM, and ghosts of recent evictions
//! from both decide which of them to enlarge (Shim et al., MSST 2010, as far as Hu 2012, 1.2.2 and 3.1.3, describes
//! it).
//!
//! **A reconstruction.** The published formulas were not available; those of [`crate::partition`] are ours, and so are
//! the figures from this manager. Pages read and written are kept, or written ones alone (`keeps-reads`); the least
//! recently used one is evicted. Every `window` requests the side whose ghosts would have saved more time takes `step` bytes from the other; each side
//! keeps at least one step. There are as many ghosts as a step has entries. With a scheme without a cached mapping
//! table all RAM is page cache, and nothing moves.
//!
//! O(log n) per page in the size of a ghost list. 25 bytes per held page, 4 per logical page.

use super::{Lru, RamContext, RamManager, View};
use crate::Destage;
use crate::partition::{Balance, Better, Partition, START_SHARE, STEP, WINDOW, ghosts_bytes};
use flashwright_block::{Bytes, RequestKind};
use flashwright_ftl::{LpnRun, NoSettings, Violation, Watch};
use flashwright_nand::Lpn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[ram.ap]`: settings of `ram.manager = "ap"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ApSettings {
    /// Requests between two decisions.
    #[schemars(range(min = 1), extend("x-expected" = "{range} requests"))]
    pub window: u32,
    /// RAM that moves per decision, rounded down to whole pages; each side keeps at least this much.
    pub step: Bytes,
    /// Whether the buffer keeps pages that are read too. Hu 2012 calls it a write buffer and a data buffer by turns.
    pub keeps_reads: bool,
    /// Whether a program that the buffer would have saved is weighted with the cleaning copies that it causes.
    pub count_gc: bool,
}

impl Default for ApSettings {
    fn default() -> Self {
        Self { window: WINDOW, step: STEP, keeps_reads: true, count_gc: false }
    }
}

/// `ram.manager = "ap"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ap {
    /// The buffer; `partition` limits how much of it is used.
    cache: Lru,
    partition: Partition,
    balance: Balance,
    keeps_reads: bool,
    window: u32,
    /// Requests in the current window.
    requests: u32,
    /// Windows that moved the border towards the table, and towards the buffer.
    moves: [u64; 2],
}

impl RamManager for Ap {
    const NAME: &'static str = "ap";
    const ABOUT: &'static str =
        "a page cache and the mapping table share the RAM by their ghosts (after Shim 2010; ours)";
    const METADATA_BYTES: u64 = 12;
    type Settings = ApSettings;

    fn problems(settings: &Self::Settings, context: &RamContext) -> Vec<String> {
        Partition::problems(Self::NAME, settings.step, &context.less(ghosts_bytes(settings.step, context)))
    }

    fn new(settings: &Self::Settings, context: RamContext) -> Self {
        let context = context.less(ghosts_bytes(settings.step, &context));
        let partition = Partition::new(settings.step, START_SHARE, &context);
        Self {
            balance: Balance::new(partition.step().0, settings.count_gc, &context),
            cache: Lru::new(&NoSettings {}, context),
            partition,
            keeps_reads: settings.keeps_reads,
            window: settings.window,
            requests: 0,
            moves: [0; 2],
        }
    }

    fn watch(&self) -> Watch {
        Watch { map_ghosts: self.partition.step().1, ..Watch::default() }
    }
    #[inline(always)]
    fn keeps_reads(&self) -> bool {
        self.keeps_reads
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
        self.cache.pages()
    }
    #[inline(always)]
    fn is_dirty(&self, lpn: Lpn) -> Option<bool> {
        self.cache.is_dirty(lpn)
    }

    #[inline(always)]
    fn overwrite(&mut self, lpn: Lpn) -> bool {
        self.cache.overwrite(lpn)
    }
    fn take_in(&mut self, lpn: Lpn, dirty: bool) {
        self.balance.wanted(lpn, dirty);
        self.cache.take_in(lpn, dirty);
    }
    #[inline(always)]
    fn read(&mut self, lpn: Lpn) -> bool {
        let held = self.cache.read(lpn);
        if !held && !self.keeps_reads {
            self.balance.read_outside(lpn);
        }
        held
    }
    #[inline(always)]
    fn choose(&mut self, view: View, out: &mut Destage) {
        self.cache.choose(view, out);
    }
    fn remove(&mut self, lpn: Lpn) -> bool {
        self.balance.forget(lpn);
        self.cache.remove(lpn)
    }
    fn left(&mut self, out: &Destage) {
        for lpn in out.pages.iter().chain(&out.dropped).map(|lpn| Lpn(*lpn)) {
            self.remove(lpn);
            self.balance.left(lpn);
        }
    }
    fn dirty_pages(&self, out: &mut Vec<u32>) {
        self.cache.dirty_pages(out);
    }
    fn cleaned(&mut self, lpn: Lpn) {
        self.cache.cleaned(lpn);
    }
    #[inline(always)]
    fn leaves_after(&self, slot: Option<u32>) -> Option<(u32, Lpn)> {
        self.cache.leaves_after(slot)
    }

    fn request_done(&mut self, _: RequestKind, _: LpnRun, view: View) -> bool {
        self.requests += 1;
        if self.requests < self.window {
            return false;
        }
        self.requests = 0;
        let moved = match self.balance.weigh(view) {
            Better::Map => self.partition.grow_map().then_some(0),
            Better::Buffer => self.partition.grow_buffer().then_some(1),
            Better::Neither => None,
        };
        moved.inspect(|side: &usize| self.moves[*side] += 1).is_some()
    }

    fn figures(&self) -> Vec<(String, f64)> {
        vec![
            ("ghost_buffer_hits".to_owned(), self.balance.hits[0] as f64),
            ("ghost_map_hits".to_owned(), self.balance.hits[1] as f64),
            ("map_grown_steps".to_owned(), self.moves[0] as f64),
            ("buffer_grown_steps".to_owned(), self.moves[1] as f64),
        ]
    }
    fn reset_figures(&mut self) {
        (self.balance.hits, self.moves) = ([0; 2], [0; 2]);
    }

    fn audit(&self, violations: &mut Vec<Violation>) {
        self.cache.audit(violations);
    }
}
