"""Chapter 4: the judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from flashwright import lifetime
from flashwright.papers import Answer, Found, Line, Plot, Verdict, claim

Row = Mapping[str, Any]

PAGE_MAPPED = ("intel-320", "samsung-470", "fusion-iodrive")
LOG_BLOCK = "ocz-vertex-3"
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
    return Plot(
        title or NAMES[row["drive"]],
        WRITTEN,
        "bandwidth (MB/s)",
        [Line(reserved(curve["range"]), curve[x], curve[y]) for curve in row["curves"]],
        levels=[]
        if level is None
        else [(f"{100 * level:.0f} % of the peak", level * whole["peak_mb_per_s"])],
    )


@claim("D4.1", needs="drive-fills")
def d4_1(found: Found) -> Answer:
    """Flat and equal before the drive is full."""
    return flat_until_full(found, PAGE_MAPPED)


def flat_until_full(found: Found, drives: Sequence[str]) -> Answer:
    """Deviation from the peak before 95 % of the knee, and how far the peaks of all ranges are apart."""
    fills = fills_of(found)
    deviation = {
        name: max(curve["deviation_before_knee"] for curve in fills[name]["curves"])
        for name in drives
    }
    peaks = {name: [curve["peak_mb_per_s"] for curve in fills[name]["curves"]] for name in drives}
    apart = {name: max(each) / min(each) - 1 for name, each in peaks.items()}
    largest = max(*deviation.values(), *apart.values())
    return Answer(
        Verdict.of(largest < 0.03, direction=largest < 0.1),
        "; ".join(
            f"{SHORT[name]} off its peak by {100 * deviation[name]:.1f} % at most, peaks of the ranges within "
            f"{100 * apart[name]:.1f} %"
            for name in drives
        ),
        plots=[fill_plot(fills[name], early=True) for name in drives],
    )


@claim("D4.2", needs=("drive-fills", "drive-spare"))
def d4_2(found: Found) -> Answer:
    """Levels once the drive cleans."""
    return levels(found, PAGE_MAPPED)


@claim("D3.1", needs=("drive-fills", "drive-spare"))
def fall(found: Found) -> Answer:
    """Figure 3.1: flat until full and then down to the published levels, on the two drives that these are of."""
    drives = tuple(PUBLISHED)
    return both(flat_until_full(found, drives), levels(found, drives))


def both(one: Answer, other: Answer) -> Answer:
    """Two answers to one claim: the worse of their verdicts."""
    order = list(Verdict)
    return Answer(
        max(one.verdict, other.verdict, key=order.index),
        f"{one.ours}; {other.ours}",
        plots=[*one.plots, *other.plots],
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
    order, shape, near, told = [], [], [], []
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
        told.append(text)
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
        "; ".join(told),
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


@claim("D4.3", needs="drive-example")
def d4_3(found: Found) -> Answer:
    """The two halves of Figure 4.2, played."""
    rows = sorted(found["drive-example"], key=lambda row: float(row["range"]))
    values = [row["efficiency"] for row in rows]
    return Answer(
        Verdict.of(values == [0.5, 0.25]),
        "; ".join(
            f"{100 * row['efficiency']:.0f} % with {24 * row['range']:.0f} of 24 pages in use (valid pages by block "
            f"{', '.join(map(str, row['valid_by_block']))})"
            for row in rows
        ),
        plots=[
            Plot(
                "GC efficiency of a drive of six blocks",
                "share of the range in use",
                "invalid share of a victim",
                [
                    Line("ours", [row["range"] for row in rows], values),
                    Line("dissertation", [16 / 24, 20 / 24], [0.5, 0.25], paper=True),
                ],
                x_format="share",
                y_format="share",
                points=True,
            )
        ],
    )


@claim("D4.4", needs="drive-fills")
def d4_4(found: Found) -> Answer:
    """Responses of writes."""
    fills = fills_of(found)
    slow = {name: [c["slow_share"] for c in fills[name]["curves"]] for name in PAGE_MAPPED}
    more = all(each[-1] > max(each[:-1]) for each in slow.values())
    iodrive = fills["fusion-iodrive"]["curves"][-1]
    most = slow["intel-320"][-1] > 0.5
    few = slow["fusion-iodrive"][-1] < 0.5 and iodrive["spike_share"] > 0
    return Answer(
        Verdict.of(more and most and few, direction=more),
        "above five times the first median: "
        + "; ".join(f"{SHORT[name]} {per_cent(each)} %" for name, each in slow.items())
        + f" (P = {per_cent([c['range'] for c in fills['intel-320']['curves']])} %); in the ioDrive's last capacity "
        f"{100 * iodrive['spike_share']:.0f} % above five times their own median, the largest "
        f"{iodrive['largest_over_mean']:.1f} times the mean",
        plots=[
            Plot(
                NAMES[name],
                WRITTEN,
                "mean response of writes (ms)",
                [
                    *(
                        Line(reserved(c["range"]), c["written"], c["response_ms"])
                        for c in fills[name]["curves"]
                        if c["range"] in (0.1, 0.5, 0.9, 1.0)
                    ),
                    Line(
                        "largest, P = 100 %",
                        fills[name]["curves"][-1]["written"],
                        fills[name]["curves"][-1]["response_max_ms"],
                    ),
                ],
                y_log=True,
            )
            for name in PAGE_MAPPED
        ],
    )


@claim("D4.5", needs="drive-fills")
def d4_5(found: Found) -> Answer:
    """The log-block drive, erased and filled before."""
    held, told, plots = [], [], []
    for prefilled, state in ((False, "erased"), (True, "filled before")):
        row = fills_of(found, prefilled)[LOG_BLOCK]
        rho = [curve["rho"] for curve in row["curves"]]
        whole = row["curves"][-1]
        held.append(min(rho) >= 0.9 and row["mapping"] == "log-block")
        told.append(
            f"{state}: {per_cent(rho)} % of the peak (P = {per_cent([c['range'] for c in row['curves']])} %), "
            f"{whole['peak_mb_per_s']:.1f} MB/s at P = 100 % and {row['in_order_mb_per_s']:.0f} in order, named "
            f"{row['mapping']}"
        )
        plots.append(fill_plot(row, title=f"{NAMES[LOG_BLOCK]}, {state}"))
    return Answer(Verdict.of(all(held), direction=any(held)), "; ".join(told), plots=plots)


@claim("D4.6", needs="drive-fills")
def d4_6(found: Found) -> Answer:
    """The mapping that the curves look like."""
    fills = fills_of(found)
    named = {name: fills[name]["mapping"] for name in PAGE_MAPPED}
    right = sum(each == "page" for each in named.values())
    lines = []
    for name in PAGE_MAPPED:
        whole = fills[name]["curves"][-1]
        lines.append(
            Line(
                SHORT[name],
                whole["written"],
                [value / whole["peak_mb_per_s"] for value in whole["mb_per_s"]],
            )
        )
    return Answer(
        Verdict.of(right == 3, direction=right == 2),
        "; ".join(f"{SHORT[name]} named {each}" for name, each in named.items()),
        plots=[
            Plot(
                "Writes over the whole range",
                WRITTEN,
                "bandwidth over the peak",
                lines,
                y_format="share",
            )
        ],
    )


# Lifetime -------------------------------------------------------------------------------------------

# Table of the reference: share in use; TB writable; what is left after 50 and after 100 TB. S = 100 GB, M = 10,000.
TABLE = {
    0.5: (500.05, 0.900, 0.800),
    0.6: (400.06, 0.875, 0.750),
    0.7: (300.07, 0.833, 0.667),
    0.8: (200.08, 0.750, 0.500),
    0.9: (100.09, 0.500, 0.001),
    0.95: (50.095, 0.002, 0.0),
}
CAPACITY, CYCLES = 100e9, 10_000
# Write amplification of FIFO victims under uniform writes: x = exp(-(1 - x) / P), 1 / (1 - x).
TOLERANCE = 0.1


@claim("D4.7", needs="drive-lives")
def d4_7(found: Found) -> Answer:
    """The formula, and the two checks of it."""
    return lifetimes(found)


def lifetimes(found: Found) -> Answer:
    """Equation 4.1: the table, a drive that does as it assumes, and drives played to their end."""
    table = [
        abs(float(lifetime.writable(CAPACITY, p, CYCLES)) / 1e12 / of_life - 1) < 1e-5
        and abs(float(lifetime.residual(50e12, CAPACITY, p, CYCLES)) - after_50) < 6e-4
        and abs(float(lifetime.residual(100e12, CAPACITY, p, CYCLES)) - after_100) < 6e-4
        for p, (of_life, after_50, after_100) in TABLE.items()
    ]
    # Left of the life after 100 TB.
    left = {p: float(lifetime.residual(100e12, CAPACITY, p, CYCLES)) for p in (0.1, 0.6, 0.8, 0.95)}
    curve = left[0.1] - left[0.6] < 0.25 < left[0.8] - left[0.95]
    swept = {p: (sweep(p, 20), float(lifetime.writable(1.0, p, 20))) for p in (0.5, 0.8, 0.9)}
    first = all(abs(fills - formula) <= 1 - p + 1e-9 for p, (fills, formula) in swept.items())
    rows = sorted(
        found[next(part for part in found if part.endswith("drive-lives"))],
        key=lambda row: float(row["reserved"]),
    )
    ratio = [row["fills"] / row["formula"] for row in rows]
    theory = [(row["cycles"] + 1) / amplification(row["reserved"]) / row["formula"] for row in rows]
    second = all(abs(a / b - 1) <= TOLERANCE for a, b in zip(ratio, theory, strict=True))
    shares = np.linspace(0.02, 0.98, 33)
    x = [row["reserved"] for row in rows]
    return Answer(
        Verdict.of(all(table) and curve and first and second, direction=all(table) and curve),
        f"{sum(table)} of {len(table)} rows of the table exact; left after 100 TB: "
        + ", ".join(f"{100 * of_life:.0f} % at P = {100 * p:.0f} %" for p, of_life in left.items())
        + "; check 1: "
        + ", ".join(f"{fills:.1f} ({formula:.2f})" for fills, formula in swept.values())
        + " drive writes at P = 50, 80, 90 % (formula); check 2: "
        + ", ".join(f"{value:.2f}" for value in ratio)
        + f" times the formula at P = {per_cent(x)} %, by the closed form "
        + ", ".join(f"{value:.2f}" for value in theory),
        plots=[
            Plot(
                "Residual lifetime of 100 GB, 10,000 erases a block",
                "share of the range in use",
                "residual lifetime",
                [
                    Line(
                        f"after {terabytes} TB",
                        shares.tolist(),
                        np.asarray(
                            lifetime.residual(terabytes * 1e12, CAPACITY, shares, CYCLES)
                        ).tolist(),
                    )
                    for terabytes in (25, 50, 100, 200)
                ],
                x_format="share",
                y_format="share",
            ),
            Plot(
                "Life over the formula's",
                "share of the range in use",
                "ratio",
                [Line("played to its end", x, ratio), Line("closed form", x, theory)],
                x_format="share",
                points=True,
            ),
        ],
    )


def sweep(share: float, cycles: int) -> float:
    """Drive writes of a drive that does as the formula assumes.

    It is filled; whenever no page is free, every block is erased once with its live pages kept.
    """
    written, free = share, 1 - share
    for _ in range(cycles):
        written, free = written + free, 1 - share
    return written + free


def amplification(share: float) -> float:
    """Write amplification of FIFO victims under uniform random writes within a share of the flash."""
    valid = 0.0
    for _ in range(500):
        valid = float(np.exp(-(1 - valid) / share))
    return 1 / (1 - valid)


# Reads among writes ---------------------------------------------------------------------------------


def reads_of(found: Found) -> dict[str, dict[float, Row]]:
    """What reads met, by drive and range."""
    rows = found[next(name for name in found if name.endswith("drive-reads"))]
    return {row["drive"]: {each["range"]: each for each in row["ranges"]} for row in rows}


def slashed(values: Sequence[float], digits: int) -> str:
    """Values of the phases."""
    return "/".join(f"{value:.{digits}f}" for value in values)


def density_plot(name: str, each: Row) -> Plot:
    """Density of reads' responses, a line a phase, as in Figures 4.6 to 4.9."""
    middles = [round((n + 0.5) * each["bin_ms"], 4) for n in range(len(each["density_per_ms"][0]))]
    return Plot(
        f"{NAMES[name]}, {reserved(each['range'])}",
        "response of reads (ms)",
        "probability density (1/ms)",
        [
            Line(f"capacity {phase}", middles, row)
            for phase, row in enumerate(each["density_per_ms"], 1)
        ],
    )


