"""``flashwright trace compare``: how far two traces, or a trace and a workload for it, are apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flashwright._core import __version__
from flashwright.cli.options import ScaledTraceOptions, add_options
from flashwright.cli.outputs import ResultOptions
from flashwright.cli.render import Shown, errors, page, put_json, put_page, units
from flashwright.cli.settingsoption import settings_option
from flashwright.errors import WorkloadError
from flashwright.report import text
from flashwright.simulation.warnings import gathered, gathered_json
from flashwright.support.bars import Bar
from flashwright.support.core import _core
from flashwright.traces import compare as comparing
from flashwright.traces import workloads
from flashwright.traces.sources import expect_addresses

if TYPE_CHECKING:
    from flashwright.report.tables import Table
    from flashwright.simulation.results import RunResult

__all__ = ["compare", "say_reading"]

_ONE = "A trace file, bundled:NAME, or a workload such as uniform:write=0.7."


@add_options
def compare(
    first: Annotated[str, typer.Argument(metavar="A", help=_ONE)],
    second: Annotated[str, typer.Argument(metavar="B", help=_ONE)],
    options: ScaledTraceOptions,
    output: ResultOptions,
    requests: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Take at most N requests of each. Default: all of a trace; of a workload as many as the other has, "
            "or a million.",
            rich_help_panel="Workload",
        ),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="The drive for which workloads are generated; by default as far as the trace reaches, or 4GiB.",
            rich_help_panel="Scope",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Random seed.", rich_help_panel="Workload")
    ] = 1,
    drive: Annotated[
        str | None,
        typer.Option(
            metavar="DEVICE",
            help="Also play both on this drive, a bundled one or a TOML file, and compare what they do to it.",
            rich_help_panel="Scope",
        ),
    ] = None,
    set: Annotated[
        list[str] | None,
        settings_option("Change a setting of the drive."),
    ] = None,
    precondition: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Precondition the drive first, as `compare` does; default auto.",
            rich_help_panel="The drive",
        ),
    ] = None,
    addresses: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="How addresses are fitted to --drive, as `flashwright simulate` does.",
            rich_help_panel="Workload",
        ),
    ] = None,
) -> int:
    """Compare two traces, or a trace and a workload: in statistics, and in what they do to a drive.

    The reading options hold for both. Gap: the largest distance between the cumulative shares of two distributions,
    0 to 1. Factor: the larger value over the smaller; of distributions, how far values are apart on average.
    """
    output.check()
    for option, given in (
        ("--set", set),
        ("--precondition", precondition),
        ("--addresses", addresses),
    ):
        if given and drive is None:
            raise WorkloadError(f"{option}: found without --drive, expected both", "")
    fitted = expect_addresses(addresses, "--addresses")
    sources = [_source(text, options, fitted) for text in (first, second)]
    played = None if drive is None else _Played(drive, set or [], precondition)
    found = comparing.compare(
        *sources,
        requests=requests,
        size=None if size is None else _core.size_read(size),
        seed=seed,
    )
    runs = [] if played is None else played.runs(found, requests, seed, output.bar)
    document: dict[str, Any] = {"version": __version__, **found.json, "drive": None}
    if played is not None:
        document["drive"] = {
            "name": played.ssd.name,
            "runs": [{"label": run.label, **run.json} for run in runs],
            "warnings": gathered_json(gathered((run.label, run.json["warnings"]) for run in runs)),
        }
    put_json(document, output.json)

    def shown() -> Shown:
        made = found.page()
        if not runs:
            return made
        about = "Each begins with a drive that was preconditioned by itself; settled says how far to trust the figures."
        assert played is not None
        warned = gathered((run.label, run.json["warnings"]) for run in runs)
        return replace(
            made,
            notes=[*made.notes, *map(str, warned)],
            more=[(f"On the drive {played.ssd.name}", _runs_table(runs), about)],
        )

    put_page(shown, output)
    if not output.silent:
        _show(found)
        for each in (found.first, found.second):
            say_reading(each.statistics["reading"], f"{each.name}: ")
        if played is not None:
            from flashwright.cli.render.comparison import show_comparison

            show_comparison(runs, played.ssd.name)
    return 0


def say_reading(reading: Mapping[str, Any] | None, of: str = "") -> None:
    """Say what was done to read a trace, and what speaks against it."""
    if reading is None:
        return
    for note in reading["notes"]:
        errors.note(f"{of}{note}")
    for doubt in reading["doubts"]:
        errors.note(f"{of}doubtful: {doubt['text']}; {doubt['mend']}")


def _source(
    text: str, options: ScaledTraceOptions, addresses: workloads.Addresses | None
) -> workloads.Source:
    """A workload, or the trace as the options read it."""
    found = comparing.find(text)
    return found if isinstance(found, workloads.Workload) else options.open(text, addresses)


class _Played:
    """The drive that both are played on."""

    def __init__(self, name: str, settings: Sequence[str], precondition: str | None) -> None:
        from flashwright.simulation.ssd import Ssd

        ssd = Ssd.find(name).with_settings(settings)
        self.ssd = ssd.settling() if precondition is None else ssd.precondition(precondition)

    def runs(
        self,
        found: comparing.Comparison,
        requests: int | None,
        seed: int,
        bar: bool | None,
    ) -> list[RunResult]:
        """A run of each, as long as its statistics."""
        from flashwright.simulation.run import Run, RunSettings

        made = []
        for each in (found.first, found.second):
            is_trace = isinstance(each.source, workloads.Trace)
            count = requests if is_trace else each.statistics["requests"]
            settings = RunSettings(seed=seed, requests=count)
            begun = Run.create(
                self.ssd.toml, self.ssd.preconditioning or "empty", each.source, settings
            )
            with Bar(bar, each.name) as shown:
                made.append(begun.go(progress=shown.update, label=each.name))
        return made


_FIGURES: tuple[tuple[str, str, Any], ...] = (
    ("write amplification", "write_amplification", units.number),
    ("write amplification by bytes", "write_amplification_bytes", units.number),
    ("p50 of reads", "response_time_ns/read/p50", units.time),
    ("p99 of reads", "response_time_ns/read/p99", units.time),
    ("p50 of writes", "response_time_ns/write/p50", units.time),
    ("p99 of writes", "response_time_ns/write/p99", units.time),
    ("hit ratio of the map cache", "mapping_cache/hit_ratio", units.share),
    ("full merges", "merges/full", units.count),
    ("hit ratio of writes in the buffer", "buffer/write_hit_ratio", units.share),
    ("pages a destage", "buffer/pages_per_destage_mean", units.number),
    ("erases", "flash/erases/total", units.count),
)


def _runs_table(runs: Sequence[RunResult]) -> Table:
    """What they do to the drive, for the page."""
    from flashwright.report.tables import Cell, Table

    rows = []
    for name, path, show in _FIGURES:
        values = [_at(run.json, path) for run in runs]
        if any(value is not None for value in values):
            rows.append([Cell(name), *(Cell(show(value), value) for value in values)])
    rows.append([Cell("settled"), *(Cell(_verdict(run)) for run in runs)])
    return Table(["Figure", *(run.label for run in runs)], rows)


def _verdict(run: RunResult) -> str:
    found: Any = run.json["settled"]
    return units.VERDICTS["none" if found is None else found["verdict"]]


def _at(figures: Any, path: str) -> float | None:
    for key in path.split("/"):
        figures = None if figures is None else figures[key]
    return None if figures is None else float(figures)


_UNITS: dict[str, Any] = {
    "bytes": units.size,
    "ns": units.time,
    "share": units.share,
    "pages": text.significant,
    "number": text.significant,
}


def _show(found: comparing.Comparison) -> None:
    out = page.console()
    rows = []
    for letter, each in (("A", found.first), ("B", found.second)):
        of = each.statistics
        rows.append(
            (
                letter,
                f"{each.name}: {units.count(of['requests'])} requests, "
                f"{units.size(of['read_bytes'])} read, {units.size(of['written_bytes'])} written",
            )
        )
    out.print(page.grid(rows))
    table = page.plain_table(
        "statistic", "A", "B", "gap", "factor", right=["A", "B", "gap", "factor"]
    )
    for row in found.distances:
        show = _UNITS[row.unit]
        table.add_row(
            row.name,
            *("–" if value is None else show(value) for value in (row.first, row.second)),
            "" if row.gap is None else f"{row.gap:.3f}",
            "–" if row.factor is None else f"{row.factor:.2f}",
        )
    out.print(table)
    gap = "–" if found.gap is None else f"{found.gap:.3f}"
    factor = "–" if found.factor is None else f"{found.factor:.2f}"
    out.print(f"median gap {gap}, median factor {factor}; of distributions A and B are medians")
    for each in (found.first, found.second):
        sampled = each.statistics["reuse"]["sampled"]
        if sampled < 1:
            errors.note(
                f"{each.name}: reuse distances are estimates from {units.share(sampled)} of its pages"
            )
