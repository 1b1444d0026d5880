"""XML of settings, read without anything that a file could abuse: no DTD, no entities of its own, bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from flashwright.errors import FlashwrightError
from flashwright.support.files import reason

__all__ = ["MOST_BYTES", "Node", "read"]

MOST_BYTES = 1 << 20
"""The longest file, in bytes: a scenario of MQSim takes 3 KB."""

_DEEPEST = 8
"""Elements within one another: a file of MQSim has four."""


@dataclass
class Node:
    """An element.

    Attributes
    ----------
    name : str
        Its tag.
    line : int
        The line that it begins in, counted from 1.
    text : str
        The text directly within it, without blanks around it.
    children : list of Node
        The elements directly within it.
    """

    name: str
    line: int
    text: str = ""
    children: list[Node] = field(default_factory=list)

    def those(self, name: str) -> Iterator[Node]:
        """The elements of a name directly within it."""
        return (child for child in self.children if child.name == name)


def read(path: Path, root: str, error: type[FlashwrightError]) -> Node:
    """The outermost element of a file.

    Parameters
    ----------
    path : Path
        The file.
    root : str
        The name that its outermost element must have.
    error : type
        What to raise.

    Raises
    ------
    FlashwrightError
        Of the type `error`: if it can't be read, is no XML, has a DTD, or has another outermost element.
    """
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
    except OSError as failed:
        raise error(f"{path}: {reason(failed)}", "") from None
    if len(text) > MOST_BYTES:
        raise error(
            f"{path}: found more than {MOST_BYTES:,} bytes, expected a file of settings", ""
        )

    def refusal(line: int, what: str) -> FlashwrightError:
        return error(f"{path}: line {line}: {what}", "")

    try:
        found = _parsed(text, refusal)
    except expat.ExpatError as failed:
        raise error(
            f"{path}: line {failed.lineno}: found no XML: {expat.ErrorString(failed.code)}", ""
        ) from None
    except (LookupError, ValueError) as failed:
        # A declared encoding that there is none of, or that takes several bytes a character.
        raise error(f"{path}: line 1: found an encoding that can't be read: {failed}", "") from None
    if found.name != root:
        raise error(f"{path}: line {found.line}: found <{found.name}>, expected <{root}>", "")
    return found


def _parsed(text: bytes, refusal: Callable[[int, str], FlashwrightError]) -> Node:
    parser = expat.ParserCreate()
    above: list[Node] = [Node("", 0)]

    def refuse_dtd(*_: object) -> None:
        what = "found a DTD, expected settings alone: no entities are expanded"
        raise refusal(parser.CurrentLineNumber, what)

    def begin(name: str, attributes: dict[str, str]) -> None:
        line = parser.CurrentLineNumber
        if attributes:
            raise refusal(line, f"found attributes in <{name}>, expected none")
        if len(above) > _DEEPEST:
            raise refusal(line, f"found more than {_DEEPEST} elements within one another")
        node = Node(name, line)
        above[-1].children.append(node)
        above.append(node)

    def end(_: str) -> None:
        done = above.pop()
        done.text = done.text.strip()

    def add(part: str) -> None:
        above[-1].text += part

    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse_dtd
    parser.EntityDeclHandler = refuse_dtd
    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.CharacterDataHandler = add
    parser.Parse(text, True)
    return above[0].children[0]
