"""The size at which something ends that a drive does for smaller requests: repeats until it is clear, then bisection.

A probe maps each measurement to a number that is 1 on one side of the edge and 0 on the other. The decision needs no
more. Both sides of the edge are measured once more in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flashwright.target.arrays import Array
from flashwright.target.question import Context
from flashwright.target.stats import bootstrap

__all__ = ["Edge", "Sample", "center", "find_edge", "grid", "is_above", "most"]


Sample = Callable[[int, int], Array]
"""Gets a size in bytes and a count, answers that many measurements."""

# Standard errors that a mean keeps from the threshold. Derived: with first looks at 8 values (a t distribution of 5 to
# 7 degrees of freedom), 4 leave about one wrong decision in 200 at the threshold itself and none at the levels.
_ERRORS = 4.0
# Values of a first look.
_FIRST = 8


def center(values: Array, share: float = 0.1) -> tuple[float, float]:
    """The mean without both tails, and its standard error from the values with the tails drawn in.

    Parameters
    ----------
    values : array
        Repeats of a measurement.
    share : float, optional
        Share of the values that counts as a tail, on each side.

    Returns
    -------
    mean, error : float
        Trimmed mean, and its standard error by the winsorized deviation (Tukey and McLaughlin 1963).

    Examples
    --------
    >>> center(np.array([1.0, 2.0, 3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 2.0, 500.0]))[0]
    2.125
    """
    ordered = np.sort(values)
    cut = int(ordered.size * share)
    kept = ordered[cut : ordered.size - cut]
    drawn_in = np.clip(ordered, kept[0], kept[-1])
    spread = float(drawn_in.std(ddof=1)) if ordered.size > 1 else 0.0
    return float(kept.mean()), spread / ((1 - 2 * share) * float(np.sqrt(ordered.size)))


def is_above(
    sample: Callable[[int], Array], threshold: float, most: int, errors: float = _ERRORS
) -> tuple[bool | None, Array]:
    """Repeats a measurement until its mean is clearly on one side of a threshold.

    Parameters
    ----------
    sample : callable
        Gets a count, answers that many measurements.
    threshold : float
        What the mean is compared with.
    most : int
        Most measurements.
    errors : float, optional
        Standard errors that the mean must keep from the threshold.

    Returns
    -------
    above : bool or None
        None if it is still open after `most`.
    values : array
        All measurements.
    """
    values = sample(min(_FIRST, most))
    while True:
        mean, error = center(values)
        if abs(mean - threshold) > errors * error:
            return mean > threshold, values
        if values.size >= most:
            return None, values
        values = np.concatenate([values, sample(min(values.size, most - values.size))])


@dataclass(frozen=True)
class Edge:
    """The border between sizes.

    Attributes
    ----------
    inside, outside : int
        The last size of one side and the first of the other, as near as could be found, bytes.
    confidence : float
        Share of resamplings of measurements taken afterwards that distinguish the two; 0 if halving got stuck.
    """

    inside: int
    outside: int
    confidence: float


def find_edge(
    sample: Sample,
    inside: int,
    outside: int,
    step: int,
    most: Callable[[int], int],
    rng: np.random.Generator,
) -> Edge:
    """Halves the range between two sizes, then measures both sides of the edge anew.

    Parameters
    ----------
    sample : callable
        Measurements of a size: near 1 on the side of `inside`, near 0 on that of `outside`.
    inside, outside : int
        Sizes on either side, in either order, multiples of `step`, bytes.
    step : int
        How near to get, bytes.
    most : callable
        Most measurements of a size.
    rng : numpy Generator
        For the resampling.

    Returns
    -------
    Edge
        Between neighbours if all went well.

    Examples
    --------
    >>> noise = np.random.default_rng(1)
    >>> def sample(size, count):
    ...     return noise.normal(1.0 if size <= 77_824 else 0.0, 0.5, count)
    >>> edge = find_edge(sample, 65_536, 90_112, 4096, lambda size: 1000, noise)
    >>> edge.inside, edge.outside, edge.confidence > 0.9
    (77824, 81920, True)
    """
    while abs(outside - inside) > step:
        middle = (inside + outside) // (2 * step) * step
        if middle in (inside, outside):
            middle += step
        here, _ = is_above(lambda count, at=middle: sample(at, count), 0.5, most(middle))  # type: ignore[misc]
        if here is None:
            return Edge(inside, outside, 0.0)
        inside, outside = (middle, outside) if here else (inside, middle)
    shares = []
    for size, wanted in ((inside, True), (outside, False)):
        here, values = is_above(lambda count, at=size: sample(at, count), 0.5, most(size))  # type: ignore[misc]
        if here is not wanted:
            return Edge(inside, outside, 0.0)
        drawn = bootstrap(values[None, :], lambda part: center(part[0])[0], rng)
        shares.append(np.mean([(value or 0.0) > 0.5 for value in drawn]))
    return Edge(inside, outside, float(min(shares[0], 1 - shares[1])))


def grid(first: int, last: int, an_octave: int, step: int) -> list[int]:
    """Sizes that grow by a constant factor.

    Parameters
    ----------
    first, last : int
        The smallest, and what none exceeds, bytes.
    an_octave : int
        How many from a size to its double.
    step : int
        All are multiples of it, bytes.

    Examples
    --------
    >>> grid(4096, 16384, 2, 512)
    [4096, 5632, 8192, 11264, 16384]
    """
    count = int(np.floor(np.log2(last / first) * an_octave + 1e-9)) + 1
    sizes = first * 2.0 ** (np.arange(max(count, 1)) / an_octave)
    return sorted({max(int(size) // step * step, step) for size in sizes})


def most(context: Context, size_bytes: int) -> int:
    """How often a request of a size may be repeated for one decision.

    A quick look moves 8 GB at most (16 s at 500 MB/s), a full one 32 GB; both are reached only where noise hides a
    small difference of large requests.
    """
    budget, repeats = (8 << 30, 256) if context.mode == "quick" else (32 << 30, 1024)
    return int(np.clip(budget // max(size_bytes, 1), 16, repeats))
