"""Five cleaning schedules under three loads, on two drives: what reads and writes wait for.

    python experiments/schedules/run.py [--quick] [--seeds 3] [--json FILE]

The load is a share of what the drive sustains under ``foreground``: the rate of a closed loop at depth 256 of 4 KiB
requests, uniform, 70 % writes, on the settled drive. Measured is an open loop with Poisson arrivals at 50, 80 and 95 %
of that rate. A figure is the middle one of all seeds; ``~`` marks those on which the seeds differ by more than 10 %.
``--quick`` plays smaller drives, one seed and one load; its figures stand for nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flashwright import Run, RunResult, RunSettings, Ssd, workloads
from flashwright.cli.render.units import time

SCHEDULES = ("foreground", "background", "preemptive", "rate-limited", "throttled")
SHARES = (0.5, 0.8, 0.95)
LEVELS = {"p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}
FIGURES = [f"{kind} {name}" for kind in ("read", "write") for name in ("mean", *LEVELS)]
DIFFERS = 0.1
CONSERVED = 0.01
REQUESTS = "uniform:write=0.7,size=4KiB"

# Between two cleans every schedule leaves four blocks of a plane free. Those that clean ahead of need begin below four
# and have two more to fall back on; `foreground` has none, so four is its hard mark.
MARKS: dict[str, dict[str, object]] = {
    "foreground": {"gc.free-blocks-min": 4},
    "background": {"gc.background.start-blocks": 4, "gc.background.stop-blocks": 4},
    "preemptive": {"gc.preemptive.start-blocks": 4},
    "rate-limited": {"gc.rate-limited.start-blocks": 4},
    "throttled": {"gc.throttled.start-blocks": 4},
}
# A superblock has 9,216 pages of 4 KiB, and 768 of them are programmed side by side.
ROWS = 3072


@dataclass(frozen=True)
class Drive:
    """A drive, the marks of each schedule, and the length of its runs."""

    name: str
    ssd: Ssd
    marks: Mapping[str, Mapping[str, object]]
    warmup: int
    measured: int
    closed: int

    def play(self, schedule: str, load: str, requests: int, seed: int) -> RunResult:
        """One run on the drive that the same requests have settled."""
        ssd = self.ssd.with_({"gc.schedule": schedule, **self.marks[schedule]})
        settings = RunSettings(seed=seed, requests=requests, warmup=self.warmup, window="off")
        source = workloads.parse(f"{REQUESTS},{load}")
        return Run.create(ssd.toml, "workload", source, settings).go()

    def sustained(self, schedule: str) -> float:
        """Requests per second of a closed loop at depth 256."""
        rate = self.play(schedule, "depth=256", self.closed, 1).json["throughput"]["iops"]
        assert rate is not None, "the drive keeps time"
        return float(rate)


def drives(quick: bool) -> list[Drive]:
    """The two drives."""
    planes = Ssd.named("default").with_(
        {
            "geometry.blocks-per-plane": 512 if quick else 2048,
            "placement.policy": "single",
            "placement.allocation": "dynamic",
            "timing.die-order": "by-class",
            "host.queue-depth": 512,
        }
    )
    superblocks = Ssd.from_toml(Path(__file__).parent / "superblocks.toml")
    rows = ROWS
    if quick:
        # A third of the pages in a block, a quarter of the blocks, the same share spare.
        rows //= 3
        smaller = {"geometry.pages-per-block": 12, "geometry.blocks-per-plane": 136}
        superblocks = superblocks.with_({**smaller, "capacity.logical": f"{13759020 // 12} KiB"})
    steps = {f"gc.{name}.steps": rows for name in ("background", "preemptive", "throttled")}
    wide = {name: {**marks, **steps} for name, marks in MARKS.items()}
    # Here the dies are seldom idle at once, so `background` cleans at its hard mark too; the others hover above three.
    wide["foreground"] |= {"gc.free-blocks-min": 3}
    wide["background"] |= {"gc.free-blocks-min": 3}
    if quick:
        return [
            Drive("planes", planes, MARKS, 20_000, 100_000, 50_000),
            Drive("superblocks", superblocks, wide, 200_000, 400_000, 200_000),
        ]
    return [
        Drive("planes", planes, MARKS, 200_000, 2_000_000, 500_000),
        Drive("superblocks", superblocks, wide, 2_000_000, 4_000_000, 1_000_000),
    ]


def row(drive: Drive, schedule: str, rate: float, seed: int) -> dict[str, Any]:
    """The figures of one open loop."""
    result = drive.play(schedule, f"rate={rate:.0f}", drive.measured, seed)
    found: Any = result.json
    chips = found["chips"]
    figures: dict[str, Any] = {
        "schedule": schedule,
        "seed": seed,
        "programs_per_host_page": result.write_amplification,
        "verdict": result.settled.verdict,
        "falls_behind": any(each.code == "falls-behind" for each in result.warnings),
        "dies_busy": statistics.fmean(found["busy"]["dies"]),
        "pages_read_from_arrays": None if chips is None else chips["array_reads"],
        "programs_suspended": None if chips is None else chips["programs_suspended"],
    }
    for kind in ("read", "write"):
        times = result.latency_of(kind)
        figures[f"{kind} mean"] = times.mean
        figures |= {f"{kind} {name}": times.quantile(level) for name, level in LEVELS.items()}
    return figures


def middle(rows: Sequence[Mapping[str, Any]], figure: str) -> str:
    """The middle of the seeds' figures, marked where they differ."""
    values = [float(each[figure]) for each in rows]
    found = statistics.median(values)
    return f"{'~' if max(values) - min(values) > DIFFERS * found else ''}{time(found) if found else '0'}"


