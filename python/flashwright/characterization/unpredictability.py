"""Random reads among as many random writes: how their response changes as the drive fills and cleans.

Hu 2012, dissertation, section 4.2.5, Figures 4.6 to 4.9; Hu, Jiang, Manden 2012, section 1.3.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from flashwright.target.guard import CODES
from flashwright.target.stats import kolmogorov

__all__ = ["PHASES", "Range", "Unpredictability", "UnpredictabilityResult", "peaks", "verdict"]

# Phases of a run: each a capacity of data written.
PHASES = 3
# Shares of the address space (section 4.2.5).
_RANGES = (0.1, 0.5, 0.7, 0.9, 1.0)
# The same in quick mode.
_QUICK_RANGES = (0.1, 1.0)
# Bins of a density.
_BINS = 200
# Windows of a capacity, for the curve over time.
_WINDOWS = 100
_READ, _WRITE = CODES["read"], CODES["write"]
# Bins over which the density is smoothed: 1 % of the axis. Chosen: with it a smooth density of 10,000 reads or more has
# one peak, and one of 1,000 has up to five by chance.
_SMOOTH_BINS = 2.0
# By how much of the highest peak another one stands out, at least. Chosen.
_PROMINENCE = 0.05


@dataclass(frozen=True, eq=False)
class Range(Result):
    """What reads within one range of the address space met, by phases: each a capacity of data written.

    Attributes
    ----------
    range_share : float
        P, the share of the address space that was read and written, 0 to 1.
    reads : array of int64, one a phase
        How many.
    mean_ns, deviation_ns, p99_ns : array of float64, one a phase
        Of the response of reads.
    distance : array of float64, one a phase
        Kolmogorov's distance of the responses from those of the first phase.
    edges_ns : array of float64
        Of equal bins, up to the 99.9th percentile of all phases.
    density : array of float64, phases by bins
        Per nanosecond.
    peaks : tuple of array of float64, one a phase
        Where the smoothed density has its peaks, nanoseconds.
    peak_heights : tuple of array of float64, one a phase
        How high they are, per nanosecond.
    written, response_mean_ns : array of float64, one a window
        Mean response by data written, capacities.
    verdict : {"stable", "unpredictable", "between"}
        By :func:`verdict`.
    """

    range_share: float
    reads: Ints
    mean_ns: Array
    deviation_ns: Array
    p99_ns: Array
    distance: Array
    edges_ns: Array
    density: Array
    peaks: tuple[Array, ...]
    peak_heights: tuple[Array, ...]
    written: Array
    response_mean_ns: Array
    verdict: str

    def to_arrow(self) -> pa.Table:
        """A row for each phase, from 1."""
        made = long_table(
            {"phase": np.arange(1, self.reads.size + 1)},
            reads=self.reads,
            mean_ns=self.mean_ns,
            deviation_ns=self.deviation_ns,
            p99_ns=self.p99_ns,
            distance=self.distance,
        )
        return made.add_column(0, "range_share", pa.array([self.range_share] * made.num_rows))


@dataclass(frozen=True, eq=False)
class UnpredictabilityResult(Result):
    """How predictable reads among writes are.

    Attributes
    ----------
    request_bytes, depth : int
        Size of reads and writes, requests outstanding.
    prefilled : bool
        Whether the drive was written once in order before; if not, reads go only to what was written.
    ranges : tuple of Range
        By ascending share of the address space.
    """

    request_bytes: int
    depth: int
    prefilled: bool
    ranges: tuple[Range, ...]

    def to_arrow(self) -> pa.Table:
        """A row for each range and phase."""
        return pa.concat_tables([each.to_arrow() for each in self.ranges])


class Unpredictability:
    """Response of random reads among as many random writes, in three phases of a drive fill each."""

    NAME: ClassVar[str] = "unpredictability"
    ABOUT: ClassVar[str] = (
        "Random reads and writes of 64 KiB, 1:1, 32 outstanding, within 10 to 100 % of the address space, until "
        "three capacities have been written: response times of reads per capacity (Hu 2012, section 4.2.5)."
    )

    def estimate(self, bench: Bench) -> Estimate:
        """Three capacities of each for every range, after the first writes."""
        count = len(bench.ranges(_RANGES, _QUICK_RANGES))
        volume = PHASES * bench.slots * count * REQUEST_BYTES
        first = bench.slots if bench.settings.prefill else DEPTH
        before = first * count * REQUEST_BYTES
        return Estimate(volume, volume + before, (2 * volume + before) // REQUEST_BYTES)

    def run(self, bench: Bench) -> Iterator[UnpredictabilityResult]:
        """Purge, read and write, one range after the other."""
        found: list[Range] = []
        for share in bench.ranges(_RANGES, _QUICK_RANGES):
            found.append(_range(bench, share))
            yield UnpredictabilityResult(REQUEST_BYTES, DEPTH, bench.settings.prefill, tuple(found))


class _Written:
    """The places that were written so far, in the order of their first write."""

    def __init__(self, within: int) -> None:
        self._seen = np.zeros(within, bool)
        self._places = np.empty(within, np.int64)
        self._count = 0

    def add(self, places: Ints) -> Ints:
        """Note writes; the numbers of those that were first at their place."""
        unique, first = np.unique(places, return_index=True)
        first = np.sort(first[~self._seen[unique]])
        new = places[first]
        self._seen[new] = True
        self._places[self._count : self._count + new.size] = new
        self._count += new.size
        return first

    @property
    def count(self) -> int:
        return self._count

    def pick(self, numbers: Ints) -> Ints:
        return self._places[numbers]


def _range(bench: Bench, share: float) -> Range:
    bench.purge()
    rng = bench.rng(f"unpredictability {share}")
    slots = bench.slots
    within = max(int(slots * share), 1)
    known = _Written(within)
    if bench.settings.prefill:
        bench.in_order(slots * REQUEST_BYTES, REQUEST_BYTES, slots * REQUEST_BYTES)
        known.add(np.arange(within))
    else:
        # So that the first reads find something.
        begin = rng.integers(0, within, DEPTH)
        bench.play("write", begin * REQUEST_BYTES, REQUEST_BYTES, DEPTH)
        known.add(begin)
    responses: list[Array] = []
    windows = []
    for _ in range(PHASES):
        kinds = rng.permutation(np.repeat(np.array([_READ, _WRITE], np.uint8), slots))
        is_read = kinds == _READ
        writes = rng.integers(0, within, slots)
        before = known.count
        first = known.add(writes)
        # A read goes to what was written before it, and not to what may still be on its way.
        written = np.cumsum(~is_read)[is_read]
        choice = before + np.searchsorted(first, np.maximum(written - DEPTH, 0))
        places = np.empty(kinds.size, np.int64)
        places[~is_read] = writes
        places[is_read] = known.pick((rng.random(choice.size) * choice).astype(np.int64))
        latency = bench.play(kinds, places * REQUEST_BYTES, REQUEST_BYTES, DEPTH).latency_ns
        reads = latency[is_read]
        responses.append(reads)
        edges = np.linspace(0, reads.size, _WINDOWS + 1).astype(np.int64)
        windows.append(np.add.reduceat(reads, edges[:-1]) / np.diff(edges))
    return _summarize(share, responses, np.concatenate(windows))


def _summarize(share: float, responses: list[Array], windows: Array) -> Range:
    ordered = [np.sort(each) for each in responses]
    top = float(np.quantile(np.concatenate(ordered), 0.999))
    edges = np.linspace(0, max(top, 1.0), _BINS + 1)
    density = np.array([np.histogram(each, edges)[0] / (each.size * edges[1]) for each in ordered])
    found = [peaks(each) for each in density]
    middles = (edges[:-1] + edges[1:]) / 2
    mean = np.array([each.mean() for each in ordered])
    deviation = np.array([each.std() for each in ordered])
    distance = np.array([kolmogorov(ordered[0], each) for each in ordered])
    return Range(
        range_share=share,
        reads=np.array([each.size for each in ordered]),
        mean_ns=mean,
        deviation_ns=deviation,
        p99_ns=np.array([np.quantile(each, 0.99) for each in ordered]),
        distance=distance,
        edges_ns=edges,
        density=density,
        peaks=tuple(middles[at] for at, _ in found),
        peak_heights=tuple(heights for _, heights in found),
        written=np.arange(1, windows.size + 1) / _WINDOWS,
        response_mean_ns=windows,
        verdict=verdict(mean, deviation, distance),
    )


def verdict(mean_ns: Array, deviation_ns: Array, distance: Array) -> str:
    """Whether later phases are like the first. The criteria are ours: the paper compares densities by eye.

    Parameters
    ----------
    mean_ns, deviation_ns, distance : array of float64, one a phase
        Mean and deviation of the responses, and Kolmogorov's distance from the first phase.

    Returns
    -------
    str
        ``stable`` if mean and deviation stay within 10 % and the distance below 0.1; ``unpredictable`` if the mean
        doubles or the deviation triples; otherwise ``between``.

    Examples
    --------
    >>> one = np.ones(3)
    >>> verdict(one, one, one * 0), verdict(np.array([1.0, 2, 4]), one, one), verdict(one * 1, one, one)
    ('stable', 'unpredictable', 'between')
    """
    means, deviations = mean_ns / mean_ns[0], deviation_ns / max(deviation_ns[0], 1.0)
    if means.max() >= 2 or deviations.max() >= 3:
        return "unpredictable"
    near = np.abs(means - 1).max() <= 0.1 and np.abs(deviations - 1).max() <= 0.1
    return "stable" if near and distance.max() < 0.1 else "between"


def peaks(density: Array) -> tuple[Ints, Array]:
    """Peaks of a density that stand out.

    Of fewer than 10,000 responses chance alone makes some.

    Parameters
    ----------
    density : array of float64
        Of equal bins.

    Returns
    -------
    at : array of int64
        Their bins.
    heights : array of float64
        Of the smoothed density there.

    Examples
    --------
    >>> bins = np.arange(200.0)
    >>> two = np.exp(-((bins - 50) ** 2) / 50) + 0.3 * np.exp(-((bins - 120) ** 2) / 50)
    >>> [int(at) for at in peaks(two)[0]]
    [50, 120]
    """
    # These take long to import, and most commands do without.
    from scipy.ndimage import gaussian_filter1d
    from scipy.signal import find_peaks

    smooth = np.asarray(gaussian_filter1d(density, _SMOOTH_BINS), np.float64)
    # A peak in the first bin has an edge to the left, too.
    padded = np.concatenate([[0.0], smooth, [0.0]])
    at, _ = find_peaks(padded, prominence=_PROMINENCE * padded.max())
    where = np.asarray(at, np.int64) - 1
    return where, smooth[where]
