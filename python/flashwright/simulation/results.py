"""What a run found."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, cast, overload

from flashwright.errors import ArgumentError, MissingResultError, WorkloadError
from flashwright.simulation.columns import Columns
from flashwright.simulation.parts import (
    Latencies,
    Settled,
    Snapshots,
    Warned,
    amplifications_differ,
)
from flashwright.support.arguments import checked
from flashwright.support.core import _core
from flashwright.support.files import write_beside
from flashwright.support.tablefiles import write_parquet
from flashwright.support.tabular import Tabular, of_rows

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    from matplotlib.figure import Figure

    from flashwright.simulation.pages import RunsPage
    from flashwright.simulation.run_report import Report, Tenant
from flashwright.simulation.flat_figures import flat_figures, runs_html, table
from flashwright.simulation.over_seeds import FIGURES, groups_of

__all__ = [
    "RunResult",
    "Runs",
    "TenantTable",
    "flat_figures",
    "table",
]


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

    def figures(
        self,
        folder: str | os.PathLike[str],
        *,
        title: str | None = None,
        size: str | None = None,
        style: str | Sequence[str] | None = None,
    ) -> list[Path]:
        """Write each chart of the report as drawings (SVG, PDF, PNG) and as its numbers (CSV); needs Matplotlib.

        Parameters
        ----------
        folder : path
            Where the files go; it is made if it is not there.
        title : str, optional
            What the figures are of; it stands in their metadata.
        size : str, optional
            Width and height, such as ``"84mm,60mm"``; by default a column's width, and the height that each needs.
        style : str or sequence of str, optional
            Fonts and styles, as :func:`flashwright.report.paper.looks.look_of` takes them, such as ``"serif"``.

        Returns
        -------
        list of Path
            The files: ``NN-name.svg``, ``.pdf``, ``.png`` and ``.csv``.
        """
        return self._page(title).figures(folder, size=size, style=style)

    def plot(
        self,
        chart: str | None = None,
        *,
        size: str | None = None,
        style: str | Sequence[str] | None = None,
    ) -> Figure:
        """Draw one chart of the report; needs Matplotlib.

        Parameters
        ----------
        chart : str, optional
            Its name, as :meth:`figures` names its files, without the number; by default the first.
        size : str, optional
            Width and height, such as ``"84mm,60mm"``.
        style : str or sequence of str, optional
            Fonts and styles, as :func:`flashwright.report.paper.looks.look_of` takes them, such as ``"serif"``.

        Returns
        -------
        matplotlib.figure.Figure
            To be changed, or saved in any format that Matplotlib knows.

        Examples
        --------
        >>> from flashwright import Ssd
        >>> run = Ssd.named("default").play("uniform", requests=2_000)
        >>> run.plot("write-amplification", size="84mm,60mm").get_size_inches().round(2)
        array([3.31, 2.36])
        """
        return self._page(None).plot(chart, size, style)


@dataclass(frozen=True)
class TenantTable(Tabular):
    """Tenants of a run.

    Attributes
    ----------
    tenants : tuple of dict
        The documented figures of each, as in the run's JSON.
    """

    tenants: tuple[Tenant, ...]

    def to_arrow(self) -> pa.Table:
        """A row for each tenant, its figures by their dotted names, such as ``response_time_ns.read.p99``.

        Returns
        -------
        pyarrow.Table
        """
        return of_rows(flat_figures(cast("Mapping[str, Any]", tenant)) for tenant in self.tenants)

    def __repr__(self) -> str:
        return f"TenantTable({', '.join(tenant['name'] for tenant in self.tenants)})"


@dataclass(frozen=True, eq=False, repr=False)
class RunResult(Reported, Tabular):
    """What a run found, with all it takes to run it again.

    Attributes
    ----------
    json : dict
        The documented figures, by the names in which ``--json`` writes them: a
        :class:`flashwright.simulation.run_report.Report`.
    violations : tuple of str
        What the verify mode found wrong; empty where all is well or nothing was verified.
    label : str
        What the run is called in comparisons.
    varied : mapping
        What a comparison set for this run, by the key that it varied.

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
    >>> run.requests().column_names[:6]
    ['arrival_ns', 'start_ns', 'completion_ns', 'kind', 'lpn', 'pages']
    >>> run.to_pandas()["iops"].describe()["count"]
    np.float64(200.0)
    """

    json: Report
    _columns: Columns = field(repr=False)
    violations: tuple[str, ...]
    label: str
    varied: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, report: _core._Report, label: str | None = None) -> RunResult:
        """Made from what the core reports."""
        if not isinstance(report, dict) or "json" not in report:
            found = type(report).__name__
            raise ArgumentError(f"of: report: found a {found}, expected what a run reports")
        figures = json.loads(report["json"])
        return cls(
            json=figures,
            _columns=Columns(report["columns"], figures),
            violations=tuple(figures["violations"]),
            label=figures["config"]["name"] if label is None else label,
        )

    @property
    def windows(self) -> pa.Table:
        """The time series, a row for each window; units in the names of the columns."""
        return self._columns.windows

    @property
    def erases_per_block(self) -> npt.NDArray[np.uint32]:
        """Erases of each block."""
        return self._columns.arrays["erases_per_block"]

    @property
    def valid_per_block(self) -> npt.NDArray[np.uint32]:
        """Valid pages of each block at the end."""
        return self._columns.arrays["valid_per_block"]

    @property
    def response_distribution(self) -> dict[str, _core._Points]:
        """For ``all``, ``read`` and ``write``: times in nanoseconds, and the share of requests at or below."""
        return self._columns.arrays["response_distribution"]

    @property
    def closeup(self) -> pa.Table | None:
        """Consecutive requests in order of submission, where they were asked for.

        ``request`` (its number, from 0 where measuring begins), ``arrival_ns``, ``queue_ns`` (arrival to start),
        ``service_ns`` (start to completion), and from ``kind`` on the columns of :meth:`requests`.
        """
        return self._columns.closeup

    @property
    def snapshots(self) -> Snapshots | None:
        """All blocks at moments of the run, where they were asked for."""
        found = self._columns.arrays["snapshots"]
        return None if found is None else Snapshots(**found)

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

        A page that a request writes in part counts as a page; :attr:`write_amplification_bytes` is per byte. Below 1
        where buffers take writes; ``json["write_amplification_into_flash"]`` is per page that they let through.
        """
        return self.json["write_amplification"]

    @property
    def write_amplification_bytes(self) -> float | None:
        """Bytes programmed per byte that the host wrote, as drives count it; None if it wrote none.

        Examples
        --------
        >>> from flashwright import Ssd
        >>> run = Ssd.named("default").play("uniform:write=1,size=512", requests=1000)
        >>> run.write_amplification, run.write_amplification_bytes
        (1.0, 8.0)
        """
        return self.json["write_amplification_bytes"]

    @property
    def iops(self) -> float | None:
        """Reads and writes completed a second, on the drive's clock; None on a drive without times.

        Examples
        --------
        >>> from flashwright import Ssd
        >>> run = Ssd.named("default").play("uniform:write=1", requests=1000, depth=1)
        >>> round(run.iops), run.p99_ns
        (1612, 620480)
        """
        return self.json["throughput"]["iops"]

    @property
    def p99_ns(self) -> int | None:
        """The response time in nanoseconds that 99 % of reads and writes do not exceed; None without any."""
        return self.json["response_time_ns"]["all"]["p99"]

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

    def latency_of(self, kind: Literal["all", "read", "write"]) -> Latencies:
        """Response times of reads and writes together (``"all"``), of ``"read"`` or of ``"write"``."""
        times, shares = self.response_distribution[kind]
        by_kind: Mapping[str, Any] = self.json["response_time_ns"]
        return Latencies(by_kind[kind], times, shares)

    @property
    def tenants(self) -> TenantTable:
        """What each of several workloads had: a table with a row for each; empty for a run of one workload.

        Examples
        --------
        >>> from flashwright import Ssd
        >>> run = Ssd.named("default").play(["uniform", "uniform:write=0 @ name=reader"], requests=1000)
        >>> run.tenants.to_pandas()[["name", "requests.write", "slowdown.iops_ratio"]]
             name  requests.write  slowdown.iops_ratio
        0       1             ...                  ...
        1  reader               0                  ...
        """
        return TenantTable(tuple(self.json["tenants"]))

    def requests(self) -> pa.Table:
        """A row for each request, in order of completion.

        Returns
        -------
        pyarrow.Table
            ``arrival_ns``, ``start_ns``, ``completion_ns``, ``kind``, ``lpn`` (first page), ``pages``; then counts of
            what it caused, such as ``flash_ops`` (cleaning included) and ``erases``.

        Raises
        ------
        WorkloadError
            If they were not kept.
        """
        found = self._columns.requests
        if found is None:
            raise WorkloadError(
                "the requests of this run were not kept",
                "play it with keep_requests=True",
            )
        return found

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
        from flashwright.simulation.pages import RunsPage

        return RunsPage([self], title or f"{self.json['config']['name']}: {self.json['workload']}")

    def __repr__(self) -> str:
        amplification = self.write_amplification
        shown = (
            "nothing written"
            if amplification is None
            else f"write amplification {amplification:.3f}"
        )
        if amplifications_differ(self.json):
            shown += f" by pages, {self.write_amplification_bytes:.3f} by bytes"
        requests = self.json["measured"]["requests"]
        return f"RunResult({self.label}: {self.json['workload']}, {requests:,} requests, {shown})"

    def _repr_html_(self) -> str:
        return runs_html([self])


