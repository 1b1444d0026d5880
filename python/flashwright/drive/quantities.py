"""Sizes, times and rates as people write them: a number with its unit."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

__all__ = ["EXAMPLES", "UNITS", "as_text", "decode", "needs", "plain"]

UNITS: dict[str, tuple[tuple[str, Decimal], ...]] = {
    "B": tuple(
        (name, Decimal(1 << 10 * k)) for k, name in enumerate(("B", "KiB", "MiB", "GiB", "TiB"))
    ),
    "ns": tuple((name, Decimal(1000**k)) for k, name in enumerate(("ns", "us", "ms", "s"))),
    "B/s": tuple((f"{name}/s", Decimal(1000**k)) for k, name in enumerate(("B", "kB", "MB", "GB"))),
}
"""Units that are written with the number, by the one that findings have."""

_READ = {
    **{name: (unit, factor) for unit, names in UNITS.items() for name, factor in names},
    # Drives are sold by these.
    **{name: ("B", Decimal(1000**k)) for k, name in enumerate(("kB", "MB", "GB", "TB"), 1)},
}

_QUANTITY = re.compile(
    r"\s*([+-]?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?)\s*([A-Za-z/]+)\s*"
)

# Beyond this, a division by a unit's factor would round.
_LONGEST = Decimal(10**18)

EXAMPLES = 'such as "16 KiB", "1.5 ms" or "110 MB/s"'


def needs(unit: str) -> str:
    """What is expected where a value of a unit must stand."""
    names = {"B": 'a size such as "16 KiB"', "ns": 'a time such as "1.5 ms"'}
    return names.get(unit, f"a number of {unit}" if unit else "a plain number")


def as_text(value: int | float | str | None, unit: str) -> int | float | str | None:
    """A value as the file has it: with its unit where that is one of size, time or rate.

    All take the largest unit that leaves a number of 1 or more, sizes only one in which two decimals are exact;
    nothing is rounded.
    """
    value = plain(value)
    if unit not in UNITS or not isinstance(value, int | float) or not math.isfinite(value):
        return value
    # Text of a float is the shortest that reads as the same; beyond 2^53 all floats are whole.
    exact = Decimal(int(value)) if value == int(value) else Decimal(repr(value))
    for name, factor in reversed(UNITS[unit]) if abs(exact) < _LONGEST else ():
        if abs(exact) >= factor and (unit != "B" or exact * 100 % factor == 0):
            number = exact / factor
            whole = number == number.to_integral()
            return f"{number.to_integral() if whole else number.normalize():f} {name}"
    return f"{exact:f} {unit}"


def decode(given: int | float | str) -> tuple[int | float | str, str | None]:
    """A value of the file, and its unit: None where it has none in its text.

    Examples
    --------
    >>> decode("255 KiB"), decode("1.5 us"), decode("64 GB"), decode("page"), decode(8)
    ((261120, 'B'), (1500, 'ns'), (64000000000, 'B'), ('page', None), (8, None))
    """
    if not isinstance(given, str):
        return given, None
    found = _QUANTITY.fullmatch(given)
    if found is None or found[2] not in _READ:
        return given, None
    unit, factor = _READ[found[2]]
    exact = Decimal(found[1].replace("_", "")) * factor
    return (int(exact) if exact == exact.to_integral() else float(exact)), unit


def plain(value: Any) -> Any:
    """A value without the types of NumPy, which TOML's writer does not know."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value.item() if hasattr(value, "item") else value
