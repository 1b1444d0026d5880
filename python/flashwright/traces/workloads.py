"""Workloads: what a drive is asked.

Each function gives a :class:`Workload`, a text with its checks done; the text form is what ``--workload``
takes. :func:`trace` and :func:`bundled` give a :class:`Trace` instead. Shares are numbers from 0 to 1,
sizes and times are text with a unit (``"4KiB"``, ``"4k"``); a size without one is bytes.

Examples
--------
>>> from flashwright.traces import workloads
>>> workloads.zipf(write=0.7, depth=32)
Workload('zipf:write=0.7,depth=32')
>>> workloads.stand_in("financial1").label
'stand-in for Financial1 (synthetic, calibrated to published statistics)'
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypedDict, Unpack

from flashwright.errors import TraceError, WorkloadError
from flashwright.support.arguments import checked
from flashwright.support.core import _core
from flashwright.traces.piped import from_pipe, is_from_pipe

__all__ = [
    "Addresses",
    "Common",
    "Source",
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
    "parse",
    "postmark",
    "sequential",
    "stand_in",
    "strided",
    "trace",
    "uniform",
    "zipf",
]

Addresses: TypeAlias = Literal["wrap", "reject", "dense"]
"""How a trace's addresses fit a drive: modulo its size, refused beyond, or packed in order of first use."""


class Common(TypedDict, total=False):
    """What every generator takes.

    Attributes
    ----------
    write, trim : float
        Shares of requests that write and trim, 0 to 1; the rest reads.
    size, align : str or int
        Request size, and what requests start at multiples of; a number is bytes.
    range : float
        Share of the logical space in use, from its start.
    depth : int
        Closed loop with that many requests in flight.
    rate : float
        Open loop with that many requests a second.
    arrival : str
        How an open loop spaces its requests.
    """

    write: float
    trim: float
    size: str | int
    align: str | int
    range: float
    depth: int
    rate: float
    arrival: str


@dataclass(frozen=True)
class Workload:
    """A generator of requests in its canonical text form.

    Attributes
    ----------
    spec : str
        As ``--workload`` takes it.
    label : str or None
        What reports must call it, where the name alone would promise too much: stand-ins say that they are.
    """

    spec: str
    label: str | None = None

    def __repr__(self) -> str:
        return f"Workload({self.spec!r})"

    def source_json(self) -> str:
        """The form in which the core takes it."""
        return json.dumps({"workload": self.spec})


@dataclass(frozen=True)
class Trace:
    """A recorded workload and how to read it; see :func:`trace` for the meaning of each attribute."""

    path: str
    format: str | None = None
    addresses: Addresses = "wrap"
    devices: tuple[str, ...] | None = None
    overlay: bool = False
    skip_bad_lines: bool = False
    repeat: int = 1
    name: str = ""

    @property
    def lasts(self) -> bool:
        """Whether the trace can be read again by another process later; one from a pipe can't."""
        return not is_from_pipe(self.path)

    def __repr__(self) -> str:
        return f"Trace({self.path!r}, addresses={self.addresses!r})"

    def spec_json(self) -> str:
        """The options in the form in which the core takes them."""
        return json.dumps(
            {
                "path": self.path,
                "name": self.name,
                "format": self.format,
                "skip-bad-lines": self.skip_bad_lines,
                "devices": None if self.devices is None else list(self.devices),
                "overlay": self.overlay,
                "addresses": self.addresses,
                "repeat": self.repeat,
            }
        )

    def source_json(self) -> str:
        """The form in which the core takes it."""
        return json.dumps({"trace": json.loads(self.spec_json())})


Source: TypeAlias = Workload | Trace


@checked()
def parse(spec: str) -> Workload:
    """Read a workload as ``--workload`` takes it.

    Parameters
    ----------
    spec : str
        ``name`` or ``name:key=value,key=value``.

    Returns
    -------
    Workload

    Raises
    ------
    WorkloadError
        With everything that is wrong with the text.

    Examples
    --------
    >>> parse("uniform:write=70%, depth=32")
    Workload('uniform:write=0.7,depth=32')
    """
    return Workload(*_core.workload_read(spec))


def find(text: str) -> Source:
    """A workload, or a trace that comes with the package.

    Parameters
    ----------
    text : str
        As :func:`parse` takes it, or ``"bundled:NAME"``.

    Examples
    --------
    >>> find("bundled:pgbench"), find("uniform")
    (Trace('...pgbench.fwt', addresses='wrap'), Workload('uniform'))
    """
    if text.startswith("bundled:"):
        return bundled(text.removeprefix("bundled:"))
    return parse(text)


