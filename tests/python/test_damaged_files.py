"""No damaged file is ever taken for a whole one: it is refused in a line, whatever the damage.

A few hundred damages of each kind of file; ``FLASHWRIGHT_DAMAGES=2000`` tries as many.
"""

from __future__ import annotations

import os
import random
import resource
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flashwright import Ssd, _core, tracefiles, workloads
from flashwright.errors import FlashwrightError, SavedStateError
from flashwright.probing.session import probe
from flashwright.simulation.run import Run, RunSettings
from flashwright.support.sealed import DamagedError, open_sealed, seal
from flashwright.sweeps.points import Outcome, Point, Store
from flashwright.target.target import Target

DAMAGES = int(os.environ.get("FLASHWRIGHT_DAMAGES", "250"))
# What is allocated for a damaged length would show as more than this.
GROWTH_MAX_KB = 200_000

DRIVE = (
    Ssd.named("default")
    .with_({"geometry.blocks-per-plane": 32, "geometry.pages-per-block": 16})
    .precondition("sequential")
)


def flip_bit(whole: bytearray, rng: random.Random) -> None:
    whole[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)


def change_bytes(whole: bytearray, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 5)):
        whole[rng.randrange(len(whole))] = rng.randrange(256)


def change_the_start(whole: bytearray, rng: random.Random) -> None:
    whole[rng.randrange(min(128, len(whole)))] = rng.randrange(256)


def cut(whole: bytearray, rng: random.Random) -> None:
    del whole[rng.randrange(len(whole)) :]


def insert(whole: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(whole) + 1)
    whole[at:at] = rng.randbytes(rng.randint(1, 64))


def take_out(whole: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(whole))
    del whole[at : at + rng.randint(1, 64)]