@claim("D4.8", needs="drive-reads")
def d4_8(found: Found) -> Answer:
    """Reads within 10 % of the range."""
    return stable(found, PAGE_MAPPED)


def stable(found: Found, drives: Sequence[str]) -> Answer:
    """Whether the phases are alike within 10 % of the range."""
    reads = {name: reads_of(found)[name][0.1] for name in drives}
    named = [each["verdict"] for each in reads.values()]
    return Answer(
        Verdict.of(
            all(each == "stable" for each in named),
            direction=all(each != "unpredictable" for each in named),
        ),
        "; ".join(
            f"{SHORT[name]} {each['verdict']}: mean {slashed(each['mean_ms'], 2)} ms, deviation "
            f"{slashed(each['deviation_ms'], 2)} ms, distance {max(each['distance']):.2f}"
            for name, each in reads.items()
        ),
        plots=[density_plot(name, each) for name, each in reads.items()],
    )


@claim("D4.9", needs="drive-reads")
def d4_9(found: Found) -> Answer:
    """Reads within the whole range."""
    return unpredictable(found, PAGE_MAPPED)


def unpredictable(found: Found, drives: Sequence[str]) -> Answer:
    """Whether mean and deviation rise with the phase, and the density falls."""
    reads = {name: reads_of(found)[name][1.0] for name in drives}
    rises = all(
        a < b
        for each in reads.values()
        for key in ("mean_ms", "deviation_ms")
        for a, b in pairwise(each[key])
    )
    lower = all(each["highest_per_ms"][2] < each["highest_per_ms"][0] for each in reads.values())
    return Answer(
        Verdict.of(rises and lower, direction=rises),
        "; ".join(
            f"{SHORT[name]}: mean {slashed(each['mean_ms'], 1)} ms, deviation {slashed(each['deviation_ms'], 1)} ms, "
            f"highest {slashed(each['highest_per_ms'], 3)} a ms, beyond 1.5 times the first 99 %: "
            f"{per_cent(each['far_share'])} %"
            for name, each in reads.items()
        ),
        plots=[density_plot(name, each) for name, each in reads.items()],
    )


