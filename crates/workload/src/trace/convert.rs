//! Writes traces: first to a temporary file next to the target, which then replaces it, so that the target is never
//! half-written.

use super::devices;
use super::error::TraceError;
use super::formats::{self, Format, Writing};
use super::options::{Layout, TraceOptions, TraceStats};
use super::reader::{Doubt, TraceReader};
use super::record::{About, Encode, Held, KnownDevice, Output};
use flashwright_block::{Beside, Nanos, Request, RequestKind, TIME_MAX};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The description in a Flashwright trace; other formats have no place for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceLabel {
    /// What it is, such as `recorded: pgbench on ext4` or `stand-in: Financial1`.
    pub label: String,
    /// Free text: source, settings, seed.
    pub note: String,
    /// The format it was converted from, if any.
    pub origin: String,
}

/// The result of a conversion, and what the new format could not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ConvertReport {
    /// Requests written.
    pub written: u64,
    /// Trims left out because the format has none.
    pub dropped_trims: u64,
    /// Flushes left out because the format has none.
    pub dropped_flushes: u64,
    /// Arrivals rounded down because the format's times are coarser.
    pub rounded_times: u64,
    /// Writes whose force-unit-access was lost.
    pub lost_fua: u64,
    /// Requests whose process or stream was lost.
    pub lost_process: u64,
    /// The counts of the reader.
    pub read: TraceStats,
    /// What was done to read it: files read together, events taken, how times were put in order.
    pub notes: Vec<String>,
    /// What speaks against the figures of the trace.
    pub doubts: Vec<Doubt>,
}

/// Writes a trace request by request. Dropped without [`TraceWriter::finish`], it leaves nothing behind.
pub struct TraceWriter {
    target: PathBuf,
    beside: Beside,
    out: Output,
    encoder: Box<dyn Encode>,
    time_step_ns: u64,
    keeps_all: bool,
    last: Nanos,
    report: ConvertReport,
}

impl TraceWriter {
    /// Starts a trace at `target` in the format of that name (`flashwright`, `spc`, `msr`, `disksim`, `fio`).
    ///
    /// # Errors
    /// [`TraceError`] if the format is unknown or cannot be written, or the file cannot be created.
    pub fn create(target: impl AsRef<Path>, format: &str, label: &TraceLabel) -> Result<Self, TraceError> {
        let TraceLabel { label, note, origin } = label.clone();
        let about = About { label, note, origin, ..About::default() };
        Self::begin(target.as_ref(), formats::find(format)?, &about)
    }

    pub(crate) fn begin(target: &Path, format: &'static Format, about: &About) -> Result<Self, TraceError> {
        let writing = writing(format)?;
        let fail = |source| TraceError::io(target, "create the trace", source);
        if target.is_dir() {
            return Err(TraceError::Directory { path: target.to_owned() });
        }
        let (beside, file) = Beside::create(target).map_err(fail)?;
        let mut out = BufWriter::with_capacity(1 << 18, file);
        let mut encoder = (writing.encoder)();
        encoder.begin(about, &mut out).map_err(fail)?;
        Ok(TraceWriter {
            target: target.to_owned(),
            beside,
            out,
            encoder,
            time_step_ns: writing.time_step_ns,
            keeps_all: writing.loses.is_empty(),
            last: Nanos(0),
            report: ConvertReport::default(),
        })
    }

    /// Appends a request. Arrivals must not decrease.
    ///
    /// # Errors
    /// [`TraceError`] if writing fails, or the request is out of order.
    pub fn write(&mut self, request: &Request) -> Result<(), TraceError> {
        if request.arrival < self.last {
            let what = format!("arrives at {}, before its predecessor at {}", request.arrival, self.last);
            return Err(TraceError::record(&self.target, self.report.written + 1, what));
        }
        if request.arrival > TIME_MAX {
            let what = "arrives more than 100 years after the first".to_owned();
            return Err(TraceError::record(&self.target, self.report.written + 1, what));
        }
        if request.kind.is_for_zones() && !self.keeps_all {
            let what =
                format!("is a {}, which this format does not hold; write format flashwright", request.kind.name());
            return Err(TraceError::record(&self.target, self.report.written + 1, what));
        }
        self.last = request.arrival;
        let held = self.encoder.request(request, &mut self.out);
        match held.map_err(|source| TraceError::io(&self.target, "write the trace", source))? {
            Held::Written => self.count(request),
            Held::Dropped if request.kind == RequestKind::Trim => self.report.dropped_trims += 1,
            Held::Dropped => self.report.dropped_flushes += 1,
        }
        Ok(())
    }

    fn count(&mut self, request: &Request) {
        self.report.written += 1;
        self.report.rounded_times += u64::from(!request.arrival.0.is_multiple_of(self.time_step_ns));
        if !self.keeps_all {
            self.report.lost_fua += u64::from(request.fua);
            self.report.lost_process += u64::from(request.process != 0 || request.stream != 0);
        }
    }

    /// Lets only its owner use the file, unless there is one whose mode it keeps.
    #[must_use]
    pub fn private(self) -> Self {
        Self { beside: self.beside.private(), ..self }
    }

