"""The two lists of DFTL's cache in the authors' release of FlashSim, in plain Python, in its order or by recency.

The paper names segmented LRU. The release has a large list that new entries join, and a small one that takes what
leaves the large one and gives up entries. It orders both by a number that each entry bears: a new entry gets one more
than the highest in the large list, each hit adds one, and the smallest leaves. A hit in the small list changes places
with the smallest of the large one, unless its own number is smaller than that. Flashwright's policy
``flashsim-two-list`` orders by recency, which is what the numbers stand for: a hit makes an entry the most recent of
the large list.

This file has both orders, so that the first can be held against the release, and the second against the Rust policy.
Blocks are counted as far as erases need it: on the loads played here every victim is fully invalid.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field

import numpy as np


class ByNumber:
    """The release's order.

    Parameters
    ----------
    larger, smaller : int
        Entries of the two lists.

    Examples
    --------
    Lists of two and one. Pages 1 and 2 fill the larger list, 3 moves 1 to the smaller one. The hit on 1 makes its
    number that of 2, and the two change places; 4 then evicts 2.

    >>> lists = ByNumber(2, 1)
    >>> [lists.look_up(page) for page in (1, 2, 3, 1, 4)]
    [(False, None), (False, None), (False, None), (True, None), (False, 2)]
    """

    def __init__(self, larger: int, smaller: int) -> None:
        # Page and number by place in each list; of equal numbers the one at the last place goes first.
        self.pages = [np.full(n, -1, np.int64) for n in (larger, smaller)]
        self.numbers = [np.zeros(n, np.int64) for n in (larger, smaller)]
        self.filled = [0, 0]
        self.place: dict[int, tuple[int, int]] = {}
        self.number: Counter[int] = Counter()
        """Numbers of all pages: those that left keep theirs."""
        self.highest: int | None = None
        self.lowest: int | None = None
        """The pages last found to bear the highest and the lowest number of the larger list."""

    def look_up(self, page: int) -> tuple[bool, int | None]:
        """Whether a page's entry is cached, and which page's leaves for it; it is cached afterwards."""
        if page in self.place:
            self._hit(page)
            return True, None
        left, place = None, self.filled[0]
        if place == len(self.pages[0]):
            left, place = self._make_room()
        self.number[page] = self._number(self.highest) + 1
        self.highest = page
        self._put(0, place, page)
        return False, left

    def _number(self, page: int | None) -> int:
        return 0 if page is None else self.number[page]

    def _put(self, of: int, place: int, page: int) -> None:
        if self.pages[of][place] == -1:
            self.filled[of] += 1
        self.pages[of][place], self.numbers[of][place] = page, self.number[page]
        self.place[page] = (of, place)

    def _smallest(self, of: int) -> int:
        last = len(self.pages[of]) - 1
        return int(self.pages[of][last - int(np.argmin(self.numbers[of][::-1]))])

    def _hit(self, page: int) -> None:
        of, place = self.place[page]
        self.number[page] += 1
        self.numbers[of][place] += 1
        if of == 0:
            if self._number(self.highest) <= self.number[page]:
                self.highest = page
            return
        if self.lowest is None:
            self.lowest = self._smallest(0)
        if self.number[self.lowest] <= self.number[page]:
            self.lowest = self._smallest(0)
            _, other = self.place[self.lowest]
            self._put(0, other, page)
            self._put(1, place, self.lowest)

    def _make_room(self) -> tuple[int | None, int]:
        """Move the smallest of the larger list to the smaller one, whose smallest leaves if that is full.

        Returns which page left, if any, and the place that became free in the larger list.
        """
        left, into = None, self.filled[1]
        if into == len(self.pages[1]):
            left = self._smallest(1)
            _, into = self.place.pop(left)
        self.lowest = self._smallest(0)
        _, place = self.place[self.lowest]
        self._put(1, into, self.lowest)
        return left, place


class ByRecency:
    """The order of the Rust policy ``flashsim-two-list``.

    Parameters
    ----------
    larger, smaller : int
        Entries of the two lists.

    Examples
    --------
    >>> lists = ByRecency(2, 1)
    >>> [lists.look_up(page) for page in (1, 2, 3, 1, 4)]
    [(False, None), (False, None), (False, None), (True, None), (False, 2)]
    """

    def __init__(self, larger: int, smaller: int) -> None:
        self.larger, self.smaller = OrderedDict[int, None](), OrderedDict[int, None]()
        self.sizes = larger, smaller

    def look_up(self, page: int) -> tuple[bool, int | None]:
        """Whether a page's entry is cached, and which page's leaves for it; it is cached afterwards."""
        hit = page in self.larger or page in self.smaller
        left = None
        if not hit and len(self.larger) + len(self.smaller) == sum(self.sizes):
            left, _ = self.smaller.popitem(last=False)
        self.larger.pop(page, None)
        self.smaller.pop(page, None)
        self.larger[page] = None
        if len(self.larger) > self.sizes[0]:
            self.smaller[self.larger.popitem(last=False)[0]] = None
        return hit, left


@dataclass
class Counts:
    """What a DFTL did since counting began."""

    reads: int = 0
    programs: int = 0
    erases: int = 0
    hits: int = 0
    evictions: int = 0
    dirty_evictions: int = 0


@dataclass
class NaiveDftl:
    """DFTL over pages that come one at a time, without batches.

    Attributes
    ----------
    lists : ByNumber or ByRecency
        The cache.
    free : int
        Blocks of the drive, all of them erased at first.
    per_block, per_page : int
        Pages in a block, and entries in a translation page.
    table : int
        Translation pages, which are written first.
    kept : int
        A clean begins before a block is opened that would leave fewer free ones.
    """

    lists: ByNumber | ByRecency
    free: int
    per_block: int
    per_page: int
    table: int
    kept: int
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        self.dirty: set[int] = set()
        self.open: dict[str, tuple[int, int]] = {}
        """The open block of data and that of translation pages, and how many pages it holds."""
        self.block_of: dict[tuple[str, int], int] = {}
        self.valid: Counter[int] = Counter()
        self.full: set[int] = set()
        self.blocks = 0
        for kind in ("translation", "data"):
            self._take(kind)
        for page in range(self.table):
            self._program("translation", page)
        self.counts = Counts()

    def serve(self, lpn: int, read: bool) -> None:
        """Read or write a page."""
        hit, left = self.lists.look_up(lpn)
        self.counts.hits += hit
        if left is not None:
            self.counts.evictions += 1
            if left in self.dirty:
                self.dirty.remove(left)
                self.counts.dirty_evictions += 1
                self.counts.reads += 1
                self._program("translation", left // self.per_page)
        self.counts.reads += not hit
        if read:
            self.counts.reads += 1
        else:
            self.dirty.add(lpn)
            self._program("data", lpn)

    def _take(self, kind: str) -> None:
        """Open an erased block, after cleaning if few are left."""
        while self.free < self.kept:
            victim = next(each for each in self.full if not self.valid[each])
            self.full.remove(victim)
            self.free += 1
            self.counts.erases += 1
        self.free -= 1
        self.blocks += 1
        self.open[kind] = (self.blocks, 0)

    def _program(self, kind: str, page: int) -> None:
        block, held = self.open[kind]
        if held == self.per_block:
            self.full.add(block)
            self._take(kind)
            block, held = self.open[kind]
        if (kind, page) in self.block_of:
            self.valid[self.block_of[kind, page]] -= 1
        self.block_of[kind, page] = block
        self.valid[block] += 1
        self.open[kind] = (block, held + 1)
        self.counts.programs += 1
