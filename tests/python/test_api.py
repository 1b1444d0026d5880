"""The Python front: drives, workloads, runs and results as values."""

from __future__ import annotations

import copy
import pickle
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flashwright
from conftest import SMALL
from flashwright import (
    FlashwrightError,
    Progress,
    RunInterrupted,
    RunResult,
    Ssd,
    compare,
    errors,
    tracefiles,
    workloads,
)


@pytest.fixture(scope="module")
def ssd() -> Ssd:
    return Ssd.from_text(SMALL, "small")


@pytest.fixture(scope="module")
def run(ssd: Ssd) -> RunResult:
    return ssd.precondition("random").play(
        workloads.uniform(write=0.5), requests=5000, depth=4, keep_requests=True, verify=True
    )


def test_drives_are_values(ssd: Ssd) -> None:
    other = ssd.with_(victim="fifo").precondition("sequential")
    assert (ssd.config["gc"]["victim"], ssd.preconditioning) == ("greedy", None)
    assert other == ssd.precondition("sequential").with_({"gc.victim": "fifo"})
    assert len({ssd, other, copy.copy(ssd)}) == 2
    assert pickle.loads(pickle.dumps(other)) == other
    assert repr(other) == "Ssd(8 MiB, 2 channels x 2 dies, page, victim=fifo)"


def test_a_drive_goes_by_the_name_of_its_file(tmp_path: Path, ssd: Ssd) -> None:
    path = tmp_path / "tiny drive.toml"
    path.write_text(SMALL)
    assert Ssd.from_toml(path).name == "tiny drive"
    path.write_text('name = "own"\n' + SMALL)
    assert Ssd.from_toml(path).name == "own"
    assert Ssd.named("default").name == "default"
    assert Ssd.from_text(ssd.toml) == ssd


def test_settings_by_the_last_part_of_their_key(ssd: Ssd) -> None:
    changed = ssd.with_(pages_per_block=32, utilization=0.7, pipelined=False, read="75 us")
    assert changed.config["geometry"]["pages-per-block"] == 32
    assert changed.config["capacity"]["utilization"] == 0.7
    assert changed.config["timing"]["pipelined"] is False
    with pytest.raises(errors.ConfigError, match="unknown key"):
        ssd.with_(colour="red")
    with pytest.raises(errors.ConfigError, match='found "many"'):
        ssd.with_(channels="many")


def test_two_faults_are_two_lines(ssd: Ssd) -> None:
    with pytest.raises(errors.ConfigError) as caught:
        ssd.with_({"gc.victim": "gredy", "timing.read": 75})
    assert len(str(caught.value).splitlines()) == 2
    assert caught.value.hint


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda ssd: ssd.play("nothing"), errors.WorkloadError),
        (lambda ssd: ssd.precondition("full"), errors.WorkloadError),
        (lambda ssd: ssd.play("uniform", seed=-1), errors.WorkloadError),
        (lambda ssd: ssd.play("uniform", audit_every=-1), errors.WorkloadError),
        (lambda ssd: workloads.trace("nowhere.spc"), errors.TraceError),
        (lambda ssd: workloads.bundled("nothing"), errors.TraceError),
        (lambda ssd: ssd.with_(utilization=0.999).check(), errors.ConfigError),
        (lambda ssd: compare(ssd, "uniform", {}), errors.ConfigError),
    ],
)
def test_exceptions_are_one_tree(ssd: Ssd, call: object, kind: type[FlashwrightError]) -> None:
    assert callable(call)
    with pytest.raises(kind) as caught:
        call(ssd)
    assert isinstance(caught.value, FlashwrightError)
    assert str(caught.value)


def test_a_drive_that_wears_out_while_preconditioned(ssd: Ssd) -> None:
    worn = ssd.with_({"wear.pe-cycles-max": 2}).precondition("random:capacities=50")
    with pytest.raises(errors.WornOutError, match="reclaimable") as caught:
        worn.play("uniform", requests=10)
    assert "wear.pe-cycles-max" in caught.value.hint


