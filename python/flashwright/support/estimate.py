"""A figure over several seeds: its mean, and how sure that is."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Estimate", "half_width_of_parts"]

_CONFIDENCE = 0.95
# Parts below which their spread says too little, resamples, and the seed of these: the same run has the same interval.
_PARTS_MIN = 16
_RESAMPLES = 1000
_SEED = 1


@dataclass(frozen=True)
class Estimate:
    """A figure over seeds.

    Attributes
    ----------
    mean : float
        The mean.
    ci95 : float or None
        Half the width of the 95 % confidence interval of the mean, by Student's t; None with a single seed.
    count : int
        Seeds that have the figure.
    """

    mean: float
    ci95: float | None
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        """From what each seed gave.

        Parameters
        ----------
        values : sequence of float
            At least one.

        Examples
        --------
        >>> found = Estimate.of([1.0, 2.0, 3.0])
        >>> found.mean, round(found.ci95, 3)
        (2.0, 2.484)
        """
        count = len(values)
        mean = math.fsum(values) / count
        if count < 2:
            return cls(mean, None, count)
        deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (count - 1))
        return cls(mean, _t(count - 1) * deviation / math.sqrt(count), count)


def half_width_of_parts(
    sums: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]
) -> float | None:
    """Half the width of the 95 % interval of ``sums.sum() / weights.sum()`` over consecutive parts of one run.

    Blocks of neighbouring parts are drawn with replacement (the circular block bootstrap of Politis and Romano, 1992),
    so that parts that hang together stay together; a block is as long as the root of their number. The interval
    is that of another stretch of the same length and kind; it knows nothing of what this one does not hold.

    Parameters
    ----------
    sums, weights : array
        A value a part; parts without a finite value or without weight are left out.

    Returns
    -------
    float or None
        None with fewer than 16 parts.

    Examples
    --------
    >>> import numpy as np
    >>> ones = np.ones(400)
    >>> half_width_of_parts(ones, ones)
    0.0
    >>> noise = np.random.default_rng(2).normal(5, 1, 10_000)
    >>> half = half_width_of_parts(noise, np.ones(10_000))  # 1.96 / sqrt(10,000) = 0.0196
    >>> 0.017 < half < 0.023
    True
    """
    import numpy as np

    known = np.isfinite(sums) & np.isfinite(weights) & (weights > 0)
    sums, weights = sums[known], weights[known]
    count = len(sums)
    if count < _PARTS_MIN:
        return None
    length = round(math.sqrt(count))
    blocks = -(-count // length)
    starts = np.random.default_rng(_SEED).integers(0, count, (_RESAMPLES, blocks))
    # The sum of a block is a difference of running sums, around the end.
    totals = []
    for values in (sums, weights):
        running = np.concatenate(([0.0], np.cumsum(np.concatenate((values, values[:length])))))
        totals.append((running[starts + length] - running[starts]).sum(axis=1))
    low, high = np.quantile(totals[0] / totals[1], [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return float(high - low) / 2


@functools.cache
def _t(freedom: int) -> float:
    """The two-sided 95 % quantile of Student's t.

    SciPy has it too, but takes a second to load.
    """
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    scale = math.exp(log_scale) / math.sqrt(freedom * math.pi)
    at, step = 2.0, 1.0
    # Newton's steps: digits double with each, so that after a small one all are right.
    while abs(step) > 1e-9 * at:
        density = 2 * scale * (1 + at * at / freedom) ** (-(freedom + 1) / 2)
        step = (_CONFIDENCE - _within(at, freedom)) / density
        at += step
    return at


def _within(bound: float, freedom: int) -> float:
    """The share of Student's t between two bounds of equal size (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(bound / math.sqrt(freedom))
    cosine, odd = math.cos(angle), freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for power in range(odd, freedom - 1, 2):
        total += term
        term *= (power + 1) / (power + 2) * cosine * cosine
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total
