"""The columns of a report: what it holds beside its figures, made when it is asked for."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from flashwright.support.core import expect_arrays
from flashwright.support.tabular import arrow_array
from flashwright.traces.requests import request_table

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from flashwright.simulation.run_report import Report
    from flashwright.support.core import _core

__all__ = ["Columns", "requests_of"]


class Columns:
    """Time series, requests and blocks of a run.

    They take NumPy and Arrow, which load longer than a short run lasts; whoever reads figures alone does without.

    Parameters
    ----------
    core : _core.Columns
        As the core reports them.
    figures : Report
        The documented figures, for what tables say of themselves.
    """

    def __init__(self, core: _core.Columns, figures: Report) -> None:
        self._core: _core.Columns | None = core
        self._figures = figures
        self._arrays: _core._Arrays | None = None
        self._lock = threading.Lock()

    @property
    def arrays(self) -> _core._Arrays:
        """All of them, as NumPy's."""
        with self._lock:
            if self._core is not None:
                expect_arrays()
                self._arrays, self._core = self._core.take(), None
        assert self._arrays is not None
        return self._arrays

    def __getstate__(self) -> tuple[_core._Arrays, Report]:
        return self.arrays, self._figures

    def __setstate__(self, state: tuple[_core._Arrays, Report]) -> None:
        self._arrays, self._figures = state
        self._core, self._lock = None, threading.Lock()

    @functools.cached_property
    def windows(self) -> pa.Table:
        """The time series."""
        return _described(_table(self.arrays["windows"]), self._figures)

    @functools.cached_property
    def requests(self) -> pa.Table | None:
        """A row for each request, where they were kept."""
        found = self.arrays["requests"]
        return None if found is None else requests_of(found, self._figures)

    @functools.cached_property
    def closeup(self) -> pa.Table | None:
        """Consecutive requests, where they were asked for."""
        found = self.arrays["closeup"]
        return None if found is None else _described(_closeup_table(found), self._figures)


def requests_of(
    columns: Mapping[str, npt.NDArray[Any]], made_by: Mapping[str, Any] | Report
) -> pa.Table:
    """A row for each request, in order of completion.

    Parameters
    ----------
    columns : mapping
        As the core hands them over.
    made_by : mapping
        What made them, in the names of a report.
    """
    return _described(request_table(columns), made_by)


def _table(columns: Mapping[str, npt.NDArray[Any]]) -> pa.Table:
    """A table in which a missing figure is null."""
    import pyarrow as pa

    arrays = {name: arrow_array(values) for name, values in columns.items()}
    arrays["response_p99_ns"] = arrow_array(columns["response_p99_ns"], "uint64")
    return pa.table(arrays)


def _closeup_table(columns: Mapping[str, npt.NDArray[Any]]) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    order = np.argsort(columns["request"], kind="stable")
    rows = request_table({name: values[order] for name, values in columns.items()})
    start = columns["start_ns"][order]
    times = {
        "request": rows["request"],
        "arrival_ns": rows["arrival_ns"],
        "queue_ns": pa.array(start - columns["arrival_ns"][order]),
        "service_ns": pa.array(columns["completion_ns"][order] - start),
    }
    rest = rows.column_names[rows.column_names.index("kind") :]
    return pa.table(times | {name: rows[name] for name in rest if name != "request"})


def _described(table: pa.Table, figures: Mapping[str, Any] | Report) -> pa.Table:
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
