"""What a run found."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashwright import _core
from flashwright.arguments import checked
from flashwright.errors import WorkloadError
from flashwright.estimate import Estimate
from flashwright.files import write_beside
from flashwright.run_report import Report
from flashwright.tablefiles import write_parquet, write_table
from flashwright.tables import Tabular, html_table

if TYPE_CHECKING:
    from flashwright.report import RunsPage

__all__ = [
    "Latencies",
    "RunResult",
    "Runs",
    "Settled",
    "Snapshots",
    "Warned",
    "column",
    "flat_figures",
    "of_rows",
    "table",
    "write_table",
]

KINDS = ("read", "write", "trim", "flush")
"""Kinds of request, in the order of their numbers."""


@dataclass(frozen=True, eq=False, repr=False)
class Latencies(Tabular):
    """Response times of one kind of request, queueing included.

    Attributes
    ----------
    summary : mapping
        ``count``, ``mean``, ``stdev``, ``p50``, ``p90``, ``p99``, ``p99_9``, ``max``, in nanoseconds; None
        where there was no such request, or no time passed.
    times_ns : array of uint64
        Points of the cumulative distribution: times,
    shares : array of float
        and the shares of requests that took at most as long.
    """

    summary: Mapping[str, float | None]
    times_ns: npt.NDArray[np.uint64]
    shares: npt.NDArray[np.float64]

    @property
    def mean(self) -> float | None:
        """Mean in nanoseconds."""
        return self.summary["mean"]

    @overload
    def quantile(self, q: float) -> int | None: ...
    @overload
    def quantile(self, q: Sequence[float]) -> dict[float, int | None]: ...
    @checked(q=(0, 1))
    def quantile(self, q: float | Sequence[float]) -> int | dict[float, int | None] | None:
        """The time below or at which a share of the requests lies.

        Parameters
        ----------
        q : float or sequence of float
            Shares, 0 to 1.

        Returns
        -------
        int or None, or a dict of them by share
            Nanoseconds, to three significant digits for the shares of the summary and to the next point of
            the distribution for others; None without requests.

        Examples
        --------
        >>> from flashwright import Ssd
        >>> run = Ssd.named("default").play("sequential", requests=1000)
        >>> run.latency_ns.quantile([0.5, 0.99])
        {0.5: 620480, 0.99: 620480}
        """
        if not isinstance(q, (int, float)):
            return {share: self.quantile(share) for share in q}
        if not 0 <= q <= 1:
            raise WorkloadError(f"quantile: found {q}, expected a share from 0 to 1", "")
        known = {0.5: "p50", 0.9: "p90", 0.99: "p99", 0.999: "p99_9", 1.0: "max"}.get(q)
        if known is not None:
            value = self.summary[known]
            return None if value is None else int(value)
        if not len(self.times_ns):
            return None
        at = int(np.searchsorted(self.shares, q, side="left"))
        return int(self.times_ns[min(at, len(self.times_ns) - 1)])

    def to_arrow(self) -> pa.Table:
        """The cumulative distribution, a row a point: ``time_ns``, and the ``share`` of requests that took no longer.

        Returns
        -------
        pyarrow.Table

        Examples
        --------
        >>> from flashwright import Ssd
        >>> run = Ssd.named("default").play("uniform", requests=1000)
        >>> run.latency_ns.to_arrow().column_names
        ['time_ns', 'share']
        """
        return pa.table({"time_ns": self.times_ns, "share": self.shares})

    def __repr__(self) -> str:
        known = (f"{key}={value:,.0f}" for key, value in self.summary.items() if value is not None)
        return f"Latencies({', '.join(known)})"


@dataclass(frozen=True, eq=False, repr=False)
class Snapshots(Tabular):
    """All blocks at moments of a run, spaced evenly; the first where measuring begins, the last at the end.

    Attributes
    ----------
    joined : int
        Neighbouring blocks of a plane that one cell stands for; the last cell of a plane may stand for fewer.
    requests_end : array of uint64, shape (moments,)
        Requests completed by then.
    time_end_ns : array of uint64, shape (moments,)
        The drive's clock.
    erases, valid : array of float32, shape (moments, cells)
        Erases since the drive was new, and valid pages: means of each cell's blocks, cells in order of block.

    Examples
    --------
    >>> from flashwright import Ssd
    >>> run = Ssd.named("default").play("uniform", requests=20_000, snapshots=5)
    >>> run.snapshots.requests_end, run.snapshots.valid.sum(axis=1).max() <= 20_000
    (array([    0,  6400, 12800, 19200, 20000], dtype=uint64), np.True_)
    """

    joined: int
    requests_end: npt.NDArray[np.uint64]
    time_end_ns: npt.NDArray[np.uint64]
    erases: npt.NDArray[np.float32]
    valid: npt.NDArray[np.float32]

    def to_arrow(self) -> pa.Table:
        """A row for each moment and cell: ``requests_end``, ``time_end_ns``, ``cell``, ``erases``, ``valid`` (pages).

        Returns
        -------
        pyarrow.Table
        """
        moments, cells = self.erases.shape
        return pa.table(
            {
                "requests_end": np.repeat(self.requests_end, cells),
                "time_end_ns": np.repeat(self.time_end_ns, cells),
                "cell": np.tile(np.arange(cells, dtype=np.uint32), moments),
                "erases": self.erases.ravel(),
                "valid": self.valid.ravel(),
            }
        )

    def __repr__(self) -> str:
        moments, cells = self.erases.shape
        return f"Snapshots({moments} moments of {cells:,} cells)"


@dataclass(frozen=True)
class Settled:
    """Whether a run's figures are of a drive that had settled under the workload. True where they are.

    Attributes
    ----------
    verdict : {"settled", "transient", "too-short", "none"}
        ``settled``: write amplification no longer changed, and the measurement is long enough. ``transient``: it still
        changed, or too little was erased to tell. ``too-short``: the drive had settled, but the measurement can't say
        its figure to 3 %. ``none``: the host wrote nothing.
    since_request : int or None
        The measured request from which on the drive was settled; 0 where it was so before.
    confidence : float or None
        How often the verdict ``settled`` was right to 3 % against runs ten times as long (``experiments/settling``).
    write_amplification : float or None
        Of the settled part, preconditioning by the workload included.
    interval : (float, float) or None
        95 % interval of the measured write amplification.
    drift : float or None
        The largest relative difference between spans of the history.
    erases_per_block : float
        Erases a block since the workload began.
    why : str
        The reason, in a sentence.
    mend : str or None
        The option that mends it.

    Examples
    --------
    >>> from flashwright import Ssd
    >>> ssd = Ssd.named("default").with_(blocks_per_plane=64)
    >>> run = ssd.play("uniform:write=1", requests=50_000)
    >>> bool(run.settled), run.settled.verdict, run.settled.mend
    (False, 'transient', '--precondition workload')
    >>> run = ssd.precondition("workload").play("uniform:write=1", requests=50_000)
    >>> bool(run.settled), run.settled.since_request
    (True, 0)
    """

    verdict: str
    since_request: int | None
    confidence: float | None
    write_amplification: float | None
    interval: tuple[float, float] | None
    drift: float | None
    erases_per_block: float
    why: str
    mend: str | None

    @classmethod
    def of(cls, figures: Mapping[str, Any]) -> Settled:
        """Made from the documented figures of a run, section ``settled``."""
        interval = figures["interval"]
        return cls(**{**figures, "interval": None if interval is None else tuple(interval)})

    def __bool__(self) -> bool:
        return self.verdict == "settled"


@dataclass(frozen=True)
class Warned:
    """Something to know before using the figures of a run.

    Attributes
    ----------
    code : str
        What programs know it by, such as ``unmapped-reads``.
    text : str
        What it is, in a sentence with its figures.
    mend : str or None
        The options that mend it.

    Examples
    --------
    >>> from flashwright import Ssd
    >>> run = Ssd.named("default").play("uniform:write=0.5,depth=2", requests=1000, depth=4)
    >>> [warned.code for warned in run.warnings]
    ['not-settled', 'unmapped-reads', 'pace-overridden']
    >>> print(run.warnings[2])
    the workload says depth=2, but depth 4 sets the pace of this run
    """

    code: str
    text: str
    mend: str | None

    def __str__(self) -> str:
        return self.text if self.mend is None else f"{self.text}; try {self.mend}"


class Reported:
    """What can be written as an HTML page, and its charts as files: for results that say what their page is."""

    def _page(self, title: str | None) -> RunsPage:
        raise TypeError(f"{type(self).__name__} has no page")

    @checked()
    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> None:
        """Write an HTML page that needs nothing else.

        Parameters
        ----------
        path : path
            The file.
        title : str, optional
            Its heading.
        """
        self._page(title).report(path)

    def figures(self, folder: str | os.PathLike[str], *, title: str | None = None) -> list[Path]:
        """Write each chart of the report as a vector drawing (SVG) and as its numbers (CSV); needs Matplotlib.

        Parameters
        ----------
        folder : path
            Where the files go; it is made if it is not there.
        title : str, optional
            What the figures are of; it stands in their metadata.

        Returns
        -------
        list of Path
            The files: ``NN-name.svg`` and ``NN-name.csv``.
        """
        return self._page(title).figures(folder)


@dataclass(frozen=True, eq=False, repr=False)
class RunResult(Reported, Tabular):
    """What a run found, with all it takes to run it again.

    Attributes
    ----------
    json : dict
        The documented figures, by the names in which ``--json`` writes them: a :class:`flashwright.run_report.Report`.
    windows : pyarrow.Table
        The time series, a row for each window; units in the names of the columns.
    erases_per_block, valid_per_block : array of uint32
        Erases of each block, and valid pages of each block at the end.
    response_distribution : dict
        For ``all``, ``read`` and ``write``: times in nanoseconds, and the share of requests at or below.
    violations : tuple of str
        What the verify mode found wrong; empty where all is well or nothing was verified.
    label : str
        What the run is called in comparisons.
    varied : mapping
        What a comparison set for this run, by the key that it varied.
    closeup : pyarrow.Table or None
        Consecutive requests in order of submission, where they were asked for: ``request`` (its number, from 0 where
        measuring begins), ``arrival_ns``, ``queue_ns`` (arrival to start), ``service_ns`` (start to completion),
        ``kind``, ``lpn`` (first page), ``pages``, ``flash_ops`` (set off by it, cleaning included), ``erases``.

    snapshots : Snapshots or None
        All blocks at moments of the run, where they were asked for.

    Examples
    --------
    >>> from flashwright import Ssd
    >>> run = Ssd.named("default").play(
    ...     "uniform", requests=2_000, keep_requests=True, closeup=(1_000, 100)
    ... )
    >>> run.closeup["request"][0].as_py(), run.closeup.num_rows
    (1000, 100)
    >>> run
    RunResult(default: uniform, 2,000 requests, write amplification 1.000)
    >>> run.requests().column_names
    ['arrival_ns', 'start_ns', 'completion_ns', 'kind', 'lpn', 'pages', 'flash_ops', 'erases']
    >>> run.to_pandas()["iops"].describe()["count"]
    np.float64(200.0)
    """

    json: Report
    windows: pa.Table
    erases_per_block: npt.NDArray[np.uint32]
    valid_per_block: npt.NDArray[np.uint32]
    response_distribution: dict[str, tuple[npt.NDArray[np.uint64], npt.NDArray[np.float64]]]
    violations: tuple[str, ...]
    label: str
    varied: Mapping[str, object] = field(default_factory=dict)
    closeup: pa.Table | None = field(default=None, repr=False)
    snapshots: Snapshots | None = field(default=None, repr=False)
    _requests: pa.Table | None = field(default=None, repr=False)

    @classmethod
    def of(cls, report: _core._Report, label: str | None = None) -> RunResult:
        """Made from what the core reports."""
        figures = json.loads(report["json"])
        return cls(
            json=figures,
            windows=_described(_table(report["windows"]), figures),
            erases_per_block=report["erases_per_block"],
            valid_per_block=report["valid_per_block"],
            response_distribution=dict(report["response_distribution"]),
            violations=tuple(figures["violations"]),
            label=figures["config"]["name"] if label is None else label,
            closeup=None
            if report["closeup"] is None
            else _described(_closeup_table(report["closeup"]), figures),
            snapshots=None if report["snapshots"] is None else Snapshots(**report["snapshots"]),
            _requests=None
            if report["requests"] is None
            else _described(request_table(report["requests"]), figures),
        )

    def labelled(self, label: str) -> RunResult:
        """The same result under another name."""
        return replace(self, label=label)

    def with_varied(self, varied: Mapping[str, object]) -> RunResult:
        """The same result as one run of a comparison that set `varied`."""
        return replace(self, varied=dict(varied))

    def with_violation(self, what: str) -> RunResult:
        """The same result with something more that is wrong."""
        figures = copy.deepcopy(self.json)
        violations = (what, *self.violations)
        figures["violations"] = list(violations)
        figures["verify"] = {"enabled": True, "violations": len(violations)}
        figures["note"] = what
        return replace(self, json=figures, violations=violations)

    @property
    def write_amplification(self) -> float | None:
        """Flash pages programmed per page that the host asked to write; None if it wrote none.

        Below 1 where buffers take writes; ``json["write_amplification_into_flash"]`` is per page that they let through.
        """
        return self.json["write_amplification"]

    @property
    def settled(self) -> Settled:
        """Whether the figures are of a drive that had settled under the workload."""
        found = self.json["settled"]
        assert found is not None, "a run has a verdict; only replays have none"
        return Settled.of(found)

    @property
    def warnings(self) -> tuple[Warned, ...]:
        """Where the figures do not mean what one would think, the most important first; empty where all is well."""
        return tuple(Warned(**each) for each in self.json["warnings"])

    @property
    def latency_ns(self) -> Latencies:
        """Response times of reads and writes together; see :meth:`latency_of` for one kind."""
        return self.latency_of("all")

    def latency_of(self, kind: str) -> Latencies:
        """Response times of reads and writes together (``"all"``), of ``"read"`` or of ``"write"``."""
        times, shares = self.response_distribution[kind]
        by_kind: Mapping[str, Any] = self.json["response_time_ns"]
        return Latencies(by_kind[kind], times, shares)

    def requests(self) -> pa.Table:
        """A row for each request, in order of completion.

        Returns
        -------
        pyarrow.Table
            ``arrival_ns``, ``start_ns``, ``completion_ns``, ``kind``, ``lpn`` (first page), ``pages``,
            ``flash_ops`` (set off by it, cleaning included), ``erases``.

        Raises
        ------
        WorkloadError
            If they were not kept.
        """
        if self._requests is None:
            raise WorkloadError(
                "the requests of this run were not kept",
                "play it with keep_requests=True (--requests-out FILE)",
            )
        return self._requests

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the documented figures.

        Parameters
        ----------
        path : path
            The file; it appears once it is whole.
        """
        with write_beside(Path(path)) as part:
            part.write_text(self.json_text(), encoding="utf-8")

    def json_text(self) -> str:
        """The documented figures as text."""
        return json.dumps(self.json, indent=2) + "\n"

    def to_arrow(self) -> pa.Table:
        """The time series, as in :attr:`windows`; the figures of the whole run are a row of :func:`table`.

        Returns
        -------
        pyarrow.Table
        """
        return self.windows

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the time series as Parquet, whatever the name ends in; see :func:`write_table` for other formats.

        Parameters
        ----------
        path : path
            The file; it appears once it is whole.
        """
        write_parquet(self.windows, path)

    def _page(self, title: str | None) -> RunsPage:
        from flashwright.report import RunsPage

        return RunsPage([self], title or f"{self.json['config']['name']}: {self.json['workload']}")

    def __repr__(self) -> str:
        amplification = self.write_amplification
        shown = (
            "nothing written"
            if amplification is None
            else f"write amplification {amplification:.3f}"
        )
        requests = self.json["measured"]["requests"]
        return f"RunResult({self.label}: {self.json['workload']}, {requests:,} requests, {shown})"

    def _repr_html_(self) -> str:
        return runs_html([self])


_OVER_SEEDS: dict[str, Callable[[Mapping[str, Any]], float | None]] = {
    "write_amplification": lambda j: j["write_amplification"],
    "throughput.iops": lambda j: j["throughput"]["iops"],
    "response_time_ns.all.mean": lambda j: j["response_time_ns"]["all"]["mean"],
    "response_time_ns.all.p99": lambda j: j["response_time_ns"]["all"]["p99"],
    "response_time_ns.all.p99_9": lambda j: j["response_time_ns"]["all"]["p99_9"],
    "flash.erases.total": lambda j: j["flash"]["erases"]["total"],
}


class Runs(list[RunResult], Reported, Tabular):
    """Runs side by side: a list that is also a table, with a row for each.

    Examples
    --------
    >>> from flashwright import Ssd
    >>> ssd = Ssd.named("default")
    >>> runs = Runs(ssd.play("uniform", requests=500, seed=seed).labelled(f"seed {seed}") for seed in (1, 2))
    >>> runs["seed 2"].json["seed"], runs[0].json["seed"]
    (2, 1)
    >>> runs.to_arrow()["label"].to_pylist()
    ['seed 1', 'seed 2']
    """

    @overload
    def __getitem__(self, which: SupportsIndex | str) -> RunResult: ...
    @overload
    def __getitem__(self, which: slice) -> Runs: ...
    def __getitem__(self, which: SupportsIndex | str | slice) -> RunResult | Runs:
        """A run by its place or by its label, or several by a slice."""
        if isinstance(which, str):
            for run in self:
                if run.label == which:
                    return run
            raise KeyError(f"{which!r}; there are {', '.join(repr(run.label) for run in self)}")
        if isinstance(which, slice):
            return Runs(super().__getitem__(which))
        return super().__getitem__(which)

    def to_arrow(self) -> pa.Table:
        """A row for each run: what was varied and its figures, by :func:`table` without the configuration.

        Returns
        -------
        pyarrow.Table
        """
        return table(self, config=False)

    def over_seeds(self) -> pa.Table:
        """A row for each combination that was played with several seeds: means and 95 % intervals.

        Returns
        -------
        pyarrow.Table
            What was varied beside the seed, ``seeds`` (how many), ``settled`` (runs that had settled), and for each
            figure its mean and ``….ci95``, half the width of the 95 % interval of the mean by Student's t.

        Examples
        --------
        >>> from flashwright import Ssd, compare
        >>> ssd = Ssd.named("default").with_(blocks_per_plane=64)
        >>> runs = compare(ssd, "uniform", {"gc.victim": ["greedy"]}, requests=20_000, seeds=3)
        >>> row = runs.over_seeds().to_pylist()[0]
        >>> row["gc.victim"], row["seeds"], row["settled"], row["write_amplification.ci95"] < 0.1
        ('greedy', 3, 3, True)
        """
        groups: dict[str, list[RunResult]] = {}
        for run in self:
            beside = {key: value for key, value in run.varied.items() if key != "seed"}
            groups.setdefault(json.dumps(beside, default=str), []).append(run)
        rows = []
        for runs in groups.values():
            row: dict[str, object] = {k: v for k, v in runs[0].varied.items() if k != "seed"}
            row |= {"seeds": len(runs), "settled": sum(bool(run.settled) for run in runs)}
            for name, of in _OVER_SEEDS.items():
                values = [of(run.json) for run in runs]
                known = [value for value in values if value is not None]
                found = Estimate.of(known) if len(known) == len(runs) else None
                row[name] = None if found is None else found.mean
                row[f"{name}.ci95"] = None if found is None else found.ci95
            rows.append(row)
        return of_rows(rows)

    def _page(self, title: str | None) -> RunsPage:
        from flashwright.report import RunsPage

        keys = dict.fromkeys(key for run in self for key in run.varied)
        return RunsPage(self, title or ", ".join(keys) or "Runs")

    def _repr_html_(self) -> str:
        return runs_html(self)


class Figures(Protocol):
    """A run's figures: of a :class:`RunResult` or of a replay."""

    @property
    def json(self) -> Mapping[str, Any]:
        """The documented figures."""
        ...

    @property
    def label(self) -> str:
        """What the run is called."""
        ...

    @property
    def varied(self) -> Mapping[str, object]:
        """What was set for it, by key."""
        ...


