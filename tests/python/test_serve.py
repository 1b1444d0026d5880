"""Served drives, talked to by a client of our own."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import flashwright
import nbdclient as nbd
from conftest import SMALL, Cli
from flashwright import Ssd
from flashwright.errors import ServeError
from flashwright.serving.control import ask
from nbdclient import Nbd, NbdError

STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.fixture
def socket_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path that is short enough for a socket."""
    return tmp_path_factory.mktemp("s") / "s"


def drive(text: str = "") -> Ssd:
    return Ssd.from_text(SMALL + text)


def load(uri: str, requests: int, seed: int = 1) -> None:
    """Random reads, writes, trims and flushes, some of them in batches."""
    draw = random.Random(seed)
    with Nbd(uri) as client:
        for _ in range(requests // 8):
            for _ in range(8):
                kind = draw.choices(
                    [nbd.READ, nbd.WRITE, nbd.TRIM, nbd.FLUSH, nbd.WRITE_ZEROES], [4, 8, 1, 1, 1]
                )[0]
                length = 0 if kind == nbd.FLUSH else draw.choice([512, 4096, 12288])
                offset = draw.randrange(0, 1000) * 4096 if length else 0
                data = draw.randbytes(length) if kind == nbd.WRITE else b""
                flags = nbd.FUA if kind == nbd.WRITE and draw.random() < 0.1 else 0
                client.send(kind, offset, length, data, flags)
            for _ in range(8):
                client.reply()


def test_a_drive_keeps_what_it_is_given() -> None:
    with flashwright.serve(drive()) as served, Nbd(served.uri) as client:
        assert served.uri.startswith("nbd://127.0.0.1:")
        client.write(8192, b"x" * 4096, nbd.FUA)
        assert client.read(4096, 12288) == bytes(4096) + b"x" * 4096 + bytes(4096)
        assert client.mapped(0, 16384) == [(8192, 3), (4096, 0), (4096, 3)]
        with Nbd(served.uri, name="") as other:
            assert other.read(8192, 512) == b"x" * 512
        with pytest.raises(NbdError) as failed:
            client.write(client.size, bytes(512))
        assert failed.value.errno == nbd.ENOSPC
        assert served.stats()["host"]["pages_written"] == 1
    assert served.result is not None
    assert served.result.json["requests"]["write"] == 1
    assert served.stats()["served"]["connections"]["total"] == 2, "the last figures stay"
    assert served.stop() is served.result
    with pytest.raises(ConnectionError):
        Nbd(served.uri)


def test_several_addresses_and_a_socket_that_goes(socket_path: Path) -> None:
    with flashwright.serve(drive(), [f"unix:{socket_path}", "tcp:127.0.0.1:0"]) as served:
        with Nbd(served.uris[0]) as client:
            client.write(0, b"1" * 512)
        with Nbd(served.uris[1]) as client:
            assert client.read(0, 512) == b"1" * 512
        with pytest.raises(ServeError, match="where another server listens"):
            flashwright.serve(drive(), f"unix:{socket_path}")
    assert not socket_path.exists()


@pytest.mark.parametrize("pace", ["none", "real"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "[gc]\nschedule = 'background'\n[gc.background]\nstart-blocks = 3\nstop-blocks = 4\n",
        "[controller]\nwrite-buffer.size = '64 KiB'\nread-overhead = '5 us'\n",
        "[timing]\nmodel = 'serial'\n",
        "[timing]\nmodel = 'none'\n",
        "[timing]\ndie-order = 'by-class'\n",
    ],
    ids=["plain", "background", "controller", "serial", "untimed", "chips"],
)
def test_a_recording_gives_the_same_result(text: str, pace: Any, tmp_path: Path) -> None:
    trace = tmp_path / "served.fwt"
    ssd = drive(text).precondition("sequential")
    with flashwright.serve(
        ssd, pace=pace, time_scale=0.02 if pace == "real" else 1.0, record=trace
    ) as served:
        load(served.uri, 2000)
    assert served.result is not None
    figures = served.result.json
    assert (figures["flash"]["erases"]["total"] or 0) > 10
    played = ssd.play(flashwright.workloads.trace(str(trace)))
    assert played.json["digest"] == figures["digest"]
    assert played.json["requests"] == figures["requests"]


def test_a_paced_drive_takes_the_time_of_its_model() -> None:
    slow = drive("[timing]\nread = '4 ms'\n").precondition("sequential")
    with flashwright.serve(slow, pace="real") as served, Nbd(served.uri) as client:
        begun = time.monotonic()
        for page in range(10):
            client.read(page * 4096, 4096)
        took = time.monotonic() - begun
        assert 0.04 <= took < 0.4
        client.socket.settimeout(60)
    found = served.stats()
    assert found["response_time_ns"]["read"]["mean"] == pytest.approx(4e6, rel=0.05)
    assert found["served"]["lateness_ns"]["count"] == 10
    assert found["served"]["pace"] == {"real": {"time_scale": 1.0}}


def test_a_host_that_cannot_keep_up_says_so() -> None:
    # Reads of pages that hold no data take no time in the model, and a MiB takes some in the host.
    with flashwright.serve(drive(), pace="real", time_scale=1.0) as served:
        stop = threading.Event()

        def flood() -> None:
            with Nbd(served.uri) as client:
                while not stop.is_set():
                    for _ in range(300):
                        client.send(nbd.READ, 0, 1 << 20)
                    for _ in range(300):
                        client.reply()

        flooding = threading.Thread(target=flood)
        flooding.start()
        until = time.monotonic() + 10
        while not any("does not keep up" in note for note in served.notes):
            assert time.monotonic() < until, served.stats()["served"]
            served.wait(0.2)
        stop.set()
        flooding.join()
        assert served.stats()["served"]["keeps_up"] is False


def test_control(socket_path: Path) -> None:
    address = f"unix:{socket_path}"
    with flashwright.serve(drive(), ctl=address) as served:
        with Nbd(served.uri) as client:
            client.write(0, b"x" * 8192)
            assert ask(address, "stats")["flash"]["programs"]["host"] == 2
            assert ask(address, "trim-all") == {"requests": 1}
            assert client.mapped(0, 8192) == [(8192, 3)]
        with pytest.raises(
            ServeError, match="expected one of stats, trim-all, mark, stop, cut, mount, set"
        ):
            ask(address, "reboot")
        # Two commands in one packet, and one that is no JSON.
        with socket.socket(socket.AF_UNIX) as raw:
            raw.connect(str(socket_path))
            raw.sendall(b'{"command": "stats"}\nrest\n')
            lines = raw.makefile("rb")
            assert "result" in json.loads(lines.readline())
            assert "expected a line such as" in json.loads(lines.readline())["error"]
        assert served.wait(0) is False
        assert ask(address, "stop") == "stopping"
        assert served.wait(5) is True
    with pytest.raises(ServeError, match="no such file"):
        ask(address, "stats")


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def test_metrics_and_the_page() -> None:
    with flashwright.serve(drive(), metrics="127.0.0.1:0", watch="127.0.0.1:0") as served:
        with Nbd(served.uri) as client:
            client.write(0, b"x" * 8192)
        lines = fetched(served.addresses["metrics"]).splitlines()
        assert 'flashwright_requests_total{kind="write"} 1' in lines
        assert 'flashwright_flash_pages_programmed_total{cause="host"} 2' in lines
        assert "flashwright_write_amplification 1" in lines
        assert "flashwright_write_amplification_bytes 1" in lines
        assert "flashwright_settled 0" in lines
        named = {line.split()[2] for line in lines if line.startswith("# TYPE")}
        assert {line.split("{")[0].split()[0] for line in lines if line[0] != "#"} == named
        page = fetched(served.addresses["watch"])
        assert "<script>" in page and "http" not in page.replace("http-equiv", "")
        until = time.monotonic() + 10
        while not (data := json.loads(fetched(served.addresses["watch"] + "data")))["samples"]:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert data["stats"]["requests"]["write"] == 1
        assert sum(sample["pages_written"] for sample in data["samples"]) == 2
        assert len(data["blocks"]["valid"]) == len(data["blocks"]["erases"]) == 128
        with pytest.raises(urllib.error.HTTPError, match="404"):
            fetched(served.addresses["watch"] + "other")


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ([], "--nbd: found none, expected an address"),
        (["--nbd", "x"], '--nbd: found "x", expected unix:PATH or tcp:ADDRESS:PORT'),
        (
            ["--nbd", "tcp:0.0.0.0:0"],
            "--nbd: found tcp:0.0.0.0:0, where other machines can reach 0.0.0.0",
        ),
        (["--nvme-tcp", "x"], '--nvme-tcp: found "x", expected ADDRESS:PORT'),
        (
            ["--nvme-tcp", "0.0.0.0:0"],
            "--nvme-tcp: found tcp:0.0.0.0:0, where other machines can reach 0.0.0.0",
        ),
        (["--nbd", "unix:/nowhere/s"], "--nbd: found unix:/nowhere/s: no such file or directory"),
        (
            ["--nbd", "tcp:127.0.0.1:0", "--pace", "fast"],
            "--pace: found 'fast', expected none or real",
        ),
        (["--nbd", "tcp:127.0.0.1:0", "--time-scale", "2"], "--time-scale: found with pace none"),
        (
            ["--nbd", "tcp:127.0.0.1:0", "--pace", "real", "--time-scale", "0"],
            "--time-scale: found 0",
        ),
        (["--nbd", "tcp:127.0.0.1:0", "--ctl", "tcp:127.0.0.1:0"], "--ctl: found"),
        (["--nbd", "tcp:127.0.0.1:0", "--watch", "here"], "--watch: found"),
        (
            ["--nbd", "tcp:127.0.0.1:0", "--precondition", "workload"],
            "--precondition: found workload",
        ),
        (
            ["--nbd", "tcp:127.0.0.1:0", "--set", "host.scheduler=deadline"],
            "only a device that exists is served behind schedulers",
        ),
        (["--nbd", "tcp:127.0.0.1:0", "--record", "/nowhere/a.fwt"], "/nowhere"),
    ],
)
def test_bad_input_is_one_line(command: Cli, small: str, options: list[str], found: str) -> None:
    said = command("serve", small, *options)
    errors = [line for line in said.err.splitlines() if line.startswith("error: ")]
    assert (said.status, said.out, len(errors)) == (2, "", 1), said
    assert found in errors[0]


