"""How many clusters of chips work at once, and over how many of them writes are striped.

Two measurements, of which either may be blind::

    pages of a write     1  2  3 | 4  5  6 | 7 ...        three units: one more page is free until all units have one
    latency              --------+         |              (aligned writes of k clustered pages, each flushed)
                                 +---------+

    distance of a pair   1  2  3  4  5  6  7 ...          three units: reads of two pages at a time wait for each other
    both read after      _  _  ^  _  _  ^  _              where they lie on the same unit

What those two do not tell, a third may, wherever commands are queued: random places, all pairs of which are read at
once, fall into groups that wait for each other, one a unit (``conflicts``). It assumes no order
of the places and no known page.

The first needs no command queuing, but tells nothing where the bus to the chips takes longer than they do, or where
pages that follow each other go to one unit (log-block mapping). The second needs two commands at once and a drive that
was written in order; where whole blocks lie on a unit, the distance is taken in blocks, whose size the same pairs tell.

Sources: Kim, Seo, Jung, Kim, Huh: "Parameter-aware I/O management for solid state disks" (2011), sections 2.2 and
4.1.1; Chen, Hou, Lee: "Internal parallelism of flash memory-based solid-state drives" (ACM TOS 2016) for pairs of
reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from flashwright.blackbox.base import Context, Cost, kib
from flashwright.blackbox.probes.clustered_page import write_and_flush
from flashwright.blackbox.probes.conflicts import Pairs, Sharing
from flashwright.blackbox.probes.periods import (
    A_STEP,
    AGREE,
    CLEAR,
    FULL_STEP,
    INNER,
    MEDIAN_ERROR,
    ONE_BY_ONE,
    Array,
    Conflicts,
    Ints,
    Steps,
    conflict_period,
    conflicts_plot,
    inner_share,
    sharing_plots,
    steps_of,
    steps_plot,
)
from flashwright.blackbox.stats import bootstrap, mad
from flashwright.drive.findings import Finding, Plot, unknown

__all__ = ["Parallelism"]


_MIB = 1 << 20
# Random writes that cost no more than this times what writes in order cost have no merges: a log-block drive pays more
# once its logs are used (algorithms.md 8.8), by 3 % and more in all drives that we drew.
_NO_MERGES = 1.02
# So many random writes fill the logs of the drives that we drew, where their pages are small enough for it.
_WRITES_TO_TELL = 256
# Eight pages that are handed over together take about eight times as long as one, if there is but one unit: less where
# the link overlaps, more only where they are merged.
_TOGETHER = 8
_NOTHING_GAINED = (6.5, 8.8)
# As ``AGREE``, where pairs over any distance bear it out besides.
_AGREE_PAIRS = 0.7
# Small reads, so that not the link decides how long a pair takes.
_READ_BYTES = 4096
# A pair that finds its unit busy has to take that much longer than one that does not, as a share, to call it seen.
_CONTRAST = 0.08
_ROUNDS = 100
# The curve of writes is measured so many times at the most: the noise of a level is halved then.
_PATIENCE = 4
# Pairs of random places that the closer look inside of groups takes at the least.
_CLOSER_PAIRS = 8000


@dataclass(frozen=True)
class _Effort:
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


_EFFORTS = {
    "quick": _Effort(16, 4 * _MIB, 40, 100, 4000, 1 << 30, 8 << 30),
    "full": _Effort(32, 8 * _MIB, 100, 128, 8000, 4 << 30, 64 << 30),
}


class Parallelism:
    """Units that work at once, and the stripe of writes."""

    NAME: ClassVar[str] = "parallelism"
    ABOUT: ClassVar[str] = (
        "How many clusters of chips work at once and over how many writes are striped: steps of the latency of writes "
        "of k clustered pages, and pairs of reads that wait for each other (Kim 2011, section 4.1.1; Chen 2016)."
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = ("parallel-units", "stripe")
    READS_ALONE: ClassVar[bool] = True

    def cost(self, context: Context) -> Cost:
        """About what is asked of a drive without a read cache, which would have to be emptied again and again."""
        page = context.size("clustered-page")
        effort, region = _EFFORTS[context.mode], _region(context)
        # Pairs of random places: two trials of 64 places, and what a closer look takes.
        blocks = 2 * 2 * (3 * 64 * 63 // 2 + _CLOSER_PAIRS)
        if page is None or context.target.read_only:
            written = 0 if context.target.read_only else region
            return Cost(blocks * context.target.block_bytes, written, blocks + written // _MIB)
        count = _page_counts(context, page)
        # Filled twice, and once more where writes are not striped; the curve of writes as often as patience allows.
        written = 3 * region + _PATIENCE * page * effort.writes * count * (count + 1) // 2
        random = 2 * min(effort.random_writes, region // page // 40)
        # Distances in pages and in blocks, the search for the blocks, and the check over any distance.
        pairs = effort.pairs * (2 * effort.distances + 64)
        # Four turns of a period, about half of the longest write, three lengths at each.
        steps = 12 * 4 * effort.writes
        return Cost(
            2 * pairs * context.up(_READ_BYTES)
            + steps * page * count // 2
            + blocks * context.target.block_bytes,
            written + random * page,
            2 * pairs
            + blocks
            + steps
            + 2 * (_PATIENCE * effort.writes * count + random)
            + 3 * region // _MIB,
        )

    def run(self, context: Context) -> list[Finding]:
        """Measure both ways, and compare."""
        page = context.size("clustered-page")
        if page is None or context.target.read_only:
            return _without_page(context)
        if _page_counts(context, page) < 8:
            why = f"The target has room for less than 64 clustered pages of {kib(page)}."
            return [unknown("parallel-units", why, "units"), unknown("stripe", why, "B")]
        return _Search(context, page).findings()


def _region(context: Context) -> int:
    return context.down(min(context.target.capacity_bytes, _EFFORTS[context.mode].region_bytes))


def _page_counts(context: Context, page_bytes: int) -> int:
    """The longest write, in clustered pages."""
    fits = min(_EFFORTS[context.mode].largest_bytes // page_bytes, 128)
    return min(max(fits, 16), _region(context) // (8 * page_bytes))


def _sharing(context: Context, place_bytes: int, places: int) -> Sharing:
    """Groups of random places, on a drive that was written."""
    effort = _EFFORTS[context.mode]
    rng = context.rng("parallelism-pairs")
    return Pairs(context.target, rng, place_bytes, places, effort.clearing_bytes).sharing()


def _without_page(context: Context) -> list[Finding]:
    """What blocks tell that are read two at a time."""
    stripe = unknown(
        "stripe", "The clustered page is not known, so that no stripe can be counted in it.", "B"
    )
    if not context.target.read_only:
        context.target.purge()
    region, block = _region(context), context.target.block_bytes
    context.fill(region, context.up(_MIB))
    sharing = _sharing(context, block, region // block)
    context.progress(1.0)
    if sharing.units is None:
        why = f"The clustered page is not known, so that nothing can be laid out on units, and {sharing.why}."
        return [unknown("parallel-units", why, "units", sharing_plots(sharing)), stripe]
    return [_units_by_sharing(sharing, {}, sharing_plots(sharing)), stripe]


class _Search:
    """One search of the units."""

    def __init__(self, context: Context, page_bytes: int) -> None:
        self.context = context
        self.target = context.target
        self.page_bytes = page_bytes
        self.effort = _EFFORTS[context.mode]
        self.rng = context.rng("parallelism")
        self.pages = _region(context) // page_bytes
        self.read_bytes = min(context.up(_READ_BYTES), page_bytes)

    def findings(self) -> list[Finding]:
        self._renew()
        conflicts = self._conflicts()
        self.context.progress(0.3)
        sharing = None
        if _seen(conflicts) is None:
            sharing = _sharing(self.context, self.page_bytes, self.pages)
        self.context.progress(0.5)
        self._renew()
        # Without commands in a queue nothing else tells.
        told = sharing is None or sharing.units is not None
        steps = self._steps(1 if told else _PATIENCE)
        self.context.progress(0.8)
        reads_step = steps.period is not None and self._reads_step(steps.period)
        together = merges = float("nan")
        if steps.period == 1:
            together, merges = self._together(), self._random_cost()
        self.context.progress(1.0)
        plots = (steps_plot(steps), *(conflicts_plot(conflict) for conflict in conflicts))
        if sharing is not None:
            plots += sharing_plots(sharing)
        return [
            self._units(steps, reads_step, conflicts, sharing, (merges, together), plots),
            self._stripe(steps, reads_step, conflicts, plots),
        ]

    def _renew(self) -> None:
        """A drive that was written once, in order, so that pages lie on the units as they come."""
        self.target.purge()
        # In whole clustered pages: one that is written twice would shift all that follow by a unit.
        size = max(_MIB // self.page_bytes, 1) * self.page_bytes
        self.target.fill(size_bytes=size, end_bytes=self.pages * self.page_bytes)

    # Writes of several pages

    def _steps(self, patience: int) -> Steps:
        """The curve, measured again up to so many times while it has a period that the resamplings do not bear out."""
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
        count = _page_counts(self.context, self.page_bytes)
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

    def _reads_step(self, period: int) -> bool:
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

    def _together(self) -> float:
        """How long random writes take that are handed over together, over what one takes."""
        count = _TOGETHER
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

    def _random_cost(self) -> float:
        """What random writes of a clustered page cost in the mean, over what writes in order cost.

        On a drive that was just filled, and no more of them than the spare space of any drive takes: cleaning has no
        part in it.
        """
        self._renew()
        count = self._random_writes()
        size = np.full(count, self.page_bytes)
        anywhere = self.rng.integers(0, self.pages, count) * self.page_bytes
        start = int(self.rng.integers(0, self.pages - count + 1))
        random = write_and_flush(self.target, anywhere, size).mean()
        in_order = (start + np.arange(count)) * self.page_bytes
        return float(random / write_and_flush(self.target, in_order, size).mean())

    # Pairs of reads

    def _pairs(self, first: Ints, second: Ints) -> Array:
        """How long two reads take that are handed over together, nanoseconds; places in pages."""
        offsets = np.stack([first, second], axis=1) * self.page_bytes
        took = np.empty(first.size)
        for index in range(first.size):
            took[index] = self.target.play(
                "read", offsets[index], self.read_bytes, depth=2
            ).duration_ns
        return took

    def _at_distances(self, grain_pages: int, count: int) -> Array:
        """Pairs at 1, 2, ... grains from each other, all over the region."""
        pairs = np.empty((count, self.effort.pairs))
        for at in range(count):
            apart = (at + 1) * grain_pages
            first = self.rng.integers(0, self.pages - apart, self.effort.pairs)
            pairs[at] = self._pairs(first, first + apart)
        return pairs

    def _conflicts(self) -> list[Conflicts]:
        """Distances in pages, and where those show nothing, in blocks."""
        by_page = self._by_distance("page", 1)
        if by_page.period is not None:
            return [by_page]
        block = self._block_pages()
        return [by_page] if block is None else [by_page, self._by_distance("block", block)]

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
        return Conflicts(grain, grain_pages * self.page_bytes, pairs, whole, agree)

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

    # What it comes to

    def _units(
        self,
        steps: Steps,
        reads_step: bool,
        conflicts: list[Conflicts],
        sharing: Sharing | None,
        random: tuple[float, float],
        plots: tuple[Plot, ...],
    ) -> Finding:
        merges, together = random
        seen = _seen(conflicts)
        by_steps = _by_steps(steps, reads_step)
        figures = {"step_share": steps.step_share, "steps_agree_share": steps.agree}
        if steps.period is not None:
            figures["steps_units"] = float(steps.period)
            figures["inner_rise_share"] = steps.inner_share
        if steps.period == 1:
            figures |= {"random_over_sequential_cost": merges, "together_over_alone": together}
        if seen is not None:
            figures |= {"pairs_units": float(seen.units), "pairs_agree_share": seen.agree}
            if seen.grain == "block":
                figures["run_on_one_unit_B"] = float(seen.grain_bytes)
        if by_steps is not None and seen is not None and seen.units != by_steps:
            why = (
                f"Writes repeat their steps every {by_steps} clustered pages, but pairs of reads conflict every "
                f"{seen.units}: the two do not agree."
            )
            return unknown("parallel-units", why, "units", plots, **figures)
        if seen is not None:
            where = (
                "clustered pages" if seen.grain == "page" else f"runs of {kib(seen.grain_bytes)}"
            )
            why = f"Reads of two pages wait for each other where they lie a multiple of {seen.units} {where} apart"
            why += ", and writes step up every as many pages." if by_steps else "."
            confidence = max(seen.agree, steps.agree) if by_steps else seen.agree
            return _units(seen.units, confidence, why, plots, figures)
        if sharing is not None and sharing.units is not None:
            if by_steps is not None and by_steps != sharing.units:
                why = (
                    f"Writes repeat their steps every {by_steps} clustered pages, but reads of random places give "
                    f"{sharing.units} groups that wait for each other: the two do not agree."
                )
                return unknown("parallel-units", why, "units", plots, **figures)
            return _units_by_sharing(sharing, figures, plots)
        if by_steps is not None:
            why = (
                f"Writes of up to {by_steps} clustered pages differ by little, and each further {by_steps} add "
                f"{steps.step_share:.0%} of what one takes; reads step there too."
            )
            return _units(by_steps, steps.agree, why, plots, figures)
        if (
            steps.one_by_one
            and self._goes_anywhere()
            and 1 / _NO_MERGES < merges < _NO_MERGES
            and _NOTHING_GAINED[0] <= together <= _NOTHING_GAINED[1]
        ):
            why = (
                f"Each clustered page of a write adds {steps.step_share:.0%} of what one alone costs, though pages may "
                f"go anywhere: random writes cost {merges:.2f} times what writes in order cost, so nothing is merged, "
                f"and {_TOGETHER} at once take {together:.1f} times as long as one."
            )
            return _units(1, steps.agree, why, plots, figures)
        return unknown(
            "parallel-units", self._blind(steps, sharing, merges), "units", plots, **figures
        )

    def _goes_anywhere(self) -> bool:
        """Whether random writes would have shown logs: not if logs were found, or if so few writes may fit in them."""
        mapping = self.context.known.get("mapping")
        if mapping is not None and mapping.verdict == "found":
            return mapping.value == "page"
        return self._random_writes() >= _WRITES_TO_TELL

    def _random_writes(self) -> int:
        return max(min(self.effort.random_writes, self.pages // 40), 1)

    def _blind(self, steps: Steps, sharing: Sharing | None, merges: float) -> str:
        pairs = (
            "pairs of reads show no regular conflicts (no command queuing, one unit, or no order)"
        )
        if sharing is not None:
            pairs += f"; {sharing.why}"
        in_bounds = A_STEP <= steps.step_share <= FULL_STEP[1]
        if steps.period is None or steps.agree < AGREE or not in_bounds:
            return f"The latency of writes of several clustered pages repeats no clear step, and {pairs}."
        if steps.period > 1 and steps.step_share < FULL_STEP[0]:
            return (
                f"{steps.period} units at the least: writes repeat their steps every {steps.period} clustered pages, "
                f"but a step is {steps.step_share:.0%} of a page's latency, as of a bus that is shared, and {pairs}."
            )
        if steps.period > 1 and steps.inner_share > INNER:
            return (
                f"Writes repeat their steps every {steps.period} clustered pages, but rise by {steps.inner_share:.0%} "
                f"of such a step inside of it too, as where a buffer takes a write in larger parts, and {pairs}."
            )
        if steps.period > 1:
            return (
                f"Writes step every {steps.period} clustered pages, but reads do not, as where a buffer takes a write "
                f"in parts, and {pairs}."
            )
        if steps.step_share < ONE_BY_ONE:
            return (
                f"Each clustered page of a write adds {steps.step_share:.0%} of a page's latency: the bus or the link "
                f"may be the narrow place, and {pairs}."
            )
        return (
            f"Pages that follow each other are written one by one (+{steps.step_share:.0%} each); random writes cost "
            f"{merges:.2f} times as much, and {pairs}: there may be one unit, or runs of pages on one of several."
        )

    def _stripe(
        self,
        steps: Steps,
        reads_step: bool,
        conflicts: list[Conflicts],
        plots: tuple[Plot, ...],
    ) -> Finding:
        figures = {"step_share": steps.step_share}
        seen = _seen(conflicts)
        by_steps = _by_steps(steps, reads_step)
        by_pairs = seen.units if seen is not None and seen.grain == "page" else None
        if steps.one_by_one and by_pairs is None:
            why = (
                f"Each clustered page of a write adds {steps.step_share:.0%} of what one alone costs: pages that "
                "follow each other wait for each other."
            )
            return Finding(
                "stripe",
                "absent",
                confidence=steps.agree,
                unit="B",
                why=why,
                plots=plots,
                figures=figures,
            )
        width = by_pairs or by_steps
        if width is None or (by_pairs and by_steps and by_pairs != by_steps):
            why = "Neither the steps of long writes nor pairs of reads give a width that the other bears out."
            return unknown("stripe", why, "B", plots, **figures)
        why = f"Writes in order go to {width} units in turn, a clustered page of {kib(self.page_bytes)} each."
        size, grain = width * self.page_bytes, float(self.page_bytes)
        agree = max(
            steps.agree if by_steps else 0.0, seen.agree if by_pairs and seen is not None else 0.0
        )
        return Finding(
            "stripe", "found", size, "B", size - grain, size + grain, agree, why, plots, figures
        )


def _seen(conflicts: list[Conflicts]) -> Conflicts | None:
    """The pairs of reads that show a period clearly."""
    clear = (
        found for found in conflicts if found.period is not None and found.agree >= _AGREE_PAIRS
    )
    return next(clear, None)


def _by_steps(steps: Steps, reads_step: bool) -> int | None:
    """Units by the steps of writes, where those are whole ones and reads bear them out."""
    low, high = FULL_STEP
    if steps.period is None or steps.period == 1 or not reads_step or steps.agree < AGREE:
        return None
    if steps.inner_share > INNER:
        return None
    return steps.period if low <= steps.step_share <= high else None


def _units_by_sharing(
    sharing: Sharing, figures: dict[str, float], plots: tuple[Plot, ...]
) -> Finding:
    units = sharing.units or 0
    figures = figures | {
        "places": float(sharing.places),
        "pair_together_ns": sharing.together_ns,
        "sharing_units": float(units),
    }
    if units > 1:
        figures["pair_apart_ns"] = sharing.apart_ns
    return _units(units, sharing.confidence, sharing.why, plots, figures)


def _units(
    value: int, confidence: float, why: str, plots: tuple[Plot, ...], figures: dict[str, float]
) -> Finding:
    return Finding(
        "parallel-units",
        "found",
        value,
        "units",
        float(value),
        float(value),
        confidence,
        why,
        plots,
        figures,
    )
