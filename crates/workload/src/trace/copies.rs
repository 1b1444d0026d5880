//! A trace with a larger footprint: several copies of it side by side, merged by arrival. One copy alone may begin at another
//! of the trace's requests too ([`TraceOptions::start`]), to play the same load in another order.
//!
//! ```text
//!  copy 0:  |a b c d e f|               every copy is the whole trace, in an address space of its own.
//!  copy 1:  |c d e f a b|               It begins where an equal share of the requests has passed, and
//!  copy 2:  |e f a b c d|               goes on with the beginning, so bursts of one meet calm of another.
//! ```
//!
//! Each copy keeps the trace's sizes, runs, hot sets and order; so per copy, reuse in the copy's own requests is kept
//! except across the one place where its end meets its beginning. Requests, rate, footprint and reuse distances of the
//! whole are that many times the trace's: on a drive and caches that are larger by the same factor, the shares are kept.
//! Bursts are not: those of independent copies partly even out.

use super::error::TraceError;
use super::options::{TraceOptions, TraceStats};
use super::reader::{Doubt, TraceReader};
use flashwright_block::{Nanos, Request, RequestKind};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::{Path, PathBuf};

/// Copies at most: each keeps the file open.
pub(crate) const COPIES_MAX: u32 = 64;
/// Copies and tenants begin at multiples of this, so that alignment up to 1 MiB is kept.
pub(crate) const ALIGN_SECTORS: u64 = 2048;
/// Requests read of a lane at once.
const BATCH: usize = 256;

/// What a first pass finds.
pub(crate) struct Measured {
    pub(crate) requests: u64,
    pub(crate) last: Nanos,
    pub(crate) end_sector: u64,
    pub(crate) stats: TraceStats,
    pub(crate) devices: u32,
    pub(crate) notes: Vec<String>,
    pub(crate) doubts: Vec<Doubt>,
}

/// Reads the whole trace once.
pub(crate) fn measure(path: &Path, options: &TraceOptions) -> Result<Measured, TraceError> {
    let mut reader = TraceReader::open(path, options)?;
    let mut found = Measured {
        requests: 0,
        last: Nanos(0),
        end_sector: 0,
        stats: TraceStats::default(),
        devices: 0,
        notes: Vec::new(),
        doubts: Vec::new(),
    };
    while reader.read_each(BATCH, |request, device| {
        found.requests += 1;
        found.last = request.arrival;
        found.devices = found.devices.max(device + 1);
        if request.kind != RequestKind::Flush {
            found.end_sector = found.end_sector.max(request.end_sector());
        }
    })? > 0
    {}
    found.stats = reader.stats();
    found.notes = reader.notes().to_vec();
    found.doubts = reader.doubts().to_vec();
    Ok(found)
}

/// Traces merged by arrival; of equal arrivals, the one of the lane that has given the fewest requests comes first.
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    order: BinaryHeap<Reverse<(Nanos, u64, usize)>>,
    failure: Option<TraceError>,
}

impl Lanes {
    pub(crate) fn new(lanes: Vec<Lane>) -> Result<Self, TraceError> {
        let mut made = Lanes { lanes, order: BinaryHeap::new(), failure: None };
        for at in 0..made.lanes.len() {
            made.enqueue(at)?;
        }
        Ok(made)
    }

    fn enqueue(&mut self, at: usize) -> Result<(), TraceError> {
        let lane = &mut self.lanes[at];
        if let Some(arrival) = lane.peek()? {
            self.order.push(Reverse((arrival, lane.given, at)));
        }
        Ok(())
    }

    /// As [`TraceReader::read_each`]; the device number is that of the lane's trace beyond those of earlier lanes.
    pub(crate) fn read_each(
        &mut self,
        at_most: usize,
        mut take: impl FnMut(Request, u32),
    ) -> Result<usize, TraceError> {
        let mut count = 0;
        while count < at_most {
            if let Some(error) = &self.failure {
                return if count > 0 { Ok(count) } else { Err(error.clone()) };
            }
            let Some(Reverse((_, _, at))) = self.order.pop() else { break };
            if let Some((request, device)) = self.lanes[at].pop() {
                take(request, device);
                count += 1;
            }
            self.failure = self.enqueue(at).err();
        }
        Ok(count)
    }
}

/// One trace of several: where it lies and when its requests arrive.
pub(crate) struct Lane {
    path: PathBuf,
    options: TraceOptions,
    reader: TraceReader,
    ready: VecDeque<(Request, u32)>,
    base_sector: u64,
    first_device: u32,
    /// The address of flushes: in a merged file it says whose they are.
    flush_sector: u64,
    /// Added to arrivals.
    later: Nanos,
    /// Subtracted from arrivals.
    sooner: Nanos,
    /// Requests that the beginning has which is played last.
    beginning: u64,
    /// Requests left to play of the beginning; none before the end is reached.
    beginning_left: Option<u64>,
    /// The time from the beginning of the trace to that of its next pass.
    period: Nanos,
    given: u64,
}

