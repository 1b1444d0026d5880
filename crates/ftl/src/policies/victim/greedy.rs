//! Greedy: the sealed block with the fewest valid pages; the one sealed first among equals.
//!
//! Optimal under uniform random writes (Hu and Haas, IBM RZ 3771, cited by the container-marking report).
//!
//! Nearly all invalidations hit blocks that are far from being the next victim, so only blocks below a threshold of
//! valid pages are kept in order, in a heap by (valid pages, seal order). An invalidation above the threshold costs one
//! comparison. Entries are never changed: a block that loses a page gets a new entry, and stale entries are skipped.
//! When the heap is empty or too many entries are stale, the threshold is reset so that at least one block in 64 lies
//! below it, which takes a scan of all blocks. This can happen only after a number of cleans or invalidations
//! proportional to the number of blocks, so a pick costs amortised O(log blocks) and an invalidation amortised O(1).
//! State: 8 bytes per block, and the heap.

use super::{PlaneView, VictimContext, VictimPolicy};
use crate::registry::NoSettings;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A block's state when the entry was made: valid pages and seal number in one number, and the block.
type Entry = Reverse<(u64, u32)>;

/// Bits of a seal number; enough to seal 2^48 blocks. A block has fewer than 2^16 pages.
const SEAL_BITS: u32 = 48;

#[inline(always)]
fn entry(pages_valid: u32, seal: u64, block: u32) -> Entry {
    Reverse((u64::from(pages_valid) << SEAL_BITS | seal, block))
}

/// `gc.victim = "greedy"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Greedy {
    /// The seal number of each block, from 1; 0 for one that is not sealed.
    sealed_as: Vec<u64>,
    last_seal: u64,
    sealed: u32,
    /// Sealed blocks with fewer valid pages than this are in the heap.
    threshold: u32,
    heap: BinaryHeap<Entry>,
    /// With more entries than this the threshold is reset.
    entries_max: usize,
    pages_per_block: u32,
}

impl VictimPolicy for Greedy {
    const NAME: &'static str = "greedy";
    const ABOUT: &'static str = "fewest valid pages, ties to the block sealed first (Hu and Haas, RZ 3771)";
    const PICKS_FEWEST: bool = true;
    type Settings = NoSettings;

    fn new(_: &NoSettings, context: VictimContext) -> Self {
        Self {
            sealed_as: vec![0; context.blocks as usize],
            last_seal: 0,
            sealed: 0,
            threshold: 0,
            heap: BinaryHeap::new(),
            entries_max: 0,
            pages_per_block: context.pages_per_block,
        }
    }

    fn sealed(&mut self, block: u32, view: PlaneView) {
        self.last_seal += 1;
        self.sealed_as[block as usize] = self.last_seal;
        self.sealed += 1;
        let valid = view.pages_valid(block);
        if valid < self.threshold {
            self.enter(block, valid, view);
        }
    }

    #[inline(always)]
    fn invalidated(&mut self, block: u32, pages_valid: u32, view: PlaneView) {
        if pages_valid < self.threshold {
            self.enter(block, pages_valid, view);
        }
    }

    fn removed(&mut self, block: u32) {
        self.sealed_as[block as usize] = 0;
        self.sealed -= 1;
        // The top is then the likely next victim.
        while self.heap.peek().is_some_and(|Reverse((_, top))| self.sealed_as[*top as usize] == 0) {
            self.heap.pop();
        }
    }

    fn pick(&mut self, view: PlaneView) -> Option<u32> {
        loop {
            while let Some(top) = self.heap.peek().copied() {
                let Reverse((_, block)) = top;
                if top == entry(view.pages_valid(block), self.sealed_as[block as usize], block) {
                    return Some(block);
                }
                self.heap.pop();
            }
            if self.sealed == 0 {
                return None;
            }
            self.set_threshold(view);
        }
    }

    #[inline]
    fn likely_next(&self) -> Option<u32> {
        self.heap.peek().map(|Reverse((_, block))| *block)
    }

    fn candidates(&self) -> u32 {
        self.sealed
    }

    #[cfg(test)]
    fn search(_: &NoSettings, history: &mut super::tests::History, view: PlaneView) -> Option<u32> {
        history.fewest(view, |_| true)
    }
}

impl Greedy {
    #[cold]
    fn enter(&mut self, block: u32, valid: u32, view: PlaneView) {
        let seal = self.sealed_as[block as usize];
        if seal == 0 {
            return; // an open block
        }
        self.heap.push(entry(valid, seal, block));
        if self.heap.len() > self.entries_max {
            self.set_threshold(view);
        }
    }

    /// Sets the threshold to the lowest that has one block in 64 below it, and refills the heap.
    fn set_threshold(&mut self, view: PlaneView) {
        let sealed = || (0u32..).zip(&self.sealed_as).filter(|(_, seal)| **seal != 0);
        let mut blocks_with = vec![0u32; self.pages_per_block as usize + 1];
        for (block, _) in sealed() {
            blocks_with[view.pages_valid(block) as usize] += 1;
        }
        let wanted = (self.sealed_as.len() as u32 / 64).max(1);
        let (mut below, mut threshold) = (0, 0);
        while below < wanted && threshold <= self.pages_per_block {
            below += blocks_with[threshold as usize];
            threshold += 1;
        }
        let entries = sealed()
            .filter(|(block, _)| view.pages_valid(*block) < threshold)
            .map(|(block, seal)| entry(view.pages_valid(block), *seal, block))
            .collect::<Vec<_>>();
        self.threshold = threshold;
        self.entries_max = 2 * entries.len() + (self.sealed_as.len() / 8).max(64);
        self.heap = entries.into();
    }
}
