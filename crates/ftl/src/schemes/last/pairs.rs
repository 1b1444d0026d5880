//! How many pages each random log has of each logical block.

use flashwright_nand::prefetch;
use serde::{Deserialize, Serialize};

/// The number of pages that each random log has of each logical block: open addressing with linear probing, at most
/// half full.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PairCounts {
    /// Log and logical block in one number, and the number of pages; [`UNUSED`] if there is no entry.
    table: Vec<(u64, u32)>,
    shift: u32,
    pub len: usize,
}

const UNUSED: (u64, u32) = (u64::MAX, 0);

impl PairCounts {
    pub fn new(entries_max: u32) -> Self {
        let size = (u64::from(entries_max.max(1)) * 2).next_power_of_two();
        Self {
            table: vec![UNUSED; usize::try_from(size).expect("a log fits the memory")],
            shift: 64 - size.trailing_zeros(),
            len: 0,
        }
    }

    fn key(log: u32, lbn: u32) -> u64 {
        u64::from(log) << 32 | u64::from(lbn)
    }

    /// Where the search starts: the high bits of a product with 2^64 over the golden ratio, the halves folded first.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // fewer bits than an index has
    fn start(&self, key: u64) -> usize {
        let mixed =
            (key ^ key >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (key >> 32).wrapping_mul(0xd1b5_4a32_d192_ed03);
        (mixed >> self.shift) as usize
    }

    /// The slot of a key, or the unused slot where it would go.
    #[inline(always)]
    fn find(&self, key: u64) -> usize {
        let mut at = self.start(key);
        while self.table[at].0 != key && self.table[at] != UNUSED {
            at = (at + 1) & (self.table.len() - 1);
        }
        at
    }

    /// Warms the CPU cache for a count.
    #[inline(always)]
    pub fn expect(&self, log: u32, lbn: u32) {
        prefetch(&self.table, self.start(Self::key(log, lbn)));
    }

    pub fn get(&self, log: u32, lbn: u32) -> u32 {
        self.table[self.find(Self::key(log, lbn))].1
    }

    /// Counts a page; returns whether it is the first.
    #[inline]
    pub fn add(&mut self, log: u32, lbn: u32) -> bool {
        let at = self.find(Self::key(log, lbn));
        let (key, pages) = &mut self.table[at];
        *key = Self::key(log, lbn);
        *pages += 1;
        let first = *pages == 1;
        self.len += usize::from(first);
        first
    }

    /// Counts one page less; returns whether it was the last.
    #[inline]
    pub fn remove(&mut self, log: u32, lbn: u32) -> bool {
        let mut hole = self.find(Self::key(log, lbn));
        self.table[hole].1 -= 1;
        if self.table[hole].1 > 0 {
            return false;
        }
        let mask = self.table.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            if self.table[at] == UNUSED {
                break;
            }
            // An entry may move back as far as where its search starts.
            let start = self.start(self.table[at].0);
            if at.wrapping_sub(start) & mask >= at.wrapping_sub(hole) & mask {
                self.table[hole] = self.table[at];
                hole = at;
            }
        }
        self.table[hole] = UNUSED;
        self.len -= 1;
        true
    }
}
