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
    #[inline]
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
    #[inline]
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

/// Members of a block of a sort tree at most: as many as a word has places of four bits.
const BLOCK: usize = 16;
/// The order of the members of a block that was filled in order.
const IN_ORDER: u64 = 0xFEDC_BA98_7654_3210;
/// What lies in places without a member: above each sector.
const EMPTY: u64 = u64::MAX >> 1;

/// Some requests that are neighbours in the order. They lie in any order; a word has their places sorted, so that one
/// joins or leaves without a move of the others, and a search counts those before, without a branch.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Block {
    sectors: [u64; BLOCK],
    ids: [u32; BLOCK],
    /// The places by rank, four bits each, the first in the lowest.
    places: u64,
    /// Places without a member, a bit each.
    free: u32,
    len: u32,
}

impl Default for Block {
    fn default() -> Self {
        Self { sectors: [EMPTY; BLOCK], ids: [0; BLOCK], places: 0, free: (1 << BLOCK) - 1, len: 0 }
    }
}

impl Block {
    /// The place of the member with this rank.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // four bits
    fn place(&self, rank: usize) -> usize {
        (self.places >> (4 * rank)) as usize % BLOCK
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.len as usize
    }

    #[inline(always)]
    fn id(&self, rank: usize) -> Option<Id> {
        (rank < self.len()).then(|| Id(self.ids[self.place(rank)]))
    }

    /// The number of members before this sector and number.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // at most the length of a block
    fn rank(&self, sector: u64, id: u32) -> usize {
        // Sectors have no more than 63 bits, so the highest bit of a difference says which is less.
        let mut rank = self.sectors.iter().map(|other| other.wrapping_sub(sector) >> 63).sum::<u64>() as usize;
        // The place behind the last member holds another sector or none, so the first comparison is nearly always enough.
        while self.sectors[self.place(rank % BLOCK)] == sector && rank < self.len() && self.ids[self.place(rank)] < id {
            rank += 1;
        }
        rank
    }

    #[inline(always)]
    fn insert(&mut self, rank: usize, sector: u64, id: u32) {
        let place = self.free.trailing_zeros() as usize % BLOCK;
        self.free &= self.free.wrapping_sub(1);
        self.sectors[place] = sector;
        self.ids[place] = id;
        let before = (1 << (4 * rank)) - 1;
        self.places = (self.places & before) | ((place as u64) << (4 * rank)) | ((self.places & !before) << 4);
        self.len += 1;
    }

    #[inline(always)]
    fn remove(&mut self, rank: usize) {
        let place = self.place(rank);
        self.sectors[place] = EMPTY;
        self.free |= 1 << place;
        let before = (1 << (4 * rank)) - 1;
        self.places = (self.places & before) | ((self.places >> 4) & !before);
        self.len -= 1;
    }

    /// Takes out the upper half of a full block.
    fn split(&mut self) -> Self {
        let mut upper = Self::default();
        for rank in BLOCK / 2..BLOCK {
            let place = self.place(rank);
            upper.sectors[rank - BLOCK / 2] = std::mem::replace(&mut self.sectors[place], EMPTY);
            upper.ids[rank - BLOCK / 2] = self.ids[place];
            self.free |= 1 << place;
        }
        upper.places = IN_ORDER;
        upper.free = (1 << BLOCK) - (1 << (BLOCK / 2));
        (self.len, upper.len) = (BLOCK as u32 / 2, BLOCK as u32 / 2);
        upper
    }
}

/// Requests in order of their first sectors, ties by number. Sectors have at most 63 bits.
///
/// ```text
///  least   10      55      90
///  blocks  10 12   61 55   90        blocks in order, none empty; a full one splits in two
///          50      70 62
/// ```
///
/// Empty blocks are kept for the next split, so that nothing is allocated once the tree has reached its largest size.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SortTree {
    /// By position: a sector and a number that are at most the smallest of this block, and above all of the block
    /// before.
    least: Vec<u64>,
    least_ids: Vec<u32>,
    /// The blocks by position, and those without members.
    order: Vec<u32>,
    spare: Vec<u32>,
    blocks: Vec<Block>,
    /// The position after the last removed request: block and rank. Most schedulers continue from there, so it is
    /// checked before a search. It may be out of date.
    near: (usize, usize),
    len: usize,
}

impl SortTree {
    /// The block at a position.
    #[inline(always)]
    fn block(&self, at: usize) -> Option<&Block> {
        self.blocks.get(*self.order.get(at)? as usize)
    }

    /// The position of the block that holds a request or would, if there is one.
    #[inline]
    fn block_of(&self, sector: u64, id: u32) -> usize {
        let mut at = self.least.partition_point(|least| *least <= sector).saturating_sub(1);
        while self.least.get(at) == Some(&sector) && self.least_ids[at] > id {
            at -= 1; // requests of one sector in several blocks
        }
        at
    }

    /// The position of the first request that is not before this one: block and rank; the rank may be the block's end.
    #[inline]
    fn seek(&self, sector: u64, id: u32) -> (usize, usize) {
        let at = self.block_of(sector, id);
        (at, self.block(at).map_or(0, |block| block.rank(sector, id)))
    }

    /// As [`SortTree::seek`] for any number, but checks the position of the last removed request first.
    #[inline]
    fn seek_near(&self, sector: u64) -> (usize, usize) {
        let (at, rank) = self.near;
        if let Some(block) = self.block(at)
            && rank < block.len()
            && block.sectors[block.place(rank)] >= sector
            && if rank > 0 { block.sectors[block.place(rank - 1)] < sector } else { self.least[at] < sector }
        {
            return self.near;
        }
        self.seek(sector, 0)
    }

