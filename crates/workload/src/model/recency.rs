//! A list of items in order of last use, with the rank of an item and the item of a rank in O(log n).
//!
//! Each use takes the next time slot, and a bit says whether the slot still holds its item. A Fenwick tree counts the bits
//! of each 64 slots, so the rank of an item is the number of occupied slots behind its own; the tree is small enough for
//! the caches of the processor. When the slots run out, the items are moved to the front.

/// Marks a slot without an item, and an item without a slot.
const NONE: u32 = u32::MAX;

pub(super) struct Recency {
    /// Slot of each item.
    slots: Vec<u32>,
    /// Item of each slot.
    items: Vec<u32>,
    /// One bit for each occupied slot.
    words: Vec<u64>,
    /// Fenwick tree over the words' counts, one-based.
    tree: Vec<u32>,
    /// The next free slot.
    next: usize,
    len: usize,
}

impl Recency {
    pub(super) fn new() -> Self {
        let slots = 64;
        Recency { slots: Vec::new(), items: vec![NONE; slots], words: vec![0; 1], tree: vec![0; 2], next: 0, len: 0 }
    }

    /// Items in the list.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// How many items were used after `item`; none if it is not in the list.
    pub(super) fn rank(&self, item: u32) -> Option<usize> {
        let slot = *self.slots.get(item as usize)?;
        (slot != NONE).then(|| self.len - self.before(slot as usize + 1))
    }

    /// The item that `rank` others were used after. Panics unless `rank` is below the length.
    pub(super) fn at(&self, rank: usize) -> u32 {
        assert!(rank < self.len, "a rank within the list");
        if rank == 0 {
            return self.items[self.next - 1];
        }
        // The slot with `wanted` occupied ones before it: first its word, then its bit.
        let mut wanted = (self.len - 1 - rank) as u32;
        let (mut at, mut step) = (0, self.words.len());
        while step > 0 {
            if at + step < self.tree.len() && self.tree[at + step] <= wanted {
                at += step;
                wanted -= self.tree[at];
            }
            step /= 2;
        }
        let mut word = self.words[at];
        (0..wanted).for_each(|_| word &= word - 1);
        self.items[at * 64 + word.trailing_zeros() as usize]
    }

    /// Makes `item` the last one used.
    pub(super) fn touch(&mut self, item: u32) {
        let index = item as usize;
        if index >= self.slots.len() {
            self.slots.resize(index + 1, NONE);
        }
        let slot = self.slots[index];
        if slot != NONE && slot as usize + 1 == self.next {
            return;
        }
        if self.next == self.items.len() {
            self.compact();
        }
        let slot = self.slots[index];
        if slot == NONE {
            self.len += 1;
        } else {
            self.items[slot as usize] = NONE;
            self.add(slot as usize, u32::MAX);
        }
        self.slots[index] = self.next as u32;
        self.items[self.next] = item;
        self.add(self.next, 1);
        self.next += 1;
    }

    /// Moves the items to the front, into twice as many slots as there will be items.
    fn compact(&mut self) {
        let kept: Vec<u32> = self.items.iter().copied().filter(|item| *item != NONE).collect();
        let slots = (4 * (kept.len() + 1)).next_power_of_two().max(64);
        self.items.clear();
        self.items.resize(slots, NONE);
        self.words.clear();
        self.words.resize(slots / 64, 0);
        self.tree.clear();
        self.tree.resize(slots / 64 + 1, 0);
        self.next = kept.len();
        for (slot, item) in kept.into_iter().enumerate() {
            self.slots[item as usize] = slot as u32;
            self.items[slot] = item;
            self.words[slot / 64] |= 1 << (slot % 64);
            self.tree[slot / 64 + 1] += 1;
        }
        for at in 1..self.tree.len() {
            let parent = at + (at & at.wrapping_neg());
            if parent < self.tree.len() {
                self.tree[parent] += self.tree[at];
            }
        }
    }

    /// Occupied slots before `slot`.
    fn before(&self, slot: usize) -> usize {
        let bits = self.words.get(slot / 64).map_or(0, |word| word & ((1 << (slot % 64)) - 1));
        let (mut at, mut sum) = (slot / 64, bits.count_ones() as usize);
        while at > 0 {
            sum += self.tree[at] as usize;
            at &= at - 1;
        }
        sum
    }

    /// Changes the bit of a slot and adds `count` (all ones takes one away).
    fn add(&mut self, slot: usize, count: u32) {
        self.words[slot / 64] ^= 1 << (slot % 64);
        let mut at = slot / 64 + 1;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add(count);
            at += at & at.wrapping_neg();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::{Seed, below};

    /// Against a vector that is searched and shifted.
    #[test]
    fn ranks_are_those_of_a_plain_list() {
        let (mut list, mut plain, mut rng) = (Recency::new(), Vec::<u32>::new(), Seed(4).stream("test"));
        for step in 0..4000u64 {
            let item = below(&mut rng, 3 + step / 20) as u32;
            assert_eq!(list.rank(item), plain.iter().position(|other| *other == item));
            plain.retain(|other| *other != item);
            plain.insert(0, item);
            list.touch(item);
            assert_eq!(list.len(), plain.len());
            let rank = below(&mut rng, plain.len() as u64) as usize;
            assert_eq!(list.at(rank), plain[rank]);
        }
    }
}
