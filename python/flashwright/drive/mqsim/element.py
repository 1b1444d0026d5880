"""A row of the tables: an element of MQSim, what its text may be, and what it becomes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

__all__ = [
    "Element",
    "Fate",
    "Flag",
    "Idle",
    "Ids",
    "Kind",
    "Note",
    "Option",
    "Outcome",
    "Real",
    "Setting",
    "Spec",
    "Text",
    "Values",
    "Whole",
    "Word",
]

Value: TypeAlias = int | float | bool | str | tuple[int, ...]
"""What the text of an element says."""

_MOST_DIGITS = 20
"""Of a number: those of the largest one of 64 bits."""


class Fate(StrEnum):
    """What becomes of an element."""

    SAME = "the same"
    NEAR = "approximated"
    NO_EFFECT = "no effect"
    NO_EQUAL = "no equal"


@dataclass(frozen=True)
class Whole:
    """A whole number within bounds."""

    low: int = 0
    high: int = 2**63 - 1

    @property
    def expected(self) -> str:
        """What it may be, for messages."""
        return f"a whole number from {self.low:,} to {self.high:,}"

    def read(self, text: str) -> int:
        """The number.

        Raises
        ------
        ValueError
            If the text is none, or out of bounds.

        Examples
        --------
        >>> Whole(1, 64).read("8")
        8
        """
        if not re.fullmatch(rf"[0-9]{{1,{_MOST_DIGITS}}}", text):
            raise ValueError(text)
        value = int(text)
        if not self.low <= value <= self.high:
            raise ValueError(text)
        return value


@dataclass(frozen=True)
class Real:
    """A number between bounds that it may not reach, unless ``reached``."""

    low: float
    high: float
    reached: bool = False

    @property
    def expected(self) -> str:
        """What it may be, for messages."""
        if self.reached:
            return f"a number from {self.low:g} to {self.high:g}"
        return f"a number above {self.low:g} and below {self.high:g}"

    def read(self, text: str) -> float:
        """The number.

        Raises
        ------
        ValueError
            If the text is none, or out of bounds.
        """
        if not re.fullmatch(rf"[0-9.]{{1,{_MOST_DIGITS}}}(e[+-]?[0-9]{{1,2}})?", text, re.ASCII):
            raise ValueError(text)
        value = float(text)
        within = self.low < value < self.high
        if not within and not (self.reached and value in (self.low, self.high)):
            raise ValueError(text)
        return value


@dataclass(frozen=True)
class Flag:
    """True or false."""

    expected: str = "true or false"

    def read(self, text: str) -> bool:
        """Which of the two.

        Raises
        ------
        ValueError
            If it is neither. MQSim takes everything but ``false`` for true.
        """
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"


@dataclass(frozen=True)
class Word:
    """One of some words, in any case."""

    words: tuple[str, ...]

    @property
    def expected(self) -> str:
        """What it may be, for messages."""
        return ", ".join(self.words)

    def read(self, text: str) -> str:
        """The word, in capitals.

        Raises
        ------
        ValueError
            If it is none of them.

        Examples
        --------
        >>> Word(("NVME", "SATA")).read("nvme")
        'NVME'
        """
        if text.upper() not in self.words:
            raise ValueError(text)
        return text.upper()


@dataclass(frozen=True)
class Ids:
    """Numbers of parts of the drive, separated by commas."""

    expected: str = "numbers from 0 up, separated by commas, each once"

    def read(self, text: str) -> tuple[int, ...]:
        """The numbers, sorted.

        Raises
        ------
        ValueError
            If something else stands there, or a number twice.

        Examples
        --------
        >>> Ids().read("1,0, 3")
        (0, 1, 3)
        """
        parts = text.split(",")
        if not all(re.fullmatch(r"[0-9]{1,5}", part.strip(), re.ASCII) for part in parts):
            raise ValueError(text)
        ids = sorted(int(part) for part in parts)
        if len(set(ids)) < len(ids):
            raise ValueError(text)
        return tuple(ids)


@dataclass(frozen=True)
class Text:
    """Any text of one line that is not empty."""

    expected: str = "a line of text"

    def read(self, text: str) -> str:
        """The text.

        Raises
        ------
        ValueError
            If there is none, or if it can't stand in a command.
        """
        if not text or not text.isprintable():
            raise ValueError(text)
        return text


Kind: TypeAlias = Whole | Real | Flag | Word | Ids | Text


@dataclass(frozen=True)
class Setting:
    """A key of the drive with its value, and the elements that it came from."""

    key: str
    value: int | float | bool | str
    elements: str = ""


@dataclass(frozen=True)
class Spec:
    """A key of a workload; of the generator itself where the key is empty."""

    key: str
    value: str


@dataclass(frozen=True)
class Option:
    """An option of the command."""

    name: str
    value: str = ""


@dataclass(frozen=True)
class Note:
    """A line on what is not the same.

    Attributes
    ----------
    about : str
        The element with its value.
    fate : str
        What became of it.
    why : str
        The value there, the value here, or why there is none.
    where : str
        The scenario and the flow, if it is of one.
    """

    about: str
    fate: str
    why: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.where}{self.about}: {self.fate}: {self.why}"


@dataclass(frozen=True)
class Idle:
    """The element has no effect beside these others, in MQSim as here."""


Outcome: TypeAlias = Setting | Spec | Option | Note | Idle


@dataclass
class Values:
    """What the elements of some sets say, and what the rules need beside it.

    Attributes
    ----------
    found : dict
        The value of each element.
    said : dict of str
        The text of each that stands in the file.
    blocks : int
        Blocks of a plane here, which may be fewer than there.
    caching : str
        What the drive's RAM keeps, unless a flow says otherwise.
    fullest : int
        The largest share of its space that a flow fills before it begins, in percent.
    """

    found: dict[str, Value] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    blocks: int = 0
    caching: str = "WRITE_CACHE"
    fullest: int = 0

    def whole(self, name: str) -> int:
        """A whole number."""
        value = self.found[name]
        assert isinstance(value, int)
        return value

    def real(self, name: str) -> float:
        """A number."""
        value = self.found[name]
        assert isinstance(value, int | float)
        return float(value)

    def flag(self, name: str) -> bool:
        """Whether it is true."""
        return self.found[name] is True

    def word(self, name: str) -> str:
        """A word or a text."""
        value = self.found[name]
        assert isinstance(value, str)
        return value

    def ids(self, name: str) -> tuple[int, ...]:
        """Numbers of parts."""
        value = self.found[name]
        assert isinstance(value, tuple)
        return value

    def about(self, *names: str) -> str:
        """Elements with their values, for a note."""
        return ", ".join(f"{name} = {self.said.get(name, self.found[name])}" for name in names)

    def near(self, *names: str, there: str, here: str) -> Note:
        """The note that elements are approximated."""
        return Note(self.about(*names), Fate.NEAR, f"there {there}; here {here}")

    def no_equal(self, *names: str, why: str) -> Note:
        """The note that elements have no equal."""
        return Note(self.about(*names), Fate.NO_EQUAL, why)


Rule: TypeAlias = Callable[[Values], Iterable[Outcome]]


@dataclass(frozen=True)
class Element:
    """An element, as a row.

    Attributes
    ----------
    name : str
        Its name.
    kind : Kind
        What its text may be.
    default : int, float, bool, str or None
        What MQSim takes where it is missing; None if it can't be.
    fate : Fate
        What becomes of it at worst.
    ours : str
        The keys or words that it becomes, in Markdown.
    how : str
        How, or why not.
    rule : callable or None
        What makes it so; None where it has no equal or no effect, or where the rule of another element reads it. It
        raises ``ValueError`` with the name of an element whose value can't be beside those of the others.
    """

    name: str
    kind: Kind
    default: Value | None
    fate: Fate
    ours: str
    how: str
    rule: Rule | None = None
