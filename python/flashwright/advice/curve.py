"""Advice on spare space: the points that were played, the targets they meet, and the knee of the curve."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from flashwright.advice.targets import METRICS, Target
from flashwright.endurance import lifetime
from flashwright.simulation.over_seeds import different
from flashwright.simulation.results import RunResult
from flashwright.simulation.warnings import Gathered, gathered
from flashwright.support.estimate import Estimate
from flashwright.support.tabular import Tabular, html_table, of_rows

__all__ = ["METRICS", "Advice", "Point", "Target", "knee", "knee_of"]


@dataclass(frozen=True, eq=False)
class Point:
    """What one utilisation costs.

    Attributes
    ----------
    utilization : float
        Logical over physical space, 0-1.
    results : tuple of RunResult
        The runs at this very utilisation, one a seed.
    lives_bytes : tuple of float
        Host bytes until the drive's end by :func:`flashwright.lifetime.forecast`, one a seed, from the state in which
        the run was measured; empty where erases are not limited or nothing is written.
    write_rate : float or None
        Bytes a second that the host writes, for the years.
    confirmation : Point or None
        The same utilisation played otherwise and measured longer, for a point that was to be recommended.
    played_as : str
        Of a confirmation: how it is another run than the one that it confirms, such as ``under another seed``; empty
        where nothing could be changed, so that it confirms nothing.
    """

    utilization: float
    results: tuple[RunResult, ...]
    lives_bytes: tuple[float, ...] = ()
    write_rate: float | None = None
    confirmation: Point | None = None
    played_as: str = ""

    @property
    def result(self) -> RunResult:
        """The run of the first seed."""
        return self.results[0]

    @property
    def reserved(self) -> float:
        """Share of the flash that the host may not use, 0-1."""
        return round(1 - self.utilization, 10)

    @property
    def life_bytes(self) -> float | None:
        """Host bytes until the drive's end; the mean over seeds."""
        return Estimate.of(self.lives_bytes).mean if self.lives_bytes else None

    @property
    def life_years(self) -> float | None:
        """Years until the drive's end at the write rate."""
        return self.value("life")

    @property
    def verdict(self) -> str:
        """The least of the verdicts of :class:`flashwright.simulation.parts.Settled` over the seeds."""
        verdicts = {result.settled.verdict for result in self.results}
        order = ("transient", "too-short", "never-cleaned", "settled", "none")
        return next(name for name in order if name in verdicts)

    @property
    def is_settled(self) -> bool:
        """Whether the figures are of a settled drive, or of one on which nothing is written."""
        return self.verdict in ("settled", "none")

    @property
    def is_confirmed(self) -> bool:
        """Whether a run that is another one met the targets again."""
        return self.confirmation is not None and bool(self.confirmation.played_as)

    @property
    def different(self) -> list[int]:
        """The places of the results that differ: one where the seed changes nothing."""
        return different([result.json["digest"] for result in self.results])

    def estimate(self, metric: str) -> Estimate | None:
        """A figure over the seeds, by the name that targets use; None where a seed lacks it. Equal runs count once."""
        values = [self._value(metric, at) for at in self.different]
        known = [value for value in values if value is not None]
        return Estimate.of(known) if len(known) == len(values) else None

    def value(self, metric: str) -> float | None:
        """A figure by the name that targets use; the mean over seeds."""
        found = self.estimate(metric)
        return None if found is None else found.mean

    def _value(self, metric: str, at: int) -> float | None:
        if metric == "life":
            if self.write_rate is None or at >= len(self.lives_bytes):
                return None
            return self.lives_bytes[at] / self.write_rate / lifetime.YEAR_S
        j = self.results[at].json
        times = j["response_time_ns"]["all"]
        found: dict[str, float | None] = {
            "write-amplification": j["write_amplification"],
            "write-amplification-bytes": j["write_amplification_bytes"],
            "mean": times["mean"],
            "p99": times["p99"],
            "p99.9": times["p99_9"],
            "iops": j["throughput"]["iops"],
            "throughput": j["throughput"]["bytes_per_s"],
        }
        return found[metric]

    def interval(self, metric: str) -> tuple[float, float] | None:
        """95 % interval of a figure over seeds; of one run alone, of write amplification from its parts."""
        found = self.estimate(metric)
        if found is not None and found.ci95 is not None:
            return found.mean - found.ci95, found.mean + found.ci95
        return self.result.settled.interval if metric == "write-amplification" else None

    def keeps(self, targets: Sequence[Target]) -> bool:
        """Whether the figures keep all limits, of a settled drive or not."""
        return all(target.allows(self.value(target.metric)) for target in targets)

    def meets(self, targets: Sequence[Target]) -> bool:
        """Whether all targets are met by a settled drive, and by the confirming run where there is one.

        A drive whose load needs no cleaning meets none: its figures don't depend on what is reserved.
        """
        return (
            self.is_settled
            and self.keeps(targets)
            and (self.confirmation is None or self.confirmation.meets(targets))
        )

    def figures(self) -> dict[str, Any]:
        """The documented figures."""
        interval = self.interval("write-amplification")
        return {
            "utilization": self.utilization,
            "reserved": self.reserved,
            "settled": self.verdict,
            "write_amplification": self.value("write-amplification"),
            "write_amplification_low": None if interval is None else interval[0],
            "write_amplification_high": None if interval is None else interval[1],
            "write_amplification_bytes": self.value("write-amplification-bytes"),
            "iops": self.value("iops"),
            "bytes_per_s": self.value("throughput"),
            "mean_ns": self.value("mean"),
            "p99_ns": self.value("p99"),
            "p99_9_ns": self.value("p99.9"),
            "life_bytes": self.life_bytes,
            "life_years": self.life_years,
            "seeds": len(self.results),
            "different": len(self.different),
            "confirmed_by": self.confirmation.played_as or None if self.confirmation else None,
            "requests": self.result.json["measured"]["requests"],
            "ended": self.result.json["ended"],
            "digest": self.result.json["digest"],
        }


