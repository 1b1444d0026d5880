"""The drive's own time: quick mode ends in time however slow the drive is, and says what it could not ask."""

from __future__ import annotations

import numpy as np
import pytest

from flashwright.probing import session
from flashwright.probing.drive_time import LIMITS_S, Pace, allowed_s
from flashwright.probing.probes import PROBES
from flashwright.simulation.ssd import Ssd
from flashwright.target.deadline import Allowance, Deadline, OutOfDriveTimeError
from flashwright.target.target import Target
from flashwright.twin import Model

MIB = 1 << 20
FAST = Model(page_bytes=16384, pages_per_block=32, channels=4).ssd("fast", "", 128 * MIB)
SLOW = FAST.with_(
    {"name": "slow", "timing.program": "40 ms", "timing.read": "4 ms", "timing.erase": "100 ms"}
)


@pytest.mark.parametrize("name", ["dftl-small-block", "default"])
def test_quick_mode_ends_within_half_an_hour_on_slow_drives(name: str) -> None:
    """Both took over an hour before; the plan says so within a factor of two."""
    with Target(f"sim:{name}") as target:
        ahead = session.plan(target, mode="quick")
        result = session.probe(target, mode="quick")
    used = sum(asked.target_seconds for asked in result.asked)
    assert used <= LIMITS_S["quick"]
    assert used / 2 <= sum(item.seconds for item in ahead) <= 2 * used
    moved = sum(asked.bytes_read + asked.bytes_written for asked in result.asked)
    assert moved / 2 <= sum(item.usual_bytes for item in ahead) <= 2 * moved
    short = [finding for finding in result.findings.values() if "time ran out" in finding.why]
    assert short and all(finding.verdict == "unknown" for finding in short)
    assert all("would need about" in finding.why for finding in short)
    assert any("full mode allows 8 hours" in finding.why for finding in short)


def test_no_probe_takes_more_than_it_may() -> None:
    """However slow requests are: what is under way ends within what is kept back."""
    limit_s = 600.0
    with Target(SLOW) as target:
        result = session.probe(target, mode="quick", drive_time=limit_s)
    taken = [asked.target_seconds for asked in result.asked]
    assert sum(taken) <= limit_s
    # What has too little time where its turn comes is asked after all others.
    names, asked = [probe.NAME for probe in PROBES], [each.name for each in result.asked]
    late = next(
        at for at in range(len(asked)) if asked[at:] == [n for n in names if n in asked[at:]]
    )
    assert sorted(asked) == sorted(names) and asked[:late] == [
        n for n in names if n in asked[:late]
    ]


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    only = ["clustered-page", "mapping"]
    found = []
    for drive_time in (None, 1e7):
        with Target(FAST) as target:
            result = session.probe(target, mode="quick", only=only, drive_time=drive_time)
        found.append([(f.verdict, f.value, dict(f.figures)) for f in result.findings.values()])
    assert found[0] == found[1]
    assert found[0][0][:2] == ("found", 16384)


def test_what_was_found_before_the_end_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from flashwright.drive.findings import Finding
    from flashwright.target.question import Context, Cost

    class Two:
        NAME, ABOUT, PARAMETERS = "two", "two", ("first", "second")

        def cost(self, context: Context) -> Cost:
            return Cost(bytes_written=MIB, requests=1)

        def run(self, context: Context) -> list[Finding]:
            context.keep(Finding("first", "found", 1, confidence=0.8, why="seen"))
            context.target.play("write", np.zeros(1 << 20, np.int64), 16384)
            raise AssertionError("the time should have run out")

    monkeypatch.setattr(session, "PROBES", [Two()])
    with Target(SLOW) as target:
        result = session.probe(target, mode="full", drive_time=30.0)
    assert result["first"].value == 1
    assert result["second"].verdict == "unknown"
    assert "it would need about" in result["second"].why and "full mode" not in result["second"].why


def test_a_drive_without_times_has_nothing_to_measure() -> None:
    ssd = Ssd.named("default").with_({"timing.model": "none", "geometry.blocks-per-plane": 64})
    with Target(ssd) as target:
        assert sum(item.seconds for item in session.plan(target, mode="quick")) == 0
        result = session.probe(target, mode="quick")
    assert not result.asked and all(f.verdict == "unknown" for f in result.findings.values())
    assert "requests take no time" in result["clustered-page"].why


def test_an_allowance_counts_the_drives_time() -> None:
    with Target(SLOW) as target:
        watch = target.watch = Allowance(target, Deadline(None), 1.0)
        target.play("write", np.arange(4) * 16384, 16384)
        assert 0 < watch.left_ns < 1e9
        with pytest.raises(OutOfDriveTimeError):
            target.idle(1e9)
        with pytest.raises(OutOfDriveTimeError):
            target.play("write", np.arange(4096) * 16384, 16384)
        assert watch.left_ns > -12e9


def test_shares_leave_something_for_each() -> None:
    """Whatever later probes need, each gets its share; and all of it together is no more than there is."""
    limit_s, spent = 1000.0, 0.0
    names = [probe.NAME for probe in PROBES]
    for at, name in enumerate(names):
        later = dict.fromkeys(names[at + 1 :], 100.0)
        allowed = allowed_s(limit_s, spent, name, later)
        assert allowed >= 0.014 * limit_s, name
        spent += allowed
    assert spent <= limit_s


def test_the_pace_of_a_drive_is_that_of_its_requests() -> None:
    with Target(SLOW) as slow, Target(FAST) as fast:
        paces = [Pace.of(target) for target in (slow, fast)]
        assert (slow.bytes_written, slow.bytes_read, slow.flushes) == (0, 0, 0)
    assert paces[0].write_rate < paces[1].write_rate / 10
    assert paces[0].request_s > 5 * paces[1].request_s
    assert all(pace.deep_rate >= pace.read_rate for pace in paces)
    assert paces[1].deep_rate > 1.2 * paces[1].read_rate
