"""Chapter 4: the judges of how responses spread, and of size and depth (D4.8 to D4.15)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from flashwright_papers import Answer, Found, Line, Plot, Table, Verdict, claim

from .drives_judge import NAMES, PAGE_MAPPED, SHORT, WRITTEN, Row, per_cent, reserved

# Table 4.1: MB/s of reads and writes, and their latencies in us where it has them.
TABLE_4_1 = {
    "intel-320": (270, 220, 75, 90),
    "samsung-470": (250, 220, None, None),
    "ocz-vertex-3": (280, 260, 50, 16),
    "fusion-iodrive": (735, 510, 10, 7),
}
COLUMNS_4_1 = {
    "read_mb_per_s": "reads, MB/s",
    "write_mb_per_s": "writes, MB/s",
    "read_us": "read, us",
    "write_us": "write, us",
}


@claim("T4.1", needs="drive-table")
def t4_1(found: Found) -> Answer:
    """Bandwidths within 5 %, latencies within 30 %."""
    rows = {row["drive"]: row for row in found["drive-table"]}
    off = {
        (drive, column): rows[drive][column] / printed - 1
        for drive, row in TABLE_4_1.items()
        for column, printed in zip(COLUMNS_4_1, row, strict=True)
        if printed is not None
    }
    far = {at: value for at, value in off.items() if abs(value) > (0.05 if "mb" in at[1] else 0.3)}
    cells = []
    for drive, row in TABLE_4_1.items():
        cells.append((f"{NAMES[drive]}, printed", *("N/A" if v is None else str(v) for v in row)))
        cells.append((f"{NAMES[drive]}, ours", *(f"{rows[drive][c]:.3g}" for c in COLUMNS_4_1)))
    missed = ", ".join(
        f"{SHORT[drive]} {COLUMNS_4_1[column].split(',')[0]} {rows[drive][column]:.3g} "
        f"{COLUMNS_4_1[column].split()[-1]} ({value:+.0%})".replace("%", " %")
        for (drive, column), value in far.items()
    )
    return Answer(
        Verdict.of(not far, direction=not any("mb" in column for _, column in far)),
        f"{len(off) - len(far)} of {len(off)} figures as printed; not: {missed or 'none'}",
        tables=[Table("Table 4.1", ("drive", *COLUMNS_4_1.values()), cells)],
    )


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


def response_plot(name: str, each: Row) -> Plot:
    """Mean and deviation of reads' responses over data written, as in Figures 4.6 to 4.8."""
    phases = [n + 0.5 for n in range(len(each["mean_ms"]))]
    return Plot(
        f"{NAMES[name]}, {reserved(each['range'])}: over data written",
        WRITTEN,
        "response of reads (ms)",
        [
            Line("mean", each["written"], each["response_ms"]),
            Line("mean of each capacity", phases, each["mean_ms"]),
            Line("deviation of each capacity", phases, each["deviation_ms"]),
        ],
    )


def response_plots(reads: Mapping[str, Row]) -> list[Plot]:
    """Both plots of each drive."""
    return [
        plot
        for name, each in reads.items()
        for plot in (response_plot(name, each), density_plot(name, each))
    ]


@claim("D4.8", needs="drive-reads")
def d4_8(found: Found) -> Answer:
    """Reads within 10 % of the range."""
    return stable(found, PAGE_MAPPED)


# The same density by eye, which is how the dissertation compares: another seed alone moves the ioDrive's deviation by
# 7 %.
DEVIATION_TOLERANCE = 0.2


def stable(found: Found, drives: Sequence[str]) -> Answer:
    """Whether the phases are alike within 10 % of the range."""
    reads = {name: reads_of(found)[name][0.1] for name in drives}
    named = [each["verdict"] for each in reads.values()]
    phases_equal = all(
        max(abs(later / each[key][0] - 1) for later in each[key][1:]) <= most
        for each in reads.values()
        for key, most in (("mean_ms", 0.1), ("deviation_ms", DEVIATION_TOLERANCE))
    ) and all(max(each["distance"]) < 0.1 for each in reads.values())
    return Answer(
        Verdict.of(phases_equal, direction=all(each != "unpredictable" for each in named)),
        "; ".join(
            f"{SHORT[name]} {each['verdict']}: mean {slashed(each['mean_ms'], 2)} ms, deviation "
            f"{slashed(each['deviation_ms'], 2)} ms, distance {max(each['distance']):.2f}"
            for name, each in reads.items()
        ),
        plots=response_plots(reads),
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
        plots=response_plots(reads),
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
    beyond = all(more["far_share"][phase] > half["far_share"][phase] for phase in (1, 2))
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
        also={"the share of reads beyond, in place of the height": Verdict.of(there and beyond)},
        used="the height of the spikes",
    )


