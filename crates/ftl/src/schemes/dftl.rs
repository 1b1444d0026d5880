//! Demand-based page mapping (DFTL; Gupta, Kim and Urgaonkar, ASPLOS 2009).
//!
//! The map is stored on flash, in translation pages of consecutive entries; RAM holds the directory of these pages and
//! a cache of entries. Data and translation pages have separate blocks and frontiers in every plane; cleaning stays
//! within a plane, evictions take planes in turn.
//!
//! ```text
//!   lookup(lpn) ── cached? ── yes ─► touch
//!                    │ no
//!                  full? ── yes ─► victim dirty? ── yes ─► read its translation page, write it with all dirty entries
//!                    │ no  ◄───────────┘ no ◄──────────┘   of that page, which become clean
//!                  read the translation page of lpn, cache its entry
//! ```
//!
//! A miss costs at most two reads and one write of translation pages, not counting cleaning. What is prefetched with it
//! (`ahead.rs`) may cost more of them, but not with `prefetch-evicts = "one-page"`. The spare area of
//! translation page t names `logical pages + t` as its owner. The whole table is written once when the drive is built,
//! without being counted.
//!
//! Departures from the paper and interpretations: a trim has to find the old copy, so it looks up its entry like a
//! write; the load of an entry and the write that makes room for it may overlap on different dies; `gc.free-blocks-min`
//! below the number of frontiers plus 1 counts as that (3 with one data frontier, the paper's own value), since a data
//! clean may open a block for each and gain one; `gc.invalidate = "before-gc"` drops the old copy before the clean for
//! the data page, but after one caused by an eviction. On a drive at the end of its life that can no longer write
//! translation pages, reads bypass the cache, and trims enlarge it.
//!
//! Invariants: for each page the cached entry, else the stored one, names the valid copy; every translation page has
//! one valid copy, at the place in the directory. RAM of this program: 4 bytes per logical page in addition to the 4.1
//! bytes per physical page of the flash, and 24 bytes per cached entry, 28 with a prefetch policy.

mod ahead;
mod cleaning;
mod mapping;
mod settings;
mod shared;

pub use settings::{DftlSettings, SamePageRead};

use super::{BuildScheme, Reserve, SINGLE_KEEPS_FEWER, SchemeContext};
use crate::cleaner::Cleaner;
use crate::durable::{MountError, Scan, adopt_pages};
use crate::groups::Written;
use crate::plane::good_blocks;
use crate::planes::{Planes, held_by_all};
use crate::policies::map_cache::{ForeignMapCache, MapCache, MapCacheContext};
use crate::policies::map_prefetch::{ForeignMapPrefetch, MapPrefetch};
use crate::policies::placement::Placement;
use crate::policies::schedule::Occasion;
use crate::{
    Cause, CleansInSteps, Flash, Ftl, Ghosts, InvalidateOrder, LpnRun, MapSize, MappingCache, OutOfSpace, Progress,
    SchemeFigures, VictimName, Violation,
};
use ahead::Prefetching;
use cleaning::Listed;
use flashwright_block::Nanos;
use flashwright_nand::{BlockId, Geometry, Lpn, PlaneId, Ppn, prefetch};
use mapping::{Mapping, NONE};
use serde::{Deserialize, Serialize};
use settings::SizeKey;

/// `ftl.scheme = "dftl"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Dftl {
    map: Mapping,
    planes: Planes,
    /// The stream of translation pages; those before it are the placement policy's.
    translation: usize,
    invalidate: InvalidateOrder,
    batch_on_evict: bool,
    share_reads: bool,
    placement: Placement,
    entry_bytes: u32,
    figures: Figures,
    /// Entries that recently left the cache, if requested.
    ghosts: Option<Ghosts>,
    /// The policy that loads entries beside those that are asked for, if there is one.
    prefetching: Option<Box<Prefetching>>,
    /// Whether a miss in a full cache exchanges one entry for another: without ghosts, groups and prefetching.
    exchanges: bool,
    size_key: Option<SizeKey>,
    /// Which translation pages the current clean has listed.
    #[serde(skip)]
    listed: Listed,
}

