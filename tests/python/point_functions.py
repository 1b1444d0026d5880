"""What points of the tests call; workers import it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from flashwright.errors import FlashwrightError, Interrupted


def double(x: float) -> float:
    return 2 * x


def fail(why: str) -> None:
    raise ValueError(f"{why}\nand more")


def interrupted() -> None:
    raise Interrupted("stopped")


def die_once(mark: str) -> str:
    """The first process that comes by is killed."""
    path = Path(mark)
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "lived"


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def linger(mark: str) -> None:
    """Say who computes this, and take long."""
    path = Path(f"{mark}.{os.getpid()}")
    path.touch()
    time.sleep(120)


def talk() -> str:
    print("to nobody")
    return "said"


def refuse() -> None:
    """Fails with what a user is told in a line."""
    raise FlashwrightError("so it is refused")
