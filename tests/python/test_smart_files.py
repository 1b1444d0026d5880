"""SMART data in other files: logs of vendors, text, tables, several drives, two moments."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli
from flashwright.endurance import smart

HERE = Path(__file__).parent

# --- other files ---


def read(tmp_path: Path, text: str | bytes, name: str = "smart.json") -> smart.Smart:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return smart.read(path)


LOG = {"percent_used": 4, "data_units_written": 40_000_000, "power_on_hours": 10_000}


def test_json_as_tools_and_shells_leave_it(tmp_path: Path) -> None:
    plain = json.dumps(LOG)
    for text in (
        plain.encode("utf-16"),
        f"[sudo] password for me:\n{plain}",
        json.dumps([{"smart_log": LOG, "id_ctrl": {"vid": 1, "mn": "M", "sn": "S"}}]),
        json.dumps({"nvme0": {"health": LOG}}),
        plain.replace("40000000", '"40,000,000"'),
        plain.replace("40000000", '{"hi": 0, "lo": 40000000}'),
        plain.replace("{", '{"x": -nan, "y": [inf, "nan"], "z": NaN, ', 1),
    ):
        found = read(tmp_path, text)
        assert (found.used, found.bytes_written, found.power_on_hours) == (0.04, 20.48e12, 10_000)


def test_an_endurance_group_counts_in_gigabytes(tmp_path: Path) -> None:
    group = {"percent_used": 4, "data_units_written": 20_480, "media_units_written": 30_720}
    found = read(tmp_path, json.dumps(group))
    assert found.bytes_written == 20.48e12 and found.write_amplification == pytest.approx(1.5)


def test_vendor_logs(tmp_path: Path) -> None:
    ocp = {
        "physical_media_units_written": {"hi": 0, "lo": 30 * 10**12},
        "endurance_estimate": 3 * 10**15,
    }
    both = read(tmp_path, json.dumps(LOG) + json.dumps(ocp))
    assert both.used == 0.04 and both.write_amplification == pytest.approx(30 / 20.48)
    assert read(tmp_path, json.dumps(ocp)).used == pytest.approx(0.01)
    micron = {
        "OCP SMART Cloud Health Log: 0xC0": [{"Physical Media Units Written": "0x1B48EB57E000"}]
    }
    assert read(tmp_path, json.dumps(micron)).flash_bytes_written == 30 * 10**12
    wdc = {
        "Lifetime NAND Writes": 300,
        "Lifetime User Writes": 200,
        "Percentage of P/E Cycles Remaining": 90,
    }
    assert read(tmp_path, json.dumps(wdc)).write_amplification == 1.5
    wdc = {"NAND Bytes Written Hi": 0, "NAND Bytes Written Lo": 5 * 10**12}
    assert read(tmp_path, json.dumps(wdc)).flash_bytes_written == 5e12
    solidigm = {
        "Solidigm SMART log": "nvme0",
        "Device stats": {"nand_bytes_written": {"raw": 3000}, "host_bytes_written": {"raw": 2000}},
    }
    found = read(tmp_path, json.dumps(solidigm))
    assert (found.bytes_written, found.write_amplification) == (2000 * 2**25, 1.5)
    other = {"Dapustor Smart log": "nvme0", "Device stats": solidigm["Device stats"]}
    # The unit of other makers is not known, the ratio is.
    with pytest.raises(smart.SmartError):
        read(tmp_path, json.dumps(other))
    assert read(tmp_path, json.dumps([LOG])).write_amplification is None
    assert read(tmp_path, json.dumps({"a": LOG, "b": other})).write_amplification == 1.5


TEXT = """smartctl 7.4 2023-08-01 r5530 [x86_64-linux-6.1] (local build)
=== START OF INFORMATION SECTION ===
Model Family:     Phison Driven SSDs
Device Model:     Made up 240GB
Serial Number:    --
User Capacity:    240,057,409,536 bytes [240 GB]
Sector Size:      512 bytes logical/physical
Rotation Rate:    Solid State Device
Device is:        In smartctl database 7.3/5610
Local Time is:    Sat Feb 22 07:31:25 2025 CET

