"""What a comparison of traces consists of: the two, and the distances between their statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flashwright.traces.sources import Source

__all__ = ["Compared", "Distance"]


@dataclass(frozen=True)
class Distance:
    """How far one statistic of two streams of requests is apart.

    Attributes
    ----------
    name : str
        The statistic.
    unit : str
        Of `first` and `second`: ``bytes``, ``pages``, ``ns``, ``share`` or ``number``.
    first, second : float or None
        Its value, or the median of a distribution; None where a stream has none.
    gap : float or None
        Of distributions: the largest gap between the cumulative shares, 0 to 1 (Kolmogorov-Smirnov); None of numbers,
        and where one of the two is empty.
    factor : float or None
        1 or more. Of numbers: the larger over the smaller. Of distributions: by what factor values have to be
        multiplied or divided on average (geometric mean) to turn one into the other (Wasserstein over the
        logarithm of the value plus one). None where one of the two is 0 or absent.
    """

    name: str
    unit: str
    first: float | None
    second: float | None
    gap: float | None
    factor: float | None


@dataclass(frozen=True)
class Compared:
    """One of the two.

    Attributes
    ----------
    name : str
        Its name in tables.
    source : Workload or Trace
        Where the requests come from.
    statistics : dict
        As :func:`statistics`.
    """

    name: str
    source: Source
    statistics: dict[str, Any]
