"""Crash tests: recordings with data, losses of power at any moment of them, and checks of what is left."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import flashwright
import needs
from conftest import SMALL, Cli
from flashwright import CrashTest, Ssd
from flashwright.errors import ConfigError, ServeError
from flashwright.serving.crash import Crash
from nbdclient import FLUSH, FUA, TRIM, Nbd

PAGE = 4096
DRIVE = Ssd.from_text(SMALL).with_({"recovery.mount-by": "scan", "timing.model": "parallel"})
LIES = ["recovery.ignores-flush=true", "ram.manager=lru", "ram.size=256 KiB"]
# A controller whose buffer writes only when it needs room, or is flushed.
BUFFER = ["controller.write-buffer.size=64 KiB", "controller.interface-rate=300 MB/s"]
RECORDS = 60


def record_of(number: int) -> bytes:
    return number.to_bytes(4, "little") * (PAGE // 4)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log: each record is forced to the drive, and then called done; what else is written may be lost."""
    path = tmp_path_factory.mktemp("crash") / "log.fwr"
    with (
        flashwright.serve(DRIVE.precondition("random"), record_data=path, seed=5) as drive,
        Nbd(drive.uri) as disk,
    ):
        for number in range(1, RECORDS + 1):
            for other in range(number % 4):
                disk.write((100 + number + other) * PAGE, b"?" * PAGE)
            disk.ask(TRIM, (100 + number) * PAGE, PAGE)
            if number % 2:
                disk.write(number * PAGE, record_of(number), FUA)
            else:
                disk.write(number * PAGE, record_of(number))
                disk.ask(FLUSH)
            drive.mark(str(number))
        assert drive.stats()["served"]["recorded_with_data"] > 2 * RECORDS
    return path


def lost(crash: Crash) -> str | None:
    """What a log lacks."""
    with crash.image.open("rb") as image:
        for mark in crash.marks:
            image.seek(int(mark) * PAGE)
            if image.read(PAGE) != record_of(int(mark)):
                return f"record {mark} is lost"
    return None


@pytest.mark.parametrize(
    "settings",
    [
        [],
        ["ftl.scheme=dftl"],
        ["ftl.scheme=bast"],
        ["timing.program=9ms"],
        ["timing.model=none"],
        BUFFER,
    ],
)
def test_what_was_called_done_is_there(log: Path, settings: list[str]) -> None:
    test = CrashTest(log, settings)
    assert test.marks == tuple(map(str, range(1, RECORDS + 1)))
    result = test.run(lost, 40)
    assert (result.cuts, result.failures) == (40, ())
    assert result.json["marks"] == RECORDS
    if settings == ["ftl.scheme=bast"]:
        assert result.cuts_in_mount > 0, "its mounts merge"


def test_lies_of_a_controller_are_noticed(log: Path) -> None:
    result = CrashTest(log, [*BUFFER, "recovery.ignores-flush=true"]).run(lost, 20)
    assert result.failures and result.failures[0].why.endswith("is lost")


def test_lies_are_noticed_and_can_be_looked_at(log: Path, tmp_path: Path) -> None:
    test = CrashTest(log, LIES)
    result = test.run(lost, 40, keep=tmp_path / "kept")
    first = result.failures[0]
    assert first.why.endswith("is lost")
    kept = sorted((tmp_path / "kept").iterdir())
    assert len(kept) == len(result.failures)
    again = test.cut(first.crash.operation, tmp_path / "again", in_mount=first.crash.in_mount)
    assert lost(again) == first.why
    assert again.image.read_bytes() in [each.read_bytes() for each in kept]
    repeated = test.run(lost, 40)
    assert [each.why for each in repeated.failures] == [each.why for each in result.failures]


def test_marks_come_before_what_follows(log: Path, tmp_path: Path) -> None:
    test = CrashTest(log)
    last = test.cut(test.operations - 1, tmp_path / "image")
    first = test.cut(0, tmp_path / "image")
    assert first.marks == () and first.requests_completed == 0
    assert len(last.marks) in (RECORDS - 1, RECORDS)
    assert last.mounted["pages_mapped"] > RECORDS and last.mounted["duration_ns"] > 0


