"""Whether a model drifts: it is fitted to the first half of a trace and played a hundred times as long, and the tenths
of what comes out are compared. With ``--speed`` what fitting 10 million requests takes, and how fast a model generates.

    python experiments/trace-models/long.py [--trace NAME]... [--times 100] [--speed]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import halves
import numpy as np
import numpy.typing as npt

from flashwright import fit_trace, workloads
from flashwright.traces.models import generate

PAGE_SECTORS = halves.PAGE_SECTORS
TENTHS = 10
WINDOW = 5_000
SPEED_REQUESTS = 10_000_000
Numbers = npt.NDArray[np.int64]


def window_pages(first: Numbers, sectors: Numbers) -> float:
    """Distinct pages that windows of 5,000 requests cover, on average: few if they use the same again and again."""
    low, high = first // PAGE_SECTORS, (first + sectors - 1) // PAGE_SECTORS
    found = []
    for start in range(0, len(first) - WINDOW + 1, WINDOW):
        part = slice(start, start + WINDOW)
        found.append(len(np.unique(covered(low[part], high[part]))))
    return float(np.mean(found)) if found else float("nan")


def covered(low: Numbers, high: Numbers) -> Numbers:
    """All pages from each lowest to each highest."""
    counts = high - low + 1
    steps = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.asarray(np.repeat(low, counts) + steps, dtype=np.int64)


def figures(table: halves.Requests) -> dict[str, float]:
    """What is compared: shares, sizes, rate, runs, and pages that windows cover."""
    runs = 0
    for way in (False, True):
        mine = table.writes == way
        first, end = table.first[mine], table.first[mine] + table.sectors[mine]
        runs += int((first[1:] == end[:-1]).sum())
    span = float(table.arrival[-1] - table.arrival[0]) / 1e9
    return {
        "writes": float(table.writes.mean()),
        "KiB a request": float(table.sectors.mean()) / 2,
        "requests/s": (len(table) - 1) / span if span else 0.0,
        "sequential": runs / len(table),
        "pages in 5,000": window_pages(table.first, table.sectors),
    }


def generated(model: Path, count: int, pages: int) -> halves.Requests:
    """`count` requests of a model, its reads and writes."""
    table = generate(workloads.model(model), requests=count, capacity=pages * 4096)
    kinds = table["kind"].combine_chunks().indices.to_numpy()
    data = kinds <= 1
    arrival, first, sectors = (
        table[name].to_numpy()[data].astype(np.int64)
        for name in ("arrival_ns", "first_sector", "sectors")
    )
    return halves.Requests(arrival, kinds[data] == 1, first, sectors)


def drift(known: halves.Known, times: int, folder: Path) -> dict[str, Any]:
    """The figures of the half, and of tenths of a trace so many times as long."""
    requests = halves.read(known)
    half = requests.part(slice(0, len(requests) // 2))
    # Room for all that the bounds in the file allow.
    fitted = fit_trace(half.save(folder / "half.txt"), kind="statistics")
    model = fitted.save(folder / "model.toml")
    footprint = fitted.figures["footprint"]
    long = generated(model, times * len(half), footprint["most-regions"] * 1024)
    tenth = len(long) // TENTHS
    parts = [long.part(slice(i * tenth, (i + 1) * tenth)) for i in range(TENTHS)]
    pages = len(
        np.unique(
            covered(long.first // PAGE_SECTORS, (long.first + long.sectors - 1) // PAGE_SECTORS)
        )
    )
    return {
        "trace": known.name,
        "half": figures(half),
        "tenths": [figures(part) for part in parts],
        "pages": pages,
        "most_pages": footprint["most-pages"],
    }


def speed(folder: Path) -> None:
    """Fits a model to 10 million requests of another, and says what it took."""
    known = next(each for each in halves.TRACES if each.file.startswith("bundled:"))
    requests = halves.read(known)
    model = fit_trace(requests.save(folder / "whole.txt"), kind="statistics").save(
        folder / "model.toml"
    )
    began = time.process_time()
    long = generated(model, SPEED_REQUESTS, 4 * halves.pages(requests))
    print(
        f"generate: {SPEED_REQUESTS / (time.process_time() - began) / 1e6:.2f} M requests a CPU second, table included"
    )
    path = folder / "long.txt"
    long.save(path)
    words = [
        "trace",
        "fit",
        str(path),
        "--kind",
        "statistics",
        "--format",
        "mqsim",
        "-o",
        str(folder / "again.toml"),
        "--quiet",
    ]
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "flashwright", *words], check=True, env=os.environ)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"fit of {len(long):,} requests: {time.perf_counter() - began:.0f} s, "
        f"{used.ru_utime + used.ru_stime:.0f} CPU s, at most {used.ru_maxrss / 2**20:.2f} GiB"
    )


def main(words: Sequence[str] | None = None) -> int:
    """Print a table for each trace."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--trace", action="append", help="only this one; repeatable")
    parser.add_argument("--times", type=int, default=100, help="length over that of the half")
    parser.add_argument("--speed", action="store_true", help="fit and generate 10 million requests")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args(words)
    rows = []
    for known in halves.TRACES:
        if known.path() is None or (options.trace and known.name not in options.trace):
            continue
        with tempfile.TemporaryDirectory(prefix="flashwright-") as folder:
            row = drift(known, options.times, Path(folder))
        rows.append(row)
        names = list(row["half"])
        print(f"| {known.name} | " + " | ".join(names) + " |")
        for name, each in [
            ("half", row["half"]),
            ("2nd tenth", row["tenths"][1]),
            ("last tenth", row["tenths"][-1]),
        ]:
            print(f"| {name} | " + " | ".join(f"{each[key]:.4g}" for key in names) + " |")
        print(f"{row['pages']:,} pages of at most {row['most_pages']:,}", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    if options.speed:
        with tempfile.TemporaryDirectory(prefix="flashwright-") as folder:
            speed(Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
