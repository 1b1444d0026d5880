//! Our own format, `.fwt`: columns in compressed chunks, with a label and detection of incomplete files.
//!
//! All numbers little-endian; a varint is LEB128, a zigzag the signed number `n` as varint of `2n` or `-2n - 1`.
//!
//! ```text
//! prologue   8 B magic "\x89FWT\r\n\x1a\n", u32 version = 2, u32 header bytes, u64 requests, u32 CRC of the header
//!            and then of these 24 B
//! header     UTF-8 lines "key: value" (\\ and \n escaped): label, note, origin (format converted from), and one
//!            "device: requests span-sectors name" each; unknown keys are skipped
//! chunk ...  u32 requests (1 to 65,536), u32 packed bytes, u32 raw bytes, u32 chained CRC of these 12 B and packed,
//!            packed (zstd)
//! footer     u32 0, u64 requests, u32 chained CRC of those 12 B; nothing follows
//! ```
//!
//! A chained CRC continues from the previous one, the first from that of the header. So it covers the header and all
//! chunks so far, and swapped or foreign chunks fail the check. The prologue and its CRC stay the same in later
//! versions, so that a damaged file can be distinguished from one of another version.
//!
//! In version 1 the CRCs are independent: that of the prologue covers the header, that of a chunk its packed bytes,
//! that of the footer its 12 B. Such files can still be read.
//!
//! A chunk unpacks to seven columns, one after the other, each with one entry a request: arrival (varint, from the
//! previous), first sector (zigzag, from the previous request's end), sectors (varint), kind (1 B: kind in bits 0, 1, 3 and 4, bit 2
//! force-unit-access), process (zigzag, from the previous), stream (zigzag, from the previous). "Previous" is all zero
//! at a chunk's start, so chunks stand alone. `requests` in the prologue is 2^64 - 1 until the file is finished: with
//! this and the footer, a half-written or truncated file is never mistaken for a complete one.
//!
//! Devices share one address space, in header order, each as long as its span.

use super::{Format, Setup, Writing};
use crate::trace::detect::{Head, Verdict};
use crate::trace::error::TraceError;
use crate::trace::fwt;
use crate::trace::input::Input;
use crate::trace::record::{About, Decode, Record, SECTOR, Sink};

pub(super) static FORMAT: Format = Format {
    name: "flashwright",
    summary: "Flashwright's own compact columns (.fwt), with label and checksums",
    sniff,
    open,
    writing: Some(Writing { encoder: || Box::<fwt::FwtWriter>::default(), time_step_ns: 1, loses: "" }),
    reorder_window: 0,
};

/// A file whose first bytes are damaged still counts as this format; [`open`] reports the damage.
fn sniff(head: &Head<'_>) -> Verdict {
    let same = head.bytes().iter().zip(&fwt::MAGIC).filter(|(found, expected)| found == expected).count();
    if same > fwt::MAGIC.len() / 2 { Verdict::Fits } else { Verdict::No }
}

fn open(mut input: Input, _: &Setup) -> Result<Box<dyn Decode>, TraceError> {
    let (about, check) = fwt::read_header(&mut input)?;
    let what = "its devices together reach past 2^64 B: damaged";
    let ends = ends(&about).ok_or_else(|| TraceError::record(input.path(), 0, what))?;
    Ok(Box::new(Fwt { input, check, about, ends, rows: Vec::new(), next: 0, chunk: 0, seen: 0, ended: false }))
}

/// The end of each device's addresses; none if that is past 2^64 B.
fn ends(about: &About) -> Option<Vec<u64>> {
    let mut end = 0u64;
    let devices = about.devices.iter().flatten();
    devices
        .map(|device| {
            end = end.checked_add(device.span_sectors).filter(|end| *end <= u64::MAX / SECTOR)?;
            Some(end)
        })
        .collect()
}

struct Fwt {
    input: Input,
    check: fwt::Check,
    about: About,
    ends: Vec<u64>,
    rows: Vec<flashwright_block::Request>,
    next: usize,
    chunk: u64,
    seen: u64,
    ended: bool,
}

impl Decode for Fwt {
    fn fill(&mut self, out: &mut Sink<'_>, at_most: usize) -> Result<(), TraceError> {
        if self.next == self.rows.len() && !self.ended {
            self.next_chunk()?;
        }
        let upto = (self.next + at_most).min(self.rows.len());
        for at in self.next..upto {
            let record = self.record(self.rows[at], out);
            out.push(record);
        }
        self.next = upto;
        Ok(())
    }

    fn input(&self) -> &Input {
        &self.input
    }

    fn about(&self) -> About {
        self.about.clone()
    }
}

impl Fwt {
    fn next_chunk(&mut self) -> Result<(), TraceError> {
        self.rows.clear();
        self.next = 0;
        self.chunk += 1;
        fwt::read_chunk(&mut self.input, &mut self.check, self.chunk, self.seen, &mut self.rows)?;
        self.seen += self.rows.len() as u64;
        self.ended = self.rows.is_empty();
        let Some(expected) = self.about.requests.filter(|expected| self.ended && *expected != self.seen) else {
            return Ok(());
        };
        let what = format!("found {} requests, expected the {expected} of the header", self.seen);
        Err(TraceError::record(self.input.path(), self.chunk, what))
    }

    /// Back to the device and its own addresses.
    fn record(&self, request: flashwright_block::Request, out: &mut Sink<'_>) -> Record {
        let at = self.ends.partition_point(|end| *end <= request.first_sector).min(self.ends.len().saturating_sub(1));
        let base = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        let device = match self.about.devices.as_deref().and_then(|devices| devices.get(at)) {
            Some(device) => out.devices.name(device.name.as_bytes()),
            None => out.devices.number(0),
        };
        Record {
            time: request.arrival.0,
            first_sector: request.first_sector - base,
            device,
            sectors: request.sectors,
            process: request.process,
            stream: request.stream,
            kind: request.kind,
            fua: request.fua,
        }
    }
}
