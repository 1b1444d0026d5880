//! DiskMon of Sysinternals for Windows, as it saves its list: `number time duration disk Read|Write sector length`.
//!
//! Columns are separated by tabs, the last is often followed by one. Time is in seconds since the start, or the time of
//! day where DiskMon shows clock times; sector and length count 512 B ("Read and write offsets are presented in terms
//! of sectors (512 bytes)", its help). Events of other kinds are ignored and counted.

use super::Format;
use crate::trace::parse::{Fields, Parsed, bad, decimal_time, sector, sectors, whole};
use crate::trace::record::{Record, Sink};
use crate::trace::text::{self, ParseLine};
use flashwright_block::RequestKind;

pub(super) static FORMAT: Format = Format {
    name: "diskmon",
    summary: "saved list of Windows DiskMon, tabs: number, seconds, duration, disk, Read|Write, sector, sectors",
    sniff: text::sniff::<DiskMon>,
    open: text::open::<DiskMon>,
    writing: None,
    reorder_window: 4096,
};

const HOUR_NS: u64 = 3_600_000_000_000;

#[derive(Default)]
struct DiskMon;

impl ParseLine for DiskMon {
    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        let mut fields = Fields::new(line, b'\t');
        whole("#", fields.next("#")?)?;
        let time = time(fields.next("Time")?)?;
        decimal_time("Duration (s)", fields.next("Duration (s)")?, 9)?;
        let disk = whole("Disk", fields.next("Disk")?)?;
        let kind = match fields.next("Request")? {
            b"Read" => Some(RequestKind::Read),
            b"Write" => Some(RequestKind::Write),
            other if other.first().is_some_and(u8::is_ascii_alphabetic) => None,
            other => return bad("Request", other, "Read or Write"),
        };
        let first_sector = sector("Sector", fields.next("Sector")?)?;
        let sectors = sectors("Length", fields.next("Length")?, 1)?;
        let Some(kind) = kind else {
            out.ignore();
            return Ok(());
        };
        let device = out.devices.number(disk);
        out.push(Record { time, first_sector, device, sectors, kind, ..Record::default() });
        Ok(())
    }
}

/// Seconds, or a time of day such as `10:04:59.250` or `10:04:59 PM`.
fn time(text: &[u8]) -> Parsed<u64> {
    let mut parts = text.splitn(3, |byte| *byte == b':');
    let (Some(hours), Some(minutes), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return decimal_time("Time", text, 9);
    };
    let (rest, half) = match rest {
        [seconds @ .., b' ', b'A' | b'a', b'M' | b'm'] => (seconds, Some(0)),
        [seconds @ .., b' ', b'P' | b'p', b'M' | b'm'] => (seconds, Some(12)),
        seconds => (seconds, None),
    };
    let hours = whole("Time", hours)?;
    let minutes = whole("Time", minutes)?;
    let seconds = decimal_time("Time", rest, 9)?;
    // Noon and midnight are hour 12 of their halves.
    let hours = half.map_or(hours, |half| hours % 12 + half);
    if hours > 23 || minutes > 59 || seconds >= HOUR_NS / 60 {
        return bad("Time", text, "seconds, or a time of day such as 10:04:59.250");
    }
    Ok(hours * HOUR_NS + minutes * (HOUR_NS / 60) + seconds)
}
