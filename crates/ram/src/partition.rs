//! RAM shared by a buffer and the cached mapping table (Hu 2012, 3.2.3): the border between both, and the gain of
//! moving it by a step.

use crate::managers::{RamContext, View};
use flashwright_block::Bytes;
use flashwright_ftl::{Cause, Ghosts, OpKind, ServesRam};
use flashwright_nand::Lpn;
use serde::{Deserialize, Serialize};

/// Bytes of RAM per entry of the mapping table, and per identifier in a ghost list (Hu 2012, 3.2.1).
pub(crate) const ENTRY_BYTES: u64 = 8;
/// RAM that moves per decision: 4 pages of 4 KiB, or 2,048 entries.
pub(crate) const STEP: Bytes = Bytes(16 << 10);
/// Share of the RAM that the table has at first, for want of a word on it: half.
pub(crate) const START_SHARE: f64 = 0.5;
/// Requests between two decisions.
pub(crate) const WINDOW: u32 = 500;

/// Bytes of the identifiers of ghosts, which `ram.charge-metadata` deducts: one for each page and each entry of a step.
pub(crate) fn ghosts_bytes(step: Bytes, context: &RamContext) -> u64 {
    if !context.charged || context.map_cache.is_none() {
        return 0;
    }
    let pages = u64::from(Partition::pages_of(step, context));
    (pages + pages * (context.page_bytes / ENTRY_BYTES)) * ENTRY_BYTES
}

/// The position of the border. Without a cached mapping table all RAM is buffer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Partition {
    /// Pages of RAM, and those of the table among them.
    total: u32,
    map: u32,
    /// Pages that move per decision; each side keeps at least this many.
    step: u32,
    /// Pages that hold the whole table.
    map_max: u32,
    entries_per_page: u32,
    /// Entries of the whole table; none if no table is cached.
    entries: Option<u32>,
}

impl Partition {
    /// Pages of a step.
    fn pages_of(step: Bytes, context: &RamContext) -> u32 {
        u32::try_from(step.0 / context.page_bytes).unwrap_or(u32::MAX).max(1)
    }

    /// Validation errors of the sizes.
    pub fn problems(manager: &str, step: Bytes, context: &RamContext) -> Vec<String> {
        let mut problems = Vec::new();
        if step.0 < context.page_bytes {
            problems.push(format!(
                "ram.{manager}.step: found {step}, expected at least a page, which has {}",
                Bytes(context.page_bytes)
            ));
        }
        let Some(cache) = context.map_cache else { return problems };
        let step = Self::pages_of(step, context);
        if context.pages < step.saturating_mul(2) {
            problems.push(format!(
                "ram.size: found room for {} pages, but ram.manager = {manager:?} divides it in steps of {step} and each side \
                 keeps one; give it more, or lower ram.{manager}.step",
                context.pages
            ));
        }
        if let Some(key) = cache.set_by {
            problems.push(format!(
                "{key}: the mapping table gets its share of ram.size under ram.manager = {manager:?}; leave {key} unset"
            ));
        }
        problems
    }

    /// This share is the table's, but it gets no more than it needs, and each side at least a step.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of the pages, which are 32 bits
    pub fn new(step: Bytes, map_share: f64, context: &RamContext) -> Self {
        let entries_per_page = u32::try_from(context.page_bytes / ENTRY_BYTES).unwrap_or(u32::MAX).max(1);
        let entries = context.map_cache.map(|cache| cache.capacity_limits.1);
        let map_max = entries.map_or(0, |entries| entries.div_ceil(entries_per_page));
        let (step, share) = (Self::pages_of(step, context), (f64::from(context.pages) * map_share) as u32);
        Self {
            total: context.pages,
            map: share.clamp(step, context.pages.saturating_sub(step).max(step)).min(map_max),
            step,
            map_max,
            entries_per_page,
            entries,
        }
    }

