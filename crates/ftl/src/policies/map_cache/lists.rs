//! Lists threaded through the slots of a cache: every slot is on one list, and moves between them in O(1).

use flashwright_nand::prefetch;
use serde::{Deserialize, Serialize};

/// A slot, or the anchor of a list: its neighbours, and the list.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Node {
    /// Towards the recent end.
    newer: u32,
    /// Towards the old end.
    older: u32,
    list: u32,
}

/// Lists of slots from the most recent to the oldest. 12 bytes a slot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SlotLists {
    /// The anchors of the lists, then the slots. An anchor's `older` is the most recent slot, its `newer` the oldest.
    nodes: Vec<Node>,
    len: Vec<u32>,
}

impl SlotLists {
    /// This many empty lists, with memory for this many slots.
    #[must_use]
    pub fn new(lists: u32, slots: u32) -> Self {
        let mut nodes = Vec::with_capacity(lists as usize + slots as usize);
        nodes.extend((0..lists).map(|list| Node { newer: list, older: list, list }));
        Self { nodes, len: vec![0; lists as usize] }
    }

    #[inline(always)]
    fn node_of(&self, slot: u32) -> usize {
        self.len.len() + slot as usize
    }

    /// Slots on a list.
    #[inline(always)]
    #[must_use]
    pub fn len(&self, list: u32) -> u32 {
        self.len[list as usize]
    }

    /// Slots on all lists.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.len.iter().sum()
    }

    /// The list that a slot is on.
    #[inline(always)]
    #[must_use]
    pub fn list_of(&self, slot: u32) -> u32 {
        self.nodes[self.node_of(slot)].list
    }

    /// The oldest slot of a list.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // lists are counted in 32 bits
    #[must_use]
    pub fn oldest(&self, list: u32) -> Option<u32> {
        (self.len(list) > 0).then(|| self.nodes[list as usize].newer - self.len.len() as u32)
    }

    /// The next younger slot of its list; prefetches its node.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // lists are counted in 32 bits
    #[must_use]
    pub fn after(&self, slot: u32) -> Option<u32> {
        let newer = self.nodes[self.node_of(slot)].newer;
        prefetch(&self.nodes, newer as usize);
        newer.checked_sub(self.len.len() as u32)
    }

    /// The most recent slot of a list.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // lists are counted in 32 bits
    #[must_use]
    pub fn newest(&self, list: u32) -> Option<u32> {
        self.nodes[list as usize].older.checked_sub(self.len.len() as u32)
    }

    /// The next older slot of its list.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // lists are counted in 32 bits
    #[must_use]
    pub fn before(&self, slot: u32) -> Option<u32> {
        self.nodes[self.node_of(slot)].older.checked_sub(self.len.len() as u32)
    }

    /// Warms the CPU cache for a move of a slot.
    #[inline(always)]
    pub fn expect(&self, slot: u32) {
        prefetch(&self.nodes, self.node_of(slot));
    }

    /// Puts a slot that is on no list at the recent end of one. Grows if there are more slots than planned.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // slots are counted in 32 bits
    pub fn push(&mut self, list: u32, slot: u32) {
        let node = self.node_of(slot);
        if node >= self.nodes.len() {
            self.nodes.resize(node + 1, Node { newer: 0, older: 0, list: 0 });
        }
        let recent = self.nodes[list as usize].older;
        self.nodes[node] = Node { newer: list, older: recent, list };
        self.nodes[recent as usize].newer = node as u32;
        self.nodes[list as usize].older = node as u32;
        self.len[list as usize] += 1;
    }

    /// Puts a slot that is on no list at the old end of one.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // slots are counted in 32 bits
    pub fn push_oldest(&mut self, list: u32, slot: u32) {
        self.push(list, slot);
        let node = self.node_of(slot) as u32;
        let oldest = self.nodes[list as usize].newer;
        if oldest != node {
            let second = self.nodes[node as usize].older;
            self.nodes[second as usize].newer = list;
            self.nodes[list as usize].older = second;
            self.nodes[node as usize] = Node { newer: oldest, older: list, list };
            self.nodes[oldest as usize].older = node;
            self.nodes[list as usize].newer = node;
        }
    }

    /// Takes a slot off its list.
    #[inline(always)]
    pub fn unlink(&mut self, slot: u32) {
        let Node { newer, older, list } = self.nodes[self.node_of(slot)];
        self.nodes[newer as usize].older = older;
        self.nodes[older as usize].newer = newer;
        self.len[list as usize] -= 1;
    }

    /// Moves a slot to the recent end of a list.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // slots are counted in 32 bits
    pub fn move_to(&mut self, list: u32, slot: u32) {
        self.unlink(slot);
        let node = self.node_of(slot);
        let recent = std::mem::replace(&mut self.nodes[list as usize].older, node as u32);
        self.nodes[recent as usize].newer = node as u32;
        self.nodes[node] = Node { newer: list, older: recent, list };
        self.len[list as usize] += 1;
    }

    /// The slots of a list from the oldest on.
    #[must_use]
    pub fn oldest_first(&self, list: u32) -> Vec<u32> {
        let lists = u32::try_from(self.len.len()).expect("few lists");
        let mut found = Vec::new();
        let mut at = self.nodes[list as usize].newer;
        while at != list {
            found.push(at - lists);
            at = self.nodes[at as usize].newer;
        }
        found
    }
}
