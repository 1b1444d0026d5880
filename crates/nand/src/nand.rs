//! The chip's state and its rules.

use crate::{BlockId, Geometry, Lpn, Ppn, ProgramOrder, prefetch, table};
use serde::{Deserialize, Serialize};

/// Whether a block can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// In use.
    Good,
    /// Set apart for what the drive needs to mount again; no translation layer uses it, and no budget limits its erases.
    System,
    /// Bad from the factory: never programmed, never erased.
    FactoryBad,
    /// Its erase budget is used up: readable, never programmed or erased again.
    Retired,
}

/// How many erases each block survives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WearLimit {
    /// No limit: wear is counted only.
    Unlimited,
    /// The same for every block.
    Same(u32),
    /// Its own for each block, by block id.
    Each(Vec<u32>),
}

/// The wear and state of one block.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct BlockState {
    erases: u32,
    /// One past the highest page programmed since the last erase.
    next_page: u16,
    condition: Condition,
}

/// All chips of a drive: which pages are programmed, the content of their spare areas, and how often blocks were
/// erased.
///
/// A call that breaks the rules of NAND panics, in release builds too: such a step can only be a bug of the translation
/// layer that made it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Nand {
    geometry: Geometry,
    order: ProgramOrder,
    limit: WearLimit,
    /// Mean and maximum number of erases that a block survives, if there is a limit.
    cycles_mean: Option<f64>,
    cycles_most: u32,
    retired: u32,
    /// The logical page number in each page's spare area; [`ERASED`] if the page is not programmed.
    spare: Vec<u32>,
    blocks: Vec<BlockState>,
}

const ERASED: u32 = u32::MAX;

/// The owner of a page whose program was cut short, as [`Nand::spare`] names it: the page can't be read, and can't be programmed
/// before its block is erased.
pub const TORN: Lpn = Lpn(u32::MAX - 1);

impl Condition {
    /// Whether pages may be programmed and the block erased.
    #[inline(always)]
    fn is_usable(self) -> bool {
        self as u8 <= Self::System as u8
    }
}

impl Nand {
    /// Erased flash without wear. `factory_bad` lists the blocks that are bad from the factory.
    ///
    /// # Panics
    /// If a block has more than 65,535 pages, or an id in `factory_bad` or the length of an individual wear limit
    /// does not fit the geometry.
    #[must_use]
    pub fn new(geometry: Geometry, order: ProgramOrder, limit: WearLimit, factory_bad: &[BlockId]) -> Self {
        let mut nand = Self::without_pages(geometry, order, limit, factory_bad);
        nand.spare = table(ERASED, geometry.pages() as usize);
        nand
    }

    /// As [`Nand::new`], but only to be asked about its layout and its blocks: it has no table of pages, and a call that names a
    /// page panics.
    ///
    /// # Panics
    /// As [`Nand::new`].
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // cycles far below 2^53
    pub fn without_pages(geometry: Geometry, order: ProgramOrder, limit: WearLimit, factory_bad: &[BlockId]) -> Self {
        assert!(geometry.pages_per_block() <= u32::from(u16::MAX), "a block has at most 65,535 pages");
        if let WearLimit::Each(limits) = &limit {
            assert_eq!(limits.len(), geometry.blocks() as usize, "one wear limit a block");
        }
        let fresh = BlockState { erases: 0, next_page: 0, condition: Condition::Good };
        let mut blocks = vec![fresh; geometry.blocks() as usize];
        for block in factory_bad {
            blocks[block.index()].condition = Condition::FactoryBad;
        }
        let (cycles_mean, cycles_most) = match &limit {
            WearLimit::Unlimited => (None, 0),
            WearLimit::Same(limit) => (Some(f64::from(*limit)), *limit),
            WearLimit::Each(limits) => {
                let sum: u64 = limits.iter().map(|limit| u64::from(*limit)).sum();
                (Some(sum as f64 / limits.len() as f64), limits.iter().copied().max().unwrap_or(0))
            }
        };
        Self { geometry, order, limit, cycles_mean, cycles_most, retired: 0, spare: Vec::new(), blocks }
    }

    /// The layout.
    #[inline(always)]
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The order in which pages of a block may be programmed.
    #[must_use]
    pub fn program_order(&self) -> ProgramOrder {
        self.order
    }

    /// The logical page number in the spare area of `ppn`, none if the page is erased.
    #[inline(always)]
    #[must_use]
    pub fn spare(&self, ppn: Ppn) -> Option<Lpn> {
        let lpn = self.spare[ppn.index()];
        (lpn != ERASED).then_some(Lpn(lpn))
    }

