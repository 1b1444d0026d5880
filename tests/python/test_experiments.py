"""The experiments play and judge; their numbers are looked at by people."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("figure", ["figure-2.4"])
def test_a_figure_of_hu_2012_plays_small(figure: str, tmp_path: Path) -> None:
    script = EXPERIMENTS / "hu-2012-ram" / "run.py"
    command = [sys.executable, script, figure, "--quick", "--jobs", "1", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = rows(tmp_path / f"{figure}.csv")
    schemes = {row["scheme"] for row in found}
    assert schemes == {"page", "dftl", "bplru", "pud-lru"}
    assert len(found) == 1 + 3 * 4
    assert all(int(row["erases"]) >= 0 and float(row["service_ms"]) >= 0 for row in found)
    # The baseline is what the others are set against.
    assert [row["service_to_page"] for row in found if row["scheme"] == "page"] == ["1.000"]
    # One switch merge a destage: padding makes whole blocks.
    for row in rows(tmp_path / "results.csv"):
        if row["scheme"] in ("bplru", "pud-lru"):
            assert row["merges_switch"] == row["destages"] == row["erases"]
            assert row["programs_translation"] == "0"


def test_drives_of_hu_2012_fill_small(tmp_path: Path) -> None:
    script = EXPERIMENTS / "hu-2012-anomalies" / "run.py"
    parts = (
        "--only",
        "fills",
        "--only",
        "reads",
        "--drive",
        "intel-320",
        "--drive",
        "ocz-vertex-3",
    )
    command = [sys.executable, script, "--quick", "--per-cent", "1", *parts, "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = rows(tmp_path / "fills.csv")
    intel = [row for row in found if row["drive"] == "intel-320"]
    assert [float(row["range"]) for row in intel] == [0.1, 0.5, 1.0]
    rho = [float(row["rho"]) for row in intel]
    assert rho == sorted(rho, reverse=True) and rho[0] > 0.9 and rho[-1] < 0.3
    assert {row["mapping"] for row in intel} == {"page"}
    # A log-block drive that was filled before has merged all along.
    filled = [row for row in found if row["prefilled"] == "1"]
    assert {row["drive"] for row in filled} == {"ocz-vertex-3"}
    assert all(float(row["rho"]) >= 0.9 for row in filled)
    whole = [row for row in rows(tmp_path / "reads.csv") if float(row["range"]) == 1]
    mean = [float(row["mean_ms"]) for row in whole]
    assert mean == sorted(mean) and mean[2] > 2 * mean[0]
