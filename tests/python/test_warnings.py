"""Warnings of runs: each is there where figures mislead, and not where they do not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from conftest import SMALL, Cli
from flashwright import Ssd, compare, workloads
from flashwright.errors import WorkloadError
from flashwright.simulation.parts import Warned
from flashwright.simulation.results import RunResult
from flashwright.simulation.run import PlaySettings

DRIVE = Ssd.from_text(SMALL)
"""1,638 logical pages in 4 planes of 32 blocks of 16 pages."""


def play(
    workload: workloads.Source | str = "uniform",
    precondition: str = "sequential",
    settings: Mapping[str, object] | None = None,
    **run: Any,
) -> RunResult:
    """A short run on the small drive."""
    given: PlaySettings = {"requests": 2000, **run}  # type: ignore[typeddict-item]
    return DRIVE.with_(settings or {}).precondition(precondition).play(workload, **given)


def warned(run: RunResult, code: str) -> Warned | None:
    """The warning with that code, if the run has it."""
    assert [each.code for each in run.warnings] == [each["code"] for each in run.json["warnings"]]
    return next((each for each in run.warnings if each.code == code), None)


def trace(
    folder: Path, requests: list[tuple[str, int]], *, apart_s: float = 1e-3
) -> workloads.Trace:
    """A trace of requests of 4 KiB: r, w, and the page."""
    path = folder / "requests.spc"
    path.write_text(
        "".join(
            f"0,{page * 8},4096,{kind},{at * apart_s:.6f}\n"
            for at, (kind, page) in enumerate(requests)
        )
    )
    return workloads.trace(str(path))


def test_a_drive_that_has_not_settled() -> None:
    run = play(requests=200)
    found = warned(run, "not-settled")
    assert found is not None and run.settled.why in found.text
    assert found.mend == run.settled.mend == "--precondition workload"
    assert str(found) == f"{found.text}; try --precondition workload"
    settled = play(precondition="workload", requests=20_000)
    assert settled.settled and warned(settled, "not-settled") is None
    assert warned(play("uniform:write=0"), "not-settled") is None


def test_reads_of_pages_without_data() -> None:
    found = warned(play("uniform:write=0.5", "empty"), "unmapped-reads")
    assert found is not None and "of the pages read hold no data" in found.text
    assert found.mend is not None and "--precondition sequential" in found.mend
    assert warned(play("uniform:write=0.5"), "unmapped-reads") is None
    timed = {"timing.unmapped-read": "20 us"}
    run = play("uniform:write=0", "empty", timed)
    assert warned(run, "unmapped-reads") is None
    assert run.json["response_time_ns"]["read"]["max"] == 20_000
    assert (
        warned(play("uniform:write=0.5", "empty", {"timing.model": "none"}), "unmapped-reads")
        is None
    )
    trimmed = warned(play("uniform:write=0.3,trim=0.3"), "unmapped-reads")
    assert trimmed is not None and trimmed.mend == '--set "timing.unmapped-read=20 us"'


def test_the_queue_follows_the_depth_where_it_is_left_open() -> None:
    runs = {depth: play(depth=depth, workload="uniform:write=0") for depth in (32, 64)}
    assert [run.json["config"]["host"]["queue-depth"] for run in runs.values()] == [32, 64]
    assert warned(runs[32], "queue-widened") is None
    found = warned(runs[64], "queue-widened")
    assert found is not None and "which means 64 here" in found.text
    for run in runs.values():
        assert warned(run, "depth-beyond-queue") is None
    # What the workload says of its depth counts alike.
    of_workload = play("uniform:write=0,depth=64")
    assert of_workload.json["digest"] == runs[64].json["digest"]


def test_depth_beyond_a_queue_that_the_description_sets() -> None:
    stated = {"host.queue-depth": 8}
    runs = [play(depth=depth, settings=stated) for depth in (8, 16)]
    assert warned(runs[0], "depth-beyond-queue") is None
    found = warned(runs[1], "depth-beyond-queue")
    assert (
        found is not None
        and "16 requests are kept in flight, but the drive accepts 8" in found.text
    )
    assert found.mend == "--set host.queue-depth=16"
    mended = play(depth=16, settings={"host.queue-depth": 16})
    assert warned(mended, "depth-beyond-queue") is None
    limited = warned(play(depth=16, settings={"controller.queue-depth": 8}), "depth-beyond-queue")
    assert limited is not None and limited.mend == "--set controller.queue-depth=16"
    serial = warned(play(depth=16, settings={"timing.model": "serial"}), "depth-beyond-queue")
    assert serial is not None and "timing.model = serial" in serial.text
    for moot in ({"host.queue-depth": 8, "host.scheduler": "noop"}, {"timing.model": "none"}):
        assert warned(play(depth=16, settings=moot), "depth-beyond-queue") is None


def test_planes_that_take_turns() -> None:
    planes: dict[str, object] = {"geometry.planes-per-die": 2}
    found = warned(play(settings=planes), "planes-in-turn")
    assert found is not None and "the 2 planes of a die work one at a time" in found.text
    assert found.mend is not None and "geometry.dies-per-channel=4" in found.mend
    assert warned(play(), "planes-in-turn") is None
    assert warned(play(settings=planes | {"timing.model": "serial"}), "planes-in-turn") is None


def test_options_that_override_the_workload() -> None:
    for workload, said in (("zipf:depth=8", "depth=8"), ("uniform:rate=200", "rate=200")):
        found = warned(play(workload, depth=4), "pace-overridden")
        assert found is not None
        assert found.text == f"the workload states {said}, but depth 4 sets the pace of this run"
        assert warned(play(workload), "pace-overridden") is None
    assert warned(play("zipf:depth=8", depth=8), "pace-overridden") is None
    assert warned(play("uniform:rate=200", time_scale=2), "pace-overridden") is None
    assert warned(play("uniform", depth=4), "pace-overridden") is None
    for workload in ("uniform:depth=8", "uniform"):
        found = warned(play(workload, time_scale=2), "pace-overridden")
        assert found is not None and "all requests arrive at once" in found.text


def test_a_trace_that_never_makes_the_drive_clean(tmp_path: Path) -> None:
    short = trace(tmp_path, [("w", page) for page in range(50)])
    run = play(short, "empty", {"geometry.blocks-per-plane": 1024}, requests=None)
    found = warned(run, "never-cleaned")
    assert found is not None and "wrote 50 pages (0.10 % of" in found.text
    assert found.mend is not None and found.mend.startswith("--precondition workload, or a smaller")
    assert warned(run, "not-settled") is None, "one of the two is enough"
    # The drive that it names is one that it fills as far as cleaning allows.
    blocks = int(found.mend.rsplit("=", 1)[1])
    assert 16 <= blocks < 200
    assert warned(play(short, "sequential", requests=None), "never-cleaned") is not None
    assert warned(play("uniform", "empty", requests=50), "never-cleaned") is None
    only_reads = trace(tmp_path, [("r", page) for page in range(50)])
    assert warned(play(only_reads, "empty", requests=None), "never-cleaned") is None
    long = trace(tmp_path, [("w", page % 1600) for page in range(4000)])
    assert warned(play(long, "empty", requests=None), "never-cleaned") is None


def test_a_trace_that_leaves_the_drive_empty(tmp_path: Path) -> None:
    small = trace(tmp_path, [("w", page % 100) for page in range(4000)])
    run = play(small, "empty", requests=None)
    found = warned(run, "small-footprint")
    assert found is not None and "the trace filled 6.1 % of the drive" in found.text
    assert warned(play(small, "sequential", requests=None), "small-footprint") is None
    large = trace(tmp_path, [("w", page % 1600) for page in range(4000)])
    assert warned(play(large, "empty", requests=None), "small-footprint") is None


def test_blocks_kept_for_cleaning_that_eat_the_spare_space() -> None:
    """A tenth more write amplification is where it begins, at the same utilisation and workload."""
    amplification, found = {}, {}
    for blocks in (32, 100, 300):
        drive = Ssd.named("default").with_(
            channels=1, dies_per_channel=2, blocks_per_plane=blocks, utilization=0.8
        )
        settings = {"timing.model": "none", "geometry.pages-per-block": 32}
        drive = drive.with_(settings).precondition("workload")
        run = drive.play("uniform", requests=100 * blocks, window="off")
        amplification[blocks] = run.write_amplification or 0.0
        found[blocks] = warned(run, "reserved-blocks")
    assert found[32] is not None and found[100] is None and found[300] is None
    assert "cleaning keeps 3 of the 6.4 spare blocks of a plane" in found[32].text
    assert "11 % of the flash is spare space instead of 20 %" in found[32].text
    assert found[32].mend is not None and "--set geometry.blocks-per-plane=75" in found[32].mend
    assert amplification[32] > 1.2 * amplification[300]
    assert amplification[100] < 1.1 * amplification[300]


def test_a_warm_up_that_leaves_little_or_nothing(tmp_path: Path) -> None:
    requests = trace(tmp_path, [("w", page) for page in range(1000)])
    found = warned(play(requests, warmup=995, requests=None), "little-measured")
    assert found is not None and "0.50 % of the trace is measured" in found.text.replace(
        "0.5 %", "0.50 %"
    )
    assert warned(play(requests, warmup=900, requests=None), "little-measured") is None
    assert warned(play("uniform", warmup=5000, requests=10), "little-measured") is None
    for warmup in (1000, 1001, 10**9):
        with pytest.raises(
            WorkloadError, match=f"warmup: found {warmup}, expected fewer than the 1000"
        ):
            play(requests, warmup=warmup, requests=None)


def test_an_open_loop_that_falls_behind() -> None:
    run = play("uniform:rate=100000", requests=5000)
    found = warned(run, "falls-behind")
    assert found is not None and "requests arrive per second and" in found.text
    assert found.mend is not None and found.mend.startswith("--depth N, or --time-scale ")
    slower = float(found.mend.rsplit(" ", 1)[1])
    assert slower > 1
    assert warned(play("uniform:rate=100", requests=5000), "falls-behind") is None
    assert (
        warned(play("uniform:rate=100000", requests=5000, time_scale=1.2 * slower), "falls-behind")
        is None
    )
    assert warned(play("uniform:rate=100000", requests=5000, depth=4), "falls-behind") is None


def test_flushes_without_a_buffer() -> None:
    syncs = workloads.trace("bundled:sqlite", addresses="dense")
    large = Ssd.named("default").with_(blocks_per_plane=128).precondition("sequential")
    run = large.play(syncs, requests=2000)
    found = warned(run, "free-flushes")
    share = run.json["response_time_ns"]["flush"]["count"] / 2000
    assert share > 0.01 and found is not None and f"{100 * share:.1f} %" in found.text
    buffered = large.with_({"ram.manager": "lru", "ram.size": "16 MiB"})
    run = buffered.play(syncs, requests=2000)
    figures: Any = run.json
    assert warned(run, "free-flushes") is None and figures["response_time_ns"]["flush"]["max"] > 0
    assert warned(play(), "free-flushes") is None


def test_what_the_translation_layer_cautions_of_is_a_warning() -> None:
    short = {"ftl.scheme": "superblock", "ftl.superblock.blocks": 1}
    run = play(settings=short, requests=10)
    found = warned(run, "costly-configuration")
    layout = run.json["drive"]
    assert found is not None and layout is not None and [found.text] == layout["cautions"]


def test_a_run_that_means_what_it_says_warns_of_nothing() -> None:
    drive = Ssd.named("default").with_(blocks_per_plane=200, channels=1, dies_per_channel=1)
    run = drive.precondition("workload").play("uniform:write=0.7", requests=60_000, depth=8)
    assert run.warnings == () and run.json["warnings"] == []


def test_tables_show_them_under_their_head(command: Cli, small: str) -> None:
    run = ("simulate", small, "--workload", "uniform:depth=2", "--requests", 200, "--depth", 4)
    said = command(*run).out.splitlines()
    rows = [line.split(maxsplit=1)[1].strip() for line in said if line.startswith("warning")]
    assert len(rows) == 2 and rows[0].startswith("not settled: ")
    assert rows[1] == "the workload states depth=2, but depth 4 sets the pace of this run"
    assert said.index(next(line for line in said if line.startswith("measured"))) < next(
        at for at, line in enumerate(said) if line.startswith("warning")
    )


def test_a_comparison_says_each_once(command: Cli, small: str) -> None:
    vary = ("--vary", "host.queue-depth=2,8")
    said = command("compare", small, *vary, "--workload", "uniform", "--requests", 200, "--depth", 4,
                   "--precondition", "sequential").out  # fmt: skip
    rows = [line for line in said.splitlines() if line.startswith("warning")]
    assert len(rows) == 2
    assert sum("host.queue-depth=2: 4 requests are kept in flight" in row for row in rows) == 1
    assert sum("not settled" in row and "host.queue-depth=" not in row for row in rows) == 1


def test_comparisons_of_depths_differ() -> None:
    ssd = DRIVE.with_(blocks_per_plane=64, channels=8, dies_per_channel=8).precondition(
        "sequential"
    )
    runs = compare(ssd, "uniform:write=0", {"depth": [32, 64, 128]}, requests=4000)
    speeds = [run.json["throughput"]["iops"] or 0.0 for run in runs]
    assert speeds == sorted(set(speeds)), "a queue that is left open follows the depth"