def lines(label: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """A line of a table: pages programmed per host page, then reads, then writes."""
    written = statistics.fmean(each["programs_per_host_page"] for each in rows)
    if any(each["falls_behind"] for each in rows):
        cells = ["falls behind: it cannot sustain this rate"]
    else:
        cells = [f"{middle(rows, figure):>9}" for figure in FIGURES]
        cells.insert(len(cells) // 2, "|")
    return f"  {label:31} {written:6.3f}  {' '.join(cells)}"


def heading(what: str) -> str:
    """The heads of a table."""
    names = " ".join(f"{name:>9}" for name in ("mean", *LEVELS))
    return f"{what}\n  {'':31} {'WA':>6}  {names} | {names}\n  {'':31} {'':6}  {'reads':>9} {'':29} | {'writes':>9}"


def compared(drive: Drive, shares: Sequence[float], seeds: Sequence[int]) -> dict[str, Any]:
    """All schedules on a drive; printed as they are found. With one load, only that of `foreground` is found."""
    print(f"\n{drive.name}", flush=True)
    sustained = {
        name: drive.sustained(name) for name in (SCHEDULES if len(shares) > 1 else SCHEDULES[:1])
    }
    full = sustained["foreground"]
    print(f"  a closed loop at depth 256 sustains {full:,.0f} requests/s under foreground")
    for name, rate in list(sustained.items())[1:]:
        print(f"    {name:15} {rate:10,.0f} ({rate / full:.1%})")
    loads = []
    for share in shares:
        load = round(share * full)
        print(heading(f"  {share:.0%}: {load:,} requests/s"), flush=True)
        found = []
        for schedule in SCHEDULES:
            rows = [row(drive, schedule, load, seed) for seed in seeds]
            found += rows
            print(lines(schedule, rows), flush=True)
        spread = conserved(found)
        verdict = "within" if spread <= CONSERVED else "NOT within"
        print(f"  pages programmed per host page differ by {spread:.2%}: {verdict} {CONSERVED:.0%}")
        loads.append({"share": share, "rate": load, "programs_differ_by": spread, "rows": found})
    return {"sustained": sustained, "loads": loads}


def conserved(rows: Sequence[Mapping[str, Any]]) -> float:
    """By how much the schedules' pages programmed per host page differ, relative to the least."""
    means = [
        statistics.fmean(
            each["programs_per_host_page"] for each in rows if each["schedule"] == name
        )
        for name in SCHEDULES
    ]
    return max(means) / min(means) - 1


def varied(drive: Drive, key: str, values: Sequence[str], names: Sequence[str], full: float) -> Any:
    """What another setting changes, at 80 % of the load that the drive sustained before, with seed 1."""
    print(heading(f"\n{drive.name}: {key}, at 80 %, seed 1"), flush=True)
    found = []
    for value in values:
        changed = replace(drive, ssd=drive.ssd.with_({key: value}))
        for name in names:
            figures = row(changed, name, round(0.8 * full), 1)
            found.append({key: value, **figures})
            print(lines(f"{value}, {name}", [figures]), flush=True)
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Play everything and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(words)
    if given.seeds < 1:
        parser.error(f"--seeds: found {given.seeds}, expected 1 or more")
    seeds = [1] if given.quick else range(1, given.seeds + 1)
    planes, superblocks = drives(given.quick)
    found: dict[str, Any] = {"quick": given.quick, "seeds": list(seeds), "drives": {}}
    for drive in (planes, superblocks):
        found["drives"][drive.name] = {
            "requests": drive.measured,
            "marks": drive.marks,
            **compared(drive, [0.8] if given.quick else SHARES, seeds),
        }
    full = {name: each["sustained"]["foreground"] for name, each in found["drives"].items()}
    found["placement"] = varied(
        planes,
        "placement.policy",
        ["single", "gc-separate"],
        ["foreground", "preemptive", "rate-limited"],
        full["planes"],
    )
    found["suspension"] = varied(
        superblocks,
        "chips.suspends",
        ["nothing", "programs-and-erases"],
        ["foreground", "preemptive"],
        full["superblocks"],
    )
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
