"""The other commands, and the program as it is installed."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

import flashwright
from conftest import Cli
from flashwright.errors import VerifyError
from flashwright.simulation.run import Run
from flashwright.traces import blktrace
from flashwright.traces import record as recording


def test_compare_lays_runs_side_by_side(command: Cli, small: str, tmp_path: Path) -> None:
    rows, figures = tmp_path / "runs.parquet", tmp_path / "runs.json"
    said = command(
        "compare", small, "--workload", "uniform", "--requests", 20_000, "--precondition", "random",
        "--vary", "gc.victim=greedy,fifo", "--vary", "capacity.utilization=0.6,0.8",
        "--verify", "--out", rows, "--json", figures,
    )  # fmt: skip
    assert said.status == 0
    labels = [
        f"gc.victim={victim}, capacity.utilization={share}"
        for victim in ("greedy", "fifo")
        for share in (0.6, 0.8)
    ]
    for label in labels:
        assert label in said.out
    assert "every read and the final states are correct" in said.out
    document = json.loads(figures.read_text())
    assert [run["label"] for run in document["runs"]] == labels
    amplification = {run["label"]: run["write_amplification"] for run in document["runs"]}
    assert amplification[labels[0]] < amplification[labels[1]]
    assert amplification[labels[1]] < amplification[labels[3]]
    table = pyarrow.parquet.read_table(rows)
    assert table["label"].to_pylist() == labels
    assert table["write_amplification"].to_pylist() == list(amplification.values())


def test_a_run_in_a_comparison_is_the_run_alone(command: Cli, small: str) -> None:
    run = ("--workload", "zipf:write=0.9", "--requests", 5000, "--json", "-")
    together = command("compare", small, "--vary", "gc.victim=random,fifo", *run).json["runs"]
    alone = command(
        "simulate", small, "--set", "gc.victim=fifo", "--precondition", "workload", *run
    ).json
    assert together[1]["digest"] == alone["digest"]


def test_a_drive_that_wears_out_ends_its_own_run_only(command: Cli, small: str) -> None:
    said = command(
        "compare", small, "--workload", "uniform", "--requests", 50_000,
        "--vary", "wear.pe-cycles-max=5,0", "--precondition", "empty", "--json", "-",
    )  # fmt: skip
    assert said.status == 0
    assert [run["ended"] for run in said.json["runs"]] == ["worn-out", "complete"]
    shown = command(
        "compare", small, "--workload", "uniform", "--requests", 50_000, "--vary", "wear.pe-cycles-max=5,0",
        "--precondition", "empty",
    )  # fmt: skip
    assert "wear.pe-cycles-max=5 (worn-out)" in shown.out


def test_trace_info(command: Cli, spc: Path, tmp_path: Path) -> None:
    said = command("trace", "info", spc)
    assert said.status == 0
    assert "3,000: 1,000 reads, 2,000 writes, 0 trims, 0 flushes" in said.out
    found = command("trace", "info", spc, "--json", "-").json
    assert (found["format"], found["reads"]) == ("spc", 1000)
    assert [device["name"] for device in found["devices"]] == ["0", "1"]
    one = command("trace", "info", spc, "--device", "1", "--json", "-").json
    assert one["requests"] == 1500
    command("trace", "info", spc, "--json", tmp_path / "info.json")
    assert json.loads((tmp_path / "info.json").read_text()) == found


def test_trace_convert_and_back(command: Cli, spc: Path, tmp_path: Path, small: str) -> None:
    own, back = tmp_path / "requests.fwt", tmp_path / "back.spc"
    said = command("trace", "convert", spc, own, "--label", "made up")
    assert said.out == f"{own}: 3,000 requests, format flashwright\n"
    assert command("trace", "convert", own, back).out == f"{back}: 3,000 requests, format spc\n"
    infos = [command("trace", "info", path, "--json", "-").json for path in (spc, own, back)]
    assert infos[1]["label"] == "made up"
    for figure in ("requests", "reads", "writes", "written_bytes", "span_ns", "pages"):
        assert infos[0][figure] == infos[1][figure] == infos[2][figure]
    played = [
        command("simulate", small, "--trace", path, "--json", "-").json for path in (spc, own)
    ]
    assert played[0]["digest"] == played[1]["digest"]


def test_policies_lists_everything(command: Cli) -> None:
    shown = command("policies")
    assert shown.status == 0
    for words in ("gc.victim", "greedy", "fifo", "stand-in", "spc", "random", "bundled:pgbench"):
        assert words in shown.out
    found = command("policies", "--json", "-").json
    assert {item["name"] for item in found["timing.model"]} == {"none", "serial", "parallel"}
    assert (
        "accesses" in next(item for item in found["--workload"] if item["name"] == "zipf")["keys"]
    )


def test_every_listed_choice_can_be_made(command: Cli, small: str) -> None:
    found = command("policies", "--json", "-").json
    needs: dict[str, dict[str, object]] = {
        "wear.policy": {"wear.pe-cycles-max": 1000},
        "ram.manager": {"ram.size": "1 MiB"},
        "host.scheduler": {
            "host.profile.clustered-page": "16 KiB",
            "host.profile.read-buffer": "none",
            "host.profile.write-buffer": "64 KiB",
        },
    }
    for key, items in found.items():
        if "." in key and key != "ftl.scheme":
            for item in items:
                # Room for the windows and frontiers that policies have by default.
                roomy = (
                    {"geometry.blocks-per-plane": 256} | needs.get(key, {}) | {key: item["name"]}
                )
                ssd = flashwright.Ssd.from_toml(small).with_(roomy)
                assert ssd.play("uniform", requests=100).json["ended"] == "complete"
    for item in found["--precondition"]:
        run = ("simulate", small, "--workload", "uniform", "--requests", 100, "--quiet")
        assert command(*run, "--precondition", item["name"]).status == 0


def test_devices(command: Cli, tmp_path: Path, small: str) -> None:
    shown = command("devices")
    for name in flashwright.devices():
        assert name in shown.out
        toml = command("devices", name).out
        path = tmp_path / f"{name}.toml"
        path.write_text(toml)
        assert flashwright.Ssd.from_toml(path) == flashwright.Ssd.named(name)
    changed = tomllib.loads(command("devices", small, "--set", "gc.victim=fifo").out)
    assert changed["gc"]["victim"] == "fifo"


def test_version_and_help(command: Cli) -> None:
    assert command("--version").out == f"flashwright {flashwright.__version__}\n"
    assert "simulate" in command("--help").out
    assert command().out == command("--help").out
    for name in ("simulate", "compare", "characterize", "policies", "devices", "trace"):
        assert command(name, "--help").status == 0


def test_the_program_as_it_is_installed(small: str) -> None:
    program = Path(sys.executable).with_name("flashwright")
    run = [
        str(program),
        "simulate",
        small,
        "--workload",
        "uniform",
        "--requests",
        "1000",
        "--json",
        "-",
    ]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["ended"] == "complete"
    pipe = subprocess.run(
        f"{program} devices | head -1", shell=True, capture_output=True, text=True, check=True
    )
    assert "Traceback" not in pipe.stderr
    assert "Exception" not in pipe.stderr


def test_what_was_recorded_becomes_a_trace(
    command: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, object] = {}

    def made_up(device: str, output: Path, **options: object) -> recording.RecordSummary:
        asked.update(options, device=device)
        # Two writes of 4 KiB as the kernel's tracer notes them.
        steps = np.zeros(2, blktrace.HEADER)
        steps["magic"] = blktrace.MAGIC | blktrace.VERSION
        steps["action"] = blktrace._STEP_QUEUE | blktrace._CLASS_WRITE
        steps["time_ns"], steps["sector"], steps["bytes"] = (0, 5000), (0, 8), 4096
        output.write_bytes(steps.tobytes())
        return recording.RecordSummary(
            device=Path(device), output=output, requests=2, reads=0, writes=2, trims=0, flushes=0,
            writes_fua=0, writes_preflush=0, bytes_read=0, bytes_written=8192, bytes_trimmed=0,
            span_ns=5000, device_bytes=1 << 20, processes={}, events_lost=3, events_late=0,
            bytes_skipped=0, stopped="command", command_status=1,
        )  # fmt: skip

    monkeypatch.setattr(recording, "record", made_up)
    out = tmp_path / "out.fwt"
    said = command(
        "trace", "record", "/dev/loop9", "-o", out, "--time-limit", 5, "--", "sh", "-c", "true"
    )
    assert said.status == 0
    assert (asked["device"], asked["seconds"], asked["command"]) == (
        "/dev/loop9",
        5.0,
        ["sh", "-c", "true"],
    )
    assert said.out.startswith(f"{out}: 2 requests in 0.0 s: 0 reads, 2 writes")
    assert said.err == (
        "note: 3 events were lost: the trace has holes\nnote: the command ended with status 1\n"
    )
    found = command("trace", "info", out, "--json", "-").json
    assert (found["requests"], found["written_bytes"]) == (2, 8192)
    assert found["label"] == "recorded: sh -c true"
    assert [path.name for path in tmp_path.iterdir()] == ["out.fwt"]


def test_a_drive_that_cannot_be_preconditioned_leaves_the_others_their_runs(
    command: Cli, small: str
) -> None:
    said = command(
        "compare", small, "--workload", "uniform", "--requests", 1000, "--precondition", "random:capacities=9",
        "--vary", "wear.pe-cycles-max=2,0", "--json", "-",
    )  # fmt: skip
    assert said.status == 2
    assert [run["label"] for run in said.json["runs"]] == ["wear.pe-cycles-max=0"]
    assert list(said.json["failures"]) == ["wear.pe-cycles-max=2"]
    assert said.err.startswith(
        "error: wear.pe-cycles-max=2: precondition: the drive cannot take this write: "
    )


def test_reports(command: Cli, small: str, tmp_path: Path) -> None:
    run = ("--workload", "uniform", "--requests", 5000, "--quiet", "--report")
    assert command("simulate", small, *run, tmp_path / "one.html").status == 0
    assert (
        command(
            "compare", small, "--vary", "gc.victim=greedy,fifo", *run, tmp_path / "two.html"
        ).status
        == 0
    )
    assert "gc.victim=fifo" in (tmp_path / "two.html").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "one.html",
        "small.toml",
        "two.html",
    ]


def test_a_violation_is_exit_status_1(
    command: Cli, small: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = Run._loop

    def faulty(run: Run, *arguments: object) -> bool:
        whole(run, *arguments)  # type: ignore[arg-type]
        raise VerifyError("verify violation: page 7 holds write 3, expected write 9")

    monkeypatch.setattr(Run, "_loop", faulty)
    options = ("--workload", "uniform", "--requests", 1000, "--verify")
    said = command("simulate", small, *options, "--json", tmp_path / "run.json")
    assert said.status == 1
    assert "1 VIOLATIONS" in said.out
    assert "page 7 holds write 3" in said.err
    found = json.loads((tmp_path / "run.json").read_text())
    assert found["verify"] == {"enabled": True, "violations": 1}
    assert command("compare", small, *options, "--vary", "gc.victim=fifo").status == 1


def test_words_in_brackets_are_shown_as_they_are(command: Cli, spc: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.fwt"
    command("trace", "convert", spc, out, "--label", "[bold]made[/] up :smile:")
    assert "[bold]made[/] up :smile:" in command("trace", "info", out).out


def test_only_plain_files_are_replaced(command: Cli, tmp_path: Path, small: str) -> None:
    run = ("simulate", small, "--workload", "uniform", "--requests", 10, "--quiet", "--json")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert command(*run, pipe).status == 0
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        assert json.loads(os.read(reader, 1 << 16))["measured"]["requests"] == 10
    finally:
        os.close(reader)
    assert command(*run, os.devnull).status == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    assert command(*run, link).status == 0
    assert link.is_symlink()
    assert json.loads(target.read_text())["ended"] == "complete"
    assert sorted(file.name for file in tmp_path.iterdir() if file.name.startswith(".")) == []
