//! A plane of a page-mapped scheme: its free pool, open blocks and victim policy.
//!
//! A plane moves its blocks through their states; the scheme decides what a page means and where its map is stored.
//!
//! ```text
//!   free ── open ──► a frontier ── last page programmed: seal ──► sealed ── a clean: erase ──► free
//!                                        └─ erase budget spent ──► retired
//! ```
//!
//! A recycling for the sake of wear takes a free block straight to sealed, with the valid pages of a sealed one.

use crate::cleaner::Work;
use crate::policies::schedule::Schedule;
use crate::policies::victim::{PlaneView, Victim};
use crate::policies::wear::{BlockUse, Leveler, Recycle, WearContext};
use crate::schemes::SchemeContext;
use crate::slc::SlcCache;
use crate::valid_count_histogram::ValidCountHistogram;
use crate::{BlockPool, Cause, Flash, Violation};
use flashwright_nand::{BlockId, Condition, Lpn, PlaneId, Ppn};
use serde::{Deserialize, Serialize};

/// One plane.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plane {
    pub first_block: BlockId,
    pub pool: BlockPool,
    /// The open block of each stream.
    pub frontiers: Vec<Frontier>,
    pub victim: Victim,
    pub sealed: u32,
    /// Valid pages of the sealed blocks, if requested.
    pub valid_counts: Option<Box<ValidCountHistogram>>,
    /// The sealed blocks of the last stream, if the scheme needs to find them.
    pub last_stream: Option<Vec<BlockId>>,
    /// Wear levelling, if there is a policy.
    pub leveler: Option<Box<Leveler>>,
    /// Blocks that the current round of wear levelling has recycled; none while no round is due.
    pub recycled: Option<u32>,
    /// The paused clean or recycling.
    pub work: Option<Box<Work>>,
    /// Decides when the plane cleans.
    pub schedule: Schedule,
    /// Valid pages of the latest victim when it was chosen.
    pub copies: u32,
    /// Pages of its good blocks that hold no valid page; blocks that only an SLC cache uses don't count.
    pub room: i64,
    /// Turns of a stream that it misses because it is short of room, and the stream: see [`crate::planes`].
    pub missing_turns: u32,
    pub missing_stream: u8,
    /// Whether blocks of it are retired.
    retired: bool,
    /// Host pages written since the schedule was last consulted, if it is consulted.
    pub written: u32,
    /// The SLC cache, if there is one. The second half of the frontiers is then the host's.
    pub slc: Option<Box<SlcCache>>,
}

/// An open block: the next page to program and one past the last. Both 0 if no block is open.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Frontier {
    pub next: u32,
    pub end: u32,
}

impl Frontier {
    #[inline(always)]
    pub fn room(self) -> u32 {
        self.end - self.next
    }
}

/// The planes of a drive, with their erased blocks, each with this many placement streams. Their `last_stream` is not tracked.
pub(crate) fn planes(context: &SchemeContext, streams: usize, flash: &Flash) -> Vec<Plane> {
    let geometry = flash.geometry();
    (0..geometry.planes())
        .map(|plane| {
            let first_block = geometry.first_block(PlaneId(plane));
            let mut pool = BlockPool::new(context.wear.free_block);
            let wear = |local: u32| flash.nand().wear_rank(BlockId(first_block.0 + local));
            let good: Vec<u32> = (0..geometry.blocks_per_plane())
                .filter(|local| flash.nand().condition(BlockId(first_block.0 + local)) == Condition::Good)
                .collect();
            let is_erased = |local: &u32| flash.nand().next_page(BlockId(first_block.0 + local)) == 0;
            for local in good.iter().copied().filter(is_erased) {
                pool.push(local, wear(local));
            }
            // After a loss of power.
            let in_slc_mode = good.iter().map(|local| BlockId(first_block.0 + local));
            let in_slc_mode = in_slc_mode.filter(|block| flash.is_slc(*block) && flash.nand().next_page(*block) > 0);
            let slc_blocks = [good.len() as u64, in_slc_mode.count() as u64];
            let streams_u8 = u8::try_from(streams).expect("streams are counted in 8 bits");
            let wear_context = WearContext {
                blocks: geometry.blocks_per_plane(),
                good,
                rng: context.seed.stream(&format!("wear.policy.{plane}")),
            };
            let slc = context.slc.map(|slc| {
                let own = BlockPool::new(context.wear.free_block);
                Box::new(SlcCache::new(&slc, streams, slc_blocks, &mut pool, own, wear, flash))
            });
            let mut plane = Plane {
                first_block,
                pool,
                frontiers: vec![Frontier::default(); if slc.is_some() { 2 * streams } else { streams }],
                victim: context.victim_of(plane, streams_u8, flash),
                sealed: 0,
                valid_counts: None,
                last_stream: None,
                leveler: context
                    .levels_wear()
                    .then(|| Box::new(Leveler::new(wear_context, wear, |made_for| context.wear_of(plane, made_for)))),
                recycled: None,
                work: None,
                schedule: context.schedule_of(plane, streams_u8, flash),
                copies: 0,
                room: 0,
                missing_turns: 0,
                missing_stream: 0,
                retired: false,
                written: 0,
                slc,
            };
            plane.begin_room(flash);
            plane
        })
        .collect()
}

