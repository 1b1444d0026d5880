"""Record what a block device is asked, through the kernel's block tracer.

The tracer named ``blk`` in tracefs writes one record for each step of a request. This module turns it
on for one device, keeps the *queue* steps (what a file system or a program asks for, before the
scheduler merges and the driver splits), puts them in order of time and writes them as a blktrace
file of version 7, which ``trace convert`` and ``blkparse`` read::

    file systems, programs
             |  Q  <- recorded: one record a bio
         scheduler      merges (M), sorts
             |  D, C    not recorded
          device

The ioctl interface that ``blktrace`` itself uses is refused under kernel lockdown; the tracer is not,
and needs no tool beside the kernel. There is one such tracer in a system, so one recording at a time.

What a file holds, in the byte order of the machine that made it:

- a time-stamp note: the wall clock at the start of the recording;
- a process note, with the name, before the first request of each process (and when a name changes);
- the requests, ordered by time. Times are nanoseconds of the monotonic clock since the start of the
  recording. Sectors are of 512 bytes and count from the start of the *recorded* device, a partition
  included.

Every setting of the tracer that is touched is put back, whatever happens in between.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import BinaryIO, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from flashwright.errors import FlashwrightError

__all__ = [
    "FLUSH",
    "READ",
    "REQUEST_DTYPE",
    "TRIM",
    "WRITE",
    "KernelPaths",
    "RecordError",
    "RecordSummary",
    "parse_blktrace",
    "process_names",
    "record",
]

Records: TypeAlias = npt.NDArray[np.void]

SECTOR_BYTES = 512

READ, WRITE, TRIM, FLUSH = 0, 1, 2, 3
"""Kinds of request, numbered as the core's ``RequestKind``."""

# The blktrace format, version 7: a header of 48 bytes, then `pdu_bytes` of payload.
_HEADER_FIELDS = [
    ("magic", "u4"),
    ("sequence", "u4"),
    ("time_ns", "u8"),
    ("sector", "u8"),
    ("bytes", "u4"),
    ("action", "u4"),
    ("pid", "u4"),
    ("device", "u4"),
    ("cpu", "u4"),
    ("error", "u2"),
    ("pdu_bytes", "u2"),
]
_HEADER = np.dtype(_HEADER_FIELDS)
_MAGIC = 0x65617400
_VERSION = 7
# The low half of an action says which step, the high half is a set of classes.
_STEP_MASK = 0xFF
_STEP_QUEUE = 1
_NOTE_PROCESS = 0
_NOTE_TIMESTAMP = 1
_CLASS_WRITE = 1 << (16 + 1)
_CLASS_FLUSH = 1 << (16 + 2)
_CLASS_SYNC = 1 << (16 + 3)
_CLASS_NOTE = 1 << (16 + 10)
_CLASS_AHEAD = 1 << (16 + 11)
_CLASS_META = 1 << (16 + 12)
_CLASS_TRIM = 1 << (16 + 13)
_CLASS_FUA = 1 << (16 + 15)
_NAME_BYTES = 16

REQUEST_DTYPE = np.dtype(
    [
        ("time_ns", np.uint64),
        ("first_sector", np.uint64),
        ("bytes", np.uint32),
        ("pid", np.uint32),
        ("kind", np.uint8),
        ("fua", np.bool_),
        ("preflush", np.bool_),
        ("sync", np.bool_),
        ("meta", np.bool_),
        ("ahead", np.bool_),
    ]
)
"""What :func:`parse_blktrace` gives: a row for each queued request.

``bytes`` is 0 for a flush alone; ``preflush`` marks a write that first makes everything before it
durable; ``ahead`` marks read-ahead, ``meta`` a file system's own data. The format does not tell a
"write zeroes" request from a write.
"""

# Records are held back this long before they are written, so that a record that another processor
# hands over late still finds its place.
_HOLD_NS = 1_000_000_000
# Between two looks at the pipe.
_POLL_S = 0.05
_PROGRESS_S = 0.25
_READ_BYTES = 1 << 16
_PORTION_BYTES = 1 << 20
# A request takes up to five events (queued, got, plugged, inserted, unplugged: the tracer can't be asked
# for one alone) of some 80 bytes each: 64 MiB a processor hold 160 thousand requests not yet read.
_BUFFER_KIB_PER_CPU_MAX = 64 << 10
_BUFFER_KIB_TOTAL_MAX = 1 << 20
_BUFFER_KIB_PER_CPU_MIN = 2 << 10
# The reader goes before the programs it records, or a busy machine would lose events.
_NICENESS = -15

