"""The rules of the container-marking report's claims.

Of the two readings of marking's window the one per list decides; what came out with the other is told beside it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from flashwright import Ssd
from flashwright.papers import Answer, Found, Line, Plot, Verdict, claim

from .runs import (
    D30,
    D70,
    EACH_LIST,
    FIFO,
    LIVES_AT,
    PER_LIST,
    SKEWED,
    TRACES,
    UNIFORM,
    WINDOWED,
    Z80,
    Z95,
)

Row = Mapping[str, Any]
MARKINGS = (PER_LIST, EACH_LIST)
# Table IV: FIFO, windowed greedy, container marking.
TABLE_IV = {
    "financial1": (4.22, 3.16, 2.12),
    "proj-0": (3.99, 1.89, 1.58),
    "src1-2": (4.10, 1.90, 1.78),
    "prxy-0": (4.62, 1.64, 1.33),
}
# Table III: requests, reads in percent, size of writes in pages of 4 KiB, milliseconds between arrivals.
TABLE_III = {
    "financial1": (5_334_987, 23.2, 1.30, 8.13),
    "proj-0": (4_224_524, 12.5, 9.53, 64.33),
    "src1-2": (1_907_773, 25.4, 7.31, 87.29),
    "prxy-0": (12_518_968, 3.1, 1.77, 39.32),
}
U = "utilisation"


def closed_form(u: float) -> float:
    """FIFO's amplification under uniform writes."""
    x = 0.0
    for _ in range(10_000):
        x = math.exp(-(1 - x) / u)
    return 1 / (1 - x)