/// Blocks of a plane that were not bad from the factory.
pub(crate) fn good_blocks(flash: &Flash, plane: PlaneId) -> u64 {
    let first = flash.geometry().first_block(plane).0;
    (first..first + flash.geometry().blocks_per_plane())
        .filter(|block| flash.nand().condition(BlockId(*block)) == Condition::Good)
        .count() as u64
}

/// Victims that the wear policy may skip in one clean.
const PASSED_OVER_MAX: usize = 8;

impl Plane {
    /// Opens the next free block as the frontier of `stream`.
    pub fn open(&mut self, stream: u8, flash: &mut Flash) {
        let streams = u8::try_from(self.streams()).expect("streams are counted in 8 bits");
        let local =
            self.pool.pop_for(stream % streams, streams).expect("a clean starts with a free block for its copies");
        if let Some(leveler) = &mut self.leveler {
            leveler.opened(local);
        }
        self.begin(stream, local, false, flash);
    }

    /// Makes an erased block the frontier of a stream.
    pub fn begin(&mut self, stream: u8, local: u32, slc: bool, flash: &mut Flash) {
        let (block, at) = (BlockId(self.first_block.0 + local), usize::from(stream) % self.streams());
        let pages = match &mut self.slc {
            Some(cache) if slc => cache.opens(at),
            _ => flash.geometry().pages_per_block(),
        };
        flash.set_stream(block, u8::try_from(at).expect("streams are counted in 8 bits"));
        flash.set_slc(block, slc);
        let first = flash.geometry().first_page(block).0;
        self.frontiers[usize::from(stream)] = Frontier { next: first, end: first + pages };
    }

    /// Placement streams. Pages that cleaning moves go to the frontiers of this number.
    #[inline]
    pub fn streams(&self) -> usize {
        self.frontiers.len() / if self.slc.is_some() { 2 } else { 1 }
    }

    /// Takes the next page of a frontier, if it has room; answers also whether that was the last of its block, which is to be sealed once
    /// the page is programmed.
    #[inline(always)]
    pub fn take(&mut self, stream: usize) -> Option<(Ppn, bool)> {
        let frontier = &mut self.frontiers[stream];
        let next = frontier.next;
        (next != frontier.end).then(|| {
            frontier.next = next + 1;
            self.room -= 1;
            (Ppn(next), next + 1 == frontier.end)
        })
    }

    /// Programs `lpn` in the next page of a frontier with room, and seals the block if that was its last page.
    #[inline(always)]
    pub fn program(&mut self, stream: usize, lpn: Lpn, cause: Cause, flash: &mut Flash) -> Ppn {
        let (ppn, is_last) = self.take(stream).expect("the frontier has room");
        flash.program(ppn, lpn, cause);
        if is_last {
            self.seal_full(stream, ppn, flash);
        }
        ppn
    }

    /// Seals the block whose last page, in the frontier of a stream, was just programmed.
    #[cold]
    pub fn seal_full(&mut self, stream: usize, last: Ppn, flash: &mut Flash) {
        self.seal(stream, flash.geometry().block_of(last), flash);
    }