impl Lane {
    /// The trace from its first request to its last.
    pub(crate) fn whole(
        path: &Path,
        options: &TraceOptions,
        base_sector: u64,
        later: Nanos,
    ) -> Result<Self, TraceError> {
        Ok(Lane {
            path: path.to_owned(),
            options: options.clone(),
            reader: TraceReader::open(path, options)?,
            ready: VecDeque::with_capacity(BATCH),
            base_sector,
            first_device: 0,
            flush_sector: base_sector,
            later,
            sooner: Nanos(0),
            beginning: 0,
            beginning_left: None,
            period: Nanos(0),
            given: 0,
        })
    }

    /// Begins at request `beginning` (from 0), which arrives at 0, and ends with the one before it.
    fn rotated(mut self, beginning: u64, period: Nanos) -> Result<Self, TraceError> {
        let mut left = beginning;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(BATCH);
            let got = self.reader.read_each(most, |_, _| {})?;
            if got == 0 {
                break;
            }
            left -= got as u64;
        }
        (self.beginning, self.period) = (beginning, period);
        self.fetch()?;
        self.sooner = self.ready.front().map_or(Nanos(0), |(request, _)| request.arrival);
        Ok(self)
    }

    fn fetch(&mut self) -> Result<(), TraceError> {
        let most = self.beginning_left.map_or(BATCH, |left| usize::try_from(left).unwrap_or(BATCH).min(BATCH));
        let ready = &mut self.ready;
        let got = self.reader.read_each(most, |request, device| ready.push_back((request, device)))?;
        if let Some(left) = &mut self.beginning_left {
            *left -= got as u64;
        } else if got == 0 && self.beginning > 0 {
            self.beginning_left = Some(self.beginning);
            self.reader = TraceReader::open(&self.path, &self.options)?;
            self.later += self.period;
            return self.fetch();
        }
        Ok(())
    }

    /// When the next request arrives.
    fn peek(&mut self) -> Result<Option<Nanos>, TraceError> {
        if self.ready.is_empty() {
            self.fetch()?;
        }
        Ok(self.ready.front().map(|(request, _)| self.arrival(request)))
    }

    fn arrival(&self, request: &Request) -> Nanos {
        Nanos((request.arrival.0 + self.later.0).saturating_sub(self.sooner.0))
    }

    fn pop(&mut self) -> Option<(Request, u32)> {
        let (request, device) = self.ready.pop_front()?;
        self.given += 1;
        let first_sector = match request.kind {
            RequestKind::Flush => self.flush_sector,
            _ => request.first_sector + self.base_sector,
        };
        Some((Request { arrival: self.arrival(&request), first_sector, ..request }, self.first_device + device))
    }
}

/// Several copies of one trace.
pub(crate) struct Copies {
    lanes: Lanes,
    once: Measured,
    count: u64,
    time_scale: f64,
}

impl Copies {
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of them
    pub(crate) fn open(path: &Path, options: &TraceOptions) -> Result<Self, TraceError> {
        let count = u64::from(options.copies);
        let plain = TraceOptions { copies: 1, start: 0.0, time_scale: 1.0, ..options.clone() };
        let once = measure(path, &plain)?;
        let stride = once.end_sector.next_multiple_of(ALIGN_SECTORS);
        if stride.checked_mul(count).is_none_or(|end| end > u64::MAX / 512) {
            let what = format!("{count} copies of a trace of {stride} sectors together reach past 2^64 B; use fewer");
            return Err(TraceError::Layout { path: path.to_owned(), what });
        }
        // One mean gap from the last request to the first.
        let period = once.last + Nanos(once.last.0 / once.requests.saturating_sub(1).max(1));
        let start = (once.requests as f64 * options.start.clamp(0.0, 1.0)) as u64;
        let mut lanes = Vec::new();
        for copy in 0..count {
            let lane = Lane::whole(path, &plain, copy * stride, Nanos(0))?;
            // Below 2^64: the requests of a file, at most 64 times.
            let mut lane = lane.rotated((start + copy * once.requests / count) % once.requests.max(1), period)?;
            lane.flush_sector = 0;
            lane.first_device = once.devices * u32::try_from(copy).unwrap_or(u32::MAX);
            lanes.push(lane);
        }
        Ok(Copies { lanes: Lanes::new(lanes)?, once, count, time_scale: options.time_scale })
    }

    pub(crate) fn requests(&self) -> u64 {
        self.once.requests * self.count
    }

    /// What a reading of the trace counted, beside the requests.
    pub(crate) fn stats(&self) -> &TraceStats {
        &self.once.stats
    }

    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates
    pub(crate) fn read_each(
        &mut self,
        at_most: usize,
        mut take: impl FnMut(Request, u32),
    ) -> Result<usize, TraceError> {
        let scale = self.time_scale;
        #[allow(clippy::float_cmp)] // exactly 1, the default
        let at = |arrival: Nanos| if scale == 1.0 { arrival } else { Nanos((arrival.0 as f64 * scale) as u64) };
        self.lanes.read_each(at_most, |request, device| {
            take(Request { arrival: at(request.arrival), ..request }, device);
        })
    }
}
