"""Experiments on how a drive behaves as it fills, ages and is loaded, after chapters 4 and 5 of Hu's dissertation.

An experiment is a file here and a line in the list below. It works on a :class:`flashwright.Target` alone.
"""

from __future__ import annotations

from flashwright.blackbox.characterize.base import Bench, Estimate, Experiment, Result, Settings
from flashwright.blackbox.characterize.depth_and_size import DepthAndSize
from flashwright.blackbox.characterize.fills import Fills
from flashwright.blackbox.characterize.mixing import Mixing
from flashwright.blackbox.characterize.reserves import Reserves
from flashwright.blackbox.characterize.steady_state import SteadyState
from flashwright.blackbox.characterize.unpredictability import Unpredictability

__all__ = ["EXPERIMENTS", "Bench", "Estimate", "Experiment", "Result", "Settings"]

EXPERIMENTS: tuple[Experiment, ...] = (
    Fills(),
    Unpredictability(),
    DepthAndSize(),
    Mixing(),
    SteadyState(),
    Reserves(),
)
"""In the order in which they are carried out."""
