"""`flashwright simulate`, from options to files."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.feather
import pyarrow.parquet
import pytest

from conftest import Cli
from flashwright import Ssd
from test_report import embedded

UNIFORM = ("--workload", "uniform:write=0.8,depth=4", "--requests", 20_000)

# Every path that the documented JSON has; what does not apply is null, never missing.
CAUSES = ("host", "gc", "merge", "padding", "translation", "wear", "total")
TIMES = ("count", "mean", "stdev", "p50", "p90", "p99", "p99_9", "max")
DOCUMENTED = [
    "version",
    "config",
    "seed",
    "workload",
    "measured.requests",
    "measured.duration_ns",
    *(f"host.pages_{what}" for what in ("read", "written", "trimmed")),
    *(f"flash.{kind}.{cause}" for kind in ("reads", "programs", "erases") for cause in CAUSES),
    "write_amplification",
    "write_amplification_bytes",
    "gc.collections",
    "gc.efficiency",
    "gc.block_utilization",
    *(f"merges.{kind}" for kind in ("switch", "partial", "full")),
    *(f"mapping_cache.{what}" for what in ("lookups", "hits", "hit_ratio", "dirty_evictions")),
    *(
        f"buffer.{what}"
        for what in (
            "write_hits",
            "read_hits",
            "destages",
            "pages_per_destage_mean",
            "pages_padded",
        )
    ),
    *(
        f"wear.erases_per_block.{what}"
        for what in ("min", "max", "mean", "stdev", "coefficient_of_variation")
    ),
    "wear.blocks_worn_out",
    "wear.host_bytes_written",
    "wear.endurance_efficiency",
    *(
        f"{which}_time_ns.{kind}.{figure}"
        for which in ("response", "service")
        for kind in ("all", "read", "write")
        for figure in TIMES
    ),
    "throughput.iops",
    "throughput.bytes_per_s",
    "drive.cautions",
    "warnings",
    "run.cpu_s",
    "run.requests_per_cpu_s",
    "run.peak_rss_bytes",
]
assert len(DOCUMENTED) > 80


def at(document: dict[str, Any], path: str) -> Any:
    value: Any = document
    for key in path.split("."):
        value = value[key]
    return value


def without_cost(document: dict[str, Any]) -> dict[str, Any]:
    """All that a seed determines."""
    return {key: value for key, value in document.items() if key != "run"}


@pytest.mark.parametrize("timing", ["none", "serial", "parallel"])
def test_every_documented_figure_is_there(command: Cli, small: str, timing: str) -> None:
    said = command("simulate", small, *UNIFORM, "--set", f"timing.model={timing}", "--json", "-")
    assert said.status == 0
    for path in DOCUMENTED:
        at(said.json, path)
    assert said.json["measured"]["requests"] == 20_000
    no_time = timing == "none"
    assert (said.json["throughput"]["iops"] is None) == no_time
    assert (said.json["measured"]["duration_ns"] is None) == no_time


def test_figures_add_up(command: Cli, small: str) -> None:
    j = command("simulate", small, *UNIFORM, "--precondition", "random", "--json", "-").json
    for kind in ("reads", "programs", "erases"):
        assert sum(j["flash"][kind][cause] for cause in CAUSES[:-1]) == j["flash"][kind]["total"]
    assert j["write_amplification"] == j["flash"]["programs"]["total"] / j["host"]["pages_written"]
    assert j["flash"]["programs"]["host"] == j["host"]["pages_written"]


def test_the_table_names_everything_that_matters(command: Cli, small: str) -> None:
    said = command("simulate", small, *UNIFORM, "--precondition", "random:capacities=2", "--verify")
    assert said.status == 0
    for words in (
        "small: 6.40 MiB of 8.00 MiB flash, 2 x 2 dies, page mapping, victim greedy",
        "uniform:write=0.8,depth=4",
        "random:capacities=2 (3,276 pages written)",
        "20,000 requests",
        "write amplification",
        "every read and the final state are correct",
        "digest",
    ):
        assert words in said.out
    assert said.err == ""


def test_the_scheme_chooses_the_victim_where_nobody_does(command: Cli, small: str) -> None:
    def victim(*settings: str) -> str:
        chosen = [text for setting in settings for text in ("--set", setting)]
        said = command(
            "simulate", small, *chosen, "--workload", "uniform", "--requests", 10, "--json", "-"
        )
        return str(said.json["config"]["gc"]["victim"])

    assert victim() == victim("ftl.scheme=fast") == "greedy"
    assert (
        victim("ftl.scheme=dftl")
        == victim("ftl.scheme=dftl", "gc.victim=default")
        == "cost-benefit"
    )
    assert victim("ftl.scheme=dftl", "gc.victim=greedy") == "greedy"


def test_cautions_are_shown(command: Cli, small: str) -> None:
    short = (
        "simulate",
        small,
        "--set",
        "ftl.scheme=superblock",
        "--workload",
        "uniform",
        "--requests",
        10,
    )
    said = command(*short, "--set", "ftl.superblock.blocks=1")
    assert said.status == 0
    assert "warning" in said.out and "raise ftl.superblock.blocks to" in said.out
    found = command(*short, "--set", "ftl.superblock.blocks=1", "--json", "-").json["drive"][
        "cautions"
    ]
    assert len(found) == 1 and found[0].startswith("ftl.superblock: ")
    enough = command(*short, "--set", "capacity.utilization=0.5", "--json", "-").json
    assert enough["drive"]["cautions"] == []
    assert enough["gc"]["block_utilization"] is None


def test_block_utilization_tells_pages_never_used(command: Cli, small: str) -> None:
    run = (
        "simulate", small, "--workload", "uniform", "--requests", 5000, "--precondition", "sequential",
        "--json", "-",
    )  # fmt: skip
    used = {
        scheme: command(*run, "--set", f"ftl.scheme={scheme}").json["gc"]["block_utilization"]
        for scheme in ("page", "block", "bast", "replacement")
    }
    # The last logical block has fewer pages than the others.
    assert used["page"] == 1 and 0.99 < used["block"] < 1
    assert 0 < used["replacement"] < 1 and 0 < used["bast"] <= 1


def test_the_summary_tells_what_the_slc_cache_did(command: Cli, small: str) -> None:
    run = ("simulate", small, "--workload", "sequential:write=1", "--requests", 1500)
    cache = ("--set", "geometry.bits-per-cell=2", "--set", "slc.cache=dynamic", "--set", "slc.block-share=0.5",
             "--set", "slc.when-full=fold")  # fmt: skip
    extra = command(*run, *cache, "--json", "-").json["scheme"]["extra"]
    assert 0 < extra["slc_pages_folded"] < extra["slc_pages_written"] <= 1500
    said = command(*run, *cache).out
    assert (
        f"{extra['slc_pages_written']:,.0f} pages written, {extra['slc_pages_folded']:,.0f} folded from"
        in said
    )
    assert "no victims: folding the SLC cache made room" in said
    assert "SLC" not in command(*run).out
    refused = command(*run, *cache, "--set", "ftl.scheme=dftl")
    assert refused.status == 2 and "an SLC cache works with page" in refused.err
    assert len(refused.err.strip().splitlines()) <= 2


def test_quiet_says_nothing(command: Cli, small: str, tmp_path: Path) -> None:
    said = command("simulate", small, *UNIFORM, "--quiet", "--json", tmp_path / "run.json")
    assert (said.status, said.out, said.err) == (0, "", "")
    assert json.loads((tmp_path / "run.json").read_text())["ended"] == "complete"


def test_the_same_seed_gives_the_same_and_another_seed_does_not(command: Cli, small: str) -> None:
    run = ("simulate", small, *UNIFORM, "--precondition", "random", "--json", "-")
    first, second, other = (command(*run, "--seed", seed).json for seed in (7, 7, 8))
    assert without_cost(first) == without_cost(second)
    assert first["digest"] != other["digest"]


def test_stand_ins_are_labelled(command: Cli, small: str) -> None:
    run = ("simulate", small, "--workload", "stand-in:financial1", "--requests", 2000)
    assert "stand-in for Financial1 (synthetic" in command(*run).out
    assert any("stand-in" in note for note in command(*run, "--json", "-").json["workload_notes"])


def test_without_a_workload_the_bundled_trace_is_played_and_named(command: Cli) -> None:
    said = command("simulate", "default", "--requests", 1000)
    assert said.status == 0
    assert said.err == "note: neither --trace nor --workload: playing bundled:pgbench\n"
    assert "trace bundled:pgbench" in said.out
    assert "none: the drive began empty and had room for all of it" in said.out


def test_a_trace_with_its_options(command: Cli, small: str, spc: Path) -> None:
    run = ("simulate", small, "--trace", spc, "--json", "-")
    whole = command(*run).json
    assert whole["measured"]["requests"] == 3000
    assert whole["pace"] == {"open": {"time_scale": 1.0}}
    assert any("wrap" in note for note in whole["workload_notes"])
    one = command(*run, "--device", "1", "--addresses", "wrap").json
    assert one["measured"]["requests"] < whole["measured"]["requests"]
    closed = command(*run, "--depth", 4).json
    assert closed["pace"] == {"closed": {"depth": 4}}
    twice = command(*run, "--device", "1", "--repeat", 2).json
    assert twice["measured"]["requests"] == 2 * one["measured"]["requests"]
    rejected = command(*run, "--addresses", "reject")
    assert rejected.status == 2
    assert "the drive has" in rejected.err


def test_rows_for_requests_and_windows(command: Cli, small: str, tmp_path: Path) -> None:
    rows, series = tmp_path / "rows.parquet", tmp_path / "series.arrow"
    said = command(
        "simulate", small, *UNIFORM, "--warmup", 1000, "--window", "requests=500",
        "--requests-out", rows, "--windows-out", series, "--json", "-",
    )  # fmt: skip
    table = pyarrow.parquet.read_table(rows)
    assert table.num_rows == said.json["measured"]["requests"] == 20_000
    whose = ["arrival_ns", "start_ns", "completion_ns", "kind", "lpn", "pages"]
    assert table.column_names[: len(whose)] == whose
    assert {"flash_ops", "erases"} <= set(table.column_names[len(whose) :])
    assert set(table["kind"].to_pylist()) == {"read", "write"}
    windows = pyarrow.feather.read_table(series)
    assert windows.num_rows == 40
    assert sum(windows["requests"].to_pylist()) == 20_000
    assert sum(windows["pages_written"].to_pylist()) == said.json["host"]["pages_written"]


def test_a_close_up_has_the_rows_of_consecutive_requests(
    command: Cli, small: str, tmp_path: Path
) -> None:
    rows, some = tmp_path / "rows.parquet", tmp_path / "some.parquet"
    run: tuple[object, ...] = ("simulate", small, "--requests", 3000)
    run = (
        *run,
        "--workload",
        "uniform:write=0.8,rate=3000",
        "--precondition",
        "random",
        "--warmup",
        500,
        "--json",
        "-",
    )
    said = command(
        *run, "--requests-out", rows, "--closeup", "2900:200", "--closeup-out", some
    )  # fmt: skip
    assert said.json["digest"] == command(*run).json["digest"]
    found = pyarrow.parquet.read_table(some)
    assert found["request"].to_pylist() == [
        *range(2900, 3000)
    ]  # the run ends before the last hundred
    assert max(found["queue_ns"].to_pylist()) > 0
    # Arrivals of an open loop rise, so they tell which row is which request.
    by_arrival = pyarrow.parquet.read_table(rows).sort_by("arrival_ns").slice(2900)
    same = ["arrival_ns", *by_arrival.column_names[by_arrival.column_names.index("kind") :]]
    assert found.column_names == ["request", "arrival_ns", "queue_ns", "service_ns", *same[1:]]
    for name in same:
        assert found[name].to_pylist() == by_arrival[name].to_pylist()
    arrival, start, end = (
        by_arrival[name].to_numpy() for name in ("arrival_ns", "start_ns", "completion_ns")
    )
    assert found["queue_ns"].to_pylist() == (start - arrival).tolist()
    assert found["service_ns"].to_pylist() == (end - start).tolist()


def test_a_close_up_of_a_run_in_two_parts(command: Cli, small: str, tmp_path: Path) -> None:
    saved, whole, parts = (tmp_path / name for name in ("run.saved", "whole.arrow", "parts.arrow"))
    run = ("simulate", small, *UNIFORM, "--closeup", "7000:100", "--closeup-out")
    command(*run, whole)
    command(*run, parts, "--checkpoint", saved, "--stop-after", 7050)
    assert pyarrow.feather.read_table(parts).num_rows == 46  # of four outstanding
    assert command("simulate", "--resume", saved, "--closeup-out", parts).status == 0
    assert pyarrow.feather.read_table(parts).equals(pyarrow.feather.read_table(whole))
    command("simulate", small, *UNIFORM, "--checkpoint", saved, "--stop-after", 50)
    said = command("simulate", "--resume", saved, "--closeup-out", parts)
    assert said.err.startswith("error: --closeup-out: the saved run has no close-up\n")


@pytest.mark.parametrize("stop", [1, 7_777, 19_999])
def test_a_run_in_two_parts_is_the_same_run(
    command: Cli, small: str, tmp_path: Path, stop: int
) -> None:
    saved = tmp_path / "run.saved"
    run = ("simulate", small, *UNIFORM, "--precondition", "random", "--verify")
    whole = command(*run, "--json", "-").json
    part = command(*run, "--json", "-", "--checkpoint", saved, "--stop-after", stop)
    assert part.status == 0
    assert part.json["ended"] == "interrupted"
    assert part.json["digest"] != whole["digest"]
    rest = command("simulate", "--resume", saved, "--json", "-").json
    assert without_cost(rest) == without_cost(whole)


def test_a_run_of_a_trace_in_two_parts(command: Cli, small: str, spc: Path, tmp_path: Path) -> None:
    saved = tmp_path / "run.saved"
    run: tuple[object, ...] = ("simulate", small, "--trace", spc, "--addresses", "dense")
    run = (
        *run,
        "--repeat",
        2,
        "--json",
        "-",
        "--set",
        "capacity.utilization=0.9",
        "--set",
        "geometry.blocks-per-plane=128",
    )
    whole = command(*run).json
    command(*run, "--checkpoint", saved, "--stop-after", 3500)
    rest = command("simulate", "--resume", saved, "--json", "-").json
    assert rest["digest"] == whole["digest"]


def test_the_trace_of_a_saved_run_is_found_from_anywhere_and_must_be_the_same(
    command: Cli, small: str, spc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = tmp_path / "run.saved"
    monkeypatch.chdir(tmp_path)
    run = ("simulate", small, "--trace", spc.name, "--stop-after", 100, "--checkpoint", saved)
    assert command(*run).status == 0
    monkeypatch.chdir("/")
    assert command("simulate", "--resume", saved, "--quiet").status == 0
    spc.write_text(spc.read_text() + "0,0,4096,w,9.0\n")
    said = command("simulate", "--resume", saved)
    assert said.status == 2
    assert said.err.startswith(
        f"error: {saved}: another trace: the run's trace {spc} is another file now: its content differs\n"
    )


def test_checkpoints_on_the_way_change_nothing(command: Cli, small: str, tmp_path: Path) -> None:
    run = ("simulate", small, *UNIFORM, "--json", "-")
    saved = tmp_path / "run.saved"
    with_checkpoints = command(*run, "--checkpoint", saved, "--checkpoint-every", "0.001").json
    assert with_checkpoints["digest"] == command(*run).json["digest"]
    assert saved.exists()
    assert command("simulate", "--resume", saved, "--json", "-").json["ended"] == "complete"


def test_a_worn_out_drive_is_a_result(command: Cli, small: str) -> None:
    said = command("simulate", small, *UNIFORM, "--set", "wear.pe-cycles-max=5", "--json", "-")
    assert said.status == 0
    assert said.json["ended"] == "worn-out"
    assert "reclaimable" in said.json["note"]


def test_audits_on_the_way(command: Cli, small: str) -> None:
    said = command("simulate", small, *UNIFORM, "--verify", "--audit", 1000, "--json", "-")
    assert (said.status, said.json["verify"]) == (0, {"enabled": True, "violations": 0})


def test_windows_of_time(command: Cli, small: str, tmp_path: Path) -> None:
    series = tmp_path / "series.parquet"
    command("simulate", small, *UNIFORM, "--window", "time=100ms", "--windows-out", series)
    ends = pyarrow.parquet.read_table(series)["time_end_ns"].to_pylist()
    assert len(ends) > 10
    assert all(later - earlier >= 100_000_000 for earlier, later in itertools.pairwise(ends[:-1]))


def test_progress_goes_to_standard_error_only(command: Cli, small: str) -> None:
    said = command(
        "simulate", small, "--workload", "uniform", "--requests", 4_000_000, "--progress", "--json", "-"
    )  # fmt: skip
    assert said.json["ended"] == "complete"


def interrupt(arguments: list[str], after_s: float) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own and press Ctrl-C."""
    process = subprocess.Popen(
        [sys.executable, "-m", "flashwright", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def test_ctrl_c_writes_what_was_finished(small: str, tmp_path: Path, command: Cli) -> None:
    saved, figures = tmp_path / "run.saved", tmp_path / "run.json"
    endless = ["simulate", small, "--workload", "uniform", "--requests", "2000000000"]
    done = interrupt([*endless, "--json", str(figures), "--checkpoint", str(saved)], 4.0)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert "note: interrupted; the figures cover what was finished" in done.stderr
    found = json.loads(figures.read_text())
    assert found["ended"] == "interrupted"
    assert 0 < found["measured"]["requests"] < 2_000_000_000
    assert "ended early" in done.stdout
    played = found["measured"]["requests"]
    rest = command("simulate", "--resume", saved, "--stop-after", played + 1000, "--json", "-")
    assert rest.json["measured"]["requests"] > played


@pytest.mark.parametrize("command_line", [["trace", "info"], ["simulate", "default", "--trace"]])
def test_ctrl_c_while_a_trace_is_opened(tmp_path: Path, command_line: list[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # opening it waits for somebody to write
    done = interrupt([*command_line, str(pipe)], 3.0)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "note: interrupted\n")


def test_ctrl_c_before_anything_is_measured(tmp_path: Path) -> None:
    run = [
        "simulate",
        "default",
        "--workload",
        "uniform",
        "--precondition",
        "random:capacities=5000",
    ]
    done = interrupt(run, 4.0)
    assert done.returncode == 130
    assert done.stderr == "note: interrupted before anything was measured\n"


def test_snapshots_are_shown_and_survive_a_saved_run(
    command: Cli, small: str, tmp_path: Path
) -> None:
    saved, report = tmp_path / "run.saved", tmp_path / "run.html"
    run = (small, "--workload", "uniform", "--requests", 20_000, "--snapshots", 8)
    alone = command("simulate", *run)
    assert alone.status == 2 and "--snapshots: found alone" in alone.err
    command("simulate", *run, "--report", report, "--stop-after", 9000, "--checkpoint", saved)
    command("simulate", "--resume", saved, "--report", report)
    rest = embedded(report.read_text(encoding="utf-8"), "plots")
    command("simulate", *run, "--report", report)
    whole = embedded(report.read_text(encoding="utf-8"), "plots")
    films = [key for key in whole["charts"] if key.startswith("film")]
    assert films == ["film-erases-0", "film-valid-0"]
    for key in films:
        assert rest["charts"][key]["views"] == whole["charts"][key]["views"]
    moments = whole["columns"]["0.erases.film.requests"]
    assert 4 <= len(moments) <= 8
    assert (moments[0], moments[-1]) == (0, 20_000)


@pytest.mark.parametrize("arguments", [("--snapshots", 1), ("--snapshots", 5, "--window", "off")])
def test_snapshots_that_make_no_sense(
    command: Cli, small: str, tmp_path: Path, arguments: tuple[object, ...]
) -> None:
    said = command(
        "simulate", small, "--workload", "uniform", *arguments, "--report", tmp_path / "r.html"
    )
    assert said.status == 2 and "snapshots: found" in said.err


def test_snapshots_are_what_the_run_ends_with(small: str) -> None:
    run = Ssd.from_toml(small).play("uniform", requests=20_000, snapshots=5)
    taken = run.snapshots
    assert taken is not None and taken.joined == 1
    assert np.array_equal(taken.erases[-1], run.erases_per_block)
    assert np.array_equal(taken.valid[-1], run.valid_per_block)
    assert taken.erases[0].sum() == 0
    assert (np.diff(taken.erases, axis=0) >= 0).all()
    assert (
        run.json["digest"] == Ssd.from_toml(small).play("uniform", requests=20_000).json["digest"]
    )
