"""What one log says of a drive, before it is judged: figures, each with the field and the rule that it comes by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flashwright.errors import FlashwrightError

__all__ = ["Facts", "Figure", "SmartError", "amount", "count", "dig", "key_of", "rows", "text"]


class SmartError(FlashwrightError):
    """SMART data can't be read, or lacks what is needed."""

    general_hint = (
        "as root: `smartctl -j -x /dev/sdX > smart.json` or `nvme smart-log -o json /dev/nvme0`"
    )


@dataclass(frozen=True)
class Figure:
    """A number that a field of a log says.

    Attributes
    ----------
    value : float
        Bytes, hours, or a share.
    field : str
        The field, as the log names it.
    rule : str
        How it was read.
    raw : float or None
        The number in the log, of counters of bytes.
    assumed : bool
        Whether its unit is a guess.
    rank : int
        Of figures that say the same, the least goes first.
    """

    value: float
    field: str
    rule: str
    raw: float | None = None
    assumed: bool = False
    rank: int = 0


@dataclass
class Facts:
    """What one log says of one drive.

    Attributes
    ----------
    kind : str
        Which log it is; two of a kind are two moments.
    command : str
        What prints what it lacks.
    protocol : str
        ``ATA``, ``NVMe`` or ``SCSI``.
    model, serial : str or None
        Of the drive.
    capacity : float or None
        Bytes of its logical space.
    taken_at : float or None
        Seconds since 1970.
    hours, used, written, flash : list of Figure
        Hours under power; share of the life that is used; bytes from the host; bytes to the flash.
    amplification : Figure or None
        Where the drive counts pages of either kind.
    erases, cycles : Figure or None
        Mean erases of a block, and what it is rated for.
    compresses : bool
        Whether it may write less to the flash than it was given.
    notes : list of str
        What could not be told.
    """

    kind: str
    command: str
    protocol: str
    model: str | None = None
    serial: str | None = None
    capacity: float | None = None
    taken_at: float | None = None
    hours: list[Figure] = field(default_factory=list)
    used: list[Figure] = field(default_factory=list)
    written: list[Figure] = field(default_factory=list)
    flash: list[Figure] = field(default_factory=list)
    amplification: Figure | None = None
    erases: Figure | None = None
    cycles: Figure | None = None
    compresses: bool = False
    notes: list[str] = field(default_factory=list)

    def add(self, other: Facts) -> None:
        """Take what another log of the same moment says too."""
        for name in (
            "model",
            "serial",
            "capacity",
            "taken_at",
            "amplification",
            "erases",
            "cycles",
        ):
            if getattr(self, name) is None:
                setattr(self, name, getattr(other, name))
        for name in ("hours", "used", "written", "flash", "notes"):
            getattr(self, name).extend(getattr(other, name))
        self.compresses = self.compresses or other.compresses


# A point may also stand before decimals, so that it has to come twice.
_GROUPED = re.compile(
    r"[0-9]{1,3}(?:([,' \u00a0\u202f\u2019?\ufffd-])[0-9]{3})(?:\1[0-9]{3})*|[0-9]{1,3}(?:\.[0-9]{3}){2,}"
)
_PARTS = frozenset({"hi", "lo"})


def count(value: object) -> float | None:
    """A count from 0 up, None for anything else.

    Tools write large counts as text, some with separators of thousands, or in two halves of 64 bits.

    Examples
    --------
    >>> count(7), count("23,665,821"), count("33 %"), count({"hi": 1, "lo": 0}) == 2**64, count(-1)
    (7, 23665821, None, True, None)
    """
    if isinstance(value, str):
        value = value.strip()
        if _GROUPED.fullmatch(value):
            value = re.sub(r"[^0-9]", "", value)
        hexadecimal = re.fullmatch(r"0[xX][0-9a-fA-F]{1,32}", value)
        # Integers as text can be longer than Python likes to parse.
        decimal = re.fullmatch(r"[0-9]{1,40}", value)
        value = int(value, 16) if hexadecimal else int(value) if decimal else None
    if isinstance(value, Mapping) and set(value) == _PARTS:
        high, low = count(value["hi"]), count(value["lo"])
        return None if high is None or low is None else high * 2**64 + low
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Integers stay what they are: several numbers may be packed into the bits of one.
    return value if 0 <= value < 2**128 else None


def amount(value: object) -> float | None:
    """A number from 0 up that may have decimals.

    Examples
    --------
    >>> amount("812345.678"), amount("1,812,345.678"), amount("none")
    (812345.678, 1812345.678, None)
    """
    if isinstance(value, str) and re.fullmatch(r"\s*[0-9][0-9,]{0,40}\.[0-9]+\s*", value):
        return float(value.replace(",", ""))
    return count(value)


def dig(value: object, path: str) -> Any:
    """What is found along a path of names, None where it ends early."""
    found: Any = value
    for step in path.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def rows(value: object, path: str) -> list[Mapping[str, Any]]:
    """The objects of a list along a path, none where there is no list."""
    found = dig(value, path)
    return [row for row in found if isinstance(row, Mapping)] if isinstance(found, list) else []


def text(value: object) -> str | None:
    """A text, None if it is empty or no text."""
    return value.strip() or None if isinstance(value, str) else None


def key_of(name: object) -> str:
    r"""A name in one spelling: lower case, words joined by underscores.

    Examples
    --------
    >>> key_of("Physical media units written -"), key_of("percentage_used\t")
    ('physical_media_units_written', 'percentage_used')
    """
    return re.sub(r"[^a-z0-9%]+", "_", str(name).lower()).strip("_")
