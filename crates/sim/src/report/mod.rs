//! The result of a run, as programs read it: one type for runs on simulated drives and for replays on any device, its
//! JSON, and the schema of that.

mod parts;
mod replayed;
mod schema;
mod simulated;

pub use parts::*;
pub use replayed::ReplayReport;
pub use schema::schema;
pub use simulated::RunReport;

pub(crate) use replayed::Replayed;
pub(crate) use simulated::Cost;

use crate::latency::{Latency, LatencySummary};
use crate::measure::{Tally, Times};
use crate::player::Pace;
use crate::settle::Settled;
use crate::warnings::Warning;
use flashwright_block::RequestKind;
use flashwright_host::{LayerFigures, Waits};
use flashwright_ssd::ControllerFigures;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The JSON of a run: what `--json` writes, of `simulate` and of `replay`. A figure that does not apply is null, never
/// missing and never 0.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Report {
    /// Version of Flashwright.
    pub version: String,
    /// What was run: the configuration of a simulated drive, every default written out; of a real device its name and how it
    /// was opened.
    #[schemars(with = "Map<String, Value>")]
    pub config: Value,
    /// The seed; with `version`, `config` and `workload` all it takes to run it again.
    pub seed: u64,
    /// The workload in words.
    pub workload: String,
    /// What was done to the drive before the workload. Null in a replay on a real device.
    pub precondition: Option<PreconditionReport>,
    /// When requests were issued.
    pub pace: Pace,
    /// How the run ended.
    pub ended: Ended,
    /// Why it ended so. Null where it is complete.
    pub note: Option<String>,
    /// What the figures cover.
    pub measured: Measured,
    /// What the host asked for since measuring began.
    pub host: HostCounts,
    /// Requests by kind since measuring began.
    pub requests: RequestCounts,
    /// Requests that were not played because the target must not be changed. Null in a run.
    pub left_out: Option<LeftOut>,
    /// What the replay was played on. Null in a run.
    pub target: Option<ReplayTarget>,
    /// What the flash did since measuring began.
    pub flash: FlashCounts,
    /// Whether the drive had settled under the workload. Null in a replay.
    pub settled: Option<Settled>,
    /// What to know before using the figures, the most important first.
    pub warnings: Vec<Warning>,
    /// `flash.programs.total` over `host.pages_written`: below 1 where buffers take writes. Null in a replay, and where the host wrote nothing.
    pub write_amplification: Option<f64>,
    /// `flash.programs.total` over `host.pages_into_flash`: what cleaning makes of the pages that buffers let through. Equal
    /// to `write_amplification` where nothing lies before the flash. Null in a replay, and where no page came through.
    pub write_amplification_into_flash: Option<f64>,
    /// Cleaning since measuring began.
    pub gc: Gc,
    /// Merges since measuring began.
    pub merges: MergeCounts,
    /// The cached mapping table since measuring began.
    pub mapping_cache: MappingCacheCounts,
    /// The RAM before the translation layer, since measuring began.
    pub buffer: Buffer,
    /// The translation layer. Null in a replay.
    pub scheme: Option<SchemeReport>,
    /// Wear since the drive was new.
    pub wear: Wear,
    /// Times from the arrival of a request to its end, queueing included.
    pub response_time_ns: TimesByKind,
    /// Times from the drive taking a request to its end.
    pub service_time_ns: TimesByKind,
    /// How much later than asked requests were handed over. Null in a run, and in a closed loop.
    pub lateness_ns: Option<LatencySummary>,
    /// Rates over the measured time.
    pub throughput: Throughput,
    /// What the drive's controller did since measuring began. Null without one.
    pub controller: Option<ControllerFigures>,
    /// The schedulers before the drive, from the host down.
    pub host_layers: Vec<HostLayer>,
    /// Share of the measured time for which each part of the drive was busy. Counts an operation under way where measuring
    /// begins or ends as a whole.
    pub busy: Busy,
    /// The verify mode.
    pub verify: Verify,
    /// What the verify mode found wrong, a sentence each. Null in a replay.
    pub violations: Option<Vec<String>>,
    /// The drive. Null in a replay.
    pub drive: Option<Drive>,
    /// Digest of every completion and of the drive's state: equal where two runs are. Null in a replay.
    pub digest: Option<String>,
    /// What the run cost here.
    pub run: RunCost,
    /// What to know of the workload: labels, how addresses were fitted, lines that were skipped.
    pub workload_notes: Vec<String>,
    /// What a program above the drive did, by name. Null of other workloads.
    #[schemars(with = "Option<BTreeMap<String, Option<f64>>>")]
    pub application: Option<Map<String, Value>>,
    /// Policies from outside the simulator.
    pub policies: Vec<PolicyUsed>,
}

