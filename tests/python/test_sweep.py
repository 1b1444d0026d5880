"""Sweeps: what a file says, what is computed once, and that the result hangs on nothing else."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import flashwright.sweeps.run_point
from conftest import SMALL, Cli
from flashwright import Ssd, compare, workloads
from flashwright.drive.policies import Unit, VictimPolicy, from_portable, to_portable
from flashwright.errors import ConfigError, PolicyError, SweepError
from flashwright.simulation.run import Run, RunSettings
from flashwright.support.core import _core
from flashwright.sweeps.points import Store, carry_out
from flashwright.sweeps.pool import on_processes
from flashwright.sweeps.run_point import sharing
from flashwright.sweeps.sweep import FIGURES, Estimate, Shard, Sweep, sweep

ROOT = Path(__file__).parents[2]

GRID = """
drive = "small.toml"
precondition = "random"
workload = "uniform:write=0.7"
requests = 400
depth = 2
seeds = 2

[grid]
gc.victim = ["greedy", "fifo"]
"workload.write" = [0.5, 1]
"""


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text(SMALL)
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    return path


def written(folder: Path, text: str) -> Path:
    (folder / "small.toml").write_text(SMALL)
    path = folder / "sweep.toml"
    path.write_text(text)
    return path


def labels(path: Path) -> list[str]:
    return [case.label for case in Sweep.from_toml(path).cases]


def test_a_grid_is_every_combination_with_every_seed(grid: Path) -> None:
    assert labels(grid) == [
        f"gc.victim={victim}, workload.write={write}, seed={seed}"
        for victim in ("greedy", "fifo")
        for write in (0.5, 1)
        for seed in (1, 2)
    ]


def test_grids_and_points_are_laid_together_and_what_is_named_twice_is_there_once(
    tmp_path: Path,
) -> None:
    path = written(
        tmp_path,
        """
        drive = "small.toml"
        seeds = [7]
        [[grid]]
        ftl.scheme = ["page", "dftl"]
        ftl.dftl.ram = ["2 KiB", "4 KiB"]
        [[grid]]
        ftl.scheme = "page"
        [[point]]
        "workload" = "sequential"
        "workload.write" = 0.5
        precondition = "sequential"
        requests = 100
        """,
    )
    assert labels(path) == [
        "ftl.scheme=page, seed=7",
        "ftl.scheme=dftl, ftl.dftl.ram=2 KiB, seed=7",
        "ftl.scheme=dftl, ftl.dftl.ram=4 KiB, seed=7",
        "workload=sequential, workload.write=0.5, precondition=sequential, requests=100, seed=7",
    ]
    variant = Sweep.from_toml(path).cases[-1].combination.variant
    assert variant is not None
    assert variant.source == workloads.parse("sequential:write=0.5")
    assert (variant.ssd.preconditioning, variant.settings.requests) == ("sequential", 100)


def test_drives_can_be_varied_and_settings_are_laid_over_each(tmp_path: Path) -> None:
    path = written(
        tmp_path, '[set]\ngc.victim = "fifo"\n[grid]\ndrive = ["small.toml", "default"]\n'
    )
    cases = Sweep.from_toml(path).cases
    configs = [case.combination.variant.ssd.config for case in cases if case.combination.variant]
    assert [config["name"] for config in configs] == ["small", "default"]
    assert {config["gc"]["victim"] for config in configs} == {"fifo"}


FAULTS = {
    "": "found nothing to vary, expected [grid] with lists of values, [[point]] or seeds",
    "[grid]": "grid: found it empty, expected at least one key",
    '[grid]\n"gc.victim" = []': "grid: gc.victim: found no value, expected at least one",
    '[grid]\n"gc.victm" = ["fifo"]': "grid: gc.victm: unknown key; did you mean gc.victim?",
    "[grid]\nvictim = ['fifo']": "grid: victim: unknown key; did you mean gc.victim?",
    "[grid]\ndepht = [1]": "grid: depht: unknown key; did you mean depth?",
    "[grid]\nseed = [1]": "grid: seed: found it here, expected seeds at the top of the file",
    '[grid]\n"gc.victim" = ["fifo"]\ngc.victim = ["fifo"]': "grid: gc.victim: found it twice",
    "[grid]\ndepth = [1]\ndepth = [2]": "not TOML: cannot overwrite a value",
    '[grid]\n"gc.victim" = ["fifo", "gredy"]': 'gc.victim: found "gredy", expected greedy',
    "[grid]\ndepth = ['four']": "depth: found 'four', expected a whole number from 1 up",
    "[grid]\ndepth = [1]\ntime-scale = [2]": "depth and time-scale: found both",
    "[grid]\nrequests = [0]": "requests: found 0, expected a whole number from 1 up",
    "[grid]\nworkload = [3]": "grid: workload: found 3, expected text or a table with trace = PATH",
    "[grid]\nworkload = ['unifrom']": "unifrom",
    "workload = 'uniform'\n[grid]\n'workload.writ' = [1]": "did you mean workload.write?",
    "[grid]\nworkload = [{trace = 'no.spc'}]": "no.spc: there is no such file",
    "[grid]\nworkload = [{trace = 'no.spc', adresses = 'wrap'}]": "did you mean addresses?",
    "[grid]\ndepth = [2020-01-01]": "grid: depth: found 2020-01-01, expected text, a number",
    "[grid]\nftl.dftl.ram = ['2 KiB']": "varied under other translation layers only",
    "grid = 3": "grid: found 3, expected [grid] or [[grid]]",
    "[point]\ndepth = 1": "point: found a table, expected [[point]]",
    "[[point]]": "point 1: found it empty",
    "sedes = 3\n[grid]\ndepth = [1]": "sedes: unknown key; did you mean seeds?",
    "seeds = 0": "seeds: found 0, expected how many, from 1 up, or a list of seeds",
    "seeds = []": "seeds: found [], expected how many",
    "seeds = [1, 1]": "seeds: found [1, 1], expected each seed once",
    "seeds = true": "seeds: found true, expected how many",
    "seeds = 1\nrequests = 'many'": 'requests: found "many", expected a whole number from 1 up',
    "seeds = 1\nverify = 1": "verify: found 1, expected true or false",
    "seeds = 1\ntime-scale = 'x'": 'time-scale: found "x", expected a number',
    "seeds = 1\ndepth = 1\ntime-scale = 1": "depth and time-scale: found both",
    "seeds = 1\ndrive = 'defalt'": "drive:",
    "seeds = 1\ndrive = 1": "drive: found 1, expected text",
    "seeds = 1\nprecondition = 'randm'": "randm",
    "seeds = 1\nworkload = 'uniform'\ntrace = 'x'": "trace: found beside workload",
    "seeds = 1\nworkload = 'uniform'\ntenants = ['zipf']": "tenants: found beside workload",
    "seeds = 1\ntenants = 'zipf'": 'tenants: found "zipf", expected a list of texts',
    "seeds = 1\ntenants = [1]": "tenants: found 1 among them, expected texts",
    "seeds = 1\ntenants = []": "tenants: found none, expected at least one",
    "seeds = 1\ntenants = ['zipf @ shar=1']": "tenant: found 'shar=1' after @",
    "seeds = 1\nalone = false": "alone: found without tenants, expected both or neither",
    "seeds = 1\n[set]\ngc.victm = 'fifo'": "set: gc.victm: unknown key; did you mean gc.victim?",
    "seeds = 1\n[set]\ngc.victim = 'gredy'": 'gc.victim: found "gredy"',
    "seeds =": "not TOML: invalid value (at",
}


@pytest.mark.parametrize("text", FAULTS)
def test_a_fault_of_the_file_is_one_clear_line_and_nothing_is_run(
    tmp_path: Path, command: Cli, text: str
) -> None:
    path = written(tmp_path, text)
    said = command("sweep", path)
    assert said.status == 2 and said.out == ""
    faults = [line for line in said.err.splitlines() if line.startswith("error: ")]
    assert len(faults) == 1
    assert faults[0].startswith(f"error: {path}: ")
    assert FAULTS[text] in said.err
    assert not (tmp_path / "sweep.points").exists()


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(SweepError, match="no such file"):
        Sweep.from_toml(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SweepError, match="not text in UTF-8"):
        Sweep.from_toml(tmp_path / "bytes.toml")


def test_a_point_says_the_same_as_the_run_alone(grid: Path) -> None:
    sweep_of = Sweep.from_toml(grid)
    case = sweep_of.cases[1]
    variant = case.combination.variant
    assert variant is not None and case.point is not None
    alone = dict(variant.ssd.play(variant.source, requests=400, depth=2, seed=2).json)
    cost: Any = alone.pop("run")
    result = json.loads(carry_out(case.point.call, case.point.arguments))["result"]
    assert set(result["machine"]) == set(cost)
    assert result["figures"] == json.loads(json.dumps(alone))


def test_the_key_hangs_on_all_that_makes_a_point(tmp_path: Path, spc: Path) -> None:
    ssd = Ssd.from_text(SMALL, "small")

    def key(on: Ssd = ssd, of: Any = "uniform", seeds: Any = (1,), **settings: Any) -> str:
        from flashwright.simulation.run import RunSettings
        from flashwright.sweeps.combinations import Description

        source = workloads.find(of) if isinstance(of, str) else of
        made = {"requests": 100, "depth": 1, **settings}
        [case] = Sweep.of(Description(on, source, RunSettings(**made), seeds, [{}])).cases
        assert case.point is not None
        return case.point.key

    trace = workloads.trace(spc)
    keys = [
        key(),
        key(ssd.with_(victim="fifo")),
        key(ssd.precondition("random")),
        key(of="uniform:write=0.5"),
        key(seeds=(2,)),
        key(requests=101),
        key(warmup=1),
        key(depth=2),
        key(verify=True),
        key(of=trace),
        key(of=workloads.trace(spc, addresses="dense")),
        key(of=workloads.trace(spc, repeat=2)),
    ]
    assert len(set(keys)) == len(keys)
    assert key() == keys[0]
    # A series is not kept, so how it is cut makes no difference.
    assert key(window="requests=10") == keys[0]
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    same = folder / spc.name
    same.write_bytes(spc.read_bytes())
    assert key(of=workloads.trace(same)) == key(of=trace)
    same.write_bytes(spc.read_bytes() + spc.read_bytes()[-30:])
    assert key(of=workloads.trace(same)) != key(of=trace)


def test_the_key_hangs_on_the_code(grid: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {case.point.key for case in Sweep.from_toml(grid).cases if case.point}
    monkeypatch.setattr(flashwright.sweeps.run_point, "code", lambda: "other")
    after = {case.point.key for case in Sweep.from_toml(grid).cases if case.point}
    assert not before & after


def test_another_version_and_another_trace_are_refused_where_a_point_is_computed(
    spc: Path,
) -> None:
    ssd = Ssd.from_text(SMALL, "small")
    [case] = Sweep.of(_described(ssd, workloads.trace(spc))).cases
    assert case.point is not None
    arguments = {**case.point.arguments, **case.point.whereabouts}
    assert "result" in carry_out(case.point.call, arguments)
    assert "another version" in carry_out(case.point.call, {**arguments, "made_by": "older"})
    spc.write_bytes(spc.read_bytes()[:-20])
    assert "found other content" in carry_out(case.point.call, arguments)
    spc.unlink()
    assert "no such file" in carry_out(case.point.call, arguments)


def _described(ssd: Ssd, source: workloads.Source) -> Any:
    from flashwright.simulation.run import RunSettings
    from flashwright.sweeps.combinations import Description

    return Description(ssd, source, RunSettings(requests=100, depth=1), (1,), [{}])


def test_an_estimate_is_the_mean_with_students_interval() -> None:
    # By hand: deviations of 1, 2, 3, 4 from 2.5 give s^2 = 5/3; t(0.975, 3) = 3.1824.
    found = Estimate.of([1, 2, 3, 4])
    assert found.mean == 2.5 and found.count == 4
    assert found.ci95 == pytest.approx(3.1824 * (5 / 3) ** 0.5 / 2, rel=1e-4)
    assert Estimate.of([2.0]) == Estimate(2.0, None, 1)


def test_shards_are_a_partition_told_by_the_keys(grid: Path) -> None:
    points = [case.point for case in Sweep.from_toml(grid).cases]
    shards = [Shard(number, 3) for number in (1, 2, 3)]
    for point in points:
        assert point is not None
        assert sum(shard.holds(point) for shard in shards) == 1
    for wrong in ("0/3", "4/3", "1", "a/b", "1/0", "-1/2"):
        with pytest.raises(SweepError, match=r"^shard: found"):
            Shard.parse(wrong)


def test_one_file_whatever_computed_it(grid: Path, command: Cli, tmp_path: Path) -> None:
    """One process, two, shards, and a folder in which some points are damaged or missing."""

    def swept(name: str, *options: object) -> bytes:
        out = tmp_path / f"{name}.parquet"
        said = command("sweep", grid, "--store", tmp_path / name, "--out", out, *options)
        assert said.status == 0, said.err
        digests.add(re.findall(r"digest ([0-9a-f]{64})", said.out)[0])
        counts.append(re.findall(r"([0-9]+) computed", said.out)[0])
        return out.read_bytes()

    digests: set[str] = set()
    counts: list[str] = []
    one = swept("one", "--jobs", 1)
    assert swept("two", "--jobs", 2) == one
    for nth in (1, 2, 3):
        said = command("sweep", grid, "--store", tmp_path / "parts", "--shard", f"{nth}/3")
        assert said.status == 0 and "collects them" in said.out
    assert swept("parts") == one
    files = sorted((tmp_path / "two").rglob("*.json"))
    files[0].unlink()
    files[1].write_bytes(files[1].read_bytes()[:100])
    assert swept("two", "--jobs", 1) == one
    assert len(digests) == 1 and counts == ["8", "8", "0", "2"]
    table = pyarrow.parquet.read_table(tmp_path / "one.parquet")
    assert table.num_rows == 8
    assert table.column_names[:6] == [
        "label",
        "key",
        "gc.victim",
        "workload.write",
        "seed",
        "error",
    ]
    assert not [name for name in table.column_names if name.startswith("run.")]
    assert table["label"].to_pylist() == labels(grid)


def test_a_table_has_what_compare_has(grid: Path, command: Cli, tmp_path: Path) -> None:
    out = tmp_path / "compare.parquet"
    vary = ("--vary", "gc.victim=greedy,fifo", "--vary", "workload.write=0.5,1")
    run = ("--precondition", "random", "--workload", "uniform:write=0.7", "--requests", 400)
    said = command(
        "compare", tmp_path / "small.toml", *run, "--depth", 2, *vary, "--out", out, "-q"
    )
    assert said.status == 0
    compared = pyarrow.parquet.read_table(out).to_pylist()
    found = Sweep.from_toml(grid).run(tmp_path / "points", jobs=1)
    swept = [row for row in found.table.to_pylist() if row["seed"] == 1]
    for one, other in zip(compared, swept, strict=True):
        shared = {key for key in one if not key.startswith("run.") and key != "label"}
        assert {key: one[key] for key in shared} == {key: other[key] for key in shared}


def test_what_a_mount_takes_is_summed_up(tmp_path: Path) -> None:
    text = """