    /// A stream whose frontier has room: the requested one, after opening a block if necessary. If one clean moves
    /// pages to more streams than there are free blocks, it is the nearest stream with room; one free block at the
    /// start of a clean is room for all its pages.
    #[inline]
    fn with_room(&mut self, stream: usize, flash: &mut Flash) -> usize {
        if self.frontiers[stream].room() == 0 {
            if self.pool.is_empty() {
                return self.nearest_with_room(stream);
            }
            self.open(u8::try_from(stream).expect("streams are counted in 8 bits"), flash);
        }
        stream
    }

    /// Pages that fit the open blocks that cleaning copies to.
    #[cold]
    pub fn room_of_frontiers(&self) -> u32 {
        self.frontiers[..self.streams()].iter().map(|frontier| frontier.room()).sum()
    }

    #[cold]
    fn nearest_with_room(&self, stream: usize) -> usize {
        let open = (0..self.streams()).filter(|other| self.frontiers[*other].room() > 0);
        open.min_by_key(|other| (stream.abs_diff(*other), *other))
            .expect("a clean starts with a free block for its copies")
    }

    /// Copies the pages `from`, owned by `lpns`, to the frontier of a stream, opening blocks as needed, and calls
    /// `moved` for each run with its owners and the first page. The sources stay valid.
    #[inline]
    pub fn copy(
        &mut self,
        from: &[u32],
        lpns: &[u32],
        stream: usize,
        cause: Cause,
        flash: &mut Flash,
        mut moved: impl FnMut(&[u32], u32),
    ) {
        let mut done = 0;
        while done < lpns.len() {
            let stream = self.with_room(stream, flash);
            let frontier = &mut self.frontiers[stream];
            let count = (lpns.len() - done).min(frontier.room() as usize);
            let first = frontier.next;
            frontier.next += u32::try_from(count).expect("no larger than the room");
            let batch = done..done + count;
            flash.copy_run(&from[batch.clone()], &lpns[batch.clone()], Ppn(first), cause);
            moved(&lpns[batch], first);
            if self.frontiers[stream].room() == 0 {
                self.seal_full(stream, Ppn(first), flash);
            }
            done += count;
        }
    }

    /// A page of the plane became invalid; its block has `left` valid pages.
    #[inline(always)]
    pub fn invalidated(&mut self, block: BlockId, left: u32, flash: &Flash) {
        self.room += 1;
        if self.valid_counts.is_some() || self.retired {
            self.count_invalidated(block, left, flash);
        }
        self.victim.invalidated(block.0 - self.first_block.0, left, PlaneView::new(flash, self.first_block));
    }

    #[inline(never)] // drives that don't need it must not pay for it
    fn count_invalidated(&mut self, block: BlockId, left: u32, flash: &Flash) {
        if flash.nand().condition(block) != Condition::Good {
            self.room -= 1; // a retired block takes no page again
        }
        if let Some(valid_counts) = &mut self.valid_counts {
            valid_counts.invalidated(block.0 - self.first_block.0, left);
        }
    }

    /// Starts to count the sealed blocks by valid pages.
    pub fn watch_fewest(&mut self, flash: &Flash) {
        let geometry = flash.geometry();
        let blocks = geometry.blocks_per_plane();
        let mut valid_counts = ValidCountHistogram::new(blocks, geometry.pages_per_block());
        for local in 0..blocks {
            let block = BlockId(self.first_block.0 + local);
            if self.is_sealed(block, flash) {
                valid_counts.seal(local, flash.pages_valid(block));
            }
        }
        self.valid_counts = Some(Box::new(valid_counts));
    }

    /// Counts its room anew: blocks are not as they were when it was built.
    pub fn begin_room(&mut self, flash: &Flash) {
        let mut blocks = (self.first_block.0..).take(flash.geometry().blocks_per_plane() as usize).map(BlockId);
        self.retired = blocks.any(|block| flash.nand().condition(block) == Condition::Retired);
        (self.room, self.missing_turns) = (self.count_room(flash), 0);
    }

