"""Shares of weighted queues, and slowdowns of eight mixes of tenants, believed by a second method.

    python experiments/tenants/run.py [--csv FILE]

README.md says what is compared. Exits with 1 if a share or a figure of a mix is further off than it may be.
"""

from __future__ import annotations

import argparse
import csv
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from twin import CLASSES, WEIGHTS, Drive, Figures, Load, play

from flashwright import Ssd
from flashwright.simulation.results import RunResult

SEED = 7
# Requests that are measured of each mix.
REQUESTS = 150_000
# A share of saturated queues may be off by this.
SHARE_TOLERANCE = 0.02
# A figure of the twin may differ by this: both are of samples of 150,000 requests.
TOLERANCE = 0.05
# Commands that the drive takes at once.
DEPTH = 8

DRIVE = Drive(
    dies=4,
    blocks=128,
    pages=64,
    logical_share=0.8,
    depth=DEPTH,
    read=50.0,
    program=600.0,
    erase=3000.0,
    transfer=20.48,  # 4 KiB at 200 MB/s
)


def ssd(arbiter: str) -> Ssd:
    """The drive of the twin, as the simulator has it."""
    return Ssd.named("default").with_(
        {
            "geometry.channels": DRIVE.dies,
            "geometry.dies-per-channel": 1,
            "geometry.blocks-per-plane": DRIVE.blocks,
            "geometry.pages-per-block": DRIVE.pages,
            "capacity.utilization": DRIVE.logical_share,
            "placement.policy": "single",
            "placement.allocation": "dynamic",
            "controller.queue-depth": DRIVE.depth,
            "controller.queues.arbiter": arbiter,
        }
    )


@dataclass(frozen=True)
class Mix:
    """Tenants that share the drive under an arbiter."""

    name: str
    arbiter: str
    loads: tuple[Load, ...]

    @property
    def writes(self) -> bool:
        return any(load.write > 0 for load in self.loads)


MIXES = (
    Mix(
        "two readers alike",
        "fifo",
        (Load("a", 0, 0.5, depth=8), Load("b", 0, 0.5, depth=8)),
    ),
    Mix(
        "a deep and a shallow reader, one queue",
        "fifo",
        (Load("deep", 0, 0.5, depth=32), Load("shallow", 0, 0.5, depth=2)),
    ),
    Mix(
        "the same, in turns",
        "round-robin",
        (Load("deep", 0, 0.5, depth=32), Load("shallow", 0, 0.5, depth=2)),
    ),
    Mix(
        "high against low",
        "weighted",
        (
            Load("high", 0, 0.5, depth=32, priority="high"),
            Load("low", 0, 0.5, depth=32, priority="low"),
        ),
    ),
    Mix(
        "an urgent reader beside a batch",
        "weighted",
        (
            Load("urgent", 0, 0.5, depth=1, priority="urgent"),
            Load("batch", 0, 0.5, depth=64),
        ),
    ),
    Mix(
        "a reader at a rate beside a writer",
        "round-robin",
        (Load("reader", 0, 0.5, rate=500), Load("writer", 1, 0.5, depth=4)),
    ),
    Mix(
        "a writer of little beside a writer of much",
        "round-robin",
        (Load("little", 1, 0.1, depth=4), Load("much", 1, 0.9, depth=4)),
    ),
    Mix(
        "three: half writes, reads, writes at a rate",
        "round-robin",
        (
            Load("half", 0.5, 0.4, depth=4),
            Load("reader", 0, 0.4, depth=4),
            Load("log", 1, 0.2, rate=200),
        ),
    ),
)


def text_of(load: Load) -> str:
    """A tenant as the simulator takes it."""
    pace = f"rate={load.rate:g}" if load.rate else f"depth={load.depth}"
    own = f"name={load.name},share={load.share:g},priority={load.priority}"
    return f"uniform:write={load.write:g},{pace} @ {own}"


def simulated(mix: Mix) -> RunResult:
    drive = ssd(mix.arbiter).precondition("auto" if mix.writes else "sequential")
    return drive.play([text_of(load) for load in mix.loads], requests=REQUESTS, seed=SEED)


