//! Kyber: requests below are limited by kind, and the limits follow latencies.
//!
//! ```text
//!  reads 256 ─┐ tokens: requests below       each 100 ms: is the drive congested (p90 of its own latencies bad)?
//!  writes 128 ┼► in turn, by batches           each kind's limit follows p99 of its whole latencies:
//!  trims 64  ─┘ of 16, 8, 1, 1                 limit x p99 / target, when congested or when p99 is bad
//! ```
//!
//! The limits are the kernel's, whatever the drive's depth: a kind is held back only once its limit has fallen below
//! that. Latencies are counted in quarters of their target, as eight buckets, the last of which holds all from 7/4 on.
//! Within a kind requests leave in the order in which they came.
//!
//! Left out: the quarter of the queue that the kernel reserves for synchronous requests, because a filter has places by
//! direction.

use super::{Choice, Scheduler, SchedulerContext};
use crate::lists::{List, Lists};
use crate::pool::{Id, Pool, Queued};
use flashwright_block::{Nanos, RequestClass, RequestKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest number of requests of each kind below, which is also the initial limit (kyber-iosched, as of Linux 4.20 and
/// later).
const TOKENS: [u32; 4] = [256, 128, 64, 16];
/// Requests of a kind in a row (likewise).
const BATCH: [u32; 4] = [16, 8, 1, 1];
/// Kinds whose latencies are measured; flushes have no target.
const TIMED: usize = 3;
/// Buckets of a latency, a quarter of the target each; four are good (likewise).
const BUCKETS: usize = 8;
const GOOD_BUCKETS: u32 = 4;
/// How long latencies are collected (likewise).
const WINDOW: Nanos = Nanos(100_000_000);
/// With fewer samples than these no percentile is taken before this time has passed (likewise).
const SAMPLES: u32 = 500;
const PATIENCE: Nanos = Nanos(1_000_000_000);

/// `[host.kyber]`; the defaults are the kernel's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct KyberSettings {
    /// Latency target of reads.
    #[schemars(extend("x-minimum" = "1 ns"), extend("x-expected" = "a time above 0, such as \"2 ms\""))]
    pub read_latency: Nanos,
    /// Latency target of writes.
    #[schemars(extend("x-minimum" = "1 ns"), extend("x-expected" = "a time above 0, such as \"2 ms\""))]
    pub write_latency: Nanos,
    /// Latency target of trims.
    #[schemars(extend("x-minimum" = "1 ns"), extend("x-expected" = "a time above 0, such as \"2 ms\""))]
    pub trim_latency: Nanos,
}

impl Default for KyberSettings {
    fn default() -> Self {
        Self { read_latency: Nanos(2_000_000), write_latency: Nanos(10_000_000), trim_latency: Nanos(5_000_000_000) }
    }
}

/// Latencies by bucket.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Histogram([u32; BUCKETS]);

impl Histogram {
    fn add(&mut self, latency: Nanos, target: Nanos) {
        let bucket = latency.0.saturating_sub(1) / (target.0 / u64::from(GOOD_BUCKETS)).max(1);
        self.0[usize::try_from(bucket).unwrap_or(BUCKETS).min(BUCKETS - 1)] += 1;
    }

    fn samples(&self) -> u32 {
        self.0.iter().sum()
    }

    /// The bucket that holds the percentile.
    fn percentile(&self, percent: u32) -> u32 {
        let mut left = (self.samples() * percent).div_ceil(100);
        for (bucket, count) in (0..).zip(&self.0[..BUCKETS - 1]) {
            if *count >= left {
                return bucket;
            }
            left -= count;
        }
        GOOD_BUCKETS * 2 - 1
    }
}

/// One kind of requests.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Domain {
    queue: List,
    /// Largest number of requests below.
    tokens: u32,
    below: u32,
    /// Latencies from queueing to completion.
    whole: Histogram,
    /// Latencies from dispatch to completion.
    device: Histogram,
    /// When few samples are enough; both histograms share this time, as in the kernel, which checks `device` first. So
    /// the percentile of `whole` has to wait until it has 500 samples.
    patience_ends: Option<Nanos>,
    /// The last p99 of `whole` that no congestion has used yet.
    p99: Option<u32>,
}

impl Domain {
    fn percentile(&mut self, whole: bool, percent: u32, now: Nanos) -> Option<u32> {
        let histogram = if whole { &mut self.whole } else { &mut self.device };
        let samples = histogram.samples();
        if samples == 0 {
            return None;
        }
        let ends = *self.patience_ends.get_or_insert(now + PATIENCE);
        if samples < SAMPLES && now < ends {
            return None;
        }
        self.patience_ends = None;
        Some(std::mem::take(histogram).percentile(percent))
    }
}

/// A queue for each kind, served in turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kyber {
    targets: [Nanos; TIMED],
    lists: Lists,
    domains: [Domain; 4],
    /// The kind in turn, and the requests that it has sent in its turn.
    turn: usize,
    batched: u32,
    /// When the window ends, if a request was timed in it.
    window_ends: Option<Nanos>,
    windows_congested: u32,
    windows: u32,
}

