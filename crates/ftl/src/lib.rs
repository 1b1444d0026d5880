//! Translation between the logical pages of the host and the physical pages of the flash.
//!
//! A scheme ([`Ftl`]) decides *what* is read, programmed and erased; it has no notion of time. [`Flash`] is the only
//! access to the chip: it refuses illegal steps, counts every operation by cause, tracks validity, and logs each
//! operation for the timing engine. Policies only choose: they read tables and return an id.
//!
//! ```text
//!  Ftl::write(run) ── placement: which frontier? ── cleaning: which victim?
//!        │                                              │
//!        └────────────── Flash: read, program, copy, erase ──► Nand (law, wear)
//!                           └─ FlashOp log ──► timing engine of the drive
//! ```

mod allocation;
mod cleaner;
mod cleans_in_steps;
mod contents;
mod counters;
pub mod durable;
mod flash;
mod flash_checkpoint;
mod flash_power;
mod ghosts;
mod groups;
mod guarded;
mod merge;
mod owners;
mod page_data;
mod plane;
mod planes;
pub mod policies;
mod pool;
mod units;
mod valid_count_histogram;
use flashwright_block::registry;
pub mod schemes;
mod serves_ram;
mod settings;
mod slc;
mod stamps;
mod zones;

pub use allocation::{Allocation, AllocationOrder};
pub use cleans_in_steps::CleansInSteps;
pub use contents::Keeps;
pub use counters::{CAUSES, Cause, Counters, OP_KINDS, OpKind};
pub use flash::{Flash, FlashOp};
pub use flash_checkpoint::MapSize;
pub use flashwright_block::{Listed, NoSettings};
pub use ghosts::Ghosts;
pub use guarded::GuardedFlash;
pub use owners::OwnerCounts;
pub use page_data::{PageBytes, PageData};
pub use policies::foreign::{FaultCell, Foreign};
pub use policies::map_cache::{MapCacheName, MapCacheSettings, SlotLists};
pub use policies::map_prefetch::{MapPrefetchName, MapPrefetchSettings, PrefetchEvicts};
pub use policies::placement::{HandleCounts, PlacementName, PlacementSettings};
pub use policies::schedule::{Occasion, ScheduleName, ScheduleSettings};
pub use policies::victim::{VictimChoice, VictimName, VictimSettings};
pub use policies::wear::{WearName, WearPolicySettings};
pub use pool::{BlockPool, FreeBlockOrder};
pub use schemes::{DecideFtl, FtlDrive, MakeFtl, OwnFtl, OwnSettings, Scheme, SchemeName, SchemeSettings, register};
pub use serves_ram::{MapCacheView, ServesRam, Watch};
pub use settings::{FtlSettings, GcSettings, InvalidateOrder, PlacementConfig, WearSettings};
pub use slc::{SlcCacheKind, SlcContext, SlcSettings, WhenFull};
pub use units::Unit;
pub use zones::{ZoneAction, ZoneLayout, ZoneLimits, Zones};

use flashwright_nand::{Lpn, Ppn};
use serde::{Deserialize, Serialize};

/// Consecutive logical pages of one request, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LpnRun {
    /// The first page.
    pub first: Lpn,
    /// The number of pages.
    pub pages: u32,
    /// The stream that the workload names for placement; 0 if it names none. It is as wide as its neighbours, because a
    /// narrower field stalls the CPU when a run is copied.
    pub stream: u32,
}

impl LpnRun {
    /// The same run in a place of its own, for a call that is rare: a run whose address is taken lies in memory.
    #[inline(always)]
    #[must_use]
    pub fn apart(self) -> Self {
        let Self { first, pages, stream } = self;
        Self { first, pages, stream }
    }

    /// The pages of the run.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = Lpn> {
        (self.first.0..self.first.0 + self.pages).map(Lpn)
    }
}

/// A write that cannot be placed: the drive is at the end of its life, or has too little spare space to clean.
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

impl OutOfSpace {
    /// The state of a drive with so many erased blocks. O(blocks).
    #[cold]
    pub(crate) fn new(blocks_free: usize, flash: &Flash) -> Self {
        let geometry = flash.geometry();
        Self {
            blocks_free: blocks_free as u64,
            blocks_retired: u64::from(flash.nand().blocks_retired()),
            blocks_total: u64::from(geometry.blocks()),
            pages_valid: flash.pages_valid_in_all(),
            pages_total: u64::from(geometry.pages()),
        }
    }
}

/// A contradiction found by an audit: always a bug of the simulator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{0}")]
pub struct Violation(pub String);

/// The result of a call of [`CleansInSteps::clean`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There was nothing to do.
    Nothing,
    /// The number of steps made: pages copied, pages of a map written and blocks erased. More steps may be useful.
    Worked(u32),
}