# Requests outstanding and their size ----------------------------------------------------------------


Grids = list[tuple[str, Row]]
BY_TABLE = "the Intel's work for a write as table 4.1 has it, 75 us"
AS_BUNDLED = "the Intel's work for a write as bundled, 10 us"


def grids_of(found: Found, bundled: bool = True, by_table: bool = True) -> Grids:
    """Drive with kind as text, and the grid; of a drive with a printed work those with it, or those as bundled."""
    rows = [row for row in found["drive-grids"] if row["as_bundled"] == bundled]
    printed = {row["drive"] for row in rows if row["write_work"] and by_table}
    return [
        (f"{SHORT[row['drive']]} {each['kind']}s" if bundled else f"eight dies, {each['kind']}s", each)
        for row in rows
        if bool(row["write_work"]) == (row["drive"] in printed)
        for each in row["grids"]
    ]  # fmt: skip


def by_work(found: Found, judge: Callable[[Grids], Answer]) -> Answer:
    """What is said of the drives with the work that table 4.1 prints, and beside it of those as bundled."""
    answer, bundled = judge(grids_of(found)), judge(grids_of(found, by_table=False))
    also = {**answer.also, AS_BUNDLED: bundled.verdict}
    return replace(answer, also=also, used="; ".join(filter(None, (answer.used, BY_TABLE))))


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
    eight = grids_of(found, bundled=False)

    def judge(grids: Grids) -> Answer:
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

    return by_work(found, judge)


def sizes(grids: Sequence[tuple[str, Row]]) -> str:
    """The sizes of the grids, as text."""
    return f"by size {'/'.join(map(str, grids[0][1]['size_kib']))} KiB"


@claim("D4.13", needs="drive-grids")
def d4_13(found: Found) -> Answer:
    """What size the peak takes."""

    def judge(grids: Grids) -> Answer:
        shares = {
            label: [max(row) / top(each) for row in each["mb_per_s"]] for label, each in grids
        }
        kib = grids[0][1]["size_kib"]
        at_64 = kib.index(64)
        reached = all(each[at_64] >= 0.9 for each in shares.values())
        # A peak that a smaller size reaches as well is not reached at 64 KiB.
        first = all(max(each[:at_64]) < 0.9 for each in shares.values())
        rises = all(each[at_64] > each[0] for each in shares.values())
        return Answer(
            Verdict.of(reached and first, direction=rises),
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

    return by_work(found, judge)


@claim("D4.14", needs="drive-grids")
def d4_14(found: Found) -> Answer:
    """Response over queue length."""

    def judge(grids: Grids) -> Answer:
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

    return by_work(found, judge)


@claim("D4.15", needs="drive-grids")
def d4_15(found: Found) -> Answer:
    """The best pair of size and depth."""

    def judge(grids: Grids) -> Answer:
        near, texts, reach = [], [], []
        for label, each in grids:
            size, depth = each["best_size_kib"], each["best_depth"]
            # A step of the grid to each side.
            near.append(size in (16, 64, 128) and depth in (4, 8, 16))
            named = each["mb_per_s"][each["size_kib"].index(64)][each["depth"].index(8)] / top(each)
            reach.append(named)
            texts.append(f"{label} {size} KiB x {depth}")
        return Answer(
            Verdict.of(all(near), direction=sum(near) > len(near) / 2),
            "; ".join(texts)
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
            also={
                "any pair that reaches 95 % of the peak": Verdict.of(min(reach) >= 0.95),
            },
            used="the pair of least mean response among those near the peak",
        )

    return by_work(found, judge)
