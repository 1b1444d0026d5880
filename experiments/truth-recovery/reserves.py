"""Advice on spare space by twins, held against the drives themselves.

    python experiments/truth-recovery/reserves.py --seeds 400-409
    python experiments/truth-recovery/reserves.py --family alien --make coarse --make map-cache --seeds 0-0
    python experiments/truth-recovery/reserves.py --family alien --make slc-dynamic --seeds 0-0 --measured

A twin is fitted to each drive and marked or not. On one that is not, `advise` seeks the least reserve at which random
writes of 4 KiB have a write amplification of 2 at most. Then as much of the drive itself stays unused, and its own
write amplification is measured once it has settled. Where the twin is marked there is no advice. With --measured no
twin is made: `characterize` fills the drive to several shares, and the least reserve at which its counters show 2 at
most is held against the drive, written under another seed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from drives import size
from twins import Asked, aliens, made
from wide import draw_wide

from flashwright.advice.curve import Target as AdviceTarget
from flashwright.advice.space import advise
from flashwright.characterization.reserves import ReservesResult
from flashwright.characterization.session import characterize
from flashwright.drive.trust import MEAN_BOUND
from flashwright.simulation.ssd import Ssd
from flashwright.support.core import _core
from flashwright.target.target import Target

TARGET = 2.0
WORKLOAD = "uniform:write=1,size=4KiB,depth=8"
UTILIZATIONS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
REQUESTS = 100_000
BYTES = 4096
MARGIN = 0.05
"""By how much what was measured must be below the target to be named: what is steady by the rule may rise or fall by
10 % over the capacity that its mean is of."""


def amplification(ssd: Ssd, used: float, seed: int) -> float:
    """Write amplification of a drive on which a share of the addresses is in use, once it has settled."""
    logical = size(ssd.config["capacity"]["logical"])
    page = size(ssd.config["geometry"]["page-size"])
    less = ssd.with_({"capacity.logical": f"{int(logical * used) // page * page} B"})
    result = less.settling().play(WORKLOAD, requests=REQUESTS, seed=seed)
    found = result.write_amplification
    assert found is not None, "the workload writes"
    return found


def of_alien(make: str, seed: int, used: float, requests_seed: int) -> float:
    """The same of a drive of another make, by its own counters: over the last of four times what is used."""
    alien = aliens().Alien(make, seed)
    rng = np.random.default_rng(requests_seed)
    with Target(alien) as target:
        places = int(target.capacity_bytes * used) // BYTES
        target.purge()
        target.fill(size_bytes=1 << 20, end_bytes=places * BYTES)
        before = alien.counted()
        for _ in range(4):
            before = alien.counted()
            offsets = rng.integers(0, places, places) * BYTES
            target.play("write", offsets, BYTES, depth=8)
        host, media = (b - a for a, b in zip(before, alien.counted(), strict=True))
    return float(media / host)


def measured(work: tuple[str, int]) -> dict[str, Any]:
    """What the measured way names for an alien drive, and what then holds on it."""
    make, seed = work
    began = time.process_time()
    alien = aliens().Alien(make, seed)
    row: dict[str, Any] = {"drive": f"{make}-{seed}"}
    found = characterize(alien, only=["reserves"]).result("reserves")
    assert isinstance(found, ReservesResult)
    reserves = found.reserves
    row["table"] = "; ".join(
        f"{1 - each.used_share:.0%} {each.write_amplification:.2f}{'' if each.steady else '?'}"
        for each in reserves
    )
    least = TARGET * (1 - MARGIN)
    meets = [each for each in reserves if each.write_amplification <= least and each.steady]
    row["seconds"] = time.process_time() - began
    if not meets:
        return row | {"advice": "cannot tell", "holds": True}
    best = max(meets, key=lambda each: each.used_share)
    itself = of_alien(make, seed, best.used_share, 77)
    return row | {
        "advice": f"{1 - best.used_share:.0%} reserved",
        "said": best.write_amplification,
        "itself": itself,
        "unreserved": of_alien(make, seed, 1.0, 77),
        "holds": itself <= TARGET,
    }


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
        targets=[AdviceTarget.parse(f"write-amplification<={TARGET:g}").with_margin(MEAN_BOUND)],
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
        itself, nothing = (of_alien(*work, share, 77) for share in (used, 1.0))
    else:
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
    parser.add_argument("--out", type=Path, help="rows, in JSON")
    parser.add_argument("--kept", type=Path, help="folder of twins, as of twins.py")
    parser.add_argument("--measured", action="store_true", help="no twin; of alien drives")
    options = parser.parse_args()
    first, last = (int(part) for part in options.seeds.split("-"))
    makes = (options.make or []) if options.family == "alien" else ["wide"]
    works = [(make, seed) for make in makes for seed in range(first, last + 1)]
    asked = Asked(options.family, not options.blind, options.budget, options.kept)
    if options.kept:
        options.kept.mkdir(parents=True, exist_ok=True)
    evaluate = measured if options.measured else partial(advised, asked=asked)
    rows = []
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for row in pool.imap_unordered(evaluate, works):
            rows.append(row)
            print(
                *(f"{name}={cell}".replace(",", ";") for name, cell in row.items()),
                sep=",",
                flush=True,
            )
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")
    held, total = sum(bool(row["holds"]) for row in rows), len(rows)
    unsure = sum(row["advice"] == "cannot tell" for row in rows)
    print(f"holds or cannot tell: {held} of {total}; cannot tell: {unsure}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
