"""Experiments on how a drive behaves as it fills, ages and is loaded, after chapters 4 and 5 of Hu's dissertation.

An experiment is a file here and a line in the list below. It works on a :class:`flashwright.Target` alone.
"""

from __future__ import annotations

from flashwright.characterization.base import Bench, Estimate, Experiment, Result, Settings
from flashwright.characterization.depth_and_size import DepthAndSize
from flashwright.characterization.fills import Fills
from flashwright.characterization.mixing import Mixing
from flashwright.characterization.reserves import Reserves
from flashwright.characterization.steady_state import SteadyState
from flashwright.characterization.unpredictability import Unpredictability

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
