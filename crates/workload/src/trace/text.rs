//! Shared by all line formats: splits lines, parses them, skips or refuses bad ones, and recognises a format by its
//! parser.

use super::brothers::Brothers;
use super::detect::{Head, Verdict};
use super::error::TraceError;
use super::formats::Setup;
use super::input::Input;
use super::order::TimeBase;
use super::parse::Parsed;
use super::plausible::Shape;
use super::record::{Decode, DeviceTable, Sink, Tally};

/// Parses one line of a format; state between lines is in `self`.
pub(crate) trait ParseLine: Default + Send + 'static {
    /// Whether times are read in the unit of [`Setup`].
    const TAKES_TIME_UNIT: bool = false;
    /// Whether there are queue and issue events, of which [`Setup`] chooses.
    const HAS_EVENTS: bool = false;

    /// What is known of the clock.
    const TIME_BASE: TimeBase = TimeBase::Unknown;

    /// Takes the options, before the first line.
    fn set_up(&mut self, _: &Setup) {}

    /// Pushes the requests of `line` (without its end) into `out`.
    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()>;
}

/// A decoder of lines.
struct Text<P> {
    input: Input,
    parser: P,
    line: u64,
    skip_bad_lines: bool,
}

/// The constructor of every text format.
pub(crate) fn open<P: ParseLine>(input: Input, setup: &Setup) -> Result<Box<dyn Decode>, TraceError> {
    let mut parser = P::default();
    parser.set_up(setup);
    Ok(Box::new(Text { input, parser, line: 0, skip_bad_lines: setup.skip_bad_lines }))
}

impl<P: ParseLine> Decode for Text<P> {
    fn fill(&mut self, out: &mut Sink<'_>, at_most: usize) -> Result<(), TraceError> {
        let enough = out.records.len() + at_most;
        while out.records.len() < enough {
            let Some(line) = self.input.line()? else { return Ok(()) };
            self.line += 1;
            if line.is_empty() {
                continue;
            }
            let before = out.records.len();
            let Err(bad) = self.parser.line(line, out) else { continue };
            out.records.truncate(before);
            let path = self.input.path().to_owned();
            let error =
                TraceError::Field { path, line: self.line, field: bad.field, found: bad.found, expected: bad.expected };
            if !self.skip_bad_lines {
                return Err(error);
            }
            out.tally.note_bad(&error);
        }
        Ok(())
    }

    fn input(&self) -> &Input {
        &self.input
    }

    fn line(&self) -> Option<u64> {
        Some(self.line)
    }

    fn takes_time_unit(&self) -> bool {
        P::TAKES_TIME_UNIT
    }

    fn has_events(&self) -> bool {
        P::HAS_EVENTS
    }

    fn time_base(&self) -> TimeBase {
        P::TIME_BASE
    }

    fn notes(&self) -> Vec<String> {
        let brothers = Brothers::of(self.input.path()).filter(|_| P::HAS_EVENTS);
        let note = |found: Brothers| {
            format!("beside it: {}; if these are the other CPUs of the recording, join all with cat", found.names())
        };
        brothers.map(note).into_iter().collect()
    }
}

/// As [`sniff`], for a format whose columns others may have too.
pub(crate) fn sniff_columns<P: ParseLine>(head: &Head<'_>, shape: &'static Shape) -> Verdict {
    if sniff::<P>(head) == Verdict::Fits { Verdict::Columns(shape) } else { Verdict::No }
}

/// Fits if the parser accepts more than half of the first lines and finds a request in them.
pub(crate) fn sniff<P: ParseLine>(head: &Head<'_>) -> Verdict {
    let (mut good, mut bad) = (0usize, 0usize);
    let mut parser = P::default();
    let (mut records, mut devices, mut tally) = (Vec::new(), DeviceTable::default(), Tally::default());
    for line in head.lines() {
        let mut sink = Sink { records: &mut records, devices: &mut devices, tally: &mut tally };
        match parser.line(line, &mut sink) {
            Ok(()) => good += 1,
            Err(_) => bad += 1,
        }
    }
    if good > bad && !records.is_empty() { Verdict::Fits } else { Verdict::No }
}
