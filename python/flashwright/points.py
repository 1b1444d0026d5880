"""Things to compute, each known by what makes it: computed once, kept in files, on as many processes as there are.

A *point* names a function and plain arguments. Its key is the hash of both and of whatever else decides the result, so
a store of results can be shared, moved and resumed, and nothing is computed twice.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from flashwright.files import write_beside

__all__ = ["Outcome", "Point", "Store", "compute"]


@dataclass(frozen=True)
class Point:
    """One thing to compute.

    Attributes
    ----------
    call : str
        The function, as ``"module:function"``. It is given the arguments by name, and returns what JSON can hold.
    arguments : mapping
        What JSON can hold, by name.
    label : str
        What people know it by; makes no difference to the key.
    made_of : str
        What else decides the result, such as the digest of a trace or of the code.

    Examples
    --------
    >>> one = Point("math:dist", {"p": [0, 0], "q": [3, 4]}, "a distance")
    >>> one.key == Point("math:dist", {"q": [3, 4], "p": [0, 0]}, "the same").key
    True
    """

    call: str
    arguments: Mapping[str, Any]
    label: str = field(default="", compare=False)
    made_of: str = ""

    @cached_property
    def key(self) -> str:
        """The hash of what makes it, 32 hexadecimal digits."""
        text = json.dumps([self.call, self.arguments, self.made_of], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Outcome:
    """What became of a point.

    Attributes
    ----------
    point : Point
        Which.
    result : object
        What its function returned; None if it failed.
    error : str or None
        Why it failed, in a line.
    cached : bool
        Whether it had been computed before.
    seconds : float
        How long it took when it was computed.
    """

    point: Point
    result: Any
    error: str | None = None
    cached: bool = False
    seconds: float = 0.0


class Store:
    """A folder of results, a file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def read(self, point: Point) -> Outcome | None:
        """The result kept for a point, if there is one."""
        try:
            kept = json.loads(self._path(point).read_text())
        except (OSError, ValueError):
            return None
        return Outcome(point, kept["result"], None, True, kept["seconds"])

    def write(self, outcome: Outcome) -> None:
        """Keep a result."""
        path = self._path(outcome.point)
        path.parent.mkdir(exist_ok=True)
        with write_beside(path) as part:
            part.write_text(json.dumps({"result": outcome.result, "seconds": outcome.seconds}))

    def _path(self, point: Point) -> Path:
        return self.folder / point.key[:2] / f"{point.key}.json"


def compute(
    points: Sequence[Point],
    store: Store,
    *,
    workers: int | None = None,
    progress: Callable[[Outcome, int, int], None] | None = None,
) -> list[Outcome]:
    """Compute what is not kept yet.

    Parameters
    ----------
    points : sequence of Point
        What is wanted.
    store : Store
        Where results are kept.
    workers : int, optional
        Processes; by default one a core.
    progress : callable, optional
        Called after each point with its outcome, how many are finished, and how many there are.

    Returns
    -------
    list of Outcome
        In the order of `points`.
    """
    done: dict[str, Outcome] = {}

    def take(outcome: Outcome) -> None:
        done[outcome.point.key] = outcome
        if progress is not None:
            progress(outcome, len(done), len({point.key for point in points}))

    missing: dict[str, Point] = {}
    for point in points:
        kept = store.read(point)
        if kept is None:
            missing[point.key] = point
        elif point.key not in done:
            take(kept)
    if missing:
        with ProcessPoolExecutor(workers or os.cpu_count()) as pool:
            running = [pool.submit(_call, point) for point in missing.values()]
            for future in as_completed(running):
                outcome = future.result()
                if outcome.error is None:
                    store.write(outcome)
                take(outcome)
    return [done[point.key] for point in points]


def _call(point: Point) -> Outcome:
    began = time.process_time()
    module, _, name = point.call.partition(":")
    try:
        result = getattr(importlib.import_module(module), name)(**point.arguments)
    except Exception as error:
        return Outcome(point, None, f"{type(error).__name__}: {error}".splitlines()[0])
    return Outcome(point, result, seconds=time.process_time() - began)