def test_the_command(command: Cli, log: Path, tmp_path: Path) -> None:
    check = tmp_path / "check.py"
    check.write_text(
        "import os\n"
        "marks = open(os.environ['MARKS']).read().split()\n"
        "assert os.path.getsize(os.environ['IMAGE']) > 1 << 20\n"
        "assert len(marks) < 40, 'forty marks'\n"
    )
    run = command("crash", log, "--check", f"{sys.executable} {check}", "--cuts", 20, "--json", "-")
    assert run.status == 1
    found = json.loads(run.out)
    assert found["cuts"] == 20 and 0 < len(found["failures"]) < 20
    assert all(each["marks"] >= 40 and "forty marks" in each["why"] for each in found["failures"])
    checked = command("crash", log, "--check", "true", "--cuts", 5)
    assert checked.status == 0 and "failed checks" in checked.out
    shown = command("crash", log, "--operation", 3, "--image", tmp_path / "image")
    assert shown.status == 0 and (tmp_path / "image").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "--check and --operation: found neither, expected one of them"),
        (("--check", "true", "--operation", 1), "found both"),
        (("--operation", 1), "--image and --in-mount"),
        (("--operation", 10**6, "--image", "x"), "operation: found 1000000, expected 0 to"),
        (("--check", "true", "--set", "recovery.mount-by=nothing"), 'expected "scan"'),
        (("--check", "true", "--set", "capacity.logical=512 KiB"), "past the device's end"),
    ],
)
def test_what_can_not_be_tested(
    command: Cli, log: Path, arguments: tuple[object, ...], says: str
) -> None:
    run = command("crash", log, *arguments)
    assert run.status == 2 and says in run.err
    assert len(run.err.strip().splitlines()) <= 2


def test_damaged_recordings_are_refused(log: Path, tmp_path: Path) -> None:
    whole = log.read_bytes()
    damaged = tmp_path / "damaged.fwr"
    for content, says in (
        (b"", "another kind of file"),
        (whole[: len(whole) // 2], "damaged or was not completed"),
        (whole[:200] + b"x" + whole[201:], "damaged or was not completed"),
    ):
        damaged.write_bytes(content)
        with pytest.raises(ServeError, match=says):
            CrashTest(damaged)
    with pytest.raises(ServeError, match="no such file"):
        CrashTest(tmp_path / "none")


def test_what_a_recording_can_not_hold(tmp_path: Path) -> None:
    with (
        flashwright.serve(DRIVE, record_data=tmp_path / "a.fwr") as drive,
        pytest.raises(ServeError, match="cut: found a recording with data under way"),
    ):
        drive.cut()
    assert drive.notes == ["no request came, so no recording was written"]
    assert not (tmp_path / "a.fwr").exists()
    with (
        flashwright.serve(DRIVE) as drive,
        pytest.raises(ServeError, match="mark: found no recording"),
    ):
        drive.mark("x")
    with (
        flashwright.serve(Ssd.from_text(SMALL), record_data=tmp_path / "b.fwr") as drive,
        Nbd(drive.uri) as disk,
    ):
        disk.write(0, b"1" * PAGE)
    with pytest.raises(ConfigError, match='found "nothing", expected "scan"'):
        CrashTest(tmp_path / "b.fwr")


def test_sqlite_on_ext4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The experiment of real software, in small."""
    needs.root()
    for program in ("nbdfuse", "fusermount3", "losetup", "mkfs.ext4", "e2fsck", "debugfs"):
        needs.need(program)
    if not Path("/dev/fuse").exists():
        needs.refused("the kernel has no FUSE")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "experiments" / "real-software"))
    import crash as experiment  # type: ignore[import-not-found, unused-ignore]

    case = experiment.Case("sqlite", "ext4", 12)
    recording = experiment.record(case, tmp_path, 1)
    honest = CrashTest(recording).run(experiment.check(case), 12)
    assert honest.failures == () and honest.marks == 13
    liar = CrashTest(recording, experiment.LIAR).run(experiment.check(case), 12)
    assert liar.failures, "a drive that ignores flushes is noticed"
