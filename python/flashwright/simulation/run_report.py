"""The types of the JSON of a run; ``docs/reference/figures.md`` lists the same figures.

Written by ``make generate`` from the types of the core; change those instead.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

__all__ = ["Report"]


class Precondition(TypedDict):
    """How the drive was preconditioned."""

    spec: str
    """The recipe, as `--precondition` takes it."""
    pages_written: int
    """Pages that the fill wrote. Counts no pages that the workload wrote while it preconditioned the drive."""
    workload: Settling | None
    """The workload as preconditioning. Null unless `spec` is `workload`."""
    scaled: ScaledStart | None
    """The small drive that this one began as a copy of. Null unless `spec` is `workload:scaled`."""
    steady: bool | None
    """Whether the steady-state rule held at the end. Null unless `spec` is `steady`."""
    write_amplification_rounds: list[float] | None
    """Write amplification of each round of the steady-state rule. Null unless `spec` is `steady`."""


class Settling(TypedDict):
    """The workload as preconditioning."""

    ended: Search
    """How the search for the settled state ended."""
    requests: int
    """Requests played."""
    passes: int
    """Whole passes of the trace; 0 for other workloads."""
    pages_written: int
    """Pages that requests asked to write."""
    capacities: float
    """`pages_written` over the drive's logical pages."""


Search: TypeAlias = Literal["under-way", "settled", "gave-up", "nothing-written", "ended"]
"""How the search for the settled state ended."""


class ScaledStart(TypedDict):
    """How the drive of a run with `workload:scaled` began."""

    refused: str | None
    """The first setting because of which it began with a fill in order, as with `workload`. Null if it is a copy
    of a small drive."""
    times_smaller: float | None
    """Logical pages over those of the small drive. Null if there was none."""
    capacities: float | None
    """Pages that the workload wrote to the small drive, over its own logical pages. Null if there was none."""
    ended: Search | None
    """How the search for the small drive's settled state ended. Null if there was none."""


Pace: TypeAlias = 'Literal["interactive", "tenants"] | PaceOpen | PaceClosed'
"""When requests are issued."""


class PaceOpen(TypedDict):
    """At their arrival times, multiplied by a factor: 0.5 plays a trace twice as fast."""

    open: PaceOpenOpen


class PaceOpenOpen(TypedDict):
    """What this pace takes."""

    time_scale: float
    """Factor on arrival times, 0 or more."""


class PaceClosed(TypedDict):
    """Whenever fewer than `depth` requests are outstanding; arrival times are ignored."""

    closed: PaceClosedClosed


class PaceClosedClosed(TypedDict):
    """What this pace takes."""

    depth: int
    """Requests outstanding, at least 1."""


Ended: TypeAlias = Literal["complete", "time-limit", "interrupted", "failed", "worn-out"]
"""How a run ended."""


class Measured(TypedDict):
    """The measured part of a run."""

    requests: int
    """Requests completed since measuring began."""
    duration_ns: int | None
    """Time on the drive's clock from the start of measuring to the end of the latest request. Null if the drive
    has no timing."""
    warmup_requests: int
    """Requests of the warm-up, as it was set."""


class Host(TypedDict):
    """Work that the host asked for."""

    pages_read: int | None
    """Pages that requests asked to read. Counts a page once for each request that touches it. Null in a replay."""
    pages_written: int | None
    """Pages that requests asked to write, including those that buffers absorbed. Counts a page once for each
    request that touches it. Null in a replay."""
    pages_into_flash: int | None
    """Host pages that were programmed: those that passed buffers, schedulers and the controller. Counts pages that
    a buffer held when measuring began, but not those that it holds at the end. Equal to `pages_written` if no
    buffer, scheduler or controller lies before the flash. Null in a replay."""
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
    """Requests of the workload that were not played because the device must not be changed."""

    writes: int
    """Writes left out."""
    trims: int
    """Trims left out."""
    flushes: int
    """Flushes left out."""


