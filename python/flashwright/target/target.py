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
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from flashwright.errors import ArgumentError, TargetError
from flashwright.simulation.ssd import Ssd
from flashwright.support.arguments import checked
from flashwright.support.core import SECTOR_BYTES, _core
from flashwright.support.exports import is_export
from flashwright.target.arrays import Ints
from flashwright.target.contents import NOISE, Contents
from flashwright.target.deadline import Allowance, Deadline, OutOfTimeError
from flashwright.target.guard import CODES, Core, Guarded, Range
from flashwright.target.times import Times

__all__ = [
    "FILL_BYTES",
    "Core",
    "Deadline",
    "Drive",
    "Kind",
    "OutOfTimeError",
    "Range",
    "Target",
    "Times",
    "opened",
]

Kind = Literal["read", "write", "trim", "flush"]

FILL_BYTES = 128 << 10
"""Default size of a write of :meth:`Target.fill`, bytes."""
# A longer play is cut, so that clocks and progress are checked: bytes of a cut.
_CHUNK_BYTES = 256 << 20
# Requests of a cut.
_CHUNK_REQUESTS = 1 << 16
# The same of several requests at a time. Chosen: cut rarely, since the queue runs empty there.
_CHUNK_DEEP = 1 << 18
# A simulated drive for reads alone is written once by requests of this size.
_PREFILL_BYTES = 1 << 20


