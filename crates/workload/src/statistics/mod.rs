//! Statistics of a stream of requests that decide what it does to a drive, and distances between two of them.
//!
//! One pass, for traces and generators alike. A [`Collector`] hands each request to its parts:
//!
//! ```text
//!              ┌─ sizes      sizes and alignment of reads and writes
//!              ├─ runs       sequential runs
//!  Request ──► ┼─ reuse      reuse distances by pair of directions, time between overwrites, popularity
//!              ├─ footprint  pages touched and written so far
//!              ├─ gathering  pages written of a block within a window
//!              ├─ drift      how long hot chunks stay hot
//!              └─ arrivals   gaps, bursts by scale, arrivals and direction
//! ```
//!
//! Pages are 4 KiB. Trims and flushes are counted and enter nothing else.
//!
//! ```
//! use flashwright_block::{Request, RequestClass, RequestKind};
//! use flashwright_workload::statistics::{Collector, distances};
//!
//! let mut one = Collector::default();
//! let mut other = Collector::default();
//! for n in 0..100 {
//!     one.add(&Request { first_sector: 8 * n, sectors: 8, kind: RequestKind::Write, ..Request::default() });
//!     other.add(&Request { first_sector: 0, sectors: 8, kind: RequestKind::Write, ..Request::default() });
//! }
//! let (one, other) = (one.finish(), other.finish());
//! assert_eq!((one.footprint.pages, other.footprint.pages), (100, 1));
//! let found = distances(&one, &other);
//! assert!(found.iter().any(|each| each.name == "write sizes" && each.largest_gap == 0.0));
//! ```

mod arrivals;
mod distance;
mod distribution;
mod drift;
mod fenwick;
mod footprint;
mod gathering;
mod reuse;
mod runs;
mod sizes;

pub use arrivals::{Arrivals, Scale};
pub use distance::{Distance, distances};
pub use distribution::Distribution;
pub use drift::{Drift, Lag};
pub use footprint::{Footprint, Grown};
pub use gathering::{Gathered, Gathering};
pub use reuse::{Popularity, Reuse};
pub use runs::Runs;
pub use sizes::Sizes;

use flashwright_block::{MemoryEnded, Request, RequestClass, RequestSource, SECTOR_BYTES, SourceError, check_memory};
use std::ops::RangeInclusive;

/// Sectors of a page.
const PAGE_SECTORS: u64 = 4096 / SECTOR_BYTES;
/// Requests read per batch.
const BATCH: usize = 4096;

/// All statistics of a stream of requests.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Statistics {
    /// All requests.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Trims.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Writes among reads and writes, 0 to 1; none without either.
    pub write_share: Option<f64>,
    /// One past the highest byte read or written.
    pub end_byte: u64,
    /// Sizes and alignment of reads.
    pub read_sizes: Sizes,
    /// Sizes and alignment of writes.
    pub write_sizes: Sizes,
    /// Sequential runs of reads.
    pub read_runs: Runs,
    /// Sequential runs of writes.
    pub write_runs: Runs,
    /// Reuse of pages.
    pub reuse: Reuse,
    /// How unevenly accesses spread over pages.
    pub popularity: Popularity,
    /// Growth of the footprint.
    pub footprint: Footprint,
    /// How writes gather in blocks.
    pub gathering: Gathering,
    /// How long hot chunks stay hot.
    pub drift: Drift,
    /// Arrivals; none if all requests arrive at once, as those of a closed loop.
    pub arrivals: Option<Arrivals>,
}

/// Collects [`Statistics`]. Memory grows with the distinct pages, about 50 B each up to two million of them and then 1 to
/// 16 B, and by about 20 B for each of up to four million chunks of 64 KiB in an epoch. Long requests take no more than short ones.
#[derive(Default)]
pub struct Collector {
    sums: Statistics,
    sizes: [sizes::Collector; 2],
    runs: [runs::Collector; 2],
    reuse: reuse::Collector,
    footprint: footprint::Collector,
    gathering: gathering::Collector,
    drift: drift::Collector,
    arrivals: arrivals::Collector,
}

/// Reads and writes, as indices.
const READ: usize = 0;
const WRITE: usize = 1;

/// The pages that a request touches.
fn pages(request: &Request) -> RangeInclusive<u64> {
    request.first_sector / PAGE_SECTORS..=(request.end_sector() - 1) / PAGE_SECTORS
}

impl Collector {
    /// Takes the next request.
    pub fn add(&mut self, request: &Request) {
        self.sums.requests += 1;
        let direction = match request.kind.class() {
            RequestClass::Read => READ,
            RequestClass::Write => WRITE,
            RequestClass::Discard => {
                self.sums.trims += 1;
                return;
            }
            RequestClass::Barrier => {
                self.sums.flushes += 1;
                return;
            }
            RequestClass::Manage => return,
        };
        if request.sectors == 0 {
            return;
        }
        let bytes = u64::from(request.sectors) * SECTOR_BYTES;
        let (count, volume) = match direction {
            READ => (&mut self.sums.reads, &mut self.sums.read_bytes),
            _ => (&mut self.sums.writes, &mut self.sums.written_bytes),
        };
        *count += 1;
        *volume += bytes;
        self.sums.end_byte = self.sums.end_byte.max(request.end_sector().saturating_mul(SECTOR_BYTES));
        self.sizes[direction].add(request);
        self.runs[direction].add(request);
        self.arrivals.add(request.arrival, direction);
        self.drift.add(request);
        let pages = pages(request);
        self.footprint.add(*pages.start(), *pages.end(), direction == WRITE);
        if direction == WRITE {
            self.gathering.add(*pages.start(), *pages.end());
        }
        pages.for_each(|page| self.reuse.add(page, direction));
    }

    /// The statistics of what was taken.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // a share, for people
    pub fn finish(self) -> Statistics {
        let [read_sizes, write_sizes] = self.sizes.map(sizes::Collector::finish);
        let [read_runs, write_runs] = self.runs.map(runs::Collector::finish);
        let (reuse, popularity) = self.reuse.finish();
        let data = self.sums.reads + self.sums.writes;
        Statistics {
            write_share: (data > 0).then(|| self.sums.writes as f64 / data as f64),
            read_sizes,
            write_sizes,
            read_runs,
            write_runs,
            reuse,
            popularity,
            footprint: self.footprint.finish(),
            gathering: self.gathering.finish(),
            drift: self.drift.finish(),
            arrivals: self.arrivals.finish(),
            ..self.sums
        }
    }
}

/// Why there are no statistics.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatisticsError {
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// What is kept of the requests finds no place.
    #[error(transparent)]
    Memory(#[from] MemoryEnded),
}

/// The statistics of a source, or of its first `at_most` requests.
///
/// # Errors
/// Those of the source, and memory that ends.
pub fn of(source: &mut dyn RequestSource, at_most: Option<u64>) -> Result<Statistics, StatisticsError> {
    let mut collector = Collector::default();
    let (mut batch, mut left) = (Vec::new(), at_most.unwrap_or(u64::MAX));
    while left > 0 {
        batch.clear();
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(BATCH);
        if source.fill(&mut batch, wanted)? == 0 {
            break;
        }
        left -= batch.len() as u64;
        batch.iter().for_each(|request| collector.add(request));
        check_memory()?;
    }
    Ok(collector.finish())
}
