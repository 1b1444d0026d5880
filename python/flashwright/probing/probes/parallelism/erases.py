"""How many units erase a block in turn: long writes that follow each other where a drive is overwritten in order.

A page map puts single pages on its units in turn. So all units fill their blocks at the same time, and where each
erases the next one when it needs it, as many writes in a row are long as there are units, once a block::

    latency   ^^^^                    ^^^^                    ^^^^          four units
    write     1234 ...                one block of all units later

This needs no command queuing. Neither the bus nor the link can hide it, as they hide the steps of long writes: a single
page and its flush wait for one erase each, which takes longer than both. Other causes of long writes, and how they are
excluded:

- Cleaning that copies, and pauses by the clock: they do not come after as many bytes as the clustered block has, which
  another probe found by other writes.
- Rows of pages that RAM collects: a block has sixteen and more.
- Units that erase together, ahead of need, or in steps: they make fewer writes long, so one long write says nothing of
  the units, and a number that the steps of long writes do not divide is suppressed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flashwright.drive.findings import Plot, Series
from flashwright.probing.probes.shared.overwriting import write_and_flush
from flashwright.target.arrays import MIB, Array
from flashwright.target.question import UNTESTED, Context, Cost, kib
from flashwright.target.stats import mad

__all__ = ["Erases", "can_ask", "cost", "erases", "runs_of"]


# Bytes that may be written. Chosen: half a minute, and eight minutes, at 400 MB/s.
_MOST_BYTES = {"quick": 12 << 30, "full": 192 << 30}
# What is overwritten in order after a fill, as a share of the capacity. Chosen: more than the spare space of drives
# that we know of, so that blocks have to be erased.
_SPARE = 0.5
# Blocks of all units that are written page by page then. Chosen: three more than the runs that are needed.
_BLOCKS = 8
# Such writes at most. Chosen: minutes on a slow drive.
_MOST_WRITES = 100_000
# A write is long from this many deviations above the median on. Chosen: no noise among so many writes reaches it.
_DEVIATIONS = 6.0
# And from so many medians on. Chosen: an erase takes longer than a program, and the write has both.
_LONGER = 1.3
# Whole runs of long writes that are needed. Chosen.
_LEAST_RUNS = 5
# Share of the runs that must have the same length, and of their distances that must be the same. Chosen.
_AGREE = 0.9
# Pages of a block at least. Derived: no NAND flash has fewer; small-block NAND has 32.
_PAGES_LEAST = 16
# By how much the distance of the runs may differ from the clustered block, as a share. Chosen: what the error of the
# block is at most.
_SAME = 0.02


@dataclass(frozen=True, eq=False)
class Erases:
    """What overwriting in order shows, a page at a time."""

    units: int | None
    confidence: float
    why: str
    latency_ns: Array

    @property
    def plots(self) -> tuple[Plot, ...]:
        """The writes, in order."""
        x = np.arange(1.0, self.latency_ns.size + 1.0)
        if not x.size:
            return ()
        shown = slice(0, 20_000)
        writes = Series("write and flush", x[shown], self.latency_ns[shown])
        return (Plot("Overwriting in order, a page at a time", "write", "latency [ns]", (writes,)),)


def can_ask(context: Context) -> bool:
    """Whether a page map and a clustered block are known, and the drive is small enough to be filled."""
    return (
        not context.target.read_only
        and _fits(context)
        and context.is_page_mapped
        and context.size("clustered-block") is not None
    )


def _fits(context: Context) -> bool:
    return (1 + _SPARE) * context.target.capacity_bytes <= _MOST_BYTES[context.mode]


def cost(context: Context, page_bytes: int) -> Cost:
    """At most: a fill and what uses up the spare space in order, and some blocks page by page."""
    if not _fits(context):
        return Cost(0, 0, 0)
    block = context.size("clustered-block") or 32 * MIB
    count = min(_BLOCKS * block // page_bytes, _MOST_WRITES)
    written = int((1 + _SPARE) * context.target.capacity_bytes)
    return Cost(0, written + count * page_bytes, written // MIB + 2 * count)


def erases(context: Context, page_bytes: int | None) -> Erases:
    """Overwrite a full drive in order, a page at a time.

    Parameters
    ----------
    context : Context
        Of which :func:`can_ask` is true.
    page_bytes : int or None
        The clustered page; None where it is not known: then writes of 4 KiB go to a page each, if there is a page map.
    """
    target, block = context.target, context.size("clustered-block") or 0
    each = page_bytes or context.up(4096)
    size = max(MIB // each, 1) * each
    pages = target.capacity_bytes // each
    target.purge()
    target.fill(size_bytes=size, end_bytes=pages * each)
    done = int(_SPARE * pages) * each // size * size
    target.fill(size_bytes=size, end_bytes=done)
    first, count = done // each, min(_BLOCKS * block // each, pages, _MOST_WRITES)
    places = (first + np.arange(count)) % pages
    took = write_and_flush(target, places * each, np.full(count, each))
    return runs_of(took, each, block, page_known=page_bytes is not None)


def runs_of(took_ns: Array, each_bytes: int, block_bytes: int, *, page_known: bool) -> Erases:
    """Units by the runs of long writes.

    Parameters
    ----------
    took_ns : array
        Writes in order and their flushes, nanoseconds.
    each_bytes : int
        Of each.
    block_bytes : int
        What all units erase together, as another probe found it.
    page_known : bool
        Whether each is a clustered page; else each takes a page of unknown size.

    Examples
    --------
    >>> took = np.full(1024, 1e6)
    >>> took[np.arange(1024) % 128 < 4] = 4e6
    >>> runs_of(took, 4096, 128 * 4096, page_known=True).units
    4
    >>> runs_of(took, 4096, 100 * 4096, page_known=True).units is None
    True
    """
    usual = float(np.median(took_ns))
    low = took_ns[took_ns <= usual]
    # By what lies below the median: long writes are none of the noise.
    noise = mad(np.concatenate([low, 2 * usual - low]))
    long = took_ns > max(usual + _DEVIATIONS * noise, _LONGER * usual)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], long, [False]]).astype(np.int8)))
    starts, ends = edges[::2], edges[1::2]
    # What the ends cut off is no whole run.
    whole = (starts > 0) & (ends < long.size)
    starts, lengths = starts[whole], (ends - starts)[whole]

    def blind(why: str) -> Erases:
        return Erases(None, 0.0, f"overwriting in order, a page at a time, {why}", took_ns)

    if starts.size < _LEAST_RUNS:
        return blind(f"shows {starts.size} runs of long writes only")
    values, counts = np.unique(lengths, return_counts=True)
    units = int(values[counts.argmax()])
    agreeing_share = float(counts.max() / lengths.size)
    apart = np.diff(starts[lengths == units])
    if agreeing_share < _AGREE or not apart.size:
        return blind(
            f"makes {units} writes in a row long, but so many in {agreeing_share:.0%} of the runs"
        )
    distance = float(np.median(apart))
    steady = float(np.mean(np.abs(apart - distance) <= _SAME * distance))
    if steady < _AGREE:
        return blind(f"makes {units} writes in a row long, but after unlike numbers of bytes")
    # A page is not less than what takes one, and the block is what all pages of a turn fill.
    near = abs(distance * each_bytes / block_bytes - 1) <= _SAME
    if not near if page_known else distance * each_bytes > (1 + _SAME) * block_bytes:
        return blind(
            f"makes writes long every {kib(distance * each_bytes)}, but a clustered block has {kib(block_bytes)}"
        )
    if distance < _PAGES_LEAST * units:
        return blind(f"makes {units} of {distance:.0f} writes long, and no block has so few pages")
    if units == 1:
        return blind("makes one write long at a time: one unit, or all units erase together")
    why = (
        f"Overwritten in order, a page at a time, {units} writes in a row take {np.median(took_ns[long]) / 1e3:,.0f} "
        f"us instead of {usual / 1e3:,.0f}, each time a block of all units is full: each unit erases one."
    )
    return Erases(units, min(agreeing_share, steady, UNTESTED), why, took_ns)
