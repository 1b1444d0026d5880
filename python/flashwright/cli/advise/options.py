"""What is asked of the spare space, and what is said of the host."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from flashwright.advice.lines import BlockDevice
from flashwright.errors import ConfigError
from flashwright.twin.profile import Profile

__all__ = ["BothOptions", "HostOptions", "Jobs", "SpaceOptions"]

Jobs = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Play N runs at a time; by default one a core.",
        rich_help_panel="Processes",
    ),
]


@dataclass
class HostOptions:
    """What is written for the drive's host."""

    write_to: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write files for a Linux machine: a udev rule, apply.sh, layout.sh, jobs of fio.",
            rich_help_panel="The host",
        ),
    ] = None
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Let --write-to replace files that are there.",
            rich_help_panel="The host",
        ),
    ] = False
    block_device: Annotated[
        str | None,
        typer.Option(
            metavar="/dev/X",
            help="The disk that commands and files name; default the one probed.",
            rich_help_panel="The host",
        ),
    ] = None

    def disk(self) -> BlockDevice | None:
        """The disk, if one is named."""
        return None if self.block_device is None else BlockDevice.parse(self.block_device)

    def check(self) -> None:
        """Refuse what contradicts itself."""
        if self.force and self.write_to is None:
            raise ConfigError("--force: found without --write-to, expected both", "")


@dataclass
class BothOptions(HostOptions):
    """What is said and written about the drive's host beside its spare space."""

    host: Annotated[
        bool | None,
        typer.Option(
            "--host/--no-host",
            help="Say what follows for the drive's host: requests, queue, scheduler, layout. Default with a profile.",
            rich_help_panel="The host",
        ),
    ] = None

    def wanted(self, profile: Profile | None) -> bool:
        """Whether advice for the host is wanted; refuse what has no effect without it."""
        wanted = profile is not None if self.host is None else self.host
        for option, given in (
            ("--write-to", self.write_to is not None),
            ("--block-device", self.block_device is not None),
        ):
            if given and not wanted:
                raise ConfigError(
                    f"{option}: found without advice for a host, expected --host beside it", ""
                )
        self.check()
        return wanted


@dataclass
class SpaceOptions:
    """What is asked of the spare space."""

    targets: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="FIGURE<=LIMIT",
            help="Meet this target: write-amplification<=2, mean, p99 or p99.9<=5ms, iops>=9000, throughput>=90MB/s, "
            "life>=5y. Repeatable.",
            rich_help_panel="Scope",
        ),
    ] = None
    utilizations: Annotated[
        str | None,
        typer.Option(
            metavar="U,U,...",
            help="Try these values of capacity.utilization; default 0.5 to 0.95 in steps of 0.05.",
            rich_help_panel="Scope",
        ),
    ] = None
    write_rate: Annotated[
        str | None,
        typer.Option(
            metavar="RATE",
            help="For years of life: 20MB/s, 2TB/day or 0.5dwpd.",
            rich_help_panel="Scope",
        ),
    ] = None
    cycles: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Erases that a block takes; by default wear.pe-cycles-max.",
            rich_help_panel="Scope",
        ),
    ] = None
    seeds: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Play each point with N seeds; figures are means over them.",
            rich_help_panel="Workload",
        ),
    ] = 1
    jobs: Jobs = None
    despite_doubts: Annotated[
        bool,
        typer.Option(
            "--despite-doubts",
            help="Play even a twin whose fit or check was beyond its bound, or that was never checked.",
            rich_help_panel="Scope",
        ),
    ] = False
