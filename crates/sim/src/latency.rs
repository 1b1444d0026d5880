//! Response and service times: exact moments, percentiles from an HDR histogram.

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Times of one kind of request. Percentiles are exact to three significant digits, all else to the nanosecond.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Latency {
    #[serde(with = "as_counts")]
    histogram: Histogram<u64>,
    sum: u128,
    sum_of_squares: u128,
    max: u64,
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

impl Default for Latency {
    fn default() -> Self {
        Self {
            histogram: Histogram::new(3).expect("three significant digits are allowed"),
            sum: 0,
            sum_of_squares: 0,
            max: 0,
        }
    }
}

impl Latency {
    /// Adds one time in nanoseconds.
    #[inline(always)]
    pub fn record(&mut self, nanos: u64) {
        self.histogram.record(nanos).expect("the histogram resizes itself");
        let exact = u128::from(nanos);
        self.sum += exact;
        self.sum_of_squares += exact * exact;
        self.max = self.max.max(nanos);
    }

    /// Adds all times of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("both histograms resize themselves");
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
        self.max = self.max.max(other.max);
    }

    /// Clears all times but keeps the memory.
    pub fn clear(&mut self) {
        self.histogram.reset();
        (self.sum, self.sum_of_squares, self.max) = (0, 0, 0);
    }

    /// The number of recorded times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The time below or at which a share `q` of the requests lies; none if there were none.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        (self.count() > 0).then(|| self.histogram.value_at_quantile(q).min(self.max))
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
        for value in self.histogram.iter_quantiles(20) {
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
    /// `sum_of_squares - q * (sum + r)`.
    #[allow(clippy::cast_precision_loss)]
    fn variance(&self) -> f64 {
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

/// A histogram in a saved state: its filled cells.
mod as_counts {
    use super::*;

    pub fn serialize<S: Serializer>(histogram: &Histogram<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        let cells: Vec<(u64, u64)> =
            histogram.iter_recorded().map(|cell| (cell.value_iterated_to(), cell.count_at_value())).collect();
        cells.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Histogram<u64>, D::Error> {
        let cells = Vec::<(u64, u64)>::deserialize(deserializer)?;
        let mut histogram = Histogram::new(3).map_err(D::Error::custom)?;
        for (value, count) in cells {
            histogram.record_n(value, count).map_err(D::Error::custom)?;
        }
        Ok(histogram)
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
