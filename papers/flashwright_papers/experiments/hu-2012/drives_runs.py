"""Chapter 4: what drives do as they fill, on bundled models of the four drives, and two small models beside them.

The runs are those of ``flashwright characterize``. drives.md beside this file says how the models were scaled.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flashwright import RunSettings, Ssd, lifetime, workloads
from flashwright.characterization.base import Result, Settings
from flashwright.characterization.depth_and_size import DepthAndSizeResult
from flashwright.characterization.fills import RANGES, FillsResult
from flashwright.characterization.session import characterize
from flashwright.characterization.unpredictability import UnpredictabilityResult
from flashwright.target.target import Target
from flashwright_papers import Job, Setting, part

Row = dict[str, Any]

PAGE_MAPPED = ("intel-320", "samsung-470", "fusion-iodrive")
LOG_BLOCK = "ocz-vertex-3"
PUBLISHED = {"intel-320": 0.12, "fusion-iodrive": 0.30}
# Drive fills: the dissertation's.
FILLS = dict.fromkeys(PAGE_MAPPED, 6) | {LOG_BLOCK: 3}
# Share of a drive's blocks that is simulated.
PER_CENT, PER_CENT_QUICK = 5, 1
# Logical over physical size, to find the spare space at which each falls to what was published.
UTILIZATIONS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.92)
# A far read takes longer than so many of the first phase's 99th percentile.
FAR = 1.5
SEED = 1
# Table 4.1 has 90 us for a write of 4 KiB on the Intel, of which 15 are its way over the link: the rest is the
# firmware's work for a request. It has no such figure of the Samsung, and the ioDrive's is in its model.
WRITE_WORK = {"intel-320": "75 us"}
# Points that are kept of a curve: of the whole one, and of its first one and a half capacities.
POINTS, POINTS_EARLY, EARLY = 36, 30, 150
BINS = 50


def drive(name: str, per_cent: float, utilization: float | None = None) -> Ssd:
    """A bundled drive with fewer blocks a plane and the same share of spare space, or another share."""
    whole = Ssd.named(name)
    g = whole.config["geometry"]
    blocks = int(g["blocks-per-plane"] * per_cent // 100)
    logical_kib = kib(whole.config["capacity"]["logical"]) * per_cent // 100
    if utilization is not None:
        dies = g["channels"] * g["dies-per-channel"] * g["planes-per-die"]
        page_kib = kib(g["page-size"])
        logical_kib = int(
            dies * blocks * g["pages-per-block"] * page_kib * utilization // page_kib * page_kib
        )
    return whole.with_(
        {"geometry.blocks-per-plane": blocks, "capacity.logical": f"{int(logical_kib)} KiB"}
    )


def utilization_of(config: Row) -> float:
    """Logical over physical size of a drive's description."""
    g = config["geometry"]
    dies = g["channels"] * g["dies-per-channel"] * g["planes-per-die"]
    flash_kib = dies * g["blocks-per-plane"] * g["pages-per-block"] * kib(g["page-size"])
    return kib(config["capacity"]["logical"]) / flash_kib


def kib(size: str) -> int:
    """A size of a drive's description in KiB."""
    return int(lifetime.parse_size(size)) // 1024


def experiment(ssd: Ssd, name: str, quick: bool, settings: Settings) -> Result:
    """What one experiment of ``characterize`` finds of a drive."""
    with Target(ssd, seed=SEED) as target:
        found = characterize(
            target, [name], mode="quick" if quick else "full", seed=SEED, settings=settings
        )
    return found.result(name)


# Random writes over drive fills ---------------------------------------------------------------------


def fill(
    name: str,
    per_cent: float,
    fills: int,
    ranges: Sequence[float],
    prefill: bool = False,
    utilization: float | None = None,
) -> Row:
    """Bandwidth and response of random writes by the range that they go to."""
    settings = Settings(fills=fills, ranges=tuple(ranges), prefill=prefill)
    ssd = drive(name, per_cent, utilization)
    found = experiment(ssd, "fills", False, settings)
    assert isinstance(found, FillsResult)
    curves = []
    for curve in found.curves:
        falls = not math.isnan(curve.knee)
        share = curve.bandwidth_bytes_per_s / curve.peak_bytes_per_s
        before = int(0.95 * (100 * curve.knee if falls else 100))
        curves.append(
            {
                "range": curve.range_share,
                "peak_mb_per_s": curve.peak_bytes_per_s / 1e6,
                "rho": curve.rho,
                "rho_third_capacity": float(np.median(share[250:300])),
                "knee_capacities": curve.knee if falls else None,
                "deviation_before_knee": float(np.abs(share[:before] - 1).max()),
                "slow_share": curve.slow_share,
                "spike_share": curve.spike_share,
                "largest_over_mean": float(
                    curve.response_max_ns[-100:].max() / curve.response_mean_ns[-100:].mean()
                ),
                "written": thinned(curve.written, POINTS, "last"),
                "mb_per_s": thinned(curve.bandwidth_bytes_per_s / 1e6, POINTS),
                "response_ms": thinned(curve.response_mean_ns / 1e6, POINTS),
                "response_max_ms": thinned(curve.response_max_ns / 1e6, POINTS, "max"),
                "early_written": thinned(curve.written[:EARLY], POINTS_EARLY, "last"),
                "early_mb_per_s": thinned(curve.bandwidth_bytes_per_s[:EARLY] / 1e6, POINTS_EARLY),
            }
        )
    return {
        "drive": name,
        "prefilled": prefill,
        "utilization": utilization_of(ssd.config),
        "curves": curves,
        "in_order_mb_per_s": found.in_order_bytes_per_s / 1e6,
        "mapping": found.mapping,
    }


