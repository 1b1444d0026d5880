"""How much of a drive's own time a session may take, and how probes share it.

Quick mode ends within half an hour on the drive's clock and full mode within eight hours, however slow the drive is.
Each probe is sure of its share. What others are expected to leave over goes to the first that needs it. A probe that
runs out gives the findings it has; of the rest it says how long it would have needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from flashwright.drive.findings import Finding, unknown

if TYPE_CHECKING:
    from flashwright.target.deadline import Deadline
    from flashwright.target.question import Context, Cost, Mode, Probe
    from flashwright.target.target import Target

__all__ = [
    "LIMITS_S",
    "Pace",
    "ProbeTime",
    "allowed_s",
    "hopeless",
    "usually",
]

LIMITS_S: Mapping[Mode, float] = {"quick": 30 * 60.0, "full": 8 * 3600.0}
"""What a session may take of the drive's own time, seconds."""
# Share of that time that each probe is sure of. Chosen: most goes to those that others build on and that write the
# drive several times.
_SHARES = {
    "plausible": 0.025,
    "clustered-page": 0.13,
    "slc-cache": 0.095,
    "mapping": 0.17,
    "clustered-block": 0.095,
    "parallelism": 0.075,
    "read-buffer": 0.05,
    "prefetch": 0.05,
    "write-buffer": 0.055,
    "buffer-kind": 0.02,
    "flush": 0.03,
    "cleaning": 0.02,
    "map-reach": 0.05,
    "pauses": 0.02,
    "throttling": 0.04,
    "best-request": 0.025,
    "data-reduction": 0.02,
}
# The same of any other probe.
_SHARE = 0.015
# How much of its plan a probe takes at least if it comes to a verdict. Measured on the bundled drives; a plan is for
# the costliest case. Others may end early.
_LEAST_OF_PLAN = {
    "slc-cache": 0.3,
    "mapping": 0.8,
    "clustered-block": 0.15,
    "write-buffer": 0.6,
    "cleaning": 0.3,
    "map-reach": 0.9,
}
# A probe is not begun that needs so many times as much as it may have. Chosen: plans are a little high.
_HOPELESS = 1.3
# Share of the whole time above which nothing is reserved for a probe that needs so much. Chosen: others would starve.
_TOO_MUCH = 0.35
# After all others a probe is begun that may have this share of what it needs. Chosen: some end long before what is
# usual.
_WORTH_A_TRY = 0.2
# Share of a probe that must be done for its pace to say how long all of it takes. Chosen.
_PACE_FROM = 0.1
# A probe that ran out needs so many times as much as it had, at least. Chosen.
_NEEDS_MORE = 1.5
# Share of the time that is not given out. Chosen: a play is cut where a few requests are done.
_MARGIN = 0.04
# Bytes that are written to see how fast a simulated drive is, at most. Chosen: more than its RAM.
_PACE_BYTES = 256 << 20
# They take one of so many parts of the drive at most. Chosen: less than its spare space.
_PACE_PART = 16
# Requests outstanding of a load that goes on for a time. Chosen: as the probes of such loads have it.
_DEPTH = 32
# How much of its plan a probe takes usually. Measured on the bundled drives: the middle of both modes.
_USUAL = {
    "clustered-page": 0.4,
    "slc-cache": 0.26,
    "mapping": 0.55,
    "clustered-block": 0.1,
    "parallelism": 0.35,
    "read-buffer": 0.26,
    "prefetch": 0.36,
    "write-buffer": 0.85,
    "buffer-kind": 0.7,
    "flush": 0.5,
    "cleaning": 0.3,
    "map-reach": 0.75,
    "pauses": 0.5,
    "throttling": 0.8,
    "data-reduction": 0.1,
    "suspension": 0.02,
}


