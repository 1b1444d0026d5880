"""``flashwright ctl``: commands to a drive that is served."""

from __future__ import annotations

import json
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
            help="stats: the figures so far; trim-all: trim the whole drive; mark TEXT: note in the recording with data "
            "that something is done; set KEY=VALUE: restart the drive with another setting of gc or ram; "
            "cut: cut its power; mount: mount it again; stop: end the server in order.",
        ),
    ],
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="What is done, with mark; KEY=VALUE, with set.")
    ] = None,
) -> int:
    """Give a command to a drive that `flashwright serve` serves; the answer is JSON.

    It goes to standard output. A command that is refused ends with status 2.
    """
    if text is not None and command not in ("mark", "set"):
        raise ServeError(f"TEXT: found with {command}, expected only with mark or set", "")
    arguments = {} if text is None else {"text": text}
    print(json.dumps(ask(address, command, **arguments), indent=2))
    return 0
