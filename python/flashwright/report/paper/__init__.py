"""The charts of a report as files for a paper: vector drawings and their numbers, without a browser.

`write_figures` writes ``NN-name.svg`` and ``NN-name.csv`` for each view of each chart, from the same `Chart` objects as
the page: `drawing` draws what ``static/plots`` draws there, `numbers` gives the rows that the page saves.
"""

from __future__ import annotations

import csv
import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

from flashwright.errors import MissingPackageError, OutputError
from flashwright.report.charts import Chart, Columns, file_stems, without_common_keys
from flashwright.report.paper.numbers import rows
from flashwright.report.paper.view import View
from flashwright.support.files import write_beside

__all__ = ["check_figures", "write_figures"]


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
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingPackageError(
            "figures: Matplotlib is not installed",
            "pip install flashwright[plots]",
            parameters=["figures"],
        )
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: is a file; expected a folder", "give the name of a folder")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise OutputError(f"{folder}: the folder can't be created: {why}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{folder}: permission denied")


def write_figures(
    folder: Path, charts: Sequence[Chart], columns: Columns, labels: Sequence[str], title: str
) -> list[Path]:
    """Write each view of each chart as a drawing (SVG) and as its numbers (CSV).

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

    Returns
    -------
    list of Path
        The files, in order.

    Raises
    ------
    MissingPackageError
        If Matplotlib is not installed.
    OutputError
        If a file can't be written.
    """
    check_figures(folder)
    from flashwright.report.paper.drawing import draw

    names = without_common_keys(labels)
    stems = file_stems(charts)
    written = []
    for chart in charts:
        for stem, data in zip(stems.get(chart.key, ()), chart.views, strict=True):
            group = [other for other in charts if chart.group and other.group == chart.group]
            beside = [
                each for other in group for each in other.views if each.get("name") == data["name"]
            ]
            view = View(chart, data, columns, names, beside)
            drawing, numbers = folder / f"{stem}.svg", folder / f"{stem}.csv"
            with write_beside(drawing) as part:
                draw(view, part, title)
            with (
                write_beside(numbers) as part,
                part.open("w", encoding="utf-8", newline="") as file,
            ):
                csv.writer(file, lineterminator="\n").writerows(rows(view))
            written += [drawing, numbers]
    return written
