"""Damaged talk at every socket: servers go on for others and grow by nothing; clients end in a line, and in time.

`make test` tries some, the same each time; `make fuzz` goes on for as long as ``FLASHWRIGHT_FUZZ_SECONDS`` says, or
until there were ``FLASHWRIGHT_FUZZ_INPUTS``.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import flashwright
from conftest import SMALL
from flashwright import Ssd
from flashwright.errors import FlashwrightError, InternalError
from flashwright.serving.control import ask
from flashwright.support.core import _core
from flashwright.support.printable import printable
from nbdclient import Nbd
from test_fuzz import SECONDS, assert_lines

ROUNDS = 60
# No input may take a client more of a processor. By the clock it may take what a busy machine takes: whether it ends
# at all is what is asked, and the server's end is the sign.
PROCESSOR_MAX_S = 2.0
HANG_S = 300.0
_OPTION, _OPTION_REPLY, _REQUEST, _CHUNK, _SIMPLE = (
    0x49484156454F5054,
    0x3E889045565A9,
    0x25609513,
    0x668E33EF,
    0x67446698,
)
NUMBERS = [
    0,
    1,
    3,
    5,
    7,
    8,
    512,
    4096,
    1 << 16,
    1 << 25,
    (1 << 25) + 512,
    (1 << 31) - 1,
    (1 << 32) - 1,
]


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One whose path is short enough for a socket."""
    return tmp_path_factory.mktemp("f")


def rounds(what: str, usual: int = ROUNDS) -> Iterator[random.Random]:
    """Draws: always the same ones, as many as are asked for, or new ones while there is time."""
    began, count = time.monotonic(), 0
    inputs = int(os.environ.get("FLASHWRIGHT_FUZZ_INPUTS", usual))
    while time.monotonic() < began + SECONDS if SECONDS else count < inputs:
        yield random.Random(random.getrandbits(60) if SECONDS else count)
        count += 1
    print(f"{what}: {count} inputs in {time.monotonic() - began:.0f} s")


def wounded(draw: random.Random, message: bytes) -> bytes:
    """A message with bytes changed, left out, put in, or cut off."""
    found = bytearray(message)
    for _ in range(draw.choice([0, 1, 1, 2, 5])):
        at = draw.randrange(len(found) + 1)
        kind = draw.randrange(4)
        if kind == 0 and at < len(found):
            found[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del found[at : at + draw.randrange(1, 9)]
        elif kind == 2:
            found[at:at] = draw.randbytes(draw.randrange(1, 9))
        else:
            del found[at:]
    return bytes(found)


# Servers


def option(draw: random.Random) -> bytes:
    kind, name = draw.choice([0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 99]), b"base:allocation"
    data = draw.choice(
        [
            b"",
            struct.pack(">IH", 0, 0),
            struct.pack(">IHH", 0, 1, 3),
            struct.pack(">III", 0, 1, len(name)) + name,
            struct.pack(">I", draw.choice(NUMBERS)),
        ]
    )
    length = len(data) if draw.random() < 0.9 else draw.choice(NUMBERS)
    return struct.pack(">QII", _OPTION, kind, length) + data


def request(draw: random.Random) -> bytes:
    kind, length = draw.randrange(10), draw.choice([0, 512, 4096, 8192, *NUMBERS[-5:]])
    data = bytes(length) if kind == 1 and length <= 8192 else b""
    offset = draw.choice([0, 512, 4096, 1, (1 << 64) - 512])
    return (
        struct.pack(
            ">IHHQQI",
            _REQUEST,
            draw.choice([0, 0, 1, 8, 0xFFFF]),
            kind,
            draw.getrandbits(64),
            offset,
            length,
        )
        + data
    )


def nbd_talk(draw: random.Random) -> bytes:
    go = struct.pack(">QIIIH", _OPTION, 7, 6, 0, 0)
    options = b"".join(option(draw) for _ in range(draw.randrange(3)))
    requests = b"".join(request(draw) for _ in range(draw.randrange(6)))
    return struct.pack(">I", draw.choice([3, 3, 3, 1, 0, 255])) + options + go + requests


def control_talk(draw: random.Random) -> bytes:
    name = draw.choice(["stats", "mark", "cut", "mount", "set", "snapshot", "trim-all", "x"])
    value: object = draw.choice(
        [1, None, "x", [], {}, ["gc.victim=fifo"], "\x1b", 1e308, "x" * 5000]
    )
    line = {"command": name, draw.choice(["text", "settings", "file", "command", "y"]): value}
    return b"".join(json.dumps(line).encode() + b"\n" for _ in range(draw.randrange(1, 4)))


def http_talk(draw: random.Random) -> bytes:
    verb, path = (
        draw.choice(["GET", "HEAD", "POST", ""]),
        draw.choice(["/", "/data", "/metrics", "/%00", "x" * 9000]),
    )
    return f"{verb} {path} HTTP/1.{draw.randrange(3)}\r\nA: {'b' * draw.choice([1, 20000])}\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("at", "talk"),
    [("nbd", nbd_talk), ("ctl", control_talk), ("metrics", http_talk), ("watch", http_talk)],
)
def test_servers(at: str, talk: Callable[[random.Random], bytes], folder: Path) -> None:
    ssd = Ssd.from_text(SMALL).with_(mount_by="scan")
    ctl = f"unix:{folder / 'c'}"
    with flashwright.serve(
        ssd, f"unix:{folder / 's'}", ctl=ctl, metrics="127.0.0.1:0", watch="127.0.0.1:0"
    ) as served:
        for draw in rounds(f"clients of {at}"):
            with contextlib.closing(_connected(served, at, folder)) as raw:
                raw.settimeout(5)
                with contextlib.suppress(OSError):
                    raw.sendall(wounded(draw, talk(draw)))
                    if draw.random() < 0.7:
                        raw.shutdown(socket.SHUT_WR)
                        while raw.recv(1 << 16):
                            pass
        # Whoever keeps to the protocol is served, by a drive that still has its power or gets it back.
        ask(ctl, "mount")
        with Nbd(served.uri) as client:
            client.write(0, bytes(4096))
            assert client.read(0, 4096) == bytes(4096)
        assert served.stats()["served"]["connections"]["open"] <= 1
    assert served.notes == [note for note in served.notes if "panicked" not in note]


