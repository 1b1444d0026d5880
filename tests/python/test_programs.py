"""Programs above a file system, from Python and from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flashwright import Ssd, _core, workloads
from flashwright.errors import SavedStateError, WorkloadError
from flashwright.simulation.run import Run, RunSettings

DRIVE = "default"


def test_postmark_reports_what_it_did() -> None:
    workload = workloads.postmark(
        files=30,
        size="1MiB",
        transactions=60,
        memory="32MiB",
        read_block="4KiB",
        write_block="4KiB",
    )
    result = Ssd.named(DRIVE).play(workload)
    figures: Any = result.json["application"]
    assert result.json["pace"] == "interactive" and result.json["ended"] == "complete"
    assert figures["transactions"] == 60
    assert figures["files_created"] == figures["files_deleted"]
    assert figures["seconds_with_sync"] >= figures["seconds"] > 0
    # What the model says that it asked of the drive is what the drive got.
    asked = figures["device_read_requests"] + figures["device_write_requests"]
    assert result.json["measured"]["requests"] == asked + figures["device_flush_requests"]
    bytes_asked = figures["device_read_bytes"] + figures["device_write_bytes"]
    assert result.json["host"]["bytes"] == bytes_asked
    again = Ssd.named(DRIVE).play(workload)
    assert again.json["digest"] == result.json["digest"]


def test_other_workloads_report_none() -> None:
    result = Ssd.named(DRIVE).play(workloads.uniform(), requests=100)
    assert result.json["application"] is None


def test_what_does_not_apply_is_refused(tmp_path: Path) -> None:
    ssd, workload = Ssd.named(DRIVE), workloads.filebench("varmail", duration="1s")
    with pytest.raises(WorkloadError, match="depth: found one, expected none: filebench-varmail"):
        ssd.play(workload, depth=4)
    with pytest.raises(WorkloadError, match="time_scale: found one, expected none"):
        ssd.play(workload, time_scale=2)
    run = Run.create(ssd.toml, "empty", workload, RunSettings())
    with pytest.raises(SavedStateError, match="can't be saved: its workload reacts"):
        run.go(checkpoint=tmp_path / "run.saved")
    with pytest.raises(WorkloadError, match=r"files: found .* expected one of at least"):
        ssd.play(workloads.postmark(size="1GiB"))


def test_the_list_tells_programs_apart() -> None:
    rows = {row["name"]: row for row in json.loads(_core.workloads())}
    assert rows["postmark"]["interactive"] and not rows["uniform"]["interactive"]
    assert "depth" not in {key["name"] for key in rows["postmark"]["keys"]}
