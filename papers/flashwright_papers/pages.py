"""The page of all claims: verdicts, figures in the papers' own axes, and what is to be said where ours differs."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from flashwright.report.charts import Chart, Columns, Section, axis, categories, series
from flashwright.report.page import Findings, write_findings
from flashwright.report.tables import Badge, Cell, Table, Tone
from flashwright_papers.claims import NOT_JUDGED, TOO_SMALL, Verdict
from flashwright_papers.markdown import (
    CLASSES,
    RULE,
    differs,
    judged_on,
    rested_on,
    verdict_of,
    why_in_full,
)

__all__ = ["write_claims"]

_TONES: dict[str, Tone] = {
    Verdict.REPRODUCED: "good",
    Verdict.FITTED: "plain",
    Verdict.CONSTRUCTION: "plain",
    Verdict.DIRECTION: "warn",
    Verdict.NOT: "bad",
    Verdict.UNTESTABLE: "plain",
    TOO_SMALL: "plain",
    NOT_JUDGED: "bad",
}

_MEANINGS: dict[str, str] = {
    Verdict.REPRODUCED: "The claim's rule is met.",
    Verdict.FITTED: "It agrees, but a constant of ours was fitted to the paper's figure: no test.",
    Verdict.CONSTRUCTION: "It agrees, but could not do otherwise: the result is one of our inputs.",
    Verdict.DIRECTION: "The sign or the order is the paper's; the magnitude is not, or a stand-in can't show it.",
    Verdict.NOT: "Our result differs.",
    Verdict.UNTESTABLE: "Nothing that can be run here can decide it.",
    TOO_SMALL: "The full size of its runs decides it.",
    NOT_JUDGED: "A run that the claim rests on failed.",
}


def write_claims(path: Path, document: Mapping[str, Any]) -> None:
    """Writes the page.

    Parameters
    ----------
    path
        The file to write; an older one is replaced. Its folder must exist.
    document
        As :meth:`flashwright_papers.Reproduction.to_json` gives it.

    Raises
    ------
    OutputError
        If the file can't be written.
    """
    write_findings(path, claims_page(document))


def claims_page(document: Mapping[str, Any]) -> Findings:
    """The page of all claims; see :func:`write_claims`."""
    claims: Sequence[Mapping[str, Any]] = document["claims"]
    columns = Columns()
    by_paper = {name: list(of) for name, of in groupby(claims, lambda each: str(each["paper"]))}
    charts = {
        name: [
            _chart(each, number, plot, columns)
            for each in of
            for number, plot in enumerate(each["plots"])
        ]
        for name, of in by_paper.items()
    }
    quick = "A quick run: trends, no magnitudes. What the size of runs decides has no verdict here."
    return Findings(
        title="Published claims, checked",
        facts=[
            ("version", document["version"]),
            ("date", document["date"]),
            ("size", "quick" if document["quick"] else "full"),
            ("real traces", "yes" if document["traces"] else "no"),
            ("runs", f"{document['runs']:,}"),
            ("one core", f"{document['cpu_s'] / 60:.1f} minutes"),
        ],
        tiles=[(name, str(count)) for name, count in document["counts"].items()],
        meanings={name: _MEANINGS[name] for name in document["counts"]},
        table=Table(
            ["Claim", "Verdict", "The paper says", "Ours", "Paper", "Where", "Class"],
            [_row(each) for each in claims],
            prose=True,
            filters=["Paper", "Class", "Verdict"],
        ),
        explained=[
            f"{rested_on(document)}. {RULE.replace('*', '')}",
            CLASSES,
        ],
        sections=[
            Section(name, f"Figures of {name}", of, small=True) for name, of in charts.items() if of
        ],
        columns=columns,
        document=document,
        notes=[quick] if document["quick"] else [],
        more=[
            (
                f"Where ours differs from {name}",
                Table(["Claim", "Verdict", "Rule", "Why"], rows, prose=True),
                "",
            )
            for name, of in by_paper.items()
            if (rows := [_why(each) for each in of if differs(each)])
        ],
    )


def _key(each: Mapping[str, Any], number: int) -> str:
    return f"{each['id']}-{number}".replace(".", "-")


def _row(each: Mapping[str, Any]) -> list[Cell]:
    verdict = verdict_of(each)
    return [
        Cell(each["id"], to=_key(each, 0) if each["plots"] else None),
        Cell(verdict, verdict, tone=_TONES[verdict]),
        Cell(each["says"]),
        Cell(_ours(each)),
        Cell(each["paper"], each["paper"]),
        Cell(each["where"]),
        Cell(each["kind"], each["kind"]),
    ]


def _ours(each: Mapping[str, Any]) -> str:
    ours = str(each["ours"] or each["error"] or "")
    return f"{ours} (This verdict holds only with {each['reading']}.)" if each["reading"] else ours


def _why(each: Mapping[str, Any]) -> list[Cell]:
    verdict = verdict_of(each)
    return [
        Cell(each["id"]),
        Cell(verdict, verdict, tone=_TONES[verdict]),
        Cell(" ".join(filter(None, (each["rule"], judged_on(each))))),
        Cell(why_in_full(each)),
    ]


def _chart(
    each: Mapping[str, Any], number: int, plot: Mapping[str, Any], columns: Columns
) -> Chart:
    key = _key(each, number)
    bars = plot.get(
        "stacked", False
    )  # side by side here, where the page has no stacks of categories
    lines = [
        series(
            columns,
            f"{key}.{k}",
            [math.nan if y is None else y for y in line["y"]],
            x=None if bars else line["x"],
            name=f"{line['label']} (printed)" if line["paper"] else line["label"],
            colour=k,
            look="published" if line["paper"] else "points" if plot["points"] else "dotted line",
        )
        for k, line in enumerate(plot["lines"])
    ]
    ticks = {"ticks": [list(tick) for tick in plot["ticks"]]} if plot["ticks"] else {}
    scale = {"log": True} if plot["y_log"] else {"zero": True}
    view = {
        "name": "",
        "x": categories(plot["x"], [str(name) for _, name in plot["ticks"]])
        if bars
        else axis(plot["x"], plot["x_format"], log=plot["x_log"], **ticks),
        "y": axis(plot["y"], plot["y_format"], **scale),
        "series": lines,
        "levels": [[value, label] for label, value in plot["levels"]],
    }
    verdict = verdict_of(each)
    return Chart(
        key,
        f"{each['id']}: {plot['title']}",
        html.escape(f"{each['where']}. {each['says']}"),
        kind="bars" if bars else "lines",
        views=[view],
        badge=Badge(_TONES[verdict], verdict),
    )
