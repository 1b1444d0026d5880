"""Schedulers between a workload and a drive, as users meet them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli
from flashwright import Ssd, workloads

WORKLOAD = "stand-in:financial1"


def play(scheduler: str, **settings: object) -> dict[str, Any]:
    changes = {"host.scheduler": scheduler, **settings}
    drive = Ssd.named("default").with_settings([f"{key}={value}" for key, value in changes.items()])
    run = drive.play(workloads.stand_in("financial1"), requests=3_000, depth=64, verify=True)
    return dict(run.json)


def test_layers_are_counted_from_the_host_down() -> None:
    result = play("deadline+noop", **{"host.profile.clustered-page": "16 KiB"})
    layers = result["host_layers"]
    assert [layer["scheduler"] for layer in layers] == ["deadline", "noop"]
    for layer in layers:
        counts = layer["reads"], layer["writes"]
        assert all(0 < of["aligned_at_start"] < of["requests"] for of in counts)
        assert all(of["within_buffer"] is None for of in counts), "no buffer is known"
    assert layers[0]["requests"] == 3_000
    handed_on = sum(layers[0][kind]["requests"] for kind in ("reads", "writes"))
    assert handed_on + layers[0]["back_merges"] + layers[0]["front_merges"] == 3_000
    assert layers[1]["requests"] == handed_on
    asked = result["host"]["bytes"]
    assert asked == sum(layers[1][kind]["bytes"] for kind in ("reads", "writes"))


def test_without_a_scheduler_there_are_no_layers() -> None:
    assert play("none")["host_layers"] == []


def test_a_queue_of_one_waits_in_the_scheduler() -> None:
    layer = play("noop", **{"host.queue-depth": 1})["host_layers"][0]
    assert layer["write_waits"]["longest_ns"] > layer["write_waits"]["mean_ns"] > 0


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("host.scheduler=deadlin", 'found "deadlin", expected "none", noop, '),
        ("host.scheduler=deadlin", 'did you mean "deadline"?'),
        ("host.scheduler=noop+", 'host.scheduler: found "noop+", expected "none", noop, '),
        ("host.block-layer.queue-requests=0", "found 0, expected at least 1"),
        (
            "host.block-layer.max-request=0 B",
            "host.block-layer.max-request: found 0 B, expected 512 B to 512 GiB",
        ),
        ("host.block-layer.plug-requests=500", "the queue holds 128 requests only"),
        ("host.profile.clustered-page=700 B", "expected a multiple of 512 B"),
        ("host.profile.write-buffer=big", 'such as "16 KiB", "none" or "unknown"'),
    ],
)
def test_bad_settings_get_one_line(command: Cli, setting: str, said: str) -> None:
    done = command("simulate", "default", "--set", setting)
    assert done.status == 2
    assert done.out == ""
    assert said in done.err
    assert len(done.err.splitlines()) <= 2


def test_the_table_and_the_report_show_the_layers(command: Cli, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = command(
        "simulate", "default", "--workload", WORKLOAD, "--requests", "2000", "--depth", "64",
        "--set", "host.scheduler=noop", "--report", str(page), "--json", str(tmp_path / "run.json"),
    )  # fmt: skip
    assert done.status == 0, done.err
    assert "noop, writes" in done.out
    assert "Host, scheduler 1: writes handed on" in page.read_text()
    figures = json.loads((tmp_path / "run.json").read_text())
    assert figures["config"]["host"]["scheduler"] == "noop"


def test_a_run_through_schedulers_is_saved_and_goes_on(command: Cli, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    run = ["--workload", WORKLOAD, "--requests", "4000", "--depth", "64", "--quiet"]
    scheduler = ["--set", "host.scheduler=deadline"]
    whole, resumed = tmp_path / "whole.json", tmp_path / "resumed.json"
    assert command("simulate", "default", *run, *scheduler, "--json", str(whole)).status == 0
    stop = ["--stop-after", "1500", "--checkpoint", str(saved)]
    assert command("simulate", "default", *run, *scheduler, *stop).status in (0, 130)
    assert (
        command("simulate", "--resume", str(saved), "--quiet", "--json", str(resumed)).status == 0
    )
    first, second = (json.loads(path.read_text()) for path in (whole, resumed))
    assert first["digest"] == second["digest"]
    assert first["host_layers"] == second["host_layers"]
