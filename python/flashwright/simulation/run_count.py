"""How many runs a grid of values makes: multiplied before any is made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from flashwright.errors import SweepError

__all__ = ["RUNS_MAX", "expect_run_count"]

RUNS_MAX = 100_000
"""Runs of one comparison or sweep: with a second each they take more than a day of a core."""


def expect_run_count(
    grids: Sequence[Mapping[str, Sequence[object]]], points: int = 0, seeds: int = 1
) -> None:
    """Refuse more runs than can be made.

    Parameters
    ----------
    grids : sequence of mappings
        Values by key; of each, every combination.
    points : int, optional
        Further combinations.
    seeds : int, optional
        Runs of each combination.

    Raises
    ------
    SweepError
        If there are more than :data:`RUNS_MAX`.

    Examples
    --------
    >>> expect_run_count([{"a": range(400), "b": range(400)}], seeds=3)
    Traceback (most recent call last):
    flashwright.errors.SweepError: found 480,000 runs (160,000 combinations, 3 seeds), expected at most 100,000
    """
    combinations = points + sum(
        math.prod(len(values) for values in grid.values()) for grid in grids
    )
    if combinations * seeds > RUNS_MAX:
        raise SweepError(
            f"found {_count(combinations * seeds)} runs ({_count(combinations)} combinations, "
            f"{_count(seeds)} seeds), expected at most {RUNS_MAX:,}",
            "vary fewer keys or values at once, or split it into several",
            parameters=["seeds"],
        )


def _count(number: int) -> str:
    return f"{number:,}" if number < 10**15 else f"about 10^{len(str(number)) - 1}"
