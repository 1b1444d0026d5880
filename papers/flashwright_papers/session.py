"""Running claims again: what is asked for, what that takes, and what comes out."""

from __future__ import annotations

import datetime
import os
import time
import traceback
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from flashwright._core import __version__
from flashwright.errors import ConfigError
from flashwright.support.arguments import checked
from flashwright.support.cores import cores
from flashwright.support.tabular import Tabular, html_table, of_rows
from flashwright.sweeps.compute import compute
from flashwright.sweeps.points import Outcome, Store
from flashwright_papers.claims import (
    NOT_JUDGED,
    TOO_SMALL,
    Answer,
    Claim,
    Exhibit,
    Open,
    Setting,
    Value,
    Verdict,
)
from flashwright_papers.papers import Paper, papers
from flashwright_papers.planning import Plan, checked_given, choose, exhibits, keys, needs, plan
from flashwright_papers.search import search as search_readings
from flashwright_papers.verdicts import ClaimVerdict, plain

__all__ = [
    "Judging",
    "Reproduction",
    "Source",
    "Spent",
    "counts_of",
    "folder_of",
    "reproduce",
    "sources_of",
]


@dataclass(frozen=True)
class Source:
    """A paper and figures and tables of it.

    Attributes
    ----------
    paper, title, cited : str
        Its folder, what it is called, and who wrote it.
    exhibits : tuple of Exhibit
        In its order.
    """

    paper: str
    title: str
    cited: str
    exhibits: tuple[Exhibit, ...]


@dataclass(frozen=True)
class Spent:
    """What the runs of a part took.

    Attributes
    ----------
    runs, searched_runs : int
        How many different ones the claims rest on, and how many others the last search of them.
    cpu_s, searched_cpu_s : float
        Seconds of one core, each when it was computed; the second is None if it was not recorded.
    """

    runs: int
    cpu_s: float
    searched_runs: int = 0
    searched_cpu_s: float | None = 0.0


@dataclass(frozen=True, repr=False)
class Reproduction(Tabular):
    """What came out.

    Attributes
    ----------
    claim_verdicts : tuple of ClaimVerdict
        Every claim that was asked for.
    setting : Setting
        What it was run with.
    version : str
        Of the simulator.
    date : str
        When it ended, as ``2012-06-11``.
    spent : mapping of str to Spent
        What the parts took on which the claims rest, by ``paper/part``.
    computed : int
        How many of their runs were not kept from before.
    wall_s : float
        What this reproduction took.
    workers : int
        On how many processes; with Dask the cores of this machine.
    failures : tuple of Outcome
        Runs that failed.
    left_open : mapping of str to tuple of Open
        What each paper leaves open.
    sources : tuple of Source
        The papers, with the figures and tables that were asked for.
    """

    claim_verdicts: tuple[ClaimVerdict, ...]
    setting: Setting
    version: str
    date: str
    spent: Mapping[str, Spent]
    computed: int
    wall_s: float
    workers: int
    failures: tuple[Outcome, ...] = ()
    left_open: Mapping[str, tuple[Open, ...]] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()

    @property
    def runs(self) -> int:
        """How many runs the claims and their searches rest on."""
        return totals(self.spent)[0]

    @property
    def cpu_s(self) -> float:
        """What all of them took, each when it was computed: seconds of one core."""
        return totals(self.spent)[1]

    @property
    def counts(self) -> dict[str, int]:
        """How many claims there are of each verdict, and how many could not be judged."""
        return counts_of(each.reported_verdict for each in self.claim_verdicts)

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
        return [each.to_json() for each in self.claim_verdicts]

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
            "given": dict(self.setting.given),
            "traces": self.setting.traces is not None,
            "runs": self.runs,
            "computed": self.computed,
            "cpu_s": round(self.cpu_s, 1),
            "wall_s": round(self.wall_s, 1),
            "workers": self.workers,
            "spent": {name: plain(asdict(each)) for name, each in self.spent.items()},
            "counts": self.counts,
            "open": {
                name: [plain(asdict(each)) for each in of] for name, of in self.left_open.items()
            },
            "sources": [plain(asdict(each)) for each in self.sources],
            "claims": self._rows(),
        }


