//! Alibaba block traces: `device_id,opcode,offset,length,timestamp`, bytes and microseconds, opcode R or W.
//!
//! Each device has its own address space. A header line with these names is skipped.

use super::{Format, Setup};
use crate::trace::parse::{Fields, Parsed, bad, bytes, time_in, whole};
use crate::trace::plausible::Shape;
use crate::trace::record::{Record, Sink};
use crate::trace::text::{self, ParseLine};
use flashwright_block::RequestKind;

pub(super) static FORMAT: Format = Format {
    name: "alibaba",
    summary: "Alibaba block trace CSV: device,R|W,offset,bytes,microseconds",
    sniff: |head| text::sniff_columns::<Alibaba>(head, &SHAPE),
    open: text::open::<Alibaba>,
    writing: None,
    reorder_window: 0,
};

static SHAPE: Shape =
    Shape { separator: b',', time: (4, 1_000), address: (2, 1), length: (3, 1), device: 0, headed: false };

#[derive(Default)]
struct Alibaba {
    time_digits: Option<usize>,
}

impl ParseLine for Alibaba {
    const TAKES_TIME_UNIT: bool = true;

    fn set_up(&mut self, setup: &Setup) {
        self.time_digits = setup.time_digits();
    }

    #[inline]
    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        if line.starts_with(b"device_id") {
            return Ok(());
        }
        let mut fields = Fields::new(line, b',');
        let device = whole("device_id", fields.next("device_id")?)?;
        let kind = match fields.next("opcode")? {
            b"R" => RequestKind::Read,
            b"W" => RequestKind::Write,
            other => return bad("opcode", other, "R or W"),
        };
        let (first_sector, sectors) = bytes(fields.next("offset")?, fields.next("length")?)?;
        let time = time_in("timestamp", fields.next("timestamp")?, 1_000, self.time_digits)?;
        let device = out.devices.number(device);
        out.push(Record { time, first_sector, device, sectors, kind, ..Record::default() });
        Ok(())
    }
}
