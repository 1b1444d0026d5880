"""What a shell completes: names of commands and options by the parser, and here the values of some options."""

from __future__ import annotations

import json
import os
from typing import Any

from flashwright.support.core import _core

__all__ = ["VARIABLE", "complete", "devices", "settings"]

VARIABLE = "_FLASHWRIGHT_COMPLETE"
"""The variable of the environment by which a shell asks, as Typer's scripts set it."""


def complete(command: Any) -> int:
    """Answer a shell that asks how a line goes on; the exit status."""
    from typer.completion import shell_complete

    return shell_complete(command, {}, "flashwright", VARIABLE, os.environ[VARIABLE])


def settings(incomplete: str) -> list[str]:
    """Settings of a drive that begin so: keys, and behind ``=`` what the key can be chosen from.

    Parameters
    ----------
    incomplete : str
        What stands there so far.

    Examples
    --------
    >>> settings("gc.vic")
    ['gc.victim=']
    >>> settings("gc.schedule=r")
    ['gc.schedule=rate-limited']
    """
    key, is_set, value = incomplete.partition("=")
    keys = json.loads(_core.settings())["keys"]
    if not is_set:
        return [f"{each['path']}=" for each in keys if each["path"].startswith(key)]
    chosen = [name for each in keys if each["path"] == key for name, _ in each["choices"]]
    return [f"{key}={name}" for name in chosen if name.startswith(value)]


def devices(incomplete: str) -> list[str]:
    """Bundled drives whose names begin so.

    Examples
    --------
    >>> devices("micron")
    ['micron-7450-max']
    """
    return [name for name, _ in _core.devices() if name.startswith(incomplete)]
