"""How help is laid out: options and commands in groups, as plain text that fits 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from typer.core import TyperArgument, TyperCommand, TyperGroup

__all__ = ["PANELS", "Command", "Group", "about", "panel_of"]

PANELS: dict[str, tuple[str, ...]] = {
    "Server": (
        "--before",
        "--nbd",
        "--pace",
        "--in-flight-max",
        "--listen-anywhere",
        "--ctl",
        "--metrics",
        "--watch",
        "--image",
        "--record",
    ),
    "Variations": ("--vary",),
    "Workload": (
        "--workload",
        "--trace",
        "--from",
        "--format",
        "--columns",
        "--member",
        "--device",
        "--overlay",
        "--skip-bad-lines",
        "--order",
        "--time-unit",
        "--events",
        "--scale-footprint",
        "--start",
        "--addresses",
        "--repeat",
        "--time-scale",
        "--depth",
        "--requests",
        "--warmup",
        "--time-limit",
        "--seed",
        "--seeds",
    ),
    "Scope": (
        "--list",
        "--only",
        "--quick",
        "--plan",
        "--read-only",
        "--range",
        "--fills",
        "--prefill",
        "--variant",
        "--traces",
        "--given",
        "--search",
        "--experiments",
        "--target",
        "--utilizations",
        "--write-rate",
        "--cycles",
        "--capacity",
        "--used",
        "--written",
        "--effective",
        "--physical",
        "--endurance",
        "--simulate",
        "--fast-forward",
        "--measure-share",
        "--against-full",
        "--twin",
        "--check",
        "--against",
        "--despite-doubts",
        "--fit-limit",
        "--rated-endurance",
        "--smart",
        "--accept-wear",
    ),
    "The drive": ("--set", "--precondition", "--policy", "--destroys-data"),
    "The host": (
        "--scheduler",
        "--profile",
        "--queue-depth",
        "--busy-poll",
        "--host",
        "--block-device",
        "--write-to",
        "--force",
    ),
    "Measurement": ("--window", "--closeup", "--snapshots", "--verify", "--audit"),
    "Processes": ("--jobs", "--dask", "--shard"),
    "Saving and resuming": (
        "--checkpoint",
        "--checkpoint-every",
        "--stop-after",
        "--resume",
        "--state",
        "--store",
    ),
    "Output": (
        "--output",
        "--to",
        "--label",
        "--note",
        "--json",
        "--report",
        "--figures",
        "--out",
        "--summary",
        "--requests-out",
        "--windows-out",
        "--closeup-out",
        "--markdown",
        "--from-json",
        "--save",
        "--quiet",
        "--progress",
    ),
    "Options": ("--version", "--help"),
}
"""Options by the group under which help lists them, in this order."""

_OTHERS = "More"
_NAMES_MAX = 30


def panel_of(option: str) -> str:
    """The group under which help lists an option.

    Examples
    --------
    >>> panel_of("--trace"), panel_of("--unheard-of")
    ('Workload', 'More')
    """
    return next((panel for panel, options in PANELS.items() if option in options), _OTHERS)


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
    places = {option: at for at, option in enumerate(_flat(PANELS.values()))}
    found: list[tuple[int, str, tuple[str, str]]] = []
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record is None:
            continue
        if isinstance(param, TyperArgument):
            help_text = record[1].replace("[required]", "").strip()
            sections["Arguments"].append((_bare(param), help_text))
        else:
            known = [option for option in param.opts if option in places]
            option = known[0] if known else param.opts[0]
            found.append((places.get(option, len(places)), panel_of(option), record))
    for _, panel, record in sorted(found, key=lambda each: each[0]):
        sections[panel].append(record)
    return sections


def _flat(groups: Iterable[tuple[str, ...]]) -> list[str]:
    return [each for group in groups for each in group]


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

    def invoke(self, ctx: Any) -> Any:
        """Carry the command out, unless it would write over what it reads."""
        from flashwright.cli.samefile import check_files

        check_files(self.params, ctx.params)
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
