//! Cleaning of data and translation blocks (Gupta 2009, section 3.3).
//!
//! A clean of data copies the valid pages to the open data block. Cached entries are changed only in the cache (lazy
//! copying); the others are grouped by translation page, and each of these is read, changed and written once (batch
//! update). A clean of translation pages copies them and changes the directory.
//!
//! **Space.** A data clean may open one block for data and one for translation pages but gain only one, and it may
//! write more translation pages than it gains pages. It becomes invalid data pages into invalid translation pages,
//! which a clean of a translation block regains without any loss: both together always gain. So a clean starts with
//! enough free blocks for all that it may open, and cleaning continues until these are free again. Until then, a victim
//! that loses room is skipped for the translation block with the fewest valid pages, or, if no translation page is
//! invalid, for the data block with the fewest. Nothing here is recursive, and cleans without a gain are counted.
//!
//! **Steps.** While a clean is paused, RAM knows the entries that it has changed, but their translation pages are still
//! to be written: once each, after all pages are copied, unless an eviction or another plane's clean writes one
//! earlier. The rest of the clean may open one block for each stream, including that of translation pages; with fewer
//! free blocks it does not pause.
//!
//! **Wear levelling.** A recycling of data also writes translation pages, at most a block of them, and their old copies
//! are regained as above. So it runs once while room is made, before a block is opened, and only if it leaves the
//! reserve free.

use super::mapping::{Mapping, NONE};
use super::{Dftl, Figures, stream_id};
use crate::cleaner::{Effort, Moving, PageMapped, list_pages, list_pages_by_stream};
use crate::plane::{Frontier, Plane};
use crate::planes::{Planes, drop_copy};
use crate::policies::placement::Placement;
use crate::policies::victim::PlaneView;
use crate::{Cause, Flash, OutOfSpace};
use flashwright_nand::{BlockId, Lpn, Ppn, prefetch};

/// The cost of cleaning a block.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// Pages of the block that would be free afterwards, minus all pages written.
    gain: i64,
    /// Blocks that it would open.
    blocks: usize,
    /// Invalid pages of the block.
    invalid: u32,
}

/// Which translation pages a clean has listed.
#[derive(Clone, Debug, Default)]
pub(super) struct Listed {
    /// By translation page: the last list that it is on.
    last: Vec<u32>,
    list: u32,
}

impl Listed {
    /// Begins an empty list of at most this many translation pages.
    fn begin(&mut self, pages: usize) {
        self.list = self.list.wrapping_add(1);
        self.last.resize(pages, self.list.wrapping_sub(1));
    }

    /// Puts a translation page on the list; returns true if it was not there.
    #[inline(always)]
    fn insert(&mut self, page: u32) -> bool {
        let last = &mut self.last[page as usize];
        let new = *last != self.list;
        if new {
            *last = self.list;
        }
        new
    }
}

/// The parts of the scheme that cleaning changes.
pub(super) struct Moves<'a> {
    map: &'a mut Mapping,
    placement: &'a mut Placement,
    figures: &'a mut Figures,
    listed: &'a mut Listed,
    /// The stream of translation pages.
    translation: usize,
    free_blocks_min: usize,
    /// Whether to list translation pages as their entries change.
    lists: bool,
}

impl Dftl {
    pub(super) fn parts(&mut self) -> (&mut Planes, Moves<'_>) {
        let Self { planes, map, placement, figures, listed, translation, .. } = self;
        let free_blocks_min = planes.cleaner.free_blocks_min;
        (planes, Moves { map, placement, figures, listed, translation: *translation, free_blocks_min, lists: false })
    }

    /// Makes room for a page in a plane: see [`Planes::make_room`].
    #[inline(never)]
    pub(super) fn make_room(
        &mut self,
        turn: usize,
        lpn: Option<Lpn>,
        stream: u8,
        flash: &mut Flash,
    ) -> Result<usize, OutOfSpace> {
        let (planes, mut moves) = self.parts();
        planes.make_room(turn, lpn, stream, &mut moves, flash)
    }

    /// Programs a translation page in the open translation block of a plane, which has room.
    pub(super) fn program_translation(&mut self, at: usize, page: u32, cause: Cause, flash: &mut Flash) {
        let Planes { all, cleaner, .. } = &mut self.planes;
        program_translation(&mut self.map, self.translation, at, page, cause, all, flash);
        cleaner.wrote_map_page(page, all);
    }
}

