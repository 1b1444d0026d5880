//! Summary of a trace: the figures that papers give of theirs.

use super::error::TraceError;
use super::options::{DeviceSpan, Layout, TraceOptions, TraceStats};
use super::pages::Pages;
use super::reader::{Doubt, TraceReader};
use flashwright_block::{Nanos, Request, RequestClass, RequestKind, SECTOR_BYTES};
use std::path::Path;

/// A summary of a trace. Computing it takes memory proportional to the distinct pages that the trace touches, about 1 B
/// per page if they are adjacent and up to 50 B if they are isolated.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct TraceInfo {
    /// Name of the format.
    pub format: String,
    /// The label of a Flashwright trace.
    pub label: String,
    /// Free text of a Flashwright trace.
    pub note: String,
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
    /// Writes with force-unit-access.
    pub fua_writes: u64,
    /// Reads among reads and writes, in percent.
    pub read_percent: f64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Mean length of a read, in bytes.
    pub read_bytes_mean: f64,
    /// Mean length of a write, in bytes.
    pub write_bytes_mean: f64,
    /// Mean length of reads and writes together, in bytes.
    pub bytes_mean: f64,
    /// From the first arrival to the last, in nanoseconds.
    pub span_ns: u64,
    /// Mean distance of arrivals, in milliseconds.
    pub inter_arrival_ms_mean: f64,
    /// Requests a second; 0 for a trace without times.
    pub requests_per_second: f64,
    /// Distinct 4 KiB pages read or written.
    pub pages: u64,
    /// Distinct 4 KiB pages written.
    pub pages_written: u64,
    /// Pages written at least twice (updated at least once).
    pub pages_written_twice: u64,
    /// Pages written at least three times (updated more than once).
    pub pages_written_thrice: u64,
    /// Share of written pages that are written at least twice, in percent.
    pub pages_written_twice_percent: f64,
    /// Share of written pages that are written at least three times, in percent.
    pub pages_written_thrice_percent: f64,
    /// Reads and writes that start where the previous one of their device ended, in percent of all.
    pub sequential_percent: f64,
    /// One past the highest byte touched, devices laid end to end.
    pub end_byte: u64,
    /// The devices, with requests and span.
    pub devices: Vec<DeviceSpan>,
    /// The counts of the reader.
    pub stats: TraceStats,
    /// What was done to read it: files read together, events taken, how times were put in order, and
    /// what had to be assumed since the trace does not say it.
    pub notes: Vec<String>,
    /// What speaks against these figures.
    pub doubts: Vec<Doubt>,
}

/// Pages are counted in this size.
const PAGE_SECTORS: u64 = 4096 / SECTOR_BYTES;
/// Requests read per batch.
const BATCH: usize = 4096;

impl TraceInfo {
    /// Reads the whole trace at `path` and summarises it. Devices are always laid end to end here.
    ///
    /// # Errors
    /// As [`TraceReader::open`] and [`TraceReader::read`].
    pub fn of(path: impl AsRef<Path>, options: &TraceOptions) -> Result<Self, TraceError> {
        let options = TraceOptions { layout: Layout::Concatenate, ..options.clone() };
        Self::read(&mut TraceReader::open(path, &options)?)
    }

    /// Summarises the rest of `reader`.
    ///
    /// # Errors
    /// As [`TraceReader::read`].
    pub fn read(reader: &mut TraceReader) -> Result<Self, TraceError> {
        let mut sums = Sums::default();
        while reader.read_each(BATCH, |request, device| sums.add(&request, device as usize))? > 0 {}
        let mut info = sums.info();
        info.format = reader.format().name().to_owned();
        info.label = reader.label().to_owned();
        info.note = reader.note().to_owned();
        info.devices = reader.devices();
        info.stats = reader.stats();
        info.notes = reader.notes().to_vec();
        info.doubts = reader.doubts().to_vec();
        Ok(info)
    }
}

/// Running sums.
#[derive(Default)]
struct Sums {
    info: TraceInfo,
    /// Touched, and written at least once, twice, three times.
    pages: Pages<4>,
    first: Option<Nanos>,
    last: Nanos,
    sequential: u64,
    /// Where the last read or write of each device ended.
    ends: Vec<Option<u64>>,
}

impl Sums {
    fn add(&mut self, request: &Request, device: usize) {
        self.first.get_or_insert(request.arrival);
        self.last = request.arrival;
        self.info.requests += 1;
        let bytes = u64::from(request.sectors) * SECTOR_BYTES;
        match request.kind.class() {
            RequestClass::Read => {
                self.info.reads += 1;
                self.info.read_bytes += bytes;
            }
            RequestClass::Write => {
                self.info.writes += 1;
                self.info.written_bytes += bytes;
                self.info.fua_writes += u64::from(request.fua);
            }
            RequestClass::Discard => self.info.trims += 1,
            RequestClass::Barrier => self.info.flushes += 1,
            RequestClass::Manage => {}
        }
        if request.kind.moves_data() {
            self.info.end_byte = self.info.end_byte.max(request.end_sector().saturating_mul(SECTOR_BYTES));
            self.follow(request, device);
            let (first, last) = (request.first_sector / PAGE_SECTORS, (request.end_sector() - 1) / PAGE_SECTORS);
            self.pages.touch(first, last, request.kind == RequestKind::Write);
        }
    }

    fn follow(&mut self, request: &Request, device: usize) {
        if device >= self.ends.len() {
            self.ends.resize(device + 1, None);
        }
        let end = &mut self.ends[device];
        self.sequential += u64::from(*end == Some(request.first_sector));
        *end = Some(request.end_sector());
    }

    #[allow(clippy::cast_precision_loss)] // means and shares, for people
    fn info(self) -> TraceInfo {
        let mut info = self.info;
        let [pages, once, twice, thrice] = self.pages.counts();
        let span = self.last.0 - self.first.unwrap_or_default().0;
        let ratio = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        let data = info.reads + info.writes;
        info.read_percent = 100.0 * ratio(info.reads, data);
        info.read_bytes_mean = ratio(info.read_bytes, info.reads);
        info.write_bytes_mean = ratio(info.written_bytes, info.writes);
        info.bytes_mean = ratio(info.read_bytes + info.written_bytes, data);
        info.span_ns = span;
        info.inter_arrival_ms_mean = ratio(span, info.requests.saturating_sub(1)) / 1e6;
        info.requests_per_second = 1e9 * ratio(info.requests.saturating_sub(1), span);
        (info.pages, info.pages_written) = (pages, once);
        (info.pages_written_twice, info.pages_written_thrice) = (twice, thrice);
        info.pages_written_twice_percent = 100.0 * ratio(twice, once);
        info.pages_written_thrice_percent = 100.0 * ratio(thrice, once);
        info.sequential_percent = 100.0 * ratio(self.sequential, data);
        info
    }
}
