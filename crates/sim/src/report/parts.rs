//! The sections of a report: what each figure means, what is counted, and when it is null.
//!
//! Units stand last in the names; `schema.rs` derives them from there. In these comments a sentence that begins with
//! "Counts" says what is counted, and one that begins with "Null" when a figure does not apply: the reference page and
//! the Python types are generated from them. A section that is not null has all its figures.

use crate::conditioning::Search;
use crate::latency::LatencySummary;
use crate::player::Pace;
use crate::precondition::Preconditioning;
use crate::settle::Verdict;
use crate::simulation::ScaledStart;
use flashwright_block::Priority;
use flashwright_host::{DispatchedCounts, Waits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// Every request was played.
    Complete,
    /// The time limit was reached.
    TimeLimit,
    /// The user stopped it; the figures cover what was finished.
    Interrupted,
    /// The device or the source failed; the figures cover what was finished.
    Failed,
    /// The drive could take no more writes.
    WornOut,
}

/// How the drive was preconditioned.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Precondition")]
pub struct PreconditionReport {
    /// The recipe, as `--precondition` takes it.
    pub spec: String,
    /// Pages that the fill wrote. Counts no pages that the workload wrote while it preconditioned the drive.
    pub pages_written: u64,
    /// The workload as preconditioning. Null unless `spec` is `workload`.
    pub workload: Option<SettlingReport>,
    /// The small drive that this one began as a copy of. Null unless `spec` is `workload:scaled`.
    pub scaled: Option<ScaledStart>,
    /// Whether the steady-state rule held at the end. Null unless `spec` is `steady`.
    pub steady: Option<bool>,
    /// Write amplification of each round of the steady-state rule. Null unless `spec` is `steady`.
    pub write_amplification_rounds: Option<Vec<f64>>,
}

impl PreconditionReport {
    /// The figures of a fill without a workload.
    #[must_use]
    pub fn of_fill(spec: String, fill: &Preconditioning) -> Self {
        let (rounds, steady) = fill.rounds();
        Self {
            spec,
            pages_written: fill.progress().0,
            workload: None,
            scaled: fill.scaled().cloned(),
            steady,
            write_amplification_rounds: steady.map(|_| rounds.to_vec()),
        }
    }
}

/// The workload as preconditioning.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Settling")]
pub struct SettlingReport {
    /// How the search for the settled state ended.
    pub ended: Search,
    /// Requests played.
    pub requests: u64,
    /// Whole passes of the trace; 0 for other workloads.
    pub passes: u64,
    /// Pages that requests asked to write.
    pub pages_written: u64,
    /// `pages_written` over the drive's logical pages.
    pub capacities: f64,
}

/// The measured part of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Measured {
    /// Requests completed since measuring began.
    pub requests: u64,
    /// Time on the drive's clock from the start of measuring to the end of the latest request. Null if the drive has no
    /// timing.
    pub duration_ns: Option<u64>,
    /// Requests of the warm-up, as it was set.
    pub warmup_requests: u64,
}

/// Work that the host asked for.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Host")]
pub struct HostCounts {
    /// Pages that requests asked to read. Counts a page once for each request that touches it. Null in a replay.
    pub pages_read: Option<u64>,
    /// Pages that requests asked to write, including those that buffers absorbed. Counts a page once for each request
    /// that touches it. Null in a replay.
    pub pages_written: Option<u64>,
    /// Host pages that were programmed: those that passed buffers, schedulers and the controller. Counts pages that a
    /// buffer held when measuring began, but not those that it holds at the end. Equal to `pages_written` if no buffer,
    /// scheduler or controller lies before the flash. Null in a replay.
    pub pages_into_flash: Option<u64>,
    /// Pages that requests asked to trim. Counts a page once for each request that touches it. Null in a replay.
    pub pages_trimmed: Option<u64>,
    /// Bytes read and written.
    pub bytes: u64,
}

/// Requests by kind.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Requests")]
pub struct RequestCounts {
    /// Reads completed.
    pub read: u64,
    /// Writes completed.
    pub write: u64,
    /// Trims completed.
    pub trim: u64,
    /// Flushes completed.
    pub flush: u64,
    /// Bytes of the reads.
    pub bytes_read: u64,
    /// Bytes of the writes.
    pub bytes_written: u64,
}

