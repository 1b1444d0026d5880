"""Files of a command line that must not be the same: an output is no input, and no other output."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flashwright.errors import OutputError
from flashwright.support.files import is_same_file

__all__ = ["check_files"]

_OUTPUTS = {
    "--json",
    "--report",
    "--closeup-out",
    "--requests-out",
    "--windows-out",
    "--checkpoint",
    "--out",
    "--output",
    "--summary",
    "--save",
    "--state",
    "--record",
    "--record-data",
    "--image",
}
"""Options that name a file to write; an argument that does has the metavar OUT."""

_UNDER_TEST = {"TARGET", "--before"}
"""What names a device or a file that is written over with ``--destroys-data``."""

_WORDS = {"--label", "--note"}
"""Options that name no file, whatever they say."""

_TOGETHER = {frozenset({"--checkpoint", "--resume"}), frozenset({"--json", "--from-json"})}
"""What may be one file: a run that goes on is saved where it was, and verdicts are judged again in place."""


def check_files(parameters: list[Any], values: dict[str, Any]) -> None:
    """Refuse a command line that would write over what it reads, or write two things to one file.

    Parameters
    ----------
    parameters : list of click.Parameter
        Those of the command.
    values : dict
        What was given, by their names.

    Raises
    ------
    OutputError
        If it would; nothing was written.
    """
    named = [(each, values[each.name]) for each in parameters if values.get(each.name) is not None]
    destroys = bool(values.get("destroys_data"))
    outputs = [
        each for each, _ in named if _is_output(each) or (destroys and _shown(each) in _UNDER_TEST)
    ]
    written = [
        (each, Path(path))
        for each, value in named
        if each in outputs
        for path in (value if isinstance(value, list | tuple) else [value])
        if str(path) != "-"
    ]
    for at, (output, path) in enumerate(written):
        for other, same in written[at + 1 :]:
            if is_same_file(path, same):
                raise OutputError(
                    f"{_shown(output)} and {_shown(other)}: found {path} for both, expected two files",
                    "",
                )
        for other, value in named:
            if (
                other in outputs
                or _shown(other) in _WORDS
                or frozenset({_shown(output), _shown(other)}) in _TOGETHER
            ):
                continue
            if path.exists() and any(is_same_file(path, each) for each in _files_in(value)):
                raise OutputError(
                    f"{_shown(output)}: found {path}, which {_shown(other)} reads, expected another file",
                    "write to a new file, and rename it once it is there",
                )


def _is_output(parameter: Any) -> bool:
    return _shown(parameter) in _OUTPUTS or parameter.metavar == "OUT"


def _shown(parameter: Any) -> str:
    """A parameter as it is typed."""
    is_argument = parameter.param_type_name == "argument"
    return str(parameter.metavar if is_argument else max(parameter.opts, key=len))


def _files_in(value: Any) -> Iterator[Path]:
    """The files that a value may name: itself, or a part such as that of ``model:FILE`` or ``KEY=FILE``."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from _files_in(each)
    elif isinstance(value, str | Path):
        text = os.fspath(value)
        for part in {
            text,
            *re.split("[:=,]", text),
            text.partition(":")[2],
            text.partition("=")[2],
        }:
            if part:
                yield Path(part)
