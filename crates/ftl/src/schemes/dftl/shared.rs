//! The interface of the scheme for RAM managers: the state of the cached table, changes of its size, and writes of
//! whole blocks.
//!
//! **A block** (Hu 2012, section 3.2.2). Its entries are loaded with one read of each translation page, before its
//! pages are read for padding or written. The run takes an erased block of its own, which is then sealed, and its
//! entries become dirty in the cache. If the cache can't hold all of the entries, the excess ones stay in RAM until the
//! run is written; then the translation page is written through with one program, using the earlier read.

use super::mapping::{Mapping, NONE};
use super::settings::SizeKey;
use super::{Dftl, stream_id};
use crate::{Cause, Flash, Ghosts, InvalidateOrder, LpnRun, MapCacheView, OutOfSpace, ServesRam, Watch, write_runs};
use flashwright_nand::{Lpn, Ppn};
use std::ops::Range;

impl Mapping {
    /// Entries cached.
    #[inline(always)]
    pub fn cached(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }

    /// An empty slot, to be filled next.
    #[inline(always)]
    pub fn spare_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or(self.slots.len() as u32)
    }

    /// Drops the clean entry of a slot, which is then free. Returns the entry's logical page.
    #[inline(always)]
    pub fn release(&mut self, slot: u32) -> u32 {
        self.drop_entry(slot);
        self.free.push(slot);
        self.slots[slot as usize].lpn
    }

    /// Notifies the replacement policy that the dirty entries of a translation page became clean.
    pub fn tell_cleaned(&mut self, page: u32) {
        self.policy.group(page).into_iter().rev().for_each(|slot| self.policy.cleaned(slot));
    }
}

impl ServesRam for Dftl {
    fn fetch(&mut self, lpn: Lpn, cause: Cause, flash: &mut Flash) -> Option<Ppn> {
        self.begin_run();
        let (ppn, loaded) = match self.translate(lpn, lpn.0 + 1, flash) {
            Ok((slot, loaded)) => (self.map.slots[slot as usize].ppn, loaded),
            Err(_) => self.consult(lpn, flash),
        };
        if ppn != NONE {
            flash.next_waits_for_mark(loaded);
            flash.read_internal(Ppn(ppn), cause);
        }
        (ppn != NONE).then_some(Ppn(ppn))
    }

    fn look_up_block(&mut self, run: LpnRun, flash: &mut Flash) {
        self.load_block(run.iter(), &(run.first.0..run.first.0 + run.pages), flash);
    }

    fn write_block(&mut self, lpns: &[u32], flash: &mut Flash) -> Result<(), OutOfSpace> {
        self.write_own_block(lpns, flash)
    }

    fn supersede(&mut self, lpns: &[u32], flash: &mut Flash) {
        if self.invalidate == InvalidateOrder::BeforeGc {
            self.drop_cached_copies(lpns, flash);
        }
    }

    fn watch(&mut self, watch: Watch, flash: &Flash) {
        if watch.reclaimable {
            self.planes.watch_fewest(flash);
        }
        self.ghosts = (watch.map_ghosts > 0).then(|| Ghosts::new(watch.map_ghosts));
        self.exchanges &= self.ghosts.is_none();
    }

    fn reclaimable_pages(&self, flash: &Flash) -> Option<u32> {
        self.planes.reclaimable_pages(flash)
    }

    fn map_cache(&self) -> Option<MapCacheView> {
        Some(self.view())
    }

    fn resize_map_cache(&mut self, entries: u32, flash: &mut Flash) {
        self.resize(entries, flash);
    }
}

impl Dftl {
    /// Evicts an entry, or, with a policy of groups, all entries that have to leave with it. Returns the mark of a read
    /// that also serves the load of an entry of `wanted`.
    #[inline(always)]
    pub(super) fn evict(&mut self, wanted: u32, flash: &mut Flash) -> Result<Option<u32>, OutOfSpace> {
        let mut slot = self.map.victim().expect("a full cache has a victim");
        let mut shared = None;
        if self.map.is_dirty(slot) {
            if self.map.policy.groups() {
                let page = self.map.page_of(self.map.slots[slot as usize].lpn);
                shared = self.evict_group(slot, page, wanted, flash)?;
                if self.map.policy.leaves_whole() {
                    return Ok(shared);
                }
                slot = self.map.victim().expect("a group was just written");
            } else {
                shared = self.write_back(slot, wanted, flash)?;
            }
        }
        self.let_go(slot);
        Ok(shared)
    }

