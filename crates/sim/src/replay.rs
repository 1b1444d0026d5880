//! A workload played on any block device, in its own time: a real drive, a file, or a simulated drive.
//!
//! ```text
//!   source ─► Limited ─► Player ─► Paced ─► Stack ─► device
//!             leaves out           stops,    the host's
//!             writes               limits,   schedulers
//!                                  lateness
//! ```
//!
//! Nothing here knows flash. What a run reports and a replay cannot know is null, under the same name.
//!
//! A device in real time goes on while nobody looks: between two steps completions would wait to be seen and count as
//! slow. So steps follow each other at once, on a thread of their own, and whoever watches reads a [`Watch`].

use crate::latency::Latency;
use crate::player::{Pace, PlayError, Player, Step};
use crate::report::{host_layer, peak_rss_bytes};
use crate::simulation::cpu_seconds;
use flashwright_block::{
    Ahead, BlockDevice, Bytes, Completion, DeviceInfo, Interactive, IoError, Nanos, Request, RequestKind,
    RequestSource, SECTOR_BYTES, Seed, SourceError, Tag,
};
use flashwright_host::{Stack, StackError, StackSettings};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// What a replay is made of, beside device and source.
#[derive(Clone, Debug)]
pub struct ReplaySettings {
    /// The workload in words, for the report.
    pub workload: String,
    /// What the device is made of, for the report; an object with a `name`.
    pub config: Value,
    /// The schedulers between player and device.
    pub host: StackSettings,
    /// Of the workload.
    pub seed: Seed,
    /// When requests are issued.
    pub pace: Pace,
    /// Requests taken from the source at most, those left out included; none for all.
    pub requests: Option<u64>,
    /// How long requests are issued, on the device's clock; none for as long as there are some.
    pub time_limit: Option<Nanos>,
    /// Whether writes, trims and flushes are played. Without, they are left out and counted.
    pub writes: bool,
    /// Whether the device's clock runs by itself.
    pub real_time: bool,
    /// Whether the device's times mean something; drives without timing have none, and then no times are reported.
    pub timed: bool,
}

/// How a replay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayEnded {
    /// Every request was played.
    Complete,
    /// The time limit came first.
    TimeLimit,
    /// It was stopped; the figures cover what was finished.
    Interrupted,
    /// The device or the source failed; the figures cover what was finished.
    Failed,
    /// The drive could take no more writes.
    WornOut,
}

/// What is known of a source before it is played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Requests that will be played.
    pub played: u64,
    /// Requests that will be left out.
    pub left_out: u64,
    /// One past the last sector played.
    pub end_sector: u64,
}

/// Why a source can't be played on a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The source is malformed or unreadable.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A request lies beyond the device's end.
    #[error("request {number} ({what}) ends at {end}, but the target has {capacity}")]
    PastEnd {
        /// Its number, from 1.
        number: u64,
        /// The request in words.
        what: String,
        /// Where it ends.
        end: Bytes,
        /// The device's size.
        capacity: Bytes,
    },
    /// A request is not aligned to the device's blocks.
    #[error("request {number} ({what}) is not aligned to the target's blocks of {block}")]
    Misaligned {
        /// Its number, from 1.
        number: u64,
        /// The request in words.
        what: String,
        /// The device's block.
        block: Bytes,
    },
    /// Nothing would be played.
    #[error(
        "nothing to play: all of the {requests} requests looked at would change the target, and only reads may be played"
    )]
    OnlyWrites {
        /// Requests looked at.
        requests: u64,
    },
    /// A program above a file system writes.
    #[error("a program above a file system writes, and only reads may be played")]
    Writes,
    /// The source has no requests.
    #[error("nothing to play: the workload has no requests")]
    Empty,
    /// Whoever asked wants to know no more.
    #[error("stopped")]
    Stopped,
}