    /// The spare areas of a whole block, in page order; for scans.
    #[inline(always)]
    #[must_use]
    pub fn spares(&self, block: BlockId) -> &[u32] {
        let first = self.geometry.first_page(block).index();
        &self.spare[first..first + self.geometry.pages_per_block() as usize]
    }

    /// Whether `ppn` may be programmed now.
    #[must_use]
    pub fn is_programmable(&self, ppn: Ppn) -> bool {
        let block = &self.blocks[self.geometry.block_of(ppn).index()];
        block.condition == Condition::Good
            && self.spare[ppn.index()] == ERASED
            && (self.order == ProgramOrder::Any || self.geometry.page_in_block(ppn) >= u32::from(block.next_page))
    }

    /// One past the highest page programmed in `block` since its last erase.
    #[inline(always)]
    #[must_use]
    pub fn next_page(&self, block: BlockId) -> u32 {
        u32::from(self.blocks[block.index()].next_page)
    }

    /// Pages of `block` programmed since its last erase: fewer than [`Nand::next_page`] if some were skipped.
    #[inline]
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // a block has at most 65,535 pages
    pub fn pages_programmed(&self, block: BlockId) -> u32 {
        let spares = &self.spares(block)[..self.next_page(block) as usize];
        spares.iter().filter(|spare| **spare != ERASED).count() as u32
    }

    /// Erases that `block` has been through.
    #[inline(always)]
    #[must_use]
    pub fn erases(&self, block: BlockId) -> u32 {
        self.blocks[block.index()].erases
    }

    /// The erases of every block, in order.
    pub fn erases_of_all(&self) -> impl Iterator<Item = u32> {
        self.blocks.iter().map(|block| block.erases)
    }

    /// Whether `block` can be used.
    #[inline(always)]
    #[must_use]
    pub fn condition(&self, block: BlockId) -> Condition {
        self.blocks[block.index()].condition
    }

    /// Remaining erases of `block`; none without a limit.
    #[must_use]
    pub fn cycles_left(&self, block: BlockId) -> Option<u32> {
        let limit = match &self.limit {
            WearLimit::Unlimited => return None,
            WearLimit::Same(limit) => *limit,
            WearLimit::Each(limits) => limits[block.index()],
        };
        Some(limit.saturating_sub(self.erases(block)))
    }

    /// The wear of a block, for comparison with others of this chip: its erases, or, if budgets differ between blocks,
    /// the largest budget minus its remaining erases.
    #[inline]
    #[must_use]
    pub fn wear_rank(&self, block: BlockId) -> u32 {
        match &self.limit {
            WearLimit::Each(_) => self.cycles_most - self.cycles_left(block).unwrap_or(0),
            _ => self.erases(block),
        }
    }

    /// Mean number of erases that a block survives; none without a limit.
    #[must_use]
    pub fn cycles_mean(&self) -> Option<f64> {
        self.cycles_mean
    }

    /// Number of retired blocks.
    #[must_use]
    pub fn blocks_retired(&self) -> u32 {
        self.retired
    }

    /// Programs `ppn` and puts `lpn` in its spare area; answers the block.
    ///
    /// # Panics
    /// If the page is not erased, comes before a programmed page of a block that demands ascending order, or lies in
    /// a factory-bad or retired block.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // page numbers within a block fit 16 bits, checked at construction
    pub fn program(&mut self, ppn: Ppn, lpn: Lpn) -> BlockId {
        let (block, page) = self.geometry.place_of(ppn);
        self.claim(block, page, page + 1);
        let spare = &mut self.spare[ppn.index()];
        if *spare != ERASED {
            programmed_twice(ppn, Lpn(*spare));
        }
        *spare = lpn.0;
        block
    }

    /// Programs `lpns.len()` consecutive pages of one block, from `first` on.
    ///
    /// # Panics
    /// As [`Nand::program`], for every page; also if the pages do not lie in one block.
    #[inline]
    pub fn program_run(&mut self, first: Ppn, lpns: &[u32]) {
        let (block, page) = self.geometry.place_of(first);
        let end = page + u32::try_from(lpns.len()).expect("a run lies in one block");
        assert!(end <= self.geometry.pages_per_block(), "a run of pages leaves its block");
        self.claim(block, page, end);
        let spares = &mut self.spare[first.index()..first.index() + lpns.len()];
        assert!(spares.iter().all(|spare| *spare == ERASED), "a page programmed again without an erase");
        spares.copy_from_slice(lpns);
    }

