"""FAST in plain Python, with a switch for the copy that the authors' release of FlashSim leaves out.

Without the fault it is a naive twin of the Rust scheme; with it, it shows what the release measures.
No drive of Flashwright can choose the fault.

The fault: the release keeps the state of a page in an unsigned number of 16 bits, in which "invalid", -1, becomes
65,535, and then asks for -1. So no merge, be it partial or full, finds that the newest copy of a page lies in a random
log. It leaves the page out, which then has a free home and a copy in the log that is still marked as valid. When that
log is reclaimed, its block is merged once for each page of which the mark is there, since no merge removes one; and
what only the log held is lost with it. Writes of such a page go to its free home.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

FREE, INVALID = 0, -1
"""States of a page in a data block beside the number of the write that it holds, which is 1 or more."""


@dataclass
class Counts:
    """What cleaning did since counting began."""

    switches: int = 0
    partials: int = 0
    fulls: int = 0
    copies: int = 0
    erases: int = 0
    reclaims: int = 0
    """Random logs that were erased."""
    blocks_of_reclaims: list[int] = field(default_factory=list)
    """Data blocks that each reclaimed log merged, if any: Figure 7. The sequential log merges one."""
    distinct_blocks: int = 0
    """The data blocks that full merges of reclaims took, each counted once within a reclaim."""


@dataclass
class _Log:
    """A random log: what lies at its positions, and which of that is marked as valid."""

    lpns: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    valid: list[bool] = field(default_factory=list)


class NaiveFast:
    """FAST over pages that come one at a time.

    Parameters
    ----------
    logs : int
        Log blocks, the sequential one among them.
    per_block : int
        Pages in a block.
    missing_copy : bool, optional
        Leave out the copies that the release leaves out. It also marks the old copy of a page as invalid before it
        reclaims a log for the new one, so that this is done here too.

    Examples
    --------
    Blocks of 4 pages. Block 0 is written; then its page 2 goes to a random log, pages 0 and 1 to the sequential one.
    Page 0 again merges the block: 2 pages are copied, the one in the random log among them, or not.

    >>> for missing_copy in (False, True):
    ...     fast = NaiveFast(3, 4, missing_copy=missing_copy)
    ...     for lpn in (0, 1, 2, 3, 2, 0, 1, 1):
    ...         fast.write(lpn)
    ...     print(fast.counts.fulls, fast.counts.copies, fast.counts.erases, fast.unreadable())
    1 3 2 0
    1 2 2 1
    """

    def __init__(self, logs: int, per_block: int, *, missing_copy: bool = False) -> None:
        self.random_logs = logs - 1
        self.per_block = per_block
        self.missing_copy = missing_copy
        self.counts = Counts()
        self.data: dict[int, list[int]] = {}
        """States of the pages of each data block."""
        self.owner: int | None = None
        """The block of the sequential log."""
        self.sequential: list[int] = []
        """The writes that its log holds."""
        self.logs: deque[_Log] = deque()
        self.in_logs: dict[int, tuple[_Log, int]] = {}
        """Where the copy of a page lies that is marked as valid in a random log."""
        self.newest: dict[int, int] = {}
        self.number = 0

    def write(self, lpn: int) -> None:
        """Write a page."""
        self.number += 1
        self.newest[lpn] = self.number
        lbn, offset = divmod(lpn, self.per_block)
        home = self.data.setdefault(lbn, [FREE] * self.per_block)
        if home[offset] == FREE:
            home[offset] = self.number
        elif offset == 0:
            if self.owner is not None:
                self._retire()
            self.data[lbn][0] = INVALID
            self.owner, self.sequential = lbn, [self.number]
        elif self.owner == lbn and offset == len(self.sequential):
            self._invalidate(lpn)
            self.sequential.append(self.number)
        elif self.owner == lbn and offset > len(self.sequential):
            self._retire(offset)
        elif self.owner == lbn:
            self._merge_owner(offset)
        else:
            self._append(lpn)

    def read(self, lpn: int) -> int:
        """The number of the write that reading a page finds; 0 if it finds none."""
        lbn, offset = divmod(lpn, self.per_block)
        home = self.data.get(lbn, [FREE] * self.per_block)[offset]
        if home != INVALID:
            return home
        if self.owner == lbn and offset < len(self.sequential):
            return self.sequential[offset]
        if lpn not in self.in_logs:
            return 0
        log, position = self.in_logs[lpn]
        return log.writes[position]

    def unreadable(self) -> int:
        """Pages of which reading does not find the newest write."""
        return sum(self.read(lpn) != number for lpn, number in self.newest.items())

    def _invalidate(self, lpn: int) -> None:
        """Take the mark from the copy in a random log, or if there is none, from the home."""
        if lpn in self.in_logs:
            self._from_log(lpn)
        else:
            lbn, offset = divmod(lpn, self.per_block)
            self.data[lbn][offset] = INVALID

    def _from_log(self, lpn: int) -> int:
        log, position = self.in_logs.pop(lpn)
        log.valid[position] = False
        return log.writes[position]

    def _copy(self, lbn: int, into: list[int], offset: int) -> None:
        """Copy a page of a data block from its home or from a random log."""
        state = self.data[lbn][offset]
        if state == INVALID and not self.missing_copy:
            state = self._from_log(lbn * self.per_block + offset)
        if state > FREE:
            into[offset] = state
            self.counts.copies += 1

    def _retire(self, new: int | None = None) -> None:
        """Make the sequential log the data block, with what it lacks copied and the `new` page in it."""
        lbn, taken = self.owner, self.sequential
        assert lbn is not None
        begin = len(taken)
        taken = taken + [FREE] * (self.per_block - begin)
        for offset in range(begin, self.per_block):
            if offset == new:
                lpn = lbn * self.per_block + offset
                if not self.missing_copy and lpn in self.in_logs:
                    self._from_log(lpn)
                taken[offset] = self.number
            else:
                self._copy(lbn, taken, offset)
        if begin == self.per_block:
            self.counts.switches += 1
        else:
            self.counts.partials += 1
        self.data[lbn] = taken
        self.counts.erases += 1
        self.owner, self.sequential = None, []

    def _merge_owner(self, new: int) -> None:
        """Merge the block of the sequential log into an erased one, with the `new` page in it."""
        lbn, log = self.owner, self.sequential
        assert lbn is not None
        merged = [FREE] * self.per_block
        for offset in range(self.per_block):
            if offset == new:
                merged[offset] = self.number
            elif offset < len(log):
                merged[offset] = log[offset]
                self.counts.copies += 1
            else:
                self._copy(lbn, merged, offset)
        self.data[lbn] = merged
        self.counts.fulls += 1
        self.counts.erases += 2
        self.counts.blocks_of_reclaims.append(1)
        self.owner, self.sequential = None, []

    def _append(self, lpn: int) -> None:
        """Write a page to the newest random log."""
        if self.missing_copy:
            self._invalidate(lpn)
        if not self.logs or len(self.logs[-1].lpns) == self.per_block:
            if len(self.logs) == self.random_logs:
                self._reclaim()
            self.logs.append(_Log())
        if not self.missing_copy:
            self._invalidate(lpn)
        log = self.logs[-1]
        self.in_logs[lpn] = (log, len(log.lpns))
        log.lpns.append(lpn)
        log.writes.append(self.number)
        log.valid.append(True)

    def _reclaim(self) -> None:
        """Merge the block of each page that is marked as valid in the oldest random log, and erase that."""
        log = self.logs.popleft()
        merged_blocks: list[int] = []
        retired = 0
        for position, lpn in enumerate(log.lpns):
            if not log.valid[position]:
                continue
            lbn = lpn // self.per_block
            if self.owner == lbn:
                self._retire()
                retired += 1
                continue
            merged = [FREE] * self.per_block
            for offset in range(self.per_block):
                self._copy(lbn, merged, offset)
            self.data[lbn] = merged
            self.counts.erases += 1
            merged_blocks.append(lbn)
        for position, lpn in enumerate(log.lpns):
            if log.valid[position]:
                del self.in_logs[lpn]
        self.counts.erases += 1
        self.counts.reclaims += 1
        self.counts.fulls += len(merged_blocks)
        self.counts.distinct_blocks += len(set(merged_blocks))
        if merged_blocks or retired:
            self.counts.blocks_of_reclaims.append(len(merged_blocks) + retired)
