"""Whether what stands in for a trace can be believed: held-out halves, block buffers of four sizes over two schemes,
DFTL's hits at three sizes and write amplification, on drives of half, once and twice the trace's footprint.

    python experiments/trace-models/acceptance.py [--trace NAME]... [--seeds 3] [--json FILE]

The halves, their candidates and their state are those of ``run.py``; a figure is met if it is within 15 % of the second
half's.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import figures
import halves
import numpy as np
from run import SELF, fitted

from flashwright import Ssd, workloads
from flashwright.errors import WorkloadError
from flashwright.traces.workloads import Source

MODEL, STATISTICS = "sequence", "statistics"
WITHIN = 0.15
"""Share of the second half's figure."""
SIZES = {"half": 0.5, "own": 1.0, "twice": 2.0}
"""Pages of the drive over those of the footprint."""
MANAGERS = {"PUD-LRU": "pud-lru", "BPLRU": "bplru", "FAB": "fab", "LRU": "lru"}
RAM_MIB = (2, 4, 8, 16)
CACHE_SHARES = (512, 128, 32)
SCHEMES = {"page map": "page", "FAST": "fast"}
MOST = 20_000
MOST_PAGES = 500_000
"""Requests of a trace that are looked at, and pages of 4 KiB that they move: its head."""
ERASES_LEAST = 20
Key = tuple[str, str]


