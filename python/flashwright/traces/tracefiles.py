"""Trace files: what is in them, and from one format to another."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashwright.errors import OutputError, WorkloadError
from flashwright.support.arguments import checked
from flashwright.support.core import SECTOR_BYTES, _core, expect_arrays
from flashwright.support.files import is_same_file
from flashwright.traces.requests import request_table
from flashwright.traces.workloads import Trace, trace

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["columns", "convert", "formats", "info", "merge"]


def formats() -> dict[str, str]:
    """The formats that can be read: what each is, by name.

    Examples
    --------
    >>> "spc" in formats()
    True
    """
    return {name: about for name, about, _, _ in _core.trace_formats()}


@checked()
def info(source: Trace | str | os.PathLike[str]) -> dict[str, Any]:
    """What is in a trace: the figures that papers print of theirs.

    Parameters
    ----------
    source : Trace or path
        The trace.

    Returns
    -------
    dict
        Counts, sizes in bytes, times in nanoseconds, shares in percent; units are in the names.

    Examples
    --------
    >>> found = info("bundled:pgbench")
    >>> found["writes"] > found["reads"]
    True
    """
    found: dict[str, Any] = json.loads(_core.trace_info(_as_trace(source).spec_json()))
    return found


@checked()
def columns(source: Trace | str | os.PathLike[str], *, requests: int | None = None) -> pa.Table:
    """The requests of a trace as a table, for analyses of one's own.

    Parameters
    ----------
    source : Trace or path
        The trace. Its addresses are the trace's, devices end to end or laid over each other as it says; how they would
        be fitted to a drive, and `repeat`, play no part.
    requests : int, optional
        At most this many, from the start.

    Returns
    -------
    pyarrow.Table
        A row for each request in the order of the trace: ``arrival_ns``, ``kind``, ``first_sector`` and ``sectors``
        (of 512 B).

    Examples
    --------
    >>> found = columns("bundled:pgbench", requests=1000)
    >>> found.num_rows, found.column_names
    (1000, ['arrival_ns', 'kind', 'first_sector', 'sectors'])
    """
    if requests is not None and requests < 1:
        raise WorkloadError(
            f"requests: found {requests}, expected 1 or more", parameters=["requests"]
        )
    expect_arrays()
    return request_table(_core.trace_columns(_as_trace(source).spec_json(), requests))


@checked()
def convert(
    source: Trace | str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    format: str | None = None,
    label: str = "",
    note: str = "",
    skip: int = 0,
    handles: Sequence[tuple[int, int]] = (),
) -> dict[str, Any]:
    """Write a trace in another format.

    Parameters
    ----------
    source : Trace or path
        The trace.
    target : path
        The file to write; it appears once it is whole.
    format : str, optional
        The format to write; by default the one whose name the file ends in, or Flashwright's own.
    label, note : str, optional
        What a trace in Flashwright's own format says of itself.
    skip : int, optional
        Requests to leave out, from the beginning.
    handles : sequence of (int, int), optional
        First bytes, multiples of 512 in rising order, each with the placement handle of the requests that begin there
        or after it, up to the next. Only Flashwright's own format holds handles.

    Returns
    -------
    dict
        Requests written, and what the new format could not hold.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = convert("bundled:pgbench", f"{folder}/rest.fwt", skip=10_000, handles=[(0, 1), (1 << 28, 2)])
    >>> made["written"] == info("bundled:pgbench")["requests"] - 10_000
    True
    """
    if skip < 0:
        raise WorkloadError(f"skip: found {skip}, expected 0 or more", parameters=["skip"])
    if any(first % SECTOR_BYTES or not 0 <= handle < 1 << 16 for first, handle in handles):
        raise WorkloadError(
            "handles: expected pairs of a first byte, a multiple of 512, and a handle below 65,536",
            parameters=["handles"],
        )
    path = Path(target)
    name = format or _format_of(path)
    found = _as_trace(source)
    _expect_another(path, [found])
    report = _core.trace_convert(
        found.spec_json(),
        str(path),
        name,
        label,
        note,
        skip,
        [(first // SECTOR_BYTES, handle) for first, handle in handles],
    )
    done: dict[str, Any] = json.loads(report)
    return {"format": name, **done}


@checked()
def merge(
    sources: Sequence[Trace | str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    starts: Sequence[float] = (),
    format: str | None = None,
    label: str = "",
    note: str = "",
) -> dict[str, Any]:
    """Merge traces as tenants of one drive, by arrival.

    Parameters
    ----------
    sources : sequence of Trace or path
        The traces. Each is put behind the one before, from a multiple of 1 MiB on, so that none touches another's
        addresses. In Flashwright's own format each is a device, named after its file; ``devices`` takes it out again.
    target : path
        The file to write; it appears once it is whole.
    starts : sequence of float, optional
        When each begins, in seconds, in the order of the traces; 0 for those left out.
    format, label, note : str, optional
        As for :func:`convert`.

    Returns
    -------
    dict
        Requests written, and what the new format could not hold.

    Raises
    ------
    WorkloadError
        If there are fewer than two traces, more starts than traces, or a start below 0.
    """
    if len(sources) < 2:
        raise WorkloadError(
            f"sources: found {len(sources)} of them, expected two or more",
            "",
            parameters=["sources"],
        )
    if len(starts) > len(sources):
        raise WorkloadError(
            f"starts: found {len(starts)} for {len(sources)} traces, expected at most one each",
            "",
            parameters=["starts"],
        )
    for start in starts:
        if not 0 <= start <= _START_MAX:
            raise WorkloadError(
                f"starts: found {start:g} s, expected a time from 0 to a hundred years",
                "",
                parameters=["starts"],
            )
    traces = [_as_trace(each) for each in sources]
    padded = [*starts, *[0.0] * (len(traces) - len(starts))]
    names: list[str] = []
    for each in traces:
        stem = Path(each.name.removeprefix("bundled:") or each.path).name.partition(".")[0]
        numbered = (stem if n == 1 else f"{stem}-{n}" for n in itertools.count(1))
        names.append(next(name for name in numbered if name not in names))
    tenants = [
        (name, each.spec_json(), round(start * 1e9))
        for name, each, start in zip(names, traces, padded, strict=True)
    ]
    path = Path(target)
    _expect_another(path, traces)
    made = format or _format_of(path)
    done: dict[str, Any] = json.loads(_core.trace_merge(tenants, str(path), made, label, note))
    return {"format": made, "tenants": names, **done}


_START_MAX = 100 * 365.25 * 86400


def _expect_another(target: Path, sources: Sequence[Trace]) -> None:
    """Refuse to write over what is read, which may be more than what is written."""
    for each in sources:
        if is_same_file(target, Path(each.path)):
            raise OutputError(
                f"target: found {target}, the trace that is read, expected another file",
                "write to a new file, and rename it once it is there",
                parameters=["target"],
            )


def _format_of(path: Path) -> str:
    ending = path.suffix.removeprefix(".")
    writable = [name for name, _, can, _ in _core.trace_formats() if can]
    return ending if ending in writable else "flashwright"


def _as_trace(source: Trace | str | os.PathLike[str]) -> Trace:
    return source if isinstance(source, Trace) else trace(source)
