"""Draws a view by Matplotlib: a figure as wide as a column of a paper, in words of 8 pt, or in a style of one's own."""

from __future__ import annotations

import functools
import math
import re
import textwrap
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from flashwright.report import text
from flashwright.report.charts import RAMP
from flashwright.report.paper.numbers import cells_of
from flashwright.report.paper.view import HUES, View, titled, unit_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 3.4, 2.2  # inches
KINDS = ("svg", "pdf", "png")
"""The formats of drawings, by the ends of their files."""
DPI_OF_PIXELS = 300  # of a drawing of pixels, as journals ask of figures in colour
DPI_WITHIN = 600  # of what lies as pixels within a vector drawing
# A line of the legend and a character of it, inches, and points of other words, all in words of 8 pt.
_LINE_OF_LEGEND, _CHARACTER, _SMALL = 0.15, 0.062, 7.0
_POINTS = 8.0
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica"],
    "font.serif": ["STIXGeneral", "Times New Roman", "Times", "DejaVu Serif"],
    "font.size": _POINTS,
    "axes.labelsize": "medium",
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "grid.color": "#e6e9ee",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "xtick.labelsize": "medium",
    "ytick.labelsize": "medium",
    "legend.fontsize": "medium",
    "legend.frameon": False,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.5,
    # Words stay words, and one chart is one file to the byte.
    "svg.fonttype": "none",
    "svg.hashsalt": "flashwright",
    # Fonts as a whole, which journals take and editors can change.
    "pdf.fonttype": 42,
}
_INK, _SOFT, _SHADE = "#1b2027", "#56606d", "#1a6b3c"
_MANY = 60  # points beyond which they are drawn small
_CELLS_AS_PATHS = 4096  # cells beyond which a map is an image within the drawing
_BARS_APART = 200
_NAME_MAX = 28  # of a name beside an axis
_LABELS_MAX = 50  # characters of all labels of a horizontal axis
_ENTRY_MAX = 48  # of a line of the legend
_TITLE_X_MAX, _TITLE_Y_MAX = 40, 32  # characters of a line


def draw(
    view: View, size: tuple[float, float] | None = None, look: Mapping[str, Any] | None = None
) -> Figure:
    """Draw a view.

    Parameters
    ----------
    view : View
        What is drawn.
    size : (float, float), optional
        Width and height in inches; by default the look's, else a column's width and the height that the chart needs.
    look : mapping, optional
        Settings of Matplotlib that take the place of ours.

    Returns
    -------
    matplotlib.figure.Figure
    """
    kinds: dict[str, Callable[[View, Figure], None]] = {
        "lines": _lines,
        "bars": _bars,
        "stack": _stack,
        "map": _map,
        "film": _map,
        "requests": _requests,
    }
    look = look or {}
    size = size or look.get("figure.figsize")
    width, _ = size or (WIDTH, HEIGHT)
    settings: Any = {**_STYLE, **look}
    with mpl.rc_context(settings):
        figure = Figure(figsize=(width, HEIGHT), layout="constrained")
        kinds[view.chart.kind](view, figure)
        if size is not None:
            figure.set_size_inches(*size)
            _fit_titles(figure)
    return figure


def place(figure: Figure, look: Mapping[str, Any] | None = None) -> None:
    """Find the places of all parts of a drawing, once for all files that it is written into.

    Parameters
    ----------
    figure : Figure
        What :func:`draw` made.
    look : dict, optional
        As :func:`draw` was given it.
    """
    settings: Any = {**_STYLE, **(look or {})}
    with mpl.rc_context(settings):
        figure.draw_without_rendering()
    figure.set_layout_engine("none")


def _fit_titles(figure: Figure) -> None:
    """Break the titles of vertical axes that are longer than their axes, which a given size makes short."""
    figure.draw_without_rendering()
    for axes in figure.axes:
        title = axes.yaxis.label
        room, needs = axes.get_window_extent().height, title.get_window_extent().height
        if title.get_text() and needs > room:
            lines = title.get_text().splitlines()
            longest = max(map(len, lines))
            width = max(1, int(longest * room / needs))
            title.set_text(textwrap.fill(" ".join(lines), width, break_long_words=False))


