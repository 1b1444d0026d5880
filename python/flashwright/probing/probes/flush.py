"""Whether a write buffer empties by itself, what a flush costs, and whether it waits for flash.

Where the size of the buffer is not known, a small write stands for a full buffer, as long as a flush waits for it.

A flush may also write what has nothing to do with the buffer: a page of the map of a drive without RAM for it, a
journal, a padded page. That takes as long after a rest as at once, however soon the buffer emptied. So a flush that
takes as long after a rest is not enough to call a buffer lazy. Either another burst finds no room after the rest, as it
finds none without; or, where flash keeps up with bursts so that room does not show, the flush must take longer the more
was written before.

A flush may wait for a command that is still running, or for a lock. That takes less time than a read of flash, and no
flash is programmed in less; so a flush that waits for less gives no verdict.

A flush that costs nothing may follow a write that is on flash already, or leave data in RAM. The two differ where whole
pages are written after a rest: programming takes longer than reading in all flash there is, so that a write that takes,
with its flush, less than half of what reading as much takes has programmed nothing. Whether the RAM survives a loss of
power cannot be seen from outside: "no" says that a flush does not wait for flash, not that data is lost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from flashwright.drive.findings import Finding, Mark, Plot, Series, unknown
from flashwright.probing.probes.shared import verdicts
from flashwright.probing.probes.shared.buffers import (
    NO_PROGRAM,
    READS,
    REPEATS,
    SMALLEST_BYTES,
    after_rests,
    buffer_region,
)
from flashwright.probing.probes.shared.edges import center
from flashwright.target.arrays import Array
from flashwright.target.question import UNTESTED, Context, Cost, kib
from flashwright.target.stats import chance_above, resampled
from flashwright.target.target import FILL_BYTES, Target

__all__ = ["Flush"]


# Pauses between a burst and its flush, in times of that flush without a pause. Chosen: by the last, any drive that
# empties its buffer as fast as it can is done several times over.
_PAUSES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
# One more pause, nanoseconds, for drives that wait until nothing is asked of them. Chosen: such work starts after tens
# of milliseconds to seconds.
_LONG_NS = {"quick": 1e9, "full": 5e9}
# What is left of the flush, as a share of it without a pause, below which the buffer emptied itself. Chosen.
_EMPTIED = 0.4
# The same, above which the buffer kept what it had. Chosen: a gap to the above, in which there is no verdict.
_KEPT = 0.6
# Writes before a flush whose time is compared with that after one small write.
_MANY_WRITES = 32
# How many times as long such a flush takes, at least, if its time is that of the data. Chosen: 32 times the data take
# more than half as long again, unless a fixed cost governs.
_GROWS = 1.5
# The quantile of the times of flushes that stands for those without cleaning. Chosen: cleaning strikes fewer than the
# rest.
_LOW = 0.25
# Share of the buffer that a burst fills. Chosen: it must fit.
_FILLED = 0.9
# Bytes of a write that fits in any buffer.
_SMALL = 16 << 10
# Sizes of writes that are tried where the page is not known, bytes.
_SIZES = (16 << 10, 32 << 10, 64 << 10)
# The chance below which one set of times lies above another (Mann-Whitney). Chosen: several are asked of each drive.
_CHANCE = 0.001
# Share of the resamplings that a verdict needs. Chosen.
_AGREE = 0.9
# Resamplings of a median or quantile.
_ROUNDS = 500


class Flush:
    """Flushes of nothing, and of a nearly full buffer after pauses.

    Source: SSDcheck (Kim et al., MICRO 2018) separates buffers that write back in the background from those that wait
    by bursts; the flush as the measure is ours.
    """

    NAME: ClassVar[str] = "flush"
    ABOUT: ClassVar[str] = (
        "Whether the write buffer empties by itself, how long an empty flush takes, and whether a flush waits for "
        "flash (after SSDcheck, MICRO 2018): not where it ends before anything can have been programmed."
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = ("write-buffer-drain", "flush-time", "flush-honoured")

    def cost(self, context: Context) -> Cost:
        """About what it will ask of the drive."""
        burst = max(int(_FILLED * (context.size("write-buffer") or 1 << 20)), context.up(_SMALL))
        trials = _trials(context)
        # Pauses, the first look, and three pairs of bursts that look for room.
        bursts = (len(_PAUSES) + 2 + 6) * trials
        more = (_MANY_WRITES + 1) * trials * context.up(_SMALL)
        page = context.size("clustered-page") or sum(_SIZES)
        return Cost(
            bytes_read=READS * page,
            bytes_written=buffer_region(context.target) + bursts * burst + more + REPEATS * page,
            requests=buffer_region(context.target) // FILL_BYTES
            + 3 * bursts
            + (_MANY_WRITES + 5) * trials
            + 6 * REPEATS
            + 3 * READS
            + 64,
        )

    def run(self, context: Context) -> list[Finding]:
        """Ask, and decide."""
        target, rng = context.target, context.rng(self.NAME)
        target.flush()
        count = 64
        nothing = target.play("flush", np.zeros(count, np.int64), 0).latency_ns
        draws = np.median(resampled(nothing, rng, _ROUNDS), axis=1)
        low, high = (float(bound) for bound in np.quantile(draws, [0.025, 0.975]))
        value = float(np.median(nothing))
        time = verdicts.found(
            "flush-time",
            value,
            "ns",
            (low, high),
            float(np.mean(np.abs(draws - value) <= max(0.1 * value, 1.0))),
            f"median of {count} flushes with nothing to write",
        )
        known = context.known.get("write-buffer")
        if known is not None and known.verdict == "absent":
            why = "no write buffer: acknowledged data is on flash"
            rest = [
                verdicts.absent(name, "", known.confidence, why)
                for name in ("write-buffer-drain", "flush-honoured")
            ]
            return [rest[0], time, rest[1]]
        buffer = context.size("write-buffer")
        if buffer is None and not _seems_to_wait(known):
            why = "the size of the write buffer is not known, and no flush was seen to wait"
            return [
                unknown("write-buffer-drain", why),
                time,
                _honoured_without_size(context, why, rng),
            ]
        target.fill(end_bytes=buffer_region(target))
        burst = context.up(_SMALL) if buffer is None else context.down(_FILLED * buffer)
        trials = _trials(context)
        wrote, at_once = _after(target, burst, 0.0, trials, rng)
        honoured = _honoured(at_once, wrote, nothing, known, burst, rng)
        if chance_above(at_once, nothing) > _CHANCE:
            why = "a flush takes no longer when the buffer holds data, so it shows nothing about the buffer"
            return [unknown("write-buffer-drain", why), time, honoured]
        typical = center(at_once)[0]
        pauses = [share * typical for share in _PAUSES]
        pauses.append(max(_LONG_NS[context.mode], 20 * typical))
        flushed = np.empty((len(pauses), trials))
        # In turns, so that cleaning strikes all of them alike.
        for trial in range(trials):
            for at, pause in enumerate(pauses):
                flushed[at, trial] = _after(target, burst, pause, 1, rng)[1][0]
            context.progress((trial + 1) / trials)
        drain = _drain(pauses, flushed, nothing, burst, rng)
        if drain.value == "lazy":
            room = _room(target, burst, pauses[-1], trials, rng) if buffer is not None else None
            small = context.up(SMALLEST_BYTES)
            grown = _flushes_by_data(target, small, context.up(_SMALL), pauses[-1], trials, rng)
            drain = _confirm_lazy(drain, room, grown - float(np.median(nothing)), rng)
        return [drain, time, honoured]


def _seems_to_wait(buffer: Finding | None) -> bool:
    """Whether a flush after a small write took longer than an empty one by more than a read of flash."""
    if buffer is None:
        return False
    figures = buffer.figures
    names = ("flush_after_write_ns", "flush_of_nothing_ns", "read_ns")
    if any(name not in figures for name in names):
        return False
    after, nothing, read = (figures[name] for name in names)
    return after - nothing > read


def _honoured_without_size(context: Context, blind: str, rng: np.random.Generator) -> Finding:
    """Whether writes after rests end, with their flushes, before anything can have been programmed."""
    target, page = context.target, context.size("clustered-page")
    target.fill(end_bytes=buffer_region(target))
    # Parts of pages read the rest first, so where those are not known some sizes are tried.
    for size in _SIZES if page is None else (page,):
        took, reads = after_rests(target, size, buffer_region(target), rng)
        wrote = np.median(resampled(took, rng, _ROUNDS), axis=1)
        read = np.median(resampled(reads, rng, _ROUNDS), axis=1)
        agree = float(np.mean(wrote < NO_PROGRAM * read))
        seen = (
            f"after a rest {kib(size)} are written and flushed in {np.median(took) / 1e3:,.0f} us, and read in "
            f"{np.median(reads) / 1e3:,.0f}"
        )
        if agree >= _AGREE:
            break
    figures = {
        "rested_flushed_ns": float(np.median(took)),
        "read_alike_ns": float(np.median(reads)),
    }
    if agree < _AGREE:
        return unknown(
            "flush-honoured", f"{blind}; {seen}: too close to distinguish", "", (), **figures
        )
    why = (
        f"{seen}: no flash is programmed in that time, so a flush does not wait for it; or the buffer outlives a loss "
        "of power"
    )
    return verdicts.found("flush-honoured", "no", "", None, min(agree, UNTESTED), why, (), figures)


def _trials(context: Context) -> int:
    return 10 if context.mode == "quick" else 30


def _after(
    target: Target, burst: int, pause_ns: float, count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Times of writes to an emptied buffer, and of the flush a pause after each."""
    wrote, flushed = np.empty(count), np.empty(count)
    target.flush()
    places = buffer_region(target) // burst
    first = int(rng.integers(0, places))
    for at in range(count):
        offset = (first + at) % places * burst
        wrote[at] = target.play("write", [offset], burst).latency_ns[0]
        if pause_ns:
            target.idle(pause_ns)
        flushed[at] = target.flush()
    return wrote, flushed