    /// Whether it misses its turn for a page of this stream.
    #[inline(always)]
    pub fn misses_turn(&self, stream: u8) -> bool {
        self.missing_turns > 0 && self.missing_stream == stream
    }

    /// Its `room`, by a search.
    pub fn count_room(&self, flash: &Flash) -> i64 {
        let geometry = flash.geometry();
        let pages = i64::from(geometry.pages_per_block());
        let blocks = (self.first_block.0..self.first_block.0 + geometry.blocks_per_plane()).map(BlockId);
        let good = blocks.filter(|block| flash.nand().condition(*block) == Condition::Good);
        let of_cache = self.slc.as_ref().map_or(0, |slc| slc.only_its_own());
        good.map(|block| pages - i64::from(flash.pages_valid(block))).sum::<i64>() - pages * of_cache as i64
    }

    /// Valid pages, by a search.
    pub fn pages_valid(&self, flash: &Flash) -> i64 {
        let blocks = (self.first_block.0..).take(flash.geometry().blocks_per_plane() as usize).map(BlockId);
        blocks.map(|block| i64::from(flash.pages_valid(block))).sum()
    }

    /// Erased pages.
    pub fn free_pages(&self, flash: &Flash) -> u64 {
        let open: u64 = self.frontiers.iter().map(|frontier| u64::from(frontier.room())).sum();
        self.pool.len() as u64 * u64::from(flash.geometry().pages_per_block()) + open
    }

    /// Whether the frontier of a stream has room.
    #[inline(always)]
    pub fn has_room(&self, stream: u8) -> bool {
        self.frontiers[usize::from(stream)].room() > 0
    }

    /// Whether a block may be cleaned: written, not open, not retired, not being cleaned, not in the SLC cache.
    pub fn is_sealed(&self, block: BlockId, flash: &Flash) -> bool {
        let open = |frontier: &Frontier| frontier.room() > 0 && flash.geometry().block_of(Ppn(frontier.next)) == block;
        flash.nand().condition(block) == Condition::Good
            && flash.nand().next_page(block) > 0
            && !flash.is_slc(block)
            && !self.frontiers.iter().any(open)
            && self.work.as_ref().is_none_or(|work| !work.holds(block))
    }

    /// Programs pages into an erased block of their own, in order, and reports each owner's page to `placed`. Then it
    /// seals the block, even if it is not full: a later clean regains the unprogrammed pages.
    pub fn fill_own(&mut self, block: BlockId, lpns: &[u32], flash: &mut Flash, mut placed: impl FnMut(u32, Ppn)) {
        if let Some(leveler) = &mut self.leveler {
            leveler.opened(block.0 - self.first_block.0);
        }
        // The stream that the block was last opened for may be one that host pages never go to.
        flash.set_stream(block, 0);
        self.room -= lpns.len() as i64;
        for (lpn, page) in lpns.iter().zip(0..) {
            let ppn = flash.geometry().page_at(block, page);
            flash.program(ppn, Lpn(*lpn), Cause::Host);
            placed(*lpn, ppn);
        }
        self.seal(0, block, flash);
    }

    /// The last page of an open block was programmed: it becomes a candidate, or retires if its budget is spent.
    pub fn seal(&mut self, stream: usize, block: BlockId, flash: &mut Flash) {
        let local = block.0 - self.first_block.0;
        if flash.is_slc(block)
            && let Some(slc) = &mut self.slc
        {
            slc.seals(stream - self.frontiers.len() / 2, block);
        } else if flash.nand().can_erase(block) {
            self.sealed += 1;
            self.victim.sealed(local, PlaneView::new(flash, self.first_block));
            if let Some(valid_counts) = &mut self.valid_counts {
                valid_counts.seal(local, flash.pages_valid(block));
            }
            if let Some(leveler) = &mut self.leveler {
                leveler.sealed(local);
            }
            if stream + 1 == self.frontiers.len()
                && let Some(kept) = &mut self.last_stream
            {
                kept.push(block);
            }
        } else {
            flash.retire(block);
            self.retired = true;
            self.room -= i64::from(flash.geometry().pages_per_block() - flash.pages_valid(block));
            if let Some(leveler) = &mut self.leveler {
                leveler.retired(local);
            }
        }
    }

