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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Literal, TypeAlias

from flashwright.support.core import SECTOR_BYTES
from flashwright.support.files import write_beside
from flashwright.traces.blktrace import (
    FLUSH,
    READ,
    REQUEST_DTYPE,
    TRIM,
    WRITE,
    RecordError,
    parse_blktrace,
    process_names,
)
from flashwright.traces.recordfile import Names, Writer
from flashwright.traces.tracer import (
    KernelPaths,
    TracedDevice,
    Tracer,
    check_tracer,
    find_device,
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
    It needs root, so no test runs this one::

        summary = record("/dev/loop0", "sync.blktrace", command=["sync"])
        print(summary.requests, summary.flushes)
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
        part = stack.enter_context(write_beside(out))
        interrupted = stack.enter_context(_signals_noted())
        with open(part, "wb") as file:
            tracer = stack.enter_context(tracing(tracefs, target))
            writer = Writer(file, tracer.start_ns, target.first_sector, requests)
            names = Names(tracefs, kernel.proc)
            stopped, status = _run(tracer, writer, names, seconds, command, interrupted, progress)
            writer.finish()
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


def _run(
    tracer: Tracer,
    writer: Writer,
    names: Names,
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
    reported_at = begin
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
            if progress is not None and now - reported_at >= _PROGRESS_S:
                reported_at = now
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
