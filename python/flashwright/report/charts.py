"""A chart as data: what ``static/plots/*.js`` draws.

A chart has one or more *views* that the reader switches between. A view names its axes and its
series; series name columns of numbers, which are kept once in a `Columns` pool however many charts
draw them::

    chart ─► views ─► series ─► columns
      kind     axes     run, part  numbers, null for a gap

Kinds: ``lines`` (also histograms, as steps, and points), ``bars`` (a value a die or a category, series
side by side), ``stack`` (shares of a whole), ``map`` (a cell a block), ``film`` (maps of several
moments) and ``requests`` (a bar a request). A chart without data says why instead.

`series` makes the series of ``lines`` and ``bars``, with intervals and published values where there
are any; `axis` and `categories` make their axes. A view may also have reference lines, pairs of a
place and a label: ``marks`` stand upright at a value of the horizontal axis, ``levels`` lie at a value
of the vertical one::

    view = {
        "name": "",
        "x": axis("utilization", "share"),
        "y": axis("write amplification", "number", zero=True),
        "series": [
            series(columns, "wa", means, x=shares, name="ours", low=lows, high=highs, look="points"),
            series(columns, "wa.paper", printed, x=at, name="paper", look="published"),
        ],
        "levels": [[1, "no copies"]],
    }

``bands`` are stretches of the horizontal axis that are shaded: triples of a start, an end (None: to the end of the
axis) and a label.

The page draws charts by script (``static/plots``), `paper` draws the same ones by Matplotlib for files. `UNITS`, `RAMP`
and the names here are read by both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from flashwright.report.tables import Badge, Table

UNITS: dict[str, list[tuple[float, str]]] = {
    "ns": [(3.6e12, "h"), (1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")],
    "count": [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1, "")],
    "bytes": [(2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B")],
    "share": [(0.01, "%")],
    "number": [(1, "")],
    "index": [(1, "")],
}
"""The units that the numbers of an axis are shown in, the largest first, by how they read."""

# Dark to light through blue, green and yellow, so that it reads in grey and for the colour-blind alike.
RAMP = ("#2d1160", "#3b3f8f", "#31688e", "#26838f", "#1f9d8a", "#55b96a", "#9ed33f", "#f2e51d")

_STEM_MAX = 60

NO_TIME = "No time was kept (<code>timing.model = none</code>)"


@dataclass(frozen=True)
class Chart:
    """A chart, or the reason why there is none.

    Attributes
    ----------
    key
        Its name in the page, which no other chart may have.
    title
        Its heading.
    caption, missing
        What stands below it, or in its place. HTML of our own: nothing of a run may stand in them unescaped.
    kind, views
        What is drawn; see above.
    table
        The same in figures.
    group
        Charts of one group share their view and the zoom of their horizontal axis.
    left_out
        Runs that have no data for it.
    notes
        Paragraphs below the caption, as plain text.
    badge
        A remark beside the heading, such as a verdict.
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
    notes: tuple[str, ...] = ()
    badge: Badge | None = None


@dataclass(frozen=True)
class Section:
    """Charts that belong together.

    Attributes
    ----------
    key
        Its name in the page, which no other section may have.
    title
        Its heading.
    charts
        In the order of the page. They are drawn as they come into sight, then the others whenever there is time, so
        that a page of hundreds opens at once; on paper are all.
    stacked
        Below each other, as wide as the page, instead of side by side.
    small
        Low and narrow, three or more side by side: for pages of very many.
    about
        Paragraphs below the heading, as plain text.
    """

    key: str
    title: str
    charts: Sequence[Chart]
    stacked: bool = False
    small: bool = False
    about: tuple[str, ...] = ()


@dataclass
class Columns:
    """The numbers behind all charts, by name; five to seven significant digits suffice a plot."""

    numbers: dict[str, list[float | int | None]] = field(default_factory=dict)

    def add(self, name: str, values: Iterable[float], digits: int = 5) -> str:
        """Keeps `values` under `name`; returns the name."""
        self.numbers[name] = [short(value, digits) for value in values]
        return name


