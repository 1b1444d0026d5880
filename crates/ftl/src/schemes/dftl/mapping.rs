//! The translation state on flash and in RAM: the content of the translation pages, the directory of these pages, and
//! the cache with its clean and dirty entries.
//!
//! ```text
//!   table[lpn]: what the translation page on flash says, or the slot of the cached entry:
//!               slots[slot]: ppn ── what the cached entry says; a clean one agrees with its translation page
//!                            epoch ── dirty if it is that of the translation page
//!   directory[t]: ppn ── where translation page t lies;  epoch ── a new one makes all its entries clean at once
//!                 dirty ── its dirty entries in the cache
//! ```
//!
//! The stale value of a dirty entry on its translation page is not kept, because nothing needs it before the entry is
//! stored. It takes 4 bytes per logical page and 12 bytes per cached entry. Nothing here accesses the flash: callers
//! read the table after a read of the translation page, and entries become clean just before its new copy is
//! programmed.

use crate::policies::map_cache::MapCache;
use crate::{Flash, Violation};
use flashwright_nand::{Divisor, Lpn, Ppn, prefetch, table};
use serde::{Deserialize, Serialize};

/// No page, no slot, the end of a list.
pub(super) const NONE: u32 = u32::MAX;
/// The epoch of an entry that agrees with its translation page. Those of translation pages begin above it.
const CLEAN: u32 = 0;

/// Flag in the table: the other bits are a slot. Physical page numbers lie below it, which limits the number of pages
/// of a drive.
pub(super) const CACHED: u32 = 1 << 31;

/// A cached entry.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Slot {
    pub lpn: u32,
    pub ppn: u32,
    epoch: u32,
}

/// A translation page.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Directory {
    pub ppn: u32,
    epoch: u32,
    dirty: u32,
}

impl Directory {
    /// Its dirty entries in the cache.
    pub fn dirty(self) -> u32 {
        self.dirty
    }
}

/// The whole translation state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Mapping {
    pub table: Vec<u32>,
    pub slots: Vec<Slot>,
    /// Slots without an entry, all below the last one in use.
    pub free: Vec<u32>,
    pub directory: Vec<Directory>,
    pub policy: MapCache,
    /// Entries that the cache holds.
    pub capacity: u32,
    entries_per_page: Divisor,
}

impl Mapping {
    /// Nothing mapped, nothing cached.
    pub fn new(logical_pages: u32, entries_per_page: u32, capacity: u32, policy: MapCache) -> Self {
        Self {
            table: table(NONE, logical_pages as usize),
            slots: Vec::with_capacity(capacity as usize),
            free: Vec::new(),
            directory: vec![
                Directory { ppn: NONE, epoch: CLEAN + 1, dirty: 0 };
                logical_pages.div_ceil(entries_per_page) as usize
            ],
            policy,
            capacity,
            entries_per_page: Divisor::new(entries_per_page),
        }
    }

    /// The translation page that holds the entry of `lpn`.
    #[inline(always)]
    pub fn page_of(&self, lpn: u32) -> u32 {
        self.entries_per_page.of(lpn)
    }

    /// Entries on a translation page.
    pub fn entries_on_page(&self) -> u32 {
        self.entries_per_page.get()
    }

    /// The slot of the cached entry of `lpn`, or [`NONE`].
    #[inline(always)]
    pub fn slot_of(&self, lpn: u32) -> u32 {
        let slot = self.table[lpn as usize] ^ CACHED;
        if slot < NONE ^ CACHED { slot } else { NONE }
    }

    /// The physical page of `lpn`: the cached entry if there is one, else the entry on its translation page.
    #[inline(always)]
    pub fn resolve(&self, lpn: u32) -> u32 {
        match self.slot_of(lpn) {
            NONE => self.table[lpn as usize],
            slot => self.slots[slot as usize].ppn,
        }
    }

    /// Whether a cached entry is newer than its translation page.
    #[inline(always)]
    pub fn is_dirty(&self, slot: u32) -> bool {
        let Slot { lpn, epoch, .. } = self.slots[slot as usize];
        epoch == self.directory[self.page_of(lpn) as usize].epoch
    }

    /// The slot whose entry leaves next; none if nothing is cached.
    #[inline(always)]
    pub fn victim(&mut self) -> Option<u32> {
        let Self { policy, slots, directory, entries_per_page, .. } = self;
        policy.victim(|slot| {
            let Slot { lpn, epoch, .. } = slots[slot as usize];
            epoch == directory[entries_per_page.of(lpn) as usize].epoch
        })
    }

    /// Loads the entry of `lpn` from its translation page into an empty slot.
    #[inline(always)]
    pub fn fill(&mut self, slot: u32, lpn: u32) {
        debug_assert!(self.slot_of(lpn) == NONE, "an entry loaded twice");
        let stored = std::mem::replace(&mut self.table[lpn as usize], CACHED | slot);
        let loaded = Slot { lpn, ppn: stored, epoch: CLEAN };
        match self.slots.get_mut(slot as usize) {
            Some(free) => *free = loaded,
            None => self.slots.push(loaded),
        }
        let Self { policy, entries_per_page, .. } = self;
        policy.loaded(slot, || entries_per_page.of(lpn));
    }

    /// The clean entry of a slot makes room for that of `lpn`, loaded from its translation page.
    #[inline(always)]
    pub fn replace(&mut self, slot: u32, lpn: u32) {
        debug_assert!(!self.is_dirty(slot), "a dirty entry dropped");
        let Self { table, slots, policy, entries_per_page, .. } = self;
        let entry = &mut slots[slot as usize];
        table[entry.lpn as usize] = entry.ppn;
        let stored = std::mem::replace(&mut table[lpn as usize], CACHED | slot);
        *entry = Slot { lpn, ppn: stored, epoch: CLEAN };
        // Warms the CPU cache for the next eviction and the one after it.
        if let Some((next, after)) = policy.replaced(slot, || entries_per_page.of(lpn)) {
            prefetch(table, slots[next as usize].lpn as usize);
            if let Some(after) = after {
                prefetch(slots, after as usize);
            }
        }
    }

