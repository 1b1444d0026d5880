"""The types of the JSON of a run; ``docs/reference/figures.md`` lists the same figures.

Written by ``make generate`` from the types of the core; change those instead.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

__all__ = ["Report"]


class Precondition(TypedDict):
    """What was done to the drive before the workload."""

    spec: str
    """The recipe, as `--precondition` takes it."""
    pages_written: int
    """Pages that the fill wrote. Counts no pages that the workload wrote while it preconditioned the drive."""
    workload: Settling | None
    """The workload as preconditioning. Null unless `spec` is `workload`."""
    steady: bool | None
    """Whether the steady-state rule held in the end. Null unless `spec` is `steady`."""
    write_amplification_rounds: list[float] | None
    """Write amplification of each round of the steady-state rule. Null unless `spec` is `steady`."""


class Settling(TypedDict):
    """The workload as preconditioning."""

    ended: Search
    """How the search for the settled state ended."""
    requests: int
    """Requests played."""
    passes: int
    """Whole passes of the trace; 0 of a workload that is none."""
    pages_written: int
    """Pages that requests asked to write."""
    capacities: float
    """Those pages over the drive's logical pages."""


Search: TypeAlias = Literal["under-way", "settled", "gave-up", "nothing-written", "ended"]
"""How the search for the settled state ended."""


Pace: TypeAlias = 'Literal["interactive"] | PaceOpen | PaceClosed'
"""When requests are issued."""


class PaceOpen(TypedDict):
    """At their arrival times, multiplied by a factor: 0.5 plays a trace twice as fast."""

    open: PaceOpenOpen


class PaceOpenOpen(TypedDict):
    """What this pace takes."""

    time_scale: float
    """Factor on arrival times, 0 or more."""


class PaceClosed(TypedDict):
    """So that `depth` requests are outstanding; arrival times are not looked at."""

    closed: PaceClosedClosed


class PaceClosedClosed(TypedDict):
    """What this pace takes."""

    depth: int
    """Requests outstanding, at least 1."""


Ended: TypeAlias = Literal["complete", "time-limit", "interrupted", "failed", "worn-out"]
"""How a run ended."""


class Measured(TypedDict):
    """What the figures cover."""

    requests: int
    """Requests completed since measuring began."""
    duration_ns: int | None
    """Time of the drive from where measuring began to the end of the latest request. Null where the drive has no
    times."""
    warmup_requests: int
    """Requests that were to be played before measuring began."""


class Host(TypedDict):
    """What the host asked for."""

    pages_read: int | None
    """Pages that requests asked to read. Counts a page once for each request that touches it. Null in a replay."""
    pages_written: int | None
    """Pages that requests asked to write, whatever buffers took. Counts a page once for each request that touches
    it. Null in a replay."""
    pages_into_flash: int | None
    """Host pages that were programmed: what buffers, schedulers and the controller let through. Counts what a
    buffer held when measuring began, and not what it holds at the end. Equal to `pages_written` where nothing lies
    before the flash. Null in a replay."""
    pages_trimmed: int | None
    """Pages that requests asked to trim. Counts a page once for each request that touches it. Null in a replay."""
    bytes: int
    """Bytes read and written."""


class Requests(TypedDict):
    """Requests by kind."""

    read: int
    """Reads completed."""
    write: int
    """Writes completed."""
    trim: int
    """Trims completed."""
    flush: int
    """Flushes completed."""
    bytes_read: int
    """Bytes of the reads."""
    bytes_written: int
    """Bytes of the writes."""


class LeftOut(TypedDict):
    """Requests of the workload that were not played because the target must not be changed."""

    writes: int
    """Writes left out."""
    trims: int
    """Trims left out."""
    flushes: int
    """Flushes left out."""


class Target(TypedDict):
    """What a replay was played on."""

    name: str
    """Its name or path."""
    capacity_bytes: int
    """Its size."""
    block_bytes: int
    """The least that it reads and writes."""
    queue_depth: int
    """Requests that it takes at once."""
    real_time: bool
    """Whether its clock runs by itself."""
    writes_allowed: bool
    """Whether writes, trims and flushes were played."""


