"""``flashwright lifetime``: by formula, played to the end of life or until it can be told, or from SMART data."""

from __future__ import annotations

import typer

from flashwright.cli.help import Command, Group
from flashwright.cli.lifetime.formula import formula
from flashwright.cli.lifetime.simulate import forecast, simulate
from flashwright.cli.lifetime.smart import smart

__all__ = ["app"]

app = typer.Typer(
    cls=Group,
    help="Estimate how long a drive lasts: by formula, by simulating it to its end, or from SMART data.",
    rich_markup_mode=None,
    add_completion=False,
)
app.command("formula", cls=Command)(formula)
app.command("simulate", cls=Command)(simulate)
app.command("forecast", cls=Command)(forecast)
app.command("smart", cls=Command)(smart)
