//! The reader: decoded records in, requests of one address space and one clock out.
//!
//! ```text
//! Input ─► Decode (a format) ─► window (issue order) ─► filter, place, clock ─► Request
//! ```
//!
//! Memory is constant: one buffer of bytes, one batch of records, the window of the formats that need one, and a
//! few words for each device.

use super::copies::{COPIES_MAX, Copies};
use super::detect;
use super::devices::{self, BATCH, Places};
use super::error::TraceError;
use super::formats::{Format, Setup};
use super::input::Input;
use super::options::{DeviceSpan, TraceOptions, TraceStats, clip};
use super::record::{About, Decode, DeviceTable, Record, Sink, Tally};
use flashwright_block::{Nanos, Request, RequestKind, RequestSource, SourceError};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A trace as a stream of requests.
///
/// Arrivals start at 0 and never decrease; an out-of-order request gets its predecessor's time and is counted. A trace
/// without any request is an error, never an empty stream.
pub struct TraceReader {
    path: PathBuf,
    format: &'static Format,
    decoder: Box<dyn Decode>,
    names: DeviceTable,
    tally: Tally,
    records: Vec<Record>,
    next: usize,
    window: Option<Window>,
    ended: bool,
    failure: Option<TraceError>,
    places: Places,
    clock: Clock,
    about: About,
    /// Requests of the whole trace, where known.
    expected: Option<u64>,
    given: u64,
    filtered: u64,
    range: Option<Range<u64>>,
    /// Requests within the range, flushes left out.
    within: u64,
    /// The copies, if there are several; they are then what is read.
    copies: Option<Box<Copies>>,
}

impl TraceReader {
    /// Opens a trace: finds compression and format from the content, and lays out its devices.
    ///
    /// # Errors
    /// [`TraceError`] if the file cannot be read, is in no known format, or the options do not fit it. With
    /// [`super::Layout::Concatenate`] the first pass reports malformed input anywhere in the file.
    pub fn open(path: impl AsRef<Path>, options: &TraceOptions) -> Result<Self, TraceError> {
        let path = path.as_ref();
        let clock = Clock::new(options.time_scale)?;
        check(options)?;
        let mut input = Input::open(path)?;
        let format = detect::choose(&mut input, options.format.as_deref())?;
        let setup = Setup { skip_bad_lines: options.skip_bad_lines };
        let regular = input.regular();
        let decoder = (format.open)(input, &setup)?;
        let about = decoder.about();
        let places = Places::new(path, options, about.devices.clone(), || {
            if regular {
                return devices::scan(path, format, &setup);
            }
            let what = "a pipe cannot be read twice to find the size of each device; \
                        give the spans, overlay the devices, or save it to a file first";
            Err(TraceError::Layout { path: path.to_owned(), what: what.to_owned() })
        })?;
        let filtered = options.devices != super::DeviceFilter::All;
        let expected = places.requests().or(about.requests.filter(|_| !filtered));
        let copies = match options.copies {
            1 if options.start <= 0.0 => None,
            _ if regular => Some(Box::new(Copies::open(path, options)?)),
            _ => {
                let what = "a pipe cannot be read twice to lay out copies of it or to begin within it; save it to a file first";
                return Err(TraceError::Layout { path: path.to_owned(), what: what.to_owned() });
            }
        };
        let expected = match &copies {
            Some(copies) => Some(copies.requests()),
            None => expected.filter(|_| options.range.is_none()),
        };
        Ok(TraceReader {
            path: path.to_owned(),
            format,
            decoder,
            names: DeviceTable::default(),
            tally: Tally::default(),
            records: Vec::with_capacity(BATCH),
            next: 0,
            window: (format.reorder_window > 0).then(|| Window::new(format.reorder_window)),
            ended: false,
            failure: None,
            places,
            clock,
            about,
            expected,
            given: 0,
            filtered: 0,
            range: options.range.clone(),
            within: 0,
            copies,
        })
    }

