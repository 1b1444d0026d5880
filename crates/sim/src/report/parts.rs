//! The sections of a report: what each figure means, what is counted, and when it is null.
//!
//! Units stand last in the names; `schema.rs` derives them from there. In these comments a sentence that begins with
//! "Counts" says what is counted, and one that begins with "Null" when a figure does not apply: the reference page and the
//! Python types are written from them. A section that is not null has all its figures.

use crate::conditioning::Search;
use crate::latency::LatencySummary;
use crate::precondition::Preconditioning;
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
    /// The time limit came first.
    TimeLimit,
    /// It was stopped; the figures cover what was finished.
    Interrupted,
    /// The device or the source failed; the figures cover what was finished.
    Failed,
    /// The drive could take no more writes.
    WornOut,
}

/// What was done to the drive before the workload.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Precondition")]
pub struct PreconditionReport {
    /// The recipe, as `--precondition` takes it.
    pub spec: String,
    /// Pages that the fill wrote. Counts no pages that the workload wrote while it preconditioned the drive.
    pub pages_written: u64,
    /// The workload as preconditioning. Null unless `spec` is `workload`.
    pub workload: Option<SettlingReport>,
    /// Whether the steady-state rule held in the end. Null unless `spec` is `steady`.
    pub steady: Option<bool>,
    /// Write amplification of each round of the steady-state rule. Null unless `spec` is `steady`.
    pub write_amplification_rounds: Option<Vec<f64>>,
}

impl PreconditionReport {
    /// What a fill did; no workload was played with it.
    #[must_use]
    pub fn of_fill(spec: String, fill: &Preconditioning) -> Self {
        let (rounds, steady) = fill.rounds();
        Self {
            spec,
            pages_written: fill.progress().0,
            workload: None,
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
    /// Whole passes of the trace; 0 of a workload that is none.
    pub passes: u64,
    /// Pages that requests asked to write.
    pub pages_written: u64,
    /// Those pages over the drive's logical pages.
    pub capacities: f64,
}

/// What the figures cover.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Measured {
    /// Requests completed since measuring began.
    pub requests: u64,
    /// Time of the drive from where measuring began to the end of the latest request. Null where the drive has no times.
    pub duration_ns: Option<u64>,
    /// Requests that were to be played before measuring began.
    pub warmup_requests: u64,
}

/// What the host asked for.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Host")]
pub struct HostCounts {
    /// Pages that requests asked to read. Counts a page once for each request that touches it. Null in a replay.
    pub pages_read: Option<u64>,
    /// Pages that requests asked to write, whatever buffers took. Counts a page once for each request that touches it. Null
    /// in a replay.
    pub pages_written: Option<u64>,
    /// Host pages that were programmed: what buffers, schedulers and the controller let through. Counts what a buffer held
    /// when measuring began, and not what it holds at the end. Equal to `pages_written` where nothing lies before the
    /// flash. Null in a replay.
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

/// Requests of the workload that were not played because the target must not be changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LeftOut {
    /// Writes left out.
    pub writes: u64,
    /// Trims left out.
    pub trims: u64,
    /// Flushes left out.
    pub flushes: u64,
}

/// What a replay was played on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Target")]
pub struct ReplayTarget {
    /// Its name or path.
    pub name: String,
    /// Its size.
    pub capacity_bytes: u64,
    /// The least that it reads and writes.
    pub block_bytes: u64,
    /// Requests that it takes at once.
    pub queue_depth: u32,
    /// Whether its clock runs by itself.
    pub real_time: bool,
    /// Whether writes, trims and flushes were played.
    pub writes_allowed: bool,
}

/// Flash operations of one kind, by what set them off.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Causes {
    /// For pages that requests asked for. Null in a replay.
    pub host: Option<u64>,
    /// By cleaning. Null in a replay.
    pub gc: Option<u64>,
    /// By merges of log blocks with data blocks. Null in a replay.
    pub merge: Option<u64>,
    /// To complete blocks that a buffer wrote. Null in a replay.
    pub padding: Option<u64>,
    /// For the mapping table on flash. Counts what cleaning set off as well. Null in a replay.
    pub translation: Option<u64>,
    /// To level wear. Null in a replay.
    pub wear: Option<u64>,
    /// All of them. Null in a replay.
    pub total: Option<u64>,
    /// The part of `translation` that cleaning set off. Null in a replay.
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
    /// Blocks erased. Counts an erase under the cause of the step that ended in it.
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
    /// The log block became the data block. Null under other schemes.
    pub switch: Option<u64>,
    /// The rest of the data block was copied into the log block first. Null under other schemes.
    pub partial: Option<u64>,
    /// Both were copied into a fresh block. Null under other schemes.
    pub full: Option<u64>,
    /// Item n: reclaims of a log block whose full merges touched n data blocks (Gupta 2009, Figure 7). Null under other
    /// schemes.
    pub full_by_data_blocks: Option<Vec<u64>>,
}

