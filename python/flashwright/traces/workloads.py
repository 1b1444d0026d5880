"""Workloads: what a drive is asked.

Each function gives a :class:`Workload`, a text with its checks done; the text form is what ``--workload``
takes. :func:`trace` and :func:`bundled` give a :class:`Trace` instead. Shares are numbers from 0 to 1,
sizes and times are text with a unit (``"4KiB"``, ``"4k"``); a size without one is bytes.

Examples
--------
>>> from flashwright.traces import workloads
>>> workloads.zipf(write=0.7, depth=32)
Workload('zipf:write=0.7,depth=32')
>>> workloads.stand_in("tpc-h").label
'stand-in for TPC-H (synthetic, calibrated to published statistics)'
"""

from __future__ import annotations

import os
from pathlib import Path

from flashwright.errors import TraceError, WorkloadError
from flashwright.support.arguments import checked
from flashwright.support.core import SECTOR_BYTES
from flashwright.support.files import exists
from flashwright.traces.columnar import as_text
from flashwright.traces.generators import (
    dftl_a,
    dftl_b,
    dynamic_static,
    filebench,
    hot_cold,
    mixed,
    model,
    pareto,
    postmark,
    sequential,
    stand_in,
    strided,
    uniform,
    zipf,
)
from flashwright.traces.piped import from_pipe
from flashwright.traces.sources import (
    Addresses,
    Common,
    Events,
    Order,
    Source,
    TimeUnit,
    Trace,
    Workload,
    expect_addresses,
    parse,
)

__all__ = [
    "Addresses",
    "Common",
    "Events",
    "Order",
    "Source",
    "TimeUnit",
    "Trace",
    "Workload",
    "bundled",
    "bundled_traces",
    "dftl_a",
    "dftl_b",
    "dynamic_static",
    "filebench",
    "find",
    "hot_cold",
    "mixed",
    "model",
    "pareto",
    "parse",
    "postmark",
    "sequential",
    "stand_in",
    "strided",
    "trace",
    "uniform",
    "zipf",
]


def find(text: str) -> Source:
    """A workload, or a trace that comes with the package.

    Parameters
    ----------
    text : str
        As :func:`parse` takes it, or ``"bundled:NAME"``.

    Examples
    --------
    >>> find("bundled:pgbench"), find("uniform")
    (Trace('...pgbench.fwt'), Workload('uniform'))
    """
    if text.startswith("bundled:"):
        return bundled(text.removeprefix("bundled:"))
    return parse(text)