@dataclass(frozen=True, eq=False, repr=False)
class Advice(Tabular):
    """What utilisation costs, and what to choose.

    Attributes
    ----------
    points : list of Point
        By rising utilisation, those of the search included.
    targets : tuple of Target
        What was asked for.
    knee : Point or None
        Where write amplification turns steep, by :func:`knee`.
    recommended : Point or None
        The most utilisation, so the least reservation, that meets all targets in a settled drive, and once more in
        another run: under another seed, a trace begun elsewhere. Its ``is_confirmed`` is False where no other run could
        be made. None if none does or there are none.
    failures : mapping
        Why there is no run, by utilisation.
    finished : bool
        Whether all that was asked for was played.
    """

    points: list[Point]
    targets: tuple[Target, ...]
    knee: Point | None
    recommended: Point | None
    failures: Mapping[float, str] = field(default_factory=dict)
    finished: bool = True

    @property
    def nearest(self) -> list[tuple[Target, float | None, float | None]]:
        """How near the best point comes to each target that no point meets: the target, its figure, its utilisation.

        Where each target is met somewhere, but not all at once, those missed by the point that misses the fewest.
        """
        if self.recommended is not None or not self.points:
            return []
        lost = [t for t in self.targets if not any(p.meets([t]) for p in self.points)]
        if lost:
            return [(target, *self._best(target)) for target in lost]
        point = min(self.points, key=lambda p: sum(not p.meets([t]) for t in self.targets))
        return [
            (t, point.value(t.metric), point.utilization)
            for t in self.targets
            if not point.meets([t])
        ]

    @property
    def undecided(self) -> list[Point]:
        """Points with less reserve than is recommended whose figures keep all targets, but had not settled.

        They may do as well; more capacities of preconditioning (``workload:capacities=N``) may decide.
        """
        least = 0.0 if self.recommended is None else self.recommended.utilization
        return [
            point
            for point in self.points
            if point.utilization > least
            and point.verdict in ("transient", "too-short")
            and self.targets
            and point.keeps(self.targets)
        ]

    @property
    def uncleaned(self) -> list[Point]:
        """Points on which cleaning moved no page, so that their figures don't depend on what is reserved."""
        return [point for point in self.points if point.verdict == "never-cleaned"]

    @property
    def warnings(self) -> list[Gathered]:
        """What the runs warn of, each thing once; a run is called by its utilization."""
        return gathered(
            (f"utilization {point.utilization:g}", result.json["warnings"])
            for point in self.points
            for result in point.results
        )

    def to_arrow(self) -> pa.Table:
        """A row for each point: ``utilization``, ``reserved``, its figures, and whether it meets all targets.

        Returns
        -------
        pyarrow.Table
            Times in nanoseconds, ``life_bytes`` that the host writes until the drive's end, ``life_years``.
        """
        meets = (
            {"meets": point.meets(self.targets)} if self.targets else {} for point in self.points
        )
        return of_rows(point.figures() | met for point, met in zip(self.points, meets, strict=True))

    def __repr__(self) -> str:
        parts = [f"{len(self.points)} points"]
        for name, point in (("knee", self.knee), ("recommended", self.recommended)):
            if point is not None:
                parts.append(f"{name} at {point.reserved:.1%} reserved")
        if self.recommended is not None and not self.recommended.is_confirmed:
            parts.append("not confirmed")
        if self.targets and self.recommended is None:
            parts.append("no point meets all targets")
        return f"Advice({', '.join(parts)})"

    def _repr_html_(self) -> str:
        from flashwright.report import text

        columns: dict[str, Callable[[float], str]] = {
            "write-amplification": text.significant,
            "iops": text.count,
            "mean": text.time_ns,
            "p99": text.time_ns,
            "life": text.significant,
        }
        used = [name for name in columns if any(p.value(name) is not None for p in self.points)]
        rows = []
        for point in self.points:
            values = [(name, point.value(name)) for name in used]
            remarks = [
                remark
                for remark, is_it in (
                    ("knee", point is self.knee),
                    ("recommended", point is self.recommended),
                )
                if is_it
            ]
            shown = (
                text.ABSENT if value is None else columns[name](value) for name, value in values
            )
            rows.append([text.share(point.reserved), *shown, ", ".join(remarks)])
        names = {"iops": "IOPS", "life": "years of life"}
        heads = [names.get(name, name.replace("-", " ")) for name in used]
        return html_table(["reserved", *heads, ""], rows, note=self._missed())

    def _missed(self) -> str:
        """What no point reaches, in a line."""
        if not self.nearest:
            return ""
        return "no point meets all targets; missed: " + ", ".join(
            target.text for target, _, _ in self.nearest
        )

    def _best(self, target: Target) -> tuple[float | None, float | None]:
        settled = [point for point in self.points if point.is_settled]
        known = [
            (value, point.utilization)
            for point in settled or self.points
            if (value := point.value(target.metric)) is not None
        ]
        if not known:
            return None, None
        return min(known) if target.less else max(known, key=lambda pair: (pair[0], -pair[1]))