    /// The next victim: the victim policy's choice, unless the wear policy skips it in favour of the next choice. A
    /// block without an invalid page never replaces another.
    pub fn pick(&mut self, flash: &Flash) -> Option<u32> {
        let view = PlaneView::new(flash, self.first_block);
        let first = self.victim.pick(view)?;
        let Some(leveler) = &mut self.leveler else { return Some(first) };
        let pages = flash.geometry().pages_per_block();
        let (mut chosen, mut passed) = (first, Vec::new());
        while passed.len() < PASSED_OVER_MAX && leveler.passes_over(chosen, view) {
            self.victim.removed(chosen);
            passed.push(chosen);
            match self.victim.pick(view).filter(|next| view.pages_valid(*next) < pages) {
                Some(next) => chosen = next,
                None => {
                    chosen = first;
                    break;
                }
            }
        }
        for block in passed {
            self.victim.sealed(block, view);
        }
        Some(chosen)
    }

    /// The next recycling that the wear policy wants, if the plane has more free blocks than `reserve`; `nth` counts
    /// from the last clean. A policy must name a sealed or free block to recycle and a free one to take its pages;
    /// anything else is a bug.
    pub fn next_recycling(&mut self, nth: u32, reserve: usize, flash: &Flash) -> Option<Recycle> {
        if self.pool.len() <= reserve || nth >= flash.geometry().blocks_per_plane() {
            return None;
        }
        let leveler = self.leveler.as_mut()?;
        let recycle = leveler.recycle(nth, PlaneView::new(flash, self.first_block))?;
        let used = leveler.ledger().used_as(recycle.block);
        assert!(matches!(used, BlockUse::Sealed | BlockUse::Free), "{recycle:?}: the block is {used:?}");
        if let Some(into) = recycle.into {
            assert_eq!(leveler.ledger().used_as(into), BlockUse::Free, "{recycle:?}");
        }
        Some(recycle)
    }

    /// Takes a sealed block, or a free one, to recycle it.
    pub fn take_to_recycle(&mut self, block: BlockId, flash: &Flash) {
        let local = block.0 - self.first_block.0;
        if !self.pool.take(local) {
            self.remove(block, flash);
        } else if let Some(leveler) = &mut self.leveler {
            leveler.opened(local);
        }
    }

    /// Takes the free block for the pages of a recycled block: a given one, or the next from the pool.
    pub fn take_for(&mut self, recycled: BlockId, into: Option<u32>, flash: &mut Flash) -> BlockId {
        let to = match into {
            Some(into) => self.pool.take(into).then_some(into),
            None => self.pool.pop(),
        };
        let to = to.expect("a recycling starts with a free block");
        if let Some(leveler) = &mut self.leveler {
            leveler.opened(to);
        }
        let to = BlockId(self.first_block.0 + to);
        flash.set_stream(to, flash.stream_of(recycled));
        to
    }

    /// Seals the block that took recycled pages, up to the page before `next`, even if it is not full; frees it again
    /// if it took none.
    pub fn seal_recycled(&mut self, block: BlockId, next: u32, flash: &mut Flash) {
        if next > flash.geometry().first_page(block).0 {
            let stream = usize::from(flash.stream_of(block));
            return self.seal(stream, block, flash);
        }
        let local = block.0 - self.first_block.0;
        self.pool.push(local, flash.nand().wear_rank(block));
        if let Some(leveler) = &mut self.leveler {
            leveler.unused(local);
        }
    }

    /// Removes a sealed block from the victim policy, to be cleaned, or a full one from the SLC cache, to be folded.
    pub fn remove(&mut self, block: BlockId, flash: &Flash) {
        if flash.is_slc(block)
            && let Some(slc) = &mut self.slc
        {
            return slc.takes_to_fold(block);
        }
        self.victim.removed(block.0 - self.first_block.0);
        if let Some(valid_counts) = &mut self.valid_counts {
            valid_counts.remove(block.0 - self.first_block.0, flash.pages_valid(block));
        }
        if let Some(leveler) = &mut self.leveler {
            leveler.opened(block.0 - self.first_block.0);
        }
        self.sealed -= 1;
        if let Some(kept) = &mut self.last_stream
            && let Some(at) = kept.iter().position(|known| *known == block)
        {
            kept.swap_remove(at);
        }
    }

