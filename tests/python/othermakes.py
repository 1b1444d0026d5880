"""Models of drives that share nothing with the simulator, small enough for tests: what they fool is no sure rule.

Each stands behind the calls of ``Core``. Times are those of a toy: only what a rule looks at is modelled.
"""

from __future__ import annotations

import heapq
import json
import math
from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import Any

import numpy as np

KIB, MIB = 1 << 10, 1 << 20
READ, WRITE, TRIM, FLUSH = range(4)


class Model(ABC):
    """A clock, a closed loop, and requests that cost what :meth:`serve` says."""

    def __init__(self, name: str, capacity_bytes: int, *, seed: int = 1, noise: float = 0.02):
        self.name, self.capacity_bytes = name, capacity_bytes
        self.noise, self.rng = noise, np.random.default_rng(seed)
        self.clock = 0
        self._drawn: list[float] = []

    @abstractmethod
    def serve(self, kind: int, offset: int, size: int, at: float) -> float:
        """When a request that is submitted at a time ends, ns."""

    @abstractmethod
    def renew(self) -> None:
        """Forget all data."""

    def rest(self, nanos: float) -> None:  # noqa: B027 - most models do nothing meanwhile
        """What idle time does."""

    def jitter(self) -> float:
        """About 1, from a stream of its own."""
        if not self._drawn:
            self._drawn = (1 + self.noise * np.abs(self.rng.standard_normal(4096))).tolist()
        return self._drawn.pop()

    def info(self) -> str:
        return json.dumps(
            {
                "name": self.name,
                "kind": "simulated",
                "capacity_bytes": self.capacity_bytes,
                "block_bytes": 4096,
                "real_time": False,
                "writes_allowed": True,
            }
        )

    def now(self) -> int:
        return self.clock

    def idle(self, nanos: int) -> None:
        self.rest(nanos)
        self.clock += nanos

    def play(
        self, kinds: Any, first_sectors: Any, sectors: Any, depth: int, seconds: float | None = None
    ) -> tuple[Any, Any]:
        count = len(kinds)
        submitted, ended = np.empty(count, np.uint64), np.empty(count, np.uint64)
        queue: list[int] = []
        at = self.clock
        rows = zip(kinds.tolist(), first_sectors.tolist(), sectors.tolist(), strict=True)
        for index, (kind, first, length) in enumerate(rows):
            if len(queue) == depth or (kind == FLUSH and queue):
                while queue and (len(queue) >= depth or kind == FLUSH):
                    at = max(at, heapq.heappop(queue))
            end = int(self.serve(kind, first * 512, length * 512, at)) + 1
            submitted[index], ended[index] = at, end
            heapq.heappush(queue, end)
        self.clock = max([at, *queue])
        return submitted, ended

    def purge(self) -> bool:
        self.renew()
        self.clock = 0
        return True

    def close(self) -> None:  # noqa: B027 - nothing is held
        """Let go of it."""


