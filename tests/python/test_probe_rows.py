"""Units by erases in a row, programs by rows that RAM gathers, and what RAM or a cache without gain hides."""

from __future__ import annotations

import numpy as np
import pytest

from flashwright.drive.findings import Finding
from flashwright.probing.probes.flush import Flush
from flashwright.probing.probes.map_reach import _unless_kept
from flashwright.probing.probes.parallelism import Parallelism
from flashwright.probing.probes.parallelism.erases import can_ask, erases, runs_of
from flashwright.probing.probes.parallelism.findings import program_unit
from flashwright.probing.probes.parallelism.periods import Conflicts
from flashwright.probing.probes.parallelism.rows import period_of, rows
from flashwright.probing.probes.slc_cache import SlcCache
from flashwright.simulation.ssd import Ssd
from flashwright.target.question import Context
from flashwright.target.target import Target
from flashwright.twin import Model
from recovery import drawn

KIB, MIB = 1 << 10, 1 << 20
PAGE, BLOCK = 16 * KIB, 4 * 64 * 16 * KIB
FOUR = Model(page_bytes=PAGE, pages_per_block=64, channels=4).ssd("four", "", 512 * MIB)
# One command at a time, and a bus that takes longer than a program: long writes show no step.
ONE_BUS = FOUR.with_(
    {
        "geometry.channels": 1,
        "geometry.dies-per-channel": 4,
        "timing.bus-rate": "16 MB/s",
        "timing.program": "400 us",
        "controller.queue-depth": 1,
        "controller.noise": 0.05,
    }
)
# Three pages of a word line with one program, which RAM gathers from units of 4 KiB.
GATHERED = FOUR.with_(
    {
        "geometry.bits-per-cell": 3,
        "geometry.pages-per-block": 96,
        "geometry.mapping-unit": "4 KiB",
        "chips.programming": "one-shot",
        "chips.write-ram": "4 MiB",
        "controller.queue-depth": 32,
        "controller.noise": 0.03,
    }
)


def _known(**values: int | str | None) -> dict[str, Finding]:
    names = {name.replace("_", "-"): value for name, value in values.items()}
    return {
        name: Finding(name, "absent" if value is None else "found", value, confidence=1.0)
        for name, value in names.items()
    }


def _units(ssd: Ssd, known: dict[str, Finding]) -> dict[str, Finding]:
    with Target(ssd) as target:
        context = Context(target, "quick", 1, known)
        return {finding.parameter: finding for finding in Parallelism().run(context)}


def test_erases_show_units_where_a_bus_hides_steps() -> None:
    known = _known(clustered_page=PAGE, mapping="page", clustered_block=BLOCK)
    found = _units(ONE_BUS, known)
    assert found["parallel-units"].value == 4, found["parallel-units"].why
    assert "4 writes in a row" in found["parallel-units"].why
    assert (found["stripe"].value, found["program-unit"].value) == (4 * PAGE, PAGE)


def test_erases_show_units_where_the_page_is_hidden() -> None:
    """Writes of 4 KiB cost what a page costs, and go to the next unit each."""
    known = _known(mapping="page", clustered_block=5242880)
    found = _units(drawn(6434), known)
    assert found["parallel-units"].value == 4, found["parallel-units"].why
    assert found["stripe"].verdict == "unknown"


def test_blocks_that_are_erased_together_show_no_units() -> None:
    together = ONE_BUS.with_({"geometry.superblock": "drive"})
    known = _known(clustered_page=PAGE, mapping="page", clustered_block=BLOCK)
    with Target(together) as target:
        seen = erases(Context(target, "quick", 1, known), PAGE)
    assert seen.units is None and "one write long at a time" in seen.why


def test_erases_are_not_asked_for_without_a_page_map_or_a_block() -> None:
    with Target(ONE_BUS) as target:
        asked = [
            can_ask(Context(target, "quick", 1, known))
            for known in (
                _known(mapping="page", clustered_block=BLOCK),
                _known(mapping="log-block", clustered_block=BLOCK),
                _known(mapping="page"),
            )
        ]
    assert asked == [True, False, False]


