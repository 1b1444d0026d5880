"""SMART data that were read wrongly once: wear in the raw value, other names, other files."""

from pathlib import Path
from typing import Any

import pytest

from conftest import Cli
from flashwright.endurance import smart
from flashwright.probing import costs

FILES = Path(__file__).parent / "cases" / "smart"

# Used, hours, bytes from the host, write amplification, as read by eye; None is not known.
RIGHT: dict[str, tuple[float | None, float | None, float | None, float | None]] = {
    "perc-raw.json": (0.04, 800, 30_000 * 2**25, 136_000 / 30_000),
    "rawlife.json": (0.29, 12_000, 40_000 * 2**30, None),
    "atp.json": (0.10, 20_000, 10.24e12, 3.0),
    "cloudspeed.json": (0.35, 20_000, 153.6e12, None),
    "hours-raw.json": (0.03, 10_000, 500_000 * 2**25, None),
    "nytro.json": (0.12, 12_000, 90e12, 150 / 90),
    "slc246.json": (0.03, 2_000, None, None),
    "wrd.json": (None, 12_000, 40_000 * 2**30, None),
    "array.json": (0.04, 4_221, 7_000_791 * 512_000, None),
    "backblaze.csv": (None, 21_000, 45_678 * 2**30, None),
    "intel-add.json": (0.02, None, 2_890_000 * 2**25, 421 / 289),
    "nvme-comma.json": (0.04, 4_221, 23_665_821 * 512_000, None),
    "ocp.json": (None, None, None, None),
    "sas.json": (0.07, 21_000 + 5 / 60, 812_345.678e9, None),
    "smartlog.txt": (0.0, 742, 64_663_716 * 512_000, None),
}


def close(value: float | None) -> Any:
    return None if value is None else pytest.approx(value)


@pytest.mark.parametrize("name", list(RIGHT))
def test_figures(name: str) -> None:
    found = smart.read(FILES / name)
    used, hours, written, amplification = RIGHT[name]
    assert found.used == close(used)
    assert found.power_on_hours == close(hours)
    assert found.bytes_written == close(written)
    assert found.write_amplification == close(amplification)
    for figure in ("used", "power_on_hours", "bytes_written", "write_amplification"):
        assert (found.source(figure) is None) == (getattr(found, figure) is None)


def test_every_file_of_the_cases_is_judged() -> None:
    assert {path.name for path in FILES.iterdir()} == {*RIGHT, "idctrl.json"}


def test_wear_in_the_raw_value_is_named(command: Cli) -> None:
    said = command("lifetime", "smart", FILES / "rawlife.json")
    assert (
        "29.0 % (231 SSD_Life_Left: raw value, % left: its normalised value stands at 100)"
        in said.out
    )
    assert "3.4 years of power-on time at this rate (3.2 to 3.5" in said.out
    found = command("lifetime", "smart", FILES / "rawlife.json", "--json", "-").json
    assert found["sources"]["used"]["field"] == found["used_from"] == "231 SSD_Life_Left"


def test_consent_reads_the_same(command: Cli) -> None:
    known = costs.Endurance.of(None, FILES / "rawlife.json", 240 * 10**9)
    assert known.used == pytest.approx(0.29)
    assert known.bytes_rated == pytest.approx(40_000 * 2**30 / 0.29)
    said = command("probe", "sim:ssd-b", "--plan", "--quick", "--smart", FILES / "rawlife.json")
    assert "29 % used before" in said.out
    # Of a drive whose wear is not known, none is said.
    assert costs.Endurance.of(None, FILES / "wrd.json", 240 * 10**9).used is None


def test_identify_data_alone_say_nothing_of_wear(command: Cli) -> None:
    said = command("lifetime", "smart", FILES / "idctrl.json")
    assert said.status == 2
    assert "says neither how much was written nor how worn it is" in said.err
    assert "hint: as root: `nvme smart-log -o json DEVICE`" in said.err
    # Beside a health log they name the drive.
    both = command(
        "lifetime", "smart", FILES / "idctrl.json", FILES / "nvme-comma.json", "--json", "-"
    ).json
    assert (both["model"], both["capacity_bytes"]) == ("SAMSUNG", 1_920_383_410_176)
    assert both["host_bytes_written"] == 23_665_821 * 512_000


def test_impossible_write_amplification_of_two_logs_is_refused(command: Cli) -> None:
    said = command("lifetime", "smart", FILES / "ocp.json", FILES / "nvme-comma.json")
    assert said.status == 0
    assert "write amplification   not known" in said.out
    assert "a write amplification of 1e+02 is impossible, so one of the units is wrong" in said.err
