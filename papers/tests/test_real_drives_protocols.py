"""The protocols of the measurements of real drives: what they ask of a drive, and how their figures are taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from judging import together

from flashwright import Ssd, tracefiles
from flashwright.traces.blktrace import READ, TRIM, WRITE
from flashwright_papers import papers

papers()
MODULES = ("models", "requests", "cleaning", "runs")
real: Any = together("real_drives", *MODULES)

COUNTING = """
[geometry]
channels = 1
dies-per-channel = 1
blocks-per-plane = 64
pages-per-block = 128
page-size = "4 KiB"

[capacity]
utilization = 0.75

[timing]
model = "none"
"""


def written(workload: str, requests: int) -> Any:
    """The pages that a workload writes, on a drive of 6,144 pages."""
    ssd = Ssd.from_text(COUNTING).precondition("sequential")
    run = ssd.play(workload, requests=requests, window="off", keep_requests=True)
    return run.requests()["lpn"].to_numpy(), real.pages_of(ssd)


def test_zipf_has_the_shares_of_the_full_size() -> None:
    assert real.share_of_hottest(0.8) == pytest.approx(0.72, abs=0.005)
    assert real.share_of_hottest(1.0) == pytest.approx(0.92, abs=0.005)
    # Euler and Maclaurin against the sum itself.
    for s in (0.4, 0.8, 1.0, 1.2):
        weights = np.arange(1, 100_001) ** -s
        exact = weights[:20_000].sum() / weights.sum()
        assert real.share_of_hottest(s, pages=100_000) == pytest.approx(exact, abs=1e-7)
    pages, count = written(real.zipf(0.8), 400_000)
    counts = np.sort(np.bincount(pages, minlength=count))[::-1]
    assert counts[: count // 5].sum() / len(pages) == pytest.approx(0.72, abs=0.01)
    # Shuffled: the hottest lie all over the drive.
    hottest = np.argsort(np.bincount(pages, minlength=count))[-count // 5 :]
    assert (hottest < count // 2).mean() == pytest.approx(0.5, abs=0.05)


def test_static_pages_are_never_written() -> None:
    pages, count = written(real.static(60), 60_000)
    touched = np.unique(pages)
    assert len(touched) == pytest.approx(0.4 * count, abs=1)
    # Drawn at random, and the rest is written uniformly.
    assert (touched < count // 2).mean() == pytest.approx(0.5, abs=0.05)
    assert np.bincount(pages)[touched].std() == pytest.approx(
        np.sqrt(60_000 / len(touched)), rel=0.1
    )


def test_two_zones_take_their_shares() -> None:
    pages, count = written(real.two_zone(90), 120_000)
    counts = np.bincount(pages, minlength=count)
    hot = np.argsort(counts)[-round(0.1 * count) :]
    assert counts[hot].sum() / len(pages) == pytest.approx(0.9, abs=0.01)
    assert (hot < count // 2).mean() == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(("active", "piece"), [(1, 1), (4, 2), (7, 8)])
def test_a_zone_that_is_replaced_is_trimmed(active: int, piece: int) -> None:
    zone, pages, writes = 16, 16 * 12 + 5, 900
    asked = real.zone_like(pages, zone, active, piece, writes)
    at: dict[int, int] = {}  # where each active zone goes on
    ever, trims = set(), 0
    for kind, first, count in zip(asked.kind, asked.first, asked.count, strict=True):
        number, offset = divmod(int(first), zone)
        if kind == TRIM:
            assert (offset, count) == (0, zone) and number not in at
            at[number], trims = 0, trims + 1
        else:
            assert kind == WRITE and count == piece and offset == at[number]
            at[number] += piece
            if at[number] == zone:
                del at[number]
        ever.add(number)
        assert len(at) <= active
    # One is replaced at once, so as many are active at the end, and what lies behind the last zone is left alone.
    assert len(at) == active and ever == set(range(12))
    assert int((asked.kind == WRITE).sum()) == writes
    assert trims == active + (writes * piece - sum(at.values())) // zone
    if active > 1:  # in turn at random
        assert len(set(np.flatnonzero(asked.kind == TRIM) % (zone // piece))) > 1
    with pytest.raises(ValueError, match="12 zones of 16 pages"):
        real.zone_like(pages, zone, 12, piece, writes)


def test_a_trace_carries_requests_as_they_are() -> None:
    asked = real.Requests(
        kind=np.array([WRITE, TRIM, READ], np.uint8),
        first=np.array([3, 0, 7]),
        count=np.array([2, 16, 1]),
        arrival_ns=np.array([5, 6, 1_000_000_007]),
    )
    with real.as_trace(asked, 4096) as trace:
        rows = tracefiles.columns(trace).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (0, "write", 24, 16),
        (1, "trim", 0, 128),
        (1_000_000_002, "read", 56, 8),
    ]


def test_a_used_share_is_a_drive_with_fewer_addresses() -> None:
    whole = Ssd.from_text(COUNTING)
    pages = real.pages_of(whole)
    used = pages // 2
    rng = np.random.default_rng(1)
    first = np.concatenate((np.arange(used), rng.integers(0, used, 4 * used)))
    asked = real.Requests(np.full(len(first), WRITE, np.uint8), first, np.ones_like(first))
    found = []
    for ssd in (whole, real.drive_of(COUNTING, used=used / pages)):
        with real.as_trace(asked, 4096) as trace:
            found.append(
                ssd.precondition("empty").play(trace, window="off").json["flash"]["programs"]
            )
    assert found[0] == found[1] and (found[0]["gc"] or 0) > 0


def test_twice_the_pages_change_nothing() -> None:
    """The number of superblocks is the drive's; only their pages are scaled."""
    found = []
    for pages in (512, 1024):
        row = real.overwritten(
            "", real.MAX.text, "uniform", real.uniform(), 4, pages=pages, used=0.9
        )
        found.append((row["write_amplification"], row["break"]))
    assert found[0][0] == pytest.approx(found[1][0], rel=0.005)
    assert found[0][1] == pytest.approx(found[1][1], abs=0.011)


