"""``flashwright simulate``: one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flashwright.cli.options import (
    DEFAULT_TRACE,
    OutputOptions,
    RunOptions,
    add_options,
    check_closeup,
    check_snapshots,
    find_drive,
)
from flashwright.cli.progress import Bar
from flashwright.cli.render import errors, page, put_json
from flashwright.errors import WorkloadError
from flashwright.results import RunResult, write_table
from flashwright.run import Run, RunInterrupted

__all__ = ["simulate"]


@add_options
def simulate(
    run: RunOptions,
    output: OutputOptions,
    device: Annotated[
        str | None,
        typer.Argument(
            metavar="DEVICE", help="A bundled drive (`flashwright devices`) or a TOML file."
        ),
    ] = None,
    requests_out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A row for every request, as .parquet or .arrow."),
    ] = None,
    windows_out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The time series, as .parquet or .arrow.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the run is saved if it stops before its end."),
    ] = None,
    checkpoint_every: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Save the run every so often too.")
    ] = None,
    stop_after: Annotated[
        int | None,
        typer.Option(metavar="N", help="Stop after so many requests in all, to go on later."),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Go on with a saved run.")
    ] = None,
) -> int:
    """Play a trace or a workload on a drive.

    Without --trace and --workload it plays the bundled recording of pgbench.
    """
    _check(checkpoint, checkpoint_every, stop_after)
    output.check(requests_out, windows_out, checkpoint)
    made = (
        _resume(resume, device, run, output, requests_out)
        if resume is not None
        else _begin(device, run, output, requests_out)
    )
    interrupted = False
    try:
        with Bar(False if output.quiet else output.progress) as bar:
            result = made.go(
                progress=bar.update,
                stop_after=stop_after,
                checkpoint=checkpoint,
                checkpoint_every=checkpoint_every,
            )
    except RunInterrupted as stop:
        interrupted = True
        if stop.result is None:
            errors.note("interrupted before anything was measured")
            return 130
        result = stop.result
    _write(result, output, requests_out, windows_out)
    if interrupted:
        errors.note("interrupted; the figures cover what was finished")
        return 130
    return 1 if result.violations else 0


def _check(checkpoint: Path | None, every: float | None, stop_after: int | None) -> None:
    if every is not None and checkpoint is None:
        raise WorkloadError(
            "--checkpoint-every: found it without --checkpoint, expected both",
            "name a file to save to",
        )
    if every is not None and every <= 0:
        raise WorkloadError(f"--checkpoint-every: found {every}, expected seconds above 0", "")
    if stop_after is not None and stop_after < 1:
        raise WorkloadError(f"--stop-after: found {stop_after}, expected 1 or more", "")


def _begin(
    device: str | None, run: RunOptions, output: OutputOptions, requests_out: Path | None
) -> Run:
    if device is None:
        raise WorkloadError(
            "DEVICE: found nothing, expected a drive", "such as `flashwright simulate default`"
        )
    check_closeup(run, output)
    check_snapshots(run, output)
    ssd, source = run.drive(device), run.source()
    settings = run.settings(keep_requests=requests_out is not None)
    made = Run.create(ssd.toml, ssd.preconditioning, source, settings)
    if run.workload is None and run.trace is None and not output.quiet:
        errors.note(f"neither --trace nor --workload: playing {DEFAULT_TRACE}")
    return made


def _resume(
    path: Path,
    device: str | None,
    run: RunOptions,
    output: OutputOptions,
    requests_out: Path | None,
) -> Run:
    if run.given():
        raise WorkloadError(
            f"{', '.join(run.given())}: found with --resume, expected none of what makes a run",
            "a saved run goes on as it was begun",
        )
    made = Run.load(path)
    if device is not None and find_drive(device).toml != made.toml:
        raise WorkloadError(
            f"{device}: found with --resume of a run on another drive", "leave DEVICE out"
        )
    if output.closeup_out is not None and not made.keeps_closeup:
        raise WorkloadError(
            "--closeup-out: the saved run keeps no close-up", "give --closeup to its first part"
        )
    if requests_out is not None and not made.keeps_requests:
        raise WorkloadError(
            "--requests-out: the saved run keeps no requests",
            "give --requests-out to its first part too",
        )
    return made


def _write(
    result: RunResult, output: OutputOptions, requests_out: Path | None, windows_out: Path | None
) -> None:
    put_json(result.json, output.json)
    if windows_out is not None:
        write_table(result.windows, windows_out)
    if requests_out is not None:
        write_table(result.requests(), requests_out)
    if output.closeup_out is not None and result.closeup is not None:
        write_table(result.closeup, output.closeup_out)
    if output.report is not None:
        result.report(output.report)
    if not output.silent:
        page.show_run(result)
    for violation in result.violations[:10]:
        errors.note(f"verify violation: {violation}")
