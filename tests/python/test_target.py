"""Targets: what probes and experiments work on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from flashwright.errors import ConfigError, DeviceError, TargetError
from flashwright.simulation.ssd import Ssd
from flashwright.support import core
from flashwright.target import guard
from flashwright.target.target import OutOfTimeError, Range, Target

MIB = 1 << 20


def small(**settings: object) -> Ssd:
    """A drive of 64 MiB whose times are simple: a program of 200 us, a bus without cost."""
    return Ssd.named("default").with_(
        {
            "geometry.channels": 1,
            "geometry.dies-per-channel": 1,
            "geometry.blocks-per-plane": 160,
            "geometry.pages-per-block": 128,
            "geometry.page-size": "4 KiB",
            "capacity.logical": "64 MiB",
            "timing.model": "parallel",
            **settings,
        }
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "disk.img"
    path.write_bytes(b"\xa5" * (4 * MIB))
    return path


def test_a_closed_loop_keeps_its_depth() -> None:
    with Target(small()) as drive:
        drive.fill()
        alone = drive.play("read", np.arange(64) * 4096, 4096)
        assert np.all(alone.submitted_ns[1:] == alone.ended_ns[:-1])
        deep = drive.play("read", np.arange(64) * 4096, 4096, depth=8)
        assert np.all(deep.submitted_ns[:8] == deep.submitted_ns[0])
        assert deep.submitted_ns[8] == deep.ended_ns[:8].min()


def test_kinds_and_sizes_may_differ_by_request() -> None:
    with Target(small()) as drive:
        times = drive.play(
            ["write", "flush", "read", "trim"], [0, 0, 0, 4096], [8192, 0, 512, 4096]
        )
        assert times.latency_ns.size == 4
        assert (drive.bytes_written, drive.bytes_read, drive.flushes) == (8192, 512, 1)


def test_a_purge_makes_a_simulated_drive_new() -> None:
    with Target(small()) as drive:
        first = drive.fill().latency_ns
        again = drive.fill().latency_ns
        elapsed = drive.elapsed_ns
        assert drive.purge()
        assert drive.now_ns == 0 and drive.elapsed_ns == elapsed
        assert np.array_equal(drive.fill().latency_ns, first)
        assert not np.array_equal(first, again)


def test_noise_makes_times_longer_by_twice_its_share() -> None:
    quiet, noisy = small(), small(**{"controller.noise": 0.1})
    with Target(quiet) as a, Target(noisy) as b:
        a.fill()
        b.fill()
        places = np.random.default_rng(1).permutation(16_000)[:4000] * 4096
        still = a.play("read", places, 4096).latency_ns
        shaken = b.play("read", places, 4096).latency_ns
    assert shaken.mean() / still.mean() == pytest.approx(1.2, abs=0.01)
    assert shaken.std() / still.mean() == pytest.approx(0.1, abs=0.01)


def test_depth_makes_noise_no_slower_than_it_says() -> None:
    """Later completions overtake earlier ones, and time never goes back."""
    with Target(small(**{"controller.noise": 0.3, "controller.queue-depth": 16})) as drive:
        drive.fill()
        places = np.random.default_rng(2).permutation(16_000)[:4000] * 4096
        times = drive.play("read", places, 4096, depth=16)
        assert np.all(np.diff(times.submitted_ns.astype(np.int64)) >= 0)
        assert np.any(np.diff(times.ended_ns.astype(np.int64)) < 0)


def test_a_watch_ends_a_long_play() -> None:
    with Target(small()) as drive:
        calls = []

        def watch() -> None:
            calls.append(drive.bytes_written)
            if len(calls) == 3:
                raise OutOfTimeError

        drive.watch = watch
        with pytest.raises(OutOfTimeError):
            drive.play("write", np.zeros(200_000, int), 4096)
        assert len(calls) == 3 and np.all(np.diff(calls) > 0)
        assert drive.bytes_written == calls[-1] < 200_000 * 4096


def test_a_file_is_read_without_leave_and_written_only_with_it(file: Path) -> None:
    before = file.read_bytes()
    with Target(file) as target:
        assert (target.kind, target.capacity_bytes, target.real_time) == ("file", 4 * MIB, True)
        assert target.play("read", [0, 1 * MIB], 65536, depth=2).latency_ns.min() > 0
        for what in (lambda: target.play("write", [0], 4096), target.purge, target.flush):
            with pytest.raises(TargetError, match="expected reads only"):
                what()
    assert file.read_bytes() == before
    with Target(file, destroys_data=True) as target:
        target.fill()
        assert target.purge() in (True, False)
    assert file.read_bytes() != before


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: Target("sim:nothing"), ConfigError, "drive"),
        (lambda: Target("/nowhere/at/all"), TargetError, "no such file"),
        (lambda: Target("/tmp"), TargetError, "expected a block device or a regular file"),
    ],
)
def test_targets_that_are_none(make, error, says) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=says):
        make()


def test_requests_off_the_device_are_refused() -> None:
    with Target(small()) as drive:
        with pytest.raises(TargetError, match="whole ones"):
            drive.play("read", [100], 512)
        with pytest.raises(DeviceError, match="past the device's end"):
            drive.play("read", [drive.capacity_bytes], 512)


def test_a_closed_target_says_so() -> None:
    drive = Target(small())
    drive.close()
    with pytest.raises(DeviceError, match="closed"):
        drive.flush()


def test_ctrl_c_stops_a_play() -> None:
    code = """
