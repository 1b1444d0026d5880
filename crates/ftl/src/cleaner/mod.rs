//! Cleaning and recycling in steps, for schemes that map pages.
//!
//! A step is a page copied, a page of the map written, or a block erased. Work on a block ([`Work`]) can stop after any
//! step and rest with its plane; the host may then read, write and trim every page, those of the block too. What calls for
//! steps is a matter of the schedule: before a write that lacks room ([`Cleaner::make_room`]), or whenever there is time
//! ([`Cleaner::advance`] by way of [`crate::Ftl::clean`]).
//!
//! ```text
//!   clean:    victim ─ copy its valid pages by stream ─────────── write map pages ─ erase ─► free
//!   recycle:  block ── copy its valid pages to one block, seal it ─ erase ─► free ─ write map pages
//! ```
//!
//! **Pages.** What is to move, and where to, is settled when the work begins; a page that has turned invalid since is
//! passed over. The map names the copy as soon as there is one, and the source turns invalid before the work rests. If the
//! work does not rest, all sources do so at once before the erase, which is faster and nobody can tell.
//!
//! **Blocks.** A victim and the block that takes recycled pages are neither free nor sealed: no policy can name them, and
//! they count as open. A plane has one work at a time.
//!
//! **Space.** Between steps the host may fill the frontiers that a clean counted on. So work rests only while its plane has
//! `kept` free blocks, which is room for whatever it has left to write; with fewer it goes on to its end, whatever its
//! budget. The host leaves as many, because it opens blocks only beyond `free_blocks_min`. So work that was begun can
//! always be ended, and what a write can't get from its plane is never held back by work that rests.

mod steps;
mod work;

use crate::plane::Plane;
use crate::policies::schedule::{Moment, Occasion};
use crate::{Cause, Flash, Progress, Violation};
use flashwright_nand::BlockId;
use serde::{Deserialize, Serialize};
use steps::{Steps, forget_pending};
pub(crate) use work::{Moving, Work, list_pages};

/// The plane can't take a page: nothing to reclaim.
#[derive(Debug)]
pub(crate) struct Exhausted;

/// How the making of room goes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effort {
    /// Cleans without a gain.
    pub fruitless: u32,
    /// The most erased pages after a clean.
    pub best: u64,
    /// Whether the victim policy is no longer asked.
    pub desperate: bool,
    /// The victim that the policy named and that costs too much while blocks are scarce.
    pub passed_over: Option<BlockId>,
    /// No write waits: a clean must gain something.
    pub voluntary: bool,
}

/// What cleaning asks of a scheme that maps pages.
pub(crate) trait PageMapped {
    /// Whether the scheme names victims itself once the policy has named too many in vain.
    const LAST_RESORT: bool;
    /// Whether wear is levelled before the block is opened for which room was made.
    const LEVELS_FIRST: bool;

    /// Names the next victim of a plane, with what its copies count as, and lists its valid pages by the stream that they
    /// go to, and the pages of the map that have to be written for them. `reserve`: see [`Cleaner`].
    fn choose(
        &mut self,
        plane: &mut Plane,
        reserve: usize,
        effort: &mut Effort,
        moving: &mut Vec<Moving>,
        pending: &mut Vec<u32>,
        flash: &mut Flash,
    ) -> Option<(BlockId, Cause)>;

    /// Pages are about to be moved. `lists` unless all pages move as they were listed with the victim.
    #[inline(always)]
    fn moves(&mut self, lists: bool) {
        let _ = lists;
    }

    /// Pages of `owners` were copied to `first` and the pages after it. Where pages of the map are listed, those that have to
    /// be written for it join `pending`.
    fn moved(&mut self, owners: &[u32], first: u32, pending: &mut Vec<u32>);

    /// Writes a page of the map that changed because blocks of a plane are cleaned.
    fn write_map_page(&mut self, page: u32, at: usize, cause: Cause, planes: &mut [Plane], flash: &mut Flash) {
        let _ = (page, at, cause, planes, flash);
    }

    /// A victim was erased that had so many pages to gain.
    #[inline(always)]
    fn cleaned(&mut self, cause: Cause, gained: u32, pages_per_block: u32) {
        let _ = (cause, gained, pages_per_block);
    }

    /// Cleans without a gain after which no room is to be expected.
    fn patience(flash: &Flash) -> u32;

    /// Notes whether a clean that gained so many pages of its victim was worth it.
    fn weigh(effort: &mut Effort, gained: u32, plane: &Plane, flash: &Flash);
}

/// What cleaning keeps to, and what it has done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cleaner {
    /// A plane opens a block for a write only while it has more free blocks than this.
    pub free_blocks_min: usize,
    /// Free blocks with which a clean is safe, whatever it costs; a recycling leaves as many.
    reserve: usize,
    /// Free blocks without which work does not rest.
    kept: usize,
    /// Planes whose work rests.
    resting: u32,
    /// Victims cleaned.
    pub collections: u64,
    /// Pages of them that held nothing current.
    pub victim_pages_invalid: u64,
    /// Work that is done, kept for its memory.
    #[serde(skip)]
    scratch: Option<Box<Work>>,
}

