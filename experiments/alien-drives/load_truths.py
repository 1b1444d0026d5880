"""What probes of pauses, throttling, the reach of the map and programs should find of each make; see ``truths.py``."""

from __future__ import annotations

from collections.abc import Mapping

from truths import NONE, Facts, Truth, about, between, cannot, exactly

__all__ = ["load_truths"]

_NO_FLASH = ("disk", "volume", "phase-change", "ram-disk")
_LOGS = ("card", "set-associative")
_NAMES = (
    "map-reach",
    "map-miss",
    "pause-period",
    "pause-length",
    "throttled-share",
    "throttle-recovery",
)


def load_truths(make: str, facts: Facts) -> Mapping[str, Truth]:
    """The truths of a make, by parameter.

    >>> load_truths("card", {"page": 16384.0, "block": 1048576.0})["map-reach"].values
    ('none',)
    """
    if make in _NO_FLASH:
        why = "no drive of flash"
        return {name: cannot(why, NONE) for name in _NAMES} | {"program-unit": cannot(why)}
    truths = {name: exactly("nothing of the kind is modelled", NONE) for name in _NAMES}
    truths["program-unit"] = _program_unit(make, facts)
    if make == "map-cache":
        reach = facts["cached_share"] * facts["capacity"]
        truths["map-reach"] = about("the share of the map that is in RAM", reach, 0.3)
        truths["map-miss"] = between(
            "a read of flash, 50 to 110 us, or a wait for one", 40e3, 250e3
        )
    if make == "throttle":
        every, slow = facts["pause_every_ns"], facts["slow"]
        if every:
            truths["pause-period"] = about("pauses by the clock", every, 0.15)
            truths["pause-length"] = about("pauses by the clock", facts["pause_ns"], 0.4)
        if slow > 1:
            truths["throttled-share"] = between(
                "heat slows all down by this factor", 0.7 / slow, min(1.4 / slow, 1.0)
            )
            truths["throttle-recovery"] = Truth(
                "how fast it cools is not among the facts", has_reference=False
            )
    return truths


def _program_unit(make: str, facts: Facts) -> Truth:
    if make in _LOGS:
        why = "pages that follow each other lie in a block, whatever is programmed at once"
        return cannot(why, facts["page"], facts["block"])
    if make == "hashed":
        return cannot("neighbours lie on dies by a hash", facts["page"], facts["unit"])
    return exactly("a page of a die", facts["page"])
