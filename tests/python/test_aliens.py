"""Drives of other makes: the calls behind a target, what their makes obey, and what is held to be true of them."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flashwright.errors import TargetError
from flashwright.probing.probes import PROBES
from flashwright.target.deadline import Deadline
from flashwright.target.guard import Core
from flashwright.target.target import OutOfTimeError, Range, Target
from needs import need

FOLDER = Path(__file__).parents[2] / "experiments" / "alien-drives"
KIB, MIB = 1 << 10, 1 << 20

sys.path.insert(0, str(FOLDER))
try:
    aliens: Any = importlib.import_module("aliens")
    truths: Any = importlib.import_module("truths")
    # There are other programs called run.py.
    _spec = importlib.util.spec_from_file_location("alien_drives_run", FOLDER / "run.py")
    assert _spec is not None and _spec.loader is not None
    run: Any = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(run)
finally:
    sys.path.remove(str(FOLDER))

MAKES: tuple[str, ...] = aliens.MAKES
LOGS = ("slc-fixed", "map-cache", "coarse", "raid", "slc-dynamic", "hashed", "throttle", "compress")
"""Makes that clean."""


@pytest.fixture(autouse=True, scope="module")
def compiler() -> str:
    return need("cc")


class Ruler:
    """A model in Python: each request takes 100 ns a sector, one after the other."""

    def __init__(self) -> None:
        self.clock, self.purges, self.closed = 0, 0, False
        self.seen: list[tuple[int, int]] = []

    def info(self) -> str:
        return json.dumps(
            {
                "name": "ruler",
                "kind": "simulated",
                "capacity_bytes": 64 * MIB,
                "block_bytes": 512,
                "real_time": False,
                "writes_allowed": True,
            }
        )

    def now(self) -> int:
        return self.clock

    def idle(self, nanos: int) -> None:
        self.clock += nanos

    def play(
        self, kinds: Any, first_sectors: Any, sectors: Any, depth: int, seconds: float | None = None
    ) -> Any:
        self.seen += zip(kinds.tolist(), first_sectors.tolist(), strict=True)
        ended = self.clock + np.cumsum(100 * np.maximum(sectors, 1)).astype(np.uint64)
        first = np.full(depth, self.clock, np.uint64)
        submitted = np.append(first, ended)[: ended.size]
        self.clock = int(ended[-1])
        return submitted, ended

    def purge(self) -> bool:
        self.purges += 1
        self.clock = 0
        return True

    def close(self) -> None:
        self.closed = True


def test_a_target_takes_a_model_in_python() -> None:
    ruler: Core = Ruler()
    assert isinstance(ruler, Ruler)
    with Target(ruler) as target:
        assert (target.name, target.kind, target.capacity_bytes) == ("ruler", "simulated", 64 * MIB)
        times = target.play("write", np.arange(4) * 4096, 4096, depth=2)
        assert times.latency_ns.tolist() == [800, 1600, 1600, 1600]
        target.idle(1e6)
        assert target.purge() and ruler.purges == 1
        assert target.now_ns == 0 and target.elapsed_ns == 3200 + 1_000_000
    assert ruler.closed


def test_a_part_of_a_model_is_guarded() -> None:
    ruler = Ruler()
    with Target(ruler, part=Range(MIB, MIB)) as target:
        target.play("write", [0], 4096)
        assert ruler.seen == [(1, MIB // 512)]
        with pytest.raises(TargetError, match="within its"):
            target.play("write", [MIB], 512)
    reads = Ruler()
    with Target(reads, read_only=True) as target:
        # It is written once, in order, before writes are refused.
        assert [kind for kind, _ in reads.seen] == [1] * 64 + [3]
        with pytest.raises(TargetError, match="reads only"):
            target.play("write", [0], 512)


def mixed(drive: Any, seed: int, count: int = 20_000) -> Any:
    """Requests of all kinds and sizes, and a pause; when each ended."""
    rng = np.random.default_rng(seed)
    with Target(drive) as target:
        block = target.block_bytes
        target.fill(size_bytes=MIB)
        kinds = rng.choice([0, 1, 1, 1, 2, 3], count)
        sizes = rng.integers(1, 64, count) * block
        # Half of the requests go to a small part.
        slots = np.where(rng.random(count) < 0.5, 64 * MIB, target.capacity_bytes - 64 * block)
        places = (rng.random(count) * (slots // block)).astype(np.int64) * block
        parts = [target.play(kinds, places, sizes, depth=16).ended_ns]
        target.idle(5e9)
        parts.append(target.play("write", places[:200], 4096, depth=4).ended_ns)
        assert drive.audit() == 0
        target.purge()
        assert drive.audit() == 0
    return np.concatenate(parts)


@pytest.mark.parametrize("make", MAKES)
def test_a_seed_repeats_and_nothing_is_lost(make: str) -> None:
    first = mixed(aliens.Alien(make, 3), 1)
    assert np.array_equal(first, mixed(aliens.Alien(make, 3), 1))
    assert not np.array_equal(first, mixed(aliens.Alien(make, 4), 1))


@pytest.mark.parametrize("make", MAKES)
def test_requests_wait_for_nothing_when_more_are_outstanding(make: str) -> None:
    took = []
    for depth in (1, 4, 32):
        with Target(aliens.Alien(make, 5)) as target:
            target.fill(size_bytes=MIB, end_bytes=256 * MIB)
            target.idle(60e9)
            places = np.random.default_rng(2).integers(0, 256 * MIB // 4096, 2000) * 4096
            times = target.play("read", places, 4096, depth=depth)
            assert np.all(times.ended_ns > times.submitted_ns)
            assert np.all(times.submitted_ns[:depth] == times.submitted_ns[0])
            assert times.submitted_ns[depth] == times.ended_ns[:depth].min()
            took.append(times.duration_ns)
    # Times are noisy by some per cent.
    assert took[1] <= 1.05 * took[0] and took[2] <= 1.05 * took[1]


@pytest.mark.parametrize("make", LOGS)
def test_cleaning_follows_from_what_is_left(make: str) -> None:
    copies = []
    for order in (True, False):
        alien = aliens.Alien(make, 6)
        with Target(alien) as target:
            slots = target.capacity_bytes // (64 * KIB)
            target.fill(size_bytes=MIB)
            rng = np.random.default_rng(1)
            places = np.arange(4 * slots) % slots if order else rng.integers(0, slots, 4 * slots)
            target.play("write", places * 64 * KIB, 64 * KIB)
            counters = alien.counters()
        copies.append(counters["copied_units"] / counters["host_units"])
    # In order, blocks are empty when they are cleaned, but for parity that is written again, and what SLC folds.
    assert copies[0] < 0.7 * copies[1]


_BROKEN = """
#include "store.h"
int main(int count, char **arguments)
{
    store s;
    store_new(&s, 64, 16, 0.5);
    store_renew(&s);
    for (u32 i = 0; i < 200; i++) {
        while (s.empties < 3)
            store_clean(&s, store_emptiest(&s));
        store_put(&s, i * 37 % 64, HOST);
    }
    u64 before = store_audit(&s);
    switch (count > 1 ? arguments[1][0] : 0) {
    case 'c': s.valid[s.slot_of[5] / 16]++; break;
    case 'm': s.slot_of[5] = s.slot_of[6]; break;
    case 'l': s.slot_of[5] = NONE; break;
    case 'e': s.empties++; break;
    }
    return before ? 100 : (int)store_audit(&s);
}
"""


def test_an_audit_sees_what_is_lost(tmp_path: Path, compiler: str) -> None:
    (tmp_path / "broken.c").write_text(_BROKEN)
    built = str(tmp_path / "broken")
    source = str(tmp_path / "broken.c")
    subprocess.run([compiler, f"-I{FOLDER}", "-o", built, source, "-lm"], check=True)
    # Sound; then a count, a map, a unit and an empty block that are wrong.
    assert subprocess.run([built]).returncode == 0
    for broken in "cmle":
        assert 0 < subprocess.run([built, broken]).returncode < 100


def median_us(target: Target, kind: Any, places: Any, size: int) -> float:
    return float(np.median(target.play(kind, places, size).latency_ns)) / 1e3


def test_a_full_slc_cache_slows_writes_until_a_pause() -> None:
    alien = aliens.Alien("slc-fixed", 1)
    with Target(alien) as target:
        sizes = np.arange(0, int(1.3 * alien.facts["slc"]), MIB)
        rates = MIB / np.diff(target.play("write", sizes, MIB).ended_ns.astype(float))
        full = int(alien.facts["slc"] / MIB)
        assert np.mean(rates[full + 10 :]) < 0.8 * np.mean(rates[: full - 10])
        target.idle(600e9)
        again = MIB / np.diff(target.play("write", sizes[:50], MIB).ended_ns.astype(float))
        assert np.mean(again) > 0.9 * np.mean(rates[: full - 10])


def test_a_map_that_is_not_cached_is_read_first() -> None:
    with Target(aliens.Alien("map-cache", 2)) as target:
        target.fill(size_bytes=MIB)
        target.idle(1e9)
        rng = np.random.default_rng(1)
        near = median_us(target, "read", rng.integers(0, 8 * MIB // 4096, 400) * 4096, 4096)
        whole = rng.integers(0, target.capacity_bytes // 4096, 400) * 4096
        assert median_us(target, "read", whole, 4096) > 1.5 * near


def test_a_card_closes_what_it_cannot_keep_open() -> None:
    alien = aliens.Alien("card", 7)
    unit, opens = int(alien.facts["block"]), int(alien.facts["opens"])
    page = int(alien.facts["page"])
    with Target(alien) as target:
        target.fill(size_bytes=MIB, end_bytes=32 * unit)

        def turns(units: int) -> float:
            at = np.arange(20 * units)
            return median_us(target, "write", at % units * unit + at // units * page, page)

        assert turns(opens + 1) > 3 * turns(opens)


def test_parity_is_cheapest_by_whole_rows() -> None:
    alien = next(a for s in range(20) if (a := aliens.Alien("raid", s)).facts["parity"])
    row = int(alien.facts["chunk"] * alien.facts["data"])
    with Target(alien) as target:
        target.fill(size_bytes=row, end_bytes=64 * row)
        rows = np.arange(32) * row
        whole = median_us(target, "write", rows, row)
        target.idle(1e9)
        assert median_us(target, "write", rows + 4096, row - 4096) > 1.2 * whole


def test_a_volume_gives_what_is_provisioned_and_no_more() -> None:
    alien = aliens.Alien("volume", 1)
    with Target(alien) as target:
        places = np.random.default_rng(1).integers(0, 4 * MIB // 4096, 1_500_000) * 4096
        ended = target.play("read", places, 4096, depth=64).ended_ns.astype(float)
        last = ended[-200_000:]
        assert 2e5 / np.ptp(last) * 1e9 <= 1.02 * alien.facts["iops"]


def test_pauses_recur_in_time_not_in_bytes() -> None:
    alien = aliens.Alien("throttle", 1)
    with Target(alien) as target:
        target.fill(size_bytes=MIB, end_bytes=64 * MIB)
        for rest in (0, 200_000):
            begun, late = target.elapsed_ns, 0
            for at in range(1000):
                late += target.play("read", [at * 4096], 4096).latency_ns[0] > 450_000
                target.idle(rest)
            expected = (target.elapsed_ns - begun) / alien.facts["pause_every_ns"]
            assert late == pytest.approx(expected, abs=2 + 0.3 * expected)


def test_a_play_ends_with_its_time_and_stays_on_the_drive() -> None:
    alien = aliens.Alien("card", 1)
    kinds, sectors = np.ones(3_000_000, np.uint8), np.ones(3_000_000, np.uint32)
    places = np.arange(3_000_000).astype(np.uint64) * 977 % 1_000_000
    submitted, ended = alien.play(kinds, places, sectors, 1, 0.01)
    assert 0 < ended.size < 3_000_000 and submitted.size == ended.size
    with pytest.raises(ValueError, match="make: found 'tape', expected one of slc-fixed"):
        aliens.Alien("tape", 1)
    end = np.array([alien.capacity_bytes // 512], np.uint64)
    with pytest.raises(ValueError, match="at most"):
        alien.play(kinds[:1], end, sectors[:1], 1)
    alien.close()
    with Target(aliens.Alien("card", 1)) as target:
        target.watch = Deadline(0.05)
        with pytest.raises(OutOfTimeError):
            target.play("write", places.astype(np.int64) * 512, 512, depth=2)


@pytest.mark.parametrize("make", MAKES)
def test_there_is_a_truth_for_each_parameter(make: str) -> None:
    alien = aliens.Alien(make, 2)
    facts = dict(alien.facts) | {"capacity": alien.capacity_bytes, "sector": alien.block_bytes}
    alien.close()
    cleaning = {"stalls": 100.0, "interval_bytes": 1e6, "stall_ns": 1e6}
    truth_by_parameter = run.truths_by(make, facts, cleaning)
    assert set(truth_by_parameter) == {
        parameter for probe in PROBES for parameter in probe.PARAMETERS
    }
    for parameter, truth in truth_by_parameter.items():
        assert truth.why and "\n" not in truth.why
        assert all(low <= high for low, high in truth.ranges), parameter
        # What can be answered has an answer.
        assert not (truth.answerable and truth.has_reference) or truth.values or truth.ranges, (
            parameter
        )


def test_no_make_is_on_both_sides() -> None:
    assert set(aliens.DEVELOPMENT).isdisjoint(aliens.HELD_OUT)
    for folder, names in (("development", aliens.DEVELOPMENT), ("heldout", aliens.HELD_OUT)):
        sources = [path.read_text() for path in (FOLDER / folder).glob("*.c")]
        found = [re.search(r'^const make \w+ = {"([\w-]+)"', s, re.MULTILINE) for s in sources]
        assert {match[1] for match in found if match} == set(names)


def test_how_findings_are_judged() -> None:
    def said(verdict: str, value: Any = None) -> dict[str, Any]:
        return {"verdict": verdict, "value": value}

    size = truths.between("", 90, 110, 4096)
    hidden = truths.cannot("", 4096)
    unjudged = truths.Truth("", has_reference=False)
    cases = [
        (said("found", 4096), size, "right"),
        (said("found", 100), size, "right"),
        (said("found", 111), size, "false"),
        (said("absent"), size, "false"),
        (said("unknown"), size, "unknown"),
        (said("absent"), truths.exactly("", truths.NONE), "right"),
        (said("found", "yes"), truths.about("", 5, 0.1), "false"),
        (said("unknown"), hidden, "rightly untold"),
        (said("found", 4096), hidden, "right"),
        (said("found", 512), hidden, "false"),
        (said("found", 512), unjudged, "not judged"),
    ]
    for finding, truth, expected in cases:
        assert truths.judge(finding, truth) == expected


def test_calibration_counts_claims_alone() -> None:
    rows = [("right", 1.0), ("right", 0.99), ("false", 0.995), ("false", 0.55), ("unknown", 0.0)]
    named = {str(at): {"judgement": j, "confidence": c} for at, (j, c) in enumerate(rows)}
    bins = run.calibration([{"rows": named}])
    assert bins[0] == (0.5, 0.6, 1, 0) and bins[-1] == (0.99, 1.0, 3, 2)
    assert sum(claims for _, _, claims, _ in bins) == 4
    tally = run.counts([{"rows": named}])
    assert (tally["false"], tally["sure and false"]) == (2, 1)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def called(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["run.py", *arguments])
        run.main()
        return capsys.readouterr().out

    return called


def test_a_run_keeps_every_finding(command: Any, tmp_path: Path) -> None:
    out, plot = tmp_path / "findings.parquet", tmp_path / "plot.svg"
    wanted = ["--make", "card", "--make", "ram-disk", "--only", "read-buffer"]
    said = command("--drives", "1", *wanted, "--out", str(out), "--plot", str(plot))
    assert "| `card` | 1 | 2 | 0 | 0 | 0 | 0 |" in said
    drives = run.load(out, "today")["drives"]
    assert [(drive["make"], drive["seed"]) for drive in drives] == [("card", 0), ("ram-disk", 0)]
    row = drives[0]["rows"]["read-buffer"]
    assert (row["judgement"], row["verdict"]) == ("right", "absent")
    assert row["truth"]["values"] == ["none"] and row["confidence"] > 0.5
    assert "share of claims that are right" in plot.read_text()
    assert command("--out", str(out), "--make", "card").splitlines()[:3] == said.splitlines()[:3]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--make", "tape"], "--make: found 'tape', expected one of development"),
        (["--out", "/no/such/file"], "/no/such/file: no set 'today'; --drives N makes one"),
    ],
)
def test_what_is_wrong_is_one_line(command: Any, arguments: list[str], says: str) -> None:
    with pytest.raises(SystemExit) as raised:
        command(*arguments)
    assert says in str(raised.value) and "\n" not in str(raised.value)
