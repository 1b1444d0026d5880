"""What probes of buffers share: their region, reads made twice, and writes after rests that show RAM."""

from __future__ import annotations

import numpy as np

from flashwright.probing.probes.shared.edges import grid
from flashwright.target.arrays import Array
from flashwright.target.question import Context
from flashwright.target.target import Target

__all__ = [
    "NO_PROGRAM",
    "READS",
    "REPEATS",
    "SMALLEST_BYTES",
    "after_rests",
    "buffer_region",
    "largest_request",
    "read_twice",
    "request_sizes",
    "takes_writes",
]


NO_PROGRAM = 0.5
"""A write and its flush that take less than this share of a read have programmed nothing.

Programming takes longer than reading in all flash there is. One half, since a read may load its piece of a map first.
"""
REPEATS = 8
"""Places that are written before and after a rest. Chosen: a median bears three that cleaning struck."""
READS = 64
"""Reads with which those writes are compared."""
SMALLEST_BYTES = 4096
"""The smallest request that is tried."""
# The largest request that is tried, bytes: twice the largest buffer that is looked for, 64 MiB.
_LARGEST = 128 << 20
# Places for the largest request, at least. Chosen: one comes again only after more than any buffer holds.
_PLACES = 16
# Bytes of a drive that probes of its buffers use. Chosen: many times the largest buffer that is looked for, 64 MiB.
_REGION = 4 << 30
# The rest, nanoseconds. Chosen: a die ends tens of programs in it.
_REST_NS = 100e6


def buffer_region(target: Target) -> int:
    """The part of a target from its start that probes of its buffers use, bytes."""
    whole = min(target.capacity_bytes, _REGION)
    return whole // (1 << 20) * (1 << 20) or whole


def largest_request(target: Target) -> int:
    """The largest request that is tried, bytes."""
    return min(_LARGEST, buffer_region(target) // _PLACES)


def request_sizes(context: Context) -> list[int]:
    """Sizes of requests that are tried, two an octave, bytes."""
    smallest = context.up(SMALLEST_BYTES)
    return grid(smallest, max(largest_request(context.target), smallest), 2, smallest)


def read_twice(
    target: Target, size_bytes: int, count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Times of reads at random places, and of the same reads again.

    Parameters
    ----------
    target : Target
        Filled up to :func:`buffer_region`.
    size_bytes : int
        Of each read.
    count : int
        Places.
    rng : numpy Generator
        Chooses them, none twice before all were read.

    Returns
    -------
    first, second : array of count
        Nanoseconds, 1 at least.
    """
    places = buffer_region(target) // size_bytes
    if places > 1 << 16:
        # Few of very many: drawn one by one they hardly meet.
        chosen = rng.integers(0, places, count)
    else:
        chosen = np.concatenate([rng.permutation(places) for _ in range(-(-count // places))])
    offsets = np.repeat(chosen[:count] * size_bytes, 2)
    latency = np.maximum(target.play("read", offsets, size_bytes).latency_ns, 1.0)
    return latency[0::2], latency[1::2]


def after_rests(
    target: Target, size_bytes: int, end_bytes: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Times of writes with their flushes, each after a rest, and of reads of as much.

    A place is written before the rest as well, so that its entry of a map is in RAM.

    Parameters
    ----------
    target : Target
        Written up to `end_bytes`.
    size_bytes, end_bytes : int
        Of each request, and where they lie.
    rng : numpy Generator
        Draws the places.

    Returns
    -------
    written, read : array
        Nanoseconds.

    Examples
    --------
    >>> with Target("sim:default") as drive:
    ...     _ = drive.fill(end_bytes=1 << 20)
    ...     written, read = after_rests(drive, 4096, 1 << 20, np.random.default_rng(1))
    >>> bool(np.median(written) < NO_PROGRAM * np.median(read))
    False
    """
    slots = end_bytes // size_bytes
    written = np.empty(REPEATS)
    for at, place in enumerate(rng.integers(0, slots, REPEATS).tolist()):
        target.play("write", [place * size_bytes], size_bytes)
        target.idle(_REST_NS)
        latency = float(target.play("write", [place * size_bytes], size_bytes).latency_ns[0])
        written[at] = latency + target.flush()
    read = target.play("read", rng.integers(0, slots, READS) * size_bytes, size_bytes).latency_ns
    return written, read


def takes_writes(target: Target, size_bytes: int, rng: np.random.Generator) -> bool:
    """Whether writes to a full drive and their flushes end, after rests, before anything can have been programmed.

    Parameters
    ----------
    target : Target
        Written all over.
    size_bytes : int
        Of each write.
    rng : numpy Generator
        Draws the places.
    """
    end = target.capacity_bytes // size_bytes * size_bytes
    written, read = after_rests(target, size_bytes, end, rng)
    return bool(np.median(written) < NO_PROGRAM * np.median(read))
