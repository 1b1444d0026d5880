//! SYSTOR '17 (SNIA IOTTA): `Timestamp,Response,IOType,LUN,Offset,Size`, block traces of virtual desktops.
//!
//! Unix seconds of the issue, seconds, `R` or `W`, the number of the LUN, bytes, bytes. An empty type means that no
//! response came; such rows are ignored and counted. Source: the README of the distribution (Lee et al., SYSTOR 2017).

use super::Format;
use crate::trace::detect::{Head, Verdict};
use crate::trace::parse::{Fields, Parsed, bad, bytes, decimal_time, whole};
use crate::trace::record::{Record, Sink};
use crate::trace::text::{self, ParseLine};
use flashwright_block::RequestKind;

pub(super) static FORMAT: Format = Format {
    name: "systor",
    summary: "SYSTOR '17 CSV: seconds, response, R|W, LUN, offset, bytes",
    sniff,
    open: text::open::<Systor>,
    writing: None,
    reorder_window: 4096,
};

const HEADER: &[u8] = b"Timestamp,Response,IOType,LUN,Offset,Size";

/// Without its header line, six fields of these kinds are no other format's.
fn sniff(head: &Head<'_>) -> Verdict {
    if head.begins(HEADER) { Verdict::Fits } else { text::sniff::<Systor>(head) }
}

#[derive(Default)]
struct Systor;

impl ParseLine for Systor {
    #[inline]
    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        if line.starts_with(HEADER) {
            return Ok(());
        }
        let mut fields = Fields::new(line, b',');
        let time = decimal_time("Timestamp", fields.next("Timestamp")?, 9)?;
        let response = fields.next("Response")?;
        if !response.is_empty() {
            decimal_time("Response", response, 9)?;
        }
        let kind = match fields.next("IOType")? {
            b"R" => Some(RequestKind::Read),
            b"W" => Some(RequestKind::Write),
            b"" => None,
            other => return bad("IOType", other, "R, W or nothing"),
        };
        let device = whole("LUN", fields.next("LUN")?)?;
        let (first_sector, sectors) = bytes(fields.next("Offset")?, fields.next("Size")?)?;
        if let Some(rest) = fields.optional() {
            return bad("Size", rest, "the end of the line");
        }
        let Some(kind) = kind else {
            out.ignore();
            return Ok(());
        };
        let device = out.devices.number(device);
        out.push(Record { time, first_sector, device, sectors, kind, ..Record::default() });
        Ok(())
    }
}