def save(
    figure: Figure,
    view: View,
    path: Path,
    kind: str,
    title: str,
    look: Mapping[str, Any] | None = None,
) -> None:
    """Write a drawing into a file, to the byte the same for the same figure.

    Parameters
    ----------
    figure : Figure
        What :func:`draw` made of the view.
    view : View
        What it shows.
    path : Path
        The file.
    kind : str
        One of :data:`KINDS`.
    title : str
        What the chart is of, for the metadata.
    look : mapping, optional
        As it was drawn with.
    """
    look = look or {}
    caption = re.sub(r"<[^>]+>", "", view.chart.caption)
    about = f"{title}. {caption}".strip()
    metadata: dict[str, dict[str, Any]] = {
        "svg": {
            "Title": view.chart.title,
            "Description": about,
            "Creator": "Flashwright",
            "Date": None,
        },
        "pdf": {
            "Title": view.chart.title,
            "Subject": about,
            "Creator": "Flashwright",
            "Producer": None,
            "CreationDate": None,
        },
        "png": {
            "Title": view.chart.title,
            "Description": about,
            "Software": "Flashwright",
        },
    }
    dpi = look.get("savefig.dpi", DPI_OF_PIXELS) if kind == "png" else DPI_WITHIN
    settings: Any = {**_STYLE, **look}
    with mpl.rc_context(settings):
        figure.savefig(path, format=kind, dpi=dpi, metadata=metadata[kind])


@functools.cache
def _hues() -> tuple[str, ...]:
    """The colours of series on white, as the page has them."""
    style = files("flashwright.report").joinpath("static/report.css").read_text(encoding="utf-8")
    return tuple(re.findall(r"--hue-\d: light-dark\((#\w{6})", style))


def _hue(place: int) -> str:
    """The colour of a series: of the style where it has colours, else of the page."""
    ours = mpl.rcParams["axes.prop_cycle"] == mpl.rcParamsDefault["axes.prop_cycle"]
    hues = _hues()[:HUES] if ours else mpl.rcParams["axes.prop_cycle"].by_key().get("color")
    hues = hues or _hues()[:HUES]
    return str(hues[place % len(hues)])


def _scale(size: str) -> float:
    """How much larger than ours the words of a setting are."""
    settings: Any = mpl.rcParams
    return FontProperties(size=settings[size]).get_size_in_points() / _POINTS


# Axes ---------------------------------------------------------------------------------------------


class _Axis:
    """One axis: its unit, what its numbers are divided by, its title and ticks."""

    def __init__(self, spec: dict[str, Any], values: list[float], *, log: bool) -> None:
        self.spec = spec
        self.log = log
        known = [v for v in values if math.isfinite(v) and (v > 0 or not log)] or [1.0]
        self.low, self.high = min(known), max(known)
        fixed = [spec[end] for end in ("min", "max") if end in spec]
        ends = [self.low, self.high, *fixed]
        unit, self.title = titled(spec, min(ends), max(ends), log=log)
        self.unit = unit or 1.0
        self.own = unit is None and spec["format"] in ("ns", "bytes", "share", "count")

    def __call__(self, values: Any) -> Any:
        """Values in the unit of the axis."""
        return np.asarray(values, dtype=np.float64) / self.unit

    def _shown(self, value: float, _: object = None) -> str:
        if self.spec["format"] == "index":
            return f"{value:,.0f}" if float(value).is_integer() else ""
        if not self.own:
            return text.significant(value)
        size, name = unit_of(self.spec["format"], abs(value))
        return f"{text.significant(value / size)} {name}".rstrip()

    def put(self, axes: Axes, which: str, *, tight: bool) -> None:
        """Set the ends, ticks and title of an axis of a drawing."""
        spec, on_x = self.spec, which == "x"
        axis = axes.xaxis if on_x else axes.yaxis
        wrapped = textwrap.fill(self.title, _TITLE_X_MAX if on_x else _TITLE_Y_MAX)
        (axes.set_xlabel if on_x else axes.set_ylabel)(wrapped)
        if self.log:
            (axes.set_xscale if on_x else axes.set_yscale)("log")
        axis.set_major_formatter(FuncFormatter(self._shown))
        if spec.get("ticks"):
            shown = dict(spec["ticks"])
            axis.set_major_locator(FixedLocator([float(at) for at in shown]))
            axis.set_major_formatter(FuncFormatter(_nearest(shown)))
            axis.set_minor_locator(NullLocator())
            if on_x:
                _slant_where_tight(axes, list(shown.values()))
        elif self.log:
            # A log axis of less than a decade has ticks between the powers.
            wide = self.high / self.low
            if spec["format"] == "bytes" and wide > 6:
                powers = math.log2(wide) / 6
                axis.set_major_locator(LogLocator(base=2.0 ** max(1, math.ceil(powers))))
            elif wide < 100:
                axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_minor_locator(NullLocator())
        ends = axes.set_xlim if on_x else axes.set_ylim
        low, high = self.low / self.unit, self.high / self.unit
        if self.log:
            ends(*((low, high) if tight and high > low else (low / 1.25, high * 1.25)))
            return
        air = (high - low or abs(high) or 1.0) * 0.06
        if spec.get("zero"):
            low, high = min(low, 0.0), max(high, 0.0)
            air = (high - low or 1.0) * 0.06
            low += 0.0 if low == 0 else -air
            high += air
        elif not tight or high == low:
            low, high = low - air, high + air
        ends(
            spec["min"] / self.unit if "min" in spec else low,
            spec["max"] / self.unit if "max" in spec else high,
        )


