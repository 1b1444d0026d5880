//! Binary files of `blktrace`, version 7, as the kernel writes them (one file a CPU, or `blktrace -d - -o -`).
//!
//! ```text
//! offset 0      4        8    16     24    28     32  36     40  44    46      48
//!        magic  sequence time sector bytes action pid device cpu error pdu_len pdu ...
//! ```
//!
//! Either byte order: the magic number, 0x65617400 and the version in its last byte, determines it. The low half of
//! `action` is the event (1 = queued, 7 = issued), the high half are flags. Queue events are the requests, issue events
//! where there are no others, as for `blkparse`.
//!
//! `blktrace` writes a file for each CPU: NAME.blktrace.0 is read with NAME.blktrace.1 and so on beside it, the whole
//! recording. Another one of them is read alone and says so.

use super::{Format, Setup};
use crate::trace::brothers::{Brothers, shown};
use crate::trace::detect::{Head, Verdict};
use crate::trace::error::TraceError;
use crate::trace::input::Input;
use crate::trace::options::Event;
use crate::trace::order::TimeBase;
use crate::trace::parse::byte_range;
use crate::trace::record::{Decode, Record, SECTOR, Sink};
use flashwright_block::RequestKind;
use std::path::{Path, PathBuf};

pub(super) static FORMAT: Format = Format {
    name: "blktrace",
    summary: "binary output of blktrace, version 7, either byte order; queue events are the requests, or issue events",
    sniff,
    open,
    writing: None,
    reorder_window: 4096,
};

const MAGIC: [u8; 3] = [0x65, 0x61, 0x74];
const VERSION: u8 = 7;
const RECORD_BYTES: usize = 48;

const QUEUED: u32 = 1;
const ISSUED: u32 = 7;
/// The letters of blkparse for the events, from number 0 on (`blktrace_api.h`); a point where it has none of its own.
const LETTERS: &[u8; 17] = b".QMFGSRDCPUTIXBA.";
/// The event without the bit that says that a control group follows.
const EVENT_MASK: u32 = 0xff;
const WRITE: u32 = 1 << (16 + 1);
const FLUSH: u32 = 1 << (16 + 2);
const NOTIFY: u32 = 1 << (16 + 10);
const DISCARD: u32 = 1 << (16 + 13);
const FUA: u32 = 1 << (16 + 15);
const READ: u32 = 1 << 16;

/// Byte order of a file, and its version.
fn order(bytes: &[u8]) -> Option<(bool, u8)> {
    match *bytes {
        [version, a, b, c, ..] if [c, b, a] == MAGIC => Some((true, version)),
        [a, b, c, version, ..] if [a, b, c] == MAGIC => Some((false, version)),
        _ => None,
    }
}

fn sniff(head: &Head<'_>) -> Verdict {
    if order(head.bytes()).is_some() { Verdict::Fits } else { Verdict::No }
}

fn open(input: Input, setup: &Setup) -> Result<Box<dyn Decode>, TraceError> {
    let (rest, notes) = brothers(input.path());
    let (input, little) = begin(input)?;
    let taken = if setup.events == Event::Queue { QUEUED } else { ISSUED };
    Ok(Box::new(Blktrace { input, little, record: 0, device: None, taken, files: rest.len() + 1, rest, notes }))
}

/// The files to read beside `path`, the next last, and what is said of them.
fn brothers(path: &Path) -> (Vec<PathBuf>, Vec<String>) {
    let Some(found) = Brothers::of(path) else { return Default::default() };
    let (names, all) = (found.names(), found.others.len() + 1);
    if found.cpu > 0 {
        let note = format!("one CPU of a recording of {all}: {} is read with the others", shown(&found.first));
        return (Vec::new(), vec![note]);
    }
    let mut rest = found.others;
    rest.reverse();
    (rest, vec![format!("read with {names}: {all} CPUs of one recording")])
}

/// The input behind its first bytes, and whether it is little-endian.
fn begin(mut input: Input) -> Result<(Input, bool), TraceError> {
    let found = order(input.head(4)?.0);
    let path = input.path().to_owned();
    match found {
        Some((little, VERSION)) => Ok((input, little)),
        Some((_, version)) => {
            Err(TraceError::record(&path, 1, format!("blktrace version {version}; only version {VERSION} is read")))
        }
        None => Err(TraceError::record(&path, 1, "no blktrace magic number (0x65617407)")),
    }
}

struct Blktrace {
    input: Input,
    little: bool,
    record: u64,
    /// The last device's number and its index.
    device: Option<(u32, u32)>,
    /// The event that is a request.
    taken: u32,
    /// The files of the recording, and those left to read, the next last.
    files: usize,
    rest: Vec<PathBuf>,
    notes: Vec<String>,
}

/// The fields of a record that matter.
struct Fixed {
    magic: u32,
    time: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    process: u32,
    device: u32,
    pdu_bytes: usize,
}

