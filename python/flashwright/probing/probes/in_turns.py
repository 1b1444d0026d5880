"""Writes in order and at random by turns, on a drive on which random writes have become slow.

Merges ask where writes go: in the very state in which random writes are slow, writes in order are fast. A cache of
writes that is full, heat, and a limit by time do not ask that: both are slow there. A purge and a second run cannot
tell the two apart, since either may find the drive in another state; turns can::

    at random    ____            ____               merges: each turn in order is fast, each at random slow again
    in order         ^^^^            ^^^^
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["LEAST_GAIN", "ROUNDS_MOST", "Turns", "in_turns"]

LEAST_GAIN = 1.3
"""Writes in order that are this many times as fast in each turn show that it matters where writes go."""
# Batches of a turn in order, of which the first ones may pay for what random writes left; and batches at random until
# they are as slow as before.
_IN_ORDER, _AT_RANDOM = 4, 12
_AS_SLOW = 1.25
ROUNDS_MOST = 2 * _IN_ORDER + _AT_RANDOM
"""Batches that are written at most."""


@dataclass(frozen=True)
class Turns:
    """What writes in order and at random did by turns.

    Attributes
    ----------
    gain : float
        How many times as fast writes in order are, in the turn in which that is least.
    again : bool
        Whether random writes became slow again in between.
    """

    gain: float
    again: bool

    @property
    def text(self) -> str:
        """In words.

        Examples
        --------
        >>> Turns(7.0, True).text
        'by turns, writes in order are 7.0 times as fast as those at random'
        """
        if not self.again:
            return (
                "after a turn in order random writes are no longer slow, so that turns show nothing"
            )
        return f"by turns, writes in order are {self.gain:.1f} times as fast as those at random"


def in_turns(
    slow: float, count: int, in_order: Callable[[int], float], at_random: Callable[[], float]
) -> Turns:
    """Two turns in order, with one at random between them.

    Parameters
    ----------
    slow : float
        Speed of random writes now, in any unit.
    count : int
        Writes of a batch.
    in_order : callable
        Writes a batch in order from a slot on, and answers its speed.
    at_random : callable
        The same at random.

    Returns
    -------
    Turns
        Its `gain` is 0 where random writes did not become slow again.

    Examples
    --------
    >>> in_turns(1.0, 8, lambda first: 5.0, lambda: 1.0)
    Turns(gain=5.0, again=True)
    >>> in_turns(1.0, 8, lambda first: 1.0, lambda: 1.0).gain
    1.0
    """

    def turn(first: int) -> float:
        speeds = [in_order(first + batch * count) for batch in range(_IN_ORDER)]
        return float(np.median(speeds[_IN_ORDER // 2 :]))

    before = turn(0) / slow
    for _ in range(_AT_RANDOM):
        speed = at_random()
        if speed <= _AS_SLOW * slow:
            return Turns(min(before, turn(_IN_ORDER * count) / speed), True)
    return Turns(0.0, False)
