"""What probes of overwriting share: flushed writes, fills, the base of a stall, and periods of stalls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flashwright.target.arrays import MIB, Array, Ints
from flashwright.target.guard import CODES
from flashwright.target.question import Context
from flashwright.target.stats import mad
from flashwright.target.target import Target

__all__ = [
    "LEAST_BYTES",
    "Base",
    "Period",
    "fill_once",
    "fill_twice",
    "grain",
    "period",
    "sequential",
    "stream_write_size",
    "synced_size",
    "write_and_flush",
]


LEAST_BYTES = 64 * MIB
"""Smaller targets hold too few of the blocks that drives have (Kim 2011: 4 to 16 MiB)."""
# The grain where the clustered page is not known, bytes. Source: the smallest that the drives of Kim 2011 have (Section
# 4.2.3).
_GRAIN = 4 << 10
# Writes that are flushed one by one have these bytes at least. Chosen: finer steps are not needed, and it halves what
# flushes cost on small pages.
_SYNCED = 16 << 10
# Of writes in long runs. Chosen: long enough for the speed of the link, short enough for any buffer.
_STREAMED = 128 << 10


def grain(context: Context) -> int:
    """The smallest write without read-modify-write, bytes: the clustered page, or 4 KiB where that is not known."""
    return context.up(context.size("clustered-page") or _GRAIN)


def write_and_flush(target: Target, offsets_bytes: Ints, sizes_bytes: int | Ints) -> Array:
    """Writes, each flushed before the next (Kim 2011, Procedure 2, lines 9 and 10).

    Parameters
    ----------
    target : Target
        The drive.
    offsets_bytes : array of int64, one a write
        Where each begins.
    sizes_bytes : int, or array of int64, one a write
        How long they are.

    Returns
    -------
    array of float64, one a write
        From the start of the write to the end of its flush, nanoseconds.

    Examples
    --------
    >>> with Target("sim:default") as drive:
    ...     write_and_flush(drive, np.array([0, 4096]), 4096).size
    2
    """
    kinds = np.tile(np.array([CODES["write"], CODES["flush"]], np.uint8), offsets_bytes.size)
    sizes = np.broadcast_to(sizes_bytes, offsets_bytes.shape)
    times = target.play(kinds, np.repeat(offsets_bytes, 2), np.repeat(sizes, 2))
    return (times.ended_ns[1::2] - times.submitted_ns[::2]).astype(np.float64)


def sequential(target: Target, first: int, count: int, size_bytes: int) -> Ints:
    """Ints of writes one after the other from slot `first` on, beginning anew at the end of the target; bytes."""
    slots = target.capacity_bytes // size_bytes
    return np.asarray((first + np.arange(count, dtype=np.int64)) % slots * size_bytes)


def synced_size(context: Context) -> int:
    """A size for writes that are flushed one by one: the least whole number of pages that is 16 KiB or more."""
    unit = grain(context)
    return -(-_SYNCED // unit) * unit


def stream_write_size(context: Context) -> int:
    """Of each write of a long run in order: 128 KiB, in whole clustered pages where those are known; bytes.

    Pages that are written in parts take more flash than data, so that cleaning begins before the flash has been written
    once.
    """
    page = context.size("clustered-page")
    return context.up(_STREAMED) if page is None else context.up(-(-_STREAMED // page) * page)


def fill_once(target: Target, size_bytes: int, end_bytes: int | None = None) -> None:
    """Writes all of the target, or its start, once in order, with a flush after each 4 MiB.

    The writes are no larger than they have to be: drives whose buffer is smaller take large ones apart where it is
    full, not where pages end, and the rest of a page costs room. What lies in a buffer is kept short.
    """
    end = target.capacity_bytes if end_bytes is None else end_bytes
    offsets = np.arange(0, end, size_bytes, dtype=np.int64)
    sizes = np.minimum(size_bytes, end - offsets)
    every = np.arange(0, offsets.size, max(4 * MIB // size_bytes, 1))[1:]
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


@dataclass(frozen=True)
class Base:
    """The latency of writes that meet no cleaning, and from where on one is a stall; nanoseconds."""

    median_ns: float
    stall_ns: float

    @classmethod
    def of(cls, latencies_ns: Array) -> Base:
        """From writes to an empty drive. Six deviations, and a quarter of the median at least, are no chance."""
        median = float(np.median(latencies_ns))
        return cls(median, median + max(6 * mad(latencies_ns), 0.25 * median))