class Target(TypedDict):
    """The device that a replay was played on."""

    name: str
    """The device's name or path."""
    capacity_bytes: int
    """The device's size."""
    block_bytes: int
    """The smallest unit that the device reads and writes."""
    queue_depth: int
    """Requests that the device accepts at once."""
    real_time: bool
    """Whether the device runs in real time."""
    writes_allowed: bool
    """Whether writes, trims and flushes were played."""


class Flash(TypedDict):
    """What the flash did since measuring began."""

    reads: Causes
    """Pages read."""
    programs: Causes
    """Pages programmed."""
    erases: Causes
    """Blocks erased. Counts an erase under the cause of the work that it completed."""
    oob_reads: Causes
    """Reads of a spare area alone."""
    reads_unmapped: int | None
    """Pages read that hold no data (never written, or trimmed); they cost no flash operation. Null in a replay."""


class Causes(TypedDict):
    """Flash operations of one kind, by cause."""

    host: int | None
    """For pages that requests asked for. Null in a replay."""
    gc: int | None
    """For cleaning. Null in a replay."""
    merge: int | None
    """For merges of log blocks with data blocks. Null in a replay."""
    padding: int | None
    """To complete blocks that a buffer wrote. Null in a replay."""
    translation: int | None
    """For the mapping table on flash. Counts operations that cleaning caused as well. Null in a replay."""
    wear: int | None
    """To level wear. Null in a replay."""
    total: int | None
    """All of them. Null in a replay."""
    translation_in_gc: int | None
    """The part of `translation` that cleaning caused. Null in a replay."""


class Settled(TypedDict):
    """The verdict on the measured write amplification, as the JSON of a run has it."""

    verdict: Verdict
    """The verdict."""
    since_request: int | None
    """The measured request from which on the drive was settled; 0 if it had settled before. Null if it did not
    settle."""
    confidence: float | None
    """How often such a verdict was right to 3 %, compared with a run ten times as long. Null unless settled."""
    write_amplification: float | None
    """Write amplification of the settled part of the run, preconditioning by the workload included. Null unless
    settled."""
    interval: list[float] | None
    """95 % interval of the measured write amplification, from the means of batches: its ends. Null if too little
    was written to estimate it."""
    drift: float | None
    """The largest relative difference between spans of the history. Null if too little was written to estimate it."""
    erases_per_block: float
    """Mean erases per block since the workload began."""
    why: str
    """The reason for the verdict, in one sentence."""
    mend: str | None
    """The option that would make the run settle. Null if none would."""


Verdict: TypeAlias = Literal["settled", "transient", "too-short", "none", "never-cleaned"]
"""The state of a figure that depends on cleaning."""


class Warning(TypedDict):
    """Something that a user should know before using the figures of a run."""

    code: str
    """Its identifier for programs."""
    text: str
    """One sentence with its figures."""
    mend: str | None
    """The options that correct it. Null if none does."""


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
    """Switch merges: the log block became the data block. Null under other schemes."""
    partial: int | None
    """Partial merges: the rest of the data block was copied into the log block first. Null under other schemes."""
    full: int | None
    """Full merges: both were copied into an erased block. Null under other schemes."""
    full_by_data_blocks: list[int] | None
    """Item n: reclaims of a log block whose full merges touched n data blocks (Gupta 2009, Figure 7). Null under
    other schemes."""


class MappingCache(TypedDict):
    """The cached mapping table of schemes that keep theirs on flash."""

    lookups: int | None
    """Translations requested. Null under schemes that keep the whole table in RAM."""
    hits: int | None
    """Translations found in RAM. Null as `lookups`."""
    hit_ratio: float | None
    """`hits` over `lookups`, 0 to 1. Null as `lookups`, and without a lookup."""
    evictions: int | None
    """Entries evicted from the cache. Null as `lookups`."""
    dirty_evictions: int | None
    """Evicted entries that had to be written to flash. Null as `lookups`."""
    prefetched: int | None
    """Entries loaded beside those that were asked for (`ftl.dftl.prefetch`). Null as `lookups`."""
    prefetched_used: int | None
    """Entries of `prefetched` that were asked for before they left the cache. Null as `lookups`."""
    prefetch_accuracy: float | None
    """`prefetched_used` over `prefetched`, 0 to 1: the accuracy of the prefetch policy. Null as `lookups`, and
    where nothing was prefetched."""


