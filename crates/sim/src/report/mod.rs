//! The result of a run as programs read it: one type for runs on simulated drives and for replays on any device, its
//! JSON, and the JSON's schema.

mod live;
mod mount;
mod parts;
mod replayed;
mod schema;
mod simulated;

pub use live::{LiveFigures, ProxiedFigures};
pub use mount::MountReport;
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
use flashwright_block::RequestClass;
use flashwright_host::{LayerFigures, Waits};
use flashwright_ssd::{ChipFigures, ControllerFigures};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The JSON of a run, which `--json` of `simulate` and `replay` writes. A figure that does not apply is null, never
/// missing and never 0.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Report {
    /// Version of Flashwright.
    pub version: String,
    /// The device: the configuration of a simulated drive, with every default written out; for a real device, its name
    /// and how it was opened.
    #[schemars(with = "Map<String, Value>")]
    pub config: Value,
    /// The seed. With `version`, `config` and `workload` it is all that is needed to repeat the run.
    pub seed: u64,
    /// The workload in words.
    pub workload: String,
    /// How the drive was preconditioned. Null in a replay on a real device.
    pub precondition: Option<PreconditionReport>,
    /// When requests were issued.
    pub pace: Pace,
    /// How the run ended.
    pub ended: Ended,
    /// Why it ended early. Null if it is complete.
    pub note: Option<String>,
    /// The measured part of the run, which the figures cover.
    pub measured: Measured,
    /// What the host asked for since measuring began.
    pub host: HostCounts,
    /// Requests by kind since measuring began.
    pub requests: RequestCounts,
    /// Requests that were not played because the device must not be changed. Null in a run.
    pub left_out: Option<LeftOut>,
    /// The device that the replay was played on. Null in a run.
    pub target: Option<ReplayTarget>,
    /// What the flash did since measuring began.
    pub flash: FlashCounts,
    /// Whether the drive had settled under the workload. Null in a replay.
    pub settled: Option<Settled>,
    /// Warnings about the figures, the most important first.
    pub warnings: Vec<Warning>,
    /// Write amplification by pages: `flash.programs.total` over `host.pages_written`; below 1 if buffers absorb
    /// rewrites. A page that a request writes in part counts as a page written. Null in a replay, and if the host wrote
    /// nothing.
    pub write_amplification: Option<f64>,
    /// Write amplification by bytes: those of the pages programmed over `requests.bytes_written`. It is what drives
    /// count (NAND writes over host writes in SMART data), and above `write_amplification` where requests write parts of
    /// pages. Null in a replay, and if the host wrote nothing.
    pub write_amplification_bytes: Option<f64>,
    /// `flash.programs.total` over `host.pages_into_flash`: the amplification of the pages that reach the translation
    /// layer. Equal to `write_amplification` if no buffer, scheduler or controller lies before the flash. Null in a
    /// replay, and if no page reached the flash.
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
    /// Handles of flexible data placement since measuring began. Empty unless `placement.policy` is `fdp`.
    pub handles: Vec<HandleReport>,
    /// Reclaim groups of flexible data placement since measuring began. Empty unless `placement.fdp.groups` is above 1.
    pub groups: Vec<GroupReport>,
    /// Tenants since measuring began, in their order. Empty unless several workloads were played at once.
    pub tenants: Vec<TenantReport>,
    /// Submission queues of a drive in service since measuring began, by number. Empty in other runs: tenants have a queue each.
    pub queues: Vec<QueueReport>,
    /// The zones. Null unless `ftl.scheme` is `zoned`.
    pub zones: Option<ZonesReport>,
    /// Wear since the drive was new.
    pub wear: Wear,
    /// Times from the arrival of a request to its completion, queueing included.
    pub response_time_ns: TimesByKind,
    /// Times from the moment when the drive accepts a request to its completion.
    pub service_time_ns: TimesByKind,
    /// How late requests were submitted, compared with their arrival times. Null in a run, and in a closed loop.
    pub lateness_ns: Option<LatencySummary>,
    /// Rates over the measured time.
    pub throughput: Throughput,
    /// Figures of the drive's controller since measuring began. Null without one.
    pub controller: Option<ControllerFigures>,
    /// What the chips did since measuring began. Null where the drive needs no more than a page at a time (`[chips]`,
    /// superblocks and `timing.die-order` off), and in a replay.
    pub chips: Option<ChipFigures>,
    /// Errors of the cells since measuring began. Null without `errors.law`, and in a replay.
    pub errors: Option<BitErrors>,
    /// A loss of power at the end of the run, tried on a copy of the drive. Null without `recovery.mount-by`, for a drive that is served
    /// or can't be mounted, and in a replay.
    pub mount: Option<MountReport>,
    /// Energy since measuring began. Null without figures in `[energy]`, without time, and in a replay.
    pub energy: Option<Energy>,
    /// The schedulers before the drive, from the host down.
    pub host_layers: Vec<HostLayer>,
    /// Share of the measured time during which each part of the drive was busy. Counts operations in full that were in
    /// progress when measuring began or ended.
    pub busy: Busy,
    /// The verify mode.
    pub verify: Verify,
    /// Violations that the verify mode found, one sentence each. Null in a replay.
    pub violations: Option<Vec<String>>,
    /// The drive. Null in a replay.
    pub drive: Option<Drive>,
    /// Digest of every completion and of the drive's state; identical runs have equal digests. Null in a replay.
    pub digest: Option<String>,
    /// CPU time and memory that the run took on this machine.
    pub run: RunCost,
    /// Notes on the workload: labels, how addresses were fitted, lines that were skipped.
    pub workload_notes: Vec<String>,
    /// Figures of a program above the drive, by name. Null for other workloads.
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
    #[inline] // cold and large: compiled where it is called, once and small
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("a report is plain data")
    }

    /// The documented JSON as text.
    ///
    /// # Panics
    /// Never: a report is plain data.
    #[must_use]
    #[inline] // as `to_value`
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is plain data")
    }
}

