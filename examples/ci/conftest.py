"""A folder on an ext4 file system on the simulated drive; needs Linux, root, nbdfuse, FUSE and loop devices."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flashwright import ServedDrive

WAIT_S = 60


def run(*command: object) -> str:
    """Run a program; what it prints."""
    words = [str(word) for word in command]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def folder_on_drive(flashwright_drive: ServedDrive, tmp_path: Path) -> Iterator[Path]:
    """A folder whose files lie on ``flashwright_drive``."""
    (export := tmp_path / "export").mkdir()
    (folder := tmp_path / "folder").mkdir()
    disk = export / "disk"
    fuse = subprocess.Popen(["nbdfuse", str(disk), flashwright_drive.uri])
    try:
        until = time.monotonic() + WAIT_S
        while not disk.exists():
            assert fuse.poll() is None and time.monotonic() < until, "nbdfuse did not begin"
            time.sleep(0.02)
        device = run("losetup", "--find", "--show", disk)
        try:
            # Nothing is trimmed: the drive stays as full as it was. Nothing is left for later either.
            run("mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", device)
            run("mount", "-o", "noatime", device, folder)
            try:
                yield folder
            finally:
                run("umount", folder)
        finally:
            run("losetup", "--detach", device)
    finally:
        run("fusermount3", "-u", "-z", export)
        fuse.wait(WAIT_S)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the budget be written anew."""
    parser.addoption("--record-budget", action="store_true", help="Write budget.json anew.")
