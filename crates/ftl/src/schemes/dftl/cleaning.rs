//! Cleaning of data and translation blocks (Gupta 2009, section 3.3).
//!
//! A clean of data copies the valid pages to the open data block. Entries that are cached are changed there and nothing
//! on flash (lazy copying); the others are grouped by translation page, each of which is read, changed and written once
//! (batch update). A clean of translation pages copies them and changes the directory.
//!
//! **Space.** A data clean may open a block for data and one for translation pages and gain only one, and the translation
//! pages that it writes may be more than the pages that it gains. It turns data pages that are old into translation pages
//! that are old, which a clean of a translation block gets back without any loss: both together always gain. So a clean
//! starts with enough free blocks for all that it may open, and goes on until they are there again; while they are not,
//! a victim that loses room is passed over for the translation block with the fewest valid pages, and only where no
//! translation page is old, for the data block with the fewest. Nothing here calls itself, and cleans without a gain are
//! counted.
//!
//! **Wear levelling.** A recycling of data writes translation pages too, at most a block of them, and their old copies are
//! got back as above. So it runs once in the making of room, before a block is opened, and only while that leaves the
//! reserve free.

use super::{Dftl, NONE};
use crate::policies::placement::Relocation;
use crate::policies::victim::UnitView;
use crate::units::{Exhausted, Frontier, Moving, drop_copy};
use crate::{Cause, Flash};
use flashwright_nand::{BlockId, Lpn, Ppn, prefetch};

/// What a clean of a block would take.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// Pages of the block that would be free afterwards, less all pages written.
    gain: i64,
    /// Blocks that it would open.
    blocks: usize,
    /// Pages of the block that hold nothing current.
    invalid: u32,
}

impl Dftl {
    /// Gets room in a frontier of a unit that has none: opens a block, after cleaning while free blocks are few.
    pub(super) fn make_room(&mut self, unit: usize, stream: u8, flash: &mut Flash) -> Result<(), Exhausted> {
        self.reclaim(unit, Some(stream), flash)
    }

    /// As [`Dftl::make_room`], or without a stream gets a free block beyond the minimum.
    pub(super) fn reclaim(&mut self, unit: usize, stream: Option<u8>, flash: &mut Flash) -> Result<(), Exhausted> {
        let geometry = flash.geometry();
        let patience = 2 * (geometry.blocks_per_plane() + geometry.pages_per_block());
        let (mut best, mut fruitless) = (0, 0);
        let (mut cleaned, mut leveled) = (false, self.units[unit].leveler.is_none());
        self.passed_over = None;
        self.desperate = false;
        loop {
            let free = self.units[unit].pool.len();
            let room = stream.is_some_and(|stream| self.has_room(unit, stream));
            if room && free >= self.reserve {
                return Ok(());
            }
            if !room && free > self.free_blocks_min {
                if cleaned && !std::mem::replace(&mut leveled, true) {
                    self.level_wear(unit, flash);
                    (best, fruitless) = (0, 0);
                    continue;
                }
                if let Some(stream) = stream {
                    self.units[unit].open(stream, flash);
                }
                return Ok(());
            }
            if fruitless > patience && !self.desperate {
                // A policy that keeps naming full blocks has had its chance.
                self.desperate = true;
                (best, fruitless) = (0, 0);
            }
            cleaned = true;
            if fruitless > patience || self.clean(unit, flash).is_err() {
                // Blocks that were lost to wear can leave the reserve short for good; a frontier with room still serves.
                let room = stream.is_some_and(|stream| self.has_room(unit, stream));
                return if room { Ok(()) } else { Err(Exhausted) };
            }
            let pages = self.free_pages(unit, flash);
            fruitless = if pages > best { 0 } else { fruitless + 1 };
            best = best.max(pages);
        }
    }

