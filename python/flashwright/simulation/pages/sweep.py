"""Figures over a numeric key that a comparison varied, a line for each combination of the others.

A run for which the key makes no difference (DFTL's RAM under FAST) has no value of it: it is played
once, and drawn as a level line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flashwright.report import text
from flashwright.report.charts import Chart, Columns, Section, axis, short
from flashwright.report.tables import Cell, Table
from flashwright.simulation.pages.view import RunView, number


@dataclass(frozen=True)
class _Metric:
    key: str
    title: str
    label: str
    path: str
    format: str
    show: Callable[[float], str]
    log: bool = False


_METRICS = (
    _Metric(
        "response",
        "Mean response time",
        "mean response time",
        "response_time_ns.all.mean",
        "ns",
        text.time_ns,
        log=True,
    ),
    _Metric(
        "wa",
        "Write amplification",
        "write amplification",
        "write_amplification",
        "number",
        text.significant,
    ),
    _Metric("erases", "Erases", "blocks erased", "flash.erases.total", "count", text.count),
    _Metric(
        "hits",
        "Hit ratio of the mapping cache",
        "look-ups found in RAM",
        "mapping_cache.hit_ratio",
        "share",
        text.share,
    ),
)

# What a number of these keys counts; sizes, times and percentages carry their unit themselves.
_UNIT_OF = {
    "workload.rate": "requests per second",
    "workload.depth": "requests outstanding",
    "depth": "requests outstanding",
    "time-scale": "factor of arrival times",
    "ftl.dftl.cmt-entries": "entries",
}
# Keys whose 0 stands for a value that is found otherwise, and so has no place on an axis.
_ZERO_IS_AUTOMATIC = (
    "capacity.logical",
    "ftl.bast.log-blocks",
    "ftl.dftl.cmt-entries",
    "ftl.dftl.ram",
    "ftl.fast.log-blocks",
    "ftl.last.log-blocks",
    "wear.pe-cycles-max",
)
_SCALES: dict[str, tuple[str, float]] = {
    "": ("number", 1),
    "%": ("share", 0.01),
    **{f"{unit}B": ("bytes", 1 << 10 * k) for k, unit in enumerate(("", "Ki", "Mi", "Gi", "Ti"))},
    **{unit: ("ns", size) for unit, size in (("ns", 1), ("us", 1e3), ("ms", 1e6), ("s", 1e9))},
}
_NUMBER = re.compile(r"([0-9][0-9_]*(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?)\s*([A-Za-z%]*)")


def amount(value: object) -> tuple[float, str] | None:
    """A number with what it is of, as ``number``, ``share``, ``bytes`` or ``ns``; None for anything else.

    Examples
    --------
    >>> amount(20), amount("4 KiB"), amount("70%")
    ((20.0, 'number'), (4096.0, 'bytes'), (0.7, 'share'))
    >>> amount("greedy") is None, amount(True) is None
    (True, True)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value), "number"
    found = _NUMBER.fullmatch(str(value).strip())
    if found is None or found[2] not in _SCALES:
        return None
    kind, size = _SCALES[found[2]]
    return round(float(found[1]) * size, 12), kind


def sweeps(runs: Sequence[RunView], columns: Columns) -> list[Section]:
    """A section for each key that was varied through numbers; none where there is no such key."""
    keys = list(dict.fromkeys(key for run in runs for key in run.varied))
    found = ((key, points) for key in keys if (points := _points(runs, key)) is not None)
    return [
        Section(f"sweep{nth}", f"By {key}", charts)
        for nth, (key, points) in enumerate(found)
        if (charts := _charts(runs, keys, key, points, f"sweep{nth}", columns))
    ]


@dataclass(frozen=True)
class _Points:
    """Where the runs stand on the axis: a value and its text by run; None for those that have none."""

    at: Sequence[tuple[float, str] | None]
    kind: str


def _points(runs: Sequence[RunView], key: str) -> _Points | None:
    at: list[tuple[float, str] | None] = []
    kinds = set()
    for run in runs:
        if key not in run.varied:
            at.append(None)
            continue
        value = run.varied[key]
        found = amount(value)
        if found is None:
            return None
        if found[0] == 0 and key in _ZERO_IS_AUTOMATIC:
            at.append(None)
            continue
        kinds.add(found[1])
        at.append((found[0], str(value)))
    different = {point[0] for point in at if point is not None}
    return _Points(at, kinds.pop()) if len(kinds) == 1 and len(different) > 1 else None