def totals(spent: Mapping[str, Spent]) -> tuple[int, float]:
    """How many runs all parts took, and how many seconds of one core as far as they were recorded.

    Parameters
    ----------
    spent : mapping of str to Spent
        By part.

    Examples
    --------
    >>> totals({"sums": Spent(3, 1.5, 2, 0.25), "others": Spent(1, 0.5, 4, None)})
    (10, 2.25)
    """
    runs = sum(each.runs + each.searched_runs for each in spent.values())
    return runs, sum(each.cpu_s + (each.searched_cpu_s or 0.0) for each in spent.values())


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
    others = (TOO_SMALL, NOT_JUDGED)
    return {name: counted[name] for name in (*known, *others) if counted[name] or name in known}


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
    given: Mapping[str, Value] | None = None,
    search: bool = False,
    progress: Callable[[Outcome, int, int], None] | None = None,
    announce: Callable[[Plan], None] | None = None,
) -> Reproduction:
    """Run what claims rest on, and judge them.

    Parameters
    ----------
    wanted : sequence of str
        As :func:`choose` takes it.
    quick : bool, optional
        Scaled down to minutes for all. Claims that rest on runs of another size in full get no verdict.
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
    given : mapping of str to value, optional
        Values for what a source leaves open, by the names in its ``paper.toml``.
    search : bool, optional
        Judge claims that are not reproduced also with each other value that their source allows, one at a time, on
        drives as small as the paper's ``search-divisor`` says.
    progress : callable, optional
        Called after each run with its outcome, how many are finished, and how many there are.
    announce : callable, optional
        Called with the plan before anything is run; in a search once for each reading.

    Returns
    -------
    Reproduction

    Raises
    ------
    ConfigError
        If there is no such claim, or a paper's folder has a fault.
    """
    read = papers(experiments)
    claims = choose(read, wanted)
    folder = None if traces is None else folder_of(traces)
    setting = Setting(quick, folder, checked_given(read, claims, given or {}))
    kept = Store(Path(store))
    judging = Judging(read, kept, workers, dask, progress, announce)

    began = time.monotonic()
    made = plan(read, claims, setting, kept)
    claim_verdicts = judging(made)
    taken = {name: dict(each) for name, each in judging.by_part.items()}
    if quick:
        full = plan(read, claims, replace(setting, quick=False), kept)
        claim_verdicts = tuple(
            replace(each, too_small=keys(read, made, each.claim) != keys(read, full, each.claim))
            for each in claim_verdicts
        )
    if search:
        claim_verdicts = search_readings(read, claim_verdicts, setting, kept, judging)
    return Reproduction(
        claim_verdicts,
        setting,
        __version__,
        datetime.date.today().isoformat(),
        judging.spent(taken),
        sum(not each.cached for each in judging.outcomes),
        time.monotonic() - began,
        workers or cores(),
        judging.failures,
        {name: read[name].open for name in dict.fromkeys(each.paper for each in claims)},
        sources_of(read, exhibits(read, wanted)),
    )


