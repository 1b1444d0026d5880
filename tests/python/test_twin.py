"""Twins: the patterns are pure descriptions, a fit finds what was built in, and the check sees what differs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Cli
from flashwright import Profile, Ssd
from flashwright.characterization.reserves import asked_at_most
from flashwright.drive.findings import Finding
from flashwright.drive.trust import TwinWarning, check_record
from flashwright.errors import TargetError
from flashwright.target.stats import kolmogorov
from flashwright.target.target import Deadline, Target
from flashwright.twin import (
    Calibration,
    Model,
    Pattern,
    calibrate,
    check,
    fitted,
    patterns,
)
from flashwright.twin.calibration import Level, play
from flashwright.twin.check import check_pattern
from flashwright.twin.closed_forms import closed
from flashwright.twin.fit import Search
from flashwright.twin.model import gaps_between
from flashwright.twin.model import robust as _robust
from flashwright.twin.neighbours import further, neighbours
from flashwright.twin.structures import Structures
from flashwright.twin.trials import Trials

MIB = 1 << 20


def found(**values: int | str) -> dict[str, Finding]:
    names = {name.replace("_", "-"): value for name, value in values.items()}
    return {name: Finding(name, "found", value) for name, value in names.items()}


# A small drive whose numbers no default has.
TRUE = Model(
    page_bytes=12288,
    pages_per_block=32,
    channels=2,
    dies=1,
    read_ns=61e3,
    transfer_ns=45e3,
    program_ns=431e3,
    erase_ns=2.3e6,
    rate=410e6,
    read_overhead_ns=9e3,
    write_overhead_ns=14e3,
    noise=0.03,
    spare=0.17,
)
CAPACITY = 12288 * 32 * 2 * 300
FINDINGS = found(
    clustered_page=12288, clustered_block=12288 * 32 * 2, parallel_units=2, mapping="page"
) | {name: Finding(name, "absent") for name in ("read-buffer", "write-buffer")}


@pytest.fixture(scope="module")
def small() -> Ssd:
    return TRUE.ssd("small", "", CAPACITY)


@pytest.fixture(scope="module")
def calibration(small: Ssd) -> Calibration:
    with Target(small) as target:
        return calibrate(target, FINDINGS, mode="quick")


@pytest.mark.parametrize("block", [512, 4096])
def test_requests_are_whole_blocks_within_the_drive(block: int) -> None:
    """Also for pages that are no power of two, on small drives, and for the pattern that is held back."""
    capacity = 96 * MIB + 3 * 4096
    for page in (6144 if block == 512 else 12288, 40960, 262144):
        chosen = patterns(found(clustered_page=page), capacity_bytes=capacity, block_bytes=block)
        for pattern in (*chosen, *check_pattern(500, 1, block)):
            codes, offsets, sizes = pattern.make(capacity, block)
            assert not np.any((offsets | sizes) % block), pattern
            assert offsets.min() >= 0 and np.all(offsets + sizes <= capacity), pattern
            assert np.all(sizes[codes != 3] > 0), pattern


def test_a_pattern_is_pure() -> None:
    pattern = Pattern("p", "used", 1000, (4096, 65536), reads=0.7, unaligned=0.3)
    first, second = pattern.make(1 << 30, 512), pattern.make(1 << 30, 512)
    pairs: Any = zip(first, second, strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)
    codes, offsets, sizes = first
    assert abs((codes == 0).mean() - 0.7) < 0.05
    # Of the unaligned three tenths an eighth lies on the grid by chance.
    assert abs((offsets % 4096 != 0).mean() - 0.3 * 7 / 8) < 0.05
    assert abs((sizes == 4096).mean() - 0.5) < 0.05
    other = Pattern("p", "used", 1000, (4096, 65536), reads=0.7, unaligned=0.3, seed=2)
    assert not np.array_equal(offsets, other.make(1 << 30, 512)[1])


def test_flushes_and_repeats_follow_their_requests() -> None:
    flushed = Pattern("f", "clean", 3, (4096,), flush=True).make(1 << 30, 512)
    assert flushed[0].tolist() == [1, 3, 1, 3, 1, 3]
    assert flushed[2].tolist() == [4096, 0] * 3
    again = Pattern("a", "clean", 3, (4096,), reads=1.0, order="again").make(1 << 30, 512)
    assert np.array_equal(again[1][::2], again[1][1::2])


def test_hot_addresses_take_their_share() -> None:
    pattern = Pattern("h", "used", 20_000, (4096,), hot_share=0.8, hot_range=0.2)
    _, offsets, _ = pattern.make(1 << 30, 512)
    # 0.8, and a fifth of the rest.
    assert abs((offsets < 0.2 * (1 << 30)).mean() - 0.84) < 0.02


def test_calibration_survives_text(calibration: Calibration) -> None:
    text = json.dumps(calibration.to_dict())
    assert Calibration.from_dict(json.loads(text)) == calibration


def test_calibration_repeats(small: Ssd, calibration: Calibration) -> None:
    """Drive and drive again, whatever was on it before: the patterns bring their own state."""
    with Target(small) as target:
        target.play("write", np.arange(100) * 4096, 4096, depth=4)
        clean = calibration.stage("clean")
        measured = play(target, [m.pattern for m in clean])
    assert measured[0].levels["read"].requests == clean[0].levels["read"].requests
    for ours, theirs in zip(measured, clean, strict=True):
        assert ours.bandwidth == pytest.approx(theirs.bandwidth, rel=0.02), ours.pattern.name


def test_calibration_by_hand(calibration: Calibration) -> None:
    """A read of a whole page: overhead, array, bus, link, and the noise on top."""
    alone = 9e3 + 61e3 + 45e3 + 12288 / 410e6 * 1e9
    level = calibration["read-1-units"].levels["read"]
    assert level.p50_ns == pytest.approx(alone * 1.06, rel=0.01)
    again = calibration["write-unit-flush"].levels["write"].p50_ns
    written = 14e3 + 45e3 + 431e3 + 12288 / 410e6 * 1e9
    assert again == pytest.approx(written * 1.06, rel=0.01)


def test_fit_finds_what_was_built_in(small: Ssd, calibration: Calibration) -> None:
    """The numbers that the patterns show; and the twin predicts what it was not fitted to."""
    with Target(small) as target:
        fit = fitted(target, FINDINGS, calibration, trials_limit=400)
        result = check(target, fit.ssd, requests=4000)
    model = fit.model
    assert (model.page_bytes, model.pages_per_block, model.units) == (12288, 32, 2)
    # Array and bus show apart only where dies share a bus.
    assert model.read_ns + model.transfer_ns == pytest.approx(106e3, rel=0.03)
    assert model.program_ns + model.transfer_ns == pytest.approx(476e3, rel=0.03)
    assert model.rate == pytest.approx(410e6, rel=0.05)
    assert model.noise == pytest.approx(0.03, rel=0.2)
    assert model.spare == pytest.approx(0.17, abs=0.03)
    assert result.within and result.reads.requests + result.writes.requests == 4000
    assert fit.error < 0.05
    assert Ssd.from_text(fit.ssd.toml).toml == fit.ssd.toml
    assert {residual.pattern for residual in fit.residuals} == {
        m.pattern.name for m in calibration.measured
    }
    json.dumps([fit.to_dict(), result.to_dict()])


@pytest.mark.parametrize(
    ("parts", "settings"),
    [
        ({}, {"geometry.mapping-unit": "0 B", "slc.cache": "none", "gc.schedule": "foreground"}),
        (
            {"unit_bytes": 4096, "shot": 3, "page_bytes": 49152},
            {
                "geometry.mapping-unit": "4 KiB",
                "geometry.page-size": "16 KiB",
                "geometry.bits-per-cell": 3,
                "geometry.pages-per-block": 96,
                "chips.programming": "one-shot",
            },
        ),
        (
            {"unit_bytes": 4096, "planes": 2, "page_bytes": 16384},
            {
                "geometry.planes-per-die": 2,
                "geometry.page-size": "8 KiB",
                "geometry.superblock": "die",
            },
        ),
        (
            {"slc": "fixed", "slc_share": 0.1, "slc_program_ns": 90e3},
            {"slc.cache": "fixed", "slc.page-program": "90 us", "geometry.bits-per-cell": 3},
        ),
        (
            {"unit_bytes": 4096, "slc": "dynamic", "schedule": "rate-limited"},
            {"slc.cache": "dynamic", "gc.schedule": "rate-limited"},
        ),
        (
            {"unit_bytes": 4096, "shot": 3, "page_bytes": 49152, "superblock": "drive"},
            {"geometry.superblock": "drive", "geometry.page-size": "16 KiB"},
        ),
        (
            {"die_order": "by-class", "suspends": "programs-and-erases"},
            {"timing.die-order": "by-class", "chips.suspends": "programs-and-erases"},
        ),
        ({"slc": "fixed", "slc_full": "fold"}, {"slc.when-full": "fold"}),
        (
            {"slc": "dynamic", "bits": 4, "fold_after_ns": 2e9},
            {"geometry.bits-per-cell": 4, "slc.fold-after": "2 s"},
        ),
        ({"scheme": "dftl", "map_share": 0.25}, {"ftl.dftl.cmt-entries": 300 * 32 * 2 // 4}),
    ],
)
def test_models_are_made_of_what_the_simulator_has(
    parts: dict[str, Any], settings: dict[str, object]
) -> None:
    """Each part of a model is its setting, and the drive is as large as was asked, and plays."""
    ssd = replace(TRUE, **parts).ssd("made", "", CAPACITY)
    for key, value in settings.items():
        table, _, name = key.rpartition(".")
        at: Any = ssd.config
        for part in table.split("."):
            at = at[part]
        assert at[name] == value, key
    with Target(ssd) as target:
        assert target.capacity_bytes == CAPACITY
        assert target.play("write", np.arange(64) * 4096, 4096, depth=4).latency_ns.size == 64


def test_a_fixed_slc_cache_takes_none_of_the_spare_space() -> None:
    blocks = [
        replace(TRUE, slc=kind, slc_share=0.2)
        .ssd("made", "", CAPACITY)
        .config["geometry"]["blocks-per-plane"]
        for kind in ("none", "fixed")
    ]
    assert blocks[1] == pytest.approx(blocks[0] / 0.8, abs=1)


@pytest.mark.parametrize(("channels", "dies"), [(4, 2), (2, 1), (1, 4)])
def test_closed_forms_find_what_reads_take(channels: int, dies: int) -> None:
    """Of drives without a chance: firmware, sense, transfer and link by least squares of single reads."""
    model = replace(
        TRUE,
        page_bytes=8192,
        channels=channels,
        dies=dies,
        transfer_ns=9e3,
        rate=6e9,
        noise=1e-3,
    )
    with Target(model.ssd("reads", "", 8192 * 32 * channels * dies * 60)) as target:
        chosen = patterns(found(clustered_page=8192), capacity_bytes=target.capacity_bytes)
        reads = play(target, [p for p in chosen if p.stage == "clean" and p.reads == 1])
    form = closed(model, reads, 0.001)
    assert form.error < 0.1
    assert form.overhead_ns + form.read_ns + form.transfer_ns == pytest.approx(79e3, rel=0.03)
    if dies > 1:
        # Array and bus show apart only where dies share a bus.
        assert form.read_ns == pytest.approx(61e3, rel=0.2)
    others = [
        replace(model, channels=c, dies=d)
        for c, d in ((8, 4), (1, 1))
        if (c, d) != (1, 1) or dies * channels > 1
    ]
    assert all(closed(other, reads, 0.001).error > form.error for other in others)


@pytest.mark.parametrize("scheme", ["page", "dftl"])
def test_closed_forms_tell_superblocks(scheme: str) -> None:
    """Where data stay on a die until its program is full, reads say so; a map that is loaded costs once an entry."""
    model = replace(
        TRUE,
        scheme=scheme,
        map_share=0.05,
        page_bytes=3 * 16384,
        unit_bytes=4096,
        shot=3,
        channels=4,
        superblock="drive",
        rate=3e9,
        noise=1e-3,
    )
    with Target(model.ssd("reads", "", 49152 * 16 * 4 * 100)) as target:
        chosen = patterns(found(clustered_page=4096), capacity_bytes=target.capacity_bytes)
        reads = play(target, [p for p in chosen if p.stage == "clean" and p.reads == 1])
    hits = 1.0 if scheme == "page" else 0.05
    together, apart = (
        closed(replace(model, superblock=way), reads, 0.001, hits) for way in ("drive", "block")
    )
    assert together.error < 0.12
    if scheme == "page":
        assert apart.error > 2 * together.error
        # Of a single unit: firmware, a sense, a twelfth of a program's transfer.
        single = together.overhead_ns + together.read_ns + together.transfer_ns / 12
        assert single == pytest.approx(9e3 + 61e3 + 45e3 / 12, rel=0.1)


def test_units_on_dies_in_turn_are_sensed_one_by_one() -> None:
    """What a program gathers does not show in their reads, neither played nor in closed form."""
    small = replace(TRUE, page_bytes=4096, unit_bytes=4096, transfer_ns=4e3, pages_per_block=192)
    large = replace(small, page_bytes=49152, transfer_ns=48e3, pages_per_block=16)
    levels, forms = [], []
    for model in (small, large):
        with Target(model.ssd("reads", "", 128 * MIB)) as target:
            chosen = patterns(found(clustered_page=4096), capacity_bytes=target.capacity_bytes)
            reads = play(target, [p for p in chosen if p.name in ("read-4-units", "read-32-units")])
        levels.append([m.levels["read"].mean_ns for m in reads])
        forms.append(closed(model, reads, 0.03))
    assert levels[0] == pytest.approx(levels[1], rel=0.02)
    assert forms[0].read_ns == pytest.approx(forms[1].read_ns, rel=0.05)


def test_levels_say_how_sure_they_are(calibration: Calibration) -> None:
    """Reads alone are sure; a level that varies from part to part counts less."""
    sure = calibration["read-1-units"].levels["read"]
    assert 0 < sure.errors["mean_ns"] < 0.02
    steady, varying = np.full(800, 1e6), np.repeat([1e6, 9e6], 400)
    errors = [Level.of(latency, errors=True).errors["mean_ns"] for latency in (steady, varying)]
    assert errors[0] == 0 and errors[1] > 0.2
    assert Level.of(steady).errors == {}
    weights = [
        next(
            row[5]
            for row in gaps_between([measured], [measured])
            if row[:3] == ("read-1-units", "read", "mean")
        )
        for measured in (
            calibration["read-1-units"],
            replace(
                calibration["read-1-units"],
                levels={"read": replace(sure, errors={"mean_ns": 0.04})},
            ),
        )
    ]
    assert weights[1] == pytest.approx(1 / np.sqrt(2)) and weights[0] > 0.9


@pytest.mark.parametrize("share", [0.2, 0.6])
def test_the_share_of_the_map_in_ram_shows_in_two_kinds_of_reads(share: float) -> None:
    drive = replace(TRUE, scheme="dftl", map_share=share, page_bytes=8192, noise=1e-3)
    given = found(mapping="page", clustered_page=8192)
    with Target(drive.ssd("loads", "", 8192 * 32 * 2 * 250)) as target:
        measured = calibrate(target, given, mode="quick")
    known = Structures(given, measured, measured.stage("clean"))
    assert known.hits == pytest.approx(share, abs=0.12)


def test_structures_to_begin_with_can_be_played() -> None:
    """Also where a row of blocks is large for the drive: none is lost before its numbers are fitted."""
    drive = replace(TRUE, page_bytes=49152, unit_bytes=4096, channels=4, dies=2, pages_per_block=16)
    given = found(mapping="page", clustered_page=4096, parallel_units=8, program_unit=49152)
    with Target(drive.ssd("rows", "", 49152 * 16 * 8 * 80)) as target:
        measured = calibrate(target, given, mode="quick")
        search = Search(Trials(target, given, measured, 1, lambda share: None, Deadline(None)))
        begun = search.trials.structures.models()[:8]
        assert all(search.trials.play(model, search.trials.reads) is not None for model in begun)


def test_neighbours_keep_what_was_found(calibration: Calibration) -> None:
    """Each differs in its kind of thing from the model, once, and in nothing that a probe found."""
    reads = [m for m in calibration.stage("clean") if m.pattern.reads == 1]
    known = Structures(FINDINGS, calibration, reads)
    near = neighbours(TRUE, known)
    assert len({model for _, model in near}) == len(near) and TRUE not in dict(near).values()
    kinds = {kind for kind, _ in near}
    assert {"order", "schedule", "superblock", "slc", "split", "spare", "queue"} <= kinds
    # Of the clustered block, the pages and the buffers all is known.
    assert not kinds & {"block", "program", "ram", "buffer"}
    for kind, model in near:
        assert model.units == TRUE.units and model.pages_per_block == TRUE.pages_per_block, kind
        if kind == "split":
            # A read and a program of a page take as long as before.
            took = [m.transfer_ns + m.read_ns for m in (TRUE, model)]
            assert took[0] == pytest.approx(took[1])
    unknown = {name: found for name, found in FINDINGS.items() if name == "mapping"}
    other = replace(TRUE, page_bytes=16384, unit_bytes=4096, slc="fixed")
    wider = neighbours(other, Structures(unknown, calibration, reads))
    assert {"block", "program", "ram"} <= {kind for kind, _ in wider}
    assert {model.slc for kind, model in wider if kind == "slc"} == {"none", "fixed", "dynamic"}


def test_a_climb_at_rest_changes_together_what_explains_each_other(
    calibration: Calibration,
) -> None:
    """When and in which order it cleans; cells, size and kind of a cache. What was found stays."""
    known = Structures(FINDINGS, calibration, calibration.stage("clean"))
    beyond = further(TRUE, known)
    assert TRUE not in dict(beyond).values() and {model.units for _, model in beyond} == {2}
    both = replace(TRUE, schedule="preemptive", suspends="erases")
    assert ("cleaning", both) in beyond
    caches = {(model.slc, model.superblock) for kind, model in beyond if kind == "cache"}
    assert {("dynamic", "block"), ("fixed", "drive")} <= caches
    assert further(replace(TRUE, scheme="bast"), known) == []
    absent = FINDINGS | {"slc-cache": Finding("slc-cache", "absent")}
    without = further(TRUE, Structures(absent, calibration, calibration.stage("clean")))
    assert {model.slc for _, model in without} == {"none"}


def test_an_slc_cache_shows_the_pages_of_a_cell(calibration: Calibration) -> None:
    """Programs that RAM gathers may write two, three or four pages of it, if so many hold whole units."""
    given = found(mapping="page", slc_cache=30 * MIB, slc_cache_kind="dynamic")
    known = Structures(given, calibration, calibration.stage("clean"))
    gathered = replace(TRUE, page_bytes=24576, unit_bytes=8192)
    caches = known.caches(gathered)
    assert {(model.shot, model.bits) for model in caches} == {(1, 3), (3, 3)}
    # Cells of more bits hold as many times as much.
    holds = {round(model.slc_share / model.bits, 4) for model in caches}
    assert len(holds) == 1 and {model.slc for model in caches} == {"dynamic"}
    # What was measured was the cache, or what is behind it.
    assert {model.program_ns for model in caches} == {TRUE.program_ns, 4 * TRUE.program_ns}
    assert {model.slc_program_ns * model.shot for model in caches} == {
        TRUE.program_ns,
        TRUE.program_ns / 4,
    }


def test_a_map_that_no_probe_found_is_tried_where_reads_fit_nothing_else() -> None:
    """A read that is repeated comes from RAM, and nearly all others load their part of the map: nothing tells of it."""
    drive = replace(
        TRUE, scheme="dftl", map_share=0.03, page_bytes=8192, read_buffer_bytes=1 << 20, noise=0.01
    )
    given = found(mapping="page", clustered_page=8192, parallel_units=2)
    with Target(drive.ssd("hidden", "", 8192 * 32 * 2 * 250)) as target:
        measured = calibrate(target, given, mode="quick")
        search = Search(Trials(target, given, measured, 1, lambda share: None, Deadline(None)))
        assert search.trials.structures.schemes() == ["page"]
        plain = search.read_best(search.trials.structures.models())
        loading = search.read_best(search.trials.structures.loading())
    errors = [
        min(search.trials.error(m, search.trials.reads) for m in kind) for kind in (plain, loading)
    ]
    assert errors[1] < 0.7 * errors[0] and loading[0].scheme == "dftl"


def test_fit_finds_two_units_and_when_it_cleans() -> None:
    """Nothing but the mapping is known: programs of four units, in RAM that outlives power, cleaned in steps."""
    built = replace(
        TRUE, page_bytes=16384, unit_bytes=4096, channels=2, dies=2, schedule="rate-limited"
    )
    given = found(mapping="page") | {"slc-cache": Finding("slc-cache", "absent")}
    with Target(built.ssd("two-units", "", 16384 * 32 * 4 * 48)) as target:
        measured = calibrate(target, given, mode="quick")
        fit = fitted(target, given, measured, trials_limit=120)
        result = check(target, fit.ssd)
    assert fit.model.unit_bytes == 4096 and fit.model.units == 4
    assert fit.model.schedule != "foreground"
    assert result.all.ratio["mean"] == pytest.approx(1, abs=0.15)


def test_a_fit_climbs_to_how_dies_choose() -> None:
    """From a model whose dies take all in order, whose reads suspend nothing, and whose spare space is another."""
    built = replace(
        TRUE, page_bytes=16384, unit_bytes=4096, dies=2, die_order="by-class", suspends="erases"
    )
    given = found(mapping="page", clustered_page=4096, parallel_units=4, program_unit=16384)
    with Target(built.ssd("choosy", "", 16384 * 32 * 4 * 64)) as target:
        measured = calibrate(target, given, mode="quick")
        search = Search(
            Trials(target, given, measured, 1, lambda share: None, Deadline(None), most=250)
        )
        search.trials.until = 0.7
        begun = replace(built, die_order="fifo", suspends="nothing", spare=0.2)
        climbed, _ = search.refine(begun)
    assert (climbed.die_order, climbed.suspends) == ("by-class", "erases")
    both = (*search.trials.clean, *search.trials.used)
    assert search.trials.error(climbed, both) < 0.5 * search.trials.error(begun, both)


def test_a_fit_ends_with_its_budget(small: Ssd, calibration: Calibration) -> None:
    """Of processor time, whatever the clock on the wall says; the profile tells it."""
    with Target(small) as target:
        fit = fitted(target, FINDINGS, calibration, processor_limit=0.5)
    assert fit.stopped.startswith("fit stopped by its budget after ")
    assert fit.to_dict()["stopped"] == fit.stopped


def test_check_sees_another_drive(small: Ssd) -> None:
    """A quarter slower programs, and half the spare space, are each outside the bounds."""
    with Target(small) as target:
        assert check(target, small, requests=2000).within
        for changes in ({"timing.program": "540 us"}, {"geometry.blocks-per-plane": 318}):
            result = check(target, small.with_(changes), requests=2000)
            assert not result.within and result.all.ratio["mean"] > 1.1
            assert result.all.distance > 0.01


def test_kolmogorov_by_hand() -> None:
    """Of 1, 2, 3, 4 and 3, 4, 5, 6 half lies below 3 in one and nothing in the other."""
    assert kolmogorov(np.array([4.0, 1, 2, 3]), np.array([3.0, 4, 5, 6])) == 0.5


def test_outliers_count_linearly() -> None:
    """Within the bound as a mean square; one of 1.0 among zeros as 0.08 * (2 - 0.08)."""
    assert _robust(np.array([0.03, -0.03])) == pytest.approx(0.03)
    assert _robust(np.array([0.0, 0.0, 0.0, 1.0])) ** 2 == pytest.approx(0.08 * 1.92 / 4)


def test_wrong_drive_is_refused(calibration: Calibration) -> None:
    with Target("sim:default") as target, pytest.raises(TargetError, match="of its calibration"):
        fitted(target, {}, calibration)
    tiny = Model(page_bytes=4096, pages_per_block=32).ssd("tiny", "", 32 * MIB)
    with Target(tiny) as target, pytest.raises(TargetError, match=r"expected 67,108,864 B"):
        calibrate(target, {})


def marked(profile: Profile, path: Path, **record: object) -> Path:
    """The profile as a file, with another record of its twin."""
    replace(profile, twin_record=record).save(path)
    return path


@pytest.fixture(scope="module")
def plain() -> Profile:
    """A profile of a small drive that is its own twin."""
    ssd = Ssd.named("default").with_({"geometry.blocks-per-plane": 32})
    return Profile.described(ssd)


def test_a_twin_within_its_bounds_plays_without_a_word(
    plain: Profile, command: Cli, tmp_path: Path
) -> None:
    path = marked(plain, tmp_path / "good.toml", error=0.1, check=check_record(1.05, 0.8))
    done = command("simulate", path, "--workload", "uniform", "--requests", 100, "--quiet")
    assert (done.status, done.err) == (0, "")


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ({"error": 0.6, "check": check_record(1.0, 1.0)}, "its fit is off by 0.60 (bound 0.25)"),
        ({"error": 0.1, "check": check_record(1.8, 1.0)}, "the mean was 1.80 times the drive's"),
        ({"error": 0.1, "check": check_record(1.0, 0.5)}, "the 99th percentile was 0.50 times"),
        ({"error": 0.1, "check": check_record(0.93, 1.0, 0.05)}, "give or take 0.05"),
        (
            {"error": 0.1, "check": check_record(1.0, 1.0, reads_ratio=10.0, writes_ratio=0.2)},
            "the mean of reads was 10.00 times the drive's (bound 25 %)",
        ),
        ({"error": 0.1}, "it was never checked against its drive"),
    ],
)
def test_whoever_plays_a_twin_beyond_its_bounds_is_told(
    plain: Profile, command: Cli, tmp_path: Path, record: dict[str, object], says: str
) -> None:
    path = marked(plain, tmp_path / "bad.toml", **record)
    done = command("simulate", path, "--workload", "uniform", "--requests", 100, "--quiet")
    assert done.status == 0
    assert f"note: {path}: don't rely on this twin: " in done.err
    assert says in done.err
    with pytest.warns(TwinWarning, match="don't rely"):
        Ssd.from_toml(path)
    done = command("advise", "host", path, "--quiet")
    assert done.status == 0
    assert done.err.count("don't rely on this twin: ") == 1 and says in done.err


def test_advice_on_a_twin_keeps_what_it_may_be_off_by(
    plain: Profile, command: Cli, tmp_path: Path
) -> None:
    path = marked(plain, tmp_path / "good.toml", error=0.1, check=check_record(1.05, 0.8))
    few = ["--utilizations", "0.5,0.6", "--requests", "200", "--workload", "uniform"]
    done = command("advise", "space", path, *few, "--target", "write-amplification<=1.01")
    assert "targets are met with as much to spare" in done.err
    assert "write-amplification<=1.01 with 10% to spare" in done.out + done.err


def test_advice_does_not_rest_on_a_twin_beyond_its_bounds(
    plain: Profile, command: Cli, tmp_path: Path
) -> None:
    path = marked(plain, tmp_path / "bad.toml", error=0.6, check=check_record(9.5, 1.0))
    few = ["--utilizations", "0.5,0.6", "--requests", "200", "--workload", "uniform", "--quiet"]
    done = command("advise", "space", path, *few)
    assert done.status == 2
    assert "don't rely on its twin" in done.err
    # Four shares in use, 3.4 capacities in all, filled once in order and six times at random.
    assert "characterize sim:default --only reserves`" in done.err
    assert (
        "23.8" in f"{asked_at_most(10**12).bytes_written / 1e12}" and "24 drive fills" in done.err
    )
    assert "--rated-endurance the wear" in done.err
    done = command("advise", "space", path, *few, "--despite-doubts")
    assert "error" not in done.err