    /// Checks condition and order for programming pages `page..end` of `block`, and moves its high-water mark.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // page numbers within a block fit 16 bits, checked at construction
    fn claim(&mut self, block: BlockId, page: u32, end: u32) {
        let state = &mut self.blocks[block.index()];
        let goes_back = page < u32::from(state.next_page);
        if !state.condition.is_usable() || goes_back && self.order == ProgramOrder::Ascending {
            not_programmable(block, page, *state);
        }
        state.next_page = if goes_back { state.next_page.max(end as u16) } else { end as u16 };
    }

    /// Erases a whole block and returns whether its budget is now used up (one more fill is then allowed before
    /// [`Nand::retire`]).
    ///
    /// # Panics
    /// If the block is factory-bad or retired, or its budget was spent before and it is not set apart.
    pub fn erase(&mut self, block: BlockId) -> bool {
        let left = self.cycles_left(block);
        let first = self.geometry.first_page(block).index();
        let state = &mut self.blocks[block.index()];
        assert!(state.condition.is_usable(), "erase of block {}, which is {:?}", block.0, state.condition);
        assert!(
            left != Some(0) || state.condition == Condition::System,
            "erase of block {} beyond its budget of {} cycles",
            block.0,
            state.erases
        );
        state.erases += 1;
        // Only programmed pages need clearing; the high-water mark bounds them.
        self.spare[first..first + usize::from(state.next_page)].fill(ERASED);
        state.next_page = 0;
        left == Some(1)
    }

    /// Takes a block out of use permanently. Its pages stay readable.
    ///
    /// # Panics
    /// If the block is factory-bad.
    pub fn retire(&mut self, block: BlockId) {
        let state = &mut self.blocks[block.index()];
        assert!(state.condition != Condition::FactoryBad, "block {} is bad since the factory", block.0);
        self.retired += u32::from(state.condition != Condition::Retired);
        state.condition = Condition::Retired;
    }

    /// Sets an erased block apart for the drive's own use.
    ///
    /// # Panics
    /// If the block is not good, or not erased.
    pub fn set_apart(&mut self, block: BlockId) {
        let state = &mut self.blocks[block.index()];
        assert!(state.condition == Condition::Good && state.next_page == 0, "block {} is in use", block.0);
        state.condition = Condition::System;
    }

    /// Uses a retired block again until its pages have moved. It is as before it was retired, so it can't be erased.
    ///
    /// # Panics
    /// If it is not retired.
    pub fn use_again(&mut self, block: BlockId) {
        let state = &mut self.blocks[block.index()];
        assert!(state.condition == Condition::Retired, "block {} is not retired", block.0);
        state.condition = Condition::Good;
        self.retired -= 1;
    }

    /// Puts a block in the state in which a loss of power left it: its erases, whether it is retired, and the owners of its first
    /// pages, `None` for an erased page.
    ///
    /// # Panics
    /// If the block has fewer pages than `owners`, or is bad from the factory and has any.
    #[allow(clippy::cast_possible_truncation)] // a block has at most 65,535 pages
    pub fn restore(
        &mut self,
        block: BlockId,
        erases: u32,
        is_retired: bool,
        owners: impl Iterator<Item = Option<Lpn>>,
    ) {
        let first = self.geometry.first_page(block).index();
        let spares = &mut self.spare[first..first + self.geometry.pages_per_block() as usize];
        spares.fill(ERASED);
        let mut next_page = 0;
        for (page, owner) in owners.enumerate() {
            if let Some(owner) = owner {
                spares[page] = owner.0;
                next_page = page as u16 + 1;
            }
        }
        let state = &mut self.blocks[block.index()];
        assert!(
            next_page == 0 || state.condition != Condition::FactoryBad,
            "block {} is bad since the factory",
            block.0
        );
        (state.erases, state.next_page) = (erases, next_page);
        let is_new = is_retired && state.condition != Condition::Retired;
        if is_new {
            self.retired += 1;
            state.condition = Condition::Retired;
        }
    }

    /// Whether [`Nand::erase`] may take `block` once more.
    #[inline]
    #[must_use]
    pub fn can_erase(&self, block: BlockId) -> bool {
        self.condition(block).is_usable() && self.cycles_left(block) != Some(0)
    }

    /// Warms the CPU cache for the spare area of `ppn`; a page past the end is ignored.
    #[inline(always)]
    pub fn expect_spare(&self, ppn: Ppn) {
        prefetch(&self.spare, ppn.index());
    }