class Runs(list[RunResult], Reported, Tabular):
    """Runs side by side: a list that is also a table, with a row for each.

    Attributes
    ----------
    notes : list of str
        What a comparison has to say of them, such as which combinations were named twice.

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

    def __init__(self, runs: Iterable[RunResult] = ()) -> None:
        super().__init__(runs)
        self.notes: list[str] = []

    @overload
    def __getitem__(self, which: SupportsIndex | str) -> RunResult: ...
    @overload
    def __getitem__(self, which: slice) -> Runs: ...
    def __getitem__(self, which: SupportsIndex | str | slice) -> RunResult | Runs:
        """A run by its place or by its label, or several by a slice."""
        if isinstance(which, str):
            found = [run for run in self if run.label == which]
            if len(found) == 1:
                return found[0]
            if found:
                raise MissingResultError(
                    f"run: found {len(found)} of the label {which!r}, expected one",
                    "take it by its place, such as runs[0]",
                )
            labels = ", ".join(repr(run.label) for run in self)
            raise MissingResultError(f"run: found {which!r}, expected one of {labels}")
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
            What was varied beside the seed, ``seeds`` (how many), ``different`` (how many of their runs differ),
            ``settled`` (runs that had settled), ``interval`` (what intervals are taken over), and for each figure its
            mean and ``….ci95``, half the width of the 95 % interval. Over seeds that is of the mean, by Student's t.
            Where the seed changes nothing, so that ``different`` is 1, it is over parts of the run, where they tell
            (:func:`flashwright.simulation.over_seeds.interval_of_run`).

        Examples
        --------
        >>> from flashwright import Ssd, compare
        >>> ssd = Ssd.named("default").with_(blocks_per_plane=64)
        >>> runs = compare(ssd, "uniform", {"gc.victim": ["greedy"]}, requests=20_000, seeds=3)
        >>> row = runs.over_seeds().to_pylist()[0]
        >>> row["gc.victim"], row["seeds"], row["settled"], row["write_amplification.ci95"] < 0.3
        ('greedy', 3, 3, True)
        """
        rows = []
        for group in groups_of(self):
            row: dict[str, object] = dict(group.varied)
            row |= {
                "seeds": len(group.runs),
                "different": group.different,
                "settled": group.settled,
                "interval": group.interval,
            }
            for name in FIGURES:
                found = group.figures.get(name)
                row[name] = None if found is None else found.mean
                row[f"{name}.ci95"] = None if found is None else found.ci95
            rows.append(row)
        return of_rows(rows)

    def _page(self, title: str | None) -> RunsPage:
        from flashwright.simulation.pages import RunsPage

        keys = dict.fromkeys(key for run in self for key in run.varied)
        return RunsPage(self, title or ", ".join(keys) or "Runs")

    def _repr_html_(self) -> str:
        return runs_html(self)
