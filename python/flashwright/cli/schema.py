"""``flashwright schema``: JSON schemas of what Flashwright reads and writes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from flashwright import _core
from flashwright.errors import ConfigError

__all__ = ["schema"]

#: What has a schema.
SCHEMAS: dict[str, Callable[[], str]] = {"config": _core.settings_schema}


def schema(
    of: Annotated[
        str,
        typer.Argument(metavar="config", help="What to describe: a drive's TOML file (config)."),
    ],
) -> int:
    """Print the JSON schema of a document.

    A drive's keys come with meaning, default and range. Times, sizes and rates are text: their limits stand as
    x-minimum and x-maximum.
    """
    if of not in SCHEMAS:
        raise ConfigError(f"schema: found {of!r}, expected {' or '.join(SCHEMAS)}")
    sys.stdout.write(SCHEMAS[of]() + "\n")
    return 0