class Buffer(TypedDict):
    """The RAM before the translation layer."""

    writes: int | None
    """Pages written that reached the RAM. Null on a drive without RAM."""
    write_hits: int | None
    """Pages of `writes` that overwrote a page in RAM. Null on a drive without RAM."""
    write_hit_ratio: float | None
    """`write_hits` over `writes`, 0 to 1. Null on a drive without RAM, and without a write."""
    reads: int | None
    """Pages read that reached the RAM. Null on a drive without RAM."""
    read_hits: int | None
    """Pages of `reads` that were answered from RAM. Null on a drive without RAM."""
    read_hit_ratio: float | None
    """`read_hits` over `reads`, 0 to 1. Null on a drive without RAM, and without a read."""
    destages: int | None
    """Destages: writes from RAM to flash, to make room or to flush. Counts a block once. Null on a drive without
    RAM."""
    block_destages: int | None
    """Destages of blocks that asked for an erase block of their own or for padding. Null on a drive without RAM."""
    pages_destaged: int | None
    """Host pages that destages wrote. Null on a drive without RAM."""
    pages_per_destage_mean: float | None
    """`pages_destaged` over `destages`. Null on a drive without RAM, and without a destage."""
    pages_padded: int | None
    """Pages read from flash and written again to complete blocks. Null on a drive without RAM."""
    pages_dropped: int | None
    """Pages evicted without a write because flash held them already. Null on a drive without RAM."""
    flushes: int | None
    """Flushes that had to write. Null on a drive without RAM."""
    pages_forced: int | None
    """Pages written past the RAM because the host demanded them on flash at once, or a policy of one's own did not
    admit them. Null on a drive without RAM."""
    partition: Partition | None
    """How RAM was shared with the mapping table. Null if it is not shared."""
    extra: dict[str, float | None] | None
    """Counts of this manager alone, by name. Null on a drive without RAM."""


class Partition(TypedDict):
    """How RAM was shared between buffer and mapping table: the latest points, at most 4,096, one array per column."""

    requests: list[int]
    """Requests since measuring began."""
    buffer_pages: list[int]
    """Pages that the buffer could hold."""
    map_entries: list[int]
    """Entries of the mapping table that could be cached."""


class Scheme(TypedDict):
    """The translation layer."""

    ram_bytes: int
    """RAM of its tables, computed from the entry sizes in its settings."""
    extra: dict[str, float | None]
    """Counts of this scheme alone, by name."""


class Handle(TypedDict):
    """A handle of flexible data placement since measuring began."""

    handle: int
    """Its number."""
    pages_written: int
    """Pages that the host wrote with it and that reached the flash."""
    pages_moved: int
    """Pages of it that cleaning moved."""
    pages_moved_for: list[int]
    """Pages of it that cleaning moved, by the handle that had written last: its writes made the room necessary."""
    write_amplification: float | None
    """`pages_written` and `pages_moved` over `pages_written`. Null if the host wrote nothing with it."""


class Group(TypedDict):
    """A reclaim group of flexible data placement since measuring began."""

    group: int
    """Its number."""
    pages_written: int
    """Pages of the host that were programmed on its dies, whichever group the host named."""
    pages_programmed: int
    """Pages programmed on its dies, for whatever cause."""
    pages_moved: int
    """Those of them that cleaning moved."""
    erases: int
    """Reclaim units of it that were erased."""
    write_amplification: float | None
    """`pages_programmed` over `pages_written`. Null if no page of the host was programmed there."""
    units: int
    """Its reclaim units that can hold data at the end: without bad and worn-out ones, and those that the drive
    keeps for itself."""
    units_free: int
    """Those of them that are erased at the end."""


