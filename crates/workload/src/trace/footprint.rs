//! What a trace touches: which units of its address space its reads and writes use.
//!
//! A bit for each unit, in words of 64 that are there only if one of their units is touched: 24 B a word once complete, so
//! 0.4 B a page of what is touched densely, and 24 B a page of what is touched here and there.

use super::address::PageHasher;
use super::error::TraceError;
use super::options::TraceOptions;
use super::reader::TraceReader;
use flashwright_block::{Request, RequestKind};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::path::Path;

/// Requests read at once.
const BATCH: usize = 4096;
/// Sectors that a unit has at most: 4 KiB.
const UNIT_MAX: u64 = 8;

/// Touched units, in order of address.
#[derive(Clone, Debug)]
pub struct Footprint {
    unit_sectors: u64,
    /// Number of the word, its bits, touched units before it.
    words: Vec<(u64, u64, u64)>,
    units: u64,
    first: u64,
}

impl Footprint {
    /// Reads a whole trace.
    ///
    /// # Errors
    /// [`TraceError`] if it can't be read.
    pub fn read(path: &Path, options: &TraceOptions, unit_sectors: u64) -> Result<Self, TraceError> {
        let mut reader = TraceReader::open(path, options)?;
        let mut bits: HashMap<u64, u64, BuildHasherDefault<PageHasher>> = HashMap::default();
        let (mut batch, mut last) = (Vec::with_capacity(BATCH), None::<(u64, u64)>);
        while reader.read(&mut batch, BATCH)? > 0 {
            for request in batch.drain(..).filter(touches) {
                let from = request.first_sector / unit_sectors;
                let to = (request.end_sector() - 1) / unit_sectors;
                for word in from / 64..=to / 64 {
                    let (low, high) = (from.max(word * 64) % 64, to.min(word * 64 + 63) % 64);
                    let mask = (u64::MAX << low) & (u64::MAX >> (63 - high));
                    // Neighbours mostly fall into the word of the request before.
                    match &mut last {
                        Some((number, kept)) if *number == word => *kept |= mask,
                        _ => {
                            if let Some((number, kept)) = last.replace((word, mask)) {
                                *bits.entry(number).or_default() |= kept;
                            }
                        }
                    }
                }
            }
        }
        if let Some((number, kept)) = last {
            *bits.entry(number).or_default() |= kept;
        }
        let mut words: Vec<(u64, u64, u64)> = bits.into_iter().map(|(number, kept)| (number, kept, 0)).collect();
        words.sort_unstable_by_key(|(number, ..)| *number);
        let mut units = 0;
        for (_, kept, before) in &mut words {
            *before = units;
            units += u64::from(kept.count_ones());
        }
        let first = words.first().map_or(0, |(number, kept, _)| number * 64 + u64::from(kept.trailing_zeros()));
        Ok(Footprint { unit_sectors, words, units, first })
    }

    /// The largest unit up to 4 KiB, in sectors, that starts and ends of all reads and writes are multiples of.
    ///
    /// # Errors
    /// [`TraceError`] if the trace can't be read.
    pub fn granule(path: &Path, options: &TraceOptions) -> Result<u64, TraceError> {
        let mut reader = TraceReader::open(path, options)?;
        let (mut batch, mut mixed) = (Vec::with_capacity(BATCH), UNIT_MAX);
        while reader.read(&mut batch, BATCH)? > 0 {
            for request in batch.drain(..).filter(touches) {
                mixed |= request.first_sector | u64::from(request.sectors);
            }
        }
        Ok(1 << mixed.trailing_zeros())
    }

    /// Sectors of a unit.
    #[must_use]
    pub fn unit_sectors(&self) -> u64 {
        self.unit_sectors
    }

    /// Units touched.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Untouched units between the first and the last that are touched.
    #[must_use]
    pub fn holes(&self) -> u64 {
        let Some((number, kept, _)) = self.words.last() else { return 0 };
        let end = number * 64 + 64 - u64::from(kept.leading_zeros());
        end - self.first - self.units
    }

    /// Whether a unit is touched.
    #[must_use]
    pub fn touches(&self, unit: u64) -> bool {
        let at = self.words.binary_search_by_key(&(unit / 64), |(number, ..)| *number);
        at.is_ok_and(|at| self.words[at].1 >> (unit % 64) & 1 == 1)
    }

    /// Touched units below this one, and holes.
    #[must_use]
    pub fn below(&self, unit: u64) -> (u64, u64) {
        let touched = match self.words.binary_search_by_key(&(unit / 64), |(number, ..)| *number) {
            Ok(at) => {
                let (_, kept, before) = self.words[at];
                before + u64::from((kept & !(u64::MAX << (unit % 64))).count_ones())
            }
            Err(at) => self.words.get(at).map_or(self.units, |(_, _, before)| *before),
        };
        let holes = unit.saturating_sub(self.first).saturating_sub(touched).min(self.holes());
        (touched, holes)
    }
}

/// Whether a request uses pages: a trim does not, nor does a flush.
fn touches(request: &Request) -> bool {
    matches!(request.kind, RequestKind::Read | RequestKind::Write) && request.sectors > 0
}
