"""Flashwright: solid-state drives from both sides.

What one does is a function here: :func:`compare`, :func:`replay`, :func:`probe`, :func:`twin_of`,
:func:`characterize`, :func:`advise`, :func:`reproduce`, :func:`sweep`; a drive of the simulator is an :class:`Ssd` and
plays. What one does it with is a module: ``workloads``, ``policies``, ``tracefiles``, ``probes``, ``lifetime``,
``smart``, ``errors``. A function that is named as its module stands before it; the rest of such a module is imported
from it, as in ``from flashwright.advise import knee``.

Results have ``to_arrow()`` and ``to_pandas()``, and show themselves as a small table in a notebook;
:func:`table` has all figures of runs, a row for each.

Examples
--------
>>> from flashwright import Ssd, workloads
>>> ssd = Ssd.named("default").with_(victim="fifo").precondition("sequential")
>>> run = ssd.play(workloads.zipf(write=0.7), requests=50_000, depth=8, verify=True)
>>> run.violations
()
"""

import sys as _sys

from flashwright import interrupts as _interrupts

# Before all else, which takes a while to import.
if _interrupts.is_command_line():
    _interrupts.heed_while_importing()

from flashwright import errors, lifetime, policies, probes, smart, tracefiles, workloads
from flashwright._core import __version__
from flashwright.advise import Advice, advise
from flashwright.characterize.session import (
    Characterization,
    CharacterizationInterrupted,
    characterize,
)
from flashwright.compare import CompareInterrupted, compare
from flashwright.device import Ssd, devices
from flashwright.errors import FlashwrightError, MissingPackageError
from flashwright.lifetime import Endurance
from flashwright.probe import ProbeInterrupted, ProbeResult, Twin, probe, twin_of
from flashwright.profile import Profile
from flashwright.progress import ProgressBar
from flashwright.replay import ReplayInterrupted, ReplayResult, replay
from flashwright.reproduce import Reproduction, reproduce
from flashwright.results import Latencies, RunResult, Runs, Snapshots, table
from flashwright.run import Progress, Run, RunInterrupted, RunSettings
from flashwright.sweep import Sweep, SweepResult, sweep
from flashwright.target import Target

__all__ = [
    "Advice",
    "Characterization",
    "CharacterizationInterrupted",
    "CompareInterrupted",
    "Endurance",
    "FlashwrightError",
    "Latencies",
    "MissingPackageError",
    "ProbeInterrupted",
    "ProbeResult",
    "Profile",
    "Progress",
    "ProgressBar",
    "ReplayInterrupted",
    "ReplayResult",
    "Reproduction",
    "Run",
    "RunInterrupted",
    "RunResult",
    "RunSettings",
    "Runs",
    "Snapshots",
    "Ssd",
    "Sweep",
    "SweepResult",
    "Target",
    "Twin",
    "__version__",
    "advise",
    "characterize",
    "compare",
    "devices",
    "errors",
    "lifetime",
    "policies",
    "probe",
    "probes",
    "replay",
    "reproduce",
    "smart",
    "sweep",
    "table",
    "tracefiles",
    "twin_of",
    "workloads",
]

# `flashwright.advise` and the like were the modules once: what is public in them is still found there.
for _function in (advise, characterize, probe, reproduce):
    _module = vars(_sys.modules[f"flashwright.{_function.__name__}"])
    vars(_function).update({name: part for name, part in _module.items() if name[0] != "_"})
