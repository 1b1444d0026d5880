"""Results say what made them, and come out the same when they are played again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from conftest import Cli
from flashwright import Ssd, errors, workloads
from flashwright.drive.description import devices
from flashwright.drive.policies import load
from flashwright.simulation.rerun import rerun
from flashwright.support.core import _core

LAYERS = Path(__file__).parents[2] / "examples" / "layers.py"


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


MINE = """
from flashwright import policies

class Near(policies.VictimPolicy):
    def __init__(self, slack=0):
        self.slack = slack

    def pick(self, unit):
        near = unit.valid <= unit.valid.min() + self.slack
        freed = near & (unit.valid < unit.pages_per_block)
        return int(unit.blocks[freed if freed.any() else near][-1])

class Dead(policies.VictimPolicy):
    def pick(self, unit):
        return int(unit.blocks[unit.valid.argmin()])
"""


def test_policies_of_ones_own_are_given_again(command: Cli, small: str, tmp_path: Path) -> None:
    mine, path = tmp_path / "mine.py", tmp_path / "runs.json"
    mine.write_text(MINE)
    victims = ["greedy", f"{mine}:Near(slack=1)", f"{mine}:Near(slack=2)", f"{mine}:Dead"]
    vary = ["--vary", f"gc.victim={','.join(victims)}", "--set", "gc.free-blocks-min=4"]
    played = command(
        "compare", small, "--workload", "uniform:write=1", *vary, "--requests", 3000, "--json", path
    )
    assert played.status == 0, played.err
    given = [word for each in victims[1:] for word in ("--policy", each)]
    found = command("rerun", path, *given, "--json", "-")
    assert found.status == 0, found.err
    assert [run["agrees"] for run in found.json["runs"]] == [True] * 4
    assert len({run["digest_now"] for run in found.json["runs"]}) == 4
    refused = {
        "found no such policy, expected the class Dead of mine.py": given[:4],
        "python:Near: found one with the settings {'slack': 3}, expected the class Near of mine.py with {'slack': 1}": [
            "--policy", f"{mine}:Near(slack=3)",
        ],
        "found no such policy, expected the class Near of mine.py": [],
    }  # fmt: skip
    for said, policies in refused.items():
        ends = command("rerun", path, *policies)
        assert ends.status == 2 and said in ends.err, ends.err
    mine.write_text(MINE + "\n")
    assert "python:Near: found one of another mine.py" in command("rerun", path, *given).err


def test_a_layer_of_ones_own_is_given_again(small: str) -> None:
    """A layer replaces a scheme whose settings stay those of the drive."""
    ssd = Ssd.from_toml(small).with_({"ftl.scheme": "dftl"})
    page_map = load(f"{LAYERS}:PageMap")
    ours = ssd.play("uniform", requests=50, policies=[page_map])
    [used] = ours.json["policies"]
    assert used["replaced"] == "dftl" and ours.json["config"]["ftl"]["scheme"] == used["name"]
    [again] = rerun(ours.json, policies=[page_map])
    assert again.agrees and again.result.json["config"] == ours.json["config"]
    with pytest.raises(errors.PolicyError, match="found no such policy"):
        rerun(ours.json)


def test_what_can_not_be_played_again(small: str) -> None:
    ssd = Ssd.from_toml(small)
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