def _nearest(shown: dict[float, str]) -> Callable[[float, object], str]:
    def label(value: float, _: object = None) -> str:
        return next((s for at, s in shown.items() if math.isclose(at, value, rel_tol=1e-6)), "")

    return label


def _slant_where_tight(axes: Axes, labels: list[str]) -> None:
    """Slant the labels of a horizontal axis that do not fit side by side."""
    if sum(len(label) + 2 for label in labels) > _LABELS_MAX:
        axes.tick_params("x", rotation=35)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")
            label.set_rotation_mode("anchor")


def _legend(figure: Figure, entries: list[tuple[Any, str]]) -> None:
    """A legend above the axes, on as many lines as its words need."""
    if len(entries) < 2:
        return
    wrapped = [textwrap.fill(name, _ENTRY_MAX) for _, name in entries]
    longest = max(len(line) for name in wrapped for line in name.splitlines())
    width, height = figure.get_size_inches()
    scale = _scale("legend.fontsize")
    across = max(1, min(len(entries), int((width - 0.1) / (longest * _CHARACTER * scale + 0.42))))
    lines = math.ceil(sum(name.count("\n") + 1 for name in wrapped) / across)
    figure.set_size_inches(width, height + lines * _LINE_OF_LEGEND * scale)
    figure.legend(
        [handle for handle, _ in entries],
        wrapped,
        loc="outside upper left",
        ncols=across,
        handlelength=1.6,
        columnspacing=1.0,
        labelspacing=0.25,
        borderaxespad=0.1,
    )


def _cut(name: str) -> str:
    return name if len(name) <= _NAME_MAX else f"{name[: _NAME_MAX - 1]}…"


def _references(view: View, axes: Axes, x: _Axis, y: _Axis) -> None:
    """Shaded stretches and lines of reference, each with its label."""
    along_x, along_y = axes.get_xaxis_transform(), axes.get_yaxis_transform()
    small = _SMALL * _scale("font.size")
    for start, end, label in view.data.get("bands", ()):
        right = axes.get_xlim()[1] if end is None else x(end)
        axes.axvspan(x(start), right, color=_SHADE, alpha=0.1, linewidth=0)
        axes.text(x(start), 0.02, f" {label}", transform=along_x, va="bottom", fontsize=small)
    style: dict[str, Any] = {"color": _SOFT, "linewidth": 0.8, "linestyle": (0, (4, 2.5))}
    halo = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.8}
    for at, label in view.data.get("marks", ()):
        axes.axvline(x(at), **style)
        axes.text(
            x(at), 0.98, label, transform=along_x, rotation=90, va="top", ha="right",
            fontsize=small, bbox=halo,
        )  # fmt: skip
    for at, label in view.data.get("levels", ()):
        if y.log and at <= 0:
            continue
        axes.axhline(y(at), **style)
        axes.text(
            0.99,
            y(at),
            label,
            transform=along_y,
            va="bottom",
            ha="right",
            fontsize=small,
            bbox=halo,
        )


# Kinds --------------------------------------------------------------------------------------------


def _reach(view: View, line: dict[str, Any], axis: str = "y") -> list[float]:
    parts = ("x",) if axis == "x" else ("y", "low", "high")
    return [float(v) for part in parts if line.get(part) for v in view.numbers(line[part])]


