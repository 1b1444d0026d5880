"""Bandwidth and response by requests outstanding and their size, for random reads and random writes.

Hu 2012, dissertation, section 4.2.6, Figures 4.10 to 4.12.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from flashwright.characterization.base import (
    Bench,
    Estimate,
    Result,
    long_table,
)
from flashwright.target.arrays import KIB, Array, Ints

__all__ = ["SATURATED", "DepthAndSize", "DepthAndSizeResult", "Grid", "judge_grid"]

# Sizes of requests, KiB (Figure 4.10).
_SIZES_KIB = (1, 4, 16, 64, 128, 256)
# Requests outstanding (Figure 4.10).
_DEPTHS = (1, 2, 4, 8, 16, 32, 64)
# The same in quick mode.
_QUICK_DEPTHS = (1, 4, 8, 16, 32)
# Seconds of a point on the drive's clock. Source: section 4.2.1.2 has 15, so that cleaning has little part.
_SECONDS = 15.0
# The same in quick mode.
_QUICK_SECONDS = 2.0
# Share of the capacity that a point writes, or reads, at most. Chosen: a small drive would be full sooner.
_VOLUME_SHARE = 0.25
# Share of the highest bandwidth from which on the response time decides (section 4.2.6).
_NEAR_PEAK = 0.9
SATURATED = 0.95
"""A size is saturated from the least depth on that has this share of its highest bandwidth."""
# Bytes of a write that fills the drive.
_PREFILL_BYTES = 128 * KIB


@dataclass(frozen=True, eq=False)
class Grid(Result):
    """Random reads, or random writes.

    Attributes
    ----------
    kind : {"read", "write"}
        Which.
    size_bytes, depth : array of int64
        The axes.
    bandwidth_bytes_per_s, response_mean_ns : array of float64, sizes by depths
        What was measured; NaN where a point is missing.
    best_size_bytes, best_depth : int
        The pair of least mean response among those of at least 90 % of the highest bandwidth.
    saturation_depth : array of int64, one a size
        The least depth with 95 % of the size's highest bandwidth.
    slope_ns : array of float64, one a size
        Rise of the mean response a request outstanding, from saturation on; NaN with fewer than three points.
    linearity : array of float64, one a size
        R squared of that line.
    """

    kind: Literal["read", "write"]
    size_bytes: Ints
    depth: Ints
    bandwidth_bytes_per_s: Array
    response_mean_ns: Array
    best_size_bytes: int
    best_depth: int
    saturation_depth: Ints
    slope_ns: Array
    linearity: Array

    def to_arrow(self) -> pa.Table:
        """A row for each size and depth."""
        made = long_table(
            {"size_bytes": self.size_bytes, "depth": self.depth},
            bandwidth_bytes_per_s=self.bandwidth_bytes_per_s,
            response_mean_ns=self.response_mean_ns,
        )
        return made.add_column(0, "kind", pa.array([self.kind] * made.num_rows))


@dataclass(frozen=True, eq=False)
class DepthAndSizeResult(Result):
    """What depth and size do.

    Attributes
    ----------
    seconds : float
        Of the drive's time that a point takes at most.
    grids : tuple of Grid
        Reads, then writes; sizes that were not finished are left out.
    """

    seconds: float
    grids: tuple[Grid, ...]

    def to_arrow(self) -> pa.Table:
        """A row for each kind, size and depth."""
        return pa.concat_tables([grid.to_arrow() for grid in self.grids])


class DepthAndSize:
    """Bandwidth and response by requests outstanding and their size."""

    NAME: ClassVar[str] = "depth-and-size"
    ABOUT: ClassVar[str] = (
        "Random reads of a sequentially written drive and random writes to a purged one, 1 to 256 KiB, 1 to 64 "
        "outstanding: bandwidth, response time and the best combination (Hu 2012, section 4.2.6)."
    )

    def estimate(self, bench: Bench) -> Estimate:
        """A quarter of the capacity a point at most; on large drives the time of a point ends it earlier."""
        capacity = bench.target.capacity_bytes
        depths = len(_depths(bench))
        points = depths * _sizes(bench).size
        # What a point moves at 500 MB/s in its time, where the drive is larger than that.
        volume = int(min(capacity * _VOLUME_SHARE, _seconds(bench) * 500e6))
        # The size says how many requests that are; small ones are bound by the drive's rate, taken as 50,000 a second.
        most = _seconds(bench) * 50_000
        requests = sum(int(min(volume / size, most)) for size in _sizes(bench)) * depths
        moved = sum(int(min(volume, most * size)) for size in _sizes(bench)) * depths
        before = capacity // _PREFILL_BYTES
        return Estimate(
            bytes_read=moved,
            bytes_written=moved + capacity,
            requests=2 * requests + before,
            seconds_max=2 * points * _seconds(bench) + capacity / 500e6,
        )

    def run(self, bench: Bench) -> Iterator[DepthAndSizeResult]:
        """Fill once and read; then write, the drive purged before each point."""
        sizes, depths = _sizes(bench), _depths(bench)
        done: list[Grid] = []
        bench.purge()
        capacity = bench.target.capacity_bytes
        bench.in_order(capacity, _PREFILL_BYTES, capacity)
        kinds: tuple[Literal["read", "write"], ...] = ("read", "write")
        for kind in kinds:
            bandwidth, response = (np.full((sizes.size, depths.size), np.nan) for _ in range(2))
            for i, size in enumerate(sizes):
                for j, depth in enumerate(depths):
                    if kind == "write":
                        bench.purge()
                    bandwidth[i, j], response[i, j] = _point(bench, kind, int(size), int(depth))
                rows = slice(0, i + 1)
                grid = judge_grid(kind, sizes[rows], depths, bandwidth[rows], response[rows])
                yield DepthAndSizeResult(_seconds(bench), (*done, grid))
            done.append(grid)


def _sizes(bench: Bench) -> Ints:
    sizes = np.array(_SIZES_KIB) * KIB
    return np.asarray(sizes[sizes % bench.target.block_bytes == 0])


def _depths(bench: Bench) -> Ints:
    return np.array(_QUICK_DEPTHS if bench.quick else _DEPTHS)


def _seconds(bench: Bench) -> float:
    return _QUICK_SECONDS if bench.quick else _SECONDS


def _point(
    bench: Bench, kind: Literal["read", "write"], size: int, depth: int
) -> tuple[float, float]:
    """Bandwidth and mean response of one pair."""
    rng = bench.rng(f"depth-and-size {kind} {size} {depth}")
    places = bench.target.capacity_bytes // size
    most = max(int(places * _VOLUME_SHARE), 1)
    played, took_ns, waited_ns = bench.timed(
        lambda count: (kind, rng.integers(0, places, count) * size),
        size,
        depth,
        seconds=_seconds(bench),
        requests_max=most,
    )
    return played * size / took_ns * 1e9, waited_ns / played


def judge_grid(
    kind: Literal["read", "write"],
    size_bytes: Ints,
    depth: Ints,
    bandwidth_bytes_per_s: Array,
    response_mean_ns: Array,
) -> Grid:
    """Saturation, linearity and the best pair. The rules are ours: the paper reads its curves by eye.

    Parameters
    ----------
    kind : {"read", "write"}
        What was measured.
    size_bytes, depth : array of int64
        The axes, ascending.
    bandwidth_bytes_per_s, response_mean_ns : array of float64, sizes by depths
        What was measured.

    Returns
    -------
    Grid
        With its figures.
    """
    peak = bandwidth_bytes_per_s.max()
    candidates = np.argwhere(bandwidth_bytes_per_s >= _NEAR_PEAK * peak)
    i, j = min(candidates.tolist(), key=lambda at: (response_mean_ns[at[0], at[1]], at))
    saturation, slopes, fits = [], [], []
    for bandwidth, response in zip(bandwidth_bytes_per_s, response_mean_ns, strict=True):
        first = int(np.argmax(bandwidth >= SATURATED * bandwidth.max()))
        saturation.append(int(depth[first]))
        slope, fit = _line(depth[first:].astype(np.float64), response[first:])
        slopes.append(slope)
        fits.append(fit)
    return Grid(
        kind=kind,
        size_bytes=size_bytes,
        depth=depth,
        bandwidth_bytes_per_s=bandwidth_bytes_per_s.copy(),
        response_mean_ns=response_mean_ns.copy(),
        best_size_bytes=int(size_bytes[i]),
        best_depth=int(depth[j]),
        saturation_depth=np.array(saturation),
        slope_ns=np.array(slopes),
        linearity=np.array(fits),
    )


def _line(x: Array, y: Array) -> tuple[float, float]:
    """Slope and R squared of the least-squares line; NaN with fewer than three points."""
    if x.size < 3:
        return float("nan"), float("nan")
    slope, level = np.polyfit(x, y, 1)
    left = np.square(y - slope * x - level).sum()
    return float(slope), float(1 - left / max(np.square(y - y.mean()).sum(), 1e-12))
