"""What the tests of the command line share."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import needs
from flashwright import cli

# Whoever starts the tests in the background of a shell has Ctrl-C ignored, which every child would inherit.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Skips are judged everywhere, doctests of the package included."""
    if not config.pluginmanager.has_plugin("needs"):
        config.pluginmanager.register(needs, "needs")


@dataclass(frozen=True)
class Said:
    """What a command said and how it ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


Cli = Callable[..., Said]

# Small enough that thousands of requests fill it several times.
SMALL = """
about = "for tests"

[geometry]
channels = 2
dies-per-channel = 2
blocks-per-plane = 32
pages-per-block = 16

[capacity]
utilization = 0.8

# DFTL with this little room keeps one block of a plane open, and what tests expect of figures was worked out so.
[placement]
policy = "single"
allocation = "dynamic"
"""


@pytest.fixture
def small(tmp_path: Path) -> str:
    """A drive of 2,048 pages of flash, as a file."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return str(path)


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables as wide as they are, whatever terminal the tests run in."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str]) -> Cli:
    """Run the command line in this process."""

    def run(*arguments: object) -> Said:
        capfd.readouterr()
        status = cli.run([str(argument) for argument in arguments])
        said = capfd.readouterr()
        assert "Traceback" not in said.err
        return Said(status, said.out, said.err)

    return run


@pytest.fixture
def spc(tmp_path: Path) -> Path:
    """A trace of 3,000 requests on two devices, 10 us apart; all but one lie on the drive of `small`."""
    path = tmp_path / "requests.spc"
    lines = (
        f"{i % 2},{(3000 if i == 2997 else i * 7919 % 800) * 8},4096,{'r' if i % 3 == 0 else 'w'},{i * 1e-5:.6f}\n"
        for i in range(3000)
    )
    path.write_text("".join(lines))
    return path


def wait_for_work(process: subprocess.Popen[str], cpu_s: float = 2.0) -> None:
    """Wait until a program and its children have had so much processor time, so that it is at work on any machine."""
    ticks = os.sysconf("SC_CLK_TCK")
    ends = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < ends:
        spent, parents = {}, {}
        for entry in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = entry.read_text().rpartition(")")[2].split()
                pid = int(entry.parent.name)
                parents[pid], spent[pid] = int(fields[1]), int(fields[11]) + int(fields[12])
        family = {process.pid}
        while grown := {pid for pid, parent in parents.items() if parent in family} - family:
            family |= grown
        if sum(spent.get(pid, 0) for pid in family) >= cpu_s * ticks:
            return
        time.sleep(0.05)
