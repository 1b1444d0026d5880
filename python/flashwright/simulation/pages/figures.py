"""The charts of a report; `charts` defines what a chart is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flashwright.report import text
from flashwright.report.charts import NO_TIME, Chart, Columns, Section, axis, short
from flashwright.report.tables import Cell, Table
from flashwright.simulation.pages.blocks import block_charts, not_drawn, not_settled
from flashwright.simulation.pages.closeup import closeups
from flashwright.simulation.pages.film import films
from flashwright.simulation.pages.keyfigures import spread
from flashwright.simulation.pages.sweep import sweeps
from flashwright.simulation.pages.view import Floats, RunView, dig, is_timed, number, series

# Budgets for the whole file, shared among its runs: a report is to stay far below 2 MB.
WINDOWS_MAX = 2400
WINDOWS_MAX_PER_RUN = 600
DISTRIBUTION_POINTS_MAX = 1600
DISTRIBUTION_POINTS_MAX_PER_RUN = 500
PARTITION_POINTS_MAX = 400

NO_WINDOWS = "This run kept no time series."
CAUSES = ("host", "gc", "merge", "translation", "padding", "wear")
CAUSE_COLOURS = (6, 1, 5, 0, 2, 3)


def sections(runs: Sequence[RunView], columns: Columns) -> list[Section]:
    """All charts of a report, in the order of its pages."""
    return [
        *sweeps(runs, columns),
        Section("time", "Over time", [*over_time(runs, columns), *_partition(runs, columns)]),
        Section(
            "response",
            "Response times",
            [_distribution(runs, columns, tail=False), _distribution(runs, columns, tail=True)],
        ),
        *closeups(runs, columns),
        Section(
            "writes",
            "Where writes come from",
            [_causes(runs), *_merges(runs, columns), *_preconditioning(runs, columns)],
        ),
        Section(
            "blocks",
            "Blocks",
            [
                *block_charts(runs, columns, "erases", "Erase count", "erases"),
                *block_charts(runs, columns, "valid", "Valid pages", "valid pages"),
            ],
        ),
        *films(runs, columns),
        Section("busy", "Dies and channels", [_busy(runs, columns)]),
    ]


# Over time ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Trend:
    key: str
    title: str
    caption: str
    y: dict[str, Any]
    parts: Sequence[tuple[str | None, str]]
    show: Callable[[float], str]
    absent: str
    needs: str | None = None
    """The part of a result without which there is no such chart."""


_TRENDS = (
    _Trend(
        "wa",
        "Write amplification",
        "Pages programmed per page that the host wrote, window by window.",
        axis("write amplification", "number", zero=True),
        [(None, "wa")],
        text.significant,
        "The host wrote nothing.",
    ),
    _Trend(
        "iops",
        "Throughput",
        "Requests completed per second of the drive's time.",
        axis("requests per second", "count", zero=True),
        [(None, "iops")],
        text.count,
        f"{NO_TIME}, so there is no rate.",
    ),
    _Trend(
        "response",
        "Response time",
        "From the arrival of a request to its completion, queueing included. "
        "The 99th percentile is dashed.",
        axis("response time", "ns", log=True),
        [("mean", "mean"), ("99th percentile", "p99")],
        text.time_ns,
        f"{NO_TIME}, so there are no response times.",
    ),
    _Trend(
        "victims",
        "Cleaning: valid pages per victim",
        "Mean number of pages that had to be copied out of each block chosen for cleaning; "
        "fewer is cheaper.",
        axis("valid pages per victim", "number", zero=True),
        [(None, "victims")],
        text.significant,
        "No block was cleaned while a time series was kept.",
    ),
    _Trend(
        "power",
        "Power",
        "Mean power of the drive, window by window: operations of the flash, transfers, and what the rest draws.",
        axis("watts", "number", zero=True),
        [(None, "power")],
        text.significant,
        f"{NO_TIME}, so there is no power.",
        needs="energy",
    ),
)


def over_time(runs: Sequence[RunView], columns: Columns) -> list[Chart]:
    """The time series; zoom and choice of the horizontal axis are common to them."""
    points_max = min(WINDOWS_MAX_PER_RUN, max(40, WINDOWS_MAX // len(runs)))
    found = [series(run.windows, points_max) for run in runs]
    for i, (run, data) in enumerate(zip(runs, found, strict=True)):
        for name, values in data.items():
            if name == "time" and not is_timed(run):
                values = np.full(len(values), np.nan)
            columns.add(f"{i}.{name}", values, 7 if name in ("time", "requests") else 5)
    shown = [
        trend
        for trend in _TRENDS
        if trend.needs is None or any(dig(run.json, trend.needs) for run in runs)
    ]
    return [_over_time(runs, found, trend) for trend in shown]


def _over_time(runs: Sequence[RunView], found: Sequence[dict[str, Floats]], trend: _Trend) -> Chart:
    def has(i: int, name: str) -> bool:
        return bool(np.isfinite(found[i][name]).any())

    drawn = [
        (i, part, name) for i in range(len(runs)) for part, name in trend.parts if has(i, name)
    ]
    if not drawn:
        none_kept = all(run.windows.num_rows == 0 for run in runs)
        missing = NO_WINDOWS if none_kept else trend.absent
        return Chart(trend.key, trend.title, "", missing=missing)

    def view(name: str, x: dict[str, Any], column: str, only: Sequence[int]) -> dict[str, Any]:
        lines = [
            {"run": i, "part": part, "x": f"{i}.{column}", "y": f"{i}.{values}"}
            for i, part, values in drawn
            if i in only
        ]
        view = {"name": name, "x": x, "y": trend.y, "series": lines}
        return view | _settled_part(runs, found, trend, column)

    with_time = [i for i, run in enumerate(runs) if is_timed(run)]
    by_requests = view(
        "by requests", axis("requests completed", "count"), "requests", range(len(runs))
    )
    by_time = view("by time", axis("drive's time", "ns"), "time", with_time)
    joined = max(int(data["joined"][0]) for data in found)
    note = f" Each point joins up to {joined} windows." if joined > 1 else ""
    header = ["Series", "Points", "Least", "Median", "Largest", "Last"]
    rows = []
    for i, part, name in drawn:
        values = found[i][name][np.isfinite(found[i][name])]
        limits = spread(values.tolist()) or (math.nan,) * 3
        label = ", ".join(filter(None, (runs[i].label, part)))
        shown = [Cell(trend.show(value), float(value)) for value in (*limits, values[-1])]
        rows.append([Cell(label, label), Cell(text.count(len(values)), len(values)), *shown])
    return Chart(
        trend.key,
        trend.title,
        trend.caption + note,
        views=[by_time, by_requests] if by_time["series"] else [by_requests],
        table=Table(header, rows),
        group="time",
        left_out=not_drawn(runs, {i for i, _, _ in drawn}),
        notes=not_settled(runs) if trend.key == "wa" else (),
    )


def _settled_part(
    runs: Sequence[RunView], found: Sequence[dict[str, Floats]], trend: _Trend, column: str
) -> dict[str, Any]:
    """The stretch of write amplification that has settled, of a run that stands alone."""
    since = number(runs[0].json, "settled.since_request")
    settled = dig(runs[0].json, "settled.verdict") == "settled"
    if len(runs) > 1 or trend.key != "wa" or since is None or not settled:
        return {}
    requests, places = found[0]["requests"], found[0][column]
    if not np.isfinite(places).all():
        return {}
    # Before the end of the first window lies its part of the first window.
    start = np.interp(since, [0.0, *requests], [0.0, *places])
    return {"bands": [[short(float(start), 7), None, "settled"]]}


def _partition(runs: Sequence[RunView], columns: Columns) -> list[Chart]:
    """How RAM was shared between buffer and mapping table, where a run shares it."""
    found = {i: part for i, run in enumerate(runs) if (part := dig(run.json, "buffer.partition"))}
    if not found:
        return []
    lines = []
    rows = []
    for i, part in found.items():
        requests = np.asarray(part["requests"], dtype=np.float64)
        pages = np.asarray(part["buffer_pages"], dtype=np.float64)
        logical = [
            number(runs[i].json, f"drive.logical_{unit}") or 1 for unit in ("bytes", "pages")
        ]
        size = pages * logical[0] / logical[1]
        requests, size = _thinned(requests, size, PARTITION_POINTS_MAX)
        x = columns.add(f"{i}.partition.x", requests, 7)
        y = columns.add(f"{i}.partition.y", size, 7)
        lines.append({"run": i, "part": None, "x": x, "y": y, "step": True})
        shown = [float(value) for value in (size.min(), np.median(size), size.max(), size[-1])]
        rows.append(
            [
                Cell(runs[i].label, runs[i].label),
                *(Cell(text.size_bytes(value), value) for value in shown),
            ]
        )
    view = {
        "name": "",
        "x": axis("requests completed", "count"),
        "y": axis("RAM of the write buffer", "bytes", zero=True),
        "series": lines,
    }
    return [
        Chart(
            "partition",
            "Partition of the RAM",
            "The share of the write buffer; the rest of the RAM holds entries of the mapping "
            "table.",
            views=[view],
            table=Table(["Run", "Least", "Median", "Largest", "Last"], rows),
            left_out=not_drawn(runs, set(found)),
        )
    ]


# Response times -----------------------------------------------------------------------------------

_SHARES = (0.5, 0.9, 0.99, 0.999, 0.9999)


def _distribution(runs: Sequence[RunView], columns: Columns, *, tail: bool) -> Chart:
    key, title = ("tail", "Tail") if tail else ("cdf", "Cumulative distribution")
    points_max = max(60, DISTRIBUTION_POINTS_MAX // len(runs))
    points_max = min(DISTRIBUTION_POINTS_MAX_PER_RUN, points_max)
    label = "requests that took longer" if tail else "requests that took no longer"
    y = axis(label, "share", log=True) if tail else axis(label, "share", min=0, max=1)
    views = []
    rows = []
    drawn = set()
    for kind, name in (("all", "all"), ("read", "reads"), ("write", "writes")):
        lines = []
        for i, run in enumerate(runs):
            ns, shares = (
                np.asarray(part, dtype=np.float64)
                for part in run.response_distribution.get(kind, ((), ()))
            )
            if len(ns) == 0 or not is_timed(run):
                continue
            drawn.add(i)
            rows.append(_quantile_row(f"{run.label}, {name}", ns, shares))
            x = f"{i}.{kind}.ns"
            steps = _as_steps(*_thinned(ns, shares, points_max))
            if x not in columns.numbers:
                columns.add(x, steps[0])
            above = np.where(steps[1] < 1, 1 - steps[1], np.nan)
            values = columns.add(f"{i}.{kind}.{key}", above if tail else steps[1])
            lines.append({"run": i, "part": None, "x": x, "y": values, "step": True})
        if lines:
            x_axis = axis("response time", "ns", log=True)
            views.append({"name": name, "x": x_axis, "y": y, "series": lines})
    if not views:
        timed = any(is_timed(run) for run in runs)
        missing = (
            "No request was timed." if timed else f"{NO_TIME}, so there are no response times."
        )
        return Chart(key, title, "", missing=missing)
    caption = (
        "Share of requests that took longer than a time: the same distribution, its slow end "
        "magnified."
        if tail
        else "Share of requests that took no longer than a time, queueing included."
    )
    header = ["Series", *(text.share(share) for share in _SHARES), "Largest"]
    left_out = not_drawn(runs, drawn)
    return Chart(key, title, caption, views=views, table=Table(header, rows), left_out=left_out)


def _thinned(ns: Floats, shares: Floats, points_max: int) -> tuple[Floats, Floats]:
    if len(ns) <= points_max:
        return ns, shares
    kept = np.unique(np.linspace(0, len(ns) - 1, points_max).round().astype(int))
    return ns[kept], shares[kept]


def _as_steps(ns: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Starts the distribution at a share of 0, so that its first rise is drawn.

    Times are at least 1 ns: 0 has no place on a log axis.
    """
    times = np.maximum(np.concatenate(([ns[0]], ns)), 1.0)
    return times, np.concatenate(([0.0], shares))


