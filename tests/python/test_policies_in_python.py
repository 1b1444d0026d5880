"""Policies written in Python: the same as their native twins, refused where they must be, and what they cost."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from conftest import Cli
from flashwright import RunResult, Ssd, compare, workloads
from flashwright.drive.policies import (
    Buffer,
    BufferPolicy,
    DriveInfo,
    Given,
    PlacementPolicy,
    RamInfo,
    Streams,
    Unit,
    UnitInfo,
    VictimPolicy,
    load,
)
from flashwright.errors import ConfigError, FlashwrightError, PolicyError, SavedStateError
from flashwright.simulation.run import Run, RunSettings

SMALL = Ssd.named("default").with_(blocks_per_plane=32, utilization=0.8)
PLANES = SMALL.with_({"geometry.planes-per-die": 2, "geometry.pages-per-block": 32})


def figure(run: RunResult, section: str, name: str) -> int:
    """A count that a run has."""
    figures: Any = run.json
    return int(figures[section][name])


class Greedy(VictimPolicy):
    def pick(self, unit: Unit) -> np.int64:
        return np.int64(unit.blocks[unit.valid.argmin()])


class CostBenefit(VictimPolicy):
    def pick(self, unit: Unit) -> np.int64:
        dead = unit.valid.argmin()
        if unit.valid[dead] == 0:
            return np.int64(unit.blocks[dead])
        score = (unit.pages_per_block - unit.valid) * unit.age / unit.valid
        return np.int64(unit.blocks[score.argmax()])


class AnyBlock(VictimPolicy):
    def pick(self, unit: Unit) -> np.int64:
        return np.int64(unit.blocks[self.rng.integers(len(unit))])


class Windowed(VictimPolicy):
    def __init__(self, window: int) -> None:
        self.window = window

    def pick(self, unit: Unit) -> np.int64:
        return np.int64(unit.blocks[unit.valid[: self.window].argmin()])


class Recent(PlacementPolicy):
    streams = 2

    def __init__(self, within: int) -> None:
        self.within = within

    def begin(self, drive: DriveInfo) -> None:
        self.written = np.full(drive.logical_pages, -(2**62))

    def host(self, first: int, pages: int, stream: int, now: int) -> Streams:
        run = slice(first, first + pages)
        hot: npt.NDArray[np.bool_] = now - self.written[run] <= self.within
        self.written[run] = now
        return hot

    def moved(self, lpns: npt.NDArray[np.int64], stream: int, now: int) -> int:
        assert lpns.ndim == 1 and len(lpns) > 0
        return 0


class Named(PlacementPolicy):
    streams = 4

    def host(self, first: int, pages: int, stream: int, now: int) -> int:
        return stream if stream < 4 else 0


class Fab(BufferPolicy):
    keeps_reads = reads_are_uses = True

    def choose(self, buffer: Buffer) -> np.int64:
        return np.int64(buffer.blocks[buffer.pages.argmax()])


class Lru(BufferPolicy):
    by = "page"
    keeps_reads = reads_are_uses = True

    def choose(self, buffer: Buffer) -> int:
        return buffer.oldest


class Padded(BufferPolicy):
    padding = True

    def choose(self, buffer: Buffer) -> int:
        return buffer.oldest


def assert_twins(own: RunResult, native: RunResult) -> None:
    assert own.json["digest"] == native.json["digest"]
    for figure in ("host", "flash", "gc", "response_time_ns", "wear"):
        assert own.json[figure] == native.json[figure], figure
    # Some native managers have a figure more.
    assert {**own.json["buffer"], "extra": 0} == {**native.json["buffer"], "extra": 0}
    assert np.array_equal(own.erases_per_block, native.erases_per_block)


def twins(ssd: Ssd, workload: str, own: Given, native: dict[str, object], **play: Any) -> RunResult:
    mine = ssd.play(workload, policies=[own], **play)
    assert_twins(mine, ssd.with_(native).play(workload, **play))
    return mine


WORKLOADS = ["uniform:write=1,size=4KiB", "zipf:write=0.8,trim=0.05,size=16KiB"]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("ssd", [SMALL, PLANES], ids=["one plane a die", "two planes a die"])
def test_cost_benefit_takes_the_same_victims(ssd: Ssd, workload: str, seed: int) -> None:
    native: dict[str, object] = {"gc.victim": "cost-benefit"}
    mine = twins(
        ssd.precondition("random"),
        workload,
        CostBenefit,
        native,
        requests=20_000,
        seed=seed,
        depth=4,
    )
    assert figure(mine, "gc", "collections") > 200
    assert mine.json["policies"][0]["calls"] >= figure(mine, "gc", "collections")


def test_ties_go_to_the_block_sealed_first() -> None:
    """Whole requests of 16 pages on blocks of 16: many blocks with equal counts and ages, many without a valid page."""
    ssd = SMALL.with_({"geometry.pages-per-block": 16, "timing.model": "none"})
    for policy, native in ((CostBenefit, "cost-benefit"), (Greedy, "greedy")):
        mine = twins(
            ssd,
            "uniform:write=1,size=64KiB,align=64KiB",
            policy,
            {"gc.victim": native},
            requests=20_000,
        )
        assert figure(mine, "gc", "collections") > 1000


def test_under_dftl_and_wear_levelling() -> None:
    ssd = SMALL.with_({"ftl.scheme": "dftl", "wear.policy": "threshold"}).precondition("sequential")
    twins(
        ssd,
        WORKLOADS[1],
        CostBenefit,
        {"gc.victim": "cost-benefit"},
        requests=10_000,
        verify=True,
        audit_every=2_000,
    )


def test_an_object_is_a_pattern() -> None:
    pattern = Windowed(7)
    native: dict[str, object] = {
        "gc.victim": "windowed-greedy",
        "gc.windowed-greedy.window": 7,
    }
    mine = twins(SMALL, WORKLOADS[0], pattern, native, requests=60_000)
    assert vars(pattern) == {"window": 7}
    assert mine.json["policies"][0]["settings"] == {"window": 7}


@pytest.mark.parametrize("buffered", [False, True])
def test_hot_and_cold_pages_take_the_same_streams(buffered: bool) -> None:
    ram: dict[str, object] = (
        {"ram.manager": "bplru", "ram.size": "2 MiB"} if buffered else {"ram.latency": "0 us"}
    )
    native: dict[str, object] = {
        "placement.policy": "hot-cold",
        "placement.hot-cold.detector": "recent",
        "placement.hot-cold.recent-writes": 900,
    }
    ssd = SMALL.with_(ram).precondition("random")
    for workload in WORKLOADS:
        mine = twins(ssd, workload, Recent(900), native, requests=20_000, depth=4)
        assert figure(mine, "gc", "collections") > 50


def test_streams_that_the_workload_names() -> None:
    """A policy without `moved` leaves pages in their stream, as multi-stream does."""
    native: dict[str, object] = {"placement.policy": "multi-stream"}
    twins(
        SMALL.with_(utilization=0.7).precondition("random"),
        "zipf:write=1,streams=class",
        Named,
        native,
        requests=30_000,
    )


@pytest.mark.parametrize(
    ("own", "native"),
    [
        (Fab, {"ram.manager": "fab"}),
        (Lru, {"ram.manager": "lru"}),
        (Padded, {"ram.manager": "bplru", "ram.bplru.compensation": "off"}),
    ],
)
def test_the_same_leaves_the_ram(own: type[BufferPolicy], native: dict[str, object]) -> None:
    ssd = SMALL.with_({"ram.size": "2 MiB", "ram.latency": "1 us"}).precondition("random")
    mine = twins(ssd, "zipf:write=0.7,size=16KiB", own, native, requests=15_000, verify=True)
    assert figure(mine, "buffer", "destages") > 100


def test_chance_comes_from_the_seed() -> None:
    def digest(seed: int) -> str:
        run = SMALL.play("uniform:write=1", requests=50_000, seed=seed, policies=[AnyBlock])
        return str(run.json["digest"])

    assert digest(1) == digest(1) != digest(2)


def test_a_buffer_policy_draws_by_the_seed() -> None:
    drawn: list[float] = []

    class Drawing(Fab):
        def begin(self, ram: RamInfo) -> None:
            drawn.append(self.rng.random())

    ssd = SMALL.with_({"ram.size": "1 MiB"})
    for seed in (1, 1, 2):
        ssd.play("uniform:write=1", requests=100, seed=seed, policies=[Drawing])
    assert drawn[0] == drawn[1] != drawn[2]


def test_one_instance_a_unit_and_none_shared_between_runs() -> None:
    begun: list[tuple[int, float]] = []

    class Counting(Greedy):
        def begin(self, unit: UnitInfo) -> None:
            begun.append((unit.number, self.rng.random()))
            self.picks = 0

        def pick(self, unit: Unit) -> np.int64:
            self.picks += 1
            return super().pick(unit)

    for _ in range(2):
        PLANES.play("uniform:write=1", requests=20_000, policies=[Counting])
    assert [number for number, _ in begun] == [*range(16)] * 2
    assert len({chance for _, chance in begun}) == 16  # its own for each unit, the same in each run


def test_drives_side_by_side() -> None:
    """Threads with and without a policy, which take turns, give what each gives alone."""
    expected = SMALL.play("uniform:write=1", requests=50_000).json["digest"]
    found: dict[int, str | None] = {}

    def play(number: int) -> None:
        policies = [Greedy] if number % 2 else []
        run = SMALL.play("uniform:write=1", requests=50_000, policies=policies)
        found[number] = run.json["digest"]

    threads = [threading.Thread(target=play, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(4), expected)


def test_what_is_looked_at_is_there_in_the_call_only() -> None:
    kept: list[Unit] = []
    arrays: list[npt.NDArray[np.float64]] = []

    class Keeping(Greedy):
        def pick(self, unit: Unit) -> np.int64:
            kept.append(unit)
            arrays.extend((unit.valid, unit.age, unit.sealed_for, unit.erases, unit.stream))
            assert len({len(array) for array in arrays[-5:]} | {len(unit.blocks), len(unit)}) == 1
            assert (unit.age <= unit.sealed_for).all() and (unit.valid <= 128).all()
            assert unit.number in range(8) and unit.now >= unit.sealed_for.max()
            return super().pick(unit)

    SMALL.play("uniform:write=1", requests=40_000, policies=[Keeping])
    with pytest.raises(PolicyError, match="unit is valid only during pick; copy the"):
        _ = kept[0].valid
    assert all(np.isfinite(array).all() for array in arrays)  # memory that is still theirs
    with pytest.raises(ValueError, match="read-only"):
        arrays[0][0] = 1


def test_results_tell_what_ran() -> None:
    run = SMALL.with_({"ram.size": "1 MiB"}).play(
        "uniform:write=1", requests=5_000, policies=[CostBenefit, Recent(5), Padded]
    )
    config = run.json["config"]
    names = [config["gc"]["victim"], config["placement"]["policy"], config["ram"]["manager"]]
    assert names == ["python:CostBenefit", "python:Recent", "python:Padded"]
    policy = run.json["policies"][0]
    assert policy["key"] == "gc.victim" and policy["name"] == "python:CostBenefit"
    assert policy["module"] == __name__ and policy["file"] == Path(__file__).name
    assert policy["source_sha256"] == hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    assert SMALL.play("uniform", requests=10).json["policies"] == []


class Answers(VictimPolicy):
    """Answers whatever it is made with."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def pick(self, unit: Unit) -> Any:
        if callable(self.answer):
            return self.answer(unit)
        return self.answer


