"""Plots of claims as SVG: the panels of a figure side by side, small enough to stand in a page of documentation."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from flashwright.report import text

__all__ = ["figure"]

# A panel, in pixels: the whole of it, and what its axes leave.
_WIDTH, _HEIGHT = 320, 232
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 18, 22, 36
_ACROSS = 3
_LEGEND = 12  # a line of the legend
_LETTER = 5.7  # mean width of a letter of the legend
_HUES = ("#1f6fb2", "#d1602b", "#2f8f4e", "#8b5fbf", "#b23a56", "#6b6b2f", "#3a8f96")
_DASHES = ("", "5 3", "1.5 2.5", "7 2 1.5 2")
_ABREAST = 52  # letters of names that stand side by side below an axis
_DOT = 1.4  # radius of a point among many; marks are twice as large
_MANY = 120

_FORMATS: dict[str, Callable[[float], str]] = {
    "bytes": text.size_bytes,
    "ns": text.time_ns,
    "share": text.share,
}

Plotted = Mapping[str, Any]


def figure(title: str, plots: Sequence[Plotted]) -> str:
    """The panels of a figure as one SVG.

    Parameters
    ----------
    title : str
        What it is, for those who don't see it.
    plots : sequence of mapping
        Its plots, as a document of a reproduction holds them.

    Returns
    -------
    str
        The SVG, with a white ground of its own.

    Examples
    --------
    >>> line = {"label": "ours", "x": [1, 2], "y": [3, 4], "paper": False}
    >>> plot = {"title": "A", "x": "x", "y": "y", "lines": [line], "x_format": "number", "y_format": "number",
    ...         "x_log": False, "y_log": False, "ticks": [], "levels": [], "points": False}
    >>> figure("Figure 1", [plot]).count("<polyline")
    1
    """
    rows = [plots[at : at + _ACROSS] for at in range(0, len(plots), _ACROSS)]
    made, y = [], 0.0
    for row in rows:
        panels = [_Panel(each) for each in row]
        for at, panel in enumerate(panels):
            made.append(
                f'<g transform="translate({at * _WIDTH} {y:g})">{"".join(panel.parts())}</g>'
            )
        y += max(panel.height for panel in panels)
    width = _WIDTH * min(_ACROSS, len(plots))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y:g}" width="{width}" height="{y:g}" '
        'font-family="sans-serif" font-size="10" fill="#1b2027">'
        f'<title>{html.escape(title)}</title><rect width="100%" height="100%" fill="#fff"/>{"".join(made)}</svg>\n'
    )


class _Axis:
    """Where values lie between two ends of a panel, and what stands beside it."""

    def __init__(
        self, values: Sequence[float], log: bool, show: str, low: float, high: float
    ) -> None:
        self.log, self.show = log, _FORMATS.get(show, _short)
        known = [value for value in values if not log or value > 0] or [1.0]
        least, most = min(known), max(known)
        if not log:
            least = min(least, 0.0) if least < most / 2 or least == most else least
        if least == most:
            least, most = (least / 2, most * 2) if log else (least - 0.5, most + 0.5)
        self.ends = (self._place(least), self._place(most))
        self.low, self.high = low, high

    def _place(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        share = (self._place(value) - self.ends[0]) / (self.ends[1] - self.ends[0])
        return self.low + share * (self.high - self.low)

    def holds(self, value: float | None) -> bool:
        """Whether it can be drawn."""
        return value is not None and math.isfinite(value) and (not self.log or value > 0)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Values and what stands beside them, four or so."""
        least, most = self.ends
        two = self.show is text.size_bytes
        apart = math.log10(2) if two else 1.0
        for value in _powers(least, most, apart) if self.log else _steps(least, most, two):
            yield value, self.show(value)


def _powers(least: float, most: float, apart: float) -> list[float]:
    """Powers of ten, or of another base with that decimal logarithm, between two logarithms: four or so."""
    first, last = math.ceil(least / apart - 1e-9), math.floor(most / apart + 1e-9)
    every = max(1, math.ceil((last - first) / 4))
    found = [10 ** (apart * power) for power in range(first, last + 1, every)]
    if len(found) > 1:
        return found
    some = [n * 10.0**power for power in range(first - 1, last + 1) for n in (1, 2, 5)]
    return [each for each in some if least <= math.log10(each) <= most] or [10**least, 10**most]


