"""The option ``--set``, which most commands take."""

from __future__ import annotations

from typing import Any

import typer

from flashwright.cli import completion

__all__ = ["settings_option"]


def settings_option(help: str) -> Any:
    """``--set KEY=VALUE``, which can be given again and again.

    Parameters
    ----------
    help : str
        What it changes, as one sentence.
    """
    return typer.Option(
        "--set",
        metavar="KEY=VALUE",
        autocompletion=completion.settings,
        help=f"{help} Repeatable.",
        rich_help_panel="The drive",
    )
