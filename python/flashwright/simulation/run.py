"""A run while it goes: made, stepped, watched, saved, and its result."""

from __future__ import annotations

import copy
import json
import math
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any, TypeVar, cast

from flashwright.drive import policies
from flashwright.errors import Interrupted, VerifyError, WorkloadError
from flashwright.simulation.columns import requests_of
from flashwright.simulation.results import RunResult
from flashwright.simulation.run_options import LIMITS, TEXT, OptionKeywords, RunOptions
from flashwright.support.arguments import check_fields, checked
from flashwright.support.core import _core, expect_arrays
from flashwright.support.files import write_beside, write_or_warn
from flashwright.support.interrupts import held_back, is_command_line, raise_if_lost
from flashwright.support.progress import Progress
from flashwright.support.sealed import expect_code, read_sealed, seal
from flashwright.traces.fingerprint import TraceMark
from flashwright.traces.tenants import Load, Tenants
from flashwright.traces.workloads import Trace

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from flashwright.simulation.run_report import Report

__all__ = ["PlaySettings", "Run", "RunInterrupted", "RunSettings", "describes_options"]

# A step is as long as this where the machine allows, so that Ctrl-C and progress bars feel alive.
_STEP_S = 0.1
_STEP_MIN = 256
# Steps of a run whose rows are handed on are no longer than this, which bounds the rows in memory.
_STEP_OF_ROWS = 1 << 16
# Larger limits than this only keep numbers within 64 bits, so nobody needs to know them.
_SHOWN_MAX = 2**20
# A result names its trace by a digest up to this size, which takes a second.
_DIGESTED_MAX = 1 << 30
# What a saved run calls itself in its first line.
_KIND = "saved-run"


class PlaySettings(OptionKeywords, total=False):
    """The settings of a run as keywords, for calls that hand them on; see :meth:`flashwright.Ssd.play` for each."""

    policies: Sequence[policies.Given]


@dataclass(frozen=True)
class RunSettings(RunOptions):
    """What a run is made of beside drive and workload; see :meth:`flashwright.Ssd.play` for each."""

    policies: Sequence[policies.Given] = ()

    def __post_init__(self) -> None:
        check_fields(self, "policies")

    def to_json(self, preconditioning: str) -> str:
        """The form in which the core takes them; checks what it can't say as well."""
        for name, (kind, least, most) in LIMITS.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise WorkloadError(_beyond(name, value, kind, least, most), "", parameters=[name])
        if self.depth is not None and self.time_scale is not None:
            raise WorkloadError(
                "depth and time_scale: found both, expected one of them",
                "a closed loop ignores arrival times, so there is nothing to scale",
                parameters=["depth", "time_scale"],
            )
        if self.closeup is not None and not (self.closeup[0] >= 0 and self.closeup[1] >= 1):
            raise WorkloadError(
                f"closeup: found {self.closeup}, expected a request from 0 up, and at least 1 request",
                "",
                parameters=["closeup"],
            )
        if self.snapshots is not None and self.window == "off":
            raise WorkloadError(
                'snapshots: found them with window="off", expected a time series',
                "a snapshot is taken where a window ends",
                parameters=["snapshots", "window"],
            )
        given = {each.name: getattr(self, each.name) for each in fields(RunOptions)}
        return json.dumps({**given, "precondition": preconditioning})


def _beyond(name: str, value: float, kind: str, least: int, most: int) -> str:
    limit = f"{least} to {most:,}" if most <= _SHOWN_MAX else f"{least} up"
    return f"{name}: found {value}, expected {kind} from {limit}"


_Call = TypeVar("_Call", bound=Callable[..., Any])


def describes_options(call: _Call) -> _Call:
    """Put the description of every option in a docstring, where it says OPTIONS.

    Examples
    --------
    >>> @describes_options
    ... def play():
    ...     '''Play.
    ...
    ...     OPTIONS
    ...     '''
    >>> "seed : int" in play.__doc__
    True
    """
    text = call.__doc__ or ""
    line = next((each for each in text.splitlines() if each.strip() == "OPTIONS"), None)
    if line is not None:
        call.__doc__ = text.replace(line, indent(TEXT.strip("\n"), line[: line.index("O")]))
    return call


