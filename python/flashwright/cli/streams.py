"""Standard output and error as a command may find them: closed, full, or without the letters it needs."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator

__all__ = ["STDOUT", "drop_output", "prepare"]

STDOUT = "standard output"
"""What failures of standard output name as their file."""


def prepare() -> None:
    """Have streams that can be written to, or that say by name when they can't."""
    for handle, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            _put_in_place(handle, name)
    # A terminal that knows no Greek letter gets another, not an exception.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    before = sys.stdout
    if isinstance(before, io.TextIOWrapper) and before is sys.__stdout__:
        encoding, at_once = before.encoding, before.write_through
        by_line = before.line_buffering
        sys.stdout = _Output(before.detach(), encoding, "replace", None, by_line, at_once)
        sys.__stdout__ = sys.stdout  # type: ignore[misc]


def _put_in_place(handle: int, name: str) -> None:
    """Something for a stream that was closed, or the next file to be opened would stand in its place.

    What goes to standard error is dropped; standard output is open for reading, so that writing to it fails.
    """
    opened = os.open(os.devnull, os.O_WRONLY if handle == 2 else os.O_RDONLY)
    if opened != handle:
        os.dup2(opened, handle)
        os.close(opened)
    stream = os.fdopen(handle, "r" if handle == 0 else "w", closefd=False)
    setattr(sys, name, stream)
    setattr(sys, f"__{name}__", stream)


class _Output(io.TextIOWrapper):
    """Standard output, whose failures carry its name."""

    def write(self, text: str) -> int:
        with _named():
            return super().write(text)

    def flush(self) -> None:
        with _named():
            super().flush()


@contextlib.contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        error.filename = STDOUT
        raise


def drop_output() -> None:
    """Have what is left in the buffer of standard output go nowhere."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
