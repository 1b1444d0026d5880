"""The progress bar of commands."""

from flashwright.progress import Bar

__all__ = ["Bar"]
