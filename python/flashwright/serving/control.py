"""Talking to a served drive through its control socket."""

from __future__ import annotations

import json
import socket
from typing import Any

from flashwright.errors import ServeError
from flashwright.support.arguments import checked

__all__ = ["ask"]


@checked(seconds=(0.001, 1e6))
def ask(address: str, command: str, *, seconds: float = 60.0, **arguments: object) -> Any:
    """Give a served drive a command, and return its answer.

    A connection takes commands one after the other, each a line of JSON, and answers each with a line. This opens one
    for a single command.

    Parameters
    ----------
    address : str
        The control socket, as it was given to ``ctl``: ``unix:PATH``.
    command : str
        ``stats``, ``trim-all``, ``mark``, ``set``, ``cut``, ``mount``, ``snapshot`` (with ``file``, an absolute path)
        or ``stop``.
    seconds : float, optional
        How long to wait for the answer.
    **arguments
        Of commands that take some: ``text`` of ``mark``, ``settings`` of ``set``.

    Returns
    -------
    object
        What the command answers, as JSON has it.

    Raises
    ------
    ServeError
        If nobody listens there, or the command is refused.

    Examples
    --------
    >>> import flashwright, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with flashwright.serve("default", ctl=f"unix:{folder}/ctl") as drive:
    ...         ask(f"unix:{folder}/ctl", "stats")["requests"]["write"]
    0
    """
    kind, _, path = address.partition(":")
    if kind != "unix" or not path:
        raise ServeError(
            f"{address}: expected unix:PATH", "the socket that `flashwright serve --ctl` named"
        )
    line = json.dumps({"command": command, **arguments}).encode() + b"\n"
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(seconds)
            connection.connect(path)
            connection.sendall(line)
            answered = connection.makefile("rb").readline()
    except TimeoutError:
        raise ServeError(f"{address}: no answer within {seconds:g} s", "") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ServeError(
            f"{address}: {reason}", "is a drive served by `flashwright serve --ctl` there?"
        ) from None
    try:
        answer = json.loads(answered)
    except ValueError:
        raise ServeError(f"{address}: found no answer, expected a line of JSON", "") from None
    if "error" in answer:
        raise ServeError(answer["error"], "")
    return answer["result"]
