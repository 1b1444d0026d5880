"""A figure over several seeds: its mean, and how sure that is."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Estimate"]

_CONFIDENCE = 0.95


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


@functools.cache
def _t(freedom: int) -> float:
    # Here, because it takes longer to load than all else that an import of this package loads.
    from scipy.stats import t

    return float(t.ppf((1 + _CONFIDENCE) / 2, freedom))
