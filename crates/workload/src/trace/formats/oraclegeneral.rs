//! libCacheSim's oracleGeneral: requests to a cache, with the next use of each object but without the operation.
//!
//! ```text
//! 24 B, little-endian: seconds u32, object u64, bytes u32, next use i64 (number of a request; -1 or 2^63 - 1: never)
//! ```
//!
//! Every request is taken as a read unless `op=write` is given. Of a trace of blocks the object is an address, in a unit
//! that the file does not say: that in which most requests begin where the one before ended (bytes, sectors or pages of
//! 4 KiB), and pages if none does. Source: FAQ.md and `oracleGeneralBin.h` of libCacheSim.

use super::{Format, Setup};
use crate::trace::detect::{Head, Verdict};
use crate::trace::error::TraceError;
use crate::trace::input::Input;
use crate::trace::parse::byte_range;
use crate::trace::record::{Decode, Record, SECTOR, Sink};
use flashwright_block::RequestKind;

pub(super) static FORMAT: Format = Format {
    name: "oraclegeneral",
    summary: "libCacheSim oracleGeneral, binary: seconds, object, bytes, next use; no operation, read unless op=write",
    sniff: |head| if Sample::of(head).is_some() { Verdict::Fits } else { Verdict::No },
    open,
    writing: None,
    reorder_window: 0,
};

const RECORD_BYTES: usize = 24;
/// Bytes of a file that it is recognised from.
const HEAD_BYTES: usize = 1 << 16;
/// With fewer requests, nothing is decided.
const RECORDS_MIN: usize = 4;
/// A next use beyond this is no number of a request.
const NEXT_MAX: i64 = 1 << 40;
/// The units of an object's number, and their names.
const UNITS: [(u64, &str); 3] = [(4096, "pages of 4 KiB"), (SECTOR, "sectors of 512 B"), (1, "bytes")];

/// One request.
#[derive(Clone, Copy)]
struct Use {
    seconds: u32,
    object: u64,
    bytes: u32,
    next: i64,
}

impl Use {
    fn read(raw: &[u8]) -> Use {
        let part = |at: usize| <[u8; 8]>::try_from(&raw[at..at + 8]).expect("eight bytes were cut");
        let low = |bytes: [u8; 8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        Use {
            seconds: low(part(0)),
            object: u64::from_le_bytes(part(4)),
            bytes: low(part(12)),
            next: i64::from_le_bytes(part(16)),
        }
    }

    fn is_last(&self) -> bool {
        self.next == -1 || self.next == i64::MAX
    }
}

/// The first requests of a file that is in this format.
struct Sample(Vec<Use>);

impl Sample {
    /// Every next use that is among the first requests must be one of the same object, counted from 0 or from 1.
    fn of(head: &Head<'_>) -> Option<Sample> {
        let (bytes, whole) = head.first(HEAD_BYTES);
        let records = bytes.chunks_exact(RECORD_BYTES);
        if whole && !records.remainder().is_empty() || records.len() < RECORDS_MIN {
            return None;
        }
        let uses: Vec<_> = records.map(Use::read).collect();
        let ordered = uses.windows(2).all(|pair| pair[1].seconds >= pair[0].seconds);
        let sized = uses.iter().all(|one| one.bytes < 1 << 31) && uses.iter().any(|one| one.bytes > 0);
        let agrees = |first: usize| {
            uses.iter().enumerate().all(|(at, one)| {
                let next = usize::try_from(one.next).ok().and_then(|next| next.checked_sub(first));
                let said = next.and_then(|next| uses.get(next));
                one.is_last()
                    || (one.next < NEXT_MAX
                        && next.is_some_and(|next| next > at)
                        && said.is_none_or(|said| said.object == one.object))
            })
        };
        (ordered && sized && (agrees(0) || agrees(1))).then_some(Sample(uses))
    }

    /// The unit in which most requests continue the one before; the first if none does.
    fn unit(&self) -> (u64, &'static str) {
        let continued = |unit: u64| {
            let pairs = self.0.windows(2).filter(|pair| {
                let pages = u64::from(pair[0].bytes) / unit;
                pages > 0 && pair[1].object.checked_sub(pair[0].object) == Some(pages)
            });
            pairs.count()
        };
        let counts = UNITS.map(|(unit, _)| continued(unit));
        let best = counts.iter().max().copied().unwrap_or(0);
        UNITS[counts.iter().position(|count| *count == best).unwrap_or(0)]
    }
}

fn open(mut input: Input, setup: &Setup) -> Result<Box<dyn Decode>, TraceError> {
    let (bytes, whole) = input.head(HEAD_BYTES)?;
    let found = Sample::of(&Head::new(bytes, whole)).map(|sample| sample.unit());
    let Some((unit, name)) = found else {
        return Err(TraceError::record(input.path(), 1, "no requests of 24 B with a next use each"));
    };
    let columns = setup.columns.as_deref();
    let (unit, name) = match columns.and_then(|columns| columns.address_unit()) {
        Some(unit) => (unit, UNITS.iter().find(|(known, _)| *known == unit).map_or("the given unit", |(_, name)| name)),
        None => (unit, name),
    };
    let kind = columns.and_then(|columns| columns.constant_kind());
    let mut assumed = vec![format!("objects are numbered in {name}; lba=id:sectors in --columns, say, changes that")];
    if kind.is_none() {
        assumed.push(
            "there is no operation in it: every request is taken as a read; --columns op=write changes that".to_owned(),
        );
    }
    Ok(Box::new(OracleGeneral { input, kind: kind.unwrap_or(RequestKind::Read), unit, assumed, record: 0 }))
}

struct OracleGeneral {
    input: Input,
    kind: RequestKind,
    /// Bytes that an object's number counts.
    unit: u64,
    assumed: Vec<String>,
    record: u64,
}

impl Decode for OracleGeneral {
    fn fill(&mut self, out: &mut Sink<'_>, at_most: usize) -> Result<(), TraceError> {
        let enough = out.records.len() + at_most;
        while out.records.len() < enough {
            let Some(raw) = self.input.take(RECORD_BYTES, "an oracleGeneral record")? else { return Ok(()) };
            let one = Use::read(raw);
            self.record += 1;
            let range = one.object.checked_mul(self.unit).and_then(|at| byte_range(at, u64::from(one.bytes)));
            let Some((first_sector, sectors)) = range else {
                let what =
                    format!("object {} is no address: a name, such as a hash, has no place on a drive", one.object);
                return Err(TraceError::record(self.input.path(), self.record, what));
            };
            let time = u64::from(one.seconds) * 1_000_000_000;
            let device = out.devices.number(0);
            out.push(Record { time, first_sector, device, sectors, kind: self.kind, ..Record::default() });
        }
        Ok(())
    }

    fn input(&self) -> &Input {
        &self.input
    }

    fn notes(&self) -> Vec<String> {
        self.assumed.clone()
    }
}
