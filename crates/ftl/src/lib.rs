//! Translation between the pages a host names and the pages of the flash.
//!
//! A scheme ([`Ftl`]) decides *what* is read, programmed and erased; it knows no clock. [`Flash`] is the only hand on
//! the chip: it refuses illegal steps, counts every operation by cause, keeps validity, and notes each operation for
//! whoever lays them out in time. Policies only choose: they look at tables and return an id.
//!
//! ```text
//!  Ftl::write(run) ── placement: which frontier? ── cleaning: which victim?
//!        │                                              │
//!        └────────────── Flash: read, program, copy, erase ──► Nand (law, wear)
//!                           └─ FlashOp log ──► timing engine of the drive
//! ```

mod allocation;
mod contents;
mod counters;
mod flash;
mod ghosts;
mod merge;
mod page_data;
pub mod policies;
mod pool;
use flashwright_block::registry;
pub mod schemes;
mod settings;
mod stamps;
mod units;

pub use allocation::{Allocation, AllocationOrder};
pub use contents::Keeps;
pub use counters::{CAUSES, Cause, Counters, OP_KINDS, OpKind};
pub use flash::{Flash, FlashOp};
pub use flashwright_block::{Listed, NoSettings};
pub use ghosts::Ghosts;
pub use page_data::{PageBytes, PageData};
pub use policies::foreign::{FaultCell, Foreign};
pub use policies::map_cache::{MapCacheName, MapCacheSettings, SlotLists};
pub use policies::placement::{PlacementName, PlacementSettings};
pub use policies::victim::{VictimChoice, VictimName, VictimSettings};
pub use policies::wear::{WearName, WearPolicySettings};
pub use pool::{BlockPool, FreeBlockOrder};
pub use schemes::{Scheme, SchemeName, SchemeSettings};
pub use settings::{FtlSettings, GcSettings, InvalidateOrder, PlacementConfig, WearSettings};

use flashwright_nand::{Lpn, Ppn};
use serde::{Deserialize, Serialize};

/// Consecutive logical pages of one request, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LpnRun {
    /// The first page.
    pub first: Lpn,
    /// How many pages.
    pub pages: u32,
    /// The stream the workload names for placement; 0 where it names none. As wide as its neighbours: a narrower one stalls
    /// the simulating machine when a run is copied.
    pub stream: u32,
}

impl LpnRun {
    /// The pages of the run.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = Lpn> {
        (self.first.0..self.first.0 + self.pages).map(Lpn)
    }
}

/// A write that cannot be placed: the drive has come to its end, or has too little spare space to clean.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no reclaimable space: {blocks_free} blocks free, {blocks_retired} retired of {blocks_total}, \
     {pages_valid} of {pages_total} pages valid; lower capacity.utilization or raise wear.pe-cycles-max"
)]
pub struct OutOfSpace {
    /// Erased blocks left in the pools.
    pub blocks_free: u64,
    /// Blocks whose erase budget is spent.
    pub blocks_retired: u64,
    /// Blocks of the drive.
    pub blocks_total: u64,
    /// Pages that hold current data.
    pub pages_valid: u64,
    /// Pages of the drive.
    pub pages_total: u64,
}

/// A contradiction found by an audit: always a bug of the simulator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{0}")]
pub struct Violation(pub String);

/// What background work achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There was nothing to do.
    Nothing,
    /// A step was made; more may be useful.
    Step,
}

/// What a scheme counted beside the flash operations. Figures that do not apply to a scheme stay `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SchemeFigures {
    /// Victims cleaned.
    pub collections: u64,
    /// Invalid pages over all victims; with `collections` and the block size the cleaning efficiency.
    pub victim_pages_invalid: u64,
    /// Merges of log-block schemes.
    pub merges: Option<Merges>,
    /// The cached mapping table of demand-based schemes.
    pub mapping_cache: Option<MappingCache>,
    /// RAM that the scheme's tables take, in bytes, by the entry sizes of its settings.
    pub ram_bytes: u64,
    /// Figures that only this scheme has, by name with the unit last.
    pub extra: Vec<(String, f64)>,
}

