"""The anomaly experiments: their rules on made curves, and whole on small simulated drives and a file."""

from __future__ import annotations

import json
import math
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flashwright.characterization
from conftest import Cli
from flashwright import Ssd
from flashwright.characterization import EXPERIMENTS, Settings
from flashwright.characterization.base import Bench, on_request
from flashwright.characterization.depth_and_size import (
    DepthAndSize,
    DepthAndSizeResult,
    judge_grid,
)
from flashwright.characterization.fills import Curve, Fills, FillsResult, knee, mapping
from flashwright.characterization.mixing import MixingResult, lowest
from flashwright.characterization.reserves import Reserve, ReservesResult, flash_pool
from flashwright.characterization.session import (
    Characterization,
    CharacterizationInterrupted,
    characterize,
    plan,
)
from flashwright.characterization.steady_state import SteadyStateResult
from flashwright.characterization.unpredictability import (
    UnpredictabilityResult,
    peaks,
    verdict,
)
from flashwright.errors import TargetError, WorkloadError
from flashwright.support.core import _core
from flashwright.target.arrays import Array
from flashwright.target.counters import Counters
from flashwright.target.stats import steadiness
from flashwright.target.target import Target

MIB = 1 << 20
# 320 MiB of flash on four dies.
PARTS = {
    "geometry.channels": 2,
    "geometry.dies-per-channel": 2,
    "geometry.blocks-per-plane": 320,
    "geometry.pages-per-block": 64,
    "geometry.page-size": "4 KiB",
}


USUAL = [each.NAME for each in EXPERIMENTS if not on_request(each)]
"""What is carried out where no experiment is named."""


def little(**settings: object) -> Ssd:
    """A page-mapped drive of 280 MiB."""
    keys = {name.replace("__", ".").replace("_", "-"): value for name, value in settings.items()}
    return Ssd.named("default").with_(PARTS | {"capacity.logical": "280 MiB"} | keys)


def run(name: str, ssd: Ssd | None = None, **more: object) -> Characterization:
    with Target(ssd or little()) as target:
        return characterize(target, [name], **more)  # type: ignore[arg-type]


# Rules on made curves -----------------------------------------------------------------------------


def curve(share: float, rho: float, at: float, peak: float = 200e6) -> Curve:
    nothing = np.zeros(1)
    return Curve(share, nothing, nothing, nothing, nothing, nothing, peak, rho, at, 0.0, 0.0)


@pytest.mark.parametrize("at", [92, 107, 124, 148])
@pytest.mark.parametrize("tail", [5.0, 60.0])
def test_the_knee_is_where_bandwidth_begins_to_fall(at: int, tail: float) -> None:
    rng = np.random.default_rng(at)
    x = np.arange(600.0)
    fall = 0.15 + 0.55 * np.exp(-np.maximum(x - at, 0) / tail)
    bandwidth = 220e6 * np.where(x < at, 1.0, fall) * (1 + 0.01 * rng.standard_normal(600))
    # A stall of one window before is not the fall.
    bandwidth[40] *= 0.2
    # A curved tail draws the corner of two straight lines with it, by a few per cent of a capacity.
    assert abs(knee(bandwidth, 220e6) - at) <= 5


def test_a_flat_curve_has_no_knee() -> None:
    assert math.isnan(knee(np.full(300, 200e6) * np.where(np.arange(300) < 110, 1, 0.96), 200e6))


def test_the_mapping_goes_by_the_level_the_knee_and_writes_in_order() -> None:
    page = [curve(0.1, 0.97, math.nan), curve(0.5, 0.6, 1.1), curve(1.0, 0.12, 1.08)]
    assert mapping(page, 200e6)[0] == "page"
    flat = [curve(0.1, 0.99, math.nan), curve(1.0, 0.95, math.nan)]
    assert mapping(flat, 600e6)[0] == "log-block"
    assert mapping(flat, 250e6)[0] == "flat"
    # It rises where more is in use, it falls too early, or not far enough.
    odd = [curve(0.1, 0.3, 1.1), curve(0.5, 0.6, 1.1), curve(1.0, 0.3, 1.1)]
    early = [curve(0.1, 0.97, math.nan), curve(1.0, 0.3, 0.4)]
    little = [curve(0.1, 0.97, math.nan), curve(1.0, 0.8, 1.1)]
    for curves in (odd, early, little):
        assert mapping(curves, 200e6)[0] == "inconclusive"
    assert mapping(page[:2], 200e6)[1].startswith("needs the whole range")


