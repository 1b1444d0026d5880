"""Advice on spare space: curves, the knee, targets that are met and that are not, several processes."""

from __future__ import annotations

import signal
from itertools import pairwise
from pathlib import Path

import pytest

from conftest import Cli
from flashwright import Ssd, advise, errors
from flashwright.advice.space import Target, knee
from flashwright.simulation.run import RunSettings
from flashwright.support.progress import Progress
from test_report import embedded

UNTIMED = (
    "--set",
    "timing.model=none",
    "--set",
    "geometry.blocks-per-plane=64",
    "--set",
    "placement.policy=single",
    "--workload",
    "uniform",
)


def drive(**settings: object) -> Ssd:
    base = {"timing.model": "none", "geometry.blocks-per-plane": 64}
    return Ssd.named("default").with_(base | settings)


def test_the_knee_of_curves_with_a_known_one() -> None:
    x = [k / 100 for k in range(101)]
    # The slope of x^n equals that of the chord where n x^(n-1) = 1.
    assert knee(x, [value**5 for value in x]) == round(100 * 0.2**0.25)
    # Scales don't matter.
    assert knee(x, [3 + 7e9 * value**5 for value in x]) == 67
    assert knee(x, [5 + value for value in x]) is None
    assert knee(x, [5.0] * 101) is None
    assert knee([0, 1], [0, 1]) is None


def test_write_amplification_follows_theory_and_the_knee_is_there() -> None:
    """FIFO on uniform writes has a closed form: 1.255, 1.876, 2.693, 5.179 at 0.5, 0.7, 0.8, 0.9."""
    shape = {
        "gc.victim": "fifo",
        "geometry.channels": 1,
        "geometry.dies-per-channel": 1,
        "geometry.blocks-per-plane": 2048,
        "geometry.pages-per-block": 32,
    }
    found = advise(
        drive(**shape),
        "uniform",
        utilizations=[0.9, 0.5, 0.7, 0.8],
        settings=RunSettings(requests=400_000),
    )
    curve = [point.value("write-amplification") for point in found.points]
    assert [point.utilization for point in found.points] == [0.5, 0.7, 0.8, 0.9]
    assert curve == pytest.approx([1.255, 1.876, 2.693, 5.179], rel=0.05)
    assert found.knee is found.points[2]
    assert (found.recommended, found.nearest) == (None, [])


def test_the_recommended_point_is_a_run_and_the_least_reservation(command: Cli) -> None:
    said = command(
        "advise", "space", "default", *UNTIMED, "--requests", 60_000, "--utilizations", "0.5,0.7,0.9",
        "--target", "write-amplification<=1.9", "--json", "-", "--jobs", 2,
    )  # fmt: skip
    assert said.status == 0
    best = said.json["recommended"]
    assert best["write_amplification"] <= 1.9 and best["settled"] == "settled"
    assert best["write_amplification_low"] <= best["write_amplification"]
    above = [p for p in said.json["points"] if p["utilization"] > best["utilization"]]
    assert above[0]["write_amplification"] > 1.9
    assert above[0]["utilization"] - best["utilization"] <= 0.005 + 1e-9
    alone = command(
        "simulate", "default", *UNTIMED, "--requests", best["requests"], "--precondition", "workload",
        "--set", f"capacity.utilization={best['utilization']}", "--json", "-",
    ).json  # fmt: skip
    assert alone["digest"] == best["digest"]


def test_a_recommendation_holds_under_another_seed_and_longer(command: Cli) -> None:
    found = advise(
        drive(), "uniform", utilizations=[0.5, 0.9], targets=["write-amplification<=2.5"], requests=60_000
    )  # fmt: skip
    best = found.recommended
    assert best is not None and best.confirmation is not None
    again = best.confirmation.result.json
    assert again["seed"] != best.result.json["seed"]
    assert again["measured"]["requests"] == 3 * best.result.json["measured"]["requests"]
    longer = (
        drive(**{"capacity.utilization": best.utilization})
        .precondition("workload")
        .play("uniform", seed=77, requests=10 * best.result.json["measured"]["requests"])
    )
    assert longer.write_amplification is not None and longer.write_amplification <= 2.5 * 1.03


