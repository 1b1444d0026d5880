"""Closed forms of reads one at a time: which structures can give what was measured, and with which numbers.

A read of some pages takes the firmware's time, that of its dies, and the link. The die with most pages senses and sends
them one after the other; the channel with most of them sends all of its pages after a first sense. Whichever lasts
longer counts. Each of both is linear in the four numbers, so each structure gets its best by least squares of means,
with the longer of both chosen anew until it stays, and what is left tells how likely the structure is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from flashwright.target.arrays import Array
from flashwright.twin.calibration import Measured
from flashwright.twin.model import Model

__all__ = ["Closed", "closed"]

# Requests that a drive takes at once, at most.
_QUEUE = 32
# Ridge of the least squares for firmware, sense, transfer and byte. Chosen: what no read shows stays small, most of all
# firmware, which takes less than a sense where single reads do not part the two.
_RIDGES = np.array([1e-2, 1e-4, 1e-4, 1e-4])
# Share of reads that need no part of the map, above which their 10th percentile is of those. Derived: twice a tenth.
_FAST = 0.2
# Transfers to start from, as shares of a sense: they say at first whether the die or the channel lasts longer.
_STARTS = (0.03, 0.2, 0.6, 2.0)
# How often that is decided anew at most. Chosen: it settles after two or three.
_TURNS = 8
# Places in a program where a read may begin, of which its mean is taken.
_PLACES = 16


@dataclass(frozen=True)
class Closed:
    """Numbers of a structure, and how far they miss the reads.

    Attributes
    ----------
    overhead_ns, read_ns, transfer_ns : float
        Firmware, a sense, a transfer of all of ``page_bytes``.
    rate : float
        Of the link, bytes per second.
    error : float
        Root mean square of the logarithms of ratios.
    """

    overhead_ns: float
    read_ns: float
    transfer_ns: float
    rate: float
    error: float


def closed(model: Model, reads: Sequence[Measured], noise: float, hits: float = 1.0) -> Closed:
    """The numbers by which a structure comes nearest to single reads, and to many at a time.

    Parameters
    ----------
    model : Model
        The structure.
    reads : sequence of Measured
        What was measured of reads.
    noise : float
        As ``controller.noise``.
    hits : float, optional
        Share of pages whose piece of the map is in RAM; for others it is read first.
    """
    return min(
        (_closed(model, reads, noise, hits, share) for share in _STARTS), key=lambda c: c.error
    )


def _closed(
    model: Model, reads: Sequence[Measured], noise: float, hits: float, share: float
) -> Closed:
    """The same; to begin with a transfer takes this share of what a sense does."""
    rows: list[Array] = []
    times = []
    loads = 2 - hits
    mapped = model.unit_bytes or model.page_bytes
    for m in reads:
        pattern = m.pattern
        if pattern.depth == 1 and pattern.order == "random":
            size = pattern.sizes_bytes[0]
            of_counts = _touched(size, pattern.align_bytes, mapped)
            # Where many enough find all of the map in RAM, the fastest are those that do.
            found = sum(share * hits**units for units, share in of_counts)
            fast = hits < 1 and len(of_counts) == 1 and found > _FAST
            parts = [
                share * np.array(_rows(model, units, size, 1.0 if fast else loads))
                for units, share in of_counts
            ]
            rows.append(np.sum(parts, axis=0))
            level = m.levels["read"]
            # Noise n lengthens by 2n in the mean, and spreads by n.
            times.append(level.p10_ns / (1 + noise) if fast else level.mean_ns / (1 + 2 * noise))
    both, taken = np.array(rows), np.array(times)
    reads_at = np.arange(len(times))
    longer = np.argmax(both @ [0.0, 1.0, share * model.page_bytes / mapped, 0.0], axis=1)
    for _ in range(_TURNS):
        solved = _positive(both[reads_at, longer], taken)
        before, longer = longer, np.argmax(both @ solved, axis=1)
        if (longer == before).all():
            break
    gaps = list(np.log((both @ solved).max(axis=1) / taken))
    overhead, read, transfer, per_byte = solved
    carried = transfer * mapped / model.page_bytes
    for m in reads:
        if m.pattern.depth < 16 or m.pattern.sizes_bytes[0] > mapped:
            continue
        # Requests meet on units by chance: of q requests on n units q n / (q + n - 1) work.
        queue = min(m.pattern.depth, model.queue_depth, _QUEUE)
        busy = queue * model.units / (queue + model.units - 1)
        most = min(
            busy / max(loads * (read + carried), 1.0),
            model.channels / max(loads * carried, 1e-3),
            1 / max(overhead, 1.0),
        )
        gaps.append(math.log(most * 1e9 * m.pattern.sizes_bytes[0] / m.bandwidth))
    error = float(np.sqrt(np.mean(np.square(gaps))))
    return Closed(overhead, read, transfer, 1e9 / per_byte, error)


@lru_cache(maxsize=4096)
def _touched(size: int, align: int, mapped: int) -> list[tuple[int, float]]:
    """The numbers of mapping units that reads of a size touch, and the share of reads that touch each number."""
    step = math.gcd(align, mapped)
    counts = [-(-(first + size) // mapped) for first in range(0, mapped, step)]
    return [(count, counts.count(count) / len(counts)) for count in sorted(set(counts))]


def _rows(model: Model, units: int, size: int, loads: float) -> list[list[float]]:
    """How often firmware, sense, transfer and byte of the link count: where the die lasts longer, and the channel."""
    mapped = model.unit_bytes or model.page_bytes
    each = mapped / model.page_bytes
    if model.superblock == "drive":
        program = model.page_bytes // mapped
        sensed = max(program // (model.shot * model.planes), 1)
        senses, on_die, transfers = _in_superblock(
            units, program, sensed, model.units, model.channels
        )
    else:
        # Pages follow each other from unit to unit of the drive; so do mapping units that RAM collects. Those of one
        # die are no neighbours, so that each is sensed by itself.
        on_die, transfers = _most(units, model.units), _most(units, model.channels)
        senses = on_die
    # Entries of the map that are loaded one by one come from one place.
    loaded = units * (loads - 1)
    # The dies of a channel begin one after the other, so that the last of those with most pages ends so many later.
    last = (units - 1) % model.units + 1
    others = math.ceil(last / model.channels) - 1 if model.superblock == "block" else 0
    return [
        [1.0, senses + loaded, (on_die + others + loaded) * each, float(size)],
        [1.0, 1.0 + loaded, (transfers + loaded) * each, float(size)],
    ]


@lru_cache(maxsize=4096)
def _in_superblock(
    count: int, program: int, sensed: int, dies: int, channels: int
) -> tuple[float, float, float]:
    """Senses and transfers of the die, transfers of the channel that have most of them; programs go die after die.

    So many mapping units in a row, of which a program holds `program` and a sense brings `sensed`: the mean over where
    in a program they begin.
    """
    most = []
    for first in sorted({at * program // _PLACES for at in range(_PLACES)}):
        at = np.arange(first, first + count)
        die = at // program % dies
        pages = np.unique(at // sensed)
        sensed_on = np.bincount(pages * sensed // program % dies)
        counts = (sensed_on, np.bincount(die), np.bincount(die % channels))
        most.append([count.max() for count in counts])
    senses, on_die, carried = np.mean(most, axis=0)
    return float(senses), float(on_die), float(carried)


def _most(count: int, places: int) -> float:
    """Of `count` items dealt to places in turn, how many the fullest place has."""
    return float(math.ceil(count / places))


def _positive(rows: Array, times: Array) -> tuple[float, float, float, float]:
    """Least squares of relative errors with numbers above 0: what would be below is set to a little and left out."""
    scaled = rows / times[:, None]
    size = np.sqrt((scaled**2).sum(axis=0))
    scaled = scaled / size
    free = [True] * 4
    found = np.full(4, 1e-4)
    for _ in range(4):
        chosen = [at for at in range(4) if free[at]]
        part = scaled[:, chosen]
        rest = 1.0 - scaled @ np.where(free, 0.0, found)
        solved = np.linalg.solve(part.T @ part + np.diag(_RIDGES[chosen]), part.T @ rest)
        found[chosen] = solved
        below = [at for at in chosen if found[at] <= 1e-4]
        if not below:
            break
        for at in below:
            free[at], found[at] = False, 1e-4
    overhead, read, transfer, per_byte = (float(value) for value in found / size)
    return overhead, read, transfer, per_byte