def drives(pages: int) -> Iterator[tuple[str, Ssd]]:
    """What is judged on, by name."""
    for title, scheme in SCHEMES.items():
        base = {"timing.model": "none", "ftl.scheme": scheme}
        yield f"{title}", figures.drive(pages, **base)
        for name, manager in MANAGERS.items():
            for size in RAM_MIB:
                buffer = {"ram.manager": manager, "ram.size": f"{size} MiB"}
                yield f"{title}, {name} {size} MiB", figures.drive(pages, **base, **buffer)
    for share in CACHE_SHARES:
        dftl = {"ftl.scheme": "dftl", "ftl.dftl.cmt-entries": max(16, pages // share)}
        yield f"DFTL 1/{share}", figures.drive(pages, **{"timing.model": "none"}, **dftl)


def figures_of(name: str, found: Mapping[str, Any]) -> dict[Key, figures.Figure]:
    """The figures of a run on one of :func:`drives`."""
    if name.startswith("DFTL"):
        cache = found["mapping_cache"]
        enough = (cache["lookups"] or 0) >= figures.LOOKUPS_LEAST
        return {(name, "hits"): figures.Figure(cache["hit_ratio"] or 0.0, enough)}
    erases = found["flash"]["erases"]
    if "MiB" not in name:
        amplification = found["write_amplification"] or 0.0
        enough = amplification >= figures.AMPLIFICATION_LEAST and erases >= ERASES_LEAST
        return {(name, "write amplification"): figures.Figure(amplification, enough)}
    buffer = found["buffer"]
    enough = (buffer["destages"] or 0) >= figures.DESTAGES_LEAST
    return {
        (name, "erases"): figures.Figure(erases, erases >= ERASES_LEAST and enough),
        (name, "pages a destage"): figures.Figure(buffer["pages_per_destage_mean"] or 0.0, enough),
    }


def play(
    sources: Mapping[str, Source], pages: int, warmup: int, requests: int, seed: int
) -> dict[str, dict[Key, figures.Figure]]:
    """All figures of what is played after the first `warmup` requests, by size of drive.

    Parameters
    ----------
    sources : mapping
        What is played on each of :data:`SIZES`.
    pages : int
        Pages of 4 KiB of the trace's footprint.
    warmup, requests : int
        Requests before measuring begins, and measured ones.
    seed : int
        Seed of the run.
    """
    found: dict[str, dict[Key, figures.Figure]] = {}
    for size, source in sources.items():
        found[size] = {}
        for name, drive in drives(math.ceil(pages * SIZES[size])):
            run = drive.play(source, warmup=warmup, requests=requests, seed=seed, window="off")
            result: Any = run.json
            result["flash"]["erases"] = result["flash"]["erases"]["total"]
            found[size].update(figures_of(name, result))
    return found


def _is_judged(figure: figures.Figure) -> bool:
    """Whether a figure of the second half has enough events, and something to take a share of."""
    return figure.enough and figure.value != 0


def misses(found: Mapping[str, dict[Key, figures.Figure]], truth: Mapping[str, Any]) -> list[float]:
    """By which share each judged figure of the second half is missed, in their order."""
    return [
        abs(found[size][key].value / figure.value - 1)
        for size in SIZES
        for key, figure in truth[size].items()
        if _is_judged(figure)
    ]


class Trial:
    """A trace cut in halves, and the figures of its second."""

    def __init__(self, known: halves.Known, folder: Path, part: float) -> None:
        requests = halves.read(known)
        moved = np.cumsum(-(-requests.sectors // halves.PAGE_SECTORS))
        head = min(len(requests), MOST, int(np.searchsorted(moved, MOST_PAGES)))
        requests = requests.part(slice(0, int(head * part))).packed()
        cut = len(requests) // 2
        self.known, self.folder, self.pages = known, folder, halves.pages(requests)
        self.first, self.second = requests.part(slice(0, cut)), requests.part(slice(cut, None))
        self.truth = self._of_trace("whole", requests, cut, len(self.second))

    def _of_trace(self, name: str, requests: halves.Requests, warmup: int, count: int) -> Any:
        path = self.folder / f"{name}.txt"
        requests.save(path)
        whole = workloads.trace(path, format="mqsim", addresses="reject")
        scaled = workloads.trace(path, format="mqsim", addresses="scale")
        sources = {size: scaled if share < 1 else whole for size, share in SIZES.items()}
        return play(sources, self.pages, warmup, count, 1)

    def candidates(self, seeds: Sequence[int]) -> Iterator[tuple[str, list[Any]]]:
        """Each candidate's figures, a set for each seed."""
        exchanged = self.second.then(self.first)
        yield SELF, [self._of_trace("exchanged", exchanged, len(self.second), len(self.first))]
        alone = self.folder / "first.txt"
        self.first.save(alone)
        for kind, name in (("sequence", MODEL), ("statistics", STATISTICS)):
            model = fitted(alone, self.folder, ["--kind", kind])
            if model is None:
                continue
            spec = str(model.spec)
            try:
                sources = {
                    size: workloads.parse(f"{spec},scale={share}" if share < 1 else spec)
                    for size, share in SIZES.items()
                }
                yield (
                    name,
                    [
                        play(sources, self.pages, len(self.first), len(self.second), seed)
                        for seed in seeds
                    ],
                )
            except WorkloadError as error:
                print(f"  {name}: {error}", flush=True)

    def row(self, seeds: Sequence[int]) -> dict[str, Any]:
        """What was found: the second half's figures, and by how much each candidate misses them."""
        names = [
            [f"{size} drive", *key]
            for size in SIZES
            for key, figure in self.truth[size].items()
            if _is_judged(figure)
        ]
        values = [
            figure.value
            for size in SIZES
            for figure in self.truth[size].values()
            if _is_judged(figure)
        ]
        found = {}
        for name, runs in self.candidates(seeds):
            each = zip(*(misses(run, self.truth) for run in runs), strict=True)
            found[name] = [round(statistics.fmean(errors), 4) for errors in each]
        return {
            "trace": self.known.name,
            "requests": [len(self.first), len(self.second)],
            "pages": self.pages,
            "figures": names,
            "second half": [round(value, 4) for value in values],
            "missed by": found,
        }


def group(figure: Sequence[str]) -> str:
    """What kind of figure it is."""
    return figure[-1]


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Medians, and shares within 15 %, by trace and by kind of figure."""
    names = [
        name for name in (SELF, MODEL, STATISTICS) if any(name in row["missed by"] for row in rows)
    ]
    head = [f"{name}: median | within 15 %" for name in names]
    lines = [f"| | figures | {' | '.join(head)} |", "| --- " * (2 + 2 * len(names)) + "|"]

    def line(title: str, keep: Any) -> None:
        cells, count = [], 0
        for name in names:
            errors = [
                error
                for row in rows
                if keep(row, None)
                for figure, error in zip(
                    row["figures"], row["missed by"].get(name, []), strict=False
                )
                if keep(row, figure)
            ]
            count = max(count, len(errors))
            within = sum(error <= WITHIN for error in errors)
            cells.append(
                f"{statistics.median(errors):.3f} | {within / len(errors):.0%}" if errors else " | "
            )
        if count:
            lines.append(f"| {title} | {count} | {' | '.join(cells)} |")

    for row in rows:
        line(row["trace"], lambda each, _, row=row: each is row)
    kinds = dict.fromkeys(group(figure) for row in rows for figure in row["figures"])
    for kind in kinds:
        line(kind, lambda _, figure, kind=kind: figure is None or group(figure) == kind)
    for size in SIZES:
        title = f"{size} drive"
        line(title, lambda _, figure, title=title: figure is None or figure[0] == title)
    line("all", lambda *_: True)
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    """Judge everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--trace", action="append", help="only this one; repeatable")
    parser.add_argument("--seeds", type=int, default=3, help="of what is generated")
    parser.add_argument(
        "--part", type=float, default=1.0, help="share of each head, from its start"
    )
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args(words)
    wanted = options.trace or [each.name for each in halves.TRACES if each.by_default]
    rows = []
    for known in halves.TRACES:
        if known.name not in wanted:
            continue
        if known.path() is None:
            print(f"{known.name}: skipped, {known.file} is absent", flush=True)
            continue
        began = time.process_time()
        with tempfile.TemporaryDirectory(prefix="flashwright-") as folder:
            trial = Trial(known, Path(folder), options.part)
            rows.append(trial.row(range(1, 1 + options.seeds)))
        print(f"{known.name}: {time.process_time() - began:.0f} s of processor time", flush=True)
        print(table(rows[-1:]), flush=True)
    if not rows:
        print("no trace to judge on", file=sys.stderr)
        return 1
    print("\n" + table(rows), flush=True)
    if options.json is not None:
        lines = ",\n".join(json.dumps(row) for row in rows)
        options.json.write_text(f"[\n{lines}\n]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
