"""Values as the parser would make them of what was typed, without what takes it longest to import.

Typer hands every value to pydantic, also one that was not given, and pydantic takes as long to import as a short run
lasts. Text, whole numbers, decimals and paths are the same with and without; the rest, and what is to be refused, is
left to the parser.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

__all__ = ["make_plain"]

_WHOLE = re.compile(r"-?[0-9]{1,15}")
_DECIMAL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
_OTHER = object()


def make_plain(parameters: list[Any]) -> None:
    """Have a command make plain values of its options and arguments itself.

    Parameters
    ----------
    parameters : list
        Of the command. Those of a version of Typer that keeps what makes their values elsewhere stay as they are.
    """
    for parameter in parameters:
        if getattr(parameter, "_runtime_param", _OTHER) is None:
            parameter._runtime_param = _Plain(parameter.type_descriptor)


class _Plain:
    """Makes plain values, in the place where Typer keeps what makes values of a parameter."""

    def __init__(self, descriptor: Any) -> None:
        self._descriptor = descriptor
        self._parser: Any = None

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """What the program is given for a value."""
        made = self._plain(value, param, ctx)
        if made is not _OTHER:
            return made
        if self._parser is None:
            from typer._coercion import build_runtime_param

            self._parser = build_runtime_param(self._descriptor)
        return self._parser.coerce(value, param=param, ctx=ctx)

    def _plain(self, value: Any, param: Any, ctx: Any) -> Any:
        kind, about = self._descriptor.annotation, self._descriptor.parameter_info
        is_list = param.multiple or param.nargs == -1
        if value is None:
            return () if is_list else None
        if about.parser is not None or about.clamp:
            return _OTHER
        if is_list:
            texts = kind == list[str] and isinstance(value, list | tuple)
            return list(value) if texts and all(type(each) is str for each in value) else _OTHER
        if type(value) is kind and kind in (bool, int, float):
            return value  # a default, which nobody typed
        if type(value) is not str:
            return _OTHER
        if kind is str:
            return value
        if kind is Path:
            from typer._param_types import coerce_cli_path

            return coerce_cli_path(Path(value), about, path_type=Path, param=param, ctx=ctx)
        if kind is int and _WHOLE.fullmatch(value):
            return _within(int(value), about)
        if kind is float and _DECIMAL.fullmatch(value):
            return _within(float(value), about)
        return _OTHER


def _within(value: float, about: Any) -> Any:
    is_low = about.min is not None and value < about.min
    is_high = about.max is not None and value > about.max
    return _OTHER if is_low or is_high else value