workload = "uniform:write=1"
requests = 3000
precondition = "random"
[set]
geometry.blocks-per-plane = 32
capacity.utilization = 0.8
recovery.mount-by = "scan"
[grid]
recovery.checkpoint-interval = ["0 B", "4 MiB"]
"""
    path = tmp_path / "mounts.toml"
    path.write_text(text)
    scan, checkpoints = (found.figures for found in Sweep.from_toml(path).run().summaries)
    assert 5 * checkpoints["mount.duration_ns"].mean < scan["mount.duration_ns"].mean
    assert checkpoints["write_amplification"].mean > scan["write_amplification"].mean


def test_settings_that_do_not_go_together_fail_alone_and_are_tried_again(
    tmp_path: Path, command: Cli
) -> None:
    path = written(
        tmp_path,
        GRID.split("[grid]")[0]
        + "[grid]\ngeometry.blocks-per-plane = [4, 32]\ngc.free-blocks-min = [2, 5]\n",
    )
    for time_of in (1, 2):
        said = command("sweep", path, "--out", tmp_path / "out.parquet", "--jobs", 1)
        assert said.status == 2
        assert "0 were kept, 4 failed" in said.out if time_of == 1 else "4 were kept" in said.out
        lines = [line for line in said.err.splitlines() if line.startswith("error: ")]
        assert len(lines) == 2
        assert "blocks-per-plane=4, gc.free-blocks-min=2, seed 1, 2 (point " in lines[0]
        assert "capacity" in lines[0]
        assert "gc.free-blocks-min=5, seed 1, 2 (no point): gc.free-blocks-min" in lines[1]
        assert "to retry failed points" in said.err
    rows = pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [row["error"] is None for row in rows] == [False] * 4 + [True] * 4
    assert [row["key"] is None for row in rows] == [False] * 2 + [True] * 2 + [False] * 4
    assert [row["write_amplification"] is None for row in rows] == [True] * 4 + [False] * 4


def test_a_plan_computes_nothing(grid: Path, command: Cli) -> None:
    said = command("sweep", grid, "--plan")
    assert said.status == 0
    assert "8 points, 8 of them different; 0 are kept" in said.out
    assert said.out.count("to compute") == 8
    assert not list(grid.with_suffix(".points").rglob("*.json"))


def test_options_that_do_not_go_together(grid: Path, command: Cli, tmp_path: Path) -> None:
    for options, what in (
        (("--shard", "1/2", "--out", tmp_path / "o.parquet"), "--shard and --out"),
        (("--shard", "3/2"), "--shard: found '3/2'"),
        (("--jobs", 0), "--jobs: found 0"),
        (("--jobs", 1, "--dask", "tcp://here:1"), "--jobs and --dask"),
        (("--out", tmp_path / "no" / "o.parquet"), "can't be written"),
    ):
        said = command("sweep", grid, *options)
        assert said.status == 2 and what in said.err


def test_outputs(grid: Path, command: Cli, tmp_path: Path) -> None:
    options = ("--json", "-", "--summary", tmp_path / "s.parquet", "--report", tmp_path / "r.html")
    said = command("sweep", grid, "--jobs", 1, *options)
    assert said.status == 0
    report = said.json
    assert report["points"] == 8 and len(report["summary"]) == 4
    figure = report["summary"][0]["figures"]["write_amplification"]
    assert figure["count"] == 2 and figure["ci95"] is not None
    rows = pyarrow.parquet.read_table(tmp_path / "s.parquet").to_pylist()
    assert rows[0]["write_amplification.mean"] == figure["mean"]
    assert (rows[0]["gc.victim"], rows[0]["runs"], rows[0]["failed"]) == ("greedy", 2, 0)
    settled = [row["settled"] for row in rows]
    assert settled == [each["settled"] for each in report["summary"]] and max(settled) <= 2
    page = (tmp_path / "r.html").read_text()
    assert "By workload.write" in page and "±" in page and "Sweep: grid" in page


def test_the_report_of_many_points_is_small(tmp_path: Path) -> None:
    from flashwright.sweeps.combinations import Combination
    from flashwright.sweeps.points import Outcome, Point
    from flashwright.sweeps.sweep import Case, SweepResult

    whole: Any = flashwright.Ssd.named("default").play("uniform", requests=100, depth=1).json
    figures = {name: whole[name] for name in {"settled", *(name.split(".")[0] for name in FIGURES)}}
    cases, outcomes = [], []
    for nth in range(2000):
        varied = {"capacity.utilization": nth / 5000, "gc.victim": f"policy-{nth % 10}"}
        point = Point("m:f", {"nth": nth})
        cases.append(Case(Combination(varied, None), 1, point))
        outcomes.append(Outcome(point, {"figures": figures}))
    found = SweepResult(cases, outcomes)
    found.report(tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size < 2_000_000


def test_from_python(tmp_path: Path) -> None:
    ssd = Ssd.from_text(SMALL, "small").precondition("random")
    grid = {"gc.victim": ["greedy", "fifo"]}
    points = [{"gc.victim": "fifo", "depth": 2}]
    kept = tmp_path / "points"
    found = sweep(ssd, "uniform", grid, points=points, requests=200, depth=1, store=kept, jobs=1)
    assert [case.label for case in found.cases] == [
        "gc.victim=greedy, seed=1",
        "gc.victim=fifo, seed=1",
        "gc.victim=fifo, depth=2, seed=1",
    ]
    runs = compare(ssd, "uniform", grid, requests=200, depth=1)
    assert [row["digest"] for row in found.table.to_pylist()[:2]] == [
        r.json["digest"] for r in runs
    ]
    assert found.summary.num_rows == 3 and found.violations == 0 and found.failures == []
    frame = found.table.to_pandas()
    assert list(frame["gc.victim"]) == ["greedy", "fifo", "fifo"]
    again = sweep(ssd, "uniform", grid, points=points, requests=200, depth=1, store=kept, jobs=1)
    assert all(outcome is not None and outcome.cached for outcome in again.outcomes)
    with pytest.raises(SweepError, match="without values"):
        sweep(ssd, "uniform", {"gc.victim": []})
    with pytest.raises(ConfigError, match="gredy"):
        sweep(ssd, "uniform", {"gc.victim": ["gredy"]})


SHARED = """
drive = "small.toml"
precondition = "PRECONDITION"
workload = "uniform:write=0.7"
requests = 400
seeds = 2