class Tenant(TypedDict):
    """A tenant since measuring began: one of several workloads at once."""

    name: str
    """Its name."""
    workload: str
    """Its workload in words."""
    pace: Pace
    """When it issued requests."""
    first_page: int
    """The first logical page of its namespace."""
    pages: int
    """Pages of its namespace."""
    handle: int | None
    """The placement handle of its requests. Null where they name the streams of its workload."""
    priority: Priority
    """The class of its queue."""
    requests: Requests
    """Its requests by kind."""
    throughput: Throughput
    """Rates, over the time from the start of measuring to the end of its latest request."""
    response_time_ns: Times
    """Times from the arrival of a request to its completion, queueing included."""
    service_time_ns: Times
    """Times from the moment when the drive accepts a request to its completion."""
    pages_read: int
    """Pages that its requests asked to read. Counts a page once for each request that touches it."""
    pages_written: int
    """Pages that its requests asked to write. Counts a page once for each request that touches it."""
    pages_into_flash: int
    """Pages of its namespace that were programmed with data of the host."""
    pages_moved: int
    """Pages of its namespace that cleaning, merging, padding or wear levelling moved."""
    pages_moved_for: list[int]
    """`pages_moved` by the tenant that had written last, in the order of the tenants: its writes made the room
    necessary."""
    write_amplification: float | None
    """`pages_into_flash` and `pages_moved` over `pages_written`. Null if it wrote nothing."""
    alone: Alone | None
    """The same tenant alone on the drive. Null where that was not played."""
    slowdown: Slowdown | None
    """How much slower it was among the others. Null where it was not played alone."""


Priority: TypeAlias = Literal["urgent", "high", "medium", "low"]
"""The priority class of a submission queue (NVM Express Base 2.1, field QPRIO of Create I/O Submission Queue).
Only an arbiter that weighs queues looks at it."""


class Throughput(TypedDict):
    """Rates over the measured time."""

    iops: float | None
    """Reads and writes per second. Null if no time passed."""
    bytes_per_s: float | None
    """Bytes read and written per second. Null if no time passed."""


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
    """Requests whose times were measured; 0 if the drive has no timing."""
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
    """The longest time. Null without a request."""


class Alone(TypedDict):
    """A tenant alone on the drive: the same namespace, requests, seed and preconditioning, and nobody else."""

    requests: int
    """Requests completed since measuring began."""
    iops: float | None
    """Reads and writes per second. Null if no time passed."""
    response_time_ns: LatencySummary
    """Times from the arrival of a request to its completion, queueing included, of reads and writes."""
    write_amplification: float | None
    """Write amplification by pages. Null if it wrote nothing."""
    verdict: Verdict
    """Whether the drive had settled under it alone."""


class Slowdown(TypedDict):
    """A tenant among the others against the same tenant alone: 1 is as fast, 2 takes twice as long."""

    mean_ratio: float | None
    """Mean response time, over that alone. Null without a time of both."""
    p99_ratio: float | None
    """99th percentile of response times, over that alone. Null without a time of both."""
    iops_ratio: float | None
    """Reads and writes per second alone, over those among the others. Null without a rate of both."""


class Queue(TypedDict):
    """A submission queue of a drive in service since measuring began."""

    queue: int
    """Its number: those of the first host from 1 on, of the second from 129 on. 0 for clients without queues."""
    requests: Requests
    """Its requests by kind."""
    throughput: Throughput
    """Rates, over the time from the start of measuring to the end of its latest request."""
    response_time_ns: Times
    """Times from the arrival of a request to its completion, queueing included."""
    service_time_ns: Times
    """Times from the moment when the drive accepts a request to its completion."""
    pages_read: int
    """Pages that its requests asked to read. Counts a page once for each request that touches it."""
    pages_written: int
    """Pages that its requests asked to write. Counts a page once for each request that touches it."""


