//! The reader: decoded records in, requests of one address space and one clock out.
//!
//! ```text
//! Input ─► Decode (a format) ─► order (none, window, sort, recordings) ─► filter, place, clock ─► Request
//! ```
//!
//! Memory is bounded: one buffer of bytes, one batch of records, what the order needs, and a few words for each device.

use super::copies::{COPIES_MAX, Copies};
use super::detect::{self, Chosen};
use super::devices::{self, BATCH, Places};
use super::error::TraceError;
use super::formats::{Format, Setup};
use super::input::Input;
use super::options::{DeviceSpan, Event, TraceOptions, TraceStats, clip};
use super::order::{Order, Recordings, Remedy, Sequence, Survey, TimeBase};
use super::record::{About, Decode, DeviceTable, Record, Sink, Tally};
use super::sorting::Sorted;
use super::window::{Window, late};
use flashwright_block::{Nanos, Request, RequestKind, RequestSource, SourceError, grouped};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A trace as a stream of requests.
///
/// Arrivals start at 0 and never decrease. A trace whose times go back is sorted where that is certainly right; else it
/// is an error, unless [`TraceOptions::order`] chooses. A trace without any request is an error, never an empty stream.
pub struct TraceReader {
    path: PathBuf,
    format: &'static Format,
    decoder: Box<dyn Decode>,
    names: DeviceTable,
    tally: Tally,
    records: Vec<Record>,
    next: usize,
    flow: Flow,
    setup: Setup,
    /// Whether the file can be read again.
    regular: bool,
    notes: Vec<String>,
    doubts: Vec<Doubt>,
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
        let mut setup = Setup::new(options)?;
        let mut input = Input::open(path, setup.member.as_deref())?;
        let chosen = detect::choose(&mut input, options.format.as_deref().or(setup.format()), options.time_unit)?;
        let Chosen { format, mut doubts } = chosen;
        setup.check(format)?;
        setup.member = input.member().map(str::to_owned);
        let mut notes = input.notes().to_vec();
        let regular = input.regular();
        let mut decoder = (format.open)(input, &setup)?;
        fits(options, format, &*decoder)?;
        notes.extend(decoder.notes());
        if options.events.is_none() && decoder.has_events() && regular {
            let events = events_of(path, format, &setup)?;
            if events[0] == 0 && events[1] > 0 {
                setup.events = Event::Issue;
                decoder = (format.open)(Input::open(path, setup.member.as_deref())?, &setup)?;
                let issued = grouped(events[1]);
                notes.push(format!(
                    "no Q (queue) event: the {issued} D (issue) events are the requests, as the scheduler merged and ordered them"
                ));
            }
        }
        let about = decoder.about();
        // What converts to a Flashwright trace is in order.
        let mut in_order = about.requests.map(|_| true);
        let places = Places::new(path, options, about.devices.clone(), || {
            if regular {
                let (devices, found) = devices::scan(path, format, &setup)?;
                in_order = Some(found);
                return Ok(devices);
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
        let file = File { path, base: decoder.time_base(), format, setup: &setup, regular };
        let flow = Flow::choose(&file, options.order, in_order, &mut notes, &mut doubts)?;
        Ok(TraceReader {
            path: path.to_owned(),
            format,
            decoder,
            names: DeviceTable::default(),
            tally: Tally::default(),
            records: Vec::with_capacity(BATCH),
            next: 0,
            flow,
            setup,
            regular,
            notes,
            doubts,
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

    /// What a reader of the result needs to know: files read together, events taken, how times were put in order.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What speaks against the figures of this trace.
    #[must_use]
    pub fn doubts(&self) -> &[Doubt] {
        &self.doubts
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
            reordered: self.flow.reordered(),
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
            ..Request::default()
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
        if matches!(self.flow, Flow::Sort(..)) {
            self.fill_sorted();
        } else {
            self.fill_in_passing();
        }
        if self.failure.is_some() && !self.records.is_empty() {
            return Ok(true);
        }
        if self.ended && self.records.is_empty() { self.refill(count) } else { Ok(true) }
    }

    /// The next records in order of time; the first call sorts all.
    fn fill_sorted(&mut self) {
        let Flow::Sort(sorted, _) = &mut self.flow else { return };
        let result = match sorted {
            Some(sorted) => sorted.fill(&mut self.records, BATCH),
            None => Sorted::read(&self.path, &mut *self.decoder, &mut self.names, &mut self.tally)
                .and_then(|read| sorted.insert(Box::new(read)).fill(&mut self.records, BATCH)),
        };
        self.ended = result.is_err() || self.records.is_empty();
        self.failure = result.err();
    }

    /// The next records of the file, in the order that one pass can give them.
    fn fill_in_passing(&mut self) {
        self.tally.sections.clear();
        let mut sink = Sink { records: &mut self.records, devices: &mut self.names, tally: &mut self.tally };
        let result = self.decoder.fill(&mut sink, BATCH);
        self.ended = result.is_err() || self.records.is_empty();
        self.failure = result.err();
        let ended = self.ended;
        match &mut self.flow {
            Flow::Direct | Flow::Sort(..) => {}
            Flow::Window(window) => window.pass(&mut self.records, ended),
            Flow::Recordings(sequence, _) => sequence.pass(&mut self.records, ended),
            Flow::Watched { window, given } => {
                window.pass(&mut self.records, ended);
                let (found, beyond) = (window.late > 0, late(&self.records, given) > 0);
                if found && self.regular {
                    self.settle().unwrap_or_else(|error| self.fail(error));
                } else if beyond {
                    let what = "times go back further than 4,096 requests, and a pipe cannot be read twice; save it to a file, \
                                or choose --order sort or as-is";
                    self.fail(TraceError::TimesGoBack { path: self.path.clone(), what: what.to_owned() });
                }
            }
        }
    }

    /// A time went back in a trace that is read in one pass: decides what to do.
    fn settle(&mut self) -> Result<(), TraceError> {
        let base = self.decoder.time_base();
        let file = File { path: &self.path, base, format: self.format, setup: &self.setup, regular: self.regular };
        let survey = Survey::of(file.path, file.format, file.setup)?;
        let flow = Flow::remedy(&file, &survey, &mut self.notes)?;
        let Flow::Watched { window, .. } = std::mem::replace(&mut self.flow, Flow::Direct) else { return Ok(()) };
        if matches!(flow, Flow::Window(_)) {
            self.flow = Flow::Window(window);
            return Ok(());
        }
        if self.given + self.filtered > 0 {
            let what = survey.choice("this is known only after requests were read, since the devices are not laid out");
            return Err(TraceError::TimesGoBack { path: self.path.clone(), what });
        }
        self.decoder = (self.format.open)(Input::open(&self.path, self.setup.member.as_deref())?, &self.setup)?;
        (self.names, self.tally) = (DeviceTable::default(), Tally::default());
        self.records.clear();
        self.failure = None;
        self.flow = flow;
        self.fill_sorted();
        Ok(())
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
                "read as {}: {} other events, {} bad lines, {} requests of length zero{}",
                self.format.name(),
                self.tally.ignored,
                self.tally.bad_lines,
                self.tally.empty,
                self.other_events()
            )
        };
        let error = TraceError::NothingMatched { path: self.path.clone(), why };
        self.failure = Some(error.clone());
        Err(error)
    }
}

impl TraceReader {
    /// The events of a block trace that are no requests, and what takes them.
    fn other_events(&self) -> String {
        if !self.decoder.has_events() {
            return String::new();
        }
        let events = &self.tally.events;
        let found: Vec<String> = (b'A'..=b'Z')
            .zip(events)
            .filter(|(_, count)| **count > 0)
            .map(|(letter, found)| {
                let named = EVENTS.iter().find(|(known, _)| *known == letter);
                let name = named.map_or_else(String::new, |(_, name)| format!(" ({name})"));
                format!("{} {}{name}", grouped(*found), char::from(letter))
            })
            .collect();
        if found.is_empty() {
            return String::new();
        }
        let other = if self.setup.events == Event::Queue { Event::Issue } else { Event::Queue };
        let mend = if events[usize::from(other.letter() - b'A')] > 0 {
            format!("--events {} takes the {}", other.name(), char::from(other.letter()))
        } else {
            "record them with Q (queue) or D (issue) events".to_owned()
        };
        let taken = char::from(self.setup.events.letter());
        format!("; events: {} and no {taken} ({}); {mend}", found.join(", "), self.setup.events.name())
    }
}

/// What the letters of blkparse that people record mean.
const EVENTS: &[(u8, &str)] =
    &[(b'Q', "queue"), (b'D', "issue"), (b'C', "complete"), (b'I', "insert"), (b'G', "get request"), (b'M', "merge")];

/// The numbers of queue and issue events up to the first queue event.
fn events_of(path: &Path, format: &'static Format, setup: &Setup) -> Result<[u64; 2], TraceError> {
    let mut decoder = (format.open)(Input::open(path, setup.member.as_deref())?, setup)?;
    let (mut names, mut tally, mut records) = (DeviceTable::default(), Tally::default(), Vec::new());
    decoder.fill(&mut Sink { records: &mut records, devices: &mut names, tally: &mut tally }, 1)?;
    let of = |event: Event| tally.events[usize::from(event.letter() - b'A')];
    Ok([of(Event::Queue), of(Event::Issue)])
}

/// Refuses options that the format has no use for.
fn fits(options: &TraceOptions, format: &Format, decoder: &dyn Decode) -> Result<(), TraceError> {
    if let Some(unit) = options.time_unit.filter(|_| !decoder.takes_time_unit()) {
        let found = format!("{} for {}, whose times have a unit of their own", unit.name(), format.name());
        return Err(TraceError::Option { option: "time_unit", found, expected: "none" });
    }
    if let Some(event) = options.events.filter(|_| !decoder.has_events()) {
        let found = format!("{} for {}", event.name(), format.name());
        return Err(TraceError::Option { option: "events", found, expected: "it with blktrace and blkparse only" });
    }
    Ok(())
}

/// Something that speaks against the figures of a trace.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Doubt {
    /// What it is about.
    pub kind: DoubtKind,
    /// What was found.
    pub text: String,
    /// The options that mend it.
    pub mend: String,
}

/// What a [`Doubt`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DoubtKind {
    /// What the columns mean: units of times and sizes.
    Content,
    /// The order of the times.
    Order,
}

/// A trace file that can be read.
struct File<'a> {
    path: &'a Path,
    base: TimeBase,
    format: &'static Format,
    setup: &'a Setup,
    regular: bool,
}

