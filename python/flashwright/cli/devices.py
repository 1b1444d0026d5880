"""``flashwright devices``: the bundled drives."""

from __future__ import annotations

import re
import sys
from typing import Annotated

import typer

from flashwright.cli.render import page, units
from flashwright.cli.settingsoption import settings_option
from flashwright.drive.description import devices as bundled
from flashwright.simulation.ssd import Ssd
from flashwright.support.core import _core

__all__ = ["devices"]


def devices(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Print this drive, bundled or a file, as TOML."),
    ] = None,
    set: Annotated[
        list[str] | None,
        settings_option("Change a setting of it, such as gc.victim=fifo."),
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
        page.Column("capacity", 90),
        page.Column("what it is (more: flashwright devices DRIVE)", 80, number=False),
        elsewhere="",
    )
    for each in bundled():
        ssd = Ssd.named(each)
        table.add_row(
            each,
            units.volume(_core.config_check(ssd.toml)[0]),
            _first_sentence(ssd.config["about"]),
        )
    page.console().print(table)
    return 0


def _first_sentence(about: str) -> str:
    """What a drive is, of all that is known of it.

    Examples
    --------
    >>> _first_sentence("A small drive: 4 GiB, 10 % of it spare. Scaled down.")
    'A small drive (scaled down)'
    """
    first = re.split(r"(?<! al)[.:;] ", about, maxsplit=1)[0]
    return f"{first} (scaled down)" if "scaled down" in about.lower() else first
