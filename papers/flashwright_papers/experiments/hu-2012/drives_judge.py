"""Chapter 4: what its judges share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from flashwright_papers import Answer, Found, Line, Plot, Verdict

Row = Mapping[str, Any]


PAGE_MAPPED = ("intel-320", "samsung-470", "fusion-iodrive")


PUBLISHED = {"intel-320": 0.12, "fusion-iodrive": 0.30}


NAMES = {
    "intel-320": "Intel 320",
    "samsung-470": "Samsung 470",
    "fusion-iodrive": "Fusion-io ioDrive",
    "ocz-vertex-3": "OCZ Vertex 3",
}


SHORT = {
    "intel-320": "Intel",
    "samsung-470": "Samsung",
    "fusion-iodrive": "ioDrive",
    "ocz-vertex-3": "OCZ",
}


WRITTEN = "data written / capacity"


def per_cent(values: Sequence[float]) -> str:
    """Shares as text, without the sign."""
    return ", ".join(f"{100 * value:.0f}" for value in values)


def band(value: float, published: float) -> bool:
    """Within ten points, or three tenths, of a published share."""
    return abs(value - published) <= max(0.1, 0.3 * published)


def reserved(share: float) -> str:
    """A range as people write it."""
    return f"P = {100 * share:.0f} %"


# Drive fills ----------------------------------------------------------------------------------------


def fills_of(found: Found, prefilled: bool = False) -> dict[str, Row]:
    """What drive fills found, by drive."""
    rows = found[next(name for name in found if name.endswith("drive-fills"))]
    return {row["drive"]: row for row in rows if row["prefilled"] == prefilled}


def fill_plot(
    row: Row, *, early: bool = False, title: str = "", level: float | None = None
) -> Plot:
    """Bandwidth over data written, a line a range, as in Figures 4.1 and 4.4."""
    x, y = ("early_written", "early_mb_per_s") if early else ("written", "mb_per_s")
    whole = row["curves"][-1]
    named = f"{NAMES[row['drive']]}{', until full' if early else ''}"
    return Plot(
        title or named,
        WRITTEN,
        "bandwidth (MB/s)",
        [Line(reserved(curve["range"]), curve[x], curve[y]) for curve in row["curves"]],
        levels=[]
        if level is None
        else [(f"{100 * level:.0f} % of the peak", level * whole["peak_mb_per_s"])],
    )


def lowest(found: Found) -> Answer:
    """The lowest level of the published ones, by the same rule."""
    answer = levels(found, PAGE_MAPPED)
    row = fills_of(found)["intel-320"]
    return Answer(
        answer.verdict,
        f"Intel down to {100 * row['curves'][-1]['rho']:.0f} % of its peak at P = 100 %; by D4.2",
        plots=[fill_plot(row, level=PUBLISHED["intel-320"])],
    )


def levels(found: Found, drives: Sequence[str]) -> Answer:
    """Order by range, the published levels, and the spare space that would give them."""
    fills = fills_of(found)
    order, shape, near, texts = [], [], [], []
    for name in drives:
        curves = fills[name]["curves"]
        rho = [curve["rho"] for curve in curves]
        knees = [c["knee_capacities"] for c in curves if c["knee_capacities"] is not None]
        order += [rho == sorted(rho, reverse=True), rho[0] >= 0.9, rho[-1] < 0.9]
        shape += [rho[0] >= 0.95, bool(knees) and max(knees) - min(knees) <= 0.05]
        text = (
            f"{SHORT[name]} {per_cent(rho)} % of the peak (P = "
            f"{per_cent([curve['range'] for curve in curves])} %)"
        )
        if knees:
            text += f", falling from {min(knees):.2f} to {max(knees):.2f} capacities on"
        if name in PUBLISHED:
            use = crossing(spare(found, name), PUBLISHED[name])
            near += [band(rho[-1], PUBLISHED[name]), use is not None]
            text += f", {100 * curves[-1]['rho_third_capacity']:.0f} % in the third capacity"
            text += f", {100 * PUBLISHED[name]:.0f} % with " + (
                "no spare space that was tried"
                if use is None
                else f"{100 * use:.0f} % of the flash in use (the model has {100 * fills[name]['utilization']:.0f} %)"
            )
        texts.append(text)
    plots = [fill_plot(fills[name], level=PUBLISHED.get(name)) for name in drives]
    plots.append(
        Plot(
            "Level at P = 100 % by spare space",
            "logical over physical size",
            "last half capacity over the peak",
            [
                Line(SHORT[name], *zip(*spare(found, name), strict=True))
                for name in drives
                if name in PUBLISHED
            ],
            x_format="share",
            y_format="share",
            levels=[
                (f"published: {SHORT[name]}", value)
                for name, value in PUBLISHED.items()
                if name in drives
            ],
        )
    )
    return Answer(
        Verdict.of(all(order) and all(shape) and all(near), direction=all(order)),
        "; ".join(texts),
        plots=plots,
    )


def spare(found: Found, name: str) -> list[tuple[float, float]]:
    """Utilization and level over the whole range, rising utilization."""
    rows = found[next(part for part in found if part.endswith("drive-spare"))]
    return sorted(
        (row["utilization"], row["curves"][-1]["rho"]) for row in rows if row["drive"] == name
    )


def crossing(points: Sequence[tuple[float, float]], level: float) -> float | None:
    """Where a falling curve crosses a level, between two points; None where it does not."""
    for (x0, y0), (x1, y1) in pairwise(points):
        if y0 >= level >= y1:
            return x0 + (y0 - level) / (y0 - y1) * (x1 - x0)
    return None