class Flash(TypedDict):
    """What the flash did since measuring began."""

    reads: Causes
    """Pages read."""
    programs: Causes
    """Pages programmed."""
    erases: Causes
    """Blocks erased. Counts an erase under the cause of the step that ended in it."""
    oob_reads: Causes
    """Reads of a spare area alone."""
    reads_unmapped: int | None
    """Pages read that hold no data (never written, or trimmed); they cost no flash operation. Null in a replay."""


class Causes(TypedDict):
    """Flash operations of one kind, by what set them off."""

    host: int | None
    """For pages that requests asked for. Null in a replay."""
    gc: int | None
    """By cleaning. Null in a replay."""
    merge: int | None
    """By merges of log blocks with data blocks. Null in a replay."""
    padding: int | None
    """To complete blocks that a buffer wrote. Null in a replay."""
    translation: int | None
    """For the mapping table on flash. Counts what cleaning set off as well. Null in a replay."""
    wear: int | None
    """To level wear. Null in a replay."""
    total: int | None
    """All of them. Null in a replay."""
    translation_in_gc: int | None
    """The part of `translation` that cleaning set off. Null in a replay."""


class Settled(TypedDict):
    """The verdict on the measured write amplification, as the JSON of a run has it."""

    verdict: Verdict
    """The verdict."""
    since_request: int | None
    """The measured request from which on the drive was settled; 0 where it was so before. Null where it was not."""
    confidence: float | None
    """How often such a verdict was right, to 3 %, against a run ten times as long. Null unless settled."""
    write_amplification: float | None
    """Write amplification of the settled part of the run, preconditioning by the workload included. Null unless
    settled."""
    interval: list[float] | None
    """95 % interval of the measured write amplification, from the means of batches: its ends. Null where too
    little was written to tell."""
    drift: float | None
    """The largest relative difference between spans of the history. Null where too little was written to tell."""
    erases_per_block: float
    """Erases a block, on average since the workload began."""
    why: str
    """Why, in a sentence."""
    mend: str | None
    """The option that mends it. Null where none does."""


Verdict: TypeAlias = Literal["settled", "transient", "too-short", "none"]
"""What is known of a figure that depends on cleaning."""


class Warning(TypedDict):
    """Something that a user should know before using the figures of a run."""

    code: str
    """What programs know it by."""
    text: str
    """One sentence with its figures."""
    mend: str | None
    """The options that mend it. Null where none does."""


class Gc(TypedDict):
    """Cleaning."""

    collections: int | None
    """Victims cleaned. Null in a replay."""
    efficiency: float | None
    """Mean share of a victim's pages that were invalid, 0 to 1. Null without a victim."""
    block_utilization: float | None
    """Mean share of a block's pages that were programmed when it was erased, 0 to 1. Counts every erase, whatever
    its cause (Gupta 2009, sections 4 and 5). Null without an erase."""


class Merges(TypedDict):
    """Merges of log-block schemes (Gupta 2009, Figure 2)."""

    switch: int | None
    """The log block became the data block. Null under other schemes."""
    partial: int | None
    """The rest of the data block was copied into the log block first. Null under other schemes."""
    full: int | None
    """Both were copied into a fresh block. Null under other schemes."""
    full_by_data_blocks: list[int] | None
    """Item n: reclaims of a log block whose full merges touched n data blocks (Gupta 2009, Figure 7). Null under
    other schemes."""


class MappingCache(TypedDict):
    """The cached mapping table of schemes that keep theirs on flash."""

    lookups: int | None
    """Translations asked for. Null under schemes whose table is in RAM as a whole."""
    hits: int | None
    """Translations found in RAM. Null as `lookups`."""
    hit_ratio: float | None
    """`hits` over `lookups`, 0 to 1. Null as `lookups`, and without a lookup."""
    evictions: int | None
    """Entries that left the cache. Null as `lookups`."""
    dirty_evictions: int | None
    """Entries that left the cache and had to be written to flash. Null as `lookups`."""


