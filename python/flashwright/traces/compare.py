"""How far two traces, or a trace and a workload that stands for it, are apart in what decides how a drive behaves.

Statistics are computed in one pass in Rust (``crates/workload/src/statistics``): sizes, alignment, sequential runs,
reuse of pages, growth of the footprint, gathering of writes in blocks, popularity, drift of hot chunks, arrivals. For
what the two do to a drive, play them: :func:`flashwright.compare` with ``{"workload": [first, second]}``.
"""

from __future__ import annotations

import json
import os
import statistics as numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flashwright.errors import WorkloadError
from flashwright.support.arguments import checked
from flashwright.support.core import _core
from flashwright.support.names import distinct_names
from flashwright.traces import workloads
from flashwright.traces.sources import Source, Trace, Workload

__all__ = ["Compared", "Comparison", "Distance", "compare", "find", "name_of", "statistics"]

if TYPE_CHECKING:
    from flashwright.report.page import Findings


REQUESTS_DEFAULT = 1_000_000
"""Requests of workloads that are compared with workloads."""
SIZE_DEFAULT = 4 << 30
_PAGE = 4096


@dataclass(frozen=True)
class Distance:
    """How far one statistic of two streams of requests is apart.

    Attributes
    ----------
    name : str
        The statistic.
    unit : str
        Of `first` and `second`: ``bytes``, ``pages``, ``ns``, ``share`` or ``number``.
    first, second : float or None
        Its value, or the median of a distribution; None where a stream has none.
    gap : float or None
        Of distributions: the largest gap between the cumulative shares, 0 to 1 (Kolmogorov-Smirnov); None of numbers,
        and where one of the two is empty.
    factor : float or None
        1 or more. Of numbers: the larger over the smaller. Of distributions: by what factor values have to be
        multiplied or divided on average (geometric mean) to turn one into the other (Wasserstein over the
        logarithm of the value plus one). None where one of the two is 0 or absent.
    """

    name: str
    unit: str
    first: float | None
    second: float | None
    gap: float | None
    factor: float | None


