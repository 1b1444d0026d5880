"""Ctrl-C and SIGTERM: one line, the right status, nothing half-written, at whatever moment they come."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from conftest import Cli, wait_for_work
from flashwright.simulation.run import Run
from flashwright.support import interrupts
from test_kills import OLD, state_of

ENDLESS = ["--workload", "uniform", "--requests", "2000000000", "--quiet"]
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "flashwright", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert out == ""
    return process.returncode, err


@pytest.mark.parametrize("number", list(STATUS), ids=lambda number: number.name)
def test_a_signal_in_the_first_second(number: signal.Signals, tmp_path: Path) -> None:
    for after_s in (0.05, 0.2, 0.35, 0.5, 0.75, 1.0):
        saved = tmp_path / f"{after_s}.saved"
        process = start("simulate", "default", *ENDLESS, "--checkpoint", saved)
        time.sleep(after_s)
        process.send_signal(number)
        status, err = ended(process)
        if "flashwright" not in err and "note: " not in err:
            # The interpreter itself had not begun with us.
            assert status in (-number, 130, 143, 1)
            continue
        assert status == STATUS[number], err
        assert err.startswith("note: interrupted") and len(err.splitlines()) == 1, err
        if saved.exists():
            Run.load(saved).step(10)
    assert {path.suffix for path in tmp_path.iterdir()} <= {".saved"}


COMMANDS = {
    "simulate": ["default", *ENDLESS, "--checkpoint", "run.saved"],
    "compare": ["default", *ENDLESS, "--vary", "gc.victim=greedy,fifo"],
    "lifetime": [
        *("simulate", "default", "--workload", "uniform", "--quiet"),
        *("--set", "wear.pe-cycles-max=1000000"),
    ],
    "advise": ["space", "default", *ENDLESS, "--jobs", "2"],
    "assess": ["--drive", "default", *ENDLESS],
    "probe": ["sim:default", "--state", "state", "--quiet"],
    "characterize": ["sim:default", "--quiet"],
    "replay": ["sim:default", *ENDLESS],
    "sweep": ["grid.toml", "--jobs", "1", "--quiet"],
    "reproduce": ["dftl", "--store", "points", "--quiet"],
}
GRID = """
seeds = 3
drive = "default"
workload = "uniform"
requests = 2000000000
"""


@pytest.mark.parametrize("name", list(COMMANDS))
def test_sigterm_ends_every_command_as_ctrl_c_does(name: str, tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(GRID)
    figures = tmp_path / "out.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "flashwright", name, *COMMANDS[name], "--json", str(figures)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    wait_for_work(process)
    process.terminate()
    status, err = ended(process)
    assert status == 143, err
    assert "note: interrupted" in err and "Traceback" not in err, err
    if name in ("simulate", "compare", "lifetime", "replay", "probe"):
        json.loads(figures.read_text())
    if name == "simulate":
        assert Run.load(tmp_path / "run.saved").step(1000) is False
    assert not list(tmp_path.rglob(".*partial*"))


def test_two_signals_at_once_still_save(tmp_path: Path) -> None:
    """`timeout` and shells send one to the process and one to its group."""
    saved = tmp_path / "run.saved"
    process = start("simulate", "default", *ENDLESS, "--checkpoint", saved)
    wait_for_work(process)
    for _ in range(3):
        process.terminate()
        time.sleep(0.01)
    status, err = ended(process)
    assert (status, err) == (143, "note: interrupted; the figures cover what was finished\n")
    assert Run.load(saved).step(1000) is False


def test_handlers_are_given_back_and_programs_keep_theirs(command: Cli) -> None:
    before = [signal.getsignal(number) for number in STATUS]
    assert command("devices").status == 0
    assert [signal.getsignal(number) for number in STATUS] == before
    program = (
        "import signal, flashwright; print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, "
        "signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert said.stdout == "True True\n"


def test_what_is_ignored_stays_ignored() -> None:
    """As under nohup, or for a job in the background of a script."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts.heeded():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            assert isinstance(signal.getsignal(signal.SIGTERM), interrupts.Heard)
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_ctrl_c_does_not_wait_for_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 10.1, 12.0, 20.0])
    monkeypatch.setattr("flashwright.support.interrupts.time.monotonic", lambda: next(clock))
    heard = interrupts.Heard()
    with pytest.raises(KeyboardInterrupt):
        heard(signal.SIGINT, None)
    heard(signal.SIGINT, None)
    with pytest.raises(KeyboardInterrupt):
        heard(signal.SIGINT, None)
    heard(signal.SIGTERM, None)
    assert heard.status == 130


