"""A reproduction that was kept as JSON: read, and brought to the classes that its papers' files give now."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from flashwright.errors import ConfigError
from flashwright_papers.claims import TOO_SMALL, Answer, Setting, Verdict
from flashwright_papers.papers import Paper
from flashwright_papers.planning import choose, exhibits, plan
from flashwright_papers.search import search
from flashwright_papers.session import Judging, Spent, counts_of, sources_of, totals
from flashwright_papers.verdicts import ClaimVerdict, plain

__all__ = ["read_kept", "renewed", "searched", "written"]


def written(document: Mapping[str, Any]) -> str:
    """A document as JSON with a line for each member, and one for each list that holds plain values only.

    Parameters
    ----------
    document : mapping
        Plain values, as :func:`flashwright_papers.verdicts.plain` gives them.

    Examples
    --------
    >>> print(written({"x": [1, 2], "lines": [{"y": []}]}), end="")
    {
     "x": [1, 2],
     "lines": [
      {
       "y": []
      }
     ]
    }
    """
    return _written(document, 1) + "\n"


def _written(value: Any, depth: int) -> str:
    if isinstance(value, Mapping):
        inside = [f"{json.dumps(key)}: {_written(each, depth + 1)}" for key, each in value.items()]
        ends = "{}"
    elif isinstance(value, list) and any(isinstance(each, Mapping | list) for each in value):
        inside, ends = [_written(each, depth + 1) for each in value], "[]"
    else:
        return json.dumps(value)
    before = "\n" + " " * depth
    return (
        f"{ends[0]}{before}{(',' + before).join(inside)}{before[:-1]}{ends[1]}" if inside else ends
    )


def read_kept(path: Path) -> dict[str, Any]:
    """The document that ``flashwright reproduce --json`` wrote.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    ConfigError
        If it can't be read, or is no such document.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path}: {error}", "give a file of flashwright reproduce --json"
        ) from None
    if not isinstance(document, dict) or not {"claims", "counts", "date"} <= set(document):
        raise ConfigError(
            f"{path}: found no claims with counts and a date, expected a reproduction",
            "give a file of flashwright reproduce --json",
        )
    return document


def renewed(document: Mapping[str, Any], read: Mapping[str, Paper]) -> dict[str, Any]:
    """A kept document with today's classes; numbers, words and judgements stay those of its run.

    Parameters
    ----------
    document : mapping
        As :func:`read_kept` gives it.
    read : mapping of str to Paper
        All papers.

    Returns
    -------
    dict
        The document: ``basis``, ``because``, ``reading`` and ``causes`` of each claim are those of its paper's file,
        and ``verdict`` is what its judgement counts as with them. What its papers leave open is as their files say,
        where the run took the same: a reading that is declared since is what it took. Its figures and tables
        are those that the papers' files list for its claims, with drawings of the papers of which all claims
        are there.

    Raises
    ------
    ConfigError
        If it holds a claim that no paper has.
    """
    known = {(name, each.id): each for name, paper in read.items() for each in paper.claims}
    claims = []
    for each in document["claims"]:
        claim = known.get((each["paper"], each["id"]))
        if claim is None:
            raise ConfigError(
                f"document: found the claim {each['paper']}/{each['id']}, expected one of the papers'",
                "",
                parameters=["document"],
            )
        judgement = each.get("judged", each["verdict"])  # files of before had one verdict
        verdict = TOO_SMALL if each["verdict"] == TOO_SMALL else None
        if judgement is not None and verdict is None:
            verdict = claim.counted(Verdict(judgement)).value
        claims.append(
            each
            | {"basis": claim.basis, "because": claim.because, "reading": claim.reading}
            | {"causes": [cause.value for cause in claim.causes]}
            | {"judged": judgement, "verdict": verdict}
        )
    counts = counts_of(each["verdict"] for each in claims)
    held = {(each["paper"], each["id"]) for each in claims}
    whole = {name for name, of in read.items() if all((name, one.id) in held for one in of.claims)}
    shown = [
        each
        for each in exhibits(read)
        if any((each.paper, id_) in held for id_ in each.claims)
        or (each.drawing and each.paper in whole)
    ]
    sources = [plain(asdict(each)) for each in sources_of(read, shown)]
    left_open = {
        name: _left_open(of, read[name]) for name, of in (document.get("open") or {}).items()
    }
    return {**document, "counts": counts, "open": left_open, "sources": sources, "claims": claims}


