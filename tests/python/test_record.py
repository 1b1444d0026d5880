"""Recording a block device: the format, the checks before, and the settings put back after.

Most of it runs anywhere, against a made-up tracefs and sysfs in a temporary folder whose
`trace_pipe` is a plain file. The last tests drive the kernel's own tracer on a loop device, and skip,
saying why, where that is not possible.
"""

from __future__ import annotations

import dataclasses
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import needs
from flashwright.traces import blktrace, tracer
from flashwright.traces.record import (
    FLUSH,
    READ,
    TRIM,
    WRITE,
    KernelPaths,
    RecordError,
    parse_blktrace,
    process_names,
    record,
)

# Bits of an action, from include/uapi/linux/blktrace_api.h: classes in the high half.
IS_READ, IS_WRITE, IS_FLUSH, IS_SYNC = 1 << 16, 1 << 17, 1 << 18, 1 << 19
IS_QUEUE, IS_ISSUE, IS_COMPLETE = 1 << 20, 1 << 22, 1 << 23
IS_NOTE, IS_AHEAD, IS_META, IS_TRIM, IS_FUA = 1 << 26, 1 << 27, 1 << 28, 1 << 29, 1 << 31
Q = 1 | IS_QUEUE
C = 8 | IS_COMPLETE


def entry(
    time_ns: int = 0,
    sector: int = 0,
    size: int = 0,
    action: int = Q | IS_READ,
    pid: int = 0,
    payload: bytes = b"",
    order: str = "<",
    magic: int = 0x65617407,
) -> bytes:
    """One record, written out field by field as the kernel's header lists them."""
    return (
        struct.pack(
            f"{order}IIQQIIIIIHH",
            magic,
            1,  # sequence
            time_ns,
            sector,
            size,
            action,
            pid,
            7 << 20,  # device 7:0
            0,  # processor
            0,  # error
            len(payload),
        )
        + payload
    )


# --- The format ----------------------------------------------------------------------------------


def test_every_kind_and_flag_is_told_apart() -> None:
    data = b"".join(
        [
            entry(10, 8, 4096, Q | IS_READ, 1),
            entry(20, 16, 8192, Q | IS_WRITE | IS_SYNC, 2),
            entry(30, 24, 512, Q | IS_WRITE | IS_TRIM, 3),
            entry(40, 0, 0, Q | IS_WRITE | IS_FLUSH | IS_SYNC, 4),
            entry(50, 32, 4096, Q | IS_WRITE | IS_FLUSH | IS_FUA | IS_META, 5),
            entry(60, 40, 4096, Q | IS_READ | IS_AHEAD, 6),
        ]
    )
    rows = parse_blktrace(data)
    assert rows["kind"].tolist() == [READ, WRITE, TRIM, FLUSH, WRITE, READ]
    assert rows["time_ns"].tolist() == [10, 20, 30, 40, 50, 60]
    assert rows["first_sector"].tolist() == [8, 16, 24, 0, 32, 40]
    assert rows["bytes"].tolist() == [4096, 8192, 512, 0, 4096, 4096]
    assert rows["pid"].tolist() == [1, 2, 3, 4, 5, 6]
    assert np.flatnonzero(rows["fua"]).tolist() == [4]
    assert np.flatnonzero(rows["preflush"]).tolist() == [4]
    assert np.flatnonzero(rows["sync"]).tolist() == [1, 3]
    assert np.flatnonzero(rows["meta"]).tolist() == [4]
    assert np.flatnonzero(rows["ahead"]).tolist() == [5]


def test_only_queued_requests_count() -> None:
    steps = [Q, C, 7 | IS_ISSUE, 2 | IS_QUEUE, 1 | IS_NOTE, 6 | IS_QUEUE, Q]
    data = b"".join(entry(i, i, 512, step | IS_READ) for i, step in enumerate(steps))
    assert parse_blktrace(data)["time_ns"].tolist() == [0, 6]


def test_either_byte_order() -> None:
    little, big = (entry(5, 6, 512, Q | IS_WRITE, 9, b"xy", order) for order in "<>")
    assert little != big
    assert parse_blktrace(little).tolist() == parse_blktrace(big).tolist()


