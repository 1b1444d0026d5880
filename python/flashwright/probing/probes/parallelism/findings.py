"""What the measurements say of units, stripe and program, and what they leave open."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from flashwright.drive.findings import Finding, Plot, unknown
from flashwright.probing.probes.parallelism.conflicts import Sharing
from flashwright.probing.probes.parallelism.erases import Erases
from flashwright.probing.probes.parallelism.measurements import TOGETHER
from flashwright.probing.probes.parallelism.periods import (
    AGREE,
    INNER_MOST,
    ONE_BY_ONE,
    STEP_LEAST,
    STEP_MOST,
    STEP_SEEN,
    Conflicts,
    Steps,
    clear_conflicts,
    conflicts_plot,
    sharing_plots,
    steps_plot,
    units_by_steps,
)
from flashwright.probing.probes.shared import verdicts
from flashwright.target.question import UNTESTED, Context, kib

__all__ = ["Evidence", "by_erases", "findings_of", "program_unit", "units_by_sharing"]

# Random writes that cost no more than this times what writes in order cost have no merges. Measured on the drives that
# we drew: a log-block drive pays 3 % more and above once its logs are used (algorithms.md 8.8).
_NO_MERGES = 1.02

# Random writes that fill the logs of the drives that we drew, where their pages are small enough for it.
_LOG_WRITES = 256

# How long eight pages take that are handed over together, in times of one, if there is but one unit, at least. Chosen:
# the link overlaps a little; two units would take half as long.
_TOGETHER_LEAST = 6.5
# The same at most. Chosen: more is merges.
_TOGETHER_MOST = 8.8


@dataclass(frozen=True, eq=False)
class Evidence:
    """What was measured of a drive's units.

    Attributes
    ----------
    context : Context
        With what earlier probes found.
    page_bytes : int
        The clustered page.
    steps : Steps
        Of writes of more and more pages.
    reads_step : bool
        Whether reads step where writes do.
    conflicts : list of Conflicts
        Pairs of reads by distance.
    sharing : Sharing or None
        Groups of random places; None where they were not needed.
    random_writes : int
        Random writes whose cost was measured.
    random_cost, together : float
        What such a write costs over one in order, and what some that are handed over together take over one alone; NaN
        where writes do not cost the same each.
    """

    context: Context
    page_bytes: int
    steps: Steps
    reads_step: bool
    conflicts: list[Conflicts]
    sharing: Sharing | None
    random_writes: int
    random_cost: float = float("nan")
    together: float = float("nan")

    def __post_init__(self) -> None:
        if self.sharing is None:
            return
        groups = self.sharing.units
        borne_out = [
            replace(each, borne_out=each.period is not None and each.period == groups)
            for each in self.conflicts
        ]
        object.__setattr__(self, "conflicts", borne_out)

    @property
    def clear(self) -> Conflicts | None:
        """The pairs of reads that show a period clearly."""
        return clear_conflicts(self.conflicts)

    @property
    def by_steps(self) -> int | None:
        """Units by the steps of writes; as many by pairs of reads bear them out."""
        return units_by_steps(self.steps, self.reads_step, _by_pairs(self.clear, self.sharing))

    @property
    def plots(self) -> tuple[Plot, ...]:
        """All that was measured."""
        groups = () if self.sharing is None else sharing_plots(self.sharing)
        return (steps_plot(self.steps), *map(conflicts_plot, self.conflicts), *groups)


def findings_of(evidence: Evidence) -> list[Finding]:
    """Units, stripe and program unit."""
    clear = evidence.clear
    # For the program, steps need pairs by distance to agree; groups of random places do not count.
    distance = None if clear is None else clear.units
    by_steps = units_by_steps(evidence.steps, evidence.reads_step, distance)
    page, plots, context = evidence.page_bytes, evidence.plots, evidence.context
    return [
        _units(evidence),
        _stripe(evidence),
        program_unit(page, clear, by_steps, plots, context),
    ]


def _by_pairs(clear: Conflicts | None, sharing: Sharing | None) -> int | None:
    """Units by pairs of reads, by their distance or at random places."""
    if clear is not None and clear.matches_random:
        return clear.units
    return None if sharing is None else sharing.units


def _units(evidence: Evidence) -> Finding:
    steps, seen, sharing = evidence.steps, evidence.clear, evidence.sharing
    by_steps, plots = evidence.by_steps, evidence.plots
    merges, together = evidence.random_cost, evidence.together
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
    if seen is not None and not seen.matches_random:
        why = (
            f"Reads of two pages wait for each other where they lie a multiple of {seen.units} apart, but of "
            f"random pairs {seen.anywhere:.2f} times as many wait as {seen.units} units would have: the period is "
            "that of a stripe over members, or of its parity."
        )
        return unknown("parallel-units", why, "units", plots, **figures)
    if seen is not None:
        where = "clustered pages" if seen.grain == "page" else f"runs of {kib(seen.grain_bytes)}"
        why = f"Reads of two pages wait for each other where they lie a multiple of {seen.units} {where} apart"
        why += ", and writes step up every as many pages." if by_steps else "."
        if seen.borne_out:
            why += " Random places fall into as many groups."
        confidence = max(seen.agree, steps.agree) if by_steps else seen.agree
        return _units_found(seen.units, confidence, why, plots, figures)
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
        return _units_found(by_steps, steps.agree, why, plots, figures)
    if (
        steps.one_by_one
        and _goes_anywhere(evidence)
        and 1 / _NO_MERGES < merges < _NO_MERGES
        and _TOGETHER_LEAST <= together <= _TOGETHER_MOST
    ):
        why = (
            f"Each clustered page of a write adds {steps.step_share:.0%} of what one alone costs, though pages may "
            f"go anywhere: random writes cost {merges:.2f} times what writes in order cost, so nothing is merged, "
            f"and {TOGETHER} at once take {together:.1f} times as long as one."
        )
        return _units_found(1, steps.agree, why, plots, figures)
    return unknown("parallel-units", _why_unknown(evidence), "units", plots, **figures)


def _goes_anywhere(evidence: Evidence) -> bool:
    """Whether random writes would have shown logs: not if logs were found, or if so few writes may fit in them."""
    mapping = evidence.context.known.get("mapping")
    if mapping is not None and mapping.verdict == "found":
        return mapping.value == "page"
    return evidence.random_writes >= _LOG_WRITES


def _why_unknown(evidence: Evidence) -> str:
    """Why neither writes nor reads show units."""
    steps, sharing, merges = evidence.steps, evidence.sharing, evidence.random_cost
    pairs = "pairs of reads show no regular conflicts (no command queuing, one unit, or no order)"
    if sharing is not None:
        pairs += f"; {sharing.why}"
    if steps.in_ram:
        return f"A write and its flush take no longer than a read, so that RAM hides all steps, and {pairs}."
    in_bounds = STEP_SEEN <= steps.step_share <= STEP_MOST
    if steps.held_back is not None:
        return (
            f"Each clustered page of a write adds {steps.step_share:.0%} of what one alone costs, but after rest "
            f"only {steps.held_back:.0%}, as where heat or a limit of bytes holds the drive back, and {pairs}."
        )
    if steps.period is None or steps.agree < AGREE or not in_bounds:
        return (
            f"The latency of writes of several clustered pages repeats no clear step, and {pairs}."
        )
    if steps.period > 1 and steps.step_share < STEP_LEAST:
        return (
            f"{steps.period} units at the least: writes repeat their steps every {steps.period} clustered pages, "
            f"but a step is {steps.step_share:.0%} of a page's latency, as of a bus that is shared, and {pairs}."
        )
    if steps.period > 1 and steps.inner_share > INNER_MOST:
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


def _stripe(evidence: Evidence) -> Finding:
    steps, seen, sharing = evidence.steps, evidence.clear, evidence.sharing
    by_steps, plots, page_bytes = evidence.by_steps, evidence.plots, evidence.page_bytes
    figures = {"step_share": steps.step_share}
    by_pairs = (
        seen.units if seen is not None and seen.grain == "page" and seen.matches_random else None
    )
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
        return verdicts.absent("stripe", "B", steps.agree, why, plots, figures)
    if (
        seen is not None
        and seen.grain == "block"
        and seen.matches_random
        and evidence.context.is_page_mapped
    ):
        why = (
            f"Runs of {kib(seen.grain_bytes)} that follow each other go to {seen.units} units in turn, by pairs of "
            "reads."
        )
        whole = seen.units * seen.grain_bytes
        low, high = whole - seen.grain_bytes, whole + seen.grain_bytes
        return verdicts.found("stripe", whole, "B", (low, high), seen.agree, why, plots, figures)
    if seen is None and sharing is not None and sharing.units == 1:
        why = "Any two reads wait for each other: there is one unit, so that nothing is striped."
        return verdicts.absent("stripe", "B", sharing.confidence, why, plots, figures)
    width = by_pairs or by_steps
    if width is None or (by_pairs and by_steps and by_pairs != by_steps):
        why = "Neither the steps of long writes nor pairs of reads give a width that the other bears out."
        return unknown("stripe", why, "B", plots, **figures)
    why = (
        f"Writes in order go to {width} units in turn, a clustered page of {kib(page_bytes)} each."
    )
    size, grain = width * page_bytes, float(page_bytes)
    agree = max(
        steps.agree if by_steps else 0.0, seen.agree if by_pairs and seen is not None else 0.0
    )
    return verdicts.found(
        "stripe", size, "B", (size - grain, size + grain), agree, why, plots, figures
    )


def program_unit(
    page: int,
    seen: Conflicts | None,
    by_steps: int | None,
    plots: tuple[Plot, ...],
    context: Context,
) -> Finding:
    """The finding by pairs of reads.

    Parameters
    ----------
    page : int
        The clustered page, bytes.
    seen : Conflicts or None
        The pairs that show a period, if any do.
    by_steps : int or None
        Units by the steps of writes, if those show any.
    plots : tuple of Plot
        The evidence.
    context : Context
        With what is known: without a page map, what lies on one unit may be a block; in an SLC cache, what one program
        takes of each cell.
    """
    page_mapped, cached = context.is_page_mapped, context.found_or_open("slc-cache")
    if (
        (seen is None or not seen.matches_random)
        and by_steps is not None
        and page_mapped
        and not cached
    ):
        why = (
            f"Flushed writes of up to {by_steps} clustered pages of {kib(page)} differ by little, and each further "
            f"{by_steps} take a program more: each page is programmed by itself, on the next unit."
        )
        low, high = 0.0, 2.0 * page
        return verdicts.found("program-unit", page, "B", (low, high), UNTESTED, why, plots)
    if seen is None or not seen.matches_random:
        return unknown("program-unit", "No pairs of reads show what lies on one unit.", "B", plots)
    run = seen.grain_bytes
    if cached:
        why = (
            f"Runs of {kib(run)} lie on one unit, but they may be what one program takes in an SLC cache; normal cells "
            "take as much for each of their bits at once."
        )
        return unknown("program-unit", why, "B", plots)
    if not page_mapped:
        why = (
            f"Runs of {kib(run)} lie on one unit, but without a page map these may be blocks rather than what is "
            "programmed at once."
        )
        return unknown("program-unit", why, "B", plots)
    if run == page and by_steps != seen.units:
        # RAM may gather what a die programs at once, while mapping units go to dies in turn.
        why = (
            f"Writes in order put {kib(run)} on one unit before the next one's turn, as small as the mapping unit; but "
            f"writes and their flushes do not step by a program every {seen.units} of these, so that each unit may "
            "gather several in RAM for one program."
        )
        return unknown("program-unit", why, "B", plots)
    why = (
        f"Writes in order put {kib(run)} on one unit before the next one's turn, by pairs of reads; "
        + (
            f"the mapping unit, below which a write has to read first, is {kib(page)}."
            if run != page
            else "a write of less has to read first as well."
        )
    )
    low, high = float(run - page), float(run + page)
    return verdicts.found("program-unit", run, "B", (low, high), seen.agree, why, plots)


def units_by_sharing(
    sharing: Sharing, figures: dict[str, float], plots: tuple[Plot, ...]
) -> Finding:
    """The finding by groups of random places that wait for each other."""
    units = sharing.units or 0
    figures = figures | {
        "places": float(sharing.places),
        "pair_together_ns": sharing.together_ns,
        "sharing_units": float(units),
    }
    if units > 1:
        figures["pair_apart_ns"] = sharing.apart_ns
    return _units_found(units, sharing.confidence, sharing.why, plots, figures)


def _units_found(
    value: int, confidence: float, why: str, plots: tuple[Plot, ...], figures: dict[str, float]
) -> Finding:
    """Units that were found: a whole number, exact if it is right."""
    return verdicts.found(
        "parallel-units",
        value,
        "units",
        (float(value), float(value)),
        confidence,
        why,
        plots,
        figures,
    )


def by_erases(
    found: list[Finding],
    turns: Erases,
    page_bytes: int | None,
    steps: Steps | None,
    conflicts: list[Conflicts],
    sharing: Sharing | None,
) -> list[Finding]:
    """Units, stripe and program by the erases of a drive that is overwritten in order, where nothing else tells them.

    Parameters
    ----------
    found : list of Finding
        Units, stripe and program by all else; the units are unknown.
    turns : Erases
        What overwriting in order showed.
    page_bytes : int or None
        The clustered page.
    steps : Steps or None
        Of writes, if they were measured.
    conflicts : list of Conflicts
        Of pairs of reads.
    sharing : Sharing or None
        Groups of random places.
    """
    units, stripe, program = found
    against = _against(turns, steps, conflicts, sharing)
    if turns.units is None or against:
        why = f"{units.why.rstrip('.')}; {turns.why.rstrip('.')}{against}."
        return [replace(units, why=why, plots=units.plots + turns.plots), stripe, program]
    plots, sure = units.plots + turns.plots, turns.confidence
    by_erasing = [_units_found(turns.units, sure, turns.why, plots, dict(units.figures))]
    if page_bytes is None:
        return [*by_erasing, stripe, program]
    if stripe.verdict == "unknown":
        whole, grain = turns.units * page_bytes, float(page_bytes)
        why = f"{turns.why} So pages of {kib(page_bytes)} go to {turns.units} units in turn."
        stripe = verdicts.found(
            "stripe", whole, "B", (whole - grain, whole + grain), sure, why, plots
        )
    if program.verdict == "unknown":
        why = f"{turns.why} So each page of {kib(page_bytes)} is programmed by itself, on the next unit."
        low, high = 0.0, 2.0 * page_bytes
        program = verdicts.found("program-unit", page_bytes, "B", (low, high), sure, why, plots)
    return [*by_erasing, stripe, program]


def _against(
    turns: Erases, steps: Steps | None, conflicts: list[Conflicts], sharing: Sharing | None
) -> str:
    """What contradicts that as many units as long writes in a row erase; empty if nothing does."""
    units = turns.units
    if units is None:
        return ""
    seen = clear_conflicts(conflicts)
    for other in (None if seen is None else seen.units, None if sharing is None else sharing.units):
        if other is not None and other != units:
            return f" But pairs of reads say {other}"
    if steps is None:
        return ""
    if steps.one_by_one:
        return " But pages that follow each other are written one by one"
    clear = steps.agree >= AGREE and STEP_SEEN <= steps.step_share <= STEP_MOST
    if clear and steps.period is not None and units % steps.period:
        return f" But writes repeat their steps every {steps.period} pages"
    return ""
