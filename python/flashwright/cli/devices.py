"""``flashwright devices``: the bundled drives."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from flashwright.cli.render import page
from flashwright.drive.description import devices as bundled
from flashwright.simulation.ssd import Ssd

__all__ = ["devices"]


def devices(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Print this drive, bundled or a file, as TOML."),
    ] = None,
    set: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change a setting of it, such as gc.victim=fifo. Repeatable.",
            rich_help_panel="The drive",
        ),
    ] = None,
) -> int:
    """List the bundled drives, or print one as TOML.

    The TOML has every default written out, so that it can be edited as a drive of your own.
    """
    if name is not None:
        ssd = Ssd.find(name)
        sys.stdout.write(ssd.with_settings(set).toml if set else ssd.toml)
        return 0
    table = page.plain_table(
        page.Column("drive", 100, number=False),
        page.Column("make", 60, number=False),
        page.Column("about", 90, number=False),
        elsewhere="",
    )
    for each in bundled():
        ssd = Ssd.named(each)
        table.add_row(each, repr(ssd).removeprefix("Ssd(").removesuffix(")"), ssd.config["about"])
    page.console().print(table)
    return 0