class Zones(TypedDict):
    """The zones of a zoned drive."""

    zones: int
    """Zones."""
    size_bytes: int
    """Addresses of a zone, in bytes."""
    capacity_bytes: int
    """What of a zone can be written, in bytes."""
    states: dict[str, int]
    """Zones in each state at the end, by its name."""
    resets: int
    """Zones reset since measuring began."""
    finishes: int
    """Zones finished since measuring began."""
    pages_padded: int
    """Pages programmed to finish zones since measuring began; `flash.programs.padding` counts them too."""
    refusals: dict[str, int]
    """Requests refused since measuring began, by the rule that they would have broken. No other figure counts
    them."""
    reset_time_ns: LatencySummary
    """Times of resets from the moment when the drive accepts one to its completion; the erases follow behind."""
    finish_time_ns: LatencySummary
    """Times of finishes."""


class Wear(TypedDict):
    """Wear since the drive was new, preconditioning and warm-up included."""

    erases_per_block: ErasesPerBlock
    """Erases of each block."""
    blocks_worn_out: int | None
    """Blocks retired. Null in a replay."""
    host_pages_written: int | None
    """Pages that the host asked to write, preconditioning included. Counts a page once for each request that
    touches it, however small. Null in a replay."""
    host_bytes_written: int | None
    """Bytes of the writes that succeeded, preconditioning included: what an endurance in bytes or drive writes
    counts. Null in a replay."""
    endurance_efficiency: float | None
    """Host pages written over all page programs that the flash's rated cycles allow. Null if blocks do not wear
    out."""


class ErasesPerBlock(TypedDict):
    """Erases of a block."""

    min: int | None
    """Erases of the least erased block. Null in a replay."""
    max: int | None
    """Erases of the most erased block. Null in a replay."""
    mean: float | None
    """Mean over all blocks. Null in a replay."""
    stdev: float | None
    """Standard deviation over all blocks. Null in a replay."""
    coefficient_of_variation: float | None
    """`stdev` over `mean`. Null in a replay, and if nothing was erased."""


class Controller(TypedDict):
    """Counts of a [`super::Controller`]. Until a loss of power, buffered bytes are flushed, dropped by a trim, or
    still in the buffer: `write_buffer_bytes - write_buffer_hit_bytes = flushed_bytes + dropped_bytes +` the bytes
    still buffered."""

    write_buffer_hits: int
    """Writes, or parts of writes larger than the buffer, for which the write buffer needed no new room."""
    write_buffer_bytes: int
    """Bytes of writes that went into the write buffer."""
    write_buffer_hit_bytes: int
    """Bytes of writes that replaced buffered ones."""
    write_buffer_read_hits: int
    """Reads served from the write buffer."""
    write_through_bytes: int
    """Bytes of writes that bypassed the write buffer, or were made without one."""
    flushes: int
    """Entries of the write buffer that were written to the flash."""
    flushes_forced: int
    """Flushed entries that something waited for: room, a flush, a request for the same sectors."""
    flushed_bytes: int
    """Bytes of the write buffer that were written to the flash."""
    dropped_bytes: int
    """Bytes of the write buffer that a trim dropped."""
    read_buffer_hits: int
    """Reads served from the read buffer."""
    prefetched_bytes: int
    """Bytes read ahead."""
    prefetched_used_bytes: int
    """Bytes read ahead that served a read."""
    turnarounds: int
    """Number of times that the flash switched between reading and writing, if that costs time."""


