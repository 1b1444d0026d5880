"""What probes of chosen data, of suspension and of internal volumes should find of each make; see ``truths.py``."""

from __future__ import annotations

from collections.abc import Mapping

from truths import NONE, Facts, Truth, cannot, exactly

__all__ = ["data_truths"]

_NO_FLASH = ("disk", "volume", "phase-change", "ram-disk")


_DATA = ("compression", "deduplication")
_VOLUMES = ("internal-volumes", "volume-stride")
_SUSPENSION = ("program-suspension", "erase-suspension")
# Programs of these keep a die, which reads wait for.
_WAITS = ("slc-fixed", "slc-dynamic", "hashed", "set-associative")


def data_truths(make: str, facts: Facts) -> Mapping[str, Truth]:
    """The truths of a make, by parameter.

    >>> data_truths("disk", {})["compression"].values
    ('none',)
    """
    if make in _NO_FLASH:
        no_flash = cannot("no drive of flash", NONE)
        return dict.fromkeys((*_DATA, *_VOLUMES), no_flash) | dict.fromkeys(
            _SUSPENSION, cannot("no drive of flash")
        )
    return {**_data(make, facts), **_suspension(make), **_volumes(make, facts)}


def _data(make: str, facts: Facts) -> Mapping[str, Truth]:
    if make != "compress":
        return dict.fromkeys(_DATA, exactly("it does the same with all data", NONE))
    return {
        "compression": exactly("what is not noise shrinks", "yes"),
        "deduplication": exactly("blocks that repeat only change the map", "yes")
        if facts["dedupes"]
        else exactly("it does not look for blocks that repeat", NONE),
    }


def _suspension(make: str) -> Mapping[str, Truth]:
    if make == "coarse":
        why = "a read of a die that is busy takes a little longer, whatever the die does"
        return {
            "program-suspension": exactly(why, "yes"),
            "erase-suspension": cannot(
                f"{why}; but RAM that outlives a loss of power hides erases", "yes"
            ),
        }
    if make in _WAITS:
        why = "a read waits until its die is free"
        return {
            "program-suspension": exactly(why, "no"),
            "erase-suspension": cannot(
                f"{why}; what is moved for an erase takes longer than it", "no"
            ),
        }
    # One request at a time, or half a program by chance; any time up to a suspension by chance; no wait at all.
    defended = {"card": ("no",), "raid": ("no",), "map-cache": ("yes",)}.get(make, ())
    why = "no program keeps a die for its time, so that reads do not show one"
    return dict.fromkeys(_SUSPENSION, cannot(why, *defended))


def _volumes(make: str, facts: Facts) -> Mapping[str, Truth]:
    if make == "raid":
        why = "members clean each for itself, but nothing says that a bit chooses one"
        return {
            "internal-volumes": cannot(why, facts["data"], facts["members"]),
            "volume-stride": cannot(why, facts["chunk"]),
        }
    if make in ("card", "set-associative"):
        return dict.fromkeys(_VOLUMES, cannot("logs are merged where they lie"))
    why = "one map, which cleans for the whole drive, on a drive that is full and takes full mode"
    return dict.fromkeys(_VOLUMES, cannot(why, NONE))