def test_payloads_are_stepped_over() -> None:
    # Payloads of all lengths between records, a magic number inside one among them.
    draw = random.Random(1)
    parts = []
    for i in range(500):
        payload = draw.randbytes(draw.choice([0, 0, 0, 1, 3, 8, 60]))
        parts.append(entry(i, i * 8, 512, payload=payload))
        if i % 100 == 0:
            parts.append(entry(i, action=C, payload=entry(99)))
    rows = parse_blktrace(b"".join(parts))
    assert rows["time_ns"].tolist() == list(range(500))


def test_long_files_without_payloads() -> None:
    count = 200_000
    rows = parse_blktrace(entry(7, 8, 512) * count)
    assert len(rows) == count
    assert (rows["first_sector"] == 8).all()


def test_names_come_from_notes_and_the_last_one_counts() -> None:
    data = b"".join(
        [
            entry(0, action=0 | IS_NOTE, pid=7, payload=b"bash\0\0\0\0"),
            entry(1, action=1 | IS_NOTE, pid=7, payload=b"\0" * 8),
            entry(2, action=0 | IS_NOTE, pid=8, payload=b"a name of 16 b.."),
            entry(3, 0, 512, pid=7),
            entry(4, action=0 | IS_NOTE, pid=7, payload=b"postgres\0"),
        ]
    )
    assert process_names(data) == {7: "postgres", 8: "a name of 16 b.."}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"abc", "byte 0: 3 bytes are left; a blktrace record has 48"),
        (b"\x28\xb5\x2f\xfd" * 12, "byte 0: the file starts with 0xfd2fb528; expected 0x65617407"),
        (entry(magic=0x65617408), "blktrace version 8; expected version 7"),
        (entry() + b"\0" * 48, "byte 48: a record starts with 0x00000000; expected 0x65617407"),
        (entry() + entry()[:20], "byte 48: 20 bytes are left; a blktrace record has 48"),
        (
            entry(payload=b"12345")[:-2],
            "byte 48: a payload of 5 bytes runs past the end of the file",
        ),
    ],
)
def test_damage_is_located(data: bytes, message: str) -> None:
    with pytest.raises(RecordError) as caught:
        parse_blktrace(data)
    assert str(caught.value) == message
    assert caught.value.hint


def test_no_bytes_are_no_requests() -> None:
    assert len(parse_blktrace(b"")) == 0


def test_a_file_that_blktrace_made() -> None:
    sample, zstd = needs.trace("sample.blktrace.0.zst"), needs.need("zstd")
    data = subprocess.run([zstd, "-dcq", sample], check=True, capture_output=True).stdout
    rows = parse_blktrace(data)
    assert len(rows) == 963  # as the notes beside it say
    assert (np.diff(rows["time_ns"].astype(np.int64)) >= 0).all()


# --- A made-up kernel ------------------------------------------------------------------------------


@dataclasses.dataclass
class FakeKernel:
    paths: KernelPaths
    tracefs: Path
    device: Path
    sysfs: Path

    def settings(self) -> dict[str, str]:
        """The settings a recording touches, as text; `act_mask` goes with `enable` in a kernel."""
        files = [
            *(self.tracefs / "options").iterdir(),
            *(self.tracefs / name for name in ("current_tracer", "tracing_on", "set_event")),
            self.sysfs / "trace" / "enable",
        ]
        return {path.name: path.read_text().strip() for path in files}


def now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    tracefs = tmp_path / "tracing"
    (tracefs / "options").mkdir(parents=True)
    (tracefs / "per_cpu" / "cpu0").mkdir(parents=True)
    for name, text in {
        "available_tracers": "blk function nop\n",
        "current_tracer": "nop\n",
        "set_event": "",
        "tracing_on": "1\n",
        "trace": "",
        "trace_clock": "[local] global mono\n",
        "buffer_size_kb": "7 (expanded: 1408)\n",
        "saved_cmdlines": "41 bash\n42 writer\n",
        "trace_pipe": "",
        "per_cpu/cpu0/stats": "entries: 0\noverrun: 3\ndropped events: 0\n",
        "options/bin": "0\n",
        "options/context-info": "1\n",
        "options/blk_classic": "0\n",
        "options/markers": "1\n",
    }.items():
        (tracefs / name).write_text(text)
    sysfs = tmp_path / "sys"
    disk = sysfs / "dev" / "block" / "7:99"
    (disk / "trace").mkdir(parents=True)
    (disk / "trace" / "enable").write_text("0\n")
    (disk / "trace" / "act_mask").write_text("disabled\n")
    (disk / "size").write_text("8192\n")
    device = tmp_path / "disk"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(tracer, "_device_number", lambda _: os.makedev(7, 99))
    return FakeKernel(KernelPaths(tracefs, sysfs, tmp_path), tracefs, device, disk)