ID# ATTRIBUTE_NAME          FLAGS    VALUE WORST THRESH FAIL RAW_VALUE
  9 Power_On_Hours          -O--CK   100   100   000    -    12000
173 MaxAvgErase_Ct          0x0012   100   100   000    Old_age   Always       -       888 (Average 808)
231 SSD_Life_Left           -O--CK   100   100   000    -    71
241 Lifetime_Writes_GiB     -O--CK   100   100   ---    -    40000

0x01  0x018  6     83886080000  ---  Logical Sectors Written
"""

TEXT_SAS = """=== START OF INFORMATION SECTION ===
Vendor:               SEAGATE
Product:              XS3840SE70084
User Capacity:        3,840,755,982,336 bytes [3.84 TB]
Rotation Rate:        Solid State Device
Percentage used endurance indicator: 7%
Accumulated power on time, hours:minutes 21000:05
           ECC          rereads/    errors   algorithm      processed    uncorrected
write:         0        0         0         0          0     812345.678           0
"""


def test_text(tmp_path: Path) -> None:
    found = read(tmp_path, TEXT, "smart.txt")
    assert found.used == pytest.approx(0.29) and found.bytes_written == 40_000 * 2**30
    assert (found.model, found.capacity, found.power_on_hours) == (
        "Made up 240GB",
        240_057_409_536,
        12_000,
    )
    assert found.notes == ()
    grouped = TEXT.replace("240,057,409,536", "240\xa0057\xa0409\xa0536").encode("latin-1")
    assert read(tmp_path, grouped).capacity == 240_057_409_536
    sas = read(tmp_path, TEXT_SAS)
    assert (sas.used, sas.bytes_written, sas.power_on_hours) == (0.07, 812_345.678e9, 21_000)
    # Without the head, as of `smartctl -A`.
    assert read(tmp_path, TEXT_SAS[TEXT_SAS.index("Percentage") :]).used == 0.07
    assert read(tmp_path, TEXT[TEXT.index("ID#") :]).used == pytest.approx(0.29)
    nvme = "Percentage Used:    12%\nData Units Written:  682,594,316 [349 TB]\nPower On Hours: 1,234\n"
    assert read(tmp_path, nvme).bytes_written == 682_594_316 * 512_000


def test_several_drives(tmp_path: Path, command: Cli) -> None:
    path = tmp_path / "drives.json"
    one, two = (LOG | {"serial_number": s} for s in "AB")
    whole = [
        {"smartctl": {}, "serial_number": s, "nvme_smart_health_information_log": LOG} for s in "AB"
    ]
    path.write_text(json.dumps(whole))
    found = command("lifetime", "smart", path, "--json", "-").json
    assert [each["serial"] for each in found["drives"]] == ["A", "B"]
    assert "4.0 %" in command("lifetime", "smart", path).out
    with pytest.raises(smart.SmartError, match=r"found 2 drives \(A, B\), expected one"):
        smart.read(path)
    path.write_text(json.dumps([one, two]))
    assert len(smart.read_drives([path])) == 2
    path.write_text(json.dumps([LOG, LOG]))
    assert len(smart.read_drives([path])) == 2
    said = command("lifetime", "smart", path, path)
    assert said.status == 2 and "found several drives without serial numbers" in said.err
    # A disk among them is left out, and said.
    disk = {"smartctl": {}, "device": {"protocol": "ATA"}, "rotation_rate": 7200}
    for text in (json.dumps([disk, whole[0]]), json.dumps(disk) + "\n" + json.dumps(whole[0])):
        path.write_text(text)
        said = command("lifetime", "smart", path)
        assert said.status == 0 and "left out beside it: found a disk of 7,200 turns" in said.err
    path.write_text(json.dumps([disk, disk]))
    assert "error: " in command("lifetime", "smart", path).err


# --- two moments ---


def test_two_readings_give_rates(tmp_path: Path, command: Cli) -> None:
    """100 days apart: 10.24 TB written, 3 % used, 15.36 TB to the flash."""
    files = []
    for name, day, units, used, media in (
        ("old", 0, 20e6, 1, 15e12),
        ("new", 100, 40e6, 4, 30.36e12),
    ):
        log = {"percentage_used": used, "data_units_written": units, "power_on_hours": 1000 + day}
        whole = {
            "smartctl": {},
            "serial_number": "S",
            "local_time": {"time_t": 10**9 + day * 86400},
        }
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(whole | {"nvme_smart_health_information_log": log}))
        ocp = tmp_path / f"{name}-ocp.json"
        ocp.write_text(json.dumps({"physical_media_units_written": media}))
        files += [path, ocp]
    # The newer file first: they are sorted.
    found = command("lifetime", "smart", *files[2:], *files[:2], "--json", "-").json["interval"]
    assert (found["days"], found["power_on_hours"], found["host_bytes_written"]) == (
        100,
        100,
        10.24e12,
    )
    assert found["used"] == pytest.approx(0.03) and found["write_amplification"] == pytest.approx(
        1.5
    )
    assert found["years_left"] == pytest.approx(0.96 / 0.03 * 100 / 365.25)
    assert found["years_left_min"] == pytest.approx(0.96 / 0.04 * 100 / 365.25)
    assert found["years_left_max"] == pytest.approx(0.96 / 0.02 * 100 / 365.25)
    said = command("lifetime", "smart", *files)
    assert "100.0 days, 100 hours under power" in said.out and "102.4 GB a day" in said.out


def test_readings_of_two_drives_or_that_go_back(tmp_path: Path, command: Cli) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps(LOG))
    new.write_text(json.dumps(LOG | {"power_on_hours": 11_000, "data_units_written": 30_000_000}))
    said = command("lifetime", "smart", old, new)
    assert said.status == 2 and "data written: found 1.536e+13 after 2.048e+13" in said.err


def test_daily_readings_in_a_table(tmp_path: Path, command: Cli) -> None:
    drive_columns, raws = (
        "date,serial_number,model,capacity_bytes,failure",
        "smart_231_raw,smart_241_raw",
    )
    head = f"{drive_columns},smart_9_raw,smart_231_normalized,{raws}"
    model = "Seagate BarraCuda 120 SSD ZA250CM10003"
    path = tmp_path / "2024.csv"
    lines = [
        head,
        f"2024-01-01,X1,{model},250059350016,0,1000,99,,1000",
        "2024-01-01,D1,ST4000DM000,4000787030016,0,1000,,,123456",
        f"2024-04-10,X1,{model},250059350016,0,3400,96,,4000",
    ]
    path.write_text("\n".join(lines))
    found = command("lifetime", "smart", path, "--json", "-").json
    assert found["serial"] == "X1" and found["host_bytes_written"] == 4000 * 2**30
    between = found["interval"]
    assert (between["days"], between["host_bytes_written"]) == (100, 3000 * 2**30)
    assert between["used"] == pytest.approx(0.03)
    path.write_text("\n".join([head, lines[2]]))
    said = command("lifetime", "smart", path)
    assert (
        said.status == 2 and "whose attributes are known by their numbers (ST4000DM000)" in said.err
    )


def test_anything_in_the_place_of_a_value_is_no_crash() -> None:
    """Every value of every kind of file is replaced by odd ones: a figure, nothing, or one error."""
    odd: tuple[Any, ...] = (
        None,
        -1,
        1e308,
        2**200,
        "x",
        "",
        [],
        {},
        True,
        [[1]],
        {"raw": {}},
        float("nan"),
        "9" * 50,
    )
    whole = [
        json.loads(path.read_text())
        for path in (HERE / "cases" / "smart").glob("*.json")
        if "nan}" not in path.read_text()
    ]
    for value in whole:
        for path in places(value):
            for each in odd:
                with contextlib.suppress(smart.SmartError):
                    found = smart.parse(put(value, path, each))
                    assert found.used is None or 0 <= found.used <= 2.55
                    assert found.power_on_hours is None or 0 <= found.power_on_hours < 351_000


def places(value: Any) -> Iterator[tuple[Any, ...]]:
    """The path to each value within a value."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield (key,)
            yield from ((key, *inner) for inner in places(value[key]))


def put(value: Any, path: tuple[Any, ...], each: object) -> Any:
    copy = value.copy()
    copy[path[0]] = each if len(path) == 1 else put(value[path[0]], path[1:], each)
    return copy