/// Requests of the workload that were not played because the device must not be changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LeftOut {
    /// Writes left out.
    pub writes: u64,
    /// Trims left out.
    pub trims: u64,
    /// Flushes left out.
    pub flushes: u64,
}

/// The device that a replay was played on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Target")]
pub struct ReplayTarget {
    /// The device's name or path.
    pub name: String,
    /// The device's size.
    pub capacity_bytes: u64,
    /// The smallest unit that the device reads and writes.
    pub block_bytes: u64,
    /// Requests that the device accepts at once.
    pub queue_depth: u32,
    /// Whether the device runs in real time.
    pub real_time: bool,
    /// Whether writes, trims and flushes were played.
    pub writes_allowed: bool,
}

/// Flash operations of one kind, by cause.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Causes {
    /// For pages that requests asked for. Null in a replay.
    pub host: Option<u64>,
    /// For cleaning. Null in a replay.
    pub gc: Option<u64>,
    /// For merges of log blocks with data blocks. Null in a replay.
    pub merge: Option<u64>,
    /// To complete blocks that a buffer wrote. Null in a replay.
    pub padding: Option<u64>,
    /// For the mapping table on flash. Counts operations that cleaning caused as well. Null in a replay.
    pub translation: Option<u64>,
    /// To level wear. Null in a replay.
    pub wear: Option<u64>,
    /// All of them. Null in a replay.
    pub total: Option<u64>,
    /// The part of `translation` that cleaning caused. Null in a replay.
    pub translation_in_gc: Option<u64>,
}

/// What the flash did since measuring began.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Flash")]
pub struct FlashCounts {
    /// Pages read.
    pub reads: Causes,
    /// Pages programmed.
    pub programs: Causes,
    /// Blocks erased. Counts an erase under the cause of the work that it completed.
    pub erases: Causes,
    /// Reads of a spare area alone.
    pub oob_reads: Causes,
    /// Pages read that hold no data (never written, or trimmed); they cost no flash operation. Null in a replay.
    pub reads_unmapped: Option<u64>,
}

/// Cleaning.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Gc {
    /// Victims cleaned. Null in a replay.
    pub collections: Option<u64>,
    /// Mean share of a victim's pages that were invalid, 0 to 1. Null without a victim.
    pub efficiency: Option<f64>,
    /// Mean share of a block's pages that were programmed when it was erased, 0 to 1. Counts every erase, whatever its
    /// cause (Gupta 2009, sections 4 and 5). Null without an erase.
    pub block_utilization: Option<f64>,
}

/// Merges of log-block schemes (Gupta 2009, Figure 2).
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Merges")]
pub struct MergeCounts {
    /// Switch merges: the log block became the data block. Null under other schemes.
    pub switch: Option<u64>,
    /// Partial merges: the rest of the data block was copied into the log block first. Null under other schemes.
    pub partial: Option<u64>,
    /// Full merges: both were copied into an erased block. Null under other schemes.
    pub full: Option<u64>,
    /// Item n: reclaims of a log block whose full merges touched n data blocks (Gupta 2009, Figure 7). Null under other
    /// schemes.
    pub full_by_data_blocks: Option<Vec<u64>>,
}

/// The cached mapping table of schemes that keep theirs on flash.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "MappingCache")]
pub struct MappingCacheCounts {
    /// Translations requested. Null under schemes that keep the whole table in RAM.
    pub lookups: Option<u64>,
    /// Translations found in RAM. Null as `lookups`.
    pub hits: Option<u64>,
    /// `hits` over `lookups`, 0 to 1. Null as `lookups`, and without a lookup.
    pub hit_ratio: Option<f64>,
    /// Entries evicted from the cache. Null as `lookups`.
    pub evictions: Option<u64>,
    /// Evicted entries that had to be written to flash. Null as `lookups`.
    pub dirty_evictions: Option<u64>,
    /// Entries loaded beside those that were asked for (`ftl.dftl.prefetch`). Null as `lookups`.
    pub prefetched: Option<u64>,
    /// Entries of `prefetched` that were asked for before they left the cache. Null as `lookups`.
    pub prefetched_used: Option<u64>,
    /// `prefetched_used` over `prefetched`, 0 to 1: the accuracy of the prefetch policy. Null as `lookups`, and where nothing was
    /// prefetched.
    pub prefetch_accuracy: Option<f64>,
}

