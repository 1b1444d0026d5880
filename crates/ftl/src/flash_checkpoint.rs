//! Checkpoints of the map: writing them, and finding the newest one after a loss of power.

use crate::durable::{BlockThen, Checkpoints, Image, Record};
use crate::{Cause, Flash};
use flashwright_nand::{BlockId, Condition, Geometry, Ppn};

/// What a scheme says of a checkpoint of its map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapSize {
    /// Bytes that it takes, beside the states of blocks.
    pub bytes: u64,
    /// Pages of the scheme's own tables that are older than what they say, by their number among these pages.
    pub stale: Vec<u32>,
}

impl Flash {
    /// From now on takes checkpoints of a map of at most `map_bytes` when [`Flash::begin_checkpoint`] is called, in blocks that no
    /// scheme gets; one is due after so many programs and trims. To be called after [`Flash::track_changes`].
    ///
    /// # Panics
    /// If changes are not tracked, or there are fewer good blocks than checkpoints take.
    pub fn take_checkpoints(&mut self, interval: u64, map_bytes: u64) {
        let geometry = *self.geometry();
        let blocks = self.set_apart(Checkpoints::blocks_needed(map_bytes, &geometry));
        let tracker = self.tracker_mut().expect("who takes checkpoints tracks changes");
        tracker.checkpoints = Some(Checkpoints::new(interval, blocks, &geometry));
    }

    /// Blocks that [`Flash::take_checkpoints`] sets apart.
    #[must_use]
    pub fn checkpoint_blocks(map_bytes: u64, geometry: &Geometry) -> u32 {
        Checkpoints::blocks_needed(map_bytes, geometry)
    }

    pub(crate) fn checkpoints(&self) -> Option<&Checkpoints> {
        self.tracker()?.checkpoints.as_ref()
    }

    fn checkpoints_mut(&mut self) -> Option<&mut Checkpoints> {
        self.tracker_mut()?.checkpoints.as_mut()
    }

    pub(crate) fn is_for_checkpoints(&self, block: BlockId) -> bool {
        self.checkpoints().is_some_and(|checkpoints| checkpoints.blocks().contains(&block))
    }

    /// Whether a checkpoint should begin.
    #[must_use]
    pub fn checkpoint_is_due(&self) -> bool {
        let next = self.tracker().map_or(0, |tracker| tracker.next());
        self.checkpoints().is_some_and(|checkpoints| checkpoints.is_due(next))
    }

    /// Whether a checkpoint lacks only its end.
    #[must_use]
    pub fn checkpoint_is_begun(&self) -> bool {
        self.checkpoints().is_some_and(Checkpoints::is_begun)
    }

    /// Writes all pages of a checkpoint but its end. It holds up to the last program and trim decided.
    #[cold]
    pub fn begin_checkpoint(&mut self, size: MapSize) {
        let MapSize { bytes, stale } = size;
        let Some(tracker) = self.tracker() else { return };
        let sequence = tracker.next() - 1;
        let places = tracker.places().iter().map(|place| Some(Ppn(*place)));
        let pages = self.geometry().pages();
        let places = places.map(|place| place.filter(|ppn| ppn.0 < pages && self.is_valid(*ppn))).collect();
        let blocks = (0..self.geometry().blocks()).map(|block| self.block_now(BlockId(block))).collect();
        let image = Image { sequence, places, blocks, stale };
        let Some(tracker) = self.tracker_mut() else { return };
        let journal = tracker.journal.full_blocks();
        let Some(checkpoints) = &mut tracker.checkpoints else { return };
        for record in checkpoints.begin(&image, bytes, journal) {
            self.program_checkpoint(record);
        }
    }