class Chips(TypedDict):
    """What the chips did."""

    array_reads: int
    """Reads of the array, without those of copies within a plane; several pages at once count as one."""
    array_programs: int
    """Programs of the array, without those of parity and of copies within a plane; each of two passes counts."""
    parity_programs: int
    """Programs of parity."""
    array_erases: int
    """Erases of the array, on each die of a block."""
    copybacks: int
    """Pages copied within a plane."""
    units_transferred: int
    """Mapping units that crossed a bus."""
    programs_suspended: int
    """Programs suspended."""
    erases_suspended: int
    """Erases suspended."""
    ram_reads: int
    """Reads answered from RAM before their data were programmed."""
    cached_programs: int
    """Programs whose data crossed the bus while the array was busy."""
    cached_reads: int
    """Reads that sensed while the page before crossed the bus."""
    power_waits: int
    """Programs and erases that waited for power."""
    rebuilding_reads: int
    """Reads of other dies that rebuilt a page from its parity."""


class BitErrors(TypedDict):
    """What reads of the flash met. A read of several mapping units at once counts once for each."""

    reads: int
    """Reads of mapping units."""
    reads_retried: int
    """Reads that were retried."""
    retries: int
    """Retries of all of them."""
    reads_soft: int
    """Reads that took soft decoding."""
    reads_uncorrectable: int
    """Reads that nothing corrected: rebuilt from parity if the drive has it, else lost."""
    reclaims: int
    """Blocks that a read asked to have written again: too many errors, reads, or too old."""
    blocks_rewritten: int
    """Blocks that were written again for it."""


class Mount(TypedDict):
    """The mount of a copy of the drive that lost its power at the end of the run. The run itself goes on as if
    nothing had happened."""

    duration_ns: int | None
    """How long it took. Null if the drive has no timing."""
    spare_areas_read: int
    """Spare areas read: of pages programmed since the newest checkpoint and of blocks, or of all pages."""
    pages_read: int
    """Pages read, of checkpoints, the journal, maps on flash, and merges."""
    pages_programmed: int
    """Pages programmed, to finish what was under way and to write tables again."""
    blocks_erased: int
    """Blocks erased."""
    pages_mapped: int
    """Logical pages found."""


class Energy(TypedDict):
    """Energy of a run, in joules: operations of the flash by their figures in `[energy]`, and what the rest of the
    drive draws all the time."""

    reads_j: float
    """Reads of the array."""
    programs_j: float
    """Programs of the array, parity included."""
    erases_j: float
    """Erases."""
    transfers_j: float
    """Transfers over the channels."""
    idle_j: float
    """`energy.idle-mw` over the measured time."""
    total_j: float
    """All of it."""
    mean_w: float | None
    """`total_j` over the measured time, in watts. Null if no time passed."""
    mj_per_mb: float | None
    """Millijoules for each megabyte (10^6 bytes) that the host read or wrote. Null if it did neither."""


class HostLayer(TypedDict):
    """Figures of a scheduler before the drive since measuring began."""

    scheduler: str
    """Its name."""
    requests: int
    """Requests received from the layer above."""
    back_merges: int
    """Back merges: requests appended to a queued one."""
    front_merges: int
    """Front merges: requests prepended to a queued one."""
    joined: int
    """Queued requests that grew until they were adjacent and were joined."""
    held_for_order: int
    """Requests that waited for an earlier one on the same sectors."""
    held_for_room: int
    """Requests that found the queue full."""
    reads: Dispatched
    """Reads dispatched."""
    writes: Dispatched
    """Writes dispatched."""
    others: int
    """Trims and flushes dispatched."""
    read_waits: Waited
    """Waits of reads."""
    write_waits: Waited
    """Waits of writes."""
    extra: dict[str, float | None]
    """Counts of this scheduler alone, by name."""