def refused(policy: Given, settings: dict[str, object] | None = None) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        SMALL.with_(settings or {}).play("uniform:write=1", requests=60_000, policies=[policy])
    assert "\n" not in str(caught.value)
    # The process goes on being usable.
    assert SMALL.play("uniform", requests=100).json["ended"] == "complete"
    return caught.value


@pytest.mark.parametrize("model", ["none", "serial", "parallel"])
def test_a_policy_that_raises(model: str) -> None:
    def fails(unit: Unit) -> int:
        known: dict[str, int] = {}
        return known["x"]

    error = refused(Answers(fails), {"timing.model": model})
    assert isinstance(error.__cause__, KeyError) and error.__cause__.__traceback__ is not None
    line = fails.__code__.co_firstlineno + 2
    where = f"({Path(__file__).name}, line {line})"
    assert re.match(r"python:Answers: unit [0-7], host page write \d", str(error)), error
    assert str(error).endswith(f"pick raised KeyError: 'x' {where}")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "pick answered None, expected one of unit.blocks"),
        ("x", "pick answered 'x' (str), expected one of unit.blocks"),
        (1.0, "pick answered 1.0 (float), expected one of unit.blocks"),
        (True, "pick answered True (bool), expected one of unit.blocks"),
        (10**30, "(int), expected one of unit.blocks"),
        (-1, "pick answered block -1, which is beyond the unit's 32 blocks; expected one of the"),
        (32, "pick answered block 32, which is beyond the unit's 32 blocks; expected one of the"),
        (
            lambda unit: next(b for b in range(32) if b not in unit.blocks),
            "; expected one of the 30 sealed blocks",
        ),
        (
            lambda unit: unit.blocks[unit.valid.argmax()],
            "blocks in a row without an invalid page, of which cleaning gains nothing; expected one of",
        ),
    ],
)
def test_victims_that_cannot_be(answer: object, said: str) -> None:
    assert said in str(refused(Answers(answer)))