def test_reads_are_stable_unpredictable_or_between() -> None:
    same, three = np.ones(3), np.array([1.0, 1.5, 2.9])
    assert verdict(same, same, np.array([0.0, 0.05, 0.09])) == "stable"
    assert verdict(same, same, np.array([0.0, 0.05, 0.2])) == "between"
    assert verdict(np.array([1.0, 1.05, 1.09]), three, same * 0) == "between"
    assert verdict(same, np.array([1.0, 1.5, 3.0]), same * 0) == "unpredictable"
    assert verdict(np.array([1.0, 1.4, 2.0]), same, same * 0) == "unpredictable"


def test_peaks_that_stand_out_are_counted() -> None:
    x = np.arange(200.0)

    def hill(at: float, height: float) -> Array:
        return np.asarray(height * np.exp(-((x - at) ** 2) / 72))

    one, low = hill(60, 1.0), hill(60, 1.0) + hill(140, 0.03)
    assert [at.size for at, _ in (peaks(one), peaks(low))] == [1, 1]
    at, heights = peaks(one + hill(140, 0.4))
    assert at.tolist() == [60, 140] and heights[1] == pytest.approx(0.4 * heights[0], rel=0.01)
    assert peaks(hill(0, 1.0))[0].tolist() == [0]


def test_the_best_pair_has_least_response_near_the_peak() -> None:
    size, depth = np.array([4096, 65536, 131072]), np.array([1, 2, 4, 8, 16])
    # A bandwidth that each size reaches at its own depth, and Little's law.
    most, at = np.array([50e6, 200e6, 200e6]), np.array([16, 8, 4])
    bandwidth = most[:, None] * np.minimum(depth / at[:, None], 1)
    response = depth * size[:, None] / bandwidth * 1e9
    grid = judge_grid("read", size, depth, bandwidth, response)
    assert (grid.best_size_bytes, grid.best_depth) == (65536, 8)
    assert grid.saturation_depth.tolist() == [16, 8, 4]
    # Two points make no line; above saturation the slope is size over bandwidth.
    assert np.isnan(grid.slope_ns[:2]).all()
    assert grid.slope_ns[2] == pytest.approx(131072 / 200e6 * 1e9)
    assert grid.linearity[2] == pytest.approx(1)


def test_the_lowest_of_a_mix() -> None:
    share = np.linspace(0, 1, 11)
    at, drop = lowest(share, 100 - 240 * (0.25 - (share - 0.46) ** 2))
    assert at == pytest.approx(0.46) and drop == pytest.approx(0.6, abs=0.05)
    # Falling all the way: the end itself.
    assert lowest(share, 100 - 80 * share) == (1.0, 0.8)


@pytest.mark.parametrize(
    ("values", "spread", "rise", "steady"),
    [
        ([100, 95, 104, 98, 101], 0.090, 0.020, True),
        ([110, 106, 103, 99, 96], 0.136, 0.136, False),
        ([100, 90, 112, 95, 103], 0.220, 0.044, False),
    ],
)
def test_steady_state_by_range_and_slope(
    values: list[float], spread: float, rise: float, steady: bool
) -> None:
    # By hand: ranges 9, 14, 22 over means 99.6, 102.8, 100; lines of 0.5, -3.5 and 1.1 a round, four steps.
    window = steadiness(np.array(values, float))
    assert window.range_share == pytest.approx(spread, abs=0.001)
    assert window.slope_share == pytest.approx(rise, abs=0.001)
    assert window.steady == steady


