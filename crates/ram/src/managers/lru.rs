//! Evicts the least recently used page: a page cache for reads and writes, and the buffer half of adaptive partitioning
//! (Hu 2012, 3.1.3).
//!
//! O(1) per page, up to 33 bytes per held page, 4 per logical page.

use super::{Leaves, RamContext, RamManager, View};
use crate::Destage;
use crate::queue::PageQueue;
use flashwright_ftl::{NoSettings, Violation};
use flashwright_nand::Lpn;
use serde::{Deserialize, Serialize};

/// `ram.manager = "lru"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lru {
    /// All pages by last use.
    pages: PageQueue,
    capacity: u32,
}

impl RamManager for Lru {
    const NAME: &'static str = "lru";
    const ABOUT: &'static str = "a cache of pages read and written; evicts the least recently used one";
    const METADATA_BYTES: u64 = 12;
    type Settings = NoSettings;

    fn new(_: &Self::Settings, context: RamContext) -> Self {
        Self { pages: PageQueue::new(context.pages_held_max(), context.logical_pages), capacity: context.pages }
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
        self.pages.find(lpn).map(|place| self.pages.is_dirty(place))
    }

    #[inline(always)]
    fn expect(&self, lpn: Lpn) {
        self.pages.expect(lpn);
    }
    #[inline(always)]
    fn overwrite(&mut self, lpn: Lpn) -> bool {
        let Some(place) = self.pages.find(lpn) else { return false };
        self.pages.remove(place);
        self.pages.push(lpn, true);
        true
    }
    #[inline(always)]
    fn take_in(&mut self, lpn: Lpn, dirty: bool) {
        self.pages.push(lpn, dirty);
    }
    #[inline(always)]
    fn read(&mut self, lpn: Lpn) -> bool {
        let Some(place) = self.pages.find(lpn) else { return false };
        let dirty = self.pages.is_dirty(place);
        self.pages.remove(place);
        self.pages.push(lpn, dirty);
        true
    }
    #[inline(always)]
    fn choose(&mut self, _: View, out: &mut Destage) {
        if let Some(Leaves { lpn, dirty, .. }) = self.pages.oldest() {
            let list = if dirty { &mut out.pages } else { &mut out.dropped };
            list.push(lpn.0);
        }
    }
    #[inline(always)]
    fn leaves_alone(&self) -> Option<Leaves> {
        self.pages.oldest()
    }
    #[inline(always)]
    fn left_alone(&mut self, slot: u32) {
        self.pages.remove(slot);
    }
    #[inline(always)]
    fn remove(&mut self, lpn: Lpn) -> bool {
        self.pages.find(lpn).inspect(|place| self.pages.remove(*place)).is_some()
    }
    fn dirty_pages(&self, out: &mut Vec<u32>) {
        self.pages.dirty_pages(out);
    }
    fn cleaned(&mut self, lpn: Lpn) {
        self.pages.cleaned(lpn);
    }
    #[inline(always)]
    fn leaves_after(&self, slot: Option<u32>) -> Option<(u32, Lpn)> {
        self.pages.after(slot)
    }

    fn audit(&self, violations: &mut Vec<Violation>) {
        self.pages.audit(violations);
    }
}