def assert_refused(kernel: FakeKernel, *words: str, **options: object) -> None:
    """The recording is refused with `words` in the message, leaving no setting and no file behind."""
    before = kernel.settings()
    output = kernel.tracefs.parent / "out.blktrace"
    with pytest.raises(RecordError) as caught:
        record(kernel.device, output, kernel=kernel.paths, **options)  # type: ignore[arg-type]
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)
    assert kernel.settings() == before
    assert not list(output.parent.glob("*blktrace*"))


def test_recording_needs_root(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert_refused(kernel, "needs root")


def test_nothing_else_than_a_block_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    plain = tmp_path / "image"
    plain.touch()
    for path, words in (
        (plain, "no block device"),
        (tmp_path, "a directory"),
        (tmp_path / "gone", "No such file"),
    ):
        with pytest.raises(RecordError, match=words) as caught:
            record(path, tmp_path / "out")
        assert caught.value.hint


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("tracing/current_tracer", "function\n", "in use (current_tracer is function)"),
        ("tracing/available_tracers", "function nop\n", "no block tracer"),
        ("tracing/set_event", "sched:sched_switch\n", "trace events are enabled"),
        ("sys/dev/block/7:99/trace/enable", "1\n", "somebody else is tracing"),
    ],
)
def test_a_tracer_in_use_is_left_alone(
    kernel: FakeKernel, tmp_path: Path, name: str, text: str, words: str
) -> None:
    (tmp_path / name).write_text(text)
    assert_refused(kernel, words)


def test_limits_are_checked(kernel: FakeKernel) -> None:
    assert_refused(kernel, "seconds is 0", seconds=0)
    assert_refused(kernel, "seconds is nan", seconds=float("nan"))
    assert_refused(kernel, "requests is 0", requests=0)
    assert_refused(kernel, "command is empty", command=[])


def test_a_command_that_is_missing(kernel: FakeKernel) -> None:
    assert_refused(kernel, "/no/such/program", command=["/no/such/program"])


