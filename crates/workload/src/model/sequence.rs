//! The kind `sequence`: a trace's own requests in their order, at addresses from its first block on, and how fast what it
//! uses grows. [`Segments`](super::segments::Segments) plays it.

use super::base64;
use super::check::wrong;
use super::file::{Fitted, ModelError, write_fitted};
use super::fit::{FEWEST, FitError};
use super::room::Room;
use crate::trace::{ROW_MIN_BYTES, pack, unpack, unpacked_most};
use flashwright_block::{Nanos, Request, RequestClass, RequestKind};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::Read as _;

/// The version of files of this kind; other kinds have other versions.
pub(super) const VERSION: u32 = 3;
/// What files of this kind call it.
pub(super) const KIND: &str = "sequence";
/// Sectors of a block of 64 KiB, which keeps its neighbours wherever it lies.
pub(crate) const BLOCK_SECTORS: u64 = 128;
const PAGE_SECTORS: u64 = 8;
/// How hard the requests are compressed: beyond it a file shrinks by a few percent and takes several times as long.
const LEVEL: i32 = 12;

/// A trace's requests, and what follows from them.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// What it was fitted to.
    pub fitted: Fitted,
    /// What its requests use.
    pub footprint: Used,
    /// In their order. Blocks that no read or write touches are left out of the addresses; arrivals are gaps.
    pub(super) requests: Vec<Request>,
    /// Blocks of 64 KiB that reads and writes touch, in order of address, from the first.
    pub(super) blocks: Vec<u64>,
    /// The request that touches each first.
    pub(super) firsts: Vec<u32>,
}

/// What the requests of a sequence use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Used {
    /// Blocks of 64 KiB that reads and writes touch.
    pub blocks: u64,
    /// Pages of 4 KiB that they touch.
    pub pages: u64,
    /// After n requests they touched n to this power blocks, times a constant (Heaps' law): 0 if nothing new comes, 1 if
    /// as much as ever does.
    pub growth: f64,
}

/// A file of this kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    #[serde(rename = "version")]
    _version: u32,
    #[serde(rename = "kind")]
    _kind: String,
    fitted: Fitted,
    footprint: Used,
    requests: String,
}

const HEAD: &str = "\
# A workload model: the requests of a trace in their order, at addresses from the first block of 64 KiB that they touch.
# Play it with --workload model:FILE. It holds the trace itself: only what lies before its first address is gone.
";

impl Sequence {
    /// The model of these requests. It keeps reads, writes, trims and flushes; what only zones take is left out, and so are
    /// processes and streams.
    ///
    /// # Errors
    /// [`FitError::TooShort`] below 100 reads and writes.
    pub fn of(requests: &[Request]) -> Result<Self, FitError> {
        let (mut kept, mut counts, mut left_out) = (Vec::with_capacity(requests.len()), [0; 4], 0);
        for Request { arrival, first_sector, sectors, kind, fua, .. } in requests.iter().copied() {
            let request = match kind {
                RequestKind::Flush => Request { arrival, kind, ..Request::default() },
                RequestKind::Read | RequestKind::Write | RequestKind::Trim if sectors > 0 => {
                    Request { arrival, first_sector, sectors, kind, fua, ..Request::default() }
                }
                _ => {
                    left_out += 1;
                    continue;
                }
            };
            counts[kind as usize] += 1;
            kept.push(request);
        }
        let [reads, writes, trims, flushes] = counts;
        if reads + writes < FEWEST {
            return Err(FitError::TooShort { found: reads + writes });
        }
        let span_s = (kept[kept.len() - 1].arrival.0 - kept[0].arrival.0) as f64 / 1e9;
        let mut borrowed = Vec::new();
        if span_s == 0.0 {
            borrowed.push("arrivals: the trace has no times".to_owned());
        }
        if left_out > 0 {
            borrowed.push(format!("requests: {left_out} that only drives with zones take are left out"));
        }
        let fitted = Fitted { requests: kept.len() as u64, reads, writes, trims, flushes, span_s, borrowed };
        Ok(Sequence::new(fitted, kept))
    }

