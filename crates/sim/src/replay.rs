//! Plays a workload on any block device in that device's own time: a real drive, a file, or a simulated drive.
//!
//! ```text
//!   source ─► Limited ─► Player ─► Stack ─► device
//!             leaves out   ▲        the host's
//!             writes       │        schedulers
//!                        Limits: stop, time limit, lateness
//! ```
//!
//! Nothing here knows flash. Figures of a run that a replay cannot know are null, under the same names.
//!
//! A real device keeps working between two steps, so completions would be noticed late and count as slow. So the caller
//! runs steps without a pause on their own thread, and observers read a [`Watch`].

use crate::latency::Latency;
use crate::measure::Series;
use crate::player::{Gate, Pace, PlayError, Player, Step};
use crate::report::{Ended, ReplayReport, Replayed};
use crate::simulation::cpu_seconds;
use flashwright_block::{
    BlockDevice, Bytes, Completion, DeviceInfo, Interactive, IoError, Nanos, Request, RequestKind, RequestSource,
    SECTOR_BYTES, Seed, SourceError,
};
use flashwright_host::{Stack, StackError, StackSettings};
use serde_json::Value;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The settings of a replay, apart from its device and source.
#[derive(Clone, Debug)]
pub struct ReplaySettings {
    /// The workload in words, for the report.
    pub workload: String,
    /// Description of the device for the report; an object with a `name`.
    pub config: Value,
    /// The schedulers between player and device.
    pub host: StackSettings,
    /// The seed of the workload.
    pub seed: Seed,
    /// When requests are issued.
    pub pace: Pace,
    /// Largest number of requests taken from the source, including those left out; none for all.
    pub requests: Option<u64>,
    /// How long requests are issued, on the device's clock; none for no limit.
    pub time_limit: Option<Nanos>,
    /// Whether writes, trims and flushes are played. If not, they are left out and counted.
    pub writes: bool,
    /// Whether the device's clock runs by itself.
    pub real_time: bool,
    /// Whether the device has meaningful times. For drives without timing, no times are reported.
    pub timed: bool,
}

/// What a scan finds out about a source before it is played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Requests that will be played.
    pub played: u64,
    /// Requests that will be left out.
    pub left_out: u64,
    /// The sector after the last one played.
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
    #[error("request {number} ({what}) ends at {end}, but the device has {capacity}")]
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
    #[error("request {number} ({what}) is not aligned to the device's blocks of {block}")]
    Misaligned {
        /// Its number, from 1.
        number: u64,
        /// The request in words.
        what: String,
        /// The device's block.
        block: Bytes,
    },
    /// Nothing would be played.
    #[error("nothing to play: all {requests} requests would change the device, and only reads may be played")]
    OnlyWrites {
        /// Requests scanned.
        requests: u64,
    },
    /// A program above a file system writes.
    #[error("a program above a file system writes, and only reads may be played")]
    Writes,
    /// The source has no requests.
    #[error("nothing to play: the workload has no requests")]
    Empty,
    /// The caller has stopped the scan.
    #[error("stopped")]
    Stopped,
}

/// Scans a source before anything is played, and checks that every request to be played fits the device. It calls
/// `stopped` from time to time.
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
        // The program was laid out for the device's size, and its requests depend on the device.
        return if writes { Ok(found) } else { Err(ScanError::Writes) };
    }
    let mut batch = Vec::with_capacity(BATCH);
    let bounds = device.bounds();
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
            let end = request.end_sector();
            let what = || format!("{} of {}", request.kind.name(), Bytes(u64::from(request.sectors) * SECTOR_BYTES));
            match bounds.check(request) {
                Ok(()) => {}
                Err(IoError::Misaligned { .. }) => {
                    let what = format!("{} at byte {}", what(), request.first_sector * SECTOR_BYTES);
                    return Err(ScanError::Misaligned { number, what, block: bounds.block });
                }
                Err(_) => {
                    let end = Bytes(end.saturating_mul(SECTOR_BYTES));
                    return Err(ScanError::PastEnd { number, what: what(), end, capacity: device.capacity });
                }
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

/// Progress of a replay for other threads, which can also stop it here.
#[derive(Debug, Default)]
pub struct Watch {
    stop: AtomicBool,
    completed: AtomicU64,
    left_out: AtomicU64,
    total: AtomicU64,
    device_ns: AtomicU64,
}

/// Progress of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayProgress {
    /// Requests completed.
    pub completed: u64,
    /// Requests left out so far.
    pub left_out: u64,
    /// Requests that will be completed, if known.
    pub total: Option<u64>,
    /// Time on the device's clock since playing began.
    pub elapsed: Nanos,
}

