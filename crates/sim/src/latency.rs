//! Response and service times: exact moments, percentiles from a histogram with the cells of an HDR histogram of three
//! significant digits.
//!
//! Which cell a time belongs to is two shifts and an addition: every run with times counts there once or twice a request. The
//! distribution is read off an HDR histogram made from the cells.

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Times of one kind of request. Percentiles are exact to three significant digits, all else to the nanosecond.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Latency {
    #[serde(with = "as_counts")]
    cells: Cells,
    sum: u128,
    /// The largest number where the sum does not fit: some millions of times of months.
    sum_of_squares: u128,
    max: u64,
}

/// Counts by cell. Times below 2,048 have a cell each; from there on every doubling has 1,024 cells of equal width.
#[derive(Clone, Debug, Default)]
struct Cells {
    /// Up to the last cell that was needed, in whole doublings.
    counts: Vec<u64>,
    count: u64,
}

/// Bits of a time that its cell tells apart.
const DIGITS: u32 = 11;

impl Cells {
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // some 56,000 cells
    fn of(nanos: u64) -> usize {
        let doublings = 64 - DIGITS - (nanos | ((1 << DIGITS) - 1)).leading_zeros();
        ((doublings as usize) << (DIGITS - 1)) + (nanos >> doublings) as usize
    }

    /// The largest time of a cell.
    fn last(cell: usize) -> u64 {
        let doublings = (cell >> (DIGITS - 1)).saturating_sub(1);
        let first = ((cell - (doublings << (DIGITS - 1))) as u64) << doublings;
        first + ((1 << doublings) - 1)
    }

    #[inline(always)]
    fn add(&mut self, nanos: u64, count: u64) {
        let cell = Self::of(nanos);
        self.count += count;
        match self.counts.get_mut(cell) {
            Some(found) => *found += count,
            None => self.grow(cell, count),
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, cell: usize, count: u64) {
        self.counts.resize((cell + 1).next_multiple_of(1 << (DIGITS - 1)), 0);
        self.counts[cell] = count;
    }

    /// The largest time and the count of each cell that is not empty, in order.
    fn filled(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(cell, count)| (Self::last(cell), *count))
    }

    /// The largest time of the cell that holds a share `q` of all times and those before it.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn quantile(&self, q: f64) -> u64 {
        let mut left = ((q.min(1.0) * self.count as f64).ceil() as u64).max(1);
        let found = self.counts.iter().position(|count| {
            let here = *count >= left;
            left = left.saturating_sub(*count);
            here
        });
        found.map_or(0, Self::last)
    }

    fn histogram(&self) -> Histogram<u64> {
        let mut histogram = Histogram::new(3).expect("three significant digits are allowed");
        for (nanos, count) in self.filled() {
            histogram.record_n(nanos, count).expect("the histogram resizes itself");
        }
        histogram
    }
}

/// A summary, as the JSON of a run has it. All but `count` in nanoseconds; percentiles are exact to three significant digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySummary {
    /// Requests whose times were measured; 0 if the drive has no timing.
    pub count: u64,
    /// Mean. Null without a request.
    pub mean: Option<f64>,
    /// Standard deviation. Null without a request.
    pub stdev: Option<f64>,
    /// The time below or at which half of the requests lie. Null without a request.
    pub p50: Option<u64>,
    /// The time below or at which 90 % of the requests lie. Null without a request.
    pub p90: Option<u64>,
    /// The time below or at which 99 % of the requests lie. Null without a request.
    pub p99: Option<u64>,
    /// The time below or at which 99.9 % of the requests lie. Null without a request.
    pub p99_9: Option<u64>,
    /// The longest time. Null without a request.
    pub max: Option<u64>,
}

impl Latency {
    /// Adds one time in nanoseconds.
    #[inline(always)]
    pub fn record(&mut self, nanos: u64) {
        self.cells.add(nanos, 1);
        let exact = u128::from(nanos);
        self.sum += exact;
        self.sum_of_squares = self.sum_of_squares.saturating_add(exact * exact);
        self.max = self.max.max(nanos);
    }