impl Cleaner {
    /// See the fields.
    pub fn new(free_blocks_min: u32, reserve: u32, kept: u32) -> Self {
        debug_assert!(kept <= free_blocks_min, "the host leaves what work needs");
        Self {
            free_blocks_min: free_blocks_min as usize,
            reserve: reserve as usize,
            kept: kept as usize,
            resting: 0,
            collections: 0,
            victim_pages_invalid: 0,
            scratch: None,
        }
    }

    /// Gets room in the frontier of a stream that has none: opens a block, after cleaning while free blocks are few.
    /// Without a stream gets a free block beyond the minimum.
    pub fn make_room<M: PageMapped>(
        &mut self,
        at: usize,
        stream: Option<u8>,
        planes: &mut [Plane],
        map: &mut M,
        flash: &mut Flash,
    ) -> Result<(), Exhausted> {
        let patience = M::patience(flash);
        let (mut effort, mut leveled) = (Effort::default(), !M::LEVELS_FIRST);
        let result = loop {
            let plane = &mut planes[at];
            let free = plane.pool.len();
            let room = stream.is_some_and(|stream| plane.has_room(stream));
            if room && free >= self.reserve {
                break Ok(());
            }
            if !room && free > self.free_blocks_min {
                if plane.recycled.is_some() && !std::mem::replace(&mut leveled, true) {
                    self.level_wear(at, planes, map, flash);
                    (effort.best, effort.fruitless) = (0, 0);
                    continue;
                }
                if let Some(stream) = stream {
                    plane.open(stream, flash);
                }
                break Ok(());
            }
            if M::LAST_RESORT && effort.fruitless > patience && !effort.desperate {
                // A policy that keeps naming full blocks has had its chance.
                effort.desperate = true;
                (effort.best, effort.fruitless) = (0, 0);
            }
            // The write can't go on without room, so the schedule isn't asked.
            if effort.fruitless > patience || self.work(at, u32::MAX, &mut effort, planes, map, flash).is_none() {
                // Blocks that were lost to wear can leave the reserve short for good; a frontier with room still serves.
                let room = stream.is_some_and(|stream| planes[at].has_room(stream));
                break if room { Ok(()) } else { Err(Exhausted) };
            }
        };
        if !M::LEVELS_FIRST && result.is_ok() && planes[at].recycled.is_some() {
            self.level_wear(at, planes, map, flash);
        }
        planes[at].recycled = None;
        result
    }

    /// Makes the steps that the schedule of a plane wants on an occasion.
    pub fn follow_schedule<M: PageMapped>(
        &mut self,
        at: usize,
        occasion: Occasion,
        planes: &mut [Plane],
        map: &mut M,
        flash: &mut Flash,
    ) -> Progress {
        let plane = &mut planes[at];
        let free_blocks = u32::try_from(plane.pool.len()).expect("blocks are counted in 32 bits");
        match plane.schedule.steps(&Moment { occasion, free_blocks, copies: plane.copies }) {
            0 => Progress::Nothing,
            budget => self.advance(at, budget, planes, map, flash),
        }
    }

    /// Makes up to `budget` steps of cleaning in a plane for which no write waits: of the work that rests there, else of a
    /// recycling that is due, else of a clean that gains something.
    pub fn advance<M: PageMapped>(
        &mut self,
        at: usize,
        budget: u32,
        planes: &mut [Plane],
        map: &mut M,
        flash: &mut Flash,
    ) -> Progress {
        let mut steps = None;
        if planes[at].work.is_none() && planes[at].recycled.is_some() && planes[at].pool.len() > self.free_blocks_min {
            let work = self.begin_recycling(at, planes, flash);
            steps = work.map(|work| self.carry_on(work, at, budget, None, planes, map, flash));
        }
        let mut effort = Effort { voluntary: true, ..Effort::default() };
        match steps.or_else(|| self.work(at, budget, &mut effort, planes, map, flash)) {
            Some(steps) => Progress::Worked(steps),
            None => Progress::Nothing,
        }
    }

    /// Recycles what the wear policy names in the round that is due, unless other work rests in the plane.
    #[cold]
    fn level_wear<M: PageMapped>(&mut self, at: usize, planes: &mut [Plane], map: &mut M, flash: &mut Flash) {
        while planes[at].work.is_none()
            && let Some(work) = self.begin_recycling(at, planes, flash)
        {
            self.carry_on(work, at, u32::MAX, None, planes, map, flash);
        }
    }

