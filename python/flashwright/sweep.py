"""Many runs: grids and lists of settings, with several seeds each, computed once and kept.

::

    file or grid ─► combinations ─► cases (a seed each) ─► points ─► outcomes ─► table, summary
     sweepfile        Maker           Case                 sweeppoint, points      here
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from flashwright import workloads
from flashwright.arguments import checked
from flashwright.device import Ssd
from flashwright.errors import FlashwrightError, SweepError
from flashwright.estimate import Estimate
from flashwright.points import Outcome, Point, Store, compute
from flashwright.results import column, flat_figures
from flashwright.run import PlaySettings, RunSettings
from flashwright.sweepfile import Combination, Description, read
from flashwright.sweeppoint import point_of
from flashwright.tablefiles import write_parquet
from flashwright.tables import Tabular, html_table

__all__ = [
    "FIGURES",
    "Case",
    "Estimate",
    "Shard",
    "Summary",
    "Sweep",
    "SweepResult",
    "sweep",
]

FIGURES = (
    "write_amplification",
    "throughput.iops",
    "response_time_ns.all.mean",
    "response_time_ns.all.p99",
    "flash.erases.total",
    "gc.efficiency",
    "mapping_cache.hit_ratio",
    "buffer.write_hit_ratio",
)
"""What is summed up over seeds; figures that no run has are left out."""


@dataclass(frozen=True)
class Shard:
    """A part of a sweep that one of several machines computes.

    Attributes
    ----------
    number, of : int
        Which part, from 1 up, of how many.

    Examples
    --------
    >>> Shard.parse("2/4")
    Shard(number=2, of=4)
    >>> Shard.parse("5/4")
    Traceback (most recent call last):
    ...
    flashwright.errors.SweepError: --shard: found '5/4', expected I/N with I from 1 to N
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``I/N``."""
        number, _, of = text.partition("/")
        if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            raise SweepError(
                f"--shard: found {text!r}, expected I/N with I from 1 to N", "such as --shard 2/4"
            )
        return cls(int(number), int(of))

    def holds(self, point: Point) -> bool:
        """Whether a point belongs to this part: by its key, so that every machine says the same."""
        return int(point.key, 16) % self.of == self.number - 1


@dataclass(frozen=True)
class Case:
    """One run of a sweep.

    Attributes
    ----------
    combination : Combination
        What is set.
    seed : int
        Its seed.
    point : Point or None
        What is computed; None if the settings do not go together.
    """

    combination: Combination
    seed: int
    point: Point | None

    @property
    def label(self) -> str:
        """What is set, with the seed, as text."""
        return ", ".join(filter(None, (self.combination.label, f"seed={self.seed}")))


@dataclass(frozen=True)
class Summary:
    """A combination over its seeds.

    Attributes
    ----------
    varied : mapping
        What is set.
    runs, failed : int
        Seeds that have a result, and that have none.
    figures : mapping
        An :class:`Estimate` by the name of the figure; only those that were measured.
    """

    varied: Mapping[str, object]
    runs: int
    failed: int
    figures: Mapping[str, Estimate]


@dataclass(frozen=True, repr=False)
class SweepResult(Tabular):
    """What a sweep found.

    Attributes
    ----------
    cases : sequence of Case
        All runs, in the order of the file.
    outcomes : sequence of Outcome or None
        What became of each; None for settings that do not go together.

    Examples
    --------
    >>> ssd = Ssd.named("default").with_(blocks_per_plane=16, utilization=0.7).precondition("random")
    >>> found = sweep(ssd, "uniform", {"depth": [1, 4]}, seeds=2, requests=500, jobs=1)
    >>> found.table.select(["depth", "seed", "host.pages_written"]).to_pylist()[-1]
    {'depth': 4, 'seed': 2, 'host.pages_written': 500}
    >>> found.summary.column_names[:5]
    ['depth', 'runs', 'failed', 'write_amplification.mean', 'write_amplification.ci95']
    >>> found.failures
    []
    """

    cases: Sequence[Case]
    outcomes: Sequence[Outcome | None]

    @property
    def keys(self) -> list[str]:
        """What was varied."""
        return list(dict.fromkeys(key for case in self.cases for key in case.combination.varied))

    def error_of(self, nth: int) -> str | None:
        """Why a run failed; None if it did not.

        Parameters
        ----------
        nth : int
            Its number among :attr:`cases`.
        """
        outcome = self.outcomes[nth]
        return self.cases[nth].combination.error if outcome is None else outcome.error

    def traceback_of(self, nth: int) -> str | None:
        """Where the function of a run failed, as Python prints it; None if it did not fail by an exception.

        Parameters
        ----------
        nth : int
            Its number among :attr:`cases`.
        """
        outcome = self.outcomes[nth]
        return None if outcome is None else outcome.traceback

    def figures_of(self, nth: int) -> dict[str, Any] | None:
        """The documented figures of a run, but those of the machine that it ran on; None if it failed.

        Parameters
        ----------
        nth : int
            Its number among :attr:`cases`.
        """
        outcome = self.outcomes[nth]
        if outcome is None or outcome.error is not None:
            return None
        figures: dict[str, Any] = outcome.result["figures"]
        return figures

    @property
    def failures(self) -> list[tuple[Case, str]]:
        """Runs that failed, and why."""
        errors = ((case, self.error_of(nth)) for nth, case in enumerate(self.cases))
        return [(case, error) for case, error in errors if error is not None]

    @property
    def violations(self) -> int:
        """Runs in which the verify mode found something wrong."""
        figures = map(self.figures_of, range(len(self.cases)))
        return sum(bool(found and found["violations"]) for found in figures)

    @functools.cached_property
    def table(self) -> pa.Table:
        """A row for each run.

        In the order of the file: ``label``, ``key`` of the point, what was varied, ``seed``, ``error``, and all figures
        by dotted name. Nothing in it hangs on where or when a point was computed.
        """
        rows: list[dict[str, object]] = []
        for nth, case in enumerate(self.cases):
            row = {
                "label": case.label,
                "key": None if case.point is None else case.point.key,
                **{key: _scalar(value) for key, value in case.combination.varied.items()},
                "seed": case.seed,
                "error": self.error_of(nth),
            }
            rows.append({**flat_figures(self.figures_of(nth) or {}), **row})
        first = ["label", "key", *self.keys, "seed", "error"]
        names = dict.fromkeys([*first, *(name for row in rows for name in row)])
        return pa.table({name: column([row.get(name) for row in rows]) for name in names})

    def to_arrow(self) -> pa.Table:
        """A row for each run: :attr:`table` without the configuration, which is more than all figures.

        Returns
        -------
        pyarrow.Table
        """
        names = self.table.column_names
        return self.table.select([name for name in names if not name.startswith("config.")])

    def __repr__(self) -> str:
        keys = ", ".join(self.keys) or "seeds"
        return f"SweepResult({len(self.cases)} runs by {keys}, {len(self.failures)} failed)"

    def _repr_html_(self) -> str:
        from flashwright.report import text

        summary = self.summary.to_pylist()
        figures = [name for name in FIGURES if f"{name}.mean" in self.summary.column_names]
        rows = []
        for row in summary:
            shown = []
            for name in figures:
                mean, ci = row[f"{name}.mean"], row[f"{name}.ci95"]
                show = text.time_ns if "_ns." in name else text.significant
                told = text.ABSENT if mean is None else show(mean)
                shown.append(told if ci is None else f"{told} ± {show(ci)}")
            rows.append([", ".join(str(row[key]) for key in self.keys), *shown])
        failed = "; ".join(f"{case.label}: {error}" for case, error in self.failures[:3])
        return html_table([", ".join(self.keys), *figures], rows, note=failed)

    @functools.cached_property
    def summaries(self) -> list[Summary]:
        """Each combination over its seeds."""
        groups: dict[str, list[int]] = {}
        for nth, case in enumerate(self.cases):
            groups.setdefault(case.combination.label, []).append(nth)
        return [self._summary(of) for of in groups.values()]

    def _summary(self, of: Sequence[int]) -> Summary:
        known = [figures for nth in of if (figures := self.figures_of(nth)) is not None]
        values = {
            name: [value for figures in known if (value := _dig(figures, name)) is not None]
            for name in FIGURES
        }
        return Summary(
            self.cases[of[0]].combination.varied,
            len(known),
            len(of) - len(known),
            {name: Estimate.of(found) for name, found in values.items() if found},
        )

    @property
    def summary(self) -> pa.Table:
        """A row for each combination: what is set, ``runs``, ``failed``, and ``.mean`` and ``.ci95`` of each figure."""
        names = [name for name in FIGURES if any(name in found.figures for found in self.summaries)]
        columns: dict[str, list[object]] = {
            key: column([_scalar(found.varied.get(key)) for found in self.summaries])
            for key in self.keys
        }
        columns["runs"] = [found.runs for found in self.summaries]
        columns["failed"] = [found.failed for found in self.summaries]
        for name in names:
            estimates = [found.figures.get(name) for found in self.summaries]
            columns[f"{name}.mean"] = [each and each.mean for each in estimates]
            columns[f"{name}.ci95"] = [each and each.ci95 for each in estimates]
        return pa.table(columns)

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 over the content of :attr:`table`: names and values, whatever wrote them."""
        digest = hashlib.sha256()
        for name in self.table.column_names:
            digest.update(json.dumps([name, self.table[name].to_pylist()]).encode())
        return digest.hexdigest()

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the table; the same bytes however the points were computed.

        Parameters
        ----------
        path : path
            The file; it appears once it is whole.
        """
        write_parquet(self.table, path)

    def report(self, path: str | os.PathLike[str], *, title: str = "Sweep") -> None:
        """Write an HTML page that needs nothing else.

        Parameters
        ----------
        path : path
            The file.
        title : str, optional
            Its heading.
        """
        from flashwright.report.grid import write_grid

        write_grid(Path(path), self, title)

    def figures(self, folder: str | os.PathLike[str], *, title: str = "Sweep") -> list[Path]:
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
        from flashwright.report.grid import grid_page

        return grid_page(self, title).figures(folder)


def _dig(figures: Mapping[str, Any], name: str) -> float | None:
    """A figure by its dotted name."""
    value: Any = figures
    for step in name.split("."):
        value = value[step]
    return None if value is None else float(value)


def _scalar(value: object) -> object:
    return str(value) if isinstance(value, list) else value


@dataclass(frozen=True)
class Sweep:
    """Runs to be made.

    Attributes
    ----------
    cases : sequence of Case
        In the order of the file: combinations, and seeds within each.
    """

    cases: Sequence[Case]

    @classmethod
    def of(cls, description: Description) -> Sweep:
        """All runs of a description.

        Parameters
        ----------
        description : Description
            What is swept.

        Raises
        ------
        FlashwrightError
            If a value fits in none of its combinations.
        """
        cases = []
        for combination in description.combinations():
            for seed in description.seeds:
                case, variant = Case(combination, seed, None), combination.variant
                if variant is not None:
                    seeded = replace(variant, settings=replace(variant.settings, seed=seed))
                    case = replace(case, point=point_of(seeded, case.label))
                cases.append(case)
        return cls(tuple(cases))

    @classmethod
    @checked()
    def from_toml(cls, path: str | os.PathLike[str]) -> Sweep:
        """The sweep that a file describes; see docs/sweep.md.

        Parameters
        ----------
        path : path
            The file.

        Raises
        ------
        SweepError
            With what is wrong, and where in the file.
        """
        file = Path(path)
        description = read(file)
        try:
            return cls.of(description)
        except FlashwrightError as error:
            lines = (f"{file}: {line}" for line in str(error).splitlines())
            raise SweepError("\n".join(lines), error.hint) from None

    def kept(self, store: Store) -> int:
        """How many of the runs are kept already.

        Parameters
        ----------
        store : Store
            Where.
        """
        return sum(case.point is not None and store.has(case.point) for case in self.cases)

    def run(
        self,
        store: Store | str | os.PathLike[str] | None = None,
        *,
        jobs: int | None = None,
        dask: str | None = None,
        shard: Shard | None = None,
        progress: Callable[[Outcome, int, int], None] | None = None,
    ) -> SweepResult:
        """Make the runs that are not kept yet.

        Parameters
        ----------
        store : Store or path, optional
            Where results are kept; nowhere if left out.
        jobs : int, optional
            Processes; by default one a core.
        dask : str, optional
            The address of a Dask scheduler, whose workers make the runs instead.
        shard : Shard, optional
            Make only this part; the result then has only this part.
        progress : callable, optional
            Called after each run with its outcome, how many are finished, and how many there are.

        Returns
        -------
        SweepResult
            Runs that failed are in it, with their error.

        Raises
        ------
        OutputError
            If a result can't be written; what was finished is kept.
        SweepError
            If no process can be started, or the cluster can't be reached.
        """
        cases = [
            case
            for case in self.cases
            if shard is None
            or (case.point is None and shard.number == 1)
            or (case.point is not None and shard.holds(case.point))
        ]
        with ExitStack() as stack:
            if store is None:
                store = stack.enter_context(tempfile.TemporaryDirectory(prefix="flashwright-"))
            if not isinstance(store, Store):
                store = Store(Path(store))
            refused = _refused(cases, store)
            points = [
                case.point
                for case in cases
                if case.point is not None and case.point.key not in refused
            ]
            computed = compute(points, store, workers=jobs, dask=dask, progress=progress)
        outcomes = {outcome.point.key: outcome for outcome in [*computed, *refused.values()]}
        return SweepResult(
            tuple(cases),
            tuple(None if case.point is None else outcomes[case.point.key] for case in cases),
        )


def _refused(cases: Sequence[Case], store: Store) -> dict[str, Outcome]:
    """The points whose drive can't be built, found before any is run."""
    errors: dict[str, str | None] = {}
    refused: dict[str, Outcome] = {}
    for case in cases:
        variant, point = case.combination.variant, case.point
        if variant is None or point is None or store.has(point):
            continue
        toml = variant.ssd.toml
        if toml not in errors:
            errors[toml] = None
            try:
                variant.ssd.check()
            except FlashwrightError as error:
                errors[toml] = "; ".join(str(error).splitlines())
        why = errors[toml]
        if why is not None:
            refused[point.key] = Outcome(point, None, why)
    return refused


