"""Measurements of units: writes of several pages, and pairs of reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from flashwright.probing.probes.parallelism.periods import (
    AGREE,
    CLEAR,
    MEDIAN_ERROR,
    Conflicts,
    Steps,
    conflict_period,
    inner_share,
    steps_of,
)
from flashwright.probing.probes.shared.overwriting import write_and_flush
from flashwright.target.arrays import MIB, Array, Ints
from flashwright.target.question import UNTESTED, Context
from flashwright.target.stats import bootstrap, mad

__all__ = [
    "ANYWHERE",
    "EFFORTS",
    "MIB",
    "READ_BYTES",
    "SHORT",
    "SHORT_REPEATS",
    "TOGETHER",
    "UnitMeasurements",
    "page_counts",
    "region_of",
]


# Pages that are handed over together, to see whether they take as many times as long as one: if there is but one unit
# they do. Chosen: enough to show two units under noise.
TOGETHER = 8
# Bytes of a read of a pair. Chosen: small, so that not the link decides how long a pair takes.
READ_BYTES = 4096
# How much longer a pair that finds its unit busy takes than one that does not, as a share, to be seen. Chosen: beyond
# the noise of medians.
_CONTRAST = 0.08
# Resamplings of a period. Chosen: enough to tell shares of 0.7 and 0.9 apart.
_ROUNDS = 100

ANYWHERE = 100
"""Pairs of random places for each place of a period: a hundred that wait are known to a tenth."""

# Pairs of each distance of the period that show how long waiting takes. Chosen: a share of half is known to a twelfth.
_KNOWN = 40
# By how much more often pairs of one unit must wait than others, for waiting to be told apart. Chosen: half of all
# pairs.
_CONTRAST_OF_WAITS = 0.5
# Reads of a page with which a write of one is compared. Chosen: enough for a median.
_READ_ALONE = 64
# Rest before short writes that show heat and limits by time, nanoseconds. Chosen: as long as a budget of a second or a
# warm controller needs to recover.
_REST_NS = 15e9
SHORT = 8
"""Pages of the longest write after a rest. Chosen: rest lifts a limit for as little as this."""
SHORT_REPEATS = 4
"""Writes of each length after a rest."""


@dataclass(frozen=True)
class Effort:
    """How much is asked in a mode."""

    writes: int
    """Writes of each number of pages."""
    largest_bytes: int
    """The longest write."""
    pairs: int
    """Pairs of reads at each distance."""
    distances: int
    """How many distances."""
    random_writes: int
    region_bytes: int
    clearing_bytes: int
    """Reads that empty a cache, at the most."""
    written_bytes: int
    """As the region, where places are compared that were just written."""


EFFORTS = {
    "quick": Effort(16, 4 * MIB, 40, 100, 4000, 1 << 30, 8 << 30, 4 << 30),
    "full": Effort(32, 8 * MIB, 100, 128, 8000, 4 << 30, 64 << 30, 16 << 30),
}


def region_of(context: Context) -> int:
    """The bytes from the drive's start on that are written and read."""
    return context.down(min(context.target.capacity_bytes, EFFORTS[context.mode].region_bytes))