# Experiments on small drives ----------------------------------------------------------------------


def test_fills_of_a_page_mapped_drive_fall_when_it_is_full() -> None:
    found = run("fills", settings=Settings(fills=3))
    result = found.result("fills")
    assert isinstance(result, FillsResult)
    assert [each.range_share for each in result.curves] == [0.1, 0.5, 0.7, 0.9, 1.0]
    rho = [each.rho for each in result.curves]
    assert rho == sorted(rho, reverse=True) and rho[0] > 0.9 and rho[-1] < 0.5
    whole = result.curves[-1]
    # The flash is 320 MiB, less what cleaning keeps free: the drive cleans from 1.14 capacities at the latest.
    assert 1.0 <= whole.knee <= 320 / 280 + 0.02
    assert whole.written.size == 300 and whole.written[-1] == 3
    before = whole.bandwidth_bytes_per_s[10 : int(95 * whole.knee)]
    assert np.abs(before / whole.peak_bytes_per_s - 1).max() < 0.03
    assert result.mapping == "page"
    # All that was asked, and no more.
    (part,) = found.parts
    assert part.bytes_written == part.estimate.bytes_written and part.bytes_read == 0


def test_bandwidth_over_a_fill_is_volume_over_time() -> None:
    with Target(little()) as target:
        bench = Bench(target, settings=Settings(fills=2, ranges=(1.0,)))
        (result,) = list(Fills().run(bench))
        assert isinstance(result, FillsResult)
        (curve,) = result.curves
        slots = target.capacity_bytes // 65536
        counts = np.diff(np.linspace(0, slots, 101).astype(int))
        took_s = np.tile(counts, 2) * 65536 / curve.bandwidth_bytes_per_s
        # The clock began with the last purge, right before.
        assert took_s.sum() == pytest.approx(target.now_ns / 1e9, rel=1e-3)


def test_a_log_block_drive_is_flat_once_it_was_filled() -> None:
    ssd = little(ftl__scheme="bast", ftl__bast__log_fraction=0.05)
    found = run("fills", ssd, settings=Settings(fills=2, ranges=(0.5, 1.0), prefill=True))
    result = found.result("fills")
    assert isinstance(result, FillsResult)
    assert min(each.rho for each in result.curves) >= 0.9 and result.prefilled
    assert result.mapping == "log-block"
    assert all(math.isnan(each.knee) for each in result.curves)


def test_reads_among_writes_grow_slower_where_all_is_in_use() -> None:
    found = run("unpredictability", mode="quick")
    result = found.result("unpredictability")
    assert isinstance(result, UnpredictabilityResult)
    part, whole = result.ranges
    assert (part.range_share, whole.range_share) == (0.1, 1.0)
    assert whole.verdict == "unpredictable"
    assert np.all(np.diff(whole.mean_ns) > 0) and np.all(np.diff(whole.deviation_ns) > 0)
    assert part.mean_ns.max() < 1.2 * part.mean_ns[0]
    # As many reads as writes, three capacities of them, and a queue of writes to begin with.
    slots = little_slots()
    assert whole.reads.tolist() == [slots] * 3
    assert found.parts[0].bytes_read == 6 * slots * 65536
    assert found.parts[0].bytes_written == (6 * slots + 2 * 32) * 65536
    # Densities are shares: all but what lies beyond the last edge.
    width = np.diff(whole.edges_ns)
    assert (whole.density * width).sum(axis=1) == pytest.approx(1, abs=0.01)


def little_slots() -> int:
    return 280 * MIB // 65536