impl Fixed {
    fn read(raw: &[u8], little: bool) -> Fixed {
        let u32_at = |at: usize| {
            let bytes: [u8; 4] = raw[at..at + 4].try_into().expect("four bytes were cut");
            if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
        };
        let u64_at = |at: usize| {
            let (first, second) = (u64::from(u32_at(at)), u64::from(u32_at(at + 4)));
            if little { first | second << 32 } else { first << 32 | second }
        };
        let pdu = [raw[46], raw[47]];
        Fixed {
            magic: u32_at(0),
            time: u64_at(8),
            sector: u64_at(16),
            bytes: u32_at(24),
            action: u32_at(28),
            process: u32_at(32),
            device: u32_at(36),
            pdu_bytes: usize::from(if little { u16::from_le_bytes(pdu) } else { u16::from_be_bytes(pdu) }),
        }
    }

    /// The event, if it is one of a request.
    fn event(&self) -> Option<u32> {
        (self.action & NOTIFY == 0).then_some(self.action & EVENT_MASK)
    }

    fn has(&self, flag: u32) -> bool {
        self.action & flag != 0
    }
}

impl Decode for Blktrace {
    fn fill(&mut self, out: &mut Sink<'_>, at_most: usize) -> Result<(), TraceError> {
        let enough = out.records.len() + at_most;
        while out.records.len() < enough {
            let Some(raw) = self.input.take(RECORD_BYTES, "a blktrace record")? else {
                let Some(next) = self.rest.pop() else { return Ok(()) };
                (self.input, self.little) = begin(Input::open(&next)?)?;
                self.record = 0;
                continue;
            };
            let fixed = Fixed::read(raw, self.little);
            self.record += 1;
            if fixed.magic != u32::from_be_bytes([MAGIC[0], MAGIC[1], MAGIC[2], VERSION]) {
                let what = format!("found magic number {:#010x}, expected 0x65617407", fixed.magic);
                return Err(TraceError::record(self.input.path(), self.record, what));
            }
            let pdu = self.input.take(fixed.pdu_bytes, "the payload of a blktrace record")?;
            if pdu.is_none() && fixed.pdu_bytes > 0 {
                let path = self.input.path().to_owned();
                return Err(TraceError::Truncated { path, what: "the payload of a blktrace record" });
            }
            let event = fixed.event();
            if let Some(&letter) = event.and_then(|event| LETTERS.get(event as usize)) {
                out.count_event(letter);
            }
            if event == Some(self.taken) {
                self.request(&fixed, out)?;
            } else {
                out.ignore();
            }
        }
        Ok(())
    }

    fn input(&self) -> &Input {
        &self.input
    }

    #[allow(clippy::cast_precision_loss)] // a share
    fn progress(&self) -> Option<f64> {
        let done = self.files - self.rest.len() - 1;
        self.input.progress().map(|share| (done as f64 + share) / self.files as f64)
    }

    fn has_events(&self) -> bool {
        true
    }

    fn time_base(&self) -> TimeBase {
        TimeBase::One
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

impl Blktrace {
    fn request(&mut self, fixed: &Fixed, out: &mut Sink<'_>) -> Result<(), TraceError> {
        let kind = match () {
            () if fixed.has(DISCARD) => RequestKind::Trim,
            () if fixed.has(WRITE) => RequestKind::Write,
            () if fixed.has(READ) => RequestKind::Read,
            () if fixed.has(FLUSH) => RequestKind::Flush,
            () => {
                out.ignore();
                return Ok(());
            }
        };
        let range = fixed.sector.checked_mul(SECTOR).and_then(|at| byte_range(at, u64::from(fixed.bytes)));
        let Some((first_sector, sectors)) = range else {
            let what = format!("found sector {}, expected one below 2^55", fixed.sector);
            return Err(TraceError::record(self.input.path(), self.record, what));
        };
        let device = self.device(fixed.device, out);
        let base = Record { time: fixed.time, device, process: fixed.process, ..Record::default() };
        if fixed.has(FLUSH) {
            out.push(Record { kind: RequestKind::Flush, ..base });
        }
        // A flush without data is stored as a write of length zero.
        if kind != RequestKind::Flush && !(fixed.has(FLUSH) && sectors == 0) {
            let fua = kind == RequestKind::Write && fixed.has(FUA);
            out.push(Record { first_sector, sectors, kind, fua, ..base });
        }
        Ok(())
    }

    fn device(&mut self, number: u32, out: &mut Sink<'_>) -> u32 {
        match self.device {
            Some((last, index)) if last == number => index,
            _ => {
                // 12 bits of major number, 20 of minor; named as for blkparse.
                let name = format!("{},{}", number >> 20, number & 0xf_ffff);
                let index = out.devices.name(name.as_bytes());
                self.device = Some((number, index));
                index
            }
        }
    }
}
