"""The generated workloads, each as a call."""

from __future__ import annotations

import os
from typing import Literal, Unpack

from flashwright.traces.sources import Common, Workload, parse

__all__ = [
    "dftl_a",
    "dftl_b",
    "dynamic_static",
    "filebench",
    "hot_cold",
    "mixed",
    "model",
    "pareto",
    "postmark",
    "sequential",
    "stand_in",
    "strided",
    "uniform",
    "zipf",
]


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
    theta: float | None = None,
    accesses: float | None = None,
    space: float | None = None,
    chunk: str | None = None,
    placement: Literal["scattered", "identity"] | None = None,
    **common: Unpack[Common],
) -> Workload:
    """Zipf's law, by its exponent over the places of requests, or by shares over chunks of the space.

    Parameters
    ----------
    theta : float, optional
        The exponent, as of YCSB and fio: the place of rank k gets 1/k^theta of the requests of the first. A place is
        as large as a request.
    accesses, space : float, optional
        In place of `theta`: this share of the requests goes to the hottest such share of the space.
    chunk : str, optional
        Popularity is constant within chunks of this size: by default 256 KiB, or one place with `theta`.
    placement : {"scattered", "identity"}, optional
        Chunks or places in random order, or hottest first.
    **common
        See :class:`Common`.

    Examples
    --------
    >>> zipf(theta=0.99, write=0.5), zipf(accesses=0.9, space=0.1)
    (Workload('zipf:0.99,write=0.5'), Workload('zipf:accesses=0.9,space=0.1'))
    """
    own: dict[str, object] = {
        "theta": theta,
        "accesses": accesses,
        "space": space,
        "chunk": chunk,
        "placement": placement,
    }
    return _build("zipf", own, common)


def pareto(
    *,
    h: float | None = None,
    placement: Literal["scattered", "identity"] | None = None,
    **common: Unpack[Common],
) -> Workload:
    """Self-similar popularity, as fio's ``random_distribution=pareto:h`` and sysbench's ``pareto``.

    Parameters
    ----------
    h : float, optional
        This share of the space gets all accesses but such a share, and so on within it.
    placement : {"scattered", "identity"}, optional
        Places in random order, or hottest first.
    **common
        See :class:`Common`.

    Examples
    --------
    >>> pareto(h=0.1)
    Workload('pareto:0.1')
    """
    return _build("pareto", {"h": h, "placement": placement}, common)


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

    Where the head of such a trace is public, requests follow one another as in it: those of Financial 1 and 2,
    WebSearch, MSN, Exchange and Build do.

    Parameters
    ----------
    trace : str
        Such as ``"financial1"``; an unknown name is answered with the known ones.
    variant : str, optional
        Whose statistics; with ``"statistics-only"`` alone or at the end, such as ``"hu12-statistics-only"``, without
        the locality of a head.
    **common
        See :class:`Common`.

    Examples
    --------
    >>> stand_in("financial1")
    Workload('stand-in:financial1')
    """
    return _build("stand-in", {"trace": trace, "variant": variant}, common)


def model(
    file: str | os.PathLike[str],
    *,
    scale: float | None = None,
    rate_scale: float | None = None,
    **common: Unpack[Common],
) -> Workload:
    """A model that :func:`flashwright.fit_trace` fitted to a trace, at any length, footprint and rate.

    Parameters
    ----------
    file : path
        The model; a path without a comma. It is read now, and a run refuses it if it was changed since.
    scale : float, optional
        Footprint over that of the trace; at most 1 for a sequence.
    rate_scale : float, optional
        Rate of arrivals over that of the trace; `rate` gives requests per second instead, `depth` a closed loop.
    **common
        See :class:`Common`.

    Examples
    --------
    >>> model("missing.toml")
    Traceback (most recent call last):
    ...
    flashwright.errors.WorkloadError: workload "model:file=missing.toml": file: found missing.toml: no such file, ...
    """
    own: dict[str, object] = {"file": os.fspath(file), "scale": scale, "rate_scale": rate_scale}
    return _build("model", own, common)


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
