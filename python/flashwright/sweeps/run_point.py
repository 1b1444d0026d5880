"""One point of a sweep: a run as plain arguments, and how it is played wherever that is.

The arguments hold all that decides the result: the whole configuration, the preconditioning, the workload or the digest
of the trace, the settings of the run, and a digest of the code. Where a trace lies is told beside them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

from flashwright.drive import policies
from flashwright.errors import SweepError, TraceError
from flashwright.simulation.identity import beginning_of_run
from flashwright.simulation.run import Run, RunSettings
from flashwright.simulation.variant import Variant
from flashwright.support.core import _core
from flashwright.support.digests import digest_of_code, digest_of_file
from flashwright.support.files import reason
from flashwright.sweeps.points import Point
from flashwright.traces.tenants import Load, Tenants
from flashwright.traces.workloads import Trace, Workload

__all__ = ["code", "play", "point_of", "sharing"]

_MODULES = (
    "flashwright.simulation.run",
    "flashwright.simulation.results",
    "flashwright.traces.sources",
    "flashwright.traces.tenants",
    "flashwright.traces.workloads",
    "flashwright.sweeps.run_point",
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
    PolicyError
        If another process can't make one of its policies again.
    SweepError
        If a tenant plays a trace.

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
    source: dict[str, Any]
    whereabouts: dict[str, Any] = {}
    if isinstance(variant.source, Workload):
        source = {"workload": variant.source.spec}
    elif isinstance(variant.source, Tenants):
        if variant.source.traces:
            raise SweepError(
                f"{label}: found a trace among the tenants, expected workloads",
                "compare() plays tenants with traces; a sweep keeps its runs under a hash of what produced them",
            )
        texts = [tenant.text for tenant in variant.source.all]
        source = {"tenants": texts, "compared": variant.source.compared}
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
        "settings": asdict(replace(variant.settings, window="off", policies=())),
        "made_by": code(),
    }
    if variant.settings.policies:
        forms, files = zip(*map(policies.to_portable, variant.settings.policies), strict=True)
        arguments["python_policies"], whereabouts["policy_files"] = list(forms), list(files)
    return Point("flashwright.sweeps.run_point:play", arguments, label, whereabouts=whereabouts)


def play(
    drive: str,
    precondition: str,
    source: Mapping[str, Any],
    settings: Mapping[str, Any],
    made_by: str,
    python_policies: Sequence[Mapping[str, Any]] = (),
    path: str = "",
    policy_files: Sequence[str] = (),
    shared: str = "",
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
        Of :class:`~flashwright.simulation.run.RunSettings`.
    made_by : str
        The digest of the code that is expected here.
    python_policies : sequence of mappings, optional
        Policies written in Python, as :func:`~flashwright.drive.policies.to_portable` tells of them.
    path : str, optional
        Where the trace lies.
    policy_files : sequence of str, optional
        Where the file of each of these policies lies.
    shared : str, optional
        Not empty if other points begin with the same preconditioned drive (:func:`sharing`).

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
    played: Load
    if "workload" in source:
        played = Workload(source["workload"])
    elif "tenants" in source:
        played = Tenants.of(source["tenants"], compared=source["compared"])
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
    own = [
        policies.from_portable(form, file)
        for form, file in zip(python_policies, policy_files, strict=True)
    ]
    run_settings = RunSettings(**{**settings, "policies": own})
    run = Run.create(
        drive, precondition, played, run_settings, shared=_shared() if shared else None
    )
    figures = run.go().json
    # As it comes out of the store.
    figures = json.loads(json.dumps(figures))
    return {"machine": figures.pop("run"), "figures": figures}


@cache
def _shared() -> _core.SharedDrive:
    """Where the runs of this process find the drive of the one before."""
    return _core.SharedDrive()


def sharing(points: Sequence[Point]) -> list[Point]:
    """Put together the runs that begin with the same preconditioned drive, and tell each of them so.

    A process that plays one after the other preconditions their drive once. What is told makes no difference to keys
    and results; whether two states are the same is for the simulator to decide.

    Parameters
    ----------
    points : sequence of Point
        Of :func:`point_of`.

    Returns
    -------
    list of Point
        The same, in order of the first of each group.

    Examples
    --------
    >>> from flashwright import Ssd, workloads
    >>> ssd = Ssd.named("default").precondition("random")
    >>> runs = [RunSettings(requests=100, depth=depth, seed=seed) for depth in (1, 8) for seed in (1, 2)]
    >>> points = [
    ...     point_of(Variant(ssd, workloads.uniform(), run, {}), f"{run.depth}, {run.seed}")
    ...     for run in runs
    ... ]
    >>> [point.label for point in sharing(points)]
    ['1, 1', '8, 1', '1, 2', '8, 2']
    """
    groups: dict[str, list[Point]] = {}
    for point in points:
        own = point.arguments
        if "python_policies" in own:
            # The simulator has no copy of their state.
            groups.setdefault(point.key, []).append(point)
            continue
        beginning = beginning_of_run(
            own["drive"],
            own["precondition"],
            own["source"],
            own["settings"]["seed"],
            own["settings"]["verify"],
        )
        groups.setdefault(beginning, []).append(point)
    return [
        replace(point, whereabouts={**point.whereabouts, "shared": group})
        if len(together) > 1 and group
        else point
        for group, together in groups.items()
        for point in together
    ]


def _digest(path: str) -> str:
    try:
        return digest_of_file(path)
    except OSError as error:
        raise TraceError(f"{path}: {reason(error)}", "") from None
