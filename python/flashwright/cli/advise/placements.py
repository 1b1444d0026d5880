"""``flashwright advise placement``: a trace is played with and without placement by handle."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from flashwright._core import __version__
from flashwright.advice.placement import (
    HANDLES,
    Group,
    Placement,
    Run,
    advise_placement,
    handle_table,
)
from flashwright.advice.placement_lines import lines
from flashwright.cli.advise.options import Jobs
from flashwright.cli.options import DEFAULT_TRACE, RunOptions
from flashwright.cli.outputs import ResultOptions
from flashwright.cli.render import errors, page, put_json, put_page, units
from flashwright.errors import ConfigError, WorkloadError
from flashwright.simulation.results import Runs
from flashwright.simulation.warnings import gathered_json
from flashwright.support.bars import Bar
from flashwright.traces import tracefiles
from flashwright.traces.workloads import Trace

__all__ = ["PlacementOptions", "by_handles"]

# Ranges of addresses that a line names; --json has all.
_RANGES_SHOWN = 3


@dataclass
class PlacementOptions:
    """What is asked of placement by handle."""

    handles: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,...",
            help="Try so many handles; default 2,4,8.",
            rich_help_panel="Scope",
        ),
    ] = None
    write_trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.fwt",
            help="Write the whole trace with the handles that are recommended.",
            rich_help_panel="Output",
        ),
    ] = None
    jobs: Jobs = None

    def counts(self) -> list[int]:
        """The numbers of handles."""
        if self.handles is None:
            return list(HANDLES)
        parts = self.handles.split(",")
        if not all(part.strip().isdecimal() for part in parts):
            raise ConfigError(
                f"--handles: found {self.handles!r}, expected numbers from 1 to 64", "such as 2,4,8"
            )
        return [int(part) for part in parts]


def by_handles(device: str, run: RunOptions, output: ResultOptions, asked: PlacementOptions) -> int:
    """Play the choices, show what was found, and give the exit status."""
    output.check(asked.write_trace)
    counts = asked.counts()
    source = run.source()
    if not isinstance(source, Trace):
        raise WorkloadError(
            f"--workload: found {source.spec!r}, expected --trace",
            "lifetimes are learned from a trace; generated workloads have a key `streams` for their classes of data",
        )
    if run.trace is None and not output.quiet:
        errors.note(f"no --trace: playing {DEFAULT_TRACE}")
    ssd = run.drive(device)
    with Bar(output.bar) as bar:
        found = advise_placement(
            ssd,
            source,
            handles=counts,
            settings=run.settings(),
            jobs=asked.jobs,
            progress=lambda label, now: bar.update(now, label=label),
        )
    advised = lines(len(found.groups)) if found.best is not None else ()
    document: dict[str, Any] = {
        "version": __version__,
        "config": ssd.config,
        "trace": source.path,
        "seed": run.seed,
        "runs": [each.document() for each in found.runs],
        "best": None if found.best is None else found.best.document(),
        "why": found.why,
        "groups": [group.document() for group in found.groups],
        "unknown_share": found.unknown_share,
        "lines": [each.document() for each in advised],
        "failures": {choice.text: why for choice, why in found.failures.items()},
        "warnings": gathered_json(found.warnings),
    }
    put_json(document, output.json)
    if found.runs:
        put_page(lambda: Runs(each.result for each in found.runs), output)
        if not output.silent:
            _show(found, source, ssd.config["name"])
            for line in advised:
                page.console().print(
                    page.grid([(line.where, line.text), *(("", each) for each in line.commands)])
                )
    if not output.quiet:
        for choice, why in found.failures.items():
            errors.note(f"{choice.text}: left out: {why.splitlines()[0]}")
    if not found.finished:
        errors.note(f"interrupted; {len(found.runs)} runs were finished")
        return 130
    if asked.write_trace is not None:
        if found.best is None:
            errors.note(f"{asked.write_trace}: not written, as no handles are recommended")
        else:
            tracefiles.convert(source, asked.write_trace, handles=handle_table(found.groups))
    return 1 if any(each.result.violations for each in found.runs) else 0


def _show(found: Placement, source: Trace, drive: str) -> None:
    out = page.console()
    rows = [
        ("advise", f"{drive}, {source.name or source.path}"),
        ("learned", "from the first half of the trace; the runs play its second half"),
        *(("warning", str(each)) for each in found.warnings),
    ]
    out.print(page.grid(rows))
    table = page.plain_table(
        page.Column("handles", 100),
        page.Column("isolation", 90, number=False),
        page.Column("reclaim unit", 85, number=False),
        page.Column("WA", 99),
        page.Column("95 % of WA", 62),
        page.Column("settled", 98, number=False),
        page.Column("IOPS", 80),
        page.Column("erases", 60),
        page.Column("", 95, number=False),
    )
    for run in found.runs:
        table.add_row(*_row(run), "recommended" if run is found.best else "")
    out.print(table)
    out.print(page.grid([("placement", found.why), *map(_where, found.groups), *_unknown(found)]))


def _row(run: Run) -> list[str]:
    choice, result = run.choice, run.result
    return [
        str(choice.handles) if choice.handles else "none",
        choice.isolation or "-",
        choice.unit,
        units.number(result.write_amplification),
        units.interval(result.settled.interval),
        units.VERDICTS[result.settled.verdict],
        units.count(result.iops),
        units.count(run.erases),
    ]


def _where(group: Group) -> tuple[str, str]:
    """What goes where."""
    again = (
        "written once"
        if group.interval_bytes is None
        else f"written again after {units.size(group.interval_bytes)} of writes"
    )
    shown = ", ".join(f"{first:,}+{size:,}" for first, size in group.ranges[:_RANGES_SHOWN])
    more = len(group.ranges) - _RANGES_SHOWN
    rest = f" and {more:,} more ranges (--json)" if more > 0 else ""
    return (
        f"handle {group.handle}",
        f"{units.share(group.share)} of the writes, {units.size(group.place_bytes)}, {again}; bytes {shown}{rest}",
    )


def _unknown(found: Placement) -> list[tuple[str, str]]:
    if found.best is None:
        return []
    share = units.share(found.unknown_share)
    return [
        (
            "handle 0",
            f"all else: {share} of the second half's writes went to places that the first did not write",
        )
    ]
