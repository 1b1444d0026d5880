"""SMART data: every family of smartmontools' data base, the rules, what contradicts and what is impossible."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flashwright.endurance import smart
from flashwright.endurance.smart import names
from flashwright.endurance.smart.left import left_by, used_by

HERE = Path(__file__).parent / "smart"
TRUE = {"used": 0.37, "hours": 10_000, "written": 20e12, "flash": 40e12, "cycles": 3000}
CAPACITY = 500_107_862_016


def families() -> Iterator[tuple[str, list[dict[str, str]]]]:
    found: dict[str, list[dict[str, str]]] = {}
    with (HERE / "families.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["family"], []).append(row)
    yield from found.items()


FAMILIES = dict(families())


def row(number: int, name: str, value: int, raw: float, shown: str | None = None) -> dict[str, Any]:
    text = str(int(raw)) if shown is None else shown
    return {"id": number, "name": name, "value": value, "raw": {"value": int(raw), "string": text}}


def drive(*table: dict[str, Any], **more: object) -> dict[str, Any]:
    """Smartctl's JSON of a SATA drive."""
    moving = row(1, "Raw_Read_Error_Rate", 95, 0)
    return {
        "smartctl": {},
        "device": {"protocol": "ATA"},
        "user_capacity": {"bytes": CAPACITY},
        "logical_block_size": 512,
        "rotation_rate": 0,
        "ata_smart_attributes": {"table": [moving, *table]},
    } | more


def make_attribute(entry: dict[str, str], *, still: bool) -> dict[str, Any] | None:
    """An attribute of a drive as the truth above has it; None if it would say nothing."""
    kind, number, name = entry["kind"], int(entry["id"]), entry["name"]
    unit = int(entry["unit"] or 0) or 512
    percent, mean = round(100 * TRUE["used"]), TRUE["used"] * TRUE["cycles"]
    value = 100 if still else 100 - percent
    if kind in ("left", "left-used"):
        left = percent if kind == "left-used" else 100 - percent
        packed = entry["format"] in ("raw8", "hex56")
        if packed and still:
            return None
        return row(number, name, value, left, "0 0 0 0 0 63" if packed else None)
    if kind == "left-fine":
        return row(number, name, 100, 6300)
    if kind == "used":
        return row(number, name, value, percent)
    if kind == "wear":
        return None if still else row(number, name, value, 0)
    if kind in ("erases", "erases-packed"):
        packed_mean = (int(mean) << 16) + 1200
        return row(number, name, 100, packed_mean if kind == "erases-packed" else mean, None)
    if kind == "cycles":
        return row(number, name, 100, TRUE["cycles"])
    if kind == "hours":
        milliseconds = 1_234_567 << 32 if entry["format"] == "msec24hour32" else 0
        seconds = entry["format"] == "sec2hour"
        if seconds:
            return row(number, name, 100, TRUE["hours"] * 3600, f"{TRUE['hours']}h+00m+00s")
        shown = f"{TRUE['hours']}h+20m+34.567s" if milliseconds else None
        return row(number, name, 100, TRUE["hours"] + milliseconds, shown)
    if kind == "written":
        return (
            row(number, name, 100, TRUE["written"] / unit)
            if entry["unit"]
            else row(number, name, 100, 5)
        )
    if kind == "flash" and not entry["unit"]:
        return row(number, name, 100, 5)
    if kind == "flash":
        slc = "SLC" in name
        return row(number, name, 100, 0 if slc else TRUE["flash"] / unit)
    if kind in ("host-pages", "own-pages"):
        return row(number, name, 100, 1_000_000)
    return row(number, name, 100 if kind != "none" else 0, 0)


