//! The planes of a page-mapped drive: chooses the plane for a page and makes room in it.
//!
//! ```text
//!   write(lpn) ─► plane in turn ─► frontier has room? ── no ─► free > gc.free-blocks-min? ── no ─► clean a victim
//!                                      │ yes                        │ yes
//!                                   program ◄────────────────── open a block
//! ```
//!
//! **By room.** The *room* of a plane is what its good blocks hold beside valid pages: what cleaning can make of it. In strict turn, a host
//! that writes each page several times in order puts all lasting copies in the planes whose number shares a factor with the period, and
//! these run out of room. With `placement.allocation = "by-room"`, a *round* is a few pages for each plane in turn; where room is uneven
//! after a round, the next one begins with another plane, drawn at random, so that lasting copies go to other planes. All planes still get as many
//! pages in a round: their frontiers fill together, so they open blocks, and clean, at the same time, as the dies of a superblock do. Only a plane that
//! is short of whole blocks, because it lost some or by much bad luck, misses turns of one stream: as many as a block has pages, each counted
//! in its round, so that afterwards it fills its blocks with the others again. A round costs O(planes), so a write costs O(1) amortised.
//!
//! **Parts.** Dies may be dealt to parts, which cleaning never leaves: NVM sets, where the number of a page says its part, or reclaim groups,
//! where the host names it. A group holds at most its part of the logical space. Beyond that a page goes to the group with the most room, or, if
//! none has any, stays in the group of the copy that it replaces; so cleaning always finds as much room as on a drive of one group.

use crate::cleaner::{Cleaner, Exhausted, PageMapped};
use crate::groups::{Groups, Written};
use crate::plane::{Plane, planes};
use crate::policies::placement::Named;
use crate::schemes::SchemeContext;
use crate::{Allocation, Flash, OutOfSpace, Progress, Violation};
use flashwright_block::Nanos;
use flashwright_nand::{BlockId, Lpn, PlaneId, Ppn};
use serde::{Deserialize, Serialize};

/// The part of a block that a plane gets in a round, and by which its room may fall short of the mean before the next round begins
/// with another plane. Small, so that each block gets a fair sample of what the host writes: lasting and dead copies alternate in runs of twice this length.
/// Not a page each, since a round that begins elsewhere has some dies wait for a turn. Drawn, since a fixed step would resonate with other numbers
/// of planes (measured: 2.33 with 42 planes where the median is 2.02, blocks of 8 pages, each page written twice; drawn, 2.09 at most).
const ROUND_SHARE: f64 = 1.0 / 16.0;

/// Blocks by which the room of a plane may fall short of the mean before it misses turns. Random writes make room uneven by chance, by
/// about the root of a plane's pages, a block or less; waits for that would take planes out of step for nothing.
const SHORT_BLOCKS: i64 = 2;

/// Pages that all planes hold together, if each has room for so many: where pages are bound to planes or sets, all of these hold as much as
/// the one with the least room.
pub(crate) fn held_by_all(context: &SchemeContext, flash: &Flash, room: impl Fn(u32) -> u64) -> u64 {
    let order = turns(context, flash);
    let bound_to = if context.placement.allocation == Allocation::Static { 1 } else { order.len() / parts(context) };
    let held = order.chunks(bound_to).map(|planes| planes.iter().map(|plane| room(*plane)).sum::<u64>());
    held.min().unwrap_or(0) * (order.len() / bound_to) as u64
}

/// What is wrong with `placement.sets` or `placement.fdp.groups`.
pub(crate) fn parts_problem(context: &SchemeContext, flash: &Flash) -> Option<String> {
    let (sets, groups, dies) = (context.placement.sets, context.placement.groups(), flash.geometry().dies());
    if groups > 1 && sets > 1 {
        return Some(format!(
            "placement.fdp.groups: found {groups}, expected 1 with placement.sets = {sets}: the dies of a page follow from its group or from its \
             address"
        ));
    }
    if groups > 1 && context.foreign.is_some_and(|foreign| foreign.placement.is_some()) {
        return Some(format!("placement.fdp.groups: found {groups}, expected 1 with a placement policy from outside"));
    }
    [("placement.sets", sets, "sets"), ("placement.fdp.groups", groups, "groups")].into_iter().find_map(
        |(key, found, all)| {
            if found > 1 && context.placement.allocation == Allocation::Static {
                return Some(format!("{key}: found {found}, expected 1 with placement.allocation = \"static\""));
            }
            (found == 0 || !dies.is_multiple_of(found)).then(|| {
                format!("{key}: found {found}, expected a divisor of the {dies} dies, so that all {all} have as many")
            })
        },
    )
}

/// Number of parts, at least 1: sets or groups.
fn parts(context: &SchemeContext) -> usize {
    context.placement.sets.max(context.placement.groups()).max(1) as usize
}

/// Planes in the order in which they take turns, those of a part together.
fn turns(context: &SchemeContext, flash: &Flash) -> Vec<u32> {
    let order = context.placement.order.planes(flash.geometry(), context.dies_per_way);
    turns_by_part(order, flash.geometry().planes_per_die(), parts(context))
}