def test_other_answers_that_cannot_be() -> None:
    class Wild(PlacementPolicy):
        streams = 3
        answer: Any = 0

        def host(self, first: int, pages: int, stream: int, now: int) -> Streams:
            return self.answer if now > 9 else 2

    for answer, said in [
        (3, "host answered stream 3, expected 0 to 2"),
        ([0, 1], "host answered 2 streams, expected one for each of the 1 pages, or one for all"),
        ("hot", "host answered 'hot' (str), expected the number of a stream, or a list"),
        (np.zeros(1), "host answered array([0.]) (ndarray), expected the number of a stream"),
    ]:
        policy = Wild()
        policy.answer = answer
        assert str(refused(policy)).startswith(f"python:Wild: host page write 10: {said}")

    class Nothing(BufferPolicy):
        def choose(self, buffer: Buffer) -> int:
            return 10**6

    said = str(refused(Nothing, {"ram.size": "1 MiB"}))
    assert "choose answered block 1000000, of which nothing is held; expected one of the" in said


def test_policies_that_cannot_begin() -> None:
    class Shy(Greedy):
        def begin(self, unit: UnitInfo) -> None:
            raise RuntimeError("not today")

    assert "python:Shy: begin raised RuntimeError: not today (" in str(refused(Shy))
    assert "begin raised TypeError: " in str(refused(Windowed))


