"""Traces in odd orders and units: each is played as its sorted twin, or refused with the choice.

The inputs are those that people bring: recordings one after the other, files sorted by device, fio's logs, block traces
with issue events alone, tables that look like a format, times in another unit.
"""

from __future__ import annotations

import json
import random
import re
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import odd_traces
import pytest

import needs
from conftest import SMALL, Cli
from flashwright import Ssd, tracefiles, workloads
from flashwright.errors import TraceError, WorkloadError
from flashwright.simulation.results import RunResult

DRIVE = Ssd.from_text(SMALL).with_(
    {"timing.model": "parallel", "placement.policy": "single", "capacity.utilization": 0.8}
)
PAGES = 1500

Row = tuple[int, int, int]
"""Time in us, device, page of 4 KiB."""


def rows(count: int = 400, seed: int = 1, devices: int = 1) -> list[Row]:
    """Poisson arrivals, 1 ms apart on average."""
    draw = random.Random(seed)
    now = 0.0
    made = []
    for _ in range(count):
        now += draw.expovariate(1e-3)
        made.append((round(now), draw.randrange(devices), draw.randrange(PAGES // devices)))
    return made


def spc(made: Sequence[Row]) -> str:
    return "".join(f"{device},{page * 8},4096,w,{us / 1e6:.6f}\n" for us, device, page in made)


def alibaba(made: Sequence[Row]) -> str:
    start = 1577808000000000
    return "".join(f"{device},W,{page * 4096},4096,{start + us}\n" for us, device, page in made)


def halves(made: Sequence[Row]) -> list[Row]:
    """Two recordings from about 0 on, one after the other."""
    return [*made[1::2], *made[::2]]


def play(path: Path, **options: object) -> RunResult:
    return DRIVE.play(workloads.trace(path, **options))  # type: ignore[arg-type]


def mean(run: RunResult) -> float:
    found = run.json["response_time_ns"]["write"]["mean"]
    assert found is not None
    return found


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.fixture
def restart(tmp_path: Path) -> Path:
    return written(tmp_path, "restart.spc", spc(halves(rows())))


COMMANDS: list[tuple[str, Callable[[str], list[str]]]] = [
    ("info", lambda path: ["trace", "info", path]),
    ("convert", lambda path: ["trace", "convert", path, path + ".fwt"]),
    ("fit", lambda path: ["trace", "fit", path, "-o", path + ".toml"]),
    ("compare", lambda path: ["trace", "compare", path, "bundled:pgbench"]),
    ("simulate", lambda path: ["simulate", "default", "--trace", path]),
    (
        "vary",
        lambda path: ["compare", "default", "--trace", path, "--vary", "gc.victim=greedy,fifo"],
    ),
    ("replay", lambda path: ["replay", "sim:default", "--trace", path]),
    ("advise", lambda path: ["advise", "space", "default", "--trace", path]),
]


@pytest.mark.parametrize(
    "arguments", [each for _, each in COMMANDS], ids=[name for name, _ in COMMANDS]
)
def test_every_command_asks_about_recordings(
    command: Cli, restart: Path, arguments: Callable[[str], list[str]]
) -> None:
    before = sorted(restart.parent.iterdir())
    found = command(*arguments(str(restart)))
    assert found.status == 2
    said = next(line for line in found.err.splitlines() if line.startswith("error: "))
    assert re.fullmatch(
        r"error: \S+restart.spc: the times of 200 of 400 requests go back, first at line 201 from [\d.,]+ ms "
        r"to [\d.]+ \S+: the clock starts again once, as in 2 recordings one after the other. Choose "
        r"--order sort \(.*\), --order concatenate \(.*\) or --order as-is \(.*\)",
        said,
    ), found.err
    assert sorted(restart.parent.iterdir()) == before


def test_recordings_as_the_user_chooses(restart: Path) -> None:
    twin = play(written(restart.parent, "sorted.spc", spc(rows())))
    merged = play(restart, order="sort")
    assert mean(merged) == mean(twin)
    assert merged.json["measured"]["duration_ns"] == twin.json["measured"]["duration_ns"]
    # One after the other it takes twice as long; as it is, half arrives at once, and the run warns.
    followed, once = play(restart, order="concatenate"), twin.json["measured"]["duration_ns"]
    assert once is not None
    assert followed.json["measured"]["duration_ns"] == pytest.approx(2 * once, rel=0.05)
    burst = play(restart, order="as-is")
    assert mean(burst) > 3 * mean(twin)
    warned = next(each for each in burst.warnings if each.code == "times-go-back")
    assert "200 of 400 requests have times before" in warned.text
    assert warned.mend == "--order sort or concatenate"
    for run in (twin, merged, followed):
        assert not any(each.code == "times-go-back" for each in run.warnings)


def test_a_file_by_device_plays_as_its_sorted_twin(tmp_path: Path) -> None:
    made = rows(600, devices=3)
    by_device = sorted(made, key=lambda row: row[1])
    for name, text in (("spc", spc), ("alibaba", alibaba)):
        odd, twin = (
            play(written(tmp_path, f"{at}.{name}", text(each)))
            for at, each in enumerate((by_device, made))
        )
        assert mean(odd) == mean(twin)
        assert any(
            "sorted by time" in note or "merged by time" in note
            for note in odd.json["workload_notes"]
        )
        assert not any("by time" in note for note in twin.json["workload_notes"])


def test_a_converted_trace_keeps_what_was_done(command: Cli, tmp_path: Path) -> None:
    odd = written(tmp_path, "odd.spc", spc(sorted(rows(600, devices=3), key=lambda row: row[1])))
    target = tmp_path / "odd.fwt"
    found = command("trace", "convert", odd, target)
    assert found.status == 0
    assert "note: in order by device, not by time: the 3 devices are merged by time" in found.err
    assert "merged by time" in tracefiles.info(target)["note"]
    assert mean(play(target)) == mean(play(odd))


FIO = "fio version 3 iolog\n"


def section(times: Sequence[int], at: int = 0, unit: int = 1, offset: int = 0) -> str:
    """One job of a fio log."""
    lines = [
        f"{offset + us * unit} /dev/x write {(at + n) * 4096} 4096" for n, us in enumerate(times)
    ]
    return "\n".join(
        [
            FIO + "0 /dev/x add",
            "0 /dev/x open",
            *lines,
            f"{offset + times[-1] * unit} /dev/x close\n",
        ]
    )


def test_jobs_of_one_fio_log_ran_at_once(tmp_path: Path) -> None:
    first, second = ([300 + row[0] for row in rows(200, seed)] for seed in (1, 2))
    odd = play(written(tmp_path, "jobs.log", section(first) + section(second, 200)))
    pages = sorted(
        [*((us, n) for n, us in enumerate(first)), *((us, 200 + n) for n, us in enumerate(second))]
    )
    twin = play(written(tmp_path, "twin.spc", spc([(us, 0, page) for us, page in pages])))
    assert mean(odd) == mean(twin)
    assert any(
        "2 sections, each with times from the start" in note for note in odd.json["workload_notes"]
    )


def test_what_fio_writes_beside_requests(tmp_path: Path) -> None:
    log = FIO + "".join(
        f"{at} /dev/x {action}\n"
        for at, action in enumerate(
            (
                "add",
                "open",
                "write 0 4096",
                "sync_file_range 0 0",
                "syncfs 0 0",
                "datasync 0 0",
                "trim 0 4096",
                "close",
            )
        )
    )
    found = tracefiles.info(written(tmp_path, "log", log))
    assert [found[kind] for kind in ("writes", "flushes", "trims")] == [1, 2, 1]
    assert found["stats"]["ignored_events"] == 1


def test_waits_of_version_2_are_as_fio_replays_them(tmp_path: Path) -> None:
    # fio 3.33 sleeps until that many ms after its start: requests at 1, 3 and 6 s.
    waits = "".join(
        f"/dev/x wait {ms} 0\n/dev/x write {ms * 4096} 4096\n" for ms in (1000, 3000, 6000)
    )
    path = written(
        tmp_path, "two.log", f"fio version 2 iolog\n/dev/x add\n/dev/x open\n{waits}/dev/x close\n"
    )
    assert tracefiles.info(path)["span_ns"] == 5_000_000_000


def test_a_fio_log_in_ns_is_refused(tmp_path: Path) -> None:
    times = [us for us, _, _ in rows(100, 3)]
    path = written(tmp_path, "ns.log", section(times, unit=1000, offset=1_006_248_689))
    with pytest.raises(TraceError, match=r"--time-unit ns \(\d+(\.\d+)? ms\)") as refused:
        tracefiles.info(path)
    assert "\n" not in str(refused.value)
    found = tracefiles.info(workloads.trace(path, time_unit="ns"))
    assert found["span_ns"] == (times[-1] - times[0]) * 1000 and not found["doubts"]
    doubtful = play(path, format="fio")
    assert [each.code for each in doubtful.warnings if "trace" in each.code][:1] == [
        "doubtful-trace"
    ]


def blkparse(made: Sequence[Row], event: str) -> str:
    return "".join(
        f"259,0 {at % 4} {at + 1} {us / 1e6:.9f} 2211 {event} WS {page * 8} + 8 [db]\n"
        for at, (us, _, page) in enumerate(made)
    )


def blktrace(made: Sequence[Row], event: int) -> bytes:
    write = 1 << 17
    return b"".join(
        struct.pack(
            "<IIQQIIIIIHH",
            0x65617407,
            at,
            us * 1000,
            page * 8,
            4096,
            write | event,
            7,
            8 << 20,
            0,
            0,
            0,
        )
        for at, (us, _, page) in enumerate(made)
    )


def test_issue_events_are_requests_where_there_are_no_others(command: Cli, tmp_path: Path) -> None:
    made = rows(60)
    twin = mean(play(written(tmp_path, "twin.spc", spc(made))))
    text, binary = written(tmp_path, "d.txt", blkparse(made, "D")), tmp_path / "d.blktrace.0"
    binary.write_bytes(blktrace(made, 7))
    for path in (text, binary):
        run = play(path)
        assert mean(run) == twin
        assert any(
            "the 60 D (issue) events are the requests" in note
            for note in run.json["workload_notes"]
        )
        assert mean(play(path, events="issue")) == twin
        found = command("trace", "info", path, "--events", "queue")
        assert found.status == 2 and "60 D (issue) and no Q (queue)" in found.err
        assert "--events issue takes the D" in found.err and "trace info" not in found.err
    # Both kinds: the queue events, unless asked.
    both = written(tmp_path, "both.txt", blkparse(made, "Q") + blkparse(made[:10], "D"))
    assert tracefiles.info(both)["requests"] == 60
    assert tracefiles.info(workloads.trace(both, events="issue"))["requests"] == 10
    complete = written(tmp_path, "c.txt", blkparse(made, "C"))
    with pytest.raises(TraceError, match=r"60 C \(complete\) and no Q"):
        tracefiles.info(complete)


def test_the_files_of_all_cpus_are_one_recording(tmp_path: Path) -> None:
    made = rows(90)
    for cpu in range(3):
        (tmp_path / f"rec.blktrace.{cpu}").write_bytes(blktrace(made[cpu::3], 1))
    (tmp_path / "rec.blktrace.3").write_bytes(b"")
    (tmp_path / "other.blktrace.1").write_bytes(blktrace(made, 1))
    run = play(tmp_path / "rec.blktrace.0")
    assert run.json["measured"]["requests"] == 90
    assert mean(run) == mean(play(written(tmp_path, "twin.spc", spc(made))))
    notes = run.json["workload_notes"]
    assert "read with rec.blktrace.1 to rec.blktrace.2: 3 CPUs of one recording" in notes
    alone = tracefiles.info(tmp_path / "rec.blktrace.1")
    assert alone["requests"] == 30
    assert alone["notes"] == ["one CPU of a recording of 3: rec.blktrace.0 is read with the others"]


def table(line: Callable[[int, int, int], str], count: int = 100) -> str:
    draw = random.Random(7)
    return "".join(
        line(at, draw.randrange(250_000) * 8, draw.choice((8, 16, 32))) + "\n"
        for at in range(count)
    )


TAKEN_FOR_ANOTHER = {
    "five integers": (
        "tencent",
        lambda at, sector, length: f"{at * 150},{sector},{length},{at % 2},{60 + at % 29}",
        "its first 100 requests would take 14,850 s",
    ),
    "us": (
        "tencent",
        lambda at, sector, length: f"{at * 3987},{sector},{length},1,0",
        "us (395 ms)",
    ),
    "spc in sectors": (
        "spc",
        lambda at, sector, length: f"0,{sector},{length},W,{at / 1000:.6f}",
        "no size is a multiple of 512 bytes: the sizes look like sectors",
    ),
    "alibaba in sectors": (
        "alibaba",
        lambda at, sector, length: f"0,W,{sector},{length},{at * 1000}",
        "no size is a multiple of 512 bytes: the sizes look like sectors",
    ),
    "msr in sectors": (
        "msr",
        lambda at, sector, length: (
            f"{128166372003061629 + at * 10_000},h,0,Write,{sector},{length},0"
        ),
        "no size is a multiple of 512 bytes: the sizes look like sectors",
    ),
    "tencent in bytes": (
        "tencent",
        lambda at, sector, length: f"{1538323200 + at},{sector * 512},{length * 512},1,5",
        "up to 8.00 MiB if they were sectors: the sizes look like bytes",
    ),
    "mqsim in s": (
        "disksim",
        lambda at, sector, length: f"{242.501565259 + at * 0.003987:.9f} 0 {sector} {length} 0",
        "--time-unit s (395 ms)",
    ),
}


@pytest.mark.parametrize(
    ("format", "line", "says"), TAKEN_FOR_ANOTHER.values(), ids=TAKEN_FOR_ANOTHER
)
def test_a_table_is_not_taken_for_a_format(
    command: Cli, tmp_path: Path, format: str, line: Callable[[int, int, int], str], says: str
) -> None:
    path = written(tmp_path, "table", table(line))
    for arguments in (["trace", "info", str(path)], ["simulate", "default", "--trace", str(path)]):
        found = command(*arguments)
        assert found.status == 2
        assert says in found.err and f"--format {format} takes it as it is" in found.err
        assert "trace info" not in found.err
    # Named, it is taken, and the run warns.
    run = Ssd.find("default").play(workloads.trace(path, format=format, addresses="wrap"))
    warned = next(each for each in run.warnings if each.code == "doubtful-trace")
    assert warned.text.startswith("the trace is hardly what it is read as: ")
    assert tracefiles.info(workloads.trace(path, format=format))["doubts"][0]["kind"] == "content"


def test_columns_that_could_be_several_formats_say_what_each_means(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "mqsim-us",
        table(lambda at, sector, length: f"{at * 3987} 0 {sector} {length} 0", 60),
    )
    with pytest.raises(TraceError, match="could be disksim") as refused:
        tracefiles.info(path)
    said = str(refused.value)
    for part in (
        "disksim (first 60 requests: 235 s, ",
        "mqsim (first 60 requests: 235 us, ",
        "us (235 ms)",
    ):
        assert part in said
    assert said.endswith("choose one with --format")
    found = tracefiles.info(workloads.trace(path, format="mqsim", time_unit="us"))
    assert found["span_ns"] == 59 * 3_987_000
    seconds = written(tmp_path, "s", "242.501565259 0 8 8 0\n242.508452871 0 16 8 0\n")
    assert (
        tracefiles.info(workloads.trace(seconds, format="mqsim", time_unit="s"))["span_ns"]
        == 6_887_612
    )


def test_options_that_do_not_fit_are_refused(command: Cli, restart: Path) -> None:
    for option, value, says in (
        ("--order", "sorted", "--order: found 'sorted', expected as-is, sort or concatenate"),
        ("--time-unit", "min", "--time-unit: found 'min', expected ns, us, ms or s"),
        ("--events", "all", "--events: found 'all', expected auto, queue or issue"),
        ("--events", "issue", "--events: found issue for spc"),
    ):
        found = command("trace", "info", restart, option, value)
        assert (
            found.status == 2
            and found.err.startswith("error: ")
            and says in found.err.replace("trace option ", "--")
        )
    with pytest.raises((TraceError, WorkloadError), match="whose times have a unit of their own"):
        tracefiles.info(workloads.trace("bundled:pgbench", time_unit="us"))


def test_what_iostat_prints_is_no_trace(tmp_path: Path) -> None:
    text = (
        "Linux 6.1.0 (host) \t11/26/26 \t_x86_64_\t(2 CPU)\n\navg-cpu:  %user   %nice %system %iowait  %steal   %idle\n"
        "           1.00    0.00    0.50    0.10    0.00   98.40\n\n"
        "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s\n"
        "nvme0n1          1.00     12.00     0.00   0.00    0.10    12.00    3.00     44.00\n"
    )
    with pytest.raises(
        TraceError, match="this is what iostat prints, sums over time with no requests in them"
    ):
        tracefiles.info(written(tmp_path, "iostat.txt", text))


def test_statistics_and_fits_say_what_was_done(command: Cli, tmp_path: Path) -> None:
    odd = written(tmp_path, "odd.spc", spc(sorted(rows(600, devices=3), key=lambda row: row[1])))
    for arguments in (
        ["trace", "compare", odd, odd],
        ["trace", "fit", odd, "-o", tmp_path / "model.toml"],
    ):
        found = command(*arguments)
        assert found.status == 0 and "the 3 devices are merged by time" in found.err, found.err
    shown = command("trace", "info", odd, "--json", "-")
    assert "merged by time" in json.loads(shown.out)["notes"][0]


def test_logs_that_fio_writes_play_as_their_sorted_twins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs.need("fio")
    found = odd_traces.Outcomes(tmp_path)
    odd_traces.fio_cases(tmp_path, found)
    shown = capsys.readouterr().out
    assert found.tried == 12 and found.wrong == 0, shown
    # Refused: what is in no order, and what is in another unit.
    refused = [
        line.split(":")[1].strip() for line in shown.splitlines() if line.startswith("refused")
    ]
    assert refused == [
        "sorted by address",
        "backwards",
        "reads before writes",
        "in ns since boot",
        "lines cut by other jobs",
    ], shown
