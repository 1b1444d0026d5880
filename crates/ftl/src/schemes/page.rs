//! Page mapping with the whole map in RAM: the ideal page FTL of the papers (baseline of Gupta 2009; FTL of the
//! container-marking report).
//!
//! A page goes to the plane in turn ([`Planes`]), to the frontier that the placement policy chooses; cleaning moves the
//! valid pages of a victim within their plane ([`crate::cleaner`]).
//!
//! Invariants: `l2p` and the spare areas of valid pages are inverse; every block is free, open, sealed, retired or bad;
//! a plane never has fewer than one free block when a clean starts, which is the room that its copies need.

use super::{BuildScheme, Reserve, SINGLE_KEEPS_FEWER, SchemeContext};
use crate::cleaner::{Cleaner, Effort, Moving, PageMapped, list_pages_by_stream};
use crate::durable::{MountError, Scan, adopt_pages};
use crate::groups::Written;
use crate::plane::{Plane, good_blocks};
use crate::planes::{Planes, held_by_all, parts_problem};
use crate::policies::placement::Placement;
use crate::policies::schedule::Occasion;
use crate::registry::NoSettings;
use crate::{
    Cause, CleansInSteps, Flash, Ftl, InvalidateOrder, LpnRun, MapSize, OutOfSpace, Progress, SchemeFigures, ServesRam,
    Violation, Watch, write_runs,
};
use flashwright_block::Nanos;
use flashwright_nand::{BlockId, Lpn, PlaneId, Ppn, prefetch, table};
use serde::{Deserialize, Serialize};

const UNMAPPED: u32 = u32::MAX;

/// `ftl.scheme = "page"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PageMap {
    l2p: Vec<u32>,
    planes: Planes,
    invalidate: InvalidateOrder,
    placement: Placement,
    /// The first of the host's frontiers: see [`crate::slc`].
    host_frontiers: u8,
    entry_bytes: u32,
}

impl BuildScheme for PageMap {
    const NAME: &'static str = "page";
    const ABOUT: &'static str = "page mapping, the whole map in RAM (the ideal page FTL of Gupta 2009)";
    const LEVELS_WEAR: bool = true;
    const ASKS_POLICIES: bool = true;
    const CLEANS_IN_STEPS: bool = true;
    const CACHES_IN_SLC: bool = true;
    const HAS_SETS: bool = true;
    const TAKES_CHECKPOINTS: bool = true;
    type Settings = NoSettings;

    fn problems(context: &SchemeContext, flash: &Flash) -> Vec<String> {
        let geometry = flash.geometry();
        let reserved = reserved(context, flash);
        let (kept, _) = limits(context);
        let mut problems = context.policy_problems(context.streams(flash), flash);
        if let Some(problem) = parts_problem(context, flash) {
            problems.push(problem);
            return problems; // capacity depends on them
        }
        let slc_problems = context.slc.map_or(Vec::new(), |slc| slc.problems(context, reserved, flash));
        if !slc_problems.is_empty() {
            problems.extend(slc_problems);
            return problems; // capacity depends on the cache
        }
        // What the planes hold if each keeps so many blocks.
        let usable = |reserved: u64| {
            let room = |plane| {
                let good = good_blocks(flash, PlaneId(plane));
                let good = good - context.slc.map_or(0, |slc| slc.own_blocks(good));
                good.saturating_sub(reserved) * u64::from(geometry.pages_per_block())
            };
            held_by_all(context, flash, room)
        };
        let (fits, logical) = (usable(reserved), u64::from(context.logical_pages));
        if logical > fits {
            let with_one_stream = u64::from(kept) + context.frontiers(1);
            let or_single = if usable(with_one_stream) >= logical { SINGLE_KEEPS_FEWER } else { "" };
            problems.push(format!(
                "capacity: {logical} logical pages, but only {fits} of {} physical pages can hold data when every \
                 plane keeps {reserved} blocks for cleaning (gc.free-blocks-min = {kept}, {} open); lower \
                 capacity.utilization to {:.3} or less, or use more and smaller blocks{or_single}",
                geometry.pages(),
                reserved - u64::from(kept),
                (fits as f64 / f64::from(geometry.pages()) * 1000.0).floor() / 1000.0,
            ));
        }
        problems
    }

