//! Planes that were found with pages in them.

use super::scan::Newest;
use super::{Found, Scan};
use crate::plane::{Frontier, Plane};
use crate::planes::Planes;
use crate::{Cause, Flash, OutOfSpace};
use flashwright_nand::{BlockId, Condition, PlaneId, Ppn, TORN};
use std::collections::BTreeMap;

/// Why a drive can't be mounted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// What was under way can be neither finished nor undone.
    #[error("the drive can't be mounted: {0}")]
    OutOfSpace(#[from] OutOfSpace),
    /// It has not been told to keep what a mount needs.
    #[error(
        "recovery.mount-by: found \"nothing\", expected \"scan\": without it the drive keeps nothing to mount from"
    )]
    NotKept,
}

impl Scan {
    /// Takes care that every plane has a free block, or one without a current page: where there is none, a clean was cut short, and
    /// the copies that it made in its last block are given up for their sources, which are still there.
    pub(crate) fn undo_cleans(&mut self, flash: &mut Flash) {
        let is_free = self.free_blocks(flash);
        for plane in 0..flash.geometry().planes() {
            let first = flash.geometry().first_block(PlaneId(plane)).0;
            let blocks = first..first + flash.geometry().blocks_per_plane();
            if !blocks.clone().any(|block| is_free[block as usize]) {
                self.undo_clean_of(blocks, flash); // which changes nothing in other planes
            }
        }
    }

    /// As [`Scan::undo_cleans`], for a scheme that cleans over the whole drive.
    pub(crate) fn undo_clean_of_drive(&mut self, flash: &mut Flash) {
        if !self.free_blocks(flash).contains(&true) {
            self.undo_clean_of(0..flash.geometry().blocks(), flash);
        }
    }

    /// Gives up the copies of the last clean in some blocks. Where a checkpoint says too little of their sources, all spare areas there
    /// are read.
    fn undo_clean_of(&mut self, blocks: std::ops::Range<u32>, flash: &mut Flash) {
        if !self.undo_clean(blocks.clone(), flash) && self.read_rest(blocks.clone(), flash) {
            self.undo_clean(blocks, flash);
        }
    }

    /// For each block, whether it has no current page and can be erased.
    fn free_blocks(&self, flash: &Flash) -> Vec<bool> {
        let usable = |block: BlockId| flash.nand().can_erase(block) && flash.nand().condition(block) == Condition::Good;
        let mut is_free: Vec<bool> = (0..flash.geometry().blocks()).map(|block| usable(BlockId(block))).collect();
        for (_, newest) in self.all() {
            is_free[flash.geometry().block_of(newest.ppn).index()] = false;
        }
        is_free
    }

    fn undo_clean(&mut self, blocks: std::ops::Range<u32>, flash: &Flash) -> bool {
        let last_opened: Vec<BlockId> =
            self.blocks.iter().rev().map(|found| found.block).filter(|block| blocks.contains(&block.0)).collect();
        for block in last_opened {
            if !flash.nand().can_erase(block) {
                continue;
            }
            let in_block: Vec<(u32, Newest)> =
                self.all().filter(|(_, newest)| flash.geometry().block_of(newest.ppn) == block).collect();
            let mut others = BTreeMap::new();
            for other in blocks.clone().map(BlockId).filter(|other| *other != block) {
                for page in 0..flash.nand().next_page(other) {
                    let ppn = flash.geometry().page_at(other, page);
                    if let Some(spare) = flash.spare_area(ppn).filter(|_| self.knows(ppn)) {
                        let copy = Newest { ppn, version: spare.version, sequence: spare.sequence };
                        others.insert((spare.owner.0, spare.version), copy);
                    }
                }
            }
            let copies: Option<Vec<(u32, Newest)>> = in_block
                .iter()
                .map(|(owner, newest)| Some((*owner, *others.get(&(*owner, newest.version))?)))
                .collect();
            if let Some(copies) = copies {
                for (owner, copy) in copies {
                    self.prefer(owner, copy);
                }
                return true;
            }
        }
        false
    }
}

