"""How much space to reserve: what a drive's utilisation costs a workload, where it turns steep, what meets a target."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Self, Unpack

import numpy as np

from flashwright.advice.curve import METRICS, Advice, Point, Target, knee, knee_of
from flashwright.endurance import lifetime
from flashwright.errors import ConfigError, FlashwrightError, WorkloadError, WornOutError
from flashwright.simulation.compare import variants
from flashwright.simulation.results import RunResult
from flashwright.simulation.run import PlaySettings, Run, RunSettings
from flashwright.simulation.ssd import Ssd
from flashwright.simulation.variant import Variant
from flashwright.support.arguments import checked
from flashwright.support.core import _core
from flashwright.support.estimate import Estimate
from flashwright.support.progress import Progress
from flashwright.traces import workloads
from flashwright.traces.tenants import Tenants

__all__ = ["METRICS", "UTILIZATIONS", "Advice", "Point", "Target", "advise", "knee"]

UTILIZATIONS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
"""Shares of the flash that the host may use, by default."""

_KEY = "capacity.utilization"
# How near the answer is to the true utilisation. Chosen: half a per cent of the flash.
_TOLERANCE = 0.005
# Rounds of wear from which a life is extrapolated. Chosen: they show how the spread of the erases grows.
_ROUNDS = 20
# Pages that they write at most, so that a drive of millions of pages, whose many blocks show the spread sooner, is not
# worn for minutes; and the rounds that it gets in any case, from which a forecast can be made.
_ROUND_PAGES_MAX = 30_000_000
_ROUNDS_MIN = 6
# Seconds between two calls of a caller's `progress`.
_REPORT_S = 0.2

_Update = Callable[[Progress], None]
# Requests up to which a measurement that is too short is made longer. Chosen: minutes.
_REQUESTS_MAX = 16_000_000
# Half of the 95 % interval of a rate, as a share, at most, where a target is about time. Chosen: as the settled
# verdict.
_RATE_WIDTH = 0.03
# Batches of that interval.
_BATCHES = 9
# How many times as long the confirming run of a recommendation is measured.
_CONFIRM_TIMES = 3
# What is added to its seed. Chosen: far from the seeds of the points.
_CONFIRM_SEED = 1_000_003
# Recommendations that may be refuted before the search ends.
_CONFIRM_MOST = 8
# Where a trace is begun in that run, as a share of it. Chosen: as far from its beginning as it gets.
_CONFIRM_START = 0.5
# Requests by which two seeds are distinguished on a drive without preconditioning, before a whole run has to do it.
_DISTINGUISHING_REQUESTS = 2_000


@dataclass(frozen=True)
class _Job:
    """The runs of one point."""

    utilization: float
    variants: tuple[Variant, ...]
    cycles: int
    write_rate: float | None
    about_time: bool


def _play(job: _Job, progress: _Update) -> Point | str:
    """Play one point, and where life is asked for some rounds of wear too; text where the drive can't do it."""
    try:
        results = tuple(_measured(each, job.about_time, progress) for each in job.variants)
        # Of a point whose cleaning moves no page nothing is recommended, so its life is not played.
        is_idle = any(result.settled.verdict == "never-cleaned" for result in results)
        played = job.variants if job.cycles and not is_idle else ()
        lives = [_life(variant, job.cycles, progress) for variant in played]
    except FlashwrightError as error:
        return str(error)
    known = tuple(life for life in lives if life is not None)
    whole = known if len(known) == len(results) else ()
    return Point(job.utilization, results, whole, job.write_rate)


def _measured(variant: Variant, about_time: bool, progress: _Update) -> RunResult:
    """A run; played again, longer, where the drive has settled and the measurement is too short to say its figures."""
    while True:
        result = variant.begin().go(label=variant.label, progress=progress)
        result = result.with_varied(variant.varied)
        requests = result.json["measured"]["requests"]
        short = result.settled.verdict == "too-short" or (
            result.settled.verdict == "settled" and about_time and _unsteady(result)
        )
        grows = short and not isinstance(variant.source, workloads.Trace)
        if not grows or requests >= _REQUESTS_MAX:
            return result
        settings = replace(variant.settings, requests=min(4 * requests, _REQUESTS_MAX))
        variant = replace(variant, settings=settings)


def _unsteady(result: RunResult) -> bool:
    """Whether rates of parts of the run lie so far apart that the rate of the whole is not known to 3 %."""
    ends = result.windows["requests_end"].to_numpy()
    times = result.windows["time_end_ns"].to_numpy()
    parts = np.unique(np.searchsorted(ends, np.linspace(0, ends[-1], _BATCHES + 1)[1:]))
    if len(parts) < _BATCHES:
        return True
    passed = np.diff(times[parts].astype(np.float64))
    rates = np.diff(ends[parts].astype(np.float64)) / passed
    found = Estimate.of(rates.tolist())
    return found.ci95 is None or found.ci95 > _RATE_WIDTH * found.mean


