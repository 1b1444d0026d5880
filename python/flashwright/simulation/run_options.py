"""The options of a run, beside drive and workload.

Written by ``make generate`` from ``crates/sim/src/options.rs``; change that instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

__all__ = ["LIMITS", "TEXT", "OptionKeywords", "RunOptions"]


class OptionKeywords(TypedDict, total=False):
    """The options as keywords; :data:`TEXT` describes each."""

    time_scale: float | None
    depth: int | None
    requests: int | None
    warmup: int
    seed: int
    window: str | None
    closeup: tuple[int, int] | None
    snapshots: int | None
    verify: bool
    audit_every: int
    keep_requests: bool


@dataclass(frozen=True)
class RunOptions:
    """The options with their defaults; :data:`TEXT` describes each."""

    time_scale: float | None = None
    depth: int | None = None
    requests: int | None = None
    warmup: int = 0
    seed: int = 1
    window: str | None = None
    closeup: tuple[int, int] | None = None
    snapshots: int | None = None
    verify: bool = False
    audit_every: int = 0
    keep_requests: bool = False


LIMITS: dict[str, tuple[str, int, int]] = {
    "time_scale": ("a number", 0, 1000000),
    "depth": ("a whole number", 1, 1048576),
    "requests": ("a whole number", 1, 9223372036854775808),
    "warmup": ("a whole number", 0, 9223372036854775808),
    "seed": ("a whole number", 0, 18446744073709551615),
    "snapshots": ("a whole number", 2, 1000),
    "audit_every": ("a whole number", 0, 9223372036854775808),
}
"""Kind, least and most of the options that are numbers."""

TEXT = """
time_scale : float, optional
    Multiply arrival times; 0.5 plays twice as fast. An open loop. Without this and `depth` the
    workload sets its own pace.
depth : int, optional
    Closed loop: keep N requests outstanding, and ignore arrival times. A drive whose description
    leaves ``host.queue-depth`` open takes as many at once; of others the rest waits in the driver.
requests : int, optional
    Measure at most N requests. By default a trace to its end, a stand-in as long as its statistics
    need, and a million of any other workload.
warmup : int
    Play N requests before measuring begins.
seed : int
    Random seed; the same seed repeats the run exactly.
window : str, optional
    Length of a window of the time series: requests=N, time=10ms or off. By default 1,000 requests,
    and fewer where a run is short.
closeup : tuple[int, int], optional
    Record single requests: the number of the first, counted from 0 after the warm-up, and how many.
    They are the result's ``closeup``, and a page shows them.
snapshots : int, optional
    Take up to N snapshots of all blocks, evenly over the run. They are the result's ``snapshots``,
    and need a time series; a page shows them as maps.
verify : bool
    Check every read, and the drive's state at the end.
audit_every : int
    Check the whole state every N requests too, which implies verify.
keep_requests : bool
    Keep a row for every request (44 bytes each).
"""
"""Every option as docstrings describe parameters."""