    /// The request at a position, or the first of the next block.
    #[inline]
    fn at(&self, (at, rank): (usize, usize)) -> Option<Id> {
        self.block(at)?.id(rank).or_else(|| self.block(at + 1)?.id(0))
    }

    /// The request before a position.
    #[inline]
    fn ahead_of(&self, (at, rank): (usize, usize)) -> Option<Id> {
        match rank {
            0 => self.block(at.checked_sub(1)?).and_then(|block| block.id(block.len() - 1)),
            _ => self.block(at)?.id(rank - 1),
        }
    }

    /// Puts a block without members at a position.
    fn place(&mut self, at: usize, least: (u64, u32), block: Block) {
        let new = match self.spare.pop() {
            Some(spare) => {
                self.blocks[spare as usize] = block;
                spare
            }
            None => {
                self.blocks.push(block);
                u32::try_from(self.blocks.len() - 1).expect("fewer than 2^32 requests wait")
            }
        };
        self.order.insert(at, new);
        self.least.insert(at, least.0);
        self.least_ids.insert(at, least.1);
    }

    /// Makes the first block or splits a full one; returns the position of the block for a request.
    #[inline(never)]
    fn make_room(&mut self, at: usize, sector: u64, id: u32) -> usize {
        let Some(block) = self.order.get(at).map(|block| &mut self.blocks[*block as usize]) else {
            self.place(0, (0, 0), Block::default());
            return 0;
        };
        let upper = block.split();
        let least = (upper.sectors[0], upper.ids[0]);
        self.place(at + 1, least, upper);
        at + usize::from(least <= (sector, id))
    }

    /// Adds a request that begins at `first_sector`.
    #[inline]
    pub fn insert(&mut self, first_sector: u64, id: Id) {
        debug_assert!(first_sector < EMPTY, "a sector has at most 63 bits");
        let mut at = self.block_of(first_sector, id.0);
        if let Some(block) = self.order.get(at).map(|block| &mut self.blocks[*block as usize])
            && block.len() < BLOCK
        {
            let rank = block.rank(first_sector, id.0);
            block.insert(rank, first_sector, id.0);
            self.near.1 += usize::from((at == self.near.0) & (rank < self.near.1));
        } else {
            at = self.make_room(at, first_sector, id.0);
            let block = &mut self.blocks[self.order[at] as usize];
            let rank = block.rank(first_sector, id.0);
            block.insert(rank, first_sector, id.0);
        }
        self.len += 1;
    }

    /// Removes a request that was added with this first sector; returns the next one.
    #[inline]
    pub fn remove(&mut self, first_sector: u64, id: Id) -> Option<Id> {
        let mut position = self.near;
        if self.block(position.0).and_then(|block| block.id(position.1)) != Some(id) {
            position = self.seek(first_sector, id.0);
            self.near = position;
        }
        let (at, rank) = position;
        let block = &mut self.blocks[self.order[at] as usize];
        debug_assert!(block.id(rank) == Some(id) && block.sectors[block.place(rank)] == first_sector, "it is a member");
        block.remove(rank);
        self.len -= 1;
        if rank < block.len() {
            return block.id(rank);
        }
        let is_empty = block.len == 0;
        let after = self.block(at + 1).and_then(|block| block.id(0));
        if is_empty && self.order.len() > 1 {
            self.close(at);
        }
        after
    }

    /// Takes out a block without members.
    #[inline(never)]
    fn close(&mut self, at: usize) {
        self.spare.push(self.order.remove(at));
        self.least.remove(at);
        self.least_ids.remove(at);
        (self.least[0], self.least_ids[0]) = (0, 0);
    }

    /// The request after this one in the order, whether or not this one is still in the tree.
    #[must_use]
    pub fn after(&self, first_sector: u64, id: Id) -> Option<Id> {
        self.at(self.seek(first_sector, id.0 + 1))
    }

    /// The first request that begins at `sector` or later.
    #[inline]
    #[must_use]
    pub fn at_or_after(&self, sector: u64) -> Option<Id> {
        self.at(self.seek_near(sector))
    }

    /// The last request that begins before `sector`.
    #[must_use]
    pub fn before(&self, sector: u64) -> Option<Id> {
        self.ahead_of(self.seek_near(sector))
    }

    /// [`SortTree::before`] and [`SortTree::at_or_after`] in one search.
    #[inline]
    #[must_use]
    pub fn around(&self, sector: u64) -> (Option<Id>, Option<Id>) {
        let place = self.seek_near(sector);
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
    #[inline]
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
        // Few sectors have many requests each, which fill several blocks.
        for sectors in [2_000, 3] {
            finds_what_a_set_finds(sectors);
        }
    }

    fn finds_what_a_set_finds(sectors: u64) {
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
                let sector = below(&mut rng, sectors);
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
            let sector =
                if step % 2 == 0 { left_at + below(&mut rng, 3) } else { below(&mut rng, sectors + sectors / 20 + 1) };
            let at_or_after = set.range((sector, 0)..).next().map(|(_, id)| Id(*id));
            let before = set.range(..(sector, 0)).next_back().map(|(_, id)| Id(*id));
            assert_eq!((tree.before(sector), tree.at_or_after(sector)), (before, at_or_after));
            assert_eq!(tree.around(sector), (before, at_or_after));
            assert_eq!((tree.first(), tree.len()), (set.first().map(|(_, id)| Id(*id)), set.len()));
            most_blocks = most_blocks.max(tree.order.len());
        }
        assert!(most_blocks > 5, "{most_blocks} blocks");
    }
}