@claim("D4.10", needs="drive-reads")
def d4_10(found: Found) -> Answer:
    """The Intel's mean in the third capacity over that in the first."""
    each = reads_of(found)["intel-320"][1.0]
    mean = each["mean_ms"]
    times = mean[2] / mean[0]
    return Answer(
        Verdict.of(3 <= times <= 8, direction=times > 1),
        f"{times:.1f} times: {slashed(mean, 1)} ms",
        plots=[
            Plot(
                "Intel 320, P = 100 %",
                WRITTEN,
                "mean response of reads (ms)",
                [
                    Line("mean", each["written"], each["response_ms"]),
                    Line("mean of each capacity", [0.5, 1.5, 2.5], mean),
                ],
                levels=[("dissertation: 5 times our first capacity", 5 * mean[0])],
            )
        ],
    )


@claim("D4.11", needs="drive-reads")
def d4_11(found: Found) -> Answer:
    """Peaks beside the main one, by range."""
    intel = reads_of(found)["intel-320"]
    half, more = intel[0.5], intel[0.7]

    def count(each: Row, phase: int) -> int:
        return len(each["far_peaks"][phase])

    def height(each: Row, phase: int) -> float:
        return max((high for _, high in each["far_peaks"][phase]), default=0.0)

    there = all(count(half, phase) for phase in (1, 2)) and not any(
        map(len, intel[0.1]["far_peaks"])
    )
    number = all(count(more, phase) > count(half, phase) for phase in (1, 2))
    high = all(height(more, phase) > height(half, phase) for phase in (1, 2))
    return Answer(
        Verdict.of(there and number and high, direction=there and (number or high)),
        "; ".join(
            f"{reserved(each['range'])}: "
            + ", ".join(
                f"{count(each, phase)} in capacity {phase + 1}"
                + "".join(f" at {at:.0f} ms ({h:.3f} a ms)" for at, h in each["far_peaks"][phase])
                + f", {100 * each['far_share'][phase]:.0f} % of reads beyond"
                for phase in (1, 2)
            )
            for each in (half, more)
        ),
        plots=[density_plot("intel-320", each) for each in (half, more)],
    )