[grid]
"host.scheduler" = ["noop", "deadline"]
gc.victim = ["greedy", "fifo"]
depth = [1, 4, 16]
"""


@pytest.mark.parametrize("precondition", ["random:capacities=2", "workload"])
def test_points_that_begin_alike_share_a_drive_and_say_the_same(
    precondition: str, tmp_path: Path
) -> None:
    sweep_of = Sweep.from_toml(written(tmp_path, SHARED.replace("PRECONDITION", precondition)))
    points = [case.point for case in sweep_of.cases if case.point is not None]
    grouped = sharing(points)
    assert {point.key for point in grouped} == {point.key for point in points}
    groups = [point.whereabouts.get("shared") for point in grouped]
    assert len(groups) == 24 and None not in groups
    # Policies and seeds apart; if the workload preconditions, schedulers too.
    assert len(set(groups)) == (4 if precondition.startswith("random") else 8)
    assert groups == sorted(groups, key=groups.index), "together"
    found = sweep_of.run(jobs=2)
    assert found.failures == []
    alone = {
        outcome.point.key: outcome.result["figures"]
        for outcome in on_processes(points, workers=1, retries=0)
    }
    for outcome in found.outcomes:
        assert outcome is not None and outcome.result["figures"] == alone[outcome.point.key]


def test_a_drive_is_preconditioned_once_for_runs_that_begin_alike() -> None:
    ssd = Ssd.from_text(SMALL, "small")
    shared = _core.SharedDrive()

    def phase(precondition: str, **settings: Any) -> str:
        made = RunSettings(requests=100, **settings)
        run = Run.create(ssd.toml, precondition, workloads.uniform(), made, shared=shared)
        phase = run.progress().phase
        run.go()
        return str(phase)

    assert phase("random", depth=1) == "precondition"
    assert phase("random", depth=8) == "measured"
    assert phase("random", depth=8, seed=2) == "precondition"
    assert phase("workload", depth=1) == "precondition"
    assert phase("workload", depth=4, warmup=10) == "warmup"


SLOW = """
drive = "small.toml"
precondition = "random"
workload = "uniform"
requests = 300_000
depth = 2
seeds = 12
[grid]
gc.victim = ["greedy", "fifo"]
"""


def started(path: Path, out: Path) -> subprocess.Popen[str]:
    words = ["sweep", str(path), "--out", str(out), "--jobs", "2"]
    return subprocess.Popen(
        [sys.executable, "-m", "flashwright", *words],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def test_a_sweep_that_is_killed_goes_on_and_comes_to_the_same_file(
    tmp_path: Path, command: Cli
) -> None:
    """SIGKILL to the sweep, SIGTERM, and SIGKILL to one of its processes; then a whole one elsewhere."""
    path, out = written(tmp_path, SLOW), tmp_path / "out.parquet"
    store = path.with_suffix(".points")

    def finished() -> int:
        return len(list(store.rglob("*.json")))

    def until_more_than(count: int, process: subprocess.Popen[str]) -> None:
        end = time.monotonic() + 60
        while finished() <= count and process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.01)

    before = 0
    for number in (signal.SIGKILL, signal.SIGTERM):
        process = started(path, out)
        until_more_than(before, process)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        before = finished()
        assert not out.exists() and 0 < before < 24
        assert process.returncode == (143 if number == signal.SIGTERM else -number)
        assert (f"{before} of 24 points are kept in" in errors) == (number == signal.SIGTERM)
    process = started(path, out)
    until_more_than(before, process)
    for child in children(process.pid)[:1]:
        os.kill(child, signal.SIGKILL)
    said, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert f"{before} were kept" in said or f"{24 - before} computed" in said
    assert finished() == 24
    whole = command(
        "sweep", path, "--store", tmp_path / "elsewhere", "--out", tmp_path / "whole.parquet"
    )
    assert whole.status == 0
    assert (tmp_path / "whole.parquet").read_bytes() == out.read_bytes()


def test_a_dask_cluster_comes_to_the_same_file(grid: Path, command: Cli, tmp_path: Path) -> None:
    """A scheduler and two workers, each a process of its own; one worker is killed before the sweep begins."""
    pytest.importorskip("distributed")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    address_file = tmp_path / "scheduler.json"

    def run(what: str, *options: str) -> subprocess.Popen[bytes]:
        words = [
            sys.executable,
            "-m",
            "dask",
            what,
            "--scheduler-file",
            str(address_file),
            *options,
        ]
        return subprocess.Popen(
            words,
            env=environment,
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    plain = ("--no-dashboard",)
    processes = [run("scheduler", "--port", "0", "--host", "127.0.0.1", *plain)]
    try:
        end = time.monotonic() + 60
        while not address_file.exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        worker = ("--nthreads", "1", "--host", "127.0.0.1", "--no-nanny", *plain)
        processes += [run("worker", *worker) for _ in range(2)]
        address = json.loads(address_file.read_text())["address"]
        out = tmp_path / "dask.parquet"
        said = command("sweep", grid, "--dask", address, "--store", tmp_path / "d", "--out", out)
        assert said.status == 0, said.err
        assert "8 computed" in said.out
    finally:
        for process in processes:
            process.kill()
            process.wait()
    here = tmp_path / "here.parquet"
    assert command("sweep", grid, "--store", tmp_path / "h", "--out", here).status == 0
    assert here.read_bytes() == out.read_bytes()


def test_a_dask_scheduler_that_does_not_answer_is_said(
    grid: Path, command: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("flashwright.sweeps.cluster._TIMEOUT_S", 1)
    said = command("sweep", grid, "--dask", "tcp://127.0.0.1:9")
    assert said.status == 2 and "no scheduler answers" in said.err
    monkeypatch.setitem(sys.modules, "distributed", None)
    said = command("sweep", grid, "--dask", "tcp://127.0.0.1:9")
    assert said.status == 2 and "found no Dask here" in said.err
    assert "pip install 'dask[distributed]'" in said.err


def test_the_grid_of_two_thousand(command: Cli, tmp_path: Path) -> None:
    path = ROOT / "experiments" / "sweeps" / "cleaning.toml"
    assert len(Sweep.from_toml(path).cases) == 2000
    said = command("sweep", path, "--store", tmp_path, "--plan")
    assert "2,000 points, 2,000 of them different" in said.out
    assert not list(Store(tmp_path).folder.rglob("*.json"))


def test_a_call_begins_with_settled_drives_as_a_file_does() -> None:
    ssd = Ssd.named("default").with_(channels=1, dies_per_channel=1, blocks_per_plane=32)
    settings = {"timing.model": "none", "placement.policy": "single"}
    ssd = ssd.with_(settings, pages_per_block=32)
    given: dict[str, Any] = {"requests": 20_000, "jobs": 1}
    found = sweep(ssd, "uniform:write=1", {"capacity.utilization": [0.7]}, seeds=1, **given)
    assert found.table["precondition.spec"].to_pylist() == ["workload"]
    empty = sweep(ssd.precondition("empty"), "uniform:write=1", seeds=1, **given)
    assert empty.table["precondition.spec"].to_pylist() == ["empty"]


MINE = """
from flashwright.drive.policies import VictimPolicy


