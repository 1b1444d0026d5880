"""Units by places that are read alike or were just written, and probes that are put off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flashwright.drive.findings import Finding, unknown
from flashwright.errors import TargetError
from flashwright.probing import session
from flashwright.probing.plan import planned
from flashwright.probing.probes.parallelism import Parallelism
from flashwright.probing.probes.parallelism.conflicts import Pairs, Trial
from flashwright.probing.probes.parallelism.equal_places import (
    JustWritten,
    _merge_groups,
    _of_places,
)
from flashwright.probing.probes.write_buffer import _unless_whole
from flashwright.simulation.ssd import Ssd
from flashwright.target.question import Context, Cost
from flashwright.target.target import Target
from flashwright.twin import Model

KIB, MIB = 1 << 10, 1 << 20
FOUR = Model(page_bytes=16 * KIB, pages_per_block=64, channels=4).ssd("four", "", 512 * MIB)
STRIPED = FOUR.with_({"controller.queue-depth": 32, "controller.noise": 0.03})


def _waits(unit: np.ndarray, apart: float, bus: np.ndarray | None = None) -> np.ndarray:
    """Pairs take 2 on one unit, 1.95 on one bus, else `apart`."""
    took = np.full((unit.size, unit.size), apart)
    if bus is not None:
        took[bus[:, None] == bus[None]] = 1.95
    took[unit[:, None] == unit[None]] = 2.0
    noise = np.random.default_rng(1).normal(0, 0.002, took.shape)
    took = took + (noise + noise.T) / 2
    np.fill_diagonal(took, 0)
    return took


def test_what_places_have_of_their_own_is_taken_off() -> None:
    own = np.random.default_rng(2).normal(0, 1, 12)
    took = own[:, None] + own[None]
    np.fill_diagonal(took, 0)
    left = took - _of_places(took)
    off = ~np.eye(12, dtype=bool)
    assert np.ptp(left[off]) < 1e-9


def test_a_unit_in_two_groups_is_one_but_a_bus_is_none() -> None:
    split = np.repeat(np.arange(4), 12)
    assert _merge_groups(_waits(split // 2, 1.0), split).max() + 1 == 2
    assert _merge_groups(_waits(split, 1.0, bus=split // 2), split).max() + 1 == 4


@pytest.mark.parametrize(("size", "units"), [("0 B", 1), ("16 MiB", None)])
def test_places_that_ram_still_has_are_on_no_unit(size: str, units: int | None) -> None:
    """Any two wait for the firmware alone, which takes nearly all of such a read."""
    place = np.arange(64) * 37

    class Kept(Pairs):
        def _some(self, count: int) -> np.ndarray:
            return place[:count]

    with Target(STRIPED.with_({"controller.read-buffer.size": size})) as target:
        target.fill(size_bytes=MIB)
        pairs = Kept(target, np.random.default_rng(4), 16 * KIB, 512 * 64, 1 << 30)
        for _ in range(2):
            read = target.play("read", pairs._fresh(place), pairs.read_bytes)
        took = np.full((64, 64), np.log(1.95 * np.median(read.latency_ns)))
        np.fill_diagonal(took, 0)
        trial = Trial(place, np.zeros(64, np.int64), took)
        conclusion = pairs._conclude(trial, trial)
    assert conclusion.units == units and ("as from RAM" in conclusion.why) == (units is None)


def test_reads_in_turn_are_plays_of_each_group() -> None:
    offsets = np.random.default_rng(3).integers(0, 512 * MIB // 16384, (40, 2)) * 16384
    with Target(STRIPED) as one, Target(STRIPED) as other:
        for target in (one, other):
            target.fill(size_bytes=MIB)
        together = one.read_in_turn(offsets, 4096)
        for index, pair in enumerate(offsets):
            times = other.play("read", pair, 4096, depth=2)
            np.testing.assert_array_equal(together.ended_ns[index], times.ended_ns)
            np.testing.assert_array_equal(together.submitted_ns[index], times.submitted_ns)
        assert (one.bytes_read, one.now_ns) == (other.bytes_read, other.now_ns)
        with pytest.raises(TargetError, match="sectors"):
            one.read_in_turn(offsets + 1, 4096)


def _units(ssd: Ssd, page_bytes: int) -> dict[str, Finding]:
    page = Finding("clustered-page", "found", page_bytes, "B", confidence=1.0)
    with Target(ssd) as target:
        context = Context(target, "quick", 1, {"clustered-page": page})
        return {finding.parameter: finding for finding in Parallelism().run(context)}


def test_cells_that_are_read_faster_do_not_hide_units() -> None:
    """Half of what is read lies in an SLC cache, whose cells take a third of the time."""
    cached = STRIPED.with_(
        {
            "geometry.bits-per-cell": 3,
            "geometry.pages-per-block": 96,
            "timing.read": "90 us",
            "slc.cache": "fixed",
            "slc.block-share": 0.35,
            "slc.page-read": "30 us",
            "slc.page-program": "150 us",
            "slc.fold-after": "100 s",
        }
    )
    units = _units(cached, 16 * KIB)["parallel-units"]
    assert (units.verdict, units.value) == ("found", 4), units.why


def test_a_map_beside_the_data_does_not_hide_units() -> None:
    """Reads of a superblock begin at its page that was written last, on whatever unit that lies."""
    mapped = STRIPED.with_(
        {
            "ftl.scheme": "superblock",
            "controller.noise": 0.02,
            "geometry.blocks-per-plane": 180,
            "capacity.logical": "512 MiB",
        }
    )
    units = _units(mapped, 16 * KIB)["parallel-units"]
    assert units.value in (None, 4), units.why
    assert units.value == 4, units.why
    assert "Just after they were written" in units.why


def test_ram_that_takes_writes_is_no_single_unit() -> None:
    """A write ends in RAM, one after the other over the link, while four units work."""
    gathered = STRIPED.with_(
        {
            "chips.write-ram": "4 MiB",
            "controller.noise": 0.0,
            "controller.interface-rate": "300 MB/s",
        }
    )
    found = _units(gathered, 16 * KIB)
    assert found["parallel-units"].value in (None, 4), found["parallel-units"].why
    assert found["stripe"].verdict != "absent"


def test_one_log_is_no_single_unit() -> None:
    """What is written at random goes to one log, and old data are found that do not wait for it."""
    logged = STRIPED.with_(
        {"ftl.scheme": "fast", "geometry.blocks-per-plane": 200, "capacity.logical": "512 MiB"}
    )
    page = 16 * KIB
    with Target(logged) as target:

        def renew() -> None:
            target.fill(size_bytes=MIB)

        rng = np.random.default_rng(5)
        sharing = JustWritten(target, rng, page, 512 * MIB // page, 1 << 30, renew).sharing()
    assert sharing.units in (None, 4), sharing.why


class _Asks:
    """A probe that plans a lot and does little."""

    ABOUT = "asks"

    def __init__(self, name: str, plan_bytes: int) -> None:
        self.NAME, self.PARAMETERS, self.planned = name, (f"{name}-seen",), plan_bytes

    def cost(self, context: Context) -> Cost:
        return Cost(bytes_written=self.planned, requests=self.planned // MIB)

    def run(self, context: Context) -> list[Finding]:
        known = "mapping-seen" in context.known
        context.target.play("write", np.arange(16) * MIB, MIB)
        return [Finding(self.PARAMETERS[0], "found", int(known), confidence=1.0, why="seen")]


def asks(name: str, plan_bytes: int) -> Any:
    """A probe, which has its names as attributes of its own."""
    return _Asks(name, plan_bytes)


def test_a_probe_that_is_put_off_is_asked_in_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its plan is three times what is left, but it takes a hundredth; and so after an interruption."""
    with Target(FOUR) as target:
        write_s = asks("mapping", 64 * MIB).cost(Context(target)).bytes_written / 1e9
        took = planned(target, [asks("mapping", 8 << 30)], "quick", 1, {}, ())[0].seconds
    assert took > write_s
    probes = [asks("mapping", 8 << 30), asks("flush", MIB), asks("pauses", MIB)]
    monkeypatch.setattr(session, "PROBES", probes)
    limit_s = took / 3
    with Target(FOUR) as target:
        whole = session.probe(target, mode="quick", drive_time=limit_s)
        ahead = session.plan(target, mode="quick", drive_time=limit_s)
    assert [asked.name for asked in whole.asked] == ["flush", "pauses", "mapping"]
    assert whole["mapping-seen"].verdict == "found" and whole["pauses-seen"].value == 0
    assert all(item.seconds > 0 for item in ahead)

    def interrupted(context: Context) -> list[Finding]:
        raise KeyboardInterrupt

    state = tmp_path / "state"
    monkeypatch.setattr(probes[2], "run", interrupted)
    with Target(FOUR) as target, pytest.raises(session.ProbeInterrupted):
        session.probe(target, mode="quick", drive_time=limit_s, state=state)
    monkeypatch.undo()
    monkeypatch.setattr(
        session, "PROBES", [asks("mapping", 8 << 30), asks("flush", MIB), asks("pauses", MIB)]
    )
    with Target(FOUR) as target:
        resumed = session.probe(target, mode="quick", drive_time=limit_s, state=state)
    assert [asked.name for asked in resumed.asked] == ["flush", "pauses", "mapping"]


def test_a_probe_with_no_time_left_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    with Target(FOUR) as target:
        took = planned(target, [asks("mapping", 8 << 30)], "quick", 1, {}, ())[0].seconds
    monkeypatch.setattr(session, "PROBES", [asks("mapping", 8 << 30)])
    with Target(FOUR) as target:
        result = session.probe(target, mode="quick", drive_time=took / 50)
    assert "not begun" in result["mapping-seen"].why
    assert unknown("x", "").verdict == result["mapping-seen"].verdict


def test_ram_that_takes_whole_pages_is_no_missing_buffer() -> None:
    """A write of less than a page reads the rest first, which takes longer than a read whatever RAM there is."""
    none = Finding("write-buffer", "absent", unit="B", confidence=0.9, why="no signs")
    for ram, verdict in (("4 MiB", "unknown"), ("0 B", "absent")):
        with Target(STRIPED.with_({"chips.write-ram": ram})) as target:
            target.fill(size_bytes=MIB)
            finding = _unless_whole(none, target, 16 * KIB, np.random.default_rng(1))
        assert finding.verdict == verdict, finding.why
