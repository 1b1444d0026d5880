"""The table of several workloads at once: what each had, and how much slower it was than alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flashwright.report import text
from flashwright.report.tables import Cell, Table
from flashwright.simulation.pages.view import RunView, dig

__all__ = ["tenant_table"]

_FIGURES: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("Pages", "pages", text.count),
    ("IOPS", "throughput.iops", text.count),
    ("Reads: mean", "response_time_ns.read.mean", text.time_ns),
    ("Reads: p99", "response_time_ns.read.p99", text.time_ns),
    ("Writes: mean", "response_time_ns.write.mean", text.time_ns),
    ("Writes: p99", "response_time_ns.write.p99", text.time_ns),
    ("Write amplification", "write_amplification", text.significant),
    ("Pages moved", "pages_moved", text.count),
    ("Slower than alone: mean", "slowdown.mean_ratio", text.significant),
    ("Slower than alone: p99", "slowdown.p99_ratio", text.significant),
    ("IOPS alone over IOPS here", "slowdown.iops_ratio", text.significant),
)


def tenant_table(runs: Sequence[RunView]) -> Table | None:
    """A row for each tenant of each run; None where there are none.

    Parameters
    ----------
    runs
        The runs of the page.
    """
    rows = []
    for run in runs:
        for tenant in dig(run.json, "tenants") or ():
            name = tenant["name"] if len(runs) == 1 else f"{run.label}: {tenant['name']}"
            rows.append([Cell(name, name), Cell(tenant["workload"]), *_cells(tenant)])
    return Table(["Tenant", "Workload", *(name for name, _, _ in _FIGURES)], rows) if rows else None


def _cells(tenant: dict[str, Any]) -> list[Cell]:
    found = [(dig(tenant, path), show) for _, path, show in _FIGURES]
    return [
        Cell(text.ABSENT) if value is None else Cell(show(value), value) for value, show in found
    ]
