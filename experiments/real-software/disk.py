"""A file system on a served drive, by way of FUSE and a loop device; needs root, and no NBD in the kernel."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

SECONDS = 120
# Nothing is trimmed, and nothing left for later.
MAKES = {
    "ext4": ["-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["-q", "-f", "-K"],
}
os.environ["PATH"] += ":/usr/sbin:/sbin"
CHECKS = {"ext4": ["e2fsck", "-f", "-n"], "xfs": ["xfs_repair", "-n"]}


def sh(*command: object, check: bool = True, within: float = SECONDS) -> str:
    """Run a program; what it prints."""
    done = subprocess.run(
        [str(each) for each in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=within,
    )
    if check and done.returncode != 0:
        raise RuntimeError(
            f"{' '.join(map(str, command))}: status {done.returncode}: {done.stdout}"
        )
    return done.stdout


@contextlib.contextmanager
def loop(socket: Path) -> Iterator[str]:
    """The export behind a Unix socket as a loop device."""
    with tempfile.TemporaryDirectory(prefix="flashwright-fuse-") as folder:
        file = Path(folder) / "disk"
        fuse = subprocess.Popen(
            ["nbdfuse", str(file), "--unix", str(socket)], stdin=subprocess.DEVNULL
        )
        try:
            until = time.monotonic() + SECONDS
            while not (file.exists() and file.stat().st_size):
                if fuse.poll() is not None or time.monotonic() > until:
                    raise RuntimeError("nbdfuse did not begin")
                time.sleep(0.02)
            device = sh("losetup", "--find", "--show", file).strip()
            try:
                yield device
            finally:
                sh("losetup", "--detach", device)
        finally:
            sh("fusermount3", "-u", "-z", folder, check=False)
            fuse.terminate()
            fuse.wait(SECONDS)


@contextlib.contextmanager
def mounted(device: str, folder: Path, kind: str, *, discard: bool = False) -> Iterator[Path]:
    """A new file system on a device; `discard` first trims it, as the tools do by default. It must end clean."""
    if discard:
        sh("blkdiscard", device)
    sh(f"mkfs.{kind}", *MAKES[kind], device)
    folder.mkdir(parents=True, exist_ok=True)
    sh("mount", "-t", kind, device, folder)
    try:
        yield folder
    finally:
        for _ in range(20):
            said = sh("umount", folder, check=False)
            if not folder.is_mount():
                break
            time.sleep(0.1)
        else:
            raise RuntimeError(said)
    sh(*CHECKS[kind], device)
