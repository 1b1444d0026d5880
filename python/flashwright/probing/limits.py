"""What a session cannot find if it may not write, or probes only part of a drive."""

from __future__ import annotations

import mmap
import os

import numpy as np

from flashwright.probing.declared import Partition, partition
from flashwright.target.target import Target

__all__ = ["PART_TEXT", "READS_TEXT", "doubts_of_reads", "limits", "rest_of"]

# Places that are checked for data.
_PLACES = 256
# Bytes of each.
_PLACE_BYTES = 4096
# Bytes within which they lie: probes that read stay within the first 4 GiB.
_REGION_BYTES = 4 << 30
# Share of the places without data, above which reads show nothing about flash. Chosen.
_EMPTY = 0.1
# A partition that leaves less than this share of its disk counts as all of it. Chosen: a partition table and a boot
# partition.
_REST = 0.01

EXPORT_TEXT = (
    "A target over the network: every time includes the way through the sockets, some ten microseconds and more on a "
    "busy machine. "
    "What is shorter can't be found, and a buffer shows only where it is larger than what that time hides."
)
_UNSEEN_TEXT = (
    " Whether it holds data is not looked at: reads of an empty export show nothing about flash."
)
READS_TEXT = (
    "Reads only: nothing is written, so the clustered page, mapping, clustered block, stripe, write buffer, flushes, "
    "cleaning and the best request cannot be found. The drive is measured as it is: requests of other programs and "
    "discarded data affect the times."
)
"""What reads alone cannot find."""
PART_TEXT = (
    "Only {what}: the rest of the drive keeps its data, so spare space and cleaning cannot be found and no twin is "
    "made; "
    "units and buffers are those of the whole drive. Addresses count from the start of the part: if the drive's pages "
    "do not begin there, sizes that are found by alignment may be missed."
)
"""What cannot be found on part of a drive; a sentence replaces ``{what}``."""


def rest_of(target: Target) -> str | None:
    """What part of a drive a target is, in words; None if it is all of one.

    Parameters
    ----------
    target : Target
        A range of something, or a partition.
    """
    if target.part is not None:
        return (
            f"the range from {target.part.start_bytes:,} B on, {target.part.length_bytes:,} B long, of "
            f"{target.whole_bytes:,} B, is probed"
        )
    found = _partition(target)
    if found is None or target.capacity_bytes >= (1 - _REST) * found.disk_bytes:
        return None
    return f"a partition of {found.disk} is probed, {target.capacity_bytes:,} B of {found.disk_bytes:,} B"


def _partition(target: Target) -> Partition | None:
    return (
        partition(target.path)
        if target.kind == "block-device" and target.path is not None
        else None
    )


def limits(target: Target) -> tuple[str, ...]:
    """What cannot be found on a target as opened, one sentence each; empty for a whole drive that may be written.

    Parameters
    ----------
    target : Target
        The drive, or a part of it.

    Examples
    --------
    >>> from flashwright.target.target import Target
    >>> with Target("sim:default", read_only=True) as drive:
    ...     limits(drive)[0].split(":")[0]
    'Reads only'
    """
    found = [READS_TEXT] if target.read_only else []
    if target.kind in ("nbd", "nvme-tcp"):
        found.append(EXPORT_TEXT + (_UNSEEN_TEXT if target.read_only else ""))
    part = rest_of(target)
    if part is not None:
        found.append(PART_TEXT.format(what=part))
    beside = _partition(target)
    if beside is not None and beside.mounted:
        found.append(
            f"{beside.mounted[0]} of the same disk is mounted on {beside.mounted[1]}: its requests affect the times."
        )
    return tuple(found)


def doubts_of_reads(target: Target) -> list[str]:
    """Why reads of a target that is not written first may show nothing about flash.

    Data that was never written, or that was discarded, reads as zeros and is read from no flash: 256 places are looked
    at.

    Parameters
    ----------
    target : Target
        Open for reads alone; simulated ones hold data.
    """
    if target.path is None or not target.read_only:
        return []
    start = 0 if target.part is None else target.part.start_bytes
    room = min(target.capacity_bytes, _REGION_BYTES)
    size = max(_PLACE_BYTES, target.block_bytes)
    places = np.unique(np.linspace(0, max(room - size, 0), _PLACES).astype(np.int64) // size * size)
    empty = 0
    # Past the page cache as all that is played, into memory that is aligned as that asks for.
    device = os.open(target.path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    try:
        with mmap.mmap(-1, size) as memory:
            for place in places.tolist():
                os.preadv(device, [memory], start + place)
                empty += not any(memory[:])
    finally:
        os.close(device)
    if empty <= _EMPTY * places.size:
        return []
    return [
        f"{empty} of {places.size} places that were read hold only zeros, like data that was never written or was "
        "discarded: such reads do not reach flash."
    ]
