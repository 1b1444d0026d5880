"""Many runs: grids and lists of settings, with several seeds each, computed once and kept.

::

    file or grid ─► combinations ─► cases (a seed each) ─► points ─► outcomes ─► table, summary
     file             Maker           Case                 run_point, points       here
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from flashwright.errors import FlashwrightError, SweepError
from flashwright.simulation.run import PlaySettings, RunSettings
from flashwright.simulation.run_count import expect_run_count
from flashwright.simulation.ssd import Ssd
from flashwright.support.arguments import checked
from flashwright.support.estimate import Estimate
from flashwright.sweeps.combinations import Description, repeated
from flashwright.sweeps.compute import compute
from flashwright.sweeps.file import of_file, read
from flashwright.sweeps.points import Outcome, Point, Store
from flashwright.sweeps.result import FIGURES, Case, Summary, SweepResult
from flashwright.sweeps.run_point import point_of, sharing
from flashwright.traces.tenants import Load, Tenant, as_load
from flashwright.traces.workloads import Source

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
    flashwright.errors.SweepError: shard: found '5/4', expected I/N with I from 1 to N
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``I/N``."""
        number, _, of = text.partition("/")
        if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            raise SweepError(
                f"shard: found {text!r}, expected I/N with I from 1 to N",
                "such as 2/4",
                parameters=["shard"],
            )
        return cls(int(number), int(of))

    def holds(self, point: Point) -> bool:
        """Whether a point belongs to this part: by its key, so that every machine says the same."""
        return int(point.key, 16) % self.of == self.number - 1


@dataclass(frozen=True)
class Sweep:
    """Runs to be made.

    Attributes
    ----------
    cases : sequence of Case
        In the order of the file: combinations, and seeds within each.
    """

    cases: Sequence[Case]

    @property
    def repeated(self) -> list[str]:
        """Which combinations were asked for more than once and are played once, a line each."""
        return repeated({id(case.combination): case.combination for case in self.cases}.values())

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
        """The sweep that a file describes; see docs/reference/sweep-file.md.

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
            raise of_file(file, error) from None

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
            Processes; by default one per core.
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
            computed = compute(sharing(points), store, workers=jobs, dask=dask, progress=progress)
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
    workload: Load | str | Sequence[Tenant | Source | str],
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
    workload : Workload, Trace, Tenants, sequence or str
        What to play, as :meth:`Ssd.play` takes it; of tenants only workloads.
    grid : mapping, optional
        Values to try, by key, as :func:`~flashwright.simulation.compare.compare` takes them.
    points : sequence of mappings, optional
        Further combinations: a value by key.
    seeds : int or sequence of int, optional
        How many, counted from 1, or which.
    store : path, optional
        A folder where results are kept, so that nothing is computed twice.
    jobs : int, optional
        Processes; by default one per core.
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
    source = as_load(workload)
    expect_run_count([grid or {}], len(points), seeds if isinstance(seeds, int) else len(seeds))
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