impl Planes {
    /// Takes the blocks that were found: the last one opened for a stream is its frontier if it has room, others are sealed. Blocks
    /// without a current page are erased until a plane has `free` erased ones. The current pages are valid by now.
    pub(crate) fn adopt(&mut self, scan: &Scan, free: u32, flash: &mut Flash) {
        for Found { block, .. } in &scan.blocks {
            let plane = flash.geometry().plane_of(*block).index();
            self.all[plane].adopt(*block, free, scan, flash);
        }
        for plane in &mut self.all {
            plane.share_with_cache(free as usize, flash);
            let room = plane.slc_room();
            plane.slc.iter_mut().for_each(|slc| slc.reset_figures(room));
            plane.begin_room(flash);
        }
        self.begin_groups(flash);
    }
}

impl Plane {
    /// Where a clean was cut short, a fixed SLC cache lends the plane erased blocks that it lacks to clean, until the next mount.
    fn share_with_cache(&mut self, free: usize, flash: &Flash) {
        let Some(own) = self.slc.as_mut().and_then(|slc| slc.own.as_mut()) else { return };
        while self.pool.len() < free
            && let Some(local) = own.pop()
        {
            self.pool.push(local, flash.nand().wear_rank(BlockId(self.first_block.0 + local)));
        }
    }

    fn adopt(&mut self, block: BlockId, free: u32, scan: &Scan, flash: &mut Flash) {
        if flash.nand().condition(block) != Condition::Good {
            return;
        }
        let local = block.0 - self.first_block.0;
        let has_data = flash.pages_valid(block) > 0;
        let can_erase = flash.nand().can_erase(block);
        if !has_data && can_erase && (is_torn(block, flash) || self.pool.len() < free as usize) {
            flash.erase(block, Cause::Gc);
            let own = self.slc.as_mut().filter(|_| flash.is_slc(block)).and_then(|slc| slc.own.as_mut());
            let own = own.filter(|_| flash.nand().can_erase(block));
            own.unwrap_or(&mut self.pool).push(local, flash.nand().wear_rank(block));
            if let Some(leveler) = &mut self.leveler {
                let wear = flash.nand().wear_rank(block);
                leveler.opened(local);
                leveler.erased(local, wear, crate::policies::victim::PlaneView::new(flash, self.first_block));
            }
            return;
        }
        if let Some(leveler) = &mut self.leveler {
            leveler.opened(local);
        }
        let stream = usize::from(flash.stream_of(block)).min(self.streams() - 1);
        let next = flash.nand().next_page(block);
        // Host pages and moved pages have blocks of their own beside an SLC cache; an open normal block takes moved pages from now on.
        let (stream, pages) = match &mut self.slc {
            Some(slc) if flash.is_slc(block) => (self.frontiers.len() / 2 + stream, slc.opens(stream)),
            _ => (stream, flash.geometry().pages_per_block()),
        };
        if next < pages && is_last_of_stream(block, scan, flash) {
            let first = flash.geometry().first_page(block).0;
            self.frontiers[stream] = Frontier { next: first + next, end: first + pages };
        } else {
            self.seal(stream, block, flash);
        }
    }
}

/// Whether no page of a block can be read.
fn is_torn(block: BlockId, flash: &Flash) -> bool {
    (0..flash.nand().next_page(block)).all(|page| {
        let owner = flash.nand().spare(flash.geometry().page_at(block, page));
        owner.is_none_or(|owner| owner == TORN)
    })
}

/// Whether a block was the last one opened of its stream in its plane, among those that take pages.
fn is_last_of_stream(block: BlockId, scan: &Scan, flash: &Flash) -> bool {
    let plane = flash.geometry().plane_of(block);
    let of_stream = |found: &&Found| {
        flash.geometry().plane_of(found.block) == plane
            && flash.stream_of(found.block) == flash.stream_of(block)
            && flash.is_slc(found.block) == flash.is_slc(block)
            && flash.nand().condition(found.block) == Condition::Good
            && !is_torn(found.block, flash)
    };
    scan.blocks.iter().rfind(of_stream).is_some_and(|last| last.block == block)
}

/// Marks the newest copies as the current ones.
pub(crate) fn adopt_pages(scan: &Scan, flash: &mut Flash, mut map: impl FnMut(u32, Ppn)) {
    for (owner, newest) in scan.all() {
        flash.adopt(newest.ppn, flashwright_nand::Lpn(owner));
        map(owner, newest.ppn);
    }
}
