"""What experiments found out about a drive."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

from flashwright._core import __version__
from flashwright.characterization.base import (
    Estimate,
    Result,
    Settings,
)
from flashwright.characterization.depth_and_size import DepthAndSizeResult
from flashwright.characterization.fills import FillsResult
from flashwright.characterization.mixing import MixingResult
from flashwright.characterization.steady_state import SteadyStateResult
from flashwright.characterization.unpredictability import UnpredictabilityResult
from flashwright.errors import Interrupted, MissingResultError
from flashwright.support.files import write_beside
from flashwright.support.tabular import html_table
from flashwright.target.question import Mode

__all__ = ["Characterization", "CharacterizationInterrupted", "Ended", "Part"]

Ended = Literal["complete", "time-limit", "interrupted", "failed"]


@dataclass(frozen=True, eq=False)
class Part:
    """One experiment of a characterization.

    Attributes
    ----------
    name, about : str
        Of the experiment.
    estimate : Estimate
        What it was to ask.
    estimate_s : float
        About how long it was to take, seconds.
    ended : str
        ``complete``, or why it ended earlier.
    bytes_read, bytes_written : int
        What it did ask.
    took_s : float
        How long it took, seconds of our time.
    result : Result or None
        What was finished of it; None if nothing was.
    """

    name: str
    about: str
    estimate: Estimate
    estimate_s: float
    ended: Ended
    bytes_read: int
    bytes_written: int
    took_s: float
    result: Result | None

    def to_json(self) -> dict[str, Any]:
        """As documented: figures, and the result's columns."""
        return {
            "name": self.name,
            "about": self.about,
            "ended": self.ended,
            "estimate": {
                "bytes_read": self.estimate.bytes_read,
                "bytes_written": self.estimate.bytes_written,
                "requests": self.estimate.requests,
                "seconds": self.estimate_s,
            },
            "bytes_read": self.bytes_read,
            "bytes_written": self.bytes_written,
            "took_s": self.took_s,
            "result": None if self.result is None else self.result.to_json(),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Characterization:
    """What the experiments found on one target.

    Attributes
    ----------
    target, kind : str
        Its name, and ``block-device``, ``file`` or ``simulated``.
    capacity_bytes, block_bytes : int
        Its size and the unit of its addresses.
    real_time : bool
        Whether its time is ours.
    mode, seed, settings
        What makes the experiments again.
    ended : str
        ``complete``, ``time-limit``, ``interrupted`` or ``failed``.
    notes : tuple of str
        Remarks that nobody should miss.
    parts : tuple of Part
        Those that were begun.
    """

    target: str
    kind: str
    capacity_bytes: int
    block_bytes: int
    real_time: bool
    mode: Mode
    seed: int
    settings: Settings
    ended: Ended
    notes: tuple[str, ...]
    parts: tuple[Part, ...]

    @overload
    def result(self, name: Literal["fills"]) -> FillsResult: ...
    @overload
    def result(self, name: Literal["unpredictability"]) -> UnpredictabilityResult: ...
    @overload
    def result(self, name: Literal["depth-and-size"]) -> DepthAndSizeResult: ...
    @overload
    def result(self, name: Literal["mixing"]) -> MixingResult: ...
    @overload
    def result(self, name: Literal["steady-state"]) -> SteadyStateResult: ...
    @overload
    def result(self, name: str) -> Result: ...
    def result(self, name: str) -> Result:
        """What an experiment found.

        Parameters
        ----------
        name : str
            Of the experiment.

        Returns
        -------
        Result
            Figures and columns; ``to_pandas()`` gives the columns as a table.

        Raises
        ------
        MissingResultError
            If nothing of it was finished; it is a ``KeyError``.
        """
        for part in self.parts:
            if part.name == name and part.result is not None:
                return part.result
        known = ", ".join(part.name for part in self.parts if part.result is not None) or "none"
        raise MissingResultError(
            f"experiment: found {name!r}, expected one that was finished: {known}"
        )

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain numbers, lists and mappings."""
        return {
            "version": __version__,
            "target": {
                "name": self.target,
                "kind": self.kind,
                "capacity_bytes": self.capacity_bytes,
                "block_bytes": self.block_bytes,
                "real_time": self.real_time,
            },
            "mode": self.mode,
            "seed": self.seed,
            "settings": {
                "fills": self.settings.fills,
                "ranges": None if self.settings.ranges is None else [*self.settings.ranges],
                "prefill": self.settings.prefill,
                "variant": self.settings.variant,
            },
            "ended": self.ended,
            "notes": [*self.notes],
            "experiments": [part.to_json() for part in self.parts],
        }

    def write_json(self, path: str | os.PathLike[str]) -> None:
        """Write the figures; the file appears once it is whole."""
        with write_beside(Path(path)) as part:
            part.write_text(json.dumps(self.to_json(), indent=2) + "\n", encoding="utf-8")

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a self-contained HTML page."""
        from flashwright.characterization.pages import write_characterization

        write_characterization(Path(path), self)

    def figures(
        self,
        folder: str | os.PathLike[str],
        *,
        size: str | None = None,
        style: str | Sequence[str] | None = None,
    ) -> list[Path]:
        """Write each chart of the report as drawings (SVG, PDF, PNG) and as its numbers (CSV); needs Matplotlib.

        Parameters
        ----------
        folder : path
            Where the files go; it is made if it is not there.
        size : str, optional
            Width and height, such as ``"84mm,60mm"``; by default a column's width, and the height that each needs.
        style : str or sequence of str, optional
            Fonts and styles, as :func:`flashwright.report.paper.looks.look_of` takes them, such as ``"serif"``.

        Returns
        -------
        list of Path
            The files: ``NN-name.svg``, ``.pdf``, ``.png`` and ``.csv``.
        """
        from flashwright.characterization.pages import characterization_page

        return characterization_page(self).figures(folder, size=size, style=style)

    def __repr__(self) -> str:
        parts = ", ".join(part.name for part in self.parts) or "nothing"
        return f"Characterization({self.target}: {parts}, {self.ended})"

    def _repr_html_(self) -> str:
        rows = [
            [
                part.name,
                part.about,
                part.ended,
                f"{part.bytes_read / 1e9:,.1f} GB",
                f"{part.bytes_written / 1e9:,.1f} GB",
            ]
            for part in self.parts
        ]
        head = ["experiment", "description", "ended", "read", "written"]
        return html_table(head, rows, self.target, "; ".join(self.notes))


class CharacterizationInterrupted(Interrupted):
    """Ctrl-C, with what was finished.

    Attributes
    ----------
    result : Characterization
        Its parts may be none.
    """

    def __init__(self, result: Characterization) -> None:
        super().__init__("the experiments were interrupted")
        self.result = result
