//! The keys that every workload takes, and their values on a drive of a given size.

use super::error::Fault;
use super::generator::{Clock, Generator, Mix, Pattern};
use super::settings::settings;
use super::value::{ArrivalKind, Count, Rate, Share};
use flashwright_block::{Bytes, Request, RequestSource, Rng, SECTOR_BYTES, Seed};

/// The size and page size of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Logical size in sectors of [`SECTOR_BYTES`].
    pub logical_sectors: u64,
    /// Sectors of one flash page, the default request size.
    pub page_sectors: u32,
}

/// The zones of a zoned drive, in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonedTarget {
    /// From the start of a zone to the start of the next.
    pub size_sectors: u64,
    /// What of a zone can be written, from its start.
    pub capacity_sectors: u64,
}

/// What determines when the next request is issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The completion of an earlier one: `depth` requests are kept in flight. Arrivals read 0 until issue.
    Closed {
        /// Requests in flight, at least 1.
        depth: u32,
    },
    /// The clock: requests carry their arrival times.
    Open,
    /// The workload itself, which reacts to the device.
    Interactive,
}

settings! {
    /// The keys that every workload takes.
    pub struct Common {
        "write" write: Option<Share> = "", "Share of requests that write, 0 to 1; default 1 (less the trims), or the workload's own.";
        "trim" trim: Share = "0", "Share of requests that trim, 0 to 1; the rest are reads.";
        "size" size: Option<Bytes> = "", "Size of a request; default the drive's page size, or the workload's own.";
        "align" align: Option<Bytes> = "", "Requests start at multiples of this; default the request size.";
        "range" range: Share = "1", "Share of the logical space in use, from its start, above 0 up to 1.";
        "depth" depth: Option<Count> = "", "Closed loop with this many requests in flight; default 1 unless the workload has its own arrivals.";
        "rate" rate: Option<Rate> = "", "Open loop with this mean rate in requests per second.";
        "arrival" arrival: Option<ArrivalKind> = "", "How an open loop spaces its requests; default poisson, or the workload's own.";
    }
}

/// A workload's own defaults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    /// Share of writes.
    pub(crate) write: f64,
    /// Request size; none is the drive's page size.
    pub(crate) size: Option<Bytes>,
    /// Whether it has its own arrival times.
    pub(crate) open: bool,
}

impl Default for Defaults {
    fn default() -> Self {
        Defaults { write: 1.0, size: None, open: false }
    }
}

impl Common {
    /// Validation errors that do not depend on the drive.
    pub(crate) fn check(&self, defaults: Defaults, faults: &mut Vec<Fault>) {
        if let (Some(depth), Some(_)) = (self.depth, self.rate) {
            faults.push(Fault::new(
                "rate",
                format!("rate and depth={} together", depth.0),
                "one of the two: depth (closed loop) or rate (open loop)",
            ));
        }
        if self.arrival.is_some() && self.rate.is_none() && (self.depth.is_some() || !defaults.open) {
            faults.push(Fault::new("arrival", "arrival in a closed loop", "rate=... with it (open loop)"));
        }
        if let Some(write) = self.write
            && write.0 + self.trim.0 > 1.0 + 1e-9
        {
            let found = format!("write={} and trim={}", write.0, self.trim.0);
            faults.push(Fault::new("trim", found, "shares that add up to 1 or less"));
        }
        if self.range.0 <= 0.0 {
            faults.push(Fault::new("range", self.range.0, "a share above 0 and up to 1"));
        }
    }

    /// The pace of the workload.
    pub(crate) fn pace(&self, defaults: Defaults) -> Pace {
        match (self.depth, self.rate) {
            (None, Some(_)) => Pace::Open,
            (None, None) if defaults.open => Pace::Open,
            (depth, _) => Pace::Closed { depth: depth.map_or(1, |depth| depth.0) },
        }
    }

    /// Share of writes and of trims.
    pub(crate) fn shares(&self, defaults: Defaults) -> (f64, f64) {
        (self.write.map_or(defaults.write.min(1.0 - self.trim.0), |write| write.0), self.trim.0)
    }
}

