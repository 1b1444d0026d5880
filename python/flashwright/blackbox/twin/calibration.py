"""What is measured of a drive to pin a model of it down: a fixed set of patterns, played on drive and twin alike.

Each pattern is a pure description: the same one makes the same requests wherever it is played. Those of a stage
follow each other, from a purged drive on, so that the state that one leaves is the same for the next on both.

Sources: Kim, Seo, Jung, Kim, Huh: "Parameter-aware I/O management for solid state disks" (2011), section 4, for the
signals of page, buffers and prefetch; Hu's dissertation (2012), sections 4.2 and 5.1, for overwriting, queue lengths
and mixing. Which patterns, and how many requests of each, is our choice.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from flashwright.blackbox.base import Cost, Mode
from flashwright.blackbox.target import Target, Times
from flashwright.drive.findings import Finding
from flashwright.errors import MissingResultError, TargetError

__all__ = [
    "Calibration",
    "Level",
    "Measured",
    "Pattern",
    "Stage",
    "calibrate",
    "cost",
    "number",
    "patterns",
    "play",
    "word",
]

Stage = Literal["clean", "used"]
Order = Literal["random", "sequential", "again"]
Kinds = Literal["read", "write", "flush"]

_KINDS: tuple[Kinds, ...] = ("read", "write", "flush")
_READ, _WRITE, _FLUSH = 0, 1, 3
KIB, MIB = 1 << 10, 1 << 20
# Of a write that prepares; large enough to be quick, and no drive that we know has a larger stripe.
_FILL_BYTES = 1 << 20
# Smaller drives have no room for addresses that do not meet.
_LEAST_BYTES = 64 << 20


@dataclass(frozen=True)
class Pattern:
    """Requests as they are made, without the drive.

    Attributes
    ----------
    name : str
        Unique in a calibration.
    stage : {"clean", "used"}
        What comes before: a purge and a sequential fill, or those and overwriting at random.
    requests : int
        How many, flushes not counted.
    sizes_bytes : tuple of int
        Each request takes one of these, all equally often.
    reads : float, optional
        Share of reads; the rest writes.
    order : {"random", "sequential", "again"}, optional
        Addresses: anywhere; one after the other; or anywhere and then the same once more.
    align_bytes : int, optional
        Addresses are multiples of this.
    shift_bytes : int, optional
        Added to each address.
    unaligned : float, optional
        Share of the requests that begin at any block instead.
    depth : int, optional
        Requests outstanding.
    flush : bool, optional
        A flush follows each request; then the depth is 1.
    hot_share, hot_range : float, optional
        This share of the random requests goes to the first `hot_range` of the capacity.
    overwrites : float, optional
        If above 0, the number of requests is so many capacities' worth of data.
    seed : int, optional
        Of the requests.
    """

    name: str
    stage: Stage
    requests: int
    sizes_bytes: tuple[int, ...]
    reads: float = 0.0
    order: Order = "random"
    align_bytes: int = 4096
    shift_bytes: int = 0
    unaligned: float = 0.0
    depth: int = 1
    flush: bool = False
    hot_share: float = 0.0
    hot_range: float = 1.0
    overwrites: float = 0.0
    seed: int = 1

    def make(
        self, capacity_bytes: int, block_bytes: int
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The requests.

        Parameters
        ----------
        capacity_bytes, block_bytes : int
            Of the drive.

        Returns
        -------
        codes : array of uint8
            0 read, 1 write, 3 flush, as :meth:`Target.play` takes them.
        offsets_bytes, sizes_bytes : array of int64
            One a request.

        Examples
        --------
        >>> pattern = Pattern("p", "clean", 4, (4096,), order="sequential")
        >>> np.diff(pattern.make(1 << 20, 512)[1]).tolist()
        [4096, 4096, 4096]
        """
        rng = np.random.default_rng([self.seed, zlib.crc32(self.name.encode())])
        count = self.requests
        if self.overwrites > 0:
            count = max(int(self.overwrites * capacity_bytes / np.mean(self.sizes_bytes)), 1)
        sizes = rng.choice(np.array(self.sizes_bytes, np.int64), count)
        largest = max(self.sizes_bytes)
        if self.order == "sequential":
            # A run from a random place on, so that two patterns do not meet the same data.
            ends = np.cumsum(sizes)
            room = capacity_bytes - self.shift_bytes
            first = rng.integers(0, room) // self.align_bytes * self.align_bytes
            offsets = (first + ends - sizes) % room
            offsets = np.where(offsets + sizes > room, 0, offsets) + self.shift_bytes
        else:
            slots = (capacity_bytes - largest - self.shift_bytes) // self.align_bytes + 1
            hot = rng.random(count) < self.hot_share
            span = np.where(hot, max(int(slots * self.hot_range), 1), slots)
            offsets = (rng.random(count) * span).astype(np.int64) * self.align_bytes
            blocks = rng.integers(0, max(self.align_bytes // block_bytes, 1), count) * block_bytes
            loose = rng.random(count) < self.unaligned
            offsets = offsets + np.where(loose, blocks, 0) + self.shift_bytes
            offsets = np.minimum(offsets, capacity_bytes - sizes)
        codes = np.where(rng.random(count) < self.reads, _READ, _WRITE).astype(np.uint8)
        if self.order == "again":
            codes, offsets, sizes = (np.repeat(part, 2) for part in (codes, offsets, sizes))
        if self.flush:
            codes = np.stack([codes, np.full_like(codes, _FLUSH)], 1).ravel()
            offsets, sizes = (
                np.stack([part, np.zeros_like(part)], 1).ravel() for part in (offsets, sizes)
            )
        return codes, offsets, sizes


@dataclass(frozen=True)
class Level:
    """Latencies of one kind of request in a pattern, nanoseconds.

    Attributes
    ----------
    requests : int
        How many there were.
    mean_ns, p10_ns, p50_ns, p90_ns, p99_ns : float
        Mean and percentiles.
    """

    requests: int
    mean_ns: float
    p10_ns: float
    p50_ns: float
    p90_ns: float
    p99_ns: float

    @classmethod
    def of(cls, latency_ns: npt.NDArray[np.float64]) -> Level:
        """Of these latencies, nanoseconds; at least one."""
        p10, p50, p90, p99 = np.percentile(latency_ns, [10, 50, 90, 99])
        mean = float(latency_ns.mean())
        return cls(latency_ns.size, mean, float(p10), float(p50), float(p90), float(p99))


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
        sizes_bytes: npt.NDArray[np.int64],
        times: Times,
    ) -> Measured:
        """What these times say."""
        latency = times.latency_ns
        # Of requests made twice the second of each pair is what is asked about.
        every = 2 if pattern.order == "again" else 1
        keep = np.arange(latency.size) % every == every - 1
        levels: dict[str, Level] = {}
        spread = 0.0
        for kind, code in zip(_KINDS, (_READ, _WRITE, _FLUSH), strict=True):
            chosen = latency[keep & (codes == code)]
            if chosen.size:
                levels[kind] = Level.of(chosen)
                if len(levels) == 1:
                    middle = float(np.median(chosen))
                    spread = 1.4826 * float(np.median(np.abs(chosen - middle))) / max(middle, 1.0)
        bandwidth = float(sizes_bytes.sum()) / max(times.duration_ns, 1.0) * 1e9
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


def number(findings: Mapping[str, Finding], parameter: str) -> float | None:
    """What was found of a parameter that is a number; None unless found."""
    finding = findings.get(parameter)
    if finding is None or finding.verdict != "found" or isinstance(finding.value, str):
        return None
    return None if finding.value is None else float(finding.value)


def word(findings: Mapping[str, Finding], parameter: str) -> str | None:
    """What was found of a parameter that is a word; None unless found."""
    finding = findings.get(parameter)
    found = finding is not None and finding.verdict == "found"
    return finding.value if found and finding and isinstance(finding.value, str) else None


def patterns(
    findings: Mapping[str, Finding],
    *,
    capacity_bytes: int,
    block_bytes: int = 512,
    mode: Mode = "full",
    seed: int = 1,
) -> tuple[Pattern, ...]:
    """The patterns of a calibration.

    Parameters
    ----------
    findings : mapping of str to Finding
        What is known: of ``clustered-page`` and ``write-buffer`` sizes and alignments are made.
    capacity_bytes, block_bytes : int
        Of the drive.
    mode : {"quick", "full"}, optional
        How many requests; quick overwrites half of the capacity at random, full one and a half capacities.
    seed : int, optional
        Of addresses and sizes.

    Returns
    -------
    tuple of Pattern
        In the order in which they are to be played.
    """
    unit = unit_of(findings, block_bytes)
    small = max(4 * KIB, block_bytes)
    buffer = int(number(findings, "write-buffer") or 0)
    share = 1.0 if mode == "full" else 0.25
    made: list[Pattern] = []

    def add(
        name: str, stage: Stage, requests: int, size: int | tuple[int, ...], **more: Any
    ) -> None:
        sizes = size if isinstance(size, tuple) else (size,)
        whole = tuple(max(int(s) // block_bytes, 1) * block_bytes for s in sizes)
        count = max(int(requests * share), 16)
        # No pattern of a stage may go through more than a tenth of a small drive.
        count = min(count, max(capacity_bytes // 10 // max(whole), 16))
        more.setdefault("align_bytes", unit)
        made.append(Pattern(name, stage, count, whole, seed=seed, **more))

    # Reads: what one costs, what more pages cost, what side by side works.
    add("read-block", "clean", 400, block_bytes, reads=1.0)
    for pages in (1, 2, 3, 4, 8, 16, 32):
        if pages * unit <= 2 * MIB:
            add(f"read-{pages}-units", "clean", 200, pages * unit, reads=1.0)
    for size in (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 1 * MIB):
        add(f"read-{size // KIB}k", "clean", 200, size, reads=1.0, align_bytes=small)
    for depth in (4, 16, 64):
        add(f"read-block-{depth}-deep", "clean", 1000, block_bytes, reads=1.0, depth=depth)
    add("read-64k-16-deep", "clean", 600, 64 * KIB, reads=1.0, depth=16, align_bytes=small)
    add("read-block-again", "clean", 100, block_bytes, reads=1.0, order="again")
    add("read-64k-again", "clean", 100, 64 * KIB, reads=1.0, order="again", align_bytes=small)
    add("read-64k-sequential", "clean", 400, 64 * KIB, reads=1.0, order="sequential")
    add("read-1m-sequential", "clean", 128, MIB, reads=1.0, order="sequential", depth=4)
    # Writes that flash has before the next: array time, the part of a page that is read first.
    add("write-unit-flush", "clean", 100, unit, flush=True)
    add("write-4-units-flush", "clean", 60, 4 * unit, flush=True)
    add("write-unit-flush-sequential", "clean", 100, unit, flush=True, order="sequential")
    add("write-block-flush", "clean", 100, block_bytes, flush=True)
    add(
        "write-unit-off-flush",
        "clean",
        60,
        unit,
        flush=True,
        shift_bytes=max(unit // 2 // block_bytes, 1) * block_bytes,
    )
    add("write-64k-flush", "clean", 60, 64 * KIB, flush=True, align_bytes=small)
    add("write-1m-flush", "clean", 30, MIB, flush=True, align_bytes=small)
    # Writes as they come: the link, and the buffer until it is full.
    add("write-few", "clean", 16, min(small, max(buffer // 32, block_bytes)), align_bytes=small)
    add("write-4k-again", "clean", 60, small, order="again", align_bytes=small)
    for size in (small, 64 * KIB, MIB):
        enough = int(min(max(3 * buffer, 8 * MIB), 128 * MIB) / size)
        burst = max(min(enough, 1200), 60)
        add(f"write-{size // KIB}k-burst", "clean", burst, size, align_bytes=small)
        burst = max(min(enough, 600), 60)
        add(f"write-{size // KIB}k-sequential", "clean", burst, size, order="sequential", depth=4)
    if buffer:
        larger = -(-(buffer + buffer // 2) // unit) * unit
        if larger <= capacity_bytes // 64:
            add("write-over-buffer", "clean", 16, larger)
    # Overwriting: cleaning begins, and grows as the spare space is used up.
    # A log-block drive merges as soon as its logs are full, and takes long for it.
    shares = (0.2, 0.05, 0.05) if word(findings, "mapping") == "log-block" else (0.5, 0.5, 0.5)
    for part, overwrites in enumerate(shares if mode == "full" else shares[:1]):
        made.append(
            Pattern(
                f"overwrite-{part + 1}",
                "used",
                0,
                (64 * KIB,),
                depth=8,
                overwrites=overwrites,
                align_bytes=max(4 * KIB, block_bytes),
                seed=seed,
            )
        )
    add("used-write-4k", "used", 3000, small, align_bytes=small)
    add("used-write-4k-16-deep", "used", 3000, small, align_bytes=small, depth=16)
    add("used-write-unit", "used", 2000, unit)
    add("used-write-256k", "used", 500, 256 * KIB, align_bytes=small, depth=4)
    add("used-read-4k", "used", 600, small, reads=1.0, align_bytes=small)
    add("used-read-64k-16-deep", "used", 600, 64 * KIB, reads=1.0, align_bytes=small, depth=16)
    sizes = (small, 16 * KIB, 64 * KIB)
    add("used-mixed", "used", 4000, sizes, reads=0.5, align_bytes=small, depth=4)
    add("used-mixed-16-deep", "used", 4000, sizes, reads=0.5, align_bytes=small, depth=16)
    add("used-mixed-single", "used", 2000, sizes, reads=0.7, align_bytes=small)
    add("used-write-64k-flush", "used", 300, 64 * KIB, align_bytes=small, flush=True)
    add("used-write-1m-sequential", "used", 200, MIB, order="sequential", depth=2)
    return tuple(made)


def unit_of(findings: Mapping[str, Finding], block_bytes: int) -> int:
    """The clustered page, or 4 KiB where it is not known, in whole blocks."""
    unit = int(number(findings, "clustered-page") or number(findings, "stripe") or 4 * KIB)
    return max(unit // block_bytes, 1) * block_bytes


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


def play(
    target: Target,
    chosen: Sequence[Pattern],
    *,
    capacity_bytes: int | None = None,
    block_bytes: int | None = None,
    progress: Callable[[float], None] = lambda share: None,
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

    Returns
    -------
    tuple of Measured
        One a pattern.
    """
    capacity = capacity_bytes or target.capacity_bytes
    block = block_bytes or target.block_bytes
    target.purge()
    target.fill(size_bytes=_FILL_BYTES, end_bytes=capacity)
    found = []
    for done, pattern in enumerate(chosen):
        progress(done / len(chosen))
        codes, offsets, sizes = pattern.make(capacity, block)
        # What an earlier pattern left in the buffer is none of this one's.
        target.flush()
        times = target.play(codes, offsets, sizes, depth=pattern.depth)
        found.append(Measured.of(pattern, codes, sizes, times))
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
    if target.capacity_bytes < _LEAST_BYTES:
        raise TargetError(
            f"{target.name}: found {target.capacity_bytes:,} B, expected {_LEAST_BYTES:,} B or more",
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

        def told(share: float, first: float = first, width: float = width) -> None:
            progress(first + width * share)

        measured.extend(play(target, of_stage, progress=told))
    unit = unit_of(findings, target.block_bytes)
    return Calibration(target.capacity_bytes, target.block_bytes, unit, tuple(measured))