def knee(x: Sequence[float], y: Sequence[float]) -> int | None:
    """Where a rising, convex curve turns steep.

    Both axes are scaled to 0-1 over the points; the knee is the point farthest below the straight line from the
    first point to the last, where ``x - y`` is largest. That is the rule of Kneedle for such curves, without its
    smoothing. There is none where the curve rises by less than a twentieth of its least value, or nowhere lies
    a twentieth below the line.

    Parameters
    ----------
    x, y : sequence of float, same length
        The points, by rising `x`.

    Returns
    -------
    int or None
        The number of the point.

    References
    ----------
    Satopaa, Albrecht, Irwin, Raghavan: Finding a "Kneedle" in a Haystack, ICDCS Workshops 2011, section III.

    Examples
    --------
    >>> knee([0.5, 0.6, 0.7, 0.8, 0.9], [1.24, 1.45, 1.84, 2.62, 4.9])
    3
    >>> knee([0.5, 0.7, 0.9], [1.0, 1.01, 1.02]) is None
    True
    """
    if len(x) < 3:
        return None
    xs, ys = (np.asarray(values, dtype=np.float64) for values in (x, y))
    low, high = float(ys.min()), float(ys.max())
    if high - low < 0.05 * low:
        return None
    below = (xs - xs[0]) / (xs[-1] - xs[0]) - (ys - low) / (high - low)
    at = int(np.argmax(below))
    return at if below[at] >= 0.05 else None


def knee_of(points: Sequence[Point]) -> Point | None:
    """The point where write amplification turns steep, by :func:`knee`; None where it does not.

    Parameters
    ----------
    points : sequence of Point
        By rising utilisation; those that wrote nothing play no part.
    """
    known = [
        (point, value)
        for point in points
        if (value := point.value("write-amplification")) is not None
    ]
    at = knee([point.utilization for point, _ in known], [value for _, value in known])
    return None if at is None else known[at][0]
