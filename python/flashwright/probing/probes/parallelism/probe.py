"""The probe of units: what it measures in which order."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from flashwright.drive.findings import Finding, unknown
from flashwright.probing.probes.parallelism.conflicts import Sharing
from flashwright.probing.probes.parallelism.equal_places import JustWritten, sharing_of
from flashwright.probing.probes.parallelism.erases import can_ask, erases
from flashwright.probing.probes.parallelism.erases import cost as erases_cost
from flashwright.probing.probes.parallelism.findings import (
    Evidence,
    by_erases,
    findings_of,
    units_by_sharing,
)
from flashwright.probing.probes.parallelism.measurements import (
    ANYWHERE,
    EFFORTS,
    READ_BYTES,
    SHORT,
    SHORT_REPEATS,
    UnitMeasurements,
    page_counts,
    region_of,
)
from flashwright.probing.probes.parallelism.periods import (
    ONE_BY_ONE,
    clear_conflicts,
    sharing_plots,
)
from flashwright.probing.probes.parallelism.rows import can_ask as can_ask_rows
from flashwright.probing.probes.parallelism.rows import cost as rows_cost
from flashwright.probing.probes.parallelism.rows import program_of_rows, rows, stripe_of_rows
from flashwright.target.arrays import MIB
from flashwright.target.question import Context, Cost, kib

__all__ = ["Parallelism"]

# How often the curve of writes is measured at most. Derived: four times as many repeats halve the noise of a level.
_PATIENCE = 4

# Pairs of random places that the closer look inside of groups takes at least, for the cost: as many as `conflicts`
# measures.
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
            + _PATIENCE * page * effort.writes * count * (count + 1) // 2
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
            + 2 * (_PATIENCE * effort.writes * count + random)
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
            units = zip(self.PARAMETERS, ("units", "B", "B"), strict=True)
            return [unknown(parameter, why, unit) for parameter, unit in units]
        return _with_page(context, page)


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


def _with_page(context: Context, page: int) -> list[Finding]:
    """What writes of several pages and pairs of reads show; and where those are blind, what else does."""
    measure = UnitMeasurements(context, page)
    measure.renew()
    conflicts = measure.conflicts()
    context.progress(0.3)
    clear, sharing = clear_conflicts(conflicts), None
    if clear is None or not clear.matches_random:
        sharing = _sharing(context, page, measure.pages)
    context.progress(0.5)
    measure.renew()
    # Where reads show no units, only writes are left: they get more repeats.
    seen_in_reads = sharing is None or sharing.units is not None
    steps = measure.steps(1 if seen_in_reads else _PATIENCE)
    context.progress(0.8)
    reads_step = steps.period is not None and measure.reads_step(steps.period)
    steps = replace(steps, in_ram=measure.in_ram(float(np.median(steps.latency_ns[0]))))
    rested: list[float] = measure.costs_after_rests() if steps.one_by_one else []
    if rested and min(rested) < ONE_BY_ONE:
        # The steps are no evidence then: a limit of the whole device looks the same.
        steps = replace(steps, held_back=min(rested))
    random_cost = together = float("nan")
    if steps.period == 1:
        together = measure.together()
        random_cost = measure.random_cost()
    evidence = Evidence(
        context,
        page,
        steps,
        reads_step,
        conflicts,
        sharing,
        measure.random_writes(),
        random_cost,
        together,
    )
    found = findings_of(evidence)
    if found[0].verdict == "unknown" and sharing is not None and sharing.unclear:
        # Should time run out, these findings stay.
        context.keep(*found)
        written = _just_written(measure)
        if written.units is None:
            written = replace(sharing, why=f"{sharing.why}; {written.why}")
        found = findings_of(replace(evidence, conflicts=conflicts, sharing=written))
    if found[0].verdict == "unknown" and not steps.in_ram and can_ask(context):
        context.keep(*found)
        by_turns = by_erases(found, erases(context, page), page, steps, conflicts, sharing)
        # In an SLC cache a program takes less than in normal cells, so erases do not tell it.
        cached = context.found_or_open("slc-cache")
        found = [*by_turns[:2], found[2] if cached else by_turns[2]]
    units, stripe, program = found
    if steps.in_ram and units.verdict == "found" and can_ask_rows(context):
        context.keep(*found)
        seen_rows = rows(context, page, int(units.value or 1))
        found = [units, stripe_of_rows(stripe, seen_rows), program_of_rows(program, seen_rows)]
    context.progress(1.0)
    return found


def _just_written(measure: UnitMeasurements) -> Sharing:
    """Groups of places that were written last, of as much of the drive as is read in order."""
    target, effort, page = measure.target, measure.effort, measure.page_bytes
    pages = min(target.capacity_bytes, effort.written_bytes) // page
    return JustWritten(
        target,
        measure.context.rng("parallelism-written"),
        page,
        pages,
        effort.clearing_bytes,
        lambda: measure.renew(pages),
    ).sharing()
