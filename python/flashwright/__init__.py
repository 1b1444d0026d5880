"""Flashwright: solid-state drives from both sides.

What one does is a function here: :func:`compare`, :func:`replay`, :func:`probe`, :func:`twin_of`,
:func:`characterize`, :func:`advise`, :func:`reproduce`, :func:`sweep`, :func:`serve`,
:func:`serve_before`; a drive of the simulator is an
:class:`Ssd` and plays. What one does it with is a module: ``workloads``, ``policies``, ``tracefiles``, ``probes``,
``lifetime``, ``smart``, ``errors``. All else is imported from the room that it lives in, as in ``from
flashwright.advice.space import knee``: ``drive``, ``traces``, ``simulation``, ``sweeps``, ``serving``, ``endurance``,
``target``, ``characterization``, ``twin``, ``advice``, ``probing``.

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

# Before all else, which takes a while to import.
try:
    from flashwright.support import interrupts as _interrupts

    if _interrupts.is_command_line():
        _interrupts.heed_while_importing()
except KeyboardInterrupt:
    # Ctrl-C before it was heeded.
    from flashwright.support import interrupts as _interrupts

    if _interrupts.is_command_line():
        _interrupts.end_at_once()
    raise

import importlib as _importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flashwright import errors
    from flashwright._core import __version__
    from flashwright.advice.space import Advice, advise
    from flashwright.characterization.session import (
        Characterization,
        CharacterizationInterrupted,
        characterize,
    )
    from flashwright.drive import policies
    from flashwright.drive.description import devices
    from flashwright.endurance import lifetime, smart
    from flashwright.endurance.lifetime import Endurance
    from flashwright.errors import FlashwrightError, MissingPackageError
    from flashwright.probing import probes
    from flashwright.probing.session import ProbeInterrupted, ProbeResult, probe
    from flashwright.serving.crash import CrashTest
    from flashwright.serving.proxy import ServedDevice, serve_before
    from flashwright.serving.server import ServedDrive, serve
    from flashwright.simulation.compare import CompareInterrupted, compare
    from flashwright.simulation.parts import Latencies, Snapshots
    from flashwright.simulation.replay import ReplayInterrupted, ReplayResult, replay
    from flashwright.simulation.results import RunResult, Runs, table
    from flashwright.simulation.run import Run, RunInterrupted, RunSettings
    from flashwright.simulation.ssd import Ssd
    from flashwright.support.progress import Progress
    from flashwright.support.progressbar import ProgressBar
    from flashwright.sweeps.sweep import Sweep, SweepResult, sweep
    from flashwright.target.target import Target
    from flashwright.traces import tracefiles, workloads
    from flashwright.traces.models import FittedModel, fit_trace
    from flashwright.twin.profile import Profile
    from flashwright.twin.twin import Twin, twin_of
    from flashwright_papers import Reproduction, reproduce

# The module that each name lives in, or is. A room is imported when one of its names is first asked for.
_HOMES = {
    "Advice": "flashwright.advice.space",
    "Characterization": "flashwright.characterization.session",
    "CharacterizationInterrupted": "flashwright.characterization.session",
    "CompareInterrupted": "flashwright.simulation.compare",
    "CrashTest": "flashwright.serving.crash",
    "Endurance": "flashwright.endurance.lifetime",
    "FittedModel": "flashwright.traces.models",
    "FlashwrightError": "flashwright.errors",
    "Latencies": "flashwright.simulation.parts",
    "MissingPackageError": "flashwright.errors",
    "ProbeInterrupted": "flashwright.probing.session",
    "ProbeResult": "flashwright.probing.session",
    "Profile": "flashwright.twin.profile",
    "Progress": "flashwright.support.progress",
    "ProgressBar": "flashwright.support.progressbar",
    "ReplayInterrupted": "flashwright.simulation.replay",
    "ReplayResult": "flashwright.simulation.replay",
    "Reproduction": "flashwright_papers",
    "Run": "flashwright.simulation.run",
    "RunInterrupted": "flashwright.simulation.run",
    "RunResult": "flashwright.simulation.results",
    "RunSettings": "flashwright.simulation.run",
    "Runs": "flashwright.simulation.results",
    "Snapshots": "flashwright.simulation.parts",
    "Ssd": "flashwright.simulation.ssd",
    "ServedDevice": "flashwright.serving.proxy",
    "ServedDrive": "flashwright.serving.server",
    "Sweep": "flashwright.sweeps.sweep",
    "SweepResult": "flashwright.sweeps.sweep",
    "Target": "flashwright.target.target",
    "Twin": "flashwright.twin.twin",
    "__version__": "flashwright._core",
    "advise": "flashwright.advice.space",
    "characterize": "flashwright.characterization.session",
    "compare": "flashwright.simulation.compare",
    "devices": "flashwright.drive.description",
    "fit_trace": "flashwright.traces.models",
    "errors": "flashwright.errors",
    "lifetime": "flashwright.endurance.lifetime",
    "policies": "flashwright.drive.policies",
    "probe": "flashwright.probing.session",
    "probes": "flashwright.probing.probes",
    "replay": "flashwright.simulation.replay",
    "reproduce": "flashwright_papers",
    "serve": "flashwright.serving.server",
    "serve_before": "flashwright.serving.proxy",
    "smart": "flashwright.endurance.smart",
    "sweep": "flashwright.sweeps.sweep",
    "table": "flashwright.simulation.results",
    "tracefiles": "flashwright.traces.tracefiles",
    "twin_of": "flashwright.twin.twin",
    "workloads": "flashwright.traces.workloads",
}

__all__ = [
    "Advice",
    "Characterization",
    "CharacterizationInterrupted",
    "CompareInterrupted",
    "CrashTest",
    "Endurance",
    "FittedModel",
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
    "ServedDevice",
    "ServedDrive",
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
    "fit_trace",
    "lifetime",
    "policies",
    "probe",
    "probes",
    "replay",
    "reproduce",
    "serve",
    "serve_before",
    "smart",
    "sweep",
    "table",
    "tracefiles",
    "twin_of",
    "workloads",
]

# Exceptions and what is no call.
_UNGUARDED = ("__version__", "errors")
_MODULES = ("errors", "lifetime", "policies", "probes", "smart", "tracefiles", "workloads")

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """A public name, from where it lives."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from flashwright.support.publiccalls import papers_expected

        with papers_expected(name):
            home = _importlib.import_module(_HOMES[name])
        found = home if name in _MODULES else getattr(home, name)
        if name not in _UNGUARDED:
            from flashwright.support.publiccalls import guarded

            found = guarded(found)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    """The public names, whether or not they were asked for yet."""
    return sorted({*globals(), *__all__})
