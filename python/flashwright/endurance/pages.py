"""Pages about the life of a drive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flashwright.endurance.lifetime import residual
from flashwright.report import text
from flashwright.report.charts import Chart, Columns, Section, axis
from flashwright.report.page import Findings, write_findings
from flashwright.report.tables import Cell, Table

_POINTS = 200


def decimal(value: float) -> str:
    """A size in powers of ten, as drives and their ratings are sold.

    Examples
    --------
    >>> decimal(100.09e12), decimal(4096)
    ('100.1 TB', '4.096 kB')
    """
    units = ((1e18, "EB"), (1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
    size, unit = next((pair for pair in units if value >= pair[0]), (1.0, "B"))
    return f"{text.significant(value / size)} {unit}"


def in_years(years: float) -> str:
    """A time of life, in years, or in days where it is short.

    Examples
    --------
    >>> in_years(4.72), in_years(250.4), in_years(0.01)
    ('4.7 years', '250 years', '3.7 days')
    """
    return (
        f"{years:,.{1 if years < 100 else 0}f} years"
        if years >= 0.05
        else f"{years * 365.25:.2g} days"
    )


def write_formula(
    path: Path,
    document: Mapping[str, Any],
    *,
    capacity: float,
    cycles: int,
    written: Sequence[float],
    factor: float,
) -> None:
    """Writes the page of Equation 1: residual lifetime over the range in use.

    Parameters
    ----------
    path
        The file to write.
    document
        The figures, as ``flashwright lifetime --json`` writes them.
    capacity
        S of the equation, bytes.
    cycles
        M.
    written
        Amounts of data written, a line each, bytes.
    factor
        Logical over physical size where the effective range is meant, otherwise 1.
    """
    write_findings(
        path,
        formula_page(document, capacity=capacity, cycles=cycles, written=written, factor=factor),
    )


def formula_page(
    document: Mapping[str, Any],
    *,
    capacity: float,
    cycles: int,
    written: Sequence[float],
    factor: float,
) -> Findings:
    """The page of Equation 1: residual lifetime over the range in use; see :func:`write_formula`."""
    columns = Columns()
    # Up to 1 itself, where the formula leaves one drive write.
    p = np.linspace(0.005, 0.995, _POINTS)
    x = columns.add("p", p)
    series = [
        {
            "part": f"{decimal(amount)} written",
            "colour": k,
            "x": x,
            "y": columns.add(
                f"left.{k}", np.asarray(residual(amount, capacity, p * factor, cycles))
            ),
        }
        for k, amount in enumerate(written)
    ]
    view = {
        "name": "",
        "x": axis("range in use P, share of the logical pages", "share"),
        "y": axis("residual lifetime", "share", min=0, max=1),
        "series": series,
    }
    chart = Chart(
        "residual",
        "Residual lifetime",
        "Share of the life that is left by Equation 1 (Figure 2 of Hu, Jiang, Manden 2012; Figure 4.5 of Hu's "
        "dissertation): flat where little of the space is in use, steep above 80 %.",
        views=[view],
    )
    rows = [
        [
            Cell(text.share(row["used"]), row["used"]),
            Cell(decimal(row["writable_bytes"]), row["writable_bytes"]),
            *(Cell(text.share(left), left) for left in row["residual"]),
        ]
        for row in document["rows"]
    ]
    header = ["Range in use", "Writable", *(f"left after {decimal(a)}" for a in written)]
    return Findings(
        title="Residual lifetime by formula",
        facts=[
            ("S", decimal(capacity)),
            ("M", f"{cycles:,} erases"),
            *([("P is multiplied by", text.significant(factor))] if factor != 1 else []),
        ],
        tiles=[],
        table=Table(header, rows),
        explained=[
            "RL = 1 - A / (S (P + (1 - P) M)). It assumes uniform random writes and victims with the average number "
            "of valid pages. Under uniform writes it is too low, by a factor of up to 2, because cleaning that "
            "chooses its victims does better; static data and uneven wear can make it too high. experiments/lifetime "
            "compares it with drives played to their end of life."
        ],
        sections=[Section("formula", "Over the range in use", [chart])],
        columns=columns,
        document=document,
    )