class Pace:
    """How long a drive takes for what a probe asks of it.

    Parameters
    ----------
    read_rate, write_rate : float
        Bytes per second.
    request_s : float
        Seconds that a request takes beside its bytes.
    timed : bool, optional
        Whether writes were timed, so that a limit of time is one of bytes.
    deep_rate : float, optional
        Bytes per second of several reads at once; by default that of single ones.

    Examples
    --------
    >>> from flashwright.target.question import Cost
    >>> Pace(500e6, 400e6, 50e-6).seconds(Cost(500_000_000, 400_000_000, 20_000))
    3.0
    """

    def __init__(
        self,
        read_rate: float,
        write_rate: float,
        request_s: float,
        *,
        timed: bool = False,
        deep_rate: float = 0.0,
    ) -> None:
        self.read_rate, self.write_rate, self.request_s = read_rate, write_rate, request_s
        self.timed, self.deep_rate = timed, max(deep_rate, read_rate)

    @classmethod
    def of(cls, target: Target) -> Pace:
        """The pace of a simulated drive: some writes in order and some short ones, and the same read.

        Its data is lost.
        """
        size = min(128 << 10, target.capacity_bytes // 64 // 4096 * 4096) or target.block_bytes
        size = -(-size // target.block_bytes) * target.block_bytes
        room = max(target.capacity_bytes // size // 2, 1)
        count = min(_PACE_BYTES, target.capacity_bytes // _PACE_PART) // size
        offsets = np.arange(max(min(count, room), 1), dtype=np.int64) * size
        short = max(target.block_bytes, 4096)
        before = target.bytes_read, target.bytes_written, target.flushes
        outer, target.watch = target.watch, None
        try:
            if not target.read_only:
                target.purge()
                wrote = target.play("write", offsets, size).duration_ns + target.flush()
                kinds = np.tile(np.array([1, 3], np.uint8), offsets.size)
                pairs = target.play(kinds, np.repeat(offsets, 2), short).duration_ns / kinds.size
            read = target.play("read", offsets, size).duration_ns
            deep = target.play("read", offsets, size, depth=_DEPTH).duration_ns
            reads = target.play("read", offsets, short).duration_ns / offsets.size
            if target.read_only:
                wrote, pairs = read, reads
            else:
                target.purge()
        finally:
            target.watch = outer
            target.bytes_read, target.bytes_written, target.flushes = before
        volume = float(offsets.size * size)
        rates = [volume / max(took * 1e-9, 1e-9) for took in (read, wrote, deep)]
        request_s = (pairs + reads) / 2 * 1e-9
        return cls(rates[0], rates[1], request_s, timed=True, deep_rate=rates[2])

    @property
    def timeless(self) -> bool:
        """Whether requests take no time, as on a simulated drive without times: no probe sees anything there."""
        return self.request_s <= 0.0

    def seconds(self, cost: Cost) -> float:
        """About how long that takes."""
        return min(
            math.inf if cost.seconds_max is None else cost.seconds_max,
            cost.bytes_read / self.read_rate
            + cost.bytes_written / self.write_rate
            + cost.requests * self.request_s,
        )


def usually(
    cost: Cost, name: str, pace: Pace, allowed: float, *, last: bool = False
) -> tuple[int, float]:
    """About what a probe moves and takes on most drives, within what it may take.

    Parameters
    ----------
    cost : Cost
        At most.
    name : str
        Of the probe.
    pace : Pace
        Of the drive.
    allowed : float
        Seconds of the drive's time.
    last : bool, optional
        Whether it is asked after all others.

    Returns
    -------
    bytes, seconds
        Nothing for a probe that will not be begun.
    """
    most = pace.seconds(cost)
    if pace.timeless or hopeless(name, most, allowed, last=last):
        return 0, 0.0
    share = _USUAL.get(name, 1.0)
    seconds = min(share * most, allowed)
    volume = share * (cost.bytes_read + cost.bytes_written)
    if pace.timed and cost.seconds_max is not None:
        # What goes on for a time asks several requests at once, as fast as the drive takes them.
        ended = min(allowed, cost.seconds_max)
        volume = min(volume, max(pace.deep_rate, pace.write_rate) * ended)
    elif pace.timed and share * most > allowed:
        volume *= allowed / (share * most)
    return int(volume), seconds


def ran_out(
    name: str, mode: Mode, limit_s: float, allowed_s: float, needs_s: float, *, begun: bool
) -> str:
    """Why a probe has no verdict whose part of the drive's time is over.

    Parameters
    ----------
    name : str
        Of the probe.
    mode : {"quick", "full"}
        Of the session.
    limit_s, allowed_s, needs_s : float
        Seconds that all probes may take, that this one might, and that it would need about.
    begun : bool
        Whether it was begun.

    Examples
    --------
    >>> ran_out("mapping", "full", 28800.0, 300.0, 2520.0, begun=True).split("; ")[1]
    'it would need about 42 minutes'
    """
    full_s = LIMITS_S["full"]
    more = ""
    if mode == "quick" and limit_s < full_s:
        more = f"; full mode allows {full_s / 3600:.0f} hours in all"
    minutes = f"{allowed_s / 60:.2g}" if allowed_s < 600 else f"{allowed_s / 60:,.0f}"
    had = f"{name} had {minutes}"
    if not begun:
        had = f"{minutes} were left for {name}, which was not begun"
    return (
        f"the drive's time ran out: of {limit_s / 60:,.0f} minutes on the drive's clock {had}; "
        f"it would need about {_rounded(needs_s / 60)}{more}"
    )


def _rounded(minutes: float) -> str:
    """Two digits of minutes: nobody knows more beforehand."""
    digits = float(f"{minutes:.2g}")
    return f"{digits:,.0f} minutes" if digits >= 2 else f"{digits:.2g} minutes"


def hopeless(name: str, planned_s: float, allowed_s: float, *, last: bool = False) -> bool:
    """Whether a probe is not begun, since it will hardly come to a verdict in the time that it may have.

    Where its turn comes it is put off, so that others have the time; after all of them what is left is nobody else's.

    Parameters
    ----------
    name : str
        Of the probe.
    planned_s, allowed_s : float
        What it takes at most, and what it may, seconds.
    last : bool, optional
        Whether all others have been asked.

    Examples
    --------
    >>> hopeless("mapping", 600.0, 120.0), hopeless("clustered-page", 600.0, 120.0)
    (True, False)
    >>> hopeless("mapping", 600.0, 120.0, last=True), hopeless("mapping", 600.0, 0.0, last=True)
    (False, True)
    """
    least = _LEAST_OF_PLAN.get(name, 0.0) * planned_s
    return _WORTH_A_TRY * least > allowed_s if last else least > _HOPELESS * allowed_s


def allowed_s(limit_s: float, spent_s: float, name: str, later_s: Mapping[str, float]) -> float:
    """What a probe may take of the drive's time.

    Parameters
    ----------
    limit_s : float
        Of the session.
    spent_s : float
        What earlier probes took.
    name : str
        Of the probe.
    later_s : mapping of str to float
        The probes after it, and about how long each would take.

    Returns
    -------
    float
        Seconds: all that is left, less what those after it are expected to need, up to the share that each is sure of.

    Examples
    --------
    >>> allowed_s(1800.0, 0.0, "mapping", {"flush": 10.0}), allowed_s(1800.0, 0.0, "mapping", {"flush": 1e3})
    (1718.0, 1676.16)
    """
    whole = limit_s * (1 - _MARGIN)
    kept = sum(
        min(need, _SHARES.get(each, _SHARE) * whole)
        for each, need in later_s.items()
        if _LEAST_OF_PLAN.get(each, 0.0) * need <= _TOO_MUCH * whole
    )
    return max(whole - spent_s - kept, 0.0)


@dataclass(frozen=True)
class ProbeTime:
    """What a probe may take of the drive's time, and how far it got.

    Attributes
    ----------
    limit_s : float
        Of the session, seconds.
    watch : Deadline
        On our clock.
    pace : Pace
        Of the drive.
    allowed_s : float
        Of the probe, seconds.
    reached : list of float
        The share of it that is done; one number.
    last : bool
        Whether all others have been asked.
    """

    limit_s: float
    watch: Deadline
    pace: Pace
    allowed_s: float
    reached: list[float]
    last: bool = False

    def hopeless(self, asking: Probe, context: Context) -> bool:
        """Whether the probe would reach no verdict in that time."""
        planned_s = self.pace.seconds(asking.cost(context))
        return hopeless(asking.NAME, planned_s, self.allowed_s, last=self.last)

    def short(self, asking: Probe, context: Context, *, begun: bool = True) -> list[Finding]:
        """What a probe gives that has run out of the drive's time."""
        planned_s = self.pace.seconds(asking.cost(context))
        reached_s = self.allowed_s / self.reached[0] if self.reached[0] >= _PACE_FROM else 0.0
        needs = max(planned_s, reached_s, self.allowed_s * _NEEDS_MORE)
        why = ran_out(asking.NAME, context.mode, self.limit_s, self.allowed_s, needs, begun=begun)
        return [
            context.kept.get(name, unknown(name, why, planned_s=planned_s))
            for name in asking.PARAMETERS
        ]