@checked()
def table(runs: Figures | Iterable[Figures], *, config: bool = True) -> pa.Table:
    """All figures of runs, a row for each; ``compare --out`` writes the same.

    Parameters
    ----------
    runs : RunResult, ReplayResult, or iterable of them
        The runs.
    config : bool, optional
        Whether the drives' configuration is there too, a column a key: more than all figures.

    Returns
    -------
    pyarrow.Table
        ``label``, what was varied by its key, then every figure of the run's JSON by its dotted name, such as
        ``flash.erases.total`` or ``response_time_ns.all.p99``, and ``config.gc.victim``.

    Examples
    --------
    >>> from flashwright import Ssd, compare
    >>> runs = compare(Ssd.named("default"), "uniform", {"depth": [1, 4]}, requests=1000)
    >>> found = table(runs).select(["label", "depth", "seed", "measured.requests"])
    >>> found.to_pylist()[1]
    {'label': 'depth=4', 'depth': 4, 'seed': 1, 'measured.requests': 1000}
    """
    listed = list(runs) if isinstance(runs, Iterable) else [runs]
    return of_rows(
        {"label": run.label, **run.varied, **flat_figures(_chosen(run.json, config))}
        for run in listed
    )


def _chosen(figures: Mapping[str, Any], config: bool) -> Mapping[str, Any]:
    return figures if config else {key: part for key, part in figures.items() if key != "config"}


