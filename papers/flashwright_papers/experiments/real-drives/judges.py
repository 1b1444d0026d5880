"""The rules of the claims about real drives, as code."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flashwright_papers import Answer, Found, Line, Plot, Verdict, claim

from .measured import Figure, measured
from .models import MAX, P5520, PE8110, Model
from .runs import USED, ZONES

Row = Mapping[str, Any]

WA = "write amplification"
SHARES = tuple(f"uniform, {100 * used:.0f} % used" for used in USED)
# Tolerances: where each comes from is said in claims.toml.
WA_SHARES = 0.02
BREAKS = {SHARES[0]: 0.1, SHARES[1]: 0.03}
LOWEST_AT = 0.07
SETTLED_FROM = 0.15
FREE_POINTS = 1.5
WA_ONE_ZONE, WA_ZONES = 0.01, 0.05
WA_P5520 = 0.08
BREAK_P5520, BREAK_PE8110 = 0.03, 0.01
# By how much two speeds of a drive differ at least for their order to be judged, where no run says how far it varies:
# how far they repeat.
REPEATS = {MAX.name: 0.006, P5520.name: 0.08, PE8110.name: 0.006}


def by_load(rows: Sequence[Row]) -> dict[str, Row]:
    """The first run of each load, with the means over all its runs in place of its figures."""
    found: dict[str, Row] = {}
    for load in dict.fromkeys(row["load"] for row in rows):
        runs = [row for row in rows if row["load"] == load]
        means = {
            name: float(np.mean([row[name] for row in runs]))
            for name in ("write_amplification", "break", "hardest_at", "settled_from")
            if name in runs[0]
        }
        found[load] = {**runs[0], **means}
    return found


def off(ours: float, figure: Figure) -> float:
    """By what share ours is above the figure."""
    return ours / figure.value - 1


def describe_value(load: str, ours: float, figure: Figure, form: str = ".3f") -> str:
    """Ours beside the figure, with the deviation in per cent."""
    return f"{load} {ours:{form}} ({figure.value:g}, {100 * off(ours, figure):+.1f} %)"


def describe_position(load: str, ours: float, figure: Figure) -> str:
    """A position beside the figure, with the deviation in capacities."""
    return f"{load} {ours:.3f} ({figure.value:g}, {ours - figure.value:+.3f})"


def series(title: str, rows: Sequence[Row], floor: float) -> Plot:
    """Write amplification since the fill."""
    lines = [
        Line(row["load"], row["series_at"], [floor * value for value in row["series"]])
        for row in rows
    ]
    return Plot(title, "capacities written since the fill", WA, thinned(lines))


def thinned(lines: Sequence[Line], most: int = 200) -> list[Line]:
    """Lines of at most so many points together."""
    step = -(-sum(len(line.x) for line in lines) // most)
    return [Line(line.label, line.x[::step], line.y[::step]) for line in lines]


@claim("R1", needs="shares")
def wa_of_shares(found: Found) -> Answer:
    """Uniform writes within a part of the addresses."""
    rows = by_load(found["shares"])
    pairs = {
        load: (MAX.floor * row["write_amplification"], measured(MAX.name, "P2", load, WA))
        for load, row in rows.items()
    }
    worst = max(abs(off(*pair)) for pair in pairs.values())
    lines = [
        Line("model", [100 * used for used in USED], [pairs[load][0] for load in SHARES]),
        Line(
            "drive",
            [100 * used for used in USED],
            [pairs[load][1].value for load in SHARES],
            paper=True,
        ),
    ]
    plots = [
        Plot("Steady write amplification", "addresses in use, %", WA, lines),
        series("7450 MAX, uniform writes", found["shares"], MAX.floor),
    ]
    ours = "; ".join(describe_value(load, *pair) for load, pair in pairs.items())
    return Answer(Verdict.of(worst <= WA_SHARES, worst <= 0.05), f"{ours}.", plots=plots)


@claim("R2", needs="shares")
def breaks_of_shares(found: Found) -> Answer:
    """Where cleaning begins."""
    rows = by_load(found["shares"])
    fine, said = True, []
    for load in SHARES:
        ours, figure = rows[load]["break"], measured(MAX.name, "P2", load, "break")
        if load in BREAKS:
            fine &= abs(ours - figure.value) <= BREAKS[load]
        said.append(describe_position(load, ours, figure) + ("" if load in BREAKS else ", fitted"))
    return Answer(Verdict.of(fine), f"{'; '.join(said)}.")


@claim("R3", needs="shares")
def lowest_of_shares(found: Found) -> Answer:
    """Where the speed is lowest."""
    return lowest(MAX, "P2", found["shares"], SHARES)


@claim("R4", needs="shares")
def settled_of_shares(found: Found) -> Answer:
    """From where on the run is settled."""
    rows = by_load(found["shares"])
    pairs = {
        load: (rows[load]["settled_from"], measured(MAX.name, "P2", load, "settled from"))
        for load in SHARES
    }
    worst = max(abs(off(*pair)) for pair in pairs.values())
    ours = "; ".join(describe_value(load, *pair, form=".2f") for load, pair in pairs.items())
    return Answer(Verdict.of(worst <= SETTLED_FROM, worst <= 0.5), f"{ours}.")


@claim("R5", needs="fills")
def free_blocks(found: Found) -> Answer:
    """Free blocks after the fill."""
    pairs = []
    for row in found["fills"]:
        load = f"uniform, {100 * row['used']:.0f} % used"
        figure = measured(MAX.name, "P2", load, "free blocks after the fill")
        pairs.append((load, 100 * row["free"], figure.value))
    fine = all(abs(ours - value) <= FREE_POINTS for _, ours, value in pairs)
    ours = "; ".join(f"{load} {ours:.1f} % ({value:g})" for load, ours, value in pairs)
    return Answer(Verdict.of(fine), f"{ours}.")


@claim("R6", needs="max-zones")
def zones(found: Found) -> Answer:
    """Zones written side by side."""
    fine, rough, said = True, True, []
    means: dict[str, float] = {}
    for load, (active, size) in ZONES.items():
        values = [
            MAX.floor * row["write_amplification"]
            for row in found["max-zones"]
            if row["load"] == load
        ]
        figure = measured(MAX.name, "P3", load, WA)
        means[load] = float(np.mean(values))
        said.append(describe_value(load, means[load], figure))
        if max(values) > min(values):
            said[-1] += f", runs {min(values):.3f} to {max(values):.3f}"
        if figure.use == "fitted":
            said[-1] += ", fitted"
            continue
        deviation = abs(off(means[load], figure))
        fine &= deviation <= (WA_ONE_ZONE if active == 1 and size > 1 else WA_ZONES)
        rough &= deviation <= 0.1
    where = list(range(1, len(ZONES) + 1))
    plot = Plot(
        "Zones side by side, 7450 MAX",
        "zones",
        WA,
        [
            Line("model", where, list(means.values())),
            Line(
                "drive",
                where,
                [measured(MAX.name, "P3", load, WA).value for load in ZONES],
                paper=True,
            ),
        ],
        ticks=list(zip(map(float, where), ZONES, strict=True)),
        points=True,
    )
    return Answer(Verdict.of(fine, rough), f"{'; '.join(said)}.", plots=[plot])


@claim("R7", needs="max-patterns")
def order_on_max(found: Found) -> Answer:
    """Which pattern is faster on the 7450 MAX."""
    return order(MAX, "P1", found["max-patterns"])


@claim("R10", needs="p5520-patterns")
def wa_uniform_p5520(found: Found) -> Answer:
    """Uniform writes on the P5520."""
    return wa_of_p5520(found, "uniform")


@claim("R11", needs="p5520-patterns")
def wa_zipf_p5520(found: Found) -> Answer:
    """Skewed writes on the P5520."""
    return wa_of_p5520(found, "Zipf 0.8")


def wa_of_p5520(found: Found, load: str) -> Answer:
    row = by_load(found["p5520-patterns"])[load]
    ours, figure = P5520.floor * row["write_amplification"], measured(P5520.name, "P1", load, WA)
    deviation = abs(off(ours, figure))
    plot = series(f"P5520, {load}", [row], P5520.floor)
    verdict = Verdict.of(deviation <= WA_P5520, deviation <= 2 * WA_P5520)
    return Answer(verdict, f"{describe_value(load, ours, figure)}.", plots=[plot])


@claim("R12", needs="p5520-patterns")
def breaks_of_p5520(found: Found) -> Answer:
    """Where cleaning begins on the P5520."""
    return breaks(P5520, found["p5520-patterns"], ("uniform", "Zipf 0.8"), BREAK_P5520)


@claim("R13", needs="p5520-patterns")
def lowest_of_p5520(found: Found) -> Answer:
    """Where the P5520 is slowest."""
    return lowest(P5520, "P1", found["p5520-patterns"], ("uniform", "Zipf 0.8"))


@claim("R14", needs="p5520-patterns")
def order_on_p5520(found: Found) -> Answer:
    """Which pattern is faster on the P5520."""
    return order(P5520, "P1 again", found["p5520-patterns"])


@claim("R17", needs="pe8110-patterns")
def breaks_of_pe8110(found: Found) -> Answer:
    """Where cleaning begins on the PE8110."""
    return breaks(PE8110, found["pe8110-patterns"], ("uniform", "Zipf 0.4"), BREAK_PE8110)


@claim("R18", needs="pe8110-patterns")
def lowest_of_pe8110(found: Found) -> Answer:
    """Where the PE8110 is slowest."""
    loads = ("uniform", "Zipf 0.4", "Zipf 0.8")
    return lowest(PE8110, "P1", found["pe8110-patterns"], loads)


@claim("R19", needs="pe8110-patterns")
def order_on_pe8110(found: Found) -> Answer:
    """Which pattern is faster on the PE8110."""
    return order(PE8110, "P1", found["pe8110-patterns"])


@claim("R23", needs="pe8110-zones")
def zones_on_pe8110(found: Found) -> Answer:
    """Which zones are faster on the PE8110."""
    return order(PE8110, "P3", found["pe8110-zones"], "mean")


@claim("R24", needs="p5520-zones")
def zones_on_p5520(found: Found) -> Answer:
    """Which zones are faster on the P5520."""
    return order(P5520, "P3", found["p5520-zones"], "mean")


def breaks(model: Model, rows: Sequence[Row], loads: Sequence[str], within: float) -> Answer:
    known = by_load(rows)
    pairs = {
        load: (known[load]["break"], measured(model.name, "P1", load, "break")) for load in loads
    }
    fine = all(abs(ours - figure.value) <= within for ours, figure in pairs.values())
    said = "; ".join(describe_position(load, *pair) for load, pair in pairs.items())
    return Answer(Verdict.of(fine), f"{said}.")


def lowest(model: Model, protocol: str, rows: Sequence[Row], loads: Sequence[str]) -> Answer:
    """Where cleaning costs most, against where the speed is lowest."""
    known = by_load(rows)
    pairs = {
        load: (known[load]["hardest_at"], measured(model.name, protocol, load, "lowest at"))
        for load in loads
    }
    within = [abs(ours - figure.value) <= LOWEST_AT for ours, figure in pairs.values()]
    said = "; ".join(describe_position(load, *pair) for load, pair in pairs.items())
    return Answer(Verdict.of(all(within), any(within)), f"{said}.")


def order(model: Model, protocol: str, rows: Sequence[Row], figure: str = "steady") -> Answer:
    """Of two loads the slower must have the higher write amplification.

    Speed is what the flash programs a second over write amplification, and that cannot grow with cleaning, which reads
    too. So the order needs no times; what the flash programs is told, and would be constant if reading took no time.
    """
    ours = {load: row["write_amplification"] for load, row in by_load(rows).items()}
    speeds = {load: measured(model.name, protocol, load, figure) for load in ours}
    # What is fitted to the speed of a zone is the time of trims, of which write amplification knows nothing.
    judged_loads = [
        load for load, each in speeds.items() if each.use == "judged" or protocol == "P3"
    ]
    held, wrong = 0, []
    for one, other in itertools.combinations(judged_loads, 2):
        slow, fast = sorted((one, other), key=lambda load: speeds[load].value)
        if not apart(speeds[slow], speeds[fast]):
            continue
        held += ours[slow] > ours[fast]
        if ours[slow] <= ours[fast]:
            wrong.append(f"{slow} before {fast}")
    floor = model.floor or 1.0
    media = {load: floor * ours[load] * speeds[load].value for load in ours}
    each = ", ".join(
        f"{load} {floor * ours[load]:.3f} ({speeds[load].value:g} MiB/s)"
        + ("" if load in judged_loads else " [fitted]")
        for load in sorted(ours, key=lambda load: ours[load])
    )
    said = (
        f"Write amplification (speed of the drive): {each}; {held} of {held + len(wrong)} pairs in order"
        + (f", not {'; '.join(wrong)}" if wrong else "")
        + f". Their products are {min(media.values()):,.0f} to {max(media.values()):,.0f} MiB/s."
    )
    plot = Plot(
        f"{model.name}: {'zones' if protocol == 'P3' else 'patterns'}",
        WA,
        "speed of the drive, MiB/s",
        [Line(load, [floor * ours[load]], [speeds[load].value]) for load in ours],
        points=True,
    )
    pairs = held + len(wrong)
    return Answer(Verdict.of(not wrong, held > pairs / 2), said, plots=[plot])


def apart(slow: Figure, fast: Figure) -> bool:
    """Whether two speeds of a drive differ by more than they vary: within a run, or from run to run."""
    if slow.deviation is not None and fast.deviation is not None:
        return fast.value - slow.value > slow.deviation + fast.deviation
    return fast.value / slow.value - 1 > REPEATS[slow.drive]
