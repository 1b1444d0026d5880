"""Policies written in Python that run inside the native simulator: one class, handed to the run.

A victim policy says which block is cleaned, a placement policy which stream a page goes to, a buffer policy what
leaves the drive's RAM, a replacement policy what leaves a cached map, a prefetch policy what enters it with an entry
that was missed, a wear policy which data move, a schedule when cleaning runs, a translation layer all that the flash
does. Each takes the place of the one that the drive's configuration names; all else stays native. The drive's tables
come as NumPy arrays, so a choice among hundreds of blocks is a few array operations.

Examples
--------
>>> from flashwright import Ssd
>>> from flashwright.drive.policies import VictimPolicy
>>> class Greedy(VictimPolicy):
...     def pick(self, unit):
...         return unit.blocks[unit.valid.argmin()]
>>> ssd = Ssd.named("default").with_(blocks_per_plane=64).precondition("random")
>>> own = ssd.play("uniform", requests=20_000, policies=[Greedy])
>>> native = ssd.with_(victim="greedy").play("uniform", requests=20_000)
>>> own.json["digest"] == native.json["digest"]
True
>>> own.json["config"]["gc"]["victim"]
'python:Greedy'
"""

from __future__ import annotations

from flashwright._core import Buffer, Flash, Kinds, MapEntries, PlaneWear, Unit

# The core asks for `_message_of` here.
from flashwright.drive.policies.handing import _message_of as _message_of
from flashwright.drive.policies.handing import (
    details_of,
    expect_policies,
    from_portable,
    handed,
    identity_of,
    load,
    name_of,
    names_a_policy,
    to_portable,
)
from flashwright.drive.policies.kinds import (
    BufferPolicy,
    DriveInfo,
    Given,
    PlacementPolicy,
    Policy,
    RamInfo,
    ScoredVictimPolicy,
    Streams,
    UnitInfo,
    VictimPolicy,
)
from flashwright.drive.policies.layer import Cause, FlashInfo, TranslationLayer
from flashwright.drive.policies.parts import (
    CleaningSchedule,
    MapCacheInfo,
    MapCachePolicy,
    MapPrefetchPolicy,
    Occasion,
    PlaneInfo,
    ScheduleInfo,
    ScoredMapCachePolicy,
    WearPolicy,
)

__all__ = [
    "Buffer",
    "BufferPolicy",
    "Cause",
    "CleaningSchedule",
    "DriveInfo",
    "Flash",
    "FlashInfo",
    "Given",
    "Kinds",
    "MapCacheInfo",
    "MapCachePolicy",
    "MapEntries",
    "MapPrefetchPolicy",
    "Occasion",
    "PlacementPolicy",
    "PlaneInfo",
    "PlaneWear",
    "Policy",
    "RamInfo",
    "ScheduleInfo",
    "ScoredMapCachePolicy",
    "ScoredVictimPolicy",
    "Streams",
    "TranslationLayer",
    "Unit",
    "UnitInfo",
    "VictimPolicy",
    "WearPolicy",
    "details_of",
    "expect_policies",
    "from_portable",
    "handed",
    "identity_of",
    "load",
    "name_of",
    "names_a_policy",
    "to_portable",
]
