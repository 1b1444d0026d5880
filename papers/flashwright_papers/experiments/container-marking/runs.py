"""What the claims of the container-marking report rest on: FIFO, windowed greedy and container marking side by side.

README.md beside this file names the readings and what was left out.
"""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flashwright import Ssd, tracefiles, workloads
from flashwright.errors import FlashwrightError
from flashwright_papers import Job, Setting, part

PAGES = 64
FULL_BLOCKS = 32_768  # Table II: 4 channels x 2 dies x 4,096
D30, D70, Z80, Z95, UNIFORM = "D&S 30 %", "D&S 70 %", "Zipf 80/20", "Zipf 95/20", "uniform"
LOADS = {
    D30: "dynamic-static:static=0.3",
    D70: "dynamic-static:static=0.7",
    Z80: "zipf:accesses=0.8,space=0.2",
    Z95: "zipf:accesses=0.95,space=0.2",
    UNIFORM: "uniform",
}
SKEWED = (D30, D70, Z80, Z95)
FIFO, GREEDY, WINDOWED = "fifo", "greedy", "windowed greedy"
PER_LIST, EACH_LIST = "marking, per-list", "marking, each-list"
POLICIES = (FIFO, WINDOWED, PER_LIST, EACH_LIST)
CYCLES = 5000  # erases that a block stands in the report
CYCLES_SHORT = 300  # and where a whole life is played
LIVES_AT = (0.7, 0.8)
# The report's traces: the names of the published files, packed or not, and their format.
TRACES = {
    "financial1": ("Financial1.spc", "spc"),
    "proj-0": ("proj_0.csv", "msr"),
    "src1-2": ("src1_2.csv", "msr"),
    "prxy-0": ("prxy_0.csv", "msr"),
}
HEADS = {
    "first 10,000 requests of financial1": ("financial1-first10k.spc.zst", "spc"),
    "first 20,000 requests of prxy-0": ("prxy_0-first20k.msr.csv.zst", "msr"),
}
HEAD_REPEATS = 150


def settings_of(
    policy: str, blocks: int, levels: int, demotion: str, rotate: str
) -> dict[str, object]:
    """The configuration of a policy; a window that is not per list shrinks with the number of blocks."""
    window = math.ceil(100 * blocks / FULL_BLOCKS)
    if policy not in (PER_LIST, EACH_LIST):
        return {
            "gc.victim": policy.replace(" ", "-"),
            "gc.windowed-greedy.window": window,
            "placement.policy": "single",
            "wear.free-block": "least-worn",
        }
    reading = policy.removeprefix("marking, ")
    return {
        "gc.victim": "container-marking",
        "gc.container-marking.window": reading,
        # Seven of each list, below full size too; the other reading scales.
        "gc.container-marking.window-blocks": 14 * levels if reading == "per-list" else window,
        "gc.container-marking.rotate": rotate if reading == "per-list" else "none",
        "placement.policy": "container-marking",
        "placement.container-marking.levels": levels,
        "placement.container-marking.demotion": demotion,
    }


def drive(
    policy: str,
    blocks: int,
    u: float,
    *,
    levels: int = 8,
    demotion: str = "table",
    rotate: str = "share",
    cycles: int = CYCLES,
    fill: str = "sequential",
) -> Ssd:
    """The scaled drive; with fewer cycles Tc shrinks and beta grows alike, so that wear weighs as much."""
    settings: dict[str, object] = {
        "wear.pe-cycles-max": cycles,
        "geometry.blocks-per-plane": blocks,
        "capacity.utilization": u,
        "gc.free-blocks-min": max(5, math.ceil(20 * blocks / 8192)),
    }
    for victim in ("windowed-greedy", "container-marking"):
        settings[f"gc.{victim}.beta"] = 0.1 * CYCLES / cycles
        settings[f"gc.{victim}.cycles-threshold"] = round(200 * cycles / CYCLES)
    settings |= settings_of(policy, blocks, levels, demotion, rotate)
    return Ssd.named("container-marking-scaled").with_(settings).precondition(fill)


def series(run: Any, windows: int) -> dict[str, Any]:
    """Amplification over the run, and over its last two windows."""
    found = [float(x) for x in run.windows["write_amplification"].to_pylist()][:windows]
    return {"error": "", "series": found, "write_amplification": sum(found[-2:]) / 2}


