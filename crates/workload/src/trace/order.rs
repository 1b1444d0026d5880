//! What to do with a trace whose times go back: recognises why they do, and does what is certain.
//!
//! | the file | what is done without `--order` |
//! | --- | --- |
//! | requests are late by a tenth of the span or by 16 places at most, and the clock does not start again | sorted by time |
//! | the events all have one clock (blktrace, ETW), or the clock did not begin with the trace | sorted by time |
//! | sections of one log (fio's jobs), each with times from 0 | merged by time |
//! | each device is in order by itself | merged by time |
//! | the clock starts again, for the same devices | refused: the recordings may have run at once or one after the other |
//! | no order at all | refused |
//!
//! A survey reads the file again only once a time was found to go back, so a trace in order pays one comparison for each
//! request.

use super::devices::BATCH;
use super::error::TraceError;
use super::formats::{Format, Setup};
use super::input::Input;
use super::record::{Decode, DeviceTable, Record, Sink, Tally};
use super::window::Window;
use flashwright_block::grouped;
use std::path::Path;
use std::str::FromStr;

/// What to do where the times of a trace go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A late request arrives at the time of the one before it.
    AsIs,
    /// Requests are sorted by time; equal times keep the order of the file.
    Sort,
    /// Where the clock starts again a following recording begins.
    Concatenate,
}

impl Order {
    /// Its name for `--order`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Order::AsIs => "as-is",
            Order::Sort => "sort",
            Order::Concatenate => "concatenate",
        }
    }
}

impl FromStr for Order {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        let all = [Order::AsIs, Order::Sort, Order::Concatenate];
        all.into_iter().find(|order| order.name() == text).ok_or_else(|| TraceError::Option {
            option: "order",
            found: format!("{text:?}"),
            expected: "as-is, sort or concatenate",
        })
    }
}

/// Lateness up to this part of the span is that of requests in flight.
const LOCAL_PART: u64 = 10;
/// Or they are so few places late, in a trace of at least so many records.
const PLACES_MAX: usize = 16;
const RECORDS_OF_PLACES: u64 = 64;
/// A recording that follows begins within this part of the span.
const START_PART: u64 = 10;
/// Requests of a recording, at least, and requests that must follow a restart before the old time is reached again; more
/// where the way back is as short as that of requests in flight.
const RECORDING_MIN: u64 = 8;
const RECORDING_MIN_LOCAL: u64 = 32;
/// Of so many requests, one may go back to no start where recordings follow each other.
const JUMPS_PART: u64 = 100;
/// Recordings that are remembered: 2 MiB.
const RECORDINGS_MAX: usize = 1 << 16;

/// What a reading of the whole trace found of its times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    pub(crate) records: u64,
    /// Records that come after one of a later time.
    pub(crate) late: u64,
    first_late: Late,
    min: u64,
    max: u64,
    /// The longest way back.
    lateness: u64,
    /// The latest times before each of the last records, by number modulo the length.
    before: [u64; PLACES_MAX],
    /// Whether a record is more than [`PLACES_MAX`] places late.
    misplaced: bool,
    /// Records that a window does not bring to their place.
    beyond_window: u64,
    devices: usize,
    devices_in_order: bool,
    /// Sections with records.
    sections: u64,
    /// Whether each section is a recording of its own; else they are jobs that ran at once.
    sections_apart: bool,
}

/// The first late record.
#[derive(Clone, Debug, Default)]
struct Late {
    place: String,
    time: u64,
    before: u64,
}

/// What is known of the clock of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeBase {
    /// Nothing.
    Unknown,
    /// Each recording has one, from its start on; how the text was sorted or joined is not known.
    Text,
    /// All events of a file have one.
    One,
}

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// A window is enough, and nobody need know.
    Window,
    /// Sorted, and why.
    Sort(String),
    /// The user must choose, and why.
    Choose(String),
}

