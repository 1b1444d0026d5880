"""What a session of probes takes of each bundled drive's own time, against its plan.

python experiments/truth-recovery/budget.py                    # the table of budget.parquet
python experiments/truth-recovery/budget.py --run              # measure what is missing in it
python experiments/truth-recovery/budget.py --run sim:ssd-a    # measure these again
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from flashwright.drive.description import devices
from flashwright.probing.session import Planned, plan, probe
from flashwright.target.question import Mode
from flashwright.target.target import Target

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

from studies import load_rows, save_rows  # noqa: E402

LIMITS_MIN = {"quick": 30, "full": 480}
"""What a session may take of a drive's own time, minutes."""


def ask(name: str, mode: Mode, most_s: float | None) -> dict[str, Any]:
    """Plans and probes a drive: what each probe took beside what was planned for it."""
    began = time.monotonic()
    with Target(name) as target:
        planned = {item.name: item for item in plan(target, mode=mode)}
        rows = [_of(item) for item in planned.values()]
        row = {"drive": name, "mode": mode, "capacity_bytes": target.capacity_bytes, "plan": rows}
        if most_s == 0:
            return row
        found = probe(target, mode=mode, time_limit=most_s)
    return row | {
        "ended": found.ended,
        "note": found.note,
        "found": sum(finding.verdict != "unknown" for finding in found.findings.values()),
        "findings": len(found.findings),
        "short": [name for name, f in found.findings.items() if "time ran out" in f.why],
        "asked": [
            {
                "name": asked.name,
                "seconds": round(asked.target_seconds, 3),
                "bytes": asked.bytes_read + asked.bytes_written,
                "cpu_s": round(asked.seconds, 2),
            }
            for asked in found.asked
        ],
        "cpu_s": round(time.monotonic() - began, 1),
    }


def _of(item: Planned) -> dict[str, Any]:
    return {
        "name": item.name,
        "seconds": round(item.seconds, 3),
        "bytes": item.usual_bytes,
        "bytes_most": item.cost.bytes_read + item.cost.bytes_written,
    }


def table(rows: Sequence[dict[str, Any]], out: Callable[[str], object] = print) -> None:
    """Minutes and bytes of each drive beside its plan; † what was measured with earlier shares of probes."""
    out(
        "| drive | mode | GiB | minutes used | planned | plan / used | GiB moved | planned | plan / used "
        "| findings with a verdict | out of time |"
    )
    out("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        asked = row.get("asked", [])
        used = sum(each["seconds"] for each in asked) / 60
        planned = sum(each["seconds"] for each in row["plan"]) / 60
        moved = sum(each["bytes"] for each in asked) / 2**30
        volume = sum(each["bytes"] for each in row["plan"]) / 2**30
        mark = " †" if row.get("earlier") else ""
        head = f"| `{row['drive'].removeprefix('sim:')}`{mark} | {row['mode']} | {row['capacity_bytes'] / 2**30:.1f} "
        if not asked and "ended" in row:
            out(
                f"{head}| 0.0 | {planned:.1f} | – | 0 | {volume:,.0f} | – | 0 of {row['findings']} | {row['note']} |"
            )
            continue
        if not asked:
            out(f"{head}| not run | {planned:.1f} | | | {volume:,.0f} | | | |")
            continue
        over = " **over**" if used > LIMITS_MIN[row["mode"]] else ""
        ended = "" if row["ended"] == "complete" else f" ({row['note']})"
        out(
            f"{head}| {used:.1f}{over}{ended} | {planned:.1f} | {_ratio(planned, used)} | {moved:,.0f} | {volume:,.0f} "
            f"| {_ratio(volume, moved)} | {row['found']} of {row['findings']} "
            f"| {', '.join(sorted(row['short'])) or '–'} |"
        )


def _ratio(planned: float, used: float) -> str:
    return f"{planned / used:.2f}" if used > 0 else "–"


def main() -> None:
    """Read the command line, measure what is missing, print."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument(
        "--run", nargs="*", metavar="DRIVE", help="measure these, or what is missing"
    )
    arguments.add_argument("--mode", choices=("quick", "full"), default="quick")
    arguments.add_argument("--cpu-limit", type=float, help="seconds for a drive; 0 only plans")
    arguments.add_argument("--out", type=Path, default=HERE / "budget.parquet")
    given = arguments.parse_args()
    rows = load_rows(given.out) if given.out.exists() else []
    if given.run is not None:
        there = {(row["drive"], row["mode"]) for row in rows}
        names = given.run or [f"sim:{name}" for name in devices()]
        for name in names:
            if not given.run and (name, given.mode) in there:
                continue
            row = ask(name, given.mode, given.cpu_limit)
            rows = [each for each in rows if (each["drive"], each["mode"]) != (name, given.mode)]
            rows.append(row)
            rows.sort(
                key=lambda each: (each["mode"] == "full", each["capacity_bytes"], each["drive"])
            )
            save_rows(given.out, rows)
            print(name, f"{row.get('cpu_s', 0)} s of processor time", file=sys.stderr, flush=True)
    table(rows)


if __name__ == "__main__":
    main()
