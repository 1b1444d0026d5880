"""Means over seeds with their intervals: over numeric keys, and side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashwright.report import text
from flashwright.report.charts import (
    Chart,
    Columns,
    Section,
    axis,
    categories,
    series,
    without_common_keys,
)
from flashwright.report.tables import Cell, Table
from flashwright.simulation.over_seeds import Group, groups_of
from flashwright.simulation.pages.sweep import sweeps
from flashwright.simulation.pages.view import Floats, RunView

__all__ = [
    "LINES_MOST",
    "EstimateView",
    "MeansView",
    "firsts",
    "means_drawn",
    "over_seeds",
    "seeded",
    "table_of",
]

LINES_MOST = 24
"""More lines than this cannot be distinguished; the table has all."""
_VALUES_MOST = 24


class EstimateView(Protocol):
    """A figure over seeds: its mean, and half its 95 % interval."""

    @property
    def mean(self) -> float: ...
    @property
    def ci95(self) -> float | None: ...


class MeansView(Protocol):
    """A combination: what is set, and its figures over seeds by their names."""

    @property
    def varied(self) -> Mapping[str, object]: ...
    @property
    def figures(self) -> Mapping[str, EstimateView]: ...


@dataclass(frozen=True)
class _Mean:
    """A combination as the figures over a key read a run: with one end or the middle of each interval."""

    json: Mapping[str, Any]
    varied: Mapping[str, object]
    label: str
    windows: pa.Table = field(default_factory=lambda: pa.table({}))
    erases_per_block: npt.NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))
    valid_per_block: npt.NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))
    response_distribution: Mapping[str, tuple[npt.NDArray[np.uint64], Floats]] = field(
        default_factory=dict
    )
    violations: tuple[str, ...] = ()
    closeup: None = None
    snapshots: None = None

    @classmethod
    def of(cls, found: MeansView, side: int, without: str | None) -> _Mean:
        tree: dict[str, Any] = {}
        for name, estimate in found.figures.items():
            *path, last = name.split(".")
            inner = tree
            for step in path:
                inner = inner.setdefault(step, {})
            inner[last] = estimate.mean + side * (estimate.ci95 or 0.0)
        varied = {key: value for key, value in found.varied.items() if key != without}
        return cls(tree, varied, ", ".join(f"{key}={value}" for key, value in varied.items()))


def means_drawn(
    members: Sequence[MeansView], without: str | None, prefix: str, columns: Columns
) -> list[Section]:
    """Figures over each numeric key, a point a combination with the interval of its mean.

    Parameters
    ----------
    members
        The combinations.
    without
        A key that names of lines leave out.
    prefix
        What keys of charts and names of columns begin with.
    columns
        Where their numbers are kept.
    """
    # The same charts of the middle, the lower and the upper ends; of the last two only the numbers are wanted.
    middle, low, high = Columns(), Columns(), Columns()
    found, _, _ = (
        sweeps([_Mean.of(each, side, without) for each in members], kept)
        for side, kept in ((0, middle), (-1, low), (1, high))
    )
    certain = all(e.ci95 is None for each in members for e in each.figures.values())
    sections = []
    for section in found:
        charts = [chart for chart in section.charts if _legible(chart)]
        for chart in charts:
            for line in chart.views[0]["series"]:
                y = line["y"]
                taken = {"x": (line["x"], middle), "y": (y, middle)}
                if not certain:
                    taken |= {"low": (y, low), "high": (y, high)}
                for part, (name, kept) in taken.items():
                    end = "" if part in "xy" else f".{part}"
                    line[part] = f"{prefix}{name}{end}"
                    columns.numbers[line[part]] = kept.numbers[name]
        if charts:
            named = [_named(chart, prefix, certain) for chart in charts]
            sections.append(Section(section.key, section.title, named))
    return sections


def _named(chart: Chart, prefix: str, certain: bool) -> Chart:
    """The chart under a key of its own, without a table that nobody could read."""
    wide = chart.table is not None and len(chart.table.header) > _VALUES_MOST
    caption = "" if certain else " Points are means over the seeds, bars their 95 % intervals."
    group = None if chart.group is None else prefix.rstrip(".") + chart.group
    return replace(
        chart,
        key=prefix.rstrip(".") + chart.key,
        group=group,
        caption=chart.caption.replace("One point per run.", "One point per combination.") + caption,
        table=None if wide else chart.table,
    )


def _legible(chart: Chart) -> bool:
    return len(chart.views[0]["series"]) <= LINES_MOST


# Runs of a comparison ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Figure:
    key: str
    path: str
    title: str
    label: str
    format: str
    show: Callable[[float], str]


_FIGURES = (
    _Figure(
        "wa",
        "write_amplification",
        "Write amplification",
        "write amplification",
        "number",
        text.significant,
    ),
    _Figure("iops", "throughput.iops", "IOPS", "requests per second", "count", text.count),
    _Figure(
        "mean",
        "response_time_ns.all.mean",
        "Mean response",
        "mean response time",
        "ns",
        text.time_ns,
    ),
    _Figure(
        "p99",
        "response_time_ns.all.p99",
        "99 % response",
        "99th percentile of response times",
        "ns",
        text.time_ns,
    ),
    _Figure("erases", "flash.erases.total", "Blocks erased", "erases", "count", text.count),
)


def seeded(runs: Sequence[RunView]) -> list[Group]:
    """The combinations that were played with several seeds; none where none was."""
    if not any("seed" in run.varied for run in runs):
        return []
    groups = groups_of(runs)
    return groups if any(len(group.runs) > 1 for group in groups) else []


def firsts(groups: Sequence[Group]) -> list[RunView]:
    """The run of the first seed of each combination, under the combination's name."""
    return [
        replace(group.runs[0], label=group.label or "run", varied=dict(group.varied))
        for group in groups
    ]


