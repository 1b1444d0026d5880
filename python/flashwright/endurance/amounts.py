"""Sizes, shares, rates of writing, times of life and ratings, as people give them: one reader of each."""

from __future__ import annotations

import re

from flashwright.errors import ConfigError, WorkloadError
from flashwright.support.core import _core

__all__ = [
    "YEAR_S",
    "parse_endurance",
    "parse_rate",
    "parse_rating",
    "parse_share",
    "parse_size",
    "parse_years",
]

YEAR_S = 365.25 * 24 * 3600
"""Seconds of a year."""

_PERIODS = {"s": 1.0, "h": 3600.0, "d": 86400.0, "day": 86400.0, "y": YEAR_S, "year": YEAR_S}
_AMOUNT = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?\s*([A-Za-z]+)\s*")
_LIFE = re.compile(
    r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(y|yrs?|years?|mo|months?|d|days?)\s*", re.IGNORECASE
)
_YEARS_OF = {"y": 1.0, "m": 1 / 12, "d": 1 / 365.25}
# Between drive writes a day and the years they are for: "1dwpd,5y", "1 DWPD for 5 years", "1dwpd x 5y".
_FOR = re.compile(r",|/|\bfor\b|\bover\b|\bx\b")


def _amount(text: str) -> tuple[float, str] | None:
    """A number and its unit in small letters."""
    found = _AMOUNT.fullmatch(text)
    return (
        None
        if found is None
        else (float(found[1].replace("_", "") + (found[2] or "")), found[3].lower())
    )


def parse_share(text: str, name: str = "share") -> float:
    """A share as a number or in percent: ``0.87``, ``87%``; its range is for the caller to check.

    Parameters
    ----------
    text : str
        The share.
    name : str, optional
        What messages call it.

    Raises
    ------
    ConfigError
        If it is none.

    Examples
    --------
    >>> parse_share("0.87"), parse_share("87%"), parse_share("87 %")
    (0.87, 0.87, 0.87)
    """
    try:
        return _core.share_read(text)
    except WorkloadError:
        raise ConfigError(
            f"{name}: found {text!r}, expected a share such as 0.87 or 87%", "", parameters=[name]
        ) from None


def parse_years(text: str, name: str = "life") -> float:
    """Years of a time of life: ``5y``, ``5 years``, ``60 months``, ``1826d``.

    Parameters
    ----------
    text : str
        The time; a year has 365.25 days.
    name : str, optional
        What messages call it.

    Raises
    ------
    ConfigError
        If it is none above 0.

    Examples
    --------
    >>> parse_years("5y"), parse_years("18 months"), parse_years("1826.25 d")
    (5.0, 1.5, 5.0)
    """
    found = _LIFE.fullmatch(text)
    years = 0.0 if found is None else float(found[1]) * _YEARS_OF[found[2][0].lower()]
    if years <= 0:
        raise ConfigError(
            f"{name}: found {text!r}, expected a time above 0 such as 5y", "", parameters=[name]
        )
    return years


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
    found = _amount(amount)
    rate = None
    if not slash and found is not None and found[1] == "dwpd" and capacity is not None:
        rate = found[0] * capacity / _PERIODS["day"]
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


def parse_rating(
    text: str, capacity: float | None = None, name: str = "write_rate"
) -> tuple[float, float | None]:
    """Bytes a second of a rate, and the years that it is for where it says so: ``1dwpd,5y``, ``1 DWPD for 5 years``.

    Parameters
    ----------
    text : str
        A rate as :func:`parse_rate` takes it, alone or with a time of life behind it.
    capacity : float, optional
        Bytes of the logical space, for drive writes.
    name : str, optional
        What messages call it.

    Raises
    ------
    ConfigError
        If either is none.

    Examples
    --------
    >>> parse_rating("1dwpd,5y", 432e9), parse_rating("20MB/s for 3 years"), parse_rating("20MB/s")
    ((5000000.0, 5.0), (20000000.0, 3.0), (20000000.0, None))
    """
    for mark in _FOR.finditer(text):
        rest = text[mark.end() :]
        if _LIFE.fullmatch(rest) is not None:
            return parse_rate(text[: mark.start()].strip(), capacity, name), parse_years(rest, name)
    return parse_rate(text, capacity, name), None


def parse_endurance(text: str, capacity: float | None, name: str = "endurance") -> float:
    """Bytes of a rated endurance: ``600TB``, ``600 TBW``, or drive writes a day over years, ``0.3dwpd,5y``.

    Parameters
    ----------
    text : str
        The rating.
    capacity : float or None
        Bytes of the drive, for drive writes a day; None if it is not known.
    name : str, optional
        What messages call it.

    Raises
    ------
    ConfigError
        If it is neither, or needs a capacity that is not known.

    Examples
    --------
    >>> parse_endurance("600TB", None), parse_endurance("1.2 PBW", None)
    (600000000000000.0, 1200000000000000.0)
    >>> parse_endurance("1dwpd, 5y", 10**12) / 1e12
    1826.25
    """
    if "dwpd" in text.lower():
        if capacity is None:
            raise ConfigError(
                f"{name}: found {text!r}, expected bytes such as 600TB: the drive's size is not known",
                "",
                parameters=[name],
            )
        rate, years = parse_rating(text, capacity, name)
        # Ratings are for years; days are a slip of the pen.
        if years is not None and years >= 1 / 12:
            return rate * years * YEAR_S
    elif not text.strip().isdecimal():
        # TBW and PBW, as data sheets have them.
        written = re.sub(r"(?i)bw\s*$", "B", text)
        if (size := parse_size(written, name)) > 0:
            return size
    raise ConfigError(
        f"{name}: found {text!r}, expected bytes above 0 or drive writes a day over years",
        "such as 600TB (TBW), or 0.3dwpd,5y",
        parameters=[name],
    )
