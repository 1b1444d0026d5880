"""Points: their keys, the files that keep them, and processes that die."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flashwright import _core
from flashwright.errors import Interrupted, OutputError, SweepError
from flashwright.support.digests import digest_of_code
from flashwright.support.files import LeftOverWarning
from flashwright.sweeps.cluster import _computed
from flashwright.sweeps.compute import compute
from flashwright.sweeps.points import Outcome, Point, Store, carry_out

HERE = Path(__file__).parent


def double(x: float) -> Point:
    return Point("point_functions:double", {"x": x}, f"x={x}")


def test_a_key_is_the_hash_of_what_decides_and_of_nothing_else() -> None:
    text = '["m:f", {"a": 1, "b": [2.5, null]}, "code"]'
    expected = hashlib.sha256(text.encode()).hexdigest()[:32]
    assert Point("m:f", {"b": [2.5, None], "a": 1}, "a label", "code").key == expected
    assert Point("m:f", {"a": 1, "b": [2.5, None]}, made_of="code").key == expected
    elsewhere = Point("m:f", {"a": 1, "b": [2.5, None]}, "", "code", {"path": "/there"})
    assert elsewhere.key == expected
    others = [
        Point("m:g", {"a": 1, "b": [2.5, None]}, made_of="code"),
        Point("m:f", {"a": 2, "b": [2.5, None]}, made_of="code"),
        Point("m:f", {"a": 1, "b": [2.5, None]}, made_of="other code"),
    ]
    assert expected not in {other.key for other in others}


def test_the_core_tells_the_digest_of_its_sources() -> None:
    assert len(_core.source_digest) == 32 and int(_core.source_digest, 16)
    assert digest_of_code("flashwright.simulation.run") != digest_of_code(
        "flashwright.simulation.run", "flashwright.support.files"
    )
    with pytest.raises(SweepError, match=r"flashwright\.nothing"):
        digest_of_code("flashwright.nothing")


def test_what_is_kept_comes_back_as_it_was(tmp_path: Path) -> None:
    store, point = Store(tmp_path / "a" / "b"), double(1)
    assert store.read(point) is None and not store.has(point)
    result = {"x": 0.1 + 0.2, "text": "µ", "none": None, "list": [1, 2]}
    store.write(Outcome(point, result, seconds=1.5))
    kept = Store(tmp_path / "a" / "b").read(point)
    assert kept == Outcome(point, result, None, True, 1.5)
    assert [path.name for path in tmp_path.rglob("*.*")] == [f"{point.key}.json"]


def damaged(content: bytes) -> list[bytes]:
    flipped = bytearray(content)
    flipped[-10] ^= 1
    return [b"", content[: len(content) // 2], content[:64], bytes(flipped), content + b" "]


def test_a_half_written_or_damaged_point_is_noticed_and_computed_again(tmp_path: Path) -> None:
    point = double(3)
    [first] = compute([point], Store(tmp_path), workers=1)
    assert (first.result, first.cached) == (6, False)
    [path] = tmp_path.rglob("*.json")
    content = path.read_bytes()
    for wrong in damaged(content):
        path.write_bytes(wrong)
        store = Store(tmp_path)
        assert store.read(point) is None
        assert store.damaged == [path]
    [again] = compute([point], store, workers=1)
    assert (again.result, again.cached) == (6, False)
    assert Store(tmp_path).read(point) is not None


def test_a_file_under_the_name_of_another_point_is_damaged(tmp_path: Path) -> None:
    store, one, other = Store(tmp_path), double(1), double(2)
    store.write(Outcome(one, 2))
    store.write(Outcome(other, 4))
    paths = {path.stem: path for path in tmp_path.rglob("*.json")}
    paths[one.key].replace(paths[other.key])
    assert store.read(other) is None and store.damaged == [paths[other.key]]


def test_what_killed_writers_left_is_removed_and_named(tmp_path: Path) -> None:
    folder = tmp_path / "ab"
    folder.mkdir()
    left, written = folder / ".k.1.partial", folder / ".k.2.partial"
    left.write_text("half")
    with written.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.warns(LeftOverWarning) as said:
            Store(tmp_path)
    assert not left.exists() and written.exists()
    assert [str(each.message) for each in said] == [
        f"removed {left} (4 B), which a process that was killed had left"
    ]


def test_a_folder_that_can_not_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="file: can't be used as a folder of results"):
        Store(tmp_path / "file")


def test_a_full_disk_stops_with_one_message_and_keeps_what_was_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = 0
    sync = os.fsync

    def fsync(handle: int) -> None:
        nonlocal written
        written += 1
        if written > 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    points = [double(x) for x in range(40)]
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fsync)
        with pytest.raises(OutputError, match=r"\.json: can't be written: no space left") as found:
            compute(points, Store(tmp_path), workers=1)
    assert "the same command continues" in found.value.hint
    assert len(list(tmp_path.rglob("*.json"))) == 5
    assert not list(tmp_path.rglob("*.partial"))
    outcomes = compute(points, Store(tmp_path), workers=1)
    assert sum(outcome.cached for outcome in outcomes) == 5
    assert [outcome.result for outcome in outcomes] == [2 * x for x in range(40)]


def test_a_process_that_dies_costs_its_point_a_try_and_the_others_nothing(tmp_path: Path) -> None:
    points = [
        *(double(x) for x in range(20)),
        Point("point_functions:die_once", {"mark": str(tmp_path / "mark")}, "dies once"),
        Point("point_functions:die", {}, "dies always"),
        *(double(x) for x in range(20, 40)),
    ]
    heard: list[tuple[str, int, int]] = []
    outcomes = compute(
        points,
        Store(tmp_path / "points"),
        workers=2,
        retries=1,
        progress=lambda outcome, done, of: heard.append((outcome.point.key, done, of)),
    )
    results = {outcome.point.label: outcome for outcome in outcomes}
    assert results["dies once"].result == "lived"
    assert results["dies always"].error == (
        "its process was killed by SIGKILL (out of memory?), given up after 2 tries"
    )
    assert [results[f"x={x}"].result for x in range(40)] == [2 * x for x in range(40)]
    assert [done for _, done, _ in heard] == list(range(1, 43)) and heard[0][2] == 42
    assert len({key for key, _, _ in heard}) == 42
    assert Store(tmp_path / "points").read(points[21]) is None


def test_a_point_that_fails_is_not_tried_again_and_not_kept(tmp_path: Path) -> None:
    points = [
        Point("point_functions:fail", {"why": "so it is"}),
        Point("point_functions:nothing", {}),
        Point("no_such_module:f", {}),
        Point("math:fsum", {"wrong": object.__name__}),
        Point("point_functions:talk", {}),
    ]
    outcomes = compute(points, Store(tmp_path), workers=1)
    assert outcomes[0].error == "ValueError: so it is"
    assert [str(outcome.error).split(":")[0] for outcome in outcomes[1:4]] == [
        "AttributeError",
        "ModuleNotFoundError",
        "TypeError",
    ]
    assert outcomes[4].result == "said"
    assert len(list(tmp_path.rglob("*.json"))) == 1


def test_an_interruption_is_no_failure_of_a_point() -> None:
    with pytest.raises(Interrupted):
        carry_out("point_functions:interrupted", {})


def test_a_point_that_fails_leaves_its_traceback(tmp_path: Path) -> None:
    store, point = Store(tmp_path), Point("point_functions:fail", {"why": "so it is"})
    (outcome,) = compute([point], store, workers=1)
    assert outcome.traceback is not None
    assert outcome.traceback.endswith("ValueError: so it is\nand more\n")
    assert "point_functions.py" in outcome.traceback and "in fail" in outcome.traceback
    path = store.traceback_path(point)
    assert path.read_text().endswith(outcome.traceback)
    store.write(Outcome(point, 1))
    assert not path.exists(), "it succeeded at last"
    (refused,) = compute([Point("point_functions:refuse", {})], store, workers=1)
    assert (refused.error, refused.traceback) == ("so it is refused", None)


def test_processes_that_can_not_start_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(SweepError, match="5 processes died before their first point"):
        compute([double(1)], Store(tmp_path), workers=1)
    with pytest.raises(SweepError, match="workers: found 0"):
        compute([double(1)], Store(tmp_path), workers=0)


PARENT = """
import sys
from pathlib import Path
from flashwright.sweeps.points import Point, Store
from flashwright.sweeps.compute import compute
sys.path.insert(0, sys.argv[1])
mark = sys.argv[2] + "/mark"
points = [Point("point_functions:linger", {"mark": mark + str(i)}) for i in range(2)]
compute(points, Store(Path(sys.argv[2]) / "points"), workers=2)
"""


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def until(what: Any, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_no_process_outlives_its_parent(tmp_path: Path, number: signal.Signals) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(HERE), str(tmp_path)], stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: len(list(tmp_path.glob("mark*"))) == 2)
        pids = [int(path.suffix[1:]) for path in tmp_path.glob("mark*")]
        assert all(map(alive, pids))
        parent.send_signal(number)
        parent.wait(timeout=30)
        until(lambda: not any(map(alive, pids)))
    finally:
        parent.kill()
        parent.wait()


def test_the_content_of_a_file_is_a_digest_and_json(tmp_path: Path) -> None:
    Store(tmp_path).write(Outcome(double(1), 2))
    [path] = tmp_path.rglob("*.json")
    first, body = path.read_bytes().split(b"\n", 1)
    assert first.decode() == f"flashwright point sha256={hashlib.sha256(body).hexdigest()}"
    assert json.loads(body.split(b"\n", 1)[1]) == {
        "key": double(1).key,
        "label": "x=1",
        "seconds": 0.0,
        "result": 2,
    }


def test_a_result_that_a_dead_dask_worker_held_is_waited_for_again() -> None:
    """The scheduler tells of a finished point, then that its result is lost, then of it once more."""
    point = Point("math:hypot", {}, "a point")

    class Future:
        key, statuses = "one", ["lost", "pending", "finished"]

        @property
        def status(self) -> str:
            return self.statuses[0]

        def result(self) -> str:
            return carry_out("math:hypot", {})

    class Futures(list[Future]):
        def add(self, future: Future) -> None:
            future.statuses = future.statuses[1:]
            self.append(future)

    cluster = SimpleNamespace(as_completed=lambda first, loop: Futures(first))
    client = SimpleNamespace(submit=lambda *_, **__: Future(), loop=None)
    (found,) = _computed(cluster, client, [point], "tcp://here:1")
    assert found.result == 0.0 and found.point is point
    Future.statuses = ["cancelled"]
    with pytest.raises(SweepError, match="the scheduler is gone"):
        list(_computed(cluster, client, [point], "tcp://here:1"))


def test_a_process_that_nobody_listens_to_ends_in_silence() -> None:
    """Whoever started it may have been ended before the process was ready."""
    ours, theirs = Pipe()
    handle = theirs.fileno()
    ours.close()
    program = f"from flashwright.sweeps.pool import serve; serve({handle})"
    ended = subprocess.run(
        [sys.executable, "-c", program], pass_fds=[handle], capture_output=True, timeout=60
    )
    theirs.close()
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, b"", b"")