def windows(speeds: list[float], amplification: list[float]) -> Any:
    """Windows of 1 MiB each at these speeds in MiB/s."""
    import pyarrow as pa

    ends = np.cumsum(1e9 / np.array(speeds)).astype(np.uint64)
    written = np.full(len(speeds), 256)
    programs = (256 * np.array(amplification)).astype(int)
    return pa.table(
        {"time_end_ns": ends, "requests": written, "pages_written": written, "programs": programs}
    )


def test_how_figures_are_taken() -> None:
    """100 windows over two capacities: fast to 0.6, slowest at 0.8, steady from 1.0 on."""
    speeds = [1000.0] * 30 + [500.0] * 10 + [250.0] * 3 + [450.0] * 7 + [400.0] * 50
    amplification = [1.0] * 30 + [2.0] * 10 + [4.0] * 3 + [2.2] * 7 + [2.5] * 50
    for timed in (False, True):
        row = real.read_windows(windows(speeds, amplification), 2, timed)
        assert row["write_amplification"] == pytest.approx(2.5)
        assert row["break"] == pytest.approx(0.61)
        assert row["hardest_at"] == pytest.approx(0.83)
        # Averages over eleven windows reach back.
        assert 1.0 <= row["settled_from"] <= 1.12
    assert row["mib_s"] == pytest.approx(400, rel=1e-3)
    assert row["mib_s_before"] == pytest.approx(1000, rel=1e-3)
    assert row["mib_s_lowest"] == pytest.approx(250, rel=1e-3)
    flat = real.read_windows(windows([5.0] * 40, [1.0] * 40), 1, False)
    assert flat["break"] is None and flat["settled_from"] == 0


TIMED = """
base = "tlc-nvme"

[geometry]
blocks-per-plane = 32
pages-per-block = 64
page-size = "4 KiB"

[capacity]
utilization = 0.6

[timing]
program = "150 us"

[gc]
schedule = "rate-limited"
"""


def test_a_drive_with_times_tells_speeds() -> None:
    text = TIMED
    row = real.overwritten("", text, "uniform", real.uniform(), 2)
    assert row["mib_s_lowest"] < row["mib_s"] < row["mib_s_before"]
    assert 0.2 < row["break"] < 1
    zoned = real.zoned("", text, "2 active", 2, 1 / 1024, 75 / 1024, 1.0)
    assert zoned["mib_s"] > 0 and zoned["write_amplification"] >= 1
