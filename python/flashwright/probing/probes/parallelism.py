"""How many clusters of chips work at once, and over how many of them writes are striped.

Two measurements, of which either may be blind::

    pages of a write     1  2  3 | 4  5  6 | 7 ...        three units: one more page is free until all units have one
    latency              --------+         |              (aligned writes of k clustered pages, each flushed)
                                 +---------+

    distance of a pair   1  2  3  4  5  6  7 ...          three units: reads of two pages at a time wait for each other
    both read after      _  _  ^  _  _  ^  _              where they lie on the same unit

What those two do not tell, erases may, on a page map whose clustered block is known: of a drive that is overwritten in
order, as many single pages in a row wait for an erase as there are units (``erases``). It needs no queuing either, and
no bus hides it.

Where RAM gathers what a unit programs, the waits of writes in order tell it once the RAM is full (``rows``).

Or groups may, wherever commands are queued: random places, all pairs of which are read at
once, fall into groups that wait for each other, one a unit (``conflicts``). It assumes no order
of the places and no known page. Where random places give no clear groups, such may as are read alike, or as were
just written (``alike``).

What else looks like that, and the arm that tells it apart. Drift in time (heat, credits): distances and lengths come
in an order drawn at random, distances in its reverse as well, and both runs have to agree. A limit by heat or by bytes
makes each page of a write cost the same: where that would be the verdict, short writes after rests have to show it,
growing and shrinking. RAM that takes writes: one that takes no longer than a read shows no flash. Members of a RAID and
its parity make distances recur later than units do: as many pairs of random places must wait as the period says, or
random places must fall into as many groups. Groups of random places: a second trial takes half as many places again.

The first needs no command queuing, but tells nothing where the bus to the chips takes longer than they do, or where
pages that follow each other go to one unit (log-block mapping). The second needs two commands at once and a drive that
was written in order; where whole blocks lie on a unit, the distance is taken in blocks, whose size the same pairs tell.

Sources: Kim, Seo, Jung, Kim, Huh: "Parameter-aware I/O management for solid state disks" (2011), sections 2.2 and
4.1.1; Chen, Hou, Lee: "Internal parallelism of flash memory-based solid-state drives" (ACM TOS 2016) for pairs of
reads.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from flashwright.drive.findings import Finding, Plot, unknown
from flashwright.probing.probes.alike import Written, sharing_of
from flashwright.probing.probes.conflicts import Sharing
from flashwright.probing.probes.erases import can_ask, erases
from flashwright.probing.probes.erases import cost as erases_cost
from flashwright.probing.probes.parallelasked import (
    ANYWHERE,
    EFFORTS,
    MIB,
    READ_BYTES,
    SHORT,
    SHORT_REPEATS,
    TOGETHER,
    Asked,
    page_counts,
    region_of,
)
from flashwright.probing.probes.periods import (
    A_STEP,
    AGREE,
    FULL_STEP,
    INNER,
    ONE_BY_ONE,
    Conflicts,
    Steps,
    conflicts_plot,
    seen_of,
    sharing_plots,
    steps_plot,
    units_by_steps,
)
from flashwright.probing.probes.program_unit import program_unit
from flashwright.probing.probes.rows import can_ask as can_ask_rows
from flashwright.probing.probes.rows import cost as rows_cost
from flashwright.probing.probes.rows import program_of_rows, rows, stripe_of_rows
from flashwright.probing.probes.units_told import (
    by_erases,
    told_by,
    units_by_sharing,
    units_found,
)
from flashwright.target.question import Context, Cost, kib

__all__ = ["Parallelism"]


# Random writes that cost no more than this times what writes in order cost have no merges: a log-block drive pays more
# once its logs are used (algorithms.md 8.8), by 3 % and more in all drives that we drew.
_NO_MERGES = 1.02


# So many random writes fill the logs of the drives that we drew, where their pages are small enough for it.
_WRITES_TO_TELL = 256


_NOTHING_GAINED = (6.5, 8.8)


# The curve of writes is measured so many times at the most: the noise of a level is halved then.
PATIENCE = 4


# Pairs of random places that the closer look inside of groups takes at the least.
_CLOSER_PAIRS = 8000


class Parallelism:
    """Units that work at once, the stripe of writes, and what is programmed at once."""

    NAME: ClassVar[str] = "parallelism"
    ABOUT: ClassVar[str] = (
        "How many clusters of chips work at once and over how many writes are striped: steps of the latency of writes "
        "of k clustered pages, and pairs of reads that wait for each other (Kim 2011, section 4.1.1; Chen 2016); where "
        "both are blind, erases that follow each other. What lies on one unit is what fills one program, or what "
        "writes in order wait for once RAM is full; the clustered page is the mapping unit."
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = ("parallel-units", "stripe", "program-unit")
    READS_ALONE: ClassVar[bool] = True

    def cost(self, context: Context) -> Cost:
        """About what is asked of a drive without a read cache, which would have to be emptied again and again."""
        page = context.size("clustered-page")
        effort, region = EFFORTS[context.mode], region_of(context)
        # Pairs of random places: trials of 64 and of 96 places, and what a closer look takes.
        blocks = 2 * (3 * (64 * 63 + 96 * 95) // 2 + 2 * _CLOSER_PAIRS)
        if page is None or context.target.read_only:
            turns = erases_cost(context, context.up(READ_BYTES)) if can_ask(context) else Cost()
            written = (0 if context.target.read_only else region) + turns.bytes_written
            requests = blocks + written // MIB + turns.requests
            return Cost(blocks * context.target.block_bytes, written, requests)
        count = page_counts(context, page)
        turns, gathered = erases_cost(context, page), rows_cost(context)
        # What is written at random is so after a fill, at most in four trials.
        renewed = 4 * min(context.target.capacity_bytes, effort.written_bytes)
        # Filled twice, and once more where writes are not striped; the curve of writes as often as patience allows.
        written = (
            turns.bytes_written
            + renewed
            + 3 * region
            + PATIENCE * page * effort.writes * count * (count + 1) // 2
        )
        random = 2 * min(effort.random_writes, region // page // 40)
        # Distances in pages and in blocks, the search for the blocks, and the check over any distance.
        pairs = effort.pairs * (2 * effort.distances + 64) + (ANYWHERE + 40) * effort.distances
        # Four turns of a period, about half of the longest write, three lengths at each.
        steps = 12 * 4 * effort.writes
        rested = 4 * SHORT_REPEATS
        return Cost(
            2 * pairs * context.up(READ_BYTES)
            + steps * page * count // 2
            + blocks * context.target.block_bytes,
            written + random * page + rested * page * SHORT * (SHORT + 1) // 2,
            2 * pairs
            + 2 * rested * SHORT
            + blocks
            + steps
            + 2 * (PATIENCE * effort.writes * count + random)
            + (renewed + 3 * region) // MIB
            + turns.requests
            + gathered.requests,
        )

    def run(self, context: Context) -> list[Finding]:
        """Measure both ways, and compare."""
        page = context.size("clustered-page")
        if page is None or context.target.read_only:
            return _without_page(context)
        if page_counts(context, page) < 8:
            why = f"The target has room for less than 64 clustered pages of {kib(page)}."
            return [
                unknown("parallel-units", why, "units"),
                unknown("stripe", why, "B"),
                unknown("program-unit", why, "B"),
            ]
        return _Search(context, page).findings()


def _sharing(context: Context, place_bytes: int, places: int) -> Sharing:
    """Groups of random places, on a drive that was written."""
    effort = EFFORTS[context.mode]
    rng = context.rng("parallelism-pairs")
    return sharing_of(context.target, rng, place_bytes, places, effort.clearing_bytes)


def _without_page(context: Context) -> list[Finding]:
    """What blocks tell that are read two at a time."""
    stripe = unknown(
        "stripe", "The clustered page is not known, so that no stripe can be counted in it.", "B"
    )
    if not context.target.read_only:
        context.target.purge()
    region, block = region_of(context), context.target.block_bytes
    context.fill(region, context.up(MIB))
    sharing = _sharing(context, block, region // block)
    context.progress(0.9)
    program = replace(stripe, parameter="program-unit")
    if sharing.units is not None:
        return [units_by_sharing(sharing, {}, sharing_plots(sharing)), stripe, program]
    why = f"The clustered page is not known, so that nothing can be laid out on units, and {sharing.why}."
    found = [unknown("parallel-units", why, "units", sharing_plots(sharing)), stripe, program]
    if can_ask(context):
        context.keep(*found)
        found = by_erases(found, erases(context, None), None, None, [], sharing)
    context.progress(1.0)
    return found


class _Search(Asked):
    """One search of the units."""

    def findings(self) -> list[Finding]:
        self._renew()
        conflicts = self._conflicts()
        self.context.progress(0.3)
        seen, sharing = seen_of(conflicts), None
        if seen is None or not seen.alike:
            sharing = _sharing(self.context, self.page_bytes, self.pages)
        self.context.progress(0.5)
        self._renew()
        # Without commands in a queue nothing else tells.
        seen_in_reads = sharing is None or sharing.units is not None
        steps = self._steps(1 if seen_in_reads else PATIENCE)
        self.context.progress(0.8)
        reads_step = steps.period is not None and self._reads_step(steps.period)
        steps = replace(steps, in_ram=self._in_ram(float(np.median(steps.latency_ns[0]))))
        rested: list[float] = self._rested() if steps.one_by_one else []
        if rested and min(rested) < ONE_BY_ONE:
            # Nothing of it is told: a limit of the whole device looks the same.
            steps = replace(steps, held_back=min(rested))
        random = (float("nan"), float("nan"))
        if steps.period == 1:
            together = self._together()
            random = (self._random_cost(), together)
        found = self._told(steps, reads_step, conflicts, sharing, random)
        if found[0].verdict == "unknown" and sharing is not None and sharing.unclear:
            # Should time run out, that stays.
            self.context.keep(*found)
            written = self._just_written()
            if written.units is None:
                written = replace(sharing, why=f"{sharing.why}; {written.why}")
            found = self._told(steps, reads_step, conflicts, written, random)
        if found[0].verdict == "unknown" and not steps.in_ram and can_ask(self.context):
            self.context.keep(*found)
            turns = erases(self.context, self.page_bytes)
            told = by_erases(found, turns, self.page_bytes, steps, conflicts, sharing)
            found = [*told[:2], found[2] if self.context.found_or_open("slc-cache") else told[2]]
        units, stripe, program = found
        if steps.in_ram and units.verdict == "found" and can_ask_rows(self.context):
            self.context.keep(*found)
            seen_rows = rows(self.context, self.page_bytes, int(units.value or 1))
            found = [
                units,
                stripe_of_rows(stripe, seen_rows),
                program_of_rows(program, seen_rows),
            ]
        self.context.progress(1.0)
        return found

    def _just_written(self) -> Sharing:
        """Groups of places that were written last, of as much of the drive as is read in order."""
        pages = min(self.target.capacity_bytes, self.effort.written_bytes) // self.page_bytes
        rng = self.context.rng("parallelism-written")
        return Written(
            self.target,
            rng,
            self.page_bytes,
            pages,
            self.effort.clearing_bytes,
            lambda: self._renew(pages),
        ).sharing()

    def _told(
        self,
        steps: Steps,
        reads_step: bool,
        conflicts: list[Conflicts],
        sharing: Sharing | None,
        random: tuple[float, float],
    ) -> list[Finding]:
        if sharing is not None:
            conflicts = [
                replace(one, borne_out=one.period is not None and one.period == sharing.units)
                for one in conflicts
            ]
        plots = (steps_plot(steps), *(conflicts_plot(conflict) for conflict in conflicts))
        if sharing is not None:
            plots += sharing_plots(sharing)
        seen = seen_of(conflicts)
        by_steps = units_by_steps(steps, reads_step, None if seen is None else seen.units)
        return [
            self._units(steps, reads_step, conflicts, sharing, random, plots),
            self._stripe(steps, reads_step, conflicts, sharing, plots),
            program_unit(self.page_bytes, seen, by_steps, plots, self.context),
        ]

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
        seen = seen_of(conflicts)
        by_steps = units_by_steps(steps, reads_step, told_by(seen, sharing))
        figures = {"step_share": steps.step_share, "steps_agree_share": steps.agree}
        if steps.period is not None:
            figures["steps_units"] = float(steps.period)
            figures["inner_rise_share"] = steps.inner_share
        if steps.period == 1:
            figures |= {"random_over_sequential_cost": merges, "together_over_alone": together}
        if seen is not None:
            figures |= {"pairs_units": float(seen.units), "pairs_agree_share": seen.agree}
            if np.isfinite(seen.anywhere):
                figures["random_pairs_over_expected"] = seen.anywhere
            if seen.grain == "block":
                figures["run_on_one_unit_B"] = float(seen.grain_bytes)
        if by_steps is not None and seen is not None and seen.units != by_steps:
            why = (
                f"Writes repeat their steps every {by_steps} clustered pages, but pairs of reads conflict every "
                f"{seen.units}: the two do not agree."
            )
            return unknown("parallel-units", why, "units", plots, **figures)
        if seen is not None and not seen.alike:
            why = (
                f"Reads of two pages wait for each other where they lie a multiple of {seen.units} apart, but of "
                f"random pairs {seen.anywhere:.2f} times as many wait as {seen.units} units would have: the period is "
                "that of a stripe over members, or of its parity."
            )
            return unknown("parallel-units", why, "units", plots, **figures)
        if seen is not None:
            where = (
                "clustered pages" if seen.grain == "page" else f"runs of {kib(seen.grain_bytes)}"
            )
            why = f"Reads of two pages wait for each other where they lie a multiple of {seen.units} {where} apart"
            why += ", and writes step up every as many pages." if by_steps else "."
            if seen.borne_out:
                why += " Random places fall into as many groups."
            confidence = max(seen.agree, steps.agree) if by_steps else seen.agree
            return units_found(seen.units, confidence, why, plots, figures)
        if sharing is not None and sharing.units is not None:
            if by_steps is not None and by_steps != sharing.units:
                why = (
                    f"Writes repeat their steps every {by_steps} clustered pages, but reads of random places give "
                    f"{sharing.units} groups that wait for each other: the two do not agree."
                )
                return unknown("parallel-units", why, "units", plots, **figures)
            return units_by_sharing(sharing, figures, plots)
        if by_steps is not None:
            why = (
                f"Writes of up to {by_steps} clustered pages differ by little, and each further {by_steps} add "
                f"{steps.step_share:.0%} of what one takes; reads step there too."
            )
            return units_found(by_steps, steps.agree, why, plots, figures)
        if (
            steps.one_by_one
            and self._goes_anywhere()
            and 1 / _NO_MERGES < merges < _NO_MERGES
            and _NOTHING_GAINED[0] <= together <= _NOTHING_GAINED[1]
        ):
            why = (
                f"Each clustered page of a write adds {steps.step_share:.0%} of what one alone costs, though pages may "
                f"go anywhere: random writes cost {merges:.2f} times what writes in order cost, so nothing is merged, "
                f"and {TOGETHER} at once take {together:.1f} times as long as one."
            )
            return units_found(1, steps.agree, why, plots, figures)
        return unknown(
            "parallel-units", self._blind(steps, sharing, merges), "units", plots, **figures
        )

    def _goes_anywhere(self) -> bool:
        """Whether random writes would have shown logs: not if logs were found, or if so few writes may fit in them."""
        mapping = self.context.known.get("mapping")
        if mapping is not None and mapping.verdict == "found":
            return mapping.value == "page"
        return self._random_writes() >= _WRITES_TO_TELL

    def _blind(self, steps: Steps, sharing: Sharing | None, merges: float) -> str:
        pairs = (
            "pairs of reads show no regular conflicts (no command queuing, one unit, or no order)"
        )
        if sharing is not None:
            pairs += f"; {sharing.why}"
        if steps.in_ram:
            return f"A write and its flush take no longer than a read, so that RAM hides all steps, and {pairs}."
        in_bounds = A_STEP <= steps.step_share <= FULL_STEP[1]
        if steps.held_back is not None:
            return (
                f"Each clustered page of a write adds {steps.step_share:.0%} of what one alone costs, but after rest "
                f"only {steps.held_back:.0%}, as where heat or a limit of bytes holds the drive back, and {pairs}."
            )
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
        sharing: Sharing | None,
        plots: tuple[Plot, ...],
    ) -> Finding:
        figures = {"step_share": steps.step_share}
        seen = seen_of(conflicts)
        by_steps = units_by_steps(steps, reads_step, told_by(seen, sharing))
        by_pairs = seen.units if seen is not None and seen.grain == "page" and seen.alike else None
        if steps.held_back is not None and by_pairs is None:
            why = (
                f"Pages that follow each other seem to wait for each other (+{steps.step_share:.0%} each), but after "
                f"rest only by {steps.held_back:.0%}: heat or a limit of bytes may be all of it."
            )
            return unknown("stripe", why, "B", plots, **figures)
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
        if (
            seen is not None
            and seen.grain == "block"
            and seen.alike
            and self.context.is_page_mapped
        ):
            why = (
                f"Runs of {kib(seen.grain_bytes)} that follow each other go to {seen.units} units in turn, by pairs of "
                "reads."
            )
            whole = seen.units * seen.grain_bytes
            low, high = whole - seen.grain_bytes, whole + seen.grain_bytes
            return Finding(
                "stripe", "found", whole, "B", low, high, seen.agree, why, plots, figures
            )
        if seen is None and sharing is not None and sharing.units == 1:
            why = (
                "Any two reads wait for each other: there is one unit, so that nothing is striped."
            )
            return Finding(
                "stripe",
                "absent",
                confidence=sharing.confidence,
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
