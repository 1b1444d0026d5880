"""What a claim is, what answers it, and how a paper's files say which function does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, TypeVar

__all__ = [
    "Answer",
    "Claim",
    "Exhibit",
    "Found",
    "Job",
    "Line",
    "Open",
    "Plot",
    "Setting",
    "Table",
    "Value",
    "Verdict",
    "claim",
    "part",
]

Kind = Literal["A", "B", "C", "D", "E", "text"]
Basis = Literal["", "fitted", "by construction"]
Format = Literal["number", "count", "share", "bytes", "ns", "index"]
Value = str | int | float
"""What can be given for something that a source leaves open."""
Found = Mapping[str, Sequence[Mapping[str, Any]]]
"""The rows of parts, by the name under which a claim asked for them."""


class Verdict(StrEnum):
    """Whether a claim came out as its paper says, by the claim's own rule."""

    REPRODUCED = "reproduced"
    """The rule is met."""
    FITTED = "fitted"
    """It agrees, and a constant of ours was fitted to the paper's figure: the agreement tests nothing."""
    CONSTRUCTION = "by construction"
    """It agrees, and could not do otherwise: our files hold the paper's values, or our design implies the result."""
    DIRECTION = "direction only"
    """The sign or the order is the paper's; the magnitude is not, or a stand-in can't show it."""
    NOT = "not reproduced"
    """Our result differs."""
    UNTESTABLE = "not testable"
    """Nothing that can be run here can decide it."""

    @classmethod
    def of(cls, met: bool, direction: bool = False) -> Verdict:
        """The verdict of a rule that is met or not, and of its direction.

        Examples
        --------
        >>> Verdict.of(False, direction=True)
        <Verdict.DIRECTION: 'direction only'>
        """
        return cls.REPRODUCED if met else cls.DIRECTION if direction else cls.NOT


class Cause(StrEnum):
    """Why a claim is not reproduced, or in direction only."""

    TRACE = "trace"
    """What would decide is not available: a trace, all of one, or a product."""
    UNSTATED = "unstated"
    """The source does not state what the result depends on: a parameter, the state of a drive, sizes of requests."""
    SOURCE = "source"
    """The source's own: its figures contradict each other or what is known of its trace, or its code has a fault."""
    MODEL = "model"
    """Our model lacks a mechanism, or a claim's runs do."""


NOT_JUDGED = "could not be judged"
"""Stands where a verdict would, if a run failed that the claim rests on."""

TOO_SMALL = "quick: not judged"
"""Stands where a verdict would, if a quick run plays less than what decides the claim."""


@dataclass(frozen=True)
class Claim:
    """A quantitative claim of a source.

    Attributes
    ----------
    id : str
        Its stable name, such as ``"G8"``.
    paper : str
        The folder of its source.
    entry : str
        The figure, table or section by which it is asked for: ``"figure-6"``, ``"table-4"``, ``"section-5.2"``.
    where : str
        The place in the source, as people write it.
    kind : str
        ``A`` exact, ``B`` simulation of public or generated input, ``C`` simulation that lacks a trace or parameters,
        ``D`` measured on hardware, ``E`` cited from elsewhere, ``text`` no number.
    says : str
        What the source says, in our words.
    rule : str
        What counts as reproduced.
    drive, workload : str
        What it is run on and with.
    why : str
        What a reader should know where ours differs: what was tried, the likely cause, the reading that would match.
    verdict : Verdict or None
        Given where nothing is run: a claim that can't be tested, or that the test suite holds.
    ours : str
        What stands for our number then.
    basis : str
        ``"fitted"`` or ``"by construction"`` where an agreement tests nothing; such a claim never counts as reproduced.
    because : str
        Why it has that basis.
    reading : str
        The reading of the source under which alone the verdict holds, where another gives a worse one.
    causes : tuple of Cause
        Why it is not reproduced, or in direction only; the likeliest first.

    Examples
    --------
    >>> given = {"id": "K1", "paper": "kim-2011", "entry": "table-1", "where": "Table 1", "kind": "D"}
    >>> fitted = Claim(**given, says="...", rule="...", basis="fitted", because="Our models were fitted to it.")
    >>> fitted.counted(Verdict.REPRODUCED), fitted.counted(Verdict.NOT)
    (<Verdict.FITTED: 'fitted'>, <Verdict.NOT: 'not reproduced'>)
    """

    id: str
    paper: str
    entry: str
    where: str
    kind: Kind
    says: str
    rule: str
    drive: str = ""
    workload: str = ""
    why: str = ""
    verdict: Verdict | None = None
    ours: str = ""
    basis: Basis = ""
    because: str = ""
    reading: str = ""
    causes: tuple[Cause, ...] = ()

    def counted(self, judgement: Verdict) -> Verdict:
        """The verdict that a judgement by the claim's rule counts as.

        Parameters
        ----------
        judgement : Verdict
            By the rule alone.

        Returns
        -------
        Verdict
            The claim's basis, if it has one and the judgement agrees with the source; otherwise the judgement.
        """
        agrees = judgement in (Verdict.REPRODUCED, Verdict.DIRECTION)
        return Verdict(self.basis) if self.basis and agrees else judgement