def test_what_is_met_in_a_transient_is_not_met(command: Cli) -> None:
    """An empty drive that never cleans has a write amplification of one, which is nothing to go by."""
    said = command(
        "advise", "space", "default", *UNTIMED, "--requests", 20_000, "--utilizations", "0.5,0.7",
        "--precondition", "empty", "--target", "write-amplification<=1.5",
    )  # fmt: skip
    assert said.status == 1
    assert "no run had settled" in said.err and "NO: transient" in said.out


def test_points_that_may_do_but_had_not_settled_are_told(command: Cli) -> None:
    """Before wear levelling begins no point has settled, and what they keep is told as undecided."""
    said = command(
        "advise", "space", "default", *UNTIMED, "--requests", 20_000, "--utilizations", "0.5,0.93",
        "--set", "gc.victim=fifo", "--set", "wear.policy=threshold",
        "--target", "write-amplification<=90", "--json", "-",
    ).json  # fmt: skip
    verdicts = {point["utilization"]: point["settled"] for point in said["points"]}
    assert said["recommended"] is None and set(verdicts.values()) == {"transient"}
    assert said["undecided"] == [0.5, 0.93]


def test_a_measurement_that_is_too_short_is_made_longer() -> None:
    found = advise(drive(), "uniform", utilizations=[0.9], requests=1000)
    (point,) = found.points
    assert point.verdict == "settled" and point.result.json["measured"]["requests"] > 1000


def test_seeds_give_means_and_intervals() -> None:
    found = advise(drive(), "uniform", utilizations=[0.8], seeds=3, requests=20_000)
    (point,) = found.points
    each = [result.write_amplification for result in point.results]
    assert len(set(each)) == 3
    low, high = point.interval("write-amplification") or (0.0, 0.0)
    assert low < (point.value("write-amplification") or 0) < high
    assert point.value("write-amplification") == pytest.approx(sum(map(float, each)) / 3)  # type: ignore[arg-type]


def test_processes_change_nothing() -> None:
    def run(jobs: int) -> list[str]:
        found = advise(
            drive(),
            "zipf",
            utilizations=[0.6, 0.75, 0.9],
            settings=RunSettings(requests=20_000),
            jobs=jobs,
        )
        return [str(point.result.json["digest"]) for point in found.points]

    assert run(1) == run(3)


def test_targets_about_time_and_life(command: Cli, tmp_path: Path) -> None:
    report = tmp_path / "advice.html"
    said = command(
        "advise", "space", "default", "--set", "geometry.blocks-per-plane=32",
        "--set", "placement.policy=single", "--workload", "uniform:write=1,depth=8",
        "--requests", 30_000, "--utilizations", "0.5,0.7,0.85",
        "--target", "p99<=80ms", "--target", "life>=1.2y", "--target", "iops>=700", "--cycles", 3000,
        "--write-rate", "1dwpd", "--report", report, "--json", "-",
    )  # fmt: skip
    assert said.status == 0, said.err
    best, points = said.json["recommended"], said.json["points"]
    assert best["p99_ns"] <= 80e6 and best["life_years"] >= 1.2 and best["iops"] >= 700
    lives = [point["life_bytes"] for point in points]
    # Points close together differ by less than a run tells.
    assert all(after < 1.05 * before for before, after in pairwise(lives))
    assert lives[-1] < 0.3 * lives[0]
    page = report.read_text(encoding="utf-8")
    charts = embedded(page, "plots")["charts"]
    assert set(charts) == {"advise-wa", "advise-tail", "advise-iops", "advise-life"}
    parts = [line["part"] for line in charts["advise-tail"]["views"][0]["series"]]
    assert parts[:3] == ["mean", "99th percentile", "99.9th percentile"]
    assert "recommended" in parts and "p99<=80ms" in parts
    assert embedded(page, "results") == said.json


def test_life_agrees_with_the_drive_played_to_its_end(command: Cli) -> None:
    arguments = ("default", *UNTIMED, "--cycles", 100, "--precondition", "random")
    point = command(
        "advise", "space", *arguments, "--utilizations", "0.8", "--requests", 1000, "--json", "-"
    ).json["points"][0]  # fmt: skip
    full = command(
        "lifetime", "simulate", *arguments, "--set", "capacity.utilization=0.8", "--json", "-"
    ).json
    assert point["life_bytes"] == pytest.approx(full["host_bytes"], rel=0.06)


