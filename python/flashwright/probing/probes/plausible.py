"""Whether anything speaks against a target being a drive of flash, and whether anything speaks for it.

Virtual disks and disks behind a cache answer from memory, and a probe of them measures the cache. They show in three
ways: a longer request costs no more, data come faster than any interface carries them, or sooner than flash can be
read. Disks seek: a read takes longer the farther it lies from the one before.

That nothing speaks against flash is no sign of flash. Flash must be erased before it is written anew, so random writes
to a drive that was overwritten all over are slower than to one that was purged (:func:`kind_of_device`, by what the
probe ``mapping`` measured). Other things that become slower by use, and how they are excluded: a limit by heat or by
credits lasts over a purge without rest, and slows reads as well; memory that is written in place, disks and network
stores do not change at all.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from flashwright.drive.findings import Finding, Plot, Series, unknown
from flashwright.probing.probes.shared.overwriting import write_and_flush
from flashwright.target.arrays import KIB, MIB, Array, Ints
from flashwright.target.question import UNTESTED, Context, Cost, kib
from flashwright.target.stats import chance_above

__all__ = ["Plausible", "kind_of_device", "speaks_against"]


# Sizes of requests that are compared, bytes.
_SIZES = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB)
# Bytes of the reads that show the rate.
_LONG = MIB
# How many of them are outstanding.
_DEPTH = 32
# Requests of each size.
_REPEATS = {"quick": 64, "full": 256}
# Bytes that are written once, and read.
_REGION = {"quick": 512 * MIB, "full": 1 << 30}
# The highest rate of a drive, bytes per second. Source: PCI Express 5.0 with four lanes carries less than 16 GB/s, 6.0
# twice that in theory; no drive of ours comes near.
_RATE_MAX = 20e9
# The shortest small read, nanoseconds. Source: flash takes 20 us and more for a read of cells; what is below 1 us did
# not leave the machine's memory.
_LATENCY_MIN_NS = 1_000.0
# The longest, nanoseconds. Derived: a disk turns once in 8.3 ms (7,200 rpm), so that half a turn and a short way of the
# arm take 5; the slowest drive that we drew, pages of 160 KiB over slow buses, takes 3.5.
_LATENCY_MAX_NS = 4e6
# 64 KiB over 4 KiB, up to which times are flat, either way: read-modify-write would make it less. Chosen: large pages
# or many chips are flat up to there too, so 256 KiB are looked at as well.
_FLAT = 1.1
# 256 KiB over 4 KiB, up to which times are flat. Derived: a copy in memory takes some 50 us for those, beside the 100
# to 200 us that a virtual disk takes for any request.
_FLAT_LONG = 1.5
# Jumps between reads, as shares of what was written; the least is near. A disk takes longer for each step, a map that
# is not in RAM knows near and far alone.
_JUMPS = (1 / 4096, 1 / 256, 1 / 32, 1 / 8, 1 / 2)
# Steps of the jumps that must rise. Chosen: one more than near and far make.
_STEPS = 3
# The chance below which a step rises (Mann-Whitney). Chosen.
_STEP_CHANCE = 0.001
# What all steps rise by, nanoseconds, at least. Source: some tenths of a millisecond on disks.
_SEEK_NS = 2e5
# And as a share of a near read. Chosen.
_SEEK_SHARE = 0.2


# Speed of an overwritten drive over that of a new one, up to which overwriting makes a difference. Derived: noise of
# windows is some per cent, and even a third of the flash to spare leaves 0.8.
_SLOWER = 0.85
# Speed that a purge brings back, over that of a new drive, at least. Chosen: close to all of it.
_BACK = 0.8
# What reads lose over what writes lose, in logarithms: between these all of the device is limited. Chosen.
_READS_TOO = (0.5, 1.5)
# Parameters that show flash independently of the drive's history.
_OTHER_SIGNS = ("clustered-page", "clustered-block", "parallel-units")
# The surest verdict, with such a sign. Chosen.
_SUREST = 0.97


class Plausible:
    """A drive of flash, or something else."""

    NAME: ClassVar[str] = "plausible"
    ABOUT: ClassVar[str] = (
        "Whether times speak against flash: virtual and cached disks cost the same for 4 and 64 KiB, or are faster "
        "than any interface; disks are slow or seek. Flash is told only once `mapping` saw overwriting slow "
        "it down and a purge undo that."
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = ("kind-of-device",)
    READS_ALONE: ClassVar[bool] = True

    def cost(self, context: Context) -> Cost:
        """Fills a region, then some hundred requests of each size."""
        repeats, region = _REPEATS[context.mode], _region(context)
        sizes = sum(_SIZES) * repeats
        written = 0 if context.target.read_only else region + sizes
        seeks = 2 * len(_JUMPS) * repeats
        requests = 3 * len(_SIZES) * repeats + repeats + written // MIB + seeks
        return Cost(sizes + repeats * _LONG + seeks * _SIZES[0], written, requests)

    def run(self, context: Context) -> list[Finding]:
        """Time reads and writes of four sizes, and long reads side by side."""
        return [_kind(context)]


def _region(context: Context) -> int:
    return context.down(min(context.target.capacity_bytes, _REGION[context.mode]))


def _kind(context: Context) -> Finding:
    target, region = context.target, _region(context)
    repeats, rng = _REPEATS[context.mode], context.rng("plausible")
    sizes = np.unique([context.up(size) for size in _SIZES])
    if region < 16 * _LONG:
        why = f"The target has {kib(region)}, too little for reads all over it."
        return unknown("kind-of-device", why)

    def places(size: int, count: int) -> Ints:
        return rng.integers(0, region // size, count) * size

    curves: dict[str, Array] = {}
    if target.writes_allowed:
        # What was never written is read from no flash.
        target.fill(end_bytes=region)
        curves["write and flush"] = np.array(
            [
                write_and_flush(target, places(int(size), repeats), np.full(repeats, size))
                for size in sizes
            ]
        )
    context.progress(0.4)
    curves["read"] = np.array(
        [target.play("read", places(int(size), repeats), int(size)).latency_ns for size in sizes]
    )
    context.progress(0.7)
    many = target.play("read", places(_LONG, repeats), _LONG, depth=_DEPTH)
    rate = many.rate(repeats * _LONG)
    jumps = _jumps(context, region)
    context.progress(1.0)

    reasons = [*_reasons(curves, sizes, rate), *_seeks(jumps)]
    plot = _plot(curves, sizes)
    small_ns = float(np.median(curves["read"][0]))
    figures = {"read_small_ns": small_ns, "read_rate_B/s": rate}
    figures |= {f"{name.split()[0]}_64_over_4_KiB": _flatness(c) for name, c in curves.items()}
    figures |= {f"read_{share:g}_away_ns": float(np.median(jumps[share])) for share in jumps}
    if reasons:
        return unknown("kind-of-device", " ".join(reasons), "", (plot,), **figures, against=1.0)
    why = (
        f"A read of {kib(int(sizes[0]))} takes {small_ns / 1e3:.0f} us, one of 64 KiB {_flatness(curves['read']):.2f} "
        f"times as long, and {_DEPTH} reads at a time come at {rate / 1e6:,.0f} MB/s: that is consistent with flash, "
        "but no sign of it."
    )
    return unknown("kind-of-device", why, "", (plot,), **figures)


def _jumps(context: Context, region: int) -> dict[float, Array]:
    """Times of reads by how far they lie from the one before, as a share of what was written."""
    target, rng, size = context.target, context.rng("plausible.jumps"), context.up(_SIZES[0])
    slots, times = region // size, {}
    for share in _JUMPS:
        away = max(int(share * slots), 1)
        starts = rng.integers(0, slots - away, _REPEATS[context.mode])
        # Forwards and backwards by turns.
        pairs = np.stack([starts, starts + away], axis=1)
        pairs[1::2] = pairs[1::2, ::-1]
        # Each pair is begun somewhere, so that only the way to the second counts.
        times[share] = target.play("read", pairs.ravel() * size, size).latency_ns[1::2]
    return times


def _seeks(times: dict[float, Array]) -> list[str]:
    """What the jumps say against flash."""
    shares = sorted(times)
    rises = sum(
        chance_above(times[far], times[near]) < _STEP_CHANCE
        for near, far in itertools.pairwise(shares)
    )
    near, far = (float(np.median(times[share])) for share in (shares[0], shares[-1]))
    if rises < _STEPS or far - near < max(_SEEK_NS, _SEEK_SHARE * near):
        return []
    return [
        f"Reads take the longer the farther they lie from the one before, {near / 1e6:.2g} to {far / 1e6:.2g} ms in "
        f"{rises} of {len(shares) - 1} steps: a disk seeks so."
    ]


def _flatness(curve: Array, size: int = 2) -> float:
    """What a size, by default the third, costs in units of the first."""
    return float(np.median(curve[size]) / max(float(np.median(curve[0])), 1.0))


def _is_flat(curve: Array) -> bool:
    return 1 / _FLAT < _flatness(curve) < _FLAT and _flatness(curve, 3) < _FLAT_LONG


def _reasons(curves: dict[str, Array], sizes: Ints, rate_bytes_per_s: float) -> list[str]:
    """What speaks against flash, a sentence each."""
    reasons = []
    small_ns = float(np.median(curves["read"][0]))
    if all(_is_flat(curve) for curve in curves.values()):
        reasons.append(
            f"Requests of {kib(int(sizes[2]))} cost what requests of {kib(int(sizes[0]))} cost, and even "
            f"{kib(int(sizes[3]))} hardly more, as with a virtual disk or a cache before the drive."
        )
    if small_ns < _LATENCY_MIN_NS:
        reasons.append(f"Reads take {small_ns:.0f} ns, which is memory, not a drive.")
    if rate_bytes_per_s > _RATE_MAX:
        reasons.append(
            f"Reads come at {rate_bytes_per_s / 1e9:.0f} GB/s, more than any drive interface carries."
        )
    if small_ns > _LATENCY_MAX_NS:
        reasons.append(
            f"Small random reads take {small_ns / 1e6:.1f} ms, as long as a seek of a rotating disk."
        )
    return reasons


def _plot(curves: dict[str, Array], sizes: Ints) -> Plot:
    x = sizes.astype(np.float64)
    series = []
    for name, curve in curves.items():
        shown = curve[:, :32]
        series.append(Series(name, np.repeat(x, shown.shape[1]), shown.ravel()))
        series.append(
            Series(f"{name}: median", x, np.median(curve, axis=1).astype(np.float64), "line")
        )
    title = "Random requests by size"
    return Plot(title, "request size [B]", "latency [ns]", tuple(series), x_log=True, y_log=True)


def speaks_against(kind: Finding) -> bool:
    """Whether something speaks against flash, so that no other finding counts as a drive's."""
    return kind.verdict == "unknown" and kind.figures.get("against", 0.0) > 0


