//! CSV of `replayer` (huaicheng/replayer, and the simulators that use its traces): `ms,disk,offset,bytes,operation`.
//!
//! Offset and size are bytes; 1 is a read, 0 a write. Its own README says so, and that it ignores the disk; here disks
//! keep addresses of their own. The same five columns separated by blanks are the format `bytes`.

use super::Format;
use crate::trace::detect::{Head, Verdict};
use crate::trace::parse::{Fields, Parsed, bad, bytes, decimal_time, whole};
use crate::trace::record::{Record, Sink};
use crate::trace::text::{self, ParseLine};
use flashwright_block::RequestKind;

pub(super) static FORMAT: Format = Format {
    name: "replayer",
    summary: "CSV of replayer: milliseconds,disk,offset,bytes,operation (1 = read, 0 = write)",
    sniff,
    open: text::open::<Replayer>,
    writing: None,
    reorder_window: 0,
};

/// With fewer requests, nothing is decided.
const LINES_MIN: usize = 4;

/// Five numbers with commas are many things. These are: times with a fraction, so milliseconds, and offsets and sizes
/// that are all multiples of 512, which sectors practically never are.
fn sniff(head: &Head<'_>) -> Verdict {
    let (mut good, mut bad) = (0usize, 0usize);
    for line in head.lines() {
        let mut fields = Fields::new(line, b',');
        let time = fields.optional().unwrap_or(b"");
        let mut next = || fields.optional().and_then(|field| whole("", field).ok());
        let found = (next(), next(), next(), next());
        let fits = time.contains(&b'.')
            && decimal_time("", time, 6).is_ok()
            && matches!(found, (Some(_), Some(offset), Some(size), Some(0 | 1))
                if offset % 512 == 0 && size % 512 == 0 && size > 0)
            && fields.optional().is_none();
        *(if fits { &mut good } else { &mut bad }) += 1;
    }
    // One line may be a header.
    if good >= LINES_MIN && bad <= 1 { Verdict::Fits } else { Verdict::No }
}

#[derive(Default)]
struct Replayer;

impl ParseLine for Replayer {
    const ASSUMED: &'static [&'static str] = &[
        "times are in milliseconds, and 1 is a read and 0 a write, as in the format replayer; --columns describes others",
    ];

    #[inline]
    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        let mut fields = Fields::new(line, b',');
        let time = decimal_time("time", fields.next("time")?, 6)?;
        let device = whole("disk", fields.next("disk")?)?;
        let (first_sector, sectors) = bytes(fields.next("offset")?, fields.next("size")?)?;
        let kind = match fields.next("operation")? {
            b"1" => RequestKind::Read,
            b"0" => RequestKind::Write,
            other => return bad("operation", other, "1 (read) or 0 (write)"),
        };
        let device = out.devices.number(device);
        out.push(Record { time, first_sector, device, sectors, kind, ..Record::default() });
        Ok(())
    }
}