def test_what_no_reservation_meets_exits_with_one_and_says_how_near(command: Cli) -> None:
    arguments = (
        "advise",
        "space",
        "default",
        *UNTIMED,
        "--requests",
        40_000,
        "--utilizations",
        "0.6,0.8",
    )
    said = command(*arguments, "--target", "write-amplification<=1.0")
    assert said.status == 1
    faults = [line for line in said.err.splitlines() if line.startswith("error: ")]
    assert len(faults) == 1
    assert "no reservation meets write-amplification<=1.0: the best comes to 1." in faults[0]
    assert faults[0].endswith("at utilization 0.6")
    near = command(*arguments, "--target", "write-amplification<=1.0", "--json", "-").json
    assert near["recommended"] is None
    assert near["nearest"][0]["utilization"] == 0.6


@pytest.mark.parametrize(
    "target",
    ["", "p99", "p99<5ms", "p98<=5ms", "p99<=5", "p99<=-5ms", "p99>=5ms", "iops<=9", "life<=5y",
     "life>=5", "write-amplification<=x", "write-amplification<=0", "throughput>=9", "p99<=5ms;"],
)  # fmt: skip
def test_bad_targets_are_one_line(command: Cli, target: str) -> None:
    said = command("advise", "space", "default", *UNTIMED, "--target", target)
    assert said.status == 2
    faults = [line for line in said.err.splitlines() if line.startswith("error: ")]
    assert len(faults) == 1 and repr(target) in faults[0]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--utilizations", "a"), "--utilizations: found 'a'"),
        (("--utilizations", "0.5,1"), "--utilizations: found 0.5, 1.0"),
        (("--utilizations", "0.999"), "capacity"),
        (("--jobs", "0"), "--jobs: found 0"),
        (("--target", "life>=1y", "--cycles", "9"), "--write-rate: found nothing"),
        (("--target", "life>=1y", "--write-rate", "1MB/s"), "--cycles: found nothing"),
        (("--target", "p99<=1ms"), "timing.model: found none"),
        (("--closeup", "0:5"), "no such option: --closeup"),
        (("--snapshots", "5"), "no such option: --snapshots"),
    ],
)
def test_what_does_not_fit_is_refused(command: Cli, arguments: tuple[str, ...], says: str) -> None:
    said = command("advise", "space", "default", *UNTIMED, *arguments, "-q")
    assert said.status == 2 and says in said.err


def test_a_utilization_that_makes_no_drive_is_left_out(command: Cli) -> None:
    said = command(
        "advise",
        "space",
        "default",
        *UNTIMED,
        "--requests",
        2000,
        "--utilizations",
        "0.6,0.99",
        "--json",
        "-",
    )
    assert said.status == 0
    assert [point["utilization"] for point in said.json["points"]] == [0.6]
    assert "0.99" in said.json["failures"] and "utilization 0.99 left out" in said.err


def test_ctrl_c_keeps_what_was_finished() -> None:
    def stop(label: str, now: Progress) -> None:
        if label == "point 2 of 4, utilization 0.6":
            signal.raise_signal(signal.SIGINT)

    found = advise(
        drive(),
        "uniform",
        utilizations=[0.5, 0.6, 0.7, 0.8],
        settings=RunSettings(requests=8_000_000),
        progress=stop,
    )
    assert not found.finished
    assert [point.utilization for point in found.points] == [0.5]


def test_targets_met_apart_but_not_together() -> None:
    found = advise(
        drive(**{"timing.model": "parallel"}),
        "uniform:write=1,depth=8",
        utilizations=[0.5, 0.85],
        targets=["write-amplification<=1.3", "iops>=1"],
        settings=RunSettings(requests=20_000),
    )
    assert found.recommended is not None
    point = found.points[-1]
    assert Target.parse("iops>=1").allows(point.value("iops"))
    with pytest.raises(errors.ConfigError):
        Target.parse("iops<=1")