/// Merges by kind (Gupta 2009, Figure 2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Merges {
    /// The log block became the data block: one erase.
    pub switch: u64,
    /// The rest of the data block was copied into the log block first.
    pub partial: u64,
    /// Both were copied into a fresh block.
    pub full: u64,
    /// `full_by_data_blocks[n]`: reclaims of a log block whose full merges touched n data blocks (Figure 7).
    pub full_by_data_blocks: Vec<u64>,
}

/// Counts of a cached mapping table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MappingCache {
    /// Translations asked for.
    pub lookups: u64,
    /// Of them, those found in RAM.
    pub hits: u64,
    /// Entries that left the cache.
    pub evictions: u64,
    /// Of them, those that had to be written to flash.
    pub dirty_evictions: u64,
}

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
    /// [`Ftl::reclaimable_pages`].
    pub reclaimable: bool,
    /// [`MapCacheView::ghost_hits`] for a cache larger by so many entries.
    pub map_ghosts: u32,
}

/// Hands over pages in ascending order, as runs where they are neighbours.
///
/// # Errors
/// The first of `write`; pages after it are not handed over.
pub fn write_runs(lpns: &[u32], mut write: impl FnMut(LpnRun) -> Result<(), OutOfSpace>) -> Result<(), OutOfSpace> {
    for run in lpns.chunk_by(|a, b| a + 1 == *b) {
        let pages = u32::try_from(run.len()).expect("logical pages are counted in 32 bits");
        write(LpnRun { first: Lpn(run[0]), pages, stream: 0 })?;
    }
    Ok(())
}

/// A translation layer: a state machine over pages without clock or channels.
pub trait Ftl {
    /// Reads the pages of a run: for each either [`Flash::read`] or [`Flash::read_unmapped`]. Where finding a page costs
    /// flash operations, the scheme has a way of its own.
    #[inline]
    fn read(&mut self, run: LpnRun, flash: &mut Flash) {
        for lpn in run.iter() {
            match self.lookup(lpn, flash) {
                Some(ppn) => flash.read(ppn, lpn),
                None => flash.read_unmapped(lpn),
            }
        }
    }

    /// Writes the pages of a run out of place, cleaning first where space is short.
    ///
    /// # Errors
    /// [`OutOfSpace`] when a page of the run can't be placed; pages before it are written, and the ones from it on
    /// keep their old content.
    fn write(&mut self, run: LpnRun, flash: &mut Flash) -> Result<(), OutOfSpace>;

    /// Forgets the content of the pages of a run.
    fn trim(&mut self, run: LpnRun, flash: &mut Flash);

    /// Work for idle times: background cleaning or merging.
    fn idle(&mut self, flash: &mut Flash) -> Progress {
        let _ = flash;
        Progress::Nothing
    }

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

    /// Pages not valid of the block that greedy cleaning would pick now, over all units (Hu 2012, Eq. 3.1): what an erase
    /// would free. A whole block while none is sealed. Only after [`Watch::reclaimable`]; none where the scheme has no
    /// units to clean and can't tell.
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

    /// Where a logical page lies. Free of effects: what audits and tests read. Schemes that map whole blocks look at the
    /// flash to tell which of their pages are there.
    fn lookup(&self, lpn: Lpn, flash: &Flash) -> Option<Ppn>;

    /// Checks the scheme's whole state against the flash and appends what contradicts.
    fn audit(&self, flash: &Flash, violations: &mut Vec<Violation>);

    /// What the scheme counted.
    fn figures(&self) -> SchemeFigures;

    /// Sets the counts of [`Ftl::figures`] to zero; the state stays.
    fn reset_figures(&mut self);

    /// Warms the simulating machine's cache for an access to `lpn` some tens of requests ahead.
    #[inline]
    fn expect_far(&self, lpn: Lpn) {
        let _ = lpn;
    }

    /// Warms the simulating machine's cache for an access to `lpn` a few requests ahead.
    #[inline]
    fn expect_near(&self, lpn: Lpn, flash: &Flash) {
        let _ = (lpn, flash);
    }
}
