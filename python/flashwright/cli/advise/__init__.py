"""``flashwright advise``: how much space to reserve for a workload on a drive, and what its host should do."""

from __future__ import annotations

from typing import Annotated

import typer

from flashwright.advice.host import host_advice, profile_of_model
from flashwright.cli.advise.hosts import host_alone_advice, read_profile
from flashwright.cli.advise.options import BothOptions, HostOptions, SpaceOptions
from flashwright.cli.advise.placements import PlacementOptions, by_handles
from flashwright.cli.advise.spaces import by_runs
from flashwright.cli.help import Command, Group
from flashwright.cli.options import LeftOut, RunOptions, add_options
from flashwright.cli.outputs import ResultOptions
from flashwright.cli.settingsoption import settings_option
from flashwright.errors import WorkloadError
from flashwright.simulation.ssd import Ssd

__all__ = ["app"]

_Device = Annotated[
    str,
    typer.Argument(
        metavar="DEVICE",
        help="A bundled drive (`flashwright devices`), a TOML file, or a profile of a probed drive.",
    ),
]


# One run of many is not looked at closely.
_RunOptions = Annotated[RunOptions, LeftOut("closeup", "snapshots", "tenant", "no_alone")]


app = typer.Typer(
    cls=Group,
    help="Recommend how much spare space a workload needs, or how to set up a drive's host.",
    rich_markup_mode=None,
    add_completion=False,
)


@app.command("space", cls=Command)
@add_options
def space(
    device: _Device,
    run: _RunOptions,
    output: ResultOptions,
    about_host: BothOptions,
    asked: SpaceOptions,
) -> int:
    """Say how much spare space a workload needs: what it costs, where it turns steep, the least that meets a target.

    With --host, and for a profile of a probed drive, say too what its host should do with that space.
    """
    return by_runs(device, run, output, about_host, asked)


@app.command("placement", cls=Command)
@add_options
def placement(
    device: Annotated[
        str,
        typer.Argument(
            metavar="DEVICE", help="A bundled drive (`flashwright devices`) or a TOML file."
        ),
    ],
    run: _RunOptions,
    output: ResultOptions,
    asked: PlacementOptions,
) -> int:
    """Say whether a load gains by flexible data placement: how many handles pay, what goes where, and what a host does.

    Addresses are grouped by how soon they are written again, in the first half of a trace; its second half is played
    with 2, 4 and 8 handles and without.
    """
    return by_handles(device, run, output, asked)


@app.command("host", cls=Command)
@add_options
def host(
    device: _Device,
    about_host: HostOptions,
    output: ResultOptions,
    settings: Annotated[
        list[str] | None,
        settings_option("Change a setting of a drive that is no profile."),
    ] = None,
) -> int:
    """Say what a drive's host should do: requests, queue, scheduler, layout.

    Nothing of a workload is played. What suits a drive that is a model is asked of it in short runs."""
    output.check()
    about_host.check()
    profile = read_profile(device)
    if profile is not None and settings:
        raise WorkloadError("--set: found with a profile, expected only with a drive", "")
    known = profile or profile_of_model(Ssd.find(device).with_settings(settings or ()))
    return host_alone_advice(host_advice(known, device=about_host.disk()), about_host, output)
