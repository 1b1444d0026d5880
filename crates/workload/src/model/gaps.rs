//! Arrivals: how requests divide among the halves of an interval, from the trace's span down to a microsecond.
//!
//! A cascade on a dyadic grid of scales, as in the multifractal wavelet model (Riedi, Crouse, Ribeiro and Baraniuk, 1999)
//! and the b-model (Wang et al., 2002). Both multiply rates; here whole requests are divided, by what the trace's own
//! intervals of that length and of about as many requests do, so that the smallest gaps come out as they are.
//!
//! ```text
//!   longest  ├──────────── 37 requests ────────────┤   drawn from the trace's counts
//!            ├───── 30 ─────┤├──────── 7 ──────────┤   the smaller part: 7/37
//!            ├─ 30 ─┤├─ 0 ──┤├── 3 ──┤├──── 4 ─────┤   ...
//! ```

use flashwright_block::{Rng, below, unit_interval};
use rand_core::RngCore;
use serde::{Deserialize, Serialize};

/// A gap below 1 ms is short.
pub(super) const SHORT: u64 = 1_000_000;
/// Intervals of 2^10 ns, about a microsecond, are not divided.
const FINEST: u32 = 10;
/// Intervals that are needed for an estimate.
const FEWEST: u64 = 24;
/// Classes of the number of requests: 2, 3-4, 5-16, 17-128, more.
const CLASSES: usize = 5;
/// Bins of the smaller part's share: none at all, then eight up to one half.
const BINS: usize = 9;
/// Scales two doublings apart share an estimate.
const DOUBLINGS: u32 = 2;

fn class_of(requests: u64) -> usize {
    match requests {
        0..=2 => 0,
        3..=4 => 1,
        5..=16 => 2,
        17..=128 => 3,
        _ => 4,
    }
}

/// Arrivals of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Arrivals {
    /// Mean requests a second.
    pub rate: f64,
    /// Share of gaps below 1 ms.
    pub short: f64,
    /// The longest interval is 2^this nanoseconds.
    pub longest: u32,
    /// Requests in the longest intervals, over their mean; their own mean is 1.
    pub counts: Vec<f64>,
    /// For each two doublings from 2^10 ns up: rows for 2, 3-4, 5-16, 17-128 and more requests, each with the shares of
    /// intervals whose smaller half has none of them, up to 1/16, 2/16, ... 8/16.
    pub divide: Vec<Vec<Vec<f64>>>,
}

/// Fits [`Arrivals`] to sorted times in nanoseconds; none if there are no times. Says which scales had too few intervals
/// of their own.
pub(super) fn fit(times: &[u64]) -> Option<(Arrivals, Vec<String>)> {
    let (first, last) = (*times.first()?, *times.last()?);
    let span = last - first;
    if span == 0 || times.len() < 2 {
        return None;
    }
    // At least eight of the longest intervals.
    let longest = (span / 8).max(2 << FINEST).ilog2();
    let groups = (longest - FINEST).div_ceil(DOUBLINGS) as usize;
    let mut bins = vec![[[0u64; BINS]; CLASSES]; groups];
    let mut runs: Vec<(u64, u64)> = Vec::new(); // interval number, requests
    for time in times {
        let interval = (time - first) >> FINEST;
        match runs.last_mut() {
            Some(run) if run.0 == interval => run.1 += 1,
            _ => runs.push((interval, 1)),
        }
    }
    for scale in FINEST..longest {
        let group = ((scale - FINEST) / DOUBLINGS) as usize;
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(runs.len());
        let mut i = 0;
        while i < runs.len() {
            let (interval, count) = runs[i];
            let pair = runs.get(i + 1).filter(|next| next.0 == interval + 1 && interval.is_multiple_of(2));
            let other = pair.map_or(0, |next| next.1);
            let whole = count + other;
            if whole >= 2 {
                let less = count.min(other);
                let bin = if less == 0 { 0 } else { (less * 16).div_ceil(whole) as usize };
                bins[group][class_of(whole)][bin] += 1;
            }
            joined.push((interval / 2, whole));
            i += 1 + usize::from(pair.is_some());
        }
        runs = joined;
    }
    let whole = (span >> longest) as usize;
    let mut counts = vec![0.0; whole.max(1)];
    for (interval, count) in runs {
        if let Some(slot) = counts.get_mut(interval as usize) {
            *slot = count as f64;
        }
    }
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    if mean == 0.0 {
        counts = vec![1.0];
    } else {
        counts.iter_mut().for_each(|count| *count /= mean);
    }
    counts.sort_by(f64::total_cmp);
    let gaps = (times.len() - 1) as f64;
    let short = times.windows(2).filter(|pair| pair[1] - pair[0] < SHORT).count() as f64 / gaps;
    let rate = gaps * 1e9 / span as f64;
    let (divide, borrowed) = shares(&bins);
    Some((Arrivals { rate, short, longest, counts, divide }, borrowed))
}