/// The RAM before the translation layer.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Buffer {
    /// Pages written that reached the RAM. Null on a drive without RAM.
    pub writes: Option<u64>,
    /// Pages of `writes` that overwrote a page in RAM. Null on a drive without RAM.
    pub write_hits: Option<u64>,
    /// `write_hits` over `writes`, 0 to 1. Null on a drive without RAM, and without a write.
    pub write_hit_ratio: Option<f64>,
    /// Pages read that reached the RAM. Null on a drive without RAM.
    pub reads: Option<u64>,
    /// Pages of `reads` that were answered from RAM. Null on a drive without RAM.
    pub read_hits: Option<u64>,
    /// `read_hits` over `reads`, 0 to 1. Null on a drive without RAM, and without a read.
    pub read_hit_ratio: Option<f64>,
    /// Destages: writes from RAM to flash, to make room or to flush. Counts a block once. Null on a drive without RAM.
    pub destages: Option<u64>,
    /// Destages of blocks that asked for an erase block of their own or for padding. Null on a drive without RAM.
    pub block_destages: Option<u64>,
    /// Host pages that destages wrote. Null on a drive without RAM.
    pub pages_destaged: Option<u64>,
    /// `pages_destaged` over `destages`. Null on a drive without RAM, and without a destage.
    pub pages_per_destage_mean: Option<f64>,
    /// Pages read from flash and written again to complete blocks. Null on a drive without RAM.
    pub pages_padded: Option<u64>,
    /// Pages evicted without a write because flash held them already. Null on a drive without RAM.
    pub pages_dropped: Option<u64>,
    /// Flushes that had to write. Null on a drive without RAM.
    pub flushes: Option<u64>,
    /// Pages written past the RAM because the host demanded them on flash at once, or a policy of one's own did not admit them. Null on a drive without RAM.
    pub pages_forced: Option<u64>,
    /// How RAM was shared with the mapping table. Null if it is not shared.
    pub partition: Option<Partition>,
    /// Counts of this manager alone, by name. Null on a drive without RAM.
    #[schemars(with = "Option<BTreeMap<String, Option<f64>>>")]
    pub extra: Option<Map<String, Value>>,
}

/// How RAM was shared between buffer and mapping table: the latest points, at most 4,096, one array per column.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Partition {
    /// Requests since measuring began.
    pub requests: Vec<u64>,
    /// Pages that the buffer could hold.
    pub buffer_pages: Vec<u64>,
    /// Entries of the mapping table that could be cached.
    pub map_entries: Vec<u64>,
}

/// The translation layer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Scheme")]
pub struct SchemeReport {
    /// RAM of its tables, computed from the entry sizes in its settings.
    pub ram_bytes: u64,
    /// Counts of this scheme alone, by name.
    #[schemars(with = "BTreeMap<String, Option<f64>>")]
    pub extra: Map<String, Value>,
}

/// A handle of flexible data placement since measuring began.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Handle")]
pub struct HandleReport {
    /// Its number.
    pub handle: u64,
    /// Pages that the host wrote with it and that reached the flash.
    pub pages_written: u64,
    /// Pages of it that cleaning moved.
    pub pages_moved: u64,
    /// Pages of it that cleaning moved, by the handle that had written last: its writes made the room necessary.
    pub pages_moved_for: Vec<u64>,
    /// `pages_written` and `pages_moved` over `pages_written`. Null if the host wrote nothing with it.
    pub write_amplification: Option<f64>,
}

/// A reclaim group of flexible data placement since measuring began.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Group")]
pub struct GroupReport {
    /// Its number.
    pub group: u64,
    /// Pages of the host that were programmed on its dies, whichever group the host named.
    pub pages_written: u64,
    /// Pages programmed on its dies, for whatever cause.
    pub pages_programmed: u64,
    /// Those of them that cleaning moved.
    pub pages_moved: u64,
    /// Reclaim units of it that were erased.
    pub erases: u64,
    /// `pages_programmed` over `pages_written`. Null if no page of the host was programmed there.
    pub write_amplification: Option<f64>,
    /// Its reclaim units that can hold data at the end: without bad and worn-out ones, and those that the drive keeps for itself.
    pub units: u64,
    /// Those of them that are erased at the end.
    pub units_free: u64,
}

