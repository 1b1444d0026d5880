"""The options of a run on the command line.

Written by ``make generate`` from ``crates/sim/src/options.rs``; change that instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from flashwright.cli.traceoptions import pair

__all__ = ["RunFlags"]


@dataclass
class RunFlags:
    """What makes a run, beside drive and workload."""

    precondition: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help=(
                "Precondition the drive first. workload: fill it, then play the workload until write "
                "amplification has settled; workload:scaled: the same, begun as a copy of a small "
                "drive that has settled; auto: workload where possible, else sequential (the default "
                "of compare, advise and sweeps). steady, steady:laid-out: settled under uniform "
                "writes. empty (the default elsewhere), sequential, random: a bare start, not a "
                "settled one."
            ),
            rich_help_panel="The drive",
        ),
    ] = None
    time_scale: Annotated[
        float | None,
        typer.Option(
            metavar="FACTOR",
            help="Multiply arrival times; 0.5 plays twice as fast.",
            rich_help_panel="Workload",
        ),
    ] = None
    depth: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Closed loop: keep N requests outstanding, and ignore arrival times.",
            rich_help_panel="Workload",
        ),
    ] = None
    requests: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Measure at most N requests.",
            rich_help_panel="Workload",
        ),
    ] = None
    warmup: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Play N requests before measuring begins.",
            rich_help_panel="Workload",
        ),
    ] = 0
    seed: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Random seed; the same seed repeats the run exactly.",
            rich_help_panel="Workload",
        ),
    ] = 1
    window: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Length of a window of the time series: requests=N, time=10ms or off.",
            rich_help_panel="Measurement",
        ),
    ] = None
    closeup: Annotated[
        str | None,
        typer.Option(
            metavar="FIRST:COUNT",
            help=(
                "Record single requests: the number of the first, counted from 0 after the warm-up, "
                "and how many. --report shows them, --closeup-out writes them."
            ),
            rich_help_panel="Measurement",
        ),
    ] = None
    snapshots: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help=(
                "Take up to N snapshots of all blocks, evenly over the run. --report shows erases and "
                "valid pages as maps over time."
            ),
            rich_help_panel="Measurement",
        ),
    ] = None
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Check every read, and the drive's state at the end. Exit 1 on a violation.",
            rich_help_panel="Measurement",
        ),
    ] = False
    audit: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Check the whole state every N requests too, which implies verify.",
            rich_help_panel="Measurement",
        ),
    ] = 0

    def options(self) -> dict[str, Any]:
        """The options by their names in Python."""
        return {
            "time_scale": self.time_scale,
            "depth": self.depth,
            "requests": self.requests,
            "warmup": self.warmup,
            "seed": self.seed,
            "window": self.window,
            "closeup": None
            if self.closeup is None
            else pair("--closeup", self.closeup, "FIRST:COUNT"),
            "snapshots": self.snapshots,
            "verify": self.verify,
            "audit_every": self.audit,
        }