def test_a_result_has_all_its_parts(run: RunResult, tmp_path: Path) -> None:
    assert run.violations == ()
    assert run.write_amplification == run.json["write_amplification"]
    assert run.erases_per_block.shape == run.valid_per_block.shape == (128,)
    layout = run.json["drive"]
    assert layout is not None and run.valid_per_block.sum() == layout["logical_pages"]
    erases = run.json["wear"]["erases_per_block"]
    assert (run.erases_per_block.min(), run.erases_per_block.max()) == (
        erases["min"],
        erases["max"],
    )
    assert set(run.response_distribution) == {"all", "read", "write"}
    run.to_json(tmp_path / "run.json")
    run.to_parquet(tmp_path / "windows.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "windows.parquet") == run.windows
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.json", "windows.parquet"]


def test_latencies_agree_with_the_rows(run: RunResult) -> None:
    rows = run.requests()
    assert rows.num_rows == 5000
    response = (rows["completion_ns"].to_numpy() - rows["arrival_ns"].to_numpy()).astype(float)
    assert run.latency_ns.mean == pytest.approx(response.mean(), rel=1e-12)
    assert run.latency_ns.quantile(1.0) == response.max()
    for share, nanos in run.latency_ns.quantile([0.5, 0.9, 0.99, 0.999]).items():
        exact = np.sort(response)[int(np.ceil(share * len(response))) - 1]
        assert nanos == pytest.approx(exact, rel=2e-3)
    writes = response[np.array(rows["kind"].to_pylist()) == "write"]
    assert run.latency_of("write").mean == pytest.approx(writes.mean(), rel=1e-12)
    times, shares = run.response_distribution["all"]
    assert (np.diff(times.astype(np.int64)) > 0).all()
    assert (np.diff(shares) >= 0).all()
    assert shares[-1] == 1.0


def test_rows_are_kept_only_when_asked(ssd: Ssd) -> None:
    plain = ssd.play("uniform", requests=10)
    with pytest.raises(errors.WorkloadError, match="not kept"):
        plain.requests()


def test_without_time_there_are_no_times(ssd: Ssd) -> None:
    run = ssd.with_(model="none").play("uniform", requests=100)
    assert run.latency_ns.quantile(0.5) is None
    assert run.latency_ns.quantile([0.123]) == {0.123: None}
    assert run.windows["iops"].null_count == run.windows.num_rows


def test_progress_tells_of_every_phase(ssd: Ssd) -> None:
    seen: list[Progress] = []
    ssd.precondition("random:capacities=400").play(
        "uniform", requests=400_000, warmup=400_000, progress=seen.append
    )
    phases = [now.phase for now in seen]
    assert set(phases) >= {"precondition", "warmup", "measured"}
    assert phases == sorted(phases, key=["precondition", "warmup", "measured", "done"].index)
    measured = [now for now in seen if now.phase == "measured"]
    assert all(now.total == 400_000 and now.done <= now.total for now in measured)


def test_an_interrupt_brings_the_result_along(ssd: Ssd) -> None:
    def press(now: Progress) -> None:
        if now.requests > 1000:
            raise KeyboardInterrupt

    with pytest.raises(RunInterrupted) as caught:
        ssd.play("uniform", requests=10**9, progress=press)
    assert isinstance(caught.value, KeyboardInterrupt)
    assert caught.value.result is not None
    assert caught.value.result.json["ended"] == "interrupted"


def test_runs_in_threads_know_nothing_of_each_other(ssd: Ssd) -> None:
    alone = {
        seed: ssd.play("uniform", requests=50_000, seed=seed).json["digest"] for seed in (1, 2)
    }
    found: dict[int, str | None] = {}

    def play(seed: int) -> None:
        found[seed] = ssd.play("uniform", requests=50_000, seed=seed).json["digest"]

    threads = [threading.Thread(target=play, args=(seed,)) for seed in alone]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == alone


def test_the_interpreter_is_free_while_a_run_goes(ssd: Ssd) -> None:
    thread = threading.Thread(target=lambda: ssd.play("uniform", requests=3_000_000))
    thread.start()
    ticks = 0
    while thread.is_alive():
        time.sleep(0.005)
        ticks += 1
    assert ticks > 10


@settings(max_examples=40, deadline=None)
@given(
    write=st.floats(0, 1),
    size=st.sampled_from(["512B", "4KiB", "20KiB"]),
    depth=st.integers(1, 64),
    seed=st.integers(0, 2**64 - 1),
    capacities=st.floats(1, 3),
)
def test_any_run_repeats_and_verifies(
    ssd: Ssd, write: float, size: str, depth: int, seed: int, capacities: float
) -> None:
    drive = ssd.precondition(f"random:capacities={capacities:.3f}")
    workload = workloads.uniform(write=write, size=size, depth=depth)
    assert workloads.parse(workload.spec) == workload
    first, second = (drive.play(workload, requests=500, seed=seed, verify=True) for _ in range(2))
    assert first.violations == ()
    assert first.json["digest"] == second.json["digest"]
    assert first.json["measured"]["requests"] == 500


def test_version() -> None:
    assert flashwright.__version__.count(".") == 2


def test_files_tell_what_was_played(tmp_path: Path) -> None:
    run = flashwright.Ssd.named("default").play(
        "stand-in:financial1", requests=500, keep_requests=True
    )
    run.to_parquet(tmp_path / "requests.parquet")
    metadata = pyarrow.parquet.read_schema(tmp_path / "requests.parquet").metadata
    assert b"stand-in" in metadata[b"flashwright.workload"]
    assert b"synthetic" in metadata[b"flashwright.workload_notes"]
    assert run.windows.schema.metadata[b"flashwright.seed"] == b"1"


def test_the_columns_of_a_trace_agree_with_what_is_told_of_it() -> None:
    source = workloads.bundled("sqlite")
    table, info = tracefiles.columns(source), tracefiles.info(source)
    assert table.num_rows == info["requests"]
    kinds = table["kind"].to_numpy(zero_copy_only=False)
    assert [(kinds == kind).sum() for kind in ("read", "write", "trim", "flush")] == [
        info[kind] for kind in ("reads", "writes", "trims", "flushes")
    ]
    sectors = table["sectors"].to_numpy().astype(np.int64)
    assert 512 * sectors[kinds == "write"].sum() == info["written_bytes"]
    transfers = (kinds == "read") | (kinds == "write")
    ends = table["first_sector"].to_numpy().astype(np.int64) + sectors
    assert 512 * ends[transfers].max() == info["end_byte"]
    arrivals = table["arrival_ns"].to_numpy()
    assert int(arrivals.max() - arrivals.min()) == info["span_ns"]
    first = tracefiles.columns(source, requests=5000)
    assert first.equals(table.slice(0, 5000))
    with pytest.raises(errors.WorkloadError, match="requests: found 0"):
        tracefiles.columns(source, requests=0)
    with pytest.raises(errors.TraceError, match="no such file"):
        tracefiles.columns("nowhere.spc")