_LOST_NOTICE = re.compile(rb"CPU:\d+ \[LOST (?:\d+ )?EVENTS\]\n")
_NOTICE_BYTES_MAX = 64

Stop: TypeAlias = Literal["seconds", "requests", "command", "interrupt"]


class RecordError(FlashwrightError):
    """A recording that can't be made, or bytes that are no blktrace file."""


@dataclass(frozen=True)
class KernelPaths:
    """Where the kernel's files are; tests put a made-up tree here.

    Parameters
    ----------
    tracefs : Path or None
        The tracer's directory; None finds the mounted one or mounts it for the time of the recording.
    sysfs, proc : Path
        The mounted ``sysfs`` and ``proc``.
    """

    tracefs: Path | None = None
    sysfs: Path = Path("/sys")
    proc: Path = Path("/proc")


@dataclass(frozen=True)
class RecordSummary:
    """What a recording holds.

    Attributes
    ----------
    device, output : Path
        What was recorded, and into which file.
    requests, reads, writes, trims, flushes : int
        Requests, all and by kind. A write that flushes first counts as a write.
    writes_fua, writes_preflush : int
        Writes that had to be durable when they completed; writes before which everything else had to.
    bytes_read, bytes_written, bytes_trimmed : int
        Bytes asked for, by kind.
    span_ns : int
        From the first request to the last.
    device_bytes : int
        Size of the device.
    processes : dict of int to str
        Names by process id, the last one where a process changed it.
    events_lost : int
        Events the kernel had no room for. Anything but 0 means that the recording has holes.
    events_late : int
        Records that arrived too late to be put in order; the file is not sorted around them.
    bytes_skipped : int
        Bytes in the tracer's stream that were no record, such as another program's trace output.
    stopped : {"seconds", "requests", "command", "interrupt"}
        What ended the recording.
    command_status : int or None
        Exit status of the command, negative for a signal; None without a command.
    """

    device: Path
    output: Path
    requests: int
    reads: int
    writes: int
    trims: int
    flushes: int
    writes_fua: int
    writes_preflush: int
    bytes_read: int
    bytes_written: int
    bytes_trimmed: int
    span_ns: int
    device_bytes: int
    processes: dict[int, str]
    events_lost: int
    events_late: int
    bytes_skipped: int
    stopped: Stop
    command_status: int | None

    @property
    def read_share(self) -> float | None:
        """Reads over reads and writes, 0 to 1; None where there is neither."""
        moved = self.reads + self.writes
        return self.reads / moved if moved else None

    @property
    def complete(self) -> bool:
        """Whether nothing was lost on the way and nobody interrupted the recording."""
        return self.events_lost == 0 and self.stopped != "interrupt"


def parse_blktrace(data: bytes) -> Records:
    """Read the queued requests of a blktrace file.

    Parameters
    ----------
    data : bytes
        A whole file of version 7, of either byte order: one processor's file, or several merged.

    Returns
    -------
    numpy.ndarray
        A row of `REQUEST_DTYPE` for each queued request, in the file's order. Other steps of a
        request (merged, issued, completed, …) and notes are left out.

    Raises
    ------
    RecordError
        If the bytes are no such file; the message says where.

    Examples
    --------
    >>> len(parse_blktrace(b""))
    0
    >>> parse_blktrace(b"not a trace")
    Traceback (most recent call last):
    ...
    flashwright.traces.record.RecordError: byte 0: 11 bytes are left; a blktrace record has 48
    """
    records, _ = _whole_file(data)
    return _requests(records[_is_request(records)])


def process_names(data: bytes) -> dict[int, str]:
    """Read the names of the processes that a blktrace file notes.

    Parameters
    ----------
    data : bytes
        A whole file of version 7.

    Returns
    -------
    dict of int to str
        Name by process id; the last one where a process changed it.

    Raises
    ------
    RecordError
        If the bytes are no such file.
    """
    records, payloads = _whole_file(data)
    names: dict[int, str] = {}
    notes = (records["action"] & _CLASS_NOTE != 0) & (
        records["action"] & _STEP_MASK == _NOTE_PROCESS
    )
    for index in np.flatnonzero(notes):
        start, length = payloads.get(int(index), (0, 0))
        name = data[start : start + length].split(b"\0", 1)[0]
        names[int(records["pid"][index])] = name.decode("utf-8", "replace")
    return names


