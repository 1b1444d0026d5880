"""What was found out about a drive: a verdict on each parameter, with its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

__all__ = ["Finding", "Mark", "Plot", "Series", "Verdict", "unknown"]

Verdict = Literal["found", "absent", "unknown"]


@dataclass(frozen=True, eq=False)
class Series:
    """Points of a plot that belong together.

    Attributes
    ----------
    name : str
        What they are.
    x, y : array of float64
        In the units of the plot's axes. A NaN in `y` interrupts a line.
    style : {"points", "line", "step"}
        Raw measurements are points; what was made of them is a line, or a step where it is a fitted level.
    """

    name: str
    x: Array
    y: Array
    style: Literal["points", "line", "step"] = "points"


@dataclass(frozen=True)
class Mark:
    """A place on a plot's x axis that a verdict rests on.

    Attributes
    ----------
    x : float
        In the unit of the axis.
    label : str
        What is there.
    """

    x: float
    label: str


@dataclass(frozen=True, eq=False)
class Plot:
    """Evidence as a picture: raw points, what was fitted to them, and where the verdict lies.

    Attributes
    ----------
    title, x_label, y_label : str
        The labels name the units in brackets: ``"request size [B]"``, ``"latency [ns]"``.
    series : tuple of Series
        Drawn in this order.
    marks : tuple of Mark
        Verdicts and borders.
    x_log, y_log : bool
        Logarithmic axes.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()
    x_log: bool = False
    y_log: bool = False


@dataclass(frozen=True, eq=False)
class Finding:
    """What a probe says about one parameter.

    Attributes
    ----------
    parameter : str
        Such as ``"clustered-page"``.
    verdict : {"found", "absent", "unknown"}
        Whether there is a value, or the drive has no such thing, or the probe cannot tell.
    value : int, float, str or None
        In `unit`; a word where the parameter is a policy; None unless found.
    unit : str
        ``"B"``, ``"ns"``, ``"B/s"``, ``"requests"`` or empty.
    low, high : float or None
        The 95 % confidence interval of a number.
    confidence : float
        0 to 1: the share of resamplings of the raw points (or of independent checks) that give this verdict and
        value; in the result of a session no more than the share of such verdicts that were right on drives of known
        truth.
    why : str
        A sentence or two: what was seen, and by which rule it was decided; of an unknown, what stands against a
        verdict.
    plots : tuple of Plot
        The evidence.
    figures : mapping
        Numbers that the verdict rests on, by name with the unit last.
    """

    parameter: str
    verdict: Verdict
    value: int | float | str | None = None
    unit: str = ""
    low: float | None = None
    high: float | None = None
    confidence: float = 0.0
    why: str = ""
    plots: tuple[Plot, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)


def unknown(
    parameter: str, why: str, unit: str = "", plots: tuple[Plot, ...] = (), **figures: float
) -> Finding:
    """A finding without a value, and why there is none."""
    return Finding(parameter, "unknown", None, unit, why=why, plots=plots, figures=figures)
