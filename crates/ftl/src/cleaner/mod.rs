//! Cleaning and recycling in steps, for schemes that map pages.
//!
//! A step is a page copied, a page of the map written, or a block erased. Work on a block ([`Work`]) can pause after
//! any step and stay with its plane; meanwhile the host may read, write and trim every page, including those of the
//! block. The schedule decides when to make steps: before a write that lacks room ([`Cleaner::make_room`]), or whenever
//! there is time ([`Cleaner::advance`], called by [`crate::CleansInSteps::clean`]).
//!
//! ```text
//!   clean:    victim ─ copy its valid pages by stream ─────────── write map pages ─ erase ─► free
//!   recycle:  block ── copy its valid pages to one block, seal it ─ erase ─► free ─ write map pages
//! ```
//!
//! **Pages.** The pages to move and their streams are chosen when the work begins; a page that has become invalid since
//! is skipped. The map names the copy as soon as it exists, and the source becomes invalid before the work pauses. If
//! the work does not pause, all sources become invalid together right before the erase, which is faster and has the
//! same result.
//!
//! **Blocks.** A victim and the block that takes recycled pages are neither free nor sealed: no policy can choose them,
//! and they count as open. A plane works on one block at a time.
//!
//! **Space.** Between steps the host may fill the frontiers that a clean relied on. So work pauses only while its plane
//! has `kept` free blocks, which is room for everything that it still has to write; with fewer it runs to its end,
//! whatever its budget. The host never takes these blocks, because it opens blocks only above `free_blocks_min`. So
//! work that has begun can always be finished, and paused work never withholds room that a write needs.

mod steps;
mod work;

use crate::plane::Plane;
use crate::policies::schedule::{Moment, Occasion};
use crate::{Cause, Flash, Progress, Violation};
use flashwright_nand::BlockId;
use serde::{Deserialize, Serialize};
use steps::{Steps, forget_pending};
pub(crate) use work::{Moving, Work, list_pages, list_pages_by_stream};

/// The plane can't take a page: nothing to reclaim.
#[derive(Debug)]
pub(crate) struct Exhausted;

/// Progress of making room.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effort {
    /// Cleans that gained nothing.
    pub fruitless: u32,
    /// The largest number of erased pages after a clean.
    pub best: u64,
    /// Whether to stop asking the victim policy.
    pub desperate: bool,
    /// The victim that the policy chose but that costs too much while free blocks are scarce.
    pub passed_over: Option<BlockId>,
    /// The block to clean, instead of asking the victim policy.
    pub asked: Option<BlockId>,
    /// No write waits: a clean must gain something.
    pub voluntary: bool,
    /// Only a block of the SLC cache will do.
    pub folds: bool,
}

/// What cleaning needs from a page-mapped scheme.
pub(crate) trait PageMapped {
    /// Whether the scheme chooses victims itself after the policy has chosen too many without a gain.
    const LAST_RESORT: bool;
    /// Whether wear is levelled before the new block is opened.
    const LEVELS_FIRST: bool;

    /// Chooses the next victim of a plane and the cause that its copies count under. Lists its valid pages by
    /// destination stream, and the pages of the map that have to be written for them. `reserve`: see [`Cleaner`].
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

    /// Pages of `owners` were copied to `first` and the pages after it. If pages of the map are listed, those that this
    /// copy changes are added to `pending`.
    fn moved(&mut self, owners: &[u32], first: u32, pending: &mut Vec<u32>);

    /// Writes a page of the map that changed because of cleaning in a plane.
    fn write_map_page(&mut self, page: u32, at: usize, cause: Cause, planes: &mut [Plane], flash: &mut Flash) {
        let _ = (page, at, cause, planes, flash);
    }

    /// A victim was erased; `gained` pages were reclaimed.
    #[inline(always)]
    fn cleaned(&mut self, cause: Cause, gained: u32, pages_per_block: u32) {
        let _ = (cause, gained, pages_per_block);
    }

    /// The number of cleans without a gain after which no room can be expected.
    fn patience(flash: &Flash) -> u32;

    /// Records whether a clean that reclaimed this many pages was worth it.
    fn weigh(effort: &mut Effort, gained: u32, plane: &Plane, flash: &Flash);
}

