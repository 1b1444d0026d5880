"""Ten million verified requests for every translation layer under every cleaning schedule.

    python experiments/schedules/verify.py [--requests 10000000] [--json FILE] [--only TEXT]

Requests read, write and trim; 32 are outstanding. Layers that clean in steps take skewed single pages, those that merge
blocks mostly runs. Every read is compared with what was last written, and the whole state is audited every million
requests and at the end. A schedule that a translation layer cannot keep must be refused with the name of the key; the
refusals are counted.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from flashwright import Ssd
from flashwright.errors import ConfigError

SCHEDULES = ("foreground", "background", "preemptive", "rate-limited", "throttled")
IN_STEPS = ("page", "dftl")
MERGING = ("block", "replacement", "bast", "fast", "superblock", "last")
SINGLE_PAGES = "zipf:write=0.5,trim=0.05,size=4KiB,depth=32"
RUNS = "dftl-b:trim=0.02,depth=32"
# Merges of small blocks: more of them for the same time.
SMALL = {"geometry.pages-per-block": 16, "geometry.blocks-per-plane": 1024}
BY_CLASS = {"timing.die-order": "by-class", "chips.suspends": "programs-and-erases"}
# Shapes that only page mapping has.
SHAPES: dict[str, Mapping[str, object]] = {
    "superblocks": {
        **BY_CLASS,
        "geometry.superblock": "drive",
        "geometry.bits-per-cell": 3,
        "geometry.pages-per-block": 66,
        "chips.programming": "one-shot",
        "chips.write-ram": "8 MiB",
        "placement.policy": "gc-separate",
    },
    "slc cache, folded": {
        "geometry.bits-per-cell": 3,
        "geometry.pages-per-block": 66,
        "slc.cache": "dynamic",
        "slc.block-share": 0.5,
        "slc.when-full": "fold",
    },
}


def drives() -> Iterator[tuple[str, str, Mapping[str, object]]]:
    """Drive, schedule and settings of each run."""
    for scheme in IN_STEPS + MERGING:
        for order, dies in (("in order of issue", {}), ("dies choose", BY_CLASS)):
            for schedule in SCHEDULES:
                blocks = SMALL if scheme in MERGING else {}
                yield f"{scheme}, {order}", schedule, {"ftl.scheme": scheme, **dies, **blocks}
    for shape, settings in SHAPES.items():
        for schedule in SCHEDULES:
            yield f"page, {shape}", schedule, settings


def play(
    drive: str, schedule: str, settings: Mapping[str, object], requests: int
) -> dict[str, Any]:
    """One verified run, or why the drive is refused."""
    base = {
        "geometry.channels": 2,
        "geometry.dies-per-channel": 2,
        "geometry.blocks-per-plane": 256,
    }
    workload = RUNS if settings.get("ftl.scheme") in MERGING else SINGLE_PAGES
    found: dict[str, Any] = {"drive": drive, "schedule": schedule, "workload": workload}
    try:
        ssd = Ssd.named("default").with_({**base, "gc.schedule": schedule, **settings})
        began = time.process_time()
        run = ssd.precondition("sequential").play(
            workload,
            requests=requests,
            verify=True,
            audit_every=max(requests // 10, 1),
            window="off",
        )
    except ConfigError as error:
        if "gc.schedule" not in str(error):
            raise
        return found | {"refused": str(error).splitlines()[0]}
    assert run.json["verify"] == {"enabled": True, "violations": 0}, run.json["violations"]
    return found | {
        "requests": requests,
        "write_amplification": run.write_amplification,
        "cpu_s": round(time.process_time() - began, 1),
    }


def main() -> int:
    """Plays all of them, and says how each went."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=10_000_000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="drives whose name holds this")
    options = parser.parse_args()
    rows = []
    for drive, schedule, settings in drives():
        if options.only not in drive:
            continue
        row = play(drive, schedule, settings, options.requests)
        rows.append(row)
        if "refused" not in row:
            played = f"{row['requests']:,} requests"
            done = f"{played}, WA {row['write_amplification']:.3f}, {row['cpu_s']} s"
            print(f"{drive:32} {schedule:13} {done}", flush=True)
    verified = sum(row.get("requests", 0) for row in rows)
    refused = sum("refused" in row for row in rows)
    print(
        f"{verified:,} requests in {len(rows) - refused} runs, nothing lost; {refused} combinations refused"
    )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
