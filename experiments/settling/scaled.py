"""What a copy of a small drive saves, and whether its verdicts are as right.

    python experiments/settling/scaled.py [--runs 300] [--larger 8] [--seconds 3600] [--csv FILE]

The drives and workloads are those of both sets of ``drives.py``, each settled under its workload, if a small drive
can stand for the drive; planes have as many times the blocks of the set as `--larger` says, and as many times the
requests are measured. Cases that FILE has already are not played again. Each is played with both starts by turns,
and once ten times as long after a fill in order, which both are compared with.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from drives import Case, chosen_on, held_out

from flashwright.errors import FlashwrightError
from flashwright.simulation.run import Run, RunSettings

TOLERANCE = 0.03
REQUESTS = 200_000  # measured on a drive of the sets as it is
STARTS = {"fill": "workload", "copy": "workload:scaled"}
COLUMNS = (
    "set", "seed", "family", "victim", "utilization", "workload", "start", "verdict", "write_amplification",
    "low", "high",
    "capacities", "small_capacities", "times_smaller", "cpu_s", "long_write_amplification",
)  # fmt: skip


def cases(larger: int) -> Iterator[tuple[str, Case]]:
    """Cases of both sets by turns that settle under a generated workload, on drives of `larger` times the blocks."""
    blocks = "geometry.blocks-per-plane"
    seed = 0
    while True:
        seed += 1
        for name, case in (("held-out", held_out(seed, None)), ("chosen-on", chosen_on(seed))):
            if not case.is_trace:
                settings = case.settings | {blocks: larger * case.settings[blocks]}
                yield (
                    name,
                    replace(
                        case,
                        settings=settings,
                        precondition="workload",
                        requests=larger * REQUESTS,
                    ),
                )


def play(case: Case, start: str, requests: int | None) -> tuple[dict[str, Any], float]:
    """The figures of a run, and the processor time that it took."""
    ssd = case.ssd().precondition(start)
    run = Run.create(
        ssd.toml,
        start,
        case.source(),
        RunSettings(seed=case.seed, requests=requests, **case.options),
    )
    began = time.process_time()
    while not run.step(50_000):
        if start == "workload:scaled" and _is_refused(run):
            break
    cpu_s = time.process_time() - began
    result = run.result()
    assert result is not None, "it was played"
    return dict(result.json), cpu_s


def _is_refused(run: Run) -> bool:
    """Whether a run that has begun to measure began with a fill after all."""
    result = run.result()
    figures: Any = result.json if result is not None else None
    return figures is not None and figures["precondition"]["scaled"]["refused"] is not None


def play_starts(name: str, case: Case) -> list[dict[str, Any]]:
    """Both starts of a case; none if no small drive stands for its drive."""
    rows = []
    requests = case.requests
    for start, option in reversed(STARTS.items()):
        found, cpu_s = play(case, option, requests)
        done = found["precondition"]
        of_small = done["scaled"] or {}
        if of_small.get("refused") is not None or done["workload"]["ended"] == "nothing-written":
            return []
        low, high = found["settled"]["interval"] or (None, None)
        rows.append(
            {
                "set": name,
                "seed": case.seed,
                "family": case.family,
                "victim": found["config"]["gc"]["victim"],
                "utilization": case.settings.get("capacity.utilization"),
                "workload": case.workload,
                "start": start,
                "verdict": found["settled"]["verdict"],
                "write_amplification": found["write_amplification"],
                "low": low,
                "high": high,
                "capacities": done["workload"]["capacities"],
                "small_capacities": of_small.get("capacities"),
                "times_smaller": of_small.get("times_smaller"),
                "cpu_s": cpu_s,
            }
        )
        played = done["workload"]["requests"] + found["measured"]["requests"]
    long, _ = play(case, "workload", 10 * played)
    return [row | {"long_write_amplification": long["write_amplification"]} for row in rows]


def table_of(rows: list[dict[str, Any]]) -> Iterator[str]:
    """A line of rates for each start."""
    yield "start  runs  verdicts  wrong  intervals that hold  capacities (median)  CPU seconds (sum)"
    for start in STARTS:
        own = [row for row in rows if row["start"] == start]
        settled = [row for row in own if row["verdict"] == "settled"]
        wrong = [
            row
            for row in settled
            if abs(float(row["write_amplification"]) / float(row["long_write_amplification"]) - 1)
            > TOLERANCE
        ]
        held = [
            float(row["low"]) <= float(row["long_write_amplification"]) <= float(row["high"])
            for row in settled
        ]
        capacities = statistics.median(float(row["capacities"]) for row in own)
        yield (
            f"{start}  {len(own)}  {dict(Counter(row['verdict'] for row in own))}  {len(wrong)}  "
            f"{sum(held)} of {len(held)}  {capacities:.2f}  {sum(float(row['cpu_s']) for row in own):.1f}"
        )


def main() -> None:
    """Play cases until there are enough or the time is up, and print what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--larger", type=int, default=1, help="times the blocks of a plane")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--csv", type=Path, default=Path("scaled.csv"))
    given = parser.parse_args()
    until = time.monotonic() + given.seconds
    rows: list[dict[str, Any]] = []
    if given.csv.exists():
        with given.csv.open(newline="") as file:
            rows = list(csv.DictReader(file))
    played = {(row["set"], int(row["seed"])) for row in rows}
    last = max((seed for _, seed in played), default=0)
    with given.csv.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not rows:
            writer.writeheader()
        for name, case in cases(given.larger):
            if len(rows) >= 2 * given.runs or time.monotonic() > until:
                break
            if case.seed < last or (name, case.seed) in played:
                continue
            try:
                found = play_starts(name, case)
            except FlashwrightError:
                continue
            writer.writerows(
                {
                    key: f"{row[key]:.6g}" if isinstance(row[key], float) else row[key]
                    for key in COLUMNS
                }
                for row in found
            )
            file.flush()
            rows += found
    print("\n".join(table_of(rows)))


if __name__ == "__main__":
    main()