def _quantile_row(label: str, ns: Floats, shares: Floats) -> list[Cell]:
    at = [ns[min(int(np.searchsorted(shares, share)), len(ns) - 1)] for share in _SHARES]
    return [Cell(label, label), *(Cell(text.time_ns(t), float(t)) for t in (*at, ns[-1]))]


# Writes -------------------------------------------------------------------------------------------


def _causes(runs: Sequence[RunView]) -> Chart:
    title = "Write amplification by cause"
    rows = []
    for i, run in enumerate(runs):
        written = number(run.json, "host.pages_written")
        counts = [number(run.json, f"flash.programs.{cause}") or 0 for cause in CAUSES]
        if written:
            rows.append((i, [value / written for value in counts]))
    if not rows:
        return Chart("causes", title, "", missing="The host wrote nothing.")
    used = [k for k in range(len(CAUSES)) if any(values[k] > 0 for _, values in rows)]
    view = {
        "name": "",
        "x": axis("pages programmed per page that the host wrote", "number", zero=True),
        "parts": [{"name": CAUSES[k], "colour": CAUSE_COLOURS[k]} for k in used],
        "rows": [{"run": i, "values": [short(values[k], 5) for k in used]} for i, values in rows],
    }
    table = Table(
        ["Run", *(CAUSES[k] for k in used), "total"],
        [
            [
                Cell(runs[i].label, runs[i].label),
                *(Cell(text.significant(values[k]), values[k]) for k in used),
                Cell(text.significant(sum(values)), sum(values)),
            ]
            for i, values in rows
        ],
    )
    caption = (
        "Page programs by what caused them, over the pages that the host wrote; together they are "
        "the write amplification. Translation is all traffic of the mapping table."
    )
    left_out = not_drawn(runs, {i for i, _ in rows})
    return Chart(
        "causes", title, caption, kind="stack", views=[view], table=table, left_out=left_out
    )


