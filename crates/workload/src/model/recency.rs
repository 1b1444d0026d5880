//! A list of items in order of last use, with the rank of an item and the item of a rank in O(log n).
//!
//! Each use takes the next time slot, and a bit says whether the slot still holds its item. A Fenwick tree counts the bits
//! of each 64 slots, so the rank of an item is the number of occupied slots behind its own; the tree is small enough for
//! the caches of the processor. When the slots run out, the items are moved to the front.

/// Marks a slot without an item, and an item without a slot.
const NONE: u32 = u32::MAX;
/// Bits of a slot's number; the list is above them.
const SLOT_BITS: u32 = 28;

/// A few lists; each item is in one of them at most.
pub(super) struct Recency {
    /// Slot of each item, and its list.
    slots: Vec<u32>,
    lists: Vec<List>,
}

struct List {
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
    /// So many empty lists, 15 at most.
    pub(super) fn new(lists: usize) -> Self {
        Recency { slots: Vec::new(), lists: (0..lists).map(|_| List::new()).collect() }
    }

    /// Items in a list.
    pub(super) fn len(&self, list: usize) -> usize {
        self.lists[list].len
    }

    /// Whether `item` is in a list.
    pub(super) fn has(&self, item: u32) -> bool {
        self.slots.get(item as usize).is_some_and(|slot| *slot != NONE)
    }

    /// The list that `item` is in, and how many items of it were used after it; none if it is in none.
    pub(super) fn find(&self, item: u32) -> Option<(usize, usize)> {
        let slot = *self.slots.get(item as usize)?;
        (slot != NONE).then(|| {
            let (list, slot) = split(slot);
            (list, self.lists[list].len - self.lists[list].before(slot + 1))
        })
    }

    /// The item of a list that `rank` others were used after. Panics unless `rank` is below the length.
    pub(super) fn at(&self, list: usize, rank: usize) -> u32 {
        self.lists[list].at(rank)
    }

    /// Makes `item` the last one used of this list, and of no other.
    pub(super) fn touch(&mut self, list: usize, item: u32) {
        let index = item as usize;
        if index >= self.slots.len() {
            self.slots.resize(index + 1, NONE);
        }
        if self.slots[index] != NONE {
            let (before, slot) = split(self.slots[index]);
            if before == list && slot + 1 == self.lists[list].next {
                return;
            }
            self.lists[before].take(slot);
        }
        let mine = &mut self.lists[list];
        if mine.next == mine.items.len() {
            mine.compact(|item, slot| self.slots[item as usize] = join(list, slot));
        }
        self.slots[index] = join(list, mine.next);
        mine.put(item);
    }
}

fn split(slot: u32) -> (usize, usize) {
    ((slot >> SLOT_BITS) as usize, (slot & ((1 << SLOT_BITS) - 1)) as usize)
}

fn join(list: usize, slot: usize) -> u32 {
    (list as u32) << SLOT_BITS | slot as u32
}

impl List {
    fn new() -> Self {
        let slots = 64;
        List { items: vec![NONE; slots], words: vec![0; 1], tree: vec![0; 2], next: 0, len: 0 }
    }

    fn take(&mut self, slot: usize) {
        self.len -= 1;
        self.items[slot] = NONE;
        self.add(slot, u32::MAX);
    }

    fn put(&mut self, item: u32) {
        self.len += 1;
        self.items[self.next] = item;
        self.add(self.next, 1);
        self.next += 1;
    }

    /// The item that `rank` others were used after. Panics unless `rank` is below the length.
    fn at(&self, rank: usize) -> u32 {
        assert!(rank < self.len, "a rank within the list");
        if rank == 0 && self.items[self.next - 1] != NONE {
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

    /// Moves the items to the front, into four times as many slots, and tells their new ones.
    fn compact(&mut self, mut moved: impl FnMut(u32, usize)) {
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
            moved(item, slot);
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

    /// Against vectors that are searched and shifted.
    #[test]
    fn ranks_are_those_of_plain_lists() {
        let (mut lists, mut plain, mut rng) = (Recency::new(3), vec![Vec::<u32>::new(); 3], Seed(4).stream("test"));
        for step in 0..4000u64 {
            let (item, list) = (below(&mut rng, 3 + step / 20) as u32, below(&mut rng, 3) as usize);
            let rank = |list: &Vec<u32>| list.iter().position(|other| *other == item);
            assert_eq!(lists.find(item), (0..3).find_map(|list| rank(&plain[list]).map(|rank| (list, rank))));
            assert_eq!(lists.has(item), plain.iter().any(|list| list.contains(&item)));
            plain.iter_mut().for_each(|list| list.retain(|other| *other != item));
            plain[list].insert(0, item);
            lists.touch(list, item);
            assert_eq!(
                (0..3).map(|list| lists.len(list)).collect::<Vec<_>>(),
                plain.iter().map(Vec::len).collect::<Vec<_>>()
            );
            let rank = below(&mut rng, plain[list].len() as u64) as usize;
            assert_eq!(lists.at(list, rank), plain[list][rank]);
        }
    }
}