def short(value: float, digits: int) -> float | int | None:
    """A number for a plot, with this many significant digits; None for what is not finite."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() else short


Look = Literal["line", "dotted line", "points", "step", "level", "published"]


def series(
    columns: Columns,
    key: str,
    y: Iterable[float],
    *,
    name: str,
    x: Iterable[float] | None = None,
    colour: int = 0,
    look: Look = "line",
    low: Iterable[float] | None = None,
    high: Iterable[float] | None = None,
    of: str | None = None,
) -> dict[str, Any]:
    """A series with a colour and a name of its own, for a view of ``lines`` or ``bars``.

    Parameters
    ----------
    columns
        Where its numbers are kept.
    key
        What their names begin with; no other series of the page may have it.
    y
        The values, in the unit of the vertical axis; NaN is a gap.
    name
        What the legend says. Series of one name share an entry, and hide together.
    x
        Where the values lie, for ``lines``; in any order. For ``bars`` None: a value a category.
    colour
        Which of the seven colours, from 0; beyond them lines are dashed and bars pale.
    look
        A line; a line with its points; points alone; a step, which holds its value up to the next; a
        dotted line of reference; or hollow diamonds, for values that somebody published. ``bars`` know bars and
        diamonds: there every other look is a bar.
    low, high
        The ends of an interval around each value, such as one of confidence: drawn as an error bar and
        told where values are read. Both or neither.
    of
        Of ``published``: the name of the series that the values belong to. They hide with it, say its
        name where they are read, and stand over its bars; without it, in the middle of the category.

    Returns
    -------
    dict
        The series as the page reads it.

    Raises
    ------
    ValueError
        If the columns are not of one length, or an interval has one end.

    Examples
    --------
    >>> kept = Columns()
    >>> ours = series(kept, "wa", [3.5, 2.1], x=[0.85, 0.7], name="ours", look="points",
    ...               low=[3.4, 2.0], high=[3.6, 2.2])
    >>> ours["points"], ours["scattered"], kept.numbers["wa.x"], kept.numbers["wa.low"]
    (True, True, [0.7, 0.85], [2, 3.4])
    >>> series(kept, "paper", [3.52], x=[0.85], name="paper", look="published", of="ours")["of"]
    'ours'
    """
    if (low is None) != (high is None):
        raise ValueError(f"series {key}: an interval has two ends; found one of low and high")
    given = {"x": x, "y": y, "low": low, "high": high}
    numbers = {part: list(values) for part, values in given.items() if values is not None}
    lengths = {part: len(values) for part, values in numbers.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"series {key}: found columns of {lengths}, expected one length")
    if "x" in numbers:
        order = sorted(range(len(numbers["x"])), key=numbers["x"].__getitem__)
        numbers = {part: [values[i] for i in order] for part, values in numbers.items()}
    found: dict[str, Any] = {"part": name, "colour": colour}
    for part, values in numbers.items():
        found[part] = columns.add(f"{key}.{part}", values, 7 if part == "x" else 5)
    flags = {
        "dotted line": ("points",),
        "points": ("points", "scattered"),
        "step": ("step",),
        "level": ("level",),
        "published": ("points", "published"),
    }
    found |= dict.fromkeys(flags.get(look, ()), True)
    return found if of is None else found | {"of": of}


def categories(label: str, names: Sequence[str]) -> dict[str, Any]:
    """A horizontal axis of ``bars`` whose places have names, such as those of traces.

    Parameters
    ----------
    label
        What the names are of.
    names
        One for each value of the series; where they do not fit side by side they are slanted.

    Returns
    -------
    dict
        The axis as the page reads it.

    Examples
    --------
    >>> categories("trace", ["Financial1", "MSR hm_0"])["names"]
    ['Financial1', 'MSR hm_0']
    """
    return axis(label, "index", names=list(names))


def axis(label: str, show: str, **options: object) -> dict[str, Any]:
    """An axis: its label, how its numbers read, and options such as ``log`` or ``zero``.

    Numbers read as ``ns``, ``bytes``, ``count``, ``share``, ``number`` or ``index`` (whole, never
    shortened). ``ticks`` are pairs of a value and its label. ``min`` and ``max`` are fixed ends. ``per`` is what a
    rate is over, such as ``"s"``.

    The title of the axis is the label and, in brackets, the unit that suits the numbers shown; a label that ends with
    a unit in brackets stays as it is.
    """
    return {"label": label, "format": show, **options}


def without_common_keys(labels: Sequence[str]) -> list[str]:
    """Labels without the keys that all of them set.

    Examples
    --------
    >>> without_common_keys(["gc.victim=greedy", "gc.victim=fifo"])
    ['greedy', 'fifo']
    >>> without_common_keys(["gc.victim=greedy", "seed=1"])
    ['gc.victim=greedy', 'seed=1']
    """
    parts = [
        [re.fullmatch(r"([\w.-]+) ?= ?(.*)", part) for part in label.split(", ")]
        for label in labels
    ]
    keys = {tuple(None if found is None else found[1] for found in label) for label in parts}
    if len(labels) < 2 or len(keys) > 1 or None in next(iter(keys)):
        return list(labels)
    return [", ".join(found[2] for found in label if found is not None) for label in parts]


def file_stems(charts: Sequence[Chart]) -> dict[str, list[str]]:
    """What the files of each drawn chart are called, without their ending: a name for each of its views.

    Parameters
    ----------
    charts
        The charts of a page, in its order. Those that say why there is nothing to draw have no files.

    Returns
    -------
    dict
        The names of the views by the key of the chart.

    Examples
    --------
    >>> views = [{"name": "by time"}, {"name": "by requests"}]
    >>> file_stems([Chart("none", "None", "", missing="no"), Chart("wa", "Write amplification", "", views=views)])
    {'wa': ['01-write-amplification', '01-write-amplification-by-requests']}
    """
    drawn = [chart for chart in charts if chart.views]
    found = {}
    for number, chart in enumerate(drawn, 1):
        stem = f"{number:02}-{_slug(chart.title)}"
        more = [f"{stem}-{_slug(view['name'])}" for view in chart.views[1:]]
        found[chart.key] = [stem, *more]
    return found


def _slug(title: str) -> str:
    found = re.sub(r"[^a-z0-9.]+", "-", title.lower()).strip("-.")
    if len(found) > _STEM_MAX:
        found = found[: _STEM_MAX + 1].rpartition("-")[0] or found[:_STEM_MAX]
    return found or "chart"


def cells_across(channels: int, rows: int, cells: int) -> int:
    """Cells in a row of a plane, so that the whole map is about twice as wide as it is high."""
    ideal = min(cells, max(1.0, math.sqrt(2 * rows * cells / channels)))
    exact = [n for n in range(1, cells + 1) if cells % n == 0]
    nearest = min(exact, key=lambda n: abs(math.log(n / ideal)))
    return nearest if abs(math.log(nearest / ideal)) < 0.4 else round(ideal)
