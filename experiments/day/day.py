"""What a researcher's day costs: eleven parts as whole processes, start-up included.

    python experiments/day/day.py [--rounds 5] [--against PROGRAM] [--only PART] [--json FILE]

Each part is a command as people type it, in a folder of its own. Processor time is that of the process and of those
that it began; memory is the largest of them. With ``--against`` another build plays the same by turns, so that whatever
else the machine does hits both alike, and the ratio of each round is taken; a part that it can't play
has no figure. Medians of all rounds are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

PROGRAM = Path(sys.executable).parent / "flashwright"
SWEEP = """
drive = "default"
workload = "zipf:write=0.7"
requests = 20_000
seeds = 4

[set]
geometry.blocks-per-plane = 256

[grid]
gc.victim = ["greedy", "fifo", "cost-benefit", "d-choices", "cat"]
capacity.utilization = [0.6, 0.65, 0.7, 0.75, 0.8, 0.82, 0.85, 0.88, 0.9, 0.92]
"""
SETTLED = [
    "--workload",
    "zipf:write=0.7",
    "--precondition",
    "workload",
    "--requests",
    "200000",
    "--depth",
    "32",
]


@dataclass(frozen=True)
class Part:
    """A part of the day: its name, and the commands that it takes, each the words behind the program's name."""

    name: str
    commands: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Cost:
    """What one round of a part took: seconds of processor and clock, and MiB."""

    cpu_s: float
    wall_s: float
    memory_mib: float


PARTS = (
    Part("the list of commands", (("--help",),)),
    Part(
        "a first result", (("simulate", "default", "--workload", "uniform", "--requests", "1000"),)
    ),
    Part("default, settled", (("simulate", "default", *SETTLED),)),
    Part("enterprise-tlc, settled", (("simulate", "enterprise-tlc", *SETTLED),)),
    Part("a product, settled", (("simulate", "micron-7450-max", *SETTLED),)),
    Part(
        "four policies, three seeds",
        (
            (
                "compare",
                "default",
                *SETTLED,
                "--vary",
                "gc.victim=greedy,fifo,cost-benefit,d-choices",
                "--seeds",
                "3",
            ),
        ),
    ),
    Part("a sweep of 200 points", (("sweep", "sweep.toml"),)),
    Part(
        "how much to reserve",
        (
            (
                "advise",
                "space",
                "default",
                "--workload",
                "zipf:write=0.7,depth=8",
                "--target",
                "write-amplification<=2.5",
            ),
        ),
    ),
    Part(
        "a trace, its model, a million requests",
        (
            ("trace", "fit", "bundled:pgbench", "--output", "pgbench.model"),
            ("simulate", "default", "--workload", "model:pgbench.model", "--requests", "1000000"),
        ),
    ),
    Part("a session of probes", (("probe", "sim:default", "--quick"),)),
    Part("a report", (("simulate", "default", *SETTLED, "--report", "report.html"),)),
)


def played(
    command: Sequence[str | Path], folder: Path, settings: Mapping[str, str] | None = None
) -> tuple[resource.struct_rusage, str]:
    """What a process and those that it began used, and what it printed.

    Raises
    ------
    RuntimeError
        If it fails.
    """
    # An installed package lies there compiled; so is this one, from its second start on.
    surroundings = {
        key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"
    }
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=surroundings | dict(settings or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{shlex.join(map(str, command))}: {said}")
    return used, said


def cost(part: Part, program: Path) -> Cost:
    """Play a part in an empty folder.

    Raises
    ------
    RuntimeError
        If one of its commands fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sweep.toml").write_text(SWEEP)
        cpu, memory, began = 0.0, 0.0, time.monotonic()
        for words in part.commands:
            used, _ = played([program, *words], Path(folder))
            cpu += used.ru_utime + used.ru_stime
            memory = max(memory, used.ru_maxrss / 1024)
        return Cost(cpu, time.monotonic() - began, memory)


def cost_of_other(part: Part, program: Path) -> Cost | None:
    """As :func:`cost`; None where the other build knows one of the commands not."""
    try:
        return cost(part, program)
    except RuntimeError as error:
        print(f"note: {part.name}: {str(error).strip()}", file=sys.stderr)
        return None


def main() -> None:
    """Play all parts by turns, and print the medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", choices=[part.name for part in PARTS], action="append")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    parts = [part for part in PARTS if not given.only or part.name in given.only]
    found: dict[str, list[tuple[Cost, Cost | None]]] = {part.name: [] for part in parts}
    for _ in range(given.rounds):
        for part in parts:
            other = cost_of_other(part, given.against) if given.against else None
            found[part.name].append((cost(part, PROGRAM), other))
        if given.json:
            document = {
                name: [[each and asdict(each) for each in costs] for costs in rounds]
                for name, rounds in found.items()
            }
            given.json.write_text(json.dumps(document, indent=1) + "\n")
    heads = ["part", "CPU s", "wall s", "MiB"]
    heads += ["CPU s, other", "other over this"] if given.against else []
    print("| " + " | ".join(heads) + " |\n" + "| --- " * len(heads) + "|")
    for name, rounds in found.items():
        own = [one for one, _ in rounds]
        cells = [
            name,
            f"{statistics.median(each.cpu_s for each in own):.2f}",
            f"{statistics.median(each.wall_s for each in own):.2f}",
            f"{statistics.median(each.memory_mib for each in own):.0f}",
        ]
        both = [(one.cpu_s, other.cpu_s) for one, other in rounds if other is not None]
        if given.against:
            cells += [
                f"{statistics.median(other for _, other in both):.2f}" if both else "-",
                f"{statistics.median(other / one for one, other in both):.2f}" if both else "-",
            ]
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