/// Counts of a scheme other than flash operations. Figures that do not apply to a scheme stay `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SchemeFigures {
    /// Victims cleaned.
    pub collections: u64,
    /// Invalid pages of all victims; with `collections` and the block size it gives the cleaning efficiency.
    pub victim_pages_invalid: u64,
    /// Merges of log-block schemes.
    pub merges: Option<Merges>,
    /// The cached mapping table of demand-based schemes.
    pub mapping_cache: Option<MappingCache>,
    /// The zones of a zoned drive.
    pub zones: Option<ZoneFigures>,
    /// By handle, what placement cost; empty under policies without handles.
    pub handles: Vec<HandleCounts>,
    /// RAM of the scheme's tables in bytes, computed from the entry sizes in its settings.
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
    /// Both were copied into an erased block.
    pub full: u64,
    /// `full_by_data_blocks[n]`: reclaims of a log block whose full merges touched n data blocks (Figure 7).
    pub full_by_data_blocks: Vec<u64>,
}

impl Merges {
    /// Counts a log block that was reclaimed by merging this many data blocks; 0 if it had no current page.
    pub(crate) fn count_reclaim(&mut self, data_blocks: usize) {
        if self.full_by_data_blocks.len() <= data_blocks {
            self.full_by_data_blocks.resize(data_blocks + 1, 0);
        }
        self.full_by_data_blocks[data_blocks] += 1;
    }
}

/// Counts of zones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ZoneFigures {
    /// Zones in each state now, in the order of [`flashwright_block::ZoneState::ALL`].
    pub by_state: [u64; 7],
    /// Zones that were reset.
    pub resets: u64,
    /// Zones that were finished.
    pub finishes: u64,
    /// Requests that were refused, in the order of [`flashwright_block::ZoneRule::ALL`].
    pub refusals: [u64; 9],
}

/// Counts of a cached mapping table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MappingCache {
    /// Translations requested.
    pub lookups: u64,
    /// Translations found in RAM.
    pub hits: u64,
    /// Entries evicted from the cache.
    pub evictions: u64,
    /// Evicted entries that had to be written to flash.
    pub dirty_evictions: u64,
    /// Entries loaded beside those that were asked for.
    pub prefetched: u64,
    /// Entries of `prefetched` that were asked for before they left.
    pub prefetched_used: u64,
}

/// Passes on pages in ascending order, joining neighbours into runs.
///
/// # Errors
/// The first error of `write`; pages after it are not passed on.
pub fn write_runs(lpns: &[u32], mut write: impl FnMut(LpnRun) -> Result<(), OutOfSpace>) -> Result<(), OutOfSpace> {
    for run in lpns.chunk_by(|a, b| a + 1 == *b) {
        let pages = u32::try_from(run.len()).expect("logical pages are counted in 32 bits");
        write(LpnRun { first: Lpn(run[0]), pages, stream: 0 })?;
    }
    Ok(())
}

/// A translation layer: a state machine over pages without clock or channels.
pub trait Ftl {
    /// Reads the pages of a run: for each either [`Flash::read`] or [`Flash::read_unmapped`]. Schemes override it if
    /// finding a page costs flash operations.
    #[inline]
    fn read(&mut self, run: LpnRun, flash: &mut Flash) {
        for lpn in run.iter() {
            match self.lookup(lpn, flash) {
                Some(ppn) => flash.read(ppn, lpn),
                None => flash.read_unmapped(lpn),
            }
        }
    }

    /// Writes the pages of a run out of place, cleaning first if space is short.
    ///
    /// # Errors
    /// [`OutOfSpace`] when a page of the run can't be placed; pages before it are written, and the ones from it on
    /// keep their old content.
    fn write(&mut self, run: LpnRun, flash: &mut Flash) -> Result<(), OutOfSpace>;

    /// Forgets the content of the pages of a run.
    fn trim(&mut self, run: LpnRun, flash: &mut Flash);

    /// The physical page of a logical page, without side effects, for audits and tests. Schemes that map whole blocks
    /// consult the flash to find which of their pages exist.
    fn lookup(&self, lpn: Lpn, flash: &Flash) -> Option<Ppn>;

    /// Compares the scheme's whole state with the flash and appends contradictions.
    fn audit(&self, flash: &Flash, violations: &mut Vec<Violation>);

    /// The counts of the scheme.
    fn figures(&self) -> SchemeFigures;

    /// Resets the counts of [`Ftl::figures`] to zero; the state stays.
    fn reset_figures(&mut self);

    /// Warms the CPU cache for an access to `lpn` some tens of requests ahead.
    #[inline]
    fn expect_far(&self, lpn: Lpn) {
        let _ = lpn;
    }

    /// Warms the CPU cache for an access to `lpn` a few requests ahead.
    #[inline]
    fn expect_near(&self, lpn: Lpn, flash: &Flash) {
        let _ = (lpn, flash);
    }
}