    /// The clean entry of a slot leaves.
    #[inline(always)]
    fn let_go(&mut self, slot: u32) {
        let lpn = self.map.release(slot);
        self.figures.cache.evictions += 1;
        if let Some(prefetching) = &mut self.prefetching {
            prefetching.left(self.map.page_of(lpn));
        }
        if let Some(ghosts) = &mut self.ghosts {
            ghosts.push(lpn);
        }
    }

    /// Writes all dirty entries of a translation page, one of them in `slot`; they leave if the policy evicts whole
    /// groups.
    fn evict_group(&mut self, slot: u32, page: u32, wanted: u32, flash: &mut Flash) -> Result<Option<u32>, OutOfSpace> {
        // No entry of the page is clean, because a clean one would have left first; so cleaning for the write adds no
        // dirty ones.
        let group = self.map.policy.group(page);
        let shared = self.write_back(slot, wanted, flash)?;
        if self.map.policy.leaves_whole() {
            self.figures.cache.dirty_evictions += group.len() as u64 - 1;
            group.into_iter().for_each(|slot| self.let_go(slot));
        }
        Ok(shared)
    }

    /// The state of the cache.
    pub(super) fn view(&self) -> MapCacheView {
        MapCacheView {
            capacity: self.map.capacity,
            capacity_limits: (1, self.map.table.len() as u32),
            entries_per_page: self.map.entries_on_page(),
            has_clean: self.map.policy.has_clean(),
            largest_group: self.map.policy.largest_group(),
            ghost_hits: self.ghosts.as_ref().map_or(0, Ghosts::hits),
            evictions: self.figures.cache.evictions,
            dirty_evictions: self.figures.cache.dirty_evictions,
            set_by: self.size_key.map(|key| match key {
                SizeKey::Entries => "ftl.dftl.cmt-entries",
                SizeKey::Ram => "ftl.dftl.ram",
            }),
        }
    }

    /// Changes the size of the cache. Entries that no longer fit are evicted at the usual cost; on a drive at the end
    /// of its life that can't write them they stay.
    pub(super) fn resize(&mut self, entries: u32, flash: &mut Flash) {
        self.map.capacity = entries.clamp(1, self.map.table.len() as u32);
        self.map.policy.resized(self.map.capacity);
        while self.map.cached() > self.map.capacity && self.evict(NONE, flash).is_ok() {}
    }

    /// Looks up pages in ascending order and loads the entries that the cache lacks, with one read of each translation
    /// page. Entries that would evict those of pages in `keep` are added beyond the size.
    pub(super) fn load_block(&mut self, lpns: impl Iterator<Item = Lpn>, keep: &Range<u32>, flash: &mut Flash) {
        let mut read_of = NONE;
        for lpn in lpns {
            self.figures.cache.lookups += 1;
            match self.map.slot_of(lpn.0) {
                NONE => {
                    let page = self.map.page_of(lpn.0);
                    if let Some(ghosts) = &mut self.ghosts {
                        ghosts.wanted(lpn.0);
                    }
                    while self.map.cached() >= self.map.capacity && self.evict_for(page, keep, flash) {}
                    if read_of != page {
                        self.read_translation(page, flash);
                        read_of = page;
                    }
                    let slot = self.map.spare_slot();
                    self.enter(slot, lpn.0);
                }
                slot => {
                    self.figures.cache.hits += 1;
                    self.map.policy.touched(slot);
                    if self.prefetching.is_some() {
                        self.found(slot);
                    }
                }
            }
        }
    }