/// The cached mapping table of schemes that keep theirs on flash.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "MappingCache")]
pub struct MappingCacheCounts {
    /// Translations asked for. Null under schemes whose table is in RAM as a whole.
    pub lookups: Option<u64>,
    /// Translations found in RAM. Null as `lookups`.
    pub hits: Option<u64>,
    /// `hits` over `lookups`, 0 to 1. Null as `lookups`, and without a lookup.
    pub hit_ratio: Option<f64>,
    /// Entries that left the cache. Null as `lookups`.
    pub evictions: Option<u64>,
    /// Entries that left the cache and had to be written to flash. Null as `lookups`.
    pub dirty_evictions: Option<u64>,
}

/// The RAM before the translation layer.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Buffer {
    /// Pages that reached the RAM to be written. Null on a drive without RAM.
    pub writes: Option<u64>,
    /// Pages of them that overwrote one in RAM. Null on a drive without RAM.
    pub write_hits: Option<u64>,
    /// `write_hits` over `writes`, 0 to 1. Null on a drive without RAM, and without a write.
    pub write_hit_ratio: Option<f64>,
    /// Pages that reached the RAM to be read. Null on a drive without RAM.
    pub reads: Option<u64>,
    /// Pages of them that were answered from RAM. Null on a drive without RAM.
    pub read_hits: Option<u64>,
    /// `read_hits` over `reads`, 0 to 1. Null on a drive without RAM, and without a read.
    pub read_hit_ratio: Option<f64>,
    /// Times that something was written to flash to make room or to flush. Counts a block once. Null on a drive without RAM.
    pub destages: Option<u64>,
    /// Destages of blocks that asked for an erase block of their own or for padding. Null on a drive without RAM.
    pub block_destages: Option<u64>,
    /// Host pages that destages wrote. Null on a drive without RAM.
    pub pages_destaged: Option<u64>,
    /// `pages_destaged` over `destages`. Null on a drive without RAM, and without a destage.
    pub pages_per_destage_mean: Option<f64>,
    /// Pages read from flash and written again to complete blocks. Null on a drive without RAM.
    pub pages_padded: Option<u64>,
    /// Pages that left without a write, since flash held them already. Null on a drive without RAM.
    pub pages_dropped: Option<u64>,
    /// Flushes that had to write. Null on a drive without RAM.
    pub flushes: Option<u64>,
    /// Pages written past the RAM because the host wanted them on flash at once. Null on a drive without RAM.
    pub pages_forced: Option<u64>,
    /// How RAM was shared with the mapping table. Null where it is not.
    pub partition: Option<Partition>,
    /// What only this manager counts, by name. Null on a drive without RAM.
    #[schemars(with = "Option<BTreeMap<String, Option<f64>>>")]
    pub extra: Option<Map<String, Value>>,
}

/// How RAM was shared between buffer and mapping table: the latest points, at most 4,096, a column each.
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
    /// RAM that its tables take, by the entry sizes of its settings.
    pub ram_bytes: u64,
    /// What only this scheme counts, by name.
    #[schemars(with = "BTreeMap<String, Option<f64>>")]
    pub extra: Map<String, Value>,
}

/// Erases of a block.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ErasesPerBlock {
    /// Of the block erased least. Null in a replay.
    pub min: Option<u32>,
    /// Of the block erased most. Null in a replay.
    pub max: Option<u32>,
    /// Mean over all blocks. Null in a replay.
    pub mean: Option<f64>,
    /// Standard deviation over all blocks. Null in a replay.
    pub stdev: Option<f64>,
    /// `stdev` over `mean`. Null in a replay, and where nothing was erased.
    pub coefficient_of_variation: Option<f64>,
}

