"""Where something long stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Progress"]


@dataclass(frozen=True)
class Progress:
    """Where a run stands.

    Attributes
    ----------
    phase : {"precondition", "settling", "warmup", "measured", "done"}
        What is going on.
    done : int
        Pages (precondition, settling) or requests of this phase that are done.
    total : int or None
        Of how many, where that is known.
    share : float or None
        Share of the trace that was read, 0 to 1, where only that is known.
    requests : int
        Requests played in all.
    """

    phase: Literal["precondition", "settling", "warmup", "measured", "done"]
    done: int
    total: int | None
    share: float | None
    requests: int