    /// The format that the trace is in.
    #[must_use]
    pub fn format(&self) -> &'static Format {
        self.format
    }

    /// The label of a Flashwright trace, such as `recorded: pgbench on ext4`; empty for other formats.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.about.label
    }

    /// Free text of a Flashwright trace; empty for other formats.
    #[must_use]
    pub fn note(&self) -> &str {
        &self.about.note
    }

    /// The format that a Flashwright trace was converted from; for other formats, their name.
    #[must_use]
    pub fn origin(&self) -> &str {
        if self.about.origin.is_empty() { self.format.name() } else { &self.about.origin }
    }

    /// The devices that are read: all if they are laid out end to end, else those seen so far.
    #[must_use]
    pub fn devices(&self) -> Vec<DeviceSpan> {
        self.places.devices(&self.names)
    }

    /// The counts so far.
    #[must_use]
    pub fn stats(&self) -> TraceStats {
        if let Some(copies) = &self.copies {
            return TraceStats { requests: self.given, ..copies.stats().clone() };
        }
        TraceStats {
            requests: self.given,
            bad_lines: self.tally.bad_lines,
            first_bad_lines: self.tally.first_bad.clone(),
            ignored_events: self.tally.ignored,
            empty_requests: self.tally.empty,
            filtered_out: self.filtered,
            out_of_order: self.clock.out_of_order,
        }
    }

    /// Appends up to `at_most` requests and returns their number; 0 at the end.
    ///
    /// # Errors
    /// [`TraceError`] if the trace is malformed or ends too early; requests before the error are returned first.
    /// Repeating the call returns the same error.
    pub fn read(&mut self, batch: &mut Vec<Request>, at_most: usize) -> Result<usize, TraceError> {
        self.read_each(at_most, |request, _| batch.push(request))
    }

    /// Like [`TraceReader::read`], with the device number of each request (in order of first appearance).
    pub(crate) fn read_each(
        &mut self,
        at_most: usize,
        mut take: impl FnMut(Request, u32),
    ) -> Result<usize, TraceError> {
        if let Some(copies) = &mut self.copies {
            let count = copies.read_each(at_most, take)?;
            self.given += count as u64;
            return Ok(count);
        }
        let mut count = 0;
        while count < at_most {
            let Some(&record) = self.records.get(self.next) else {
                if self.refill(count)? {
                    continue;
                }
                break;
            };
            self.next += 1;
            match self.places.place(&record, &self.names) {
                Ok(Some(first_sector)) => {
                    let flush = record.kind == RequestKind::Flush;
                    let placed = match &self.range {
                        // A flush has no place.
                        _ if flush => Some((0, record.sectors)),
                        None => Some((first_sector, record.sectors)),
                        Some(range) => clip(first_sector, record.sectors, range),
                    };
                    let Some((first_sector, sectors)) = placed else {
                        self.filtered += 1;
                        continue;
                    };
                    take(self.request(&Record { sectors, ..record }, first_sector), record.device);
                    count += 1;
                    self.given += 1;
                    self.within += u64::from(!flush);
                }
                Ok(None) => self.filtered += 1,
                Err(error) => self.fail(error),
            }
        }
        Ok(count)
    }

    #[inline]
    fn request(&mut self, record: &Record, first_sector: u64) -> Request {
        Request {
            arrival: self.clock.arrival(record.time),
            first_sector,
            sectors: record.sectors,
            process: record.process,
            stream: record.stream,
            kind: record.kind,
            fua: record.fua,
        }
    }

    /// Nothing after `error` is returned.
    fn fail(&mut self, error: TraceError) {
        self.records.clear();
        self.next = 0;
        self.failure = Some(error);
    }

    /// Decodes the next batch; returns false if there is none, or if `count` requests have to be returned before an
    /// error.
    fn refill(&mut self, count: usize) -> Result<bool, TraceError> {
        if let Some(error) = &self.failure {
            return if count > 0 { Ok(false) } else { Err(error.clone()) };
        }
        if self.ended {
            return self.at_end();
        }
        self.records.clear();
        self.next = 0;
        let mut sink = Sink { records: &mut self.records, devices: &mut self.names, tally: &mut self.tally };
        let result = self.decoder.fill(&mut sink, BATCH);
        self.ended = result.is_err() || self.records.is_empty();
        self.failure = result.err();
        if let Some(window) = &mut self.window {
            window.pass(&mut self.records, self.ended);
        }
        if self.failure.is_some() && !self.records.is_empty() {
            return Ok(true);
        }
        if self.ended && self.records.is_empty() { self.refill(count) } else { Ok(true) }
    }

    fn at_end(&mut self) -> Result<bool, TraceError> {
        if self.given > 0 && (self.range.is_none() || self.within > 0) {
            return Ok(false);
        }
        let mut met = self.names.names().to_vec();
        met.truncate(20);
        let why = if self.filtered > 0 && self.range.is_some() {
            format!("none of its {} requests is within the range", self.filtered)
        } else if self.filtered > 0 {
            format!("no device matched the filter; the trace has {}", met.join(", "))
        } else {
            format!(
                "read as {}: {} other events, {} bad lines, {} requests of length zero",
                self.format.name(),
                self.tally.ignored,
                self.tally.bad_lines,
                self.tally.empty
            )
        };
        let error = TraceError::NothingMatched { path: self.path.clone(), why };
        self.failure = Some(error.clone());
        Err(error)
    }
}

