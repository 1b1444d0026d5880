//! MSR Cambridge: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! The time is a Windows file time (100 ns ticks since 1601), offset and size are bytes; the response time is not
//! used. A device is a host and a disk, shown as `host.disk`.

use super::{Format, Setup, Writing};
use crate::trace::parse::{Fields, Parsed, bad, bytes, time_in};
use crate::trace::plausible::Shape;
use crate::trace::record::{About, Encode, Held, Output, Record, SECTOR, Sink};
use crate::trace::text::{self, ParseLine};
use flashwright_block::{Request, RequestKind};
use std::io::{self, Write};

pub(super) static FORMAT: Format = Format {
    name: "msr",
    summary: "MSR Cambridge CSV: filetime,host,disk,Read|Write,offset,bytes,response",
    sniff: |head| text::sniff_columns::<MsrLine>(head, &SHAPE),
    open: text::open::<MsrLine>,
    writing: Some(Writing {
        encoder: || Box::new(Msr),
        time_step_ns: TICK_NS,
        loses: "trims, flushes, force-unit-access, process and stream",
    }),
    reorder_window: 0,
};

const TICK_NS: u64 = 100;
/// The file time that written traces start at: 2007-02-22, when the published ones start.
const START_TICKS: u64 = 128_166_372_000_000_000;

static SHAPE: Shape =
    Shape { separator: b',', time: (0, TICK_NS), address: (4, 1), length: (5, 1), device: 2, headed: false };

#[derive(Default)]
struct MsrLine {
    time_digits: Option<usize>,
}

impl ParseLine for MsrLine {
    const TAKES_TIME_UNIT: bool = true;

    fn set_up(&mut self, setup: &Setup) {
        self.time_digits = setup.time_digits();
    }

    #[inline]
    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        let mut fields = Fields::new(line, b',');
        let time = time_in("Timestamp", fields.next("Timestamp")?, TICK_NS, self.time_digits)?;
        let before = fields.rest();
        fields.next("Hostname")?;
        fields.next("DiskNumber")?;
        // The text "host,disk" of the line is the device's key.
        let name = &before[..before.len() - fields.rest().len()];
        let name = name.strip_suffix(b",").unwrap_or(name);
        let kind = match fields.next("Type")? {
            b"Read" => RequestKind::Read,
            b"Write" => RequestKind::Write,
            other if other.eq_ignore_ascii_case(b"read") => RequestKind::Read,
            other if other.eq_ignore_ascii_case(b"write") => RequestKind::Write,
            other => return bad("Type", other, "Read or Write"),
        };
        let (first_sector, sectors) = bytes(fields.next("Offset")?, fields.next("Size")?)?;
        let device = out.devices.name(name);
        out.push(Record { time, first_sector, device, sectors, kind, ..Record::default() });
        Ok(())
    }
}

struct Msr;

impl Encode for Msr {
    fn begin(&mut self, _: &About, _: &mut Output) -> io::Result<()> {
        Ok(())
    }

    fn request(&mut self, request: &Request, out: &mut Output) -> io::Result<Held> {
        let kind = match request.kind {
            RequestKind::Read => "Read",
            RequestKind::Write => "Write",
            _ => return Ok(Held::Dropped),
        };
        let ticks = START_TICKS.saturating_add(request.arrival.0 / TICK_NS);
        let (offset, size) = (request.first_sector * SECTOR, u64::from(request.sectors) * SECTOR);
        writeln!(out, "{ticks},trace,0,{kind},{offset},{size},0")?;
        Ok(Held::Written)
    }

    fn finish(&mut self, _: &mut Output) -> io::Result<()> {
        Ok(())
    }
}
