"""Probes: questions to a closed drive, and what its response times show.

A probe is a file here and a line in the list below. It works on a :class:`flashwright.Target` alone.
"""

from __future__ import annotations

from flashwright.blackbox.base import Context, Cost, Probe
from flashwright.blackbox.probes.best_request import BestRequest
from flashwright.blackbox.probes.buffer_kind import BufferKind
from flashwright.blackbox.probes.cleaning import Cleaning
from flashwright.blackbox.probes.clustered_block import ClusteredBlock
from flashwright.blackbox.probes.clustered_page import ClusteredPage
from flashwright.blackbox.probes.data_reduction import DataReduction
from flashwright.blackbox.probes.flush import Flush
from flashwright.blackbox.probes.map_reach import MapReach
from flashwright.blackbox.probes.mapping import Mapping
from flashwright.blackbox.probes.parallelism import Parallelism
from flashwright.blackbox.probes.pauses import Pauses
from flashwright.blackbox.probes.plausible import Plausible
from flashwright.blackbox.probes.prefetch import Prefetch
from flashwright.blackbox.probes.read_buffer import ReadBuffer
from flashwright.blackbox.probes.slc_cache import SlcCache
from flashwright.blackbox.probes.suspension import Suspension
from flashwright.blackbox.probes.throttling import Throttling
from flashwright.blackbox.probes.volumes import Volumes
from flashwright.blackbox.probes.write_buffer import WriteBuffer
from flashwright.drive.findings import Finding, Mark, Plot, Series

__all__ = ["PROBES", "Context", "Cost", "Finding", "Mark", "Plot", "Probe", "Series"]

PROBES: tuple[Probe, ...] = (
    Plausible(),
    ClusteredPage(),
    SlcCache(),
    Mapping(),
    ClusteredBlock(),
    Parallelism(),
    ReadBuffer(),
    Prefetch(),
    WriteBuffer(),
    BufferKind(),
    Flush(),
    Cleaning(),
    MapReach(),
    Pauses(),
    Throttling(),
    BestRequest(),
    DataReduction(),
    Suspension(),
    Volumes(),
)
"""In the order in which they are asked: later ones go by what earlier ones found."""