/// Looks through a source before anything is played: whether every request that will be played fits the device.
/// `stopped` is asked now and then.
///
/// # Errors
/// [`ScanError`]: one line that names the first request that does not fit.
pub fn scan(
    source: &mut dyn RequestSource,
    device: &DeviceInfo,
    writes: bool,
    at_most: u64,
    stopped: impl Fn() -> bool,
) -> Result<Scanned, ScanError> {
    let mut found = Scanned::default();
    if source.interactive().is_some() {
        // It was laid out for the device's size, and what it does depends on the device.
        return if writes { Ok(found) } else { Err(ScanError::Writes) };
    }
    let mut batch = Vec::with_capacity(BATCH);
    let (capacity, block) = (device.capacity, device.sector);
    let mut number = 0;
    while number < at_most {
        batch.clear();
        let wanted = usize::try_from(at_most - number).unwrap_or(BATCH).min(BATCH);
        if source.fill(&mut batch, wanted)? == 0 {
            break;
        }
        if stopped() {
            return Err(ScanError::Stopped);
        }
        for request in &batch {
            number += 1;
            if !is_admitted(request, writes) {
                found.left_out += 1;
                continue;
            }
            found.played += 1;
            let (begin, end) = (request.first_sector, request.end_sector());
            let what = || format!("{} of {}", request.kind.name(), Bytes(u64::from(request.sectors) * SECTOR_BYTES));
            if end > capacity.0 / SECTOR_BYTES {
                let end = Bytes(end.saturating_mul(SECTOR_BYTES));
                return Err(ScanError::PastEnd { number, what: what(), end, capacity });
            }
            if !(begin * SECTOR_BYTES).is_multiple_of(block.0) || !(end * SECTOR_BYTES).is_multiple_of(block.0) {
                let what = format!("{} at byte {}", what(), begin * SECTOR_BYTES);
                return Err(ScanError::Misaligned { number, what, block });
            }
            found.end_sector = found.end_sector.max(end);
        }
    }
    match (found.played, number) {
        (0, 0) => Err(ScanError::Empty),
        (0, requests) => Err(ScanError::OnlyWrites { requests }),
        _ => Ok(found),
    }
}

const BATCH: usize = 256;

fn is_admitted(request: &Request, writes: bool) -> bool {
    writes || request.kind == RequestKind::Read
}

/// Seen from other threads: how far a replay is. It can be told to stop there.
#[derive(Debug, Default)]
pub struct Watch {
    stop: AtomicBool,
    completed: AtomicU64,
    left_out: AtomicU64,
    total: AtomicU64,
    device_ns: AtomicU64,
}

/// How far a replay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayProgress {
    /// Requests completed.
    pub completed: u64,
    /// Requests left out so far.
    pub left_out: u64,
    /// Requests that will be completed, where that is known.
    pub total: Option<u64>,
    /// Time on the device's clock since playing began.
    pub elapsed: Nanos,
}

impl Watch {
    /// Ends the replay: no more requests are issued, those in flight are waited for.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }
    /// Whether it was told to stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }
    /// Says how many requests will be completed; 0 for unknown.
    pub fn expect_requests(&self, total: u64) {
        self.total.store(total, Relaxed);
    }
    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> ReplayProgress {
        let total = self.total.load(Relaxed);
        ReplayProgress {
            completed: self.completed.load(Relaxed),
            left_out: self.left_out.load(Relaxed),
            total: (total > 0).then_some(total),
            elapsed: Nanos(self.device_ns.load(Relaxed)),
        }
    }
}

