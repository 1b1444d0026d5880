"""Asking a drive all that the probes can ask: in order, within a time limit, and again after an interruption.

The state of an interrupted session is a file with the findings that there are; each probe begins with a
purge, so that a session gives the same whether it was interrupted or not: on a simulated drive, to the digit.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from flashwright import __version__
from flashwright.arguments import checked
from flashwright.device import Ssd
from flashwright.errors import DeviceError, SavedStateError, TargetError
from flashwright.files import write_beside
from flashwright.points import digest_of_code
from flashwright.probes import PROBES
from flashwright.probes.base import (
    Context,
    Cost,
    Finding,
    Mark,
    Mode,
    Plot,
    Probe,
    Series,
    chosen,
    unknown,
)
from flashwright.probes.declared import Declared, beside, declared, doubts
from flashwright.profile import Profile, TargetFacts, reconcile
from flashwright.report.probe import amount, write_probe
from flashwright.results import of_rows
from flashwright.sealed import expect_code, read_sealed, seal
from flashwright.tables import Tabular, html_table
from flashwright.target import Deadline, Drive, OutOfTimeError, Target, opened
from flashwright.twin import Calibration, Check, Fit, calibrate, fitted

__all__ = [
    "Asked",
    "Planned",
    "ProbeInterrupted",
    "ProbeResult",
    "Twin",
    "plan",
    "probe",
    "twin_of",
]

Ended = Literal["complete", "time-limit", "interrupted", "failed"]

# What a kept session calls itself in its first line.
_KIND = "probe-state"
_NOT_ASKED = "not asked: "
# What more than half of the resamplings contradict is no verdict.
_LEAST_CONFIDENCE = 0.5
# Rates for what is said beforehand, where the target was not measured: a SATA drive's.
_READ_BYTES_PER_S = 500e6
_WRITE_BYTES_PER_S = 400e6
_REQUEST_S = 50e-6


@dataclass(frozen=True)
class Planned:
    """What a session will ask.

    Attributes
    ----------
    name, about : str
        Of the probe.
    cost : Cost
        About what it reads and writes.
    seconds : float or None
        About how long that takes on the target; None for a simulated drive, whose time is its own.
    done : bool
        Whether an earlier session has its findings already.
    """

    name: str
    about: str
    cost: Cost
    seconds: float | None
    done: bool


@dataclass(frozen=True)
class Asked:
    """What a probe did.

    Attributes
    ----------
    name : str
        Of the probe.
    bytes_read, bytes_written, flushes : int
        What it asked.
    seconds : float
        Real time that it took.
    target_seconds : float
        The same on the target's clock.
    """

    name: str
    bytes_read: int
    bytes_written: int
    flushes: int
    seconds: float
    target_seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class Twin:
    """A model of a probed drive.

    Attributes
    ----------
    fit : Fit
        The model, and how near it comes to what was measured.
    calibration : Calibration
        What was measured for it.
    """

    fit: Fit
    calibration: Calibration

    @property
    def ssd(self) -> Ssd:
        """The model, which plays as any drive of the simulator does."""
        return self.fit.ssd

    def __repr__(self) -> str:
        return f"Twin({self.ssd!r}, error {self.fit.error:.3f}, {self.fit.evaluations} tries)"


@dataclass(frozen=True, eq=False, repr=False)
class ProbeResult(Tabular):
    """What the probes found.

    Attributes
    ----------
    target : mapping
        ``name``, ``kind``, ``capacity_bytes``, ``block_bytes``, ``real_time``.
    mode : {"quick", "full"}
        How patient it was.
    seed : int
        Of all that was random.
    findings : mapping of str to Finding
        By parameter, in the order of the probes.
    asked : tuple of Asked
        What was done, a probe each.
    ended : {"complete", "time-limit", "interrupted", "failed"}
        Whether all probes came to their end.
    note : str
        Why not.
    declared : mapping of str to Declared
        What the kernel and the drive say of it, by name; empty unless it is a block device.
    doubts : tuple of str
        Why this may be no drive of flash. If there are any, what was found is not told as a drive's parameters, unless
        that was asked for.
    """

    target: Mapping[str, Any]
    mode: Mode
    seed: int
    findings: Mapping[str, Finding]
    asked: tuple[Asked, ...]
    ended: Ended = "complete"
    note: str = ""
    declared: Mapping[str, Declared] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()

    def __getitem__(self, parameter: str) -> Finding:
        """What was found of a parameter."""
        return self.findings[parameter]

    def to_arrow(self) -> pa.Table:
        """A row for each parameter, in the order of the probes.

        Returns
        -------
        pyarrow.Table
            ``parameter``, ``verdict``, ``value`` as people read it (``"16 KiB"``), ``number`` where it is one, in the
            ``unit`` given, its bounds ``low`` and ``high``, ``confidence`` from 0 to 1, and ``why``.
        """
        return of_rows(
            {
                "parameter": name,
                "verdict": finding.verdict,
                "value": None if finding.value is None else amount(finding.value, finding.unit),
                "number": None if isinstance(finding.value, str) else finding.value,
                "unit": finding.unit,
                "low": finding.low,
                "high": finding.high,
                "confidence": finding.confidence,
                "why": finding.why,
            }
            for name, finding in self.findings.items()
        )

    @property
    def beside(self) -> list[str]:
        """Declared values beside what was found, a sentence each."""
        return [one.sentence for one in beside(self.declared, self.findings)]

    @property
    def json(self) -> dict[str, Any]:
        """The documented figures: all of the findings with their evidence."""
        return {
            "version": __version__,
            "target": dict(self.target),
            "mode": self.mode,
            "seed": self.seed,
            "ended": self.ended,
            "note": self.note or None,
            "doubts": list(self.doubts),
            "declared": {name: asdict(value) for name, value in self.declared.items()},
            "beside": self.beside,
            "findings": [_plain(finding) for finding in self.findings.values()],
            "asked": [asdict(asked) for asked in self.asked],
        }

    def profile(self, twin: Twin | None = None) -> Profile:
        """What was found as a profile, which other commands take; of contradicting findings the surer one stays.

        Parameters
        ----------
        twin : Twin, optional
            A model of the drive, from :func:`twin_of`.
        """
        return Profile(
            TargetFacts(**self.target),
            reconcile(self.findings, self.target["capacity_bytes"]),
            self.mode,
            self.seed,
            round(sum(asked.seconds for asked in self.asked), 3),
            {name: one.value for name, one in self.declared.items() if one.value is not None},
            None if twin is None else twin.fit.ssd,
            {} if twin is None else twin.fit.to_dict(),
            {} if twin is None else twin.calibration.to_dict(),
        )

    def report(
        self,
        path: str | os.PathLike[str],
        twin: Twin | None = None,
        checked: Check | None = None,
    ) -> None:
        """Write an HTML page: verdicts, how each came about, the evidence as plots, and the twin if there is one."""
        write_probe(Path(path), self, None if twin is None else twin.fit.residuals, checked)

    def __repr__(self) -> str:
        told = sum(finding.verdict != "unknown" for finding in self.findings.values())
        return (
            f"ProbeResult({self.target['name']}: {told} of {len(self.findings)} told, {self.ended})"
        )

    def _repr_html_(self) -> str:
        words = {"absent": "none", "unknown": "cannot tell"}
        rows = [
            [
                name,
                words.get(finding.verdict) or amount(finding.value, finding.unit),
                f"{finding.confidence:.0%}" if finding.verdict != "unknown" else "",
                finding.why,
            ]
            for name, finding in self.findings.items()
        ]
        head = ["parameter", "verdict", "confidence", "why"]
        return html_table(head, rows, str(self.target["name"]), "; ".join(self.doubts) or self.note)


class ProbeInterrupted(KeyboardInterrupt):
    """Ctrl-C while probes were asking.

    Attributes
    ----------
    result : ProbeResult
        What was finished.
    """

    def __init__(self, result: ProbeResult) -> None:
        super().__init__("the probes were interrupted")
        self.result = result


@dataclass
class _Session:
    """The findings so far, and the file that keeps them."""

    path: Path | None
    key: dict[str, Any]
    findings: dict[str, Finding] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    @property
    def done(self) -> set[str]:
        return {asked.name for asked in self.asked}

    def load(self) -> None:
        if self.path is None or not self.path.exists():
            return
        opened = read_sealed(self.path, _KIND)
        expect_code(self.path, opened, _KIND, _digest_of_probes())
        key = opened.about["key"]
        differing = [name for name in self.key if key.get(name) != self.key[name]]
        if differing:
            found = ", ".join(f"{name} {key.get(name)}" for name in differing)
            wanted = ", ".join(f"{name} {self.key[name]}" for name in differing)
            other = "session" if {"mode", "seed"}.issuperset(differing) else "drive"
            raise SavedStateError(
                f"{self.path}: belongs to another {other}: found {found}, expected {wanted}",
                "name another file, or delete it to begin anew",
            )
        kept = json.loads(opened.content)
        self.findings = {f["parameter"]: _revived(f) for f in kept["findings"]}
        self.asked = [Asked(**asked) for asked in kept["asked"]]

    def save(self) -> None:
        if self.path is None:
            return
        kept = {
            "findings": [_plain(finding) for finding in self.findings.values()],
            "asked": [asdict(asked) for asked in self.asked],
        }
        content = json.dumps(kept).encode() + b"\n"
        whole = seal(_KIND, content, code=_digest_of_probes(), key=self.key)
        with write_beside(self.path) as part:
            part.write_bytes(whole)


def _digest_of_probes() -> str:
    """The code that decides what a session finds: findings of another are no part of this one."""
    modules = {type(asking).__module__ for asking in PROBES}
    shared = {f"flashwright.probes.{name}" for name in ("base", "conflicts", "edges", "stats")}
    return digest_of_code(__name__, "flashwright.target", *sorted(modules | shared))


def _plain(finding: Finding) -> dict[str, Any]:
    """A finding as JSON has it; gaps of a series are null."""

    def numbers(values: Any) -> list[float | None]:
        return [value if np.isfinite(value) else None for value in np.asarray(values).tolist()]

    plots = [
        {
            "title": plot.title,
            "x_label": plot.x_label,
            "y_label": plot.y_label,
            "x_log": plot.x_log,
            "y_log": plot.y_log,
            "series": [
                {
                    "name": line.name,
                    "style": line.style,
                    "x": numbers(line.x),
                    "y": numbers(line.y),
                }
                for line in plot.series
            ],
            "marks": [asdict(mark) for mark in plot.marks],
        }
        for plot in finding.plots
    ]
    value = finding.value.item() if isinstance(finding.value, np.generic) else finding.value
    figures = {name: float(figure) for name, figure in finding.figures.items()}
    return {
        "parameter": finding.parameter,
        "verdict": finding.verdict,
        "value": value,
        "unit": finding.unit,
        "low": None if finding.low is None else float(finding.low),
        "high": None if finding.high is None else float(finding.high),
        "confidence": float(finding.confidence),
        "why": finding.why,
        "figures": {name: x if np.isfinite(x) else None for name, x in figures.items()},
        "plots": plots,
    }


def _revived(plain: dict[str, Any]) -> Finding:
    """A finding from JSON."""

    def numbers(values: list[float | None]) -> Any:
        return np.array([np.nan if value is None else value for value in values], float)

    plots = tuple(
        Plot(
            plot["title"],
            plot["x_label"],
            plot["y_label"],
            tuple(
                Series(line["name"], numbers(line["x"]), numbers(line["y"]), line["style"])
                for line in plot["series"]
            ),
            tuple(Mark(**mark) for mark in plot["marks"]),
            plot["x_log"],
            plot["y_log"],
        )
        for plot in plain["plots"]
    )
    figures = {name: np.nan if x is None else x for name, x in plain["figures"].items()}
    return Finding(**{**plain, "plots": plots, "figures": figures})


def _chosen(only: Iterable[str]) -> list[Probe]:
    hint = "probes that others build on come along only if they are named too"
    return chosen(PROBES, only, hint)


@checked(seed=(0, 2**64 - 1))
def plan(
    target: Target,
    *,
    mode: Mode = "full",
    only: Iterable[str] = (),
    state: Path | None = None,
    seed: int = 1,
) -> list[Planned]:
    """What a session will ask of a target, before anything is written.

    Parameters
    ----------
    target : Target
        The drive; a real one is read for a moment to see how fast it is.
    mode, only, state, seed
        As of :func:`probe`.

    Returns
    -------
    list of Planned
        A probe each, in order.
    """
    session = _open(target, mode, seed, state)
    wanted = _chosen(only)
    rate = _read_rate(target) if target.real_time else 0.0
    planned = []
    for asking in wanted:
        context = Context(target, mode, seed, session.findings)
        cost = asking.cost(context)
        seconds = None
        if target.real_time:
            # Writes are unknown until they are made: at most as fast as reads.
            seconds = (
                cost.bytes_read / rate
                + cost.bytes_written / min(rate, _WRITE_BYTES_PER_S)
                + cost.requests * _REQUEST_S
            )
        done = asking.NAME in session.done
        planned.append(Planned(asking.NAME, asking.ABOUT, cost, seconds, done))
    return planned


def _read_rate(target: Target) -> float:
    """Bytes a second of some long reads over the target."""
    size = min(1 << 20, target.capacity_bytes // target.block_bytes * target.block_bytes)
    places = np.linspace(0, target.capacity_bytes - size, 32).astype(np.int64)
    places -= places % target.block_bytes
    times = target.play("read", places, size, depth=4)
    target.bytes_read -= size * places.size
    return min(size * places.size / max(times.duration_ns * 1e-9, 1e-9), 4 * _READ_BYTES_PER_S)


def _open(target: Target, mode: Mode, seed: int, state: Path | None) -> _Session:
    key = {
        "target": target.name,
        "drive": target.drive,
        "capacity_bytes": target.capacity_bytes,
        "block_bytes": target.block_bytes,
        "mode": mode,
        "seed": seed,
    }
    session = _Session(state, key)
    session.load()
    return session


@checked(seed=(0, 2**64 - 1), time_limit=(0, math.inf))
def probe(
    target: Drive,
    *,
    mode: Mode = "full",
    only: Iterable[str] = (),
    time_limit: float | None = None,
    state: str | os.PathLike[str] | None = None,
    seed: int = 1,
    despite_doubts: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> ProbeResult:
    """Ask a drive all that the probes can ask.

    The data on the target is lost: it must be open for writing.

    Parameters
    ----------
    target : Target, Ssd or str
        The drive: an open target, or a simulated one (``"sim:NAME"``, ``"sim:FILE.toml"``, or as described). A real
        one needs consent: ``Target("/dev/...", destroys_data=True)``.
    mode : {"quick", "full"}, optional
        Minutes, or as long as it takes.
    only : iterable of str, optional
        Names of probes; all of them if none is given.
    time_limit : float, optional
        Seconds after which no more is asked; the probe that is under way is given up.
    state : str or path, optional
        A file that keeps the findings after every probe. If it exists, the session goes on where that one stopped.
    seed : int, optional
        Of all that is random.
    despite_doubts : bool, optional
        Tell what was found as it is even if the target may be no drive of flash, such as a disk of a virtual machine
        that is known to be handed through.
    progress : callable, optional
        Told the probe's name, and how many bytes are done of how many in all.

    Returns
    -------
    ProbeResult
        A finding for every parameter; of those that were not asked, an unknown that says so.

    Raises
    ------
    WorkloadError
        If there is no such probe.
    SavedStateError
        If the state is of another target or session.
    ProbeInterrupted
        On Ctrl-C, with what was finished.

    Examples
    --------
    >>> found = probe("sim:ssd-a", mode="quick", only=["clustered-page"])
    >>> found["clustered-page"].value
    16384
    >>> found.to_pandas()[["parameter", "verdict", "value"]]
            parameter verdict   value
    0  clustered-page   found  16 KiB
    """
    with opened(target) as drive:
        return _probe(drive, mode, only, time_limit, state, seed, despite_doubts, progress)


def _probe(
    target: Target,
    mode: Mode,
    only: Iterable[str],
    time_limit: float | None,
    state: str | os.PathLike[str] | None,
    seed: int,
    despite_doubts: bool,
    progress: Callable[[str, int, int], None] | None,
) -> ProbeResult:
    session = _open(target, mode, seed, None if state is None else Path(state))
    wanted = _chosen(only)
    costs = {
        p.NAME: max(_bytes(p.cost(Context(target, mode, seed, session.findings))), 1)
        for p in wanted
    }
    total = sum(costs.values())
    done = sum(costs[name] for name in session.done if name in costs)
    watch = Deadline(time_limit)
    ended: Ended = "complete"
    note = ""
    outer, target.watch = target.watch, watch
    try:
        for asking in wanted:
            if asking.NAME in session.done:
                continue

            def told(share: float, name: str = asking.NAME, before: int = done) -> None:
                watch()
                if progress is not None:
                    progress(name, before + int(costs[name] * min(share, 1.0)), total)

            try:
                told(0.0)
                _ask(asking, Context(target, mode, seed, session.findings, told), session)
            except OutOfTimeError:
                ended, note = "time-limit", f"the time limit came during {asking.NAME}"
                break
            except DeviceError as error:
                ended, note = "failed", f"{asking.NAME}: {error}"
                break
            except KeyboardInterrupt:
                ended, note = "interrupted", f"interrupted during {asking.NAME}"
                break
            done += costs[asking.NAME]
            session.save()
    finally:
        target.watch = outer
    result = _result(target, mode, seed, wanted, session, ended, note, despite_doubts)
    if ended == "interrupted":
        raise ProbeInterrupted(result)
    return result


def _bytes(cost: Cost) -> int:
    # A request costs about as much time as this many bytes do.
    return cost.bytes_read + cost.bytes_written + cost.requests * 20_000


def _ask(asking: Probe, context: Context, session: _Session) -> None:
    target = context.target
    before = (target.bytes_read, target.bytes_written, target.flushes)
    real, own = time.monotonic(), target.elapsed_ns
    target.purge()
    findings = asking.run(context)
    assert {f.parameter for f in findings} == set(asking.PARAMETERS), f"{asking.NAME} told all"
    assert all((f.value is None) == (f.verdict != "found") for f in findings), asking.NAME
    session.findings |= {finding.parameter: finding for finding in findings}
    spent = Asked(
        asking.NAME,
        target.bytes_read - before[0],
        target.bytes_written - before[1],
        target.flushes - before[2],
        time.monotonic() - real,
        (target.elapsed_ns - own) * 1e-9,
    )
    session.asked.append(spent)


def _result(
    target: Target,
    mode: Mode,
    seed: int,
    wanted: list[Probe],
    session: _Session,
    ended: Ended,
    note: str,
    despite_doubts: bool,
) -> ProbeResult:
    findings = {}
    for asked in wanted:
        for parameter in asked.PARAMETERS:
            missing = unknown(parameter, f"{_NOT_ASKED}{note}")
            findings[parameter] = _sure(session.findings.get(parameter, missing))
    facts = {
        "name": target.name,
        "kind": target.kind,
        "capacity_bytes": target.capacity_bytes,
        "block_bytes": target.block_bytes,
        "real_time": target.real_time,
    }
    told = declared(target.name) if target.kind == "block-device" else {}
    doubted = _doubts(target, told, findings.get("kind-of-device"))
    if doubted and not despite_doubts:
        findings = {name: _doubted(finding, doubted[0]) for name, finding in findings.items()}
    return ProbeResult(
        facts, mode, seed, findings, tuple(session.asked), ended, note, told, doubted
    )


def _doubts(target: Target, told: Mapping[str, Declared], kind: Finding | None) -> tuple[str, ...]:
    """Why a target may be no drive of flash."""
    found = doubts(told)
    if target.kind == "file":
        found.append("It is a file: its file system, and the disk below with its caches, answer.")
    # What was not asked speaks neither for nor against.
    if kind is not None and kind.verdict == "unknown" and not kind.why.startswith(_NOT_ASKED):
        found.append(kind.why)
    return tuple(found)


def _sure(finding: Finding) -> Finding:
    """The finding, or none where more of the evidence speaks against it than for it."""
    if finding.verdict == "unknown" or finding.confidence >= _LEAST_CONFIDENCE:
        return finding
    return _withheld(finding, f"too unsteady: {finding.confidence:.0%} of the evidence say")


def _doubted(finding: Finding, doubt: str) -> Finding:
    """A finding on what may be no drive: what was seen, but no verdict."""
    if finding.verdict == "unknown":
        return finding
    return _withheld(finding, f"{doubt} So this is not told as a drive's:")


def _withheld(finding: Finding, but: str) -> Finding:
    """A finding that tells what was seen, but gives no verdict."""
    seen = "none" if finding.verdict == "absent" else amount(finding.value, finding.unit)
    return replace(
        finding,
        verdict="unknown",
        value=None,
        low=None,
        high=None,
        confidence=0.0,
        why=f"{but} {seen}. {finding.why}",
    )


@checked()
def twin_of(
    target: Drive,
    result: ProbeResult,
    progress: Callable[[str, int, int], None] | None = None,
) -> Twin:
    """Measure what a model is fitted to, and fit it.

    Parameters
    ----------
    target : Target, Ssd or str
        The drive that was probed, as :func:`probe` takes it; everything on it is lost.
    result : ProbeResult
        What the probes found; what they could not tell is tried.
    progress : callable, optional
        Told the step's name, and how much is done of how much in all.

    Returns
    -------
    Twin

    Raises
    ------
    TargetError
        If the target is too small, may be no drive of flash, or nothing that can be modelled behaves like it.
    """
    with opened(target) as drive:
        return _twin_of(drive, result, progress)


def _twin_of(
    target: Target, result: ProbeResult, progress: Callable[[str, int, int], None] | None
) -> Twin:
    if result.doubts and all(finding.verdict == "unknown" for finding in result.findings.values()):
        raise TargetError(
            f"{target.name}: found no drive to model: {result.doubts[0]}",
            "--despite-doubts takes it for one; --no-twin saves a profile without a model",
        )
    findings = reconcile(result.findings, target.capacity_bytes)

    def told(step: str) -> Callable[[float], None]:
        def tell(share: float) -> None:
            if progress is not None:
                progress(step, int(share * 1e6), 10**6)

        return tell

    target.purge()
    calibration = calibrate(
        target, findings, mode=result.mode, seed=result.seed, progress=told("calibration")
    )
    fit = fitted(target, findings, calibration, seed=result.seed, progress=told("twin"))
    return Twin(fit, calibration)
