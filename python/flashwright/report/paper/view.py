"""One view of a chart, with what its series are called and how they look: as ``static/plots/chart.js`` has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from flashwright.report.charts import UNITS, Chart, Columns

HUES = 7
Look = Literal["line", "dashed", "again", "level"]


@dataclass(frozen=True)
class View:
    """What is drawn.

    Attributes
    ----------
    chart
        The chart.
    data
        The view of it.
    columns
        The numbers.
    names
        The runs.
    beside
        The same view of the other charts of its group.
    """

    chart: Chart
    data: dict[str, Any]
    columns: Columns
    names: Sequence[str]
    beside: Sequence[dict[str, Any]] = ()

    def numbers(self, name: str) -> npt.NDArray[np.float64]:
        """A column, NaN for a gap."""
        return np.array(self.columns.numbers[name], dtype=np.float64)

    def colour_of(self, line: dict[str, Any]) -> int:
        """The place of its colour among all."""
        return int(line["colour"] if "colour" in line else line["run"])

    def look_of(self, line: dict[str, Any]) -> Look:
        """How its line is drawn."""
        if line.get("level"):
            return "level"
        parts = [one.get("part") for one in self.data["series"] if one.get("part")]
        if "colour" not in line and line.get("part") and line["part"] != parts[0]:
            return "dashed"
        return "again" if self.colour_of(line) >= HUES else "line"

    def name_of(self, line: dict[str, Any]) -> str:
        """What the legend says."""
        part = line.get("part")
        if line.get("of"):
            return f"{line['of']}, {part}"
        label = str(self.data["y"]["label"])
        if "colour" in line:
            return part or label
        run = self.names[line["run"]] if len(self.names) > 1 else None
        return ", ".join(filter(None, (run, part))) or label


def unit_of(kind: str, size: float) -> tuple[float, str]:
    """The unit that suits numbers up to a size.

    Examples
    --------
    >>> unit_of("ns", 2e6), unit_of("bytes", 4096)
    ((1000000.0, 'ms'), (1024, 'KiB'))
    """

    def fits(unit: float) -> bool:
        # A clock that shows less than two hours shows seconds; counts below ten thousand are written out.
        least = 2 if unit == 3.6e12 else 10 if unit == 1e3 and kind == "count" else 1
        return size >= unit * least

    return next((pair for pair in UNITS[kind] if fits(pair[0])), UNITS[kind][-1])


def titled(axis: dict[str, Any], low: float, high: float, *, log: bool) -> tuple[float | None, str]:
    """The size of the unit of an axis, None where each tick has its own, and the title that names it.

    Examples
    --------
    >>> titled({"label": "response time", "format": "ns"}, 0, 3e6, log=False)
    (1000000.0, 'response time [ms]')
    >>> titled({"label": "bandwidth [MB/s]", "format": "number"}, 0, 200, log=False)
    (None, 'bandwidth [MB/s]')
    """
    label, kind = str(axis["label"]), axis["format"]
    own = axis.get("ticks") or axis.get("names") or label.endswith("]")
    if own or kind not in ("ns", "bytes", "share"):
        return None, label
    per = f"/{axis['per']}" if axis.get("per") else ""
    if log and kind == "bytes":
        return None, f"{label} [bytes{per}]"
    size, name = unit_of(kind, (low * high) ** 0.5 if log else max(abs(low), abs(high)))
    return size, f"{label} [{name}{per}]"