def _connected(served: flashwright.ServedDrive, at: str, folder: Path) -> socket.socket:
    if at in ("nbd", "ctl"):
        raw = socket.socket(socket.AF_UNIX)
        raw.connect(str(folder / {"nbd": "s", "ctl": "c"}[at]))
        return raw
    host, _, port = served.addresses[at].removeprefix("http://").partition("/")[0].rpartition(":")
    return socket.create_connection((host, int(port)))


# Clients


def reply(draw: random.Random, cookie: int, length: int) -> bytes:
    kind = draw.randrange(6)
    if kind == 0:
        return struct.pack(">IIQ", _SIMPLE, draw.choice([0, 5, 99]), cookie) + bytes(length)
    if kind == 1:
        why = draw.choice([b"", b"no", b"\x1b[31m\xff\n", b"x" * 5000])
        return struct.pack(">IHHQIIH", _CHUNK, 1, 0x8001, cookie, 6 + len(why), 5, len(why)) + why
    if kind == 2:
        return struct.pack(">IHHQIQI", _CHUNK, 1, 2, cookie, 12, 0, length)
    return struct.pack(">IHHQIQ", _CHUNK, 1, 1, cookie, 8 + length, 0) + bytes(length)


def nbd_server(draw: random.Random, raw: socket.socket) -> None:
    """Greets, agrees and answers three reads, with a wound somewhere."""
    hurt = draw.randrange(7)

    def say(nth: int, message: bytes) -> None:
        raw.sendall(wounded(draw, message) if nth == hurt else message)

    size = draw.choice([64 << 20, 64 << 20, 0, 511, (1 << 63) + 512, (1 << 64) - 1])
    terms = struct.pack(">HQH", 0, size, draw.choice([0, 13, 0xFFFF]))
    blocks = struct.pack(">HIII", 3, *(draw.choice([1, 512, 4096, *NUMBERS]) for _ in range(3)))
    say(0, b"NBDMAGIC" + struct.pack(">QH", _OPTION, draw.choice([3, 3, 1, 0])))
    raw.recv(4)
    raw.recv(1 << 16)
    say(1, struct.pack(">QIII", _OPTION_REPLY, 8, draw.choice([1, 1, 0x80000001]), 0))
    raw.recv(1 << 16)
    for data in [terms] if draw.random() < 0.7 else [terms, blocks]:
        say(2, struct.pack(">QIII", _OPTION_REPLY, 7, 3, len(data)) + data)
    say(3, struct.pack(">QIII", _OPTION_REPLY, 7, 1, 0))
    for nth in range(4, 7):
        asked = raw.recv(28)
        if len(asked) < 28:
            return
        cookie, _, length = struct.unpack(">QQI", asked[8:])
        say(nth, reply(draw, cookie, min(length, 1 << 16)))


def control_server(draw: random.Random, raw: socket.socket) -> None:
    raw.recv(1 << 16)
    answer = draw.choice(
        [{"result": 1}, {"error": "\x1b[31m"}, {"error": None}, [], {}, 5, {"result": [[[]]] * 9}]
    )
    raw.sendall(wounded(draw, json.dumps(answer).encode() + b"\n" * draw.randrange(2)))


