//! The trace formats, one file each. Adding one is a file with a `FORMAT` and its line in the table below.

use super::detect::{Head, Verdict};
use super::error::TraceError;
use super::input::Input;
use super::options::{Event, TimeUnit};
use super::record::{Decode, Encode};

/// Options of a decoder.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Setup {
    pub(crate) skip_bad_lines: bool,
    /// The unit of times, if another than the format's.
    pub(crate) time_unit: Option<TimeUnit>,
    /// Which events of a block trace are the requests.
    pub(crate) events: Event,
}

impl Setup {
    /// The digits after the point that give nanoseconds, if times are in another unit than the format's.
    pub(crate) fn time_digits(&self) -> Option<usize> {
        self.time_unit.map(TimeUnit::digits)
    }
}

/// How a format is written.
pub(crate) struct Writing {
    /// A fresh encoder.
    pub(crate) encoder: fn() -> Box<dyn Encode>,
    /// Arrivals are rounded down to multiples of this many nanoseconds.
    pub(crate) time_step_ns: u64,
    /// What else is lost, in words; empty if nothing is.
    pub(crate) loses: &'static str,
}

/// Creates a decoder that reads the input from its beginning.
pub(crate) type Open = fn(Input, &Setup) -> Result<Box<dyn Decode>, TraceError>;

/// A trace format: how to recognise it, read it and, for some, write it.
pub struct Format {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) sniff: fn(&Head<'_>) -> Verdict,
    pub(crate) open: Open,
    pub(crate) writing: Option<Writing>,
    /// Number of requests among which issue order is restored; 0 if the file is in issue order.
    pub(crate) reorder_window: usize,
}

impl Format {
    /// The name for `--format`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// One line for help and manual.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        self.summary
    }

    /// Whether traces can be converted to this format.
    #[must_use]
    pub fn writable(&self) -> bool {
        self.writing.is_some()
    }

    /// What is lost when a trace is written in this format, beyond times finer than its time step; empty if nothing.
    #[must_use]
    pub fn loses(&self) -> &'static str {
        self.writing.as_ref().map_or("", |writing| writing.loses)
    }
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Format").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

macro_rules! formats {
    ($($module:ident),* $(,)?) => {
        $(mod $module;)*
        static FORMATS: &[&Format] = &[$(&$module::FORMAT),*];
    };
}

formats! {
    flashwright,
    blktrace,
    blkparse,
    etw,
    fio,
    spc,
    msr,
    alibaba,
    tencent,
    hplajw,
    cloudphysics,
    disksim,
    flashsim,
    mqsim,
    bytes,
}

mod columns;

/// Every known format.
#[must_use]
pub fn all() -> &'static [&'static Format] {
    FORMATS
}

/// The format called `name`.
///
/// # Errors
/// [`TraceError::UnknownFormat`], with the most similar name if there is one.
pub fn find(name: &str) -> Result<&'static Format, TraceError> {
    if let Some(format) = FORMATS.iter().find(|format| format.name.eq_ignore_ascii_case(name)) {
        return Ok(format);
    }
    let nearest = FORMATS.iter().map(|format| (strsim::damerau_levenshtein(format.name, name), format.name)).min();
    let hint = match nearest {
        Some((distance, near)) if distance <= 2 => format!("; did you mean {near:?}?"),
        _ => String::new(),
    };
    Err(TraceError::UnknownFormat { name: name.to_owned(), hint, known: names(|_| true) })
}

/// Names of the formats that `wanted` picks, for messages.
pub(crate) fn names(wanted: impl Fn(&Format) -> bool) -> String {
    let names: Vec<_> = FORMATS.iter().filter(|format| wanted(format)).map(|format| format.name).collect();
    names.join(", ")
}
