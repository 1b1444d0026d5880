"""The runs on which the verdict "settled" is compared with runs ten times as long.

Two sets of families, so that accuracy is reported for families that the rule was not tuned on:

- ``chosen-on``: page mapping and DFTL with seven victim policies, FAST, BAST, LAST and superblocks, under uniform,
  Zipf, hot and cold, static, sequential and mixed writes. The tolerances of ``crates/sim/src/settle.rs`` were chosen on
  these.
- ``held-out``: block and replacement-block mapping, the remaining victims and placements with wear policies, write
  buffers and managers of RAM, bundled drives, controllers and schedulers, stand-ins for traces, recorded traces,
  strided writes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flashwright import Ssd, workloads
from flashwright.traces.workloads import Source

PLACEMENTS = ("single", "gc-separate", "hot-cold", "dac", "envy", "multi-stream")
WEAR = ("threshold", "dual-pool", "static", "random", "rate-limit")


@dataclass(frozen=True)
class Case:
    """One run: its drive, workload, state at the start and length."""

    seed: int
    family: str
    drive: str
    settings: dict[str, Any]
    workload: str
    precondition: str
    requests: int | None
    options: dict[str, Any] = field(default_factory=dict)

    def ssd(self) -> Ssd:
        """The drive, with its preconditioning."""
        return Ssd.named(self.drive).with_(self.settings).precondition(self.precondition)

    def source(self, repeat: int = 1) -> Source:
        """The workload; a trace `repeat` times over."""
        if self.is_trace:
            return workloads.trace(
                self.workload.removeprefix("trace="), addresses="wrap", repeat=repeat
            )
        return workloads.parse(self.workload)

    @property
    def is_trace(self) -> bool:
        """Whether a recording is played, which ends."""
        return self.workload.startswith("trace=")


def _geometry(draw: random.Random) -> dict[str, Any]:
    return {
        "geometry.channels": draw.choice([1, 2]),
        "geometry.dies-per-channel": draw.choice([1, 2]),
        "geometry.blocks-per-plane": draw.choice([64, 128, 256]),
        "geometry.pages-per-block": draw.choice([32, 64, 128]),
        "timing.model": "none",
    }


def _generator(draw: random.Random) -> str:
    name = draw.choice(
        ["uniform", "zipf", "hot-cold", "dynamic-static", "sequential", "mixed", "dftl-a", "dftl-b"]
    )
    own = {
        "zipf": f"accesses={draw.choice([0.6, 0.8, 0.9, 0.95])},space=0.2,chunk={draw.choice(['64KiB', '256KiB'])}",
        "hot-cold": f"hot-space={draw.choice([0.05, 0.1, 0.2])},hot-access={draw.choice([0.8, 0.9, 0.95])}",
        "dynamic-static": f"static={draw.choice([0.3, 0.5, 0.7])}",
    }.get(name, "")
    common = f"write={draw.choice([1, 1, 0.7, 0.3])},size={draw.choice(['4KiB', '4KiB', '4KiB', '16KiB', '64KiB'])}"
    if draw.random() < 0.2:
        common += f",range={draw.choice([0.3, 0.6])}"
    keys = ",".join(part for part in (own, "" if name.startswith("dftl") else common) if part)
    return f"{name}:{keys}" if keys else name


def _start(draw: random.Random) -> tuple[str, int]:
    """How the drive begins, and requests measured: half of the runs as a user would who knows of no settling."""
    if draw.random() < 0.5:
        return "workload", draw.choice([50_000, 200_000, 1_000_000])
    return draw.choice(["sequential", "random"]), draw.choice([200_000, 1_000_000, 4_000_000])


def chosen_on(seed: int) -> Case:
    """A case of the families on which the rule was chosen."""
    draw = random.Random(f"chosen-on {seed}")
    settings = _geometry(draw)
    scheme = draw.choices(
        ["page", "dftl", "fast", "bast", "last", "superblock"], [10, 3, 2, 1, 1, 1]
    )[0]
    settings["ftl.scheme"] = scheme
    if scheme in ("page", "dftl"):
        victims = ["greedy", "fifo", "random", "cost-benefit", "d-choices", "cat", "age-threshold"]
        settings["gc.victim"] = draw.choice(victims)
        settings["capacity.utilization"] = draw.choice([0.5, 0.6, 0.7, 0.8, 0.85, 0.9])
    else:
        settings["capacity.utilization"] = draw.choice([0.7, 0.8, 0.9])
    precondition, requests = _start(draw)
    return Case(seed, scheme, "default", settings, _generator(draw), precondition, requests)


def held_out(seed: int, traces: Path | None) -> Case:
    """A case of the families that the rule was not chosen on."""
    draw = random.Random(f"held-out {seed}")
    family = draw.choice(
        [
            "log-blocks",
            "placement",
            "wear",
            "ram",
            "bundled drive",
            "layers",
            "stand-in",
            "trace",
            "strided",
            "victim",
        ]
    )
    settings = _geometry(draw)
    settings["capacity.utilization"] = draw.choice([0.6, 0.7, 0.8, 0.85])
    drive, workload, options = "default", _generator(draw), {}
    precondition, asked = _start(draw)
    requests: int | None = asked
    if family == "log-blocks":
        settings["ftl.scheme"] = draw.choice(["block", "replacement", "last", "superblock", "bast"])
        requests = min(asked, 200_000)
    elif family == "placement":
        settings["placement.policy"] = draw.choice(PLACEMENTS)
        settings["gc.victim"] = draw.choice(["greedy", "cost-benefit", "partition-fifo"])
    elif family == "wear":
        settings["wear.policy"] = draw.choice(WEAR)
    elif family == "ram":
        settings["ram.size"] = draw.choice(["256 KiB", "1 MiB"])
        settings["ram.manager"] = draw.choice(["fifo", "lru", "cflru", "fab", "bplru"])
        settings["ftl.scheme"] = draw.choice(["page", "fast"])
    elif family == "bundled drive":
        drive = draw.choice(
            ["default", "mlc-sata", "tlc-nvme", "qlc-nvme", "container-marking", "hu-2012"]
        )
        settings = {"geometry.blocks-per-plane": draw.choice([64, 128]), "timing.model": "none"}
        settings["capacity.utilization"] = draw.choice([0.7, 0.8])
    elif family == "layers":
        settings["host.scheduler"] = draw.choice(["noop", "deadline", "kyber"])
        settings["timing.model"] = "parallel"
        options = {"depth": draw.choice([4, 16])}
        requests = min(asked, 200_000)
    elif family == "stand-in":
        names = ("financial1", "financial2", "msn-fs", "exchange", "build")
        workload = f"stand-in:{draw.choice(names)}"
    elif family == "trace":
        named = [f"bundled:{name}" for name in workloads.bundled_traces()]
        if traces is not None:
            named += sorted(
                str(path) for path in traces.glob("*.zst") if "websearch" not in path.name
            )
        workload = f"trace={draw.choice(named)}"
        precondition, requests = "workload", None
        settings["geometry.channels"] = 2
        settings["geometry.blocks-per-plane"] = 256
    elif family == "strided":
        workload = f"strided:step={draw.choice(['68KiB', '132KiB', '1028KiB'])},write=1"
    else:
        settings["gc.victim"] = draw.choice(
            ["windowed-greedy", "partition-fifo", "container-marking"]
        )
        if settings["gc.victim"] == "windowed-greedy":
            settings["gc.windowed-greedy.window"] = draw.choice([8, 32])
        if settings["gc.victim"] == "container-marking":
            settings["placement.policy"] = "container-marking"
    return Case(seed, family, drive, settings, workload, precondition, requests, options)
