"""Equation 1 of Hu, Jiang and Manden (SIGMETRICS 2012) against drives played to their end of life.

Plays a small drive to its end over utilisation, workload and victim policy, and holds three predictions against it:
Equation 1, write amplification alone, and write amplification with the spread of wear. README.md beside this file
has the tables and what they say.
"""

from __future__ import annotations

import argparse
import csv
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from flashwright import RunSettings, Ssd, lifetime

HERE = Path(__file__).parent
CYCLES = 100
BLOCKS, PAGES = 1024, 64
UTILIZATIONS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
VICTIMS = ("greedy", "fifo", "cost-benefit")
WORKLOADS = {
    "uniform": "uniform:write=1",
    "Zipf 95/20": "zipf:accesses=0.95,space=0.2,write=1",
    "static 70 %": "dynamic-static:static=0.7,write=1",
}
SHARES = (0.1, 0.4)


def drive(utilization: float, victim: str, cycles: int) -> Ssd:
    """One plane of 65,536 pages, filled once in random order first."""
    return (
        Ssd.named("default")
        .with_(
            {
                "geometry.channels": 1,
                "geometry.dies-per-channel": 1,
                "geometry.blocks-per-plane": BLOCKS,
                "geometry.pages-per-block": PAGES,
                "capacity.utilization": utilization,
                "gc.victim": victim,
                "timing.model": "none",
                "wear.pe-cycles-max": cycles,
            }
        )
        .precondition("random")
    )


def play(job: tuple[str, float, str, int, int]) -> dict[str, Any]:
    """One life, forecast twice on its way."""
    workload, utilization, victim, cycles, seed = job
    settings = RunSettings(seed=seed, window="off")
    run = lifetime.begin(drive(utilization, victim, cycles), WORKLOADS[workload], settings)
    made = [lifetime.forecast(run, share_min=share) for share in SHARES]
    end = lifetime.Endurance.of(lifetime.play_to_end(run))
    result = run.result()
    assert result is not None, "a life that was played has a result"
    wear: Any = result.json["wear"]
    by_formula = float(lifetime.writable(1.0, utilization, cycles)) * end.physical_pages
    row: dict[str, Any] = {
        "workload": workload,
        "victim": victim,
        "utilization": utilization,
        "cycles": cycles,
        "seed": seed,
        "drive_writes": round(end.drive_writes, 3),
        "endurance_efficiency": round(end.efficiency, 4),
        "erases_mean_at_end": round(wear["erases_per_block"]["mean"], 2),
        "erases_stdev_at_end": round(wear["erases_per_block"]["stdev"], 2),
        "equation_1_error": round(by_formula / end.host_pages - 1, 4),
    }
    for share, forecast in zip(SHARES, made, strict=True):
        name = f"at_{share:g}"
        if forecast is None:
            # Its end came before so large a share of the erases was used.
            continue
        levelled = (cycles + 1) * end.physical_pages / forecast.write_amplification
        row |= {
            f"share_{name}": round(forecast.share, 3),
            f"steady_{name}": forecast.steady,
            f"write_amplification_{name}": round(forecast.write_amplification, 4),
            f"spread_{name}": round(forecast.spread, 3),
            f"growth_{name}": round(forecast.growth, 3),
            f"unused_{name}": round(forecast.unused, 2),
            f"amplification_only_error_{name}": round(levelled / end.host_pages - 1, 4),
            f"forecast_error_{name}": round(forecast.host_pages / end.host_pages - 1, 4),
        }
    return row


ERRORS = {
    "Equation 1": "equation_1_error",
    "WA alone": "amplification_only_error_at_0.1",
    "WA and spread": "forecast_error_at_0.1",
    "the same, at 40 %": "forecast_error_at_0.4",
}


def table(rows: list[dict[str, Any]], error: str) -> str:
    """Errors of one prediction in percent, a row a workload and victim policy, a column a utilisation."""
    text = f"| workload | victims | {' | '.join(f'{u:g}' for u in UTILIZATIONS)} |\n"
    text += f"| --- | --- | {' | '.join('---' for _ in UTILIZATIONS)} |\n"
    for workload in WORKLOADS:
        for victim in VICTIMS:
            cells = [
                f"{100 * row[error]:+.1f}" if error in row else "ended"
                for row in rows
                if (row["workload"], row["victim"]) == (workload, victim)
            ]
            text += f"| {workload} | {victim} | {' | '.join(cells)} |\n"
    return text


def main() -> None:
    """Run all, write results.csv, print the tables."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--jobs", type=int, default=2, help="processes")
    options.add_argument("--cycles", type=int, default=CYCLES, help="erases that a block takes")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--out", default=str(HERE), help="folder for the CSV file")
    given = options.parse_args()
    began = time.monotonic()
    jobs = [
        (workload, utilization, victim, given.cycles, given.seed)
        for workload in WORKLOADS
        for victim in VICTIMS
        for utilization in UTILIZATIONS
    ]
    with ProcessPoolExecutor(given.jobs) as pool:
        rows = list(pool.map(play, jobs))
    out = Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    with (out / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, max(map(list, rows), key=len), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for name, error in ERRORS.items():
        print(f"{name}, error in % of the life\n\n{table(rows, error)}")
    print("| prediction | mean absolute error | median | largest | too high by more than 5 % |")
    print("| --- | --- | --- | --- | --- |")
    for name, error in ERRORS.items():
        errors = [row[error] for row in rows if error in row]
        sizes = sorted(map(abs, errors))
        high = sum(error > 0.05 for error in errors)
        print(
            f"| {name} | {100 * sum(sizes) / len(sizes):.1f} % | {100 * sizes[len(sizes) // 2]:.1f} % | "
            f"{100 * sizes[-1]:.1f} % | {high} of {len(sizes)} |"
        )
    print(f"\n{len(rows)} lives in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