def of_rows(rows: Iterable[Mapping[str, object]]) -> pa.Table:
    """Rows as a table. What a row lacks is null, and a column of several kinds is text.

    Parameters
    ----------
    rows : iterable of mapping
        Values by column; the columns stand in the order in which rows first name them.

    Returns
    -------
    pyarrow.Table

    Examples
    --------
    >>> of_rows([{"key": 1, "a": 2}, {"key": "off"}]).to_pydict()
    {'key': ['1', 'off'], 'a': [2, None]}
    """
    listed = list(rows)
    names = dict.fromkeys(name for row in listed for name in row)
    return pa.table({name: column([row.get(name) for row in listed]) for name in names})


def runs_html(runs: Sequence[Any]) -> str:
    """The key figures of runs as a small HTML table: of one run a row a figure, of several a row a run."""
    from flashwright.report.tables import key_figures

    if not runs:
        return html_table(["Run"], [])
    made = key_figures(runs)
    rows = [[cell.shown for cell in row] for row in made.rows]
    if len(runs) > 1:
        return html_table(made.header, rows)
    figures = runs[0].json
    asked = f"{figures['workload']}, {figures['measured']['requests']:,} requests"
    notes = [*(figures.get("workload_notes") or ()), *runs[0].violations[:3]]
    if figures["ended"] != "complete":
        notes.insert(0, f"ended early: {figures['ended']}")
    pairs = zip(made.header[1:], rows[0][1:], strict=True)
    return html_table([], pairs, f"{figures['config']['name']}: {asked}", "; ".join(notes))


