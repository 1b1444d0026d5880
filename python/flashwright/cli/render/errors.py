"""Lines for standard error: what is wrong and what to try, never a traceback."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from flashwright.errors import FlashwrightError
from flashwright.support.printable import printable

__all__ = ["as_typed", "beyond_command", "fault", "note", "options_of_the_command", "typed"]

_TYPED = {
    "audit_every": "--audit",
    "device": "--block-device",
    "document": "--from-json",
    "folder": "--write-to",
    "ranges": "--range",
    "settings": "--set",
    "targets": "--target",
    "wanted": "CLAIM",
    "workers": "--jobs",
}
"""What is typed for the parameters of calls whose names the command line does not take over."""

options_of_the_command: set[str] = set()
"""Those of the command that runs: errors of the core that begin with the name of one are about it."""

_NAMES = re.compile(r"[\w.-]+((, | and )[\w.-]+)*")


def fault(message: str, hint: str = "") -> None:
    """Say what is wrong, a line a fault, and what to try."""
    for line in message.splitlines():
        print(f"error: {printable(line)}", file=sys.stderr)
    if hint:
        print(f"hint: {printable(hint)}", file=sys.stderr)


def note(message: str) -> None:
    """Say something that is no error."""
    print(f"note: {printable(message)}", file=sys.stderr)


def as_typed(error: FlashwrightError) -> tuple[str, str]:
    """Message and hint of an error, with the options of the command line for the parameters of the call.

    A parameter of ``error.parameters`` is replaced where the message begins with it and where its value is said
    (``name=value``). Errors of the core list none: there a line that begins with the name of an option is about that.

    Parameters
    ----------
    error : FlashwrightError
        As a call of the library raised it.

    Returns
    -------
    tuple of str
        The message and the hint.

    Examples
    --------
    >>> from flashwright.errors import WorkloadError
    >>> as_typed(WorkloadError("audit_every: found it alone", "add verify=True", parameters=["audit_every", "verify"]))
    ('--audit: found it alone', 'add --verify')
    >>> options_of_the_command.add("--warmup")
    >>> as_typed(WorkloadError("warmup: found 9, expected 8", ""))
    ('--warmup: found 9, expected 8', '')
    """
    names = error.parameters
    lines = [_with_typed_head(line, names) for line in str(error).splitlines()]
    return _with_typed_values("\n".join(lines), names), _with_typed_values(error.hint, names)


_COMMAND = re.compile(r"`flashwright ([a-z-]+(?: [a-z-]+)*)")


def beyond_command(hint: str, arguments: Sequence[str]) -> str:
    """A hint without the parts that name the command that was just run.

    Parameters
    ----------
    hint : str
        Parts that are separated by semicolons.
    arguments : sequence of str
        As they were typed.

    Examples
    --------
    >>> hint = "`flashwright trace info FILE` shows what is in a trace; see also --format"
    >>> beyond_command(hint, ["trace", "info", "a.spc"])
    'see also --format'
    >>> beyond_command(hint, ["simulate", "default"]) == hint
    True
    """

    def is_run(part: str) -> bool:
        named = _COMMAND.search(part)
        words = named[1].split() if named else []
        return bool(words) and list(arguments[: len(words)]) == words

    return "; ".join(part for part in hint.split("; ") if not is_run(part))


def _with_typed_head(line: str, names: Sequence[str]) -> str:
    """The line with options for the parameters that it says something about."""
    head, colon, rest = line.partition(": ")
    if not names:
        known = rest.startswith("found ") and f"--{head}" in options_of_the_command
        return f"--{line}" if known else line
    for name in names:
        if rest.startswith(f"{name}: "):
            # The name of the call stands before it, which nobody typed.
            return typed(name) + rest.removeprefix(name)
        if _NAMES.fullmatch(head):
            head = re.sub(rf"\b{name}\b", typed(name), head)
    return head + colon + rest


def _with_typed_values(text: str, names: Sequence[str]) -> str:
    """The text with options for the parameters that it says the values of: ``name=value``, or ``name=`` alone."""
    for name in names:

        def of(found: re.Match[str], option: str = typed(name)) -> str:
            value = found[1] or found[2] or ""
            if value == "False":
                return option.replace("--", "--no-", 1)
            return option if value in ("", "True") else f"{option} {value}"

        text = re.sub(rf"(?<![\w.:,-]){name}=(?:\"([^\"]*)\"|(\w[\w.]*))?", of, text)
    return text


def typed(name: str) -> str:
    """What is typed for a parameter of a call.

    Examples
    --------
    >>> typed("time_scale"), typed("settings")
    ('--time-scale', '--set')
    """
    return _TYPED.get(name, f"--{name.replace('_', '-')}")
