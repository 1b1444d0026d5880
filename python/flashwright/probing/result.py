"""What a session of probes found, as a result and as JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from flashwright._core import __version__
from flashwright.drive.contradictions import reconcile
from flashwright.drive.findings import Finding, Mark, Plot, Series
from flashwright.drive.profilefile import TargetFacts
from flashwright.errors import Interrupted
from flashwright.probing.declared import Declared, beside
from flashwright.probing.pages import amount, probe_page, write_probe
from flashwright.support.tabular import Tabular, html_table, of_rows
from flashwright.target.question import Mode
from flashwright.twin.check import Check
from flashwright.twin.profile import Profile
from flashwright.twin.twin import Twin

__all__ = ["Asked", "Ended", "ProbeInterrupted", "ProbeResult", "as_json", "of_json"]

Ended = Literal["complete", "time-limit", "interrupted", "failed"]


@dataclass(frozen=True)
class Asked:
    """What a probe did.

    Attributes
    ----------
    name : str
        Of the probe.
    bytes_read, bytes_written, flushes : int
        What it asked.
    seconds : float
        Real time that it took.
    target_seconds : float
        The same on the target's clock.
    counted : mapping or None
        What the drive itself counted meanwhile (:class:`flashwright.nvme.counters.Interval`); None where it does not.
    """

    name: str
    bytes_read: int
    bytes_written: int
    flushes: int
    seconds: float
    target_seconds: float
    counted: Mapping[str, Any] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class ProbeResult(Tabular):
    """What the probes found.

    Attributes
    ----------
    target : mapping
        ``name``, ``kind``, ``capacity_bytes``, ``block_bytes``, ``real_time``.
    mode : {"quick", "full"}
        How patient it was.
    seed : int
        Of all that was random.
    findings : mapping of str to Finding
        By parameter, in the order of the probes.
    asked : tuple of Asked
        What was done, a probe each.
    ended : {"complete", "time-limit", "interrupted", "failed"}
        Whether all probes came to their end.
    note : str
        Why not.
    declared : mapping of str to Declared
        What the kernel and the drive say of it, by name; empty unless it is a block device.
    doubts : tuple of str
        Why this may be no drive of flash. If there are any, findings are not reported as a drive's parameters, unless
        that was asked for.
    limits : tuple of str
        What could not be found because only reads were allowed, or only part of a drive was probed.
    """

    target: Mapping[str, Any]
    mode: Mode
    seed: int
    findings: Mapping[str, Finding]
    asked: tuple[Asked, ...]
    ended: Ended = "complete"
    note: str = ""
    declared: Mapping[str, Declared] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()

    def __getitem__(self, parameter: str) -> Finding:
        """What was found of a parameter."""
        return self.findings[parameter]

    def to_arrow(self) -> pa.Table:
        """A row for each parameter, in the order of the probes.

        Returns
        -------
        pyarrow.Table
            ``parameter``, ``verdict``, ``value`` as people read it (``"16 KiB"``), ``number`` where it is one, in the
            ``unit`` given, its bounds ``low`` and ``high``, ``confidence`` from 0 to 1, and ``why``.
        """
        return of_rows(
            {
                "parameter": name,
                "verdict": finding.verdict,
                "value": None if finding.value is None else amount(finding.value, finding.unit),
                "number": None if isinstance(finding.value, str) else finding.value,
                "unit": finding.unit,
                "low": finding.low,
                "high": finding.high,
                "confidence": finding.confidence,
                "why": finding.why,
            }
            for name, finding in self.findings.items()
        )

    @property
    def beside(self) -> list[str]:
        """Declared values beside what was found, a sentence each."""
        return [one.sentence for one in beside(self.declared, self.findings)]

    @property
    def json(self) -> dict[str, Any]:
        """The documented figures: all of the findings with their evidence."""
        return {
            "version": __version__,
            "target": dict(self.target),
            "mode": self.mode,
            "seed": self.seed,
            "ended": self.ended,
            "note": self.note or None,
            "doubts": list(self.doubts),
            "limits": list(self.limits),
            "declared": {name: asdict(value) for name, value in self.declared.items()},
            "beside": self.beside,
            "findings": [as_json(finding) for finding in self.findings.values()],
            "asked": [asdict(asked) for asked in self.asked],
        }

    def profile(self, twin: Twin | None = None, checked: Check | None = None) -> Profile:
        """What was found as a profile, which other commands take; of contradicting findings the surer one stays.

        Parameters
        ----------
        twin : Twin, optional
            A model of the drive, from :func:`twin_of`.
        checked : Check, optional
            How well it predicts the drive (:func:`flashwright.twin.check`). A twin that was not checked is
            marked so, and whoever uses the profile is told.
        """
        record = {} if twin is None else twin.fit.to_dict()
        if checked is not None:
            record["check"] = checked.record()
        return Profile(
            TargetFacts(**self.target),
            reconcile(self.findings, self.target["capacity_bytes"]),
            self.mode,
            self.seed,
            round(sum(asked.seconds for asked in self.asked), 3),
            {name: one.value for name, one in self.declared.items() if one.value is not None},
            None if twin is None else twin.fit.ssd,
            record,
            {} if twin is None else twin.calibration.to_dict(),
        )

    def report(
        self,
        path: str | os.PathLike[str],
        twin: Twin | None = None,
        checked: Check | None = None,
    ) -> None:
        """Write an HTML page: verdicts, how each came about, the evidence as plots, and the twin if there is one."""
        write_probe(Path(path), self, None if twin is None else twin.fit.residuals, checked)

    def figures(
        self,
        folder: str | os.PathLike[str],
        twin: Twin | None = None,
        checked: Check | None = None,
        *,
        size: str | None = None,
        style: str | Sequence[str] | None = None,
    ) -> list[Path]:
        """Write each chart of the report as drawings (SVG, PDF, PNG) and as its numbers (CSV); needs Matplotlib.

        Parameters
        ----------
        folder : path
            Where the files go; it is made if it is not there.
        twin : Twin, optional
            What the drive was copied into.
        checked : Check, optional
            Drive and twin on the pattern that was held back.
        size : str, optional
            Width and height, such as ``"84mm,60mm"``; by default a column's width, and the height that each needs.
        style : str or sequence of str, optional
            Fonts and styles, as :func:`flashwright.report.paper.looks.look_of` takes them, such as ``"serif"``.

        Returns
        -------
        list of Path
            The files: ``NN-name.svg``, ``.pdf``, ``.png`` and ``.csv``.
        """
        residuals = None if twin is None else twin.fit.residuals
        return probe_page(self, residuals, checked).figures(folder, size=size, style=style)

    def __repr__(self) -> str:
        verdicts = sum(finding.verdict != "unknown" for finding in self.findings.values())
        return f"ProbeResult({self.target['name']}: {verdicts} of {len(self.findings)} told, {self.ended})"

    def _repr_html_(self) -> str:
        words = {"absent": "none", "unknown": "cannot tell"}
        rows = [
            [
                name,
                words.get(finding.verdict) or amount(finding.value, finding.unit),
                f"{finding.confidence:.0%}" if finding.verdict != "unknown" else "",
                finding.why,
            ]
            for name, finding in self.findings.items()
        ]
        head = ["parameter", "verdict", "confidence", "why"]
        return html_table(head, rows, str(self.target["name"]), "; ".join(self.doubts) or self.note)


class ProbeInterrupted(Interrupted):
    """Ctrl-C while probes were asking.

    Attributes
    ----------
    result : ProbeResult
        What was finished.
    """

    def __init__(self, result: ProbeResult) -> None:
        super().__init__("the probes were interrupted")
        self.result = result


def as_json(finding: Finding) -> dict[str, Any]:
    """A finding as JSON has it; gaps of a series are null."""

    def numbers(values: Any) -> list[float | None]:
        return [value if np.isfinite(value) else None for value in np.asarray(values).tolist()]

    plots = [
        {
            "title": plot.title,
            "x_label": plot.x_label,
            "y_label": plot.y_label,
            "x_log": plot.x_log,
            "y_log": plot.y_log,
            "series": [
                {
                    "name": line.name,
                    "style": line.style,
                    "x": numbers(line.x),
                    "y": numbers(line.y),
                }
                for line in plot.series
            ],
            "marks": [asdict(mark) for mark in plot.marks],
        }
        for plot in finding.plots
    ]
    value = finding.value.item() if isinstance(finding.value, np.generic) else finding.value
    figures = {name: float(figure) for name, figure in finding.figures.items()}
    return {
        "parameter": finding.parameter,
        "verdict": finding.verdict,
        "value": value,
        "unit": finding.unit,
        "low": None if finding.low is None else float(finding.low),
        "high": None if finding.high is None else float(finding.high),
        "confidence": float(finding.confidence),
        "why": finding.why,
        "figures": {name: x if np.isfinite(x) else None for name, x in figures.items()},
        "plots": plots,
    }


def of_json(plain: dict[str, Any]) -> Finding:
    """A finding from JSON."""

    def numbers(values: list[float | None]) -> Any:
        return np.array([np.nan if value is None else value for value in values], float)

    plots = tuple(
        Plot(
            plot["title"],
            plot["x_label"],
            plot["y_label"],
            tuple(
                Series(line["name"], numbers(line["x"]), numbers(line["y"]), line["style"])
                for line in plot["series"]
            ),
            tuple(Mark(**mark) for mark in plot["marks"]),
            plot["x_log"],
            plot["y_log"],
        )
        for plot in plain["plots"]
    )
    figures = {name: np.nan if x is None else x for name, x in plain["figures"].items()}
    return Finding(**{**plain, "plots": plots, "figures": figures})