def test_reads_go_only_to_what_was_written() -> None:
    asked: list[tuple[Array, Array]] = []

    class Spy(Target):
        """Remembers what it was asked."""

        def play(
            self, kind: Any, offsets_bytes: Any, sizes_bytes: Any, *, depth: int = 1, **more: Any
        ) -> Any:
            codes = {"read": 0, "write": 1}[kind] if isinstance(kind, str) else kind
            offsets = np.asarray(offsets_bytes)
            asked.append((np.broadcast_to(codes, offsets.shape), offsets))
            return super().play(kind, offsets_bytes, sizes_bytes, depth=depth, **more)

    with Spy(little()) as target:
        bench = Bench(target, settings=Settings(ranges=(0.5,)))
        list(flashwright.characterization.unpredictability.Unpredictability().run(bench))
        kinds = np.concatenate([kind for kind, _ in asked])
        places = np.concatenate([offset for _, offset in asked])
    written: set[int] = set()
    reads = 0
    for position, (kind, place) in enumerate(zip(kinds.tolist(), places.tolist(), strict=True)):
        if kind:
            written.add(place)
        else:
            reads += 1
            assert place in written, position
    assert reads == 3 * little_slots()
    assert max(written) < 140 * MIB
    # Reads are not all of the few first pages: they reach most of what there is.
    assert np.unique(places[kinds == 0]).size > 0.9 * len(written)


def test_depth_and_size_finds_what_the_dies_and_the_link_give() -> None:
    result = run("depth-and-size", mode="quick").result("depth-and-size")
    assert isinstance(result, DepthAndSizeResult)
    reads, writes = result.grids
    assert (reads.kind, writes.kind) == ("read", "write")
    # A page alone takes its read or its program and the transfer: the same for a quarter of it.
    for grid in result.grids:
        assert grid.bandwidth_bytes_per_s.shape == (6, 5)
        assert grid.response_mean_ns[1, 0] == pytest.approx(grid.response_mean_ns[0, 0], rel=0.35)
        # Little's law, to the requests that the queue holds at the ends.
        at_once = grid.bandwidth_bytes_per_s * grid.response_mean_ns / 1e9
        at_once /= grid.size_bytes[:, None]
        assert np.all(at_once <= grid.depth * 1.001) and np.all(at_once > grid.depth * 0.85)
        assert np.all(
            np.diff(grid.bandwidth_bytes_per_s[1]) > -0.01 * grid.bandwidth_bytes_per_s[1, :-1]
        )
    assert writes.bandwidth_bytes_per_s.max() < reads.bandwidth_bytes_per_s.max()


def test_mixing_measures_every_share() -> None:
    result = run("mixing", mode="quick").result("mixing")
    assert isinstance(result, MixingResult)
    assert result.write_share == pytest.approx(np.linspace(0, 1, 11))
    assert math.isnan(result.read_mean_ns[-1]) and math.isnan(result.write_mean_ns[0])
    assert np.isfinite(result.read_mean_ns[:-1]).all() and 0 <= result.lowest_at <= 1
    # No turnaround in this drive: between the ends, not below both.
    inner = result.bandwidth_bytes_per_s[1:-1]
    ends = result.bandwidth_bytes_per_s[[0, -1]]
    assert np.all(inner > 0.95 * ends.min()) and np.all(inner < 1.05 * ends.max())


@pytest.mark.parametrize("variant", ["client", "enterprise"])
def test_rounds_end_in_a_steady_state(variant: str) -> None:
    settings = Settings(variant=variant)  # type: ignore[arg-type]
    result = run("steady-state", mode="quick", settings=settings).result("steady-state")
    assert isinstance(result, SteadyStateResult)
    assert result.steady and 5 <= result.tracked_iops.size <= 25
    assert result.iops.shape == (result.tracked_iops.size, 3, 2)
    assert result.iops[:, 2, 1].tolist() == result.tracked_iops.tolist()
    assert result.mean_iops == pytest.approx(result.tracked_iops[-5:].mean())
    assert result.range_share == (0.75 if variant == "client" else 1.0)
    if variant == "client":
        # A quarter of the space is never written: more spare, so faster.
        whole = run("steady-state", mode="quick").result("steady-state")
        assert isinstance(whole, SteadyStateResult)
        assert result.mean_iops > 1.2 * whole.mean_iops


def test_a_block_of_4_kib_leaves_out_smaller_requests(tmp_path: Path) -> None:
    with Target(little()) as target:
        target.block_bytes = 4096
        result = characterize(target, ["depth-and-size"], mode="quick").result("depth-and-size")
    assert isinstance(result, DepthAndSizeResult)
    assert result.grids[0].size_bytes.min() == 4096