@dataclass
class Judging:
    """Runs plans, and judges their claims by what came out.

    Attributes
    ----------
    read : mapping of str to Paper
        All papers.
    kept : Store
        Where results are kept.
    workers, dask, progress, announce
        As :func:`reproduce` takes them.
    by_part : dict of str to dict of str to Outcome
        What came out of all plans so far, by part and by the point's key.
    """

    read: Mapping[str, Paper]
    kept: Store
    workers: int | None = None
    dask: str | None = None
    progress: Callable[[Outcome, int, int], None] | None = None
    announce: Callable[[Plan], None] | None = None
    by_part: dict[str, dict[str, Outcome]] = field(default_factory=dict)

    @property
    def outcomes(self) -> list[Outcome]:
        """What came out of all plans, each point once."""
        by_key = {key: each for part in self.by_part.values() for key, each in part.items()}
        return list(by_key.values())

    @property
    def failures(self) -> tuple[Outcome, ...]:
        """Runs that failed."""
        return tuple(each for each in self.outcomes if each.error is not None)

    def spent(self, taken: Mapping[str, Container[str]]) -> dict[str, Spent]:
        """What each part took.

        Parameters
        ----------
        taken : mapping of str to container of str
            The keys on which verdicts rest, by part; other runs are those of a search.
        """
        found = {}
        for name, part in self.by_part.items():
            own = [each.seconds for key, each in part.items() if key in taken.get(name, ())]
            rest = [each.seconds for key, each in part.items() if key not in taken.get(name, ())]
            seconds = round(sum(own), 1), round(sum(rest), 1)
            found[name] = Spent(len(own), seconds[0], len(rest), seconds[1])
        return found

    def __call__(self, made: Plan) -> tuple[ClaimVerdict, ...]:
        """Run a plan and judge it."""
        if self.announce is not None:
            self.announce(made)
        listed = [point for points in made.points.values() for point in points]
        outcomes = compute(
            listed, self.kept, workers=self.workers, dask=self.dask, progress=self.progress
        )
        by_key = {each.point.key: each for each in outcomes}
        rows = {name: [by_key[each.key] for each in of] for name, of in made.points.items()}
        for name, found in rows.items():
            self.by_part.setdefault(name, {}).update({each.point.key: each for each in found})
        return _judge(self.read, made.claims, rows)


def sources_of(read: Mapping[str, Paper], shown: Sequence[Exhibit]) -> tuple[Source, ...]:
    """The papers of some figures and tables.

    Parameters
    ----------
    read : mapping of str to Paper
        All papers.
    shown : sequence of Exhibit
        As :func:`exhibits` gives them.
    """
    return tuple(
        Source(name, read[name].title, read[name].cited, tuple(each))
        for name, each in groupby(shown, lambda each: each.paper)
    )


def folder_of(path: str | os.PathLike[str]) -> Path:
    """The folder of real traces.

    Parameters
    ----------
    path : path
        Where it is.

    Raises
    ------
    ConfigError
        If there is none.
    """
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
) -> tuple[ClaimVerdict, ...]:
    answers: dict[str, ClaimVerdict] = {}
    wanted = {each.id: each for each in claims}
    for each in claims:
        if each.verdict is not None:
            answers[each.id] = ClaimVerdict(each, Answer(each.verdict, each.ours))
        if each.id in answers:
            continue
        judging = read[each.paper].judges[each.id]
        of_need = dict(zip(judging.needs, needs(read, each), strict=True))
        faults = [
            f"{one.point.label}: {one.error}"
            for name in of_need.values()
            for one in rows[name]
            if one.error is not None
        ]
        if faults:
            more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            answers[each.id] = ClaimVerdict(each, None, faults[0] + more)
            continue
        try:
            found = judging.judge(
                {need: [one.result for one in rows[name]] for need, name in of_need.items()}
            )
        except Exception as error:  # one judge's fault is no reason to lose the others' answers
            place = traceback.extract_tb(error.__traceback__)[-1]
            answers[each.id] = ClaimVerdict(
                each,
                None,
                f"its judge failed: {type(error).__name__}: {error} ({Path(place.filename).name}, line {place.lineno})",
            )
            continue
        for id_, answer in found.items() if isinstance(found, Mapping) else [(each.id, found)]:
            if id_ in wanted:
                answers[id_] = ClaimVerdict(wanted[id_], replace(answer, plots=tuple(answer.plots)))
        if each.id not in answers:
            answers[each.id] = ClaimVerdict(each, None, "its judge returned no answer for it")
    return tuple(answers[each.id] for each in claims)