def test_the_recording_does_not_record_itself(
    kernel: FakeKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = os.stat(tmp_path).st_dev
    monkeypatch.setattr(tracer, "_device_number", lambda _: here)
    disk = tmp_path / "sys" / "dev" / "block" / f"{os.major(here)}:{os.minor(here)}"
    shutil.copytree(kernel.sysfs, disk)
    assert_refused(kernel, "would record its own writing")


def test_the_output_has_a_folder(kernel: FakeKernel, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="is missing"):
        record(kernel.device, tmp_path / "none" / "out", kernel=kernel.paths)


def test_what_the_tracer_hands_over_is_sorted_and_counted(
    kernel: FakeKernel, tmp_path: Path
) -> None:
    # Two processors' records interleaved out of order, a step that is not wanted, and the kernel's
    # words about a loss in between.
    t = now_ns() + 10_000_000_000
    stream = b"".join(
        [
            entry(t + 300, 80, 4096, Q | IS_WRITE | IS_FUA, 42),
            entry(t + 100, 8, 8192, Q | IS_READ, 41),
            entry(t + 150, 8, 8192, C | IS_READ, 41),
            b"CPU:1 [LOST 12 EVENTS]\n",
            entry(t + 200, 0, 0, Q | IS_WRITE | IS_FLUSH, 42),
            entry(t + 400, 16, 1024, Q | IS_WRITE | IS_TRIM, 42),
        ]
    )
    (kernel.tracefs / "trace_pipe").write_bytes(stream)
    before = kernel.settings()
    output = tmp_path / "out.blktrace"
    summary = record(kernel.device, output, seconds=0.01, kernel=kernel.paths)

    assert (summary.requests, summary.reads, summary.writes) == (4, 1, 1)
    assert (summary.trims, summary.flushes) == (1, 1)
    assert (summary.writes_fua, summary.writes_preflush) == (1, 0)
    assert (summary.bytes_read, summary.bytes_written, summary.bytes_trimmed) == (8192, 4096, 1024)
    assert summary.span_ns == 300
    assert summary.read_share == 0.5
    assert summary.device_bytes == 8192 * 512
    assert (summary.stopped, summary.command_status) == ("seconds", None)
    assert (summary.events_lost, summary.bytes_skipped) == (0, 0)
    assert summary.complete

    data = output.read_bytes()
    rows = parse_blktrace(data)
    assert rows["kind"].tolist() == [READ, FLUSH, WRITE, TRIM]
    assert np.diff(rows["time_ns"]).tolist() == [100, 100, 100]
    # 10 s after the start, which came a moment after `t` was taken.
    assert 9_000_000_000 < rows["time_ns"][0] < 10_000_000_000
    assert process_names(data) == summary.processes == {41: "bash", 42: "writer"}
    assert kernel.settings() == before
    assert (kernel.tracefs / "buffer_size_kb").read_text() == "1408"
    assert (kernel.tracefs / "trace_clock").read_text() == "local"
    assert (kernel.sysfs / "trace" / "act_mask").read_text() == "queue"


def test_a_name_stands_before_the_first_request_of_its_process(
    kernel: FakeKernel, tmp_path: Path
) -> None:
    t = now_ns() + 10_000_000_000
    stream = b"".join(entry(t + i, i * 8, 512, pid=41 + i % 2) for i in range(10))
    (kernel.tracefs / "trace_pipe").write_bytes(stream)
    output = tmp_path / "out.blktrace"
    record(kernel.device, output, seconds=0.01, kernel=kernel.paths)
    records, _ = blktrace._whole_file(output.read_bytes())
    assert records["pid"].tolist()[:5] == [0, 41, 41, 42, 42]
    assert (np.diff(records["time_ns"].astype(np.int64)) >= 0).all()


def test_a_partition_counts_from_its_own_start(kernel: FakeKernel, tmp_path: Path) -> None:
    (kernel.sysfs / "partition").write_text("1\n")
    (kernel.sysfs / "start").write_text("2048\n")
    t = now_ns() + 10_000_000_000
    flush = entry(t + 1, 0, 0, Q | IS_WRITE | IS_FLUSH)
    (kernel.tracefs / "trace_pipe").write_bytes(entry(t, 2056, 512) + flush)
    output = tmp_path / "out.blktrace"
    record(kernel.device, output, seconds=0.01, kernel=kernel.paths)
    assert parse_blktrace(output.read_bytes())["first_sector"].tolist() == [8, 0]


def test_no_more_requests_than_asked_for(kernel: FakeKernel, tmp_path: Path) -> None:
    t = now_ns() + 10_000_000_000
    stream = b"".join(entry(t + 100 - i, i, 512) for i in range(100))
    (kernel.tracefs / "trace_pipe").write_bytes(stream)
    output = tmp_path / "out.blktrace"
    summary = record(kernel.device, output, requests=10, kernel=kernel.paths)
    assert (summary.stopped, summary.requests) == ("requests", 10)
    # The earliest of what was there, not the first that came.
    assert parse_blktrace(output.read_bytes())["first_sector"].tolist() == list(range(99, 89, -1))


def test_long_recordings_are_written_as_they_go(kernel: FakeKernel, tmp_path: Path) -> None:
    # A minute of requests, out of order by up to 5 ms as between two processors.
    draw = random.Random(3)
    start = now_ns() + 1_000_000_000
    times = [start + i * 1_000_000 + draw.randrange(5_000_000) for i in range(60_000)]
    stream = b"".join(entry(t, i, 512, pid=41) for i, t in enumerate(times))
    (kernel.tracefs / "trace_pipe").write_bytes(stream)
    output = tmp_path / "out.blktrace"
    summary = record(kernel.device, output, seconds=1, kernel=kernel.paths)
    rows = parse_blktrace(output.read_bytes())
    assert summary.requests == len(rows) == 60_000
    assert summary.events_late == 0
    assert rows["first_sector"].tolist() == sorted(range(60_000), key=lambda i: (times[i], i))


def test_losses_are_told(kernel: FakeKernel, tmp_path: Path) -> None:
    stats = kernel.tracefs / "per_cpu" / "cpu0" / "stats"
    change = f"import pathlib; pathlib.Path({str(stats)!r}).write_text('overrun: 8\\n')"
    command = [sys.executable, "-c", change]
    summary = record(kernel.device, tmp_path / "out", command=command, kernel=kernel.paths)
    assert summary.events_lost == 5  # 3 were there before
    assert not summary.complete


def test_other_output_in_the_stream_is_skipped_and_counted(
    kernel: FakeKernel, tmp_path: Path
) -> None:
    t = now_ns()
    (kernel.tracefs / "trace_pipe").write_bytes(entry(t, 8, 512) + b"# noise\n" + entry(t, 9, 512))
    summary = record(kernel.device, tmp_path / "out", seconds=0.01, kernel=kernel.paths)
    assert (summary.requests, summary.bytes_skipped) == (2, 8)


def test_endless_noise_ends(kernel: FakeKernel, tmp_path: Path) -> None:
    noise = 3 << 20
    (kernel.tracefs / "trace_pipe").write_bytes(entry(now_ns(), 8, 512) + b"#" * noise)
    summary = record(kernel.device, tmp_path / "out", seconds=0.01, kernel=kernel.paths)
    assert summary.requests == 1
    assert summary.bytes_skipped == pytest.approx(noise, abs=64)


def test_a_newer_format_is_refused(kernel: FakeKernel) -> None:
    (kernel.tracefs / "trace_pipe").write_bytes(entry(magic=0x65617408))
    assert_refused(kernel, "version 8", seconds=0.01)


def test_a_command_ends_the_recording(kernel: FakeKernel, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit(3)"]
    summary = record(kernel.device, tmp_path / "out", command=command, kernel=kernel.paths)
    assert (summary.stopped, summary.command_status) == ("command", 3)
    assert summary.read_share is None


def test_a_limit_ends_the_command(kernel: FakeKernel, tmp_path: Path) -> None:
    command = ["sleep", "60"]
    summary = record(
        kernel.device, tmp_path / "out", command=command, seconds=0.05, kernel=kernel.paths
    )
    assert (summary.stopped, summary.command_status) == ("seconds", -signal.SIGTERM)


def test_an_interrupt_keeps_what_was_recorded(kernel: FakeKernel, tmp_path: Path) -> None:
    (kernel.tracefs / "trace_pipe").write_bytes(entry(now_ns(), 8, 512))
    before = kernel.settings()
    handler = signal.getsignal(signal.SIGINT)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    summary = record(kernel.device, tmp_path / "out", seconds=60, kernel=kernel.paths)
    assert (summary.stopped, summary.requests) == ("interrupt", 1)
    assert not summary.complete
    assert len(parse_blktrace((tmp_path / "out").read_bytes())) == 1
    assert kernel.settings() == before
    assert signal.getsignal(signal.SIGINT) is handler


def test_settings_come_back_after_a_failure(kernel: FakeKernel, tmp_path: Path) -> None:
    before = kernel.settings()

    def fail(_requests: int, _elapsed_s: float) -> None:
        assert (kernel.tracefs / "current_tracer").read_text() == "blk"
        assert (kernel.tracefs / "options" / "bin").read_text() == "1"
        raise ZeroDivisionError

    output = tmp_path / "out"
    output.write_text("an older one")
    with pytest.raises(ZeroDivisionError):
        record(kernel.device, output, seconds=5, progress=fail, kernel=kernel.paths)
    assert kernel.settings() == before
    assert output.read_text() == "an older one"
    assert not list(tmp_path.glob(".out*"))


# --- The kernel's own tracer -------------------------------------------------------------------------


def tracing_settings(tracefs: Path) -> dict[str, str]:
    names = ("current_tracer", "tracing_on", "trace_clock", "buffer_size_kb", "set_event")
    files = [*(tracefs / name for name in names), *sorted((tracefs / "options").iterdir())]
    return {path.name: path.read_text() for path in files}


@pytest.fixture
def loop_device(tmp_path: Path) -> Iterator[Path]:
    needs.root()
    losetup = needs.need("losetup")
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    made = subprocess.run(
        [losetup, "--find", "--show", image], check=False, capture_output=True, text=True
    )
    if made.returncode != 0:
        needs.refused(f"no loop device is to be had: {made.stderr.strip()}")
    device = Path(made.stdout.strip())
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@pytest.fixture
def tracefs() -> Iterator[Path]:
    needs.root()
    try:
        with tracer.mounted_tracefs(KernelPaths()) as found:
            if "blk" not in (found / "available_tracers").read_text().split():
                needs.refused("this kernel has no block tracer")
            if (found / "current_tracer").read_text().strip() != "nop":
                needs.refused("the kernel's tracer is in use")
            yield found
    except RecordError as error:
        needs.refused(f"no tracefs: {error}")


REQUESTS_AT_RANDOM = """
import mmap, os, random, sys

draw = random.Random(int(sys.argv[2]))
disk = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
for _ in range(1000):
    pages = draw.randint(1, 16)
    offset = draw.randrange((64 << 8) - pages) * 4096
    buffer = mmap.mmap(-1, pages * 4096)
    kind = draw.choice("rrwwwf")
    if kind == "f":
        os.fdatasync(disk)
    elif kind == "w":
        os.pwrite(disk, buffer, offset)
    else:
        os.preadv(disk, [buffer], offset)
"""


def requests_at_random(seed: int) -> list[tuple[int, int, int]]:
    """What the program above asks for, as (kind, first sector, bytes)."""
    draw = random.Random(seed)
    asked = []
    for _ in range(1000):
        pages = draw.randint(1, 16)
        offset = draw.randrange((64 << 8) - pages) * 4096
        kind = draw.choice("rrwwwf")
        if kind == "f":
            asked.append((FLUSH, 0, 0))
        else:
            asked.append((READ if kind == "r" else WRITE, offset // 512, pages * 4096))
    return asked


def test_a_thousand_requests_on_a_loop_device(
    loop_device: Path, tracefs: Path, tmp_path: Path
) -> None:
    before = tracing_settings(tracefs)
    output = tmp_path / "out.blktrace"
    command = [sys.executable, "-c", REQUESTS_AT_RANDOM, str(loop_device), "5"]
    if os.stat(loop_device).st_rdev == os.stat(tmp_path).st_dev:
        pytest.skip("the temporary folder lies on the loop device")
    summary = record(loop_device, output, command=command)
    assert (summary.stopped, summary.command_status) == ("command", 0)
    assert (summary.events_lost, summary.events_late, summary.bytes_skipped) == (0, 0, 0)

    data = output.read_bytes()
    rows = parse_blktrace(data)
    python = [pid for pid, name in process_names(data).items() if name.startswith("python")]
    # Others may look at a new device as well, udev for one.
    rows = rows[np.isin(rows["pid"], python)]
    asked = requests_at_random(5)
    kinds = np.array([kind for kind, _, _ in asked])
    got = list(
        zip(
            rows["kind"].tolist(),
            rows["first_sector"].tolist(),
            rows["bytes"].tolist(),
            strict=True,
        )
    )
    # Closing the device may flush once more.
    assert got[: len(asked)] == asked
    assert all(kind == FLUSH for kind, _, _ in got[len(asked) :])
    assert summary.reads >= (kinds == READ).sum()
    assert (np.diff(rows["time_ns"].astype(np.int64)) >= 0).all()
    assert summary.device_bytes == 64 << 20

    after = tracing_settings(tracefs)
    # The first use of the tracer grows its buffer for good, and it counts in whole pages.
    before.pop("buffer_size_kb"), after.pop("buffer_size_kb")
    assert after == before
    enable = Path("/sys/class/block") / loop_device.name / "trace" / "enable"
    assert enable.read_text().strip() == "0"


def test_trims_and_an_interrupt_on_a_loop_device(
    loop_device: Path, tracefs: Path, tmp_path: Path
) -> None:
    needs.need("blkdiscard")
    before = tracing_settings(tracefs)
    script = (
        f"blkdiscard --offset 1048576 --length 2097152 {loop_device}; kill -INT $PPID; exec sleep 9"
    )
    output = tmp_path / "out.blktrace"
    summary = record(loop_device, output, command=["sh", "-c", script])
    assert summary.stopped == "interrupt"
    rows = parse_blktrace(output.read_bytes())
    trims = rows[rows["kind"] == TRIM]
    assert int(trims["bytes"].sum()) == 2 << 20
    assert int(trims["first_sector"].min()) == 2048
    after = tracing_settings(tracefs)
    before.pop("buffer_size_kb"), after.pop("buffer_size_kb")
    assert after == before


def test_a_device_being_recorded_is_refused(
    loop_device: Path, tracefs: Path, tmp_path: Path
) -> None:
    refused: list[RecordError] = []

    def again(_requests: int, _elapsed_s: float) -> None:
        with pytest.raises(RecordError) as caught:
            record(loop_device, tmp_path / "second", seconds=1)
        refused.append(caught.value)

    record(loop_device, tmp_path / "first", seconds=0.6, progress=again)
    assert refused
    assert "in use" in str(refused[0])
    assert (tracefs / "current_tracer").read_text().strip() == "nop"
