"""Several workloads at once, in Python and on the command line."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from flashwright import Ssd, compare, sweep, workloads
from flashwright.cli import run
from flashwright.errors import FlashwrightError, WorkloadError
from flashwright.simulation.results import RunResult, table
from flashwright.sweeps.sweep import Sweep
from flashwright.traces.tenants import Tenant, Tenants

SMALL = Ssd.named("default").with_(
    channels=2, dies_per_channel=1, blocks_per_plane=64, utilization=0.8
)
MIX = ["uniform:write=0,rate=300 @ name=reader", "uniform:write=1,depth=4 @ share=60%,name=writer"]
SET = [
    word
    for key in ("channels=2", "dies-per-channel=1", "blocks-per-plane=64")
    for word in ("--set", f"geometry.{key}")
]


def figures(run: RunResult) -> list[Any]:
    """Of its tenants; those that may be missing are there."""
    return list(run.json["tenants"])


@pytest.fixture(scope="module")
def played() -> RunResult:
    return SMALL.precondition("auto").play(MIX, requests=6_000)


def test_a_tenant_among_others_is_slower_than_alone(played: RunResult) -> None:
    reader, writer = figures(played)
    alone = [
        SMALL.precondition("auto").play(
            Tenants.of(MIX).only(at), requests=sum(t["requests"][k] for k in ("read", "write"))
        )
        for at, t in enumerate((reader, writer))
    ]
    for at, (tenant, run_alone) in enumerate(zip((reader, writer), alone, strict=True)):
        there = figures(run_alone)[at]
        here = tenant["response_time_ns"]["all"]
        assert tenant["alone"] is not None and tenant["slowdown"] is not None
        assert tenant["alone"]["response_time_ns"] == there["response_time_ns"]["all"]
        assert (
            tenant["slowdown"]["p99_ratio"] == here["p99"] / there["response_time_ns"]["all"]["p99"]
        )
        assert (
            tenant["slowdown"]["iops_ratio"]
            == there["throughput"]["iops"] / tenant["throughput"]["iops"]
        )
    assert reader["slowdown"]["mean_ratio"] > 5, "it waits for the writer's cleaning"
    assert played.settled.verdict in ("settled", "too-short")
    assert reader["alone"]["verdict"] == "none"


def test_tenants_are_a_table(played: RunResult) -> None:
    found = played.tenants.to_arrow()
    assert found["name"].to_pylist() == ["reader", "writer"]
    assert found["slowdown.mean_ratio"].to_pylist()[0] > 5
    assert repr(played.tenants) == "TenantTable(reader, writer)"
    assert played.tenants.to_pandas()["requests.write"].tolist()[0] == 0
    row = table(played, config=False).to_pylist()[0]
    assert (
        row["tenants.writer.write_amplification"]
        == played.json["tenants"][1]["write_amplification"]
    )
    assert SMALL.play("uniform", requests=100).tenants.to_arrow().num_rows == 0


def test_tenants_are_read_from_text() -> None:
    text = "zipf:write=0.5 @ name=a,share=0.25,handle=2,priority=high,depth=4"
    made = Tenant.parse(text)
    assert (made.name, made.share, made.handle, made.priority, made.depth) == (
        "a",
        0.25,
        2,
        "high",
        4,
    )
    assert Tenant.parse(made.text) == made and made.text == text
    assert Tenant.parse("uniform@share=25%").share == 0.25
    trace = Tenant.parse("bundled:pgbench @ addresses=scale:0.5,time-scale=2")
    assert isinstance(trace.source, workloads.Trace) and trace.source.addresses == "scale:0.5"
    assert trace.time_scale == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("uniform @ shares=1", "found 'shares=1' after @, expected one of name=, share="),
        ("uniform @ share=x", "share: found 'x', expected a share such as 25% or 0.25"),
        ("uniform @ share=0", "share: found 0, expected above 0 up to 1"),
        ("uniform @ share=0.5,pages=7", "share and pages: found both"),
        ("uniform @ depth=0", "depth: found 0, expected 1 to 1,048,576"),
        ("uniform @ depth=2,depth=3", "depth: found twice"),
        ("uniform @ depth=2,time-scale=3", "depth and time-scale: found both"),
        ("uniform @ priority=first", "priority: found 'first', expected urgent, high, medium, low"),
        ("uniform @ addresses=wrap", "addresses: found with uniform, expected only with a trace"),
        ("unifrom @ depth=2", "unifrom"),
        ("trace:nowhere@home.csv", "nowhere@home.csv: there is no such file"),
        ("uniform @ time-scale=2", "which has no arrival times"),
    ],
)
def test_what_is_no_tenant_is_refused(text: str, said: str) -> None:
    with pytest.raises(FlashwrightError, match=re.escape(said)):
        SMALL.play([text], requests=10)


def test_none_and_policies_that_do_not_fit() -> None:
    with pytest.raises(WorkloadError, match="tenants: found none"):
        SMALL.play([])
    with pytest.raises(
        WorkloadError, match="depth: found one, expected none: tenants have a pace each"
    ):
        SMALL.play(["uniform"], depth=4)
    with pytest.raises(
        WorkloadError, match="found with tenants, expected a workload that has keys"
    ):
        compare(SMALL, ["uniform"], {"workload.write": [0.5, 1]})


def test_comparisons_and_sweeps_play_tenants() -> None:
    vary = {"placement.policy": ["single", "fdp"]}
    tenants = ["uniform:write=1,depth=2 @ handle=1", "sequential:write=1,depth=2 @ handle=2"]
    drive = SMALL.with_({"geometry.blocks-per-plane": 128})
    runs = compare(drive, tenants, vary, requests=6_000)
    by_policy = {str(each.varied["placement.policy"]): figures(each) for each in runs}
    moved = {policy: found[1]["pages_moved"] for policy, found in by_policy.items()}
    assert moved["fdp"] < moved["single"], "what is written in order is not moved once it is apart"
    assert all(each["slowdown"]["mean_ratio"] for found in by_policy.values() for each in found)
    found = sweep(drive.precondition("auto"), tenants, vary, requests=6_000, jobs=1)
    swept = [(found.figures_of(nth) or {})["tenants"] for nth in range(2)]
    assert swept == [by_policy[policy] for policy in ("single", "fdp")]


def test_a_file_of_a_sweep_names_tenants(tmp_path: Path) -> None:
    file = tmp_path / "tenants.toml"
    text = """
        precondition = "sequential"
        requests = 3_000
        tenants = ["uniform:write=0,depth=2 @ name=reader,share=25%", "uniform:write=1,depth=2"]
        [set]
        geometry.blocks-per-plane = 128
        [grid]
        gc.victim = ["greedy", "fifo"]
    """
    file.write_text(text)
    found = Sweep.from_toml(file).run(jobs=1)
    tenants = [(found.figures_of(nth) or {})["tenants"] for nth in range(2)]
    assert [each[0]["name"] for each in tenants] == ["reader", "reader"]
    assert all(each["slowdown"]["mean_ratio"] for played in tenants for each in played)
    file.write_text(f"alone = false\n{text}")
    found = Sweep.from_toml(file).run(jobs=1)
    assert [each["slowdown"] for each in (found.figures_of(0) or {})["tenants"]] == [None, None]


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tenants = [word for text in MIX for word in ("--tenant", text)]
    page, out = tmp_path / "page.html", tmp_path / "run.json"
    arguments = ["simulate", *SET, *tenants, "--requests", "3000", "--precondition", "sequential"]
    assert run([*arguments, "--json", str(out), "--report", str(page)]) == 0
    shown = capsys.readouterr().out
    assert "each tenant's own" in shown and "mean/alone" in shown and "reader, reads" in shown
    found: dict[str, Any] = json.loads(out.read_text())
    assert found["tenants"][0]["slowdown"]["mean_ratio"] > 1 and found["pace"] == "tenants"
    assert "Slower than alone: p99" in page.read_text()
    assert run([*arguments, "--no-alone", "--json", str(out), "-q"]) == 0
    assert [each["slowdown"] for each in json.loads(out.read_text())["tenants"]] == [None, None]
    rows = tmp_path / "runs.csv"
    compared = [
        "compare",
        "default",
        *arguments[1:-2],
        "--vary",
        "gc.victim=greedy,fifo",
        "--out",
        str(rows),
    ]
    assert run(compared) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split()[:2] == ["gc.victim=fifo", "writer"] for line in lines)
    with rows.open() as file:
        found_rows = list(csv.DictReader(file))
    assert all(float(each["tenants.reader.slowdown.mean_ratio"]) > 1 for each in found_rows)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--no-alone"], "--no-alone: found without --tenant"),
        (["--tenant", "uniform", "--workload", "zipf"], "--tenant and --workload: found both"),
        (["--tenant", "uniform", "--repeat", "2"], "--repeat: found with --tenant"),
        (["--tenant", "uniform", "--checkpoint", "x.saved"], "can't be saved"),
        (["--tenant", "uniform @ share=90%", "--tenant", "uniform @ share=20%"], "namespaces of"),
    ],
)
def test_what_does_not_fit_is_an_error(
    more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", *SET, "--requests", "100", *more]) == 2
    assert said in capsys.readouterr().err


ONE_AT_A_TIME = Ssd.named("default").with_(
    {"timing.model": "serial", "geometry.blocks-per-plane": 64}
)


def test_slowdowns_of_rates_are_those_of_queueing_theory() -> None:
    # M/D/1: requests arrive at random, each takes the same time, and one is served at a time. The mean response time is
    # S (1 + load / (2 (1 - load))), where the load is that of all who share the server.
    ssd = ONE_AT_A_TIME.precondition("sequential")
    service_ns = ssd.play("uniform:write=0", requests=100).latency_ns.summary["mean"]
    assert service_ns is not None
    service_s = service_ns * 1e-9
    loads = (0.2, 0.5)
    tenants = [f"uniform:write=0,rate={load / service_s:.3f}" for load in loads]
    found = figures(ssd.play(tenants, requests=400_000))

    def mean(load: float) -> float:
        return service_s * (1 + load / (2 * (1 - load)))

    for load, tenant in zip(loads, found, strict=True):
        assert tenant["alone"]["response_time_ns"]["mean"] == pytest.approx(
            mean(load) * 1e9, rel=0.03
        )
        assert tenant["slowdown"]["mean_ratio"] == pytest.approx(
            mean(sum(loads)) / mean(load), rel=0.05
        )


def test_slowdowns_of_depths_are_those_of_a_line() -> None:
    # First in, first out, one at a time, all of the same length: each has as much of the server as places in the line.
    ssd = ONE_AT_A_TIME.with_({"host.queue-depth": 1}).precondition("sequential")
    depths = (1, 3, 12)
    tenants = [f"uniform:write=0,depth={depth}" for depth in depths]
    found = figures(ssd.play(tenants, requests=80_000))
    for depth, tenant in zip(depths, found, strict=True):
        assert tenant["slowdown"]["iops_ratio"] == pytest.approx(sum(depths) / depth, rel=0.01)
        assert tenant["slowdown"]["mean_ratio"] == pytest.approx(sum(depths) / depth, rel=0.01)
