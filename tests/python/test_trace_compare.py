"""Comparing traces: statistics, distances, the table, the page, and what is played on a drive."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Cli
from flashwright import errors, workloads
from flashwright.traces import compare as comparing


def write_spc(path: Path, rows: list[tuple[int, int, str, float]]) -> Path:
    """A trace of SPC: first sector, bytes, kind, seconds."""
    path.write_text("".join(f"0,{at},{size},{kind},{when:.6f}\n" for at, size, kind, when in rows))
    return path


@pytest.fixture
def ones(tmp_path: Path) -> tuple[Path, Path]:
    """Writes of 4 KiB over 100 pages, each twice; and the same of 8 KiB, twice as fast."""
    rows = [(n % 100 * 8, 4096, "w", n * 0.01) for n in range(200)]
    wide = [(n % 100 * 16, 8192, "w", n * 0.005) for n in range(200)]
    return write_spc(tmp_path / "one.spc", rows), write_spc(tmp_path / "other.spc", wide)


def of(found: comparing.Comparison, name: str) -> comparing.Distance:
    return next(each for each in found.distances if each.name == name)


def test_distances_of_two_small_traces_worked_by_hand(ones: tuple[Path, Path]) -> None:
    found = comparing.compare(*map(str, ones))
    sizes = of(found, "write sizes")
    assert (sizes.first, sizes.second, sizes.gap) == (4096, 8192, 1.0)
    assert sizes.factor == pytest.approx(8193 / 4097)
    pages = of(found, "pages touched")
    assert (pages.first, pages.second, pages.gap, pages.factor) == (100, 200, None, 2)
    # 99 other pages since the last write, and 199; bins begin at 96 and 192.
    reuse = of(found, "writes of pages last written")
    assert (reuse.first, reuse.second) == (96, 192)
    assert of(found, "writes per second").factor == pytest.approx(2)
    assert of(found, "writes among requests").factor == 1
    assert not any("read" in each.name for each in found.distances)


def test_a_trace_is_not_apart_from_itself() -> None:
    found = comparing.compare("bundled:postmark", "bundled:postmark")
    assert all(each.gap in (0, None) and each.factor in (1, None) for each in found.distances)
    assert (found.gap, found.factor) == (0, 1)


def test_what_one_of_them_lacks_has_no_gap(tmp_path: Path, ones: tuple[Path, Path]) -> None:
    reads = write_spc(tmp_path / "reads.spc", [(n * 8, 4096, "r", n * 0.01) for n in range(50)])
    sizes = of(comparing.compare(str(ones[0]), str(reads)), "read sizes")
    assert (sizes.first, sizes.second, sizes.gap, sizes.factor) == (None, 4096, None, None)


def test_a_workload_is_as_long_as_the_trace_and_as_large_as_it_reaches(
    ones: tuple[Path, Path],
) -> None:
    found = comparing.compare("uniform:write=1,size=4KiB", str(ones[0]))
    assert found.first.statistics["requests"] == 200
    assert found.second.statistics["end_byte"] == 100 * 4096
    assert found.first.statistics["end_byte"] <= 100 * 4096
    assert found.first.statistics["footprint"]["pages"] > 60
    few = comparing.compare("uniform", str(ones[0]), requests=50, size=8 << 20)
    assert [each.statistics["requests"] for each in (few.first, few.second)] == [50, 50]
    assert few.first.statistics["end_byte"] > 4 << 20


def test_the_table_has_both_and_the_medians(command: Cli, ones: tuple[Path, Path]) -> None:
    said = command("trace", "compare", *ones).out
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert "A one.spc: 200 requests, 0 B read, 800 KiB written" in lines
    assert "write sizes 4.00 KiB 8.00 KiB 1.000 2.00" in lines
    assert "pages touched 100 200 2.00" in lines
    assert any(line.startswith("median gap ") for line in lines)


def test_json_and_page_have_statistics_and_curves(
    command: Cli, ones: tuple[Path, Path], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    found = command("trace", "compare", *ones, "--json", "-", "--report", page).json
    assert found["first"]["statistics"]["write_sizes"]["bytes"] == {
        "values": [4096],
        "weights": [200.0],
    }
    assert found["drive"] is None
    assert found["median_factor"] == pytest.approx(comparing.compare(*map(str, ones)).factor)
    text = page.read_text()
    for title in ("Sizes of writes", "Life of data", "Bursts by scale", "Drift of hot chunks"):
        assert title in text
    assert "Neither has such requests." in text


def test_both_are_played_on_a_drive(
    command: Cli, small: str, ones: tuple[Path, Path], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    options = ["--drive", small, "--precondition", "empty", "--set", "gc.victim=fifo"]
    said = command("trace", "compare", *ones, *options, "--report", page)
    assert "settled" in said.out
    assert "On the drive" in page.read_text()
    document = command("trace", "compare", *ones, *options, "--json", "-").json
    runs = document["drive"]["runs"]
    assert [run["label"] for run in runs] == ["one.spc", "other.spc"]
    assert [run["host"]["pages_written"] for run in runs] == [200, 400]
    assert {run["config"]["gc"]["victim"] for run in runs} == {"fifo"}


def test_a_workload_is_played_for_as_many_requests(
    command: Cli, small: str, ones: tuple[Path, Path]
) -> None:
    options = ["--drive", small, "--precondition", "empty", "--json", "-"]
    found = command("trace", "compare", ones[0], "uniform", *options).json
    assert [run["measured"]["requests"] for run in found["drive"]["runs"]] == [200, 200]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["postmark"], "postmark: found a program, which waits for a drive, expected a trace"),
        (["unifrm:write=1"], "unifrm:write=1: there is no such file"),
        (["uniform:wrte=1"], 'workload "uniform:wrte=1": wrte: found an unknown key'),
        (["uniform", "--set", "gc.victim=fifo"], "--set: found without --drive, expected both"),
        (["uniform", "--addresses", "dense"], "--addresses: found without --drive, expected both"),
        (["uniform", "--requests", "0"], "--requests: found 0, expected 1 or more"),
        (["uniform", "--size", "100"], "--size: found 100, expected 4,096 or more"),
        (["uniform", "--size", "much"], "found"),
    ],
)
def test_bad_input_is_refused_in_one_line(command: Cli, words: list[str], said: str) -> None:
    found = command("trace", "compare", "bundled:sqlite", *words)
    assert found.status == 2
    assert said in found.err.splitlines()[0]
    assert found.out == ""


def test_statistics_of_a_pipe_are_those_of_the_file(ones: tuple[Path, Path]) -> None:
    named = comparing.statistics(workloads.trace(ones[0]))
    assert named == comparing.statistics(str(ones[0]))
    with pytest.raises(errors.WorkloadError, match="size: found 1, expected 4,096 or more"):
        comparing.statistics("uniform", size=1)
