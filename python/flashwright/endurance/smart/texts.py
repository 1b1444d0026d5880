"""SMART data as text: what smartctl and nvme-cli print without -j, and tables of daily readings."""

from __future__ import annotations

import csv
import datetime
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flashwright.endurance.smart.ata import attribute
from flashwright.endurance.smart.facts import amount, count, key_of

__all__ = ["from_table", "from_text", "is_table"]

_SECTION = "=== START OF INFORMATION SECTION ==="
_ATTRIBUTE = re.compile(
    r"\s*(?P<id>[0-9]{1,3}) (?P<name>\S+)\s+(?:0x[0-9a-f]{4}|[POSRCK-]{6})\s+(?P<value>[0-9]{3}|---)\s+"
    r"(?:[0-9]{3}|---)\s+(?:[0-9]{3}|---)\s+(?:(?:Pre-fail|Old_age)\s+\S+\s+)?\S+\s+(?P<raw>\S.*?)\s*"
)
_STATISTIC = re.compile(
    r"0x[0-9a-f]{2}\s+0x[0-9a-f]{3}\s+[0-9]\s+(?P<value>[0-9]+)\s+\S{3}\s+(?P<name>\S.*?)\s*"
)
_LINE = re.compile(r"\s*(?P<name>[^:=]{1,60}?)\s*[:=]\s*(?P<value>\S.*?)?\s*")
_NUMBER = re.compile(r"[0-9][0-9,.' \u00a0\u202f\u2019?\ufffd-]*[0-9]|[0-9]")


def from_text(text: str) -> Iterator[dict[str, Any]]:
    """The drives in what smartctl or nvme-cli printed, in the shape of their JSON.

    Parameters
    ----------
    text : str
        The output, of one drive or of several.
    """
    parts = text.split(_SECTION)
    for part in parts[1:]:
        yield _smartctl(part)
    # Without its head, as of `smartctl -A`.
    if len(parts) == 1 and (
        "endurance indicator:" in text or any(map(_ATTRIBUTE.fullmatch, text.splitlines()))
    ):
        yield _smartctl(text)
    elif len(parts) == 1:
        log = _nvme(text)
        if log:
            yield log


def _leading(value: str) -> float | None:
    """The number that a text begins with."""
    found = _NUMBER.match(value)
    return None if found is None else count(found[0].rstrip())


def _nvme(text: str) -> dict[str, Any]:
    log: dict[str, float] = {}
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        number = None if found is None else _leading(found["value"] or "")
        if found is not None and number is not None:
            log.setdefault(key_of(found["name"]), number)
    return log


def _smartctl(text: str) -> dict[str, Any]:
    table: list[dict[str, Any]] = []
    statistics: dict[str, int] = {}
    lines: dict[str, str] = {}
    for line in text.splitlines():
        row, statistic, entry = (
            pattern.fullmatch(line) for pattern in (_ATTRIBUTE, _STATISTIC, _LINE)
        )
        if row is not None:
            raw = row["raw"]
            number = (
                int(raw, 16) if re.fullmatch(r"0x[0-9a-f]{1,16}", raw) else count(raw.split(" ")[0])
            )
            value = None if row["value"] == "---" else int(row["value"])
            table.append(attribute(int(row["id"]), row["name"], value, number, raw))
        elif statistic is not None:
            statistics.setdefault(statistic["name"], int(statistic["value"][:30]))
        elif entry is not None and entry["value"]:
            lines.setdefault(key_of(entry["name"]), entry["value"])
    drive: dict[str, Any] = {"smartctl": {}, "device": {}}
    model = next(
        (lines[name] for name in ("device_model", "model_number", "product") if name in lines), None
    )
    if model is not None and "vendor" in lines and "product" in lines:
        model = f"{lines['vendor']} {model}"
    drive["model_name"] = model
    serial = lines.get("serial_number", "")
    drive["serial_number"] = serial if re.search(r"\w", serial) else None
    if "model_family" in lines:
        drive["model_family"] = lines["model_family"]
    drive["in_smartctl_database"] = lines.get("device_is", "").startswith("In ")
    for name in ("user_capacity", "namespace_1_size_capacity", "total_nvm_capacity"):
        if name in lines and "user_capacity" not in drive:
            drive["user_capacity"] = {"bytes": _leading(lines[name])}
    sectors = lines.get(
        "sector_size", lines.get("sector_sizes", lines.get("logical_block_size", ""))
    )
    drive["logical_block_size"] = _leading(sectors)
    turns = lines.get("rotation_rate", "")
    drive["rotation_rate"] = 0 if turns.startswith("Solid") else _leading(turns)
    drive["local_time"] = {"time_t": _time(lines.get("local_time_is", ""))}
    said = [{"string": line} for line in text.splitlines() if "ermission denied" in line]
    drive["smartctl"] = {"messages": said}
    if "data_units_written" in lines:
        drive["nvme_smart_health_information_log"] = _nvme(text)
    elif table or statistics:
        drive["device"] = {"protocol": "ATA"}
        drive["ata_smart_attributes"] = {"table": table}
        drive["ata_device_statistics"] = {
            "pages": [{"table": [{"name": n, "value": v} for n, v in statistics.items()]}]
        }
    else:
        drive |= _sas(text, lines)
    return drive


