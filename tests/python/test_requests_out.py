"""Rows of requests that go to their file during the run: as if written at once, in little memory, whole or not."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.feather
import pyarrow.parquet
import pytest

from conftest import Cli, wait_for_work
from flashwright import Ssd, workloads
from flashwright.errors import OutputError, SavedStateError, WorkloadError
from flashwright.simulation.run import Run, RunSettings
from flashwright.support.tablefiles import TableWriter, write_table
from flashwright.traces.tenants import Load, Tenant, Tenants

ENDINGS = (".parquet", ".arrow", ".feather", ".csv", ".json")
UNIFORM = ("--workload", "uniform:write=0.8,depth=4")
MIXED = workloads.uniform(write=0.8)


def run_of(small: str, source: Load, **settings: Any) -> Run:
    given = RunSettings(**{"requests": 3000, "keep_requests": True, **settings})
    return Run.create(Ssd.find(small).toml, "empty", source, given)


def written(run: Run, path: Path, **how: Any) -> None:
    with TableWriter(path) as rows:
        run.go(on_requests=rows.append, **how)
        rows.commit()


CASES: dict[str, Callable[[str, Path], Run]] = {
    "closed": lambda small, _: run_of(small, MIXED, depth=4),
    "warmup": lambda small, _: run_of(small, MIXED, warmup=1000, depth=4),
    "long": lambda small, _: run_of(small, MIXED, requests=150_000),
    "one": lambda small, _: run_of(small, MIXED, requests=1),
    "closeup": lambda small, _: run_of(small, MIXED, closeup=(100, 50)),
    "tenants": lambda small, _: run_of(
        small, Tenants((Tenant.parse("uniform @ depth=2"), Tenant.parse("uniform:write=0")))
    ),
    # What is said of the workload is known at the end only: how many requests were wrapped.
    "wrapped": lambda small, spc: run_of(
        small, workloads.trace(spc, addresses="wrap"), requests=None
    ),
    "pages": lambda small, spc: run_of(
        small, workloads.trace(spc, addresses="dense"), requests=None, verify=True
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_file_written_on_the_way_is_the_file_written_at_once(
    small: str, spc: Path, tmp_path: Path, case: str
) -> None:
    for ending in ENDINGS:
        at_once, streamed = (tmp_path / f"{name}{ending}" for name in ("once", "way"))
        write_table(CASES[case](small, spc).go().requests(), at_once)
        written(CASES[case](small, spc), streamed)
        assert streamed.read_bytes() == at_once.read_bytes(), (case, ending)
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".partial") == []


@pytest.mark.parametrize("how", [{"stop_after": 1234}, {"time_limit_s": 0.0}])
def test_a_run_that_stops_before_its_end_has_the_rows_up_to_there(
    small: str, tmp_path: Path, how: dict[str, Any]
) -> None:
    whole, part = tmp_path / "whole.arrow", tmp_path / "part.arrow"
    written(run_of(small, MIXED), whole)
    written(run_of(small, MIXED), part, **how)
    found = pyarrow.feather.read_table(part)
    assert found.num_rows == how.get("stop_after", 0)
    assert found.equals(pyarrow.feather.read_table(whole).slice(0, found.num_rows))


def test_rows_beyond_a_row_group_come_in_order(tmp_path: Path) -> None:
    """As of one table, in portions of odd sizes: 2^20 rows are a row group, 2^16 a batch."""
    count = (1 << 20) + 70_001
    kinds = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int8()), pa.array(["a", "b"]))
    table = pa.table({"at": pa.array(range(count), pa.uint64()), "kind": kinds})
    for ending in (".parquet", ".arrow", ".csv"):
        at_once, streamed = (tmp_path / f"{name}{ending}" for name in ("once", "way"))
        write_table(table, at_once)
        with TableWriter(streamed) as rows:
            for first in range(0, count, 99_991):
                rows.append(table.slice(first, 99_991))
            rows.commit()
        assert streamed.read_bytes() == at_once.read_bytes(), ending
    assert pyarrow.parquet.read_metadata(tmp_path / "way.parquet").num_row_groups == 2
    assert pyarrow.feather.read_table(tmp_path / "way.arrow").equals(table)


def test_the_command_writes_what_the_library_has(command: Cli, small: str, tmp_path: Path) -> None:
    """Also a run that is saved, whose rows stay in memory as they are part of it, and its continuation."""
    run = ("simulate", small, *UNIFORM, "--requests", 5000, "-q", "--requests-out")
    plain, saving, saved = (tmp_path / name for name in ("a.csv", "b.csv", "run.saved"))
    assert command(*run, plain).status == 0
    assert command(*run, saving, "--checkpoint", saved, "--stop-after", 2000).status == 0
    assert saving.read_text() == "".join(plain.read_text().splitlines(keepends=True)[:1997])
    assert command("simulate", "--resume", saved, "-q", "--requests-out", saving).status == 0
    assert saving.read_bytes() == plain.read_bytes()


def test_rows_that_were_taken_are_missed_by_nobody(small: str, tmp_path: Path) -> None:
    run = run_of(small, MIXED)
    assert run.take_requests() is None
    run.step(1)
    run.step(1000)
    first = run.take_requests()
    assert first is not None and first.num_rows == 1000
    with pytest.raises(SavedStateError, match="rows of its requests were taken out of it"):
        run.save(tmp_path / "run.saved")
    result = run.go()
    with pytest.raises(WorkloadError, match="were not kept"):
        result.requests()
    rest = run.take_requests()
    assert rest is not None and rest.num_rows == 2000
    whole = run_of(small, MIXED).go()
    assert pa.concat_tables([first, rest]).equals(whole.requests())
    assert result.json["digest"] == whole.json["digest"]


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".csv", ".json"])
def test_ctrl_c_leaves_the_rows_of_what_was_finished(tmp_path: Path, ending: str) -> None:
    rows, figures = tmp_path / f"rows{ending}", tmp_path / "o.json"
    options = ("--workload", "uniform", "--requests", "2000000000", "--quiet", "--json", figures)
    process = subprocess.Popen(
        [sys.executable, "-m", "flashwright", "simulate", "default", *options, "--requests-out", rows],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for_work(process, 1.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (
        130,
        "note: interrupted; the figures cover what was finished\n",
    )
    read: dict[str, Callable[[], int]] = {
        ".parquet": lambda: pyarrow.parquet.read_metadata(rows).num_rows,
        ".arrow": lambda: pyarrow.feather.read_table(rows).num_rows,
        ".csv": lambda: rows.read_bytes().count(b"\n") - 1,
        ".json": lambda: len(json.loads(rows.read_text())),
    }
    assert read[ending]() == json.loads(figures.read_text())["measured"]["requests"] > 0
    assert sorted(tmp_path.iterdir()) == [figures, rows]


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".csv", ".json"])
@pytest.mark.parametrize("old", [None, b"what was there before\n"])
def test_a_full_disk_leaves_nothing_half_written(
    tmp_path: Path, ending: str, old: bytes | None
) -> None:
    """A limit on the size of files ends as a full disk does. The figures up to there are not lost."""
    rows, figures = tmp_path / f"rows{ending}", tmp_path / "o.json"
    if old is not None:
        rows.write_bytes(old)
    most = 1 << 20
    options = ("--workload", "uniform", "--requests", "2000000000", "--quiet", "--json", figures)
    said = subprocess.run(
        [sys.executable, "-m", "flashwright", "simulate", "default", *options, "--requests-out", rows],
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (most, most)),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert said.returncode == 2
    assert said.stderr.splitlines() == [
        f"error: {rows}: can't be written: file too large",
        "hint: check that the folder exists and may be written to",
    ]
    assert json.loads(figures.read_text())["ended"] == "interrupted"
    assert (rows.read_bytes() if rows.exists() else None) == old
    assert sorted(tmp_path.iterdir()) == sorted([figures] + ([rows] if old else []))


def test_what_fails_at_the_end_leaves_nothing_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "")

    def write_all(path: Path) -> None:
        with TableWriter(path) as rows:
            rows.append(pa.table({"a": range(1 << 16)}).replace_schema_metadata({"n": "1"}))
            # Other metadata, for which a file of Arrow is copied at its end.
            rows.append(pa.table({"a": [2]}).replace_schema_metadata({"n": "2"}))
            rows.commit()

    for ending, name in (
        (".csv", "os.fsync"),
        (".arrow", "flashwright.support.tablefiles._copy_arrow"),
    ):
        path = tmp_path / f"rows{ending}"
        monkeypatch.setattr(name, full)
        with pytest.raises(OutputError, match="can't be written: no space left on device"):
            write_all(path)
        monkeypatch.undo()
        assert list(tmp_path.iterdir()) == []
        write_all(path)
        assert [each.name for each in tmp_path.iterdir()] == [path.name]
        path.unlink()


PEAK = """
import resource, sys
from flashwright import cli
assert cli.run(sys.argv[1:]) == 0
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
"""


@pytest.mark.parametrize("ending", [".arrow", ".csv", ".parquet"])
def test_memory_does_not_grow_with_the_run(tmp_path: Path, ending: str) -> None:
    """3 million requests take 200 MB of rows."""

    def peak_mib(requests: int) -> int:
        options = ("--workload", "uniform:write=0", "--quiet", "--set", "timing.model=none")
        said = subprocess.run(
            [sys.executable, "-c", PEAK, "simulate", "default", *options, "--requests", str(requests),
             "--requests-out", str(tmp_path / f"rows{ending}")],
            stdout=subprocess.PIPE, text=True, timeout=300, check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        return int(said.stdout)

    # A row group of Parquet is a million rows, and the shorter run has fewer.
    shorter = 300_000 if ending != ".parquet" else 1_500_000
    assert peak_mib(3_000_000) < peak_mib(shorter) + 48


def test_a_rerun_keeps_no_rows(command: Cli, small: str, tmp_path: Path) -> None:
    figures, rows = tmp_path / "o.json", tmp_path / "rows.csv"
    run = ("simulate", small, *UNIFORM, "--requests", 2000, "-q")
    assert command(*run, "--json", figures, "--requests-out", rows).status == 0
    assert json.loads(figures.read_text())["run"]["made"]["options"]["keep_requests"] is True
    again = command("rerun", figures, "--json", "-")
    assert (again.status, again.json["runs"][0]["agrees"]) == (0, True)