@pytest.mark.parametrize("still", [False, True], ids=["normalised", "raw"])
@pytest.mark.parametrize("family", list(FAMILIES))
def test_every_family_of_the_data_base(family: str, still: bool) -> None:
    """A drive of each family, 37 % used: each figure is right or not known."""
    entries = FAMILIES[family]
    kinds = {entry["kind"] for entry in entries}
    table = [
        made for entry in entries if entry["id"] and (made := make_attribute(entry, still=still))
    ]
    if still:
        table = [each | {"value": 100} for each in table]
    value = drive(*table, model_family=family, in_smartctl_database=True)
    if still:
        del value["ata_smart_attributes"]["table"][0]
    counted = {entry["kind"] for entry in entries if entry["unit"]}
    says = kinds & {"left", "left-used", "left-fine", "used"} or kinds >= {"erases", "cycles"}
    packed = all(e["format"] in ("raw8", "hex56") for e in entries if e["kind"] == "left")
    if still and kinds & {"left"} and packed and not kinds & {"used", "left-fine", "left-used"}:
        says = kinds >= {"erases", "cycles"}
    if not (says or counted & {"written", "flash"} or ("wear" in kinds and not still)):
        with pytest.raises(smart.SmartError, match="says neither"):
            smart.parse(value)
        return
    found = smart.parse(value)
    if says or ("wear" in kinds and not still):
        assert found.used == pytest.approx(TRUE["used"], abs=0.005), found
    elif "left-used" not in kinds and still and names.counts_down(family) and "wear" in kinds:
        assert found.used in (None, 0.0)
    else:
        assert found.used is None, found
    assert found.power_on_hours == (pytest.approx(10_000, abs=1) if "hours" in kinds else None)
    if "written" in counted:
        assert found.bytes_written == pytest.approx(TRUE["written"], rel=0.01), found
    else:
        assert found.bytes_written is None
    counts_pages = "host-pages" in kinds and "own-pages" in kinds
    if counts_pages or ("flash" in counted and "written" in counted):
        assert found.write_amplification == pytest.approx(2, rel=0.01)
    else:
        assert found.write_amplification is None
    assert not any("contradict" in note for note in found.notes), found.notes


@pytest.mark.parametrize("family", list(FAMILIES))
def test_meanings_are_those_of_the_table(family: str) -> None:
    for entry in FAMILIES[family]:
        if not entry["id"]:
            continue
        means = names.meaning(entry["name"], int(entry["id"]), family)
        assert means is not None, entry
        assert (means.kind, "" if means.unit is None else str(means.unit)) == (
            entry["kind"],
            entry["unit"],
        )
        # A unit in the name is the unit.
        stated = re.search(r"_(32MiB|MiB|1?GiB|GB|Gb)(_|$)", entry["name"])
        sizes = {
            "32MiB": 2**25,
            "MiB": 2**20,
            "GiB": 2**30,
            "1GiB": 2**30,
            "GB": 10**9,
            "Gb": 10**9,
        }
        if stated and means.kind != "none":
            assert means.unit == sizes[stated[1]], entry


def test_the_data_base_is_covered() -> None:
    assert len(FAMILIES) == 97
    assert names.source().startswith("drivedb.h of smartmontools 7.5 of 2026-08-19")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        # Words alone would take each for something else.
        ("Lifetime_Nand_Writes", "flash"), ("Wear_Range_Delta", "none"), ("SLC_Writes_32MiB", "flash"),
        ("Sectors_Written_to_NAND", "flash"), ("Lifetime_Wts_Frm_Hst_GB", "written"),
        ("Lifetime_Wts_To_Flsh_GB", "flash"), ("Lifetime_Retried_Blk_Ct", None), ("Lifetime_UECC_Ct", None),
        ("Erase_Fail_Count", None), ("Write_Error_Rate", None), ("Spare_Blocks_Remaining", None),
        ("Remaining_Energy_Storg", None), ("Sys_Percent_Life_Remain", "none"), ("Total_LBAs_Read", None),
        # Names that the data base does not have (yet).
        ("Host_Writes_64GiB", None), ("Host_Written_MiB", "written"), ("NAND_Written_32MiB", "flash"),
        ("Percent_Endurance_Used", "used"), ("Endurance_Remaining", "left"), ("Spare_Life_Left", None),
        ("Capacitor_Life_Left", None), ("Total_SLC_Writes_GiB", None), ("High_Fly_Writes", None),
    ],
)  # fmt: skip
def test_names(name: str, kind: str | None) -> None:
    means = names.meaning(name, 241)
    assert (None if means is None else means.kind) == kind