impl Survey {
    /// Reads the trace.
    pub(crate) fn of(path: &Path, format: &Format, setup: &Setup) -> Result<Self, TraceError> {
        let mut decoder = (format.open)(Input::open(path, setup.member.as_deref())?, setup)?;
        let mut survey = Survey { min: u64::MAX, devices_in_order: true, ..Survey::default() };
        let mut devices: Vec<u64> = Vec::new();
        let (mut window, mut passed, mut given) = (Window::default(), Vec::new(), 0);
        each_batch(&mut *decoder, |records, tally, names, place| {
            devices.resize(names, 0);
            survey.sections += tally.sections.len() as u64;
            survey.sections_apart |= tally.sections_apart;
            for record in records {
                survey.add(record, &mut devices[record.device as usize], place);
            }
            passed.extend_from_slice(records);
            if passed.len() >= BATCH {
                window.pass(&mut passed, false);
                survey.beyond_window += super::window::late(&passed, &mut given);
                passed.clear();
            }
            // One by one up to the first late record, to know its line.
            if survey.late == 0 { 1 } else { BATCH }
        })?;
        window.pass(&mut passed, true);
        survey.beyond_window += super::window::late(&passed, &mut given);
        survey.devices = devices.len();
        survey.min = survey.min.min(survey.max);
        Ok(survey)
    }

    fn add(&mut self, record: &Record, device: &mut u64, place: &dyn Fn() -> Option<u64>) {
        self.records += 1;
        let time = record.time;
        if time < self.max {
            if self.late == 0 {
                let place = place().map_or_else(|| format!("request {}", self.records), |line| format!("line {line}"));
                self.first_late = Late { place, time, before: self.max };
            }
            self.late += 1;
            self.lateness = self.lateness.max(self.max - time);
        }
        let at = usize::try_from(self.records % PLACES_MAX as u64).unwrap_or(0);
        self.misplaced |= time < self.before[at];
        self.before[at] = self.max;
        self.devices_in_order &= time >= *device;
        *device = (*device).max(time);
        self.max = self.max.max(time);
        self.min = self.min.min(time);
    }

    fn span(&self) -> u64 {
        self.max - self.min
    }

    /// Whether no request is later than those in flight may be.
    fn is_local(&self) -> bool {
        let few_places = !self.misplaced && self.records >= RECORDS_OF_PLACES;
        few_places || self.lateness <= self.span() / LOCAL_PART
    }

    /// What is done without the user's choice; `found` gives the recordings.
    pub(crate) fn remedy(
        &self,
        base: TimeBase,
        found: impl FnOnce() -> Result<Recordings, TraceError>,
    ) -> Result<Remedy, TraceError> {
        let sorted = || match self.beyond_window {
            0 if self.is_local() || base != TimeBase::Unknown => Remedy::Window,
            _ => {
                let (late, records) = (grouped(self.late), grouped(self.records));
                Remedy::Sort(format!("{late} of {records} requests out of order: sorted by time"))
            }
        };
        if base == TimeBase::One || self.min > self.span() {
            return Ok(sorted());
        }
        if self.sections >= 2 && !self.sections_apart {
            return Ok(Remedy::Sort(format!(
                "{} sections, each with times from the start: merged by time, as jobs that ran at once (--order \
                 concatenate plays them one after the other)",
                self.sections
            )));
        }
        let by_device = || {
            Remedy::Sort(format!(
                "in order by device, not by time: the {} devices are merged by time (--order concatenate plays them one \
                 after the other)",
                self.devices
            ))
        };
        let is_by_device = self.devices_in_order && self.devices > 1;
        if is_by_device && !self.is_local() {
            return Ok(by_device());
        }
        let found = found()?;
        let recordings = found.recordings.len();
        if self.is_sequence(&found) {
            let why = format!(
                "the clock starts again {}, as in {recordings} recordings one after the other",
                times(recordings - 1)
            );
            return Ok(if is_by_device { by_device() } else { Remedy::Choose(self.choice(&why)) });
        }
        if self.is_local() || base == TimeBase::Text {
            return Ok(sorted());
        }
        let why = format!("they are in no order, up to {} back", Elapsed(self.lateness));
        Ok(Remedy::Choose(self.choice(&why)))
    }

    /// Whether recordings follow each other: each begins near the start of the clock, and hardly a time goes back besides.
    pub(crate) fn is_sequence(&self, found: &Recordings) -> bool {
        let start = self.min + self.span() / START_PART;
        let restarts = found.recordings.iter().all(|recording| recording.min <= start);
        found.recordings.len() > 1 && restarts && found.jumps <= self.records / JUMPS_PART
    }

