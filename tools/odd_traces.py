#!/usr/bin/env python3
"""Traces in odd orders and units, made by real tools, each against its sorted twin.

    tools/odd_traces.py [FOLDER]

fio writes its logs; bpftrace and blktrace, where the kernel permits them, record fio on a loop device (as root). From
each recording come files as people have them: several jobs in one log, sorted by another column, cut by device or CPU,
one after the other, in another unit. Each is played on a small drive. It passes if it is refused, or if its mean
response time is within 1 % of that of the same requests in order of time. The exit status is 1 if one does not pass.
"""

from __future__ import annotations

import gzip
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from flashwright import Ssd, tracefiles, workloads
from flashwright.errors import FlashwrightError

MIB = 1 << 20
DRIVE = Ssd.from_text(
    """
about = "small"
[geometry]
channels = 2
dies-per-channel = 2
blocks-per-plane = 160
pages-per-block = 64
[capacity]
utilization = 0.85
"""
).with_({"timing.model": "parallel", "placement.policy": "single"})
"""160 MiB, for recordings on a file or a loop device of 64 MiB."""


@dataclass(frozen=True)
class Request:
    """Time in us since the start, R or W, first sector of 512 B and sectors; device and CPU."""

    us: float
    kind: str
    sector: int
    sectors: int
    device: int = 0
    cpu: int = 0


def spc(requests: Sequence[Request]) -> str:
    """The requests as SPC text."""
    return "".join(
        f"{each.device},{each.sector},{each.sectors * 512},{each.kind},{each.us / 1e6:.9f}\n"
        for each in requests
    )


def in_order(requests: Sequence[Request]) -> list[Request]:
    """The requests in order of time."""
    return sorted(requests, key=lambda each: each.us)


class Outcomes:
    """What became of each file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wrong = 0
        self.tried = 0

    def check(self, name: str, content: str | bytes, requests: Sequence[Request]) -> None:
        """A file, and the requests that were recorded."""
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.judge(name, path, requests)

    def judge(self, name: str, path: Path, requests: Sequence[Request]) -> None:
        """Play a file and its twin, and say how far they are apart."""
        self.tried += 1
        twin = self.folder / "twin.spc"
        twin.write_text(spc(in_order(requests)))
        right = self.mean(twin)
        try:
            found = self.mean(path)
        except FlashwrightError as error:
            said = str(error).removeprefix(f"{path}: ")
            print(f"refused  {name}: {said}")
            return
        apart = found / right - 1
        passed = abs(apart) <= 0.01
        self.wrong += not passed
        notes = "; ".join(tracefiles.info(path)["notes"])
        print(
            f"{'within' if passed else 'WRONG '}   {name}: {100 * apart:+.2f} % {f'({notes})' if notes else ''}"
        )

    @staticmethod
    def mean(path: Path) -> float:
        """Mean response time of the trace on the drive, in ns."""
        run = DRIVE.play(workloads.trace(path))
        found = run.json["response_time_ns"]["all"]["mean"]
        assert found is not None
        return found


def run(*command: object) -> str:
    """What a program prints."""
    return subprocess.run(
        [str(each) for each in command], check=True, capture_output=True, text=True
    ).stdout


def fio_log(folder: Path, *jobs: str, name: str, ios: int = 100, options: str = "") -> str:
    """What fio logs of these jobs, each a line of options. Jobs that log more than 4 KiB cut each other's lines."""
    log = folder / name
    job = folder / "job.fio"
    sections = "".join(f"[job{at}]\n{line.replace(' ', chr(10))}\n" for at, line in enumerate(jobs))
    job.write_text(
        f"[global]\nfilename=data\nsize=32m\nbs=4k\nioengine=psync\nnumber_ios={ios}\nthinktime=300\n"
        f"write_iolog={log}\n{options}\n{sections}"
    )
    subprocess.run(["fio", "--output", "out", job], cwd=folder, check=True, capture_output=True)
    return log.read_text()


