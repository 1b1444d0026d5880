"""A naive twin of a shared drive: an arbiter, dies and cleaning, in plain Python.

It holds what the drive of run.py is: a die on each channel, so that a die is a queue with one server; pages mapped one
by one, written to the dies in turn, cleaned greedily. It draws its own requests, so it agrees with the simulator by law
and not by number.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from dataclasses import dataclass, field
from statistics import fmean

CLASSES = ("urgent", "high", "medium", "low")
WEIGHTS = {"high": 4, "medium": 2, "low": 1}


@dataclass(frozen=True)
class Drive:
    """What the twin knows of the drive; times in microseconds."""

    dies: int
    blocks: int
    pages: int
    logical_share: float
    depth: int
    """Commands that the drive takes at once."""
    read: float
    program: float
    erase: float
    transfer: float
    free_min: int = 2


@dataclass(frozen=True)
class Load:
    """A tenant: uniform requests of one page over its share of the space."""

    name: str
    write: float
    """Share of writes."""
    share: float
    depth: int = 0
    rate: float = 0.0
    """Requests a second of an open loop; 0 for a closed one."""
    priority: str = "medium"


@dataclass
class Die:
    """Blocks, and the time until which the die has work."""

    free: list[int]
    valid: list[int]
    """Valid pages by block."""
    holds: list[list[int]]
    """Logical pages by block, in the order of programming."""
    frontier: int
    until: float = 0.0


@dataclass
class Figures:
    """What a tenant got."""

    times: list[float] = field(default_factory=list)
    seconds: float = 0.0
    written: int = 0
    moved: int = 0

    @property
    def mean(self) -> float:
        return fmean(self.times)

    @property
    def iops(self) -> float:
        return len(self.times) / self.seconds

    @property
    def amplification(self) -> float | None:
        return 1 + self.moved / self.written if self.written else None


class Flash:
    """Pages of the dies: where each logical page is, and what a write costs."""

    def __init__(self, drive: Drive, owners: list[int]) -> None:
        self.drive, self.owners = drive, owners
        self.dies = [
            Die(
                list(range(1, drive.blocks)),
                [0] * drive.blocks,
                [[] for _ in range(drive.blocks)],
                0,
            )
            for _ in range(drive.dies)
        ]
        self.place: list[tuple[int, int] | None] = [None] * len(owners)
        self.turn = 0
        self.moved = [0] * (max(owners) + 1)

    def write(self, page: int) -> tuple[Die, float]:
        """Writes a page to the die whose turn it is. Returns the die, and the time that it takes."""
        die = self.dies[self.turn]
        number = self.turn
        self.turn = (self.turn + 1) % len(self.dies)
        took = self.make_room(number, die)
        self.put(number, die, page)
        return die, took + self.drive.transfer + self.drive.program

    def put(self, number: int, die: Die, page: int) -> None:
        old = self.place[page]
        if old is not None:
            self.dies[old[0]].valid[old[1]] -= 1
        die.holds[die.frontier].append(page)
        die.valid[die.frontier] += 1
        self.place[page] = (number, die.frontier)

    def make_room(self, number: int, die: Die) -> float:
        took = 0.0
        while len(die.holds[die.frontier]) == self.drive.pages:
            if len(die.free) > self.drive.free_min:
                die.frontier = die.free.pop(0)
            else:
                took += self.clean(number, die)
        return took

    def clean(self, number: int, die: Die) -> float:
        open_or_free = {die.frontier, *die.free}
        victim = min(
            (block for block in range(self.drive.blocks) if block not in open_or_free),
            key=die.valid.__getitem__,
        )
        took = self.drive.erase
        copy = self.drive.read + 2 * self.drive.transfer + self.drive.program
        for page in die.holds[victim]:
            if self.place[page] == (number, victim):
                if len(die.holds[die.frontier]) == self.drive.pages:
                    die.frontier = die.free.pop(0)
                self.put(number, die, page)
                self.moved[self.owners[page]] += 1
                took += copy
        die.holds[victim] = []
        die.free.append(victim)
        return took


class Arbiter:
    """Waiting commands of each tenant, and whose turn it is."""

    def __init__(self, kind: str, loads: list[Load]) -> None:
        self.kind, self.classes = kind, [load.priority for load in loads]
        self.waiting: list[deque[tuple[float, int]]] = [deque() for _ in loads]
        self.turns: deque[int] = deque()
        """Tenants with commands. One that had none comes behind those that wait."""
        self.credits = dict(WEIGHTS)

    def push(self, tenant: int, arrival: float, number: int) -> None:
        if not self.waiting[tenant]:
            self.turns.append(tenant)
        self.waiting[tenant].append((arrival, number))

    def pick(self) -> tuple[int, float] | None:
        if not self.turns:
            return None
        tenants = list(self.turns)
        if self.kind == "fifo":
            chosen = min(tenants, key=lambda at: self.waiting[at][0][1])
        elif self.kind == "round-robin":
            chosen = tenants[0]
        else:
            chosen = self.weighted(tenants)
        arrival, _ = self.waiting[chosen].popleft()
        self.turns.remove(chosen)
        if self.waiting[chosen]:
            self.turns.append(chosen)
        return chosen, arrival

    def weighted(self, tenants: list[int]) -> int:
        for at in tenants:
            if self.classes[at] == "urgent":
                return at
        while True:
            for name in CLASSES[1:]:
                of_class = [at for at in tenants if self.classes[at] == name]
                if of_class and self.credits[name] > 0:
                    self.credits[name] -= 1
                    return of_class[0]
            self.credits = dict(WEIGHTS)


def play(
    drive: Drive, arbiter: str, loads: list[Load], alone: int | None, requests: int, seed: int
) -> list[Figures]:
    """Plays tenants, or one of them alone, on a drive that has settled under them. Returns the figures of each."""
    rng = random.Random(seed)
    logical = int(drive.dies * drive.blocks * drive.pages * drive.logical_share)
    bounds, owners, first = [], [], 0
    for at, load in enumerate(loads):
        count = int(logical * load.share)
        bounds.append((first, count))
        owners += [at] * count
        first += count
    playing = [at for at in range(len(loads)) if alone in (None, at)]
    flash = Flash(drive, owners)
    for page in range(len(owners)):
        flash.write(page)
    waiting = Arbiter(arbiter, loads)
    events: list[tuple[float, int, int, int, float]] = []
    serial = 0
    taken = 0
    found = [Figures() for _ in loads]
    warming = 4 * logical if any(loads[at].write > 0 for at in playing) else requests // 4
    measured_from = 0.0

    def take(tenant: int, arrival: float, now: float) -> None:
        nonlocal serial, taken
        load, (begin, count) = loads[tenant], bounds[tenant]
        page = begin + rng.randrange(count)
        if rng.random() < load.write:
            die, took = flash.write(page)
            found[tenant].written += 1
        else:
            place = flash.place[page]
            assert place is not None
            die, took = flash.dies[place[0]], drive.read + drive.transfer
        die.until = max(die.until, now) + took
        taken += 1
        serial += 1
        heapq.heappush(events, (die.until, serial, 1, tenant, arrival))

    def ask(tenant: int, now: float) -> None:
        nonlocal serial
        serial += 1
        if taken < drive.depth and not any(waiting.waiting):
            take(tenant, now, now)
        else:
            waiting.push(tenant, now, serial)

    def next_arrival(tenant: int, now: float) -> None:
        nonlocal serial
        serial += 1
        at = now + rng.expovariate(loads[tenant].rate) * 1e6
        heapq.heappush(events, (at, serial, 0, tenant, at))

    for tenant in playing:
        if loads[tenant].rate:
            next_arrival(tenant, 0.0)
        else:
            for _ in range(loads[tenant].depth):
                ask(tenant, 0.0)
    done = 0
    now = 0.0
    while done < warming + requests:
        now, _, is_end, tenant, arrival = heapq.heappop(events)
        if not is_end:
            next_arrival(tenant, now)
            ask(tenant, now)
            continue
        done += 1
        if done > warming:
            found[tenant].times.append(now - arrival)
        taken -= 1
        picked = waiting.pick()
        if picked is not None:
            take(*picked, now)
        if loads[tenant].depth:
            ask(tenant, now)
        if done == warming:
            measured_from = now
            for each in found:
                each.written = 0
            flash.moved = [0] * len(loads)
    for at, each in enumerate(found):
        each.seconds = (now - measured_from) / 1e6
        each.moved = flash.moved[at]
    return found