    /// Whether a frontier of a unit can take a page.
    #[inline(always)]
    pub(super) fn has_room(&self, unit: usize, stream: u8) -> bool {
        self.units[unit].frontiers[usize::from(stream)].room() > 0
    }

    /// Erased pages of a unit.
    fn free_pages(&self, unit: usize, flash: &Flash) -> u64 {
        let unit = &self.units[unit];
        let open: u64 = unit.frontiers.iter().map(|frontier| u64::from(frontier.room())).sum();
        unit.pool.len() as u64 * u64::from(flash.geometry().pages_per_block()) + open
    }

    /// Cleans one victim.
    fn clean(&mut self, unit: usize, flash: &mut Flash) -> Result<(), Exhausted> {
        let (block, cost) = self.pick(unit, flash).ok_or(Exhausted)?;
        self.units[unit].remove(block, flash);
        let pages = flash.geometry().pages_per_block();
        let figures = &mut self.figures;
        figures.collections += 1;
        figures.victim_pages_invalid += u64::from(cost.invalid);
        match cost.invalid {
            0 => figures.cleans_full += 1,
            invalid if invalid == pages => figures.cleans_switch += 1,
            _ => figures.cleans_partial += 1,
        }
        let cause = if self.is_translation(block, flash) {
            self.figures.cleans_translation += 1;
            self.relocate_translation(unit, flash);
            Cause::GcTranslation
        } else {
            for stream in 0..self.translation {
                self.relocate_data(unit, stream, flash);
            }
            self.update_translation_pages(unit, Cause::GcTranslation, flash);
            Cause::Gc
        };
        flash.invalidate_block(block);
        flash.erase(block, cause);
        self.units[unit].free(block, flash);
        let unit = &self.units[unit];
        if let Some(next) = unit.victim.likely_next() {
            flash.nand().expect_scan(BlockId(unit.first_block.0 + next));
        }
        Ok(())
    }

    /// Recycles what the wear policy names. The translation pages of entries that aren't cached are written as after a
    /// clean of data, under cause wear.
    #[cold]
    fn level_wear(&mut self, unit: usize, flash: &mut Flash) {
        let mut done = 0;
        // One block more than the reserve: the translation pages may take it.
        while let Some(recycle) = self.units[unit].next_recycling(done, self.reserve, flash) {
            let Self { units, map, figures, touched, .. } = self;
            let logical_pages = map.table.len();
            touched.clear();
            units[unit].recycle(recycle, flash, |owner, ppn| match (owner as usize).checked_sub(logical_pages) {
                Some(page) => map.directory[page].ppn = ppn,
                None => match map.slot_of(owner) {
                    NONE => {
                        map.table[owner as usize] = ppn;
                        figures.gc_updates += 1;
                        touched.push(map.page_of(owner));
                    }
                    slot => {
                        map.change(slot, ppn);
                        figures.lazy_updates += 1;
                    }
                },
            });
            touched.sort_unstable();
            touched.dedup();
            self.update_translation_pages(unit, Cause::Wear, flash);
            done += 1;
        }
    }

    /// Whether a block that was written holds translation pages.
    #[inline]
    pub(super) fn is_translation(&self, block: BlockId, flash: &Flash) -> bool {
        flash.nand().spares(block)[0] as usize >= self.map.table.len()
    }

    /// Names the next victim and leaves its valid pages in the lists of pages to move.
    fn pick(&mut self, unit: usize, flash: &mut Flash) -> Option<(BlockId, Cost)> {
        let Self { units, reserve, .. } = self;
        let chosen = &mut units[unit];
        let (first, free) = (chosen.first_block, chosen.pool.len());
        let scarce = free < *reserve;
        let full_is_hopeless = chosen.victim.picks_fewest();
        let view = UnitView::new(flash, first);
        let local = if scarce { chosen.victim.pick(view) } else { chosen.pick(flash) };
        if !self.desperate
            && let Some(local) = local
        {
            let block = BlockId(first.0 + local);
            if !scarce || self.passed_over != Some(block) {
                let cost = self.survey(unit, block, flash);
                if cost.blocks <= free && !(scarce && cost.gain <= 0) && !(full_is_hopeless && cost.invalid == 0) {
                    return Some((block, cost));
                }
                // What it would lose does not change while room is made.
                self.passed_over = Some(block);
            }
        }
        let block = self.rescue(unit, flash)?;
        let cost = self.survey(unit, block, flash);
        (cost.blocks <= free).then_some((block, cost))
    }

