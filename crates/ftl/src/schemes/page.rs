//! Page mapping with the whole map in RAM: the papers' ideal page FTL (Gupta 2009, baseline; the container-marking
//! report's FTL).
//!
//! Every plane is a unit of its own: free pool, frontiers and cleaning. A page goes to the unit whose turn it is, in
//! the frontier that the placement policy names; cleaning moves the valid pages of a victim within their unit.
//!
//! ```text
//!   write(lpn) ─► unit in turn ─► frontier has room? ── no ─► free > gc.free-blocks-min? ── no ─► clean a victim
//!                                      │ yes                        │ yes
//!                                   program ◄────────────────── open a block
//! ```
//!
//! Invariants: `l2p` and the spare areas of valid pages are inverse; every block is free, open, sealed, retired or
//! bad; a unit never has fewer than one free block when a clean starts, which is the room its copies need.

use super::{BuildScheme, Reserve, SchemeContext};
use crate::policies::placement::{HostWrite, Placement, Relocation};
use crate::registry::NoSettings;
use crate::units::{Exhausted, Moving, Unit, drop_copy, out_of_space, reclaimable_pages, units};
use crate::{
    Allocation, Cause, Flash, Ftl, InvalidateOrder, LpnRun, OutOfSpace, SchemeFigures, Violation, Watch, write_runs,
};
use flashwright_nand::{BlockId, Condition, Lpn, PlaneId, Ppn, prefetch, table};
use serde::{Deserialize, Serialize};

const UNMAPPED: u32 = u32::MAX;

/// `ftl.scheme = "page"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PageMap {
    l2p: Vec<u32>,
    units: Vec<Unit>,
    /// Units in the order in which they take turns.
    order: Vec<u32>,
    /// Whose turn it is, for each stream.
    turn: Vec<u32>,
    allocation: Allocation,
    invalidate: InvalidateOrder,
    free_blocks_min: usize,
    placement: Placement,
    collections: u64,
    victim_pages_invalid: u64,
    entry_bytes: u32,
    /// Pages of the victim at hand, kept to spare the allocation: (from, owner) per stream.
    #[serde(skip)]
    moving: Vec<Moving>,
}

impl BuildScheme for PageMap {
    const NAME: &'static str = "page";
    const ABOUT: &'static str = "page mapping, the whole map in RAM (the ideal page FTL of Gupta 2009)";
    const LEVELS_WEAR: bool = true;
    const ASKS_POLICIES: bool = true;
    type Settings = NoSettings;

    fn problems(context: &SchemeContext, flash: &Flash) -> Vec<String> {
        let geometry = flash.geometry();
        let streams = u64::from(context.streams(flash));
        let reserved = u64::from(context.gc.free_blocks_min.max(1)) + streams;
        let mut problems = context.policy_problems(context.streams(flash), flash);
        let (mut usable, mut tightest) = (0, u64::MAX);
        for plane in 0..geometry.planes() {
            let first = geometry.first_block(PlaneId(plane)).0;
            let good = (first..first + geometry.blocks_per_plane())
                .filter(|block| flash.nand().condition(BlockId(*block)) == Condition::Good)
                .count() as u64;
            let room = good.saturating_sub(reserved) * u64::from(geometry.pages_per_block());
            usable += room;
            tightest = tightest.min(room);
        }
        if context.placement.allocation == Allocation::Static {
            // Every plane gets its share, whatever room it has.
            usable = tightest * u64::from(geometry.planes());
        }
        let logical = u64::from(context.logical_pages);
        if logical > usable {
            problems.push(format!(
                "capacity: {logical} logical pages, but only {usable} of {} physical pages can hold data when every \
                 plane keeps {reserved} blocks for cleaning (gc.free-blocks-min = {}, {streams} open); lower \
                 capacity.utilization to {:.3} or less, or use more and smaller blocks",
                geometry.pages(),
                context.gc.free_blocks_min,
                (usable as f64 / f64::from(geometry.pages()) * 1000.0).floor() / 1000.0,
            ));
        }
        problems
    }

