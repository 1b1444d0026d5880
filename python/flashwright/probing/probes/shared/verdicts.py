"""Findings with a verdict, in one line each; :func:`flashwright.drive.findings.unknown` makes those without."""

from __future__ import annotations

from collections.abc import Mapping

from flashwright.drive.findings import Finding, Plot

__all__ = ["absent", "found"]


def found(
    parameter: str,
    value: float | str,
    unit: str,
    bounds: tuple[float, float] | None,
    confidence: float,
    why: str,
    plots: tuple[Plot, ...] = (),
    figures: Mapping[str, float] | None = None,
) -> Finding:
    """A parameter that was found; the bounds of a value that has some.

    Examples
    --------
    >>> found("mapping", "page", "", None, 0.9, "it keeps its speed").verdict
    'found'
    """
    low, high = bounds or (None, None)
    return Finding(
        parameter, "found", value, unit, low, high, confidence, why, plots, figures or {}
    )


def absent(
    parameter: str,
    unit: str,
    confidence: float,
    why: str,
    plots: tuple[Plot, ...] = (),
    figures: Mapping[str, float] | None = None,
) -> Finding:
    """A parameter of something that the drive does not have."""
    return Finding(
        parameter, "absent", None, unit, None, None, confidence, why, plots, figures or {}
    )