def thinned(values: np.ndarray, points: int, how: str = "median") -> list[float]:
    """So many points of a curve: of each stretch its median, its largest value or its last."""
    by_name = {"median": np.median, "max": np.max}
    made = []
    for piece in np.array_split(values, min(points, len(values))):
        made.append(round(float(piece[-1] if how == "last" else by_name[how](piece)), 5))
    return made


@part("drive-fills", cpu_s=(4, 53))
def drive_fills(setting: Setting) -> list[Job]:
    """The four drives; the log-block one also filled before."""
    listed = []
    for name in (*PAGE_MAPPED, LOG_BLOCK):
        for prefill in (False, True) if name == LOG_BLOCK else (False,):
            given = {
                "name": name,
                "per_cent": PER_CENT_QUICK if setting.quick else PER_CENT,
                "fills": 3 if setting.quick else FILLS[name],
                "ranges": (0.1, 0.5, 1.0) if setting.quick else RANGES,
                "prefill": prefill,
            }
            listed.append(Job(fill, given, f"{name}{', filled before' if prefill else ''}"))
    return listed


@part("drive-spare", cpu_s=(3, 49))
def drive_spare(setting: Setting) -> list[Job]:
    """The two drives with a published level, by spare space, over their whole range."""
    return [
        Job(
            fill,
            {
                "name": name,
                "per_cent": PER_CENT_QUICK if setting.quick else PER_CENT,
                "fills": 3 if setting.quick else FILLS[name],
                "ranges": (1.0,),
                "utilization": utilization,
            },
            f"{name}, {100 * utilization:.0f} % of the flash in use",
        )
        for name in PUBLISHED
        for utilization in UTILIZATIONS[:: 3 if setting.quick else 1]
    ]


# Table 4.1 ------------------------------------------------------------------------------------------

# Its latencies of these two are the inverse of their requests a second.
BY_REQUESTS = (LOG_BLOCK, "fusion-iodrive")
MANY = 128  # requests outstanding, where they are counted
IN_ORDER, SMALL = 128 << 10, 4 << 10  # bytes


