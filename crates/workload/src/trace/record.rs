//! The output of decoders: records with the device and the time of the trace.

use super::error::TraceError;
use super::input::Input;
use super::order::TimeBase;
use flashwright_block::{RequestClass, RequestKind, SECTOR_BYTES};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::io::{self, Write};

pub(crate) const SECTOR: u64 = SECTOR_BYTES;

/// One request with the clock and device addresses of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// Nanoseconds on the trace's clock.
    pub(crate) time: u64,
    pub(crate) first_sector: u64,
    /// Index into the [`DeviceTable`].
    pub(crate) device: u32,
    pub(crate) sectors: u32,
    pub(crate) process: u32,
    pub(crate) stream: u16,
    pub(crate) kind: RequestKind,
    pub(crate) fua: bool,
}

/// Devices below this number are found by index instead of by hash.
const SMALL_DEVICES: usize = 1 << 16;
/// Digits of a 64-bit number, at most.
const DIGITS_MAX: usize = 20;
const NONE: u32 = u32::MAX;

/// The devices of a trace (ASUs, disks, volumes, files) in order of first appearance.
#[derive(Debug, Default)]
pub(crate) struct DeviceTable {
    names: Vec<String>,
    small: Vec<u32>,
    // Without random keys, so that reading a trace is deterministic.
    by_name: HashMap<Vec<u8>, u32, BuildHasherDefault<DefaultHasher>>,
    last: (Vec<u8>, u32),
}

impl DeviceTable {
    /// The device numbered `number`.
    #[inline]
    pub(crate) fn number(&mut self, number: u64) -> u32 {
        match usize::try_from(number).ok().and_then(|at| self.small.get(at)) {
            Some(&known) if known != NONE => known,
            _ => self.new_number(number),
        }
    }

    #[cold]
    fn new_number(&mut self, number: u64) -> u32 {
        let mut digits = [0u8; DIGITS_MAX];
        let mut rest = digits.as_mut_slice();
        // A slice of 20 bytes holds any number, which avoids an allocation each time.
        let _ = write!(rest, "{number}");
        let unused = rest.len();
        let index = self.name(&digits[..DIGITS_MAX - unused]);
        if let Some(at) = usize::try_from(number).ok().filter(|at| *at < SMALL_DEVICES) {
            if self.small.len() <= at {
                self.small.resize(at + 1, NONE);
            }
            self.small[at] = index;
        }
        index
    }

    /// The device called `name`; a comma inside (MSR's host and disk) is shown as a point.
    #[inline]
    pub(crate) fn name(&mut self, name: &[u8]) -> u32 {
        if self.last.0 == name && !self.names.is_empty() {
            return self.last.1;
        }
        let index = match self.by_name.get(name) {
            Some(&known) => known,
            None => self.add(name),
        };
        self.last.0.clear();
        self.last.0.extend_from_slice(name);
        self.last.1 = index;
        index
    }

    #[cold]
    fn add(&mut self, name: &[u8]) -> u32 {
        let index = u32::try_from(self.names.len()).unwrap_or(NONE);
        self.by_name.insert(name.to_vec(), index);
        self.names.push(String::from_utf8_lossy(name).replace(',', "."));
        index
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
}

/// Bad lines that are shown in full.
const SHOWN_BAD_LINES: usize = 5;

/// The counts of a decoder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Lines that could not be read and were skipped on request.
    pub(crate) bad_lines: u64,
    /// The first few of them, as errors.
    pub(crate) first_bad: Vec<String>,
    /// Lines or records of other events.
    pub(crate) ignored: u64,
    /// Requests of length zero.
    pub(crate) empty: u64,
    /// Where sections of the file begin, as positions in the present batch. Who reads batches clears it.
    pub(crate) sections: Vec<usize>,
    /// Whether a section is a recording of its own; else they are jobs that ran at once.
    pub(crate) sections_apart: bool,
    /// Events of a block trace by the letter of blkparse, from A on.
    pub(crate) events: [u64; 26],
}