/// The counts of the scheme.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Figures {
    cache: MappingCache,
    /// Entries written by dirty evictions.
    evict_updates: u64,
    /// Cached entries that cleaning changed.
    lazy_updates: u64,
    /// Entries that cleaning changed on flash, and the pages that it wrote for them.
    gc_updates: u64,
    gc_update_pages: u64,
    /// Cleans by the victim's valid pages: none, some, all (Gupta 2009, Figure 6a).
    cleans_switch: u64,
    cleans_partial: u64,
    cleans_full: u64,
    /// Cleans of translation blocks.
    cleans_translation: u64,
    /// Translation pages written through because the cache could not hold the entries of a block.
    written_through: u64,
}

/// Bytes of a cached entry in this machine's memory: the slot, its place in the order of replacement, what the policy notes.
const HELD_ENTRY_BYTES: u64 = 32;

/// Bytes of the page number with which a checkpoint stores an entry that a translation page lacks.
const LPN_BYTES: u64 = 4;

/// Room for translation pages in a plane beyond its share of them, in blocks.
const GATHERED_BLOCKS: u64 = 8;

impl Dftl {
    /// Entries on a translation page.
    fn entries_per_page(context: &SchemeContext, flash: &Flash) -> u32 {
        let entries = flash.geometry().page_size().0 / u64::from(context.ftl.entry_bytes.max(1));
        u32::try_from(entries).unwrap_or(u32::MAX)
    }

    /// Blocks that a plane keeps free: one for each frontier that a clean may have to open, plus one.
    fn kept_free(context: &SchemeContext, flash: &Flash) -> u32 {
        u32::from(context.streams(flash)) + 2
    }
}

impl BuildScheme for Dftl {
    const NAME: &'static str = "dftl";
    const ABOUT: &'static str = "page mapping with the map on flash and a cache of entries in RAM (DFTL; Gupta 2009)";
    /// "A simple cost-benefit analysis that we adapt from" Kawaguchi 1995 (Gupta 2009, 3.3).
    const VICTIM: VictimName = VictimName::CostBenefit;
    const LEVELS_WEAR: bool = true;
    const ASKS_POLICIES: bool = true;
    const CACHES_MAP: bool = true;
    const CLEANS_IN_STEPS: bool = true;
    const TAKES_CHECKPOINTS: bool = true;
    type Settings = DftlSettings;