/// Shares of the bins. A class with too few intervals takes those of the next class, or of the next finer scale.
fn shares(bins: &[[[u64; BINS]; CLASSES]]) -> (Vec<Vec<Vec<f64>>>, Vec<String>) {
    let (mut all, mut borrowed) = (Vec::<Vec<Vec<f64>>>::new(), Vec::new());
    for (group, classes) in bins.iter().enumerate() {
        let enough = |class: usize| classes[class].iter().sum::<u64>() >= FEWEST;
        let own: Vec<usize> = (0..CLASSES).filter(|class| enough(*class)).collect();
        if own.is_empty() {
            borrowed.push(format!("arrivals.divide of 2^{} ns", FINEST + group as u32 * DOUBLINGS + 1));
        }
        let rows = (0..CLASSES).map(|class| {
            match own.iter().min_by_key(|other| other.abs_diff(class)) {
                Some(near) => {
                    let total = classes[*near].iter().sum::<u64>() as f64;
                    classes[*near].iter().map(|count| *count as f64 / total).collect()
                }
                // Poisson arrivals would divide evenly: the finest scale has no finer one.
                None => all
                    .last()
                    .map_or_else(|| vec![0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], |finer| finer[class].clone()),
            }
        });
        let rows = rows.collect();
        all.push(rows);
    }
    (all, borrowed)
}

/// Draws arrivals.
pub(super) struct Cascade {
    rng: Rng,
    longest: u32,
    /// Mean requests in a longest interval.
    mean: f64,
    counts: Vec<f64>,
    /// Cumulative shares.
    divide: Vec<Vec<[f64; BINS]>>,
    /// Intervals still to come: scale, start, requests; the next is last.
    waiting: Vec<(u32, u64, u64)>,
    /// Requests that arrive at one time.
    at_once: (u64, u64),
    next_start: u64,
}

impl Cascade {
    pub(super) fn new(arrivals: &Arrivals, rng: Rng) -> Self {
        let cumulative = |row: &Vec<f64>| {
            let (mut sums, mut sum, total) = ([1.0; BINS], 0.0, row.iter().sum::<f64>());
            for (slot, share) in sums.iter_mut().zip(row) {
                sum += share / total;
                *slot = sum;
            }
            sums
        };
        let mean = arrivals.counts.iter().sum::<f64>() / arrivals.counts.len() as f64;
        Cascade {
            rng,
            longest: arrivals.longest,
            mean: arrivals.rate * (1u64 << arrivals.longest) as f64 / 1e9,
            counts: arrivals.counts.iter().map(|count| count / mean).collect(),
            divide: arrivals.divide.iter().map(|rows| rows.iter().map(cumulative).collect()).collect(),
            waiting: Vec::new(),
            at_once: (0, 0),
            next_start: 0,
        }
    }

    /// The next arrival, in nanoseconds.
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        if self.at_once.1 > 0 {
            self.at_once.1 -= 1;
            return self.at_once.0;
        }
        loop {
            let Some((scale, start, requests)) = self.waiting.pop() else {
                let factor = self.counts[below(&mut self.rng, self.counts.len() as u64) as usize];
                let requests = (self.mean * factor + unit_interval(&mut self.rng)) as u64;
                if requests > 0 {
                    self.waiting.push((self.longest, self.next_start, requests));
                }
                self.next_start += 1 << self.longest;
                continue;
            };
            if requests == 1 {
                return start + (self.rng.next_u64() >> (64 - scale));
            }
            if scale == FINEST {
                self.at_once = (start, requests - 1);
                return start;
            }
            let less = self.smaller(scale - 1, requests);
            let left = if self.rng.next_u64() >> 63 == 0 { less } else { requests - less };
            let half = 1 << (scale - 1);
            if left < requests {
                self.waiting.push((scale - 1, start + half, requests - left));
            }
            if left > 0 {
                self.waiting.push((scale - 1, start, left));
            }
        }
    }

    /// Requests in the smaller half of an interval of `requests`, whose halves have the scale `scale`.
    #[inline]
    fn smaller(&mut self, scale: u32, requests: u64) -> u64 {
        let group = (((scale - FINEST) / DOUBLINGS) as usize).min(self.divide.len() - 1);
        let sums = &self.divide[group][class_of(requests)];
        let draw = unit_interval(&mut self.rng);
        let bin = sums.iter().position(|sum| draw < *sum).unwrap_or(BINS - 1);
        if bin == 0 {
            return 0;
        }
        let share = (bin as f64 - unit_interval(&mut self.rng)) / 16.0;
        ((share * requests as f64).round() as u64).clamp(1, requests / 2)
    }
}