impl RequestSource for TraceReader {
    fn fill(&mut self, batch: &mut Vec<Request>, at_most: usize) -> Result<usize, SourceError> {
        self.read(batch, at_most).map_err(SourceError::from)
    }

    fn remaining(&self) -> Option<u64> {
        self.expected.map(|expected| expected.saturating_sub(self.given))
    }

    #[allow(clippy::cast_precision_loss)] // a share
    fn progress(&self) -> Option<f64> {
        if let Some(copies) = &self.copies {
            return Some(self.given as f64 / copies.requests().max(1) as f64);
        }
        self.decoder.input().progress()
    }
}

fn check(options: &TraceOptions) -> Result<(), TraceError> {
    if !(1..=COPIES_MAX).contains(&options.copies) {
        let expected = "a whole number from 1 to 64";
        return Err(TraceError::Option { option: "scale_footprint", found: options.copies.to_string(), expected });
    }
    if !(0.0..1.0).contains(&options.start) {
        let expected = "a share from 0 to below 1";
        return Err(TraceError::Option { option: "start", found: options.start.to_string(), expected });
    }
    if let Some(range) = options.range.as_ref().filter(|range| range.is_empty()) {
        let found = format!("sectors {} to {}", range.start, range.end);
        return Err(TraceError::Option { option: "range", found, expected: "at least one sector of 512 B" });
    }
    Ok(())
}

/// The run's clock: from 0, never backwards.
struct Clock {
    zero: Option<u64>,
    last: u64,
    scale: f64,
    out_of_order: u64,
}

impl Clock {
    fn new(scale: f64) -> Result<Self, TraceError> {
        if !scale.is_finite() || scale < 0.0 {
            let expected = "a finite number, 0 or more";
            return Err(TraceError::Option { option: "time_scale", found: scale.to_string(), expected });
        }
        Ok(Clock { zero: None, last: 0, scale, out_of_order: 0 })
    }

    #[inline]
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates
    fn arrival(&mut self, time: u64) -> Nanos {
        let zero = *self.zero.get_or_insert(time);
        match time.checked_sub(zero) {
            Some(since) if since >= self.last => self.last = since,
            _ => self.out_of_order += 1,
        }
        #[allow(clippy::float_cmp)] // exactly 1, the default
        if self.scale == 1.0 { Nanos(self.last) } else { Nanos((self.last as f64 * self.scale) as u64) }
    }
}

/// Restores issue order among the last few thousand records.
struct Window {
    size: usize,
    heap: BinaryHeap<Reverse<Waiting>>,
    seen: u64,
}

/// A record that waits for earlier ones; equal times keep the order of the file.
struct Waiting {
    seen: u64,
    record: Record,
}

impl Window {
    fn new(size: usize) -> Self {
        Window { size, heap: BinaryHeap::with_capacity(size + BATCH), seen: 0 }
    }

    /// Adds records and returns those that no later one can precede; all of them if `flush`.
    fn pass(&mut self, records: &mut Vec<Record>, flush: bool) {
        for record in records.drain(..) {
            self.heap.push(Reverse(Waiting { seen: self.seen, record }));
            self.seen += 1;
        }
        let keep = if flush { 0 } else { self.size };
        while self.heap.len() > keep {
            let Some(Reverse(first)) = self.heap.pop() else { break };
            records.push(first.record);
        }
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.record.time, self.seen).cmp(&(other.record.time, other.seen))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}