class Amplification:
    """Amplification by workload, utilisation and policy."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = {(row["load"], row["u"], row["policy"]): row for row in rows}
        self.at = sorted({row["u"] for row in rows})

    def __call__(self, load: str, u: float, policy: str) -> float:
        """Its value; a drive that stalled has none and fails every comparison."""
        row = self.rows[load, u, policy]
        return math.nan if row["error"] else float(row["write_amplification"])

    def gain(self, load: str, u: float, policy: str) -> float:
        """By how much a policy is below windowed greedy."""
        return 1 - self(load, u, policy) / self(load, u, WINDOWED)

    def stalls(self) -> str:
        """The runs that ended early."""
        found = [
            f"{load} at {u}, {policy}"
            for (load, u, policy), row in self.rows.items()
            if row["error"]
        ]
        return f" Stalled: {'; '.join(found)}." if found else ""


def points(value: Any) -> list[float | None]:
    """Values of y, with gaps where there is none."""
    return [None if math.isnan(each) else each for each in value]


def ordering(hits: Sequence[bool]) -> tuple[float, Verdict]:
    """An order must hold at 80 % of the points; at more than half is its direction."""
    held = sum(hits) / len(hits)
    return held, Verdict.of(held >= 0.8, direction=held > 0.5)


def readings(told: Mapping[str, tuple[str, Verdict]], what: str, **how: Any) -> Answer:
    """An answer by the reading per list, with the other beside it."""
    (mine, verdict), (other, _) = told[PER_LIST], told[EACH_LIST]
    return Answer(verdict, f"{what}: {mine} (per list); {other} (each list).", **how)


def figure_3(found: Found, loads: Sequence[str] = SKEWED) -> list[Plot]:
    """Panels of Figure 3."""
    wa = Amplification(found["curves"])
    return [
        Plot(
            f"Figure 3: write amplification, {load}",
            U,
            "write amplification",
            [
                Line(policy, wa.at, points(wa(load, u, policy) for u in wa.at))
                for policy in (FIFO, WINDOWED, *MARKINGS)
            ],
        )
        for load in loads
    ]


@claim("M1", needs=("curves", "separated"))
def m1(found: Found) -> Answer:
    """Static data, mixed and apart."""
    wa = Amplification(found["curves"])
    excess = {load: [wa(load, u, FIFO) / closed_form(u) - 1 for u in wa.at] for load in (D30, D70)}
    apart = {
        (row["static"], row["u"]): (row["write_amplification"], closed_form(row["dynamic"]))
        for row in found["separated"]
        if not row["error"]
    }
    off = max(abs(ours / theory - 1) for ours, theory in apart.values())
    gaps = {
        static: [wa(load, u, FIFO) / apart[static, u][0] for u in wa.at]
        for static, load in ((0.3, D30), (0.7, D70))
    }
    grows = all(a < b for line in gaps.values() for a, b in itertools.pairwise(line))
    grows &= all(a < b for a, b in zip(*gaps.values(), strict=True))
    unused = max(abs(each) for each in excess[D30]) <= 0.05 and min(excess[D70]) > -0.02
    plots = [
        Plot(
            f"Figure 1({panel}): FIFO, {100 * static:.0f} % static",
            U,
            "write amplification",
            [
                Line("mixed", wa.at, points(wa(load, u, FIFO) for u in wa.at)),
                Line(
                    "ideal placement",
                    sorted({u for _, u in apart}),
                    [apart[static, u][0] for u in sorted({u for _, u in apart})],
                ),
                Line("uniform writes, closed form", wa.at, [closed_form(u) for u in wa.at]),
            ],
        )
        for panel, static, load in (("a", 0.3, D30), ("b", 0.7, D70))
    ]

    def told(values: Sequence[float], form: str) -> str:
        return ", ".join(format(value, form) for value in values)

    over = {load: told([100 * each for each in values], ".1f") for load, values in excess.items()}
    ours = (
        f"At u = {told(wa.at, 'g')}: mixed FIFO above uniform writes by {over[D30]} % (30 % static) and {over[D70]} % "
        f"(70 %); mixed over ideal {told(gaps[0.3], '.2f')} and {told(gaps[0.7], '.2f')} times; ideal within "
        f"{100 * off:.1f} % of the closed form."
    )
    return Answer(Verdict.of(grows and unused and off <= 0.03, direction=grows), ours, plots=plots)


@claim("M2", "M18", needs=("curves", "greedy"))
def near_greedy(found: Found) -> dict[str, Answer]:
    """FIFO and windowed greedy against greedy on uniform writes."""
    wa = Amplification(found["curves"])
    full = {row["u"]: row["write_amplification"] for row in found["greedy"]}
    answers = {}
    for id_, policy, name in (("M2", FIFO, "FIFO"), ("M18", WINDOWED, "Windowed greedy")):
        over = [wa(UNIFORM, u, policy) / full[u] - 1 for u in full]
        lines = [
            Line(policy, wa.at, points(wa(UNIFORM, u, policy) for u in wa.at)),
            Line("greedy", list(full), list(full.values())),
        ]
        ours = ", ".join(f"{100 * x:.1f} % (u = {u})" for u, x in zip(full, over, strict=True))
        answers[id_] = Answer(
            Verdict.of(max(over) <= 0.07, direction=max(over) <= 0.15),
            f"{name} above greedy by {ours}.",
            plots=[Plot("Uniform writes", U, "write amplification", lines)],
        )
    return answers


@claim("M3", needs=("updates", "moves"))
def m3(found: Found) -> Answer:
    """Table I."""
    fine = all(
        # Page i of 2L, updated i times, lies at L + i; those that reach 2L lie together.
        row["together"] == sorted([1] * row["levels"] + [row["levels"]])
        for row in found["updates"]
    )
    printed = {0.5: 1.0, 0.6: 0.8, 0.7: 0.5, 0.8: 0.167, 0.9: 0.125}
    shares = {}
    for u, p in printed.items():
        rows = [row for row in found["moves"] if row["u"] == u]
        moved, down = (sum(row[what] for row in rows) for what in ("moved", "down"))
        shares[u] = down / moved
        # Four standard deviations of so many draws.
        fine &= abs(shares[u] - p) <= 4 * math.sqrt(p * (1 - p) / moved)
        fine &= all(row["settled"] for row in rows)
    lines = [
        Line("ours", list(shares), list(shares.values())),
        Line("report", list(printed), list(printed.values()), paper=True),
    ]
    plot = Plot(
        "Table I: p(u)", U, "moved pages that go down", lines, y_format="share", points=True
    )
    told = ", ".join(f"{share:.3f} at u = {u}" for u, share in shares.items())
    heights = ", ".join(str(row["levels"]) for row in found["updates"])
    return Answer(
        Verdict.of(fine),
        f"New pages at L, each update one up, none above 2L, for L = {heights}; of 3,000 moved pages each went down by "
        f"one: {told}.",
        plots=[plot],
    )


@claim("M4")
def m4(found: Found) -> Answer:
    """RAM of the marking."""
    config = Ssd.named("container-marking-scaled").config
    pages = config["geometry"]["pages-per-block"]
    page = 1024 * int(config["geometry"]["page-size"].removesuffix(" KiB"))
    markers = 2 * config["placement"]["container-marking"]["levels"]
    fits = markers <= 2**4 and pages <= 2**8 and config["wear"]["pe-cycles-max"] <= 2**20
    mb = 300e9 / (pages * page) * 4 / 1e6
    mib = 300 * 2**30 / (pages * page) * 4 / 2**20
    return Answer(
        Verdict.of(fits and abs(mib / 4.8 - 1) <= 0.05, direction=fits),
        f"{markers} markers, {pages} pages a block and the cycles fit 4, 8 and 20 bits; {mib:.2f} MiB for 300 GiB, "
        f"{mb:.2f} MB for 300 x 10^9 B.",
    )


@claim("M5", needs="curves")
def m5(found: Found) -> Answer:
    """Windowed greedy and FIFO."""
    wa = Amplification(found["curves"])
    gaps = [1 - wa(load, u, WINDOWED) / wa(load, u, FIFO) for load in SKEWED for u in wa.at]
    held, verdict = ordering([gap > 0 for gap in gaps])
    return Answer(
        verdict,
        f"Windowed greedy below FIFO at {100 * held:.0f} % of the points, by {100 * min(gaps):.2f} to "
        f"{100 * max(gaps):.2f} %.",
        plots=figure_3(found),
    )


@claim("M6", needs="curves")
def m6(found: Found) -> Answer:
    """Marking and both others."""
    wa = Amplification(found["curves"])
    told = {}
    for reading in MARKINGS:
        better = {
            (load, u): wa(load, u, reading) < min(wa(load, u, p) for p in (FIFO, WINDOWED))
            for load in SKEWED
            for u in wa.at
        }
        held, verdict = ordering(list(better.values()))
        worse = [f"{load} at {u}" for (load, u), good in better.items() if not good]
        told[reading] = (
            f"{100 * held:.0f} % of the points" + (f", not {', '.join(worse)}" if worse else ""),
            verdict,
        )
    answer = readings(told, "Marking below both at", plots=figure_3(found))
    return Answer(answer.verdict, answer.ours + wa.stalls(), plots=answer.plots)


@claim("M7", needs="curves")
def m7(found: Found) -> Answer:
    """What the gap grows with."""
    wa = Amplification(found["curves"])
    high = [u for u in wa.at if u >= 0.7]
    told = {}
    for reading in MARKINGS:
        pairs = ((D30, D70), (Z80, Z95))
        orders = [
            wa.gain(more, u, reading) > wa.gain(less, u, reading)
            for u in high
            for less, more in pairs
        ]
        texts = [
            ", ".join(f"{100 * wa.gain(load, u, reading):.0f}" for load in SKEWED) + f" % at {u}"
            for u in high
        ]
        told[reading] = ("; ".join(texts), ordering(orders)[1])
    what = f"Below windowed greedy by ({', '.join(SKEWED)})"
    return readings(told, what, plots=[reductions(found, SKEWED)])


def reductions(found: Found, loads: Sequence[str]) -> Plot:
    """By how much marking is below windowed greedy, with what the report's text says at u = 0.8."""
    wa = Amplification(found["curves"])
    lines = [Line(load, wa.at, points(wa.gain(load, u, PER_LIST) for u in wa.at)) for load in loads]
    lines += [
        Line(f"report, {load}", [0.8], [value], paper=True)
        for load, value in ((D70, 0.36), (Z95, 0.51))
        if load in loads
    ]
    title = "Marking (per list) below windowed greedy"
    return Plot(title, U, "reduction of write amplification", lines, y_format="share")


