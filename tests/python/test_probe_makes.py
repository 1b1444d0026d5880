"""What drives of other makes must not make the probes say: each of these models fooled a rule once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flashwright.drive.findings import Finding
from flashwright.probing.probes.cleaning import Cleaning
from flashwright.probing.probes.cleaning.stalls import Kind, kinds_of
from flashwright.probing.probes.clustered_block import ClusteredBlock
from flashwright.probing.probes.clustered_block.block_grid import aligned, grid_of
from flashwright.probing.probes.clustered_block.probe import _decide, _Interval, _Ratio
from flashwright.probing.probes.mapping import Mapping
from flashwright.probing.probes.plausible import Plausible, kind_of_device
from flashwright.probing.probes.prefetch import Prefetch
from flashwright.probing.probes.slc_cache import SlcCache
from flashwright.probing.probes.write_buffer import Burst, WriteBuffer
from flashwright.probing.session import probe
from flashwright.simulation.ssd import Ssd
from flashwright.target.question import UNTESTED, Context
from flashwright.target.target import Target
from othermakes import KIB, MIB, Credits, Model, PageMapped, ReadsOn, Stateless, Turning

PAGE = {"clustered-page": Finding("clustered-page", "found", 16 * KIB, "B", confidence=1.0)}
PAGE_MAP = PAGE | {"mapping": Finding("mapping", "found", "page", confidence=1.0)}


def ask(probe: Any, model: Model | Ssd, known: dict[str, Finding] = PAGE) -> dict[str, Finding]:
    with Target(model) as target:
        context = Context(target, "quick", known=known)
        found = probe.run(context)
        assert target.bytes_written <= 1.1 * probe.cost(context).bytes_written
    assert [one.parameter for one in found] == list(probe.PARAMETERS)
    return {one.parameter: one for one in found}


# The SLC cache


@pytest.mark.parametrize(("share", "gain"), [(0.1, 5.0), (0.25, 3.0)])
def test_a_cache_is_found_with_its_size_its_ratio_and_its_recovery(
    share: float, gain: float
) -> None:
    drive = PageMapped(slc_share=share, slc_gain=gain, fold_after_ns=1e9)
    found = ask(SlcCache(), drive)
    size = found["slc-cache"]
    assert size.value == pytest.approx(share * drive.capacity_bytes, rel=0.03), size.why
    assert size.low is not None and size.high is not None
    assert size.low < share * drive.capacity_bytes < size.high
    assert found["slc-cache-ratio"].value == pytest.approx(gain, rel=0.1)
    assert found["slc-cache-kind"].value in ("fixed", None), found["slc-cache-kind"].why
    assert found["slc-cache-folding"].value == "yes"
    begins = found["idle-before-folding"]
    assert begins.low is not None and begins.high is not None and begins.low <= 1e9 <= begins.high
    assert found["sustained-rate"].verdict == "found"
    cliff = found["steady-cliff"]
    # The cache, or the spare space where that takes longer to fill: 12 % and four blocks.
    most = max(share, 0.12) * drive.capacity_bytes + 4 * MIB
    assert cliff.high is not None and isinstance(cliff.value, int)
    assert cliff.value <= most and share * drive.capacity_bytes <= cliff.high, cliff.why


def test_a_cache_that_stays_full_is_not_said_to_empty() -> None:
    found = ask(SlcCache(), PageMapped(slc_share=0.1, fold_bytes_s=0.0))
    assert found["slc-cache"].verdict == "found"
    assert found["slc-cache-folding"].value == "no"
    assert found["slc-cache-folding"].confidence <= UNTESTED
    assert found["slc-cache-kind"].verdict == "unknown"


def test_a_drive_without_a_cache_has_none() -> None:
    found = ask(SlcCache(), PageMapped())
    assert found["slc-cache"].verdict == "absent"
    assert found["sustained-rate"].verdict == "found"
    # What no request shows is not said to be absent: the link is the narrow place.
    assert ask(SlcCache(), Stateless())["slc-cache"].verdict == "unknown"


@pytest.mark.parametrize("reads_too", [True, False])
def test_credits_are_no_cache(reads_too: bool) -> None:
    found = ask(SlcCache(), Credits(reads_too=reads_too))["slc-cache"]
    assert found.verdict == "unknown", found.why


def test_the_simulated_caches_are_found() -> None:
    small = {"geometry.blocks-per-plane": 100, "capacity.utilization": 0.8}
    dynamic = ask(SlcCache(), Ssd.named("consumer-tlc").with_(small))
    assert dynamic["slc-cache-kind"].value == "dynamic", dynamic["slc-cache-kind"].why
    assert dynamic["slc-cache-folding"].value == "yes"
    begins = dynamic["idle-before-folding"]
    assert begins.low is not None and begins.high is not None
    assert begins.low <= 1e9 <= begins.high


# The map, and what makes writes long


def test_a_cache_that_fills_makes_no_logs() -> None:
    found = ask(Mapping(), PageMapped(slc_share=0.1))["mapping"]
    assert found.value == "page", found.why


@pytest.mark.parametrize("seek_ns", [2.4e6, 20e6])
def test_seeks_are_no_merges(seek_ns: float) -> None:
    found = ask(Mapping(), Turning(seek_ns=seek_ns))["mapping"]
    assert found.verdict == "unknown" and "reads at random" in found.why


def test_a_full_cache_is_no_cleaning() -> None:
    # Writes take five times as long as on the empty drive, all of them: nobody knows why if the map is not known.
    found = ask(Cleaning(), PageMapped(slc_share=0.2))["cleaning-interval"]
    assert found.verdict == "unknown" and "than on the empty drive" in found.why
    found = ask(Cleaning(), PageMapped(slc_share=0.2), PAGE_MAP)["cleaning-interval"]
    plain = ask(Cleaning(), PageMapped(), PAGE_MAP)["cleaning-interval"]
    assert found.value == pytest.approx(plain.value, rel=0.05), found.why
    # 64 pages of 16 KiB less what is moved: of that order, and not every write.
    assert isinstance(found.value, int) and 100 * KIB < found.value < 700 * KIB


def test_pauses_by_time_are_not_counted_as_cleaning() -> None:
    plain = ask(Cleaning(), PageMapped(), PAGE_MAP)["cleaning-interval"]
    paused = ask(Cleaning(), PageMapped(pause_every_ns=150e6, pause_ns=40e6), PAGE_MAP)
    found = paused["cleaning-interval"]
    assert found.verdict == "unknown" or found.value == pytest.approx(plain.value, rel=0.1)


def test_tails_of_a_network_are_no_cleaning() -> None:
    found = ask(Cleaning(), Stateless(sigma=1.0), PAGE)
    assert {one.verdict for one in found.values()} == {"unknown"}


@pytest.mark.parametrize(
    ("by_requests", "by_time", "goes_by"),
    [(1.0, 1.0, "bytes"), (0.5, 1.05, "requests"), (1.0, 1.9, "time"), (1.0, 0.1, "")],
)
def test_what_a_kind_of_stall_goes_by(by_requests: float, by_time: float, goes_by: str) -> None:
    assert Kind(1e6, 9e6, 300, by_requests, by_time, 2.0, 1.0, 0.08).goes_by == goes_by
    # Too few to tell 1 from 2.
    assert Kind(1e6, 9e6, 20, by_requests, by_time, 2.0, 1.0, 0.3).goes_by == ""
    # Neither arm took another time for its bytes, so nothing tells bytes from time.
    assert Kind(1e6, 9e6, 300, 1.0, 1.0, 1.02, 1.02, 0.08).goes_by == ""


def test_kinds_lie_apart() -> None:
    rng = np.random.default_rng(1)
    one = rng.uniform(2e6, 5e6, 200)
    assert len(kinds_of(one)) == 1
    (low, border), (_, high) = kinds_of(np.concatenate([one, rng.uniform(9e6, 12e6, 60)]))
    assert (low, high) == (0.0, np.inf) and 5e6 < border < 9e6


# The clustered block


def test_pieces_of_a_map_are_no_blocks() -> None:
    # As much spare space as nobody writes: nothing is ever erased.
    drive = PageMapped(spare=12.0, segments=16, segment_bytes=MIB, miss_ns=2e6)
    found = ask(ClusteredBlock(), drive, PAGE_MAP)["clustered-block"]
    assert found.verdict == "unknown" and "never full" in found.why


@pytest.mark.parametrize(
    ("half", "whole", "verdict"),
    [(0.7, 1.0, "found"), (0.7, 0.9, "found"), (0.3, 0.6, "unknown"), (1.0, 1.0, "unknown")],
)
def test_what_random_writes_contradict_is_withheld(half: float, whole: float, verdict: str) -> None:
    noise = np.array([-0.01, 0.0, 0.01, 0.0, 0.0])
    interval = _Interval(4 * MIB, 3, 3, 512.0, 16 * KIB, 16 * KIB, np.ones(99), 0)
    ratios = [_Ratio(2 * MIB, half + noise), _Ratio(4 * MIB, whole + noise)]
    found = _decide(interval, ratios, None, 5.0, merges=False)
    assert found.verdict == verdict, found.why
    if whole == 0.9:
        assert found.confidence <= UNTESTED


def test_blocks_that_begin_between_addresses_are_found_on_their_own_grid() -> None:
    # 0.3 blocks more than whole ones: each pass over the drive begins elsewhere in a block.
    drive = PageMapped(capacity_bytes=256 * MIB + 320 * KIB, spare=0.04, erase_ns=9e6)
    found = ask(ClusteredBlock(), drive, PAGE_MAP)["clustered-block"]
    assert found.value == MIB, found.why
    with Target(drive) as target:
        context = Context(target, "quick", known=PAGE_MAP)
        whole, part = (aligned(context, size, 16 * KIB) for size in (MIB, MIB // 2))
        # What one of two units erases leads to what both do.
        grid = grid_of(context, MIB // 2, 16 * KIB)
    assert whole is not None and part is not None
    assert whole.mean() > 0.95 and part.mean() < 0.9
    assert grid is not None and grid.size_bytes == MIB and grid.bears_out


# Buffers


def test_a_drive_that_reads_on_after_any_read_prefetches() -> None:
    found = ask(Prefetch(), ReadsOn(), {})
    assert found["prefetch"].value == "yes", found["prefetch"].why
    assert found["prefetch"].confidence <= UNTESTED
    assert ask(Prefetch(), Stateless(), {})["prefetch"].value == "no"


def test_a_map_that_is_loaded_is_no_write_buffer() -> None:
    drive = PageMapped(segments=16, segment_bytes=MIB, miss_ns=2e6)
    found = ask(WriteBuffer(), drive)["write-buffer"]
    assert found.verdict != "found", found.why


def test_two_directions_bear_a_buffer_out() -> None:
    drained = Burst(600 * KIB, 400 * KIB, 600 * KIB)
    assert drained.bears_out(400 * KIB) and drained.bears_out(600 * KIB)
    assert not drained.bears_out(108 * KIB) and not drained.bears_out(MIB)


# The kind of device


@pytest.mark.parametrize("model", [Stateless, Turning])
def test_what_is_no_flash_is_not_called_flash(model: type[Stateless] | type[Turning]) -> None:
    found = probe(Target(model("other")), mode="quick", only=["plausible", "mapping"])
    assert found["kind-of-device"].verdict == "unknown"
    assert found.doubts, found["kind-of-device"].why


def test_flash_is_told_by_its_history() -> None:
    found = probe(
        Target(PageMapped()), mode="quick", only=["plausible", "clustered-page", "mapping"]
    )
    assert found["kind-of-device"].value == "flash", found["kind-of-device"].why
    assert 0.9 < found["kind-of-device"].confidence < 1.0
    assert not found.doubts
    alone = probe(Target(PageMapped()), mode="quick", only=["plausible"])
    assert alone["kind-of-device"].verdict == "unknown" and not alone.doubts


def test_seeks_speak_against_flash() -> None:
    found = ask(Plausible(), Turning(seek_ns=3e6, turn_ns=0.2e6))["kind-of-device"]
    assert "seeks" in found.why


@pytest.mark.parametrize(
    ("late", "back", "reads", "verdict", "against"),
    [
        (0.4, 1.0, 0.9, "found", False),
        (0.95, 1.0, 1.0, "unknown", True),
        (0.4, 0.4, 1.0, "unknown", False),
        (0.4, 1.0, 0.45, "unknown", False),
    ],
)
def test_history_decides(
    late: float, back: float, reads: float, verdict: str, against: bool
) -> None:
    figures = dict(zip(("late", "back", "reads"), (late, back, reads), strict=True))
    mapping = Finding(
        "mapping", "unknown", figures={f"history_{k}_share": v for k, v in figures.items()}
    )
    found = kind_of_device(Finding("kind-of-device", "unknown"), {"mapping": mapping})
    assert found.verdict == verdict
    assert (found.figures.get("against", 0.0) > 0) == against