def _room(
    target: Target, burst: int, pause_ns: float, count: int, rng: np.random.Generator
) -> Array:
    """Times of a burst in three rows: into an emptied buffer, right after another burst, and a pause after another."""
    took = np.empty((3, count))
    places = buffer_region(target) // burst
    first = int(rng.integers(0, places))

    def write(at: int) -> float:
        return float(target.play("write", [(first + at) % places * burst], burst).latency_ns[0])

    for at in range(count):
        target.flush()
        took[0, at], took[1, at] = write(4 * at), write(4 * at + 1)
        target.flush()
        write(4 * at + 2)
        target.idle(pause_ns)
        took[2, at] = write(4 * at + 3)
    target.flush()
    return took


def _flushes_by_data(
    target: Target,
    small: int,
    each: int,
    pause_ns: float,
    count: int,
    rng: np.random.Generator,
) -> Array:
    """Times of a flush a pause after one small write, and after many writes, in two rows."""
    took = np.empty((2, count))
    places = buffer_region(target) // (_MANY_WRITES * each)
    first = int(rng.integers(0, places))
    target.flush()
    for at in range(count):
        offset = (first + at) % places * _MANY_WRITES * each
        target.play("write", [offset], small)
        target.idle(pause_ns)
        took[0, at] = target.flush()
        target.play("write", offset + np.arange(_MANY_WRITES) * each, each)
        target.idle(pause_ns)
        took[1, at] = target.flush()
    return took