def kind_of_device(kind: Finding, findings: Mapping[str, Finding]) -> Finding:
    """The kind of device by all that was found.

    Parameters
    ----------
    kind : Finding
        By the times of requests alone (the probe ``plausible``).
    findings : mapping of str to Finding
        Of the session so far.

    Examples
    --------
    >>> kind = Finding("kind-of-device", "unknown", why="No sign of flash.")
    >>> used = {"history_late_share": 0.3, "history_back_share": 1.0, "history_reads_share": 0.9}
    >>> kind_of_device(kind, {"mapping": Finding("mapping", "unknown", figures=used)}).value
    'flash'
    >>> never_slow = dict(used, history_late_share=1.0)
    >>> kind_of_device(kind, {"mapping": Finding("mapping", "unknown", figures=never_slow)}).verdict
    'unknown'
    """
    mapping = findings.get("mapping")
    if kind.verdict != "unknown" or speaks_against(kind) or mapping is None:
        return kind
    late, back, reads = (
        mapping.figures.get(f"history_{name}_share") for name in ("late", "back", "reads")
    )
    if late is None or back is None or reads is None:
        return kind
    figures = {**kind.figures, "late_share": late, "back_share": back, "reads_share": reads}
    seen = (
        f"Random writes keep {late:.2f} of the speed of a new drive once all of it was overwritten, a purge brings "
        f"back {back:.2f}, and reads keep {reads:.2f}"
    )
    if late > _SLOWER:
        why = f"{seen}: what is written in place keeps its speed, flash does not."
        return replace(kind, why=why, figures={**figures, "against": 1.0})
    if back < _BACK or _READS_TOO[0] < np.log(reads) / np.log(late) < _READS_TOO[1]:
        why = f"{seen}: so it may be a limit of the whole device and nothing of flash."
        return replace(kind, why=why, figures=figures)
    others = [
        name
        for name in _OTHER_SIGNS
        if name in findings
        and findings[name].verdict == "found"
        and findings[name].confidence >= 0.9
    ]
    beside = (
        f"it has a {' and '.join(name.replace('-', ' ') for name in others)}"
        if others
        else "no unit of writing or erasing shows beside it"
    )
    return replace(
        kind,
        verdict="found",
        value="flash",
        confidence=_SUREST if others else UNTESTED,
        why=f"{seen}, as where blocks are erased and cleaned; {beside}. {kind.why}",
        figures=figures,
    )
