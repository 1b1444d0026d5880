//! A distribution of whole numbers: exact values, or bins of an eighth of an octave.

use std::collections::BTreeMap;

/// Bins of an octave, as a power of two. Numbers below `2 << SUB_BITS` have bins of their own.
const SUB_BITS: u32 = 3;

/// Weights by value, in ascending order of the value.
///
/// ```
/// # use flashwright_workload::statistics::Distribution;
/// let found = Distribution { values: vec![4096, 8192], weights: vec![3.0, 1.0] };
/// assert_eq!((found.total(), found.mean(), found.quantile(0.5)), (4.0, Some(5120.0), Some(4096)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Distribution {
    /// The values; of a bin, its lower end.
    pub values: Vec<u64>,
    /// How often each was counted; not whole where pages were sampled.
    pub weights: Vec<f64>,
}

impl Distribution {
    /// All weights together.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// The mean; none of nothing. Bins count as their lower ends.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // a mean
    pub fn mean(&self) -> Option<f64> {
        let total = self.total();
        let sum: f64 = self.values.iter().zip(&self.weights).map(|(&value, weight)| value as f64 * weight).sum();
        (total > 0.0).then(|| sum / total)
    }

    /// The least value that a share of the weights lies at or below; none of nothing.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let wanted = share * self.total();
        let mut below = 0.0;
        for (&value, weight) in self.values.iter().zip(&self.weights) {
            below += weight;
            if below >= wanted {
                return Some(value);
            }
        }
        self.values.last().copied()
    }
}

/// Counts of exact values.
#[derive(Default)]
pub(crate) struct Counts(BTreeMap<u64, u64>);

impl Counts {
    pub(crate) fn add(&mut self, value: u64) {
        *self.0.entry(value).or_default() += 1;
    }

    #[allow(clippy::cast_precision_loss)] // exact up to 2^53
    pub(crate) fn finish(self) -> Distribution {
        Distribution {
            values: self.0.keys().copied().collect(),
            weights: self.0.values().map(|&count| count as f64).collect(),
        }
    }
}

/// Weights by bin of an eighth of an octave.
#[derive(Default)]
pub(crate) struct Bins(Vec<f64>);

impl Bins {
    pub(crate) fn add(&mut self, value: u64, weight: f64) {
        let bin = bin_of(value);
        if bin >= self.0.len() {
            self.0.resize(bin + 1, 0.0);
        }
        self.0[bin] += weight;
    }

    pub(crate) fn finish(self) -> Distribution {
        let filled = self.0.iter().enumerate().filter(|(_, weight)| **weight > 0.0);
        let (values, weights) = filled.map(|(bin, &weight)| (start_of(bin), weight)).unzip();
        Distribution { values, weights }
    }
}

fn bin_of(value: u64) -> usize {
    let octave = value.checked_ilog2().unwrap_or(0).saturating_sub(SUB_BITS);
    // At most 60 octaves of 8 bins and the first 16 numbers.
    usize::try_from((u64::from(octave) << SUB_BITS) + (value >> octave)).unwrap_or(usize::MAX)
}

fn start_of(bin: usize) -> u64 {
    let bin = bin as u64;
    let octave = (bin >> SUB_BITS).saturating_sub(1);
    (bin - (octave << SUB_BITS)) << octave
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_starts_at_its_lowest_value_and_is_an_eighth_of_an_octave_wide() {
        for value in (0..5000).chain([u64::MAX - 1, u64::MAX, 1 << 40, (1 << 40) - 1]) {
            let bin = bin_of(value);
            assert!(start_of(bin) <= value, "{value}");
            assert!(value < 16 || value - start_of(bin) < start_of(bin) / 8 + 1, "{value}");
            assert_eq!(bin_of(start_of(bin)), bin, "{value}");
            if value > 0 {
                assert!(bin_of(value - 1) == bin || bin_of(value - 1) + 1 == bin, "{value}");
            }
        }
        assert_eq!((0..16).map(bin_of).collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn quantiles_are_values_that_were_counted() {
        let mut counts = Counts::default();
        [1, 1, 5, 9].into_iter().for_each(|value| counts.add(value));
        let found = counts.finish();
        assert_eq!([0.0, 0.5, 0.51, 0.75, 1.0].map(|share| found.quantile(share)), [1, 1, 5, 5, 9].map(Some));
        assert_eq!((Distribution::default().quantile(0.5), Distribution::default().mean()), (None, None));
    }
}