def _merges(runs: Sequence[RunView], columns: Columns) -> list[Chart]:
    """What full merges cost, where a run has any; otherwise no chart."""
    found = {
        i: np.asarray(counts, dtype=np.float64)
        for i, run in enumerate(runs)
        # The first count is of log blocks that held nothing current and went without a merge.
        if (counts := (dig(run.json, "merges.full_by_data_blocks") or [])) and sum(counts[1:]) > 0
    }
    if not found:
        return []
    most = max(int(np.flatnonzero(counts)[-1]) for counts in found.values())
    x = columns.add("merges.x", range(most + 1))
    lines = []
    rows = []
    for i, counts in found.items():
        merges = np.zeros(most + 1)
        merges[1 : len(counts)] = counts[1 : most + 1]
        reached = np.cumsum(merges) / merges.sum()
        y = columns.add(f"{i}.merges", reached)
        lines.append({"run": i, "part": None, "x": x, "y": y, "step": True})
        at = [float(np.searchsorted(reached, share - 1e-12)) for share in (0.5, 0.9, 1)]
        mean = float(merges @ np.arange(most + 1) / merges.sum())
        rows.append(
            [
                Cell(runs[i].label, runs[i].label),
                Cell(text.count(merges.sum()), float(merges.sum())),
                *(Cell(text.significant(value), value) for value in (mean, *at)),
                Cell(text.share(merges[20:].sum() / merges.sum()), merges[20:].sum()),
            ]
        )
    view = {
        "name": "",
        "x": axis("data blocks touched", "index"),
        "y": axis("full merges that touch no more", "share", min=0, max=1),
        "series": lines,
    }
    header = ["Run", "Log blocks", "Mean", "50 %", "90 %", "Largest", "20 or more"]
    caption = (
        "Share of full merges by the number of data blocks that had to be merged to reclaim one log "
        "block (Gupta 2009, Figure 7); the larger, the longer a request waits for it."
    )
    # A run without full merges is named only where its scheme could have made some.
    could = {i for i, run in enumerate(runs) if number(run.json, "merges.full") is None}
    return [
        Chart(
            "merges",
            "Full merges by data blocks",
            caption,
            views=[view],
            table=Table(header, rows),
            left_out=not_drawn(runs, {*found, *could}),
        )
    ]


