"""Served drives, used by other people's clients: libnbd's tools, QEMU's, fio, and nbd-server's log of a load."""

from __future__ import annotations

import hashlib
import json
import os
import random
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import flashwright
import needs
from conftest import SMALL
from flashwright import Ssd
from flashwright.serving.server import ServedDrive
from nbdclient import FUA, Nbd

MIB = 1 << 20
# 51 MiB.
MEDIUM = SMALL.replace("blocks-per-plane = 32", "blocks-per-plane = 256")


@pytest.fixture(params=["none", "real"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServedDrive]:
    """A drive on a Unix socket and on TCP; paced, it is a hundred times faster than its model."""
    path = tmp_path_factory.mktemp("s") / "s"
    pace: Any = request.param
    scale = 0.01 if pace == "real" else 1.0
    with flashwright.serve(
        Ssd.from_text(MEDIUM), [f"unix:{path}", "tcp:127.0.0.1:0"], pace=pace, time_scale=scale
    ) as drive:
        yield drive
    assert drive.result is not None
    assert drive.stats()["served"]["connections"]["broken"] == 0
    assert drive.stats()["served"]["commands_failed"] == 0


def run(program: str, *arguments: object, folder: Path | None = None) -> str:
    found = needs.need(program)
    done = subprocess.run(
        [found, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        # nbdsh runs the Python that its package was made for.
        env={**os.environ, "PATH": f"/usr/bin:{os.environ['PATH']}"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def noise(count: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(count)


def test_nbdinfo_is_told_what_the_drive_can(served: ServedDrive) -> None:
    for uri in served.uris:
        found = json.loads(run("nbdinfo", "--json", uri))
        assert found["structured"] is True and found["protocol"] == "newstyle-fixed"
        [export] = found["exports"]
        assert export["description"].endswith("simulated by Flashwright")
        for ability in ("flush", "fua", "trim", "zero", "fast_zero", "cache", "df", "multi_conn"):
            assert export[f"can_{ability}"] is True, ability
        sizes = {name: export[f"block_size_{name}"] for name in ("minimum", "preferred", "maximum")}
        assert sizes == {"minimum": 512, "preferred": 4096, "maximum": 32 * MIB}
    listed = json.loads(run("nbdinfo", "--json", "--list", served.uri))
    assert [export["export-name"] for export in listed["exports"]] == ["text"]


def test_nbdinfo_maps_what_was_written(served: ServedDrive) -> None:
    with Nbd(served.uri) as client:
        client.write(MIB, noise(MIB))
        size = client.size
    mapped = json.loads(run("nbdinfo", "--map", "--json", served.uri))
    found = [(part["offset"], part["length"], part["type"]) for part in mapped]
    assert found == [(0, MIB, 3), (MIB, MIB, 0), (2 * MIB, size - 2 * MIB, 3)]


def test_nbdcopy_brings_an_image_there_and_back(served: ServedDrive, tmp_path: Path) -> None:
    image, back = tmp_path / "image", tmp_path / "back"
    image.write_bytes(noise(9 * MIB) + bytes(3 * MIB) + noise(2 * MIB, 2))
    run("nbdcopy", "--flush", "--connections=4", image, served.uri)
    run("nbdcopy", "--connections=4", served.uri, back)
    whole = back.read_bytes()
    assert hashlib.sha256(whole[: 14 * MIB]).digest() == hashlib.sha256(image.read_bytes()).digest()
    assert not any(whole[14 * MIB :])


def test_nbdsh_gets_errors_and_answers(served: ServedDrive) -> None:
    script = """
h.set_strict_mode(0)
h.pwrite(b"x" * 8192, 4096, nbd.CMD_FLAG_FUA)
assert h.pread(8192, 4096) == b"x" * 8192
h.zero(4096, 4096, nbd.CMD_FLAG_NO_HOLE)
h.zero(4096, 8192, nbd.CMD_FLAG_FAST_ZERO)
h.trim(4096, 4096, nbd.CMD_FLAG_FUA)
h.cache(4096, 4096)
assert h.pread(8192, 4096) == bytes(8192)
chunks = []
h.pread_structured(4096, 0, lambda data, offset, kind, error: chunks.append((offset, kind)), nbd.CMD_FLAG_DF)
assert chunks == [(0, nbd.READ_DATA)]
def errno(call):
    try:
        call()
    except nbd.Error as error:
        return error.errno
size = h.get_size()
assert errno(lambda: h.pwrite(bytes(512), size)) == "ENOSPC"
assert errno(lambda: h.pread(512, size)) == "EINVAL"
assert errno(lambda: h.pread(100, 0)) == "EINVAL"
assert errno(lambda: h.zero(512, 512, nbd.CMD_FLAG_FAST_ZERO)) == "ENOTSUP"
h.flush()
h.shutdown()
print("good")
"""
    assert run("nbdsh", "--uri", served.uri, "--command", script) == "good\n"


def test_a_client_without_structured_replies(served: ServedDrive) -> None:
    script = f"""
h.set_request_structured_replies(False)
h.connect_uri("{served.uri}")
assert not h.get_structured_replies_negotiated()
h.pwrite(b"y" * 4096, 0)
print(h.pread(4096, 0) == b"y" * 4096)
h.shutdown()
"""
    assert run("nbdsh", "--command", script) == "True\n"


def test_qemu_io(served: ServedDrive) -> None:
    steps = [
        "write -P 0xab 1M 64k",
        "read -P 0xab 1M 64k",
        "write -z 1M 32k",
        "read -P 0 1M 32k",
        "read -P 0xab 1081344 32k",
        "write -z -u 1081344 4k",
        "discard 1M 64k",
        "read -P 0 1M 64k",
        "write -f -P 3 12345k 3k",
        "read -P 3 12345k 3k",
        # Not on sectors: QEMU reads, changes and writes.
        "write -P 7 100 1000",
        "read -P 7 100 1000",
        "flush",
    ]
    said = run("qemu-io", "-f", "raw", served.uri, *(f"-c{step}" for step in steps))
    assert "failed" not in said and said.count("ops;") == 12


def test_qemu_img_converts_and_compares(served: ServedDrive, tmp_path: Path) -> None:
    image, cow = tmp_path / "image", tmp_path / "image.qcow2"
    with Nbd(served.uri) as client:
        size = client.size
    image.write_bytes(bytes(5 * MIB) + noise(7 * MIB) + bytes(size - 12 * MIB))
    run("qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", image, served.uris[1])
    said = run("qemu-img", "compare", "-f", "raw", "-F", "raw", image, served.uri)
    assert said == "Images are identical.\n"
    run("qemu-img", "convert", "-f", "raw", "-O", "qcow2", served.uri, cow)
    # Holes stay holes.
    assert cow.stat().st_size < 9 * MIB


@pytest.mark.parametrize("pattern", ["randwrite", "randrw"])
def test_fio_verifies_under_depth(served: ServedDrive, pattern: str, tmp_path: Path) -> None:
    said = run(
        "fio",
        "--name=x",
        "--ioengine=nbd",
        f"--uri={served.uri}",
        f"--rw={pattern}",
        "--bsrange=512-16k",
        "--iodepth=32",
        "--size=12m",
        "--fsync=100",
        "--verify=crc32c",
        "--do_verify=1",
        folder=tmp_path,
    )
    assert "err= 0" in said


def test_a_log_of_nbd_server_replayed_through_fuse(tmp_path: Path) -> None:
    """nbd-server logs a load with its data; nbd-trplay applies the log to our drive; both then hold the same."""
    server, play, fuse = (needs.need(each) for each in ("nbd-server", "nbd-trplay", "nbdfuse"))
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        needs.refused("the test needs /dev/fuse")
    ssd = Ssd.from_text(MEDIUM)
    image, log, theirs = tmp_path / "image", tmp_path / "log", tmp_path / "n"
    with flashwright.serve(ssd) as served:
        with Nbd(served.uri) as client:
            size = client.size
        with image.open("wb") as file:
            file.truncate(size)
        config = tmp_path / "config"
        # For port 0 it would talk to its standard input.
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        config.write_text(
            f"[generic]\nunixsock = {theirs}\nlistenaddr = 127.0.0.1\nport = {port}\n"
            f"[export]\nexportname = {image}\ntransactionlog = {log}\ndatalog = true\nflush = true\nfua = true\n"
        )
        logging = subprocess.Popen([server, "-d", "-C", str(config)], stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 10
            while not theirs.exists():
                assert time.monotonic() < until and logging.poll() is None
                time.sleep(0.02)
            run(
                "qemu-io",
                "-f",
                "raw",
                f"nbd+unix:///export?socket={theirs}",
                *(f"-cwrite -P {at % 251 + 1} {at * 37 % 4000}k 12k" for at in range(200)),
                "-cflush",
            )
        finally:
            logging.terminate()
            logging.wait(10)
        mount = tmp_path / "m"
        mount.mkdir()
        mounted = subprocess.Popen([fuse, str(mount / "disk"), served.uri])
        try:
            until = time.monotonic() + 10
            while not (mount / "disk").exists():
                assert time.monotonic() < until and mounted.poll() is None
                time.sleep(0.02)
            played = subprocess.run(
                [play, "-i", str(mount / "disk"), "-l", str(log)], capture_output=True, text=True
            )
            assert played.returncode == 0, played.stdout + played.stderr
        finally:
            subprocess.run([needs.need("fusermount3"), "-u", str(mount)], check=False)
            mounted.wait(10)
        assert run("qemu-img", "compare", "-f", "raw", "-F", "raw", image, served.uri) == (
            "Images are identical.\n"
        )
        assert served.stats()["requests"]["write"] > 100


def test_a_read_only_drive_refuses_qemu(tmp_path: Path) -> None:
    with flashwright.serve(Ssd.from_text(MEDIUM), read_only=True) as served:
        assert (
            json.loads(run("nbdinfo", "--json", served.uri))["exports"][0]["is_read_only"] is True
        )
        qemu = needs.need("qemu-io")
        done = subprocess.run(
            [qemu, "-f", "raw", served.uri, "-c", "write 0 4k"], capture_output=True, text=True
        )
        assert done.returncode != 0
        with Nbd(served.uri) as client, pytest.raises(Exception, match="read-only"):
            client.write(0, bytes(512), FUA)