@claim("M8", needs="curves")
def m8(found: Found) -> Answer:
    """The reductions that the text gives."""
    wa = Amplification(found["curves"])
    told = {}
    for reading in MARKINGS:
        static, zipf = (wa.gain(load, 0.8, reading) for load in (D70, Z95))
        told[reading] = (
            f"{-100 * static:+.0f} % and {-100 * zipf:+.0f} %",
            Verdict.of(
                0.2 <= static <= 0.6 and 0.4 <= zipf <= 0.6, direction=static > 0 and zipf > 0
            ),
        )
    lines = []
    for load, reading in itertools.product((D70, Z95), MARKINGS):
        row = wa.rows[load, 0.8, reading]
        if not row["error"]:
            step = row["drive_writes"] / len(row["series"])
            ends = [step * (number + 1) for number in range(len(row["series"]))]
            lines.append(Line(f"{load}, {reading}", ends, row["series"]))
    series = Plot(
        "Amplification until it settles, u = 0.8", "drive writes", "write amplification", lines
    )
    writes = wa.rows[D70, 0.8, PER_LIST]["drive_writes"]
    what = f"D&S 70 % and Zipf 95/20 at u = 0.8, last fifth of {writes} drive writes"
    return readings(told, what, plots=[reductions(found, (D70, Z95)), series])


