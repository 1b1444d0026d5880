"""Placement by handle: groups of addresses, what is recommended, and where nothing is gained."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from conftest import Cli
from flashwright.advice.placement import Placement, _cut, advise_placement, groups_of, handle_table
from flashwright.errors import ConfigError, WorkloadError
from flashwright.simulation.ssd import Ssd
from flashwright.traces import tracefiles, workloads

PAGE = 8
"""Sectors of a page."""


def two_writers(path: Path, requests: int) -> Path:
    """A log that is written as a ring over 8 MiB, and pages at random over 1 MiB, which nine of ten writes go to."""
    rng = np.random.default_rng(7)
    small = rng.random(requests) < 0.9
    ring = np.cumsum(~small) % 2048
    sectors = np.where(small, rng.integers(0, 256, requests), 4096 + ring) * PAGE
    rows = (f"{k * 1000},w,{sector},{PAGE}" for k, sector in enumerate(sectors))
    path.write_text("time,op,lba,size\n" + "\n".join(rows) + "\n")
    return path


COLUMNS = "time=time:ns,op=op,lba=lba:sectors,size=size:sectors"


def drive() -> Ssd:
    return Ssd.named("default").with_(
        {"timing.model": "none", "capacity.utilization": 0.8}, blocks_per_plane=64
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Placement:
    path = two_writers(tmp_path_factory.mktemp("writers") / "two.csv", 60_000)
    source = workloads.trace(path, columns=COLUMNS, addresses="scale")
    # An order of dies, which units of all dies leave no room for.
    return advise_placement(drive().with_({"placement.order": "WDCP"}), source, handles=[2, 4])


def test_two_writers_are_parted_and_two_handles_suffice(found: Placement) -> None:
    assert found.best is not None and found.best.choice.handles == 2, found.why
    hot, cold = found.groups
    assert hot.ranges == ((0, 1 << 20),) and cold.ranges == ((16 << 20, 8 << 20),)
    assert hot.share == pytest.approx(0.9, abs=0.01)
    # 256 places get nine writes of ten.
    assert hot.interval_bytes == pytest.approx(256 * 4096 / 0.9, rel=0.05)
    assert found.unknown_share < 0.05


def test_what_is_recommended_is_better_in_a_run_of_its_own(found: Placement) -> None:
    bare = found.runs[0]
    assert bare.choice.handles == 0 and found.best is not None
    with_handles = found.best.result.write_amplification
    assert bare.amplification is not None and with_handles is not None
    assert bare.amplification - with_handles > max(
        0.03 * bare.amplification, bare.width + found.best.width
    )
    # It is played with units of the other size, too.
    assert {run.choice.unit for run in found.runs} == {"block", "drive"}
    by_handle = found.best.result.json["handles"]
    assert by_handle is not None and len(by_handle) == 3
    assert by_handle[1]["pages_written"] > 8 * by_handle[2]["pages_written"]


def test_uniform_writes_gain_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = (
        f"{k},w,{sector * PAGE},{PAGE}" for k, sector in enumerate(rng.integers(0, 4096, 40_000))
    )
    path = tmp_path / "uniform.csv"
    path.write_text("time,op,lba,size\n" + "\n".join(rows) + "\n")
    source = workloads.trace(path, columns=COLUMNS, addresses="scale")
    none = advise_placement(drive(), source, handles=[2])
    assert none.best is None and "gains nothing" in none.why and not none.groups


def test_a_load_that_needs_no_cleaning_is_said_to_be_one(tmp_path: Path) -> None:
    rows = (f"{k},w,{k % 512 * PAGE},{PAGE}" for k in range(8000))
    path = tmp_path / "ring.csv"
    path.write_text("time,op,lba,size\n" + "\n".join(rows) + "\n")
    none = advise_placement(drive(), workloads.trace(path, columns=COLUMNS), handles=[2])
    assert none.best is None and "cleaning moves no page" in none.why


def test_a_drive_too_small_for_handles_says_so(tmp_path: Path) -> None:
    source = workloads.trace(two_writers(tmp_path / "two.csv", 5000), columns=COLUMNS)
    none = advise_placement(drive().with_(blocks_per_plane=16), source, handles=[8])
    assert none.best is None and "the drive can't do any of it" in none.why
    assert all("keeps" in why for why in none.failures.values()) and len(none.failures) == 2


def test_groups_are_cut_where_the_variance_is_least() -> None:
    rng = np.random.default_rng(5)
    for _ in range(30):
        values = np.sort(rng.choice(60, rng.integers(2, 9), replace=False))
        weights = rng.integers(1, 50, len(values))
        parts = int(rng.integers(1, min(4, len(values)) + 1))

        def cost(
            group: np.ndarray, values: np.ndarray = values, weights: np.ndarray = weights
        ) -> float:
            total = 0.0
            for each in np.unique(group):
                x, w = values[group == each].astype(float), weights[group == each]
                total += float((w * (x - np.average(x, weights=w)) ** 2).sum())
            return total

        every = (
            np.searchsorted(np.array(cuts), np.arange(len(values)), side="right")
            for cuts in itertools.combinations(range(1, len(values)), parts - 1)
        )
        assert cost(_cut(values, weights, parts)) == pytest.approx(min(map(cost, every)), abs=1e-6)


def test_places_of_a_page_written_in_parts_count_once() -> None:
    table = pa.table(
        {"kind": ["write", "read", "write"], "first_sector": [0, 80, 4], "sectors": [4, 8, 8]}
    )
    (only,) = groups_of(table, 4)
    assert (only.place_bytes, only.share, only.ranges) == (8192, 1.0, ((0, 65536),))


def test_no_writes_make_no_groups() -> None:
    assert groups_of(pa.table({"kind": ["read"], "first_sector": [0], "sectors": [8]}), 2) == ()
    assert handle_table(()) == [(0, 0)]


def test_what_cannot_be_advised_is_said_in_a_line(command: Cli, tmp_path: Path) -> None:
    source = workloads.trace(two_writers(tmp_path / "few.csv", 900), columns=COLUMNS)
    with pytest.raises(
        WorkloadError, match=r"the first half has 450 writes, expected 1,000 or more"
    ):
        advise_placement(drive(), source)
    with pytest.raises(ConfigError, match=r"handles: found 65, expected 1 to 64"):
        advise_placement(drive(), source, handles=[65])
    said = command(
        "advise", "placement", "hu-2012", "--trace", "bundled:postmark", "--set", "ram.manager=lru"
    )
    assert said.status == 2 and 'ram.manager = "lru" keeps no handles' in said.err
    said = command("advise", "placement", "default", "--workload", "zipf")
    assert said.status == 2 and "expected --trace" in said.err
    said = command("advise", "placement", "default", "--handles", "2,many")
    assert (
        said.status == 2 and "--handles: found '2,many', expected numbers from 1 to 64" in said.err
    )


def test_the_command_writes_figures_and_the_trace(command: Cli, tmp_path: Path) -> None:
    path = two_writers(tmp_path / "two.csv", 40_000)
    device = tmp_path / "small.toml"
    device.write_text(drive().toml)
    said = command(
        "advise", "placement", str(device), "--trace", str(path), "--columns", COLUMNS, "--addresses", "scale",
        "--handles", "2", "--json", str(tmp_path / "found.json"), "--write-trace", str(tmp_path / "placed.fwt"),
        "--report", str(tmp_path / "page.html"),
    )  # fmt: skip
    assert said.status == 0, said.err
    for text in (
        "recommended",
        "handle 1",
        "handle 2",
        "F_SET_RW_HINT",
        "--fdp_pli=2",
        "max_write_streams",
    ):
        assert text in said.out, text
    document = json.loads((tmp_path / "found.json").read_text())
    assert document["best"]["handles"] == 2 and len(document["groups"]) == 2
    assert [line["where"] for line in document["lines"]] == ["nvme", "fcntl", "fio", "udev"]
    # The trace plays as advised: its writes name the handles.
    assert tracefiles.info(tmp_path / "placed.fwt")["requests"] == 40_000
    placed = drive().with_({"placement.policy": "fdp", "placement.fdp.handles": 3})
    result = placed.play(workloads.trace(tmp_path / "placed.fwt", addresses="scale"))
    by_handle = result.json["handles"]
    assert by_handle is not None
    # Of the ring, the first half wrote only a part; the rest has handle 0.
    small, ring, unknown = (by_handle[handle]["pages_written"] for handle in (1, 2, 0))
    assert small > 8 * (ring + unknown) and ring > 0 and unknown > 0
    assert "<html" in (tmp_path / "page.html").read_text()