def of_log(log: str) -> list[Request]:
    """The requests of a log of version 3 without those that move no data."""
    made = []
    for line in log.splitlines():
        words = line.split()
        if len(words) == 5 and words[2] in ("read", "write"):
            kind = words[2][0].upper()
            made.append(Request(float(words[0]), kind, int(words[3]) // 512, int(words[4]) // 512))
    return made


def moved(log: str, change: Callable[[list[str]], list[str]]) -> str:
    """The log with its requests in another order, between header and close."""
    lines = log.splitlines(keepends=True)
    own = [line for line in lines if line.split()[2:3] in (["read"], ["write"])]
    return "".join([*lines[:3], *change(own), lines[-1]])


def fio_cases(folder: Path, found: Outcomes) -> None:
    """Logs of fio."""
    mixed = "rw=randrw"
    log = fio_log(folder, mixed, name="1", ios=300)
    found.check("fio: one job", log, of_log(log))
    requests = of_log(log)
    found.check(
        "fio: sorted by address",
        moved(log, lambda own: sorted(own, key=lambda line: int(line.split()[3]))),
        requests,
    )
    found.check("fio: backwards", moved(log, lambda own: own[::-1]), requests)
    found.check(
        "fio: reads before writes",
        moved(log, lambda own: sorted(own, key=lambda line: line.split()[2])),
        requests,
    )

    def late(own: list[str]) -> list[str]:
        draw = random.Random(1)
        return [
            line
            for _, line in sorted((at + draw.uniform(0, 8), line) for at, line in enumerate(own))
        ]

    found.check("fio: in order of completion", moved(log, late), requests)
    in_ns = "".join(
        f"{int(line.split()[0]) * 1000} {line.split(' ', 1)[1]}" if line[0].isdigit() else line
        for line in log.splitlines(keepends=True)
    )
    late_ns = "".join(
        f"{int(line.split()[0]) + 10**9} {line.split(' ', 1)[1]}"
        if "read" in line or "write" in line
        else line
        for line in in_ns.splitlines(keepends=True)
    )
    found.check("fio: in ns since boot", late_ns, requests)
    cut = fio_log(folder, mixed, name="cut", ios=300, options="numjobs=4")
    found.check("fio: lines cut by other jobs", cut, of_log(cut))
    for name, jobs, options in (
        ("two jobs, one log", ("rw=randwrite fsync=8", "rw=randread"), ""),
        ("numjobs=4", (mixed,), "numjobs=4"),
        ("sync_file_range", ("rw=write sync_file_range=write:8", mixed), ""),
        ("fdatasync, jobs of unlike length", ("rw=randwrite fdatasync=4 thinktime=900", mixed), ""),
    ):
        log = fio_log(folder, *jobs, name=name.replace(" ", "-"), options=options)
        found.check(f"fio: {name}", log, of_log(log))
        if name == "numjobs=4":
            found.check("fio: numjobs=4, gzip", gzip.compress(log.encode()), of_log(log))


@contextmanager
def loop_device(folder: Path) -> Iterator[str]:
    """A loop device of 64 MiB, read and written by fio's two jobs while something records."""
    image = folder / "image"
    image.write_bytes(b"")
    with image.open("r+b") as file:
        file.truncate(64 * MIB)
    device = run("losetup", "--find", "--show", image).strip()
    try:
        yield device
    finally:
        run("losetup", "--detach", device)


def load(device: str) -> None:
    """Two jobs of fio on the halves of a device."""
    run(
        "fio", "--name=load", f"--filename={device}", "--direct=1", "--bs=4k", "--rw=randrw", "--size=32m",
        "--number_ios=300", "--thinktime=300", "--numjobs=2", "--offset_increment=32m", "--ioengine=psync",
    )  # fmt: skip


PROGRAM = """
tracepoint:block:block_rq_issue /args->dev == %d/ {
    printf("E %%llu %%u %%d %%llu %%u %%s\\n", nsecs, args->dev, cpu, args->sector, args->nr_sector, args->rwbs);
}
"""


def recorded(folder: Path) -> list[Request]:
    """Requests to a loop device, as bpftrace saw them issued."""
    with loop_device(folder) as device:
        status = Path(device).stat().st_rdev
        number = (status >> 8) << 20 | (status & 0xFF)
        program = folder / "issue.bt"
        program.write_text(PROGRAM % number)
        # It says when it listens.
        tracer = subprocess.Popen(
            ["bpftrace", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert tracer.stdout is not None
        lines: list[str] = []
        for line in tracer.stdout:
            lines.append(line)
            if line.startswith("Attaching"):
                break
        if not lines or not lines[-1].startswith("Attaching"):
            raise OSError("".join(lines).strip())
        time.sleep(2)
        load(device)
        time.sleep(1)
        tracer.send_signal(2)
        events = [
            line.split() for line in tracer.stdout.read().splitlines() if line.startswith("E ")
        ]
        tracer.wait()
    made = [
        Request(int(ns) / 1e3, "W" if "W" in rwbs else "R", int(sector), int(sectors), 0, int(cpu))
        for _, ns, _, cpu, sector, sectors, rwbs in events
        if int(sectors)
    ]
    if len(made) < 100:
        raise OSError(f"bpftrace saw {len(made)} requests")
    return made


def event_cases(found: Outcomes, uptime: Sequence[Request]) -> None:
    """Files that people make of recorded issue events."""
    first = min(each.us for each in uptime)
    events = [
        Request(each.us - first, each.kind, each.sector, each.sectors, 0, each.cpu)
        for each in in_order(uptime)
    ]

    def blkparse(requests: Sequence[Request]) -> str:
        return "".join(
            f"  7,0 {each.cpu} {at + 1} {each.us / 1e6:.9f} 77 D {each.kind} {each.sector} + {each.sectors} [fio]\n"
            for at, each in enumerate(requests)
        )

    by_address = sorted(events, key=lambda each: each.sector)
    by_cpu = sorted(events, key=lambda each: each.cpu)
    by_half = sorted(events, key=lambda each: each.sector >= 65536)
    found.check("issue events as blkparse prints them", blkparse(events), events)
    found.check("the same by address", blkparse(by_address), events)
    found.check("the same by CPU", blkparse(by_cpu), events)
    found.check("SPC by address", spc(by_address), events)
    found.check("SPC, reads before writes", spc(sorted(events, key=lambda each: each.kind)), events)
    halves = [
        Request(each.us, each.kind, each.sector % 65536, each.sectors, each.sector // 65536)
        for each in by_half
    ]
    found.check("SPC by device", spc(halves), halves)
    found.check("two recordings, one after the other", spc([*events[::2], *events[1::2]]), events)
    found.check("SPC with sizes in sectors", "".join(
        f"0,{each.sector},{each.sectors},{each.kind},{each.us / 1e6:.6f}\n" for each in events
    ), events)  # fmt: skip
    found.check("us,sector,sectors,op,cpu", "".join(
        f"{each.us:.0f},{each.sector},{each.sectors},{int(each.kind == 'W')},{each.cpu}\n" for each in events
    ), events)  # fmt: skip
    found.check("ns device sector sectors op", "".join(
        f"{each.us * 1e3:.0f} 0 {each.sector} {each.sectors} {int(each.kind == 'R')}\n" for each in events
    ), events)  # fmt: skip
    found.check("us device sector sectors op", "".join(
        f"{each.us:.0f} 0 {each.sector} {each.sectors} {int(each.kind == 'R')}\n" for each in events
    ), events)  # fmt: skip
    found.check("s device sector sectors op", "".join(
        f"{each.us / 1e6:.9f} 0 {each.sector} {each.sectors} {int(each.kind == 'R')}\n" for each in events
    ), events)  # fmt: skip
    found.check("Alibaba since boot, by address", "".join(
        f"0,{each.kind},{each.sector * 512},{each.sectors * 512},{each.us:.0f}\n"
        for each in sorted(uptime, key=lambda each: each.sector)
    ), [Request(round(each.us), each.kind, each.sector, each.sectors) for each in uptime])  # fmt: skip


def blktrace_cases(folder: Path, found: Outcomes) -> None:
    """A recording of blktrace, a file for each CPU, and what blkparse makes of it."""
    with loop_device(folder) as device:
        tracer = subprocess.Popen(
            ["blktrace", "-d", device, "-D", folder, "-o", "rec"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        time.sleep(1)
        if tracer.poll() is not None:
            assert tracer.stdout is not None
            raise OSError(tracer.stdout.read().strip().splitlines()[0])
        load(device)
        tracer.send_signal(2)
        tracer.wait()
    table = tracefiles.columns(folder / "rec.blktrace.0").to_pylist()
    requests = [
        Request(r["arrival_ns"] / 1e3, r["kind"][0].upper(), r["first_sector"], r["sectors"])
        for r in table
    ]
    found.judge("blktrace, all CPUs", folder / "rec.blktrace.0", requests)
    found.check("blkparse", run("blkparse", "-D", folder, "-i", "rec"), requests)


def main() -> int:
    """Try the tools that are there."""
    with ExitStack() as stack:
        named = (
            sys.argv[1] if len(sys.argv) > 1 else stack.enter_context(tempfile.TemporaryDirectory())
        )
        folder = Path(named).resolve()
        folder.mkdir(exist_ok=True)
        found = Outcomes(folder)
        tools: list[tuple[str, Callable[[], None]]] = [
            ("fio", lambda: fio_cases(folder, found)),
            ("bpftrace", lambda: event_cases(found, recorded(folder))),
            ("blktrace", lambda: blktrace_cases(folder, found)),
        ]
        for tool, cases in tools:
            if shutil.which(tool, path="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin") is None:
                print(f"absent   {tool} is not installed")
                continue
            try:
                cases()
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"absent   {tool} can't run here: {error}")
        if shutil.which("iostat") is not None:
            found.check("iostat", run("iostat", "-x", "1", "1"), [Request(0, "R", 0, 8)])
        print(f"{found.tried} files, {found.wrong} wrong")
        return int(found.wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
