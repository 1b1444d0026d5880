"""Logs of NVMe and SAS drives, and which kind of log an object is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from flashwright.endurance.smart.ata import ALL, read_ata
from flashwright.endurance.smart.facts import (
    Facts,
    Figure,
    SmartError,
    amount,
    count,
    dig,
    key_of,
    rows,
    text,
)

__all__ = ["drives_of", "of_each"]

_SMART_LOG = "nvme smart-log -o json DEVICE"
_DEPTH_MOST = 6
# NVM Express 2.0, "SMART / Health Information Log"; "Endurance Group Information Log".
_DATA_UNIT = 512_000
_GROUP_UNIT = 10**9
# Intel and Solidigm, log page CAh.
_INTEL_UNIT = 32 << 20


def drives_of(value: object) -> Iterator[Facts]:
    """What each drive in parsed JSON says: of one log, of several beside each other, of lists of drives.

    Parameters
    ----------
    value : object
        Parsed JSON.

    Raises
    ------
    SmartError
        If smartctl could not read the drive, or it is no flash.
    """
    yield from _walk(value, 0)


def of_each(values: Iterable[object], read: Callable[[object], Iterable[Facts]]) -> Iterator[Facts]:
    """What is found in each of several values; what can't be read among others, such as a disk, is noted.

    Parameters
    ----------
    values : iterable
        What may be drives.
    read : callable
        Gives the drives in one of them.

    Raises
    ------
    SmartError
        If none can be read.
    """
    found: list[Facts] = []
    faults: list[SmartError] = []
    for value in values:
        try:
            found.extend(read(value))
        except SmartError as error:
            faults.append(error)
    if faults and not found:
        raise faults[0]
    if faults:
        found[0].notes.append(
            f"left out beside it: {', '.join(sorted({str(each) for each in faults}))}"
        )
    yield from found


def _walk(value: object, depth: int) -> Iterator[Facts]:
    if depth > _DEPTH_MOST:
        return
    if isinstance(value, list):
        yield from of_each(value, lambda each: _walk(each, depth + 1))
        return
    if not isinstance(value, Mapping):
        return
    found = _log(value)
    if found is not None:
        yield found
        return
    below = []
    for each in value.values():
        below.append(list(_walk(each, depth + 1)))
    # Logs that stand beside each other under their names are of one drive.
    if below and all(len(each) <= 1 for each in below):
        beside = [each[0] for each in below if each]
        if len({each.kind for each in beside}) == len(beside):
            if beside:
                first = next((each for each in beside if each.kind != "identify"), beside[0])
                for other in beside:
                    if other is not first:
                        first.add(other)
                yield first
            return
    for each in below:
        yield from each


def _log(value: Mapping[str, Any]) -> Facts | None:
    if (
        "smartctl" in value
        or "ata_smart_attributes" in value
        or isinstance(value.get("device"), Mapping)
    ):
        return _smartctl(value)
    keys = {key_of(name): each for name, each in value.items()}
    for reader in (_group, _health, _ocp, _intel, _wdc, _identify):
        found = reader(keys)
        if found is not None:
            return found
    return None


def _smartctl(value: Mapping[str, Any]) -> Facts | None:
    protocol = dig(value, "device.protocol")
    log = value.get("nvme_smart_health_information_log")
    model, serial = text(value.get("model_name")), text(value.get("serial_number"))
    if isinstance(log, Mapping):
        facts = _health({key_of(name): each for name, each in log.items()}) or Facts(
            "smartctl", ALL, "NVMe"
        )
        facts.kind, facts.command, facts.model, facts.serial = "smartctl", ALL, model, serial
        facts.capacity = count(dig(value, "user_capacity.bytes")) or count(
            value.get("nvme_total_capacity")
        )
        facts.taken_at = count(dig(value, "local_time.time_t"))
        return facts
    turns = count(value.get("rotation_rate"))
    if turns:
        raise SmartError(f"found a disk of {turns:,.0f} turns a minute, expected flash", "")
    if protocol == "ATA" or rows(value, "ata_smart_attributes.table"):
        return read_ata(value)
    if protocol == "SCSI" and ("scsi_error_counter_log" in value or _endurance(value) is not None):
        return _scsi(value, model, serial)
    said = "; ".join(str(message.get("string", "")) for message in rows(value, "smartctl.messages"))
    if said:
        raise SmartError(f"smartctl said: {said}", f"run it as root: `{ALL}`")
    if protocol is None and "smartctl" not in value:
        return None
    if protocol is not None and protocol not in ("NVMe", "SCSI"):
        raise SmartError(f"found protocol {protocol}, expected ATA, NVMe or SCSI")
    raise SmartError("found no attributes and no health log, expected one of them", f"`{ALL}`")


def _endurance(value: Mapping[str, Any]) -> float | None:
    used = count(value.get("scsi_percentage_used_endurance_indicator"))
    return used if used is not None else count(dig(value, "endurance_used.current_percent"))


def _scsi(value: Mapping[str, Any], model: str | None, serial: str | None) -> Facts:
    used = _endurance(value)
    if used is None and count(value.get("rotation_rate")) is None:
        raise SmartError(
            "found a SCSI drive without turns a minute or life used, expected flash", f"`{ALL}`"
        )
    facts = Facts(
        "smartctl",
        ALL,
        "SCSI",
        model or text(value.get("scsi_model_name")),
        serial,
        count(dig(value, "user_capacity.bytes")),
        count(dig(value, "local_time.time_t")),
    )
    if used is not None and used <= 255:
        name = "Percentage used endurance indicator"
        facts.used.append(Figure(used / 100, name, "log page of solid state media, % used"))
    field = "scsi_error_counter_log.write.gigabytes_processed"
    written = amount(dig(value, field))
    if written is not None:
        facts.written.append(
            Figure(written * 1e9, "gigabytes processed", "error counter log of writes, GB", written)
        )
    hours = count(dig(value, "power_on_time.hours"))
    if hours is not None:
        minutes = count(dig(value, "power_on_time.minutes")) or 0
        facts.hours.append(Figure(hours + minutes / 60, "power_on_time", "hours and minutes"))
    return facts


def _health(keys: Mapping[str, Any]) -> Facts | None:
    """The health log of NVM Express."""
    names = ("percentage_used", "percent_used")
    name = next((name for name in names if name in keys), None)
    if "data_units_written" not in keys or name is None or "media_units_written" in keys:
        return None
    facts = Facts("smart-log", _SMART_LOG, "NVMe")
    used, units = count(keys[name]), count(keys["data_units_written"])
    if used is not None and used <= 255:
        stop = ", where it stops" if used == 255 else ""
        facts.used.append(Figure(used / 100, name, f"health log, % used{stop}"))
    if units is not None:
        rule = "health log, units of 512,000 B"
        facts.written.append(Figure(units * _DATA_UNIT, "data_units_written", rule, units))
    hours = count(keys.get("power_on_hours"))
    if hours is not None:
        facts.hours.append(Figure(hours, "power_on_hours", "health log"))
    return facts


def _group(keys: Mapping[str, Any]) -> Facts | None:
    """The log of an endurance group."""
    if "media_units_written" not in keys or "data_units_written" not in keys:
        return None
    facts = Facts("endurance-log", _SMART_LOG, "NVMe")
    used = count(keys.get("percent_used", keys.get("percentage_used")))
    host, media = count(keys["data_units_written"]), count(keys["media_units_written"])
    rule = "endurance group log, units of 10^9 B"
    if used is not None and used <= 255:
        facts.used.append(Figure(used / 100, "percent_used", "endurance group log, % used", rank=1))
    if host:
        facts.written.append(
            Figure(
                host * _GROUP_UNIT, "data_units_written of the endurance group", rule, host, rank=1
            )
        )
    if media:
        facts.flash.append(Figure(media * _GROUP_UNIT, "media_units_written", rule, media))
    return facts


def _ocp(keys: Mapping[str, Any]) -> Facts | None:
    """The extended log of datacentre drives, page C0h; Micron's and WDC's older pages of the same sense."""
    name = "physical_media_units_written"
    parts = [each for each in (name, f"{name}_tlc", f"{name}_slc") if each in keys]
    if not parts:
        return None
    facts = Facts("ocp", _SMART_LOG, "NVMe")
    counts = [count(keys[each]) for each in parts]
    if None not in counts and sum(filter(None, counts)) > 0:
        total = sum(filter(None, counts))
        facts.flash.append(Figure(total, "Physical media units written", "OCP log, bytes", total))
        estimate = count(keys.get("endurance_estimate"))
        if estimate:
            both = "Physical media units written over Endurance estimate"
            facts.used.append(
                Figure(total / estimate, both, "OCP log, of bytes to the flash", rank=3)
            )
    return facts


def _intel(keys: Mapping[str, Any]) -> Facts | None:
    """The additional log of Intel's and Solidigm's drives, page CAh."""
    stats = keys.get("device_stats")
    maker = next((name for name in keys if name.endswith("smart_log")), None)
    if not isinstance(stats, Mapping) or maker is None:
        return None
    facts = Facts("additional", _SMART_LOG, "NVMe")
    flash, host = (count(dig(stats, f"{name}_bytes_written.raw")) for name in ("nand", "host"))
    if not maker.startswith(("intel", "solidigm")):
        if flash and host:
            facts.amplification = _ratio(flash, host, "nand_bytes_written", "host_bytes_written")
        return facts
    rule = "additional log, units of 32 MiB"
    if flash:
        facts.flash.append(Figure(flash * _INTEL_UNIT, "nand_bytes_written", rule, flash))
    if host:
        facts.written.append(Figure(host * _INTEL_UNIT, "host_bytes_written", rule, host, rank=1))
    left = count(dig(stats, "wear_leveling.normalized"))
    if left is not None and left <= 100:
        rule = "additional log, normalised value, % left"
        facts.used.append(Figure((100 - left) / 100, "wear_leveling", rule, rank=2))
    mean = count(dig(stats, "wear_leveling.avg"))
    if mean:
        facts.erases = Figure(mean, "wear_leveling avg", "mean erases of a block")
    return facts


def _wdc(keys: Mapping[str, Any]) -> Facts | None:
    """The logs of Western Digital's drives, pages CAh and D0h."""
    high, low = (count(keys.get(f"nand_bytes_written_{half}")) for half in ("hi", "lo"))
    if high is not None and low is not None:
        facts = Facts("vendor", _SMART_LOG, "NVMe")
        total = high * 2.0**64 + low
        if total:
            facts.flash.append(Figure(total, "NAND Bytes Written", "vendor log, bytes", total))
        return facts
    flash, host = (count(keys.get(f"lifetime_{name}_writes")) for name in ("nand", "user"))
    if flash is None or host is None:
        return None
    facts = Facts("vendor", _SMART_LOG, "NVMe")
    if flash and host:
        facts.amplification = _ratio(flash, host, "Lifetime NAND Writes", "Lifetime User Writes")
    left = count(keys.get("percentage_of_p_e_cycles_remaining"))
    if left is not None and left <= 100:
        name = "Percentage of P/E Cycles Remaining"
        facts.used.append(Figure((100 - left) / 100, name, "vendor log, % left", rank=1))
    hours = count(keys.get("lifetime_power_on_hours"))
    if hours is not None:
        facts.hours.append(Figure(hours, "Lifetime Power on Hours", "vendor log", rank=1))
    return facts


def _ratio(flash: float, host: float, flash_name: str, host_name: str) -> Figure:
    rule = "two counters of one log in one unit"
    return Figure(flash / host, f"{flash_name} over {host_name}", rule, host)


def _identify(keys: Mapping[str, Any]) -> Facts | None:
    """What names a drive: the identify data of its controller, or an entry of a list of drives."""
    for model, serial, capacity in (
        ("mn", "sn", "tnvmcap"),
        ("modelnumber", "serialnumber", "physicalsize"),
        ("model_number", "serial_number", "physical_size"),
    ):
        if text(keys.get(model)) and (model != "mn" or "vid" in keys):
            return Facts(
                "identify",
                _SMART_LOG,
                "NVMe",
                text(keys.get(model)),
                text(keys.get(serial)),
                count(keys.get(capacity)) or None,
            )
    return None