def _steps(least: float, most: float, two: bool) -> list[float]:
    """Multiples of a round step, or of a power of two, between two ends: four or so."""
    rough = (most - least) / 4
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * each for each in (1.0, 2.0, 2.5, 5.0, 10.0) if unit * each >= rough * 0.999)
    if two:
        step = 2.0 ** round(math.log2(rough))
    first, last = math.ceil(least / step - 1e-9), math.floor(most / step + 1e-9)
    return [n * step for n in range(first, last + 1)]


def _short(value: float) -> str:
    if abs(value) >= 1e5:
        size, unit = (1e6, "M") if abs(value) >= 1e6 else (1e3, "k")
        return f"{text.significant(value / size, 3)}{unit}"
    return text.significant(value, 3)


class _Panel:
    """One plot."""

    def __init__(self, plot: Plotted) -> None:
        self.plot = plot
        lines = plot["lines"]
        xs = [x for line in lines for x in line["x"]] + [at for at, _ in plot["ticks"]]
        ys = [y for line in lines for y in line["y"] if y is not None]
        if plot.get("stacked"):
            xs, ys = (
                [min(xs) - 0.5, max(xs) + 0.5],
                [0.0, *map(sum, zip(*_columns(lines), strict=True))],
            )
        elif plot["ticks"]:
            xs = [min(xs) - 0.3, max(xs) + 0.3]
        ys += [value for _, value in plot["levels"]]
        names = [str(name) for _, name in plot["ticks"]]
        self.upright = sum(map(len, names)) > _ABREAST
        self.below = 5.0 * max(map(len, names)) - 8 if self.upright else 0.0
        self.entries = list(_entries(lines))
        self.height = _HEIGHT + self.below + _LEGEND * len(self.entries)
        self.x = _Axis(xs, plot["x_log"], plot["x_format"], _LEFT, _WIDTH - _RIGHT)
        self.y = _Axis(ys, plot["y_log"], plot["y_format"], _HEIGHT - _BOTTOM, _TOP)

    def parts(self) -> Iterator[str]:
        """What is drawn, from the back."""
        plot, bottom = self.plot, _HEIGHT - _BOTTOM
        right = _WIDTH - _RIGHT
        yield f'<text x="{_LEFT}" y="13" font-weight="bold">{html.escape(_cut(plot["title"], 44))}</text>'
        for value, shown in self.y.ticks():
            at = self.y(value)
            yield f'<path d="M{_LEFT} {at:.1f}H{right}" stroke="#e3e7ec"/>'
            yield _text(_LEFT - 4, at + 3, shown, "end", 9)
        for value, shown in [(at, str(name)) for at, name in plot["ticks"]] or self.x.ticks():
            at = self.x(value)
            if self.upright:
                yield _text(
                    0, 0, shown, "end", 8, f"translate({at + 3:.1f} {bottom + 4}) rotate(-90)"
                )
            else:
                yield _text(at, bottom + 12, shown, "middle", 9)
        yield f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="#56606d"/>'
        yield _text((_LEFT + right) / 2, bottom + self.below + 25, plot["x"], "middle")
        beside = f"translate(9 {(_TOP + bottom) / 2}) rotate(-90)"
        yield _text(0, 0, _cut(plot["y"], 36), "middle", 10, beside)
        for name, value in plot["levels"]:
            at = self.y(value)
            yield f'<path d="M{_LEFT} {at:.1f}H{right}" stroke="#56606d" stroke-dasharray="3 2"/>'
            yield _text(right, at - 2, name, "end", 8)
        yield from self._bars() if plot.get("stacked") else self._lines()
        for row, entry in enumerate(self.entries):
            y = _HEIGHT + self.below + _LEGEND * row
            yield f'<g transform="translate({_LEFT} {y:g})" font-size="9">{entry}</g>'

    def _lines(self) -> Iterator[str]:
        for at, line in enumerate(self.plot["lines"]):
            there = [
                (self.x(x), self.y(y)) if self.x.holds(x) and self.y.holds(y) else None
                for x, y in zip(line["x"], line["y"], strict=True)
            ]
            points = [each for each in there if each is not None]
            if line["paper"]:
                marks = "".join(_diamond(*each) for each in points)
                yield f'<path d="{marks}" fill="#fff" stroke="{_hue(at)}" stroke-width="1.3"/>'
                continue
            if not self.plot["points"]:
                for run in _runs(there):
                    vertices = " ".join(f"{x:.1f},{y:.1f}" for x, y in run)
                    yield (
                        f'<polyline points="{vertices}" fill="none" stroke="{_hue(at)}" '
                        f'stroke-width="1.3"{_dash(at)}/>'
                    )
            if self.plot["points"] or len(points) < 2:
                r = _DOT if len(points) > _MANY else 2 * _DOT
                # A line of no length with round ends is a dot, in fewer letters than a circle.
                path_data = "".join(
                    f"M{x:.0f} {y:.0f}h0" if len(points) > _MANY else f"M{x:.1f} {y:.1f}h0"
                    for x, y in points
                )
                yield f'<path d="{path_data}" stroke="{_hue(at)}" stroke-width="{2 * r}" stroke-linecap="round"/>'

    def _bars(self) -> Iterator[str]:
        lines = self.plot["lines"]
        half = 0.4 * (self.x(1) - self.x(0))
        base = [0.0] * len(lines[0]["x"])
        for at, column in enumerate(_columns(lines)):
            d = ""
            for n, (x, value) in enumerate(zip(lines[0]["x"], column, strict=True)):
                top, under = self.y(base[n] + value), self.y(base[n])
                if value:
                    d += f"M{self.x(x) - half:.1f} {under:.1f}h{2 * half:.1f}V{top:.1f}h{-2 * half:.1f}z"
                base[n] += value
            yield f'<path d="{d}" fill="{_hue(at)}"/>'


