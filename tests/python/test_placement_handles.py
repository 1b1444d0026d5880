"""Handles of flexible data placement, as users see them."""

from __future__ import annotations

from typing import Any

import pytest

from conftest import Cli
from flashwright import Ssd

SMALL = {"geometry.blocks-per-plane": 128, "capacity.utilization": 0.75, "placement.policy": "fdp"}
BY_GROUP = ("pages_written", "pages_programmed", "pages_moved", "erases")


def played(load: str, settings: dict[str, object] | None = None) -> Any:
    ssd = Ssd.named("default").with_({**SMALL, **(settings or {})}).precondition("sequential")
    return ssd.play(load, requests=120_000, seed=3)


def test_counts_of_handles_are_those_of_the_flash() -> None:
    run = played("hot-cold:hot-access=0.9,streams=class")
    handles, programs = run.json["handles"], run.json["flash"]["programs"]
    assert [handle["handle"] for handle in handles] == list(range(8))
    assert sum(handle["pages_written"] for handle in handles) == programs["host"]
    assert sum(handle["pages_moved"] for handle in handles) == programs["gc"] > 0
    for handle in handles:
        assert sum(handle["pages_moved_for"]) == handle["pages_moved"]
    cold, hot = handles[1], handles[2]
    assert hot["pages_written"] == pytest.approx(9 * cold["pages_written"], rel=0.05)
    assert cold["write_amplification"] == pytest.approx(
        (cold["pages_written"] + cold["pages_moved"]) / cold["pages_written"]
    )
    assert handles[3]["write_amplification"] is None
    # What the fill left, in handle 0, moves for hot writes as often as these come.
    left = handles[0]["pages_moved_for"]
    assert left[2] == pytest.approx(9 * left[1], rel=0.2) and left[2] > 0


def test_groups_count_by_handle_and_no_write_fails() -> None:
    # Handle 1 of group 0 and of group 1, and more of group 0 than fits it.
    settings: dict[str, object] = {"placement.fdp.groups": 2, "placement.fdp.handles": 2}
    run = played("uniform:write=1", settings)
    ssd = Ssd.named("default").with_({**SMALL, **settings})
    tenants = [f"uniform:write=1,depth=2 @ handle={handle}" for handle in (1, 0x8001)]
    shared = ssd.play(tenants, requests=60_000, seed=3)
    for found in (run, shared):
        handles, programs = found.json["handles"], found.json["flash"]["programs"]
        assert sum(handle["pages_written"] for handle in handles) == programs["host"]
        assert sum(handle["pages_moved"] for handle in handles) == programs["gc"]
        groups: list[dict[str, Any]] = [dict(group) for group in found.json["groups"]]
        sums = [sum(group[key] for group in groups) for key in BY_GROUP]
        erases = found.json["flash"]["erases"]["total"]
        assert sums == [programs["host"], programs["total"], programs["gc"], erases]
        for number, group in enumerate(found.json["groups"]):
            assert group["group"] == number and 0 < group["units_free"] < group["units"] == 512
            amplification = group["pages_programmed"] / group["pages_written"]
            assert group["write_amplification"] == pytest.approx(amplification)
    assert [handle["pages_written"] > 0 for handle in shared.json["handles"]] == [False, True]
    assert run.json["write_amplification"] < 4, (
        "a group that is full has spare space as the whole drive has"
    )


def test_other_policies_have_no_handles() -> None:
    found = played("uniform", {"placement.policy": "single"}).json
    assert found["handles"] == found["groups"] == []
    assert played("uniform").json["groups"] == [], "one group is the drive"


def test_a_load_without_handles_is_told() -> None:
    warned = {each["code"]: each for each in played("uniform").json["warnings"]}
    assert "no write named another" in warned["handles-unnamed"]["text"]
    buffered = played("hot-cold:streams=class", {"ram.manager": "lru", "ram.size": "64 KiB"})
    warned = {each["code"]: each for each in buffered.json["warnings"]}
    assert "does not keep handles" in warned["handles-unnamed"]["text"]
    named = played("hot-cold:streams=class").json["warnings"]
    assert "handles-unnamed" not in {each["code"] for each in named}


def test_the_table_says_who_paid_for_whom(command: Cli) -> None:
    said = command(
        "simulate", "default", "--workload", "hot-cold:streams=class", "--requests", "60000",
        "--precondition", "sequential", *(part for pair in SMALL.items() for part in ("--set", f"{pair[0]}={pair[1]}")),
    )  # fmt: skip
    assert said.status == 0, said.err
    lines = [line for line in said.out.splitlines() if line.startswith("handle ")]
    assert len(lines) == 3  # the fill left pages of handle 0
    assert "programmed for each" in lines[2] and "for writes of 2" in said.out
    assert not any(line.startswith("group ") for line in said.out.splitlines())


def test_the_table_says_what_each_group_did(command: Cli) -> None:
    pairs = {**SMALL, "placement.fdp.groups": 2}.items()
    said = command(
        "simulate", "default", "--workload", "uniform:write=1", "--requests", "20000",
        "--precondition", "sequential", *(part for pair in pairs for part in ("--set", f"{pair[0]}={pair[1]}")),
    )  # fmt: skip
    assert said.status == 0, said.err
    lines = [line for line in said.out.splitlines() if line.startswith("group ")]
    assert len(lines) == 2
    assert all("programmed for each" in line and "erases" in line for line in lines)
    assert said.out.count("of 512 units free") == 2
