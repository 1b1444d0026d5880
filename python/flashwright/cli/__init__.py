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
from flashwright.cli.help import Command, Group
from flashwright.cli.render import errors
from flashwright.errors import FlashwrightError
from flashwright.record import RecordError

__all__ = ["app", "main"]

_EXAMPLES = """\b
Examples:
  flashwright simulate --workload zipf:write=0.7,depth=32 --precondition random
  flashwright compare default --vary gc.victim=greedy,fifo --report page.html
  flashwright trace info requests.spc.gz

`flashwright COMMAND --help` lists what a command takes. In a pipe, tables are as wide as they need to be; COLUMNS sets
another width.
"""

app = typer.Typer(
    name="flashwright",
    cls=Group,
    help="Simulate solid-state drives, and look into real ones from the outside.",
    epilog=_EXAMPLES,
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
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Take what stands before the command."""


for _panel, _commands in {
    "Simulate": (simulate.simulate, compare.compare),
    "Look into a drive": (probe.probe, characterize.characterize, replay.replay),
    "Plan": (advise.advise, lifetime.lifetime),
    "Papers and grids": (reproduce.reproduce, sweep.sweep),
}.items():
    for _command in _commands:
        app.command(_command.__name__, cls=Command, rich_help_panel=_panel)(_command)
app.add_typer(trace.app, name="trace", rich_help_panel="Traces and lists")
app.command("policies", cls=Command, rich_help_panel="Traces and lists")(policies.policies)
app.command("devices", cls=Command, rich_help_panel="Traces and lists")(devices.devices)


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
