"""A session of probes: in order, within a time limit, and again after an interruption.

The state of an interrupted session is a file with the findings so far. Each probe begins with a purge, so that a
session gives the same whether it was interrupted or not: on a simulated drive, to the digit.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from flashwright.drive.findings import Finding, unknown
from flashwright.errors import DeviceError, SavedStateError
from flashwright.probing.confidence import capped
from flashwright.probing.declared import Declared, declared, doubts
from flashwright.probing.drive_time import LIMITS_S, ProbeTime, allowed_s
from flashwright.probing.limits import doubts_of_reads, limits, rest_of
from flashwright.probing.plan import Planned, pace_of, planned
from flashwright.probing.probes import PROBES
from flashwright.probing.probes.plausible import kind_of_device, speaks_against
from flashwright.probing.result import (
    Asked,
    Ended,
    ProbeInterrupted,
    ProbeResult,
    as_json,
    of_json,
)
from flashwright.probing.suppressed import (
    suppress_doubted,
    suppress_map_entries,
    suppress_one_lane,
    suppress_rows,
    suppress_unsteady,
)
from flashwright.support.arguments import checked
from flashwright.support.digests import digest_of_code, modules_of
from flashwright.support.files import exists, write_or_warn
from flashwright.support.sealed import expect_code, read_sealed, seal
from flashwright.target.counters import Counters
from flashwright.target.deadline import Allowance, OutOfDriveTimeError
from flashwright.target.question import (
    Context,
    Cost,
    Mode,
    Probe,
    chosen,
    of_the_whole,
    reads_alone,
)
from flashwright.target.target import Deadline, Drive, OutOfTimeError, Target, opened
from flashwright.twin.twin import Twin, twin_of

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


# What a kept session calls itself in its first line.
_KIND = "probe-state"
_NOT_ASKED = "not run: "
_NEEDS_WRITES = "needs writes, and only reads were allowed"


@dataclass
class _Session:
    """The findings so far, and the file that keeps them."""

    path: Path | None
    key: dict[str, Any]
    findings: dict[str, Finding] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    put_off: list[str] = field(default_factory=list)
    """Probes that are asked after all others, in what time is left."""

    @property
    def done(self) -> set[str]:
        return {asked.name for asked in self.asked}

    def turns(self, wanted: list[Probe]) -> Iterator[tuple[Probe, list[Probe]]]:
        """Probes in the order in which they are asked, and those that are still to come after each."""
        for at, asking in enumerate(wanted):
            if asking.NAME not in self.done and asking.NAME not in self.put_off:
                yield asking, wanted[at + 1 :]
        for asking in wanted:
            if asking.NAME in self.put_off and asking.NAME not in self.done:
                yield asking, []

    def load(self) -> None:
        if self.path is None or not exists(self.path):
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
                "name another file, or delete it to start over",
            )
        kept = json.loads(opened.content)
        self.findings = {f["parameter"]: of_json(f) for f in kept["findings"]}
        self.asked = [Asked(**asked) for asked in kept["asked"]]
        self.put_off = kept["put_off"]

    def save(self) -> None:
        if self.path is None:
            return
        kept = {
            "findings": [as_json(finding) for finding in self.findings.values()],
            "asked": [asdict(asked) for asked in self.asked],
            "put_off": self.put_off,
        }
        content = json.dumps(kept).encode() + b"\n"
        whole = seal(_KIND, content, code=_digest_of_probes(), key=self.key)
        # Hours on a drive are not thrown away because a disk is full.
        write_or_warn(self.path, whole, "the session")


def _digest_of_probes() -> str:
    """The code that decides what a session finds: findings of another are no part of this one."""
    return digest_of_code(
        __name__,
        "flashwright.probing.drive_time",
        *(
            f"flashwright.target.{name}"
            for name in ("contents", "guard", "question", "stats", "target", "times")
        ),
        "flashwright.probing.suppressed",
        "flashwright.drive.findings",
        *(f"flashwright.characterization.{name}" for name in ("base", "depth_and_size")),
        *modules_of("flashwright.probing.probes"),
    )


def _chosen(only: Iterable[str]) -> list[Probe]:
    hint = "probes that others depend on run only if they are named too"
    return chosen(PROBES, only, hint)


@checked(seed=(0, 2**64 - 1))
def plan(
    target: Target,
    *,
    mode: Mode = "full",
    only: Iterable[str] = (),
    state: Path | None = None,
    seed: int = 1,
    drive_time: float | None = None,
    twin: bool = False,
    check: bool = False,
) -> list[Planned]:
    """What a session will ask of a target at most, before anything is written.

    Parameters
    ----------
    target : Target
        The drive; a real one is read for a moment to see how fast it is.
    mode, only, state, seed, drive_time
        As of :func:`probe`.
    twin, check : bool, optional
        Whether a twin is made (:func:`twin_of`) and checked as well.

    Returns
    -------
    list of Planned
        A probe each, in order; then ``calibration`` and ``check`` where those are wanted.
    """
    session = _open(target, mode, seed, state)
    return planned(
        target,
        _chosen(only),
        mode,
        seed,
        session.findings,
        session.done,
        limit_s=LIMITS_S[mode] if drive_time is None else drive_time,
        twin=twin,
        check=check,
    )


def _open(target: Target, mode: Mode, seed: int, state: Path | None) -> _Session:
    key = {
        "target": target.name,
        "drive": target.drive,
        "capacity_bytes": target.capacity_bytes,
        "block_bytes": target.block_bytes,
        "mode": mode,
        "seed": seed,
        "access": "reads" if target.read_only else "writes",
    }
    session = _Session(state, key)
    session.load()
    return session


@checked(seed=(0, 2**64 - 1), time_limit=(0, math.inf), drive_time=(0, math.inf))
def probe(
    target: Drive,
    *,
    mode: Mode = "full",
    only: Iterable[str] = (),
    time_limit: float | None = None,
    drive_time: float | None = None,
    state: str | os.PathLike[str] | None = None,
    seed: int = 1,
    despite_doubts: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
    found: Callable[[Finding, Asked], None] | None = None,
) -> ProbeResult:
    """Ask a drive all that the probes can ask.

    The data on the target is lost if it is open for writing. Of one that is open for reads alone
    (``Target(path, read_only=True)``) those probes are asked that tell something without a write.

    Parameters
    ----------
    target : Target, Ssd or str
        The drive: an open target, or a simulated one (``"sim:NAME"``, ``"sim:FILE.toml"``, or as described). A real
        one needs consent: ``Target("/dev/...", destroys_data=True)``. ``Target(..., part=Range(...))`` keeps to a part.
    mode : {"quick", "full"}, optional
        Half an hour of the drive's own time at most, or eight hours.
    only : iterable of str, optional
        Names of probes; all of them if none is given.
    time_limit : float, optional
        Seconds after which no more is asked; the probe that is under way is given up.
    drive_time : float, optional
        Seconds that the probes may take on the drive's own clock, which is ours for a real one: half an hour in quick
        mode and eight hours in full mode by default. A probe whose part of it runs out says how long it would need.
    state : str or path, optional
        A file that keeps the findings after every probe. If it exists, the session continues where that one stopped.
    seed : int, optional
        Random seed.
    despite_doubts : bool, optional
        Report findings unchanged even if the target may not be a flash drive, such as a disk of a virtual machine
        that is known to be handed through.
    progress : callable, optional
        Told the probe's name, and how many bytes are done of how many in all.
    found : callable, optional
        Receives each finding at once, and what its probe requested. A doubt that comes up later may still
        withhold it in the result.

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
        return _probe(
            drive, mode, only, time_limit, drive_time, state, seed, despite_doubts, progress, found
        )