    /// Ends a checkpoint, once everything that it names is on flash and all its pages are, and erases what it makes obsolete.
    #[cold]
    pub fn end_checkpoint(&mut self) {
        let geometry = *self.geometry();
        let Some((end, journal)) = self.checkpoints_mut().and_then(Checkpoints::end) else { return };
        let Record::CheckpointEnd { pages, .. } = &end else { return };
        let mut pages = pages.clone();
        pages.extend(self.program_checkpoint(end));
        self.next_waits_for(1);
        let Some(tracker) = self.tracker_mut() else { return };
        let of_journal = tracker.journal.give_up(&journal);
        let obsolete = tracker.checkpoints.as_mut().map(|checkpoints| checkpoints.keep_only(&pages, &geometry));
        self.erase_checkpoints(&obsolete.unwrap_or_default());
        for block in of_journal {
            self.erase_in_journal(block);
        }
        self.next_waits_for(0);
    }

    fn erase_checkpoints(&mut self, blocks: &[BlockId]) {
        for block in blocks {
            self.erase_set_apart(*block);
            if let Some(checkpoints) = self.checkpoints_mut() {
                checkpoints.erased(*block);
            }
        }
    }

    fn program_checkpoint(&mut self, record: Record) -> Option<Ppn> {
        let geometry = *self.geometry();
        let ppn = self.checkpoints_mut()?.next_page(&geometry);
        let mark = self.program_set_apart(ppn);
        self.tracker_mut()?.checkpointed(ppn, record, mark, Cause::Translation);
        Some(ppn)
    }

    /// A block as a checkpoint describes it.
    fn block_now(&self, block: BlockId) -> BlockThen {
        let pages = self.nand().next_page(block);
        if !matches!(self.nand().condition(block), Condition::Good | Condition::Retired) || pages == 0 {
            return BlockThen::default();
        }
        let number = |page| self.spare_area(self.geometry().page_at(block, page)).map(|spare| spare.sequence);
        let is_torn =
            |page: &u32| self.nand().spare(self.geometry().page_at(block, *page)) == Some(flashwright_nand::TORN);
        BlockThen {
            pages,
            torn: u32::try_from((0..pages).filter(is_torn).count()).expect("pages of a block fit 32 bits"),
            first: number(0).unwrap_or(0),
            opened: (0..pages).find_map(number).unwrap_or(0),
        }
    }

    // --- after a loss of power ---

    /// Finds the newest whole checkpoint and reads it. What others have left is erased.
    pub(crate) fn read_checkpoint(&mut self) -> Option<Image> {
        let geometry = *self.geometry();
        let blocks = self.checkpoints()?.blocks().to_vec();
        // Which blocks have pages, and the order in which they were opened.
        let mut opened: Vec<(u64, BlockId)> = Vec::new();
        for block in blocks {
            let pages = self.nand().next_page(block);
            let mut number = None;
            for page in 0..pages.max(1) {
                let ppn = geometry.page_at(block, page);
                self.read_oob(ppn, Cause::Translation);
                number = self.spare_area(ppn).map(|spare| spare.sequence);
                if number.is_some() {
                    break;
                }
            }
            if pages > 0 {
                opened.push((number.unwrap_or(0), block));
            }
        }
        opened.sort_unstable();
        let mut newest = None;
        for (_, block) in opened.iter().rev() {
            for page in 1..(self.nand().next_page(*block) + 1).min(geometry.pages_per_block()) {
                self.read_oob(geometry.page_at(*block, page), Cause::Translation);
            }
            newest = self.checkpoints()?.newest_end_in(*block, &geometry);
            if newest.is_some() {
                break;
            }
        }
        let (sequence, pages) = newest.unwrap_or_default();
        for ppn in &pages {
            self.read_internal(*ppn, Cause::Translation);
        }
        let checkpoints = self.checkpoints_mut()?;
        let image = (sequence > 0).then(|| checkpoints.image(sequence, &pages));
        let is_kept = |block: BlockId| pages.iter().any(|ppn| geometry.block_of(*ppn) == block);
        let all: Vec<BlockId> = opened.into_iter().map(|(_, block)| block).collect();
        let (kept, others): (Vec<BlockId>, Vec<BlockId>) = all.iter().partition(|block| is_kept(**block));
        let next = kept.last().map_or(0, |last| self.nand().next_page(*last));
        self.checkpoints_mut()?.restore(kept, next, &others, sequence + pages.len() as u64);
        self.erase_checkpoints(&others);
        image
    }
}
