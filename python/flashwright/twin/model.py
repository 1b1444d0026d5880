"""A model of a drive as a fit sees it: structure and numbers; and the residuals between model and drive."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol

import numpy as np

from flashwright.drive.catalogue import catalogue
from flashwright.simulation.ssd import Ssd
from flashwright.target.arrays import Array
from flashwright.twin.calibration import Measured

__all__ = [
    "BOUNDS",
    "CLEAN",
    "FLOOR_NS",
    "HUBER",
    "SCHEDULES",
    "STEPWISE",
    "USED",
    "WORST",
    "Drive",
    "Fit",
    "Model",
    "Residual",
    "gaps_between",
    "layouts_of",
    "moved",
    "name_of",
    "robust",
]


# By how much a level counts on the clean drive. Chosen: the means decide, as in the check; 99th percentiles of so few
# requests are single latencies.
CLEAN = {"mean_ns": 1.0, "p10_ns": 0.5, "p50_ns": 1.0, "p90_ns": 0.5}
# The same of a drive that is overwritten.
USED = {"mean_ns": 1.5, "p10_ns": 0.3, "p50_ns": 0.7, "p90_ns": 0.7, "p99_ns": 0.8}
# Latencies that differ by less than this are the same, nanoseconds. Chosen: about what a host's own work on a request
# varies by.
FLOOR_NS = 2000.0
# Residuals (logarithms of ratios) beyond this count linearly: Huber's bound. Chosen: about twice the noise of a level.
HUBER = 0.08
# The standard error of a level that halves its weight. Chosen: drive and twin have it both.
_SURE = 0.04
# The residual of a level that the model has no answer to. Chosen: worse than any that it has.
WORST = 3.0

BOUNDS = {
    "read_ns": (1e3, 5e6),
    "transfer_ns": (100.0, 20e6),
    "program_ns": (1e3, 50e6),
    # Of chips of any year half a millisecond is the least.
    "erase_ns": (500e3, 200e6),
    "rate": (5e6, 30e9),
    "read_overhead_ns": (50.0, 1e6),
    "write_overhead_ns": (50.0, 1e6),
    "look_up_ns": (1e3, 5e6),
    "noise": (1e-3, 0.3),
    "spare": (0.01, 1.0),
    "slc_read_ns": (1e3, 5e6),
    "slc_program_ns": (1e3, 50e6),
    "slc_share": (0.005, 0.9),
    "map_share": (0.005, 1.0),
}

SCHEDULES = tuple(each.name for each in catalogue()["gc.schedule"])
"""When a model cleans: the values of ``gc.schedule``."""

STEPWISE = ("page", "dftl")
"""Translation layers that clean in steps, so that a schedule matters."""


class Drive(Protocol):
    """What is said of a drive besides what was measured; a :class:`Target` says it too."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def capacity_bytes(self) -> int:
        """Its size."""
        ...


