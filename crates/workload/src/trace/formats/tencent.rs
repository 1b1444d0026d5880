//! Tencent CBS traces: `Timestamp,Offset,Size,IOType,VolumeID`, seconds, 512 B sectors, type 0 read and 1 write.
//!
//! Each volume has its own address space.

use super::{Format, Setup};
use crate::trace::parse::{Fields, Parsed, bad, decimal_time, sector, sectors, whole};
use crate::trace::plausible::Shape;
use crate::trace::record::{Record, Sink};
use crate::trace::text::{self, ParseLine};
use flashwright_block::RequestKind;

pub(super) static FORMAT: Format = Format {
    name: "tencent",
    summary: "Tencent CBS CSV: seconds,sector,sectors,0|1 (1 = write),volume",
    sniff: |head| text::sniff_columns::<Tencent>(head, &SHAPE),
    open: text::open::<Tencent>,
    writing: None,
    reorder_window: 0,
};

const SECOND_DIGITS: usize = 9;
static SHAPE: Shape =
    Shape { separator: b',', time: (0, 1_000_000_000), address: (1, 512), length: (2, 512), device: 4, headed: false };

struct Tencent {
    time_digits: usize,
}

impl Default for Tencent {
    fn default() -> Self {
        Tencent { time_digits: SECOND_DIGITS }
    }
}

impl ParseLine for Tencent {
    const TAKES_TIME_UNIT: bool = true;

    fn set_up(&mut self, setup: &Setup) {
        self.time_digits = setup.time_digits().unwrap_or(SECOND_DIGITS);
    }

    #[inline]
    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        let mut fields = Fields::new(line, b',');
        let time = decimal_time("Timestamp", fields.next("Timestamp")?, self.time_digits)?;
        let first_sector = sector("Offset", fields.next("Offset")?)?;
        let sectors = sectors("Size", fields.next("Size")?, 1)?;
        let kind = match fields.next("IOType")? {
            b"0" => RequestKind::Read,
            b"1" => RequestKind::Write,
            other => return bad("IOType", other, "0 (read) or 1 (write)"),
        };
        let volume = whole("VolumeID", fields.next("VolumeID")?)?;
        let device = out.devices.number(volume);
        out.push(Record { time, first_sector, device, sectors, kind, ..Record::default() });
        Ok(())
    }
}
