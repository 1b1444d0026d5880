"""What a probe of the SLC cache should find of each make; see ``truths.py``."""

from __future__ import annotations

from collections.abc import Mapping

from truths import NONE, Facts, Truth, between, cannot, exactly

__all__ = ["cache_truths"]

_DETAILS = ("slc-cache-ratio", "slc-cache-kind", "slc-cache-folding", "idle-before-folding")
_NO_FLASH = ("disk", "volume", "phase-change", "ram-disk")


def cache_truths(make: str, facts: Facts) -> Mapping[str, Truth]:
    """The truths of a make, by parameter.

    >>> cache_truths("disk", {})["slc-cache"].values
    ('none',)
    """
    measured = Truth(
        "what lasts is what was measured: there is nothing to hold it against", has_reference=False
    )
    rest = {"steady-cliff": measured, "sustained-rate": measured}
    if make in _NO_FLASH:
        why = "no flash, so no cache in flash"
        return {name: cannot(why, NONE) for name in ("slc-cache", *_DETAILS)} | rest
    if "drain_rate_tlc" not in facts:
        why = "all blocks are programmed alike"
        return {name: exactly(why, NONE) for name in ("slc-cache", *_DETAILS)} | rest
    is_fixed = "slc" in facts
    # Each unit takes three slots of all that there are.
    size = facts["slc"] if is_fixed else facts["capacity"] * (1 + facts["spare"]) / 3
    ratio = facts["drain_rate"] / facts["drain_rate_tlc"]
    return rest | {
        "slc-cache": between(
            "what the cache holds, and what is folded or drains meanwhile", 0.85 * size, 1.3 * size
        ),
        "slc-cache-ratio": between(
            "programs in SLC over programs in TLC: less where the link is slower, more where folding is in the way",
            1.1,
            2 * ratio,
        ),
        "slc-cache-kind": exactly("a ring of its own", "fixed")
        if is_fixed
        else exactly("a third of what is free", "dynamic"),
        "slc-cache-folding": exactly("it is folded in pauses", "yes"),
        "idle-before-folding": Truth(
            "the pause that it waits is not among the facts", has_reference=False
        ),
    }