def amplify(
    load: str,
    u: float,
    policy: str,
    blocks: int,
    drive_writes: int,
    levels: int = 8,
    demotion: str = "table",
    rotate: str = "share",
    fill: str = "sequential",
) -> dict[str, Any]:
    """One synthetic run: amplification over the last fifth for marking and the last half for the others."""
    row = {
        "load": load,
        "u": u,
        "policy": policy,
        "levels": levels,
        "demotion": demotion,
        "rotate": rotate,
        "drive_writes": drive_writes,
    }
    windows = 10 if policy in (PER_LIST, EACH_LIST) else 4
    every = drive_writes * int(blocks * PAGES * u) // windows
    try:
        ssd = drive(policy, blocks, u, levels=levels, demotion=demotion, rotate=rotate, fill=fill)
        run = ssd.play(
            LOADS.get(load, load), requests=every * windows, window=f"requests={every}", seed=1
        )
    except FlashwrightError as error:  # a drive that stalls is a finding
        return row | {"error": str(error).splitlines()[0]}
    return row | series(run, windows)


def live(load: str, u: float, policy: str, blocks: int) -> dict[str, Any]:
    """One life: host pages written until the end over what the erases would take at best."""
    row = {"load": load, "u": u, "policy": policy}
    most = 2 * CYCLES_SHORT * blocks * PAGES
    try:
        run = drive(policy, blocks, u, cycles=CYCLES_SHORT).play(
            LOADS[load], requests=most, window="off", seed=1
        )
    except FlashwrightError as error:
        return row | {"error": str(error).splitlines()[0]}
    ended = run.json["ended"]
    return row | {
        "error": "" if ended == "worn-out" else f"ended {ended}",
        "endurance_efficiency": run.json["wear"]["endurance_efficiency"],
    }


def statistics(trace: str, path: str, format: str) -> dict[str, Any]:
    """What Table III lists, of a trace file; sizes are those of writes."""
    found = tracefiles.info(workloads.trace(path, format=format))
    return {
        "trace": trace,
        "requests": found["requests"],
        "read_percent": found["read_percent"],
        "write_pages": (found["write_bytes_mean"] or 0) / 4096,
        "inter_arrival_ms": found["inter_arrival_ms_mean"],
    }