/// A replay.
///
/// ```
/// use flashwright_block::{BlockDevice, Seed};
/// use flashwright_sim::{Pace, Replay, ReplaySettings, SourceSpec};
/// use flashwright_ssd::{DriveConfig, Ssd};
/// use flashwright_workload::generate::{Target, WorkloadSpec};
///
/// let device = Ssd::new(&DriveConfig::default(), Seed(1), false)?;
/// let target = Target { logical_sectors: device.info().capacity.0 / 512, page_sectors: 8 };
/// let mut source = SourceSpec::Workload(WorkloadSpec::parse("uniform:write=0.5")?).open_on(&target, Seed(1))?;
/// let settings = ReplaySettings {
///     workload: source.description().to_owned(),
///     config: serde_json::json!({ "name": "a simulated drive" }),
///     host: flashwright_host::StackSettings::default(),
///     seed: Seed(1),
///     pace: Pace::Closed { depth: 4 },
///     requests: Some(1000),
///     time_limit: None,
///     writes: false,
///     real_time: false,
///     timed: true,
/// };
/// let mut replay = Replay::new(device, settings).map_err(|faults| faults[0].what.clone())?;
/// while !replay.step(&mut source, 256) {}
/// let json = replay.report().json;
/// let left_out = json["left_out"]["writes"].as_u64().ok_or("a count")?;
/// assert_eq!(json["measured"]["requests"], 1000 - left_out);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Replay<D> {
    settings: ReplaySettings,
    device: Paced<Stack<D>>,
    player: Player,
    admitted: Admitted,
    measured: Measured,
    watch: Arc<Watch>,
    ended: Option<(ReplayEnded, Option<String>)>,
    cpu_s: f64,
}

impl<D: BlockDevice> Replay<D> {
    /// A replay on `device` as it is now; nothing is played yet, but its time limit runs from here.
    ///
    /// # Errors
    /// Every fault of [`ReplaySettings::host`].
    pub fn new(device: D, settings: ReplaySettings) -> Result<Self, Vec<StackError>> {
        Self::watched(device, settings, Arc::default())
    }

    /// As [`Replay::new`], with a watch that somebody holds already.
    ///
    /// # Errors
    /// As [`Replay::new`].
    pub fn watched(device: D, settings: ReplaySettings, watch: Arc<Watch>) -> Result<Self, Vec<StackError>> {
        let device = Stack::new(&settings.host, device)?;
        let started = device.now();
        Ok(Self {
            device: Paced {
                device,
                watch: Arc::clone(&watch),
                until: settings.time_limit.map_or(Nanos(u64::MAX), |limit| Nanos(started.0.saturating_add(limit.0))),
                sleeps: settings.real_time && matches!(settings.pace, Pace::Open { .. }),
                halted: None,
                lateness: Latency::default(),
            },
            player: Player::new(settings.pace, started),
            admitted: Admitted {
                writes: settings.writes,
                left: settings.requests.unwrap_or(u64::MAX),
                left_out: [0; 4],
                watch: Arc::clone(&watch),
            },
            measured: Measured::new(started, settings.timed),
            watch,
            ended: None,
            cpu_s: 0.0,
            settings,
        })
    }

    /// For looking and stopping from elsewhere.
    #[must_use]
    pub fn watch(&self) -> Arc<Watch> {
        Arc::clone(&self.watch)
    }

    /// The device under all schedulers.
    #[must_use]
    pub fn device(&self) -> &D {
        self.device.device.device()
    }

    /// Goes on by about `budget` requests; true when the replay has come to its end, whatever that is.
    pub fn step(&mut self, source: &mut dyn RequestSource, budget: u64) -> bool {
        if self.ended.is_some() {
            return true;
        }
        let began = cpu_seconds();
        let (measured, watch) = (&mut self.measured, &self.watch);
        let result = self.player.play(
            &mut self.device,
            &mut Limited { source, admitted: &mut self.admitted },
            self.player.submitted().saturating_add(budget),
            false,
            |completion, _| measured.completed(completion, watch),
        );
        self.ended = match result {
            Ok(Step::Paused) => None,
            Ok(Step::Finished) if self.watch.is_stopped() => Some((ReplayEnded::Interrupted, None)),
            Ok(Step::Finished) => Some((ReplayEnded::Complete, None)),
            Err(error) => Some(self.halted(error)),
        };
        self.cpu_s += cpu_seconds() - began;
        self.ended.is_some()
    }

