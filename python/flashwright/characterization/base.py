"""What an experiment is, what it gets and what it gives.

An experiment is a pattern of requests on a :class:`flashwright.Target` alone, and figures of what came back. It
gives its result again and again while it grows, so that what is finished is kept when time is up.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashwright.errors import WorkloadError
from flashwright.report.charts import Chart, Columns
from flashwright.report.tables import Cell
from flashwright.support.tabular import Tabular
from flashwright.target.arrays import KIB, Array, Ints
from flashwright.target.question import Context, Cost
from flashwright.target.target import Kind, Target, Times

__all__ = ["Bench", "Estimate", "Experiment", "Result", "Settings", "Variant"]

Variant = Literal["client", "enterprise"]

# Bytes of a request of chapter 4's experiments over drive fills.
REQUEST_BYTES = 64 * KIB
# Requests outstanding there. Chosen: the text does not say; 32 is what SATA drives take at once.
DEPTH = 32
# Requests of a piece of a play. Chosen: 1 GiB of 64 KiB ones; clocks and limits are checked between pieces, and the
# queue runs empty once in 500 times its length.
_PIECE_REQUESTS = 1 << 14
# The first requests of a timed play, in queue lengths: they say how many fill the rest of its time.
_FIRST = 16


@dataclass(frozen=True)
class Settings:
    """What can be said about the experiments, besides the mode.

    Attributes
    ----------
    fills : int or None
        Capacities that ``fills`` writes for each range, 2 to 100; by default 6, or 3 in quick mode.
    ranges : tuple of float or None
        Shares of the address space of ``fills`` and ``unpredictability``, above 0 and up to 1; by default the
        dissertation's.
    prefill : bool
        Whether these two write the drive once in order after the purge. Reads then go anywhere in the range.
    variant : {"client", "enterprise"}
        Of ``steady-state``.

    Raises
    ------
    WorkloadError
        If one is out of bounds.
    """

    fills: int | None = None
    ranges: tuple[float, ...] | None = None
    prefill: bool = False
    variant: Variant = "enterprise"

    def __post_init__(self) -> None:
        if self.fills is not None and not 2 <= self.fills <= 100:
            raise WorkloadError(
                f"fills: found {self.fills}, expected 2 to 100",
                "the paper has 6",
                parameters=["fills"],
            )
        if self.ranges is not None and not all(0 < share <= 1 for share in self.ranges):
            found = ", ".join(f"{share:g}" for share in self.ranges)
            raise WorkloadError(
                f"ranges: found {found}, expected shares above 0 and up to 1",
                "such as 0.1",
                parameters=["ranges"],
            )
        if self.variant not in ("client", "enterprise"):
            raise WorkloadError(
                f"variant: found {self.variant!r}, expected client or enterprise",
                "",
                parameters=["variant"],
            )


@dataclass(frozen=True)
class Estimate(Cost):
    """What an experiment will ask of a drive.

    Attributes
    ----------
    bytes_read, bytes_written, requests : int
        At most, or about where a time ends it earlier.
    seconds_max : float or None
        Of the drive's time, where the experiment is bounded by time.
    """

    seconds_max: float | None = None


@dataclass
class Bench(Context):
    """What an experiment works with; the `target` may be purged and written all over.

    Attributes
    ----------
    settings : Settings
        What was said about the experiments.
    estimate : Estimate
        Of the experiment under way; `progress` receives shares of its requests.
    purges : bool
        Whether the target took every purge so far.
    """

    settings: Settings = field(default_factory=Settings)
    estimate: Estimate = field(default_factory=Estimate)
    purges: bool = True
    _done: int = field(default=0, init=False)

    @property
    def quick(self) -> bool:
        """Whether less is to be asked."""
        return self.mode == "quick"

    @property
    def slots(self) -> int:
        """Places for requests of 64 KiB."""
        return self.target.capacity_bytes // REQUEST_BYTES

    def ranges(self, full: tuple[float, ...], quick: tuple[float, ...]) -> tuple[float, ...]:
        """Shares of the address space, in order: those that were asked for, or those of the mode."""
        wanted = self.settings.ranges or (quick if self.quick else full)
        return tuple(sorted(set(wanted)))

    def begin(self, estimate: Estimate) -> None:
        """Count progress anew, for another experiment."""
        self.estimate, self._done = estimate, 0

    def purge(self) -> None:
        """Bring the target as near to new as it can be brought."""
        self.purges &= self.target.purge()

    def play(
        self,
        kind: Kind | npt.NDArray[np.uint8],
        offsets_bytes: Ints,
        size_bytes: int,
        depth: int,
    ) -> Times:
        """Play requests of one size in a closed loop and report progress.

        Parameters
        ----------
        kind : str, or array of uint8, one a request
            As :meth:`flashwright.Target.play` takes it.
        offsets_bytes : array of int64, one a request
            Where each begins.
        size_bytes : int
            Of each.
        depth : int
            Requests outstanding.

        Returns
        -------
        Times
            One a request, in the order of the requests.
        """
        parts = []
        for first in range(0, offsets_bytes.size, _PIECE_REQUESTS):
            cut = slice(first, first + _PIECE_REQUESTS)
            codes = kind if isinstance(kind, str) else kind[cut]
            parts.append(self.target.play(codes, offsets_bytes[cut], size_bytes, depth=depth))
            self.did(offsets_bytes[cut].size)
        if not parts:
            return Times(np.empty(0, np.uint64), np.empty(0, np.uint64))
        return Times(
            np.concatenate([part.submitted_ns for part in parts]),
            np.concatenate([part.ended_ns for part in parts]),
        )

    def timed(
        self,
        draw: Callable[[int], tuple[Kind | npt.NDArray[np.uint8], Ints]],
        size_bytes: int,
        depth: int,
        *,
        seconds: float,
        requests_max: int,
    ) -> tuple[int, float, float]:
        """Play requests of one size for so long on the target's clock.

        Parameters
        ----------
        draw : callable
            Makes this many requests: kinds and offsets.
        size_bytes, depth : int
            Of each, and how many are outstanding.
        seconds : float
            About how long.
        requests_max : int
            How many at most.

        Returns
        -------
        requests : int
            How many were played.
        took_ns, waited_ns : float
            From the first to the last of them, and the sum of their responses, nanoseconds.
        """
        took_ns = waited_ns = 0.0
        played, count = 0, min(_FIRST * depth, requests_max)
        while count > 0:
            kinds, offsets = draw(count)
            times = self.play(kinds, offsets, size_bytes, depth)
            took_ns += max(times.duration_ns, 1.0)
            waited_ns += float(times.latency_ns.sum())
            played += count
            left = min(int(played * (seconds * 1e9 / took_ns - 1)), requests_max - played)
            # Not all of it on the word of the first few, which a buffer may have taken; and no tiny rest.
            count = min(left, _FIRST * played) if left > played // _FIRST else 0
        return played, took_ns, waited_ns

    def in_order(self, volume_bytes: int, size_bytes: int, end_bytes: int) -> Times:
        """Write a volume in order, from the start to `end_bytes` and again from the start, one request at a time."""
        places = end_bytes // size_bytes
        return self.play(
            "write", np.arange(-(-volume_bytes // size_bytes)) % places * size_bytes, size_bytes, 1
        )

    def did(self, requests: int) -> None:
        """Report the progress of this many more requests."""
        self._done += requests
        self.progress(min(self._done / max(self.estimate.requests, 1), 1.0))


class Result(Tabular):
    """What an experiment found: a frozen dataclass of columns (NumPy) and figures."""

    def to_json(self) -> dict[str, Any]:
        """Everything as plain numbers, lists and mappings; what is no number is None."""
        return {
            each.name: plain(getattr(self, each.name))
            for each in dataclasses.fields(self)  # type: ignore[arg-type]
        }


class Described(Result, ABC):
    """A result that says itself how it reads: as a sentence, as a table, and as charts."""

    @abstractmethod
    def headline(self) -> str:
        """What it says, in a sentence."""

    @abstractmethod
    def table(self) -> tuple[list[str], list[list[Cell]]]:
        """The names of the columns, and the rows."""

    @abstractmethod
    def charts(self, columns: Columns) -> list[Chart]:
        """For the page, whose numbers go to `columns`."""


def on_request(experiment: Experiment) -> bool:
    """Whether an experiment is carried out only if it is named: one with ``ON_REQUEST = True``."""
    return bool(getattr(experiment, "ON_REQUEST", False))


def long_table(axes: Mapping[str, Array | Ints], **values: Array | Ints) -> pa.Table:
    """A row for each place of a grid.

    Parameters
    ----------
    axes : mapping of str to array
        What the grid goes over, the slowest first.
    **values : array, as long on each axis as that
        What was measured; NaN where a place is missing, which is null in the table.

    Examples
    --------
    >>> sizes, depths = np.array([4096, 8192]), np.array([1, 2])
    >>> long_table({"size_bytes": sizes, "depth": depths}, mean_ns=np.array([[1.0, 2], [3, np.nan]])).to_pydict()
    {'size_bytes': [4096, 4096, 8192, 8192], 'depth': [1, 2, 1, 2], 'mean_ns': [1.0, 2.0, 3.0, None]}
    """
    places = np.meshgrid(*axes.values(), indexing="ij")
    columns = {name: place.ravel() for name, place in zip(axes, places, strict=True)}
    columns |= {name: value.ravel() for name, value in values.items()}
    return pa.table({name: pa.array(value, from_pandas=True) for name, value in columns.items()})


def plain(value: object) -> Any:
    """A value as JSON has it.

    Examples
    --------
    >>> plain((np.array([1.0, np.nan]), {"a": np.float64(0.5)}))
    [[1.0, None], {'a': 0.5}]
    """
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, Result):
        return value.to_json()
    return value


class Experiment(Protocol):
    """Requests to a drive and figures of what came back. Each is a file of this package and a line in its list.

    One that is carried out only if it is named says so with ``ON_REQUEST = True`` (see :func:`on_request`).
    """

    NAME: ClassVar[str]
    """As in ``characterize --only``."""
    ABOUT: ClassVar[str]
    """What it does, with the source, in a sentence or two."""

    def estimate(self, bench: Bench) -> Estimate:
        """About what it will ask of the drive; known before anything is asked."""
        ...

    def run(self, bench: Bench) -> Iterator[Result]:
        """Ask; give the result after each part that is finished. The last one is the whole."""
        ...


def too_small(target: Target) -> str | None:
    """Why the experiments can't run on a target of this size; None if they can."""
    least = 1024 * REQUEST_BYTES
    if target.capacity_bytes >= least:
        return None
    return f"{target.capacity_bytes:,} B, expected {least:,} B or more: 1,024 requests of 64 KiB"
