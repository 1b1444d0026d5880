"""Statistics that bear outliers, for the decisions of probes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Split", "bootstrap", "change_point", "mad", "trimmed_mean", "two_levels"]

Array = npt.NDArray[np.float64]


def trimmed_mean(values: Array, axis: int = -1, share: float = 0.1) -> Array:
    """The mean without the largest values: cleaning strikes some requests and must not enter.

    Parameters
    ----------
    values : array
        Latencies.
    axis : int, optional
        Along which the mean is taken.
    share : float, optional
        Share of the values that is left out, the largest ones.

    Examples
    --------
    >>> float(trimmed_mean(np.array([1.0] * 9 + [1000.0])))
    1.0
    """
    ordered = np.sort(values, axis=axis)
    count = values.shape[axis]
    keep = max(count - int(np.ceil(count * share)), 1)
    return np.asarray(np.take(ordered, np.arange(keep), axis=axis).mean(axis=axis))


def mad(values: Array) -> float:
    """The median absolute deviation, scaled to the standard deviation of normal values.

    Examples
    --------
    >>> mad(np.array([1.0, 2.0, 3.0, 4.0, 100.0]))
    1.4826
    """
    return float(1.4826 * np.median(np.abs(values - np.median(values))))


@dataclass(frozen=True)
class Split:
    """The best parting of a curve in two levels.

    Attributes
    ----------
    at : int
        Points of the first level.
    before, after : float
        The levels.
    spread : float
        Scaled median absolute deviation after the split.
    """

    at: int
    before: float
    after: float
    spread: float


def two_levels(values: Array, least: int = 5) -> Split | None:
    """Parts a curve where its level falls: k maximises ``k (n-k) / n^2 (a-b) |a-b|``.

    Parameters
    ----------
    values : array of n
        In order.
    least : int, optional
        Fewest points on each side.

    Returns
    -------
    Split or None
        None if there are too few points.

    Examples
    --------
    >>> split = two_levels(np.array([0.5] * 6 + [0.0] * 8))
    >>> split.at, split.before, split.after
    (6, 0.5, 0.0)
    """
    n = values.size
    if n < 2 * least:
        return None
    k = np.arange(least, n - least + 1)
    sums = np.cumsum(values)
    before = sums[k - 1] / k
    after = (sums[-1] - sums[k - 1]) / (n - k)
    score = k * (n - k) / n**2 * (before - after) * np.abs(before - after)
    best = int(np.argmax(score))
    at = int(k[best])
    return Split(at, float(before[best]), float(after[best]), mad(values[at:]))


def change_point(values: Array, least: int = 3) -> tuple[int, float]:
    """Where two straight segments fit best by least squares.

    Parameters
    ----------
    values : array of n
        Equally spaced.
    least : int, optional
        Fewest points of a segment.

    Returns
    -------
    at : int
        Points of the first segment.
    gain : float
        Share of the residual of one segment that two save, 0 to 1.

    Examples
    --------
    >>> change_point(np.array([1.0] * 10 + [0.2] * 10))[0]
    10
    """

    def residual(part: Array) -> float:
        if part.size < 3:
            return 0.0
        x = np.arange(part.size, dtype=float)
        x -= x.mean()
        y = part - part.mean()
        slope = float(x @ y) / float(x @ x)
        return float(np.square(y - slope * x).sum())

    n = values.size
    whole = residual(values)
    if n < 2 * least or whole == 0:
        return n, 0.0
    costs = [residual(values[:k]) + residual(values[k:]) for k in range(least, n - least + 1)]
    best = int(np.argmin(costs))
    return best + least, 1 - costs[best] / whole


def bootstrap(
    samples: Array,
    decide: Callable[[Array], float | None],
    rng: np.random.Generator,
    rounds: int = 200,
) -> list[float | None]:
    """What a rule decides on resamplings of the repeats.

    Parameters
    ----------
    samples : array of (points, repeats)
        Each row holds the repeats of a point.
    decide : callable
        The rule; gets an array of the same shape.
    rng : numpy Generator
        Draws the repeats, with replacement, each row by itself.
    rounds : int, optional
        How often.

    Returns
    -------
    list
        The decisions.
    """
    points, repeats = samples.shape
    rows = np.arange(points)[:, None]
    return [
        decide(samples[rows, rng.integers(0, repeats, (points, repeats))]) for _ in range(rounds)
    ]
