"""Talking to a served drive through its control socket."""

from __future__ import annotations

import json
import re
import socket
import time
from typing import Any

from flashwright.errors import ServeError
from flashwright.support.arguments import checked
from flashwright.support.files import reason

__all__ = ["ask"]

_ANSWER_MAX = 16 << 20
"""Longest answer in bytes: the figures of the largest drive take some KiB."""


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
        How long to wait for the whole answer.
    **arguments
        Of commands that take some: ``text`` of ``mark``, ``settings`` of ``set``.

    Returns
    -------
    object
        What the command answers, as JSON has it.

    Raises
    ------
    ServeError
        If nobody listens there, the answer is none, or the command is refused.

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
            answered = _line(connection, address, time.monotonic() + seconds)
    except TimeoutError:
        raise ServeError(f"{address}: no answer within {seconds:g} s", "") from None
    except OSError as error:
        raise ServeError(
            f"{address}: {reason(error)}", "is a drive served by `flashwright serve --ctl` there?"
        ) from None
    try:
        answer = json.loads(answered)
        if "error" in answer:
            # Others may lay it out by what a line of ours has not.
            raise ServeError(re.sub(r"[^\S\n]", " ", str(answer["error"])), "")
        return answer["result"]
    except (ValueError, RecursionError, LookupError, TypeError):
        raise ServeError(f"{address}: found no answer, expected a line of JSON", "") from None


def _line(connection: socket.socket, address: str, until: float) -> bytes:
    """The line that is answered, however it is cut; what there is of it if the connection ends."""
    answered = bytearray()
    while not answered.endswith(b"\n"):
        connection.settimeout(max(until - time.monotonic(), 0.001))
        part = connection.recv(1 << 16)
        if not part:
            break
        if time.monotonic() > until:
            raise TimeoutError
        answered += part
        if len(answered) > _ANSWER_MAX:
            raise ServeError(f"{address}: found an answer of more than 16 MiB", "")
    return bytes(answered)
