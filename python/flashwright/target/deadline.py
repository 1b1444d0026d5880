"""Time limits: on our clock (:class:`Deadline`), and on the drive's as well (:class:`Allowance`)."""

from __future__ import annotations

import time
from typing import Protocol

import numpy as np

from flashwright.errors import FlashwrightError

__all__ = ["Allowance", "Deadline", "OutOfDriveTimeError", "OutOfTimeError"]

# Each for one request at a time, and for several: those are cut rarely, since the queue runs empty there.
# The first requests of a play, whose pace says how many come next.
_FIRST = (256, 4096)
# The fewest requests of a cut. Chosen: a slow drive is left in time.
_LEAST = (16, 256)
# The most. Chosen: a fraction of a second of our time.
_MOST = (1 << 16, 1 << 18)


class Clocked(Protocol):
    """A drive with a clock of its own."""

    @property
    def elapsed_ns(self) -> float:
        """What its clock shows, nanoseconds."""

    @property
    def real_time(self) -> bool:
        """Whether its clock is ours."""


class OutOfTimeError(FlashwrightError):
    """The time that was allowed has passed; what is under way is given up."""

    general_hint = "allow more time"

    def __init__(self) -> None:
        super().__init__("the time limit has passed")


class Deadline:
    """Ends plays when time is up: what a target's ``watch`` may be.

    Parameters
    ----------
    seconds : float or None
        From now on, of our time; None is no end.
    """

    def __init__(self, seconds: float | None) -> None:
        self.until = None if seconds is None else time.monotonic() + seconds

    def __call__(self) -> None:
        """Raise :class:`OutOfTimeError` if it has passed."""
        if self.until is not None and time.monotonic() >= self.until:
            raise OutOfTimeError

    @property
    def left_s(self) -> float | None:
        """Seconds until then, 0 at the least; None where there is no end."""
        return None if self.until is None else max(self.until - time.monotonic(), 0.0)


class OutOfDriveTimeError(OutOfTimeError):
    """The probe has used up its part of the drive's time."""


class Allowance(Deadline):
    """Ends plays when time is up, on our clock or on the drive's.

    Parameters
    ----------
    target : Clocked
        The drive, whose clock counts.
    own : Deadline
        On our clock.
    seconds : float
        Of the drive's time, from now on.
    request_s : float, optional
        What a request takes about, where that is known.
    """

    def __init__(
        self, target: Clocked, own: Deadline, seconds: float, request_s: float = 0.0
    ) -> None:
        super().__init__(None)
        self.until = own.until
        self._target = target
        self._request_ns = request_s * 1e9
        self._until_ns = target.elapsed_ns + seconds * 1e9

    def __call__(self) -> None:
        """Raise :class:`OutOfTimeError` if our time has passed, and its kind for the drive's if that has."""
        super().__call__()
        if self.left_ns <= 0:
            raise OutOfDriveTimeError

    @property
    def left_ns(self) -> float:
        """What is left of the drive's time, nanoseconds; may be negative."""
        return self._until_ns - self._target.elapsed_ns

    @property
    def left_s(self) -> float | None:
        """Seconds until either is up, where both are the same clock."""
        ours = super().left_s
        if not self._target.real_time:
            return ours
        drives = max(self.left_ns * 1e-9, 0.0)
        return drives if ours is None else min(ours, drives)

    def rests(self, nanos: float) -> None:
        """Raise :class:`OutOfDriveTimeError` if a rest is longer than what is left."""
        if nanos > self.left_ns:
            raise OutOfDriveTimeError

    def next_count(self, done: int, took_ns: float, depth: int) -> int:
        """How many requests to hand over next, such that a slow drive is left in time.

        Parameters
        ----------
        done : int
            Requests of the last cut; none before the first.
        took_ns : float
            How long they took.
        depth : int
            Requests outstanding.
        """
        deep = depth > 1
        each = max(took_ns / done if done else self._request_ns, 1.0)
        most = _MOST[deep] if done else _FIRST[deep]
        return int(np.clip(self.left_ns / 4 / each, _LEAST[deep], most))
