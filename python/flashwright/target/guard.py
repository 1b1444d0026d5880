"""The only way to a device: requests outside of the allowed part, and writes without consent, are refused here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from flashwright.errors import DeviceError, TargetError

__all__ = ["CODES", "SECTOR_BYTES", "Carrying", "Core", "Guarded", "Range"]

# Kinds of requests, as the core numbers them.
CODES: dict[str, int] = {"read": 0, "write": 1, "trim": 2, "flush": 3}
# The core's; this file knows none, and a test compares them.
SECTOR_BYTES = 512

# Bytes that are discarded at once. Chosen: any kernel takes them, and Ctrl-C is heard in between.
PURGE_BYTES = 1 << 30


@dataclass(frozen=True)
class Range:
    """A part of a target.

    Attributes
    ----------
    start_bytes, length_bytes : int
        Where it begins and how long it is.

    Examples
    --------
    >>> str(Range(1 << 30, 2 << 30))
    '1073741824:2147483648'
    """

    start_bytes: int
    length_bytes: int

    def __str__(self) -> str:
        return f"{self.start_bytes}:{self.length_bytes}"


class Core(Protocol):
    """The device below a target: that of the compiled core, or any other model of a drive.

    Requests are played in a closed loop: `depth` of them are outstanding, and the next one is submitted when one ends.
    Places and lengths count sectors of 512 B, and the kinds are 0 read, 1 write, 2 trim, 3 flush.

    A model that counts what it writes to its flash may also have ``counted()``: bytes from the host and bytes to the
    flash since it was made, as an NVMe drive counts them.
    """

    def info(self) -> str:
        """What it is, in JSON.

        ``name``; ``kind`` (``"simulated"`` for a model); ``capacity_bytes``; ``block_bytes``; ``real_time``, whether
        its clock is ours; ``writes_allowed``.
        """
        ...

    def now(self) -> int:
        """Its clock, nanoseconds."""
        ...

    def idle(self, nanos: int) -> None:
        """Let time pass."""
        ...

    def play(
        self,
        kinds: npt.NDArray[np.uint8],
        first_sectors: npt.NDArray[np.uint64],
        sectors: npt.NDArray[np.uint32],
        depth: int,
        seconds: float | None = None,
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """Play requests, and return when each was submitted and when it ended."""
        ...

    def purge(self) -> bool:
        """Discard everything. Returns whether the device supports that."""
        ...

    def close(self) -> None:
        """Close the device."""
        ...


@runtime_checkable
class Carrying(Protocol):
    """A device that treats data of writes differently; a :class:`Core` may be one."""

    def carry(self, noise_share: float, repeats: bool) -> None:
        """What the data of writes are like from now on.

        Parameters
        ----------
        noise_share : float
            Share of each sector that is noise; the rest are zeros.
        repeats : bool
            Whether the noise of a MiB comes again at each MiB of addresses.
        """
        ...


class Guarded:
    """A part of a device, for reads and writes or for reads alone: whatever is asked of the device passes here.

    A target has no other way to its device, so nothing outside of the part is read, written or discarded, and where
    reads alone are allowed nothing is written at all, whatever a probe does.
    """

    def __init__(self, core: Core, name: str, part: Range, *, whole: bool, reads_alone: bool):
        self._core, self._name, self._whole, self._reads_alone = core, name, whole, reads_alone
        self._first, self._count = (
            part.start_bytes // SECTOR_BYTES,
            part.length_bytes // SECTOR_BYTES,
        )
        self.now, self.idle, self.close = core.now, core.idle, core.close
        self.counted: Callable[[], tuple[int, int]] | None = getattr(core, "counted", None)

    def play(
        self,
        kinds: npt.NDArray[np.uint8],
        first_sectors: npt.NDArray[np.uint64],
        sectors: npt.NDArray[np.uint32],
        depth: int,
        seconds: float | None = None,
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """Play what lies within the part."""
        if self._reads_alone and np.any(kinds != CODES["read"]):
            raise TargetError(
                f"{self._name}: found writes, expected reads only",
                "destroys_data=True allows writes",
                parameters=["destroys_data"],
            )
        if not self._whole:
            length = sectors.astype(np.uint64)
            room = np.uint64(self._count)
            # A flush has no place.
            outside = (length > room) | (first_sectors > room - np.minimum(length, room))
            if np.any(outside & (kinds != CODES["flush"])):
                at = int(first_sectors[outside][0]) * SECTOR_BYTES
                raise TargetError(
                    f"{self._name}: found a request at {at:,} B of the range, expected it within its "
                    f"{self._count * SECTOR_BYTES:,} B"
                )
            placed = np.where(kinds == CODES["flush"], 0, first_sectors + np.uint64(self._first))
            first_sectors = placed.astype(np.uint64)
        return self._core.play(kinds, first_sectors, sectors, depth, seconds)

    def carry(self, noise_share: float, repeats: bool) -> None:
        """Set the data of later writes; a model that treats all data the same ignores it."""
        if isinstance(self._core, Carrying):
            self._core.carry(noise_share, repeats)

    def purge(self) -> bool:
        """Renew a whole device; of a part of one discard what lies there."""
        if self._reads_alone:
            raise TargetError(
                f"{self._name}: found a purge, expected reads only",
                "destroys_data=True allows it",
                parameters=["destroys_data"],
            )
        if self._whole:
            return self._core.purge()
        piece = PURGE_BYTES // SECTOR_BYTES
        trim = np.array([CODES["trim"]], np.uint8)
        for at in range(0, self._count, piece):
            first = np.array([at], np.uint64)
            length = np.array([min(piece, self._count - at)], np.uint32)
            try:
                self.play(trim, first, length, 1)
            except DeviceError:
                if at:
                    raise
                return False
        return True
