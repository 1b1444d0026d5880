//! Sealed blocks by valid count, and by seal order within a count.
//!
//! Greedy needs the block with the fewest valid pages and, among equals, the one sealed first. A linked list per
//! count finds the count in O(1) but not the order. Here every sealed block owns a slot, numbered in seal order, and
//! one bit in the row of its count. 64 slots make a group; the words of a group for all counts lie side by side, so
//! that a block which loses a page flips two bits of one cache line. A summary row per count tells which groups
//! have a bit.
//!
//! ```text
//!   slot      0 ... 63 | 64 ... 127 | ...        slots = 2 x blocks
//!   count 0   word     | word       |            summary[0]: one bit a group
//!   count 1   word     | word       |            summary[1]
//! ```
//!
//! Slots are handed out upwards; when they run out, the live ones (at most half) are renumbered in order, which
//! costs O(slots) once in at least `blocks` seals. Memory: a quarter of a bit for each page of a block, per block
//! and count: 0.25 bytes a page.

use serde::{Deserialize, Serialize};

const NONE: u32 = u32::MAX;

/// An index of sealed blocks by (valid pages, seal order).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SealOrderIndex {
    /// Counts 0..=pages_per_block.
    rows: usize,
    groups: usize,
    summary_words: usize,
    words: Vec<u64>,
    summary: Vec<u64>,
    per_count: Vec<u32>,
    slot_of: Vec<u32>,
    block_at: Vec<u32>,
    count_of: Vec<u16>,
    next_slot: u32,
    live: u32,
    least: usize,
}

impl SealOrderIndex {
    /// An empty index for a unit of `blocks` blocks of `pages_per_block` pages.
    #[must_use]
    pub fn new(blocks: u32, pages_per_block: u32) -> Self {
        let rows = pages_per_block as usize + 1;
        let groups = (2 * blocks as usize).div_ceil(64);
        let summary_words = groups.div_ceil(64);
        Self {
            rows,
            groups,
            summary_words,
            words: vec![0; groups * rows],
            summary: vec![0; rows * summary_words],
            per_count: vec![0; rows],
            slot_of: vec![NONE; blocks as usize],
            block_at: vec![NONE; groups * 64],
            count_of: vec![0; blocks as usize],
            next_slot: 0,
            live: 0,
            least: 0,
        }
    }

    /// Blocks in the index.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.live
    }

    /// Whether no block is in the index.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Adds a block as the one sealed last.
    #[allow(clippy::cast_possible_truncation)] // a block has at most 65,535 pages
    pub fn insert(&mut self, block: u32, pages_valid: u32) {
        debug_assert_eq!(self.slot_of[block as usize], NONE, "block {block} sealed twice");
        if self.next_slot as usize == self.block_at.len() {
            self.renumber();
        }
        let slot = self.next_slot;
        self.next_slot += 1;
        self.slot_of[block as usize] = slot;
        self.block_at[slot as usize] = block;
        self.count_of[block as usize] = pages_valid as u16;
        self.live += 1;
        self.set(slot as usize, pages_valid as usize);
    }

    /// A page of `block` became invalid; blocks not in the index are ignored.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)]
    pub fn decrease(&mut self, block: u32, pages_valid: u32) {
        let slot = self.slot_of[block as usize];
        if slot == NONE {
            return;
        }
        self.count_of[block as usize] = pages_valid as u16;
        self.clear(slot as usize, pages_valid as usize + 1);
        self.set(slot as usize, pages_valid as usize);
    }

    /// Takes a block out; blocks not in the index are ignored.
    pub fn remove(&mut self, block: u32) {
        let slot = std::mem::replace(&mut self.slot_of[block as usize], NONE);
        if slot == NONE {
            return;
        }
        self.clear(slot as usize, usize::from(self.count_of[block as usize]));
        self.block_at[slot as usize] = NONE;
        self.live -= 1;
    }

    /// The block with the fewest valid pages, the one sealed first among equals.
    #[must_use]
    pub fn first(&mut self) -> Option<u32> {
        if self.live == 0 {
            return None;
        }
        while self.per_count[self.least] == 0 {
            self.least += 1;
        }
        let row = &self.summary[self.least * self.summary_words..(self.least + 1) * self.summary_words];
        let (word, bits) = row.iter().enumerate().find(|(_, bits)| **bits != 0).expect("the count is not empty");
        let group = word * 64 + bits.trailing_zeros() as usize;
        let slot = group * 64 + self.words[group * self.rows + self.least].trailing_zeros() as usize;
        Some(self.block_at[slot])
    }

    #[inline(always)]
    fn set(&mut self, slot: usize, count: usize) {
        let group = slot / 64;
        let word = &mut self.words[group * self.rows + count];
        if *word == 0 {
            self.summary[count * self.summary_words + group / 64] |= 1 << (group % 64);
        }
        *word |= 1 << (slot % 64);
        self.per_count[count] += 1;
        self.least = self.least.min(count);
    }

    #[inline(always)]
    fn clear(&mut self, slot: usize, count: usize) {
        let group = slot / 64;
        let word = &mut self.words[group * self.rows + count];
        *word &= !(1 << (slot % 64));
        if *word == 0 {
            self.summary[count * self.summary_words + group / 64] &= !(1 << (group % 64));
        }
        self.per_count[count] -= 1;
    }

    /// Moves the live slots to the front, in order.
    fn renumber(&mut self) {
        let blocks: Vec<u32> = self.block_at.iter().copied().filter(|block| *block != NONE).collect();
        self.words.fill(0);
        self.summary.fill(0);
        self.per_count.fill(0);
        self.block_at.fill(NONE);
        for (slot, block) in blocks.iter().enumerate() {
            self.block_at[slot] = *block;
            self.slot_of[*block as usize] = u32::try_from(slot).expect("slots are 32 bits");
            self.set(slot, usize::from(self.count_of[*block as usize]));
        }
        self.next_slot = u32::try_from(blocks.len()).expect("slots are 32 bits");
        debug_assert!(self.groups * 64 > blocks.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same by scanning a list in seal order.
    #[derive(Default)]
    struct Naive(Vec<(u32, u32)>);

    impl Naive {
        fn first(&self) -> Option<u32> {
            // min_by_key keeps the first of equals, and the list is in seal order
            self.0.iter().min_by_key(|(_, valid)| *valid).map(|(block, _)| *block)
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_scan(steps in prop::collection::vec((0u8..8, 0u32..11, 0u32..5), 1..600)) {
            let (mut index, mut naive) = (SealOrderIndex::new(11, 4), Naive::default());
            for (step, block, valid) in steps {
                let at = naive.0.iter().position(|(b, _)| *b == block);
                match (step, at) {
                    (0..3, None) => {
                        index.insert(block, valid);
                        naive.0.push((block, valid));
                    }
                    (3..6, Some(at)) if naive.0[at].1 > 0 => {
                        naive.0[at].1 -= 1;
                        index.decrease(block, naive.0[at].1);
                    }
                    (6, Some(at)) => {
                        naive.0.remove(at);
                        index.remove(block);
                    }
                    (7, _) => {
                        if let Some(first) = naive.first() {
                            naive.0.retain(|(b, _)| *b != first);
                            prop_assert_eq!(index.first(), Some(first));
                            index.remove(first);
                        }
                    }
                    _ => {}
                }
                prop_assert_eq!(index.first(), naive.first());
                prop_assert_eq!(index.len() as usize, naive.0.len());
            }
        }
    }
}
