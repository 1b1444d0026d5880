"""Kinds of stalls among random writes, and how to see which of them are cleaning.

Cleaning strikes once for so many bytes, however large the writes are and however fast they come. Other causes of long
writes follow other rules:

- A map that is not in RAM, and the tails of a network, go by requests: writes twice as long meet half as many for their
  bytes.
- Housekeeping and throttling go by time: writes at half the pace meet twice as many.
- Seeks go by distance: they strike where a write lies far from the one before.
- A bad place strikes there alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flashwright.probing.probes.shared.overwriting import Base, write_and_flush
from flashwright.target.arrays import Array, Flags, Ints
from flashwright.target.question import kib
from flashwright.target.stats import chance_above
from flashwright.target.target import Target

__all__ = ["LEAST", "Kind", "Steady", "describe", "kinds_of", "measure"]


LEAST = 20
"""The fewest stalls that say how often they come."""
# Two kinds lie apart by this factor and more, with nothing between. Chosen: beyond the noise of a stall.
_APART = 1.25
# Share of the stalls in each tail that bridges no gap. Chosen.
_STRAY = 0.02
# Standard errors between 1 and the ratio that a rule by requests or by time gives, at least. Chosen: counts of two arms
# are alike where their ratio lies nearer to 1.
_ERRORS = 3.0
# Places among which stalls are counted: sixteenths of the drive. Chosen.
_PLACES = 16
# The chance below which a difference of places is none. Chosen: several things are asked of each drive.
_CHANCE = 1e-5


@dataclass(frozen=True)
class Kind:
    """Stalls that take about as long as each other.

    Attributes
    ----------
    low_ns, high_ns : float
        What they take beyond a write without one.
    count : int
        In the first measurement.
    by_requests, by_time : float
        How many there are for as many bytes, in writes twice as long and at half the pace, as shares of `count`.
    paced : float
        How much longer the same bytes took at that pace: what a rule by time gives for `by_time`.
    doubled : float
        How long the same bytes took in writes twice as long, as a share: what a rule by time gives for `by_requests`.
    error : float
        Standard error of the logarithm of either.
    """

    low_ns: float
    high_ns: float
    count: int
    by_requests: float
    by_time: float
    paced: float
    doubled: float
    error: float

    @property
    def goes_by(self) -> str:
        """``"bytes"``, ``"requests"``, ``"time"``, or empty where nobody can tell."""
        # By requests there are half as many in writes twice as long; by time, as many more or fewer as either arm took
        # longer for its bytes.
        half, least = np.log(2.0), _ERRORS * self.error
        slower, doubled = np.log(max(self.paced, 1.0)), np.log(max(self.doubled, 1e-9))
        size = np.log(max(self.by_requests, 1e-9))
        time = np.log(max(self.by_time, 1e-9))
        if half < least or (slower < least and abs(doubled) < least):
            return ""
        same_size = abs(size) < half / 2 and (
            abs(doubled) < least or abs(size) < abs(size - doubled)
        )
        same_time = abs(time) < max(slower / 2, 2 * self.error)
        if same_size and same_time:
            return "bytes"
        if same_time and size <= -half / 2 and abs(doubled) < least:
            return "requests"
        return "time" if slower >= least and time >= slower / 2 else ""


@dataclass(frozen=True, eq=False)
class Steady:
    """Random writes in steady state.

    Attributes
    ----------
    size_bytes : int
        Of each write.
    latencies_ns : array
        One a write.
    offsets : array
        Where each began, bytes.
    base : Base
        Of writes that meet no stall.
    kinds : list of Kind
        By rising length.
    """

    size_bytes: int
    latencies_ns: Array
    offsets: Ints
    base: Base
    kinds: list[Kind]

    @property
    def extra_ns(self) -> Array:
        """What each write took beyond the base."""
        return self.latencies_ns - self.base.median_ns

    @property
    def stalled(self) -> Flags:
        """Whether a write took too long for chance."""
        return self.latencies_ns > self.base.stall_ns

    def of(self, kinds: list[Kind]) -> Flags:
        """Whether a write met a stall of one of some kinds."""
        met = np.zeros(self.latencies_ns.size, bool)
        for kind in kinds:
            met |= (self.extra_ns > kind.low_ns) & (self.extra_ns <= kind.high_ns)
        return met

    def placed(self, met: Flags, capacity_bytes: int) -> str:
        """Why the addresses of stalled writes contradict cleaning; empty if they do not."""
        from scipy.stats import chi2

        jumps = np.abs(np.diff(self.offsets, prepend=self.offsets[:1])).astype(np.float64)
        if met.any() and not met.all():
            far = chance_above(jumps[met], jumps[~met])
            # By more than chance, and by much: the median stalled write comes from two thirds of the way up.
            rank = float(np.mean(jumps < np.median(jumps[met])))
            if far < _CHANCE and rank > 0.65:
                return "long writes are those far from the write before, like seeks"
        places = self.offsets * _PLACES // capacity_bytes
        seen = np.bincount(places[met], minlength=_PLACES).astype(np.float64)
        wanted = np.bincount(places, minlength=_PLACES) * float(met.mean())
        used = wanted > 0
        distance = float((np.square(seen - wanted)[used] / wanted[used]).sum())
        if chi2.sf(distance, int(used.sum()) - 1) < _CHANCE and seen.max() > 2 * wanted.mean():
            return "long writes lie in some places of the drive and not in others"
        return ""


def kinds_of(extra_ns: Array) -> list[tuple[float, float]]:
    """Borders of the kinds of stalls, by gaps between what they take.

    Parameters
    ----------
    extra_ns : array
        What stalled writes took beyond others.

    Returns
    -------
    list of (float, float)
        Above the first and up to the second, nanoseconds, by rising length.

    Examples
    --------
    >>> low, high = np.full(50, 1e6), np.full(30, 9e6)
    >>> [(round(a / 1e6), round(b / 1e6, 1)) for a, b in kinds_of(np.concatenate([low, high]))]
    [(0, 3.0), (3, inf)]
    """
    ordered = np.sort(np.maximum(extra_ns, 1.0))
    cut = int(ordered.size * _STRAY)
    kept = np.log(ordered[cut : ordered.size - cut])
    gaps = np.diff(kept)
    borders = [0.0]
    for at in np.flatnonzero(gaps > np.log(_APART)):
        if min(at + 1, kept.size - at - 1) >= LEAST:
            borders.append(float(np.exp((kept[at] + kept[at + 1]) / 2)))
    return list(zip(borders, [*borders[1:], float("inf")], strict=True))


def measure(
    target: Target, size: int, wanted: int, most: int, rng: np.random.Generator
) -> Iterator[float | Steady]:
    """Random writes in steady state, the same twice as long, and the same at half the pace.

    Parameters
    ----------
    target : Target
        In steady state.
    size : int
        Of a write, bytes.
    wanted : int
        Stalls to wait for.
    most : int
        Writes of the first measurement at most.
    rng : numpy Generator
        Draws the places.

    Yields
    ------
    float or Steady
        Shares of the work that are done; at last the measurement.
    """
    slots = target.capacity_bytes // size
    parts: list[Array] = []
    places: list[Ints] = []
    written, seen = 0, 0
    while written < most and (seen < wanted or written < 2048):
        offsets = rng.integers(0, slots, 1024) * size
        parts.append(write_and_flush(target, offsets, size))
        places.append(offsets)
        base = Base.of(np.concatenate(parts))
        seen = int(np.count_nonzero(np.concatenate(parts) > base.stall_ns))
        written += 1024
        yield 0.4 * min(written / most, 1.0)
    latencies = np.concatenate(parts)
    extra = latencies - base.median_ns
    stalled = latencies > base.stall_ns
    first = Steady(size, latencies, np.concatenate(places), base, [])
    if np.count_nonzero(stalled) < LEAST:
        yield first
        return
    ranges = kinds_of(extra[stalled])
    floor = base.stall_ns - base.median_ns
    ranges = [(max(low, floor), high) for low, high in ranges]
    doubled = write_and_flush(
        target, rng.integers(0, slots // 2, written // 2) * 2 * size, 2 * size
    )
    yield 0.7
    # Rests shorter than stalls, which cannot hide in them, and so long that the pace is about half.
    shortest = min(float(np.median(extra[(extra > low) & (extra <= high)])) for low, high in ranges)
    rest_ns = min(float(latencies.mean()), shortest / 2)
    paced, took = _at_half_pace(target, rng.integers(0, slots, written) * size, size, rest_ns)
    arms = (
        extra,
        doubled - float(np.median(doubled)),
        paced - float(np.median(paced)),
    )
    whole = float(latencies.sum())
    times = (took / whole, float(doubled.sum()) / whole)
    kinds = [_kind(arms, low, high, times) for low, high in ranges]
    if len(kinds) > 1 and not any(kind.goes_by in ("time", "requests") for kind in kinds):
        # Gaps that mean nothing: cleaning that moves few pages or many.
        kinds = [_kind(arms, ranges[0][0], ranges[-1][1], times)]
    yield Steady(size, latencies, first.offsets, base, kinds)


def _kind(
    arms: tuple[Array, Array, Array], low: float, high: float, times: tuple[float, float]
) -> Kind:
    counts = [int(np.count_nonzero((arm > low) & (arm <= high))) for arm in arms]
    error = float(np.sqrt(1 / max(counts[0], 1) + 1 / max(min(counts), 1)))
    first = max(counts[0], 1)
    return Kind(low, high, counts[0], counts[1] / first, counts[2] / first, *times, error)


def _at_half_pace(target: Target, offsets: Ints, size: int, rest_ns: float) -> tuple[Array, float]:
    """Writes with a rest after each, and what all took, ns."""
    begun = target.now_ns
    latencies = np.empty(offsets.size)
    kinds, sizes = np.array([1, 3], np.uint8), np.array([size, 0])
    for at, offset in enumerate(offsets.tolist()):
        times = target.play(kinds, [offset, 0], sizes)
        latencies[at] = float(times.ended_ns[1] - times.submitted_ns[0])
        target.idle(rest_ns)
    return latencies, float(target.now_ns - begun)


def describe(kinds: list[Kind], size: int) -> str:
    """Kinds of stalls in words."""
    texts = []
    for kind in kinds:
        long = f"over {kind.low_ns / 1e6:.3g} ms" + (
            f" up to {kind.high_ns / 1e6:.3g} ms" if np.isfinite(kind.high_ns) else ""
        )
        texts.append(
            f"{kind.count} of {long} ({kind.by_requests:.2f} times as many for the bytes in writes of {kib(2 * size)}, "
            f"{kind.by_time:.2f} times at half the pace)"
        )
    return "; ".join(texts)