    fn problems(context: &SchemeContext, flash: &Flash) -> Vec<String> {
        let (geometry, logical) = (flash.geometry(), u64::from(context.logical_pages));
        let mut problems = context.ftl.schemes.dftl.problems(context.logical_pages);
        problems.extend(context.policy_problems(context.streams(flash) + 1, flash));
        let per_page = Self::entries_per_page(context, flash);
        if per_page == 0 {
            problems.push(format!(
                "ftl.entry-bytes: found {}, expected at most geometry.page-size = {}",
                context.ftl.entry_bytes,
                geometry.page_size()
            ));
            return problems;
        }
        if geometry.pages() > mapping::CACHED {
            problems.push(format!(
                "geometry: {} pages, but ftl.scheme = \"dftl\" takes at most {}; use larger pages or fewer blocks",
                geometry.pages(),
                mapping::CACHED
            ));
        }
        let translation = logical.div_ceil(u64::from(per_page));
        if logical + translation >= u64::from(NONE) - 1 {
            problems.push(format!(
                "capacity: {logical} logical and {translation} translation pages, but page numbers have 32 bits; lower \
                 capacity.utilization"
            ));
        }
        let streams = u64::from(context.streams(flash));
        let kept = u64::from(context.gc.free_blocks_min.max(Self::kept_free(context, flash)));
        let reserved = kept + streams + 1;
        let planes = u64::from(geometry.planes());
        // What the planes hold if each keeps so many blocks.
        let usable = |reserved: u64| {
            let good = |plane| good_blocks(flash, PlaneId(plane));
            let room = |plane| good(plane).saturating_sub(reserved) * u64::from(geometry.pages_per_block());
            held_by_all(context, flash, room)
        };
        // The distribution of translation pages over planes is not fixed: one plane may collect all of them, or at
        // least many more than its share.
        let more = GATHERED_BLOCKS * u64::from(geometry.pages_per_block());
        let gathered = translation.min(translation.div_ceil(planes) + more);
        let needed = logical.next_multiple_of(planes) + gathered * planes;
        if needed > usable(reserved) {
            let over = (needed - usable(reserved)) as f64;
            let with_one_stream = reserved + 1 - streams;
            let or_single = if needed <= usable(with_one_stream) { SINGLE_KEEPS_FEWER } else { "" };
            let fits = ((logical as f64 - over) / f64::from(geometry.pages())).max(0.0);
            problems.push(format!(
                "capacity: {logical} logical and {translation} translation pages (up to {gathered} in a plane), but only \
                 {} of {} physical pages can hold them when every plane keeps {reserved} blocks for cleaning ({kept} \
                 free, {} open); lower capacity.utilization to {:.3} or less, or use more and smaller blocks{or_single}",
                usable(reserved),
                geometry.pages(),
                streams + 1,
                (fits * 1000.0).floor() / 1000.0,
            ));
        }
        problems
    }

    fn reserve(context: &SchemeContext, flash: &Flash) -> Option<Reserve> {
        let kept = context.gc.free_blocks_min.max(Self::kept_free(context, flash));
        let per_page = u64::from(Self::entries_per_page(context, flash));
        Some(Reserve {
            blocks: u64::from(kept) + u64::from(context.streams(flash)) + 1,
            map_pages: u64::from(context.logical_pages).div_ceil(per_page),
        })
    }

    fn table_bytes(settings: &DftlSettings, logical_pages: u32, geometry: &Geometry) -> u64 {
        let cached = settings.entries(logical_pages, geometry.pages_per_block());
        u64::from(logical_pages) * 4 + u64::from(cached) * HELD_ENTRY_BYTES
    }

    fn new(context: &SchemeContext, flash: &mut Flash) -> Self {
        let mut scheme = Self::unformatted(context, flash);
        scheme.format(flash);
        scheme
    }

    fn owners(context: &SchemeContext, flash: &Flash) -> u32 {
        context.logical_pages + context.logical_pages.div_ceil(Self::entries_per_page(context, flash))
    }

    /// The places of translation pages, and entries that these lack: those dirty in the cache, and those of pages that paused cleans
    /// have moved.
    fn checkpoint_bytes_max(context: &SchemeContext, flash: &Flash) -> u64 {
        let (entry, geometry) = (u64::from(context.ftl.entry_bytes), flash.geometry());
        let pages = u64::from(context.logical_pages.div_ceil(Self::entries_per_page(context, flash)));
        let cached = context.ftl.schemes.dftl.entries(context.logical_pages, geometry.pages_per_block());
        let moved = u64::from(geometry.planes()) * u64::from(geometry.pages_per_block());
        let lacking = (u64::from(cached) + moved).min(u64::from(context.logical_pages));
        pages * entry + lacking * (LPN_BYTES + entry)
    }

    fn map_size(&self, flash: &Flash) -> MapSize {
        let mut lacking: Vec<u64> = self.map.directory.iter().map(|page| u64::from(page.dirty())).collect();
        let number = |ppn: u32| match ppn {
            NONE => 0,
            ppn => flash.spare_area(Ppn(ppn)).map_or(0, |spare| spare.sequence),
        };
        for lpn in (0..).take(self.map.table.len()).filter(|lpn| self.map.slot_of(*lpn) == NONE) {
            let (page, ppn) = (self.map.page_of(lpn) as usize, self.map.table[lpn as usize]);
            lacking[page] += u64::from(number(ppn) > number(self.map.directory[page].ppn));
        }
        let entry = u64::from(self.entry_bytes);
        let bytes = lacking.len() as u64 * entry + lacking.iter().sum::<u64>() * (LPN_BYTES + entry);
        let stale = (0..).zip(&lacking).filter(|(_, lacking)| **lacking > 0).map(|(page, _)| page).collect();
        MapSize { bytes, stale }
    }

