"""What a request costs as a drive and a study grow: six curves.

    python experiments/day/curves.py [--rounds 3] [--csv curves.csv] [--figure curves.svg]

Each curve varies one thing and leaves the rest: blocks of the drive, its dies, requests in flight, requests of the run,
windows of its time series, points of a sweep. The figure is processor time of the measured part over its requests (of
the whole sweep over its points), the least of several rounds, since other work on a machine only adds. The points of
all curves take turns, so that a slow minute spoils a round of each and not one curve. A *slope* is the exponent of the
power law through a curve: 0 is a cost that does not grow. Beside each cost stands the settled write amplification: a
drive of few blocks a die cleans more, and what that costs is no fault of the curve.
"""

from __future__ import annotations

import argparse
import csv
import math
import resource
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from flashwright import Ssd, sweep

# Four dies of 64 blocks.
BASE: dict[str, object] = {
    "geometry.channels": 2,
    "geometry.dies-per-channel": 2,
    "geometry.blocks-per-plane": 64,
    "capacity.utilization": 0.8,
}
REQUESTS = 200_000
DEPTH = 8


class Cost(NamedTuple):
    """Nanoseconds of processor time, and the write amplification (of the last run)."""

    ns: float
    amplification: float


class Row(NamedTuple):
    """A value of a curve, and its cost."""

    curve: str
    value: int
    ns: float
    amplification: float


@dataclass(frozen=True)
class Curve:
    """A curve: what varies, its values, and what one of them costs."""

    name: str
    unit: str
    values: Sequence[int]
    cost: Callable[[int], Cost]


def of_run(
    change: dict[str, object], *, requests: int = REQUESTS, depth: int = DEPTH, window: str = "off"
) -> Cost:
    """A request of uniform writes on a drive that was laid out as settled."""
    ssd = Ssd.named("default").with_(BASE | change).precondition("steady:laid-out")
    played = ssd.play("uniform:write=1", requests=requests, depth=depth, window=window)
    assert played.write_amplification is not None
    return Cost(played.json["run"]["cpu_s"] * 1e9 / requests, played.write_amplification)


def dies(count: int) -> dict[str, object]:
    """So many dies, four to a channel, at the same number of blocks."""
    channels = max(1, count // 4)
    return {
        "geometry.channels": channels,
        "geometry.dies-per-channel": count // channels,
        "geometry.blocks-per-plane": 8192 // count,
    }


def of_points(points: int) -> Cost:
    """A point of a sweep, whose runs take some milliseconds."""

    def used() -> float:
        both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(each.ru_utime + each.ru_stime for each in both)

    ssd = Ssd.named("default").with_(BASE).precondition("steady:laid-out")
    before = used()
    found = sweep(ssd, "uniform:write=1", seeds=points, requests=20_000, depth=DEPTH, jobs=1)
    mean = found.summaries[0].figures["write_amplification"].mean
    return Cost((used() - before) * 1e9 / points, mean)


CURVES = (
    Curve(
        "blocks",
        "blocks",
        (256, 1024, 4096, 16_384, 65_536),
        lambda n: of_run({"geometry.blocks-per-plane": n // 4}),
    ),
    Curve("dies", "dies", (1, 4, 16, 64, 256), lambda n: of_run(dies(n), depth=256)),
    Curve("depth", "in flight", (1, 4, 16, 64, 256, 1024), lambda n: of_run(dies(16), depth=n)),
    Curve("length", "requests", (20_000, 200_000, 2_000_000), lambda n: of_run({}, requests=n)),
    Curve(
        "windows",
        "windows",
        (1, 20, 400, 8000),
        lambda n: of_run({}, window=f"requests={REQUESTS // n}"),
    ),
    Curve("points", "points", (8, 32, 128, 512), of_points),
)


def measured(curves: Sequence[Curve], rounds: int) -> list[Row]:
    """The least cost of each value."""
    least: dict[tuple[str, int], Cost] = {}
    for _ in range(rounds):
        for curve in curves:
            for value in curve.values:
                at, cost = (curve.name, value), curve.cost(value)
                least[at] = min(least.get(at, cost), cost)
    return [Row(name, value, *cost) for (name, value), cost in least.items()]


def slope(values: Sequence[int], costs: Sequence[float]) -> float:
    """The exponent of the power law through a curve, by least squares of the logarithms."""
    x, y = [math.log(value) for value in values], [math.log(cost) for cost in costs]
    at, mean = sum(x) / len(x), sum(y) / len(y)
    return sum((a - at) * (b - mean) for a, b in zip(x, y, strict=True)) / sum(
        (a - at) ** 2 for a in x
    )


def drawn(rows: Sequence[Row], path: Path) -> None:
    """The six curves, each over its own axis, as costs over that of its first value."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    for curve, axes in zip(CURVES, figure.subplots(2, 3).flat, strict=True):
        own = [row for row in rows if row.curve == curve.name]
        costs = [row.ns / own[0].ns for row in own]
        axes.plot([row.value for row in own], costs, marker="o", color="#2a5d84")
        axes.set_xscale("log")
        axes.set_ylim(0, max(2.0, 1.1 * max(costs)))
        axes.set_xlabel(curve.unit)
        axes.set_title(f"{curve.name}: from {own[0].ns:,.0f} ns", fontsize=9)
        axes.grid(alpha=0.3)
    # The same figures give the same file, with text as text.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "curves"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    """Measure, or read, the curves; print a table, and draw them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="0 reads the file of --csv")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_name("curves.csv"))
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--only", choices=[curve.name for curve in CURVES], action="append")
    given = parser.parse_args()
    chosen = [curve for curve in CURVES if not given.only or curve.name in given.only]
    if given.rounds:
        rows = measured(chosen, given.rounds)
    else:
        with given.csv.open(encoding="utf-8") as file:
            rows = [
                Row(row["curve"], int(row["value"]), float(row["ns"]), float(row["amplification"]))
                for row in csv.DictReader(file)
            ]
    if given.rounds and not given.only:
        with given.csv.open("w", newline="", encoding="utf-8") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(Row._fields)
            lines.writerows((*row[:2], f"{row.ns:.1f}", f"{row.amplification:.3f}") for row in rows)
    print("| curve | ns (write amplification) at each value | slope |\n| --- | --- | --- |")
    for curve in chosen:
        own = [row for row in rows if row.curve == curve.name]
        points = ", ".join(f"{row.value:,}: {row.ns:,.0f} ({row.amplification:.2f})" for row in own)
        exponent = slope([row.value for row in own], [row.ns for row in own])
        print(f"| {curve.name} | {points} | {exponent:+.2f} |")
    if given.figure:
        drawn(rows, given.figure)


if __name__ == "__main__":
    main()
