"""Reads that meet programs and erases: drives that suspend them, and what only looks like that."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import pytest

from flashwright.drive.findings import Finding
from flashwright.probing.probes import suspension
from flashwright.probing.probes.suspension import Suspension, reads_during
from flashwright.simulation.ssd import Ssd
from flashwright.target.question import Context
from flashwright.target.target import Target
from othermakes import FLUSH, KIB, MIB, READ, TRIM, WRITE, Model, PageMapped

KNOWN = {
    "clustered-page": Finding("clustered-page", "found", 16 * KIB, "B", confidence=1.0),
    "program-unit": Finding("program-unit", "found", 16 * KIB, "B", confidence=1.0),
    "parallel-units": Finding("parallel-units", "found", 4, "units", confidence=1.0),
    "mapping": Finding("mapping", "found", "page", confidence=0.95),
    "flush-honoured": Finding("flush-honoured", "absent", confidence=0.95),
}


def ask(model: Model | Ssd, known: dict[str, Finding] = KNOWN) -> dict[str, Finding]:
    probe = Suspension()
    with Target(model) as target:
        context = Context(target, "quick", known=known)
        found = probe.run(context)
        assert target.bytes_written <= 1.1 * probe.cost(context).bytes_written
        assert target.bytes_read <= 1.1 * probe.cost(context).bytes_read
    assert [one.parameter for one in found] == list(probe.PARAMETERS)
    return {one.parameter: one for one in found}


class Dies(PageMapped):
    """Reads go on while a flush waits; a die that is busy lets a read pass, or does not.

    With `suspend_ns` a read takes so much longer and the program goes on after it; with `in_turn` it waits for the one
    program under way, of which each write makes some short ones; data need the one bus for `bus_ns` a page, and reads
    need it as well; `hides` is RAM from which nothing is written until the drive rests.
    """

    def __init__(
        self,
        *,
        suspend_ns: float | None = None,
        in_turn: int = 0,
        bus_ns: float = 0.0,
        hides: bool = False,
        **rest: Any,
    ) -> None:
        self.suspend_ns, self.in_turn = suspend_ns, in_turn
        self.bus_ns, self.hides = bus_ns, hides
        super().__init__("dies", 64 * MIB, overhead_ns=8e3, link_ns_byte=0.1, **rest)

    def renew(self) -> None:
        super().renew()
        self.bus = 0.0

    def play(
        self, kinds: Any, first_sectors: Any, sectors: Any, depth: int, seconds: float | None = None
    ) -> tuple[Any, Any]:
        submitted, ended = np.empty(len(kinds), np.uint64), np.empty(len(kinds), np.uint64)
        queue: list[int] = []
        at = self.clock
        rows = zip(kinds.tolist(), first_sectors.tolist(), sectors.tolist(), strict=True)
        for index, (kind, first, length) in enumerate(rows):
            if len(queue) == depth:
                at = max(at, heapq.heappop(queue))
            end = int(self.serve(kind, first * 512, length * 512, at)) + 1
            submitted[index], ended[index] = at, end
            heapq.heappush(queue, end)
        self.clock = max([at, *queue])
        return submitted, ended

    def serve(self, kind: int, offset: int, size: int, at: float) -> float:
        page = offset // self.page
        if kind == TRIM:
            for one in range(page, (offset + size) // self.page):
                if (slot := self.map[one]) >= 0:
                    self.map[one] = self.owner[slot] = -1
                    self.valid[slot // self.pages_per_block] -= 1
        if kind == TRIM or (kind == READ and self.map[page] < 0):
            return at + self.overhead
        if kind == FLUSH:
            return at + self.overhead if self.hides else max(at, *self.busy) + self.overhead
        if kind == WRITE and self.hides:
            super().serve(kind, offset, size, at)
            self.busy = [0.0] * self.dies
            return at + self.overhead
        if kind == WRITE and self.bus_ns:
            ends = at
            for first in range(offset, offset + size, self.page):
                self.bus = max(self.bus, at) + self.bus_ns
                ends = super().serve(kind, first, self.page, self.bus)
            return ends
        if kind == WRITE:
            return super().serve(kind, offset, size, at)
        die = self.map[page] % self.dies
        start, took = at + self.overhead, self.read_ns * self.jitter()
        left = max(self.busy[die] - start, 0.0)
        if left and self.suspend_ns is not None:
            took += self.suspend_ns
            self.busy[die] += took
        elif self.in_turn:
            took += left % (self.program_ns / self.in_turn)
            self.busy[die] += took if left else 0.0
        else:
            self.busy[die] = max(start, self.busy[die]) + took
            took += left
        return max(start + took, self.bus if self.bus_ns else 0.0)


@pytest.mark.parametrize(("suspend_ns", "right"), [(20e3, "yes"), (80e3, "yes"), (None, "no")])
def test_suspension_of_programs_is_found(suspend_ns: float | None, right: str) -> None:
    found = ask(Dies(suspend_ns=suspend_ns))
    assert found["program-suspension"].value == right, found["program-suspension"].why
    assert found["program-suspension"].figures["program_ns"] == pytest.approx(620e3, rel=0.2)
    assert found["erase-suspension"].verdict == "unknown"


@pytest.mark.parametrize(("suspend_ns", "right"), [(50e3, "yes"), (None, "no")])
def test_suspension_of_erases_is_found_in_full_mode(
    suspend_ns: float | None, right: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As full mode does it, with the few writes of quick mode before."""
    monkeypatch.setattr(suspension, "_may_fill", lambda context: True)
    found = ask(Dies(suspend_ns=suspend_ns, erase_ns=4e6))
    assert found["erase-suspension"].value == right, found["erase-suspension"].why
    outlives = KNOWN | {"flush-honoured": Finding("flush-honoured", "found", "no", confidence=0.9)}
    hidden = ask(Dies(suspend_ns=suspend_ns, erase_ns=4e6), outlives)["erase-suspension"]
    assert hidden.verdict == "unknown" and "no flush waits" in hidden.why