    /// What an error of the player means; what is still in flight is waited for and counts.
    fn halted(&mut self, error: PlayError) -> (ReplayEnded, Option<String>) {
        let mut completion = Completion::default();
        let mut failures = 0;
        loop {
            match self.device.wait(Nanos(u64::MAX), &mut completion) {
                Ok(true) => self.measured.completed(&completion, &self.watch),
                Ok(false) => break,
                // Each failure takes one request out of flight; a device that fails on and on is left alone.
                Err(_) if failures < self.device.info().queue_depth => failures += 1,
                Err(_) => break,
            }
        }
        match (self.device.halted, error) {
            (Some(ended), _) => (ended, None),
            (None, PlayError::Device(IoError::WornOut { reason })) => (ReplayEnded::WornOut, Some(reason)),
            (None, error) => (ReplayEnded::Failed, Some(error.to_string())),
        }
    }

    /// What was found so far.
    #[must_use]
    pub fn report(&self) -> ReplayReport {
        let (ended, note) = self.ended.clone().unwrap_or((ReplayEnded::Interrupted, None));
        let m = &self.measured;
        let duration = m.end.0 - m.started.0;
        let info = self.device.info();
        let count = |kind: RequestKind| m.requests[kind as usize];
        let left_out = |kind: RequestKind| self.admitted.left_out[kind as usize];
        let all: u64 = m.requests.iter().sum();
        let mut json = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "config": self.settings.config,
            "seed": self.settings.seed.0,
            "workload": self.settings.workload,
            "pace": self.settings.pace,
            "ended": ended,
            "note": note,
            "measured": { "requests": all, "duration_ns": m.timed.then_some(duration), "warmup_requests": 0 },
            "host": { "bytes": m.bytes.iter().sum::<u64>() },
            "requests": {
                "read": count(RequestKind::Read),
                "write": count(RequestKind::Write),
                "trim": count(RequestKind::Trim),
                "flush": count(RequestKind::Flush),
                "bytes_read": m.bytes[RequestKind::Read as usize],
                "bytes_written": m.bytes[RequestKind::Write as usize],
            },
            "left_out": {
                "writes": left_out(RequestKind::Write),
                "trims": left_out(RequestKind::Trim),
                "flushes": left_out(RequestKind::Flush),
            },
            "target": {
                "name": info.name,
                "capacity_bytes": info.capacity.0,
                "block_bytes": info.sector.0,
                "queue_depth": info.queue_depth,
                "real_time": self.settings.real_time,
                "writes_allowed": self.settings.writes,
            },
            "response_time_ns": latencies(&m.response),
            "service_time_ns": latencies(&m.service),
            "lateness_ns": match self.settings.pace {
                Pace::Open { .. } => json!(self.device.lateness.summary()),
                Pace::Closed { .. } | Pace::Interactive => Value::Null,
            },
            "host_layers": self.device.device.figures().iter().map(host_layer).collect::<Vec<_>>(),
            "throughput": { "iops": per_s(count(RequestKind::Read) + count(RequestKind::Write), duration), "bytes_per_s": per_s(m.bytes.iter().sum(), duration) },
            "warnings": [],
            "run": {
                "cpu_s": self.cpu_s,
                "requests_per_cpu_s": if self.cpu_s > 0.0 { json!(all as f64 / self.cpu_s) } else { Value::Null },
                "peak_rss_bytes": peak_rss_bytes(),
            },
        });
        fill(&mut json, not_applicable());
        let distribution = |kind: RequestKind| m.response[kind as usize].distribution();
        ReplayReport {
            json,
            rows: m.rows(),
            response_distribution: [
                joined(&m.response).distribution(),
                distribution(RequestKind::Read),
                distribution(RequestKind::Write),
            ],
            lateness_distribution: self.device.lateness.distribution(),
        }
    }
}

/// What a replay found.
#[derive(Clone, Debug)]
pub struct ReplayReport {
    /// The documented JSON; the names are a run's.
    pub json: Value,
    /// The time series.
    pub rows: Vec<ReplayRow>,
    /// Response times: (nanoseconds, share at or below), for all requests, reads, and writes.
    pub response_distribution: [Vec<(u64, f64)>; 3],
    /// How late requests were handed over, likewise; empty in a closed loop.
    pub lateness_distribution: Vec<(u64, f64)>,
}

