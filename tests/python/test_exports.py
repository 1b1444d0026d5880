"""Exports of NBD servers and subsystems of NVMe/TCP as devices under test, and what is refused."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flashwright
from conftest import SMALL, Cli
from flashwright import Ssd, workloads
from flashwright.errors import DeviceError, TargetError
from flashwright.serving.server import ServedDrive
from flashwright.target.target import Range, Target

MIB = 1 << 20


@pytest.fixture
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedDrive]:
    path = tmp_path_factory.mktemp("s") / "s"
    with flashwright.serve(
        Ssd.from_text(SMALL),
        [f"unix:{path}", "tcp:127.0.0.1:0"],
        nvme_tcp="127.0.0.1:0",
        pace="real",
        time_scale=0.1,
    ) as drive:
        yield drive


def test_a_replay_reaches_the_drive(served: ServedDrive) -> None:
    for uri in served.uris:
        before = served.stats()["requests"]
        found = flashwright.replay(
            uri, "uniform:write=0.5,size=4KiB", requests=500, depth=4, destroys_data=True
        )
        j: Any = found.json
        assert j["ended"] == "complete" and j["measured"]["requests"] == 500
        assert j["target"]["real_time"] and j["target"]["writes_allowed"]
        after = served.stats()["requests"]
        assert j["requests"]["write"] == after["write"] - before["write"]
        assert j["requests"]["bytes_read"] == after["bytes_read"] - before["bytes_read"]
    without = flashwright.replay(served.uri, "uniform:write=0.5", requests=200, depth=2)
    skipped: Any = without.json["left_out"]
    assert skipped["writes"] > 50
    assert served.stats()["requests"]["write"] == after["write"], "nothing without consent"


def test_a_trace_behind_a_scheduler(served: ServedDrive, spc: Path) -> None:
    found = flashwright.replay(
        served.uri,
        workloads.trace(str(spc)),
        depth=16,
        addresses="wrap",
        scheduler="deadline",
        destroys_data=True,
    )
    j: Any = found.json
    [layer] = j["host_layers"]
    assert layer["requests"] == j["measured"]["requests"] == 3000
    assert served.stats()["requests"]["write"] == layer["writes"]["requests"]


def test_times_are_those_of_the_drive(served: ServedDrive) -> None:
    slow = Ssd.from_text(SMALL + "[timing]\nread = '4 ms'\n").precondition("sequential")
    with flashwright.serve(slow, pace="real") as drive, Target(drive.uri) as target:
        assert (target.kind, target.real_time, target.writes_allowed) == ("nbd", True, False)
        times = target.play("read", np.arange(10) * 4096, 4096)
        # Beside the model's 4 ms there are the transfer and both sockets.
        assert 4e6 < np.median(times.latency_ns) < 6e6
        model = drive.stats()["response_time_ns"]["read"]["mean"]
        assert 0 < np.median(times.latency_ns) - model < 2e6


def test_a_subsystem_of_nvme_is_a_target_with_or_without_its_name(served: ServedDrive) -> None:
    uri = served.uris[2]
    for each in (uri, uri[: uri.index("/nqn")]):
        with Target(each, destroys_data=True) as target:
            assert (target.kind, target.real_time, target.block_bytes) == ("nvme-tcp", True, 512)
            before = served.stats()["requests"]
            target.play("write", np.arange(16) * 8192, 8192)
            target.play("read", np.arange(4) * 8192, 2 * MIB)
            after = served.stats()["requests"]
        assert after["bytes_written"] - before["bytes_written"] == 16 * 8192
        assert after["bytes_read"] - before["bytes_read"] == 8 * MIB


def test_a_target_is_guarded(served: ServedDrive) -> None:
    with Target(served.uri) as target:
        with pytest.raises(TargetError, match="reads only"):
            target.play("write", [0], 4096)
        with pytest.raises(TargetError, match="reads only"):
            target.purge()
    with Target(served.uri, destroys_data=True, part=Range(MIB, MIB)) as target:
        target.fill()
        assert target.purge()
        with pytest.raises(TargetError, match="within its"):
            target.play("write", [MIB], 4096)
    assert served.stats()["requests"]["bytes_written"] == MIB
    assert served.stats()["requests"]["trim"] == 1
    with (
        flashwright.serve(Ssd.from_text(SMALL), read_only=True) as drive,
        pytest.raises(TargetError, match="the export is read-only"),
    ):
        Target(drive.uri, destroys_data=True)


def test_a_server_that_vanishes_is_one_line(command: Cli) -> None:
    with flashwright.serve(Ssd.from_text(SMALL)) as drive, Target(drive.uri) as target:
        drive.stop()
        with pytest.raises(DeviceError, match="the server has ended the connection") as failed:
            target.play("read", np.zeros(8, int), 4096)
        assert "\n" not in str(failed.value)
    # In the midst of requests.
    listener = socket.create_server(("127.0.0.1", 0))
    gone = threading.Thread(target=_leaves_after, args=(listener, 20))
    gone.start()
    uri = f"nbd://127.0.0.1:{listener.getsockname()[1]}/"
    said = command("replay", uri, "--workload", "uniform:write=0", "--depth", "4", "--json", "-")
    gone.join()
    errors = [line for line in said.err.splitlines() if line.startswith("error: ")]
    assert said.status == 1 and len(errors) == 1, said
    assert f"{uri}: the server has ended the connection" in errors[0]
    assert json.loads(said.out)["ended"] == "failed"


def _leaves_after(listener: socket.socket, requests: int) -> None:
    """Serve an export of 1 MiB with simple replies, and leave."""
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as stream:
        connection.sendall(struct.pack(">8sQH", b"NBDMAGIC", 0x49484156454F5054, 3))
        stream.read(4)
        for option in (8, 7):
            _, kind, length = struct.unpack(">QII", stream.read(16))
            assert kind == option
            stream.read(length)
            magic = 0x3E889045565A9
            if option == 8:
                connection.sendall(struct.pack(">QIII", magic, kind, 1 << 31 | 1, 0))
                continue
            info = struct.pack(">HQH", 0, MIB, 1)
            connection.sendall(struct.pack(">QIII", magic, kind, 3, len(info)) + info)
            connection.sendall(struct.pack(">QIII", magic, kind, 1, 0))
        for _ in range(requests):
            _, _, _, cookie, _, length = struct.unpack(">IHHQQI", stream.read(28))
            connection.sendall(struct.pack(">IIQ", 0x67446698, 0, cookie) + bytes(length))
    listener.close()


def test_one_experiment_over_a_socket(command: Cli, tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    large = Ssd.from_text(SMALL.replace("blocks-per-plane = 32", "blocks-per-plane = 336"))
    with flashwright.serve(large, pace="real", time_scale=0.001) as drive:
        options = ("--only", "mixing", "--quick", "--json", out, "--quiet")
        said = command("characterize", drive.uri, *options)
        assert said.status == 2 and "--destroys-data" in said.err
        assert drive.stats()["requests"]["write"] == 0
        said = command("characterize", drive.uri, *options, "--destroys-data")
        assert said.status == 0, said
        assert drive.stats()["requests"]["write"] > 1000
    found = json.loads(out.read_text())
    assert found["target"]["name"] == drive.uri and found["target"]["kind"] == "nbd"


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        ("nbds://localhost/", "found a scheme with TLS"),
        ("nbd+vsock://1/", 'found the scheme "nbd+vsock"'),
        ("nbd:///x", 'found the host ""'),
        ("nbd://user@host/", "found a user"),
        ("nbd://host:0/", 'found the port "0"'),
        ("nbd://host:x/", 'found the port "x"'),
        ("nbd://host/?socket=s", "expected no query"),
        ("nbd://host/%zz", "expected %XX"),
        ("nbd+unix:///", "expected ?socket=PATH"),
        ("nbd+unix:///?sock=s", "expected ?socket=PATH"),
        ("nbd+unix://host/?socket=s", 'found the host "host"'),
        ("nvme+tcp://host:0/", 'found the port "0"'),
        ("nvme+tcp://host/?nqn=x", "expected no query"),
        ("nvme+rdma://host/", "nvme+rdma"),
        ("nbd+unix:///?socket=/nowhere/s", "no such file or directory"),
        ("nbd://127.0.0.1:1/", "connection refused"),
    ],
)
def test_a_broken_address_is_one_line(command: Cli, uri: str, found: str) -> None:
    for arguments in (
        ("replay", uri, "--workload", "uniform:write=0"),
        ("probe", uri, "--read-only"),
        ("characterize", uri),
    ):
        said = command(*arguments)
        errors = [line for line in said.err.splitlines() if line.startswith("error: ")]
        assert (said.status, said.out, len(errors)) == (2, "", 1), (arguments, said)
        assert found in errors[0] and uri in errors[0]


def test_options_that_make_no_sense(command: Cli, served: ServedDrive) -> None:
    for options, found in (
        (["--busy-poll"], "--busy-poll: found with a target over the network"),
        (["--precondition", "random"], "--precondition: found with a device or file"),
        (["--set", "gc.victim=fifo"], "gc.victim: found with a device or file"),
    ):
        said = command("replay", served.uri, "--workload", "uniform:write=0", *options)
        assert said.status == 2 and found in said.err, said


def test_an_export_that_is_not_there(served: ServedDrive) -> None:
    with pytest.raises(TargetError, match='found no export "other"'):
        Target(f"{served.uris[1]}/other")
    with Target(f"{served.uris[1]}/text") as target:
        assert target.capacity_bytes == served.stats()["served"]["bytes"]
