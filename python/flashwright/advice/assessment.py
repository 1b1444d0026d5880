"""A drive in service, assessed: its load as recorded, what it counts itself, and runs of its model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from flashwright.advice.curve import Advice, Point, knee_of
from flashwright.advice.lines import HostAdvice, Line
from flashwright.endurance.amounts import YEAR_S
from flashwright.endurance.evenwear import EvenWear
from flashwright.endurance.smart import Interval, Smart, figures
from flashwright.simulation.results import RunResult
from flashwright.simulation.ssd import Ssd
from flashwright.simulation.variant import Variant
from flashwright.simulation.warnings import Gathered, gathered
from flashwright.support.core import _core
from flashwright.traces import workloads

__all__ = [
    "HALF_PACE",
    "PRESENT",
    "SETTINGS",
    "Assessment",
    "Counters",
    "Gain",
    "Load",
    "Rate",
    "Tail",
    "Trial",
    "is_fitted",
]

PRESENT = "as it is"
"""The name of the run of the drive as described."""

HALF_PACE = "half the pace"
"""The name of the run in which requests arrive half as fast."""

SETTINGS = ("linux scheduler", "queue depth", "read_ahead_kb", "discard", "alignment")
"""Topics of advice for the host that an assessment shows; all of it is in ``hosted``."""

_PAGE_BYTES = 4096
"""Pages in which :func:`flashwright.tracefiles.info` counts what is touched."""
_DAY_NS = 86400e9
# Figures a day are far from what was recorded below this. Chosen: an hour of each day.
_LONG_NS = 3600e9
# The share by which a run has to change the tail of reads to count. Chosen: above what chance does.
_LIMITS_SHARE = 0.1
# Options of a run that an assessment does not take.
_FOREIGN = ("--depth", "--time-scale", "--warmup")
# What a mend says to those who have not done it.
_TO_FIT = "--addresses scale, or "
# How far the capacities of model and drive may lie apart, as a share, before figures are said to be the model's.
_EQUAL_WITHIN = 0.02


def is_fitted(source: workloads.Source | None) -> bool:
    """Whether the addresses of a load are fitted to the drive, so that nothing lies beyond it.

    Examples
    --------
    >>> is_fitted(workloads.trace("bundled:sqlite", addresses="scale")), is_fitted(workloads.trace("bundled:sqlite"))
    (True, False)
    """
    return isinstance(source, workloads.Trace) and source.addresses not in (None, "wrap", "reject")


@dataclass(frozen=True)
class Load:
    """A recorded load.

    Attributes
    ----------
    info : mapping
        What :func:`flashwright.tracefiles.info` says.
    unaligned : mapping of str to float
        Shares of "reads" and of "writes", 0-1, that do not begin and end at the drive's pages; a kind that the load
        lacks is left out, and both are where the pages are not known.
    """

    info: Mapping[str, Any]
    unaligned: Mapping[str, float] = field(default_factory=dict)

    @property
    def written_a_day(self) -> float | None:
        """Bytes that the host writes a day at the recorded pace; None without arrival times."""
        return self._a_day("written_bytes")

    @property
    def read_a_day(self) -> float | None:
        """The same of reads."""
        return self._a_day("read_bytes")

    @property
    def touched_bytes(self) -> int:
        """Bytes of the pages that are touched."""
        return int(self.info["pages"]) * _PAGE_BYTES

    @property
    def is_brief(self) -> bool:
        """Whether a day is far more than what was recorded."""
        return bool(0 < self.info["span_ns"] < _LONG_NS)

    def _a_day(self, what: str) -> float | None:
        span = self.info["span_ns"]
        return self.info[what] / span * _DAY_NS if span else None


class Rate(NamedTuple):
    """What the host writes, bytes a second, and where that comes from."""

    bytes_per_s: float
    whence: str


@dataclass(frozen=True)
class Counters:
    """What a drive counts itself.

    Attributes
    ----------
    readings : tuple of Smart
        From the oldest to the newest, one at least.
    between : Interval or None
        What it did between the first and the last, where there are two.
    """

    readings: tuple[Smart, ...]
    between: Interval | None

    @classmethod
    def of(cls, readings: Sequence[Smart]) -> Counters:
        """Of the readings of one drive; refuses those that contradict each other.

        Raises
        ------
        SmartError
            If a counter is lower in a newer reading.
        """
        both = len(readings) > 1
        return cls(tuple(readings), Interval.between(readings[0], readings[-1]) if both else None)

    @property
    def now(self) -> Smart:
        """The newest reading."""
        return self.readings[-1]

    @property
    def write_amplification(self) -> tuple[float, str] | None:
        """Bytes to the flash for each from the host, and over which time."""
        if self.between is not None and self.between.write_amplification is not None:
            return self.between.write_amplification, "between the readings"
        if self.now.write_amplification is not None:
            return self.now.write_amplification, "since the drive was new"
        return None

    @property
    def years_left(self) -> tuple[float | None, tuple[float, float | None], str] | None:
        """Years until the rated life is used up, their range, and at the wear of which time."""
        between, now = self.between, self.now
        if between is not None and between.years_left_range is not None:
            return between.years_left, between.years_left_range, "between the readings"
        if now.years_left_range is not None:
            return now.years_left, now.years_left_range, "since the drive was new"
        return None

    @property
    def rate(self) -> Rate | None:
        """What the host writes."""
        between = self.between
        if between is not None and between.bytes_written:
            hours = between.hours if between.days is None else between.days * 24
            if hours:
                clock = ", under power" if between.days is None else ""
                return Rate(between.bytes_written / (hours * 3600), f"between the readings{clock}")
        if self.now.bytes_per_s is not None:
            return Rate(self.now.bytes_per_s, "since the drive was new, under power")
        return None


@dataclass(frozen=True)
class Trial:
    """A run of the model that an assessment asks for.

    Attributes
    ----------
    name : str
        What tables and warnings call it.
    about : {"present", "reserve", "tail", "setting"}
        What it tells: the drive as it is, more reserve, what limits reads, the gain of a setting.
    variant : Variant
        The run.
    topic : str
        Of a setting: the topic of its advice.
    is_advised : bool
        Of a setting: whether the run has what is advised, rather than what is advised against.
    """

    name: str
    about: Literal["present", "reserve", "tail", "setting"]
    variant: Variant
    topic: str = ""
    is_advised: bool = True


class Tail(NamedTuple):
    """Percentiles of the response time of reads in a run, nanoseconds.

    Attributes
    ----------
    p50, p99, p99_9 : int
        The percentiles.
    low, high : int
        95 % interval of `p99_9` by the order of the response times, as if requests were independent. The distribution
        of a run has some hundreds of points, so that it may be a little wider.
    p99_high : int
        The upper end of that of `p99`.
    """

    p50: int
    p99: int
    p99_9: int
    low: int
    high: int
    p99_high: int

    @classmethod
    def of(cls, result: RunResult | None) -> Tail | None:
        """Of a run; None without one, without reads, or without times."""
        if result is None:
            return None
        found = result.json["response_time_ns"]["read"]
        if found["p50"] is None or found["p99"] is None or found["p99_9"] is None:
            return None
        times, shares = result.response_distribution["read"]

        def around(share: float, value: int) -> tuple[int, int]:
            width = 1.96 * math.sqrt(share * (1 - share) / found["count"])
            below = int(np.searchsorted(shares, share - width, side="right")) - 1
            above = int(np.searchsorted(shares, min(share + width, 1.0)))
            low, high = int(times[max(below, 0)]), int(times[min(above, len(times) - 1)])
            return min(low, value), max(high, value)

        p99, p99_9 = found["p99"], found["p99_9"]
        return cls(found["p50"], p99, p99_9, *around(0.999, p99_9), around(0.99, p99)[1])


class Gain(NamedTuple):
    """What a setting changes on the model.

    Attributes
    ----------
    trial : Trial
        The run beside that of the drive as it is.
    without, advised : RunResult
        The run without what is advised, and with it.
    """

    trial: Trial
    without: RunResult
    advised: RunResult

    @property
    def tails(self) -> tuple[Tail | None, Tail | None]:
        """The reads without what is advised, and with it."""
        return Tail.of(self.without), Tail.of(self.advised)


@dataclass(frozen=True, eq=False)
class Assessment:
    """What a drive does under a load, and what follows.

    Attributes
    ----------
    ssd : Ssd or None
        The model; None where there is none, so that counters alone answer.
    source : Workload, Trace or None
        What was played.
    load : Load or None
        The load as recorded; None without a trace.
    counters : Counters or None
        What the drive counts.
    capacity_bytes : float or None
        Of the drive in service.
    capacity_from : str
        Who says so.
    rating_bytes : float or None
        Host bytes that the drive is rated to take.
    cycles : int or None
        Erases that a block takes.
    hosted : HostAdvice or None
        What follows for the host.
    trials : tuple of Trial
        The runs that were asked for.
    results : mapping of str to RunResult
        By the name of the trial, those that were played to their end.
    failures : mapping of str to str
        Why there is no run, by the name of the trial.
    cautions : tuple of Gathered
        What is to be kept in mind beside what the runs warn of.
    seconds : float
        The limit of time for the runs.
    out_of_time, interrupted : bool
        Whether that, or Ctrl-C, cut runs short.
    """

    ssd: Ssd | None
    source: workloads.Source | None = None
    load: Load | None = None
    counters: Counters | None = None
    capacity_bytes: float | None = None
    capacity_from: str = ""
    rating_bytes: float | None = None
    cycles: int | None = None
    hosted: HostAdvice | None = None
    trials: tuple[Trial, ...] = ()
    results: Mapping[str, RunResult] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    cautions: tuple[Gathered, ...] = ()
    seconds: float = 0.0
    out_of_time: bool = False
    interrupted: bool = False

    @property
    def present(self) -> RunResult | None:
        """The run of the drive as it is."""
        return self.results.get(PRESENT)

    @property
    def points(self) -> list[tuple[str, Point]]:
        """The drive as it is and with more reserve, by rising reserve, each with its name."""
        return [
            (trial.name, _point(self.results[trial.name]))
            for trial in self.trials
            if trial.about in ("present", "reserve") and trial.name in self.results
        ]

    @property
    def spare(self) -> Advice | None:
        """The same as advice on spare space knows it; None without a run."""
        points = sorted((point for _, point in self.points), key=lambda each: each.utilization)
        return Advice(points, (), knee_of(points), None) if points else None

    @property
    def rate(self) -> Rate | None:
        """What the host writes: as the drive counts it, else as recorded."""
        if self.counters is not None and self.counters.rate is not None:
            return self.counters.rate
        if self.load is not None and self.load.written_a_day:
            return Rate(self.load.written_a_day / 86400, "at the recorded pace")
        return None

    @property
    def over_counted(self) -> float | None:
        """Write amplification of the model as it is over that by counters, both by bytes; None without either."""
        counted = None if self.counters is None else self.counters.write_amplification
        model = None if self.present is None else self.present.write_amplification_bytes
        return None if counted is None or model is None else model / counted[0]

    @property
    def years_to_rating(self) -> float | None:
        """Years until as much is written as the drive is rated for: of a new drive, where it counts nothing itself."""
        if self.rating_bytes is None:
            return None
        rate, left = self.rate, self.rating_bytes
        if self.counters is not None and self.counters.now.bytes_written is not None:
            left = max(0.0, left - self.counters.now.bytes_written)
        return None if rate is None else left / rate.bytes_per_s / YEAR_S

    @property
    def even(self) -> EvenWear | None:
        """What the model takes if all blocks wear evenly; None without cycles, a run, or writes."""
        if self.cycles is None or self.present is None:
            return None
        return EvenWear.of(self.present, self.cycles)

    @property
    def model_years(self) -> tuple[float, float, float] | None:
        """Years of a new drive by even wear, and their least and most, scaled to the capacity of the drive."""
        even, rate, capacity = self.even, self.rate, self.capacity_bytes
        if even is None or rate is None or capacity is None:
            return None
        found = [
            end.drive_writes * capacity / rate.bytes_per_s / YEAR_S
            for end in (even.end, even.least, even.most)
        ]
        return found[0], found[1], found[2]

    @property
    def tail(self) -> Tail | None:
        """Response times of reads of the drive as it is."""
        return Tail.of(self.present)

    @property
    def what_ifs(self) -> list[tuple[str, Tail]]:
        """The same of runs in which something that may limit reads is taken away."""
        return [
            (trial.name, tail)
            for trial in self.trials
            if trial.about == "tail" and (tail := Tail.of(self.results.get(trial.name))) is not None
        ]

    @property
    def limited_by(self) -> str | None:
        """The name of the what-if that shortens the tail most; None where none does by a tenth."""
        tail, found = self.tail, self.what_ifs
        if tail is None or not found:
            return None
        name, best = min(found, key=lambda each: each[1].p99_9)
        # By a tenth, and by more than chance.
        shortens = best.p99_9 < min((1 - _LIMITS_SHARE) * tail.p99_9, tail.low)
        return name if shortens else None

    @property
    def falls_behind(self) -> bool:
        """Whether requests arrive faster than the model completes them."""
        run = self.present
        return run is not None and any(each.code == "falls-behind" for each in run.warnings)

    @property
    def advised(self) -> list[Line]:
        """Lines of advice for the host, of the topics that an assessment shows."""
        lines = () if self.hosted is None else self.hosted.lines
        return [line for topic in SETTINGS for line in lines if line.topic == topic]

    def gain(self, topic: str) -> Gain | None:
        """What the advice on a topic changes on the model; None where it was not played.

        Parameters
        ----------
        topic : str
            One of :data:`SETTINGS`.
        """
        for trial in self.trials:
            other = self.results.get(trial.name)
            if trial.topic == topic and other is not None and self.present is not None:
                pair = (self.present, other) if trial.is_advised else (other, self.present)
                return Gain(trial, *pair)
        return None

    def cost(self, topic: str) -> tuple[str, float] | None:
        """The percentile of reads that the advice on a topic makes longer on the model, and by which share.

        The one that it makes longer most, of p99 and p99.9. None below a tenth, within chance, or where it was not
        played.

        Parameters
        ----------
        topic : str
            One of :data:`SETTINGS`.
        """
        gain = self.gain(topic)
        before, after = (None, None) if gain is None else gain.tails
        if before is None or after is None:
            return None
        longer = [
            (name, new / old - 1)
            for name, old, new, high in (
                ("p99", before.p99, after.p99, before.p99_high),
                ("p99.9", before.p99_9, after.p99_9, before.high),
            )
            if old and new > max((1 + _LIMITS_SHARE) * old, high)
        ]
        return max(longer, key=lambda each: each[1], default=None)

    @property
    def left_out(self) -> list[str]:
        """Trials that were neither played to their end nor failed: the time or Ctrl-C cut them short."""
        return [
            trial.name
            for trial in self.trials
            if trial.name not in self.results and trial.name not in self.failures
        ]

    @property
    def model_bytes(self) -> int | None:
        """The capacity of the model; None without one."""
        return None if self.ssd is None else _core.config_check(self.ssd.toml)[0]

    @property
    def is_other_size(self) -> bool:
        """Whether the drive in service and its model differ in capacity."""
        model = self.model_bytes
        if model is None or self.capacity_bytes is None:
            return False
        return abs(self.capacity_bytes / model - 1) > _EQUAL_WITHIN

    @property
    def warnings(self) -> list[Gathered]:
        """What speaks against figures: what runs warn of, each thing once, and what there is beside that."""
        runs = [(name, run.json["warnings"]) for name, run in self.results.items()]
        found = gathered(runs)
        no_mends = [*_FOREIGN]
        if self.load is not None and self.present is not None:
            measured = self.present.json["measured"]["requests"] or 0
            if measured >= self.load.info["requests"]:
                # A recording that was played whole has no more of them.
                no_mends.append("--requests")
        return [
            *self.cautions,
            *(_to_the_point(each, is_fitted(self.source), no_mends) for each in found),
        ]

    def document(self) -> dict[str, Any]:
        """The documented figures."""
        rate, wear, tail, years, even = (
            self.rate,
            self.counters,
            self.tail,
            self.model_years,
            self.even,
        )
        counted = None if wear is None else wear.write_amplification
        return {
            "drive": None if self.ssd is None else self.ssd.name,
            "config": None if self.ssd is None else self.ssd.config,
            "workload": None if self.present is None else self.present.json["workload"],
            "capacity_bytes": self.capacity_bytes,
            "capacity_from": self.capacity_from or None,
            "load": None if self.load is None else _load_figures(self.load),
            "smart": None if wear is None else figures(wear.readings, self.rating_bytes),
            "write_amplification": {
                "counters": None if counted is None else {"value": counted[0], "over": counted[1]},
                "model": [{"name": name, **point.figures()} for name, point in self.points],
            },
            "life": {
                "write_rate_bytes_per_s": None if rate is None else rate.bytes_per_s,
                "write_rate_from": None if rate is None else rate.whence,
                "counters": _counted_years(wear),
                "rating_bytes": self.rating_bytes,
                "rating_years": self.years_to_rating,
                "pe_cycles_max": self.cycles,
                "model": None
                if even is None
                else {
                    "method": "even-wear",
                    "settled": even.settled,
                    "drive_writes": even.end.drive_writes,
                    "years": None if years is None else years[0],
                    "years_min": None if years is None else years[1],
                    "years_max": None if years is None else years[2],
                },
            },
            "read_tails": None
            if tail is None
            else {
                "p50_ns": tail.p50,
                "p99_ns": tail.p99,
                "p99_9_ns": tail.p99_9,
                "p99_9_ns_low": tail.low,
                "p99_9_ns_high": tail.high,
                "falls_behind": self.falls_behind,
                "what_ifs": [
                    {"name": name, "p99_ns": each.p99, "p99_9_ns": each.p99_9}
                    for name, each in self.what_ifs
                ],
                "limited_by": self.limited_by,
            },
            "settings": [self._setting(line) for line in self.advised],
            "host_advice": None if self.hosted is None else self.hosted.document(),
            "runs": {
                trial.name: {
                    "set": {key: str(value) for key, value in trial.variant.varied.items()},
                    "settled": run.json["settled"],
                    "ended": run.json["ended"],
                    "digest": run.json["digest"],
                }
                for trial in self.trials
                if (run := self.results.get(trial.name)) is not None
            },
            "failures": dict(self.failures),
            "left_out": self.left_out,
        }

    def _setting(self, line: Line) -> dict[str, Any]:
        gain = self.gain(line.topic)
        before, after = (None, None) if gain is None else gain.tails
        return {
            "topic": line.topic,
            "advice": line.text,
            "given": line.given,
            "source": line.source,
            "gain": None
            if gain is None
            else {
                "run": gain.trial.name,
                "write_amplification_without": gain.without.write_amplification,
                "write_amplification": gain.advised.write_amplification,
                "read_p99_ns_without": None if before is None else before.p99,
                "read_p99_ns": None if after is None else after.p99,
                "read_p99_9_ns_without": None if before is None else before.p99_9,
                "read_p99_9_ns": None if after is None else after.p99_9,
            },
        }


def _to_the_point(warned: Gathered, has_fitted: bool, no_mends: Sequence[str]) -> Gathered:
    """The same without a mend that is done already, or not for an assessment, whose pace is that of the load."""
    mend = warned.mend or ""
    if any(option in mend for option in no_mends):
        return replace(warned, mend=None)
    return replace(warned, mend=mend.replace(_TO_FIT, "") or None) if has_fitted else warned


def _point(result: RunResult) -> Point:
    drive = result.json["drive"]
    assert drive is not None, "of a model"
    return Point(drive["logical_pages"] / drive["physical_pages"], (result,))


def _load_figures(load: Load) -> dict[str, Any]:
    return {
        **load.info,
        "written_bytes_per_day": load.written_a_day,
        "read_bytes_per_day": load.read_a_day,
        "touched_bytes": load.touched_bytes,
        "unaligned": {kind: load.unaligned.get(kind) for kind in ("reads", "writes")},
    }


def _counted_years(counters: Counters | None) -> dict[str, Any] | None:
    if counters is None or counters.years_left is None:
        return None
    years, (low, high), over = counters.years_left
    return {"years_left": years, "years_left_min": low, "years_left_max": high, "over": over}