    fn reserve(context: &SchemeContext, flash: &Flash) -> Option<Reserve> {
        let least = (0..flash.geometry().planes()).map(|plane| good_blocks(flash, PlaneId(plane))).min();
        let of_cache = context.slc.map_or(0, |slc| slc.own_blocks(least.unwrap_or(0)));
        Some(Reserve { blocks: reserved(context, flash) + of_cache, map_pages: 0 })
    }

    fn new(context: &SchemeContext, flash: &mut Flash) -> Self {
        let placement = context.placement(flash);
        let streams = placement.streams();
        if let Some(slc) = context.slc {
            flash.allow_slc(slc.pages_per_block(flash));
        }
        let (free_blocks_min, kept) = limits(context);
        let cleaner = Cleaner::new(free_blocks_min, 0, kept);
        let planes = Planes::new(context, usize::from(streams), cleaner, flash);
        if let Some(of_plane) = planes.groups_of_planes() {
            flash.count_by_group(of_plane);
        }
        Self {
            l2p: table(UNMAPPED, context.logical_pages as usize),
            planes,
            invalidate: context.gc.invalidate,
            placement,
            host_frontiers: if context.slc.is_some() { streams } else { 0 },
            entry_bytes: context.ftl.entry_bytes,
        }
    }

    fn checkpoint_bytes_max(context: &SchemeContext, _: &Flash) -> u64 {
        u64::from(context.logical_pages) * u64::from(context.ftl.entry_bytes)
    }

    fn map_size(&self, _: &Flash) -> MapSize {
        MapSize { bytes: self.l2p.len() as u64 * u64::from(self.entry_bytes), stale: Vec::new() }
    }

    fn mount(context: &SchemeContext, scan: &mut Scan, flash: &mut Flash) -> Result<Self, MountError> {
        let mut scheme = Self::new(context, flash);
        scan.undo_cleans(flash);
        adopt_pages(scan, flash, |lpn, ppn| scheme.l2p[lpn as usize] = ppn.0);
        scheme.planes.adopt(scan, limits(context).0, flash);
        Ok(scheme)
    }
}

/// See [`Cleaner::new`]: free blocks that writes leave, and those with which work may pause.
fn limits(context: &SchemeContext) -> (u32, u32) {
    let free_blocks_min = context.gc.free_blocks_min.max(1);
    context.slc.map_or((free_blocks_min, 1), |slc| slc.limits(free_blocks_min))
}

/// Blocks of a plane that cleaning keeps free or open.
fn reserved(context: &SchemeContext, flash: &Flash) -> u64 {
    u64::from(limits(context).0) + context.frontiers(context.streams(flash))
}

impl Ftl for PageMap {
    #[inline(always)]
    fn write(&mut self, run: LpnRun, flash: &mut Flash) -> Result<(), OutOfSpace> {
        for lpn in run.iter() {
            self.write_page(lpn, run, flash)?;
        }
        Ok(())
    }

    fn trim(&mut self, run: LpnRun, flash: &mut Flash) {
        for lpn in run.iter() {
            let old = std::mem::replace(&mut self.l2p[lpn.index()], UNMAPPED);
            if old != UNMAPPED {
                self.planes.drop_copy(Ppn(old), flash);
            }
        }
    }

    #[inline]
    fn lookup(&self, lpn: Lpn, _: &Flash) -> Option<Ppn> {
        let ppn = self.l2p[lpn.index()];
        (ppn != UNMAPPED).then_some(Ppn(ppn))
    }

    fn audit(&self, flash: &Flash, violations: &mut Vec<Violation>) {
        let mut mapped = 0u64;
        for (lpn, ppn) in self.l2p.iter().enumerate().filter(|(_, ppn)| **ppn != UNMAPPED) {
            mapped += 1;
            let owner = flash.nand().spare(Ppn(*ppn)).map(Lpn::index);
            if owner != Some(lpn) || !flash.is_valid(Ppn(*ppn)) {
                violations.push(Violation(format!(
                    "lpn {lpn} maps to page {ppn}, which names {owner:?} and is {}",
                    if flash.is_valid(Ppn(*ppn)) { "valid" } else { "invalid" }
                )));
            }
        }
        let valid = flash.pages_valid_in_all();
        if valid != mapped {
            violations.push(Violation(format!("{mapped} logical pages are mapped, but {valid} flash pages are valid")));
        }
        self.planes.audit(flash, violations);
    }

