"""How much RAM takes of a burst of small writes: a second direction to the size of a write buffer.

One large write and many small ones fill the same RAM. Where they do not agree, what ends at the size that one write
shows is no buffer: a piece of a map that has to be loaded, or a limit of the length of a request.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flashwright.probing.probes.read_buffer import reach
from flashwright.target.question import Context, kib

__all__ = ["Burst", "burst"]

Array = npt.NDArray[np.float64]

# Writes of a burst, and how many times the size that is asked about it may have: each is tried until writes slow down.
_WRITES, _TIMES = 128, (4, 16, 64)
_SMALLEST, _LARGEST, _MOST = 4096, 32 << 10, 128 << 20
_REPEATS = 4
# The last writes take this many times as long as the first where the RAM is full.
_SLOWER = 1.4
# The share of the time of the last writes that writes take on average from the first that waits on.
_AS_AT_END = 0.7
# The two directions may differ by this share.
_NEAR = 0.25


@dataclass(frozen=True)
class Burst:
    """What many small writes show.

    Attributes
    ----------
    filled_bytes : float
        Written before writes began to wait.
    least_bytes : float
        That without what may have drained meanwhile.
    first_bytes : float
        Written before the first write from which on writes wait: merges that come and go may make the slope, by which
        `filled_bytes` is found, unsteady.
    """

    filled_bytes: float
    least_bytes: float
    first_bytes: float

    def bears_out(self, size_bytes: float) -> bool:
        """Whether a size lies between what was written until writes waited and the same without what drains."""
        drained = self.least_bytes / self.filled_bytes
        return any(
            (1 - _NEAR) * drained * filled <= size_bytes <= (1 + _NEAR) * filled
            for filled in (self.filled_bytes, self.first_bytes)
        )

    @property
    def text(self) -> str:
        """In words."""
        return (
            f"a burst of small writes is taken fast up to {kib(round(self.filled_bytes) >> 10 << 10)}, "
            f"{kib(round(self.least_bytes) >> 10 << 10)} of it without what drains meanwhile"
        )


def burst(context: Context, size_bytes: int, rng: np.random.Generator) -> Burst | None:
    """Small writes in order, without a flush, until they slow down.

    Parameters
    ----------
    context : Context
        The target, filled up to :func:`reach`.
    size_bytes : int
        What the RAM is thought to have.
    rng : numpy Generator
        Draws the places.

    Returns
    -------
    Burst or None
        None where they never slow down: flash keeps up with small writes.
    """
    target, room = context.target, reach(context.target)
    for times in _TIMES:
        total = min(times * size_bytes, _MOST, room // 2)
        each = int(np.clip(total // _WRITES, context.up(_SMALLEST), context.up(_LARGEST)))
        each = context.down(each)
        count = max(total // each, 16)
        runs = []
        for _ in range(_REPEATS):
            target.flush()
            first = int(rng.integers(0, max(room // (count * each), 1))) * count
            latency = target.play("write", (first + np.arange(count)) * each, each).latency_ns
            runs.append(np.maximum(latency, 1.0))
        target.flush()
        # Programs end at unlike times from run to run: their mean counts, stalls of one run do not.
        mean = np.sort(np.array(runs), axis=0)[:-1].mean(axis=0)
        free = float(np.median(mean[: max(count // 32, 4)]))
        waiting = float(mean[-(count // 4) :].mean())
        if waiting >= _SLOWER * free:
            excess = float(np.sum(mean - free))
            writes = max(count - excess / (waiting - free), 1.0)
            fast = float(np.median([_first(run, _SLOWER * free, waiting) for run in runs]))
            filled = writes * each
            return Burst(filled, filled * (1 - free / waiting), max(fast, 1.0) * each)
        if total in (_MOST, room // 2):
            break
    return None


def _first(latency_ns: Array, slow_ns: float, waiting_ns: float) -> int:
    """Writes before the first slow one from which on writes wait as those at the end do."""
    near = max(latency_ns.size // 8, 4)
    for at in np.flatnonzero(latency_ns > slow_ns).tolist():
        if latency_ns[at : at + near].mean() >= _AS_AT_END * waiting_ns:
            return int(at)
    return latency_ns.size