def _confirm_lazy(
    lazy: Finding, room: Array | None, grown: Array, rng: np.random.Generator
) -> Finding:
    """A buffer that its flush calls lazy, held against whether it has room, and whether the flush depends on the data.

    Parameters
    ----------
    lazy : Finding
        By the flush alone.
    room : array, 3 rows
        Of :func:`_room`, nanoseconds; None where the size of the buffer is not known.
    grown : array, 2 rows
        Of :func:`_flushes_by_data`, less an empty flush.
    rng : numpy Generator
        Resamples.
    """
    figures = dict(lazy.figures)
    small, many = (float(np.quantile(row, _LOW)) for row in grown)
    figures |= {"flush_of_small_ns": small, "flush_of_many_ns": many}
    if room is not None and chance_above(room[1], room[0]) < _CHANCE:
        free, full, later = (
            np.quantile(resampled(row, rng, _ROUNDS), _LOW, axis=1) for row in room
        )
        taken = (later - free) / np.maximum(full - free, 1.0)
        figures["room_taken"] = float(np.median(taken))
        seen = f"another burst then waits {max(figures['room_taken'], 0):.0%} of what it waits without a pause"
        full_share, free_share = float(np.mean(taken > _KEPT)), float(np.mean(taken < _EMPTIED))
        if full_share >= _AGREE:
            sure = min(lazy.confidence, full_share)
            return replace(lazy, confidence=sure, why=f"{lazy.why}; {seen}", figures=figures)
        if free_share >= _AGREE:
            why = (
                f"{seen}: it empties by itself. That a flush takes as long after a pause as at once is not for the "
                "buffer: it may write a part of the map"
            )
            return replace(lazy, value="eager", confidence=free_share, why=why, figures=figures)
        why = f"{lazy.why}; but {seen}: neither all nor nothing"
        return unknown(lazy.parameter, why, "", lazy.plots, **figures)
    rows = grown[:, rng.integers(0, grown.shape[1], (_ROUNDS, grown.shape[1]))]
    fewer, more = np.quantile(rows, _LOW, axis=2)
    grows = float(np.mean(more > _GROWS * np.maximum(fewer, 0.0)))
    seen = (
        f"after a pause a flush of {_MANY_WRITES} writes takes {many / 1000:,.0f} us more than an empty one, that of "
        f"one small write {small / 1000:,.0f} us"
    )
    if grows >= _AGREE:
        sure = min(lazy.confidence, grows)
        return replace(lazy, confidence=sure, why=f"{lazy.why}; {seen}", figures=figures)
    why = (
        f"{lazy.why}; but {seen}, and whether another burst finds room does not show: a flush may take that time for "
        "a part of the map, whatever is in the buffer"
    )
    return unknown(lazy.parameter, why, "", lazy.plots, **figures)


