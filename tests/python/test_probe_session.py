"""Sessions of probes: in order, within limits, and again after an interruption. The probes here are made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from flashwright.cli import run as command
from flashwright.drive.findings import Finding, Plot, Series
from flashwright.errors import SavedStateError, WorkloadError

# The module: what its package calls by this name is the function.
from flashwright.probing import session
from flashwright.simulation.ssd import Ssd
from flashwright.target.question import Context, Cost
from flashwright.target.target import Target

DRIVE = Ssd.named("default").with_({"geometry.blocks-per-plane": 32, "capacity.utilization": 0.7})


class Made:
    """Writes some pages at random and tells how long the median took."""

    ABOUT: ClassVar[str] = "A median"

    def __init__(self, name: str, *, writes: int = 200, fails: BaseException | None = None) -> None:
        self.NAME = name
        self.PARAMETERS = (name,)
        self.writes = writes
        self.fails = fails
        self.calls = 0

    def cost(self, context: Context) -> Cost:
        return Cost(bytes_written=self.writes * 4096, requests=self.writes)

    def run(self, context: Context) -> list[Finding]:
        self.calls += 1
        target = context.target
        target.purge()
        places = context.rng(self.NAME).integers(0, target.capacity_bytes // 4096, self.writes)
        times = target.play("write", places * 4096, 4096).latency_ns
        if self.fails is not None:
            raise self.fails
        context.progress(1.0)
        plot = Plot("times", "request", "latency [ns]", (Series("raw", np.arange(3.0), times[:3]),))
        value = float(np.median(times))
        return [
            Finding(
                self.NAME, "found", value, "ns", value, value, 1.0, "a median", (plot,), {"n": 3.0}
            )
        ]


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch) -> list[Made]:
    made = [Made("one"), Made("two"), Made("three")]
    monkeypatch.setattr(session, "PROBES", tuple(made))
    return made


def asked(result: session.ProbeResult) -> list[str]:
    return [asked.name for asked in result.asked]


def findings(result: session.ProbeResult) -> str:
    return json.dumps(result.json["findings"])


def test_all_are_asked_in_order_and_progress_ends_whole(probes: list[Made]) -> None:
    reports: list[tuple[str, int, int]] = []
    with Target(DRIVE) as target:
        result = session.probe(target, progress=lambda *now: reports.append(now))
    assert asked(result) == ["one", "two", "three"] and result.ended == "complete"
    done = [now[1] for now in reports]
    assert done == sorted(done) and done[-1] == reports[-1][2]
    assert {asked.bytes_written for asked in result.asked} == {200 * 4096}
    assert all(asked.target_seconds > 0 for asked in result.asked)


def test_a_session_goes_on_where_it_was_interrupted(probes: list[Made], tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    with Target(DRIVE) as target:
        whole = session.probe(target)
        probes[1].fails = KeyboardInterrupt()
        with pytest.raises(session.ProbeInterrupted) as stop:
            session.probe(target, state=state)
        assert asked(stop.value.result) == ["one"]
        assert stop.value.result.findings["three"].verdict == "unknown"
        assert "interrupted during two" in stop.value.result.findings["three"].why
        probes[1].fails = None
    with Target(DRIVE) as target:
        planned = session.plan(target, state=state)
        assert [item.done for item in planned] == [True, False, False]
        calls = probes[0].calls
        result = session.probe(target, state=state)
    assert probes[0].calls == calls and asked(result) == ["one", "two", "three"]
    assert findings(result) == findings(whole)


def test_the_time_limit_gives_up_what_is_under_way(probes: list[Made]) -> None:
    probes[1].writes = 40_000_000 // 256
    with Target(DRIVE) as target:
        result = session.probe(target, time_limit=1e-9)
        assert result.ended == "time-limit" and asked(result) == []
        assert all(f.verdict == "unknown" for f in result.findings.values())


def test_a_drive_that_fails_half_way_keeps_what_was_found(probes: list[Made]) -> None:
    probes[2].writes = 300_000
    worn = DRIVE.with_({"wear.pe-cycles-max": 1})
    with Target(worn) as target:
        result = session.probe(target)
    assert result.ended == "failed" and asked(result) == ["one", "two"]
    assert "three: the drive cannot take this write" in result.note
    assert result.findings["one"].verdict == "found"


def test_a_state_of_something_else_is_refused(probes: list[Made], tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    with Target(DRIVE) as target:
        session.probe(target, state=state)
        with pytest.raises(SavedStateError, match=r"found seed 1, expected seed 2"):
            session.probe(target, state=state, seed=2)
        state.write_text("{}")
        with pytest.raises(SavedStateError, match="is no probe state of Flashwright"):
            session.probe(target, state=state)


def test_only_some(probes: list[Made]) -> None:
    with Target(DRIVE) as target:
        assert asked(session.probe(target, only=["two"])) == ["two"]
        with pytest.raises(WorkloadError, match="found 'four', expected one of one, two, three"):
            session.probe(target, only=["four"])


def test_the_command_on_a_file(
    probes: list[Made], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "disk.img"
    content = b"\xa5" * (8 << 20)
    file.write_bytes(content)
    assert command(["probe", str(file)]) == 2
    output = capsys.readouterr()
    assert "nothing was written" in output.err and "--destroys-data" in output.err
    assert "in all" in output.out
    assert command(["probe", str(file), "--plan", "--destroys-data"]) == 0
    assert file.read_bytes() == content
    page, figures = tmp_path / "page.html", tmp_path / "found.json"
    arguments = [
        "probe",
        str(file),
        "--destroys-data",
        "--report",
        str(page),
        "--json",
        str(figures),
    ]
    assert command(arguments) == 0
    output = capsys.readouterr()
    assert "3 probes will write up to 2.46 MB all over" in output.err
    assert json.loads(figures.read_text())["findings"][0]["verdict"] == "unknown"
    assert "doubt" in output.out and "It is a file" in output.out
    assert command([*arguments, "--despite-doubts", "--quiet"]) == 0
    assert json.loads(figures.read_text())["findings"][0]["verdict"] == "found"
    assert "Probes of" in page.read_text(encoding="utf-8")
    assert file.read_bytes() != content


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["sim:default", "--time-limit", "0"], "--time-limit: found 0.0, expected seconds above 0"),
        (["sim:default", "--only", "none"], "--only: found 'none'"),
        (["sim:nothing"], "drive: "),
        (["/tmp", "--set", "a=1"], "--set: found with a real target"),
        (["/nowhere"], "no such file or device"),
    ],
)
def test_bad_input(
    probes: list[Made], arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["probe", *arguments]) == 2
    assert says in capsys.readouterr().err


def test_the_page_begins_with_what_is_known_and_says_what_contradicts_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FixedFindings:
        NAME, ABOUT = "told", "told"
        PARAMETERS = ("clustered-page", "clustered-block", "read-buffer")
        page_bytes = 16 << 10

        def cost(self, context: Context) -> Cost:
            return Cost()

        def run(self, context: Context) -> list[Finding]:
            return [
                Finding("clustered-page", "found", self.page_bytes, "B", confidence=0.7, why="p"),
                Finding("clustered-block", "found", 4 << 20, "B", confidence=0.9, why="b"),
                Finding("read-buffer", "unknown", why="not seen"),
            ]

    probing = FixedFindings()
    monkeypatch.setattr(session, "PROBES", [probing])
    pages = []
    for name, size in (("agree", 16 << 10), ("contradict", 12 << 10)):
        probing.page_bytes = size
        session.probe(DRIVE, mode="quick").report(tmp_path / name)
        pages.append((tmp_path / name).read_text(encoding="utf-8"))
    agree, contradict = pages
    known, summary = (agree.index(f">{text}</h2>") for text in ("What is known of it", "Summary"))
    assert known < summary < agree.index(">What to do</h2>")
    assert "clustered-page: 16 KiB" in agree and "Cannot tell: read-buffer." in agree
    assert "No two findings contradict each other." in agree and "What contradicts" not in agree
    table = contradict[contradict.index(">What contradicts</h2>") :]
    assert "clustered-page" in table.split("</table>")[0]
