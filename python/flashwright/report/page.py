"""Puts a report together and writes it."""

from __future__ import annotations

import json
import math
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

from flashwright.files import write_beside
from flashwright.report import text
from flashwright.report.charts import (
    RAMP,
    UNITS,
    Chart,
    Columns,
    Section,
    file_stems,
    without_common_keys,
)
from flashwright.report.figures import sections
from flashwright.report.header import header, over
from flashwright.report.runs import RunView, dig, number
from flashwright.report.settled import settled_badge, tiles_of, warnings_of
from flashwright.report.tables import (
    KEY_FIGURES,
    Badge,
    Table,
    all_figures,
    configuration,
    key_figures,
)

VIOLATIONS_SHOWN = 50


@dataclass(frozen=True)
class RunsPage:
    """A report about one run, or about several side by side: as a page, or as figures for a paper.

    Attributes
    ----------
    runs
        The runs, at least one. Their order is that of the tables, and gives them their colours.
    title
        The title of the page.
    """

    runs: Sequence[RunView]
    title: str

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the page, as :func:`write_report`."""
        write_report(Path(path), self.runs, self.title)

    def figures(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write each chart of the page into a folder, as :func:`flashwright.report.paper.write_figures`."""
        columns = Columns()
        parts = _told(self.runs, sections(self.runs, columns))
        labels = [run.label for run in self.runs]
        return _write_figures(folder, parts, columns, labels, self.title)


def _write_figures(
    folder: str | os.PathLike[str],
    parts: Sequence[Section],
    columns: Columns,
    labels: Sequence[str],
    title: str,
) -> list[Path]:
    from flashwright.report.paper import write_figures

    charts = [chart for part in parts for chart in part.charts]
    return write_figures(Path(folder), charts, columns, labels, title)


def write_report(path: Path, runs: Sequence[RunView], title: str) -> None:
    """Writes one self-contained HTML file about one run, or about several side by side.

    The file needs no network, and nothing beside it. It is written under another name in the same
    folder and then renamed, so that a reader never finds half a report.

    Parameters
    ----------
    path
        The file to write; an older one is replaced. Its folder must exist.
    runs
        The runs, at least one. Their order is that of the tables, and gives them their colours.
    title
        The title of the page.

    Raises
    ------
    ValueError
        If there is no run.
    OutputError
        If the file can't be written.
    """
    if not runs:
        raise ValueError("a report needs at least one run")
    _write(Path(path), _page(runs, title))


def _page(runs: Sequence[RunView], title: str) -> str:
    columns = Columns()
    parts = _told(runs, sections(runs, columns))
    settings, differ = configuration(runs)
    several = len(runs) > 1
    badges = [_badges(run) for run in runs]
    charts = [chart for part in parts for chart in part.charts if chart.views]
    return _template("report").render(
        title=title,
        runs=runs,
        several=several,
        workloads=_distinct(runs, "workload"),
        drive=header(runs),
        facts=_facts(runs),
        warnings=warnings_of(runs),
        badges=badges,
        badges_differ=any(own != badges[0] for own in badges),
        tiles=tiles_of(runs[0]),
        key_figures=key_figures(runs),
        meanings=_meanings(runs, badges),
        all_figures=all_figures(runs),
        settings=settings,
        differ=differ,
        sections=parts,
        notes=[(run.label, note) for run in runs if (note := dig(run.json, "note"))],
        violations=[(run.label, list(run.violations)) for run in runs if run.violations],
        violations_shown=VIOLATIONS_SHOWN,
        commands=_commands(runs),
        plots=_for_script(_plots([run.label for run in runs], charts, columns)),
        results=_for_script(_results(runs), indent=1),
        **_own_files(),
    )


def _told(runs: Sequence[RunView], parts: Sequence[Section]) -> list[Section]:
    """The sections; of replays only what their devices told, since an empty chart would say that nothing happened."""
    if any(dig(run.json, "target") is None for run in runs):
        return list(parts)
    shown = (
        replace(part, charts=[chart for chart in part.charts if chart.views]) for part in parts
    )
    return [part for part in shown if part.charts]