def _life(variant: Variant, cycles: int, progress: _Update) -> float | None:
    """Host bytes until the drive's end, from rounds of wear; None for a workload that writes nothing."""
    ssd, rounds = _wearing(variant.ssd, cycles), _rounds(variant.ssd)
    is_large = rounds < _ROUNDS
    if is_large:
        ssd = ssd.precondition("sequential")  # its rounds settle it, too
    given, source = variant.settings, variant.source
    assert not isinstance(source, Tenants), "advice is for one workload"
    settings = RunSettings(seed=given.seed, depth=given.depth, policies=given.policies)
    try:
        run = lifetime.begin(ssd, source, settings)
        made = lifetime.forecast(
            run,
            progress=progress,
            share_min=0.0,
            rounds_min=rounds,
            rounds_max=rounds if is_large else None,
        )
    except (WorkloadError, WornOutError):
        return None
    result = run.result()
    if result is None:
        return None
    return lifetime.Endurance.of(result, made).host_bytes


def _rounds(ssd: Ssd) -> int:
    """Rounds of wear that a drive gets."""
    geometry = ssd.config["geometry"]
    planes = geometry["channels"] * geometry["dies-per-channel"] * geometry["planes-per-die"]
    pages = planes * geometry["blocks-per-plane"] * geometry["pages-per-block"]
    return int(min(_ROUNDS, max(_ROUNDS_MIN, _ROUND_PAGES_MAX // pages)))


def _wearing(ssd: Ssd, cycles: int) -> Ssd:
    """The drive on which rounds of wear are played."""
    return ssd.untimed().with_({"wear.pe-cycles-max": cycles})


class _Players:
    """Plays points in threads, several at a time: the simulator runs without Python's lock."""

    def __init__(self, jobs: int, report: Callable[[float, Progress], None]) -> None:
        self._pool = ThreadPoolExecutor(jobs, "flashwright-advise")
        self._report = report
        self._under_way: dict[float, Progress] = {}
        self._stopping = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._pool.shutdown(cancel_futures=True)

    def play(self, jobs: Sequence[_Job]) -> Iterator[tuple[float, Point | str]]:
        """Each point's utilisation, and the point or why there is none, as they are done."""
        working = {self._pool.submit(self._played, job) for job in jobs}
        while working:
            done, working = wait(working, _REPORT_S, FIRST_COMPLETED)
            yield from (each.result() for each in done)
            for utilization, now in sorted(self._under_way.copy().items())[:1]:
                self._report(utilization, now)

    def _played(self, job: _Job) -> tuple[float, Point | str]:
        def update(now: Progress) -> None:
            self._under_way[job.utilization] = now
            if self._stopping.is_set():
                raise KeyboardInterrupt

        found = _play(job, update)
        self._under_way.pop(job.utilization, None)
        return job.utilization, found


@checked(cycles=(1, 2**63), write_rate=(0, math.inf), jobs=(1, 4096))
def advise(
    ssd: Ssd,
    workload: workloads.Source | str,
    *,
    utilizations: Sequence[float] = UTILIZATIONS,
    targets: Sequence[Target | str] = (),
    settings: RunSettings | None = None,
    cycles: int | None = None,
    write_rate: float | None = None,
    seeds: int = 1,
    jobs: int = 1,
    progress: Callable[[str, Progress], None] | None = None,
    **by_name: Unpack[PlaySettings],
) -> Advice:
    """Play a workload on a drive with more and less space for the host, and say what to reserve.

    Every point is a drive that has settled under the workload; what has not settled meets no target. A measurement that
    is too short to say its figures to 3 % is made longer. What is to be recommended is played once more, three times as
    long, as another run, and counts only if it meets the targets again: under another seed, and a trace from its middle
    on. Where the seed changes nothing in the run, the recommendation says that it is not confirmed.

    Parameters
    ----------
    ssd : Ssd
        The drive. Without a :meth:`Ssd.precondition` of its own it is preconditioned with the workload (``auto``).
    workload : Workload, Trace or str
        What is played.
    utilizations : sequence of float, optional
        Values of ``capacity.utilization`` to try.
    targets : sequence of Target or str, optional
        What is to be met. Between the highest utilisation tried that meets all and the next one, more are
        played until they are within 0.005, so that the answer is a run of its own. A target of life may say the
        rate too: ``life>=1dwpd,5y``.
    settings : RunSettings, optional
        All else that makes the runs.
    cycles : int, optional
        Erases that a block takes; by default the drive's ``wear.pe-cycles-max``. The runs themselves are played
        without a limit. Where there is one, each point is worn for some twenty erases a block more, five or more
        on large drives, without time where the drive can (:meth:`Ssd.untimed`), to tell its life.
    write_rate : float, optional
        Bytes a second that the host writes, for years.
    seeds : int, optional
        Runs of each point, with consecutive seeds; figures are means over them, with intervals.
    jobs : int, optional
        Points played at a time. With policies written in Python they are played one at a time, as Python does.
    progress : callable, optional
        Called a few times a second with what is played, of how many points that are known to be needed, and where it
        stands.
    **by_name
        Settings of the runs, as :meth:`Ssd.play` takes them; laid over `settings`.

    Returns
    -------
    Advice
        Its ``finished`` is False where Ctrl-C cut it short.

    Raises
    ------
    ConfigError
        If no utilisation makes a drive, or a target is for life and no life can be computed.

    Examples
    --------
    >>> ssd = Ssd.named("default").with_({"timing.model": "none"}, blocks_per_plane=64)
    >>> found = advise(
    ...     ssd,
    ...     "uniform:write=1",
    ...     utilizations=[0.5, 0.7, 0.85],
    ...     targets=["write-amplification<=2"],
    ...     requests=100_000,
    ... )
    >>> best = found.recommended
    >>> 0.65 <= best.utilization < 0.75, best.value("write-amplification") <= 2, best.verdict
    (True, True, 'settled')
    >>> best.confirmation.result.json["seed"], best.confirmation.value("write-amplification") <= 2
    (1000004, True)
    >>> best.confirmation.played_as
    'under another seed'
    """
    wanted = tuple(t if isinstance(t, Target) else Target.parse(t) for t in targets)
    grid = sorted({round(float(u), 6) for u in utilizations})
    if not grid or not all(0 < u < 1 for u in grid):
        raise ConfigError(
            f"utilizations: found {', '.join(map(str, utilizations)) or 'nothing'}, "
            "expected shares above 0 and below 1",
            "",
            parameters=["utilizations"],
        )
    config = ssd.config
    limit = config["wear"]["pe-cycles-max"] if cycles is None else cycles
    write_rate = _rate_of(wanted, write_rate, ssd)
    if any(target.metric == "life" for target in wanted):
        for name, value, hint in (
            ("write_rate", write_rate, "years need the rate at which the host writes"),
            ("cycles", limit or None, "or a drive with wear.pe-cycles-max, such as 3000"),
        ):
            if value is None:
                raise ConfigError(
                    f"{name}: found nothing, expected it with a target of life",
                    hint,
                    parameters=[name],
                )
    about_time = any(t.metric in ("mean", "p99", "p99.9", "iops", "throughput") for t in wanted)
    if about_time and config["timing"]["model"] == "none":
        raise ConfigError(
            "timing.model: found none, expected serial or parallel for a target of time", ""
        )
    if not 1 <= seeds <= 1000:
        raise ConfigError(f"seeds: found {seeds}, expected 1 to 1,000", "", parameters=["seeds"])
    base = ssd.settling().with_({"wear.pe-cycles-max": 0, "capacity.logical": "0 B"})
    made = replace(settings or RunSettings(), **by_name)
    source = workloads.find(workload) if isinstance(workload, str) else workload
    points: dict[float, Point] = {}
    failures: dict[float, str] = {}

    def job(u: float, settings: RunSettings, source: workloads.Source, count: int) -> _Job | None:
        try:
            made = variants(base, source, {_KEY: [u]}, settings)[0]
            if limit:
                # Now, since a refusal after the runs would come minutes late.
                _wearing(made.ssd, limit).check()
        except ConfigError as error:
            failures[u] = str(error)
            return None
        each = (replace(settings, seed=settings.seed + k) for k in range(count))
        own = tuple(replace(made, settings=one) for one in each)
        return _Job(u, own, limit, write_rate, about_time)

    finished, done, needed = True, 0, len(grid)

    def report(utilization: float, now: Progress) -> None:
        if progress is not None:
            progress(f"point {done + 1} of {needed}, utilization {utilization:g}", now)

    with _Players(1 if made.policies else jobs, report) as players:

        def play(asked: Sequence[_Job | None]) -> Iterator[Point]:
            nonlocal done
            listed = [one for one in asked if one is not None]
            for one, found in players.play(listed):
                done += 1
                if isinstance(found, Point):
                    yield found
                else:
                    failures[one] = found

        def explore(values: Sequence[float]) -> int:
            before = len(points)
            for point in play([job(u, made, source, seeds) for u in values]):
                points[point.utilization] = point
            return len(points) - before

        try:
            explore(grid)
            while wanted:
                between = _bracket(points, wanted)
                if between is not None:
                    low, high = between
                    count = max(1, jobs)
                    values = [
                        round(low + (high - low) * (k + 1) / (count + 1), 4) for k in range(count)
                    ]
                    values = [u for u in values if u not in points]
                    needed += len(values)
                    if not values or not explore(values):
                        break
                    continue
                best = _most(list(points.values()), wanted)
                refuted = sum(point.confirmation is not None for point in points.values())
                if best is None or best.confirmation is not None or refuted == _CONFIRM_MOST:
                    break
                needed += 1
                again, longer = _otherwise(source, made, best)
                confirming = list(play([job(best.utilization, longer, again, 1)]))
                if not confirming:
                    break
                how = _how(base, source, made, best)
                confirming[0] = replace(confirming[0], played_as=how)
                points[best.utilization] = replace(best, confirmation=confirming[0])
        except KeyboardInterrupt:
            finished = False
    if not points and finished:
        # The drive that is the easiest to make.
        raise ConfigError(
            failures[min(failures)], "none of the utilizations asked for can be played"
        )
    ordered = [points[u] for u in sorted(points)]
    confirmed = [point for point in ordered if point.confirmation is not None]
    return Advice(
        ordered,
        wanted,
        knee_of([points[u] for u in grid if u in points]),
        _most(confirmed, wanted),
        failures,
        finished,
    )


def _rate_of(targets: Sequence[Target], given: float | None, ssd: Ssd) -> float | None:
    """The rate of host writes: as given, or as a target of life says it; refuse two that differ."""
    said = {each.write_rate for each in targets if each.write_rate is not None}
    if not said:
        return given
    rates = {text: lifetime.parse_rate(text, _core.config_check(ssd.toml)[0]) for text in said}
    if len({*rates.values(), *([] if given is None else [given])}) > 1:
        raise ConfigError(
            f"target: found {' and '.join(sorted(said))}"
            f"{'' if given is None else ' beside another write rate'}, expected one rate of host writes",
            "",
            parameters=["target"],
        )
    return next(iter(rates.values()))


def _otherwise(
    source: workloads.Source, made: RunSettings, best: Point
) -> tuple[workloads.Source, RunSettings]:
    """What is played, and how, to confirm a point: another run than its own, and a longer one."""
    longer = replace(made, seed=made.seed + _CONFIRM_SEED)
    if isinstance(source, workloads.Trace):
        repeat = source.repeat if made.requests is not None else _CONFIRM_TIMES * source.repeat
        start = (source.start + _CONFIRM_START) % 1.0
        return replace(source, start=start, repeat=repeat), replace(longer, requests=made.requests)
    requests = _CONFIRM_TIMES * best.result.json["measured"]["requests"]
    return source, replace(longer, requests=requests)


def _how(base: Ssd, source: workloads.Source, made: RunSettings, best: Point) -> str:
    """How the confirming run differs; empty if the seed changes nothing, so that it is the same run."""
    if isinstance(source, workloads.Trace):
        return "with the trace begun in its middle"
    other = replace(made, seed=made.seed + _CONFIRM_SEED)
    at = base.with_({_KEY: best.utilization})

    def digest(ssd: Ssd, settings: RunSettings) -> str:
        run = Run.create(ssd.toml, ssd.preconditioning or "empty", source, settings).go()
        return str(run.json["digest"])

    # Requests that differ already tell them apart. If not, what fills the drive or chooses victims may.
    bare = replace(at, preconditioning="empty")
    short = [replace(each, requests=_DISTINGUISHING_REQUESTS, warmup=0) for each in (made, other)]
    if digest(bare, short[0]) == digest(bare, short[1]):
        whole = replace(other, requests=best.result.json["measured"]["requests"])
        if digest(at, whole) == best.result.json["digest"]:
            return ""
    return "under another seed"


def _most(points: Sequence[Point], targets: Sequence[Target]) -> Point | None:
    meeting = [point for point in points if targets and point.meets(targets)]
    return max(meeting, key=lambda point: point.utilization, default=None)


def _bracket(
    points: Mapping[float, Point], targets: Sequence[Target]
) -> tuple[float, float] | None:
    """The highest utilisation that meets the targets and the next one, while they are far apart."""
    # On what never cleans nothing depends on what is reserved, but it bounds where cleaning begins.
    keeping = [
        point
        for point in points.values()
        if point.meets(targets) or (point.verdict == "never-cleaned" and point.keeps(targets))
    ]
    best = max(keeping, key=lambda point: point.utilization, default=None)
    above = [] if best is None else [u for u in points if u > best.utilization]
    if best is None or not above or min(above) - best.utilization <= _TOLERANCE + 1e-9:
        return None
    return best.utilization, min(above)