# Requests outstanding and their size ----------------------------------------------------------------


def grids_of(found: Found, bundled: bool = True) -> list[tuple[str, Row]]:
    """Drive with kind as text, and the grid."""
    return [
        (f"{SHORT[row['drive']]} {each['kind']}s" if bundled else f"eight dies, {each['kind']}s", each)
        for row in found["drive-grids"]
        if row["as_bundled"] == bundled
        for each in row["grids"]
    ]  # fmt: skip


def top(each: Row) -> float:
    """The highest bandwidth of a grid."""
    return max(max(row) for row in each["mb_per_s"])


def grid_plots(grids: Sequence[tuple[str, Row]], key: str, y: str) -> list[Plot]:
    """A figure of the grids, a line a size, as in Figures 4.10 to 4.12."""
    return [
        Plot(
            label,
            "requests outstanding",
            y,
            [
                Line(f"{size} KiB", each["depth"], row)
                for size, row in zip(each["size_kib"], each[key], strict=True)
            ],
            x_log=True,
            y_log=True,
        )
        for label, each in grids
    ]


@claim("D4.12", needs="drive-grids")
def d4_12(found: Found) -> Answer:
    """Where bandwidth saturates."""
    grids, eight = grids_of(found), grids_of(found, bundled=False)
    every = [each["saturation_depth"] for _, each in (*grids, *eight)]
    return Answer(
        Verdict.of(
            all(max(depths) <= 16 for depths in every),
            direction=all(max(depths[1:]) <= 16 for depths in every),
        ),
        f"depth with 95 % of a size's best, {sizes(grids)}: "
        + "; ".join(
            f"{label} {'/'.join(map(str, each['saturation_depth']))}"
            for label, each in [*grids, *eight]
        ),
        plots=grid_plots([*grids, *eight], "mb_per_s", "bandwidth (MB/s)"),
    )


