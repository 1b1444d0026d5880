"""The numbers of a view as rows: what the page's own button saves (``static/plots/save.js``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flashwright.report.paper.view import View

_UNITS = {"ns": "ns", "bytes": "bytes", "share": "0-1"}

Row = list[Any]


def rows(view: View) -> Iterator[Row]:
    """A row of heads with the units, which are the same whatever the axis shows; then the numbers.

    Parameters
    ----------
    view : View
        What is drawn.

    Yields
    ------
    list
        A row; None for what is not known.
    """
    kinds = {"stack": _parts, "map": _blocks, "film": _blocks, "requests": _requests}
    return kinds.get(view.chart.kind, _points)(view)


def head_of(axis: dict[str, Any], label: str | None = None) -> str:
    """What a column holds, with the unit of its numbers.

    Examples
    --------
    >>> head_of({"label": "response time", "format": "ns"}), head_of({"label": "requests", "format": "count"})
    ('response time [ns]', 'requests')
    """
    name, unit = label or str(axis["label"]), _UNITS.get(axis["format"])
    per = f"/{axis['per']}" if axis.get("per") else ""
    return f"{name} [{unit}{per}]" if unit and not name.endswith("]") else name


def _points(view: View) -> Iterator[Row]:
    x_axis, y_axis, series = view.data["x"], view.data["y"], view.data["series"]
    ends = any(line.get("low") for line in series)
    beside = [head_of(y_axis, "low"), head_of(y_axis, "high")] if ends else []
    yield ["series", head_of(x_axis), head_of(y_axis), *beside]
    kept = view.columns.numbers
    # Places that stand for no number have their names, as those of categories have.
    words = dict(x_axis.get("ticks") or ()) if x_axis["format"] == "index" else {}
    for line in series:
        names = x_axis.get("names") or range(len(kept[line["y"]]))
        xs = kept[line["x"]] if "x" in line else names
        columns = [kept[line[part]] for part in ("y", "low", "high") if line.get(part)]
        blank = [None, None] if ends and not line.get("low") else []
        for x, *values in zip(xs, *columns, strict=False):
            yield [view.name_of(line), words.get(x, x), *values, *blank]
    blank = [None, None] if ends else []
    for at, label in view.data.get("marks", ()):
        yield [f"reference: {label}", at, None, *blank]
    for at, label in view.data.get("levels", ()):
        yield [f"reference: {label}", None, at, *blank]


def _parts(view: View) -> Iterator[Row]:
    yield ["run", "part", head_of(view.data["x"])]
    for row in view.data["rows"]:
        for part, value in zip(view.data["parts"], row["values"], strict=True):
            yield [view.names[row["run"]], part["name"], value]


def _blocks(view: View) -> Iterator[Row]:
    data = view.data
    moment: dict[str, Any] = {}
    if "frames" in data:
        moment["requests completed"] = view.columns.numbers[data["requests"]][-1]
        if data["times"]:
            moment["drive's time [ns]"] = view.columns.numbers[data["times"]][-1]
    yield [*moment, "channel", "die", "plane", "first block", "last block", data["unit"]]
    for row, cells in enumerate(cells_of(view)):
        plane, die = row % data["planes"], row // data["planes"] % data["dies"]
        channel = row // data["planes"] // data["dies"]
        for cell, value in enumerate(cells):
            first = cell * data["joined"]
            last = min(first + data["joined"], data["perPlane"]) - 1
            shown = None if value is None else float(f"{value:.4g}")
            yield [*moment.values(), channel, die, plane, first, last, shown]


def cells_of(view: View) -> list[list[float | None]]:
    """The cells of a map, a list for each plane; of a film those of its last moment."""
    data = view.data
    if "frames" not in data:
        values = view.columns.numbers[data["values"]]
    else:
        low, high = data["scale"]
        step = (high - low) / (len(data["alphabet"]) - 1)
        level = {letter: low + k * step for k, letter in enumerate(data["alphabet"])}
        found = (level[letter] for letter in data["frames"][-1])
        values = [round(value) if data["exact"] else value for value in found]
    width = data["cells"]
    return [list(values[start : start + width]) for start in range(0, len(values), width)]


def _requests(view: View) -> Iterator[Row]:
    data, kept = view.data, view.columns.numbers
    parts = [f"{part['name']} [ns]" for part in data["parts"]]
    counts = data["counts"]
    yield ["request", "kind", "pages", *parts, *(each["name"] for each in counts)]
    names = [data["kinds"], data["pages"], *data["times"], *(each["values"] for each in counts)]
    for i, (kind, *values) in enumerate(zip(*(kept[name] for name in names), strict=True)):
        yield [data["first"] + i, data["kindNames"][int(kind or 0)], *values]