    /// Drops the clean entry of a slot.
    #[inline(always)]
    pub fn drop_entry(&mut self, slot: u32) {
        debug_assert!(!self.is_dirty(slot), "a dirty entry dropped");
        self.policy.removed(slot);
        let Slot { lpn, ppn, .. } = self.slots[slot as usize];
        self.table[lpn as usize] = ppn;
    }

    /// Changes a cached entry, which becomes dirty.
    #[inline(always)]
    pub fn change(&mut self, slot: u32, ppn: u32) {
        let entry = &mut self.slots[slot as usize];
        entry.ppn = ppn;
        let directory = &mut self.directory[self.entries_per_page.of(entry.lpn) as usize];
        if entry.epoch != directory.epoch {
            directory.dirty += 1;
            entry.epoch = directory.epoch;
            self.policy.dirtied(slot);
        }
    }

    /// Stores one dirty entry in its translation page; it becomes clean.
    pub fn store(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        entry.epoch = CLEAN;
        self.directory[self.entries_per_page.of(entry.lpn) as usize].dirty -= 1;
    }

    /// Stores all dirty entries of a translation page and returns their number.
    #[inline]
    pub fn store_all(&mut self, page: u32) -> u32 {
        if self.policy.groups() {
            self.tell_cleaned(page);
        }
        let directory = &mut self.directory[page as usize];
        directory.epoch = directory.epoch.wrapping_add(1);
        let count = std::mem::take(&mut directory.dirty);
        if directory.epoch == CLEAN {
            self.begin_epochs_again(page);
        }
        count
    }

    /// The epochs of a translation page are used up: they restart, and none of its entries may keep an old one.
    #[cold]
    fn begin_epochs_again(&mut self, page: u32) {
        self.directory[page as usize].epoch = CLEAN + 1;
        for slot in &mut self.slots {
            if self.entries_per_page.of(slot.lpn) == page {
                slot.epoch = CLEAN;
            }
        }
    }

    /// Warms the CPU cache for the next eviction and the one after it.
    #[inline(always)]
    pub fn expect_eviction(&self) {
        if let Some(slot) = self.policy.likely_next() {
            prefetch(&self.table, self.slots[slot as usize].lpn as usize);
            if let Some(after) = self.policy.likely_after(slot) {
                prefetch(&self.slots, after as usize);
            }
        }
    }

    /// Appends contradictions. Checks that cache and table are inverse, dirty entries are counted right, and every
    /// translation page is valid and at its place in the directory.
    pub fn audit(&self, flash: &Flash, violations: &mut Vec<Violation>) {
        let mut report = |text: String| violations.push(Violation(text));
        let mut cached = 0usize;
        let mut dirty = vec![0u32; self.directory.len()];
        for lpn in (0u32..).zip(&self.table).map(|(lpn, _)| lpn) {
            let at = self.slot_of(lpn);
            if at == NONE {
                continue;
            }
            cached += 1;
            match self.slots.get(at as usize) {
                Some(slot) if slot.lpn == lpn => dirty[self.page_of(lpn) as usize] += u32::from(self.is_dirty(at)),
                other => report(format!("lpn {lpn} is cached in slot {at}, which holds {other:?}")),
            }
        }
        if cached != self.slots.len() - self.free.len() || cached != self.policy.entries() as usize {
            report(format!(
                "{cached} entries are cached, {} slots are in use, the replacement policy knows {}",
                self.slots.len() - self.free.len(),
                self.policy.entries()
            ));
        }
        for ((page, directory), dirty) in (0u32..).zip(&self.directory).zip(dirty) {
            if directory.dirty != dirty {
                report(format!("translation page {page} counts {} dirty entries, {dirty} are cached", directory.dirty));
            }
            let owner = Lpn(self.table.len() as u32 + page);
            if directory.ppn == NONE
                || flash.nand().spare(Ppn(directory.ppn)) != Some(owner)
                || !flash.is_valid(Ppn(directory.ppn))
            {
                report(format!("translation page {page} is not at page {}, where the directory says", directory.ppn));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::map_cache::{MapCacheContext, MapCacheName, MapCacheSettings};

    /// Two translation pages of 4 entries; those of page 0 are stored together at the last epoch, so that epochs
    /// restart; none of its entries may then count as dirty.
    #[test]
    fn epochs_begin_again() {
        let context = MapCacheContext { entries: 8, entries_per_page: 4 };
        let policy = MapCacheName::Lru.build(&MapCacheSettings::default(), context);
        let mut map = Mapping::new(8, 4, 8, policy);
        for lpn in 0..8 {
            map.fill(lpn, lpn);
        }
        [0, 1, 5].into_iter().for_each(|slot| map.change(slot, 9));
        let dirty = |map: &Mapping| (0..8).filter(|slot| map.is_dirty(*slot)).collect::<Vec<_>>();
        assert_eq!((map.store_all(0), dirty(&map)), (2, vec![5]));
        map.directory[0].epoch = u32::MAX;
        [0, 2].into_iter().for_each(|slot| map.change(slot, 10));
        assert_eq!((map.store_all(0), map.directory[0].epoch, dirty(&map)), (2, CLEAN + 1, vec![5]));
        map.change(3, 11);
        map.store(3);
        assert_eq!((dirty(&map), map.store_all(0), map.store_all(1)), (vec![5], 0, 1));
    }
}
