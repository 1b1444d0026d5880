"""Commands that are killed at random moments, on a small file system that fills.

Each output is then the old file or the new one, never half of one and never gone, and the same command, given again,
names what was left over, removes it and does its work. `make test-long` kills 500 times; ``FLASHWRIGHT_KILLS`` sets
another number, and ``pytest -s`` shows what happened to each command.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import SMALL, Cli
from flashwright import CrashTest, tracefiles
from flashwright.errors import FlashwrightError
from flashwright.simulation.run import Run
from flashwright.support.sealed import open_sealed

KILLS = int(os.environ.get("FLASHWRIGHT_KILLS", "500"))
# Room for everything that a command writes, several times.
MIB = 16
OLD = b"what was there before\n"
PLAY = ("--workload", "uniform", "--precondition", "sequential", "--quiet")
WRITES = (
    "import os; from nbdclient import Nbd; c = Nbd(os.environ['FLASHWRIGHT_URI']); "
    "[c.write(4096 * n, bytes([n]) * 4096) for n in range(200)]"
)
RUN = f'{sys.executable} -c "{WRITES}"'
GRID = """
seeds = 3
drive = "small.toml"
workload = "uniform"
requests = 2000
"""
# Commands, and what they write. Those in folders need not be named.
COMMANDS: dict[str, tuple[list[str], list[str]]] = {
    "simulate": (
        [
            *("simulate", "small.toml", *PLAY, "--requests", "20000", "--json", "o.json"),
            *("--report", "o.html", "--requests-out", "o.csv", "--windows-out", "o.parquet"),
            *("--checkpoint", "o.saved", "--checkpoint-every", "0.001"),
        ],
        ["o.json", "o.html", "o.csv", "o.parquet", "o.saved"],
    ),
    # Without a checkpoint, rows go to the file during the run.
    "rows": (
        [*("simulate", "small.toml", *PLAY, "--requests", "20000", "--requests-out", "o.csv")],
        ["o.csv"],
    ),
    "compare": (
        [
            *("compare", "small.toml", *PLAY, "--requests", "3000", "--out", "o.csv"),
            *("--vary", "gc.victim=greedy,fifo", "--json", "o.json", "--report", "o.html"),
        ],
        ["o.json", "o.html", "o.csv"],
    ),
    "lifetime": (
        [
            *("lifetime", "simulate", "small.toml", "--set", "wear.pe-cycles-max=50", "--quiet"),
            *("--json", "o.json", "--report", "o.html", "--checkpoint", "o.saved"),
            *("--workload", "uniform"),
        ],
        ["o.json", "o.html", "o.saved"],
    ),
    "convert": (["trace", "convert", "bundled:pgbench", "o.fwt"], ["o.fwt"]),
    "merge": (["trace", "merge", "bundled:pgbench", "bundled:rocksdb", "-o", "o.fwt"], ["o.fwt"]),
    "fit": (["trace", "fit", "bundled:pgbench", "-o", "o.toml", "--quiet"], ["o.toml"]),
    "sweep": (
        [
            *("sweep", "grid.toml", "--jobs", "2", "--quiet", "--json", "o.json"),
            *("--out", "o.csv", "--summary", "s.csv"),
        ],
        ["o.json", "o.csv", "s.csv"],
    ),
    "probe": (
        [
            *("probe", "sim:ssd-a", "--only", "read-buffer", "--no-twin", "--quiet"),
            *("--state", "state", "--save", "o.toml", "--json", "o.json"),
        ],
        ["o.toml", "o.json"],
    ),
    "advise": (
        [
            *("advise", "host", "default", "--block-device", "/dev/sdz", "--quiet", "--force"),
            *("--write-to", "files", "--json", "o.json"),
        ],
        ["o.json"],
    ),
    "replay": (
        [
            *("replay", "sim:small.toml", "--workload", "uniform", "--requests", "2000"),
            *("--quiet", "--json", "o.json", "--report", "o.html"),
        ],
        ["o.json", "o.html"],
    ),
    "record": (
        [
            *("serve", "small.toml", "--set", "recovery.mount-by=scan", "--run", RUN, "--quiet"),
            *("--record", "o.fwt", "--record-data", "o.fwr", "--json", "o.json"),
        ],
        ["o.fwt", "o.fwr", "o.json"],
    ),
    "image": (
        [
            *("serve", "small.toml", "--set", "recovery.mount-by=scan", "--run", RUN, "--quiet"),
            *("--image", "o.img", "--json", "o.json"),
        ],
        ["o.json"],
    ),
}


@contextlib.contextmanager
def small_file_system(folder: Path) -> Iterator[bool]:
    """A file system of its own for a folder; whether there is one, which only root can have."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={MIB}m", "tmpfs", str(folder)]
    is_mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


def begin(arguments: list[str]) -> subprocess.Popen[bytes]:
    with Path("../err").open("wb") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "flashwright", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        )


def set_up(outputs: list[str]) -> None:
    """An empty folder but for what the commands read, and old files in the places of outputs."""
    for each in Path().iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()
    Path("small.toml").write_text(SMALL)
    Path("grid.toml").write_text(GRID)
    for name in outputs:
        Path(name).write_bytes(OLD)


def parts() -> list[Path]:
    return sorted(each for each in Path().rglob(".*") if each.is_file())


