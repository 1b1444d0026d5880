"""What people and programs see."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from flashwright.support.files import write_beside

__all__ = ["Shown", "put_json", "put_page"]


class Shown(Protocol):
    """What makes a page of plots, and figures for a paper."""

    def report(self, path: Path) -> None:
        """Write the page."""

    def figures(self, folder: Path, *, size: str | None, style: Sequence[str] | None) -> object:
        """Write each of its charts into a folder, in this width and height, and in these styles."""


class Wanted(Protocol):
    """Which files a command is to write."""

    @property
    def report(self) -> Path | None:
        """The page."""

    @property
    def figures(self) -> Path | None:
        """The folder of the figures."""

    @property
    def figures_size(self) -> str | None:
        """Their width and height."""

    @property
    def figures_style(self) -> Sequence[str] | None:
        """Their fonts and styles."""


def put_page(made: Callable[[], Shown], output: Wanted) -> None:
    """Write the page and the figures that were asked for; nothing is made where neither was."""
    if output.report is not None:
        made().report(output.report)
    if output.figures is not None:
        made().figures(output.figures, size=output.figures_size, style=output.figures_style)


def _indented(document: Mapping[str, object]) -> str:
    return json.dumps(document, indent=2) + "\n"


def put_json(
    document: Mapping[str, object],
    path: Path | None,
    written: Callable[[Mapping[str, object]], str] = _indented,
) -> bool:
    """Write a document to `path`, if any; true if that was standard output, which then has nothing else."""
    if path is None:
        return False
    text = written(document)
    if path == Path("-"):
        print(text, end="")
        return True
    with write_beside(path) as part:
        part.write_text(text, encoding="utf-8")
    return False
