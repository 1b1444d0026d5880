"""Points computed on as many processes as there are, or on a cluster; what is kept is not computed again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from flashwright.errors import SweepError
from flashwright.support.cores import cores
from flashwright.sweeps.cluster import on_cluster
from flashwright.sweeps.points import Outcome, Point, Store
from flashwright.sweeps.pool import on_processes

__all__ = ["compute"]


# Writing a point waits for the disk, which takes several of them at once in about the time of one.
_WRITERS = 8


def compute(
    points: Sequence[Point],
    store: Store,
    *,
    workers: int | None = None,
    progress: Callable[[Outcome, int, int], None] | None = None,
    dask: str | None = None,
    retries: int = 2,
) -> list[Outcome]:
    """Compute what is not kept yet.

    Parameters
    ----------
    points : sequence of Point
        What is wanted.
    store : Store
        Where results are kept.
    workers : int, optional
        Processes; by default one per core.
    progress : callable, optional
        Called after each point with its outcome, how many are finished, and how many there are.
    dask : str, optional
        The address of a Dask scheduler, whose workers compute instead of processes of this machine.
    retries : int, optional
        How often a point is tried again whose process died. A Dask scheduler has a rule of its own
        (``distributed.scheduler.allowed-failures``).

    Returns
    -------
    list of Outcome
        In the order of `points`. A point that failed has its error; it is not kept, so it is tried again next time.

    Raises
    ------
    OutputError
        If a result can't be written; what was finished is kept.
    SweepError
        If no process can be started, or the cluster can't be reached.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> halves = [Point("operator:truediv", {}, "no arguments"), Point("math:fsum", {}, "nor here")]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [found.error for found in compute(halves, Store(Path(folder)), workers=1)]
    ['TypeError: truediv expected 2 arguments, got 0',
     'TypeError: math.fsum() takes exactly one argument (0 given)']
    """
    if workers is not None and workers < 1:
        raise SweepError(
            f"workers: found {workers}, expected a whole number from 1 up",
            "",
            parameters=["workers"],
        )
    wanted = {point.key: point for point in points}
    done: dict[str, Outcome] = {}

    def take(outcome: Outcome) -> None:
        done[outcome.point.key] = outcome
        if progress is not None:
            progress(outcome, len(done), len(wanted))

    missing = []
    for point in wanted.values():
        kept = store.read(point)
        if kept is None:
            missing.append(point)
        else:
            take(kept)
    if missing:
        outcomes = _computed(missing, workers or cores(), dask, retries)
        with contextlib.closing(outcomes):
            _keep(outcomes, store, take)
    return [done[point.key] for point in points]


def _computed(
    points: Sequence[Point], workers: int, dask: str | None, retries: int
) -> Generator[Outcome, None, None]:
    if dask is not None:
        return on_cluster(points, dask)
    return on_processes(points, workers, retries)


def _keep(outcomes: Iterator[Outcome], store: Store, take: Callable[[Outcome], None]) -> None:
    """Write each as it comes; whatever ends this, those that came are written first."""
    writing: set[Future[None]] = set()
    with ThreadPoolExecutor(_WRITERS, "flashwright-store") as writers:
        for outcome in outcomes:
            if outcome.error is None:
                writing.add(writers.submit(store.write, outcome))
            elif outcome.traceback is not None:
                writing.add(writers.submit(store.write_traceback, outcome))
            take(outcome)
            for future in [future for future in writing if future.done()]:
                writing.remove(future)
                future.result()
    for future in writing:
        future.result()
