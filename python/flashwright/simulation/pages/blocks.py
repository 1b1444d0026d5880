"""Erases and valid pages of blocks: how they spread, and where."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flashwright.report import text
from flashwright.report.charts import Chart, Columns, axis, cells_across
from flashwright.report.tables import Cell, Table
from flashwright.simulation.pages.keyfigures import settled_word, unsettled
from flashwright.simulation.pages.view import RunView, dig, geometry

__all__ = ["block_charts", "not_drawn", "not_settled"]

# A budget for the whole file, shared among its runs: a report is to stay far below 2 MB.
MAP_CELLS_MAX = 64 * 1024
# Of more runs there are no maps, two panels each: nobody compares fifty of them, and they are most of the file.
RUNS_WITH_MAPS_MAX = 24
BINS = 60

DIES_IN_TABLE_MAX = 64


def not_settled(runs: Sequence[RunView]) -> tuple[str, ...]:
    """What is to be said of runs whose write amplification had not settled, or was measured too briefly."""
    lines = []
    for run in runs:
        if unsettled(run):
            word = settled_word(run)
            said = f"{word[0].capitalize() if word else ''}: {dig(run.json, 'settled.why') or ''}"
            lines.append(f"{run.label}: {said}" if len(runs) > 1 else said)
    return tuple(lines)


def not_drawn(runs: Sequence[RunView], drawn: set[int]) -> tuple[str, ...]:
    """The runs that a chart leaves out, by their labels."""
    return tuple(run.label for i, run in enumerate(runs) if i not in drawn)


_NO_BLOCKS = "There is no data on single blocks."


def block_charts(
    runs: Sequence[RunView], columns: Columns, key: str, title: str, unit: str
) -> list[Chart]:
    """How a count spreads over the blocks of each run, and where on the flash."""
    attribute = "erases_per_block" if key == "erases" else "valid_per_block"
    found = [np.asarray(getattr(run, attribute)) for run in runs]
    known = [values for values in found if len(values)]
    if not known:
        return [Chart(key, title, "", missing=_NO_BLOCKS)]
    scale = (
        int(min(values.min() for values in known)),
        int(max(values.max() for values in known)),
    )
    charts = [
        _block_map(run, values, columns, scale, name=(key, i, unit), runs=len(runs))
        for i, (run, values) in enumerate(zip(runs, found, strict=True))
        if len(values) and len(runs) <= RUNS_WITH_MAPS_MAX
    ]
    return [_block_histogram(runs, found, columns, scale, (key, title, unit)), *charts]


def _block_histogram(
    runs: Sequence[RunView],
    found: Sequence[npt.NDArray[Any]],
    columns: Columns,
    scale: tuple[int, int],
    name: tuple[str, str, str],
) -> Chart:
    key, title, unit = name
    low, high = scale
    width = max(1, math.ceil((high - low + 1) / BINS))
    bins = (high - low) // width + 1
    edges = low - 0.5 + width * np.arange(bins + 1)
    # A step starts and ends on the base line.
    x = columns.add(f"{key}.edges", np.concatenate((edges[:1], edges)), 9)
    lines = []
    rows = []
    drawn = set()
    for i, values in enumerate(found):
        if not len(values):
            continue
        drawn.add(i)
        counts = np.bincount((values.astype(np.int64) - low) // width, minlength=bins)
        shares = np.concatenate(([0.0], counts / len(values), [0.0]))
        y = columns.add(f"{i}.{key}.histogram", shares)
        lines.append({"run": i, "part": None, "x": x, "y": y, "step": True, "fill": True})
        figures = (values.min(), np.median(values), values.mean(), values.max(), values.std())
        shown = [Cell(text.count(float(value)), float(value)) for value in figures]
        label = runs[i].label
        rows.append([Cell(label, label), Cell(text.count(len(values)), len(values)), *shown])
    view = {
        "name": "",
        "x": axis(f"{unit} of a block", "index", bin=width),
        "y": axis("share of the blocks", "share", zero=True),
        "series": lines,
    }
    header = ["Run", "Blocks", "Least", "Median", "Mean", "Largest", "Standard deviation"]
    maps = "" if len(runs) <= RUNS_WITH_MAPS_MAX else " Maps are omitted for this many runs."
    wide = f" A bar is {text.count(width)} wide." if width > 1 else ""
    when = "so far" if key == "erases" else "at the end of the run"
    return Chart(
        f"{key}-histogram",
        f"{title} of blocks",
        f"Share of the blocks by their {unit} {when}.{wide}{maps}",
        views=[view],
        table=Table(header, rows),
        left_out=not_drawn(runs, drawn),
    )


def _block_map(
    run: RunView,
    values: npt.NDArray[Any],
    columns: Columns,
    scale: tuple[int, int],
    *,
    name: tuple[str, int, str],
    runs: int,
) -> Chart:
    key, i, unit = name
    channels, dies, planes, per_plane = geometry(run, len(values))
    budget = max(1024, MAP_CELLS_MAX // (2 * runs))
    joined = max(1, math.ceil(len(values) / budget))
    cells = math.ceil(per_plane / joined)
    padded = np.full((channels * dies * planes, cells * joined), np.nan)
    padded[:, :per_plane] = values.reshape(-1, per_plane)
    means = np.nanmean(padded.reshape(-1, cells, joined), axis=2) if joined > 1 else padded
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
        "values": columns.add(f"{i}.{key}.map", means.ravel(), 4),
    }
    each = (
        f"Each cell is the mean of {joined} neighbouring blocks"
        if joined > 1
        else "One cell per block"
    )
    parts = "planes of a die on top of each other, " if planes > 1 else ""
    caption = (
        f"{each}: channels from left to right, dies from top to bottom, {parts}blocks row by row."
    )
    heading = f"Map of {unit}" if runs == 1 else f"Map of {unit}: {run.label}"
    table = _by_die(values.reshape(channels * dies, -1), dies)
    return Chart(f"{key}-map-{i}", heading, caption, kind="map", views=[view], table=table)


def _by_die(values: npt.NDArray[Any], dies: int) -> Table | None:
    """The blocks of each die in figures; `values` has a row a die. None for very many dies."""
    if len(values) > DIES_IN_TABLE_MAX:
        return None
    rows = []
    for k, blocks in enumerate(values):
        name = f"channel {k // dies}, die {k % dies}"
        figures = (blocks.min(), np.median(blocks), blocks.mean(), blocks.max())
        shown = [Cell(text.count(float(value)), float(value)) for value in figures]
        rows.append([Cell(name, name), *shown])
    return Table(["Die", "Least", "Median", "Mean", "Largest"], rows)