def _preconditioning(runs: Sequence[RunView], columns: Columns) -> list[Chart]:
    """Rounds of preconditioning, where a run looked for a steady state; otherwise no chart."""
    lines = []
    rows = []
    for i, run in enumerate(runs):
        rounds = dig(run.json, "precondition.write_amplification_rounds")
        if not rounds:
            continue
        steady = dig(run.json, "precondition.steady") is True
        x = columns.add(f"{i}.rounds.x", range(1, len(rounds) + 1))
        y = columns.add(f"{i}.rounds.y", rounds)
        lines.append({"run": i, "part": None, "x": x, "y": y, "points": True})
        answer = "yes" if steady else "no: given up"
        rows.append(
            [
                Cell(run.label, run.label),
                Cell(text.count(len(rounds)), len(rounds)),
                Cell(text.significant(rounds[-1]), rounds[-1]),
                Cell(answer, answer),
            ]
        )
    if not lines:
        return []
    view = {
        "name": "",
        "x": axis("round of half a capacity", "index"),
        "y": axis("write amplification", "number", zero=True),
        "series": lines,
    }
    given_up = any(row[3].shown != "yes" for row in rows)
    caption = (
        "Write amplification of each round of random writes before the run. Steady is: over five "
        "rounds, a range of at most 20 % and a slope of at most 10 % of the mean (SNIA SSS PTS)."
    )
    if given_up:
        caption += " <strong>A steady state was not reached everywhere.</strong>"
    table = Table(["Run", "Rounds", "Last round", "Steady"], rows)
    return [Chart("rounds", "Preconditioning", caption, views=[view], table=table)]


