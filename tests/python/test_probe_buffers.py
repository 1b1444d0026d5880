"""Probes of buffers on simulated drives whose make is known: what they find is held against what was built in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flashwright.drive.findings import Finding
from flashwright.probing.probes.buffer_kind import BufferKind
from flashwright.probing.probes.flush import Flush, _drain, _honoured
from flashwright.probing.probes.prefetch import Prefetch
from flashwright.probing.probes.read_buffer import ReadBuffer
from flashwright.probing.probes.shared.edges import center, find_edge, grid, is_above
from flashwright.probing.probes.write_buffer import WriteBuffer, fit
from flashwright.simulation.ssd import Ssd
from flashwright.target.question import Context
from flashwright.target.target import Target

ROOT = Path(__file__).parents[2]
KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture(scope="module")
def drives() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "experiments" / "truth-recovery"))
    try:
        import drives

        yield drives
    finally:
        sys.path.remove(str(ROOT / "experiments" / "truth-recovery"))


def ask(
    drive: str | Ssd, *probes: Any, seed: int = 1, known: dict[str, Finding] | None = None
) -> dict[str, Finding]:
    known = dict(known or {})
    with Target(drive) as target:
        for probe in probes:
            findings = probe.run(Context(target, "quick", seed, dict(known)))
            assert [finding.parameter for finding in findings] == list(probe.PARAMETERS)
            known |= {finding.parameter: finding for finding in findings}
    return known


def values(found: dict[str, Finding]) -> dict[str, tuple[str, object]]:
    return {name: (finding.verdict, finding.value) for name, finding in found.items()}


def given(value: object) -> tuple[str, object]:
    return ("absent", None) if value is None else ("found", value)


# 1000: no write buffer, reads ahead. 1002: both buffers, eager, a log-block layer. 1007: reads from 512 KiB on. 1018:
# lazy and streaming, much noise. 1032: no read buffer, a lazy cache. 1056: an eager cache before 40 chips.
@pytest.mark.parametrize("seed", [1000, 1002, 1007, 1018, 1032, 1056])
def test_what_was_drawn_is_found(drives: Any, seed: int) -> None:
    drive = drives.draw(seed)
    truth = drives.truth(drive)
    found = ask(drive, ReadBuffer(), Prefetch(), WriteBuffer(), BufferKind(), Flush())
    read = drive.config["controller"]["read-buffer"]
    ahead = drives.size(read["prefetch"]) if truth.prefetch else None
    assert values(found) == {
        "read-buffer": given(truth.read_buffer),
        "read-buffer-least": given(truth.read_buffer_least or None),
        "prefetch": ("found", "yes" if truth.prefetch else "no"),
        "prefetch-size": given(ahead),
        "write-buffer": given(truth.write_buffer),
        "buffer-kind": given(truth.kind),
        "write-buffer-drain": given(truth.drain),
        "flush-time": ("found", 0.0),
        "flush-honoured": given("yes" if truth.write_buffer else None),
    }
    for name, finding in found.items():
        assert finding.confidence > 0.85 or name == "read-buffer-least", name
        assert finding.why


# Kim 2011: sections 4.2.5 and 4.2.6, Table 3. Of SSD-D's write buffer the paper could tell nothing; the model has none.
@pytest.mark.parametrize(
    ("name", "read", "least", "write"),
    [
        ("ssd-a", 256 * KIB, None, 255 * KIB),
        ("ssd-b", None, None, 128 * KIB),
        ("ssd-c", 3072 * KIB, 512 * KIB, 112 * KIB),
        ("ssd-d", 64 * KIB, 16 * KIB, None),
    ],
)
def test_the_drives_of_the_paper(name: str, read: object, least: object, write: object) -> None:
    found = ask(f"sim:{name}", ReadBuffer(), Prefetch(), WriteBuffer(), BufferKind())
    assert values(found) == {
        "read-buffer": given(read),
        "read-buffer-least": given(least),
        "prefetch": ("found", "no"),
        "prefetch-size": ("absent", None),
        "write-buffer": given(write),
        "buffer-kind": given("buffer" if write else None),
    }


def test_a_target_too_small_for_a_procedure_is_unknown_and_says_so() -> None:
    tiny = {
        "geometry.channels": 1,
        "geometry.dies-per-channel": 1,
        "geometry.blocks-per-plane": 48,
        "geometry.pages-per-block": 4,
        "capacity.utilization": 0.7,
    }
    drive = Ssd.find("default").with_(tiny)
    found = ask(drive, ReadBuffer(), Prefetch(), WriteBuffer(), BufferKind(), Flush())
    assert {name for name, finding in found.items() if finding.verdict != "unknown"} == {
        "flush-time"
    }
    assert "too small" in found["read-buffer"].why
    assert "too small" in found["write-buffer"].why
    assert "not known" in found["buffer-kind"].why


def test_a_buffer_larger_than_what_is_tried_is_unknown(drives: Any) -> None:
    drive = drives.draw(1012).with_({"controller.read-buffer.size": "512 MiB"})
    found = ask(drive, ReadBuffer())["read-buffer"]
    assert found.verdict == "unknown"
    assert "larger" in found.why
    assert found.figures["least_bytes"] >= 64 * MIB


def test_a_write_buffer_whose_end_does_not_show_is_unknown() -> None:
    # A stream passes through it as fast as flash takes it, so no size has a step.
    found = ask("sim:intel-320", WriteBuffer())["write-buffer"]
    assert found.verdict == "unknown"
    assert "there is a buffer" in found.why


def test_what_flash_keeps_up_with_says_nothing_of_the_kind(drives: Any) -> None:
    # 40 chips behind one link: they program whatever comes as it comes.
    buffer = ask(drives.draw(1038), WriteBuffer())["write-buffer"]
    assert buffer.verdict == "unknown" and "nothing else bears it out" in buffer.why
    size = int(buffer.figures["one_write_bytes"])
    known = {"write-buffer": Finding("write-buffer", "found", size, "B")}
    found = ask(drives.draw(1038), BufferKind(), known=known)
    assert found["buffer-kind"].verdict == "unknown"
    assert "keeps up" in found["buffer-kind"].why


def test_a_flush_that_does_not_wait_is_told_from_one_that_does() -> None:
    rng = np.random.default_rng(2)
    nothing, wrote = rng.normal(50e3, 2e3, 64), rng.normal(3e6, 1e5, 30)
    # Programming shows to take 4 ms.
    buffer = Finding("write-buffer", "found", MIB, figures={"step_ns": 4e6})
    waits, returns, between = (rng.normal(mean, 2e3, 30) for mean in (3.5e6, 50e3, 400e3))
    decided = [
        _honoured(times, wrote, nothing, buffer, MIB, rng) for times in (waits, returns, between)
    ]
    assert [(finding.verdict, finding.value) for finding in decided] == [
        ("found", "yes"),
        ("found", "no"),
        ("unknown", None),
    ]


@pytest.mark.parametrize(
    ("left", "kind"), [(0.02, "eager"), (1.0, "lazy"), (1.4, "lazy"), (0.5, None)]
)
def test_what_a_pause_leaves_tells_how_the_buffer_empties(left: float, kind: str | None) -> None:
    rng = np.random.default_rng(7)
    nothing = rng.normal(50e3, 2e3, 64)
    at_once = rng.normal(4e6, 3e5, 30)
    later = 50e3 + left * rng.normal(4e6, 3e5, 30)
    finding = _drain([0.0, 1e7], np.array([at_once, later]), nothing, MIB, rng)
    assert finding.value == kind
    assert finding.figures["left_share"] == pytest.approx(left, abs=0.08)


def test_the_same_seed_gives_the_same_findings(drives: Any) -> None:
    first, second = (ask(drives.draw(1018), WriteBuffer(), seed=5) for _ in range(2))
    assert first["write-buffer"].figures == second["write-buffer"].figures
    assert first["write-buffer"].confidence == second["write-buffer"].confidence


@pytest.mark.parametrize("probe", [ReadBuffer(), Prefetch(), WriteBuffer(), BufferKind(), Flush()])
def test_the_cost_is_about_what_is_asked(drives: Any, probe: Any) -> None:
    known = ask(drives.draw(1002), ReadBuffer(), WriteBuffer())
    with Target(drives.draw(1002)) as target:
        context = Context(target, "quick", 1, known)
        cost = probe.cost(context)
        assert target.bytes_written == 0
        probe.run(context)
        for about, real in (
            (cost.bytes_read, target.bytes_read),
            (cost.bytes_written, target.bytes_written),
        ):
            assert real < 2.5 * about + 64 * MIB
            assert about < 4 * real + 64 * MIB


@pytest.mark.parametrize("truth", [32 * KIB, 100 * KIB, 3072 * KIB])
@pytest.mark.parametrize("level", [1.0, 0.3])
def test_an_edge_is_found_in_noise_or_left_open(truth: int, level: float) -> None:
    rng = np.random.default_rng(3)

    def sample(size: int, count: int) -> np.ndarray:
        return rng.normal(level if size <= truth else 0.0, 0.4, count)

    edge = find_edge(sample, 16 * KIB, 8 * MIB, KIB, lambda size: 400, rng)
    if level == 1.0:
        assert (edge.inside, edge.outside) == (truth, truth + KIB)
        assert edge.confidence > 0.95
    else:
        # Below half of the level that was promised there is no edge.
        assert edge.confidence == 0


def test_an_edge_from_above_is_the_same() -> None:
    rng = np.random.default_rng(4)

    def sample(size: int, count: int) -> np.ndarray:
        return rng.normal(1.0 if size >= 512 * KIB else 0.0, 0.2, count)

    edge = find_edge(sample, 724 * KIB, 362 * KIB, KIB, lambda size: 400, rng)
    assert (edge.inside, edge.outside) == (512 * KIB, 511 * KIB)


def test_repeats_stop_when_it_is_clear() -> None:
    rng = np.random.default_rng(5)

    def around(mean: float) -> Callable[[int], np.ndarray]:
        return lambda count: rng.normal(mean, 1.0, count)

    above, values = is_above(around(5.0), 0.0, 1000)
    assert above is True and values.size == 8
    above, values = is_above(around(0.0), 0.0, 100)
    assert above is None and values.size == 100


def test_the_center_bears_outliers_on_both_sides() -> None:
    clean = np.random.default_rng(6).normal(10.0, 1.0, 1000)
    dirty = clean.copy()
    dirty[:40], dirty[-40:] = 1e6, -1e6
    mean, error = center(dirty)
    assert mean == pytest.approx(10.0, abs=0.15)
    # Known: the deviation of a mean of 1000 normal values is 0.032.
    assert error == pytest.approx(0.032, rel=0.25)


def test_a_line_is_fitted_by_share_not_by_nanoseconds() -> None:
    sizes = [KIB, 2 * KIB, 4 * KIB, MIB]
    times = {size: np.full(8, 20_000.0 + 5 * size) for size in sizes}
    times[MIB] *= 1.01
    line = fit(sizes, times)
    assert line.fixed_ns == pytest.approx(20_000, rel=0.01)
    assert line.at(2 * KIB) == pytest.approx(20_000 + 10 * KIB, rel=0.01)


def test_a_grid_stays_between_its_ends_on_whole_steps() -> None:
    sizes = grid(4096, 10 * MIB, 2, 4096)
    assert sizes[0] == 4096 and sizes[-1] <= 10 * MIB
    assert all(size % 4096 == 0 for size in sizes)
    assert sizes == sorted(set(sizes))
