"""Running claims again: what is asked for, what that takes, and what comes out."""

from __future__ import annotations

import datetime
import difflib
import math
import os
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from flashwright._core import __version__
from flashwright.errors import ConfigError
from flashwright.grid.compute import compute, cores
from flashwright.grid.points import Outcome, Point, Store
from flashwright.papers.claims import NOT_JUDGED, Answer, Claim, Setting, Verdict
from flashwright.papers.papers import Paper, Part, papers, points_of
from flashwright.support.arguments import checked
from flashwright.support.tabular import Tabular, html_table, of_rows

__all__ = ["Judged", "Plan", "Reproduction", "choose", "plan", "reproduce"]


@dataclass(frozen=True)
class Judged:
    """A claim and what came out.

    Attributes
    ----------
    claim : Claim
        What was said.
    answer : Answer or None
        What came out; None if the claim could not be judged.
    error : str or None
        Why it could not.
    """

    claim: Claim
    answer: Answer | None
    error: str | None = None

    @property
    def verdict(self) -> Verdict | None:
        """What the claim counts as; None if it could not be judged."""
        return None if self.answer is None else self.claim.counted(self.answer.verdict)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values; ``judged`` is the verdict by the rule alone."""
        said = asdict(self.claim)
        del said["verdict"], said["ours"]
        answer: dict[str, Any] = {"verdict": None, "judged": None, "ours": "", "plots": ()}
        if self.answer is not None:
            answer = asdict(self.answer) | {"verdict": self.verdict, "judged": self.answer.verdict}
            for key in ("workload", "why"):
                answer[key] = answer[key] or said[key]
        plain: dict[str, Any] = _plain(said | answer | {"error": self.error})
        return plain


def _plain(value: Any) -> Any:
    """As JSON has it: whatever sequences and numbers a judge used, and None for what is no number."""
    if isinstance(value, str | bool | int | None):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Iterable):
        return [_plain(each) for each in value]
    number = float(value)
    return number if math.isfinite(number) else None


@dataclass(frozen=True)
class Plan:
    """What a reproduction would do.

    Attributes
    ----------
    claims : tuple of Claim
        What is judged.
    points : dict of str to list of Point
        The runs, by part.
    kept : int
        How many of the runs are kept from before.
    runs : int
        How many different runs there are.
    cpu_s : float
        Seconds of one core that the others take, as measured when the parts were written.
    """

    claims: tuple[Claim, ...]
    points: Mapping[str, Sequence[Point]]
    kept: int
    runs: int
    cpu_s: float


@dataclass(frozen=True, repr=False)
class Reproduction(Tabular):
    """What came out.

    Attributes
    ----------
    judged : tuple of Judged
        Every claim that was asked for.
    setting : Setting
        What it was run with.
    version : str
        Of the simulator.
    date : str
        When it ended, as ``2012-06-11``.
    runs : int
        Different runs that the claims rest on.
    computed : int
        How many of them were not kept from before.
    cpu_s : float
        What all of them took, each when it was computed.
    wall_s : float
        What this reproduction took.
    workers : int
        On how many processes; with Dask the cores of this machine.
    failures : tuple of Outcome
        Runs that failed.
    """

    judged: tuple[Judged, ...]
    setting: Setting
    version: str
    date: str
    runs: int
    computed: int
    cpu_s: float
    wall_s: float
    workers: int
    failures: tuple[Outcome, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """How many claims there are of each verdict, and how many could not be judged."""
        return counts_of(each.verdict for each in self.judged)

    def to_arrow(self) -> pa.Table:
        """A row for each claim.

        Returns
        -------
        pyarrow.Table
            ``paper``, ``entry``, ``id``, ``where``, ``says``, ``rule``, ``verdict``, ``ours``, ``workload``, ``why``,
            ``error``.
        """
        names = [
            "paper",
            "entry",
            "id",
            "where",
            "says",
            "rule",
            "verdict",
            "ours",
            "workload",
            "why",
            "error",
        ]
        return of_rows({name: row[name] for name in names} for row in self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        return [each.to_json() for each in self.judged]

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items() if count)
        return f"Reproduction({counts or 'no claims'}; {self.runs} runs)"

    def _repr_html_(self) -> str:
        rows = [
            [
                f"{row['paper']}/{row['id']}",
                row["says"],
                row["ours"],
                row["verdict"] or row["error"],
            ]
            for row in self._rows()
        ]
        return html_table(["claim", "the paper", "ours", "verdict"], rows)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "version": self.version,
            "date": self.date,
            "quick": self.setting.quick,
            "traces": self.setting.traces is not None,
            "runs": self.runs,
            "computed": self.computed,
            "cpu_s": round(self.cpu_s, 1),
            "wall_s": round(self.wall_s, 1),
            "workers": self.workers,
            "counts": self.counts,
            "claims": self._rows(),
        }


def counts_of(verdicts: Iterable[str | None]) -> dict[str, int]:
    """How many claims there are of each verdict.

    Parameters
    ----------
    verdicts : iterable of str
        Of all claims; None where one could not be judged.

    Examples
    --------
    >>> counts_of(["reproduced", "fitted", "reproduced"])["reproduced"]
    2
    """
    counted = Counter(str(each or NOT_JUDGED) for each in verdicts)
    known = [each.value for each in Verdict]
    return {name: counted[name] for name in (*known, NOT_JUDGED) if counted[name] or name in known}


def choose(read: Mapping[str, Paper], wanted: Sequence[str] = ()) -> list[Claim]:
    """The claims that some words select.

    Parameters
    ----------
    read : mapping of str to Paper
        As :func:`papers` gives it.
    wanted : sequence of str
        Papers (``"dftl"``), entries (``"container-marking/table-4"``) or claims (``"G8"``, ``"dftl/G8"``); all
        claims if there is none.

    Raises
    ------
    ConfigError
        If a word selects nothing.
    """
    every = [each for paper in read.values() for each in paper.claims]
    if not wanted:
        return every
    taken: set[str] = set()
    for word in wanted:
        found = [each for each in every if word.lower() in _names(each)]
        if not found:
            raise ConfigError(
                f"wanted: found {word!r}, expected a paper ({', '.join(read)}), PAPER/ENTRY or a claim's id",
                _meant(word.lower(), every),
                parameters=["wanted"],
            )
        taken |= {each.id for each in found}
    return [each for each in every if each.id in taken]


def _meant(word: str, every: Sequence[Claim]) -> str:
    of_papers = sorted({f"{each.paper}/{each.entry}" for each in every if each.entry == word})
    if of_papers:
        return f"did you mean {' or '.join(of_papers)}?"
    known = sorted({name for each in every for name in _names(each)})
    close = difflib.get_close_matches(word, known, 1)
    return (
        f"did you mean {close[0]}?" if close else "`flashwright reproduce --list` names all of them"
    )


def _names(each: Claim) -> set[str]:
    id_ = each.id.lower()
    return {each.paper, f"{each.paper}/{each.entry}", id_, f"{each.paper}/{id_}"}


def plan(
    read: Mapping[str, Paper], claims: Sequence[Claim], setting: Setting, store: Store
) -> Plan:
    """Find out what judging claims takes; nothing is run.

    Parameters
    ----------
    read : mapping of str to Paper
        All papers.
    claims : sequence of Claim
        What is wanted.
    setting : Setting
        How large the runs are.
    store : Store
        Where results of before are.
    """
    parts: dict[str, Part] = {}
    for each in claims:
        for name in _needs(read, each):
            owner, _, part = name.rpartition("/")
            parts[name] = read[owner].parts[part]
    points = {name: points_of(part, setting) for name, part in parts.items()}
    kept, cpu_s = set[str](), 0.0
    for name, listed in points.items():
        found = {each.key for each in listed if store.has(each)}
        kept |= found
        missing = sum(each.key not in found for each in listed)
        cpu_s += parts[name].cpu_s[0 if setting.quick else 1] * missing / max(1, len(listed))
    every = {each.key for listed in points.values() for each in listed}
    return Plan(tuple(claims), points, len(kept), len(every), cpu_s)


def _needs(read: Mapping[str, Paper], each: Claim) -> list[str]:
    """The parts that a claim needs, as ``paper/part``."""
    judging = read[each.paper].judges.get(each.id)
    return [
        need if "/" in need else f"{each.paper}/{need}"
        for need in (judging.needs if judging is not None else ())
    ]


@checked(workers=(1, 4096))
def reproduce(
    wanted: Sequence[str] = (),
    *,
    quick: bool = False,
    traces: str | os.PathLike[str] | None = None,
    store: str | os.PathLike[str] = ".flashwright/claims",
    experiments: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    dask: str | None = None,
    progress: Callable[[Outcome, int, int], None] | None = None,
    told: Callable[[Plan], None] | None = None,
) -> Reproduction:
    """Run what claims rest on, and judge them.

    Parameters
    ----------
    wanted : sequence of str
        As :func:`choose` takes it.
    quick : bool, optional
        Scaled down to minutes for all.
    traces : path, optional
        Folder of real traces; without it those claims are played with stand-ins, which say so.
    store : path, optional
        Where results of runs are kept; what is there already is not run again.
    experiments : path, optional
        Folder of the papers.
    workers : int, optional
        Processes; by default one per core.
    dask : str, optional
        The address of a Dask scheduler, whose workers compute instead; they need the papers' folder at the same place.
    progress : callable, optional
        Called after each run with its outcome, how many are finished, and how many there are.
    told : callable, optional
        Called with the plan before anything is run.

    Returns
    -------
    Reproduction

    Raises
    ------
    ConfigError
        If there is no such claim, or a paper's folder has a fault.
    """
    read = papers(experiments)
    setting = Setting(quick, None if traces is None else _folder(traces))
    claims = choose(read, wanted)
    kept = Store(Path(store))
    made = plan(read, claims, setting, kept)
    if told is not None:
        told(made)
    began = time.monotonic()
    listed = [point for points in made.points.values() for point in points]
    outcomes = compute(listed, kept, workers=workers, dask=dask, progress=progress)
    by_key = {each.point.key: each for each in outcomes}
    rows = {name: [by_key[point.key] for point in points] for name, points in made.points.items()}
    judged = _judge(read, claims, rows)
    return Reproduction(
        judged,
        setting,
        __version__,
        datetime.date.today().isoformat(),
        len(by_key),
        sum(not each.cached for each in by_key.values()),
        sum(each.seconds for each in by_key.values()),
        time.monotonic() - began,
        workers or cores(),
        tuple(each for each in by_key.values() if each.error is not None),
    )


def _folder(path: str | os.PathLike[str]) -> Path:
    folder = Path(path)
    if not folder.is_dir():
        raise ConfigError(
            f"traces: {folder}: not a folder",
            "leave it out to play stand-ins",
            parameters=["traces"],
        )
    return folder


def _judge(
    read: Mapping[str, Paper], claims: Sequence[Claim], rows: Mapping[str, Sequence[Outcome]]
) -> tuple[Judged, ...]:
    answers: dict[str, Judged] = {}
    wanted = {each.id: each for each in claims}
    for each in claims:
        if each.verdict is not None:
            answers[each.id] = Judged(each, Answer(each.verdict, each.ours))
        if each.id in answers:
            continue
        judging = read[each.paper].judges[each.id]
        of_need = dict(zip(judging.needs, _needs(read, each), strict=True))
        faults = [
            f"{one.point.label}: {one.error}"
            for name in of_need.values()
            for one in rows[name]
            if one.error is not None
        ]
        if faults:
            more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            answers[each.id] = Judged(each, None, faults[0] + more)
            continue
        try:
            found = judging.judge(
                {need: [one.result for one in rows[name]] for need, name in of_need.items()}
            )
        except Exception as error:  # one judge's fault is no reason to lose the others' answers
            place = traceback.extract_tb(error.__traceback__)[-1]
            answers[each.id] = Judged(
                each,
                None,
                f"its judge failed: {type(error).__name__}: {error} ({Path(place.filename).name}, line {place.lineno})",
            )
            continue
        for id_, answer in found.items() if isinstance(found, Mapping) else [(each.id, found)]:
            if id_ in wanted:
                answers[id_] = Judged(wanted[id_], replace(answer, plots=tuple(answer.plots)))
        if each.id not in answers:
            answers[each.id] = Judged(each, None, "its judge returned no answer for it")
    return tuple(answers[each.id] for each in claims)
