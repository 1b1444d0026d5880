//! The data structures of schedulers: first-in-first-out lists with removal anywhere, and sort trees.

use crate::pool::Id;
use serde::{Deserialize, Serialize};

const NONE: u32 = u32::MAX;

/// A value for each request, by number; grows to the largest number in use.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ById<T>(Vec<T>);

impl<T: Copy + Default> ById<T> {
    /// Sets the value of a request.
    #[inline]
    pub fn set(&mut self, id: Id, value: T) {
        if self.0.len() <= id.0 as usize {
            self.0.resize(id.0 as usize + 1, T::default());
        }
        self.0[id.0 as usize] = value;
    }

    /// The value of a request; the default if none was set.
    #[inline]
    pub fn get(&self, id: Id) -> T {
        self.0.get(id.0 as usize).copied().unwrap_or_default()
    }
}

/// Links between requests. A request is in at most one list of one `Lists` at a time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Lists {
    links: Vec<(u32, u32)>,
}

/// One list, oldest first; its links lie in a [`Lists`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    head: u32,
    tail: u32,
    len: u32,
}

impl Default for List {
    fn default() -> Self {
        Self { head: NONE, tail: NONE, len: 0 }
    }
}

impl List {
    /// The oldest.
    #[must_use]
    pub fn first(&self) -> Option<Id> {
        (self.head != NONE).then_some(Id(self.head))
    }
    /// The newest.
    #[must_use]
    pub fn last(&self) -> Option<Id> {
        (self.tail != NONE).then_some(Id(self.tail))
    }
    /// The number of members.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.len
    }
    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Lists {
    #[inline]
    fn make_room(&mut self, id: Id) {
        if self.links.len() <= id.0 as usize {
            self.links.resize(id.0 as usize + 1, (NONE, NONE));
        }
    }

    /// Appends a request that is in no list.
    pub fn push(&mut self, list: &mut List, id: Id) {
        self.make_room(id);
        self.links[id.0 as usize] = (list.tail, NONE);
        match list.tail {
            NONE => list.head = id.0,
            tail => self.links[tail as usize].1 = id.0,
        }
        list.tail = id.0;
        list.len += 1;
    }

    /// Puts a request that is in no list behind a member, or before all of them.
    pub fn insert_behind(&mut self, list: &mut List, member: Option<Id>, id: Id) {
        self.make_room(id);
        let after = member.map_or(list.head, |member| self.links[member.0 as usize].1);
        self.links[id.0 as usize] = (member.map_or(NONE, |member| member.0), after);
        match member {
            None => list.head = id.0,
            Some(member) => self.links[member.0 as usize].1 = id.0,
        }
        match after {
            NONE => list.tail = id.0,
            after => self.links[after as usize].0 = id.0,
        }
        list.len += 1;
    }

    /// Takes a member out, wherever it stands.
    pub fn remove(&mut self, list: &mut List, id: Id) {
        let (before, after) = self.links[id.0 as usize];
        match before {
            NONE => list.head = after,
            before => self.links[before as usize].1 = after,
        }
        match after {
            NONE => list.tail = before,
            after => self.links[after as usize].0 = before,
        }
        list.len -= 1;
    }

    /// Replaces `id` by `by`, which is in no list.
    pub fn replace(&mut self, list: &mut List, id: Id, by: Id) {
        self.make_room(by);
        let (before, after) = self.links[id.0 as usize];
        self.links[by.0 as usize] = (before, after);
        match before {
            NONE => list.head = by.0,
            before => self.links[before as usize].1 = by.0,
        }
        match after {
            NONE => list.tail = by.0,
            after => self.links[after as usize].0 = by.0,
        }
    }

    /// Takes out the oldest.
    pub fn pop(&mut self, list: &mut List) -> Option<Id> {
        let first = list.first()?;
        self.remove(list, first);
        Some(first)
    }

    /// The member before `id`.
    #[must_use]
    pub fn before(&self, id: Id) -> Option<Id> {
        let before = self.links[id.0 as usize].0;
        (before != NONE).then_some(Id(before))
    }

    /// The member after `id`.
    #[must_use]
    pub fn next(&self, id: Id) -> Option<Id> {
        let after = self.links[id.0 as usize].1;
        (after != NONE).then_some(Id(after))
    }
}

/// Most members of a block of a sort tree: a kibibyte, which moves in some nanoseconds.
const BLOCK: usize = 64;

