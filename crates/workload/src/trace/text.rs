//! Shared by all line formats: splits lines, parses them, skips or refuses bad ones, and recognises a format by its
//! parser.

use super::brothers::Brothers;
use super::detect::{Head, Verdict};
use super::error::TraceError;
use super::formats::Setup;
use super::input::Input;
use super::order::TimeBase;
use super::parse::{BadField, Parsed};
use super::plausible::Shape;
use super::record::{Decode, DeviceTable, Sink, Tally};

/// Parses one line of a format; state between lines is in `self`.
pub(crate) trait ParseLine: Send + 'static {
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

    /// Whether lines before the first request may be a header that it does not know.
    const SKIPS_HEADERS: bool = true;
    /// What the format assumes, since traces do not say it.
    const ASSUMED: &'static [&'static str] = &[];

    /// What the parser assumes.
    fn assumed(&self) -> Vec<String> {
        Self::ASSUMED.iter().map(|assumed| (*assumed).to_owned()).collect()
    }
}

/// A decoder of lines.
struct Text<P> {
    input: Input,
    parser: P,
    line: u64,
    skip_bad_lines: bool,
    /// Whether a line could be read; what stands before the first may be a header.
    begun: bool,
}

/// The constructor of every text format.
pub(crate) fn open<P: ParseLine + Default>(input: Input, setup: &Setup) -> Result<Box<dyn Decode>, TraceError> {
    let mut parser = P::default();
    parser.set_up(setup);
    Ok(open_with(input, setup, parser))
}

/// The decoder of a parser with settings.
pub(crate) fn open_with<P: ParseLine>(input: Input, setup: &Setup, parser: P) -> Box<dyn Decode> {
    Box::new(Text { input, parser, line: 0, skip_bad_lines: setup.skip_bad_lines, begun: false })
}

/// Whether a line is a comment: it begins with a sign for that.
fn is_comment(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.first().is_some_and(|byte| matches!(byte, b'#' | b'%')) || line.starts_with(b"//")
}

/// Whether a line names columns: it consists of two or more fields, none of which begins as a number does.
fn is_header(line: &[u8]) -> bool {
    let fields = line.split(|byte| b",;\t |".contains(byte)).filter(|field| !field.is_empty());
    let mut count = 0;
    let names = fields.inspect(|_| count += 1).all(|field| {
        let first = field.iter().find(|byte| **byte != b'"');
        first.is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'('))
    });
    names && count > 1
}

/// Whether a line that a parser cannot read is a header of its own format: it calls the field at which the parser stopped
/// as the parser does, or nearly. A header with other names is one of another table.
fn is_own_header(line: &[u8], bad: &BadField) -> bool {
    let (found, field) = (bad.found.trim_matches('"').to_ascii_lowercase(), bad.field.to_ascii_lowercase());
    is_header(line) && found.len() > 2 && (found.contains(&field) || field.contains(&found))
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
            let Err(bad) = self.parser.line(line, out) else {
                self.begun = true;
                continue;
            };
            out.records.truncate(before);
            if P::SKIPS_HEADERS && !self.begun && (is_comment(line) || is_own_header(line, &bad)) {
                out.ignore();
                continue;
            }
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
        brothers.map(note).into_iter().chain(self.parser.assumed()).collect()
    }
}

/// As [`sniff`], for a format whose columns others may have too.
pub(crate) fn sniff_columns<P: ParseLine + Default>(head: &Head<'_>, shape: &'static Shape) -> Verdict {
    if sniff::<P>(head) == Verdict::Fits { Verdict::Columns(shape) } else { Verdict::No }
}

/// Fits if the parser accepts more than half of the first lines and finds a request in them.
pub(crate) fn sniff<P: ParseLine + Default>(head: &Head<'_>) -> Verdict {
    let (mut good, mut bad) = (0usize, 0usize);
    let mut parser = P::default();
    let (mut records, mut devices, mut tally) = (Vec::new(), DeviceTable::default(), Tally::default());
    for line in head.lines() {
        let mut sink = Sink { records: &mut records, devices: &mut devices, tally: &mut tally };
        match parser.line(line, &mut sink) {
            Ok(()) => good += 1,
            Err(_) if good == 0 && is_comment(line) => {}
            Err(bad) if good == 0 && is_header(line) => {
                if !is_own_header(line, &bad) {
                    return Verdict::No;
                }
            }
            Err(_) => bad += 1,
        }
    }
    if good > bad && !records.is_empty() { Verdict::Fits } else { Verdict::No }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_name_columns() {
        for line in ["Timestamp,Hostname,DiskNumber", "time lba (512)", "\"a\",\"b\""] {
            assert!(is_header(line.as_bytes()), "{line}");
        }
        for line in ["0,1,r", "word", "", "-1 a b", ".5,a,b", "a,b,3"] {
            assert!(!is_header(line.as_bytes()), "{line}");
        }
        for line in ["# made by x 3", "% x", "// x"] {
            assert!(is_comment(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn a_header_with_other_names_is_of_another_table() {
        let bad = |found: &str| BadField { field: "Timestamp".into(), found: found.to_owned(), expected: "" };
        assert!(is_own_header(b"time,b", &bad("time")) && is_own_header(b"\"TIMESTAMP\",b", &bad("\"TIMESTAMP\"")));
        assert!(!is_own_header(b"ts,rw", &bad("ts")) && !is_own_header(b"device,rw", &bad("device")));
    }
}
