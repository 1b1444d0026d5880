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