fn domain(kind: RequestKind) -> usize {
    match kind.class() {
        RequestClass::Read => 0,
        RequestClass::Write => 1,
        RequestClass::Discard => 2,
        RequestClass::Barrier | RequestClass::Manage => 3,
    }
}

impl Kyber {
    /// Sets the limits if a window has ended.
    fn adjust(&mut self, now: Nanos) {
        if self.window_ends.is_none_or(|end| now < end) {
            return;
        }
        self.window_ends = None;
        let mut congested = false;
        for domain in &mut self.domains[..TIMED] {
            congested |= domain.percentile(false, 90, now).is_some_and(|p90| p90 >= GOOD_BUCKETS);
        }
        self.windows += 1;
        self.windows_congested += u32::from(congested);
        for (domain, most) in self.domains[..TIMED].iter_mut().zip(TOKENS) {
            let p99 = domain.percentile(true, 99, now);
            // Not every window has enough samples, so a p99 is kept for the next congestion, but used only once.
            let p99 = if congested {
                p99.or(domain.p99.take())
            } else {
                domain.p99 = p99.or(domain.p99);
                p99
            };
            if congested {
                domain.p99 = None;
            }
            if let Some(p99) = p99
                && (congested || p99 >= GOOD_BUCKETS)
            {
                domain.tokens = (domain.tokens * (p99 + 1) / GOOD_BUCKETS).clamp(1, most);
            }
        }
    }

    fn take(&mut self) -> Option<Id> {
        let domain = &mut self.domains[self.turn];
        if domain.below >= domain.tokens {
            return None;
        }
        let id = self.lists.pop(&mut domain.queue)?;
        domain.below += 1;
        self.batched += 1;
        Some(id)
    }
}

impl Scheduler for Kyber {
    const NAME: &'static str = "kyber";
    const ABOUT: &'static str =
        "limits on reads, writes and trims below that follow their latencies (Linux 4.20, kyber-iosched)";
    /// Multi-queue kernels plug by task, and traces do not record which requests a task submits together.
    const PLUGS: bool = false;
    type Settings = KyberSettings;

    fn new(settings: &KyberSettings, _: SchedulerContext) -> Self {
        let domain = |tokens| Domain {
            queue: List::default(),
            tokens,
            below: 0,
            whole: Histogram::default(),
            device: Histogram::default(),
            patience_ends: None,
            p99: None,
        };
        Self {
            targets: [settings.read_latency, settings.write_latency, settings.trim_latency],
            lists: Lists::default(),
            domains: TOKENS.map(domain),
            turn: 0,
            batched: 0,
            window_ends: None,
            windows_congested: 0,
            windows: 0,
        }
    }

    #[inline]
    fn add(&mut self, id: Id, pool: &mut Pool, _: Nanos) {
        self.lists.push(&mut self.domains[domain(pool.get(id).kind)].queue, id);
    }

    fn swallowed(&mut self, id: Id, _: Id, pool: &Pool) {
        self.lists.remove(&mut self.domains[domain(pool.get(id).kind)].queue, id);
    }

    fn dispatch(&mut self, now: Nanos, _: u32, _: &mut Pool) -> Choice {
        self.adjust(now);
        if self.batched < BATCH[self.turn]
            && let Some(id) = self.take()
        {
            return Choice::Send(id);
        }
        self.batched = 0;
        for _ in 0..self.domains.len() {
            self.turn = (self.turn + 1) % self.domains.len();
            if let Some(id) = self.take() {
                return Choice::Send(id);
            }
        }
        // Waiting requests lack tokens, and the end of the window may bring some.
        self.window_ends.map_or(Choice::Nothing, Choice::Wait)
    }

    fn completed(&mut self, request: &Queued, _: Nanos, now: Nanos) {
        self.adjust(now);
        let at = domain(request.kind);
        let domain = &mut self.domains[at];
        domain.below -= 1;
        if let Some(target) = self.targets.get(at) {
            domain.whole.add(now - request.queued_at, *target);
            domain.device.add(now - request.handed_on_at, *target);
            self.window_ends.get_or_insert(now + WINDOW);
        }
    }

    fn figures(&self) -> Vec<(String, f64)> {
        vec![
            ("windows".to_owned(), f64::from(self.windows)),
            ("windows_congested".to_owned(), f64::from(self.windows_congested)),
            ("read_tokens".to_owned(), f64::from(self.domains[0].tokens)),
            ("write_tokens".to_owned(), f64::from(self.domains[1].tokens)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_fall_into_quarters_of_their_target() {
        let mut histogram = Histogram::default();
        let target = Nanos(2_000_000);
        // A latency of exactly a quarter is in the first bucket, a longer one in the second, the target in the fourth.
        for latency in [0, 500_000, 500_001, 2_000_000, 2_000_001, 3_500_001, 90_000_000] {
            histogram.add(Nanos(latency), target);
        }
        assert_eq!(histogram.0, [2, 1, 0, 1, 1, 0, 0, 2]);
        // Of seven samples the fifth is at 71 %, the sixth at 85 %.
        assert_eq!([28, 42, 57, 71, 72, 99].map(|percent| histogram.percentile(percent)), [0, 1, 3, 4, 7, 7]);
    }
}
