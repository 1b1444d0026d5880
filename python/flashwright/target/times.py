"""When requests were handed over and when they ended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flashwright.target.arrays import Array

__all__ = ["Times"]


@dataclass(frozen=True, eq=False)
class Times:
    """When requests were handed over and when they ended.

    Attributes
    ----------
    submitted_ns, ended_ns : array of uint64, one a request
        On the target's clock, nanoseconds.
    """

    submitted_ns: npt.NDArray[np.uint64]
    ended_ns: npt.NDArray[np.uint64]

    @property
    def latency_ns(self) -> Array:
        """How long each took, nanoseconds."""
        return (self.ended_ns - self.submitted_ns).astype(np.float64)

    @property
    def duration_ns(self) -> float:
        """From the first request to the last end, nanoseconds; 0 without requests."""
        if self.ended_ns.size == 0:
            return 0.0
        return float(self.ended_ns.max() - self.submitted_ns.min())

    def rate(self, moved_bytes: float) -> float:
        """The bandwidth in bytes per second, if the requests moved this many bytes."""
        return moved_bytes / max(self.duration_ns, 1.0) * 1e9
