"""The progress bar of a run: on standard error or in a notebook, and only if the run takes longer than a second."""

from __future__ import annotations

import importlib
import sys
import time
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from flashwright import run

if TYPE_CHECKING:
    from flashwright.characterize.base import Experiment
    from flashwright.points import Outcome

__all__ = ["Bar", "ProgressBar"]

_WAIT_S = 1.0
_REDRAW_S = 0.2
_NAMES = {
    "precondition": "precondition",
    "warmup": "warm-up",
    "measured": "measured",
    "done": "done",
}
_UNITS = {"precondition": "pages/s"}


class Bar:
    """Shows how far a run is, its rate and the time left.

    Parameters
    ----------
    wanted : bool or None
        Whether it is shown; None shows it where somebody watches.
    label : str
        What stands before the phase.
    unit : str
        What the rate of the measured phase counts.
    """

    def __init__(self, wanted: bool | None, label: str = "", unit: str = "requests/s") -> None:
        self._wanted = sys.stderr.isatty() if wanted is None else wanted
        self._unit = unit
        self._label = f"{label}: " if label else ""
        self._began = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._phase = ""
        self._phase_began = (0, 0.0)

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take it off the screen; it comes again with the next update."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = self._task = None

    def update(self, now: run.Progress, what: str = "") -> None:
        """Take what a run tells; `what` names the part of it that is going on."""
        clock = time.monotonic()
        if not self._wanted or clock - self._began < _WAIT_S:
            return
        if self._bar is None:
            bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f} %"),
                TextColumn("{task.fields[rate]}"),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=Console(stderr=True, force_terminal=True),
                transient=True,
            )
            try:
                bar.start()
            except BaseException:
                # Ctrl-C as it appears: a bar that has not quite begun can't be stopped.
                bar.console.show_cursor(True)
                raise
            self._bar = bar
        if now.phase != self._phase or self._task is None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._phase, self._phase_began = now.phase, (now.done, clock)
            self._task = self._bar.add_task(self._label + _NAMES[now.phase], total=None, rate="")
        done, total = float(now.done), None if now.total is None else float(now.total)
        if total is None and now.share is not None:
            done, total = now.share * 1e6, 1e6
        elapsed = clock - self._phase_began[1]
        unit = _UNITS.get(now.phase, self._unit)
        rate = f"{(now.done - self._phase_began[0]) / elapsed:,.0f} {unit}" if elapsed > 0.2 else ""
        shown = self._label + (what or _NAMES[now.phase])
        self._bar.update(self._task, description=shown, completed=done, total=total, rate=rate)


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
    def __call__(self, now: run.Progress, /) -> None: ...
    @overload
    def __call__(self, share: float, /) -> None: ...
    @overload
    def __call__(self, done: int, total: int, /) -> None: ...
    @overload
    def __call__(self, experiment: Experiment, share: float, /) -> None: ...
    @overload
    def __call__(self, what: str, done: int, total: int, /) -> None: ...
    @overload
    def __call__(self, outcome: Outcome, done: int, total: int, /) -> None: ...
    def __call__(self, *told: Any) -> None:
        """Take what a call tells, in whichever form it does."""
        first = told[0]
        unit, what, total = "", "", told[-1]
        if isinstance(first, run.Progress):
            unit, now = "requests/s", first
        elif len(told) == 3 or (len(told) == 2 and isinstance(first, int)):
            if len(told) == 3:
                what = str(getattr(getattr(first, "point", first), "label", first))
            now = run.Progress("measured", told[-2], total, None, 0)
        else:
            what = getattr(first, "NAME", "")
            now = run.Progress("measured", 0, None, float(total), 0)
        if self._shown is None:
            self._shown = _Cell(self._label) if _in_notebook() else Bar(None, self._label, unit)
        self._shown.update(now, what)


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

    def update(self, now: run.Progress, what: str = "") -> None:
        """Draw where a run stands."""
        clock = time.monotonic()
        if clock - self._began < _WAIT_S or clock - self._drawn < _REDRAW_S:
            return
        self._drawn = clock
        share = now.done / now.total if now.total else now.share
        told = escape(self._label + (what or _NAMES[now.phase]))
        self._show(
            f"{told} <progress></progress>"
            if share is None
            else f'{told} <progress value="{share:.4f}"></progress> {share:.0%}'
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