/// Wear since the drive was new, preconditioning and warm-up included.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Wear {
    /// Erases of each block.
    pub erases_per_block: ErasesPerBlock,
    /// Blocks retired. Null in a replay.
    pub blocks_worn_out: Option<u32>,
    /// Pages that the host asked to write, preconditioning included. Null in a replay.
    pub host_pages_written: Option<u64>,
    /// Host pages written over the programs that the flash has by its rated cycles. Null where blocks do not wear out.
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
    /// Reads and writes a second. Null where no time passed.
    pub iops: Option<f64>,
    /// Bytes read and written a second. Null where no time passed.
    pub bytes_per_s: Option<f64>,
}

/// Requests that a scheduler handed on, in one direction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Dispatched {
    /// As the scheduler counts them.
    #[serde(flatten)]
    pub counts: DispatchedCounts,
    /// Mean size. Null without a request.
    pub bytes_mean: Option<f64>,
}

/// How long requests waited in a scheduler before they were handed on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Waited {
    /// As the scheduler counts them.
    #[serde(flatten)]
    pub waits: Waits,
    /// Mean wait. Null without a request.
    pub mean_ns: Option<f64>,
}

/// What a scheduler before the drive did since measuring began.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HostLayer {
    /// Its name.
    pub scheduler: String,
    /// Requests taken from above.
    pub requests: u64,
    /// Requests merged behind a queued one.
    pub back_merges: u64,
    /// Requests merged before a queued one.
    pub front_merges: u64,
    /// Queued requests that grew until they met, and were joined.
    pub joined: u64,
    /// Requests that waited for an earlier one with the same sectors.
    pub held_for_order: u64,
    /// Requests that found the queue full.
    pub held_for_room: u64,
    /// Reads handed on.
    pub reads: Dispatched,
    /// Writes handed on.
    pub writes: Dispatched,
    /// Trims and flushes handed on.
    pub others: u64,
    /// Waits of reads.
    pub read_waits: Waited,
    /// Waits of writes.
    pub write_waits: Waited,
    /// What only this scheduler counts, by name.
    #[schemars(with = "BTreeMap<String, Option<f64>>")]
    pub extra: Map<String, Value>,
}

/// How busy the parts of the drive were.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Busy {
    /// By die, channel by channel, 0 to 1; one number for the drive under `timing.model = "serial"`, none without timing.
    /// Null in a replay.
    pub dies: Option<Vec<f64>>,
    /// By channel, 0 to 1; none without `timing.model = "parallel"`. Null in a replay.
    pub channels: Option<Vec<f64>>,
}

/// The verify mode.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Verify {
    /// Whether every read was checked and the state audited. Null in a replay.
    pub enabled: Option<bool>,
    /// What was found wrong. Null without the verify mode.
    pub violations: Option<u64>,
}

/// The drive.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Drive {
    /// Pages that the host can address.
    pub logical_pages: u32,
    /// Pages of the flash.
    pub physical_pages: u32,
    /// Its size for the host.
    pub logical_bytes: u64,
    /// What is dear about its configuration, a sentence each.
    pub cautions: Vec<String>,
    /// Digest of where every logical page lies and how worn every block is, at the end.
    pub state_digest: String,
}

/// What the run cost here; the only figures that differ from one machine to another.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Cost")]
pub struct RunCost {
    /// Processor time of the process.
    pub cpu_s: f64,
    /// Requests played, warm-up included, over `cpu_s`. Null where that is 0.
    pub requests_per_cpu_s: Option<f64>,
    /// The most memory that the process ever held. Null where the system does not tell.
    pub peak_rss_bytes: Option<u64>,
}

/// A policy from outside the simulator that took part.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyUsed {
    /// The key of the configuration whose choice it took the place of.
    pub key: String,
    /// What results call it.
    pub name: String,
    /// Its module.
    pub module: String,
    /// Its class.
    pub class: String,
    /// The name of the file that holds it. Null where it stands in none.
    pub file: Option<String>,
    /// Digest of that file, or of its source. Null where neither can be read.
    pub source_sha256: Option<String>,
    /// Its attributes when the run began.
    pub settings: Map<String, Value>,
    /// How often it was asked.
    #[serde(default)]
    pub calls: u64,
}