@claim("M9", needs="levels")
def m9(found: Found) -> Answer:
    """More levels."""
    known = {
        row["levels"]: row["write_amplification"] for row in found["levels"] if not row["error"]
    }
    first = [level for level in (1, 2, 4, 8) if level in known]
    falling = [known[a] > known[b] for a, b in itertools.pairwise(first)]
    flat = {8, 16} <= known.keys() and abs(known[16] / known[8] - 1) < 0.1
    plot = Plot(
        "Zipf 95/20, u = 0.8",
        "L",
        "write amplification",
        [Line("marking, per-list", list(known), list(known.values()))],
        x_format="count",
    )
    return Answer(
        Verdict.of(len(falling) == 3 and all(falling) and flat, direction=falling[:1] == [True]),
        "Amplification by L: "
        + ", ".join(f"{value:.2f} ({at})" for at, value in known.items())
        + ".",
        plots=[plot],
    )


def lived(found: Found) -> dict[tuple[str, float, str], float]:
    """Endurance efficiency by workload, utilisation and policy; none where a life did not end."""
    return {
        (row["load"], row["u"], row["policy"]): math.nan
        if row["error"]
        else row["endurance_efficiency"]
        for row in found["lives"]
    }


def figure_4(found: Found, loads: Sequence[str]) -> list[Plot]:
    """Panels of Figure 4."""
    life = lived(found)
    return [
        Plot(
            f"Figure 4: endurance efficiency, {load}",
            U,
            "endurance efficiency",
            [
                Line(policy, LIVES_AT, points(life[load, u, policy] for u in LIVES_AT))
                for policy in (FIFO, WINDOWED, *MARKINGS)
            ],
        )
        for load in loads
    ]


@claim("M10", needs="lives")
def m10(found: Found) -> Answer:
    """Endurance."""
    life = lived(found)
    told = {}
    alike = all(
        abs(life[load, u, WINDOWED] / life[load, u, FIFO] - 1) < 0.05
        for load in (D30, Z80, Z95)
        for u in LIVES_AT
    )
    for reading in MARKINGS:
        longer = [
            life[load, u, reading] > max(life[load, u, FIFO], life[load, u, WINDOWED])
            for load in SKEWED
            for u in LIVES_AT
        ]
        times = {
            (load, u): life[load, u, reading] / life[load, u, WINDOWED]
            for load in SKEWED
            for u in LIVES_AT
        }
        orders = [
            times[more, u] > times[less, u]
            for less, more in ((D30, D70), (Z80, Z95))
            for u in LIVES_AT
        ]
        verdict = ordering(longer)[1]
        if verdict is Verdict.REPRODUCED and not (alike and ordering(orders)[1] is verdict):
            verdict = Verdict.DIRECTION
        texts = [
            ", ".join(f"{times[load, u]:.2f}" for load in SKEWED) + f" at {u}" for u in LIVES_AT
        ]
        told[reading] = ("; ".join(texts), verdict)
    close = [
        abs(life[load, u, WINDOWED] / life[load, u, FIFO] - 1) for load in SKEWED for u in LIVES_AT
    ]
    what = (
        f"Windowed greedy lives as FIFO within {100 * max(close):.1f} %; marking lives so many times as long "
        f"({', '.join(SKEWED)})"
    )
    return readings(told, what, plots=figure_4(found, SKEWED))


def doubled(found: Found, reading: str) -> tuple[list[float], Verdict]:
    """How many times as long marking lives under Zipf 95/20."""
    life = lived(found)
    times = [life[Z95, u, reading] / life[Z95, u, WINDOWED] for u in LIVES_AT]
    return times, Verdict.of(
        all(1.5 <= each <= 2.5 for each in times), direction=all(each > 1 for each in times)
    )


@claim("M11", needs="lives")
def m11(found: Found) -> Answer:
    """Doubled endurance."""
    told = {}
    for reading in MARKINGS:
        times, verdict = doubled(found, reading)
        told[reading] = (", ".join(f"{each:.2f}" for each in times) + " times", verdict)
    what = f"Zipf 95/20 at u = {', '.join(map(str, LIVES_AT))}, life over windowed greedy's"
    return readings(told, what, plots=figure_4(found, (Z95,)))


