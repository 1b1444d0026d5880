"""The charts of a report as files for a paper: drawings and their numbers, without a browser.

`write_figures` writes ``NN-name.svg``, ``.pdf``, ``.png`` and ``.csv`` for each view of each chart, from the same
`Chart` objects as the page: `drawing` draws what ``static/plots`` draws there, `numbers` gives the rows that it saves.
"""

from __future__ import annotations

import csv
import importlib.util
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flashwright.errors import ArgumentError, MissingPackageError, MissingResultError
from flashwright.report.charts import Chart, Columns, file_stems, without_common_keys
from flashwright.report.paper.looks import look_of
from flashwright.report.paper.numbers import rows
from flashwright.report.paper.view import View
from flashwright.support.files import check_folder, write_beside

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["check_figures", "check_matplotlib", "plot_figure", "size_of", "write_figures"]

_INCHES = {"mm": 1 / 25.4, "cm": 1 / 2.54, "in": 1.0, "pt": 1 / 72}
_LEAST, _MOST = 0.5, 40.0  # inches: from a stamp to a poster


def size_of(text: str) -> tuple[float, float]:
    """Width and height as people write them, in inches.

    Parameters
    ----------
    text : str
        Two lengths with their units: mm, cm, in or pt.

    Raises
    ------
    ArgumentError
        If it is something else, or no size of a figure.

    Examples
    --------
    >>> [round(length, 2) for length in size_of("84mm,60mm")]
    [3.31, 2.36]
    """
    found = [re.fullmatch(r"([\d.]+) ?(mm|cm|in|pt)", part.strip()) for part in text.split(",")]
    try:
        width, height = (float(each[1]) * _INCHES[each[2]] for each in found if each)
    except ValueError:
        width = height = 0.0
    if len(found) != 2 or not all(_LEAST <= length <= _MOST for length in (width, height)):
        raise ArgumentError(
            f"figures-size: found {text!r}, expected a width and a height, {_LEAST} to {_MOST:.0f} in",
            "such as 84mm,60mm; units are mm, cm, in and pt",
        )
    return width, height


def check_matplotlib() -> None:
    """Find out whether figures can be drawn.

    Raises
    ------
    MissingPackageError
        If Matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingPackageError(
            "figures: Matplotlib is not installed",
            "pip install flashwright[plots]",
            parameters=["figures"],
        )


def check_figures(folder: Path) -> None:
    """Find out before a long run whether its figures can be written.

    Parameters
    ----------
    folder : Path
        Where they are to go. It is made if it is not there; its parent must be.

    Raises
    ------
    MissingPackageError
        If Matplotlib is not installed.
    OutputError
        If the folder can't be created or written to.
    """
    check_matplotlib()
    check_folder(folder)


def _views(
    charts: Sequence[Chart], columns: Columns, labels: Sequence[str]
) -> Iterator[tuple[str, View]]:
    """Each view of each chart, by the stem of its files."""
    names = without_common_keys(labels)
    stems = file_stems(charts)
    for chart in charts:
        for stem, data in zip(stems.get(chart.key, ()), chart.views, strict=True):
            group = [other for other in charts if chart.group and other.group == chart.group]
            beside = [
                each for other in group for each in other.views if each.get("name") == data["name"]
            ]
            yield stem, View(chart, data, columns, names, beside)


def plot_figure(
    which: str | None,
    charts: Sequence[Chart],
    columns: Columns,
    labels: Sequence[str],
    size: str | None = None,
    style: str | Sequence[str] | None = None,
) -> Figure:
    """Draw one view as a figure of Matplotlib.

    Parameters
    ----------
    which : str or None
        The name of its files without the number, such as ``"write-amplification"``; None for the first.
    charts, columns, labels : sequence of Chart, Columns, sequence of str
        As :func:`write_figures` takes them.
    size : str, optional
        Width and height, as :func:`size_of` reads them.
    style : str or sequence of str, optional
        Fonts and styles, as :func:`flashwright.report.paper.looks.look_of` takes them.

    Raises
    ------
    MissingPackageError
        If Matplotlib is not installed.
    MissingResultError
        If there is no such chart.
    """
    check_matplotlib()
    from flashwright.report.paper.drawing import draw

    known = {stem.partition("-")[2]: view for stem, view in _views(charts, columns, labels)}
    name = next(iter(known), "") if which is None else which
    if name not in known:
        raise MissingResultError(f"plot: found {which!r}, expected one of {', '.join(known)}")
    return draw(known[name], None if size is None else size_of(size), look_of(style))


def write_figures(
    folder: Path,
    charts: Sequence[Chart],
    columns: Columns,
    labels: Sequence[str],
    title: str,
    size: str | None = None,
    style: str | Sequence[str] | None = None,
) -> list[Path]:
    """Write each view of each chart as drawings (SVG, PDF, PNG) and as its numbers (CSV).

    Parameters
    ----------
    folder : Path
        Where they go; it is made if it is not there. Files of the same names are replaced, others stay as they are.
    charts : sequence of Chart
        In the order of the page, which numbers them. Charts without data have no files.
    columns : Columns
        The numbers that they draw.
    labels : sequence of str
        The names of the runs.
    title : str
        What all are of; it stands in the metadata of each drawing.
    size : str, optional
        Width and height, as :func:`size_of` reads them; by default as wide as a column, and as high as each needs.
    style : str or sequence of str, optional
        Fonts and styles, as :func:`flashwright.report.paper.looks.look_of` takes them.

    Returns
    -------
    list of Path
        The files, in order.

    Raises
    ------
    MissingPackageError
        If Matplotlib is not installed.
    ArgumentError
        If size or style is none.
    OutputError
        If a file can't be written.
    """
    check_figures(folder)
    inches, look = None if size is None else size_of(size), look_of(style)
    from flashwright.report.paper.drawing import KINDS, draw, place, save

    written = []
    for stem, view in _views(charts, columns, labels):
        figure = draw(view, inches, look)
        place(figure, look)
        for kind in KINDS:
            drawing = folder / f"{stem}.{kind}"
            with write_beside(drawing) as part:
                save(figure, view, part, kind, title, look)
            written.append(drawing)
        numbers = folder / f"{stem}.csv"
        with (
            write_beside(numbers) as part,
            part.open("w", encoding="utf-8", newline="") as file,
        ):
            csv.writer(file, lineterminator="\n").writerows(rows(view))
        written.append(numbers)
    return written