@dataclass(frozen=True)
class Model:
    """A drive as the fit sees it: structure, then numbers.

    Attributes
    ----------
    page_bytes, pages_per_block, channels, dies : int
        Clustered page or program, its number in a block, and how the units lie on buses.
    scheme : str
        Translation layer.
    rewrites : bool
        Whether a write of a part of a page reads the rest first.
    queue_depth : int
        Commands that it takes at once.
    read_buffer_bytes, read_least_bytes, prefetch_bytes, write_buffer_bytes : int
        RAM.
    kind, drain, oversized : str
        Of the write buffer, as configurations say it.
    read_ns, transfer_ns, program_ns, erase_ns : float
        Of a clustered page, of a block.
    rate : float
        Of the interface, bytes per second.
    read_overhead_ns, write_overhead_ns : float
        Firmware.
    look_up_ns : float
        Of a spare area, where the translation layer reads those.
    noise : float
        As ``controller.noise``.
    spare : float
        Physical space beyond the logical and beyond a fixed SLC cache, as a share of the logical.
    unit_bytes : int
        What has an entry of its own in the map, where several make a program that RAM collects; 0 where a clustered
        page is both.
    shot : int
        Pages of a cell that one program writes; they are read one by one.
    planes : int
        Planes whose pages one program writes; they too are read one by one.
    ram_programs : int
        What RAM holds of writes where several units make a program: so many programs of each unit of the drive.
    superblock : str
        ``"drive"`` where data fill the blocks at one position of all dies die after die, else ``"block"``, as
        ``geometry.superblock``.
    slc : str
        The SLC cache, as ``slc.cache``.
    slc_share : float
        As ``slc.block-share``.
    slc_read_ns, slc_program_ns : float
        Of a page of it.
    slc_full : str
        Where writes go while it is full, as ``slc.when-full``.
    bits : int
        Bits of a cell outside the cache: a page of it takes as many times the flash. At least the pages of a shot.
    fold_after_ns : float
        As ``slc.fold-after``.
    map_share : float
        Share of the map that is in RAM, where the translation layer loads it on demand.
    schedule : str
        When it cleans, as ``gc.schedule``.
    die_order, suspends : str
        Which operation a die takes next, as ``timing.die-order``, and which ones reads suspend, as ``chips.suspends``.
    """

    page_bytes: int
    pages_per_block: int
    channels: int = 1
    dies: int = 1
    scheme: str = "page"
    rewrites: bool = True
    queue_depth: int = 32
    read_buffer_bytes: int = 0
    read_least_bytes: int = 0
    prefetch_bytes: int = 0
    write_buffer_bytes: int = 0
    kind: str = "fifo"
    drain: str = "lazy"
    oversized: str = "through"
    read_ns: float = 50e3
    transfer_ns: float = 50e3
    program_ns: float = 600e3
    erase_ns: float = 3e6
    rate: float = 500e6
    read_overhead_ns: float = 10e3
    write_overhead_ns: float = 10e3
    look_up_ns: float = 50e3
    noise: float = 0.02
    spare: float = 0.15
    unit_bytes: int = 0
    shot: int = 1
    planes: int = 1
    ram_programs: int = 32
    superblock: str = "block"
    slc: str = "none"
    slc_share: float = 0.1
    slc_read_ns: float = 30e3
    slc_program_ns: float = 200e3
    slc_full: str = "direct"
    bits: int = 3
    fold_after_ns: float = 1e9
    map_share: float = 0.15
    schedule: str = "foreground"
    die_order: str = "fifo"
    suspends: str = "nothing"

    @property
    def units(self) -> int:
        """What works at the same time."""
        return self.channels * self.dies

    def ssd(self, name: str, about: str, capacity_bytes: int) -> Ssd:
        """The drive.

        Parameters
        ----------
        name, about : str
            As descriptions have them.
        capacity_bytes : int
            At least so much; whole pages.

        Raises
        ------
        ConfigError
            If the numbers do not make a drive.
        """
        mapped = self.unit_bytes or self.page_bytes
        logical = -(-capacity_bytes // mapped) * mapped
        plane_block = self.page_bytes * self.pages_per_block * self.units
        flash = logical * (1 + self.spare)
        if self.slc == "fixed":
            flash /= 1 - self.slc_share
        settings: dict[str, object] = {
            "name": name,
            "about": about,
            "geometry.channels": self.channels,
            "geometry.dies-per-channel": self.dies,
            "geometry.page-size": f"{self.page_bytes // (self.shot * self.planes)} B",
            "geometry.pages-per-block": self.pages_per_block * self.shot,
            "geometry.blocks-per-plane": max(round(flash / plane_block), 4),
            "capacity.logical": f"{logical} B",
            "ftl.scheme": self.scheme,
            "timing.read": f"{round(self.read_ns)} ns",
            "timing.program": f"{round(self.program_ns)} ns",
            "timing.erase": f"{round(self.erase_ns)} ns",
            "timing.oob-read": f"{round(self.look_up_ns)} ns",
            "timing.bus-rate": f"{round(self.page_bytes * 1e9 / self.transfer_ns)} B/s",
            "host.partial-pages": "read-modify-write" if self.rewrites else "whole",
            "controller.interface-rate": f"{round(self.rate)} B/s",
            "controller.queue-depth": self.queue_depth,
            "controller.read-overhead": f"{round(self.read_overhead_ns)} ns",
            "controller.write-overhead": f"{round(self.write_overhead_ns)} ns",
            "controller.noise": round(self.noise, 4),
            "gc.schedule": self.schedule,
            # As when the fit was judged: with moved pages apart, units would come to clean at the same time.
            "placement.policy": "single",
            "placement.allocation": "dynamic",
            "timing.die-order": self.die_order,
            "chips.suspends": self.suspends,
            "geometry.superblock": self.superblock,
        }
        if self.unit_bytes:
            settings |= {
                "geometry.mapping-unit": f"{self.unit_bytes} B",
                "chips.write-ram": f"{self.ram_programs * self.units * self.page_bytes} B",
            }
        if self.planes > 1:
            together = "die" if self.superblock == "block" else self.superblock
            settings |= {"geometry.planes-per-die": self.planes, "geometry.superblock": together}
        if self.shot > 1:
            settings |= {"geometry.bits-per-cell": self.shot, "chips.programming": "one-shot"}
        if self.slc != "none":
            settings |= {
                "geometry.bits-per-cell": max(self.shot, self.bits),
                "slc.cache": self.slc,
                "slc.block-share": round(self.slc_share, 4),
                "slc.page-read": f"{round(self.slc_read_ns)} ns",
                "slc.page-program": f"{round(self.slc_program_ns)} ns",
                "slc.when-full": self.slc_full,
                "slc.fold-after": f"{round(self.fold_after_ns)} ns",
            }
        if self.scheme == "dftl":
            settings["ftl.dftl.cmt-entries"] = max(int(logical / mapped * self.map_share), 64)
        if self.write_buffer_bytes:
            settings |= {
                "controller.write-buffer.size": f"{self.write_buffer_bytes} B",
                "controller.write-buffer.kind": self.kind,
                "controller.write-buffer.drain": self.drain,
                "controller.write-buffer.oversized": self.oversized,
                # As many as can be written side by side.
                "controller.write-buffer.flushes": self.units,
            }
        if self.read_buffer_bytes:
            settings |= {
                "controller.read-buffer.size": f"{self.read_buffer_bytes} B",
                "controller.read-buffer.least": f"{self.read_least_bytes} B",
                "controller.read-buffer.prefetch": f"{self.prefetch_bytes} B",
            }
        return _blank().with_(settings)


@dataclass(frozen=True)
class Residual:
    """A level of drive and twin.

    Attributes
    ----------
    pattern, kind, level : str
        Such as ``"used-mixed"``, ``"write"``, ``"p99"``; the kind of a bandwidth is empty.
    drive, twin : float
        Nanoseconds, or bytes per second.
    ratio : float
        Twin over drive.
    """

    pattern: str
    kind: str
    level: str
    drive: float
    twin: float
    ratio: float


@dataclass(frozen=True)
class Fit:
    """A twin and how it came about.

    Attributes
    ----------
    ssd : Ssd
        The twin.
    model : Model
        Its numbers.
    residuals : tuple of Residual
        What the calibration says of drive and twin.
    error : float
        Root mean square of the logarithms of the weighted ratios.
    tried : tuple of (str, float)
        Structures that were compared, with their error.
    evaluations : int
        How often patterns were played on a candidate.
    stopped : str
        Why the fit ended before it was done; empty if it was. What the model was not yet played on has no residuals.
    """

    ssd: Ssd
    model: Model
    residuals: tuple[Residual, ...]
    error: float
    tried: tuple[tuple[str, float], ...]
    evaluations: int
    stopped: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As nested dicts and lists of numbers and text, for TOML or JSON."""
        return {
            "error": self.error,
            "evaluations": self.evaluations,
            "stopped": self.stopped,
            "tried": [{"structure": name, "error": error} for name, error in self.tried],
            "residuals": [vars(residual) for residual in self.residuals],
        }


@cache
def _blank() -> Ssd:
    """A drive of defaults, read once."""
    return Ssd.from_text("", "blank")


def gaps_between(
    wanted: Sequence[Measured], found: Sequence[Measured] | None
) -> list[tuple[str, str, str, float, float, float, float]]:
    """Pattern, kind, level, drive, twin, weight, and logarithm of the ratio; the worst where a candidate failed."""
    rows = []
    for at, drive in enumerate(wanted):
        twin = found[at] if found is not None else None
        weights = CLEAN if drive.pattern.stage == "clean" else USED
        for kind, level in drive.levels.items():
            for name, weight in weights.items():
                here = float(getattr(level, name))
                there = float(getattr(twin.levels[kind], name)) if twin else 0.0
                gap = math.log((there + FLOOR_NS) / (here + FLOOR_NS)) if twin else WORST
                sure = weight * _sureness(level.errors.get(name, 0.0))
                row = (drive.pattern.name, kind, name.removesuffix("_ns"), here, there, sure, gap)
                rows.append(row)
        there = twin.bandwidth if twin else 0.0
        gap = math.log(there / drive.bandwidth) if twin else WORST
        chance = max(level.errors.get("mean_ns", 0.0) for level in drive.levels.values())
        sure = 0.7 * _sureness(chance)
        rows.append((drive.pattern.name, "", "bandwidth", drive.bandwidth, there, sure, gap))
    return rows


def _sureness(error: float) -> float:
    """What a level with this standard error counts of its weight: as least squares have it, up to a floor."""
    return 1 / math.sqrt(1 + (error / _SURE) ** 2)


def robust(residuals: Array) -> float:
    """Root of Huber's mean loss: as a root mean square, but linear beyond the bound."""
    size = np.abs(residuals)
    loss = np.where(size <= HUBER, size**2, HUBER * (2 * size - HUBER))
    return float(np.sqrt(loss.mean()))


def moved(model: Model, steps: Mapping[str, float]) -> Model:
    """The model with some numbers multiplied by the exponentials of these."""
    changes = {}
    for name, step in steps.items():
        low, high = BOUNDS[name]
        changes[name] = min(max(getattr(model, name) * math.exp(step), low), high)
    return replace(model, **changes)


def layouts_of(units: int | None) -> list[tuple[int, int]]:
    """Channels and dies on each to try."""
    if units is None:
        return [
            (1, 1),
            (2, 1),
            (1, 2),
            (4, 1),
            (2, 2),
            (1, 4),
            (8, 1),
            (4, 2),
            (2, 4),
            (8, 2),
            (4, 4),
            (8, 4),
        ]
    return [(units // dies, dies) for dies in range(1, units + 1) if units % dies == 0]


def name_of(model: Model) -> str:
    """A structure in words."""
    buffer = f", {model.kind} {model.drain} {model.oversized}" if model.write_buffer_bytes else ""
    unit = f" of units of {model.unit_bytes} B" if model.unit_bytes else ""
    shot = f" by {model.shot}" if model.shot > 1 else ""
    shot += f" in {model.planes} planes" if model.planes > 1 else ""
    cache = "" if model.slc == "none" else f", SLC {model.slc}"
    cache += " that folds" if model.slc != "none" and model.slc_full == "fold" else ""
    when = "" if model.schedule == "foreground" else f", cleaning {model.schedule}"
    when += "" if model.die_order == "fifo" else f", dies {model.die_order}"
    when += "" if model.suspends == "nothing" else f", reads suspend {model.suspends}"
    shot += " in superblocks" if model.superblock == "drive" else ""
    return (
        f"{model.scheme}, {model.channels} x {model.dies} units, page {model.page_bytes} B{unit}{shot} x "
        f"{model.pages_per_block}, queue {model.queue_depth}{buffer}{cache}{when}"
    )