/// A tenant since measuring began: one of several workloads at once.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Tenant")]
pub struct TenantReport {
    /// Its name.
    pub name: String,
    /// Its workload in words.
    pub workload: String,
    /// When it issued requests.
    pub pace: Pace,
    /// The first logical page of its namespace.
    pub first_page: u32,
    /// Pages of its namespace.
    pub pages: u32,
    /// The placement handle of its requests. Null where they name the streams of its workload.
    pub handle: Option<u16>,
    /// The class of its queue.
    pub priority: Priority,
    /// Its requests by kind.
    pub requests: RequestCounts,
    /// Rates, over the time from the start of measuring to the end of its latest request.
    pub throughput: Throughput,
    /// Times from the arrival of a request to its completion, queueing included.
    pub response_time_ns: TimesByKind,
    /// Times from the moment when the drive accepts a request to its completion.
    pub service_time_ns: TimesByKind,
    /// Pages that its requests asked to read. Counts a page once for each request that touches it.
    pub pages_read: u64,
    /// Pages that its requests asked to write. Counts a page once for each request that touches it.
    pub pages_written: u64,
    /// Pages of its namespace that were programmed with data of the host.
    pub pages_into_flash: u64,
    /// Pages of its namespace that cleaning, merging, padding or wear levelling moved.
    pub pages_moved: u64,
    /// `pages_moved` by the tenant that had written last, in the order of the tenants: its writes made the room necessary.
    pub pages_moved_for: Vec<u64>,
    /// `pages_into_flash` and `pages_moved` over `pages_written`. Null if it wrote nothing.
    pub write_amplification: Option<f64>,
    /// The same tenant alone on the drive. Null where that was not played.
    pub alone: Option<AloneReport>,
    /// How much slower it was among the others. Null where it was not played alone.
    pub slowdown: Option<Slowdown>,
}

/// A submission queue of a drive in service since measuring began.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Queue")]
pub struct QueueReport {
    /// Its number: those of the first host from 1 on, of the second from 129 on. 0 for clients without queues.
    pub queue: u64,
    /// Its requests by kind.
    pub requests: RequestCounts,
    /// Rates, over the time from the start of measuring to the end of its latest request.
    pub throughput: Throughput,
    /// Times from the arrival of a request to its completion, queueing included.
    pub response_time_ns: TimesByKind,
    /// Times from the moment when the drive accepts a request to its completion.
    pub service_time_ns: TimesByKind,
    /// Pages that its requests asked to read. Counts a page once for each request that touches it.
    pub pages_read: u64,
    /// Pages that its requests asked to write. Counts a page once for each request that touches it.
    pub pages_written: u64,
}

/// A tenant alone on the drive: the same namespace, requests, seed and preconditioning, and nobody else.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Alone")]
pub struct AloneReport {
    /// Requests completed since measuring began.
    pub requests: u64,
    /// Reads and writes per second. Null if no time passed.
    pub iops: Option<f64>,
    /// Times from the arrival of a request to its completion, queueing included, of reads and writes.
    pub response_time_ns: LatencySummary,
    /// Write amplification by pages. Null if it wrote nothing.
    pub write_amplification: Option<f64>,
    /// Whether the drive had settled under it alone.
    pub verdict: Verdict,
}

/// A tenant among the others against the same tenant alone: 1 is as fast, 2 takes twice as long.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Slowdown {
    /// Mean response time, over that alone. Null without a time of both.
    pub mean_ratio: Option<f64>,
    /// 99th percentile of response times, over that alone. Null without a time of both.
    pub p99_ratio: Option<f64>,
    /// Reads and writes per second alone, over those among the others. Null without a rate of both.
    pub iops_ratio: Option<f64>,
}

