"""Chapter 4: the judges of what fullness costs, and of lifetime (D4.1 to D4.7)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flashwright import lifetime
from flashwright_papers import Answer, Found, Line, Plot, Verdict, claim

from .drives_judge import (
    NAMES,
    PAGE_MAPPED,
    PUBLISHED,
    SHORT,
    WRITTEN,
    fill_plot,
    fills_of,
    levels,
    per_cent,
    reserved,
)

LOG_BLOCK = "ocz-vertex-3"


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
    held, texts, plots = [], [], []
    for prefilled, state in ((False, "erased"), (True, "filled before")):
        row = fills_of(found, prefilled)[LOG_BLOCK]
        rho = [curve["rho"] for curve in row["curves"]]
        whole = row["curves"][-1]
        held.append(min(rho) >= 0.9 and row["mapping"] == "log-block")
        texts.append(
            f"{state}: {per_cent(rho)} % of the peak (P = {per_cent([c['range'] for c in row['curves']])} %), "
            f"{whole['peak_mb_per_s']:.1f} MB/s at P = 100 % and {row['in_order_mb_per_s']:.0f} in order, named "
            f"{row['mapping']}"
        )
        plots.append(fill_plot(row, title=f"{NAMES[LOG_BLOCK]}, {state}"))
    return Answer(Verdict.of(all(held), direction=any(held)), "; ".join(texts), plots=plots)


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
