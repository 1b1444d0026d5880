"""The tables of a run's page: key figures, all figures, configuration."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from flashwright.report import text
from flashwright.report.tables import Cell, Table, Tone
from flashwright.simulation.pages.view import RunView, dig, number
from flashwright.simulation.parts import amplifications_differ

Direction = Literal["lower", "higher"] | None


@dataclass(frozen=True)
class Figure:
    """A figure of a run.

    Attributes
    ----------
    name
        What tables call it.
    path
        Where it is in the JSON.
    show
        How it reads.
    better
        Which way is better.
    about
        What it means, as a sentence.
    cleaning
        Whether it depends on how hard the drive works at cleaning, and so holds only once that has settled.
    where
        The runs, by their JSON, for which it is shown; by default all that have it.
    """

    name: str
    path: str
    show: Callable[[float], str] = text.count
    better: Direction = None
    about: str = ""
    cleaning: bool = False
    where: Callable[[Mapping[str, Any]], bool] | None = None

    def is_shown(self, runs: Sequence[RunView]) -> bool:
        """Whether it is shown for one of these runs."""
        if self.where is not None:
            return any(self.where(run.json) for run in runs)
        return any(number(run.json, self.path) is not None for run in runs)


KEY_FIGURES = (
    Figure(
        "Write amplification",
        "write_amplification",
        text.significant,
        "lower",
        "Pages programmed, whatever the cause, per page that the host wrote.",
        cleaning=True,
    ),
    Figure(
        "Write amplification by bytes",
        "write_amplification_bytes",
        text.significant,
        "lower",
        "Bytes programmed per byte that the host wrote, as drives count it; requests wrote parts of pages.",
        cleaning=True,
        where=amplifications_differ,
    ),
    Figure(
        "IOPS",
        "throughput.iops",
        text.count,
        "higher",
        "Requests completed per second of the drive's time.",
        cleaning=True,
    ),
    Figure(
        "Throughput",
        "throughput.bytes_per_s",
        text.rate_bytes,
        "higher",
        "Data read and written per second of the drive's time; 1 MB is 1,000,000 bytes.",
        cleaning=True,
    ),
    Figure(
        "Mean response",
        "response_time_ns.all.mean",
        text.time_ns,
        "lower",
        "Mean time from the arrival of a request to its completion, queueing included.",
        cleaning=True,
    ),
    Figure(
        "99 % response",
        "response_time_ns.all.p99",
        text.time_ns,
        "lower",
        "99th percentile of the response time: 99 of 100 requests took no longer.",
        cleaning=True,
    ),
    Figure(
        "Blocks erased",
        "flash.erases.total",
        text.count,
        "lower",
        "Erases while the run was measured, whatever the cause.",
    ),
    Figure(
        "Cleaning efficiency",
        "gc.efficiency",
        text.share,
        "higher",
        "Mean share of a victim's pages that were invalid: what cleaning a block gains.",
        cleaning=True,
    ),
    Figure(
        "Most erases of a block",
        "wear.erases_per_block.max",
        text.count,
        "lower",
        "Erases so far of the most erased block.",
    ),
)

_CAUSES = ("host", "gc", "merge", "translation", "padding", "wear", "total")

_OPERATIONS = (("reads", "Flash reads"), ("programs", "Flash programs"), ("erases", "Flash erases"))

_TIMES = (("response_time_ns", "Response time"), ("service_time_ns", "Service time"))

_QUANTILES = (
    ("mean", "mean"),
    ("stdev", "standard deviation"),
    ("p50", "50 %"),
    ("p90", "90 %"),
    ("p99", "99 %"),
    ("p99_9", "99.9 %"),
    ("max", "largest"),
)

ALL_FIGURES = (
    Figure("Requests", "measured.requests"),
    Figure("Duration", "measured.duration_ns", text.time_ns),
    Figure("Requests before measuring", "measured.warmup_requests"),
    Figure("Host pages read", "host.pages_read"),
    Figure("Host pages written", "host.pages_written"),
    Figure("Host pages trimmed", "host.pages_trimmed"),
    Figure("Host bytes written", "requests.bytes_written", text.size_bytes),
    Figure("Write amplification", "write_amplification", text.significant, "lower"),
    Figure("Write amplification by bytes", "write_amplification_bytes", text.significant, "lower"),
    Figure("IOPS", "throughput.iops", text.count, "higher"),
    Figure("Throughput", "throughput.bytes_per_s", text.rate_bytes, "higher"),
    *(
        Figure(f"{name}, {kind}: {what}", f"{path}.{kind}.{key}", text.time_ns, "lower")
        for path, name in _TIMES
        for kind in ("all", "read", "write")
        for key, what in _QUANTILES
    ),
    *(
        Figure(f"{name}: {cause}", f"flash.{path}.{cause}", text.count, "lower")
        for path, name in _OPERATIONS
        for cause in _CAUSES
    ),
    Figure("Reads of spare areas", "flash.oob_reads.total"),
    Figure("Reads of pages never written", "flash.reads_unmapped"),
    Figure("Blocks cleaned", "gc.collections", text.count, "lower"),
    Figure("Cleaning efficiency", "gc.efficiency", text.share, "higher"),
    Figure("Block utilization", "gc.block_utilization", text.share, "higher"),
    Figure("Merges: switch", "merges.switch"),
    Figure("Merges: partial", "merges.partial"),
    Figure("Merges: full", "merges.full", text.count, "lower"),
    Figure("Mapping cache: look-ups", "mapping_cache.lookups"),
    Figure("Mapping cache: hit ratio", "mapping_cache.hit_ratio", text.share, "higher"),
    Figure("Mapping cache: dirty evictions", "mapping_cache.dirty_evictions", text.count, "lower"),
    Figure("Mapping cache: entries prefetched", "mapping_cache.prefetched"),
    Figure(
        "Mapping cache: share of them used",
        "mapping_cache.prefetch_accuracy",
        text.share,
        "higher",
    ),
    Figure("Buffer: write hits", "buffer.write_hits", text.count, "higher"),
    Figure("Buffer: share of writes that hit", "buffer.write_hit_ratio", text.share, "higher"),
    Figure("Buffer: read hits", "buffer.read_hits", text.count, "higher"),
    Figure("Buffer: share of reads that hit", "buffer.read_hit_ratio", text.share, "higher"),
    Figure("Buffer: destages", "buffer.destages", text.count, "lower"),
    Figure("Buffer: destages of blocks", "buffer.block_destages", text.count),
    Figure("Buffer: pages per destage", "buffer.pages_per_destage_mean", text.significant),
    Figure("Buffer: pages padded", "buffer.pages_padded", text.count, "lower"),
    Figure("Buffer: clean pages dropped", "buffer.pages_dropped", text.count),
    Figure("Buffer: flushes that wrote", "buffer.flushes", text.count),
    Figure("Buffer: pages forced to flash", "buffer.pages_forced", text.count),
    Figure("Controller: write buffer hits", "controller.write_buffer_hits", text.count, "higher"),
    Figure("Controller: bytes through the write buffer", "controller.write_buffer_bytes"),
    Figure("Controller: bytes past the write buffer", "controller.write_through_bytes"),
    Figure("Controller: flushes", "controller.flushes", text.count, "lower"),
    Figure("Controller: flushes forced", "controller.flushes_forced", text.count, "lower"),
    Figure("Controller: read buffer hits", "controller.read_buffer_hits", text.count, "higher"),
    Figure("Controller: bytes read ahead", "controller.prefetched_bytes"),
    Figure("Controller: bytes read ahead and used", "controller.prefetched_used_bytes"),
    Figure("Controller: turns between reading and writing", "controller.turnarounds"),
    Figure("Chips: reads of arrays", "chips.array_reads", text.count, "lower"),
    Figure("Chips: programs of arrays", "chips.array_programs", text.count, "lower"),
    Figure("Chips: programs of parity", "chips.parity_programs"),
    Figure("Chips: erases of arrays", "chips.array_erases", text.count, "lower"),
    Figure("Chips: copybacks", "chips.copybacks"),
    Figure("Chips: suspensions of programs", "chips.programs_suspended"),
    Figure("Chips: suspensions of erases", "chips.erases_suspended"),
    Figure("Chips: cached programs", "chips.cached_programs"),
    Figure("Chips: cached reads", "chips.cached_reads"),
    Figure("Chips: reads from RAM", "chips.ram_reads"),
    Figure("Chips: waits for power", "chips.power_waits", text.count, "lower"),
    Figure("Chips: reads to rebuild from parity", "chips.rebuilding_reads", text.count, "lower"),
    Figure("Bit errors: reads retried", "errors.reads_retried", text.count, "lower"),
    Figure("Bit errors: retries", "errors.retries", text.count, "lower"),
    Figure("Bit errors: reads decoded softly", "errors.reads_soft", text.count, "lower"),
    Figure("Bit errors: reads not corrected", "errors.reads_uncorrectable", text.count, "lower"),
    Figure("Bit errors: blocks written again", "errors.blocks_rewritten", text.count, "lower"),
    Figure("Energy: joules", "energy.total_j", text.significant, "lower"),
    Figure("Energy: mean watts", "energy.mean_w", text.significant, "lower"),
    Figure("Energy: millijoules per MB of the host", "energy.mj_per_mb", text.significant, "lower"),
    Figure("Memory for translation", "scheme.ram_bytes", text.size_bytes, "lower"),
    Figure("Erases per block: least", "wear.erases_per_block.min"),
    Figure("Erases per block: mean", "wear.erases_per_block.mean", text.count, "lower"),
    Figure("Erases per block: most", "wear.erases_per_block.max", text.count, "lower"),
    Figure(
        "Erases per block: standard deviation", "wear.erases_per_block.stdev", text.count, "lower"
    ),
    Figure("Blocks worn out", "wear.blocks_worn_out", text.count, "lower"),
    Figure("Endurance efficiency", "wear.endurance_efficiency", text.share, "higher"),
    Figure("Logical size", "drive.logical_bytes", text.size_bytes),
    Figure("Simulator: CPU time", "run.cpu_s", text.seconds),
    Figure("Simulator: requests per CPU second", "run.requests_per_cpu_s"),
    Figure("Simulator: peak memory", "run.peak_rss_bytes", text.size_bytes),
)


def cells(figure: Figure, runs: Sequence[RunView]) -> list[Cell]:
    """The figure of each run; the best are marked where one run is better than another.

    A run that is still changing can't be the best in what cleaning decides.
    """
    values = [number(run.json, figure.path) for run in runs]
    lasts = [not (figure.cleaning and unsettled(run)) for run in runs]
    known = [value for value in values if value is not None]
    fit = [value for value, each in zip(values, lasts, strict=True) if each and value is not None]
    best = None
    if figure.better and fit and len(known) > 1 and min(known) != max(known):
        best = min(fit) if figure.better == "lower" else max(fit)
    return [
        Cell(text.ABSENT)
        if value is None
        else Cell(figure.show(value), value, each and best is not None and value == best)
        for value, each in zip(values, lasts, strict=True)
    ]


def key_figures(runs: Sequence[RunView]) -> Table:
    """A row a run; figures that no run has are left out."""
    shown = [(figure, cells(figure, runs)) for figure in KEY_FIGURES if figure.is_shown(runs)]
    rows = [
        [Cell(run.label, run.label), *(column[i] for _, column in shown)]
        for i, run in enumerate(runs)
    ]
    header = ["Run", *(figure.name for figure, _ in shown)]
    if any(settled_word(run) is not None for run in runs):
        # Beside the name, where a narrow page shows it.
        header.insert(1, "Settled")
        for row, run in zip(rows, runs, strict=True):
            word = settled_word(run)
            row.insert(
                1, Cell(text.ABSENT) if word is None else Cell(word[0], word[0], tone=word[1])
            )
    return Table(header, rows)


# What tables say of a verdict, and its tone.
VERDICTS: dict[str, tuple[str, Tone]] = {
    "settled": ("settled", "good"),
    "transient": ("transient", "warn"),
    "too-short": ("measured too briefly", "warn"),
    "none": ("nothing written", "plain"),
    "never-cleaned": ("no cleaning", "warn"),
}


def settled_word(run: RunView) -> tuple[str, Tone] | None:
    """Whether a run's write amplification had settled, and its tone; None where the run does not say."""
    return VERDICTS.get(str(dig(run.json, "settled.verdict")))


