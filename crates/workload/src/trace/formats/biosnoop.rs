//! Output of `biosnoop` (BCC and libbpf-tools): `TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms)`.
//!
//! The header line says which columns there are, and it is needed. `TIME(s)` is the completion, counted from the first,
//! so a request arrives `LAT(ms)` earlier, or with the option `-Q` also `QUE(ms)` earlier; rows are in order of
//! completion, and the reader restores the order of arrival within a window. Sectors are of 512 B. Source:
//! `tools/biosnoop.py` of iovisor/bcc. The biosnoop of bpftrace prints neither address nor size.

use super::Format;
use crate::trace::detect::{Head, Verdict};
use crate::trace::parse::{Parsed, Words, bad, byte_range, decimal_time, sector, whole};
use crate::trace::record::{Record, SECTOR, Sink};
use crate::trace::text::{self, ParseLine};
use flashwright_block::RequestKind;

pub(super) static FORMAT: Format = Format {
    name: "biosnoop",
    summary: "output of biosnoop (BCC, libbpf-tools) with its header line; arrival is TIME(s) less LAT(ms)",
    sniff,
    open: text::open::<Biosnoop>,
    writing: None,
    reorder_window: 4096,
};

/// The first completion is at 0 and its arrival before, so all times are shifted up by this much.
const ZERO_NS: u64 = 1 << 60;
const COLUMNS_MAX: usize = 16;
/// Digits of a nanosecond in a millisecond and in a second.
const MS_DIGITS: usize = 6;
const S_DIGITS: usize = 9;

fn sniff(head: &Head<'_>) -> Verdict {
    let header = head.lines().find(|line| line.trim_ascii_start().starts_with(b"TIME(s)"));
    if header.is_some_and(|line| Columns::find(line).is_ok()) { Verdict::Fits } else { Verdict::No }
}

/// Positions of the columns. Those behind the name of the process, which may have blanks, are counted from the end.
#[derive(Clone, Copy, Debug)]
struct Columns {
    count: usize,
    command: usize,
    process: usize,
    disk: usize,
    kind: usize,
    sector: usize,
    bytes: usize,
    queued: Option<usize>,
    latency: usize,
}

impl Columns {
    fn find(line: &[u8]) -> Parsed<Columns> {
        let mut names: Vec<&[u8]> = Vec::new();
        let mut words = Words(line);
        while let Some(name) = words.optional().filter(|_| names.len() < COLUMNS_MAX) {
            names.push(name);
        }
        let at = |wanted: &'static str| match names.iter().position(|name| *name == wanted.as_bytes()) {
            Some(at) => Ok(at),
            None => bad(wanted, line, "a column of this name in the header line"),
        };
        let queued = names.iter().position(|name| *name == b"QUE(ms)");
        Ok(Columns {
            count: names.len(),
            command: at("COMM")?,
            process: at("PID")?,
            disk: at("DISK")?,
            kind: at("T")?,
            sector: at("SECTOR")?,
            bytes: at("BYTES")?,
            queued,
            latency: at("LAT(ms)")?,
        })
    }
}

#[derive(Default)]
struct Biosnoop {
    columns: Option<Columns>,
}

impl ParseLine for Biosnoop {
    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        if line.trim_ascii_start().starts_with(b"TIME(s)") {
            self.columns = Some(Columns::find(line)?);
            return Ok(());
        }
        let Some(columns) = self.columns else {
            return bad("TIME(s)", line, "the header line of biosnoop first");
        };
        row(line, columns, out)
    }
}

fn row(line: &[u8], columns: Columns, out: &mut Sink<'_>) -> Parsed<()> {
    let mut all: [&[u8]; 2 * COLUMNS_MAX] = [b""; 2 * COLUMNS_MAX];
    let (mut words, mut found) = (Words(line), 0);
    while let Some(word) = words.optional() {
        if found == all.len() {
            return bad("COMM", line, "a name of a process with fewer blanks");
        }
        all[found] = word;
        found += 1;
    }
    // Blanks in the name make words of their own.
    let Some(extra) = found.checked_sub(columns.count) else {
        return bad("LAT(ms)", b"", "one more field; the line ends too early");
    };
    let at = |column: usize| all[if column > columns.command { column + extra } else { column }];
    let done = decimal_time("TIME(s)", all[0], S_DIGITS)?;
    let latency = decimal_time("LAT(ms)", at(columns.latency), MS_DIGITS)?;
    let queued = columns.queued.map_or(Ok(0), |column| decimal_time("QUE(ms)", at(column), MS_DIGITS))?;
    let time = done.checked_add(ZERO_NS).and_then(|done| done.checked_sub(latency)?.checked_sub(queued));
    let Some(time) = time else {
        return bad("LAT(ms)", at(columns.latency), "a completion within 30 years of its arrival");
    };
    let kind = match at(columns.kind).first() {
        Some(b'R') => RequestKind::Read,
        Some(b'W') => RequestKind::Write,
        Some(b'D') => RequestKind::Trim,
        Some(b'F') => RequestKind::Flush,
        // Requests of neither kind, such as those to the drive itself.
        Some(b'N' | b'M' | b'-' | b'?') => {
            out.ignore();
            return Ok(());
        }
        _ => return bad("T", at(columns.kind), "R, W, D or F first"),
    };
    let base = sector("SECTOR", at(columns.sector))?;
    let Some((first_sector, sectors)) = byte_range(base * SECTOR, whole("BYTES", at(columns.bytes))?) else {
        return bad("BYTES", at(columns.bytes), "a request below 2 TiB that ends below 2^64");
    };
    // 0xffffffff or a word where biosnoop does not know the process.
    let process = whole("PID", at(columns.process)).ok().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0);
    let device = out.devices.name(at(columns.disk));
    let (first_sector, sectors) = if kind == RequestKind::Flush { (0, 0) } else { (first_sector, sectors) };
    out.push(Record { time, first_sector, device, sectors, process, kind, ..Record::default() });
    Ok(())
}
