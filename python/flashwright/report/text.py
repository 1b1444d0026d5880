"""Numbers and settings as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

ABSENT = "–"
"""What stands where a figure does not apply."""

_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_BYTES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def significant(value: float, digits: int = 4) -> str:
    """At least `digits` significant digits, thousands apart, never an exponent.

    Examples
    --------
    >>> significant(1234567.8), significant(3.14159), significant(0.000123456)
    ('1,234,568', '3.142', '0.0001235')
    """
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def count(value: float) -> str:
    """A count, or a mean of counts."""
    return f"{value:,.0f}" if float(value).is_integer() else significant(value)


def time_ns(value: float) -> str:
    """A time given in nanoseconds, in the unit that suits it.

    Examples
    --------
    >>> time_ns(640), time_ns(1_250_000), time_ns(90e9)
    ('640 ns', '1.25 ms', '90 s')
    """
    size, unit = next((pair for pair in _TIMES if abs(value) >= pair[0]), _TIMES[-1])
    return f"{significant(value / size)} {unit}"


def size_bytes(value: float) -> str:
    """A size in binary units."""
    size, unit = next((pair for pair in _BYTES if abs(value) >= pair[0]), (1, "B"))
    return f"{significant(value / size)} {unit}"


def rate_bytes(value: float) -> str:
    """A transfer rate, in decimal units as drives are sold by."""
    return f"{significant(value / 1e6)} MB/s"


def share(value: float) -> str:
    """A share of 0-1, as a percentage."""
    return f"{significant(value * 100)} %"


def seconds(value: float) -> str:
    """A time given in seconds."""
    return time_ns(value * 1e9)


_PERCENTILE = re.compile(r"(\d+(?:\.\d+)?) %( response)?")


def in_words(head: str) -> str:
    """What a short head of a table says in words; empty where it needs none.

    Examples
    --------
    >>> in_words("99 %"), in_words("99.9 % response"), in_words("50 %"), in_words("IOPS")
    ('99th percentile', '99.9th percentile of the response time', 'median (50th percentile)', '')
    """
    found = _PERCENTILE.fullmatch(head)
    if found is None:
        return ""
    name = "median (50th percentile)" if found[1] == "50" else f"{found[1]}th percentile"
    return name + (" of the response time" if found[2] else "")


def setting(value: Any) -> str:
    """A configuration value on one line.

    Examples
    --------
    >>> setting({"closed": {"depth": 32}}), setting(["a", True]), setting(None)
    ('closed: depth = 32', 'a, yes', '–')
    """
    if value is None or value == "":
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return count(value) if math.isfinite(value) else ABSENT
    if isinstance(value, Mapping):
        parts = [
            f"{key}: {setting(inner)}"
            if isinstance(inner, Mapping)
            else f"{key} = {setting(inner)}"
            for key, inner in value.items()
        ]
        return ", ".join(parts) or ABSENT
    if isinstance(value, list | tuple):
        return ", ".join(setting(item) for item in value) or ABSENT
    return str(value)


def flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """A nested configuration as dotted keys and one-line values, in its own order."""
    flat: dict[str, str] = {}
    for key, inner in value.items():
        if isinstance(inner, Mapping) and inner:
            flat.update(flatten(inner, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = setting(inner)
    return flat