@dataclass(frozen=True)
class Row:
    """A tenant of a mix, by the simulator and by the twin."""

    mix: str
    arbiter: str
    tenant: str
    load: str
    iops: float
    iops_twin: float
    mean_us: float
    mean_us_twin: float
    mean_ratio: float
    """Mean response time among the others over that alone."""
    mean_ratio_twin: float
    iops_ratio: float
    """Rate alone over that among the others."""
    iops_ratio_twin: float
    amplification: float | None
    amplification_twin: float | None
    settled: bool

    @property
    def error(self) -> float:
        """The largest difference of the twin from the simulator, as a share."""
        pairs = [
            (self.iops, self.iops_twin),
            (self.mean_us, self.mean_us_twin),
            (self.mean_ratio, self.mean_ratio_twin),
            (self.iops_ratio, self.iops_ratio_twin),
        ]
        if self.amplification is not None and self.amplification_twin is not None:
            pairs.append((self.amplification, self.amplification_twin))
        return max(abs(twin / own - 1) for own, twin in pairs)


def rows_of(mix: Mix) -> list[Row]:
    figures: dict[str, Any] = dict(simulated(mix).json)
    loads = list(mix.loads)
    together = play(DRIVE, mix.arbiter, loads, None, REQUESTS, SEED)
    alone: list[Figures] = [
        play(DRIVE, mix.arbiter, loads, at, REQUESTS, SEED)[at] for at in range(len(loads))
    ]
    rows = []
    for load, found, beside, by_itself in zip(
        loads, figures["tenants"], together, alone, strict=True
    ):
        slowdown = found["slowdown"]
        rows.append(
            Row(
                mix.name,
                mix.arbiter,
                load.name,
                text_of(load).partition(" @")[0],
                found["throughput"]["iops"],
                beside.iops,
                found["response_time_ns"]["all"]["mean"] / 1e3,
                beside.mean,
                slowdown["mean_ratio"],
                beside.mean / by_itself.mean,
                slowdown["iops_ratio"],
                by_itself.iops / beside.iops,
                found["write_amplification"],
                beside.amplification,
                figures["settled"]["verdict"] == "settled" or not mix.writes,
            )
        )
    return rows


def shares() -> list[tuple[str, float, float]]:
    """Of a queue of each weighted class, all saturated: its share of the commands, and what the weights say."""
    classes = CLASSES[1:]
    tenants = [
        f"uniform:write=0,depth=64 @ name={name},share=0.333,priority={name}" for name in classes
    ]
    run = ssd("weighted").precondition("sequential").play(tenants, requests=100_000, seed=SEED)
    figures: dict[str, Any] = dict(run.json)
    rates = [tenant["throughput"]["iops"] for tenant in figures["tenants"]]
    return [
        (name, rate / sum(rates), WEIGHTS[name] / sum(WEIGHTS.values()))
        for name, rate in zip(classes, rates, strict=True)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, help="write the table of mixes here")
    arguments = parser.parse_args()
    off = 0
    for name, share, weight in shares():
        error = share / weight - 1
        off += abs(error) > SHARE_TOLERANCE
        print(f"{name:8} {share:.4f}, by weight {weight:.4f}: {error:+.2%}")
    rows = [row for mix in MIXES for row in rows_of(mix)]
    for row in rows:
        off += row.error > TOLERANCE or not row.settled
        amplification = "" if row.amplification is None else f", WA {row.amplification:.3f}"
        print(
            f"{row.mix:45} {row.tenant:8} {row.iops:9,.0f}/s {row.mean_us:9,.1f} us "
            f"mean/alone {row.mean_ratio:6.2f} ({row.mean_ratio_twin:6.2f}), "
            f"alone/IOPS {row.iops_ratio:6.2f} ({row.iops_ratio_twin:6.2f}){amplification}; "
            f"twin off by {row.error:.1%}{'' if row.settled else ', not settled'}"
        )
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(asdict(rows[0])), lineterminator="\n")
            writer.writeheader()
            writer.writerows(asdict(row) for row in rows)
    print(f"{off} of {len(rows) + 3} figures are further off than they may be")
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
