"""What Ctrl-C and SIGTERM do to the command line, from its first moment on.

While modules are imported, nothing has been done yet: a signal ends the process with one line. From then on it raises
``KeyboardInterrupt`` in the command, which saves and writes what was finished. SIGTERM, by which batch systems announce
the end, does the same; the two differ in the exit status.

This is imported first of all, and only the command line asks for it: programs that import the package keep their own
handlers.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

__all__ = [
    "STATUS",
    "Heard",
    "end_at_once",
    "end_quietly",
    "heed_while_importing",
    "heeded",
    "held_back",
    "importing",
    "is_command_line",
    "raise_if_lost",
]

STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}
"""The exit status after each signal."""

# A signal to a process and to its group comes twice; that is no second wish.
_AGAIN_S = 1.0


class Heard:
    """Which signal has come, if any."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._last_s = 0.0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Interrupt the command; again only by another Ctrl-C, for whoever can't wait until it has saved."""
        clock = time.monotonic()
        first, self._last_s, before_s = self.number is None, clock, self._last_s
        if first:
            self.number = number
        if first or (number == signal.SIGINT and clock - before_s > _AGAIN_S):
            raise KeyboardInterrupt

    @property
    def status(self) -> int:
        """The exit status of a command that was interrupted."""
        return STATUS.get(signal.Signals(self.number or signal.SIGINT), 130)


def is_command_line() -> bool:
    """Whether this process is ``flashwright`` or ``python -m flashwright``.

    Examples
    --------
    >>> is_command_line()
    False
    """
    name = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
    if name != "-m":
        return name in ("flashwright", "flashwright.exe")
    words = sys.orig_argv
    return "-m" in words and words[words.index("-m") + 1] in ("flashwright", "flashwright.cli")


def heed_while_importing() -> dict[signal.Signals, signal._HANDLER]:
    """End the process at a signal with one line: nothing has been begun yet. Gives the handlers before."""
    return _install(end_at_once)


def end_at_once(number: int = signal.SIGINT, frame: FrameType | None = None) -> None:
    """End the process as a signal does while modules are imported: with one line."""
    with contextlib.suppress(OSError):
        os.write(2, b"note: interrupted\n")
    os._exit(STATUS[signal.Signals(number)])


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Have a signal within the block end the process of the command line as :func:`heed_while_importing` does.

    For modules that a command needs before it begins anything: an exception in the midst of an import may get lost, or
    leave half a module behind. Programs that call the command line as a function get the exception all the same.
    """
    before = heed_while_importing() if is_command_line() else {}
    try:
        yield
    finally:
        _restore(before)


_heeding: list[Heard] = []


@contextlib.contextmanager
def heeded() -> Iterator[Heard]:
    """Have signals raise ``KeyboardInterrupt`` within the block; only the main thread gets them."""
    heard = Heard()
    before = _install(heard)
    _heeding.append(heard)
    try:
        yield heard
    finally:
        _heeding.remove(heard)
        _restore(before)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Have signals within the block take effect at its end, so that what it does is done whole or not at all.

    Examples
    --------
    >>> done = []
    >>> try:
    ...     with held_back():
    ...         signal.raise_signal(signal.SIGINT)
    ...         done.append("all of it")
    ... except KeyboardInterrupt:
    ...     print(done)
    ['all of it']
    """
    came: list[int] = []
    before = _install(lambda number, frame: came.append(number))
    try:
        yield
    finally:
        _restore(before)
        for number in came:
            signal.raise_signal(number)


def raise_if_lost() -> None:
    """Raise the ``KeyboardInterrupt`` of a signal that has come, for what goes on for long.

    Python drops an exception that a signal raises in a finalizer, such as one within an import.

    Examples
    --------
    >>> raise_if_lost()
    """
    if any(heard.number is not None for heard in _heeding):
        raise KeyboardInterrupt


def end_quietly() -> None:
    """All is done and written: let a signal end the process without a word."""
    if threading.current_thread() is threading.main_thread():
        for number in STATUS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        # Python ends by SIGINT, whatever the exit status, if an interruption fell into the `exec` of a text (such as a
        # dataclass in the making), unless another text was run since.
        exec("")


def _install(handler: signal._HANDLER) -> dict[signal.Signals, signal._HANDLER]:
    """Set the handler of each signal that is not ignored (as under ``nohup``); give those before."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    before = {number: signal.getsignal(number) for number in STATUS}
    wanted = {number: one for number, one in before.items() if one is not signal.SIG_IGN}
    for number in wanted:
        signal.signal(number, handler)
    return wanted


def _restore(before: dict[signal.Signals, signal._HANDLER]) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)


def _in_child() -> None:
    """A process forked from a command: Ctrl-C is for the one that hands out the work, which ends it by SIGTERM."""
    if isinstance(signal.getsignal(signal.SIGTERM), Heard):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)


os.register_at_fork(after_in_child=_in_child)
