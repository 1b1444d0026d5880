"""Traces cut in halves, on the footprint that both touch, and what takes the place of the second half."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from flashwright import workloads
from flashwright.errors import TraceError
from flashwright.traces import tracefiles

PAGE_SECTORS = 8
CHUNK_PAGES = 16
"""Pages of a chunk of 64 KiB: what is left out of the address space, and what keeps its neighbours."""
_READ, _WRITE = 0, 1


@dataclass(frozen=True)
class Known:
    """A trace that is judged on.

    Attributes
    ----------
    name : str
        Its name in tables.
    file : str
        A published trace's file, or ``bundled:NAME``.
    format : str or None
        Its format, where the content does not tell.
    stand_in : str or None
        The bundled stand-in of the whole trace.
    by_default : bool
        Whether ``acceptance.py`` judges on it unless asked for others: published traces that write.
    """

    name: str
    file: str
    format: str | None = None
    stand_in: str | None = None
    by_default: bool = True

    def path(self) -> str | None:
        """The file, or None if it is absent."""
        if self.file.startswith("bundled:"):
            return self.file
        shared = Path(__file__).parents[3] / "shared" / "traces"
        path = Path(os.environ.get("FLASHWRIGHT_TRACES") or shared) / self.file
        return str(path) if path.exists() else None


TRACES = (
    Known("financial1", "financial1-first50k.flashsim.zst", "flashsim", stand_in="financial1"),
    Known(
        "websearch1",
        "websearch1-first50k.flashsim.zst",
        "flashsim",
        stand_in="websearch1",
        by_default=False,
    ),
    Known("websearch1-asu", "websearch1-small.mqsim.zst", stand_in="websearch1", by_default=False),
    Known("prxy_0", "prxy_0-first20k.msr.csv.zst"),
    Known("msn-fs", "msn-fs-150k.disksim.zst", stand_in="msn", by_default=False),
    Known("hplajw", "hplajw-1week.csv.zst"),
    Known("cloudphysics", "cloudphysics-sample.csv.zst"),
    Known("financial1-asu9", "financial1-asu9-first10k.disksim.zst", "disksim"),
    Known("fiu-mail", "fiu-mail-10k.fiu.zst"),
    Known("postmark-msr", "postmark-msr.disksim.zst"),
    Known("emmc-installing", "emmc-installing.txt.zst"),
    Known("pgbench", "bundled:pgbench", by_default=False),
    Known("postmark", "bundled:postmark", by_default=False),
    Known("rocksdb", "bundled:rocksdb", by_default=False),
    Known("sqlite", "bundled:sqlite", by_default=False),
)


@dataclass(frozen=True)
class Requests:
    """Reads and writes as columns: arrival in ns from 0, whether it writes, first sector, sectors."""

    arrival: npt.NDArray[np.int64]
    writes: npt.NDArray[np.bool_]
    first: npt.NDArray[np.int64]
    sectors: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.arrival)

    def part(self, which: slice) -> Requests:
        """Some of them, from time 0."""
        arrival = self.arrival[which]
        return Requests(
            arrival - arrival[0], self.writes[which], self.first[which], self.sectors[which]
        )

    def packed(self) -> Requests:
        """The same without the chunks that none of them touches."""
        first = _packed(self.first, self.sectors)
        return Requests(self.arrival, self.writes, first, self.sectors)

    def then(self, others: Requests) -> Requests:
        """These, and one mean gap later the others."""
        gap = int(self.arrival[-1]) // max(1, len(self) - 1)
        return Requests(
            np.concatenate([self.arrival, others.arrival + self.arrival[-1] + gap]),
            np.concatenate([self.writes, others.writes]),
            np.concatenate([self.first, others.first]),
            np.concatenate([self.sectors, others.sectors]),
        )

    def save(self, path: Path) -> workloads.Trace:
        """Write them as a trace that keeps every nanosecond."""
        table = np.column_stack(
            [self.arrival, np.zeros_like(self.first), self.first, self.sectors, ~self.writes]
        )
        np.savetxt(path, table, fmt="%d")
        return workloads.trace(path, format="mqsim", addresses="reject")


def read(known: Known) -> Requests:
    """The reads and writes of a trace, on the chunks of 64 KiB that it touches, put end to end in their order."""
    path = known.path()
    if path is None:
        raise TraceError(f"{known.file}: there is no such file", "")
    table = tracefiles.columns(workloads.trace(path, format=known.format))
    kinds = table["kind"].combine_chunks().indices.to_numpy()
    data = kinds <= _WRITE
    arrival, first, sectors = (
        table[name].to_numpy()[data].astype(np.int64)
        for name in ("arrival_ns", "first_sector", "sectors")
    )
    writes: npt.NDArray[np.bool_] = kinds[data] == _WRITE
    return Requests(arrival - arrival[0], writes, _packed(first, sectors), sectors)


def _packed(first: npt.NDArray[np.int64], sectors: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """First sectors when the chunks that no request touches are left out."""
    chunk = CHUNK_PAGES * PAGE_SECTORS
    low, high = first // chunk, (first + sectors - 1) // chunk
    # A request touches every chunk from the lowest to the highest, so the highest ones are found by expanding.
    counts = high - low + 1
    steps = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    touched = np.unique(np.repeat(low, counts) + steps)
    return np.asarray(np.searchsorted(touched, low) * chunk + first % chunk, dtype=np.int64)


def pages(requests: Requests) -> int:
    """Pages of the drive on which the requests fit: whole chunks."""
    end = int((requests.first + requests.sectors).max())
    chunk = CHUNK_PAGES * PAGE_SECTORS
    return -(-end // chunk) * CHUNK_PAGES


def without_locality(half: Requests, drive_pages: int, count: int, seed: int) -> Requests:
    """Uniform requests with a half's pairs of direction and size, and its mean rate (Poisson)."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(len(half), size=count)
    sectors = half.sectors[drawn]
    room = drive_pages - -(-sectors // PAGE_SECTORS) + 1
    first = (rng.random(count) * room).astype(np.int64) * PAGE_SECTORS
    gap = half.arrival[-1] / max(1, len(half) - 1)
    arrival = np.cumsum(rng.exponential(gap, count)).astype(np.int64)
    return Requests(arrival - arrival[0], half.writes[drawn], first, sectors)
