//! Greedy: the sealed block with the fewest valid pages; the one sealed first among equals.
//!
//! Optimal under uniform random writes (Hu and Haas, IBM RZ 3771, cited by the container-marking report).
//!
//! Nearly all invalidations hit blocks that are far from being the next victim, so only blocks below a threshold of
//! valid pages are kept in order, in a heap by (valid pages, seal order). An invalidation above the threshold costs one
//! comparison. Entries are never changed: a block that loses a page gets a new one, and old ones are passed over. When
//! the heap runs dry the threshold is set anew, so that at least one block in 32 lies below it, which takes a look at
//! every block; when more than a quarter of the blocks lie below it, likewise. Both can only come after a number of
//! cleans or invalidations in proportion to the blocks, so a pick costs O(log blocks) and an invalidation O(1), amortised.
//! State: 8 bytes a block, and the heap.

use super::{UnitView, VictimContext, VictimPolicy};
use crate::registry::NoSettings;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// (valid pages, seal number, block).
type Entry = Reverse<(u32, u64, u32)>;

/// `gc.victim = "greedy"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Greedy {
    /// The number under which a block was sealed, from 1; 0 for one that is not sealed.
    sealed_as: Vec<u64>,
    last_seal: u64,
    sealed: u32,
    /// Sealed blocks with fewer valid pages than this are in the heap.
    threshold: u32,
    heap: BinaryHeap<Entry>,
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
            pages_per_block: context.pages_per_block,
        }
    }

    fn sealed(&mut self, block: u32, view: UnitView) {
        self.last_seal += 1;
        self.sealed_as[block as usize] = self.last_seal;
        self.sealed += 1;
        let valid = view.pages_valid(block);
        if valid < self.threshold {
            self.enter(block, valid, view);
        }
    }

    #[inline(always)]
    fn invalidated(&mut self, block: u32, pages_valid: u32, view: UnitView) {
        if pages_valid < self.threshold {
            self.enter(block, pages_valid, view);
        }
    }

    fn removed(&mut self, block: u32) {
        self.sealed_as[block as usize] = 0;
        self.sealed -= 1;
    }

    fn pick(&mut self, view: UnitView) -> Option<u32> {
        loop {
            while let Some(Reverse((valid, seal, block))) = self.heap.peek().copied() {
                if self.sealed_as[block as usize] == seal && view.pages_valid(block) == valid {
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

    fn candidates(&self) -> u32 {
        self.sealed
    }
}

impl Greedy {
    #[cold]
    fn enter(&mut self, block: u32, valid: u32, view: UnitView) {
        let seal = self.sealed_as[block as usize];
        if seal == 0 {
            return; // an open block
        }
        self.heap.push(Reverse((valid, seal, block)));
        if self.heap.len() > (self.sealed_as.len() / 4).max(64) {
            self.set_threshold(view);
        }
    }

    /// Sets the threshold to the lowest with one block in 32 below it, and fills the heap accordingly.
    fn set_threshold(&mut self, view: UnitView) {
        let sealed = || (0u32..).zip(&self.sealed_as).filter(|(_, seal)| **seal != 0);
        let mut blocks_with = vec![0u32; self.pages_per_block as usize + 1];
        for (block, _) in sealed() {
            blocks_with[view.pages_valid(block) as usize] += 1;
        }
        let wanted = (self.sealed_as.len() as u32 / 32).max(1);
        let (mut below, mut threshold) = (0, 0);
        while below < wanted && threshold <= self.pages_per_block {
            below += blocks_with[threshold as usize];
            threshold += 1;
        }
        let entries = sealed()
            .map(|(block, seal)| Reverse((view.pages_valid(block), *seal, block)))
            .filter(|Reverse((valid, ..))| *valid < threshold)
            .collect::<Vec<_>>();
        self.threshold = threshold;
        self.heap = entries.into();
    }
}
