"""The same 2,000 points on cores, on a Dask cluster and through kills: one file in the end.

    python experiments/sweeps/run.py [--jobs 2] [--seed 1] [--only cores,dask,killed] [FILE.toml]

``cores`` is a plain sweep. ``dask`` starts a scheduler and four workers as processes of their own and kills one of them
on the way. ``killed`` kills the sweep three times at random with SIGKILL, and one of its processes in the last go. Each
has a folder of points of its own; the Parquet files must have the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from flashwright.sweeps.sweep import Sweep

GRID = Path(__file__).parent / "cleaning.toml"
WORKERS = 4


class Go:
    """A sweep as its own process."""

    def __init__(self, file: Path, folder: Path, *options: str) -> None:
        self.store, self.out = folder / "points", folder / "out.parquet"
        words = ["sweep", str(file), "--store", str(self.store), "--out", str(self.out), *options]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "flashwright", *words], stdout=subprocess.PIPE, text=True
        )

    @property
    def kept(self) -> int:
        """Points that are finished."""
        return sum(1 for _ in self.store.glob("??/*.json"))

    def until(self, count: int) -> bool:
        """Wait for so many points; false if it ended before."""
        while self.kept < count:
            if self.process.poll() is not None:
                return False
            time.sleep(0.1)
        return True

    def end(self) -> str:
        """Wait for its end; what it said last."""
        said, _ = self.process.communicate()
        assert self.process.returncode == 0, f"exit status {self.process.returncode}"
        lines = [line for line in said.splitlines() if "computed in" in line or "digest" in line]
        content = hashlib.sha256(self.out.read_bytes()).hexdigest()
        return "\n  ".join([*lines, f"file {content}"])


def cores(file: Path, folder: Path, jobs: int, chance: random.Random, points: int) -> str:
    """A plain sweep."""
    return Go(file, folder, "--jobs", str(jobs)).end()


def killed(file: Path, folder: Path, jobs: int, chance: random.Random, points: int) -> str:
    """Three kills of the sweep, one of a process."""
    options = ("--jobs", str(jobs))
    for at in sorted(chance.sample(range(points // 20, points * 9 // 10), 3)):
        go = Go(file, folder, *options)
        assert go.until(at), "it ended before it was killed"
        go.process.send_signal(signal.SIGKILL)
        go.process.communicate()
        print(f"  killed with {go.kept} points kept", flush=True)
    go = Go(file, folder, *options)
    before = go.kept
    go.until(before + (points - before) // 2)
    children = Path(f"/proc/{go.process.pid}/task/{go.process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
    print(f"  one process killed with {go.kept} points kept", flush=True)
    return go.end()


def dask(file: Path, folder: Path, jobs: int, chance: random.Random, points: int) -> str:
    """A scheduler and four workers, of which one is killed half-way."""
    address_file = folder / "scheduler.json"

    def start(what: str, *options: str) -> subprocess.Popen[bytes]:
        words = [
            sys.executable,
            "-m",
            "dask",
            what,
            "--scheduler-file",
            str(address_file),
            *options,
        ]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(
            words, cwd=folder, stdout=quiet, stderr=quiet, start_new_session=True
        )

    worker = ("--nthreads", "1", "--host", "127.0.0.1", "--no-nanny", "--no-dashboard")
    processes = [start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")]
    try:
        while not address_file.exists():
            time.sleep(0.1)
        processes += [start("worker", *worker) for _ in range(WORKERS)]
        go = Go(file, folder, "--dask", json.loads(address_file.read_text())["address"])
        assert go.until(points // 2)
        processes[-1].kill()
        print(f"  one of {WORKERS} workers killed with {go.kept} points kept", flush=True)
        return go.end()
    finally:
        for process in processes:
            process.kill()
            process.wait()


WAYS: dict[str, Callable[[Path, Path, int, random.Random, int], str]] = {
    "cores": cores,
    "dask": dask,
    "killed": killed,
}


def main() -> int:
    """Carry out the ways that are asked for, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=GRID)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(WAYS))
    chosen = parser.parse_args()
    points = len(Sweep.from_toml(chosen.file).cases)
    files = set()
    for name in chosen.only.split(","):
        with TemporaryDirectory() as folder:
            began = time.monotonic()
            print(f"{name}: {points} points", flush=True)
            chance = random.Random(chosen.seed)
            report = WAYS[name](chosen.file, Path(folder), chosen.jobs, chance, points)
            print(f"  {report}\n  {time.monotonic() - began:.1f} s in all", flush=True)
            files |= set(re.findall(r"^  file (.*)$", report, re.MULTILINE))
    print("the same file" if len(files) == 1 else f"{len(files)} different files")
    return int(len(files) != 1)


if __name__ == "__main__":
    sys.exit(main())
