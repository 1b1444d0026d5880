"""Findings of units and stripes by what the probe ``parallelism`` measured."""

from __future__ import annotations

from dataclasses import replace

from flashwright.drive.findings import Finding, Plot
from flashwright.probing.probes.conflicts import Sharing
from flashwright.probing.probes.erases import Erases
from flashwright.probing.probes.periods import (
    A_STEP,
    AGREE,
    FULL_STEP,
    Conflicts,
    Steps,
    seen_of,
)
from flashwright.target.question import kib

__all__ = ["by_erases", "told_by", "units_by_sharing", "units_found"]


def told_by(seen: Conflicts | None, sharing: Sharing | None) -> int | None:
    """Units by pairs of reads, one way or the other."""
    if seen is not None and seen.alike:
        return seen.units
    return None if sharing is None else sharing.units


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
    return units_found(units, sharing.confidence, sharing.why, plots, figures)


def units_found(
    value: int, confidence: float, why: str, plots: tuple[Plot, ...], figures: dict[str, float]
) -> Finding:
    """Units that were found: a whole number, exact if it is right."""
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
    told = [units_found(turns.units, sure, turns.why, plots, dict(units.figures))]
    if page_bytes is None:
        return [*told, stripe, program]
    if stripe.verdict == "unknown":
        whole, grain = turns.units * page_bytes, float(page_bytes)
        why = f"{turns.why} So pages of {kib(page_bytes)} go to {turns.units} units in turn."
        stripe = Finding(
            "stripe", "found", whole, "B", whole - grain, whole + grain, sure, why, plots
        )
    if program.verdict == "unknown":
        why = f"{turns.why} So each page of {kib(page_bytes)} is programmed by itself, on the next unit."
        low, high = 0.0, 2.0 * page_bytes
        program = Finding("program-unit", "found", page_bytes, "B", low, high, sure, why, plots)
    return [*told, stripe, program]


def _against(
    turns: Erases, steps: Steps | None, conflicts: list[Conflicts], sharing: Sharing | None
) -> str:
    """What speaks against as many units as erase in a row; empty if nothing does."""
    units = turns.units
    if units is None:
        return ""
    seen = seen_of(conflicts)
    for other in (None if seen is None else seen.units, None if sharing is None else sharing.units):
        if other is not None and other != units:
            return f" But pairs of reads say {other}"
    if steps is None:
        return ""
    if steps.one_by_one:
        return " But pages that follow each other are written one by one"
    clear = steps.agree >= AGREE and A_STEP <= steps.step_share <= FULL_STEP[1]
    if clear and steps.period is not None and units % steps.period:
        return f" But writes repeat their steps every {steps.period} pages"
    return ""
