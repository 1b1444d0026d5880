"""Attacks on servers, files and calls, each of which once did harm."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import flashwright
import hostile
import nbdclient as nbd
from conftest import SMALL, Cli
from flashwright import CrashTest, Run, RunSettings, Ssd, Sweep, errors, workloads
from flashwright.drive.policies import VictimPolicy
from flashwright.serving.control import ask
from flashwright.simulation.run_count import RUNS_MAX
from flashwright.support.core import _core
from flashwright.support.files import LeftOverWarning, write_beside
from nbdclient import Nbd

MIB = 1 << 20
# A reply to the longest read.
LONGEST = 32 * MIB


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One whose path is short enough for a socket."""
    return tmp_path_factory.mktemp("s")


def drive(**settings: object) -> Ssd:
    return Ssd.from_text(SMALL).with_(settings)


def large() -> Ssd:
    """One that a read of 32 MiB fits on."""
    return Ssd.named("default").with_({"geometry.blocks-per-plane": 64})


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def footprint() -> tuple[int, int, int]:
    """Threads, maps and descriptors of this process."""
    own = Path("/proc/self")
    maps = len((own / "maps").read_text().splitlines())
    return len(list((own / "task").iterdir())), maps, len(list((own / "fd").iterdir()))


def settles(most: tuple[int, int, int]) -> bool:
    """Whether threads, maps and descriptors come down to so many; the last ones end a moment after their answer."""
    for _ in range(2000):
        if all(now <= limit for now, limit in zip(footprint(), most, strict=True)):
            return True
        time.sleep(0.01)
    return False


# Servers


def test_whatever_is_asked_again_and_again_leaves_nothing_behind(folder: Path) -> None:
    ctl = f"unix:{folder / 'c'}"
    with flashwright.serve(
        drive(), f"unix:{folder / 's'}", ctl=ctl, metrics="127.0.0.1:0", watch="127.0.0.1:0"
    ) as served:
        pages = [served.addresses[name].removeprefix("http://") for name in ("metrics", "watch")]

        def repeat(controls: int, others: int) -> None:
            for _ in range(controls):
                ask(ctl, "stats")
            for nth in range(others):
                with Nbd(served.uri) as client:
                    client.write(0, bytes(512))
                address, _, path = pages[nth % 2].partition("/")
                host, _, port = address.rpartition(":")
                with socket.create_connection((host, int(port))) as page:
                    page.sendall(f"GET /{path} HTTP/1.1\r\n\r\n".encode())
                    while page.recv(1 << 16):
                        pass

        repeat(100, 20)
        threads, maps, descriptors = footprint()
        repeat(2000, 200)
        # A thread that is kept has a stack and its guard: 4,000 maps.
        assert settles((threads + 4, maps + 100, descriptors + 8)), footprint()


def test_a_client_that_says_nothing_keeps_no_page_waiting(folder: Path) -> None:
    with flashwright.serve(drive(), f"unix:{folder / 's'}", metrics="127.0.0.1:0") as served:
        host, _, port = (
            served.addresses["metrics"].removeprefix("http://").partition("/")[0].partition(":")
        )
        silent = [socket.create_connection((host, int(port))) for _ in range(20)]
        began = time.monotonic()
        with socket.create_connection((host, int(port))) as page:
            page.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            assert page.recv(1 << 16).startswith(b"HTTP/1.1 200")
        # One after the other, each silent one would have its two seconds first.
        assert time.monotonic() - began < 20
        for each in silent:
            each.close()


def asked_at_once(client: Nbd, count: int) -> None:
    """Many of the longest reads in one packet, none of which is taken."""
    heads = [struct.pack(">IHHQQI", 0x25609513, 0, nbd.READ, n, 0, LONGEST) for n in range(count)]
    client.socket.sendall(b"".join(heads))


