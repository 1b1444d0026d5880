//! The planes of a page-mapped drive: chooses the plane for a page and makes room in it.
//!
//! ```text
//!   write(lpn) ─► plane in turn ─► frontier has room? ── no ─► free > gc.free-blocks-min? ── no ─► clean a victim
//!                                      │ yes                        │ yes
//!                                   program ◄────────────────── open a block
//! ```
//!
//! **By room.** The *room* of a plane is what its good blocks hold beside valid pages: what cleaning can make of it. With
//! `placement.allocation = "by-room"`, a plane whose room falls short of the mean by more than [`UNEVEN_SHARE`] of a block waits until it
//! has the mean again; meanwhile its turns go to the next plane. So data can't gather in some planes, whatever the order in which the host
//! writes them, and planes that lost blocks hold less. The mean is taken once a round, so a write costs O(1) amortised.

use crate::cleaner::{Cleaner, Exhausted, PageMapped};
use crate::plane::{Plane, planes};
use crate::schemes::SchemeContext;
use crate::{Allocation, Flash, OutOfSpace, Progress, Violation};
use flashwright_block::Nanos;
use flashwright_nand::{BlockId, Condition, Lpn, PlaneId, Ppn};
use serde::{Deserialize, Serialize};

/// The part of a block by which the room of a plane may fall short of the mean before it waits: half.
///
/// Less than a block, so that a plane begins and ends its waits while it fills a block, and each block gets a fair sample of what the host
/// writes. With several blocks, whole blocks of dead copies and whole blocks of lasting ones would still alternate, and write
/// amplification would depend on the number of planes (measured: 1.33 with 8 planes for 1.97 with 7, each page written twice; with half a
/// block, 1.92). Not much less, because planes wait a share of their time that grows as the inverse of it, since random
/// writes make room uneven by chance.
const UNEVEN_SHARE: f64 = 0.5;

/// All planes of a drive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Planes {
    pub all: Vec<Plane>,
    /// Planes in the order in which they take turns.
    pub order: Vec<u32>,
    /// The next plane in turn, by stream.
    turn: Vec<u32>,
    allocation: Allocation,
    /// Whether planes with too little room wait: by room, and there are several.
    watches_room: bool,
    /// The mean room of a plane, taken when the first plane in order last had its turn, and the least with which a plane does not wait.
    room_mean: i64,
    room_least: i64,
    /// [`UNEVEN_SHARE`] in pages.
    uneven: i64,
    pub cleaner: Cleaner,
    /// Whether the schedule is consulted after host writes.
    pub asks_schedule: bool,
    /// Planes with host writes since the schedule was last consulted.
    written: Vec<u32>,
}

impl Planes {
    /// The planes of a drive of erased flash, each with this many streams.
    pub fn new(context: &SchemeContext, streams: usize, cleaner: Cleaner, flash: &Flash) -> Self {
        Self {
            all: planes(context, streams, flash),
            order: context.placement.order.planes(flash.geometry(), context.dies_per_way),
            turn: vec![0; streams * if context.slc.is_some() { 2 } else { 1 }],
            allocation: context.placement.allocation,
            watches_room: context.placement.allocation == Allocation::ByRoom && flash.geometry().planes() > 1,
            room_mean: 0,
            room_least: 0,
            uneven: (f64::from(flash.geometry().pages_per_block()) * UNEVEN_SHARE) as i64,
            cleaner,
            asks_schedule: context.gc.schedule.asked(),
            written: Vec::new(),
        }
    }

    /// The plane in turn for a page of a stream, as an index into the order; `lpn` is given for a data page, which
    /// static allocation binds to its plane.
    #[inline(always)]
    pub fn next_turn(&mut self, lpn: Option<Lpn>, stream: u8) -> usize {
        let planes = self.order.len();
        if self.allocation == Allocation::Static
            && let Some(lpn) = lpn
        {
            return lpn.index() % planes;
        }
        let turn = &mut self.turn[usize::from(stream)];
        let mine = *turn as usize;
        *turn = if mine + 1 == planes { 0 } else { *turn + 1 };
        if self.watches_room {
            let plane = &self.all[self.order[mine] as usize];
            if mine == 0 || plane.waits || plane.room < self.room_least {
                return self.turn_by_room(mine, stream);
            }
        }
        mine
    }

    /// The first plane from `first` on that does not wait for room. Its successor is the next in turn.
    #[inline(never)]
    fn turn_by_room(&mut self, first: usize, stream: u8) -> usize {
        let planes = self.order.len();
        for mine in (first..planes).chain(0..first) {
            if mine == 0 {
                self.take_mean_room();
            }
            let plane = &mut self.all[self.order[mine] as usize];
            plane.waits = plane.room < if plane.waits { self.room_mean } else { self.room_least };
            if !plane.waits {
                self.turn[usize::from(stream)] = ((mine + 1) % planes) as u32;
                return mine;
            }
        }
        first // the mean is that of the last round: every plane may have fallen below it since
    }

    fn take_mean_room(&mut self) {
        let sum: i64 = self.all.iter().map(|plane| plane.room).sum();
        self.room_mean = sum.div_euclid(self.all.len() as i64);
        self.room_least = self.room_mean - self.uneven;
    }