/// `a / b`; none if `b` is 0.
#[allow(clippy::cast_precision_loss)] // counts far below 2^53
fn ratio(a: u64, b: u64) -> Option<f64> {
    (b > 0).then(|| a as f64 / b as f64)
}

/// Figures by name.
fn by_name(figures: impl IntoIterator<Item = (String, f64)>) -> Map<String, Value> {
    figures.into_iter().map(|(name, value)| (name, json!(value))).collect()
}

fn times_by_kind(tally: &Tally, pick: impl Fn(&Times) -> Latency) -> TimesByKind {
    let of = |class| tally.of(class, &pick).summary();
    TimesByKind {
        all: tally.moved(&pick).summary(),
        read: of(RequestClass::Read),
        write: of(RequestClass::Write),
        trim: of(RequestClass::Discard),
        flush: of(RequestClass::Barrier),
    }
}

fn request_counts(tally: &Tally) -> RequestCounts {
    let of = |class: RequestClass| class.sum(&tally.by_kind);
    RequestCounts {
        read: of(RequestClass::Read),
        write: of(RequestClass::Write),
        trim: of(RequestClass::Discard),
        flush: of(RequestClass::Barrier),
        bytes_read: RequestClass::Read.sum(&tally.bytes),
        bytes_written: RequestClass::Write.sum(&tally.bytes),
    }
}

#[allow(clippy::cast_precision_loss)] // counts and nanoseconds far below 2^53
fn throughput(tally: &Tally) -> Throughput {
    let nanos = tally.duration_ns();
    let per_s = |count: u64| (tally.timed && nanos > 0).then(|| count as f64 * 1e9 / nanos as f64);
    Throughput {
        iops: per_s(RequestClass::Read.sum(&tally.by_kind) + RequestClass::Write.sum(&tally.by_kind)),
        bytes_per_s: per_s(tally.bytes.iter().sum()),
    }
}

#[allow(clippy::cast_precision_loss)] // requests far below 2^53
fn run_cost(cpu_s: f64, requests: u64) -> RunCost {
    RunCost {
        cpu_s,
        requests_per_cpu_s: (cpu_s > 0.0).then(|| requests as f64 / cpu_s),
        peak_rss_bytes: peak_rss_bytes(),
        made: None,
    }
}

/// Figures of a scheduler, with means.
fn host_layer(layer: LayerFigures) -> HostLayer {
    // Destructured by name, so that the compiler reports a count that is missing here.
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

/// Peak memory of the process, if the system reports it.
fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
