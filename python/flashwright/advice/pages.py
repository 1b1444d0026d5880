"""The pages of ``flashwright advise``: what a drive's utilisation costs, and what follows for its host."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashwright.advice.lines import HostAdvice
from flashwright.advice.space import Advice, Point
from flashwright.report import text
from flashwright.report.charts import Chart, Columns, Section, axis
from flashwright.report.page import Findings, write_findings
from flashwright.report.tables import Cell, Table
from flashwright.simulation.pages.keyfigures import VERDICTS


@dataclass(frozen=True)
class _Curve:
    key: str
    title: str
    label: str
    format: str
    show: Callable[[float], str]
    lines: tuple[tuple[str, Callable[[Point], float | None]], ...]
    metrics: tuple[str, ...]
    log: bool = False


def _of(metric: str) -> Callable[[Point], float | None]:
    return lambda point: point.value(metric)


_CURVES = (
    _Curve(
        "wa",
        "Write amplification",
        "write amplification",
        "number",
        text.significant,
        (("write amplification", _of("write-amplification")),),
        ("write-amplification",),
    ),
    _Curve(
        "tail",
        "Response time",
        "response time",
        "ns",
        text.time_ns,
        (
            ("mean", _of("mean")),
            ("99th percentile", _of("p99")),
            ("99.9th percentile", _of("p99.9")),
        ),
        ("mean", "p99", "p99.9"),
        log=True,
    ),
    _Curve(
        "iops",
        "Throughput",
        "requests per second",
        "count",
        text.count,
        (("requests per second", _of("iops")),),
        ("iops",),
    ),
    _Curve(
        "life",
        "Life",
        "host data until the drive's end",
        "bytes",
        text.size_bytes,
        (("data until the end", lambda point: point.life_bytes),),
        (),
    ),
)
# The colour of the knee's mark, as charts number them.
_KNEE = 1
# That of the recommended point.
_RECOMMENDED = 2
_MEANINGS = {
    "Knee": "The share of the flash beyond which more spare space brings little.",
    "Reserve": "The least share of the flash to keep from the host that meets every target.",
}


def write_advice(
    path: Path, found: Advice, document: Mapping[str, Any], hosted: HostAdvice | None = None
) -> None:
    """Writes the page.

    Parameters
    ----------
    path
        The file to write.
    found
        What was played.
    document
        The figures, as ``flashwright advise --json`` writes them.
    hosted
        What follows for the drive's host.
    """
    write_findings(path, advice_page(found, document, hosted))


def advice_page(
    found: Advice, document: Mapping[str, Any], hosted: HostAdvice | None = None
) -> Findings:
    """The page of what spare space costs, and what follows for the host; see :func:`write_advice`."""
    columns = Columns()
    x = columns.add("utilization", [point.utilization for point in found.points], 7)
    charts = [chart for curve in _CURVES if (chart := _chart(curve, found, x, columns)) is not None]
    config = found.points[0].result.json["config"]
    tiles = []
    if found.knee is not None:
        tiles.append(("Knee", text.share(found.knee.reserved)))
    if found.recommended is not None:
        tiles.append(("Reserve", text.share(found.recommended.reserved)))
    return Findings(
        title=f"Spare space: {config['name']}",
        facts=[
            ("drive", str(config["name"])),
            ("workload", str(document["workload"])),
            ("precondition", str(document["precondition"])),
            ("seed", str(document["seed"])),
            *([("targets", ", ".join(document["targets"]))] if document["targets"] else []),
        ],
        tiles=tiles,
        meanings={name: _MEANINGS[name] for name, _ in tiles},
        table=_table(found),
        explained=[
            "Reserved is the share of the flash that the host may not use, 1 - capacity.utilization. The knee is "
            "the point of write amplification farthest below the straight line between its ends, both axes scaled "
            "to 0-1 (Kneedle; Satopaa et al. 2011).",
            "A settled point is a drive that was filled and then played the workload until write amplification no "
            "longer changed; only such points can meet a target. The recommended point met the targets again in "
            "another run, under another seed or with the trace begun in its middle, unless a note says that it is not "
            "confirmed.",
            "Where erases are limited, life is extrapolated from about twenty erases per block, fewer on large drives, "
            "using write amplification and the spread of the blocks' erases.",
        ],
        sections=[Section("curves", "Over utilisation", charts)],
        columns=columns,
        document=document,
        notes=[*document["notes"], *_unconfirmed(found), *map(str, found.warnings)],
        more=[] if hosted is None else [("For the host", host_table(hosted), HOST_EXPLAINED)],
    )


def _unconfirmed(found: Advice) -> list[str]:
    """What speaks against the recommendation."""
    best = found.recommended
    if best is None or best.is_confirmed:
        return []
    return ["the recommendation is not confirmed: the seed changes nothing in this run"]


HOST_EXPLAINED = (
    "Each line rests on findings about the drive and has the confidence of the least certain of them; a line without "
    "a confidence rests on no measurement. Commands are only shown: Flashwright has not run them."
)


def write_host_advice(path: Path, hosted: HostAdvice, document: Mapping[str, Any]) -> None:
    """Writes a page about what follows from a profile, where nothing was played.

    Parameters
    ----------
    path
        The file to write.
    hosted
        The advice.
    document
        The figures, as ``flashwright advise --json`` writes them.
    """
    write_findings(path, host_advice_page(hosted, document))


def host_advice_page(hosted: HostAdvice, document: Mapping[str, Any]) -> Findings:
    """The page of what follows from a profile, where nothing was played; see :func:`write_host_advice`."""
    target = hosted.profile.target
    return Findings(
        title=f"Advice for the host: {target.name}",
        facts=[
            ("drive", target.name),
            ("capacity", text.size_bytes(target.capacity_bytes)),
            ("probed", hosted.profile.mode),
            ("made by", hosted.profile.made_by),
        ],
        tiles=[],
        table=host_table(hosted),
        explained=[HOST_EXPLAINED],
        sections=[],
        columns=Columns(),
        document=document,
    )


def host_table(hosted: HostAdvice) -> Table:
    """All lines of advice for a host, with their commands."""
    rows = [
        [
            Cell(line.topic, line.topic),
            Cell(line.text),
            Cell(", ".join(line.rests_on)),
            Cell(text.ABSENT)
            if line.confidence is None
            else Cell(text.share(line.confidence), line.confidence),
            Cell("; ".join(line.commands)),
        ]
        for line in hosted.lines
    ]
    return Table(["For the host", "Advice", "Rests on", "Confidence", "Commands"], rows, True)


def _chart(curve: _Curve, found: Advice, x: str, columns: Columns) -> Chart | None:
    rows = [(name, [_known(of(point)) for point in found.points]) for name, of in curve.lines]
    known = [value for _, values in rows for value in values if math.isfinite(value)]
    if not known:
        return None
    series: list[dict[str, Any]] = [
        {
            "part": name,
            "colour": (0, 3, 5)[k],
            "x": x,
            "y": columns.add(f"{curve.key}.{k}", values),
            "points": True,
        }
        for k, (name, values) in enumerate(rows)
        if any(math.isfinite(value) for value in values)
    ]
    of_first = rows[0][1]
    for name, colour, point in (
        ("knee", _KNEE, found.knee),
        ("recommended", _RECOMMENDED, found.recommended),
    ):
        if point is None:
            continue
        only = [
            value if each is point else math.nan
            for each, value in zip(found.points, of_first, strict=True)
        ]
        series.append(
            {
                "part": name,
                "colour": colour,
                "x": x,
                "y": columns.add(f"{curve.key}.{name}", only),
                "points": True,
                "big": True,
            }
        )
    ends = found.points[0].utilization, found.points[-1].utilization
    for k, target in enumerate(t for t in found.targets if t.metric in curve.metrics):
        at = columns.add(f"{curve.key}.target.x", ends, 7)
        series.append(
            {
                "part": target.text,
                "colour": 6,
                "x": at,
                "y": columns.add(f"{curve.key}.target.{k}", [target.limit] * 2),
                "level": True,
            }
        )
    log = curve.log and min(known) > 0 and max(known) / min(known) > 20
    view = {
        "name": "",
        "x": axis("capacity.utilization, logical over physical space", "share"),
        "y": axis(curve.label, curve.format, **({"log": True} if log else {"zero": True})),
        "series": series,
    }
    header = ["Utilisation", *(text.share(point.utilization) for point in found.points)]
    table = Table(
        header,
        [
            [
                Cell(name, name),
                *(
                    Cell(curve.show(v), v) if math.isfinite(v) else Cell(text.ABSENT)
                    for v in values
                ),
            ]
            for name, values in rows
        ],
    )
    return Chart(
        f"advise-{curve.key}",
        curve.title,
        "One point per run.",
        views=[view],
        table=table,
        group="advise",
    )


def _known(value: float | None) -> float:
    return math.nan if value is None else value


def _verdict(point: Point) -> Cell:
    """Whether the figures of a point are of a settled drive, as a badge."""
    word, tone = VERDICTS.get(point.verdict, (text.ABSENT, None))
    return Cell(word, word, tone=tone)


def _interval(point: Point) -> Cell:
    bounds = point.interval("write-amplification")
    if bounds is None:
        return Cell(text.ABSENT)
    return Cell(" to ".join(text.significant(bound) for bound in bounds), bounds[0])


def _table(found: Advice) -> Table:
    header = [
        "Reserved",
        "Utilisation",
        "Settled",
        "WA",
        "95 % of WA",
        "IOPS",
        "Mean",
        "99 %",
        "99.9 %",
        "Life",
        "Years",
        "",
    ]
    shows: tuple[tuple[str, Callable[[float], str]], ...] = (
        ("iops", text.count),
        ("mean", text.time_ns),
        ("p99", text.time_ns),
        ("p99.9", text.time_ns),
    )

    def cell(value: float | None, show: Callable[[float], str]) -> Cell:
        return Cell(text.ABSENT) if value is None else Cell(show(value), value)

    rows = []
    for point in found.points:
        marks = [
            name
            for name, other in (("knee", found.knee), ("recommended", found.recommended))
            if other is point
        ]
        rows.append(
            [
                Cell(text.share(point.reserved), point.reserved),
                Cell(text.share(point.utilization), point.utilization),
                _verdict(point),
                cell(point.value("write-amplification"), text.significant),
                _interval(point),
                *(cell(point.value(metric), show) for metric, show in shows),
                cell(point.life_bytes, text.size_bytes),
                cell(point.life_years, text.significant),
                Cell(", ".join(marks), ", ".join(marks), best="recommended" in marks),
            ]
        )
    return Table(header, rows)
