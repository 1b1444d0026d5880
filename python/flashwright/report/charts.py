"""A chart as data: what ``static/plots/*.js`` draws.

A chart has one or more *views* that the reader switches between. A view names its axes and its
series; series name columns of numbers, which are kept once in a `Columns` pool however many charts
draw them::

    chart ─► views ─► series ─► columns
      kind     axes     run, part  numbers, null for a gap

Kinds: ``lines`` (also histograms, as steps), ``bars`` (one value a die), ``stack`` (shares of a
whole), ``map`` (a cell a block), ``film`` (maps of several moments) and ``requests`` (a bar a
request). A chart without data says why instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from flashwright.report.tables import Table

NO_TIME = "No time was kept (<code>timing.model = none</code>)"


@dataclass(frozen=True)
class Chart:
    """A chart, or the reason why there is none.

    `caption` and `missing` are HTML of our own; nothing of a run may stand in them unescaped.
    """

    key: str
    title: str
    caption: str
    kind: Literal["lines", "bars", "stack", "map", "film", "requests"] = "lines"
    views: list[dict[str, Any]] = field(default_factory=list)
    table: Table | None = None
    missing: str | None = None
    group: str | None = None
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """Charts that belong together; `stacked` ones stand below each other, as wide as the page."""

    key: str
    title: str
    charts: Sequence[Chart]
    stacked: bool = False


@dataclass
class Columns:
    """The numbers behind all charts, by name; five to seven significant digits suffice a plot."""

    numbers: dict[str, list[float | int | None]] = field(default_factory=dict)

    def add(self, name: str, values: Iterable[float], digits: int = 5) -> str:
        """Keeps `values` under `name`; returns the name."""
        self.numbers[name] = [short(value, digits) for value in values]
        return name


def short(value: float, digits: int) -> float | int | None:
    """A number for a plot, of so many significant digits; None for what is not finite."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() else short


def axis(label: str, show: str, **options: object) -> dict[str, Any]:
    """An axis: its label, how its numbers read, and options such as ``log`` or ``zero``.

    Numbers read as ``ns``, ``bytes``, ``count``, ``share``, ``number`` or ``index`` (whole, never
    shortened). ``ticks`` are pairs of a value and its label.
    """
    return {"label": label, "format": show, **options}


def cells_across(channels: int, rows: int, cells: int) -> int:
    """Cells in a row of a plane, so that the whole map is about twice as wide as it is high."""
    ideal = min(cells, max(1.0, math.sqrt(2 * rows * cells / channels)))
    exact = [n for n in range(1, cells + 1) if cells % n == 0]
    nearest = min(exact, key=lambda n: abs(math.log(n / ideal)))
    return nearest if abs(math.log(nearest / ideal)) < 0.4 else round(ideal)
