"""The page of all claims: verdicts, figures in the papers' own axes, and what is to be said where ours differs."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from flashwright.report.charts import Chart, Columns, Section, axis
from flashwright.report.page import Findings, write_findings
from flashwright.report.tables import Cell, Table
from flashwright.reproduce.claims import Verdict
from flashwright.reproduce.page import rested_on

__all__ = ["write_claims"]

_NOT_JUDGED = "could not be judged"


def write_claims(path: Path, document: Mapping[str, Any]) -> None:
    """Writes the page.

    Parameters
    ----------
    path
        The file to write; an older one is replaced. Its folder must exist.
    document
        As :meth:`flashwright.reproduce.Reproduction.to_json` gives it.

    Raises
    ------
    OSError
        If the file can't be written.
    """
    claims: Sequence[Mapping[str, Any]] = document["claims"]
    columns = Columns()
    by_paper = {name: list(of) for name, of in groupby(claims, lambda each: str(each["paper"]))}
    write_findings(
        path,
        Findings(
            title="The papers' claims, run again",
            facts=[
                ("version", document["version"]),
                ("date", document["date"]),
                ("size", "quick" if document["quick"] else "full"),
                ("real traces", "yes" if document["traces"] else "no"),
                ("runs", f"{document['runs']:,}"),
                ("one core", f"{document['cpu_s'] / 60:.1f} minutes"),
            ],
            tiles=[(name.capitalize(), str(count)) for name, count in document["counts"].items()],
            table=Table(
                ["Claim", "Paper", "Where", "Class", "Verdict", "The paper says", "Ours"],
                [_row(each) for each in claims],
                prose=True,
            ),
            explained=[
                f"{rested_on(document)}. A claim is judged by its own rule; direction only: the sign or the order is "
                "the paper's, the magnitude is not, or a stand-in for a trace that is not public can't tell it.",
                "Classes: A exact, B simulation of public or generated input, C simulation that lacks a trace or "
                "parameters, D measured on hardware, E cited from elsewhere, text no number.",
            ],
            sections=[
                Section(name, name, charts)
                for name, of in by_paper.items()
                if (charts := [_chart(each, i, plot, columns) for each in of for i, plot in enumerate(each["plots"])])
            ],
            columns=columns,
            document=document,
            notes=["A quick run: shapes, no magnitudes; no verdict of it counts."] if document["quick"] else [],
            more=[
                (f"Where ours differs: {name}", Table(["Claim", "Verdict", "Rule", "Why"], rows, prose=True), "")
                for name, of in by_paper.items()
                if (rows := [_why(each) for each in of if each["why"] and each["verdict"] != Verdict.REPRODUCED])
            ],
        ),
    )  # fmt: skip


def _row(each: Mapping[str, Any]) -> list[Cell]:
    verdict = each["verdict"] or _NOT_JUDGED
    return [
        Cell(each["id"]),
        Cell(each["paper"], each["paper"]),
        Cell(each["where"]),
        Cell(each["kind"], each["kind"]),
        Cell(verdict, verdict),
        Cell(each["says"]),
        Cell(each["ours"] or each["error"] or ""),
    ]


def _why(each: Mapping[str, Any]) -> list[Cell]:
    verdict = each["verdict"] or _NOT_JUDGED
    return [Cell(each["id"]), Cell(verdict, verdict), Cell(each["rule"]), Cell(each["why"])]


def _chart(
    each: Mapping[str, Any], number: int, plot: Mapping[str, Any], columns: Columns
) -> Chart:
    key = f"{each['id']}-{number}".replace(".", "-")
    lines = list(plot["lines"])
    xs = [x for line in lines for x in line["x"]]
    for name, value in plot["levels"]:
        lines.append({"label": name, "x": [min(xs), max(xs)], "y": [value] * 2, "paper": "level"})
    series = []
    for k, line in enumerate(lines):
        look: dict[str, Any] = {"points": True}
        if line["paper"] == "level":
            look = {"level": True}
        elif line["paper"] or plot["points"]:
            look = {"points": True, "line": False}
        series.append(
            {
                "part": f"{line['label']} (printed)" if line["paper"] is True else line["label"],
                "colour": k,
                "x": columns.add(f"{key}.x.{k}", line["x"], 7),
                "y": columns.add(f"{key}.y.{k}", [float("nan") if y is None else y for y in line["y"]]),
                **look,
            }
        )  # fmt: skip
    ticks = {"ticks": [list(tick) for tick in plot["ticks"]]} if plot["ticks"] else {}
    view = {
        "name": "",
        "x": axis(plot["x"], plot["x_format"], log=plot["x_log"], **ticks),
        "y": axis(
            plot["y"], plot["y_format"], **({"log": True} if plot["y_log"] else {"zero": True})
        ),
        "series": series,
    }
    caption = f"<b>{html.escape(each['verdict'] or _NOT_JUDGED)}</b>: {html.escape(each['says'])}"
    return Chart(key, f"{each['id']}: {plot['title']}", caption, views=[view])
