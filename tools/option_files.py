"""What is written from the schema of a run's options: their types for Python, and those of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from textwrap import fill, indent
from typing import Any

__all__ = ["for_command_line", "for_python"]

_WIDTH = 100
_WRITTEN = "Written by ``make generate`` from ``crates/sim/src/options.rs``; change that instead."
_TYPES = {"integer": "int", "number": "float", "boolean": "bool", "string": "str"}


class _Option:
    """One option, as its schema has it."""

    def __init__(self, name: str, schema: Mapping[str, Any]) -> None:
        self.name = name
        self.schema = schema
        found = schema["type"]
        kinds = found if isinstance(found, list) else [found]
        self.is_optional = "null" in kinds
        (kind,) = [each for each in kinds if each != "null"]
        self.is_pair = kind == "array"
        self.plain = "tuple[int, int]" if self.is_pair else _TYPES[kind]
        self.default = repr(schema["default"])
        summary, *more = schema["description"].split("\n\n")
        self.help = " ".join(filter(None, [_sentence(summary), schema.get("typed")]))
        self.text = " ".join(map(_sentence, [summary, *more]))

    @property
    def type(self) -> str:
        return f"{self.plain} | None" if self.is_optional else self.plain

    @property
    def is_of_run(self) -> bool:
        return self.schema.get("of") != "drive"

    @property
    def limits(self) -> tuple[str, int, int] | None:
        """Kind of number, least and most, where the schema has them."""
        least, most = self.schema.get("minimum"), self.schema.get("maximum")
        kind = "a number" if self.plain == "float" else "a whole number"
        return None if least is None or most is None else (kind, round(least), round(most))


def _sentence(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _options(schema: Mapping[str, Any]) -> Iterator[_Option]:
    for name, each in schema["properties"].items():
        yield _Option(name, each)


def for_python(schema: Mapping[str, Any]) -> str:
    """The module of a run's options: keywords, a dataclass with defaults, ranges, and their text for docstrings.

    Parameters
    ----------
    schema : mapping
        Of the options, as the core gives it.

    Returns
    -------
    str
        The whole file.
    """
    options = [each for each in _options(schema) if each.is_of_run]
    keywords = "".join(f"    {each.name}: {each.type}\n" for each in options)
    made = "".join(f"    {each.name}: {each.type} = {each.default}\n" for each in options)
    ranges = "".join(
        f'    "{each.name}": {each.limits},\n' for each in options if each.limits is not None
    )
    text = "".join(
        f"{each.name} : {each.plain.strip('()')}{', optional' if each.is_optional else ''}\n"
        + indent(fill(each.text, _WIDTH - 4), "    ")
        + "\n"
        for each in options
    )
    return (
        f'"""The options of a run, beside drive and workload.\n\n{_WRITTEN}\n"""\n\n'
        "from __future__ import annotations\n\n"
        "from dataclasses import dataclass\nfrom typing import TypedDict\n\n"
        '__all__ = ["LIMITS", "TEXT", "OptionKeywords", "RunOptions"]\n\n\n'
        "class OptionKeywords(TypedDict, total=False):\n"
        f'    """The options as keywords; :data:`TEXT` describes each."""\n\n{keywords}\n\n'
        "@dataclass(frozen=True)\nclass RunOptions:\n"
        f'    """The options with their defaults; :data:`TEXT` describes each."""\n\n{made}\n\n'
        f"LIMITS: dict[str, tuple[str, int, int]] = {{\n{ranges}}}\n"
        '"""Kind, least and most of the options that are numbers."""\n\n'
        f'TEXT = """\n{text}"""\n"""Every option as docstrings describe parameters."""\n'
    )


def for_command_line(schema: Mapping[str, Any]) -> str:
    """The module of a run's options as a command takes them.

    Parameters
    ----------
    schema : mapping
        Of the options, as the core gives it.

    Returns
    -------
    str
        The whole file.
    """
    options = [each for each in _options(schema) if "panel" in each.schema]
    return (
        f'"""The options of a run on the command line.\n\n{_WRITTEN}\n"""\n\n'
        "from __future__ import annotations\n\n"
        "from dataclasses import dataclass\nfrom typing import Annotated, Any\n\n"
        "import typer\n\n"
        "from flashwright.cli.traceoptions import pair\n\n"
        '__all__ = ["RunFlags"]\n\n\n'
        "@dataclass\nclass RunFlags:\n"
        '    """What makes a run, beside drive and workload."""\n\n'
        + "".join(map(_flag, options))
        + "\n    def options(self) -> dict[str, Any]:\n"
        '        """The options by their names in Python."""\n'
        "        return {\n"
        + "".join(_passed(each) for each in options if each.is_of_run)
        + "        }\n"
    )


def _flag(option: _Option) -> str:
    """A field of the dataclass that the command line makes options of."""
    schema = option.schema
    field = schema.get("option", option.name)
    kind = "str | None" if option.is_pair else option.type
    named = f'            "--{field}",\n' if option.plain == "bool" else ""
    metavar = f'            metavar="{schema["metavar"]}",\n' if "metavar" in schema else ""
    return (
        f"    {field}: Annotated[\n        {kind},\n        typer.Option(\n{named}{metavar}"
        f"            help={_literal(option.help)},\n"
        f'            rich_help_panel="{schema["panel"]}",\n        ),\n    ] = {option.default}\n'
    )


def _literal(text: str) -> str:
    """A string over several lines where it is long."""
    lines = fill(text, _WIDTH - 16).split("\n")
    if len(lines) == 1:
        return f'"{text}"'
    parts = [f'                "{line} "' for line in lines[:-1]] + [
        f'                "{lines[-1]}"'
    ]
    return "(\n" + "\n".join(parts) + "\n            )"


def _passed(option: _Option) -> str:
    field = option.schema.get("option", option.name)
    value = f"self.{field}"
    if option.is_pair:
        metavar = option.schema["metavar"]
        value = f'None if {value} is None else pair("--{field}", {value}, "{metavar}")'
    return f'            "{option.name}": {value},\n'
