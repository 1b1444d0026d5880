//! Erased blocks, and which of them is opened next.

use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Which erased block to open next: `wear.free-block`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FreeBlockOrder {
    /// The one erased first.
    Fifo,
    /// The one with the fewest erases, ties to the lowest id.
    #[default]
    LeastWorn,
    /// The one with the most erases, ties to the lowest id.
    MostWorn,
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
        /// Whether the most worn comes first.
        most_worn: bool,
    },
}

impl BlockPool {
    /// An empty pool.
    #[must_use]
    pub fn new(order: FreeBlockOrder) -> Self {
        match order {
            FreeBlockOrder::Fifo => Self::Fifo(VecDeque::new()),
            FreeBlockOrder::LeastWorn => Self::Ordered { heap: BinaryHeap::new(), most_worn: false },
            FreeBlockOrder::MostWorn => Self::Ordered { heap: BinaryHeap::new(), most_worn: true },
        }
    }

    /// Adds an erased block that has been erased `erases` times.
    pub fn push(&mut self, block: u32, erases: u32) {
        match self {
            Self::Fifo(queue) => queue.push_back(block),
            Self::Ordered { heap, most_worn } => {
                heap.push(Reverse((if *most_worn { u32::MAX - erases } else { erases }, block)));
            }
        }
    }

    /// Takes the next block.
    pub fn pop(&mut self) -> Option<u32> {
        match self {
            Self::Fifo(queue) => queue.pop_front(),
            Self::Ordered { heap, .. } => heap.pop().map(|Reverse((_, block))| block),
        }
    }

    /// Blocks in the pool.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Fifo(queue) => queue.len(),
            Self::Ordered { heap, .. } => heap.len(),
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
    }
}
