//! What schedulers keep requests in: first-in-first-out lists that give up a member anywhere, and sort trees.

use crate::pool::Id;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

const NONE: u32 = u32::MAX;

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
    /// How many.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.len
    }
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Lists {
    /// Appends a request that is in no list.
    pub fn push(&mut self, list: &mut List, id: Id) {
        if self.links.len() <= id.0 as usize {
            self.links.resize(id.0 as usize + 1, (NONE, NONE));
        }
        self.links[id.0 as usize] = (list.tail, NONE);
        match list.tail {
            NONE => list.head = id.0,
            tail => self.links[tail as usize].1 = id.0,
        }
        list.tail = id.0;
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

    /// Puts `by`, which is in no list, where `id` stands, which leaves.
    pub fn replace(&mut self, list: &mut List, id: Id, by: Id) {
        if self.links.len() <= by.0 as usize {
            self.links.resize(by.0 as usize + 1, (NONE, NONE));
        }
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

    /// The member after `id`.
    #[must_use]
    pub fn next(&self, id: Id) -> Option<Id> {
        let after = self.links[id.0 as usize].1;
        (after != NONE).then_some(Id(after))
    }
}

/// Requests in order of their first sectors, ties by number.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SortTree {
    tree: BTreeSet<(u64, u32)>,
}

impl SortTree {
    /// Adds a request that begins at `first_sector`.
    pub fn insert(&mut self, first_sector: u64, id: Id) {
        self.tree.insert((first_sector, id.0));
    }
    /// Takes out a request that was added with this first sector.
    pub fn remove(&mut self, first_sector: u64, id: Id) {
        self.tree.remove(&(first_sector, id.0));
    }
    /// The request after this one in the order, whether or not this one is still in the tree.
    #[must_use]
    pub fn after(&self, first_sector: u64, id: Id) -> Option<Id> {
        use std::ops::Bound::{Excluded, Unbounded};
        self.tree.range((Excluded((first_sector, id.0)), Unbounded)).next().map(|(_, id)| Id(*id))
    }
    /// The first request that begins at `sector` or later.
    #[must_use]
    pub fn at_or_after(&self, sector: u64) -> Option<Id> {
        self.tree.range((sector, 0)..).next().map(|(_, id)| Id(*id))
    }
    /// The last request that begins before `sector`.
    #[must_use]
    pub fn before(&self, sector: u64) -> Option<Id> {
        self.tree.range(..(sector, 0)).next_back().map(|(_, id)| Id(*id))
    }
    /// The request with the least first sector.
    #[must_use]
    pub fn first(&self) -> Option<Id> {
        self.tree.first().map(|(_, id)| Id(*id))
    }
    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tree.len()
    }
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
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
}
