"""Drives with zones, as users see them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flashwright
from conftest import Cli
from flashwright import Ssd, workloads
from flashwright.simulation.results import RunResult

ZONED = {
    "geometry.blocks-per-plane": 32,
    "ftl.scheme": "zoned",
    "ftl.zoned.max-open-zones": 4,
    "ftl.zoned.max-active-zones": 6,
}


def drive(**settings: object) -> Any:
    return Ssd.named("default").with_({**ZONED, **settings})


def test_only_padding_adds_to_what_the_host_writes() -> None:
    run = (
        drive()
        .precondition("sequential")
        .play("zones:writers=3,fill=0.6,size=32KiB,write=0.7,depth=8", requests=30_000, verify=True)
    )
    zones, programs = run.json["zones"], run.json["flash"]["programs"]
    assert run.json["violations"] == []
    assert programs["total"] == programs["host"] + programs["padding"]
    assert programs["host"] == run.json["host"]["pages_written"]
    assert zones["pages_padded"] == programs["padding"] > 0
    assert run.json["write_amplification"] == pytest.approx(
        1 + programs["padding"] / programs["host"]
    )
    # 614 of 1,024 pages are written: 1 + 410 / 614, but for the zones that are open at the ends.
    assert run.json["write_amplification"] == pytest.approx(1024 / 614, rel=0.01)
    assert zones["finishes"] > 50 and zones["resets"] > 50
    assert sum(zones["states"].values()) == zones["zones"]
    assert zones["finish_time_ns"]["mean"] > zones["reset_time_ns"]["mean"]
    assert set(zones["refusals"].values()) == {0}


def test_appends_and_writes_put_as_many_pages() -> None:
    by = [
        drive().play(f"zones:writers=4,by={by},size=64KiB,depth=4", requests=20_000, verify=True)
        for by in ("write", "append")
    ]
    assert by[0].json["flash"]["programs"] == by[1].json["flash"]["programs"]
    assert by[0].json["requests"] == by[1].json["requests"]
    assert [run.json["violations"] for run in by] == [[], []]


def test_a_trace_that_breaks_the_rules_is_counted(tmp_path: Path) -> None:
    trace = tmp_path / "strays.csv"
    # Pages 0, 1, 3, 0 of the first zone: the last two are off its write pointer; a read beside them.
    rows = [(0, "Write"), (4096, "Write"), (3 * 4096, "Write"), (0, "Write"), (4096, "Read")]
    trace.write_text(
        "".join(
            f"{128166372000000000 + at * 10_000_000},host,0,{kind},{offset},4096,0\n"
            for at, (offset, kind) in enumerate(rows)
        )
    )
    run = drive().precondition("empty").play(workloads.trace(trace), verify=True)
    assert run.json["zones"]["refusals"]["not_at_write_pointer"] == 2
    assert run.json["host"]["pages_written"] == 2 and run.json["host"]["pages_read"] == 1
    warned = {each["code"]: each for each in run.json["warnings"]}
    assert "2 requests were refused" in warned["zones-refused"]["text"]
    assert run.json["violations"] == []


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--workload", "uniform"), "uniform, which does not write zones in order"),
        (("--workload", "zones", "--precondition", "random"), "zones are written in order"),
        (
            ("--workload", "zones", "--set", "ram.manager=lru"),
            "ram.manager: found one with ftl.scheme",
        ),
        (
            ("--workload", "zones:writers=4000"),
            "writers: found 4000, expected at most the zones in use",
        ),
    ],
)
def test_what_does_not_go_with_zones_is_told_in_a_line(
    command: Cli, more: tuple[str, ...], says: str
) -> None:
    settings = (part for key, value in ZONED.items() for part in ("--set", f"{key}={value}"))
    said = command("simulate", "default", *settings, *more, "--requests", "1000")
    assert said.status == 2
    assert says in said.err.splitlines()[0]


def test_drives_without_zones_refuse_their_writers(command: Cli) -> None:
    said = command("simulate", "default", "--workload", "zones", "--requests", "1000")
    assert said.status == 2 and "zones on a drive without zones" in said.err


def test_the_table_counts_zones(command: Cli) -> None:
    settings = (part for key, value in ZONED.items() for part in ("--set", f"{key}={value}"))
    said = command(
        "simulate",
        "default",
        *settings,
        "--workload",
        "zones:fill=0.5,size=64KiB",
        "--requests",
        "5000",
    )
    assert said.status == 0, said.err
    lines = {line.split("  ")[0]: line for line in said.out.splitlines()}
    assert "of 4.00 MiB" in lines["zones"] and "pages of padding" in said.out


def figures(run: RunResult) -> Any:
    """Of its zones; a zoned drive has them."""
    return run.json["zones"]


def test_the_bundled_zoned_drive_finishes_and_resets_as_measured() -> None:
    finish = Ssd.named("wd-zn540").play("zones:writers=1,fill=0.0000001,size=4KiB", requests=30)
    # 908.5 ms with one block written (2.6 ms + 1,077 MiB at 1,189 MiB/s).
    assert figures(finish)["finish_time_ns"]["mean"] == pytest.approx(908.5e6, rel=0.02)
    full = (
        Ssd.named("wd-zn540")
        .precondition("sequential")
        .play("zones:writers=1,size=1MiB,depth=4", requests=3000)
    )
    assert figures(full)["reset_time_ns"]["mean"] == pytest.approx(15.5e6, rel=0.02)
    assert full.json["write_amplification"] == 1


def test_what_knows_no_zones_is_told_of_the_rule(command: Cli) -> None:
    said = command("replay", "sim:wd-zn540", "--workload", "uniform", "--requests", "50")
    assert (
        said.status != 0
        and "refuses a request: a write begins at the zone's write pointer" in said.err
    )
    said = command("serve", "wd-zn540", "--nbd", "tcp:127.0.0.1:0")
    assert said.status == 2 and "clients are not told of zones" in said.err


def test_hosts_of_nvme_are_offered_a_drive_with_zones() -> None:
    with flashwright.serve(drive(), (), nvme_tcp="127.0.0.1:0") as served:
        (uri,) = served.uris
        with pytest.raises(flashwright.FlashwrightError, match="without a namespace"):
            flashwright.replay(uri, "uniform", requests=1)
