"""Volumes in a drive: found by the bits that choose them, and not where something else makes writes wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flashwright.drive.findings import Finding
from flashwright.probing.probes import volumes
from flashwright.probing.probes.volumes import Volumes
from flashwright.target.question import Context
from flashwright.target.target import Target
from othermakes import FLUSH, KIB, MIB, TRIM, WRITE, Model, PageMapped, Stateless

KNOWN = {
    "clustered-page": Finding("clustered-page", "found", 16 * KIB, "B", confidence=1.0),
    "mapping": Finding("mapping", "found", "page", confidence=0.95),
    "write-buffer": Finding("write-buffer", "absent", confidence=0.95),
    "flush-honoured": Finding("flush-honoured", "absent", confidence=0.95),
}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models in Python are slow: fewer pairs."""
    monkeypatch.setattr(volumes, "_STALLED", 200)
    monkeypatch.setattr(volumes, "_PAIRS", 8000)
    monkeypatch.setattr(volumes, "_OVERWRITTEN", 0.4)


def ask(model: Model, known: dict[str, Finding] = KNOWN) -> dict[str, Finding]:
    probe = Volumes()
    with Target(model) as target:
        context = Context(target, "full", known=known)
        found = probe.run(context)
        assert target.bytes_written <= 1.1 * probe.cost(context).bytes_written
    assert [one.parameter for one in found] == list(probe.PARAMETERS)
    return {one.parameter: one for one in found}


class Cut(Model):
    """Drives of which bits of the address choose one; with `hashed`, their parity does."""

    def __init__(self, bits: tuple[int, ...], *, hashed: bool = False, noise: float = 0.02) -> None:
        super().__init__("cut", 64 * MIB, noise=noise)
        self.bits, self.hashed = bits, hashed
        count = 2 if hashed else 1 << len(bits)
        self.parts = [
            PageMapped(
                f"part-{at}", 64 * MIB, pages_per_block=32, spare=0.0, dies=2, seed=at, noise=noise
            )
            for at in range(count)
        ]
        for part in self.parts:
            # Each has its share of the flash, and is addressed as the whole is.
            part.blocks = int(part.pages / count * 1.12) // part.pages_per_block + 4
        self.renew()

    def renew(self) -> None:
        for part in self.parts:
            part.renew()

    def serve(self, kind: int, offset: int, size: int, at: float) -> float:
        if kind in (FLUSH, TRIM):
            return at + 5e3
        ends = at
        page = self.parts[0].page
        for first in range(offset, offset + size, page):
            chosen = [first >> bit & 1 for bit in self.bits]
            at_part = (
                sum(chosen) % 2 if self.hashed else sum(bit << i for i, bit in enumerate(chosen))
            )
            ends = max(ends, self.parts[at_part].serve(kind, first, page, at))
        return ends


@pytest.mark.parametrize("bits", [(17,), (25,), (15, 20)])
def test_volumes_are_found_by_the_bits_that_choose_them(bits: tuple[int, ...]) -> None:
    found = ask(Cut(bits))
    assert found["internal-volumes"].value == 1 << len(bits), found["internal-volumes"].why
    assert found["volume-stride"].value == 1 << bits[0]


def test_one_volume_is_told_where_all_wait_together() -> None:
    found = ask(Cut(()))
    for finding in found.values():
        assert finding.verdict == "absent", finding.why


def test_ram_that_is_shared_hides_volumes() -> None:
    ram = KNOWN | {"write-buffer": Finding("write-buffer", "found", MIB, "B", confidence=0.9)}
    found = ask(Cut(()), ram)["internal-volumes"]
    assert found.verdict == "unknown" and "RAM" in found.why


class InTurn(Cut):
    """Two volumes, but one command at a time."""

    def play(
        self, kinds: Any, first_sectors: Any, sectors: Any, depth: int, seconds: float | None = None
    ) -> tuple[Any, Any]:
        submitted, ended = super().play(kinds, first_sectors, sectors, 1, seconds)
        queued = np.full(submitted.size, submitted[0])
        queued[depth:] = ended[:-depth] if ended.size > depth else ended[:0]
        return queued, ended


def test_one_command_at_a_time_hides_volumes() -> None:
    found = ask(InTurn((17,)))["internal-volumes"]
    assert found.verdict == "unknown" and "one command at a time" in found.why, found.why


def test_volumes_by_a_hash_are_not_taken_for_one() -> None:
    found = ask(Cut((15, 18, 21), hashed=True))["internal-volumes"]
    assert found.verdict == "unknown", found.why


class Alone(PageMapped):
    """What is cleaned holds up the write that needs it, and no other."""

    def serve(self, kind: int, offset: int, size: int, at: float) -> float:
        if kind != WRITE:
            return at + 5e3
        took = self.clean()
        self.place(offset // self.page)
        return at + 600e3 * self.jitter() + took


class SlowPlace(Stateless):
    """A quarter of the places are slow, whatever is beside them."""

    def serve(self, kind: int, offset: int, size: int, at: float) -> float:
        slow = kind == WRITE and (offset >> 20) % 8 == 3
        return at + (5e6 if slow else 600e3) * self.jitter()


@pytest.mark.parametrize("model", [Alone(capacity_bytes=64 * MIB), SlowPlace(), Stateless()])
def test_what_holds_up_no_other_tells_nothing(model: Model) -> None:
    for finding in ask(model).values():
        assert finding.verdict == "unknown", finding.why


def test_a_drive_with_logs_is_not_asked() -> None:
    logs = KNOWN | {"mapping": Finding("mapping", "found", "log-block", confidence=0.95)}
    for finding in ask(Stateless(), logs).values():
        assert finding.verdict == "unknown" and "merges" in finding.why
