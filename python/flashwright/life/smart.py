"""What a drive says of its own wear: SMART data as smartctl and nvme-cli print it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashwright.errors import FlashwrightError
from flashwright.support.arguments import checked

__all__ = ["Smart", "SmartError", "parse", "read"]

HOURS_A_YEAR = 365.25 * 24

_ALL = "smartctl -j -a DEVICE"


class SmartError(FlashwrightError):
    """SMART data can't be read, or lacks what is needed."""

    general_hint = (
        "as root: `smartctl -j -a /dev/sdX > smart.json` or `nvme smart-log -o json /dev/nvme0`"
    )


@dataclass(frozen=True)
class Smart:
    """What a drive reports about its wear; None where it reports nothing.

    Attributes
    ----------
    model : str or None
        Its name.
    protocol : {"ATA", "NVMe"}
        How it was asked.
    power_on_hours : float or None
        Hours under power.
    bytes_written : float or None
        Bytes that the host has written.
    used : float or None
        Share of the rated life that is used up, 0 and more.
    used_from : str or None
        The field that says so.
    capacity : int or None
        Bytes of the logical space.
    write_amplification : float or None
        Pages programmed per host page, where the drive counts both.
    missing : tuple of (str, str)
        What is missing and needed, and what to run for it.

    Examples
    --------
    A drive that used 4 % of its life in 10,000 hours has 24 times as long before it:

    >>> log = {"power_on_hours": 10_000, "data_units_written": 40_000_000, "percent_used": 4}
    >>> smart = parse(log)
    >>> round(smart.years_left, 1), smart.bytes_written, smart.missing
    (27.4, 20480000000000.0, ())
    """

    model: str | None
    protocol: str
    power_on_hours: float | None
    bytes_written: float | None
    used: float | None
    used_from: str | None
    capacity: int | None
    write_amplification: float | None
    missing: tuple[tuple[str, str], ...]

    @property
    def bytes_per_s(self) -> float | None:
        """The drive's own write rate: host bytes over time under power."""
        if self.bytes_written is None or not self.power_on_hours:
            return None
        return self.bytes_written / (self.power_on_hours * 3600)

    @property
    def endurance_bytes(self) -> float | None:
        """Host bytes of the whole life at the wear seen so far; None below one percent of wear."""
        if self.bytes_written is None or self.used is None or self.used < 0.01:
            return None
        return self.bytes_written / self.used

    @property
    def years_left(self) -> float | None:
        """Years until the rated life is used up, at the wear seen so far; None below one percent of wear."""
        return None if self.used is None or self.used < 0.01 else self._years(self.used)

    @property
    def years_left_range(self) -> tuple[float, float | None] | None:
        """The years that a step of one percent up or down would give; the upper is None where it is unbounded."""
        if self.used is None or not self.power_on_hours:
            return None
        low = self._years(self.used + 0.01)
        assert low is not None
        return low, self._years(self.used - 0.01) if self.used >= 0.02 else None

    def _years(self, used: float) -> float | None:
        if not self.power_on_hours:
            return None
        return max(0.0, 1 - used) / used * self.power_on_hours / HOURS_A_YEAR

    def years_to(self, endurance: float) -> float | None:
        """Years until this many bytes are written (a rating in TBW), at the drive's own write rate.

        Parameters
        ----------
        endurance : float
            Bytes of the rating.
        """
        rate = self.bytes_per_s
        if self.bytes_written is None or not rate:
            return None
        return max(0.0, endurance - self.bytes_written) / rate / (HOURS_A_YEAR * 3600)


