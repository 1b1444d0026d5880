"""What a probing costs: told before, held within limits, counted after."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import needs
from flashwright.cli import run as command
from flashwright.cli.wear import WearOptions
from flashwright.drive.findings import Finding
from flashwright.endurance.amounts import parse_endurance
from flashwright.errors import ConfigError, TargetError, WorkloadError
from flashwright.probing import costs, session
from flashwright.probing.declared import Partition, partition
from flashwright.probing.limits import limits
from flashwright.probing.plan import planned
from flashwright.probing.probes import PROBES
from flashwright.probing.probes.write_buffer import WriteBuffer
from flashwright.simulation.ssd import Ssd
from flashwright.target import deadline
from flashwright.target.deadline import Deadline
from flashwright.target.question import Context, Cost
from flashwright.target.target import OutOfTimeError, Range, Target
from flashwright.twin import Model, calibrate, check, fitted
from flashwright.twin.calibration import Calibration
from flashwright.twin.calibration import cost as cost_of_calibration
from flashwright.twin.check import cost as cost_of_check
from flashwright.twin.fit import Search
from flashwright.twin.trials import Trials
from recovery import drawn

MIB = 1 << 20

PAGE = Model(page_bytes=12288, pages_per_block=32, channels=2).ssd("page", "", 96 * MIB)
LOGS = Model(page_bytes=16384, pages_per_block=32, scheme="bast", noise=0.01).ssd(
    "logs", "", 128 * MIB
)


class Made:
    """Writes at random, as much as it says."""

    ABOUT = "A median"
    READS_ALONE = False

    def __init__(self, name: str, megabytes: int = 1) -> None:
        self.NAME, self.PARAMETERS, self.megabytes = name, (name,), megabytes

    def cost(self, context: Context) -> Cost:
        return Cost(bytes_written=self.megabytes * MIB, requests=self.megabytes)

    def run(self, context: Context) -> list[Finding]:
        room = context.target.capacity_bytes // MIB
        offsets = np.arange(self.megabytes) % room * MIB
        times = context.target.play("write", offsets, MIB).latency_ns
        return [
            Finding(
                self.NAME, "found", float(np.median(times)), "ns", confidence=0.97, why="a median"
            )
        ]


class Escaping(Made):
    """Tries to get out of what it was given."""

    def run(self, context: Context) -> list[Finding]:
        for offset in (context.target.capacity_bytes, context.target.whole_bytes - MIB):
            for kind in ("write", "trim"):
                with pytest.raises(TargetError, match="within its"):
                    context.target.play(kind, [offset], MIB)
        context.target.purge()
        context.target.fill()
        return super().run(context)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Made]:
    probes = [Made("one"), Made("two")]
    monkeypatch.setattr(session, "PROBES", probes)
    return probes


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "disk.img"
    path.write_bytes(b"\xa5" * (64 * MIB))
    return path


@pytest.fixture
def loop(image: Path) -> Iterator[str]:
    """A loop device over that file: a block device, so that it is asked about."""
    needs.root()
    done = subprocess.run(
        [needs.need("losetup"), "--find", "--show", str(image)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        needs.refused(f"no loop device is to be had: {done.stderr.strip()}")
    device = done.stdout.strip()
    yield device
    subprocess.run(["losetup", "--detach", device], check=True)


# --- the plan ---


@pytest.mark.parametrize("drive", [PAGE, LOGS, drawn(6010), drawn(1007)], ids=lambda ssd: ssd.name)
def test_the_plan_is_not_below_the_truth(drive: Ssd) -> None:
    """Neither in all nor of any probe: no more than a tenth."""
    with Target(drive) as target:
        # So long that the drive's time cuts nothing short.
        ahead = session.plan(target, mode="quick", drive_time=1e6)
        result = session.probe(target, mode="quick", drive_time=1e6)
        assert target.bytes_written == sum(asked.bytes_written for asked in result.asked)
    for item, asked in zip(ahead, result.asked, strict=True):
        assert item.name == asked.name
        assert asked.bytes_written <= 1.1 * item.cost.bytes_written, item.name
        assert asked.bytes_read <= 1.1 * item.cost.bytes_read, item.name
    most = sum(item.cost.bytes_written for item in ahead)
    assert 0.1 * most < target.bytes_written <= 1.1 * most


@pytest.mark.parametrize("drive", [PAGE, LOGS], ids=lambda ssd: ssd.name)
def test_calibration_and_check_cost_what_they_say(drive: Ssd) -> None:
    with Target(drive) as target:
        size, block = target.capacity_bytes, target.block_bytes
        calibrate(target, {}, mode="quick")
        cost = cost_of_calibration({}, capacity_bytes=size, block_bytes=block, mode="quick")
        assert target.bytes_written == pytest.approx(cost.bytes_written, rel=0.05)
        assert target.bytes_read == pytest.approx(cost.bytes_read, rel=0.05)
        before = target.bytes_written
        check(target, drive, requests=2000)
        cost = cost_of_check(size, block, 2000)
        assert target.bytes_written - before == pytest.approx(cost.bytes_written, rel=0.05)
        # Before anything is found all cases are reckoned with.
        ahead = {item.name: item.cost for item in session.plan(target, twin=True, check=True)}
    assert (
        ahead["calibration"].bytes_written
        > cost_of_calibration({}, capacity_bytes=size, block_bytes=block).bytes_written
    )
    assert ahead["check"] == cost_of_check(size, block)


def test_an_earlier_finding_makes_the_plan_narrower() -> None:
    known = {"clustered-page": Finding("clustered-page", "found", 16384, "B")}
    with Target(PAGE) as target:
        of_all = {item.name: item.cost for item in session.plan(target)}
        named = planned(
            target, [p for p in PROBES if p.NAME == "clustered-block"], "full", 1, known, ()
        )
    assert named[0].name == "clustered-block"
    assert named[0].cost.bytes_written < of_all["clustered-block"].bytes_written


def test_ratings() -> None:
    assert parse_endurance("600TB", 1) == 600e12
    assert parse_endurance("0.3 DWPD, 5 years", 10**12) == pytest.approx(0.3e12 * 5 * 365.25)
    for text in ("600", "much", "0TB", "0.3dwpd", "0.3dwpd,5", "0.3dwpd,0y", "dwpd,5y", "1dwpd,5d"):
        with pytest.raises(ConfigError, match=r"^endurance: found"):
            parse_endurance(text, 10**12)


def test_endurance_by_smart_data(tmp_path: Path) -> None:
    """4 % used by 20.48 TB is a life of 512 TB; a rating goes before that, and the wear is told with it."""
    log = tmp_path / "smart.json"
    log.write_text(
        '{"power_on_hours": 10000, "data_units_written": 40000000, "percentage_used": 4}'
    )
    implied = costs.Endurance.of(None, log, 10**12)
    assert implied.bytes_rated == pytest.approx(512e12) and implied.used == 0.04
    given = costs.Endurance.of("600TB", log, 10**12)
    assert (given.bytes_rated, given.used) == (600e12, 0.04)
    log.write_text(
        '{"power_on_hours": 10000, "data_units_written": 40000000, "percentage_used": 0}'
    )
    assert costs.Endurance.of(None, log, 10**12) == costs.Endurance(used=0.0)


# --- consent ---


def test_much_wear_is_refused_where_nobody_can_be_asked(
    made: list[Made], loop: str, image: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made[0].megabytes = 4 * 64
    before = image.read_bytes()
    arguments = ["probe", loop, "--destroys-data", "--despite-doubts"]
    assert command(arguments) == 2
    message = capsys.readouterr().err
    assert (
        "4 fills of the drive" in message
        and "share of rated endurance unknown: give --rated-endurance" in message
    )
    assert "--accept-wear consents" in message
    assert image.read_bytes() == before
    # A small share of what it may take is nothing to ask about; a large one is.
    assert command([*arguments, "--rated-endurance", "20GB"]) == 2
    assert "1.3 % of an endurance of 20.0 GB (as given)" in capsys.readouterr().err
    assert command(["characterize", loop, "--destroys-data", "--quick"]) == 2
    assert "--accept-wear consents" in capsys.readouterr().err
    assert image.read_bytes() == before
    assert command([*arguments, "--rated-endurance", "600TB"]) == 0
    assert "269 MB written of up to 269 MB planned" in capsys.readouterr().out
    assert command([*arguments, "--accept-wear", "--quiet"]) == 0
    assert image.read_bytes() != before


@pytest.mark.parametrize(("answer", "goes_on"), [("yes\n", True), ("y\n", False), ("", False)])
def test_on_a_terminal_the_word_is_asked_for(
    answer: str, goes_on: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return answer

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    bill = costs.Bill(0, 4 * 10**12, 10**12, 3600.0, "")
    with Target(PAGE) as target:
        WearOptions().consent(target, bill)
        target.kind = "block-device"
        WearOptions(accept_wear=True).consent(target, bill)
        assert capsys.readouterr().err == ""
        if goes_on:
            WearOptions().consent(target, bill)
        else:
            with pytest.raises(TargetError, match="the answer was not yes"):
                WearOptions().consent(target, bill)
    assert "Type yes to continue" in capsys.readouterr().err


def test_plan_and_json_tell_the_costs(
    made: list[Made], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = tmp_path / "plan.json"
    drive = tmp_path / "page.toml"
    drive.write_text(PAGE.toml)
    arguments = ["probe", f"sim:{drive}", "--rated-endurance", "1GB"]
    assert command([*arguments, "--plan", "--json", str(figures)]) == 0
    assert "0.21 % of an endurance of 1.00 GB" in capsys.readouterr().out
    plan = json.loads(figures.read_text())
    assert [item["bytes_written"] for item in plan["plan"]] == [MIB, MIB]
    assert plan["costs"]["share_of_endurance"] == pytest.approx(2 * MIB / 1e9)
    assert plan["costs"]["drive_fills"] == pytest.approx(2 / 96)
    assert command([*arguments, "--json", str(figures), "--quiet"]) == 0
    assert json.loads(figures.read_text())["costs"]["asked"] == {
        "bytes_read": 0,
        "bytes_written": 2 * MIB,
    }


# --- reads alone, and parts ---


def test_without_consent_reads_alone_are_offered(
    made: list[Made], image: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["probe", str(image)]) == 2
    assert "--read-only asks those that need no write" in capsys.readouterr().err


def test_reads_alone_leave_a_target_as_it_is(image: Path, tmp_path: Path) -> None:
    before, figures = image.read_bytes(), tmp_path / "found.json"
    arguments = ["probe", str(image), "--read-only", "--quick", "--quiet", "--json", str(figures)]
    assert (
        command([*arguments, "--only", "plausible", "--only", "read-buffer", "--only", "flush"])
        == 0
    )
    assert image.read_bytes() == before
    found = json.loads(figures.read_text())
    assert [asked["name"] for asked in found["asked"]] == ["plausible", "read-buffer"]
    assert found["limits"][0].startswith("Reads only: nothing is written")
    whys = {f["parameter"]: f["why"] for f in found["findings"]}
    assert whys["flush-time"] == "not run: needs writes, and only reads were allowed"
    assert all(asked["bytes_written"] == 0 for asked in found["asked"])


def test_reads_of_nothing_are_doubted(tmp_path: Path) -> None:
    """A file of holes, as a drive that was never written."""
    image = tmp_path / "holes.img"
    with image.open("wb") as file:
        file.truncate(64 * MIB)
    with Target(image, read_only=True) as target:
        result = session.probe(target, mode="quick", only=["read-buffer"])
    assert any("256 of 256 places" in doubt for doubt in result.doubts)


def test_reads_find_on_a_simulated_drive_what_writes_find() -> None:
    ssd = Ssd.named("default").with_(
        {"geometry.blocks-per-plane": 64, "controller.read-buffer.size": "300 KiB"}
    )
    with Target(ssd, read_only=True) as target:
        result = session.probe(target, mode="quick")
        assert target.bytes_written == 0
    assert result["parallel-units"].value == 8
    assert result["read-buffer"].value == 300 << 10
    # Nothing speaks against flash, and what would be a sign of it needs writes.
    assert result["kind-of-device"].verdict == "unknown" and not result.doubts
    assert result["spare-space"].verdict == "unknown"


def test_a_probe_stays_in_its_range(
    monkeypatch: pytest.MonkeyPatch, image: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(session, "PROBES", [Escaping("out", 20)])
    figures = tmp_path / "found.json"
    arguments = ["probe", str(image), "--range", "8MiB:16777216", "--json", str(figures), "--quiet"]
    assert command(arguments) == 2
    assert image.read_bytes() == b"\xa5" * (64 * MIB)
    assert command([*arguments, "--destroys-data"]) == 0
    content = image.read_bytes()
    assert content[: 8 * MIB] == b"\xa5" * (8 * MIB) and content[24 * MIB :] == b"\xa5" * (40 * MIB)
    assert content[8 * MIB : 24 * MIB].count(b"\xa5" * 4096) == 0
    found = json.loads(figures.read_text())
    assert found["target"]["capacity_bytes"] == 16 * MIB
    assert "Only the range from 8,388,608 B on" in found["limits"][0]
    # Wear is of the drive, not of the part.
    assert found["costs"]["drive_fills"] == pytest.approx(20 / 64)


def test_a_part_tells_nothing_of_spare_space() -> None:
    with Target(drawn(6010), part=Range(256 * MIB, 1024 * MIB)) as target:
        result = session.probe(target, mode="quick", only=["clustered-page", "mapping", "cleaning"])
    for name in ("spare-space", "cleaning-interval", "cleaning-stall"):
        assert result[name].verdict == "unknown"
    assert "part of the drive" in result["cleaning-interval"].why


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--read-only", "--destroys-data"], "--read-only and --destroys-data: found both"),
        (["--read-only", "--twin"], "--twin: found with --read-only"),
        (["--range", "0:32MiB", "--check"], "--check: found with --range"),
        (["--range", "1GiB"], "--range: found '1GiB', expected START:LENGTH"),
        (["--range", "1:much"], "--range: found 'much', expected a size"),
        (["--range", "0:10GiB"], "expected START:LENGTH within"),
        (["--rated-endurance", "x"], "--rated-endurance: found 'x'"),
        (["--smart", "/nowhere.json"], "/nowhere.json: no such file"),
        (["--fit-limit", "0"], "--fit-limit: found 0.0"),
    ],
)
def test_bad_input(
    made: list[Made], arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["probe", "sim:default", *arguments]) == 2
    assert says in capsys.readouterr().err


def test_a_partition_is_a_part_of_its_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A made sysfs: sda of 1 GiB, of which sda1 is 96 MiB; sda2 is mounted."""
    disk = tmp_path / "sys" / "block" / "sda"
    for name, number in (("sda1", "8:1"), ("sda2", "8:2")):
        (disk / name).mkdir(parents=True)
        (disk / name / "partition").write_text("1\n")
        (disk / name / "dev").write_text(f"{number}\n")
    (disk / "size").write_text(f"{(1 << 30) // 512}\n")
    mounts = tmp_path / "mountinfo"
    mounts.write_text("30 1 8:2 / /srv rw - ext4 /dev/sda2 rw\n")
    where = {"sys_root": tmp_path / "sys", "mounts": mounts}
    assert partition("/dev/sda", **where) is None
    assert partition("/dev/sda1", **where) == Partition("sda", 1 << 30, ("sda2", "/srv"))
    assert partition("/dev/sda2", **where) == Partition("sda", 1 << 30, None)
    found = partition("/dev/sda1", **where)
    monkeypatch.setattr("flashwright.probing.limits.partition", lambda path: found)
    with Target(PAGE) as target:
        target.kind, target.path = "block-device", "/dev/sda1"
        sentences = limits(target)
    assert (
        "a partition of sda is probed" in sentences[0]
        and "sda2 of the same disk is mounted on /srv" in sentences[1]
    )


