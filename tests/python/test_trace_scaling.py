"""Scaling, splitting and merging traces: what is kept, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Cli
from flashwright import errors, tracefiles, workloads


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Forty writes of 4 KiB, a page each, every 10 ms."""
    path = tmp_path / "trace.spc"
    path.write_text("".join(f"0,{n * 8},4096,w,{n * 0.01:.6f}\n" for n in range(40)))
    return path


def test_copies_multiply_requests_and_footprint_and_keep_the_rest(trace: Path) -> None:
    once = tracefiles.info(trace)
    found = tracefiles.info(workloads.trace(trace, scale_footprint=4))
    assert (found["requests"], found["pages"]) == (4 * once["requests"], 4 * once["pages"])
    assert found["bytes_mean"] == once["bytes_mean"]
    assert found["span_ns"] == once["span_ns"]
    rate = tracefiles.info(workloads.trace(trace, scale_footprint=4, time_scale=4.0))
    assert rate["requests_per_second"] == pytest.approx(once["requests_per_second"], rel=0.03)
    # Not in step: copies begin at requests 0, 10, 20 and 30.
    table = tracefiles.columns(workloads.trace(trace, scale_footprint=4), requests=4)
    assert [sector % 2048 for sector in table["first_sector"].to_pylist()] == [0, 80, 160, 240]


def test_a_range_is_a_trace_of_its_own(trace: Path) -> None:
    part = workloads.trace(trace, range=(10 * 4096, 20 * 4096))
    found = tracefiles.columns(part)
    assert found["first_sector"].to_pylist() == [n * 8 for n in range(10)]
    assert found["arrival_ns"].to_pylist()[:2] == [0, 10_000_000]


def test_a_run_plays_the_copies_and_says_so(command: Cli, small: str, trace: Path) -> None:
    options = ["--trace", trace, "--scale-footprint", 3, "--addresses", "dense", "--json", "-"]
    found = command("simulate", small, *options).json
    assert found["host"]["pages_written"] == 120
    assert "3 copies of the trace side by side" in found["workload_notes"]
    assert "120 distinct pages" in found["workload_notes"]


def test_times_are_scaled_once_in_a_run(command: Cli, small: str, trace: Path) -> None:
    def span(*options: object) -> float:
        found = command("simulate", small, "--trace", trace, *options, "--json", "-").json
        return float(found["measured"]["duration_ns"])

    assert span("--time-scale", 10) == pytest.approx(10 * span(), rel=0.02)


def test_convert_writes_what_was_scaled(command: Cli, trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.fwt"
    options = ["--scale-footprint", 2, "--time-scale", 0.5, "--range", "0:80KiB"]
    said = command("trace", "convert", trace, out, *options)
    assert said.status == 0
    assert f"{out}: 40 requests, format flashwright" in said.out
    found = tracefiles.info(out)
    # 20 of the 40 writes, in two copies, in half of the time.
    assert (found["pages"], found["span_ns"]) == (40, 95_000_000)


def test_tenants_are_merged_and_taken_apart(command: Cli, trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "both.fwt"
    said = command("trace", "merge", trace, trace, "-o", out, "--start", "0s", "--start", "1s")
    assert said.status == 0
    assert "tenants: trace, trace-2" in said.out
    found = tracefiles.info(out)
    assert [(each["name"], each["requests"]) for each in found["devices"]] == [
        ("trace", 40),
        ("trace-2", 40),
    ]
    assert found["span_ns"] == 1_390_000_000
    assert found["pages"] == 80
    alone = tracefiles.columns(workloads.trace(out, devices=["trace-2"]))
    assert alone.equals(tracefiles.columns(trace))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--scale-footprint", 65],
            "--scale-footprint: found 65, expected a whole number from 1 to 64",
        ),
        (["--time-scale", -1], "--time-scale: found -1, expected a number from 0 to 1,000,000"),
        (["--range", "1GiB"], "--range: found '1GiB', expected START:LENGTH"),
        (
            ["--range", "5:6"],
            "--range: found bytes 5 to 11, expected a start and a length in multiples",
        ),
        (
            ["--range", "1GiB:1GiB"],
            "no request in the whole trace: none of its 40 requests is within",
        ),
    ],
)
def test_what_breaks_the_bounds_is_refused_in_one_line(
    command: Cli, trace: Path, tmp_path: Path, words: list[object], said: str
) -> None:
    out = tmp_path / "out.fwt"
    found = command("trace", "convert", trace, out, *words)
    assert found.status == 2
    assert said in found.err.splitlines()[0]
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "IN: found one trace, expected two or more"),
        (["bundled:sqlite", "--start", "5"], '--start: found "5", expected a time with its unit'),
        (["nix.spc"], "nix.spc: there is no such file"),
        (
            ["bundled:sqlite", *["--start", "1s"] * 3],
            "--start: found 3 for 2 traces, expected at most one each",
        ),
        (["bundled:sqlite", "--to", "blktrace"], "traces in format blktrace can be read but not"),
    ],
)
def test_bad_merges_are_refused_in_one_line(
    command: Cli, trace: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    out = tmp_path / "out.fwt"
    found = command("trace", "merge", trace, *words, "-o", out)
    assert found.status == 2
    assert said in found.err.splitlines()[0]
    assert not out.exists()


def test_the_library_refuses_them_too(trace: Path, tmp_path: Path) -> None:
    with pytest.raises(errors.WorkloadError, match="scale_footprint: found 0"):
        workloads.trace(trace, scale_footprint=0)
    with pytest.raises(errors.WorkloadError, match="starts: found -1 s"):
        tracefiles.merge([trace, trace], tmp_path / "out.fwt", starts=[-1.0])


def test_reading_options_are_refused_beside_a_workload(command: Cli) -> None:
    found = command("simulate", "default", "--workload", "uniform", "--scale-footprint", 2)
    assert found.status == 2
    assert "--scale-footprint: found with --workload, expected only with --trace" in found.err
