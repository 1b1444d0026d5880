"""The twin of a probed drive: calibrated and fitted within a time limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from flashwright.drive.contradictions import reconcile
from flashwright.drive.findings import Finding
from flashwright.errors import TargetError
from flashwright.simulation.ssd import Ssd
from flashwright.target.question import Mode
from flashwright.target.target import Deadline, Drive, Target, opened
from flashwright.twin.calibration import Calibration, calibrate
from flashwright.twin.fit import fitted
from flashwright.twin.model import Fit

__all__ = ["FIT_LIMIT_S", "Twin", "twin_of"]

FIT_LIMIT_S = 300.0
"""Default budget of a fit, seconds of processor time."""


class Probed(Protocol):
    """What probes found out about a drive."""

    @property
    def findings(self) -> Mapping[str, Finding]:
        """By parameter."""
        ...

    @property
    def doubts(self) -> Sequence[str]:
        """Why it may be no drive of flash."""
        ...

    @property
    def limits(self) -> Sequence[str]:
        """What could not be found."""
        ...

    @property
    def mode(self) -> Mode:
        """How patient it was."""
        ...

    @property
    def seed(self) -> int:
        """Of all that was random."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Twin:
    """A model of a probed drive.

    Attributes
    ----------
    fit : Fit
        The model, and how near it comes to what was measured.
    calibration : Calibration
        What was measured for it.
    """

    fit: Fit
    calibration: Calibration

    @property
    def ssd(self) -> Ssd:
        """The model, which plays as any drive of the simulator does."""
        return self.fit.ssd

    def __repr__(self) -> str:
        return f"Twin({self.ssd!r}, error {self.fit.error:.3f}, {self.fit.evaluations} tries)"


def twin_of(
    target: Drive,
    result: Probed,
    progress: Callable[[str, int, int], None] | None = None,
    *,
    time_limit: float | None = None,
    fit_limit: float | None = FIT_LIMIT_S,
) -> Twin:
    """Measure what a model is fitted to, and fit it.

    Parameters
    ----------
    target : Target, Ssd or str
        The drive that was probed, as :func:`probe` takes it; everything on it is lost.
    result : ProbeResult
        What the probes found; the fit tries what they could not find.
    progress : callable, optional
        Told the step's name, and how much is done of how much in all.
    time_limit : float, optional
        Seconds after which no more is measured or tried. A fit that is cut short gives the best model so far and says
        so in ``fit.stopped``.
    fit_limit : float or None, optional
        Processor time of the fit by itself, 300 s by default, so that a busy machine gives the same twin; None leaves
        it its budget of trials alone.

    Returns
    -------
    Twin

    Raises
    ------
    TargetError
        If the target is too small, may not be written, is a part of a drive, may be no drive of flash, or nothing that
        can be modelled behaves like it.
    OutOfTimeError
        If the time limit was reached before there was a model.
    """
    with opened(target) as drive:
        return _twin_of(drive, result, progress, Deadline(time_limit), fit_limit)


def _twin_of(
    target: Target,
    result: Probed,
    progress: Callable[[str, int, int], None] | None,
    deadline: Deadline,
    fit_limit: float | None,
) -> Twin:
    if result.doubts and all(finding.verdict == "unknown" for finding in result.findings.values()):
        raise TargetError(
            f"{target.name}: found no drive to model: {result.doubts[0]}",
            "despite_doubts=True takes it for one; a profile can be saved without a model (twin=False)",
            parameters=["despite_doubts", "twin"],
        )
    if target.read_only or result.limits:
        raise TargetError(
            f"{target.name}: found reads alone or a part of a drive, expected all of a drive to model",
            "a profile can be saved without a model (twin=False)",
            parameters=["twin"],
        )
    findings = reconcile(result.findings, target.capacity_bytes)

    def step_progress(step: str) -> Callable[[float], None]:
        def tell(share: float) -> None:
            if progress is not None:
                progress(step, int(share * 1e6), 10**6)

        return tell

    outer, target.watch = target.watch, deadline
    try:
        target.purge()
        calibration = calibrate(
            target,
            findings,
            mode=result.mode,
            seed=result.seed,
            progress=step_progress("calibration"),
        )
    finally:
        target.watch = outer
    fit = fitted(
        target,
        findings,
        calibration,
        seed=result.seed,
        progress=step_progress("twin"),
        time_limit=deadline.left_s,
        processor_limit=fit_limit,
    )
    return Twin(fit, calibration)