# The whole ----------------------------------------------------------------------------------------


def test_a_seed_makes_the_same_again() -> None:
    one, same, other = (
        run("mixing", mode="quick", seed=seed).result("mixing").to_json() for seed in (1, 1, 2)
    )
    assert one == same and one != other


def test_a_reserve_makes_random_writes_faster_until_they_are_steady() -> None:
    found = run("reserves", settings=Settings(ranges=(0.7, 1.0))).result("reserves")
    assert isinstance(found, ReservesResult)
    large, none = found.reserves
    assert large.steady and none.steady
    assert large.steady_bytes_per_s > 1.5 * none.steady_bytes_per_s
    # Before it cleans it is faster.
    assert none.bandwidth_bytes_per_s[0] > 1.5 * none.steady_bytes_per_s
    assert np.isnan(none.write_amplification) and "counts" in found.counters
    assert "30 % unused: " in found.headline()
    flash = _core.config_check(little().toml)
    assert found.pool_bytes == pytest.approx(flash[2] * flash[0] / flash[1], rel=0.04)
    assert found.to_arrow().num_rows == large.written.size + none.written.size


def test_breaks_that_are_a_write_cache_are_not_taken_for_the_flash() -> None:
    def reserve(used: float, break_at: float) -> Reserve:
        return Reserve(used, np.ones(1), np.ones(1), True, 1.0, break_at, float("nan"))

    pool, _ = flash_pool([reserve(0.8, 0.35), reserve(1.0, 0.08)], 1000)
    assert pool == pytest.approx(1080)
    pool, why = flash_pool([reserve(0.8, 0.1), reserve(1.0, 0.08)], 1000)
    assert np.isnan(pool) and "something else" in why
    pool, why = flash_pool([reserve(0.8, float("nan")), reserve(1.0, 0.08)], 1000)
    assert np.isnan(pool) and "did not fall" in why


def test_reserves_have_the_amplification_that_the_drive_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Counted(Counters):
        def lap(self) -> dict[str, Any]:
            return {"host_written_bytes": 10**9, "media_written_bytes": 2 * 10**9, "step_bytes": 1}

    monkeypatch.setattr(Counters, "of", lambda _: Counted(None))
    settings = Settings(ranges=(1.0,), fills=2)
    found = run("reserves", mode="quick", settings=settings).result("reserves")
    assert isinstance(found, ReservesResult)
    assert found.reserves[0].write_amplification == 2 and found.counters == ""
    assert "write amplification 2.00" in found.headline()


def test_no_experiment_asks_more_than_it_said() -> None:
    with Target(little()) as target:
        found = characterize(target, mode="quick", settings=Settings(ranges=(0.2, 1.0)))
    assert [part.name for part in found.parts] == USUAL and "reserves" not in USUAL
    for part in found.parts:
        assert part.ended == "complete"
        # A coin says which of the reads and writes of a round come.
        slack = 1.02 if part.name == "steady-state" else 1.001
        assert part.bytes_written <= part.estimate.bytes_written * slack
        assert part.bytes_read <= part.estimate.bytes_read * slack
    # To text and back, with None where there is no number.
    text = json.dumps(found.to_json(), allow_nan=False)
    assert json.loads(text)["experiments"][0]["result"]["curves"][0]["knee"] is None


def test_what_is_finished_is_kept_when_time_is_up() -> None:
    with Target(little()) as target:
        clock = time.monotonic()
        seen: list[float] = []

        def progress(experiment: object, share: float) -> None:
            seen.append(share)
            # Two of the five ranges and a half: now time is up.
            if share > 0.5 and target.watch is not None:
                target.watch.until = clock  # type: ignore[attr-defined]

        found = characterize(
            target, ["fills", "mixing"], settings=Settings(fills=2), time_limit_s=3600, progress=progress
        )  # fmt: skip
    assert found.ended == "time-limit"
    assert [part.ended for part in found.parts] == ["time-limit"]
    result = found.result("fills")
    assert isinstance(result, FillsResult)
    assert 1 <= len(result.curves) < 5 and result.mapping == "inconclusive"
    assert seen == sorted(seen)
    with pytest.raises(KeyError):
        found.result("mixing")