    fn reserve(context: &SchemeContext, flash: &Flash) -> Option<Reserve> {
        let blocks = u64::from(context.gc.free_blocks_min.max(1)) + u64::from(context.streams(flash));
        Some(Reserve { blocks, map_pages: 0 })
    }

    fn new(context: &SchemeContext, flash: &mut Flash) -> Self {
        let geometry = *flash.geometry();
        let placement = context.placement(flash);
        let streams = usize::from(placement.streams());
        Self {
            l2p: table(UNMAPPED, context.logical_pages as usize),
            units: units(context, streams, flash),
            order: context.placement.order.planes(&geometry, context.dies_per_way),
            turn: vec![0; streams],
            allocation: context.placement.allocation,
            invalidate: context.gc.invalidate,
            free_blocks_min: context.gc.free_blocks_min.max(1) as usize,
            placement,
            collections: 0,
            victim_pages_invalid: 0,
            entry_bytes: context.ftl.entry_bytes,
            moving: vec![Moving::default(); streams],
        }
    }
}

impl Ftl for PageMap {
    #[inline]
    fn write(&mut self, run: LpnRun, flash: &mut Flash) -> Result<(), OutOfSpace> {
        for lpn in run.iter() {
            self.write_page(lpn, run, flash)?;
        }
        Ok(())
    }

    fn watch(&mut self, watch: Watch, flash: &Flash) {
        if watch.reclaimable {
            self.units.iter_mut().for_each(|unit| unit.watch_fewest(flash));
        }
    }

    fn reclaimable_pages(&self, flash: &Flash) -> Option<u32> {
        reclaimable_pages(&self.units, flash)
    }

    fn supersede(&mut self, lpns: &[u32], flash: &mut Flash) {
        if self.invalidate == InvalidateOrder::BeforeGc {
            lpns.iter().for_each(|lpn| self.trim(LpnRun { first: Lpn(*lpn), pages: 1, stream: 0 }, flash));
        }
    }

    fn write_block(&mut self, lpns: &[u32], flash: &mut Flash) -> Result<(), OutOfSpace> {
        let Some((unit, block)) = (!lpns.is_empty()).then(|| self.own_block(flash)).flatten() else {
            return write_runs(lpns, |run| self.write(run, flash));
        };
        // The unit is set aside, since old copies may lie in others.
        let mut places = Vec::with_capacity(lpns.len());
        self.units[unit].fill_own(block, lpns, flash, |lpn, ppn| places.push((lpn, ppn)));
        for (lpn, ppn) in places {
            let old = std::mem::replace(&mut self.l2p[lpn as usize], ppn.0);
            if old != UNMAPPED {
                drop_copy(&mut self.units, Ppn(old), flash);
            }
        }
        Ok(())
    }