@dataclass(frozen=True)
class Findings:
    """What a page says that is about no single run: a table, charts, and what they rest on.

    Attributes
    ----------
    title
        The heading.
    facts
        Names and values for the header.
    tiles
        Key figures, as names and values.
    table
        The figures.
    explained
        Paragraphs below the table.
    notes
        Remarks that nobody should miss.
    sections, columns
        Charts, and the numbers that they draw. Their series have colours of their own (``colour``), not a run's.
    document
        What the reader can download as JSON.
    more
        Further tables below the charts: heading, table, and what is said below it.
    meanings
        What tiles and badges mean, by their words: shown when the pointer is on them, in a list, and on paper.
    """

    title: str
    facts: Sequence[tuple[str, str]]
    tiles: Sequence[tuple[str, str]]
    table: Table
    explained: Sequence[str]
    sections: Sequence[Section]
    columns: Columns
    document: Mapping[str, Any]
    notes: Sequence[str] = ()
    more: Sequence[tuple[str, Table, str]] = ()
    meanings: Mapping[str, str] = field(default_factory=dict)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the page, as :func:`write_findings`."""
        write_findings(Path(path), self)

    def figures(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write each chart of the page into a folder, as :func:`flashwright.report.paper.write_figures`."""
        return _write_figures(folder, self.sections, self.columns, [self.title], self.title)


def write_findings(path: Path, found: Findings) -> None:
    """Writes one self-contained HTML file, as :func:`write_report`, about what is no run.

    Parameters
    ----------
    path
        The file to write; an older one is replaced. Its folder must exist.
    found
        What stands in it.

    Raises
    ------
    OutputError
        If the file can't be written.
    """
    charts = [chart for part in found.sections for chart in part.charts if chart.views]
    page = _template("findings").render(
        title=found.title,
        facts=found.facts,
        tiles=found.tiles,
        table=found.table,
        explained=found.explained,
        notes=found.notes,
        sections=found.sections,
        more=found.more,
        meanings=found.meanings,
        plots=_for_script(_plots([found.title], charts, found.columns)),
        results=_for_script(found.document, indent=1),
        **_own_files(),
    )
    _write(Path(path), page)


def _own_files() -> dict[str, object]:
    """Styles and scripts of every page."""
    return {
        "style": _own_file("static/report.css"),
        "scripts": [
            _own_file("static/saveas.js") + _own_file("static/page.js"),
            _plot_script(),
        ],
    }


def _own_file(name: str) -> str:
    return files("flashwright.report").joinpath(name).read_text(encoding="utf-8")


# In the order in which they need each other.
_PLOT_FILES = (
    "base",
    "queue",
    "marks",
    "lines",
    "bars",
    "stack",
    "map",
    "film",
    "requests",
    "save",
    "chart",
    "start",
)


def _plot_script() -> str:
    """The files of the charts as one script, whose names stay its own."""
    parts = (_own_file(f"static/plots/{name}.js") for name in _PLOT_FILES)
    return '"use strict";\n\n(() => {\n' + "\n".join(parts) + "})();\n"