def unsettled(run: RunView) -> bool:
    """Whether a run's write amplification had not settled, or was measured too briefly to be known."""
    return dig(run.json, "settled.verdict") in ("transient", "too-short")


def all_figures(runs: Sequence[RunView]) -> Table:
    """A row a figure, a column a run; figures that no run has, or all 0, are left out."""
    extras = {
        key
        for run in runs
        for key, value in (dig(run.json, "scheme.extra") or {}).items()
        if isinstance(value, int | float)
    }
    more = [
        Figure(f"Scheme: {key.replace('_', ' ')}", f"scheme.extra.{key}") for key in sorted(extras)
    ]
    deepest = max((len(dig(run.json, "host_layers") or []) for run in runs), default=0)
    more += [figure for place in range(deepest) for figure in _layer_figures(place)]
    named = ((figure.name, cells(figure, runs)) for figure in (*ALL_FIGURES, *more))
    rows = [[Cell(name, name), *row] for name, row in named if any(cell.value for cell in row)]
    return Table(["Figure", *_headings(runs)], rows)


def _layer_figures(place: int) -> list[Figure]:
    """The figures of the scheduler at a place, counted from the host down."""
    path, name = f"host_layers.{place}", f"Host, scheduler {place + 1}"
    figures = [
        Figure(f"{name}: requests taken", f"{path}.requests"),
        Figure(f"{name}: back merges", f"{path}.back_merges"),
        Figure(f"{name}: front merges", f"{path}.front_merges"),
        Figure(f"{name}: requests joined", f"{path}.joined"),
        Figure(f"{name}: held for order", f"{path}.held_for_order"),
        Figure(f"{name}: held for room", f"{path}.held_for_room"),
    ]
    for kind, waits in (("reads", "read_waits"), ("writes", "write_waits")):
        figures += [
            Figure(f"{name}: {kind} handed on", f"{path}.{kind}.requests"),
            Figure(f"{name}: mean size of {kind}", f"{path}.{kind}.bytes_mean", text.size_bytes),
            Figure(f"{name}: {kind} aligned at their start", f"{path}.{kind}.aligned_at_start"),
            Figure(f"{name}: {kind} aligned at both ends", f"{path}.{kind}.aligned_at_both_ends"),
            Figure(f"{name}: {kind} within the buffer", f"{path}.{kind}.within_buffer"),
            Figure(f"{name}: {kind} above the buffer", f"{path}.{kind}.above_buffer"),
            Figure(f"{name}: mean wait of {kind}", f"{path}.{waits}.mean_ns", text.time_ns),
            Figure(f"{name}: longest wait of {kind}", f"{path}.{waits}.longest_ns", text.time_ns),
        ]
    return figures


