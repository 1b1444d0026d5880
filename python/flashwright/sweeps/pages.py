"""The page of a sweep: key figures by combination, and over each numeric key, with intervals over seeds."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from flashwright.report import text
from flashwright.report.charts import Columns, Section
from flashwright.report.page import Findings, write_findings
from flashwright.report.tables import Cell, Table
from flashwright.simulation.pages.keyfigures import Figure
from flashwright.simulation.pages.means import LINES_MOST, EstimateView, MeansView, means_drawn
from flashwright.simulation.pages.sweep import amount

_BY_BYTES = "write_amplification_bytes"
_FIGURES = (
    Figure("Write amplification", "write_amplification", text.significant),
    Figure("Write amplification by bytes", _BY_BYTES, text.significant),
    Figure("IOPS", "throughput.iops", text.count),
    Figure("Mean response", "response_time_ns.all.mean", text.time_ns),
    Figure("99 % response", "response_time_ns.all.p99", text.time_ns),
    Figure("Blocks erased", "flash.erases.total", text.count),
    Figure("Cleaning efficiency", "gc.efficiency", text.share),
    Figure("Hits of the mapping cache", "mapping_cache.hit_ratio", text.share),
    Figure("Writes found in RAM", "buffer.write_hit_ratio", text.share),
    Figure("Mount after a loss of power", "mount.duration_ns", text.time_ns),
)

_COLOURS = 7
_FAILURES_SHOWN = 200


class SummaryView(MeansView, Protocol):
    """A combination over its seeds, as a sweep has it."""

    @property
    def runs(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def different(self) -> int: ...
    @property
    def amplifications_differ(self) -> bool: ...


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
    @property
    def warnings(self) -> Sequence[object]: ...
    @property
    def repeated(self) -> Sequence[str]: ...


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
    OutputError
        If the file can't be written.
    """
    write_findings(path, grid_page(found, title))


def grid_page(found: SweepView, title: str) -> Findings:
    """The page of a sweep; see :func:`write_grid`."""
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
    if any(each.different > 1 for each in summaries):
        explained = [
            "Figures are means over the seeds; ± is the 95 % confidence interval of the mean, by Student's t."
        ]
    equal_digests = sum(each.runs > 1 and each.different == 1 for each in summaries)
    if equal_digests:
        explained.append(
            f"The seed changes nothing in {text.count(equal_digests)} of {text.count(len(summaries))} "
            "combinations: their runs have equal digests and count once. ± of their write amplification is over parts "
            "of the run; other figures have none."
        )
    left_out = [] if sections or not summaries else [
        "There are no figures over a key: none was varied through numbers, or each would have more than "
        f"{LINES_MOST} lines."
    ]  # fmt: skip
    return Findings(
        title=title,
        facts=[*counted, ("digest", found.digest[:16])],
        tiles=[],
        table=_table(found),
        explained=[*explained, *left_out],
        sections=sections,
        columns=columns,
        document=_document(found),
        notes=[*map(str, found.warnings), *found.repeated],
        more=_failures(found),
    )


def _sections(summaries: Sequence[SummaryView], columns: Columns) -> list[Section]:
    """Means over each numeric key, with the ends of their intervals."""
    key = _split(summaries)
    groups: dict[str, list[SummaryView]] = {}
    for each in summaries:
        groups.setdefault("" if key is None else text.setting(each.varied.get(key)), []).append(
            each
        )
    sections = []
    for nth, (value, members) in enumerate(groups.items()):
        for section in means_drawn(members, key, f"g{nth}.", columns):
            title = section.title if key is None else f"{section.title}, {key} = {value}"
            sections.append(Section(f"g{nth}{section.key}", title, section.charts))
    return sections


def _split(summaries: Sequence[SummaryView]) -> str | None:
    """The key that each has sections of its own for, where there would be more lines than colours."""
    values: dict[str, set[str]] = {}
    for each in summaries:
        for key, value in each.varied.items():
            values.setdefault(key, set()).add(str(value))
    named = {
        key: len(found)
        for key, found in values.items()
        if len(found) > 1
        and not all(amount(each.varied.get(key)) for each in summaries if key in each.varied)
    }
    if len(named) < 2 or math.prod(named.values()) <= _COLOURS:
        return None
    # The least that leaves few enough lines; the last one named of several.
    enough = [key for key in named if math.prod(named.values()) // named[key] <= _COLOURS]
    return min(reversed(enough or [max(named, key=named.__getitem__)]), key=named.__getitem__)


def _table(found: SweepView) -> Table:
    figures = [f for f in _FIGURES if any(f.path in each.figures for each in found.summaries)]
    if not any(each.amplifications_differ for each in found.summaries):
        figures = [figure for figure in figures if figure.path != _BY_BYTES]
    rows = []
    for each in found.summaries:
        settings = [text.setting(each.varied.get(key)) for key in found.keys]
        runs = text.count(each.runs) + (f" ({each.failed} failed)" if each.failed else "")
        rows.append(
            [
                *(Cell(shown, _sorted_by(shown)) for shown in settings),
                Cell(runs, each.runs),
                *(_cell(each.figures.get(figure.path), figure) for figure in figures),
            ]
        )
    header = [*found.keys, "Runs", *(figure.name for figure in figures)]
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
    note = f"{text.count(more)} more failed." if more > 0 else "The next run tries them again."
    return [("Points that failed", Table(["Point", "Why"], rows, prose=True), note)]


def _document(found: SweepView) -> dict[str, Any]:
    """All means and intervals, to the digits that a page needs: a line of text for each combination."""
    names = list(dict.fromkeys(name for each in found.summaries for name in each.figures))
    columns = [*found.keys, "runs", "failed", "different"]
    for name in names:
        columns += [f"{name}.mean", f"{name}.ci95"]
    rows = []
    for each in found.summaries:
        row: list[object] = [each.varied.get(key) for key in found.keys]
        row += [each.runs, each.failed, each.different]
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
