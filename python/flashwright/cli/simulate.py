"""``flashwright simulate``: one run."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from flashwright.cli import completion
from flashwright.cli.options import (
    DEFAULT_DRIVE,
    DEFAULT_TRACE,
    PolicyFiles,
    RunOptions,
    add_options,
    check_closeup,
    check_snapshots,
    refuse_passing,
)
from flashwright.cli.outputs import TABLE, OutputOptions, SavingOptions
from flashwright.cli.render import errors, put_json, put_page
from flashwright.drive import policies
from flashwright.errors import OutputError, WorkloadError
from flashwright.simulation.results import RunResult
from flashwright.simulation.run import Run, RunInterrupted
from flashwright.support.bars import Bar
from flashwright.support.tablefiles import TableWriter, write_table

__all__ = ["simulate"]


@add_options
def simulate(
    run: RunOptions,
    output: OutputOptions,
    saving: SavingOptions,
    device: Annotated[
        str | None,
        typer.Argument(
            metavar="[DEVICE]",
            help="A bundled drive (`flashwright devices`) or a TOML file; default if left out.",
            autocompletion=completion.devices,
        ),
    ] = None,
    requests_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help=f"A row for every request: {TABLE}.", rich_help_panel="Output"
        ),
    ] = None,
    windows_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"A row for each window of time: {TABLE}.",
            rich_help_panel="Output",
        ),
    ] = None,
    policy: PolicyFiles = None,
) -> int:
    """Play a trace or a workload on a simulated drive.

    Without DEVICE the drive is the bundled one called default; without --trace and --workload the bundled recording of
    pgbench is played. Sizes are written 4KiB, 4k or 4096 (bytes); times need a unit.
    """
    saving.check()
    output.check(saving.checkpoint, requests_out=requests_out, windows_out=windows_out)
    made = (
        _resume(saving, device, run, output, requests_out, policy or [])
        if saving.resume is not None
        else _begin(device, run, output, saving, requests_out, policy or [])
    )
    # Rows go to the file as they come, unless a saved run is to have them too.
    streams = saving.checkpoint is None
    with contextlib.ExitStack() as at_end:
        rows = at_end.enter_context(TableWriter(requests_out)) if requests_out and streams else None

        interrupted = False
        try:
            with Bar(output.bar) as bar:
                result = made.go(
                    progress=bar.update,
                    stop_after=saving.stop_after,
                    checkpoint=saving.checkpoint,
                    checkpoint_every=saving.checkpoint_every,
                    on_requests=None if rows is None else rows.append,
                )
        except RunInterrupted as stop:
            interrupted = True
            if stop.result is None:
                errors.note("interrupted before anything was measured")
                return 130
            result = stop.result
        except OutputError:
            # The saved run or the rows could not be written: the figures are not lost with them.
            so_far = made.result()
            if so_far is not None:
                _write(so_far, output, None if streams else requests_out, windows_out, None)
            raise
        _write(result, output, requests_out, windows_out, rows)
    if interrupted:
        errors.note("interrupted; the figures cover what was finished")
        return 2 if made.unsaved else 130
    return 1 if result.violations else 0


def _begin(
    device: str | None,
    run: RunOptions,
    output: OutputOptions,
    saving: SavingOptions,
    requests_out: Path | None,
    policy: Sequence[str],
) -> Run:
    check_closeup(run, output)
    check_snapshots(run, output)
    ssd, source = run.drive(device or DEFAULT_DRIVE), run.played()
    refuse_passing(source, saving)
    settings = replace(
        run.settings(keep_requests=requests_out is not None),
        policies=[policies.load(text) for text in policy],
    )
    made = Run.create(ssd.toml, ssd.preconditioning or "empty", source, settings)
    if device is None and not output.quiet:
        errors.note(f"no DEVICE: playing on the bundled drive {DEFAULT_DRIVE}")
    if not run.given(["workload", "trace", "tenant"]) and not output.quiet:
        errors.note(f"neither --trace nor --workload: playing {DEFAULT_TRACE}")
    return made


def _resume(
    saving: SavingOptions,
    device: str | None,
    run: RunOptions,
    output: OutputOptions,
    requests_out: Path | None,
    policy: Sequence[str],
) -> Run:
    made = saving.load([*run.given(), *(["--policy"] if policy else [])], device)
    if output.closeup_out is not None and not made.keeps_closeup:
        raise WorkloadError(
            "--closeup-out: the saved run has no close-up", "give --closeup when you start the run"
        )
    if requests_out is not None and not made.keeps_requests:
        raise WorkloadError(
            "--requests-out: the saved run has no requests",
            "give --requests-out when you start the run",
        )
    return made


def _write(
    result: RunResult,
    output: OutputOptions,
    requests_out: Path | None,
    windows_out: Path | None,
    rows: TableWriter | None,
) -> None:
    put_json(result.json, output.json)
    if windows_out is not None:
        write_table(result.windows, windows_out)
    if rows is not None:
        rows.commit()
    elif requests_out is not None:
        write_table(result.requests(), requests_out)
    if output.closeup_out is not None and result.closeup is not None:
        write_table(result.closeup, output.closeup_out)
    put_page(lambda: result, output)
    if not output.silent:
        from flashwright.cli.render import page

        page.show_run(result)
    for violation in result.violations[:10]:
        errors.note(f"verify violation: {violation}")
