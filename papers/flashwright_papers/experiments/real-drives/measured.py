"""The measurements: figures with their source, and what each is used for."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

Use = Literal["fitted", "judged", "not judged"]


@dataclass(frozen=True)
class Figure:
    """A published figure.

    Attributes
    ----------
    drive, protocol, load, figure : str
        Of what: the drive, the protocol (P1 to P7), what was played, and which figure of it.
    unit : str
        Empty for a ratio.
    value : float
        The figure.
    repeats : tuple of float
        What other runs gave, or the lowest and the highest of them or of parts of the run.
    deviation : float or None
        The standard deviation within the run, where the source has one.
    source : str
        ``IQ``: records of SSD-iq. ``TP``: reviews.
    use : {"fitted", "judged", "not judged"}
        Whether a constant or a choice of ours rests on it, or a claim, or neither.
    """

    drive: str
    protocol: str
    load: str
    figure: str
    unit: str
    value: float
    repeats: tuple[float, ...]
    deviation: float | None
    source: str
    use: Use


@cache
def figures() -> tuple[Figure, ...]:
    """All of them, as ``measured.csv`` lists them."""
    return tuple(_read(Path(__file__).with_name("measured.csv")))


def _read(path: Path) -> Iterator[Figure]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["use"] not in get_args(Use):
                raise ValueError(f"{path.name}: use: found {row['use']!r}")
            yield Figure(
                row["drive"],
                row["protocol"],
                row["load"],
                row["figure"],
                row["unit"],
                float(row["value"]),
                tuple(map(float, row["repeats"].split(";"))) if row["repeats"] else (),
                float(row["deviation"]) if row["deviation"] else None,
                row["source"],
                row["use"],  # type: ignore[arg-type]
            )


def measured(drive: str, protocol: str, load: str, figure: str) -> Figure:
    """One of them."""
    found = [
        each
        for each in figures()
        if (each.drive, each.protocol, each.load, each.figure) == (drive, protocol, load, figure)
    ]
    if len(found) != 1:
        raise KeyError(f"{drive}, {protocol}, {load}: {figure}: found {len(found)} figures")
    return found[0]
