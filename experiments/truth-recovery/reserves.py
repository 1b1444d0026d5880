"""Advice on spare space by twins, held against the drives themselves.

    python experiments/truth-recovery/reserves.py --seeds 400-409
    python experiments/truth-recovery/reserves.py --family alien --make coarse --make map-cache --seeds 0-0

A twin is fitted to each drive and marked or not. On one that is not, `advise` seeks the least reserve at which random
writes of 4 KiB have a write amplification of 2 at most. Then as much of the drive itself stays unused, and its own
write amplification is measured once it has settled. Where the twin is marked there is no advice.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from functools import partial
from typing import Any

from drives import size
from twins import Asked, made
from wide import draw_wide

from flashwright.life.advise import advise
from flashwright.run.ssd import Ssd
from flashwright.support.core import _core

TARGET = 2.0
WORKLOAD = "uniform:write=1,size=4KiB,depth=8"
UTILIZATIONS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
REQUESTS = 100_000


def amplification(ssd: Ssd, used: float, seed: int) -> float:
    """Write amplification of a drive on which a share of the addresses is in use, once it has settled."""
    logical = size(ssd.config["capacity"]["logical"])
    page = size(ssd.config["geometry"]["page-size"])
    less = ssd.with_({"capacity.logical": f"{int(logical * used) // page * page} B"})
    result = less.settling().play(WORKLOAD, requests=REQUESTS, seed=seed)
    found = result.write_amplification
    assert found is not None, "the workload writes"
    return found


def advised(work: tuple[str, int], asked: Asked) -> dict[str, Any]:
    """What advice says of a drive, and what then holds on the drive."""
    began = time.process_time()
    row, twin = made(work, asked)
    kept = {name: row.get(name) for name in ("drive", "made of", "verdict", "error", "doubts")}
    if twin is None or row["verdict"] == "marked":
        return kept | {
            "advice": "cannot tell",
            "holds": True,
            "seconds": time.process_time() - began,
        }
    found = advise(
        twin,
        WORKLOAD,
        utilizations=UTILIZATIONS,
        targets=[f"write-amplification<={TARGET:g}"],
        requests=REQUESTS,
    )
    kept["seconds"] = time.process_time() - began
    if found.recommended is None:
        return kept | {"advice": "no reservation meets it", "holds": None}
    _, logical, physical = _core.config_check(twin.toml)
    used = min(found.recommended.utilization * physical / logical, 1.0)
    said = found.recommended.value("write-amplification")
    kept |= {"advice": f"{1 - used:.1%} reserved", "said": said}
    if asked.family == "alien":
        return kept | {"holds": None}
    ssd = draw_wide(work[1], small=True)
    itself, nothing = amplification(ssd, used, 77), amplification(ssd, 1.0, 77)
    return kept | {"itself": itself, "unreserved": nothing, "holds": itself <= TARGET}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="400-409", help="first-last")
    parser.add_argument("--family", default="wide", choices=("wide", "alien"))
    parser.add_argument("--make", action="append", help="of alien drives; repeatable")
    parser.add_argument("--budget", type=float, default=300.0, help="processor seconds of a fit")
    parser.add_argument("--blind", action="store_true", help="fit without what probes find")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    first, last = (int(part) for part in options.seeds.split("-"))
    makes = (options.make or []) if options.family == "alien" else ["wide"]
    works = [(make, seed) for make in makes for seed in range(first, last + 1)]
    asked = Asked(options.family, not options.blind, options.budget)
    rows = []
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for row in pool.imap_unordered(partial(advised, asked=asked), works):
            rows.append(row)
            print(
                *(f"{name}={cell}".replace(",", ";") for name, cell in row.items()),
                sep=",",
                flush=True,
            )
    held, told = sum(bool(row["holds"]) for row in rows), len(rows)
    unsure = sum(row["advice"] == "cannot tell" for row in rows)
    print(f"holds or cannot tell: {held} of {told}; cannot tell: {unsure}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
