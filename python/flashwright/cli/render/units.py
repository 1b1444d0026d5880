"""Figures with thousands separators and the unit that suits their size."""

from __future__ import annotations

__all__ = ["count", "lasts", "rate", "seconds", "share", "size", "time", "volume"]

NOTHING = "-"


def count(value: float | None) -> str:
    """A number of things.

    Examples
    --------
    >>> count(1234567), count(0), count(None)
    ('1,234,567', '0', '-')
    """
    return NOTHING if value is None else f"{value:,.0f}"


def number(value: float | None, digits: int = 3) -> str:
    """A number without a unit.

    Examples
    --------
    >>> number(3.52049), number(None)
    ('3.520', '-')
    """
    return NOTHING if value is None else f"{value:,.{digits}f}"


def time(nanos: float | None) -> str:
    """A time given in nanoseconds, to three significant digits.

    Examples
    --------
    >>> time(620_480), time(81_068_031), time(999), time(25.7e9), time(None)
    ('620 us', '81.1 ms', '1.00 us', '25.7 s', '-')
    """
    if nanos is None:
        return NOTHING
    value, unit = nanos / 1e3, "us"
    for larger in ("ms", "s"):
        if value < 999.5:
            break
        value, unit = value / 1e3, larger
    return f"{_three(value)} {unit}"


def size(count_bytes: float | None) -> str:
    """A size in bytes.

    Examples
    --------
    >>> size(4096), size(3865470566), size(512)
    ('4.00 KiB', '3.60 GiB', '512 B')
    """
    if count_bytes is None:
        return NOTHING
    value = float(count_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1023.5:
            return f"{value:.0f} B" if unit == "B" else f"{_three(value)} {unit}"
        value /= 1024
    return f"{_three(value)} TiB"


def rate(bytes_per_s: float | None) -> str:
    """Bytes a second, in powers of ten.

    Examples
    --------
    >>> rate(41_300_000)
    '41.3 MB/s'
    """
    return NOTHING if bytes_per_s is None else f"{_three(bytes_per_s / 1e6)} MB/s"


def share(value: float | None) -> str:
    """A share as a percentage.

    Examples
    --------
    >>> share(0.1234)
    '12.3 %'
    """
    return NOTHING if value is None else f"{value * 100:.1f} %"


def seconds(value: float) -> str:
    """Seconds of somebody's patience.

    Examples
    --------
    >>> seconds(0.78), seconds(812.0)
    ('0.78 s', '812 s')
    """
    return f"{_three(value)} s"


def lasts(seconds: float) -> str:
    """About how long, as people say it.

    Examples
    --------
    >>> lasts(0.4), lasts(95), lasts(7300), lasts(200_000)
    ('1 s', '2 min', '2.0 h', '56 h')
    """
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    hours = seconds / 3600
    return f"{hours:.1f} h" if hours < 10 else f"{hours:.0f} h"


def volume(count_bytes: float) -> str:
    """Bytes that are moved, in powers of ten, as ratings of drives count them.

    Examples
    --------
    >>> volume(41_300_000_000), volume(6e14), volume(4096)
    ('41.3 GB', '600 TB', '4.10 kB')
    """
    value, unit = float(count_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB", "PB"):
        if value < 999.5:
            break
        value, unit = value / 1e3, larger
    return f"{value:.0f} B" if unit == "B" else f"{_three(value)} {unit}"


def _three(value: float) -> str:
    """Three significant digits, no exponent."""
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:,.{digits}f}"


VERDICTS = {
    "settled": "yes",
    "transient": "NO: transient",
    "too-short": "too short",
    "none": "-",
    "never-cleaned": "no cleaning",
}
"""What tables say of whether a run's figures are of a settled drive."""


def interval(bounds: tuple[float, float] | None) -> str:
    """An interval of a figure without a unit.

    Examples
    --------
    >>> interval((2.5, 2.75)), interval(None)
    ('2.500 to 2.750', '-')
    """
    return "-" if bounds is None else f"{number(bounds[0])} to {number(bounds[1])}"
