"""Whether a twin predicts its drive on a held-out pattern.

The pattern is none of the calibration's: seven reads in ten, four sizes, three requests in ten off the grid, most of
them on a fifth of the addresses, eight at a time, after the drive was filled and overwritten once at random.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from flashwright.drive.trust import MEAN_BOUND, P99_BOUND, check_record
from flashwright.simulation.ssd import Ssd
from flashwright.target.arrays import KIB, Array
from flashwright.target.question import Cost
from flashwright.target.stats import kolmogorov
from flashwright.target.target import Deadline, Target
from flashwright.twin.patterns import Pattern

__all__ = ["Check", "Compared", "check", "cost"]

# Bytes of a write that fills the drive.
_FILL_BYTES = 1 << 20
# Parts of the requests, for the interval of a ratio.
_PARTS = 10
# Student's quantile at 95 % for nine degrees of freedom.
_STUDENT = 2.262
# Percentiles that are compared.
_PERCENTILES = (50.0, 90.0, 99.0, 99.9)


@dataclass(frozen=True)
class Compared:
    """Latencies of drive and twin, nanoseconds.

    Attributes
    ----------
    requests : int
        How many of this kind.
    drive_ns, twin_ns : mapping of str to float
        ``mean``, ``p50``, ``p90``, ``p99``, ``p99.9``.
    ratio : mapping of str to float
        Twin over drive.
    distance : float
        The Kolmogorov distance of the two distributions, 0 to 1.
    """

    requests: int
    drive_ns: Mapping[str, float]
    twin_ns: Mapping[str, float]
    ratio: Mapping[str, float]
    distance: float

    @classmethod
    def of(cls, drive_ns: Array, twin_ns: Array) -> Compared:
        """Of the latencies of the same requests, nanoseconds."""

        def figures(latency: Array) -> dict[str, float]:
            cuts = np.percentile(latency, _PERCENTILES)
            named = {f"p{at:g}": float(cut) for at, cut in zip(_PERCENTILES, cuts, strict=True)}
            return {"mean": float(latency.mean())} | named

        drive, twin = figures(drive_ns), figures(twin_ns)
        ratio = {name: twin[name] / max(drive[name], 1.0) for name in drive}
        return cls(drive_ns.size, drive, twin, ratio, kolmogorov(drive_ns, twin_ns))

    @property
    def within(self) -> bool:
        """Whether mean and 99th percentile are within the bounds."""
        mean, p99 = abs(self.ratio["mean"] - 1), abs(self.ratio["p99"] - 1)
        return mean <= MEAN_BOUND and p99 <= P99_BOUND


@dataclass(frozen=True)
class Check:
    """How well a twin predicts a pattern that was held back.

    Attributes
    ----------
    all, reads, writes : Compared
        All requests, and each kind by itself.
    drive_bandwidth, twin_bandwidth : float
        Bytes per second.
    mean_error : float
        By how much the ratio of means may be off by chance: half of its 95 % interval, from parts of the requests.
    p99_error : float
        The same of 99th percentiles.
    """

    all: Compared
    reads: Compared
    writes: Compared
    drive_bandwidth: float
    twin_bandwidth: float
    mean_error: float = 0.0
    p99_error: float = 0.0

    @property
    def within(self) -> bool:
        """Whether mean and 99th percentile of all requests are within the bounds."""
        return self.all.within

    def record(self) -> dict[str, Any]:
        """The figures that a profile stores."""
        return check_record(
            self.all.ratio["mean"],
            self.all.ratio["p99"],
            self.mean_error,
            self.p99_error,
            reads_ratio=self.reads.ratio["mean"],
            writes_ratio=self.writes.ratio["mean"],
        )

    def to_dict(self) -> dict[str, Any]:
        """As nested dicts of numbers, for TOML or JSON."""
        return asdict(self) | {"within": self.within}


def check_pattern(requests: int, seed: int, block_bytes: int) -> tuple[Pattern, Pattern]:
    """What comes before, and the pattern itself."""
    grid = max(4 * KIB, block_bytes)
    sizes = tuple(-(-size * KIB // block_bytes) * block_bytes for size in (4, 12, 32, 64))
    before = Pattern(
        "held-back-overwrite",
        "used",
        0,
        (32 * KIB,),
        align_bytes=grid,
        depth=8,
        overwrites=1.0,
        seed=seed,
    )
    pattern = Pattern(
        "held-back",
        "used",
        requests,
        sizes,
        reads=0.7,
        align_bytes=grid,
        unaligned=0.3,
        hot_share=0.8,
        hot_range=0.2,
        depth=8,
        seed=seed,
    )
    return before, pattern


def cost(capacity_bytes: int, block_bytes: int = 512, requests: int = 20_000) -> Cost:
    """What a check asks of the drive.

    Parameters
    ----------
    capacity_bytes, block_bytes : int
        Of the drive.
    requests : int, optional
        How many are measured.

    Examples
    --------
    >>> cost(1 << 30).bytes_written > 2 << 30
    True
    """
    before, pattern = check_pattern(requests, 1, block_bytes)
    moved = requests * float(np.mean(pattern.sizes_bytes))
    written = int((1 + before.overwrites) * capacity_bytes + (1 - pattern.reads) * moved)
    overwrites = int(before.overwrites * capacity_bytes / np.mean(before.sizes_bytes))
    count = requests + overwrites + capacity_bytes // _FILL_BYTES
    return Cost(int(pattern.reads * moved), written, count)


@contextlib.contextmanager
def _until(time_limit: float | None, *targets: Target) -> Iterator[None]:
    """Ends what is played on targets when time is up."""
    before = [target.watch for target in targets]
    deadline = Deadline(time_limit)
    try:
        for target in targets:
            target.watch = deadline
        yield
    finally:
        for target, watch in zip(targets, before, strict=True):
            target.watch = watch


def check(
    target: Target,
    twin: Ssd,
    *,
    seed: int = 1,
    requests: int = 20_000,
    progress: Callable[[float], None] = lambda share: None,
    time_limit: float | None = None,
) -> Check:
    """Play the pattern that was held back on the drive and on its twin.

    Parameters
    ----------
    target : Target
        The drive; everything on it is lost.
    twin : Ssd
        Its model.
    seed : int, optional
        Of the requests.
    requests : int, optional
        How many are measured.
    progress : callable, optional
        Told the share that is done, 0 to 1.
    time_limit : float, optional
        Seconds after which it is given up.

    Returns
    -------
    Check

    Raises
    ------
    OutOfTimeError
        If the time limit came before its end.

    Examples
    --------
    >>> drive = Ssd.named("default").with_({"geometry.blocks-per-plane": 32})
    >>> with Target(drive) as target:
    ...     same = check(target, drive, requests=2000)
    >>> same.within, same.all.ratio["p99"], same.all.distance
    (True, 1.0, 0.0)
    """
    capacity, block = target.capacity_bytes, target.block_bytes
    before, pattern = check_pattern(requests, seed, block)
    codes, offsets, sizes = pattern.make(capacity, block)
    latencies, bandwidths = [], []
    with Target(twin) as model, _until(time_limit, target, model):
        for done, drive in enumerate((target, model)):
            drive.purge()
            drive.fill(size_bytes=_FILL_BYTES, end_bytes=capacity)
            drive.play(*before.make(capacity, block), depth=before.depth)
            drive.flush()
            progress((done + 0.5) / 2)
            times = drive.play(codes, offsets, sizes, depth=pattern.depth)
            latencies.append(times.latency_ns)
            bandwidths.append(float(sizes.sum()) / times.duration_ns * 1e9)
            progress((done + 1) / 2)
    everything, reads, writes = (
        Compared.of(latencies[0][chosen], latencies[1][chosen])
        for chosen in (np.ones(codes.size, bool), codes == 0, codes == 1)
    )
    chance = [_by_chance(latencies[0], latencies[1], figure) for figure in (np.mean, _p99)]
    return Check(everything, reads, writes, bandwidths[0], bandwidths[1], *chance)


def _p99(latency_ns: Array) -> np.floating[Any]:
    return np.percentile(latency_ns, 99)


def _by_chance(
    drive_ns: Array,
    twin_ns: Array,
    figure: Callable[[Array], np.floating[Any]],
) -> float:
    """Half of the 95 % interval of the ratio of a figure, from the ratios of parts of the requests in order."""
    parts = [
        float(figure(twin)) / max(float(figure(drive)), 1.0)
        for drive, twin in zip(
            np.array_split(drive_ns, _PARTS), np.array_split(twin_ns, _PARTS), strict=True
        )
    ]
    return float(_STUDENT * np.std(parts, ddof=1) / np.sqrt(_PARTS))
