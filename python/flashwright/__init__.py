"""Flashwright: an SSD simulator.

Examples
--------
>>> from flashwright import Ssd, workloads
>>> ssd = Ssd.named("default").with_(victim="fifo").precondition("sequential")
>>> run = ssd.play(workloads.zipf(write=0.7), requests=50_000, depth=8, verify=True)
>>> run.violations
()
"""

from flashwright import advise, errors, lifetime, policies, smart, tracefiles, workloads
from flashwright._core import __version__
from flashwright.compare import compare
from flashwright.device import Ssd, devices
from flashwright.errors import FlashwrightError
from flashwright.replay import ReplayInterrupted, ReplayResult, replay
from flashwright.results import Latencies, RunResult, Snapshots
from flashwright.run import Progress, Run, RunInterrupted, RunSettings

__all__ = [
    "FlashwrightError",
    "Latencies",
    "Progress",
    "ReplayInterrupted",
    "ReplayResult",
    "Run",
    "RunInterrupted",
    "RunResult",
    "RunSettings",
    "Snapshots",
    "Ssd",
    "__version__",
    "advise",
    "compare",
    "devices",
    "errors",
    "lifetime",
    "policies",
    "replay",
    "smart",
    "tracefiles",
    "workloads",
]
