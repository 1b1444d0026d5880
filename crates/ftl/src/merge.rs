//! Shared by the schemes that map whole blocks and merge updates into them: the pool of erased blocks, copying pages to
//! their homes, queues of numbered nodes, and the page map of log blocks.
//!
//! ```text
//!   ErasedBlocks ── take ──► data block, log block, target of a merge
//!        ▲                              │ superseded
//!        └── erase ◄── release ◄────────┘        (a block whose budget is spent retires instead)
//! ```
//!
//! A page of a data block lies at its own offset: its *home*. At most one copy of a logical page is valid, so the valid
//! bit of a home shows whether the newest copy is there.

use crate::schemes::SchemeContext;
use crate::{BlockPool, Cause, Flash, OutOfSpace, Violation};
use flashwright_nand::{BlockId, Condition, Divisor, Geometry, Lpn, PlaneId, Ppn, prefetch, table};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// No block, no node, no entry.
pub(crate) const NONE: u32 = u32::MAX;

/// The erased block that the pool reserves for the copies of a merge.
pub(crate) const MERGE_RESERVE: usize = 1;

/// Logical blocks, and how a logical page number splits into its block and its offset.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct LogicalBlocks {
    pages: u32,
    per_block: Divisor,
}

impl LogicalBlocks {
    pub fn new(logical_pages: u32, geometry: &Geometry) -> Self {
        Self { pages: logical_pages, per_block: Divisor::new(geometry.pages_per_block()) }
    }

    /// Blocks that the logical space takes up, the last one possibly in part.
    pub fn count(self) -> u32 {
        self.pages.div_ceil(self.per_block.get())
    }

    /// Logical pages.
    pub fn pages(self) -> u32 {
        self.pages
    }

    /// Pages of a block.
    #[inline(always)]
    pub fn per_block(self) -> u32 {
        self.per_block.get()
    }

    /// Logical block and offset of a page.
    #[inline(always)]
    pub fn split(self, lpn: Lpn) -> (u32, u32) {
        let lbn = self.per_block.of(lpn.0);
        (lbn, lpn.0 - lbn * self.per_block.get())
    }

    /// Warms the CPU cache for an invalidation of the copy at home; `data` names the data block of each logical one.
    #[inline(always)]
    pub fn expect_home(self, lpn: Lpn, data: &[u32], flash: &Flash) {
        let (lbn, offset) = self.split(lpn);
        let block = data[lbn as usize];
        if block != NONE {
            flash.expect_invalidation(flash.geometry().page_at(BlockId(block), offset));
        }
    }

    /// The logical block of a page.
    #[inline(always)]
    pub fn block_of(self, lpn: Lpn) -> u32 {
        self.per_block.of(lpn.0)
    }

    /// The first page of a logical block.
    #[inline(always)]
    pub fn first_page(self, lbn: u32) -> u32 {
        lbn * self.per_block.get()
    }
}

/// Erased blocks of the whole drive. Planes take turns, so that consecutively taken blocks, and with them consecutive
/// logical blocks, lie on different planes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ErasedBlocks {
    /// By plane, in the order of turns; blocks counted within their plane.
    planes: Vec<(BlockId, BlockPool)>,
    /// By plane: its place among the turns.
    place: Vec<u32>,
    turn: u32,
    len: u32,
}

impl ErasedBlocks {
    /// A pool of all erased good blocks.
    pub fn new(context: &SchemeContext, flash: &Flash) -> Self {
        let geometry = flash.geometry();
        let mut len = 0;
        let order = context.placement.order.planes(geometry, context.dies_per_way);
        let mut place = vec![0; order.len()];
        for (turn, plane) in (0..).zip(&order) {
            place[*plane as usize] = turn;
        }
        let planes = order
            .into_iter()
            .map(|plane| {
                let first = geometry.first_block(PlaneId(plane));
                let mut pool = BlockPool::new(context.wear.free_block);
                for local in 0..geometry.blocks_per_plane() {
                    let block = BlockId(first.0 + local);
                    if flash.nand().condition(block) == Condition::Good && flash.nand().next_page(block) == 0 {
                        let is_fresh = flash.nand().erases(block) == 0;
                        pool.push(local, if is_fresh { 0 } else { flash.nand().wear_rank(block) });
                        len += 1;
                    }
                }
                (first, pool)
            })
            .collect();
        Self { planes, place, turn: 0, len }
    }

    /// The number of blocks.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Takes a block of the next plane that has one.
    pub fn take(&mut self) -> Option<BlockId> {
        self.take_after(self.turn).map(|(turn, block)| {
            self.turn = turn;
            block
        })
    }