def _columns(lines: Sequence[Plotted]) -> list[list[float]]:
    return [[float(y or 0) for y in line["y"]] for line in lines]


def _runs(points: Sequence[tuple[float, float] | None]) -> Iterator[list[tuple[float, float]]]:
    """Stretches without a gap, of two points or more."""
    run: list[tuple[float, float]] = []
    for each in (*points, None):
        if each is not None:
            run.append(each)
            continue
        if len(run) > 1:
            yield run
        run = []


def _entries(lines: Sequence[Plotted]) -> Iterator[str]:
    """The legend, as many names in a line as fit."""
    made, x = "", 0.0
    for at, line in enumerate(lines):
        name = (
            f"{line['label']} (printed)"
            if line["paper"] and "printed" not in line["label"]
            else line["label"]
        )
        width = 22 + _LETTER * min(len(name), 48)
        if made and x + width > _WIDTH - _LEFT:
            yield made
            made, x = "", 0.0
        mark = (
            f'<path d="{_diamond(x + 7, -3)}" fill="#fff" stroke="{_hue(at)}"/>'
            if line["paper"]
            else f'<path d="M{x:.0f} -3h14" stroke="{_hue(at)}" stroke-width="2"{_dash(at)}/>'
        )
        made += f'{mark}<text x="{x + 18:.0f}">{html.escape(_cut(name, 48))}</text>'
        x += width
    if made:
        yield made


def _diamond(x: float, y: float) -> str:
    return f"M{x - 3.5:.1f} {y:.1f}l3.5 -3.5 3.5 3.5 -3.5 3.5z"


def _hue(at: int) -> str:
    return _HUES[at % len(_HUES)]


def _dash(at: int) -> str:
    dash = _DASHES[at // len(_HUES) % len(_DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _text(x: float, y: float, words: str, anchor: str, size: int = 10, moved: str = "") -> str:
    place = f' transform="{moved}"' if moved else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{place}>'
        f"{html.escape(_cut(words, 50))}</text>"
    )


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"