@pytest.mark.parametrize("time_scale", [1e-6, 1e6])
def test_a_paced_server_takes_a_bounded_amount_of_work(time_scale: float) -> None:
    served = flashwright.serve(large(), pace="real", time_scale=time_scale, in_flight_max="128 MiB")
    before = resident()
    greedy = [Nbd(served.uri) for _ in range(3)]
    for client in greedy:
        asked_at_once(client, 100)
    highest = before
    for _ in range(100):
        highest = max(highest, resident())
        time.sleep(0.01)
    assert highest - before < 512 * MIB, "9 GiB were asked for"
    for client in greedy[1:]:
        client.socket.close()
    served.stop()
    greedy[0].socket.close()
    assert any("commands that had come not carried out" in note for note in served.notes)
    assert served.lost == []


def test_a_stop_waits_for_no_model() -> None:
    served = flashwright.serve(drive(), pace="real", time_scale=1e6)
    client = Nbd(served.uri)
    client.send(nbd.WRITE, 0, 4096, bytes(4096))
    while not served.stats()["flash"]["programs"]["total"]:
        time.sleep(0.01)
    result = served.stop()
    client.reply()
    client.socket.close()
    assert result.json["requests"]["write"] == 1
    assert any("carried out before the model's time" in note for note in served.notes)


def test_paced_clients_beyond_the_budget_all_get_their_data() -> None:
    with (
        flashwright.serve(large(), pace="real", time_scale=1e-6, in_flight_max="32 MiB") as served,
        Nbd(served.uri) as one,
        Nbd(served.uri) as other,
    ):
        data = os.urandom(LONGEST)
        one.write(0, data)
        for client in (one, other):
            asked_at_once(client, 4)
        for _ in range(4):
            for client in (one, other):
                assert client.reply()[1] == data


def test_a_budget_below_one_command_is_refused(command: Cli, folder: Path) -> None:
    with pytest.raises(
        errors.ServeError, match="in_flight_max: found 1 MiB, expected 32 MiB or more"
    ):
        flashwright.serve(drive(), in_flight_max="1 MiB")
    said = command("serve", "default", "--nbd", f"unix:{folder / 's'}", "--in-flight-max", "x")
    assert said.status == 2
    assert said.err.startswith("error: --in-flight-max: ")


def test_an_announcement_alone_takes_no_memory() -> None:
    with flashwright.serve(large()) as served:
        before = resident()
        clients = [Nbd(served.uri) for _ in range(64)]
        for client in clients:
            client.socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, nbd.WRITE, 1, 0, LONGEST))
        with Nbd(served.uri) as other:
            for _ in range(100):
                other.read(0, 512)
        assert resident() - before < 256 * MIB, "2 GiB were announced"
        for client in clients:
            client.socket.close()


def test_sockets_and_what_clients_store_are_private(folder: Path) -> None:
    before = os.umask(0)
    try:
        with flashwright.serve(
            drive(**{"recovery.mount-by": "scan"}),
            f"unix:{folder / 's'}",
            ctl=f"unix:{folder / 'c'}",
            record=folder / "r.fwt",
            record_data=folder / "r.fwr",
        ) as served:
            with Nbd(served.uri) as client:
                client.write(0, bytes(4096))
            sockets = [mode(folder / name) for name in "sc"]
    finally:
        os.umask(before)
    assert [*sockets, mode(folder / "r.fwt"), mode(folder / "r.fwr")] == [0o600] * 4


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# Files


def test_a_command_never_writes_over_what_it_reads(command: Cli, spc: Path, small: str) -> None:
    content = spc.read_text()
    symlink, hardlink = spc.with_name("symlink.spc"), spc.with_name("hardlink.spc")
    symlink.symlink_to(spc)
    hardlink.hardlink_to(spc)
    for target in (spc, symlink, hardlink):
        said = command("trace", "convert", spc, target, "--to", "spc")
        assert (said.status, said.err.splitlines()[0]) == (
            2,
            f"error: OUT: found {target}, which IN reads, expected another file",
        )
        said = command("simulate", small, "--trace", spc, "--json", target)
        assert (said.status, said.err.splitlines()[0]) == (
            2,
            f"error: --json: found {target}, which --trace reads, expected another file",
        )
        with pytest.raises(errors.OutputError, match="the trace that is read"):
            flashwright.tracefiles.convert(spc, target)
        with pytest.raises(errors.OutputError, match="the trace that is read"):
            flashwright.tracefiles.merge([spc, "bundled:pgbench"], target)
    toml = Path(small).read_text()
    assert command("simulate", small, "--requests", 10, "--json", small).status == 2
    assert (spc.read_text(), Path(small).read_text()) == (content, toml)


