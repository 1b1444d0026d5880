"""Drives that live in a file: killed, stopped, refused, and short of space."""

from __future__ import annotations

import random
import resource
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import flashwright
import needs
from conftest import SMALL, Cli
from crashing import PAGE, KilledError, Load, Server, said
from flashwright import Ssd
from flashwright.errors import ConfigError, ServeError
from flashwright.serving.control import ask
from nbdclient import EIO, FLUSH, FUA, TRIM, Nbd, NbdError

DRIVE = Ssd.from_text(SMALL).with_(mount_by="scan")
SEEDS = 7
# What of a drive decides when its chips change.
KINDS = {
    "parallel": [],
    "serial": ["timing.model=serial"],
    "ram": ["ram.manager=lru", "ram.size=256 KiB"],
    "dftl": ["ftl.scheme=dftl", "ftl.dftl.cmt-entries=256"],
    "fast": ["ftl.scheme=fast", "timing.model=none"],
    "capacitors": ["chips.write-ram=1 MiB"],
    "controller": ["controller.write-buffer.size=256 KiB", "controller.write-buffer.kind=cache"],
}
# Drives of today, with few blocks.
MODERN = {
    name: Ssd.named(name).with_(
        {
            "geometry.blocks-per-plane": 24,
            "capacity.utilization": 0.4,
            "recovery.mount-by": "scan",
            **({"ftl.dftl.cmt-entries": 4096} if name == "dram-less" else {}),
        }
    )
    for name in ("consumer-tlc", "dram-less", "enterprise-tlc", "qlc-coarse")
}


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a path that is short enough for a socket."""
    return tmp_path_factory.mktemp("i")


def killed_often(folder: Path, kind: str, kills: int, seed: int) -> tuple[int, int, int]:
    """Kill a server again and again: under load, when it is idle, and while it starts.

    Returns the kills under load, the flushes answered, and how often a page was not the newest afterwards.
    """
    draw, load = random.Random(seed), Load(1500, seed)
    under_load = older = 0
    with Server(folder, SMALL, KINDS[kind]) as server:
        server.start()
        for _ in range(kills):
            if draw.random() < 0.15:
                server.kill()
                server.begin()
                time.sleep(draw.uniform(0, 0.7))
            else:
                timer = threading.Timer(draw.uniform(0.02, 0.4), server.kill)
                timer.start()
                try:
                    load.run(server.uri, 5)
                except KilledError:
                    under_load += 1
                timer.join()
            server.kill()
            server.start()
            older += load.check(server.uri)
    return under_load, load.flushes, older


@pytest.mark.parametrize("kind", ["parallel", "ram"])
def test_what_was_flushed_survives_kills(folder: Path, kind: str) -> None:
    under_load, flushes, older = killed_often(folder, kind, 3, SEEDS)
    # A slow machine is killed before most of its flushes.
    assert under_load > 0 and flushes > 0
    if kind == "ram":
        assert older > 0, "what the RAM held and was not flushed is lost"


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_flushed_survives_a_hundred_kills(folder: Path, kind: str) -> None:
    under_load, flushes, older = killed_often(folder, kind, 17, SEEDS)
    print(f"{kind}: 17 kills, {under_load} under load, {flushes} flushes, {older} pages not newest")
    assert under_load > 5 and flushes > 10


def test_a_kill_shows_a_drive_with_ram_that_ignores_flushes(folder: Path) -> None:
    with Server(folder, SMALL, [*KINDS["ram"], "recovery.ignores-flush=true"]) as server:
        server.start()
        with Nbd(server.uri) as client:
            client.write(0, b"y" * PAGE)
            client.ask(FLUSH)
        server.kill()
        server.start()
        with Nbd(server.uri) as client:
            assert client.read(0, PAGE) == bytes(PAGE), "it was lost"


def test_a_stopped_drive_goes_on_where_it_was(folder: Path) -> None:
    image = folder / "drive.img"
    with_ram = DRIVE.with_settings(KINDS["ram"])
    with flashwright.serve(with_ram.precondition("sequential"), image=image) as drive:
        with Nbd(drive.uri) as client:
            client.write(PAGE, b"a" * PAGE)
            client.ask(TRIM, 2 * PAGE, PAGE)
        erases = drive.stats()["flash"]["erases"]["total"]
    assert drive.result is not None and erases == drive.stats()["flash"]["erases"]["total"]
    with flashwright.serve(with_ram, image=image) as drive, Nbd(drive.uri) as client:
        assert client.read(PAGE, 2 * PAGE) == b"a" * PAGE + bytes(PAGE), "nothing was flushed"
        assert client.mapped(2 * PAGE, PAGE) == [(PAGE, 3)]
    assert (
        f"image {image}: mounted, with 1637 pages of data and 0 that can't be read" in drive.notes
    )


def test_cuts_and_snapshots(folder: Path) -> None:
    image, copy, ctl = folder / "drive.img", folder / "copy.img", f"unix:{folder / 'c'}"
    with flashwright.serve(DRIVE, image=image, ctl=ctl) as drive, Nbd(drive.uri) as client:
        client.write(0, b"a" * PAGE, FUA)
        assert drive.snapshot(copy) == 1
        with pytest.raises(ServeError, match=r"copy\.img: exists already"):
            ask(ctl, "snapshot", file=str(copy))
        with pytest.raises(ServeError, match="snapshot: found no file"):
            ask(ctl, "snapshot")
        client.write(0, b"b" * PAGE, FUA)
        drive.cut()
        assert drive.snapshot(folder / "off.img") == 2
    for file, held in [(image, b"b"), (copy, b"a"), (folder / "off.img", b"b")]:
        with flashwright.serve(DRIVE, image=file) as drive, Nbd(drive.uri) as client:
            assert client.read(0, PAGE) == held * PAGE
    with (
        flashwright.serve(Ssd.from_text(SMALL)) as drive,
        pytest.raises(ServeError, match=r'recovery\.mount-by: found "nothing"'),
    ):
        drive.snapshot(folder / "never.img")
    assert not (folder / "never.img").exists()


@pytest.mark.parametrize("name", MODERN)
def test_a_drive_of_today_is_cut_and_mounted(folder: Path, name: str) -> None:
    image, copy, block = folder / "drive.img", folder / "copy.img", 64 << 10
    with flashwright.serve(MODERN[name], image=image) as drive, Nbd(drive.uri) as client:
        client.write(0, b"a" * block, FUA)
        assert drive.snapshot(copy) > 0
        client.write(block, b"b" * block)
        drive.cut()
        with pytest.raises(NbdError, match="the power is off; mount the drive first"):
            client.read(0, block)
        before = drive.stats()["time_ns"]
        mounted = drive.mount()
        assert mounted["pages_mapped"] > 0 and mounted["pages_torn"] == 0
        assert drive.stats()["time_ns"] == before + mounted["duration_ns"] > before
        assert client.read(0, 2 * block) == b"a" * block + b"b" * block, "capacitors kept it"
        drive.set("gc.victim=fifo")
        client.write(2 * block, b"c" * block)
    for file, held in [(copy, b"a" + bytes(2)), (image, b"abc")]:
        with flashwright.serve(MODERN[name], image=file) as drive, Nbd(drive.uri) as client:
            found = client.read(0, 3 * block)
            assert bytes(found[::block]) == held
            assert found == b"".join(bytes([each]) * block for each in held)


@pytest.mark.parametrize("kind", ["controller", "capacitors"])
def test_a_kill_loses_no_more_than_a_cut(folder: Path, kind: str) -> None:
    with Server(folder, SMALL, KINDS[kind]) as server:
        server.start()
        with Nbd(server.uri) as client:
            client.write(0, b"a" * PAGE * 2)
            client.ask(FLUSH)
            client.write(0, b"b" * PAGE)
            client.ask(TRIM, PAGE, PAGE)
        server.kill()
        server.start()
        with Nbd(server.uri) as client:
            written, trimmed = client.read(0, PAGE), client.read(PAGE, PAGE)
        if kind == "controller":
            assert written == b"a" * PAGE, "it was only in the buffer"
        else:
            assert (written, trimmed) == (b"b" * PAGE, bytes(PAGE)), "capacitors had promised it"


def test_what_an_image_is_refused_for(folder: Path) -> None:
    image = folder / "drive.img"
    with flashwright.serve(DRIVE, image=image):
        with pytest.raises(ServeError, match=r"drive\.img: in use by another server") as refused:
            flashwright.serve(DRIVE, image=image)
        assert refused.value.hint.startswith("stop that one first")
    bytes_before = image.read_bytes()
    for ssd, seed, why in [
        (DRIVE.with_({"gc.victim": "fifo"}), 1, 'gc.victim is "greedy" there, and "fifo" here'),
        (DRIVE.with_({"geometry.channels": 4}), 1, "geometry.channels is 2 there, and 4 here"),
        (DRIVE, 2, "the seed is 1 there, and 2 here"),
        (DRIVE.precondition("random"), 1, "no precondition can be had with it: found random"),
    ]:
        with pytest.raises(ServeError, match=why):
            flashwright.serve(ssd, image=image, seed=seed)
    (folder / "text.img").write_text("text")
    with pytest.raises(ServeError, match="found another kind of file"):
        flashwright.serve(DRIVE, image=folder / "text.img")
    assert image.read_bytes() == bytes_before, "nothing was changed"
    image.write_bytes(bytes_before[:-1])
    with pytest.raises(ServeError, match=r"damaged: .*its end is lost"):
        flashwright.serve(DRIVE, image=image)
    with pytest.raises(ServeError, match=r"none/drive\.img: can't be made: no such file"):
        flashwright.serve(DRIVE, image=folder / "none" / "drive.img")


def test_settings_that_an_image_does_not_take(command: Cli, small: str, folder: Path) -> None:
    image = folder / "drive.img"
    options = ["--nbd", f"unix:{folder / 's'}", "--image", str(image)]
    refused = command("serve", small, *options)
    assert refused.status == 2
    assert 'recovery.mount-by: found "nothing", expected "scan" with an image' in refused.err
    assert "--set recovery.mount-by=scan" in refused.err
    protected = ["--set=ram.manager=lru", "--set=ram.size=1 MiB", "--set=ram.power-protected=true"]
    refused = command("serve", small, *options, "--set=recovery.mount-by=scan", *protected)
    assert (refused.status, refused.err.count("error")) == (2, 1)
    assert "ram.power-protected: found true, expected false with an image" in refused.err
    assert not image.exists()
    refused = command("ctl", f"unix:{folder / 'c'}", "snapshot")
    assert (refused.status, refused.err.splitlines()[0]) == (
        2,
        "error: snapshot: found no file, expected a path for the image",
    )


def test_a_start_that_is_killed_leaves_no_image(folder: Path) -> None:
    with Server(folder, SMALL) as server:
        process = server.begin("--precondition=random:capacities=1000000")
        time.sleep(1)
        assert process.poll() is None, "it still fills the drive"
        assert not server.image.exists()
    assert sorted(path.name for path in folder.iterdir()) == ["drive.toml"]


@pytest.fixture(params=["limit", "tmpfs"])
def short_of_space(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[Server, str]]:
    """A server whose image can't grow to its full size, and why."""
    if request.param == "limit":
        with Server(folder, SMALL) as server:
            yield server, "file too large"
        return
    needs.root()
    mounted = folder / "m"
    mounted.mkdir()
    options = ["-t", "tmpfs", "-o", "size=3m", "tmpfs", str(mounted)]
    if subprocess.run(["mount", *options], capture_output=True).returncode:
        needs.refused("tmpfs can't be mounted")
    try:
        with Server(mounted, SMALL) as server:
            yield server, "no space left on device"
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


