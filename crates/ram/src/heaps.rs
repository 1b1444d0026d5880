//! Heaps that slots move between; each slot is on one heap and is found by its number.

use flashwright_ftl::Violation;
use serde::{Deserialize, Serialize};

/// Children of a node: four share a cache line or two, and the heap is half as deep as with two.
const ARITY: usize = 4;

/// Heaps with the largest rank first. Insertion, removal and a change of rank cost O(log n); inserting a low rank costs
/// O(1).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Heaps<R> {
    heaps: Vec<Vec<(R, u32)>>,
    /// Where a slot lies in its heap.
    place: Vec<u32>,
}

#[allow(clippy::cast_possible_truncation)] // slots are counted in 32 bits
impl<R: Copy + Ord + std::fmt::Debug> Heaps<R> {
    /// This many empty heaps.
    pub fn new(heaps: u32) -> Self {
        Self { heaps: (0..heaps).map(|_| Vec::new()).collect(), place: Vec::new() }
    }
    /// The largest rank of a heap, with its slot.
    #[inline(always)]
    pub fn top(&self, heap: u32) -> Option<(R, u32)> {
        self.heaps[heap as usize].first().copied()
    }
    /// Puts in a slot that is on no heap.
    #[inline(always)]
    pub fn push(&mut self, heap: u32, slot: u32, rank: R) {
        if slot as usize >= self.place.len() {
            self.place.resize(slot as usize + 1, 0);
        }
        let nodes = &mut self.heaps[heap as usize];
        nodes.push((rank, slot));
        let at = nodes.len() - 1;
        self.rise(heap, at, (rank, slot));
    }
    /// Takes a slot off its heap.
    #[inline(always)]
    pub fn remove(&mut self, heap: u32, slot: u32) {
        let at = self.place[slot as usize] as usize;
        let nodes = &mut self.heaps[heap as usize];
        debug_assert_eq!(nodes[at].1, slot, "slot {slot} is on another heap");
        let removed = nodes[at].0;
        let Some(moved) = nodes.pop().filter(|_| at < nodes.len()) else { return };
        if moved.0 > removed { self.rise(heap, at, moved) } else { self.sink(heap, at, moved) }
    }
    /// Gives a slot of a heap another rank.
    #[inline(always)]
    pub fn change(&mut self, heap: u32, slot: u32, rank: R) {
        let at = self.place[slot as usize] as usize;
        let before = self.heaps[heap as usize][at].0;
        if rank > before { self.rise(heap, at, (rank, slot)) } else { self.sink(heap, at, (rank, slot)) }
    }

    /// Finds the place of a node between `at` and the top.
    #[inline(always)]
    fn rise(&mut self, heap: u32, mut at: usize, node: (R, u32)) {
        let nodes = &mut self.heaps[heap as usize];
        while at > 0 && nodes[(at - 1) / ARITY].0 < node.0 {
            nodes[at] = nodes[(at - 1) / ARITY];
            self.place[nodes[at].1 as usize] = at as u32;
            at = (at - 1) / ARITY;
        }
        nodes[at] = node;
        self.place[node.1 as usize] = at as u32;
    }
    /// Finds the place of a node from `at` down.
    #[inline(always)]
    fn sink(&mut self, heap: u32, mut at: usize, node: (R, u32)) {
        let nodes = &mut self.heaps[heap as usize];
        loop {
            let first = at * ARITY + 1;
            if first >= nodes.len() {
                break;
            }
            let mut greatest = first;
            for child in first + 1..(first + ARITY).min(nodes.len()) {
                if nodes[child].0 > nodes[greatest].0 {
                    greatest = child;
                }
            }
            if nodes[greatest].0 <= node.0 {
                break;
            }
            nodes[at] = nodes[greatest];
            self.place[nodes[at].1 as usize] = at as u32;
            at = greatest;
        }
        nodes[at] = node;
        self.place[node.1 as usize] = at as u32;
    }

    /// Checks order, positions, and that the ranks equal those given by slot; appends contradictions.
    pub fn audit(&self, rank: impl Fn(u32) -> R, violations: &mut Vec<Violation>) {
        for (heap, nodes) in self.heaps.iter().enumerate() {
            for (at, (found, slot)) in nodes.iter().enumerate() {
                let ordered = at == 0 || nodes[(at - 1) / ARITY].0 >= *found;
                if !ordered || self.place[*slot as usize] as usize != at || rank(*slot) != *found {
                    violations.push(Violation(format!(
                        "heap {heap} has slot {slot} at {at} with {found:?}, its rank is {:?}, its place {}",
                        rank(*slot),
                        self.place[*slot as usize]
                    )));
                }
            }
        }
    }
    /// Slots on a heap.
    pub fn len(&self, heap: u32) -> u32 {
        self.heaps[heap as usize].len() as u32
    }
}
