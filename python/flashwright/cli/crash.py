"""``flashwright crash``: a recording of what was served is cut short, and what the drive then holds is checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flashwright.cli.options import add_options
from flashwright.cli.outputs import Json
from flashwright.cli.render import errors, page, put_json, units
from flashwright.cli.settingsoption import settings_option
from flashwright.errors import ServeError
from flashwright.serving.crash import CrashResult, CrashTest
from flashwright.support.bars import Bar
from flashwright.support.files import check_writable
from flashwright.support.progress import Progress

__all__ = ["crash"]

_SHOWN = 10


@add_options
def crash(
    recording: Annotated[
        Path,
        typer.Argument(metavar="FILE.fwr", help="What `flashwright serve --record-data` recorded."),
    ],
    check: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="What to run after each loss of power: it fails if the status is not 0. The shell finds the drive's "
            "content in the file $IMAGE, and the marks that were set in the file $MARKS.",
            rich_help_panel="Scope",
        ),
    ] = None,
    cuts: Annotated[
        int, typer.Option(metavar="N", help="How often the power fails.", rich_help_panel="Scope")
    ] = 100,
    seed: Annotated[
        int,
        typer.Option(metavar="N", help="What the moments are drawn with.", rich_help_panel="Scope"),
    ] = 1,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Checks side by side; by default one for each processor.",
            rich_help_panel="Processes",
        ),
    ] = None,
    set: Annotated[
        list[str] | None,
        settings_option("Change a setting of the drive, such as recovery.ignores-flush=true."),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Keep the images of failures there.", rich_help_panel="Output"
        ),
    ] = None,
    operation: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="In place of a test, write the image of a loss of power in this operation to --image.",
            rich_help_panel="Scope",
        ),
    ] = None,
    in_mount: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="With --operation, let the power fail again after so many operations of the mount.",
            rich_help_panel="Scope",
        ),
    ] = None,
    image: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --operation, the file to write.", rich_help_panel="Server"
        ),
    ] = None,
    json: Json = None,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", help="Print no table and no progress bar.", rich_help_panel="Output"
        ),
    ] = False,
    progress: Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress",
            help="Show progress even where standard error is no terminal, or never.",
            rich_help_panel="Output",
        ),
    ] = None,
) -> int:
    """Test what survives a loss of power: cut a recording short again and again, and check what is left.

    The status is 1 if a check failed.
    """
    if (check is None) == (operation is None):
        found = "neither" if check is None else "both"
        raise ServeError(
            f"--check and --operation: found {found}, expected one of them",
            "--check COMMAND tests many moments; --operation N --image FILE shows one",
        )
    if (operation is None) != (image is None) or (operation is None and in_mount is not None):
        raise ServeError(
            "--image and --in-mount: expected with --operation, and --operation with --image", ""
        )
    for path in (json, image):
        if path is not None and path != Path("-"):
            check_writable(path)
    test = CrashTest(recording, set or ())
    silent = quiet or json == Path("-")
    if operation is not None:
        assert image is not None
        one = test.cut(operation, image, in_mount=in_mount)
        if not silent:
            page.console().print(
                f"{image}: the drive after {units.count(one.requests_completed)} completed requests; "
                f"last mark: {one.marks[-1] if one.marks else 'none'}"
            )
        return 0
    assert check is not None
    with Bar(False if quiet else progress, unit="cuts/s") as bar:
        result = test.run(
            check,
            cuts,
            seed=seed,
            jobs=jobs,
            keep=keep,
            progress=lambda done, total: bar.update(
                Progress("measured", done, total, None, 0), "cuts"
            ),
        )
    put_json(result.json, json)
    if not silent:
        _show(result, keep)
    return 1 if result.failures else 0


def _show(result: CrashResult, keep: Path | None) -> None:
    rows = [
        ("recording", str(result.recording)),
        ("requests, marks", f"{units.count(result.requests)}, {units.count(result.marks)}"),
        ("programs and erases", units.count(result.operations)),
        ("losses of power", f"{units.count(result.cuts)}, drawn with seed {result.seed}"),
        ("again in the mount", units.count(result.cuts_in_mount)),
        ("failed checks", units.count(len(result.failures))),
        ("time", units.seconds(result.elapsed_s)),
    ]
    page.console().print(page.grid(rows))
    for failure in result.failures[:_SHOWN]:
        crash = failure.crash
        again = "" if crash.in_mount is None else f" --in-mount {crash.in_mount}"
        errors.fault(f"--operation {crash.operation}{again}: {failure.why}")
    if len(result.failures) > _SHOWN:
        errors.note(f"{units.count(len(result.failures) - _SHOWN)} more failed; --json has all")
    if result.failures and keep is not None:
        errors.note(f"their images are in {keep}")
