"""Drives as the experiment on truth recovery draws them."""

from __future__ import annotations

import sys
from pathlib import Path

from flashwright.simulation.ssd import Ssd

RECOVERY = Path(__file__).parents[2] / "experiments" / "truth-recovery"


def drawn(seed: int) -> Ssd:
    """The drive of a number."""
    sys.path.insert(0, str(RECOVERY))
    try:
        import drives

        made: Ssd = drives.draw(seed)
        return made
    finally:
        sys.path.remove(str(RECOVERY))