    /// Pages of the buffer.
    #[inline(always)]
    pub fn buffer_pages(&self) -> u32 {
        self.total - self.map
    }
    /// Entries of the table, if one is cached.
    pub fn map_entries(&self) -> Option<u32> {
        self.entries.map(|entries| entries.min(self.map.saturating_mul(self.entries_per_page)))
    }
    /// Pages, and entries, of a step.
    pub fn step(&self) -> (u32, u32) {
        (self.step, self.step.saturating_mul(self.entries_per_page))
    }
    /// Moves a step from the buffer to the table, unless the buffer would be left with less than one, or the table
    /// holds everything. Returns whether it moved.
    pub fn grow_map(&mut self) -> bool {
        let grown = (self.map + self.step).min(self.map_max);
        let moves = grown > self.map && self.total - grown >= self.step;
        if moves {
            self.map = grown;
        }
        moves
    }
    /// Moves a step from the table to the buffer, unless the table would be left with less than one.
    pub fn grow_buffer(&mut self) -> bool {
        let moves = self.map >= 2 * self.step;
        if moves {
            self.map -= self.step;
        }
        moves
    }
}

/// The side of RAM that would gain more from another step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    Buffer,
    Map,
    Neither,
}

/// The flash time that one more step of RAM would have saved on either side: ghosts identify pages and entries that are
/// requested again soon after their eviction.
///
/// The formulas are ours: we know Shim 2010 only through Hu 2012, 3.1.3. A buffer page that is rewritten would have
/// saved a program, and with `count-gc` also the copies that it causes (the window's ratio of other programs to host
/// programs); one that is read again would have saved a read. An entry would have saved a read of its translation page
/// and, in proportion to the dirty evictions in the window, the read and the program of a written-back page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Balance {
    ghosts: Ghosts,
    read: f64,
    program: f64,
    count_gc: bool,
    /// Ghosts requested again in the window: written, and read.
    written_again: u64,
    read_again: u64,
    /// Counts at the end of the last window: ghost hits of the table, evictions, dirty ones, programs, those for the
    /// host.
    last: [u64; 5],
    /// Ghosts of pages and of entries requested again since the start or the last reset.
    pub hits: [u64; 2],
}

impl Balance {
    /// Ghosts of one step.
    pub fn new(pages: u32, count_gc: bool, context: &RamContext) -> Self {
        Self {
            ghosts: Ghosts::new(pages),
            read: context.read.0 as f64,
            program: context.program.0 as f64,
            count_gc,
            written_again: 0,
            read_again: 0,
            last: [0; 5],
            hits: [0; 2],
        }
    }

    /// A page left the buffer.
    pub fn left(&mut self, lpn: Lpn) {
        self.ghosts.push(lpn.0);
    }
    /// A page that is not in the buffer is added, written or read.
    pub fn wanted(&mut self, lpn: Lpn, written: bool) {
        if self.ghosts.wanted(lpn.0) {
            *(if written { &mut self.written_again } else { &mut self.read_again }) += 1;
            self.hits[0] += 1;
        }
    }
    /// A page that is not in the buffer is read and stays outside.
    pub fn read_outside(&mut self, lpn: Lpn) {
        if self.ghosts.holds(lpn.0) {
            self.read_again += 1;
            self.hits[0] += 1;
        }
    }
    /// A page lost its content.
    pub fn forget(&mut self, lpn: Lpn) {
        self.ghosts.forget(lpn.0);
    }

    /// Evaluates the window that ends now, and starts another.
    pub fn weigh(&mut self, view: View) -> Better {
        let cache = view.scheme.map_cache().unwrap_or_default();
        let counters = view.flash.counters();
        let now = [
            cache.ghost_hits,
            cache.evictions,
            cache.dirty_evictions,
            counters.total(OpKind::Program),
            counters.get(OpKind::Program, Cause::Host),
        ];
        // Counts that were reset to zero meanwhile start from there.
        let last = std::mem::replace(&mut self.last, now);
        let [ghosts, evictions, dirty, programs, host] =
            std::array::from_fn(|at| now[at].checked_sub(last[at]).unwrap_or(now[at]) as f64);
        self.hits[1] += ghosts as u64;
        let copies = if self.count_gc && host > 0.0 { programs / host - 1.0 } else { 0.0 };
        let write = self.program + copies * (self.program + self.read);
        let buffer = self.written_again as f64 * write + self.read_again as f64 * self.read;
        (self.written_again, self.read_again) = (0, 0);
        let dirty_share = if evictions > 0.0 { dirty / evictions } else { 0.0 };
        let map = ghosts * (self.read + dirty_share * (self.read + self.program));
        if buffer > map {
            Better::Buffer
        } else if map > buffer {
            Better::Map
        } else {
            Better::Neither
        }
    }
}
