"""Whether a write buffer is looked up by address, or only empties in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from flashwright.drive.findings import Finding, Plot, Series, unknown
from flashwright.probing.probes.shared import verdicts
from flashwright.probing.probes.shared.buffers import SMALLEST_BYTES, buffer_region
from flashwright.probing.probes.shared.edges import center
from flashwright.target.arrays import Array
from flashwright.target.question import Context, Cost, kib
from flashwright.target.target import FILL_BYTES, Target

__all__ = ["BufferKind"]


# Writes that fill the buffer once, at least. Chosen: more than twice the chips that write at the same time in drives
# that we know of (40), since what is on its way to flash already is replaced by no cache.
_LEAST_WRITES = 100
# The same at most. Chosen: a run takes seconds on most drives.
_MOST_WRITES = 4096
# A run writes this many buffers full. Chosen: in its last third, which counts, a buffer that keeps all of it has been
# full for long.
_FILLS = 2
# The first writes of a run, which find room.
_FIRST = 16
# In times of a write that finds room: above this, writes wait for flash. Chosen: beyond the noise of means.
_WAITS = 1.5
# Below this they do not wait. Chosen: a gap to the above, in which there is no verdict.
_FREE = 1.25
# Writes at separate places must wait for so long before it counts that those at two places do not. Chosen: clearer than
# the above.
_OTHERS_WAIT = 2.0


@dataclass(frozen=True, eq=False)
class _Runs:
    """Runs of one size of writes.

    Attributes
    ----------
    size_bytes, writes : int
        Of each write, and of how many a run has.
    turns, distinct : array of runs
        Mean time of the last third, in times of a write that finds room: written in turns at two places, and each at
        a place of its own.
    turns_ns, distinct_ns : array
        Latencies of the last run of each, nanoseconds.
    """

    size_bytes: int
    writes: int
    turns: Array
    distinct: Array
    turns_ns: Array
    distinct_ns: Array


class BufferKind:
    """Long runs of writes alternating between two places, and at separate places.

    Source: Kim 2011, section 4.3; algorithms 8.6, last sentence. The paper writes X, others, and X again, and looks at
    the last write. A buffer that empties in the background has room for it now and then either way. So X, Y, X, Y, ...
    go on here until a buffer that keeps each of them is full and every write waits for flash; a cache replaces them and
    never fills.
    """

    NAME: ClassVar[str] = "buffer-kind"
    ABOUT: ClassVar[str] = (
        "Whether the write buffer replaces data that is written again (a cache) or writes everything out in order (a "
        "buffer): does it fill up when two places are written alternately (Kim 2011, section 4.3)?"
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = ("buffer-kind",)

    def cost(self, context: Context) -> Cost:
        """About what it will ask of the drive, at most."""
        buffer = context.size("write-buffer") or 1 << 20
        sizes = _sizes(context, buffer)
        runs = 2 * _trials(context)
        return Cost(
            bytes_written=buffer_region(context.target) + len(sizes) * runs * _FILLS * buffer,
            requests=sum(_FILLS * buffer // size + 2 for size in sizes) * runs
            + buffer_region(context.target) // FILL_BYTES,
        )

    def run(self, context: Context) -> list[Finding]:
        """Ask, and decide."""
        known = context.known.get("write-buffer")
        if known is not None and known.verdict == "absent":
            why = "no write buffer"
            return [verdicts.absent("buffer-kind", "", known.confidence, why)]
        buffer = context.size("write-buffer")
        if buffer is None:
            why = "the size of the write buffer is not known"
            return [unknown("buffer-kind", why)]
        target, rng = context.target, context.rng(self.NAME)
        sizes = _sizes(context, buffer)
        if not sizes or 2 * _FILLS * buffer > buffer_region(target):
            why = f"no runs of writes of whole blocks fit {kib(buffer)} of buffer and the target"
            return [unknown("buffer-kind", why)]
        target.fill(end_bytes=buffer_region(target))
        asked = []
        for at, size in enumerate(sizes):
            runs = _ask(target, size, _FILLS * buffer // size, _trials(context), rng)
            asked.append(runs)
            context.progress((at + 1) / len(sizes))
            finding = _decide(runs, rng)
            if finding.verdict == "found":
                return [finding]
        # The one in which flash fell behind most says best why it is open.
        return [_decide(max(asked, key=lambda runs: float(np.median(runs.distinct))), rng)]


def _sizes(context: Context, buffer_bytes: int) -> list[int]:
    """Sizes of writes, large ones first: a few of them fill the buffer. Small ones cost flash more for their bytes."""
    sizes = [context.target.block_bytes, *(context.up(SMALLEST_BYTES * by) for by in (1, 4))]
    sizes.append(context.down(buffer_bytes / (1.2 * _LEAST_WRITES)))
    fits = (size for size in sizes if _LEAST_WRITES <= buffer_bytes // size <= _MOST_WRITES)
    return sorted(set(fits), reverse=True)


def _trials(context: Context) -> int:
    return 3 if context.mode == "quick" else 6


def _ask(target: Target, size: int, writes: int, trials: int, rng: np.random.Generator) -> _Runs:
    # Places start where larger units of any kind are likely to start as well.
    start = 1 << 20
    while start < writes * size:
        start *= 2
    start = min(start, buffer_region(target))
    arms = np.arange(writes) % 2 * size, np.arange(writes) * size
    kinds = np.append(np.ones(writes, np.uint8), 3)
    tails, free = np.empty((2, trials)), []
    last = [np.empty(0), np.empty(0)]
    target.flush()
    for at in range(trials):
        for arm in rng.permutation(2):
            base = int(rng.integers(0, buffer_region(target) // start)) * start
            latency = target.play(kinds, np.append(base + arms[arm], 0), size).latency_ns[:-1]
            latency = np.maximum(latency, 1.0)
            free.append(latency[:_FIRST])
            tails[arm, at] = latency[-(writes // 3) :].mean()
            last[arm] = latency
    tails /= center(np.concatenate(free))[0]
    return _Runs(size, writes, tails[0], tails[1], *last)


def _decide(runs: _Runs, rng: np.random.Generator) -> Finding:
    x = np.arange(runs.writes, dtype=float)
    series = (
        Series("separate places", x, runs.distinct_ns),
        Series("two places alternately", x, runs.turns_ns),
    )
    title = f"Writes of {kib(runs.size_bytes)} without a flush"
    plots = (Plot(title, "write of the run", "latency [ns]", series, (), False, True),)
    count = runs.turns.size
    draws = rng.integers(0, count, (2, 500, count))
    turns = np.median(runs.turns[draws[0]], axis=1)
    others = np.median(runs.distinct[draws[1]], axis=1)
    level, other = float(np.median(runs.turns)), float(np.median(runs.distinct))
    figures = {"turns_ratio": level, "distinct_ratio": other, "write_bytes": float(runs.size_bytes)}
    fifo = float(np.mean(turns > _WAITS))
    cache = float(np.mean((turns < _FREE) & (others > _OTHERS_WAIT)))
    seen = (
        f"of {runs.writes:,} writes of {kib(runs.size_bytes)} alternating between two places, the last take "
        f"{level:.3g} times "
        f"as long as the first, at separate places {other:.3g} times"
    )
    if max(fifo, cache) < 0.9:
        reason = (
            "flash keeps up, so the buffer does not show"
            if other < _OTHERS_WAIT
            else "no rule applies"
        )
        return unknown("buffer-kind", f"{seen}: {reason}", "", plots, **figures)
    if cache > fifo:
        value, why = "cache", f"{seen}: data written again is replaced in RAM"
    else:
        value, why = "buffer", f"{seen}: all data goes to flash in order"
    return verdicts.found("buffer-kind", value, "", None, max(fifo, cache), why, plots, figures)
