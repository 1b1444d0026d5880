"""What a probe of a drive of each held-out make should find; see ``truths.py``."""

from __future__ import annotations

from collections.abc import Mapping

from truths import NONE, Facts, Stated, Truth, between, cannot, exactly, page_mapped, without_memory

__all__ = ["TRUTHS"]


def slc_dynamic(facts: Facts, cleaning: Mapping[str, float]) -> dict[str, Truth]:
    truths = page_mapped(facts, cleaning)
    truths["spare-space"] = cannot(
        "the SLC cache takes three slots for a unit while there is room, so cleaning begins early",
        ranges=((0.0, facts["spare"] + 0.02),),
    )
    truths["clustered-block"] = cannot(
        "victims hold what the whole drive holds on average: what recurs is what a victim sets free",
        facts["block"],
    )
    return truths


def hashed(facts: Facts, cleaning: Mapping[str, float]) -> dict[str, Truth]:
    truths = page_mapped(facts, cleaning)
    if facts["sector"] == facts["unit"]:
        truths["clustered-page"] = cannot("no write is smaller than a page", facts["unit"])
    truths["stripe"] = cannot("neighbours lie on dies by a hash, so there is no stripe")
    dies = "each die cleans its own log: blocks of one die, or as many as there are dies"
    truths["clustered-block"] = cannot(dies, facts["block"], facts["block"] * facts["dies"])
    for name in ("spare-space", "cleaning-interval", "cleaning-stall"):
        truth = truths[name]
        truths[name] = cannot(f"{truth.why}; {dies}", *truth.values, ranges=truth.ranges)
    if facts["read_cache"]:
        truths["read-buffer"] = exactly("pages that were read are kept", facts["read_cache"])
        truths["read-buffer-least"] = exactly(
            "a page is the least that is kept; any sector of it", facts["unit"], facts["sector"], NONE
        )  # fmt: skip
    return truths


def throttle(facts: Facts, cleaning: Mapping[str, float]) -> dict[str, Truth]:
    truths = page_mapped(facts, cleaning)
    smooth = "cleaning is paid in small parts; the pauses recur in time and clean nothing"
    truths["clustered-block"] = cannot(smooth, facts["block"])
    truths["spare-space"] = cannot(smooth, ranges=truths["spare-space"].ranges)
    truths["cleaning-interval"] = truths["cleaning-stall"] = cannot(smooth)
    truths["flush-time"] = between(
        "a command without work, cool or throttled",
        facts["flush_ns"] * 0.7,
        facts["flush_ns"] * 1.3 * facts["slow"],
    )
    return truths


def compress(facts: Facts, cleaning: Mapping[str, float]) -> dict[str, Truth]:
    # All probes but one write noise, which does not shrink: records are whole units then.
    return page_mapped(facts, cleaning)


def set_associative(facts: Facts, cleaning: Mapping[str, float]) -> dict[str, Truth]:
    alone = "no RAM: a write ends when flash has it"
    merges = "sets are merged, each when its own logs are full: stalls follow no common clock"
    dies = facts["dies"]
    return {
        "kind-of-device": exactly("it is flash", "flash"),
        "clustered-page": exactly(
            "a part of a page reads the rest of it; pages of all dies are written side by side",
            facts["page"],
        )
        if facts["sector"] < facts["page"]
        else cannot("no write is smaller than a page", facts["page"]),
        "mapping": exactly("blocks with shared logs", "log-block"),
        "clustered-block": exactly("a block of all dies is erased together", facts["block"]),
        "parallel-units": exactly("its dies", dies),
        "stripe": exactly("a page for each die", dies * facts["page"])
        if dies > 1
        else exactly("there is one die", NONE, facts["page"]),
        "read-buffer": exactly("it keeps nothing that was read", NONE),
        "read-buffer-least": exactly("it keeps nothing that was read", NONE),
        "prefetch": exactly("it does not read ahead", "no"),
        "prefetch-size": exactly("it does not read ahead", NONE),
        "write-buffer": exactly(alone, NONE),
        "buffer-kind": exactly(alone, NONE),
        "write-buffer-drain": exactly(alone, NONE),
        "flush-time": between(
            "a command without work", facts["flush_ns"] * 0.7, facts["flush_ns"] * 1.3
        ),
        "flush-honoured": exactly(alone, NONE, "yes"),
        "cleaning-interval": between(
            "host bytes by the drive's own count of merges",
            cleaning["interval_bytes"] / 1.5,
            cleaning["interval_bytes"] * 2,
        )
        if cleaning["stalls"] >= 30
        else cannot(merges),
        "cleaning-stall": between(
            "the mean merge by the drive's own count",
            cleaning["stall_ns"] / 3,
            cleaning["stall_ns"] * 1.5,
        )
        if cleaning["stalls"] >= 30
        else cannot(merges),
        "spare-space": cannot("logs are used up from the first overwrite on"),
        "best-request": Truth(
            "what is best depends on the grid of sizes and depths that was tried",
            has_reference=False,
        ),
    }


def phase_change(facts: Facts, cleaning: Mapping[str, float]) -> dict[str, Truth]:
    truths = without_memory("phase-change memory: written in place, nothing to clean", facts)
    truths["parallel-units"] = cannot(
        "no flash, but its channels and ways do work side by side", facts["channels"], facts["ways"]
    )
    truths["stripe"] = cannot(
        "no flash, but neighbouring pieces of 4 KiB lie on all ways in turn", facts["ways"] * 4096
    )
    return truths


def ram_disk(facts: Facts, cleaning: Mapping[str, float]) -> dict[str, Truth]:
    truths = without_memory("memory: a copy and the way to it", facts)
    truths["parallel-units"] = cannot("no flash, but some threads that copy", facts["threads"])
    return truths


TRUTHS: dict[str, Stated] = {
    "slc-dynamic": slc_dynamic,
    "hashed": hashed,
    "throttle": throttle,
    "compress": compress,
    "set-associative": set_associative,
    "phase-change": phase_change,
    "ram-disk": ram_disk,
}
