"""The page of ``flashwright assess``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from flashwright.advice.assessment import Assessment, Tail
from flashwright.advice.assessment_lines import Part
from flashwright.advice.pages import HOST_EXPLAINED, host_table
from flashwright.report import text
from flashwright.report.charts import Chart, Columns, Section, axis
from flashwright.report.page import Findings
from flashwright.report.tables import Cell, Table
from flashwright.simulation.pages.keyfigures import VERDICTS

__all__ = ["assessment_page"]

_MEANINGS = {
    "Write amplification by counters": "Bytes that the drive wrote to its flash for each byte from the host.",
    "Write amplification by the model": "Pages programmed for each page that the host wrote, on the model as it is.",
    "p99.9 of reads": "On the model, at the pace of the load.",
    "Years left by counters": "Until the rated life is used up, at the wear that the drive reports.",
}


def assessment_page(
    made: Assessment, said: list[Part], document: Mapping[str, Any], title: str
) -> Findings:
    """The page of an assessment: its sentences, the runs behind them, and all advice for the host.

    Parameters
    ----------
    made : Assessment
        What was assessed.
    said : list of Part
        What it says.
    document : mapping
        The figures, as ``flashwright assess --json`` writes them.
    title : str
        The heading.
    """
    columns = Columns()
    tiles = _tiles(made)
    beside = [(part.title, _prose(part), "") for part in said[1:]]
    if made.points:
        beside.append(("Runs", _runs(made), _RUNS_EXPLAINED))
    return Findings(
        title=title,
        facts=[
            *([("drive", made.ssd.name)] if made.ssd is not None else []),
            *([("load", str(document["workload"]))] if document["workload"] else []),
            *([("in service", _in_service(made))] if made.counters is not None else []),
        ],
        tiles=tiles,
        meanings={name: _MEANINGS[name] for name, _ in tiles},
        table=_prose(said[0]),
        explained=[],
        sections=_charts(made, columns),
        columns=columns,
        document=document,
        notes=[str(each) for each in made.warnings],
        beside=beside,
        more=[]
        if made.hosted is None
        else [("All advice for the host", host_table(made.hosted), HOST_EXPLAINED)],
    )


_RUNS_EXPLAINED = (
    "One row a run of the model. Reserved is the share of the flash that the host may not use. A run is settled if its "
    "write amplification no longer changed; intervals are of 95 %."
)


def _in_service(made: Assessment) -> str:
    assert made.counters is not None
    now = made.counters.now
    return (
        f"{now.model or f'a drive over {now.protocol}'}, {len(made.counters.readings)} reading(s)"
    )


def _tiles(made: Assessment) -> list[tuple[str, str]]:
    tiles = []
    counted = None if made.counters is None else made.counters.write_amplification
    if counted is not None:
        tiles.append(("Write amplification by counters", text.significant(counted[0], 3)))
    if made.present is not None and made.present.write_amplification is not None:
        shown = f"{made.present.write_amplification:.3f}"
        tiles.append(("Write amplification by the model", shown))
    if made.tail is not None:
        tiles.append(("p99.9 of reads", text.time_ns(made.tail.p99_9)))
    years = None if made.counters is None else made.counters.years_left
    if years is not None and years[0] is not None:
        tiles.append(("Years left by counters", text.significant(years[0], 2)))
    return tiles


def _prose(part: Part) -> Table:
    rows = [[Cell(topic, topic), Cell(said)] for topic, said in part.lines]
    return Table(["About", "Answer"], rows, prose=True)


def _runs(made: Assessment) -> Table:
    def cell(value: float | None, shown: str) -> Cell:
        return Cell(text.ABSENT) if value is None else Cell(shown, value)

    rows = []
    for trial in made.trials:
        run = made.results.get(trial.name)
        if run is None:
            continue
        word, tone = VERDICTS.get(run.settled.verdict, (text.ABSENT, None))
        amplification, interval = run.write_amplification, run.settled.interval
        if run.settled.verdict == "transient":
            interval = None
        tail = (Tail.of(run) or (None, None, None))[:3]
        drive = run.json["drive"]
        reserved = None if drive is None else 1 - drive["logical_pages"] / drive["physical_pages"]
        rows.append(
            [
                Cell(trial.name, trial.name),
                cell(reserved, "" if reserved is None else text.share(reserved)),
                cell(amplification, "" if amplification is None else f"{amplification:.3f}"),
                Cell(text.ABSENT)
                if interval is None
                else Cell(f"{interval[0]:.3f} to {interval[1]:.3f}", interval[0]),
                Cell(word, word, tone=tone),
                *(cell(each, "" if each is None else text.time_ns(each)) for each in tail),
            ]
        )
    return Table(
        ["Run", "Reserved", "WA", "95 % of WA", "Settled", "Reads p50", "Reads p99", "Reads p99.9"],
        rows,
    )


def _charts(made: Assessment, columns: Columns) -> list[Section]:
    charts = [
        chart
        for chart in (_of_reserve(made, columns), _of_reads(made, columns))
        if chart is not None
    ]
    return [Section("runs", "Runs of the model", charts)] if charts else []


def _of_reserve(made: Assessment, columns: Columns) -> Chart | None:
    points = [(point.reserved, point.value("write-amplification")) for _, point in made.points]
    known = sorted((reserved, value) for reserved, value in points if value is not None)
    if len(known) < 2:
        return None
    x = columns.add("reserved", [reserved for reserved, _ in known], 7)
    series = {
        "part": "write amplification",
        "colour": 0,
        "x": x,
        "y": columns.add("wa", [value for _, value in known]),
        "points": True,
    }
    view = {
        "name": "",
        "x": axis("reserved, share of the flash", "share"),
        "y": axis("write amplification", "number", zero=True),
        "series": [series],
    }
    return Chart(
        "assess-wa", "Write amplification", "One point per run.", views=[view], group="assess"
    )


def _of_reads(made: Assessment, columns: Columns) -> Chart | None:
    run = made.present
    if run is None or made.tail is None:
        return None
    times, shares = run.response_distribution["read"]
    kept = [
        (float(time), 1 - float(share))
        for time, share in zip(times, shares, strict=True)
        if share < 1
    ]
    if len(kept) < 2:
        return None
    series = {
        "part": "reads",
        "colour": 0,
        "x": columns.add("time", [time for time, _ in kept]),
        "y": columns.add("above", [above if above > 0 else math.nan for _, above in kept]),
    }
    view = {
        "name": "",
        "x": axis("response time", "ns", log=True),
        "y": axis("share of reads that take longer", "share", log=True),
        "series": [series],
    }
    return Chart(
        "assess-reads",
        "Response time of reads",
        "Of the drive as it is, at the pace of the load.",
        views=[view],
        group="assess",
    )