    /// The victim that gets a unit out of need: the translation block with the fewest valid pages if any of them is old,
    /// else the data block with the fewest.
    #[cold]
    fn rescue(&mut self, unit: usize, flash: &mut Flash) -> Option<BlockId> {
        let pages = flash.geometry().pages_per_block();
        let holds_old = |block: &BlockId| flash.pages_valid(*block) < pages;
        let translation = self.units[unit].last_stream.iter().flatten().copied();
        // Ties go to the lowest id, whatever the order of the list.
        if let Some(block) = translation.min_by_key(|block| (flash.pages_valid(*block), *block)).filter(holds_old) {
            return Some(block);
        }
        // The open translation block holds old pages, perhaps: it gives up its room to be cleaned.
        let frontier = self.units[unit].frontiers[self.translation];
        if frontier.room() > 0 {
            let block = flash.geometry().block_of(Ppn(frontier.next));
            if flash.pages_valid(block) < flash.nand().next_page(block) && flash.nand().can_erase(block) {
                self.units[unit].frontiers[self.translation] = Frontier::default();
                self.units[unit].seal(self.translation, block, flash);
                return Some(block);
            }
        }
        let data = self.sealed_blocks(unit, flash).filter(|block| !self.is_translation(*block, flash));
        data.min_by_key(|block| flash.pages_valid(*block)).filter(holds_old)
    }

    /// The blocks of a unit that may be cleaned.
    fn sealed_blocks<'a>(&'a self, unit: usize, flash: &'a Flash) -> impl Iterator<Item = BlockId> + 'a {
        let unit = &self.units[unit];
        (unit.first_block.0..unit.first_block.0 + flash.geometry().blocks_per_plane())
            .map(BlockId)
            .filter(move |block| unit.is_sealed(*block, flash))
    }

    /// Lists the valid pages of a block by the stream that they go to, and the translation pages that a clean of it
    /// writes; answers what that takes.
    fn survey(&mut self, unit: usize, block: BlockId, flash: &Flash) -> Cost {
        // After a saved state was loaded the lists are gone.
        self.moving.resize(self.translation + 1, Moving::default());
        self.moving.iter_mut().for_each(Moving::clear);
        self.touched.clear();
        let pages = flash.geometry().pages_per_block();
        let first = flash.geometry().first_page(block).0;
        let spares = flash.nand().spares(block);
        if self.is_translation(block, flash) {
            let moving = &mut self.moving[self.translation];
            for ppn in flash.valid_pages(block) {
                moving.from.push(ppn.0);
                moving.lpns.push(spares[(ppn.0 - first) as usize]);
            }
        } else {
            for ppn in flash.valid_pages(block) {
                let lpn = spares[(ppn.0 - first) as usize];
                let stream = self.placement.relocation(Relocation { lpn: Lpn(lpn), from: ppn, flash });
                prefetch(&self.map.table, lpn as usize);
                let moving = &mut self.moving[usize::from(stream)];
                moving.from.push(ppn.0);
                moving.lpns.push(lpn);
            }
            self.list_translation_pages();
        }
        let frontiers = &self.units[unit].frontiers;
        let opened = |stream: usize, count: usize| {
            count.saturating_sub(frontiers[stream].room() as usize).div_ceil(pages as usize)
        };
        let moved: usize = self.moving.iter().map(|moving| moving.lpns.len()).sum();
        let blocks = self
            .moving
            .iter()
            .zip(0..self.translation)
            .map(|(moving, at)| opened(at, moving.lpns.len()))
            .sum::<usize>()
            + opened(self.translation, self.moving[self.translation].lpns.len() + self.touched.len());
        Cost {
            gain: i64::from(pages) - (moved + self.touched.len()) as i64,
            blocks,
            invalid: pages - flash.pages_valid(block),
        }
    }

