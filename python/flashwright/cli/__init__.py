"""The command line: each command parses, calls the library once, and renders.

One file a command. Exit status: 0 done; 1 the check that was asked for failed; 2 bad input or
configuration; 130 interrupted, with what was finished still written.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from flashwright import __version__
from flashwright.cli import (
    advise,
    characterize,
    compare,
    devices,
    lifetime,
    policies,
    probe,
    replay,
    reproduce,
    simulate,
    sweep,
    trace,
)
from flashwright.cli.render import errors
from flashwright.errors import FlashwrightError
from flashwright.record import RecordError

__all__ = ["app", "main"]

app = typer.Typer(
    name="flashwright",
    help="Solid-state drives from both sides: simulated, and probed from the outside.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

# Wherever typer keeps the parser's exceptions: the base of all that it raises for bad usage.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"flashwright {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Say which version this is."
        ),
    ] = False,
) -> None:
    """Take what stands before the command."""


app.command("simulate")(simulate.simulate)
app.command("compare")(compare.compare)
app.command("sweep")(sweep.sweep)
app.command("replay")(replay.replay)
app.command("probe")(probe.probe)
app.command("characterize")(characterize.characterize)
app.command("advise")(advise.advise)
app.command("lifetime")(lifetime.lifetime)
app.command("reproduce")(reproduce.reproduce)
app.add_typer(trace.app, name="trace")
app.command("policies")(policies.policies)
app.command("devices")(devices.devices)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the program's name; by default the process's own.
    """
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def run(arguments: list[str]) -> int:
    """Run the command line and give its exit status."""
    try:
        status = app(arguments or ["--help"], prog_name="flashwright", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except _UsageError as error:
        context = getattr(error, "ctx", None)
        name = "flashwright" if context is None else context.command_path
        errors.fault(_sentence(error.format_message()), f"`{name} --help` lists what it takes")  # type: ignore[attr-defined]
        return 2
    except (FlashwrightError, RecordError) as error:
        errors.fault(str(error), error.hint)
        return 2
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone: nothing is left to say, not even on the way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _sentence(message: str) -> str:
    """A parser's message in the style of all others: no capital, no full stop."""
    text = message.strip().rstrip(".").replace("\n", " ")
    return text[:1].lower() + text[1:]
