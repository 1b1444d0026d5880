//! Arrivals: gaps, bursts at scales of a millisecond to an hour, and what they have to do with direction.

use super::distribution::{Bins, Distribution};
use super::{READ, WRITE};
use flashwright_block::Nanos;

/// Lengths of the windows in nanoseconds: a millisecond to 1,000 s in decades, and an hour.
const SCALES: [u64; 8] = [
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
    100_000_000_000,
    1_000_000_000_000,
    3_600_000_000_000,
];
/// Whole windows below which nothing is said of a scale.
const WINDOWS_MIN: u64 = 10;

/// When requests arrive.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Arrivals {
    /// From the first arrival to the last, in nanoseconds.
    pub span_ns: u64,
    /// Reads and writes a second.
    pub per_second: f64,
    /// Nanoseconds from the request before to a read.
    pub gaps_before_reads: Distribution,
    /// Nanoseconds from the request before to a write.
    pub gaps_before_writes: Distribution,
    /// Requests that have the direction of the request before, 0 to 1.
    pub same_direction_share: f64,
    /// Bursts, by the length of the windows; those with fewer than ten whole windows are left out.
    pub scales: Vec<Scale>,
}

/// Counts in windows of one length.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Scale {
    /// Length of a window in nanoseconds.
    pub window_ns: u64,
    /// Whole windows.
    pub windows: u64,
    /// The index of dispersion: the variance of the requests of a window over their mean. 1 for a Poisson process,
    /// 0 for equal gaps.
    pub dispersion: f64,
    /// The correlation of the reads and the writes of a window, -1 to 1; none if the number of either never changes.
    pub reads_with_writes: Option<f64>,
}

/// Sums over the windows of one length.
#[derive(Clone, Copy, Default)]
struct Sums {
    window: u64,
    now: [u64; 2],
    sum: [f64; 2],
    squares: [f64; 2],
    product: f64,
}

#[derive(Default)]
pub(crate) struct Collector {
    first: Option<Nanos>,
    last: Nanos,
    before: usize,
    requests: u64,
    same: u64,
    gaps: [Bins; 2],
    scales: [Sums; SCALES.len()],
}

impl Collector {
    pub(crate) fn add(&mut self, arrival: Nanos, direction: usize) {
        let first = *self.first.get_or_insert(arrival);
        if self.requests > 0 {
            self.gaps[direction].add(arrival.0.saturating_sub(self.last.0), 1.0);
            self.same += u64::from(direction == self.before);
        }
        (self.last, self.before) = (arrival, direction);
        self.requests += 1;
        let since = arrival.0.saturating_sub(first.0);
        for (sums, length) in self.scales.iter_mut().zip(SCALES) {
            let window = since / length;
            if window != sums.window {
                sums.close();
                sums.window = window;
            }
            sums.now[direction] += 1;
        }
    }

    #[allow(clippy::cast_precision_loss)] // rates and shares
    pub(crate) fn finish(self) -> Option<Arrivals> {
        let span_ns = self.last.0 - self.first?.0;
        if span_ns == 0 {
            return None;
        }
        let after_first = (self.requests - 1) as f64;
        let [gaps_before_reads, gaps_before_writes] = self.gaps.map(Bins::finish);
        Some(Arrivals {
            span_ns,
            per_second: after_first / (span_ns as f64 / 1e9),
            gaps_before_reads,
            gaps_before_writes,
            same_direction_share: self.same as f64 / after_first,
            scales: self.scales.iter().zip(SCALES).filter_map(|(sums, length)| sums.finish(length)).collect(),
        })
    }
}

#[allow(clippy::cast_precision_loss)] // sums of squares, of counts below 2^53
impl Sums {
    /// Adds the window's counts; windows without a request add nothing.
    fn close(&mut self) {
        let [reads, writes] = self.now.map(|count| count as f64);
        for (at, count) in [(READ, reads), (WRITE, writes)] {
            self.sum[at] += count;
            self.squares[at] += count * count;
        }
        self.product += reads * writes;
        self.now = [0; 2];
    }

    /// The last window is not whole, and left out.
    fn finish(&self, window_ns: u64) -> Option<Scale> {
        let windows = self.window;
        if windows < WINDOWS_MIN {
            return None;
        }
        let count = windows as f64;
        let mean = self.sum.map(|sum| sum / count);
        let variance = [READ, WRITE].map(|at| (self.squares[at] / count - mean[at] * mean[at]).max(0.0));
        let together = self.product / count - mean[READ] * mean[WRITE];
        let all = mean[READ] + mean[WRITE];
        let spread = libm::sqrt(variance[READ] * variance[WRITE]);
        Some(Scale {
            window_ns,
            windows,
            dispersion: if all > 0.0 {
                (variance[READ] + variance[WRITE] + 2.0 * together).max(0.0) / all
            } else {
                0.0
            },
            reads_with_writes: (spread > 0.0).then(|| (together / spread).clamp(-1.0, 1.0)),
        })
    }
}