def is_whole(path: Path, good: bytes | None) -> bool:
    """Whether a file is all that a command writes, of which some contain times."""
    content = path.read_bytes()
    if content == good:
        return True
    match path.suffix:
        case ".csv":
            # Of runs there are times in it; its rows are known, unless it was interrupted.
            rows, known = (
                list(csv.reader((each or b"").decode().splitlines())) for each in (content, good)
            )
            is_even = len({len(row) for row in rows}) == 1
            return content.endswith(b"\n") and is_even and len(rows) == len(known or rows)
        case ".html":
            return content.rstrip().endswith(b"</html>")
        case ".json":
            return isinstance(json.loads(content), dict | list)
        case ".saved":
            return bool(Run.load(path).toml)
        case ".toml":
            return bool(tomllib.loads(content.decode()))
        case ".fwt":
            return bool(tracefiles.info(path)["requests"])
        case ".fwr":
            # The last part of one that is whole says so; a recording that is cut off is refused.
            return CrashTest(path).requests == 200
    return False


def state_of(path: Path, good: bytes | None) -> str:
    """Old or new, or what else."""
    if not path.exists():
        return "gone"
    if path.read_bytes() == OLD:
        return "old"
    try:
        return "new" if is_whole(path, good) else "half"
    except (FlashwrightError, ValueError):
        return "half"


def kill(process: subprocess.Popen[bytes], draw: random.Random, seconds: float) -> bool:
    """Kill at a moment: any, or soon after a part of a file is there. Whether it was still at work."""
    if draw.random() < 0.5:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(draw.uniform(0.2, 1.05) * seconds)
    else:
        while process.poll() is None and not parts():
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 0.03))
    was_at_work = process.poll() is None
    if draw.random() < 0.5:
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return was_at_work


def orphans_end(session: int) -> bool:
    """Whether the processes of a session end by themselves; those that do not are killed."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if not any(_session_of(each) == session for each in Path("/proc").glob("[0-9]*/stat")):
            return True
        time.sleep(0.02)
    os.killpg(session, signal.SIGKILL)
    return False


def _session_of(stat: Path) -> int | None:
    try:
        state, _, _, session, *_ = stat.read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state == "Z" else int(session)


# Those that take least.
QUICK = ["convert", "merge", "fit", "record"]


@pytest.mark.parametrize(
    ("names", "kills"),
    [(QUICK, 10), pytest.param(list(COMMANDS), KILLS, marks=pytest.mark.long)],
    ids=["quick", "all"],
)
def test_kills(
    names: list[str],
    kills: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Cli,
) -> None:
    draw = random.Random(39)
    folder = tmp_path / "small"
    folder.mkdir()
    known: dict[str, tuple[float, dict[str, bytes]]] = {}
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    wrong = []
    with small_file_system(folder) as fills:
        monkeypatch.chdir(folder)
        # The client of a served drive is a module of the tests.
        own = os.environ.get("PYTHONPATH", "")
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([own, str(Path(__file__).parent)]))
        for nth in range(kills):
            name = names[nth % len(names)]
            arguments, outputs = COMMANDS[name]
            count = counts[name]
            if name not in known:
                set_up([])
                began = time.monotonic()
                assert begin(arguments).wait() == 0, Path("../err").read_text()
                took = time.monotonic() - began
                known[name] = (
                    took,
                    {each: Path(each).read_bytes() for each in outputs if Path(each).exists()},
                )
            seconds, good = known[name]
            set_up([each for each in outputs if draw.random() < 0.8])
            before = {each: Path(each).exists() for each in outputs}
            filler = Path("filler")
            if fills and draw.random() < 0.4:
                room = int(draw.uniform(0, 1.1) * sum(map(len, good.values())))
                filler.write_bytes(bytes(shutil.disk_usage(".").free - room))
                count["on a full disk"] += 1
            process = begin(arguments)
            was_at_work = kill(process, draw, seconds)
            where = (
                f"{nth}: {name}, {'killed' if was_at_work else f'ended by {process.returncode}'}"
            )
            if not orphans_end(process.pid):
                wrong.append(f"{where}: its children went on")
            said = Path("../err").read_text()
            count["killed at work" if was_at_work else "ended before"] += 1
            if not was_at_work and process.returncode != 0:
                count["ended for want of room"] += 1
                if filler.exists() and "no space left" not in said:
                    wrong.append(f"{where}: {said}")
            for each in outputs:
                found = state_of(Path(each), good.get(each))
                count[f"outputs {found}"] += 1
                if found == "half" or (found == "gone" and before[each]):
                    wrong.append(f"{where}: {each} is {found}; {said}")
            for point in Path().glob("grid.points/??/*.json"):
                # It raises where the file is not what was written.
                open_sealed(point, point.read_bytes(), "point")
            left = parts()
            count["parts left"] += len(left)
            if left and not was_at_work:
                wrong.append(f"{where}: {left}")
            filler.unlink(missing_ok=True)
            again = command(*arguments)
            if again.status != 0:
                wrong.append(f"{where}: again: {again.err}")
            named = [each for each in left if str(each) in again.err]
            count["parts named by the next"] += len(named)
            if named != left or parts():
                wrong.append(f"{where}: left {left}, then {parts()}, said {again.err}")
            for each in outputs:
                # A run that is over in no time was not saved.
                found = state_of(Path(each), good.get(each))
                if found != "new" and not each.endswith(".saved"):
                    wrong.append(f"{where}: again: {each} is {found}; {again.err}")
        monkeypatch.chdir(tmp_path)
    columns = sorted({what for count in counts.values() for what in count})
    for name, count in counts.items():
        print(name, *(f"{what}: {count[what]}" for what in columns if count[what]), sep="; ")
    print("all", *(f"{w}: {sum(c[w] for c in counts.values())}" for w in columns), sep="; ")
    assert wrong == []