@checked()
def sweep(
    ssd: Ssd,
    workload: workloads.Source | str,
    grid: Mapping[str, Sequence[object]] | None = None,
    *,
    points: Sequence[Mapping[str, object]] = (),
    seeds: int | Sequence[int] = 1,
    store: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    progress: Callable[[Outcome, int, int], None] | None = None,
    **settings: Unpack[PlaySettings],
) -> SweepResult:
    """Run every combination of settings with several seeds, on all cores.

    Parameters
    ----------
    ssd : Ssd
        The drive.
    workload : Workload, Trace or str
        What to play.
    grid : mapping, optional
        Values to try, by key, as :func:`~flashwright.compare.compare` takes them.
    points : sequence of mappings, optional
        Further combinations: a value by key.
    seeds : int or sequence of int, optional
        How many, counted from 1, or which.
    store : path, optional
        A folder where results are kept, so that nothing is computed twice.
    jobs : int, optional
        Processes; by default one a core.
    dask : str, optional
        The address of a Dask scheduler, whose workers make the runs instead.
    progress : callable, optional
        Called after each run with its outcome, how many are finished, and how many there are.
    **settings
        ``requests``, ``warmup``, ``depth``, ``time_scale`` and ``verify``, as :meth:`Ssd.play` takes them.

    Returns
    -------
    SweepResult

    Raises
    ------
    FlashwrightError
        If a value fits in none of its combinations; nothing has been run by then.

    Examples
    --------
    >>> ssd = Ssd.named("default").with_(channels=1, dies_per_channel=1, blocks_per_plane=16)
    >>> ssd = ssd.with_(utilization=0.7).precondition("random")
    >>> grid = {"gc.victim": ["greedy", "fifo"]}
    >>> found = sweep(ssd, "uniform", grid, seeds=3, requests=2_000, depth=1, jobs=1)
    >>> greedy, fifo = found.summaries
    >>> greedy.figures["write_amplification"].mean < fifo.figures["write_amplification"].mean
    True
    """
    source = workloads.find(workload) if isinstance(workload, str) else workload
    numbers = range(1, seeds + 1) if isinstance(seeds, int) else seeds
    if not numbers or (grid is not None and not all(grid.values())):
        raise SweepError("sweep: found a list without values, expected at least one value in each")
    grids = [grid] if grid else ([] if points else [{}])
    made = RunSettings(**settings)
    ssd = ssd.settling()
    for number in numbers:
        replace(made, seed=number).to_json(ssd.preconditioning or "auto")
    described = Description(ssd, source, made, tuple(numbers), grids, points)
    return Sweep.of(described).run(store, jobs=jobs, dask=dask, progress=progress)
