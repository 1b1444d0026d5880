"""The loop from the command line: a drive is probed blind, saved with its twin, checked, played and advised on."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from flashwright.cli import run as command
from flashwright.probing.probes import PROBES
from flashwright.probing.session import probe
from flashwright.simulation.ssd import Ssd
from flashwright.target.target import Target
from flashwright.twin.profile import Profile

RECOVERY = Path(__file__).parents[2] / "experiments" / "truth-recovery"

# Small, so that it is probed in seconds: a page of 12 KiB on two units, a buffer on each side.
DRIVE = """
base = "default"
name = "small"
[geometry]
channels = 2
dies-per-channel = 1
pages-per-block = 64
blocks-per-plane = 400
page-size = "12 KiB"
[capacity]
utilization = 0.85
[timing]
model = "parallel"
[placement]
policy = "single"
allocation = "dynamic"
[host]
partial-pages = "read-modify-write"
[controller]
interface-rate = "400 MB/s"
read-overhead = "8 us"
write-overhead = "10 us"
noise = 0.02
[controller.write-buffer]
size = "300 KiB"
[controller.read-buffer]
size = "200 KiB"
"""


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("drive") / "small.toml"
    path.write_text(DRIVE)
    return path


@pytest.fixture(scope="module")
def saved(drive: Path) -> tuple[Path, dict[str, Any], str]:
    """The profile, the JSON and the page of a probing with its twin and a check."""
    profile, figures, page = (drive.parent / name for name in ("p.toml", "p.json", "p.html"))
    files = ["--save", str(profile), "--json", str(figures), "--report", str(page)]
    status = command(
        ["probe", f"sim:{drive}", "--quick", "--check", "--quiet", "--fit-limit", "15", *files]
    )
    document = json.loads(figures.read_text())
    assert status == (0 if document["check"]["within"] else 1)
    return profile, document, page.read_text(encoding="utf-8")


def test_what_was_built_in_is_found(saved: tuple[Path, dict[str, Any], str]) -> None:
    found = {f["parameter"]: (f["verdict"], f["value"]) for f in saved[1]["findings"]}
    assert found["clustered-page"] == ("found", 12 << 10)
    assert found["clustered-block"] == ("found", 2 * 64 * (12 << 10))
    assert found["read-buffer"] == ("found", 200 << 10)
    assert found["write-buffer"] == ("found", 300 << 10)
    assert found["buffer-kind"] == ("found", "buffer")
    assert found["write-buffer-drain"] == ("found", "lazy")
    assert found["prefetch"] == ("found", "no")
    assert found["mapping"] == ("found", "page")
    assert found["parallel-units"] == ("found", 2)
    findings = [f for f in saved[1]["findings"] if f["verdict"] == "found"]
    assert all(f["why"] and 0 < f["confidence"] <= 1 for f in findings)


def test_the_twin_is_near_on_the_pattern_that_was_held_back(
    saved: tuple[Path, dict[str, Any], str],
) -> None:
    ratio = saved[1]["check"]["all"]["ratio"]
    assert ratio["mean"] == pytest.approx(1, abs=0.1)
    assert ratio["p99"] == pytest.approx(1, abs=0.25)


def test_the_page_has_a_section_for_each_finding_with_evidence_and_for_the_twin(
    saved: tuple[Path, dict[str, Any], str],
) -> None:
    page = saved[2]
    for finding in saved[1]["findings"]:
        assert finding["parameter"] in page
    assert "The held-out pattern" in page
    assert len(page) < 2_000_000


def test_other_commands_take_the_profile(
    saved: tuple[Path, dict[str, Any], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = saved[0]
    assert Profile.from_toml(profile).host_profile()["clustered-page"] == "12 KiB"
    run = [str(profile), "--workload", "uniform:write=0.5", "--requests", "2000", "--quiet"]
    assert command(["simulate", *run, "--verify", "--json", str(tmp_path / "run.json")]) == 0
    config = json.loads((tmp_path / "run.json").read_text())["config"]
    assert config["host"]["profile"]["write-buffer"] == "300 KiB"
    files = tmp_path / "tuned"
    named = ["--block-device", "/dev/sdz", "--write-to", str(files), "--quiet"]
    assert command(["advise", "host", str(profile), *named]) == 0
    assert (files / "apply.sh").exists()
    capsys.readouterr()


def test_a_profile_is_checked_against_the_drive_and_against_another(
    saved: tuple[Path, dict[str, Any], str], drive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["probe", f"sim:{drive}", "--against", str(saved[0])]
    assert command(arguments) == (0 if saved[1]["check"]["within"] else 1)
    assert "check: within" in capsys.readouterr().out
    slower = ["--set", "timing.program=3 ms", "--set", "timing.read=300 us"]
    assert command([*arguments, *slower]) == 1
    assert "check: beyond" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--check", "--no-twin"], "--check: found with --no-twin"),
        (["--against", "x.toml", "--quick"], "--against: found with options for probing"),
        (["--against", "/nowhere.toml"], "/nowhere.toml: no such file"),
        (["--save", "/nowhere/at/all.toml"], "can't be written"),
    ],
)
def test_bad_input(
    drive: Path, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["probe", f"sim:{drive}", *arguments]) == 2
    assert says in capsys.readouterr().err


def test_times_that_only_noise_explains_give_no_verdict(drive: Path) -> None:
    noisy = Ssd.from_toml(drive).with_({"controller.noise": 1.0})
    with Target(noisy) as target:
        found = probe(target, mode="quick", only=["clustered-page", "write-buffer"]).findings
    right = {"clustered-page": 12 << 10, "write-buffer": 300 << 10}
    assert all(f.verdict != "found" or f.value == right[n] for n, f in found.items())


def test_a_file_is_no_drive(tmp_path: Path) -> None:
    file = tmp_path / "disk.img"
    file.write_bytes(bytes(64 << 20))
    with Target(file, destroys_data=True) as target:
        only = ["plausible", "read-buffer"]
        result = probe(target, mode="quick", only=only)
        despite = probe(target, mode="quick", only=only, despite_doubts=True)
    assert "It is a file" in result.doubts[0] and result.doubts == despite.doubts
    assert {f.verdict for f in result.findings.values()} == {"unknown"}


@pytest.mark.parametrize(
    "seeds",
    [(6001,), pytest.param((6000, 6001, 6003), marks=pytest.mark.long)],
    ids=["one", "three"],
)
def test_drawn_drives_are_told_right(seeds: tuple[int, ...]) -> None:
    """Some of those that the experiment draws; none of them was tuned on."""
    sys.path.insert(0, str(RECOVERY))
    try:
        from run import ask
    finally:
        sys.path.remove(str(RECOVERY))
    verdicts = [
        row["verdict"]
        for seed in seeds
        for row in ask(seed, "quick", drive_time_s=28800.0)["rows"].values()
    ]
    assert verdicts.count("wrong") == 0
    assert verdicts.count("right") >= 0.8 * len(verdicts)


def test_every_probe_says_what_it_is() -> None:
    names = [probe.NAME for probe in PROBES]
    parameters = [parameter for probe in PROBES for parameter in probe.PARAMETERS]
    assert len(set(names)) == len(names) and len(set(parameters)) == len(parameters)
    for asking in PROBES:
        assert re.fullmatch(r"[a-z-]+", asking.NAME) and len(asking.ABOUT) > 20
