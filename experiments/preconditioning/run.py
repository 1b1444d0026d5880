"""Is a drive that was laid out in its steady state like one that was written until it is steady, and what is saved?

    python experiments/preconditioning/run.py [--seeds 20] [--sizes 1TiB,4TiB,16TiB] [--json FILE]

Seeds: the same drive under uniform random writes at depth 32, after 16 capacities of random writes and laid out
(``steady:laid-out``): write amplification and percentiles of writes, mean and 95 % interval of the mean over the seeds.
Sizes: drives of up to 16 TiB, laid out: memory a page, time to precondition and of a host write, each in its process.
``--long SIZE`` also writes a drive of that size until it is steady.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scipy import stats

from flashwright import Ssd

LONG = "random:capacities=16"
LAID_OUT = "steady:laid-out"
DRIVE = Ssd.named("default").with_(
    {
        "geometry.blocks-per-plane": 512,
        "geometry.pages-per-block": 256,
        "capacity.utilization": 0.88,
    }
)
FIGURES = ("write amplification", "p50 us", "p99 us", "p99.9 us")
# Blocks a plane of 128 planes with 512 pages a block, and the page size.
SIZES = {
    "64GiB": (256, "4 KiB"),
    "1TiB": (4096, "4 KiB"),
    "4TiB": (16384, "4 KiB"),
    "16TiB": (16384, "16 KiB"),
}
# Planes clean together, once for every 65,536 writes (a block of each); over few such rounds the phase shows.
WRITES = 8_000_000


def figures(precondition: str, seed: int) -> tuple[list[float], float]:
    """The figures of a run, and the seconds that its process spent on preconditioning and run."""
    before = time.process_time()
    run = DRIVE.precondition(precondition).play(
        "uniform:write=1", requests=1_000_000, depth=32, seed=seed
    )
    seconds = time.process_time() - before
    result: Any = run.json
    times = result["response_time_ns"]["write"]
    percentiles = [times[name] / 1e3 for name in ("p50", "p99", "p99_9")]
    return [result["write_amplification"], *percentiles], seconds


def interval(values: list[float]) -> tuple[float, float]:
    """The mean, and the half of its 95 % interval."""
    error = statistics.stdev(values) / len(values) ** 0.5
    return statistics.fmean(values), float(stats.t.ppf(0.975, len(values) - 1)) * error


def by_seeds(seeds: int) -> list[dict[str, Any]]:
    """Print and return a row for each figure."""
    ways = {way: [figures(way, seed) for seed in range(1, seeds + 1)] for way in (LONG, LAID_OUT)}
    print(f"{seeds} seeds{'':21}{LONG:>24}{LAID_OUT:>24}")
    rows = []
    for at, name in enumerate(FIGURES):
        (long, by_long), (quick, by_quick) = (
            interval([found[at] for found, _ in ways[way]]) for way in ways
        )
        overlaps = abs(long - quick) <= by_long + by_quick
        print(
            f"{name:28}{long:14,.3f} ± {by_long:7,.3f}{quick:14,.3f} ± {by_quick:7,.3f}  "
            f"{'overlap' if overlaps else 'APART'}"
        )
        rows.append(
            {
                "figure": name,
                "long": [long, by_long],
                "laid_out": [quick, by_quick],
                "overlap": overlaps,
            }
        )
    seconds = [statistics.fmean(took for _, took in ways[way]) for way in ways]
    print(f"{'CPU seconds, run included':28}{seconds[0]:14.2f}{'':10}{seconds[1]:14.2f}")
    return [*rows, {"figure": "CPU seconds", "long": seconds[0], "laid_out": seconds[1]}]


@dataclass(frozen=True)
class Size:
    """A drive of some size."""

    size: str
    precondition: str
    pages: int
    bytes_a_page: float
    precondition_s: float
    write_ns: float
    write_amplification: float


def of_size(size: str, precondition: str) -> Size:
    """Precondition a drive of this size and write to it, in this process."""
    blocks, page = SIZES[size]
    drive = Ssd.named("default").with_(
        {
            "geometry.channels": 16,
            "geometry.dies-per-channel": 4,
            "geometry.planes-per-die": 2,
            "geometry.blocks-per-plane": blocks,
            "geometry.pages-per-block": 512,
            "geometry.page-size": page,
            "capacity.utilization": 0.88,
            "timing.model": "none",
        }
    )
    before = time.process_time()
    run = drive.precondition(precondition).play(
        f"uniform:write=1,size={page.replace(' ', '')}", requests=WRITES
    )
    result: Any = run.json
    total, played = time.process_time() - before, result["run"]["cpu_s"]
    pages = result["drive"]["physical_pages"]
    return Size(
        size,
        precondition,
        pages,
        result["run"]["peak_rss_bytes"] / pages,
        total - played,
        played / WRITES * 1e9,
        result["write_amplification"],
    )


def by_size(sizes: list[str], long: list[str]) -> list[dict[str, Any]]:
    """Print and return a row for each size."""
    print(
        "size   preconditioned by           pages  bytes/page  precondition  ns/write  write amplification"
    )
    rows = []
    wanted = [(size, LAID_OUT) for size in sizes] + [(size, "steady") for size in long]
    for size, precondition in wanted:
        with ProcessPoolExecutor(
            1, mp_context=multiprocessing.get_context("spawn"), max_tasks_per_child=1
        ) as pool:
            row = pool.submit(of_size, size, precondition).result()
        print(
            f"{row.size:6} {row.precondition:16}{row.pages:16,}{row.bytes_a_page:12.1f}{row.precondition_s:12.1f} s"
            f"{row.write_ns:10.0f}{row.write_amplification:21.3f}",
            flush=True,
        )
        rows.append(asdict(row))
    return rows


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--sizes", default="1TiB,4TiB,16TiB")
    parser.add_argument("--long", default="")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found: dict[str, Any] = {}
    if arguments.seeds:
        found["seeds"] = by_seeds(arguments.seeds)
    sizes, long = (
        [size for size in text.split(",") if size] for text in (arguments.sizes, arguments.long)
    )
    if sizes or long:
        found["sizes"] = by_size(sizes, long)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
