"""Everything that can be chosen by name."""

from __future__ import annotations

import json
from dataclasses import dataclass

from flashwright import _core
from flashwright.workloads import bundled_traces

__all__ = ["Item", "catalogue"]


@dataclass(frozen=True)
class Item:
    """Something that can be chosen.

    Attributes
    ----------
    name : str
        What to write.
    about : str
        What it does, in a line.
    keys : tuple of str
        Settings of its own.
    """

    name: str
    about: str
    keys: tuple[str, ...] = ()


_PRECONDITIONS = (
    Item("empty", "nothing: the drive is erased"),
    Item("sequential", "the whole logical space once, in order"),
    Item(
        "random",
        "the whole logical space once in random order, then pages drawn uniformly",
        ("capacities",),
    ),
    Item(
        "steady",
        "two sequential fills, then random writes until the steady-state rule of the SNIA SSS PTS holds",
    ),
)
_TIMING = (
    Item("none", "counts only: no time passes"),
    Item("serial", "one flash operation at a time, as in FlashSim; requests wait in the driver"),
    Item("parallel", "channels and dies work side by side"),
)


def catalogue() -> dict[str, list[Item]]:
    """Everything pluggable, by the key or option that chooses it.

    Examples
    --------
    >>> [item.name for item in catalogue()["gc.victim"]][:2]
    ['greedy', 'fifo']
    """
    found: dict[str, list[Item]] = {}
    for row in json.loads(_core.policies()):
        found.setdefault(row["key"], []).append(Item(row["name"], row["about"]))
    found["timing.model"] = list(_TIMING)
    found["--precondition"] = list(_PRECONDITIONS)
    generators = json.loads(_core.workloads())
    common = {key["name"] for key in generators[0]["keys"]}
    for row in generators[1:]:
        common &= {key["name"] for key in row["keys"]}
    own = [
        tuple(key["name"] for key in row["keys"] if key["name"] not in common) for row in generators
    ]
    found["--workload"] = [
        Item(row["name"], row["about"], keys) for row, keys in zip(generators, own, strict=True)
    ]
    shared = [key["name"] for key in generators[0]["keys"] if key["name"] in common]
    found["--workload"].append(
        Item("(all of them)", "keys that every workload takes", tuple(shared))
    )
    found["--trace"] = [
        Item(f"bundled:{name}", "comes with the package") for name in bundled_traces()
    ]
    found["--format"] = [
        Item(name, about + ("; can be written" if writable else ""))
        for name, about, writable, _ in _core.trace_formats()
    ]
    return found
