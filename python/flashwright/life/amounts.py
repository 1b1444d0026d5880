"""Sizes and rates of writing, as people give them."""

from __future__ import annotations

import re

from flashwright.errors import ConfigError, WorkloadError
from flashwright.support.core import _core

__all__ = ["YEAR_S", "parse_rate", "parse_size"]

YEAR_S = 365.25 * 24 * 3600
"""Seconds of a year."""

_PERIODS = {"s": 1.0, "h": 3600.0, "d": 86400.0, "day": 86400.0, "y": YEAR_S, "year": YEAR_S}
_AMOUNT = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?)\s*([A-Za-z]+)\s*")


def parse_size(text: str, name: str = "size") -> float:
    """Bytes of a size: ``100GB`` in powers of ten, ``93GiB`` in powers of two; a number alone is bytes.

    Parameters
    ----------
    text : str
        A number, with a unit from B to EB or EiB, or with a letter of them that is a power of 1,024 (``4k``).
    name : str, optional
        What messages call it.

    Examples
    --------
    >>> parse_size("1.5 TB"), parse_size("4KiB"), parse_size("4k"), parse_size("4096")
    (1500000000000.0, 4096.0, 4096.0, 4096.0)
    """
    try:
        return float(_core.size_read(text))
    except WorkloadError:
        raise ConfigError(
            f"{name}: found {text!r}, expected a size such as 100GB or 93GiB",
            "kB, MB, GB, TB are powers of 1,000; KiB, MiB, GiB, TiB and k, M, G, T of 1,024",
            parameters=[name],
        ) from None


def parse_rate(text: str, capacity: float | None = None, name: str = "write_rate") -> float:
    """Bytes a second of a rate: ``20MB/s``, ``2TB/day``, or ``0.5dwpd`` (drive writes a day).

    Parameters
    ----------
    text : str
        A size over ``s``, ``h``, ``day`` or ``year``, or a number of drive writes a day.
    capacity : float, optional
        Bytes of the logical space, for drive writes.
    name : str, optional
        What messages call it.

    Examples
    --------
    >>> parse_rate("20MB/s"), parse_rate("86.4GB/day"), parse_rate("2 DWPD", 432e9)
    (20000000.0, 1000000.0, 10000000.0)
    """
    amount, slash, period = text.partition("/")
    found = _AMOUNT.fullmatch(amount)
    rate = None
    if not slash and found is not None and found[2].lower() == "dwpd" and capacity is not None:
        rate = float(found[1].replace("_", "")) * capacity / _PERIODS["day"]
    elif (
        slash
        # As of a drive's bus: without "B" it could be a power of 1,000 or of 1,024.
        and amount.rstrip().lower().endswith("b")
        and (seconds := _PERIODS.get(period.strip().lower())) is not None
    ):
        rate = parse_size(amount, name) / seconds
    if rate is None or rate <= 0:
        raise ConfigError(
            f"{name}: found {text!r}, expected a rate above 0 such as 20MB/s, 2TB/day or 0.5dwpd",
            "a period is s, h, day or year; dwpd is drive writes a day, of a drive",
            parameters=[name],
        )
    return rate
