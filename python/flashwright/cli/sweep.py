"""``flashwright sweep``: grids and lists of runs, kept as they are finished."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from flashwright._core import __version__
from flashwright.cli.options import add_options
from flashwright.cli.outputs import TABLE, ResultOptions, WorkerOptions
from flashwright.cli.render import Shown, errors, page, put_json, put_page, units
from flashwright.errors import FlashwrightError, SweepError
from flashwright.simulation.warnings import gathered_json
from flashwright.support.bars import PointsBar
from flashwright.support.tablefiles import write_table
from flashwright.sweeps.points import Store
from flashwright.sweeps.sweep import Case, Estimate, Shard, Sweep, SweepResult

__all__ = ["sweep"]

_ROWS_SHOWN = 60
_FAILURES_SHOWN = 20
_SEEDS_SHOWN = 5
_LISTED = 200


@add_options
def sweep(
    output: ResultOptions,
    workers: WorkerOptions,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A TOML file; docs/reference/sweep-file.md describes it."
        ),
    ],
    store: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep finished points here; FILE.points if left out.",
            rich_help_panel="Saving and resuming",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"A row for each run, with all its figures: {TABLE}.",
            rich_help_panel="Output",
        ),
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"A row for each combination, mean and 95 % interval over its seeds: {TABLE}.",
            rich_help_panel="Output",
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Compute only this part, such as 2/4; parts are disjoint.",
            rich_help_panel="Processes",
        ),
    ] = None,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Show what would be computed, and compute nothing.",
            rich_help_panel="Scope",
        ),
    ] = False,
) -> int:
    """Run grids and lists of settings, each with several seeds, on all cores.

    Finished points are kept: the same command continues where it was interrupted.
    """
    part = None if shard is None else Shard.parse(shard)
    workers.check()
    _check(output, part, out, summary)
    made = Sweep.from_toml(file)
    kept = Store(store or file.with_suffix(".points"))
    if plan:
        _show_plan(made, kept, part)
        return 0
    try:
        with PointsBar(output.bar) as bar:
            found = made.run(
                kept, jobs=workers.jobs, dask=workers.dask, shard=part, progress=bar.update
            )
    except KeyboardInterrupt:
        errors.note(
            f"interrupted; {units.count(made.kept(kept))} of {units.count(len(made.cases))} points are kept in "
            f"{kept.folder}, and the same command continues from there"
        )
        return 130
    except FlashwrightError:
        _say_damaged(kept)
        raise
    _say_damaged(kept)
    if part is None:
        _write(found, output, file, out, summary)
    _say_failures(found, kept)
    if not output.silent:
        _say_end(found, bar, part)
    if found.failures:
        errors.note("run the same command again to retry failed points")
        return 2
    return 1 if found.violations else 0


def _check(
    output: ResultOptions,
    part: Shard | None,
    out: Path | None,
    summary: Path | None,
) -> None:
    named = {
        "--out": out,
        "--summary": summary,
        "--json": output.json,
        "--report": output.report,
        "--figures": output.figures,
    }
    for name, path in named.items():
        if part is not None and path is not None:
            raise SweepError(
                f"--shard and {name}: found both, expected one of them",
                f"a shard is a part; once all are finished, the same command with {name} and without --shard "
                "collects them without computing",
            )
    output.check(out=out, summary=summary)


def _say_damaged(kept: Store) -> None:
    if kept.damaged:
        count = len(kept.damaged)
        what = "1 kept point was" if count == 1 else f"{units.count(count)} kept points were"
        errors.note(f"{what} damaged and counted as missing, such as {kept.damaged[0]}")


def _say_failures(found: SweepResult, kept: Store) -> None:
    """A line for each combination and reason; its seeds mostly fail alike."""
    cases_by_reason: dict[tuple[str, str], list[Case]] = {}
    for case, error in found.failures:
        cases_by_reason.setdefault((case.combination.label, error), []).append(case)
    for (label, error), cases in list(cases_by_reason.items())[:_FAILURES_SHOWN]:
        seeds = "seed " + ", ".join(str(case.seed) for case in cases[:_SEEDS_SHOWN])
        if len(cases) > _SEEDS_SHOWN:
            seeds += f" and {len(cases) - _SEEDS_SHOWN} more"
        first = cases[0].point
        key = "no point" if first is None else f"point {first.key[:12]}"
        errors.fault(f"{', '.join(filter(None, (label, seeds)))} ({key}): {error}")
        where = None if first is None else kept.traceback_path(first)
        if where is not None and where.exists():
            errors.note(f"its traceback: {where}")
    more = len(cases_by_reason) - _FAILURES_SHOWN
    if more > 0:
        errors.note(f"{units.count(more)} more combinations failed; --out has the error of each")


def _show_plan(made: Sweep, kept: Store, part: Shard | None) -> None:
    cases = [
        case
        for case in made.cases
        if part is None or (case.point is not None and part.holds(case.point))
    ]
    table = page.plain_table("point", "key", "", elsewhere="")
    for case in cases[:_LISTED]:
        if case.point is None:
            table.add_row(case.label, "-", f"invalid: {case.combination.error}")
        else:
            state = "kept" if kept.has(case.point) else "to compute"
            table.add_row(case.label, case.point.key[:12], state)
    out = page.console()
    out.print(table)
    if len(cases) > _LISTED:
        out.print(f"... and {units.count(len(cases) - _LISTED)} more")
    there = sum(case.point is not None and kept.has(case.point) for case in cases)
    distinct = len({case.point.key for case in cases if case.point is not None})
    for line in made.repeated:
        out.print(f"note: {line}")
    out.print(
        f"{units.count(len(cases))} points, {units.count(distinct)} of them different; "
        f"{units.count(there)} are kept in {kept.folder}"
    )


def _write(
    found: SweepResult,
    output: ResultOptions,
    file: Path,
    out: Path | None,
    summary: Path | None,
) -> None:
    if out is not None:
        write_table(found.table, out)
    if summary is not None:
        write_table(found.summary, summary)
    put_json(_document(found, file), output.json)

    def shown() -> Shown:
        from flashwright.sweeps.pages import grid_page

        return grid_page(found, f"Sweep: {file.stem}")

    put_page(shown, output)
    if not output.silent:
        _show_summary(found)


def _document(found: SweepResult, file: Path) -> dict[str, object]:
    return {
        "version": __version__,
        "file": file.name,
        "points": len(found.cases),
        "digest": found.digest,
        "notes": found.repeated,
        "warnings": gathered_json(found.warnings),
        "summary": [
            {
                "varied": dict(each.varied),
                "runs": each.runs,
                "failed": each.failed,
                "different": each.different,
                "settled": each.settled,
                "figures": {name: asdict(figure) for name, figure in each.figures.items()},
            }
            for each in found.summaries
        ],
        "failures": [
            {
                "label": case.label,
                "key": None if case.point is None else case.point.key,
                "error": error,
                "traceback": found.traceback_of(nth),
            }
            for nth, case in enumerate(found.cases)
            if (error := found.error_of(nth)) is not None
        ],
    }


_SHOWN: dict[str, tuple[page.Column, Callable[[float | None], str]]] = {
    "write_amplification": (page.Column("write amplification", 95), units.number),
    "write_amplification_bytes": (page.Column("by bytes", 94), units.number),
    "throughput.iops": (page.Column("IOPS", 90), units.count),
    "response_time_ns.all.mean": (page.Column("mean response", 85), units.time),
    "response_time_ns.all.p99": (page.Column("99 % response", 80), units.time),
    "flash.erases.total": (page.Column("erases", 70), units.count),
}


def _show_summary(found: SweepResult) -> None:
    summaries = found.summaries
    names = [name for name in _SHOWN if any(name in each.figures for each in summaries)]
    if not any(each.amplifications_differ for each in summaries):
        names = [name for name in names if name != "write_amplification_bytes"]
    heads = [_SHOWN[name][0] for name in names]
    keys = [page.Column(key, 100, number=False) for key in found.keys]
    counts = page.Column("runs", 60), page.Column("settled", 97)
    table = page.plain_table(*keys, *counts, *heads, elsewhere="--summary")
    for each in summaries[:_ROWS_SHOWN]:
        runs = units.count(each.runs) + (f" ({each.failed} failed)" if each.failed else "")
        if each.different < each.runs:
            runs += f" ({each.different} different)"
        table.add_row(
            *(str(each.varied.get(key, "-")) for key in found.keys),
            runs,
            f"{each.settled} of {each.runs}",
            *(_cell(each.figures.get(name), _SHOWN[name][1]) for name in names),
        )
    out = page.console()
    out.print(table)
    if len(summaries) > _ROWS_SHOWN:
        out.print(
            f"... and {units.count(len(summaries) - _ROWS_SHOWN)} more combinations: --summary FILE has all"
        )
    if any(each.different > 1 for each in summaries):
        out.print("± is the 95 % confidence interval of the mean over seeds (Student's t)")
    equal_digests = [each for each in summaries if each.runs > 1 and each.different == 1]
    if equal_digests:
        out.print(
            f"the seed changes nothing in {units.count(len(equal_digests))} of {units.count(len(summaries))} "
            "combinations (equal digests): one run, played again. Its ± of write amplification is over parts of the "
            "run; other figures have no interval"
        )
    rows = [("warning", str(each)) for each in found.warnings]
    rows += [("note", line) for line in found.repeated]
    if rows:
        out.print(page.grid(rows))


def _cell(figure: Estimate | None, show: Callable[[float | None], str]) -> str:
    if figure is None:
        return units.number(None)
    return show(figure.mean) + ("" if figure.ci95 is None else f" ± {show(figure.ci95)}")


def _say_end(found: SweepResult, bar: PointsBar, part: Shard | None) -> None:
    out = page.console()
    share = "" if part is None else f"shard {part.number} of {part.of}: "
    out.print(
        f"{share}{units.count(len(found.cases))} points: {units.count(bar.computed)} computed in "
        f"{units.seconds(bar.elapsed_s)} ({units.seconds(bar.seconds)} of processor time), "
        f"{units.count(bar.kept)} were kept, {units.count(len(found.failures))} failed"
    )
    if part is None:
        out.print(f"digest {found.digest}")
    else:
        out.print(
            "once all shards are finished, the command with --out and without --shard collects them"
        )
