//! Sizes of requests with their place within a page and their alignment.

use super::tree::{EXTENTS, extent};
use crate::generate::AliasTable;
use flashwright_block::{Rng, SECTOR_BYTES, below};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Exact sizes kept for a direction, for jumps and for runs each; rarer ones are pooled by doublings.
const EXACT: usize = 28;
/// Rows in all: the pooled sizes, from 512 B to 2 TiB in steps of a doubling and more, come after the exact ones.
pub(super) const ROWS: usize = 42;

/// A size, or a range of sizes of rare requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SizeRow {
    /// Smallest size, in bytes.
    pub from: u64,
    /// Largest size, in bytes.
    pub to: u64,
    /// Where in a page of 4 KiB such requests start, in bytes.
    pub offset: u64,
    /// Power of two in bytes that the start, less the offset, is a multiple of; 4 KiB to 64 KiB.
    pub align: u64,
    /// Share of requests.
    pub share: f64,
}

/// Requests of one size and offset.
#[derive(Clone, Copy, Default)]
struct Tally {
    count: u64,
    /// Those whose first page is a multiple of 2, 4, 8 and 16 pages.
    aligned: [u64; 4],
}

/// Counts of sizes, in order, so that no result depends on hashing.
#[derive(Default)]
pub(super) struct SizeCounts {
    tallies: BTreeMap<(u32, u8), Tally>,
}

/// A start is called aligned if this share of starts is.
const ALIGNED: f64 = 0.95;

fn align_of(tally: &Tally) -> u64 {
    let steps = tally.aligned.iter().take_while(|count| **count as f64 >= ALIGNED * tally.count as f64).count();
    // A single request is aligned by chance.
    if tally.count < 8 { 4096 } else { 4096 << steps }
}

impl SizeCounts {
    pub(super) fn add(&mut self, sectors: u32, first_sector: u64) {
        let tally = self.tallies.entry((sectors, (first_sector % 8) as u8)).or_default();
        tally.count += 1;
        let page = first_sector / 8;
        for (step, count) in tally.aligned.iter_mut().enumerate() {
            *count += u64::from(page.is_multiple_of(2 << step));
        }
    }

    pub(super) fn requests(&self) -> u64 {
        self.tallies.values().map(|tally| tally.count).sum()
    }

    /// The most frequent sizes as they are, the rest pooled.
    pub(super) fn rows(&self) -> Vec<SizeRow> {
        let total = self.requests() as f64;
        let mut sorted: Vec<_> = self.tallies.iter().map(|(key, tally)| (*key, *tally)).collect();
        sorted.sort_by_key(|(key, tally)| (std::cmp::Reverse(tally.count), *key));
        let mut rows = Vec::new();
        let mut pools: BTreeMap<u32, (u32, u32, Tally)> = BTreeMap::new();
        for (i, ((sectors, offset), tally)) in sorted.into_iter().enumerate() {
            if i < EXACT {
                let bytes = u64::from(sectors) * SECTOR_BYTES;
                let offset = u64::from(offset) * SECTOR_BYTES;
                let share = tally.count as f64 / total;
                rows.push(SizeRow { from: bytes, to: bytes, offset, align: align_of(&tally), share });
                continue;
            }
            let pool = pools.entry(sectors.ilog2().min(13)).or_insert((sectors, sectors, Tally::default()));
            (pool.0, pool.1) = (pool.0.min(sectors), pool.1.max(sectors));
            pool.2.count += tally.count;
            pool.2.aligned.iter_mut().zip(tally.aligned).for_each(|(mine, theirs)| *mine += theirs);
        }
        rows.extend(pools.into_values().map(|(from, to, tally)| SizeRow {
            from: u64::from(from) * SECTOR_BYTES,
            to: u64::from(to) * SECTOR_BYTES,
            offset: 0,
            align: align_of(&tally),
            share: tally.count as f64 / total,
        }));
        rows
    }
}

/// A drawn size: its row, sectors, offset in sectors, alignment in pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) row: u8,
    pub(super) sectors: u32,
    pub(super) offset: u32,
    pub(super) align: u32,
}

/// Sizes to draw from; rows are numbered from `base` on.
pub(super) struct Sizes {
    table: Option<AliasTable>,
    /// For each class of pages, its rows and a table to draw from them.
    classes: Vec<(Vec<usize>, Option<AliasTable>)>,
    rows: Vec<(u32, u32, u32, u32)>,
    base: u8,
}

impl Sizes {
    pub(super) fn new(rows: &[SizeRow], base: u8) -> Self {
        let weights: Vec<f64> = rows.iter().map(|row| row.share).collect();
        let sectors = |bytes: u64| (bytes / SECTOR_BYTES) as u32;
        let pages = |row: &SizeRow| (row.offset + row.from).div_ceil(4096);
        let class = |class: usize| {
            let mine: Vec<usize> =
                (0..rows.len()).filter(|row| extent(pages(&rows[*row])) == class && weights[*row] > 0.0).collect();
            let weights: Vec<f64> = mine.iter().map(|row| weights[*row]).collect();
            let table = (!mine.is_empty()).then(|| AliasTable::new(&weights));
            (mine, table)
        };
        Sizes {
            classes: (0..EXTENTS).map(class).collect(),
            table: (!rows.is_empty()).then(|| AliasTable::new(&weights)),
            rows: rows
                .iter()
                .map(|row| (sectors(row.from), sectors(row.to), sectors(row.offset), (row.align / 4096).max(1) as u32))
                .collect(),
            base,
        }
    }

    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> Size {
        let row = self.table.as_ref().expect("sizes to draw from").draw(rng);
        self.of(row, rng)
    }

    /// A size of a class of pages, or any if there is none of the class.
    #[inline]
    pub(super) fn draw_of(&self, class: usize, rng: &mut Rng) -> Size {
        match &self.classes[class] {
            (rows, Some(table)) => self.of(rows[table.draw(rng)], rng),
            _ => self.draw(rng),
        }
    }

    /// A size of the row numbered `row`, if it is one of these.
    #[inline]
    pub(super) fn again(&self, row: u8, rng: &mut Rng) -> Option<Size> {
        let row = usize::from(row.checked_sub(self.base)?);
        (row < self.rows.len()).then(|| self.of(row, rng))
    }

    /// The row of exactly this size, if there is one.
    #[inline]
    pub(super) fn like(&self, sectors: u32) -> Option<Size> {
        let row = self.rows.iter().position(|row| row.0 == sectors && row.1 == sectors)?;
        let (_, _, offset, align) = self.rows[row];
        Some(Size { row: self.base + row as u8, sectors, offset, align })
    }

    #[inline]
    fn of(&self, row: usize, rng: &mut Rng) -> Size {
        let (from, to, offset, align) = self.rows[row];
        let grain = if from % 8 == 0 { 8 } else { 1 };
        let more = if from == to { 0 } else { below(rng, u64::from((to - from) / grain) + 1) as u32 * grain };
        Size { row: self.base + row as u8, sectors: from + more, offset, align }
    }
}
