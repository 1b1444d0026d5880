"""The interval between long writes, and random writes of that size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from flashwright.drive.findings import Finding, Mark, Plot, Series, unknown
from flashwright.probing.probes.clustered_block.block_grid import TIMES, grid_of, restore_by_grid
from flashwright.probing.probes.shared import verdicts
from flashwright.probing.probes.shared.buffers import takes_writes
from flashwright.probing.probes.shared.overwriting import (
    LEAST_BYTES,
    Period,
    fill_once,
    fill_twice,
    period,
    sequential,
    synced_size,
    write_and_flush,
)
from flashwright.target.arrays import KIB, MIB, Array, Ints
from flashwright.target.question import UNTESTED, Context, Cost, kib
from flashwright.target.target import Target

__all__ = ["ClusteredBlock"]


# Bytes of a window of flushed writes in order. Source: 4 times the largest clustered block of Kim 2011 (Figure 5 ends
# at 128 MiB).
_WINDOW = 512 * MIB
# The largest window, bytes. Chosen: minutes of writes.
_WINDOW_MOST = 4 << 30
# Periods in the window that decides. Chosen: few enough for blocks of 128 MiB, enough to distinguish pages of 4 KiB.
_PERIODS = 16
# Sizes of writes, KiB, where the clustered page is not known: those first that most pages divide, which are clusters of
# channels and dies by ones, twos, fours, fives and eights of the pages on the market (4, 5, 6, 9 and 25 times powers of
# two).
_SIZES_KIB = (
    144,
    96,
    192,
    240,
    64,
    320,
    128,
    160,
    256,
    120,
    384,
    180,
    288,
    200,
    400,
    72,
    80,
    48,
    512,
    640,
)
# Sizes that must agree. Chosen: four within half a per cent each do not agree by chance.
_AGREEING = 4
# About how many of the sizes it takes, for the cost. Measured on the drives that we drew.
_SIZES_USUAL = 8
# Sizes that quick mode tries. Chosen: each writes the drive more than twice.
_SIZES_QUICK = 10
# The step of sizes where the page is not known, bytes. Derived: blocks hold sixteens of pages of 2 KiB or more.
_BLOCK_STEP = 32 * KIB
# Intervals agree within this share. Derived: as far as 16 periods show.
_EQUAL_WITHIN = 0.005
# Random writes are as fast as those in order within this share (algorithm 8.2, eps).
_EPS = 0.05
# Standard errors of a one-sided bound of 95 % (the same).
_Z = 1.645
# Speed of random writes of the size that was found, over that in order, below which they contradict it. Chosen: higher
# ones may meet noise, logs, or borders that they do not share.
_CONTRADICTS = 0.85
# Periods of the control on a drive that was never full. Chosen: as many as decide.
_CONTROL = 16
# How many times as long as those of the control the long writes of a drive that cleans are. Chosen: beyond the noise of
# medians.
_LONGER = 1.15
# Repetitions of a bandwidth (algorithm 8.2: five at least).
_REPEATS = 5


@dataclass(frozen=True, eq=False)
class _Interval:
    """What sequential writing found: the size, how many windows agree on it, and the last window."""

    size_bytes: int
    agree: int
    windows: int
    error_bytes: float
    write_bytes: int
    page_bytes: int
    latencies_ns: Array
    first_bytes: int


@dataclass(frozen=True)
class _Ratio:
    """Bandwidth of random writes over that of writes in order, at one size."""

    size_bytes: int
    values: Array

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def converged(self) -> bool:
        """As algorithm 8.2 has it: the mean, or its lower bound, is no more than 5 % below 1."""
        return self.mean >= 1 - _EPS

    @property
    def below(self) -> bool:
        """Whether even the upper bound is more than 5 % below 1."""
        error = float(self.values.std(ddof=1)) / np.sqrt(self.values.size)
        return bool(self.mean + _Z * error < 1 - _EPS)


class ClusteredBlock:
    """The unit of erasing."""

    NAME: ClassVar[str] = "clustered-block"
    ABOUT: ClassVar[str] = (
        "what is erased together: the bytes between the long writes of a drive that is overwritten in order, and the "
        "size from which random writes are as fast as sequential ones (Kim 2011, Procedure 2)"
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = ("clustered-block",)

    def cost(self, context: Context) -> Cost:
        """Two fills, some windows, a fill as control, and for each size compared a fill and three quarters of one."""
        capacity = context.target.capacity_bytes
        windows = (4 + _windows(context)) * min(2 * _WINDOW, capacity)
        if context.size("clustered-page") is None:
            windows += _SIZES_USUAL * (2 * capacity + 3 * min(_WINDOW, capacity))
        compared = len(_parts(context)) * (1.75 + 0.25) * capacity
        # Where random writes contradict the size, a fill and up to 1.3 more for each multiple on the drive's own grid.
        written = int((3 + (len(TIMES) + 1) * 2.3) * capacity + windows + compared)
        return Cost(0, written, 2 * written // synced_size(context))

    def run(self, context: Context) -> list[Finding]:
        """Find the interval, then ask random writes whether they agree."""
        target = context.target
        if target.capacity_bytes < LEAST_BYTES:
            why = f"the target has {kib(target.capacity_bytes)}, less than {kib(LEAST_BYTES)}: it would hold few blocks"
            return [unknown("clustered-block", why, "B")]
        write_bytes = synced_size(context)
        fill_twice(target, write_bytes)
        context.progress(0.2)
        walk = _Walk(context)
        page = context.size("clustered-page")
        interval = walk.search() if page is None else walk.measure(write_bytes, page)
        context.progress(0.4)
        if interval is None:
            plot = walk.plot(None)
            why = (
                "writes in order meet no long ones that recur evenly and alike at all sizes: erasing is hidden, what "
                "is erased together is too large for this target, or the clustered page is not what it seemed to be"
            )
            return [unknown("clustered-block", why, "B", plots=(plot,) if plot else ())]
        longer = _longer(context, interval)
        logs = context.known.get("mapping")
        merges = logs is not None and logs.value == "log-block"
        # Log blocks are merged and erased on drives that were never full too.
        if longer < _LONGER and not merges:
            plot = walk.plot(interval)
            why = (
                f"a long write comes every {kib(interval.size_bytes)} of writes in order, but it is only {longer:.2f} "
                "times as long as on a drive that was never full, where nothing is erased: rows of pages that are "
                "programmed together, or pieces of a map, look the same"
            )
            plots = (plot,) if plot else ()
            return [unknown("clustered-block", why + ".", "B", plots, longer_than_unfilled=longer)]
        ratios = []
        parts = _parts(context)
        for done, part in enumerate(parts):
            ratios.append(_compare(context, interval, part))
            context.progress(0.4 + 0.6 * (done + 1) / len(parts))
        found = _decide(interval, ratios, walk.plot(interval), longer, merges)
        contradicted = found.verdict == "unknown" and found.figures.get("contradicted")
        # RAM that no flush empties makes other writes long than those that begin a block: no grid shows. And an SLC
        # cache erases blocks of its own, which hold less.
        rng = context.rng("clustered-block.ram")
        cached = context.found_or_open("slc-cache")
        if contradicted and not cached and not takes_writes(target, interval.write_bytes, rng):
            grid = grid_of(context, interval.size_bytes, interval.write_bytes)
            if grid is not None and grid.bears_out:
                share = interval.agree / interval.windows
                return [restore_by_grid(found, interval.error_bytes, share, grid)]
        return [found]


def _windows(context: Context) -> int:
    return 3 if context.mode == "quick" else 5


def _parts(context: Context) -> tuple[float, ...]:
    """Sizes to compare, as parts of the size that was found."""
    return (0.5, 1.0) if context.mode == "quick" else (0.25, 0.5, 0.75, 1.0, 2.0)


class _Walk:
    """Writes in order over a full drive, each flushed, on and on."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._at = 0
        self._last: tuple[Array, int, int] | None = None

    def _window(self, size_bytes: int, count: int) -> Array:
        target = self._context.target
        first = -(-self._at // size_bytes)
        offsets = sequential(target, first, count, size_bytes)
        latencies = write_and_flush(target, offsets, size_bytes)
        self._at = int(offsets[-1]) + size_bytes
        self._last = (latencies, size_bytes, int(offsets[0]))
        return latencies

    def _period(self, size_bytes: int, most_bytes: int) -> tuple[Period, int] | None:
        """A period that a window twice as long confirms, and the writes of the latter.

        A short window may hold few periods, and then what recurs within one is all that it shows.
        """
        before: Period | None = None
        window = min(_WINDOW, self._context.target.capacity_bytes // 2)
        while window <= most_bytes:
            count = window // size_bytes
            now = period(self._window(size_bytes, count))
            if (
                before is not None
                and now is not None
                and abs(now.writes - before.writes) <= before.error_writes + now.error_writes
                and now.writes * _PERIODS <= count
            ):
                return now, count
            before = now
            window *= 2
        return None

    def measure(self, write_bytes: int, page_bytes: int | None) -> _Interval | None:
        """The bytes of a period, by windows that each decide alone; None if most disagree."""
        most = max(min(_WINDOW_MOST, 2 * self._context.target.capacity_bytes), _WINDOW)
        found = self._period(write_bytes, most)
        if found is None:
            return None
        known, page_bytes = page_bytes is not None, page_bytes or _BLOCK_STEP
        sizes, errors = [], []
        count = max(int(_PERIODS * 1.5 * found[0].writes), 256)
        for _ in range(_windows(self._context)):
            again = period(self._window(write_bytes, count))
            sizes.append(0 if again is None else _whole(again.writes * write_bytes, page_bytes))
            errors.append(0.0 if again is None else again.error_writes * write_bytes)
        size = _whole(found[0].writes * write_bytes, page_bytes)
        agree = sizes.count(size)
        if size == 0 or agree * 2 <= len(sizes):
            return None
        # Writes of whole pages have the same interval, however long they are. Where the page is not what it was taken
        # for, longer ones have a longer one, since they write fewer pages in part.
        longer = self._period(4 * write_bytes, most) if known and 24 * write_bytes < size else None
        if longer is not None:
            ratio = longer[0].writes * 4 * write_bytes / size
            if ratio > 1.02 and not _multiple(ratio):
                return None
        assert self._last is not None
        if longer is not None:
            self._window(write_bytes, count)
        latencies, _, first = self._last
        return _Interval(
            size, agree, len(sizes), max(errors), write_bytes, page_bytes, latencies, first
        )

    def search(self) -> _Interval | None:
        """The interval where the clustered page is not known, by writes of several sizes.

        Writes pay for every page that they touch, so that those of whole pages agree on the interval and have the
        longest; others fall short, each by as much as its ends waste. Each size has a drive of its own, filled by it:
        what others leave behind has to be moved.
        """
        target = self._context.target
        sizes: list[int] = []
        intervals: list[float] = []
        tried = _SIZES_QUICK if self._context.mode == "quick" else len(_SIZES_KIB)
        for size_kib in _SIZES_KIB[:tried]:
            size = self._context.up(size_kib * KIB)
            fill_twice(target, size)
            self._at = 0
            found = self._period(size, max(2 * _WINDOW, target.capacity_bytes // 2))
            if found is None:
                continue
            sizes.append(size)
            intervals.append(found[0].writes * size)
            best = _agreement(np.array(intervals))
            if best is not None:
                fill_twice(target, sizes[best])
                self._at = 0
                return self.measure(sizes[best], None)
        return None

    def plot(self, interval: _Interval | None) -> Plot | None:
        """The latencies of the last window, up to 12 periods of it."""
        if self._last is None:
            return None
        latencies, size, first = self._last
        marks: tuple[Mark, ...] = ()
        if interval is not None:
            latencies, size, first = (
                interval.latencies_ns,
                interval.write_bytes,
                interval.first_bytes,
            )
            count = int(12 * interval.size_bytes / size)
            latencies = latencies[:count]
            start = first + int(np.argmax(latencies)) * size
            marks = (
                Mark(float(start), "long write"),
                Mark(float(start + interval.size_bytes), f"{kib(interval.size_bytes)} on"),
            )
        else:
            latencies = latencies[:4096]
        x = first + np.arange(latencies.size, dtype=np.float64) * size
        raw = Series("write and flush", x, latencies)
        title = "Writing in order on a full drive"
        return Plot(title, "position [B]", "latency [ns]", (raw,), marks, y_log=True)


def _agreement(intervals: Array) -> int | None:
    """The first of enough intervals that agree, unless others are longer or fit in three times and more."""
    agreeing = np.abs(intervals[:, None] / intervals - 1) <= _EQUAL_WITHIN
    best = int(np.argmax(agreeing.sum(axis=1)))
    value = float(intervals[best])
    # Where several of a group of blocks are cleaned at a time both show, and it is not known which is which.
    parts = sum(_multiple(value / other) for other in intervals if value > 2.5 * other)
    longer = any(
        other > value * (1 + _EQUAL_WITHIN) and not _multiple(other / value) for other in intervals
    )
    if agreeing[best].sum() < _AGREEING or parts > 1 or longer:
        return None
    return int(np.argmax(agreeing[best]))


def _multiple(ratio: float) -> bool:
    """Whether an interval is a whole number of others: blocks that are cleaned by groups show both."""
    return ratio > 0.99 and abs(ratio / max(round(ratio), 1) - 1) <= _EQUAL_WITHIN


def _whole(size_bytes: float, page_bytes: int) -> int:
    """The nearest multiple of the page; 0 if none is near enough."""
    pages = round(size_bytes / page_bytes)
    return pages * page_bytes if abs(size_bytes / page_bytes - pages) <= 0.3 else 0


def _compare(context: Context, interval: _Interval, part: float) -> _Ratio:
    """Procedure 2 at one size: random over sequential bandwidth, each on a drive that cleans."""
    target, page = context.target, interval.page_bytes
    size = max(round(interval.size_bytes * part / page), 1) * page
    rng = context.rng(f"clustered-block.{part}")
    slots = target.capacity_bytes // size
    # Half a capacity uses up what spare space drives of 2011 to today have: 7 to 28 %, rarely more.
    settle = max(target.capacity_bytes // 2 // size, 1)
    count = max(target.capacity_bytes // 4 // size // _REPEATS, 4)
    target.purge()
    fill_once(target, interval.write_bytes)
    _write(target, sequential(target, 0, settle, size), size, interval.write_bytes)
    walk = [
        _write(
            target, sequential(target, settle + at * count, count, size), size, interval.write_bytes
        )
        for at in range(_REPEATS)
    ]
    _write(target, rng.integers(0, slots, settle) * size, size, interval.write_bytes)
    jumps = [
        _write(target, rng.integers(0, slots, count) * size, size, interval.write_bytes)
        for _ in range(_REPEATS)
    ]
    return _Ratio(size, np.array(jumps) / float(np.median(walk)))


def _write(target: Target, offsets: Ints, size_bytes: int, piece_bytes: int) -> float:
    """Writes of a size, each in pieces one after the other and then flushed; bytes per second.

    A drive whose buffer is smaller takes large writes apart where that is full, not where pages end, and systems cut
    them too; in pieces of whole pages they come as they are meant.
    """
    pieces = -(-size_bytes // piece_bytes)
    begins = np.arange(pieces) * piece_bytes
    places = offsets[:, None] + np.append(begins, 0)
    lengths = np.append(np.minimum(piece_bytes, size_bytes - begins), 0)
    kinds = np.append(np.ones(pieces, np.uint8), np.uint8(3))
    times = target.play(
        np.tile(kinds, offsets.size), places.ravel(), np.tile(lengths, offsets.size)
    )
    return times.rate(offsets.size * size_bytes)


def _longer(context: Context, interval: _Interval) -> float:
    """How much longer the long writes are than those at the end of the first fill, when nothing was erased yet."""
    target, size = context.target, interval.write_bytes
    slots = target.capacity_bytes // size
    count = min(_CONTROL * interval.size_bytes // size, slots // 2)
    target.purge()
    fill_once(target, size, (slots - count) * size)
    control = write_and_flush(target, sequential(target, slots - count, count, size), size)

    def top(latencies: Array) -> float:
        periods = max(latencies.size * size // interval.size_bytes, 1)
        return float(np.median(np.sort(latencies)[-periods:]))

    return top(interval.latencies_ns) / top(control)


def _decide(
    interval: _Interval, ratios: list[_Ratio], walk: Plot | None, longer: float, merges: bool
) -> Finding:
    """The interval gives the value, since it is what is erased; random writes confirm or contradict it."""
    size = interval.size_bytes
    smaller = [ratio for ratio in ratios if ratio.size_bytes < size]
    at = [ratio for ratio in ratios if ratio.size_bytes >= size]
    agrees = all(ratio.converged for ratio in at) and all(ratio.below for ratio in smaller)
    share = interval.agree / interval.windows
    seen = (
        f"{interval.agree} of {interval.windows} windows of writes in order show a long write every {kib(size)}, "
        f"{longer:.1f} times as long as any before the drive was full"
    )
    text = ", ".join(f"{ratio.mean:.2f} at {kib(ratio.size_bytes)}" for ratio in ratios)
    if agrees:
        why = f"{seen}; random writes are as fast as sequential ones at that size and not below ({text} of them)"
    else:
        # Ours: what recurs is what is erased; random writes also feel spare space, logs and how units take turns.
        share *= UNTESTED
        why = (
            f"{seen}; random writes do not show the same size ({text} of sequential ones), which spare space and "
            "logs may hide: the interval decides"
        )
    if longer < _LONGER:
        share = min(share, UNTESTED)
    contradicted = any(ratio.mean < _CONTRADICTS and ratio.below for ratio in at)
    # Where logs take writes, those of half a block may be as fast.
    half = not merges and any(ratio.converged for ratio in smaller)
    x = np.array([ratio.size_bytes for ratio in ratios], np.float64)
    raw = Series(
        "repetitions",
        np.repeat(x, _REPEATS),
        np.concatenate([ratio.values for ratio in ratios]),
    )
    mean = Series("mean", x, np.array([ratio.mean for ratio in ratios]), "line")
    curve = Plot(
        "Random writes against sequential ones",
        "request size [B]",
        "bandwidth ratio",
        (raw, mean),
        (Mark(float(size), kib(size)),),
        x_log=True,
    )
    plots = (walk, curve) if walk else (curve,)
    figures = {
        **{f"ratio_at_{ratio.size_bytes}_bytes": ratio.mean for ratio in ratios},
        "windows_agreeing": float(interval.agree),
        "windows": float(interval.windows),
        "longer_than_unfilled": longer,
    }
    if half:
        why = (
            f"{seen}; but random writes of less are as fast as those in order ({text} of them), so what is erased "
            "together may be smaller"
        )
        return unknown("clustered-block", why + ".", "B", plots, **figures)
    if contradicted:
        why = (
            f"{seen}; but random writes of that size are slower than those in order ({text} of them), so it is no "
            "whole of what is erased together: one of several units that clean in turn looks the same"
        )
        return unknown("clustered-block", why + ".", "B", plots, **figures, contradicted=1.0)
    return verdicts.found(
        "clustered-block",
        size,
        "B",
        (size - interval.error_bytes, size + interval.error_bytes),
        share,
        why + ".",
        plots,
        figures,
    )
