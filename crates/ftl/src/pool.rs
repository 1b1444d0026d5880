//! The pool of erased blocks, which chooses the block to open next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Which erased block to open next: `wear.free-block`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FreeBlockOrder {
    /// The one erased first.
    Fifo,
    /// The one with the fewest erases, ties to the lowest id.
    #[default]
    LeastWorn,
    /// The one with the most erases, ties to the lowest id.
    MostWorn,
    /// By stream: of r blocks from the most to the least worn, stream m of n gets number m r / n. Worn blocks go to low
    /// streams, less worn ones to high streams (container-marking report).
    Graded,
}

/// A pool of erased blocks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum BlockPool {
    /// In order of arrival.
    Fifo(VecDeque<u32>),
    /// By a key, smallest first: (erases or its complement, block).
    Ordered {
        /// The heap.
        heap: BinaryHeap<Reverse<(u32, u32)>>,
        /// Whether the most worn block comes first.
        most_worn: bool,
    },
    /// From the most to the least worn, ties to the lowest id: (complement of the rank, block). Kept sorted, because a
    /// pool in use is short.
    Graded(Vec<(u32, u32)>),
}

impl BlockPool {
    /// An empty pool.
    #[must_use]
    pub fn new(order: FreeBlockOrder) -> Self {
        match order {
            FreeBlockOrder::Fifo => Self::Fifo(VecDeque::new()),
            FreeBlockOrder::LeastWorn => Self::Ordered { heap: BinaryHeap::new(), most_worn: false },
            FreeBlockOrder::MostWorn => Self::Ordered { heap: BinaryHeap::new(), most_worn: true },
            FreeBlockOrder::Graded => Self::Graded(Vec::new()),
        }
    }

    /// Adds an erased block; `wear` ranks it ([`flashwright_nand::Nand::wear_rank`]).
    pub fn push(&mut self, block: u32, wear: u32) {
        match self {
            Self::Fifo(queue) => queue.push_back(block),
            Self::Ordered { heap, most_worn } => {
                heap.push(Reverse((if *most_worn { u32::MAX - wear } else { wear }, block)));
            }
            Self::Graded(sorted) => {
                let entry = (u32::MAX - wear, block);
                sorted.insert(sorted.partition_point(|other| *other < entry), entry);
            }
        }
    }

    /// Takes the next block for any use.
    pub fn pop(&mut self) -> Option<u32> {
        self.pop_for(0, 1)
    }

    /// Takes the next block for one of `streams` streams.
    pub fn pop_for(&mut self, stream: u8, streams: u8) -> Option<u32> {
        match self {
            Self::Fifo(queue) => queue.pop_front(),
            Self::Ordered { heap, .. } => heap.pop().map(|Reverse((_, block))| block),
            Self::Graded(sorted) => {
                (!sorted.is_empty()).then(|| sorted.remove(usize::from(stream) * sorted.len() / usize::from(streams)).1)
            }
        }
    }

    /// Takes a given block out; returns whether it was there. Takes time proportional to the pool.
    pub fn take(&mut self, block: u32) -> bool {
        let before = self.len();
        match self {
            Self::Fifo(queue) => queue.retain(|other| *other != block),
            Self::Ordered { heap, .. } => heap.retain(|Reverse((_, other))| *other != block),
            Self::Graded(sorted) => sorted.retain(|(_, other)| *other != block),
        }
        self.len() < before
    }

    /// Blocks in the pool.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Fifo(queue) => queue.len(),
            Self::Ordered { heap, .. } => heap.len(),
            Self::Graded(sorted) => sorted.len(),
        }
    }

    /// Whether the pool is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The blocks, in no particular order.
    #[must_use]
    pub fn blocks(&self) -> Vec<u32> {
        match self {
            Self::Fifo(queue) => queue.iter().copied().collect(),
            Self::Ordered { heap, .. } => heap.iter().map(|Reverse((_, block))| *block).collect(),
            Self::Graded(sorted) => sorted.iter().map(|(_, block)| *block).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks 5, 3, 4 arrive with 2, 1, 1 erases.
    fn drained(order: FreeBlockOrder) -> Vec<u32> {
        let mut pool = BlockPool::new(order);
        for (block, erases) in [(5, 2), (3, 1), (4, 1)] {
            pool.push(block, erases);
        }
        std::iter::from_fn(|| pool.pop()).collect()
    }

    #[test]
    fn each_order_gives_its_block() {
        assert_eq!(drained(FreeBlockOrder::Fifo), [5, 3, 4]);
        assert_eq!(drained(FreeBlockOrder::LeastWorn), [3, 4, 5]);
        assert_eq!(drained(FreeBlockOrder::MostWorn), [5, 3, 4]);
        assert_eq!(drained(FreeBlockOrder::Graded), [5, 3, 4]);
    }

    #[test]
    fn a_certain_block_is_taken_and_the_others_keep_their_order() {
        use FreeBlockOrder::{Fifo, Graded, LeastWorn, MostWorn};
        for (order, left) in [(Fifo, [5, 4]), (LeastWorn, [4, 5]), (MostWorn, [5, 4]), (Graded, [5, 4])] {
            let mut pool = BlockPool::new(order);
            for (block, erases) in [(5, 2), (3, 1), (4, 1)] {
                pool.push(block, erases);
            }
            assert!(pool.take(3) && !pool.take(3));
            assert_eq!([pool.pop(), pool.pop(), pool.pop()], [Some(left[0]), Some(left[1]), None]);
        }
    }

    /// The example for our interpretation of the container-marking report: 40 and 5 blocks, 16 streams.
    #[test]
    fn streams_get_blocks_of_their_grade() {
        let taken = |blocks: u32, stream: u8| {
            let mut pool = BlockPool::new(FreeBlockOrder::Graded);
            (0..blocks).for_each(|block| pool.push(block, 1000 - block));
            pool.pop_for(stream, 16).unwrap()
        };
        assert_eq!([0, 7, 15].map(|stream| taken(40, stream)), [0, 17, 37]);
        assert_eq!([0, 1, 3, 7, 8, 14, 15].map(|stream| taken(5, stream)), [0, 0, 0, 2, 2, 4, 4]);
    }
}