def _probe(
    target: Target,
    mode: Mode,
    only: Iterable[str],
    time_limit: float | None,
    drive_time: float | None,
    state: str | os.PathLike[str] | None,
    seed: int,
    despite_doubts: bool,
    progress: Callable[[str, int, int], None] | None,
    found: Callable[[Finding, Asked], None] | None,
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
    reporter = _Reporter(target, wanted, despite_doubts)
    limit_s = LIMITS_S[mode] if drive_time is None else drive_time
    pace = pace_of(target)
    counters = Counters.of(target)
    outer, target.watch = target.watch, watch
    if pace.timeless:
        note = "requests take no time on this drive, so that there is nothing to measure"
    try:
        for asking, rest in session.turns(wanted if not pace.timeless else []):
            if target.read_only and not reads_alone(asking):
                continue

            reached = [0.0]

            def report_progress(
                share: float,
                name: str = asking.NAME,
                before: int = done,
                reached: list[float] = reached,
            ) -> None:
                watch()
                reached[0] = max(reached[0], share)
                if progress is not None:
                    progress(name, before + int(costs[name] * min(share, 1.0)), total)

            try:
                report_progress(0.0)
                # What is too unsteady to be reported is nothing that others may rest on.
                known = {name: suppress_unsteady(found) for name, found in session.findings.items()}
                context = Context(target, mode, seed, known, report_progress)
                needs = {p.NAME: pace.seconds(p.cost(context)) for p in rest}
                taken = sum(asked.target_seconds for asked in session.asked)
                allowed = allowed_s(limit_s, taken, asking.NAME, needs)
                last = asking.NAME in session.put_off
                time_ = ProbeTime(limit_s, watch, pace, allowed, reached, last)
                if not last and time_.hopeless(asking, context):
                    session.put_off.append(asking.NAME)
                    session.save()
                    continue
                _ask(asking, context, session, counters, time_)
            except OutOfTimeError:
                ended, note = "time-limit", f"the time limit was reached during {asking.NAME}"
                break
            except DeviceError as error:
                ended, note = "failed", f"{asking.NAME}: {error}"
                break
            except KeyboardInterrupt:
                ended, note = "interrupted", f"interrupted during {asking.NAME}"
                break
            done += costs[asking.NAME]
            session.save()
            if found is not None:
                reported, _ = reporter.report(session)
                for parameter in asking.PARAMETERS:
                    found(reported[parameter], session.asked[-1])
    finally:
        target.watch = outer
        counters.close()
    result = _result(reporter, mode, seed, session, ended, note)
    if ended == "interrupted":
        raise ProbeInterrupted(result)
    return result


def _bytes(cost: Cost) -> int:
    # A request costs about as much time as this many bytes do.
    return cost.bytes_read + cost.bytes_written + cost.requests * 20_000


def _ask(
    asking: Probe, context: Context, session: _Session, counters: Counters, time_: ProbeTime
) -> None:
    target = context.target
    counters.lap()
    before = (target.bytes_read, target.bytes_written, target.flushes)
    real, own = time.monotonic(), target.elapsed_ns
    target.watch = Allowance(target, time_.watch, time_.allowed_s, time_.pace.request_s)
    try:
        if not target.read_only:
            target.purge()
        vain = time_.hopeless(asking, context)
        findings = time_.short(asking, context, begun=False) if vain else asking.run(context)
    except OutOfDriveTimeError:
        findings = time_.short(asking, context)
    finally:
        target.watch = time_.watch
    assert {f.parameter for f in findings} == set(asking.PARAMETERS), (
        f"{asking.NAME} must give a finding for each of its parameters"
    )
    assert all((f.value is None) == (f.verdict != "found") for f in findings), asking.NAME
    session.findings |= {finding.parameter: finding for finding in findings}
    spent = Asked(
        asking.NAME,
        target.bytes_read - before[0],
        target.bytes_written - before[1],
        target.flushes - before[2],
        time.monotonic() - real,
        (target.elapsed_ns - own) * 1e-9,
        counters.lap(),
    )
    session.asked.append(spent)


class _Reporter:
    """Which findings on a target may be reported: what the session cannot know, and what speaks against a drive."""

    def __init__(self, target: Target, wanted: list[Probe], despite_doubts: bool) -> None:
        self.target, self.wanted, self.despite_doubts = target, wanted, despite_doubts
        block = target.kind == "block-device" and target.path is not None
        self.declared = declared(str(target.path)) if block else {}
        self.limits = limits(target)
        self._part = rest_of(target)
        self._empty = doubts_of_reads(target)

    def report(
        self, session: _Session, note: str = ""
    ) -> tuple[dict[str, Finding], tuple[str, ...]]:
        """The findings so far as they may be reported, one for each parameter, and the doubts."""
        findings = {}
        for asked in self.wanted:
            missing = f"{_NOT_ASKED}{note}"
            if self.target.read_only and not reads_alone(asked):
                missing = f"{_NOT_ASKED}{_NEEDS_WRITES}"
            for parameter in asked.PARAMETERS:
                found = suppress_unsteady(
                    session.findings.get(parameter, unknown(parameter, missing))
                )
                if self._part is not None and parameter in of_the_whole(asked):
                    found = suppress_doubted(found, "Only part of the drive is probed.")
                findings[parameter] = found
        if "clustered-block" in findings:
            block = suppress_rows(findings["clustered-block"], findings.get("stripe"))
            findings["clustered-block"] = block
        beside = [findings.get(name) for name in ("parallel-units", "prefetch", "map-reach")]
        for name in ("parallel-units", "stripe", "program-unit"):
            if name in findings:
                findings[name] = suppress_one_lane(findings[name], *beside)
        for name in ("read-buffer", "read-buffer-least"):
            if name in findings:
                findings[name] = suppress_map_entries(findings[name], findings.get("map-reach"))
        kind = findings.get("kind-of-device")
        if kind is not None and kind.parameter in session.findings:
            kind = findings["kind-of-device"] = kind_of_device(kind, session.findings)
        findings = {name: capped(finding) for name, finding in findings.items()}
        doubted = (*_doubts(self.target, self.declared, kind), *self._empty)
        if doubted and not self.despite_doubts:
            findings = {
                name: suppress_doubted(finding, doubted[0]) for name, finding in findings.items()
            }
        return findings, doubted


def _result(
    reporter: _Reporter, mode: Mode, seed: int, session: _Session, ended: Ended, note: str
) -> ProbeResult:
    target = reporter.target
    findings, doubted = reporter.report(session, note)
    facts = {
        "name": target.name,
        "kind": target.kind,
        "capacity_bytes": target.capacity_bytes,
        "block_bytes": target.block_bytes,
        "real_time": target.real_time,
    }
    return ProbeResult(
        facts,
        mode,
        seed,
        findings,
        tuple(session.asked),
        ended,
        note,
        reporter.declared,
        doubted,
        reporter.limits,
    )


def _doubts(
    target: Target, declared_values: Mapping[str, Declared], kind: Finding | None
) -> tuple[str, ...]:
    """Why a target may be no drive of flash."""
    found = doubts(declared_values)
    if target.kind == "file":
        found.append(
            "It is a file: the times include its file system and the disk below with its caches."
        )
    # What was not asked, and what shows no sign, speaks neither for nor against.
    if kind is not None and speaks_against(kind):
        found.append(kind.why)
    return tuple(found)
