//! What a trace touches: which units of its address space its reads and writes use.
//!
//! A bit for each unit, in words of 64 that are there only if one of their units is touched, and words that are touched
//! throughout joined: 32 B each once complete. Requests of terabytes take no more.

use super::error::TraceError;
use super::options::TraceOptions;
use super::pages::{Pages, Part};
use super::reader::TraceReader;
use flashwright_block::{Request, RequestKind};
use std::path::Path;

/// Requests read at once.
const BATCH: usize = 4096;
/// Sectors that a unit has at most: 4 KiB.
const UNIT_MAX: u64 = 8;

/// Touched units, in order of address.
#[derive(Clone, Debug)]
pub struct Footprint {
    unit_sectors: u64,
    /// With the touched units before each.
    parts: Vec<(Part, u64)>,
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
        let (mut batch, mut touched) = (Vec::with_capacity(BATCH), Pages::<1>::default());
        while reader.read(&mut batch, BATCH)? > 0 {
            for request in batch.drain(..).filter(touches) {
                let last = (request.end_sector() - 1) / unit_sectors;
                touched.touch(request.first_sector / unit_sectors, last, false);
            }
        }
        Ok(Self::of(unit_sectors, touched))
    }

    fn of(unit_sectors: u64, touched: Pages<1>) -> Self {
        let mut units = 0;
        let before = |part: Part| {
            let before = units;
            units += part.regions * u64::from(part.touched.count_ones());
            (part, before)
        };
        let parts: Vec<_> = touched.parts().into_iter().map(before).collect();
        let first = parts.first().map_or(0, |(part, _)| part.first * 64 + u64::from(part.touched.trailing_zeros()));
        Footprint { unit_sectors, parts, units, first }
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
        let Some((part, _)) = self.parts.last() else { return 0 };
        let end = (part.first + part.regions) * 64 - u64::from(part.touched.leading_zeros());
        end - self.first - self.units
    }

    /// The last part that begins at a unit's word or before it.
    fn part(&self, unit: u64) -> Option<&(Part, u64)> {
        self.parts[..self.parts.partition_point(|(part, _)| part.first <= unit / 64)].last()
    }

    /// Whether a unit is touched.
    #[must_use]
    pub fn touches(&self, unit: u64) -> bool {
        self.part(unit)
            .is_some_and(|(part, _)| unit / 64 - part.first < part.regions && part.touched >> (unit % 64) & 1 == 1)
    }

    /// Touched units below this one, and holes.
    #[must_use]
    pub fn below(&self, unit: u64) -> (u64, u64) {
        let touched = self.part(unit).map_or(0, |(part, before)| {
            let (words, each) = (unit / 64 - part.first, u64::from(part.touched.count_ones()));
            let within = part.touched & !(u64::MAX << (unit % 64));
            match words < part.regions {
                true => before + words * each + u64::from(within.count_ones()),
                false => before + part.regions * each,
            }
        });
        let holes = unit.saturating_sub(self.first).saturating_sub(touched).min(self.holes());
        (touched, holes)
    }
}

/// Whether a request uses pages: a trim does not, nor does a flush.
fn touches(request: &Request) -> bool {
    matches!(request.kind, RequestKind::Read | RequestKind::Write) && request.sectors > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::{Seed, below};
    use std::collections::BTreeSet;

    #[test]
    fn units_are_numbered_as_in_a_set_of_them() {
        let mut rng = Seed(7).stream("units");
        let (mut pages, mut set) = (Pages::<1>::default(), BTreeSet::new());
        for length in [1, 3, 70, 1, 100_000, 200, 64, 128, 1] {
            let first = below(&mut rng, 300_000);
            pages.touch(first, first + length - 1, false);
            set.extend(first..first + length);
        }
        let found = Footprint::of(8, pages);
        assert!(found.parts.len() < 40, "{}", found.parts.len());
        let (first, last) = (*set.first().unwrap(), *set.last().unwrap());
        assert_eq!((found.units(), found.holes()), (set.len() as u64, last + 1 - first - set.len() as u64));
        let mut touched = 0;
        for unit in 0..last + 200 {
            let holes = unit.clamp(first, last + 1) - first - touched;
            assert_eq!((found.touches(unit), found.below(unit)), (set.contains(&unit), (touched, holes)), "{unit}");
            touched += u64::from(set.contains(&unit));
        }
    }
}
