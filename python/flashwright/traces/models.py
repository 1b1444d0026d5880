"""Models fitted to traces: files that play like the trace at any length, from its sequence or from statistics alone."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from flashwright.errors import ArgumentError, WorkloadError
from flashwright.support.arguments import checked
from flashwright.support.core import _core, expect_arrays
from flashwright.support.files import check_writable, write_beside
from flashwright.traces.requests import request_table
from flashwright.traces.sources import Trace, Workload, parse
from flashwright.traces.workloads import trace

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["sequence", "statistics"]

__all__ = ["FittedModel", "fit_trace", "generate"]


@dataclass(frozen=True)
class FittedModel:
    """What :func:`fit_trace` found.

    Attributes
    ----------
    text : str
        The model as TOML, as ``--workload model:FILE`` reads it from a file.
    figures : dict
        The same figures as plain data.
    """

    text: str
    figures: dict[str, Any]

    def __repr__(self) -> str:
        return f"FittedModel({self.figures['fitted']['requests']} requests)"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model to a file; it appears once it is whole.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Path
            The same, for ``workloads.model``.

        Raises
        ------
        OutputError
            If it can't be written.
        """
        target = Path(path)
        check_writable(target)
        with write_beside(target) as part:
            part.write_text(self.text)
        return target


@checked()
def fit_trace(
    source: Trace | str | os.PathLike[str],
    *,
    requests: int | None = None,
    kind: Kind = "sequence",
) -> FittedModel:
    """Fit a workload model to a trace.

    Parameters
    ----------
    source : Trace or path
        The trace. How its addresses would be fitted to a drive, and `repeat`, play no part.
    requests : int, optional
        Fit to at most this many, from the start.
    kind : {"sequence", "statistics"}, optional
        What the model holds: the trace's own requests, which it plays in segments drawn anew; or statistics alone,
        which tell no address but are further from the trace.

    Returns
    -------
    FittedModel

    Raises
    ------
    TraceError
        If the trace can't be read, or has fewer than 100 reads and writes (for statistics, trims included).

    Examples
    --------
    >>> model = fit_trace("bundled:pgbench", requests=5000)
    >>> model
    FittedModel(5000 requests)
    >>> len(model.text) < 100_000
    True
    >>> len(fit_trace("bundled:pgbench", requests=5000, kind="statistics").text) < 50_000
    True
    """
    if requests is not None and requests < 1:
        raise WorkloadError(
            f"requests: found {requests}, expected 1 or more", parameters=["requests"]
        )
    found = source if isinstance(source, Trace) else trace(source)
    text, figures = _core.trace_fit(found.spec_json(), requests, kind == "sequence")
    return FittedModel(text, json.loads(figures))


@checked()
def generate(
    workload: Workload | str, *, requests: int, capacity: str | int, seed: int = 1
) -> pa.Table:
    """The requests of a generated workload as a table, without a drive.

    Parameters
    ----------
    workload : Workload or str
        A generator, such as a model; not a program that waits for the drive.
    requests : int
        How many.
    capacity : str or int
        Logical size of the drive that they are meant for, such as ``"64GiB"``; a number is bytes.
    seed : int, optional
        The seed of a run that would play the same requests.

    Returns
    -------
    pyarrow.Table
        A row for each request: ``arrival_ns`` (0 in a closed loop), ``kind``, ``first_sector`` and ``sectors`` (of
        512 B).

    Raises
    ------
    WorkloadError
        If the workload does not fit a drive of that size.

    Examples
    --------
    >>> table = generate("uniform:rate=1000", requests=500, capacity="1GiB")
    >>> table.num_rows, table.column_names
    (500, ['arrival_ns', 'kind', 'first_sector', 'sectors'])
    """
    if requests < 1:
        raise ArgumentError(f"requests: found {requests}, expected 1 or more")
    if seed < 0:
        raise ArgumentError(f"seed: found {seed}, expected 0 or more")
    size = _core.size_read(capacity) if isinstance(capacity, str) else capacity
    if size < _PAGE:
        raise ArgumentError(f"capacity: found {capacity}, expected at least {_PAGE} B")
    spec = workload.spec if isinstance(workload, Workload) else parse(workload).spec
    expect_arrays()
    return request_table(_core.workload_columns(spec, size, _PAGE, seed, requests))


_PAGE = 4096
