"""What ``flashwright advise space`` shows of the reservations that were played."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flashwright.advice.space import Advice, Point
from flashwright.cli.render import page, units
from flashwright.simulation.parts import amplifications_differ

__all__ = ["show", "unmet"]


def unmet(found: Advice) -> str:
    """Why no reservation is recommended."""
    if found.uncleaned and not any(point.is_settled for point in found.points):
        return (
            "no reservation can be recommended: at "
            f"{_utilizations(found.uncleaned)} cleaning moved no page under this load, so its figures do not depend "
            "on what is reserved; if the load was to fill the drive, take --addresses scale for a trace, or a smaller "
            "drive"
        )
    if not any(point.is_settled for point in found.points):
        return "no reservation can be recommended: no run had settled, and what is met in a transient is not met"
    parts = []
    for target, value, at in found.nearest:
        if value is None:
            parts.append(f"{target.text}: no run has that figure")
        else:
            parts.append(
                f"{target.text}: the best comes to {_shown(target.metric, value)}, at utilization {at:g}"
            )
    together = "" if len(found.nearest) != len(found.targets) or len(found.targets) == 1 else "all "
    return f"no reservation meets {together}{'; '.join(parts)}"


def _utilizations(points: Sequence[Point]) -> str:
    """The utilizations of some points, as text."""
    if len(points) == 1:
        return f"utilization {points[0].utilization:g}"
    return (
        f"{len(points)} utilizations from {points[0].utilization:g} to {points[-1].utilization:g}"
    )


def show(found: Advice, document: dict[str, Any]) -> None:
    """Print the reservations that were played, the knee, and the least that meets the targets."""
    out = page.console()
    config = document["config"]
    rows = [
        ("advise", f"{config['name']}, {document['workload']}"),
        ("precondition", f"{document['precondition']}; seed {document['seed']}"),
        *(("warning", str(each)) for each in found.warnings),
    ]
    out.print(page.grid(rows))
    by_bytes = any(amplifications_differ(point.result.json) for point in found.points)
    table = page.plain_table(
        page.Column("reserved", 100),
        page.Column("utilization", 95),
        page.Column("WA", 99),
        page.Column("95 % of WA", 62),
        *([page.Column("WA(bytes)", 98)] if by_bytes else []),
        page.Column("settled", 98, number=False),
        page.Column("IOPS", 80),
        page.Column("mean", 70),
        page.Column("p99", 75),
        page.Column("p99.9", 50),
        page.Column("data till end", 60),
        page.Column("years", 65),
        page.Column("", 90, number=False),
    )
    for point in found.points:
        table.add_row(
            units.share(point.reserved),
            f"{point.utilization:g}",
            _shown("write-amplification", point.value("write-amplification")),
            units.interval(point.interval("write-amplification")),
            *([units.number(point.value("write-amplification-bytes"))] if by_bytes else []),
            units.VERDICTS[point.verdict],
            *(_shown(metric, point.value(metric)) for metric in ("iops", "mean", "p99", "p99.9")),
            units.size(point.life_bytes) if point.life_bytes is not None else "-",
            units.number(point.life_years, 2),
            _marks(found, point),
        )
    out.print(table)
    rows = [("knee", _knee(found))]
    same = [point for point in found.points if len(point.results) > len(point.different)]
    if same:
        rows.append(
            (
                "seeds",
                f"the seed changes nothing in {len(same)} of {len(found.points)} points (equal digests): one run, "
                "played again; its interval of write amplification is over parts of the run",
            )
        )
    if found.recommended is not None:
        best = found.recommended
        figures = ", ".join(
            f"{t.metric} {_shown(t.metric, best.value(t.metric))}" for t in found.targets
        )
        rows.append(
            (
                "reserve",
                f"{units.share(best.reserved)} (capacity.utilization={best.utilization:g}), the least that meets "
                f"{', '.join(t.text for t in found.targets)}: {figures} in a settled drive; {_confirmed(found)}",
            )
        )
        if found.undecided:
            least = min(point.reserved for point in found.undecided)
            rows.append(
                (
                    "undecided",
                    f"down to {units.share(least)}, runs kept the targets but had not settled; "
                    "--precondition workload:capacities=N with N above 64 may tell",
                )
            )
    out.print(page.grid(rows))


def _shown(metric: str, value: float | None) -> str:
    if metric in ("mean", "p99", "p99.9"):
        return units.time(value)
    if metric == "throughput":
        return units.rate(value)
    if metric == "iops":
        return units.count(value)
    text = units.number(value)
    return f"{text} years" if metric == "life" and value is not None else text


def _confirmed(found: Advice) -> str:
    assert found.recommended is not None and found.recommended.confirmation is not None
    again = found.recommended.confirmation
    figures = ", ".join(
        f"{t.metric} {_shown(t.metric, again.value(t.metric))}" for t in found.targets
    )
    if found.recommended.is_confirmed:
        return f"{figures} once more {again.played_as}"
    return f"NOT CONFIRMED: the seed changes nothing in this run, which has {figures} if measured longer"


def _marks(found: Advice, point: Point) -> str:
    marks = []
    if point is found.knee:
        marks.append("knee")
    if point is found.recommended:
        marks.append("meets the target" if len(found.targets) == 1 else "meets the targets")
    return ", ".join(marks)


def _knee(found: Advice) -> str:
    if found.knee is None:
        return "none: write amplification does not turn steep in this range"
    return (
        f"{units.share(found.knee.reserved)} reserved (capacity.utilization={found.knee.utilization:g}): "
        "beyond it write amplification turns steep"
    )
