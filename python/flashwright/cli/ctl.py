"""``flashwright ctl``: commands to a drive that is served."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from flashwright.errors import ServeError
from flashwright.serving.control import ask

__all__ = ["ctl"]


def ctl(
    address: Annotated[
        str,
        typer.Argument(metavar="unix:PATH", help="The control socket that --ctl of `serve` named."),
    ],
    command: Annotated[
        str,
        typer.Argument(
            metavar="COMMAND",
            help="stats: the figures so far; trim-all: trim the whole drive; cut: cut its power; "
            "mount: mount it again; snapshot: write an image of it to FILE; stop: end the server in order.",
        ),
    ],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="With snapshot, the image to be made."),
    ] = None,
) -> int:
    """Give a command to a drive that `flashwright serve` serves; the answer is JSON.

    It goes to standard output. A command that is refused ends with status 2.
    """
    if (file is None) == (command == "snapshot"):
        found = "no file" if file is None else f"a file, {file}"
        expected = "a path for the image" if file is None else "none: only snapshot takes one"
        raise ServeError(f"{command}: found {found}, expected {expected}", "")
    where = str(file.absolute()) if file is not None else None
    answer = ask(address, command, file=where) if where else ask(address, command)
    print(json.dumps(answer, indent=2))
    return 0
