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
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import BinaryIO, Literal, TypeAlias

import numpy as np

from flashwright.traces.blktrace import (
    FLUSH,
    NAME_BYTES,
    NOTE_PROCESS,
    NOTE_TIMESTAMP,
    READ,
    REQUEST_DTYPE,
    SECTOR_BYTES,
    TRIM,
    WRITE,
    RecordError,
    Records,
    is_request,
    note_bytes,
    parse_blktrace,
    process_names,
    requests_of,
)
from flashwright.traces.tracer import (
    KernelPaths,
    TracedDevice,
    Tracer,
    check_tracer,
    find_device,
    get,
    mounted_tracefs,
    tracing,
)

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

# Records are held back this long before they are written, so that a record that another processor
# hands over late still finds its place.
_HOLD_NS = 1_000_000_000
# Between two looks at the pipe.
_POLL_S = 0.05
_PROGRESS_S = 0.25
# The reader goes before the programs it records, or a busy machine would lose events.
_NICENESS = -15

Stop: TypeAlias = Literal["seconds", "requests", "command", "interrupt"]


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
    target = find_device(Path(device), kernel)
    out = Path(output)
    _check_output(out, target)

    with contextlib.ExitStack() as stack:
        tracefs = stack.enter_context(mounted_tracefs(kernel))
        check_tracer(tracefs, target)
        part = stack.enter_context(_beside(out))
        interrupted = stack.enter_context(_signals_noted())
        with open(part, "wb") as file:
            tracer = stack.enter_context(tracing(tracefs, target))
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


def _check_output(out: Path, target: TracedDevice) -> None:
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


# --- Recording ---------------------------------------------------------------------------------


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
            for line in get(self.tracefs / "saved_cmdlines").splitlines():
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
        self._file.write(note_bytes(NOTE_TIMESTAMP, 0, 0, stamp))

    @property
    def span_ns(self) -> int:
        return 0 if self._first_ns is None else self._last_ns - self._first_ns

    @property
    def full(self) -> bool:
        return self._most is not None and self.seen >= self._most

    def take(self, records: Records, names: _Names) -> None:
        """Accepts records as they come; those that are no queued request are dropped."""
        records = records[is_request(records)]
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
            name = note[2].encode()[: NAME_BYTES - 1].ljust(NAME_BYTES, b"\0")
            self._file.write(note_bytes(NOTE_PROCESS, note[0], note[1], name))
        self._file.write(held[begin:].tobytes())
        self._notes = later
        self._count(held)

    def _count(self, records: Records) -> None:
        rows = requests_of(records)
        self.requests += len(rows)
        for kind in (READ, WRITE, TRIM, FLUSH):
            of_kind = rows["kind"] == kind
            self.count[kind] += int(of_kind.sum())
            self.bytes[kind] += int(rows["bytes"][of_kind].sum(dtype=np.uint64))
        # Both flags are only ever set on writes that carry data; see `requests_of`.
        self.writes_fua += int(rows["fua"].sum())
        self.writes_preflush += int(rows["preflush"].sum())
        if self._first_ns is None:
            self._first_ns = int(rows["time_ns"][0])
        self._last_ns = max(self._last_ns, int(rows["time_ns"][-1]))


def _run(
    tracer: Tracer,
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