impl ReplayReport {
    /// The documented JSON as text.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.json).expect("a JSON value is printable")
    }
}

/// A window of the time series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReplayRow {
    /// Requests completed by its end.
    pub requests_end: u64,
    /// Its end, since playing began.
    pub time_end_ns: u64,
    /// Requests completed in it.
    pub requests: u64,
    /// Reads and writes of them; response times and rates are theirs.
    pub moved: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Mean response time; none without requests.
    pub response_mean_ns: Option<f64>,
    /// 99th percentile of it; of windows joined, the largest.
    pub response_p99_ns: Option<u64>,
    /// Reads and writes per second.
    pub iops: f64,
}

/// First length of a window, doubled whenever there are more than [`ROWS_MAX`]. Ours, for plots.
const WINDOW_NS: u64 = 100_000_000;
const ROWS_MAX: usize = 1000;

struct Measured {
    timed: bool,
    started: Nanos,
    end: Nanos,
    requests: [u64; 4],
    bytes: [u64; 4],
    response: [Latency; 4],
    service: [Latency; 4],
    rows: Vec<ReplayRow>,
    window_ns: u64,
    /// The window under way; its time and requests are sums until it ends.
    row: ReplayRow,
    row_sum_ns: f64,
    row_times: Latency,
}

impl Measured {
    fn new(started: Nanos, timed: bool) -> Self {
        Self {
            timed,
            started,
            end: started,
            requests: [0; 4],
            bytes: [0; 4],
            response: Default::default(),
            service: Default::default(),
            rows: Vec::with_capacity(ROWS_MAX + 1),
            window_ns: WINDOW_NS,
            row: ReplayRow { time_end_ns: WINDOW_NS, ..ReplayRow::default() },
            row_sum_ns: 0.0,
            row_times: Latency::default(),
        }
    }

    #[inline]
    #[allow(clippy::cast_precision_loss)] // nanoseconds far below 2^53
    fn completed(&mut self, completion: &Completion, watch: &Watch) {
        let request = &completion.request;
        let kind = request.kind as usize;
        let moves = request.kind.moves_data();
        let bytes = if moves { u64::from(request.sectors) * SECTOR_BYTES } else { 0 };
        let response = completion.response_time().0;
        self.end = self.end.max(completion.end);
        self.requests[kind] += 1;
        self.bytes[kind] += bytes;
        if self.timed {
            self.response[kind].record(response);
            self.service[kind].record(completion.service_time().0);
        }
        let elapsed = completion.end.0 - self.started.0;
        while elapsed > self.row.time_end_ns {
            self.end_row(elapsed);
        }
        self.row.requests += 1;
        match request.kind {
            RequestKind::Read => self.row.bytes_read += bytes,
            RequestKind::Write => self.row.bytes_written += bytes,
            _ => {}
        }
        if moves {
            self.row_sum_ns += response as f64;
            self.row_times.record(response);
        }
        watch.completed.store(watch.completed.load(Relaxed) + 1, Relaxed); // one writer

        watch.device_ns.store(elapsed, Relaxed);
    }

    fn end_row(&mut self, elapsed: u64) {
        let row = self.finished_row(self.row.time_end_ns);
        self.rows.push(row);
        self.row_times.clear();
        self.row_sum_ns = 0.0;
        // After a long silence windows grow first, so that it takes no millions of empty ones.
        while self.rows.len() > ROWS_MAX || (elapsed - row.time_end_ns) / self.window_ns > ROWS_MAX as u64 {
            self.double_windows();
        }
        let begun = self.rows.last().map_or(0, |row| row.time_end_ns);
        self.row = ReplayRow { time_end_ns: begun + self.window_ns, ..ReplayRow::default() };
    }