def record(
    device: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    seconds: float | None = None,
    requests: int | None = None,
    command: Sequence[str] | None = None,
    progress: Callable[[int, float], None] | None = None,
    kernel: KernelPaths | None = None,
) -> RecordSummary:
    """Record the requests that reach a block device.

    The recording ends at the first of: `seconds` are over, `requests` are recorded, `command` has
    ended, an interrupt (Ctrl-C, SIGTERM, SIGHUP). In each case what was recorded is written. With
    neither limit nor command it runs until interrupted.

    Parameters
    ----------
    device : path
        A disk, a partition or a loop device.
    output : path
        The blktrace file to write; it appears, or replaces an old one, once it is whole. It must not
        lie on the recorded device, which would record its own writing.
    seconds : float, optional
        Longest time to record.
    requests : int, optional
        Most requests to record.
    command : sequence of str, optional
        A program, with its arguments, to run while recording. If something else ends the recording
        first, the program gets SIGTERM. What the program leaves in the page cache is not recorded:
        end it with ``sync`` where that matters.
    progress : callable, optional
        Called a few times a second with the requests so far and the seconds since the start.
    kernel : KernelPaths, optional
        Where the kernel's files are, for tests.

    Returns
    -------
    RecordSummary
        Counts by kind, and what was lost on the way.

    Raises
    ------
    RecordError
        If the device can't be recorded, with the reason and what to try.

    Examples
    --------
    >>> summary = record("/dev/loop0", "sync.blktrace", command=["sync"])  # doctest: +SKIP
    >>> summary.requests, summary.flushes  # doctest: +SKIP
    (9, 2)
    """
    if seconds is not None and not seconds > 0:
        raise RecordError(f"seconds is {seconds}; expected more than 0")
    if requests is not None and requests < 1:
        raise RecordError(f"requests is {requests}; expected 1 or more")
    if command is not None and not command:
        raise RecordError("the command is empty", "name a program, or leave it out")
    kernel = kernel or KernelPaths()
    if os.geteuid() != 0:
        raise RecordError("recording needs root", "run it with sudo")
    target = _find_device(Path(device), kernel)
    out = Path(output)
    _check_output(out, target)

    with contextlib.ExitStack() as stack:
        tracefs = stack.enter_context(_mounted_tracefs(kernel))
        _check_tracer(tracefs, target)
        part = stack.enter_context(_beside(out))
        interrupted = stack.enter_context(_signals_noted())
        with open(part, "wb") as file:
            tracer = stack.enter_context(_tracing(tracefs, target))
            writer = _Writer(file, tracer.start_ns, target.first_sector, requests)
            names = _Names(tracefs, kernel.proc)
            stopped, status = _run(tracer, writer, names, seconds, command, interrupted, progress)
            writer.finish()
        os.replace(part, out)
    return RecordSummary(
        device=Path(device),
        output=out,
        requests=writer.requests,
        reads=writer.count[READ],
        writes=writer.count[WRITE],
        trims=writer.count[TRIM],
        flushes=writer.count[FLUSH],
        writes_fua=writer.writes_fua,
        writes_preflush=writer.writes_preflush,
        bytes_read=writer.bytes[READ],
        bytes_written=writer.bytes[WRITE],
        bytes_trimmed=writer.bytes[TRIM],
        span_ns=writer.span_ns,
        device_bytes=target.sectors * SECTOR_BYTES,
        processes=names.known,
        events_lost=tracer.events_lost,
        events_late=writer.events_late,
        bytes_skipped=tracer.bytes_skipped,
        stopped=stopped,
        command_status=status,
    )


# --- The format ------------------------------------------------------------------------------


def _whole_file(data: bytes) -> tuple[Records, dict[int, tuple[int, int]]]:
    """All records of a file, and the (start, length) of the payloads that are there, by record."""
    if len(data) < _HEADER.itemsize:
        if data:
            raise _no_room(0, len(data))
        return np.empty(0, _HEADER), {}
    header = _header_of(data)
    parts: list[Records] = []
    payloads: dict[int, tuple[int, int]] = {}
    offset = done = 0
    while offset < len(data):
        run = _run_of_records(data, offset, header)
        if not len(run):
            if len(data) - offset < header.itemsize:
                raise _no_room(offset, len(data) - offset)
            magic = int.from_bytes(data[offset : offset + 4], sys.byteorder)
            raise RecordError(
                f"byte {offset}: a record starts with 0x{magic:08x}; "
                f"expected 0x{_MAGIC | _VERSION:08x}",
                "the file may be damaged, or no blktrace file",
            )
        parts.append(run)
        offset += run.nbytes
        done += len(run)
        payload = int(run["pdu_bytes"][-1])
        if payload:
            if offset + payload > len(data):
                raise RecordError(
                    f"byte {offset}: a payload of {payload} bytes runs past the end of the file",
                    "the file may be cut short",
                )
            payloads[done - 1] = (offset, payload)
            offset += payload
    return np.concatenate(parts), payloads


