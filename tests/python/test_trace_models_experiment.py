"""experiments/trace-models: halves lie on one footprint, distances are as its page says, and the quick form tells a
trace from uniform requests."""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "experiments" / "trace-models"
MODULES = ("figures", "halves", "run", "verdicts")


@pytest.fixture(scope="module")
def experiment() -> Iterator[dict[str, ModuleType]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        for name in MODULES:
            patch.delitem(sys.modules, name, raising=False)
        yield {name: importlib.import_module(name) for name in MODULES}
        for name in MODULES:
            sys.modules.pop(name, None)


def requests(experiment: dict[str, ModuleType], first: list[int], sectors: list[int]) -> Any:
    count = len(first)
    made = experiment["halves"].Requests
    return made(
        np.arange(count) * 1000,
        np.array([n % 2 == 0 for n in range(count)]),
        np.array(first),
        np.array(sectors),
    )


def test_untouched_chunks_are_left_out_and_neighbours_stay(
    experiment: dict[str, ModuleType],
) -> None:
    # Chunks of 128 sectors: 0, 10 and 11 (one request touches both), 40.
    packed = experiment["halves"]._packed(
        np.array([5, 10 * 128 + 100, 40 * 128 + 1]), np.array([8, 60, 1])
    )
    assert packed.tolist() == [5, 128 + 100, 3 * 128 + 1]


def test_the_table_of_verdicts_is_that_of_the_claims(
    experiment: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    verdicts = experiment["verdicts"]
    assert verdicts.main(["--check"]) == 0
    monkeypatch.setattr(verdicts, "TABLE", tmp_path / "verdicts.md")
    assert verdicts.main(["--check"]) == 1
    assert verdicts.main([]) == 0 and verdicts.main(["--check"]) == 0
    searched = [
        {"given": "", "verdict": "direction only"},
        {"given": "x: 2", "verdict": "reproduced"},
    ]
    claim = {"verdict": "not reproduced", "also": {"y": "reproduced"}, "searched": searched}
    assert verdicts.otherwise(claim) == ["y", "x: 2 (search)"]
    assert verdicts.experiment(claim) == "1 other reading, 1 setting"


def test_the_footprint_is_whole_chunks_and_a_saved_half_is_the_same(
    experiment: dict[str, ModuleType], tmp_path: Path
) -> None:
    from flashwright.traces import tracefiles

    made = requests(experiment, [0, 200, 128], [8, 16, 1])
    assert experiment["halves"].pages(made) == 32
    found = tracefiles.columns(made.save(tmp_path / "half.txt"))
    assert found["kind"].to_pylist() == ["write", "read", "write"]
    assert found["first_sector"].to_pylist() == [0, 200, 128]
    assert found["arrival_ns"].to_pylist() == [0, 1000, 2000]


def test_exchanged_halves_follow_one_gap_later(experiment: dict[str, ModuleType]) -> None:
    made = requests(experiment, [0, 8, 16, 24], [8, 8, 8, 8])
    first, second = made.part(slice(0, 2)), made.part(slice(2, None))
    assert second.then(first).arrival.tolist() == [0, 1000, 2000, 3000]
    assert second.then(first).first.tolist() == [16, 24, 0, 8]


def test_requests_without_locality_keep_mix_sizes_and_footprint(
    experiment: dict[str, ModuleType],
) -> None:
    half = requests(experiment, [0, 8, 16, 24], [8, 24, 8, 24])
    drawn = experiment["halves"].without_locality(half, 16, 4000, seed=1)
    # Reads have 24 sectors and writes 8, as before; a mean gap of 1000 ns.
    assert set(drawn.sectors[drawn.writes]) == {8}
    assert set(drawn.sectors[~drawn.writes]) == {24}
    assert drawn.writes.mean() == pytest.approx(0.5, abs=0.03)
    assert drawn.arrival[-1] / 3999 == pytest.approx(1000, rel=0.05)
    assert (drawn.first + drawn.sectors).max() <= 16 * 8
    assert set(drawn.first[drawn.writes] // 8) == set(range(16))


@pytest.mark.parametrize(
    ("name", "found", "expected", "distance"),
    [
        ("write p99", 2.0, 1.0, math.log(2)),
        ("write p99", 1.0, 2.0, math.log(2)),
        # 20 % of misses instead of 10 %.
        ("DFTL hits 1/8", 0.8, 0.9, math.log(2)),
        # No misses count as 0.5 %.
        ("DFTL hits 1/8", 1.0, 0.99, math.log(2)),
        ("read p50", 0.0, 1.0, math.log(1000)),
    ],
)
def test_distances(
    experiment: dict[str, ModuleType], name: str, found: float, expected: float, distance: float
) -> None:
    assert experiment["figures"].distance(name, found, expected) == pytest.approx(distance)


def test_the_quick_form_tells_a_trace_from_uniform_requests(
    experiment: dict[str, ModuleType], tmp_path: Path
) -> None:
    path = tmp_path / "found.json"
    assert experiment["run"].main(["--quick", "--trace", "postmark", "--json", str(path)]) == 0
    document = json.loads(path.read_text())
    (row,) = document["traces"]
    errors = row["figures"]["BPLRU pages a destage"]["errors"]
    assert errors["uniform"] > 2 * errors["first half"]
    assert document["total"]["candidates"]["first half"]["ratio"] == 1
    assert "DFTL hits 1/8" in row["figures"]


def test_an_unknown_trace_is_refused(experiment: dict[str, ModuleType]) -> None:
    with pytest.raises(Exception, match="--trace: found 'financial', expected one of financial1"):
        experiment["run"].main(["--trace", "financial"])


def test_an_absent_trace_is_skipped_and_said(
    experiment: dict[str, ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FLASHWRIGHT_TRACES", str(tmp_path))
    assert experiment["run"].main(["--quick", "--trace", "prxy_0"]) == 1
    said = capsys.readouterr()
    assert "prxy_0: skipped, prxy_0-first20k.msr.csv.zst is absent" in said.out
    assert "no trace to judge on" in said.err