@pytest.mark.parametrize(
    ("policies", "said"),
    [
        (
            [3],
            "policies: found 3, expected a class or an object of VictimPolicy, ScoredVictimPolicy",
        ),
        ([Greedy, CostBenefit], "policies: found python:Greedy and python:CostBenefit, expected"),
        ([VictimPolicy], "python:VictimPolicy: found no method pick, expected one"),
        (Greedy, "by itself, expected a list"),
        ([type("S", (Recent,), {"streams": 65})], "python:S: streams: found 65, expected 1 to 64"),
        ([type("B", (Lru,), {"by": "plane"})], "python:B: by: found 'plane', expected 'block' or"),
        ([type("B", (Lru,), {"padding": True})], "python:B: padding: found with by = 'page'"),
    ],
)
def test_what_is_no_policy(policies: Sequence[Given], said: str) -> None:
    with pytest.raises(PolicyError) as caught:
        SMALL.play("uniform", policies=policies)
    assert said in str(caught.value)


def test_drives_that_have_no_place_for_it() -> None:
    with pytest.raises(ConfigError, match=r"ftl.scheme: found .fast., which asks no victim policy"):
        SMALL.with_({"ftl.scheme": "fast"}).play("uniform", policies=[Greedy])
    with pytest.raises(ConfigError, match=r"ram.size: found 0 B.* with the policy python:Fab"):
        SMALL.play("uniform", policies=[Fab])
    for name in ("python", "python:Greedy"):
        with pytest.raises(ConfigError, match="a policy written in Python is handed to the run"):
            SMALL.with_({"gc.victim": name})


def test_a_run_is_not_saved(tmp_path: Path) -> None:
    source = workloads.uniform()
    settings = RunSettings(requests=100, policies=[Greedy])
    run = Run.create(SMALL.toml, "empty", source, settings)
    path = tmp_path / "run.saved"
    with pytest.raises(SavedStateError, match="can't be saved: python:Greedy is written in Python"):
        run.go(checkpoint=path)
    with pytest.raises(SavedStateError, match="can't be saved"):
        run.save(path)
    assert not path.exists()
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_compared_with_native_policies() -> None:
    ssd = SMALL.precondition("random")
    runs = compare(
        ssd, "uniform:write=1", {"gc.victim": ["cost-benefit", CostBenefit, "fifo"]}, requests=5_000
    )
    assert [run.label for run in runs][1] == "gc.victim=python:CostBenefit"
    digests = [run.json["digest"] for run in runs]
    assert digests[0] == digests[1] != digests[2]
    with pytest.raises(ConfigError, match="varied together with the policy python:Greedy"):
        compare(ssd, "uniform", {"gc.victim": ["fifo", "greedy"]}, policies=[Greedy])
    with pytest.raises(ConfigError, match=r"which is a policy for gc.victim, expected one for ram"):
        compare(ssd, "uniform", {"ram.manager": [Greedy]})