impl Watch {
    /// Ends the replay: it issues no more requests and waits for those in flight.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }
    /// Whether a stop was requested.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }
    /// Sets how many requests will be completed; 0 for unknown.
    pub fn expect_requests(&self, total: u64) {
        self.total.store(total, Relaxed);
    }
    /// The progress so far.
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
/// let found = replay.report().report;
/// assert_eq!(found.measured.requests, 1000 - found.left_out.ok_or("of a replay")?.writes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Replay<D> {
    settings: ReplaySettings,
    device: Stack<D>,
    limits: Limits,
    player: Player,
    admitted: Admitted,
    measured: Series,
    watch: Arc<Watch>,
    ended: Option<(Ended, Option<String>)>,
    cpu_s: f64,
}

impl<D: BlockDevice> Replay<D> {
    /// Prepares a replay on `device` in its current state. Nothing is played yet, but the time limit starts now.
    ///
    /// # Errors
    /// Every validation error of [`ReplaySettings::host`].
    pub fn new(device: D, settings: ReplaySettings) -> Result<Self, Vec<StackError>> {
        Self::watched(device, settings, Arc::default())
    }

    /// As [`Replay::new`], with an existing watch.
    ///
    /// # Errors
    /// As [`Replay::new`].
    pub fn watched(device: D, settings: ReplaySettings, watch: Arc<Watch>) -> Result<Self, Vec<StackError>> {
        let device = Stack::new(&settings.host, device)?;
        let started = device.now();
        Ok(Self {
            device,
            limits: Limits {
                watch: Arc::clone(&watch),
                until: settings.time_limit.map_or(Nanos(u64::MAX), |limit| Nanos(started.0.saturating_add(limit.0))),
                sleeps: settings.real_time && matches!(settings.pace, Pace::Open { .. }),
                reached: None,
                lateness: Latency::default(),
            },
            player: Player::new(settings.pace, started),
            admitted: Admitted {
                writes: settings.writes,
                left: settings.requests.unwrap_or(u64::MAX),
                left_out: [0; RequestKind::COUNT],
                watch: Arc::clone(&watch),
            },
            measured: Series::new(started, settings.timed),
            watch,
            ended: None,
            cpu_s: 0.0,
            settings,
        })
    }

    /// The watch, to follow and stop the replay from other threads.
    #[must_use]
    pub fn watch(&self) -> Arc<Watch> {
        Arc::clone(&self.watch)
    }

    /// The device under all schedulers.
    #[must_use]
    pub fn device(&self) -> &D {
        self.device.device()
    }

