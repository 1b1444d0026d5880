"""The claims of chapter 5 of Hu's dissertation, held against the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from flashwright_papers import Answer, Found, Line, Plot, Verdict, claim

Row = Mapping[str, Any]

WAYS = ("one", "all")
HEADS = {"financial1": "financial1 head", "msn": "msn head"}
SHOWN = {
    "financial1": "Financial 1",
    "financial2": "Financial 2",
    "exchange": "Exchange",
    "msn": "MSN",
    "build": "Build",
}


def name_of(workload: str) -> str:
    """A workload as people call it."""
    base = workload.split()[0]
    return SHOWN[base] + (workload.removeprefix(base) or " (stand-in)")


# Figures 5.1 to 5.3.


def spread(values: Sequence[float]) -> float:
    """Largest minus least over the mean."""
    return (max(values) - min(values)) / (sum(values) / len(values))


@claim("D5.1", needs="schedulers")
def d5_1(found: Found) -> Answer:
    """Bandwidths within 5 % under the four schedulers, in every cell."""
    rows = found["schedulers"]
    spreads = [spread(list(row["mb_per_s"].values())) for row in rows]
    within = sum(each <= 0.05 for each in spreads)
    at = max(range(len(rows)), key=spreads.__getitem__)
    worst = rows[at]
    plots = []
    for number, drive in enumerate(dict.fromkeys(row["drive"] for row in rows), 1):
        cells = [row for row in rows if row["drive"] == drive]
        lines = []
        for pattern, kind in dict.fromkeys((row["pattern"], row["kind"]) for row in cells):
            of = [row for row in cells if (row["pattern"], row["kind"]) == (pattern, kind)]
            x = [1024 * row["size_kib"] for row in of]
            shown = {"uniform": "random"}.get(pattern, pattern)
            lines += [
                Line(f"{shown} {kind}, {scheduler}", x, [row["mb_per_s"][scheduler] for row in of])
                for scheduler in of[0]["mb_per_s"]
            ]
        plots.append(
            Plot(
                f"{drive}: as Figure 5.{number}", "request size", "bandwidth [MB/s]", lines,
                x_format="bytes", x_log=True,
            )
        )  # fmt: skip
    return Answer(
        Verdict.of(within == len(rows), within >= 0.8 * len(rows)),
        f"spread at most 5 % in {within} of {len(rows)} cells, largest {100 * spreads[at]:.1f} % ({worst['drive']}, "
        f"{worst['pattern']} {worst['kind']} {worst['size_kib']} KiB)",
        plots=plots,
    )


def lowest(mb_per_s: Sequence[float]) -> float:
    """Where the parabola through the three lowest points is least, or the least point where that is no share."""
    shares = [at / (len(mb_per_s) - 1) for at in range(len(mb_per_s))]
    points = sorted(zip(shares, mb_per_s, strict=True), key=lambda point: point[1])[:3]
    (x0, y0), (x1, y1), (x2, y2) = sorted(points)
    first = (y1 - y0) / (x1 - x0)
    bend = ((y2 - y1) / (x2 - x1) - first) / (x2 - x0)
    least = (x0 + x1) / 2 - first / (2 * bend) if bend > 0 else -1
    return least if 0 <= least <= 1 else points[0][0]


def drop(mb_per_s: Sequence[float]) -> float:
    """How far the least lies below the higher end."""
    return 1 - min(mb_per_s) / max(mb_per_s[0], mb_per_s[-1])


def mixing_plots(rows: Sequence[Row]) -> list[Plot]:
    """Figure 5.3."""
    steps = len(rows[0]["mb_per_s"]) - 1
    shares = [step / steps for step in range(steps + 1)]
    return [
        Plot(
            f"{drive}: as Figure 5.3", "share of sequential writes", "bandwidth [MB/s]",
            [
                Line("model" if row["turnaround"] else "without turnaround", shares, row["mb_per_s"])
                for row in rows if row["drive"] == drive
            ],
            x_format="share",
        )
        for drive in dict.fromkeys(row["drive"] for row in rows)
    ]  # fmt: skip


@claim("D5.2", needs="mixing")
def d5_2(found: Found) -> Answer:
    """Least between 40 and 60 % of writes, highest at an end."""
    low, high, words = [], [], []
    for row in found["mixing"]:
        curve = row["mb_per_s"]
        text = (
            f"{row['drive']} lowest at {100 * lowest(curve):.0f} %, {100 * drop(curve):.0f} % down"
        )
        if row["turnaround"]:
            top = curve.index(max(curve))
            low.append(0.4 <= lowest(curve) <= 0.6)
            high.append(top in (0, len(curve) - 1))
            words.append(f"{text}, highest at {100 * top / (len(curve) - 1):.0f} %")
        else:
            words.append(f"without turnaround {text}")
    return Answer(
        Verdict.of(all(low) and all(high), all(low)),
        "; ".join(words) + " (of writes)",
        plots=mixing_plots(found["mixing"]),
    )


@claim("D5.3", needs="mixing")
def d5_3(found: Found) -> Answer:
    """60 +- 18 % on Intel, by the bundled model, whose turnaround was fitted to it."""
    intel = {
        row["turnaround"]: drop(row["mb_per_s"])
        for row in found["mixing"]
        if row["drive"] == "intel-320"
    }
    plots = [plot for plot in mixing_plots(found["mixing"]) if plot.title.startswith("intel")]
    return Answer(
        Verdict.of(0.42 <= intel[True] <= 0.78),
        f"{100 * intel[True]:.0f} % with the fitted turnaround, {100 * intel[False]:.0f} % without it",
        plots=plots,
    )


# Figures 5.6 to 5.10.


def cells(rows: Sequence[Row], workload: str) -> list[Row]:
    """Rows of a workload, by what is outstanding."""
    return sorted(
        (row for row in rows if row["workload"] == workload), key=lambda row: row["outstanding"]
    )


def base_of(cell: Row, scheduler: str) -> Row:
    """The bar of a plain scheduler."""
    return next(bar for bar in cell["bars"] if bar["scheduler"] == scheduler)


def bars_of(cell: Row, per_zone: str) -> list[Row]:
    """The bars by zones."""
    return [bar for bar in cell["bars"] if bar["per_zone"] == per_zone]


def gains(rows: Sequence[Row], workload: str, per_zone: str, base: str = "noop") -> list[Row]:
    """Each zone count against `base` at the same number outstanding, as changes in per cent."""
    found = []
    for cell in cells(rows, workload):
        before = base_of(cell, base)
        for bar in bars_of(cell, per_zone):
            change = {
                key: 100 * (bar[key] / before[key] - 1)
                for key in ("mb_per_s", "response_ms", "size_kib")
            }
            found.append({"outstanding": cell["outstanding"], "zones": bar["zones"]} | change)
    return found


def best(rows: Sequence[Row]) -> str:
    """The largest gains of a workload, in words."""
    top = max(rows, key=lambda row: row["mb_per_s"])
    quick = min(row["response_ms"] for row in rows)
    grown = max(rows, key=lambda row: row["size_kib"])
    return (
        f"{top['mb_per_s']:+.0f} % bandwidth ({top['outstanding']} outstanding, {top['zones']} zones), "
        f"{quick:+.0f} % response, {grown['size_kib']:+.0f} % size ({grown['outstanding']}, {grown['zones']})"
    )


SHOWN_BARS = {"mb_per_s": "bandwidth [MB/s]", "response_ms": "mean response [ms]"}


def zone_plots(
    rows: Sequence[Row], workload: str, figure: str, ways: Sequence[str] = WAYS
) -> list[Plot]:
    """Bandwidth (a) and mean response (b) by the number of zones, noop in front."""
    plots = []
    found = cells(rows, workload)
    for way, (key, y) in product(ways, SHOWN_BARS.items()):
        counts = [bar["zones"] for bar in bars_of(found[0], way)]
        lines = [
            Line(
                f"{cell['outstanding']} outstanding",
                list(range(len(counts) + 1)),
                [base_of(cell, "noop")[key], *(bar[key] for bar in bars_of(cell, way))],
            )
            for cell in found
        ]
        plots.append(
            Plot(
                f"{name_of(workload)}, {way} of each zone: as {figure}", "scheduler, zones", y, lines,
                ticks=list(enumerate(["noop", *map(str, counts)])), points=True,
            )
        )  # fmt: skip
    return plots


def size_plot(rows: Sequence[Row], workload: str, figure: str, printed: Line) -> Plot:
    """How much larger requests are than noop's."""
    lines = []
    for cell in cells(rows, workload):
        bars = bars_of(cell, "all")
        before = base_of(cell, "noop")["size_kib"]
        lines.append(
            Line(
                f"{cell['outstanding']} outstanding",
                [bar["zones"] for bar in bars],
                [bar["size_kib"] / before for bar in bars],
            )
        )
    return Plot(
        f"{name_of(workload)}, all of each zone: request sizes, as {figure}", "zones", "mean request size over noop's",
        [*lines, printed], x_format="count", x_log=True,
    )  # fmt: skip