    /// The spare areas of data pages say more than the translation pages, which lack what was dirty in the cache. Those that are
    /// older than a page that they name are written again.
    fn mount(context: &SchemeContext, scan: &mut Scan, flash: &mut Flash) -> Result<Self, MountError> {
        let mut scheme = Self::unformatted(context, flash);
        let logical_pages = context.logical_pages;
        scan.undo_cleans(flash);
        let map = &mut scheme.map;
        adopt_pages(scan, flash, |owner, ppn| match owner.checked_sub(logical_pages) {
            None => map.table[owner as usize] = ppn.0,
            Some(page) => map.directory[page as usize].ppn = ppn.0,
        });
        if scan.checkpoint > 0 {
            // It names the translation pages; which pages are current, and where, these say.
            for page in scheme.map.directory.iter().filter(|page| page.ppn != NONE) {
                flash.read_internal(Ppn(page.ppn), Cause::Translation);
            }
        }
        scheme.planes.adopt(scan, Self::kept_free(context, flash), flash);
        for page in scheme.stale_pages(scan) {
            let plane = scheme.plane_with_room(None, stream_id(scheme.translation), flash)?;
            scheme.program_translation(plane, page, Cause::Translation, flash);
        }
        Ok(scheme)
    }
}

impl Dftl {
    /// Translation pages older than a page that they name, or than its trim.
    fn stale_pages(&self, scan: &Scan) -> Vec<u32> {
        let logical_pages = u32::try_from(self.map.table.len()).expect("logical pages are counted in 32 bits");
        let mut newest = vec![0; self.map.directory.len()];
        let mut names = |lpn: u32, sequence: u64| {
            let of_page = &mut newest[self.map.page_of(lpn) as usize];
            *of_page = sequence.max(*of_page);
        };
        for (lpn, copy) in scan.all().filter(|(owner, _)| *owner < logical_pages) {
            names(lpn, copy.sequence);
        }
        for (first, pages, sequence) in scan.trims.iter().copied() {
            (first..first + pages).filter(|lpn| *lpn < logical_pages).for_each(|lpn| names(lpn, sequence));
        }
        for page in scan.stale.iter().copied() {
            newest[page as usize] = newest[page as usize].max(scan.checkpoint);
        }
        let written = |page: u32| scan.newest(logical_pages + page).map_or(0, |copy| copy.version);
        (0..).zip(newest).filter(|(page, newest)| *newest > written(*page)).map(|(page, _)| page).collect()
    }

