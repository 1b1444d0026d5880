//! Where logical pages lie, as far as flash and RAM know: the content of the translation pages, the directory that finds
//! them, and the cache of entries with its dirty ones.
//!
//! ```text
//!   table[lpn]: what the translation page on flash says, or the slot of the cached entry:
//!               slots[slot]: stored ── what the translation page on flash says
//!                            ppn ── what the cached entry says; newer than `stored` if dirty
//!                            links ── the dirty entries of one translation page, for the batch update
//!   directory[t]: ppn ── where translation page t lies;  dirty ── its first dirty entry in the cache
//! ```
//!
//! 4 bytes a logical page, 20 bytes an entry cached. Nothing here touches the flash: `stored` is read after a read of the
//! translation page, and written just before its new copy is programmed.

use crate::policies::map_cache::MapCache;
use crate::{Flash, Violation};
use flashwright_nand::{Divisor, Lpn, Ppn, prefetch, table};
use serde::{Deserialize, Serialize};

/// No page, no slot, the end of a list.
pub(super) const NONE: u32 = u32::MAX;
/// In `dirty_before` of a slot whose entry agrees with its translation page.
const CLEAN: u32 = u32::MAX - 1;

/// In the table: the rest is a slot. Physical page numbers lie below, and so many pages is the most that the scheme takes.
pub(super) const CACHED: u32 = 1 << 31;

/// A cached entry.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Slot {
    pub lpn: u32,
    pub ppn: u32,
    stored: u32,
    dirty_before: u32,
    dirty_after: u32,
}

/// A translation page.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Directory {
    pub ppn: u32,
    dirty: u32,
}

impl Slot {
    /// The next dirty entry of the same translation page.
    pub fn next_dirty(&self) -> Option<u32> {
        (self.dirty_after != NONE).then_some(self.dirty_after)
    }
}

impl Directory {
    /// The first dirty entry in the cache.
    pub fn first_dirty(&self) -> Option<u32> {
        (self.dirty != NONE).then_some(self.dirty)
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
            directory: vec![Directory { ppn: NONE, dirty: NONE }; logical_pages.div_ceil(entries_per_page) as usize],
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

    /// Where `lpn` lies: the cached entry if there is one, else what its translation page says.
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
        self.slots[slot as usize].dirty_before != CLEAN
    }

    /// Loads the entry of `lpn` from its translation page into a slot that holds nothing.
    #[inline(always)]
    pub fn fill(&mut self, slot: u32, lpn: u32) {
        let stored = std::mem::replace(&mut self.table[lpn as usize], CACHED | slot);
        let loaded = Slot { lpn, ppn: stored, stored, dirty_before: CLEAN, dirty_after: NONE };
        match self.slots.get_mut(slot as usize) {
            Some(free) => *free = loaded,
            None => self.slots.push(loaded),
        }
        let Self { policy, entries_per_page, .. } = self;
        policy.loaded(slot, || entries_per_page.of(lpn));
    }

    /// Drops the clean entry of a slot.
    #[inline(always)]
    pub fn drop_entry(&mut self, slot: u32) {
        debug_assert!(!self.is_dirty(slot), "a dirty entry dropped");
        self.policy.removed(slot);
        let Slot { lpn, stored, .. } = self.slots[slot as usize];
        self.table[lpn as usize] = stored;
    }

    /// Changes a cached entry, which is dirty from now on.
    #[inline(always)]
    pub fn change(&mut self, slot: u32, ppn: u32) {
        let entry = &mut self.slots[slot as usize];
        entry.ppn = ppn;
        if entry.dirty_before == CLEAN {
            let page = self.entries_per_page.of(entry.lpn) as usize;
            let next = std::mem::replace(&mut self.directory[page].dirty, slot);
            (entry.dirty_before, entry.dirty_after) = (NONE, next);
            if next != NONE {
                self.slots[next as usize].dirty_before = slot;
            }
            self.policy.dirtied(slot);
        }
    }