def specified(name: str, per_cent: float, requests: int) -> Row:
    """Bandwidths in order, and latencies of 4 KiB at random, as table 4.1 gives them."""
    ssd = drive(name, per_cent)
    rng = np.random.default_rng(SEED)

    def mb_per_s(target: Target, kind: str) -> float:
        places = np.arange(requests) * IN_ORDER % (target.capacity_bytes // IN_ORDER * IN_ORDER)
        times = target.play(kind, places, IN_ORDER, depth=32)  # type: ignore[arg-type]
        return requests * IN_ORDER * 1e3 / times.duration_ns

    def latency_us(target: Target, kind: str) -> float:
        places = rng.integers(0, target.capacity_bytes // SMALL, requests) * SMALL
        if name in BY_REQUESTS:
            times = target.play(kind, places, SMALL, depth=MANY)  # type: ignore[arg-type]
            return float(times.duration_ns) / requests / 1e3
        times = target.play(kind, places, SMALL)  # type: ignore[arg-type]
        return float((times.ended_ns - times.submitted_ns).mean()) / 1e3

    with Target(ssd, seed=SEED) as target:
        found = {"write_mb_per_s": mb_per_s(target, "write")}
        target.fill()
        found["read_mb_per_s"] = mb_per_s(target, "read")
        found["read_us"] = latency_us(target, "read")
    with Target(ssd, seed=SEED) as target:
        found["write_us"] = latency_us(target, "write")
    return {"drive": name} | found


@part("drive-table", cpu_s=(2, 8))
def drive_table(setting: Setting) -> list[Job]:
    """The four drives."""
    given = {
        "per_cent": PER_CENT_QUICK if setting.quick else PER_CENT,
        "requests": 1_000 if setting.quick else 5_000,
    }
    return [Job(specified, {"name": name} | given, name) for name in (*PAGE_MAPPED, LOG_BLOCK)]


# Reads among writes ---------------------------------------------------------------------------------


def read(name: str, per_cent: float, ranges: Sequence[float], blocks: str = "dies") -> Row:
    """Responses of random reads among as many random writes, by capacity written; `blocks` is what cleaning blocks."""
    ssd = drive(name, per_cent).with_({"timing.cleaning-blocks": blocks})
    found = experiment(ssd, "unpredictability", False, Settings(ranges=tuple(ranges)))
    assert isinstance(found, UnpredictabilityResult)
    listed = []
    for each in found.ranges:
        # Where hardly a read of the first phase is: slow ones are beyond.
        far_ns = FAR * each.p99_ns[0]
        outside = each.edges_ns[:-1] >= far_ns
        peaks = [
            [
                [float(at) / 1e6, float(height) * 1e6]
                for at, height in zip(places, heights, strict=True)
                if at >= far_ns
            ]
            for places, heights in zip(each.peaks, each.peak_heights, strict=True)
        ]
        joined = each.edges_ns.size // BINS
        listed.append(
            {
                "range": each.range_share,
                "mean_ms": (each.mean_ns / 1e6).tolist(),
                "deviation_ms": (each.deviation_ns / 1e6).tolist(),
                "distance": each.distance.tolist(),
                "highest_per_ms": (each.density.max(axis=1) * 1e6).tolist(),
                "far_peaks": peaks,
                "far_share": [
                    float((density * np.diff(each.edges_ns))[outside].sum())
                    for density in each.density
                ],
                "verdict": each.verdict,
                "bin_ms": float(each.edges_ns[joined] / 1e6),
                "density_per_ms": [
                    (row.reshape(-1, joined).mean(axis=1) * 1e6).round(5).tolist()
                    for row in each.density
                ],
                "written": thinned(each.written, POINTS, "last"),
                "response_ms": thinned(each.response_mean_ns / 1e6, POINTS),
            }
        )
    return {"drive": name, "ranges": listed}


@part("drive-reads", cpu_s=(7, 40))
def drive_reads(setting: Setting) -> list[Job]:
    """The three page-mapped drives."""
    given = {
        "per_cent": PER_CENT_QUICK if setting.quick else PER_CENT,
        "ranges": (0.1, 0.5, 0.7, 1.0) if setting.quick else RANGES,
    }
    if "cleaning-blocks" in setting.given:
        given["blocks"] = setting.given["cleaning-blocks"]
    return [Job(read, {"name": name} | given, name) for name in PAGE_MAPPED]


# Requests outstanding and their size ----------------------------------------------------------------


def grid(
    name: str,
    per_cent: float,
    quick: bool,
    dies_per_channel: int | None = None,
    write_work: str = "",
) -> Row:
    """Bandwidth and response of random reads and writes, by size and requests outstanding."""
    ssd = drive(name, per_cent)
    if write_work:
        ssd = ssd.with_({"controller.write-overhead": write_work})
    if dies_per_channel is not None:
        config = ssd.config
        share = dies_per_channel / config["geometry"]["dies-per-channel"]
        logical = kib(config["capacity"]["logical"]) * share // 4 * 4
        ssd = ssd.with_(
            {
                "geometry.dies-per-channel": dies_per_channel,
                "capacity.logical": f"{int(logical)} KiB",
                "controller.write-buffer.flushes": int(
                    config["controller"]["write-buffer"]["flushes"] * share
                ),
            }
        )
    found = experiment(ssd, "depth-and-size", quick, Settings())
    assert isinstance(found, DepthAndSizeResult)
    g = ssd.config["geometry"]
    return {
        "drive": name,
        "dies": g["channels"] * g["dies-per-channel"],
        "as_bundled": dies_per_channel is None,
        "write_work": write_work,
        "grids": [
            {
                "kind": each.kind,
                "size_kib": (each.size_bytes // 1024).tolist(),
                "depth": each.depth.tolist(),
                "mb_per_s": (each.bandwidth_bytes_per_s / 1e6).round(4).tolist(),
                "response_us": (each.response_mean_ns / 1e3).round(4).tolist(),
                "saturation_depth": each.saturation_depth.tolist(),
                "slope_us": [none_of(value / 1e3) for value in each.slope_ns],
                "linearity": [none_of(value) for value in each.linearity],
                "best_size_kib": each.best_size_bytes // 1024,
                "best_depth": each.best_depth,
            }
            for each in found.grids
        ],
    }


def none_of(value: float) -> float | None:
    """A number, or None where there is none."""
    return None if math.isnan(value) else float(value)


@part("drive-grids", cpu_s=(20, 180))
def drive_grids(setting: Setting) -> list[Job]:
    """The three page-mapped drives, one of them with its printed work too, and the Samsung's with eight dies in all."""
    common = {"per_cent": PER_CENT_QUICK if setting.quick else PER_CENT, "quick": setting.quick}
    bundled = [Job(grid, {"name": name} | common, name) for name in PAGE_MAPPED]
    bundled += [
        Job(grid, {"name": name, "write_work": work} | common, f"{name}, {work} a write")
        for name, work in WRITE_WORK.items()
    ]
    eight = {"name": "samsung-470", "dies_per_channel": 1} | common
    return [*bundled, Job(grid, eight, "samsung-470 with eight dies")]


# Figure 4.2 -----------------------------------------------------------------------------------------

# Pages in the order of the figure's columns B1 to B6; then pages that were never written, until cleaning begins.
FIGURE_4_2 = {
    16: (0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 2, 4, 6, 1, 3, 5, 7),
    20: (0, 5, 10, 15, 1, 6, 11, 16, 2, 7, 12, 17, 3, 8, 13, 18, 4, 9, 14, 19, 0, 1, 2, 3),
}


def play_pages(ssd: Ssd, pages: Sequence[int], warmup: int, requests: int) -> Any:
    """Write single pages, one after the other; what the last `requests` of them did."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pages.mqsim"
        path.write_text("".join(f"{i} 0 {page * 8} 8 0\n" for i, page in enumerate(pages)))
        trace = workloads.trace(path, format="mqsim", addresses="reject")
        return ssd.play(trace, warmup=warmup, requests=requests, seed=SEED)


def efficiency(reserved: int) -> Row:
    """Six blocks of four pages, written as in Figure 4.2, and the first clean after that."""
    ssd = Ssd.named("default").with_(
        {
            "geometry.channels": 1,
            "geometry.dies-per-channel": 1,
            "geometry.blocks-per-plane": 8,  # two of them kept for cleaning
            "geometry.pages-per-block": 4,
            "capacity.logical": "96 KiB",
            "gc.free-blocks-min": 1,
            "gc.victim": "greedy",
            "wear.free-block": "fifo",
            "placement.policy": "single",
            "placement.allocation": "dynamic",
            "timing.model": "none",
        }
    )
    pages = FIGURE_4_2[reserved]
    full = play_pages(ssd, pages, 0, len(pages))
    # Four new pages, then one of them again: a seventh block fills up, and the next write needs room.
    new = list(range(reserved, reserved + 4))
    cleaned = play_pages(ssd, (*pages, *new, new[0]), len(pages), 5)
    return {
        "range": reserved / 24,
        "valid_by_block": sorted(int(v) for v in full.valid_per_block if v),
        "collections": cleaned.json["gc"]["collections"],
        "efficiency": cleaned.json["gc"]["efficiency"],
        "copies": cleaned.json["flash"]["programs"]["gc"],
    }


@part("drive-example", cpu_s=(0.1, 0.1))
def drive_example(setting: Setting) -> list[Job]:
    """The two halves of Figure 4.2."""
    return [Job(efficiency, {"reserved": reserved}, f"{reserved} of 24") for reserved in FIGURE_4_2]


# Lives ----------------------------------------------------------------------------------------------

LIVES = (0.1, 0.5, 0.7, 0.8, 0.9)
SWEPT = (0.5, 0.8, 0.9)


def life(reserved: float, cycles: int) -> Row:
    """A small drive without other spare space, written at random within a share of its flash until it wears out."""
    ssd = Ssd.named("default").with_(
        {
            "geometry.channels": 1,
            "geometry.dies-per-channel": 1,
            "geometry.blocks-per-plane": 1024,
            "geometry.pages-per-block": 64,
            "capacity.utilization": reserved,
            "gc.victim": "fifo",
            "placement.policy": "single",
            "placement.allocation": "dynamic",
            "timing.model": "none",
            "wear.pe-cycles-max": cycles,
        }
    )
    settings = RunSettings(seed=SEED, window="off")
    run = lifetime.begin(ssd.precondition("random"), "uniform:write=1", settings)
    end = lifetime.Endurance.of(lifetime.play_to_end(run))
    return {
        "reserved": reserved,
        "cycles": cycles,
        "fills": end.host_pages / end.physical_pages,
        "formula": float(lifetime.writable(1.0, reserved, cycles)),
    }


@part("drive-lives", cpu_s=(2, 5))
def drive_lives(setting: Setting) -> list[Job]:
    """Lives by the share of the flash in use, FIFO victims."""
    cycles = 100 if setting.quick else 400
    return [
        Job(life, {"reserved": reserved, "cycles": cycles}, f"{100 * reserved:.0f} % in use")
        for reserved in LIVES
    ]
