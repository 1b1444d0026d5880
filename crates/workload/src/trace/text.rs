//! Shared by all line formats: splits lines, parses them, skips or refuses bad ones, and recognises a format by its
//! parser.

use super::detect::{Head, Verdict};
use super::error::TraceError;
use super::formats::Setup;
use super::input::Input;
use super::parse::Parsed;
use super::record::{Decode, DeviceTable, Sink, Tally};

/// Parses one line of a format; state between lines is in `self`.
pub(crate) trait ParseLine: Default + Send + 'static {
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
    Ok(Box::new(Text { input, parser: P::default(), line: 0, skip_bad_lines: setup.skip_bad_lines }))
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
