"""``flashwright serve --run``: the command finds the drive, its end is the server's, and nothing is left of either."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

FLASHWRIGHT = [sys.executable, "-m", "flashwright"]
CTL = "flashwright ctl"


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for temporary files, whose path is short enough for sockets."""
    return tmp_path_factory.mktemp("r")


def started(folder: Path, drive: str, run: str, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*FLASHWRIGHT, "serve", drive, "--quiet", "--run", run, *options],
        env=os.environ | {"TMPDIR": str(folder)},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def outcome(folder: Path, drive: str, run: str, *options: str) -> tuple[int, str, str]:
    """Status, standard output and standard error; sockets are gone."""
    process = started(folder, drive, run, *options)
    out, err = process.communicate(timeout=60)
    assert [path.name for path in folder.iterdir() if path.name.startswith("flashwright-")] == []
    return process.returncode, out, err


def is_there(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


def test_the_command_finds_the_drive(folder: Path, small: str) -> None:
    run = f"echo $FLASHWRIGHT_URI; test $FLASHWRIGHT_NBD = $FLASHWRIGHT_URI && {CTL} $FLASHWRIGHT_CTL mark done"
    status, out, err = outcome(folder, small, run, "--record-data", "kept.fwr")
    assert (status, err) == (0, "")
    assert out.startswith("nbd+unix:///?socket=") and (folder / "kept.fwr").exists()


def test_addresses_of_ones_own(folder: Path, small: str) -> None:
    run = "echo $FLASHWRIGHT_NVME_TCP $FLASHWRIGHT_URI $FLASHWRIGHT_CTL ${FLASHWRIGHT_NBD-none}"
    options = ("--nvme-tcp", "127.0.0.1:0", "--ctl", "unix:own")
    status, out, _ = outcome(folder, small, run, *options)
    nvme, first, ctl, nbd = out.splitlines()[0].split()
    assert (status, ctl, nbd) == (0, "unix:own", "none")
    assert nvme == first and nvme.startswith("nvme+tcp://127.0.0.1:")


@pytest.mark.parametrize(
    ("run", "status"),
    [("exit 7", 7), ("no-such-command-at-all", 127), ("kill -9 $$", 137), ("true", 0)],
)
def test_the_status_is_that_of_the_command(run: str, status: int, folder: Path, small: str) -> None:
    assert outcome(folder, small, run)[0] == status


def test_what_the_command_left_running_is_ended(folder: Path, small: str) -> None:
    status, out, _ = outcome(folder, small, "sleep 600 >/dev/null 2>&1 & echo $!")
    assert status == 0
    until = time.monotonic() + 10
    while is_there(int(out.splitlines()[0])) and time.monotonic() < until:
        time.sleep(0.02)
    assert not is_there(int(out.splitlines()[0]))


@pytest.mark.parametrize(
    ("drive", "options", "said"),
    [
        ("no-such-drive", (), "no-such-drive"),
        ("SMALL", ("--set", "gc.victim=none-such"), "gc.victim: found"),
        ("SMALL", ("--nbd", "unix:taken"), "taken"),
        ("SMALL", ("--image", "."), "error: "),
        ("SMALL", ("--nbd", "tcp:0.0.0.0:1"), "--listen-anywhere"),
    ],
)
def test_a_drive_that_does_not_start_starts_no_command(
    drive: str, options: tuple[str, ...], said: str, folder: Path, small: str
) -> None:
    (folder / "taken").write_text("a file of somebody's")
    drive = drive.replace("SMALL", small)
    status, out, err = outcome(folder, drive, "echo began", *options)
    assert status == 2 and "began" not in out
    assert err.startswith("error: ") and said in err


def test_a_drive_that_is_stopped_ends_the_command(folder: Path, small: str) -> None:
    run = f"trap 'echo asked; exit' TERM; {CTL} $FLASHWRIGHT_CTL stop; sleep 600 & wait"
    status, out, err = outcome(folder, small, run)
    assert status == 125 and "asked" in out
    assert "note: --run: the command is ended: the drive is no longer served" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_both(number: signal.Signals, folder: Path, small: str) -> None:
    process = started(folder, small, "echo $$ > began.part; mv began.part began; exec sleep 600")
    began = folder / "began"
    until = time.monotonic() + 60
    while not began.exists() and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "note: --run: the command is ended: interrupted" in err
    assert not is_there(int(began.read_text()))


def test_a_command_that_heeds_no_signal_is_killed(folder: Path, small: str) -> None:
    run = f"trap '' TERM; {CTL} $FLASHWRIGHT_CTL stop; while :; do sleep 0.1; done"
    began = time.monotonic()
    assert outcome(folder, small, run)[0] == 125
    assert time.monotonic() - began < 55


def test_a_lost_recording_outweighs_the_command(folder: Path, small: str) -> None:
    record = folder / "gone" / "served.fwt"
    record.parent.mkdir()
    write = (
        f"import os, sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from nbdclient import Nbd; "
        "Nbd(os.environ['FLASHWRIGHT_URI']).write(0, bytes(512))"
    )
    run = f'{sys.executable} -c "{write}" && rm -r {record.parent}'
    status, _, err = outcome(folder, small, run, "--record", str(record))
    assert status == 2 and str(record) in err
