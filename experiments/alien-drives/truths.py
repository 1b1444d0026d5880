"""What a probe of a drive of each make should find, from what was drawn, with a reason for each.

A truth is a list of values, or ranges of them, that are right. Where the question has an answer that requests can show,
"cannot tell" is merely unknown; where it has none, "cannot tell" is right and a claim is false unless it is among the
values. Where two answers can be defended, both are values, and the reason says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Facts = Mapping[str, float]
Value = float | str
Judgement = Literal["right", "rightly untold", "unknown", "false", "not judged"]

NONE = "none"
"""The value of a finding whose verdict is "absent"."""


@dataclass(frozen=True)
class Truth:
    """The right answer to a probe.

    Attributes
    ----------
    why : str
        The reason, a line.
    values : tuple
        Right to the digit; words, and ``"none"``.
    ranges : tuple of (low, high)
        Numbers within these are right too.
    answerable : bool
        Whether requests can show it. If not, "cannot tell" is right.
    has_reference : bool
        Whether there is a truth to judge by at all.
    """

    why: str
    values: tuple[Value, ...] = ()
    ranges: tuple[tuple[float, float], ...] = ()
    answerable: bool = True
    has_reference: bool = True


def judge(finding: Mapping[str, Any], truth: Truth) -> Judgement:
    """What a finding is worth.

    >>> judge({"verdict": "found", "value": 4096}, exactly("its unit", 4096))
    'right'
    >>> judge({"verdict": "unknown", "value": None}, cannot("has no units"))
    'rightly untold'
    """
    if not truth.has_reference:
        return "not judged"
    if finding["verdict"] == "unknown":
        return "unknown" if truth.answerable else "rightly untold"
    value = NONE if finding["verdict"] == "absent" else finding["value"]
    if value in truth.values:
        return "right"
    if not isinstance(value, str) and any(low <= value <= high for low, high in truth.ranges):
        return "right"
    return "false"


def exactly(why: str, *values: Value) -> Truth:
    """One of these."""
    return Truth(why, values)


def between(why: str, low: float, high: float, *values: Value) -> Truth:
    """A number of this range, or one of these."""
    return Truth(why, values, ((low, high),))


def about(why: str, value: float, share: float) -> Truth:
    """A number that is off by this share at most."""
    return between(why, value * (1 - share), value * (1 + share))


def _near(value: float) -> tuple[tuple[float, float], ...]:
    return ((0.7 * value, 1.3 * value),)


def cannot(why: str, *values: Value, ranges: tuple[tuple[float, float], ...] = ()) -> Truth:
    """Nothing that requests show; these would be no lie."""
    return Truth(why, values, ranges, answerable=False)


def _buffer(facts: Facts) -> Truth:
    size, page, link = facts["buffer"], facts["page"], facts["link_rate"]
    # With an SLC cache it depends on what it holds.
    drains = (facts["drain_rate"], facts.get("drain_rate_tlc", facts["drain_rate"]))
    if max(drains) >= 0.9 * link:
        why = "flash takes data about as fast as the link brings them, but while it cleans or folds"
        return cannot(why, ranges=((size - page, 10 * size),))
    most = size / (1 - max(drains) / link) + page
    why = "the RAM, or what a write may have before it waits: the RAM and what drains meanwhile"
    return between(why, size - page, most * 1.05)


def page_mapped(facts: Facts, cleaning: Mapping[str, float]) -> dict[str, Truth]:
    """A drive of flash with a page map, RAM before it, and no cache of reads."""
    protected = bool(facts.get("outlives_power", 0))
    buffer = _buffer(facts)
    hidden = "no flush waits for flash, so nothing shows when the RAM is empty"
    rmw = "writing a part of a mapping unit reads the rest of it"
    truths = {
        "kind-of-device": exactly("it is flash", "flash"),
        "clustered-page": exactly(rmw, facts["unit"])
        if not protected
        else cannot(f"{rmw}, but a flush does not wait for it", facts["unit"]),
        "mapping": exactly("a map of pages", "page"),
        "clustered-block": exactly("blocks of all dies are erased together", facts["block"]),
        "parallel-units": exactly("its dies", facts["dies"]),
        "stripe": exactly(
            "a page for each die, or a mapping unit for each if counted so",
            facts["dies"] * facts["page"],
            facts["dies"] * facts["unit"],
        ),
        "read-buffer": exactly("it keeps nothing that was read", NONE),
        "read-buffer-least": exactly("it keeps nothing that was read", NONE),
        "prefetch": exactly("it does not read ahead", "no"),
        "prefetch-size": exactly("it does not read ahead", NONE),
        "write-buffer": buffer,
        "buffer-kind": exactly("each write goes to flash, in order", "buffer")
        if buffer.answerable
        else cannot("the RAM never fills", "buffer"),
        "write-buffer-drain": cannot(hidden, "eager")
        if protected
        else exactly("pages are programmed once they are full, the rest soon after", "eager"),
        "flush-time": about("a command without work", facts["flush_ns"], 0.3),
        "flush-honoured": exactly("capacitors carry the RAM", "no")
        if protected
        else exactly("a flush waits for the programs", "yes"),
        "spare-space": between(
            "flash beyond the capacity, less the blocks kept empty",
            facts["spare"] - max(0.02, facts["block"] / 1e10),
            facts["spare"] + 0.02,
        ),
        "best-request": Truth(
            "what is best depends on the grid of sizes and depths that was tried",
            has_reference=False,
        ),
    }
    if cleaning["stalls"] < 30:
        why = "cleaning is spread over writes, or hidden by the RAM: no write is singled out"
        truths |= {"cleaning-interval": cannot(why), "cleaning-stall": cannot(why)}
    else:
        truths["cleaning-interval"] = between(
            "host bytes by the drive's own count of writes that waited for cleaning; twice as much "
            "if every other one hid in the RAM",
            cleaning["interval_bytes"] / 1.5,
            cleaning["interval_bytes"] * 2,
        )
        truths["cleaning-stall"] = between(
            "the mean stall by the drive's own count; less where the RAM or another die hides a "
            "part of it",
            cleaning["stall_ns"] / 3,
            cleaning["stall_ns"] * 1.5,
        )
    return truths


def no_flash(why: str, **defended: tuple[Value, ...]) -> dict[str, Truth]:
    """Something else than flash: nothing may be claimed of it but what is listed."""
    parameters = (
        "kind-of-device",
        "clustered-page",
        "mapping",
        "clustered-block",
        "parallel-units",
        "stripe",
        "read-buffer",
        "read-buffer-least",
        "prefetch",
        "prefetch-size",
        "write-buffer",
        "buffer-kind",
        "write-buffer-drain",
        "flush-time",
        "flush-honoured",
        "cleaning-interval",
        "cleaning-stall",
        "spare-space",
    )
    truths = {name: cannot(why, *defended.get(name.replace("-", "_"), ())) for name in parameters}
    truths["best-request"] = Truth(
        "what is best depends on the grid of sizes and depths that was tried", has_reference=False
    )
    return truths


def slc_fixed(facts: Facts, cleaning: Mapping[str, float]) -> dict[str, Truth]:
    truths = page_mapped(facts, cleaning)
    truths["spare-space"] = between(
        "spare flash, with or without the SLC cache, which holds data until a pause",
        facts["spare"] - facts["slc"] / facts["capacity"] - 0.02,
        facts["spare"] + 0.02,
    )
    return truths


def map_cache(facts: Facts, cleaning: Mapping[str, float]) -> dict[str, Truth]:
    truths = page_mapped(facts, cleaning)
    smooth = "cleaning is paid in small parts by all writes: no time shows where a block begins"
    truths["clustered-block"] = cannot(smooth, facts["block"])
    truths["spare-space"] = cannot(smooth, ranges=truths["spare-space"].ranges)
    kept = "it keeps no data, but the map of what was read: a repeated read may find that"
    truths["read-buffer"] = cannot(kept, NONE)
    truths["read-buffer-least"] = cannot(kept, NONE)
    return truths


def coarse(facts: Facts, cleaning: Mapping[str, float]) -> dict[str, Truth]:
    truths = page_mapped({**facts, "outlives_power": 1.0}, cleaning)
    truths["clustered-page"] = (
        exactly("a part of a mapping unit waits for the read of the rest", facts["unit"])
        if facts["reads_first"]
        else cannot(
            "the rest of a unit is read after the write has ended, and no flush waits",
            facts["unit"],
        )
    )
    hides = "the RAM outlives a loss of power and is larger than what cleaning delays"
    for name in ("clustered-block", "spare-space", "cleaning-interval", "cleaning-stall"):
        truth = truths[name]
        truths[name] = cannot(f"{truth.why}; {hides}", *truth.values, ranges=truth.ranges)
    return truths


def disk(facts: Facts, cleaning: Mapping[str, float]) -> dict[str, Truth]:
    kept = (facts["read_segment"], facts["read_cache"])
    truths = no_flash(
        "a rotating disk: no flash, no map, nothing to clean",
        clustered_page=(facts["unit"],),
        parallel_units=(1,),
        stripe=(NONE,),
        read_buffer=kept,
        read_buffer_least=(512, 4096),
        prefetch=("yes",),
        prefetch_size=(facts["read_segment"],),
        write_buffer=(facts["buffer"] or NONE,),
        buffer_kind=("buffer" if facts["buffer"] else NONE,),
        write_buffer_drain=("eager" if facts["buffer"] else NONE,),
        flush_honoured=("yes" if facts["buffer"] else NONE,),
    )
    truths["flush-time"] = cannot("no drive of flash", ranges=_near(facts["flush_ns"]))
    return truths


def without_memory(why: str, facts: Facts) -> dict[str, Truth]:
    """No flash, and nothing depends on what was read or written before."""
    truths = no_flash(
        why,
        read_buffer=(NONE,),
        read_buffer_least=(NONE,),
        prefetch=("no",),
        prefetch_size=(NONE,),
        write_buffer=(NONE,),
        buffer_kind=(NONE,),
        write_buffer_drain=(NONE,),
        flush_honoured=(NONE,),
        stripe=(NONE,),
    )
    truths["flush-time"] = cannot("no drive of flash", ranges=_near(facts["flush_ns"]))
    return truths


def volume(facts: Facts, cleaning: Mapping[str, float]) -> dict[str, Truth]:
    why = "a volume behind a network: nothing depends on what was read or written before"
    return without_memory(why, facts)


def card(facts: Facts, cleaning: Mapping[str, float]) -> dict[str, Truth]:
    alone = "no RAM: a write ends when flash has it"
    merges = "every write beyond the open units closes one: no interval of cleaning apart from that"
    return {
        "kind-of-device": exactly("it is flash", "flash"),
        "clustered-page": exactly(
            "a part of a page reads the rest; of an allocation unit, the rest is copied",
            facts["page"],
            facts["block"],
        ),
        "mapping": exactly("allocation units with a few open ones are log blocks", "log-block"),
        "clustered-block": exactly("an allocation unit is erased as a whole", facts["block"]),
        "parallel-units": exactly("one request at a time, one page at a time", 1),
        "stripe": exactly("pages that follow each other lie on one unit", NONE, facts["page"]),
        "read-buffer": exactly("it keeps nothing that was read", NONE),
        "read-buffer-least": exactly("it keeps nothing that was read", NONE),
        "prefetch": exactly("it does not read ahead", "no"),
        "prefetch-size": exactly("it does not read ahead", NONE),
        "write-buffer": exactly(alone, NONE),
        "buffer-kind": exactly(alone, NONE),
        "write-buffer-drain": exactly(alone, NONE),
        "flush-time": about("a command without work", facts["flush_ns"], 0.3),
        "flush-honoured": exactly(alone, NONE, "yes"),
        "cleaning-interval": cannot(merges, ranges=((2048, 64 << 10),)),
        "cleaning-stall": cannot(
            merges, ranges=((cleaning["stall_ns"] / 2, cleaning["stall_ns"] * 2),)
        ),
        "spare-space": cannot("its spare units only take the place of open ones"),
        "best-request": Truth(
            "what is best depends on the grid of sizes and depths that was tried",
            has_reference=False,
        ),
    }


def raid(facts: Facts, cleaning: Mapping[str, float]) -> dict[str, Truth]:
    truths = page_mapped(facts, cleaning)
    row = facts["chunk"] * facts["data"]
    parity = bool(facts["parity"])
    truths["clustered-page"] = exactly(
        "a part of a member's unit reads the rest; with parity so does a part of a row",
        *([facts["unit"], row] if parity else [facts["unit"]]),
    )
    whole = "members clean each for itself: the blocks of one, of all, or of those that hold data"
    truths["clustered-block"] = cannot(
        whole, *(facts["block"] * count for count in (1, facts["members"], facts["data"]))
    )
    truths["parallel-units"] = exactly(
        "dies of all members; or the members, if these are what is told apart",
        facts["dies"],
        facts["members"],
        facts["data"],
    )
    truths["stripe"] = exactly(
        "a row of chunks, or a page for each die", row, facts["chunk"] * facts["members"],
        facts["dies"] * facts["page"],
    )  # fmt: skip
    low, high = _buffer(facts).ranges[0]
    truths["write-buffer"] = between(
        "the RAM of one member, or of all that take part of a write",
        low,
        high * facts["members"],
    )
    for name in ("spare-space", "cleaning-interval", "cleaning-stall"):
        truth = truths[name]
        truths[name] = cannot(f"{truth.why}; {whole}", *truth.values, ranges=truth.ranges)
    return truths


Stated = Callable[[Facts, Mapping[str, float]], dict[str, Truth]]
TRUTHS: dict[str, Stated] = {
    "slc-fixed": slc_fixed,
    "map-cache": map_cache,
    "coarse": coarse,
    "disk": disk,
    "volume": volume,
    "card": card,
    "raid": raid,
}
