"""The page of a comparison of traces: both as curves over each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from flashwright.report import text
from flashwright.report.charts import Chart, Columns, Section, axis, series
from flashwright.report.page import Findings
from flashwright.report.tables import Cell, Table

__all__ = ["page", "shown"]

_Curve: TypeAlias = tuple[Sequence[float], Sequence[float]]

_SHOWN: dict[str, Callable[[float], str]] = {
    "bytes": text.size_bytes,
    "ns": text.time_ns,
    "share": text.share,
}

EXPLAINED = (
    "Of a distribution the table has the medians. Gap: the largest distance between the curves of cumulative shares "
    "(Kolmogorov-Smirnov), 0 to 1. Factor: of numbers the larger over the smaller; of distributions the factor by "
    "which values have to be multiplied or divided on average to turn one into the other (Wasserstein on logarithms).",
    "Pages are 4 KiB. The distance of a reuse is the number of other pages touched since the last access of the page. "
    "A run is continued by a request that starts where one of the last 32 runs of its direction ended. Trims and "
    "flushes enter no curve.",
)


def shown(value: float | None, unit: str) -> str:
    """A figure of a distance in its unit.

    Examples
    --------
    >>> shown(0.25, "share"), shown(8192, "bytes"), shown(None, "ns")
    ('25 %', '8 KiB', '–')
    """
    return text.ABSENT if value is None else _SHOWN.get(unit, text.significant)(value)


def page(document: Mapping[str, Any]) -> Findings:
    """The page of both.

    Parameters
    ----------
    document : mapping
        The figures of the comparison (:attr:`Comparison.json`), which the reader can download as well.
    """
    first, second = document["first"], document["second"]
    columns = Columns()
    draw = _Drawing((first, second), columns)
    return Findings(
        title=f"{first['name']} and {second['name']}",
        facts=[
            (each["name"], f"{text.count(each['statistics']['requests'])} requests")
            for each in (first, second)
        ],
        tiles=[
            (name, text.ABSENT if value is None else text.significant(value, 3))
            for name, value in (
                ("Median gap", document["median_gap"]),
                ("Median factor", document["median_factor"]),
            )
        ],
        table=table(document["distances"], first["name"], second["name"]),
        explained=EXPLAINED,
        sections=[
            Section("sizes", "Sizes and runs", draw.sizes()),
            Section("locality", "Locality", draw.locality()),
            Section("space", "Footprint and popularity", draw.space()),
            Section("time", "Arrivals", draw.arrivals()),
        ],
        columns=columns,
        document=document,
    )


def table(distances: Iterable[Mapping[str, Any]], first: str, second: str) -> Table:
    """The distances, a row each."""
    rows = [
        [
            Cell(each["name"]),
            Cell(shown(each["first"], each["unit"]), each["first"]),
            Cell(shown(each["second"], each["unit"]), each["second"]),
            Cell(text.ABSENT if each["gap"] is None else f"{each['gap']:.3f}", each["gap"]),
            Cell(
                text.ABSENT if each["factor"] is None else f"{each['factor']:.2f}", each["factor"]
            ),
        ]
        for each in distances
    ]
    return Table(["Statistic", first, second, "Gap", "Factor"], rows)


class _Drawing:
    """Charts of two statistics over each other."""

    def __init__(self, both: tuple[Mapping[str, Any], Mapping[str, Any]], columns: Columns) -> None:
        self._both = both
        self._columns = columns

    def _chart(
        self,
        key: str,
        title: str,
        caption: str,
        x: dict[str, Any],
        y: dict[str, Any],
        of: Callable[[Any], _Curve],
        look: Any = "line",
    ) -> Chart:
        """A curve of each; what neither has says so."""
        drawn = []
        left_out = []
        for colour, each in enumerate(self._both):
            places, values = of(each["statistics"])
            if len(places) == 0:
                left_out.append(each["name"])
                continue
            drawn.append(
                series(
                    self._columns,
                    f"{key}.{colour}",
                    values,
                    x=places,
                    name=each["name"],
                    colour=colour,
                    look=look,
                )
            )
        if not drawn:
            return Chart(key, title, "", missing="Neither has such requests.")
        view = {"name": "", "x": x, "y": y, "series": drawn}
        return Chart(key, title, caption, views=[view], left_out=tuple(left_out))

    def _shares(
        self, key: str, title: str, caption: str, unit: str, label: str, path: str
    ) -> Chart:
        """Cumulative shares of the distribution at `path`; values of 0 are drawn at 1."""

        def curve(statistics: Any) -> _Curve:
            found = _at(statistics, path)
            if not found or not found["values"]:
                return [], []
            weights = np.cumsum(found["weights"])
            places = np.maximum(1, np.asarray(found["values"], dtype=float))
            return places.tolist(), (weights / weights[-1]).tolist()

        x = axis(label, unit, log=True)
        y = axis("share of all up to it", "share", min=0, max=1)
        return self._chart(key, title, caption, x, y, curve, "step")

    def sizes(self) -> list[Chart]:
        sizes = [
            self._shares(
                f"{kind}sizes",
                f"Sizes of {kind}s",
                "",
                "bytes",
                "size",
                f"{kind}_sizes/bytes",
            )
            for kind in ("read", "write")
        ]
        runs = [
            self._shares(
                f"{kind}runs",
                f"Sequential runs of {kind}s",
                "A request alone is a run of its own.",
                "bytes",
                "length of the run",
                f"{kind}_runs/bytes",
            )
            for kind in ("read", "write")
        ]
        return sizes + runs

    def locality(self) -> list[Chart]:
        pairs = [(now, last) for now in ("reads", "writes") for last in ("writes", "reads")]
        charts = [
            self._shares(
                f"{now}of{last}",
                f"Reuse: {now} of pages last {'written' if last == 'writes' else 'read'}",
                "0 is drawn at 1.",
                "count",
                "other pages touched since",
                f"reuse/{now}_of_{last}",
            )
            for now, last in pairs
        ]
        charts.append(
            self._shares(
                "overwrites",
                "Life of data",
                "From one write of a page to the next.",
                "count",
                "pages written in between, the new one included",
                "reuse/overwrites",
            )
        )
        charts += [
            self._chart(
                f"gathering{megabytes}",
                f"Gathering of writes within {megabytes} MiB of them",
                "Distinct pages written over distinct blocks written: what a buffer of this size could destage of a "
                "block at once.",
                axis("block", "bytes", log=True),
                axis("pages of a block", "number", log=True),
                _gathered(pages),
                "dotted line",
            )
            for megabytes, pages in ((1, 256), (16, 4096), (256, 65536))
        ]
        return charts

    def space(self) -> list[Chart]:
        growth = [
            self._chart(
                f"growth{which}",
                f"Growth of the footprint: pages {which}",
                "",
                axis("pages read and written so far", "count", log=True),
                axis(f"distinct pages {which}", "count", log=True),
                _rows("footprint/growth", "accesses", key),
            )
            for which, key in (("touched", "pages"), ("written", "pages_written"))
        ]
        popular = [
            self._chart(
                f"popular{kind}",
                f"Popularity: {kind}",
                "",
                axis("share of the pages, the most accessed ones", "share", log=True),
                axis(f"share of page {kind}", "share", min=0, max=1),
                _popularity(kind),
            )
            for kind in ("reads", "writes")
        ]
        drift = self._chart(
            "drift",
            "Drift of hot chunks",
            "The share of accesses that go to the tenth of the 64 KiB chunks that was hottest so long ago.",
            axis("requests ago", "count"),
            axis("share of accesses", "share", min=0, max=1),
            _rows("drift/lags", "requests", "share"),
            "dotted line",
        )
        return [*growth, *popular, drift]

    def arrivals(self) -> list[Chart]:
        gaps = [
            self._shares(
                f"gaps{kind}",
                f"Gaps before {kind}",
                "From the request before, of either direction. 0 is drawn at 1 ns.",
                "ns",
                "gap",
                f"arrivals/gaps_before_{kind}",
            )
            for kind in ("reads", "writes")
        ]
        bursts = self._chart(
            "dispersion",
            "Bursts by scale",
            "The variance of the requests of a window over their mean: 1 for a Poisson process, more for bursts.",
            axis("window", "ns", log=True),
            axis("index of dispersion", "number", log=True),
            _rows("arrivals/scales", "window_ns", "dispersion"),
            "dotted line",
        )
        together = self._chart(
            "together",
            "Reads and writes together",
            "The correlation of the reads and the writes of a window.",
            axis("window", "ns", log=True),
            axis("correlation", "number", min=-1, max=1),
            _rows("arrivals/scales", "window_ns", "reads_with_writes"),
            "dotted line",
        )
        return [*gaps, bursts, together]


def _at(statistics: Any, path: str) -> Any:
    """What stands at a path; None where a part of it is None."""
    for key in path.split("/"):
        statistics = None if statistics is None else statistics[key]
    return statistics


def _rows(path: str, x: str, y: str) -> Callable[[Any], _Curve]:
    """A curve through rows; those without a value are left out."""

    def curve(statistics: Any) -> _Curve:
        rows = [row for row in _at(statistics, path) or [] if row[y] is not None]
        return [row[x] for row in rows], [row[y] for row in rows]

    return curve


def _gathered(pages: int) -> Callable[[Any], _Curve]:
    def curve(statistics: Any) -> _Curve:
        rows = [row for row in statistics["gathering"]["found"] if row["window_pages"] == pages]
        return [row["block_bytes"] for row in rows], [row["pages_per_block"] for row in rows]

    return curve


def _popularity(kind: str) -> Callable[[Any], _Curve]:
    def curve(statistics: Any) -> _Curve:
        found = statistics["popularity"]
        shares = found[f"share_of_{kind}"]
        return (found["share_of_pages"] if shares else []), shares

    return curve
