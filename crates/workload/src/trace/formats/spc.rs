//! SPC, the format of the UMass repository (Financial, WebSearch): `ASU,LBA,bytes,opcode,seconds`.
//!
//! LBA counts 512 B sectors of its own ASU (application storage unit, an address space of its own); the opcode is
//! R or W in either case; further fields are optional and ignored. Written times keep nine decimals.

use super::{Format, Setup, Writing};
use crate::trace::parse::{Fields, Parsed, bad, decimal_time, sector, whole};
use crate::trace::plausible::Shape;
use crate::trace::record::{About, Encode, Held, Output, Record, SECTOR, Sink};
use crate::trace::text::{self, ParseLine};
use flashwright_block::{Request, RequestKind};
use std::io::{self, Write};

pub(super) static FORMAT: Format = Format {
    name: "spc",
    summary: "SPC text of the UMass repository: ASU,LBA,bytes,R|W,seconds",
    sniff: |head| text::sniff_columns::<SpcLine>(head, &SHAPE),
    open: text::open::<SpcLine>,
    writing: Some(Writing {
        encoder: || Box::new(Spc),
        time_step_ns: 1,
        loses: "trims, flushes, force-unit-access, process and stream",
    }),
    reorder_window: 0,
};

const SECOND_DIGITS: usize = 9;
static SHAPE: Shape =
    Shape { separator: b',', time: (4, 1_000_000_000), address: (1, 512), length: (2, 1), device: 0, headed: false };

struct SpcLine {
    time_digits: usize,
}

impl Default for SpcLine {
    fn default() -> Self {
        SpcLine { time_digits: SECOND_DIGITS }
    }
}

impl ParseLine for SpcLine {
    const TAKES_TIME_UNIT: bool = true;

    fn set_up(&mut self, setup: &Setup) {
        self.time_digits = setup.time_digits().unwrap_or(SECOND_DIGITS);
    }

    #[inline]
    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        let mut fields = Fields::new(line, b',');
        let asu = whole("ASU", fields.next("ASU")?)?;
        let first_sector = sector("LBA", fields.next("LBA")?)?;
        let size = fields.next("size")?;
        let length = whole("size", size)?.div_ceil(SECTOR);
        let Ok(sectors) = u32::try_from(length) else {
            return bad("size", size, "a number of bytes below 2 TiB");
        };
        let kind = match fields.next("opcode")? {
            b"r" | b"R" => RequestKind::Read,
            b"w" | b"W" => RequestKind::Write,
            other => return bad("opcode", other, "R or W"),
        };
        let time = decimal_time("timestamp", fields.next("timestamp")?, self.time_digits)?;
        let device = out.devices.number(asu);
        out.push(Record { time, first_sector, device, sectors, kind, ..Record::default() });
        Ok(())
    }
}

struct Spc;

impl Encode for Spc {
    fn begin(&mut self, _: &About, _: &mut Output) -> io::Result<()> {
        Ok(())
    }

    fn request(&mut self, request: &Request, out: &mut Output) -> io::Result<Held> {
        let opcode = match request.kind {
            RequestKind::Read => 'r',
            RequestKind::Write => 'w',
            _ => return Ok(Held::Dropped),
        };
        let (size, ns) = (u64::from(request.sectors) * SECTOR, request.arrival.0);
        let (seconds, fraction) = (ns / 1_000_000_000, ns % 1_000_000_000);
        writeln!(out, "0,{},{size},{opcode},{seconds}.{fraction:09}", request.first_sector)?;
        Ok(Held::Written)
    }

    fn finish(&mut self, _: &mut Output) -> io::Result<()> {
        Ok(())
    }
}