@checked()
def trace(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    addresses: Addresses | None = None,
    devices: list[str] | tuple[str, ...] | None = None,
    overlay: bool = False,
    skip_bad_lines: bool = False,
    repeat: int = 1,
    time_scale: float = 1.0,
    range: tuple[int, int] | None = None,
    scale_footprint: int = 1,
    order: Order | None = None,
    time_unit: TimeUnit | None = None,
    events: Events = "auto",
    start: float = 0.0,
    columns: str | None = None,
    member: str | None = None,
) -> Trace:
    """A trace file: plain, compressed (gzip, bzip2, zstd, xz, lz4), in an archive (tar, zip), Parquet or Arrow.

    Parameters
    ----------
    path : path
        The file, or ``"bundled:NAME"``; ``"-"`` is standard input. What comes through a pipe is kept in a temporary
        file until the process ends.
    format : str, optional
        Told from the content if left out.
    addresses : str, optional
        How its addresses are fitted to the drive: ``"wrap"``, modulo its size; ``"reject"``, an error beyond it;
        ``"dense"``, packed in order of first use; ``"compact"``, what it touches in order of address without holes;
        ``"scale"``, what it touches in order of address onto the whole drive, or ``"scale:0.7"`` onto a share of it:
        holes shrink or grow, and where that is not enough several pages of the trace share one of the drive. If left
        out, it is wrapped where at most 5 % of its requests reach past the end of the drive, and refused else.
    devices : sequence of str, optional
        Names of the devices (ASUs, disks, volumes) to play; all if left out.
    overlay : bool, optional
        Lay the devices over each other instead of end to end.
    skip_bad_lines : bool, optional
        Count lines that can't be read instead of stopping at the first.
    repeat : int, optional
        How often the trace is played, one time after the other.
    time_scale : float, optional
        Multiplies arrival times: 0.5 plays twice as fast, 0 all at once. Order, addresses and sizes stay; bursts keep
        their shape and get shorter or longer.
    range : (int, int), optional
        First byte and one past the last of the addresses to read, multiples of 512; the devices are laid out before.
        Requests are cut off at its ends, those outside left out; its first byte becomes byte 0. So a trace is split
        into tenants by address.
    scale_footprint : int, optional
        Lays this many copies of the trace side by side, 1 to 64, merged by arrival. A copy begins where an equal share
        of the requests has passed and ends with the beginning, so the copies are not in step. Sizes, mix, sequential
        runs, hot sets and order within a copy stay. Requests, rate, footprint and reuse distances grow by the
        factor, so a drive and caches that grow with it see the same; bursts partly even out. Together with an equal
        `time_scale` the rate stays too.
    order : {"as-is", "sort", "concatenate"}, optional
        What is done where times go back. ``"sort"`` sorts by time, with temporary files where memory would not hold
        the trace; ``"concatenate"`` takes a clock that starts again for a following recording; ``"as-is"`` gives a late
        request the time of the one before it. Left out, what is certain is done and noted (requests a little late,
        devices or jobs that ran at once), and anything else is an error with the choice.
    time_unit : {"ns", "us", "ms", "s"}, optional
        The unit of the times, where it is not that of the format.
    events : {"auto", "queue", "issue"}, optional
        Which events of a block trace are its requests.
    start : float, optional
        Share of its requests, 0 to below 1, after which the trace begins; it ends with these. The same load in
        another order, for a second run that is not the first one again.
    columns : str, optional
        What the columns of a table say, such as ``"time=1:us,op=2,lba=3:sectors,size=4:bytes"``. A column is its number
        from 1 or its name in the header; docs/how-to/read-any-table.md has all keys and units. Rows of a
        Parquet or Arrow file are described in the same way; its timestamps need no unit.
    member : str, optional
        The file of an archive to read, needed where several of its files are traces.

    Returns
    -------
    Trace

    Raises
    ------
    TraceError
        If there is no such file.

    Examples
    --------
    >>> trace("requests.spc")
    Traceback (most recent call last):
    ...
    flashwright.errors.TraceError: requests.spc: there is no such file
    """
    text = os.fspath(path)
    label = ""
    if text.startswith("bundled:"):
        label, text = text, bundled(text.removeprefix("bundled:")).path
    elif (piped := from_pipe(text)) is not None:
        text, label = piped
    elif not exists(text):
        raise TraceError(f"{text}: there is no such file", _bundled_hint())
    if (table := as_text(text)) is not None:
        text, label = table, label or text
    if repeat < 1:
        raise WorkloadError(f"repeat: found {repeat}, expected 1 or more", parameters=["repeat"])
    expect_addresses(addresses)
    if not 0 <= start < 1:
        raise WorkloadError(
            f"start: found {start:g}, expected a share from 0 to below 1", "", parameters=["start"]
        )
    _check_scaling(time_scale, range, scale_footprint)
    names = None if devices is None else tuple(devices)
    return Trace(
        text,
        format,
        addresses,
        names,
        overlay,
        skip_bad_lines,
        repeat,
        label,
        time_scale,
        range,
        scale_footprint,
        order,
        time_unit,
        events,
        start,
        columns,
        member,
    )


_TIME_SCALE_MAX = 1e6
_COPIES_MAX = 64


def _check_scaling(time_scale: float, part: tuple[int, int] | None, copies: int) -> None:
    if not 0 <= time_scale <= _TIME_SCALE_MAX:
        raise WorkloadError(
            f"time_scale: found {time_scale:g}, expected a number from 0 to 1,000,000",
            "",
            parameters=["time_scale"],
        )
    if not 1 <= copies <= _COPIES_MAX:
        raise WorkloadError(
            f"scale_footprint: found {copies}, expected a whole number from 1 to {_COPIES_MAX}",
            "a trace that was scaled once can be written by `flashwright trace convert` and scaled again",
            parameters=["scale_footprint"],
        )
    if part is not None and not (
        0 <= part[0] < part[1] < 2**63 and part[0] % SECTOR_BYTES == part[1] % SECTOR_BYTES == 0
    ):
        raise WorkloadError(
            f"range: found bytes {part[0]:,} to {part[1]:,}, expected a start and a length in multiples of 512 B, the "
            "length above 0",
            "",
            parameters=["range"],
        )


_TRACES = Path(__file__).parent / "recordings"


def bundled_traces() -> dict[str, Path]:
    """The traces that come with the package, by name.

    Examples
    --------
    >>> "pgbench" in bundled_traces()
    True
    """
    return {path.stem: path for path in sorted(_TRACES.glob("*.fwt"))}


def bundled(name: str) -> Trace:
    """A trace that comes with the package; see ``recordings/README.md`` for what each is.

    Parameters
    ----------
    name : str
        One of :func:`bundled_traces`.

    Examples
    --------
    >>> bundled("pgbench").name
    'bundled:pgbench'
    """
    known = bundled_traces()
    if name not in known:
        raise TraceError(f"there is no bundled trace {name!r}", _bundled_hint())
    return Trace(str(known[name]), name=f"bundled:{name}")


def _bundled_hint() -> str:
    return "bundled traces: " + ", ".join(f"bundled:{name}" for name in bundled_traces())