@checked()
def read(path: Path) -> Smart:
    """SMART data in a file.

    Parameters
    ----------
    path : Path
        Output of ``smartctl -j -a`` (ATA or NVMe) or of ``nvme smart-log -o json``.

    Raises
    ------
    SmartError
        If it can't be read, is something else, or has no wear data.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SmartError(f"{path}: not text in UTF-8: {error.reason}") from None
    except OSError as error:
        raise SmartError(f"{path}: {(error.strerror or str(error)).lower()}", "") from None
    try:
        value = json.loads(text)
    except ValueError as error:
        what = (
            f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else ""
        )
        looks = "smartctl" in text or "SMART" in text or "critical_warning" in text
        hint = "its text form can't be read: `smartctl` needs -j, `nvme smart-log` -o json"
        raise SmartError(
            f"{path}: not whole JSON: {what or error}", hint if looks and "{" not in text else None
        ) from None
    except RecursionError:
        raise SmartError(f"{path}: not SMART data: nested too deeply") from None
    try:
        return parse(value)
    except SmartError as error:
        raise SmartError(f"{path}: {error}", error.hint) from None


def parse(value: object) -> Smart:
    """SMART data as parsed from JSON; see :func:`read`.

    Fields are those of NVM Express 2.0, figure "SMART / Health Information Log" (data units are 512,000
    bytes), and of smartctl's attribute table, whose normalised values of wear count down from 100.
    """
    if not isinstance(value, Mapping):
        raise SmartError(
            "not SMART data: found no object, expected the JSON of smartctl or nvme-cli"
        )
    if _is_nvme_log(value):
        return _nvme(value, {}, "nvme smart-log -o json DEVICE")
    if "smartctl" not in value and "device" not in value:
        raise SmartError(
            "not SMART data: found neither smartctl's fields nor those of nvme smart-log, expected one of them"
        )
    protocol = _dig(value, "device.protocol")
    log = value.get("nvme_smart_health_information_log")
    if isinstance(log, Mapping):
        return _nvme(log, value, _ALL)
    rotates = _number(_dig(value, "rotation_rate"))
    if rotates:
        raise SmartError(f"found a disk of {rotates:,.0f} turns a minute, expected flash", "")
    if protocol == "ATA" or _rows(value, "ata_smart_attributes.table"):
        return _ata(value)
    said = "; ".join(
        str(message.get("string", "")) for message in _rows(value, "smartctl.messages")
    )
    if said:
        raise SmartError(f"smartctl said: {said}", f"run it as root: `{_ALL}`")
    if protocol is not None and protocol != "NVMe":
        raise SmartError(f"found protocol {protocol}, expected ATA or NVMe")
    raise SmartError("found no attributes and no health log, expected one of them", f"`{_ALL}`")


_NVME_USED = ("percentage_used", "percent_used")


def _is_nvme_log(value: Mapping[str, Any]) -> bool:
    return "data_units_written" in value and any(name in value for name in _NVME_USED)


def _nvme(log: Mapping[str, Any], around: Mapping[str, Any], command: str) -> Smart:
    name = next((name for name in _NVME_USED if _number(log.get(name)) is not None), None)
    used = None if name is None else _number(log[name])
    units = _number(log.get("data_units_written"))
    found = _number(_dig(around, "user_capacity.bytes")) or _number(
        around.get("nvme_total_capacity")
    )
    return _finished(
        model=_text(around.get("model_name")),
        protocol="NVMe",
        hours=_number(log.get("power_on_hours")),
        written=None if units is None else units * 512_000,
        used=None if used is None else used / 100,
        used_from=name,
        capacity=found,
        amplification=None,
        command=command,
    )


# Attributes whose normalised value is the life left in percent, the plainest first; vendors differ, so
# the name has to say so too.
_WEAR_IDS = (231, 202, 169, 233, 177, 173)
_WEAR_NAME = re.compile(r"wear|life|erase_count", re.IGNORECASE)
_WRITTEN_IDS = (241, 246, 225)
_WRITTEN_NAME = re.compile(r"writ|host_sector", re.IGNORECASE)
_WRITTEN_UNITS = ((r"32MiB", 32 << 20), (r"GiB", 1 << 30), (r"MiB", 1 << 20), (r"GB", 10**9))


def _ata(value: Mapping[str, Any]) -> Smart:
    rows = {
        int(number): row
        for row in _rows(value, "ata_smart_attributes.table")
        if (number := _number(row.get("id"))) is not None
    }
    sector = _number(value.get("logical_block_size")) or 512
    used, used_from = _ata_used(value, rows)
    written = _ata_written(value, rows, sector)
    host, ftl = (_raw(rows.get(number)) for number in (247, 248))
    pages = all(
        number in rows and "program" in str(rows[number].get("name")).lower()
        for number in (247, 248)
    )
    amplification = (host + ftl) / host if pages and host and ftl is not None else None
    hours = _number(_dig(value, "power_on_time.hours"))
    return _finished(
        model=_text(value.get("model_name")),
        protocol="ATA",
        hours=_raw(rows.get(9)) if hours is None and _is_hours(rows.get(9)) else hours,
        written=written,
        used=used,
        used_from=used_from,
        capacity=_number(_dig(value, "user_capacity.bytes")),
        amplification=amplification,
        command=f"{_ALL} -l devstat" if rows else _ALL,
    )


def _is_hours(row: Mapping[str, Any] | None) -> bool:
    return row is not None and "hours" in str(row.get("name")).lower()


def _ata_used(
    value: Mapping[str, Any], rows: Mapping[int, Mapping[str, Any]]
) -> tuple[float | None, str | None]:
    percent = _number(_dig(value, "endurance_used.current_percent"))
    if percent is not None:
        return percent / 100, "endurance_used"
    name = "Percentage Used Endurance Indicator"
    percent = _statistic(value, name)
    if percent is not None:
        return percent / 100, name
    for number in _WEAR_IDS:
        row = rows.get(number)
        left = None if row is None else _number(row.get("value"))
        if row is None or left is None or not _WEAR_NAME.search(str(row.get("name"))):
            continue
        if 0 <= left <= 100:
            return (100 - left) / 100, f"{number} {row['name']}"
    return None, None


def _ata_written(
    value: Mapping[str, Any], rows: Mapping[int, Mapping[str, Any]], sector: float
) -> float | None:
    sectors = _statistic(value, "Logical Sectors Written")
    if sectors is not None:
        return sectors * sector
    for number in _WRITTEN_IDS:
        raw, name = _raw(rows.get(number)), str(rows.get(number, {}).get("name"))
        if raw is None or not _WRITTEN_NAME.search(name):
            continue
        unit = next((size for mark, size in _WRITTEN_UNITS if mark in name), sector)
        return raw * unit
    return None


def _statistic(value: Mapping[str, Any], name: str) -> float | None:
    """A figure of the device statistics log, which smartctl prints with ``-x`` or ``-l devstat``."""
    for page in _rows(value, "ata_device_statistics.pages"):
        for row in _rows(page, "table"):
            if row.get("name") == name:
                return _number(row.get("value"))
    return None


def _finished(
    *,
    model: str | None,
    protocol: str,
    hours: float | None,
    written: float | None,
    used: float | None,
    used_from: str | None,
    capacity: float | None,
    amplification: float | None,
    command: str,
) -> Smart:
    fields: Iterable[tuple[str, object]] = (
        ("power-on hours", hours),
        ("data written", written),
        ("percentage used or a wear attribute", used),
    )
    missing = tuple((name, command) for name, found in fields if found is None)
    if used is None and written is None:
        raise SmartError(
            "says neither how much was written nor how worn it is, expected one of them",
            f"as root: `{command}`",
        )
    return Smart(
        model,
        protocol,
        hours,
        written,
        used,
        used_from,
        None if capacity is None else int(capacity),
        amplification,
        missing,
    )


def _raw(row: Mapping[str, Any] | None) -> float | None:
    return None if row is None else _number(_dig(row, "raw.value"))


def _dig(value: Mapping[str, Any], path: str) -> Any:
    found: Any = value
    for step in path.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _rows(value: Mapping[str, Any], path: str) -> list[Mapping[str, Any]]:
    found = _dig(value, path)
    return [row for row in found if isinstance(row, Mapping)] if isinstance(found, list) else []


def _number(value: object) -> float | None:
    """A count from 0 up; nvme-cli writes large ones as text."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]+", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < float("inf") else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
