"""Crash tests: a recording of what was served is cut short again and again, and what is left is checked."""

from __future__ import annotations

import json
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashwright.errors import ServeError
from flashwright.support.arguments import checked
from flashwright.support.core import _core
from flashwright.support.cores import cores

__all__ = ["Crash", "CrashFailure", "CrashResult", "CrashTest"]

Check = Callable[["Crash"], str | None]
"""What a check takes and says: why what it found is wrong, or None."""

_IN_MOUNT_MAX = 8
_SAID_MAX = 300


@dataclass(frozen=True)
class Crash:
    """A drive that lost power and was mounted, as a file.

    Attributes
    ----------
    image : Path
        A file of the drive's size with what the drive holds.
    operation : int
        The program or erase in which the power failed, counted from 0 over the recording.
    in_mount : int or None
        After how many programs and erases of the mount it was to fail once more.
    cut_in_mount : bool
        Whether it did: the mount may have had fewer.
    requests_completed : int
        Requests that had completed.
    marks : tuple of str
        Marks that had been set.
    mounted : dict
        What the last mount took and found, by the names of :meth:`flashwright.ServedDrive.mount`.
    """

    image: Path
    operation: int
    in_mount: int | None
    cut_in_mount: bool
    requests_completed: int
    marks: tuple[str, ...]
    mounted: dict[str, Any]


@dataclass(frozen=True)
class CrashFailure:
    """A loss of power after which the check found something wrong.

    Attributes
    ----------
    crash : Crash
        What was checked. Its image exists only if failures were kept.
    why : str
        What the check said.
    """

    crash: Crash
    why: str


@dataclass(frozen=True)
class CrashResult:
    """What became of a crash test.

    Attributes
    ----------
    recording : Path
        What was played.
    operations : int
        Programs and erases of the recording.
    requests, marks : int
        Its requests and marks.
    cuts : int
        How often power failed.
    cuts_in_mount : int
        How often it failed once more during the mount.
    failures : tuple of CrashFailure
        Those after which something was wrong, in the order of their operations.
    seed : int
        The moments were drawn with it.
    elapsed_s : float
        Seconds of all of it.
    """

    recording: Path
    operations: int
    requests: int
    marks: int
    cuts: int
    cuts_in_mount: int
    failures: tuple[CrashFailure, ...]
    seed: int
    elapsed_s: float

    @property
    def json(self) -> dict[str, Any]:
        """The figures, for programs."""
        return {
            "recording": str(self.recording),
            "operations": self.operations,
            "requests": self.requests,
            "marks": self.marks,
            "seed": self.seed,
            "cuts": self.cuts,
            "cuts_in_mount": self.cuts_in_mount,
            "elapsed_s": self.elapsed_s,
            "failures": [
                {
                    "operation": failure.crash.operation,
                    "in_mount": failure.crash.in_mount,
                    "marks": len(failure.crash.marks),
                    "why": failure.why,
                }
                for failure in self.failures
            ],
        }


