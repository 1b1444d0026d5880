"""Repeats all that can be repeated with servers, and tells how their threads, descriptors, maps and memory grow.

Run as a program it goes on for as long as it is told: ``python tests/python/soaking.py SECONDS [FILE.json]``.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import flashwright
import nvmeclient as nvme
from conftest import SMALL
from flashwright import Ssd
from flashwright.errors import ServeError
from flashwright.serving.control import ask
from flashwright.support.core import _core
from nbdclient import Nbd

PAGE_BYTES = 4096
# Clients write to so much of the drive.
PAGES = 256
# Writes before anything is measured: twice the drive's flash, all pages of which then hold data.
FIRST_WRITES = 4096
# This share of the time is for what a server takes once: buffers, arenas, the drive's data, samples of 15 minutes.
BEFORE = 0.5
SAMPLES_MAX = 4000
# A slope needs two after the beginning, however slow the machine is.
SAMPLES_LEAST = 4


@dataclass
class Sample:
    """What a process has at a moment."""

    time_s: float
    actions: int
    threads: int
    descriptors: int
    maps: int
    kib: int

    @classmethod
    def of(cls, pid: int, time_s: float, actions: int) -> Sample:
        own = Path(f"/proc/{pid}")
        status = dict(
            line.split(":", 1) for line in (own / "status").read_text().splitlines() if ":" in line
        )
        return cls(
            time_s,
            actions,
            int(status["Threads"]),
            len(os.listdir(own / "fd")),
            (own / "maps").read_bytes().count(b"\n"),
            int(status["VmRSS"].split()[0]),
        )


@dataclass
class Watched:
    """A process, and what it had over time."""

    name: str
    pid: int
    samples: list[Sample] = field(default_factory=list)

    def slopes(self) -> dict[str, dict[str, float]]:
        """Of each figure: its least and largest value after the beginning, and its slopes by least squares."""
        late = self.samples[int(len(self.samples) * BEFORE) :]
        found = {}
        for what in ("threads", "descriptors", "maps", "kib"):
            values = np.array([getattr(each, what) for each in late], float)
            hours = np.array([each.time_s for each in late]) / 3600
            actions = np.array([each.actions for each in late]) / 1e6
            found[what] = {
                "least": float(values.min()),
                "most": float(values.max()),
                "per_hour": float(np.polyfit(hours, values, 1)[0]),
                "per_million_actions": float(np.polyfit(actions, values, 1)[0]),
            }
        return found


def fetch(address: str, path: str) -> bytes:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as page:
        page.sendall(f"GET /{path} HTTP/1.1\r\n\r\n".encode())
        parts = []
        while part := page.recv(1 << 16):
            parts.append(part)
    found = b"".join(parts)
    assert found.startswith(b"HTTP/1.1 200"), found[:80]
    return found


class Server:
    """``flashwright serve`` in a process of its own, and what can be done to it again and again."""

    def __init__(self, folder: Path, name: str, *more: str, drive: str = SMALL) -> None:
        (folder / "drive.toml").write_text(drive + '[recovery]\nmount-by = "scan"\n')
        self.folder, self.name = folder, name
        self.path = {what: str(folder / f"{name}.{what}") for what in ("nbd", "ctl", "vfio")}
        self.control = f"unix:{self.path['ctl']}"
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "flashwright", "serve", "drive.toml"),
                *("--nbd", f"unix:{self.path['nbd']}", "--nvme-tcp", "127.0.0.1:0"),
                *("--vfio-user", self.path["vfio"], "--ctl", self.control),
                *("--metrics", "127.0.0.1:0", "--watch", "127.0.0.1:0", *more),
            ],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        said = [self.process.stderr.readline() for _ in range(6)]
        self.uris = [line.split()[-1] for line in said if "serving" in line]
        named = dict(line.removeprefix("note: ").strip().split(": ", 1) for line in said[3:])
        self.pages = {
            what: named[what].removeprefix("http://").partition("/")[0]
            for what in ("metrics", "watch")
        }
        self.kept = socket.socket(socket.AF_UNIX)
        self.kept.connect(self.path["ctl"])
        self.lines = self.kept.makefile("rb")
        self.turn = 0
        with Nbd(self.uris[0]) as client:
            for _ in range(FIRST_WRITES):
                client.write(self.page() * PAGE_BYTES, os.urandom(PAGE_BYTES))

    def end(self) -> str:
        """Stop it; what it said of itself."""
        self.kept.close()
        self.lines.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            _, err = self.process.communicate(timeout=60)
        finally:
            self.process.kill()
        return err

    def page(self) -> int:
        self.turn += 1
        return self.turn * 97 % PAGES

    def nbd_connection(self) -> None:
        with Nbd(self.uris[0]) as client:
            at = self.page() * PAGE_BYTES
            data = struct.pack("<Q", self.turn) * (PAGE_BYTES // 8)
            client.write(at, data)
            assert client.read(at, PAGE_BYTES) == data

    def nvme_controller(self) -> None:
        with nvme.Queue(self.uris[1]) as admin, nvme.Queue(self.uris[1], admin) as queue:
            at = self.page() * (PAGE_BYTES // 512)
            data = struct.pack("<Q", ~self.turn & (1 << 64) - 1) * (PAGE_BYTES // 8)
            queue.write(at, data)
            assert queue.read(at, PAGE_BYTES // 512) == data
            admin.ask(nvme.IDENTIFY, 0, (1,), wanted=4096)
            admin.ask(nvme.GET_LOG, 0xFFFFFFFF, (2 | 127 << 16,), wanted=512)

    def machine(self) -> None:
        with socket.socket(socket.AF_UNIX) as stream:
            stream.connect(self.path["vfio"])
            body = struct.pack("<HH", 0, 0) + b"{}\0"
            stream.sendall(struct.pack("<HHIII", 7, 1, 16 + len(body), 0, 0) + body)
            assert stream.recv(1 << 12)

    def broken_client(self) -> None:
        with socket.socket(socket.AF_UNIX) as stream:
            stream.connect(self.path["nbd"])
            stream.sendall(b"\xff" * (self.turn % 64))

    def control_connection(self) -> None:
        ask(self.control, "stats")

    def control_line(self) -> None:
        self.kept.sendall(b'{"command": "stats"}\n')
        assert b"result" in self.lines.readline()

    def refused_line(self) -> None:
        with contextlib.suppress(ServeError):
            ask(self.control, "snapshot", file="/nowhere/a.img")

    def metrics(self) -> None:
        fetch(self.pages["metrics"], "metrics")

    def page_view(self) -> None:
        fetch(self.pages["watch"], "")
        fetch(self.pages["watch"], "data")

    def cut_and_mount(self) -> None:
        ask(self.control, "cut")
        ask(self.control, "mount")

    def change(self) -> None:
        ask(self.control, "set", settings=[f"gc.victim={('greedy', 'fifo')[self.turn % 2]}"])
        self.turn += 1

    def trim(self) -> None:
        ask(self.control, "trim-all")

    def mark(self) -> None:
        ask(self.control, "mark", text="done")

    def snapshot(self) -> None:
        image = self.folder / f"{self.name}.img"
        image.unlink(missing_ok=True)
        ask(self.control, "snapshot", file=str(image))


class Program:
    """This process: our own clients, and servers with recordings that begin and end in it."""

    def __init__(self, folder: Path, uri: str) -> None:
        self.folder, self.uri = folder, uri
        self.ssd = Ssd.from_text((folder / "drive.toml").read_text())

    def client(self) -> None:
        settings = {"remote": {"uri": self.uri, "destroys_data": False, "queue_depth": 2}}
        target = _core.Target(json.dumps(settings), 1)
        kinds, first = np.zeros(3, np.uint8), np.zeros(3, np.uint64)
        target.play(kinds, first, np.full(3, 8, np.uint32), 1, 5.0)
        target.close()

    def recorded_server(self) -> None:
        for kept in ("record", "record_data", "image"):
            where: dict[str, Any] = {kept: self.folder / kept}
            with (
                flashwright.serve(self.ssd, f"unix:{self.folder / 'own'}", **where) as served,
                Nbd(served.uri) as client,
            ):
                client.write(0, bytes(PAGE_BYTES))


Act = Callable[[], None]


def acts(plain: Server, paced: Server, own: Program) -> list[tuple[str, int, Act]]:
    """What is repeated: its name, how often in a round, and how."""
    common = [
        ("connection of NBD", 20, "nbd_connection"),
        ("controller of NVMe/TCP", 10, "nvme_controller"),
        ("machine of vfio-user", 5, "machine"),
        ("client that breaks the protocol", 10, "broken_client"),
        ("control connection", 20, "control_connection"),
        ("control line", 40, "control_line"),
        ("control line that is refused", 5, "refused_line"),
        ("metrics", 10, "metrics"),
        ("page view", 5, "page_view"),
        ("trim-all", 1, "trim"),
        ("snapshot", 2, "snapshot"),
    ]
    found = [
        (f"{name}, {how}", count, getattr(server, method))
        for how, server in (("unpaced", plain), ("paced", paced))
        for name, count, method in common
    ]
    return [
        *found,
        ("cut and mount, unpaced", 5, plain.cut_and_mount),
        ("set, unpaced", 5, plain.change),
        ("mark, paced", 10, paced.mark),
        ("own client of NBD", 5, own.client),
        ("three servers: trace, recording, image", 1, own.recorded_server),
    ]


def soak(folder: Path, seconds: float) -> dict[str, Any]:
    """Repeat for so many seconds; counts of each action, slopes of each process, and what the servers said."""
    plain = Server(folder, "plain", "--record", "plain.fwt")
    paced = Server(
        folder, "paced", *("--pace", "real", "--time-scale", "0.001", "--record-data", "paced.fwr")
    )
    own = Program(folder, plain.uris[0])
    done: Counter[str] = Counter()
    watched = [
        Watched("unpaced server", plain.process.pid),
        Watched("paced server", paced.process.pid),
        Watched("this program", os.getpid()),
    ]
    began = time.monotonic()
    every, next_sample = seconds / SAMPLES_MAX, 0.0
    said = []
    try:
        while (now := time.monotonic() - began) < seconds or len(
            watched[0].samples
        ) < SAMPLES_LEAST:
            if now >= next_sample:
                for each in watched:
                    each.samples.append(Sample.of(each.pid, now, done.total()))
                next_sample = now + every
            for name, count, act in acts(plain, paced, own):
                for _ in range(count):
                    act()
                done[name] += count
    finally:
        said = [server.end() for server in (plain, paced)]
    return {
        "seconds": time.monotonic() - began,
        "actions": dict(done),
        "processes": {each.name: each.slopes() for each in watched},
        "samples": {each.name: [vars(one) for one in each.samples] for each in watched},
        "said": said,
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="fw") as own_folder:
        result = soak(Path(own_folder), float(sys.argv[1]))
    for given in sys.argv[2:3]:
        Path(given).write_text(json.dumps(result))
    print(f"{sum(result['actions'].values()):,} actions in {result['seconds']:.0f} s")
    for action, times in result["actions"].items():
        print(f"  {times:>9,} {action}")
    for process, figures in result["processes"].items():
        print(process)
        for what, each in figures.items():
            print(
                f"  {what:<11} {each['least']:>9,.0f} to {each['most']:>9,.0f}, "
                f"{each['per_hour']:+.2f} an hour, {each['per_million_actions']:+.2f} a million actions"
            )
    print(*result["said"])
