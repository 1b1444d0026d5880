//! Measurements of a run's requests on any device: counts, times, and windows of the time series.
//!
//! ```text
//!                 Tally: counts and times by kind, the window under way
//!                  ╱                                          ╲
//!   Measurement (run.rs): simulated drives,          Series (series.rs): any device,
//!   windows with what the flash did in them          windows of even length
//! ```

mod rows;
mod run;
mod series;
mod snapshots;

pub use rows::{Closeup, RequestColumns};
pub use run::{FlashWindow, Window, WindowRow};
pub use snapshots::{Snapshot, Snapshots};

pub(crate) use run::{Measurement, OfQueue, mix};
pub(crate) use series::Series;

use crate::latency::Latency;
use flashwright_block::{Completion, RequestClass, RequestKind, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

/// Times of one kind of request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Times {
    /// Times of requests that did not wait: response time and service time are equal.
    unqueued: Latency,
    queued_response: Latency,
    queued_service: Latency,
}

impl Times {
    #[inline(always)]
    fn record(&mut self, response: u64, service: u64) {
        if response == service {
            self.unqueued.record(response);
        } else {
            self.record_queued(response, service);
        }
    }

    #[inline(never)]
    fn record_queued(&mut self, response: u64, service: u64) {
        self.queued_response.record(response);
        self.queued_service.record(service);
    }

    /// Times from arrival to end.
    pub fn response(&self) -> Latency {
        let mut all = self.unqueued.clone();
        all.merge(&self.queued_response);
        all
    }

    /// Times from the drive taking the request to its end.
    pub fn service(&self) -> Latency {
        let mut all = self.unqueued.clone();
        all.merge(&self.queued_service);
        all
    }
}

/// The requests that completed in one window of the time series.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestWindow {
    /// Requests completed by its end, in total.
    pub requests_end: u64,
    /// Its end: on the drive's clock in a run, since the start of playing in a replay.
    pub time_end_ns: u64,
    /// Its duration.
    pub duration_ns: u64,
    /// Requests completed in it.
    pub requests: u64,
    /// Reads and writes among them whose times were measured; response times and rates cover only these.
    pub moved: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Sum of their response times.
    pub response_sum_ns: u128,
    /// 99th percentile of the response times; for joined windows, the largest. None without reads and writes.
    pub response_p99_ns: Option<u64>,
}

impl RequestWindow {
    /// Mean response time; none without reads and writes.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn response_mean_ns(&self) -> Option<f64> {
        (self.moved > 0).then(|| self.response_sum_ns as f64 / self.moved as f64)
    }

    /// Reads and writes per second; none if no time passed.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // counts and nanoseconds far below 2^53
    pub fn iops(&self) -> Option<f64> {
        (self.duration_ns > 0).then(|| self.moved as f64 * 1e9 / self.duration_ns as f64)
    }

    /// Joins this window with the next one.
    fn join(&self, next: &Self) -> Self {
        Self {
            requests_end: next.requests_end,
            time_end_ns: next.time_end_ns,
            duration_ns: self.duration_ns + next.duration_ns,
            requests: self.requests + next.requests,
            moved: self.moved + next.moved,
            bytes_read: self.bytes_read + next.bytes_read,
            bytes_written: self.bytes_written + next.bytes_written,
            response_sum_ns: self.response_sum_ns + next.response_sum_ns,
            response_p99_ns: self.response_p99_ns.max(next.response_p99_ns),
        }
    }
}

/// Joins neighbours in pairs, so that a series of unknown length stays bounded; a last window without a neighbour stays
/// alone.
fn in_pairs<T: Clone>(rows: &[T], join: impl Fn(&T, &T) -> T) -> Vec<T> {
    rows.chunks(2).map(|pair| if let [a, b] = pair { join(a, b) } else { pair[0].clone() }).collect()
}

/// Counts and times of the requests that completed since measuring began.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Tally {
    /// Whether the device has times worth measuring.
    pub timed: bool,
    /// Requests of all kinds.
    pub requests: u64,
    /// By kind.
    pub by_kind: [u64; RequestKind::COUNT],
    /// By kind; flushes have no bytes, and trims transfer none.
    pub bytes: [u64; RequestKind::COUNT],
    /// By kind; empty if the device has no times.
    pub times: [Times; RequestKind::COUNT],
    pub start_ns: u64,
    /// The end of the latest request.
    pub end_ns: u64,
    /// Whether a time series is kept.
    windowed: bool,
    window: WindowStart,
    /// Response times of reads and writes in the current window.
    window_response: Latency,
}