# Ctrl-C that comes as a module is first looked for.
INTERRUPTED = """
import sys
class Once:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            raise KeyboardInterrupt
sys.meta_path.insert(0, Once())
"""


@pytest.mark.parametrize("name", ["flashwright", "analysis.py"])
def test_ctrl_c_before_it_is_heeded(name: str) -> None:
    """The command line says one line; of a program that imports the package, it is the program's."""
    program = f"{INTERRUPTED}sys.argv[0] = {name!r}\nimport flashwright"
    module = "flashwright.support.interrupts"
    said = subprocess.run(
        [sys.executable, "-c", program, module], capture_output=True, text=True, check=False
    )
    if name == "flashwright":
        assert (said.returncode, said.stderr) == (130, "note: interrupted\n")
    else:
        assert said.stderr.endswith("KeyboardInterrupt\n")


@pytest.mark.parametrize(
    "call",
    ["run.result().windows", "run.erases_per_block", "tracefiles.columns('bundled:pgbench')"],
)
def test_ctrl_c_as_numpy_is_imported_is_an_exception(call: str) -> None:
    program = f"""{INTERRUPTED}
from flashwright import Run, RunSettings, Ssd, tracefiles, workloads
settings = RunSettings(requests=10)
run = Run.create(Ssd.named("default").toml, "empty", workloads.uniform(), settings)
while not run.step(100):
    pass
try:
    {call}
except KeyboardInterrupt:
    print("interrupted")
"""
    said = subprocess.run(
        [sys.executable, "-c", program, "numpy.lib"], capture_output=True, text=True, check=False
    )
    assert said.stdout == "interrupted\n", said.stderr


def test_a_signal_while_a_command_is_imported_ends_at_once() -> None:
    program = """
import os, signal, sys
class Once:
    def find_spec(self, name, path=None, target=None):
        if name == "flashwright.cli.simulate":
            os.kill(os.getpid(), signal.SIGTERM)
sys.meta_path.insert(0, Once())
sys.argv[0] = "flashwright"
from flashwright.cli import main
main(["simulate"])
"""
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stdout, said.stderr) == (143, "", "note: interrupted\n")


def test_a_signal_in_a_finalizer_is_not_lost() -> None:
    class Finalized:
        def __del__(self) -> None:
            # Python drops it there, with a line on standard error.
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)

    with interrupts.heeded() as heard:
        interrupts.raise_if_lost()
        one = Finalized()
        del one
        assert heard.number == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            interrupts.raise_if_lost()
    interrupts.raise_if_lost()


PACED = ("--pace", "real", "--precondition", "steady")
# What begins with "o." is an output.
ANYWHERE = [
    ["simulate", *COMMANDS["simulate"], "--json", "o.json", "--report", "o.html"],
    ["compare", *COMMANDS["compare"], "--json", "o.json", "--out", "o.csv"],
    ["lifetime", *COMMANDS["lifetime"], "--json", "o.json", "--checkpoint", "o.saved"],
    *([name, *COMMANDS[name], "--json", "o.json"] for name in list(COMMANDS)[3:]),
    ["compare", *COMMANDS["compare"], "--jobs", "2", "--json", "o.json"],
    ["simulate", "default", "--workload", "postmark:transactions=10000000", "--quiet"],
    ["simulate", "default", "--tenant", "uniform", "--tenant", "zipf", *ENDLESS[2:]],
    ["serve", "default", "--nbd", "unix:s", "--ctl", "unix:c", "--quiet", "--json", "o.json"],
    ["serve", "default", *PACED, "--nbd", "unix:p", "--quiet", "--json", "o.json"],
    ["trace", "info", "bundled:pgbench", "--json", "o.json"],
    ["trace", "compare", "bundled:pgbench", "bundled:rocksdb", "--json", "o.json"],
    ["trace", "fit", "bundled:pgbench", "-o", "o.toml", "--quiet"],
    ["advise", "host", "default", "--quiet", "--json", "o.json", "--write-to", "files"],
    ["trace", "convert", "bundled:pgbench", "o.fwt"],
]
# Of processor time after the signal, which no other load on the machine changes.
SECONDS_MAX = 2.0
# However loaded the machine is.
HANG_S = 30.0


