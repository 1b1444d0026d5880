//! HP hplajw (1992) as CSV: `time_s,device,sector,size_bytes,op,start_delay_us,complete_delay_us`.
//!
//! Sectors are those of the disks of that machine, 256 B: the highest address in the published week, 1,308,080,
//! times 256 B is the 335 MB of its root disk, and sequential runs close only with that size.

use super::Format;
use crate::trace::detect::{Head, Verdict};
use crate::trace::parse::{Fields, Parsed, bad, byte_range, decimal_time, whole};
use crate::trace::record::{Record, Sink};
use crate::trace::text::{self, ParseLine};
use flashwright_block::RequestKind;

pub(super) static FORMAT: Format = Format {
    name: "hplajw",
    summary: "HP hplajw CSV with a header line: seconds, device, 256 B sector, bytes, R|W, delays",
    sniff,
    open: text::open::<Hplajw>,
    writing: None,
    reorder_window: 0,
};

const HEADER: &[u8] = b"time_s,device,sector,size_bytes,op";
const HP_SECTOR_BYTES: u64 = 256;

fn sniff(head: &Head<'_>) -> Verdict {
    if head.begins(HEADER) { Verdict::Fits } else { Verdict::No }
}

#[derive(Default)]
struct Hplajw;

impl ParseLine for Hplajw {
    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        if line.starts_with(HEADER) {
            return Ok(());
        }
        let mut fields = Fields::new(line, b',');
        let time = decimal_time("time_s", fields.next("time_s")?, 9)?;
        let device = whole("device", fields.next("device")?)?;
        let at = fields.next("sector")?;
        let sector = whole("sector", at)?;
        let size = whole("size_bytes", fields.next("size_bytes")?)?;
        let range = sector.checked_mul(HP_SECTOR_BYTES).and_then(|offset| byte_range(offset, size));
        let Some((first_sector, sectors)) = range else {
            return bad("sector", at, "a request below 2 TiB that ends below 2^64 bytes");
        };
        let kind = match fields.next("op")? {
            b"R" | b"r" => RequestKind::Read,
            b"W" | b"w" => RequestKind::Write,
            other => return bad("op", other, "R or W"),
        };
        let device = out.devices.number(device);
        out.push(Record { time, first_sector, device, sectors, kind, ..Record::default() });
        Ok(())
    }
}
