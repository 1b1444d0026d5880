//! Request sizes with a given mean.
//!
//! Sources publish means, not distributions. A stand-in takes the shape of its kind of application and tilts it,
//! `weight * exp(t * size)`, with the `t` that gives the published mean: among all distributions with that mean, this
//! is the one closest to the shape (in relative entropy).

use super::table::Shape;
use crate::generate::alias::AliasTable;
use flashwright_block::Rng;
use libm::exp;

pub(crate) struct Sizes {
    sectors: Vec<u32>,
    table: AliasTable,
}

impl Sizes {
    /// One size only.
    pub(crate) fn fixed(sectors: u32) -> Self {
        Sizes { sectors: vec![sectors], table: AliasTable::new(&[1.0]) }
    }

    /// The shape tilted to a mean of `mean_kib`, which must lie between its smallest and largest size.
    pub(crate) fn tilted(shape: Shape, mean_kib: f64) -> Self {
        let sectors: Vec<u32> = shape.iter().map(|(sectors, _)| *sectors).collect();
        Sizes { sectors, table: AliasTable::new(&tilt(shape, mean_kib * 2.0)) }
    }

    /// The largest size there is, in sectors.
    pub(crate) fn largest(&self) -> u32 {
        self.sectors.iter().copied().max().unwrap_or(1)
    }

    /// A size in sectors.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> u32 {
        self.sectors[self.table.draw(rng)]
    }
}

/// Weights of the tilted shape with a mean of `mean` sectors.
pub(super) fn tilt(shape: Shape, mean: f64) -> Vec<f64> {
    // Relative to the mean, so that the exponent stays small; at most e^(40 * 1) for the sizes that matter.
    let weights = |t: f64| -> Vec<f64> {
        let exponent = |sectors: u32| t * (f64::from(sectors) - mean) / mean;
        let most = shape.iter().map(|(sectors, _)| exponent(*sectors)).fold(f64::MIN, f64::max);
        shape.iter().map(|(sectors, weight)| weight * exp(exponent(*sectors) - most)).collect()
    };
    let mean_at = |t: f64| {
        let weights = weights(t);
        let sum: f64 = shape.iter().zip(&weights).map(|((sectors, _), weight)| f64::from(*sectors) * weight).sum();
        sum / weights.iter().sum::<f64>()
    };
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if mean_at(middle) < mean { low = middle } else { high = middle }
    }
    weights((low + high) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::super::table::{ROWS, Trace, Variant};
    use super::*;

    #[test]
    fn every_row_has_its_means() {
        for row in ROWS {
            for kib in [row.read_kib, row.write_kib] {
                let weights = tilt(row.shape, kib * 2.0);
                let total: f64 = weights.iter().sum();
                let mean: f64 =
                    row.shape.iter().zip(&weights).map(|((s, _), w)| f64::from(*s) * w).sum::<f64>() / total;
                assert!((mean / 2.0 / kib - 1.0).abs() < 1e-6, "{:?} {:?}: {mean}", row.trace, row.variant);
            }
        }
    }

    /// CM, table III: a write of Financial1 takes 1.30 pages of 4 KiB; the shape gives that within 3 %.
    #[test]
    fn financial1_writes_take_the_published_pages() {
        let row = ROWS.iter().find(|row| row.trace == Trace::Financial1 && row.variant == Variant::Whole).unwrap();
        let weights = tilt(row.shape, row.write_kib * 2.0);
        let pages: f64 = row.shape.iter().zip(&weights).map(|((s, _), w)| f64::from(s.div_ceil(8)) * w).sum();
        let pages = pages / weights.iter().sum::<f64>();
        assert!((pages / 1.30 - 1.0).abs() < 0.03, "{pages}");
    }
}