    /// A block that was erased is free again.
    pub fn free(&mut self, block: BlockId, flash: &Flash) {
        let (local, wear) = (block.0 - self.first_block.0, flash.nand().wear_rank(block));
        let slc = self.slc.as_mut().filter(|_| flash.is_slc(block));
        let own = slc.and_then(|slc| {
            slc.in_use -= 1;
            let stays = flash.nand().can_erase(block);
            if slc.own.is_some() && !stays {
                self.room += i64::from(flash.geometry().pages_per_block()); // it becomes a normal block
            }
            slc.own.as_mut().filter(|_| stays)
        });
        own.unwrap_or(&mut self.pool).push(local, wear);
        if let Some(leveler) = &mut self.leveler {
            leveler.erased(local, wear, PlaneView::new(flash, self.first_block));
        }
    }

    /// Appends contradictions in the states of the plane's blocks.
    pub fn audit(&self, plane: usize, flash: &Flash, violations: &mut Vec<Violation>) {
        let blocks = flash.geometry().blocks_per_plane();
        let conditions = |condition: Condition| {
            (self.first_block.0..self.first_block.0 + blocks)
                .filter(|block| flash.nand().condition(BlockId(*block)) == condition)
                .count()
        };
        let frontiers = self.frontiers.iter().filter(|frontier| frontier.room() > 0).count();
        let open = frontiers + self.work.as_ref().map_or(0, |work| work.blocks());
        let retired = conditions(Condition::Retired);
        let bad = conditions(Condition::FactoryBad) + conditions(Condition::System);
        let in_cache = self.slc.as_ref().map_or(0, |slc| slc.sealed.len() + slc.own_free());
        let accounted = self.pool.len() + open + self.sealed as usize + in_cache + retired + bad;
        if accounted != blocks as usize {
            violations.push(Violation(format!(
                "plane {plane}: {} free + {open} open + {} sealed + {in_cache} of the SLC cache + {retired} retired + \
                 {bad} bad are not its {blocks} blocks",
                self.pool.len(),
                self.sealed
            )));
        }
        let room = self.count_room(flash);
        if self.room != room {
            violations.push(Violation(format!(
                "plane {plane}: room for {} pages by the count, {room} by a search",
                self.room
            )));
        }
        if self.victim.candidates() != self.sealed {
            violations.push(Violation(format!(
                "plane {plane}: the victim policy knows {} blocks, {} are sealed",
                self.victim.candidates(),
                self.sealed
            )));
        }
        if let Some(valid_counts) = &self.valid_counts {
            let sealed = (self.first_block.0..self.first_block.0 + blocks).map(BlockId);
            let sealed = sealed.filter(|block| self.is_sealed(*block, flash));
            let least = sealed.map(|block| flash.pages_valid(block)).min();
            if valid_counts.fewest() != least {
                violations.push(Violation(format!(
                    "plane {plane}: {:?} valid pages are counted as the fewest, a search finds {least:?}",
                    valid_counts.fewest()
                )));
            }
        }
        if let Some(leveler) = &self.leveler {
            let known = [BlockUse::Free, BlockUse::Open, BlockUse::Sealed].map(|used| leveler.count(used));
            let found = [self.pool.len(), open, self.sealed as usize];
            if known != found {
                violations.push(Violation(format!(
                    "plane {plane}: wear levelling knows {known:?} free, open and sealed blocks of {found:?}"
                )));
            }
        }
        if let Some(slc) = &self.slc {
            let folding = self.work.as_ref().and_then(|work| work.folding());
            slc.audit(plane, folding, flash, violations);
        }
        let own = self.slc.iter().filter_map(|slc| slc.own.as_ref()).flat_map(BlockPool::blocks);
        for block in self.pool.blocks().into_iter().chain(own).map(|local| BlockId(self.first_block.0 + local)) {
            if flash.nand().next_page(block) != 0 || flash.pages_valid(block) != 0 {
                violations.push(Violation(format!("block {} is in the free pool but not erased", block.0)));
            }
        }
    }
}