/// The zones of a zoned drive.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Zones")]
pub struct ZonesReport {
    /// Zones.
    pub zones: u64,
    /// Addresses of a zone, in bytes.
    pub size_bytes: u64,
    /// What of a zone can be written, in bytes.
    pub capacity_bytes: u64,
    /// Zones in each state at the end, by its name.
    pub states: BTreeMap<String, u64>,
    /// Zones reset since measuring began.
    pub resets: u64,
    /// Zones finished since measuring began.
    pub finishes: u64,
    /// Pages programmed to finish zones since measuring began; `flash.programs.padding` counts them too.
    pub pages_padded: u64,
    /// Requests refused since measuring began, by the rule that they would have broken. No other figure counts them.
    pub refusals: BTreeMap<String, u64>,
    /// Times of resets from the moment when the drive accepts one to its completion; the erases follow behind.
    pub reset_time_ns: LatencySummary,
    /// Times of finishes.
    pub finish_time_ns: LatencySummary,
}

/// Erases of a block.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ErasesPerBlock {
    /// Erases of the least erased block. Null in a replay.
    pub min: Option<u32>,
    /// Erases of the most erased block. Null in a replay.
    pub max: Option<u32>,
    /// Mean over all blocks. Null in a replay.
    pub mean: Option<f64>,
    /// Standard deviation over all blocks. Null in a replay.
    pub stdev: Option<f64>,
    /// `stdev` over `mean`. Null in a replay, and if nothing was erased.
    pub coefficient_of_variation: Option<f64>,
}

/// Wear since the drive was new, preconditioning and warm-up included.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Wear {
    /// Erases of each block.
    pub erases_per_block: ErasesPerBlock,
    /// Blocks retired. Null in a replay.
    pub blocks_worn_out: Option<u32>,
    /// Pages that the host asked to write, preconditioning included. Counts a page once for each request that touches it,
    /// however small. Null in a replay.
    pub host_pages_written: Option<u64>,
    /// Bytes of the writes that succeeded, preconditioning included: what an endurance in bytes or drive writes counts.
    /// Null in a replay.
    pub host_bytes_written: Option<u64>,
    /// Host pages written over all page programs that the flash's rated cycles allow. Null if blocks do not wear out.
    pub endurance_efficiency: Option<f64>,
}

/// Times by kind of request.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Times")]
pub struct TimesByKind {
    /// Of reads and writes.
    pub all: LatencySummary,
    /// Of reads.
    pub read: LatencySummary,
    /// Of writes.
    pub write: LatencySummary,
    /// Of trims.
    pub trim: LatencySummary,
    /// Of flushes.
    pub flush: LatencySummary,
}

/// Rates over the measured time.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Throughput {
    /// Reads and writes per second. Null if no time passed.
    pub iops: Option<f64>,
    /// Bytes read and written per second. Null if no time passed.
    pub bytes_per_s: Option<f64>,
}

/// Requests that a scheduler dispatched in one direction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Dispatched {
    /// The counts of the scheduler.
    #[serde(flatten)]
    pub counts: DispatchedCounts,
    /// Mean size. Null without a request.
    pub bytes_mean: Option<f64>,
}

/// How long requests waited in a scheduler before it dispatched them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Waited {
    /// The counts of the scheduler.
    #[serde(flatten)]
    pub waits: Waits,
    /// Mean wait. Null without a request.
    pub mean_ns: Option<f64>,
}

/// Figures of a scheduler before the drive since measuring began.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HostLayer {
    /// Its name.
    pub scheduler: String,
    /// Requests received from the layer above.
    pub requests: u64,
    /// Back merges: requests appended to a queued one.
    pub back_merges: u64,
    /// Front merges: requests prepended to a queued one.
    pub front_merges: u64,
    /// Queued requests that grew until they were adjacent and were joined.
    pub joined: u64,
    /// Requests that waited for an earlier one on the same sectors.
    pub held_for_order: u64,
    /// Requests that found the queue full.
    pub held_for_room: u64,
    /// Reads dispatched.
    pub reads: Dispatched,
    /// Writes dispatched.
    pub writes: Dispatched,
    /// Trims and flushes dispatched.
    pub others: u64,
    /// Waits of reads.
    pub read_waits: Waited,
    /// Waits of writes.
    pub write_waits: Waited,
    /// Counts of this scheduler alone, by name.
    #[schemars(with = "BTreeMap<String, Option<f64>>")]
    pub extra: Map<String, Value>,
}

