"""What MQSim reads, an SSD and its workloads in XML, as a drive and commands of ours.

Each element is a row of a table (:mod:`.device`, :mod:`.flows`) that says what it becomes, whether that is the same,
nearly the same or nothing, and how; the rule that does so stands in the row. The table in the documentation is made of
the same rows.
"""

from __future__ import annotations

from flashwright.drive.mqsim.convert import Conversion, Run, convert
from flashwright.drive.mqsim.device import DEVICE_SETS
from flashwright.drive.mqsim.element import Element, Fate, Note
from flashwright.drive.mqsim.flows import FLOW_SETS

__all__ = ["SETS", "Conversion", "Element", "Fate", "Note", "Run", "convert"]

SETS: dict[str, tuple[Element, ...]] = {**DEVICE_SETS, **FLOW_SETS}
"""Every element that is known, by the set that it stands in."""