class Fewest(VictimPolicy):
    def __init__(self, lean=0):
        self.lean = lean

    def pick(self, unit):
        return unit.blocks[unit.valid.argmin()]
"""


def test_policies_of_ones_own_are_played_in_processes_and_known_by_their_file(
    grid: Path, command: Cli
) -> None:
    mine = grid.with_name("mine.py")
    mine.write_text(MINE)
    values = '"greedy", "mine.py:Fewest", "mine.py:Fewest(lean=2)"'
    grid.write_text(GRID.replace('"greedy", "fifo"', values))
    found = Sweep.from_toml(grid).run(grid.with_name("points"), jobs=2)
    assert found.failures == []
    of = {case.label: found.figures_of(nth) for nth, case in enumerate(found.cases)}
    assert len(of) == 12
    digests = {label: figures and figures["digest"] for label, figures in of.items()}
    for label, digest in digests.items():
        assert digest == digests[re.sub(r"python:Fewest( \(lean=2\))?", "greedy", label)]
    figures = of["gc.victim=python:Fewest (lean=2), workload.write=0.5, seed=1"]
    assert figures is not None
    own = figures["policies"]
    assert own[0]["settings"] == {"lean": 2} and own[0]["file"] == "mine.py"
    sweep_again = Sweep.from_toml(grid)
    assert sweep_again.kept(Store(grid.with_name("points"))) == 12
    # Another file is another policy.
    mine.write_text(MINE + "# changed\n")
    assert Sweep.from_toml(grid).kept(Store(grid.with_name("points"))) == 4
    assert command("sweep", grid, "--quiet", "--jobs", 1).status == 0


class OfThisModule(VictimPolicy):
    """Needs what JSON has no value for."""

    def __init__(self, kept: object = None) -> None:
        self.kept = kept

    def pick(self, unit: Unit) -> int:
        return int(unit.blocks[unit.valid.argmin()])


def test_policies_that_other_processes_cannot_make_are_refused(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    ssd = Ssd.find(str(tmp_path / "small.toml"))

    class Within(OfThisModule):
        pass

    for policy, expected in (
        (Within, "expected one of a file"),
        (OfThisModule({1, 2}), "JSON has no value for"),
        (OfThisModule((1, 2)), "JSON has no value for"),
        (OfThisModule(float("nan")), "JSON has no value for"),
    ):
        with pytest.raises(PolicyError, match=expected):
            sweep(ssd, "uniform", {"gc.victim": [policy]}, requests=10, depth=1)
    form, path = to_portable(OfThisModule([1, 2]))
    changed = tmp_path / "changed.py"
    changed.write_text(Path(path).read_text() + "# changed")
    with pytest.raises(PolicyError, match="found other content here"):
        from_portable(form, str(changed))