class PageMapped(Model):
    """A page map over striped dies with greedy cleaning, and what may be added to it.

    `slc_share` of the capacity takes writes `slc_gain` times as fast until it is full, and is emptied at rest;
    `segments` pieces of the map of `segment_bytes` each are kept in RAM, and each miss costs `miss_ns`; each
    `pause_every_ns` the drive stands still for `pause_ns`; each `roll_bytes` written cost `roll_ns` more.
    """

    def __init__(
        self,
        name: str = "page-mapped",
        capacity_bytes: int = 256 * MIB,
        *,
        page: int = 16 * KIB,
        pages_per_block: int = 64,
        spare: float = 0.12,
        dies: int = 4,
        read_ns: float = 60e3,
        program_ns: float = 600e3,
        erase_ns: float = 3e6,
        link_ns_byte: float = 0.5,
        overhead_ns: float = 15e3,
        slc_share: float = 0.0,
        slc_gain: float = 5.0,
        fold_bytes_s: float = 400e6,
        fold_after_ns: float = 0.2e9,
        segments: int = 0,
        segment_bytes: int = 4 * MIB,
        miss_ns: float = 700e3,
        pause_every_ns: float = 0.0,
        pause_ns: float = 0.0,
        hashed: bool = False,
        seed: int = 1,
        noise: float = 0.02,
    ) -> None:
        super().__init__(name, capacity_bytes, seed=seed, noise=noise)
        self.page, self.pages_per_block, self.dies = page, pages_per_block, dies
        self.read_ns, self.program_ns, self.erase_ns = read_ns, program_ns, erase_ns
        self.link, self.overhead = link_ns_byte, overhead_ns
        self.slc, self.slc_gain = slc_share * capacity_bytes, slc_gain
        self.fold, self.fold_after = fold_bytes_s / 1e9, fold_after_ns
        self.segments, self.segment, self.miss_ns = segments, segment_bytes, miss_ns
        self.pause_every, self.pause = pause_every_ns, pause_ns
        self.hashed = hashed
        self.pages = capacity_bytes // page
        self.blocks = math.ceil(self.pages * (1 + spare) / pages_per_block) + 4
        self.cleaned = 0
        self.renew()

    def renew(self) -> None:
        self.map = [-1] * self.pages
        self.owner = [-1] * (self.blocks * self.pages_per_block)
        self.valid = [0] * self.blocks
        self.free = list(range(self.blocks))
        self.full: set[int] = set()
        self.open, self.next = self.free.pop(), 0
        self.busy = [0.0] * self.dies
        self.cached: OrderedDict[int, None] = OrderedDict()
        self.in_slc = 0.0
        self.count = 0

    def rest(self, nanos: float) -> None:
        self.in_slc = max(self.in_slc - self.fold * max(nanos - self.fold_after, 0.0), 0.0)

    def place(self, page: int) -> None:
        """Where a page goes."""
        old = self.map[page]
        if old >= 0:
            self.owner[old] = -1
            self.valid[old // self.pages_per_block] -= 1
        if self.next == self.pages_per_block:
            self.full.add(self.open)
            self.open, self.next = self.free.pop(), 0
        slot = self.open * self.pages_per_block + self.next
        self.next += 1
        self.map[page], self.owner[slot] = slot, page
        self.valid[self.open] += 1

    def clean(self) -> float:
        """Makes room, and answers what that costs."""
        took = 0.0
        while len(self.free) < 2 and self.next == self.pages_per_block:
            victim = min(self.full, key=self.valid.__getitem__)
            self.full.remove(victim)
            first = victim * self.pages_per_block
            moved = [p for p in self.owner[first : first + self.pages_per_block] if p >= 0]
            for page in moved:
                self.place(page)
            self.free.append(victim)
            self.cleaned += 1
            took += len(moved) * (self.read_ns + self.program_ns) / self.dies + self.erase_ns
        return took

    def missed(self, offset: int) -> float:
        """What the map costs for a place."""
        if not self.segments:
            return 0.0
        piece = offset // self.segment
        if piece in self.cached:
            self.cached.move_to_end(piece)
            return 0.0
        self.cached[piece] = None
        if len(self.cached) > self.segments:
            self.cached.popitem(last=False)
        return self.miss_ns

    def paused(self, at: float) -> float:
        """When a request that comes at a time is begun."""
        if self.pause_every and at >= self.pause_every and at % self.pause_every < self.pause:
            return at - at % self.pause_every + self.pause
        return at

    def serve(self, kind: int, offset: int, size: int, at: float) -> float:
        if kind in (FLUSH, TRIM):
            return at + self.overhead
        start = self.paused(at) + self.overhead + self.link * size + self.missed(offset)
        end = start
        first, last = offset // self.page, (offset + size - 1) // self.page
        for page in range(first, min(last, self.pages - 1) + 1):
            slot = self.map[page]
            if kind == READ:
                die = (slot if slot >= 0 else page) % self.dies
                done = max(start, self.busy[die]) + self.read_ns * self.jitter()
            else:
                whole = offset <= page * self.page and (page + 1) * self.page <= offset + size
                took = self.clean()
                if took:
                    self.busy = [max(start, one) + took for one in self.busy]
                self.place(page)
                die = self.count % self.dies
                self.count += 1
                program = self.program_ns
                if self.in_slc < self.slc:
                    self.in_slc += self.page
                    program /= self.slc_gain
                if not whole and slot >= 0:
                    program += self.read_ns
                done = max(start, self.busy[die]) + program * self.jitter()
            self.busy[die] = done
            end = max(end, done)
        return end


class Stateless(Model):
    """Memory that is written in place: a request costs by its length alone, writes hardly more than reads."""

    def __init__(
        self,
        name: str = "in-place",
        capacity_bytes: int = 256 * MIB,
        *,
        read_ns: float = 60e3,
        write_ns: float = 90e3,
        ns_byte: float = 1.0,
        sigma: float = 0.0,
        seed: int = 1,
    ) -> None:
        super().__init__(name, capacity_bytes, seed=seed)
        self.read_ns, self.write_ns, self.ns_byte, self.sigma = read_ns, write_ns, ns_byte, sigma
        self.busy = 0.0
        self._tails: list[float] = []

    def tail(self) -> float:
        """A lognormal factor: the tail of a network."""
        if not self.sigma:
            return self.jitter()
        if not self._tails:
            self._tails = np.exp(self.sigma * self.rng.standard_normal(4096)).tolist()
        return self._tails.pop()

    def renew(self) -> None:
        self.busy = 0.0

    def serve(self, kind: int, offset: int, size: int, at: float) -> float:
        if kind in (FLUSH, TRIM):
            return at + 5e3
        base = self.read_ns if kind == READ else self.write_ns
        self.busy = max(at, self.busy) + self.ns_byte * size
        return self.busy + base * self.tail()


class Turning(Model):
    """A disk: a seek by the distance, half a turn on average, and tracks that pass under the head."""

    def __init__(
        self,
        name: str = "disk",
        capacity_bytes: int = 256 * MIB,
        *,
        seek_ns: float = 2.4e6,
        turn_ns: float = 2e6,
        ns_byte: float = 5.0,
        seed: int = 1,
    ) -> None:
        super().__init__(name, capacity_bytes, seed=seed)
        self.seek_ns, self.turn_ns, self.ns_byte = seek_ns, turn_ns, ns_byte
        self.head, self.busy = 0, 0.0
        self._angles: list[float] = []

    def renew(self) -> None:
        self.head, self.busy = 0, 0.0

    def serve(self, kind: int, offset: int, size: int, at: float) -> float:
        if kind in (FLUSH, TRIM):
            return at + 5e3
        begin = max(at, self.busy)
        away = abs(offset - self.head)
        if away:
            if not self._angles:
                self._angles = self.rng.random(4096).tolist()
            begin += self.seek_ns * math.sqrt(away / self.capacity_bytes)
            begin += self.turn_ns * self._angles.pop()
        self.head = offset + size
        self.busy = begin + self.ns_byte * size + 20e3
        return self.busy


class ReadsOn(Stateless):
    """Each read, wherever it lies, brings what follows into RAM while the drive rests."""

    def __init__(
        self, name: str = "reads-on", capacity_bytes: int = 256 * MIB, *, ahead: int = MIB
    ):
        super().__init__(name, capacity_bytes, read_ns=100e3, write_ns=500e3, ns_byte=2.0)
        self.ahead, self.brought = ahead, (0, 0)

    def serve(self, kind: int, offset: int, size: int, at: float) -> float:
        if kind != READ:
            return super().serve(kind, offset, size, at)
        first, last = self.brought
        self.brought = offset, offset + size + self.ahead
        if first <= offset and offset + size <= last:
            return at + 10e3 + 0.5 * size
        return super().serve(kind, offset, size, at)


class Credits(Stateless):
    """A network store: full speed while there are credits, which time brings back, and less without."""

    def __init__(
        self,
        name: str = "credits",
        capacity_bytes: int = 256 * MIB,
        *,
        bytes_saved: int = 40 * MIB,
        gain: float = 4.0,
        reads_too: bool = True,
    ) -> None:
        super().__init__(name, capacity_bytes, ns_byte=2.0)
        self.most, self.gain, self.reads_too = bytes_saved, gain, reads_too
        self.rate = 1 / (gain * self.ns_byte)
        self.left, self.last = float(bytes_saved), 0.0

    def renew(self) -> None:
        super().renew()
        self.left, self.last = float(self.most), 0.0

    def serve(self, kind: int, offset: int, size: int, at: float) -> float:
        if kind in (FLUSH, TRIM) or (kind == READ and not self.reads_too):
            return super().serve(kind, offset, size, at)
        self.left = min(self.left + self.rate * max(at - self.last, 0.0), float(self.most)) - size
        self.last = max(at, self.last)
        if self.left < 0:
            self.busy = max(at, self.busy) + self.ns_byte * size * (self.gain - 1)
        self.left = max(self.left, 0.0)
        return super().serve(kind, offset, size, at)


class Borrowed(PageMapped):
    """Free blocks hold one bit in each cell, three pages for each of data, until none is left.

    Then a write costs a program, and where data in those blocks was overwritten also what is still valid beside it.
    """

    def __init__(
        self, name: str = "borrowed", capacity_bytes: int = 256 * MIB, *, copied: float = 4.0
    ):
        super().__init__(name, capacity_bytes)
        self.copied = copied
        self.renew()

    def renew(self) -> None:
        super().renew()
        self.lent, self.overwritten = 0, False

    def serve(self, kind: int, offset: int, size: int, at: float) -> float:
        if kind == WRITE:
            self.overwritten |= self.map[offset // self.page] >= 0
            self.lent += 3 * size
            full = self.lent > self.capacity_bytes
            self.in_slc = self.slc if full else -float(size)
            scale = self.copied if full and self.overwritten else 1.0
            self.program_ns = 600e3 * scale if full else 120e3
        return super().serve(kind, offset, size, at)


class Metered(PageMapped):
    """Writes may have so many bytes a second once what was saved up is spent; rest saves up again."""

    def __init__(
        self,
        name: str = "metered",
        capacity_bytes: int = 256 * MIB,
        *,
        saved: int = 4 * MIB,
        ns_byte: float = 80.0,
    ) -> None:
        super().__init__(name, capacity_bytes)
        self.most, self.ns_byte = saved, ns_byte
        self.left, self.last = float(saved), 0.0

    def renew(self) -> None:
        super().renew()
        self.last = 0.0

    def serve(self, kind: int, offset: int, size: int, at: float) -> float:
        if kind == READ:
            # Dies are many beside reads.
            return at + self.overhead + self.read_ns * self.jitter()
        ends = super().serve(kind, offset, size, at)
        if kind != WRITE:
            return ends
        self.left = (
            min(self.left + max(at - self.last, 0.0) / self.ns_byte, float(self.most)) - size
        )
        self.last = max(at, self.last)
        if self.left < 0:
            ends = max(ends, at - self.left * self.ns_byte)
        return ends


class Mirrored(Stateless):
    """Two reads wait where they lie on one of `units`, but places recur only after two rows, as those of parity do."""

    def __init__(self, name: str = "mirrored", capacity_bytes: int = 256 * MIB, *, units: int = 5):
        super().__init__(name, capacity_bytes, read_ns=60e3, write_ns=500e3, ns_byte=0.05)
        self.units, self.free = units, [0.0] * units

    def renew(self) -> None:
        super().renew()
        self.free = [0.0] * self.units

    def unit(self, page: int) -> int:
        row, place = divmod(page, self.units)
        # In every second row units have other places, each another way from its own.
        return place if row % 2 == 0 else 2 * place % self.units

    def serve(self, kind: int, offset: int, size: int, at: float) -> float:
        if kind != READ:
            return super().serve(kind, offset, size, at)
        unit = self.unit(offset // (16 * KIB))
        self.free[unit] = max(self.free[unit], at) + self.read_ns * self.jitter()
        return self.free[unit]


class Heated(Stateless):
    """Bytes make it hot, time cools it. Hot, all takes `slow` times as long; with `writes_only`, writes alone."""

    def __init__(
        self,
        name: str = "heated",
        capacity_bytes: int = 256 * MIB,
        *,
        hot_bytes: float = 400 * MIB,
        cools_bytes_s: float = 20 * MIB,
        slow: float = 2.5,
        writes_only: bool = False,
    ) -> None:
        super().__init__(name, capacity_bytes, ns_byte=2.0)
        self.hot, self.cools, self.slow = hot_bytes, cools_bytes_s / 1e9, slow
        self.writes_only, self.heat, self.last = writes_only, 0.0, 0.0

    def renew(self) -> None:
        super().renew()
        self.heat, self.last = 0.0, 0.0

    def serve(self, kind: int, offset: int, size: int, at: float) -> float:
        self.heat = max(self.heat - self.cools * max(at - self.last, 0.0), 0.0) + size
        self.heat = min(self.heat, 1.2 * self.hot)
        self.last = max(at, self.last)
        before = self.busy
        ends = super().serve(kind, offset, size, at)
        if self.heat > self.hot and (kind == WRITE or not self.writes_only):
            self.busy = max(at, before) + self.slow * self.ns_byte * size
            ends = at + self.slow * (ends - at)
        return ends
