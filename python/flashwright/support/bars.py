"""Progress bars of a run and of many: on standard error, and only for what takes longer than a second."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from flashwright.support import progress
from flashwright.support.printable import printable

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

__all__ = ["Bar", "OutcomeView", "PointsBar"]

_WAIT_S = 1.0
# Where no bar is shown, one line says how long it will take if that is more than a moment.
_SAY_S = 20.0
_NAMES = {
    "precondition": "precondition",
    "settling": "settling (at most)",
    "warmup": "warm-up",
    "measured": "measured",
    "done": "done",
}
_UNITS = {"precondition": "pages/s", "settling": "pages/s"}


class OutcomeView(Protocol):
    """What became of one of many things to compute."""

    @property
    def cached(self) -> bool:
        """Whether it had been computed before."""
        ...

    @property
    def error(self) -> str | None:
        """Why it failed."""
        ...

    @property
    def seconds(self) -> float:
        """How long it took: seconds of processor time."""
        ...


def _started(*columns: ProgressColumn) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *columns,
        console=Console(stderr=True, force_terminal=True),
        transient=True,
    )
    try:
        bar.start()
    except BaseException:
        # Ctrl-C as it appears: a bar that has not quite begun can't be stopped.
        bar.console.show_cursor(True)
        raise
    return bar


class _Shown:
    """What appears on standard error after a while, if it is wanted, and goes in the end."""

    def __init__(self, wanted: bool | None) -> None:
        self._wanted = sys.stderr.isatty() if wanted is None else wanted
        self._says = wanted is None and not self._wanted
        self._began = time.monotonic()
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def line(self, text: str) -> None:
        """Print a line on standard output, above the bar where there is one."""
        # While a bar is drawn, its library would send the line where the bar goes.
        if self._bar is not None:
            self._bar.stop()
        print(printable(text), flush=True)
        if self._bar is not None:
            self._bar.start()

    def close(self) -> None:
        """Take it off the screen."""
        if self._bar is not None:
            self._bar.stop()


class Bar(_Shown):
    """Shows how far a run is, its rate and the time left.

    Where nobody watches, one line says so of a part that takes more than 20 seconds.

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
        super().__init__(wanted)
        self._unit = unit
        self._label = f"{label}: " if label else ""
        self._task: TaskID | None = None
        self._phase = "", ""
        self._phase_began = (0, 0.0)

    def update(self, now: progress.Progress, what: str = "", *, label: str = "") -> None:
        """Take a run's progress; `what` names its current part, `label` the run where there are several."""
        clock = time.monotonic()
        before = f"{label}: " if label else self._label
        is_new = self._phase != (before, now.phase)
        if is_new:
            self._phase, self._phase_began = (before, now.phase), (now.done, clock)
        done, total = float(now.done), None if now.total is None else float(now.total)
        if total is None and now.share is not None:
            done, total = now.share * 1e6, 1e6
        shown = printable(before + (what or _NAMES[now.phase]))
        elapsed = clock - self._phase_began[1]
        if self._says and elapsed >= _SAY_S and total and done:
            self._says = False
            left = _clock(elapsed * (total - done) / done)
            print(f"note: {shown}: {done / total:.0%}, {left} left of this part", file=sys.stderr)
        if not self._wanted or clock - self._began < _WAIT_S:
            return
        if self._bar is None:
            from rich.progress import TextColumn, TimeRemainingColumn

            self._bar = _started(
                TextColumn("{task.percentage:>3.0f} %"),
                TextColumn("{task.fields[rate]}"),
                TextColumn("left"),
                TimeRemainingColumn(),
            )
        if is_new or self._task is None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(before + _NAMES[now.phase], total=None, rate="")
        unit = _UNITS.get(now.phase, self._unit)
        rate = f"{(now.done - self._phase_began[0]) / elapsed:,.0f} {unit}" if elapsed > 0.2 else ""
        self._bar.update(self._task, description=shown, completed=done, total=total, rate=rate)


class PointsBar(_Shown):
    """Shows how many points are finished, how many failed, their rate and the time left.

    Parameters
    ----------
    wanted : bool or None
        Whether it is shown; None shows it where somebody watches.

    Attributes
    ----------
    computed, kept, failed : int
        Points that were computed now, that were there already, and that have no result.
    seconds : float
        Processor time of the points that were computed.
    """

    def __init__(self, wanted: bool | None) -> None:
        super().__init__(wanted)
        self.computed = self.kept = self.failed = 0
        self.seconds = 0.0

    @property
    def elapsed_s(self) -> float:
        """Seconds since this began."""
        return time.monotonic() - self._began

    def update(self, outcome: OutcomeView, finished: int, total: int) -> None:
        """Take the outcome of a point.

        Parameters
        ----------
        outcome : Outcome
            Of the point that is finished now.
        finished, total : int
            Points finished, and points in all.
        """
        if outcome.cached:
            self.kept += 1
        else:
            self.computed += outcome.error is None
            self.failed += outcome.error is not None
            self.seconds += outcome.seconds
        if not self._wanted or self.elapsed_s < _WAIT_S or outcome.cached:
            return
        if self._bar is None:
            from rich.progress import TextColumn

            self._bar = _started(TextColumn("{task.fields[message]}"))
            self._bar.add_task("points", total=None, message="")
        now = finished - self.kept
        rate = now / max(self.elapsed_s, 1e-6)
        message = (
            f"{finished:,} of {total:,}, {rate:,.1f}/s, {_clock((total - finished) / rate)} left"
        )
        if self.failed:
            message += f", {self.failed:,} failed"
        self._bar.update(
            self._bar.task_ids[0], completed=now, total=total - self.kept, message=message
        )


def _clock(seconds: float) -> str:
    """Hours, minutes and seconds.

    Examples
    --------
    >>> _clock(75), _clock(3 * 3600 + 62)
    ('1:15', '3:01:02')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
