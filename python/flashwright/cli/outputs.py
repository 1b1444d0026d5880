"""Options for what a command writes, and the checks before it begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from flashwright.errors import ArgumentError, OutputError, SweepError, WorkloadError
from flashwright.simulation.run import Run
from flashwright.simulation.ssd import Ssd
from flashwright.support.files import check_writable
from flashwright.support.tablefiles import check_table

__all__ = [
    "TABLE",
    "Json",
    "OutputOptions",
    "ResultOptions",
    "SavingOptions",
    "WorkerOptions",
    "check_page",
    "refuse_stdout",
]

Json = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write the figures as JSON; - is standard output.",
        rich_help_panel="Output",
    ),
]

TABLE = ".parquet, .arrow, .csv or .json"
"""The formats of tables, as help names them."""


@dataclass
class ResultOptions:
    """Where results go."""

    json: Json = None
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            help="Write a self-contained HTML page of plots.",
            rich_help_panel="Output",
        ),
    ] = None
    figures: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Every chart of the report as NN-name.svg, .pdf, .png and .csv, for papers; needs Matplotlib.",
            rich_help_panel="Output",
        ),
    ] = None
    figures_size: Annotated[
        str | None,
        typer.Option(
            metavar="WIDTH,HEIGHT",
            help="The size of each of --figures, such as 84mm,60mm; by default a column's width, and the height that "
            "it needs.",
            rich_help_panel="Output",
        ),
    ] = None
    figures_style: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STYLE",
            help="How --figures look: serif, sans, a style of Matplotlib, or a file of one (.mplstyle). Repeatable; "
            "later ones come before earlier ones.",
            rich_help_panel="Output",
        ),
    ] = None
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", help="Print no table and no progress bar.", rich_help_panel="Output"
        ),
    ] = False
    progress: Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress",
            help="Show progress even where standard error is no terminal, or never.",
            rich_help_panel="Output",
        ),
    ] = None

    @property
    def to_stdout(self) -> bool:
        """Whether the figures go to standard output, which then has nothing else."""
        return self.json == Path("-")

    @property
    def silent(self) -> bool:
        """Whether no table is printed."""
        return self.quiet or self.to_stdout

    @property
    def bar(self) -> bool | None:
        """Whether progress is shown; None leaves it to whether somebody watches."""
        return False if self.quiet else self.progress

    def check(self, *files: Path | None, **tables: Path | None) -> None:
        """Find out before the run whether its files can be written.

        Parameters
        ----------
        *files : Path or None
            Files of no fixed format.
        **tables : Path or None
            Files of tables, by their options' names with ``_`` for ``-``.
        """
        if not self.to_stdout and self.json is not None:
            check_writable(self.json)
        if self.report is not None:
            check_page("--report", self.report)
        for path in files:
            if path is not None:
                refuse_stdout("FILE", path)
                check_writable(path)
        for name, path in tables.items():
            if path is not None:
                check_table(path, f"--{name.replace('_', '-')}")
        if self.figures_size is not None:
            from flashwright.report.paper import size_of

            size_of(self.figures_size)
        if self.figures is None:
            for option, given in (("size", self.figures_size), ("style", self.figures_style)):
                if given:
                    raise ArgumentError(
                        f"--figures-{option}: found without --figures, expected both"
                    )
        else:
            from flashwright.report.paper import check_figures
            from flashwright.report.paper.looks import look_of

            check_figures(self.figures)
            look_of(self.figures_style)


@dataclass
class OutputOptions(ResultOptions):
    """Where the results of a run go."""

    closeup_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"A row for each request of --closeup: {TABLE}.",
            rich_help_panel="Output",
        ),
    ] = None

    def check(self, *files: Path | None, **tables: Path | None) -> None:
        """Find out before the run whether its files can be written."""
        super().check(*files, closeup_out=self.closeup_out, **tables)


@dataclass
class SavingOptions:
    """A run that is saved and continues later."""

    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Save the run here if it stops before its end.",
            rich_help_panel="Saving and resuming",
        ),
    ] = None
    checkpoint_every: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Also save the run at this interval.",
            rich_help_panel="Saving and resuming",
        ),
    ] = None
    stop_after: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Stop after N requests in total, to continue later.",
            rich_help_panel="Saving and resuming",
        ),
    ] = None
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Continue a saved run.", rich_help_panel="Saving and resuming"
        ),
    ] = None

    def check(self) -> None:
        """Refuse what contradicts itself."""
        every = self.checkpoint_every
        if every is not None and self.checkpoint is None:
            raise WorkloadError(
                "--checkpoint-every: found without --checkpoint, expected both",
                "name a file to save to",
            )
        if every is not None and every <= 0:
            raise WorkloadError(f"--checkpoint-every: found {every}, expected seconds above 0", "")
        if self.stop_after is not None and self.stop_after < 1:
            raise WorkloadError(f"--stop-after: found {self.stop_after}, expected 1 or more", "")

    def load(self, given: Sequence[str], device: str | None) -> Run:
        """The saved run, beside which nothing that makes a run may be given."""
        assert self.resume is not None
        if given:
            raise WorkloadError(
                f"{', '.join(given)}: found with --resume, expected no option that defines a run",
                "a saved run continues with the options that it was started with",
            )
        made = Run.load(self.resume)
        if device is not None and Ssd.find(device).toml != made.toml:
            raise WorkloadError(
                f"{device}: found with --resume of a run on another drive", "leave DEVICE out"
            )
        return made


@dataclass
class WorkerOptions:
    """What computes the points of a sweep or of claims."""

    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Use N processes; by default one per core.",
            rich_help_panel="Processes",
        ),
    ] = None
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Compute on the workers of this Dask scheduler, such as tcp://host:8786.",
            rich_help_panel="Processes",
        ),
    ] = None

    def check(self) -> None:
        """Refuse what contradicts itself."""
        if self.jobs is not None and self.jobs < 1:
            raise SweepError(f"--jobs: found {self.jobs}, expected a whole number from 1 up", "")
        if self.dask is not None and self.jobs is not None:
            raise SweepError(
                "--jobs and --dask: found both, expected one of them",
                "the cluster has as many workers as were started for it",
            )


def refuse_stdout(option: str, path: Path) -> None:
    """Refuse ``-`` where a file is needed, so that there is never one of that name."""
    if path == Path("-"):
        raise OutputError(
            f"{option}: found '-', expected the name of a file",
            "only --json and OUT of `trace convert` go to standard output as -",
        )


def check_page(option: str, path: Path) -> None:
    """Find out whether a page can be written, which is HTML whatever it is called."""
    refuse_stdout(option, path)
    if path.suffix.lower() not in (".html", ".htm") and not (path.exists() and not path.is_file()):
        raise OutputError(
            f"{option}: found {str(path)!r}, expected a file whose name ends in .html",
            "the page is HTML; a browser prints it as PDF",
        )
    check_writable(path)
