//! Microsoft enterprise traces (SNIA): the text of Event Tracing for Windows, padded and comma-separated.
//!
//! A header section between `BeginHeader` and `EndHeader` lists each event's columns by name; `DiskRead` and
//! `DiskWrite` rows are requests, every other event is ignored and counted (`DiskFlush` too, whose rows do not match
//! their own header). `TimeStamp` is the completion in us, so the issue time is `TimeStamp - ElapsedTime`; rows are in
//! order of completion, and the reader restores issue order within a window.

use super::Format;
use crate::trace::detect::{Head, Verdict};
use crate::trace::order::TimeBase;
use crate::trace::parse::{Fields, Parsed, bad, byte_range, hexadecimal, trim, whole};
use crate::trace::record::{Record, Sink};
use crate::trace::text::{self, ParseLine};
use flashwright_block::RequestKind;

pub(super) static FORMAT: Format = Format {
    name: "etw",
    summary: "Microsoft enterprise traces: Event Tracing for Windows as text, with a header section",
    sniff,
    open: text::open::<Etw>,
    writing: None,
    reorder_window: 4096,
};

fn sniff(head: &Head<'_>) -> Verdict {
    if head.begins(b"BeginHeader") { Verdict::Fits } else { Verdict::No }
}

/// A request issued before the trace began would get a negative time, so all times are shifted up by this much.
const ZERO_NS: u64 = 1 << 60;
/// Largest number of columns searched in a row.
const COLUMNS_MAX: usize = 64;

/// The positions of an event's fields.
#[derive(Clone, Copy, Debug)]
struct Columns {
    time: usize,
    process: Option<usize>,
    offset: usize,
    size: usize,
    elapsed: usize,
    disk: usize,
}

impl Columns {
    fn find(line: &[u8]) -> Parsed<Columns> {
        let mut names: Vec<&[u8]> = Vec::new();
        let mut fields = Fields::new(line, b',');
        while let Some(name) = fields.optional().filter(|_| names.len() < COLUMNS_MAX) {
            names.push(name);
        }
        let at = |wanted: &'static str| match names.iter().position(|name| *name == wanted.as_bytes()) {
            Some(at) => Ok(at),
            None => bad(wanted, trim(line), "a column of this name in the header section"),
        };
        Ok(Columns {
            time: at("TimeStamp")?,
            process: names.iter().position(|name| name.starts_with(b"Process Name")),
            offset: at("ByteOffset")?,
            size: at("IOSize")?,
            elapsed: at("ElapsedTime")?,
            disk: at("DiskNum")?,
        })
    }

    fn last(&self) -> usize {
        [self.time, self.offset, self.size, self.elapsed, self.disk, self.process.unwrap_or(0)]
            .into_iter()
            .fold(0, usize::max)
    }
}

#[derive(Default)]
struct Etw {
    in_header: bool,
    read: Option<Columns>,
    write: Option<Columns>,
}

impl ParseLine for Etw {
    const TIME_BASE: TimeBase = TimeBase::One;

    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        let event = Fields::new(line, b',').next("event")?;
        match event {
            b"BeginHeader" => self.in_header = true,
            b"EndHeader" => self.in_header = false,
            b"DiskRead" if self.in_header => self.read = Some(Columns::find(line)?),
            b"DiskWrite" if self.in_header => self.write = Some(Columns::find(line)?),
            _ if self.in_header => {}
            b"DiskRead" => row(line, self.read, RequestKind::Read, out)?,
            b"DiskWrite" => row(line, self.write, RequestKind::Write, out)?,
            _ => out.ignore(),
        }
        Ok(())
    }
}

fn row(line: &[u8], columns: Option<Columns>, kind: RequestKind, out: &mut Sink<'_>) -> Parsed<()> {
    let Some(columns) = columns else {
        return bad("event", trim(line), "a header section that lists this event's columns first");
    };
    let mut found: [&[u8]; COLUMNS_MAX] = [b""; COLUMNS_MAX];
    let mut fields = Fields::new(line, b',');
    for at in found.iter_mut().take(columns.last() + 1) {
        *at = fields.next("column")?;
    }
    let done = whole("TimeStamp", found[columns.time])?;
    let elapsed = whole("ElapsedTime", found[columns.elapsed])?;
    let time = done.checked_mul(1_000).and_then(|done| done.checked_add(ZERO_NS)).and_then(|done| {
        let elapsed = elapsed.checked_mul(1_000)?;
        done.checked_sub(elapsed)
    });
    let Some(time) = time else {
        return bad("ElapsedTime", found[columns.elapsed], "a completion within 500 years of its issue");
    };
    let offset = hexadecimal("ByteOffset", found[columns.offset])?;
    let size = hexadecimal("IOSize", found[columns.size])?;
    let Some((first_sector, sectors)) = byte_range(offset, size) else {
        return bad("IOSize", found[columns.size], "a request below 2 TiB that ends below 2^64");
    };
    let process = columns.process.map_or(Ok(0), |at| process(found[at]))?;
    let device = out.devices.number(whole("DiskNum", found[columns.disk])?);
    out.push(Record { time, first_sector, device, sectors, process, kind, ..Record::default() });
    Ok(())
}

/// The number in `name (number)`; a process number of -1 (unknown) is 0.
fn process(text: &[u8]) -> Parsed<u32> {
    let inside = text.strip_suffix(b")").and_then(|text| {
        let open = memchr::memrchr(b'(', text)?;
        Some(trim(&text[open + 1..]))
    });
    match inside.and_then(|inside| std::str::from_utf8(inside).ok()) {
        Some("-1") => Ok(0),
        Some(inside) if inside.bytes().all(|byte| byte.is_ascii_digit()) => match inside.parse() {
            Ok(process) => Ok(process),
            Err(_) => bad("Process Name ( PID)", text, "a process number below 2^32"),
        },
        _ => bad("Process Name ( PID)", text, "a name and a process number, such as \"p0 (2004)\""),
    }
}