/// How records come into order.
enum Flow {
    /// They are in order, or stay as they are.
    Direct,
    /// Within a few thousand.
    Window(Window),
    /// As [`Flow::Window`] in one pass, until a time goes back; with the latest time that was handed out.
    Watched { window: Window, given: u64 },
    /// All are sorted, at the first call; with the number of late ones.
    Sort(Option<Box<Sorted>>, u64),
    /// Recordings one after the other; with the number of late requests.
    Recordings(Box<Sequence>, u64),
}

impl Flow {
    /// What `order` asks for, or what suits a trace whose times are `in_order`, if that is known.
    fn choose(
        file: &File<'_>,
        order: Option<Order>,
        in_order: Option<bool>,
        notes: &mut Vec<String>,
        doubts: &mut Vec<Doubt>,
    ) -> Result<Flow, TraceError> {
        match (order, in_order) {
            (_, Some(true)) => Ok(Flow::Direct),
            (None, None) => Ok(Flow::Watched { window: Window::default(), given: 0 }),
            (None, Some(false)) => Flow::remedy(file, &Survey::of(file.path, file.format, file.setup)?, notes),
            (Some(Order::AsIs), known) => {
                let windowed = file.format.reorder_window > 0;
                if known == Some(false) && !windowed {
                    let text = Survey::of(file.path, file.format, file.setup)?.clamped();
                    doubts.push(Doubt { kind: DoubtKind::Order, text, mend: "--order sort or concatenate".to_owned() });
                }
                Ok(if windowed { Flow::Window(Window::default()) } else { Flow::Direct })
            }
            (Some(Order::Sort), known) => {
                let late = match known {
                    Some(false) => Survey::of(file.path, file.format, file.setup)?.late,
                    _ => 0,
                };
                notes.push(if late > 0 {
                    format!("{} requests out of order: sorted by time", grouped(late))
                } else {
                    "sorted by time".to_owned()
                });
                Ok(Flow::Sort(None, late))
            }
            (Some(Order::Concatenate), _) => Flow::recordings(file, notes),
        }
    }

