//! Detects the format of a trace from its content, never from its name.

use super::error::TraceError;
use super::formats::{self, Format};
use super::input::Input;
use super::propose;
use std::path::Path;

/// Bytes of a file that are examined.
pub(crate) const HEAD_BYTES: usize = 1 << 16;
/// Lines of it that are tried.
const HEAD_LINES: usize = 400;
/// Bytes of an unknown file that are shown.
const SHOWN_BYTES: usize = 60;

/// Whether a format fits the beginning of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It does not.
    No,
    /// It fits, and so may another.
    Maybe,
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

    /// The first `count` bytes, and whether they are the whole file.
    pub(crate) fn first(&self, count: usize) -> (&'a [u8], bool) {
        if count < self.bytes.len() { (&self.bytes[..count], false) } else { (self.bytes, self.whole) }
    }

    /// Whether the file ends with these bytes.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
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
    detect_in(&mut Input::open(path.as_ref(), None)?)
}

/// Whether these first bytes of a file are in a known format.
pub(crate) fn fits(bytes: &[u8], whole: bool) -> bool {
    let head = Head::new(bytes, whole);
    !bytes.is_empty() && formats::all().iter().any(|format| (format.sniff)(&head) != Verdict::No)
}

/// The named format, or the one detected from the content.
pub(crate) fn choose(input: &mut Input, name: Option<&str>) -> Result<&'static Format, TraceError> {
    match name {
        Some(name) => formats::find(name),
        None => detect_in(input),
    }
}

fn detect_in(input: &mut Input) -> Result<&'static Format, TraceError> {
    let path = input.path().to_owned();
    let (bytes, whole) = input.head(HEAD_BYTES)?;
    if bytes.is_empty() {
        return Err(TraceError::Empty { path });
    }
    let head = Head::new(bytes, whole);
    let verdicts: Vec<_> = formats::all().iter().map(|format| (*format, (format.sniff)(&head))).collect();
    for wanted in [Verdict::Fits, Verdict::Maybe] {
        let names: Vec<&'static Format> =
            verdicts.iter().filter(|(_, verdict)| *verdict == wanted).map(|(format, _)| *format).collect();
        match names.as_slice() {
            [] => {}
            [only] => return Ok(only),
            several => {
                let names: Vec<_> = several.iter().map(|format| format.name).collect();
                return Err(TraceError::Ambiguous { path, could_be: names.join(" or ") });
            }
        }
    }
    let tried: Vec<_> = formats::all().iter().map(|format| format.name).collect();
    let begins = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]).into_owned();
    let hint =
        propose::proposal(&head).unwrap_or_else(|| "Name the format with --format if it is one of these".to_owned());
    Err(TraceError::UnknownContent { path, tried: tried.join(", "), begins, hint })
}
