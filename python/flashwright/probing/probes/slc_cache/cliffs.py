"""Speeds of writes in order, in windows, and the cliff where they fall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flashwright.probing.probes.shared.overwriting import stream_write_size
from flashwright.target.arrays import Array
from flashwright.target.question import Context
from flashwright.target.stats import chance_above

__all__ = ["FELL", "LASTS", "WINDOWS", "Cliff", "Pen", "cliff_of"]


# Requests outstanding. Chosen: what SATA drives take.
_DEPTH = 32
WINDOWS = 128
"""Windows of a capacity. Where a cliff lies within one follows from its time."""
LASTS = 5
"""Windows that must lie below for a cliff."""
FELL = 0.8
"""What is left of a speed that fell, at most, where windows are noisy. Source: SLC mode is 2 to 8 times as fast."""
# Where windows are steady a fall is this many deviations. Chosen: no noise of windows reaches it.
_DEVIATIONS = 8.0
# And this share at least. Chosen: what cleaning varies by.
_LEAST = 0.06
# A window this much below those before, as a share and beyond noise, was written in part beyond the cliff. Chosen.
_MIXED = 0.03
# Windows before a cliff that show the speed of the cache.
_BEFORE = 2
# A steep cliff ends within this share of what was written before it, or within two windows. Chosen: a fall by heat
# takes longer.
_STEEP = 0.3
# Bytes that are written before the first window: the largest RAM that is looked for.
_RAM = 64 << 20
# No more than this share of the drive.
_RAM_SHARE = 1 / 32
RAM_REST_S = 0.1
"""Rest after which RAM is empty again, seconds. Chosen: folding begins later on drives that we know of."""
# Bytes of a short read.
_SHORT = 4096
# Short reads in a turn.
_SHORTS = 128
# Turns of them.
_TURNS = 4
# Where what was written later lies, and what is read beside it, as shares of the capacity.
_LATER = (0.6, 0.8)
# The chance below which the two are read in different times (Mann-Whitney). Chosen.
_CHANCE = 1e-5
# Bytes of a piece of writes at half the pace. Chosen: RAM hides little of one, and rests stay short.
_PACED = 256 << 20


@dataclass(frozen=True)
class Cliff:
    """Where the speed of writes in order falls.

    Attributes
    ----------
    size_bytes : float
        Written before it.
    before, after : float
        Speeds, bytes per second.
    steep : bool
        Whether it falls at once.
    """

    size_bytes: float
    before: float
    after: float
    steep: bool

    @property
    def ratio(self) -> float:
        """How many times as fast writes are before it."""
        return self.before / self.after


def cliff_of(rates: Array, window_bytes: float, lead_bytes: float = 0.0) -> Cliff | None:
    """The first fall of speed that lasts.

    Parameters
    ----------
    rates : array
        Speeds of equal windows, bytes per second.
    window_bytes : float
        Of each window.
    lead_bytes : float, optional
        Written before the first window.

    Returns
    -------
    Cliff or None
        None if no speed of some windows lies a fifth below that of those before, or a sixteenth where all are steady.

    Examples
    --------
    >>> found = cliff_of(np.array([8.0] * 10 + [4.0] + [2.0] * 10), 100.0)
    >>> round(found.size_bytes), found.ratio, found.steep
    (1067, 4.0, True)
    >>> cliff_of(np.full(20, 8.0), 100.0) is None
    True
    """
    if rates.size <= LASTS + _BEFORE:
        return None
    # By tenths: windows that take turns, and not the cliff itself, count as noise.
    low, high = np.quantile(np.diff(rates), (0.1, 0.9))
    noise = float(high - low) / 2.56 / float(np.median(rates))
    fell = 1 - float(np.clip(_DEVIATIONS * noise, _LEAST, 1 - FELL))
    for first in range(_BEFORE, rates.size - LASTS):
        at = first
        before = float(np.median(rates[:at]))
        if not np.all(rates[at : at + LASTS] < fell * before):
            continue
        # The window of the cliff may lie just above, where it was written mostly at the speed before.
        while at > 1 and rates[at - 1] < (1 - _MIXED - 3 * noise) * np.median(rates[: at - 1]):
            at -= 1
        before = float(np.median(rates[:at]))
        # The speed beyond is that which comes first: folding may slow writes down once more, later.
        after = float(np.median(rates[at + 1 : at + 1 + LASTS]))
        if after >= fell * before:
            continue
        # The window of the cliff is written at both speeds.
        part = (1 / rates[at] - 1 / after) / (1 / before - 1 / after)
        middle = np.sqrt(before * after)
        low = np.flatnonzero(rates[at:] < middle)
        ends = int(low[0]) if low.size else rates.size
        flat = float(np.median(rates[max(at - 3, 0) : at])) > 0.85 * float(np.max(rates[:at]))
        steep = flat and ends <= max(_STEEP * at, 2)
        size = lead_bytes + (at + float(np.clip(part, 0.0, 1.0))) * window_bytes
        return Cliff(size, before, after, steep)
    return None


class Pen:
    """Writes in order, on and on, in windows that end with a flush."""

    def __init__(self, context: Context) -> None:
        self.target = context.target
        self.size = stream_write_size(context)
        count = max(self.target.capacity_bytes // WINDOWS // self.size, 1)
        self.bytes = count * self.size
        self.slots = self.target.capacity_bytes // self.size
        self.at = 0
        lead = min(_RAM, int(self.target.capacity_bytes * _RAM_SHARE))
        self.lead = max(lead // self.size, 1) * self.size

    def window(self, size_bytes: int | None = None, pace: int = 1) -> float:
        """Bytes per second of a window; at a slower pace it comes in pieces with rest of as much time between."""
        count = max((size_bytes or self.bytes) // self.size, 1)
        begun = self.target.now_ns
        parts = 1 if pace == 1 else min(-(-count * self.size // _PACED), count)
        pieces = np.array_split(np.arange(count), parts)
        rested = 0
        for piece in pieces:
            began = self.target.now_ns
            offsets = (self.at + piece) % self.slots * self.size
            self.target.play("write", offsets, self.size, depth=_DEPTH)
            if pace > 1:
                self.target.flush()
                idle = (self.target.now_ns - began) * (pace - 1)
                self.target.idle(idle)
                rested += idle
        self.target.flush()
        self.at += count
        return count * self.size / max(self.target.now_ns - begun - rested, 1) * 1e9

    def reads(self, start_bytes: int = 0, length_bytes: int | None = None) -> float:
        """Speed of reads of what was written first, or of another part, bytes per second."""
        length = self.lead if length_bytes is None else length_bytes
        offsets = start_bytes + np.arange(length // self.size) * self.size
        times = self.target.play("read", offsets, self.size, depth=_DEPTH)
        return times.rate(offsets.size * self.size)

    def reads_anew(self) -> float:
        """As :meth:`reads` on a full drive that is purged and written again without a rest; then it is full again."""
        self.target.purge()
        self.at = 0
        self.window(self.lead)
        speed = self.reads()
        while self.at + self.bytes // self.size <= self.slots:
            self.window()
        return speed

    def first_over_later(self) -> float:
        """Time of short reads of what was written first over that of what was written later, on a full drive.

        Both are read before, and then something else, so that neither a map nor a cache of reads has more of one. The
        answer is 1 where they are alike by chance.
        """
        rng, slots = np.random.default_rng([8, self.lead]), self.lead // _SHORT
        later, other = (
            int(share * self.target.capacity_bytes) // self.size * self.size for share in _LATER
        )
        took: dict[int, list[Array]] = {0: [], later: []}
        for start, times in ((0, 1), (later, 1), (other, 2)):
            self.reads(start, times * self.lead)
        for _ in range(_TURNS):
            for start, each in took.items():
                places = start + rng.integers(0, slots, _SHORTS) * _SHORT
                each.append(self.target.play("read", places, _SHORT).latency_ns)
        first, others = (np.concatenate(each) for each in took.values())
        if chance_above(others, first) > _CHANCE:
            return 1.0
        return float(np.median(first) / max(np.median(others), 1.0))

    def is_ram(self, fast: float, slow: float) -> bool:
        """Whether a short rest makes writes fast again."""
        self.target.idle(RAM_REST_S * 1e9)
        return self.window(self.lead) > float(np.sqrt(fast * slow))

    def until(self, middle: float, most_bytes: float, *, pace: int = 1) -> tuple[float, bool]:
        """Writes while windows are faster than a speed; how many bytes were fast, and whether it ended.

        The window in which the speed falls counts by the share of it that was fast, as far as its time shows.
        """
        fine = max(self.bytes // (2 if pace == 1 else 1) // self.size, 1) * self.size
        written, slow = 0.0, 0
        if pace > 1:
            self.window(self.lead, pace)
            written += self.lead
        while written < most_bytes:
            rate = self.window(fine, pace)
            slow = slow + 1 if rate < middle else 0
            written += fine
            if slow == LASTS:
                return written - slow * fine, True
        return written, False