impl PageMapped for Moves<'_> {
    const LAST_RESORT: bool = true;
    const LEVELS_FIRST: bool = true;

    fn choose(
        &mut self,
        plane: &mut Plane,
        reserve: usize,
        effort: &mut Effort,
        moving: &mut Vec<Moving>,
        pending: &mut Vec<u32>,
        flash: &mut Flash,
    ) -> Option<(BlockId, Cause)> {
        let free = plane.pool.len();
        if let Some(block) = effort.asked {
            let cost = self.survey(plane, block, moving, pending, flash);
            return (cost.blocks <= free).then(|| (block, self.cause(block, flash)));
        }
        let scarce = free < reserve;
        // If no write waits, every clean has to gain something.
        let gains = scarce || effort.voluntary;
        let full_is_hopeless = plane.victim.picks_fewest();
        let view = PlaneView::new(flash, plane.first_block);
        let local = if scarce { plane.victim.pick(view) } else { plane.pick(flash) };
        if !effort.desperate
            && let Some(local) = local
        {
            let block = BlockId(plane.first_block.0 + local);
            if !scarce || effort.passed_over != Some(block) {
                let cost = self.survey(plane, block, moving, pending, flash);
                if cost.blocks <= free && !(gains && cost.gain <= 0) && !(full_is_hopeless && cost.invalid == 0) {
                    return Some((block, self.cause(block, flash)));
                }
                // Its cost does not change while room is made.
                effort.passed_over = Some(block);
            }
        }
        let block = self.rescue(plane, effort.voluntary, flash)?;
        let cost = self.survey(plane, block, moving, pending, flash);
        let allowed = cost.blocks <= free && !(effort.voluntary && cost.gain <= 0);
        allowed.then(|| (block, self.cause(block, flash)))
    }

    #[inline]
    fn moves(&mut self, lists: bool) {
        self.lists = lists;
        if lists {
            self.listed.begin(self.map.directory.len());
        }
    }

    /// A cached entry is changed only in the cache, any other on its translation page.
    #[inline]
    fn moved(&mut self, owners: &[u32], first: u32, pending: &mut Vec<u32>) {
        let lists = self.lists;
        let (map, listed) = (&mut *self.map, &mut *self.listed);
        let logical_pages = map.table.len();
        // A block holds data or translation pages, never both.
        if owners.first().is_some_and(|owner| *owner as usize >= logical_pages) {
            let directory = &mut map.directory[..];
            owners.iter().zip(first..).for_each(|(page, ppn)| directory[*page as usize - logical_pages].ppn = ppn);
            return;
        }
        self.placement.moved(owners, Ppn(first));
        let mut cached = 0;
        for (owner, ppn) in owners.iter().copied().zip(first..) {
            match map.slot_of(owner) {
                NONE => {
                    map.table[owner as usize] = ppn;
                    if lists {
                        let page = map.page_of(owner);
                        if listed.insert(page) {
                            pending.push(page);
                        }
                    }
                }
                slot => {
                    map.change(slot, ppn);
                    cached += 1;
                }
            }
        }
        self.figures.lazy_updates += cached;
        self.figures.gc_updates += owners.len() as u64 - cached;
    }

    /// Writes it in the plane of the old translation page if that plane can take it without a clean, else in the
    /// victim's plane, which has kept room for all of them. So translation pages don't collect in the plane being
    /// cleaned.
    #[inline]
    fn write_map_page(&mut self, page: u32, at: usize, cause: Cause, planes: &mut [Plane], flash: &mut Flash) {
        let stream = stream_id(self.translation);
        let old = Ppn(self.map.directory[page as usize].ppn);
        let home = flash.geometry().plane_of(flash.geometry().block_of(old)).index();
        let stays = planes[home].has_room(stream) || planes[home].pool.len() > self.free_blocks_min;
        let at = if stays { home } else { at };
        if !planes[at].has_room(stream) {
            planes[at].open(stream, flash);
        }
        flash.read_internal(old, cause);
        flash.next_waits_for_mark(flash.mark());
        program_translation(self.map, self.translation, at, page, cause, planes, flash);
        self.figures.gc_update_pages += 1;
    }

    fn cleaned(&mut self, cause: Cause, gained: u32, pages_per_block: u32) {
        match gained {
            0 => self.figures.cleans_full += 1,
            gained if gained == pages_per_block => self.figures.cleans_switch += 1,
            _ => self.figures.cleans_partial += 1,
        }
        self.figures.cleans_translation += u64::from(cause == Cause::GcTranslation);
    }

    fn patience(flash: &Flash) -> u32 {
        2 * (flash.geometry().blocks_per_plane() + flash.geometry().pages_per_block())
    }

    /// Translation pages may cost as much as a victim gains: only the plane's free space at the end is conclusive.
    fn weigh(effort: &mut Effort, _: u32, plane: &Plane, flash: &Flash) {
        let pages = plane.free_pages(flash);
        effort.fruitless = if pages > effort.best { 0 } else { effort.fruitless + 1 };
        effort.best = effort.best.max(pages);
    }
}

