"""The claims as Markdown, an index and a page for each paper, from the document of a reproduction alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from flashwright_papers.claims import NOT_JUDGED, TOO_SMALL, Cause, Verdict

__all__ = [
    "CLASSES",
    "RULE",
    "differs",
    "judged_on",
    "otherwise",
    "pages",
    "rested_on",
    "row",
    "table",
    "verdict_in_full",
    "verdict_of",
    "why_in_full",
]

_VERDICTS = [each.value for each in Verdict]
HEAD = "<!-- Written by `flashwright reproduce --markdown`; change the papers' files instead. -->"
RULE = (
    "Each claim has its own rule and is judged by that rule alone. *Direction only*: the sign or the order is the "
    "paper's, but the magnitude is not, or a stand-in for a trace that is not public cannot show it. "
    "*Fitted*: it agrees, but a constant of ours was fitted to the paper's figure. *By construction*: it agrees, but "
    "could not do otherwise, because our own files hold the paper's values or our design implies the result. Neither "
    "of these two counts as reproduced. A verdict that holds under only one reading of the source says so. Searches "
    "play drives as small as the paper's `search-divisor` says; what they find decides no verdict."
)
CLASSES = (
    "Classes: A exact; B simulation of public or generated input; C simulation that lacks a trace or parameters; D "
    "measured on hardware; E cited from elsewhere; text: a statement without a number."
)


def verdict_of(each: Mapping[str, Any]) -> str:
    """The verdict on a claim of the document, in words.

    Parameters
    ----------
    each : mapping
        One of the document's claims.
    """
    return str(each["verdict"] or NOT_JUDGED)


def verdict_in_full(each: Mapping[str, Any]) -> str:
    """The verdict on a claim of the document, with the reading that it depends on.

    Parameters
    ----------
    each : mapping
        One of the document's claims.

    Examples
    --------
    >>> verdict_in_full({"verdict": "reproduced", "reading": "the window counted per list"})
    'reproduced (only with the window counted per list)'
    """
    reading = each.get("reading")
    return f"{verdict_of(each)} (only with {reading})" if reading else verdict_of(each)


def why_in_full(each: Mapping[str, Any]) -> str:
    """What a reader should know of a claim: why an agreement tests nothing, if so, and why ours differs.

    Parameters
    ----------
    each : mapping
        One of the document's claims.
    """
    said = [each["why"]]
    if each["verdict"] in (Verdict.FITTED, Verdict.CONSTRUCTION):
        said = [each["because"], f"By its rule alone: {each['judged']}.", each["why"]]
    if each["verdict"] in (Verdict.DIRECTION, Verdict.NOT):
        said.append(otherwise(each))
    return " ".join(filter(None, said))


def otherwise(each: Mapping[str, Any]) -> str:
    """What a claim's rule says under other readings of its source, in a sentence or two; empty if none was run.

    Parameters
    ----------
    each : mapping
        One of the document's claims.

    Examples
    --------
    >>> each = {"also": {"full drive": "not reproduced", "erased drive": "reproduced"}}
    >>> otherwise(each)
    'Other readings: reproduced with erased drive; not reproduced with full drive.'
    """
    sentences = []
    if each.get("also"):
        sentences.append(f"Other readings: {_by_verdict(each['also'].items())}.")
    taken, *others = each.get("searched") or [None]
    if taken is not None and others:
        found = [(one["given"], one["verdict"]) for one in others]
        other = [(given, verdict) for given, verdict in found if verdict != taken["verdict"]]
        same = len(found) - len(other)
        if other:
            sentences.append(
                f"Searched, {taken['verdict']} as taken: {_by_verdict(other)}"
                + (f"; the same with {same} other{'s' * (same > 1)}." if same else ".")
            )
        else:
            sentences.append(
                f"Searched, {taken['verdict']} as taken, and so with every other reading ({same})."
            )
    return " ".join(sentences)


def _by_verdict(found: Iterable[tuple[str, str]]) -> str:
    listed = list(found)
    named = {verdict: [one for one, v in listed if v == verdict] for verdict in _VERDICTS}
    return "; ".join(f"{verdict} with {', '.join(of)}" for verdict, of in named.items() if of)


def _reproduced_with(each: Mapping[str, Any]) -> list[str]:
    """The readings under which the rule of a claim is met that it does not meet as taken."""
    also = [name for name, verdict in (each.get("also") or {}).items() if verdict == "reproduced"]
    taken, *others = each.get("searched") or [{"verdict": "reproduced"}]
    searched = [
        f"{one['given']} (searched)"
        for one in others
        if one["verdict"] == "reproduced" != taken["verdict"]
    ]
    return also + searched


def differs(each: Mapping[str, Any]) -> bool:
    """Whether there is something to be said of how ours differs.

    Parameters
    ----------
    each : mapping
        One of the document's claims.
    """
    return bool(why_in_full(each)) and each["verdict"] != Verdict.REPRODUCED


def judged_on(each: Mapping[str, Any]) -> str:
    """What the judge of a claim decided by, in a sentence; empty if it had no choice.

    Parameters
    ----------
    each : mapping
        One of the document's claims.

    Examples
    --------
    >>> judged_on({"used": "full drive, greedy victims"})
    'Judged on: full drive, greedy victims.'
    """
    return f"Judged on: {each['used']}." if each.get("used") else ""


def rested_on(document: Mapping[str, Any]) -> str:
    """How the document came about, in a sentence.

    Parameters
    ----------
    document : mapping
        As :meth:`Reproduction.to_json` gives it.
    """
    how = "quick run (trends, no magnitudes)" if document["quick"] else "full run"
    traces = "with the real traces available" if document["traces"] else "without real traces"
    untimed = sum(
        each["searched_runs"]
        for each in document.get("spent", {}).values()
        if each["searched_cpu_s"] is None
    )
    return (
        f"Flashwright {document['version']}, {document['date']}: a {how} {traces}; "
        f"{document['runs']:,} runs, {document['cpu_s'] / 60:.0f} minutes of one core"
        + (f" without those of {untimed:,} runs of searches" if untimed else "")
    )


def pages(document: Mapping[str, Any]) -> dict[str, str]:
    """The pages.

    Parameters
    ----------
    document : mapping
        As :meth:`Reproduction.to_json` gives it.

    Returns
    -------
    dict of str to str
        By file name: ``index.md`` with counts by paper and verdict, and a page for each paper with its claims and,
        where ours differs, the reason.
    """
    claims: Sequence[Mapping[str, Any]] = document["claims"]
    by_paper = {name: list(of) for name, of in groupby(claims, lambda each: str(each["paper"]))}
    made = {f"{name}.md": _page(name, of) for name, of in by_paper.items()}
    for name, left_open in (document.get("open") or {}).items():
        if f"{name}.md" in made and left_open:
            made[f"{name}.md"] += _left_open(left_open)
    return {"index.md": _index(document, by_paper), **made}


def _index(document: Mapping[str, Any], by_paper: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    claims: Sequence[Mapping[str, Any]] = document["claims"]
    met = {verdict_of(each) for each in claims}
    verdicts = _VERDICTS + [name for name in (TOO_SMALL, NOT_JUDGED) if name in met]
    lines = [
        HEAD,
        "",
        "# Published claims, checked",
        "",
        f"{rested_on(document)}.",
        "",
        RULE,
        "",
        CLASSES,
        "",
        *table("paper", "claims", *verdicts),
    ]
    for name, of in (
        *((f"[{name}]({name}.md)", of) for name, of in by_paper.items()),
        ("**all**", claims),
    ):
        counted = [sum(verdict_of(each) == verdict for each in of) for verdict in verdicts]
        lines.append(row(name, str(len(of)), *map(str, counted)))
    put_in = [each for each in claims if each["verdict"] in (Verdict.FITTED, Verdict.CONSTRUCTION)]
    if put_in:
        lines += ["", "## Agreements that test nothing", ""]
        lines += table("claim", "verdict", "by its rule alone", "because")
        lines += [
            row(_link(each), verdict_of(each), str(each["judged"]), each["because"])
            for each in put_in
        ]
    read = [each for each in claims if each["reading"]]
    if read:
        lines += ["", "## Verdicts that hold under only one reading", ""]
        lines += table("claim", "verdict", "only with")
        lines += [row(_link(each), verdict_of(each), each["reading"]) for each in read]
    elsewhere = [
        (each, found)
        for each in claims
        if each["verdict"] in (Verdict.DIRECTION, Verdict.NOT) and (found := _reproduced_with(each))
    ]
    if elsewhere:
        lines += ["", "## Reproduced under another reading only", ""]
        lines += ["These keep the verdict on the reading that is taken.", ""]
        lines += table("claim", "verdict", "its rule is met with")
        lines += [row(_link(each), verdict_of(each), "; ".join(found)) for each, found in elsewhere]
    return "\n".join(lines + _causes(claims)) + "\n"


CAUSES = {
    Cause.TRACE: "What would decide is not available: a trace, or all of one",
    Cause.UNSTATED: "The source does not state what the result depends on",
    Cause.SOURCE: "The source's own: its figures contradict each other or its trace, or its simulator has a fault",
    Cause.MODEL: "Our model lacks a mechanism",
}


def _causes(claims: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why claims are not reproduced: counts by the likeliest cause, and the claims of each."""
    short = [each for each in claims if each["verdict"] in (Verdict.DIRECTION, Verdict.NOT)]
    if not short:
        return []
    lines = ["", "## Why claims are not reproduced", ""]
    lines += ["By the likeliest cause; where there is another, it stands behind the claim.", ""]
    lines += table("cause", str(Verdict.NOT), str(Verdict.DIRECTION))
    for cause, says in CAUSES.items():
        cells = []
        for verdict in (Verdict.NOT, Verdict.DIRECTION):
            of = [
                each
                for each in short
                if each["verdict"] == verdict and each.get("causes", [None])[:1] == [cause]
            ]
            listed = ", ".join(map(_with_other_causes, of))
            cells.append(f"{len(of)}: {listed}" if of else "0")
        lines.append(row(f"**{cause.value}**: {says}", *cells))
    return lines