def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True,
        loader=jinja2.FunctionLoader(lambda file: _own_file(f"templates/{file}")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["in_words"] = text.in_words
    return environment.get_template(f"{name}.html.j2")


def _plots(labels: Sequence[str], charts: Sequence[Chart], columns: Columns) -> dict[str, Any]:
    """What the scripts of the charts read."""
    stems = file_stems(charts)
    return {
        "runs": labels,
        "names": without_common_keys(labels),
        "units": UNITS,
        "ramp": RAMP,
        "columns": columns.numbers,
        "charts": {
            chart.key: {
                "title": chart.title,
                "kind": chart.kind,
                "group": chart.group,
                "views": [
                    {**view, "file": stem}
                    for view, stem in zip(chart.views, stems[chart.key], strict=True)
                ],
            }
            for chart in charts
        },
    }


def _results(runs: Sequence[RunView]) -> object:
    """What the reader can download: the JSON of the run, or of all with their labels."""
    if len(runs) == 1:
        return runs[0].json
    return [{"label": run.label, "json": run.json} for run in runs]


def _for_script(value: object, indent: int | None = None) -> str:
    """JSON that no HTML parser can leave: ``<`` is escaped, numbers that JSON lacks are null."""
    separators = (",", ": ") if indent else (",", ":")
    dumped = json.dumps(
        _plain(value), allow_nan=False, ensure_ascii=False, indent=indent, separators=separators
    )
    return dumped.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plain(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def _distinct(runs: Sequence[RunView], path: str) -> list[str]:
    found = (dig(run.json, path) for run in runs)
    return list(dict.fromkeys(str(value) for value in found if value))


def _facts(runs: Sequence[RunView]) -> list[tuple[str, str]]:
    """Short facts for the header; of what the runs do not share, what it varies over."""
    facts: list[tuple[str, str, Callable[[Any], str]]] = [
        ("precondition", "precondition.spec", text.setting),
        ("pace", "pace", text.setting),
        ("requests", "measured.requests", text.setting),
        ("seed", "seed", str),
        ("version", "version", text.setting),
    ]
    found = []
    for name, path, show in facts:
        values = [dig(run.json, path) for run in runs]
        shown = over([None if value is None else show(value) for value in values])
        if shown is not None:
            found.append((name, shown))
    return found


def _badges(run: RunView) -> list[Badge]:
    badges = []
    if "stand-in" in str(dig(run.json, "workload") or "").lower():
        why = "The workload is made up in the likeness of a trace; it is not that trace."
        badges.append(Badge("warn", "stand-in workload", why))
    ended = dig(run.json, "ended")
    if ended == "interrupted":
        why = "The run was stopped; the figures cover what was finished."
        badges.append(Badge("warn", "interrupted", why))
    elif ended == "failed":
        why = "The device failed; the figures cover what was finished."
        badges.append(Badge("bad", "failed", why))
    elif ended == "worn-out":
        why = "The drive could take no more writes; the figures cover what it took."
        badges.append(Badge("bad", "worn out", why))
    left_out = sum((dig(run.json, "left_out") or {}).values())
    if left_out:
        why = "Writes, trims and flushes are not played without consent; the figures are of reads alone."
        badges.append(Badge("warn", f"reads only: {text.count(left_out)} requests left out", why))
    if dig(run.json, "precondition.steady") is False:
        why = "Preconditioning gave up before the drive was in a steady state."
        badges.append(Badge("warn", "not steady", why))
    badges += settled_badge(run)
    found = len(run.violations) or number(run.json, "verify.violations") or 0
    if found:
        s = "" if found == 1 else "s"
        why = "The verify mode found contradictions in the drive's state: do not trust the figures."
        badges.append(Badge("bad", f"verify: {text.count(found)} violation{s}", why))
    elif dig(run.json, "verify.enabled"):
        why = "Every read was checked and the state audited; nothing was wrong."
        badges.append(Badge("good", "verified", why))
    elif dig(run.json, "target") is None:
        badges.append(Badge("plain", "not verified", "The run was made without its verify mode."))
    return badges


def _meanings(runs: Sequence[RunView], badges: Sequence[Sequence[Badge]]) -> list[tuple[str, str]]:
    """What the badges and key figures mean, for paper and for fingers, which cannot hover; each once."""
    found = dict.fromkeys((badge.shown, badge.why) for own in badges for badge in own if badge.why)
    known = (
        (text.in_words(figure.name) or figure.name, figure.about)
        for figure in KEY_FIGURES
        if any(number(run.json, figure.path) is not None for run in runs)
    )
    return [*found, *known]


def _commands(runs: Sequence[RunView]) -> list[tuple[str, str]]:
    """Command lines that make the runs again, where the JSON has them; equal ones once."""
    commands: dict[str, str] = {}
    for run in runs:
        command = dig(run.json, "command") or dig(run.json, "run.command")
        if isinstance(command, list | tuple):
            command = shlex.join(str(word) for word in command)
        if command:
            commands.setdefault(str(command), run.label)
    return [(label, command) for command, label in commands.items()]


def _write(path: Path, page: str) -> None:
    with write_beside(path) as part:
        part.write_text(page, encoding="utf-8", newline="\n")
