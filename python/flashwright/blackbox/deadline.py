"""The time that a session is allowed."""

from __future__ import annotations

import time

from flashwright.errors import FlashwrightError

__all__ = ["Deadline", "OutOfTimeError"]


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
