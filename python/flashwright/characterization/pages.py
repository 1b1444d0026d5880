"""The page of a characterization, and the tables that the command line prints too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from flashwright.characterization.base import Described, Result
from flashwright.characterization.depth_and_size import DepthAndSizeResult
from flashwright.characterization.fills import FillsResult
from flashwright.characterization.mixing import MixingResult
from flashwright.characterization.steady_state import SteadyStateResult
from flashwright.characterization.unpredictability import UnpredictabilityResult
from flashwright.report import text
from flashwright.report.charts import Chart, Columns, Section, axis
from flashwright.report.page import Findings, write_findings
from flashwright.report.tables import Cell, Table
from flashwright.target.arrays import Array
from flashwright.target.question import kib

__all__ = ["headline", "table_of", "write_characterization"]

_PHASES = ("first capacity", "second", "third")


class PartView(Protocol):
    """One experiment of a characterization."""

    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def ended(self) -> str: ...
    @property
    def bytes_read(self) -> int: ...
    @property
    def bytes_written(self) -> int: ...
    @property
    def result(self) -> Result | None: ...


class CharacterizedView(Protocol):
    """What experiments found out about a drive."""

    @property
    def target(self) -> str: ...
    @property
    def capacity_bytes(self) -> int: ...
    @property
    def real_time(self) -> bool: ...
    @property
    def mode(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def parts(self) -> Sequence[PartView]: ...
    @property
    def ended(self) -> str: ...
    @property
    def notes(self) -> Sequence[str]: ...

    def to_json(self) -> Mapping[str, Any]: ...


def headline(result: Result) -> str:
    """What a result says, in a sentence."""
    if isinstance(result, Described):
        return result.headline()
    if isinstance(result, FillsResult):
        return f"mapping looks like: {result.mapping} ({result.mapping_why})"
    if isinstance(result, UnpredictabilityResult):
        return "; ".join(
            f"reads within {text.share(each.range_share)}: {each.verdict}" for each in result.ranges
        )
    if isinstance(result, DepthAndSizeResult):
        return "; ".join(
            f"{grid.kind}s are best with {kib(grid.best_size_bytes)}, {grid.best_depth} outstanding"
            for grid in result.grids
        )
    if isinstance(result, MixingResult):
        if math.isnan(result.drop):
            return "not all shares were measured"
        drop = float(f"{result.drop:.3g}")
        return f"least bandwidth at {text.share(result.lowest_at)} writes, {text.share(drop)} below the better end"
    if isinstance(result, SteadyStateResult):
        rounds = text.count(result.tracked_iops.size)
        if not result.steady:
            return f"not steady after {rounds} rounds"
        return f"steady after {rounds} rounds: {text.count(round(result.mean_iops))} IOPS"
    raise TypeError(type(result).__name__)


def table_of(result: Result) -> tuple[list[str], list[list[Cell]]]:
    """A result's figures: the names of the columns, and the rows."""
    if isinstance(result, Described):
        return result.table()
    if isinstance(result, FillsResult):
        return _table_of_fills(result)
    if isinstance(result, UnpredictabilityResult):
        return _table_of_reads(result)
    if isinstance(result, DepthAndSizeResult):
        return _table_of_grids(result)
    if isinstance(result, MixingResult):
        header = ["writes", "bandwidth", "read response", "write response"]
        rows = zip(
            result.write_share,
            result.bandwidth_bytes_per_s,
            result.read_mean_ns,
            result.write_mean_ns,
            strict=True,
        )
        return header, [
            [_share(share), _rate(rate), _time(read), _time(write)]
            for share, rate, read, write in rows
        ]
    if isinstance(result, SteadyStateResult):
        header = ["reads", *(kib(size) for size in result.size_bytes)]
        return header, [
            [_share(share), *(Cell(text.count(round(each)), float(each)) for each in row)]
            for share, row in zip(result.read_share, result.iops[-1], strict=True)
        ]
    raise TypeError(type(result).__name__)


def _table_of_fills(result: FillsResult) -> tuple[list[str], list[list[Cell]]]:
    header = [
        "range",
        "peak",
        "at the end",
        "of the peak",
        "falls from",
        "slow responses",
        "spikes",
    ]
    return header, [
        [
            _share(curve.range_share),
            _rate(curve.peak_bytes_per_s),
            _rate(curve.rho * curve.peak_bytes_per_s),
            _share(curve.rho),
            _cell(f"{curve.knee:.2f} capacities", curve.knee),
            _share(curve.slow_share),
            _share(curve.spike_share),
        ]
        for curve in result.curves
    ]


