"""How reads fare that meet something under way: whether they wait for its end, or take their turn at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flashwright.target.stats import mad

__all__ = ["SUSPENDS", "WAITS", "Met", "met"]

Array = npt.NDArray[np.float64]

# Of the disturbance, the part in which what reads wait is looked at; how many of them there must be.
_PART, _COUNT = (0.25, 0.7), 12
WAITS, SUSPENDS = 0.7, 0.3
"""What reads wait over what is left of it: from the first on they wait for its end, up to the second they do not."""
# A suspension takes always about the same, within this share.
_ALIKE = 0.4


@dataclass(frozen=True)
class Met:
    """What reads wait that meet something under way.

    Attributes
    ----------
    lasts_ns : float
        How long it disturbs reads.
    share : float
        What reads wait over what is left of it: the median.
    extra_ns : float
        What they wait, the median of the same.
    spread : float
        How that scatters, as a share of it.
    count : int
        How many reads that is.
    """

    lasts_ns: float
    share: float
    extra_ns: float
    spread: float
    count: int

    @property
    def waits(self) -> bool:
        """Whether reads wait for the end."""
        return self.share >= WAITS

    @property
    def suspends(self) -> bool:
        """Whether they take their turn at once."""
        return self.share <= SUSPENDS and self.spread <= _ALIKE


def met(came_ns: Array, extra_ns: Array, least_ns: float) -> Met | None:
    """How reads fare that come some time after a write.

    Parameters
    ----------
    came_ns, extra_ns : array
        How long after the write each came, and what it took more than a quiet one.
    least_ns : float
        What takes so much more is disturbed.

    Returns
    -------
    Met or None
        None if too few were disturbed.

    Examples
    --------
    >>> came = np.linspace(0, 2e6, 400)
    >>> rest = met(came, np.clip(1e6 - came, 0, None), 2e4)
    >>> round(rest.lasts_ns / 1e6, 1), round(rest.share), rest.waits, rest.suspends
    (1.0, 1, True, False)
    >>> same = met(came, np.where(came < 1e6, 5e4, 0.0), 2e4)
    >>> round(same.share, 1), same.waits, same.suspends
    (0.1, False, True)
    """
    disturbed = extra_ns > least_ns
    if np.count_nonzero(disturbed) < _COUNT:
        return None
    # A few may have been disturbed by something else later.
    lasts = float(np.quantile(came_ns[disturbed], 0.98))
    if lasts <= 0:
        # Nothing was disturbed but what came at once.
        return None
    low, high = (share * lasts for share in _PART)
    inside = disturbed & (came_ns >= low) & (came_ns <= high)
    count = int(np.count_nonzero(inside))
    if count < _COUNT:
        return None
    extra = extra_ns[inside]
    share = float(np.median(extra / (lasts - came_ns[inside])))
    middle = float(np.median(extra))
    return Met(lasts, share, middle, mad(extra) / middle, count)