class Buffer(TypedDict):
    """The RAM before the translation layer."""

    writes: int | None
    """Pages that reached the RAM to be written. Null on a drive without RAM."""
    write_hits: int | None
    """Pages of them that overwrote one in RAM. Null on a drive without RAM."""
    write_hit_ratio: float | None
    """`write_hits` over `writes`, 0 to 1. Null on a drive without RAM, and without a write."""
    reads: int | None
    """Pages that reached the RAM to be read. Null on a drive without RAM."""
    read_hits: int | None
    """Pages of them that were answered from RAM. Null on a drive without RAM."""
    read_hit_ratio: float | None
    """`read_hits` over `reads`, 0 to 1. Null on a drive without RAM, and without a read."""
    destages: int | None
    """Times that something was written to flash to make room or to flush. Counts a block once. Null on a drive
    without RAM."""
    block_destages: int | None
    """Destages of blocks that asked for an erase block of their own or for padding. Null on a drive without RAM."""
    pages_destaged: int | None
    """Host pages that destages wrote. Null on a drive without RAM."""
    pages_per_destage_mean: float | None
    """`pages_destaged` over `destages`. Null on a drive without RAM, and without a destage."""
    pages_padded: int | None
    """Pages read from flash and written again to complete blocks. Null on a drive without RAM."""
    pages_dropped: int | None
    """Pages that left without a write, since flash held them already. Null on a drive without RAM."""
    flushes: int | None
    """Flushes that had to write. Null on a drive without RAM."""
    pages_forced: int | None
    """Pages written past the RAM because the host wanted them on flash at once. Null on a drive without RAM."""
    partition: Partition | None
    """How RAM was shared with the mapping table. Null where it is not."""
    extra: dict[str, float | None] | None
    """What only this manager counts, by name. Null on a drive without RAM."""


class Partition(TypedDict):
    """How RAM was shared between buffer and mapping table: the latest points, at most 4,096, a column each."""

    requests: list[int]
    """Requests since measuring began."""
    buffer_pages: list[int]
    """Pages that the buffer could hold."""
    map_entries: list[int]
    """Entries of the mapping table that could be cached."""


class Scheme(TypedDict):
    """The translation layer."""

    ram_bytes: int
    """RAM that its tables take, by the entry sizes of its settings."""
    extra: dict[str, float | None]
    """What only this scheme counts, by name."""


class Wear(TypedDict):
    """Wear since the drive was new, preconditioning and warm-up included."""

    erases_per_block: ErasesPerBlock
    """Erases of each block."""
    blocks_worn_out: int | None
    """Blocks retired. Null in a replay."""
    host_pages_written: int | None
    """Pages that the host asked to write, preconditioning included. Null in a replay."""
    endurance_efficiency: float | None
    """Host pages written over the programs that the flash has by its rated cycles. Null where blocks do not wear
    out."""


class ErasesPerBlock(TypedDict):
    """Erases of a block."""

    min: int | None
    """Of the block erased least. Null in a replay."""
    max: int | None
    """Of the block erased most. Null in a replay."""
    mean: float | None
    """Mean over all blocks. Null in a replay."""
    stdev: float | None
    """Standard deviation over all blocks. Null in a replay."""
    coefficient_of_variation: float | None
    """`stdev` over `mean`. Null in a replay, and where nothing was erased."""


class Times(TypedDict):
    """Times by kind of request."""

    all: LatencySummary
    """Of reads and writes."""
    read: LatencySummary
    """Of reads."""
    write: LatencySummary
    """Of writes."""
    trim: LatencySummary
    """Of trims."""
    flush: LatencySummary
    """Of flushes."""


class LatencySummary(TypedDict):
    """A summary, as the JSON of a run has it. All but `count` in nanoseconds; percentiles are exact to three
    significant digits."""

    count: int
    """Requests whose times were taken; 0 where the drive has no times."""
    mean: float | None
    """Mean. Null without a request."""
    stdev: float | None
    """Standard deviation. Null without a request."""
    p50: int | None
    """The time below or at which half of the requests lie. Null without a request."""
    p90: int | None
    """The time below or at which 90 % of the requests lie. Null without a request."""
    p99: int | None
    """The time below or at which 99 % of the requests lie. Null without a request."""
    p99_9: int | None
    """The time below or at which 99.9 % of the requests lie. Null without a request."""
    max: int | None
    """The longest. Null without a request."""


