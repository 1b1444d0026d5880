"""Tables and names with values that fit the width of a terminal, and never break a number.

A table that is too wide first folds its heads and its text at word borders; then its least important columns leave,
and a line below says which.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

if TYPE_CHECKING:
    # Loaded only for a terminal: it takes as long as a short run.
    from rich.console import Console, ConsoleOptions, RenderResult

__all__ = ["TEXT_MAX", "Column", "Grid", "Table", "wrap"]

TEXT_MAX = 240
"""Lines of text are no longer than this, however wide the terminal."""
_GAP = 2
# Text that must fold does so into a column of at least this width, unless all of it is narrower.
_TEXT_LEAST = 14
_WORD_MAX = 30
_ALWAYS = 100


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
        Its head.
    importance : int
        Where the table is too wide, columns leave from the least important on, of equal ones the last first; one of
        100 never leaves.
    number : bool
        Whether it holds numbers, which stand right and are never broken; else it holds text, which folds.
    """

    name: str
    importance: int = 50
    number: bool = True


class Table:
    r"""A table with a line below its head and nothing more, as wide as there is room for.

    Parameters
    ----------
    columns : sequence of Column
        From left to right.
    elsewhere : str
        The option that has what a narrow terminal leaves out; empty where there is none.

    Examples
    --------
    >>> table = Table([Column("run", 100, number=False), Column("requests"), Column("p99.9", 10)])
    >>> table.add_row("gc.victim=greedy", "20,000", "1.02 ms")
    >>> print("\n".join(line.rstrip() for line in table.lines(30)))
    <BLANKLINE>
    run               requests
    ──────────────────────────
    gc.victim=greedy    20,000
    not shown in 30 columns: p99.9
    (--json or a wider terminal
    shows them)
    <BLANKLINE>
    """

    def __init__(self, columns: Sequence[Column], elsewhere: str = "--json") -> None:
        self._columns = list(columns)
        self._elsewhere = elsewhere
        self._rows: list[tuple[str, ...]] = []

    @property
    def row_count(self) -> int:
        """Rows so far."""
        return len(self._rows)

    def add_row(self, *cells: str) -> None:
        """Add a row, a cell for each column."""
        if len(cells) != len(self._columns):
            raise ValueError(f"{len(cells)} cells for {len(self._columns)} columns")
        self._rows.append(cells)

    def lines(self, width: int) -> list[str]:
        """The lines of the table in this many columns of a terminal."""
        return [line for line, _ in self._styled(width)]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        for line, style in self._styled(options.max_width):
            yield Text(line, style=style, no_wrap=True)

    def _styled(self, width: int) -> Iterator[tuple[str, str]]:
        """The lines, and how each is to look."""
        shown = self._chosen(width)
        widths = self._widths(shown, min(width, max(TEXT_MAX, self._least(shown))))
        bold = [self._line(part, shown, widths) for part in self._heads(shown, widths)]
        yield "", ""
        for line in bold:
            yield line, "bold"
        yield "─" * (sum(widths) + _GAP * (len(widths) - 1)), ""
        for row in self._rows:
            cells = [
                [row[at]] if self._columns[at].number else wrap(row[at], room)
                for at, room in zip(shown, widths, strict=True)
            ]
            for part in _side_by_side(cells, top=True):
                yield self._line(part, shown, widths), ""
        left = [column.name for at, column in enumerate(self._columns) if at not in shown]
        if left:
            where = (
                f"{self._elsewhere} or a wider terminal" if self._elsewhere else "a wider terminal"
            )
            message = f"not shown in {width} columns: {', '.join(left)} ({where} shows them)"
            for line in wrap(message, width):
                yield line, ""
        yield "", ""

    def _chosen(self, width: int) -> list[int]:
        """The columns that there is room for."""
        shown = list(range(len(self._columns)))
        while self._least(shown) > width:
            leaving = [at for at in shown if self._columns[at].importance < _ALWAYS]
            if not leaving:
                break
            shown.remove(min(leaving, key=lambda at: (self._columns[at].importance, -at)))
        return shown

    def _cells(self, at: int) -> list[str]:
        return [row[at] for row in self._rows]

    def _narrowest(self, at: int) -> int:
        """The width below which a column can't go."""
        column, cells = self._columns[at], self._cells(at)
        head = _widest(column.name.split())
        widest = _widest(cells)
        if column.number:
            return max(head, widest)
        word = _widest(piece for cell in cells for piece in _bound(cell).split(" "))
        return max(head, min(widest, max(_TEXT_LEAST, min(word, _WORD_MAX))))

    def _least(self, shown: Sequence[int]) -> int:
        return sum(map(self._narrowest, shown)) + _GAP * (len(shown) - 1)

    def _widths(self, shown: Sequence[int], width: int) -> list[int]:
        """Widths of the columns: natural ones, and where these are too wide, heads fold before text does."""
        widest = [_widest(self._cells(at)) for at in shown]
        widths = [
            max(cell_len(self._columns[at].name), cells)
            for at, cells in zip(shown, widest, strict=True)
        ]
        least = [self._narrowest(at) for at in shown]
        room = width - _GAP * (len(shown) - 1)
        for floors in ([max(a, b) for a, b in zip(least, widest, strict=True)], least):
            while sum(widths) > room:
                spare = [have - floor for have, floor in zip(widths, floors, strict=True)]
                if max(spare) <= 0:
                    break
                candidates = [at for at, some in enumerate(spare) if some > 0]
                widths[max(candidates, key=lambda at: widths[at])] -= 1
        return widths

    def _heads(self, shown: Sequence[int], widths: Sequence[int]) -> Iterator[list[str]]:
        heads = [wrap(self._columns[at].name, room) for at, room in zip(shown, widths, strict=True)]
        return _side_by_side(heads, top=False)

    def _line(self, cells: Sequence[str], shown: Sequence[int], widths: Sequence[int]) -> str:
        parts = [
            _padded(cell, room, right=self._columns[at].number)
            for cell, at, room in zip(cells, shown, widths, strict=True)
        ]
        return (" " * _GAP).join(parts).rstrip()


