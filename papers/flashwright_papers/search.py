"""Readings of a source other than the one that is taken, tried one at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from flashwright.sweeps.points import Store
from flashwright_papers.claims import Setting, Verdict
from flashwright_papers.papers import Paper
from flashwright_papers.planning import Plan, keys, needs, plan
from flashwright_papers.verdicts import ClaimVerdict, Reading

__all__ = ["search"]


def search(
    read: Mapping[str, Paper],
    claim_verdicts: Sequence[ClaimVerdict],
    setting: Setting,
    store: Store,
    judge: Callable[[Plan], tuple[ClaimVerdict, ...]],
) -> tuple[ClaimVerdict, ...]:
    """The same with what other readings give for claims that are not reproduced.

    Parameters
    ----------
    read : mapping of str to Paper
        All papers.
    claim_verdicts : sequence of ClaimVerdict
        What came out with the readings that are taken.
    setting : Setting
        What that was run with.
    store : Store
        Where results are kept.
    judge : callable
        Runs and judges a plan.
    """
    found: dict[str, list[Reading]] = {}
    for name, paper in read.items():
        sought = [
            each.claim
            for each in claim_verdicts
            if each.claim.paper == name and each.verdict in (Verdict.DIRECTION, Verdict.NOT)
        ]
        small = replace(setting, divisor=paper.search_divisor)
        readings = [(each, value) for each in paper.open for value in each.others]
        if not sought or not readings:
            continue
        taken = plan(read, sought, small, store)
        others = []
        for left_open, value in readings:
            given = replace(small, given={**small.given, left_open.name: value})
            made = plan(read, sought, given, store)
            touched = tuple(
                each for each in sought if keys(read, made, each) != keys(read, taken, each)
            )
            others.append((left_open.describe(value), made, touched))
        # A claim whose runs no reading changes is left alone.
        open_ = tuple(each for each in sought if any(each in touched for _, _, touched in others))
        for description, made, touched in [("", taken, open_), *others]:
            if not touched:
                continue
            needed = {need for each in touched for need in needs(read, each)}
            points = {need: made.points[need] for need in made.points if need in needed}
            for each in judge(replace(made, claims=touched, points=points)):
                if each.answer is not None:
                    reading = Reading(description, each.answer.verdict, each.answer.ours)
                    found.setdefault(each.claim.id, []).append(reading)
    return tuple(
        replace(each, searched=tuple(found.get(each.claim.id, ()))) for each in claim_verdicts
    )