impl Moves<'_> {
    /// Whether a block that was written holds translation pages.
    #[inline]
    fn is_translation(&self, block: BlockId, flash: &Flash) -> bool {
        flash.nand().spares(block)[0] as usize >= self.map.table.len()
    }

    /// The cause that a clean of a block counts under.
    fn cause(&self, block: BlockId, flash: &Flash) -> Cause {
        if self.is_translation(block, flash) { Cause::GcTranslation } else { Cause::Gc }
    }

    /// The victim for a plane short of space: the translation block with the fewest valid pages if it has an invalid
    /// one, else the data block with the fewest.
    #[cold]
    fn rescue(&mut self, plane: &mut Plane, voluntary: bool, flash: &mut Flash) -> Option<BlockId> {
        let pages = flash.geometry().pages_per_block();
        let holds_old = |block: &BlockId| flash.pages_valid(*block) < pages;
        let translation = plane.last_stream.iter().flatten().copied();
        // Ties go to the lowest id, whatever the order of the list.
        if let Some(block) = translation.min_by_key(|block| (flash.pages_valid(*block), *block)).filter(holds_old) {
            return Some(block);
        }
        // The open translation block may hold invalid pages: it gives up its room to be cleaned.
        let frontier = plane.frontiers[self.translation];
        if frontier.room() > 0 && !voluntary {
            let block = flash.geometry().block_of(Ppn(frontier.next));
            if flash.pages_valid(block) < flash.nand().next_page(block) && flash.nand().can_erase(block) {
                plane.frontiers[self.translation] = Frontier::default();
                plane.seal(self.translation, block, flash);
                return Some(block);
            }
        }
        let blocks = plane.first_block.0..plane.first_block.0 + flash.geometry().blocks_per_plane();
        let sealed = blocks.map(BlockId).filter(|block| plane.is_sealed(*block, flash));
        let data = sealed.filter(|block| !self.is_translation(*block, flash));
        data.min_by_key(|block| flash.pages_valid(*block)).filter(holds_old)
    }

    /// Lists the valid pages of a block by destination stream, and the translation pages that a clean of it writes;
    /// returns its cost.
    fn survey(
        &mut self,
        plane: &Plane,
        block: BlockId,
        moving: &mut Vec<Moving>,
        pending: &mut Vec<u32>,
        flash: &Flash,
    ) -> Cost {
        Moving::clear(moving, self.translation + 1);
        pending.clear();
        let pages = flash.geometry().pages_per_block();
        if self.is_translation(block, flash) {
            list_pages(block, &mut moving[self.translation], flash, |_| {});
        } else {
            let (map, placement) = (&*self.map, &mut *self.placement);
            list_data_pages(block, map, placement, &mut moving[..self.translation], flash);
            list_translation_pages(map, self.listed, &moving[..self.translation], pending);
        }
        let frontiers = &plane.frontiers;
        let opened = |stream: usize, count: usize| {
            count.saturating_sub(frontiers[stream].room() as usize).div_ceil(pages as usize)
        };
        let moved: usize = moving.iter().map(|moving| moving.lpns.len()).sum();
        let blocks =
            moving.iter().zip(0..self.translation).map(|(moving, at)| opened(at, moving.lpns.len())).sum::<usize>()
                + opened(self.translation, moving[self.translation].lpns.len() + pending.len());
        Cost {
            gain: i64::from(pages) - (moved + pending.len()) as i64,
            blocks,
            invalid: pages - flash.pages_valid(block),
        }
    }
}

// Separate functions, so that the compiler knows that their arguments don't alias.

/// Lists the valid pages of a data block by the stream that the placement policy names.
#[inline(never)]
fn list_data_pages(block: BlockId, map: &Mapping, placement: &mut Placement, moving: &mut [Moving], flash: &Flash) {
    list_pages_by_stream(block, moving, placement, flash, |lpn| prefetch(&map.table, lpn as usize));
}

/// Lists the translation pages of the listed data pages whose entries are not cached, each once.
#[inline(never)]
fn list_translation_pages(map: &Mapping, listed: &mut Listed, moving: &[Moving], pending: &mut Vec<u32>) {
    listed.begin(map.directory.len());
    for moving in moving {
        for lpn in &moving.lpns {
            let slot = map.slot_of(*lpn);
            prefetch(&map.slots, slot as usize);
            if slot == NONE {
                let page = map.page_of(*lpn);
                if listed.insert(page) {
                    pending.push(page);
                }
            }
        }
    }
}

/// Programs a translation page in the open translation block of a plane, which has room.
#[inline]
fn program_translation(
    map: &mut Mapping,
    translation: usize,
    at: usize,
    page: u32,
    cause: Cause,
    planes: &mut [Plane],
    flash: &mut Flash,
) {
    let ppn = planes[at].program(translation, Lpn(map.table.len() as u32 + page), cause, flash);
    let old = std::mem::replace(&mut map.directory[page as usize].ppn, ppn.0);
    drop_copy(planes, Ppn(old), flash);
}
