//! Detects the format of a trace from its content, never from its name.

use super::error::TraceError;
use super::formats::{self, Format};
use super::input::Input;
use super::options::TimeUnit;
use super::plausible::{Reading, Shape};
use super::reader::{Doubt, DoubtKind};
use std::path::Path;

/// Bytes of a file that are examined.
const HEAD_BYTES: usize = 1 << 16;
/// Lines of it that are tried.
const HEAD_LINES: usize = 400;
/// Bytes of an unknown file that are shown.
const SHOWN_BYTES: usize = 60;

/// Whether a format fits the beginning of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It does not.
    No,
    /// Its columns fit; whether they mean what they would is to be judged.
    Columns(&'static Shape),
    /// It fits, and no other format can.
    Fits,
}

/// The beginning of a file, decompressed.
pub(crate) struct Head<'a> {
    bytes: &'a [u8],
    /// The file ends here.
    whole: bool,
}

impl<'a> Head<'a> {
    pub(crate) fn new(bytes: &'a [u8], whole: bool) -> Self {
        Head { bytes, whole }
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The complete lines, without their ends and without blank ones.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let complete = if self.whole {
            self.bytes
        } else {
            &self.bytes[..memchr::memrchr(b'\n', self.bytes).map_or(0, |at| at + 1)]
        };
        complete
            .split(|&byte| byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .filter(|line| !line.is_empty())
            .take(HEAD_LINES)
    }

    /// Whether its first bytes have this word.
    fn has(&self, word: &[u8]) -> bool {
        memchr::memmem::find(&self.bytes[..self.bytes.len().min(REPORT_BYTES)], word).is_some()
    }

    /// Whether the first line begins with `text`, after leading blanks.
    pub(crate) fn begins(&self, text: &[u8]) -> bool {
        self.bytes.trim_ascii_start().starts_with(text)
    }
}

/// The format of the trace at `path`, detected from its content.
///
/// # Errors
/// [`TraceError::UnknownContent`] if none fits, [`TraceError::Ambiguous`] if several do, and any error of opening and
/// reading the file.
pub fn detect(path: impl AsRef<Path>) -> Result<&'static Format, TraceError> {
    detect_in(&mut Input::open(path.as_ref())?, None).map(|chosen| chosen.format)
}

/// A format, and what speaks against it.
pub(crate) struct Chosen {
    pub(crate) format: &'static Format,
    pub(crate) doubts: Vec<Doubt>,
}

/// The named format, or the one detected from the content; times are in `unit` if that is given.
pub(crate) fn choose(input: &mut Input, name: Option<&str>, unit: Option<TimeUnit>) -> Result<Chosen, TraceError> {
    let Some(name) = name else { return detect_in(input, unit) };
    let format = formats::find(name)?;
    let (bytes, whole) = input.head(HEAD_BYTES)?;
    let head = Head::new(bytes, whole);
    let doubts = match (format.sniff)(&head) {
        Verdict::Columns(shape) => doubts(&shape.read(&head, unit)),
        _ => Vec::new(),
    };
    Ok(Chosen { format, doubts })
}

fn doubts(reading: &Reading) -> Vec<Doubt> {
    if reading.faults.is_empty() {
        return Vec::new();
    }
    vec![Doubt { kind: DoubtKind::Content, text: reading.texts(), mend: reading.mend() }]
}

fn detect_in(input: &mut Input, unit: Option<TimeUnit>) -> Result<Chosen, TraceError> {
    let path = input.path().to_owned();
    let (bytes, whole) = input.head(HEAD_BYTES)?;
    if bytes.is_empty() {
        return Err(TraceError::Empty { path });
    }
    let head = Head::new(bytes, whole);
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    for format in formats::all() {
        match (format.sniff)(&head) {
            Verdict::Fits => found.push((*format, None)),
            Verdict::Columns(shape) => {
                let reading = shape.read(&head, unit);
                let list = if reading.is_refused() { &mut refused } else { &mut found };
                list.push((*format, Some(reading)));
            }
            Verdict::No => {}
        }
    }
    match found.as_slice() {
        [(format, reading)] => {
            return Ok(Chosen { format, doubts: reading.as_ref().map(doubts).unwrap_or_default() });
        }
        [_, _, ..] => return Err(TraceError::Ambiguous { path, could_be: could_be(&found, unit) }),
        [] if !refused.is_empty() => return Err(TraceError::Implausible { path, what: implausible(&refused) }),
        [] => {}
    }
    if let Some((tool, _)) = REPORTS.iter().find(|(_, words)| words.iter().all(|word| head.has(word.as_bytes()))) {
        let what = format!(
            "this is what {tool} prints, sums over time with no requests in them; record the requests with blktrace, \
             `flashwright trace record` or fio's write_iolog"
        );
        return Err(TraceError::Implausible { path, what });
    }
    let tried: Vec<_> = formats::all().iter().map(|format| format.name).collect();
    let begins = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]).into_owned();
    Err(TraceError::UnknownContent { path, tried: tried.join(", "), begins })
}

/// Reports of tools that are taken for traces, by words of their first bytes.
const REPORTS: &[(&str, &[&str])] = &[
    ("iostat", &["Device", "r/s", "w/s"]),
    ("iostat", &["Device", "tps", "_read/s"]),
    ("sar -d", &["DEV", "tps", "%util"]),
    ("vmstat", &["procs", "swap", "bi", "bo"]),
    ("fio", &["iodepth=", "ioengine=", "rw="]),
    ("fio", &["\"fio version\"", "\"jobs\""]),
];
/// Bytes in which these words stand.
const REPORT_BYTES: usize = 1 << 12;

type Candidate = (&'static Format, Option<Reading>);

/// The formats with what each would mean, and the units that would change that.
fn could_be(found: &[Candidate], unit: Option<TimeUnit>) -> String {
    let names: Vec<String> = (found.iter())
        .map(|(format, reading)| match reading {
            Some(reading) => format!("{} ({})", format.name, reading.means()),
            None => format.name.to_owned(),
        })
        .collect();
    let units = found.iter().find_map(|(_, reading)| reading.as_ref()?.time_units()).filter(|_| unit.is_none());
    let units = units.map_or_else(String::new, |units| format!("; where the times are in another unit, add {units}"));
    format!("{}{units}", names.join(" or "))
}

/// Why no reading of the columns is taken, and what to do.
fn implausible(refused: &[Candidate]) -> String {
    let [(format, Some(reading))] = refused else {
        let each: Vec<String> = (refused.iter())
            .filter_map(|(format, reading)| {
                let reading = reading.as_ref()?;
                Some(format!("as {}, {} ({})", format.name, reading.texts(), reading.mend()))
            })
            .collect();
        return format!(
            "its columns fit several formats, none plausibly: {}; choose one with --format",
            each.join("; ")
        );
    };
    format!(
        "its columns are those of {} ({}), but {}. Try {}; --format {} takes it as it is",
        format.name,
        format.summary,
        reading.texts(),
        reading.mend(),
        format.name
    )
}