def _left_open(kept: Sequence[Mapping[str, Any]], paper: Paper) -> list[Mapping[str, Any]]:
    """What a paper leaves open, with what a run took where that is another value by now."""
    then = {each["name"]: each for each in kept}
    now = [plain(asdict(each)) for each in paper.open]
    return [
        then[each["name"]] if then.get(each["name"], each)["taken"] != each["taken"] else each
        for each in now
    ]


def _with_totals(document: Mapping[str, Any], spent: Mapping[str, Any]) -> dict[str, Any]:
    """The document with what its parts took, and the totals of that."""
    runs, cpu_s = totals({name: Spent(**each) for name, each in spent.items()})
    return {**document, "runs": runs, "cpu_s": round(cpu_s, 1), "spent": dict(spent)}


def searched(
    document: Mapping[str, Any],
    judging: Judging,
    wanted: Sequence[str] = (),
    traces: Path | None = None,
) -> dict[str, Any]:
    """A kept document with searches made now; what its run found and judged stays.

    Parameters
    ----------
    document : mapping
        As :func:`renewed` gives it.
    judging : Judging
        Runs what is searched.
    wanted : sequence of str
        As :func:`flashwright_papers.choose` takes it; all claims of the document if there is none.
    traces : Path or None
        The folder of real traces that the document's run had, if any.

    Returns
    -------
    dict
        The document, where each wanted claim that is not reproduced has the readings that were tried. What a part's
        last search took is in its ``spent``, and the document's totals are the sums of that.

    Raises
    ------
    ConfigError
        If a wanted claim is not in the document, or its run had traces and there are none now.
    """
    held = {(each["paper"], each["id"]): each for each in document["claims"]}
    claims = [each for each in choose(judging.read, wanted) if (each.paper, each.id) in held]
    if not claims:
        raise ConfigError(
            f"document: found none of {', '.join(wanted)}, expected claims that it has",
            "",
            parameters=["document"],
        )
    if "spent" not in document:
        raise ConfigError(
            "document: found no `spent`, expected what each part took",
            "it was written by an older version; run its claims again",
            parameters=["document"],
        )
    if document["traces"] and traces is None:
        raise ConfigError(
            "traces: found none, expected the folder that the document's run had",
            "a search without them would answer another question",
            parameters=["traces"],
        )
    folder = traces if document["traces"] else None
    setting = Setting(document["quick"], folder, document["given"])
    claim_verdicts = []
    for claim in claims:
        one = held[claim.paper, claim.id]
        if one["judged"] is not None:
            claim_verdicts.append(ClaimVerdict(claim, Answer(Verdict(one["judged"]), one["ours"])))
    found = {
        (new.claim.paper, new.claim.id): plain([asdict(reading) for reading in new.searched])
        for new in search(judging.read, claim_verdicts, setting, judging.kept, judging)
    }
    # The points of the run itself are no part of what a search takes.
    run = plan(judging.read, claims, setting, judging.kept).points
    taken = {name: {each.key for each in points} for name, points in run.items()}
    spent = dict(document["spent"])
    for part, each in judging.spent(taken).items():
        now = {"searched_runs": each.searched_runs, "searched_cpu_s": each.searched_cpu_s}
        spent[part] = spent[part] | now
    renewed_claims = [
        each | {"searched": found[name]} if (name := (each["paper"], each["id"])) in found else each
        for each in document["claims"]
    ]
    return _with_totals({**document, "claims": renewed_claims}, spent)
