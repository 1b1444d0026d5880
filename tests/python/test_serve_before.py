"""A device that exists behind the host's schedulers, served to clients: its data, its errors, what is refused."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import flashwright
import nbdclient as nbd
import needs
from conftest import Cli
from flashwright.errors import ConfigError, ServeError, TargetError
from flashwright.serving.control import ask
from flashwright.serving.proxy import ServedDevice
from nbdclient import Nbd, NbdError

MIB = 1 << 20
PROFILE = """\
clustered-page = "16 KiB"
clustered-block = "1 MiB"
read-buffer = "64 KiB"
write-buffer = "64 KiB"
"""
CHAINS = (None, "noop", "deadline", "pasa+pai")


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image"
    path.write_bytes(b"\xa5" * (4 * MIB))
    return path


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "profile.toml"
    path.write_text(PROFILE)
    return path


@pytest.fixture(params=CHAINS)
def served(
    request: pytest.FixtureRequest, image: Path, profile: Path
) -> Iterator[tuple[ServedDevice, Path]]:
    with flashwright.serve_before(
        image, scheduler=request.param, profile=profile, destroys_data=True
    ) as device:
        yield device, image


def test_data_are_correct_under_depth(served: tuple[ServedDevice, Path]) -> None:
    device, image = served
    draw = random.Random(3)
    model = bytearray(image.read_bytes())
    with Nbd(device.uri) as client:
        block = 4096
        for _ in range(40):
            expected = {}
            for _ in range(16):
                kind = draw.choices([nbd.READ, nbd.WRITE, nbd.WRITE_ZEROES], [4, 8, 1])[0]
                length = draw.choice([1, 2, 3, 40]) * block
                # A hot quarter of the file, so that many requests overlap.
                offset = draw.randrange(0, (MIB - length) // block) * block
                data = draw.randbytes(length) if kind == nbd.WRITE else b""
                flags = nbd.FUA if kind == nbd.WRITE and draw.random() < 0.1 else 0
                cookie = client.send(kind, offset, length, data, flags)
                if kind == nbd.READ:
                    expected[cookie] = bytes(model[offset : offset + length])
                else:
                    model[offset : offset + length] = data or bytes(length)
            for _ in range(16):
                cookie, brought = client.reply()
                if cookie in expected:
                    assert brought == expected[cookie]
        client.ask(nbd.FLUSH)
        client.ask(nbd.TRIM, 2 * MIB, MIB)
        model[2 * MIB : 3 * MIB] = bytes(MIB)
    result = device.stop()
    assert image.read_bytes() == bytes(model)
    assert device.stats()["served"]["connections"]["broken"] == 0
    figures = result.json
    assert figures["requests"]["trim"] == 1 and figures["requests"]["flush"] == 1
    assert figures["target"] is not None and figures["target"]["writes_allowed"]
    layers = figures["host_layers"]
    assert layers == [] or sum(layer["held_for_order"] for layer in layers) > 50


def test_fio_verifies_what_it_wrote(served: tuple[ServedDevice, Path], tmp_path: Path) -> None:
    device, _ = served
    fio = needs.need("fio")
    for pattern, size in (("randwrite", "4k"), ("write", "36k")):
        done = subprocess.run(
            (
                *(fio, "--name=v", "--ioengine=nbd", f"--uri={device.uri}", f"--rw={pattern}"),
                *(f"--bs={size}", "--iodepth=32", "--size=4m", "--verify=crc32c"),
                "--verify_fatal=1",
            ),
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
        )
        assert done.returncode == 0 and "err= 0" in done.stdout, done.stdout + done.stderr
    assert device.stats()["requests"]["write"] >= 1024


def test_the_schedulers_are_told_with_what_they_did(image: Path, profile: Path) -> None:
    with flashwright.serve_before(
        image, scheduler="pasa+pai", profile=profile, destroys_data=True
    ) as device:
        with Nbd(device.uri) as client:
            # 200 KiB from 8 KiB on: cut at 16 KiB, then at the buffer's 64 KiB.
            client.write(8192, b"x" * (200 << 10))
        pasa, pai = device.stats()["host_layers"]
    assert (pasa["scheduler"], pai["scheduler"]) == ("pasa", "pai")
    assert (pasa["requests"], pasa["writes"]["requests"]) == (1, 4)
    assert pasa["writes"]["aligned_at_start"] == 3
    assert pai["writes"]["bytes"] == 200 << 10


def test_alone_a_write_is_not_kept_waiting(image: Path) -> None:
    """A plug ends when all that came has been submitted: nobody else will come while the client waits."""
    with (
        flashwright.serve_before(image, scheduler="deadline", destroys_data=True) as device,
        Nbd(device.uri) as client,
    ):
        for page in range(50):
            client.write(page * 4096, b"y" * 4096)
        [layer] = device.stats()["host_layers"]
        assert layer["write_waits"]["mean_ns"] < 1e6, "the plug's delay is 3 ms"


def test_errors_of_the_device_are_answered(tmp_path: Path) -> None:
    """A sparse file on a file system that is full: writes fail, reads and what has room go on."""
    needs.root()
    folder = tmp_path / "full"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], capture_output=True
    )
    if mounted.returncode:
        needs.refused("no tmpfs can be mounted")
    try:
        file = folder / "sparse"
        with file.open("wb") as sparse:
            sparse.truncate(8 * MIB)
        for scheduler in (None, "deadline"):
            with (
                flashwright.serve_before(file, scheduler=scheduler, destroys_data=True) as device,
                Nbd(device.uri) as client,
            ):
                client.write(0, b"1" * 4096)
                with pytest.raises(NbdError) as failed:
                    client.write(4 * MIB, b"2" * (2 * MIB))
                assert failed.value.errno == nbd.EIO
                assert "No space left" in failed.value.why or "only" in failed.value.why
                client.write(0, b"3" * 4096)
                assert client.read(0, 4096) == b"3" * 4096
                client.ask(nbd.TRIM, 0, 8 * MIB)
                client.write(4 * MIB, b"4" * 4096)
                assert client.read(4 * MIB, 4096) == b"4" * 4096
                client.ask(nbd.TRIM, 0, 8 * MIB)
                assert device.stats()["failed"] == 1
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_client_that_vanishes_leaves_the_others_alone(image: Path) -> None:
    with flashwright.serve_before(image, scheduler="deadline", destroys_data=True) as device:
        rude = Nbd(device.uri)
        for page in range(64):
            rude.send(nbd.WRITE, page * 4096, 4096, b"z" * 4096)
        rude.send(nbd.READ, 0, MIB)
        rude.socket.close()
        with Nbd(device.uri) as client:
            client.write(MIB, b"q" * 4096)
            assert client.read(MIB, 4096) == b"q" * 4096
        until = time.monotonic() + 10
        while device.stats()["served"]["connections"]["open"]:
            assert time.monotonic() < until
            time.sleep(0.01)


def test_a_loop_device_takes_all_kinds(image: Path) -> None:
    needs.root()
    losetup = needs.need("losetup")
    made = subprocess.run([losetup, "-f", "--show", image], capture_output=True, text=True)
    if made.returncode:
        needs.refused("no loop device can be made")
    loop = made.stdout.strip()
    try:
        with pytest.raises(TargetError, match="is in use by"):
            flashwright.serve_before(image, destroys_data=True)
        with (
            flashwright.serve_before(loop, scheduler="mq-deadline", destroys_data=True) as device,
            Nbd(device.uri) as client,
        ):
            client.write(512, b"b" * 512, nbd.FUA)
            client.ask(nbd.WRITE_ZEROES, MIB, MIB)
            client.ask(nbd.WRITE_ZEROES, 2 * MIB, 4096, flags=nbd.FUA)
            client.ask(nbd.TRIM, 3 * MIB, MIB, flags=nbd.FUA)
            client.ask(nbd.FLUSH)
            assert client.read(0, 1536) == b"\xa5" * 512 + b"b" * 512 + b"\xa5" * 512
            assert client.read(MIB, MIB + 8192) == bytes(MIB + 4096) + b"\xa5" * 4096
            with pytest.raises(TargetError, match="in use"):
                flashwright.serve_before(loop, destroys_data=True)
    finally:
        subprocess.run([losetup, "-d", loop], check=True)


def test_without_consent_clients_only_read(image: Path) -> None:
    before = image.read_bytes()
    for read_only in (False, True):
        with (
            flashwright.serve_before(image, destroys_data=read_only, read_only=read_only) as device,
            Nbd(device.uri) as client,
        ):
            assert client.flags & 2, "the export is read-only"
            assert client.read(0, 512) == b"\xa5" * 512
            for kind in (nbd.WRITE_ZEROES, nbd.TRIM):
                with pytest.raises(NbdError) as failed:
                    client.ask(kind, 0, 4096)
                assert failed.value.errno == nbd.EPERM
    assert image.read_bytes() == before


def test_the_command_line(
    image: Path, profile: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("s")
    out = folder / "served.json"
    places_of = ("--nbd", f"unix:{folder}/s", "--ctl", f"unix:{folder}/c")
    beside = ("--metrics", "127.0.0.1:0", "--watch", "127.0.0.1:0", "--json", str(out))
    before = ("--before", str(image), "--scheduler", "pasa+pai", "--profile", str(profile))
    server = subprocess.Popen(
        (sys.executable, "-m", "flashwright", "serve", *before, *places_of, *beside),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stderr is not None
        said = [server.stderr.readline() for _ in range(5)]
        assert "clients may only read (--destroys-data lets them write)" in said[0]
        places = dict(line.removeprefix("note: ").strip().split(": ") for line in said[2:])
        with Nbd(f"nbd+unix:///?socket={folder}/s") as client:
            assert client.read(0, 4096) == b"\xa5" * 4096
        until = time.monotonic() + 10
        while True:
            with urllib.request.urlopen(places["metrics"], timeout=10) as answer:
                lines = answer.read().decode().splitlines()
            # A reply is counted after it has left.
            late = [line for line in lines if line.startswith("flashwright_lateness_seconds")]
            if late or time.monotonic() > until:
                break
        assert late and 'flashwright_requests_total{kind="read"} 1' in lines
        assert not any("flash_" in line for line in lines)
        with urllib.request.urlopen(places["watch"] + "data", timeout=10) as answer:
            data = json.load(answer)
        assert data["blocks"] is None and data["stats"]["requests"]["read"] == 1
        with pytest.raises(ServeError, match="a device that exists"):
            ask(f"unix:{folder}/c", "trim-all")
        with pytest.raises(ServeError, match="expected one of stats, trim-all, mark, stop"):
            ask(f"unix:{folder}/c", "cut")
        ask(f"unix:{folder}/c", "stop")
        table, _ = server.communicate(timeout=20)
    finally:
        server.kill()
    assert server.returncode == 0
    assert "the clients' own" in table and "pasa, reads" in table and "replies late by" in table
    figures = json.loads(out.read_text())
    assert figures["requests"]["read"] == 1 and figures["served"]["pace"] == "device"


NBD = ("--nbd", "tcp:127.0.0.1:0")


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["default", "--before", "IMAGE"], "DEVICE and --before: found both"),
        ([], "DEVICE: found none, expected a drive to simulate, or --before PATH"),
        (["--before", "IMAGE", "--pace", "real"], "--pace: found with --before"),
        (["--before", "IMAGE", "--time-scale", "2"], "--time-scale: found with --before"),
        (["--before", "IMAGE", "--record", "a.fwt"], "--record: found with --before"),
        (["--before", "IMAGE", "--precondition", "random"], "--precondition: found with --before"),
        (["--before", "IMAGE", "--seed", "2"], "--seed: found with --before"),
        (["default", "--scheduler", "noop"], "--scheduler: found without --before"),
        (["default", "--destroys-data"], "--destroys-data: found without --before"),
        (["--before", "/nowhere/x"], "/nowhere/x: no such file or device"),
        (["--before", "/dev/null"], "found a character device, expected a block device"),
        (["--before", "IMAGE", "--scheduler", "pasa"], "clustered-page"),
        (["--before", "IMAGE", "--scheduler", "elevator"], "elevator"),
        (["--before", "IMAGE", "--set", "gc.victim=fifo"], "gc.victim"),
        (["--before", "IMAGE", "--profile", "/nowhere/p"], "/nowhere/p: no such file"),
        (["--before", "IMAGE", "--queue-depth", "0"], "queue-depth: found 0"),
    ],
)
def test_bad_input_is_one_line(command: Cli, image: Path, options: list[str], found: str) -> None:
    given = [str(image) if option == "IMAGE" else option for option in options]
    said = command("serve", *given, *NBD)
    errors = [line for line in said.err.splitlines() if line.startswith("error: ")]
    assert (said.status, said.out) == (2, ""), said
    assert errors and any(found in line for line in said.err.splitlines()), said.err
    assert image.read_bytes() == b"\xa5" * (4 * MIB)


def test_bad_input_in_python(image: Path) -> None:
    with pytest.raises(ConfigError, match=r"host\.profile\.clustered-page"):
        flashwright.serve_before(image, scheduler="pasa+pai")
    with pytest.raises(ServeError, match="nbd: found none"):
        flashwright.serve_before(image, [])
    with pytest.raises(TypeError):
        flashwright.serve_before(image, pace="real")  # type: ignore[call-arg] # on purpose
