"""``flashwright assess``: what a drive in service does under its load, how long it lasts, which settings follow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from flashwright._core import __version__
from flashwright.advice.assess import SECONDS, Plan
from flashwright.advice.assess import assess as find
from flashwright.advice.assessment import Assessment
from flashwright.advice.assessment_lines import Part, parts
from flashwright.cli.advise.hosts import read_profile
from flashwright.cli.options import LeftOut, RunOptions, add_options
from flashwright.cli.outputs import ResultOptions
from flashwright.cli.render import Shown, errors, page, put_json, put_page
from flashwright.endurance import lifetime
from flashwright.endurance.smart import Smart, SmartError, read_drives
from flashwright.errors import ConfigError, WorkloadError
from flashwright.simulation.warnings import gathered_json
from flashwright.support.bars import Bar
from flashwright.support.progress import Progress

__all__ = ["assess"]

# The pace is that of the load, and one run of many is not looked at closely.
_RunOptions = Annotated[
    RunOptions,
    LeftOut(
        "closeup",
        "snapshots",
        "time_scale",
        "depth",
        "warmup",
        "window",
        "verify",
        "audit",
        "repeat",
    ),
]


@add_options
def assess(
    run: _RunOptions,
    output: ResultOptions,
    drive: Annotated[
        str | None,
        typer.Option(
            metavar="DEVICE",
            help="The model of the drive: a bundled drive (`flashwright devices`), a TOML file, or a profile of a "
            "probed drive. Without one, --smart answers alone.",
            rich_help_panel="The drive",
        ),
    ] = None,
    smart: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="What the drive counts: `smartctl -j -x` or `nvme smart-log -o json`, and `nvme ocp smart-add-log -o "
            "json`. Two of a kind are two readings, in either order. Repeatable.",
            rich_help_panel="The drive",
        ),
    ] = None,
    capacity: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Of the drive in service, such as 800GB; default what --smart says, else the model's.",
            rich_help_panel="The drive",
        ),
    ] = None,
    endurance: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="What the drive is rated to take: 600TB (TBW) or 1dwpd,5y.",
            rich_help_panel="The drive",
        ),
    ] = None,
    cycles: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Erases that a block takes; by default the model's wear.pe-cycles-max.",
            rich_help_panel="The drive",
        ),
    ] = None,
    time_limit: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="Play no longer than this; runs that are not finished are left out, which the answer says.",
            rich_help_panel="Processes",
        ),
    ] = SECONDS,
) -> int:
    """Say what a drive in service does under its load, how long it lasts, and which settings follow.

    One screen: what the drive counts (--smart), and what runs of its model say (--drive with --trace or --workload).
    Either may be left out.
    """
    output.check()
    if not time_limit > 0:
        raise WorkloadError(f"--time-limit: found {time_limit:g}, expected seconds above 0", "")
    if cycles is not None and cycles < 1:
        raise ConfigError(f"--cycles: found {cycles}, expected 1 or more", "")
    readings = _readings(smart or [])
    plan, profile = _plan(run, drive, readings), None if drive is None else read_profile(drive)
    if profile is not None and plan.ssd is not None:
        # With what --set changes.
        profile = replace(profile, twin=replace(plan.ssd, preconditioning=None))
    size = None if capacity is None else lifetime.parse_size(capacity, "capacity")
    if not size and capacity is not None:
        raise ConfigError(f"--capacity: found {capacity!r}, expected a size above 0", "")
    known = size or (readings[-1].capacity if readings else None) or plan.model_bytes
    rating = None if endurance is None else lifetime.parse_endurance(endurance, known)
    if not output.quiet:
        errors.note(_takes(plan, time_limit))
    with Bar(output.bar, "assess", "runs/s") as bar:
        made = find(
            plan,
            readings=readings,
            rating_bytes=rating,
            cycles=cycles,
            capacity_bytes=size,
            known=profile,
            seconds=time_limit,
            progress=lambda done, total: bar.update(Progress("measured", done, total, None, 0)),
        )
    said = parts(made)
    document = _document(made, said)
    put_json(document, output.json)
    put_page(lambda: _page(made, said, document), output)
    if not output.silent:
        _show(made, said)
    if made.interrupted:
        errors.note("interrupted; the answer covers what was finished")
        return 130
    return 1 if made.present is not None and made.present.violations else 0


def _readings(files: list[Path]) -> tuple[Smart, ...]:
    """The readings of the one drive in some files, from the oldest to the newest."""
    if not files:
        return ()
    drives = read_drives(files)
    if len(drives) > 1:
        named = ", ".join(str(each[-1].serial or each[-1].model) for each in drives[:3])
        raise SmartError(
            f"--smart: found {len(drives)} drives ({named}), expected files of one",
            "`flashwright lifetime smart FILE...` shows them all",
        )
    return drives[0]


def _plan(run: RunOptions, drive: str | None, readings: tuple[Smart, ...]) -> Plan:
    """Drive and load; refuse what has no effect, and nothing at all."""
    loaded = run.trace is not None or run.workload is not None
    if not readings and not (loaded and drive is not None):
        raise WorkloadError(
            "found neither --smart nor --drive with --trace or --workload, expected one of them",
            "such as `flashwright assess --trace requests.blktrace --drive micron-7450-max`",
        )
    if drive is None and (given := run.given(("set", "precondition"))):
        raise WorkloadError(f"{given[0]}: found without --drive, expected both", "")
    if not loaded:
        run.refuse_trace_options("neither --trace nor --workload")
    source = run.source() if loaded else None
    return Plan.of(None if drive is None else run.drive(drive), source, run.settings())


def _takes(plan: Plan, seconds: float) -> str:
    """What will be done."""
    if plan.ssd is None:
        return "nothing is played: no --drive"
    short = "short runs for the settings of its host"
    if not plan.trials:
        return f"{plan.ssd.name}: {short}, nothing of a load"
    return f"{plan.ssd.name}: up to {plan.most} runs of the load, and {short}; at most about {seconds:g} s"


def _title(made: Assessment) -> str:
    now = None if made.counters is None else made.counters.now
    if made.ssd is not None:
        return made.ssd.name
    return (now.model if now is not None else None) or "a drive in service"


def _document(made: Assessment, said: list[Part]) -> dict[str, Any]:
    return {
        "version": __version__,
        **made.document(),
        "answer": [
            {
                "part": part.title,
                "lines": [{"topic": topic, "text": text} for topic, text in part.lines],
            }
            for part in said
        ],
        "warnings": gathered_json(made.warnings),
        "finished": not (made.interrupted or made.out_of_time),
    }


def _page(made: Assessment, said: list[Part], document: dict[str, Any]) -> Shown:
    from flashwright.advice.assessment_page import assessment_page

    return assessment_page(made, said, document, f"Assessment: {_title(made)}")


def _show(made: Assessment, said: list[Part]) -> None:
    """Print the answer, part by part, after all that speaks against it."""
    out = page.console()
    load = "" if made.present is None else f", {made.present.json['workload']}"
    rows = [("assess", f"{_title(made)}{load}")]
    rows.extend(("warning", str(each)) for each in made.warnings)
    out.print(page.grid(rows))
    for part in said:
        out.print()
        out.print(f"{part.title}:")
        out.print(page.grid([(f"  {topic}", text) for topic, text in part.lines]))
