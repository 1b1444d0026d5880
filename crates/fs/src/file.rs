//! Files and directories: the content of an inode, and the file's state in memory.

use crate::bits::Bits;
use crate::cache::NONE;
use crate::settings::Layout;

/// Blocks that follow each other in a file and on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First block of the file.
    pub logical: u32,
    /// First block on the device.
    pub physical: u32,
    /// How many.
    pub blocks: u32,
}

/// Blocks that an inode of ext3 names itself.
const DIRECT: u32 = 12;
/// Block numbers in an indirect block.
const POINTERS: u32 = 1024;
/// Extents in an inode of ext4, and in a block of them (12 bytes each, with a head and a tail).
const EXTENTS_INLINE: usize = 4;
const EXTENTS_PER_BLOCK: usize = 340;

#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) live: bool,
    /// Distinguishes it from an earlier file with the same number.
    pub(crate) generation: u32,
    pub(crate) directory: u32,
    /// Place in the directory.
    pub(crate) entry: u32,
    pub(crate) inode: u32,
    /// Bytes.
    pub(crate) size: u64,
    /// Blocks chosen so far; always a prefix of the file.
    pub(crate) allocated: u32,
    pub(crate) runs: Vec<Run>,
    /// Indirect blocks, or blocks of extents, in the order in which they were chosen.
    pub(crate) map: Vec<u32>,
    /// The block chosen last, of data or of mapping.
    pub(crate) last_block: Option<u32>,
    /// Blocks reserved for this file while it is open.
    pub(crate) window: (u32, u32),
    pub(crate) window_blocks: u32,
    /// The slot of each page in memory.
    pub(crate) slots: Vec<u32>,
    pub(crate) dirty: Bits,
    pub(crate) writeback: Bits,
    pub(crate) dirty_pages: u32,
    pub(crate) writeback_pages: u32,
    pub(crate) reading_pages: u32,
    /// When the first of the currently dirty pages became dirty, in nanoseconds.
    pub(crate) dirty_since: u64,
    /// Where write-back continues.
    pub(crate) cursor: u32,
    pub(crate) openers: u32,
    /// The last transaction that changed the inode, and the last that changed more of it than times.
    pub(crate) transaction: u64,
    pub(crate) transaction_data: u64,
    /// The last transaction that has the file in its list of ordered data.
    pub(crate) ordered_in: u64,
}

impl File {
    pub(crate) fn nothing() -> Self {
        Self {
            live: false,
            generation: 0,
            directory: 0,
            entry: 0,
            inode: 0,
            size: 0,
            allocated: 0,
            runs: Vec::new(),
            map: Vec::new(),
            last_block: None,
            window: (0, 0),
            window_blocks: 0,
            slots: Vec::new(),
            dirty: Bits::default(),
            writeback: Bits::default(),
            dirty_pages: 0,
            writeback_pages: 0,
            reading_pages: 0,
            dirty_since: 0,
            cursor: 0,
            openers: 0,
            transaction: 0,
            transaction_data: 0,
            ordered_in: 0,
        }
    }

    pub(crate) fn pages(&self) -> u32 {
        u32::try_from(self.size.div_ceil(crate::BLOCK_BYTES)).expect("a file is smaller than 16 TiB")
    }

    #[inline]
    pub(crate) fn slot(&self, index: u32) -> u32 {
        self.slots.get(index as usize).copied().unwrap_or(NONE)
    }

    #[inline]
    pub(crate) fn set_slot(&mut self, index: u32, slot: u32) {
        let index = index as usize;
        if index >= self.slots.len() {
            self.slots.resize(index + 1, NONE);
        }
        self.slots[index] = slot;
    }

    /// The place of block `index` of the file, and how many blocks follow contiguously.
    #[inline]
    pub(crate) fn place(&self, index: u32) -> Option<(u32, u32)> {
        let at = self.runs.partition_point(|run| run.logical <= index);
        let run = self.runs.get(at.checked_sub(1)?)?;
        let within = index - run.logical;
        (within < run.blocks).then(|| (run.physical + within, run.blocks - within))
    }

    /// Adds a block at the end.
    #[inline]
    pub(crate) fn push(&mut self, physical: u32) {
        match self.runs.last_mut() {
            Some(run) if run.physical + run.blocks == physical => run.blocks += 1,
            _ => self.runs.push(Run { logical: self.allocated, physical, blocks: 1 }),
        }
        self.allocated += 1;
        self.last_block = Some(physical);
    }

    /// Blocks of mapping that must be there before block `index` can be; or, with extents, for the runs that there are.
    pub(crate) fn map_blocks_needed(&self, layout: Layout, index: u32) -> usize {
        match layout {
            Layout::Ext3 if index < DIRECT => 0,
            Layout::Ext3 if index < DIRECT + POINTERS => 1,
            Layout::Ext3 => {
                let beyond = index - DIRECT - POINTERS;
                // The double indirect block and the indirect ones below it; past a million of blocks a triple one and
                // a double one for each further million.
                let doubles = beyond / (POINTERS * POINTERS);
                let triple = usize::from(doubles > 0);
                2 + triple + doubles as usize + (beyond / POINTERS) as usize + 1
            }
            Layout::Extents if self.runs.len() <= EXTENTS_INLINE => 0,
            Layout::Extents => self.runs.len().div_ceil(EXTENTS_PER_BLOCK),
        }
    }

    /// The mapping blocks of block `index`.
    pub(crate) fn map_blocks_of(&self, layout: Layout, index: u32) -> [Option<u32>; 2] {
        match layout {
            Layout::Ext3 => match self.map_blocks_needed(layout, index) {
                0 => [None, None],
                1 => [self.map.first().copied(), None],
                needed => [self.map.get(1).copied(), self.map.get(needed - 1).copied()],
            },
            Layout::Extents => {
                let run = self.runs.partition_point(|run| run.logical <= index).saturating_sub(1);
                [self.map.get(run / EXTENTS_PER_BLOCK).copied(), None]
            }
        }
    }

    /// Resets the file to a new one that reuses the old one's memory.
    pub(crate) fn renew(&mut self) {
        assert!(self.dirty_pages == 0 && self.writeback_pages == 0 && self.reading_pages == 0);
        let mut old = std::mem::replace(self, Self::nothing());
        old.runs.clear();
        old.map.clear();
        old.slots.clear();
        old.dirty.clear();
        old.writeback.clear();
        self.generation = old.generation + 1;
        (self.runs, self.map, self.slots) = (old.runs, old.map, old.slots);
        (self.dirty, self.writeback) = (old.dirty, old.writeback);
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Directory {
    pub(crate) inode: u32,
    pub(crate) group: u32,
    pub(crate) blocks: Vec<u32>,
    pub(crate) entries: u32,
    pub(crate) entries_free: Vec<u32>,
}
