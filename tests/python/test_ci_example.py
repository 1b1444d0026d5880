"""The example of continuous integration: green as it is, red on a change that doubles writes, green after."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "ci"
_TOOLS = ("nbdfuse", "fusermount3", "losetup", "mkfs.ext4", "mount")
_CAN_MOUNT = (
    os.geteuid() == 0
    and Path("/dev/fuse").exists()
    and Path("/dev/loop-control").exists()
    and all(shutil.which(tool) for tool in _TOOLS)
)


def pushed(folder: Path, *options: str) -> tuple[bool, str]:
    """Whether the job of the example is green in a folder, and what it said."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            *options,
        ],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.returncode == 0, done.stdout


@pytest.mark.skipif(not _CAN_MOUNT, reason="needs root, FUSE, nbdfuse and loop devices")
def test_red_on_a_change_that_doubles_writes_and_green_after(tmp_path: Path) -> None:
    here = shutil.copytree(EXAMPLE, tmp_path / "ci")
    green, said = pushed(here)
    assert green, said

    # A table that nobody asked for takes each batch once more.
    application = here / "notes.py"
    before = application.read_text(encoding="utf-8")
    body = "    def add(self, texts: Iterable[str]) -> None:\n"
    assert body in before
    doubled = before.replace("def add(self, texts", "def _add(self, texts") + (
        "\n    def add(self, texts: Iterable[str]) -> None:\n"
        '        """Add notes, twice."""\n'
        '        self._base.execute("CREATE TABLE IF NOT EXISTS words (id INTEGER PRIMARY KEY, text TEXT)")\n'
        "        texts = list(texts)\n"
        "        self._add(texts)\n"
        "        with self._base:\n"
        '            self._base.execute("BEGIN")\n'
        '            self._base.executemany("INSERT INTO words (text) VALUES (?)", [(t,) for t in texts])\n'
    )
    application.write_text(doubled, encoding="utf-8")
    green, said = pushed(here)
    assert not green and "times the budget" in said, said

    application.write_text(before, encoding="utf-8")
    green, said = pushed(here)
    assert green, said

    # A change that is worth it brings its budget along.
    budget = json.loads((here / "budget.json").read_text(encoding="utf-8"))["bytes_to_flash"]
    application.write_text(doubled, encoding="utf-8")
    assert pushed(here, "--record-budget")[0]
    anew = json.loads((here / "budget.json").read_text(encoding="utf-8"))["bytes_to_flash"]
    assert 1.7 * budget < anew < 2.5 * budget