    /// Takes a block of the plane in this turn or, if it has none, of the next one that has.
    pub fn take_from(&mut self, turn: u32) -> Option<BlockId> {
        self.take_after(turn).map(|(_, block)| block)
    }

    /// As [`ErasedBlocks::take_from`], with the turn that follows.
    fn take_after(&mut self, mut turn: u32) -> Option<(u32, BlockId)> {
        let planes = self.planes.len();
        for _ in 0..planes {
            let (first, pool) = &mut self.planes[turn as usize];
            turn = if turn as usize + 1 == planes { 0 } else { turn + 1 };
            if let Some(local) = pool.pop() {
                self.len -= 1;
                return Some((turn, BlockId(first.0 + local)));
            }
        }
        None
    }

    /// Takes a block if this many remain.
    pub fn take_leaving(&mut self, remaining: usize) -> Option<BlockId> {
        if self.len() > remaining { self.take() } else { None }
    }

    /// Takes back a block whose pages were merged elsewhere; nothing for [`NONE`].
    pub fn take_back(&mut self, block: u32, flash: &mut Flash) {
        if block != NONE {
            flash.invalidate_block(BlockId(block));
            self.release(BlockId(block), Cause::Merge, flash);
        }
    }

    /// Takes back a block without valid pages: erases it for `cause`, or retires it if it cannot be erased once more.
    pub fn release(&mut self, block: BlockId, cause: Cause, flash: &mut Flash) {
        if !flash.nand().can_erase(block) {
            flash.retire(block);
            return;
        }
        flash.erase(block, cause);
        let plane = flash.geometry().plane_of(block);
        let (first, pool) = &mut self.planes[self.place[plane.index()] as usize];
        pool.push(block.0 - first.0, flash.nand().wear_rank(block));
        self.len += 1;
    }

    /// The error of a drive without a free block.
    #[cold]
    pub fn exhausted(&self, flash: &Flash) -> OutOfSpace {
        OutOfSpace::new(self.len(), flash)
    }

    /// Checks that every block is erased, retired, bad, or in use exactly once; `in_use` lists the used blocks and
    /// their purpose.
    pub fn audit(
        &self,
        flash: &Flash,
        in_use: impl Iterator<Item = (BlockId, &'static str)>,
        violations: &mut Vec<Violation>,
    ) {
        let mut seen = BTreeMap::new();
        let free = self.planes.iter().flat_map(|(first, pool)| {
            pool.blocks().into_iter().map(|local| (BlockId(first.0 + local), "free")).collect::<Vec<_>>()
        });
        let conditions = (0..flash.geometry().blocks()).map(BlockId).filter_map(|block| {
            let name = match flash.nand().condition(block) {
                Condition::Good => return None,
                Condition::Retired => "retired",
                Condition::System => "set apart",
                Condition::FactoryBad => "bad",
            };
            Some((block, name))
        });
        let mut free_count = 0;
        for (block, use_) in free.chain(conditions).chain(in_use) {
            if let Some(other) = seen.insert(block, use_) {
                violations.push(Violation(format!("block {} is {use_} and {other}", block.0)));
            }
            if use_ == "free" {
                free_count += 1;
                if flash.nand().next_page(block) != 0 || flash.pages_valid(block) != 0 {
                    violations.push(Violation(format!("block {} is in the free pool but not erased", block.0)));
                }
            }
        }
        for block in (0..flash.geometry().blocks()).map(BlockId).filter(|block| !seen.contains_key(block)) {
            violations.push(Violation(format!(
                "block {} is neither free, data, log, retired nor bad; it holds {} valid pages",
                block.0,
                flash.pages_valid(block)
            )));
        }
        if free_count != self.len() {
            violations.push(Violation(format!("the pool counts {} blocks and holds {free_count}", self.len())));
        }
    }
}

/// Checks that the map of `logical` and the spare areas of all valid pages are inverse.
pub(crate) fn audit_map(
    logical: LogicalBlocks,
    flash: &Flash,
    lookup: impl Fn(Lpn) -> Option<Ppn>,
    violations: &mut Vec<Violation>,
) {
    let mut mapped = 0u64;
    for lpn in (0..logical.pages()).map(Lpn) {
        let Some(ppn) = lookup(lpn) else { continue };
        mapped += 1;
        let owner = flash.nand().spare(ppn);
        if owner != Some(lpn) || !flash.is_valid(ppn) {
            violations.push(Violation(format!(
                "lpn {} maps to page {}, which names {owner:?} and is {}",
                lpn.0,
                ppn.0,
                if flash.is_valid(ppn) { "valid" } else { "invalid" }
            )));
        }
    }
    let valid = flash.pages_valid_in_all();
    if valid != mapped {
        violations.push(Violation(format!("{mapped} logical pages are mapped, but {valid} flash pages are valid")));
    }
}

/// The home of an offset in a data block ([`NONE`] for no block), if it holds the current copy.
#[inline(always)]
pub(crate) fn current_home(data: u32, offset: u32, flash: &Flash) -> Option<Ppn> {
    if data == NONE {
        return None;
    }
    let home = flash.geometry().page_at(BlockId(data), offset);
    flash.is_valid(home).then_some(home)
}

/// Copies pages home. The lists are kept to avoid allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mover {
    from: Vec<u32>,
    lpns: Vec<u32>,
}

