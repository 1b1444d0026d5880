"""Erases and valid pages of all blocks over a run, as maps to step through."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from flashwright.report import text
from flashwright.report.charts import Chart, Columns, Section, cells_across
from flashwright.report.tables import Cell, Table
from flashwright.simulation.pages.view import Floats, RunView, geometry, is_timed
from flashwright.simulation.parts import Snapshots

# Characters of all maps together: a cell of a moment is one, of 64 levels.
CHARACTERS_MAX = 500_000
CELLS_MIN = 256
# As with still maps: nobody compares more.
RUNS_MAX = 24
MOMENTS_IN_TABLE = 12
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

_KINDS = (
    ("erases", "Erases over time", "erases", "Erases of blocks since the drive was new"),
    ("valid", "Valid pages over time", "valid pages", "Valid pages of blocks"),
)


def films(runs: Sequence[RunView], columns: Columns) -> list[Section]:
    """One section with two maps for each run with snapshots over time; none otherwise."""
    found = [(i, run.snapshots) for i, run in enumerate(runs) if run.snapshots is not None]
    if not found or len(found) > RUNS_MAX:
        return []
    budget = CHARACTERS_MAX // (2 * len(found))
    charts = []
    for key, title, unit, about in _KINDS:
        values = {i: _values(taken, key) for i, taken in found}
        scale = (
            math.floor(min(each.min() for each in values.values())),
            math.ceil(max(each.max() for each in values.values())),
        )
        charts += [
            _film(runs, i, taken, (key, title, unit, about), scale, budget, columns)
            for i, taken in found
        ]
    return [Section("film", "Blocks over time", charts)]


def _values(taken: Snapshots, key: str) -> npt.NDArray[np.float32]:
    return taken.erases if key == "erases" else taken.valid


def _film(
    runs: Sequence[RunView],
    i: int,
    taken: Snapshots,
    name: tuple[str, str, str, str],
    scale: tuple[int, int],
    budget: int,
    columns: Columns,
) -> Chart:
    key, title, unit, about = name
    run = runs[i]
    values = np.asarray(_values(taken, key), dtype=np.float64)
    channels, dies, planes, per_plane = geometry(run, len(run.erases_per_block))
    rows = channels * dies * planes
    moments, values, cells, joined = _fitted(values, rows, per_plane, taken.joined, budget)
    low, high = scale
    levels = np.rint((values - low) / max(1, high - low) * (len(ALPHABET) - 1)).astype(np.int64)
    letters = np.frombuffer(ALPHABET.encode(), dtype=np.uint8)
    view = {
        "name": "",
        "run": i,
        "unit": unit,
        "scale": scale,
        "channels": channels,
        "dies": dies,
        "planes": planes,
        "cells": cells,
        "across": cells_across(channels, dies * planes, cells),
        "joined": joined,
        "perPlane": per_plane,
        "exact": joined == 1 and high - low < len(ALPHABET),
        "alphabet": ALPHABET,
        "frames": [letters[frame].tobytes().decode() for frame in levels],
        "requests": columns.add(f"{i}.{key}.film.requests", taken.requests_end[moments], 9),
        "times": columns.add(f"{i}.{key}.film.times", taken.time_end_ns[moments], 9)
        if is_timed(run)
        else None,
        "values": f"{i}.{key}.film.frame",
    }
    each = f"the mean of {joined} neighbouring blocks" if joined > 1 else "a block"
    caption = (
        f"{about}, from the start of measuring to the end of the run; a cell is {each}. One scale for all moments. "
        "The slider, or the arrow keys on it, selects the moment for all maps of this section."
    )
    return Chart(
        f"film-{key}-{i}",
        title if len(runs) == 1 else f"{title}: {run.label}",
        caption,
        kind="film",
        views=[view],
        table=_table(taken, values, moments, is_timed(run)),
        group="film",
    )


def _fitted(
    values: Floats, rows: int, per_plane: int, taken_joined: int, budget: int
) -> tuple[npt.NDArray[np.int64], Floats, int, int]:
    """Moments and cells that fit the budget: cells are joined first, then moments left out."""
    count, cells = len(values), math.ceil(per_plane / taken_joined)
    together = 1
    while (
        count * rows * math.ceil(cells / together) > budget
        and rows * math.ceil(cells / together) > CELLS_MIN
    ):
        together += 1
    if together > 1:
        by_row = values.reshape(count, rows, cells)
        starts = np.arange(0, cells, together)
        weights = np.full(cells, float(taken_joined))
        weights[-1] = per_plane - taken_joined * (cells - 1)
        sums = np.add.reduceat(by_row * weights, starts, axis=2)
        values = (sums / np.add.reduceat(weights, starts)).reshape(count, -1)
        cells = len(starts)
    most = max(2, budget // max(1, rows * cells))
    moments = np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))
    return moments, values[moments], cells, taken_joined * together


def _table(taken: Snapshots, values: Floats, moments: npt.NDArray[np.int64], timed: bool) -> Table:
    """Some of the moments in figures."""
    chosen = np.unique(np.linspace(0, len(moments) - 1, MOMENTS_IN_TABLE).round().astype(int))
    rows = []
    for k in chosen:
        requests = int(taken.requests_end[moments[k]])
        nanos = float(taken.time_end_ns[moments[k]])
        cells = values[k]
        figures = (cells.min(), np.median(cells), cells.mean(), cells.max(), cells.std())
        rows.append(
            [
                Cell(text.count(requests), requests),
                *([Cell(text.time_ns(nanos), nanos)] if timed else []),
                *(Cell(text.significant(float(value)), float(value)) for value in figures),
            ]
        )
    header = [
        "Requests",
        *(["Time"] if timed else []),
        "Least",
        "Median",
        "Mean",
        "Largest",
        "Standard deviation",
    ]
    return Table(header, rows)