    /// The scheme without its translation pages on flash.
    fn unformatted(context: &SchemeContext, flash: &mut Flash) -> Self {
        let settings = &context.ftl.schemes.dftl;
        let geometry = *flash.geometry();
        let placement = context.placement(flash);
        let translation = usize::from(placement.streams());
        let entries_per_page = Self::entries_per_page(context, flash);
        let capacity = settings.entries(context.logical_pages, geometry.pages_per_block());
        let made_for = MapCacheContext { entries: capacity, entries_per_page };
        let policy = match context.foreign.and_then(|foreign| Some((foreign.map_cache.as_deref()?, &foreign.fault))) {
            Some((maker, fault)) => {
                let rng = context.seed.stream("ftl.dftl.replacement");
                MapCache::Foreign(ForeignMapCache::new(maker, made_for, rng, fault.clone()))
            }
            None => settings.replacement.build(&settings.replacements, made_for),
        };
        let prefetch =
            match context.foreign.and_then(|foreign| Some((foreign.map_prefetch.as_deref()?, &foreign.fault))) {
                Some((maker, fault)) => {
                    let rng = context.seed.stream("ftl.dftl.prefetch");
                    Some(MapPrefetch::Foreign(ForeignMapPrefetch::new(maker, made_for, rng, fault.clone())))
                }
                None => settings.prefetch.map(|name| name.build(&settings.prefetches, made_for)),
            };
        let map = Mapping::new(context.logical_pages, entries_per_page, capacity, policy);
        let pages = map.directory.len();
        let policy_groups = map.policy.groups();
        // The first one is the paper's GC_threshold. A paused clean may have to open a block for each frontier.
        let kept_free = Self::kept_free(context, flash);
        let cleaner = Cleaner::new(context.gc.free_blocks_min.max(kept_free), kept_free, kept_free - 1);
        let mut scheme = Self {
            map,
            planes: Planes::new(context, translation + 1, cleaner, flash),
            translation,
            invalidate: context.gc.invalidate,
            batch_on_evict: settings.batch_on_evict || policy_groups,
            share_reads: settings.same_page_read == SamePageRead::Shared,
            placement,
            entry_bytes: context.ftl.entry_bytes,
            figures: Figures::default(),
            ghosts: None,
            exchanges: !policy_groups && prefetch.is_none(),
            prefetching: prefetch.map(|policy| Box::new(Prefetching::new(policy, settings.prefetch_evicts, pages))),
            size_key: settings.size_key(),
            listed: Listed::default(),
        };
        scheme.planes.all.iter_mut().for_each(|plane| plane.last_stream = Some(Vec::new()));
        scheme
    }
}

impl Ftl for Dftl {
    #[inline]
    fn read(&mut self, run: LpnRun, flash: &mut Flash) {
        self.begin_run();
        let end = run.first.0 + run.pages;
        for lpn in run.iter() {
            let (ppn, loaded) = match self.translate(lpn, end, flash) {
                Ok((slot, loaded)) => (self.map.slots[slot as usize].ppn, loaded),
                Err(_) => self.consult(lpn, flash),
            };
            if ppn == NONE {
                flash.read_unmapped(lpn);
            } else {
                flash.next_waits_for_mark(loaded);
                flash.read(Ppn(ppn), lpn);
            }
        }
    }

    #[inline]
    fn write(&mut self, run: LpnRun, flash: &mut Flash) -> Result<(), OutOfSpace> {
        self.begin_run();
        for lpn in run.iter() {
            self.write_page(lpn, run, flash)?;
        }
        Ok(())
    }

    fn trim(&mut self, run: LpnRun, flash: &mut Flash) {
        self.begin_run();
        let end = run.first.0 + run.pages;
        for lpn in run.iter() {
            let slot = match self.translate(lpn, end, flash) {
                Ok((slot, _)) => slot,
                Err(_) => {
                    self.consult(lpn, flash);
                    let slot = self.map.spare_slot();
                    self.enter(slot, lpn.0);
                    slot
                }
            };
            let old = self.map.slots[slot as usize].ppn;
            if old != NONE {
                self.map.change(slot, NONE);
                self.planes.drop_copy(Ppn(old), flash);
            }
        }
    }

    #[inline]
    fn lookup(&self, lpn: Lpn, _: &Flash) -> Option<Ppn> {
        let ppn = self.map.resolve(lpn.0);
        (ppn != NONE).then_some(Ppn(ppn))
    }