def swap(whole: bytearray, rng: random.Random) -> None:
    size = rng.randint(1, max(1, len(whole) // 3))
    one = rng.randrange(len(whole) - 2 * size + 1)
    two = rng.randrange(one + size, len(whole) - size + 1)
    whole[one : one + size], whole[two : two + size] = (
        whole[two : two + size],
        whole[one : one + size],
    )


def zero(whole: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(whole))
    end = min(len(whole), at + rng.choice([1, 16, 512, 4096]))
    whole[at:end] = bytes(end - at)


def append(whole: bytearray, rng: random.Random) -> None:
    whole += rng.choice([b"\0", b"\n", rng.randbytes(rng.randint(1, 300)), bytes(whole)])


DAMAGE = [
    flip_bit,
    change_bytes,
    change_the_start,
    cut,
    insert,
    take_out,
    swap,
    zero,
    append,
]


@dataclass
class Kind:
    """A file that was written, and what reads it: something that shows what was read."""

    path: Path
    read: Callable[[], Any]


def saved_run(folder: Path) -> Kind:
    path = folder / "run.saved"
    made = Run.create(
        DRIVE.toml, "sequential", workloads.uniform(), RunSettings(requests=4000, depth=4)
    )
    made.go(stop_after=2000, checkpoint=path)
    return Kind(path, lambda: Run.load(path).go().json["digest"])


def probe_state(folder: Path) -> Kind:
    path = folder / "state"

    def read() -> Any:
        with Target(DRIVE) as drive:
            found = probe(drive, mode="quick", only=["clustered-page"], state=path)
        return {name: (one.verdict, one.value) for name, one in found.findings.items()}

    read()
    return Kind(path, read)


def point(folder: Path) -> Kind:
    store, one = Store(folder / "points"), Point("math:fsum", {"seq": [1]}, "a point")
    store.write(Outcome(one, {"figures": [1.5, 2.5]}, seconds=0.25))
    [path] = store.folder.rglob("*.json")

    def read() -> Any:
        found = store.read(one)
        # A sweep computes again what is damaged, and says so.
        if found is None and store.damaged == [path]:
            store.damaged.clear()
            raise SavedStateError(f"{path}: damaged")
        assert found is not None
        return found.result

    return Kind(path, read)


def recording(folder: Path) -> Kind:
    path, text = folder / "trace.fwt", folder / "trace.spc"
    lines = (
        f"{i % 2},{i * 7919 % 40_000 * 8},4096,{'rw'[i % 3 > 0]},{i * 1e-5:.6f}\n"
        for i in range(140_000)
    )
    text.write_text("".join(lines))
    tracefiles.convert(text, path)
    return Kind(path, lambda: tracefiles.columns(str(path)).to_pydict())


KINDS = [saved_run, probe_state, point, recording]


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_every_damage_is_refused(make: Callable[[Path], Kind], tmp_path: Path) -> None:
    kind = make(tmp_path)
    whole = kind.path.read_bytes()
    expected = kind.read()
    rng = random.Random(20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(DAMAGES):
        damage = DAMAGE[number % len(DAMAGE)]
        damaged = bytearray(whole)
        while damaged == whole:
            damage(damaged, rng)
        kind.path.write_bytes(damaged)
        with pytest.raises(FlashwrightError) as refused:
            kind.read()
        message = f"{damage.__name__} number {number}: {refused.value}"
        assert str(kind.path) in str(refused.value), message
        assert len(str(refused.value).splitlines()) == 1, message
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWTH_MAX_KB
    kind.path.write_bytes(whole)
    assert kind.read() == expected


@pytest.mark.parametrize("make", [saved_run, probe_state], ids=lambda make: make.__name__)
def test_a_file_of_another_build_is_refused_as_such(
    make: Callable[[Path], Kind], tmp_path: Path
) -> None:
    kind = make(tmp_path)
    whole = kind.path.read_bytes()
    name = whole.split()[1].decode()
    opened = open_sealed(kind.path, whole, name)
    words = name.replace("-", " ")
    about = {key: value for key, value in opened.about.items() if key not in ("version", "code")}
    kind.path.write_bytes(seal(name, opened.content, code="0123456789ab", **about))
    version = _core.__version__
    said = rf"^{kind.path}: another version: found a {words} of Flashwright {version} \(build 01234567\), expected "
    with pytest.raises(SavedStateError, match=said) as refused:
        kind.read()
    assert not isinstance(refused.value, DamagedError)


def test_a_file_of_another_release_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(_core, "__version__", "9.8.7")
        kind = saved_run(tmp_path)
    with pytest.raises(
        SavedStateError,
        match=r"another version: found a saved run of Flashwright 9\.8\.7, expected",
    ):
        kind.read()


def test_a_probe_state_of_another_drive_with_the_same_name_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with Target(DRIVE) as drive:
        probe(drive, mode="quick", only=["clustered-page"], state=state)
    other = DRIVE.with_({"timing.program": "900us"})
    with (
        Target(other) as drive,
        pytest.raises(SavedStateError, match="belongs to another drive: found drive"),
    ):
        probe(drive, mode="quick", only=["clustered-page"], state=state)


def test_a_trace_of_the_same_size_with_other_content_is_another_trace(tmp_path: Path) -> None:
    trace, saved = tmp_path / "a.spc", tmp_path / "run.saved"
    trace.write_text("".join(f"0,{i % 64 * 8},4096,w,{i / 1000:.3f}\n" for i in range(1000)))
    made = Run.create(DRIVE.toml, "empty", workloads.trace(str(trace)), RunSettings())
    made.go(stop_after=500, checkpoint=saved)
    Run.load(saved).go()
    # Saved once more by a run that was itself resumed.
    Run.load(saved).go(stop_after=700, checkpoint=saved)
    assert Run.load(saved).go().json["measured"]["requests"] == 1000
    trace.write_text(trace.read_text().replace(",w,0.9", ",r,0.9"))
    with pytest.raises(
        SavedStateError, match=f"another trace: the run's trace {trace} is another file now"
    ):
        Run.load(saved)
    trace.unlink()
    with pytest.raises(
        SavedStateError, match=f"another trace: the run's trace {trace} is not there"
    ):
        Run.load(saved)


def test_a_trace_that_changes_while_the_run_goes_is_noticed_when_it_is_resumed(
    tmp_path: Path,
) -> None:
    trace, saved = tmp_path / "a.spc", tmp_path / "run.saved"
    trace.write_text("".join(f"0,{i % 64 * 8},4096,w,{i / 1000:.3f}\n" for i in range(1000)))
    made = Run.create(DRIVE.toml, "empty", workloads.trace(str(trace)), RunSettings())
    with trace.open("a") as more:
        more.write("0,0,4096,w,2.0\n")
    made.go(stop_after=500, checkpoint=saved)
    with pytest.raises(SavedStateError, match="changed during the run"):
        Run.load(saved)
