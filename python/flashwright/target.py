"""What probes and experiments work on: a real device or file, or a simulated drive, by the same calls.

A target is a block device and nothing more: it takes reads, writes, trims and flushes at byte addresses, and tells
when each was handed over and when it ended. A simulated drive has a clock of its own; a real one is opened past the
page cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from flashwright import _core
from flashwright.arguments import checked
from flashwright.device import Ssd
from flashwright.errors import ArgumentError, TargetError

__all__ = ["FILL_BYTES", "Deadline", "Drive", "Kind", "OutOfTimeError", "Target", "Times", "opened"]

Kind = Literal["read", "write", "trim", "flush"]

_CODES: dict[str, int] = {"read": 0, "write": 1, "trim": 2, "flush": 3}
_SECTOR = 512
FILL_BYTES = 128 << 10
"""Of a write of :meth:`Target.fill`, unless it is told."""
# A longer play is cut where its depth allows, so that clocks and progress are looked at.
_CHUNK_BYTES = 256 << 20
_CHUNK_REQUESTS = 1 << 16
# A play of several requests at a time is cut rarely: the queue runs empty there.
_CHUNK_DEEP = 1 << 18


class OutOfTimeError(Exception):
    """The time that was allowed has passed; what is under way is given up."""


class Deadline:
    """Ends plays when time is up: what a target's ``watch`` may be.

    Parameters
    ----------
    seconds : float or None
        From now on, of our time; None is no end.
    """

    def __init__(self, seconds: float | None) -> None:
        self.until = None if seconds is None else time.monotonic() + seconds

    def __call__(self) -> None:
        """Raise :class:`OutOfTimeError` if it has passed."""
        if self.until is not None and time.monotonic() >= self.until:
            raise OutOfTimeError


@dataclass(frozen=True, eq=False)
class Times:
    """When requests were handed over and when they ended.

    Attributes
    ----------
    submitted_ns, ended_ns : array of uint64, one a request
        On the target's clock, nanoseconds.
    """

    submitted_ns: npt.NDArray[np.uint64]
    ended_ns: npt.NDArray[np.uint64]

    @property
    def latency_ns(self) -> npt.NDArray[np.float64]:
        """How long each took, nanoseconds."""
        return (self.ended_ns - self.submitted_ns).astype(np.float64)

    @property
    def duration_ns(self) -> float:
        """From the first request to the last end, nanoseconds."""
        return float(self.ended_ns.max() - self.submitted_ns.min())


class Target:
    """An open target. Use it in a ``with`` statement, so that the device is given back.

    Nothing is written unless `destroys_data` says that the target's data may be destroyed; a simulated drive has none.

    Parameters
    ----------
    target : str, path or Ssd
        A block device or a regular file; or ``sim:NAME`` with a bundled drive or a TOML file; or a drive as described.
    destroys_data : bool, optional
        Whether the data on a real target may be overwritten. What is mounted or otherwise in use is refused whatever
        is said.
    queue_depth : int, optional
        Requests that a real device has at once, 1 to 4096.
    seed : int, optional
        Of the data that is written, and of what is random in a simulated drive.

    Attributes
    ----------
    name : str
        As it was given; of a drive as described, its name.
    drive : str
        Of a simulated drive, a digest of its description; else empty.
    kind : {"block-device", "file", "simulated"}
        What it is.
    capacity_bytes, block_bytes : int
        Its size, and the unit of all addresses and lengths.
    real_time : bool
        Whether its time is ours.
    writes_allowed : bool
        Whether it may be written.
    bytes_read, bytes_written, flushes : int
        What was asked of it so far.

    Raises
    ------
    TargetError
        If it cannot be opened, or is in use.
    ConfigError
        If there is no such drive.

    Examples
    --------
    >>> with Target("sim:default") as drive:
    ...     times = drive.play("write", np.arange(4) * 4096, 4096)
    ...     took_ns = drive.flush()
    >>> len(times.latency_ns), drive.bytes_written
    (4, 16384)
    """

    @checked(seed=(0, 2**64 - 1), queue_depth=(1, 4096))
    def __init__(
        self,
        target: str | os.PathLike[str] | Ssd,
        *,
        destroys_data: bool = False,
        queue_depth: int = 128,
        seed: int = 1,
    ) -> None:
        text = str(target) if not isinstance(target, Ssd) else ""
        self.drive = ""
        if isinstance(target, Ssd) or text.startswith("sim:"):
            drive = target if isinstance(target, Ssd) else Ssd.find(text.removeprefix("sim:"))
            settings: dict[str, object] = {"ssd": {"config": drive.toml}}
            self.name = drive.name if isinstance(target, Ssd) else text
            self.drive = hashlib.sha256(drive.toml.encode()).hexdigest()[:16]
        else:
            disk = {
                "path": text,
                "destroys_data": destroys_data,
                "queue_depth": queue_depth,
                "busy_poll": False,
            }
            settings = {"disk": disk}
            self.name = text
        self._core = _core.Target(json.dumps(settings), seed)
        info = json.loads(self._core.info())
        self.kind: Literal["block-device", "file", "simulated"] = info["kind"]
        self.capacity_bytes = int(info["capacity_bytes"])
        self.block_bytes = int(info["block_bytes"])
        self.real_time = bool(info["real_time"])
        self.writes_allowed = bool(info["writes_allowed"])
        self.bytes_read = self.bytes_written = self.flushes = 0
        self._past_ns = 0
        self.watch: Callable[[], None] | None = None
        """Called now and then while requests are played; may raise to end the play."""

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the device back to the system."""
        self._core.close()

    @property
    def now_ns(self) -> int:
        """The target's clock, nanoseconds; a purge may set it back."""
        return self._core.now()

    @property
    def elapsed_ns(self) -> int:
        """Time on the target's clock since it was opened, nanoseconds, purges or not."""
        return self._past_ns + self.now_ns

    @checked(nanos=(0, 2**63))
    def idle(self, nanos: float) -> None:
        """Let time pass with nothing asked of the target.

        Parameters
        ----------
        nanos : float
            How long, nanoseconds.
        """
        self._core.idle(int(nanos))

    @checked()
    def play(
        self,
        kind: Kind | npt.ArrayLike,
        offsets_bytes: npt.ArrayLike,
        sizes_bytes: npt.ArrayLike,
        *,
        depth: int = 1,
    ) -> Times:
        """Play requests in a closed loop.

        Parameters
        ----------
        kind : str or array of str or int
            ``"read"``, ``"write"``, ``"trim"``, ``"flush"`` (or 0, 1, 2, 3), for all or for each.
        offsets_bytes : array of int, one a request
            Where each begins.
        sizes_bytes : int or array of int
            How long they are; flushes have no length.
        depth : int, optional
            Requests outstanding.

        Returns
        -------
        Times
            One a request, in the order of the request.

        Raises
        ------
        TargetError
            If it writes and the target may not be written.
        DeviceError
            If the device failed.
        """
        offsets = np.atleast_1d(_whole_numbers("offsets_bytes", offsets_bytes))
        sizes = _alike("sizes_bytes", _whole_numbers("sizes_bytes", sizes_bytes), offsets)
        given = np.atleast_1d(np.asarray(kind))
        if given.dtype.kind == "U":
            given = np.array([_CODES.get(name, len(_CODES)) for name in given])
        if given.dtype.kind not in "iu" or np.any((given < 0) | (given >= len(_CODES))):
            raise ArgumentError(f"play: kind: found {kind!r}, expected {', '.join(_CODES)}")
        codes = _alike("kind", given, offsets).astype(np.uint8)
        sizes[codes == _CODES["flush"]] = 0
        if not self.writes_allowed and np.any(codes != 0):
            raise TargetError(
                f"{self.name}: found writes, expected reads only", "--destroys-data allows writes"
            )
        if np.any(offsets < 0) or np.any((offsets | sizes) % _SECTOR):
            raise TargetError(
                f"{self.name}: found requests off the sectors of {_SECTOR} B, expected whole ones"
            )
        first = (offsets // _SECTOR).astype(np.uint64)
        sectors = (sizes // _SECTOR).astype(np.uint32)
        parts = []
        for cut in self._cuts(sizes, depth):
            if self.watch is not None:
                self.watch()
            parts.append(self._core.play(codes[cut], first[cut], sectors[cut], depth))
            self.bytes_read += int(sizes[cut][codes[cut] == 0].sum())
            self.bytes_written += int(sizes[cut][codes[cut] == 1].sum())
            self.flushes += int(np.count_nonzero(codes[cut] == _CODES["flush"]))
        if not parts:
            return Times(np.empty(0, np.uint64), np.empty(0, np.uint64))
        submitted, ended = zip(*parts, strict=True)
        return Times(np.concatenate(submitted), np.concatenate(ended))

    @staticmethod
    def _cuts(sizes: npt.NDArray[np.int64], depth: int) -> list[slice]:
        if depth > 1:
            edges = list(range(0, sizes.size, _CHUNK_DEEP))
        else:
            # Where the bytes or the requests of a chunk are full.
            full = np.cumsum(sizes) // _CHUNK_BYTES + np.arange(sizes.size) // _CHUNK_REQUESTS
            edges = [0, *(np.flatnonzero(np.diff(full)) + 1).tolist()] if sizes.size else []
        return [slice(a, b) for a, b in zip(edges, [*edges[1:], sizes.size], strict=True)]

    def flush(self) -> float:
        """Make everything written durable; how long it took, nanoseconds."""
        return float(self.play("flush", [0], 0).latency_ns[0])

    def fill(
        self, *, size_bytes: int = FILL_BYTES, first_bytes: int = 0, end_bytes: int | None = None
    ) -> Times:
        """Write a range once, in order, and flush.

        Parameters
        ----------
        size_bytes : int, optional
            Of each write; the last one is shorter where the range asks for it. Not large by default: a drive may cut a
            write larger than its buffer where it suits nobody.
        first_bytes, end_bytes : int, optional
            The range; by default all of the target.

        Returns
        -------
        Times
            Of the writes.
        """
        end = self.capacity_bytes if end_bytes is None else end_bytes
        offsets = np.arange(first_bytes, end, size_bytes)
        times = self.play("write", offsets, np.minimum(size_bytes, end - offsets))
        self.flush()
        return times

    def purge(self) -> bool:
        """Bring the target as near to new as it can be brought.

        Returns
        -------
        bool
            A simulated drive is erased, its clock begins anew: True. A real one is told that nothing on it is needed
            (discard): False if it does not take that.
        """
        if not self.writes_allowed:
            raise TargetError(
                f"{self.name}: found a purge, expected reads only", "--destroys-data allows it"
            )
        if self.watch is not None:
            self.watch()
        before = self.now_ns
        taken = self._core.purge()
        if not self.real_time:
            self._past_ns += before
        return taken

    def __repr__(self) -> str:
        return f"Target({self.name}, {self.capacity_bytes:,} B, {self.kind})"


Drive: TypeAlias = Target | Ssd | str | os.PathLike[str]
"""An open target, or what one can be opened from."""


@contextlib.contextmanager
def opened(drive: Drive) -> Iterator[Target]:
    """A target as it is, or one that is opened for the time of a ``with`` statement.

    Parameters
    ----------
    drive : Target, Ssd, str or path
        What is no target is opened without consent to write over data, which real devices need: open those with
        ``Target(path, destroys_data=True)``.

    Examples
    --------
    >>> with opened("sim:default") as target:
    ...     target.kind
    'simulated'
    """
    if isinstance(drive, Target):
        yield drive
    else:
        with Target(drive) as target:
            yield target


def _whole_numbers(name: str, given: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Numbers of bytes as an array."""
    try:
        found = np.asarray(given)
        if found.dtype.kind in "iu" or (
            found.dtype.kind == "f" and np.all(found == np.rint(found))
        ):
            return found.astype(np.int64)
    except ValueError:  # lists of different lengths
        pass
    raise ArgumentError(f"play: {name}: found {str(given)[:60]!r}, expected whole numbers of bytes")


def _alike(name: str, given: npt.NDArray[Any], offsets: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """One for each request."""
    if given.size not in (1, offsets.size):
        raise ArgumentError(
            f"play: {name}: found {given.size}, expected one, or one for each of {offsets.size} requests"
        )
    return np.array(np.broadcast_to(given, offsets.shape))