    /// Stores one dirty entry in its translation page; it becomes clean.
    pub fn store(&mut self, slot: u32) {
        let Slot { lpn, ppn, dirty_before, dirty_after, .. } = self.slots[slot as usize];
        match dirty_before {
            NONE => self.directory[self.entries_per_page.of(lpn) as usize].dirty = dirty_after,
            before => self.slots[before as usize].dirty_after = dirty_after,
        }
        if dirty_after != NONE {
            self.slots[dirty_after as usize].dirty_before = dirty_before;
        }
        let entry = &mut self.slots[slot as usize];
        (entry.dirty_before, entry.stored) = (CLEAN, ppn);
    }

    /// Stores all dirty entries of a translation page, and says how many they were.
    pub fn store_all(&mut self, page: u32) -> u32 {
        if self.policy.groups() {
            self.tell_cleaned(page);
        }
        let mut at = std::mem::replace(&mut self.directory[page as usize].dirty, NONE);
        let mut count = 0;
        while at != NONE {
            let slot = &mut self.slots[at as usize];
            (slot.dirty_before, slot.stored) = (CLEAN, slot.ppn);
            at = std::mem::replace(&mut slot.dirty_after, NONE);
            count += 1;
        }
        count
    }

    /// Warms the simulating machine's cache for the next eviction and the one after it.
    #[inline(always)]
    pub fn expect_eviction(&self) {
        if let Some(slot) = self.policy.victim() {
            let Slot { lpn, dirty_before, .. } = self.slots[slot as usize];
            prefetch(&self.table, lpn as usize);
            if dirty_before != CLEAN {
                // Its list is walked from the head; the oldest entry is at its end as a rule.
                prefetch(&self.slots, self.directory[self.page_of(lpn) as usize].dirty as usize);
                prefetch(&self.slots, dirty_before as usize);
            }
            if let Some(after) = self.policy.likely_after(slot) {
                prefetch(&self.slots, after as usize);
            }
        }
    }

    /// Appends what contradicts: cache and table inverse, clean entries equal to the table, dirty lists complete, every
    /// translation page valid and where the directory says.
    pub fn audit(&self, flash: &Flash, violations: &mut Vec<Violation>) {
        let mut report = |text: String| violations.push(Violation(text));
        let (mut cached, mut dirty) = (0usize, 0usize);
        for lpn in (0u32..).zip(&self.table).map(|(lpn, _)| lpn) {
            let at = self.slot_of(lpn);
            if at == NONE {
                continue;
            }
            cached += 1;
            match self.slots.get(at as usize) {
                Some(slot) if slot.lpn == lpn => {
                    dirty += usize::from(slot.dirty_before != CLEAN);
                    if slot.dirty_before == CLEAN && slot.ppn != slot.stored {
                        report(format!("the clean entry of lpn {lpn} says {}, its page {}", slot.ppn, slot.stored));
                    }
                }
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
        let mut listed = 0;
        for (page, directory) in (0u32..).zip(&self.directory) {
            let (mut at, mut before) = (directory.dirty, NONE);
            while at != NONE && listed <= dirty {
                let slot = self.slots[at as usize];
                if self.page_of(slot.lpn) != page || slot.dirty_before != before {
                    report(format!("lpn {} is in a wrong place on the dirty list of translation page {page}", slot.lpn));
                }
                listed += 1;
                (before, at) = (at, slot.dirty_after);
            }
            let owner = Lpn(self.table.len() as u32 + page);
            if directory.ppn == NONE
                || flash.nand().spare(Ppn(directory.ppn)) != Some(owner)
                || !flash.is_valid(Ppn(directory.ppn))
            {
                report(format!("translation page {page} is not at page {}, where the directory says", directory.ppn));
            }
        }
        if listed != dirty {
            report(format!("{dirty} entries are dirty, {listed} are on the lists of their pages"));
        }
    }
}
