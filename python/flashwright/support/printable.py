"""Text of others, such as names, labels, notes and what servers say, as a terminal may have it."""

from __future__ import annotations

__all__ = ["printable"]

_LAYOUT = "\n\t\u00a0\u202f"
"""What lays out text and passes: ends of lines, tabs, and spaces at which no line ends."""


def printable(text: str) -> str:
    r"""Text whose characters all show: those that steer a terminal, or turn the direction of writing, by their numbers.

    Everything that the command line writes on a terminal goes through here.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        The same without control and format characters.

    Examples
    --------
    >>> printable("a drive \x1b[31m\u202e")
    'a drive \\x1b[31m\\u202e'
    >>> printable("two\nlines: ≥ 5 µs")
    'two\nlines: ≥ 5 µs'
    """
    if text.isprintable():
        return text
    return "".join(
        each
        if each.isprintable() or each in _LAYOUT
        else each.encode("unicode_escape").decode("ascii")
        for each in text
    )