    fn remedy(file: &File<'_>, survey: &Survey, notes: &mut Vec<String>) -> Result<Flow, TraceError> {
        let found = || Recordings::of(file.path, file.format, file.setup, survey);
        match survey.remedy(file.base, found)? {
            Remedy::Window => Ok(Flow::Window(Window::default())),
            Remedy::Sort(why) => {
                notes.push(why);
                Ok(Flow::Sort(None, survey.late))
            }
            Remedy::Choose(what) => Err(TraceError::TimesGoBack { path: file.path.to_owned(), what }),
        }
    }

    fn recordings(file: &File<'_>, notes: &mut Vec<String>) -> Result<Flow, TraceError> {
        if !file.regular {
            let what = "a pipe cannot be read twice to find its recordings; save it to a file first";
            return Err(TraceError::TimesGoBack { path: file.path.to_owned(), what: what.to_owned() });
        }
        let survey = Survey::of(file.path, file.format, file.setup)?;
        if survey.late == 0 {
            return Ok(Flow::Direct);
        }
        let found = Recordings::of(file.path, file.format, file.setup, &survey)?;
        if !survey.is_sequence(&found) {
            let what = survey.choice("no place where the clock starts again, so there is nothing to concatenate");
            return Err(TraceError::TimesGoBack { path: file.path.to_owned(), what });
        }
        notes.push(format!("{} recordings, played one after the other", grouped(found.recordings.len() as u64)));
        Ok(Flow::Recordings(Box::new(Sequence::new(found)), survey.late))
    }

    fn reordered(&self) -> u64 {
        match self {
            Flow::Direct => 0,
            Flow::Window(window) | Flow::Watched { window, .. } => window.late,
            Flow::Sort(_, late) | Flow::Recordings(_, late) => *late,
        }
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
        self.decoder.progress()
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
