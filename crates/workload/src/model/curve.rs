//! Hit curves: which share of accesses find what they want among the n entries used last.
//!
//! An access to something new tells that its reuse distance is at least the length of the list, no more: it is censored.
//! The curve is therefore the product-limit estimate (Kaplan and Meier, 1958). Drawn from an empty list on, it gives the
//! growth of the footprint as well: an access whose distance exceeds the list is to something new.

use flashwright_block::{Rng, below, unit_interval};
use std::ops::Range;

/// Ranks in bins: exact below 8, then four bins for each doubling.
const EXACT: usize = 8;

fn bin_of(rank: usize) -> usize {
    if rank < EXACT {
        return rank;
    }
    let exponent = rank.ilog2() as usize;
    EXACT + (exponent - 3) * 4 + ((rank >> (exponent - 2)) & 3)
}

/// The ranks in the bin of `rank`.
pub(super) fn bin_around(rank: usize) -> Range<usize> {
    let bin = bin_of(rank);
    (if bin == 0 { 0 } else { bin_end(bin - 1) })..bin_end(bin)
}

/// One past the last rank of a bin.
fn bin_end(bin: usize) -> usize {
    if bin < EXACT {
        return bin + 1;
    }
    let (exponent, quarter) = ((bin - EXACT) / 4 + 3, (bin - EXACT) % 4);
    (5 + quarter) << (exponent - 2)
}

/// Counts of ranks found, and of lists that did not hold what was wanted.
#[derive(Clone, Default)]
pub(super) struct Counts {
    found: Vec<u64>,
    /// By the bin that the length of the list falls in.
    missed: Vec<u64>,
}

fn count(bins: &mut Vec<u64>, bin: usize) {
    if bin >= bins.len() {
        bins.resize(bin + 1, 0);
    }
    bins[bin] += 1;
}

impl Counts {
    pub(super) fn found(&mut self, rank: usize) {
        count(&mut self.found, bin_of(rank));
    }

    pub(super) fn missed(&mut self, len: usize) {
        count(&mut self.missed, bin_of(len));
    }

    pub(super) fn events(&self) -> u64 {
        self.found.iter().sum::<u64>() + self.missed.iter().sum::<u64>()
    }

    pub(super) fn add(&mut self, other: &Counts) {
        for (mine, theirs) in [(&mut self.found, &other.found), (&mut self.missed, &other.missed)] {
            mine.resize(mine.len().max(theirs.len()), 0);
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
    }

    /// The curve; neighbouring bins with less than `fewest` events are pooled.
    pub(super) fn curve(&self, fewest: u64) -> Vec<(u64, f64)> {
        let bins = self.found.len();
        let missed = |bin: usize| self.missed.get(bin).copied().unwrap_or(0);
        // Lists at least as long as the bin reaches, whether the access was found later or missed.
        let mut at_risk = (bins + 1..self.missed.len()).map(missed).sum::<u64>();
        let mut risks = vec![0u64; bins];
        for bin in (0..bins).rev() {
            // A miss counts for a bin if its list reaches the bin's end, so if its length lies in the next bin or later.
            at_risk += self.found[bin] + if bin + 1 < self.missed.len() { missed(bin + 1) } else { 0 };
            risks[bin] = at_risk;
        }
        let (mut points, mut survival, mut pending) = (Vec::new(), 1.0, 0);
        for (bin, risk) in risks.iter().enumerate() {
            if self.found[bin] > 0 {
                survival *= 1.0 - self.found[bin] as f64 / *risk as f64;
            }
            pending += self.found[bin];
            if pending >= fewest || (bin + 1 == bins && pending > 0) {
                points.push((bin_end(bin) as u64, 1.0 - survival));
                pending = 0;
            }
        }
        points
    }
}

/// A curve to draw ranks from.
#[derive(Clone, Default)]
pub(super) struct Curve {
    ends: Vec<u64>,
    shares: Vec<f64>,
}

impl Curve {
    pub(super) fn new(points: &[(u64, f64)]) -> Self {
        Curve { ends: points.iter().map(|(end, _)| *end).collect(), shares: points.iter().map(|(_, s)| *s).collect() }
    }

    /// A range of ranks, or none if what is wanted lies beyond the curve's end.
    #[inline]
    pub(super) fn draw_range(&self, rng: &mut Rng) -> Option<Range<u64>> {
        let draw = unit_interval(rng);
        let at = if self.shares.first().is_some_and(|share| draw < *share) {
            0
        } else {
            self.shares.partition_point(|share| *share <= draw)
        };
        let end = *self.ends.get(at)?;
        Some(if at == 0 { 0 } else { self.ends[at - 1] }..end)
    }

    /// A rank, or none if what is wanted lies beyond the curve's end.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> Option<u64> {
        self.draw_range(rng).map(|range| within(&range, rng))
    }
}

/// A rank of `range`.
#[inline]
pub(super) fn within(range: &Range<u64>, rng: &mut Rng) -> u64 {
    let width = range.end - range.start;
    if width == 1 { range.start } else { range.start + below(rng, width) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::Seed;

    #[test]
    fn bins_follow_each_other() {
        for rank in 0..100_000 {
            let bin = bin_of(rank);
            assert!(rank < bin_end(bin) && (bin == 0 || rank >= bin_end(bin - 1)), "{rank}");
        }
    }

    /// Uniform accesses to 64 items, from an empty list on: the list of n holds n/64 of what is wanted, although half of
    /// the short sample consists of first accesses.
    #[test]
    fn misses_of_short_lists_do_not_bend_the_curve() {
        let (mut counts, mut list, mut rng) = (Counts::default(), Vec::new(), Seed(2).stream("test"));
        for round in 0..400 {
            if round % 2 == 0 {
                list.clear();
            }
            for _ in 0..64 {
                let item = below(&mut rng, 64);
                match list.iter().position(|other| *other == item) {
                    Some(rank) => {
                        counts.found(rank);
                        list.remove(rank);
                    }
                    None => counts.missed(list.len()),
                }
                list.insert(0, item);
            }
        }
        for (end, share) in counts.curve(1).into_iter().filter(|(end, _)| *end <= 40) {
            assert!((share - end as f64 / 64.0).abs() < 0.03, "{end}: {share}");
        }
    }

    #[test]
    fn draws_follow_the_curve() {
        let (curve, mut rng) = (Curve::new(&[(1, 0.25), (4, 0.75)]), Seed(3).stream("test"));
        let mut counts = [0i64; 5];
        (0..40_000).for_each(|_| counts[curve.draw(&mut rng).map_or(4, |rank| rank as usize)] += 1);
        for (found, expected) in counts.iter().zip([10_000, 6667, 6667, 6667, 10_000]) {
            assert!((found - expected).abs() < 500, "{counts:?}");
        }
    }
}
