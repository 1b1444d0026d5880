"""``flashwright ctl``: commands to a drive that is served."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

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
            help="stats: the figures so far; trim-all: trim the whole drive; mark TEXT: note in the recording with "
            "data that something is done; set KEY=VALUE ...: restart the drive with other settings of gc or ram; "
            "cut: cut its power; mount: mount it again; "
            "snapshot FILE: write an image of it; stop: end the server in order.",
        ),
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="...",
            help="What is done, with mark; KEY=VALUE, with set; the image, with snapshot.",
        ),
    ] = None,
) -> int:
    """Give a command to a drive that `flashwright serve` serves; the answer is JSON.

    It goes to standard output. A command that is refused ends with status 2.
    """
    given: dict[str, Any] = {}
    if command == "mark" and arguments:
        given = {"text": " ".join(arguments)}
    elif command == "set" and arguments:
        given = {"settings": arguments}
    elif command == "snapshot" and arguments and len(arguments) == 1:
        given = {"file": str(Path(arguments[0]).absolute())}
    elif command == "snapshot":
        found = "no file" if not arguments else f"{len(arguments)} files"
        raise ServeError(f"snapshot: found {found}, expected a path for the image", "")
    elif arguments:
        raise ServeError(f"found {arguments[0]!r} after {command}, expected nothing", "")
    print(json.dumps(ask(address, command, **given), indent=2))
    return 0
