"""The kernel's block tracer: found, set up for one device, read, and put back as it was."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from flashwright.traces.blktrace import (
    HEADER,
    MAGIC,
    VERSION,
    RecordError,
    Records,
    run_of_records,
)

__all__ = [
    "KernelPaths",
    "TracedDevice",
    "Tracer",
    "check_tracer",
    "find_device",
    "get",
    "mounted_tracefs",
    "tracing",
]

_READ_BYTES = 1 << 16
_PORTION_BYTES = 1 << 20
# A request takes up to five events (queued, got, plugged, inserted, unplugged: the tracer can't be asked
# for one alone) of some 80 bytes each: 64 MiB a processor hold 160 thousand requests not yet read.
_BUFFER_KIB_PER_CPU_MAX = 64 << 10
_BUFFER_KIB_TOTAL_MAX = 1 << 20
_BUFFER_KIB_PER_CPU_MIN = 2 << 10

_LOST_NOTICE = re.compile(rb"CPU:\d+ \[LOST (?:\d+ )?EVENTS\]\n")
_NOTICE_BYTES_MAX = 64


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
class TracedDevice:
    """The recorded device, and where the kernel describes it."""

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


def find_device(path: Path, kernel: KernelPaths) -> TracedDevice:
    """The device at a path; refused if it is no block device or the kernel does not know it."""
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
    return TracedDevice(
        path=path,
        sysfs=sysfs,
        first_sector=int(get(sysfs / "start")) if partition else 0,
        sectors=int(get(sysfs / "size")),
        numbers=frozenset(numbers),
    )


def check_tracer(tracefs: Path, target: TracedDevice) -> None:
    """Refuse to begin where the kernel has no such tracer, or somebody uses it."""
    if "blk" not in get(tracefs / "available_tracers").split():
        raise RecordError(
            "this kernel has no block tracer (blk is not in available_tracers)",
            "it needs a kernel with CONFIG_BLK_DEV_IO_TRACE",
        )
    busy = get(tracefs / "current_tracer")
    if busy != "nop":
        raise RecordError(
            f"the kernel's tracer is in use (current_tracer is {busy})",
            f"wait for it to end, or stop it: echo nop > {tracefs / 'current_tracer'}",
        )
    if get(tracefs / "set_event"):
        raise RecordError(
            "kernel trace events are enabled, which would mix with the recording",
            f"wait for their user to end, or turn them off: echo > {tracefs / 'set_event'}",
        )
    if get(target.sysfs / "trace" / "enable") != "0":
        raise RecordError(
            f"{target.path}: somebody else is tracing this device",
            f"wait for it to end, or stop it: echo 0 > {target.sysfs / 'trace' / 'enable'}",
        )


def get(path: Path) -> str:
    """What a file of the kernel says."""
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
def mounted_tracefs(kernel: KernelPaths) -> Iterator[Path]:
    """The tracer's directory; mounted, and unmounted at the end, where nobody has mounted it."""
    if kernel.tracefs is not None:
        yield kernel.tracefs
        return
    for line in get(kernel.proc / "self" / "mounts").splitlines():
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
        old = get(path) if old is None else old
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
    found = re.search(r"\[(.+?)\]", get(tracefs / "trace_clock"))
    return found.group(1) if found else "local"


def _buffer_kib_in_use(tracefs: Path) -> str:
    """The size of a processor's buffer. A kernel that has traced nothing yet keeps a tiny one and says
    what it grows to; it grows now, so that size is what a later user would have had."""
    words = get(tracefs / "buffer_size_kb")
    grown = re.search(r"expanded: (\d+)", words)
    return grown.group(1) if grown else words


@contextlib.contextmanager
def tracing(tracefs: Path, target: TracedDevice) -> Iterator[Tracer]:
    """Have the kernel trace one device; everything is put back in the end."""
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
        yield Tracer(tracefs, target, pipe, start_ns, lost_before)
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
        for line in get(path).splitlines():
            name, _, value = line.partition(": ")
            if name in ("overrun", "commit overrun", "dropped events"):
                lost += int(value)
    return lost


@dataclass
class Tracer:
    """The running tracer: bytes in, whole records out."""

    tracefs: Path
    target: TracedDevice
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
        """Look how many events the kernel has dropped."""
        self.events_lost = max(0, _events_lost(self.tracefs) - self.lost_before)

    def _cut(self) -> Records:
        parts = []
        offset = 0
        if not self._version_checked and len(self._tail) >= HEADER.itemsize:
            self._check_version()
        while True:
            run = run_of_records(self._tail, offset, HEADER)
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
            elif len(self._tail) - offset < HEADER.itemsize:
                break
            else:
                # No record: the kernel says in words that it lost some, or somebody wrote a marker.
                magic = (MAGIC | VERSION).to_bytes(4, sys.byteorder)
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
        return np.concatenate(parts) if parts else np.empty(0, HEADER)

    def _check_version(self) -> None:
        magic = int.from_bytes(self._tail[:4], sys.byteorder)
        if magic & 0xFFFFFF00 == MAGIC:
            self._version_checked = True
            if magic & 0xFF != VERSION:
                raise RecordError(
                    f"this kernel writes blktrace version {magic & 0xFF}; "
                    f"expected version {VERSION}",
                    "record with the blktrace program and convert its file",
                )
