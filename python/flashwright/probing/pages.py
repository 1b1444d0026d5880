"""The page of what probes found: verdicts, how each came about, the evidence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from flashwright.drive.findings import Finding, Plot, Series
from flashwright.report import text
from flashwright.report.charts import Chart, Columns, Section, axis
from flashwright.report.page import Findings, write_findings
from flashwright.report.tables import Cell, Table
from flashwright.target import counters as counted
from flashwright.twin.check import Check
from flashwright.twin.model import Residual
from flashwright.twin.profile import Profile

# Points of a series beyond which a picture gains nothing; the JSON has all of them.
_POINTS_MAX = 2500
# How the numbers of an axis read, by the unit in the brackets of its label.
_FORMATS = {"B": "bytes", "ns": "ns", "B/s": "bytes", "requests": "count", "share": "share"}
# Sizes of buffers, pages and blocks are below this, sizes of drives above.
_EXACT_BYTES = 1 << 30
_UNIT = re.compile(r"^(.*?)\s*\[(.*)\]$")


class AskedView(Protocol):
    """What a probe asked of the drive."""

    @property
    def seconds(self) -> float: ...
    @property
    def target_seconds(self) -> float: ...
    @property
    def bytes_read(self) -> int: ...
    @property
    def bytes_written(self) -> int: ...
    @property
    def counted(self) -> Mapping[str, Any] | None: ...


class ProbedView(Protocol):
    """What probes found out about a drive."""

    @property
    def target(self) -> Mapping[str, Any]: ...
    @property
    def mode(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def findings(self) -> Mapping[str, Finding]: ...
    @property
    def asked(self) -> Sequence[AskedView]: ...
    @property
    def note(self) -> str: ...
    @property
    def doubts(self) -> Sequence[str]: ...
    @property
    def limits(self) -> Sequence[str]: ...
    @property
    def beside(self) -> Sequence[str]: ...
    @property
    def json(self) -> Mapping[str, Any]: ...
    def profile(self) -> Profile: ...


def value(finding: Finding) -> str:
    """What was found, as people read it."""
    if finding.verdict == "unknown":
        return "cannot tell"
    if finding.verdict == "absent":
        return "none"
    return amount(finding.value, finding.unit)


def amount(number: int | float | str | None, unit: str) -> str:
    """A value with its unit; words stay as they are.

    Examples
    --------
    >>> amount(16384, "B"), amount("page", ""), amount(1500.0, "ns"), amount(4, "units"), amount(None, "B")
    ('16 KiB', 'page', '1.5 µs', '4 units', '–')
    """
    if number is None:
        return text.ABSENT
    if isinstance(number, str):
        return number
    if unit == "B":
        return size(number)
    if unit == "ns":
        return text.time_ns(number)
    if unit == "B/s":
        return text.rate_bytes(number)
    return f"{text.significant(number)} {unit}".rstrip()


def size(number: float) -> str:
    """A size in the largest unit that leaves it whole; a large one that is round in none is rounded.

    Examples
    --------
    >>> size(261120), size(4194304), size(512), size(5 << 30), size(64e9)
    ('255 KiB', '4 MiB', '0.5 KiB', '5 GiB', '59.6 GiB')
    """
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB")):
        if number >= unit and number % unit == 0:
            return f"{int(number // unit):,} {name}"
    return f"{number / 1024:,.6g} KiB" if number < _EXACT_BYTES else text.size_bytes(number)


def interval(finding: Finding) -> str:
    """The 95 % interval, where there is one."""
    if finding.low is None or finding.high is None:
        return text.ABSENT
    return f"{amount(finding.low, finding.unit)} to {amount(finding.high, finding.unit)}"


def write_probe(
    path: Path,
    result: ProbedView,
    residuals: Sequence[Residual] | None = None,
    checked: Check | None = None,
) -> None:
    """Writes the page of a probing.

    Parameters
    ----------
    path
        The file to write.
    result
        What was found.
    residuals
        What drive and twin say to the patterns that the twin was fitted to.
    checked
        Drive and twin on the pattern that was held back.
    """
    write_findings(path, probe_page(result, residuals, checked))


def probe_page(
    result: ProbedView,
    residuals: Sequence[Residual] | None = None,
    checked: Check | None = None,
) -> Findings:
    """The page of a probing; see :func:`write_probe`."""
    columns = Columns()
    target = result.target
    with_verdict = [finding for finding in result.findings.values() if finding.verdict != "unknown"]
    seconds = sum(asked.seconds for asked in result.asked)
    written = sum(asked.bytes_written for asked in result.asked)
    own = sum(asked.target_seconds for asked in result.asked)
    rows = [
        [
            Cell(finding.parameter, finding.parameter),
            Cell(value(finding), _sortable(finding)),
            Cell(interval(finding)),
            Cell(
                text.share(finding.confidence) if finding.verdict != "unknown" else text.ABSENT,
                finding.confidence,
            ),
            Cell(finding.why),
        ]
        for finding in result.findings.values()
    ]
    contradicting = _contradictions(result)
    return Findings(
        title=f"Probes of {target['name']}",
        facts=[
            ("target", f"{target['name']} ({target['kind'].replace('-', ' ')})"),
            ("size", f"{size(target['capacity_bytes'])}, blocks of {target['block_bytes']} B"),
            ("mode", f"{result.mode}, seed {result.seed}"),
            ("time", f"{text.time_ns(seconds * 1e9)}, on its clock {text.time_ns(own * 1e9)}"),
            *(
                ("it counts", line)
                for line in counted.counter_sentences([asked.counted for asked in result.asked])
            ),
        ],
        tiles=[
            ("told", f"{len(with_verdict)} of {len(result.findings)}"),
            ("written", size(written)),
            ("read", size(sum(asked.bytes_read for asked in result.asked))),
        ],
        meanings={
            "told": "Parameters with a verdict, of all that were probed.",
            "written": "Data that all probes together wrote to the device.",
            "read": "Data that all probes together read from the device.",
        },
        front=[_certainty(result, columns)] if with_verdict else [],
        table=Table(
            ["Parameter", "Verdict", "95 % interval", "Confidence", "Why"], rows, prose=True
        ),
        beside=[*contradicting, *_to_do(result)],
        explained=[
            "Confidence is the share of resamplings of the measurements, or of independent checks, that give "
            "the same verdict, but no more than the share of such verdicts that were right on drives of known truth. "
            "The evidence of each is below: raw points, the curve fitted to them, and the value found.",
            *([] if contradicting else ["No two findings contradict each other."]),
        ],
        sections=[
            Section(finding.parameter, finding.parameter, charts, stacked=True)
            for finding in result.findings.values()
            if (charts := plots(finding.parameter, finding.plots, columns))
        ]
        + _of_twin(residuals, checked, columns),
        columns=columns,
        document=_without_points(result.json),
        notes=[
            *([result.note] if result.note else []),
            *result.doubts,
            *result.limits,
            *result.beside,
        ],
    )


def _certainty(result: ProbedView, columns: Columns) -> Section:
    """How sure each verdict is: the first that a reader sees."""
    with_verdict = [one for one in result.findings.values() if one.verdict != "unknown"]
    names = [f"{one.parameter}: {value(one)}" for one in with_verdict]
    surest = columns.add("certainty", np.array([one.confidence for one in with_verdict]))
    view = {
        "name": "",
        "x": axis("", "index", names=names),
        "y": axis("confidence", "share", min=0, max=1),
        "series": [{"part": "confidence", "colour": 0, "y": surest}],
    }
    open_ = [one.parameter for one in result.findings.values() if one.verdict == "unknown"]
    caption = (
        "No verdict claims more than the share of verdicts of its kind that were right on drives of known truth, and "
        "one that nothing tested no more than 85 %."
    )
    notes = (f"Cannot tell: {', '.join(open_)}.",) if open_ else ()
    chart = Chart("certainty", "How sure", caption, kind="bars", views=[view], notes=notes)
    return Section("known", "What is known of it", [chart], stacked=True)


def _contradictions(result: ProbedView) -> list[tuple[str, Table, str]]:
    """Findings that do not go together, of which a profile keeps the surer one."""
    kept = result.profile().findings
    rows = [
        [Cell(one.parameter), Cell(value(one)), Cell(kept[one.parameter].why)]
        for one in result.findings.values()
        if one.verdict != "unknown" and kept[one.parameter].verdict == "unknown"
    ]
    if not rows:
        return []
    table = Table(["Parameter", "Verdict", "What it contradicts"], rows, prose=True)
    return [("What contradicts", table, "A profile keeps the surer of two that contradict.")]


def _to_do(result: ProbedView) -> list[tuple[str, Table, str]]:
    """What follows for the host of the drive."""
    from flashwright.advice.host import host_advice

    if result.doubts or result.target["kind"] not in ("block-device", "simulated"):
        return []
    lines = [line for line in host_advice(result.profile()).lines if line.given and line.rests_on]
    rows = [
        [
            Cell(line.topic),
            Cell(line.text),
            Cell(", ".join(line.rests_on)),
            Cell(text.ABSENT)
            if line.confidence is None
            else Cell(text.share(line.confidence), line.confidence),
        ]
        for line in lines
    ]
    if not rows:
        return []
    table = Table(["For the host", "What to do", "Rests on", "Confidence"], rows, prose=True)
    more = "`flashwright advise host` has the commands, and what to do where nothing was found."
    return [("What to do", table, more.replace("`", ""))]


_LEVELS = ("mean", "p50", "p90", "p99", "p99.9")


def _of_twin(
    residuals: Sequence[Residual] | None, checked: Check | None, columns: Columns
) -> list[Section]:
    """The twin beside the drive: on what it was fitted to, and on what was held back."""
    charts = []
    if residuals is not None:
        times = [one for one in residuals if one.kind]
        drive, twin = (
            np.array([getattr(one, name) for one in times]) for name in ("drive", "twin")
        )
        # A drive's flush of nothing may take no time, which has no place on this axis.
        ends = np.array([drive[drive > 0].min(), drive.max()])
        levels = Series("mean and percentiles of a pattern", drive, twin)
        plot = Plot(
            "Latencies that the twin was fitted to",
            "drive [ns]",
            "twin [ns]",
            (levels, Series("equal", ends, ends, "line")),
            x_log=True,
            y_log=True,
        )
        charts.append(_chart("twin.fitted", plot, columns))
    if checked is not None:
        rows = [
            [
                Cell(f"{name}, {level}"),
                *(Cell(text.time_ns(v), v) for v in (of.drive_ns[level], of.twin_ns[level])),
                Cell(text.share(of.ratio[level] - 1), of.ratio[level]),
            ]
            for name, of in (
                ("all", checked.all),
                ("reads", checked.reads),
                ("writes", checked.writes),
            )
            for level in _LEVELS
        ]
        table = Table(["Held-out pattern", "Drive", "Twin", "Apart"], rows)
        shares = np.array([0.5, 0.9, 0.99, 0.999])
        series = tuple(
            Series(name, shares, np.array([levels[level] for level in _LEVELS[1:]]), "line")
            for name, levels in (("drive", checked.all.drive_ns), ("twin", checked.all.twin_ns))
        )
        plot = Plot(
            "The held-out pattern",
            "share of the requests at or below [share]",
            "response time [ns]",
            series,
            y_log=True,
        )
        charts.append(replace(_chart("twin.check", plot, columns), table=table))
    return [Section("twin", "Twin", charts, stacked=True)] if charts else []


def _sortable(finding: Finding) -> float | str | None:
    return finding.value


def plots(key: str, drawn: Sequence[Plot], columns: Columns) -> list[Chart]:
    """The charts of plots: raw points as dots, derived values as lines, verdicts as marks."""
    return [_chart(f"{key}.{k}", plot, columns) for k, plot in enumerate(drawn)]


def _chart(key: str, plot: Plot, columns: Columns) -> Chart:
    series = []
    for k, line in enumerate(plot.series):
        x, y = _ordered(line)
        entry: dict[str, Any] = {
            "part": line.name,
            "colour": k,
            "x": columns.add(f"{key}.x.{k}", x, 7),
            "y": columns.add(f"{key}.y.{k}", y),
        }
        if line.style == "points":
            entry |= {"points": True, "scattered": True}
        elif line.style == "step":
            entry["step"] = True
        series.append(entry)
    view = {
        "name": "",
        "x": _axis(plot.x_label, log=plot.x_log),
        "y": _axis(plot.y_label, log=plot.y_log),
        "series": series,
        "marks": [[mark.x, mark.label] for mark in plot.marks],
    }
    return Chart(key.replace(".", "-"), plot.title, "", views=[view])


def _axis(label: str, *, log: bool) -> dict[str, Any]:
    found = _UNIT.match(label)
    name, unit = found.groups() if found else (label, "")
    show = _FORMATS.get(unit, "number")
    rate = {"per": "s"} if unit == "B/s" else {}
    other = f" [{unit}]" if unit and unit not in _FORMATS else ""
    return axis(f"{name}{other}", show, log=log, **rate)


def _ordered(line: Series) -> tuple[Any, Any]:
    """Its points in order of x, thinned evenly where there are too many."""
    order = np.argsort(line.x, kind="stable")
    x, y = np.asarray(line.x, float)[order], np.asarray(line.y, float)[order]
    if x.size > _POINTS_MAX:
        kept = np.linspace(0, x.size - 1, _POINTS_MAX).astype(int)
        x, y = x[kept], y[kept]
    return x, y


def _without_points(document: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON without the plots, which the page holds already."""
    findings = [
        {name: part for name, part in finding.items() if name != "plots"}
        for finding in document["findings"]
    ]
    return {**document, "findings": findings}
