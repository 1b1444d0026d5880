"""The examples: each prints what is recorded beside it, and opens as a notebook."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("[0-9]*.py"))


def test_the_gallery_has_ten_or_eleven() -> None:
    numbers = [path.stem[:2] for path in SCRIPTS]
    assert numbers == [f"{at + 1:02}" for at in range(len(SCRIPTS))]
    assert len(SCRIPTS) in (10, 11)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_prints_what_is_recorded(script: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=EXAMPLES,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert ran.stdout == script.with_suffix(".out").read_text(encoding="utf-8"), (
        "where the new output is right: python tools/record_examples.py"
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_figure_that_cleaning_decides_has_settled_or_says_not(script: Path) -> None:
    printed = script.with_suffix(".out").read_text(encoding="utf-8")
    if re.search("amplification|programmed per page|blocks erased|response, ms", printed):
        verdict = re.search(r"settled: (\d+) of \1\b|^settled: write", printed, re.MULTILINE)
        text = script.read_text(encoding="utf-8")
        assert verdict or re.search(r"transient|not\s+(# )?settled", text), printed


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_is_short_and_has_cells(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    lines = text.splitlines()
    assert lines[0] == "# %% [markdown]" and lines[1].startswith("# # ")
    assert "?" in text.split("# %%")[1], "the first cell asks the question"
    assert 15 <= len(lines) <= 50
    assert sum(line.startswith("# %%") for line in lines) >= 3
    for cell in text.split("# %%")[1:]:
        head, *body = cell.splitlines()
        if head.strip() == "[markdown]":
            assert all(line.startswith("#") or not line for line in body)
