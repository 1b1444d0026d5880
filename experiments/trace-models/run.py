"""How far what a model of a trace does to a drive is from what the trace does, beside how far the trace is from itself.

    python experiments/trace-models/run.py [--trace NAME]... [--seeds 3] [--quick] [--json FILE]

Each trace is cut in halves; the second half is what the candidates are judged against: the first half itself, a model
fitted to the first half (``flashwright trace fit``), the bundled stand-in where there is one, and uniform requests.
``--quick`` plays short pieces with one seed; its figures stand for nothing. A published trace that is absent is
skipped, and said to be.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import figures
import halves

from flashwright import workloads
from flashwright.errors import WorkloadError

SELF, MODEL, STAND_IN, UNIFORM = "first half", "model", "stand-in", "uniform"
CANDIDATES = (SELF, MODEL, STAND_IN, UNIFORM)
GOAL = 1.5
SLOWER = 2.0
BUSY_MOST = 0.2
QUICK_REQUESTS = 30_000


def fitted(first: Path, folder: Path, options: Sequence[str]) -> workloads.Workload | None:
    """A model of the first half as a workload; None if this version fits none."""
    model = folder / "model.toml"
    words = ["trace", "fit", str(first), "--format", "mqsim", "-o", str(model), "--quiet", *options]
    done = subprocess.run(
        [sys.executable, "-m", "flashwright", *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"  no model: {done.stderr.strip().splitlines()[0]}", flush=True)
        return None
    return workloads.parse(f"model:{model}")


class Comparison:
    """One trace: its halves, the drive of its size, and what stands against the second half."""

    def __init__(
        self, known: halves.Known, folder: Path, most: int | None, fit: Sequence[str]
    ) -> None:
        requests = halves.read(known)
        if most is not None:
            requests = requests.part(slice(0, most))
        cut = len(requests) // 2
        self.known, self.folder, self.fit = known, folder, fit
        self.pages = halves.pages(requests)
        self.first, self.second = requests.part(slice(0, cut)), requests.part(slice(cut, None))
        self.whole = requests.save(folder / "whole.txt")
        self.time_scale = 1.0
        self.truth = self._truth()

    def _truth(self) -> dict[str, figures.Figure]:
        """The second half's figures, at the trace's rate or one at which the dies are busy for a fifth at most."""
        page = figures.drive(self.pages)
        while True:
            run = page.play(self.whole, time_scale=self.time_scale, window="off")
            busy: Any = run.json["busy"]
            if statistics.fmean(busy["dies"]) <= BUSY_MOST:
                break
            self.time_scale *= SLOWER
        return self._play(self.whole, 1)

    def _play(self, source: workloads.Source, seed: int) -> dict[str, figures.Figure]:
        return figures.play(
            self.pages, source, len(self.first), len(self.second), self.time_scale, seed
        )

    def candidates(
        self, seeds: Sequence[int]
    ) -> Iterator[tuple[str, list[dict[str, figures.Figure]]]]:
        """Each candidate's figures, a set for each seed."""
        # After the second half, so that it finds a warm drive and repeats nothing that it just did.
        exchanged = self.second.then(self.first).save(self.folder / "exchanged.txt")
        itself = figures.play(
            self.pages, exchanged, len(self.second), len(self.first), self.time_scale, 1
        )
        yield SELF, [itself]
        alone = self.folder / "first.txt"
        self.first.save(alone)
        model = fitted(alone, self.folder, self.fit)
        if model is not None:
            yield MODEL, [self._play(model, seed) for seed in seeds]
        if self.known.stand_in is not None:
            stand_in = workloads.stand_in(self.known.stand_in, variant="statistics-only")
            yield STAND_IN, [self._play(stand_in, seed) for seed in seeds]
        count = len(self.first) + len(self.second)
        found = []
        for seed in seeds:
            drawn = halves.without_locality(self.first, self.pages, count, seed)
            found.append(self._play(drawn.save(self.folder / "uniform.txt"), seed))
        yield UNIFORM, found

    def row(self, seeds: Sequence[int]) -> dict[str, Any]:
        """What was found, printed as a table."""
        names = [name for name, each in self.truth.items() if each.enough]
        columns = dict(self.candidates(seeds))
        result: dict[str, Any] = {
            "trace": self.known.name,
            "requests": [len(self.first), len(self.second)],
            "drive_pages": self.pages,
            "time_scale": self.time_scale,
            "too_few_events": [name for name in self.truth if name not in names],
            "figures": {},
        }
        print(
            f"  {self.pages:,} pages, arrival times x {self.time_scale:g}; "
            "figures, and their log ratios to the second half's"
        )
        print(f"  {'':24} {'second half':>12}", *(f"{name:>22}" for name in columns), flush=True)
        for name in names:
            truth = self.truth[name].value
            values = {each: [run[name].value for run in runs] for each, runs in columns.items()}
            errors = {
                each: statistics.fmean(figures.distance(name, value, truth) for value in found)
                for each, found in values.items()
            }
            result["figures"][name] = {"second half": truth, "found": values, "errors": errors}
            cells = (
                f"{statistics.median(values[each]):12.4g} ({errors[each]:7.3f})" for each in columns
            )
            print(f"  {name:24} {truth:12.4g}", *cells, flush=True)
        result["medians"] = {
            each: statistics.median(row["errors"][each] for row in result["figures"].values())
            for each in columns
        }
        return result


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Medians of all errors of all traces, and how the candidates stand against the first half."""
    errors: dict[str, list[float]] = {each: [] for each in CANDIDATES}
    beside: dict[str, list[float]] = {each: [] for each in CANDIDATES}
    for row in rows:
        for figure in row["figures"].values():
            for name, error in figure["errors"].items():
                errors[name].append(error)
                beside[name].append(figure["errors"][SELF])
    found = {}
    for name in CANDIDATES:
        if errors[name]:
            own, trace = statistics.median(errors[name]), statistics.median(beside[name])
            ratio = own / trace if trace else None
            found[name] = {
                "figures": len(errors[name]),
                "median": own,
                "first half, same figures": trace,
                "ratio": ratio,
            }
    return {"goal": GOAL, "candidates": found}


def tables(rows: Sequence[Mapping[str, Any]], total: Mapping[str, Any]) -> str:
    """The medians as tables for the README."""
    names = [name for name in CANDIDATES if name in total["candidates"]]
    lines = [
        f"| trace | requests a half | drive, pages | figures | {' | '.join(names)} |",
        "| --- " * (4 + len(names)) + "|",
    ]
    for row in rows:
        cells = [f"{row['medians'][name]:.3f}" if name in row["medians"] else "" for name in names]
        lines.append(
            f"| {row['trace']} | {row['requests'][1]:,} | {row['drive_pages']:,} | {len(row['figures'])} "
            f"| {' | '.join(cells)} |"
        )
    cells = [f"{total['candidates'][name]['median']:.3f}" for name in names]
    count = total["candidates"][SELF]["figures"]
    lines.append(f"| median of all figures | | | {count} | {' | '.join(cells)} |")
    ratios = [total["candidates"][name]["ratio"] for name in names]
    cells = ["" if ratio is None else f"{ratio:.2f}" for ratio in ratios]
    lines.append(f"| divided by the first half's, same figures | | | | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    """Judge everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--trace", action="append", help="only this one; repeatable")
    parser.add_argument("--seeds", type=int, default=3, help="of what is generated")
    parser.add_argument("--quick", action="store_true", help="short pieces, one seed")
    parser.add_argument("--fit", default="", help="further options of `flashwright trace fit`")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args(words)
    wanted = options.trace or [each.name for each in halves.TRACES]
    unknown = set(wanted) - {each.name for each in halves.TRACES}
    if unknown:
        names = ", ".join(each.name for each in halves.TRACES)
        raise WorkloadError(f"--trace: found {min(unknown)!r}, expected one of {names}", "")
    seeds = range(1, 2 if options.quick else 1 + options.seeds)
    most = QUICK_REQUESTS if options.quick else None
    rows, skipped = [], []
    for known in halves.TRACES:
        if known.name not in wanted:
            continue
        if known.path() is None:
            print(f"{known.name}: skipped, {known.file} is absent", flush=True)
            skipped.append(known.name)
            continue
        began = time.perf_counter()
        print(f"{known.name}", flush=True)
        with tempfile.TemporaryDirectory(prefix="flashwright-") as folder:
            rows.append(Comparison(known, Path(folder), most, options.fit.split()).row(seeds))
        print(f"  {time.perf_counter() - began:.0f} s", flush=True)
    if not rows:
        print("no trace to judge on", file=sys.stderr)
        return 1
    total = summary(rows)
    print("\n" + tables(rows, total), flush=True)
    if options.json is not None:
        found = {"seeds": list(seeds), "skipped": skipped, "total": total, "traces": rows}
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WorkloadError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
