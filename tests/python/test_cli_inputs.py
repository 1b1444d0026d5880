"""What commands take and where they write: sizes, pipes, byte order marks, based drives, formats by ending."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from conftest import SMALL, Cli
from flashwright import Ssd, cli, lifetime, replay, workloads
from flashwright.cli.help import PANELS
from flashwright.errors import ConfigError

RUN = ("--workload", "uniform:write=0.7,depth=4", "--requests", 300)


def flashwright(*arguments: object, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """The command line as a process of its own, with something on standard input."""
    command = [sys.executable, "-m", "flashwright", *map(str, arguments)]
    return subprocess.run(command, input=given, capture_output=True, check=False)


# Sizes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["4k", "4K", "4096", "4KiB", "4 KiB", "4kib", "4.096kB", "4_096"])
def test_a_size_is_read_in_every_spelling(text: str, tmp_path: Path) -> None:
    assert workloads.parse(f"uniform:size={text}").spec == "uniform:size=4KiB"
    ssd = Ssd.named("default").with_settings([f"geometry.page-size={text}"])
    assert ssd.config["geometry"]["page-size"] == "4 KiB"
    assert lifetime.parse_size(text) == 4096
    profile = Ssd.named("default").with_settings([f"host.profile.clustered-page={text}"])
    assert profile.config["host"]["profile"]["clustered-page"] == "4 KiB"
    drive = tmp_path / "drive.toml"
    drive.write_text(f'[geometry]\npage-size = "{text}"\n')
    assert Ssd.find(str(drive)) == Ssd.from_text("geometry.page-size = 4096", "drive")


def test_decimal_sizes_stay_decimal() -> None:
    assert lifetime.parse_size("4KB") == 4000
    assert lifetime.parse_size("1T") == 2**40
    assert lifetime.parse_size("1TB") == 10**12
    assert lifetime.parse_rate("20MB/s") == 20e6


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("geometry.page-size=4kk", 'found "4kk", expected a size such as "4 KiB", "4k" or 4096'),
        ("geometry.page-size=-1", 'found -1, expected a size such as "4 KiB", "4k" or 4096'),
        ("geometry.page-size=4.5", 'found 4.5, expected a size such as "4 KiB", "4k" or 4096'),
        ("timing.bus-rate=40M/s", 'found "40M/s", expected a rate with its unit'),
        ("timing.read=50", "found 50, expected a time with its unit"),
    ],
)
def test_bad_sizes_are_said_in_a_line(command: Cli, small: str, setting: str, said: str) -> None:
    found = command("simulate", small, *RUN, "--set", setting)
    assert found.status == 2
    assert found.err.splitlines()[0].startswith(f"error: --set: {setting.split('=')[0]}: {said}")


# Traces from pipes, and byte order marks ----------------------------------------------------------


def test_a_trace_comes_through_a_pipe(command: Cli, small: str, spc: Path) -> None:
    """Two devices end to end: their sizes are found in a first pass, so that a pipe must be kept."""
    want = command("simulate", small, "--trace", spc, "--json", "-").json
    for content in (spc.read_bytes(), gzip.compress(spc.read_bytes())):
        done = flashwright("simulate", small, "--trace", "-", "--json", "-", given=content)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["digest"] == want["digest"]
        assert found["workload"] == "trace standard input"
    stdin = flashwright("trace", "info", "/dev/stdin", "--json", "-", given=spc.read_bytes())
    assert json.loads(stdin.stdout)["requests"] == 3000
    vary = ("--vary", "depth=1,2", "--json", "-")
    both = flashwright("compare", small, "--trace", "-", *vary, given=spc.read_bytes())
    assert [run["measured"]["requests"] for run in json.loads(both.stdout)["runs"]] == [3000, 3000]


def test_a_named_pipe_is_a_trace(command: Cli, spc: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(spc.read_bytes()))
    writer.start()
    found = command("trace", "info", pipe, "--json", "-").json
    writer.join()
    assert (found["requests"], len(found["devices"])) == (3000, 2)


def test_converting_from_and_to_a_pipe(spc: Path) -> None:
    done = flashwright("trace", "convert", "-", "-", "--to", "spc", given=spc.read_bytes())
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == 3000 and done.stdout.startswith(b"0,")
    assert done.stderr.startswith(b"standard output: 3,000 requests, format spc")
    again = flashwright("trace", "convert", "-", "-", "-q", given=done.stdout)
    assert again.returncode == 0 and again.stderr == b""
    info = flashwright("trace", "info", "-", "--json", "-", given=again.stdout)
    assert json.loads(info.stdout)["format"] == "flashwright"


def test_what_cant_come_through_a_pipe(small: str, spc: Path, tmp_path: Path) -> None:
    empty = flashwright("trace", "info", "-")
    assert empty.returncode == 2
    assert empty.stderr.startswith(b"error: standard input: nothing came, expected a trace")
    saved = tmp_path / "run.saved"
    options = ("--trace", "-", "--checkpoint", saved, "--stop-after", 100)
    done = flashwright("simulate", small, *options, given=spc.read_bytes())
    assert done.returncode == 2 and not saved.exists()
    assert done.stderr.startswith(b"error: --checkpoint: found with a trace from a pipe")


def test_byte_order_marks_are_taken(command: Cli, spc: Path, tmp_path: Path) -> None:
    marked = tmp_path / "marked.spc.gz"
    marked.write_bytes(gzip.compress(b"\xef\xbb\xbf" + spc.read_bytes()))
    want = command("trace", "info", spc, "--json", "-").json
    assert command("trace", "info", marked, "--json", "-").json == want
    drive = tmp_path / "marked.toml"
    drive.write_text("\ufeff" + SMALL, encoding="utf-8")
    assert Ssd.find(str(drive)) == Ssd.from_text(SMALL, "marked")
    sweep = tmp_path / "sweep.toml"
    text = '\ufeffworkload = "uniform"\nrequests = 100\n[grid]\n"gc.victim" = ["fifo"]\n'
    sweep.write_text(text, encoding="utf-8")
    assert command("sweep", sweep, "--plan").status == 0


# Drives based on others ---------------------------------------------------------------------------


def test_a_drive_is_based_on_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "top.toml").write_text('base = "parts/middle.toml"\n[gc]\nvictim = "fifo"\n')
    (tmp_path / "parts" / "middle.toml").write_text('base = "../root.toml"\ngeometry.channels = 8')
    (tmp_path / "root.toml").write_text('base = "mlc-sata"\nname = "root"\n')
    monkeypatch.chdir("/")
    found = Ssd.from_toml(tmp_path / "top.toml")
    want = Ssd.named("mlc-sata").with_settings(
        ["geometry.channels=8", "gc.victim=fifo", "name=top"]
    )
    assert found == want


@pytest.mark.parametrize(
    ("base", "said"),
    [
        ("./top.toml", "top.toml: base: found a circle, expected an end to it: "),
        ("./turn.toml", "turn.toml: base: found a circle, expected an end to it: "),
        ("./none.toml", "top.toml: base: found './none.toml', expected a drive's file there: "),
        ("none", 'top.toml: base: found "none", expected a bundled drive: default, '),
        ("./bad.toml", "bad.toml: geometry.channel: unknown key; did you mean channels?"),
    ],
)
def test_bad_bases_are_said_in_a_line(command: Cli, tmp_path: Path, base: str, said: str) -> None:
    (tmp_path / "top.toml").write_text(f'base = "{base}"\n')
    (tmp_path / "turn.toml").write_text('base = "./top.toml"\n')
    (tmp_path / "bad.toml").write_text("[geometry]\nchannel = 3\n")
    found = command("devices", tmp_path / "top.toml")
    assert found.status == 2
    lines = found.err.splitlines()
    assert said in lines[0] and lines[0].startswith("error: ")
    assert len(lines) == 2 and lines[1].startswith("hint: ")


def test_a_text_has_no_folder_to_look_in() -> None:
    with pytest.raises(ConfigError, match="expected the name of a bundled drive"):
        Ssd.from_text('base = "./mine.toml"')


# Where results go ---------------------------------------------------------------------------------


def test_tables_are_written_by_their_ending(command: Cli, small: str, tmp_path: Path) -> None:
    names = ("rows.parquet", "rows.arrow", "rows.feather", "rows.csv", "rows.json")
    for name in names:
        said = command("simulate", small, *RUN, "-q", "--requests-out", tmp_path / name)
        assert (said.status, said.err) == (0, "")
    want = pyarrow.parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    assert len(want) == 300 and want[0]["kind"] in ("read", "write")
    for name in ("rows.arrow", "rows.feather"):
        assert pyarrow.feather.read_table(tmp_path / name).to_pylist() == want
    assert pyarrow.csv.read_csv(tmp_path / "rows.csv").to_pylist() == want
    assert json.loads((tmp_path / "rows.json").read_text()) == want


def test_every_figure_of_a_comparison_can_be_csv(command: Cli, small: str, tmp_path: Path) -> None:
    rows = tmp_path / "runs.csv"
    vary = ("--vary", "ftl.scheme=page,fast")
    assert command("compare", small, *RUN, *vary, "-q", "--out", rows).status == 0
    found = pyarrow.csv.read_csv(rows)
    assert found["ftl.scheme"].to_pylist() == ["page", "fast"]
    assert "merges.full_by_data_blocks" in found.column_names


REFUSED: list[tuple[Sequence[object], str]] = [
    (("--windows-out", "rows.xlsx"), "--windows-out: found 'rows.xlsx', expected a file whose "),
    (("--requests-out", "rows"), "--requests-out: found 'rows', expected a file whose name ends"),
    (("--windows-out", "-"), "--windows-out: found '-', expected a file whose name ends in "),
    (("--report", "page.pdf"), "--report: found 'page.pdf', expected a file whose name ends in "),
    (("--report", "-"), "--report: found '-', expected the name of a file"),
    (("--checkpoint", "-"), "FILE: found '-', expected the name of a file"),
]


@pytest.mark.parametrize(("options", "said"), REFUSED)
def test_odd_endings_are_refused_before_the_run(
    command: Cli,
    small: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: Sequence[object],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    found = command("simulate", small, *RUN, *options)
    assert (found.status, found.out) == (2, "")
    assert found.err.startswith(f"error: {said}")
    assert sorted(tmp_path.iterdir()) == before


# Names of options ---------------------------------------------------------------------------------


def test_old_names_do_what_new_ones_do(command: Cli, small: str, spc: Path, tmp_path: Path) -> None:
    target = ("replay", f"sim:{small}", "--trace", spc, "--json", "-")
    new = command(*target, "--time-scale", 0.5, "--addresses", "wrap")
    old = command(*target, "--speed", 2, "--wrap")
    assert old.json["measured"] == new.json["measured"]
    assert old.json["pace"] == new.json["pace"] == {"open": {"time_scale": 0.5}}
    assert new.err == ""
    assert old.err == (
        "note: --speed is an old name; write --time-scale 0.5, its inverse\n"
        "note: --wrap is an old name; write --addresses wrap\n"
    )
    rows = tmp_path / "runs.parquet"
    said = command("compare", small, *RUN, "--vary", "depth=1,2", "--parquet", rows)
    assert said.err == "note: --parquet is an old name; write --out\n" and rows.exists()
    said = command("trace", "convert", spc, tmp_path / "out", "--format", "fio")
    assert said.err.startswith("note: --format is an old name; write --to\n")
    both = command("trace", "convert", spc, tmp_path / "out", "--format", "fio", "--to", "fio")
    assert both.status == 2
    assert both.err.startswith("error: --format and --to: found both, expected --to only\n")


def test_dense_addresses_fit_a_replays_target(command: Cli, small: str, spc: Path) -> None:
    target = ("replay", f"sim:{small}", "--trace", spc)
    assert command(*target).status == 2
    dense = command(*target, "--addresses", "dense", "--requests", 500, "--json", "-")
    assert dense.status == 0
    assert any("dense" in note for note in dense.json["workload_notes"])
    assert command(*target, "--addresses", "odd").err.startswith("error: --addresses: found 'odd'")


def test_old_arguments_of_a_replay_warn(small: str) -> None:
    with pytest.warns(DeprecationWarning, match="speed is now time_scale"):
        found = replay(f"sim:{small}", "uniform:rate=1000", requests=100, speed=4)
    assert found.json["pace"] == {"open": {"time_scale": 0.25}}


def test_without_a_drive_the_default_one_is_played(command: Cli) -> None:
    said = command("simulate", *RUN)
    assert said.status == 0 and "default: 3.60 GiB" in said.out
    assert said.err == "note: no DEVICE: playing on the bundled drive default\n"


# Help ---------------------------------------------------------------------------------------------

COMMANDS = [
    "simulate", "compare", "replay", "advise space", "advise placement", "advise host", "lifetime formula",
    "lifetime simulate", "lifetime forecast", "lifetime smart", "reproduce", "sweep", "trace info",
    "trace convert", "trace record", "policies", "devices", "new ftl",
]  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_help_lists_every_option_in_a_group(command: Cli, name: str) -> None:
    said = command(*name.split(), "--help")
    assert said.status == 0
    assert [line for line in said.out.splitlines() if len(line) > 80] == []
    listed = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", said.out, re.MULTILINE)
    assert "--help" in listed
    assert "\nMore:\n" not in said.out
    assert "<str>" not in said.out and "[required]" not in said.out


def test_help_names_the_groups_and_hides_old_names(command: Cli) -> None:
    said = command("simulate", "--help").out
    for group in ("Workload", "The drive", "Saving and resuming", "Output"):
        assert f"\n{group}:\n" in said and group in PANELS
    assert said.startswith("Usage: flashwright simulate [OPTIONS] [DEVICE]\n")
    assert "--speed" not in command("replay", "--help").out
    top = command("--help").out
    for group in ("Simulate", "Examine a drive", "Plan", "Papers and grids", "Traces and lists"):
        assert f"\n{group}:\n" in top
    examples = re.findall(r"^    flashwright .*", top, re.MULTILINE)
    assert len(examples) == 3 and "..." not in top.replace("[ARGS]...", "")
    assert cli.run([]) == 0
