"""A progress bar for every call: in a notebook below its cell, else the one of the commands."""

from __future__ import annotations

import importlib
import sys
import time
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, overload

from flashwright.support.progress import Progress

if TYPE_CHECKING:
    from flashwright.support.bars import Bar, OutcomeView

__all__ = ["ProgressBar"]

_WAIT_S = 1.0
_REDRAW_S = 0.2


class Named(Protocol):
    """An experiment, by its name."""

    NAME: ClassVar[str]


class ProgressBar:
    """A bar for every call that takes ``progress``: in a notebook below the cell, in a script on standard error.

    It appears once a call has taken a second, and goes when the ``with`` statement ends. A script whose errors
    nobody watches shows none.

    Parameters
    ----------
    label : str, optional
        What stands before it.

    Examples
    --------
    >>> from flashwright import Ssd
    >>> with ProgressBar("uniform") as bar:
    ...     run = Ssd.named("default").play("uniform", requests=5000, progress=bar)
    """

    def __init__(self, label: str = "") -> None:
        self._label = label
        self._shown: Bar | _Cell | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown is not None:
            self._shown.close()

    @overload
    def __call__(self, now: Progress, /) -> None: ...
    @overload
    def __call__(self, share: float, /) -> None: ...
    @overload
    def __call__(self, label: str, now: Progress, /) -> None: ...
    @overload
    def __call__(self, experiment: Named, share: float, /) -> None: ...
    @overload
    def __call__(self, what: str, done: int, total: int, /) -> None: ...
    @overload
    def __call__(self, outcome: OutcomeView, done: int, total: int, /) -> None: ...
    def __call__(self, *progress: Any) -> None:
        """Take a call's progress, in whichever form it comes."""
        first = progress[0]
        unit, what, label, last = "", "", "", progress[-1]
        if isinstance(last, Progress):
            unit, now = "requests/s", last
            label = first if len(progress) == 2 else ""
        elif len(progress) == 3:
            what = str(getattr(getattr(first, "point", first), "label", first))
            now = Progress("measured", progress[-2], last, None, 0)
        else:
            what = getattr(first, "NAME", "")
            now = Progress("measured", 0, None, float(last), 0)
        if self._shown is None:
            self._shown = _Cell(self._label) if _in_notebook() else _bar(self._label, unit)
        self._shown.update(now, what, label=label)


def _bar(label: str, unit: str) -> Bar:
    # Here, because few see a bar, and its library takes a while to import.
    from flashwright.support.bars import Bar

    return Bar(sys.stderr.isatty(), label, unit)


def _in_notebook() -> bool:
    if "IPython" not in sys.modules:
        return False
    shell = importlib.import_module("IPython").get_ipython()
    return hasattr(shell, "kernel")


class _Cell:
    """The bar below a notebook's cell: an element of HTML, drawn anew a few times a second."""

    def __init__(self, label: str) -> None:
        self._label = f"{label}: " if label else ""
        self._began = self._drawn = time.monotonic()
        self._handle: Any = None

    def update(self, now: Progress, what: str = "", *, label: str = "") -> None:
        """Draw where a run stands; `label` names it where there are several."""
        clock = time.monotonic()
        if clock - self._began < _WAIT_S or clock - self._drawn < _REDRAW_S:
            return
        self._drawn = clock
        share = now.done / now.total if now.total else now.share
        before = f"{label}: " if label else self._label
        message = escape(before + (what or now.phase))
        self._show(
            f"{message} <progress></progress>"
            if share is None
            else f'{message} <progress value="{share:.4f}"></progress> {share:.0%}'
        )

    def close(self) -> None:
        """Take it off the page."""
        if self._handle is not None:
            self._show("")

    def _show(self, html: str) -> None:
        display = importlib.import_module("IPython.display")
        if self._handle is None:
            self._handle = display.display(display.HTML(html), display_id=True)
        else:
            self._handle.update(display.HTML(html))
