"""What a drive says of its own wear: SMART data as smartctl and nvme-cli print them."""

from __future__ import annotations

from flashwright.endurance.smart.facts import SmartError
from flashwright.endurance.smart.figures import figures
from flashwright.endurance.smart.files import parse, read, read_drives
from flashwright.endurance.smart.reading import HOURS_A_YEAR, Interval, Smart, Source

__all__ = [
    "HOURS_A_YEAR",
    "Interval",
    "Smart",
    "SmartError",
    "Source",
    "figures",
    "parse",
    "read",
    "read_drives",
]