impl Report {
    /// The documented JSON.
    ///
    /// # Panics
    /// Never: a report is plain data.
    #[must_use]
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("a report is plain data")
    }

    /// The documented JSON as text.
    ///
    /// # Panics
    /// Never: a report is plain data.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is plain data")
    }
}

/// `a / b`; none where there is no `b`.
#[allow(clippy::cast_precision_loss)] // counts far below 2^53
fn ratio(a: u64, b: u64) -> Option<f64> {
    (b > 0).then(|| a as f64 / b as f64)
}

/// Figures by name.
fn by_name(figures: impl IntoIterator<Item = (String, f64)>) -> Map<String, Value> {
    figures.into_iter().map(|(name, value)| (name, json!(value))).collect()
}

fn times_by_kind(tally: &Tally, pick: impl Fn(&Times) -> Latency) -> TimesByKind {
    let of = |kind: RequestKind| pick(&tally.times[kind as usize]).summary();
    TimesByKind {
        all: tally.moved(&pick).summary(),
        read: of(RequestKind::Read),
        write: of(RequestKind::Write),
        trim: of(RequestKind::Trim),
        flush: of(RequestKind::Flush),
    }
}

fn request_counts(tally: &Tally) -> RequestCounts {
    let of = |kind: RequestKind| tally.by_kind[kind as usize];
    RequestCounts {
        read: of(RequestKind::Read),
        write: of(RequestKind::Write),
        trim: of(RequestKind::Trim),
        flush: of(RequestKind::Flush),
        bytes_read: tally.bytes[RequestKind::Read as usize],
        bytes_written: tally.bytes[RequestKind::Write as usize],
    }
}

#[allow(clippy::cast_precision_loss)] // counts and nanoseconds far below 2^53
fn throughput(tally: &Tally) -> Throughput {
    let nanos = tally.duration_ns();
    let per_s = |count: u64| (tally.timed && nanos > 0).then(|| count as f64 * 1e9 / nanos as f64);
    Throughput { iops: per_s(tally.by_kind[..2].iter().sum()), bytes_per_s: per_s(tally.bytes.iter().sum()) }
}

#[allow(clippy::cast_precision_loss)] // requests far below 2^53
fn run_cost(cpu_s: f64, requests: u64) -> RunCost {
    RunCost {
        cpu_s,
        requests_per_cpu_s: (cpu_s > 0.0).then(|| requests as f64 / cpu_s),
        peak_rss_bytes: peak_rss_bytes(),
    }
}

/// What a scheduler did, with means.
fn host_layer(layer: LayerFigures) -> HostLayer {
    // By name, so that no count that is added there is forgotten here.
    let LayerFigures {
        scheduler,
        requests,
        back_merges,
        front_merges,
        joined,
        held_for_order,
        held_for_room,
        reads,
        writes,
        others,
        read_waits,
        write_waits,
        extra,
    } = layer;
    let waited = |waits: Waits, requests: u64| Waited { waits, mean_ns: ratio(waits.total_ns, requests) };
    HostLayer {
        scheduler,
        requests,
        back_merges,
        front_merges,
        joined,
        held_for_order,
        held_for_room,
        reads: Dispatched { counts: reads, bytes_mean: ratio(reads.bytes, reads.requests) },
        writes: Dispatched { counts: writes, bytes_mean: ratio(writes.bytes, writes.requests) },
        others,
        read_waits: waited(read_waits, reads.requests),
        write_waits: waited(write_waits, writes.requests),
        extra: by_name(extra),
    }
}

/// The most memory that the process ever held, where the system tells.
fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
