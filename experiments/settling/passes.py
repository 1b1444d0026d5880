"""Whether a trace whose passes move nothing goes on moving nothing.

    python experiments/settling/passes.py [--jobs 2]

A drive on which the passes of a trace move no page counts as settled before its blocks were erased twice on average:
the blocks that take part were, 1.5 times (``ROUNDS_MIN`` of ``crates/sim/src/settle.rs``). Each such drive is played
five times as long, what came before included. The early verdict is wrong if more than a page in 2,000 was moved then.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
from collections import Counter
from collections.abc import Iterator
from typing import Any

from drives import Case
from run import play

from flashwright import _core
from flashwright.errors import FlashwrightError
from flashwright.traces import workloads

TRACES = ("pgbench", "postmark", "rocksdb", "sqlite")
# Of the default drive, in blocks of a plane: the traces touch 1 to 50 % of these.
SIZES = (1024, 4096)
# How much longer each is played.
LONGER = 5
# With these erases per block the rule for every load holds.
ERASES_PER_BLOCK_MIN = 2.0
# Pages moved per page written, below which a load needs no cleaning.
MOVED_MIN = 0.0005
MOVES = ("gc", "merge", "padding", "wear")
UNTIMED = {"timing.model": "none"}
BUFFER = {"controller.write-buffer.size": "2 MiB", "controller.write-buffer.drain": "eager"}


def cases() -> Iterator[Case]:
    """Victim policies under page mapping, under DFTL and behind a buffer that merges by time; other schemes."""
    listed: dict[str, list[str]] = {}
    for each in json.loads(_core.policies()):
        listed.setdefault(each["key"], []).append(each["name"])
    few = ("greedy", "fifo", "cost-benefit", "d-choices")
    drives: list[dict[str, Any]] = [{"gc.victim": victim} for victim in listed["gc.victim"]]
    drives += [{"ftl.scheme": "dftl", "gc.victim": victim} for victim in few]
    drives += [{"gc.victim": victim, **BUFFER} for victim in few]
    drives += [
        {"ftl.scheme": scheme}
        for scheme in listed["ftl.scheme"]
        if scheme not in ("page", "dftl", "zoned")
    ]
    recordings = workloads.bundled_traces()
    for number, (settings, size, trace) in enumerate(itertools.product(drives, SIZES, TRACES)):
        sized = {**settings, **UNTIMED, "geometry.blocks-per-plane": size}
        yield Case(
            number, "passes", "default", sized, f"trace={recordings[trace]}", "workload", None
        )


def judge(case: Case) -> tuple[str, str]:
    """What became of a case, and a line on it."""
    about = f"{case.settings} {case.workload.rpartition('/')[2]}"
    try:
        first = play(case, None).result()
        if first is None:
            return "not played to its end", about
        figures: Any = first.json
        before = figures["precondition"]["workload"]
        erases = figures["settled"]["erases_per_block"]
        if figures["settled"]["verdict"] != "never-cleaned" or erases >= ERASES_PER_BLOCK_MIN:
            return "settled by the rule for every load, or not", about
        later = play(case, None, repeat=LONGER * (before["passes"] + 1)).result()
    except FlashwrightError as error:
        return "refused", f"{about}: {str(error).splitlines()[0]}"
    if later is None:
        return "not played to its end", about
    programs: Any = later.json["flash"]["programs"]
    moved = sum(programs.get(cause, 0) for cause in MOVES)
    written = later.json["host"]["pages_written"] or 0
    return (
        "right" if moved <= MOVED_MIN * written else "WRONG"
    ), f"{about}: {erases:.2f} erases, {moved} moved"


def main() -> None:
    """Print how many early verdicts were right, and each that was not."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="a line for every case")
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    with multiprocessing.Pool(args.jobs) as pool:
        for outcome, about in pool.imap_unordered(judge, cases()):
            counts[outcome] += 1
            if outcome in ("WRONG", "refused") or args.all:
                print(f"{outcome}: {about}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()
