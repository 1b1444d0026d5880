"""The command line: each command parses, calls the library once, and renders.

One file a command. Exit status: 0 done; 1 the check that was asked for failed; 2 bad input or
configuration; 130 interrupted by Ctrl-C and 143 by SIGTERM, with what was finished still written; 141
nobody reads standard output any more.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from flashwright import __version__, interrupts
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
    schema,
    simulate,
    streams,
    sweep,
    trace,
)
from flashwright.cli.help import Command, Group
from flashwright.cli.render import errors
from flashwright.errors import FlashwrightError
from flashwright.files import reason
from flashwright.record import RecordError

__all__ = ["app", "main"]

_EXAMPLES = """\b
Examples:
  flashwright simulate --workload zipf:write=0.7,depth=32 --precondition workload
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
app.command("schema", cls=Command, rich_help_panel="Traces and lists")(schema.schema)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the program's name; by default the process's own.
    """
    try:
        streams.prepare()
        status = run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        status = 130
    interrupts.end_quietly()
    sys.exit(status)


def run(arguments: list[str]) -> int:
    """Run the command line and give its exit status."""
    with interrupts.heeded() as heard:
        try:
            status = _run(arguments, heard)
        except KeyboardInterrupt:
            # A second Ctrl-C, or one at the very last moment.
            status = 130
    return heard.status if status == 130 else status


def _run(arguments: list[str], heard: interrupts.Heard) -> int:
    """Carry out the command; whatever goes wrong becomes a line and an exit status."""
    try:
        status = _invoke(arguments or ["--help"])
        sys.stdout.flush()
        return status
    except _UsageError as error:
        context = getattr(error, "ctx", None)
        name = "flashwright" if context is None else context.command_path
        errors.fault(_sentence(error.format_message()), f"`{name} --help` lists what it takes")  # type: ignore[attr-defined]
        return 2
    except (FlashwrightError, RecordError) as error:
        _show_traceback()
        errors.fault(str(error), error.hint)
        return 2
    except (KeyboardInterrupt, typer.Abort):
        _show_traceback()
        errors.note("interrupted")
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone: nothing is left to say, not even on the way out.
        streams.drop_output()
        return 141
    except SystemExit as stop:
        # Rich leaves so where it meets a broken pipe.
        if isinstance(stop.__context__, BrokenPipeError):
            streams.drop_output()
            return 141
        return stop.code if isinstance(stop.code, int) else 1
    except MemoryError:
        _show_traceback()
        errors.fault("out of memory", "try a smaller drive, fewer --jobs, or no --requests-out")
        return 2
    except Exception as error:
        _show_traceback()
        if heard.number is not None:
            # Modules that are imported when they are needed take an interruption for a failure of their own.
            errors.note("interrupted")
            return 130
        return _failed(error)


def _invoke(arguments: list[str]) -> int:
    # Not by calling `app`, which makes a status of an interruption that nobody was told of.
    command = typer.main.get_command(app)
    try:
        with command.make_context("flashwright", arguments) as context:
            status = command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    return status if isinstance(status, int) else 0


def _failed(error: Exception) -> int:
    """Tell a failure of the system from a fault of this program; the exit status."""
    if isinstance(error, OSError):
        where = "the system" if error.filename is None else os.fsdecode(error.filename)
        errors.fault(f"{where}: {reason(error)}")
        if where == streams.STDOUT:
            streams.drop_output()
        return 2
    first = next(iter(str(error).splitlines()), "")
    errors.fault(
        f"internal error: {type(error).__name__}{': ' if first else ''}{first}",
        f"this is a bug: please report it with the command that led here; {_TRACEBACK}=1 shows the traceback",
    )
    return 1


_TRACEBACK = "FLASHWRIGHT_TRACEBACK"


def _show_traceback() -> None:
    """For whoever looks for a fault: the exception that is being handled, in full, if asked for."""
    if os.environ.get(_TRACEBACK, "0") not in ("", "0"):
        traceback.print_exc()


def _sentence(message: str) -> str:
    """A parser's message in the style of all others: no capital, no full stop."""
    text = message.strip().rstrip(".").replace("\n", " ")
    return text[:1].lower() + text[1:]