@pytest.mark.parametrize(("suspend_ns", "wrong"), [(20e3, "no"), (None, "yes")])
def test_the_way_of_the_data_is_no_program(suspend_ns: float | None, wrong: str) -> None:
    """The bus takes as long for all units as a program: reads wait for it, whether programs are suspended or not."""
    found = ask(Dies(suspend_ns=suspend_ns, bus_ns=150e3))["program-suspension"]
    assert found.value != wrong, found.why


@pytest.mark.parametrize("parts", [3, 6])
def test_short_programs_one_after_the_other_are_no_suspension(parts: int) -> None:
    found = ask(Dies(in_turn=parts))["program-suspension"]
    assert found.value != "yes", found.why


def test_ram_that_hides_programs_leaves_it_open() -> None:
    found = ask(Dies(hides=True))["program-suspension"]
    assert found.verdict == "unknown" and "RAM hides" in found.why


def test_without_units_nothing_is_asked() -> None:
    known = {name: KNOWN[name] for name in ("clustered-page", "mapping")}
    for finding in ask(Dies(), known).values():
        assert finding.verdict == "unknown" and "is not known" in finding.why


@pytest.mark.parametrize(
    ("suspends", "right"), [("nothing", "no"), ("erases", "no"), ("programs-and-erases", "yes")]
)
def test_simulated_drives(suspends: str, right: str) -> None:
    drive = Ssd.from_text("", "dies").with_(
        {
            "geometry.channels": 4,
            "geometry.dies-per-channel": 1,
            "geometry.page-size": "16 KiB",
            "geometry.pages-per-block": 64,
            "geometry.blocks-per-plane": 80,
            "capacity.logical": "256 MiB",
            "timing.model": "parallel",
            "timing.read": "60 us",
            "timing.program": "900 us",
            "timing.bus-rate": "800 MB/s",
            "controller.interface-rate": "2000 MB/s",
            "controller.queue-depth": 32,
            "controller.read-overhead": "5 us",
            "chips.suspends": suspends,
        }
    )
    found = ask(drive)["program-suspension"]
    assert found.value == right, found.why


def test_reads_that_came_with_the_write_tell_nothing() -> None:
    assert reads_during(np.zeros(40), np.full(40, 1e6), 2e4) is None
