"""Latency under load and the fill of an erased drive: what is asked, and how the figures are taken, on small drives."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from test_real_drives_protocols import TIMED

from flashwright.traces.blktrace import READ, WRITE
from flashwright_papers import papers

papers()


def module(name: str) -> Any:
    return importlib.import_module(f"flashwright_experiments.real_drives.{name}")


def test_the_threads_of_the_load() -> None:
    latency = module("latency")
    load = latency.threads(1000, 40_000, 5.0)
    arrival, kind, thread = load.arrival_ns, load.requests.kind, load.thread
    assert np.all(np.diff(arrival) > 0)
    # As the source counts: 39,650 writes and 5,350 reads a second.
    assert (kind == WRITE).sum() / 5 == pytest.approx(39_650, rel=0.01)
    assert (kind == READ).sum() / 5 == pytest.approx(5_350, rel=0.03)
    seventh = thread == 6
    assert np.abs(np.diff(arrival[seventh]) - 100_000).max() < 100
    assert (kind[seventh] == WRITE).mean() == pytest.approx(0.5, abs=0.01)
    gaps = np.diff(arrival[thread == 0])
    # Exponential: mean and deviation are alike, and a share of 1/e is longer than the mean.
    assert gaps.mean() == pytest.approx(6e9 / 35_000, rel=0.02)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.03)
    assert (gaps > gaps.mean()).mean() == pytest.approx(np.exp(-1), abs=0.01)
    assert load.requests.first.max() == 999 and load.requests.first.min() == 0
    with pytest.raises(ValueError, match="more than 5,000"):
        latency.threads(1000, 5000, 1.0)


def test_latency_is_that_of_the_seventh_thread() -> None:
    latency = module("latency")
    row = latency.latency("small", TIMED, 8_000, intervals=3, interval_s=0.3, warmup_s=0.1)
    assert row["open"] and len(row["outstanding_max"]) == 7
    assert row["writes_per_s"] == pytest.approx(7970, rel=0.03)
    for name in ("read_us", "write_us"):
        known = [value for value in row[name].values() if value is not None]
        # 1,500 requests an interval resolve p99.9 and no more.
        assert len(known) == 5 and known == sorted(known) and known[0] > 0
    # An idle drive reads in the time of its flash, 58 us and the bus, and the host takes its part.
    assert 58 + latency.HOST_US < row["read_us"]["p50"] < 200
    assert row["write_us"]["p50"] > latency.HOST_US
    over = latency.latency("small", TIMED, 300_000, intervals=1, interval_s=0.2, warmup_s=0.0)
    assert not over["open"]
    closed = latency.saturated("small", TIMED, 20_000)
    assert closed["iops"] > 1000 and closed["write_amplification"] > 1


def test_outstanding_requests_are_counted() -> None:
    latency = module("latency")
    arrival = np.array([0, 10, 20, 30])
    # At 30 the second has just ended: the third is out, and the fourth.
    assert latency.outstanding(arrival, np.array([15, 30, 100, 40])) == 2
    assert latency.outstanding(arrival, np.array([200, 200, 200, 200])) == 4
    assert latency.outstanding(arrival[:0], arrival[:0]) == 0


def test_medians_are_of_the_intervals() -> None:
    latency = module("latency")
    took = np.concatenate((np.full(200, 1.0), np.full(200, 5.0), np.full(200, 9.0)))
    found = latency.medians(took, np.repeat([0, 1, 2], 200), 3)
    assert found["p50"] == found["p99"] == 5.0 and found["p99.9"] is None


def test_levels_of_a_fill() -> None:
    cache = module("cache")
    rates = [4.5] * 60 + [2.0] * 40 + [0.5] * 100
    assert cache.levels(np.array(rates)) == [0, 60, 100]
    # A window or two off are none, nor is a slow drift.
    assert cache.levels(np.array([4.0] * 20 + [1.0, 1.0] + [4.0] * 20)) == [0]
    row = cache.fill("small", TIMED)
    (level,) = row["levels"]
    assert level["gb_s"] == pytest.approx(row["mean_gb_s"])
    assert level["until_share"] == pytest.approx(1, abs=0.02)


def test_a_pause_empties_a_cache() -> None:
    cache = module("cache")
    text = (
        TIMED.replace("[geometry]", "[geometry]\nbits-per-cell = 3")
        + """
[slc]
cache = "dynamic"
block-share = 0.3
page-program = "30 us"
fold-after = "1 ms"
"""
    )
    short, long = (cache.paused("small", text, 0.6, pause_s, 0.1) for pause_s in (0.0001, 20.0))
    assert short["gb_s_before"] == long["gb_s_before"]
    assert long["gb_s_after"] > 1.3 * short["gb_s_after"]