impl Mover {
    /// Brings `offsets` of `target` up to date for the logical block that starts at `first_lpn`: in ascending order the
    /// host's new pages where `host` has them, else the copy that `newest` names for an offset. Offsets without either
    /// stay erased. Copies count as [`Cause::Merge`]; their sources stay valid. Returns the number of copies.
    pub fn move_home(
        &mut self,
        flash: &mut Flash,
        target: BlockId,
        first_lpn: u32,
        offsets: Range<u32>,
        host: Range<u32>,
        mut newest: impl FnMut(u32, &Flash) -> Option<Ppn>,
    ) -> u32 {
        let base = flash.geometry().first_page(target).0;
        let mut copied = 0;
        for offset in offsets.clone() {
            if host.contains(&offset) {
                copied += self.flush(flash, base + offset);
                flash.program_in_merge(Ppn(base + offset), Lpn(first_lpn + offset));
                continue;
            }
            match newest(offset, flash) {
                Some(from) => {
                    self.from.push(from.0);
                    self.lpns.push(first_lpn + offset);
                }
                None => copied += self.flush(flash, base + offset),
            }
        }
        copied + self.flush(flash, base + offsets.end)
    }

    /// Performs the copies gathered for the pages right before `end`.
    fn flush(&mut self, flash: &mut Flash, end: u32) -> u32 {
        let count = u32::try_from(self.from.len()).expect("no more than a block");
        if count > 0 {
            flash.copy_run(&self.from, &self.lpns, Ppn(end - count), Cause::Merge);
            self.from.clear();
            self.lpns.clear();
        }
        count
    }
}

/// Queues over numbered nodes, each node in at most one of them. All steps take constant time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Queues {
    /// By node: the one before and the one after.
    links: Vec<[u32; 2]>,
    /// By queue: the first and the last.
    ends: Vec<[u32; 2]>,
}

impl Queues {
    pub fn new(nodes: u32, queues: usize) -> Self {
        Self { links: vec![[NONE; 2]; nodes as usize], ends: vec![[NONE; 2]; queues] }
    }

    /// The oldest node of a queue.
    #[inline]
    pub fn first(&self, queue: usize) -> Option<u32> {
        let first = self.ends.get(queue)?[0];
        (first != NONE).then_some(first)
    }

    /// Appends a node that is in no queue to one; creates the queue if it does not exist.
    #[inline]
    pub fn push(&mut self, queue: usize, node: u32) {
        if queue >= self.ends.len() {
            self.ends.resize(queue + 1, [NONE; 2]);
        }
        let last = std::mem::replace(&mut self.ends[queue][1], node);
        self.links[node as usize] = [last, NONE];
        match last {
            NONE => self.ends[queue][0] = node,
            _ => self.links[last as usize][1] = node,
        }
    }

    /// Takes a node out of its queue.
    #[inline]
    pub fn remove(&mut self, queue: usize, node: u32) {
        let [before, after] = std::mem::replace(&mut self.links[node as usize], [NONE; 2]);
        match before {
            NONE => self.ends[queue][0] = after,
            _ => self.links[before as usize][1] = after,
        }
        match after {
            NONE => self.ends[queue][1] = before,
            _ => self.links[after as usize][0] = before,
        }
    }

    /// Moves a node of a queue to its end.
    #[inline]
    pub fn touch(&mut self, queue: usize, node: u32) {
        if self.ends[queue][1] != node {
            self.remove(queue, node);
            self.push(queue, node);
        }
    }

    /// The nodes of a queue, first to last.
    pub fn iter(&self, queue: usize) -> impl Iterator<Item = u32> {
        std::iter::successors(self.first(queue), |node| {
            let after = self.links[*node as usize][1];
            (after != NONE).then_some(after)
        })
    }
}

