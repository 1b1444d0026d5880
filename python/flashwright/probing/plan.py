"""What a session of probes will ask of a target at most, before anything is written."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from flashwright.drive.findings import Finding
from flashwright.probing.costs import Bill, Endurance
from flashwright.probing.declared import partition
from flashwright.probing.drive_time import Pace, allowed_s, usually
from flashwright.target.question import Context, Cost, Mode, Probe, reads_alone
from flashwright.target.target import Target
from flashwright.twin.calibration import cost as cost_of_calibration
from flashwright.twin.check import cost as cost_of_check

__all__ = ["Planned", "bill", "drive_bytes", "pace_of", "planned"]

# Rates of what was not measured beforehand. Chosen: those of a SATA drive.
# Of reads, bytes per second.
_READ_BYTES_PER_S = 500e6
# Of writes, bytes per second.
_WRITE_BYTES_PER_S = 400e6
# Of a request beside its bytes, seconds.
_REQUEST_S = 50e-6
# What earlier probes may find that costs later ones most: clustered pages, bytes.
_PAGES = (None, 4 << 10, 128 << 10, 256 << 10)
# Write buffers, bytes.
_BUFFERS = (None, 64 << 20)
# Mappings.
_MAPPINGS = (None, "page", "log-block")
# The least reads that a buffer keeps, bytes.
_LEASTS = (None, 512 << 10)


@dataclass(frozen=True)
class Planned:
    """What a session will ask.

    Attributes
    ----------
    name, about : str
        Of the probe.
    cost : Cost
        What it reads and writes at most.
    seconds : float
        About how long that takes on the target's clock on most drives, and no longer than it is allowed.
    done : bool
        Whether an earlier session has its findings already.
    usual_bytes : int
        About how much it reads and writes on most drives, within that time.
    """

    name: str
    about: str
    cost: Cost
    seconds: float
    done: bool
    usual_bytes: int = 0


def planned(
    target: Target,
    probes: Sequence[Probe],
    mode: Mode,
    seed: int,
    findings: Mapping[str, Finding],
    done: Collection[str],
    *,
    limit_s: float = math.inf,
    twin: bool = False,
    check: bool = False,
) -> list[Planned]:
    """What probes, and the making of a twin, will ask of a target at most.

    What later steps ask depends on what earlier ones find; so the costliest of some cases is taken.

    Parameters
    ----------
    target : Target
        The drive; a real one is read for a moment to see how fast it is.
    probes : sequence of Probe
        In order. Those that need writes are left out where reads alone are allowed.
    mode, seed
        As of :func:`flashwright.probe`.
    findings : mapping of str to Finding
        What is known already.
    done : collection of str
        Names of probes that an earlier session asked.
    limit_s : float, optional
        What the probes may take of the drive's own time, seconds.
    twin, check : bool, optional
        Whether a twin is made, and checked.
    """
    pace = pace_of(target)
    made: list[Planned] = []

    def costing(
        name: str, about: str, cost: Cost, allowed: float = math.inf, *, last: bool = False
    ) -> Planned:
        volume, seconds = usually(cost, name, pace, allowed, last=last)
        return Planned(name, about, cost, seconds, name in done, volume)

    open_: set[str] = set()
    costed: list[tuple[Probe, Cost]] = []
    for asking in probes:
        if target.read_only and not reads_alone(asking):
            continue
        cases = [
            asking.cost(Context(target, mode, seed, known)) for known in _cases(findings, open_)
        ]
        costed.append((asking, _costliest(cases)))
        if asking.NAME not in done:
            open_ |= set(asking.PARAMETERS)
    for at, (asking, cost) in enumerate(costed):
        later = {each.NAME: pace.seconds(most) for each, most in costed[at + 1 :]}
        taken = sum(item.seconds for item in made)
        allowed = allowed_s(limit_s, taken, asking.NAME, later)
        made.append(costing(asking.NAME, asking.ABOUT, cost, allowed))
    # What was put off is asked in the end, if time is left.
    for at, (asking, cost) in enumerate(costed):
        if not made[at].seconds:
            allowed = allowed_s(limit_s, sum(item.seconds for item in made), asking.NAME, {})
            made[at] = costing(asking.NAME, asking.ABOUT, cost, allowed, last=True)
    size, block = target.capacity_bytes, target.block_bytes
    if twin:
        cases = [
            cost_of_calibration(known, capacity_bytes=size, block_bytes=block, mode=mode)
            for known in _cases(findings, open_)
        ]
        about = "fixed patterns for fitting a model"
        made.append(costing("calibration", about, _costliest(cases)))
    if check:
        about = "a held-out pattern for the model to predict"
        made.append(costing("check", about, cost_of_check(size, block)))
    return made


def _costliest(cases: Sequence[Cost]) -> Cost:
    """The most of each figure."""
    return Cost(
        max(case.bytes_read for case in cases),
        max(case.bytes_written for case in cases),
        max(case.requests for case in cases),
        cases[0].seconds_max,
    )


def _cases(known: Mapping[str, Finding], open_: Collection[str]) -> Iterator[dict[str, Finding]]:
    """What may be known once the probes for `open_` have run."""
    options: list[list[Finding | None]] = []
    values: tuple[int | str | None, ...]
    for parameter, unit, values in (
        ("clustered-page", "B", _PAGES),
        ("write-buffer", "B", _BUFFERS),
        ("mapping", "", _MAPPINGS),
        ("read-buffer-least", "B", _LEASTS),
    ):
        if parameter in open_:
            found = Finding(parameter, "found", unit=unit)
            options.append([None if v is None else replace(found, value=v) for v in values])
    for case in itertools.product(*options):
        yield dict(known) | {found.parameter: found for found in case if found is not None}


def pace_of(target: Target) -> Pace:
    """How fast a target is: a simulated one is written a little and purged, a real one is read for a moment.

    Parameters
    ----------
    target : Target
        The drive.
    """
    if not target.real_time:
        return Pace.of(target)
    rate = read_rate(target)
    # Writes are unknown until they are made: at most as fast as reads.
    return Pace(rate, min(rate, _WRITE_BYTES_PER_S), _REQUEST_S)


def read_rate(target: Target) -> float:
    """Bytes a second of some long reads over the target."""
    size = min(1 << 20, target.capacity_bytes // target.block_bytes * target.block_bytes)
    places = np.linspace(0, target.capacity_bytes - size, 32).astype(np.int64)
    places -= places % target.block_bytes
    times = target.play("read", places, size, depth=4)
    target.bytes_read -= size * places.size
    return min(size * places.size / max(times.duration_ns * 1e-9, 1e-9), 4 * _READ_BYTES_PER_S)


def drive_bytes(target: Target) -> int:
    """The size of the drive, of which a target may be a range or a partition."""
    if target.kind == "block-device" and target.path is not None:
        found = partition(target.path)
        if found is not None and found.disk_bytes:
            return found.disk_bytes
    return target.whole_bytes


def bill(target: Target, plan: Sequence[Planned], endurance: Endurance) -> Bill:
    """What is left of a plan, in all.

    Parameters
    ----------
    target : Target
        The drive, or a part of it.
    plan : sequence of Planned
        Of its session.
    endurance : Endurance
        What the drive may take.
    """
    left = [item for item in plan if not item.done]
    seconds = sum(item.seconds for item in left)
    return Bill(
        sum(item.cost.bytes_read for item in left),
        sum(item.cost.bytes_written for item in left),
        drive_bytes(target),
        seconds,
        f"reads at the rate just measured, writes no faster than {_WRITE_BYTES_PER_S / 1e6:.0f} MB/s, "
        f"{_REQUEST_S * 1e6:.0f} us per request"
        if target.real_time
        else "on the drive's own clock, at the pace of a few reads and writes",
        endurance,
    )