class Throughput(TypedDict):
    """Rates over the measured time."""

    iops: float | None
    """Reads and writes a second. Null where no time passed."""
    bytes_per_s: float | None
    """Bytes read and written a second. Null where no time passed."""


class Controller(TypedDict):
    """Counts of a [`super::Controller`]. Bytes that came are flushed, dropped by a trim, or still in the buffer:
    `write_buffer_bytes - write_buffer_hit_bytes = flushed_bytes + dropped_bytes +` what waits there."""

    write_buffer_hits: int
    """Writes, or parts of writes larger than the buffer, for which the write buffer needed no new room."""
    write_buffer_bytes: int
    """Bytes of writes that went into the write buffer."""
    write_buffer_hit_bytes: int
    """Bytes of those that replaced buffered ones."""
    write_buffer_read_hits: int
    """Reads served from the write buffer."""
    write_through_bytes: int
    """Bytes of writes that passed by the write buffer, or found none."""
    flushes: int
    """Entries of the write buffer that went to the flash."""
    flushes_forced: int
    """Those of them that something waited for: room, a flush, a request for the same sectors."""
    flushed_bytes: int
    """Bytes of the write buffer that went to the flash."""
    dropped_bytes: int
    """Bytes of the write buffer that a trim made needless."""
    read_buffer_hits: int
    """Reads served from the read buffer."""
    prefetched_bytes: int
    """Bytes read ahead."""
    prefetched_used_bytes: int
    """Bytes read ahead that a read was served with."""
    turnarounds: int
    """Times that the flash changed between reading and writing, if that costs time."""


class HostLayer(TypedDict):
    """What a scheduler before the drive did since measuring began."""

    scheduler: str
    """Its name."""
    requests: int
    """Requests taken from above."""
    back_merges: int
    """Requests merged behind a queued one."""
    front_merges: int
    """Requests merged before a queued one."""
    joined: int
    """Queued requests that grew until they met, and were joined."""
    held_for_order: int
    """Requests that waited for an earlier one with the same sectors."""
    held_for_room: int
    """Requests that found the queue full."""
    reads: Dispatched
    """Reads handed on."""
    writes: Dispatched
    """Writes handed on."""
    others: int
    """Trims and flushes handed on."""
    read_waits: Waited
    """Waits of reads."""
    write_waits: Waited
    """Waits of writes."""
    extra: dict[str, float | None]
    """What only this scheduler counts, by name."""


class Dispatched(TypedDict):
    """Requests that a scheduler handed on, in one direction."""

    requests: int
    """All."""
    bytes: int
    """Their bytes."""
    aligned_at_start: int | None
    """Those that begin at a multiple of the clustered page. Null where that is unknown."""
    aligned_at_both_ends: int | None
    """Those that begin and end at one. Null where that is unknown."""
    within_buffer: int | None
    """Those no longer than the drive's buffer of their direction. Null where that is unknown or absent."""
    above_buffer: int | None
    """Those longer. Null where that is unknown or absent."""
    bytes_mean: float | None
    """Mean size. Null without a request."""


class Waited(TypedDict):
    """How long requests waited in a scheduler before they were handed on."""

    total_ns: int
    """Sum over all requests handed on, in nanoseconds."""
    longest_ns: int
    """The longest: the starvation time."""
    mean_ns: float | None
    """Mean wait. Null without a request."""


class Busy(TypedDict):
    """How busy the parts of the drive were."""

    dies: list[float] | None
    """By die, channel by channel, 0 to 1; one number for the drive under `timing.model = "serial"`, none without
    timing. Null in a replay."""
    channels: list[float] | None
    """By channel, 0 to 1; none without `timing.model = "parallel"`. Null in a replay."""


class Verify(TypedDict):
    """The verify mode."""

    enabled: bool | None
    """Whether every read was checked and the state audited. Null in a replay."""
    violations: int | None
    """What was found wrong. Null without the verify mode."""


class Drive(TypedDict):
    """The drive."""

    logical_pages: int
    """Pages that the host can address."""
    physical_pages: int
    """Pages of the flash."""
    logical_bytes: int
    """Its size for the host."""
    cautions: list[str]
    """What is dear about its configuration, a sentence each."""
    state_digest: str
    """Digest of where every logical page lies and how worn every block is, at the end."""


