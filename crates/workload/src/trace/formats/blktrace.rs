//! Binary files of `blktrace`, version 7, as the kernel writes them (one file a CPU, or `blktrace -d - -o -`).
//!
//! ```text
//! offset 0      4        8    16     24    28     32  36     40  44    46      48
//!        magic  sequence time sector bytes action pid device cpu error pdu_len pdu ...
//! ```
//!
//! Either byte order: the magic number, 0x65617400 and the version in its last byte, determines it. The low half of
//! `action` is the event (1 = queued), the high half are flags. Queue events are the requests, as for `blkparse`.

use super::{Format, Setup};
use crate::trace::detect::{Head, Verdict};
use crate::trace::error::TraceError;
use crate::trace::input::Input;
use crate::trace::parse::byte_range;
use crate::trace::record::{Decode, Record, SECTOR, Sink};
use flashwright_block::RequestKind;

pub(super) static FORMAT: Format = Format {
    name: "blktrace",
    summary: "binary output of blktrace, version 7, either byte order; queue events are the requests",
    sniff,
    open,
    writing: None,
    reorder_window: 4096,
};

const MAGIC: [u8; 3] = [0x65, 0x61, 0x74];
const VERSION: u8 = 7;
const RECORD_BYTES: usize = 48;

const QUEUED: u32 = 1;
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

fn open(mut input: Input, _: &Setup) -> Result<Box<dyn Decode>, TraceError> {
    let found = order(input.head(4)?.0);
    let path = input.path().to_owned();
    match found {
        Some((little, VERSION)) => Ok(Box::new(Blktrace { input, little, record: 0, device: None })),
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

    fn is_queued(&self) -> bool {
        self.action & EVENT_MASK == QUEUED && self.action & NOTIFY == 0
    }

    fn has(&self, flag: u32) -> bool {
        self.action & flag != 0
    }
}

impl Decode for Blktrace {
    fn fill(&mut self, out: &mut Sink<'_>, at_most: usize) -> Result<(), TraceError> {
        let enough = out.records.len() + at_most;
        while out.records.len() < enough {
            let Some(raw) = self.input.take(RECORD_BYTES, "a blktrace record")? else { return Ok(()) };
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
            if fixed.is_queued() {
                self.queued(&fixed, out)?;
            } else {
                out.ignore();
            }
        }
        Ok(())
    }

    fn input(&self) -> &Input {
        &self.input
    }
}

impl Blktrace {
    fn queued(&mut self, fixed: &Fixed, out: &mut Sink<'_>) -> Result<(), TraceError> {
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
