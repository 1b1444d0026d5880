"""Lines for standard error: what is wrong and what to try, never a traceback."""

from __future__ import annotations

import sys

__all__ = ["fault", "note"]


def fault(message: str, hint: str = "") -> None:
    """Say what is wrong, a line a fault, and what to try."""
    for line in message.splitlines():
        print(f"error: {line}", file=sys.stderr)
    if hint:
        print(f"hint: {hint}", file=sys.stderr)


def note(message: str) -> None:
    """Say something that is no error."""
    print(f"note: {message}", file=sys.stderr)
