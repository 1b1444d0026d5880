"""What names of attributes mean: the table ``attributes.toml``."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

__all__ = ["Meaning", "compresses", "counts_down", "meaning", "name_of", "source"]


@dataclass(frozen=True)
class Meaning:
    """What an attribute counts.

    Attributes
    ----------
    kind : str
        As ``attributes.toml`` has it.
    unit : int or None
        Bytes a count, 0 for a logical sector; None if the data base names none.
    assumed : bool
        Whether the name is also given to drives that smartctl does not know.
    part_of : str or None
        Counters that are counted together.
    why : str or None
        Why it is not read, of kind ``none``.
    """

    kind: str
    unit: int | None = None
    assumed: bool = False
    part_of: str | None = None
    why: str | None = None

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Meaning:
        """That of an entry of the table."""
        return cls(
            entry["kind"],
            entry.get("unit"),
            entry.get("assumed", False),
            entry.get("part_of"),
            entry.get("why"),
        )


def meaning(name: str, number: int, family: str = "") -> Meaning | None:
    """What an attribute means, by its name; None if the table does not have it.

    Parameters
    ----------
    name : str
        As smartctl prints it.
    number : int
        Of the attribute.
    family : str, optional
        The family and the model of the drive, as far as they are known.

    Examples
    --------
    >>> meaning("Host_Writes_32MiB", 241).unit
    33554432
    >>> meaning("Percent_Lifetime_Remain", 202, "Crucial/Micron Client SSDs").kind
    'left-used'
    >>> meaning("Wear_Range_Delta", 177).kind, meaning("Seek_Error_Rate", 7)
    ('none', None)
    """
    known, exceptions = _meanings()
    lower = name.lower()
    for entry in exceptions:
        if (
            lower in {each.lower() for each in entry["names"]}
            and number in entry.get("ids", [number])
            and any(each.lower() in family.lower() for each in entry.get("families", [""]))
        ):
            return Meaning.of(entry)
    return known.get(lower) or _by_words(lower)


_UNITS = {
    "32mib": 2**25,
    "mib": 2**20,
    "1gib": 2**30,
    "gib": 2**30,
    "gb": 10**9,
    "mb": 10**6,
    "tb": 10**12,
}
_WRITES = frozenset({"write", "writes", "written", "wts"})
_FLASH = frozenset({"flash", "flsh", "nand", "media"})


def _by_words(lower: str) -> Meaning | None:
    """What a name that is newer or older than the table says by its words, where it says enough."""
    words = [word for word in re.split(r"[^a-z0-9%]+", lower) if word]
    unit = next((_UNITS[word] for word in words if word in _UNITS), None)
    if _WRITES & set(words):
        if unit is None or {"slc", "tlc", "mlc", "qlc", "cache"} & set(words):
            return None
        if _FLASH & set(words):
            return Meaning("flash", unit)
        return (
            Meaning("written", unit) if {"host", "lifetime", "total", "hst"} & set(words) else None
        )
    about = {"life", "lifetime", "endurance"} & set(words)
    if not about or {"spare", "spares", "capacitor", "cap", "sys", "system", "slc"} & set(words):
        return None
    if {"left", "remain", "remaining", "remaining%", "remain%"} & set(words):
        return Meaning("left")
    return Meaning("used") if {"used", "used%"} & set(words) else None


def name_of(model: str | None, number: int) -> str | None:
    """The name that smartctl would give an attribute of a model, None if the table does not have it.

    Examples
    --------
    >>> name_of("Seagate BarraCuda 120 SSD ZA250CM10003", 241)
    'Host_Writes_GiB'
    """
    entry = _of_model(model)
    found = None if entry is None else entry["ids"].get(str(number))
    return None if found is None else str(found)


def is_known(model: str | None) -> bool:
    """Whether the table has the attributes of this model by number."""
    return _of_model(model) is not None


def compresses(family: str) -> bool:
    """Whether drives of a family may write less to the flash than they are given."""
    return any(each.lower() in family.lower() for each in _table()["compressing"]["families"])


def counts_down(family: str) -> bool:
    """Whether 100 means new where a maker's normalised values of wear stand at 100."""
    return any(each.lower() in family.lower() for each in _table()["counting-down"]["models"])


def source() -> str:
    """Where the table comes from."""
    origin = _table()["source"]
    return f"{origin['database']} {origin['version']} of {origin['date']}"


@functools.cache
def _table() -> dict[str, Any]:
    return tomllib.loads(
        (resources.files(__package__) / "attributes.toml").read_text(encoding="utf-8")
    )


@functools.cache
def _meanings() -> tuple[dict[str, Meaning], list[Mapping[str, Any]]]:
    known = {
        name.lower(): Meaning.of(entry)
        for entry in _table()["attributes"]
        for name in entry["names"]
    }
    return known, _table()["exceptions"]


@functools.cache
def _of_model(model: str | None) -> Mapping[str, Any] | None:
    if model is None:
        return None
    for entry in _table()["models"]:
        if any(model.lower().startswith(each.lower()) for each in entry["begins"]):
            found: Mapping[str, Any] = entry
            return found
    return None