impl Tally {
    pub(crate) fn note_bad(&mut self, error: &TraceError) {
        self.bad_lines += 1;
        if self.first_bad.len() < SHOWN_BAD_LINES {
            self.first_bad.push(error.to_string());
        }
    }
}

/// The output of a parser.
pub(crate) struct Sink<'a> {
    pub(crate) records: &'a mut Vec<Record>,
    pub(crate) devices: &'a mut DeviceTable,
    pub(crate) tally: &'a mut Tally,
}

impl Sink<'_> {
    /// Adds a request; a request of length zero, except flushes and the management of zones, is only counted.
    #[inline]
    pub(crate) fn push(&mut self, record: Record) {
        let may_be_empty = || matches!(record.kind.class(), RequestClass::Barrier | RequestClass::Manage);
        if record.sectors == 0 && !may_be_empty() {
            self.tally.empty += 1;
        } else {
            self.records.push(record);
        }
    }

    /// Says that the next request begins a section, whose times may start again.
    #[cold]
    pub(crate) fn begin_section(&mut self) {
        if self.tally.sections.last() != Some(&self.records.len()) {
            self.tally.sections.push(self.records.len());
        }
    }

    /// Counts an event of a block trace.
    #[inline]
    pub(crate) fn count_event(&mut self, letter: u8) {
        if let Some(count) = self.tally.events.get_mut(usize::from(letter.wrapping_sub(b'A'))) {
            *count += 1;
        }
    }

    /// Counts an event that is not a request.
    #[inline]
    pub(crate) fn ignore(&mut self) {
        self.tally.ignored += 1;
    }
}

/// Information on a device that is known without reading the whole trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownDevice {
    pub(crate) name: String,
    pub(crate) span_sectors: u64,
    pub(crate) requests: u64,
}

/// Turns bytes into records.
pub(crate) trait Decode: Send {
    /// Appends at least one and about `at_most` records; leaves `out` as it is at the end of the trace.
    fn fill(&mut self, out: &mut Sink<'_>, at_most: usize) -> Result<(), TraceError>;

    /// The decoder's position in its file.
    fn input(&self) -> &Input;

    /// The file's description: label, note, devices, requests.
    fn about(&self) -> About {
        About::default()
    }

    /// Share of the trace that has been read, if its size is known.
    fn progress(&self) -> Option<f64> {
        self.input().progress()
    }

    /// The line that was read last, from 1; none if the format has no lines.
    fn line(&self) -> Option<u64> {
        None
    }

    /// Whether times are read in the unit of [`super::formats::Setup`].
    fn takes_time_unit(&self) -> bool {
        false
    }

    /// Whether the file has queue and issue events, of which [`super::formats::Setup`] chooses.
    fn has_events(&self) -> bool {
        false
    }

    /// What is known of the clock.
    fn time_base(&self) -> TimeBase {
        TimeBase::Unknown
    }

    /// What a reader of the result needs to know of the file.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The description in a self-describing trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) label: String,
    pub(crate) note: String,
    /// The format that it was converted from.
    pub(crate) origin: String,
    pub(crate) requests: Option<u64>,
    pub(crate) devices: Option<Vec<KnownDevice>>,
}

/// What a format could not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// The request is written (flags and process may be lost, depending on the format).
    Written,
    /// The format can't hold this kind of request.
    Dropped,
}

/// Turns requests into bytes.
pub(crate) trait Encode: Send {
    /// The text before the first request.
    fn begin(&mut self, about: &About, out: &mut Output) -> io::Result<()>;

    /// One request.
    fn request(&mut self, request: &flashwright_block::Request, out: &mut Output) -> io::Result<Held>;

    /// The text after the last request.
    fn finish(&mut self, out: &mut Output) -> io::Result<()>;
}

/// The file being written.
pub(crate) type Output = io::BufWriter<std::fs::File>;