def _table_of_reads(result: UnpredictabilityResult) -> tuple[list[str], list[list[Cell]]]:
    header = ["range", "written", "mean", "deviation", "99 %", "distance", "peaks", "verdict"]
    return header, [
        [
            _share(each.range_share),
            Cell(_PHASES[phase], phase),
            _time(each.mean_ns[phase]),
            _time(each.deviation_ns[phase]),
            _time(each.p99_ns[phase]),
            _cell(text.significant(each.distance[phase], 3), each.distance[phase]),
            Cell(text.count(each.peaks[phase].size), each.peaks[phase].size),
            Cell(each.verdict, each.verdict),
        ]
        for each in result.ranges
        for phase in range(len(each.mean_ns))
    ]


def _table_of_grids(result: DepthAndSizeResult) -> tuple[list[str], list[list[Cell]]]:
    header = ["", "size", "most", "saturated at", "slope", "linearity", "response alone"]
    return header, [
        [
            Cell(f"{grid.kind}s", grid.kind),
            Cell(kib(size), float(size)),
            _rate(grid.bandwidth_bytes_per_s[i].max()),
            Cell(text.count(grid.saturation_depth[i]), float(grid.saturation_depth[i])),
            _cell(f"{text.time_ns(_number(grid.slope_ns[i]))} a request", grid.slope_ns[i]),
            _cell(f"R² {grid.linearity[i]:.4f}", grid.linearity[i]),
            _time(grid.response_mean_ns[i, 0]),
        ]
        for grid in result.grids
        for i, size in enumerate(grid.size_bytes)
    ]


def _number(value: float) -> float:
    return 0.0 if math.isnan(value) else float(value)


def _cell(shown: str, value: float) -> Cell:
    return Cell(text.ABSENT) if math.isnan(value) else Cell(shown, float(value))


def _share(value: float) -> Cell:
    return _cell(text.share(float(f"{value:.3g}")), value)


def _rate(value: float) -> Cell:
    return _cell(f"{text.significant(_number(value) / 1e6, 3)} MB/s", value)


def _time(value: float) -> Cell:
    return _cell(text.time_ns(float(f"{_number(value):.3g}")), value)


# The page -----------------------------------------------------------------------------------------


def write_characterization(path: Path, found: CharacterizedView) -> None:
    """Writes the page of a characterization.

    Parameters
    ----------
    path
        The file to write; an older one is replaced. Its folder must exist.
    found
        What the experiments found.

    Raises
    ------
    OutputError
        If the file can't be written.
    """
    write_findings(path, characterization_page(found))


def characterization_page(found: CharacterizedView) -> Findings:
    """The page of a characterization; see :func:`write_characterization`."""
    columns = Columns()
    parts = [(part, part.result) for part in found.parts if part.result is not None]
    rows = [
        [
            Cell(part.name, part.name),
            Cell(_early(part) + headline(result)),
            Cell(text.size_bytes(part.bytes_written), float(part.bytes_written)),
            Cell(text.size_bytes(part.bytes_read), float(part.bytes_read)),
        ]
        for part, result in parts
    ]
    return Findings(
        title=f"Characterization of {found.target}",
        facts=[
            ("capacity", text.size_bytes(found.capacity_bytes)),
            ("time", "the drive's own" if found.real_time else "simulated"),
            ("mode", found.mode),
            ("seed", str(found.seed)),
            ("ended", found.ended),
        ],
        tiles=[],
        table=Table(["Experiment", "Found", "Written", "Read"], rows),
        explained=[part.about for part, _ in parts],
        notes=found.notes,
        sections=[_section(part, result, columns) for part, result in parts],
        columns=columns,
        document=found.to_json(),
    )


def _early(part: PartView) -> str:
    return "" if part.ended == "complete" else f"ended early ({part.ended}): "


def _section(part: PartView, result: Result, columns: Columns) -> Section:
    if isinstance(result, Described):
        return Section(part.name, part.name.capitalize(), result.charts(columns))
    if isinstance(result, FillsResult):
        return Section(part.name, "Drive fills", _fills(result, columns))
    if isinstance(result, UnpredictabilityResult):
        return Section(part.name, "Reads among writes", _reads(result, columns))
    if isinstance(result, DepthAndSizeResult):
        return Section(part.name, "Requests outstanding and their size", _grids(result, columns))
    if isinstance(result, MixingResult):
        return Section(part.name, "Mixing reads and writes", _mixing(result, columns))
    assert isinstance(result, SteadyStateResult)
    return Section(part.name, "Steady state", [_rounds(result, columns)])


