//! fio I/O logs (`write_iolog`, `read_iolog`), versions 2 and 3.
//!
//! Version 2 is `file action [offset length]` and has no times: requests arrive at once, except for `wait` lines. fio's
//! manual says that these are microseconds from the previous `wait`; what fio does is to sleep until that many
//! milliseconds after its start (`read_iolog_get` in iolog.c compares them with `mtime_since_genesis`, measured with
//! 3.33 too), and so does this reader. Version 3 is `us file action [offset length]`: fio writes and replays
//! microseconds, although milliseconds have been documented.
//! `add`, `open` and `close` name files, each of which is a device; `sync`, `datasync` and `syncfs` are flushes.
//! `sync_file_range` writes pages of the host out and flushes no drive, so it is ignored and counted. Jobs that write one
//! log append to it, each a section with a header of its own; beyond 4 KiB each, they cut each other's lines. Written as
//! version 3, all requests on one file called `trace`; times are rounded down to microseconds.

use super::{Format, Setup, Writing};
use crate::trace::detect::{Head, Verdict};
use crate::trace::parse::{Parsed, Words, bad, bytes, time_in, trim};
use crate::trace::plausible::Shape;
use crate::trace::record::{About, Encode, Held, Output, Record, SECTOR, Sink};
use crate::trace::text::{self, ParseLine};
use flashwright_block::{Request, RequestKind};
use std::io::{self, Write};

pub(super) static FORMAT: Format = Format {
    name: "fio",
    summary: "fio I/O log, version 2 or 3",
    sniff,
    open: text::open::<Fio>,
    writing: Some(Writing {
        encoder: || Box::new(FioLog::default()),
        time_step_ns: US_NS,
        loses: "force-unit-access, process and stream",
    }),
    reorder_window: 0,
};

const US_NS: u64 = 1_000;
const MS_NS: u64 = 1_000_000;
const FILE: &str = "trace";
const HEADER: &[u8] = b"fio version ";

/// A header ends so.
const HEADER_END: &[u8] = b" iolog";
/// What becomes of a log of jobs that write more than a buffer of 4 KiB.
const CUT: &str = "a whole line; jobs that write one log at once cut each other's lines: give each a write_iolog of its \
                   own, or skip what is cut (--skip-bad-lines)";

/// Version 3, which alone has times.
static SHAPE: Shape =
    Shape { separator: b' ', time: (0, US_NS), address: (3, 1), length: (4, 1), device: 1, headed: true };

fn sniff(head: &Head<'_>) -> Verdict {
    match () {
        () if head.begins(b"fio version 3") => Verdict::Columns(&SHAPE),
        () if head.begins(HEADER) => Verdict::Fits,
        () => Verdict::No,
    }
}

/// State between lines.
#[derive(Default)]
struct Fio {
    version: Version,
    /// The current time from the waits of version 2.
    waited_ns: u64,
    time_digits: Option<usize>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Version {
    #[default]
    Unknown,
    Two,
    Three,
}

impl ParseLine for Fio {
    const TAKES_TIME_UNIT: bool = true;

    fn set_up(&mut self, setup: &Setup) {
        self.time_digits = setup.time_digits();
    }

    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        match (self.version, line.starts_with(HEADER)) {
            (_, true) => {
                out.begin_section();
                self.waited_ns = 0;
                self.header(line)
            }
            (Version::Two | Version::Three, false) if line.ends_with(HEADER_END) => {
                out.begin_section();
                bad("line", line, CUT)
            }
            (Version::Unknown, false) => bad("header", line, "\"fio version 2 iolog\" or \"fio version 3 iolog\""),
            (Version::Two, false) => self.event(Words(line), None, out),
            (Version::Three, false) => {
                let mut words = Words(line);
                let time = time_in("timestamp", words.next("timestamp")?, US_NS, self.time_digits)?;
                self.event(words, Some(time), out)
            }
        }
    }
}

impl Fio {
    fn header(&mut self, line: &[u8]) -> Parsed<()> {
        self.version = match trim(line) {
            b"fio version 2 iolog" => Version::Two,
            b"fio version 3 iolog" => Version::Three,
            other => return bad("header", other, "\"fio version 2 iolog\" or \"fio version 3 iolog\""),
        };
        Ok(())
    }

    fn event(&mut self, mut words: Words<'_>, time: Option<u64>, out: &mut Sink<'_>) -> Parsed<()> {
        let file = words.next("file")?;
        let action = words.next("action")?;
        let kind = match action {
            b"add" | b"open" | b"close" => return Ok(()),
            b"wait" => return self.wait(&mut words),
            b"read" => RequestKind::Read,
            b"write" => RequestKind::Write,
            b"trim" => RequestKind::Trim,
            b"sync" | b"datasync" | b"syncfs" => RequestKind::Flush,
            b"sync_file_range" => {
                out.ignore();
                return Ok(());
            }
            other => {
                return bad(
                    "action",
                    other,
                    "add, open, close, wait, read, write, trim, sync, datasync, syncfs or sync_file_range",
                );
            }
        };
        let (first_sector, sectors) = match kind {
            RequestKind::Flush => (0, 0),
            _ => bytes(words.next("offset")?, words.next("length")?)?,
        };
        let device = out.devices.name(file);
        let time = time.unwrap_or(self.waited_ns);
        out.push(Record { time, first_sector, device, sectors, kind, ..Record::default() });
        Ok(())
    }

    fn wait(&mut self, words: &mut Words<'_>) -> Parsed<()> {
        let until = time_in("offset", words.next("offset")?, MS_NS, self.time_digits)?;
        self.waited_ns = self.waited_ns.max(until);
        Ok(())
    }
}

/// Writes version 3; fio requires a final `close` with its own time.
#[derive(Default)]
struct FioLog {
    last_us: u64,
}

impl Encode for FioLog {
    fn begin(&mut self, _: &About, out: &mut Output) -> io::Result<()> {
        write!(out, "fio version 3 iolog\n0 {FILE} add\n0 {FILE} open\n")
    }

    fn request(&mut self, request: &Request, out: &mut Output) -> io::Result<Held> {
        let action = match request.kind {
            RequestKind::Flush => "sync",
            kind => kind.name(),
        };
        self.last_us = request.arrival.0 / US_NS;
        let (offset, length) = (request.first_sector * SECTOR, u64::from(request.sectors) * SECTOR);
        writeln!(out, "{} {FILE} {action} {offset} {length}", self.last_us)?;
        Ok(Held::Written)
    }

    fn finish(&mut self, out: &mut Output) -> io::Result<()> {
        writeln!(out, "{} {FILE} close", self.last_us)
    }
}
