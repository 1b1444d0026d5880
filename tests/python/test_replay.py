"""Replays on files, loop devices and simulated drives, and what is said when they can't be.

Where the kernel gives no io_uring, or without root, the tests that need it say so and are skipped.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import needs
from conftest import Cli
from flashwright import ReplayInterrupted, Ssd, errors, replay, workloads

MIB = 1 << 20


def _has_rings(path: Path) -> bool:
    try:
        replay(path, "uniform:write=0", requests=1)
    except errors.TargetError as error:
        if "io_uring" in str(error) or "direct I/O" in str(error):
            return False
        raise
    return True


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A file of 8 MiB that can be played on."""
    path = tmp_path / "disk.img"
    path.write_bytes(b"\xa5" * (8 * MIB))
    if not _has_rings(path):
        needs.refused("no io_uring or no direct I/O")
    return path


@pytest.fixture
def loop(image: Path) -> Iterator[str]:
    """A loop device over that file."""
    needs.root()
    made = subprocess.run(
        [needs.need("losetup"), "--find", "--show", str(image)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        needs.refused(f"no loop device is to be had: {made.stderr.strip()}")
    device = made.stdout.strip()
    yield device
    subprocess.run(["losetup", "--detach", device], check=True)


def test_reads_alone_are_played_without_consent(
    command: Cli, image: Path, spc: Path, tmp_path: Path
) -> None:
    """A third of the trace reads; the file stays as it is, and all of this is said."""
    page = tmp_path / "replay.html"
    said = command(
        "replay",
        image,
        "--trace",
        spc,
        "--addresses",
        "wrap",
        "--depth",
        8,
        "--json",
        "-",
        "--report",
        page,
    )
    assert said.status == 0
    assert said.err == (
        "note: 2,000 requests that would change the device were skipped (--destroys-data plays them)\n"
    )
    found = said.json
    assert found["requests"]["read"] == found["measured"]["requests"] == 1000
    assert found["left_out"] == {"writes": 2000, "trims": 0, "flushes": 0}
    assert found["response_time_ns"]["read"]["count"] == 1000
    assert found["response_time_ns"]["write"]["mean"] is None
    assert found["host"]["bytes"] == 1000 * 4096
    assert found["throughput"]["iops"] > 0
    assert found["write_amplification"] is None and found["flash"]["erases"]["total"] is None
    assert found["ended"] == "complete" and found["lateness_ns"] is None
    assert image.read_bytes() == b"\xa5" * (8 * MIB)
    text = page.read_text()
    assert "Response times" in text and "Over time" in text and str(image) in text
    assert "reads only: 2,000 requests left out" in text
    # What a device does not tell has no empty place on the page.
    assert "Where writes come from" not in text and "Dies and channels" not in text


def test_arrivals_are_kept(image: Path, spc: Path) -> None:
    """3,000 requests 10 us apart, played ten times as slowly, take 300 ms at least, on time or late."""
    source = workloads.trace(spc)
    found = replay(image, source, addresses="wrap", time_scale=10)
    took: Any = found.json["measured"]["duration_ns"]
    assert took >= 2999 * 100_000 - 200_000
    late: Any = found.json["lateness_ns"]
    assert late["count"] == 1000 and 0 <= late["p50"] <= late["max"]
    assert len(found.lateness_distribution[0]) > 1
    assert found.windows["requests"].to_pylist()[-1] > 0
    assert sum(found.windows["requests"].to_pylist()) == 1000


def test_consent_writes(image: Path) -> None:
    """With consent about half of the pages are written to; the data is the seed's."""
    found = replay(
        image,
        "uniform:write=0.5,trim=0.1",
        requests=2000,
        depth=16,
        destroys_data=True,
        seed=3,
    )
    requests = found.json["requests"]
    assert min(requests[kind] for kind in ("read", "write", "trim")) > 100
    assert found.json["left_out"] == {"writes": 0, "trims": 0, "flushes": 0}
    pages = [image.read_bytes()[at : at + 4096] for at in range(0, 8 * MIB, 4096)]
    touched = {page for page in pages if page != b"\xa5" * 4096}
    # 1,000 writes over 2,048 pages leave 61 % untouched; trims give some back.
    assert 400 < len(touched) < 1000


def test_a_scheduler_stands_before_a_device(command: Cli, image: Path, tmp_path: Path) -> None:
    """Sequential reads are merged, and what the scheduler did is shown."""
    profile = tmp_path / "drive.toml"
    profile.write_text('[profile]\nclustered-page = "16 KiB"\n')
    options = ["--workload", "sequential:write=0", "--requests", 2000, "--depth", 64]
    options += ["--scheduler", "noop", "--profile", profile, "--queue-depth", 2]
    said = command("replay", image, *options, "--json", "-")
    assert said.status == 0, said.err
    (layer,) = said.json["host_layers"]
    assert layer["scheduler"] == "noop" and layer["back_merges"] > 0
    assert layer["reads"]["aligned_at_start"] is not None
    assert said.json["measured"]["requests"] == 2000 and said.json["target"]["name"] == str(image)
    shown = command("replay", image, *options)
    assert "noop, reads" in shown.out and "response read" in shown.out


def test_simulated_drives_are_played_by_the_same_code(command: Cli) -> None:
    """What a run finds, a replay finds too, preconditioned or not."""
    options = ["--workload", "zipf:write=0.6", "--requests", 5000, "--depth", 8]
    options += ["--precondition", "sequential", "--set", "geometry.blocks-per-plane=64"]
    replayed = command("replay", "sim:default", *options, "--json", "-").json
    played = command("simulate", "default", *options, "--json", "-").json
    for name in ("measured", "response_time_ns", "service_time_ns", "throughput", "config"):
        assert replayed[name] == played[name], name
    assert set(played) - set(replayed) <= {"scheme", "drive", "digest", "violations"}


def test_a_device_that_fails_keeps_what_was_finished(command: Cli, image: Path) -> None:
    """Half of the file goes away under the replay: exit 1, the place, and the figures until then."""
    cut = threading.Timer(0.5, os.truncate, (image, 4 * MIB))
    cut.start()
    options = ["--workload", "uniform:write=0", "--depth", 4, "--time-limit", 60, "--json", "-"]
    began = time.monotonic()
    said = command("replay", image, *options)
    cut.join()
    assert said.status == 1 and time.monotonic() - began < 30
    assert said.err.startswith("error: the device failed: read of 4 KiB at byte ")
    assert said.err.endswith("hint: the figures cover what was finished before\n")
    found = said.json
    assert found["ended"] == "failed" and "only 0 of 4096 B were transferred" in found["note"]
    assert found["measured"]["requests"] > 100
    assert found["response_time_ns"]["all"]["count"] == found["measured"]["requests"]


def test_an_interruption_keeps_what_was_finished(image: Path) -> None:
    """Ctrl-C from a script, also while an arrival far away is slept for."""
    seen = []

    def stop(progress: object) -> None:
        seen.append(progress)
        if len(seen) == 3:
            raise KeyboardInterrupt

    for workload in ("uniform:write=0,depth=4", "uniform:write=0,rate=1"):
        seen.clear()
        with pytest.raises(ReplayInterrupted) as interrupted:
            replay(image, workload, time_limit=600, progress=stop)
        result = interrupted.value.result
        assert result is not None and result.ended == "interrupted"
        if "depth" in workload:
            assert result.json["measured"]["requests"] > 0


def test_ctrl_c_on_the_command_line(image: Path, tmp_path: Path) -> None:
    """Exit 130 with the figures written."""
    out = tmp_path / "out.json"
    options = ["--workload", "uniform:write=0", "--time-limit", "600", "--json", str(out)]
    child = subprocess.Popen(
        [sys.executable, "-m", "flashwright", "replay", str(image), *options, "--progress"],
        stderr=subprocess.PIPE,
        text=True,
    )
    # The bar comes after a second of playing.
    assert child.stderr is not None
    while not child.stderr.read(1):
        pass
    child.send_signal(signal.SIGINT)
    _, rest = child.communicate(timeout=60)
    assert child.returncode == 130 and "interrupted; the figures cover" in rest
    found = json.loads(out.read_text())
    assert found["ended"] == "interrupted" and found["measured"]["requests"] > 0


def test_a_time_limit_ends_a_replay(image: Path) -> None:
    """A quarter of a second, and what is in flight then."""
    found = replay(image, "uniform:write=0", depth=2, time_limit=0.25)
    assert found.ended == "time-limit"
    took: Any = found.json["measured"]["duration_ns"]
    assert 0.2e9 < took < 20e9


def test_a_loop_device_end_to_end(command: Cli, loop: str, image: Path) -> None:
    """Reads, then writes; a second writer and its file are refused meanwhile, and so is a mounted one."""
    options = ["--workload", "uniform:write=0.5", "--requests", 500, "--depth", 8, "--json", "-"]
    said = command("replay", loop, *options)
    assert said.status == 0 and said.json["target"]["capacity_bytes"] == 8 * MIB
    assert said.json["config"]["kind"] == "block-device"
    said = command("replay", loop, *options, "--destroys-data")
    assert said.status == 0 and said.json["requests"]["write"] > 100
    assert image.read_bytes() != b"\xa5" * (8 * MIB)

    held = command("replay", image, *options, "--destroys-data")
    assert held.status == 2 and f"{image} is in use by loop" in held.err

    subprocess.run([needs.need("mkfs.ext4"), "-q", "-F", loop], check=True)
    at = image.with_name("mounted")
    at.mkdir()
    if subprocess.run([needs.need("mount"), loop, str(at)], check=False).returncode != 0:
        needs.refused("nothing can be mounted")
    try:
        before = image.read_bytes()
        said = command("replay", loop, *options, "--destroys-data")
        assert said.err == (
            f"error: {loop}: {loop} is mounted on {at}\n"
            "hint: unmount it first, or leave out --destroys-data to play only the reads\n"
        )
        assert said.status == 2 and image.read_bytes() == before
    finally:
        subprocess.run(["umount", str(at)], check=True)


READS = ["--workload", "uniform:write=0"]
FOLDER_HINT = "hint: such as /dev/nvme0n1, or a file made by `fallocate --length 1GiB FILE`\n"

# What is given to `replay TARGET`, and what is said. IMAGE is the file of 8 MiB, TRACE the trace.
BAD: list[tuple[Sequence[str], str]] = [
    (
        ["/no/such/disk", *READS],
        "error: /no/such/disk: no such file or device\n"
        "hint: check the path; TARGET is a block device, a file, or sim:DEVICE\n",
    ),
    (
        ["/dev", *READS],
        "error: /dev: found a folder, expected a block device or a regular file\n" + FOLDER_HINT,
    ),
    (
        ["/dev/null", *READS, "--destroys-data"],
        "error: /dev/null: found a character device, expected a block device or a regular file\n"
        + FOLDER_HINT,
    ),
    (
        ["EMPTY", *READS],
        "error: EMPTY: found 0 B, expected at least ",
    ),
    (
        ["IMAGE"],
        "error: --workload and --trace: found neither, expected one of them\n"
        "hint: such as --workload uniform:write=0, or --trace bundled:pgbench\n",
    ),
    (
        ["IMAGE", *READS, "--trace", "TRACE"],
        "error: --workload and --trace: found both, expected one of them\n",
    ),
    (
        ["IMAGE", "--workload", "uniform"],
        "error: nothing to play: all 4096 requests would change the device, and only "
        "reads may be played\n"
        "hint: set write=0 in --workload to play only reads; --destroys-data plays writes too and overwrites "
        "the data on the device\n",
    ),
    (
        ["IMAGE", "--trace", "TRACE"],
        "error: request 2998 (read of 4 KiB) ends at 15200 KiB, but the device has 8 MiB\n",
    ),
    (
        ["IMAGE", *READS, "--depth", "4097"],
        "error: --depth: found 4097, expected 1 to 4096\n",
    ),
    (
        ["IMAGE", *READS, "--depth", "0"],
        "error: --depth: found 0, expected a whole number from 1 up\n",
    ),
    (
        ["IMAGE", *READS, "--depth", "4", "--time-scale", "2"],
        "error: --depth and --time-scale: found both, expected one of them\n",
    ),
    (
        ["IMAGE", *READS, "--speed", "0"],
        "error: --speed: found 0, expected a number from 0.000001 to 1,000,000\n",
    ),
    (
        ["IMAGE", *READS, "--time-limit", "-3"],
        "error: --time-limit: found -3, expected a number from 0.000001 to 1,000,000\n",
    ),
    (
        ["IMAGE", *READS, "--addresses", "wrap"],
        "error: --addresses: found with a generator, expected only with a trace\n",
    ),
    (
        ["IMAGE", *READS, "--format", "spc"],
        "error: --format: found with --workload, expected only with --trace\n",
    ),
    (
        ["IMAGE", *READS, "--precondition", "random"],
        "error: --precondition: found with a device or file, expected only with sim:DEVICE\n",
    ),
    (
        ["IMAGE", *READS, "--set", "gc.victim=fifo"],
        "error: --set: gc.victim: found with a device or file, expected only with sim:DEVICE\n",
    ),
    (
        ["IMAGE", *READS, "--scheduler", "elevator"],
        'error: --set: host.scheduler: found "elevator", expected ',
    ),
    (
        ["IMAGE", *READS, "--profile", "EMPTY"],
        "error: EMPTY: found nothing, expected sizes as text\n",
    ),
    (
        ["IMAGE", *READS, "--profile", "/no/such/file"],
        "error: /no/such/file: no such file or directory\n",
    ),
    (
        ["sim:default", *READS, "--queue-depth", "4"],
        "error: --queue-depth: found with a simulated drive, expected only with a device or file\n",
    ),
    (["sim:nothing", *READS], "error: drive: "),
    (
        ["IMAGE", *READS, "--json", "/no/such/folder/x"],
        "error: /no/such/folder/x: can't be written",
    ),
    (["IMAGE", "--workload", "zip"], 'error: workload "zip": '),
    (["IMAGE", "--trace", "/no/such/trace"], "error: /no/such/trace: there is no such file\n"),
]


@pytest.mark.parametrize(("arguments", "expected"), BAD)
def test_bad_input(
    command: Cli,
    image: Path,
    spc: Path,
    tmp_path: Path,
    arguments: Sequence[str],
    expected: str,
) -> None:
    """One line, a hint, exit 2; and nothing was written."""
    empty = tmp_path / "empty.img"
    empty.touch()
    names = {"IMAGE": str(image), "TRACE": str(spc), "EMPTY": str(empty)}
    said = command("replay", *(names.get(argument, argument) for argument in arguments))
    for name, path in names.items():
        expected = expected.replace(f" {name}:", f" {path}:")
    assert said.err.startswith(expected), said.err
    assert (said.status, said.out) == (2, "")
    assert said.err.count("error: ") == 1
    assert image.read_bytes() == b"\xa5" * (8 * MIB)


def test_a_locked_file_is_refused_until_it_is_let_go(image: Path) -> None:
    """Two writers at once; and after the first the second may."""
    writes = "uniform:write=1,depth=2"
    first = threading.Thread(
        target=replay, args=(image, writes), kwargs={"time_limit": 1.0, "destroys_data": True}
    )
    first.start()
    time.sleep(0.4)
    with pytest.raises(errors.TargetError, match="it is locked by another program") as refused:
        replay(image, writes, requests=10, destroys_data=True)
    assert refused.value.hint.startswith("end that program first")
    first.join()
    assert replay(image, writes, requests=10, destroys_data=True).ended == "complete"


def test_without_permission_a_target_is_refused() -> None:
    """As nobody: a file that only root may read."""
    needs.root()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "disk.img"
        path.write_bytes(bytes(MIB))
        path.chmod(0o600)
        os.seteuid(65534)
        try:
            with pytest.raises(errors.TargetError) as refused:
                replay(path, "uniform:write=0", requests=1)
        finally:
            os.seteuid(0)
    assert str(refused.value) == f"{path}: no permission to open it for reading"
    assert refused.value.hint.startswith("block devices need root or membership in the group")


def test_an_ssd_is_a_target_too() -> None:
    """Its own precondition holds unless another is asked for."""
    ssd = Ssd.named("default").with_({"geometry.blocks-per-plane": 64}).precondition("sequential")
    found = replay(ssd, "uniform:write=0.5", requests=1000)
    before = found.json["precondition"]
    assert before is not None and before["spec"] == "sequential"
    assert repr(found) == "ReplayResult(default: uniform:write=0.5, 1,000 requests, complete)"
    assert found.latency_ns.quantile(0.5) == found.json["response_time_ns"]["all"]["p50"]
