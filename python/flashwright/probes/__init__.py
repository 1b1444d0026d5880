"""Probes: questions to a drive that nobody can open, and what its answers in time tell.

A probe is a file here and a line in the list below. It works on a :class:`flashwright.target.Target` alone.
"""

from __future__ import annotations

from flashwright.probes.base import Context, Cost, Finding, Mark, Plot, Probe, Series
from flashwright.probes.cleaning import Cleaning
from flashwright.probes.clustered_block import ClusteredBlock
from flashwright.probes.mapping import Mapping

__all__ = ["PROBES", "Context", "Cost", "Finding", "Mark", "Plot", "Probe", "Series"]

PROBES: tuple[Probe, ...] = (
    Mapping(),
    ClusteredBlock(),
    Cleaning(),
)
"""In the order in which they are asked: later ones go by what earlier ones found."""