    fn figures(&self) -> SchemeFigures {
        SchemeFigures {
            extra: self.slc_figures(),
            handles: self.placement.handles().to_vec(),
            collections: self.planes.cleaner.collections,
            victim_pages_invalid: self.planes.cleaner.victim_pages_invalid,
            ram_bytes: self.l2p.len() as u64 * u64::from(self.entry_bytes),
            ..SchemeFigures::default()
        }
    }

    fn reset_figures(&mut self) {
        self.planes.cleaner.reset_figures();
        self.placement.reset_figures();
        for plane in &mut self.planes.all {
            let room = plane.slc_room();
            plane.slc.iter_mut().for_each(|slc| slc.reset_figures(room));
        }
    }

    #[inline(always)]
    fn expect_far(&self, lpn: Lpn) {
        prefetch(&self.l2p, lpn.index());
    }

    #[inline(always)]
    fn expect_near(&self, lpn: Lpn, flash: &Flash) {
        if let Some(ppn) = self.lookup(lpn, flash) {
            flash.expect_invalidation(ppn);
        }
    }
}

impl CleansInSteps for PageMap {
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

    fn fold(&mut self, plane: PlaneId, budget: u32, flash: &mut Flash) -> Progress {
        let (planes, mut moves) = self.parts();
        planes.cleaner.fold(plane.index(), budget, &mut planes.all, &mut moves, flash)
    }

    fn written_planes(&mut self, note: &mut dyn FnMut(PlaneId, u32, Nanos)) {
        self.planes.written_planes(note);
    }
}

impl ServesRam for PageMap {
    fn watch(&mut self, watch: Watch, flash: &Flash) {
        if watch.reclaimable {
            self.planes.watch_fewest(flash);
        }
    }

    fn reclaimable_pages(&self, flash: &Flash) -> Option<u32> {
        self.planes.reclaimable_pages(flash)
    }

    fn supersede(&mut self, lpns: &[u32], flash: &mut Flash) {
        if self.invalidate == InvalidateOrder::BeforeGc {
            lpns.iter().for_each(|lpn| self.trim(LpnRun { first: Lpn(*lpn), pages: 1, stream: 0 }, flash));
        }
    }

    fn write_block(&mut self, lpns: &[u32], flash: &mut Flash) -> Result<(), OutOfSpace> {
        // Beside an SLC cache, the cache takes them.
        let own = (!lpns.is_empty() && self.host_frontiers == 0).then(|| {
            let (planes, mut moves) = self.parts();
            planes.own_block(&mut moves, flash)
        });
        let Some((plane, block)) = own.flatten() else {
            return write_runs(lpns, |run| self.write(run, flash));
        };
        // Old copies may lie in other planes.
        let mut places = Vec::with_capacity(lpns.len());
        self.planes.all[plane].fill_own(block, lpns, flash, |lpn, ppn| places.push((lpn, ppn)));
        if self.planes.asks_schedule {
            self.planes.note_written(plane, u32::try_from(lpns.len()).expect("pages of a block fit 32 bits"));
        }
        for (lpn, ppn) in places {
            let old = std::mem::replace(&mut self.l2p[lpn as usize], ppn.0);
            if old != UNMAPPED {
                self.planes.drop_copy(Ppn(old), flash);
            }
        }
        Ok(())
    }
}

impl PageMap {
    #[inline(always)]
    fn write_page(&mut self, lpn: Lpn, run: LpnRun, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let mapped = self.lookup(lpn, flash);
        let stream = self.placement.host(lpn, mapped, run, flash) + self.host_frontiers;
        let mut old = mapped;
        if self.invalidate == InvalidateOrder::BeforeGc {
            self.drop_before(lpn, old.take(), flash);
        }
        let page = Written { lpn, old: mapped, named: run.stream, flash };
        let turn = self.planes.next_turn(Some(page), stream);
        let mut plane = self.planes.order[turn] as usize;
        let mut taken = self.planes.all[plane].take(usize::from(stream));
        if taken.is_none() {
            plane = self.make_room(turn, lpn, stream, flash)?;
            taken = self.planes.all[plane].take(usize::from(stream));
            old = self.lookup(lpn, flash); // cleaning may have moved it
        }
        let (ppn, is_last) = taken.expect("room was made");
        if self.planes.asks_schedule {
            self.planes.note_written(plane, 1);
        }
        flash.program(ppn, lpn, Cause::Host);
        self.l2p[lpn.index()] = ppn.0;
        if is_last {
            self.planes.all[plane].seal_full(usize::from(stream), ppn, flash);
        }
        if let Some(old) = old {
            self.planes.drop_copy(old, flash);
        }
        Ok(())
    }

