//! The steps of cleaning a block: copies, pages of the map, the erase.

use super::{Moving, PageMapped, Work};
use crate::plane::Plane;
use crate::{Cause, Flash};
use flashwright_nand::Ppn;

/// The steps of one call.
pub(super) struct Steps {
    pub budget: u32,
    pub made: u32,
    /// Free blocks that the plane needs for the work to pause.
    pub kept: usize,
}

impl Steps {
    /// Makes steps of a piece of work; returns whether it is finished.
    pub fn of<M: PageMapped>(
        &mut self,
        work: &mut Work,
        at: usize,
        planes: &mut [Plane],
        map: &mut M,
        flash: &mut Flash,
        others_rest: bool,
    ) -> bool {
        let recycles = work.cause == Cause::Wear;
        if !self.copy(work, &mut planes[at], map, flash) {
            return false;
        }
        if let Some((into, next)) = work.into.take() {
            planes[at].seal_recycled(into, next, flash);
        }
        (recycles || self.write_map(work, at, planes, map, flash, others_rest))
            && (work.erased || self.erase(work, &mut planes[at], flash))
            && (!recycles || self.write_map(work, at, planes, map, flash, others_rest))
    }

    /// Whether the budget is used up. Work that must not pause gets all the steps it needs.
    #[inline]
    fn over(&mut self, plane: &Plane) -> bool {
        if self.made < self.budget {
            return false;
        }
        if plane.pool.len() >= self.kept {
            return true;
        }
        self.budget = u32::MAX;
        false
    }

    /// Copies pages; returns whether all are copied.
    fn copy<M: PageMapped>(&mut self, work: &mut Work, plane: &mut Plane, map: &mut M, flash: &mut Flash) -> bool {
        let Work { moving, pending, .. } = work;
        while let Some(Moving { from, lpns }) = moving.get(work.stream) {
            let first = work.next;
            if first == from.len() {
                (work.stream, work.next) = (work.stream + 1, 0);
                continue;
            }
            if work.rested && !flash.is_valid(Ppn(from[first])) {
                work.next += 1;
                continue;
            }
            if self.over(plane) {
                return false;
            }
            let mut end = from.len().min(first + (self.budget - self.made) as usize);
            if work.rested {
                end = first + from[first..end].iter().take_while(|ppn| flash.is_valid(Ppn(**ppn))).count();
            }
            let (from, lpns) = (&from[first..end], &lpns[first..end]);
            match &mut work.into {
                None => plane.copy(from, lpns, work.stream, work.cause, flash, |owners, first| {
                    map.moved(owners, first, pending)
                }),
                Some((_, next)) => {
                    flash.copy_run(from, lpns, Ppn(*next), work.cause);
                    map.moved(lpns, *next, pending);
                    *next += lpns.len() as u32;
                }
            }
            if self.budget != u32::MAX {
                from.iter().for_each(|ppn| _ = flash.invalidate(Ppn(*ppn)));
            }
            work.next = end;
            work.copied += from.len() as u32;
            self.made += from.len() as u32;
        }
        true
    }

    /// Writes pending pages of the map; returns whether all are written.
    fn write_map<M: PageMapped>(
        &mut self,
        work: &mut Work,
        at: usize,
        planes: &mut [Plane],
        map: &mut M,
        flash: &mut Flash,
        others_rest: bool,
    ) -> bool {
        work.order_pending();
        let cause = if work.cause == Cause::Wear { Cause::Wear } else { Cause::GcTranslation };
        while let Some(page) = work.pending.get(work.written).copied() {
            if self.over(&planes[at]) {
                return false;
            }
            map.write_map_page(page, at, cause, planes, flash);
            work.written += 1;
            self.made += 1;
            if others_rest {
                forget_pending(page, planes);
            }
        }
        true
    }

    /// Erases the block, which holds no valid page any more.
    fn erase(&mut self, work: &mut Work, plane: &mut Plane, flash: &mut Flash) -> bool {
        if self.over(plane) {
            return false;
        }
        flash.invalidate_block(work.block);
        flash.erase(work.block, work.cause);
        plane.free(work.block, flash);
        work.erased = true;
        self.made += 1;
        true
    }
}

/// A page of the map was written: paused work need not write it for the pages that it has moved so far.
#[cold]
pub(super) fn forget_pending(page: u32, planes: &mut [Plane]) {
    for work in planes.iter_mut().filter_map(|plane| plane.work.as_mut()) {
        work.pending.retain(|other| *other != page);
    }
}
