"""Random writes of whole clustered blocks that begin where a drive begins its blocks.

A drive with a page map begins a block wherever it is when the last one is full, not at a multiple of its size among
addresses. Random writes of a block's size that cross two of these borders leave two blocks half valid, and are slow
though the size is right. Writes in order show the borders: a write is long where a block begins. Writes on that grid
make one block invalid each if the size is all that is erased together, and do not if it is a part of that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from flashwright.drive.findings import Finding
from flashwright.probing.probes.shared.overwriting import fill_once, sequential, write_and_flush
from flashwright.target.arrays import Array
from flashwright.target.question import UNTESTED, Context, kib
from flashwright.target.stats import chance_above

__all__ = ["Grid", "aligned", "grid_of", "restore_by_grid"]


# Blocks that are looked at for their borders. Chosen: the median of sixteen writes at one place of a block.
_BLOCKS = 16
# Repeats of a speed (algorithm 8.2: five at least).
_REPEATS = 5
TIMES = (1, 2, 3, 4)
"""Multiples of the size that are tried: several units that clean in turn show a part of what all of them erase."""
# Sizes of short writes that may divide a block, bytes. Chosen: sixteens and odd multiples of 4 KiB.
_WRITES = tuple(kib << 10 for kib in (16, 20, 24, 28, 36, 44, 52, 60))
# Random writes are as fast as those in order within this share (algorithm 8.2, eps).
_EPS = 0.05
# Writes of half the size are slower by this share at least. Chosen: half of eps.
_SLOWER = 0.02
# And by more than chance: the level of the Mann-Whitney test. Chosen.
_LEVEL = 0.01


@dataclass(frozen=True, eq=False)
class Grid:
    """Speeds on the grid of a drive's blocks, as shares of that in order.

    Attributes
    ----------
    size_bytes : int
        The size that was found, or a multiple of it.
    whole, half : array of repeats
        Of that size, and of half of it.
    """

    size_bytes: int
    whole: Array
    half: Array

    @property
    def bears_out(self) -> bool:
        """Whether whole blocks are as fast as writes in order, and half ones are not."""
        mean, less = float(self.whole.mean()), float(self.half.mean())
        slower = chance_above(self.whole, self.half) < _LEVEL
        return mean >= 1 - _EPS and less < mean - _SLOWER and slower

    @property
    def text(self) -> str:
        """In words."""
        return f"on the grid of the long writes {self.whole.mean():.2f}, half of it {self.half.mean():.2f}"


def grid_of(context: Context, size_bytes: int, write_bytes: int) -> Grid | None:
    """The first multiple of a size that is as fast on the grid of blocks as in order, and half of that.

    Parameters
    ----------
    context : Context
        The target; it is purged and filled.
    size_bytes, write_bytes : int
        What seems to be erased together, and of the writes that it is made of.

    Returns
    -------
    Grid or None
        None if no multiple is.
    """
    # Where the page is not known, writes need not divide the block: short ones that do, since a border within a write
    # is missed by as much.
    if size_bytes % write_bytes:
        write_bytes = next((w for w in _WRITES if size_bytes % w == 0), write_bytes)
    # Several units that clean in turn show a part of what all of them erase.
    for times in TIMES:
        size = times * size_bytes
        whole = aligned(context, size, write_bytes)
        if whole is None:
            return None
        if whole.mean() >= 1 - _EPS:
            less = aligned(context, size // 2 // write_bytes * write_bytes, write_bytes)
            return None if less is None else Grid(size, whole, less)
    return None


def aligned(context: Context, size_bytes: int, write_bytes: int) -> Array | None:
    """Speed of random writes on the grid of a drive's blocks, as shares of that of writes in order.

    Parameters
    ----------
    context : Context
        The target; it is purged and filled.
    size_bytes : int
        What seems to be erased together.
    write_bytes : int
        Of the writes that one is made of; each is flushed.

    Returns
    -------
    array of repeats, or None
        None where borders do not show.
    """
    target, rng = context.target, context.rng("clustered-block.aligned")
    slots, writes = target.capacity_bytes // write_bytes, size_bytes // write_bytes
    window = _BLOCKS * writes
    if size_bytes % write_bytes or slots < 4 * window:
        return None
    target.purge()
    fill_once(target, write_bytes)
    before = slots // 2
    fill_once(target, write_bytes, before * write_bytes)
    took = write_and_flush(target, sequential(target, before, window, write_bytes), write_bytes)
    by_place = np.median(took.reshape(_BLOCKS, writes), axis=0)
    first = int(np.argmax(by_place))
    # Up to the next border, so that what follows begins with a block.
    end = before + window
    pad = (before + first - end) % writes
    if pad:
        write_and_flush(target, sequential(target, end, pad, write_bytes), write_bytes)
    grid = np.arange((before + first) % writes, end - writes, writes, dtype=np.int64)
    share = target.capacity_bytes // 16 // size_bytes

    def rate(count: int) -> float:
        starts = rng.choice(grid, max(count, 4))
        offsets = (starts[:, None] + np.arange(writes)).ravel() * write_bytes
        return (
            offsets.size * write_bytes / float(write_and_flush(target, offsets, write_bytes).sum())
        )

    in_order = window * write_bytes / float(took.sum())
    # As much as uses up the spare space, of which the grid covers half.
    rate(8 * share)
    return np.array([rate(share) for _ in range(_REPEATS)]) / in_order


def restore_by_grid(found: Finding, error_bytes: float, share: float, grid: Grid) -> Finding:
    """The size after all, where random writes that begin where blocks begin are as fast as those in order.

    Parameters
    ----------
    found : Finding
        That gives no verdict, since random writes contradict it.
    error_bytes : float
        How far what recurs may be off.
    share : float
        Of the windows that agree on it.
    grid : Grid
        What bears it out.
    """
    size_bytes = grid.size_bytes
    why = (
        f"{share:.0%} of the windows of writes in order show a long write every {kib(size_bytes)} or a part of it; "
        f"random writes are slower where they lie across two blocks, but {grid.text} (of the speed in order)."
    )
    return replace(
        found,
        verdict="found",
        value=size_bytes,
        low=size_bytes - error_bytes,
        high=size_bytes + error_bytes,
        # Several units that clean in turn, evenly, would pass as well.
        confidence=min(share, UNTESTED),
        why=why,
    )
