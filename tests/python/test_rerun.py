"""Results say what made them, and come out the same when they are played again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from conftest import Cli
from flashwright import Ssd, errors, policies, workloads
from flashwright.drive.description import devices
from flashwright.simulation.rerun import rerun
from flashwright.support.core import _core


@pytest.mark.parametrize("drive", sorted(devices()))
def test_every_drive_comes_out_the_same(drive: str) -> None:
    ssd = Ssd.named(drive)
    load = "zones" if ssd.config["ftl"]["scheme"] == "zoned" else "zipf:write=0.7"
    before = ssd.play(load, requests=300, depth=4, seed=5)
    # As it comes out of a file.
    [again] = rerun(json.loads(before.json_text()))
    assert again.agrees and again.same_code, drive
    assert again.result.json["config"] == before.json["config"]


@pytest.mark.parametrize(
    "options",
    [
        ["--workload", "uniform:rate=50", "--time-scale", "0.5", "--warmup", 50],
        ["--precondition", "workload", "--workload", "uniform:write=0.5", "--verify"],
        ["--trace", "bundled:sqlite", "--addresses", "dense", "--repeat", 2, "--depth", 3],
        ["--trace", "bundled:sqlite", "--addresses", "wrap", "--window", "off"],
        [
            "--workload",
            "zipf",
            "--set",
            "ftl.scheme=fast",
            "--set",
            "ram.size=64 KiB",
            "--set",
            "ram.manager=lru",
        ],
    ],
)
def test_every_kind_of_run(options: list[object], command: Cli, small: str, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    made_it = command("simulate", small, *options, "--requests", 400, "--seed", 3, "--json", path)
    assert made_it.status == 0, made_it.err
    found = command("rerun", path, "--json", "-")
    assert found.status == 0
    assert [run["agrees"] for run in found.json["runs"]] == [True]
    made = json.loads(path.read_text())["run"]["made"]
    assert made["source_digest"] == _core.source_digest and made["options"]["seed"] == 3
    assert (made["trace_sha256"] is None) == ("--trace" not in options)


def test_comparisons_and_a_digest_that_differs(command: Cli, small: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    vary = ["--vary", "gc.victim=greedy,fifo", "--vary", "depth=1,4", "--requests", 300]
    command("compare", small, "--workload", "uniform", *vary, "--json", path)
    assert command("rerun", path).status == 0
    runs = json.loads(path.read_text())
    runs["runs"][2]["digest"] = "0" * 16
    runs["runs"][2]["run"]["made"]["source_digest"] = "1" * 32
    path.write_text(json.dumps(runs))
    said = command("rerun", path)
    assert said.status == 1
    assert [line.rsplit(" ", 1)[1] for line in said.out.splitlines() if "gc.victim" in line] == [
        "yes", "yes", "NO", "yes",
    ]  # fmt: skip
    assert "another version of the simulator made the result" in said.err


def test_a_trace_that_moved(command: Cli, small: str, tmp_path: Path) -> None:
    first, then, path = tmp_path / "a.fwt", tmp_path / "b.fwt", tmp_path / "result.json"
    shutil.copy(workloads.bundled("sqlite").path, first)
    command(
        "simulate",
        small,
        "--trace",
        first,
        "--addresses",
        "wrap",
        "--requests",
        200,
        "--json",
        path,
    )
    first.rename(then)
    gone = command("rerun", path)
    assert gone.status == 2 and f"error: {first}: no such file or directory" in gone.err
    assert "hint: say where it lies now" in gone.err
    assert command("rerun", path, "--trace", then).status == 0
    other = command("rerun", path, "--trace", path)
    assert other.status == 2 and "found another content" in other.err


class First(policies.VictimPolicy):
    """The first block there is."""

    def pick(self, unit: policies.Unit) -> int:
        """Pick it."""
        return int(unit.blocks[0])


def test_what_can_not_be_played_again(small: str) -> None:
    ssd = Ssd.from_toml(small)
    ours = ssd.play("uniform", requests=50, policies=[First])
    with pytest.raises(errors.SavedStateError, match="found python:First, expected policies"):
        rerun(ours.json)
    run = ssd.play("uniform", requests=50).json
    with pytest.raises(errors.SavedStateError, match="interrupted"):
        rerun({**run, "ended": "interrupted"})
    with pytest.raises(errors.SavedStateError, match="expected a simulated run"):
        rerun({**run, "run": {**run["run"], "made": None}})
    with pytest.raises(errors.SavedStateError, match="nothing that says what made it"):
        rerun({"version": "0"})
    with pytest.raises(errors.SavedStateError, match="expected a list of runs"):
        rerun({"runs": []})


@pytest.mark.parametrize(("text", "said"), [("[]", "found list"), ("{", "found no JSON")])
def test_files_that_are_no_results(text: str, said: str, command: Cli, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(text)
    found = command("rerun", path)
    assert found.status == 2 and found.err.startswith(f"error: {path}: {said}")