def _headings(runs: Sequence[RunView]) -> list[str]:
    return [run.label for run in runs] if len(runs) > 1 else ["Value"]


def configuration(runs: Sequence[RunView]) -> tuple[Table, list[str]]:
    """All settings, a column a run, and the names of the settings in which the runs differ."""
    columns = [text.flatten(settings(run)) for run in runs]
    keys = list(dict.fromkeys(key for column in columns for key in column))
    rows = []
    differ = []
    for key in keys:
        shown = [column.get(key, text.ABSENT) for column in columns]
        if len(set(shown)) > 1:
            differ.append(key)
        rows.append([Cell(key, key), *(Cell(value, value) for value in shown)])
    return Table(["Setting", *_headings(runs)], rows), differ


def settings(run: RunView) -> dict[str, object]:
    """What it takes to run it again, as one nested mapping."""
    config = dig(run.json, "config")
    return {
        "workload": dig(run.json, "workload"),
        "seed": str(dig(run.json, "seed")),
        "precondition": dig(run.json, "precondition.spec"),
        "pace": dig(run.json, "pace"),
        "warm-up requests": dig(run.json, "measured.warmup_requests"),
        "version": dig(run.json, "version"),
        **(config if isinstance(config, dict) else {}),
    }


def spread(values: Sequence[float]) -> tuple[float, float, float] | None:
    """Least, median and largest of the values that are numbers."""
    known = sorted(value for value in values if not math.isnan(value))
    return (known[0], known[len(known) // 2], known[-1]) if known else None