@pytest.mark.parametrize(
    ("value", "raw", "share"),
    [
        (88, 88, 0.12), (83, 17, 0.17), (97, 0, 0.03), (95, 123_456, 0.05), (100, 71, 0.29), (0, 71, 0.29),
        (100, 100, 0.0), (253, 64, 0.36), (None, 64, 0.36), (100, None, 0.0), (100, 0, 0.0), (0, 0, 1.0),
        (0, 100, 1.0), (1, 99, 0.99), (100, 1, None), (100, 99, 0.01),
    ],
)  # fmt: skip
def test_life_left(value: float | None, raw: float | None, share: float | None) -> None:
    assert left_by(value, raw)[0] == (None if share is None else pytest.approx(share))


def test_a_column_that_never_moved_says_nothing() -> None:
    assert left_by(100, 0, still=True)[0] is None and left_by(0, 0, still=True)[0] is None
    assert left_by(0, 100, still=True)[0] == 0.0
    # 1 % left or 1 % used: the erases decide.
    assert left_by(100, 1, rated=0.01)[0] == 0.01
    assert left_by(100, 1, rated=0.98)[0] == 0.99
    assert (
        used_by(100, 180)[0] == 1.8 and used_by(0, 0)[0] == 0.0 and used_by(None, None)[0] is None
    )


def test_a_counter_that_moved_goes_before_one_that_did_not() -> None:
    """What smartctl 7.5 makes of the normalised value is no witness, and device statistics may stand too."""
    left = row(231, "SSD_Life_Left", 100, 71)
    assert smart.parse(drive(left, endurance_used={"current_percent": 0})).used == pytest.approx(
        0.29
    )
    name = "Percentage Used Endurance Indicator"
    pages = {"pages": [{"table": [{"name": name, "value": 0, "flags": {"valid": True}}]}]}
    found = smart.parse(drive(left, ata_device_statistics=pages))
    assert found.used == pytest.approx(0.29)
    assert found.notes == (
        f"{name} says 0 % used, 231 SSD_Life_Left 29 %: the one that has moved is taken",
    )
    other = row(202, "Percent_Lifetime_Used", 100, 60)
    assert "they contradict each other" in smart.parse(drive(left, other)).notes[0]


HOURS = [
    ("Power_On_Hours", 2**24 * 5 + 4321, None, 4321), ("Power_On_Hours", 167031278144165, "2725 (151 234 0)", 2725),
    ("Power_On_Hours_and_Msec", (3_599_000 << 32) + 4321, None, 4321), ("Power_On_Minutes", 259_260, None, 4321),
    ("Power_On_Seconds", 4321 * 3600, None, 4321), ("Power_On_Half_Minutes", 4321 * 120, None, 4321),
    ("Power_On_Hours", 259_260, "4321h+00m", 4321), ("Power_On_Hours", 600_000, "600000", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "raw", "shown", "hours"), HOURS)
def test_packed_hours(name: str, raw: int, shown: str | None, hours: float | None) -> None:
    nine = row(9, name, 100, raw, shown)
    if shown is None:
        del nine["raw"]["string"]
    found = smart.parse(drive(nine, row(231, "SSD_Life_Left", 90, 90)))
    assert found.power_on_hours == hours
    assert hours is not None or "600,000 power-on hours are impossible" in found.notes[0]


def statistics(sectors: int) -> dict[str, Any]:
    return {"pages": [{"table": [{"name": "Logical Sectors Written", "value": sectors}]}]}


