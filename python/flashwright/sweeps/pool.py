"""Processes of one machine that compute points, and the death of one of them.

Each process has a pipe of its own, so that the death of one touches only the point that it was at. It works through a
short queue, and ends when the other end of its pipe is gone, so that none outlives whoever started it.
"""

from __future__ import annotations

import json
import math
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait

from flashwright.errors import SweepError
from flashwright.sweeps.points import Outcome, Point, carry_out, outcome_of

__all__ = ["on_processes", "serve"]

# Work that lies ready in a process's queue, so that it need not wait for the next point.
_AHEAD_S = 0.2
_AHEAD_MOST = 64
# Of so many points that wait, one is chosen that shares a drive with what the process has computed.
_NEAR = 256
_STARTS_MOST = 5
_READY = b"ready"


class _Worker:
    """A process, and the points that it was given, the first of which it is at."""

    def __init__(self) -> None:
        self.connection, theirs = Pipe()
        program = (
            "import sys, json; sys.path[:] = json.loads(sys.argv[2]); "
            "from flashwright.sweeps.pool import serve; serve(int(sys.argv[1]))"
        )
        with theirs:
            handle = theirs.fileno()
            self.process = subprocess.Popen(
                [sys.executable, "-c", program, str(handle), json.dumps(sys.path)],
                stdin=subprocess.DEVNULL,
                pass_fds=[handle],
                # Ctrl-C is for whoever started it, who then ends it.
                start_new_session=True,
            )
        self.queue: deque[Point] = deque()
        self.ready = False
        # The drive that its last point shares with others.
        self.shared: str | None = None

    def give(self, point: Point) -> None:
        self.queue.append(point)
        self.shared = point.whereabouts.get("shared")
        task = [point.call, {**point.arguments, **point.whereabouts}]
        try:
            self.connection.send_bytes(json.dumps(task).encode())
        except OSError:
            # It has died: what it was given is taken back when its end is read.
            return

    def end(self) -> str:
        """End it, and say how it ended."""
        self.process.kill()
        status = self.process.wait()
        self.connection.close()
        if status >= 0:
            return f"ended with status {status}"
        more = " (out of memory?)" if status == -signal.SIGKILL else ""
        return f"was killed by {signal.Signals(-status).name}{more}"


def on_processes(
    points: Sequence[Point], workers: int, retries: int
) -> Generator[Outcome, None, None]:
    """Compute points on processes of this machine.

    Parameters
    ----------
    points : sequence of Point
        What to compute.
    workers : int
        Processes at most.
    retries : int
        How often a point is tried again whose process died.

    Yields
    ------
    Outcome
        As they come.

    Raises
    ------
    SweepError
        If processes die before they take up a point.

    Examples
    --------
    >>> [found.result for found in on_processes([Point("math:hypot", {})], 1, 0)]
    [0.0]
    """
    crew = _Crew(points, workers, retries)
    try:
        while not crew.finished:
            crew.hire()
            yield from crew.hear()
    finally:
        crew.dismiss()


class _Crew:
    def __init__(self, points: Sequence[Point], workers: int, retries: int) -> None:
        self.waiting = deque(points)
        self.most = workers
        self.retries = retries
        self.workers: dict[Connection, _Worker] = {}
        self.deaths: Counter[str] = Counter()
        self.starts_failed = 0
        self.computed, self.seconds = 0, 0.0

    @property
    def finished(self) -> bool:
        return not self.waiting and not any(worker.queue for worker in self.workers.values())

    def hire(self) -> None:
        """Have as many processes as there is work for, each with some of it."""
        busy = sum(bool(worker.queue) for worker in self.workers.values())
        while len(self.workers) < min(self.most, busy + len(self.waiting)):
            worker = _Worker()
            self.workers[worker.connection] = worker
        for worker in self.workers.values():
            self.feed(worker)

    def feed(self, worker: _Worker) -> None:
        ahead = 1
        if self.computed:
            mean = max(self.seconds / self.computed, 1e-4)
            ahead += min(_AHEAD_MOST, round(_AHEAD_S / mean))
        # In the end everybody gets a share.
        ahead = min(ahead, math.ceil(len(self.waiting) / max(1, len(self.workers))))
        while self.waiting and worker.ready and len(worker.queue) < ahead:
            worker.give(self.next_for(worker))

    def next_for(self, worker: _Worker) -> Point:
        """The first that waits of those that share a drive with the last one of the process.

        Else one whose drive no other process has.
        """
        near = [point.whereabouts.get("shared") for point in islice(self.waiting, _NEAR)]
        others = {other.shared for other in self.workers.values() if other is not worker}
        wanted = [at for at, shared in enumerate(near) if shared and shared == worker.shared]
        free = [at for at, shared in enumerate(near) if not shared or shared not in others]
        at = [*wanted, *free, 0][0]
        point = self.waiting[at]
        del self.waiting[at]
        return point

    def hear(self) -> Iterator[Outcome]:
        """What the processes have to say, as soon as one of them speaks or dies."""
        for connection in wait(list(self.workers)):
            assert isinstance(connection, Connection)
            worker = self.workers[connection]
            try:
                said = connection.recv_bytes()
            except (EOFError, OSError):
                yield from self.bury(worker)
                continue
            if said == _READY:
                worker.ready = True
                self.feed(worker)
                continue
            outcome = outcome_of(worker.queue.popleft(), said.decode())
            self.computed += 1
            self.seconds += outcome.seconds
            self.feed(worker)
            yield outcome

    def bury(self, worker: _Worker) -> Iterator[Outcome]:
        """Take back what a dead process was given; only the point that it was at is blamed."""
        del self.workers[worker.connection]
        how = worker.end()
        if not worker.ready:
            self.starts_failed += 1
            if self.starts_failed == _STARTS_MOST:
                raise SweepError(
                    f"jobs: {_STARTS_MOST} processes died before their first point; the last {how}",
                    f"try whether `{sys.executable} -c 'import flashwright'` works, and fewer jobs",
                    parameters=["jobs"],
                )
            return
        if not worker.queue:
            return
        blamed = worker.queue.popleft()
        self.waiting.extendleft(reversed(worker.queue))
        self.deaths[blamed.key] += 1
        if self.deaths[blamed.key] <= self.retries:
            self.waiting.append(blamed)
            return
        times = self.deaths[blamed.key]
        tries = "1 try" if times == 1 else f"{times} tries"
        yield Outcome(blamed, None, f"its process {how}, given up after {tries}")

    def dismiss(self) -> None:
        for worker in self.workers.values():
            worker.end()


def serve(handle: int) -> None:
    """Compute what comes through a pipe, until its other end is closed.

    Parameters
    ----------
    handle : int
        The file descriptor of the pipe.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What a point prints must not get among the results of whoever started this.
    os.dup2(2, 1)
    connection = Connection(handle)
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def listen() -> None:
        try:
            while True:
                tasks.put(connection.recv_bytes())
        except (EOFError, OSError):
            # Nobody is left who wants the result, however long the point still takes.
            os._exit(1)

    def say(what: bytes) -> None:
        try:
            connection.send_bytes(what)
        except OSError:
            # Nobody is left who would hear it; a traceback would stand among what the user reads.
            os._exit(1)

    say(_READY)
    threading.Thread(target=listen, daemon=True).start()
    while True:
        call, arguments = json.loads(tasks.get())
        say(carry_out(call, arguments).encode())