class Cost(TypedDict):
    """What the run cost here; the only figures that differ from one machine to another."""

    cpu_s: float
    """Processor time of the process."""
    requests_per_cpu_s: float | None
    """Requests played, warm-up included, over `cpu_s`. Null where that is 0."""
    peak_rss_bytes: int | None
    """The most memory that the process ever held. Null where the system does not tell."""


PolicyUsed = TypedDict(
    "PolicyUsed",
    {
        "key": str,
        "name": str,
        "module": str,
        "class": str,
        "file": str | None,
        "source_sha256": str | None,
        "settings": dict[str, Any],
        "calls": int,
    },
)
"""A policy from outside the simulator that took part."""


class Report(TypedDict):
    """The JSON of a run: what `--json` writes, of `simulate` and of `replay`. A figure that does not apply is
    null, never missing and never 0."""

    version: str
    """Version of Flashwright."""
    config: dict[str, Any]
    """What was run: the configuration of a simulated drive, every default written out; of a real device its name
    and how it was opened."""
    seed: int
    """The seed; with `version`, `config` and `workload` all it takes to run it again."""
    workload: str
    """The workload in words."""
    precondition: Precondition | None
    """What was done to the drive before the workload. Null in a replay on a real device."""
    pace: Pace
    """When requests were issued."""
    ended: Ended
    """How the run ended."""
    note: str | None
    """Why it ended so. Null where it is complete."""
    measured: Measured
    """What the figures cover."""
    host: Host
    """What the host asked for since measuring began."""
    requests: Requests
    """Requests by kind since measuring began."""
    left_out: LeftOut | None
    """Requests that were not played because the target must not be changed. Null in a run."""
    target: Target | None
    """What the replay was played on. Null in a run."""
    flash: Flash
    """What the flash did since measuring began."""
    settled: Settled | None
    """Whether the drive had settled under the workload. Null in a replay."""
    warnings: list[Warning]
    """What to know before using the figures, the most important first."""
    write_amplification: float | None
    """`flash.programs.total` over `host.pages_written`: below 1 where buffers take writes. Null in a replay, and
    where the host wrote nothing."""
    write_amplification_into_flash: float | None
    """`flash.programs.total` over `host.pages_into_flash`: what cleaning makes of the pages that buffers let
    through. Equal to `write_amplification` where nothing lies before the flash. Null in a replay, and where no
    page came through."""
    gc: Gc
    """Cleaning since measuring began."""
    merges: Merges
    """Merges since measuring began."""
    mapping_cache: MappingCache
    """The cached mapping table since measuring began."""
    buffer: Buffer
    """The RAM before the translation layer, since measuring began."""
    scheme: Scheme | None
    """The translation layer. Null in a replay."""
    wear: Wear
    """Wear since the drive was new."""
    response_time_ns: Times
    """Times from the arrival of a request to its end, queueing included."""
    service_time_ns: Times
    """Times from the drive taking a request to its end."""
    lateness_ns: LatencySummary | None
    """How much later than asked requests were handed over. Null in a run, and in a closed loop."""
    throughput: Throughput
    """Rates over the measured time."""
    controller: Controller | None
    """What the drive's controller did since measuring began. Null without one."""
    host_layers: list[HostLayer]
    """The schedulers before the drive, from the host down."""
    busy: Busy
    """Share of the measured time for which each part of the drive was busy. Counts an operation under way where
    measuring begins or ends as a whole."""
    verify: Verify
    """The verify mode."""
    violations: list[str] | None
    """What the verify mode found wrong, a sentence each. Null in a replay."""
    drive: Drive | None
    """The drive. Null in a replay."""
    digest: str | None
    """Digest of every completion and of the drive's state: equal where two runs are. Null in a replay."""
    run: Cost
    """What the run cost here."""
    workload_notes: list[str]
    """What to know of the workload: labels, how addresses were fitted, lines that were skipped."""
    application: dict[str, float | None] | None
    """What a program above the drive did, by name. Null of other workloads."""
    policies: list[PolicyUsed]
    """Policies from outside the simulator."""
