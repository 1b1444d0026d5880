"""A server that is killed under load, and a load that knows what must be there afterwards."""

from __future__ import annotations

import contextlib
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import nbdclient as nbd
from nbdclient import Nbd

PAGE = 4096
_ZEROS = bytes(PAGE)


class KilledError(Exception):
    """The server is gone."""


class Server:
    """``flashwright serve`` on an image, in a process of its own."""

    def __init__(self, folder: Path, drive: str, settings: Sequence[str] = ()) -> None:
        self.folder, self.image = folder, folder / "drive.img"
        (folder / "drive.toml").write_text(drive)
        self.uri = f"nbd+unix:///?socket={folder / 's'}"
        self.settings = [f"--set={setting}" for setting in ("recovery.mount-by=scan", *settings)]
        self.process: subprocess.Popen[str] | None = None

    def begin(self, *options: str) -> subprocess.Popen[str]:
        """Start it, without waiting until it serves."""
        (self.folder / "s").unlink(missing_ok=True)
        (self.folder / "c").unlink(missing_ok=True)
        command = [sys.executable, "-m", "flashwright", "serve", str(self.folder / "drive.toml")]
        where = [f"--nbd=unix:{self.folder / 's'}", f"--ctl=unix:{self.folder / 'c'}"]
        where.append(f"--image={self.image}")
        self.process = subprocess.Popen(
            [*command, *where, *self.settings, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return self.process

    def start(self, *options: str) -> subprocess.Popen[str]:
        """Start it, and wait until it serves."""
        process = self.begin(*options)
        until = time.monotonic() + 30
        while not self._listens():
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < until, "it does not serve"
            time.sleep(0.005)
        return process

    def _listens(self) -> bool:
        try:
            nbd.connect(self.uri).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        with contextlib.suppress(ValueError):  # its output is closed already
            self.process.communicate()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class Load:
    """Random writes, trims and flushes of whole pages, each with a stamp of its own.

    For each page it keeps what the page may hold: the last content that a flush or a forced write made safe, and all
    that was sent afterwards.
    """

    def __init__(self, pages: int, seed: int) -> None:
        self.draw = random.Random(seed)
        self.allowed: list[list[bytes]] = [[_ZEROS] for _ in range(pages)]
        self.stamps = 0
        self.flushes = 0

    def _stamped(self, page: int) -> bytes:
        self.stamps += 1
        return f"{page}:{self.stamps};".encode().ljust(16, b".") * (PAGE // 16)

    def run(self, uri: str, seconds: float) -> None:
        """Send requests for a time, or until the server is gone."""
        try:
            with Nbd(uri) as client:
                until = time.monotonic() + seconds
                while time.monotonic() < until:
                    self.batch(client)
        except (OSError, EOFError):
            raise KilledError from None

    def go_on(self, client: Nbd) -> NoReturn:
        """Send requests until one fails."""
        while True:
            self.batch(client)

    def batch(self, client: Nbd) -> None:
        """Some requests at once, to pages that are all different; then perhaps a flush."""
        pages = self.draw.sample(range(len(self.allowed)), self.draw.choice([1, 8, 32]))
        sent: dict[int, tuple[int, bytes, bool]] = {}
        for page in pages:
            trims, forced = self.draw.random() < 0.1, self.draw.random() < 0.05
            data = _ZEROS if trims else self._stamped(page)
            self.allowed[page].append(data)
            kind, flags = nbd.TRIM if trims else nbd.WRITE, nbd.FUA if forced else 0
            cookie = client.send(kind, page * PAGE, PAGE, b"" if trims else data, flags)
            sent[cookie] = (page, data, forced)
        for _ in pages:
            page, data, forced = sent[client.reply()[0]]
            if forced:
                self.allowed[page] = [data]
        if self.draw.random() < 0.3:
            last = [allowed[-1] for allowed in self.allowed]
            client.ask(nbd.FLUSH)
            self.allowed = [[data] for data in last]
            self.flushes += 1

    def check(self, uri: str) -> int:
        """Read every page. What was found is what must be there from now on. Returns pages that were not the newest."""
        older = 0
        with Nbd(uri) as client:
            for page, allowed in enumerate(self.allowed):
                found = client.read(page * PAGE, PAGE)
                names = [data[:16] for data in allowed]
                assert found in allowed, (
                    f"page {page} holds {found[:16]!r}, expected one of {names}"
                )
                older += found != allowed[-1]
                self.allowed[page] = [found]
        return older


def said(process: subprocess.Popen[str], words: str, seconds: float = 10) -> str:
    """What a server says on standard error, up to a line with these words."""
    assert process.stderr is not None
    text, until = "", time.monotonic() + seconds
    while words not in text:
        left = until - time.monotonic()
        assert left > 0 and select.select([process.stderr], [], [], left)[0], (
            f"it said only {text!r}"
        )
        line = process.stderr.readline()
        assert line, f"it ended and said only {text!r}"
        text += line
    return text
