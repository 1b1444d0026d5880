"""What the command line says when something is wrong: these messages are interface."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import pytest

from conftest import Cli
from flashwright import __version__, devices
from flashwright.drive.catalogue import catalogue

KEYS_HINT = "hint: `flashwright devices default` prints a whole drive description\n"
WORKLOADS_HINT = "hint: `flashwright policies` lists the workloads with their keys\n"
# Lists of names grow; what is said around them is fixed.
NAMES = {
    key: ", ".join(item.name for item in items if not item.name.startswith("("))
    for key, items in catalogue().items()
}
DEVICES = ", ".join(devices())
TRACES_HINT = (
    "hint: `flashwright trace info FILE` shows what is in a trace; "
    "see also --format, --columns and --addresses\n"
)

# What is given to `simulate default`, and what is said.
OPTIONS: list[tuple[Sequence[str], str]] = [
    (
        ["--set", "gc.victim=gredy", "--set", "timing.read=75"],
        f'error: --set: gc.victim: found "gredy", expected {NAMES["gc.victim"]}; did you mean "greedy"?\n'
        'error: --set: timing.read: found 75, expected a time with its unit, such as "200 us"\n'
        + KEYS_HINT,
    ),
    (
        ["--set", "gc.victm=fifo"],
        "error: --set: gc.victm: unknown key; did you mean victim? (known here: ",
    ),
    (
        ["--set", "capacity.utilization=0.9999"],
        "error: default: capacity: 1048471 logical pages, but ",
    ),
    (
        ["--workload", "zip:acesses=2"],
        'error: workload "zip:acesses=2": workload: found "zip", expected one of '
        f"{NAMES['--workload']} (did you mean zipf?)\n" + WORKLOADS_HINT,
    ),
    (
        ["--workload", "uniform:write=1.5,depth=0"],
        'error: workload "uniform:write=1.5,depth=0": write: found "1.5", expected a share from 0 to 1, '
        'such as 0.7 or 70%; depth: found "0", expected a whole number from 1 up, such as 32\n'
        + WORKLOADS_HINT,
    ),
    (
        ["--workload", "uniform", "--trace", "x.spc"],
        "error: --workload and --trace: found both, expected one of them\nhint: leave one of them out\n",
    ),
    (
        ["--workload", "uniform", "--skip-bad-lines"],
        "error: --skip-bad-lines: found with --workload, expected only with --trace\n",
    ),
    (
        ["--trace", "missing.spc"],
        "error: missing.spc: there is no such file\nhint: bundled traces: bundled:",
    ),
    (
        ["--trace", "bundled:pgbank"],
        "error: there is no bundled trace 'pgbank'\nhint: bundled traces: bundled:",
    ),
    (
        ["--workload", "uniform", "--precondition", "full"],
        'error: --precondition: found "full", expected auto, workload, empty, sequential, random or steady; '
        "workload and random take :capacities=N with N of 1 or more, workload takes :scaled, "
        "and steady takes :laid-out\n" + WORKLOADS_HINT,
    ),
    (
        ["--workload", "uniform", "--window", "10"],
        "error: --window: found '10', expected requests=N, time=10ms or off\n"
        "hint: a window is the stretch that one point of the time series covers\n",
    ),
    (
        ["--workload", "uniform", "--closeup", "100"],
        "error: --closeup: found '100', expected FIRST:COUNT\n"
        "hint: such as 4920:100, the hundred requests from number 4920 on, counted from 0\n",
    ),
    (
        ["--workload", "uniform", "--closeup", "100:0", "--report", "run.html"],
        "error: --closeup: found '100:0', expected FIRST:COUNT",
    ),
    (
        ["--workload", "uniform", "--closeup", "100:10"],
        "error: --closeup: found alone, expected with --report or --closeup-out\n",
    ),
    (
        ["--workload", "uniform", "--closeup-out", "rows.parquet"],
        "error: --closeup-out: found without --closeup, expected both\n"
        "hint: say which requests, such as --closeup 4920:100\n",
    ),
    (
        ["--workload", "uniform", "--window", "time=10"],
        "error: --window: found 'time=10', expected requests=N, time=10ms or off\n"
        "hint: a window is the stretch that one point of the time series covers\n",
    ),
    (
        ["--workload", "uniform", "--requests", "0"],
        "error: --requests: found 0, expected a whole number from 1 up\n",
    ),
    (
        ["--workload", "uniform", "--depth", "4", "--time-scale", "0.5"],
        "error: --depth and --time-scale: found both, expected one of them\n"
        "hint: a closed loop ignores arrival times, so there is nothing to scale\n",
    ),
    (
        ["--workload", "uniform", "--json", "/nowhere/run.json"],
        "error: /nowhere/run.json: can't be written: no such file or directory\n"
        "hint: check that the folder exists and may be written to\n",
    ),
    (
        ["--workload", "uniform", "--report", "/"],
        "error: /: is a folder; expected the name of a file\nhint: give a file name within it\n",
    ),
    (
        ["--workload", "uniform", "--checkpoint-every", "5"],
        "error: --checkpoint-every: found without --checkpoint, expected both\n"
        "hint: name a file to save to\n",
    ),
    (
        ["--addresses", "wrp", "--trace", "bundled:pgbench"],
        "error: --addresses: found 'wrp', expected wrap, reject, dense, compact or scale[:SHARE]\n"
        "hint: wrap: modulo the drive's size; reject: an error beyond it; dense: packed in order of first use; "
        "compact: packed in order of address; scale: onto the drive, or a share of it up to 1, in order of address\n",
    ),
    (
        ["--trace", "bundled:pgbench", "--format", "sbc"],
        'error: there is no trace format "sbc"; did you mean "spc"?; known: flashwright, ',
    ),
    (
        ["--zzz"],
        "error: no such option: --zzz\nhint: `flashwright simulate --help` lists its options\n",
    ),
    (
        ["--resume", "missing.saved"],
        "error: missing.saved: no such file or directory\nhint: check the path\n",
    ),
    (
        ["--resume", "missing.saved", "--seed", "2"],
        "error: --seed: found with --resume, expected no option that defines a run\n"
        "hint: a saved run continues with the options that it was started with\n",
    ),
]


@pytest.mark.parametrize(
    ("options", "said"), OPTIONS, ids=[" ".join(options) for options, _ in OPTIONS]
)
def test_options(command: Cli, options: Sequence[str], said: str) -> None:
    found = command("simulate", "default", *options)
    assert found.status == 2
    assert found.out == ""
    if said.endswith("\n"):
        assert found.err == said
    else:
        assert found.err.startswith(said)


def test_an_unknown_drive(command: Cli) -> None:
    said = command("simulate", "defualt")
    assert (said.status, said.out) == (2, "")
    assert said.err == (
        f'error: drive: found "defualt", expected a bundled drive: {DEVICES}; did you mean "default"?\n'
        "hint: a drive is one of these names or the path of a TOML file\n"
    )


DRIVES: list[tuple[bytes, str]] = [
    (b"[geometry]\nchannels = = 3\n", "{path}: line 2: "),
    (b"[geometry]\nchannels = 0\n", "{path}: geometry.channels: found 0, expected 1 to 64\n"),
    (
        b"[timing]\nprogram = 600\n[gc]\nvictim = 'gredy'\n",
        '{path}: gc.victim: found "gredy", expected {victims}; did you mean "greedy"?\n'
        'error: {path}: timing.program: found 600, expected a time with its unit, such as "200 us"\n',
    ),
    (b"\xff\xfe", "{path}: not text in UTF-8: "),
]


@pytest.mark.parametrize(("content", "said"), DRIVES)
def test_drive_files(command: Cli, tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "drive.toml"
    path.write_bytes(content)
    found = command("simulate", path, "--workload", "uniform")
    assert found.status == 2
    assert found.err.startswith("error: " + said.format(path=path, victims=NAMES["gc.victim"]))
    assert found.err.endswith(KEYS_HINT)


def test_a_drive_file_that_is_not_there(command: Cli) -> None:
    said = command("simulate", "nowhere/drive.toml", "--workload", "uniform")
    assert said.err == "error: nowhere/drive.toml: no such file or directory\n" + KEYS_HINT


GOOD = b"0,100,4096,r,0.1\n0,200,4096,w,0.2\n"
TRACES: list[tuple[str, bytes, Sequence[str], str]] = [
    ("a.spc", GOOD + b"0,x,4096,w,0.3\n", [], ':3: field LBA: found "x", expected '),
    ("b.spc", GOOD + b"0,300,4096,w\n", ["--format", "spc"], ":3: "),
    ("empty.spc", b"", [], ": the file is empty"),
    ("noise.bin", bytes(range(256)) * 4, [], ": in no known format (tried "),
    ("cut.spc.gz", gzip.compress(GOOD * 1000)[:-20], [], ": the file is cut short"),
    ("other.spc", GOOD, ["--device", "7"], ": "),
]


@pytest.mark.parametrize(
    ("name", "content", "options", "said"), TRACES, ids=[row[0] for row in TRACES]
)
def test_traces(
    command: Cli,
    small: str,
    tmp_path: Path,
    name: str,
    content: bytes,
    options: Sequence[str],
    said: str,
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    found = command("simulate", small, "--trace", path, *options)
    assert found.status == 2
    assert found.err.startswith(f"error: {path}{said}")
    assert found.err.endswith(TRACES_HINT)


def test_bad_lines_may_be_skipped(command: Cli, small: str, tmp_path: Path) -> None:
    path = tmp_path / "some.spc"
    path.write_bytes(GOOD * 50 + b"0,x,4096,w,0.3\n" + GOOD * 50)
    said = command(
        "simulate", small, "--trace", path, "--skip-bad-lines", "--order", "as-is", "--json", "-"
    )
    assert said.status == 0
    assert "1 bad lines skipped" in said.json["workload_notes"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"something else", "is no saved run of Flashwright, or damaged at its start"),
        (
            b"flashwright checkpoint 1\n\xff\xff",
            f"another version: found a saved run of an earlier Flashwright, expected one of Flashwright {__version__}",
        ),
    ],
)
def test_what_is_no_saved_run(command: Cli, tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "run.saved"
    path.write_bytes(content)
    found = command("simulate", "--resume", path)
    assert found.status == 2
    assert found.err.splitlines()[0] == f"error: {path}: {said}"


def test_a_saved_run_that_is_damaged(command: Cli, small: str, tmp_path: Path) -> None:
    path = tmp_path / "run.saved"
    run = ("--workload", "uniform", "--requests", 5000, "--stop-after", 100, "--checkpoint", path)
    assert command("simulate", small, *run).status == 0
    data = bytearray(path.read_bytes())
    del data[-200:]
    path.write_bytes(data)
    said = command("simulate", "--resume", path)
    assert said.status == 2
    assert said.err.startswith(f"error: {path}: damaged: its checksum does not match\n")


def test_resume_on_another_drive(command: Cli, small: str, tmp_path: Path) -> None:
    path = tmp_path / "run.saved"
    run = ("--workload", "uniform", "--requests", 5000, "--stop-after", 100, "--checkpoint", path)
    command("simulate", small, *run)
    assert command("simulate", small, "--resume", path, "--quiet").status == 0
    said = command("simulate", "default", "--resume", path)
    assert said.err.startswith("error: default: found with --resume of a run on another drive\n")


@pytest.mark.parametrize(
    ("vary", "said"),
    [
        ([], "error: --vary: found nothing to vary, expected at least one key with its values\n"),
        (["gc.victim"], "error: --vary: found 'gc.victim', expected KEY=A,B,C\n"),
        (["gc.victim=greedy,ffo"], 'error: --vary gc.victim: found "ffo", expected greedy'),
        (["gc.color=red"], "error: gc.color: unknown key"),
    ],
)
def test_compare(command: Cli, vary: list[str], said: str) -> None:
    options = [word for text in vary for word in ("--vary", text)]
    found = command("compare", "default", "--workload", "uniform", *options)
    assert (found.status, found.out) == (2, "")
    assert found.err.startswith(said)


def test_a_drive_too_full_to_clean_is_found_out_before_any_run(command: Cli) -> None:
    found = command(
        "compare", "default", "--workload", "uniform", "--vary", "capacity.utilization=0.5,0.9999"
    )  # fmt: skip
    assert found.status == 2
    assert found.err.startswith("error: default: ")


def test_converting(command: Cli, spc: Path, tmp_path: Path) -> None:
    said = command("trace", "convert", spc, tmp_path / "out", "--to", "blktrace")
    assert said.status == 2
    assert said.err.startswith(
        "error: traces in format blktrace can be read but not written; writable: "
    )
    assert not (tmp_path / "out").exists()


def test_recording_what_is_no_device(command: Cli, tmp_path: Path) -> None:
    said = command("trace", "record", tmp_path / "nothing", "-o", tmp_path / "out.fwt")
    assert said.status == 2
    assert said.err.startswith("error: ")
    assert list(tmp_path.iterdir()) == []
