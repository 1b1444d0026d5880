"""Periods of steps and conflicts among the places of a drive, by the times of requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from flashwright.drive.findings import Mark, Plot, Series
from flashwright.probing.probes.parallelism.conflicts import Sharing
from flashwright.target.arrays import Array
from flashwright.target.question import kib

__all__ = [
    "AGREE",
    "CLEAR",
    "INNER_MOST",
    "MEDIAN_ERROR",
    "ONE_BY_ONE",
    "STEP_LEAST",
    "STEP_MOST",
    "STEP_SEEN",
    "UNEVEN",
    "WINDOWS",
    "Conflicts",
    "Steps",
    "clear_conflicts",
    "conflict_period",
    "conflicts_plot",
    "inner_share",
    "sharing_plots",
    "steps_of",
    "steps_plot",
    "units_by_steps",
]

# What a further page adds, as a share of the first one, from which on nothing runs beside it. Chosen: the link overlaps
# less than a seventh.
ONE_BY_ONE = 0.85
# Lengths of the curve that are looked at, pages, the shortest first. Chosen: a buffer that is full changes the curve
# further on, so that short lengths come before long ones.
WINDOWS = (8, 12, 16, 24, 32, 48, 64, 96, 128)
# Share of the resamplings that a verdict needs. Chosen: one in ten may say something else.
AGREE = 0.9
# The same where pairs over any distance, or as many groups of random places, bear the verdict out. Chosen: lower, since
# they are a second witness.
AGREE_PAIRS = 0.7
# Two levels of conflict differ by this share at least: a read of the cells, where the lower level is a transfer.
# Measured on the drives that we drew: a twentieth.
UNEVEN = 0.05
# Standard errors by which a level has to stand out. Chosen: four leave one chance in ten thousand.
CLEAR = 4.0
# The standard error of a median over that of a mean of normal values. Derived: the root of half of pi.
MEDIAN_ERROR = 1.25
# A step as a share of one page alone, at least. Derived: a busy unit takes the next page after as long as one alone
# takes, less what link and firmware add. Measured on the drives that we drew: three quarters and more. Where the bus is
# the narrow place the step is one transfer, which is less, unless it takes three times a program: then the buses are
# what works at once.
STEP_LEAST = 0.75
# The same at most. Chosen: more is a write that is taken in parts, or merges.
STEP_MOST = 1.7
# The highest rise inside of a turn, as a share of the step at its end. Derived: pages inside of a turn go to free units
# and cost what a bus or a link takes. Chosen: a higher one is a buffer that takes a write in larger parts.
INNER_MOST = 0.6
# Pairs of random places that wait, over as many as the period says, at most. Derived: parity and members of a RAID
# double the number; the root of two lies half the way.
_AS_MANY = 1.4
# A step of less than this share of a page's latency counts as none. Chosen: about the noise of a level.
STEP_SEEN = 0.1


@dataclass(frozen=True, eq=False)
class Steps:
    """Latencies of writes of 1, 2, 3 ... clustered pages, and what they show."""

    latency_ns: Array
    """By pages, by repeats."""
    period: int | None
    """After this many pages the curve repeats, one step higher; 1 if each page costs the same."""
    step_share: float
    """That step without what is linear in the pages, as a share of the latency of one page."""
    agree: float
    """Share of resamplings that give this period."""
    inner_share: float = 0.0
    """The highest rise inside of a turn, as a share of that at its end."""

    held_back: float | None = None
    """What each page adds to a short write after rest, where that is much less: something limits the whole device."""
    in_ram: bool = False
    """Whether a write and its flush take no longer than a read: RAM takes it, and the steps are not those of flash."""

    @property
    def one_by_one(self) -> bool:
        """Whether each page waits for the one before."""
        if self.held_back is not None or self.in_ram:
            return False
        share = ONE_BY_ONE <= self.step_share <= STEP_MOST
        return self.period == 1 and share and self.agree >= AGREE


@dataclass(frozen=True, eq=False)
class Conflicts:
    """How long pairs of reads take by their distance, and what that shows."""

    grain: Literal["page", "block"]
    grain_bytes: int
    pair_ns: Array
    """By distance in grains, 1 first, by repeats."""
    period: int | None
    agree: float
    anywhere: float = 1.0
    """How many pairs of random places wait, times the period."""
    borne_out: bool = False
    """Whether random places fall into as many groups."""

    @property
    def matches_random(self) -> bool:
        """Whether as many pairs of random places wait as where the period has one place for each unit."""
        # What cannot be counted is no reason against it, but leaves the period untested.
        if self.borne_out:
            return True
        return np.isnan(self.anywhere) or 1 / _AS_MANY < self.anywhere < _AS_MANY

    @property
    def units(self) -> int:
        """The period, where one was found."""
        return self.period or 0


def _step_period(level: Array, error: Array) -> int | None:
    """The shortest period by which a curve repeats itself, higher by a constant.

    For a period p the curve is ``a[k mod p] + g * (k div p)``; the shortest p is taken that leaves about the residual
    of the best one. None if no period with two repeats and more fits.
    """
    n = level.size
    residuals = {}
    k = np.arange(n)
    weight = 1 / np.maximum(error, 1e-3 * level)
    for period in range(1, n // 2 + 1):
        phase, turn = k % period, (k // period).astype(float)
        # The step by weighted least squares with the phases' means taken out.
        total = np.bincount(phase, weight**2, period)
        y = level - (np.bincount(phase, weight**2 * level, period) / total)[phase]
        x = turn - (np.bincount(phase, weight**2 * turn, period) / total)[phase]
        step = float((weight**2 * x * y).sum() / (weight**2 * x * x).sum())
        free = n - period - 1
        if free >= 3:
            residuals[period] = float(np.square(weight * (y - step * x)).sum() / free)
    if not residuals:
        return None
    least = min(residuals.values())
    if least > 9:
        return None
    return next(period for period, value in residuals.items() if value <= 2 * least + 1)


def steps_of(level: Array, error: Array) -> tuple[int | None, float, int]:
    """The period of the steps, the height of one as a share of the first level, and the length that shows them.

    The first length of the curve counts on which a period repeats twice and steps by a page's time; if there is none,
    what all of the curve shows.
    """
    period, share, window = None, 0.0, level.size
    for window in (*(w for w in WINDOWS if w < level.size), level.size):
        period = _step_period(level[:window], error[:window])
        if period is None:
            continue
        rises = np.diff(level[:window])
        gain = float(np.median(level[period:window] - level[: window - period]))
        inside = np.arange(1, window) % period != 0
        linear = float(np.median(rises[inside])) if inside.any() else 0.0
        share = (gain - period * max(linear, 0.0)) / float(level[0])
        least = ONE_BY_ONE if period == 1 else STEP_LEAST
        if least <= share <= STEP_MOST:
            break
    return period, share, window


def inner_share(level: Array, period: int) -> float:
    """How high the highest rise inside of a turn is, as a share of that from a turn to the next."""
    rises = np.diff(level)
    phase = np.arange(1, rises.size + 1) % period
    by_phase = [float(np.median(rises[phase == at])) for at in range(period)]
    return max(by_phase[1:], default=0.0) / by_phase[0] if by_phase[0] > 0 else 0.0


def conflict_period(level: Array, error: float) -> int | None:
    """The period whose multiples, and they alone, lie at one upper level.

    Where the bus is shared there are two levels of conflict: the multiples of the bus's period are uneven then, every
    so many of them higher than the others, and only those of the units' period are all alike.
    """
    n = level.size
    j = np.arange(1, n + 1)
    for period in range(2, n // 2 + 1):
        inside = level[j % period == 0]
        gap = inside.min() - level[j % period != 0].max()
        if gap <= CLEAR / 2 * error:
            continue
        turn = np.arange(1, inside.size + 1)
        if not any(
            _differ(inside[turn % by == 0], inside[turn % by != 0], error, UNEVEN * gap)
            for by in range(2, inside.size // 2 + 1)
        ):
            return period
    return None


def _differ(some: Array, others: Array, error: float, least: float) -> bool:
    """Whether the mean of some levels lies above that of the others by `least`, each level with this error."""
    apart = float(some.mean() - others.mean())
    return bool(apart > max(CLEAR * error * np.sqrt(1 / some.size + 1 / others.size), least))


def clear_conflicts(conflicts: list[Conflicts]) -> Conflicts | None:
    """The pairs of reads that show a period clearly."""
    clear = (
        found for found in conflicts if found.period is not None and found.agree >= AGREE_PAIRS
    )
    return next(clear, None)


def units_by_steps(steps: Steps, reads_step: bool, units: int | None = None) -> int | None:
    """Units by the steps of writes, where those are whole ones and reads bear them out.

    Parameters
    ----------
    steps : Steps
        Of writes.
    reads_step : bool
        Whether reads step there too.
    units : int, optional
        What pairs of reads say: as many steps need fewer resamplings that agree.
    """
    low, high = STEP_LEAST, STEP_MOST
    if steps.period is None or steps.period == 1 or not reads_step or steps.in_ram:
        return None
    least = AGREE_PAIRS if steps.period == units else AGREE
    if steps.agree < least or steps.inner_share > INNER_MOST:
        return None
    return steps.period if low <= steps.step_share <= high else None


def sharing_plots(sharing: Sharing) -> tuple[Plot, ...]:
    """Pairs by how long they take, those inside of groups and those between them."""
    if not sharing.inside_ns.size:
        return ()
    series = []
    for name, took in (
        ("inside of a group", sharing.inside_ns),
        ("between groups", sharing.between_ns),
    ):
        if took.size:
            share = np.linspace(0.0, 1.0, min(took.size, 400))
            series.append(Series(name, share, np.quantile(took, share)))
    return (
        Plot(
            f"Two reads at once at {sharing.places} random places",
            "share of the pairs that take no longer",
            "until both ended [ns]",
            tuple(series),
        ),
    )


def steps_plot(steps: Steps) -> Plot:
    """The times of requests by their size, for the first places."""
    pages = np.arange(1.0, steps.latency_ns.shape[0] + 1.0, dtype=np.float64)
    shown = steps.latency_ns[:, :8]
    marks: tuple[Mark, ...] = ()
    if steps.period is not None and steps.period > 1:
        marks = (Mark(steps.period + 0.5, f"{steps.period} pages"),)
    return Plot(
        "Aligned writes of several clustered pages",
        "clustered pages of a write",
        "latency with flush [ns]",
        (
            Series("writes", np.repeat(pages, shown.shape[1]), shown.ravel()),
            Series("median", pages, np.median(steps.latency_ns, axis=1).astype(np.float64), "line"),
        ),
        marks,
    )


def conflicts_plot(conflicts: Conflicts) -> Plot:
    """The times of pairs by how far apart they lie."""
    apart = np.arange(1.0, conflicts.pair_ns.shape[0] + 1.0, dtype=np.float64)
    shown = conflicts.pair_ns[:, :8]
    marks: tuple[Mark, ...] = ()
    if conflicts.period is not None:
        marks = (Mark(float(conflicts.period), f"{conflicts.period} apart"),)
    name = (
        "clustered pages" if conflicts.grain == "page" else f"runs of {kib(conflicts.grain_bytes)}"
    )
    return Plot(
        f"Two reads at once, {name} apart",
        f"distance [{name}]",
        "until both ended [ns]",
        (
            Series("pairs", np.repeat(apart, shown.shape[1]), shown.ravel()),
            Series(
                "median", apart, np.median(conflicts.pair_ns, axis=1).astype(np.float64), "line"
            ),
        ),
        marks,
    )