    /// The plane that takes a page: the one in turn, or the next that can unless the page is bound to its plane. Its
    /// frontier of the stream then has room.
    pub fn make_room<M: PageMapped>(
        &mut self,
        turn: usize,
        lpn: Option<Lpn>,
        stream: u8,
        map: &mut M,
        flash: &mut Flash,
    ) -> Result<usize, OutOfSpace> {
        let fixed = lpn.is_some() && self.allocation == Allocation::Static;
        for step in 0..if fixed { 1 } else { self.order.len() } {
            let at = self.order[(turn + step) % self.order.len()] as usize;
            if self.all[at].has_room(stream) || self.reclaim(at, Some(stream), map, flash).is_ok() {
                return Ok(at);
            }
        }
        Err(self.out_of_space(flash))
    }

    /// See [`Cleaner::make_room`].
    #[inline]
    fn reclaim<M: PageMapped>(
        &mut self,
        at: usize,
        stream: Option<u8>,
        map: &mut M,
        flash: &mut Flash,
    ) -> Result<(), Exhausted> {
        self.cleaner.make_room(at, stream, &mut self.all, map, flash)
    }

    /// An erased block for a run of pages, and its plane: the one in turn, or with dynamic allocation the next that has
    /// a block beyond cleaning's needs. None if static allocation binds the pages of a block to several planes.
    pub fn own_block<M: PageMapped>(&mut self, map: &mut M, flash: &mut Flash) -> Option<(usize, BlockId)> {
        let planes = self.order.len();
        if self.allocation == Allocation::Static && planes > 1 {
            return None;
        }
        let turn = self.next_turn(None, 0);
        for step in 0..planes {
            let at = self.order[(turn + step) % planes] as usize;
            if self.reclaim(at, None, map, flash).is_ok()
                && let Some(local) = self.all[at].pool.pop()
            {
                return Some((at, BlockId(self.all[at].first_block.0 + local)));
            }
        }
        None
    }

    /// Makes up to `budget` steps of cleaning that no write waits for, in one plane: one with paused work, else the one
    /// with the fewest free blocks among those with something to gain.
    pub fn clean<M: PageMapped>(&mut self, budget: u32, map: &mut M, flash: &mut Flash) -> Progress {
        if budget == 0 {
            return Progress::Nothing;
        }
        let mut tried = vec![false; self.all.len()];
        loop {
            let rests = |at: &usize| self.all[*at].work.is_some();
            let next = (0..self.all.len()).filter(|at| !tried[*at]);
            let Some(at) = next.min_by_key(|at| (!rests(at), self.all[*at].pool.len(), *at)) else {
                return Progress::Nothing;
            };
            let progress = self.cleaner.advance(at, budget, &mut self.all, map, flash);
            if progress != Progress::Nothing {
                return progress;
            }
            tried[at] = true;
        }
    }

    /// Notes host pages written to a plane, for the schedule.
    #[cold]
    pub fn note_written(&mut self, at: usize, pages: u32) {
        let plane = &mut self.all[at];
        if plane.written == 0 {
            self.written.push(u32::try_from(at).expect("planes are counted in 32 bits"));
        }
        plane.written += pages;
    }

    /// See [`crate::Ftl::written_planes`].
    pub fn written_planes(&mut self, note: &mut dyn FnMut(PlaneId, u32, Nanos)) {
        for at in self.written.drain(..) {
            let plane = &mut self.all[at as usize];
            let free_blocks = u32::try_from(plane.pool.len()).expect("blocks are counted in 32 bits");
            note(PlaneId(at), std::mem::take(&mut plane.written), plane.schedule.delay(free_blocks));
        }
    }

    /// Marks a copy as invalid and informs the victim policy of its plane.
    #[inline(always)]
    pub fn drop_copy(&mut self, old: Ppn, flash: &mut Flash) {
        drop_copy(&mut self.all, old, flash);
    }

    /// Starts counting the sealed blocks by valid pages.
    pub fn watch_fewest(&mut self, flash: &Flash) {
        self.all.iter_mut().for_each(|plane| plane.watch_fewest(flash));
    }

    /// Pages that are not valid in the sealed block with the fewest valid pages, over all planes; a whole block while
    /// none is sealed. None if the count was not requested. O(planes).
    pub fn reclaimable_pages(&self, flash: &Flash) -> Option<u32> {
        let pages = flash.geometry().pages_per_block();
        let mut fewest = None;
        for plane in &self.all {
            fewest = fewest.into_iter().chain(plane.fewest.as_ref()?.fewest()).min();
        }
        Some(pages - fewest.unwrap_or(0))
    }

    /// Appends contradictions in the states of blocks.
    pub fn audit(&self, flash: &Flash, violations: &mut Vec<Violation>) {
        for (at, plane) in self.all.iter().enumerate() {
            plane.audit(at, flash, violations);
        }
        self.cleaner.audit(&self.all, violations);
    }

    /// The error for a page that no plane can take, with the state of the drive.
    #[cold]
    fn out_of_space(&self, flash: &Flash) -> OutOfSpace {
        let geometry = flash.geometry();
        let blocks = || (0..geometry.blocks()).map(BlockId);
        OutOfSpace {
            blocks_free: self.all.iter().map(|plane| plane.pool.len() as u64).sum(),
            blocks_retired: blocks().filter(|block| flash.nand().condition(*block) == Condition::Retired).count()
                as u64,
            blocks_total: u64::from(geometry.blocks()),
            pages_valid: blocks().map(|block| u64::from(flash.pages_valid(block))).sum(),
            pages_total: u64::from(geometry.pages()),
        }
    }
}

/// As [`Planes::drop_copy`].
#[inline(always)]
pub(crate) fn drop_copy(planes: &mut [Plane], old: Ppn, flash: &mut Flash) {
    let (block, left) = flash.invalidate(old);
    planes[flash.geometry().plane_of(block).index()].invalidated(block, left, flash);
}
