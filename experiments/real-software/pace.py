"""Does a client see the drive's response times? fio against a drive that is served at its own pace.

    python experiments/real-software/pace.py [--seconds 10] [--json FILE]

It needs fio with its nbd engine. Each load runs on a freshly filled drive over a Unix socket: 4 KiB at random, 70 % of
them reads. Beside what fio saw stands what the model said for the same requests, and how far a client may be off.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import flashwright
from flashwright import Ssd

# Beyond the model's: a share of it, and microseconds.
MEAN_LIMIT = (0.05, 30.0)
P99_LIMIT = (0.15, 100.0)


@dataclass(frozen=True)
class Load:
    """What fio keeps up: a queue of some depth, or Poisson arrivals."""

    depth: int
    per_second: int | None = None

    @property
    def name(self) -> str:
        """For people."""
        return f"Poisson, {self.per_second:,}/s" if self.per_second else f"depth {self.depth}"

    def options(self) -> list[str]:
        """For fio."""
        if self.per_second is None:
            return [f"--iodepth={self.depth}"]
        reads, writes = round(self.per_second * 0.7), round(self.per_second * 0.3)
        return [
            f"--iodepth={self.depth}",
            f"--rate_iops={reads},{writes}",
            "--rate_process=poisson",
        ]


LOADS = (Load(1), Load(4), Load(256, 2_000), Load(256, 5_000), Load(256, 10_000), Load(256, 20_000))
# Thirty-two dies, which 20,000 requests a second leave idle most of the time.
DRIVE = Ssd.named("default").with_(
    {
        "geometry.channels": 8,
        "capacity.utilization": 0.7,
        "geometry.dies-per-channel": 4,
        "geometry.blocks-per-plane": 64,
        "timing.bus-rate": "400 MB/s",
    }
)


@dataclass(frozen=True)
class Seen:
    """One side's times in microseconds."""

    mean_us: float
    p99_us: float


def by_fio(load: Load, uri: str, seconds: float) -> dict[str, Seen]:
    """Play a load; what fio saw, by direction."""
    command = [
        "fio",
        "--name=pace",
        "--ioengine=nbd",
        f"--uri={uri}",
        "--rw=randrw",
        "--rwmixread=70",
        "--bs=4k",
    ]
    command += [
        "--time_based",
        f"--runtime={seconds}",
        "--size=1g",
        "--norandommap",
        "--output-format=json",
    ]
    said = subprocess.run(
        [*command, *load.options()], capture_output=True, text=True, check=True
    ).stdout
    job = json.loads(said[said.index("{") :])["jobs"][0]
    return {
        kind: Seen(
            job[kind]["clat_ns"]["mean"] / 1e3,
            job[kind]["clat_ns"]["percentile"]["99.000000"] / 1e3,
        )
        for kind in ("read", "write")
    }


def by_model(result: Any) -> dict[str, Seen]:
    """What the model said of the same requests, by direction."""
    times = result.json["response_time_ns"]
    return {
        kind: Seen(times[kind]["mean"] / 1e3, times[kind]["p99"] / 1e3)
        for kind in ("read", "write")
    }


def limit(model: float, allowed: tuple[float, float]) -> float:
    """What a client may see."""
    return model * (1 + allowed[0]) + allowed[1]


def main() -> None:
    """Play all loads, print a line for each direction, and write JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    print(f"{'':18}{'':7}{'mean':>8}{'model':>8}{'limit':>8}{'p99':>9}{'model':>9}{'limit':>9}  us")
    for load in LOADS:
        with tempfile.TemporaryDirectory() as folder:
            at = f"unix:{folder}/drive.sock"
            with flashwright.serve(DRIVE.precondition("random"), nbd=at, pace="real") as drive:
                seen = by_fio(load, drive.uri, arguments.seconds)
                lateness = drive.stats()["served"]["lateness_ns"]
            said = by_model(drive.result)
        for kind in ("read", "write"):
            client, model = seen[kind], said[kind]
            most = Seen(limit(model.mean_us, MEAN_LIMIT), limit(model.p99_us, P99_LIMIT))
            holds = client.mean_us <= most.mean_us and client.p99_us <= most.p99_us
            mean = f"{client.mean_us:8.0f}{model.mean_us:8.0f}{most.mean_us:8.0f}"
            p99 = f"{client.p99_us:9.0f}{model.p99_us:9.0f}{most.p99_us:9.0f}"
            print(
                f"{load.name:18}{kind:7}{mean}{p99}  {'within' if holds else 'missed'}", flush=True
            )
            rows.append(
                {
                    "load": load.name,
                    "kind": kind,
                    "fio": asdict(client),
                    "model": asdict(model),
                    "within": holds,
                }
                | {"lateness_ns": lateness}
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