def _build(name: str, own: dict[str, object], common: Common) -> Workload:
    given = {**own, **common}
    pairs = [
        f"{key.replace('_', '-')}={value}" for key, value in given.items() if value is not None
    ]
    return parse(f"{name}:{','.join(pairs)}" if pairs else name)


def sequential(**common: Unpack[Common]) -> Workload:
    """Requests one after the other through the space, again and again.

    Examples
    --------
    >>> sequential(write=0.5, size="64KiB")
    Workload('sequential:write=0.5,size=64KiB')
    """
    return _build("sequential", {}, common)


def mixed(**common: Unpack[Common]) -> Workload:
    """Sequential writes with random reads between them (Hu's dissertation, section 5.1.3).

    Examples
    --------
    >>> mixed(write=0.5, depth=64)
    Workload('mixed:write=0.5,depth=64')
    """
    return _build("mixed", {}, common)


def uniform(**common: Unpack[Common]) -> Workload:
    """Each place of the space alike.

    Examples
    --------
    >>> uniform(range=0.5, rate=2000)
    Workload('uniform:range=0.5,rate=2000')
    """
    return _build("uniform", {}, common)


def strided(*, step: str | None = None, **common: Unpack[Common]) -> Workload:
    """Requests at a fixed distance from each other.

    Parameters
    ----------
    step : str, optional
        From the start of one request to that of the next, such as ``"64KiB"``.
    **common
        See :class:`Common`.

    Examples
    --------
    >>> strided(step="64KiB")
    Workload('strided:step=64KiB')
    """
    return _build("strided", {"step": step}, common)


def hot_cold(
    *,
    hot_space: float | None = None,
    hot_access: float | None = None,
    placement: Literal["identity", "scattered"] | None = None,
    **common: Unpack[Common],
) -> Workload:
    """Two parts of the space, one asked more than the other.

    Parameters
    ----------
    hot_space : float, optional
        Share of the space that is hot.
    hot_access : float, optional
        Share of requests that go there.
    placement : {"identity", "scattered"}, optional
        Whether the hot part lies at the front or is spread.
    **common
        See :class:`Common`.

    Examples
    --------
    >>> hot_cold(hot_space=0.1, hot_access=0.9)
    Workload('hot-cold:hot-space=0.1,hot-access=0.9')
    """
    own: dict[str, object] = {
        "hot_space": hot_space,
        "hot_access": hot_access,
        "placement": placement,
    }
    return _build("hot-cold", own, common)


def zipf(
    *,
    accesses: float | None = None,
    space: float | None = None,
    chunk: str | None = None,
    placement: Literal["scattered", "identity"] | None = None,
    **common: Unpack[Common],
) -> Workload:
    """Zipf's law over chunks of the space.

    Parameters
    ----------
    accesses, space : float, optional
        So that this share of the requests goes to the hottest such share of the space.
    chunk : str, optional
        Popularity is constant within chunks of this size.
    placement : {"scattered", "identity"}, optional
        Chunks in random order, or hottest first.
    **common
        See :class:`Common`.

    Examples
    --------
    >>> zipf(accesses=0.9, space=0.1)
    Workload('zipf:accesses=0.9,space=0.1')
    """
    own: dict[str, object] = {
        "accesses": accesses,
        "space": space,
        "chunk": chunk,
        "placement": placement,
    }
    return _build("zipf", own, common)


def dynamic_static(*, static: float | None = None, **common: Unpack[Common]) -> Workload:
    """Uniform writes to one part of the space; the other is never written.

    Parameters
    ----------
    static : float, optional
        Share of the space that is never written.
    **common
        See :class:`Common`.

    Examples
    --------
    >>> dynamic_static(static=0.5)
    Workload('dynamic-static:static=0.5')
    """
    return _build("dynamic-static", {"static": static}, common)


def dftl_a(
    *, sequential: float | None = None, run: int | None = None, **common: Unpack[Common]
) -> Workload:
    """Mostly random requests with short runs, as the first synthetic workload of the DFTL paper.

    Parameters
    ----------
    sequential : float, optional
        Share of requests that start where the last one ended.
    run : int, optional
        Mean requests in such a run.
    **common
        See :class:`Common`.

    Examples
    --------
    >>> dftl_a(sequential=0.1)
    Workload('dftl-a:sequential=0.1')
    """
    return _build("dftl-a", {"sequential": sequential, "run": run}, common)


def dftl_b(
    *, sequential: float | None = None, run: int | None = None, **common: Unpack[Common]
) -> Workload:
    """Mostly long runs, as the second synthetic workload of the DFTL paper; parameters as :func:`dftl_a`.

    Examples
    --------
    >>> dftl_b(run=32)
    Workload('dftl-b:run=32')
    """
    return _build("dftl-b", {"sequential": sequential, "run": run}, common)