def _table(result: Result) -> Table:
    header, rows = table_of(result)
    return Table([name.capitalize() for name in header], rows)


def _line(
    columns: Columns, part: str, colour: int, x: str, y: str, values: Iterable[float], **look: bool
) -> dict[str, Any]:
    return {"part": part, "colour": colour, "x": x, "y": columns.add(y, values), **look}


def _view(
    name: str, x: dict[str, Any], y: dict[str, Any], series: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    return {"name": name, "x": x, "y": y, "series": list(series)}


_WRITTEN = "data written, capacities"


def _fills(result: FillsResult, columns: Columns) -> list[Chart]:
    curves = result.curves
    x = columns.add("fills.x", curves[0].written)
    names = [f"within {text.share(curve.range_share)}" for curve in curves]

    def series(key: str, columns_of: Sequence[Array]) -> list[dict[str, Any]]:
        return [
            _line(columns, name, k, x, f"fills.{key}.{k}", values)
            for k, (name, values) in enumerate(zip(names, columns_of, strict=True))
        ]

    written = axis(_WRITTEN, "number", zero=True)
    bandwidth = Chart(
        "fills-bandwidth",
        "Bandwidth of random writes",
        "By the share of the address space that is written, per 1 % of a capacity. A page-mapped drive slows down "
        "once it is full, and the more so the more of it is in use (Figures 4.1 and 4.4 of Hu's dissertation).",
        views=[
            _view("MB/s", written, axis("bandwidth [MB/s]", "number", zero=True),
                  series("rate", [curve.bandwidth_bytes_per_s / 1e6 for curve in curves])),
            _view("of the peak", written, axis("bandwidth over its peak", "share", zero=True),
                  series("share", [curve.bandwidth_bytes_per_s / curve.peak_bytes_per_s for curve in curves])),
        ],
        table=_table(result),
    )  # fmt: skip
    response = Chart(
        "fills-response",
        "Response of random writes",
        f"{result.depth} outstanding (Figure 4.3 of Hu's dissertation).",
        views=[
            _view("mean", written, axis("response", "ns", zero=True),
                  series("mean", [curve.response_mean_ns for curve in curves])),
            _view("largest", written, axis("response", "ns", zero=True),
                  series("max", [curve.response_max_ns for curve in curves])),
        ],
    )  # fmt: skip
    slow = Chart(
        "fills-slow",
        "Slow responses",
        "Share of responses above five times the median of the first half capacity.",
        views=[
            _view("", written, axis("share of responses", "share", min=0, max=1),
                  series("slow", [curve.slow for curve in curves])),
        ],
    )  # fmt: skip
    return [bandwidth, response, slow]


def _reads(result: UnpredictabilityResult, columns: Columns) -> list[Chart]:
    density = []
    for k, each in enumerate(result.ranges):
        x = columns.add(f"reads.edges.{k}", each.edges_ns)
        series = [
            # A step is drawn from edge to edge; the last edge ends it.
            _line(columns, phase, i, x, f"reads.density.{k}.{i}",
                  np.append(each.density[i] * np.diff(each.edges_ns), 0.0), step=True, fill=True)
            for i, phase in enumerate(_PHASES)
        ]  # fmt: skip
        density.append(
            _view(
                f"within {text.share(each.range_share)}",
                axis("response of reads", "ns", zero=True),
                axis("share of the phase's reads", "share", zero=True),
                series,
            )
        )
    mean = [
        _line(
            columns,
            f"within {text.share(each.range_share)}",
            k,
            columns.add(f"reads.written.{k}", each.written),
            f"reads.mean.{k}",
            each.response_mean_ns,
        )
        for k, each in enumerate(result.ranges)
    ]
    return [
        Chart(
            "reads-density",
            "Responses of reads, by phase",
            "A phase is one capacity of data written. Predictable response times look the same in all three; "
            "cleaning shifts them to the right and spreads them (Figures 4.6 to 4.9 of Hu's dissertation). Up to the "
            "99.9th percentile.",
            views=density,
            table=_table(result),
        ),
        Chart(
            "reads-mean",
            "Mean response of reads over time",
            "Per 1 % of a capacity written.",
            views=[
                _view(
                    "",
                    axis(_WRITTEN, "number", zero=True),
                    axis("mean response", "ns", zero=True),
                    mean,
                )
            ],
        ),
    ]


def _grids(result: DepthAndSizeResult, columns: Columns) -> list[Chart]:
    charts = []
    for what, label, show in (
        ("bandwidth", "bandwidth [MB/s]", "number"),
        ("response", "mean response", "ns"),
    ):
        views = []
        for grid in result.grids:
            x = columns.add(f"grid.{grid.kind}.x", grid.depth)
            values = (
                grid.bandwidth_bytes_per_s / 1e6 if what == "bandwidth" else grid.response_mean_ns
            )
            ticks = [[int(depth), str(depth)] for depth in grid.depth]
            views.append(
                _view(
                    f"random {grid.kind}s",
                    axis("requests outstanding", "index", log=True, ticks=ticks),
                    axis(label, show, **({"zero": True} if what == "bandwidth" else {"log": True})),
                    [
                        _line(columns, kib(size), k, x, f"grid.{what}.{grid.kind}.{k}", values[k], points=True)
                        for k, size in enumerate(grid.size_bytes)
                    ],
                )
            )  # fmt: skip
        best = "; ".join(
            f"{grid.kind}s {kib(grid.best_size_bytes)} x {grid.best_depth}" for grid in result.grids
        )
        charts.append(
            Chart(
                f"grid-{what}",
                "Bandwidth" if what == "bandwidth" else "Mean response",
                f"One line per request size. Shortest response with 90 % of the highest bandwidth: {best} (Figures "
                "4.10 "
                "to 4.12 of Hu's dissertation: 64 KiB x 8).",
                views=views,
                table=_table(result) if what == "bandwidth" else None,
                group="grid",
            )
        )
    return charts


def _mixing(result: MixingResult, columns: Columns) -> list[Chart]:
    x = columns.add("mixing.x", result.write_share)
    share = axis("share of writes", "share", min=0, max=1)
    bandwidth = Chart(
        "mixing",
        "Bandwidth by the share of writes",
        f"Sequential writes of {kib(result.request_bytes)} mixed with random reads, {result.depth} outstanding "
        "(Figure 5.3 of Hu's dissertation: minimum at half).",
        views=[
            _view("", share, axis("bandwidth [MB/s]", "number", zero=True), [
                _line(columns, "both together", 0, x, "mixing.rate", result.bandwidth_bytes_per_s / 1e6, points=True),
            ]),
        ],
        table=_table(result),
    )  # fmt: skip
    response = Chart(
        "mixing-response",
        "Response by the share of writes",
        "Means of each kind.",
        views=[
            _view("", share, axis("mean response", "ns", zero=True), [
                _line(columns, "reads", 1, x, "mixing.read", result.read_mean_ns, points=True),
                _line(columns, "writes", 2, x, "mixing.write", result.write_mean_ns, points=True),
            ]),
        ],
    )  # fmt: skip
    return [bandwidth, response]


def _rounds(result: SteadyStateResult, columns: Columns) -> Chart:
    count = result.tracked_iops.size
    x = columns.add("rounds.x", range(1, count + 1))
    name = f"random writes of {kib(result.tracked_bytes)}"
    series = [_line(columns, name, 0, x, "rounds.iops", result.tracked_iops, points=True)]
    if not math.isnan(result.mean_iops):
        window = columns.add("rounds.window", [max(count - 4, 1), count])
        level = {"part": "mean of the last five", "colour": 6, "x": window, "level": True}
        series.append(level | {"y": columns.add("rounds.mean", [result.mean_iops] * 2)})
    description = "not enough rounds for a window"
    if not math.isnan(result.mean_iops):
        description = (
            f"range {text.share(float(f'{result.window_range:.3g}'))} (20 % at most), slope "
            f"{text.share(float(f'{result.window_slope:.3g}'))} (10 % at most)"
        )
    return Chart(
        "rounds",
        f"Rounds, {result.variant}",
        f"Last five rounds: {description}. "
        "The table shows the last round: requests per second by share of reads and size.",
        views=[
            _view(
                "", axis("round", "index"), axis("requests per second", "count", zero=True), series
            )
        ],
        table=_table(result),
    )
