//! Entries that are loaded beside one that was missed ([`crate::policies::map_prefetch`]).
//!
//! ```text
//!   miss ─► the policy says which ─► entries leave, the missing one's first ─► one read of the translation page ─► all come in
//! ```
//!
//! Room is made before the read, since cleaning for a write may change entries and move translation pages: what comes in then is
//! what the page says when it is read. An entry that is cached is never loaded again, so a newer one is never replaced by what
//! its translation page says. The missing entry comes in last and those around it before it, the farthest first, so that a
//! policy by age keeps the nearest longest. What RAM loads by the block is not prefetched for, but counts as any other entry.

use super::Dftl;
use super::mapping::{Mapping, NONE};
use crate::policies::map_prefetch::{Around, MapPrefetch, Miss, PrefetchEvicts};
use crate::{Flash, OutOfSpace, Violation};
use flashwright_nand::Lpn;
use serde::{Deserialize, Serialize};

/// The policy, and what it and the figures need to know of cached entries. 4 bytes a slot and 4 a translation page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Prefetching {
    policy: MapPrefetch,
    evicts: PrefetchEvicts,
    /// By slot: the number of the load that brought an entry unasked, until it is asked for; else 0.
    brought_by: Vec<u32>,
    /// By translation page: its entries in the cache.
    cached: Vec<u32>,
    /// The number of the last load.
    load: u32,
    /// The reads of the loads of the run that is under way, up to the last one.
    marks: Vec<u32>,
}

impl Prefetching {
    pub fn new(policy: MapPrefetch, evicts: PrefetchEvicts, pages: usize) -> Self {
        Self { policy, evicts, brought_by: Vec::new(), cached: vec![0; pages], load: 0, marks: Vec::new() }
    }

    /// Another run begins, so that no read that was marked is of it.
    pub fn begin_run(&mut self) {
        self.marks.clear();
    }

    /// An entry of a translation page came into a slot.
    pub fn entered(&mut self, slot: u32, page: u32) {
        if self.brought_by.len() <= slot as usize {
            self.brought_by.resize(slot as usize + 1, 0);
        }
        self.brought_by[slot as usize] = 0;
        let cached = &mut self.cached[page as usize];
        *cached += 1;
        if *cached == 1 {
            self.policy.page_came(page);
        }
    }

    /// An entry of a translation page left.
    pub fn left(&mut self, page: u32) {
        let cached = &mut self.cached[page as usize];
        *cached -= 1;
        if *cached == 0 {
            self.policy.page_left(page);
        }
    }

    /// The entry of a slot is asked for: if it was brought unasked, the mark of the read that did so in this run, else 0.
    fn asked_for(&mut self, slot: u32) -> Option<u32> {
        let load = std::mem::take(&mut self.brought_by[slot as usize]);
        let since = self.load.wrapping_sub(load);
        (load > 0).then(|| self.marks.iter().nth_back(since as usize).copied().unwrap_or(0))
    }

    /// What was brought until now no longer counts.
    pub fn reset_figures(&mut self) {
        self.brought_by.fill(0);
    }

    /// Appends contradictions: the entries of each translation page are counted right.
    pub fn audit(&self, map: &Mapping, violations: &mut Vec<Violation>) {
        let mut cached = vec![0; self.cached.len()];
        let all = (0..).take(map.table.len()).filter(|lpn| map.slot_of(*lpn) != NONE);
        all.for_each(|lpn| cached[map.page_of(lpn) as usize] += 1);
        if cached != self.cached {
            violations.push(Violation(format!(
                "translation pages have {cached:?} entries cached, {:?} are counted",
                self.cached
            )));
        }
    }
}

/// What has left at a miss.
#[derive(Default)]
struct Left {
    /// The translation page of the first entry that left.
    page: Option<u32>,
    wrote: bool,
    /// The mark of a read that also serves the load.
    read: Option<u32>,
}

impl Dftl {
    /// The entry of a slot was looked up and found; returns the mark of the read in this run that brought it unasked.
    #[inline(never)]
    pub(super) fn found(&mut self, slot: u32) -> u32 {
        let brought = self.prefetching.as_mut().and_then(|prefetching| prefetching.asked_for(slot));
        self.figures.cache.prefetched_used += u64::from(brought.is_some());
        brought.unwrap_or(0)
    }

    /// Puts the entry of `lpn` into an empty slot, from its translation page.
    pub(super) fn enter(&mut self, slot: u32, lpn: u32) {
        self.map.fill(slot, lpn);
        if let Some(prefetching) = &mut self.prefetching {
            prefetching.entered(slot, self.map.page_of(lpn));
        }
    }