@dataclass(frozen=True)
class Compared:
    """One of the two.

    Attributes
    ----------
    name : str
        Its name in tables.
    source : Workload or Trace
        Where the requests come from.
    statistics : dict
        As :func:`statistics`.
    """

    name: str
    source: Source
    statistics: dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """Two streams of requests beside each other.

    Attributes
    ----------
    first, second : Compared
        The two.
    distances : tuple of Distance
        What both or one of them have.
    """

    first: Compared
    second: Compared
    distances: tuple[Distance, ...]

    @property
    def gap(self) -> float | None:
        """The median of the distributions' largest gaps; None where there is no distribution."""
        found = [each.gap for each in self.distances if each.gap is not None]
        return numbers.median(found) if found else None

    @property
    def factor(self) -> float | None:
        """The median of all factors; None where there is none."""
        found = [each.factor for each in self.distances if each.factor is not None]
        return numbers.median(found) if found else None

    @property
    def json(self) -> dict[str, Any]:
        """Names, statistics and distances."""
        return {
            **{
                which: {"name": each.name, "statistics": each.statistics}
                for which, each in (("first", self.first), ("second", self.second))
            },
            "distances": [dict(vars(each)) for each in self.distances],
            "median_gap": self.gap,
            "median_factor": self.factor,
        }

    def page(self) -> Findings:
        """The page of plots, with both as curves over each other."""
        from flashwright.traces.comparison_page import page

        return page(self.json)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the page as one self-contained HTML file."""
        self.page().report(path)

    def __repr__(self) -> str:
        gap, factor = self.gap or 0.0, self.factor or 1.0
        return (
            f"Comparison({self.first.name}, {self.second.name}: gap {gap:.3f}, factor {factor:.2f})"
        )


def find(text: str) -> Source:
    """A trace file or a workload.

    Parameters
    ----------
    text : str
        A trace file, ``"bundled:NAME"``, ``"-"`` for standard input, or a workload as :func:`workloads.parse` takes
        it. What is a workload's name is a workload, unless there is a file of that name.

    Examples
    --------
    >>> find("uniform:write=0.5"), find("bundled:pgbench")
    (Workload('uniform:write=0.5'), Trace('...pgbench.fwt'))
    >>> find("requests.spc")
    Traceback (most recent call last):
    ...
    flashwright.errors.TraceError: requests.spc: there is no such file
    """
    name = text.partition(":")[0].strip()
    if name in _interactive() and not os.path.exists(text):
        return workloads.parse(text)
    return workloads.trace(text)


def _interactive() -> dict[str, bool]:
    """Whether a workload waits for the drive, by name."""
    return {row["name"]: bool(row["interactive"]) for row in json.loads(_core.workloads())}


def name_of(source: Source) -> str:
    """What a source is called in tables.

    Examples
    --------
    >>> name_of(workloads.uniform()), name_of(workloads.bundled("pgbench"))
    ('uniform', 'bundled:pgbench')
    """
    if isinstance(source, Workload):
        return source.spec
    return source.name or os.path.basename(source.path)


@checked()
def statistics(
    source: Source | str, *, requests: int | None = None, size: int = SIZE_DEFAULT, seed: int = 1
) -> dict[str, Any]:
    """Statistics of a stream of requests that decide what it does to a drive.

    Parameters
    ----------
    source : Workload, Trace or str
        As :func:`find` takes it.
    requests : int, optional
        At most this many, from the start. By default all of a trace, and a million of a workload.
    size : int, optional
        Bytes of the drive that a workload is generated for; addresses of a trace are its own.
    seed : int, optional
        Of a workload.

    Returns
    -------
    dict
        Counts, and distributions as ``values`` (of bins the lower end) and ``weights``; units are in the names.
        Pages are 4 KiB; reuse distances are exact up to two million pages, beyond that from a sample of
        pages (``reuse.sampled`` says which share).

    Raises
    ------
    WorkloadError, TraceError
        If the source can't be read, or is a program that waits for a drive.

    Examples
    --------
    >>> found = statistics("bundled:postmark")
    >>> found["writes"], round(found["write_runs"]["sequential_share"], 2)
    (145705, 0.98)
    """
    source = find(source) if isinstance(source, str) else source
    _expect("requests", requests, 1)
    _expect("size", size, _PAGE)
    if isinstance(source, Workload):
        name = source.spec.partition(":")[0]
        if _interactive()[name]:
            raise WorkloadError(
                f"{source.spec}: found a program, which waits for a drive, expected a trace or a generator",
                "bundled:postmark and the like are traces of programs",
            )
        requests = requests or REQUESTS_DEFAULT
    found: dict[str, Any] = json.loads(
        _core.statistics(source.source_json(), requests, size, _PAGE, seed)
    )
    return found


def _expect(name: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise WorkloadError(
            f"{name}: found {value}, expected {least:,} or more", "", parameters=[name]
        )


@checked()
def compare(
    first: Source | str,
    second: Source | str,
    *,
    requests: int | None = None,
    size: int | None = None,
    seed: int = 1,
) -> Comparison:
    """Compare two traces, or a trace and a workload, by what decides how a drive behaves.

    Parameters
    ----------
    first, second : Workload, Trace or str
        As :func:`find` takes them.
    requests : int, optional
        At most this many of each. By default all of a trace; of a workload as many as the other has, a million of each
        of two workloads.
    size : int, optional
        Bytes of the drive that workloads are generated for. By default those that the trace beside it reaches to, and
        4 GiB for two workloads.
    seed : int, optional
        Of workloads.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> found = compare("bundled:sqlite", "bundled:sqlite")
    >>> found.gap, found.factor
    (0.0, 1.0)
    >>> compare("zipf", "uniform", requests=20_000)
    Comparison(zipf, uniform: gap ..., factor ...)
    """
    sources = [find(each) if isinstance(each, str) else each for each in (first, second)]
    of: dict[int, dict[str, Any]] = {}
    # Traces first: a workload beside one is as long, and generated for a drive as large.
    for at in sorted(range(2), key=lambda at: isinstance(sources[at], Workload)):
        beside = next(iter(of.values()), None)
        wanted, bytes_wanted = requests, size
        if isinstance(sources[at], Workload) and isinstance(sources[1 - at], Trace):
            assert beside is not None
            wanted = requests or beside["requests"]
            bytes_wanted = size or max(_PAGE, -(-beside["end_byte"] // _PAGE) * _PAGE)
        of[at] = statistics(
            sources[at],
            requests=wanted,
            size=SIZE_DEFAULT if bytes_wanted is None else bytes_wanted,
            seed=seed,
        )
    names = distinct_names(
        [name_of(each) for each in sources],
        ["A", "B"],
        [{"path": each.path} if isinstance(each, Trace) else {} for each in sources],
    )
    made = [Compared(names[at], sources[at], of[at]) for at in range(2)]
    return Comparison(made[0], made[1], _distances(of[0], of[1]))


def _distances(first: dict[str, Any], second: dict[str, Any]) -> tuple[Distance, ...]:
    found: Sequence[dict[str, Any]] = json.loads(
        _core.statistics_distances(json.dumps(first), json.dumps(second))
    )
    return tuple(
        Distance(
            row["name"],
            row["unit"],
            row["first"],
            row["second"],
            row["largest_gap"] if row["is_distribution"] and row["octaves"] is not None else None,
            None if row["octaves"] is None else 2.0 ** row["octaves"],
        )
        for row in found
    )