    fn audit(&self, flash: &Flash, violations: &mut Vec<Violation>) {
        let mut mapped = 0u64;
        for lpn in (0u32..).zip(&self.map.table).map(|(lpn, _)| Lpn(lpn)) {
            let Some(ppn) = self.lookup(lpn, flash) else { continue };
            mapped += 1;
            let owner = flash.nand().spare(ppn);
            if owner != Some(lpn) || !flash.is_valid(ppn) {
                violations.push(Violation(format!(
                    "lpn {} maps to page {}, which names {owner:?} and is {}",
                    lpn.0,
                    ppn.0,
                    if flash.is_valid(ppn) { "valid" } else { "invalid" }
                )));
            }
        }
        self.map.audit(flash, violations);
        self.prefetching.iter().for_each(|prefetching| prefetching.audit(&self.map, violations));
        let blocks = || (0..flash.geometry().blocks()).map(BlockId);
        let valid = flash.pages_valid_in_all();
        let expected = mapped + self.map.directory.len() as u64;
        if valid != expected {
            violations.push(Violation(format!(
                "{mapped} logical and {} translation pages are in use, but {valid} flash pages are valid",
                self.map.directory.len()
            )));
        }
        for block in blocks() {
            let translation =
                |ppn: Ppn| flash.nand().spare(ppn).is_some_and(|owner| owner.index() >= self.map.table.len());
            let first = flash.valid_pages(block).next().is_some_and(translation);
            if flash.valid_pages(block).any(|ppn| translation(ppn) != first) {
                violations.push(Violation(format!("block {} holds data and translation pages", block.0)));
            }
        }
        self.planes.audit(flash, violations);
    }

    #[allow(clippy::cast_precision_loss)] // figures for people
    fn figures(&self) -> SchemeFigures {
        let Cleaner { collections, victim_pages_invalid, .. } = self.planes.cleaner;
        let capacity = u64::from(self.map.capacity);
        let extra = [
            ("cleans_switch", self.figures.cleans_switch),
            ("cleans_partial", self.figures.cleans_partial),
            ("cleans_full", self.figures.cleans_full),
            ("cleans_translation", self.figures.cleans_translation),
            ("lazy_updates", self.figures.lazy_updates),
            ("evict_updates", self.figures.evict_updates),
            ("gc_updates", self.figures.gc_updates),
            ("gc_update_pages", self.figures.gc_update_pages),
            ("written_through_pages", self.figures.written_through),
            ("cmt_entries", capacity),
            ("translation_pages", self.map.directory.len() as u64),
        ];
        SchemeFigures {
            collections,
            victim_pages_invalid,
            mapping_cache: Some(self.figures.cache.clone()),
            handles: self.placement.handles().to_vec(),
            ram_bytes: capacity * settings::CACHED_ENTRY_BYTES
                + self.map.directory.len() as u64 * u64::from(self.entry_bytes),
            extra: extra.into_iter().map(|(name, count)| (name.to_owned(), count as f64)).collect(),
            ..SchemeFigures::default()
        }
    }

    fn reset_figures(&mut self) {
        self.figures = Figures::default();
        self.prefetching.iter_mut().for_each(|prefetching| prefetching.reset_figures());
        self.planes.cleaner.reset_figures();
        self.placement.reset_figures();
    }

    #[inline(always)]
    fn expect_far(&self, lpn: Lpn) {
        prefetch(&self.map.table, lpn.index());
    }

    #[inline(always)]
    fn expect_near(&self, lpn: Lpn, flash: &Flash) {
        match (self.map.slot_of(lpn.0), self.map.table[lpn.index()]) {
            (NONE, NONE) => {}
            (NONE, stored) => flash.expect_invalidation(Ppn(stored)),
            (slot, _) => {
                prefetch(&self.map.slots, slot as usize);
                self.map.policy.expect(slot);
            }
        }
    }
}

impl CleansInSteps for Dftl {
    fn clean(&mut self, budget: u32, flash: &mut Flash) -> Progress {
        let (planes, mut moves) = self.parts();
        planes.clean(budget, &mut moves, flash)
    }

    fn follow_schedule(&mut self, plane: PlaneId, occasion: Occasion, flash: &mut Flash) -> Progress {
        let (planes, mut moves) = self.parts();
        planes.cleaner.follow_schedule(plane.index(), occasion, &mut planes.all, &mut moves, flash)
    }

