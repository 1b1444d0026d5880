"""What is recorded, in order of time, as a trace file."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from flashwright.traces.blktrace import (
    FLUSH,
    NAME_BYTES,
    NOTE_PROCESS,
    NOTE_TIMESTAMP,
    READ,
    TRIM,
    WRITE,
    RecordError,
    Records,
    is_request,
    note_bytes,
    requests_of,
)
from flashwright.traces.tracer import get

__all__ = ["Names", "Writer"]

# Records are held back this long before they are written, so that a record that another processor
# hands over late still finds its place.
_HOLD_NS = 1_000_000_000


@dataclass
class Names:
    """Names of processes, from what the tracer itself noted or, failing that, from /proc."""

    tracefs: Path
    proc: Path
    known: dict[int, str] = field(default_factory=dict)

    def news(self, pids: Iterator[int]) -> list[tuple[int, str]]:
        """Those of `pids` whose name is new or has changed since it was last asked for."""
        noted: dict[int, str] = {}
        with contextlib.suppress(RecordError):
            for line in get(self.tracefs / "saved_cmdlines").splitlines():
                number, _, noted_name = line.partition(" ")
                if number.isdigit() and noted_name != "<...>":
                    noted[int(number)] = noted_name
        news = []
        for pid in pids:
            name = noted.get(pid)
            if name is None and pid not in self.known:
                with contextlib.suppress(OSError):
                    name = (self.proc / str(pid) / "comm").read_text().strip()
            if name and name != self.known.get(pid):
                self.known[pid] = name
                news.append((pid, name))
        return news


class Writer:
    """Puts records in order of time and writes them, in constant memory for any length."""

    def __init__(self, file: BinaryIO, start_ns: int, first_sector: int, most: int | None) -> None:
        self.requests = 0
        self.count = [0, 0, 0, 0]
        self.bytes = [0, 0, 0, 0]
        self.writes_fua = 0
        self.writes_preflush = 0
        self.events_late = 0
        self.seen = 0
        self._file = file
        self._start_ns = start_ns
        self._first_sector = first_sector
        self._most = most
        self._held: list[Records] = []
        self._notes: deque[tuple[int, int, str]] = deque()
        self._newest_ns = 0
        self._first_ns: int | None = None
        self._last_ns = 0
        wall_ns = time.time_ns() - (time.clock_gettime_ns(time.CLOCK_MONOTONIC) - start_ns)
        seconds, rest_ns = divmod(wall_ns, 1_000_000_000)
        stamp = np.array([seconds, rest_ns], np.uint32).tobytes()
        self._file.write(note_bytes(NOTE_TIMESTAMP, 0, 0, stamp))

    @property
    def span_ns(self) -> int:
        """From the first request to the last."""
        return 0 if self._first_ns is None else self._last_ns - self._first_ns

    @property
    def full(self) -> bool:
        """Whether as many requests were taken as were asked for."""
        return self._most is not None and self.seen >= self._most

    def take(self, records: Records, names: Names) -> None:
        """Accepts records as they come; those that are no queued request are dropped."""
        records = records[is_request(records)]
        if not len(records):
            return
        # A clock read on another processor may lie a hair before the start.
        times = records["time_ns"].astype(np.int64) - self._start_ns
        records["time_ns"] = np.maximum(times, 0)
        moved = records["bytes"] > 0
        records["sector"][moved] -= np.uint64(self._first_sector)
        pids, first = np.unique(records["pid"], return_index=True)
        when = dict(zip(pids.tolist(), records["time_ns"][first].tolist(), strict=True))
        for pid, name in names.news(iter(when)):
            self._notes.append((when[pid], pid, name))
        self._held.append(records)
        self.seen += len(records)
        self._newest_ns = max(self._newest_ns, int(records["time_ns"].max()))
        oldest = int(self._held[0]["time_ns"].min())
        if self._newest_ns - oldest > 2 * _HOLD_NS:
            self._write_until(self._newest_ns - _HOLD_NS)

    def finish(self) -> None:
        """Write what was held back."""
        self._write_until(None)
        self._file.flush()
        os.fsync(self._file.fileno())

    def _write_until(self, end_ns: int | None) -> None:
        if not self._held:
            return
        held = np.concatenate(self._held)
        held = held[np.argsort(held["time_ns"], kind="stable")]
        if end_ns is None:
            self._held = []
        else:
            cut = int(np.searchsorted(held["time_ns"], end_ns))
            self._held = [held[cut:]]
            held = held[:cut]
        if self._most is not None:
            held = held[: self._most - self.requests]
        if not len(held):
            return
        self.events_late += int((held["time_ns"] < self._last_ns).sum())
        last_ns = int(held["time_ns"][-1])
        begin = 0
        later: deque[tuple[int, int, str]] = deque()
        for note in sorted(self._notes):
            if note[0] > last_ns:
                later.append(note)
                continue
            at = int(np.searchsorted(held["time_ns"], note[0]))
            self._file.write(held[begin:at].tobytes())
            begin = at
            name = note[2].encode()[: NAME_BYTES - 1].ljust(NAME_BYTES, b"\0")
            self._file.write(note_bytes(NOTE_PROCESS, note[0], note[1], name))
        self._file.write(held[begin:].tobytes())
        self._notes = later
        self._count(held)

    def _count(self, records: Records) -> None:
        rows = requests_of(records)
        self.requests += len(rows)
        for kind in (READ, WRITE, TRIM, FLUSH):
            of_kind = rows["kind"] == kind
            self.count[kind] += int(of_kind.sum())
            self.bytes[kind] += int(rows["bytes"][of_kind].sum(dtype=np.uint64))
        # Both flags are only ever set on writes that carry data; see `requests_of`.
        self.writes_fua += int(rows["fua"].sum())
        self.writes_preflush += int(rows["preflush"].sum())
        if self._first_ns is None:
            self._first_ns = int(rows["time_ns"][0])
        self._last_ns = max(self._last_ns, int(rows["time_ns"][-1]))