/// A workload adapted to a drive: whole sectors, slots, streams of random numbers.
pub(crate) struct Plan<'a> {
    pub(crate) common: &'a Common,
    pub(crate) defaults: Defaults,
    pub(crate) seed: Seed,
    /// Number of requests; none is endless.
    pub(crate) requests: Option<u64>,
    /// The drive's zones, if it has any.
    pub(crate) zones: Option<ZonedTarget>,
    /// Sectors of a flash page.
    pub(crate) page_sectors: u32,
    /// Sectors in use, from the start of the drive.
    pub(crate) space_sectors: u64,
    /// Sectors of a request.
    pub(crate) size_sectors: u32,
    /// Requests start at multiples of this.
    pub(crate) align_sectors: u64,
    /// Places where a request can start.
    pub(crate) slots: u64,
}

/// Sectors of a key's size: whole by construction, at most 2^31.
pub(crate) fn sectors(size: Bytes) -> u64 {
    size.0 / SECTOR_BYTES
}

impl<'a> Plan<'a> {
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(crate) fn new(
        common: &'a Common,
        defaults: Defaults,
        target: &Target,
        zones: Option<ZonedTarget>,
        seed: Seed,
        requests: Option<u64>,
    ) -> Result<Self, Fault> {
        let page_sectors = u64::from(target.page_sectors.max(1));
        let size = common.size.or(defaults.size).map_or(page_sectors, sectors);
        let align_sectors = common.align.map_or(size, sectors);
        // Rounded to the nearest sector first, so that range=0.3 of a round size is not one sector short.
        let used = if common.range.0 >= 1.0 {
            target.logical_sectors
        } else {
            ((target.logical_sectors as f64 * common.range.0).round() as u64).min(target.logical_sectors)
        };
        if used < size {
            let room = format!("{} ({} sectors in use)", Bytes(size * SECTOR_BYTES), used);
            return Err(Fault::new("size", room, "a size that fits the part of the drive in use"));
        }
        let size_sectors = u32::try_from(size).map_err(|_| Fault::new("size", size, "at most 2^32 sectors"))?;
        let slots = (used - size) / align_sectors + 1;
        let page_sectors = target.page_sectors.max(1);
        Ok(Plan {
            common,
            defaults,
            seed,
            requests,
            zones,
            page_sectors,
            space_sectors: used,
            size_sectors,
            align_sectors,
            slots,
        })
    }

    /// Random numbers for addresses.
    pub(crate) fn addresses(&self) -> Rng {
        self.seed.stream("workload.address")
    }

    /// Random numbers for layouts drawn once: permutations.
    pub(crate) fn layout(&self) -> Rng {
        self.seed.stream("workload.layout")
    }

    /// Slots that a request covers, which is the distance to the next request in a sequential run.
    pub(crate) fn slots_per_request(&self) -> u64 {
        u64::from(self.size_sectors).div_ceil(self.align_sectors)
    }

    /// The generator that draws addresses from `pattern` and the rest from the common keys.
    pub(crate) fn run<P: Pattern + 'static>(&self, pattern: P) -> Box<dyn RequestSource + Send> {
        let template = Request { sectors: self.size_sectors, ..Request::default() };
        Box::new(Generator::new(pattern, self.mix(), self.clock(), template, self.requests))
    }

    /// What draws the kinds of requests.
    pub(crate) fn mix(&self) -> Mix {
        let (write, trim) = self.common.shares(self.defaults);
        Mix::new(self.seed.stream("workload.kind"), write, trim)
    }

    /// What gives their arrivals.
    pub(crate) fn clock(&self) -> Clock {
        match self.common.rate {
            Some(rate) => Clock::open(
                self.seed.stream("workload.arrival"),
                1e9 / rate.0,
                self.common.arrival.unwrap_or(ArrivalKind::Poisson),
            ),
            None => Clock::Closed,
        }
    }
}