class RunInterrupted(Interrupted):
    """Ctrl-C while a run was going.

    Attributes
    ----------
    result : RunResult or None
        What was finished; None if nothing had been measured yet.
    """

    def __init__(self, result: RunResult | None) -> None:
        super().__init__("the run was interrupted")
        self.result = result


class Run:
    """One run, from preconditioning to result.

    :meth:`flashwright.Ssd.play` is the short way. This is the one for runs that are to be saved on their
    way and taken up again.

    Examples
    --------
    >>> import tempfile
    >>> from flashwright import Ssd, workloads
    >>> ssd = Ssd.named("default")
    >>> settings = RunSettings(requests=20_000, depth=8)
    >>> whole = Run.create(ssd.toml, "empty", workloads.uniform(), settings).go()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = Run.create(ssd.toml, "empty", workloads.uniform(), settings)
    ...     part = first.go(stop_after=5_000, checkpoint=Path(folder) / "run.saved")
    ...     rest = Run.load(Path(folder) / "run.saved").go()
    >>> part.json["ended"], part.json["measured"]["requests"] < 20_000
    ('interrupted', True)
    >>> rest.json["digest"] == whole.json["digest"]
    True
    """

    def __init__(
        self,
        core: _core.Simulation,
        trace: TraceMark | None = None,
        alone: Callable[[int, int, int], Run] | None = None,
    ) -> None:
        self._core = core
        self._trace = trace
        self._alone = alone
        self.unsaved: str | None = None
        """Why the last attempt to save it on the way failed; None if it did not."""

    @classmethod
    @checked()
    def create(
        cls,
        toml: str,
        preconditioning: str,
        source: Load,
        settings: RunSettings,
        *,
        shared: _core.SharedDrive | None = None,
    ) -> Run:
        """Build the drive and open the workload; nothing is played yet.

        Parameters
        ----------
        toml : str
            The drive.
        preconditioning : str
            What is done to it first.
        source : Workload, Trace or Tenants
            What is played.
        settings : RunSettings
            All else.
        shared : SharedDrive, optional
            Begin with the drive that the last run with it preconditioned, where it is in the state that this one would
            bring its own into; else keep this one's for the next. The result is the same.
        """
        text = settings.to_json(preconditioning)
        given = policies.handed(settings.policies)
        trace = TraceMark(source.path) if isinstance(source, Trace) else None
        core = _core.Simulation(toml, source.source_json(), text, given, shared)
        if not isinstance(source, Tenants) or not source.compared:
            return cls(core, trace)

        def alone(at: int, requests: int, warmup: int) -> Run:
            own = replace(
                settings,
                requests=requests,
                warmup=warmup,
                window="off",
                keep_requests=False,
                closeup=None,
                snapshots=None,
            )
            return cls.create(toml, preconditioning, source.only(at), own)

        return cls(core, trace, alone)

    @classmethod
    @checked()
    def load(cls, path: Path) -> Run:
        """Take up a run that :meth:`save` wrote. It continues exactly as it would have.

        Parameters
        ----------
        path : Path
            The file.

        Raises
        ------
        SavedStateError
            If the file is damaged, of another version of Flashwright, or its trace is another file now.
        """
        kept = read_sealed(path, _KIND)
        expect_code(path, kept, _KIND, _core.source_digest)
        known = kept.about["trace"]
        trace = None if known is None else TraceMark.expected(path, known)
        return cls(_core.Simulation.load(kept.content, str(path)), trace)

    @property
    def toml(self) -> str:
        """The drive's configuration."""
        return self._core.config()

    @property
    def keeps_requests(self) -> bool:
        """Whether a row is kept for every request."""
        return self._core.keeps_requests()

    @property
    def keeps_closeup(self) -> bool:
        """Whether rows of consecutive requests are kept."""
        return self._core.keeps_closeup()

    @property
    def wear(self) -> tuple[int, int, int]:
        """Erases of all blocks, pages that host writes touched, and their bytes, all since the drive was new."""
        return self._core.wear()

    @property
    def erases_per_block(self) -> npt.NDArray[np.uint32]:
        """Erases of each block since the drive was new."""
        expect_arrays()
        return self._core.erases_per_block()

    @checked(count=(0, 2**63))
    def step(self, count: int) -> bool:
        """Continue by about this many requests (pages while preconditioning).

        Returns
        -------
        bool
            Whether the run has come to its end.

        Examples
        --------
        >>> from flashwright import Ssd, workloads
        >>> run = Run.create(
        ...     Ssd.named("default").toml, "empty", workloads.uniform(), RunSettings(requests=1000)
        ... )
        >>> while not run.step(400):
        ...     pass
        >>> run.wear
        (0, 1000, 4096000)
        """
        return self._core.step(count)

    def save(self, path: Path) -> None:
        """Write the whole state, beside the file first and then in its place."""
        data = self._sealed()
        with write_beside(path) as part:
            part.write_bytes(data)

    def _sealed(self) -> bytes:
        trace = None if self._trace is None else self._trace.to_json()
        return seal(_KIND, self._core.save(), code=_core.source_digest, trace=trace)

    def take_requests(self) -> pa.Table | None:
        """Take the rows of the requests that completed since the last call out of the run.

        What is taken no longer needs memory in the run. From the first call on, results have no rows of requests, and
        the run can't be saved.

        Returns
        -------
        pyarrow.Table or None
            As :meth:`RunResult.requests` has them; None before measuring began, or where no rows are kept.

        Examples
        --------
        >>> from flashwright import Ssd, workloads
        >>> settings = RunSettings(requests=1000, keep_requests=True)
        >>> run = Run.create(Ssd.named("default").toml, "empty", workloads.uniform(), settings)
        >>> taken = []
        >>> while not run.step(400):
        ...     taken.append(run.take_requests().num_rows)
        >>> sum(taken), run.take_requests().num_rows
        (800, 200)
        """
        expect_arrays()
        taken = self._core.take_requests()
        return None if taken is None else requests_of(taken[0], json.loads(taken[1]))

    def progress(self) -> Progress:
        """Where the run stands."""
        return Progress(*self._core.progress())

    def result(self, label: str | None = None) -> RunResult | None:
        """The result so far; None before measuring began."""
        report = self._core.report()
        if report is None:
            return None
        result = RunResult.of(report, label)
        made = result.json["run"]["made"]
        assert made is not None, "the core has told what it knows"
        made["command"] = sys.argv if is_command_line() else None
        made["platform"] = f"{platform.platform()}, Python {platform.python_version()}"
        if self._trace is not None and self._trace.size_bytes <= _DIGESTED_MAX:
            made["trace_sha256"] = self._trace.to_json()["sha256"]
        return result

    @checked(stop_after=(1, 2**63))
    def go(
        self,
        *,
        progress: Callable[[Progress], None] | None = None,
        stop_after: int | None = None,
        time_limit_s: float | None = None,
        checkpoint: Path | None = None,
        checkpoint_every: float | None = None,
        on_requests: Callable[[pa.Table], None] | None = None,
        label: str | None = None,
    ) -> RunResult:
        """Play to the end, or to where it is to stop.

        Parameters
        ----------
        progress : callable, optional
            Called a few times a second.
        stop_after : int, optional
            Stop once this many requests were played in all, warm-up and earlier parts included.
        time_limit_s : float, optional
            Stop after so many seconds, or as soon after as something is measured.
        checkpoint : Path, optional
            Where the run is saved when it stops before its end, Ctrl-C included.
        checkpoint_every : float, optional
            Save it every this many seconds too. Where that fails, as on a full disk, a warning says so, the last good
            file stays, and the run goes on; ``unsaved`` then has the reason.
        on_requests : callable, optional
            Gets the rows of requests as they complete, by :meth:`take_requests`, so that a run of any length needs no
            memory for them. It is called after each step, and at the end whatever ends the run, then perhaps with no
            row. Not together with `checkpoint`.
        label : str, optional
            What the result is called in comparisons.

        Returns
        -------
        RunResult

        Raises
        ------
        RunInterrupted
            On Ctrl-C, with the result of what was finished.
        """
        if checkpoint is not None:
            self._core.expect_to_save()
        try:
            done = self._loop(
                progress, stop_after, time_limit_s, checkpoint, checkpoint_every, on_requests
            )
            self._hand_on(on_requests, last=True)
        except KeyboardInterrupt:
            self._hand_on(on_requests, last=True)
            if checkpoint is not None:
                self.unsaved = write_or_warn(checkpoint, self._sealed(), "the run")
            raise RunInterrupted(self.result(label)) from None
        except VerifyError as error:
            self._hand_on(on_requests, last=True)
            result = self.result(label)
            if result is None:
                raise
            return result.with_violation(str(error))
        if not done and checkpoint is not None:
            self.save(checkpoint)
        result = self.result(label)
        if result is None:
            raise WorkloadError(
                f"stop_after: {stop_after} requests end within the warm-up, so that nothing is measured yet",
                "stop later; a checkpoint was written if one was asked for",
                parameters=["stop_after"],
            )
        if done and self._alone is not None:
            try:
                result = against_alone(result, self._alone, progress)
            except RunInterrupted:
                raise RunInterrupted(result) from None
        return result

    def _loop(
        self,
        progress: Callable[[Progress], None] | None,
        stop_after: int | None,
        time_limit_s: float | None,
        checkpoint: Path | None,
        checkpoint_every: float | None,
        on_requests: Callable[[pa.Table], None] | None,
    ) -> bool:
        """Step on; true at the end of the run, false where it stops before."""
        budget, saved = _STEP_MIN, time.monotonic()
        most = math.inf if on_requests is None else _STEP_OF_ROWS
        ends = math.inf if time_limit_s is None else saved + time_limit_s
        while True:
            if time.monotonic() >= ends and self.progress().phase == "measured":
                return False
            steps = budget
            if stop_after is not None:
                now = self.progress()
                if now.phase not in ("precondition", "settling"):
                    if now.requests >= stop_after:
                        return now.phase == "done"
                    steps = min(steps, stop_after - now.requests)
            raise_if_lost()
            began = time.monotonic()
            if self._core.step(steps):
                return True
            ended = time.monotonic()
            self._hand_on(on_requests)
            # Towards the length of a step that is wanted, at most doubling.
            wanted = int(budget * _STEP_S / max(ended - began, 1e-6))
            budget = max(_STEP_MIN, int(min(2 * budget, wanted, most)))
            if progress is not None:
                progress(self.progress())
            if (
                checkpoint is not None
                and checkpoint_every is not None
                and ended - saved >= checkpoint_every
            ):
                self.unsaved = write_or_warn(checkpoint, self._sealed(), "the run")
                saved = time.monotonic()

    def _hand_on(
        self, on_requests: Callable[[pa.Table], None] | None, *, last: bool = False
    ) -> None:
        """Hand on the rows since the last time: all of them or, where that fails, none is seen again."""
        if on_requests is not None:
            with held_back():
                rows = self.take_requests()
                if rows is not None and (rows.num_rows > 0 or last):
                    on_requests(rows)