def column(values: Sequence[object]) -> list[object]:
    """The values of a column, as text where they are of several kinds, which no column can be.

    Parameters
    ----------
    values : sequence
        Numbers, truth values, text; None where there is none.

    Examples
    --------
    >>> column([1, 2.5, None]), column([0.7, "70%"])
    ([1, 2.5, None], ['0.7', '70%'])
    """
    kinds = {float if type(value) is int else type(value) for value in values if value is not None}
    if len(kinds) < 2:
        return list(values)
    return [value if value is None else str(value) for value in values]


_LISTS = ("merges.full_by_data_blocks",)


def flat_figures(figures: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """All figures of a run in one level, by dotted name; lists are left out but for those of merges.

    Parameters
    ----------
    figures : mapping
        The documented figures (:attr:`RunResult.json`) or a part of them.
    prefix : str, optional
        What stands before each name.

    Examples
    --------
    >>> flat_figures({"host": {"pages_read": 7}, "busy": {"dies": [0.5]}})
    {'host.pages_read': 7}
    """
    flat: dict[str, object] = {}
    for key, value in figures.items():
        if isinstance(value, dict):
            flat.update(flat_figures(value, f"{prefix}{key}."))
        elif not isinstance(value, list) or prefix + key in _LISTS:
            flat[prefix + key] = value
    return flat


def _table(columns: Mapping[str, npt.NDArray[Any]]) -> pa.Table:
    """A table in which a missing figure is null."""
    arrays = {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
    arrays["response_p99_ns"] = arrays["response_p99_ns"].cast(pa.uint64())
    return pa.table(arrays)


def request_table(columns: Mapping[str, npt.NDArray[Any]]) -> pa.Table:
    """Columns of requests as a table, their kinds by name."""
    arrays = {name: pa.array(values) for name, values in columns.items()}
    arrays["kind"] = pa.DictionaryArray.from_arrays(arrays["kind"].cast(pa.int8()), pa.array(KINDS))
    return pa.table(arrays)


def _closeup_table(columns: Mapping[str, npt.NDArray[Any]]) -> pa.Table:
    order = np.argsort(columns["request"], kind="stable")
    rows = request_table({name: values[order] for name, values in columns.items()})
    start = columns["start_ns"][order]
    times = {
        "request": rows["request"],
        "arrival_ns": rows["arrival_ns"],
        "queue_ns": pa.array(start - columns["arrival_ns"][order]),
        "service_ns": pa.array(columns["completion_ns"][order] - start),
    }
    rest = ("kind", "lpn", "pages", "flash_ops", "erases")
    return pa.table(times | {name: rows[name] for name in rest})


def _described(table: pa.Table, figures: dict[str, Any]) -> pa.Table:
    """The table with what made it in its metadata, so that a file tells by itself what was played.

    A stand-in for a trace says so here as it does everywhere.
    """
    made_by = {
        "flashwright.version": figures["version"],
        "flashwright.drive": figures["config"]["name"],
        "flashwright.workload": figures["workload"],
        "flashwright.workload_notes": "; ".join(figures.get("workload_notes") or ()),
        "flashwright.seed": str(figures["seed"]),
    }
    return table.replace_schema_metadata(made_by)