def of_real(rows: Sequence[Row], workload: str) -> tuple[str, bool]:
    """The head of the real trace where it was played, else the stand-in; and whether it is real."""
    head = HEADS.get(workload, "")
    real = any(row["workload"] == head for row in rows)
    return (head if real else workload), real


def gain_claim(
    found: Found,
    workload: str,
    figure: str,
    size: float,
    margin: float,
    zones: Sequence[int],
) -> Answer:
    """A bandwidth above noop's, and requests `size` per cent larger; a stand-in tells the sign of the first."""
    rows = found["zones"]
    deciding, real = of_real(rows, workload)
    changes = {way: gains(rows, deciding, way) for way in WAYS}
    every = [row for way in WAYS for row in changes[way]]

    def over(every: Sequence[Row]) -> Verdict:
        grown = [row["size_kib"] for row in every if row["zones"] in zones]
        top = max(row["mb_per_s"] for row in every)
        sized = any(abs(each - size) <= margin for each in grown)
        grows = max(grown) > 0 if real else True
        return Verdict.of(real and top > 0 and sized, top > 0 and grows)

    unmerged = [row for way in WAYS for row in gains(rows, deciding, way, "none")]
    words = [f"{way} of each zone {best(changes[way])}" for way in WAYS]
    alone = best(gains(rows, deciding, "all", "none"))
    words.append(f"all, against requests that nobody merges, {alone}")
    if real:
        most = max(row["mb_per_s"] for way in WAYS for row in gains(rows, workload, way))
        words.append(f"{name_of(workload)} at best {most:+.0f} % bandwidth")
    counted = [count for count in zones if count in {row["zones"] for row in every}]
    printed = Line("printed", counted[-1:], [1 + size / 100], paper=True)
    return Answer(
        over(every),
        f"{name_of(deciding)}: {'; '.join(words)}{describe_reasons(found, deciding)}",
        workload=f"{name_of(deciding)}, as fast as possible",
        plots=[*zone_plots(rows, deciding, figure), size_plot(rows, deciding, figure, printed)],
        also={"a noop that merges nothing": over(unmerged)},
        used="a noop that merges what adjoins",
    )


