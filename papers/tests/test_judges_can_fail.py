"""Judges that say *reproduced* are given wrong results, and must say something else.

A judge that says *not reproduced* or *direction only* of our own results has shown that it can. ``wrong_results.py``
draws from all.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import wrong_results
from wrong_results import OF_FILES, TRACES, of_another_file, recorded, verdict

import needs
from flashwright.sweeps.points import Store
from flashwright_papers import Verdict

# Seconds of one core that the quick runs of a judge may take to be tried in each run of the suite.
SOON_S = 2.0


def agreeing() -> list[str]:
    """Judges with short runs whose verdict on the last full run is that their rule is met."""
    return [
        name
        for name in wrong_results.judges()
        if recorded()[name]["judged"] == Verdict.REPRODUCED
        and name not in OF_FILES
        and wrong_results.seconds(name) <= SOON_S
    ]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("claims"))


@pytest.mark.parametrize("name", agreeing())
def test_a_judge_of_short_runs_fails_on_a_wrong_result(name: str, store: Store) -> None:
    rows = wrong_results.rows_of(name, store)
    if not any(rows.values()):
        pytest.skip(f"{needs.ABSENT}the traces that {name} rests on")
    said = verdict(name, rows)
    assert said is not None, f"{name}: its judge stops on rows of a quick run"
    # Where size decides, the smaller run is itself a result that the judge does not take for the paper's.
    if said is Verdict.REPRODUCED:
        wrong, then = wrong_results.worst(name, rows)
        assert then is not Verdict.REPRODUCED, f"{name}: reproduced whatever is wrong: {wrong}"


@pytest.mark.parametrize("name", OF_FILES)
def test_a_judge_of_files_fails_on_another_file(name: str) -> None:
    assert verdict(name, {}) is Verdict.REPRODUCED
    assert of_another_file(name) not in (None, Verdict.REPRODUCED)


def test_what_is_neither_run_nor_read_is_arithmetic_on_the_paper() -> None:
    """Such a judge can't fail on a result of ours, and its claim does not count as reproduced."""
    without = {
        name: each["verdict"]
        for name, each in recorded().items()
        if each["judged"] == Verdict.REPRODUCED
        and each["id"] in wrong_results.read()[each["paper"]].judges
        and not wrong_results.read()[each["paper"]].judges[each["id"]].needs
    }
    assert set(without) == {*OF_FILES, "kim-2011/K15"}
    assert set(without.values()) == {Verdict.CONSTRUCTION}


def test_judges_can_be_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    called = [os.fspath(wrong_results.__file__), "--store", str(tmp_path), "--only"]
    monkeypatch.setattr("sys.argv", [*called, "dftl/G1"])
    assert wrong_results.main() == 0
    said = capsys.readouterr().out
    assert "1 of 1 fail on a wrong result" in said
    assert "| dftl/G1 | file | reproduced | timing.erase: 6 ms | not reproduced |" in said
    monkeypatch.setattr("sys.argv", [*called, "dftl/G99"])
    with pytest.raises(SystemExit):
        wrong_results.main()
    assert "--only: found 'dftl/G99', expected one of" in capsys.readouterr().err


@pytest.mark.long
def test_of_judges_drawn_at_random_each_fails_on_a_wrong_result(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if not TRACES.is_dir():
        pytest.skip(f"{needs.ABSENT}traces, on which judges rest")
    monkeypatch.setattr("sys.argv", [os.fspath(wrong_results.__file__), "--store", str(tmp_path)])
    assert wrong_results.main() == 0, capsys.readouterr().out
