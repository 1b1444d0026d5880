//! DiskSim ASCII: `ms device sector sectors flags`, bit 0 of the flags set for reads.
//!
//! Looks like three other formats; `columns` distinguishes them. Written times keep six decimals.

use super::columns::Columns;
use super::{Format, Setup, Writing};
use crate::trace::parse::Parsed;
use crate::trace::record::{About, Encode, Held, Output, Sink};
use crate::trace::text::{self, ParseLine};
use flashwright_block::{Request, RequestKind};
use std::io::{self, Write};

pub(super) static FORMAT: Format = Format {
    name: "disksim",
    summary: "DiskSim ASCII: ms device sector sectors flags (bit 0 = read)",
    sniff: |head| Columns::DiskSim.sniff(head),
    open: text::open::<DiskSimLine>,
    writing: Some(Writing {
        encoder: || Box::new(DiskSim),
        time_step_ns: 1,
        loses: "trims, flushes, force-unit-access, process and stream",
    }),
    reorder_window: 0,
};

#[derive(Default)]
struct DiskSimLine {
    time_digits: Option<usize>,
}

impl ParseLine for DiskSimLine {
    const TAKES_TIME_UNIT: bool = true;

    fn set_up(&mut self, setup: &Setup) {
        self.time_digits = setup.time_digits();
    }

    #[inline]
    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        Columns::DiskSim.line(line, self.time_digits, out)
    }
}

struct DiskSim;

impl Encode for DiskSim {
    fn begin(&mut self, _: &About, _: &mut Output) -> io::Result<()> {
        Ok(())
    }

    fn request(&mut self, request: &Request, out: &mut Output) -> io::Result<Held> {
        let flags = match request.kind {
            RequestKind::Read => 1,
            RequestKind::Write => 0,
            _ => return Ok(Held::Dropped),
        };
        let (ms, fraction) = (request.arrival.0 / 1_000_000, request.arrival.0 % 1_000_000);
        writeln!(out, "{ms}.{fraction:06} 0 {} {} {flags}", request.first_sector, request.sectors)?;
        Ok(Held::Written)
    }

    fn finish(&mut self, _: &mut Output) -> io::Result<()> {
        Ok(())
    }
}
