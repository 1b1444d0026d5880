"""The rules of the container-marking report's claims about lifetime (Figure 4), with those of its summary."""

from __future__ import annotations

import math
from collections.abc import Sequence

from flashwright import Ssd
from flashwright_papers import Answer, Found, Line, Plot, Table, Verdict, claim

from .judging import MARKINGS, Amplification, U, ordering, points, readings, reductions
from .runs import D30, D70, FIFO, LIVES_AT, SKEWED, WINDOWED, Z80, Z95


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
    by_reading = {}
    same_lives = all(
        abs(life[load, u, WINDOWED] / life[load, u, FIFO] - 1) < 0.05
        for load in (D30, Z80, Z95)
        for u in LIVES_AT
    ) and all(abs(life[D70, u, WINDOWED] / life[D70, u, FIFO] - 1) >= 0.05 for u in LIVES_AT)
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
        if verdict is Verdict.REPRODUCED and not (same_lives and ordering(orders)[1] is verdict):
            verdict = Verdict.DIRECTION
        texts = [
            ", ".join(f"{times[load, u]:.2f}" for load in SKEWED) + f" at {u}" for u in LIVES_AT
        ]
        by_reading[reading] = ("; ".join(texts), verdict)
    close = [
        abs(life[load, u, WINDOWED] / life[load, u, FIFO] - 1) for load in SKEWED for u in LIVES_AT
    ]
    what = (
        f"Windowed greedy lives as FIFO within {100 * max(close):.1f} %; marking lives so many times as long "
        f"({', '.join(SKEWED)})"
    )
    return readings(by_reading, what, plots=figure_4(found, SKEWED))


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
    by_reading = {}
    for reading in MARKINGS:
        times, verdict = doubled(found, reading)
        by_reading[reading] = (", ".join(f"{each:.2f}" for each in times) + " times", verdict)
    what = f"Zipf 95/20 at u = {', '.join(map(str, LIVES_AT))}, life over windowed greedy's"
    return readings(by_reading, what, plots=figure_4(found, (Z95,)))


@claim("M16", needs=("curves", "lives"))
def m16(found: Found) -> Answer:
    """The conclusion."""
    wa = Amplification(found["curves"])
    at = [u for u in wa.at if u in LIVES_AT]
    by_reading = {}
    for reading in MARKINGS:
        gains = [wa.gain(Z95, u, reading) for u in at]
        times, longer = doubled(found, reading)
        halved = all(0.4 <= gain <= 0.6 for gain in gains)
        by_reading[reading] = (
            f"amplification {', '.join(f'{-100 * gain:+.0f} %' for gain in gains)}, life "
            f"{', '.join(f'{each:.2f}' for each in times)} times",
            Verdict.of(
                halved and longer is Verdict.REPRODUCED,
                direction=all(gain > 0 for gain in gains) and longer is not Verdict.NOT,
            ),
        )
    what = f"Zipf 95/20, u = {', '.join(map(str, at))} (life at {', '.join(map(str, LIVES_AT))})"
    return readings(by_reading, what, plots=[reductions(found, (Z95,)), *figure_4(found, (Z95,))])


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
        tables=[
            Table(
                "Table II",
                ("parameter", "printed", "ours"),
                [
                    (name, str(value), str(own))
                    for (name, own), value in zip(ours.items(), printed, strict=True)
                ],
            )
        ],
    )
