"""Everything that can be chosen by name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from flashwright.support.core import _core
from flashwright.traces.workloads import bundled_traces

__all__ = ["Item", "catalogue", "shared_keys"]


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
    Item(
        "workload",
        "filled once, in order, then the workload itself, not measured, until write amplification has settled under "
        "it; gives up after capacities=64",
        ("capacities",),
    ),
    Item(
        "workload:scaled",
        "workload, but a drive with a few dozen blocks a plane settles first, and this one begins as a larger copy "
        "of it in place of the fill; page mapping under uniform, zipf, hot-cold and pareto over the whole drive, else "
        "as workload",
    ),
    Item("auto", "workload where that can be played in advance, else sequential"),
    Item("sequential", "the whole logical space once, in order: full, but not settled"),
    Item(
        "random",
        "the whole logical space once in random order: one bare fill, not a settled state; with capacities=N, pages "
        "drawn uniformly after it, up to N capacities in all",
        ("capacities",),
    ),
    Item(
        "steady",
        "two sequential fills, then random writes until the steady-state rule of the SNIA SSS PTS holds",
    ),
    Item(
        "steady:laid-out",
        "the steady state of uniform random writes, laid out at once as theory describes it, then half a capacity of "
        "random writes; page mapping with greedy, d-choices, random or FIFO cleaning",
    ),
)
_TIMING = (
    Item("none", "counts only: no time passes"),
    Item("serial", "one flash operation at a time, as in FlashSim; requests wait in the driver"),
    Item("parallel", "channels and dies work in parallel"),
)


def shared_keys(rows: list[dict[str, Any]]) -> set[str]:
    """Names of the keys that all of these workloads take; not those that mean another thing in each."""
    names = set.intersection(*({key["name"] for key in row["keys"]} for row in rows))
    return names - {"files", "size"} if rows[0]["interactive"] else names


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
    # Programs above a file system wait for the drive and take none of the keys of all others.
    programs = [row for row in generators if row["interactive"]]
    others = [row for row in generators if not row["interactive"]]
    shared = {
        row["name"]: shared_keys(programs if row["interactive"] else others) for row in generators
    }
    found["--workload"] = [
        Item(
            row["name"],
            row["about"],
            tuple(key["name"] for key in row["keys"] if key["name"] not in shared[row["name"]]),
        )
        for row in generators
    ]
    for name, about, rows in (
        ("(all of them)", "keys of every workload that is not a program on files", others),
        ("(on files)", "keys of every program on a file system", programs),
    ):
        keys = tuple(key["name"] for key in rows[0]["keys"] if key["name"] in shared_keys(rows))
        found["--workload"].append(Item(name, about, keys))
    found["--trace"] = [
        Item(f"bundled:{name}", "comes with the package") for name in bundled_traces()
    ]
    found["--format"] = [
        Item(name, about + ("; can be written" if writable else ""))
        for name, about, writable, _ in _core.trace_formats()
    ]
    return found
