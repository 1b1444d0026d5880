"""A workload on a real device or file, in real time; or on a simulated drive by the same code."""

from __future__ import annotations

import json
import math
import os
import reprlib
import tomllib
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as changed
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashwright.drive.profilefile import host_profile, is_profile
from flashwright.drive.profilefile import read as read_profile
from flashwright.errors import ConfigError, Interrupted, WorkloadError
from flashwright.simulation.flat_figures import runs_html
from flashwright.simulation.parts import Latencies
from flashwright.simulation.results import Reported
from flashwright.simulation.run_report import Report
from flashwright.simulation.ssd import Ssd, of_settings
from flashwright.support.arguments import checked
from flashwright.support.core import _core
from flashwright.support.exports import is_export
from flashwright.support.files import parse_toml, reason, write_beside
from flashwright.support.progress import Progress
from flashwright.support.tabular import Tabular
from flashwright.traces import workloads

if TYPE_CHECKING:
    from flashwright.simulation.pages import RunsPage

__all__ = [
    "ReplayInterrupted",
    "ReplayResult",
    "expect_factor",
    "host_settings",
    "profile_settings",
    "replay",
]

_LOOK_S = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class ReplayResult(Reported, Tabular):
    """What a replay found. Its JSON has the names of a run's; what a device does not reveal is None there.

    Attributes
    ----------
    json : dict
        The documented figures. Beside those of a run: ``target`` (``name``, ``capacity_bytes``, ``block_bytes``,
        ``queue_depth``, ``real_time``, ``writes_allowed``), ``requests`` (by kind, and bytes), ``left_out``
        (``writes``, ``trims``, ``flushes`` that were not played) and ``lateness_ns`` (how much later than asked
        requests were handed over; None in a closed loop).
    windows : pyarrow.Table
        The time series, a row for each window; units in the names of the columns.
    response_distribution : dict
        For ``all``, ``read`` and ``write``: times in nanoseconds, and the share of requests at or below.
    lateness_distribution : tuple of arrays
        Likewise of the lateness; empty in a closed loop.
    label : str
        What the replay is called in reports.
    """

    json: Report
    windows: pa.Table
    response_distribution: dict[str, tuple[npt.NDArray[np.uint64], npt.NDArray[np.float64]]]
    lateness_distribution: tuple[npt.NDArray[np.uint64], npt.NDArray[np.float64]]
    label: str
    # What a report reads from a run, and a device does not reveal.
    erases_per_block: npt.NDArray[np.uint32] = field(
        default_factory=lambda: np.empty(0, np.uint32), repr=False
    )
    valid_per_block: npt.NDArray[np.uint32] = field(
        default_factory=lambda: np.empty(0, np.uint32), repr=False
    )
    violations: tuple[str, ...] = field(default=(), repr=False)
    varied: Mapping[str, object] = field(default_factory=dict, repr=False)
    closeup: None = field(default=None, repr=False)
    snapshots: None = field(default=None, repr=False)

    @classmethod
    def _of(cls, report: _core._ReplayReport) -> ReplayResult:
        figures = json.loads(report["json"])
        distributions = dict(report["distributions"])
        lateness = distributions.pop("lateness")
        windows = {
            name: pa.array(values, from_pandas=True) for name, values in report["windows"].items()
        }
        return cls(figures, pa.table(windows), distributions, lateness, figures["config"]["name"])

    @property
    def ended(self) -> str:
        """``complete``, ``time-limit``, ``interrupted``, ``failed`` or ``worn-out``."""
        return str(self.json["ended"])

    @property
    def latency_ns(self) -> Latencies:
        """Response times of all requests; see :meth:`latency_of` for one kind."""
        return self.latency_of("all")

    def latency_of(self, kind: Literal["all", "read", "write"]) -> Latencies:
        """Response times of ``"all"`` requests, of ``"read"`` or of ``"write"``."""
        times, shares = self.response_distribution[kind]
        by_kind: Mapping[str, Any] = self.json["response_time_ns"]
        return Latencies(by_kind[kind], times, shares)

    def labelled(self, label: str) -> ReplayResult:
        """The same result under another name."""
        return changed(self, label=label)

    def to_arrow(self) -> pa.Table:
        """The time series, as in :attr:`windows`.

        Returns
        -------
        pyarrow.Table
        """
        return self.windows

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the documented figures.

        Parameters
        ----------
        path : path
            The file; it appears once it is whole.
        """
        with write_beside(Path(path)) as part:
            part.write_text(json.dumps(self.json, indent=2) + "\n", encoding="utf-8")

    def _page(self, title: str | None) -> RunsPage:
        from flashwright.simulation.pages import RunsPage

        target = self.json["target"]
        name = self.label if target is None else target["name"]
        return RunsPage([self], title or f"{name}: {self.json['workload']}")

    def __repr__(self) -> str:
        requests = self.json["measured"]["requests"]
        return f"ReplayResult({self.label}: {self.json['workload']}, {requests:,} requests, {self.ended})"

    def _repr_html_(self) -> str:
        return runs_html([self])


class ReplayInterrupted(Interrupted):
    """Ctrl-C while a replay was going.

    Attributes
    ----------
    result : ReplayResult or None
        What was finished; None if nothing had been played yet.
    """

    def __init__(self, result: ReplayResult | None) -> None:
        super().__init__("the replay was interrupted")
        self.result = result


@checked(seed=(0, 2**64 - 1))
def replay(
    target: str | os.PathLike[str] | Ssd,
    workload: workloads.Source | str,
    *,
    depth: int | None = None,
    time_scale: float | None = None,
    requests: int | None = None,
    time_limit: float | None = None,
    destroys_data: bool = False,
    addresses: workloads.Addresses | None = None,
    scheduler: str | None = None,
    settings: Iterable[str] = (),
    profile: str | os.PathLike[str] | None = None,
    precondition: str | None = None,
    queue_depth: int | None = None,
    busy_poll: bool = False,
    seed: int = 1,
    progress: Callable[[Progress], None] | None = None,
    speed: float | None = None,
    wrap: bool | None = None,
) -> ReplayResult:
    """Play a workload on a block device, a file, or a simulated drive.

    A device or file is opened past the page cache, and for reading only unless `destroys_data` is given: then writes,
    trims and flushes are left out and counted. A target that is mounted, partitioned or in use is never written to.

    Parameters
    ----------
    target : path, str or Ssd
        A block device or a regular file; an export of an NBD server, ``"nbd://HOST:PORT/EXPORT"`` or
        ``"nbd+unix:///EXPORT?socket=PATH"``; a subsystem of NVMe/TCP, ``"nvme+tcp://HOST:PORT/NQN"``;
        ``"sim:NAME"`` or ``"sim:FILE.toml"``, or an :class:`Ssd`, in virtual time.
    workload : Workload, Trace or str
        What to play; text as ``--workload`` takes it, or ``"bundled:NAME"``.
    depth : int, optional
        Closed loop with that many requests outstanding, 1 to 4,096 on a device; arrival times are then ignored.
    time_scale : float, optional
        Open loop with arrival times multiplied by this; 0.5 plays twice as fast.
    requests : int, optional
        Requests of the workload at most, those left out included. By default a trace to its end, and a million of
        most workloads, or without end under a `time_limit`.
    time_limit : float, optional
        Seconds after which no more requests are issued.
    destroys_data : bool, optional
        Consent that whatever is on the target is written over.
    addresses : str, optional
        What becomes of a trace's addresses beyond the target's end, as :func:`flashwright.workloads.trace` takes it;
        ``"reject"``, refused, is the default.
    scheduler : str, optional
        I/O schedulers between workload and target, such as ``"deadline"``; several are joined by ``+``. On a device the
        kernel's own scheduler stays below.
    settings : iterable of str, optional
        ``KEY=VALUE``: settings of the host (``host.deadline.fifo-batch=8``), and of a simulated drive.
    profile : path, optional
        A TOML file of what is known of the drive, for schedulers that go by it: a profile of the prober, or one with
        ``clustered-page``, ``clustered-block``, ``read-buffer``, ``write-buffer``.
    precondition : str, optional
        What is done to a simulated drive first.
    queue_depth : int, optional
        Requests that a device has at once, 1 to 4,096; more wait. By default `depth`, or 128 in an open loop; 32 with
        a scheduler.
    busy_poll : bool, optional
        Look for completions all along instead of sleeping; takes a whole core.
    seed : int, optional
        Of the workload and of the data that is written.
    progress : callable, optional
        Called a few times a second.
    speed : float, optional
        Deprecated: the inverse of `time_scale`.
    wrap : bool, optional
        Deprecated: true is ``addresses="wrap"``.

    Returns
    -------
    ReplayResult
        Also where the device failed: ``ended`` says so, and the figures cover what was finished.

    Raises
    ------
    TargetError
        If the target can't be opened, or must not be written to.
    FlashwrightError
        If the workload or a setting does not fit.
    ReplayInterrupted
        On Ctrl-C, with the result of what was finished; it is a ``KeyboardInterrupt``.

    Examples
    --------
    >>> from flashwright import replay
    >>> found = replay("sim:default", "uniform:write=0.3", requests=10_000, depth=8)
    >>> found.json["ended"], found.json["requests"]["read"] + found.json["requests"]["write"]
    ('complete', 10000)
    """
    _expect("requests", requests, 1, 2**63)
    _expect("depth", depth, 1, 1 << 20)
    _expect("queue_depth", queue_depth, 1, 4096)
    _expect("seed", seed, 0, 2**64 - 1)
    time_scale, addresses = _under_new_names(speed, time_scale, wrap, addresses)
    if depth is not None and time_scale is not None:
        raise WorkloadError(
            "depth and time_scale: found both, expected one of them",
            "a closed loop ignores arrival times, so there is nothing to scale",
            parameters=["depth", "time_scale"],
        )
    for name, value in (("time_scale", time_scale), ("time_limit", time_limit)):
        if value is not None:
            expect_factor(name, value)
    source = workloads.find(workload) if isinstance(workload, str) else workload
    if isinstance(source, workloads.Trace):
        source = changed(source, addresses=addresses or "reject")
    elif addresses is not None:
        raise WorkloadError(
            "addresses: found with a generator, expected only with a trace",
            "generators keep to the target's size",
            parameters=["addresses"],
        )
    host = [
        *settings,
        *([] if profile is None else profile_settings(Path(profile))),
        *([] if scheduler is None else [f"host.scheduler={scheduler}"]),
    ]
    asked = {
        "target": _target(target, host, precondition, destroys_data, queue_depth, busy_poll),
        "seed": seed,
        "depth": depth,
        "time_scale": time_scale,
        "requests": requests,
        "time_limit_ns": None if time_limit is None else round(time_limit * 1e9),
        # Addresses that are fitted to the target all lie on it.
        "wrap": addresses not in (None, "reject"),
    }
    try:
        core = _core.Replay(source.source_json(), json.dumps(asked))
    except ConfigError as error:
        raise of_settings(error) from None
    try:
        while not core.wait(_LOOK_S):
            if progress is not None:
                progress(_progress(core))
    except KeyboardInterrupt:
        core.stop()
        while not core.wait(_LOOK_S):
            pass
        raise ReplayInterrupted(_result(core)) from None
    except BaseException:
        core.stop()
        raise
    result = _result(core)
    assert result is not None, "a replay that nobody stopped has a result"
    return result


def expect_factor(name: str, value: float) -> None:
    """Refuse a factor or a time that is none.

    Parameters
    ----------
    name : str
        What messages call it.
    value : float
        Expected to be from 0.000001 to 1,000,000.
    """
    if not (math.isfinite(value) and 1e-6 <= value <= 1e6):
        raise WorkloadError(
            f"{name}: found {value:g}, expected a number from 0.000001 to 1,000,000",
            "time_scale=0.5 plays twice as fast; time_limit=60 is a minute",
            parameters=[name, "time_scale", "time_limit"],
        )


def _under_new_names(
    speed: float | None,
    time_scale: float | None,
    wrap: bool | None,
    addresses: workloads.Addresses | None,
) -> tuple[float | None, workloads.Addresses | None]:
    """Time scale and addresses, of which each has an old name."""
    for old, new, both in (
        ("speed", "time_scale", speed is not None and time_scale is not None),
        ("wrap", "addresses", wrap is not None and addresses is not None),
    ):
        if both:
            raise WorkloadError(
                f"{old} and {new}: found both, expected {new} only", "", parameters=[old, new]
            )
    if speed is not None:
        warnings.warn("speed is now time_scale, its inverse", DeprecationWarning, stacklevel=3)
        expect_factor("speed", speed)
        time_scale = 1 / speed
    if wrap is not None:
        warnings.warn("wrap is now addresses='wrap'", DeprecationWarning, stacklevel=3)
        addresses = "wrap" if wrap else "reject"
    return time_scale, addresses


def _result(core: _core.Replay) -> ReplayResult | None:
    report = core.report()
    return None if report is None else ReplayResult._of(report)


def _progress(core: _core.Replay) -> Progress:
    phase, done, total, requests, _ = core.progress()
    return Progress(phase, done, total, None, requests)


def _target(
    target: str | os.PathLike[str] | Ssd,
    settings: list[str],
    precondition: str | None,
    destroys_data: bool,
    queue_depth: int | None,
    busy_poll: bool,
) -> dict[str, object]:
    """The target as the core takes it."""
    if not isinstance(target, Ssd):
        path = os.fspath(target)
        if not path.startswith("sim:"):
            if precondition is not None:
                raise WorkloadError(
                    "precondition: found with a device or file, expected only with sim:DEVICE",
                    "a real drive is preconditioned by playing writes on it",
                    parameters=["precondition"],
                )
            host_settings(settings)
            if is_export(path):
                if busy_poll:
                    raise WorkloadError(
                        "busy_poll: found with a target over the network, expected only with a device or file",
                        "",
                        parameters=["busy_poll"],
                    )
                return {
                    "remote": {
                        "uri": path,
                        "destroys_data": destroys_data,
                        "queue_depth": queue_depth,
                        "host": settings,
                    }
                }
            return {
                "disk": {
                    "path": path,
                    "destroys_data": destroys_data,
                    "queue_depth": queue_depth,
                    "busy_poll": busy_poll,
                    "host": settings,
                }
            }
        name = path.removeprefix("sim:")
        target = Ssd.from_toml(name) if "/" in name or name.endswith(".toml") else Ssd.named(name)
    for option, given in (("queue_depth", queue_depth is not None), ("busy_poll", busy_poll)):
        if given:
            raise WorkloadError(
                f"{option}: found with a simulated drive, expected only with a device or file",
                "the queue of a simulated drive is host.queue-depth in its description",
                parameters=[option],
            )
    if settings:
        target = target.with_settings(settings)
    if precondition is not None:
        target = target.precondition(precondition)
    return {"ssd": {"config": target.toml, "precondition": target.preconditioning or "empty"}}


def host_settings(settings: list[str]) -> list[str]:
    """The settings, if all are of the schedulers before a device that exists."""
    for setting in settings:
        key = setting.partition("=")[0].strip()
        if not key.startswith("host.") or key in _OF_DRIVES:
            raise WorkloadError(
                f"settings: {key}: found with a device or file, expected only with sim:DEVICE",
                "of a real drive only the schedulers before it can be set; see also queue_depth=",
                parameters=["settings", "queue_depth"],
            )
    return settings


# Settings of `[host]` that are about a simulated drive's side of it.
_OF_DRIVES = ("host.queue-depth", "host.partial-pages")


def profile_settings(path: Path) -> list[str]:
    """What is known of a drive, as settings of ``host.profile``.

    Parameters
    ----------
    path : path
        A profile of the prober, or a TOML file of the sizes alone.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        known = parse_toml(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}", "a profile is TOML text") from None
    except OSError as error:
        raise ConfigError(f"{path}: {reason(error)}", "check the path") from None
    if is_profile(text):
        sizes = host_profile(read_profile(text, str(path)).findings)
        return [f"host.profile.{key}={value}" for key, value in sizes.items()]
    # A whole drive description, or its part, serves as well.
    for table in ("host", "profile"):
        inner = known.get(table, known)
        known = inner if isinstance(inner, dict) else {table: inner}
    odd = [key for key, value in known.items() if type(value) not in (str, int)]
    if odd or not known:
        found = f"found {reprlib.repr(known[odd[0]])} for {odd[0]}" if odd else "found nothing"
        raise ConfigError(
            f"{path}: {found}, expected sizes as text",
            'such as clustered-page = "16 KiB"; also clustered-block, read-buffer, write-buffer',
        )
    return [f"host.profile.{key}={value}" for key, value in known.items()]


def _expect(name: str, value: int | None, least: int, most: int) -> None:
    if value is not None and not least <= value <= most:
        limit = f"{least} to {most:,}" if most < 2**20 else f"{least} up"
        raise WorkloadError(
            f"{name}: found {value}, expected a whole number from {limit}", "", parameters=[name]
        )