class Target:
    """An open target. Use it in a ``with`` statement, so that the device is given back.

    Nothing is written unless `destroys_data` says that the target's data may be destroyed; a simulated drive has none.

    Parameters
    ----------
    target : str, path, Ssd or Core
        A block device or a regular file; or an export of an NBD server, ``nbd://HOST:PORT/EXPORT`` or
        ``nbd+unix:///EXPORT?socket=PATH``; or a subsystem of NVMe/TCP, ``nvme+tcp://HOST:PORT/NQN``; or
        ``sim:NAME`` with a bundled drive or a TOML file; or a drive as described; or a model of a drive in any
        language, behind the calls of :class:`Core`.
    destroys_data : bool, optional
        Whether the data on a real target may be overwritten. What is mounted or otherwise in use is refused whatever
        is said.
    queue_depth : int, optional
        Requests that a real device has at once, 1 to 4096.
    seed : int, optional
        Of the data that is written, and of what is random in a simulated drive.
    part : Range, optional
        Stay within this range, in whole blocks: addresses count from its start, a purge discards it alone, and nothing
        outside is read or written.
    read_only : bool, optional
        Refuse all writes. A simulated drive, which is empty at first, is written once in order before that, so that
        there is something to read.

    Attributes
    ----------
    name : str
        As it was given; of a drive as described, its name. A range stands behind it in brackets.
    drive : str
        Of a simulated drive, a digest of its description; else empty.
    path : str or None
        Of a real target.
    kind : {"block-device", "file", "nbd", "nvme-tcp", "simulated"}
        What it is.
    capacity_bytes, block_bytes : int
        Its size, or that of the range, and the unit of all addresses and lengths.
    whole_bytes : int
        The size of all of it.
    part : Range or None
        The range, where it is not all of the target.
    real_time : bool
        Whether its time is ours.
    read_only : bool
        Whether it was opened for reads alone.
    writes_allowed : bool
        Whether it may be written.
    bytes_read, bytes_written, flushes : int
        What was asked of it so far.

    Raises
    ------
    TargetError
        If it cannot be opened, is in use, or has no such range.
    ConfigError
        If there is no such drive.

    Examples
    --------
    >>> with Target("sim:default") as drive:
    ...     times = drive.play("write", np.arange(4) * 4096, 4096)
    ...     took_ns = drive.flush()
    >>> len(times.latency_ns), drive.bytes_written
    (4, 16384)
    >>> with Target("sim:default", part=Range(1 << 20, 64 << 20)) as drive:
    ...     drive.name, drive.capacity_bytes
    ('sim:default[1048576:67108864]', 67108864)
    """

    @checked(seed=(0, 2**64 - 1), queue_depth=(1, 4096))
    def __init__(
        self,
        target: str | os.PathLike[str] | Ssd | Core,
        *,
        destroys_data: bool = False,
        queue_depth: int = 128,
        seed: int = 1,
        part: Range | None = None,
        read_only: bool = False,
    ) -> None:
        self.name, self.drive = "", ""
        self.path: str | None = None
        device = self._device(target, destroys_data and not read_only, queue_depth, seed)
        info = json.loads(device.info())
        self.kind: Literal["block-device", "file", "nbd", "nvme-tcp", "simulated"] = info["kind"]
        self.whole_bytes = int(info["capacity_bytes"])
        self.block_bytes = int(info["block_bytes"])
        self.real_time = bool(info["real_time"])
        self.read_only = read_only
        self.writes_allowed = bool(info["writes_allowed"]) and not read_only
        self.bytes_read = self.bytes_written = self.flushes = 0
        self._past_ns = 0
        self._carried = NOISE
        try:
            self.part = None if part is None else self._checked(part)
        except TargetError:
            device.close()
            raise
        if read_only and not self.real_time:
            _write_once(device, self.whole_bytes)
        stays = self.part or Range(0, self.whole_bytes)
        self.capacity_bytes = stays.length_bytes
        if self.part is not None:
            self.name = f"{self.name}[{self.part}]"
        self._core = Guarded(
            device,
            self.name,
            stays,
            whole=self.part is None,
            reads_alone=not self.writes_allowed,
        )
        self.counted = self._core.counted
        """Of a model that counts: bytes from the host and to its flash; None of others."""
        self.watch: Callable[[], None] | None = None
        """Called now and then while requests are played; may raise to end the play."""

    def _device(
        self, target: str | os.PathLike[str] | Ssd | Core, writes: bool, queue_depth: int, seed: int
    ) -> Core:
        """What is behind the name; sets `name`, `path` and `drive`."""
        if not isinstance(target, str | os.PathLike | Ssd):
            self.name = json.loads(target.info())["name"]
            return target
        text = str(target) if not isinstance(target, Ssd) else ""
        settings: dict[str, object]
        if isinstance(target, Ssd) or text.startswith("sim:"):
            drive = target if isinstance(target, Ssd) else Ssd.find(text.removeprefix("sim:"))
            settings = {"ssd": {"config": drive.toml}}
            self.name = drive.name if isinstance(target, Ssd) else text
            self.drive = hashlib.sha256(drive.toml.encode()).hexdigest()[:16]
        elif is_export(text):
            settings = {
                "remote": {"uri": text, "destroys_data": writes, "queue_depth": queue_depth}
            }
            self.name = text
        else:
            disk = {
                "path": text,
                "destroys_data": writes,
                "queue_depth": queue_depth,
                "busy_poll": False,
            }
            settings = {"disk": disk}
            self.name = self.path = text
        return _core.Target(json.dumps(settings), seed)

    def _checked(self, part: Range) -> Range | None:
        """A range that there is; None for all of the target."""
        start, length, block = part.start_bytes, part.length_bytes, self.block_bytes
        if start % block or length % block:
            raise TargetError(
                f"{self.name}: found the range {part}, expected whole blocks of {block:,} B",
                "1MiB and multiples of it suit most drives",
            )
        if start < 0 or length <= 0 or start + length > self.whole_bytes:
            raise TargetError(
                f"{self.name}: found the range {part}, expected START:LENGTH within {self.whole_bytes:,} B",
                "",
            )
        return None if length == self.whole_bytes else part

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
        if isinstance(self.watch, Allowance):
            self.watch.rests(nanos)
        self._core.idle(int(nanos))

    @checked()
    def play(
        self,
        kind: Kind | npt.ArrayLike,
        offsets_bytes: npt.ArrayLike,
        sizes_bytes: npt.ArrayLike,
        *,
        depth: int = 1,
        data: Contents = NOISE,
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
        data : Contents, optional
            What writes carry. A simulated drive does the same with all data.

        Returns
        -------
        Times
            One a request, in the order of the request; none of no requests.

        Raises
        ------
        TargetError
            If it writes and the target may not be written, or a request lies outside of the target's range.
        DeviceError
            If the device failed.
        """
        offsets = np.atleast_1d(_whole_numbers("offsets_bytes", offsets_bytes))
        sizes = _broadcast("sizes_bytes", _whole_numbers("sizes_bytes", sizes_bytes), offsets)
        given = np.atleast_1d(np.asarray(kind))
        if given.dtype.kind == "U":
            given = np.array([CODES.get(name, len(CODES)) for name in given])
        if given.dtype.kind not in "iu" or np.any((given < 0) | (given >= len(CODES))):
            raise ArgumentError(f"play: kind: found {kind!r}, expected {', '.join(CODES)}")
        codes = _broadcast("kind", given, offsets).astype(np.uint8)
        sizes[codes == CODES["flush"]] = 0
        if np.any(offsets < 0) or np.any((offsets | sizes) % SECTOR_BYTES):
            raise TargetError(
                f"{self.name}: found requests off the sectors of {SECTOR_BYTES} B, expected whole ones"
            )
        first = (offsets // SECTOR_BYTES).astype(np.uint64)
        sectors = (sizes // SECTOR_BYTES).astype(np.uint32)
        if data != self._carried:
            self._core.carry(data.noise_share, data.repeats)
            self._carried = data
        parts = []
        for cut in self._timed_cuts(self._cuts(sizes, depth), depth):
            if self.watch is not None:
                self.watch()
            left_s = self.watch.left_s if isinstance(self.watch, Deadline) else None
            part = self._core.play(codes[cut], first[cut], sectors[cut], depth, left_s)
            parts.append(part)
            done = slice(cut.start, cut.start + part[0].size)
            self.bytes_read += int(sizes[done][codes[done] == 0].sum())
            self.bytes_written += int(sizes[done][codes[done] == 1].sum())
            self.flushes += int(np.count_nonzero(codes[done] == CODES["flush"]))
            if done.stop < cut.stop:
                if self.watch is not None:
                    self.watch()
                raise OutOfTimeError
        if not parts:
            return Times(np.empty(0, np.uint64), np.empty(0, np.uint64))
        submitted, ended = zip(*parts, strict=True)
        return Times(np.concatenate(submitted), np.concatenate(ended))

    def read_in_turn(self, offsets_bytes: Ints, size_bytes: int) -> Times:
        """Read groups of places, all of a group at once, each group when the one before has ended.

        The same as a :meth:`play` of each group with as much depth as it has places, in a fraction of our time.

        Parameters
        ----------
        offsets_bytes : array of int64, (groups, places)
            Where each read begins.
        size_bytes : int
            Of each read.

        Returns
        -------
        Times
            Arrays of (groups, places).

        Raises
        ------
        TargetError
            If a read lies outside of the target's range.
        """
        if np.any(offsets_bytes < 0) or np.any((offsets_bytes | size_bytes) % SECTOR_BYTES):
            raise TargetError(
                f"{self.name}: found requests off the sectors of {SECTOR_BYTES} B, expected whole ones"
            )
        first = (offsets_bytes // SECTOR_BYTES).astype(np.uint64)
        depth = first.shape[1]
        codes = np.full(depth, CODES["read"], np.uint8)
        sectors = np.full(depth, size_bytes // SECTOR_BYTES, np.uint32)
        submitted, ended = np.empty(first.shape, np.uint64), np.empty(first.shape, np.uint64)
        watch, play = self.watch, self._core.play
        for index, group in enumerate(first):
            if watch is not None:
                watch()
            left_s = watch.left_s if isinstance(watch, Deadline) else None
            begun, done = play(codes, group, sectors, depth, left_s)
            self.bytes_read += size_bytes * begun.size
            if begun.size < depth:
                if watch is not None:
                    watch()
                raise OutOfTimeError
            submitted[index], ended[index] = begun, done
        return Times(submitted, ended)

    def _timed_cuts(self, cuts: list[slice], depth: int) -> Iterator[slice]:
        """The cuts, smaller ones where a simulated drive may run out of its time within one."""
        for cut in cuts:
            if not isinstance(self.watch, Allowance) or self.real_time:
                yield cut
                continue
            at, count, took = cut.start, 0, 0.0
            while at < cut.stop:
                count = min(self.watch.next_count(count, took, depth), cut.stop - at)
                begun = self.elapsed_ns
                yield slice(at, at + count)
                took, at = self.elapsed_ns - begun, at + count

    @staticmethod
    def _cuts(sizes: Ints, depth: int) -> list[slice]:
        if sizes.size == 0:
            return []
        if depth > 1:
            edges = list(range(0, sizes.size, _CHUNK_DEEP))
        else:
            # Where the bytes or the requests of a chunk are full.
            full = np.cumsum(sizes) // _CHUNK_BYTES + np.arange(sizes.size) // _CHUNK_REQUESTS
            edges = [0, *(np.flatnonzero(np.diff(full)) + 1).tolist()]
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
            True for a simulated drive, which is erased and whose clock restarts. A real drive is discarded; False if
            it does not support that. The same holds for a part of either.
        """
        if self.watch is not None:
            self.watch()
        before = self.now_ns
        taken = self._core.purge()
        if not self.real_time and self.part is None:
            self._past_ns += before
        return taken

    def __repr__(self) -> str:
        return f"Target({self.name}, {self.capacity_bytes:,} B, {self.kind})"


def _write_once(device: Core, capacity_bytes: int) -> None:
    """Write all of a device in order."""
    offsets = np.arange(0, capacity_bytes, _PREFILL_BYTES)
    sizes = np.minimum(_PREFILL_BYTES, capacity_bytes - offsets)
    codes = np.full(offsets.size, CODES["write"], np.uint8)
    first, sectors = (
        (offsets // SECTOR_BYTES).astype(np.uint64),
        (sizes // SECTOR_BYTES).astype(np.uint32),
    )
    device.play(codes, first, sectors, 1)
    flush = np.array([CODES["flush"]], np.uint8)
    device.play(flush, np.zeros(1, np.uint64), np.zeros(1, np.uint32), 1)


Drive: TypeAlias = Target | Ssd | Core | str | os.PathLike[str]
"""An open target, or what one can be opened from."""


@contextlib.contextmanager
def opened(drive: Drive) -> Iterator[Target]:
    """A target as it is, or one that is opened for the time of a ``with`` statement.

    Parameters
    ----------
    drive : Target, Ssd, Core, str or path
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


def _whole_numbers(name: str, given: npt.ArrayLike) -> Ints:
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


def _broadcast(name: str, given: npt.NDArray[Any], offsets: Ints) -> npt.NDArray[Any]:
    """One for each request."""
    if given.size not in (1, offsets.size):
        raise ArgumentError(
            f"play: {name}: found {given.size}, expected one, or one for each of {offsets.size} requests"
        )
    return np.array(np.broadcast_to(given, offsets.shape))