    /// Lists the translation pages of the listed data pages whose entries are not cached, each once.
    fn list_translation_pages(&mut self) {
        self.survey = self.survey.wrapping_add(1);
        self.seen.resize(self.map.directory.len(), self.survey.wrapping_sub(1));
        for moving in &self.moving[..self.translation] {
            for lpn in &moving.lpns {
                let slot = self.map.slot_of(*lpn);
                prefetch(&self.map.slots, slot as usize);
                if slot == NONE {
                    let page = self.map.page_of(*lpn);
                    if self.seen[page as usize] != self.survey {
                        self.seen[page as usize] = self.survey;
                        self.touched.push(page);
                    }
                }
            }
        }
    }

    /// Copies the listed data pages of one stream to its frontier. Cached entries are changed in the cache alone, the
    /// others on the translation pages that are listed to be written.
    fn relocate_data(&mut self, unit: usize, stream: usize, flash: &mut Flash) {
        let Self { units, moving, map, figures, .. } = self;
        let unit = &mut units[unit];
        unit.copy(&moving[stream], stream, Cause::Gc, flash, |lpn, ppn| match map.slot_of(lpn) {
            NONE => {
                map.table[lpn as usize] = ppn;
                figures.gc_updates += 1;
            }
            slot => {
                map.change(slot, ppn);
                figures.lazy_updates += 1;
            }
        });
    }

    /// Copies the listed translation pages to their frontier.
    fn relocate_translation(&mut self, unit: usize, flash: &mut Flash) {
        let Self { units, moving, map, translation, .. } = self;
        let logical_pages = map.table.len();
        units[unit].copy(&moving[*translation], *translation, Cause::GcTranslation, flash, |lpn, ppn| {
            map.directory[lpn as usize - logical_pages].ppn = ppn;
        });
    }

    /// Writes the listed translation pages, whose entries were changed: each in the plane where it lies if that one takes
    /// it without a clean, else in the victim's, which has kept room for all of them. So they don't gather where cleaning
    /// is.
    fn update_translation_pages(&mut self, unit: usize, cause: Cause, flash: &mut Flash) {
        let (pages, stream) = (std::mem::take(&mut self.touched), super::stream_id(self.translation));
        for page in &pages {
            let old = Ppn(self.map.directory[*page as usize].ppn);
            let home = flash.geometry().plane_of(flash.geometry().block_of(old)).index();
            let stays = self.has_room(home, stream) || self.units[home].pool.len() > self.free_blocks_min;
            let unit = if stays { home } else { unit };
            if !self.has_room(unit, stream) {
                self.units[unit].open(stream, flash);
            }
            flash.read_internal(old, cause);
            flash.next_waits_for_mark(flash.mark());
            self.program_translation(unit, *page, cause, flash);
        }
        self.figures.gc_update_pages += pages.len() as u64;
        self.touched = pages;
    }

    /// Programs a translation page in the open translation block of a unit, which has room.
    pub(super) fn program_translation(&mut self, unit: usize, page: u32, cause: Cause, flash: &mut Flash) {
        let ppn = self.units[unit].take(self.translation);
        flash.program(ppn, Lpn(self.map.table.len() as u32 + page), cause);
        self.units[unit].seal_if_full(self.translation, ppn, flash);
        let old = std::mem::replace(&mut self.map.directory[page as usize].ppn, ppn.0);
        drop_copy(&mut self.units, Ppn(old), flash);
    }
}
