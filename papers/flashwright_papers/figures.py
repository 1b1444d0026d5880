"""A page for each paper, to be read beside it: every figure and table in its order, with ours, as Markdown and SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flashwright.report.text import significant
from flashwright_papers.claims import Exhibit
from flashwright_papers.drawing import figure
from flashwright_papers.markdown import rested_on, row, table, verdict_in_full

__all__ = ["exhibits_of", "paper_pages", "plots_of"]

_HEAD = (
    "<!-- Written by `flashwright reproduce --paper-page`; change the papers' files instead. -->"
)
_INDEX = (
    "Every figure and table of the sources, by its name. `flashwright reproduce PAPER/NAME` runs what it rests on and "
    "judges the claims made on it; `--quick` scales the runs down. A drawing of a mechanism has nothing to compute."
)

Said = Mapping[str, Any]


def plots_of(document: Said, exhibit: Exhibit) -> list[Said]:
    """Our plots of a figure or table.

    Parameters
    ----------
    document : mapping
        As :meth:`flashwright_papers.Reproduction.to_json` gives it.
    exhibit : Exhibit
        Of one of its sources.

    Returns
    -------
    list of mapping
        Those of its claims, each once; where the claims have plots of several figures, those with the right title.
    """
    found: list[Said] = []
    for each in _claims_of(document, exhibit):
        for plot in each["plots"]:
            wanted = not exhibit.panels or any(name in plot["title"] for name in exhibit.panels)
            if wanted and plot not in found:
                found.append(plot)
    return found


def paper_pages(document: Said) -> dict[str, str]:
    """The pages.

    Parameters
    ----------
    document : mapping
        As :meth:`flashwright_papers.Reproduction.to_json` gives it.

    Returns
    -------
    dict of str to str
        By path: ``index.md`` with all figures and tables and their commands; for each paper that has some, a page such
        as ``dftl.md``, and its drawings, such as ``dftl/figure-6.svg``.
    """
    made = {"index.md": _index(document)}
    for source in document["sources"]:
        made |= _page(document, source)
    return made


def exhibits_of(source: Said) -> list[Exhibit]:
    """The figures and tables of one of a document's sources."""
    return [Exhibit(**each) for each in source["exhibits"]]


def _claims_of(document: Said, exhibit: Exhibit) -> list[Said]:
    return [
        each
        for each in document["claims"]
        if each["paper"] == exhibit.paper and each["id"] in exhibit.claims
    ]


def _index(document: Said) -> str:
    lines = [_HEAD, "", "# The papers, figure by figure", "", _INDEX, ""]
    for source in document["sources"]:
        lines += [f"## [{source['paper']}]({source['paper']}.md)", ""]
        lines += [f"{source['cited']}: *{source['title']}*", ""]
        lines += table(
            "figure or table", "what it shows", "command, or why there is none", "claims"
        )
        for each in exhibits_of(source):
            does = each.drawing or f"`{each.command}`"
            verdicts = [f"{one['id']} {verdict_in_full(one)}" for one in _claims_of(document, each)]
            name = f"[{each.title}]({each.paper}.md#{each.name.replace('.', '')})"
            lines.append(row(name, each.shows, does, "; ".join(verdicts)))
        lines.append("")
    return "\n".join(lines)


def _page(document: Said, source: Said) -> dict[str, str]:
    paper = str(source["paper"])
    lines = [
        _HEAD,
        "",
        f"# {source['title']}",
        "",
        f"{source['cited']}. {rested_on(document)}. [What the verdicts mean](../claims/index.md), "
        f"[rules and reasons](../claims/{paper}.md).",
        "",
    ]
    made: dict[str, str] = {}
    for each in exhibits_of(source):
        lines += [f"## {each.title}", "", each.shows, ""]
        if each.drawing:
            lines += [each.drawing, ""]
            continue
        lines += [f"`{each.command}`", ""]
        claims, plots = _claims_of(document, each), plots_of(document, each)
        for one in claims:
            for shown in one.get("tables", ()):
                lines += [*_shown(shown), ""]
        if each.name.startswith("table-"):
            lines += _tables(plots)
            plots = [plot for plot in plots if not plot["ticks"]]
        if plots:
            file = f"{paper}/{each.name}.svg"
            made[file] = figure(f"{each.title}: {each.shows}", plots)
            lines += [f"![{each.title}, ours]({file})", ""]
        lines += table("claim", "the paper says", "ours", "verdict")
        lines += [
            row(one["id"], one["says"], one["ours"] or one["error"] or "", verdict_in_full(one))
            for one in claims
        ]
        lines.append("")
    return {f"{paper}.md": "\n".join(lines), **made}


def _shown(shown: Said) -> Iterator[str]:
    yield from table(*shown["head"])
    for cells in shown["rows"]:
        yield row(*cells)


def _tables(plots: Sequence[Said]) -> Iterator[str]:
    """Plots over categories as tables, a row a line."""
    for plot in plots:
        if not plot["ticks"]:
            continue
        yield from table(f"{plot['title']}: {plot['y']}", *(name for _, name in plot["ticks"]))
        for line in plot["lines"]:
            values = dict(zip(line["x"], line["y"], strict=True))
            printed = (
                line["paper"] and "Table" not in line["label"] and "printed" not in line["label"]
            )
            cells = [values.get(at) for at, _ in plot["ticks"]]
            yield row(
                f"{line['label']}, printed" if printed else line["label"],
                *("" if value is None else significant(value, 3) for value in cells),
            )
        yield ""
