//! A table of single pages in RAM.

use crate::index::Index;
use crate::managers::Leaves;
use flashwright_nand::Lpn;
use serde::{Deserialize, Serialize};

/// Pages by number. A page keeps its slot while it is held; slots are reused, so policies can thread lists through them
/// ([`flashwright_ftl::SlotLists`]). It takes 13 bytes per held page and 4 bytes per logical page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pages {
    slots: Index,
    lpn: Vec<u32>,
    dirty: Vec<bool>,
    free: Vec<u32>,
}

impl Pages {
    /// An empty table with memory for `pages` of the drive's logical pages.
    #[must_use]
    pub fn new(pages: u32, logical_pages: u32) -> Self {
        let slots = Index::new(logical_pages);
        let pages = pages as usize;
        Self {
            slots,
            lpn: Vec::with_capacity(pages),
            dirty: Vec::with_capacity(pages),
            free: Vec::with_capacity(pages),
        }
    }

    /// Pages held.
    #[inline(always)]
    #[must_use]
    pub fn len(&self) -> u32 {
        self.slots.len()
    }
    /// Whether none is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.len() == 0
    }
    /// The slot of a page, if it is held.
    #[inline(always)]
    #[must_use]
    pub fn slot(&self, lpn: Lpn) -> Option<u32> {
        self.slots.get(lpn.0)
    }
    /// Warms the CPU cache for a page.
    #[inline(always)]
    pub fn expect(&self, lpn: Lpn) {
        self.slots.expect(lpn.0);
    }
    /// The page in a slot in use.
    #[inline(always)]
    #[must_use]
    pub fn lpn(&self, slot: u32) -> Lpn {
        Lpn(self.lpn[slot as usize])
    }
    /// Whether the page in a slot in use is newer than its copy on flash.
    #[inline(always)]
    #[must_use]
    pub fn is_dirty(&self, slot: u32) -> bool {
        self.dirty[slot as usize]
    }
    /// Sets whether the page in a slot is newer than its copy on flash.
    #[inline(always)]
    pub fn set_dirty(&mut self, slot: u32, dirty: bool) {
        self.dirty[slot as usize] = dirty;
    }

    /// Adds a page that is not held; returns its slot.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // slots are counted in 32 bits
    pub fn insert(&mut self, lpn: Lpn, dirty: bool) -> u32 {
        let slot = if let Some(slot) = self.free.pop() {
            (self.lpn[slot as usize], self.dirty[slot as usize]) = (lpn.0, dirty);
            slot
        } else {
            self.lpn.push(lpn.0);
            self.dirty.push(dirty);
            self.lpn.len() as u32 - 1
        };
        self.slots.insert(lpn.0, slot);
        slot
    }

    /// Removes a page; returns the slot that it had.
    #[inline(always)]
    pub fn remove(&mut self, lpn: Lpn) -> Option<u32> {
        let slot = self.slots.remove(lpn.0)?;
        self.free.push(slot);
        Some(slot)
    }

    /// Removes the page in a slot in use.
    #[inline(always)]
    pub fn remove_slot(&mut self, slot: u32) {
        self.slots.clear(self.lpn[slot as usize]);
        self.free.push(slot);
    }
    /// The page in a slot in use, as it leaves alone.
    #[inline(always)]
    #[must_use]
    pub fn leaves(&self, slot: u32) -> Leaves {
        Leaves { slot, lpn: self.lpn(slot), dirty: self.is_dirty(slot) }
    }

    /// Appends the pages newer than their copies on flash, in ascending order.
    pub fn dirty_pages(&self, out: &mut Vec<u32>) {
        let mut live = vec![true; self.lpn.len()];
        for slot in &self.free {
            live[*slot as usize] = false;
        }
        let from = out.len();
        out.extend(
            live.into_iter()
                .zip(&self.dirty)
                .zip(&self.lpn)
                .filter(|((live, dirty), _)| *live && **dirty)
                .map(|(_, l)| *l),
        );
        out[from..].sort_unstable();
    }
}