def test_a_full_disk_loses_nothing_that_was_flushed(short_of_space: tuple[Server, str]) -> None:
    server, why = short_of_space
    load = Load(1500, SEEDS)
    process = server.start()
    with Nbd(server.uri) as client:
        while not load.flushes:
            load.batch(client)
    if why == "file too large":
        limit = server.image.stat().st_size // 2
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    with Nbd(server.uri) as client:
        with pytest.raises(NbdError, match=f"can't be written: {why}") as failed:
            load.go_on(client)
        assert failed.value.errno == EIO
    with Nbd(server.uri) as client, pytest.raises(NbdError, match=f"can't be written: {why}"):
        client.read(0, PAGE)
    ctl = f"unix:{server.folder / 'c'}"
    with pytest.raises(ServeError, match=why):
        ask(ctl, "mount")
    assert "What was flushed is safe: make room" in said(process, "has lost its power")
    ask(ctl, "stop")
    # The image lacks what was not flushed.
    assert process.wait(20) == 2
    process.communicate()
    if why == "no space left on device":
        subprocess.run(["mount", "-o", "remount,size=64m", str(server.folder)], check=True)
    server.start()
    load.check(server.uri)
    with Nbd(server.uri) as client:
        for _ in range(20):
            load.batch(client)


def test_settings_that_a_file_can_not_keep(tmp_path: Path) -> None:
    image = tmp_path / "drive.img"
    with flashwright.serve(DRIVE, image=image) as drive, Nbd(drive.uri) as disk:
        disk.write(0, b"a" * 4096)
        with pytest.raises(ServeError, match=r"ram\.power-protected: found true, expected false"):
            drive.set("ram.manager=lru", "ram.size=1 MiB", "ram.power-protected=true")
        drive.set("gc.victim=fifo")
    with flashwright.serve(DRIVE, image=image) as drive, Nbd(drive.uri) as disk:
        assert disk.read(0, 4096) == b"a" * 4096
    checkpoints = {"recovery.checkpoint-interval": "1 MiB", "ftl.scheme": "dftl"}
    with pytest.raises(
        ConfigError, match=r"recovery\.checkpoint-interval: expected .* with an image"
    ):
        flashwright.serve(DRIVE.with_(checkpoints), image=tmp_path / "other.img")
    assert not (tmp_path / "other.img").exists()
    with pytest.raises(ServeError, match="image and record_data: found both"):
        flashwright.serve(DRIVE, image=image, record_data=tmp_path / "a.fwr")
