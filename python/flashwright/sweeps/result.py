"""What a sweep found."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from flashwright.simulation.flat_figures import flat_figures
from flashwright.simulation.over_seeds import different, estimate_of
from flashwright.simulation.parts import amplifications_differ
from flashwright.simulation.warnings import Gathered, gathered
from flashwright.support.estimate import Estimate
from flashwright.support.tablefiles import write_parquet
from flashwright.support.tabular import Tabular, column, html_table
from flashwright.sweeps.combinations import Combination, repeated
from flashwright.sweeps.points import Outcome, Point

__all__ = ["FIGURES", "Case", "Summary", "SweepResult"]

FIGURES = (
    "write_amplification",
    "write_amplification_bytes",
    "throughput.iops",
    "response_time_ns.all.mean",
    "response_time_ns.all.p99",
    "flash.erases.total",
    "gc.efficiency",
    "mapping_cache.hit_ratio",
    "buffer.write_hit_ratio",
    "mount.duration_ns",
)
"""What is summed up over seeds; figures that no run has are left out."""


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
    different : int
        How many of the runs differ: 1 where the seed changes nothing.
    settled : int
        Runs on a settled drive, by their own verdicts.
    figures : mapping
        An :class:`Estimate` by the name of the figure; only those that were measured. Equal runs count once; where all
        are equal, write amplification has the interval of the run's own parts, and other figures have none.
    label : str
        What is set, as text.
    """

    varied: Mapping[str, object]
    runs: int
    failed: int
    different: int
    settled: int
    figures: Mapping[str, Estimate]
    label: str = ""

    @property
    def amplifications_differ(self) -> bool:
        """Whether write amplification by bytes is another figure than that by pages."""
        return amplifications_differ({name: each.mean for name, each in self.figures.items()})


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
    >>> from flashwright import Ssd, sweep
    >>> ssd = Ssd.named("default").with_(blocks_per_plane=16, utilization=0.7).precondition("random")
    >>> found = sweep(ssd, "uniform", {"depth": [1, 4]}, seeds=2, requests=500, jobs=1)
    >>> found.table.select(["depth", "seed", "host.pages_written"]).to_pylist()[-1]
    {'depth': 4, 'seed': 2, 'host.pages_written': 500}
    >>> found.summary.column_names[:6]
    ['depth', 'runs', 'failed', 'different', 'settled', 'write_amplification.mean']
    >>> found.failures
    []
    """

    cases: Sequence[Case]
    outcomes: Sequence[Outcome | None]

    @cached_property
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
                mean_text = text.ABSENT if mean is None else show(mean)
                shown.append(mean_text if ci is None else f"{mean_text} ± {show(ci)}")
            settled = f"{row['settled']} of {row['runs']}"
            rows.append([", ".join(str(row[key]) for key in self.keys), settled, *shown])
        failed = "; ".join(f"{case.label}: {error}" for case, error in self.failures[:3])
        return html_table([", ".join(self.keys), "settled", *figures], rows, note=failed)

    @functools.cached_property
    def summaries(self) -> list[Summary]:
        """Each combination over its seeds."""
        groups: dict[str, list[int]] = {}
        # Of one sweep no two combinations have one label.
        for nth, case in enumerate(self.cases):
            groups.setdefault(case.combination.label, []).append(nth)
        return [self._summary(of) for of in groups.values()]

    def _summary(self, of: Sequence[int]) -> Summary:
        known = [figures for nth in of if (figures := self.figures_of(nth)) is not None]
        unlike = [known[at] for at in different([figures.get("digest") for figures in known])]
        alone = len(unlike) == 1 and len(known) > 1
        values = {
            name: [value for figures in unlike if (value := _dig(figures, name)) is not None]
            for name in FIGURES
        }
        found = {name: estimate_of(name, each) for name, each in values.items() if each}
        ends = known[0]["settled"]["interval"] if alone else None
        if ends is not None and "write_amplification" in found:
            mean = found["write_amplification"].mean
            found["write_amplification"] = Estimate(mean, (ends[1] - ends[0]) / 2, 1)
        combination = self.cases[of[0]].combination
        return Summary(
            combination.varied,
            len(known),
            len(of) - len(known),
            len(unlike),
            sum(figures["settled"]["verdict"] == "settled" for figures in known),
            found,
            combination.label,
        )

    @property
    def repeated(self) -> list[str]:
        """Which combinations were asked for more than once and played once, a line each."""
        return repeated({id(case.combination): case.combination for case in self.cases}.values())

    @functools.cached_property
    def warnings(self) -> list[Gathered]:
        """What the runs warn of, each thing once."""
        named = [(self.cases[nth].label, self.figures_of(nth)) for nth in range(len(self.cases))]
        return gathered((label, figures.get("warnings", ())) for label, figures in named if figures)

    @property
    def summary(self) -> pa.Table:
        """A row a combination: what is set, the counts of :class:`Summary`, ``.mean`` and ``.ci95`` of each figure."""
        names = [name for name in FIGURES if any(name in found.figures for found in self.summaries)]
        columns: dict[str, pa.Array] = {
            key: column([_scalar(found.varied.get(key)) for found in self.summaries])
            for key in self.keys
        }
        columns["runs"] = column([found.runs for found in self.summaries])
        columns["failed"] = column([found.failed for found in self.summaries])
        columns["different"] = column([found.different for found in self.summaries])
        columns["settled"] = column([found.settled for found in self.summaries])
        for name in names:
            estimates = [found.figures.get(name) for found in self.summaries]
            columns[f"{name}.mean"] = column([each and each.mean for each in estimates])
            columns[f"{name}.ci95"] = column([each and each.ci95 for each in estimates])
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
        from flashwright.sweeps.pages import write_grid

        write_grid(Path(path), self, title)

    def figures(
        self,
        folder: str | os.PathLike[str],
        *,
        title: str = "Sweep",
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
        from flashwright.sweeps.pages import grid_page

        return grid_page(self, title).figures(folder, size=size, style=style)


def _dig(figures: Mapping[str, Any], name: str) -> float | None:
    """A figure by its dotted name; none in a section that does not apply."""
    value: Any = figures
    for step in name.split("."):
        value = None if value is None else value[step]
    return None if value is None else float(value)


def _scalar(value: object) -> object:
    return str(value) if isinstance(value, list) else value
