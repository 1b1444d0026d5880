"""How long drives last: the formula's table, drives played to their end, saved on the way, extrapolated."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Cli
from flashwright import Run, Ssd, errors, lifetime, workloads
from test_report import embedded

SMART = Path(__file__).parent / "smart"
LIFE = ("--set", "timing.model=none", "--set", "geometry.blocks-per-plane=64")
# The recording that is played where nothing is named is larger than such a drive.
WRAP = ("--addresses", "wrap")


def tiny(cycles: int = 40, **settings: object) -> Ssd:
    """512 blocks of 32 pages in one plane."""
    drive = {
        "geometry.channels": 1,
        "geometry.dies-per-channel": 1,
        "geometry.blocks-per-plane": 512,
        "geometry.pages-per-block": 32,
        "timing.model": "none",
        "wear.pe-cycles-max": cycles,
        "capacity.utilization": 0.8,
        "placement.policy": "single",
    }
    return Ssd.named("default").with_(drive | settings).precondition("random")


@pytest.mark.parametrize(
    ("reserved", "writable", "after_50", "after_100"),
    [
        # Worked out from Equation 1 by hand for 100 GB and 10,000 cycles.
        (0.5, 500.05, 0.900, 0.800),
        (0.6, 400.06, 0.875, 0.750),
        (0.7, 300.07, 0.833, 0.667),
        (0.8, 200.08, 0.750, 0.500),
        (0.9, 100.09, 0.500, 0.001),
        (0.95, 50.095, 0.002, 0.0),
    ],
)
def test_the_table_of_equation_1(
    reserved: float, writable: float, after_50: float, after_100: float
) -> None:
    assert lifetime.writable(100e9, reserved, 10_000) == pytest.approx(writable * 1e12, rel=1e-5)
    assert lifetime.residual(50e12, 100e9, reserved, 10_000) == pytest.approx(after_50, abs=6e-4)
    assert lifetime.residual(100e12, 100e9, reserved, 10_000) == pytest.approx(after_100, abs=6e-4)


def test_equation_1_on_a_drive_that_does_as_it_assumes() -> None:
    """Fill P S; whenever no page is free, erase every block once with its live pages kept."""
    for reserved, drive_writes in ((0.5, 11.0), (0.8, 5.0), (0.9, 3.0)):
        pages, cycles = 10_000, 20
        written = pages * reserved
        free, sweeps = pages - written, 0
        while True:
            written, free = written + free, 0.0
            if sweeps == cycles:
                break
            sweeps, free = sweeps + 1, pages * (1 - reserved)
        # The formula credits the first fill with P only, though all S is filled before the first erase.
        assert written / pages == pytest.approx(drive_writes)
        assert lifetime.writable(1, reserved, cycles) == pytest.approx(
            written / pages - (1 - reserved)
        )


def test_the_formula_refuses_what_makes_no_sense() -> None:
    for used in (0.0, 1.0, -1.0):
        with pytest.raises(errors.ConfigError, match="used"):
            lifetime.residual(0, 100e9, used, 100)
    with pytest.raises(errors.ArgumentError, match="used: found nan"):
        lifetime.residual(0, 100e9, float("nan"), 100)
    with pytest.raises(errors.ConfigError, match="cycles"):
        lifetime.writable(100e9, 0.5, 0)
    with pytest.raises(errors.ConfigError, match="written"):
        lifetime.residual(-1, 100e9, 0.5, 100)
    with pytest.raises(errors.ConfigError, match="capacity"):
        lifetime.effective_range(0.5, 2, 1)


def test_real_cleaning_outlives_equation_1_by_theory() -> None:
    """FIFO on uniform writes has a closed form of write amplification: 2.693 at u = 0.8."""
    ssd = tiny(60, **{"gc.victim": "fifo", "geometry.blocks-per-plane": 2048})
    end = lifetime.Endurance.of(lifetime.play_to_end(lifetime.begin(ssd, "uniform")))
    assert end.efficiency == pytest.approx((1 + 1 / 60) / 2.693, rel=0.04)
    by_formula = lifetime.writable(1, 0.8, 60) * end.physical_pages
    assert 1.7 < end.host_pages / by_formula < 1.9


def test_a_life_in_two_parts_is_the_same_life(tmp_path: Path) -> None:
    whole = lifetime.play_to_end(lifetime.begin(tiny(), "zipf"))
    saved = tmp_path / "life.saved"
    part = lifetime.play_to_end(lifetime.begin(tiny(), "zipf"), stop_after=60_000, checkpoint=saved)
    assert (part.json["ended"], whole.json["ended"]) == ("interrupted", "worn-out")
    rest = lifetime.play_to_end(Run.load(saved))
    assert rest.json["digest"] == whole.json["digest"]
    assert lifetime.Endurance.of(rest) == lifetime.Endurance.of(whole)
    assert np.array_equal(rest.erases_per_block, whole.erases_per_block)


def test_a_trace_is_repeated_until_the_end(spc: Path) -> None:
    reports: list[Any] = []
    trace = workloads.trace(spc)
    run = lifetime.begin(tiny(5).precondition("empty"), trace)
    result = lifetime.play_to_end(run, progress=reports.append)
    assert result.json["ended"] == "worn-out"
    assert result.json["measured"]["requests"] > 3000
    assert all(now.done <= now.total == 5 * 512 for now in reports)


def test_what_never_wears_out_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(errors.ConfigError, match="pe-cycles-max"):
        lifetime.begin(tiny(0), "uniform")
    monkeypatch.setattr("flashwright.endurance.forecasts._READS_ONLY", 1000)
    run = lifetime.begin(tiny().precondition("empty"), "uniform:write=0")
    with pytest.raises(errors.WorkloadError, match="no write"):
        lifetime.play_to_end(run)


@pytest.mark.parametrize(
    ("workload", "victim", "most"),
    [
        ("uniform", "greedy", 0.03),
        ("uniform", "fifo", 0.02),
        ("zipf:accesses=0.95,space=0.2", "fifo", 0.02),
        ("dynamic-static:static=0.7", "cost-benefit", 0.04),
        ("zipf:accesses=0.95,space=0.2", "greedy", 0.12),
    ],
)
def test_a_forecast_meets_the_end(workload: str, victim: str, most: float) -> None:
    run = lifetime.begin(tiny(100, **{"gc.victim": victim}), workload)
    made = lifetime.forecast(run)
    assert made is not None and made.steady
    assert 0.1 <= made.share < 0.3
    assert made.uneven == (most > 0.05)
    end = lifetime.Endurance.of(lifetime.play_to_end(run))
    assert abs(made.host_pages / end.host_pages - 1) < most
    # Equation 1 is much further off.
    by_formula = float(lifetime.writable(1, 0.8, 100)) * end.physical_pages
    assert abs(by_formula / end.host_pages - 1) > 1.2 * most


def test_uneven_wear_is_what_the_forecast_corrects_for() -> None:
    """Greedy cleaning leaves blocks of static data alone, which halves the life that levelled wear would give."""
    run = lifetime.begin(tiny(100, **{"capacity.utilization": 0.5}), "dynamic-static:static=0.7")
    made = lifetime.forecast(run)
    assert made is not None and made.growth > 1.8 and made.unused > 30 and made.uneven
    end = lifetime.Endurance.of(lifetime.play_to_end(run))
    levelled = 101 * end.physical_pages / made.write_amplification
    assert levelled / end.host_pages > 1.5
    assert abs(made.host_pages / end.host_pages - 1) < 0.15


def test_extrapolation_of_blocks_with_rates_of_their_own() -> None:
    """Half the blocks wear three times as fast as the rest; a quarter may stop."""
    rates = np.repeat([3, 1], 50)
    moments = [np.asarray(rates * n, dtype=np.uint32) for n in range(1, 9)]
    pages = [1000 * n for n in range(1, 9)]
    made = lifetime.extrapolate(
        pages,
        moments,
        host_bytes=[512 * each for each in pages],
        cycles=300,
        pages_per_block=10,
        spare=0.25,
    )
    assert made.growth == pytest.approx(2)
    assert made.uneven, "the standard deviation is half the mean"
    # The quantile lies among the fast ones: they are at 300 when the others are at 100.
    assert made.unused == pytest.approx(100, abs=1)
    assert made.host_pages == pytest.approx(100_000, rel=0.01)
    assert made.host_bytes == pytest.approx(512 * made.host_pages)


def test_a_drive_that_ends_first_has_no_forecast() -> None:
    run = lifetime.begin(tiny(4), "uniform")
    assert lifetime.forecast(run) is None
    result = run.result()
    assert result is not None and result.json["ended"] == "worn-out"


@pytest.mark.parametrize("text", ["", "five", "GB", "1 QB", "-3GB", "1e400x"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(errors.ConfigError, match="expected a size"):
        lifetime.parse_size(text)


@pytest.mark.parametrize("text", ["", "5MB", "0MB/s", "5MB/week", "1dwpd", "5/s"])
def test_rates_that_are_none(text: str) -> None:
    with pytest.raises(errors.ConfigError, match="expected a"):
        lifetime.parse_rate(text)


# The command ---------------------------------------------------------------------------------------


def test_by_formula(command: Cli, tmp_path: Path) -> None:
    report = tmp_path / "formula.html"
    said = command(
        "lifetime", "formula", "--capacity", "100GB", "--cycles", 10_000, "--used", "0.5,90%",
        "--written", "50TB", "--json", "-", "--report", report,
    )  # fmt: skip
    assert said.status == 0
    assert [row["residual"] for row in said.json["rows"]] == [
        [pytest.approx(0.90001, abs=1e-5)],
        [pytest.approx(0.50045, abs=1e-5)],
    ]
    page = report.read_text(encoding="utf-8")
    view = embedded(page, "plots")["charts"]["residual"]["views"][0]
    assert [line["part"] for line in view["series"]] == ["50 TB written"]
    assert embedded(page, "results") == said.json
    shown = command(
        "lifetime", "formula", "--capacity", "100GB", "--cycles", 10_000, "--written", "50TB"
    ).out
    assert "99.8" not in shown and "50.1 TB" in shown


def test_by_formula_for_a_drive(command: Cli) -> None:
    plain = command("lifetime", "formula", "default", "--cycles", 3000, "--json", "-").json
    assert plain["capacity_bytes"] == pytest.approx(0.9 * 2**32, rel=1e-4)
    counted = command(
        "lifetime", "formula", "default", "--cycles", 3000, "--effective", "--json", "-"
    ).json
    assert counted["capacity_bytes"] == 2**32
    assert counted["used_factor"] == pytest.approx(0.9, rel=1e-4)
    rows = zip(plain["rows"], counted["rows"], strict=True)
    assert all(a["writable_bytes"] < b["writable_bytes"] for a, b in rows)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("formula",), "--capacity: found nothing"),
        (("formula", "--capacity", "100GB"), "--cycles: found nothing"),
        (("formula", "default"), "--cycles: found nothing"),
        (("formula", "--capacity", "1x", "--cycles", "9"), "--capacity: found '1x'"),
        (("formula", "--capacity", "1GB", "--cycles", "9", "--used", "a"), "--used"),
        (
            ("formula", "--capacity", "1GB", "--cycles", "9", "--used", "1"),
            "--used: found 1",
        ),
        (("formula", "--capacity", "1GB", "--cycles", "9", "--effective"), "--physical"),
        (("formula", "--set", "gc.victim=fifo"), "--set: found without DEVICE"),
        (("formula", "default", "--workload", "zipf"), "no such option: --workload"),
        (("simulate", "default"), "wear.pe-cycles-max: found 0"),
        (("simulate",), "DEVICE: found nothing"),
        (("simulate", "default", "--written", "1TB"), "no such option: --written"),
        (("simulate", "default", "--requests", "9"), "no such option: --requests"),
        (("simulate", "default", "--closeup", "0:9"), "no such option: --closeup"),
        (("simulate", "default", "--write-rate", "x"), "--write-rate: found 'x'"),
        (("simulate", "default", "--json", "/no/such/folder/x"), "/no/such/folder/x: can't be"),
        (("simulate", "--resume", "none.saved"), "none.saved"),
        (("simulate", "--resume", "none.saved", "--seed", "2"), "--seed: found with --resume"),
        (("forecast", "default", "--stop-after", "9"), "no such option: --stop-after"),
        (("forecast", "default", "--measure-share", "1"), "--measure-share: found 1.0"),
        (("forecast",), "missing argument 'DEVICE'"),
        (("smart", "x", "--seed", "2"), "no such option: --seed"),
        (("smart", "x", "--report", "r.html"), "no such option: --report"),
        (("smart", "x", "--json", "/no/such/folder/x"), "/no/such/folder/x: can't be"),
        (("simulat", "default"), "no such command 'simulat'. Did you mean 'simulate'"),
    ],
)
def test_what_does_not_fit_is_refused(command: Cli, arguments: tuple[str, ...], says: str) -> None:
    said = command("lifetime", *arguments)
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(f"error: {says}")


def test_simulate_stop_and_resume(command: Cli, tmp_path: Path) -> None:
    drive = (*LIFE, "--cycles", 8, "--workload", "uniform", "--quiet", "--json")
    whole = command("lifetime", "simulate", "default", *drive, "-").json
    assert whole["ended"] == "worn-out" and whole["years"] is None
    saved, report = tmp_path / "life.saved", tmp_path / "life.html"
    part = command(
        "lifetime", "simulate", "default", *drive, "-", "--stop-after", 100_000, "--checkpoint", saved
    )  # fmt: skip
    assert part.status == 0
    assert part.json["ended"] == "interrupted" and 0 < part.json["budget_used"] < 1
    rest = command(
        "lifetime",
        "simulate",
        "--resume",
        saved,
        "--json",
        "-",
        "--write-rate",
        "1dwpd",
        "--report",
        report,
    ).json
    for key in ("host_pages", "endurance_efficiency", "drive_writes"):
        assert rest[key] == whole[key]
    assert rest["run"]["digest"] == whole["run"]["digest"]
    assert rest["years"] == pytest.approx(rest["drive_writes"] / 365.25)
    # The write that ended it counts as asked for, but brought nothing.
    assert rest["host_bytes"] == (rest["host_pages"] - 1) * 4096
    assert "worn out" in report.read_text(encoding="utf-8")


def test_fast_forward_says_its_error(command: Cli) -> None:
    said = command(
        "lifetime", "forecast", "default", *LIFE, "--cycles", 60, "--precondition", "random",
        "--set", "capacity.utilization=0.7", "--workload", "uniform",
        "--against-full", "--write-rate", "1GB/day",
    )  # fmt: skip
    assert said.status == 0
    assert "cleaning steady" in said.out and "the forecast is off by" in said.out
    figures = command(
        "lifetime", "forecast", "default", *LIFE, "--cycles", 60, "--precondition", "random",
        "--set", "capacity.utilization=0.7", "--workload", "uniform",
        "--against-full", "--json", "-",
    ).json  # fmt: skip
    assert figures["method"] == "extrapolated"
    assert abs(figures["error"]) < 0.08
    assert figures["host_pages"] == figures["forecast"]["host_pages"]
    assert figures["full"]["host_pages"] > figures["forecast"]["measured_pages"]


def test_a_saved_run_without_a_limit_is_refused(command: Cli, tmp_path: Path) -> None:
    saved = tmp_path / "run.saved"
    command(
        "simulate", "default", "--workload", "uniform", "--requests", 20_000, "--stop-after", 9000,
        "--checkpoint", saved,
    )  # fmt: skip
    said = command("lifetime", "simulate", "--resume", saved)
    assert said.status == 2 and "no limit of erases" in said.err


# SMART data ----------------------------------------------------------------------------------------


def smart_of(command: Cli, name: str, *more: object) -> dict[str, object]:
    said = command("lifetime", "smart", SMART / f"made-up-{name}.json", "--json", "-", *more)
    assert said.status == 0, said.err
    return said.json


def test_nvme_by_smartctl(command: Cli) -> None:
    found = smart_of(command, "smartctl-nvme", "--endurance", "600TB")
    # 58,593,750 units of 512,000 bytes in one year, 5 % of the life.
    assert found["host_bytes_written"] == 30e12
    assert found["write_rate_bytes_per_s"] == pytest.approx(30e12 / lifetime.YEAR_S)
    assert found["years_left"] == pytest.approx(19)
    assert found["years_left_min"] == pytest.approx(0.94 / 0.06)
    assert found["years_left_max"] == pytest.approx(0.96 / 0.04)
    assert found["endurance_bytes"] == pytest.approx(600e12)
    assert found["years_to_rating"] == pytest.approx(19)
    assert found["missing"] == []


def test_nvme_by_nvme_cli(command: Cli) -> None:
    found = smart_of(command, "nvme-smart-log")
    assert found["host_bytes_written"] == 1.024e12
    assert (found["years_left"], found["endurance_bytes"]) == (None, None)
    # Less than one percent in 1,000 hours.
    assert found["years_left_min"] == pytest.approx(99_000 / 8766)
    said = command("lifetime", "smart", SMART / "made-up-nvme-smart-log.json")
    assert "more than 11.3 years" in said.out


def test_ata_attributes(command: Cli) -> None:
    found = smart_of(command, "smartctl-ata")
    assert found["host_bytes_written"] == 62_500_000_000 * 512
    assert (found["used"], found["used_from"]) == (pytest.approx(0.1), "177 Wear_Leveling_Count")
    assert found["years_left"] == pytest.approx(18)
    other = smart_of(command, "smartctl-ata-246")
    assert (other["used"], other["used_from"]) == (
        pytest.approx(0.2),
        "202 Percent_Lifetime_Remain",
    )
    assert other["host_bytes_written"] == 16e12
    assert other["write_amplification"] == 2.5


def test_ata_device_statistics_come_first(command: Cli) -> None:
    found = smart_of(command, "smartctl-ata-devstat")
    assert (found["used"], found["host_bytes_written"]) == (0.02, 2e9 * 512)


def test_missing_fields_are_named_with_what_prints_them(command: Cli) -> None:
    said = command("lifetime", "smart", SMART / "made-up-smartctl-ata-bare.json", "--json", "-")
    assert said.status == 0
    assert said.json["host_bytes_written"] == 1000 * 2**25
    # The hours are in attribute 9 where the summary lacks them.
    assert said.json["power_on_hours"] == 17532
    assert said.json["missing"] == [
        {
            "field": "percentage used or a wear attribute",
            "run": "smartctl -j -x DEVICE",
        }
    ]
    assert "note: percentage used or a wear attribute: not in the file; `smartctl -j -x" in said.err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"smartctl": {', "not whole JSON: line 1"),
        ("smartctl 7.4 ...\nSMART/Health", "found text that neither smartctl nor nvme-cli prints"),
        ("[1, 2]", "not SMART data"),
        ('{"a": 1}', "not SMART data"),
        ("[" * 100_000, "nested too deeply"),
        ('{"smartctl": {}, "device": {"protocol": "SCSI"}}', "no attributes and no health log"),
        ('{"smartctl": {}, "device": {"protocol": "USB"}}', "found protocol USB"),
        ('{"smartctl": {}, "device": {"protocol": "NVMe"}}', "no attributes and no health log"),
        ('{"smartctl": {}, "device": {"protocol": "ATA"}}', "says neither how much was written"),
        ('{"smartctl": 3, "device": [1], "ata_smart_attributes": {"table": 5}}', "no attributes"),
        ('{"data_units_written": -1, "percent_used": 1e999}', "says neither"),
    ],
)
def test_files_that_are_no_smart_data(command: Cli, tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "smart.json"
    path.write_text(text)
    said = command("lifetime", "smart", path)
    assert said.status == 2
    assert says in said.err and str(path) in said.err and "hint: " in said.err


def test_other_files(command: Cli, tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    assert "not text in UTF-8" in command("lifetime", "smart", binary).err
    assert "no such file" in command("lifetime", "smart", tmp_path / "none").err
    disk = command("lifetime", "smart", SMART / "made-up-smartctl-disk.json")
    assert disk.status == 2 and "7,200 turns" in disk.err
    refused = command("lifetime", "smart", SMART / "made-up-smartctl-refused.json")
    assert refused.status == 2 and "Permission denied" in refused.err


def test_every_fixture_says_that_it_is_made_up() -> None:
    files = list(SMART.glob("*.json"))
    assert len(files) == 8
    for path in files:
        assert path.name.startswith("made-up-")
        assert json.loads(path.read_text())["comment"].startswith("Made up by hand")


def test_smart_data_from_standard_input() -> None:
    command = (sys.executable, "-m", "flashwright", "lifetime", "smart", "-", "--json", "-")
    text = (SMART / "made-up-smartctl-nvme.json").read_text()
    good = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert (good.returncode, json.loads(good.stdout)["years_left"]) == (0, pytest.approx(19))
    bad = subprocess.run(command, input="{", capture_output=True, text=True, check=False)
    assert bad.returncode == 2
    assert bad.stderr.startswith("error: standard input: not whole JSON: line 1")
