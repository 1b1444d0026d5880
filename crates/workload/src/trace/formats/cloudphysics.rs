//! CloudPhysics virtual machines as CSV: `version,time,op,size,lbn`.
//!
//! Whole seconds, the SCSI operation code in hexadecimal, bytes, 512 B sectors. Reads, writes, unmaps and cache
//! synchronisations are taken; other commands are ignored and counted.

use super::Format;
use crate::trace::detect::{Head, Verdict};
use crate::trace::parse::{Fields, Parsed, bad, decimal_time, hexadecimal, sector, whole};
use crate::trace::record::{Record, SECTOR, Sink};
use crate::trace::text::{self, ParseLine};
use flashwright_block::RequestKind;

pub(super) static FORMAT: Format = Format {
    name: "cloudphysics",
    summary: "CloudPhysics CSV with a header line: version, seconds, SCSI opcode, bytes, sector",
    sniff,
    open: text::open::<CloudPhysics>,
    writing: None,
    reorder_window: 0,
};

const HEADER: &[u8] = b"version,time,op,size,lbn";

fn sniff(head: &Head<'_>) -> Verdict {
    if head.begins(HEADER) { Verdict::Fits } else { Verdict::No }
}

/// SCSI commands that are requests here (SBC-4, operation codes).
pub(super) fn kind(opcode: u64) -> Option<RequestKind> {
    match opcode {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(RequestKind::Read),
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0x8e => Some(RequestKind::Write),
        0x42 => Some(RequestKind::Trim),
        0x35 | 0x91 => Some(RequestKind::Flush),
        _ => None,
    }
}

#[derive(Default)]
struct CloudPhysics;

impl ParseLine for CloudPhysics {
    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        if line.starts_with(HEADER) {
            return Ok(());
        }
        let mut fields = Fields::new(line, b',');
        fields.next("version")?;
        let time = decimal_time("time", fields.next("time")?, 9)?;
        let opcode = hexadecimal("op", fields.next("op")?)?;
        let size = fields.next("size")?;
        let length = whole("size", size)?.div_ceil(SECTOR);
        let Ok(sectors) = u32::try_from(length) else {
            return bad("size", size, "a number of bytes below 2 TiB");
        };
        let first_sector = sector("lbn", fields.next("lbn")?)?;
        let Some(kind) = kind(opcode) else {
            out.ignore();
            return Ok(());
        };
        let device = out.devices.number(0);
        let (first_sector, sectors) = if kind == RequestKind::Flush { (0, 0) } else { (first_sector, sectors) };
        out.push(Record { time, first_sector, device, sectors, kind, ..Record::default() });
        Ok(())
    }
}
