"""The calibration of a twin: a fixed set of patterns that is measured on drive and model alike.

Each pattern is a pure description: it makes the same requests wherever it is played. Those of a stage follow each
other, from a purged drive on, so that each pattern finds the same state on both.

Sources: Kim, Seo, Jung, Kim, Huh: "Parameter-aware I/O management for solid state disks" (2011), section 4, for the
signals of page, buffers and prefetch; Hu's dissertation (2012), sections 4.2 and 5.1, for overwriting, queue lengths
and mixing. Which patterns, and how many requests of each, is our choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from flashwright.drive.findings import Finding
from flashwright.errors import MissingResultError, TargetError
from flashwright.target.arrays import Array, Ints
from flashwright.target.question import Cost, Mode
from flashwright.target.target import Target, Times
from flashwright.twin.patterns import (
    FLUSH,
    LEAST_BYTES,
    READ,
    WRITE,
    Kinds,
    Pattern,
    Stage,
    patterns,
    unit_of,
)

__all__ = ["Calibration", "Level", "Measured", "calibrate", "cost", "play"]

# Levels of the latencies of a pattern.
_LEVELS = ("mean_ns", "p10_ns", "p50_ns", "p90_ns", "p99_ns")
_KINDS: tuple[Kinds, ...] = ("read", "write", "flush")
# Bytes of a write that prepares. Chosen: large enough to be quick, and no drive that we know has a larger stripe.
_FILL_BYTES = 1 << 20
# Rest after the fill, nanoseconds. Chosen: an SLC cache empties in that time.
_REST_NS = 30e9
# Parts of a pattern whose levels say how sure those of all of it are.
_PARTS = 10
# Requests of a part, at least.
_OF_PART = 8


@dataclass(frozen=True)
class Level:
    """Latencies of one kind of request in a pattern, nanoseconds.

    Attributes
    ----------
    requests : int
        How many there were.
    mean_ns, p10_ns, p50_ns, p90_ns, p99_ns : float
        Mean and percentiles.
    errors : mapping of str to float
        By the names above, how much each may be off by chance: standard error of its logarithm, from parts of the
        requests in order. Empty where it was not asked for.
    """

    requests: int
    mean_ns: float
    p10_ns: float
    p50_ns: float
    p90_ns: float
    p99_ns: float
    errors: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, latency_ns: Array, *, errors: bool = False) -> Level:
        """Of these latencies, nanoseconds; at least one. With how sure they are if asked for."""
        p10, p50, p90, p99 = np.percentile(latency_ns, [10, 50, 90, 99])
        mean = float(latency_ns.mean())
        level = cls(latency_ns.size, mean, float(p10), float(p50), float(p90), float(p99))
        parts = min(latency_ns.size // _OF_PART, _PARTS)
        if not errors or parts < 2:
            return level
        pieces = [cls.of(part) for part in np.array_split(latency_ns, parts)]
        sure = {
            name: float(
                np.std(np.log([max(getattr(p, name), 1.0) for p in pieces]), ddof=1)
                / np.sqrt(parts)
            )
            for name in _LEVELS
        }
        return replace(level, errors=sure)


@dataclass(frozen=True)
class Measured:
    """What a pattern gave.

    Attributes
    ----------
    pattern : Pattern
        What was played.
    levels : mapping of str to Level
        By kind: ``"read"``, ``"write"``, ``"flush"``; those that occur.
    bandwidth : float
        Bytes per second.
    spread : float
        Median absolute deviation of the latencies over their median, scaled to a normal deviation: of the kind that
        comes first in `levels`.
    """

    pattern: Pattern
    levels: Mapping[str, Level]
    bandwidth: float
    spread: float

    @classmethod
    def of(
        cls,
        pattern: Pattern,
        codes: npt.NDArray[np.uint8],
        sizes_bytes: Ints,
        times: Times,
        *,
        errors: bool = False,
    ) -> Measured:
        """What these times say; with how sure it is if asked for."""
        latency = times.latency_ns
        # Of requests made twice the second of each pair is what is asked about.
        every = 2 if pattern.order == "again" else 1
        keep = np.arange(latency.size) % every == every - 1
        levels: dict[str, Level] = {}
        spread = 0.0
        for kind, code in zip(_KINDS, (READ, WRITE, FLUSH), strict=True):
            chosen = latency[keep & (codes == code)]
            if chosen.size:
                levels[kind] = Level.of(chosen, errors=errors)
                if len(levels) == 1:
                    middle = float(np.median(chosen))
                    spread = 1.4826 * float(np.median(np.abs(chosen - middle))) / max(middle, 1.0)
        bandwidth = times.rate(float(sizes_bytes.sum()))
        return cls(pattern, levels, bandwidth, spread)


@dataclass(frozen=True)
class Calibration:
    """All that was measured of a drive.

    Attributes
    ----------
    capacity_bytes, block_bytes : int
        Of the drive.
    unit_bytes : int
        What aligned patterns are aligned to: the clustered page where it is known.
    measured : tuple of Measured
        In the order in which it was played.
    """

    capacity_bytes: int
    block_bytes: int
    unit_bytes: int
    measured: tuple[Measured, ...] = field(default=())

    def __getitem__(self, name: str) -> Measured:
        for measured in self.measured:
            if measured.pattern.name == name:
                return measured
        known = ", ".join(measured.pattern.name for measured in self.measured)
        raise MissingResultError(f"pattern: found {name!r}, expected one of {known}")

    def stage(self, stage: Stage) -> tuple[Measured, ...]:
        """What was measured in one stage, in order."""
        return tuple(m for m in self.measured if m.pattern.stage == stage)

    def to_dict(self) -> dict[str, Any]:
        """As nested dicts and lists of numbers and text, for TOML or JSON.

        Examples
        --------
        >>> empty = Calibration(1 << 30, 512, 4096)
        >>> Calibration.from_dict(empty.to_dict()) == empty
        True
        """
        return {
            "capacity-bytes": self.capacity_bytes,
            "block-bytes": self.block_bytes,
            "unit-bytes": self.unit_bytes,
            "measured": [
                {
                    "pattern": asdict(m.pattern) | {"sizes_bytes": list(m.pattern.sizes_bytes)},
                    "levels": {kind: asdict(level) for kind, level in m.levels.items()},
                    "bandwidth": m.bandwidth,
                    "spread": m.spread,
                }
                for m in self.measured
            ],
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Calibration:
        """The inverse of :meth:`to_dict`."""

        def measured(row: Mapping[str, Any]) -> Measured:
            pattern = dict(row["pattern"])
            pattern["sizes_bytes"] = tuple(pattern["sizes_bytes"])
            levels = {kind: Level(**level) for kind, level in row["levels"].items()}
            return Measured(Pattern(**pattern), levels, row["bandwidth"], row["spread"])

        return cls(
            given["capacity-bytes"],
            given["block-bytes"],
            given["unit-bytes"],
            tuple(measured(row) for row in given["measured"]),
        )


def cost(
    findings: Mapping[str, Finding],
    *,
    capacity_bytes: int,
    block_bytes: int = 512,
    mode: Mode = "full",
) -> Cost:
    """What a calibration asks of a drive.

    Parameters
    ----------
    findings, capacity_bytes, block_bytes, mode
        As of :func:`patterns`.

    Examples
    --------
    >>> cost({}, capacity_bytes=1 << 30).bytes_written > 3 << 30
    True
    """
    # A fill before each stage.
    read, written, requests = 0.0, 2.0 * capacity_bytes, 2 * capacity_bytes // _FILL_BYTES
    for pattern in patterns(
        findings, capacity_bytes=capacity_bytes, block_bytes=block_bytes, mode=mode
    ):
        mean = float(np.mean(pattern.sizes_bytes))
        count = pattern.requests * (2 if pattern.order == "again" else 1)
        if pattern.overwrites > 0:
            count = int(pattern.overwrites * capacity_bytes / mean)
        read += pattern.reads * count * mean
        written += (1 - pattern.reads) * count * mean
        requests += count * (2 if pattern.flush else 1)
    return Cost(int(read), int(written), requests)


@lru_cache(maxsize=256)
def _requests(
    pattern: Pattern, capacity_bytes: int, block_bytes: int
) -> tuple[npt.NDArray[np.uint8], Ints, Ints]:
    """A pattern's requests, made once for all candidates."""
    return pattern.make(capacity_bytes, block_bytes)


