"""What a probing prints: its plan, each finding as it comes, and all of it in the end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flashwright.cli.render import errors, page, units
from flashwright.cli.render.bill import rows
from flashwright.drive.findings import Finding
from flashwright.drive.trust import MEAN_BOUND, P99_BOUND
from flashwright.probing.costs import Bill
from flashwright.probing.pages import interval, value
from flashwright.probing.plan import Planned
from flashwright.probing.session import Asked, ProbeResult
from flashwright.target.counters import counter_sentences
from flashwright.target.target import Target
from flashwright.twin.check import Check
from flashwright.twin.twin import Twin

__all__ = ["announce", "line", "plan_json", "show", "show_check", "show_plan", "show_twin"]

_MOVED = ("bytes_read", "bytes_written", "flushes")


def line(finding: Finding, spent: Asked) -> str:
    """A finding as it comes: name, verdict, confidence, and how long its probe took.

    Examples
    --------
    >>> spent = Asked("clustered-page", 0, 0, 0, 1.25, 3.0)
    >>> line(Finding("clustered-page", "found", 16384, "B", confidence=0.99), spent)
    'clustered-page: 16 KiB, confidence 99 %, 1.25 s'
    """
    sure = "" if finding.verdict == "unknown" else f", confidence {finding.confidence * 100:.0f} %"
    return f"{finding.parameter}: {value(finding)}{sure}, {units.seconds(spent.seconds)}"


def announce(drive: Target, ahead: Sequence[Planned], bill: Bill) -> None:
    """Say what is about to be done to a real drive, what it costs, and for how long."""
    if not drive.real_time:
        return
    left = sum(not item.done for item in ahead)
    if drive.read_only:
        what = f"read up to {units.volume(bill.bytes_read)} of"
    else:
        what = f"write up to {units.volume(bill.bytes_written)} all over"
    errors.note(f"{left} probes will {what} {drive.name}")
    for name, text in rows(drive, bill)[1:]:
        errors.note(f"{name}: {text}")


def show_plan(drive: Target, ahead: Sequence[Planned], bill: Bill) -> None:
    """Print what is about to be asked, and what it costs."""
    out = page.console()
    table = page.plain_table(
        "probe", "reads", "writes", "takes about", "asks", right=["reads", "writes", "takes about"]
    )
    for item in ahead:
        takes = units.lasts(item.seconds)
        table.add_row(
            item.name,
            units.volume(item.cost.bytes_read),
            units.volume(item.cost.bytes_written),
            "done" if item.done else takes,
            item.about,
        )
    out.print(table)
    out.print(page.grid([(f"in all, {name}", text) for name, text in rows(drive, bill)]))


def plan_json(ahead: Sequence[Planned]) -> list[dict[str, object]]:
    """A plan as JSON has it."""
    return [
        {
            "name": item.name,
            "about": item.about,
            "bytes_read": item.cost.bytes_read,
            "bytes_written": item.cost.bytes_written,
            "requests": item.cost.requests,
            "usual_bytes": item.usual_bytes,
            "seconds": item.seconds,
            "done": item.done,
        }
        for item in ahead
    ]


def show(result: ProbeResult) -> None:
    """Print what was found."""
    out = page.console()
    target = result.target
    out.print(
        page.grid(
            [
                (
                    "target",
                    f"{target['name']}: {units.size(target['capacity_bytes'])}, "
                    f"{target['kind'].replace('-', ' ')}",
                ),
                ("mode", f"{result.mode}; seed {result.seed}"),
            ]
        )
    )
    table = page.plain_table(
        "parameter", "verdict", "95 % interval", "confidence", "why", right=["confidence"]
    )
    for finding in result.findings.values():
        sure = "–" if finding.verdict == "unknown" else f"{finding.confidence:.0%}"
        table.add_row(finding.parameter, value(finding), interval(finding), sure, finding.why)
    out.print(table)
    notes = (("doubt", result.doubts), ("limit", result.limits), ("declared", result.beside))
    for name, sentences in notes:
        if sentences:
            out.print(page.grid([(name, sentence) for sentence in sentences]))
    if counted := counter_sentences([asked.counted for asked in result.asked]):
        out.print(page.grid([("it counts", sentence) for sentence in counted]))
    spent = sum(asked.seconds for asked in result.asked)
    own = sum(asked.target_seconds for asked in result.asked)
    moved = [sum(getattr(asked, name) for asked in result.asked) for name in _MOVED]
    out.print(
        page.grid(
            [
                (
                    "asked",
                    f"{units.size(moved[0])} read, {units.size(moved[1])} written, "
                    f"{units.count(moved[2])} flushes, in {units.seconds(spent)} "
                    f"({units.seconds(own)} on the drive's clock)",
                )
            ]
        )
    )


def show_twin(twin: Twin) -> None:
    """Print what the model is, and how near it comes to what it was fitted to."""
    apart = sorted(abs(np.log(max(r.ratio, 1e-9))) for r in twin.fit.residuals)
    half, most = apart[len(apart) // 2], apart[int(0.95 * (len(apart) - 1))]
    page.console().print(
        page.grid(
            [
                ("twin", twin.fit.tried[-1][0] if twin.fit.tried else twin.fit.ssd.name),
                (
                    "",
                    f"half of the {len(apart)} levels it was fitted to are within {np.expm1(half):.1%}, 95 % within "
                    f"{np.expm1(most):.0%}; {units.count(twin.fit.evaluations)} models tried",
                ),
            ]
        )
    )


def show_check(checked: Check) -> None:
    """Print how far drive and twin are apart on the pattern that was held back."""
    figures = ("mean", "p50", "p90", "p99", "p99.9")
    table = page.plain_table("held back", "", *figures, right=figures)
    for name, of_kind in (
        ("all", checked.all),
        ("reads", checked.reads),
        ("writes", checked.writes),
    ):
        table.add_row(name, "drive", *(units.time(of_kind.drive_ns[f]) for f in figures))
        table.add_row("", "twin", *(units.time(of_kind.twin_ns[f]) for f in figures))
        table.add_row("", "apart", *(f"{of_kind.ratio[f] - 1:+.1%}" for f in figures))
    out = page.console()
    out.print(table)
    verdict = "within" if checked.within else "beyond"
    out.print(
        f"check: {verdict} {MEAN_BOUND:.0%} of the mean and {P99_BOUND:.0%} of the 99th percentile"
    )
