"""What a session costs a drive: bytes, drive fills, the share of its endurance, and hours; known before it begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashwright.endurance import smart
from flashwright.endurance.amounts import parse_endurance

__all__ = ["HEAVY_FILLS", "HEAVY_SHARE", "Bill", "Endurance"]

HEAVY_SHARE = 0.01
"""Above this share of the rated endurance a session asks again."""
HEAVY_FILLS = 3.0
"""Above this many drive fills, where the endurance is unknown."""


@dataclass(frozen=True)
class Endurance:
    """How much a drive may take in its life.

    Attributes
    ----------
    bytes_rated : float or None
        Bytes that the host may write in all; None if that is not known.
    source : str
        Who says so.
    used : float or None
        Share of the life that is used up, by the drive's own account.
    doubts : tuple of str
        What is doubtful of that account.
    """

    bytes_rated: float | None = None
    source: str = ""
    used: float | None = None
    doubts: tuple[str, ...] = ()

    @classmethod
    def of(cls, rating: str | None, smart_file: Path | None, capacity_bytes: int) -> Endurance:
        """What a rating and a drive's SMART data say.

        Parameters
        ----------
        rating : str or None
            As :func:`flashwright.endurance.amounts.parse_endurance` takes it. It goes before what SMART data imply.
        smart_file : Path or None
            As :func:`flashwright.smart.read` takes it.
        capacity_bytes : int
            Of the drive, for drive writes a day.

        Raises
        ------
        ConfigError
            If the rating is none.
        SmartError
            If the file can't be read.
        """
        health = None if smart_file is None else smart.read(smart_file)
        used = None if health is None else health.used
        doubts = () if health is None else health.notes
        if rating is not None:
            bytes_rated = parse_endurance(rating, capacity_bytes, "rated_endurance")
            return cls(bytes_rated, "as given", used, doubts)
        implied = None if health is None else health.endurance_bytes
        if health is None or implied is None:
            return cls(used=used, doubts=doubts)
        source = f"by its SMART data: {health.used_from} over what was written"
        return cls(implied, source, used, doubts)


@dataclass(frozen=True)
class Bill:
    """What a session will ask of a drive, at most.

    Attributes
    ----------
    bytes_read, bytes_written : int
        At most.
    drive_bytes : int
        The size of the drive, of which a range may be a part.
    seconds : float or None
        About how long it takes at most; None for a simulated drive, whose time is its own.
    basis : str
        What the time rests on.
    endurance : Endurance
        What the drive may take.

    Examples
    --------
    >>> bill = Bill(0, 4 * 10**12, 10**12, None, "", Endurance(600e12, "as given"))
    >>> bill.fills, round(bill.share, 4), bill.heavy
    (4.0, 0.0067, False)
    >>> Bill(0, 4 * 10**12, 10**12, None, "").heavy
    True
    """

    bytes_read: int
    bytes_written: int
    drive_bytes: int
    seconds: float | None
    basis: str
    endurance: Endurance = Endurance()

    @property
    def fills(self) -> float:
        """How many times the drive's size is written."""
        return self.bytes_written / max(self.drive_bytes, 1)

    @property
    def share(self) -> float | None:
        """Share of the rated endurance; None where that is not known."""
        rating = self.endurance.bytes_rated
        return None if rating is None else self.bytes_written / rating

    @property
    def heavy(self) -> bool:
        """Whether the session costs so much that the owner should agree to it first."""
        share = self.share
        return self.fills > HEAVY_FILLS if share is None else share > HEAVY_SHARE

    def to_dict(self, written: Mapping[str, int] | None = None) -> dict[str, Any]:
        """The documented figures.

        Parameters
        ----------
        written : mapping, optional
            What was asked in the end: ``bytes_read`` and ``bytes_written``.
        """
        return {
            "bytes_read": self.bytes_read,
            "bytes_written": self.bytes_written,
            "drive_fills": self.fills,
            "rated_endurance_bytes": self.endurance.bytes_rated,
            "share_of_endurance": self.share,
            "used_before": self.endurance.used,
            "seconds": self.seconds,
            "basis": self.basis or None,
            "asked": None if written is None else dict(written),
        }