class CrashTest:
    """A recording of ``flashwright serve --record-data``, and the drive that it is played on.

    The same recording allows as many tests as it has programs and erases. It can also be played on another drive of the
    same size: a request is issued once all those have completed that had when it was recorded.

    Parameters
    ----------
    recording : path
        The recording.
    settings : sequence of str, optional
        Changes of the drive, as ``KEY=VALUE``.

    Attributes
    ----------
    operations : int
        Programs and erases of the recording: the moments at which power can fail.
    requests : int
        Its requests.
    marks : tuple of str
        What the client marked as done, in order.

    Raises
    ------
    ServeError
        If there is no such recording, or if it is damaged.
    ConfigError
        If the drive can't be mounted again (``recovery.mount-by``), or the settings don't fit it.
    DeviceError
        If the drive refuses a request of the recording.

    Examples
    --------
    >>> import flashwright, tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> drive = flashwright.Ssd.named("default").with_(mount_by="scan")
    >>> with flashwright.serve(drive, record_data=folder / "a.fwr", seed=3) as served:
    ...     served.mark("nothing is done yet")
    >>> CrashTest(folder / "a.fwr")
    Traceback (most recent call last):
        ...
    flashwright.errors.DeviceError: ...nothing was programmed while it was recorded, so there is nothing to cut
    """

    def __init__(self, recording: str | os.PathLike[str], settings: Sequence[str] = ()) -> None:
        self.recording = Path(recording)
        self._core = _core.CrashTest(str(self.recording), list(settings))
        self.operations: int = self._core.operations()
        self.requests: int = self._core.requests()
        self.marks: tuple[str, ...] = tuple(self._core.marks())

    def cut(
        self, operation: int, image: str | os.PathLike[str], *, in_mount: int | None = None
    ) -> Crash:
        """Let the power fail, mount the drive, and copy what it holds to a file.

        Parameters
        ----------
        operation : int
            The program or erase in the middle of which the power fails, from 0.
        image : path
            The file; it is overwritten.
        in_mount : int, optional
            Let it fail once more during the mount, after so many programs and erases.

        Returns
        -------
        Crash

        Raises
        ------
        ServeError
            If there is no such operation, or the file can't be written.
        DeviceError
            If the drive can't be mounted, or its state contradicts itself.
        """
        if not 0 <= operation < self.operations:
            raise ServeError(
                f"operation: found {operation}, expected 0 to {self.operations - 1}",
                "the recording has no other programs and erases",
                parameters=["operation"],
            )
        found = json.loads(self._core.cut(operation, in_mount, str(image)))
        return Crash(
            image=Path(image),
            operation=operation,
            in_mount=in_mount,
            cut_in_mount=found["cut_in_mount"],
            requests_completed=found["requests_completed"],
            marks=self.marks[: found["marks"]],
            mounted=found["mounted"],
        )

    def moments(self, cuts: int, seed: int = 1) -> list[tuple[int, int | None]]:
        """When the power fails: one operation drawn from each of `cuts` equal parts of the recording.

        Half of the mounts are to fail too, after 0 to 7 programs and erases.

        Parameters
        ----------
        cuts : int
            How many.
        seed : int, optional
            What they are drawn with.

        Returns
        -------
        list of tuple
            Operation, and operations of the mount until it fails or None.
        """
        rng = random.Random(seed)
        found = []
        for nth in range(cuts):
            first, end = self.operations * nth // cuts, self.operations * (nth + 1) // cuts
            operation = rng.randrange(first, max(end, first + 1))
            in_mount = rng.randrange(_IN_MOUNT_MAX)
            found.append((operation, in_mount if rng.random() < 0.5 else None))
        return found

    @checked(cuts=(1, 10**9), seed=(0, 2**64 - 1), jobs=(1, 1024))
    def run(
        self,
        check: str | Check,
        cuts: int = 100,
        *,
        seed: int = 1,
        jobs: int | None = None,
        keep: str | os.PathLike[str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> CrashResult:
        """Cut the power at many moments, and check each time what the drive holds.

        Parameters
        ----------
        check : str or callable
            A command for the shell, which finds the drive's content in the file ``$IMAGE`` and the marks that were set
            in the file ``$MARKS``, a line each; it fails if its status is not 0. Or a callable that takes a
            :class:`Crash` and returns what is wrong, or None; threads call it side by side. Both may change the image.
        cuts : int, optional
            How many; see :meth:`moments`.
        seed : int, optional
            What the moments are drawn with.
        jobs : int, optional
            How many are checked side by side; by default one for each processor.
        keep : path, optional
            A folder where the images of failures stay, as they were before the check.
        progress : callable, optional
            Told after each how many are done, of how many.

        Returns
        -------
        CrashResult
        """
        began = time.monotonic()
        if keep is not None:
            Path(keep).mkdir(parents=True, exist_ok=True)
        moments = self.moments(cuts, seed)
        failures: list[CrashFailure] = []
        in_mount = done = 0
        workers = jobs or cores()
        with (
            tempfile.TemporaryDirectory(prefix="flashwright-crash-") as folder,
            ThreadPoolExecutor(workers) as pool,
        ):
            left = iter(enumerate(moments))
            running: set[Future[tuple[Crash, str | None]]] = set()
            try:
                while True:
                    for nth, (operation, again) in left:
                        path = Path(folder) / f"{nth}.image"
                        running.add(pool.submit(self._one, operation, again, path, check, keep))
                        if len(running) > workers:
                            break
                    if not running:
                        break
                    ended, running = wait(running, return_when=FIRST_COMPLETED)
                    for each in ended:
                        crash, why = each.result()
                        in_mount += crash.cut_in_mount
                        if why is not None:
                            failures.append(CrashFailure(crash, why))
                        done += 1
                        if progress is not None:
                            progress(done, cuts)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        failures.sort(key=lambda failure: (failure.crash.operation, failure.crash.in_mount or -1))
        return CrashResult(
            recording=self.recording,
            operations=self.operations,
            requests=self.requests,
            marks=len(self.marks),
            cuts=cuts,
            cuts_in_mount=in_mount,
            failures=tuple(failures),
            seed=seed,
            elapsed_s=time.monotonic() - began,
        )

    def _one(
        self,
        operation: int,
        in_mount: int | None,
        image: Path,
        check: str | Check,
        keep: str | os.PathLike[str] | None,
    ) -> tuple[Crash, str | None]:
        crash = self.cut(operation, image, in_mount=in_mount)
        why = check(crash) if callable(check) else _run(check, crash)
        image.unlink(missing_ok=True)
        if why is not None and keep is not None:
            # The check may have changed the image: the same moment gives it again as it was.
            again = "" if in_mount is None else f"-{in_mount}"
            crash = self.cut(operation, Path(keep) / f"{operation}{again}.image", in_mount=in_mount)
        return crash, why

    def __repr__(self) -> str:
        return f"CrashTest({self.recording}: {self.operations:,} operations, {len(self.marks):,} marks)"


def _run(command: str, crash: Crash) -> str | None:
    """What is wrong according to a command."""
    marks = crash.image.with_suffix(".marks")
    marks.write_text("".join(f"{mark}\n" for mark in crash.marks))
    try:
        done = subprocess.run(
            command,
            shell=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, "IMAGE": str(crash.image), "MARKS": str(marks)},
        )
    finally:
        marks.unlink()
    if done.returncode == 0:
        return None
    said = " ".join(done.stdout.split())
    return f"status {done.returncode}: {said[-_SAID_MAX:]}" if said else f"status {done.returncode}"
