//! fio I/O logs (`write_iolog`, `read_iolog`), versions 2 and 3.
//!
//! Version 2 is `file action [offset length]` and has no times: requests arrive at once, except for `wait` lines, whose
//! microseconds count from the previous `wait`, according to fio's manual. Version 3 is
//! `us file action [offset length]`: fio writes and replays microseconds, although milliseconds have been documented.
//! `add`, `open` and `close` name files, each of which is a device; `sync` and `datasync` are flushes. Written as
//! version 3, all requests on one file called `trace`; times are rounded down to microseconds.

use super::{Format, Writing};
use crate::trace::detect::{Head, Verdict};
use crate::trace::parse::{Parsed, Words, bad, bytes, trim, whole_time};
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
const FILE: &str = "trace";

fn sniff(head: &Head<'_>) -> Verdict {
    if head.begins(b"fio version ") { Verdict::Fits } else { Verdict::No }
}

/// State between lines.
#[derive(Default)]
struct Fio {
    version: Version,
    /// The current time from the waits of version 2.
    waited_ns: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Version {
    #[default]
    Unknown,
    Two,
    Three,
}

impl ParseLine for Fio {
    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        match (self.version, line.starts_with(b"fio version ")) {
            (_, true) => self.header(line),
            (Version::Unknown, false) => bad("header", line, "\"fio version 2 iolog\" or \"fio version 3 iolog\""),
            (Version::Two, false) => self.event(Words(line), None, out),
            (Version::Three, false) => {
                let mut words = Words(line);
                let time = whole_time("timestamp", words.next("timestamp")?, US_NS)?;
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
            b"sync" | b"datasync" => RequestKind::Flush,
            other => {
                return bad("action", other, "add, open, close, wait, read, write, trim, sync or datasync");
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
        let text = words.next("offset")?;
        match self.waited_ns.checked_add(whole_time("offset", text, US_NS)?) {
            Some(sum) => self.waited_ns = sum,
            None => return bad("offset", text, "waits of at most 584 years together"),
        }
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
            RequestKind::Read => "read",
            RequestKind::Write => "write",
            RequestKind::Trim => "trim",
            RequestKind::Flush => "sync",
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