def against_alone(
    result: RunResult,
    alone: Callable[[int, int, int], Run],
    progress: Callable[[Progress], None] | None,
) -> RunResult:
    """The result of several tenants, with what each does alone on the drive.

    Parameters
    ----------
    result : RunResult
        All of them at once.
    alone : callable
        Begins the run of one, given its place and how many of its requests are measured and warm the drive up.
    progress : callable or None
        Called a few times a second.
    """
    figures: Any = copy.deepcopy(result.json)
    warmup = figures["measured"]["warmup_requests"]
    for at, among in enumerate(figures["tenants"]):
        requests = sum(among["requests"][kind] for kind in ("read", "write", "trim", "flush"))
        if requests == 0:
            continue
        own = round(warmup * requests / figures["measured"]["requests"])
        found: dict[str, Any] = dict(alone(at, requests, own).go(progress=progress).json)
        there = found["tenants"][at]
        iops, times = there["throughput"]["iops"], there["response_time_ns"]["all"]
        among["alone"] = {
            "requests": requests,
            "iops": iops,
            "response_time_ns": times,
            "write_amplification": there["write_amplification"],
            "verdict": found["settled"]["verdict"],
        }
        here = among["response_time_ns"]["all"]
        among["slowdown"] = {
            "mean_ratio": _ratio(here["mean"], times["mean"]),
            "p99_ratio": _ratio(here["p99"], times["p99"]),
            "iops_ratio": _ratio(iops, among["throughput"]["iops"]),
        }
    return replace(result, json=cast("Report", figures))


def _ratio(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None