    /// As [`Dftl::load`], with the entries that the prefetch policy names. On a drive that can't write, only those for which there
    /// is room.
    #[inline(never)]
    pub(super) fn load_with_others(
        &mut self,
        lpn: Lpn,
        rest: u32,
        flash: &mut Flash,
    ) -> Result<(u32, u32), OutOfSpace> {
        let page = self.map.page_of(lpn.0);
        if let Some(ghosts) = &mut self.ghosts {
            ghosts.wanted(lpn.0);
        }
        let around = self.named_around(lpn.0, page, rest);
        let mut left = Left::default();
        while self.map.cached() >= self.map.capacity {
            self.make_way(page, &mut left, flash)?;
        }
        let others = u32::try_from(missing(&self.map, lpn.0, around).count()).expect("entries of a page");
        let needed = others.saturating_add(1).min(self.map.capacity);
        while self.map.capacity - self.map.cached() < needed
            && self.may_leave(&left)
            && self.make_way(page, &mut left, flash).is_ok()
        {}
        let mark = left.read.unwrap_or_else(|| self.read_translation(page, flash));
        // Of those that were cached, some may have left.
        let room = (self.map.capacity - self.map.cached() - 1) as usize;
        let others: Vec<u32> = missing(&self.map, lpn.0, around).take(room).collect();
        self.figures.cache.prefetched += others.len() as u64;
        let load = self.begin_load(mark);
        for other in others.into_iter().rev() {
            let slot = self.map.spare_slot();
            self.enter(slot, other);
            self.brought(slot, load);
            if let Some(ghosts) = &mut self.ghosts {
                ghosts.forget(other);
            }
        }
        let slot = self.map.spare_slot();
        self.enter(slot, lpn.0);
        self.map.expect_eviction();
        Ok((slot, mark))
    }

    /// Asks the policy.
    fn named_around(&mut self, lpn: u32, page: u32, rest: u32) -> Around {
        let Self { map, prefetching, .. } = self;
        let Some(prefetching) = prefetching else { return Around::default() };
        let first = page * map.entries_on_page();
        let end = first.saturating_add(map.entries_on_page()).min(map.table.len() as u32);
        let is_cached = |lpn| map.slot_of(lpn) != NONE;
        prefetching.policy.prefetch(&Miss::new(lpn, rest, (lpn - first, end - 1 - lpn), &is_cached))
    }

    /// An entry leaves, or a group of them.
    fn make_way(&mut self, wanted: u32, left: &mut Left, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let victim = self.map.victim().expect("a full cache has a victim");
        let is_dirty = self.map.is_dirty(victim);
        left.page.get_or_insert(self.map.page_of(self.map.slots[victim as usize].lpn));
        let read = self.evict(wanted, flash)?;
        if is_dirty {
            // A read before a later write is too old: cleaning for that may have changed the page.
            left.read = read;
            left.wrote = true;
        }
        Ok(())
    }

    /// Whether the entry that leaves next may do so for a prefetched one.
    fn may_leave(&mut self, left: &Left) -> bool {
        let Some(victim) = self.map.victim() else { return false };
        let any = self.prefetching.as_ref().is_some_and(|prefetching| prefetching.evicts == PrefetchEvicts::Any);
        let page = self.map.page_of(self.map.slots[victim as usize].lpn);
        any || left.page.is_none_or(|first| first == page) && !(left.wrote && self.map.is_dirty(victim))
    }

    /// Numbers a load that a marked read serves.
    fn begin_load(&mut self, mark: u32) -> u32 {
        self.prefetching.as_mut().map_or(0, |prefetching| {
            prefetching.load = prefetching.load.wrapping_add(1).max(1);
            prefetching.marks.push(mark);
            prefetching.load
        })
    }

    /// The entry of a slot came unasked.
    fn brought(&mut self, slot: u32, load: u32) {
        if let Some(prefetching) = &mut self.prefetching {
            prefetching.brought_by[slot as usize] = load;
        }
    }
}

/// The pages around a missing one whose entries are not cached: those after it, the nearest first, then those before it.
fn missing(map: &Mapping, lpn: u32, around: Around) -> impl Iterator<Item = u32> {
    let all = (lpn + 1..=lpn + around.after).chain((lpn - around.before..lpn).rev());
    all.filter(|lpn| map.slot_of(*lpn) == NONE)
}
