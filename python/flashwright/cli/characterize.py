"""``flashwright characterize``: the anomaly experiments on a device, a file or a simulated drive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from flashwright.characterization import EXPERIMENTS, Estimate, Experiment, Settings
from flashwright.characterization.pages import headline, table_of
from flashwright.characterization.session import (
    PACE_BYTES,
    Characterization,
    CharacterizationInterrupted,
    choose,
    plan,
)
from flashwright.characterization.session import characterize as carry_out
from flashwright.cli.options import add_options, open_target
from flashwright.cli.outputs import ResultOptions
from flashwright.cli.render import errors, page, put_json, put_page, units
from flashwright.cli.render.bill import asked, rows
from flashwright.cli.settingsoption import settings_option
from flashwright.cli.wear import WearOptions
from flashwright.errors import WorkloadError
from flashwright.probing.costs import Bill
from flashwright.probing.plan import drive_bytes
from flashwright.support.bars import Bar
from flashwright.support.exports import TARGET_HELP
from flashwright.support.progress import Progress
from flashwright.target.question import Mode
from flashwright.target.target import Target

__all__ = ["characterize"]

_NAMES = ", ".join(each.NAME for each in EXPERIMENTS)
# What a progress bar counts a whole experiment as.
_STEPS = 1000
# For a time beforehand: a SATA drive's rate.
_BYTES_PER_S = 500e6


@dataclass
class CharacterizeOptions:
    """What is asked of the target."""

    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", metavar="NAME", help=f"One of {_NAMES}. Repeatable.", rich_help_panel="Scope"
        ),
    ] = None
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Fewer drive fills, ranges, sizes and rounds.", rich_help_panel="Scope"
        ),
    ] = False
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Show what would be read and written, and do nothing.",
            rich_help_panel="Scope",
        ),
    ] = False
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Stop after this time; keep what is finished.",
            rich_help_panel="Workload",
        ),
    ] = None
    destroys_data: Annotated[
        bool,
        typer.Option(
            "--destroys-data",
            help="Allow the experiments to destroy all data on a real device; without it they do nothing there.",
            rich_help_panel="The drive",
        ),
    ] = False
    range: Annotated[
        list[float] | None,
        typer.Option(
            "--range",
            metavar="SHARE",
            help="For fills, unpredictability and reserves: share of the address space in use; default 0.1, 0.5, 0.7, "
            "0.9, 1, and for reserves 0.7, 0.8, 0.9, 1. Repeatable.",
            rich_help_panel="Scope",
        ),
    ] = None
    fills: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="For fills: capacities to write; default 6, 3 with --quick.",
            rich_help_panel="Scope",
        ),
    ] = None
    prefill: Annotated[
        bool,
        typer.Option(
            "--prefill",
            help="For fills and unpredictability: write the drive sequentially first.",
            rich_help_panel="Scope",
        ),
    ] = False
    variant: Annotated[
        str,
        typer.Option(
            metavar="client|enterprise",
            help="For steady-state: 75 % of the address space, or all of it.",
            rich_help_panel="Scope",
        ),
    ] = "enterprise"
    set: Annotated[
        list[str] | None,
        settings_option("A setting of a sim: drive, such as capacity.utilization=0.8."),
    ] = None
    seed: Annotated[
        int,
        typer.Option(
            metavar="N", help="Seed of places and of the data written.", rich_help_panel="Scope"
        ),
    ] = 1

    def settings(self) -> Settings:
        """What is said about single experiments."""
        return Settings(
            fills=self.fills,
            ranges=tuple(self.range) if self.range else None,
            prefill=self.prefill,
            variant=self.variant,  # type: ignore[arg-type] # checked there
        )

    def open(self, target: str) -> Target:
        """The target, open for writing only if that was allowed."""
        destroys = self.destroys_data and not self.plan
        return open_target(target, self.set, destroys_data=destroys, seed=self.seed)


@add_options
def characterize(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help=TARGET_HELP,
        ),
    ],
    run: CharacterizeOptions,
    wear: WearOptions,
    output: ResultOptions,
) -> int:
    """Measure how a drive behaves as it fills, ages and is loaded; all data on it is lost.

    Writes within parts of the address space over drive fills, reads among writes, request size and depth, mixing, and
    steady state. A sim: drive runs in simulated time by the same code. What it costs a real drive is said first, and
    asked about where it is much.
    """
    output.check()
    if run.time_limit is not None and not run.time_limit > 0:
        raise WorkloadError(f"--time-limit: found {run.time_limit:g}, expected seconds above 0", "")
    settings = run.settings()
    experiments = choose(run.only or ())
    mode: Mode = "quick" if run.quick else "full"
    interrupted = False
    with run.open(target) as drive:
        estimates = plan(drive, experiments, mode, settings)
        bill = _bill(drive, estimates, wear)
        if run.plan:
            return _plan(drive, experiments, estimates, bill, output)
        if drive.writes_allowed:
            if drive.real_time and not output.quiet:
                for name, text in rows(drive, bill):
                    errors.note(f"{name}: {text}")
            wear.consent(drive, bill)
        with _Announcer(output) as announcer:
            try:
                found = carry_out(
                    drive,
                    run.only or (),
                    mode=mode,
                    seed=run.seed,
                    settings=settings,
                    time_limit_s=run.time_limit,
                    announce=announcer.begin,
                    progress=announcer.progress,
                )
            except CharacterizationInterrupted as stop:
                interrupted, found = True, stop.result
    finished = any(part.result is not None for part in found.parts)
    if interrupted and not finished:
        errors.note("interrupted before anything was finished")
        return 130
    moved = {"bytes_read": drive.bytes_read, "bytes_written": drive.bytes_written}
    document = found.to_json() | {"set": run.set or [], "costs": bill.to_dict(moved)}
    put_json(document, output.json)
    put_page(lambda: found, output)
    if not output.silent:
        _show(found)
        page.console().print(page.grid([("cost", asked(drive, bill))]))
    return _end(found, interrupted)


class _Announcer:
    """Says what an experiment will ask, and how far it is."""

    def __init__(self, output: ResultOptions) -> None:
        self._output = output
        self._bar: Bar | None = None

    def __enter__(self) -> _Announcer:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None

    def begin(self, experiment: Experiment, estimate: Estimate, seconds: float) -> None:
        """Take what is to come."""
        self._close()
        if not self._output.quiet:
            errors.note(f"{experiment.NAME}: {_asks(estimate)}, about {units.lasts(seconds)}")
        self._bar = Bar(self._output.bar, experiment.NAME, "steps/s").__enter__()

    def progress(self, experiment: Experiment, share: float) -> None:
        """Take how far it is."""
        if self._bar is not None:
            done = int(share * _STEPS)
            self._bar.update(Progress("measured", done, _STEPS, None, 0))


def _asks(estimate: Estimate) -> str:
    return (
        f"writes up to {units.size(estimate.bytes_written)} and reads up to {units.size(estimate.bytes_read)} in "
        f"{units.count(estimate.requests)} requests"
    )


def _bill(drive: Target, estimates: list[Estimate], wear: WearOptions) -> Bill:
    """What experiments will ask of a target in all."""
    read = sum(estimate.bytes_read for estimate in estimates) + PACE_BYTES
    written = sum(estimate.bytes_written for estimate in estimates) + PACE_BYTES
    whole = drive_bytes(drive)
    return Bill(
        read,
        written,
        whole,
        (read + written) / _BYTES_PER_S if drive.real_time else None,
        f"at {_BYTES_PER_S / 1e6:.0f} MB/s; the drive's own speed shows only once it may be written",
        wear.endurance(whole),
    )


def _plan(
    drive: Target,
    experiments: list[Experiment],
    estimates: list[Estimate],
    bill: Bill,
    output: ResultOptions,
) -> int:
    """Say what would be asked."""
    document = {
        "target": {"name": drive.name, "kind": drive.kind, "capacity_bytes": drive.capacity_bytes},
        "plan": [
            {
                "name": experiment.NAME,
                "about": experiment.ABOUT,
                "bytes_read": estimate.bytes_read,
                "bytes_written": estimate.bytes_written,
                "requests": estimate.requests,
            }
            for experiment, estimate in zip(experiments, estimates, strict=True)
        ],
        "costs": bill.to_dict(),
    }
    put_json(document, output.json)
    if not output.silent:
        names = ("writes", "reads", "requests", "at 500 MB/s")
        table = page.plain_table("experiment", *names, right=names)
        for experiment, estimate in zip(experiments, estimates, strict=True):
            seconds = (estimate.bytes_written + estimate.bytes_read) / _BYTES_PER_S
            table.add_row(
                experiment.NAME,
                units.size(estimate.bytes_written),
                units.size(estimate.bytes_read),
                units.count(estimate.requests),
                units.lasts(seconds),
            )
        out = page.console()
        out.print(table)
        out.print(page.grid([(f"in all, {name}", text) for name, text in rows(drive, bill)]))
    return 0


def _end(found: Characterization, interrupted: bool) -> int:
    """Say what nobody should miss; the exit status."""
    if interrupted:
        errors.note("interrupted; the figures cover what was finished")
        return 130
    if found.ended == "failed":
        errors.fault(found.notes[0], "the figures cover what was finished before")
        return 1
    if found.ended == "time-limit":
        errors.note("the time limit has passed; the figures cover what was finished")
    return 0


def _show(found: Characterization) -> None:
    out = page.console()
    clock = "real time" if found.real_time else "simulated"
    rows = [
        (
            "target",
            f"{found.target}: {units.size(found.capacity_bytes)}, blocks of {units.size(found.block_bytes)}, {clock}",
        ),
        ("mode", f"{found.mode}; seed {found.seed}"),
        *(("note", note) for note in found.notes),
    ]
    out.print(page.grid(rows))
    for part in found.parts:
        if part.result is None:
            continue
        early = "" if part.ended == "complete" else f" (ended early: {part.ended})"
        out.print(f"\n{part.name}{early}: {headline(part.result)}")
        header, cells = table_of(part.result)
        table = page.plain_table(*header, right=header[1:])
        for row in cells:
            table.add_row(*(cell.shown for cell in row))
        out.print(table)
