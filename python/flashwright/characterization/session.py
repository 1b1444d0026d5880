"""Experiments on a target, one after the other: what is finished is kept, however it ends."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from flashwright.characterization import EXPERIMENTS
from flashwright.characterization.base import (
    DEPTH,
    REQUEST_BYTES,
    Bench,
    Estimate,
    Experiment,
    Result,
    Settings,
    on_request,
    too_small,
)
from flashwright.characterization.results import (
    Characterization,
    CharacterizationInterrupted,
    Ended,
    Part,
)
from flashwright.errors import DeviceError, TargetError
from flashwright.support.arguments import checked
from flashwright.target.arrays import KIB
from flashwright.target.question import Mode, chosen
from flashwright.target.target import Deadline, Drive, OutOfTimeError, Target, opened

__all__ = [
    "PACE_BYTES",
    "Characterization",
    "CharacterizationInterrupted",
    "Ended",
    "Pace",
    "Part",
    "characterize",
    "choose",
    "measure_pace",
    "plan",
]

# Requests of each kind and size in a short test of how fast a drive takes them.
_LOOK_REQUESTS = 512
# Bytes of a request of that test: a short one and a long one, which tell a request and a byte apart.
_LOOK_SIZES = (4 * KIB, REQUEST_BYTES)
PACE_BYTES = _LOOK_REQUESTS * sum(_LOOK_SIZES)
"""What :func:`measure_pace` reads, and about what it writes."""


@dataclass(frozen=True)
class Pace:
    """How long requests take whoever waits, seconds of our time each: the drive's, or the simulator's.

    Attributes
    ----------
    read_s, write_s : tuple of float
        A request without its bytes, and a byte; 32 outstanding.
    """

    read_s: tuple[float, float]
    write_s: tuple[float, float]

    def seconds(self, estimate: Estimate, real_time: bool) -> float:
        """About how long an experiment takes, unless cleaning slows the drive."""
        moved = max(estimate.bytes_read + estimate.bytes_written, 1)
        reads = estimate.requests * estimate.bytes_read / moved
        by_volume = (
            reads * self.read_s[0]
            + (estimate.requests - reads) * self.write_s[0]
            + estimate.bytes_read * self.read_s[1]
            + estimate.bytes_written * self.write_s[1]
        )
        if real_time and estimate.seconds_max is not None:
            return min(by_volume, estimate.seconds_max)
        return by_volume


@dataclass
class _Record:
    parts: list[Part] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def choose(names: Sequence[str] = ()) -> list[Experiment]:
    """The experiments of these names, in the order of the list; without names all but those that want to be named.

    Raises
    ------
    WorkloadError
        If there is none of a name.
    """
    listed = [each for each in EXPERIMENTS if names or not on_request(each)]
    return chosen(listed, names, "repeat it for several")


def plan(
    target: Target,
    experiments: Sequence[Experiment],
    mode: Mode = "full",
    settings: Settings | None = None,
) -> list[Estimate]:
    """About what experiments will ask of a target; nothing is asked of it.

    Parameters
    ----------
    target : Target
        It may be open for reading only.
    experiments : sequence of Experiment
        Which.
    mode : {"quick", "full"}, optional
        How much.
    settings : Settings, optional
        What else was said.

    Raises
    ------
    TargetError
        If it is too small.
    """
    why = too_small(target)
    if why is not None:
        raise TargetError(f"{target.name}: found {why}", "a larger drive")
    bench = Bench(target, mode, settings=settings or Settings())
    return [experiment.estimate(bench) for experiment in experiments]


def measure_pace(target: Target, seed: int = 1) -> Pace:
    """A short look at how fast a target takes requests: 512 reads and writes of 4 KiB and of 64 KiB at random places.

    Parameters
    ----------
    target : Target
        It is purged, and written.
    seed : int, optional
        Of the places.

    Returns
    -------
    Pace
        In our time.

    Raises
    ------
    TargetError
        If its clock stands still.
    """
    target.purge()
    rng = np.random.default_rng(seed)
    # The very first requests find nothing warm, neither there nor here.
    target.play("write", np.zeros(DEPTH, np.int64), target.block_bytes, depth=DEPTH)
    found = {}
    for kind in ("write", "read"):
        took = []
        for size in _LOOK_SIZES:
            places = rng.integers(0, target.capacity_bytes // size, _LOOK_REQUESTS) * size
            began = time.monotonic()
            times = target.play("write" if kind == "write" else "read", places, size, depth=DEPTH)
            took.append((time.monotonic() - began) / _LOOK_REQUESTS)
            if times.duration_ns == 0:
                raise TargetError(
                    f"{target.name}: found a drive on which no time passes, expected a timed one",
                    "set timing.model to parallel",
                )
        a_byte = max(took[1] - took[0], 0.0) / (_LOOK_SIZES[1] - _LOOK_SIZES[0])
        found[kind] = (max(took[0] - a_byte * _LOOK_SIZES[0], 0.0), a_byte)
    return Pace(found["read"], found["write"])


@checked(seed=(0, 2**64 - 1), time_limit_s=(0, math.inf))
def characterize(
    target: Drive,
    only: Sequence[str] = (),
    *,
    mode: Mode = "full",
    seed: int = 1,
    settings: Settings | None = None,
    time_limit_s: float | None = None,
    announce: Callable[
        [Experiment, Estimate, float], None
    ] = lambda experiment, estimate, seconds: None,
    progress: Callable[[Experiment, float], None] = lambda experiment, share: None,
) -> Characterization:
    """Carry out experiments on a target. All data on it is lost.

    Parameters
    ----------
    target : Target, Ssd or str
        An open target that may be written, or a simulated drive (``"sim:NAME"``, ``"sim:FILE.toml"``, or as described).
    only : sequence of str, optional
        Names of experiments; all of them if left out.
    mode : {"quick", "full"}, optional
        How much is asked of the drive.
    seed : int, optional
        Random seed.
    settings : Settings, optional
        What else can be said.
    time_limit_s : float, optional
        Stop after so long, seconds of our time; what is finished is kept.
    announce : callable, optional
        Called before each experiment, with what it will ask and about how many seconds it will take.
    progress : callable, optional
        Called with the experiment and the share of it that is done, 0 to 1.

    Returns
    -------
    Characterization
        What was finished.

    Raises
    ------
    TargetError
        If it may not be written, is too small, or has no clock.
    WorkloadError
        If there is no experiment of a name.
    CharacterizationInterrupted
        On Ctrl-C, with what was finished; it is a ``KeyboardInterrupt``.

    Examples
    --------
    >>> found = characterize("sim:default", ["mixing"], mode="quick")
    >>> found.ended, found.result("mixing").write_share.size
    ('complete', 11)
    >>> found.result("mixing").to_pandas().columns.tolist()
    ['write_share', 'bandwidth_bytes_per_s', 'read_mean_ns', 'write_mean_ns']
    """
    with opened(target) as drive:
        return _characterize(drive, only, mode, seed, settings, time_limit_s, announce, progress)


def _characterize(
    target: Target,
    only: Sequence[str],
    mode: Mode,
    seed: int,
    settings: Settings | None,
    time_limit_s: float | None,
    announce: Callable[[Experiment, Estimate, float], None],
    progress: Callable[[Experiment, float], None],
) -> Characterization:
    experiments = choose(only)
    settings = settings or Settings()
    estimates = plan(target, experiments, mode, settings)
    if not target.writes_allowed:
        raise TargetError(
            f"{target.name}: found a target whose data is kept, expected one that may be written",
            "destroys_data=True lets it be written, if nothing on it is needed",
            parameters=["destroys_data"],
        )
    target.watch = Deadline(time_limit_s)
    bench = Bench(target, mode, seed, settings=settings)
    record = _Record()
    ended: Ended = "complete"
    try:
        pace = measure_pace(target, seed)
        for experiment, estimate in zip(experiments, estimates, strict=True):
            seconds = pace.seconds(estimate, target.real_time)
            announce(experiment, estimate, seconds)
            bench.begin(estimate)
            bench.progress = _Progress(progress, experiment)
            ended = _carry_out(experiment, bench, seconds, record)
            if ended != "complete":
                break
    except OutOfTimeError:
        ended = "time-limit"
    except KeyboardInterrupt:
        ended = "interrupted"
    finally:
        target.watch = None
    if not bench.purges:
        record.notes.append(
            "the device does not support discards, so it could not be purged: earlier data and wear affect the results"
        )
    elif target.real_time:
        record.notes.append(
            "purged by discarding everything; a secure erase may restore it more completely"
        )
    found = Characterization(
        target=target.name,
        kind=target.kind,
        capacity_bytes=target.capacity_bytes,
        block_bytes=target.block_bytes,
        real_time=target.real_time,
        mode=mode,
        seed=seed,
        settings=settings,
        ended=ended,
        notes=tuple(record.notes),
        parts=tuple(record.parts),
    )
    if ended == "interrupted":
        raise CharacterizationInterrupted(found)
    return found


@dataclass
class _Progress:
    """Progress of one experiment."""

    progress: Callable[[Experiment, float], None]
    experiment: Experiment

    def __call__(self, share: float) -> None:
        self.progress(self.experiment, share)


def _carry_out(experiment: Experiment, bench: Bench, seconds: float, record: _Record) -> Ended:
    """Carry out one experiment and keep what it gave, however it ended."""
    target = bench.target
    began = time.monotonic()
    read, written = target.bytes_read, target.bytes_written
    ended: Ended = "complete"
    result: Result | None = None
    try:
        for each in experiment.run(bench):
            result = each
    except OutOfTimeError:
        ended = "time-limit"
    except KeyboardInterrupt:
        ended = "interrupted"
    except DeviceError as error:
        ended = "failed"
        record.notes.append(f"{experiment.NAME}: {error}")
    part = Part(
        name=experiment.NAME,
        about=experiment.ABOUT,
        estimate=bench.estimate,
        estimate_s=seconds,
        ended=ended,
        bytes_read=target.bytes_read - read,
        bytes_written=target.bytes_written - written,
        took_s=time.monotonic() - began,
        result=result,
    )
    record.parts.append(part)
    return ended
