//! Summary of a trace: the figures that papers give of theirs.

use super::address::PageHasher;
use super::error::TraceError;
use super::options::{DeviceSpan, Layout, TraceOptions, TraceStats};
use super::reader::{Doubt, TraceReader};
use flashwright_block::{Nanos, Request, RequestClass, RequestKind, SECTOR_BYTES};
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
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
    pages: Pages,
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
            self.pages.touch(request);
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

/// Requests over more regions than this, of 64 pages each, are kept as stretches: bitmaps take 32 B a region, which would be
/// 256 MiB for a request of 2 TiB.
const REGIONS_MAX: u64 = 1024;

/// Pages touched and how often they were written (0, 1, 2, more), in bitmaps of 64 pages.
#[derive(Default)]
struct Pages {
    regions: HashMap<u64, Region, BuildHasherDefault<PageHasher>>,
    /// What long requests touched beside: the first region of a stretch, the one past its end, and how often its pages were
    /// written, at most three times. They don't overlap.
    stretches: BTreeMap<u64, (u64, u8)>,
}

/// Bit n is page n of the region: touched, and written at least once, twice, three times.
#[derive(Clone, Copy, Default)]
struct Region {
    touched: u64,
    once: u64,
    twice: u64,
    thrice: u64,
}

impl Pages {
    fn touch(&mut self, request: &Request) {
        let (first, last) = (request.first_sector / PAGE_SECTORS, (request.end_sector() - 1) / PAGE_SECTORS);
        if last / 64 - first / 64 > REGIONS_MAX {
            self.stretch(first / 64 + 1, last / 64, u8::from(request.kind == RequestKind::Write));
            self.touch_each(request, [(first, first | 63), (last & !63, last)]);
        } else {
            self.touch_each(request, [(first, last)]);
        }
    }

    fn touch_each<const N: usize>(&mut self, request: &Request, parts: [(u64, u64); N]) {
        let regions =
            parts.into_iter().flat_map(|(first, last)| (first / 64..=last / 64).map(move |at| (at, first, last)));
        for (region, first, last) in regions {
            let low = first.max(region * 64) % 64;
            let high = last.min(region * 64 + 63) % 64;
            let mask = (u64::MAX >> (63 - high)) & (u64::MAX << low);
            let entry = self.regions.entry(region).or_default();
            entry.touched |= mask;
            if request.kind == RequestKind::Write {
                entry.thrice |= entry.twice & mask;
                entry.twice |= entry.once & mask;
                entry.once |= mask;
            }
        }
    }

    /// Touches all pages of the regions from `begin` up to `end`, which are written so many times more.
    fn stretch(&mut self, begin: u64, end: u64, writes: u8) {
        self.split(begin);
        self.split(end);
        let (mut at, mut gaps) = (begin, Vec::new());
        for (first, (past, times)) in self.stretches.range_mut(begin..end) {
            *times = (*times + writes).min(3);
            gaps.push((at, *first));
            at = *past;
        }
        gaps.push((at, end));
        self.stretches.extend(gaps.into_iter().filter(|(from, to)| from < to).map(|(from, to)| (from, (to, writes))));
    }

    /// Has a stretch begin at a region if one goes through it.
    fn split(&mut self, at: u64) {
        if let Some((_, stretch)) = self.stretches.range_mut(..at).next_back()
            && stretch.0 > at
        {
            let rest = *stretch;
            stretch.0 = at;
            self.stretches.insert(at, rest);
        }
    }

    /// How often the stretch around a region was written, if there is one.
    fn stretched(&self, region: u64) -> Option<usize> {
        let (_, (end, times)) = self.stretches.range(..=region).next_back()?;
        (region < *end).then_some(usize::from(*times))
    }

    /// Pages touched, and those written at least once, twice, three times.
    #[allow(clippy::iter_over_hash_type)] // a sum has no order
    fn counts(&self) -> [u64; 4] {
        let mut sums = [0; 4];
        for (begin, (end, times)) in &self.stretches {
            sums[..=usize::from(*times)].iter_mut().for_each(|sum| *sum += 64 * (end - begin));
        }
        for (number, region) in &self.regions {
            let bits =
                [region.touched, region.once, region.twice, region.thrice].map(|bits| u64::from(bits.count_ones()));
            match self.stretched(*number) {
                None => sums.iter_mut().zip(bits).for_each(|(sum, count)| *sum += count),
                // Its pages have those of the stretch, and these more.
                Some(times) => (times + 1..4).for_each(|at| sums[at] += bits[at - times]),
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::{Seed, below};

    #[test]
    fn long_requests_count_their_pages_as_short_ones_do() {
        const LONG: u64 = 70 * REGIONS_MAX;
        let mut rng = Seed(39).stream("long requests");
        for _ in 0..3 {
            let (mut pages, mut naive) = (Pages::default(), HashMap::<u64, usize>::new());
            for _ in 0..9 {
                let length =
                    1 + if below(&mut rng, 3) == 0 { below(&mut rng, 200) } else { LONG / 2 + below(&mut rng, LONG) };
                let (first, is_write) = (below(&mut rng, 2 * LONG), below(&mut rng, 2) == 0);
                pages.touch(&Request {
                    kind: if is_write { RequestKind::Write } else { RequestKind::Read },
                    first_sector: first * PAGE_SECTORS,
                    sectors: u32::try_from(length * PAGE_SECTORS).unwrap(),
                    ..Request::default()
                });
                (first..first + length).for_each(|page| *naive.entry(page).or_default() += usize::from(is_write));
            }
            let at_least = |writes| naive.values().filter(|count| **count >= writes).count() as u64;
            assert_eq!(pages.counts(), [0, 1, 2, 3].map(at_least));
            assert!(pages.stretches.len() < 40 && !pages.stretches.is_empty());
        }
    }

    #[test]
    fn a_read_of_two_tebibytes_takes_little_memory() {
        let mut pages = Pages::default();
        for at in 0..1000 {
            pages.touch(&Request { first_sector: at << 31, sectors: u32::MAX - 7, ..Request::default() });
        }
        assert!(pages.regions.len() + pages.stretches.len() < 10_000);
        assert_eq!(pages.counts()[0], (999u64 << 31) / 8 + (u64::from(u32::MAX) - 7) / 8);
    }
}