def replay_whole(trace: str, path: str, format: str, policy: str) -> dict[str, Any]:
    """A whole trace on a drive of the pages it touches, filled at random, again and again for 40 drive writes."""
    found = tracefiles.info(workloads.trace(path, format=format))
    # Blocks below some hundreds have no room for the markers' open blocks.
    blocks = max(512, math.ceil(found["pages"] / PAGES / 0.8))
    logical = int(blocks * PAGES * 0.8)
    written = max(1, math.ceil(found["written_bytes"] / 4096))
    repeat = max(1, math.ceil(40 * logical / written))
    windows = 10
    every = max(1, repeat * found["requests"] // windows)
    source = workloads.trace(path, format=format, addresses="dense", repeat=repeat)
    try:
        run = drive(policy, blocks, 0.8, fill="random").play(
            source, window=f"requests={every}", seed=1
        )
    except FlashwrightError as error:
        return {"trace": trace, "policy": policy, "error": str(error).splitlines()[0]}
    return {"trace": trace, "policy": policy} | series(run, windows)


def replay_head(trace: str, path: str, format: str, policy: str, blocks: int) -> dict[str, Any]:
    """The head of a trace on a drive filled at random, many times over, after a million requests."""
    source = workloads.trace(path, format=format, addresses="wrap", repeat=HEAD_REPEATS)
    ssd = drive(policy, blocks, 0.8, fill="random")
    run = ssd.play(source, warmup=1_000_000, window="off", seed=1)
    return {"trace": trace, "policy": policy, "write_amplification": run.write_amplification}


def marked(ssd: Ssd, requests: Sequence[tuple[int, int]], seed: int) -> Any:
    """Writes of runs of pages (first, number) on an empty drive."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "writes.mqsim"
        path.write_text(
            "".join(
                f"{i * 10**9} 0 {8 * first} {8 * n} 0\n" for i, (first, n) in enumerate(requests)
            )
        )
        return ssd.play(workloads.trace(path, format="mqsim", addresses="wrap"), seed=seed)


def marker_drive(blocks: int, pages: int, u: float) -> Ssd:
    """A drive whose blocks are cleaned in the order in which they were filled, with markers."""
    return (
        Ssd.named("container-marking-scaled")
        .with_(
            {
                "geometry.blocks-per-plane": blocks,
                "geometry.pages-per-block": pages,
                "capacity.utilization": u,
                "gc.victim": "fifo",
                "gc.free-blocks-min": 3,
            }
        )
        .precondition("empty")
    )


def markers_of_updates(levels: int) -> dict[str, Any]:
    """Pages that are written once, twice, and so on: how many end together in each block.

    Page i is updated i times, so by Table I it lies in the block of marker L + i, or 2L.
    """
    count = 2 * levels
    writes = [(0, count)] + [(page, 1) for page in range(count) for _ in range(page)]
    ssd = marker_drive(100, 256, 0.8).with_({"placement.container-marking.levels": levels})
    valid = marked(ssd, writes, 1).valid_per_block
    return {"levels": levels, "together": sorted(int(n) for n in valid if n)}


def markers_of_moves(u: float, seed: int) -> dict[str, Any]:
    """How many of some pages that cleaning moves go down by a marker.

    Pages are written once, so all have marker L, and its open block is left half full. Of the oldest block 500 pages
    stay valid; those after it are overwritten wholly, until cleaning starts. The oldest block's pages then go to the
    open block of L or to a new one of L - 1, which is told apart by its fewer pages.
    """
    blocks, pages, stay, rest = 100, 1024, 500, 520
    data = round(u * blocks)
    over = min(data - 2, blocks - data)
    writes = [(0, (data - 1) * pages + rest), (0, pages - stay), (pages, over * pages)]
    # Four markers leave room at every utilisation.
    ssd = marker_drive(blocks, pages, u).with_({"placement.container-marking.levels": 2})
    run = marked(ssd, writes, seed)
    valid = [int(n) for n in run.valid_per_block if n not in (0, pages)]
    valid.remove(pages - stay)  # the last block of marker L + 1
    moved = run.json["flash"]["programs"]["gc"]
    down = min(valid) if len(valid) == 2 else 0
    return {
        "u": u,
        "moved": moved,
        "down": down,
        "settled": sum(valid) == stay + rest == moved + rest,
    }


def blocks_of(setting: Setting) -> int:
    """Blocks of the drive: a quarter of the report's, or a sixteenth."""
    return 2048 if setting.quick else 8192


def lasting(setting: Setting, u: float) -> int:
    """Drive writes until marking is taken as settled."""
    return (120 if u == 0.8 else 40) if setting.quick else 160


@part("curves", cpu_s=(34, 510))
def curves(setting: Setting) -> list[Job]:
    """Figures 1 and 3: amplification over utilisation."""
    listed = []
    utilisations = (0.6, 0.8, 0.9) if setting.quick else (0.5, 0.6, 0.7, 0.8, 0.9)
    for load, u, policy in itertools.product(LOADS, utilisations, POLICIES):
        drive_writes = lasting(setting, u) if policy in (PER_LIST, EACH_LIST) else 16
        arguments = {
            "load": load,
            "u": u,
            "policy": policy,
            "blocks": blocks_of(setting),
            "drive_writes": min(drive_writes, 40) if load == UNIFORM else drive_writes,
        }
        listed.append(Job(amplify, arguments, f"{load}, u = {u}, {policy}"))
    return listed


@part("separated", cpu_s=(1, 4))
def separated(setting: Setting) -> list[Job]:
    """Figure 1, ideal placement: FIFO on the blocks that hold dynamic data only."""
    return [
        Job(
            separate,
            {"static": static, "u": u, "blocks": blocks_of(setting)},
            f"{100 * static:.0f} % static apart, u = {u}",
        )
        for static in (0.3, 0.7)
        for u in (0.5, 0.6, 0.7, 0.8, 0.9)
    ]


def separate(static: float, u: float, blocks: int) -> Mapping[str, Any]:
    """FIFO under uniform writes at the utilisation that is left for dynamic data."""
    dynamic = u * (1 - static) / (1 - u * static)
    return amplify(UNIFORM, dynamic, FIFO, blocks, 16) | {
        "static": static,
        "u": u,
        "dynamic": dynamic,
    }


@part("greedy", cpu_s=(1, 2))
def whole_greedy(setting: Setting) -> list[Job]:
    """Greedy with no window, under uniform writes."""
    return [
        Job(
            amplify,
            {
                "load": UNIFORM,
                "u": u,
                "policy": GREEDY,
                "blocks": blocks_of(setting),
                "drive_writes": 16,
            },
            f"uniform, u = {u}, greedy",
        )
        for u in (0.8, 0.9)
    ]


@part("probability", cpu_s=(9, 37))
def probability(setting: Setting) -> list[Job]:
    """Marking with p(u) and with p = 1, and both where only fully valid blocks go to the tail."""
    return [
        Job(
            amplify,
            {
                "load": Z95,
                "u": u,
                "policy": PER_LIST,
                "blocks": blocks_of(setting),
                "drive_writes": 60,
                "demotion": demotion,
                "rotate": rotate,
            },
            f"{Z95}, u = {u}, demotion {demotion}, rotating {rotate}",
        )
        for rotate in ("share", "full")
        for u in (0.8, 0.9)
        for demotion in ("table", "always")
    ]


@part("levels", cpu_s=(4, 23))
def levels(setting: Setting) -> list[Job]:
    """Marking with more and more levels."""
    return [
        Job(
            amplify,
            {
                "load": Z95,
                "u": 0.8,
                "policy": PER_LIST,
                "blocks": blocks_of(setting),
                "drive_writes": 60,
                "levels": count,
            },
            f"{Z95}, L = {count}",
        )
        for count in (1, 2, 4, 8, 12, 16)
    ]


@part("lives", cpu_s=(28, 58))
def lives(setting: Setting) -> list[Job]:
    """Figure 4: whole lives."""
    return [
        Job(
            live,
            {"load": load, "u": u, "policy": policy, "blocks": 1024 if setting.quick else 2048},
            f"life, {load}, u = {u}, {policy}",
        )
        for load in SKEWED
        for u in LIVES_AT
        for policy in POLICIES
    ]


def whole(setting: Setting, trace: str) -> str | None:
    """The path of a whole trace, packed or not."""
    name = TRACES[trace][0]
    found = (setting.trace(name + packed) for packed in ("", ".zst", ".gz", ".xz"))
    return next((path for path in found if path is not None), None)


@part("traces", cpu_s=(4, 4))
def traces(setting: Setting) -> list[Job]:
    """Table IV: whole traces where they are there, and financial1's stand-in where that is not."""
    listed = []
    for trace, (_, kind) in TRACES.items():
        path = whole(setting, trace)
        if path is not None:
            listed += [
                Job(
                    replay_whole,
                    {"trace": trace, "path": path, "format": kind, "policy": policy},
                    f"{trace}, {policy}",
                )
                for policy in POLICIES
            ]
    if whole(setting, "financial1") is None:
        listed += [
            Job(
                amplify,
                {
                    "load": "stand-in:financial1",
                    "u": 0.8,
                    "policy": policy,
                    "blocks": 2048,
                    "drive_writes": 60,
                    "fill": "random",
                },
                f"financial1 stand-in, {policy}",
            )
            for policy in POLICIES
        ]
    return listed


@part("heads", cpu_s=(6, 6))
def heads(setting: Setting) -> list[Job]:
    """Heads of real traces, where they are there."""
    return [
        Job(
            replay_head,
            {"trace": name, "path": path, "format": kind, "policy": policy, "blocks": 2048},
            f"{name}, {policy}",
        )
        for name, (file, kind) in HEADS.items()
        if (path := setting.trace(file)) is not None
        for policy in POLICIES[:3]
    ]


@part("table-3", cpu_s=(1, 1))
def table_3(setting: Setting) -> list[Job]:
    """Statistics of traces: whole ones, and heads."""
    found = [(trace, whole(setting, trace), kind) for trace, (_, kind) in TRACES.items()]
    found += [(name, setting.trace(file), kind) for name, (file, kind) in HEADS.items()]
    return [
        Job(statistics, {"trace": name, "path": path, "format": kind}, f"statistics, {name}")
        for name, path, kind in found
        if path is not None
    ]


@part("updates", cpu_s=(1, 1))
def updates(setting: Setting) -> list[Job]:
    """Table I: new pages and updates."""
    return [
        Job(markers_of_updates, {"levels": count}, f"updates, L = {count}") for count in (2, 4, 8)
    ]


@part("moves", cpu_s=(2, 2))
def moves(setting: Setting) -> list[Job]:
    """Table I: moved pages, in the middle of each range of utilisation."""
    return [
        Job(markers_of_moves, {"u": u, "seed": seed}, f"moves, u = {u}, seed {seed}")
        for u in (0.5, 0.6, 0.7, 0.8, 0.9)
        for seed in range(1, 7)
    ]