    /// Plays about `budget` more requests; returns true when the replay has ended, for whatever reason.
    pub fn step(&mut self, source: &mut dyn RequestSource, budget: u64) -> bool {
        if self.ended.is_some() {
            return true;
        }
        let began = cpu_seconds();
        let (measured, watch) = (&mut self.measured, &self.watch);
        let result = self.player.play_gated(
            &mut self.device,
            &mut Limited { source, admitted: &mut self.admitted },
            self.player.submitted().saturating_add(budget),
            false,
            &mut self.limits,
            |completion, _| completed(measured, watch, completion),
        );
        self.ended = match result {
            Ok(Step::Paused) => None,
            Ok(Step::Finished) if self.watch.is_stopped() => Some((Ended::Interrupted, None)),
            Ok(Step::Finished) => Some((Ended::Complete, None)),
            Ok(Step::Stopped) => self.limits.reached.map(|ended| (ended, None)),
            Err(PlayError::Device(IoError::WornOut { reason })) => Some((Ended::WornOut, Some(reason))),
            Err(error) => Some((Ended::Failed, Some(error.to_string()))),
        };
        self.cpu_s += cpu_seconds() - began;
        self.ended.is_some()
    }

    /// The report of what was measured so far.
    #[must_use]
    pub fn report(&self) -> ReplayReport {
        let (ended, note) = self.ended.clone().unwrap_or((Ended::Interrupted, None));
        Replayed {
            settings: &self.settings,
            measured: &self.measured,
            device: self.device.info(),
            layers: self.device.figures(),
            lateness: &self.limits.lateness,
            left_out: self.admitted.left_out,
            ended,
            note,
            cpu_s: self.cpu_s,
        }
        .report()
    }
}

/// Adds a completion to the measurement and updates the watch.
fn completed(measured: &mut Series, watch: &Watch, completion: &Completion) {
    if completion.result.is_err() {
        return; // its times are not service times
    }
    measured.completed(completion);
    watch.completed.store(measured.tally.requests, Relaxed);
    watch.device_ns.store(completion.end.0 - measured.tally.start_ns, Relaxed);
}

/// Decides which requests of a source are played, and counts the others.
struct Admitted {
    writes: bool,
    left: u64,
    left_out: [u64; RequestKind::COUNT],
    watch: Arc<Watch>,
}

/// A source that passes on only some requests.
struct Limited<'a> {
    source: &'a mut dyn RequestSource,
    admitted: &'a mut Admitted,
}

impl RequestSource for Limited<'_> {
    /// A program decides itself which requests it makes, so none can be left out.
    fn interactive(&mut self) -> Option<&mut dyn Interactive> {
        self.source.interactive()
    }

    fn fill(&mut self, batch: &mut Vec<Request>, at_most: usize) -> Result<usize, SourceError> {
        let admitted = &mut *self.admitted;
        let begin = batch.len();
        // A source may have long stretches of writes: skip to the next read, unless a stop was requested.
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

/// Decides when to stop issuing requests, and measures how late they were submitted.
struct Limits {
    watch: Arc<Watch>,
    until: Nanos,
    /// Whether to sleep until arrivals, in real time.
    sleeps: bool,
    /// Which limit was reached.
    reached: Option<Ended>,
    lateness: Latency,
}

/// How long a stop may wait for a sleep. We chose a time too short for a person to notice.
const NAP: Nanos = Nanos(50_000_000);

impl<D: BlockDevice> Gate<D> for Limits {
    /// Waits for the request's arrival.
    fn admit(&mut self, request: &Request, device: &mut D) -> Result<ControlFlow<()>, IoError> {
        let mut now = device.now();
        loop {
            let reached = if self.watch.is_stopped() {
                Ended::Interrupted
            } else if now >= self.until || request.arrival >= self.until {
                Ended::TimeLimit
            } else if self.sleeps && now < request.arrival {
                // The player gets here early only with nothing in flight, so this wait is a sleep.
                let nap = Nanos(request.arrival.0.min(now.0 + NAP.0));
                let completed = device.wait(nap, &mut Completion::default())?;
                assert!(!completed, "the player waits for what is in flight before an arrival");
                now = device.now();
                continue;
            } else {
                self.lateness.record(now.0.saturating_sub(request.arrival.0));
                return Ok(ControlFlow::Continue(()));
            };
            self.reached = Some(reached);
            return Ok(ControlFlow::Break(()));
        }
    }
}
