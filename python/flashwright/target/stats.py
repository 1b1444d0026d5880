"""Robust statistics, steady states and resampling, for the decisions of probes and experiments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flashwright.target.arrays import Array

__all__ = [
    "Window",
    "bootstrap",
    "chance_above",
    "change_point",
    "kolmogorov",
    "mad",
    "resampled",
    "steadiness",
]


# Largest less least of a steady window, over its mean, at most (SNIA SSS PTS).
_RANGE_MAX = 0.2
# Rise of its least-squares line, over its mean, at most (SNIA SSS PTS).
_SLOPE_MAX = 0.1


def mad(values: Array) -> float:
    """The median absolute deviation, scaled to the standard deviation of normal values.

    Examples
    --------
    >>> mad(np.array([1.0, 2.0, 3.0, 4.0, 100.0]))
    1.4826
    """
    return float(1.4826 * np.median(np.abs(values - np.median(values))))


def chance_above(values: Array, others: Array) -> float:
    """How likely `values` would lie so far above `others` by chance: the Mann-Whitney test, one-sided.

    Parameters
    ----------
    values, others : array of float
        What is compared; their order plays no part.

    Returns
    -------
    float
        The p-value, 0 to 1.

    Examples
    --------
    >>> chance_above(np.arange(10.0) + 20, np.arange(10.0)) < 0.001
    True
    """
    # Here, because it takes longer to load than all else that an import of this package loads.
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(values, others, alternative="greater").pvalue)


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


@dataclass(frozen=True)
class Window:
    """Five rounds.

    Attributes
    ----------
    mean : float
        Of the values.
    range_share : float
        Largest less least, over the mean; 0.2 at most in a steady state.
    slope_share : float
        Rise of the least-squares line across the window, without its sign, over the mean; 0.1 at most.
    """

    mean: float
    range_share: float
    slope_share: float

    @property
    def steady(self) -> bool:
        """Whether both are within their limits."""
        return self.range_share <= _RANGE_MAX and self.slope_share <= _SLOPE_MAX


def steadiness(values: Array) -> Window:
    """Judge a window by the rules of the specification: range within 20 %, slope within 10 % of the mean.

    Parameters
    ----------
    values : array of float64
        Of consecutive rounds.

    Returns
    -------
    Window
        Its mean, range and slope.

    Examples
    --------
    >>> [steadiness(np.array(v, float)).steady for v in ([100, 95, 104, 98, 101], [110, 106, 103, 99, 96])]
    [True, False]
    """
    mean = float(values.mean())
    slope = float(np.polyfit(np.arange(values.size), values, 1)[0])
    return Window(
        mean,
        float(np.ptp(values)) / mean,
        abs(slope) * (values.size - 1) / mean,
    )


def kolmogorov(one: Array, other: Array) -> float:
    """The largest difference of two empirical distribution functions.

    Examples
    --------
    >>> kolmogorov(np.array([1.0, 2.0]), np.array([1.0, 3.0]))
    0.5
    """
    one, other = np.sort(one), np.sort(other)
    at = np.concatenate([one, other])
    shares = [np.searchsorted(part, at, side="right") / part.size for part in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())


def resampled(values: Array, rng: np.random.Generator, rounds: int) -> Array:
    """Resamplings of some values, with replacement: (rounds, values)."""
    return values[rng.integers(0, values.size, (rounds, values.size))]


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