    /// Of the requests of a trace, at least one of them a read or a write, with the addresses of the trace.
    fn new(fitted: Fitted, mut requests: Vec<Request>) -> Self {
        // By block: the first request, and a bit for each page.
        let mut touched: HashMap<u64, (u32, u16)> = HashMap::new();
        for (number, request) in (0u32..).zip(&requests).filter(|(_, request)| moves(request)) {
            let (first, last) = pages(request);
            for block in first / 16..=last / 16 {
                let (low, high) = (first.max(block * 16) % 16, last.min(block * 16 + 15) % 16);
                let bits = (u16::MAX << low) & (u16::MAX >> (15 - high));
                touched.entry(block).or_insert((number, 0)).1 |= bits;
            }
        }
        let mut sorted: Vec<(u64, (u32, u16))> = touched.into_iter().collect();
        sorted.sort_unstable_by_key(|(block, _)| *block);
        let start = sorted.first().map_or(0, |(block, _)| *block);
        let middle = requests.len() as u32 / 2;
        let early = sorted.iter().filter(|(_, (number, _))| *number < middle).count();
        let doublings = libm::log2(sorted.len() as f64 / early.max(1) as f64);
        let used = Used {
            blocks: sorted.len() as u64,
            pages: sorted.iter().map(|(_, (_, bits))| u64::from(bits.count_ones())).sum(),
            growth: doublings.min(1.0),
        };
        let blocks: Vec<u64> = sorted.iter().map(|(block, _)| block - start).collect();
        // Where a sector comes to lie; of a trim, whose ends may be in no touched block, the next that is.
        let place = |sector: u64| {
            let Some(block) = (sector / BLOCK_SECTORS).checked_sub(start) else { return 0 };
            match blocks.binary_search(&block) {
                Ok(rank) => rank as u64 * BLOCK_SECTORS + sector % BLOCK_SECTORS,
                Err(rank) => rank as u64 * BLOCK_SECTORS,
            }
        };
        let mut before = requests.first().map_or(0, |request| request.arrival.0);
        for request in &mut requests {
            let Nanos(arrival) = request.arrival;
            request.arrival = Nanos(arrival.saturating_sub(before));
            before = arrival;
            if request.kind.class() != RequestClass::Barrier {
                let first_sector = place(request.first_sector);
                if request.kind == RequestKind::Trim {
                    request.sectors = (place(request.end_sector()) - first_sector).min(u64::from(u32::MAX)) as u32;
                }
                request.first_sector = first_sector;
            }
        }
        let firsts = sorted.iter().map(|(_, (number, _))| *number).collect();
        Sequence { fitted, footprint: used, requests, blocks, firsts }
    }

    /// Sectors of the largest read or write.
    pub(crate) fn largest(&self) -> u32 {
        let moved = self.requests.iter().filter(|request| request.kind != RequestKind::Trim);
        moved.map(|request| request.sectors).max().unwrap_or(1).max(1)
    }

    /// Requests a second of its own arrivals; none if it has no times.
    pub(crate) fn rate(&self) -> Option<f64> {
        let gaps = self.requests.len().saturating_sub(1) as f64;
        (self.fitted.span_s > 0.0).then(|| gaps / self.fitted.span_s)
    }

    /// The requests as in the trace, from the first block and the first arrival on.
    fn original(&self) -> Vec<Request> {
        let mut now = 0;
        let place =
            |sector: u64| self.blocks[(sector / BLOCK_SECTORS) as usize] * BLOCK_SECTORS + sector % BLOCK_SECTORS;
        let original = self.requests.iter().map(|request| {
            now += request.arrival.0;
            let request = Request { arrival: Nanos(now), ..*request };
            match request.kind.class() {
                RequestClass::Barrier => request,
                RequestClass::Discard if request.sectors == 0 => Request { first_sector: 0, ..request },
                RequestClass::Discard => {
                    let end = place(request.end_sector() - 1) + 1;
                    let first_sector = place(request.first_sector);
                    Request { first_sector, sectors: (end - first_sector).min(u64::from(u32::MAX)) as u32, ..request }
                }
                _ => Request { first_sector: place(request.first_sector), ..request },
            }
        });
        original.collect()
    }