@pytest.mark.parametrize(
    ("every", "lengths", "block_pages"),
    [
        (128, (4, 3), 128),  # unlike runs
        (128, (4,), 160),  # not the block that another probe found
        (32, (4,), 32),  # eight rows of pages
        (128, (1,), 128),  # erased together
    ],
)
def test_runs_that_may_be_something_else_are_no_units(
    every: int, lengths: tuple[int, ...], block_pages: int
) -> None:
    took = np.random.default_rng(1).normal(1e6, 3e4, 2048)
    for turn, start in enumerate(range(10, took.size - every, every)):
        took[start : start + lengths[turn % len(lengths)]] += 3e6
    assert runs_of(took, PAGE, block_pages * PAGE, page_known=True).units is None


@pytest.mark.parametrize("bits", [2, 3])
def test_waits_of_a_full_ram_show_the_program(bits: int) -> None:
    ssd = GATHERED.with_({"geometry.bits-per-cell": bits})
    known = _known(clustered_page=4 * KIB, mapping="page", slc_cache=None)
    found = _units(ssd, known)
    assert found["parallel-units"].value == 4, found["parallel-units"].why
    assert found["program-unit"].value == bits * PAGE, found["program-unit"].why


def test_an_slc_cache_is_no_program() -> None:
    """Its programs are of one page each, as are those that one sees first."""
    cached = GATHERED.with_(
        {
            "geometry.blocks-per-plane": 400,
            "capacity.logical": "512 MiB",
            "slc.cache": "fixed",
            "slc.block-share": 0.6,
            "slc.page-program": "200 us",
            "slc.fold-after": "9 s",
        }
    )
    with Target(cached) as target:
        seen = rows(Context(target, "quick", 1, {}), 4 * KIB, 4)
    assert seen.row_bytes == 4 * PAGE
    known = _known(clustered_page=4 * KIB, mapping="page", slc_cache=100 * MIB)
    assert _units(cached, known)["program-unit"].value != PAGE


def test_noise_has_no_row() -> None:
    took = np.random.default_rng(2).exponential(1.0, 4096)
    assert period_of(took, list(range(2, 200)))[0] is None


def _flush(ssd: Ssd, page: int) -> Finding:
    with Target(ssd) as target:
        found = Flush().run(Context(target, "quick", 1, _known(clustered_page=page)))
    return next(each for each in found if each.parameter == "flush-honoured")


def test_a_flush_that_waits_for_no_program_is_told() -> None:
    finding = _flush(GATHERED, 4 * KIB)
    assert finding.value == "no" and "no flash is programmed in that time" in finding.why
    assert _flush(FOUR, PAGE).verdict == "unknown"


def test_a_cache_that_makes_nothing_faster_is_not_told_absent() -> None:
    """Pages of its cells are programmed no faster than others, but are read faster."""
    uncached = FOUR.with_(
        {"geometry.bits-per-cell": 2, "timing.program": "300 us", "timing.read": "80 us"}
    )
    cached = uncached.with_(
        {
            "geometry.blocks-per-plane": 400,
            "capacity.logical": "512 MiB",
            "slc.cache": "fixed",
            "slc.block-share": 0.2,
            "slc.page-read": "25 us",
            "slc.page-program": "300 us",
            "slc.fold-after": "9 s",
        }
    )
    findings = []
    for ssd in (uncached, cached):
        with Target(ssd) as target:
            context = Context(target, "quick", 1, _known(clustered_page=PAGE))
            findings.append(SlcCache().run(context)[0])
    assert [each.verdict for each in findings] == ["absent", "unknown"], [
        each.why for each in findings
    ]
    assert "what was written first is read in" in findings[1].why


def test_repeated_reads_that_gain_leave_the_map_open() -> None:
    absent = [
        Finding(name, "absent", confidence=0.9, why="no step") for name in ("map-reach", "map-miss")
    ]
    kept = Finding("read-buffer", "unknown", figures={"least_bytes": 1e8})
    verdicts = [
        _unless_kept(absent, buffer)[0].verdict
        for buffer in (kept, None, Finding("read-buffer", "absent"))
    ]
    assert verdicts == ["unknown", "absent", "absent"]


def test_where_an_slc_cache_may_be_pairs_of_reads_tell_no_program() -> None:
    """What lies on one unit is a page of the cache, not the three that normal cells take."""
    seen = Conflicts("page", 16 * KIB, np.ones((8, 4)), 4, 1.0)
    with Target(FOUR) as target:
        values = [
            program_unit(4 * KIB, seen, None, (), Context(target, "quick", 1, known)).value
            for known in (
                _known(mapping="page", slc_cache=None),
                _known(mapping="page", slc_cache=100 * MIB),
            )
        ]
    assert values == [16 * KIB, None]
