"""What the rules of the container-marking report's claims share.

Of the two readings of marking's window the one per list decides; what came out with the other is told beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from flashwright_papers import Answer, Found, Line, Plot, Verdict

from .runs import D70, EACH_LIST, PER_LIST, WINDOWED, Z95

Row = Mapping[str, Any]


MARKINGS = (PER_LIST, EACH_LIST)


U = "utilisation"


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


PER_LIST_USED, EACH_LIST_USED = "the window per list", "the window of each list"
"""The two readings of marking's window, in words; the first decides."""


def readings(by_reading: Mapping[str, tuple[str, Verdict]], what: str, **how: Any) -> Answer:
    """An answer by the reading per list, with the other beside it."""
    (mine, verdict), (other, other_verdict) = by_reading[PER_LIST], by_reading[EACH_LIST]
    return Answer(
        verdict,
        f"{what}: {mine} (per list); {other} (each list).",
        also={EACH_LIST_USED: other_verdict},
        used=PER_LIST_USED,
        **how,
    )


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
