"""What reserved space does for random writes on the drive itself: speed once settled, and its own amplification.

The measured way to the advice that `advise space` computes on a model: the part of the address space that is used is
filled in order, written at random until it is steady by the rule of SNIA's specification, and the drive's own counters
are read meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from flashwright.characterization.base import (
    DEPTH,
    REQUEST_BYTES,
    Bench,
    Described,
    Estimate,
    Result,
    long_table,
)
from flashwright.report import text
from flashwright.report.charts import Chart, Columns, axis
from flashwright.report.tables import Cell, Table
from flashwright.target.arrays import KIB, Array
from flashwright.target.counters import Counters, amplification
from flashwright.target.question import kib
from flashwright.target.stats import steadiness

__all__ = ["USED", "Reserve", "Reserves", "ReservesResult", "asked_at_most", "flash_pool"]

# Shares of the address space that are in use.
USED = (0.7, 0.8, 0.9, 1.0)
# The same in quick mode.
_QUICK_USED = (0.8, 0.9, 1.0)
# Capacities of what is used that are written at random, at most.
_FILLS = 6
# The same in quick mode.
_FILLS_QUICK = 3
# Windows of a capacity of what is used.
_WINDOWS = 100
# Parts of them that are steady or not: SNIA's five rounds.
_PARTS = 5
_PER_PART = _WINDOWS // _PARTS
# Speed over that of the first windows, up to which it has fallen: the spare flash is used up. Chosen.
_FALLEN = 0.8
# The first windows.
_FIRST = 3
# By how much the flash by every share in use may differ, as a share. Derived: twice what windows of 1 % can be off by.
_POOLS_APART = 0.02


@dataclass(frozen=True, eq=False)
class Reserve(Result):
    """What random writes met with one share of the address space in use.

    Attributes
    ----------
    used_share : float
        Share of the address space that is written; the rest is reserved.
    written : array of float64, one a window
        Data written at random by the window's end, capacities of what is used.
    bandwidth_bytes_per_s : array of float64, one a window
        Of the window.
    steady : bool
        Whether the last capacity was steady: five parts within 20 %, rising or falling by 10 % at most.
    steady_bytes_per_s : float
        Mean over the last capacity.
    break_at : float
        Capacities written at random when the speed first fell half the way; NaN where it did not fall.
    write_amplification : float
        Bytes to the flash over bytes from the host in the last capacity, by the drive's counters; NaN where it counts
        none.
    """

    used_share: float
    written: Array
    bandwidth_bytes_per_s: Array
    steady: bool
    steady_bytes_per_s: float
    break_at: float
    write_amplification: float

    def to_arrow(self) -> pa.Table:
        """A row for each window."""
        made = long_table(
            {"written": self.written}, bandwidth_bytes_per_s=self.bandwidth_bytes_per_s
        )
        return made.add_column(0, "used_share", pa.array([self.used_share] * made.num_rows))


@dataclass(frozen=True, eq=False)
class ReservesResult(Described):
    """What reserves did.

    Attributes
    ----------
    request_bytes, depth : int
        Size of the random writes, and how many are outstanding.
    reserves : tuple of Reserve
        One for each share in use, the largest reserve first.
    pool_bytes : float
        Flash that data can go to, from the breaks: what is used and as much again as was written before the speed fell.
        NaN where `pool_why` says why.
    pool_why : str
        What that rests on.
    counters : str
        Why there is no write amplification; empty where there is.
    """

    request_bytes: int
    depth: int
    reserves: tuple[Reserve, ...]
    pool_bytes: float
    pool_why: str
    counters: str

    def to_arrow(self) -> pa.Table:
        """A row for each share in use and window."""
        return pa.concat_tables([each.to_arrow() for each in self.reserves])

    def headline(self) -> str:
        """What each reserve gives, and how much flash there is."""
        pool = "flash for data: cannot tell" if np.isnan(self.pool_bytes) else ""
        pool = pool or f"flash for data: {text.size_bytes(self.pool_bytes)}"
        each_gives = "; ".join(
            f"{text.share(1 - each.used_share)} unused: {text.rate_bytes(each.steady_bytes_per_s)}"
            + (
                ""
                if np.isnan(each.write_amplification)
                else f", write amplification {each.write_amplification:.2f}"
            )
            + ("" if each.steady else " (not steady yet)")
            for each in self.reserves
        )
        return f"{each_gives}; {pool} ({self.pool_why})"

    def table(self) -> tuple[list[str], list[list[Cell]]]:
        """A row for each reserve."""
        header = ["unused", "bandwidth", "least", "write amplification", "steady"]
        return header, [
            [
                Cell(text.share(1 - each.used_share), 1 - each.used_share),
                Cell(text.rate_bytes(each.steady_bytes_per_s), each.steady_bytes_per_s),
                Cell(
                    text.rate_bytes(float(each.bandwidth_bytes_per_s.min())),
                    float(each.bandwidth_bytes_per_s.min()),
                ),
                Cell(
                    text.ABSENT
                    if np.isnan(each.write_amplification)
                    else f"{each.write_amplification:.2f}",
                    each.write_amplification,
                ),
                Cell("yes" if each.steady else "no"),
            ]
            for each in self.reserves
        ]

    def charts(self, columns: Columns) -> list[Chart]:
        """Bandwidth over what was written."""
        series: list[dict[str, Any]] = []
        for number, each in enumerate(self.reserves):
            x = columns.add(f"reserves.x.{number}", each.written)
            y = columns.add(f"reserves.y.{number}", each.bandwidth_bytes_per_s / 1e6)
            name = f"{text.share(1 - each.used_share)} unused"
            series.append({"part": name, "colour": number, "x": x, "y": y})
        names, rows = self.table()
        written = axis("data written at random, capacities of what is used", "number", zero=True)
        view = {
            "name": "MB/s",
            "x": written,
            "y": axis("bandwidth [MB/s]", "number", zero=True),
            "series": series,
        }
        about = (
            f"Writes of {kib(self.request_bytes)}, {self.depth} outstanding, over the part of the address space that "
            "is in use, filled in order before. Write amplification is the drive's own over the last capacity"
        )
        about += f"; here there is none: {self.counters}." if self.counters else "."
        table = Table([name.capitalize() for name in names], rows)
        return [Chart("reserves", "Random writes by reserve", about, views=[view], table=table)]


class Reserves:
    """Random writes with parts of the address space left unused, until they are steady."""

    NAME: ClassVar[str] = "reserves"
    ABOUT: ClassVar[str] = (
        "Random writes of 4 KiB, 32 outstanding, over 70 to 100 % of the address space, filled in order before, until "
        "they are steady: bandwidth, where the drive counts bytes to its flash write amplification, and how much flash "
        "there is, from when the speed falls. Only if named."
    )
    ON_REQUEST: ClassVar[bool] = True

    def estimate(self, bench: Bench) -> Estimate:
        """The writes at most; there are no reads."""
        return asked_at_most(
            bench.slots * REQUEST_BYTES,
            bench.ranges(USED, _QUICK_USED),
            _fills(bench),
            _request_bytes(bench),
        )

    def run(self, bench: Bench) -> Iterator[ReservesResult]:
        """The largest reserve first."""
        done: list[Reserve] = []
        with Counters.of(bench.target) as counters:
            for used in bench.ranges(USED, _QUICK_USED):
                done.append(_reserve(bench, used, counters))
                known = not np.isnan(done[-1].write_amplification)
                why = counters.why or "nothing that it tells counts bytes to its flash"
                pool, pool_why = flash_pool(done, bench.target.capacity_bytes)
                yield ReservesResult(
                    _request_bytes(bench), DEPTH, tuple(done), pool, pool_why, "" if known else why
                )


def asked_at_most(
    capacity_bytes: int,
    used: Sequence[float] = USED,
    fills: int = _FILLS,
    request_bytes: int = 4 * KIB,
) -> Estimate:
    """What reserves ask of a drive at most: each share in use is filled in order, then written at random.

    Parameters
    ----------
    capacity_bytes : int
        Of the drive.
    used : sequence of float, optional
        Shares in use.
    fills : int, optional
        How often each is written at random at most.
    request_bytes : int, optional
        Of the random writes.

    Examples
    --------
    >>> asked_at_most(10**12).bytes_written / 1e12
    23.8
    """
    in_order = sum(used) * capacity_bytes
    at_random = in_order * fills
    requests = in_order / REQUEST_BYTES + at_random / request_bytes
    return Estimate(bytes_written=round(in_order + at_random), requests=round(requests))


def flash_pool(reserves: Sequence[Reserve], capacity_bytes: int) -> tuple[float, str]:
    """Flash that data can go to, bytes; NaN where it can't be told, and why.

    After a fill in order a drive takes random writes at full speed until its erased blocks are used up: then what is
    used and what was written since fill its flash. A write cache falls too, but not in step with what is used, so every
    share in use must give the same flash. Blocks that the drive keeps erased are no part of it.

    Parameters
    ----------
    reserves : sequence of Reserve
        By rising share in use.
    capacity_bytes : int
        Of the drive.
    """
    nothing = float("nan")
    pools = np.array(
        [each.used_share * (1 + each.break_at) for each in reserves if not np.isnan(each.break_at)]
    )
    if len(reserves) < 2 or pools.size < len(reserves):
        short = (
            "one share in use tells too little"
            if len(reserves) < 2
            else "the speed did not fall everywhere"
        )
        return nothing, short
    apart = float(np.ptp(pools) / pools.mean())
    if apart > _POOLS_APART:
        return (
            nothing,
            f"the breaks give flash that differs by {apart:.1%}, so something else slows it down too",
        )
    return float(
        pools.mean() * capacity_bytes
    ), f"the breaks of {pools.size} shares in use agree within {apart:.1%}"


def _break(rates: Array) -> float:
    """Windows before the speed fell half the way from the first windows to the least; NaN where it did not fall."""
    first, least = float(np.median(rates[:_FIRST])), float(rates.min())
    if least > _FALLEN * first:
        return float("nan")
    half = (first + least) / 2
    at = int(np.argmax(rates < half))
    before = float(rates[at - 1]) if at else first
    # A window in which it fell took its time partly before: by time, not by speed.
    share = (1 / rates[at] - 1 / least) / (1 / before - 1 / least) if before > least else 0.0
    return at + float(np.clip(share, 0.0, 1.0))


def _fills(bench: Bench) -> int:
    return bench.settings.fills or (_FILLS_QUICK if bench.quick else _FILLS)


def _request_bytes(bench: Bench) -> int:
    return bench.up(4 * KIB)


def _reserve(bench: Bench, used: float, counters: Counters) -> Reserve:
    bench.purge()
    size = _request_bytes(bench)
    end = max(int(bench.slots * used), 1) * REQUEST_BYTES
    bench.in_order(end, REQUEST_BYTES, end)
    rng = bench.rng(f"reserves {used}")
    places = end // size
    edges = np.linspace(0, places, _WINDOWS + 1).astype(np.int64)
    rates: list[float] = []
    laps: list[Any] = []
    counters.lap()
    for _ in range(_fills(bench)):
        for count in np.diff(edges):
            times = bench.play("write", rng.integers(0, places, count) * size, size, DEPTH)
            rates.append(times.rate(int(count) * size))
            if len(rates) % _PER_PART == 0:
                laps.append(counters.lap())
        steady = steadiness(np.array(rates[-_WINDOWS:]).reshape(_PARTS, -1).mean(axis=1)).steady
        if steady and len(rates) >= 2 * _WINDOWS:
            break
    bandwidth = np.array(rates)
    ratio = amplification(laps[-_PARTS:])
    return Reserve(
        used_share=used,
        written=np.arange(1, bandwidth.size + 1) / _WINDOWS,
        bandwidth_bytes_per_s=bandwidth,
        steady=steady and bandwidth.size >= 2 * _WINDOWS,
        steady_bytes_per_s=float(1 / np.mean(1 / bandwidth[-_WINDOWS:])),
        break_at=_break(bandwidth) / _WINDOWS,
        write_amplification=float("nan") if ratio is None else ratio,
    )