def stand_in(trace: str, *, variant: str | None = None, **common: Unpack[Common]) -> Workload:
    """A synthetic stand-in for a known trace that can't be shipped, calibrated to its published statistics.

    Parameters
    ----------
    trace : str
        Such as ``"financial1"``; an unknown name is answered with the known ones.
    variant : str, optional
        Whose statistics.
    **common
        See :class:`Common`.

    Examples
    --------
    >>> stand_in("financial1")
    Workload('stand-in:financial1')
    """
    return _build("stand-in", {"trace": trace, "variant": variant}, common)


def postmark(
    *,
    files: int | None = None,
    subdirectories: int | None = None,
    transactions: int | None = None,
    size: str | None = None,
    size_low: str | None = None,
    size_high: str | None = None,
    seed: int | None = None,
    **more: str | float,
) -> Workload:
    """Postmark on a file system: a program that waits for the drive, so that depth and rate do not apply.

    Parameters
    ----------
    files, subdirectories, transactions : int, optional
        Files made at first, directories they are spread over, transactions.
    size : str, optional
        Size of every file; instead of the range.
    size_low, size_high : str, optional
        Sizes of the smallest and the largest file.
    seed : int, optional
        Of the program's random numbers; that of the run if left out.
    **more
        Further keys of the workload, the file system's among them, such as ``layout="extents"`` or ``memory="1GiB"``.

    Examples
    --------
    >>> postmark(files=200, size="8MiB", layout="ext3", request_unit="block")
    Workload('postmark:files=200,size=8MiB,request-unit=block')
    """
    own: dict[str, object] = {
        "files": files,
        "subdirectories": subdirectories,
        "transactions": transactions,
        "size": size,
        "size_low": size_low,
        "size_high": size_high,
        "seed": seed,
    }
    return _build("postmark", {**own, **more}, {})


def filebench(
    profile: Literal["webserver", "fileserver", "oltp", "varmail"],
    *,
    files: int | None = None,
    size: str | None = None,
    threads: int | None = None,
    duration: str | None = None,
    **more: str | float,
) -> Workload:
    """A profile of Filebench on a file system: threads that wait for the drive, so that depth and rate do not apply.

    Parameters
    ----------
    profile : {"webserver", "fileserver", "oltp", "varmail"}
        What each thread does over and over.
    files : int, optional
        Files of the set.
    size : str, optional
        Their mean size.
    threads : int, optional
        Threads; under ``oltp`` those that read.
    duration : str, optional
        How long it runs once the files are there.
    **more
        Further keys of the workload, the file system's among them.

    Examples
    --------
    >>> filebench("webserver", size="16MiB", threads=16)
    Workload('filebench-webserver:size=16MiB,threads=16')
    """
    own: dict[str, object] = {
        "files": files,
        "size": size,
        "threads": threads,
        "duration": duration,
    }
    return _build(f"filebench-{profile}", {**own, **more}, {})


@checked()
def trace(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    addresses: Addresses = "wrap",
    devices: list[str] | tuple[str, ...] | None = None,
    overlay: bool = False,
    skip_bad_lines: bool = False,
    repeat: int = 1,
) -> Trace:
    """A trace file; plain or compressed with gzip, zstd or xz.

    Parameters
    ----------
    path : path
        The file, or ``"bundled:NAME"``; ``"-"`` is standard input. What comes through a pipe is kept in a temporary
        file until the process ends.
    format : str, optional
        Told from the content if left out.
    addresses : {"wrap", "reject", "dense"}, optional
        How its addresses are fitted to the drive.
    devices : sequence of str, optional
        Names of the devices (ASUs, disks, volumes) to play; all if left out.
    overlay : bool, optional
        Lay the devices over each other instead of end to end.
    skip_bad_lines : bool, optional
        Count lines that can't be read instead of stopping at the first.
    repeat : int, optional
        How often the trace is played, one time after the other.

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
    elif not Path(text).exists():
        raise TraceError(f"{text}: there is no such file", _bundled_hint())
    if repeat < 1:
        raise WorkloadError(f"repeat: found {repeat}, expected 1 or more")
    names = None if devices is None else tuple(devices)
    return Trace(text, format, addresses, names, overlay, skip_bad_lines, repeat, label)


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
    """A trace that comes with the package; see ``traces/README.md`` for what each is.

    Parameters
    ----------
    name : str
        One of :func:`bundled_traces`.

    Examples
    --------
    >>> bundled("pgbench").addresses
    'wrap'
    """
    known = bundled_traces()
    if name not in known:
        raise TraceError(f"there is no bundled trace {name!r}", _bundled_hint())
    return Trace(str(known[name]), name=f"bundled:{name}")


def _bundled_hint() -> str:
    return "bundled traces: " + ", ".join(f"bundled:{name}" for name in bundled_traces())