import signal, threading, os, time
import numpy as np
from flashwright.target.target import Target
drive = Target("sim:default")
threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    for _ in range(2000):
        drive.play("write", np.random.default_rng(1).integers(0, 1 << 19, 60_000) * 4096, 4096, depth=8)
except KeyboardInterrupt:
    print("stopped")
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "stopped\n", ran.stderr


@pytest.mark.parametrize("depth", [1, 4])
def test_no_requests_give_no_times(depth: int) -> None:
    with Target(small()) as drive:
        times = drive.play("read", [], 4096, depth=depth)
    assert times.latency_ns.size == 0 and times.duration_ns == 0


def test_a_range_is_all_that_is_seen_and_touched(file: Path) -> None:
    """A probe that tries to get out, by any call, changes nothing outside, byte for byte."""
    part = Range(1 * MIB, 2 * MIB)
    with Target(file, destroys_data=True, part=part) as target:
        assert (target.capacity_bytes, target.whole_bytes) == (2 * MIB, 4 * MIB)
        assert target.name == f"{file}[{part}]" and target.path == str(file)
        target.fill()
        target.play("read", [2 * MIB - 4096], 4096)
        for kind in ("read", "write", "trim"):
            for offset, size in (
                (2 * MIB, 4096),
                (2 * MIB - 4096, 8192),
                (1 << 50, 4096),
                (0, 4 * MIB),
            ):
                with pytest.raises(TargetError, match="within its 2,097,152 B"):
                    target.play(kind, [0, offset], [4096, size], depth=2)
        with pytest.raises(TargetError, match="within its"):
            target.fill(end_bytes=3 * MIB)
        with pytest.raises(TargetError, match="off the sectors"):
            target.play("write", [-4096], 4096)
        # The way that a probe should not take.
        beyond = (
            np.array([1], np.uint8),
            np.array([2 * MIB // 512], np.uint64),
            np.array([8], np.uint32),
        )
        with pytest.raises(TargetError, match="within its"):
            target._core.play(*beyond, 1)
        target.purge()
        target.fill(end_bytes=MIB)
    content = file.read_bytes()
    assert content[:MIB] == content[3 * MIB :] == b"\xa5" * MIB
    assert content[MIB : 2 * MIB] != b"\xa5" * MIB


def test_a_purge_of_a_range_of_a_simulated_drive_leaves_the_rest() -> None:
    """Reads of what is discarded need no flash; those outside still do."""
    with Target(small()) as whole:
        whole.fill()
        read = float(whole.play("read", [0], 4096).latency_ns[0])
    with Target(small(), part=Range(16 * MIB, 32 * MIB)) as part:
        part.fill()
        assert part.play("read", [0], 4096).latency_ns[0] == read
        assert part.purge()
        assert part.play("read", [0], 4096).latency_ns[0] < read
        assert part.elapsed_ns == part.now_ns > 0


@pytest.mark.parametrize(
    ("part", "says"),
    [
        (Range(1, MIB), "expected whole blocks of 512 B"),
        (Range(0, 100), "expected whole blocks"),
        (Range(63 * MIB, 2 * MIB), "expected START:LENGTH within 67,108,864 B"),
        (Range(0, 0), "expected START:LENGTH"),
        (Range(-512, 1024), "expected START:LENGTH"),
    ],
)
def test_a_range_that_is_none_is_refused(part: Range, says: str) -> None:
    with pytest.raises(TargetError, match=says):
        Target(small(), part=part)


def test_reads_alone_find_data_on_a_simulated_drive() -> None:
    with Target(small()) as drive:
        drive.fill()
        read = float(drive.play("read", [0], 4096).latency_ns[0])
    with Target(small(), read_only=True) as drive:
        assert not drive.writes_allowed and drive.bytes_written == 0
        assert drive.play("read", [0], 4096).latency_ns[0] == read
        for what in (drive.purge, drive.flush, drive.fill):
            with pytest.raises(TargetError, match="expected reads only"):
                what()


def test_the_guard_counts_the_sectors_of_the_core() -> None:
    assert guard.SECTOR_BYTES == core.SECTOR_BYTES