MINE = """
from flashwright.drive.policies import VictimPolicy

class Greedy(VictimPolicy):
    def pick(self, unit):
        return unit.blocks[unit.valid.argmin()]

class Broken(VictimPolicy):
    def pick(self, unit):
        return unit.no_such_thing
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def test_the_command_line(command: Cli, small: str, mine: Path) -> None:
    run = ["simulate", small, "--workload", "uniform:write=1", "--requests", 20_000, "--json", "-"]
    own = command(*run, "--policy", f"{mine}:Greedy")
    assert own.json["digest"] == command(*run).json["digest"]
    assert own.json["policies"][0]["file"] == "mine.py"
    broken = command(*run, "--policy", f"{mine}:Broken")
    assert broken.status == 2 and broken.out == ""
    first, hint = broken.err.splitlines()
    assert first.startswith("error: python:Broken: unit ") and hint.startswith("hint: docs/")
    assert first.endswith("has no attribute 'no_such_thing' (mine.py, line 10)")


def test_comparing_on_the_command_line(command: Cli, small: str, mine: Path) -> None:
    values = f"gc.victim=greedy,{mine}:Greedy,{mine}:Broken"
    run = ["compare", small, "--workload", "uniform:write=1", "--requests", 20_000, "--json", "-"]
    said = command(*run, "--vary", values)
    assert said.status == 2
    document = said.json
    assert document["vary"] == {"gc.victim": ["greedy", "python:Greedy", "python:Broken"]}
    native, own = document["runs"]
    assert native["digest"] == own["digest"]
    assert [*document["failures"]] == ["gc.victim=python:Broken"]
    assert "error: gc.victim=python:Broken: python:Broken: unit " in said.err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mine.py", "policy: found 'mine.py', expected FILE.py:CLASS"),
        ("none.py:X", "none.py: no such file or directory"),
        ("mine.py:X", "mine.py: found no policy X, expected Greedy or Broken"),
        ("bad.py:X", "bad.py: SyntaxError: "),
        ("raises.py:X", "raises.py: ZeroDivisionError: division by zero (raises.py, line 2)"),
    ],
)
def test_files(
    mine: Path, monkeypatch: pytest.MonkeyPatch, command: Cli, name: str, said: str
) -> None:
    monkeypatch.chdir(mine.parent)
    Path("bad.py").write_text("def (")
    Path("raises.py").write_text("\n1 / 0")
    with pytest.raises(PolicyError) as caught:
        load(name)
    assert str(caught.value).startswith(said)
    assert command("simulate", "default", "--policy", name).status == 2


LOOP = """
import os, signal, threading
from flashwright import Ssd
from flashwright.drive.policies import VictimPolicy
from flashwright.simulation.run import RunInterrupted

class Loop(VictimPolicy):
    def pick(self, unit):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        while True:
            pass

ssd = Ssd.named("default").with_(blocks_per_plane=32, utilization=0.8)
try:
    ssd.play("uniform:write=1", requests=200_000, policies=[Loop])
except RunInterrupted as stop:
    print(stop.result.json["ended"], stop.result.json["gc"]["collections"])
print(ssd.play("uniform", requests=10).json["ended"])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name != "posix", reason="needs signals")
def test_ctrl_c_ends_a_policy_that_never_answers() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOP], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.splitlines() == ["interrupted 0", "complete"], done.stderr


def test_what_a_victim_policy_costs() -> None:
    """At most three times the native run, in CPU time; the least of a few, since the machine is shared."""
    ssd = Ssd.named("default").precondition("random")
    native = ssd.with_(victim="cost-benefit")

    def ratio() -> float:
        own = ssd.play("uniform:write=1", requests=100_000, depth=8, policies=[CostBenefit])
        twin = native.play("uniform:write=1", requests=100_000, depth=8)
        assert own.json["digest"] == twin.json["digest"]
        return float(own.json["run"]["cpu_s"] / twin.json["run"]["cpu_s"])

    ratios = [ratio() for _ in range(3)]
    assert min(ratios) <= 3, ratios


def test_errors_are_flashwright_errors() -> None:
    assert issubclass(PolicyError, FlashwrightError)
    assert json.loads(json.dumps(PolicyError("x").hint)).startswith(
        "docs/how-to/policies-in-python.md"
    )