def _sas(text: str, lines: Mapping[str, str]) -> dict[str, Any]:
    drive: dict[str, Any] = {"device": {"protocol": "SCSI"}}
    used = lines.get("percentage_used_endurance_indicator")
    if used is not None:
        drive["scsi_percentage_used_endurance_indicator"] = _leading(used)
    # The sixth column of the error counter log, in 10^9 bytes.
    row = re.search(r"^write:\s+(?:[0-9]+\s+){5}([0-9]+\.[0-9]+)\s", text, re.MULTILINE)
    if row is not None:
        drive["scsi_error_counter_log"] = {"write": {"gigabytes_processed": row[1]}}
    time = re.search(r"(?:hours:minutes|powered up = )\s*([0-9]{1,9})[:.]([0-9]{1,2})", text)
    if time is not None:
        drive["power_on_time"] = {"hours": int(time[1])}
    return drive


def _time(text: str) -> float | None:
    """Seconds since 1970 of a local time, whose zone is not known."""
    found = re.match(r"\w{3} (\w{3} +[0-9]{1,2} [0-9:]{8} [0-9]{4})", text)
    if found is None:
        return None
    try:
        at = datetime.datetime.strptime(found[1], "%b %d %H:%M:%S %Y")
    except ValueError:
        return None
    return at.replace(tzinfo=datetime.UTC).timestamp()


def is_table(text: str) -> bool:
    """Whether a text is a table of daily readings, with columns such as ``smart_9_raw``."""
    head = text.partition("\n")[0]
    return "," in head and bool(re.search(r"\bsmart_[0-9]+_raw\b", head))


def from_table(text: str, wanted: Callable[[str | None], bool]) -> Iterator[dict[str, Any]]:
    """The readings in a table as Backblaze publishes them, in the shape of smartctl's JSON.

    Parameters
    ----------
    text : str
        A line a drive and day.
    wanted : callable
        Whether a model is read; most lines of such tables are of disks.
    """
    for row in csv.DictReader(text.splitlines()):
        if not wanted(row.get("model")):
            continue
        table = []
        columns = (re.fullmatch(r"smart_([0-9]{1,3})_\w+", str(column)) for column in row)
        for number in dict.fromkeys(found[1] for found in columns if found is not None):
            value, raw = (
                amount(row.get(f"smart_{number}_{each}")) for each in ("normalized", "raw")
            )
            if value is not None or raw is not None:
                table.append(attribute(int(number), "", value, raw, None))
        at = None
        try:
            day = datetime.date.fromisoformat(row.get("date") or "")
            at = datetime.datetime(day.year, day.month, day.day, tzinfo=datetime.UTC).timestamp()
        except ValueError:
            pass
        yield {
            "device": {"protocol": "ATA"},
            "model_name": row.get("model"),
            "serial_number": row.get("serial_number"),
            "user_capacity": {"bytes": count(row.get("capacity_bytes"))},
            "local_time": {"time_t": at},
            "ata_smart_attributes": {"table": table},
        }
