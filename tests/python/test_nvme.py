"""What an NVMe drive says of itself, by a drive made of bytes: structures, counters, contradictions, `watch`."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import struct
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Cli
from flashwright import Ssd
from flashwright.nvme import passthrough
from flashwright.nvme.counters import Reader, between
from flashwright.nvme.passthrough import Nvme, NvmeError, StatusError
from flashwright.nvme.structures import Placement
from flashwright.probing.session import probe
from flashwright.support.core import _core
from flashwright.target.counters import Counters, counter_sentences
from flashwright.target.target import Target

MIB = 1 << 20
INVALID_FIELD, NO_LOG, FDP_OFF = 0x002, 0x109, 0x029
OCP_GUID = bytes.fromhex("c5af1028eabff2a49c4f6f7cc914d5af")


def put(data: bytearray, first: int, value: int, length: int) -> None:
    data[first : first + length] = value.to_bytes(length, "little")


class Drive:
    """Answers as a drive would: one ordinary and one zoned namespace."""

    def __init__(self, *, ocp: bool = False, placement: bool = False) -> None:
        self.ocp, self.placement = ocp, placement
        self.host_units = 1_000_000
        self.media_bytes = 2_000_000 * 512_000
        self.placed = (0, 0)
        self.used_percent, self.power_cycles = 20, 7
        self.sent: list[tuple[int, int, bool]] = []

    def __call__(
        self,
        opcode: int,
        length: int,
        *,
        nsid: int = 0,
        cdw: tuple[int, ...] = (),
        io: bool = False,
    ) -> bytes:
        self.sent.append((opcode, cdw[0] & 0xFF, io))
        if io:
            return self.zones()
        if opcode == 0x06:
            return self.identify(cdw[0], nsid, cdw[1] >> 24)
        assert opcode == 0x02
        assert cdw[0] & 1 << 15, "asynchronous events are kept"
        page, specific = cdw[0] & 0xFF, cdw[1] >> 16
        assert ((cdw[0] >> 16) + 1) * 4 == length
        return self.log(page, length, specific)

    def identify(self, kind: int, nsid: int, command_set: int) -> bytes:
        data = bytearray(4096)
        if kind == 1:
            data[24:64] = b"Sample drive".ljust(40)
            data[64:72] = b"FW 1".ljust(8)
            put(data, 77, 5, 1)
            put(data, 80, 0x00020000, 4)
            put(data, 96, self.placement << 19, 4)
            put(data, 266, 273 + 70, 2)
            put(data, 272, 16_384, 4)
            put(data, 280, 960 * 10**9, 16)
            put(data, 340, int(self.placement), 2)
            put(data, 525, 1, 1)
        elif kind == 2:
            struct.pack_into("<II", data, 0, 1, 3)
        elif kind == 0:
            put(data, 0, 1 << 16, 8)
            put(data, 8, 1 << 16, 8)
            put(data, 24, 1 << 4, 1)
            put(data, 26, 1, 1)
            put(data, 128 + 4 + 2, 12, 1)
            put(data, 64, 3, 2)
            put(data, 46, 32, 2)
            put(data, 102, int(self.placement), 2)
        elif kind == 5 and nsid == 3 and command_set == 2:
            put(data, 4, 11, 4)
            put(data, 8, 0xFFFFFFFF, 4)
            put(data, 2816 + 16, 4096, 8)
        else:
            raise StatusError(INVALID_FIELD, "/dev/nvme9: status 0x002 from the drive: unknown", "")
        return bytes(data)

    def zones(self) -> bytes:
        report = bytearray(64 * 4)
        put(report, 0, 3, 8)
        for number, (state, pointer) in enumerate(((0x1, 0), (0x2, 4096 + 16), (0xE, 0))):
            at = 64 * (number + 1)
            struct.pack_into("<BB6xQQQ", report, at, 2, state << 4, 4000, 4096 * number, pointer)
        return bytes(report)

    def log(self, page: int, length: int, specific: int) -> bytes:
        data = bytearray(length)
        if page == 0x02:
            put(data, 1, 273 + 41, 2)
            data[3:6] = bytes([98, 10, self.used_percent])
            put(data, 48, self.host_units, 16)
            put(data, 112, self.power_cycles, 16)
            return bytes(data)
        if page == 0xC0 and self.ocp:
            put(data, 0, self.media_bytes, 16)
            data[120] = 7
            data[496:512] = OCP_GUID
            return bytes(data)
        if page == 0x22 and self.placement and specific == 1:
            put(data, 0, self.placed[0], 16)
            put(data, 16, self.placed[1], 16)
            return bytes(data)
        raise StatusError(
            NO_LOG, "/dev/nvme9: status 0x109 from the drive: it has no such log page", ""
        )


def reader(drive: Drive, times: list[float]) -> Reader:
    return Reader(Nvme("/dev/nvme9", sender=drive), clock=lambda: times.pop(0))


def test_identity_down_to_zones() -> None:
    identity = reader(Drive(), []).identity()
    controller = identity.controller
    assert (controller.model, controller.firmware, controller.version) == (
        "Sample drive",
        "FW 1",
        "2.0.0",
    )
    assert controller.capacity_bytes == 960 * 10**9
    assert controller.transfer_max_bytes == 128 << 10
    assert controller.host_memory_bytes == 64 * MIB
    assert (controller.warning_c, controller.critical_c) == (70, None)
    plain, zoned = identity.namespaces
    assert (plain.namespace.nsid, plain.namespace.block_bytes) == (1, 4096)
    assert plain.namespace.size_bytes == 256 * MIB
    assert plain.namespace.write_granularity_bytes == 16 << 10
    assert plain.namespace.boundary_bytes == 128 << 10
    assert plain.zoning is None
    assert zoned.zoning is not None
    assert (zoned.zoning.zone_bytes, zoned.zoning.open_max, zoned.zoning.active_max) == (
        16 * MIB,
        None,
        12,
    )
    assert [zone.state for zone in zoned.zones] == ["empty", "open", "full"]
    assert [zone.written_bytes for zone in zoned.zones] == [0, 16 * 4096, None]
    assert identity.media_counter is None
    assert identity.refused == ("OCP counters (log page C0h): it has no such log page",)


def test_write_amplification_is_the_media_bytes_over_the_host_bytes() -> None:
    drive = Drive(ocp=True)
    counters = reader(drive, [0.0, 100.0])
    earlier = counters.read()
    drive.host_units += 1000
    drive.media_bytes += 2500 * 512_000
    done = between(earlier, counters.read())
    assert done.host_written_bytes == 1000 * 512_000
    assert done.write_amplification_bytes == pytest.approx(2.5)
    # A fifth of the life took a million units: a thousand in 100 s are 0.0002 of it, 864 times a day.
    assert done.life_per_day == pytest.approx(0.2 * 1000 / drive.host_units * 864)
    assert done.contradictions == ()


def test_too_little_written_gives_no_ratio() -> None:
    drive = Drive(ocp=True)
    counters = reader(drive, [0.0, 1.0])
    earlier = counters.read()
    drive.host_units += 99
    done = between(earlier, counters.read())
    assert done.write_amplification_bytes is None
    assert "51,200,000 B" in done.unknown_because


def test_statistics_of_data_placement_are_exact() -> None:
    drive = Drive(ocp=True, placement=True)
    drive.placed = (10, 10)
    counters = reader(drive, [0.0, 1.0])
    assert counters.identity().media_counter == "data placement"
    earlier = counters.read()
    drive.placed = (10 + 4096, 10 + 6144)
    assert between(earlier, counters.read()).write_amplification_bytes == 1.5


def test_counters_that_contradict_themselves_are_not_believed() -> None:
    drive = Drive(ocp=True)
    counters = reader(drive, [0.0, 1.0, 2.0])
    first = counters.read()
    drive.media_bytes = 5
    drive.host_units += 1000
    second = counters.read()
    done = between(first, second)
    assert done.media_written_bytes is None
    assert done.write_amplification_bytes is None
    assert any("went back" in line for line in done.contradictions)
    drive.host_units += 1000
    drive.media_bytes += 100 * 512_000
    drive.power_cycles += 1
    contradictions = between(second, counters.read()).contradictions
    assert any("compresses" in line for line in contradictions)
    assert any("lost power" in line for line in contradictions)


def test_damaged_placement_pages_are_cut_off() -> None:
    page = bytearray(4096)
    put(page, 0, 1, 2)  # two of them
    struct.pack_into("<HBBIHHIQI", page, 16, 64 + 4 * 2, 0x80, 0, 1, 2, 1, 1, 16 * MIB, 0)
    page[16 + 64], page[16 + 68] = 1, 2
    struct.pack_into("<H", page, 16 + 72, 9999)
    assert Placement.all_of(bytes(page)) == [Placement(2, 1, 16 * MIB, 1)]


def test_what_goes_to_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, tuple[int, ...]]] = []

    def ioctl(_fd: int, request: int, command: bytearray) -> int:
        seen.append((request, struct.unpack("<BBHIIIQQIIIIIIIIII", command)))
        return 0x4109  # "do not retry", and no such log page

    monkeypatch.setattr(passthrough, "_opened", lambda _: 99)
    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    monkeypatch.setattr(os, "close", lambda _: None)
    with Nvme("/dev/nvme9") as nvme, pytest.raises(StatusError, match="no such log page") as error:
        nvme.log(0x22, 64, specific=3)
    assert error.value.status == NO_LOG
    ((request, command),) = seen
    assert request == 0xC0484E41
    assert struct.calcsize("<BBHIIIQQIIIIIIIIII") == 72
    assert command[0] == 0x02
    assert command[3] == 0xFFFFFFFF
    assert command[9] == 64
    assert command[10:12] == (0x22 | 1 << 15 | 15 << 16, 3 << 16)


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.EACCES, "the kernel refuses the question"),
        (errno.ENODEV, "the drive is gone"),
        (errno.EIO, "gave no answer"),
    ],
)
def test_a_drive_that_fails_gives_one_line(
    monkeypatch: pytest.MonkeyPatch, number: int, says: str
) -> None:
    def ioctl(*_: object) -> int:
        raise OSError(number, "")

    monkeypatch.setattr(passthrough, "_opened", lambda _: 99)
    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    monkeypatch.setattr(os, "close", lambda _: None)
    with Nvme("/dev/nvme9") as nvme, pytest.raises(NvmeError, match=says):
        nvme.identify(1)


def test_only_nvme_devices_are_opened(tmp_path: Path) -> None:
    plain = tmp_path / "nvme0"
    plain.write_bytes(b"")
    for path in (plain, Path("/dev/null")):
        with pytest.raises(NvmeError, match="found no NVMe device"):
            Nvme(path)
    with pytest.raises(NvmeError, match="no such file"):
        Nvme(tmp_path / "none")


def test_a_probe_keeps_what_the_drive_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    drive = Drive(ocp=True)
    usual = Drive.log

    def log(self: Drive, page: int, length: int, specific: int) -> bytes:
        if page == 0x02:
            self.host_units += 1000
            self.media_bytes += 2000 * 512_000
        return usual(self, page, length, specific)

    monkeypatch.setattr(Drive, "log", log)
    counters = Counters(reader(drive, [float(second) for second in range(99)]))
    monkeypatch.setattr(Counters, "of", lambda _: counters)
    with Target("sim:default") as target:
        result = probe(target, only=["plausible"], mode="quick")
    (asked,) = result.asked
    assert asked.counted is not None
    assert asked.counted["write_amplification_bytes"] == 2
    assert counter_sentences([asked.counted])[0].endswith(
        "write amplification 2.00 over all steps."
    )
    assert result.json["asked"][0]["counted"]["media_written_bytes"] == 2000 * 512_000


def test_a_drive_that_stops_answering_is_probed_without_its_counters() -> None:
    drive = Drive()
    counters = Counters(reader(drive, [0.0, 1.0, 2.0]))
    assert counters.lap() is not None
    drive.log = lambda *_: (_ for _ in ()).throw(NvmeError("/dev/nvme9: the drive is gone"))  # type: ignore[method-assign]
    assert counters.lap() is None
    assert counters.lap() is None
    assert counters.why == "/dev/nvme9: the drive is gone"


def test_a_model_that_counts_tells_its_amplification() -> None:
    """As an NVMe drive does: bytes from the host and to the flash since it was made."""

    class Counting:
        def __init__(self) -> None:
            self.host = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        @cached_property
        def inner(self) -> Any:
            settings = {"ssd": {"config": Ssd.named("default").toml}}
            return _core.Target(json.dumps(settings), 1)

        def play(self, *asked: Any) -> Any:
            self.host += int(asked[2].sum()) * 512
            return self.inner.play(*asked)

        def counted(self) -> tuple[int, int]:
            return self.host, 3 * self.host

    with Target(Counting()) as target, Counters.of(target) as counters:
        target.play("write", np.arange(8) * 4096, 4096)
        lap = counters.lap()
    assert lap is not None
    assert (lap["host_written_bytes"], lap["write_amplification_bytes"]) == (8 * 4096, 3.0)
    with Target("sim:default") as target:
        assert Counters.of(target).lap() is None


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Drive:
    drive = Drive(ocp=True)
    usual = Drive.log

    def log(self: Drive, page: int, length: int, specific: int) -> bytes:
        if page == 0x02:
            self.host_units += 1000
            self.media_bytes += 1500 * 512_000
        return usual(self, page, length, specific)

    monkeypatch.setattr(Drive, "log", log)
    monkeypatch.setattr("flashwright.cli.watch.Nvme", lambda device: Nvme(device, sender=drive))
    return drive


def test_watch_prints_a_line_for_each_interval(
    watched: Drive, command: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "watched.json"
    done = command(
        "watch", "/dev/nvme9", "--count", "2", "--interval", "100ms", "--json", str(file)
    )
    assert done.status == 0
    lines = done.out.splitlines()
    assert lines[0] == "Sample drive, firmware FW 1, NVM Express 2.0.0"
    table = lines.index(next(line for line in lines if line.strip().startswith("after")))
    assert [line.split()[-3] for line in lines[table + 1 : table + 3]] == ["1.500", "1.500"]
    assert "write amplification 1.500" in done.out
    document: dict[str, Any] = json.loads(file.read_text())
    assert len(document["intervals"]) == 2
    assert document["whole"]["write_amplification_bytes"] == 1.5
    assert {opcode for opcode, _, _ in watched.sent} == {0x02, 0x06, 0x7A}


def test_watch_of_no_interval_says_what_the_drive_is(watched: Drive, command: Cli) -> None:
    done = command("watch", "/dev/nvme9", "--count", "0")
    assert done.status == 0
    assert "after" not in done.out
    assert "zones of 16.0 MiB" in done.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["/dev/null"], "found no NVMe device, expected one such as /dev/nvme0"),
        (["/dev/nvme9", "--interval", "1ms"], "--interval: found '1ms', expected 100ms or more"),
        (["/dev/nvme9", "--count", "-1"], "--count: found -1, expected 0 or more"),
    ],
)
def test_watch_refuses_in_one_line(command: Cli, arguments: list[str], says: str) -> None:
    done = command("watch", *arguments)
    assert done.status == 2
    assert says in done.err
