"""Consecutive requests one by one: how long each waited and was served, a panel a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flashwright.report import text
from flashwright.report.charts import NO_TIME, Chart, Columns, Section, axis
from flashwright.report.tables import Cell, Table
from flashwright.simulation.pages.view import RunView, is_timed

# Bars drawn, in all and of one run: more are thinner than a line, and a report is to stay small.
REQUESTS_MAX = 8_000
REQUESTS_MAX_PER_RUN = 2000
SLOWEST_SHOWN = 12

_KINDS = ("read", "write", "trim", "flush")
# Columns of the close-up that are no count of what a request caused.
_OTHERS = ("request", "arrival_ns", "queue_ns", "service_ns", "kind", "lpn", "pages")


def _counts(rows: pa.Table) -> dict[str, str]:
    """The counts of what a request caused, as a page calls them, with their columns."""
    found = (name for name in rows.column_names if name not in _OTHERS)
    return {name.replace("_ops", "_operations").replace("_", " "): name for name in found}


def closeups(runs: Sequence[RunView], columns: Columns) -> list[Section]:
    """One section with a panel for each run that was looked at closely; none otherwise."""
    found = [(i, run.closeup) for i, run in enumerate(runs) if run.closeup is not None]
    if not found:
        return []
    most = min(REQUESTS_MAX_PER_RUN, max(100, REQUESTS_MAX // len(found)))
    charts = [
        _panel(runs, i, rows, columns, most, caption=_CAPTION if nth == 0 else "")
        for nth, (i, rows) in enumerate(found)
    ]
    return [Section("closeup", "Request by request", charts, stacked=True)]


_CAPTION = (
    "Service time and, stacked on it, the time in the queue; together they are the response time. A triangle marks a "
    "request that caused erases. Numbers count from 0 at the start of measuring."
)


def _panel(
    runs: Sequence[RunView], i: int, rows: pa.Table, columns: Columns, most: int, *, caption: str
) -> Chart:
    key, run = f"closeup-{i}", runs[i]
    title = run.label if len(runs) > 1 else "Consecutive requests"
    if not is_timed(run):
        return Chart(key, title, "", missing=f"{NO_TIME}, so no request waited.")
    if not rows.num_rows:
        return Chart(key, title, "", missing="The run ended before these requests.")
    drawn = rows.slice(0, most)

    def column(name: str, values: Any = None) -> str:
        found = drawn[name].to_numpy() if values is None else values
        return columns.add(f"{i}.closeup.{name}", found.astype(np.float64), 9)

    counts = {name: column(of) for name, of in _counts(rows).items()}
    kinds = np.asarray([_KINDS.index(kind) for kind in drawn["kind"].to_pylist()])
    view: dict[str, Any] = {
        "x": axis("request", "index"),
        "y": axis("response time", "ns", zero=True),
        "parts": [{"name": "service", "colour": 0}, {"name": "queueing", "colour": 1}],
        "first": rows["request"][0].as_py(),
        "times": [column("service_ns"), column("queue_ns")],
        "kinds": column("kind", kinds),
        "kindNames": _KINDS,
        "pages": column("pages"),
        "counts": [{"name": name, "values": values} for name, values in counts.items()],
        "erases": counts["erases"],
    }
    left = rows.num_rows - drawn.num_rows
    views = [{"name": "common scale"} | view, {"name": "each its own", "own": True} | view]
    more = f"The first {text.count(most)} of {text.count(rows.num_rows)}." if left else ""
    table = Table(
        [
            *("Slowest requests", "Kind", "Pages", "Queueing", "Service"),
            *(name.capitalize() for name in counts),
        ],
        _slowest(rows),
    )
    return Chart(
        key,
        title,
        f"{caption} {more}".strip(),
        kind="requests",
        views=views if len(runs) > 1 else views[:1],
        table=table,
        group="closeup",
    )


def _slowest(rows: pa.Table) -> list[list[Cell]]:
    response = rows["queue_ns"].to_numpy() + rows["service_ns"].to_numpy()
    shown = []
    for at in np.argsort(-response.astype(np.int64), kind="stable")[:SLOWEST_SHOWN]:
        row = {name: rows[name][int(at)].as_py() for name in rows.column_names}
        shown.append(
            [
                Cell(text.count(row["request"]), row["request"]),
                Cell(row["kind"], row["kind"]),
                *(
                    Cell(show(row[name]), row[name])
                    for name, show in (
                        ("pages", text.count),
                        ("queue_ns", text.time_ns),
                        ("service_ns", text.time_ns),
                        *((name, text.count) for name in _counts(rows).values()),
                    )
                ),
            ]
        )
    return shown