def describe_reasons(found: Found, workload: str) -> str:
    """What the scheduler comes to where one thing is changed, with most outstanding, in words."""
    rows = [row for row in found["zone-reasons"] if row["workload"] == workload]
    row = max(rows, key=lambda row: row["outstanding"])
    changes = ", ".join(
        f"{change} {100 * (of['ssd-friendly'] / of['noop'] - 1):+.0f} %"
        for change, of in row["changes"].items()
    )
    return f". 8 zones, all, {row['outstanding']} outstanding, bandwidth against noop: {changes}"


@claim("D5.5", needs=("zones", "zone-reasons"))
def d5_5(found: Found) -> Answer:
    """Financial 1: bandwidth above noop's, size +54 +- 20 points at 16 zones."""
    return gain_claim(found, "financial1", "Figure 5.6", 54, 20, (16,))


@claim("D5.6", needs=("zones", "zone-reasons"))
def d5_6(found: Found) -> Answer:
    """Financial 2: bandwidth above noop's, size +30 +- 10 points."""
    return gain_claim(found, "financial2", "Figure 5.7", 30, 10, (1, 2, 4, 8, 16))


@claim("D5.7", needs="zones")
def d5_7(found: Found) -> Answer:
    """Bandwidths over the number of zones within 10 %, whether a batch takes one or all of each zone."""
    small = [row for row in found["zones"] if row["workload"].startswith("financial")]
    spreads = {
        way: [spread([bar["mb_per_s"] for bar in bars_of(row, way)]) for row in small]
        for way in WAYS
    }
    met = {way: max(values) <= 0.1 for way, values in spreads.items()}
    shown = [of_real(found["zones"], name)[0] for name in ("financial1", "financial2")]
    plots = [
        plot
        for name, figure in zip(shown, ("Figure 5.6", "Figure 5.7"), strict=True)
        for plot in zone_plots(found["zones"], name, figure)
    ]
    return Answer(
        Verdict.of(all(met.values()), any(met.values())),
        "; ".join(
            f"{way} of each zone: spread at most {100 * max(values):.0f} %, within 10 % in "
            f"{sum(value <= 0.1 for value in values)} of {len(values)} cells"
            for way, values in spreads.items()
        ),
        plots=plots,
    )