    /// Completes the file and renames it to the target.
    ///
    /// # Errors
    /// [`TraceError`] if writing fails, or nothing was written.
    pub fn finish(self) -> Result<ConvertReport, TraceError> {
        if self.report.written == 0 {
            let (trims, flushes) = (self.report.dropped_trims, self.report.dropped_flushes);
            let why = format!("nothing to write ({trims} trims and {flushes} flushes the format cannot hold)");
            return Err(TraceError::NothingMatched { path: self.target.clone(), why });
        }
        let Self { target, beside, mut out, mut encoder, report, .. } = self;
        let fail = |source| TraceError::io(&target, "write the trace", source);
        encoder.finish(&mut out).map_err(fail)?;
        out.flush().map_err(fail)?;
        beside.complete(out.get_ref()).map_err(fail)?;
        Ok(report)
    }
}

/// Reads `from` as `options` say and writes it to `to` in the format called `format`.
///
/// The devices of the trace become one address space, laid out as `options` say. A Flashwright trace keeps their names
/// and spans, and `label`; empty parts of it are taken from the input trace.
///
/// # Errors
/// [`TraceError`]; `to` is then unchanged.
pub fn convert(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    options: &TraceOptions,
    format: &str,
    label: &TraceLabel,
) -> Result<ConvertReport, TraceError> {
    convert_part(from, to, options, format, label, &Part::default())
}

/// Which requests of a trace are written, and with which placement handles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Requests that are left out, from the beginning of the trace.
    pub skip: u64,
    /// First sectors in rising order, each with the handle of the requests that begin there or after it, up to the next. Requests
    /// before the first of them keep what they have.
    pub handles: Vec<(u64, u16)>,
}

impl Part {
    fn handle(&self, request: &Request) -> u16 {
        let after = self.handles.partition_point(|(first_sector, _)| *first_sector <= request.first_sector);
        let found = after.checked_sub(1).and_then(|at| self.handles.get(at));
        found.map_or(request.stream, |(_, handle)| *handle)
    }
}

/// As [`convert`], of a part of the trace.
///
/// # Errors
/// [`TraceError`]; `to` is then unchanged.
pub fn convert_part(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    options: &TraceOptions,
    format: &str,
    label: &TraceLabel,
    part: &Part,
) -> Result<ConvertReport, TraceError> {
    if let Some(pair) = part.handles.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
        let found = format!("sector {} before {}", pair[0].0, pair[1].0);
        return Err(TraceError::Option { option: "handles", found, expected: "first sectors in rising order" });
    }
    let target = formats::find(format)?;
    writing(target)?;
    let mut reader = TraceReader::open(from.as_ref(), options)?;
    let about = about(&reader, options, label, part);
    let mut writer = TraceWriter::begin(to.as_ref(), target, &about)?;
    let (mut batch, mut skip) = (Vec::with_capacity(devices::BATCH), part.skip);
    while reader.read(&mut batch, devices::BATCH)? > 0 {
        for request in batch.iter().skip(usize::try_from(skip).unwrap_or(usize::MAX)) {
            writer.write(&Request { stream: part.handle(request), ..*request })?;
        }
        skip = skip.saturating_sub(batch.len() as u64);
        batch.clear();
    }
    let mut report = writer.finish()?;
    report.read = reader.stats();
    report.notes = reader.notes().to_vec();
    report.doubts = reader.doubts().to_vec();
    Ok(report)
}

fn writing(format: &'static Format) -> Result<&'static Writing, TraceError> {
    let not = || TraceError::NotWritable { name: format.name(), writable: formats::names(Format::writable) };
    format.writing.as_ref().ok_or_else(not)
}

/// What is said of a trace, and what was done to read it, so that it stays known.
pub(crate) fn noted(said: &str, done: &[String], doubts: &[Doubt]) -> String {
    let done = done.iter().map(String::as_str);
    let doubts = doubts.iter().map(|doubt| doubt.text.as_str());
    let all: Vec<&str> = std::iter::once(said).chain(done).chain(doubts).filter(|text| !text.is_empty()).collect();
    all.join("; ")
}

fn about(reader: &TraceReader, options: &TraceOptions, label: &TraceLabel, part: &Part) -> About {
    let whole = options.layout == Layout::Concatenate && options.keeps_places() && part.skip == 0;
    let or = |given: &str, found: &str| if given.is_empty() { found.to_owned() } else { given.to_owned() };
    let devices = (reader.devices().into_iter()).map(|device| KnownDevice {
        name: device.name,
        span_sectors: device.sectors,
        requests: device.requests,
    });
    About {
        label: or(&label.label, reader.label()),
        note: noted(&or(&label.note, reader.note()), reader.notes(), reader.doubts()),
        origin: or(&label.origin, reader.origin()),
        // Overlaid devices share their addresses, copies and ranges have others, and a part has fewer requests: afterwards they are
        // one.
        devices: whole.then(|| devices.collect()),
        ..About::default()
    }
}