/// The page map of log blocks that pages of any logical block share: from logical to physical page, open addressing
/// with linear probing, at most half full. Its size depends on the log, not on the drive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LogMap {
    /// Logical and physical page; [`NONE`] twice where there is no entry.
    table: Vec<(u32, u32)>,
    shift: u32,
    len: u32,
}

const EMPTY: (u32, u32) = (NONE, NONE);

impl LogMap {
    /// Entries of the table of a map for up to this many.
    fn size(entries_max: u32) -> u64 {
        (u64::from(entries_max.max(1)) * 2).next_power_of_two()
    }

    /// Bytes of the table of a map for up to this many entries.
    pub fn bytes(entries_max: u32) -> u64 {
        Self::size(entries_max) * size_of_val(&EMPTY) as u64
    }

    /// A map for up to this many entries.
    pub fn new(entries_max: u32) -> Self {
        let size = Self::size(entries_max);
        Self {
            table: table(EMPTY, usize::try_from(size).expect("a log fits the memory")),
            shift: 64 - size.trailing_zeros(),
            len: 0,
        }
    }

    /// Entries.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Where the search for `lpn` starts: the high bits of a product with 2^64 over the golden ratio.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // fewer bits than an index has
    fn start(&self, lpn: u32) -> usize {
        (u64::from(lpn).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// The slot of `lpn`, or the empty slot where it would go.
    #[inline(always)]
    fn find(&self, lpn: u32) -> usize {
        let mut at = self.start(lpn);
        while self.table[at].0 != lpn && self.table[at] != EMPTY {
            at = (at + 1) & (self.table.len() - 1);
        }
        at
    }

    #[inline]
    pub fn get(&self, lpn: Lpn) -> Option<Ppn> {
        let (found, ppn) = self.table[self.find(lpn.0)];
        (found == lpn.0).then_some(Ppn(ppn))
    }

    /// Maps `lpn` and returns its previous page.
    #[inline]
    pub fn insert(&mut self, lpn: Lpn, ppn: Ppn) -> Option<Ppn> {
        let at = self.find(lpn.0);
        let (_, old) = std::mem::replace(&mut self.table[at], (lpn.0, ppn.0));
        if old == NONE {
            self.len += 1;
            assert!(self.len() * 2 <= self.table.len(), "more pages mapped than the log has");
            return None;
        }
        Some(Ppn(old))
    }

    /// Removes `lpn` and returns its page.
    #[inline]
    pub fn remove(&mut self, lpn: Lpn) -> Option<Ppn> {
        let mut hole = self.find(lpn.0);
        let (found, ppn) = self.table[hole];
        if found != lpn.0 {
            return None;
        }
        let mask = self.table.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            if self.table[at] == EMPTY {
                break;
            }
            // An entry may move back as far as where its search starts.
            let start = self.start(self.table[at].0);
            if at.wrapping_sub(start) & mask >= at.wrapping_sub(hole) & mask {
                self.table[hole] = self.table[at];
                hole = at;
            }
        }
        self.table[hole] = EMPTY;
        self.len -= 1;
        Some(Ppn(ppn))
    }

    /// Warms the CPU cache for a search for `lpn`.
    #[inline(always)]
    pub fn expect(&self, lpn: Lpn) {
        prefetch(&self.table, self.start(lpn.0));
    }

    /// All entries, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (Lpn, Ppn)> {
        self.table.iter().filter(|entry| **entry != EMPTY).map(|(lpn, ppn)| (Lpn(*lpn), Ppn(*ppn)))
    }

    /// Appends contradictions between the map, the valid pages of the logs that it covers, and the counts of logical blocks.
    pub fn audit(
        &self,
        logs: impl Iterator<Item = BlockId>,
        counts: &[u16],
        covers: impl Fn(BlockId) -> bool,
        flash: &Flash,
        violations: &mut Vec<Violation>,
    ) {
        let valid: u64 = logs.map(|block| u64::from(flash.pages_valid(block))).sum();
        let counted: u64 = counts.iter().map(|pages| u64::from(*pages)).sum();
        if valid != self.len() as u64 || counted != valid {
            violations.push(Violation(format!(
                "random logs hold {valid} current pages, their map {}, logical blocks count {counted}",
                self.len()
            )));
        }
        for (lpn, ppn) in self.iter() {
            if !flash.is_valid(ppn) || flash.nand().spare(ppn) != Some(lpn) || !covers(flash.geometry().block_of(ppn)) {
                violations
                    .push(Violation(format!("the log map sends lpn {} to page {}, which is not it", lpn.0, ppn.0)));
            }
        }
    }
}