@claim("D5.8", needs="zones")
def d5_8(found: Found) -> Answer:
    """Sizes and bandwidths within 5 % of noop's on Exchange, MSN and Build."""
    rows = found["zones"]
    there = dict.fromkeys(row["workload"] for row in rows)
    names = [name for name in there if name.split()[0] in ("exchange", "msn", "build")]
    words, sized, flat, gained = [], [], [], []
    real = [name for name in names if name.endswith("head")]
    stand_ins = [name for name in names if name not in real]
    for label, group in ((", ".join(map(name_of, real)), real), ("stand-ins", stand_ins)):
        for way in WAYS if group else ():
            changes = [row for name in group for row in gains(rows, name, way)]
            low = min(row["mb_per_s"] for row in changes)
            high = max(row["mb_per_s"] for row in changes)
            grown = max(row["size_kib"] for row in changes)
            words.append(
                f"{label}, {way} of each zone: bandwidth {low:+.0f} to {high:+.0f} %, size up to {grown:+.1f} %"
            )
            sized.append(grown <= 5)
            flat.append(low >= -5 and high <= 5)
            gained.append(high > 5)
    plots = [
        plot
        for base, figure in (("exchange", "5.8"), ("msn", "5.9"), ("build", "5.10"))
        for plot in zone_plots(rows, of_real(rows, base)[0], f"Figure {figure}", ("all",))
    ]
    return Answer(
        Verdict.of(all(sized) and all(flat), all(sized) and not any(gained)),
        "; ".join(words),
        workload=", ".join(map(name_of, names)),
        plots=plots,
    )


def ranks(values: Sequence[float]) -> list[float]:
    """Average ranks."""
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
        for value in values
    ]


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's coefficient."""
    x, y = ranks(a), ranks(b)
    mean = (len(x) + 1) / 2
    cov = sum((p - mean) * (q - mean) for p, q in zip(x, y, strict=True))
    var = sum((p - mean) ** 2 for p in x) * sum((q - mean) ** 2 for q in y)
    return cov / var**0.5 if var else 0.0


@claim("D5.9", needs="zones")
def d5_9(found: Found) -> Answer:
    """Rank correlation of the gains in size and in bandwidth above .8, over all workloads and cells."""
    rows = found["zones"]
    names = dict.fromkeys(row["workload"] for row in rows)
    rho, lines = {}, []
    for way in WAYS:
        for base in ("noop", "none"):
            every = [row for name in names for row in gains(rows, name, way, base)]
            sizes = [row["size_kib"] / 100 for row in every]
            speeds = [row["mb_per_s"] / 100 for row in every]
            rho[way, base] = rank_correlation(sizes, speeds)
            if base == "noop":
                ends = [at for at, row in enumerate(every) if row["zones"] in (1, 16)]
                lines.append(
                    Line(
                        f"{way} of each zone",
                        [sizes[at] for at in ends],
                        [speeds[at] for at in ends],
                    )
                )
    against = {"noop": "noop", "none": "unmerged requests"}
    return Answer(
        Verdict.of(
            all(value > 0.8 for value in rho.values()), all(value > 0.4 for value in rho.values())
        ),
        "rank correlation: "
        + "; ".join(
            f"{way} of each zone against {against[base]} {value:.2f}"
            for (way, base), value in rho.items()
        ),
        plots=[
            Plot(
                "Gains over noop, 1 and 16 zones", "gain in request size", "gain in bandwidth", lines,
                x_format="share", y_format="share", points=True,
            )
        ],
    )  # fmt: skip


@claim("D5.10", needs="zones")
def d5_10(found: Found) -> Answer:
    """Front merges under 5 % of all merges, on every real trace."""
    rows = found["zones"]
    counts = {}
    for name in dict.fromkeys(row["workload"] for row in rows):
        bars = [base_of(cell, "deadline") for cell in cells(rows, name)]
        counts[name] = (
            sum(bar["front_merges"] for bar in bars),
            sum(bar["back_merges"] for bar in bars),
        )
    real = dict.fromkeys(row["workload"] for row in rows if row["real"])
    words = [f"{name_of(name)} {counts[name][0]:,} of {sum(counts[name]):,}" for name in real]
    stand_ins = [counts[name] for name in counts if name not in real]
    fronts, backs = (sum(each) for each in zip(*stand_ins, strict=True))
    words.append(f"stand-ins {fronts:,} of {fronts + backs:,}")
    shares = {
        name: front / (front + back) for name, (front, back) in counts.items() if front + back
    }
    of = [shares[name] for name in real if name in shares]
    # What adjoins in a stand-in without runs does so by chance, in front as often as behind.
    verdict = Verdict.of(max(of) <= 0.05, max(of) < 0.5) if of else Verdict.UNTESTABLE
    names = list(shares)
    return Answer(
        verdict,
        f"front merges of all merges: {'; '.join(words)}",
        workload=", ".join(map(name_of, real)) or "stand-ins, which cannot tell",
        plots=[
            Plot(
                "Front merges under deadline", "workload", "share of all merges",
                [Line("front merges", list(range(len(names))), [shares[name] for name in names])],
                y_format="share", ticks=[(at, name_of(name)) for at, name in enumerate(names)],
                levels=[("5 %", 0.05)], points=True,
            )
        ],
    )  # fmt: skip
