//! What replaces the pages of a block: the programs that must have ended before the block may be erased.

use super::NONE;
use flashwright_nand::BlockId;
use serde::{Deserialize, Serialize};

/// A program with pages that replace others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EraseDependency {
    /// The first page of its unit.
    pub unit_first: u32,
    /// The command that collects or programs them, and what tells it from others in the same place.
    pub id: u32,
    pub born: u32,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Node {
    replacement: EraseDependency,
    next: u32,
}

/// Lists by block. Their nodes are reused, so that in the long run nothing is allocated.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct EraseDependencies {
    first: Vec<u32>,
    nodes: Vec<Node>,
    /// Nodes that are free: the first; the others follow it.
    free: u32,
}

impl EraseDependencies {
    pub fn new(blocks: usize) -> Self {
        Self { first: vec![NONE; blocks], nodes: Vec::new(), free: NONE }
    }

    /// A program replaces a page of a block. The pages of a unit that come one after the other count once.
    #[inline(always)]
    pub fn add(&mut self, block: BlockId, replacement: EraseDependency) {
        let next = self.first[block.index()];
        if next != NONE && self.nodes[next as usize].replacement == replacement {
            return;
        }
        let node = Node { replacement, next };
        self.first[block.index()] = match self.free {
            NONE => {
                self.nodes.push(node);
                u32::try_from(self.nodes.len() - 1).expect("pages are counted in 32 bits")
            }
            at => {
                self.free = std::mem::replace(&mut self.nodes[at as usize], node).next;
                at
            }
        };
    }

    /// Takes a replacement of a page of a block.
    #[inline(always)]
    pub fn take(&mut self, block: BlockId) -> Option<EraseDependency> {
        let at = self.first[block.index()];
        if at == NONE {
            return None;
        }
        let node = &mut self.nodes[at as usize];
        self.first[block.index()] = node.next;
        node.next = std::mem::replace(&mut self.free, at);
        Some(node.replacement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_counts_once_and_nodes_are_used_again() {
        let mut erase_dependencies = EraseDependencies::new(2);
        let of = |id| EraseDependency { unit_first: 0, id, born: 1 };
        for round in 0..3 {
            [1, 1, 2].into_iter().for_each(|id| erase_dependencies.add(BlockId(0), of(id)));
            erase_dependencies.add(BlockId(1), of(3));
            let taken: Vec<_> = std::iter::from_fn(|| erase_dependencies.take(BlockId(0))).collect();
            assert_eq!(taken, [of(2), of(1)], "round {round}");
            assert_eq!((erase_dependencies.take(BlockId(1)), erase_dependencies.take(BlockId(1))), (Some(of(3)), None));
        }
        assert_eq!(erase_dependencies.nodes.len(), 3);
    }
}
