"""``flashwright schema``: the JSON Schema of what other commands write."""

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


def schema(
    document: Annotated[
        Document, typer.Argument(help="run: what simulate --json and replay --json write.")
    ],
) -> int:
    """Print the JSON Schema of a document: every figure with its meaning and its unit.

    A figure that does not apply is null, never missing; docs/reference/figures.md lists the same as a page.
    """
    schemas = {Document.RUN: _core.schema_run}
    print(json.dumps(json.loads(schemas[document]()), indent=2))
    return 0