@dataclass(frozen=True)
class Exhibit:
    """A figure, table or procedure of a source.

    Attributes
    ----------
    paper : str
        The folder of its source.
    name : str
        What it is asked for by: ``"figure-4.8"``, ``"table-2"``, ``"procedure-3"``.
    shows : str
        What it shows, in our words.
    claims : tuple of str
        The claims that are judged on what it shows; their plots are ours of it.
    panels : tuple of str
        Where these claims have plots of several figures: its own have one of these in their title.
    drawing : str
        Of a schematic in place of claims: that there is nothing to compute, and where the mechanism is.

    Examples
    --------
    >>> shown = Exhibit("dftl", "table-1", "Access times of flash.", ("G1",))
    >>> shown.title, shown.command
    ('Table 1', 'flashwright reproduce dftl/table-1')
    """

    paper: str
    name: str
    shows: str
    claims: tuple[str, ...] = ()
    panels: tuple[str, ...] = ()
    drawing: str = ""

    @property
    def title(self) -> str:
        """Its name as people write it."""
        return self.name.replace("-", " ").capitalize()

    @property
    def command(self) -> str:
        """What computes it, or tells that nothing is to be computed."""
        return f"flashwright reproduce {self.paper}/{self.name}"


@dataclass(frozen=True)
class Table:
    """A table of the source with our values beside those that it prints.

    Attributes
    ----------
    title : str
        What is shown.
    head : sequence of str
        Names of the columns.
    rows : sequence of sequence of str
        Cells as text, one for each column.

    Raises
    ------
    ValueError
        If a row has more or fewer cells than the head.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __post_init__(self) -> None:
        """Check that each row has a cell for each column."""
        for row in self.rows:
            if len(row) != len(self.head):
                raise ValueError(f"{self.title}: found {len(row)} cells, expected {len(self.head)}")


@dataclass(frozen=True)
class Line:
    """A line of a plot.

    Attributes
    ----------
    label : str
        What it is.
    x, y : sequence of float
        Its points; a y of None is a gap.
    paper : bool
        Whether these are values that the source prints: drawn as marks.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float | None]
    paper: bool = False


@dataclass(frozen=True)
class Plot:
    """A figure of the source with our values, in its own axes.

    Attributes
    ----------
    title : str
        What is shown.
    x, y : str
        Labels of the axes.
    lines : sequence of Line
        What is drawn.
    x_format, y_format : str
        How numbers read: ``number``, ``count``, ``share`` (0 to 1), ``bytes``, ``ns`` or ``index``.
    x_log, y_log : bool
        Whether an axis is logarithmic.
    ticks : sequence of (float, str)
        Names of values of x, where these stand for categories.
    levels : sequence of (str, float)
        Values of y that the source prints for the whole figure: level lines with a name.
    points : bool
        Draw points only, where what lies between them means nothing.
    stacked : bool
        Draw bars, the lines on top of each other: they have the same x, whole numbers, and no gaps.
    """

    title: str
    x: str
    y: str
    lines: Sequence[Line]
    x_format: Format = "number"
    y_format: Format = "number"
    x_log: bool = False
    y_log: bool = False
    ticks: Sequence[tuple[float, str]] = ()
    levels: Sequence[tuple[str, float]] = ()
    points: bool = False
    stacked: bool = False


@dataclass(frozen=True)
class Answer:
    """What came out for a claim.

    Attributes
    ----------
    verdict : Verdict
        By the claim's rule.
    ours : str
        Our number or numbers, with units, in a line or two.
    workload : str
        What was played, where that was decided only then (a real trace, or the labelled stand-in).
    why : str
        In place of the claim's, where the paragraph depends on the results.
    plots : sequence of Plot
        The source's figure with our values.
    tables : sequence of Table
        The source's table with our values.
    also : mapping of str to Verdict
        What the rule says under other readings of the source that were run too, by their description.
    used : str
        The drive's state and the reading of the source by which the judge decided, where it had others too.

    Raises
    ------
    ValueError
        If there are other readings and it is not told which one decided.
    """

    verdict: Verdict
    ours: str
    workload: str = ""
    why: str = ""
    plots: Sequence[Plot] = ()
    tables: Sequence[Table] = ()
    also: Mapping[str, Verdict] = field(default_factory=dict)
    used: str = ""

    def __post_init__(self) -> None:
        """Check that what decided is told where something else could have."""
        if self.also and not self.used:
            raise ValueError("used: found nothing, expected the reading that decided among others")


