"""What people and programs see."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from flashwright.files import write_beside

__all__ = ["put_json"]


def put_json(document: Mapping[str, object], path: Path | None) -> bool:
    """Write a document to `path`, if any; true if that was standard output, which then has nothing else."""
    if path is None:
        return False
    text = json.dumps(document, indent=2) + "\n"
    if path == Path("-"):
        print(text, end="")
        return True
    with write_beside(path) as part:
        part.write_text(text, encoding="utf-8")
    return False
