"""How help is laid out: options and commands in groups, as plain text that fits 80 columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from typer.core import TyperArgument, TyperCommand, TyperGroup

from flashwright.cli.plainvalues import make_plain
from flashwright.cli.render import errors

__all__ = ["PANELS", "Command", "Group", "about", "panel_of"]

PANELS = (
    "Server",
    "Variations",
    "Workload",
    "Scope",
    "The drive",
    "The host",
    "Measurement",
    "Processes",
    "Saving and resuming",
    "Output",
    "Options",
)
"""The groups of options in the order in which help lists them; each option names its own."""

_OF_EVERY_COMMAND = "Options"
_OTHERS = "More"
_NAMES_MAX = 30


def _write(formatter: Any, sections: dict[str, list[tuple[str, str]]]) -> None:
    """Sections whose names share a column."""
    rows = [row for section in sections.values() for row in section]
    width = min(max((len(name) for name, _ in rows), default=0), _NAMES_MAX)
    for name, section in sections.items():
        if section:
            with formatter.section(name):
                formatter.write_dl([(row.ljust(width), text) for row, text in section])


def _options(command: Any, context: Any) -> dict[str, list[tuple[str, str]]]:
    """Arguments and options of a command as help lists them, by section."""
    sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
    sections |= {panel: [] for panel in (*PANELS, _OTHERS)}
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record is None:
            continue
        if isinstance(param, TyperArgument):
            help_text = record[1].replace("[required]", "").strip()
            sections["Arguments"].append((_bare(param), help_text))
        else:
            sections[panel_of(param)].append(record)
    return sections


def panel_of(option: Any) -> str:
    """The group under which help lists an option."""
    if {"--help", "--version"} & set(option.opts):
        return _OF_EVERY_COMMAND
    return getattr(option, "rich_help_panel", None) or _OTHERS


def _bare(argument: TyperArgument) -> str:
    name = (argument.metavar or argument.name or "").strip("[]")
    return name if argument.nargs == 1 or "..." in name else f"{name}..."


def _usage(command: Any, context: Any) -> list[str]:
    pieces = ["[OPTIONS]"]
    for param in command.get_params(context):
        if isinstance(param, TyperArgument) and not param.hidden:
            bare = _bare(param)
            pieces.append(bare if param.required else f"[{bare}]")
    return pieces


class Command(TyperCommand):
    """A command whose help lists options in groups."""

    titles: ClassVar[Mapping[str, str]] = {}
    """Names of groups that this command calls otherwise."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take what was typed."""
        make_plain(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Carry the command out, unless it would write over what it reads."""
        from flashwright.cli.samefile import check_files

        check_files(self.params, ctx.params)
        errors.options_of_the_command.clear()
        errors.options_of_the_command.update(each for param in self.params for each in param.opts)
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options."""
        sections = _options(self, ctx)
        _write(formatter, {self.titles.get(name, name): rows for name, rows in sections.items()})

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What stands behind the command's name in its usage."""
        return _usage(self, ctx)


class Group(TyperGroup):
    """Commands that help lists in groups, each with its whole first sentence."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take what was typed."""
        make_plain(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write commands, then options."""
        self.format_commands(ctx, formatter)
        _write(formatter, _options(self, ctx))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands."""
        _write(formatter, self.listing(ctx))

    def listing(self, ctx: Any) -> dict[str, list[tuple[str, str]]]:
        """Names and first sentences of the commands, by group."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                panel = getattr(command, "rich_help_panel", None) or "Commands"
                sections.setdefault(panel, []).append((name, about(command)))
        return sections


def about(command: Any) -> str:
    """What a listing says of a command: the first sentence of its help."""
    return " ".join((command.help or "").split("\n\n")[0].split())