    fn trim(&mut self, run: LpnRun, flash: &mut Flash) {
        for lpn in run.iter() {
            let old = std::mem::replace(&mut self.l2p[lpn.index()], UNMAPPED);
            if old != UNMAPPED {
                drop_copy(&mut self.units, Ppn(old), flash);
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
        let geometry = flash.geometry();
        let valid: u64 = (0..geometry.blocks()).map(|block| u64::from(flash.pages_valid(BlockId(block)))).sum();
        if valid != mapped {
            violations.push(Violation(format!("{mapped} logical pages are mapped, but {valid} flash pages are valid")));
        }
        for (plane, unit) in self.units.iter().enumerate() {
            unit.audit(plane, flash, violations);
        }
    }

    fn figures(&self) -> SchemeFigures {
        SchemeFigures {
            collections: self.collections,
            victim_pages_invalid: self.victim_pages_invalid,
            ram_bytes: self.l2p.len() as u64 * u64::from(self.entry_bytes),
            ..SchemeFigures::default()
        }
    }

    fn reset_figures(&mut self) {
        self.collections = 0;
        self.victim_pages_invalid = 0;
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

impl PageMap {
    #[inline(always)]
    fn write_page(&mut self, lpn: Lpn, run: LpnRun, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let mapped = self.lookup(lpn, flash);
        let stream =
            self.placement.host(HostWrite { lpn, old: mapped, stream: run.stream, run_pages: run.pages, flash });
        if self.invalidate == InvalidateOrder::BeforeGc
            && let Some(old) = mapped
        {
            self.l2p[lpn.index()] = UNMAPPED;
            drop_copy(&mut self.units, old, flash);
        }
        let unit_index = self.unit_with_room(lpn, stream, flash)?;
        // Cleaning may have moved the old copy, so it is looked up again.
        let old = self.l2p[lpn.index()];
        let unit = &mut self.units[unit_index];
        let ppn = unit.take(usize::from(stream));
        flash.program(ppn, lpn, Cause::Host);
        self.l2p[lpn.index()] = ppn.0;
        unit.seal_if_full(usize::from(stream), ppn, flash);
        if old != UNMAPPED {
            drop_copy(&mut self.units, Ppn(old), flash);
        }
        Ok(())
    }

    /// An erased block for a run of pages, and its unit: the one whose turn it is, or with dynamic
    /// allocation the next that has one beyond what cleaning needs. None where static allocation binds the pages of a block to
    /// several planes.
    fn own_block(&mut self, flash: &mut Flash) -> Option<(usize, BlockId)> {
        let units = self.order.len();
        let turn = match self.allocation {
            Allocation::Static if units > 1 => return None,
            _ => {
                let mine = self.turn[0] as usize;
                self.turn[0] = ((mine + 1) % units) as u32;
                mine
            }
        };
        for step in 0..units {
            let unit = self.order[(turn + step) % units] as usize;
            if self.reclaim(unit, None, flash).is_ok()
                && let Some(local) = self.units[unit].pool.pop()
            {
                return Some((unit, BlockId(self.units[unit].first_block.0 + local)));
            }
        }
        None
    }

    /// The unit that takes the page, with room in the frontier of `stream`.
    #[inline(always)]
    fn unit_with_room(&mut self, lpn: Lpn, stream: u8, flash: &mut Flash) -> Result<usize, OutOfSpace> {
        let units = self.order.len();
        let turn = match self.allocation {
            Allocation::Static => lpn.index() % units,
            Allocation::Dynamic => {
                let turn = &mut self.turn[usize::from(stream)];
                let mine = *turn;
                *turn = if mine as usize + 1 == units { 0 } else { mine + 1 };
                mine as usize
            }
        };
        let unit = self.order[turn] as usize;
        if self.units[unit].frontiers[usize::from(stream)].room() > 0 || self.make_room(unit, stream, flash).is_ok() {
            return Ok(unit);
        }
        self.unit_in_need(turn, stream, flash)
    }

    /// The unit whose turn it was can't take a page: under dynamic allocation the next one that can.
    #[cold]
    fn unit_in_need(&mut self, turn: usize, stream: u8, flash: &mut Flash) -> Result<usize, OutOfSpace> {
        if self.allocation == Allocation::Dynamic {
            for step in 1..self.order.len() {
                let unit = self.order[(turn + step) % self.order.len()] as usize;
                if self.units[unit].frontiers[usize::from(stream)].room() > 0
                    || self.make_room(unit, stream, flash).is_ok()
                {
                    return Ok(unit);
                }
            }
        }
        Err(out_of_space(&self.units, flash))
    }

    /// Gets room in a frontier: opens a block, after cleaning while the pool is at its minimum.
    fn make_room(&mut self, unit: usize, stream: u8, flash: &mut Flash) -> Result<(), Exhausted> {
        self.reclaim(unit, Some(stream), flash)
    }

    /// As [`PageMap::make_room`], or without a stream gets a free block beyond the minimum of the pool.
    fn reclaim(&mut self, unit: usize, stream: Option<u8>, flash: &mut Flash) -> Result<(), Exhausted> {
        let (mut fruitless, mut cleaned) = (0, false);
        while stream.is_none_or(|stream| self.units[unit].frontiers[usize::from(stream)].room() == 0) {
            if self.units[unit].pool.len() > self.free_blocks_min {
                if let Some(stream) = stream {
                    self.units[unit].open(stream, flash);
                }
                break;
            }
            cleaned = true;
            if self.clean(unit, flash)? == 0 {
                // FIFO and random policies may name full blocks; going round all of them twice without a gain means
                // that there is none.
                fruitless += 1;
                if fruitless > 2 * flash.geometry().blocks_per_plane() {
                    return Err(Exhausted);
                }
            }
        }
        if cleaned && self.units[unit].leveler.is_some() {
            self.level_wear(unit, flash);
        }
        Ok(())
    }

    /// Cleans one victim and says how many of its pages were invalid.
    fn clean(&mut self, unit_index: usize, flash: &mut Flash) -> Result<u32, Exhausted> {
        let unit = &mut self.units[unit_index];
        let victim = unit.pick(flash).ok_or(Exhausted)?;
        let block = BlockId(unit.first_block.0 + victim);
        let invalid = flash.geometry().pages_per_block() - flash.pages_valid(block);
        if invalid == 0 && unit.victim.picks_fewest() {
            return Err(Exhausted); // no sealed block has an invalid page
        }
        unit.remove(block, flash);
        self.collect(block, flash);
        for stream in 0..self.moving.len() {
            self.relocate(unit_index, stream, flash);
        }
        flash.invalidate_block(block);
        flash.erase(block, Cause::Gc);
        self.units[unit_index].free(block, flash);
        self.collections += 1;
        self.victim_pages_invalid += u64::from(invalid);
        let unit = &self.units[unit_index];
        if let Some(next) = unit.victim.likely_next() {
            flash.nand().expect_scan(BlockId(unit.first_block.0 + next));
        }
        Ok(invalid)
    }

    /// Recycles what the wear policy names, once cleaning has made room.
    #[cold]
    fn level_wear(&mut self, unit: usize, flash: &mut Flash) {
        let Self { units, l2p, .. } = self;
        let unit = &mut units[unit];
        let mut done = 0;
        while let Some(recycle) = unit.next_recycling(done, 0, flash) {
            unit.recycle(recycle, flash, |lpn, ppn| l2p[lpn as usize] = ppn);
            done += 1;
        }
    }

    /// Lists the valid pages of a victim by the stream that they go to.
    fn collect(&mut self, block: BlockId, flash: &Flash) {
        // After a saved state was loaded the lists are gone.
        self.moving.resize(usize::from(self.placement.streams()), Moving::default());
        for moving in &mut self.moving {
            moving.clear();
        }
        let first = flash.geometry().first_page(block).0;
        let spares = flash.nand().spares(block);
        for ppn in flash.valid_pages(block) {
            let lpn = spares[(ppn.0 - first) as usize];
            let stream = self.placement.relocation(Relocation { lpn: Lpn(lpn), from: ppn, flash });
            prefetch(&self.l2p, lpn as usize);
            let moving = &mut self.moving[usize::from(stream)];
            moving.from.push(ppn.0);
            moving.lpns.push(lpn);
        }
    }

    /// Copies the listed pages of one stream to its frontier.
    fn relocate(&mut self, unit_index: usize, stream: usize, flash: &mut Flash) {
        let Self { units, moving, l2p, .. } = self;
        units[unit_index].copy(&moving[stream], stream, Cause::Gc, flash, |lpn, ppn| l2p[lpn as usize] = ppn);
    }
}
