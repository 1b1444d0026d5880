"""What a shell completes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def asked(line: str, **more: str) -> str:
    """What zsh is answered for a line that stops there."""
    environment = {
        **os.environ,
        "_FLASHWRIGHT_COMPLETE": "complete_zsh",
        "_TYPER_COMPLETE_ARGS": line,
    }
    done = subprocess.run(
        [sys.executable, "-m", "flashwright"],
        env=environment | more,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("flashwright simu", '"simulate"'),
        ("flashwright compare --figures-s", '"--figures-size"'),
        ("flashwright simulate micron", '"micron-7450-max"'),
        ("flashwright serve hp-", '"hp-fx900"'),
        ("flashwright simulate default --set gc.vic", '"gc.victim="'),
        ("flashwright simulate default --set gc.victim=wind", '"gc.victim=windowed-greedy"'),
        ("flashwright probe --set geometry.chan", '"geometry.channels="'),
    ],
)
def test_lines(line: str, answer: str) -> None:
    assert answer in asked(line)


def test_it_is_installed_once_for_a_shell(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "flashwright", "--install-completion", "bash"],
        env={
            **os.environ,
            "HOME": str(tmp_path),
            "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "completion installed" in done.stdout, done
    script = next((tmp_path / ".bash_completions").iterdir()).read_text()
    assert "_FLASHWRIGHT_COMPLETE=complete_bash" in script