    /// The choice, with what each means.
    pub(crate) fn choice(&self, why: &str) -> String {
        let Late { place, time, before } = &self.first_late;
        format!(
            "the times of {} of {} requests go back, first at {place} from {} to {}: {why}. Choose --order sort (they ran at \
             the same time: merged by time), --order concatenate (one after the other) or --order as-is (each late request \
             at the time of the one before it: a burst)",
            grouped(self.late),
            grouped(self.records),
            Elapsed(before - self.min.min(*before)),
            Elapsed(time - self.min.min(*time)),
        )
    }

    /// What playing the trace as it is means.
    pub(crate) fn clamped(&self) -> String {
        format!(
            "{} of {} requests have times before that of an earlier one, by up to {}, and arrive with it: bursts that the \
             recording did not have",
            grouped(self.late),
            grouped(self.records),
            Elapsed(self.lateness)
        )
    }
}

/// Calls `take` with each batch, its counts, the number of devices so far and the line that the decoder is at; it says how
/// many records the next batch is to have.
fn each_batch(
    decoder: &mut dyn Decode,
    mut take: impl FnMut(&[Record], &Tally, usize, &dyn Fn() -> Option<u64>) -> usize,
) -> Result<(), TraceError> {
    let (mut names, mut tally, mut records) = (DeviceTable::default(), Tally::default(), Vec::with_capacity(BATCH));
    let mut at_most = 1;
    loop {
        records.clear();
        tally.sections.clear();
        decoder.fill(&mut Sink { records: &mut records, devices: &mut names, tally: &mut tally }, at_most)?;
        if records.is_empty() {
            return Ok(());
        }
        let decoder: &dyn Decode = decoder;
        at_most = take(&records, &tally, names.len(), &|| decoder.line());
    }
}