/// The number of log blocks of a drive of `blocks`: `log_blocks`, or, if that is 0, the share `log_fraction` rounded
/// down, but no fewer than `least`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of a count of 32 bits
pub(crate) fn log_blocks(log_blocks: u32, log_fraction: f64, least: u32, blocks: u32) -> u32 {
    match log_blocks {
        0 => ((f64::from(blocks) * log_fraction) as u32).max(least),
        _ => log_blocks,
    }
}

/// Validation errors of the number of logs, under the keys of `[ftl.<scheme>]`.
pub(crate) fn log_problems(scheme: &str, log_blocks: u32, least: u32) -> Vec<String> {
    let mut problems = Vec::new();
    if log_blocks != 0 && log_blocks < least {
        problems.push(format!(
            "ftl.{scheme}.log-blocks: found {log_blocks}, expected {least} or more, or 0 to take ftl.{scheme}.log-fraction"
        ));
    }
    problems
}

/// Blocks of the drive that are in use.
pub(crate) fn good_blocks(flash: &Flash) -> u64 {
    let blocks = (0..flash.geometry().blocks()).map(BlockId);
    blocks.filter(|block| flash.nand().condition(*block) == Condition::Good).count() as u64
}

/// The validation error of a drive that has fewer good blocks than its data and `extra` blocks need; `why` names the
/// latter.
pub(crate) fn spare_problem(context: &SchemeContext, flash: &Flash, extra: u64, why: &str) -> Option<String> {
    let (geometry, good) = (flash.geometry(), good_blocks(flash));
    let data = u64::from(LogicalBlocks::new(context.logical_pages, geometry).count());
    if data + extra <= good {
        return None;
    }
    let room = good.saturating_sub(extra) * u64::from(geometry.pages_per_block());
    let share = (room as f64 / f64::from(geometry.pages()) * 1000.0).floor() / 1000.0;
    Some(format!(
        "capacity: {} logical pages take {data} data blocks, and {extra} more are needed ({why}), but the drive has \
         {good} good blocks; lower capacity.utilization to {share:.3} or less, or use more and smaller blocks",
        context.logical_pages,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// The map compared with a reference model; few slots, so that probe sequences collide.
        #[test]
        fn the_log_map_is_a_map(steps in proptest::collection::vec((0u32..40, 0u32..1000, any::<bool>()), 1..400)) {
            let (mut map, mut model) = (LogMap::new(16), BTreeMap::new());
            for (lpn, ppn, insert) in steps {
                if insert && (model.len() < 16 || model.contains_key(&lpn)) {
                    prop_assert_eq!(map.insert(Lpn(lpn), Ppn(ppn)).map(|p| p.0), model.insert(lpn, ppn));
                } else {
                    prop_assert_eq!(map.remove(Lpn(lpn)).map(|p| p.0), model.remove(&lpn));
                }
                prop_assert_eq!(map.len(), model.len());
                for lpn in 0..40 {
                    prop_assert_eq!(map.get(Lpn(lpn)).map(|p| p.0), model.get(&lpn).copied());
                }
                let all: BTreeMap<u32, u32> = map.iter().map(|(lpn, ppn)| (lpn.0, ppn.0)).collect();
                prop_assert_eq!(&all, &model);
            }
        }

        #[test]
        fn queues_keep_their_order(steps in proptest::collection::vec((0usize..3, 0u32..6, 0u32..3), 1..200)) {
            let (mut queues, mut model) = (Queues::new(6, 1), vec![VecDeque::new(); 3]);
            for (queue, node, step) in steps {
                let at = model.iter().position(|queue| queue.contains(&node));
                match (at, step) {
                    (None, _) => {
                        queues.push(queue, node);
                        model[queue].push_back(node);
                    }
                    (Some(at), 0) => {
                        queues.remove(at, node);
                        model[at].retain(|other| *other != node);
                    }
                    (Some(at), _) => {
                        queues.touch(at, node);
                        model[at].retain(|other| *other != node);
                        model[at].push_back(node);
                    }
                }
                for (queue, model) in model.iter().enumerate() {
                    prop_assert_eq!(queues.first(queue), model.front().copied());
                    if queues.first(queue).is_some() {
                        prop_assert_eq!(queues.iter(queue).collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
                    }
                }
            }
        }
    }

    #[test]
    fn the_number_of_logs_is_a_share_rounded_down_or_given() {
        assert_eq!(log_blocks(0, 0.01, 1, 65_536), 655); // Hu 2012: 1 % of 65,536 blocks
        assert_eq!(log_blocks(0, 0.03, 2, 16), 2);
        assert_eq!(log_blocks(7, 0.03, 2, 16), 7);
    }
}