/// How busy the parts of the drive were.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Busy {
    /// By die, channel by channel, 0 to 1; one number for the drive under `timing.model = "serial"`, empty without
    /// timing. Null in a replay.
    pub dies: Option<Vec<f64>>,
    /// By channel, 0 to 1; empty unless `timing.model = "parallel"`. Null in a replay.
    pub channels: Option<Vec<f64>>,
}

/// The verify mode.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Verify {
    /// Whether every read was checked and the state audited. Null in a replay.
    pub enabled: Option<bool>,
    /// Number of violations. Null without the verify mode.
    pub violations: Option<u64>,
}

/// The drive.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Drive {
    /// Pages that the host can address.
    pub logical_pages: u32,
    /// Pages of the flash.
    pub physical_pages: u32,
    /// The capacity that the host sees.
    pub logical_bytes: u64,
    /// Costly properties of its configuration, one sentence each.
    pub cautions: Vec<String>,
    /// Digest of where every logical page lies and how worn every block is, at the end.
    pub state_digest: String,
}

/// What the run took and what made it; all that differs between machines that play the same.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Cost")]
pub struct RunCost {
    /// Processor time of the process.
    pub cpu_s: f64,
    /// Requests played, warm-up included, over `cpu_s`. Null if that is 0.
    pub requests_per_cpu_s: Option<f64>,
    /// Peak memory of the process. Null if the system does not report it.
    pub peak_rss_bytes: Option<u64>,
    /// What made it, for `flashwright rerun`. Null for replays, and for what was served.
    pub made: Option<Made>,
}

/// What made a run, beside its drive, so that it can be played again.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Made {
    /// Digest of the simulator's source.
    pub source_digest: String,
    /// What was played: the text of a workload, or how a trace is read.
    pub source: serde_json::Value,
    /// The options of the run.
    pub options: serde_json::Value,
    /// SHA-256 of the trace's file. Null for workloads, tenants, and files beyond 1 GiB.
    pub trace_sha256: Option<String>,
    /// The command that made it, word by word. Null if a program did.
    pub command: Option<Vec<String>>,
    /// The system, the processor and the version of Python. Null where no Python took part.
    pub platform: Option<String>,
}

/// What reads of the flash met. A read of several mapping units at once counts once for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BitErrors {
    /// Reads of mapping units.
    pub reads: u64,
    /// Reads that were retried.
    pub reads_retried: u64,
    /// Retries of all of them.
    pub retries: u64,
    /// Reads that took soft decoding.
    pub reads_soft: u64,
    /// Reads that nothing corrected: rebuilt from parity if the drive has it, else lost.
    pub reads_uncorrectable: u64,
    /// Blocks that a read asked to have written again: too many errors, reads, or too old.
    pub reclaims: u64,
    /// Blocks that were written again for it.
    pub blocks_rewritten: u64,
}

/// Energy of a run, in joules: operations of the flash by their figures in `[energy]`, and what the rest of the drive draws all
/// the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Energy {
    /// Reads of the array.
    pub reads_j: f64,
    /// Programs of the array, parity included.
    pub programs_j: f64,
    /// Erases.
    pub erases_j: f64,
    /// Transfers over the channels.
    pub transfers_j: f64,
    /// `energy.idle-mw` over the measured time.
    pub idle_j: f64,
    /// All of it.
    pub total_j: f64,
    /// `total_j` over the measured time, in watts. Null if no time passed.
    pub mean_w: Option<f64>,
    /// Millijoules for each megabyte (10^6 bytes) that the host read or wrote. Null if it did neither.
    pub mj_per_mb: Option<f64>,
}

/// A policy from outside the simulator that the run used.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyUsed {
    /// The configuration key whose choice it replaced.
    pub key: String,
    /// That choice.
    #[serde(default)]
    pub replaced: String,
    /// The name that results call it by.
    pub name: String,
    /// Its module.
    pub module: String,
    /// Its class.
    pub class: String,
    /// The name of the file that holds it. Null if it is not in a file.
    pub file: Option<String>,
    /// Digest of that file, or of its source. Null if neither can be read.
    pub source_sha256: Option<String>,
    /// Its attributes when the run began.
    pub settings: Map<String, Value>,
    /// How often it was called.
    #[serde(default)]
    pub calls: u64,
}