# Dies and channels --------------------------------------------------------------------------------


def _busy(runs: Sequence[RunView], columns: Columns) -> Chart:
    title = "How busy dies and channels were"
    if not any(is_timed(run) for run in runs):
        return Chart("busy", title, "", missing=f"{NO_TIME}, so there are no busy times.")
    views = []
    rows = []
    drawn = set()
    for key, one in (("dies", "die"), ("channels", "channel")):
        bars = []
        for i, run in enumerate(runs):
            shares = dig(run.json, f"busy.{key}")
            if not shares or not is_timed(run):
                continue
            drawn.add(i)
            bars.append({"run": i, "part": None, "y": columns.add(f"{i}.busy.{key}", shares)})
            figures = (min(shares), sum(shares) / len(shares), max(shares))
            shown = [Cell(text.share(value), float(value)) for value in figures]
            label = f"{run.label}, {key}"
            rows.append([Cell(label, label), Cell(text.count(len(shares)), len(shares)), *shown])
        if bars:
            y = axis("share of time busy", "share", zero=True)
            views.append({"name": key, "x": axis(one, "index"), "y": y, "series": bars})
    if not views:
        return Chart("busy", title, "", missing="Busy times were not kept.")
    caption = "Share of the drive's time in which each die or channel was busy. Numbered from 0."
    if any(dig(run.json, "config.timing.model") == "serial" for run in runs):
        caption += " The serial model knows only the drive as a whole: one operation at a time."
    table = Table(["Series", "Count", "Least", "Mean", "Largest"], rows)
    left_out = not_drawn(runs, drawn)
    return Chart("busy", title, caption, kind="bars", views=views, table=table, left_out=left_out)
