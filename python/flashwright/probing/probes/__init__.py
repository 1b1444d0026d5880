"""Probes: questions to a closed drive, and what its response times show.

A probe is a line in the list below and a file here, or a package whose docstring says how it decides. What several of
them use lies in ``shared``. A probe works on a :class:`flashwright.Target` alone.
"""

from __future__ import annotations

from flashwright.drive.findings import Finding, Mark, Plot, Series
from flashwright.probing.probes.best_request import BestRequest
from flashwright.probing.probes.buffer_kind import BufferKind
from flashwright.probing.probes.cleaning import Cleaning
from flashwright.probing.probes.clustered_block import ClusteredBlock
from flashwright.probing.probes.clustered_page import ClusteredPage
from flashwright.probing.probes.data_reduction import DataReduction
from flashwright.probing.probes.flush import Flush
from flashwright.probing.probes.map_reach import MapReach
from flashwright.probing.probes.mapping import Mapping
from flashwright.probing.probes.parallelism import Parallelism
from flashwright.probing.probes.pauses import Pauses
from flashwright.probing.probes.plausible import Plausible
from flashwright.probing.probes.prefetch import Prefetch
from flashwright.probing.probes.read_buffer import ReadBuffer
from flashwright.probing.probes.slc_cache import SlcCache
from flashwright.probing.probes.suspension import Suspension
from flashwright.probing.probes.throttling import Throttling
from flashwright.probing.probes.volumes import Volumes
from flashwright.probing.probes.write_buffer import WriteBuffer
from flashwright.target.question import Context, Cost, Probe

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
