//! The services of a translation layer to the RAM before it.

use crate::{Cause, Flash, Ftl, LpnRun, OutOfSpace, write_runs};
use flashwright_nand::{Lpn, Ppn};

/// The state of the cached part of a mapping table on flash.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MapCacheView {
    /// Entries that it may hold.
    pub capacity: u32,
    /// The smallest and the largest number of entries that it may hold.
    pub capacity_limits: (u32, u32),
    /// Entries on a page of the table.
    pub entries_per_page: u32,
    /// Whether there is a clean entry, which could leave without a write; known only if the replacement policy tracks
    /// it.
    pub has_clean: Option<bool>,
    /// The translation page with the most entries that would be written together, if the replacement policy has groups.
    pub largest_group: Option<u32>,
    /// Misses that would have been hits in a larger cache; 0 if this count was not requested.
    pub ghost_hits: u64,
    /// Evicted entries, and those of them that had to be written.
    pub evictions: u64,
    /// See `evictions`.
    pub dirty_evictions: u64,
    /// The key that fixed the size, if the user set one.
    pub set_by: Option<&'static str>,
}

/// The counts that a RAM manager needs. Keeping them costs time, so they are off unless requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// [`ServesRam::reclaimable_pages`].
    pub reclaimable: bool,
    /// [`MapCacheView::ghost_hits`] for a cache larger by so many entries.
    pub map_ghosts: u32,
}

/// A translation layer under a RAM manager. Every scheme implements it; the default methods do what they would do for
/// the host.
pub trait ServesRam: Ftl {
    /// Reads a page for the drive itself, for instance for a buffer that completes a block; returns its place if it
    /// holds data.
    #[inline]
    fn fetch(&mut self, lpn: Lpn, cause: Cause, flash: &mut Flash) -> Option<Ppn> {
        self.lookup(lpn, flash).inspect(|ppn| flash.read_internal(*ppn, cause))
    }

    /// Writes pages of one logical block, in ascending order, to an erase block that holds nothing else, if the scheme
    /// can do that; else like any write.
    ///
    /// # Errors
    /// As [`Ftl::write`].
    fn write_block(&mut self, lpns: &[u32], flash: &mut Flash) -> Result<(), OutOfSpace> {
        write_runs(lpns, |run| self.write(run, flash))
    }

    /// Announces the counts that the RAM manager will read. Called once, before the first request.
    fn watch(&mut self, watch: Watch, flash: &Flash) {
        let _ = (watch, flash);
    }

    /// The pages of a logical block are about to be read or written: a scheme with its map on flash loads the missing
    /// entries, with one read per translation page.
    fn look_up_block(&mut self, run: LpnRun, flash: &mut Flash) {
        let _ = (run, flash);
    }

    /// Pages are about to be written together: under [`InvalidateOrder::BeforeGc`] their old copies become invalid now,
    /// as far as they are in the cached map.
    fn supersede(&mut self, lpns: &[u32], flash: &mut Flash) {
        let _ = (lpns, flash);
    }

    /// Pages that are not valid in the block that greedy cleaning would pick now, over all planes (Hu 2012, Eq. 3.1),
    /// which an erase would free. A whole block while none is sealed. Available only after [`Watch::reclaimable`]; none
    /// if the scheme does not clean planes and can't know it.
    fn reclaimable_pages(&self, flash: &Flash) -> Option<u32> {
        let _ = flash;
        None
    }

    /// The state of the cached mapping table, if the scheme has one.
    fn map_cache(&self) -> Option<MapCacheView> {
        None
    }

    /// Changes the size of the cached mapping table, evicting what no longer fits.
    fn resize_map_cache(&mut self, entries: u32, flash: &mut Flash) {
        let _ = (entries, flash);
    }
}
