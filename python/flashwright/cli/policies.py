"""``flashwright policies``: everything that can be chosen by name."""

from __future__ import annotations

import json as json_text
from typing import Annotated

import typer

from flashwright.catalogue import catalogue
from flashwright.cli.render import page

__all__ = ["policies"]


def policies(
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> int:
    """List the translation layers, policies, workloads, preconditions and trace formats."""
    everything = catalogue()
    if json:
        print(json_text.dumps({key: [vars(item) for item in items] for key, items in everything.items()}, indent=2))
        return 0
    out = page.console()
    for key, items in everything.items():
        table = page.plain_table(key, "")
        for item in items:
            table.add_row(item.name, item.about)
            if item.keys:
                table.add_row("", "keys: " + ", ".join(item.keys))
        out.print(table)
    return 0
