"""Rounds of a fixed stimulus until the drive is in a steady state.

SNIA Solid State Storage Performance Test Specification, client and enterprise: purge, preconditioning independent of
the workload, rounds that depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashwright.characterization.base import (
    DEPTH,
    Bench,
    Estimate,
    Result,
    Variant,
    long_table,
)
from flashwright.target.arrays import KIB, Array, Ints
from flashwright.target.guard import CODES
from flashwright.target.stats import Window, steadiness

__all__ = ["SteadyState", "SteadyStateResult"]

# Rounds at most (SNIA SSS PTS).
ROUNDS_MAX = 25
# Rounds that must be steady (SNIA SSS PTS).
WINDOW = 5
# Sizes of requests, bytes (SNIA SSS PTS, IOPS test).
_SIZES_BYTES = tuple(int(kib * KIB) for kib in (1024, 128, 64, 32, 16, 8, 4, 0.5))
# Shares of reads (SNIA SSS PTS, IOPS test).
_READ_SHARES = (1.0, 0.95, 0.65, 0.5, 0.35, 0.05, 0.0)
# The same in quick mode.
_QUICK_SIZES_BYTES = (64 * KIB, 4 * KIB)
# The same in quick mode.
_QUICK_READ_SHARES = (1.0, 0.65, 0.0)
# Seconds of a cell on the drive's clock (SNIA SSS PTS).
_SECONDS = 60.0
# The same in quick mode.
_QUICK_SECONDS = 5.0
# Share of the range that a cell moves at most. Chosen: a round does not wear a small drive through.
_VOLUME_SHARE = 1 / 16
# Capacities written in order before the rounds (SNIA SSS PTS).
_INDEPENDENT_CAPACITIES = 2
# Bytes of such a write (SNIA SSS PTS).
_INDEPENDENT_BYTES = 128 * KIB
# Share of the address space that is active in the client variant (SNIA SSS PTS).
_CLIENT_RANGE = 0.75
# Share of reads and size by which steadiness is judged: random writes of 4 KiB (SNIA SSS PTS).
_TRACKED = (0.0, 4 * KIB)
_READ, _WRITE = CODES["read"], CODES["write"]


@dataclass(frozen=True, eq=False)
class SteadyStateResult(Result):
    """What the rounds found.

    Attributes
    ----------
    variant : {"client", "enterprise"}
        Which part of the specification.
    range_share : float
        Share of the address space that is active.
    depth : int
        Requests outstanding.
    size_bytes, read_share : array of float64
        Sizes and shares of reads of a round's cells.
    iops : array of float64, rounds by shares by sizes
        Requests a second.
    tracked_iops : array of float64, one a round
        Of random writes of 4 KiB (or of the least size the target takes), by which steadiness is judged.
    tracked_bytes : int
        Their size.
    steady : bool
        Whether a window of five rounds was steady.
    mean_iops, window_range, window_slope : float
        Of the last five rounds; NaN before there are five.
    """

    variant: Variant
    range_share: float
    depth: int
    size_bytes: Array
    read_share: Array
    iops: Array
    tracked_iops: Array
    tracked_bytes: int
    steady: bool
    mean_iops: float
    window_range: float
    window_slope: float

    def to_arrow(self) -> pa.Table:
        """A row for each round, share of reads and size."""
        rounds = np.arange(1, self.iops.shape[0] + 1)
        axes = {"round": rounds, "read_share": self.read_share, "size_bytes": self.size_bytes}
        return long_table(axes, iops=self.iops)


class SteadyState:
    """Rounds of reads and writes until a window of five is steady."""

    NAME: ClassVar[str] = "steady-state"
    ABOUT: ClassVar[str] = (
        "Two capacities of sequential 128 KiB writes, then up to 25 rounds of random requests, 7 shares of reads by "
        "8 sizes, until 4 KiB writes are steady over five rounds (SNIA SSS PTS). The setting of the write cache is "
        "not changed."
    )

    def estimate(self, bench: Bench) -> Estimate:
        """All 25 rounds; most drives need fewer."""
        cells = [(share, size) for share in _shares(bench) for size in _sizes(bench)]
        range_bytes = _range(bench)
        volumes = [_volume(range_bytes, size) for _, size in cells]
        limit = _seconds(bench)
        # Bound by time on large drives: at 500 MB/s and 50,000 requests per second.
        counts = [
            min(v // size, int(limit * min(50_000, 500e6 / size)))
            for v, (_, size) in zip(volumes, cells, strict=True)
        ]
        reads = sum(n * size * share for n, (share, size) in zip(counts, cells, strict=True))
        moved = sum(n * size for n, (_, size) in zip(counts, cells, strict=True))
        before = _INDEPENDENT_CAPACITIES * bench.target.capacity_bytes
        return Estimate(
            bytes_read=int(ROUNDS_MAX * reads),
            bytes_written=int(ROUNDS_MAX * (moved - reads)) + before,
            requests=ROUNDS_MAX * sum(counts) + before // _INDEPENDENT_BYTES,
            seconds_max=ROUNDS_MAX * len(cells) * limit + before / 500e6,
        )

    def run(self, bench: Bench) -> Iterator[SteadyStateResult]:
        """Purge, write in order, then rounds."""
        range_bytes = _range(bench)
        bench.purge()
        bench.in_order(
            _INDEPENDENT_CAPACITIES * bench.target.capacity_bytes, _INDEPENDENT_BYTES, range_bytes
        )
        shares, sizes = _shares(bench), _sizes(bench)
        tracked = shares.index(_TRACKED[0]), sizes.index(_TRACKED[1])
        rng = bench.rng("steady-state")
        rounds: list[Array] = []
        for _ in range(ROUNDS_MAX):
            rounds.append(
                np.array(
                    [
                        [_cell(bench, rng, range_bytes, share, size) for size in sizes]
                        for share in shares
                    ]
                )
            )
            iops = np.array(rounds)
            followed = iops[:, tracked[0], tracked[1]]
            full = followed.size >= WINDOW
            window = steadiness(followed[-WINDOW:]) if full else Window(*(float("nan"),) * 3)
            yield SteadyStateResult(
                variant=bench.settings.variant,
                range_share=_share(bench),
                depth=DEPTH,
                size_bytes=np.array(sizes, np.float64),
                read_share=np.array(shares),
                iops=iops,
                tracked_iops=followed,
                tracked_bytes=_TRACKED[1],
                steady=window.steady,
                mean_iops=window.mean,
                window_range=window.range_share,
                window_slope=window.slope_share,
            )
            if window.steady:
                return


def _share(bench: Bench) -> float:
    return _CLIENT_RANGE if bench.settings.variant == "client" else 1.0


def _range(bench: Bench) -> int:
    return bench.down(bench.target.capacity_bytes * _share(bench))


def _sizes(bench: Bench) -> list[int]:
    sizes = _QUICK_SIZES_BYTES if bench.quick else _SIZES_BYTES
    return [size for size in sizes if size % bench.target.block_bytes == 0]


def _shares(bench: Bench) -> list[float]:
    return list(_QUICK_READ_SHARES if bench.quick else _READ_SHARES)


def _seconds(bench: Bench) -> float:
    return _QUICK_SECONDS if bench.quick else _SECONDS


def _volume(range_bytes: int, size: int) -> int:
    return max(int(range_bytes * _VOLUME_SHARE), size)


def _cell(
    bench: Bench, rng: np.random.Generator, range_bytes: int, read_share: float, size: int
) -> float:
    """Requests a second of one share of reads and one size."""
    places = range_bytes // size

    def draw(count: int) -> tuple[npt.NDArray[np.uint8], Ints]:
        kinds = np.where(rng.random(count) < read_share, _READ, _WRITE).astype(np.uint8)
        return kinds, rng.integers(0, places, count) * size

    played, took_ns, _ = bench.timed(
        draw, size, DEPTH, seconds=_seconds(bench), requests_max=_volume(range_bytes, size) // size
    )
    return played / took_ns * 1e9
