"""The data structures that NVMe drives return, as dataclasses.

Offsets are those of NVM Express Base 2.0 (Identify Controller: figure 275; SMART / Health: figure 207; Endurance Group:
figure 217), the NVM command set 1.0 (Identify Namespace: figure 97), Zoned Namespaces 1.1 (figures 48 and 38), TP4146
(data placement: log pages 20h to 22h) and OCP Datacenter NVMe SSD 2.0 (log page C0h).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "Controller",
    "EnduranceGroup",
    "Health",
    "Namespace",
    "Ocp",
    "Placement",
    "PlacementStatistics",
    "Zone",
    "Zoning",
    "zones_of",
]

_KELVIN = 273
_DATA_UNIT_BYTES = 512_000
_OCP_GUID = bytes.fromhex("c5af1028eabff2a49c4f6f7cc914d5af")


def _number(data: bytes, first: int, length: int) -> int:
    return int.from_bytes(data[first : first + length], "little")


def _text(data: bytes, first: int, length: int) -> str:
    return data[first : first + length].decode("ascii", "replace").strip(" \0")


@dataclass(frozen=True)
class Controller:
    """Identify Controller.

    Attributes
    ----------
    model, serial, firmware : str
        As the drive spells them.
    version : str
        Of NVM Express, such as ``"1.4.0"``.
    capacity_bytes : int or None
        Of all namespaces; None if it does not say.
    namespaces_max : int
        Namespace identifiers that there may be.
    transfer_max_bytes : int or None
        The largest transfer, with pages of 4 KiB; None for no limit.
    volatile_write_cache : bool
        Whether data may be lost without a flush.
    host_memory_bytes, host_memory_min_bytes : int
        Preferred and least host memory buffer; 0 for none.
    warning_c, critical_c : int or None
        Temperatures above which it warns and throttles or stops, degrees Celsius.
    endurance_groups : int
        The largest identifier of one; 0 for none.
    data_placement : bool
        Whether it knows flexible data placement (FDP).
    """

    model: str
    serial: str
    firmware: str
    version: str
    capacity_bytes: int | None
    namespaces_max: int
    transfer_max_bytes: int | None
    volatile_write_cache: bool
    host_memory_bytes: int
    host_memory_min_bytes: int
    warning_c: int | None
    critical_c: int | None
    endurance_groups: int
    data_placement: bool

    @classmethod
    def of(cls, data: bytes) -> Controller:
        """Parse the 4,096 bytes of CNS 01h."""
        version, transfer = _number(data, 80, 4), data[77]
        return cls(
            model=_text(data, 24, 40),
            serial=_text(data, 4, 20),
            firmware=_text(data, 64, 8),
            version=f"{version >> 16}.{version >> 8 & 0xFF}.{version & 0xFF}",
            capacity_bytes=_number(data, 280, 16) or None,
            namespaces_max=_number(data, 516, 4),
            transfer_max_bytes=4096 << transfer if 0 < transfer < 32 else None,
            volatile_write_cache=bool(data[525] & 1),
            host_memory_bytes=_number(data, 272, 4) * 4096,
            host_memory_min_bytes=_number(data, 276, 4) * 4096,
            warning_c=_celsius(_number(data, 266, 2)),
            critical_c=_celsius(_number(data, 268, 2)),
            endurance_groups=_number(data, 340, 2),
            data_placement=bool(_number(data, 96, 4) >> 19 & 1),
        )


def _celsius(kelvin: int) -> int | None:
    return kelvin - _KELVIN if kelvin else None


@dataclass(frozen=True)
class Namespace:
    """Identify Namespace.

    Attributes
    ----------
    nsid : int
        Its identifier.
    block_bytes : int
        A logical block.
    size_bytes, capacity_bytes, used_bytes : int
        Its size (NSZE), what of it may be allocated (NCAP) and is (NUSE).
    endurance_group : int
        Its endurance group; 0 if there are none.
    write_granularity_bytes, write_alignment_bytes : int or None
        Preferred writes (NPWG, NPWA); None where the drive does not say that they are meant.
    trim_granularity_bytes, trim_alignment_bytes : int or None
        Preferred deallocations (NPDG, NPDA).
    write_optimal_bytes : int or None
        NOWS.
    boundary_bytes : int or None
        Requests across multiples of it may be slower (NOIOB); None for none.
    atomic_write_bytes : int or None
        What is written whole or not at all if power fails (NAWUPF); None if it is that of the controller.
    """

    nsid: int
    block_bytes: int
    size_bytes: int
    capacity_bytes: int
    used_bytes: int
    endurance_group: int
    write_granularity_bytes: int | None
    write_alignment_bytes: int | None
    trim_granularity_bytes: int | None
    trim_alignment_bytes: int | None
    write_optimal_bytes: int | None
    boundary_bytes: int | None
    atomic_write_bytes: int | None

    @classmethod
    def of(cls, nsid: int, data: bytes) -> Namespace:
        """Parse the 4,096 bytes of CNS 00h."""
        chosen = _format(data)
        block = 1 << data[128 + 4 * chosen + 2]
        features = data[24]

        def preferred(first: int) -> int | None:
            return (_number(data, first, 2) + 1) * block if features >> 4 & 1 else None

        return cls(
            nsid=nsid,
            block_bytes=block,
            size_bytes=_number(data, 0, 8) * block,
            capacity_bytes=_number(data, 8, 8) * block,
            used_bytes=_number(data, 16, 8) * block,
            endurance_group=_number(data, 102, 2),
            write_granularity_bytes=preferred(64),
            write_alignment_bytes=preferred(66),
            trim_granularity_bytes=preferred(68),
            trim_alignment_bytes=preferred(70),
            write_optimal_bytes=preferred(72),
            boundary_bytes=_number(data, 46, 2) * block or None,
            atomic_write_bytes=(_number(data, 36, 2) + 1) * block if features >> 1 & 1 else None,
        )


def _format(namespace: bytes) -> int:
    """Which of its formats a namespace has: bits 0 to 3 and, with more than 16 formats, 5 and 6 above them."""
    return namespace[26] & 0xF | (namespace[26] >> 5 & 3) << 4


@dataclass(frozen=True)
class Zoning:
    """What a zoned namespace says of its zones.

    Attributes
    ----------
    zone_bytes : int
        Addresses of a zone.
    open_max, active_max : int or None
        Zones that may be open, and open or closed, at once; None for no limit.
    """

    zone_bytes: int
    open_max: int | None
    active_max: int | None

    @classmethod
    def of(cls, data: bytes, namespace: bytes, block_bytes: int) -> Zoning:
        """Parse the 4,096 bytes of CNS 05h, CSI 02h, beside those of CNS 00h."""
        zone = _number(data, 2816 + 16 * _format(namespace), 8)

        def at_most(first: int) -> int | None:
            found = _number(data, first, 4)
            return None if found == 0xFFFFFFFF else found + 1

        return cls(zone * block_bytes, open_max=at_most(8), active_max=at_most(4))


_ZONE_STATES = {
    0x1: "empty",
    0x2: "open",
    0x3: "open",
    0x4: "closed",
    0xD: "read-only",
    0xE: "full",
    0xF: "offline",
}


@dataclass(frozen=True)
class Zone:
    """A zone of a report.

    Attributes
    ----------
    start_bytes, capacity_bytes : int
        Where it begins, and what of it can be written.
    state : str
        ``"empty"``, ``"open"``, ``"closed"``, ``"full"``, ``"read-only"``, ``"offline"`` or ``"unknown"``.
    written_bytes : int or None
        Up to the write pointer; None where there is none.
    """

    start_bytes: int
    capacity_bytes: int
    state: str
    written_bytes: int | None


def zones_of(report: bytes, block_bytes: int) -> list[Zone]:
    """Parse a report of zones.

    Parameters
    ----------
    report : bytes
        A header of 64 B, and 64 B a zone.
    block_bytes : int
        A logical block.
    """
    count = min(_number(report, 0, 8), len(report) // 64 - 1)
    zones = []
    for at in range(64, 64 * (count + 1), 64):
        start, pointer = _number(report, at + 16, 8), _number(report, at + 24, 8)
        state = _ZONE_STATES.get(report[at + 1] >> 4, "unknown")
        has_pointer = state in ("empty", "open", "closed")
        zones.append(
            Zone(
                start_bytes=start * block_bytes,
                capacity_bytes=_number(report, at + 8, 8) * block_bytes,
                state=state,
                written_bytes=(pointer - start) * block_bytes if has_pointer else None,
            )
        )
    return zones


@dataclass(frozen=True)
class Health:
    """The log page SMART / Health Information.

    Attributes
    ----------
    critical_warning : int
        Bits: 0 spare, 1 temperature, 2 reliability, 3 read-only, 4 backup of RAM.
    temperature_c : int or None
        Of the whole drive, degrees Celsius.
    spare, spare_threshold, used : float
        Shares: spare blocks left, where it warns, rated life used up (may exceed 1).
    host_read_bytes, host_written_bytes : int
        In steps of 512,000 B.
    read_commands, write_commands : int
        Of the host.
    busy_minutes, power_on_hours, power_cycles, unsafe_shutdowns, media_errors : int
        As counted by the drive.
    above_warning_minutes, above_critical_minutes : int
        Time at these temperatures.
    throttled_lightly_s, throttled_heavily_s : int
        Time at thermal management temperatures 1 and 2.
    """

    critical_warning: int
    temperature_c: int | None
    spare: float
    spare_threshold: float
    used: float
    host_read_bytes: int
    host_written_bytes: int
    read_commands: int
    write_commands: int
    busy_minutes: int
    power_on_hours: int
    power_cycles: int
    unsafe_shutdowns: int
    media_errors: int
    above_warning_minutes: int
    above_critical_minutes: int
    throttled_lightly_s: int
    throttled_heavily_s: int

    @classmethod
    def of(cls, data: bytes) -> Health:
        """Parse the 512 bytes of log page 02h."""
        return cls(
            critical_warning=data[0],
            temperature_c=_celsius(_number(data, 1, 2)),
            spare=data[3] / 100,
            spare_threshold=data[4] / 100,
            used=data[5] / 100,
            host_read_bytes=_number(data, 32, 16) * _DATA_UNIT_BYTES,
            host_written_bytes=_number(data, 48, 16) * _DATA_UNIT_BYTES,
            read_commands=_number(data, 64, 16),
            write_commands=_number(data, 80, 16),
            busy_minutes=_number(data, 96, 16),
            power_cycles=_number(data, 112, 16),
            power_on_hours=_number(data, 128, 16),
            unsafe_shutdowns=_number(data, 144, 16),
            media_errors=_number(data, 160, 16),
            above_warning_minutes=_number(data, 192, 4),
            above_critical_minutes=_number(data, 196, 4),
            throttled_lightly_s=_number(data, 224, 4),
            throttled_heavily_s=_number(data, 228, 4),
        )


@dataclass(frozen=True)
class Ocp:
    """The log page SMART / Health Information Extended of datacentre drives.

    Attributes
    ----------
    media_written_bytes, media_read_bytes : int
        To and from the flash.
    free_blocks : float
        Share of blocks that are free.
    erases_min, erases_max : int
        Of the blocks for data.
    bad_blocks : int
        Blocks for data that were retired.
    throttling_events : int
        How often heat slowed it down; it stops at 255.
    capacitors : float
        Health of the power-loss protection, 1 for as designed.
    endurance_bytes : int or None
        What may be written to the flash over its life, by its own estimate.
    """

    media_written_bytes: int
    media_read_bytes: int
    free_blocks: float
    erases_min: int
    erases_max: int
    bad_blocks: int
    throttling_events: int
    capacitors: float
    endurance_bytes: int | None

    @classmethod
    def of(cls, data: bytes) -> Ocp | None:
        """Parse the 512 bytes of log page C0h; None if they are another vendor's page."""
        if data[496:512] != _OCP_GUID:
            return None
        return cls(
            media_written_bytes=_number(data, 0, 16),
            media_read_bytes=_number(data, 16, 16),
            free_blocks=data[120] / 100,
            erases_min=_number(data, 92, 4),
            erases_max=_number(data, 88, 4),
            bad_blocks=_number(data, 32, 6),
            throttling_events=data[96],
            capacitors=_number(data, 128, 2) / 100,
            endurance_bytes=_number(data, 176, 16) or None,
        )