    /// Makes up to `budget` steps of the work that rests in a plane, else of a clean. Answers how many there were; none if
    /// there is nothing to clean.
    fn work<M: PageMapped>(
        &mut self,
        at: usize,
        budget: u32,
        effort: &mut Effort,
        planes: &mut [Plane],
        map: &mut M,
        flash: &mut Flash,
    ) -> Option<u32> {
        let work = match planes[at].work.take() {
            Some(work) => {
                self.resting -= 1;
                work
            }
            None => self.begin_clean(at, effort, planes, map, flash)?,
        };
        Some(self.carry_on(work, at, budget, Some(effort), planes, map, flash))
    }

    fn begin_clean<M: PageMapped>(
        &mut self,
        at: usize,
        effort: &mut Effort,
        planes: &mut [Plane],
        map: &mut M,
        flash: &mut Flash,
    ) -> Option<Box<Work>> {
        let mut work = self.scratch.take().unwrap_or_default();
        let Work { moving, pending, .. } = &mut *work;
        let Some((block, cause)) = map.choose(&mut planes[at], self.reserve, effort, moving, pending, flash) else {
            self.scratch = Some(work);
            return None;
        };
        planes[at].copies = flash.pages_valid(block);
        planes[at].remove(block, flash);
        work.begin(block, cause, None);
        Some(work)
    }

    /// Begins the recycling that the wear policy names next, if it names one: its valid pages go to a free block, which
    /// keeps them alone.
    fn begin_recycling(&mut self, at: usize, planes: &mut [Plane], flash: &mut Flash) -> Option<Box<Work>> {
        let plane = &mut planes[at];
        let nth = plane.recycled?;
        let Some(recycle) = plane.next_recycling(nth, self.reserve, flash) else {
            plane.recycled = None;
            return None;
        };
        plane.recycled = Some(nth + 1);
        let block = BlockId(plane.first_block.0 + recycle.block);
        plane.take_to_recycle(block, flash);
        let mut work = self.scratch.take().unwrap_or_default();
        Moving::clear(&mut work.moving, 1);
        list_pages(block, &mut work.moving, flash, |_, _| 0);
        let into = (!work.moving[0].from.is_empty()).then(|| {
            let into = plane.take_for(block, recycle.into, flash);
            (into, flash.geometry().first_page(into).0)
        });
        work.begin(block, Cause::Wear, into);
        Some(work)
    }

    /// Makes up to `budget` steps of a work, and more where it must not rest. Answers how many there were. A work that comes
    /// to its end is weighed, the other one rests in its plane.
    #[allow(clippy::too_many_arguments)] // all that a step touches
    fn carry_on<M: PageMapped>(
        &mut self,
        mut work: Box<Work>,
        at: usize,
        budget: u32,
        effort: Option<&mut Effort>,
        planes: &mut [Plane],
        map: &mut M,
        flash: &mut Flash,
    ) -> u32 {
        let mut steps = Steps { budget, made: 0, kept: self.kept };
        // What is pending is known from the start only if nothing comes in between.
        let lists = work.rested || budget != u32::MAX || work.cause == Cause::Wear;
        if lists && !work.rested {
            work.pending.clear();
        }
        map.moves(lists);
        let ended = steps.of(&mut work, at, planes, map, flash, self.resting > 0);
        if !ended {
            work.rest();
            self.resting += 1;
            planes[at].work = Some(work);
            return steps.made;
        }
        if work.cause != Cause::Wear {
            let pages = flash.geometry().pages_per_block();
            let gained = pages - work.copied;
            self.collections += 1;
            self.victim_pages_invalid += u64::from(gained);
            map.cleaned(work.cause, gained, pages);
            let plane = &mut planes[at];
            if plane.leveler.is_some() {
                plane.recycled = plane.recycled.or(Some(0));
            }
            if let Some(effort) = effort {
                M::weigh(effort, gained, plane, flash);
            }
            if let Some(next) = plane.victim.likely_next() {
                flash.nand().expect_scan(BlockId(plane.first_block.0 + next));
            }
        }
        self.scratch = Some(work);
        steps.made
    }

    /// Sets the counts to zero.
    pub fn reset_figures(&mut self) {
        (self.collections, self.victim_pages_invalid) = (0, 0);
    }

    /// Appends what contradicts in the work that rests.
    pub fn audit(&self, planes: &[Plane], violations: &mut Vec<Violation>) {
        let resting = planes.iter().filter(|plane| plane.work.is_some()).count();
        if resting != self.resting as usize {
            violations.push(Violation(format!("{} works rest by the count, {resting} by a search", self.resting)));
        }
        for (at, plane) in planes.iter().enumerate() {
            if plane.work.is_some() && plane.pool.len() < self.kept {
                violations.push(Violation(format!(
                    "plane {at}: a work rests with {} free blocks, it may need {}",
                    plane.pool.len(),
                    self.kept
                )));
            }
        }
    }

    /// A page of the map was written, with all that was pending of it.
    #[inline]
    pub fn wrote_map_page(&self, page: u32, planes: &mut [Plane]) {
        if self.resting > 0 {
            forget_pending(page, planes);
        }
    }
}