    /// Joins neighbours; the last one stays alone if it has none.
    #[allow(clippy::cast_precision_loss)]
    fn double_windows(&mut self) {
        self.window_ns *= 2;
        let mut begun = 0;
        let joined = self.rows.chunks(2).map(|pair| {
            let last = pair[pair.len() - 1];
            let requests: u64 = pair.iter().map(|row| row.requests).sum();
            let moved: u64 = pair.iter().map(|row| row.moved).sum();
            let sum: f64 = pair.iter().filter_map(|row| Some(row.response_mean_ns? * row.moved as f64)).sum();
            let row = ReplayRow {
                requests,
                moved,
                bytes_read: pair.iter().map(|row| row.bytes_read).sum(),
                bytes_written: pair.iter().map(|row| row.bytes_written).sum(),
                response_mean_ns: (moved > 0).then(|| sum / moved as f64),
                response_p99_ns: pair.iter().filter_map(|row| row.response_p99_ns).max(),
                iops: moved as f64 * 1e9 / (last.time_end_ns - begun) as f64,
                ..last
            };
            begun = last.time_end_ns;
            row
        });
        self.rows = joined.collect();
        self.rows.reserve(ROWS_MAX + 1);
    }

    /// The window under way as if it ended at `time_end_ns`.
    #[allow(clippy::cast_precision_loss)]
    fn finished_row(&self, time_end_ns: u64) -> ReplayRow {
        let (begun, before) = self.rows.last().map_or((0, 0), |row| (row.time_end_ns, row.requests_end));
        let (requests, moved) = (self.row.requests, self.row_times.count());
        ReplayRow {
            requests_end: before + requests,
            time_end_ns,
            response_mean_ns: (moved > 0).then(|| self.row_sum_ns / moved as f64),
            response_p99_ns: self.row_times.quantile(0.99),
            iops: moved as f64 * 1e9 / (time_end_ns - begun) as f64,
            ..self.row
        }
    }

    fn rows(&self) -> Vec<ReplayRow> {
        let mut rows = self.rows.clone();
        let elapsed = self.end.0 - self.started.0;
        if self.timed && self.row.requests > 0 && elapsed > rows.last().map_or(0, |row| row.time_end_ns) {
            rows.push(self.finished_row(elapsed));
        }
        rows
    }
}

/// Which requests of a source are played, and how many were not.
struct Admitted {
    writes: bool,
    left: u64,
    left_out: [u64; 4],
    watch: Arc<Watch>,
}

/// A source of which only some requests come through.
struct Limited<'a> {
    source: &'a mut dyn RequestSource,
    admitted: &'a mut Admitted,
}

impl RequestSource for Limited<'_> {
    /// A program decides by itself what it asks for: nothing of it can be left out.
    fn interactive(&mut self) -> Option<&mut dyn Interactive> {
        self.source.interactive()
    }

    fn fill(&mut self, batch: &mut Vec<Request>, at_most: usize) -> Result<usize, SourceError> {
        let admitted = &mut *self.admitted;
        let begin = batch.len();
        // A source may have long stretches of writes: on to the next read, unless somebody wants to stop.
        while batch.len() == begin && admitted.left > 0 && !admitted.watch.is_stopped() {
            let wanted = at_most.min(usize::try_from(admitted.left).unwrap_or(at_most));
            let got = self.source.fill(batch, wanted)?;
            if got == 0 {
                break;
            }
            admitted.left -= got as u64;
            if admitted.writes {
                break;
            }
            let mut kept = begin;
            for at in begin..batch.len() {
                let request = batch[at];
                if is_admitted(&request, false) {
                    batch[kept] = request;
                    kept += 1;
                } else {
                    admitted.left_out[request.kind as usize] += 1;
                }
            }
            batch.truncate(kept);
            admitted.watch.left_out.store(admitted.left_out.iter().sum(), Relaxed);
        }
        Ok(batch.len() - begin)
    }
}

/// A device that can be told to take no more requests, and that notes how late they come.
struct Paced<D> {
    device: D,
    watch: Arc<Watch>,
    until: Nanos,
    /// Whether arrivals are to be slept for, in real time.
    sleeps: bool,
    halted: Option<ReplayEnded>,
    lateness: Latency,
}

/// How long a stop may wait for a sleep. Ours: below what a person notices.
const NAP: Nanos = Nanos(50_000_000);