    /// Warms the CPU cache for the spare areas of `block`.
    #[inline]
    pub fn expect_scan(&self, block: BlockId) {
        let first = self.geometry.first_page(block).index();
        for line in (0..self.geometry.pages_per_block() as usize).step_by(16) {
            prefetch(&self.spare, first + line);
        }
    }
}

// Messages get values instead of references: what a message refers to would have to lie in memory at every program.

#[cold]
#[inline(never)]
fn programmed_twice(ppn: Ppn, owner: Lpn) -> ! {
    panic!("page {} of lpn {} programmed again without an erase", ppn.0, owner.0)
}

#[cold]
#[inline(never)]
fn not_programmable(block: BlockId, page: u32, state: BlockState) -> ! {
    assert!(state.condition.is_usable(), "program in block {}, which is {:?}", block.0, state.condition);
    panic!(
        "page {page} of block {} programmed after page {}: this chip demands ascending order",
        block.0,
        i32::from(state.next_page) - 1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::Bytes;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn chip(order: ProgramOrder, limit: WearLimit) -> Nand {
        Nand::new(Geometry::new(1, 1, 1, 3, 4, Bytes(4096)), order, limit, &[BlockId(2)])
    }

    fn refuses(nand: &mut Nand, step: impl FnOnce(&mut Nand)) -> bool {
        catch_unwind(AssertUnwindSafe(|| step(nand))).is_err()
    }

    #[test]
    fn a_page_is_programmed_once_between_erases() {
        let mut nand = chip(ProgramOrder::Any, WearLimit::Unlimited);
        nand.program(Ppn(1), Lpn(9));
        assert!(refuses(&mut nand, |n| _ = n.program(Ppn(1), Lpn(9))));
        assert_eq!((nand.spare(Ppn(1)), nand.spare(Ppn(0))), (Some(Lpn(9)), None));
        assert_eq!((nand.next_page(BlockId(0)), nand.pages_programmed(BlockId(0))), (2, 1));
        nand.erase(BlockId(0));
        assert_eq!((nand.spare(Ppn(1)), nand.erases(BlockId(0))), (None, 1));
        nand.program(Ppn(1), Lpn(3));
    }

    #[test]
    fn order_is_a_property_of_the_chip() {
        let mut ascending = chip(ProgramOrder::Ascending, WearLimit::Unlimited);
        ascending.program(Ppn(2), Lpn(0)); // a gap is allowed
        assert!(!ascending.is_programmable(Ppn(1)) && ascending.is_programmable(Ppn(3)));
        assert!(refuses(&mut ascending, |n| _ = n.program(Ppn(1), Lpn(0))));
        let mut any = chip(ProgramOrder::Any, WearLimit::Unlimited);
        any.program(Ppn(2), Lpn(0));
        any.program(Ppn(1), Lpn(0));
    }

    #[test]
    fn runs_obey_the_same_law() {
        let mut nand = chip(ProgramOrder::Ascending, WearLimit::Unlimited);
        nand.program_run(Ppn(1), &[5, 6]);
        assert_eq!((nand.spare(Ppn(2)), nand.next_page(BlockId(0))), (Some(Lpn(6)), 3));
        assert!(refuses(&mut nand, |n| n.program_run(Ppn(2), &[1])));
        assert!(refuses(&mut nand, |n| n.program_run(Ppn(3), &[1, 2])));
    }

    #[test]
    fn spent_bad_and_retired_blocks_are_left_alone() {
        let mut nand = chip(ProgramOrder::Ascending, WearLimit::Same(2));
        assert!(!nand.erase(BlockId(0)) && nand.erase(BlockId(0)));
        assert!(refuses(&mut nand, |n| _ = n.erase(BlockId(0))), "budget spent");
        nand.program(Ppn(0), Lpn(1)); // the last fill
        nand.retire(BlockId(0));
        assert!(refuses(&mut nand, |n| _ = n.program(Ppn(1), Lpn(1))));
        assert_eq!(nand.spare(Ppn(0)), Some(Lpn(1)), "still readable");
        nand.retire(BlockId(0));
        assert_eq!(nand.blocks_retired(), 1, "counted once");
        nand.use_again(BlockId(0));
        assert!(nand.blocks_retired() == 0 && !nand.can_erase(BlockId(0)));
        assert!(refuses(&mut nand, |n| n.use_again(BlockId(0))));
        nand.retire(BlockId(0));
        assert!(refuses(&mut nand, |n| _ = n.program(Ppn(8), Lpn(1))), "factory bad");
        assert!(refuses(&mut nand, |n| _ = n.erase(BlockId(2))), "factory bad");
    }
}