/// Requests in order of their first sectors, ties by number.
///
/// ```text
///  least   10      55      90
///  blocks  10 12   55 61   90        sorted blocks in order, none empty; a full one splits in two
///          50      62 70
/// ```
///
/// Most queues fit one block. Empty blocks are kept for the next split, so that nothing is allocated once the tree has
/// reached its largest size.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SortTree {
    /// By block: a key that is at most the smallest of this block, and above all keys of the block before.
    least: Vec<u128>,
    blocks: Vec<Vec<u128>>,
    spare: Vec<Vec<u128>>,
    /// The position after the last removed request: block and index. Most schedulers continue from there, so it is
    /// checked before a search. It may be out of date.
    near: (usize, usize),
    len: usize,
}

/// The order as one number.
#[inline]
fn order(first_sector: u64, id: u32) -> u128 {
    (u128::from(first_sector) << 32) | u128::from(id)
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // the lower half is the number
fn id_of(order: u128) -> Id {
    Id(order as u32)
}

impl SortTree {
    /// The block that holds a key or would, if there is one.
    #[inline]
    fn block_of(&self, key: u128) -> usize {
        if self.least.len() <= 1 { 0 } else { self.least.partition_point(|least| *least <= key) - 1 }
    }

    /// The position of the first key that is not below this one: block and index; the index may be the block's end.
    #[inline]
    fn seek(&self, key: u128) -> (usize, usize) {
        let at = self.block_of(key);
        (at, self.blocks.get(at).map_or(0, |block| block.partition_point(|other| *other < key)))
    }

    /// As [`SortTree::seek`], but checks the position of the last removed request first.
    #[inline]
    fn seek_near(&self, key: u128) -> (usize, usize) {
        let (at, place) = self.near;
        if let Some(block) = self.blocks.get(at)
            && block.get(place).is_some_and(|found| *found >= key)
            && if place > 0 { block[place - 1] < key } else { self.least[at] <= key }
        {
            return self.near;
        }
        self.seek(key)
    }

    /// The request at a place, or the first of the next block.
    #[inline]
    fn at(&self, (at, place): (usize, usize)) -> Option<Id> {
        let found = self.blocks.get(at)?.get(place).or_else(|| self.blocks.get(at + 1)?.first());
        found.map(|key| id_of(*key))
    }

    /// The request before a place.
    #[inline]
    fn ahead_of(&self, (at, place): (usize, usize)) -> Option<Id> {
        let found = match place {
            0 => self.blocks.get(at.checked_sub(1)?)?.last()?,
            _ => &self.blocks[at][place - 1],
        };
        Some(id_of(*found))
    }

    /// Adds a request that begins at `first_sector`.
    pub fn insert(&mut self, first_sector: u64, id: Id) {
        let key = order(first_sector, id.0);
        self.len += 1;
        if self.blocks.is_empty() {
            self.least.push(0);
            self.blocks.push(self.spare.pop().unwrap_or_else(|| Vec::with_capacity(BLOCK)));
        }
        let (mut at, mut place) = self.seek(key);
        if self.blocks[at].len() == BLOCK {
            let mut upper = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(BLOCK));
            upper.extend(self.blocks[at].drain(BLOCK / 2..));
            self.least.insert(at + 1, upper[0]);
            self.blocks.insert(at + 1, upper);
            if place > BLOCK / 2 {
                (at, place) = (at + 1, place - BLOCK / 2);
            }
        }
        self.blocks[at].insert(place, key);
        self.near.1 += usize::from(at == self.near.0 && place < self.near.1);
    }

    /// Removes a request that was added with this first sector; returns the next one.
    pub fn remove(&mut self, first_sector: u64, id: Id) -> Option<Id> {
        let key = order(first_sector, id.0);
        let (at, place) = self.seek_near(key);
        debug_assert!(self.blocks[at][place] == key, "it is in the tree");
        self.blocks[at].remove(place);
        self.len -= 1;
        self.near = (at, place);
        let after = self.at(self.near);
        if self.blocks[at].is_empty() && self.blocks.len() > 1 {
            self.spare.push(self.blocks.remove(at));
            self.least.remove(at);
            self.least[0] = 0;
        }
        after
    }

    /// The request after this one in the order, whether or not this one is still in the tree.
    #[must_use]
    pub fn after(&self, first_sector: u64, id: Id) -> Option<Id> {
        self.at(self.seek(order(first_sector, id.0) + 1))
    }

    /// The first request that begins at `sector` or later.
    #[must_use]
    pub fn at_or_after(&self, sector: u64) -> Option<Id> {
        self.at(self.seek_near(order(sector, 0)))
    }

    /// The last request that begins before `sector`.
    #[must_use]
    pub fn before(&self, sector: u64) -> Option<Id> {
        self.ahead_of(self.seek_near(order(sector, 0)))
    }

    /// [`SortTree::before`] and [`SortTree::at_or_after`] in one search.
    #[must_use]
    pub fn around(&self, sector: u64) -> (Option<Id>, Option<Id>) {
        let place = self.seek_near(order(sector, 0));
        (self.ahead_of(place), self.at(place))
    }

    /// The request with the least first sector.
    #[must_use]
    pub fn first(&self) -> Option<Id> {
        self.at((0, 0))
    }

    /// The number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_gives_up_members_anywhere_and_keeps_the_order_of_the_others() {
        let (mut lists, mut list) = (Lists::default(), List::default());
        for id in [3, 0, 7, 5] {
            lists.push(&mut list, Id(id));
        }
        lists.remove(&mut list, Id(0));
        lists.remove(&mut list, Id(5));
        lists.replace(&mut list, Id(3), Id(9));
        lists.push(&mut list, Id(0));
        assert_eq!((list.len(), lists.next(Id(9))), (3, Some(Id(7))));
        let left: Vec<u32> = std::iter::from_fn(|| lists.pop(&mut list)).map(|id| id.0).collect();
        assert_eq!(left, [9, 7, 0]);
        assert!(list.is_empty());
        lists.insert_behind(&mut list, None, Id(4));
        lists.insert_behind(&mut list, None, Id(2));
        lists.insert_behind(&mut list, Some(Id(2)), Id(12));
        lists.insert_behind(&mut list, Some(Id(4)), Id(6));
        assert_eq!((list.last(), lists.before(Id(4)), lists.before(Id(2))), (Some(Id(6)), Some(Id(12)), None));
        let left: Vec<u32> = std::iter::from_fn(|| lists.pop(&mut list)).map(|id| id.0).collect();
        assert_eq!(left, [2, 12, 4, 6]);
    }

    #[test]
    fn a_sort_tree_finds_neighbours() {
        let mut tree = SortTree::default();
        for (sector, id) in [(50, 1), (10, 2), (50, 0), (90, 3)] {
            tree.insert(sector, Id(id));
        }
        assert_eq!(tree.after(50, Id(0)), Some(Id(1)));
        assert_eq!(tree.at_or_after(51), Some(Id(3)));
        assert_eq!(tree.before(50), Some(Id(2)));
        tree.remove(50, Id(1));
        assert_eq!(tree.after(50, Id(0)), Some(Id(3)));
        assert_eq!((tree.first(), tree.len()), (Some(Id(2)), 3));
    }

    #[test]
    fn a_sort_tree_of_many_blocks_finds_what_a_set_finds() {
        use flashwright_block::{Seed, below, chance};
        use std::collections::BTreeSet;
        let mut rng = Seed(1).stream("lists");
        let (mut tree, mut set, mut most_blocks) = (SortTree::default(), BTreeSet::<(u64, u32)>::new(), 0);
        let mut left_at = 0;
        let mut free: Vec<u32> = (0..3_000).rev().collect();
        for step in 0..60_000_u32 {
            // Waves: the tree grows to some hundreds of requests, then shrinks to none, sometimes from its lower end.
            let growing = step / 3_000 % 2 == 0;
            if growing == chance(&mut rng, 0.8) {
                let sector = below(&mut rng, 2_000);
                let id = free.pop().expect("a wave is no longer");
                set.insert((sector, id));
                tree.insert(sector, Id(id));
            } else if !set.is_empty() {
                let nth = if step % 3 == 0 { 0 } else { below(&mut rng, set.len() as u64) };
                let gone = *set.iter().nth(usize::try_from(nth).expect("few")).expect("a member");
                set.remove(&gone);
                free.push(gone.1);
                let after = set.range(gone..).next().map(|(_, id)| Id(*id));
                assert_eq!(tree.remove(gone.0, Id(gone.1)), after);
                assert_eq!(tree.after(gone.0, Id(gone.1)), after);
                left_at = gone.0;
            }
            let sector = if step % 2 == 0 { left_at + below(&mut rng, 3) } else { below(&mut rng, 2_100) };
            let at_or_after = set.range((sector, 0)..).next().map(|(_, id)| Id(*id));
            let before = set.range(..(sector, 0)).next_back().map(|(_, id)| Id(*id));
            assert_eq!((tree.before(sector), tree.at_or_after(sector)), (before, at_or_after));
            assert_eq!(tree.around(sector), (before, at_or_after));
            assert_eq!((tree.first(), tree.len()), (set.first().map(|(_, id)| Id(*id)), set.len()));
            most_blocks = most_blocks.max(tree.blocks.len());
        }
        assert!(most_blocks > 5, "{most_blocks} blocks");
    }
}