    /// Adds all times of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.cells.counts.len() > self.cells.counts.len() {
            self.cells.counts.resize(other.cells.counts.len(), 0);
        }
        self.cells.counts.iter_mut().zip(&other.cells.counts).for_each(|(count, more)| *count += more);
        self.cells.count += other.cells.count;
        self.sum += other.sum;
        self.sum_of_squares = self.sum_of_squares.saturating_add(other.sum_of_squares);
        self.max = self.max.max(other.max);
    }

    /// Clears all times but keeps the memory.
    pub fn clear(&mut self) {
        self.cells.counts.fill(0);
        self.cells.count = 0;
        (self.sum, self.sum_of_squares, self.max) = (0, 0, 0);
    }

    /// The number of recorded times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.cells.count
    }

    /// The time below or at which a share `q` of the requests lies; none if there were none.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        (self.count() > 0).then(|| self.cells.quantile(q).min(self.max))
    }

    /// The sum of all times in nanoseconds.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Mean in nanoseconds; none if nothing was recorded.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum as f64 / self.count() as f64)
    }

    /// The points of the cumulative distribution: (nanoseconds, share of requests at or below), at most some hundreds.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn distribution(&self) -> Vec<(u64, f64)> {
        let mut points: Vec<(u64, f64)> = Vec::new();
        let total = self.count() as f64;
        for value in self.cells.histogram().iter_quantiles(20) {
            let nanos = value.value_iterated_to().min(self.max);
            if points.last().is_none_or(|(last, _)| *last < nanos) {
                points.push((nanos, value.quantile().min(1.0)));
            }
        }
        if total > 0.0 && points.last().is_none_or(|(_, share)| *share < 1.0) {
            points.push((self.max, 1.0));
        }
        points
    }

    /// The variance of the recorded times, of which there is at least one. It is a difference of two large sums, so it
    /// is computed in integers: with `sum = q * n + r`, the squares about `q` add up to
    /// `sum_of_squares - q * (sum + r)`. Squares that don't fit are read off the cells, to three significant digits.
    #[allow(clippy::cast_precision_loss)]
    fn variance(&self) -> f64 {
        if self.sum_of_squares == u128::MAX {
            let (n, mean) = (self.count() as f64, self.mean().unwrap_or_default());
            return self.cells.filled().map(|(nanos, count)| (nanos as f64 - mean).powi(2) * count as f64 / n).sum();
        }
        let n = u128::from(self.count());
        let (q, r) = (self.sum / n, self.sum % n);
        let about_q = self.sum_of_squares - q * (self.sum + r);
        match n.checked_mul(about_q) {
            Some(product) => (product - r * r) as f64 / (n as f64 * n as f64),
            None => about_q as f64 / n as f64, // 2^64 squared nanoseconds and more: r is negligible
        }
    }

    /// The summary.
    #[must_use]
    pub fn summary(&self) -> LatencySummary {
        let Some(mean) = self.mean() else { return LatencySummary::default() };
        LatencySummary {
            count: self.count(),
            mean: Some(mean),
            stdev: Some(self.variance().sqrt()),
            p50: self.quantile(0.5),
            p90: self.quantile(0.9),
            p99: self.quantile(0.99),
            p99_9: self.quantile(0.999),
            max: Some(self.max),
        }
    }
}

/// Cells in a saved state: those that are filled.
mod as_counts {
    use super::*;