    /// The file's text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut raw = Vec::new();
        pack(&self.original(), &mut raw);
        let packed = zstd::bulk::compress(&raw, LEVEL).expect("memory is all that it needs");
        let mut out = format!("{HEAD}version = {VERSION}\nkind = {KIND:?}\n");
        write_fitted(&mut out, &self.fitted);
        let Used { blocks, pages, growth } = self.footprint;
        out.push_str(&format!(
            "\n# Blocks of 64 KiB and pages of 4 KiB that reads and writes touch. After n requests they touched n to the power of\n\
             # growth blocks, times a constant: 0 if nothing new comes, 1 if as much as ever does.\n\
             [footprint]\nblocks = {blocks}\npages = {pages}\ngrowth = {growth:.5}\n"
        ));
        // A key of the whole file must come before its tables.
        let requests = format!(
            "# Arrivals, addresses, sizes and kinds: columns as in the format flashwright, compressed by zstd, in base64.\n\
             requests = '''\n{}'''\n",
            base64::written(&packed)
        );
        let tables = out.find("\n[fitted]").expect("it was just written");
        out.insert_str(tables, &requests);
        out
    }

    /// The model of a file's text, whose version and kind were looked at.
    pub(super) fn read(text: &str) -> Result<Self, ModelError> {
        let File { fitted, footprint, requests, .. } = super::file::read(text)?;
        let damaged = |what: String| wrong("requests", what, "the requests as `flashwright trace fit` wrote them");
        let count = usize::try_from(fitted.requests).unwrap_or(usize::MAX);
        if count > u32::MAX as usize {
            return Err(wrong("fitted.requests", count, "below 2^32"));
        }
        let packed = base64::read(&requests).ok_or_else(|| damaged("text that is no base64".to_owned()))?;
        // What a file says of itself is not taken before it comes.
        let (most, mut raw, mut rows) = (unpacked_most(count) as u64, Vec::new(), Vec::new());
        zstd::Decoder::with_buffer(&packed[..])
            .and_then(|unpacked| unpacked.take(most).read_to_end(&mut raw))
            .map_err(|error| damaged(error.to_string().to_lowercase()))?;
        if raw.len() < count.saturating_mul(ROW_MIN_BYTES) || rows.try_reserve_exact(count).is_err() {
            return Err(damaged(format!("columns that do not hold {count} requests, or more than memory does")));
        }
        unpack(&raw, count, &mut rows).ok_or_else(|| damaged(format!("columns that do not hold {count} requests")))?;
        let impossible = |row: &Request| row.kind.is_for_zones() || (moves(row) && row.sectors == 0);
        if rows.iter().any(impossible) || !rows.iter().any(moves) {
            return Err(damaged("requests that no trace has".to_owned()));
        }
        let mut room = Room::default();
        rows.iter().try_for_each(|row| room.take(row)).map_err(|error| damaged(error.to_string()))?;
        let mut found = Sequence::new(fitted, rows);
        for (name, stated, own) in
            [("blocks", footprint.blocks, found.footprint.blocks), ("pages", footprint.pages, found.footprint.pages)]
        {
            if stated != own {
                return Err(wrong(&format!("footprint.{name}"), stated, &format!("{own}, as its requests use")));
            }
        }
        if !(0.0..=1.0).contains(&footprint.growth) {
            return Err(wrong("footprint.growth", footprint.growth, "an exponent from 0 to 1"));
        }
        found.footprint.growth = footprint.growth;
        Ok(found)
    }
}

/// Whether a request moves data.
pub(super) fn moves(request: &Request) -> bool {
    matches!(request.kind, RequestKind::Read | RequestKind::Write)
}

/// The first and the last page that a request touches.
fn pages(request: &Request) -> (u64, u64) {
    (request.first_sector / PAGE_SECTORS, (request.end_sector() - 1) / PAGE_SECTORS)
}