@dataclass
class Moment:
    """A command that gets a signal once it has had so much processor time."""

    arguments: list[str]
    number: signal.Signals
    after_s: float
    folder: Path
    process: subprocess.Popen[bytes]
    began: float = field(default_factory=time.monotonic)
    sent: float | None = None
    had_s: float = 0.0
    # What is wrong with how it ended, if anything, and the seconds that it took: all, and of a processor.
    end: tuple[str, float, float] | None = None

    def cpu_s(self) -> float:
        try:
            stat = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    def is_over(self) -> bool:
        """Send the signal if it is time, and look whether the command has ended since, or never will."""
        now = time.monotonic()
        if self.sent is None:
            # What waits for others takes no processor time.
            waited = now - self.began > 3 * self.after_s + 1
            if waited or self.cpu_s() >= self.after_s:
                self.had_s, self.sent = self.cpu_s(), now
                # It stays until it is waited for here.
                os.kill(self.process.pid, self.number)
        elif self.end is None:
            # Its own processor time, as long as it is there: its children may have had theirs before.
            if os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                cpu_s = self.cpu_s() - self.had_s
                self.process.wait()
                self.end = self._wrong(cpu_s), now - self.sent, cpu_s
            elif now - self.sent > HANG_S:
                self.process.kill()
                self.process.wait()
                self.end = "it goes on", HANG_S, HANG_S
        return self.end is not None

    def _wrong(self, cpu_s: float) -> str:
        status, err = self.process.returncode, (self.folder / "err").read_text()
        # Done before it came; our line; or the interpreter itself, which had not begun with us.
        is_ours = ("flashwright" in err or "note: " in err) and "init_import_site" not in err
        expected = (
            (0, STATUS[self.number]) if is_ours else (0, 1, -self.number, STATUS[self.number])
        )
        if status not in expected:
            return f"status {status}: {err}"
        if "Traceback" in err and "flashwright/cli" in err:
            return err
        if cpu_s > SECONDS_MAX:
            return f"it took {cpu_s:.1f} s"
        if left := list(self.folder.rglob(".*partial*")):
            return f"{left} stays"
        states = {each: state_of(self.folder / each, None) for each in self.outputs}
        broken = {each: state for each, state in states.items() if state in ("half", "gone")}
        return str(broken) if broken else ""

    @property
    def outputs(self) -> list[str]:
        return [each for each in self.arguments if each.startswith("o.")]


def begun(arguments: list[str], number: signal.Signals, after_s: float, folder: Path) -> Moment:
    folder.mkdir()
    (folder / "grid.toml").write_text(GRID)
    with (folder / "err").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "flashwright", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=err,
            cwd=folder,
        )
    moment = Moment(arguments, number, after_s, folder, process)
    for each in moment.outputs:
        (folder / each).write_bytes(OLD)
    return moment


@pytest.mark.parametrize("number", list(STATUS), ids=lambda number: number.name)
def test_a_signal_at_random_moments(number: signal.Signals, tmp_path: Path) -> None:
    """Three moments, always the same ones; FLASHWRIGHT_INTERRUPTS=200 tries as many, and `pytest -s` shows them."""
    draw = random.Random(39)
    left = int(os.environ.get("FLASHWRIGHT_INTERRUPTS", "3"))
    rows: dict[str, list[tuple[str, float, float]]] = {}
    statuses: dict[str, Counter[int]] = {}
    while left > 0:
        at_once = [
            begun(draw.choice(ANYWHERE), number, draw.uniform(0, 2), tmp_path / f"{left}-{nth}")
            for nth in range(min(3, left))
        ]
        left -= len(at_once)
        waiting = at_once
        try:
            while waiting := [moment for moment in waiting if not moment.is_over()]:
                time.sleep(0.002)
        finally:
            for moment in waiting:
                moment.process.kill()
        for moment in at_once:
            assert moment.end is not None
            name = " ".join(moment.arguments)[:60]
            rows.setdefault(name, []).append(moment.end)
            statuses.setdefault(name, Counter())[moment.process.returncode] += 1
            shutil.rmtree(moment.folder)
    print()
    for name, ends in sorted(rows.items()):
        wall, cpu = (max(each[nth] for each in ends) for nth in (1, 2))
        print(
            f"{name:60} {len(ends):3} times, at most {wall:.2f} s, {cpu:.2f} s of a processor, "
            f"statuses {dict(statuses[name])}"
        )
    wrong = [f"{name}: {each[0]}" for name, ends in rows.items() for each in ends if each[0]]
    assert not wrong, "\n".join(wrong)
