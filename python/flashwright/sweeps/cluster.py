"""Points computed by the workers of a Dask cluster."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import logging
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from flashwright.errors import SweepError
from flashwright.support.core import _core
from flashwright.sweeps.points import Outcome, Point, carry_out, outcome_of

__all__ = ["on_cluster"]

# Points that are submitted to the scheduler at once.
_IN_FLIGHT = 1000
_TIMEOUT_S = 15


def on_cluster(points: Sequence[Point], address: str) -> Generator[Outcome, None, None]:
    """Compute points on a Dask cluster.

    Parameters
    ----------
    points : sequence of Point
        What to compute.
    address : str
        The scheduler's address, such as ``"tcp://10.0.0.5:8786"``.

    Yields
    ------
    Outcome
        As they come.

    Raises
    ------
    SweepError
        If the package is not installed, the scheduler can't be reached or is lost, or a worker has another version of
        this package.
    """
    distributed = _distributed()
    with _quiet():
        yield from _on(distributed, points, address)


def _on(distributed: Any, points: Sequence[Point], address: str) -> Iterator[Outcome]:
    try:
        client = distributed.Client(address, timeout=_TIMEOUT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise SweepError(
            f"dask: {address}: no scheduler answers: {str(error).splitlines()[0]}",
            "`dask scheduler` prints its address when it starts",
            parameters=["dask"],
        ) from None
    with contextlib.closing(client):
        _expect_the_same_code(client, address)
        yield from _computed(distributed, client, points, address)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No words of Dask's own about workers and schedulers that die: the consequence for the points is reported."""
    levels = {name: logging.getLogger(name).level for name in ("distributed", "distributed.client")}
    for name in levels:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def _distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise SweepError(
            "dask: found no Dask here, expected the package distributed",
            "install it with: pip install 'dask[distributed]'",
            parameters=["dask"],
        ) from None


def _computed(
    distributed: Any, client: Any, points: Sequence[Point], address: str
) -> Iterator[Outcome]:
    """Each outcome as it comes, with enough points in flight that no worker waits."""
    waiting = iter(points)
    of: dict[str, Point] = {}

    def submit(point: Point) -> Any:
        arguments = {**point.arguments, **point.whereabouts}
        future = client.submit(carry_out, point.call, arguments, pure=False)
        of[future.key] = point
        return future

    first = [submit(point) for point in itertools.islice(waiting, _IN_FLIGHT)]
    futures = distributed.as_completed(first, loop=client.loop)
    for future in futures:
        if future.status in ("lost", "pending"):
            # Its result went with the worker that held it, and the scheduler has it computed again.
            futures.add(future)
            continue
        point = of.pop(future.key)
        if future.status == "cancelled":
            raise SweepError(
                f"dask: {address}: the scheduler is gone",
                "what was finished is kept; the same command continues from there",
                parameters=["dask"],
            )
        error = future.exception() if future.status == "error" else None
        if error is None:
            yield outcome_of(point, future.result())
        elif isinstance(error, distributed.scheduler.KilledWorker):
            yield Outcome(point, None, "its Dask workers died, and the scheduler gave up")
        else:
            what = str(error).splitlines() or ["no words"]
            yield Outcome(point, None, f"{type(error).__name__}: {what[0]}")
        for more in itertools.islice(waiting, 1):
            futures.add(submit(more))


def _expect_the_same_code(client: Any, address: str) -> None:
    """Refuse workers of another version now, rather than once for every point."""
    try:
        found: dict[str, str] = client.run(_source_digest)
    except ImportError as error:
        raise SweepError(
            f"dask: {address}: a worker can't import this package: {error}",
            "install the same version of flashwright wherever workers run",
            parameters=["dask"],
        ) from None
    for worker, digest in found.items():
        if digest != _core.source_digest:
            raise SweepError(
                f"dask: {address}: worker {worker} has a simulator of digest {digest}, expected "
                f"{_core.source_digest}",
                "install the same version of flashwright wherever workers run",
                parameters=["dask"],
            )


def _source_digest() -> str:
    return _core.source_digest