class Dispatched(TypedDict):
    """Requests that a scheduler dispatched in one direction."""

    requests: int
    """All requests."""
    bytes: int
    """Their bytes."""
    aligned_at_start: int | None
    """Requests that begin at a multiple of the clustered page. Null if its size is unknown."""
    aligned_at_both_ends: int | None
    """Requests that begin and end at a multiple of the clustered page. Null if its size is unknown."""
    within_buffer: int | None
    """Requests no longer than the drive's buffer of their direction. Null if that buffer is unknown or absent."""
    above_buffer: int | None
    """Requests longer than the drive's buffer of their direction. Null if that buffer is unknown or absent."""
    bytes_mean: float | None
    """Mean size. Null without a request."""


class Waited(TypedDict):
    """How long requests waited in a scheduler before it dispatched them."""

    total_ns: int
    """Sum over all dispatched requests, in nanoseconds."""
    longest_ns: int
    """The longest wait: the starvation time."""
    mean_ns: float | None
    """Mean wait. Null without a request."""


class Busy(TypedDict):
    """How busy the parts of the drive were."""

    dies: list[float] | None
    """By die, channel by channel, 0 to 1; one number for the drive under `timing.model = "serial"`, empty without
    timing. Null in a replay."""
    channels: list[float] | None
    """By channel, 0 to 1; empty unless `timing.model = "parallel"`. Null in a replay."""


class Verify(TypedDict):
    """The verify mode."""

    enabled: bool | None
    """Whether every read was checked and the state audited. Null in a replay."""
    violations: int | None
    """Number of violations. Null without the verify mode."""


class Drive(TypedDict):
    """The drive."""

    logical_pages: int
    """Pages that the host can address."""
    physical_pages: int
    """Pages of the flash."""
    logical_bytes: int
    """The capacity that the host sees."""
    cautions: list[str]
    """Costly properties of its configuration, one sentence each."""
    state_digest: str
    """Digest of where every logical page lies and how worn every block is, at the end."""


class Cost(TypedDict):
    """What the run took and what made it; all that differs between machines that play the same."""

    cpu_s: float
    """Processor time of the process."""
    requests_per_cpu_s: float | None
    """Requests played, warm-up included, over `cpu_s`. Null if that is 0."""
    peak_rss_bytes: int | None
    """Peak memory of the process. Null if the system does not report it."""
    made: Made | None
    """What made it, for `flashwright rerun`. Null for replays, and for what was served."""


class Made(TypedDict):
    """What made a run, beside its drive, so that it can be played again."""

    source_digest: str
    """Digest of the simulator's source."""
    source: dict[str, Any]
    """What was played: the text of a workload, or how a trace is read."""
    options: dict[str, Any]
    """The options of the run."""
    trace_sha256: str | None
    """SHA-256 of the trace's file. Null for workloads, tenants, and files beyond 1 GiB."""
    command: list[str] | None
    """The command that made it, word by word. Null if a program did."""
    platform: str | None
    """The system, the processor and the version of Python. Null where no Python took part."""


PolicyUsed = TypedDict(
    "PolicyUsed",
    {
        "key": str,
        "replaced": str,
        "name": str,
        "module": str,
        "class": str,
        "file": str | None,
        "source_sha256": str | None,
        "settings": dict[str, Any],
        "calls": int,
    },
)
"""A policy from outside the simulator that the run used."""


