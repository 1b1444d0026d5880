"""Writes in order with random reads among them: what mixing the two costs.

Hu 2012, dissertation, section 5.1.3, Figure 5.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from flashwright.characterization.base import Bench, Estimate, Result, long_table
from flashwright.target.arrays import KIB, Array
from flashwright.target.guard import CODES

__all__ = ["Mixing", "MixingResult", "lowest"]

# Bytes of a request (Figure 5.3).
_SIZE_BYTES = 4 * KIB
# Requests outstanding (Figure 5.3).
_DEPTH = 64
# Steps of the share of writes (Figure 5.3).
_STEPS = 10
# Requests of a point.
_REQUESTS = 50_000
# The same in quick mode.
_QUICK_REQUESTS = 10_000
# Share of them before measuring. Chosen: the write buffer is as full as it will be.
_WARM = 0.2
# Bytes of a write that fills the drive.
_PREFILL_BYTES = 128 * KIB
_READ, _WRITE = CODES["read"], CODES["write"]


@dataclass(frozen=True, eq=False)
class MixingResult(Result):
    """What mixing costs.

    Attributes
    ----------
    request_bytes, depth : int
        Size of reads and writes, requests outstanding.
    write_share : array of float64
        Share of writes, 0 to 1.
    bandwidth_bytes_per_s, read_mean_ns, write_mean_ns : array of float64
        Of both together, and mean responses; NaN where there are none of the kind.
    lowest_at : float
        Share of writes where bandwidth is least, by a parabola through the three lowest points; NaN until all are
        there.
    drop : float
        One less the least bandwidth over that of the better end.
    """

    request_bytes: int
    depth: int
    write_share: Array
    bandwidth_bytes_per_s: Array
    read_mean_ns: Array
    write_mean_ns: Array
    lowest_at: float
    drop: float

    def to_arrow(self) -> pa.Table:
        """A row for each share of writes."""
        return long_table(
            {"write_share": self.write_share},
            bandwidth_bytes_per_s=self.bandwidth_bytes_per_s,
            read_mean_ns=self.read_mean_ns,
            write_mean_ns=self.write_mean_ns,
        )


class Mixing:
    """Bandwidth of writes in order with a share of random reads."""

    NAME: ClassVar[str] = "mixing"
    ABOUT: ClassVar[str] = (
        "Sequential writes of 4 KiB mixed with 0 to 100 % random reads of 4 KiB, 64 outstanding, on a sequentially "
        "written drive: bandwidth over the share (Hu 2012, section 5.1.3)."
    )

    def estimate(self, bench: Bench) -> Estimate:
        """A fill, then as many requests a share."""
        volume = (_STEPS + 1) * _count(bench) * _SIZE_BYTES
        capacity = bench.target.capacity_bytes
        return Estimate(
            bytes_read=volume // 2,
            bytes_written=volume // 2 + capacity,
            requests=volume // _SIZE_BYTES + capacity // _PREFILL_BYTES,
        )

    def run(self, bench: Bench) -> Iterator[MixingResult]:
        """Fill once, then one share after the other; writes go on where they were."""
        rng = bench.rng("mixing")
        capacity = bench.target.capacity_bytes
        bench.purge()
        bench.in_order(capacity, _PREFILL_BYTES, capacity)
        places, count = capacity // _SIZE_BYTES, _count(bench)
        warm = int(count * _WARM)
        shares, rows, at = [], [], 0
        for step in range(_STEPS + 1):
            writes = round(count * step / _STEPS)
            kinds = rng.permutation(
                np.repeat(np.array([_READ, _WRITE], np.uint8), [count - writes, writes])
            )
            where = rng.integers(0, places, count)
            where[kinds == _WRITE] = (at + np.arange(writes)) % places
            at += writes
            times = bench.play(kinds, where * _SIZE_BYTES, _SIZE_BYTES, _DEPTH)
            # The measured ones are those that end last; in a closed loop the queue is full all along.
            ended = np.sort(times.ended_ns)
            took_ns = max(float(ended[-1] - ended[warm - 1]), 1.0)
            late, response = kinds[warm:], times.latency_ns[warm:]
            shares.append(step / _STEPS)
            rows.append(
                (
                    (count - warm) * _SIZE_BYTES / took_ns * 1e9,
                    *(
                        float(response[late == kind].mean()) if np.any(late == kind) else np.nan
                        for kind in (_READ, _WRITE)
                    ),
                )
            )
            share, (bandwidth, read, write) = np.array(shares), np.array(rows).T
            whole = step == _STEPS
            least, drop = lowest(share, bandwidth) if whole else (float("nan"),) * 2
            yield MixingResult(_SIZE_BYTES, _DEPTH, share, bandwidth, read, write, least, drop)


def _count(bench: Bench) -> int:
    return _QUICK_REQUESTS if bench.quick else _REQUESTS


def lowest(share: Array, bandwidth: Array) -> tuple[float, float]:
    """Where a curve is lowest and how deep that is. The rule is ours: the paper reads its curves by eye.

    Parameters
    ----------
    share : array of float64
        Ascending.
    bandwidth : array of float64
        In any unit.

    Returns
    -------
    at : float
        The least point of the parabola through the three lowest points; that of the curve where these do not lie
        around a minimum.
    drop : float
        One less the least value over the greater one of the two ends.

    Examples
    --------
    >>> lowest(np.array([0, 0.25, 0.5, 0.75, 1]), np.array([100.0, 60, 40, 60, 90]))
    (0.5, 0.6)
    """
    three = np.sort(np.argsort(bandwidth, kind="stable")[:3])
    x, y = share[three], bandwidth[three]
    curve, slope, _ = np.polyfit(x, y, 2)
    at = -slope / (2 * curve) if curve > 0 else np.nan
    if not x[0] <= at <= x[-1]:
        at = share[np.argmin(bandwidth)]
    return round(float(at), 6), float(1 - bandwidth.min() / max(bandwidth[0], bandwidth[-1]))
