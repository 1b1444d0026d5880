"""Every drive that comes with Flashwright, under every command that takes one: an answer, or one clear line.

Drives and commands are looked up, so a new one is tested at once; a new command needs a line in ``SHORT``, which keeps
it short. The fast part plays every drive, made small, with little to do. The long part (``-m long``) plays the drives
as they are with three recordings, each within a minute.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli, Said
from flashwright.advice import short_runs
from flashwright.cli.root import COMMANDS, load
from flashwright.drive.description import devices
from flashwright.errors import ConfigError
from flashwright.simulation.ssd import Ssd
from flashwright.traces import workloads

DRIVES = devices()
TRACES = ("pgbench", "rocksdb", "sqlite")
assert set(TRACES) <= set(workloads.bundled_traces())
# Wall-clock time that people wait for an answer.
MINUTE_S = 60.0

# What keeps a command short; LOAD stands for what is played, FOLDER for a folder of the test's own.
SHORT: dict[str, tuple[str, ...]] = {
    "simulate": ("LOAD", "--requests", "1000"),
    "compare": ("LOAD", "--requests", "500", "--precondition", "empty", "--vary", "depth=1,8"),
    "serve": ("--nbd", "unix:FOLDER/drive.sock", "--run", "true"),
    "probe": ("--only", "flush", "--quick"),
    "characterize": ("--only", "depth-and-size", "--quick", "--time-limit", "1"),
    "replay": ("LOAD", "--requests", "500"),
    "advise space": (
        "LOAD", "--requests", "1000", "--precondition", "random", "--utilizations", "0.7", "--cycles", "100",
        "--target", "life>=1dwpd,5y", "--jobs", "1",
    ),
    "advise placement": (
        "--trace", "bundled:postmark", "--addresses", "scale", "--requests", "1000", "--precondition", "random",
        "--handles", "2", "--jobs", "1",
    ),
    "advise host": (),
    "lifetime formula": ("--cycles", "3000"),
    "lifetime simulate": ("LOAD", "--cycles", "3"),
    "lifetime forecast": ("LOAD", "--cycles", "30", "--time-limit", "3"),
}  # fmt: skip
# Under a command, options that go before what SHORT says where the drive is whole.
WHOLE: dict[str, tuple[str, ...]] = {
    "simulate": ("LOAD",),
    "compare": ("LOAD", "--vary", "depth=1,8"),
    "replay": ("LOAD", "--time-limit", "5"),
    "advise space": (
        "LOAD", "--utilizations", "0.8", "--cycles", "3000", "--target", "life>=1dwpd,5y",
    ),
    "advise placement": ("LOAD", "--addresses", "scale"),
    "lifetime forecast": ("LOAD", "--cycles", "3000", "--write-rate", "1dwpd,5y"),
}  # fmt: skip


def taking_a_drive() -> Iterator[tuple[str, bool]]:
    """Every command with an argument that may be a bundled drive, and whether it takes it behind ``sim:``."""

    def each(command: Any, name: str) -> Iterator[tuple[str, Any]]:
        listed = getattr(command, "commands", None)
        if not listed:
            yield name, command
            return
        for sub, under in listed.items():
            if not under.hidden:
                yield from each(under, f"{name} {sub}")

    for name in (name for listed in COMMANDS.values() for name in listed):
        for path, command in each(load(name), name):
            arguments = [p for p in command.params if p.param_type_name == "argument"]
            helps = [p.help or "" for p in arguments]
            if any("bundled drive" in text or "sim:" in text for text in helps):
                yield path, any("sim:" in text for text in helps)


TAKERS = dict(taking_a_drive())


def test_every_command_that_takes_a_drive_is_known_here() -> None:
    assert set(TAKERS) == set(SHORT)


@cache
def made_small(drive: str) -> str:
    """The description of a drive with as few blocks as it takes, up to half as many as it has."""
    ssd = Ssd.find(drive)
    blocks: int = ssd.config["geometry"]["blocks-per-plane"]
    count = 8
    while count < blocks / 2:
        smaller = {"geometry.blocks-per-plane": count, "capacity.logical": "0 B"}
        for utilization in (ssd.config["capacity"]["utilization"], 0.7):
            try:
                tried = ssd.with_({**smaller, "capacity.utilization": utilization})
                tried.check()
            except ConfigError:
                continue
            return tried.toml
        count *= 2
    return ssd.toml


def answered(said: Said, what: str) -> None:
    """An answer, or a clear line on what is wrong, and a hint or two."""
    faults = [line for line in said.err.splitlines() if line.startswith("error: ")]
    if said.status == 0:
        assert not faults, what
        return
    assert said.status in (1, 2), f"{what}: {said.status} {said.err}"
    assert len(faults) == 1 and len(faults[0]) > 20, f"{what}: {said.err}"


def run(
    command: Cli,
    path: str,
    drive: str,
    options: tuple[str, ...],
    load: tuple[str, ...],
    folder: Path,
) -> Said:
    """Run a command on a drive."""
    filled = [part.replace("FOLDER", str(folder)) for part in options]
    at = filled.index("LOAD") if "LOAD" in filled else None
    if at is not None:
        filled[at : at + 1] = load
    target = f"sim:{drive}" if TAKERS[path] else drive
    return command(*path.split(), target, *filled)


@pytest.fixture
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short runs of a model at every size and depth, with few requests each: what they find is not looked at."""
    monkeypatch.setattr(short_runs, "_REQUESTS", 256)
    monkeypatch.setattr(short_runs, "_TIMES_DEPTH", 1)
    monkeypatch.setattr(short_runs, "_BYTES_MOST", 1 << 20)


@pytest.mark.usefixtures("briefly")
@pytest.mark.parametrize("path", SHORT)
@pytest.mark.parametrize("drive", DRIVES, ids=lambda drive: Path(drive).stem)
def test_every_drive_small(command: Cli, drive: str, path: str, tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(made_small(drive))
    said = run(command, path, str(file), SHORT[path], ("--workload", "uniform:write=0.7"), tmp_path)
    answered(said, f"{path} {drive}")


@pytest.mark.long
@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("path", SHORT)
@pytest.mark.parametrize("drive", DRIVES, ids=lambda drive: Path(drive).stem)
def test_every_drive_whole(command: Cli, drive: str, path: str, trace: str, tmp_path: Path) -> None:
    options = WHOLE.get(path, SHORT[path])
    if "LOAD" not in options and trace != TRACES[0]:
        pytest.skip("not part of this repository: a trace for a command that plays none")
    began = time.monotonic()
    said = run(command, path, drive, options, ("--trace", f"bundled:{trace}"), tmp_path)
    answered(said, f"{path} {drive} {trace}")
    assert time.monotonic() - began < MINUTE_S, said.err