    /// Drops the old copy of a page before room is made for the new one.
    #[inline(never)]
    fn drop_before(&mut self, lpn: Lpn, old: Option<Ppn>, flash: &mut Flash) {
        if let Some(old) = old {
            self.l2p[lpn.index()] = UNMAPPED;
            self.planes.drop_copy(old, flash);
            flash.old_content_dropped(lpn);
        }
    }

    /// A plane with room in the frontier of `stream`: the one in `turn` if it can.
    #[inline(never)]
    fn make_room(&mut self, turn: usize, lpn: Lpn, stream: u8, flash: &mut Flash) -> Result<usize, OutOfSpace> {
        let (planes, mut moves) = self.parts();
        planes.make_room(turn, Some(lpn), stream, &mut moves, flash)
    }

    /// What the SLC cache did, if there is one.
    #[allow(clippy::cast_precision_loss)] // figures for people
    fn slc_figures(&self) -> Vec<(String, f64)> {
        let caches = || self.planes.all.iter().filter_map(|plane| Some((plane, plane.slc.as_ref()?)));
        if caches().next().is_none() {
            return Vec::new();
        }
        let cleaner = &self.planes.cleaner;
        let figures = [
            ("slc_pages_written", caches().map(|(plane, slc)| slc.pages_written(plane.slc_room())).sum()),
            ("slc_pages_folded", cleaner.pages_folded),
            ("slc_blocks_folded", cleaner.blocks_folded),
            ("slc_blocks_in_use", caches().map(|(_, slc)| u64::from(slc.in_use)).sum()),
        ];
        figures.into_iter().map(|(name, count): (&str, u64)| (name.to_owned(), count as f64)).collect()
    }

    /// For whoever tells of the open blocks of handles.
    pub(crate) fn planes_and_placement(&mut self) -> (&mut Planes, &mut Placement) {
        (&mut self.planes, &mut self.placement)
    }

    fn parts(&mut self) -> (&mut Planes, Moves<'_>) {
        (&mut self.planes, Moves { l2p: &mut self.l2p, placement: &mut self.placement })
    }
}

/// The parts of the scheme that cleaning changes.
struct Moves<'a> {
    l2p: &'a mut [u32],
    placement: &'a mut Placement,
}

impl PageMapped for Moves<'_> {
    const LAST_RESORT: bool = false;
    const LEVELS_FIRST: bool = false;

    #[inline]
    fn choose(
        &mut self,
        plane: &mut Plane,
        _: usize,
        effort: &mut Effort,
        moving: &mut Vec<Moving>,
        _: &mut Vec<u32>,
        flash: &mut Flash,
    ) -> Option<(BlockId, Cause)> {
        let slc = plane.slc.as_ref().filter(|slc| effort.folds || slc.folding_frees());
        let oldest = slc.and_then(|slc| slc.sealed.front());
        let block = match effort.asked.as_ref().or(oldest) {
            Some(block) => *block,
            None if effort.folds => return None,
            None => BlockId(plane.first_block.0 + plane.pick(flash)?),
        };
        let full = flash.pages_valid(block) == flash.geometry().pages_per_block();
        if full && effort.asked.is_none() && (effort.voluntary || plane.victim.picks_fewest()) {
            return None; // if the policy picks the fewest, no sealed block has an invalid page
        }
        Moving::clear(moving, usize::from(self.placement.streams()));
        let (l2p, placement) = (&*self.l2p, &mut *self.placement);
        list_pages_by_stream(block, moving, placement, flash, |lpn| prefetch(l2p, lpn as usize));
        Some((block, Cause::Gc))
    }

    #[inline(always)]
    fn moved(&mut self, owners: &[u32], first: u32, _: &mut Vec<u32>) {
        self.placement.moved(owners, Ppn(first));
        let l2p = &mut *self.l2p;
        owners.iter().zip(first..).for_each(|(lpn, ppn)| l2p[*lpn as usize] = ppn);
    }

    /// FIFO and random policies may choose fully valid blocks; twice as many choices as blocks without a gain mean that
    /// there is nothing to gain.
    fn patience(flash: &Flash) -> u32 {
        2 * flash.geometry().blocks_per_plane()
    }

    fn weigh(effort: &mut Effort, gained: u32, _: &Plane, _: &Flash) {
        effort.fruitless += u32::from(gained == 0);
    }
}