@dataclass(frozen=True)
class Open:
    """Something that a source leaves open, with what is taken for it.

    Attributes
    ----------
    name : str
        By which the paper's parts ask for it: ``setting.given.get(name, taken)``.
    what : str
        What is left open, in a few words.
    taken : str or number
        What is taken where nothing is given.
    others : tuple of str or number
        Other values that the source allows; a search tries them one at a time.
    why : str
        What in the source speaks for the value that is taken.
    """

    name: str
    what: str
    taken: Value
    others: tuple[Value, ...]
    why: str

    def describe(self, value: Value) -> str:
        """The reading with another value, in words.

        Examples
        --------
        >>> Open("spare", "spare space", 0.03, (0.07,), "").describe(0.07)
        'spare space: 0.07'
        """
        return f"{self.what}: {value}"


@dataclass(frozen=True)
class Setting:
    """How large the runs are, and what they may use.

    Attributes
    ----------
    quick : bool
        Scaled down to minutes for all papers: shapes, not magnitudes.
    traces : Path or None
        The folder of real traces, if the user has any.
    given : mapping of str to value
        Values for what a source leaves open, by name, in place of those that are taken.
    divisor : int
        By what drive, RAM and requests are divided in a search, for papers whose parts can be made smaller.
    """

    quick: bool = False
    traces: Path | None = None
    given: Mapping[str, Value] = field(default_factory=dict)
    divisor: int = 1

    def trace(self, name: str) -> str | None:
        """The path of a real trace, or None where it is absent.

        Examples
        --------
        >>> Setting().trace("financial1-first10k.spc.zst") is None
        True
        """
        if self.traces is None or not (self.traces / name).is_file():
            return None
        return str((self.traces / name).resolve())


@dataclass(frozen=True)
class Job:
    """One run of a part: a function of the paper's file with plain arguments.

    Attributes
    ----------
    function : callable
        Defined in a file of the paper; given the arguments by name, it returns a row: a dict that JSON can hold.
    arguments : mapping
        What JSON can hold.
    label : str
        What people know the run by.
    """

    function: Callable[..., Mapping[str, Any]]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""


Jobs = Callable[[Setting], Sequence[Job]]
Judge = Callable[[Found], "Answer | Mapping[str, Answer]"]
_Function = TypeVar("_Function", bound=Callable[..., Any])


def part(name: str, *, cpu_s: tuple[float, float]) -> Callable[[Jobs], Jobs]:
    """Mark a function as what lists the jobs of a part.

    Parameters
    ----------
    name : str
        The part's name, for claims that need it.
    cpu_s : (float, float)
        Seconds of one core that all jobs take together, quick and full, as measured; only for saying beforehand how
        long a run takes.

    Examples
    --------
    >>> @part("one", cpu_s=(1, 10))
    ... def one(setting):
    ...     return [Job(max, {}, "a run")]
    >>> one.__part__
    ('one', (1, 10))
    """

    def mark(function: Jobs) -> Jobs:
        function.__part__ = (name, cpu_s)  # type: ignore[attr-defined]
        return function

    return mark


def claim(*ids: str, needs: str | Sequence[str] = ()) -> Callable[[_Function], _Function]:
    """Mark a function as the judge of claims.

    Parameters
    ----------
    *ids : str
        The claims that it answers; of several it returns answers by id.
    needs : str or sequence of str
        The parts whose rows it is given; ``"paper/part"`` for one of another paper.

    Examples
    --------
    >>> @claim("G8", needs="comparison")
    ... def g8(found):
    ...     return Answer(Verdict.of(len(found["comparison"]) > 1), f"{len(found['comparison'])} runs")
    >>> g8({"comparison": [{}, {}]}).verdict
    <Verdict.REPRODUCED: 'reproduced'>
    """
    names = (needs,) if isinstance(needs, str) else tuple(needs)

    def mark(function: _Function) -> _Function:
        function.__claims__ = (ids, names)  # type: ignore[attr-defined]
        return function

    return mark
