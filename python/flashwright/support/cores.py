"""How much can be done at a time."""

from __future__ import annotations

import os

__all__ = ["cores"]


def cores() -> int:
    """The cores that this process may use.

    Examples
    --------
    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0))