def test_ctrl_c_keeps_what_is_finished() -> None:
    with Target(little()) as target:

        def progress(experiment: object, share: float) -> None:
            if share > 0.5:
                signal.raise_signal(signal.SIGINT)

        with pytest.raises(CharacterizationInterrupted) as stop:
            characterize(target, ["fills"], settings=Settings(fills=2), progress=progress)
    found = stop.value.result
    assert found.ended == "interrupted"
    assert len(found.result("fills").to_json()["curves"]) >= 1


def test_a_real_file_needs_consent_and_takes_the_same_experiments(
    command: Cli, tmp_path: Path
) -> None:
    path = tmp_path / "drive.img"
    path.write_bytes(bytes(64 * MIB))
    said = command("characterize", path, "--quick", "--only", "mixing")
    assert said.status == 2
    assert "found a target whose data is kept" in said.err and "--destroys-data" in said.err
    assert path.read_bytes() == bytes(64 * MIB)
    plan = command("characterize", path, "--quick", "--plan", "--json", "-").json["plan"]
    assert [each["name"] for each in plan] == USUAL
    assert path.read_bytes() == bytes(64 * MIB)
    said = command(
        "characterize", path, "--quick", "--only", "mixing", "--destroys-data", "--json", "-"
    )
    assert said.status == 0
    (part,) = said.json["experiments"]
    assert (
        part["result"]["write_share"][-1] == 1 and min(part["result"]["bandwidth_bytes_per_s"]) > 0
    )
    assert said.json["target"]["real_time"] is True and said.json["notes"]


@pytest.fixture
def toml(tmp_path: Path) -> str:
    path = tmp_path / "little.toml"
    path.write_text(little().toml)
    return f"sim:{path}"


def test_the_command_prints_writes_and_reports(command: Cli, toml: str, tmp_path: Path) -> None:
    figures, report = tmp_path / "found.json", tmp_path / "found.html"
    said = command(
        "characterize", toml, "--quick", "--range", 0.5, "--range", 1, "--set", "timing.read=30 us",
        "--json", figures, "--report", report,
    )  # fmt: skip
    assert said.status == 0
    for name in USUAL:
        assert f"note: {name}: writes up to" in said.err
        assert f"\n{name}: " in said.out
    assert "mapping looks like: page" in said.out and "steady after" in said.out
    document = json.loads(figures.read_text())
    assert document["target"]["name"] == toml and document["set"] == ["timing.read=30 us"]
    assert document["settings"]["ranges"] == [0.5, 1.0] and document["ended"] == "complete"
    page = report.read_text()
    script = page.split('id="plots"', 1)[1].split(">", 1)[1].split("</script>", 1)[0]
    plots = json.loads(script)
    charts = {
        "fills-bandwidth", "fills-response", "fills-slow", "reads-density", "reads-mean", "grid-bandwidth",
        "grid-response", "mixing", "mixing-response", "rounds",
    }  # fmt: skip
    assert set(plots["charts"]) == charts
    for chart in plots["charts"].values():
        for view in chart["views"]:
            for line in view["series"]:
                assert len(plots["columns"][line["x"]]) == len(plots["columns"][line["y"]])
    quiet = command("characterize", toml, "--quick", "--only", "mixing", "-q")
    assert (quiet.status, quiet.out, quiet.err) == (0, "", "")