def play(
    target: Target,
    chosen: Sequence[Pattern],
    *,
    capacity_bytes: int | None = None,
    block_bytes: int | None = None,
    progress: Callable[[float], None] = lambda share: None,
    errors: bool = False,
) -> tuple[Measured, ...]:
    """Play patterns of one stage, from a purged and filled drive on.

    Parameters
    ----------
    target : Target
        The drive; everything on it is lost.
    chosen : sequence of Pattern
        In this order.
    capacity_bytes, block_bytes : int, optional
        What requests are made for, if not for the target's own size: a twin may be larger by a part of a page.
    progress : callable, optional
        Told the share that is done, 0 to 1.
    errors : bool, optional
        Also say how sure each level is.

    Returns
    -------
    tuple of Measured
        One a pattern.
    """
    capacity = capacity_bytes or target.capacity_bytes
    block = block_bytes or target.block_bytes
    target.purge()
    target.fill(size_bytes=_FILL_BYTES, end_bytes=capacity)
    if chosen and chosen[0].stage == "clean":
        # What the fill left to be done in the background is none of the reads'.
        target.flush()
        target.idle(_REST_NS)
    found = []
    for done, pattern in enumerate(chosen):
        progress(done / len(chosen))
        codes, offsets, sizes = _requests(pattern, capacity, block)
        # What an earlier pattern left in the buffer is none of this one's.
        target.flush()
        times = target.play(codes, offsets, sizes, depth=pattern.depth)
        found.append(Measured.of(pattern, codes, sizes, times, errors=errors))
    progress(1.0)
    return tuple(found)