class Report(TypedDict):
    """The JSON of a run, which `--json` of `simulate` and `replay` writes. A figure that does not apply is null,
    never missing and never 0."""

    version: str
    """Version of Flashwright."""
    config: dict[str, Any]
    """The device: the configuration of a simulated drive, with every default written out; for a real device, its
    name and how it was opened."""
    seed: int
    """The seed. With `version`, `config` and `workload` it is all that is needed to repeat the run."""
    workload: str
    """The workload in words."""
    precondition: Precondition | None
    """How the drive was preconditioned. Null in a replay on a real device."""
    pace: Pace
    """When requests were issued."""
    ended: Ended
    """How the run ended."""
    note: str | None
    """Why it ended early. Null if it is complete."""
    measured: Measured
    """The measured part of the run, which the figures cover."""
    host: Host
    """What the host asked for since measuring began."""
    requests: Requests
    """Requests by kind since measuring began."""
    left_out: LeftOut | None
    """Requests that were not played because the device must not be changed. Null in a run."""
    target: Target | None
    """The device that the replay was played on. Null in a run."""
    flash: Flash
    """What the flash did since measuring began."""
    settled: Settled | None
    """Whether the drive had settled under the workload. Null in a replay."""
    warnings: list[Warning]
    """Warnings about the figures, the most important first."""
    write_amplification: float | None
    """Write amplification by pages: `flash.programs.total` over `host.pages_written`; below 1 if buffers absorb
    rewrites. A page that a request writes in part counts as a page written. Null in a replay, and if the host
    wrote nothing."""
    write_amplification_bytes: float | None
    """Write amplification by bytes: those of the pages programmed over `requests.bytes_written`. It is what drives
    count (NAND writes over host writes in SMART data), and above `write_amplification` where requests write parts
    of pages. Null in a replay, and if the host wrote nothing."""
    write_amplification_into_flash: float | None
    """`flash.programs.total` over `host.pages_into_flash`: the amplification of the pages that reach the
    translation layer. Equal to `write_amplification` if no buffer, scheduler or controller lies before the flash.
    Null in a replay, and if no page reached the flash."""
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
    handles: list[Handle]
    """Handles of flexible data placement since measuring began. Empty unless `placement.policy` is `fdp`."""
    groups: list[Group]
    """Reclaim groups of flexible data placement since measuring began. Empty unless `placement.fdp.groups` is
    above 1."""
    tenants: list[Tenant]
    """Tenants since measuring began, in their order. Empty unless several workloads were played at once."""
    queues: list[Queue]
    """Submission queues of a drive in service since measuring began, by number. Empty in other runs: tenants have
    a queue each."""
    zones: Zones | None
    """The zones. Null unless `ftl.scheme` is `zoned`."""
    wear: Wear
    """Wear since the drive was new."""
    response_time_ns: Times
    """Times from the arrival of a request to its completion, queueing included."""
    service_time_ns: Times
    """Times from the moment when the drive accepts a request to its completion."""
    lateness_ns: LatencySummary | None
    """How late requests were submitted, compared with their arrival times. Null in a run, and in a closed loop."""
    throughput: Throughput
    """Rates over the measured time."""
    controller: Controller | None
    """Figures of the drive's controller since measuring began. Null without one."""
    chips: Chips | None
    """What the chips did since measuring began. Null where the drive needs no more than a page at a time
    (`[chips]`, superblocks and `timing.die-order` off), and in a replay."""
    errors: BitErrors | None
    """Errors of the cells since measuring began. Null without `errors.law`, and in a replay."""
    mount: Mount | None
    """A loss of power at the end of the run, tried on a copy of the drive. Null without `recovery.mount-by`, for a
    drive that is served or can't be mounted, and in a replay."""
    energy: Energy | None
    """Energy since measuring began. Null without figures in `[energy]`, without time, and in a replay."""
    host_layers: list[HostLayer]
    """The schedulers before the drive, from the host down."""
    busy: Busy
    """Share of the measured time during which each part of the drive was busy. Counts operations in full that were
    in progress when measuring began or ended."""
    verify: Verify
    """The verify mode."""
    violations: list[str] | None
    """Violations that the verify mode found, one sentence each. Null in a replay."""
    drive: Drive | None
    """The drive. Null in a replay."""
    digest: str | None
    """Digest of every completion and of the drive's state; identical runs have equal digests. Null in a replay."""
    run: Cost
    """CPU time and memory that the run took on this machine."""
    workload_notes: list[str]
    """Notes on the workload: labels, how addresses were fitted, lines that were skipped."""
    application: dict[str, float | None] | None
    """Figures of a program above the drive, by name. Null for other workloads."""
    policies: list[PolicyUsed]
    """Policies from outside the simulator."""