def test_a_file_under_test_is_no_trace_and_no_output(command: Cli, spc: Path) -> None:
    before = spc.read_bytes()
    for more in (["--trace", spc], ["--workload", "uniform:write=1", "--json", spc]):
        done = command("replay", spc, "--destroys-data", *more)
        assert done.status == 2 and f"found {spc}" in done.err, done
        assert "expected another file" in done.err or "expected two files" in done.err, done
    assert spc.read_bytes() == before


@pytest.mark.parametrize("kind", ["r", pytest.param("w", marks=pytest.mark.long)])
def test_comparing_requests_of_two_tebibytes_takes_bounded_memory(
    kind: str, tmp_path: Path
) -> None:
    long = tmp_path / "long.spc"
    most = (2**32 - 1) * 512
    long.write_text(f"0,0,{most},{kind},0.0\n")
    options = ["--format", "spc"]
    child = subprocess.Popen(
        [sys.executable, "-m", "flashwright", "trace", "compare", long, "zipf", *options],
        stdout=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    # In KiB. A bit for each page, and the chunks of 64 KiB, would take 1.8 GiB.
    assert used.ru_maxrss < 1 << 20


def test_a_model_of_more_than_it_can_hold_is_refused(command: Cli, tmp_path: Path) -> None:
    long = tmp_path / "long.spc"
    most = (2**32 - 1) * 512
    long.write_text("".join(f"0,{at * 2**33},{most},w,{at}.0\n" for at in range(200)))
    for kind in ("sequence", "statistics"):
        to = ["--output", tmp_path / "model.toml", "--kind", kind, "--format", "spc"]
        said = command("trace", "fit", long, *to)
        assert said.status == 2, said
        assert "expected at most 2 TiB for a model" in said.err, said.err
        assert not (tmp_path / "model.toml").exists()


def test_two_outputs_never_share_a_file(command: Cli, small: str, tmp_path: Path) -> None:
    page = tmp_path / "x.html"
    for same in (page, tmp_path / "." / "x.html"):
        said = command("simulate", small, "--requests", 10, "--json", page, "--report", same)
        assert said.status == 2
        assert "--json and --report: found " in said.err
        assert "for both, expected two files" in said.err
    assert not page.exists()
    said = command(
        *("simulate", small, "--workload", "uniform", "--requests", 10, "--quiet"),
        *("--json", "/dev/null", "--requests-out", tmp_path / "r.csv"),
    )
    assert said.status == 0


def test_a_run_may_be_saved_where_it_was_saved_before(
    command: Cli, small: str, tmp_path: Path
) -> None:
    saved = tmp_path / "run.saved"
    load = ("--workload", "uniform", "--requests", 1000, "--precondition", "empty", "--quiet")
    assert command("simulate", small, *load, "--checkpoint", saved, "--stop-after", 300).status == 0
    again = ("--resume", saved, "--checkpoint", saved, "--stop-after", 600, "--quiet")
    assert command("simulate", *again).status == 0


def test_a_replaced_file_keeps_its_mode(
    command: Cli, spc: Path, small: str, tmp_path: Path
) -> None:
    outputs = [tmp_path / name for name in ("o.json", "o.spc", "o.fwt", "o.csv")]
    for each in outputs:
        each.write_text("private")
        each.chmod(0o600)
    result, converted, native, rows = outputs
    load = ("--trace", spc, "--depth", 1, "--precondition", "empty", "--quiet")
    said = command("simulate", small, *load, "--json", result, "--requests-out", rows)
    assert said.status == 0
    assert command("trace", "convert", spc, converted).status == 0
    assert command("trace", "convert", spc, native).status == 0
    assert [mode(each) for each in outputs] == [0o600] * 4
    assert all(each.read_bytes() != b"private" for each in outputs)


def test_nobody_s_link_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim, out = tmp_path / "victim", tmp_path / "out.json"
    victim.write_text("precious")
    names = iter(["a" * 16, "b" * 16])
    monkeypatch.setattr("flashwright.support.files.secrets.token_hex", lambda _: next(names))
    planted = [tmp_path / f".out.json.{name}.partial" for name in (os.getpid(), "a" * 16)]
    for link in planted:
        link.symlink_to(victim)
    with write_beside(out) as part:
        part.write_text("{}")
    assert (victim.read_text(), out.read_text(), out.is_symlink()) == ("precious", "{}", False)


def test_what_a_killed_process_left_is_removed_and_named(
    command: Cli, spc: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    left = [tmp_path / f".{name}.0123456789abcdef.partial" for name in ("out.json", "o.fwt")]
    others = [tmp_path / name for name in (".out.json.mine.partial", ".x.0123456789abcdef.partial")]
    for each in left + others:
        each.write_text("half")

    def write_two() -> None:
        with write_beside(out) as first:
            with write_beside(out) as second:
                assert first.exists(), "another that is being written is no leftover"
                second.write_text("2")
            first.write_text("1")

    with pytest.warns(LeftOverWarning) as named:
        write_two()
    said = [f"removed {each} (4 B), which a process that was killed had left" for each in left]
    assert [str(each.message) for each in named] == said[:1]
    done = command("trace", "convert", spc, tmp_path / "o.fwt")
    assert (done.status, done.err) == (0, f"note: {said[1]}\n")
    assert (out.read_text(), [each.exists() for each in left + others]) == (
        "1",
        [False, False, True, True],
    )


def test_a_run_goes_on_where_it_can_not_be_saved(command: Cli, small: str, tmp_path: Path) -> None:
    result = tmp_path / "r.json"
    load = ("--workload", "uniform", "--requests", 200_000, "--precondition", "empty", "--quiet")
    saving = ("--checkpoint", "/dev/full", "--checkpoint-every", 1e-9)
    said = command("simulate", small, *load, *saving, "--json", result)
    assert (said.status, said.err) == (
        0,
        "note: the run is not saved: /dev/full: can't be written: no space left on device\n",
    )
    assert json.loads(result.read_text())["requests"]["write"] > 0
    result.unlink()
    said = command("simulate", small, *load, *saving, "--stop-after", 1000, "--json", result)
    assert said.status == 2
    assert "error: /dev/full: can't be written: no space left on device" in said.err
    assert json.loads(result.read_text())["requests"]["write"] > 0


@pytest.mark.parametrize("command_of_ctl", ["cut", "mount", "set"])
def test_a_trace_that_misses_a_command_says_so(command_of_ctl: str, tmp_path: Path) -> None:
    ssd = drive(**{"recovery.mount-by": "scan"})
    with flashwright.serve(ssd, record=tmp_path / "r.fwt") as served:
        with Nbd(served.uri) as client:
            client.write(0, bytes(4096))
        match command_of_ctl:
            case "set":
                served.set("gc.victim=fifo")
            case "cut":
                served.cut()
            case "mount":
                served.cut()
                served.mount()
    first = "cut" if command_of_ctl == "mount" else command_of_ctl
    assert served.notes == [
        f"{first}: the trace holds 1 requests and not this command: played on the same drive, it gives another result"
    ]


def test_a_recording_takes_the_place_of_another_once_it_is_whole(tmp_path: Path) -> None:
    recording = tmp_path / "a.fwr"
    recording.write_text("precious")
    recording.chmod(0o640)
    ssd = drive(**{"recovery.mount-by": "scan"})
    flashwright.serve(ssd, record_data=recording).stop()
    assert recording.read_text() == "precious", "no request came"
    with flashwright.serve(ssd, record_data=recording) as served, Nbd(served.uri) as client:
        for at in range(100):
            client.write(at * 4096, bytes(4096))
        assert recording.read_text() == "precious", "kill -9 would leave it"
    assert (CrashTest(recording).requests, mode(recording)) == (100, 0o640)
    assert [each.name for each in tmp_path.iterdir()] == ["a.fwr"]


@pytest.fixture(params=["POSIX", "of the open file"])
def locked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A file that another program has locked, and who that is."""
    path = tmp_path / "vm.raw"
    path.write_bytes(bytes(MIB))
    if request.param != "POSIX":
        with path.open("r+b") as file:
            # As QEMU: a shared lock of a single byte, by the open file.
            lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 100, 1, 0)
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock)
            yield path, "another program"
        return
    (ready, tell), (wait, end) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        with path.open("r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            os.write(tell, b"1")
            os.close(end)
            os.read(wait, 1)
            os._exit(0)
    os.read(ready, 1)
    yield path, f"process {child} ("
    for each in (end, wait, ready, tell):
        os.close(each)
    os.waitpid(child, 0)


def test_a_file_that_another_program_has_locked_is_refused(locked: tuple[Path, str]) -> None:
    path, holder = locked
    with pytest.raises(errors.TargetError) as refused:
        flashwright.replay(path, "uniform:write=1", requests=10, depth=1, destroys_data=True)
    assert f"it is locked by {holder}" in str(refused.value)
    assert "end that program first" in refused.value.hint
    assert path.read_bytes() == bytes(MIB)


# In process


class Asks(VictimPolicy):
    """Asks its own run where it stands."""

    run: Run

    def pick(self, unit: flashwright.policies.Unit) -> int:
        self.run.progress()
        return int(unit.blocks[np.argmin(unit.valid)])


def test_a_policy_that_asks_its_own_run_gets_an_error() -> None:
    ssd = drive()
    settings = RunSettings(requests=50_000, depth=8, policies=[Asks])
    Asks.run = Run.create(ssd.toml, "sequential", workloads.parse("uniform:write=1"), settings)
    with pytest.raises(
        errors.PolicyError, match="the run is at work, and its policies can't ask it"
    ):
        Asks.run.go()


@pytest.mark.parametrize("blocks", [64, 256])
@pytest.mark.parametrize(
    "spec",
    [
        "postmark:subdirectories=1000",
        "postmark:subdirectories=30000",
        "postmark:subdirectories=10000000",
        "postmark:files=0,subdirectories=5000,transactions=0",
        "postmark:files=1,size-low=0,size-high=0,subdirectories=257",
        "postmark:size=1,read=1,write=1,transactions=50",
        "filebench-fileserver:files=1,threads=1,duration=1ms",
        "filebench-varmail:per-directory=1,files=2000,duration=1ms",
    ],
)
def test_programs_play_or_say_what_they_lack(spec: str, blocks: int) -> None:
    ssd = Ssd.named("default").with_({"geometry.blocks-per-plane": blocks}).precondition("empty")
    wrong = hostile.outcome(ssd.play, [spec], {"requests": 100_000})
    assert wrong == ""


def test_too_many_runs_are_refused_before_any_is_made(
    tmp_path: Path, command: Cli, small: str
) -> None:
    keys = ("gc.free-blocks-min", "ftl.entry-bytes", "timing.passed-max", "chips.suspensions-max")
    grid = "".join(f"{key} = {list(range(40))}\n" for key in keys)
    for text, runs in (
        ("seeds = 1000000000\n", "1,000,000,000 runs"),
        (f"seeds = 10{'0' * 200}\n", "about 10^201 runs"),
        (f"seeds = 100\n[grid]\n{grid}", "256,000,000 runs (2,560,000 combinations, 100 seeds)"),
    ):
        file = tmp_path / "s.toml"
        file.write_text(text)
        with pytest.raises(errors.SweepError) as refused:
            Sweep.from_toml(file)
        assert str(refused.value).startswith(f"{file}: found {runs}")
        assert str(refused.value).endswith(f"expected at most {RUNS_MAX:,}")
    ssd, uniform = drive(), workloads.uniform()
    many = {"gc.free-blocks-min": list(range(400)), "ftl.entry-bytes": list(range(400))}
    with pytest.raises(errors.SweepError, match="160,000 runs"):
        flashwright.sweep(ssd, uniform, many, jobs=1)
    with pytest.raises(errors.SweepError, match="160,000 runs"):
        flashwright.compare(ssd, uniform, many)
    with pytest.raises(errors.SweepError, match="2,000,000,000 runs"):
        flashwright.compare(ssd, uniform, {"gc.victim": ["greedy", "fifo"]}, seeds=10**9)
    said = command("compare", small, "--vary", "gc.victim=greedy,fifo", "--seeds", 10**9)
    assert (said.status, said.err.count("error: ")) == (2, 1)
    assert "found 2,000,000,000 runs" in said.err


def test_times_beyond_a_hundred_years_are_refused(command: Cli, small: str, tmp_path: Path) -> None:
    trace = tmp_path / "t.spc"
    late = 4e9  # seconds: 126 years
    times = [0.0, 0.001, late, late + 1]
    trace.write_text("".join(f"0,{8 * n},4096,w,{at:f}\n" for n, at in enumerate(times)))
    said = command("simulate", small, "--trace", trace, "--precondition", "empty")
    assert said.status == 2
    assert said.err.startswith(
        "error: request 3 arrives 127 years after the first, expected at most 100 years"
    )
    times = [0.0, 0.001, 10_000.0]
    trace.write_text("".join(f"0,{8 * n},4096,w,{at:f}\n" for n, at in enumerate(times)))
    assert command("simulate", small, "--trace", trace, "--precondition", "empty").status == 0
    said = command("simulate", small, "--trace", trace, "--time-scale", 1_000_000)
    assert (said.status, said.err.count("error: ")) == (2, 1)
    assert "request 3 arrives 317 years after the first" in said.err
    said = command("trace", "convert", trace, tmp_path / "o.fwt", "--time-scale", 1_000_000)
    assert (said.status, said.err.count("error: ")) == (2, 1)
    assert "more than 100 years after the first" in said.err
    said = command("simulate", small, "--workload", "uniform:rate=1e-6", "--requests", 5000)
    assert (said.status, said.err.count("error: ")) == (2, 1)


def test_a_name_that_is_not_in_utf_8_gets_one_line(command: Cli, tmp_path: Path) -> None:
    name = os.fsdecode(bytes(tmp_path) + b"/a\xff.spc")
    Path(name).write_text("0,0,4096,w,0.0\n")
    for arguments in (
        ("trace", "info", name),
        ("trace", "convert", "bundled:pgbench", name),
        ("simulate", "--trace", name),
    ):
        said = command(*arguments)
        assert (said.status, said.err.count("error: ")) == (2, 1)
        assert "expected text in UTF-8" in said.err
    with pytest.raises(errors.ArgumentError, match=r"info: source: .*expected text in UTF-8"):
        flashwright.tracefiles.info(name)


@pytest.mark.parametrize("seed", range(4))
def test_wrong_calls_raise_our_own_errors(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert list(hostile.wrong_outcomes(tmp_path, seed, calls_each=3)) == []


# Clients that say nothing, and servers that do


def test_control_clients_that_say_nothing_give_their_places_away(folder: Path) -> None:
    ctl = folder / "c"
    with flashwright.serve(drive(), f"unix:{folder / 's'}", ctl=f"unix:{ctl}") as served:
        silent = [socket.socket(socket.AF_UNIX) for _ in range(70)]
        for each in silent:
            each.connect(str(ctl))
        assert ask(f"unix:{ctl}", "stats", seconds=30)["requests"]["write"] == 0
        assert served.stats()["served"]["connections"]["open"] == 0
        for each in silent:
            each.close()


@contextlib.contextmanager
def answering(path: Path, answer: Callable[[socket.socket], None]) -> Iterator[None]:
    """A server that takes one connection and does as it likes."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def run() -> None:
            with contextlib.suppress(OSError):
                raw, _ = listener.accept()
                with raw:
                    answer(raw)

        thread = threading.Thread(target=run)
        thread.start()
        yield
        thread.join()


def drip(raw: socket.socket) -> None:
    for _ in range(1000):
        raw.sendall(b" ")
        time.sleep(0.05)


def flood(raw: socket.socket) -> None:
    while True:
        raw.sendall(bytes(MIB))


@pytest.mark.parametrize(("answer", "says"), [(drip, "no answer within 0.3 s"), (flood, "16 MiB")])
def test_the_control_client_waits_and_reads_only_so_much(
    answer: Callable[[socket.socket], None], says: str, folder: Path
) -> None:
    with answering(folder / "c", answer), pytest.raises(errors.ServeError, match=says):
        ask(f"unix:{folder / 'c'}", "stats", seconds=0.3 if answer is drip else 30)


def greet(raw: socket.socket) -> None:
    """An NBD server up to the first request."""
    raw.sendall(b"NBDMAGICIHAVEOPT" + struct.pack(">H", 3))
    raw.recv(4)
    raw.recv(1 << 16)
    raw.sendall(struct.pack(">QIII", 0x3E889045565A9, 8, 1, 0))
    raw.recv(1 << 16)
    raw.sendall(struct.pack(">QIIIHQH", 0x3E889045565A9, 7, 3, 12, 0, 64 * MIB, 13))
    raw.sendall(struct.pack(">QIII", 0x3E889045565A9, 7, 1, 0))


def silent(raw: socket.socket) -> None:
    greet(raw)
    while raw.recv(1 << 16):
        pass


def target_at(path: Path) -> _core.Target:
    uri = f"nbd+unix:///?socket={path}"
    return _core.Target(
        json.dumps({"remote": {"uri": uri, "destroys_data": False, "queue_depth": 2}}), 1
    )


def read(target: _core.Target, seconds: float) -> None:
    target.play(np.zeros(1, np.uint8), np.zeros(1, np.uint64), np.ones(1, np.uint32), 1, seconds)


def test_a_server_that_answers_nothing_is_given_up_at_the_time_limit(folder: Path) -> None:
    with answering(folder / "s", silent):
        target = target_at(folder / "s")
        began = time.monotonic()
        with pytest.raises(errors.DeviceError, match="no answer before the end"):
            read(target, 0.2)
        # Two seconds of grace; without them it would be a minute.
        assert time.monotonic() - began < 20
        target.close()


def test_a_device_at_work_is_not_waited_for_with_the_interpreter_stopped(folder: Path) -> None:
    with answering(folder / "s", silent):
        target = target_at(folder / "s")
        failed: list[Exception] = []

        def play() -> None:
            try:
                read(target, 0.5)
            except errors.DeviceError as error:
                failed.append(error)

        thread = threading.Thread(target=play)
        thread.start()
        time.sleep(0.2)
        with pytest.raises(errors.DeviceError, match="at work for another call"):
            target.close()
        thread.join()
        assert len(failed) == 1
        target.close()


def refuse(raw: socket.socket) -> None:
    raw.recv(1 << 16)
    raw.sendall(b'{"error": "\\u001b[2J\\u009b"}\n')


def test_what_others_say_steers_no_terminal(
    command: Cli, small: str, tmp_path: Path, folder: Path
) -> None:
    evil = tmp_path / "evil.toml"
    evil.write_text('name = "\\u001b[31mred\\u202e"\n' + Path(small).read_text())
    done = command("simulate", evil, "--workload", "uniform", "--requests", "100")
    assert done.status == 0 and r"\x1b[31mred\u202e" in done.out, done
    with answering(folder / "c", refuse):
        done = command("ctl", f"unix:{folder / 'c'}", "stats")
    assert (done.status, done.err) == (2, "error: \\x1b[2J\\x9b\n")


def test_an_image_that_another_program_has_locked_is_refused(tmp_path: Path) -> None:
    image = tmp_path / "d.img"
    ssd = drive(**{"recovery.mount-by": "scan"})
    flashwright.serve(ssd, image=image).stop()
    program = (
        "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX); "
        "print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(image)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdin is not None and holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(errors.ServeError, match="locked by another program"):
            flashwright.serve(ssd, image=image)
        holder.stdin.close()
    flashwright.serve(ssd, image=image).stop()


@pytest.mark.parametrize(
    "call",
    [
        lambda: flashwright.Endurance.years(1.0, 2.0),  # type: ignore[arg-type]
        lambda: flashwright.RunResult.of([1]),  # type: ignore[arg-type]
        lambda: flashwright.tracefiles.info("x" * 5000),
    ],
    ids=["self", "report", "long-name"],
)
def test_calls_by_the_wrong_object_or_name(call: Callable[[], object]) -> None:
    with pytest.raises(errors.FlashwrightError, match=r"expected|no such file"):
        call()