def over_seeds(groups: Sequence[Group], columns: Columns) -> list[Section]:
    """Means with their intervals: over each numeric key, and a bar a combination."""
    names = without_common_keys([group.label or "run" for group in groups])
    charts = []
    for figure in _FIGURES:
        found = [group.figures.get(figure.path) for group in groups]
        known = [each for each in found if each is not None]
        if not known:
            continue
        nan = float("nan")
        means = [nan if each is None else each.mean for each in found]
        ends: Any = {}
        if any(each.ci95 is not None for each in known):
            halves = [nan if each is None or each.ci95 is None else each.ci95 for each in found]
            for end, side in (("low", -1), ("high", 1)):
                ends[end] = [mean + side * half for mean, half in zip(means, halves, strict=True)]
        line = series(columns, f"seeds.{figure.key}", means, name="mean over seeds", **ends)
        view = {
            "name": "",
            "x": categories("run", names),
            "y": axis(figure.label, figure.format, zero=True),
            "series": [line],
        }
        rows = []
        for group, each in zip(groups, found, strict=True):
            shown = Cell(text.ABSENT) if each is None else Cell(figure.show(each.mean), each.mean)
            half = None if each is None else each.ci95
            within = Cell(text.ABSENT) if half is None else Cell(figure.show(half), half)
            over = group.interval or "none"
            rows.append([Cell(group.label or "run"), shown, within, Cell(over)])
        charts.append(
            Chart(
                f"seeds-{figure.key}",
                figure.title,
                "Means over the seeds; bars show their 95 % intervals. Where the seed changes nothing, the interval is "
                "over parts of the run, or there is none.",
                kind="bars",
                views=[view],
                table=Table(["Run", "Mean", "± 95 %", "Interval over"], rows),
            )
        )
    drawn = [
        replace(section, key=f"seeds{section.key}")
        for section in means_drawn(groups, None, "seeds.", columns)
    ]
    return [*drawn, Section("seeds", "Over the seeds", charts)] if charts else drawn


def table_of(groups: Sequence[Group]) -> Table:
    """A row a combination: how many of its runs differ, and its figures with their intervals."""
    used = [figure for figure in _FIGURES if any(figure.path in group.figures for group in groups)]
    rows = []
    for group in groups:
        count = len(group.runs)
        cells = []
        for figure in used:
            found = group.figures.get(figure.path)
            if found is None:
                cells.append(Cell(text.ABSENT))
                continue
            half = "" if found.ci95 is None else f" ± {figure.show(found.ci95)}"
            cells.append(Cell(f"{figure.show(found.mean)}{half}", found.mean))
        rows.append(
            [
                Cell(group.label or "run"),
                Cell(f"{group.settled} of {count}", group.settled),
                Cell(f"{count} ({group.different} different)", group.different),
                *cells,
            ]
        )
    return Table(["Run", "Settled", "Seeds", *(figure.title for figure in used)], rows)