/// A part of a trace whose clock starts anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recording {
    pub(crate) records: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl Recording {
    fn begin(time: u64) -> Self {
        Recording { records: 1, min: time, max: time }
    }

    fn add(&mut self, time: u64) {
        self.records += 1;
        self.min = self.min.min(time);
        self.max = self.max.max(time);
    }

    fn join(&mut self, other: &Recording) {
        self.records += other.records;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

/// The recordings that a trace consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recordings {
    pub(crate) recordings: Vec<Recording>,
    /// Records far back in time that begin no recording.
    jumps: u64,
}

/// Finds recordings.
struct Finder {
    least: u64,
    near: u64,
    start: u64,
    found: Recordings,
    now: Option<Recording>,
    /// A recording that may have begun.
    next: Option<Recording>,
}

impl Recordings {
    /// Reads the trace, of which `survey` knows the times.
    pub(crate) fn of(path: &Path, format: &Format, setup: &Setup, survey: &Survey) -> Result<Self, TraceError> {
        let mut decoder = (format.open)(Input::open(path, setup.member.as_deref())?, setup)?;
        let near = survey.span() / START_PART;
        let found = Recordings::default();
        let least = if survey.is_local() { RECORDING_MIN_LOCAL } else { RECORDING_MIN };
        let mut finder = Finder { least, near, start: survey.min.saturating_add(near), found, now: None, next: None };
        each_batch(&mut *decoder, |records, tally, _, _| {
            let mut borders = tally.sections.iter().peekable();
            for (index, record) in records.iter().enumerate() {
                let border = borders.next_if_eq(&&index).is_some();
                finder.add(record.time, border);
            }
            BATCH
        })?;
        let found = finder.end();
        if found.recordings.len() > RECORDINGS_MAX {
            let what = format!(
                "more than {} recordings one after the other; sort them by time instead",
                grouped(RECORDINGS_MAX as u64)
            );
            return Err(TraceError::TimesGoBack { path: path.to_owned(), what });
        }
        Ok(found)
    }
}

impl Finder {
    fn add(&mut self, time: u64, border: bool) {
        let Some(now) = &mut self.now else {
            self.now = Some(Recording::begin(time));
            return;
        };
        if border {
            self.take_next(true);
            self.close();
            self.now = Some(Recording::begin(time));
            return;
        }
        if let Some(next) = &mut self.next {
            if time < now.max {
                next.add(time);
                if next.records >= self.least {
                    self.take_next(true);
                }
            } else {
                self.take_next(false);
                self.add(time, false);
            }
            return;
        }
        let late = now.max.saturating_sub(time);
        if late > 0 && time <= self.start && late >= (now.max - now.min) / 2 && now.records >= self.least {
            self.next = Some(Recording::begin(time));
            return;
        }
        self.found.jumps += u64::from(late > self.near);
        now.add(time);
    }

    /// Decides on the recording that may have begun.
    fn take_next(&mut self, began: bool) {
        let Some(next) = self.next.take() else { return };
        if began {
            self.close();
            self.now = Some(next);
        } else if let Some(now) = &mut self.now {
            self.found.jumps += next.records;
            now.join(&next);
        }
    }

    fn close(&mut self) {
        if self.found.recordings.len() <= RECORDINGS_MAX {
            self.found.recordings.extend(self.now);
        }
    }

    fn end(mut self) -> Recordings {
        let began = self.next.is_some_and(|next| next.records > 1);
        self.take_next(began);
        self.close();
        self.found
    }
}

/// Plays recordings one after the other: each begins one mean gap after the end of the one before.
pub(crate) struct Sequence {
    recordings: std::vec::IntoIter<Recording>,
    now: Recording,
    window: Window,
    /// Records of the present recording left to read.
    left: u64,
    /// The time at which the present recording begins.
    base: u64,
    /// Records of the next recordings that were read with those of this.
    ahead: Vec<Record>,
}

impl Sequence {
    pub(crate) fn new(found: Recordings) -> Self {
        let mut recordings = found.recordings.into_iter();
        let now = recordings.next().unwrap_or(Recording { records: u64::MAX, min: 0, max: 0 });
        let left = if recordings.len() == 0 { u64::MAX } else { now.records };
        Sequence { recordings, now, window: Window::default(), left, base: 0, ahead: Vec::new() }
    }

    /// Replaces the next records of the file by those that go first, on one clock.
    pub(crate) fn pass(&mut self, records: &mut Vec<Record>, flush: bool) {
        self.ahead.append(records);
        let mut out = Vec::new();
        loop {
            let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(self.ahead.len());
            let mut part: Vec<Record> = self.ahead.drain(..count).collect();
            self.left -= count as u64;
            self.window.pass(&mut part, flush || self.left == 0);
            for record in &mut part {
                record.time = self.base.saturating_add(record.time - self.now.min.min(record.time));
            }
            out.append(&mut part);
            if self.left > 0 || !self.next() {
                break;
            }
        }
        *records = out;
    }

    fn next(&mut self) -> bool {
        let Some(next) = self.recordings.next() else { return false };
        let span = self.now.max - self.now.min;
        let gap = span / self.now.records.saturating_sub(1).max(1);
        self.base = self.base.saturating_add(span).saturating_add(gap);
        // The last goes on to the end of the file.
        self.left = if self.recordings.len() == 0 { u64::MAX } else { next.records };
        (self.now, self.window) = (next, Window::default());
        true
    }
}

/// A time for people, in the unit that suits it.
pub(crate) struct Elapsed(pub(crate) u64);

impl std::fmt::Display for Elapsed {
    #[allow(clippy::cast_precision_loss)] // for people
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ns = self.0 as f64;
        let (value, unit) = match self.0 {
            0 => return f.write_str("0 s"),
            ns @ 1..1_000 => return write!(f, "{ns} ns"),
            1_000..1_000_000 => (ns / 1e3, "us"),
            1_000_000..1_000_000_000 => (ns / 1e6, "ms"),
            _ => (ns / 1e9, "s"),
        };
        match value {
            _ if value >= 99.95 => write!(f, "{} {unit}", grouped(value.round() as u64)),
            _ if value >= 9.995 => write!(f, "{value:.1} {unit}"),
            _ => write!(f, "{value:.2} {unit}"),
        }
    }
}

fn times(number: usize) -> String {
    match number {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{} times", grouped(number as u64)),
    }
}
