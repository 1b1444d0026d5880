"""What writes carry, for drives that compress or deduplicate."""

from __future__ import annotations

from dataclasses import dataclass

from flashwright.errors import ArgumentError

__all__ = ["NOISE", "QUARTER", "REPEATED", "ZEROS", "Contents"]


@dataclass(frozen=True)
class Contents:
    """What writes carry.

    Attributes
    ----------
    noise_share : float
        Share of each sector of 512 B that is noise; the rest are zeros. 1 is what no drive can shrink.
    repeats : bool
        Whether the noise is that of 1 MiB, which comes again at each MiB of addresses: each block of it is on the drive
        many times, but a window of less than a MiB shows none twice.

    Examples
    --------
    >>> Contents() == NOISE, QUARTER.noise_share
    (True, 0.25)
    """

    noise_share: float = 1.0
    repeats: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.noise_share <= 1:
            raise ArgumentError(f"noise_share: found {self.noise_share:g}, expected 0 to 1")
        if self.repeats and self.noise_share != 1:
            raise ArgumentError(
                f"noise_share: found {self.noise_share:g}, expected 1 where blocks repeat"
            )


NOISE = Contents()
"""Bytes that no drive can shrink or find twice."""
QUARTER = Contents(0.25)
"""Bytes that shrink to a quarter, and do not repeat."""
ZEROS = Contents(0.0)
"""Nothing but zeros."""
REPEATED = Contents(repeats=True)
"""Bytes that do not shrink, but repeat."""