/// Planes in the order in which they take turns, those of a part together. Dies are dealt to parts in the order in which they first have a
/// turn, so that planes of a die never belong to two parts.
fn turns_by_part(order: Vec<u32>, planes_per_die: u32, parts: usize) -> Vec<u32> {
    if parts == 1 {
        return order;
    }
    let mut dies: Vec<u32> = Vec::new();
    for plane in &order {
        let die = plane / planes_per_die;
        if !dies.contains(&die) {
            dies.push(die);
        }
    }
    let dies_per_part = dies.len() / parts;
    let part_of = |plane: &u32| dies.iter().position(|die| *die == plane / planes_per_die).map(|at| at / dies_per_part);
    let mut by_part = order;
    by_part.sort_by_key(part_of);
    by_part
}

/// All planes of a drive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Planes {
    pub all: Vec<Plane>,
    /// Planes in the order in which they take turns, those of a part together.
    pub order: Vec<u32>,
    /// Whose turn it is, by part and stream.
    turn: Vec<Turn>,
    allocation: Allocation,
    /// Whether a page has a say in its plane: by static allocation, or because there are several parts.
    binds_pages: bool,
    /// Logical pages of a part.
    part_pages: u32,
    /// Turns of a part.
    streams: usize,
    /// If the parts are reclaim groups.
    groups: Option<Box<Groups>>,
    /// Whether rounds go by room: there are several planes, and the setting says so.
    watches_room: bool,
    /// Pages of all planes of a part in a round.
    round: u32,
    /// [`ROUND_SHARE`] in pages.
    uneven: i64,
    pages_per_block: u32,
    /// The state of the draws (xorshift64).
    drawn: u64,
    pub cleaner: Cleaner,
    /// Whether the schedule is consulted after host writes.
    pub asks_schedule: bool,
    /// Planes with host writes since the schedule was last consulted.
    written: Vec<u32>,
}

/// The turns of a stream in the planes of a part, as places in the order.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Turn {
    next: u32,
    first: u32,
    end: u32,
    /// Pages left of the round.
    left: u32,
}

impl Turn {
    /// The place after one of its own.
    #[inline(always)]
    fn after(self, place: usize) -> u32 {
        let next = place as u32 + 1;
        if next == self.end { self.first } else { next }
    }

    /// The place so many turns after one of its own.
    fn later(self, place: usize, turns: usize) -> usize {
        let first = self.first as usize;
        first + (place - first + turns) % (self.end - self.first) as usize
    }
}

impl Planes {
    /// The planes of a drive of erased flash, each with this many streams.
    pub fn new(context: &SchemeContext, streams: usize, cleaner: Cleaner, flash: &Flash) -> Self {
        let (planes_all, pages) = (flash.geometry().planes(), flash.geometry().pages_per_block());
        let parts = parts(context) as u32;
        let planes_per_part = planes_all / parts;
        let share = ((f64::from(pages) * ROUND_SHARE) as u32).max(1);
        let round = share * planes_per_part;
        let turns_per_part = streams * if context.slc.is_some() { 2 } else { 1 };
        let firsts = (0..parts).map(|part| part * planes_per_part);
        let every = firsts.flat_map(|first| {
            std::iter::repeat_n(Turn { next: first, first, end: first + planes_per_part, left: round }, turns_per_part)
        });
        let (all, order) = (planes(context, streams, flash), turns(context, flash));
        let part_pages = context.logical_pages.div_ceil(parts);
        let groups = (context.placement.groups() > 1).then(|| {
            let named = Named::of(&context.placement.policies.fdp);
            Box::new(Groups::new(named, part_pages, &all, &order, flash))
        });
        Self {
            all,
            order,
            turn: every.collect(),
            allocation: context.placement.allocation,
            binds_pages: context.placement.allocation == Allocation::Static || parts > 1,
            part_pages,
            streams: turns_per_part,
            groups,
            watches_room: context.placement.allocation == Allocation::ByRoom && planes_per_part > 1,
            round,
            uneven: i64::from(share),
            pages_per_block: pages,
            drawn: 1,
            cleaner,
            asks_schedule: context.schedule_rules().asked,
            written: Vec::new(),
        }
    }

    /// The plane in turn for a page of a stream, as an index into the order; `page` is given for a data page, which
    /// static allocation binds to its plane, and several parts to the planes of one.
    #[inline(always)]
    pub fn next_turn(&mut self, page: Option<Written<'_>>, stream: u8) -> usize {
        let mut of = usize::from(stream);
        if self.binds_pages
            && let Some(page) = page
        {
            if self.allocation == Allocation::Static {
                return page.lpn.index() % self.order.len();
            }
            of += self.part_of(page) * self.streams;
        }
        let turn = &mut self.turn[of];
        let mine = turn.next as usize;
        turn.next = turn.after(mine);
        if self.watches_room {
            turn.left -= 1;
            if turn.left == 0 || self.all[self.order[mine] as usize].misses_turn(stream) {
                return self.turn_by_room(mine, of, stream);
            }
        }
        mine
    }

