"""Several runs played side by side, in threads on the cores of this machine: the core works without Python's lock."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from flashwright.errors import ConfigError, FlashwrightError
from flashwright.simulation.results import RunResult
from flashwright.simulation.run import RunInterrupted
from flashwright.simulation.variant import Variant
from flashwright.support.core import _core
from flashwright.support.cores import cores
from flashwright.support.progress import Progress

__all__ = ["JOBS_MOST", "PlayedRuns", "played"]

JOBS_MOST = 256
"""Runs at a time at most."""

_REPORT_S = 0.2
"""Seconds from one progress to the next."""

_MEMORY = 1.25
"""A run's memory by that of its drive's tables: their estimate is good to within a quarter."""


@dataclass
class PlayedRuns:
    """What became of some runs.

    Attributes
    ----------
    results : dict of int to RunResult
        By the number of the run among those asked for; without runs that failed or were not begun.
    errors : dict of int to FlashwrightError
        Why runs failed.
    interrupted : bool
        Whether Ctrl-C ended it. The runs that were under way then have what was finished of them.
    out_of_time : bool
        Whether the seconds had passed before all runs were played; as after Ctrl-C.
    """

    results: dict[int, RunResult] = field(default_factory=dict)
    errors: dict[int, FlashwrightError] = field(default_factory=dict)
    interrupted: bool = False
    out_of_time: bool = False


def played(
    made: Sequence[Variant],
    *,
    jobs: int | None = None,
    progress: Callable[[str, Progress], None] | None = None,
    seconds: float = math.inf,
) -> PlayedRuns:
    """Play runs, as many at a time as there are cores and memory for.

    Runs that begin with the same preconditioned drive are played one after the other, and precondition it once. How
    many are played at a time makes no difference to results.

    Parameters
    ----------
    made : sequence of Variant
        The runs.
    jobs : int, optional
        How many at a time, 1 to 256; by default one a core, as far as memory allows. Runs with policies written in
        Python are played one at a time, as Python does.
    progress : callable, optional
        Called a few times a second with the label of the first run that is under way, and where it stands.
    seconds : float, optional
        After so many no further run begins, and those under way stop.

    Returns
    -------
    PlayedRuns

    Raises
    ------
    ConfigError
        If `jobs` is out of range.

    Examples
    --------
    >>> from flashwright import Ssd
    >>> from flashwright.simulation.compare import variants
    >>> from flashwright.simulation.run import RunSettings
    >>> runs = variants(
    ...     Ssd.named("default"), "uniform", {"depth": [1, 8]}, RunSettings(requests=1000)
    ... )
    >>> found = played(runs)
    >>> [run.label for _, run in sorted(found.results.items())]
    ['depth=1', 'depth=8']
    """
    if jobs is not None and not 1 <= jobs <= JOBS_MOST:
        raise ConfigError(f"jobs: found {jobs}, expected 1 to {JOBS_MOST}", "", parameters=["jobs"])
    groups: dict[str, list[int]] = {}
    for at, variant in enumerate(made):
        groups.setdefault(variant.beginning or str(at), []).append(at)
    play = _Play(made, list(groups.values()), progress, time.monotonic() + seconds)
    threads = min(jobs or _fitting(made), len(groups))
    if threads <= 1 or any(variant.settings.policies for variant in made):
        play.here()
    else:
        play.in_threads(threads)
    return play.found


def _fitting(made: Sequence[Variant]) -> int:
    """How many runs at a time there are cores and memory for."""
    at_most, left = cores(), _core.memory_left()
    if left is None or at_most == 1:
        return at_most
    largest = max(
        _core.memory_needed(toml, verify)
        for toml, verify in {(each.ssd.toml, each.settings.verify) for each in made}
    )
    # A drive that several runs share is there twice.
    return max(1, min(at_most, int(left / (2 * _MEMORY * max(largest, 1)))))


class _Play:
    def __init__(
        self,
        made: Sequence[Variant],
        groups: Sequence[Sequence[int]],
        progress: Callable[[str, Progress], None] | None,
        ends: float,
    ) -> None:
        self.found = PlayedRuns()
        self._ends = ends
        self._made = made
        self._waiting = deque(groups)
        self._progress = progress
        self._under_way: dict[int, Progress] = {}
        self._stopping = threading.Event()

    def here(self) -> None:
        """Play all in this thread."""

        def update(at: int, now: Progress) -> None:
            if self._progress is not None:
                self._progress(self._made[at].label, now)
            self._stop_when_late()

        self._work(update)

    def in_threads(self, count: int) -> None:
        """Play all in so many threads; progress and Ctrl-C are for this one."""

        def update(at: int, now: Progress) -> None:
            self._under_way[at] = now
            self._stop_when_late()

        with ThreadPoolExecutor(count, "flashwright-run") as pool:
            try:
                working = {pool.submit(self._work, update) for _ in range(count)}
                while working:
                    done, working = wait(working, _REPORT_S, FIRST_EXCEPTION)
                    for each in done:
                        each.result()
                    self._report()
            except KeyboardInterrupt:
                self.found.interrupted = True
            finally:
                self._stopping.set()

    def _stop_when_late(self) -> None:
        """Stop the run that is under way here, if all are to stop or the seconds have passed."""
        if time.monotonic() > self._ends:
            self.found.out_of_time = True
            self._stopping.set()
        if self._stopping.is_set():
            raise KeyboardInterrupt

    def _report(self) -> None:
        at = min(list(self._under_way), default=None)
        if self._progress is not None and at is not None:
            now = self._under_way.get(at)
            if now is not None:
                self._progress(self._made[at].label, now)

    def _work(self, update: Callable[[int, Progress], None]) -> None:
        """Play one group after the other, until none is left or all are to stop."""
        while not self._stopping.is_set():
            try:
                group = self._waiting.popleft()
            except IndexError:
                return
            shared = _core.SharedDrive() if len(group) > 1 else None
            for at in group:
                if not self._stopping.is_set():
                    self._play(at, shared, update)

    def _play(
        self,
        at: int,
        shared: _core.SharedDrive | None,
        update: Callable[[int, Progress], None],
    ) -> None:
        variant = self._made[at]
        result: RunResult | None = None
        try:
            run = variant.begin(shared)
            result = run.go(progress=lambda now: update(at, now), label=variant.label)
        except RunInterrupted as stop:
            self._stop()
            result = stop.result
        except KeyboardInterrupt:
            self._stop()
        except FlashwrightError as error:
            self.found.errors[at] = error
        if result is not None:
            self.found.results[at] = result.with_varied(variant.varied)
        self._under_way.pop(at, None)

    def _stop(self) -> None:
        # Where it is set already, whoever set it said why.
        if not self._stopping.is_set():
            self.found.interrupted = True
        self._stopping.set()