def calibrate(
    target: Target,
    findings: Mapping[str, Finding],
    *,
    mode: Mode = "full",
    seed: int = 1,
    progress: Callable[[float], None] = lambda share: None,
) -> Calibration:
    """Measure what a twin is fitted to.

    Parameters
    ----------
    target : Target
        The drive, as a black box; everything on it is lost.
    findings : mapping of str to Finding
        What probes found.
    mode : {"quick", "full"}, optional
        How many requests. Full writes three and a half capacities and some gigabytes, quick two and a half and less; a
        drive with log blocks, which shows its merges at once, is overwritten less.
    seed : int, optional
        Of addresses and sizes.
    progress : callable, optional
        Told the share that is done, 0 to 1.

    Returns
    -------
    Calibration

    Raises
    ------
    TargetError
        If the target is too small or may not be written.

    Examples
    --------
    >>> from flashwright import Ssd
    >>> drive = Ssd.named("default").with_({"geometry.blocks-per-plane": 32})
    >>> with Target(drive) as target:
    ...     calibration = calibrate(target, {}, mode="quick")
    >>> round(calibration["read-block"].levels["read"].p50_ns)
    70480
    """
    if target.capacity_bytes < LEAST_BYTES:
        raise TargetError(
            f"{target.name}: found {target.capacity_bytes:,} B, expected {LEAST_BYTES:,} B or more",
            "a calibration needs room for random addresses",
        )
    chosen = patterns(
        findings,
        capacity_bytes=target.capacity_bytes,
        block_bytes=target.block_bytes,
        mode=mode,
        seed=seed,
    )
    measured: list[Measured] = []
    # Overwriting takes most of the time.
    for stage, first, width in (("clean", 0.0, 0.3), ("used", 0.3, 0.7)):
        of_stage = [pattern for pattern in chosen if pattern.stage == stage]

        def report_progress(share: float, first: float = first, width: float = width) -> None:
            progress(first + width * share)

        measured.extend(play(target, of_stage, progress=report_progress, errors=True))
    unit = unit_of(findings, target.block_bytes)
    return Calibration(target.capacity_bytes, target.block_bytes, unit, tuple(measured))
