"""Probes: questions to a drive that nobody can open, and what its answers in time tell.

A probe is a file here and a line in the list below. It works on a :class:`flashwright.target.Target` alone.
"""

from __future__ import annotations

from flashwright.probes.base import Context, Cost, Finding, Mark, Plot, Probe, Series
from flashwright.probes.best_request import BestRequest
from flashwright.probes.clustered_page import ClusteredPage

__all__ = ["PROBES", "Context", "Cost", "Finding", "Mark", "Plot", "Probe", "Series"]

PROBES: tuple[Probe, ...] = (
    ClusteredPage(),
    BestRequest(),
)
"""In the order in which they are asked: later ones go by what earlier ones found."""