    pub fn serialize<S: Serializer>(cells: &Cells, serializer: S) -> Result<S::Ok, S::Error> {
        cells.filled().collect::<Vec<(u64, u64)>>().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cells, D::Error> {
        let mut cells = Cells::default();
        for (nanos, count) in Vec::<(u64, u64)>::deserialize(deserializer)? {
            cells.add(nanos, count);
        }
        Ok(cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn moments_are_exact_and_nothing_is_nothing() {
        let mut latency = Latency::default();
        assert_eq!(latency.summary(), LatencySummary::default());
        for nanos in [2, 4, 4, 4, 5, 5, 7, 9] {
            latency.record(nanos);
        }
        let summary = latency.summary();
        assert_eq!((summary.mean, summary.stdev, summary.max), (Some(5.0), Some(2.0), Some(9)));
        assert_eq!((summary.p50, summary.p90), (Some(4), Some(9)));
    }

    #[test]
    fn times_whose_squares_do_not_fit_have_a_deviation() {
        // 30 and 50 years: 200 squares of them need 131 bits.
        let (year, mut latency) = (365 * 86_400_000_000_000_u64, Latency::default());
        for _ in 0..100 {
            latency.record(30 * year);
            latency.record(50 * year);
        }
        let mut twice = latency.clone();
        twice.merge(&latency);
        for found in [latency.summary(), twice.summary()] {
            let stdev = found.stdev.unwrap() / year as f64;
            assert!((stdev - 10.0).abs() < 0.03, "{stdev} years");
            assert_eq!(found.mean, Some(40.0 * year as f64));
        }
    }

    #[test]
    fn deviations_of_long_times_are_exact() {
        // An hour, and two hours as far apart as a clock tick: their squares need 84 bits.
        let (hour, mut latency) = (3_600_000_000_000_u64, Latency::default());
        for nanos in [hour, hour + 2] {
            latency.record(nanos);
        }
        assert_eq!(latency.summary().stdev, Some(1.0));
        // A million equal times, and one that differs.
        let mut latency = Latency::default();
        (0..999_999).for_each(|_| latency.record(hour));
        latency.record(hour + 1000);
        let exact = (999_999.0_f64).sqrt() / 1e6 * 1000.0;
        let found = latency.summary().stdev.unwrap();
        assert!((found / exact - 1.0).abs() < 1e-15, "{found} against {exact}");
    }

    proptest! {
        #[test]
        fn deviations_are_those_of_the_definition(times in prop::collection::vec(0u64..1 << 20, 1..50), far in 0u64..1 << 44) {
            let mut latency = Latency::default();
            times.iter().for_each(|nanos| latency.record(far + nanos));
            let n = times.len() as f64;
            let mean = times.iter().sum::<u64>() as f64 / n;
            let exact = (times.iter().map(|each| (*each as f64 - mean).powi(2)).sum::<f64>() / n).sqrt();
            let found = latency.summary().stdev.unwrap();
            prop_assert!((found - exact).abs() <= 1e-9 * exact.max(1e-3), "{} against {}", found, exact);
        }

        #[test]
        fn quantiles_are_within_a_thousandth(mut times in prop::collection::vec(1u64..1 << 40, 1..300), q in 0.01f64..1.0) {
            let mut latency = Latency::default();
            times.iter().for_each(|nanos| latency.record(*nanos));
            times.sort_unstable();
            let exact = times[((q * times.len() as f64).ceil() as usize).clamp(1, times.len()) - 1];
            let found = latency.quantile(q).unwrap();
            prop_assert!(found.abs_diff(exact) as f64 <= exact as f64 / 1000.0 + 1.0, "{found} against {exact}");
        }

        /// The cells and what is read off them are those of the histogram that the distribution is made with, for times of up to nine years: squares
        /// of longer ones add up to more than 128 bits.
        #[test]
        fn cells_are_those_of_an_hdr_histogram(times in prop::collection::vec((0u32..64, 0..1u64 << 59), 1..300), q in 0.0f64..1.1) {
            let (mut latency, mut histogram) = (Latency::default(), Histogram::<u64>::new(3).unwrap());
            for (bits, nanos) in times {
                latency.record(nanos >> bits >> 1);
                histogram.record(nanos >> bits >> 1).unwrap();
            }
            let cells: Vec<_> =
                histogram.iter_recorded().map(|cell| (cell.value_iterated_to(), cell.count_at_value())).collect();
            prop_assert_eq!(latency.cells.filled().collect::<Vec<_>>(), cells);
            for q in [q, q * 0.01, 1.0 - q * 0.01] {
                prop_assert_eq!(latency.quantile(q), Some(histogram.value_at_quantile(q).min(latency.max)));
            }
            prop_assert!(latency.cells.histogram() == histogram);
        }

        #[test]
        fn saving_keeps_every_cell(times in prop::collection::vec(0u64..1 << 50, 0..200)) {
            let mut latency = Latency::default();
            times.iter().for_each(|nanos| latency.record(*nanos));
            let loaded: Latency = postcard::from_bytes(&postcard::to_stdvec(&latency).unwrap()).unwrap();
            prop_assert_eq!(loaded.summary(), latency.summary());
            prop_assert_eq!(loaded.distribution(), latency.distribution());
        }
    }
}
