//! CloudPhysics' own binary records of a virtual machine's SCSI commands, little-endian, in two versions.
//!
//! ```text
//! version 1, 32 B: number u32, bytes u32, segments u32, opcode u16, version u16, sector u64, us u64
//! version 2, 40 B: opcode u16, version u16, number u32, bytes u32, segments u32, sector u64, us u64, response us u64
//! ```
//!
//! Sectors are of 512 B. Which version it is, the opcodes show: in the place of one version they are commands, in that of
//! the other they are not. Source: `traceReader/customizedReader/vscsi.h` of libCacheSim (Waldspurger et al., FAST 2015).

use super::cloudphysics::kind;
use super::{Format, Setup};
use crate::trace::detect::{Head, Verdict};
use crate::trace::error::TraceError;
use crate::trace::input::Input;
use crate::trace::parse::byte_range;
use crate::trace::record::{Decode, Record, SECTOR, Sink};
use flashwright_block::RequestKind;

pub(super) static FORMAT: Format = Format {
    name: "vscsi",
    summary: "CloudPhysics binary (vscsi), versions 1 and 2: SCSI commands of a virtual machine",
    sniff: |head| if layout(head).is_some() { Verdict::Fits } else { Verdict::No },
    open,
    writing: None,
    reorder_window: 0,
};

/// Bytes of a file that its version is found from.
const HEAD_BYTES: usize = 1 << 14;
const RECORDS_MIN: usize = 2;
/// Longest transfer, most segments and largest step of the numbers that a record of the first ones may have.
const BYTES_MAX: u32 = 1 << 26;
const SEGMENTS_MAX: u32 = 1 << 16;
const STEP_MAX: u32 = 1 << 16;
const SECTOR_MAX: u64 = u64::MAX / SECTOR;

/// Where the fields of a version are.
#[derive(Clone, Copy, Debug)]
struct Layout {
    record_bytes: usize,
    number: usize,
    bytes: usize,
    segments: usize,
    opcode: usize,
    sector: usize,
    time: usize,
}

const LAYOUTS: [Layout; 2] = [
    Layout { record_bytes: 32, number: 0, bytes: 4, segments: 8, opcode: 12, sector: 16, time: 24 },
    Layout { record_bytes: 40, number: 4, bytes: 8, segments: 12, opcode: 0, sector: 16, time: 24 },
];

/// One record.
struct Command {
    number: u32,
    bytes: u32,
    segments: u32,
    opcode: u16,
    sector: u64,
    time_us: u64,
}

impl Layout {
    fn read(&self, raw: &[u8]) -> Command {
        let u32_at = |at: usize| u32::from_le_bytes(raw[at..at + 4].try_into().expect("four bytes were cut"));
        let u64_at = |at: usize| u64::from_le_bytes(raw[at..at + 8].try_into().expect("eight bytes were cut"));
        Command {
            number: u32_at(self.number),
            bytes: u32_at(self.bytes),
            segments: u32_at(self.segments),
            opcode: u16::from_le_bytes([raw[self.opcode], raw[self.opcode + 1]]),
            sector: u64_at(self.sector),
            time_us: u64_at(self.time),
        }
    }

    /// Whether all of the first records are commands, numbered and timed one after the other.
    fn fits(&self, head: &Head<'_>) -> bool {
        let records = head.bytes().chunks_exact(self.record_bytes);
        if head.is_whole() && !records.remainder().is_empty() || records.len() < RECORDS_MIN {
            return false;
        }
        let commands: Vec<_> = records.map(|raw| self.read(raw)).collect();
        let sound = |command: &Command| {
            kind(u64::from(command.opcode)).is_some()
                && command.bytes <= BYTES_MAX
                && u64::from(command.bytes).is_multiple_of(SECTOR)
                && command.segments <= SEGMENTS_MAX
                && command.sector <= SECTOR_MAX
        };
        let follows = |pair: &[Command]| {
            pair[1].number.wrapping_sub(pair[0].number) <= STEP_MAX && pair[1].time_us >= pair[0].time_us
        };
        // Commands that are no requests, and a few that overtake others, occur.
        let most = |count: usize, of: usize| count * 10 >= of * 9;
        most(commands.iter().filter(|command| sound(command)).count(), commands.len())
            && most(commands.windows(2).filter(|pair| follows(pair)).count(), commands.len() - 1)
    }
}

fn layout(head: &Head<'_>) -> Option<Layout> {
    let (bytes, whole) = head.first(HEAD_BYTES);
    let head = Head::new(bytes, whole);
    LAYOUTS.into_iter().find(|layout| layout.fits(&head))
}

fn open(mut input: Input, _: &Setup) -> Result<Box<dyn Decode>, TraceError> {
    let (bytes, whole) = input.head(HEAD_BYTES)?;
    let found = layout(&Head::new(bytes, whole));
    match found {
        Some(layout) => Ok(Box::new(Vscsi { input, layout, record: 0 })),
        None => Err(TraceError::record(input.path(), 1, "no SCSI commands where versions 1 and 2 have them")),
    }
}

struct Vscsi {
    input: Input,
    layout: Layout,
    record: u64,
}

impl Decode for Vscsi {
    fn fill(&mut self, out: &mut Sink<'_>, at_most: usize) -> Result<(), TraceError> {
        let enough = out.records.len() + at_most;
        while out.records.len() < enough {
            let Some(raw) = self.input.take(self.layout.record_bytes, "a vscsi record")? else { return Ok(()) };
            let command = self.layout.read(raw);
            self.record += 1;
            let Some(kind) = kind(u64::from(command.opcode)) else {
                out.ignore();
                continue;
            };
            let offset = command.sector.checked_mul(SECTOR);
            let range = offset.and_then(|offset| byte_range(offset, u64::from(command.bytes)));
            let (Some((first_sector, sectors)), Some(time)) = (range, command.time_us.checked_mul(1_000)) else {
                let what = format!(
                    "found sector {} and {} us, expected a sector below 2^55 and at most 584 years",
                    command.sector, command.time_us
                );
                return Err(TraceError::record(self.input.path(), self.record, what));
            };
            let (first_sector, sectors) = if kind == RequestKind::Flush { (0, 0) } else { (first_sector, sectors) };
            let device = out.devices.number(0);
            out.push(Record { time, first_sector, device, sectors, kind, ..Record::default() });
        }
        Ok(())
    }

    fn input(&self) -> &Input {
        &self.input
    }
}
