"""Puts a report together and writes it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

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
from flashwright.report.paper import write_figures
from flashwright.report.tables import Table
from flashwright.support.files import write_beside

__all__ = ["Findings", "figures_of", "write_findings", "write_page"]


def figures_of(
    folder: str | os.PathLike[str],
    parts: Sequence[Section],
    columns: Columns,
    labels: Sequence[str],
    title: str,
    size: str | None = None,
    style: str | Sequence[str] | None = None,
) -> list[Path]:
    """Write each chart of a page into a folder, as :func:`flashwright.report.paper.write_figures`."""
    charts = [chart for part in parts for chart in part.charts]
    return write_figures(Path(folder), charts, columns, labels, title, size, style)


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
        Further tables below the charts: heading, table, and the text below it.
    meanings
        What tiles and badges mean, by their words: shown when the pointer is on them, in a list, and on paper.
    front
        Charts above the table: what a reader sees first.
    beside
        Further tables between the table and the charts, as `more`.
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
    front: Sequence[Section] = ()
    beside: Sequence[tuple[str, Table, str]] = ()

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the page, as :func:`write_findings`."""
        write_findings(Path(path), self)

    def figures(
        self,
        folder: str | os.PathLike[str],
        *,
        size: str | None = None,
        style: str | Sequence[str] | None = None,
    ) -> list[Path]:
        """Write each chart of the page into a folder, as :func:`flashwright.report.paper.write_figures`."""
        charts = [*self.front, *self.sections]
        return figures_of(folder, charts, self.columns, [self.title], self.title, size, style)


def write_findings(path: Path, found: Findings) -> None:
    """Writes one self-contained HTML file, as :func:`write_report`, about what is no run.

    Parameters
    ----------
    path
        The file to write; an older one is replaced. Its folder must exist.
    found
        Its text.

    Raises
    ------
    OutputError
        If the file can't be written.
    """
    write_page(
        Path(path),
        "findings",
        [found.title],
        [*found.front, *found.sections],
        found.columns,
        found.document,
        title=found.title,
        facts=found.facts,
        tiles=found.tiles,
        table=found.table,
        explained=found.explained,
        notes=found.notes,
        front=found.front,
        beside=found.beside,
        more=found.more,
        meanings=found.meanings,
    )


def write_page(
    path: Path,
    template: str,
    labels: Sequence[str],
    sections: Sequence[Section],
    columns: Columns,
    document: object,
    **context: object,
) -> None:
    """Writes one self-contained HTML file by a template.

    The file needs no network, and nothing beside it. It is written under another name in the same folder and then
    renamed, so that a reader never finds half a page.

    Parameters
    ----------
    path
        The file to write; an older one is replaced. Its folder must exist.
    template
        The name of one of ``templates``.
    labels
        The names of the runs, which give series their colours.
    sections, columns
        Charts, and the numbers that they draw.
    document
        What the reader can download as JSON.
    **context
        What else the template shows.

    Raises
    ------
    OutputError
        If the file can't be written.
    """
    charts = [chart for part in sections for chart in part.charts if chart.views]
    page = _template(template).render(
        sections=sections,
        plots=_for_script(_plots(labels, charts, columns)),
        results=_for_script(document, indent=1),
        **_own_files(),
        **context,
    )
    with write_beside(path) as part:
        part.write_text(page, encoding="utf-8", newline="\n")


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
