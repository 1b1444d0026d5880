//! Counts the sealed blocks of a plane by valid pages, to find out how much an erase would free.

use serde::{Deserialize, Serialize};

/// Sealed blocks of a plane by valid pages, independent of the victim policy. 1 byte per block, O(1) per page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ValidCountHistogram {
    /// By block: whether it is sealed.
    sealed: Vec<bool>,
    /// By valid pages: number of sealed blocks.
    blocks_with: Vec<u32>,
    /// A lower bound: no sealed block has fewer valid pages.
    least: u32,
}

impl ValidCountHistogram {
    /// No sealed block has this many valid pages.
    pub fn new(blocks: u32, pages_per_block: u32) -> Self {
        Self {
            sealed: vec![false; blocks as usize],
            blocks_with: vec![0; pages_per_block as usize + 1],
            least: pages_per_block + 1,
        }
    }
    pub fn seal(&mut self, local: u32, valid: u32) {
        self.sealed[local as usize] = true;
        self.blocks_with[valid as usize] += 1;
        self.least = self.least.min(valid);
    }
    /// A page of a block became invalid; `left` are valid.
    #[inline]
    pub fn invalidated(&mut self, local: u32, left: u32) {
        if self.sealed[local as usize] {
            self.blocks_with[left as usize + 1] -= 1;
            self.blocks_with[left as usize] += 1;
            self.least = self.least.min(left);
        }
    }
    pub fn remove(&mut self, local: u32, valid: u32) {
        self.sealed[local as usize] = false;
        self.blocks_with[valid as usize] -= 1;
        while self.blocks_with.get(self.least as usize) == Some(&0) {
            self.least += 1;
        }
    }
    /// The fewest valid pages of a sealed block, if one is sealed.
    pub fn fewest(&self) -> Option<u32> {
        ((self.least as usize) < self.blocks_with.len()).then_some(self.least)
    }
}
