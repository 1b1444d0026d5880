"""What an NVMe drive counts, and what it did between two readings.

Three places have the bytes written to the flash: the statistics of flexible data placement (exact, with the host's
bytes beside them), the OCP log page C0h (exact; the host's bytes are SMART's, in steps of 512,000 B) and the log of an
endurance group (both in steps of 10^9 B). The first that a drive has is taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from flashwright.nvme.passthrough import Nvme, StatusError
from flashwright.nvme.structures import (
    Controller,
    EnduranceGroup,
    Health,
    Namespace,
    Ocp,
    Placement,
    PlacementStatistics,
    Zone,
    Zoning,
    zones_of,
)

__all__ = ["Identity", "Interval", "NamespaceIdentity", "Reader", "Reading", "between"]

Source = Literal["data placement", "OCP log", "endurance group"]

_STEP_BYTES: dict[Source, int] = {
    "data placement": 1,
    "OCP log": 512_000,
    "endurance group": 10**9,
}
# A count is off by up to a step at either end: a ratio is told once that is at most this share.
_ROUNDING = 0.01
# Zones of a report at once.
_ZONES = 1023
_DAY_S = 86_400


@dataclass(frozen=True)
class NamespaceIdentity:
    """A namespace, with its zones if it has any.

    Attributes
    ----------
    namespace : Namespace
        Identify Namespace.
    zoning : Zoning or None
        None for a namespace without zones.
    zones : tuple of Zone
        The first 1,023 of them.
    """

    namespace: Namespace
    zoning: Zoning | None = None
    zones: tuple[Zone, ...] = ()


@dataclass(frozen=True)
class Identity:
    """What a drive says that it is.

    Attributes
    ----------
    controller : Controller
        Identify Controller.
    namespaces : tuple of NamespaceIdentity
        The active ones.
    placements : tuple of Placement
        Configurations of flexible data placement.
    media_counter : {"data placement", "OCP log", "endurance group"} or None
        What counts bytes written to the flash; None if nothing does.
    refused : tuple of str
        Questions that were refused, a line each.
    """

    controller: Controller
    namespaces: tuple[NamespaceIdentity, ...]
    placements: tuple[Placement, ...]
    media_counter: Source | None
    refused: tuple[str, ...]


@dataclass(frozen=True)
class Reading:
    """The counters at one moment.

    Attributes
    ----------
    at_s : float
        When, in seconds of a clock that only goes forward.
    health : Health
        SMART / Health Information.
    ocp : Ocp or None
        Of datacentre drives.
    source : {"data placement", "OCP log", "endurance group"} or None
        Where the next two come from.
    host_written_bytes, media_written_bytes : int or None
        What the host wrote, and what went to the flash.
    endurance_bytes : int or None
        What may be written to the flash over its life, by the drive's own estimate.
    """

    at_s: float
    health: Health
    ocp: Ocp | None
    source: Source | None
    host_written_bytes: int | None
    media_written_bytes: int | None
    endurance_bytes: int | None = None


class Reader:
    """Reads a drive's identity and counters. Log pages that it lacks are asked for only once.

    Parameters
    ----------
    nvme : Nvme
        An open controller.
    clock : callable, optional
        Seconds that only go forward.
    """

    def __init__(self, nvme: Nvme, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._nvme, self._clock = nvme, clock
        self.refused: list[str] = []
        self._controller = Controller.of(nvme.identify(1))
        self._groups = self._endurance_groups()
        self._has_ocp = False
        self._source: Source | None = None
        self._choose_source()

    def _endurance_groups(self) -> list[int]:
        if not self._controller.endurance_groups:
            return []
        groups = {found.endurance_group for found in self._namespaces()}
        return sorted(groups - {0})

    def _namespaces(self) -> list[Namespace]:
        try:
            listed = self._nvme.identify(2)
            ids = [int.from_bytes(listed[at : at + 4], "little") for at in range(0, 4096, 4)]
        except StatusError:  # before NVM Express 1.1
            ids = list(range(1, min(self._controller.namespaces_max, 1024) + 1))
        found = (Namespace.of(nsid, self._nvme.identify(0, nsid=nsid)) for nsid in ids if nsid)
        return [namespace for namespace in found if namespace.size_bytes]

    def _asked(self, what: str, page: int, length: int, group: int = 0) -> bytes | None:
        """A log page; None, and a line in `refused`, where the drive has none."""
        try:
            return self._nvme.log(page, length, specific=group)
        except StatusError as error:
            self.refused.append(f"{what}: {str(error).rsplit(': ', 1)[-1]}")
            return None

    def _choose_source(self) -> None:
        page = self._asked("OCP counters (log page C0h)", 0xC0, 512)
        self._has_ocp = page is not None and Ocp.of(page) is not None
        if page is not None and not self._has_ocp:
            self.refused.append("OCP counters (log page C0h): the page is another one of its maker")
        if self._has_ocp:
            self._source = "OCP log"
        if len(self._groups) != 1:  # the counts of one group of several are not the drive's
            return
        group = self._groups[0]
        what = "statistics of data placement (log page 22h)"
        if self._controller.data_placement and self._asked(what, 0x22, 64, group):
            self._source = "data placement"
        elif not self._has_ocp:
            page = self._asked("endurance group (log page 09h)", 0x09, 512, group)
            if page and EnduranceGroup.of(page).media_written_bytes:
                self._source = "endurance group"

    def close(self) -> None:
        """Let go of the controller."""
        self._nvme.close()

    def identity(self) -> Identity:
        """Ask what it is, down to its zones."""
        placements: list[Placement] = []
        if self._controller.data_placement:
            for group in self._groups:
                page = self._asked("data placement (log page 20h)", 0x20, 4096, group)
                placements += Placement.all_of(page) if page else []
        namespaces = []
        for namespace in self._namespaces():
            zoning, zones = self._zoned(namespace)
            namespaces.append(NamespaceIdentity(namespace, zoning, tuple(zones)))
        return Identity(
            self._controller,
            tuple(namespaces),
            tuple(placements),
            self._source,
            tuple(dict.fromkeys(self.refused)),
        )

    def _zoned(self, namespace: Namespace) -> tuple[Zoning | None, list[Zone]]:
        nsid, block = namespace.nsid, namespace.block_bytes
        try:
            data = self._nvme.identify(5, nsid=nsid, command_set=2)
        except StatusError:
            return None, []
        zoning = Zoning.of(data, self._nvme.identify(0, nsid=nsid), block)
        if not zoning.zone_bytes:
            return None, []
        try:
            return zoning, zones_of(self._nvme.zones(nsid, 0, 64 * (_ZONES + 1)), block)
        except StatusError as error:
            self.refused.append(f"zones of namespace {nsid}: {str(error).rsplit(': ', 1)[-1]}")
            return zoning, []

    def read(self) -> Reading:
        """The counters now.

        Raises
        ------
        NvmeError
            If the drive gives no answer any more.
        """
        health = Health.of(self._nvme.log(0x02, 512))
        ocp = Ocp.of(self._nvme.log(0xC0, 512)) if self._has_ocp else None
        host: int | None = None
        media: int | None = None
        endurance = ocp.endurance_bytes if ocp else None
        if self._source == "data placement":
            counted = PlacementStatistics.of(self._nvme.log(0x22, 64, specific=self._groups[0]))
            host, media = counted.host_written_bytes, counted.media_written_bytes
        elif self._source == "OCP log" and ocp:
            host, media = health.host_written_bytes, ocp.media_written_bytes
        elif self._source == "endurance group":
            group = EnduranceGroup.of(self._nvme.log(0x09, 512, specific=self._groups[0]))
            host, media = group.host_written_bytes, group.media_written_bytes
            endurance = group.endurance_bytes
        return Reading(self._clock(), health, ocp, self._source, host, media, endurance)


@dataclass(frozen=True)
class Interval:
    """What a drive did between two readings.

    Attributes
    ----------
    seconds : float
        How long it was.
    host_read_bytes, host_written_bytes : int or None
        By the host; None where a counter contradicts itself.
    media_written_bytes : int or None
        To the flash; None where nothing counts it.
    step_bytes : int
        The coarser of the steps in which the two are counted; 0 where nothing counts bytes to the flash.
    write_amplification_bytes : float or None
        Bytes written to the flash over bytes that the host wrote: by bytes, as drives count it. Results of simulated
        drives have it under the same name, beside the one by pages.
    unknown_because : str
        Why there is no write amplification; else empty.
    life_per_day : float or None
        Share of the rated life that a day at this load uses up; None where the drive says too little.
    temperature_c : int or None
        At the end, degrees Celsius.
    throttled_s : int
        How long heat slowed the drive down, as it counts that.
    contradictions : tuple of str
        What can't be as the drive says, a sentence each.
    """

    seconds: float
    host_read_bytes: int | None
    host_written_bytes: int | None
    media_written_bytes: int | None
    step_bytes: int
    write_amplification_bytes: float | None
    unknown_because: str
    life_per_day: float | None
    temperature_c: int | None
    throttled_s: int
    contradictions: tuple[str, ...]

    @property
    def write_amplification(self) -> float | None:
        """Deprecated name of :attr:`write_amplification_bytes`."""
        return self.write_amplification_bytes


def between(earlier: Reading, later: Reading) -> Interval:
    """What happened between two readings of one drive.

    Parameters
    ----------
    earlier, later : Reading
        In this order.

    Returns
    -------
    Interval
        Counts that went back are unknown, and the contradiction is told.
    """
    said: list[str] = []

    def grown(name: str, before: int | None, after: int | None) -> int | None:
        if before is None or after is None:
            return None
        if after < before:
            said.append(f"{name} went back from {before:,} B to {after:,} B.")
            return None
        return after - before

    was, now = earlier.health, later.health
    read = grown("what the host has read", was.host_read_bytes, now.host_read_bytes)
    smart = grown("what the host has written", was.host_written_bytes, now.host_written_bytes)
    host: int | None
    if later.source == "OCP log":
        host = smart
    else:
        name = f"what the host has written by the {later.source}"
        host = grown(name, earlier.host_written_bytes, later.host_written_bytes)
    media = grown(
        f"what was written to flash by the {later.source}",
        earlier.media_written_bytes,
        later.media_written_bytes,
    )
    ratio, why = _amplification(later.source, host, media)
    if ratio is not None and ratio < 0.5:
        said.append(
            "Less than half of what the host wrote went to flash: the drive compresses data, or its counters mean "
            "other things."
        )
    if now.power_cycles != was.power_cycles or now.unsafe_shutdowns != was.unsafe_shutdowns:
        said.append("The drive lost power or was switched off in between.")
    if now.power_on_hours < was.power_on_hours:
        said.append("Its power-on hours went back.")
    seconds = later.at_s - earlier.at_s
    return Interval(
        seconds=seconds,
        host_read_bytes=read,
        host_written_bytes=host if host is not None else smart,
        media_written_bytes=media,
        step_bytes=_STEP_BYTES[later.source] if later.source else 0,
        write_amplification_bytes=ratio,
        unknown_because=why,
        life_per_day=_life_per_day(later, media, smart, seconds),
        temperature_c=now.temperature_c,
        throttled_s=max(_throttled_s(now) - _throttled_s(was), 0),
        contradictions=tuple(said),
    )


def _throttled_s(health: Health) -> int:
    return health.throttled_lightly_s + health.throttled_heavily_s


def _amplification(
    source: Source | None, host: int | None, media: int | None
) -> tuple[float | None, str]:
    """The ratio, or why there is none."""
    if source is None:
        return None, "nothing that the drive tells counts bytes written to its flash"
    if host is None or media is None:
        return None, "a counter went back"
    step = _STEP_BYTES[source]
    if host * _ROUNDING < step:
        if host == 0:
            return None, "the host wrote nothing"
        least = round(step / _ROUNDING)
        return (
            None,
            f"the host wrote {host:,} B, and counts in steps of {step:,} B need {least:,} B",
        )
    return media / host, ""


def _life_per_day(
    now: Reading, media: int | None, host: int | None, seconds: float
) -> float | None:
    """By the endurance that the drive declares; else by the wear of its life so far, once that is told to a tenth."""
    if seconds <= 0:
        return None
    if now.endurance_bytes and media is not None:
        return media / now.endurance_bytes / seconds * _DAY_S
    health = now.health
    if host is None or health.used < 0.1 or not health.host_written_bytes:
        return None
    return host * health.used / health.host_written_bytes / seconds * _DAY_S
