"""What requests do to drives of the size of their footprint: the figures, and how far two of them are apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flashwright import RunResult, Ssd
from flashwright.traces.workloads import Source

PAGES_PER_BLOCK = 64
UTILIZATION = 0.9
CACHE_SHARES = {"1/512": 512, "1/128": 128, "1/32": 32, "1/8": 8}
BUFFER_SHARE = 64
MISS_FLOOR = 0.005
WORST = math.log(1000)
# Below these a figure of the second half says more of chance than of the requests.
AMPLIFICATION_LEAST = 1.02
LOOKUPS_LEAST = 1000
DESTAGES_LEAST = 100
MERGES_LEAST = 20
TIMED_LEAST = 500


@dataclass(frozen=True)
class Figure:
    """A figure of a run, and whether the run had enough events for it."""

    value: float
    enough: bool


def distance(name: str, found: float, expected: float) -> float:
    """The absolute log ratio, at most that of 1,000; of hit ratios, that of their misses, each at least 0.5 %."""
    if name.startswith("DFTL"):
        found, expected = (max(1 - each, MISS_FLOOR) for each in (found, expected))
    # A candidate may have none of these requests at all.
    return min(WORST, abs(math.log(found / expected))) if found > 0 else WORST


def drive(pages: int, **settings: object) -> Ssd:
    """A page-mapped drive with so many logical pages of 4 KiB, filled once in order."""
    blocks = math.ceil(pages / UTILIZATION / PAGES_PER_BLOCK)
    dies = 1 if blocks < 1024 else 4 if blocks < 4096 else 16
    channels = max(1, dies // 4)
    made = {
        "geometry.channels": channels,
        "geometry.dies-per-channel": dies // channels,
        "geometry.blocks-per-plane": max(8, math.ceil(blocks / dies)),
        "geometry.pages-per-block": PAGES_PER_BLOCK,
        "capacity.logical": f"{pages * 4} KiB",
        "timing.program": "200 us",
        "timing.erase": "1500 us",
    }
    return Ssd.named("default").with_({**made, **settings}).precondition("sequential")


def drives(pages: int) -> Iterator[tuple[str, Ssd]]:
    """The drives beside the page-mapped one with times; only counts are taken of these."""
    untimed = {"timing.model": "none"}
    for name, share in CACHE_SHARES.items():
        dftl = {"ftl.scheme": "dftl", "ftl.dftl.cmt-entries": max(16, pages // share)}
        yield f"DFTL hits {name}", drive(pages, **untimed, **dftl)
    ram = f"{max(128, pages // BUFFER_SHARE) * 4} KiB"
    for name, manager in (("BPLRU", "bplru"), ("PUD-LRU", "pud-lru")):
        buffered = {"ram.manager": manager, "ram.size": ram}
        yield f"{name} pages a destage", drive(pages, **untimed, **buffered)
    yield "FAST full merges", drive(pages, **untimed, **{"ftl.scheme": "fast"})


def counted(name: str, result: RunResult) -> Figure:
    """The figure of one of :func:`drives`."""
    found: Any = result.json
    if name.startswith("DFTL"):
        cache = found["mapping_cache"]
        lookups = cache["lookups"] or 0
        return Figure(cache["hit_ratio"] or 0.0, lookups >= LOOKUPS_LEAST)
    if name.startswith("FAST"):
        merges, written = found["merges"]["full"] or 0, found["host"]["pages_written"]
        return Figure(max(1, merges) / max(1, written), merges >= MERGES_LEAST)
    buffer = found["buffer"]
    return Figure(
        buffer["pages_per_destage_mean"] or 0.0, (buffer["destages"] or 0) >= DESTAGES_LEAST
    )


def timed(result: RunResult) -> dict[str, Figure]:
    """Write amplification and percentiles of the page-mapped drive."""
    amplification = result.write_amplification or 0.0
    figures = {"write amplification": Figure(amplification, amplification >= AMPLIFICATION_LEAST)}
    requests: Any = result.json["requests"]
    for kind in ("read", "write"):
        times = result.latency_of(kind)
        count = requests[kind]
        for name, level in (("p50", 0.5), ("p99", 0.99)):
            value: Any = times.quantile(level) if count else 0
            figures[f"{kind} {name}"] = Figure(float(value), count >= TIMED_LEAST)
    return figures


def play(
    pages: int, source: Source, warmup: int, requests: int, time_scale: float, seed: int
) -> dict[str, Figure]:
    """All figures of the requests that follow the first `warmup` ones.

    Parameters
    ----------
    pages : int
        Logical size of the drives, in pages of 4 KiB.
    source : Source
        What is played.
    warmup, requests : int
        Requests before measuring begins, and measured ones.
    time_scale : float
        Factor of arrival times.
    seed : int
        Seed of the run and of what is generated.
    """
    figures = timed(
        drive(pages).play(
            source, warmup=warmup, requests=requests, time_scale=time_scale, seed=seed, window="off"
        )
    )
    for name, each in drives(pages):
        result = each.play(source, warmup=warmup, requests=requests, seed=seed, window="off")
        figures[name] = counted(name, result)
    return figures