# --- findings as they come ---


def test_findings_are_printed_as_they_come(
    made: list[Made], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[str] = []

    def second(context: Context) -> list[Finding]:
        seen.append(capsys.readouterr().out)
        raise KeyboardInterrupt

    monkeypatch.setattr(made[1], "run", second)
    assert command(["probe", "sim:default"]) == 130
    # One line was there before the second probe began. No drive has tested such a verdict, so it claims 85 % at most.
    assert re.fullmatch(r"one: [\d.]+ (us|ms), confidence 85 %, [\d.]+ s\n", seen[0])
    capsys.readouterr()
    assert command(["probe", "sim:default", "--quiet"]) == 130
    assert seen[1] == "" and capsys.readouterr().out == ""
    assert command(["probe", "sim:default", "--json", "-"]) == 130
    assert seen[2] == "" and json.loads(capsys.readouterr().out)["findings"]


# --- time limits ---


@pytest.fixture(scope="module")
def calibrated() -> Iterator[tuple[Target, Calibration]]:
    with Target(LOGS) as target:
        yield target, calibrate(target, {}, mode="quick")


def test_a_fit_that_is_cut_short_gives_the_best_so_far(
    calibrated: tuple[Target, Calibration], monkeypatch: pytest.MonkeyPatch
) -> None:
    target, calibration = calibrated
    # A clock that advances by 10 ms each time it is read, so that the load of this machine doesn't matter.
    monkeypatch.setattr(
        deadline, "time", SimpleNamespace(monotonic=itertools.count(0, 0.01).__next__)
    )
    fit = fitted(target, {}, calibration, time_limit=2.0)
    match = re.fullmatch(
        r"fit stopped by the time limit after ([\d,]+) of at most ([\d,]+) trials", fit.stopped
    )
    assert match is not None
    done, most = (int(part.replace(",", "")) for part in match.groups())
    assert 0 < done == fit.evaluations < most
    assert fit.residuals and fit.error > 0 and fit.to_dict()["stopped"] == fit.stopped
    with Target(fit.ssd) as twin:
        # As many whole pages as hold the drive, whatever their size.
        page = fit.model.page_bytes
        assert twin.capacity_bytes == -(-target.capacity_bytes // page) * page
    with pytest.raises(OutOfTimeError):
        fitted(target, {}, calibration, time_limit=0.0)


def test_trials_stay_below_what_is_said() -> None:
    findings = {"mapping": Finding("mapping", "found", "page")} | {
        name: Finding(name, "found", value, "B")
        for name, value in (("clustered-page", 12288), ("clustered-block", 12288 * 32 * 2))
    }
    findings["parallel-units"] = Finding("parallel-units", "found", 2)
    findings |= {name: Finding(name, "absent") for name in ("read-buffer", "write-buffer")}
    with Target(PAGE) as target:
        calibration = calibrate(target, findings, mode="quick")
        search = Search(
            Trials(target, findings, calibration, 1, lambda share: None, Deadline(None))
        )
        fit = search.run()
    assert fit.stopped == "" and fit.evaluations <= search.trials.most < 40 * fit.evaluations


def test_one_limit_holds_for_all_of_a_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Probes end, the fit does not: the profile is saved with the best model, and the check has its share."""
    drive, profile = tmp_path / "logs.toml", tmp_path / "profile.toml"
    drive.write_text(LOGS.toml)
    began = time.monotonic()
    only = ["--only", "plausible", "--save", str(profile), "--check"]
    status = command(["probe", f"sim:{drive}", "--quick", "--time-limit", "6", *only])
    assert time.monotonic() - began < 10 and status in (0, 1)
    output = capsys.readouterr()
    assert "fit stopped by the time limit after" in output.err
    assert "check: " in output.out
    assert "[twin" in profile.read_text()
    assert (
        command(["probe", f"sim:{drive}", "--quick", "--time-limit", "0.02", *only, "--quiet"]) == 0
    )
    assert "the time limit was reached" in capsys.readouterr().err


def test_a_line_that_falls_is_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small writes that take longer than large ones make a line that is below nothing further on."""
    sizes = [4096 << step for step in range(12)]
    times = {size: np.full(8, max(2e6 - 20.0 * size, 1e5)) for size in sizes}
    monkeypatch.setattr(
        "flashwright.probing.probes.write_buffer.empty_and_write",
        lambda target, size, count, rng: (times[size][:1].repeat(count), None),
    )
    with Target(PAGE) as target, np.errstate(all="raise"):
        WriteBuffer._coarse(Context(target, "quick"), sizes, times, np.random.default_rng(1))


def test_limits_are_seconds() -> None:
    with pytest.raises(WorkloadError, match=r"^only: found"), Target(PAGE) as target:
        session.plan(target, only=["none"])
