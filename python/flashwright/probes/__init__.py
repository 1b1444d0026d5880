"""Probes: questions to a drive that nobody can open, and what its answers in time tell.

A probe is a file here and a line in the list below. It works on a :class:`flashwright.target.Target` alone.
"""

from __future__ import annotations

from flashwright.probes.base import Context, Cost, Finding, Mark, Plot, Probe, Series
from flashwright.probes.buffer_kind import BufferKind
from flashwright.probes.flush import Flush
from flashwright.probes.prefetch import Prefetch
from flashwright.probes.read_buffer import ReadBuffer
from flashwright.probes.write_buffer import WriteBuffer

__all__ = ["PROBES", "Context", "Cost", "Finding", "Mark", "Plot", "Probe", "Series"]

PROBES: tuple[Probe, ...] = (
    ReadBuffer(),
    Prefetch(),
    WriteBuffer(),
    BufferKind(),
    Flush(),
)
"""In the order in which they are asked: later ones go by what earlier ones found."""