def _lines(view: View, figure: Figure) -> None:
    axes = figure.add_subplot()
    data, series = view.data, view.data["series"]
    marks = [float(at) for at, _ in data.get("marks", ())]
    levels = [float(at) for at, _ in data.get("levels", ())]
    x_log, y_log = (bool(data[axis].get("log")) for axis in "xy")
    x = _Axis(data["x"], [*marks, *(v for s in series for v in _reach(view, s, "x"))], log=x_log)
    y = _Axis(data["y"], [*levels, *(v for s in series for v in _reach(view, s))], log=y_log)
    entries: dict[str, Any] = {}
    for line in series:
        xs, ys = view.numbers(line["x"]), view.numbers(line["y"])
        if y.log:
            ys = np.where(ys > 0, ys, np.nan)
        colour, look = _hue(view.colour_of(line)), view.look_of(line)
        style: Any = {"dashed": (0, (5, 3)), "again": (0, (8, 2)), "level": ":"}.get(look, "-")
        marker, face, size = "", colour, 3.5
        if line.get("published"):
            style, marker, face, size = "", "D", "white", 4.0
        elif line.get("points") and not line.get("level"):
            marker = "o"
            size = 7.0 if line.get("big") else 2.0 if len(xs) > _MANY else 3.5
            style = "" if line.get("scattered") else style
        (drawn,) = axes.plot(
            x(xs), y(ys), color=colour, linestyle=style or "none", marker=marker, markersize=size,
            markerfacecolor=face, drawstyle="steps-post" if line.get("step") else "default",
            clip_on=not marker, rasterized=bool(line.get("scattered")) and len(xs) > 1500,
        )  # fmt: skip
        if line.get("fill") and not y.log:
            axes.fill_between(x(xs), y(ys), step="post", color=colour, alpha=0.16, linewidth=0)
        if line.get("low"):
            _intervals(axes, x(xs), y, view, line, colour)
        entries.setdefault(view.name_of(line), drawn)
    x.put(axes, "x", tight=not any(line.get("points") for line in series))
    y.put(axes, "y", tight=False)
    _references(view, axes, x, y)
    _legend(figure, [(handle, name) for name, handle in entries.items()])


def _intervals(
    axes: Axes, at: Any, y: _Axis, view: View, line: dict[str, Any], colour: str
) -> None:
    middle, low, high = (y(view.numbers(line[part])) for part in ("y", "low", "high"))
    if y.log:
        # One that reaches down to 0 or below ends at the axis.
        low = np.where(low > 0, low, np.nextafter(0, 1))
        known = np.isfinite(middle) & (middle > 0)
    else:
        known = np.isfinite(middle)
    known &= np.isfinite(low) & np.isfinite(high)
    reach = np.maximum(np.vstack([middle - low, high - middle]), 0)[:, known]
    axes.errorbar(
        at[known], middle[known], yerr=reach, fmt="none", ecolor=colour, elinewidth=0.8, capsize=1.8
    )


def _bars(view: View, figure: Figure) -> None:
    axes = figure.add_subplot()
    data = view.data
    log = bool(data["y"].get("log"))
    levels = [float(at) for at, _ in data.get("levels", ())]
    values = [v for line in data["series"] for v in _reach(view, line)]
    y = _Axis(data["y"], levels + values, log=log)
    names = data["x"].get("names")
    most = max(len(view.numbers(line["y"])) for line in data["series"])
    x = _Axis(data["x"], [0.0, float(max(most, len(names or ())) - 1)], log=False)
    drawn = [line for line in data["series"] if not line.get("published")]
    width = 0.8 / max(1, len(drawn))
    entries: list[tuple[Any, str]] = []
    for nth, line in enumerate(data["series"]):
        ys = view.numbers(line["y"])
        at = np.arange(len(ys), dtype=np.float64)
        colour = _hue(view.colour_of(line))
        if line.get("published"):
            of = [k for k, other in enumerate(drawn) if other.get("part") == line.get("of")]
            at += (of[0] + 0.5) * width - 0.4 if of else 0.0
            (handle,) = axes.plot(
                at, y(ys), linestyle="none", marker="D", markersize=4, color=_INK,
                markerfacecolor="white", zorder=3,
            )  # fmt: skip
            entries.append((handle, view.name_of(line)))
            continue
        at += (nth + 0.5) * width - 0.4
        pale = 0.55 if view.colour_of(line) >= HUES else 1.0
        bar = axes.bar(at, np.nan_to_num(y(ys)), width, color=colour, alpha=pale)
        if line.get("low"):
            _intervals(axes, at, y, view, line, _INK)
        entries.append((bar, view.name_of(line)))
    x.put(axes, "x", tight=False)
    if names:
        axes.set_xticks(range(len(names)), [_cut(name) for name in names])
        _slant_where_tight(axes, [_cut(name) for name in names])
    axes.set_xlim(-0.5, x.high + 0.5)
    axes.grid(visible=False, axis="x")
    y.put(axes, "y", tight=False)
    _references(view, axes, x, y)
    _legend(figure, entries)


