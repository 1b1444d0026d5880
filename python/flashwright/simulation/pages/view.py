"""What a report reads of a run, and the few ways in which it reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashwright.simulation.parts import Snapshots

Floats = npt.NDArray[np.float64]


class RunView(Protocol):
    """A finished run, as a report needs it.

    Attributes
    ----------
    json
        The documented JSON of the run.
    label
        Its name among the runs shown, such as ``"gc.victim = greedy"``; alone, the workload.
    windows
        The time series: a row a window, null where a figure does not apply. May have no rows.
    erases_per_block, valid_per_block
        Erases so far, and valid pages at the end, of every block in order of its id.
    response_distribution
        For ``"all"``, ``"read"`` and ``"write"``: times in nanoseconds, rising, and for each the
        share (0-1) of requests that took no longer. Empty arrays where nothing was timed.
    violations
        What the verify mode found, a line each.
    varied
        What a comparison set for this run, by the key that it varied; empty for a run alone.
    closeup
        Consecutive requests, a row each with ``request``, ``queue_ns``, ``service_ns``, ``kind``,
        ``pages``, and a count in each further column; None where nobody asked for them.
    snapshots
        All blocks at moments of the run; None where nobody asked for them.
    """

    @property
    def json(self) -> Mapping[str, Any]: ...
    @property
    def label(self) -> str: ...
    @property
    def windows(self) -> pa.Table: ...
    @property
    def erases_per_block(self) -> npt.NDArray[np.uint32]: ...
    @property
    def valid_per_block(self) -> npt.NDArray[np.uint32]: ...
    @property
    def response_distribution(
        self,
    ) -> Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]]: ...
    @property
    def violations(self) -> Sequence[str]: ...
    @property
    def varied(self) -> Mapping[str, object]: ...
    @property
    def closeup(self) -> pa.Table | None: ...
    @property
    def snapshots(self) -> Snapshots | None: ...


def dig(json: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path, or None where any step of it is missing or null. A number is a
    place in a list.

    Examples
    --------
    >>> dig({"gc": {"collections": 3}}, "gc.collections")
    3
    >>> dig({"gc": None}, "gc.collections") is None
    True
    """
    value: Any = json
    for step in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def number(json: Mapping[str, Any], path: str) -> float | None:
    """The finite number at a dotted path, or None."""
    value = dig(json, path)
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        return None
    return value


def is_timed(run: RunView) -> bool:
    """Whether the run kept the drive's time."""
    return dig(run.json, "measured.duration_ns") is not None


def series(windows: pa.Table, points_max: int) -> dict[str, Floats]:
    """The time series as arrays, NaN for null, with neighbours joined until `points_max` suffice.

    Joining follows the simulator's own: counts add up, means are weighted, of the 99th percentiles
    the largest is kept. ``joined`` is how many windows one point stands for.
    """
    rows = windows.num_rows
    joined = max(1, -(-rows // points_max))
    starts = np.arange(0, rows, joined)
    ends = np.minimum(starts + joined, rows) - 1

    def column(name: str) -> Floats:
        if name not in windows.column_names:
            return np.full(rows, np.nan)
        return np.asarray(windows.column(name).cast(pa.float64()).to_numpy(), dtype=np.float64)

    def total(values: Floats) -> Floats:
        return np.add.reduceat(np.nan_to_num(values), starts) if rows else values

    def divide(a: Floats, b: Floats) -> Floats:
        quotient = np.full(len(a), np.nan)
        np.divide(a, b, out=quotient, where=b > 0)
        return quotient

    def weighted(values: Floats, weights: Floats) -> Floats:
        known = np.where(np.isnan(values), 0.0, weights)
        return divide(total(values * known), total(known))

    requests, collections = column("requests"), column("collections")
    p99 = column("response_p99_ns")
    largest = np.fmax.reduceat(p99, starts) if rows else p99
    iops = column("iops")
    seconds = divide(requests, iops)
    # The clock does not begin with the first window, but its rate tells how long that lasted.
    durations = np.diff(column("time_end_ns"), prepend=0.0)
    durations[:1] = np.nan_to_num(seconds[:1] * 1e9, nan=1.0)
    return {
        "joined": np.asarray([float(joined)]),
        "time": column("time_end_ns")[ends],
        "requests": column("requests_end")[ends],
        "wa": divide(total(column("programs")), total(column("pages_written"))),
        "iops": divide(total(np.where(np.isnan(seconds), 0.0, requests)), total(seconds)),
        "mean": weighted(column("response_mean_ns"), requests),
        "p99": largest,
        "victims": weighted(column("victim_pages_valid_mean"), collections),
        "power": weighted(column("power_w"), durations),
    }


def geometry(run: RunView, blocks: int) -> tuple[int, int, int, int]:
    """Channels, dies a channel, planes a die, blocks a plane.

    One long row of `blocks` where the configuration does not say, or disagrees.
    """
    names = ("channels", "dies-per-channel", "planes-per-die", "blocks-per-plane")
    counts = [number(run.json, f"config.geometry.{name}") or 0 for name in names]
    channels, dies, planes, per_plane = (int(count) for count in counts)
    if channels * dies * planes * per_plane != blocks:
        return 1, 1, 1, blocks
    return channels, dies, planes, per_plane
