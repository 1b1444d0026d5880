"""``flashwright policies``: everything that can be chosen by name."""

from __future__ import annotations

from dataclasses import asdict

from flashwright.cli.outputs import Json
from flashwright.cli.render import page, put_json
from flashwright.drive.catalogue import catalogue

__all__ = ["policies"]


def policies(json: Json = None) -> int:
    """List everything that can be chosen by name: schemes, policies, schedulers, workloads, formats."""
    everything = catalogue()
    if put_json({key: [asdict(item) for item in items] for key, items in everything.items()}, json):
        return 0
    out = page.console()
    for key, items in everything.items():
        table = page.plain_table(key, "", elsewhere="")
        for item in items:
            table.add_row(item.name, item.about)
            if item.keys:
                table.add_row("", "keys: " + ", ".join(item.keys))
        out.print(table)
    return 0
