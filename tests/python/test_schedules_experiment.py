"""experiments/schedules: the quick form runs, and finds what the page on cleaning says."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from flashwright.drive.catalogue import catalogue

RUN = Path(__file__).parents[2] / "experiments" / "schedules" / "run.py"
ALL = [each.name for each in catalogue()["gc.schedule"]]


@pytest.fixture(scope="module")
def experiment() -> dict[str, Any]:
    return runpy.run_path(str(RUN))


@pytest.fixture(scope="module")
def found(experiment: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("schedules") / "found.json"
    assert experiment["main"](["--quick", "--json", str(path)]) == 0
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def rows(found: dict[str, Any], drive: str) -> dict[str, dict[str, Any]]:
    """The rows of the only load and seed."""
    (load,) = found["drives"][drive]["loads"]
    assert [each["schedule"] for each in load["rows"]] == ALL
    return {each["schedule"]: each for each in load["rows"]}


def test_steps_shorten_what_writes_wait_for(found: dict[str, Any]) -> None:
    planes = rows(found, "planes")
    whole_victims = planes["foreground"]["write p99"]
    for name in ("background", "preemptive", "throttled"):
        assert planes[name]["write p99"] < whole_victims / 10
    # The copies that it makes at once lie in the block that takes the next write.
    assert whole_victims / 10 < planes["rate-limited"]["write p99"] < whole_victims
    apart = {(each["placement.policy"], each["schedule"]): each for each in found["placement"]}
    assert apart["gc-separate", "rate-limited"]["write p99"] < whole_victims / 10


def test_work_is_conserved(found: dict[str, Any]) -> None:
    (load,) = found["drives"]["planes"]["loads"]
    assert 0 < load["programs_differ_by"] < 0.01
    assert all(each["verdict"] == "settled" for each in load["rows"])


def test_single_steps_read_a_page_once_for_each_of_its_pieces(found: dict[str, Any]) -> None:
    wide = rows(found, "superblocks")
    reads = {name: wide[name]["pages_read_from_arrays"] for name in ALL}
    assert reads["rate-limited"] > 1.5 * reads["preemptive"]


def test_suspension_shortens_reads(found: dict[str, Any]) -> None:
    either = {(each["chips.suspends"], each["schedule"]): each for each in found["suspension"]}
    with_, without = (either[value, "foreground"] for value in ("programs-and-erases", "nothing"))
    assert with_["read p99"] < without["read p99"] / 3
    assert without["programs_suspended"] == 0 < with_["programs_suspended"]


def test_seeds_that_differ_are_marked(experiment: dict[str, Any]) -> None:
    middle = experiment["middle"]
    assert middle([{"t": 1e6}, {"t": 1.04e6}, {"t": 1.09e6}], "t") == "1.04 ms"
    assert middle([{"t": 1e6}, {"t": 1.04e6}, {"t": 1.2e6}], "t") == "~1.04 ms"
    assert middle([{"t": 0}, {"t": 0}, {"t": 0}], "t") == "0"
    assert middle([{"t": 0}, {"t": 0}, {"t": 5e3}], "t") == "~0"


def test_a_run_that_falls_behind_shows_no_times(experiment: dict[str, Any]) -> None:
    figures = dict.fromkeys(experiment["FIGURES"], 1e6)
    row = {"programs_per_host_page": 2.0, "falls_behind": True, **figures}
    assert "falls behind" in experiment["lines"]("x", [row]) and "ms" not in experiment["lines"](
        "x", [row]
    )
    assert "1.00 ms" in experiment["lines"]("x", [{**row, "falls_behind": False}])


def test_a_number_of_seeds_below_one_is_refused(
    experiment: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        experiment["main"](["--seeds", "0"])
    assert left.value.code == 2
    assert "--seeds: found 0, expected 1 or more" in capsys.readouterr().err
