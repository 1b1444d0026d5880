"""Runs that differ in their seed only: what their figures are on average, and how sure that is.

A seed says something only where it changes the run. Runs with equal digests are one run that was played several times:
it counts once, and the interval is then that of its parts, or there is none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from flashwright.support.estimate import Estimate, half_width_of_parts

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "FIGURES",
    "Group",
    "Seeded",
    "different",
    "estimate_of",
    "groups_of",
    "interval_of_run",
]


class Seeded(Protocol):
    """A run, as intervals need it: its figures, what was varied, and its time series."""

    @property
    def json(self) -> Mapping[str, Any]:
        """The documented figures."""
        ...

    @property
    def varied(self) -> Mapping[str, object]:
        """What was set for it, by key."""
        ...

    @property
    def windows(self) -> pa.Table:
        """The time series."""
        ...


FIGURES: dict[str, Callable[[Mapping[str, Any]], float | None]] = {
    "write_amplification": lambda j: j["write_amplification"],
    "write_amplification_bytes": lambda j: j["write_amplification_bytes"],
    "throughput.iops": lambda j: j["throughput"]["iops"],
    "response_time_ns.all.mean": lambda j: j["response_time_ns"]["all"]["mean"],
    "response_time_ns.all.p99": lambda j: j["response_time_ns"]["all"]["p99"],
    "response_time_ns.all.p99_9": lambda j: j["response_time_ns"]["all"]["p99_9"],
    "flash.erases.total": lambda j: j["flash"]["erases"]["total"],
}
"""What is summed up over seeds."""

# Percentiles come from a histogram with cells of three significant digits: equal ones may differ by half a cell.
_RESOLUTION = 0.000_5


def estimate_of(name: str, values: Sequence[float]) -> Estimate:
    """A figure over seeds; of a percentile the interval is at least as wide as it is exact.

    Examples
    --------
    >>> estimate_of("response_time_ns.all.p99", [2_000_000.0, 2_000_000.0]).ci95
    1000.0
    """
    found = Estimate.of(values)
    if found.ci95 is None or ".p9" not in name:
        return found
    return Estimate(found.mean, max(found.ci95, _RESOLUTION * found.mean), found.count)


@dataclass(frozen=True)
class Group:
    """One combination over its seeds.

    Attributes
    ----------
    varied : mapping
        What is set beside the seed.
    runs : tuple
        A run a seed.
    different : int
        How many of these differ: 1 where the seed changes nothing.
    figures : mapping
        An :class:`~flashwright.support.estimate.Estimate` by the name of the figure; those that a run lacks are left
        out.
    interval : {"seeds", "parts of the run"} or None
        What the intervals are taken over; None where there is none.
    """

    varied: Mapping[str, object]
    runs: tuple[Any, ...]
    different: int
    figures: Mapping[str, Estimate]
    interval: str | None

    @property
    def label(self) -> str:
        """What is set, as text."""
        return ", ".join(f"{key}={value}" for key, value in self.varied.items())

    @property
    def settled(self) -> int:
        """Runs on a drive that had settled."""
        verdicts = ((run.json["settled"] or {}).get("verdict") for run in self.runs)
        return sum(verdict == "settled" for verdict in verdicts)


def different(digests: Sequence[str | None]) -> list[int]:
    """The places of the first run of each digest; runs without one all differ.

    Examples
    --------
    >>> different(["a", "b", "a", None, None])
    [0, 1, 3, 4]
    """
    return [at for at, digest in enumerate(digests) if digest is None or digest not in digests[:at]]


def groups_of(runs: Sequence[Seeded]) -> list[Group]:
    """The combinations that were played with seeds; runs that differ in more than that are apart.

    Parameters
    ----------
    runs : sequence
        Results of a comparison, or others.
    """
    groups: dict[str, list[Seeded]] = {}
    for run in runs:
        groups.setdefault(json.dumps(_beside_seed(run), default=str), []).append(run)
    return [_group(found) for found in groups.values()]


_DECIDES = ("config", "workload", "pace")
_OF_POLICY = ("key", "name", "file", "source_sha256", "settings")


def _beside_seed(run: Seeded) -> list[object]:
    """What a run depends on, its seed and its length apart, as far as it tells."""
    varied = {key: value for key, value in run.varied.items() if key != "seed"}
    precondition = (run.json.get("precondition") or {}).get("spec")
    policies = [
        [policy.get(name) for name in _OF_POLICY] for policy in run.json.get("policies") or ()
    ]
    return [varied, precondition, policies, *(run.json.get(name) for name in _DECIDES)]


def _group(runs: Sequence[Seeded]) -> Group:
    unlike = [runs[at] for at in different([run.json.get("digest") for run in runs])]
    alone = len(unlike) == 1 and len(runs) > 1
    parts = interval_of_run(runs[0]) if alone else {}
    figures = {}
    for name, of in FIGURES.items():
        values = [of(run.json) for run in unlike]
        known = [value for value in values if value is not None]
        if not known or len(known) < len(values):
            continue
        found = estimate_of(name, known)
        figures[name] = Estimate(found.mean, parts.get(name), 1) if alone else found
    interval = "seeds" if len(unlike) > 1 else "parts of the run" if parts else None
    varied = {key: value for key, value in runs[0].varied.items() if key != "seed"}
    return Group(varied, tuple(runs), len(unlike), figures, interval)


def interval_of_run(run: Seeded) -> dict[str, float]:
    """Half widths of the 95 % intervals that the parts of one run give: how far another stretch of its kind may lie.

    A block bootstrap over the windows of the time series (``support.estimate.half_width_of_parts``); of write
    amplification no narrower than the interval of the verdict on settling, which knows the passes before too. There is
    none of percentiles, which windows do not add up to.

    Parameters
    ----------
    run : RunResult
        With a time series, but for write amplification.

    Returns
    -------
    dict
        By the name of the figure; those without an interval are left out.
    """
    import numpy as np

    found: dict[str, float | None] = {}
    settled = run.json["settled"]
    ends = None if settled is None else settled["interval"]
    windows = run.windows
    if windows.num_rows:
        columns = {
            name: np.asarray(windows[name].to_numpy(zero_copy_only=False), dtype=np.float64)
            for name in ("requests", "pages_written", "programs", "iops", "response_mean_ns")
        }
        requests = columns["requests"]
        with np.errstate(divide="ignore", invalid="ignore"):
            seconds = requests / columns["iops"]
        found = {
            "write_amplification": half_width_of_parts(
                columns["programs"], columns["pages_written"]
            ),
            "throughput.iops": half_width_of_parts(requests, seconds),
            "response_time_ns.all.mean": half_width_of_parts(
                requests * columns["response_mean_ns"], requests
            ),
        }
    if ends is not None:
        within = found.get("write_amplification") or 0.0
        found["write_amplification"] = max(within, (ends[1] - ends[0]) / 2)
    return {name: half for name, half in found.items() if half is not None}