    fn rewrite(&mut self, block: BlockId, flash: &mut Flash) -> Progress {
        let (planes, mut moves) = self.parts();
        planes.cleaner.rewrite(block, &mut planes.all, &mut moves, flash)
    }

    fn written_planes(&mut self, note: &mut dyn FnMut(PlaneId, u32, Nanos)) {
        self.planes.written_planes(note);
    }
}

impl Dftl {
    /// For whoever tells of the open blocks of handles.
    pub(crate) fn planes_and_placement(&mut self) -> (&mut Planes, &mut Placement) {
        (&mut self.planes, &mut self.placement)
    }

    /// Writes the whole, still empty table when the drive is built; its pages take planes in turn.
    fn format(&mut self, flash: &mut Flash) {
        let logical_pages = self.map.table.len();
        for page in 0..self.map.directory.len() {
            let plane = &mut self.planes.all[self.planes.order[page % self.planes.order.len()] as usize];
            if !plane.has_room(stream_id(self.translation)) {
                plane.open(stream_id(self.translation), flash);
            }
            let (ppn, is_last) = plane.take(self.translation).expect("a block is open");
            let owner = u32::try_from(logical_pages + page).expect("checked by problems");
            flash.format(ppn, Lpn(owner));
            if is_last {
                plane.seal_full(self.translation, ppn, flash);
            }
            self.map.directory[page].ppn = ppn.0;
        }
    }

    /// A run begins.
    #[inline(always)]
    fn begin_run(&mut self) {
        if let Some(prefetching) = &mut self.prefetching {
            prefetching.begin_run();
        }
    }

    /// The slot of the cached entry of `lpn`, which is loaded if necessary, and the mark of the read in this run that loaded
    /// it. The run ends before page `end`.
    #[inline(always)]
    fn translate(&mut self, lpn: Lpn, end: u32, flash: &mut Flash) -> Result<(u32, u32), OutOfSpace> {
        self.figures.cache.lookups += 1;
        match self.map.slot_of(lpn.0) {
            NONE => self.load(lpn, end, flash),
            slot => {
                self.figures.cache.hits += 1;
                self.map.policy.touched(slot);
                Ok((slot, if self.prefetching.is_some() { self.found(slot) } else { 0 }))
            }
        }
    }

    /// Loads the entry of `lpn` from its translation page, after making room for it.
    fn load(&mut self, lpn: Lpn, end: u32, flash: &mut Flash) -> Result<(u32, u32), OutOfSpace> {
        if self.exchanges && self.map.cached() == self.map.capacity {
            self.load_in_place(lpn, flash)
        } else {
            self.load_beside(lpn, end, flash)
        }
    }

    /// As [`Dftl::load`], into an empty slot.
    #[inline(never)]
    fn load_beside(&mut self, lpn: Lpn, end: u32, flash: &mut Flash) -> Result<(u32, u32), OutOfSpace> {
        if self.prefetching.is_some() {
            return self.load_with_others(lpn, end - 1 - lpn.0, flash);
        }
        let page = self.map.page_of(lpn.0);
        if let Some(ghosts) = &mut self.ghosts {
            ghosts.wanted(lpn.0);
        }
        let mut shared = None;
        while self.map.cached() >= self.map.capacity {
            shared = self.evict(page, flash)?;
        }
        let slot = self.map.spare_slot();
        let mark = shared.unwrap_or_else(|| self.read_translation(page, flash));
        self.map.fill(slot, lpn.0);
        self.map.expect_eviction();
        Ok((slot, mark))
    }

    /// As [`Dftl::load`] into a full cache: one entry leaves, and its slot takes the new one.
    #[inline(always)]
    fn load_in_place(&mut self, lpn: Lpn, flash: &mut Flash) -> Result<(u32, u32), OutOfSpace> {
        let page = self.map.page_of(lpn.0);
        let slot = self.map.victim().expect("a full cache has a victim");
        let shared = if self.map.is_dirty(slot) { self.write_back(slot, page, flash)? } else { None };
        self.figures.cache.evictions += 1;
        let mark = shared.unwrap_or_else(|| self.read_translation(page, flash));
        self.map.replace(slot, lpn.0);
        Ok((slot, mark))
    }