def page_counts(context: Context, page_bytes: int) -> int:
    """The longest write, in clustered pages."""
    fits = min(EFFORTS[context.mode].largest_bytes // page_bytes, 128)
    return min(max(fits, 16), region_of(context) // (8 * page_bytes))


class UnitMeasurements:
    """Writes of several pages and pairs of reads, on a drive that was written in order.

    Parameters
    ----------
    context : Context
        The drive.
    page_bytes : int
        Its clustered page.
    """

    def __init__(self, context: Context, page_bytes: int) -> None:
        self.context = context
        self.target = context.target
        self.page_bytes = page_bytes
        self.effort = EFFORTS[context.mode]
        self.rng = context.rng("parallelism")
        self.pages = region_of(context) // page_bytes
        self.read_bytes = min(context.up(READ_BYTES), page_bytes)

    def renew(self, pages: int | None = None) -> None:
        """Purge the drive and write it once in order, so that pages lie on the units in order."""
        self.target.purge()
        # In whole clustered pages: one that is written twice would shift all that follow by a unit.
        size = max(MIB // self.page_bytes, 1) * self.page_bytes
        self.target.fill(size_bytes=size, end_bytes=(pages or self.pages) * self.page_bytes)

    def steps(self, patience: int) -> Steps:
        """The curve, measured up to `patience` times while resamplings do not confirm its period."""
        by_pages = self._step_latencies()
        steps = self._steps_in(by_pages)
        for _ in range(patience - 1):
            if steps.period is None or steps.agree >= AGREE:
                break
            by_pages = np.concatenate([by_pages, self._step_latencies()], axis=1)
            steps = self._steps_in(by_pages)
        return steps

    def _step_latencies(self) -> Array:
        """Writes of 1, 2, 3 ... clustered pages: by pages, by repeats."""
        count = page_counts(self.context, self.page_bytes)
        pages = np.arange(1, count + 1)
        order = self.rng.permuted(np.tile(pages, (self.effort.writes, 1)), axis=1).ravel()
        # On and on through the region; one that would cross its end begins anew.
        places = np.empty(order.size, np.int64)
        at = 0
        for index, length in enumerate(order):
            at = at if at + length <= self.pages else 0
            places[index] = at
            at += int(length)
        latency = write_and_flush(self.target, places * self.page_bytes, order * self.page_bytes)
        return np.array([latency[order == length] for length in pages])

    def _steps_in(self, by_pages: Array) -> Steps:
        error = np.array([MEDIAN_ERROR * mad(row) for row in by_pages]) / np.sqrt(by_pages.shape[1])

        def decide(sample: Array) -> float | None:
            return steps_of(np.median(sample, axis=1), error)[0]

        level = np.asarray(np.median(by_pages, axis=1))
        period, share, window = steps_of(level, error)
        if period is None:
            return Steps(by_pages, None, share, 0.0)
        votes = bootstrap(by_pages, decide, self.rng, _ROUNDS)
        agree = float(np.mean([vote == period for vote in votes]))
        return Steps(by_pages, period, share, agree, inner_share(level[:window], period))

    def reads_step(self, period: int) -> bool:
        """Whether reads of one page more than a multiple of the period take longer too: the independent check.

        A write may step because it is taken in parts that fill a buffer; a read does not.
        """
        turns = np.arange(1, max(self.pages // (8 * period), 1) + 1)[:4]
        # From p pages to p + 1, and the steps before and after, which hold what the link takes.
        lengths = np.unique(np.concatenate([turns * period + shift for shift in (-1, 0, 1)]))
        order = self.rng.permuted(np.tile(lengths, (4 * self.effort.writes, 1)), axis=1).ravel()
        places = self.rng.integers(0, self.pages - int(lengths.max()), order.size)
        latency = self.target.play(
            "read", places * self.page_bytes, order * self.page_bytes
        ).latency_ns
        level = {int(length): float(np.median(latency[order == length])) for length in lengths}
        over = [level[int(t) * period + 1] - level[int(t) * period] for t in turns]
        if period == 1:
            return min(over) > 0
        beside = [level[int(t) * period] - level[int(t) * period - 1] for t in turns]
        spread = [mad(latency[order == length]) for length in lengths]
        error = MEDIAN_ERROR * float(np.median(spread)) / np.sqrt(4 * self.effort.writes)
        # At every turn: steps of the bus would bear out every other one of a shorter period.
        jumps = np.subtract(over, beside)
        return bool(jumps.min() > 0 and jumps.mean() > CLEAR * error)

    def in_ram(self, write_ns: float) -> bool:
        """Whether a write of a page with its flush takes no longer than a read of one: no cells are programmed then."""
        places = self.rng.integers(0, self.pages, _READ_ALONE) * self.page_bytes
        read = self.target.play("read", places, self.page_bytes).latency_ns
        return bool(write_ns <= np.median(read))

    def costs_after_rests(self) -> list[float]:
        """What each further page of a short write adds, as a share of one alone, after rests: growing and shrinking.

        A limit by heat or by bytes makes all pages of long writes cost alike; rest lifts it for as little as this.
        """
        lengths = np.repeat(np.arange(1, SHORT + 1), SHORT_REPEATS)
        shares = []
        for order in (lengths, lengths[::-1], lengths[::-1], lengths):
            self.target.idle(_REST_NS)
            first = self.rng.integers(0, self.pages - int(order.sum()))
            places = first + np.cumsum(order) - order
            took = write_and_flush(self.target, places * self.page_bytes, order * self.page_bytes)
            level = np.array([np.median(took[order == one]) for one in range(1, SHORT + 1)])
            shares.append(float(np.polyfit(np.arange(SHORT), level, 1)[0] / level[0]))
        return [min(shares[0], shares[3]), min(shares[1], shares[2])]

    def together(self) -> float:
        """How long random writes take that are handed over together, over what one takes."""
        count = TOGETHER
        kinds = np.array(["write"] * count + ["flush"])
        took = np.empty(4 * self.effort.writes)
        alone = np.empty(took.size)
        for index in range(took.size):
            places = self.rng.choice(self.pages, count + 1, replace=False) * self.page_bytes
            together = np.append(places[:count], 0)
            took[index] = self.target.play(
                kinds, together, self.page_bytes, depth=count
            ).duration_ns
            alone[index] = write_and_flush(
                self.target, places[count:], np.full(1, self.page_bytes)
            )[0]
        return float(np.median(took) / np.median(alone))

    def random_cost(self) -> float:
        """What random writes of a clustered page cost in the mean, over what writes in order cost.

        On a drive that was just filled, and no more of them than the spare space of any drive takes: cleaning has no
        part in it.
        """
        self.renew()
        count = self.random_writes()
        size = np.full(count, self.page_bytes)
        anywhere = self.rng.integers(0, self.pages, count) * self.page_bytes
        start = int(self.rng.integers(0, self.pages - count + 1))
        random = write_and_flush(self.target, anywhere, size).mean()
        in_order = (start + np.arange(count)) * self.page_bytes
        return float(random / write_and_flush(self.target, in_order, size).mean())

    def _pairs(self, first: Ints, second: Ints) -> Array:
        """How long two reads take that are handed over together, nanoseconds; places in pages."""
        offsets = np.stack([first, second], axis=1) * self.page_bytes
        times = self.target.read_in_turn(offsets, self.read_bytes)
        took = times.ended_ns.max(axis=1) - times.submitted_ns.min(axis=1)
        return np.asarray(took, np.float64)

    def _at_distances(self, grain_pages: int, count: int) -> Array:
        """Pairs at 1, 2, ... grains from each other, all over the region.

        In an order drawn at random, and then in its reverse, so that a drift in time is no function of the distance:
        the first half of the columns is the one run, the second half the other.
        """
        half = self.effort.pairs // 2
        once = self.rng.permutation(np.repeat(np.arange(count), half))
        order = np.concatenate([once, once[::-1]])
        apart = (order + 1) * grain_pages
        first = self.rng.integers(0, self.pages - apart)
        took = self._pairs(first, first + apart)
        runs = [
            run[np.argsort(at, kind="stable")].reshape(count, half)
            for run, at in zip(np.split(took, 2), np.split(order, 2), strict=True)
        ]
        return np.concatenate(runs, axis=1)

    def conflicts(self) -> list[Conflicts]:
        """Pairs by their distance in pages; where those show no period, in blocks."""
        by_page = self._by_distance("page", 1)
        if by_page.period is not None:
            return [by_page]
        block = self._block_pages()
        # Blocks so large that the region has no two places one apart show nothing.
        if block is None or self.pages < 2 * block:
            return [by_page]
        return [by_page, self._by_distance("block", block)]

    def _by_distance(self, grain: Literal["page", "block"], grain_pages: int) -> Conflicts:
        count = min(self.effort.distances, self.pages // (2 * grain_pages))
        pairs = self._at_distances(grain_pages, count)

        spread = float(np.median([mad(row) for row in pairs]))
        error = MEDIAN_ERROR * spread / np.sqrt(pairs.shape[1])

        def decide(sample: Array) -> float | None:
            # What is drawn again from a sample has the sample's error once more.
            return conflict_period(np.median(sample, axis=1), np.sqrt(2) * error)

        period = conflict_period(np.asarray(np.median(pairs, axis=1)), error)
        agree = 0.0
        if period is not None and self._everywhere(pairs, int(period), grain_pages):
            votes = bootstrap(pairs, decide, self.rng, _ROUNDS)
            agree = float(np.mean([vote == period for vote in votes]))
        else:
            period = None
        whole = None if period is None else int(period)
        if whole is None:
            return Conflicts(grain, grain_pages * self.page_bytes, pairs, None, agree)
        anywhere = self._anywhere(whole, grain_pages)
        if np.isnan(anywhere) or not self._runs_agree(pairs, whole, error):
            agree = min(agree, UNTESTED)
        size = grain_pages * self.page_bytes
        return Conflicts(grain, size, pairs, whole, agree, anywhere)

    def _runs_agree(self, pairs: Array, period: int, error: float) -> bool:
        """Whether the run in the one order and that in the other show the period, each by itself."""
        return all(
            conflict_period(np.asarray(np.median(run, axis=1)), np.sqrt(2) * error) == period
            for run in np.split(pairs, 2, axis=1)
        )

    def _anywhere(self, period: int, grain_pages: int) -> float:
        """How many pairs of random places wait, times the period: 1 if there are as many units as it has places.

        Members of a stripe, and the places of its parity, make distances recur later than units do: then more pairs
        wait than the period says. NaN where pairs of known distance do not tell waiting apart.
        """
        apart = np.arange(1, period + 1) * grain_pages
        first = self.rng.integers(0, self.pages - int(apart[-1]) - 1, (period, _KNOWN))
        known = self._pairs_with_map(first.ravel(), (first + apart[:, None]).ravel()).reshape(
            period, -1
        )
        level = np.median(known, axis=1)
        middle = (level[-1] + level[:-1].max()) / 2
        shares = (known > middle).mean(axis=1)
        # Where some pairs of other distances wait too, that is no noise: what counts as such all distances have.
        near, stray = float(shares[-1]), float(shares[:-1].min())
        if near - stray < _CONTRAST_OF_WAITS:
            return float("nan")
        places = self.rng.integers(0, self.pages - 1, (2, ANYWHERE * period))
        waits = float((self._pairs_with_map(places[0], places[1]) > middle).mean())
        return (waits - stray) / (near - stray) * period

    def _pairs_with_map(self, first: Ints, second: Ints) -> Array:
        """As :meth:`_pairs`, each after reads of the pages behind, which bring the map where that is not in RAM."""
        took = np.empty(first.size)
        for index in range(first.size):
            beside = np.array([first[index] + 1, second[index] + 1]) * self.page_bytes
            self.target.play("read", beside, self.read_bytes)
            took[index] = self._pairs(first[[index]], second[[index]])[0]
        return took

    def _everywhere(self, pairs: Array, period: int, grain_pages: int) -> bool:
        """Whether the period holds over any distance, and not only over short ones: the independent check."""
        level = np.median(pairs, axis=1)
        at = np.arange(1, level.size + 1) % period == 0
        middle = (level[at].min() + level[~at].max()) / 2
        farthest = self.pages // (2 * grain_pages * period)
        turns = self.rng.integers(1, max(farthest, 2), 4 * self.effort.pairs) * period
        shifts = self.rng.integers(1, period, turns.size)
        shares = []
        for apart in (turns * grain_pages, (turns - shifts) * grain_pages):
            first = self.rng.integers(0, self.pages - apart)
            shares.append(float((self._pairs(first, first + apart) > middle).mean()))
        near = float((pairs[at] > middle).mean())
        # As often as over short distances, less what so few pairs leave open.
        return shares[0] > near - 0.1 and shares[1] < 0.5 * near

    def _block_pages(self) -> int | None:
        """Pages of the runs that lie on one unit, by pairs: d pages apart they part company at d of B places.

        The first guess from the share of pairs that conflict; then each size near it is tried at its own borders, where
        a page and the next one never conflict.
        """
        count = 8 * self.effort.pairs
        first = self.rng.integers(0, self.pages - 1, count)
        same = self._pairs(first, first + 1)
        anywhere = self._pairs(first, self.rng.integers(0, self.pages, count))
        high, low = float(np.median(same)), float(np.quantile(anywhere, 0.1))
        if high - low < _CONTRAST * high:
            return None
        middle = (high + low) / 2
        apart, share = 1, 1.0
        while share > 0.7:
            apart *= 2
            if 4 * apart > self.pages:
                return None
            first = self.rng.integers(0, self.pages - apart, 4 * count)
            share = float((self._pairs(first, first + apart) > middle).mean())
        if share < 0.2:
            return None
        guess = apart / (1 - share)
        best, fewest = None, 1.0
        for size in range(max(int(0.9 * guess), 2), int(1.1 * guess) + 2):
            border = self.rng.integers(1, max(self.pages // size, 2), 32) * size
            crossing = float((self._pairs(border - 1, border) > middle).mean())
            if crossing < fewest:
                best, fewest = size, crossing
        return best if fewest < 0.2 else None

    def random_writes(self) -> int:
        """How many random writes :meth:`random_cost` makes."""
        return max(min(self.effort.random_writes, self.pages // 40), 1)
