"""Data that shrink or repeat: drives that make less of them, and what only looks like it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flashwright.drive.findings import Finding
from flashwright.errors import ArgumentError
from flashwright.probing.probes.data_reduction import DataReduction
from flashwright.simulation.ssd import Ssd
from flashwright.target.contents import NOISE, QUARTER, REPEATED, ZEROS, Contents
from flashwright.target.question import Context, Mode
from flashwright.target.target import Target
from othermakes import FLUSH, KIB, MIB, READ, TRIM, WRITE, Model, PageMapped, Stateless

PAGE = {
    "clustered-page": Finding("clustered-page", "found", 16 * KIB, "B", confidence=1.0),
    "mapping": Finding("mapping", "found", "page", confidence=0.95),
}


def ask(model: Model | Ssd, mode: Mode = "quick") -> dict[str, Finding]:
    probe = DataReduction()
    with Target(model) as target:
        context = Context(target, mode, known=PAGE)
        found = probe.run(context)
        assert target.bytes_written <= 1.1 * probe.cost(context).bytes_written
        assert target.bytes_read <= 1.1 * probe.cost(context).bytes_read
    assert [one.parameter for one in found] == list(probe.PARAMETERS)
    return {one.parameter: one for one in found}


class Reducing(PageMapped):
    """Programs and cleans as much as is left of the data; reads sense as much."""

    def __init__(
        self, *, finds: float = 1.0, dedupes: bool = False, only_zeros: bool = False, **rest: Any
    ) -> None:
        self.finds, self.dedupes, self.only_zeros = finds, dedupes, only_zeros
        self.kept = 1.0
        super().__init__("reducing", **rest)
        self.whole_ns = self.program_ns

    def carry(self, noise_share: float, repeats: bool) -> None:
        self.kept = 1 - self.finds * (1 - noise_share)
        if self.only_zeros and noise_share > 0:
            self.kept = 1.0
        if repeats and self.dedupes:
            self.kept = 0.02

    def clean(self) -> float:
        return super().clean() * self.kept

    def serve(self, kind: int, offset: int, size: int, at: float) -> float:
        self.program_ns = self.whole_ns * self.kept
        return super().serve(kind, offset, size, at)


@pytest.mark.parametrize("finds", [0.4, 1.0])
def test_compression_is_found(finds: float) -> None:
    found = ask(Reducing(finds=finds))
    assert found["compression"].value == "yes", found["compression"].why
    assert found["deduplication"].verdict == "absent", found["deduplication"].why


def test_deduplication_is_told_from_compression() -> None:
    found = ask(Reducing(finds=0.0, dedupes=True))
    assert found["compression"].verdict == "absent", found["compression"].why
    assert found["deduplication"].value == "yes", found["deduplication"].why


def test_zeros_that_are_only_noted_are_no_compression() -> None:
    found = ask(Reducing(only_zeros=True))
    assert found["compression"].value == "zeros", found["compression"].why
    assert found["deduplication"].verdict == "absent"


@pytest.mark.parametrize(
    "model",
    [
        PageMapped(),
        # A cache that fills in the middle, and rest that never comes.
        PageMapped(slc_share=0.3),
        PageMapped(pause_every_ns=0.2e9, pause_ns=20e6),
    ],
    ids=["plain", "slc", "pauses"],
)
def test_drives_that_do_the_same_with_all_data_have_neither(model: Model) -> None:
    found = ask(model)
    for finding in found.values():
        assert finding.verdict == "absent" and finding.confidence <= 0.85, finding.why


def test_a_simulated_drive_has_neither() -> None:
    ssd = Ssd.from_text("", "small").with_({"capacity.logical": "256 MiB"})
    for finding in ask(ssd).values():
        assert finding.verdict in ("absent", "unknown"), finding.why


class Budgeted(Stateless):
    """Speeds that change by the clock alone, slowly and much."""

    def serve(self, kind: int, offset: int, size: int, at: float) -> float:
        if kind in (FLUSH, TRIM):
            return at + 5e3
        slow = 1.5 + np.sin(at / 0.2e9)
        self.busy = max(at, self.busy) + 2.0 * slow * size * self.jitter()
        return self.busy


def test_speeds_that_come_and_go_are_no_compression() -> None:
    for finding in ask(Budgeted()).values():
        assert finding.verdict != "found", finding.why


class Linked(Reducing):
    """Data come one after the other over a link that is slower than the dies."""

    def renew(self) -> None:
        super().renew()
        self.wire = 0.0

    def serve(self, kind: int, offset: int, size: int, at: float) -> float:
        if kind == READ:
            self.wire = max(self.wire, super().serve(kind, offset, size, at)) + 10.0 * size
            return self.wire
        if kind == WRITE:
            at = self.wire = max(self.wire, at) + 10.0 * size
        return super().serve(kind, offset, size, at)


def test_a_slow_link_hides_it_but_cleaning_shows_it() -> None:
    """Writes in order go at the speed of the link; only full mode makes drives clean."""
    slow: dict[str, Any] = {
        "capacity_bytes": 64 * MIB, "link_ns_byte": 0.0, "program_ns": 300e3, "dies": 8, "spare": 0.07
    }  # fmt: skip
    for finds, right in ((1.0, "found"), (0.0, "absent")):
        hidden = ask(Linked(finds=finds, **slow))["compression"]
        assert hidden.verdict == "unknown" and "link" in hidden.why
        shown = ask(Linked(finds=finds, **slow), "full")
        assert shown["compression"].verdict == right, shown["compression"].why
        assert shown["deduplication"].verdict == "absent", shown["deduplication"].why


def test_contents_are_checked() -> None:
    assert Contents() == NOISE and QUARTER.noise_share == 0.25
    with pytest.raises(ArgumentError, match="noise_share: found 2, expected 0 to 1"):
        Contents(2.0)
    with pytest.raises(ArgumentError, match="where blocks repeat"):
        Contents(0.5, repeats=True)


def test_a_file_gets_the_data_that_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "disk"
    path.write_bytes(bytes(4 * MIB))
    with Target(path, destroys_data=True) as target:
        for at, data in enumerate((NOISE, QUARTER, ZEROS, REPEATED, NOISE)):
            target.play("write", at * 512 * KIB + np.arange(4) * 128 * KIB, 128 * KIB, data=data)
        # The same place of the next MiB holds the same.
        target.play("write", 2560 * KIB + np.arange(4) * 128 * KIB, 128 * KIB, data=REPEATED)
        target.flush()
    held = np.frombuffer(path.read_bytes(), np.uint8).reshape(8, -1, 512)
    noise, quarter, zeros, repeated, again, other = held[:6]
    assert (quarter[:, 128:] == 0).all() and (quarter[:, :128] != 0).mean() > 0.9
    assert not zeros.any()
    for these in (noise, quarter, repeated, again):
        assert np.unique(these[:, :64], axis=0).shape[0] == 1024
    assert (repeated == other).all()
    assert (again[:, 128:] != 0).mean() > 0.9
