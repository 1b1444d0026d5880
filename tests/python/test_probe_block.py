"""The clustered block, the mapping policy and cleaning, found in drives whose inside is known.

Each drive is small and described here; what is asked for follows from the description by hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flashwright import workloads
from flashwright.probing.probes import Context, Finding
from flashwright.probing.probes.cleaning import Cleaning
from flashwright.probing.probes.clustered_block import ClusteredBlock
from flashwright.probing.probes.mapping import Curve, Mapping, curves_say
from flashwright.probing.probes.shared.overwriting import period
from flashwright.simulation.ssd import Ssd
from flashwright.target.target import Target

KIB, MIB = 1 << 10, 1 << 20
LOG_BLOCKS = ("bast", "fast", "last", "superblock")


def drive(scheme: str = "page", **more: Any) -> Ssd:
    """640 MiB with pages of 24 KiB: 2 channels of 2 chips, a cluster of 2 chips each, so 2 units.

    A block of 48 pages of 12 KiB on 2 chips holds 1,152 KiB. 569 blocks are needed; 660 are there, 16 % more.
    """
    settings: dict[str, object] = {
        "geometry.channels": 2,
        "geometry.dies-per-channel": 2,
        "geometry.cluster-dies": 2,
        "geometry.page-size": "12 KiB",
        "geometry.pages-per-block": 48,
        "geometry.blocks-per-plane": 330,
        "capacity.logical": f"{284 * 2 * 1152} KiB",
        "ftl.scheme": scheme,
        # Units that clean in their own time: what the probes' figures of single stalls are held against.
        "placement.policy": "single",
        "placement.allocation": "dynamic",
        "timing.model": "parallel",
        "timing.read": "50 us",
        "timing.program": "400 us",
        "timing.erase": "2 ms",
        "timing.bus-rate": "100 MB/s",
        "host.partial-pages": "read-modify-write",
        "controller.interface-rate": "300 MB/s",
        "controller.queue-depth": 32,
        "controller.write-overhead": "10 us",
        "controller.noise": 0.05,
        "controller.write-buffer.size": "512 KiB",
        "controller.write-buffer.drain": "eager",
        "controller.write-buffer.flushes": 2,
    }
    return Ssd.from_text("", "small").with_(settings | more)


BLOCK = 1152 * KIB


def found(parameter: str, value: float | str, unit: str = "B") -> dict[str, Finding]:
    return {parameter: Finding(parameter, "found", value, unit)}


PAGE = found("clustered-page", 24 * KIB)


def test_a_period_is_exact_between_noise_and_other_units() -> None:
    rng = np.random.default_rng(1)
    latencies = rng.normal(1000, 80, 20_000)
    # Two units that clean at different times, each after 341 1/3 writes.
    for phase in (40, 170):
        at = (phase + np.arange(0, 19_800, 1024 / 3)).astype(int)
        latencies[at] += 2000
    latencies[rng.integers(0, 20_000, 30)] *= 50
    seen = period(latencies)
    assert seen is not None
    assert seen.writes == pytest.approx(1024 / 3, abs=seen.error_writes)
    assert seen.error_writes < 0.05


def test_noise_has_no_period() -> None:
    for seed in range(20):
        assert period(np.random.default_rng(seed).normal(1000, 80, 8192)) is None


@pytest.mark.parametrize("scheme", ["page", *LOG_BLOCKS])
def test_the_clustered_block_is_a_row_of_units_or_one_block(scheme: str) -> None:
    with Target(drive(scheme)) as target:
        context = Context(target, "quick", known=PAGE)
        (finding,) = ClusteredBlock().run(context)
        assert finding.value == (2 * BLOCK if scheme == "page" else BLOCK), finding.why
        assert finding.confidence > 0.8
        cost = ClusteredBlock().cost(context).bytes_written
        # The cost is the most: sizes that random writes contradict are asked about on the drive's own grid too.
        assert 0.3 * cost < target.bytes_written <= 1.1 * cost


def test_full_mode_shows_where_random_writes_catch_up() -> None:
    with Target(drive()) as target:
        (finding,) = ClusteredBlock().run(Context(target, "full", known=PAGE))
    at = {int(name.split("_")[2]): value for name, value in finding.figures.items() if "at" in name}
    assert finding.value == 2 * BLOCK
    assert finding.confidence == 1.0, finding.why
    assert at[BLOCK // 2] < at[BLOCK] < 0.9
    assert at[2 * BLOCK] == pytest.approx(1, abs=0.05)


def test_where_the_page_does_not_show_many_sizes_agree_on_the_block() -> None:
    with Target(drive(**{"host.partial-pages": "whole"})) as target:
        (finding,) = ClusteredBlock().run(Context(target, "quick"))
    assert finding.value == 2 * BLOCK, finding.why


def test_a_page_that_is_wrong_does_not_make_a_block_that_is_wrong() -> None:
    # Writes of 32 KiB touch two or three pages of 24 KiB, so that their interval is too short.
    with Target(drive(**{"host.partial-pages": "whole"})) as target:
        known = found("clustered-page", 32 * KIB)
        (finding,) = ClusteredBlock().run(Context(target, "quick", known=known))
    assert finding.value in (2 * BLOCK, None), finding.why


def test_a_small_target_is_refused_with_its_size() -> None:
    tiny: dict[str, Any] = {"capacity.logical": "36 MiB", "geometry.blocks-per-plane": 40}
    small = drive(**tiny)
    with Target(small) as target:
        for probe in (ClusteredBlock(), Mapping(), Cleaning()):
            findings = probe.run(Context(target, "quick", known=PAGE))
            assert tuple(finding.parameter for finding in findings) == probe.PARAMETERS
            assert all(finding.verdict == "unknown" for finding in findings)
            assert all("36 MiB" in finding.why for finding in findings)
        assert target.bytes_written == 0


@pytest.mark.parametrize("scheme", ["page", *LOG_BLOCKS])
@pytest.mark.parametrize("known", [{}, PAGE], ids=["page-unknown", "page-known"])
def test_the_mapping_policy(scheme: str, known: dict[str, Finding]) -> None:
    with Target(drive(scheme)) as target:
        (finding,) = Mapping().run(Context(target, "quick", known=known))
    assert finding.value == ("page" if scheme == "page" else "log-block"), finding.why


def test_curves_of_a_page_map_turn_at_the_spare_space_and_fall_with_the_range() -> None:
    with Target(drive()) as target:
        (finding,) = Mapping().run(Context(target, "full", known=PAGE))
    figures = finding.figures
    # D4.1, D4.2: the knee near physical over logical capacity; 10 % flat, the rest ordered.
    assert figures["kept_at_0.1"] > 0.9
    kept = [figures[f"kept_at_{share}"] for share in ("0.1", "0.5", "0.7", "0.9", "1")]
    assert kept == sorted(kept, reverse=True)
    assert kept[-1] < 0.7


def test_a_drive_that_cannot_be_purged_has_no_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    with Target(drive()) as target:
        monkeypatch.setattr(target, "purge", lambda: False)
        (finding,) = Mapping().run(Context(target, "quick", known=PAGE))
    assert finding.verdict == "unknown"
    assert "cannot be purged" in finding.why


def test_the_rule_of_the_curves() -> None:
    written = np.arange(1, 201) / 100
    fell = np.where(written < 1.1, 1e8, 2e7)
    wide, narrow = Curve(1.0, written, fell), Curve(0.1, written, np.full(200, 1e8))
    assert wide.knee == pytest.approx(1.09, abs=0.02)
    assert wide.kept == pytest.approx(0.2)
    assert curves_say([narrow, wide], 1e8) == "page"
    # The narrow range losing more than the wide one is no page map.
    assert curves_say([Curve(0.1, written, fell / (written + 1)), wide], 1e8) is None
    assert curves_say([narrow, Curve(1.0, written, np.full(200, 1e8))], 1.5e8) is None
    assert curves_say([narrow, Curve(1.0, written, np.full(200, 1e8))], 2.5e8) == "log-block"


def cleaning(ssd: Ssd, **known: str | float) -> dict[str, Finding]:
    with Target(ssd) as target:
        names = {name.replace("_", "-"): value for name, value in known.items()}
        facts = {name: Finding(name, "found", value) for name, value in names.items()}
        findings = Cleaning().run(Context(target, "quick", known=PAGE | facts))
    return {finding.parameter: finding for finding in findings}


def test_the_cleaning_interval_is_what_the_drive_counts() -> None:
    little: dict[str, Any] = {"controller.noise": 0.02}
    ssd = drive(**little)
    interval = cleaning(ssd)["cleaning-interval"]
    # The same load on the same drive in steady state, by its own counters.
    load = workloads.uniform(size="24 KiB", write=1.0, align="24 KiB")
    run = ssd.precondition("steady").play(load, requests=20_000, depth=1)
    flash: Any = run.json["flash"]
    counted = flash["programs"]["host"] * 24 * KIB / flash["erases"]["total"]
    assert interval.value == pytest.approx(counted, rel=0.15)
    assert interval.low is not None and isinstance(interval.value, int | float)
    assert interval.high is not None
    assert interval.low < interval.value < interval.high


def test_a_stall_is_a_victim_copied_and_erased() -> None:
    slow = cleaning(drive(**{"timing.erase": "12 ms"}))["cleaning-stall"]
    quick = cleaning(drive())["cleaning-stall"]
    assert isinstance(slow.value, int)
    assert isinstance(quick.value, int)
    # The erase is 10 ms longer, and nothing else of a stall changes; the noise makes times 10 % longer.
    assert slow.value - quick.value == pytest.approx(11e6, rel=0.2)


def test_the_spare_space_is_the_flash_less_what_cleaning_keeps() -> None:
    facts: dict[str, Any] = {"mapping": "page", "clustered_block": 2 * BLOCK}
    spare = cleaning(drive(), **facts)["spare-space"]
    # 330 blocks a unit for 284 of data; each keeps two free blocks and opens one more when it starts.
    assert spare.value == pytest.approx(46 / 284, abs=4 / 284)
    more: dict[str, Any] = {"geometry.blocks-per-plane": 340}
    larger = cleaning(drive(**more), **facts)["spare-space"]
    assert isinstance(larger.value, float) and isinstance(spare.value, float)
    assert larger.value - spare.value == pytest.approx(10 / 284, abs=1 / 284)
    log_block = cleaning(drive("fast"), mapping="log-block", clustered_block=BLOCK)["spare-space"]
    assert log_block.verdict == "unknown"