@claim("M12", needs="probability")
def m12(found: Found) -> Answer:
    """Without the probability."""
    value = {
        (row["rotate"], row["u"], row["demotion"]): math.nan
        if row["error"]
        else row["write_amplification"]
        for row in found["probability"]
    }
    told, lines = [], []
    for rotate, what in (("share", "75 % valid"), ("full", "fully valid")):
        texts = [
            f"{value[rotate, u, 'table']:.2f} and {value[rotate, u, 'always']:.2f} at u = {u}"
            for u in (0.8, 0.9)
        ]
        told.append(f"{', '.join(texts)} (blocks {what} go to the tail)")
        lines += [
            Line(
                f"{name}, {what} to the tail",
                [0.8, 0.9],
                points(value[rotate, u, p] for u in (0.8, 0.9)),
            )
            for name, p in (("p(u) of Table I", "table"), ("p = 1", "always"))
        ]
    pairs = [(value["share", u, "table"], value["share", u, "always"]) for u in (0.8, 0.9)]
    return Answer(
        Verdict.of(
            all(b > 1.15 * a for a, b in pairs), direction=any(b > 1.05 * a for a, b in pairs)
        ),
        f"Zipf 95/20 with p(u) and with p = 1: {'; '.join(told)}.",
        plots=[Plot("Zipf 95/20, marking per list", U, "write amplification", lines)],
    )


@claim("M13", needs="table-3")
def m13(found: Found) -> Answer:
    """Table III."""
    rows = {row["trace"]: row for row in found["table-3"]}
    told = [
        f"{name}: {row['requests']:,} requests, {row['read_percent']:.1f} % reads, writes of {row['write_pages']:.2f} "
        f"pages, {row['inter_arrival_ms']:.2f} ms between arrivals"
        for name, row in rows.items()
    ]
    ours = (f"Traces and heads: {'; '.join(told)}" if told else "No trace given") + "."
    if not TABLE_III.keys() <= rows.keys():
        return Answer(Verdict.UNTESTABLE, ours, "Heads of real traces, if any")

    def near(value: float, printed: float) -> bool:
        return abs(value / printed - 1) <= 0.02

    fine = {
        name: all(
            near(value, of_report)
            for value, of_report in zip(
                (
                    rows[name]["requests"],
                    rows[name]["read_percent"],
                    rows[name]["write_pages"],
                    rows[name]["inter_arrival_ms"],
                ),
                printed,
                strict=True,
            )
        )
        for name, printed in TABLE_III.items()
    }
    return Answer(
        Verdict.of(all(fine.values()), direction=any(fine.values())), ours, "The real traces"
    )


def table_iv(found: Found) -> tuple[dict[str, dict[str, float]], str]:
    """Amplification by trace and policy, and what was played."""
    taken: dict[str, dict[str, float]] = {}
    for row in found["traces"]:
        if not row["error"]:
            name = row.get("trace", "financial1")
            taken.setdefault(name, {})[row["policy"]] = row["write_amplification"]
    real = {row["trace"] for row in found["traces"] if "trace" in row}
    missing = [name for name in TRACES if name not in real]
    if not missing:
        return taken, "The real traces"
    played = [*sorted(real), *([] if "financial1" in real else ["stand-in for financial1"])]
    return taken, f"{', '.join(played)}; not at hand: {', '.join(missing)}"


@claim("M14", needs=("traces", "heads"))
def m14(found: Found) -> Answer:
    """Table IV."""
    taken, workload = table_iv(found)
    columns = (FIFO, WINDOWED, PER_LIST)
    orders = {
        name: row[FIFO] >= row[WINDOWED] > row[PER_LIST]
        for name, row in taken.items()
        if set(columns) <= row.keys()
    }
    close = all(
        abs(taken[name][policy] / printed - 1) <= 0.25
        for name in orders
        for policy, printed in zip(columns, TABLE_IV[name], strict=True)
    )
    real = {row["trace"] for row in found["traces"] if "trace" in row}
    complete = real == orders.keys() == TABLE_IV.keys()
    told = [
        f"{name} " + " / ".join(f"{row[p]:.2f}" for p in (*columns, EACH_LIST) if p in row)
        for name, row in taken.items()
    ]
    heads: dict[str, list[float]] = {}
    for row in found["heads"]:
        heads.setdefault(row["trace"], []).append(row["write_amplification"])
    told += [f"{name} {' / '.join(f'{x:.2f}' for x in values)}" for name, values in heads.items()]
    at = {name: float(number) for number, name in enumerate(TABLE_IV)}
    lines = [
        Line(policy, [at[name] for name in orders], [taken[name][policy] for name in orders])
        for policy in columns
    ]
    lines += [
        Line(
            f"report, {policy}",
            list(at.values()),
            [row[number] for row in TABLE_IV.values()],
            paper=True,
        )
        for number, policy in enumerate(columns)
    ]
    plot = Plot(
        "Table IV: write amplification of traces, u = 0.8",
        "trace",
        "write amplification",
        lines,
        x_format="index",
        ticks=[(number, name) for name, number in at.items()],
        points=True,
    )
    return Answer(
        Verdict.of(
            complete and all(orders.values()) and close,
            direction=bool(orders) and sum(orders.values()) >= 0.8 * len(orders),
        ),
        f"FIFO / windowed greedy / marking per list / each list: {'; '.join(told)}.",
        workload,
        plots=[plot],
    )


