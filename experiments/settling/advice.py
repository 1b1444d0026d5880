"""Whether a reserve that was recommended keeps its targets.

    python experiments/settling/advice.py [--jobs 2] [--only NAME] [--json FILE]

Twelve drives and workloads: six bundled drives, three recorded traces, three drives of our own. ``advise`` recommends a
reserve for each; then the drive is played at that very reserve with a seed of its own and ten times as long. A target
is kept if the figure is within 3 % of it.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from flashwright import Ssd, workloads
from flashwright.advice.space import Point, Target, advise
from flashwright.simulation.run import RunSettings
from flashwright.traces.workloads import Source

TOLERANCE = 0.03
SEED = 4242

OWN: dict[str, dict[str, object]] = {
    "many small dies": {
        "geometry.channels": 4,
        "geometry.dies-per-channel": 4,
        "geometry.blocks-per-plane": 96,
        "geometry.pages-per-block": 64,
    },
    "cost-benefit, hot apart": {
        "geometry.blocks-per-plane": 128,
        "gc.victim": "cost-benefit",
        "placement.policy": "hot-cold",
    },
    "dftl behind a write buffer": {
        "geometry.blocks-per-plane": 128,
        "ftl.scheme": "dftl",
        "ram.size": "1 MiB",
        "ram.manager": "lru",
    },
}

Case = tuple[str, Ssd, str, list[str], dict[str, Any]]


def cases() -> list[Case]:
    """Name, drive, workload, targets, and settings of the runs."""
    bundled: list[Case] = [
        (
            "default",
            Ssd.named("default"),
            "zipf:write=0.7,depth=8",
            ["write-amplification<=2.5"],
            {},
        ),
        ("mlc-sata", Ssd.named("mlc-sata"), "uniform:write=0.5,depth=8", ["p99<=30ms"], {}),
        ("tlc-nvme", Ssd.named("tlc-nvme"), "zipf:write=1,size=16KiB,depth=16", ["iops>=1000"], {}),
        (
            "qlc-nvme",
            Ssd.named("qlc-nvme"),
            "hot-cold:write=0.8,depth=8",
            ["write-amplification<=3"],
            {},
        ),
        (
            "container-marking",
            Ssd.named("container-marking").with_(blocks_per_plane=256),
            "uniform:write=1",
            ["write-amplification<=2"],
            {},
        ),
        ("hu-2012", Ssd.named("hu-2012"), "dftl-a", ["write-amplification<=2"], {}),
    ]
    small = Ssd.named("default").with_(blocks_per_plane=128)
    traced: list[Case] = [
        (name, small, f"bundled:{name}", targets, {"depth": 4})
        for name, targets in (
            ("pgbench", ["p99<=60ms"]),
            ("sqlite", ["write-amplification<=1.5"]),
            ("postmark", ["write-amplification<=2"]),
        )
    ]
    specs = {
        "many small dies": ("uniform:write=1,depth=32", ["write-amplification<=2.2"]),
        "cost-benefit, hot apart": ("hot-cold:write=0.9,depth=4", ["write-amplification<=1.8"]),
        "dftl behind a write buffer": ("zipf:write=0.8,depth=4", ["write-amplification<=3"]),
    }
    own: list[Case] = [
        (name, Ssd.named("default").with_(OWN[name]), spec, targets, {})
        for name, (spec, targets) in specs.items()
    ]
    return [*bundled, *traced, *own]


def again(ssd: Ssd, source: Source, best: Point, settings: dict[str, Any]) -> Point:
    """The recommended reserve, played with another seed and ten times as long."""
    drive = ssd.with_({"capacity.utilization": best.utilization}).precondition("auto")
    if isinstance(source, workloads.Trace):
        run = drive.play(replace(source, repeat=10), seed=SEED, window="off", **settings)
    else:
        requests = 10 * best.result.json["measured"]["requests"]
        run = drive.play(source, requests=requests, seed=SEED, window="off", **settings)
    return Point(best.utilization, (run,))


def judge(case: Case, jobs: int) -> dict[str, Any]:
    """One case: what was recommended, and what came of it."""
    name, ssd, spec, texts, settings = case
    began = time.monotonic()
    source = workloads.find(spec)
    if isinstance(source, workloads.Trace):
        # The small drive holds less than the traces' addresses span.
        source = replace(source, addresses="scale")
    requests = None if isinstance(source, workloads.Trace) else 200_000
    found = advise(
        ssd, source, targets=texts, settings=RunSettings(requests=requests, **settings), jobs=jobs
    )
    row: dict[str, Any] = {"name": name, "workload": spec, "targets": texts}
    row["advise_s"] = round(time.monotonic() - began, 1)
    if found.recommended is None:
        return row | {
            "reserved": None,
            "kept": False,
            "points": [p.figures() for p in found.points],
        }
    best = found.recommended
    longer = again(ssd, source, best, settings)
    row["reserved"] = best.reserved
    row["longer_settled"] = longer.verdict
    row["figures"] = {}
    kept = True
    for target in (Target.parse(text) for text in texts):
        value = longer.value(target.metric)
        assert value is not None
        row["figures"][target.text] = {"advised": best.value(target.metric), "longer": value}
        over = value / target.limit - 1 if target.less else target.limit / value - 1
        kept = kept and over <= TOLERANCE
    return row | {"kept": kept, "seconds": round(time.monotonic() - began, 1)}


def main() -> None:
    """Advise, play longer, print a line each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = []
    for case in cases():
        if given.only is None or given.only == case[0]:
            rows.append(judge(case, given.jobs))
            print(json.dumps(rows[-1]), flush=True)
    print(f"{sum(row['kept'] for row in rows)} of {len(rows)} recommendations kept within 3 %")
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