    /// Makes room for an entry of a run on translation page `page`, unless that takes an entry of the run away.
    fn evict_for(&mut self, page: u32, run: &Range<u32>, flash: &mut Flash) -> bool {
        let Some(victim) = self.map.victim() else { return false };
        let lpn = self.map.slots[victim as usize].lpn;
        let own = run.contains(&lpn);
        let whole = self.map.policy.leaves_whole();
        let own_group = whole && self.map.is_dirty(victim) && self.map.page_of(lpn) == page;
        if !(own || own_group) {
            return self.evict(NONE, flash).is_ok();
        }
        // All clean entries may belong to the run: then the largest group is evicted, unless it is the run's.
        let of_run = |slot: u32| run.contains(&self.map.slots[slot as usize].lpn);
        let another =
            |group: &u32| whole && own && *group != page && !self.map.policy.group(*group).into_iter().any(of_run);
        let Some(group) = self.map.policy.largest_group().filter(another) else { return false };
        let slot = *self.map.policy.group(group).first().expect("a group has an entry");
        self.evict_group(slot, group, NONE, flash).is_ok()
    }

    /// Drops the old copies of pages whose entries are cached; these entries then map nothing.
    pub(super) fn drop_cached_copies(&mut self, lpns: &[u32], flash: &mut Flash) {
        for slot in lpns.iter().map(|lpn| self.map.slot_of(*lpn)).collect::<Vec<_>>() {
            if slot != NONE {
                self.replace_entry(slot, NONE, flash);
            }
        }
    }

    /// Changes a cached entry and drops the copy that it named.
    fn replace_entry(&mut self, slot: u32, ppn: u32, flash: &mut Flash) {
        let old = self.map.slots[slot as usize].ppn;
        if old != ppn {
            self.map.change(slot, ppn);
        }
        if old != NONE {
            self.planes.drop_copy(Ppn(old), flash);
        }
    }

    /// Writes pages of one logical block into an erase block of their own, or like any write if no block is available.
    pub(super) fn write_own_block(&mut self, lpns: &[u32], flash: &mut Flash) -> Result<(), OutOfSpace> {
        // Entries that were looked up with their block are usually cached, and not looked up again.
        let missing: Vec<u32> = lpns.iter().copied().filter(|lpn| self.map.slot_of(*lpn) == NONE).collect();
        if let [first, .., last] | [first @ last] = *lpns {
            self.load_block(missing.into_iter().map(Lpn), &(first..last + 1), flash);
        }
        let all_cached = lpns.iter().all(|lpn| self.map.slot_of(*lpn) != NONE);
        let own = (all_cached && !lpns.is_empty()).then(|| {
            let (planes, mut moves) = self.parts();
            planes.own_block(&mut moves, flash)
        });
        let Some((plane, block)) = own.flatten() else {
            return write_runs(lpns, |run| crate::Ftl::write(self, run, flash));
        };
        let mut places = Vec::with_capacity(lpns.len());
        self.planes.all[plane].fill_own(block, lpns, flash, |lpn, ppn| places.push((lpn, ppn)));
        if self.planes.asks_schedule {
            self.planes.note_written(plane, u32::try_from(lpns.len()).expect("pages of a block fit 32 bits"));
        }
        for (lpn, ppn) in places {
            let slot = self.map.slot_of(lpn);
            self.replace_entry(slot, ppn.0, flash);
        }
        let mut pages: Vec<u32> = lpns.iter().map(|lpn| self.map.page_of(*lpn)).collect();
        pages.dedup();
        for page in pages {
            if self.map.cached() > self.map.capacity {
                self.write_through(page, lpns, flash);
            }
        }
        Ok(())
    }

    /// Writes the dirty entries of a translation page that was read before, and drops those of a run until the cache is
    /// no longer overfull. A drive at the end of its life that can't write keeps them.
    fn write_through(&mut self, page: u32, lpns: &[u32], flash: &mut Flash) {
        let Ok(plane) = self.plane_with_room(None, stream_id(self.translation), flash) else { return };
        self.figures.evict_updates += u64::from(self.map.store_all(page));
        self.program_translation(plane, page, Cause::Translation, flash);
        self.figures.written_through += 1;
        for lpn in lpns.iter().rev().filter(|lpn| self.map.page_of(**lpn) == page).copied().collect::<Vec<_>>() {
            if self.map.cached() > self.map.capacity {
                self.let_go(self.map.slot_of(lpn));
            }
        }
    }
}
