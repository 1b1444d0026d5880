"""Pauses, throttling, and the reach of the map: what small models have, and what only looks like it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flashwright.drive.findings import Finding
from flashwright.probing.probes.map_reach import MapReach
from flashwright.probing.probes.pauses import Pauses, recurring
from flashwright.probing.probes.throttling import Throttling
from flashwright.simulation.ssd import Ssd
from flashwright.target.question import Context
from flashwright.target.target import Target
from othermakes import KIB, MIB, READ, Heated, Model, PageMapped, Stateless

PAGE = {"clustered-page": Finding("clustered-page", "found", 16 * KIB, "B", confidence=1.0)}


def ask(probe: Any, model: Model | Ssd) -> dict[str, Finding]:
    with Target(model) as target:
        context = Context(target, "quick", known=PAGE)
        found = probe.run(context)
        assert target.bytes_written <= 1.1 * probe.cost(context).bytes_written
        assert target.bytes_read <= 1.1 * probe.cost(context).bytes_read
    assert [one.parameter for one in found] == list(probe.PARAMETERS)
    return {one.parameter: one for one in found}


# The map


@pytest.mark.parametrize("segments", [10, 32])
def test_the_reach_of_the_map_and_a_miss_are_found(segments: int) -> None:
    drive = PageMapped(segments=segments, segment_bytes=4 * MIB, miss_ns=90e3)
    found = ask(MapReach(), drive)
    reach, miss = found["map-reach"], found["map-miss"]
    assert reach.value == pytest.approx(segments * 4 * MIB, rel=0.25), reach.why
    assert reach.low is not None and reach.high is not None
    assert reach.low <= segments * 4 * MIB <= reach.high
    assert miss.value == pytest.approx(90e3, rel=0.2)


def test_a_map_that_is_in_ram_has_no_reach() -> None:
    found = ask(MapReach(), PageMapped())
    assert found["map-reach"].verdict == "absent" and found["map-miss"].verdict == "absent"


def test_a_cache_of_data_is_no_map() -> None:
    """The latest 64 MiB of pages that were read are kept: reads of them are fast, whatever the map does."""

    class Caching(PageMapped):
        def renew(self) -> None:
            super().renew()
            self.kept: dict[int, None] = {}

        def serve(self, kind: int, offset: int, size: int, at: float) -> float:
            page = offset // self.page
            if kind == READ and page in self.kept:
                return at + self.overhead
            if kind == READ:
                self.kept[page] = None
                if len(self.kept) > 4096:
                    del self.kept[next(iter(self.kept))]
            return super().serve(kind, offset, size, at)

    assert ask(MapReach(), Caching())["map-reach"].verdict == "absent"


def test_slow_places_are_no_misses() -> None:
    """The second half of the drive takes twice as long to read."""

    class Halves(PageMapped):
        def serve(self, kind: int, offset: int, size: int, at: float) -> float:
            ends = super().serve(kind, offset, size, at)
            return ends + 90e3 if kind == READ and 2 * offset > self.capacity_bytes else ends

    found = ask(MapReach(), Halves())["map-reach"]
    assert found.verdict == "unknown" and "it is the place" in found.why


# Pauses


@pytest.mark.parametrize(("every_ns", "length_ns"), [(0.5e9, 20e6), (0.1e9, 2e6)])
def test_pauses_by_the_clock_are_found(every_ns: float, length_ns: float) -> None:
    found = ask(Pauses(), PageMapped(pause_every_ns=every_ns, pause_ns=length_ns))
    assert found["pause-period"].value == pytest.approx(every_ns, rel=0.1), found[
        "pause-period"
    ].why
    assert found["pause-length"].value == pytest.approx(length_ns, rel=0.2)


def test_a_drive_that_never_pauses_has_none() -> None:
    assert ask(Pauses(), PageMapped())["pause-period"].verdict == "absent"


def test_what_goes_by_reads_is_no_clock() -> None:
    class Counting(Stateless):
        reads = 0

        def serve(self, kind: int, offset: int, size: int, at: float) -> float:
            self.reads += kind == READ
            ends = super().serve(kind, offset, size, at)
            return ends + (5e6 if kind == READ and self.reads % 1000 == 0 else 0.0)

    found = ask(Pauses(), Counting())["pause-period"]
    assert found.verdict == "unknown" and "by reads rather than by time" in found.why


def test_tails_are_no_pauses() -> None:
    latency = np.full(20_000, 1e5)
    latency[np.random.default_rng(1).choice(20_000, 40, replace=False)] = 5e6
    assert not recurring(np.cumsum(latency) - latency, latency).regular


# Throttling


def test_heat_is_found_with_what_is_left_and_what_rest_undoes() -> None:
    found = ask(Throttling(), Heated())
    share, recovery = found["throttled-share"], found["throttle-recovery"]
    assert share.value == pytest.approx(1 / 2.5, rel=0.15), share.why
    assert recovery.verdict == "found"
    # A fifth beyond what is hot is gone after four seconds; looks in between heat.
    assert recovery.low is not None and recovery.high is not None
    assert 1e9 <= recovery.value <= 64e9, recovery.why  # type: ignore[operator]


def test_writes_that_slow_down_are_no_heat() -> None:
    assert ask(Throttling(), Heated(writes_only=True))["throttled-share"].verdict == "absent"


def test_what_rest_does_not_undo_is_untold() -> None:
    found = ask(Throttling(), Heated(cools_bytes_s=1.0))["throttled-share"]
    assert found.verdict == "unknown" and "do not bring it back" in found.why


def test_entries_of_a_map_that_are_loaded_one_by_one_are_not_told_absent() -> None:
    """New places load their entry in short spans as in long ones; only places that were read before are faster."""

    class Entries(PageMapped):
        def renew(self) -> None:
            super().renew()
            self.there: set[int] = set()

        def serve(self, kind: int, offset: int, size: int, at: float) -> float:
            entry = offset // self.page
            more = 60e3 if kind == READ and entry not in self.there else 0.0
            if kind == READ:
                self.there.add(entry)
            return super().serve(kind, offset, size, at) + more

    found = ask(MapReach(), Entries())
    assert found["map-reach"].verdict == "unknown", found["map-reach"].why
