"""The tables of a page: cells, and what stands about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from flashwright.report import text

Tone = Literal["good", "warn", "bad", "plain"]


@dataclass(frozen=True)
class Badge:
    """A short remark that nobody should miss: its colour, its words, and its tooltip."""

    tone: Tone
    shown: str
    why: str = ""


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Attributes
    ----------
    shown
        Its text.
    value
        What it sorts by; None goes last. A column without any value sorts by what is shown.
    best
        Whether it is the best of its kind.
    tone
        Shows it as a badge, such as a verdict.
    to
        The key of a chart of the page: the cell leads there, and the chart hides where a filter hides the row.

    Examples
    --------
    >>> Cell("3.52", 3.52, best=True), Cell("reproduced", tone="good").tone
    (Cell(shown='3.52', value=3.52, best=True, tone=None, to=None), 'good')
    """

    shown: str
    value: float | str | None = None
    best: bool = False
    tone: Tone | None = None
    to: str | None = None


@dataclass(frozen=True)
class Table:
    """A table whose first column names its rows.

    Attributes
    ----------
    header
        The names of the columns.
    rows
        A cell for each column.
    prose
        Whether it has sentences, not figures.
    filters
        Columns whose values can be chosen above the table, beside a box for any words. None: no filter.

    Raises
    ------
    ValueError
        If a filter is none of the columns.

    Examples
    --------
    >>> Table(["Claim", "Verdict"], [], filters=["Result"])
    Traceback (most recent call last):
    ValueError: filters: found 'Result', expected one of Claim, Verdict
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    prose: bool = False
    filters: Sequence[str] | None = None

    def __post_init__(self) -> None:
        for name in self.filters or ():
            if name not in self.header:
                known = ", ".join(self.header)
                raise ValueError(f"filters: found {name!r}, expected one of {known}")

    @cached_property
    def words(self) -> frozenset[int]:
        """The columns that hold words and no number, by their place from 0.

        Examples
        --------
        >>> rows = [[Cell("a"), Cell("–"), Cell("fifo", "fifo")], [Cell("b"), Cell("2", 2), Cell("–")]]
        >>> sorted(Table(["Run", "Erases", "Policy"], rows).words)
        [0, 2]
        """
        return frozenset(
            k
            for k in range(len(self.header))
            if not any(isinstance(row[k].value, int | float) for row in self.rows)
            and any(row[k].shown != text.ABSENT for row in self.rows)
        )