impl<D: BlockDevice> Paced<D> {
    /// Waits for the request's arrival and says whether it may still be issued. An error here only carries the word up
    /// through the player.
    fn admit(&mut self, request: &Request) -> Result<(), IoError> {
        let mut now = self.device.now();
        loop {
            let ended = if self.watch.is_stopped() {
                ReplayEnded::Interrupted
            } else if now >= self.until || request.arrival >= self.until {
                ReplayEnded::TimeLimit
            } else if self.sleeps && now < request.arrival {
                // The player comes here early only with nothing in flight, so that this is a sleep.
                let nap = Nanos(request.arrival.0.min(now.0 + NAP.0));
                let completed = self.device.wait(nap, &mut Completion::default())?;
                assert!(!completed, "the player waits for what is in flight before an arrival");
                now = self.device.now();
                continue;
            } else {
                self.lateness.record(now.0.saturating_sub(request.arrival.0));
                return Ok(());
            };
            self.halted = Some(ended);
            return Err(IoError::Device("no more requests are issued".into()));
        }
    }
}

impl<D: BlockDevice> BlockDevice for Paced<D> {
    fn info(&self) -> DeviceInfo {
        self.device.info()
    }
    fn now(&self) -> Nanos {
        self.device.now()
    }
    fn submit(&mut self, request: Request) -> Result<Tag, IoError> {
        self.admit(&request)?;
        self.device.submit(request)
    }
    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        self.device.wait(until, completion)
    }
    fn execute(&mut self, request: Request, completion: &mut Completion) -> Result<(), IoError> {
        self.admit(&request)?;
        self.device.execute(request, completion)
    }
    fn expect(&self, request: &Request, ahead: Ahead) {
        self.device.expect(request, ahead);
    }
}

/// Times of reads and writes.
fn joined(times: &[Latency; 4]) -> Latency {
    let mut all = Latency::default();
    times[..2].iter().for_each(|one| all.merge(one));
    all
}

fn latencies(times: &[Latency; 4]) -> Value {
    json!({
        "all": joined(times).summary(),
        "read": times[RequestKind::Read as usize].summary(),
        "write": times[RequestKind::Write as usize].summary(),
        "trim": times[RequestKind::Trim as usize].summary(),
        "flush": times[RequestKind::Flush as usize].summary(),
    })
}

#[allow(clippy::cast_precision_loss)] // counts and nanoseconds far below 2^53
fn per_s(count: u64, nanos: u64) -> Value {
    if nanos > 0 { json!(count as f64 * 1e9 / nanos as f64) } else { Value::Null }
}

/// A run's documented figures of which a replay knows nothing, each null.
fn not_applicable() -> Value {
    let nulls = |names: &str| -> Value {
        names.split(' ').map(|name| (name.to_owned(), Value::Null)).collect::<serde_json::Map<_, _>>().into()
    };
    let causes = || nulls("host gc merge padding translation wear total");
    json!({
        "precondition": null,
        "settled": null,
        "application": null,
        "controller": null,
        "host": nulls("pages_read pages_written pages_trimmed bytes"),
        "flash": { "reads": causes(), "programs": causes(), "erases": causes() },
        "write_amplification": null,
        "gc": nulls("collections efficiency"),
        "merges": nulls("switch partial full"),
        "mapping_cache": nulls("lookups hits hit_ratio dirty_evictions"),
        "buffer": nulls("write_hits read_hits destages pages_per_destage_mean pages_padded"),
        "wear": {
            "erases_per_block": nulls("min max mean stdev"),
            "blocks_worn_out": null,
            "endurance_efficiency": null,
        },
        "busy": nulls("dies channels"),
        "verify": nulls("enabled violations"),
    })
}

/// Adds the members of `nulls` that `json` lacks, objects member by member.
fn fill(json: &mut Value, nulls: Value) {
    let (Value::Object(json), Value::Object(nulls)) = (json, nulls) else { return };
    for (name, null) in nulls {
        match json.get_mut(&name) {
            Some(there) => fill(there, null),
            None => {
                json.insert(name, null);
            }
        }
    }
}
