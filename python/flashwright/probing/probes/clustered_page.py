"""The clustered page: what a drive writes as one, so that a write of a part of it has to read the rest first.

Procedure 1 of Kim, Seo, Jung, Kim, Huh: "Parameter-aware I/O management for solid state disks" (2011), section 4.2.3,
proposes sizes; direct writes decide::

      one clustered page            next one
    |......................|......................|......
    [========= whole ======)                                no read
                           [===== short at its end ==)      reads its last block
    ...                     [= short at its start ===)      reads its first block

All three write the same pages, so that they differ by nothing but the read-modify-write. A write of half a clustered
page always reads, a short one no more than a whole one: no divisor of the clustered page shows a difference. A size
that is no multiple shows it at some places, and not at both ends. So the smallest size that shows it at both ends is
the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from flashwright.drive.findings import Finding, Mark, Plot, Series, unknown
from flashwright.probing.probes.shared import verdicts
from flashwright.probing.probes.shared.overwriting import write_and_flush
from flashwright.target.arrays import MIB, Array
from flashwright.target.question import Context, Cost, kib
from flashwright.target.stats import mad, resampled

__all__ = ["ClusteredPage"]


# Steps of the sizes, bytes, and how many of each. Source: periods of four steps and more with four multiples in range
# are found well (algorithms.md 8.1, verified there), so that these reach 2, 8, 64, 256 KiB and 1 MiB; shorter ones are
# left to direct writes. The last is for what no published drive has (Kim 2011: 16 to 128 KiB), and is tried only if
# nothing was found.
_SCALES = ((512, 64), (2048, 128), (4096, 256), (32768, 128))
# Deviations of the summed drops of a period that is proposed. Chosen: algorithms.md 8.1 asks for 6 since it decides by
# it; here direct writes decide, so that a weaker one may be proposed.
_PROPOSED_Z = 4.0
# Periods that are proposed at most.
_PROPOSALS = 6
# Deviations of bootstrapped medians that each of the two differences needs. Derived: some hundred sizes are tried and
# both have to hold, so that 4 leaves less than one chance in a million.
_CLEAR_Z = 4.0
# Deviations at either end from which on a closer look is worth it. Chosen.
_HINT_Z = 1.0
# The smaller of the two differences over the larger, at least. Derived: the read costs both ends alike; a size that is
# one and a half clustered pages shows it at every other place of one end, half as much at most.
_ENDS_RATIO = 0.5
# Resamplings of the repeats.
_ROUNDS = 200


@dataclass(frozen=True)
class _Effort:
    """How much is asked in a mode."""

    repeats: int
    """Writes of one size of Procedure 1."""
    places: int
    """Writes of each kind at a first look at a size."""
    places_max: int
    """The same, where a closer look is needed."""
    region_bytes: int
    """Of the target, that is filled and written to."""


# Source: Kim 2011 writes 64 times. Measured: the weakest drive that we drew (a read of 40 us beside a program of 1.5
# ms, 7 % noise) takes some 700 writes for 4 deviations.
_EFFORTS = {
    "quick": _Effort(24, 64, 1024, 1 << 30),
    "full": _Effort(64, 128, 2048, 4 << 30),
}


@dataclass(frozen=True, eq=False)
class _Sweep:
    """Procedure 1 at one scale."""

    step_bytes: int
    latency_ns: Array
    """Sizes of one step, two, three; by repeats."""

    @property
    def level_ns(self) -> Array:
        """The median of each size: cleaning and merges strike less than half of the writes of a favoured size."""
        return np.asarray(np.median(self.latency_ns, axis=1))

    def periods(self) -> list[int]:
        """Sizes at whose multiples the latency drops, bytes; what stands out most comes first."""
        return [period * self.step_bytes for period in _comb(self.level_ns)]


def _comb(level: Array) -> list[int]:
    """Periods, in steps, whose multiples lie below their neighbours.

    The drops are taken as shares of the neighbours' mean, so that they weigh the same along the curve. For each period
    with four multiples or more the drops are summed in units of their scatter (algorithms.md 8.1, steps 2 and 3).
    """
    n = level.size
    if n < 8:
        return []
    beside = (level[:-2] + level[2:]) / 2
    drop = np.zeros(n)
    drop[1:-1] = (beside - level[1:-1]) / beside
    scatter = max(mad(drop[1:-1]), 1e-6)
    scores = {}
    for period in range(2, (n - 1) // 4 + 1):
        multiples = drop[np.arange(period, n, period) - 1]
        scores[period] = float(multiples.sum() / (scatter * np.sqrt(multiples.size)))
    best = sorted(scores, key=lambda period: -scores[period])[:_PROPOSALS]
    return [period for period in best if scores[period] >= _PROPOSED_Z]


@dataclass(frozen=True, eq=False)
class _Arms:
    """Latencies of whole writes and of those that are short by one block at their end or at their start."""

    size_bytes: int
    whole_ns: Array
    short_end_ns: Array
    short_start_ns: Array

    def joined(self, other: _Arms) -> _Arms:
        """Both together."""
        return _Arms(
            self.size_bytes,
            np.concatenate([self.whole_ns, other.whole_ns]),
            np.concatenate([self.short_end_ns, other.short_end_ns]),
            np.concatenate([self.short_start_ns, other.short_start_ns]),
        )

    def resampled(self, rng: np.random.Generator, rounds: int) -> tuple[Array, Array, Array]:
        """Resamplings of the three kinds, each of (rounds, writes)."""
        whole, end, start = (
            resampled(values, rng, rounds)
            for values in (self.whole_ns, self.short_end_ns, self.short_start_ns)
        )
        return whole, end, start

    def slower_odds(self, rng: np.random.Generator, rounds: int) -> Array:
        """Of resamplings, how often a short write takes longer than a whole one; that end counts where it is rarer.

        One half if being short changes nothing. Unlike medians it does not jump where merges strike every other write.
        """
        whole, end, start = self.resampled(rng, rounds)
        odds = np.empty((rounds, 2))
        for at in range(rounds):
            ordered = np.sort(whole[at])
            for side, short in enumerate((end[at], start[at])):
                below = np.searchsorted(ordered, short, "left")
                above = np.searchsorted(ordered, short, "right")
                odds[at, side] = (below + above).mean() / (2 * ordered.size)
        return np.asarray(odds.min(axis=1))


@dataclass(frozen=True)
class _Clarity:
    """How a short write compares with a whole one."""

    end_share: float
    start_share: float
    z: float
    """Of the weaker end."""

    @property
    def shows(self) -> bool:
        """Whether short writes cost more at both ends alike."""
        weak, strong = sorted((self.end_share, self.start_share))
        return self.z >= _CLEAR_Z and weak >= _ENDS_RATIO * strong

    @property
    def hints(self) -> bool:
        """Whether it is worth a closer look."""
        return self.z >= _HINT_Z and not self.shows


def _clarity(arms: _Arms, rng: np.random.Generator) -> _Clarity:
    whole, end, start = (np.median(part, axis=1) for part in arms.resampled(rng, _ROUNDS))
    end, start = (end - whole) / whole, (start - whole) / whole
    z = min(float(cost.mean() / max(cost.std(), 1e-9)) for cost in (end, start))
    return _Clarity(float(end.mean()), float(start.mean()), z)


class ClusteredPage:
    """What is written as one."""

    NAME: ClassVar[str] = "clustered-page"
    ABOUT: ClassVar[str] = (
        "What the drive writes as one: write latency drops at multiples of a size (Kim 2011, Procedure 1), confirmed "
        "by writes that are one block short of the size at either end."
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = ("clustered-page",)

    def cost(self, context: Context) -> Cost:
        """What is asked where no size is found, at all steps; less where one is."""
        effort = _EFFORTS[context.mode]
        region = _region(context)
        scales = _scales(context, region)
        sweeps = sum(effort.repeats * step * count * (count + 1) // 2 for step, count in scales)
        # At each step some thirty sizes, an eighth of the half of the largest in the mean, and one looked at closely.
        looks = 30 * effort.places + 2 * effort.places_max
        direct = sum(looks * max(step * count // 16, 32 << 10) for step, count in scales)
        writes = sum(effort.repeats * count + looks for _, count in scales)
        return Cost(0, region + sweeps + direct, region // MIB + 2 * writes)

    def run(self, context: Context) -> list[Finding]:
        """Propose by Procedure 1 at finer and coarser steps, decide by direct writes, and confirm at other places."""
        return [_Search(context).finding()]


def _region(context: Context) -> int:
    region = min(context.target.capacity_bytes, _EFFORTS[context.mode].region_bytes)
    return context.down(region)


def _scales(context: Context, region_bytes: int) -> list[tuple[int, int]]:
    """Steps in bytes, whole blocks, and numbers of sizes that the region has room for a few times."""
    scales: dict[int, int] = {}
    for step, count in _SCALES:
        step = context.up(step)
        scales[step] = max(scales.get(step, 0), min(count, region_bytes // (8 * step)))
    return [(step, count) for step, count in scales.items() if count >= 16]


class _Search:
    """One search of a clustered page."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.target = context.target
        self.effort = _EFFORTS[context.mode]
        self.rng = context.rng("clustered-page")
        self.region_bytes = _region(context)
        self.block_bytes = context.target.block_bytes
        self.looks: dict[int, _Arms] = {}
        self.sweeps: list[_Sweep] = []

    def finding(self) -> Finding:
        scales = _scales(self.context, self.region_bytes)
        if not scales:
            why = f"The target has {kib(self.region_bytes)}, too little for writes of many sizes side by side."
            return unknown("clustered-page", why, "B")
        self.target.purge()
        # What was never written needs no reading when a part of it is written.
        self.target.fill(end_bytes=self.region_bytes)
        found = None
        for done, (step, count) in enumerate(scales):
            self.sweeps.append(self._sweep(step, count))
            found = self._smallest(self.sweeps[-1].periods())
            self.context.progress((done + 1) / (len(scales) + 1))
            if found is not None:
                break
        finding = self._none() if found is None else self._confirmed(found)
        self.context.progress(1.0)
        return finding

    def _sweep(self, step_bytes: int, count: int) -> _Sweep:
        """Procedure 1: for each size, writes one after the other from the start, each flushed."""
        latency = np.empty((count, self.effort.repeats))
        for at in range(count):
            size = (at + 1) * step_bytes
            offsets = np.arange(self.effort.repeats) % (self.region_bytes // size) * size
            latency[at] = write_and_flush(self.target, offsets, np.full(offsets.size, size))
        return _Sweep(step_bytes, latency)

    def _write_arms(self, size_bytes: int, places: int) -> _Arms:
        """Writes on and on through the region, page after page, the three kinds in random order.

        In order, because translation layers that log blocks merge them cheaply then.
        """
        arms = self.rng.permuted(np.tile(np.arange(3), (places, 1)), axis=1).ravel()
        slots = self.region_bytes // size_bytes
        place = (int(self.rng.integers(0, slots)) + np.arange(arms.size)) % slots * size_bytes
        latency = write_and_flush(
            self.target,
            place + np.where(arms == 2, self.block_bytes, 0),
            np.where(arms == 0, size_bytes, size_bytes - self.block_bytes),
        )
        return _Arms(size_bytes, latency[arms == 0], latency[arms == 1], latency[arms == 2])

    def _look(self, size_bytes: int) -> _Clarity:
        """Compares whole and short writes of a size, with more places where that may decide it."""
        if size_bytes not in self.looks:
            arms = self._write_arms(size_bytes, self.effort.places)
            if _clarity(arms, self.rng).hints:
                arms = self._write_arms(size_bytes, self._closer(size_bytes))
            self.looks[size_bytes] = arms
        return _clarity(self.looks[size_bytes], self.rng)

    def _closer(self, size_bytes: int) -> int:
        """Places of a closer look, as many as fit the region once and a half."""
        return int(
            np.clip(
                self.region_bytes // (2 * size_bytes), self.effort.places, self.effort.places_max
            )
        )

    def _smallest(self, periods: list[int]) -> int | None:
        """The smallest size that shows the read, among the proposed ones and their divisors."""
        sizes = sorted({size for period in periods for size in self._divisors(period)})
        return next((size for size in sizes if self._look(size).shows), None)

    def _divisors(self, size_bytes: int) -> list[int]:
        """Sizes of two blocks and more that divide a size, itself included."""
        blocks = size_bytes // self.block_bytes
        return [size_bytes // by for by in range(1, blocks // 2 + 1) if blocks % by == 0]

    def _confirmed(self, size_bytes: int) -> Finding:
        """Measures again at other places: the size, and its largest divisors, one for each prime.

        A divisor that shows the read after all takes its place.
        """
        while True:
            arms = self._write_arms(size_bytes, self._closer(size_bytes))
            below = [self._halved(part) for part in self._largest_parts(size_bytes)]
            smaller = [part.size_bytes for part in below if _clarity(part, self.rng).shows]
            if not smaller:
                break
            size_bytes = min(smaller)
        clarity = _clarity(arms, self.rng)
        step = self.sweeps[-1].step_bytes
        figures = {
            "short_end_cost_share": clarity.end_share,
            "short_start_cost_share": clarity.start_share,
            "whole_ns": float(np.median(arms.whole_ns)),
            "read_modify_write_ns": float(
                min(np.median(arms.short_end_ns), np.median(arms.short_start_ns))
                - np.median(arms.whole_ns)
            ),
            "step_B": float(step),
        }
        if not clarity.shows:
            why = (
                f"Writes of {kib(size_bytes)} looked favoured, but not so when measured again: short by a block they "
                f"cost {clarity.end_share:+.1%} at the end and {clarity.start_share:+.1%} at the start."
            )
            return unknown("clustered-page", why, "B", self._plots(None), **figures)
        why = (
            f"A write of {kib(size_bytes)} at a multiple of it costs {figures['whole_ns'] / 1e3:.0f} us with its "
            f"flush; one that lacks a block at its end costs {clarity.end_share:.1%} more, at its start "
            f"{clarity.start_share:.1%}: the rest is read first. No divisor of it shows that."
        )
        return verdicts.found(
            "clustered-page",
            size_bytes,
            "B",
            (float(size_bytes - self.block_bytes), float(size_bytes + self.block_bytes)),
            self._confidence(arms, below),
            why,
            (*self._plots(size_bytes), self._direct_plot(arms)),
            figures,
        )

    def _largest_parts(self, size_bytes: int) -> list[int]:
        parts = self._divisors(size_bytes)[1:]
        return [a for a in parts if not any(b > a and b % a == 0 for b in parts)]

    def _halved(self, size_bytes: int) -> _Arms:
        """A divisor, measured again; in fewer places, since nothing is expected."""
        return self._write_arms(size_bytes, 2 * self.effort.places)

    def _confidence(self, arms: _Arms, below: list[_Arms]) -> float:
        """Share of resamplings in which short writes are slower at both ends, more clearly so than of any divisor."""
        odds = arms.slower_odds(self.rng, _ROUNDS)
        holds = odds > 0.5
        for part in below:
            holds &= part.slower_odds(self.rng, _ROUNDS) < 0.5 + _ENDS_RATIO * (odds - 0.5)
        return float(holds.mean())

    def _none(self) -> Finding:
        step = min(sweep.step_bytes for sweep in self.sweeps)
        largest = max(sweep.step_bytes * sweep.latency_ns.shape[0] for sweep in self.sweeps)
        proposed = [period for sweep in self.sweeps for period in sweep.periods()]
        seen = (
            f" The latency does drop at multiples of some sizes, such as {kib(proposed[0])}, as if writes were cut "
            "there, but the missing part is not read first."
            if proposed
            else ""
        )
        why = (
            f"No size up to {kib(largest)} is favoured, the finest step was {kib(step)}: writes that lack a block cost "
            f"no more than whole ones, so read-modify-write is hidden or the unit is {kib(step)} or less.{seen}"
        )
        return unknown(
            "clustered-page",
            why,
            "B",
            self._plots(None),
            step_B=float(step),
            largest_B=float(largest),
        )

    def _plots(self, size_bytes: int | None) -> tuple[Plot, ...]:
        return tuple(_sweep_plot(sweep, size_bytes) for sweep in self.sweeps)

    def _direct_plot(self, arms: _Arms) -> Plot:
        kinds = (
            ("whole", arms.whole_ns),
            ("short at the end", arms.short_end_ns),
            ("short at the start", arms.short_start_ns),
        )
        shares = np.linspace(0, 1, 201)
        series = tuple(
            Series(
                name,
                np.quantile(values, shares).astype(np.float64),
                shares.astype(np.float64),
                "line",
            )
            for name, values in kinds
        )
        title = f"Writes of {kib(arms.size_bytes)} and of one block less"
        return Plot(title, "latency with flush [ns]", "share of writes", series, x_log=True)


def _sweep_plot(sweep: _Sweep, size_bytes: int | None) -> Plot:
    count = sweep.latency_ns.shape[0]
    sizes = np.arange(1.0, count + 1.0, dtype=np.float64) * sweep.step_bytes
    # A few repeats show the scatter; all of them would swell the page.
    shown = sweep.latency_ns[:, :: max(sweep.latency_ns.shape[1] // 8, 1)]
    raw = Series("writes", np.repeat(sizes, shown.shape[1]), shown.ravel())
    marks: tuple[Mark, ...] = ()
    if size_bytes is not None:
        marks = tuple(
            Mark(float(at), kib(at)) for at in range(size_bytes, int(sizes[-1]) + 1, size_bytes)
        )[:8]
    return Plot(
        f"Write latency in steps of {kib(sweep.step_bytes)}",
        "request size [B]",
        "latency with flush [ns]",
        (raw, Series("median", sizes, sweep.level_ns, "line")),
        marks,
        y_log=True,
    )
