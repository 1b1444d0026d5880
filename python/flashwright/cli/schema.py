"""``flashwright schema``: the JSON Schema of what Flashwright reads and writes."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from flashwright.support.core import _core

__all__ = ["schema"]


class Document(StrEnum):
    """What has a schema."""

    RUN = "run"
    CONFIG = "config"


def schema(
    document: Annotated[
        Document,
        typer.Argument(
            help="run: what simulate --json and replay --json write; config: a drive's TOML file."
        ),
    ],
) -> int:
    """Print the JSON Schema of a document, with the meaning of everything in it.

    The reference pages on figures and settings list the same. In a run, a figure that does not apply is null, never
    missing. In a drive's file, times, sizes and rates are text: their limits stand as x-minimum and x-maximum.
    """
    schemas = {Document.RUN: _core.schema_run, Document.CONFIG: _core.settings_schema}
    print(json.dumps(json.loads(schemas[document]()), indent=2))
    return 0
