"""What a run's own keys may be varied to: workloads and their keys, depth, time scale."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping

from flashwright.errors import WorkloadError
from flashwright.support.core import _core
from flashwright.traces import workloads
from flashwright.traces.tenants import Load, Tenants

__all__ = ["WORKLOAD", "as_source", "as_time_scale", "as_whole", "with_keys"]

WORKLOAD = "workload."


def as_source(value: object) -> Load:
    """A workload, or what its text or a trace's file says."""
    return (
        value
        if isinstance(value, workloads.Workload | workloads.Trace | Tenants)
        else workloads.find(str(value))
    )


def as_whole(key: str, value: object, least: int) -> int:
    """A value of a key that takes whole numbers."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise WorkloadError(f"{key}: found {value!r}, expected a whole number from {least} up", "")
    return value


def as_time_scale(value: object) -> float:
    """A value of ``time-scale``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WorkloadError(
            f"time-scale: found {value!r}, expected a number from 0 to 1,000,000", ""
        )
    return value


def with_keys(source: Load, keys: Mapping[str, object]) -> workloads.Workload:
    """The same workload with other values for some of its keys."""
    if not isinstance(source, workloads.Workload):
        what = "tenants" if isinstance(source, Tenants) else "a trace"
        raise WorkloadError(
            f"{WORKLOAD}{next(iter(keys))}: found with {what}, expected a workload that has keys",
            "play a generator, or vary depth or time-scale",
        )
    name, _, rest = source.spec.partition(":")
    about = next(row for row in json.loads(_core.workloads()) if row["name"] == name)
    known = [key["name"] for key in about["keys"]]
    for key in keys:
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            raise WorkloadError(
                f"{WORKLOAD}{key}: found an unknown key of {name}, expected one of "
                f"{', '.join(WORKLOAD + each for each in known)}",
                f"did you mean {WORKLOAD}{close[0]}?" if close else None,
            )
    pairs: dict[str, object] = {}
    for part in rest.split(",") if rest else []:
        key, equals, value = part.partition("=")
        pairs[key if equals else about["bare_key"]] = value if equals else part
    pairs.update(keys)
    return workloads.parse(f"{name}:{','.join(f'{key}={value}' for key, value in pairs.items())}")
