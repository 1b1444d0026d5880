"""What ``flashwright advise space`` shows of the reservations that were played."""

from __future__ import annotations

from typing import Any

from flashwright.cli.render import page, units
from flashwright.life.advise import Advice, Point
from flashwright.run.parts import amplifications_differ

__all__ = ["show", "unmet"]


def unmet(found: Advice) -> str:
    """Why no reservation is recommended."""
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


def show(found: Advice, document: dict[str, Any]) -> None:
    """Print the reservations that were played, the knee, and the least that meets the targets."""
    out = page.console()
    config = document["config"]
    rows = [
        ("advise", f"{config['name']}, {document['workload']}"),
        ("precondition", f"{document['precondition']}; seed {document['seed']}"),
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
    if found.recommended is not None:
        best = found.recommended
        figures = ", ".join(
            f"{t.metric} {_shown(t.metric, best.value(t.metric))}" for t in found.targets
        )
        rows.append(
            (
                "reserve",
                f"{units.share(best.reserved)} (capacity.utilization={best.utilization:g}), the least that meets "
                f"{', '.join(t.text for t in found.targets)}: {figures} in a settled drive; "
                f"{_confirmed(found)} once more under another seed",
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
    return ", ".join(f"{t.metric} {_shown(t.metric, again.value(t.metric))}" for t in found.targets)


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