def _with_other_causes(each: Mapping[str, Any]) -> str:
    others = each["causes"][1:]
    return f"{_link(each)} ({', '.join(others)})" if others else _link(each)


def _page(name: str, claims: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        HEAD,
        "",
        f"# Claims of {name}",
        "",
        "[What the verdicts and classes mean](index.md)",
        "",
    ]
    lines += table("claim", "where", "class", "the paper says", "ours", "verdict")
    for each in claims:
        lines.append(
            row(
                each["id"],
                f"{each['where']} (`{each['entry']}`)",
                each["kind"],
                each["says"],
                each["ours"] or each["error"] or "",
                verdict_in_full(each),
            )
        )
    lines += ["", "## Rules, and what their judges used", ""]
    lines += table("claim", "the rule", "judged on", "drive", "workload")
    lines += [
        row(each["id"], each["rule"], each.get("used", ""), each["drive"], each["workload"])
        for each in claims
    ]
    differ = [each for each in claims if differs(each)]
    if differ:
        lines += ["", "## Where ours differs, or tests nothing", ""]
        lines += [
            f"- **{each['id']}**, {verdict_in_full(each)}: {why_in_full(each)}" for each in differ
        ]
    return "\n".join(lines) + "\n"


def _left_open(left_open: Sequence[Mapping[str, Any]]) -> str:
    lines = ["", "## What the source leaves open", ""]
    lines += table("name", "what", "taken", "others tried", "why")
    for one in left_open:
        others = ", ".join(map(str, one["others"]))
        lines.append(row(f"`{one['name']}`", one["what"], str(one["taken"]), others, one["why"]))
    return "\n".join(lines) + "\n"


def _link(each: Mapping[str, Any]) -> str:
    return f"[{each['id']}]({each['paper']}.md)"


def table(*head: str) -> list[str]:
    """The head of a table, in two lines of Markdown."""
    return [row(*head), row(*["---"] * len(head))]


def row(*cells: str) -> str:
    """A row of a table, as a line of Markdown.

    Examples
    --------
    >>> row("one", "two")
    '| one | two |'
    """
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