def sizes(grids: Sequence[tuple[str, Row]]) -> str:
    """The sizes of the grids, as text."""
    return f"by size {'/'.join(map(str, grids[0][1]['size_kib']))} KiB"


@claim("D4.13", needs="drive-grids")
def d4_13(found: Found) -> Answer:
    """What size the peak takes."""
    grids = grids_of(found)
    shares = {label: [max(row) / top(each) for row in each["mb_per_s"]] for label, each in grids}
    at_64 = grids[0][1]["size_kib"].index(64)
    reached = all(each[at_64] >= 0.9 for each in shares.values())
    return Answer(
        Verdict.of(reached, direction=all(each[at_64] > each[0] for each in shares.values())),
        f"% of the highest bandwidth, {sizes(grids)}: "
        + "; ".join(
            f"{label} {'/'.join(f'{100 * share:.0f}' for share in each)}"
            for label, each in shares.items()
        ),
        plots=[
            Plot(
                "Highest bandwidth of a size over the drive's",
                "request size (KiB)",
                "share of the peak",
                [Line(label, grids[0][1]["size_kib"], each) for label, each in shares.items()],
                x_log=True,
                y_format="share",
                levels=[("0.9", 0.9)],
            )
        ],
    )


@claim("D4.14", needs="drive-grids")
def d4_14(found: Found) -> Answer:
    """Response over queue length."""
    grids = grids_of(found)
    fits = {label: [v for v in each["linearity"] if v is not None] for label, each in grids}
    slopes = {label: [v for v in each["slope_us"] if v is not None] for label, each in grids}
    straight = all(min(each) >= 0.98 for each in fits.values())
    rising = all(a < b for each in slopes.values() for a, b in pairwise(each))
    ends = all(each[-1] > each[0] for each in slopes.values())
    return Answer(
        Verdict.of(straight and rising, direction=straight and ends),
        "; ".join(
            f"{label} R^2 {min(fits[label]):.3f} or more, slopes {'/'.join(f'{v:.0f}' for v in each)} us"
            for label, each in slopes.items()
        )
        + f" a request outstanding, {sizes(grids)} (sizes with three depths or more from saturation on)",
        plots=grid_plots(grids, "response_us", "mean response (us)"),
    )


@claim("D4.15", needs="drive-grids")
def d4_15(found: Found) -> Answer:
    """The best pair of size and depth."""
    grids = grids_of(found)
    near, told, reach = [], [], []
    for label, each in grids:
        size, depth = each["best_size_kib"], each["best_depth"]
        # A step of the grid to each side.
        near.append(size in (16, 64, 128) and depth in (4, 8, 16))
        named = each["mb_per_s"][each["size_kib"].index(64)][each["depth"].index(8)] / top(each)
        reach.append(named)
        told.append(f"{label} {size} KiB x {depth}")
    return Answer(
        Verdict.of(all(near), direction=sum(near) > len(near) / 2),
        "; ".join(told)
        + f"; 64 KiB x 8 has at least {100 * min(reach):.1f} % of the highest bandwidth",
        plots=[
            Plot(
                "Best pairs",
                "request size (KiB)",
                "requests outstanding",
                [
                    *(
                        Line(label, [each["best_size_kib"]], [each["best_depth"]])
                        for label, each in grids
                    ),
                    Line("dissertation", [64], [8], paper=True),
                ],
                x_log=True,
                y_log=True,
                points=True,
            )
        ],
    )
