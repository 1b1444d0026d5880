"""``flashwright compare``: what can be varied, and what the table and the rows show of it."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from conftest import Cli, Said
from flashwright import Ssd, compare, errors, workloads
from flashwright.simulation.compare import CompareInterrupted
from flashwright.simulation.results import Runs
from flashwright.support.progress import Progress
from test_report import embedded

RUN = ("--requests", 500, "--workload")


def test_keys_of_the_workload(command: Cli, small: str) -> None:
    said = command(
        "compare", small, *RUN, "zipf:write=0.7,rate=10", "--json", "-",
        "--vary", "workload.rate=50,200", "--vary", "workload.write=0.5,1", "--precondition", "empty",
    )  # fmt: skip
    assert said.status == 0
    runs = said.json["runs"]
    assert [run["label"] for run in runs] == [
        f"workload.rate={rate}, workload.write={write}" for rate in (50, 200) for write in (0.5, 1)
    ]
    assert [run["varied"] for run in runs][1] == {"workload.rate": 50, "workload.write": 1}
    assert runs[0]["workload"] == "zipf:write=0.5,rate=50"
    assert runs[2]["throughput"]["iops"] > 3 * runs[0]["throughput"]["iops"]
    alone = command(
        "simulate", small, "--requests", 500, "--workload", "zipf:rate=200,write=0.5", "--json", "-"
    )
    assert runs[2]["digest"] == alone.json["digest"]


def test_a_key_of_the_workload_beside_one_of_the_drive(command: Cli, small: str) -> None:
    runs = command(
        "compare", small, *RUN, "stand-in:financial1", "--json", "-",
        "--vary", "gc.victim=greedy,fifo", "--vary", "workload.trace=financial1,financial2",
    ).json["runs"]  # fmt: skip
    assert [(run["config"]["gc"]["victim"], run["workload"]) for run in runs] == [
        (victim, f"stand-in:{trace}")
        for victim in ("greedy", "fifo")
        for trace in ("financial1", "financial2")
    ]


def test_depth(command: Cli, small: str, spc: Path) -> None:
    said = command("compare", small, "--trace", spc, "--vary", "depth=1,8", "--json", "-")
    runs = said.json["runs"]
    assert [run["pace"] for run in runs] == [{"closed": {"depth": 1}}, {"closed": {"depth": 8}}]
    assert runs[0]["throughput"]["iops"] < runs[1]["throughput"]["iops"]
    alone = command(
        "simulate", small, "--trace", spc, "--depth", 8, "--precondition", "auto", "--json", "-"
    ).json
    assert runs[1]["digest"] == alone["digest"]


def test_time_scale(command: Cli, small: str, spc: Path) -> None:
    said = command("compare", small, "--trace", spc, "--vary", "time-scale=1000,0.5", "--json", "-")
    runs = said.json["runs"]
    assert [run["pace"]["open"]["time_scale"] for run in runs] == [1000, 0.5]
    assert runs[0]["measured"]["duration_ns"] > runs[1]["measured"]["duration_ns"]


def test_whole_workloads(command: Cli, small: str) -> None:
    said = command(
        "compare", small, "--requests", 500, "--vary",
        "workload=uniform; zipf:write=0.5,depth=2;bundled:pgbench", "--addresses", "wrap",
    )  # fmt: skip
    assert (said.status, said.err) == (0, "")
    for spec in ("uniform", "zipf:write=0.5,depth=2", "bundled:pgbench"):
        assert f"workload={spec} " in said.out
    assert re.search(r"^workload +varied", said.out, re.MULTILINE)
    assert re.search(r"^pace +varied", said.out, re.MULTILINE)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--workload", "uniform", "--vary", "workload.rte=5"],
            "error: --vary workload.rte: found an unknown key of uniform, expected one of workload.places, "
            "workload.write, workload.trim, workload.size, workload.align, workload.range, workload.depth, "
            "workload.rate, workload.arrival\nhint: did you mean workload.rate?\n",
        ),
        (
            ["--vary", "workload.rate=5"],
            "error: --vary workload.rate: found with a trace, expected a workload that has keys\n"
            "hint: play a generator, or vary depth or time-scale\n",
        ),
        (
            ["--workload", "uniform", "--vary", "workload.write=0.5,2"],
            'error: workload "uniform:write=2": write: found "2", expected a share',
        ),
        (
            ["--workload", "uniform", "--vary", "workload.size=4KiB,1TiB"],
            'error: workload "uniform:size=1TiB": size: found 1 TiB',
        ),
        (
            ["--workload", "uniform:depth=4", "--vary", "workload.rate=5"],
            'error: workload "uniform:depth=4,rate=5": rate: found rate and depth=4 together',
        ),
        (
            ["--workload", "uniform", "--depth", "4", "--vary", "workload.rate=5,6"],
            "error: workload.rate and --depth: found both, expected one of them\n"
            "hint: the latter sets the pace whatever the workload's rate, so all runs would be identical\n",
        ),
        (
            ["--workload", "uniform", "--time-scale", "2", "--vary", "workload.depth=5,6"],
            "error: workload.depth and --time-scale: found both, expected one of them\n",
        ),
        (
            ["--vary", "depth=8,x"],
            "error: --vary depth: found 'x', expected a whole number from 1 up\n",
        ),
        (
            ["--vary", "depth=8,2.5"],
            "error: --vary depth: found 2.5, expected a whole number from 1 up\n",
        ),
        (
            ["--vary", "depth=8,0"],
            "error: --vary depth: found 0, expected a whole number from 1 up\n",
        ),
        (
            ["--vary", "depth=8,16", "--time-scale", "2"],
            "error: --depth and --time-scale: found both, expected one of them\n",
        ),
        (
            ["--vary", "time-scale=1,true"],
            "error: --vary time-scale: found True, expected a number from 0 to 1,000,000\n",
        ),
        (
            ["--vary", "time-scale=1,-1"],
            "error: --vary time-scale: found -1, expected a number from 0 to 1,000,000\n",
        ),
        (
            ["--vary", "depth=1", "--vary", "depth=2"],
            "error: --vary: found depth twice, expected each key once\n",
        ),
        (
            ["--workload", "uniform", "--vary", "workload=zipf"],
            "error: --vary workload and --workload: found both, expected one of them\n",
        ),
        (
            ["--repeat", "2", "--vary", "workload=zipf"],
            "error: --repeat: found with --vary workload, expected only with --trace\n",
        ),
        (
            ["--workload", "uniform", "--vary", "trace=bundled:pgbench"],
            "error: --vary trace and --workload: found both, expected one of them\n",
        ),
        (
            ["--vary", "workload=uniform", "--vary", "trace=bundled:pgbench"],
            "error: --vary trace and --vary workload: found both, expected one of them\n",
        ),
        (["--vary", "trace=bundled:pgbench,no.spc"], "error: no.spc: there is no such file\n"),
        (["--vary", "workload=uniform;zpf"], 'error: workload "zpf": workload: found "zpf"'),
    ],
)
def test_faults_are_found_before_any_run(command: Cli, options: list[str], said: str) -> None:
    found = command("compare", "default", "--requests", 100, "--progress", *options)
    assert (found.status, found.out) == (2, "")
    assert found.err.startswith(said)


def test_traces_are_varied_and_read_as_the_options_say(command: Cli, tmp_path: Path) -> None:
    trace = tmp_path / "own.csv"
    trace.write_text("0,w,0,8\n1,w,8,8\n2,w,100000000,8\n")
    said = command(
        "compare", "default", "--vary", f"trace={trace},{trace}", "--vary", "depth=1,2", "--precondition", "empty",
        "--columns", "time=1:us,op=2,lba=3:sectors,size=4:sectors", "--addresses", "dense", "--json", "-",
    )  # fmt: skip
    # Named twice, it is played once; without the options it could not be read, and would not fit.
    assert said.status == 0, said.err
    runs = json.loads(said.out)["runs"]
    assert [(run["varied"]["depth"], run["measured"]["requests"]) for run in runs] == [
        (1, 3),
        (2, 3),
    ]


def _shown(command: Cli, small: str, vary: str) -> str:
    said = command("compare", small, *RUN, "uniform", "--vary", vary)
    assert said.status == 0
    return said.out


def test_columns_of_translation_schemes(command: Cli, small: str) -> None:
    extra = (
        "block use",
        "table RAM",
        "switch merges",
        "partial merges",
        "full merges",
        "hit ratio",
    )
    shown = _shown(command, small, "ftl.scheme=page,fast,dftl")
    assert all(name in shown for name in extra)
    assert re.search(r"ftl\.scheme=page .* [\d.]+ KiB +- +- +- +-", shown)
    assert re.search(r"ftl\.scheme=fast .* [\d.]+ (KiB|B) +\d+ +\d+ +[\d,]+ +-", shown)
    assert re.search(r"ftl\.scheme=dftl .* [\d.]+ (KiB|B) +- +- +- +[\d.]+ %", shown)


def test_columns_that_would_say_nothing_are_left_out(command: Cli, small: str) -> None:
    shown = _shown(command, small, "gc.victim=greedy,fifo")
    for name in ("block use", "table RAM", "merges", "hit ratio"):
        assert name not in shown
    schemes = _shown(command, small, "ftl.scheme=page,block")
    assert "table RAM" in schemes
    assert "merges" not in schemes and "hit ratio" not in schemes


def test_in_a_narrow_page_what_matters_stays(
    command: Cli, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    shown = _shown(command, small, "ftl.scheme=page,fast")
    assert len(re.findall(r"^ *ftl\.scheme=fast ", shown, re.MULTILINE)) == 1
    table, left = shown.split("not shown in 100 columns: ")
    assert "WA" in table and "full" in table and "max erases" in left


def test_rows_have_what_was_varied(command: Cli, small: str, tmp_path: Path) -> None:
    rows = tmp_path / "runs.parquet"
    said = command(
        "compare", small, *RUN, "uniform:rate=5", "--quiet", "--out", rows,
        "--vary", "workload.rate=50,200.5", "--vary", "workload.write=0.5,70%",
    )  # fmt: skip
    assert (said.status, said.out, said.err) == (0, "", "")
    table = pyarrow.parquet.read_table(rows)
    assert table.column_names[:3] == ["label", "workload.rate", "workload.write"]
    assert table["workload.rate"].to_pylist() == [50, 50, 200.5, 200.5]
    assert table["workload.write"].to_pylist() == ["0.5", "70%"] * 2
    assert table["measured.requests"].to_pylist() == [500] * 4
    assert [path.name for path in tmp_path.iterdir() if "runs" in path.name] == ["runs.parquet"]


def test_rows_that_cant_be_written_are_found_out_before_any_run(
    command: Cli, small: str, tmp_path: Path
) -> None:
    said = command(
        "compare", small, *RUN, "uniform", "--vary", "depth=1,2", "--out", tmp_path / "no" / "x.csv"
    )
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("error: ") and "no" in said.err


RATES = (
    "compare", "SMALL", "--requests", 400, "--workload", "uniform:rate=50", "--precondition", "sequential",
    "--vary", "ftl.scheme=fast,dftl",
)  # fmt: skip


def _compare(command: Cli, small: str, *options: object) -> Said:
    return command(*(small if word == "SMALL" else word for word in RATES), *options)


def test_settings_of_a_layer_are_left_out_of_others(command: Cli, small: str) -> None:
    ram = ("--vary", "ftl.dftl.ram=128 B,256 B", "--vary", "ftl.fast.log-fraction=0.05,0.1")
    runs = _compare(command, small, *ram, "--json", "-").json["runs"]
    assert [run["varied"] for run in runs] == [
        {"ftl.scheme": "fast", "ftl.fast.log-fraction": 0.05},
        {"ftl.scheme": "fast", "ftl.fast.log-fraction": 0.1},
        {"ftl.scheme": "dftl", "ftl.dftl.ram": "128 B"},
        {"ftl.scheme": "dftl", "ftl.dftl.ram": "256 B"},
    ]
    assert [run["config"]["ftl"]["dftl"]["ram"] for run in runs][:3] == ["0 B", "0 B", "128 B"]


def test_settings_of_no_layer_in_play_are_refused(command: Cli, small: str) -> None:
    said = _compare(command, small, "--vary", "ftl.bast.log-blocks=4,8")
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(
        "error: --vary ftl.bast.log-blocks: found it varied under other translation layers only, "
        "expected ftl.scheme = bast\n"
    )
    alone = command("compare", small, *RUN, "uniform", "--vary", "ftl.dftl.ram=1KiB,2KiB")
    assert alone.err.startswith("error: --vary ftl.dftl.ram: found it varied under other")
    wrong = _compare(command, small, "--vary", "ftl.dftl.ram=1KiB,x")
    assert wrong.status == 2 and "ftl.dftl.ram" in wrong.err


def test_a_grid_draws_lines_over_what_is_numeric(command: Cli, small: str, tmp_path: Path) -> None:
    report = tmp_path / "page.html"
    said = _compare(
        command, small, "--vary", "workload.rate=20,40,80", "--vary", "ftl.dftl.ram=0 B,128 B,512 B",
        "--quiet", "--report", report,
    )  # fmt: skip
    assert (said.status, said.err) == (0, "")
    plots = embedded(report.read_text(encoding="utf-8"), "plots")
    by_rate = plots["charts"]["sweep0-response"]["views"][0]
    assert by_rate["x"]["label"] == "workload.rate, requests per second"
    assert [line["part"] for line in by_rate["series"]] == [
        "ftl.scheme=fast",
        "ftl.scheme=dftl, ftl.dftl.ram=0 B",
        "ftl.scheme=dftl, ftl.dftl.ram=128 B",
        "ftl.scheme=dftl, ftl.dftl.ram=512 B",
    ]
    assert plots["columns"]["sweep0.x"] == [20, 40, 80]
    assert not any(line["level"] for line in by_rate["series"])
    by_ram = plots["charts"]["sweep1-hits"]["views"][0]
    assert [tick for _, tick in by_ram["x"]["ticks"]] == ["128 B", "512 B"]
    # FAST has no hit ratio; 0 B is a level line of its own, not a place on the axis.
    levels = {line["part"]: line["level"] for line in by_ram["series"]}
    assert levels["ftl.scheme=dftl, workload.rate=20"] is False
    assert levels["ftl.scheme=dftl, workload.rate=20, ftl.dftl.ram=0 B"] is True
    assert len(levels) == 6


def test_merges_by_data_blocks(command: Cli, small: str, tmp_path: Path) -> None:
    report, rows = tmp_path / "page.html", tmp_path / "runs.parquet"
    runs = _compare(command, small, "--report", report, "--out", rows, "--json", "-").json["runs"]
    counts = runs[0]["merges"]["full_by_data_blocks"]
    assert sum(counts[1:]) > 0
    plots = embedded(report.read_text(encoding="utf-8"), "plots")
    assert [line["run"] for line in plots["charts"]["merges"]["views"][0]["series"]] == [0]
    shares = plots["columns"]["0.merges"]
    assert shares[0] == 0 and shares[-1] == 1
    assert shares[2] == pytest.approx(sum(counts[1:3]) / sum(counts[1:]), abs=1e-4)
    table = pyarrow.parquet.read_table(rows)
    assert table["merges.full_by_data_blocks"].to_pylist() == [counts, None]


def test_a_close_up_of_every_run(command: Cli, small: str, tmp_path: Path) -> None:
    report, rows = tmp_path / "page.html", tmp_path / "requests.parquet"
    said = _compare(
        command, small, "--quiet", "--closeup", "100:50", "--closeup-out", rows, "--report", report
    )
    assert (said.status, said.err) == (0, "")
    table = pyarrow.parquet.read_table(rows)
    assert table.column_names[:3] == ["label", "ftl.scheme", "request"]
    assert table["ftl.scheme"].to_pylist() == ["fast"] * 50 + ["dftl"] * 50
    assert table["request"].to_pylist() == [*range(100, 150)] * 2
    halves = [table.slice(0, 50), table.slice(50)]
    for same in ("kind", "lpn", "pages"):
        assert halves[0][same].to_pylist() == halves[1][same].to_pylist()
    plots = embedded(report.read_text(encoding="utf-8"), "plots")
    view = plots["charts"]["closeup-1"]["views"][0]
    drawn = [plots["columns"][name] for name in view["times"]]
    assert drawn == [halves[1]["service_ns"].to_pylist(), halves[1]["queue_ns"].to_pylist()]


def test_runs_that_no_setting_told_apart_are_named(command: Cli, small: str) -> None:
    said = _compare(command, small, "--vary", "gc.victim=greedy,random")
    assert re.search(
        r"^identical in every request and in the final state: ftl\.scheme=fast, gc\.victim=greedy; "
        r"ftl\.scheme=fast, gc\.victim=random$",
        said.out,
        re.MULTILINE,
    )
    assert "alike" not in _shown(command, small, "ftl.scheme=page,fast")


def test_where_dftl_has_its_ram_from(command: Cli, small: str) -> None:
    said = _shown(command, small, "ftl.scheme=fast,dftl")
    assert "DFTL's cache takes as much as FAST's tables would" in said
    assert "DFTL's cache" not in _shown(command, small, "ftl.scheme=page,fast")
    set_ = _compare(command, small, "--set", "ftl.dftl.ram=1KiB")
    assert set_.status == 0 and "DFTL's cache" not in set_.out


def test_the_same_in_python(small: str) -> None:
    ssd = Ssd.from_toml(small)
    runs = compare(
        ssd, "uniform", {"workload.write": [0.5, 1], "depth": [1, 8, 8]}, requests=300, seed=3
    )
    assert [run.label for run in runs] == [
        f"workload.write={write}, depth={depth}" for write in (0.5, 1) for depth in (1, 8)
    ]
    alone = ssd.precondition("auto").play("uniform:write=1", depth=8, requests=300, seed=3)
    assert runs[3].json["digest"] == alone.json["digest"]
    scaled = compare(ssd, workloads.uniform(rate=50), {"time-scale": [1, 0.25]}, requests=300)
    paces: list[Any] = [run.json["pace"] for run in scaled]
    assert [pace["open"]["time_scale"] for pace in paces] == [1, 0.25]
    whole = compare(
        ssd, "uniform",
        {"workload": ["sequential", workloads.zipf(), workloads.trace("bundled:pgbench", addresses="wrap")]},
        requests=99,
    )  # fmt: skip
    assert [run.label for run in whole] == [
        "workload=sequential", "workload=zipf", "workload=bundled:pgbench"
    ]  # fmt: skip


def figures(runs: Runs) -> list[object]:
    """All that runs say, but for what they took here."""
    return [(run.label, {**run.json, "run": None}) for run in runs]


@pytest.mark.parametrize("settings", [[], ["--set", "controller.write-buffer.size=64 KiB"]])
def test_the_number_of_jobs_makes_no_difference(
    small: str, settings: list[str], command: Cli
) -> None:
    found = []
    for jobs in (1, 2, 5):
        vary = ["--vary", "depth=1,8", "--vary", "gc.victim=greedy,fifo", "--seeds", 2]
        said = command(
            "compare", small, "--workload", "uniform", *vary, *settings, "--requests", 900, "--jobs", jobs,
            "--json", "-",
        )  # fmt: skip
        assert len(said.json["runs"]) == 8
        found.append([{**run, "run": None} for run in said.json["runs"]])
    assert found[0] == found[1] == found[2]


def test_jobs_in_python(small: str) -> None:
    ssd = Ssd.from_toml(small)
    vary: dict[str, list[float]] = {"depth": [1, 4], "workload.write": [0.5, 1]}
    alone, beside = (compare(ssd, "uniform", vary, requests=500, jobs=jobs) for jobs in (1, 3))
    assert figures(alone) == figures(beside)
    with pytest.raises(errors.ConfigError, match="jobs: found 0, expected 1 to 256"):
        compare(ssd, "uniform", vary, jobs=0)
    # What can't be played ends the comparison with its line, whichever run it is.
    with pytest.raises(errors.WorkloadError, match="size: found 1 GiB"):
        compare(ssd, "uniform:size=1GiB", {"depth": [1, 2]}, requests=5, jobs=2)


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_keeps_what_was_finished(small: str, jobs: int) -> None:
    ssd = Ssd.from_toml(small)
    phases: list[str] = []

    def interrupt(now: Progress) -> None:
        phases.append(now.phase)
        if now.requests > 100:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(CompareInterrupted) as stop:
        compare(
            ssd.precondition("empty"),
            "uniform",
            {"requests": [100, 10**9, 10**9 + 1]},
            jobs=jobs,
            progress=interrupt,
        )
    assert [run.label for run in stop.value.runs] == ["requests=100"]
    assert stop.value.result is not None and stop.value.result.json["ended"] == "interrupted"
    assert phases[-1] == "measured"


def test_faults_in_python(small: str) -> None:
    ssd = Ssd.from_toml(small)
    with pytest.raises(errors.WorkloadError, match="found with a trace"):
        compare(ssd, "bundled:pgbench", {"workload.rate": [5]})
    with pytest.raises(errors.WorkloadError, match=r"workload\.color: found an unknown key"):
        compare(ssd, "uniform", {"workload.color": ["red"]})
    with pytest.raises(errors.ConfigError, match="depth: found it varied together with each"):
        compare(ssd, "uniform", {"depth": [5]}, each=lambda label, ssd: ssd.play("uniform"))
    played = compare(
        ssd, "uniform", {"gc.victim": ["fifo"]}, each=lambda _, ssd: ssd.play("uniform", requests=9)
    )
    assert played[0].json["config"]["gc"]["victim"] == "fifo"
