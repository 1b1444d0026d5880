"""From a drive to its twin: a model that the simulator runs and that behaves as the drive was measured to.

Three steps: :func:`calibrate` plays a fixed set of patterns on a drive, :func:`fitted` searches a model that gives the
same on them, :func:`check` compares both on a held-out pattern.
"""

from flashwright.twin.calibration import Calibration, calibrate
from flashwright.twin.check import Check, Compared, check
from flashwright.twin.fit import fitted
from flashwright.twin.model import Fit, Model, Residual
from flashwright.twin.patterns import Pattern, patterns

__all__ = [
    "Calibration",
    "Check",
    "Compared",
    "Fit",
    "Model",
    "Pattern",
    "Residual",
    "calibrate",
    "check",
    "fitted",
    "patterns",
]
