"""``flashwright convert``: what other simulators read, as a drive and commands of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flashwright.cli.help import Group
from flashwright.cli.render import errors
from flashwright.drive import mqsim as other

__all__ = ["app"]

app = typer.Typer(
    cls=Group,
    help="Convert what another simulator reads: a drive, and a command for each workload.",
    rich_markup_mode=None,
    add_completion=False,
)


@app.callback()
def _several() -> None:
    """Keep the name of the simulator, although there is but one."""


@app.command()
def mqsim(
    config: Annotated[
        Path, typer.Argument(metavar="SSDCONFIG.xml", help="The file that describes the SSD.")
    ],
    workload: Annotated[
        Path | None,
        typer.Argument(
            metavar="[WORKLOAD.xml]", help="The file that describes the scenarios with their flows."
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Where drive.toml and run.sh go; it is made if it is not there.",
            rich_help_panel="Output",
        ),
    ] = Path("mqsim"),
    blocks_per_plane: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Blocks of a plane, if fewer than in the file: a smaller drive with as many dies and the same share "
            "of spare space. RAM and the cached map shrink with it.",
            rich_help_panel="The drive",
        ),
    ] = None,
) -> int:
    """Convert the files that MQSim reads.

    drive.toml names the element that each value came from; run.sh has a command for each flow, which are printed too.
    Whatever is approximated, has no equal or no effect, is missing or not known is said on standard error, a line each.
    """
    found = other.convert(config, workload, out=out, blocks_per_plane=blocks_per_plane)
    found.write(out)
    for note in found.notes:
        errors.note(str(note))
    print(f"{out / 'drive.toml'}: the drive")
    if found.runs:
        print(f"{out / 'run.sh'}: a command for each flow, to run in {out}:")
        for run in found.runs:
            print(run.text)
    return 0
