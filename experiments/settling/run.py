"""How often the verdict "settled" is right, and what it costs.

    python experiments/settling/run.py [--runs 300] [--set held-out] [--jobs 2] [--traces FOLDER] [--json FILE]

Each run is played twice: once as a user would, and once ten times as long, everything that was played before
measuring included. A verdict "settled" is wrong if the write amplification beside it differs by more than 3 % from that
of the long run. What is waited for longer than needed: the host pages after which the run was called settled, over
those after which no stretch of an eighth of the history so far differed from the long run by more than 3 %.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from drives import Case, chosen_on, held_out

from flashwright.errors import ConfigError, FlashwrightError
from flashwright.simulation.run import Run, RunSettings

TOLERANCE = 0.03
# Of a run that was cut off by the clock, the long run ends early; it counts if it is at least three times as long.
SECONDS_MAX = 120.0


def play(case: Case, requests: int | None, window: str = "off", repeat: int = 1) -> Run:
    """A run to its end, or to where the time is up."""
    ssd = case.ssd()
    settings = RunSettings(seed=case.seed, requests=requests, window=window, **case.options)
    run = Run.create(ssd.toml, ssd.preconditioning or "empty", case.source(repeat), settings)
    until = time.monotonic() + SECONDS_MAX
    while not run.step(50_000) and time.monotonic() < until:
        pass
    return run


def judge(case: Case) -> dict[str, Any]:
    """One case: its verdict, and what a run ten times as long says."""
    row: dict[str, Any] = {
        "seed": case.seed,
        "family": case.family,
        "drive": case.drive,
        "settings": case.settings,
        "workload": case.workload.rpartition("/")[2],
        "precondition": case.precondition,
        "requests": case.requests,
    }
    began = time.monotonic()
    try:
        result = play(case, case.requests).result()
        assert result is not None
        figures: Any = result.json
        settled, before = figures["settled"], figures["precondition"]["workload"]
        row |= {"verdict": settled["verdict"], "why": settled["why"], "drift": settled["drift"]}
        row |= {"write_amplification": result.write_amplification, "interval": settled["interval"]}
        row["capacities"] = None if before is None else before["capacities"]
        if settled["verdict"] != "settled":
            return row
        played = figures["measured"]["requests"] + (0 if before is None else before["requests"])
        passes = 1 if before is None else before["passes"] + 1
        long = play(
            case, None if case.is_trace else 10 * played, repeat=10 * passes if case.is_trace else 1
        ).result()
        assert long is not None
        row["long_requests"] = long.json["measured"]["requests"]
        row["long_write_amplification"] = long.write_amplification
        if row["long_requests"] < 3 * played and not case.is_trace:
            row["verdict"] = "not compared with a long run: it takes too long"
            return row
        at_last = long.write_amplification
        assert result.write_amplification is not None and at_last is not None, "both wrote"
        row["error"] = result.write_amplification / at_last - 1
        if before is not None and not case.is_trace:
            row["waited"] = waited(case, before, at_last)
    except ConfigError as error:
        row |= {"verdict": "no such drive", "why": str(error).splitlines()[0]}
    except FlashwrightError as error:
        row |= {"verdict": "failed", "why": str(error).splitlines()[0]}
    row["seconds"] = round(time.monotonic() - began, 2)
    return row


def waited(case: Case, before: dict[str, Any], settled_at: float) -> float | None:
    """Requests of preconditioning over those after which write amplification stayed within 3 %."""
    from dataclasses import replace

    filled = replace(case, precondition="sequential")
    window = max(1, before["requests"] // 1000)
    result = play(filled, before["requests"], f"requests={window}").result()
    if result is None:
        return None
    pages = np.cumsum(result.windows["pages_written"].to_numpy())
    programs = np.cumsum(result.windows["programs"].to_numpy())
    needed = 0
    for at in range(len(pages) - 1, 8, -1):
        from_ = int(np.searchsorted(pages, pages[at] * 7 / 8))
        if from_ >= at:
            continue
        found = (programs[at] - programs[from_]) / (pages[at] - pages[from_])
        if abs(found / settled_at - 1) > TOLERANCE:
            needed = at
            break
    return float(pages[-1] / pages[max(needed, 8)])


def cases(which: str, runs: int, traces: Path | None) -> list[Case]:
    """The first cases whose drives can be built."""
    found: list[Case] = []
    seed = 0
    while len(found) < runs:
        seed += 1
        case = chosen_on(seed) if which == "chosen-on" else held_out(seed, traces)
        try:
            case.ssd().check()
            Run.create(case.ssd().toml, "empty", case.source(), RunSettings(requests=1))
        except FlashwrightError:
            continue
        found.append(case)
    return found


def summarize(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The rates over rows."""
    settled = [row for row in rows if "error" in row]
    wrong = [row for row in settled if abs(row["error"]) > TOLERANCE]
    times = [row["waited"] for row in settled if row.get("waited")]
    capacities = [row["capacities"] for row in settled if row["capacities"] is not None]
    inside = [
        row["interval"][0] <= row["long_write_amplification"] <= row["interval"][1]
        for row in settled
        if row["interval"]
    ]
    return {
        "runs": len(rows),
        "verdicts": dict(Counter(row["verdict"] for row in rows)),
        "held against a run ten times as long": len(settled),
        "wrong by more than 3 %": len(wrong),
        "wrong share": len(wrong) / max(1, len(settled)),
        "95 % intervals that hold the long run": sum(inside) / max(1, len(inside)),
        "capacities written before settling, median": statistics.median(capacities)
        if capacities
        else None,
        "waited over needed, median": statistics.median(times) if times else None,
        "error, median of absolute": statistics.median(abs(row["error"]) for row in settled)
        if settled
        else None,
    }


def main() -> None:
    """Play all cases and print what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument(
        "--set", choices=["held-out", "chosen-on"], default="held-out", dest="which"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--traces", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    chosen = cases(given.which, given.runs, given.traces)
    rows: list[dict[str, Any]] = []
    with multiprocessing.Pool(given.jobs) as pool:
        for row in pool.imap_unordered(judge, chosen):
            rows.append(row)
            if sys.stderr.isatty():
                print(f"\r{len(rows)} of {len(chosen)}", end="", file=sys.stderr)
    rows.sort(key=lambda row: int(row["seed"]))
    summary = summarize(rows)
    for name, value in summary.items():
        print(f"{name:45} {value}")
    for row in rows:
        if abs(row.get("error", 0)) > TOLERANCE:
            print(f"wrong: {row}")
    if given.json is not None:
        given.json.write_text(
            json.dumps({"set": given.which, **summary, "rows": rows}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