def _stack(view: View, figure: Figure) -> None:
    data = view.data
    rows = data["rows"]
    figure.set_figheight(0.75 + 0.24 * len(rows))
    axes = figure.add_subplot()
    ends = np.zeros(len(rows))
    entries = []
    for k, part in enumerate(data["parts"]):
        values = np.array([row["values"][k] or 0 for row in rows], dtype=np.float64)
        colour = _hue(part["colour"])
        look: dict[str, Any] = {"color": colour, "edgecolor": "white", "linewidth": 0.4}
        bar = axes.barh(range(len(rows)), values, 0.7, ends, **look)
        entries.append((bar, part["name"]))
        ends += values
    x = _Axis(data["x"], [0.0, *ends.tolist()], log=False)
    x.put(axes, "x", tight=False)
    several = len(view.names) > 1
    labels = [_cut(view.names[row["run"]]) if several else "total" for row in rows]
    axes.set_yticks(range(len(rows)), labels)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    _legend(figure, entries)


def _map(view: View, figure: Figure) -> None:
    data = view.data
    cells = cells_of(view)
    across, down = data["across"], math.ceil(data["cells"] / data["across"])
    between = max(1, round(max(across, down) * 0.06))
    within = max(1, between // 3) if data["planes"] > 1 else 0
    die_height = data["planes"] * down + (data["planes"] - 1) * within
    height = data["dies"] * (die_height + between) - between
    width = data["channels"] * (across + between) - between
    grid = np.full((height, width), np.nan)
    for row, values in enumerate(cells):
        plane, die = row % data["planes"], row // data["planes"] % data["dies"]
        left = row // data["planes"] // data["dies"] * (across + between)
        top = die * (die_height + between) + plane * (down + within)
        padded = np.full(down * across, np.nan)
        padded[: len(values)] = [math.nan if value is None else value for value in values]
        grid[top : top + down, left : left + across] = padded.reshape(down, across)
    room = figure.get_figwidth() - 0.5
    figure.set_figheight(min(4.5, max(0.6, room * height / width)) + 0.75)
    axes = figure.add_subplot()
    low, high = data["scale"]
    mesh = axes.pcolormesh(
        grid, cmap=LinearSegmentedColormap.from_list("blocks", list(RAMP)), vmin=low,
        vmax=max(high, low + 1e-9), rasterized=grid.size > _CELLS_AS_PATHS,
    )  # fmt: skip
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    every = math.ceil(data["channels"] / 12)
    shown = range(0, data["channels"], every)
    axes.set_xticks([k * (across + between) + across / 2 for k in shown], [str(k) for k in shown])
    every = math.ceil(data["dies"] / 12)
    shown = range(0, data["dies"], every)
    axes.set_yticks(
        [k * (die_height + between) + die_height / 2 for k in shown], [str(k) for k in shown]
    )
    axes.set_xlabel("channel")
    axes.set_ylabel("die")
    bar = figure.colorbar(mesh, ax=axes, orientation="horizontal", aspect=40, pad=0.03)
    label = str(data["unit"])
    if "frames" in data:
        requests = text.count(view.columns.numbers[data["requests"]][-1] or 0)
        label += f" after {requests} requests"
    bar.set_label(label)
    bar.outline.set_visible(False)


def _requests(view: View, figure: Figure) -> None:
    axes = figure.add_subplot()
    data = view.data
    times = [view.numbers(name) for name in data["times"]]
    erases = view.numbers(data["erases"])
    at = data["first"] + np.arange(len(erases))
    total = np.sum(times, axis=0)
    # Panels of a page have one scale, unless this view is the one where each has its own.
    of = [data] if data.get("own") else [data, *view.beside]
    tallest = [np.sum([view.numbers(name) for name in one["times"]], axis=0).max() for one in of]
    y = _Axis(data["y"], [0.0, *map(float, tallest)], log=False)
    x = _Axis(data["x"], [float(at[0]) - 0.5, float(at[-1]) + 0.5], log=False)
    ends = np.zeros(len(erases))
    entries: list[tuple[Any, str]] = []
    for part, values in zip(data["parts"], times, strict=True):
        colour = _hue(part["colour"])
        handle: Any
        if len(at) <= _BARS_APART:
            handle = axes.bar(at, y(values), 0.8, y(ends), color=colour)
        else:
            handle = axes.fill_between(
                at, y(ends), y(ends + values), step="mid", color=colour, linewidth=0
            )
        ends = ends + values
        entries.append((handle, part["name"]))
    if (erases > 0).any():
        axes.plot(
            at[erases > 0], y(total[erases > 0]) + 0.02 * y(total.max()), linestyle="none",
            marker="v", markersize=3, color=_INK, clip_on=False,
        )  # fmt: skip
        mark = Line2D([], [], linestyle="none", marker="v", markersize=3, color=_INK)
        entries.append((mark, "erases"))
    x.put(axes, "x", tight=True)
    y.put(axes, "y", tight=False)
    axes.grid(visible=False, axis="x")
    _legend(figure, entries)
