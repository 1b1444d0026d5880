//! What a translation layer does for the RAM before it.

use crate::{Cause, Flash, Ftl, LpnRun, OutOfSpace, write_runs};
use flashwright_nand::{Lpn, Ppn};

/// How the cached part of a mapping table stands that lies on flash.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MapCacheView {
    /// Entries that it may hold.
    pub capacity: u32,
    /// Entries that it may hold at least, and at most.
    pub capacity_limits: (u32, u32),
    /// Entries on a page of the table.
    pub entries_per_page: u32,
    /// Whether an entry is held that flash holds as well, and which could leave without a write; where the replacement
    /// policy knows.
    pub has_clean: Option<bool>,
    /// The page of the table with most entries that would be written together; where the replacement policy has groups.
    pub largest_group: Option<u32>,
    /// Translations not found in RAM that a larger cache would have found; 0 where nobody asked for that count.
    pub ghost_hits: u64,
    /// Entries that left, and of them those that had to be written.
    pub evictions: u64,
    /// See `evictions`.
    pub dirty_evictions: u64,
    /// The key that fixed the size, if the user set one.
    pub set_by: Option<&'static str>,
}

/// What a manager of RAM wants to be told. Keeping these counts costs time, so they are off unless asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// [`ServesRam::reclaimable_pages`].
    pub reclaimable: bool,
    /// [`MapCacheView::ghost_hits`] for a cache larger by so many entries.
    pub map_ghosts: u32,
}

/// A translation layer under a manager of RAM. Every scheme serves one; what it has no better way for is done as for the host.
pub trait ServesRam: Ftl {
    /// Reads a page for the drive itself, such as a buffer that completes a block; answers where it lies if it holds data.
    #[inline]
    fn fetch(&mut self, lpn: Lpn, cause: Cause, flash: &mut Flash) -> Option<Ppn> {
        self.lookup(lpn, flash).inspect(|ppn| flash.read_internal(*ppn, cause))
    }

    /// Writes pages of one logical block, in ascending order, so that they share an erase block with nothing else, where
    /// the scheme can do that; else like any write.
    ///
    /// # Errors
    /// As [`Ftl::write`].
    fn write_block(&mut self, lpns: &[u32], flash: &mut Flash) -> Result<(), OutOfSpace> {
        write_runs(lpns, |run| self.write(run, flash))
    }

    /// Tells what a manager of RAM will ask for. Called once, before the first request.
    fn watch(&mut self, watch: Watch, flash: &Flash) {
        let _ = (watch, flash);
    }

    /// The pages of a logical block are about to be read or written: where the map lies on flash, what is missing of it is
    /// loaded with one read for each page of the table.
    fn look_up_block(&mut self, run: LpnRun, flash: &mut Flash) {
        let _ = (run, flash);
    }

    /// Pages are about to be written together: under [`InvalidateOrder::BeforeGc`] their old copies turn invalid now, as far
    /// as the map at hand knows them.
    fn supersede(&mut self, lpns: &[u32], flash: &mut Flash) {
        let _ = (lpns, flash);
    }

    /// Pages not valid of the block that greedy cleaning would pick now, over all planes (Hu 2012, Eq. 3.1): what an erase
    /// would free. A whole block while none is sealed. Only after [`Watch::reclaimable`]; none where the scheme
    /// cleans no planes and can't tell.
    fn reclaimable_pages(&self, flash: &Flash) -> Option<u32> {
        let _ = flash;
        None
    }

    /// How the cached mapping table stands, if the scheme has one.
    fn map_cache(&self) -> Option<MapCacheView> {
        None
    }

    /// Changes the size of the cached mapping table, evicting what no longer fits.
    fn resize_map_cache(&mut self, entries: u32, flash: &mut Flash) {
        let _ = (entries, flash);
    }
}
