"""One point of a sweep: a run as plain arguments, and how it is played wherever that is.

The arguments hold all that decides the result: the whole configuration, the preconditioning, the workload or the digest
of the trace, the settings of the run, and a digest of the code. Where a trace lies is told beside them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from flashwright.drive.policies import name_of
from flashwright.errors import SweepError, TraceError
from flashwright.grid.points import Point
from flashwright.run.compare import Variant
from flashwright.run.run import Run, RunSettings
from flashwright.support.digests import digest_of_code, digest_of_file
from flashwright.traces.workloads import Trace, Workload

__all__ = ["code", "play", "point_of"]

_MODULES = (
    "flashwright.run.run",
    "flashwright.run.results",
    "flashwright.traces.sources",
    "flashwright.traces.workloads",
    "flashwright.grid.sweeppoint",
)


def code() -> str:
    """The digest of the code that a result depends on.

    Examples
    --------
    >>> len(code())
    32
    """
    return digest_of_code(*_MODULES)


def point_of(variant: Variant, label: str) -> Point:
    """A run as a point to compute.

    Parameters
    ----------
    variant : Variant
        Its drive, what is played, and how.
    label : str
        What people know it by.

    Raises
    ------
    SweepError
        If it takes policies written in Python.

    Examples
    --------
    >>> from flashwright import Ssd, workloads
    >>> run = Variant(
    ...     Ssd.named("default"), workloads.uniform(), RunSettings(requests=100, depth=1), {}
    ... )
    >>> point = point_of(run, "a run")
    >>> play(**point.arguments)["figures"]["measured"]["requests"]
    100
    """
    if variant.settings.policies:
        given = ", ".join(name_of(policy) for policy in variant.settings.policies)
        raise SweepError(
            f"{label}: found {given}, expected policies of the simulator's own",
            "compare() runs policies written in Python; a sweep keeps its runs under a hash of what produced them",
        )
    source: dict[str, Any]
    whereabouts: dict[str, str] = {}
    if isinstance(variant.source, Workload):
        source = {"workload": variant.source.spec}
    else:
        trace = variant.source
        # Not under which folder: the same file elsewhere is the same trace.
        source = asdict(replace(trace, path="", name=Path(trace.name or trace.path).name))
        source["digest"] = _digest(trace.path)
        whereabouts["path"] = str(Path(trace.path).absolute())
    arguments = {
        "drive": variant.ssd.toml,
        "precondition": variant.ssd.preconditioning or "empty",
        "source": source,
        # A sweep keeps no time series.
        "settings": asdict(replace(variant.settings, window="off")),
        "made_by": code(),
    }
    return Point("flashwright.grid.sweeppoint:play", arguments, label, whereabouts=whereabouts)


def play(
    drive: str,
    precondition: str,
    source: Mapping[str, Any],
    settings: Mapping[str, Any],
    made_by: str,
    path: str = "",
) -> dict[str, Any]:
    """Play a run.

    Parameters
    ----------
    drive : str
        The whole configuration.
    precondition : str
        What is done to the drive first.
    source : mapping
        The workload, or how a trace is read and the digest of its file.
    settings : mapping
        Of :class:`~flashwright.run.run.RunSettings`.
    made_by : str
        The digest of the code that is expected here.
    path : str, optional
        Where the trace lies.

    Returns
    -------
    dict
        ``figures``: the documented figures that hang on nothing but the arguments; ``machine``: what the run took here.

    Raises
    ------
    SweepError
        If the code here is another than that of whoever asks.
    TraceError
        If the trace here is another.
    """
    if made_by != code():
        raise SweepError(
            f"found another version of the simulator here (digest {code()}), expected {made_by}"
        )
    played: Workload | Trace
    if "workload" in source:
        played = Workload(source["workload"])
    else:
        options = {key: value for key, value in source.items() if key != "digest"}
        devices = options["devices"]
        played = Trace(
            **{**options, "path": path, "devices": None if devices is None else tuple(devices)}
        )
        if _digest(path) != source["digest"]:
            raise TraceError(
                f"{path}: found other content here, expected the content from when the sweep started",
                "",
            )
    run = Run.create(drive, precondition, played, RunSettings(**settings))
    figures = run.go().json
    # As it comes out of the store.
    figures = json.loads(json.dumps(figures))
    return {"machine": figures.pop("run"), "figures": figures}


def _digest(path: str) -> str:
    try:
        return digest_of_file(path)
    except OSError as error:
        raise TraceError(f"{path}: {(error.strerror or str(error)).lower()}", "") from None
