//! Evicts the least recently used page: a page cache for reads and writes, and the buffer half of adaptive partitioning
//! (Hu 2012, 3.1.3).
//!
//! O(1) per page, 25 bytes per held page, 4 per logical page.

use super::{Leaves, RamContext, RamManager, View};
use crate::{Destage, Pages};
use flashwright_ftl::{NoSettings, SlotLists, Violation};
use flashwright_nand::Lpn;
use serde::{Deserialize, Serialize};

/// `ram.manager = "lru"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lru {
    pages: Pages,
    order: SlotLists,
    capacity: u32,
}

/// The only list: all pages, by last use.
const ALL: u32 = 0;

impl RamManager for Lru {
    const NAME: &'static str = "lru";
    const ABOUT: &'static str = "a cache of pages read and written; evicts the least recently used one";
    const METADATA_BYTES: u64 = 12;
    type Settings = NoSettings;

    fn new(_: &Self::Settings, context: RamContext) -> Self {
        Self {
            pages: Pages::new(context.pages_held_max(), context.logical_pages),
            order: SlotLists::new(1, context.pages_held_max()),
            capacity: context.pages,
        }
    }

    #[inline(always)]
    fn keeps_reads(&self) -> bool {
        true
    }
    #[inline(always)]
    fn capacity(&self) -> u32 {
        self.capacity
    }
    #[inline(always)]
    fn pages(&self) -> u32 {
        self.pages.len()
    }
    #[inline(always)]
    fn is_dirty(&self, lpn: Lpn) -> Option<bool> {
        self.pages.slot(lpn).map(|slot| self.pages.is_dirty(slot))
    }

    #[inline(always)]
    fn expect(&self, lpn: Lpn) {
        self.pages.expect(lpn);
    }
    #[inline(always)]
    fn overwrite(&mut self, lpn: Lpn) -> bool {
        let Some(slot) = self.pages.slot(lpn) else { return false };
        self.pages.set_dirty(slot, true);
        self.order.move_to(ALL, slot);
        true
    }
    #[inline(always)]
    fn take_in(&mut self, lpn: Lpn, dirty: bool) {
        let slot = self.pages.insert(lpn, dirty);
        self.order.push(ALL, slot);
    }
    #[inline(always)]
    fn read(&mut self, lpn: Lpn) -> bool {
        let Some(slot) = self.pages.slot(lpn) else { return false };
        self.order.move_to(ALL, slot);
        true
    }
    #[inline(always)]
    fn choose(&mut self, _: View, out: &mut Destage) {
        if let Some(slot) = self.order.oldest(ALL) {
            let list = if self.pages.is_dirty(slot) { &mut out.pages } else { &mut out.dropped };
            list.push(self.pages.lpn(slot).0);
        }
    }
    #[inline(always)]
    fn leaves_alone(&self) -> Option<Leaves> {
        self.order.oldest(ALL).map(|slot| self.pages.leaves(slot))
    }
    #[inline(always)]
    fn left_alone(&mut self, slot: u32) {
        self.pages.remove_slot(slot);
        self.order.unlink(slot);
    }
    #[inline(always)]
    fn remove(&mut self, lpn: Lpn) -> bool {
        self.pages.remove(lpn).inspect(|slot| self.order.unlink(*slot)).is_some()
    }
    fn dirty_pages(&self, out: &mut Vec<u32>) {
        self.pages.dirty_pages(out);
    }
    fn cleaned(&mut self, lpn: Lpn) {
        if let Some(slot) = self.pages.slot(lpn) {
            self.pages.set_dirty(slot, false);
        }
    }
    #[inline(always)]
    fn leaves_after(&self, slot: Option<u32>) -> Option<(u32, Lpn)> {
        let next = slot.map_or_else(|| self.order.oldest(ALL), |slot| self.order.after(slot))?;
        Some((next, self.pages.lpn(next)))
    }

    fn audit(&self, violations: &mut Vec<Violation>) {
        if self.order.total() != self.pages.len() {
            violations.push(Violation(format!(
                "the page cache holds {} pages, {} are in its order",
                self.pages.len(),
                self.order.total()
            )));
        }
    }
}