    /// Reads a translation page for a lookup and marks the read.
    #[inline(always)]
    fn read_translation(&self, page: u32, flash: &mut Flash) -> u32 {
        flash.read_internal(Ppn(self.map.directory[page as usize].ppn), Cause::Translation);
        flash.mark()
    }

    /// Writes the dirty entry of a slot, which is about to be evicted, to its translation page. Returns the mark of the
    /// read if it also serves the load of an entry of `wanted`.
    fn write_back(&mut self, slot: u32, wanted: u32, flash: &mut Flash) -> Result<Option<u32>, OutOfSpace> {
        // Make room first: cleaning may change entries and move translation pages.
        let plane = self.plane_with_room(None, stream_id(self.translation), flash)?;
        let page = self.map.page_of(self.map.slots[slot as usize].lpn);
        let read = self.read_translation(page, flash);
        self.figures.evict_updates += u64::from(if self.batch_on_evict {
            self.map.store_all(page)
        } else {
            self.map.store(slot);
            1
        });
        flash.next_waits_for_mark(read);
        self.program_translation(plane, page, Cause::Translation, flash);
        self.figures.cache.dirty_evictions += 1;
        Ok((self.share_reads && page == wanted).then_some(read))
    }

    /// Reads an entry without the cache, on a drive that can't make room in it. Returns the page and the mark of the
    /// read.
    #[cold]
    fn consult(&mut self, lpn: Lpn, flash: &mut Flash) -> (u32, u32) {
        let mark = self.read_translation(self.map.page_of(lpn.0), flash);
        (self.map.resolve(lpn.0), mark)
    }

    #[inline(always)]
    fn write_page(&mut self, lpn: Lpn, run: LpnRun, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let (slot, loaded) = self.translate(lpn, run.first.0 + run.pages, flash)?;
        let mapped = self.map.slots[slot as usize].ppn;
        let old = (mapped != NONE).then_some(Ppn(mapped));
        let stream = self.placement.host(lpn, old, run, flash);
        if self.invalidate == InvalidateOrder::BeforeGc
            && let Some(old) = old
        {
            self.map.change(slot, NONE);
            self.planes.drop_copy(old, flash);
            flash.old_content_dropped(lpn);
        }
        let plane = self.plane_with_room(Some(lpn), stream, flash)?;
        if self.planes.asks_schedule {
            self.planes.note_written(plane, 1);
        }
        // Cleaning may have moved the old copy; the entry itself stays where it is.
        let old = self.map.slots[slot as usize].ppn;
        flash.next_waits_for_mark(loaded);
        let ppn = self.planes.all[plane].program(usize::from(stream), lpn, Cause::Host, flash);
        self.map.change(slot, ppn.0);
        if old != NONE {
            self.planes.drop_copy(Ppn(old), flash);
        }
        Ok(())
    }

    /// The plane that takes a data page (or a translation page if there is no `lpn`), with room in the frontier of
    /// `stream`.
    #[inline(always)]
    fn plane_with_room(&mut self, lpn: Option<Lpn>, stream: u8, flash: &mut Flash) -> Result<usize, OutOfSpace> {
        let page = lpn.map(|lpn| Written { lpn, old: None, named: 0, flash });
        let turn = self.planes.next_turn(page, stream);
        let plane = self.planes.order[turn] as usize;
        if self.planes.all[plane].has_room(stream) { Ok(plane) } else { self.make_room(turn, lpn, stream, flash) }
    }
}

/// The number of a stream in the type that frontiers use.
fn stream_id(stream: usize) -> u8 {
    u8::try_from(stream).expect("streams are counted in 8 bits")
}
