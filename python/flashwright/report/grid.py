"""The page of a sweep: key figures by combination, and over each numeric key, with intervals over seeds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashwright.report import text
from flashwright.report.charts import Chart, Columns, Section
from flashwright.report.page import Findings, write_findings
from flashwright.report.runs import Floats
from flashwright.report.sweep import sweeps
from flashwright.report.tables import Cell, Figure, Table

_FIGURES = (
    Figure("Write amplification", "write_amplification", text.significant),
    Figure("IOPS", "throughput.iops", text.count),
    Figure("Mean response", "response_time_ns.all.mean", text.time_ns),
    Figure("99 % response", "response_time_ns.all.p99", text.time_ns),
    Figure("Blocks erased", "flash.erases.total", text.count),
    Figure("Cleaning efficiency", "gc.efficiency", text.share),
    Figure("Hits of the mapping cache", "mapping_cache.hit_ratio", text.share),
    Figure("Writes found in RAM", "buffer.write_hit_ratio", text.share),
)

# Beyond so many lines nobody tells them apart; the table has all.
_LINES_MOST = 24
_VALUES_MOST = 24
_FAILURES_SHOWN = 200


class EstimateView(Protocol):
    """A figure over seeds: its mean, and half its 95 % interval."""

    @property
    def mean(self) -> float: ...
    @property
    def ci95(self) -> float | None: ...


class SummaryView(Protocol):
    """A combination over its seeds."""

    @property
    def varied(self) -> Mapping[str, object]: ...
    @property
    def runs(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def figures(self) -> Mapping[str, EstimateView]: ...


class SweepView(Protocol):
    """A sweep, as its page needs it."""

    @property
    def keys(self) -> Sequence[str]: ...
    @property
    def summaries(self) -> Sequence[SummaryView]: ...
    @property
    def failures(self) -> Sequence[tuple[Any, str]]: ...
    @property
    def cases(self) -> Sequence[Any]: ...
    @property
    def digest(self) -> str: ...


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
    def of(cls, found: SummaryView, side: int) -> _Mean:
        tree: dict[str, Any] = {}
        for name, estimate in found.figures.items():
            *path, last = name.split(".")
            inner = tree
            for step in path:
                inner = inner.setdefault(step, {})
            inner[last] = estimate.mean + side * (estimate.ci95 or 0.0)
        return cls(tree, found.varied, ", ".join(f"{k}={v}" for k, v in found.varied.items()))


def write_grid(path: Path, found: SweepView, title: str) -> None:
    """Writes the page of a sweep.

    Parameters
    ----------
    path
        The file to write; an older one is replaced. Its folder must exist.
    found
        What the sweep found.
    title
        The heading of the page.

    Raises
    ------
    OSError
        If the file can't be written.
    """
    columns = Columns()
    summaries = [each for each in found.summaries if each.runs]
    sections = _sections(summaries, columns)
    seeds = max((each.runs + each.failed for each in found.summaries), default=0)
    counted = [
        ("points", text.count(len(found.cases))),
        ("combinations", text.count(len(found.summaries))),
        ("seeds", text.count(seeds)),
        ("failed", text.count(len(found.failures))),
    ]
    explained = ["Figures are means over the seeds."]
    if any(each.runs > 1 for each in summaries):
        explained = [
            "Figures are means over the seeds; ± is the 95 % confidence interval of the mean, by Student's t."
        ]
    left_out = [] if sections or not summaries else [
        "There are no figures over a key: none was varied through numbers, or there would be more than "
        f"{_LINES_MOST} lines in each."
    ]  # fmt: skip
    write_findings(
        path,
        Findings(
            title=title,
            facts=[*counted, ("digest", found.digest[:16])],
            tiles=[],
            table=_table(found),
            explained=[*explained, *left_out],
            sections=sections,
            columns=columns,
            document=_document(found),
            more=_failures(found),
        ),
    )


def _sections(summaries: Sequence[SummaryView], columns: Columns) -> list[Section]:
    """Means over each numeric key, with the ends of their intervals."""
    # The same charts of the lower and of the upper ends, of which only the numbers are wanted.
    ends = {"low": Columns(), "high": Columns()}
    for side, kept in zip((-1, 1), ends.values(), strict=True):
        sweeps([_Mean.of(each, side) for each in summaries], kept)
    certain = all(e.ci95 is None for each in summaries for e in each.figures.values())
    sections = []
    for section in sweeps([_Mean.of(each, 0) for each in summaries], columns):
        charts = [_without_wide(chart) for chart in section.charts if _legible(chart)]
        for chart in charts if not certain else ():
            for line in chart.views[0]["series"]:
                for end, kept in ends.items():
                    columns.numbers[f"{line['y']}.{end}"] = kept.numbers[line["y"]]
                    line[end] = f"{line['y']}.{end}"
        if charts:
            sections.append(Section(section.key, section.title, charts))
    _forget_unused(sections, columns)
    return sections


def _legible(chart: Chart) -> bool:
    return len(chart.views[0]["series"]) <= _LINES_MOST


def _without_wide(chart: Chart) -> Chart:
    """The chart without a table that nobody could read; the one of all combinations has the figures."""
    wide = chart.table is not None and len(chart.table.header) > _VALUES_MOST
    return replace(chart, table=None) if wide else chart


def _forget_unused(sections: Sequence[Section], columns: Columns) -> None:
    """Keep only the numbers that a chart draws."""
    drawn = {
        line[part]
        for section in sections
        for chart in section.charts
        for line in chart.views[0]["series"]
        for part in ("x", "y", "low", "high")
        if part in line
    }
    columns.numbers = {name: of for name, of in columns.numbers.items() if name in drawn}


def _table(found: SweepView) -> Table:
    figures = [f for f in _FIGURES if any(f.path in each.figures for each in found.summaries)]
    rows = []
    for nth, each in enumerate(found.summaries, 1):
        settings = [text.setting(each.varied.get(key)) for key in found.keys]
        runs = text.count(each.runs) + (f" ({each.failed} failed)" if each.failed else "")
        rows.append(
            [
                Cell(str(nth), nth),
                *(Cell(shown, _sorted_by(shown)) for shown in settings),
                Cell(runs, each.runs),
                *(_cell(each.figures.get(figure.path), figure) for figure in figures),
            ]
        )
    header = ["", *found.keys, "Runs", *(figure.name for figure in figures)]
    return Table(header, rows)


def _sorted_by(shown: str) -> float | str:
    try:
        return float(shown.replace(",", ""))
    except ValueError:
        return shown


def _cell(estimate: EstimateView | None, figure: Figure) -> Cell:
    if estimate is None:
        return Cell(text.ABSENT)
    shown = figure.show(float(f"{estimate.mean:.4g}"))
    if estimate.ci95 is not None:
        shown += f" ± {figure.show(float(f'{estimate.ci95:.2g}'))}"
    return Cell(shown, _rounded(estimate.mean))


def _failures(found: SweepView) -> list[tuple[str, Table, str]]:
    if not found.failures:
        return []
    rows = [
        [Cell(case.label, case.label), Cell(error, error)]
        for case, error in found.failures[:_FAILURES_SHOWN]
    ]
    more = len(found.failures) - len(rows)
    told = f"{text.count(more)} more failed." if more > 0 else "They are tried again next time."
    return [("Points that failed", Table(["Point", "Why"], rows, prose=True), told)]


def _document(found: SweepView) -> dict[str, Any]:
    """All means and intervals, to the digits that a page needs: a line of text for each combination."""
    names = list(dict.fromkeys(name for each in found.summaries for name in each.figures))
    columns = [*found.keys, "runs", "failed"]
    for name in names:
        columns += [f"{name}.mean", f"{name}.ci95"]
    rows = []
    for each in found.summaries:
        row: list[object] = [each.varied.get(key) for key in found.keys]
        row += [each.runs, each.failed]
        for name in names:
            figure = each.figures.get(name)
            if figure is None:
                row += [None, None]
            else:
                row += [_rounded(figure.mean), _rounded(figure.ci95)]
        rows.append(json.dumps(row))
    return {
        "points": len(found.cases),
        "digest": found.digest,
        "columns": columns,
        "rows": rows,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
