"""A served drive loses power: what was flushed is there after the mount."""

from __future__ import annotations

import random
from typing import Literal

import pytest

import flashwright
from flashwright import Ssd
from flashwright.errors import ServeError
from flashwright.serving.control import ask
from nbdclient import EIO, FLUSH, FUA, Nbd, NbdError

PAGE = 4096
DRIVE = Ssd.named("default").with_(mount_by="scan")


@pytest.mark.parametrize("pace", ["none", "real"])
def test_what_was_flushed_survives(pace: Literal["none", "real"]) -> None:
    rng = random.Random(1)
    safe: dict[int, bytes] = {}
    with (
        flashwright.serve(DRIVE, pace=pace, time_scale=0.01 if pace == "real" else 1.0) as drive,
        Nbd(drive.uri) as disk,
    ):
        for _ in range(4):
            written = {rng.randrange(200) * PAGE: rng.randbytes(PAGE) for _ in range(20)}
            for at, data in written.items():
                disk.write(at, data)
            disk.ask(FLUSH)
            safe |= written
            forced = rng.randrange(200, 300) * PAGE
            disk.write(forced, bytes([7]) * PAGE, FUA)
            safe[forced] = bytes([7]) * PAGE
            disk.write(400 * PAGE, b"x" * PAGE)
            drive.cut()
            with pytest.raises(NbdError, match="the power is off") as refused:
                disk.read(0, PAGE)
            assert refused.value.errno == EIO
            mounted = drive.mount()
            assert mounted["pages_mapped"] in (len(safe), len(safe) + 1)
            assert mounted["duration_ns"] > 0
            for at, data in safe.items():
                assert disk.read(at, PAGE) == data
            assert disk.read(400 * PAGE, PAGE) in (b"x" * PAGE, bytes(PAGE))


def test_a_drive_that_ignores_flushes_is_noticed() -> None:
    liar = DRIVE.with_({"ram.manager": "lru", "ram.size": "1 MiB", "recovery.ignores-flush": True})
    with flashwright.serve(liar) as drive, Nbd(drive.uri) as disk:
        disk.write(0, b"y" * PAGE)
        disk.ask(FLUSH)
        drive.mount()
        assert disk.read(0, PAGE) == bytes(PAGE), "it was lost"


def test_power_on_the_control_socket(tmp_path_factory: pytest.TempPathFactory) -> None:
    ctl = f"unix:{tmp_path_factory.mktemp('s') / 'c'}"
    with flashwright.serve(DRIVE, ctl=ctl):
        assert ask(ctl, "cut") == "off"
        assert ask(ctl, "mount")["pages_mapped"] == 0
    with flashwright.serve("default", ctl=ctl) as drive:
        with pytest.raises(ServeError, match=r'recovery\.mount-by: found "nothing"'):
            drive.cut()
        with pytest.raises(ServeError, match=r'recovery\.mount-by: found "nothing"'):
            ask(ctl, "mount")


@pytest.mark.parametrize("pace", ["none", "real"])
def test_a_drive_restarts_with_other_settings(pace: Literal["none", "real"]) -> None:
    scale = 0.01 if pace == "real" else 1.0
    with flashwright.serve(DRIVE, pace=pace, time_scale=scale) as drive, Nbd(drive.uri) as disk:
        disk.write(0, b"a" * PAGE)
        assert drive.set("gc.victim=fifo")["pages_mapped"] == 1
        disk.write(PAGE, b"b" * PAGE)
        assert drive.set("ram.manager=lru", "ram.size=1 MiB")["duration_ns"] > 0
        for _ in range(3):
            disk.write(PAGE, b"c" * PAGE)
        assert disk.read(0, 2 * PAGE) == b"a" * PAGE + b"c" * PAGE
        for setting, says in (
            ("geometry.channels=2", "expected a setting of gc or ram"),
            ("gc.victim=fife", 'did you mean "fifo"'),
            ("gc.invalidate=before-gc", "gc.invalidate"),
            ("nothing", "expected KEY=VALUE"),
        ):
            with pytest.raises(ServeError, match=says):
                drive.set(setting)
        disk.write(2 * PAGE, b"d" * PAGE)
        disk.ask(FLUSH)
        disk.write(3 * PAGE, b"e" * PAGE)
        drive.cut()
        drive.mount()
        assert disk.read(0, 3 * PAGE) == b"a" * PAGE + b"c" * PAGE + b"d" * PAGE
        assert disk.read(3 * PAGE, PAGE) == bytes(PAGE), "the buffer had it, and lost it"
    with (
        flashwright.serve("default") as drive,
        pytest.raises(ServeError, match=r"recovery\.mount-by"),
    ):
        drive.set("gc.victim=fifo")
