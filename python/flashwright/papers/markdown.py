"""The page of all claims as Markdown, from the document of a reproduction alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from flashwright.papers.claims import NOT_JUDGED, Verdict

__all__ = ["CLASSES", "RULE", "differs", "markdown", "rested_on", "verdict_of"]

_VERDICTS = [each.value for each in Verdict]
RULE = (
    "A claim is judged by its own rule. *Direction only*: the sign or the order is the paper's; the magnitude is not, "
    "or a stand-in for a trace that is not public can't tell it."
)
CLASSES = (
    "Classes: A exact, B simulation of public or generated input, C simulation that lacks a trace or parameters, D "
    "measured on hardware, E cited from elsewhere, text no number."
)


def verdict_of(each: Mapping[str, Any]) -> str:
    """The verdict on a claim of the document, in words.

    Parameters
    ----------
    each : mapping
        One of the document's claims.
    """
    return str(each["verdict"] or NOT_JUDGED)


def differs(each: Mapping[str, Any]) -> bool:
    """Whether there is something to be said of how ours differs.

    Parameters
    ----------
    each : mapping
        One of the document's claims.
    """
    return bool(each["why"]) and each["verdict"] != Verdict.REPRODUCED


def rested_on(document: Mapping[str, Any]) -> str:
    """How the document came about, in a sentence.

    Parameters
    ----------
    document : mapping
        As :meth:`Reproduction.to_json` gives it.
    """
    how = "quick run (shapes, no magnitudes)" if document["quick"] else "full run"
    traces = "with the real traces at hand" if document["traces"] else "without real traces"
    return (
        f"Flashwright {document['version']}, {document['date']}: a {how} {traces}; "
        f"{document['runs']:,} runs, {document['cpu_s'] / 60:.0f} minutes of one core"
    )


def markdown(document: Mapping[str, Any]) -> str:
    """The page.

    Parameters
    ----------
    document : mapping
        As :meth:`Reproduction.to_json` gives it.

    Returns
    -------
    str
        Counts by paper and verdict, then each paper's claims, then what is to be said where ours differs.
    """
    claims: Sequence[Mapping[str, Any]] = document["claims"]
    verdicts = _VERDICTS + ([NOT_JUDGED] if any(each["verdict"] is None for each in claims) else [])
    lines = [
        "# The papers' claims, run again",
        "",
        f"{rested_on(document)}. Written by `flashwright reproduce --markdown`.",
        "",
        f"{RULE} {CLASSES}",
        "",
        _row("paper", "claims", *verdicts),
        _row(*["---"] * (2 + len(verdicts))),
    ]
    by_paper = {name: list(of) for name, of in groupby(claims, lambda each: str(each["paper"]))}
    for name, of in (*by_paper.items(), ("**all**", claims)):
        counted = [sum(verdict_of(each) == verdict for each in of) for verdict in verdicts]
        lines.append(_row(name, str(len(of)), *map(str, counted)))
    for name, of in by_paper.items():
        lines += [
            "",
            f"## {name}",
            "",
            _row("claim", "where", "class", "the paper says", "ours", "verdict"),
        ]
        lines.append(_row(*["---"] * 6))
        for each in of:
            lines.append(
                _row(
                    each["id"],
                    f"{each['where']} (`{each['entry']}`)",
                    each["kind"],
                    each["says"],
                    each["ours"] or each["error"] or "",
                    verdict_of(each),
                )
            )
        differ = [each for each in of if differs(each)]
        if differ:
            lines += ["", f"### Where ours differs from {name}", ""]
            lines += [f"- **{each['id']}**, {verdict_of(each)}: {each['why']}" for each in differ]
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