def test_ctrl_c_at_the_command_writes_what_is_finished(
    command: Cli, toml: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> Characterization:
        raise CharacterizationInterrupted(run("mixing", mode="quick"))

    monkeypatch.setattr("flashwright.cli.characterize.carry_out", stopped)
    said = command("characterize", toml, "--json", "-")
    assert said.status == 130 and "interrupted; the figures cover what was finished" in said.err
    assert [each["name"] for each in said.json["experiments"]] == ["mixing"]


def test_a_fill_in_stretches_is_the_same_fill(monkeypatch: pytest.MonkeyPatch) -> None:
    def curve() -> Curve:
        found = run("fills", settings=Settings(fills=2, ranges=(1.0,))).result("fills")
        assert isinstance(found, FillsResult)
        return found.curves[0]

    whole = curve()
    # A tenth of a fill at a time, as on a drive of terabytes: the queue runs empty between.
    monkeypatch.setattr("flashwright.characterization.fills._KEPT", 448)
    parts = curve()
    assert parts.written.size == whole.written.size == 200
    assert parts.rho == pytest.approx(whole.rho, rel=0.05)
    assert abs(parts.knee - whole.knee) <= 0.02
    assert parts.peak_bytes_per_s == pytest.approx(whole.peak_bytes_per_s, rel=0.02)


def test_the_command_stops_in_time_and_says_so(command: Cli, toml: str) -> None:
    said = command("characterize", toml, "--time-limit", 1e-6, "--json", "-")
    assert said.status == 0 and "time limit has passed" in said.err
    assert said.json["ended"] == "time-limit" and said.json["experiments"] == []


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("--only", "fill"), "--only: found 'fill', expected one of fills, unpredictability"),
        (("--range", 1.5), "--range: found 1.5, expected shares above 0 and up to 1"),
        (("--fills", 1), "--fills: found 1, expected 2 to 100"),
        (("--variant", "server"), "--variant: found 'server', expected client or enterprise"),
        (("--time-limit", 0), "--time-limit: found 0, expected seconds above 0"),
        (("--set", "timing.model=none"), "found a drive on which no time passes"),
        (("--set", "capacity.logical=40 MiB"), "expected 67,108,864 B or more"),
    ],
)
def test_bad_input_is_one_line(
    command: Cli, toml: str, arguments: tuple[object, ...], found: str
) -> None:
    said = command("characterize", toml, "--quick", "--only", "mixing", *arguments)
    assert said.status == 2 and said.out == ""
    first = said.err.splitlines()[0]
    assert first.startswith("error: ") and found in first


def test_settings_of_a_real_target_are_refused(command: Cli, tmp_path: Path) -> None:
    path = tmp_path / "drive.img"
    path.write_bytes(bytes(64 * MIB))
    said = command("characterize", path, "--set", "capacity.utilization=0.8")
    assert said.status == 2 and "expected only with a sim: drive" in said.err


def test_a_plan_asks_nothing() -> None:
    with Target(little()) as target:
        estimates = plan(target, list(EXPERIMENTS))
        assert len(estimates) == len(EXPERIMENTS) and all(e.bytes_written > 0 for e in estimates)
        assert (target.bytes_read, target.bytes_written, target.now_ns) == (0, 0, 0)


def test_small_targets_and_bad_settings_are_refused_in_python() -> None:
    with (
        Target(little(capacity__logical="32 MiB")) as target,
        pytest.raises(TargetError, match="1,024 requests"),
    ):
        characterize(target)
    with pytest.raises(WorkloadError, match="shares above 0"):
        Settings(ranges=(0.0,))


def test_a_depth_point_is_bounded_by_time() -> None:
    with Target("sim:intel-320") as target:
        bench = Bench(target, "quick")
        took, played = bench_point(bench)
    assert 1.6 <= took <= 2.4 and played > 1000
    assert DepthAndSize().estimate(bench).seconds_max is not None


def bench_point(bench: Bench) -> tuple[float, int]:
    rng = bench.rng("test")
    played, took_ns, waited_ns = bench.timed(
        lambda count: ("write", rng.integers(0, 1 << 20, count) * 65536),
        65536,
        8,
        seconds=2.0,
        requests_max=1 << 20,
    )
    assert waited_ns == pytest.approx(8 * took_ns, rel=0.01)
    return took_ns / 1e9, played