def _no_room(offset: int, left: int) -> RecordError:
    return RecordError(
        f"byte {offset}: {left} bytes are left; a blktrace record has {_HEADER.itemsize}",
        "the file may be cut short",
    )


def _header_of(data: bytes) -> np.dtype[np.void]:
    """The record header in the byte order that the first magic number tells."""
    orders: tuple[tuple[Literal["little", "big"], Literal["<", ">"]], ...] = (
        ("little", "<"),
        ("big", ">"),
    )
    for order, code in orders:
        magic = int.from_bytes(data[:4], order)
        if magic & 0xFFFFFF00 == _MAGIC:
            if magic & 0xFF != _VERSION:
                raise RecordError(
                    f"blktrace version {magic & 0xFF}; expected version {_VERSION}",
                    "convert it with the blktrace tools of the machine that made it",
                )
            return _HEADER.newbyteorder(code)
    magic = int.from_bytes(data[:4], sys.byteorder)
    raise RecordError(
        f"byte 0: the file starts with 0x{magic:08x}; expected 0x{_MAGIC | _VERSION:08x}",
        "it is no blktrace file; is it compressed?",
    )


def _run_of_records(data: bytes | bytearray, offset: int, header: np.dtype[np.void]) -> Records:
    """Records from `offset` on, up to the first that has a payload (included) or is none (excluded)."""
    found = 0
    window = 16
    available = (len(data) - offset) // header.itemsize
    while found < available:
        count = min(window, available - found)
        at = np.frombuffer(data, header, count, offset + found * header.itemsize)
        stops = (at["magic"] != _MAGIC | _VERSION) | (at["pdu_bytes"] != 0)
        if stops.any():
            first = int(stops.argmax())
            found += first + int(at["magic"][first] == _MAGIC | _VERSION)
            break
        found += count
        window = min(window * 4, 1 << 16)
    # A copy: the live buffer is cut after this, which a view would forbid.
    return np.frombuffer(data, header, found, offset).copy()


def _is_request(records: Records) -> npt.NDArray[np.bool_]:
    action = records["action"]
    queued: npt.NDArray[np.bool_] = (action & _CLASS_NOTE == 0) & (
        action & _STEP_MASK == _STEP_QUEUE
    )
    return queued


def _requests(records: Records) -> Records:
    """Rows of `REQUEST_DTYPE` for records of queued requests."""
    action = records["action"]
    rows = np.empty(len(records), REQUEST_DTYPE)
    rows["time_ns"] = records["time_ns"]
    rows["first_sector"] = records["sector"]
    rows["bytes"] = records["bytes"]
    rows["pid"] = records["pid"]
    flushes = action & _CLASS_FLUSH != 0
    # A flush alone travels as an empty write that asks for a flush first.
    alone = flushes & (records["bytes"] == 0)
    trims = action & _CLASS_TRIM != 0
    rows["kind"] = np.where(action & _CLASS_WRITE != 0, WRITE, READ)
    rows["kind"][trims] = TRIM
    rows["kind"][alone] = FLUSH
    rows["preflush"] = flushes & ~alone
    rows["fua"] = (action & _CLASS_FUA != 0) & ~alone
    rows["sync"] = action & _CLASS_SYNC != 0
    rows["meta"] = action & _CLASS_META != 0
    rows["ahead"] = action & _CLASS_AHEAD != 0
    return rows


def _note(step: int, time_ns: int, pid: int, payload: bytes) -> bytes:
    header = np.zeros(1, _HEADER)
    header["magic"] = _MAGIC | _VERSION
    header["time_ns"] = time_ns
    header["action"] = _CLASS_NOTE | step
    header["pid"] = pid
    header["pdu_bytes"] = len(payload)
    return header.tobytes() + payload


# --- The device and the tracer's settings ------------------------------------------------------


@dataclass(frozen=True)
class _Target:
    path: Path
    sysfs: Path
    first_sector: int
    sectors: int
    numbers: frozenset[int]
    """Device numbers whose file systems lie on this device."""


def _device_number(path: Path) -> int:
    try:
        found = os.stat(path)
    except OSError as error:
        raise RecordError(
            f"{path}: {error.strerror}", "lsblk lists the block devices of this machine"
        ) from error
    if not stat.S_ISBLK(found.st_mode):
        what = "a directory" if stat.S_ISDIR(found.st_mode) else "no block device"
        raise RecordError(
            f"{path}: this is {what}; expected a block device",
            "for an image file: losetup --find --show FILE, then record the loop device",
        )
    return found.st_rdev


