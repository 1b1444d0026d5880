"""The commands by name: the listing of all, and the import of the one that was asked for."""

from __future__ import annotations

import importlib
import os
from typing import Annotated, Any

import typer

from flashwright.cli.completion import VARIABLE, complete
from flashwright.cli.help import Command, Group
from flashwright.cli.render import errors
from flashwright.support import interrupts
from flashwright.support.core import version_line
from flashwright.support.publiccalls import papers_expected

__all__ = ["COMMANDS", "app", "invoke", "load"]

COMMANDS: dict[str, dict[str, str]] = {
    "Simulate": {
        "simulate": "Play a trace or a workload on a simulated drive.",
        "compare": "Play the same workload under several settings, and show the results side by side.",
        "rerun": "Play the runs of a result again, and say whether they come out the same.",
    },
    "Serve a drive": {
        "serve": "Serve a simulated drive over NBD, NVMe/TCP or vfio-user, so that real software uses it.",
        "crash": "Test what survives a loss of power: cut a recording short again and again, and check what is left.",
        "ctl": "Give a command to a drive that `flashwright serve` serves; the answer is JSON.",
    },
    "Examine a drive": {
        "probe": "Find a drive's hidden parameters by timing requests, with the evidence for each.",
        "characterize": "Measure how a drive behaves as it fills, ages and is loaded; all data on it is lost.",
        "watch": "Show what an NVMe drive in service counts: write amplification, wear, temperature.",
        "replay": "Play a trace or a workload on a real device or file, in real time, bypassing the page cache.",
    },
    "Plan": {
        "assess": "Say what a drive in service does under its load, how long it lasts, and which settings follow.",
        "advise": "Recommend how much spare space a workload needs, or how to set up a drive's host.",
        "lifetime": "Estimate how long a drive lasts: by formula, by simulating it to its end, or from SMART data.",
    },
    "Papers and grids": {
        "reproduce": "Rerun papers' tables and figures, and compare our numbers with theirs.",
        "sweep": "Run grids and lists of settings, each with several seeds, on all cores.",
    },
    "Traces and lists": {
        "policies": "List everything that can be chosen by name: schemes, policies, schedulers, workloads, formats.",
        "devices": "List the bundled drives, or print one as TOML.",
        "schema": "Print the JSON Schema of a document, with the meaning of everything in it.",
        "new": "Begin a crate of your own that builds a wheel of Flashwright with more in its core.",
        "convert": "Convert what another simulator reads: a drive, and a command for each workload.",
        "trace": "Summarise, compare, convert, scale, merge and record traces.",
    },
}
"""The commands in the groups of the listing, each with the first sentence of its help. Each is what ``flashwright.cli``
has under its name: a module with a function of that name, or with an ``app`` of several commands."""

_EXAMPLES = """\b
Examples:
  flashwright simulate --workload zipf:write=0.7,depth=32 --precondition workload
  flashwright compare default --vary gc.victim=greedy,fifo --report page.html
  flashwright trace info requests.spc.gz

`flashwright COMMAND --help` lists a command's options. Piped tables are as wide as they need to be; COLUMNS sets
another width.
"""

_ELSEWHERE = {"reproduce": "flashwright_papers.command"}
"""Commands that another distribution brings, with their modules."""

# Wherever typer keeps the parser's exceptions: the base of all that it raises for bad usage.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]


def load(name: str) -> Any:
    """Import a command.

    Parameters
    ----------
    name : str
        One of those in :data:`COMMANDS`.

    Returns
    -------
    click.Command
        As the parser takes it.

    Raises
    ------
    KeyError
        If there is none of that name.
    MissingPackageError
        If it belongs to the papers, and they are not installed.

    Examples
    --------
    >>> load("trace").list_commands(None)
    ['info', 'convert', 'merge', 'compare', 'fit', 'record']
    """
    panel = next((panel for panel, names in COMMANDS.items() if name in names), None)
    if panel is None:
        raise KeyError(name)
    home = _ELSEWHERE.get(name, f"flashwright.cli.{name}")
    with interrupts.importing(), papers_expected(f"flashwright {name}"):
        module = importlib.import_module(home)
    alone = typer.Typer(rich_markup_mode=None, add_completion=False)
    if hasattr(module, "app"):
        alone.add_typer(module.app, name=name, rich_help_panel=panel)
    else:
        alone.command(name, cls=Command, rich_help_panel=panel)(getattr(module, name))
    return typer.main.get_group(alone).commands[name]


class _Root(Group):
    """All commands: listed without an import, and each imported when it is looked up."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        names: dict[str, Any] = {name: None for listed in COMMANDS.values() for name in listed}
        self.commands = names

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name; None if there is none."""
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            self.commands[cmd_name] = load(cmd_name)
        return self.commands.get(cmd_name)

    def listing(self, ctx: Any) -> dict[str, list[tuple[str, str]]]:
        """Names and first sentences, by group."""
        return {panel: list(names.items()) for panel, names in COMMANDS.items()}


app = typer.Typer(
    name="flashwright",
    cls=_Root,
    help="Simulate solid-state drives, and probe real ones.",
    epilog=_EXAMPLES,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(version_line())
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_version,
            is_eager=True,
            help="Print the version and exit.",
            rich_help_panel="Options",
        ),
    ] = False,
) -> None:
    """Take what stands before the command."""


def invoke(arguments: list[str]) -> int:
    """Parse, carry out the command, and give its exit status; bad usage is reported here."""
    # Not by calling `app`, which turns an interruption into a status that nobody reported.
    command = typer.main.get_command(app)
    if VARIABLE in os.environ:
        return complete(command)
    try:
        with command.make_context("flashwright", arguments) as context:
            status = command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except _UsageError as error:
        asked = getattr(error, "ctx", None)
        name = "flashwright" if asked is None else asked.command_path.strip()
        errors.fault(_sentence(error.format_message()), f"`{name} --help` lists its options")  # type: ignore[attr-defined]
        return 2
    return status if isinstance(status, int) else 0


def _sentence(message: str) -> str:
    """A parser's message in the style of all others: no capital, no full stop."""
    text = message.strip().rstrip(".").replace("\n", " ")
    return text[:1].lower() + text[1:]
