"""Random writes within a part of the address space, until the drive was written several times over.

Hu 2012, dissertation, sections 4.2.2 and 4.2.3, Figures 4.1, 4.3 and 4.4; Hu, Jiang, Manden 2012, section 1.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from flashwright.characterization.base import (
    DEPTH,
    REQUEST_BYTES,
    Bench,
    Estimate,
    Result,
    long_table,
)
from flashwright.target.arrays import Array, Ints
from flashwright.target.stats import change_point
from flashwright.target.target import Times

__all__ = ["RANGES", "Curve", "Fills", "FillsResult", "knee", "mapping"]

# Shares of the address space (section 4.2.2).
RANGES = (0.1, 0.5, 0.7, 0.9, 1.0)
# Shares of the address space in quick mode.
_QUICK_RANGES = (0.1, 0.5, 1.0)
# Capacities written for each range (section 4.2.2).
_FILLS = 6
# The same in quick mode.
_FILLS_QUICK = 3
# Windows of a capacity, for which bandwidth is computed.
_WINDOWS = 100
# Requests whose times are held at once: 256 GiB of writes, some 250 MB of memory.
_KEPT = 1 << 22
# Medians of the undisturbed drive above which a response is slow. Chosen: what Figure 4.3 shows as high.
_SLOW = 5.0
# rho from which on a curve is flat. Chosen.
_FLAT = 0.9
# rho up to which a drive has lost to cleaning. Chosen: the dissertation's drives fell to 30 % and less.
_FALLEN = 0.7
# Capacities between which the knee of a page map lies. Chosen: the capacity, and spare space of up to half of it.
_KNEES = (0.9, 1.5)
# By how much rho may rise from one range to the next and still count as falling. Measured: four times what four seeds
# differed by (0.012) on three simulated drives.
_NOISE = 0.05
# Share of a capacity that is written in order for comparison.
_IN_ORDER = 0.5


@dataclass(frozen=True, eq=False)
class Curve(Result):
    """What writes within one range of the address space met.

    Attributes
    ----------
    range_share : float
        P, the share of the address space that was written, 0 to 1.
    written : array of float64, one a window
        Data written by the window's end, capacities.
    bandwidth_bytes_per_s, response_mean_ns, response_max_ns : array of float64, one a window
        Of the requests that ended in the window.
    slow : array of float64, one a window
        Share of responses above five times the median of the first half capacity.
    peak_bytes_per_s : float
        Median bandwidth over the first half capacity.
    rho : float
        Median bandwidth over the last half capacity, over the peak.
    knee : float
        Capacities written when bandwidth began to fall; NaN where it did not fall below 90 % of the peak.
    slow_share : float
        Share of all responses above five times the median of the first half capacity.
    spike_share : float
        Share of the last capacity's responses (its last 256 GiB) above five times their own median.
    """

    range_share: float
    written: Array
    bandwidth_bytes_per_s: Array
    response_mean_ns: Array
    response_max_ns: Array
    slow: Array
    peak_bytes_per_s: float
    rho: float
    knee: float
    slow_share: float
    spike_share: float

    def to_arrow(self) -> pa.Table:
        """A row for each window of the range."""
        made = long_table(
            {"written": self.written},
            bandwidth_bytes_per_s=self.bandwidth_bytes_per_s,
            response_mean_ns=self.response_mean_ns,
            response_max_ns=self.response_max_ns,
            slow=self.slow,
        )
        return made.add_column(0, "range_share", pa.array([self.range_share] * made.num_rows))


@dataclass(frozen=True, eq=False)
class FillsResult(Result):
    """What drive fills found.

    Attributes
    ----------
    request_bytes, depth, fills : int
        Size of the writes, requests outstanding, capacities written.
    prefilled : bool
        Whether the drive was written once in order before.
    in_order_bytes_per_s : float
        Bandwidth of writes of the same size and depth in order, on the drive as new (or prefilled).
    curves : tuple of Curve
        One a range.
    mapping : str
        ``page``, ``log-block``, ``flat`` (log-block or much spare space) or ``inconclusive``.
    mapping_why : str
        What that rests on.
    """

    request_bytes: int
    depth: int
    fills: int
    prefilled: bool
    in_order_bytes_per_s: float
    curves: tuple[Curve, ...]
    mapping: str
    mapping_why: str

    def to_arrow(self) -> pa.Table:
        """A row for each range and window."""
        return pa.concat_tables([curve.to_arrow() for curve in self.curves])


class Fills:
    """Bandwidth and response of random writes over drive fills, by the range that they go to."""

    NAME: ClassVar[str] = "fills"
    ABOUT: ClassVar[str] = (
        "Random writes of 64 KiB, 32 outstanding, within 10 to 100 % of the address space, the drive purged before "
        "each range: bandwidth and response time over data written (Hu 2012, section 4.2.2)."
    )

    def estimate(self, bench: Bench) -> Estimate:
        """The writes; there are no reads."""
        each = _fills(bench) + bench.settings.prefill
        capacities = each * len(bench.ranges(RANGES, _QUICK_RANGES)) + _IN_ORDER
        requests = round(capacities * bench.slots)
        return Estimate(bytes_written=requests * REQUEST_BYTES, requests=requests)

    def run(self, bench: Bench) -> Iterator[FillsResult]:
        """Write in order for comparison, then at random within each range."""
        _prepare(bench)
        order = np.arange(int(bench.slots * _IN_ORDER)) * REQUEST_BYTES
        times = bench.play("write", order, REQUEST_BYTES, DEPTH)
        in_order = order.size * REQUEST_BYTES / times.duration_ns * 1e9
        curves: list[Curve] = []
        for share in bench.ranges(RANGES, _QUICK_RANGES):
            curves.append(_curve(bench, share))
            named, why = mapping(curves, in_order)
            yield FillsResult(
                REQUEST_BYTES,
                DEPTH,
                _fills(bench),
                bench.settings.prefill,
                in_order,
                tuple(curves),
                named,
                why,
            )


def _fills(bench: Bench) -> int:
    return bench.settings.fills or (_FILLS_QUICK if bench.quick else _FILLS)


def _prepare(bench: Bench) -> None:
    bench.purge()
    if bench.settings.prefill:
        bench.in_order(bench.slots * REQUEST_BYTES, REQUEST_BYTES, bench.slots * REQUEST_BYTES)


def _curve(bench: Bench, share: float) -> Curve:
    _prepare(bench)
    rng = bench.rng(f"fills {share}")
    slots = bench.slots
    within = max(int(slots * share), 1)
    fills = _fills(bench)
    edges = np.linspace(0, slots, _WINDOWS + 1).astype(np.int64)
    # On a large drive the times of a whole fill would not fit in memory.
    stretch = max(_WINDOWS * _KEPT // slots, 1)
    stretches = [edges[first : first + stretch + 1] for first in range(0, _WINDOWS, stretch)]
    parts: list[tuple[Array, Array, Array, Array]] = []
    slow_above = 0.0
    for of_stretch in stretches * fills:
        places = rng.integers(0, within, of_stretch[-1] - of_stretch[0]) * REQUEST_BYTES
        times = bench.play("write", places, REQUEST_BYTES, DEPTH)
        if not parts:
            slow_above = _SLOW * float(np.median(times.latency_ns[: slots // 2]))
        parts.append(_windows(times, of_stretch - of_stretch[0], slow_above))
    bandwidth, mean, largest, slow = (np.concatenate(column) for column in zip(*parts, strict=True))
    half = _WINDOWS // 2
    peak = float(np.median(bandwidth[:half]))
    rho = float(np.median(bandwidth[-half:])) / peak
    last = times.latency_ns
    return Curve(
        range_share=share,
        written=np.arange(1, fills * _WINDOWS + 1) / _WINDOWS,
        bandwidth_bytes_per_s=bandwidth,
        response_mean_ns=mean,
        response_max_ns=largest,
        slow=slow,
        peak_bytes_per_s=peak,
        rho=rho,
        knee=knee(bandwidth, peak) / _WINDOWS,
        slow_share=float(slow.mean()),
        spike_share=float(np.mean(last > _SLOW * np.median(last))),
    )


def _windows(times: Times, edges: Ints, slow_above: float) -> tuple[Array, Array, Array, Array]:
    """Bandwidth, mean and largest response and share of slow ones, by order of completion."""
    order = np.argsort(times.ended_ns, kind="stable")
    ended = times.ended_ns[order]
    response = times.latency_ns[order]
    ends = np.concatenate([[times.submitted_ns.min()], ended[edges[1:] - 1]]).astype(np.float64)
    counts = np.diff(edges)
    return (
        counts * REQUEST_BYTES / np.maximum(np.diff(ends), 1.0) * 1e9,
        np.add.reduceat(response, edges[:-1]) / counts,
        np.maximum.reduceat(response, edges[:-1]),
        np.add.reduceat((response > slow_above).astype(np.float64), edges[:-1]) / counts,
    )


def knee(bandwidth: Array, peak: float) -> float:
    """Windows before bandwidth began to fall.

    Two straight segments are fitted to the logarithm of the bandwidth, over twice the windows
    that it takes to fall half the way: what comes after is a tail that one segment does not describe.

    Parameters
    ----------
    bandwidth : array of float64
        Of equal windows.
    peak : float
        In the same unit.

    Returns
    -------
    float
        NaN where the last windows are at 90 % of the peak or more.

    Examples
    --------
    >>> knee(np.array([200.0] * 110 + [80.0] * 190), 200.0)
    110.0
    """
    half = min(_WINDOWS // 2, bandwidth.size)
    end = float(np.median(bandwidth[-half:]))
    if end >= _FLAT * peak:
        return float("nan")
    # A dip of a window is not the fall: the median of five.
    smooth = np.median(
        np.lib.stride_tricks.sliding_window_view(np.pad(bandwidth, 2, mode="edge"), 5), axis=1
    )
    fallen = int(np.argmax(smooth < np.sqrt(peak * end)))
    looked_at = np.log(bandwidth[: max(2 * fallen, 6)])
    return float(change_point(looked_at)[0])


def mapping(curves: Sequence[Curve], in_order_bytes_per_s: float) -> tuple[str, str]:
    """What kind of mapping the curves look like, after section 4.2.3 of the dissertation; the limits are ours.

    A page-mapped drive falls when it is full, the further the more of it is in use. A log-block drive merges all along
    and is flat; so is one with much spare space, but that one writes no faster in order.

    Parameters
    ----------
    curves : sequence of Curve
        By ascending range.
    in_order_bytes_per_s : float
        Bandwidth of writes in order.

    Returns
    -------
    name, why : str
        ``page``, ``log-block``, ``flat`` or ``inconclusive``, and what it rests on.
    """
    whole = next((curve for curve in curves if curve.range_share == 1), None)
    if whole is None or len(curves) < 2:
        return "inconclusive", "needs the whole range and a part of it"
    rho = np.array([curve.rho for curve in curves])
    levels = ", ".join(f"{100 * each:.0f}" for each in rho)
    if rho.min() >= _FLAT:
        random = whole.peak_bytes_per_s * whole.rho
        times = in_order_bytes_per_s / random
        flat = f"{levels} % of the peak at the end; sequential writes {times:.1f} times as fast"
        return (
            ("log-block", flat)
            if times >= 2
            else ("flat", f"{flat}: log-block or much spare space")
        )
    falls = bool(np.all(np.diff(rho) <= _NOISE))
    if whole.rho <= _FALLEN and falls and _KNEES[0] <= whole.knee <= _KNEES[1]:
        return "page", f"falls after {whole.knee:.2f} capacities, to {levels} % of the peak"
    return "inconclusive", f"{levels} % of the peak at the end" + (
        "" if np.isnan(whole.knee) else f"; falls after {whole.knee:.2f} capacities"
    )