def _find_device(path: Path, kernel: KernelPaths) -> _Target:
    number = _device_number(path)
    sysfs = kernel.sysfs / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
    if not sysfs.exists():
        raise RecordError(f"{path}: the kernel knows no device {sysfs.name}", "is it still there?")
    sysfs = sysfs.resolve()
    if not (sysfs / "trace" / "enable").exists():
        raise RecordError(
            f"{path}: the kernel can't trace this device ({sysfs / 'trace'} is missing)",
            "it needs a kernel with CONFIG_BLK_DEV_IO_TRACE",
        )
    partition = (sysfs / "partition").exists()
    numbers = {number}
    if not partition:
        for inner in sysfs.glob("*/partition"):
            major, minor = (inner.parent / "dev").read_text().split(":")
            numbers.add(os.makedev(int(major), int(minor)))
    return _Target(
        path=path,
        sysfs=sysfs,
        first_sector=int(_get(sysfs / "start")) if partition else 0,
        sectors=int(_get(sysfs / "size")),
        numbers=frozenset(numbers),
    )


def _check_output(out: Path, target: _Target) -> None:
    folder = out.parent
    if not folder.is_dir():
        raise RecordError(f"{out}: the folder {folder} is missing", "make it first")
    if out.exists() and not out.is_file():
        raise RecordError(f"{out}: this is no plain file", "name a file to write")
    if os.stat(folder).st_dev in target.numbers:
        raise RecordError(
            f"{out}: lies on {target.path}, which would record its own writing",
            "write to another file system, such as /dev/shm, and move the file afterwards",
        )


def _check_tracer(tracefs: Path, target: _Target) -> None:
    if "blk" not in _get(tracefs / "available_tracers").split():
        raise RecordError(
            "this kernel has no block tracer (blk is not in available_tracers)",
            "it needs a kernel with CONFIG_BLK_DEV_IO_TRACE",
        )
    busy = _get(tracefs / "current_tracer")
    if busy != "nop":
        raise RecordError(
            f"the kernel's tracer is in use (current_tracer is {busy})",
            f"wait for it to end, or stop it: echo nop > {tracefs / 'current_tracer'}",
        )
    if _get(tracefs / "set_event"):
        raise RecordError(
            "kernel trace events are enabled, which would mix with the recording",
            f"wait for their user to end, or turn them off: echo > {tracefs / 'set_event'}",
        )
    if _get(target.sysfs / "trace" / "enable") != "0":
        raise RecordError(
            f"{target.path}: somebody else is tracing this device",
            f"wait for it to end, or stop it: echo 0 > {target.sysfs / 'trace' / 'enable'}",
        )