/// The limits of cleaning, and its counts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cleaner {
    /// A plane opens a block for a write only while it has more free blocks than this.
    pub free_blocks_min: usize,
    /// Free blocks that make any clean safe, whatever it costs; a recycling leaves this many.
    reserve: usize,
    /// Free blocks that a plane needs for its work to pause.
    kept: usize,
    /// Planes with paused work.
    resting: u32,
    /// Victims cleaned.
    pub collections: u64,
    /// Invalid pages of the victims.
    pub victim_pages_invalid: u64,
    /// Blocks of the SLC cache folded, and the pages that were moved for it.
    pub blocks_folded: u64,
    pub pages_folded: u64,
    /// Finished work, kept to reuse its memory.
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
            blocks_folded: 0,
            pages_folded: 0,
            scratch: None,
        }
    }

    /// Makes room in the full frontier of a stream: cleans while free blocks are few, then opens a block. Without a
    /// stream it makes a free block above the minimum.
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
            if !room && let (Some(slc), Some(stream)) = (&plane.slc, stream) {
                if slc.takes_block(free, self.free_blocks_min) {
                    plane.open_slc(stream, flash);
                    break Ok(());
                }
                if slc.folds_when_full() && self.can_fold(plane) {
                    let mut fold = Effort { folds: true, ..Effort::default() };
                    self.work(at, u32::MAX, &mut fold, planes, map, flash);
                    continue;
                }
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
                // The policy keeps choosing fully valid blocks, so it is no longer asked.
                effort.desperate = true;
                (effort.best, effort.fruitless) = (0, 0);
            }
            // The write can't continue without room, so the schedule is not consulted.
            if effort.fruitless > patience || self.work(at, u32::MAX, &mut effort, planes, map, flash).is_none() {
                // Blocks lost to wear can leave the reserve short permanently; a frontier with room still works.
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

    /// Performs the steps that a plane's schedule requests on an occasion.
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

    /// Whether a plane has a full block in its SLC cache, and the free blocks to fold it.
    fn can_fold(&self, plane: &Plane) -> bool {
        let is_folding = plane.work.as_ref().is_some_and(|work| work.folds);
        plane.slc.as_ref().is_some_and(|slc| {
            is_folding || !slc.sealed.is_empty() && (slc.folding_frees() || plane.pool.len() > self.free_blocks_min)
        })
    }

    /// Makes up to `budget` steps of folding in a plane that no write waits for: of paused work, else of the oldest
    /// full block of the SLC cache. Cleans first where free blocks are too few to fold.
    pub fn fold<M: PageMapped>(
        &mut self,
        at: usize,
        budget: u32,
        planes: &mut [Plane],
        map: &mut M,
        flash: &mut Flash,
    ) -> Progress {
        let plane = &planes[at];
        let folds = self.can_fold(plane);
        if !folds && plane.slc.as_ref().is_none_or(|slc| slc.sealed.is_empty()) {
            return Progress::Nothing;
        }
        let mut effort = Effort { voluntary: true, folds, ..Effort::default() };
        self.work(at, budget, &mut effort, planes, map, flash).map_or(Progress::Nothing, Progress::Worked)
    }

    /// Cleans a given block, whatever that gains, so that its data are written again. Does nothing if the block is not sealed or
    /// of the SLC cache, if the plane has paused work, or if free blocks are few.
    pub fn rewrite<M: PageMapped>(
        &mut self,
        block: BlockId,
        planes: &mut [Plane],
        map: &mut M,
        flash: &mut Flash,
    ) -> Progress {
        let at = flash.geometry().plane_of(block).index();
        let plane = &planes[at];
        let has_room = plane.pool.len() > self.free_blocks_min.max(self.reserve);
        if plane.work.is_some() || !has_room || flash.is_slc(block) || !plane.is_sealed(block, flash) {
            return Progress::Nothing;
        }
        let mut effort = Effort { asked: Some(block), ..Effort::default() };
        match self.begin_clean(at, &mut effort, planes, map, flash) {
            Some(work) => Progress::Worked(self.carry_on(work, at, u32::MAX, None, planes, map, flash)),
            None => Progress::Nothing,
        }
    }

    /// Makes up to `budget` steps of cleaning in a plane that no write waits for: of paused work, else of a recycling
    /// that is due, else of a clean that gains something.
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

    /// Recycles the blocks that the wear policy chooses in the due round, unless the plane has other paused work.
    #[cold]
    fn level_wear<M: PageMapped>(&mut self, at: usize, planes: &mut [Plane], map: &mut M, flash: &mut Flash) {
        while planes[at].work.is_none()
            && let Some(work) = self.begin_recycling(at, planes, flash)
        {
            self.carry_on(work, at, u32::MAX, None, planes, map, flash);
        }
    }

    /// Makes up to `budget` steps of paused work in a plane, else of a clean. Returns the number of steps; none if
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
        if planes[at].pool.is_empty() && flash.pages_valid(block) > planes[at].room_of_frontiers() {
            self.scratch = Some(work);
            return None; // a mount at the end of the drive's life left no free block
        }
        planes[at].copies = flash.pages_valid(block);
        planes[at].remove(block, flash);
        work.begin(block, cause, None);
        work.folds = flash.is_slc(block);
        Some(work)
    }

    /// Begins the recycling that the wear policy chooses next, if any: the valid pages go to a free block that takes no
    /// other pages.
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
        list_pages(block, &mut work.moving[0], flash, |_| {});
        let into = (!work.moving[0].from.is_empty()).then(|| {
            let into = plane.take_for(block, recycle.into, flash);
            (into, flash.geometry().first_page(into).0)
        });
        work.begin(block, Cause::Wear, into);
        Some(work)
    }

    /// Makes up to `budget` steps of a piece of work, and more if it must not pause. Returns the number of steps. The
    /// gain of finished work is assessed; unfinished work pauses in its plane.
    #[allow(clippy::too_many_arguments)] // everything that a step touches
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
        // The pending pages are known from the start only if nothing intervenes.
        let lists = work.rested || budget != u32::MAX || work.cause == Cause::Wear;
        if lists && !work.rested {
            work.pending.clear();
        }
        map.moves(lists);
        let copied = work.copied;
        let ended = steps.of(&mut work, at, planes, map, flash, self.resting > 0);
        if work.folds {
            self.pages_folded += u64::from(work.copied - copied);
        }
        if !ended {
            work.rest();
            self.resting += 1;
            planes[at].work = Some(work);
            return steps.made;
        }
        if work.folds {
            self.blocks_folded += 1;
        } else if work.cause != Cause::Wear {
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

    /// Resets the counts to zero.
    pub fn reset_figures(&mut self) {
        (self.collections, self.victim_pages_invalid) = (0, 0);
        (self.blocks_folded, self.pages_folded) = (0, 0);
    }

    /// Appends contradictions in the paused work.
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

    /// A page of the map was written with all its pending changes.
    #[inline]
    pub fn wrote_map_page(&self, page: u32, planes: &mut [Plane]) {
        if self.resting > 0 {
            forget_pending(page, planes);
        }
    }
}
