"""How often a drive stops to clean, for how long, and how much spare space it has.

What other probes need of it too stands here: writes that are on flash when they count as done, a drive that cleans all
the time, and the period with which cleaning strikes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from flashwright.blackbox.base import Context, Cost, kib
from flashwright.blackbox.stats import mad
from flashwright.blackbox.target import Target
from flashwright.drive.findings import Finding, Mark, Plot, Series, unknown

__all__ = [
    "LEAST_BYTES",
    "Cleaning",
    "Period",
    "fill_once",
    "fill_twice",
    "grain",
    "period",
    "sequential",
    "synced",
    "synced_size",
]

Array = npt.NDArray[np.float64]
Offsets = npt.NDArray[np.int64]

_MIB = 1 << 20
LEAST_BYTES = 64 * _MIB
"""Smaller targets hold too few of the blocks that drives have (Kim 2011: 4 to 16 MiB)."""
# A grain where the clustered page is not known: the smallest that the drives of Kim 2011 have (Section 4.2.3).
_GRAIN = 4 << 10
# Writes that are flushed one by one need no finer steps than this: it halves what a flush costs on small pages.
_SYNCED = 16 << 10


def grain(context: Context) -> int:
    """The unit of writes that disturb nothing else: the clustered page, or 4 KiB where that is not known; bytes."""
    return context.up(context.size("clustered-page") or _GRAIN)


def synced(target: Target, offsets_bytes: Offsets, size_bytes: int) -> Array:
    """Writes, each made durable before the next (Kim 2011, Procedure 2, lines 9 and 10).

    Parameters
    ----------
    target : Target
        The drive.
    offsets_bytes : array of int64, one a write
        Where each begins.
    size_bytes : int
        Of each write.

    Returns
    -------
    array of float64, one a write
        From the start of the write to the end of its flush, nanoseconds.
    """
    kinds = np.tile(np.array([1, 3], np.uint8), offsets_bytes.size)
    times = target.play(kinds, np.repeat(offsets_bytes, 2), size_bytes)
    return (times.ended_ns[1::2] - times.submitted_ns[::2]).astype(np.float64)


def sequential(target: Target, first: int, count: int, size_bytes: int) -> Offsets:
    """Offsets of writes one after the other from slot `first` on, beginning anew at the end of the target; bytes."""
    slots = target.capacity_bytes // size_bytes
    return np.asarray((first + np.arange(count, dtype=np.int64)) % slots * size_bytes)


def synced_size(context: Context) -> int:
    """A size for writes that are flushed one by one: the least whole number of pages that is 16 KiB or more."""
    unit = grain(context)
    return -(-_SYNCED // unit) * unit


def fill_once(target: Target, size_bytes: int) -> None:
    """Writes all of the target once in order, with a flush after each 4 MiB.

    The writes are no larger than they have to be: drives whose buffer is smaller take large ones apart where it is
    full, not where pages end, and the rest of a page costs room. What lies in a buffer is kept short.
    """
    offsets = np.arange(0, target.capacity_bytes, size_bytes, dtype=np.int64)
    sizes = np.minimum(size_bytes, target.capacity_bytes - offsets)
    every = np.arange(0, offsets.size, max(4 * _MIB // size_bytes, 1))[1:]
    kinds = np.insert(np.ones(offsets.size, np.uint8), every, 3)
    target.play(kinds, np.insert(offsets, every, 0), np.insert(sizes, every, 0))
    target.flush()


def fill_twice(target: Target, size_bytes: int) -> bool:
    """Purges, then writes all of the target twice in order.

    After the first time nothing is empty; after the second the spare space (of less than the capacity) is used up
    too, so that each further write needs cleaning.

    Returns
    -------
    bool
        Whether the target could be purged.
    """
    purged = target.purge()
    fill_once(target, size_bytes)
    fill_once(target, size_bytes)
    return purged


@dataclass(frozen=True)
class Period:
    """What recurs in a row of latencies.

    Attributes
    ----------
    writes : float
        From one time to the next.
    error_writes : float
        How far that may be off: half a write over the periods that it was followed through.
    strength : float
        Height of the peak of the autocorrelation over its scatter.
    """

    writes: float
    error_writes: float
    strength: float


def period(latencies_ns: Array) -> Period | None:
    """The period of the longest latencies, by their autocorrelation; ours.

    Latencies are cut at 2 and at 12 deviations above their median, so that neither noise nor one long stall decides.
    The first lag with 0.6 of the highest peak is the period: parts of it (other units that clean in between) show less,
    multiples as much but later. It is then followed over multiples, which makes it exact.

    Parameters
    ----------
    latencies_ns : array
        Of equal writes in order.

    Returns
    -------
    Period or None
        None if nothing recurs six times or more.

    Examples
    --------
    >>> waves = np.ones(1000)
    >>> waves[7::62] = 4.0
    >>> round(period(waves).writes, 2)
    62.0
    """
    n = latencies_ns.size
    base = float(np.median(latencies_ns))
    # Unsteady by 2 % at least: times without any scatter would make every difference significant.
    spread = max(mad(latencies_ns), 0.02 * base)
    spikes = np.clip(latencies_ns - base - 2 * spread, 0, 10 * spread)
    spikes = spikes - spikes.mean()
    lags = n // 6
    if lags < 8 or not spikes.any():
        return None
    spectrum = np.fft.rfft(spikes, 2 * n)
    raw = np.fft.irfft(np.abs(spectrum) ** 2)[: n // 2 + 2] / (n - np.arange(n // 2 + 2))
    # A period that is no whole number of writes spreads over neighbouring lags.
    joined = np.convolve(raw, np.ones(3), "same")
    scatter = mad(joined[2:lags])
    floor = max(10 * scatter, 0.02 * float(raw[0]))
    # Several units that clean one after the other make a group of long latencies: the period is beyond it.
    width = 2
    if joined[2] > floor:
        below = np.flatnonzero(joined[2:lags] < 0.3 * joined[2])
        if not below.size:
            return None
        width = 2 + int(below[0])
    top = float(joined[width:lags].max())
    if top < floor:
        return None
    first = width + int(np.argmax(joined[width:lags] >= 0.6 * top))
    near = slice(first, min(first + width + 2, lags))
    lag = first + int(np.argmax(joined[near]))
    found, times = float(lag), 1
    while (4 * times + 1) * found < n:
        # What was found at half the distance is off by a write at most, so by two here.
        at = round(2 * times * found)
        low = max(at - 3, 1)
        window = joined[low : at + 4]
        weights = np.clip(window - 0.5 * window.max(), 0, None)
        if window.max() < 0.3 * top:
            break
        center = float(weights @ np.arange(low, low + window.size) / weights.sum())
        if abs(center - at) > 2:
            break
        times *= 2
        found = center / times
    return Period(found, 0.5 / times, top / max(scatter, 1e-12))


# Stalls to wait for: their mean distance is known to 6 and 3 % (one over the root of their number).
_STALLS = {"quick": 300, "full": 1000}
_STALLS_LEAST = 20
_CONTROL = 2048
_SEGMENTS = 5
# Parts of a measurement that must be near its mean: most of them.
_AGREEING = 0.5
# Random writes until their speed is steady: a fiftieth of the capacity a batch, and no more than three capacities.
_BATCHES, _BATCHES_MOST = 50, 150
# Where random writes run at a tenth of the fill, merges govern from the first batches on.
_MERGED = 0.1
# Consecutive stalls that distinguish the end of the spare space from chance.
_ONSET = 6


class Cleaning:
    """When, how long, and out of how much room a drive cleans."""

    NAME: ClassVar[str] = "cleaning"
    ABOUT: ClassVar[str] = (
        "bytes between the stalls of random writes in steady state, the length of a stall (SSDcheck's cleaning "
        "interval), and the spare space used up before the first stall (Hu 2012, Section 4.2.2)"
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = ("cleaning-interval", "cleaning-stall", "spare-space")
    # The rest of the drive keeps its data, of which nobody knows how much it leaves to clean.
    OF_THE_WHOLE: ClassVar[tuple[str, ...]] = PARAMETERS

    def cost(self, context: Context) -> Cost:
        """Two fills, at most four capacities of random writes, and the way to the end of the spare space."""
        capacity = context.target.capacity_bytes
        size = synced_size(context)
        # The fills, four capacities until it is steady, and of a page map the quarter that it may have to spare.
        written = int(capacity * (1.3 + 4 + (0.25 if _mapping(context) == "page" else 0.0)))
        return Cost(0, written, written // size)

    def run(self, context: Context) -> list[Finding]:
        """The spare space first, as it needs an empty drive; then the steady state."""
        target = context.target
        if target.capacity_bytes < LEAST_BYTES:
            why = f"the target has {kib(target.capacity_bytes)}, less than {kib(LEAST_BYTES)}: it would hold few blocks"
            units = zip(self.PARAMETERS, ("B", "ns", ""), strict=True)
            return [unknown(parameter, why, unit) for parameter, unit in units]
        size = synced_size(context)
        purged = target.purge()
        base = _Base.of(synced(target, sequential(target, 0, _CONTROL, size), size))
        spare = _spare(context, size, base, purged)
        context.progress(0.3)
        _settle(context, size)
        context.progress(0.7)
        findings = _steady(context, size, base)
        context.progress(1.0)
        return [*findings, spare]


@dataclass(frozen=True)
class _Base:
    """The latency of writes that meet no cleaning, and from where on one is a stall; nanoseconds."""

    median_ns: float
    stall_ns: float

    @classmethod
    def of(cls, latencies_ns: Array) -> _Base:
        """From writes to an empty drive. Six deviations, and a quarter of the median at least, are no chance."""
        median = float(np.median(latencies_ns))
        return cls(median, median + max(6 * mad(latencies_ns), 0.25 * median))


def _mapping(context: Context) -> str | None:
    finding = context.known.get("mapping")
    return str(finding.value) if finding is not None and finding.verdict == "found" else None


def _spare(context: Context, size: int, base: _Base, purged: bool) -> Finding:
    """Bytes that an empty drive takes in order before it cleans: its flash less what it keeps for cleaning."""
    target, block = context.target, context.size("clustered-block")
    if not purged or _mapping(context) != "page" or block is None:
        why = (
            "the room beyond the capacity shows where a page map that was purged first cleans, and "
            + (
                "the target cannot be purged"
                if not purged
                else "the drive is not known to have a page map"
                if _mapping(context) != "page"
                else "the clustered block, by which cleaning recurs, is not known"
            )
        )
        return unknown("spare-space", why + ".")
    target.purge()
    fill_once(target, size)
    count = max(4 * block // size, 64)
    slots = target.capacity_bytes // size
    latencies: list[Array] = []
    done = 0
    while done < slots:
        latencies.append(synced(target, sequential(target, done, count, size), size))
        done += count
        at = np.flatnonzero(np.concatenate(latencies) > base.stall_ns) * size
        # What lies within half a block belongs together: units clean one after the other.
        begins = at[np.append(True, np.diff(at) > block // 2)] if at.size else at
        regular = np.abs(np.diff(begins) - block) <= 0.1 * block
        if regular.size >= _ONSET and regular[-_ONSET:].all():
            breaks = np.flatnonzero(~regular)
            first = int(begins[breaks[-1] + 1 if breaks.size else 0])
            share = first / target.capacity_bytes
            row = block / target.capacity_bytes
            tail = np.concatenate(latencies)
            x = np.arange(tail.size, dtype=np.float64) * size
            shown = slice(max(first - 8 * block, 0) // size, None)
            plot = Plot(
                "Overwriting in order after one fill",
                "written beyond the capacity [B]",
                "latency [ns]",
                (Series("write and flush", x[shown], tail[shown]),),
                (Mark(float(first), "first cleaning"),),
                y_log=True,
            )
            why = (
                f"an empty drive took its capacity and {kib(first // 1024 * 1024)} more in order before long writes "
                f"began to recur with the clustered block; what it keeps for cleaning itself is not in it."
            )
            return Finding(
                "spare-space",
                "found",
                share,
                "",
                max(share - row, 0.0),
                share + row,
                1.0 if not breaks.size else 0.9,
                why,
                (plot,),
                {"spare_bytes": float(first)},
            )
    why = (
        "no long writes recur with the clustered block within two capacities: cleaning is hidden, or the spare space "
        "is larger"
    )
    return unknown("spare-space", why + ".")


def _settle(context: Context, size: int) -> None:
    """Fills the drive and writes it at random until the speed is steady."""
    target, rng = context.target, context.rng("cleaning.settle")
    begin, before = target.now_ns, target.bytes_written
    fill_once(target, size)
    full_speed = (target.bytes_written - before) / max(target.now_ns - begin, 1)
    slots = target.capacity_bytes // size
    count = max(slots // _BATCHES, 1)
    rates: list[float] = []
    for done in range(_BATCHES_MOST):
        times = target.play("write", rng.integers(0, slots, count) * size, size)
        rates.append(count * size / max(times.duration_ns, 1.0))
        context.progress(0.3 + 0.4 * done / _BATCHES_MOST)
        last = np.array(rates[-5:])
        # The steady state of SNIA (algorithm 8.12): five rounds within 20 %, their line within 10 %.
        steady = (
            last.size == 5
            and np.ptp(last) <= 0.2 * last.mean()
            and abs(np.polyfit(np.arange(5), last, 1)[0]) * 4 <= 0.1 * last.mean()
        )
        if steady and (done + 1 >= _BATCHES or last.mean() < _MERGED * full_speed):
            break


def _steady(context: Context, size: int, base: _Base) -> list[Finding]:
    """Interval and length of the stalls of random writes, on a drive in steady state."""
    target, rng = context.target, context.rng("cleaning.steady")
    slots = target.capacity_bytes // size
    parts: list[Array] = []
    most = max(slots // 4, 4096)
    wanted, written, seen = _STALLS[context.mode], 0, 0
    while written < most and (seen < wanted or written < 2048):
        parts.append(synced(target, rng.integers(0, slots, 1024) * size, size))
        seen += int(np.count_nonzero(parts[-1] > base.stall_ns))
        written += 1024
    latencies = np.concatenate(parts)
    stalled = latencies > base.stall_ns
    if _mapping(context) == "page" and stalled.mean() > 0.5:
        # A page map cleans once for many pages: what strikes most writes is its tables, which random writes miss.
        base = _Base.of(latencies)
        stalled = latencies > base.stall_ns
    x = np.arange(latencies.size, dtype=np.float64) * size
    plot = Plot(
        "Random writes in steady state",
        "written [B]",
        "latency [ns]",
        (
            Series("write and flush", x[:8192], latencies[:8192]),
            Series(
                "beyond this: stall",
                x[[0, min(8191, x.size - 1)]],
                np.full(2, base.stall_ns),
                "step",
            ),
        ),
        y_log=True,
    )
    count = int(np.count_nonzero(stalled))
    figures = {
        "stalls": float(count),
        "base_ns": base.median_ns,
        "stall_from_ns": base.stall_ns,
        "stalled_time_share": float(latencies[stalled].sum() / latencies.sum()),
    }
    if count < _STALLS_LEAST:
        why = f"{count} of {latencies.size} random writes took longer than without cleaning: too few to say how often"
        return [
            unknown("cleaning-interval", why + ".", "B", (plot,), **figures),
            unknown("cleaning-stall", why + ".", "ns", (plot,), **figures),
        ]
    interval = latencies.size * size / count
    extra = latencies[stalled] - base.median_ns
    gaps = np.diff(np.flatnonzero(np.append(True, stalled))) * float(size)
    draws = rng.integers(0, count, (200, count))
    intervals = gaps[draws].mean(axis=1)
    stalls = np.median(extra[draws], axis=1)
    segments = [part.mean() for part in np.array_split(gaps, _SEGMENTS)]
    middles = [float(np.median(part)) for part in np.array_split(extra, _SEGMENTS)]
    stall = float(np.median(extra))
    seen_text = f"{count} of {latencies.size} random writes of {kib(size)} took over {base.stall_ns / 1e6:.3g} ms"
    steady, alike = _agreeing(segments, interval), _agreeing(middles, stall)
    if steady < _AGREEING:
        why = f"{seen_text}, but irregularly: {steady:.0%} of {_SEGMENTS} parts are near the mean"
        return [
            unknown("cleaning-interval", why + ".", "B", (plot,), **figures),
            unknown("cleaning-stall", why + ".", "ns", (plot,), **figures),
        ]
    return [
        Finding(
            "cleaning-interval",
            "found",
            round(interval),
            "B",
            float(np.quantile(intervals, 0.025)),
            float(np.quantile(intervals, 0.975)),
            # Within a quarter: a fifth of the stalls is known to about a tenth.
            steady,
            f"{seen_text}, where without cleaning they take {base.median_ns / 1e6:.3g} ms.",
            (plot,),
            figures,
        ),
        Finding(
            "cleaning-stall",
            "found",
            round(stall),
            "ns",
            float(np.quantile(stalls, 0.025)),
            float(np.quantile(stalls, 0.975)),
            alike,
            f"{seen_text}; this is the median of what they took beyond {base.median_ns / 1e6:.3g} ms.",
            (plot,),
            figures,
        ),
    ]


def _agreeing(parts: list[float], whole: float) -> float:
    """The share of parts within a quarter of the whole."""
    return float(np.mean([abs(part / whole - 1) <= 0.25 for part in parts]))