/// Counts at the start of the current window.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct WindowStart {
    requests: u64,
    bytes: [u64; RequestKind::COUNT],
    time_ns: u64,
}

impl Tally {
    pub fn new(now_ns: u64, timed: bool, windowed: bool) -> Self {
        Self {
            timed,
            requests: 0,
            by_kind: [0; RequestKind::COUNT],
            bytes: [0; RequestKind::COUNT],
            times: Default::default(),
            start_ns: now_ns,
            end_ns: now_ns,
            windowed,
            window: WindowStart { time_ns: now_ns, ..WindowStart::default() },
            window_response: Latency::default(),
        }
    }

    #[inline(always)]
    pub fn completed(&mut self, completion: &Completion) {
        self.count(completion);
        if self.timed {
            self.time(completion);
        }
    }

    /// Counts a completed request, but for its times.
    #[inline(always)]
    pub fn count(&mut self, completion: &Completion) {
        let (kind, moves) = (completion.request.kind as usize, completion.request.kind.moves_data());
        self.requests += 1;
        self.by_kind[kind] += 1;
        if moves {
            self.bytes[kind] += u64::from(completion.request.sectors) * SECTOR_BYTES;
        }
        self.end_ns = self.end_ns.max(completion.end.0);
    }

    /// Notes the times of a counted request of a device that has times.
    #[inline(always)]
    pub fn time(&mut self, completion: &Completion) {
        let kind = completion.request.kind;
        let (response, service) = (completion.response_time().0, completion.service_time().0);
        self.times[kind as usize].record(response, service);
        if self.windowed && kind.moves_data() {
            self.window_response.record(response);
        }
    }

    /// Time from the start of measuring to the end of the latest request.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    /// Times of reads and writes. Flushes and trims that take no time would make the distribution bimodal.
    pub fn moved(&self, pick: impl Fn(&Times) -> Latency) -> Latency {
        let mut all = self.of(RequestClass::Read, &pick);
        all.merge(&self.of(RequestClass::Write, pick));
        all
    }

    /// Times of the requests of a class.
    pub fn of(&self, class: RequestClass, pick: impl Fn(&Times) -> Latency) -> Latency {
        let mut all = Latency::default();
        for (kind, times) in RequestKind::ALL.iter().zip(&self.times) {
            if kind.class() == class {
                all.merge(&pick(times));
            }
        }
        all
    }

    /// Distributions of response times, (nanoseconds, share at or below): of reads and writes together, reads, and writes.
    pub fn response_distributions(&self) -> [Vec<(u64, f64)>; 3] {
        [
            self.moved(Times::response),
            self.of(RequestClass::Read, Times::response),
            self.of(RequestClass::Write, Times::response),
        ]
        .map(|latency| latency.distribution())
    }

    /// Requests of the current window.
    #[inline(always)]
    fn requests_in_window(&self) -> u64 {
        self.requests - self.window.requests
    }

    /// The start of the current window.
    #[inline(always)]
    fn window_start_ns(&self) -> u64 {
        self.window.time_ns
    }

    /// The current window as if it ended at `end_ns`.
    fn window(&self, end_ns: u64) -> RequestWindow {
        RequestWindow {
            requests_end: self.requests,
            time_end_ns: end_ns,
            duration_ns: end_ns - self.window.time_ns,
            requests: self.requests_in_window(),
            moved: self.window_response.count(),
            bytes_read: RequestClass::Read.sum(&self.bytes) - RequestClass::Read.sum(&self.window.bytes),
            bytes_written: RequestClass::Write.sum(&self.bytes) - RequestClass::Write.sum(&self.window.bytes),
            response_sum_ns: self.window_response.sum(),
            response_p99_ns: self.window_response.quantile(0.99),
        }
    }

    /// Ends the current window at `end_ns` and begins the next.
    fn end_window(&mut self, end_ns: u64) -> RequestWindow {
        let ended = self.window(end_ns);
        self.window = WindowStart { requests: self.requests, bytes: self.bytes, time_ns: end_ns };
        self.window_response.clear();
        ended
    }
}
