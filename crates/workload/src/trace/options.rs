//! How a trace is to be read.

use super::error::TraceError;
use super::order::Order;
use std::ops::Range;
use std::str::FromStr;

/// How to read a trace. The default reads every device, lays them end to end and stops at the first bad line.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceOptions {
    /// Name of the required format; detected from the content if `None`.
    pub format: Option<String>,
    /// Count and skip lines that cannot be read instead of stopping at the first.
    pub skip_bad_lines: bool,
    /// Which devices are read.
    pub devices: DeviceFilter,
    /// How the address spaces of several devices become one.
    pub layout: Layout,
    /// Sizes of the devices in the order in which [`Layout::Concatenate`] puts them. Empty: a first pass over the
    /// file finds them.
    pub spans: Vec<DeviceSpan>,
    /// Arrivals are multiplied by this: 0.5 plays twice as fast, 0 all at once.
    pub time_scale: f64,
    /// Only requests to these sectors, counted once the devices are laid out. What reaches beyond them is cut off, and
    /// the first of them becomes sector 0.
    pub range: Option<Range<u64>>,
    /// How many copies of the trace are laid side by side, 1 to 64, to scale its footprint. Each begins at another of
    /// its requests; requests and rate grow by the same factor.
    pub copies: u32,
    /// What to do where times go back. `None`: what is certain, else an error with the choice.
    pub order: Option<Order>,
    /// The unit of the times; that of the format if `None`.
    pub time_unit: Option<TimeUnit>,
    /// Which events of a block trace are the requests. `None`: queue events; issue events where there are no others.
    pub events: Option<Event>,
    /// Share of the requests, from 0 to below 1, after which the trace begins; it ends with its beginning.
    pub start: f64,
}

/// The unit of the times of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl TimeUnit {
    /// All of them.
    pub const ALL: [TimeUnit; 4] = [TimeUnit::Ns, TimeUnit::Us, TimeUnit::Ms, TimeUnit::S];

    /// Its name for `--time-unit`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TimeUnit::Ns => "ns",
            TimeUnit::Us => "us",
            TimeUnit::Ms => "ms",
            TimeUnit::S => "s",
        }
    }

    /// How many digits after the point give nanoseconds.
    pub(crate) fn digits(self) -> usize {
        match self {
            TimeUnit::Ns => 0,
            TimeUnit::Us => 3,
            TimeUnit::Ms => 6,
            TimeUnit::S => 9,
        }
    }
}

impl FromStr for TimeUnit {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        TimeUnit::ALL.into_iter().find(|unit| unit.name() == text).ok_or_else(|| TraceError::Option {
            option: "time_unit",
            found: format!("{text:?}"),
            expected: "ns, us, ms or s",
        })
    }
}

/// An event of a block trace that may be a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Event {
    /// Q: a request enters the block layer.
    #[default]
    Queue,
    /// D: the scheduler issues a request to the driver, merged and in its order.
    Issue,
}

impl Event {
    /// Its name for `--events`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Event::Queue => "queue",
            Event::Issue => "issue",
        }
    }

    /// Its letter in blkparse.
    pub(crate) fn letter(self) -> u8 {
        match self {
            Event::Queue => b'Q',
            Event::Issue => b'D',
        }
    }
}

impl FromStr for Event {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        [Event::Queue, Event::Issue].into_iter().find(|event| event.name() == text).ok_or_else(|| TraceError::Option {
            option: "events",
            found: format!("{text:?}"),
            expected: "auto, queue or issue",
        })
    }
}

impl Default for TraceOptions {
    fn default() -> Self {
        TraceOptions {
            format: None,
            skip_bad_lines: false,
            devices: DeviceFilter::All,
            layout: Layout::Concatenate,
            spans: Vec::new(),
            time_scale: 1.0,
            range: None,
            copies: 1,
            order: None,
            time_unit: None,
            events: None,
            start: 0.0,
        }
    }
}

impl TraceOptions {
    /// Whether requests have the places that the devices were given.
    pub(crate) fn keeps_places(&self) -> bool {
        self.range.is_none() && self.copies == 1
    }
}

/// The first sector, counted from the start of `range`, and the sectors of what lies within it; none if nothing does.
pub(crate) fn clip(first_sector: u64, sectors: u32, range: &Range<u64>) -> Option<(u64, u32)> {
    let (first, end) = (first_sector.max(range.start), (first_sector + u64::from(sectors)).min(range.end));
    let sectors = u32::try_from(end.checked_sub(first)?).ok().filter(|sectors| *sectors > 0)?;
    Some((first - range.start, sectors))
}

/// Which devices of a trace (ASUs, disks, volumes, files) are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceFilter {
    /// All of them.
    #[default]
    All,
    /// Devices with these names, as `trace info` shows them: `"3"` for an ASU, `"proxy.0"` for an MSR disk.
    Only(Vec<String>),
}

impl DeviceFilter {
    pub(crate) fn takes(&self, name: &str) -> bool {
        match self {
            DeviceFilter::All => true,
            // MSR disks may also be written as in the file, "proxy,0".
            DeviceFilter::Only(names) => names.iter().any(|wanted| wanted == name || wanted.replace(',', ".") == name),
        }
    }
}

/// How the address spaces of several devices become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// End to end, in order of their names (numbers by value), each up to its highest address, rounded up to 4 KiB.
    /// Unless spans are given or stored in the file, this takes a first pass over the file.
    #[default]
    Concatenate,
    /// All from address 0, as if they were one device. One pass.
    Overlay,
}

/// A device of a trace, its place in the common address space, and its size.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct DeviceSpan {
    /// Its name in the trace.
    pub name: String,
    /// The place of its sector 0. Ignored in [`TraceOptions::spans`].
    pub base_sector: u64,
    /// Its length in 512 B sectors: its span, or the highest address seen so far.
    pub sectors: u64,
    /// Its requests in the whole trace if known, else those read so far. Ignored in [`TraceOptions::spans`].
    pub requests: u64,
}

/// The counts of a reader so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct TraceStats {
    /// Requests returned.
    pub requests: u64,
    /// Lines that could not be read and were skipped.
    pub bad_lines: u64,
    /// The first few of them, as errors.
    pub first_bad_lines: Vec<String>,
    /// Lines or records of other events.
    pub ignored_events: u64,
    /// Reads, writes and trims of length zero, which are left out.
    pub empty_requests: u64,
    /// Requests of devices that the filter leaves out.
    pub filtered_out: u64,
    /// Requests that arrived before their predecessor in the file and were moved up to its time.
    pub out_of_order: u64,
    /// Requests that were late in the file and were sorted into their place.
    pub reordered: u64,
}
