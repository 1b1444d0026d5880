"""What fills one program, where RAM that no flush empties gathers it: after how many bytes in order writes wait.

Such RAM takes writes at the speed of the link, and flash makes room in it only when a program begins or ends. Writes in
order reach all units in turn, so that all of them have enough for a program at about the same time. Once the RAM is
full, writes wait once for each such row::

    latency   ____|_______|_______|____       row = units x program
    bytes     ->  one row <-

So the times of writes repeat after as many bytes as all units program at once; that over the units is the program.
Other causes of that picture, and how they are excluded:

- An SLC cache programs fewer pages at once, and folding moves others meanwhile: there must be none.
- A buffer that a flush empties hands on parts of its own size: the measurement is made only where no flush waits.
- Cleaning comes after whole blocks, which have sixteen rows and more: the drive is empty.
- Chance: two stretches have to agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flashwright.drive.findings import Finding, Plot, Series
from flashwright.probing.probes.shared import verdicts
from flashwright.target.arrays import Array
from flashwright.target.question import UNTESTED, Context, Cost, kib

__all__ = ["Rows", "can_ask", "cost", "period_of", "program_of_rows", "rows", "stripe_of_rows"]


# Bytes that fill the RAM first. Chosen: the largest RAM that is looked for.
_FILL = 64 << 20
# They take one of so many parts of the drive at most. Chosen: nothing is cleaned then.
_PART = 16
# Bytes of each of these writes.
_EACH = 128 << 10
# Writes of a stretch. Chosen: hundreds of rows on the drives that we drew.
_WRITES = 4096
# Bytes of a stretch at most. Chosen: short beside the drive.
_STRETCH = 128 << 20
# The largest program that is looked for, bytes. Derived: four bits a cell in four planes of 32 KiB, and as much again.
_LARGEST = 1 << 20
# Turns of a row in one look, at least. Derived: chance explains one over this number of the variance.
_TURNS = 8
# Writes of one look, at least. Chosen: the same for short rows.
_LOOK = 64
# Looks, at least; their median counts.
_LOOKS = 2
# Share of the variance of times that the place in a row must explain. Chosen: the rest may be noise.
_EXPLAINED = 0.9
# How near to the best a shorter row must come. Chosen: what is no whole row leaves waits unexplained, not noise alone.
_NEAR = 0.97


@dataclass(frozen=True, eq=False)
class Rows:
    """What waits of writes in order show.

    Attributes
    ----------
    row_bytes : int or None
        After so many bytes their times repeat.
    units : int
        Units that a row is spread over.
    explained : float
        Share of the variance that the place in a row explains.
    why : str
        In words.
    latency_ns : array
        Of the writes.
    """

    row_bytes: int | None
    units: int
    explained: float
    why: str
    latency_ns: Array

    @property
    def plots(self) -> tuple[Plot, ...]:
        """The first writes, in order."""
        shown = self.latency_ns[:1024]
        x = np.arange(1.0, shown.size + 1.0)
        return (
            Plot(
                "Writes in order, with the RAM full",
                "write",
                "latency [ns]",
                (Series("writes", x, shown),),
            ),
        )


def can_ask(context: Context) -> bool:
    """Whether the drive may be written and has no SLC cache."""
    cache = context.known.get("slc-cache")
    absent = cache is not None and cache.verdict == "absent"
    return absent and not context.target.read_only


def cost(context: Context) -> Cost:
    """At most, with all sizes of writes."""
    most = min(context.target.capacity_bytes, _filled(context) + 6 * 2 * _STRETCH)
    return Cost(0, most, _filled(context) // _EACH + 6 * 2 * _WRITES)


def rows(context: Context, page_bytes: int, units: int) -> Rows:
    """Write in order with the RAM full, in mapping units, or in several where the link is too slow for these.

    Parameters
    ----------
    context : Context
        Of which :func:`can_ask` is true.
    page_bytes : int
        The mapping unit.
    units : int
        That work at once.
    """
    target = context.target
    target.purge()
    count = _filled(context) // _EACH
    target.play("write", np.arange(count, dtype=np.int64) * _EACH, _EACH)
    at = -(-count * _EACH // (page_bytes * units)) * page_bytes * units
    seen: Array = np.empty(0)
    for together in (1, 2, 4, 8, 16, 32):
        size = together * page_bytes
        if units % together or size > _LARGEST:
            break
        each = min(_WRITES, _STRETCH // size)
        if at + 2 * each * size > target.capacity_bytes:
            break
        found = []
        for _ in range(2):
            seen = target.play("write", at + np.arange(each) * size, size).latency_ns
            at += each * size
            found.append(_row(seen, page_bytes, units, together))
        if found[0][0] is not None and found[0][0] == found[1][0]:
            target.flush()
            row = int(found[0][0])
            explained = min(found[0][1], found[1][1])
            why = (
                f"Writes in order with the RAM full repeat their waits every {kib(row)}, which explains "
                f"{explained:.0%} of how unlike they are: all {units} units program then, {kib(row // units)} each."
            )
            return Rows(row, units, explained, why, seen)
    target.flush()
    why = "Writes in order with the RAM full repeat no wait after a whole number of pages on each unit."
    return Rows(None, units, 0.0, why, seen)


def _row(took_ns: Array, page_bytes: int, units: int, together: int) -> tuple[int | None, float]:
    """The row in bytes, of whole pages on each unit, and the share that it explains."""
    most = min(_LARGEST // page_bytes, took_ns.size * together // (_LOOKS * _TURNS * units))
    # Writes of a row by pages on each unit.
    by_pages = {pages: units * pages // together for pages in range(1, most + 1)}
    periods = [writes for writes in by_pages.values() if writes > 1]
    writes, explained = period_of(took_ns, periods)
    return (None if writes is None else writes * together * page_bytes), explained


def period_of(took_ns: Array, periods: list[int]) -> tuple[int | None, float]:
    """The shortest of some periods by which times repeat.

    Parameters
    ----------
    took_ns : array
        Times in order.
    periods : list of int
        Those that are asked about, the shortest first.

    Returns
    -------
    period : int or None
        None if none explains most of the variance.
    explained : float
        Share of the variance that the best one explains, beyond chance; the median of looks of some turns.

    Examples
    --------
    >>> took = np.tile([9.0, 1.0, 1.0, 1.0, 1.0, 1.0], 100)
    >>> period_of(took, [2, 4, 6, 8, 10, 12])
    (6, 1.0)
    """
    shares = {period: _explained(took_ns, period) for period in periods}
    best = max(shares.values(), default=0.0)
    if best < _EXPLAINED:
        return None, best
    return next(period for period in periods if shares[period] >= _NEAR * best), best


def _explained(took_ns: Array, period: int) -> float:
    turns = max(_TURNS, _LOOK // period)
    looks = took_ns.size // (turns * period)
    if looks < _LOOKS:
        return 0.0
    look = took_ns[: looks * turns * period].reshape(looks, turns, period)
    whole = look.reshape(looks, -1).var(axis=1)
    # What the means of phases vary by chance is a share of 1 / turns of all.
    place = look.mean(axis=1).var(axis=1)
    share = (place - whole / turns) / np.maximum(whole * (1 - 1 / turns), 1e-9)
    return round(float(np.median(share)), 4)


def program_of_rows(found: Finding, seen: Rows) -> Finding:
    """The program, where pairs of reads did not show it."""
    if found.verdict != "unknown" or seen.row_bytes is None:
        return found
    program = seen.row_bytes // seen.units
    low, high = program / 2, 2.0 * program
    plots = found.plots + seen.plots
    return verdicts.found(
        "program-unit", program, "B", (low, high), UNTESTED, seen.why, plots, found.figures
    )


def stripe_of_rows(found: Finding, seen: Rows) -> Finding:
    """The stripe, in programs, where neither steps nor pairs showed it."""
    if found.verdict != "unknown" or seen.row_bytes is None:
        return found
    row, program = seen.row_bytes, seen.row_bytes // seen.units
    plots = found.plots + seen.plots
    low, high = float(row - program), float(row + program)
    return verdicts.found("stripe", row, "B", (low, high), UNTESTED, seen.why, plots, found.figures)


def _filled(context: Context) -> int:
    return max(min(_FILL, context.target.capacity_bytes // _PART) // _EACH, 1) * _EACH
