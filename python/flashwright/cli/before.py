"""``flashwright serve --before``: a device that exists over NBD, with schedulers before it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flashwright.errors import ServeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flashwright.cli.outputs import ResultOptions
    from flashwright.serving.proxy import ServedDevice
    from flashwright.simulation.replay import ReplayResult

__all__ = ["BeforeOptions"]


@dataclass
class BeforeOptions:
    """What is served in place of a simulated drive, and what stands before it."""

    before: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Serve this block device or file instead of a DEVICE, with the schedulers before it.",
            rich_help_panel="Server",
        ),
    ] = None
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Put I/O schedulers before --before, such as pasa+pai. Without this, requests are passed on as they "
            "come.",
            rich_help_panel="The host",
        ),
    ] = None
    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A TOML file of the drive's sizes, for schedulers that use them; without it all are unknown.",
            rich_help_panel="The host",
        ),
    ] = None
    destroys_data: Annotated[
        bool,
        typer.Option(
            "--destroys-data",
            help="Let clients write to --before, over its data. Without this they may only read.",
            rich_help_panel="The drive",
        ),
    ] = False
    queue_depth: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Requests outstanding at --before, 1 to 4096; by default 128, and 32 with a scheduler.",
            rich_help_panel="The host",
        ),
    ] = None

    def check(self, device: str | None, only_simulated: dict[str, bool]) -> None:
        """Refuse what does not go together.

        Parameters
        ----------
        device : str or None
            The simulated drive.
        only_simulated : dict of bool
            Options that only a simulated drive has, and whether they were given.
        """
        if self.before is None:
            if device is None:
                raise ServeError(
                    "DEVICE: found none, expected a drive to simulate, or --before PATH",
                    "`flashwright devices` lists drives",
                )
            for name in ("scheduler", "profile", "destroys_data", "queue_depth"):
                if getattr(self, name):
                    raise ServeError(
                        f"--{name.replace('_', '-')}: found without --before, expected with it only",
                        "it is about a device that exists",
                    )
            return
        if device is not None:
            raise ServeError(
                f"DEVICE and --before: found both ({device}, {self.before}), expected one of them",
                "DEVICE is simulated, --before is a device that exists",
            )
        for name, given in only_simulated.items():
            if given:
                raise ServeError(
                    f"{name}: found with --before, expected only with a simulated drive",
                    "a device that exists keeps its own time and state",
                )

    def begin(self, nbd: Sequence[str], **settings: Any) -> ServedDevice:
        """Open the device and serve it."""
        from flashwright.cli.render import errors
        from flashwright.serving.proxy import serve_before

        assert self.before is not None
        read_only = settings.pop("read_only")
        quiet = settings.pop("quiet")
        served = serve_before(
            self.before,
            nbd,
            scheduler=self.scheduler,
            profile=self.profile,
            destroys_data=self.destroys_data,
            queue_depth=self.queue_depth,
            read_only=read_only,
            **settings,
        )
        if not (self.destroys_data or read_only or quiet):
            errors.note("clients may only read (--destroys-data lets them write)")
        return served

    @staticmethod
    def show(result: ReplayResult, served: dict[str, Any], output: ResultOptions) -> None:
        """Print what was measured."""
        from flashwright.cli.render import page, put_json, put_page
        from flashwright.cli.replay import table_of

        put_json(result.json | {"served": served}, output.json)
        put_page(lambda: result, output)
        if not output.silent:
            for part in table_of(result):
                page.console().print(part)
            page.show_served(served)