def test_the_hint_names_what_the_caller_can_give(command: Cli, small: str) -> None:
    with pytest.raises(ServeError) as refused:
        flashwright.serve(drive(), "tcp:0.0.0.0:0")
    assert refused.value.hint.startswith("listen_anywhere=True allows it")
    said = command("serve", small, "--nbd", "tcp:0.0.0.0:0")
    assert "hint: --listen-anywhere allows it" in said.err


def started(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "flashwright", "serve", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, "stop"], ids=str)
def test_the_command_ends_in_order(how: Any, small: str, socket_path: Path, command: Cli) -> None:
    control = socket_path.with_name("c")
    process = started(small, "--nbd", f"unix:{socket_path}", "--ctl", f"unix:{control}")
    try:
        assert process.stderr is not None
        uri = process.stderr.readline().split()[-1]
        with Nbd(uri) as client:
            client.write(0, b"x" * 4096)
            if how == "stop":
                said = command("ctl", f"unix:{control}", "stop")
                assert (said.status, json.loads(said.out)) == (0, "stopping")
            else:
                os.kill(process.pid, how)
            with pytest.raises(EOFError):
                client.reply()
            client.socket.close()
            raise _LetGoError
    except _LetGoError:
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == (0 if how == "stop" else STATUS[how]), err
    assert "write amplification  1.000" in out and "connections" in out
    assert not socket_path.exists() and not control.exists()


class _LetGoError(Exception):
    """The client needs no goodbye: the server has ended the connection."""


def test_json_has_the_server_too(small: str, socket_path: Path) -> None:
    process = started(small, "--nbd", f"unix:{socket_path}", "--json", "-", "--pace", "real")
    try:
        assert process.stderr is not None
        load(process.stderr.readline().split()[-1], 64)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    found = json.loads(out)
    assert found["served"]["lateness_ns"]["count"] > 0 and found["digest"]
