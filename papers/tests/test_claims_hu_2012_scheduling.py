"""The claims of chapter 5 of Hu's dissertation: their judges on rows made by hand, and a run of each kind."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from judging import verdict_of

from flashwright_papers import Setting, Verdict, papers

PAPER = papers()["hu-2012"]
judges: Any = sys.modules["flashwright_experiments.hu_2012.scheduling_judges"]
runs: Any = sys.modules["flashwright_experiments.hu_2012.scheduling_runs"]
GOOD, DIRECTION, NOT = Verdict.REPRODUCED, Verdict.DIRECTION, Verdict.NOT
CHAPTER = {f"D5.{number}" for number in range(1, 11)}
PARTS = ("schedulers", "mixing", "zones", "zone-reasons")


def verdict(name: str, rows: Mapping[str, Any]) -> Verdict:
    return verdict_of(PAPER, name, rows)


def test_every_claim_is_there() -> None:
    found = {each.id: each for each in PAPER.claims if each.id in CHAPTER}
    assert found.keys() == CHAPTER
    assert {each.id for each in found.values() if each.verdict} == {"D5.4"}
    assert all(each.why for each in found.values())


@pytest.mark.parametrize("quick", [True, False])
def test_every_run_can_be_asked_for(quick: bool, tmp_path: Path) -> None:
    for name in PARTS:
        assert PAPER.parts[name].jobs(Setting(quick))
    without = len(PAPER.parts["zones"].jobs(Setting(quick)))
    for file, *_ in runs.HEADS.values():
        (tmp_path / file).touch()
    jobs = PAPER.parts["zones"].jobs(Setting(quick, tmp_path))
    assert len(jobs) > without
    # Traces are arguments by their path, so that a run is known by what is in them.
    assert {str(job.arguments["trace"]).startswith(str(tmp_path)) for job in jobs} == {True, False}


def test_a_search_tries_a_scheduler_without_its_barrier_on_short_runs() -> None:
    taken = PAPER.parts["zones"].jobs(Setting(divisor=8))
    assert [job.arguments for job in taken] == [
        job.arguments for job in PAPER.parts["zones"].jobs(Setting(quick=True))
    ]
    given = Setting(given={"barrier": "off"}, divisor=8)
    for job, without in zip(taken, PAPER.parts["zones"].jobs(given), strict=True):
        assert without.arguments == dict(job.arguments) | {"barrier": False}


def bandwidths(last: float) -> dict[str, Any]:
    cell = {"drive": "fusion-iodrive", "pattern": "uniform", "kind": "read", "size_kib": 4}
    values = dict.fromkeys(runs.CLASSIC, 100.0)
    return {"schedulers": [cell | {"mb_per_s": values | {"cfq": last}}]}


def test_schedulers_may_differ_by_a_twentieth() -> None:
    assert verdict("D5.1", bandwidths(96.0)) is GOOD
    assert verdict("D5.1", bandwidths(90.0)) is NOT
    rows = {"schedulers": 9 * bandwidths(96.0)["schedulers"] + bandwidths(90.0)["schedulers"]}
    assert verdict("D5.1", rows) is DIRECTION


VALLEY = [100.0, 85, 72, 60, 48, 40, 47, 58, 70, 80, 90]


def mixed(curve: list[float], without: list[float]) -> dict[str, Any]:
    return {
        "mixing": [
            {"drive": "intel-320", "turnaround": True, "mb_per_s": curve},
            {"drive": "intel-320", "turnaround": False, "mb_per_s": without},
        ]
    }


def test_mixing_costs_most_at_half() -> None:
    flat = [100.0 - share for share in range(11)]
    assert verdict("D5.2", mixed(VALLEY, flat)) is GOOD
    assert verdict("D5.2", mixed([*VALLEY[:9], 120.0, 90.0], flat)) is DIRECTION
    assert verdict("D5.2", mixed(flat, flat)) is NOT
    # What was put in is no evidence.
    assert verdict("D5.3", mixed(VALLEY, VALLEY)) is GOOD
    assert verdict("D5.3", mixed(VALLEY, flat)) is GOOD
    assert verdict("D5.3", mixed(flat, flat)) is NOT


def test_the_least_is_where_a_parabola_has_it() -> None:
    assert judges.lowest([(share - 4.4) ** 2 for share in range(11)]) == pytest.approx(0.44)
    assert judges.lowest([float(share) for share in range(11)]) == 0


def bar(scheduler: str, zones: int, per_zone: str, speed: float, size: float) -> dict[str, Any]:
    return {
        "scheduler": scheduler,
        "zones": zones,
        "per_zone": per_zone,
        "mb_per_s": 100 * speed,
        "response_ms": 1 / speed,
        "size_kib": 8 * size,
        "front_merges": 1,
        "back_merges": 99,
    }


def played(
    name: str, speed: float = 1, size: float = 1, one: float | None = None, step: float = 0
) -> dict[str, Any]:
    """A workload whose bandwidth grows by a step with each number of zones, all of each or `one` of each."""
    return {
        "workload": name,
        "real": name.endswith("head"),
        "outstanding": 64,
        "bars": [
            *(bar(scheduler, 0, "", 1, 1) for scheduler in ("none", "noop", "deadline")),
            *(
                bar("ssd-friendly", zones, way, base + step * at, size)
                for way, base in (("one", one or speed), ("all", speed))
                for at, zones in enumerate(runs.ZONES)
            ),
        ],
    }


def zones(*changed: dict[str, Any]) -> dict[str, Any]:
    """All workloads as the dissertation has them, but for those that are given."""
    by_workload = {
        "financial1 head": played("financial1 head", 1.2, 1.54),
        "financial1": played("financial1", 1.1),
        "financial2": played("financial2", 1.3, 1.25),
        **{name: played(name) for name in ("exchange", "msn", "build", "msn head")},
    } | {each["workload"]: each for each in changed}
    reasons = [
        {"workload": name, "outstanding": 64, "changes": {"as it is": {"noop": 1, "ssd-friendly": 2}}}
        for name in ("financial1", "financial1 head", "financial2")
    ]  # fmt: skip
    return {
        "zones": [each for each in by_workload.values() if each["bars"]],
        "zone-reasons": reasons,
    }


def without(name: str) -> dict[str, Any]:
    return {"workload": name, "bars": []}


def test_gains_need_a_real_trace_to_be_reproduced() -> None:
    assert verdict("D5.5", zones()) is GOOD
    assert verdict("D5.5", zones(played("financial1 head", 1.2, 1.1))) is DIRECTION
    assert verdict("D5.5", zones(played("financial1 head", 0.99, 1.54))) is NOT
    assert verdict("D5.5", zones(without("financial1 head"))) is DIRECTION
    assert verdict("D5.6", zones()) is DIRECTION
    assert verdict("D5.6", zones(played("financial2", 0.9))) is NOT


def test_zones_matter_little_in_both_readings_or_in_one() -> None:
    assert verdict("D5.7", zones()) is GOOD
    apart = played("financial2", 1.0)
    for number, each in enumerate(apart["bars"]):
        each["mb_per_s"] += number * 20 * (each["per_zone"] == "one")
    assert verdict("D5.7", zones(apart)) is DIRECTION
    assert verdict("D5.7", zones(played("financial2", 1, step=0.1))) is NOT


def test_no_gain_is_no_loss_either() -> None:
    assert verdict("D5.8", zones()) is GOOD
    assert verdict("D5.8", zones(played("build", 0.8))) is DIRECTION
    assert verdict("D5.8", zones(played("build", 1.2))) is NOT
    assert verdict("D5.8", zones(played("msn head", 1, 1.2))) is NOT


def test_gains_follow_sizes_or_do_not() -> None:
    sizes = {name: 1 + number / 10 for number, name in enumerate(("exchange", "msn", "build"))}
    follow = zones(*(played(name, 2 * size, size) for name, size in sizes.items()))
    follow["zones"] = [row for row in follow["zones"] if row["workload"] in sizes]
    assert verdict("D5.9", follow) is GOOD
    against = zones(*(played(name, 2 - size, size) for name, size in sizes.items()))
    against["zones"] = [row for row in against["zones"] if row["workload"] in sizes]
    assert verdict("D5.9", against) is NOT


def test_front_merges_of_stand_ins_tell_nothing() -> None:
    rows = zones()
    assert verdict("D5.10", rows) is GOOD
    real = [row for row in rows["zones"] if row["real"]]
    for each in real[0]["bars"]:
        each["front_merges"] = 20
    assert verdict("D5.10", rows) is DIRECTION
    for each in real[0]["bars"]:
        each["front_merges"] = 200
    assert verdict("D5.10", rows) is NOT
    rows["zones"] = [row for row in rows["zones"] if not row["real"]]
    assert verdict("D5.10", rows) is Verdict.UNTESTABLE


def test_a_workload_is_played() -> None:
    bars = [
        runs.bar("stand-in:financial1", 10, 300, 64, settings)
        for settings in ({"host.scheduler": "none"}, runs.friendly(8, "all", "4 GiB"))
    ]
    assert bars[0]["back_merges"] == 0
    assert bars[0]["mb_per_s"] > bars[1]["mb_per_s"] > 0


def test_mixing_is_played() -> None:
    row = runs.mixing("intel-320", True, 2000, 2)
    reads, half, writes = row["mb_per_s"]
    assert half < 0.6 * max(reads, writes)