def _honoured(
    at_once: Array,
    wrote: Array,
    nothing: Array,
    buffer: Finding | None,
    burst: int,
    rng: np.random.Generator,
) -> Finding:
    """Whether a flush takes as long as flash needs for what was in the buffer."""
    level, none = float(np.median(at_once)), float(np.median(nothing))
    figures = {"flush_after_burst_ns": level, "burst_ns": float(np.median(wrote))}
    waits = chance_above(at_once, nothing) < _CHANCE
    # What the first write that does not fit waited for beyond the link: flash had the like of this burst to do.
    needed = 0.0 if buffer is None else float(buffer.figures.get("step_ns", 0.0))
    figures["programming_ns"] = needed
    known = buffer is not None and buffer.verdict == "found"
    if buffer is not None and not known:
        # A program takes longer than a read in all flash there is, four times as a rule.
        needed = 4 * buffer.figures.get("read_ns", 0.0)
    draws = np.median(resampled(at_once, rng, _ROUNDS), axis=1)
    # A quarter: parts of pages and cleaning strike one more than the other; what does not wait takes next to nothing.
    long_enough = float(np.mean(draws - none >= needed / 4)) if needed else float(waits)
    seen = (
        f"a flush right after a write of {kib(burst)} takes {level / 1000:,.0f} us, an empty flush {none / 1000:,.0f} "
        "us"
    )
    if waits and long_enough > _AGREE:
        why = seen
        value, confidence = "yes", long_enough
    elif known and not waits and needed > 10 * max(none, 1.0):
        why = (
            f"{seen}, though programming takes about {needed / 1000:,.0f} us: it does not wait, or the buffer "
            "outlives a loss of power"
        )
        value, confidence = "no", 0.99
    else:
        why = (
            f"{seen}, and programming takes about {needed / 1000:,.0f} us: too close to distinguish"
        )
        return unknown("flush-honoured", why, "", (), **figures)
    return verdicts.found("flush-honoured", value, "", None, confidence, why, (), figures)


def _drain(
    pauses: list[float],
    flushed: Array,
    nothing: Array,
    burst: int,
    rng: np.random.Generator,
) -> Finding:
    """Whether the flush after the longest pause still has the work that it has without one.

    Cleaning makes single flushes many times as long and none shorter, so the first quarter of the times shows what is
    always there.
    """
    none = float(np.median(nothing))
    count = flushed.shape[1]
    draws = rng.integers(0, count, (2, _ROUNDS, count))
    starts = np.quantile(flushed[0][draws[0]], _LOW, axis=1) - none
    levels = np.quantile(flushed, _LOW, axis=1) - none
    left = (np.quantile(flushed[-1][draws[1]], _LOW, axis=1) - none) / starts
    figures = {"left_share": float(levels[-1] / levels[0]), "longest_pause_ns": pauses[-1]}
    halves = [pause for pause, level in zip(pauses, levels, strict=True) if level < levels[0] / 2]
    x = np.repeat(np.array(pauses), count)
    series = (
        Series("flush after a pause", x, flushed.ravel()),
        Series("quarter", np.array(pauses), levels + none, "line"),
    )
    marks = (Mark(halves[0], "half is gone"),) if halves else ()
    labels = "pause [ns]", "flush [ns]"
    plots = (Plot(f"Flushes after writes of {kib(burst)} and a pause", *labels, series, marks),)
    emptied, kept = float(np.mean(left < _EMPTIED)), float(np.mean(left > _KEPT))
    seen = (
        f"after {pauses[-1] / 1e9:.3g} s of pause a flush of {kib(burst)} takes {max(figures['left_share'], 0):.0%} "
        "of the time it takes at once"
    )
    if max(emptied, kept) < _AGREE:
        why = f"{seen}: neither all nor nothing"
        return unknown("write-buffer-drain", why, "", plots, **figures)
    if emptied > kept:
        figures["half_gone_ns"] = halves[0] if halves else pauses[-1]
        value, why = "eager", f"{seen}: it empties by itself"
    else:
        value, why = "lazy", f"{seen}: it keeps its data until a flush"
    return verdicts.found(
        "write-buffer-drain", value, "", None, max(emptied, kept), why, plots, figures
    )
