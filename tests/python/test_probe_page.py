"""The probes of the clustered page, of parallel units and of what a target is, on drives of known make."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flashwright import Ssd
from flashwright.errors import TargetError
from flashwright.nvme.passthrough import Nvme
from flashwright.probing.declared import Declared, beside, declared, doubts
from flashwright.probing.probes import PROBES, Context, Finding
from flashwright.probing.probes.clustered_page import ClusteredPage, _comb
from flashwright.probing.probes.parallelism import Parallelism
from flashwright.probing.probes.parallelism.grouping import groups, rounds
from flashwright.probing.probes.parallelism.periods import _step_period
from flashwright.probing.probes.parallelism.periods import conflict_period as _conflict_period
from flashwright.probing.probes.parallelism.periods import inner_share as _inner_share
from flashwright.probing.probes.plausible import Plausible, _reasons, speaks_against
from flashwright.target.target import Target

KIB = 1 << 10

# Small and whole: 512 blocks of 64 pages of a cluster, in a drive that queues commands.
BASE = {
    "timing.model": "parallel",
    "timing.read": "50 us",
    "timing.program": "400 us",
    "timing.bus-rate": "200 MB/s",
    "geometry.pages-per-block": 64,
    "host.partial-pages": "read-modify-write",
    "controller.interface-rate": "600 MB/s",
    "controller.read-overhead": "8 us",
    "controller.write-overhead": "8 us",
    "controller.noise": 0.05,
    "controller.queue-depth": 32,
}


def drive(page_kib: int, channels: int = 1, dies: int = 1, **settings: object) -> Ssd:
    """A drive of 256 MiB or so, a quarter of it spare."""
    block = page_kib * KIB * 64
    logical = (256 << 20) // (block * channels * dies) * block * channels * dies
    blocks = int(1.25 * logical / (block * channels * dies)) + 12
    return Ssd.from_text("", "test").with_(
        BASE
        | {
            "geometry.channels": channels,
            "geometry.dies-per-channel": dies,
            "geometry.page-size": f"{page_kib} KiB",
            "geometry.blocks-per-plane": blocks,
            "capacity.logical": f"{logical} B",
        }
        | {key.replace("__", ".").replace("_", "-"): value for key, value in settings.items()}
    )


def page_of(ssd: Ssd | str, mode: str = "quick") -> Finding:
    with Target(ssd) as target:
        return ClusteredPage().run(Context(target, "full" if mode == "full" else "quick"))[0]


def units_of(ssd: Ssd, page_bytes: int) -> dict[str, Finding]:
    known = {"clustered-page": Finding("clustered-page", "found", page_bytes, "B")}
    with Target(ssd) as target:
        findings = Parallelism().run(Context(target, "quick", known=known))
    return {finding.parameter: finding for finding in findings}


# The clustered page


@pytest.mark.parametrize("page_kib", [3, 6, 18, 20, 40, 96, 160, 256])
def test_pages_of_any_size_are_found(page_kib: int) -> None:
    finding = page_of(drive(page_kib, 2))
    assert (finding.verdict, finding.value) == ("found", page_kib * KIB), finding.why
    assert finding.confidence > 0.95
    assert finding.low is not None and finding.high is not None
    assert finding.low < page_kib * KIB < finding.high
    assert finding.plots and finding.plots[-1].series


def test_a_cluster_of_chips_counts_as_one_page() -> None:
    clustered = drive(6, 4, geometry__cluster_channels=2)
    assert page_of(clustered).value == 12 * KIB


@pytest.mark.parametrize("scheme", ["bast", "fast", "last", "superblock"])
def test_merges_do_not_hide_it(scheme: str) -> None:
    finding = page_of(drive(16, 2, ftl__scheme=scheme))
    assert finding.value == 16 * KIB, finding.why


@pytest.mark.parametrize("kind", ["fifo", "cache"])
def test_a_write_buffer_does_not_hide_it(kind: str) -> None:
    buffered = drive(
        16,
        2,
        controller__write_buffer__size="8 MiB",
        controller__write_buffer__kind=kind,
        controller__write_buffer__drain="eager",
    )
    assert page_of(buffered).value == 16 * KIB


def test_hidden_read_modify_write_is_unknown() -> None:
    """Though pages are still written whole, so that latencies do step at their multiples."""
    finding = page_of(drive(16, 1, host__partial_pages="whole"))
    assert (finding.verdict, finding.value, finding.confidence) == ("unknown", None, 0.0)
    assert "No size" in finding.why and "0.5 KiB" in finding.why
    assert finding.figures["step_B"] == 512


@pytest.mark.parametrize(("name", "page_kib"), [("ssd-a", 16), ("ssd-b", 128), ("ssd-d", 128)])
def test_published_pages(name: str, page_kib: int) -> None:
    """Kim 2011, section 4.2.3; claim K2."""
    assert page_of(f"sim:{name}").value == page_kib * KIB


def test_the_published_drive_that_hides_it_is_unknown() -> None:
    assert page_of("sim:ssd-c").verdict == "unknown"


def test_a_target_that_is_too_small_says_so(tmp_path: Path) -> None:
    file = tmp_path / "disk"
    file.write_bytes(bytes(32 * KIB))
    with Target(file, destroys_data=True) as target:
        finding = ClusteredPage().run(Context(target, "quick"))[0]
    assert finding.verdict == "unknown" and "too little" in finding.why


def test_the_same_seed_gives_the_same_finding() -> None:
    first, again = page_of(drive(6, 2)), page_of(drive(6, 2))
    assert (first.why, first.figures, first.confidence) == (
        again.why,
        again.figures,
        again.confidence,
    )


def test_the_cost_is_not_below_what_is_asked() -> None:
    """Of a page that only the third scale finds; a smaller one is found sooner and costs less."""
    written = []
    for page_kib in (160, 16):
        with Target(drive(page_kib, 2)) as target:
            context = Context(target, "quick")
            said = ClusteredPage().cost(context)
            ClusteredPage().run(context)
            written.append(target.bytes_written / said.bytes_written)
    assert 0.3 < written[0] < 1.1
    assert written[1] < written[0]


def test_the_comb_finds_the_period_of_a_drawn_curve() -> None:
    """64 sizes, 10 us a step, and 100 us less at every seventh."""
    sizes = np.arange(1, 65)
    level = 500.0 + 10 * sizes - 100 * (sizes % 7 == 0) + np.random.default_rng(1).normal(0, 3, 64)
    assert _comb(level)[0] == 7
    assert _comb(500.0 + 10 * sizes + np.random.default_rng(2).normal(0, 3, 64)) == []


# Parallel units and the stripe


def test_steps_repeat_by_hand() -> None:
    """Three units: 1 to 3 pages take 5, 4 to 6 take 10, and so on, a little more for each page."""
    pages = np.arange(24.0)
    level = 5.0 * (1 + pages // 3) + 0.1 * pages
    assert _step_period(level, np.full(24, 0.05)) == 3
    assert _step_period(1.0 + 2.0 * pages, np.full(24, 0.05)) == 1


def test_conflicts_of_a_bus_are_not_those_of_units() -> None:
    """Eight units on four buses: the bus is busy at 4, 12, 20, and the unit too at 8, 16, 24."""
    apart = np.arange(1, 41)
    level = np.full(40, 1.0)
    level[apart % 4 == 0] = 1.5
    level[apart % 8 == 0] = 1.8
    assert _conflict_period(level, 0.01) == 8
    assert _conflict_period(np.full(40, 1.0), 0.01) is None


@pytest.mark.parametrize(
    ("channels", "dies", "queue_depth"), [(2, 1, 1), (5, 1, 32), (8, 2, 1), (4, 2, 32)]
)
def test_units_of_a_striped_drive(channels: int, dies: int, queue_depth: int) -> None:
    found = units_of(
        drive(6, channels, dies, controller__queue_depth=queue_depth), page_bytes=6 * KIB
    )
    units, stripe = found["parallel-units"], found["stripe"]
    assert (units.verdict, units.value) == ("found", channels * dies), units.why
    assert (stripe.verdict, stripe.value) == ("found", 6 * KIB * channels * dies), stripe.why


def test_one_unit_is_found_where_pages_go_anywhere() -> None:
    found = units_of(drive(16, controller__queue_depth=1), page_bytes=16 * KIB)
    assert found["parallel-units"].value == 1
    assert found["stripe"].verdict == "absent"


def test_blocks_on_units_show_by_pairs_of_reads_alone() -> None:
    logged: dict[str, Any] = {"ftl__scheme": "bast"}
    found = units_of(drive(16, 4, **logged), page_bytes=16 * KIB)
    assert found["parallel-units"].value == 4, found["parallel-units"].why
    assert found["parallel-units"].figures["run_on_one_unit_B"] == 64 * 16 * KIB
    assert found["stripe"].verdict == "absent"
    alone = units_of(drive(16, 4, controller__queue_depth=1, **logged), page_bytes=16 * KIB)
    assert alone["parallel-units"].verdict == "unknown"
    assert "command queuing" in alone["parallel-units"].why


def test_a_slow_bus_is_no_number_of_units() -> None:
    """Four dies behind each of two buses that take longer for a page than a die does: 273 us against 200."""
    slow = drive(
        16, 2, 4, timing__bus_rate="60 MB/s", timing__program="200 us", controller__queue_depth=1
    )
    finding = units_of(slow, page_bytes=16 * KIB)["parallel-units"]
    assert finding.verdict == "unknown", finding.value


def test_a_full_buffer_is_no_step_of_units() -> None:
    """A write that is longer than five pages is taken in parts, each after the one before."""
    buffered = drive(
        8,
        8,
        controller__queue_depth=1,
        controller__write_buffer__size="40 KiB",
        controller__write_buffer__oversized="stream",
        controller__write_buffer__flushes=8,
    )
    finding = units_of(buffered, page_bytes=8 * KIB)["parallel-units"]
    assert finding.value in (None, 8), finding.why


def test_the_cost_of_units_is_not_below_what_is_asked() -> None:
    known = {"clustered-page": Finding("clustered-page", "found", 6 * KIB, "B")}
    with Target(drive(6, 2)) as target:
        context = Context(target, "quick", known=known)
        said = Parallelism().cost(context)
        Parallelism().run(context)
        # Beside what is asked of all, the cost has the fills before places are written that were just written.
        assert 0.2 < target.bytes_written / said.bytes_written < 1.1
        assert target.bytes_read < 1.2 * said.bytes_read


def unpaged_units(ssd: Ssd) -> list[Finding]:
    with Target(ssd) as target:
        return Parallelism().run(Context(target, "quick"))


def test_units_show_without_a_known_page() -> None:
    """By reads of blocks, on a drive that hides its page and on one that logs blocks."""
    cases: list[tuple[int, dict[str, Any]]] = [
        (5, {"host__partial_pages": "whole"}),
        (2, {"ftl__scheme": "bast", "host__partial_pages": "whole"}),
    ]
    for channels, settings in cases:
        units, stripe, _ = unpaged_units(drive(6, channels, **settings))
        assert (units.verdict, units.value) == ("found", channels), units.why
        assert units.confidence > 0.9
        assert stripe.verdict == "unknown" and "not known" in stripe.why


def test_without_a_page_and_a_queue_nothing_shows() -> None:
    units, *others = unpaged_units(drive(6, 4, controller__queue_depth=1))
    assert [found.verdict for found in (units, *others)] == ["unknown"] * 3
    assert "one command is taken at a time" in units.why


def test_without_a_page_the_cost_is_about_what_is_asked() -> None:
    with Target(drive(6, 2, host__partial_pages="whole")) as target:
        context = Context(target, "quick")
        said = Parallelism().cost(context)
        Parallelism().run(context)
        assert 0.8 < target.bytes_written / said.bytes_written < 1.2
        assert 0.4 < target.bytes_read / said.bytes_read < 1.5


def test_all_pairs_are_planned_once() -> None:
    for count in (2, 7, 64):
        plan = rounds(count)
        pairs = [pair for a, b in plan for pair in zip(a.tolist(), b.tolist(), strict=True)]
        assert sorted(pairs) == [(i, j) for i in range(count) for j in range(i + 1, count)]
        assert all(np.unique([*a, *b]).size == 2 * a.size for a, b in plan)


def test_groups_need_neither_order_nor_equal_shares() -> None:
    """Four units, one of them with half of the places; a pair on one takes 1.3 times as long, with 15 % of noise."""
    rng = np.random.default_rng(4)
    unit = rng.choice(4, 96, p=[0.5, 0.2, 0.2, 0.1])
    noise = rng.normal(0, 0.15, (96, 96))
    took = np.log(1.3) * (unit[:, None] == unit) + (noise + noise.T) / np.sqrt(2)
    found = groups(took)
    assert len({*zip(unit.tolist(), found.tolist(), strict=True)}) == 4 == found.max() + 1
    labels = groups((noise + noise.T) / np.sqrt(2))
    assert labels.max() == 0


@pytest.mark.parametrize("settings", [{}, {"controller__read_buffer__size": "1 MiB"}])
def test_two_units_on_one_slow_bus_are_no_one_unit(settings: dict[str, object]) -> None:
    """A page takes 328 us on the bus and 60 us in the cells, so that any two reads wait: most of it for the bus."""
    slow = {"timing__bus_rate": "50 MB/s", "timing__read": "60 us", "timing__program": "200 us"}
    finding = units_of(drive(16, 1, 2, **slow, **settings), page_bytes=16 * KIB)["parallel-units"]
    assert (finding.verdict, finding.value) == ("found", 2), finding.why


@pytest.mark.parametrize("queue_depth", [1, 32])
def test_one_unit_under_logs_needs_a_queue(queue_depth: int) -> None:
    """That reads wait for each other tells one unit only if another command has overtaken a read."""
    logged = drive(
        16,
        ftl__scheme="bast",
        controller__queue_depth=queue_depth,
        controller__read_buffer__size="1 MiB",
    )
    finding = units_of(logged, page_bytes=16 * KIB)["parallel-units"]
    assert finding.value == (1 if queue_depth > 1 else None), finding.why


def test_a_buffer_that_takes_writes_in_parts_is_no_stripe() -> None:
    """Kim 2011's SSD-A: the curve of writes repeats every 64 KiB, and has steps of a page's time inside of that."""
    with Target("sim:ssd-a") as target:
        known = {"clustered-page": Finding("clustered-page", "found", 16 * KIB, "B")}
        findings = Parallelism().run(Context(target, "full", known=known))
    assert [finding.verdict for finding in findings] == ["unknown"] * 3
    pages = np.arange(1.0, 25.0)
    turns = 500.0 * ((pages - 1) // 4)
    inside = 400.0 * ((pages - 1) // 2 % 2)
    assert _inner_share(turns, 4) == 0
    assert _inner_share(turns + inside, 4) > 1


def test_logs_forbid_one_unit_by_writes() -> None:
    """Where nothing is queued, writes alone tell one unit; not if logs were found."""
    logs = {
        "clustered-page": Finding("clustered-page", "found", 16 * KIB, "B"),
        "mapping": Finding("mapping", "found", "log-block"),
    }
    with Target(drive(16, controller__queue_depth=1)) as target:
        finding = Parallelism().run(Context(target, "quick", known=logs))[0]
    assert finding.verdict == "unknown"


# What a target is


@pytest.mark.parametrize("name", ["ssd-a", "ssd-b", "tlc-nvme"])
def test_simulated_flash_is_plausible(name: str) -> None:
    with Target(f"sim:{name}") as target:
        finding = Plausible().run(Context(target, "quick"))[0]
    # No sign of flash yet: `kind.py` asks for it.
    assert finding.verdict == "unknown" and not speaks_against(finding), finding.why


def test_what_is_no_flash_is_told_by_its_times() -> None:
    sizes = np.array([4, 16, 64, 256]) * KIB

    def curve(*micros: float) -> np.ndarray:
        return np.repeat(np.array(micros)[:, None] * 1e3, 8, axis=1)

    flash = {"write and flush": curve(400, 410, 450, 700), "read": curve(80, 90, 120, 300)}
    assert _reasons(flash, sizes, 500e6) == []
    cached = {"write and flush": curve(900, 905, 910, 990), "read": curve(120, 121, 124, 150)}
    assert "virtual disk" in _reasons(cached, sizes, 3e9)[0]
    # One flat curve is not enough: flash with many chips writes 64 KiB at the cost of 4.
    assert _reasons(flash | {"write and flush": curve(400, 400, 400, 420)}, sizes, 500e6) == []
    memory = {"read": curve(0.5, 0.8, 2, 7)}
    assert "memory" in _reasons(memory, sizes, 500e6)[0]
    assert "GB/s" in _reasons(flash, sizes, 40e9)[0]
    assert "rotating" in _reasons({"read": curve(9000, 9100, 9400, 11000)}, sizes, 100e6)[-1]


# What is declared

QUEUE = {
    "logical_block_size": "512",
    "physical_block_size": "4096",
    "minimum_io_size": "4096",
    "optimal_io_size": "0",
    "discard_granularity": "4096",
    "max_sectors_kb": "1280",
    "rotational": "0",
    "nr_requests": "64",
    "write_cache": "write back",
    "scheduler": "none [mq-deadline] kyber",
}


def sysfs(root: Path, disk: str, part: str | None = None) -> Path:
    """As the kernel lays it out: devices, and links to them."""
    place = root / "devices" / "pci0" / "block" / disk
    (place / "queue").mkdir(parents=True)
    for key, value in QUEUE.items():
        (place / "queue" / key).write_text(value + "\n")
    (place / "device").mkdir()
    (place / "device" / "model").write_text("Some Drive  \n")
    (root / "class" / "block").mkdir(parents=True)
    (root / "class" / "block" / disk).symlink_to(place)
    if part:
        (place / part).mkdir()
        (place / part / "partition").write_text("1\n")
        (root / "class" / "block" / part).symlink_to(place / part)
    return root


def answering(data: bytes) -> Callable[[str], Nvme]:
    """Opens a namespace that answers Identify with these bytes."""

    def send(opcode: int, length: int, **_: object) -> bytes:
        assert (opcode, length) == (0x06, 4096)
        return data

    return lambda path: Nvme(path, sender=send)


def test_the_queue_is_read(tmp_path: Path) -> None:
    found = declared("/dev/sdq", sys_root=sysfs(tmp_path, "sdq"))
    assert found["physical_block_size"].value == 4096
    assert found["max_sectors_kb"].value == 1280 * KIB
    assert found["scheduler"].value == "mq-deadline"
    assert found["write_cache"].value == "write back"
    assert found["model"].value == "Some Drive"
    assert found["rotational"].value == 0
    assert "nvme" not in found and doubts(found) == []


def test_a_partition_stands_for_its_disk(tmp_path: Path) -> None:
    found = declared("/dev/sdq1", sys_root=sysfs(tmp_path, "sdq", "sdq1"))
    assert found["device"].value == "sdq"
    assert found["nr_requests"].value == 64


def test_an_unknown_device_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="found no block device 'sdx'") as caught:
        declared("/dev/sdx", sys_root=sysfs(tmp_path, "sdq"))
    assert "\n" not in str(caught.value) and "lsblk" in caught.value.hint


def test_namespaces_count_in_their_blocks(tmp_path: Path) -> None:
    data = bytearray(4096)
    data[24], data[26], data[128 + 2], data[128 + 4 + 2] = 0x10, 1, 9, 12
    struct.pack_into("<HHHHH", data, 64, 3, 0, 255, 3, 31)
    root = sysfs(tmp_path, "nvme0n1", "nvme0n1p1")
    found = declared("/dev/nvme0n1p1", sys_root=root, open_nvme=answering(bytes(data)))
    sizes = {key: found[key].value for key in ("npwg", "npwa", "npdg", "npda", "nows")}
    assert sizes == {
        "npwg": 16 * KIB,
        "npwa": 4 * KIB,
        "npdg": 1024 * KIB,
        "npda": 16 * KIB,
        "nows": 128 * KIB,
    }
    data[24] = 0
    unmeant = declared("/dev/nvme0n1", sys_root=root, open_nvme=answering(bytes(data)))["npwg"]
    assert unmeant.value is None and "NSFEAT" in unmeant.note


def test_a_namespace_that_gives_no_answer_is_a_note(tmp_path: Path) -> None:
    found = declared("/dev/nvme77n1", sys_root=sysfs(tmp_path, "nvme77n1"))
    assert found["nvme"].value is None
    assert found["nvme"].note == "/dev/nvme77n1: no such file or directory"
    assert found["physical_block_size"].value == 4096


def test_declared_beside_found() -> None:
    values = {
        name: Declared(name, value, "B", "here")
        for name, value in {
            "physical_block_size": 4096,
            "npwg": 16384,
            "npwa": 4096,
            "optimal_io_size": 0,
            "nows": 131072,
            "npdg": 1 << 20,
        }.items()
    }
    findings = [
        Finding("clustered-page", "found", 16384, "B"),
        Finding("stripe", "unknown"),
        Finding("clustered-block", "found", 3 << 20, "B"),
    ]
    said = {(c.name, c.parameter): c for c in beside(values, findings)}
    assert said["npwg", "clustered-page"].relation == "agrees"
    assert said["npwa", "clustered-page"].relation == "agrees"
    assert said["physical_block_size", "clustered-page"].relation == "differs"
    assert said["optimal_io_size", "stripe"].relation == "not comparable"
    assert said["nows", "stripe"].relation == "not comparable"
    assert said["npdg", "clustered-block"].relation == "differs"
    assert said["npdg", "clustered-block"].sentence == (
        "npdg is 1 MiB, the clustered block that was found is 3 times that, 3 MiB."
    )
    assert all(c.sentence.endswith(".") and "\n" not in c.sentence for c in said.values())


@pytest.mark.parametrize(
    ("device", "word"),
    [("vda", "virtio"), ("loop7", "file"), ("dm-0", "mapped"), ("zram0", "memory")],
)
def test_virtual_names_raise_doubts(device: str, word: str) -> None:
    assert word in doubts({"device": Declared("device", device, "", "here")})[0]


def test_rotating_and_virtual_models_raise_doubts() -> None:
    values = {
        "device": Declared("device", "sda", "", "here"),
        "model": Declared("model", "QEMU HARDDISK", "", "here"),
        "rotational": Declared("rotational", 1, "", "here"),
    }
    model, rotating = doubts(values)
    assert "QEMU" in model and "rotating" in rotating


# The seam


def test_probes_are_listed_once() -> None:
    names = [probe.NAME for probe in PROBES]
    assert len(set(names)) == len(names)
    assert names.index("plausible") < names.index("clustered-page") < names.index("parallelism")
