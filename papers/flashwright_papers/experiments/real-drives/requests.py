"""Requests as arrays, for protocols that no generator of Flashwright has, and the trace files that carry them to a run.

A trace is binary blktrace: the one format with trims and arrival times whose records NumPy writes as they are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from flashwright import workloads
from flashwright.traces.blktrace import HEADER, MAGIC, READ, TRIM, VERSION, WRITE
from flashwright.traces.sources import Trace

Whole = npt.NDArray[np.int64]

SECTOR = 512
# The step "queued" with the classes of a read, a write, and a discard, which is a write as well.
_ACTIONS = {READ: 1 | 1 << 16, WRITE: 1 | 1 << 17, TRIM: 1 | 1 << 17 | 1 << 29}


@dataclass(frozen=True, eq=False)
class Requests:
    """Requests in order of arrival.

    Attributes
    ----------
    kind : array
        ``READ``, ``WRITE`` or ``TRIM``.
    first, count : array
        First page, and number of pages.
    arrival_ns : array, optional
        When each arrives, in nanoseconds; a nanosecond apart where nothing is said.
    """

    kind: npt.NDArray[np.uint8]
    first: Whole
    count: Whole
    arrival_ns: Whole | None = None

    def __len__(self) -> int:
        return len(self.first)


def write_trace(path: Path, requests: Requests, page_bytes: int) -> None:
    """Write requests as a binary blktrace file."""
    actions = np.zeros(4, np.uint32)
    actions[list(_ACTIONS)] = list(_ACTIONS.values())
    with path.open("wb") as file:
        for at in range(0, len(requests), 1 << 18):
            part = slice(at, min(at + (1 << 18), len(requests)))
            records = np.zeros(part.stop - part.start, HEADER)
            records["magic"] = MAGIC | VERSION
            records["time_ns"] = (
                np.arange(part.start, part.stop)
                if requests.arrival_ns is None
                else requests.arrival_ns[part]
            )
            records["sector"] = requests.first[part] * (page_bytes // SECTOR)
            records["bytes"] = requests.count[part] * page_bytes
            records["action"] = actions[requests.kind[part]]
            records.tofile(file)


@contextmanager
def as_trace(requests: Requests, page_bytes: int) -> Iterator[Trace]:
    """The requests as a trace to play, for as long as the block lasts."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "requests.blktrace"
        write_trace(path, requests, page_bytes)
        yield workloads.trace(path, format="blktrace", addresses="reject")


def zone_like(
    pages: int, zone: int, active: int, piece: int, writes: int, *, seed: int = 1
) -> Requests:
    """Zones written side by side on an ordinary drive that is full at first (protocol P3).

    Each write of `piece` pages goes to one of the `active` zones at random, behind that zone's last one. A zone that
    is full is replaced at once by one drawn at random among those not active, which is trimmed as a whole; so are the
    first ones. What lies behind the last whole zone is left alone.

    Parameters
    ----------
    pages : int
        Pages of the drive.
    zone, piece : int
        Pages of a zone, and of a write; `piece` divides `zone`.
    active : int
        Zones written side by side, fewer than there are.
    writes : int
        Writes in all.
    seed : int, optional
        Of what is random.
    """
    zones, turns = pages // zone, zone // piece
    if zone % piece or not 0 < active < zones:
        raise ValueError(f"{active} zones of {zone} pages in pieces of {piece} on {pages} pages")
    rng = np.random.default_rng(seed)
    slot = rng.integers(0, active, writes)
    # How many writes each slot has had before each of its writes.
    order = np.argsort(slot, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(slot, minlength=active))[:-1]))
    before = np.empty(writes, np.int64)
    before[order] = np.arange(writes) - starts[slot[order]]
    # Replacements in order of time: the write that fills a zone.
    filling = np.flatnonzero(before % turns == turns - 1)
    first = rng.permutation(zones)
    now, idle = list(first[:active]), list(first[active:])
    held = np.empty((active, int(before.max(initial=0)) // turns + 2), np.int64)
    held[:, 0] = now
    fresh = np.empty(len(filling), np.int64)
    draws = rng.integers(0, len(idle), len(filling))
    for number, (at, drawn) in enumerate(zip(filling.tolist(), draws.tolist(), strict=True)):
        which = int(slot[at])
        fresh[number] = idle[drawn]
        now[which], idle[drawn] = idle[drawn], now[which]
        held[which, before[at] // turns + 1] = fresh[number]
    place = held[slot, before // turns] * zone + before % turns * piece
    # The first zones are trimmed before all writes, each new one after the write that filled its predecessor.
    trims = np.concatenate((held[:, 0], fresh)) * zone
    at = np.concatenate((np.zeros(active, np.int64), filling + 1))
    return Requests(
        kind=np.insert(np.full(writes, WRITE, np.uint8), at, TRIM),
        first=np.insert(place, at, trims),
        count=np.insert(np.full(writes, piece, np.int64), at, zone),
    )