def _get(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        raise _refused(path, error) from error


def _put(path: Path, value: str) -> None:
    try:
        path.write_text(value)
    except OSError as error:
        raise _refused(path, error) from error


def _refused(path: Path, error: OSError) -> RecordError:
    hint = ""
    if isinstance(error, PermissionError):
        hint = "the kernel may be locked down (cat /sys/kernel/security/lockdown)"
    return RecordError(f"{path}: {error.strerror}", hint)


@contextlib.contextmanager
def _mounted_tracefs(kernel: KernelPaths) -> Iterator[Path]:
    """The tracer's directory; mounted, and unmounted at the end, where nobody has mounted it."""
    if kernel.tracefs is not None:
        yield kernel.tracefs
        return
    for line in _get(kernel.proc / "self" / "mounts").splitlines():
        _, where, kind, *_ = line.split(" ")
        if kind == "tracefs":
            yield Path(where)
            return
    where = str(kernel.sysfs / "kernel" / "tracing")
    mount = ["mount", "-t", "tracefs", "tracefs", where]
    done = subprocess.run(mount, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise RecordError(
            f"{where}: the kernel's tracer can't be mounted: {done.stderr.strip()}",
            "it needs a kernel with CONFIG_FTRACE, and tracing allowed by its lockdown",
        )
    try:
        yield Path(where)
    finally:
        subprocess.run(["umount", where], check=False, capture_output=True)


@dataclass
class _Settings:
    """Kernel settings that were changed, and how to put them back, last first."""

    undo: list[tuple[Path, str]] = field(default_factory=list)

    def change(self, path: Path, value: str, old: str | None = None) -> None:
        old = _get(path) if old is None else old
        if old != value:
            # Noted first: an interrupted change must be put back too.
            self.undo.append((path, old))
            _put(path, value)

    def restore(self) -> list[RecordError]:
        faults = []
        while self.undo:
            try:
                _put(*self.undo.pop())
            except RecordError as error:
                faults.append(error)
        return faults


def _clock_in_use(tracefs: Path) -> str:
    found = re.search(r"\[(.+?)\]", _get(tracefs / "trace_clock"))
    return found.group(1) if found else "local"


def _buffer_kib_in_use(tracefs: Path) -> str:
    """The size of a processor's buffer. A kernel that has traced nothing yet keeps a tiny one and says
    what it grows to; it grows now, so that size is what a later user would have had."""
    words = _get(tracefs / "buffer_size_kb")
    grown = re.search(r"expanded: (\d+)", words)
    return grown.group(1) if grown else words


@contextlib.contextmanager
def _tracing(tracefs: Path, target: _Target) -> Iterator[_Tracer]:
    settings = _Settings()
    pipe = -1
    failed = True
    try:
        memory_kib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 10
        share_kib = min(_BUFFER_KIB_TOTAL_MAX, memory_kib // 16) // (os.cpu_count() or 1)
        buffer_kib = max(_BUFFER_KIB_PER_CPU_MIN, min(_BUFFER_KIB_PER_CPU_MAX, share_kib))
        in_use = _buffer_kib_in_use(tracefs)
        # "X" where processors differ: then they are left alone.
        if in_use.isdigit():
            wanted = str(max(buffer_kib, int(in_use)))
            settings.change(tracefs / "buffer_size_kb", wanted, old=in_use)
        # One clock over all processors; the default one runs apart by some microseconds.
        settings.change(tracefs / "trace_clock", "mono", old=_clock_in_use(tracefs))
        options = tracefs / "options"
        for option, value in (
            ("bin", "1"),
            ("context-info", "0"),
            ("blk_classic", "0"),
            ("blk_cgroup", "0"),
            ("blk_cgname", "0"),
            ("markers", "0"),
            ("record-cmd", "1"),
        ):
            if (options / option).exists():
                settings.change(options / option, value)
        settings.change(tracefs / "tracing_on", "1")
        # In this order: the tracer can't be changed while its pipe is open, and nothing is recorded
        # before the device is enabled.
        settings.change(tracefs / "current_tracer", "blk")
        _put(tracefs / "trace", "")
        try:
            pipe = os.open(tracefs / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            raise _refused(tracefs / "trace_pipe", error) from error
        lost_before = _events_lost(tracefs)
        start_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        settings.change(target.sysfs / "trace" / "enable", "1")
        _put(target.sysfs / "trace" / "act_mask", "queue")
        yield _Tracer(tracefs, target, pipe, start_ns, lost_before)
        failed = False
    finally:
        if pipe >= 0:
            os.close(pipe)
        faults = settings.restore()
        if faults and not failed:
            raise RecordError(f"a setting could not be put back: {faults[0]}", faults[0].hint)


def _events_lost(tracefs: Path) -> int:
    lost = 0
    for path in tracefs.glob("per_cpu/cpu*/stats"):
        for line in _get(path).splitlines():
            name, _, value = line.partition(": ")
            if name in ("overrun", "commit overrun", "dropped events"):
                lost += int(value)
    return lost


# --- Recording ---------------------------------------------------------------------------------


@dataclass
class _Tracer:
    """The running tracer: bytes in, whole records out."""

    tracefs: Path
    target: _Target
    pipe: int
    start_ns: int
    lost_before: int
    bytes_skipped: int = 0
    events_lost: int = 0
    _tail: bytearray = field(default_factory=bytearray)
    _version_checked: bool = False

    def read(self) -> Iterator[Records]:
        """What is in the pipe by now, in portions worth the trouble of parsing."""
        drained = False
        while not drained:
            # The kernel hands over a page or two a time.
            while len(self._tail) < _PORTION_BYTES and not drained:
                try:
                    got = os.read(self.pipe, _READ_BYTES)
                except BlockingIOError:
                    got = b""
                except OSError as error:
                    raise _refused(self.tracefs / "trace_pipe", error) from error
                self._tail += got
                drained = not got
            records = self._cut()
            if len(records):
                yield records

    def stop(self) -> None:
        """Ends the trace of the device; what is in the pipe stays there to be read."""
        _put(self.target.sysfs / "trace" / "enable", "0")

    def note_losses(self) -> None:
        self.events_lost = max(0, _events_lost(self.tracefs) - self.lost_before)

    def _cut(self) -> Records:
        parts = []
        offset = 0
        if not self._version_checked and len(self._tail) >= _HEADER.itemsize:
            self._check_version()
        while True:
            run = _run_of_records(self._tail, offset, _HEADER)
            if len(run):
                end = offset + run.nbytes + int(run["pdu_bytes"][-1])
                if end > len(self._tail):
                    # The last one's payload is still to come.
                    run = run[:-1]
                    parts.append(run)
                    offset += run.nbytes
                    break
                parts.append(run)
                offset = end
            elif len(self._tail) - offset < _HEADER.itemsize:
                break
            else:
                # No record: the kernel says in words that it lost some, or somebody wrote a marker.
                magic = (_MAGIC | _VERSION).to_bytes(4, sys.byteorder)
                found = self._tail.find(magic, offset)
                if found < 0:
                    # The end may be the kernel's words cut in half; anything longer is noise.
                    noise = len(self._tail) - offset - _NOTICE_BYTES_MAX
                    if noise > 0:
                        self.bytes_skipped += noise
                        offset += noise
                    break
                if not _LOST_NOTICE.fullmatch(self._tail, offset, found):
                    self.bytes_skipped += found - offset
                offset = found
        del self._tail[:offset]
        for run in parts:
            run["pdu_bytes"] = 0
        return np.concatenate(parts) if parts else np.empty(0, _HEADER)

    def _check_version(self) -> None:
        magic = int.from_bytes(self._tail[:4], sys.byteorder)
        if magic & 0xFFFFFF00 == _MAGIC:
            self._version_checked = True
            if magic & 0xFF != _VERSION:
                raise RecordError(
                    f"this kernel writes blktrace version {magic & 0xFF}; "
                    f"expected version {_VERSION}",
                    "record with the blktrace program and convert its file",
                )


@dataclass
class _Names:
    """Names of processes, from what the tracer itself noted or, failing that, from /proc."""

    tracefs: Path
    proc: Path
    known: dict[int, str] = field(default_factory=dict)

    def news(self, pids: Iterator[int]) -> list[tuple[int, str]]:
        """Those of `pids` whose name is new or has changed since it was last asked for."""
        noted: dict[int, str] = {}
        with contextlib.suppress(RecordError):
            for line in _get(self.tracefs / "saved_cmdlines").splitlines():
                number, _, noted_name = line.partition(" ")
                if number.isdigit() and noted_name != "<...>":
                    noted[int(number)] = noted_name
        news = []
        for pid in pids:
            name = noted.get(pid)
            if name is None and pid not in self.known:
                with contextlib.suppress(OSError):
                    name = (self.proc / str(pid) / "comm").read_text().strip()
            if name and name != self.known.get(pid):
                self.known[pid] = name
                news.append((pid, name))
        return news


class _Writer:
    """Puts records in order of time and writes them, in constant memory for any length."""

    def __init__(self, file: BinaryIO, start_ns: int, first_sector: int, most: int | None) -> None:
        self.requests = 0
        self.count = [0, 0, 0, 0]
        self.bytes = [0, 0, 0, 0]
        self.writes_fua = 0
        self.writes_preflush = 0
        self.events_late = 0
        self.seen = 0
        self._file = file
        self._start_ns = start_ns
        self._first_sector = first_sector
        self._most = most
        self._held: list[Records] = []
        self._notes: deque[tuple[int, int, str]] = deque()
        self._newest_ns = 0
        self._first_ns: int | None = None
        self._last_ns = 0
        wall_ns = time.time_ns() - (time.clock_gettime_ns(time.CLOCK_MONOTONIC) - start_ns)
        seconds, rest_ns = divmod(wall_ns, 1_000_000_000)
        stamp = np.array([seconds, rest_ns], np.uint32).tobytes()
        self._file.write(_note(_NOTE_TIMESTAMP, 0, 0, stamp))

    @property
    def span_ns(self) -> int:
        return 0 if self._first_ns is None else self._last_ns - self._first_ns

    @property
    def full(self) -> bool:
        return self._most is not None and self.seen >= self._most

    def take(self, records: Records, names: _Names) -> None:
        """Accepts records as they come; those that are no queued request are dropped."""
        records = records[_is_request(records)]
        if not len(records):
            return
        # A clock read on another processor may lie a hair before the start.
        times = records["time_ns"].astype(np.int64) - self._start_ns
        records["time_ns"] = np.maximum(times, 0)
        moved = records["bytes"] > 0
        records["sector"][moved] -= np.uint64(self._first_sector)
        pids, first = np.unique(records["pid"], return_index=True)
        when = dict(zip(pids.tolist(), records["time_ns"][first].tolist(), strict=True))
        for pid, name in names.news(iter(when)):
            self._notes.append((when[pid], pid, name))
        self._held.append(records)
        self.seen += len(records)
        self._newest_ns = max(self._newest_ns, int(records["time_ns"].max()))
        oldest = int(self._held[0]["time_ns"].min())
        if self._newest_ns - oldest > 2 * _HOLD_NS:
            self._write_until(self._newest_ns - _HOLD_NS)

    def finish(self) -> None:
        self._write_until(None)
        self._file.flush()
        os.fsync(self._file.fileno())

    def _write_until(self, end_ns: int | None) -> None:
        if not self._held:
            return
        held = np.concatenate(self._held)
        held = held[np.argsort(held["time_ns"], kind="stable")]
        if end_ns is None:
            self._held = []
        else:
            cut = int(np.searchsorted(held["time_ns"], end_ns))
            self._held = [held[cut:]]
            held = held[:cut]
        if self._most is not None:
            held = held[: self._most - self.requests]
        if not len(held):
            return
        self.events_late += int((held["time_ns"] < self._last_ns).sum())
        last_ns = int(held["time_ns"][-1])
        begin = 0
        later: deque[tuple[int, int, str]] = deque()
        for note in sorted(self._notes):
            if note[0] > last_ns:
                later.append(note)
                continue
            at = int(np.searchsorted(held["time_ns"], note[0]))
            self._file.write(held[begin:at].tobytes())
            begin = at
            name = note[2].encode()[: _NAME_BYTES - 1].ljust(_NAME_BYTES, b"\0")
            self._file.write(_note(_NOTE_PROCESS, note[0], note[1], name))
        self._file.write(held[begin:].tobytes())
        self._notes = later
        self._count(held)

    def _count(self, records: Records) -> None:
        rows = _requests(records)
        self.requests += len(rows)
        for kind in (READ, WRITE, TRIM, FLUSH):
            of_kind = rows["kind"] == kind
            self.count[kind] += int(of_kind.sum())
            self.bytes[kind] += int(rows["bytes"][of_kind].sum(dtype=np.uint64))
        # Both flags are only ever set on writes that carry data; see `_requests`.
        self.writes_fua += int(rows["fua"].sum())
        self.writes_preflush += int(rows["preflush"].sum())
        if self._first_ns is None:
            self._first_ns = int(rows["time_ns"][0])
        self._last_ns = max(self._last_ns, int(rows["time_ns"][-1]))


def _run(
    tracer: _Tracer,
    writer: _Writer,
    names: _Names,
    seconds: float | None,
    command: Sequence[str] | None,
    interrupted: threading.Event,
    progress: Callable[[int, float], None] | None,
) -> tuple[Stop, int | None]:
    """Records until something ends it; says what, and the command's exit status."""
    child = None
    begin = time.monotonic()
    if command is not None:
        try:
            child = subprocess.Popen([os.fspath(word) for word in command])
        except OSError as error:
            raise RecordError(f"{command[0]}: {error.strerror}", "is it installed?") from error
    told = begin
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    try:
        # After the command was started, which would inherit it.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, min(niceness, _NICENESS))
        while True:
            # Asked before the pipe is read, so that all the command did is in what is read.
            ended = child is not None and child.poll() is not None
            for records in tracer.read():
                writer.take(records, names)
                if writer.full or interrupted.is_set():
                    break
            now = time.monotonic()
            if progress is not None and now - told >= _PROGRESS_S:
                told = now
                progress(writer.seen, now - begin)
            stopped: Stop
            if interrupted.is_set():
                stopped = "interrupt"
            elif writer.full:
                stopped = "requests"
            elif ended:
                stopped = "command"
            elif seconds is not None and now - begin >= seconds:
                stopped = "seconds"
            else:
                left = _POLL_S if seconds is None else min(_POLL_S, seconds - (now - begin))
                time.sleep(max(0.0, left))
                continue
            break
        tracer.stop()
        for records in tracer.read():
            writer.take(records, names)
        tracer.note_losses()
    finally:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, niceness)
        if child is not None:
            _end(child, patient=interrupted.is_set())
    return stopped, None if child is None else child.returncode


def _end(child: subprocess.Popen[bytes], patient: bool) -> None:
    """Ends the command. After a Ctrl-C, which it got as well, it has a moment to end by itself."""
    for grace_s, ask in ((2.0 if patient else 0.0, child.terminate), (10.0, child.kill)):
        try:
            child.wait(grace_s)
            return
        except subprocess.TimeoutExpired:
            ask()
    child.wait()


@contextlib.contextmanager
def _signals_noted() -> Iterator[threading.Event]:
    """Signals that end a program are noted instead, so that the recording ends in order.

    Only the main thread gets signals; elsewhere this does nothing.
    """
    noted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return

    def note(_signal: int, _frame: FrameType | None) -> None:
        noted.set()

    before = {number: signal.signal(number, note) for number in _ENDING_SIGNALS}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def _beside(out: Path) -> Iterator[Path]:
    """A file next to `out` to write into; what is left of it at the end is removed."""
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)