    /// The part that takes a page.
    #[inline(never)]
    fn part_of(&mut self, page: Written<'_>) -> usize {
        match &mut self.groups {
            Some(groups) => groups.choose(page, &self.all, &self.order),
            None => (page.lpn.0 / self.part_pages) as usize,
        }
    }

    /// Blocks are not as they were when it was built.
    pub fn begin_groups(&mut self, flash: &Flash) {
        if let Some(groups) = &mut self.groups {
            groups.begin(&self.all, &self.order, flash);
        }
    }

    /// By plane, its reclaim group, if there are several.
    pub fn groups_of_planes(&self) -> Option<Vec<u16>> {
        self.groups.as_ref().map(|groups| groups.of_planes(&self.order))
    }

    /// The first plane from `mine` on that misses no turn. A missed turn counts in its round, so that frontiers stay in step. After the last
    /// turn of a round, looks at the room of all planes.
    #[inline(never)]
    fn turn_by_room(&mut self, mut mine: usize, of: usize, stream: u8) -> usize {
        loop {
            let turn = self.turn[of];
            if turn.left == 0 {
                let others = (turn.end - turn.first) as usize - 1;
                let skipped = if self.look_at_room(turn, stream) { 1 + self.draw() as usize % others } else { 0 };
                self.turn[of] = Turn { next: turn.later(mine, 1 + skipped) as u32, left: self.round, ..turn };
            }
            let plane = &mut self.all[self.order[mine] as usize];
            if !plane.misses_turn(stream) {
                return mine;
            }
            plane.missing_turns -= 1;
            let turn = &mut self.turn[of];
            mine = turn.next as usize;
            turn.next = turn.after(mine);
            turn.left -= 1;
        }
    }

    fn draw(&mut self) -> u64 {
        self.drawn ^= self.drawn << 13;
        self.drawn ^= self.drawn >> 7;
        self.drawn ^= self.drawn << 17;
        self.drawn
    }

    /// Whether the room of some plane of a set falls short of the mean; those that fall short by much miss turns of this stream.
    fn look_at_room(&mut self, set: Turn, stream: u8) -> bool {
        let planes = &self.order[set.first as usize..set.end as usize];
        let sum: i64 = planes.iter().map(|plane| self.all[*plane as usize].room).sum();
        let mean = sum.div_euclid(planes.len() as i64);
        let short = SHORT_BLOCKS * i64::from(self.pages_per_block);
        let mut is_uneven = false;
        for plane in planes {
            let plane = &mut self.all[*plane as usize];
            is_uneven |= plane.room < mean - self.uneven;
            if plane.room < mean - short && plane.missing_turns == 0 {
                (plane.missing_turns, plane.missing_stream) = (self.pages_per_block, stream);
            }
        }
        is_uneven
    }

    /// The plane that takes a page: the one in turn, or the next of its part that can unless the page is bound to its plane; of
    /// another group if the planes of its own can't any more. Its frontier of the stream then has room.
    pub fn make_room<M: PageMapped>(
        &mut self,
        turn: usize,
        lpn: Option<Lpn>,
        stream: u8,
        map: &mut M,
        flash: &mut Flash,
    ) -> Result<usize, OutOfSpace> {
        let fixed = lpn.is_some() && self.allocation == Allocation::Static;
        let first = self.turn[usize::from(stream)];
        let of = turn / (first.end - first.first) as usize * self.streams + usize::from(stream);
        let part = self.turn[of];
        for step in 0..if fixed { 1 } else { (part.end - part.first) as usize } {
            let at = self.order[part.later(turn, step)] as usize;
            if self.can_take(at, stream, map, flash) {
                return Ok(at);
            }
        }
        if self.groups.is_some() {
            for place in 0..self.order.len() {
                let at = self.order[place] as usize;
                if self.can_take(at, stream, map, flash) {
                    return Ok(at);
                }
            }
        }
        Err(OutOfSpace::new(self.all.iter().map(|plane| plane.pool.len()).sum(), flash))
    }

    /// Whether the frontier of a stream has room, after cleaning if that is needed.
    fn can_take<M: PageMapped>(&mut self, at: usize, stream: u8, map: &mut M, flash: &mut Flash) -> bool {
        self.all[at].has_room(stream) || self.reclaim(at, Some(stream), map, flash).is_ok()
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
    /// a block beyond cleaning's needs. None if static allocation binds the pages of a block to several planes, or if each set has its own.
    pub fn own_block<M: PageMapped>(&mut self, map: &mut M, flash: &mut Flash) -> Option<(usize, BlockId)> {
        let planes = self.order.len();
        if self.binds_pages && planes > 1 {
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

    /// See [`crate::CleansInSteps::written_planes`].
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
            fewest = fewest.into_iter().chain(plane.valid_counts.as_ref()?.fewest()).min();
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
}

/// As [`Planes::drop_copy`].
#[inline(always)]
pub(crate) fn drop_copy(planes: &mut [Plane], old: Ppn, flash: &mut Flash) {
    let (block, left) = flash.invalidate(old);
    planes[flash.geometry().plane_of(block).index()].invalidated(block, left, flash);
}