@dataclass(frozen=True)
class EnduranceGroup:
    """The log page of an endurance group, in steps of 10^9 B.

    Attributes
    ----------
    host_written_bytes, media_written_bytes : int
        By hosts, and to the flash.
    used : float
        Share of the rated life that is used up.
    endurance_bytes : int or None
        What may be written to the flash over its life, by its own estimate.
    """

    host_written_bytes: int
    media_written_bytes: int
    used: float
    endurance_bytes: int | None

    @classmethod
    def of(cls, data: bytes) -> EnduranceGroup:
        """Parse the 512 bytes of log page 09h."""
        giga = 10**9
        host, media = _number(data, 64, 16) * giga, _number(data, 80, 16) * giga
        return cls(host, media, data[5] / 100, _number(data, 32, 16) * giga or None)


@dataclass(frozen=True)
class Placement:
    """A configuration of flexible data placement.

    Attributes
    ----------
    handles : int
        Reclaim unit handles: streams that a host may keep apart.
    groups : int
        Reclaim groups.
    unit_bytes : int
        Nominal size of a reclaim unit, which is erased as a whole.
    handles_persistent : int
        Handles whose data stay apart when they are moved.
    """

    handles: int
    groups: int
    unit_bytes: int
    handles_persistent: int

    @classmethod
    def all_of(cls, data: bytes) -> list[Placement]:
        """Parse as much of log page 20h as there is."""
        found, at = [], 16
        for _ in range(_number(data, 0, 2) + 1):
            length, handles = _number(data, at, 2), _number(data, at + 8, 2)
            if length < 64 + 4 * handles or at + length > len(data):
                break
            if data[at + 2] >> 7 & 1:
                kinds = [data[at + 64 + 4 * handle] for handle in range(handles)]
                found.append(
                    cls(
                        handles, _number(data, at + 4, 4), _number(data, at + 16, 8), kinds.count(2)
                    )
                )
            at += length
        return found


@dataclass(frozen=True)
class PlacementStatistics:
    """What flexible data placement counts, in bytes.

    Attributes
    ----------
    host_written_bytes, media_written_bytes, media_erased_bytes : int
        With metadata.
    """

    host_written_bytes: int
    media_written_bytes: int
    media_erased_bytes: int

    @classmethod
    def of(cls, data: bytes) -> PlacementStatistics:
        """Parse the 64 bytes of log page 22h."""
        return cls(_number(data, 0, 16), _number(data, 16, 16), _number(data, 32, 16))