def test_units_of_data_written() -> None:
    """A name that smartctl gives to unknown drives has a unit only where something confirms it."""
    hours = {"power_on_time": {"hours": 20_000}}
    lbas = row(241, "Total_LBAs_Written", 100, 45_678)
    found = smart.parse(drive(lbas, row(231, "SSD_Life_Left", 90, 90), **hours))
    assert found.bytes_written is None and found.endurance_bytes is None
    assert "241 Total_LBAs_Written: its unit is not known: 23.39 MB in sectors" in found.notes[0]
    assert "49.05 TB in GiB" in found.notes[0] and "1.533 TB in 32 MiB" in found.notes[0]
    # Device statistics confirm GiB; they say the same, so that nothing is noted.
    same = drive(lbas, ata_device_statistics=statistics(45_678 * 2**21), **hours)
    assert smart.parse(same).bytes_written == 45_678 * 2**30 and smart.parse(same).notes == ()
    # A count that is the same as that of an attribute with a unit has that unit.
    dell = drive(lbas, row(225, "Host_Writes_32MiB", 100, 45_678), **hours)
    assert smart.parse(dell).bytes_written == 45_678 * 2**25 and smart.parse(dell).notes == ()
    unnamed = drive(lbas, row(225, "Unknown_SSD_Attribute", 100, 45_678), **hours)
    assert smart.parse(unnamed).bytes_written == 45_678 * 2**25
    # Nothing confirms it: that is said.
    apart = smart.parse(drive(lbas, row(225, "Host_Writes_32MiB", 100, 777_777), **hours))
    assert apart.bytes_written == 777_777 * 2**25
    assert "they contradict each other in any usual unit" in apart.notes[0]


def test_statistics_that_count_in_32_bits() -> None:
    total = 3_218_911 * 2**25
    lbas = row(241, "Total_LBAs_Written", 100, 3_218_911)
    value = drive(lbas, ata_device_statistics=statistics(total // 512 % 2**32))
    found = smart.parse(value)
    assert found.bytes_written == total
    assert "are what is left after counting past 2^32 sectors" in found.notes[0]


GIB = "Host_Writes_GiB"
IMPOSSIBLE = "impossible, so one of the units is wrong"


@pytest.mark.parametrize(
    ("table", "missing", "says"),
    [
        # A whole life of a tenth of a fill; 700 MB/s for a year over a link of 600; 5,000 mean erases and one fill
        # written, and the reverse; less to the flash than from the host, and a hundred times as much.
        ([row(231, "SSD_Life_Left", 50, 50), row(241, GIB, 100, 25)], None, "less than one fill"),
        ([row(9, "Power_On_Hours", 99, 8766), row(241, GIB, 99, 20_600_000)], "bytes_written", "the link"),
        ([row(167, "Average_Erase_Count", 99, 5000), row(241, GIB, 99, 466)], "bytes_written", "too high"),
        ([row(167, "Average_Erase_Count", 99, 10), row(241, GIB, 99, 93_132)], "bytes_written", "too low"),
        ([row(233, "Flash_Writes_GiB", 99, 100), row(241, GIB, 99, 900)], "write_amplification", IMPOSSIBLE),
        ([row(233, "Flash_Writes_GiB", 99, 90_000), row(241, GIB, 99, 800)], "write_amplification", IMPOSSIBLE),
    ],
)  # fmt: skip
def test_impossible_figures(table: list[dict[str, Any]], missing: str | None, says: str) -> None:
    found = smart.parse(drive(*table, row(202, "Percent_Lifetime_Used", 99, 50)))
    assert missing is None or getattr(found, missing) is None
    assert found.endurance_bytes is None or missing == "write_amplification"
    assert any(says in note for note in found.notes), found.notes


def test_drives_that_compress_may_write_less() -> None:
    table = row(233, "NAND_GiB_Written", 99, 500), row(241, "Lifetime_Writes_GiB", 99, 900)
    found = smart.parse(drive(*table, model_family="SandForce Driven SSDs"))
    assert found.write_amplification == pytest.approx(5 / 9)
