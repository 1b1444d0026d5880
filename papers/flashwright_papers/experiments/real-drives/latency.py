"""Latency under load (protocol P4): seven threads, and the percentiles of the seventh alone.

Arrivals are made beforehand, so the loop is open: the records hold a thread back once 64 of its requests are out, which
is checked here and not enforced. Where no thread has reached 64, the two are the same. At saturation play
:func:`saturated`, which is closed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flashwright import Ssd
from flashwright.traces.blktrace import READ, WRITE

from .models import page_bytes, pages_of
from .requests import Requests, as_trace

BYTES = 4096
WRITERS = 6
OUTSTANDING_MAX = 64
SEVENTH_PER_S = 10_000
# Between the ring and the drive, in microseconds. Fitted to the median write of the 7450 MAX at 10,000 requests a
# second: 9 us, of which its model takes 3. All drives were in one server.
HOST_US = 6.0
PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999)

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Threads:
    """Requests of all threads, and the thread of each: 0 to 5 write, 6 is the seventh."""

    requests: Requests
    thread: npt.NDArray[np.uint8]

    @property
    def arrival_ns(self) -> Whole:
        assert self.requests.arrival_ns is not None
        return self.requests.arrival_ns


def threads(slots: int, asked: int, seconds: float, *, seed: int = 1) -> Threads:
    """The load of protocol P4.

    Six threads send 99 % writes with exponential gaps, together at (asked - 5,000) a second; the seventh sends 10,000 a
    second at even gaps, half reads, half writes. All are of 4 KiB, uniform. No two requests arrive at the same
    nanosecond, so that each can be told by its arrival.

    Parameters
    ----------
    slots : int
        Places of 4 KiB on the drive.
    asked : int
        As the source counts: 40,000 are 39,650 writes and 5,350 reads a second. More than 5,000.
    seconds : float
        How long.
    seed : int, optional
        Of what is random.
    """
    if asked <= 5000:
        raise ValueError(f"asked: found {asked}, expected more than 5,000 a second")
    rng = np.random.default_rng(seed)
    per_s = (asked - 5000) / WRITERS
    arrivals, owners = [], []
    for thread in range(WRITERS):
        count = round(per_s * seconds + 8 * np.sqrt(per_s * seconds)) + 8
        times = np.cumsum(rng.exponential(1e9 / per_s, count))
        times = times[times < seconds * 1e9]
        arrivals.append(times)
        owners.append(np.full(len(times), thread, np.uint8))
    even = np.arange(round(SEVENTH_PER_S * seconds)) * (1e9 / SEVENTH_PER_S)
    arrivals.append(even)
    owners.append(np.full(len(even), WRITERS, np.uint8))
    time = np.concatenate(arrivals)
    order = np.argsort(time, kind="stable")
    thread = np.concatenate(owners)[order]
    ranks = np.arange(len(time))
    arrival = np.maximum.accumulate(time[order].astype(np.int64) - ranks) + ranks
    writes = rng.random(len(time)) < np.where(thread < WRITERS, 0.99, 0.5)
    requests = Requests(
        kind=np.where(writes, WRITE, READ).astype(np.uint8),
        first=rng.integers(0, slots, len(time)),
        count=np.ones(len(time), np.int64),
        arrival_ns=arrival,
    )
    return Threads(requests, thread)


def settled(ssd: Ssd) -> Ssd:
    """A drive as the records begin: filled, then overwritten with three capacities of uniform writes.

    The fill here is in random order, of which nothing is left after three capacities. The five minutes of idle time
    are left out: a preconditioned drive has nothing to do.
    """
    return ssd.precondition("random:capacities=4")


def latency(
    drive: str,
    text: str,
    asked: int,
    *,
    intervals: int = 12,
    interval_s: float = 1.0,
    warmup_s: float = 1.0,
    seed: int = 1,
) -> dict[str, Any]:
    """Percentiles of the seventh thread under a load.

    Returns
    -------
    dict
        ``read_us`` and ``write_us``: by percentile the median of the intervals, as the records take it, with the host's
        part (:data:`HOST_US`); None where an interval has fewer requests than the percentile needs (p99.999 takes
        20 s). ``outstanding_max``: by thread. ``open``: whether no thread had 64 out, so that the result is that of the
        records' loop.
    """
    ssd = Ssd.from_text(text)
    slots = pages_of(ssd) * page_bytes(ssd) // BYTES
    load = threads(slots, asked, warmup_s + intervals * interval_s, seed=seed)
    warmup = int(np.searchsorted(load.arrival_ns, round(warmup_s * 1e9)))
    # As many as all threads may have out, so that none waits in the driver.
    deep = settled(ssd).with_({"host.queue-depth": (WRITERS + 1) * OUTSTANDING_MAX})
    with as_trace(load.requests, BYTES) as trace:
        run = deep.play(trace, warmup=warmup, window="off", keep_requests=True, seed=seed)
    rows = run.requests()
    arrival, completion = (
        rows[name].to_numpy().astype(np.int64) for name in ("arrival_ns", "completion_ns")
    )
    order = np.argsort(arrival)
    arrival, completion = arrival[order], completion[order]
    thread, kind = load.thread[warmup:], load.requests.kind[warmup:]
    if len(arrival) != len(thread):
        raise ValueError(f"{len(arrival)} requests came back of {len(thread)}")
    took_us = (completion - arrival) / 1e3 + HOST_US
    interval = ((load.arrival_ns[warmup:] / 1e9 - warmup_s) / interval_s).astype(np.int64)
    out = [outstanding(arrival[thread == n], completion[thread == n]) for n in range(WRITERS + 1)]
    row: dict[str, Any] = {"drive": drive, "asked": asked, "seconds": intervals * interval_s}
    for name, which in (("read_us", READ), ("write_us", WRITE)):
        mine = (thread == WRITERS) & (kind == which)
        row[name] = medians(took_us[mine], interval[mine], intervals)
    seconds = intervals * interval_s
    row |= {
        "writes_per_s": float((kind == WRITE).sum() / seconds),
        "reads_per_s": float((kind == READ).sum() / seconds),
    }
    return row | {"outstanding_max": out, "open": max(out) < OUTSTANDING_MAX}


def outstanding(arrival: Whole, completion: Whole) -> int:
    """The most requests that were out at once; `arrival` in order."""
    if not len(arrival):
        return 0
    ended = np.searchsorted(np.sort(completion), arrival, side="right")
    return int((np.arange(1, len(arrival) + 1) - ended).max())


def medians(
    took_us: npt.NDArray[np.float64], interval: Whole, intervals: int
) -> dict[str, float | None]:
    """By percentile the median over intervals of each one's percentile."""
    parts = [took_us[interval == number] for number in range(intervals)]
    found: dict[str, float | None] = {}
    for percentile in PERCENTILES:
        resolved = all(len(part) * (100 - percentile) >= 100 for part in parts)
        values = [float(np.percentile(part, percentile)) for part in parts] if resolved else None
        found[f"p{percentile:g}"] = None if values is None else float(np.median(values))
    return found


def saturated(drive: str, text: str, requests: int, *, seed: int = 1) -> dict[str, Any]:
    """The closed loop at saturation: 448 outstanding, 99 % writes of 4 KiB."""
    ssd = settled(Ssd.from_text(text))
    depth = (WRITERS + 1) * OUTSTANDING_MAX
    deep = ssd.with_({"host.queue-depth": depth})
    run = deep.play(
        "uniform:write=0.99,size=4KiB", requests=requests, depth=depth, window="off", seed=seed
    )
    return {
        "drive": drive,
        "iops": run.json["throughput"]["iops"],
        "write_amplification": run.write_amplification,
    }
