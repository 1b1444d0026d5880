"""Standard output that is closed, full or left, and disks that are full: one line, and nothing half-written."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Cli
from flashwright import Ssd

RUN = "simulate default --workload uniform --requests 2000"
FULL = "error: standard output: no space left on device\n"


def shell(line: str, folder: Path, **variables: str) -> tuple[int, str, str]:
    """What bash makes of a line in which FW is the command line."""
    fw = f"{shlex.quote(sys.executable)} -m flashwright"
    said = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line.replace("FW", fw)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **variables},
        timeout=60,
    )
    return said.returncode, said.stdout, said.stderr


@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        ("FW policies | true", 141, ""),
        (f"FW {RUN} | true", 141, ""),
        (f"FW {RUN} >/dev/full", 2, FULL),
        (f"FW {RUN} --json - >/dev/full", 2, FULL),
        ("FW --version >/dev/full", 2, FULL),
        ("FW --help >/dev/full", 2, FULL),
        (f"FW {RUN} >&-", 2, "error: standard output: bad file descriptor\n"),
        (f"FW {RUN} --quiet >&-", 0, ""),
        (f"FW {RUN} --quiet <&- >&- 2>&-", 0, ""),
        ("FW simulate nodrive 2>&-", 2, ""),
    ],
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_standard_output(
    line: str, status: int, said: str, unbuffered: str, tmp_path: Path
) -> None:
    assert shell(line, tmp_path, PYTHONUNBUFFERED=unbuffered) == (status, "", said)


def test_a_terminal_without_greek_letters(tmp_path: Path) -> None:
    status, out, err = shell(f"FW {RUN}", tmp_path, PYTHONIOENCODING="ascii")
    assert (status, err) == (0, "") and "digest" in out


FILES = ["--json", "--report", "--checkpoint", "--windows-out", "--requests-out"]


@pytest.mark.parametrize("option", FILES)
def test_a_full_disk(option: str, tmp_path: Path, command: Cli) -> None:
    name = "out.html" if option == "--report" else "out.parquet"
    path = tmp_path / name
    path.symlink_to("/dev/full")
    said = command(*RUN.split(), "--stop-after", 1000, option, path)
    assert said.status == 2
    assert said.err.splitlines()[0].startswith(f"error: {path}: "), said.err
    path.unlink()
    path.write_text("as it was")
    line = f"ulimit -f 1; FW {RUN} --stop-after 1000 --quiet {option} {path}"
    status, _, err = shell(line, tmp_path)
    if status != 0:  # a table of few rows may fit
        assert (status, err.splitlines()[0]) == (
            2,
            f"error: {path}: can't be written: file too large",
        )
        assert path.read_text() == "as it was"
    assert option == "--windows-out" or status == 2
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_folder_that_goes_away_meanwhile(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    result = Ssd.named("default").play("uniform", requests=10)
    folder.rmdir()
    with pytest.raises(Exception, match="can't be written: no such file or directory"):
        result.report(folder / "report.html")


def test_a_report_has_the_mode_of_ordinary_files(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    before = os.umask(0o027)
    try:
        Ssd.named("default").play("uniform", requests=10).report(path)
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
