"""Ten thousand losses of power under SQLite, LMDB, RocksDB and files on ext4 and xfs.

    python experiments/real-software/crash.py [--cuts 10000] [--only NAME,NAME] [--recordings FOLDER] [--json FILE]

It needs root, FUSE and loop devices, nbdfuse, e2fsprogs, xfsprogs, and `pip install lmdb rocksdict`. Each application
runs once on a file system on a served drive, which is recorded with its data. Then the power fails at moments all over
the recording. Each time the file system's own tools replay its journal and must find nothing wrong afterwards, and the
application must find every transaction that it had called durable. Finally the same recordings are played on a drive
that ignores flushes: the same checks must notice that.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apps
from disk import loop, mounted, sh

import flashwright
from flashwright import CrashTest, Ssd
from flashwright.serving.crash import Crash

FORMATTED = "formatted"
# 44 MiB of 4 KiB pages on four dies, full before it is formatted, so that it cleans.
DRIVE = Ssd.named("default").with_(
    {
        "geometry.channels": 2,
        "geometry.dies-per-channel": 2,
        "geometry.planes-per-die": 1,
        "geometry.blocks-per-plane": 60,
        "geometry.pages-per-block": 64,
        "capacity.logical": "44 MiB",
        "timing.model": "parallel",
        "recovery.mount-by": "scan",
    }
)
# What else the recordings are played on. FAST merges while it mounts, so that cuts in mounts hit something.
DRIVES: dict[str, list[str]] = {
    "page": [],
    "page, LRU buffer": ["ram.manager=lru", "ram.size=1 MiB"],
    "DFTL": ["ftl.scheme=dftl"],
    "FAST": ["ftl.scheme=fast"],
}
LIES = "ignores flushes"
LIAR = ["recovery.ignores-flush=true", "ram.manager=lru", "ram.size=1 MiB"]


@dataclass(frozen=True)
class Case:
    """An application on a file system."""

    app: str
    kind: str
    transactions: int

    @property
    def name(self) -> str:
        """Both."""
        return f"{self.app} on {self.kind}"

    @property
    def file(self) -> str:
        """Name of its recording."""
        return f"{self.app}-{self.kind}.fwr"


CASES = (
    Case("files", "ext4", 400),
    Case("sqlite", "ext4", 400),
    Case("sqlite-wal", "ext4", 400),
    Case("lmdb", "ext4", 400),
    Case("rocksdb", "ext4", 400),
    Case("sqlite", "xfs", 150),
)


def record(case: Case, recordings: Path, seed: int) -> Path:
    """Run an application on a served drive."""
    found = recordings / case.file
    if found.exists():
        return found
    unfinished = found.with_suffix(".unfinished")
    with tempfile.TemporaryDirectory(prefix="flashwright-real-") as name:
        folder = Path(name)
        ctl = f"unix:{folder / 'ctl'}"
        drive = DRIVE.precondition("random") if case.kind == "ext4" else DRIVE.with_(XFS)
        with flashwright.serve(
            drive, f"unix:{folder / 'nbd'}", ctl=ctl, record_data=unfinished, seed=seed
        ) as served:
            with loop(folder / "nbd") as device, mounted(device, folder / "m", case.kind) as at:
                sh("sync", "-f", at)
                served.mark(FORMATTED)
                sh(sys.executable, apps.__file__, case.app, at, case.transactions, ctl, within=900)
            notes = served.stats()["served"]["recorded_with_data"], served.notes
        result = served.result
        assert result is not None
        amplification = result.json["write_amplification"]
        print(
            f"{case.name}: recorded {notes[0]:,} requests, write amplification {amplification:.2f}",
            flush=True,
        )
    unfinished.rename(found)
    return found


# mkfs.xfs takes nothing below 300 MB.
XFS: dict[str, object] = {"geometry.blocks-per-plane": 512, "capacity.logical": "320 MiB"}
_LOOPS = threading.Lock()


def check(case: Case) -> Any:
    """The check of an application on a file system."""

    def checked(crash: Crash) -> str | None:
        if FORMATTED not in crash.marks:
            return None
        promised = int(crash.marks[-1]) if crash.marks[-1] != FORMATTED else 0
        folder = crash.image.with_suffix(".files")
        folder.mkdir()
        try:
            (_ext4 if case.kind == "ext4" else _xfs)(crash.image, folder)
            apps.check(case.app, folder, promised)
        except (AssertionError, subprocess.SubprocessError, OSError, RuntimeError) as error:
            return f"{type(error).__name__}: {error}"
        except Exception as error:  # each application has its own
            return f"{case.app}: {type(error).__name__}: {error}"
        finally:
            sh("rm", "-rf", folder)
        return None

    return checked


def _ext4(image: Path, folder: Path) -> None:
    """Replay the journal as a mount does, demand a clean file system, and take its files out; no root needed."""
    done = subprocess.run(["e2fsck", "-p", image], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise AssertionError(f"e2fsck -p: status {done.returncode}: {done.stdout}")
    done = subprocess.run(["e2fsck", "-fn", image], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"e2fsck -fn: status {done.returncode}: {done.stdout}")
    sh("debugfs", "-R", f"rdump / {folder}", image)


def _xfs(image: Path, folder: Path) -> None:
    """Mount it, which replays the log, take its files out, and demand a clean file system."""
    at = folder / "m"
    at.mkdir()
    with _LOOPS:
        sh("mount", "-o", "loop,nouuid", image, at)
        try:
            sh("cp", "-a", f"{at}/.", folder)
        finally:
            sh("umount", at)
        done = subprocess.run(
            ["xfs_repair", "-n", image], capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        raise AssertionError(f"xfs_repair -n: status {done.returncode}: {done.stderr}")
    at.rmdir()


def test(
    case: Case,
    recording: Path,
    drive: str,
    settings: Sequence[str],
    cuts: int,
    seed: int,
    jobs: int,
) -> dict[str, Any]:
    """Cut it short; a row of the table."""
    played = CrashTest(recording, settings)

    def show_progress(done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{case.name}, {drive}: {done:,} of {total:,}", end="", file=sys.stderr)

    result = played.run(check(case), cuts, seed=seed, jobs=jobs, progress=show_progress)
    print(
        f"{case.name:20} {drive:18} {result.operations:8,} operations {result.cuts:7,} cuts, {result.cuts_in_mount:5,} "
        f"in mounts too, {len(result.failures):6,} failed  {result.elapsed_s:7.1f} s",
        flush=True,
    )
    for failure in result.failures[:2]:
        print(
            f"    operation {failure.crash.operation}: {' '.join(failure.why.split())[:200]}",
            flush=True,
        )
    row = result.json | {"recording": case.file}
    row["failures"] = len(result.failures)
    row["first_failures"] = result.json["failures"][:3]
    return {"case": case.name, "drive": drive, "settings": list(settings), **row}


def main() -> int:
    """Record, cut, and see that a lie is noticed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cuts", type=int, default=10_000, help="losses of power in all")
    parser.add_argument(
        "--lies",
        type=int,
        default=100,
        help="losses of power on a drive that ignores flushes, each case",
    )
    parser.add_argument("--only", help="names of cases, such as sqlite-ext4, with commas")
    parser.add_argument(
        "--recordings", type=Path, help="keep the recordings there, and use those that are there"
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    cases = [case for case in CASES if not asked.only or case.file[:-4] in asked.only.split(",")]
    rows = []
    with tempfile.TemporaryDirectory(prefix="flashwright-recordings-") as folder:
        recordings = asked.recordings or Path(folder)
        recordings.mkdir(parents=True, exist_ok=True)
        for case in cases:
            recording = record(case, recordings, asked.seed)
            each = -(-asked.cuts // (len(cases) * len(DRIVES)))
            drives = {drive: (settings, each) for drive, settings in DRIVES.items()} | {
                LIES: (LIAR, asked.lies)
            }
            for drive, (settings, cuts) in drives.items():
                rows.append(test(case, recording, drive, settings, cuts, asked.seed, asked.jobs))
                if asked.json:
                    asked.json.write_text(json.dumps(rows, indent=1) + "\n")
    honest = [row for row in rows if row["drive"] != LIES]
    lost = sum(row["failures"] for row in honest)
    unnoticed = [row["case"] for row in rows if row["drive"] == LIES and not row["failures"]]
    print(f"{sum(row['cuts'] for row in honest):,} cuts, {lost} failed checks")
    if unnoticed:
        print(f"flushes that are ignored went unnoticed: {', '.join(unnoticed)}")
    return 1 if lost or unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