@claim("M15", needs="traces")
def m15(found: Found) -> Answer:
    """Reductions on traces."""
    taken, workload = table_iv(found)
    cuts = {
        name: {reading: 1 - row[reading] / row[WINDOWED] for reading in MARKINGS if reading in row}
        for name, row in taken.items()
        if WINDOWED in row
    }
    mine = {name: row[PER_LIST] for name, row in cuts.items() if PER_LIST in row}
    real = {row["trace"] for row in found["traces"] if "trace" in row}
    most = mine.get("financial1", 0.0)
    complete = real == mine.keys() == TABLE_IV.keys()
    others = [cut for name, cut in mine.items() if name != "financial1"]
    met = complete and 0.2 <= most <= 0.45 and all(cut < most for cut in others)
    told = [
        f"{name} " + ", ".join(f"-{100 * cut:.0f} % ({reading})" for reading, cut in row.items())
        for name, row in cuts.items()
    ]
    at = {name: float(number) for number, name in enumerate(TABLE_IV)}
    plot = Plot(
        "Table IV: marking below windowed greedy, u = 0.8",
        "trace",
        "reduction of write amplification",
        [
            Line("marking, per-list", [at[name] for name in mine], list(mine.values())),
            Line(
                "report",
                list(at.values()),
                [1 - row[2] / row[1] for row in TABLE_IV.values()],
                paper=True,
            ),
        ],
        x_format="index",
        y_format="share",
        ticks=[(number, name) for name, number in at.items()],
        points=True,
    )
    verdict = Verdict.of(met, direction=most > 0)
    return Answer(verdict, f"Against windowed greedy: {'; '.join(told)}.", workload, plots=[plot])


@claim("M16", needs=("curves", "lives"))
def m16(found: Found) -> Answer:
    """The conclusion."""
    wa = Amplification(found["curves"])
    at = [u for u in wa.at if u in LIVES_AT]
    told = {}
    for reading in MARKINGS:
        gains = [wa.gain(Z95, u, reading) for u in at]
        times, longer = doubled(found, reading)
        halved = all(0.4 <= gain <= 0.6 for gain in gains)
        told[reading] = (
            f"amplification {', '.join(f'{-100 * gain:+.0f} %' for gain in gains)}, life "
            f"{', '.join(f'{each:.2f}' for each in times)} times",
            Verdict.of(
                halved and longer is Verdict.REPRODUCED,
                direction=all(gain > 0 for gain in gains) and longer is not Verdict.NOT,
            ),
        )
    what = f"Zipf 95/20, u = {', '.join(map(str, at))} (life at {', '.join(map(str, LIVES_AT))})"
    return readings(told, what, plots=[reductions(found, (Z95,)), *figure_4(found, (Z95,))])


@claim("M17")
def m17(found: Found) -> Answer:
    """Table II."""
    config = Ssd.named("container-marking").config
    geometry, timing = config["geometry"], config["timing"]
    ours = {
        "blocks a die": geometry["blocks-per-plane"] * geometry["planes-per-die"],
        "dies a channel": geometry["dies-per-channel"],
        "channels": geometry["channels"],
        "pages a block": geometry["pages-per-block"],
        "page": geometry["page-size"],
        "read": timing["read"],
        "program": timing["program"],
        "erase": timing["erase"],
        # Eight bits wide, so a byte a cycle.
        "bus": timing["bus-rate"],
    }
    printed = [4096, 2, 4, 64, "4 KiB", "50 us", "200 us", "700 us", "40 MB/s"]
    return Answer(
        Verdict.of(list(ours.values()) == printed),
        ", ".join(f"{name} {value}" for name, value in ours.items()) + ".",
    )