class Grid:
    r"""Names and what they have, a row each; text folds at word borders, below itself.

    Parameters
    ----------
    rows : sequence of (str, str)
        The rows.

    Examples
    --------
    >>> grid = Grid([("measured", "20,000 requests in 3.06 s"), ("seed", "1")])
    >>> print("\n".join(grid.lines(26)))
    measured  20,000 requests
              in 3.06 s
    seed      1
    """

    def __init__(self, rows: Sequence[tuple[str, str]]) -> None:
        self._rows = list(rows)

    def lines(self, width: int) -> list[str]:
        """The lines in this many columns of a terminal."""
        return [(name + line).rstrip() for name, line in self._pairs(width)]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        for name, line in self._pairs(options.max_width):
            whole = Text(name, style="bold").append(Text(line, style="not bold"))
            whole.rstrip()
            whole.no_wrap = True
            yield whole

    def _pairs(self, width: int) -> Iterator[tuple[str, str]]:
        """What stands on the left of each line, as wide as the widest name, and what on the right."""
        room = _widest(name for name, _ in self._rows) + _GAP
        for name, text in self._rows:
            for at, line in enumerate(wrap(text, min(width, TEXT_MAX) - room)):
                yield _padded("" if at else name, room, right=False), line


def wrap(text: str, width: int) -> list[str]:
    """Lines of a text, folded at word borders, never between a number and its unit.

    A word that is longer than a line is folded after a comma or the like, and else where it must be.

    Parameters
    ----------
    text : str
        What to fold; its own line ends stay.
    width : int
        Longest line.

    Examples
    --------
    >>> wrap("81.1 ms of the drive's time", 10)
    ['81.1 ms of', 'the', "drive's", 'time']
    >>> wrap("zipf:write=0.7,accesses=0.95,space=0.2", 20)
    ['zipf:write=0.7,', 'accesses=0.95,', 'space=0.2']
    """
    width = max(width, 8)
    lines: list[str] = []
    for line in text.split("\n"):
        words = " ".join(_pieces(word, width) for word in _bound(line).split(" "))
        folded = textwrap.wrap(
            words, width, break_long_words=True, break_on_hyphens=False, drop_whitespace=True
        )
        lines.extend(part.replace(_GLUE, " ").rstrip() for part in folded or [""])
    return lines


_GLUE = "\N{NO-BREAK SPACE}"
# What follows a number belongs to it, and so does what stands after a sign.
_NUMBER = re.compile(r"(?<=\d) (?=[A-Za-zµ%])|(?<=±) (?=\d)| (?=± ?\d)")
_AFTER = re.compile(r"(?<=[,;:/&])(?=[^\d,;:/&])")


def _bound(text: str) -> str:
    """The text with numbers glued to their units."""
    return _NUMBER.sub(_GLUE, text)


def _pieces(word: str, width: int) -> str:
    """A word, in pieces that fit where it does not."""
    if cell_len(word) <= width:
        return word
    if _GLUE in word:
        return " ".join(_pieces(part, width) for part in word.split(_GLUE))
    lines = [""]
    for piece in _AFTER.split(word):
        if lines[-1] and cell_len(lines[-1]) + cell_len(piece) > width:
            lines.append("")
        lines[-1] += piece
    return " ".join(lines)


def _widest(texts: Iterable[str]) -> int:
    return max((cell_len(line) for text in texts for line in text.split("\n")), default=0)


def _side_by_side(cells: Sequence[list[str]], *, top: bool) -> Iterator[list[str]]:
    """Cells of several lines, line by line; `top` begins them in the same line, else they end in the same."""
    height = max(map(len, cells))

    def full(lines: list[str]) -> list[str]:
        empty = [""] * (height - len(lines))
        return lines + empty if top else empty + lines

    return (list(line) for line in zip(*map(full, cells), strict=True))


def _padded(text: str, width: int, *, right: bool) -> str:
    blanks = " " * (width - cell_len(text))
    return blanks + text if right else text + blanks
