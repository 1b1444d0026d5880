"""Flexible data placement in the model against two real drives.

    python experiments/placement/run.py [--csv FILE]

README.md says what was measured, by whom, what is fitted and what is predicted.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from flashwright import Ssd
from flashwright.simulation.results import RunResult

# Reclaim units of the model, and mapping units of 4 KiB in each.
UNITS = 512
PAGES = 2048
# Of drive B: 3.84 TB of 4 TiB of flash. Nominal.
SPACE_B = 0.873
# Capacities written while measuring.
CAPACITIES = 8
# A point agrees within this.
TOLERANCE = 0.1
HANDLES = 7


@dataclass(frozen=True)
class Point:
    """A measured point and the model's."""

    number: str
    """In the list of points of the two drives."""
    drive: str
    load: str
    placement: str
    measured: float
    model: float
    fitted: str
    """What was fitted to it; empty for a prediction."""
    settled: str
    """Whether the real drive had settled."""
    verdict: str
    """Whether the model had."""

    @property
    def error(self) -> float:
        return self.model / self.measured - 1


def drive(
    space: float, placement: str, units: int = UNITS, pages: int = PAGES, handles: int = HANDLES
) -> Ssd:
    """A drive of `units` reclaim units, of which the host may use a share."""
    return Ssd.from_text(
        f"""
        [geometry]
        channels = 1
        dies-per-channel = 1
        blocks-per-plane = {units}
        pages-per-block = {pages}
        page-size = "4 KiB"
        [capacity]
        utilization = {space}
        [timing]
        model = "none"
        [placement]
        policy = "{placement}"
        [placement.fdp]
        handles = {handles}
        isolation = "initial"
        """
    ).precondition("workload")


def play(ssd: Ssd, load: str, bytes_per_request: float) -> RunResult:
    """A run of some capacities, after the load has preconditioned the drive."""
    geometry = ssd.config["geometry"]
    whole = geometry["blocks-per-plane"] * geometry["pages-per-block"] * 4096
    return ssd.play(load, requests=int(CAPACITIES * whole / bytes_per_request), seed=1)


def random_writes(space: float) -> RunResult:
    """One stream of 128 KiB at random over the whole drive, as fio's job files have it."""
    return play(drive(space, "single"), "uniform:places=passes,size=128KiB", 128 << 10)


def cache(space: float, small_space: float, small_writes: float, placement: str) -> RunResult:
    """A flash cache: small objects at random, large ones as a ring."""
    mean = 1 / (small_writes / 4096 + (1 - small_writes) / (256 << 10))
    load = f"cachelib:small-space={small_space},small-writes={small_writes},streams=class"
    return play(drive(space, placement), load, mean)


def amplification(run: RunResult) -> float:
    """Its write amplification."""
    assert run.write_amplification is not None, "it wrote"
    return run.write_amplification


def solve(
    target: float, low: float, high: float, of: Callable[[float], RunResult], digits: int
) -> float:
    """Where rising write amplification reaches a target, by bisection; the nearer end where it does not."""
    if amplification(of(high)) < target:
        return high
    while high - low > 10**-digits:
        middle = (low + high) / 2
        low, high = (middle, high) if amplification(of(middle)) < target else (low, middle)
    return round((low + high) / 2, digits)


# By trace: the share of small objects in space, the number of the point and what was measured without placement and
# with it, and whether the drive had settled.
Cell = tuple[float, tuple[str, float | None], tuple[str, float | None], str]
TRACES: dict[str, tuple[Cell, ...]] = {
    "KV 2022-06": (
        (0.04, ("4", 3.54), ("3", 1.02), "yes"),
        (0.2, ("6", 2.72), ("5", 1.18), "no"),
        (0.4, ("8", 2.90), ("7", 1.61), "no"),
    ),
    "KV 2022-10": (
        (0.04, ("14", 1.45), ("13", 1.01), "yes"),
        (0.2, ("16", 3.49), ("15", 1.26), "yes with placement"),
    ),
    "KV 2024": ((0.04, ("19", 2.81), ("19", 1.00), "no"),),
    "Twitter cluster 37": ((0.04, ("21", 1.00), ("21", 1.00), "yes"),),
    "CDN 2025": ((0.04, ("22", 1.00), ("22", 1.00), "yes"),),
}


def point(
    number: str,
    of: str,
    load: str,
    kind: str,
    measured: float,
    model: RunResult,
    fitted: str,
    settled: str,
) -> Point:
    """A point of the table."""
    verdict = model.settled.verdict
    return Point(number, of, load, kind, measured, amplification(model), fitted, settled, verdict)


def points() -> list[Point]:
    """All points, the fitted ones first of their group."""
    space = solve(2.04, 0.6, 0.9, random_writes, 3)
    found = [
        point(
            "1", "A", "random 128 KiB", "off", 2.04, random_writes(space), f"space {space}", "yes"
        ),
        point("2", "B", "random 128 KiB", "off", 3.61, random_writes(SPACE_B), "", "yes"),
    ]
    for trace, cells in TRACES.items():
        first = cells[0]
        wanted = first[1][1]
        assert wanted is not None

        def without(share: float, small: float = first[0]) -> RunResult:
            return cache(space, small, share, "single")

        share = solve(wanted, 0.02, 0.96, without, 2)
        for small, (off, without_it), (on, with_it), settled in cells:
            load = f"{trace}, {small:.0%} of the space small, {share:.0%} of the bytes"
            for number, measured, placement in ((off, without_it, "single"), (on, with_it, "fdp")):
                if measured is None:
                    continue
                fitted = f"share {share}" if small == first[0] and placement == "single" else ""
                model = cache(space, small, share, placement)
                kind = "off" if placement == "single" else "on"
                found.append(point(number, "A", load, kind, measured, model, fitted, settled))
                print(found[-1], file=sys.stderr)
    return found


def language_models(spare: float = 0.2) -> list[dict[str, str]]:
    """LMCache's five classes on 960 GiB with reclaim units of 16 GiB, under each order of replacement."""
    logical = 60
    units = round(logical * (1 + spare))
    rows = []
    for order in ("uniform", "oldest"):
        row = {"order": order, "spare": f"{spare:.0%}"}
        for placement in ("single", "fdp"):
            ssd = drive(logical / units - 1e-9, placement, units=units, pages=4096, handles=6)
            load = f"kv-cache:order={order},streams=class,range=0.89,size=4KiB"
            found = play(ssd, load, 4096)
            kind = "off" if placement == "single" else "on"
            row |= {kind: f"{amplification(found):.3f}", f"{kind}_verdict": found.settled.verdict}
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Placement against real drives.")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_name("results.csv"))
    given = parser.parse_args()
    found = points()
    with given.csv.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*asdict(found[0]), "error"])
        for point in found:
            row = asdict(point) | {"model": f"{point.model:.3f}"}
            writer.writerow([*row.values(), f"{point.error:.3f}"])
    rows = language_models()
    with given.csv.with_name("language-models.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    predicted = [point for point in found if not point.fitted]
    agree = sum(abs(point.error) <= TOLERANCE for point in predicted)
    print(f"{agree} of {len(predicted)} predicted points within {TOLERANCE:.0%}")


if __name__ == "__main__":
    main()