@contextlib.contextmanager
def in_time() -> Iterator[None]:
    """Tells of an input that took too long."""
    began, used = time.monotonic(), time.process_time()
    yield
    used = time.process_time() - used
    assert used < PROCESSOR_MAX_S, f"{used:.1f} s of a processor"
    assert time.monotonic() - began < HANG_S, "a hang"


@contextlib.contextmanager
def hostile_server(
    path: Path, serve: Callable[[random.Random, socket.socket], None], draw: random.Random
) -> Iterator[None]:
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def run() -> None:
            with contextlib.suppress(OSError, struct.error):
                raw, _ = listener.accept()
                with raw:
                    # Whoever waits for more of a wounded message waits until this one goes.
                    raw.settimeout(0.05)
                    serve(draw, raw)

        thread = threading.Thread(target=run)
        thread.start()
        yield
        # Nobody may have come.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as last:
            last.connect(str(path))
        thread.join()


def read_some(uri: str) -> None:
    settings = {"remote": {"uri": uri, "destroys_data": False, "queue_depth": 2}}
    target = _core.Target(json.dumps(settings), 1)
    import numpy as np

    kinds, first = np.zeros(3, np.uint8), np.zeros(3, np.uint64)
    target.play(kinds, first, np.full(3, 128, np.uint32), 1, 0.5)


@pytest.mark.parametrize("spoken", ["nbd", "ctl"])
def test_clients(spoken: str, folder: Path) -> None:
    path = folder / "s"
    for draw in rounds(f"servers of {spoken}"):
        serve = nbd_server if spoken == "nbd" else control_server
        with in_time(), hostile_server(path, serve, draw):
            try:
                if spoken == "nbd":
                    read_some(f"nbd+unix:///?socket={path}")
                else:
                    ask(f"unix:{path}", "stats", seconds=5)
            except InternalError as error:
                raise AssertionError(str(error)) from error
            except FlashwrightError as error:
                # The command line escapes what others say; the error has it as it was said.
                assert_lines(type(error)(printable(str(error)), ""))


def test_what_a_server_says_is_words_of_one_line(folder: Path) -> None:
    """Found after 25,000 draws: a tab that a wound had made."""

    def ask_again(draw: random.Random, raw: socket.socket) -> None:
        raw.recv(1 << 16)
        raw.sendall(json.dumps({"error": "a\tb\u00a0c\x0bd"}).encode() + b"\n")

    with (
        hostile_server(folder / "s", ask_again, random.Random(1)),
        pytest.raises(FlashwrightError) as raised,
    ):
        ask(f"unix:{folder / 's'}", "stats")
    assert str(raised.value) == "a b c d"


class DamagingRelay:
    """Passes on what is said to a server, and hurts something of what that answers; its port."""

    def __init__(self, to: tuple[str, int], draw: random.Random) -> None:
        self.to, self.draw, self.hurt, self.answers = to, draw, draw.randrange(20), 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.sockets = [self.listener]
        self.threads = [threading.Thread(target=self._accept)]
        self.threads[0].start()
        self.port: int = self.listener.getsockname()[1]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, server = self.listener.accept()[0], socket.create_connection(self.to)
                for each in (client, server):
                    self.sockets.append(each)
                    # Whoever waits for more of a wounded message waits until this one goes.
                    each.settimeout(0.3)
                for one, other in ((client, server), (server, client)):
                    thread = threading.Thread(
                        target=self._pass_on, args=(one, other, one is server)
                    )
                    self.threads.append(thread)
                    thread.start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:
        with contextlib.suppress(OSError):
            while part := source.recv(1 << 16):
                self.answers += is_answer
                is_hurt = is_answer and self.answers == self.hurt
                sink.sendall(wounded(self.draw, part) if is_hurt else part)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()
        for each in self.sockets:
            each.close()


def test_clients_of_nvme() -> None:
    with flashwright.serve(Ssd.from_text(SMALL), nvme_tcp="127.0.0.1:0") as served:
        address, _, name = served.uris[-1].removeprefix("nvme+tcp://").partition("/")
        host, _, port = address.rpartition(":")
        for draw in rounds("servers of nvme", 15):
            relay = DamagingRelay((host, int(port)), draw)
            try:
                with in_time():
                    read_some(f"nvme+tcp://127.0.0.1:{relay.port}/{name}")
            except InternalError as error:
                raise AssertionError(str(error)) from error
            except FlashwrightError as error:
                assert_lines(type(error)(printable(str(error)), ""))
            finally:
                relay.end()