def _charts(
    runs: Sequence[RunView],
    keys: Sequence[str],
    key: str,
    points: _Points,
    prefix: str,
    columns: Columns,
) -> list[Chart]:
    ticks = dict(sorted(point for point in points.at if point is not None))
    xs = list(ticks)
    x = columns.add(f"{prefix}.x", xs, 9)
    unit = f", {_UNIT_OF[key]}" if key in _UNIT_OF else ""
    x_axis = axis(
        f"{key}{unit}",
        points.kind,
        log=xs[0] > 0 and xs[-1] / xs[0] >= 8,
        ticks=[[short(value, 9), label] for value, label in ticks.items()],
    )
    lines = _lines(runs, keys, key, points)
    charts = []
    for metric in _METRICS:
        values = [
            (name, level, [None if i is None else number(runs[i].json, metric.path) for i in of])
            for name, level, of in ((line.name, line.level, line.of(xs, points)) for line in lines)
        ]
        known = [v for _, _, row in values for v in row if v is not None]
        if not known:
            continue
        series = [
            {
                "part": name or None,
                "colour": k,
                "level": level,
                "x": x,
                "y": columns.add(
                    f"{prefix}.{metric.key}.{k}",
                    [float("nan") if v is None else v for v in row],
                ),
                "points": True,
            }
            for k, (name, level, row) in enumerate(values)
            if any(v is not None for v in row)
        ]
        log = metric.log and min(known) > 0 and max(known) / min(known) > 20
        view = {
            "name": "",
            "x": x_axis,
            "y": axis(metric.label, metric.format, **({"log": True} if log else {"zero": True})),
            "series": series,
        }
        charts.append(
            Chart(
                f"{prefix}-{metric.key}",
                metric.title,
                _caption(lines),
                views=[view],
                table=_table(ticks.values(), values, metric),
                group=prefix,
            )
        )
    return charts


@dataclass(frozen=True)
class _Line:
    """Runs that differ in the key of the axis only, or one run that has no value of it."""

    name: str
    runs: Sequence[int]
    level: bool

    def of(self, xs: Sequence[float], points: _Points) -> list[int | None]:
        """The run at each place of the axis; the same everywhere for a level line."""
        if self.level:
            return [self.runs[0]] * len(xs)
        by_x = {point[0]: i for i in self.runs if (point := points.at[i]) is not None}
        return [by_x.get(x) for x in xs]


def _lines(runs: Sequence[RunView], keys: Sequence[str], key: str, points: _Points) -> list[_Line]:
    others = [other for other in keys if other != key]
    found: dict[tuple[str, bool], list[int]] = {}
    for i, run in enumerate(runs):
        level = points.at[i] is None
        found.setdefault((_name(run.varied, others, key if level else None), level), []).append(i)
    return [_Line(name, of, level) for (name, level), of in found.items()]


def _name(varied: Mapping[str, object], others: Sequence[str], automatic: str | None) -> str:
    """What is set beside the key of the axis; bare values where one other key was varied."""
    parts = [
        str(varied[key]) if len(others) == 1 else f"{key}={varied[key]}"
        for key in others
        if key in varied
    ]
    if automatic is not None and automatic in varied:
        parts.append(f"{automatic}={varied[automatic]}")
    return ", ".join(parts)


def _caption(lines: Sequence[_Line]) -> str:
    if any(line.level for line in lines):
        return "Dotted: a run that this setting does not affect, or that finds the value itself; played once."
    return "One point per run."


def _table(
    headings: Any, values: Sequence[tuple[str, bool, Sequence[float | None]]], metric: _Metric
) -> Table:
    rows = [
        [
            Cell(name or metric.title, name or metric.title),
            *(Cell(text.ABSENT) if v is None else Cell(metric.show(v), v) for v in row),
        ]
        for name, _, row in values
        if any(v is not None for v in row)
    ]
    return Table(["Run", *headings], rows)
