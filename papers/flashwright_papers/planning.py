"""What is asked for, and what that takes."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from flashwright.errors import ConfigError
from flashwright.sweeps.points import Point, Store
from flashwright_papers.claims import Claim, Exhibit, Open, Setting, Value
from flashwright_papers.papers import Paper, Part, points_of

__all__ = ["Plan", "checked_given", "choose", "exhibits", "keys", "needs", "plan"]


@dataclass(frozen=True)
class Plan:
    """What a reproduction would do.

    Attributes
    ----------
    claims : tuple of Claim
        What is judged.
    points : dict of str to list of Point
        The runs, by part.
    kept : int
        How many of the runs are kept from before.
    runs : int
        How many different runs there are.
    cpu_s : float
        Seconds of one core that the others take, as measured when the parts were written.
    """

    claims: tuple[Claim, ...]
    points: Mapping[str, Sequence[Point]]
    kept: int
    runs: int
    cpu_s: float


def choose(read: Mapping[str, Paper], wanted: Sequence[str] = ()) -> list[Claim]:
    """The claims that some words select.

    Parameters
    ----------
    read : mapping of str to Paper
        As :func:`papers` gives it.
    wanted : sequence of str
        Papers (``"dftl"``), figures, tables and sections (``"container-marking/table-4"``) or claims (``"G8"``,
        ``"dftl/G8"``); all claims if there is none. A drawing of a mechanism selects no claim.

    Raises
    ------
    ConfigError
        If there is nothing of that name.
    """
    every = [each for paper in read.values() for each in paper.claims]
    if not wanted:
        return every
    shown = exhibits(read)
    taken: set[str] = set()
    for word in (each.lower() for each in wanted):
        named = [each for each in shown if f"{each.paper}/{each.name}" == word]
        found = {each.id for each in every if word in _names(each)}
        found |= {id_ for each in named for id_ in each.claims}
        if not found and not named:
            raise _unknown(word, read)
        taken |= found
    return [each for each in every if each.id in taken]


def exhibits(read: Mapping[str, Paper], wanted: Sequence[str] = ()) -> list[Exhibit]:
    """The figures and tables that some words select, in the order of their papers.

    Parameters
    ----------
    read : mapping of str to Paper
        As :func:`papers` gives it.
    wanted : sequence of str
        As :func:`choose` takes it. A claim or a section selects the figures and tables that rest on its claims.

    Examples
    --------
    >>> from flashwright_papers import papers
    >>> [each.name for each in exhibits(papers(), ["G8", "dftl/figure-1"])]
    ['figure-1', 'figure-6']
    """
    every = [each for paper in read.values() for each in paper.exhibits]
    words = {each.lower() for each in wanted}
    if not words:
        return every
    named = {(each.paper, each.name) for each in every if f"{each.paper}/{each.name}" in words}
    named |= {(each.paper, each.name) for each in every if each.paper in words}
    rest = [each for each in wanted if each.lower() not in read and not _is_exhibit(each, every)]
    ids = {each.id for each in choose(read, rest)} if rest else set()
    return [
        each
        for each in every
        if (each.paper, each.name) in named or not ids.isdisjoint(each.claims)
    ]


def _is_exhibit(word: str, every: Sequence[Exhibit]) -> bool:
    return any(f"{each.paper}/{each.name}" == word.lower() for each in every)


def _unknown(word: str, read: Mapping[str, Paper]) -> ConfigError:
    """That there is nothing of a name, and what there is."""
    every = [each for paper in read.values() for each in paper.claims]
    names = [f"{each.paper}/{each.name}" for each in exhibits(read)]
    names += [f"{each.paper}/{each.entry}" for each in every]
    paper, slash, _ = word.partition("/")
    if slash and paper in read:
        there = dict.fromkeys(each.split("/")[1] for each in names if each.startswith(f"{paper}/"))
        expected, hint = f"of {paper} {', '.join(there)}, or a claim's id", ""
    else:
        expected = f"a paper ({', '.join(read)}), PAPER/ENTRY or a claim's id"
        of_papers = sorted({each for each in names if each.partition("/")[2] == word})
        known = sorted({*names, *(name for each in every for name in _names(each))})
        close = of_papers or difflib.get_close_matches(word, known, 1)
        hint = (
            f"did you mean {' or '.join(close)}?"
            if close
            else "`flashwright reproduce --list` names all of them"
        )
    return ConfigError(f"wanted: found {word!r}, expected {expected}", hint, parameters=["wanted"])


def _names(each: Claim) -> set[str]:
    id_ = each.id.lower()
    return {each.paper, f"{each.paper}/{each.entry}", id_, f"{each.paper}/{id_}"}


def plan(
    read: Mapping[str, Paper], claims: Sequence[Claim], setting: Setting, store: Store
) -> Plan:
    """Find out what judging claims takes; nothing is run.

    Parameters
    ----------
    read : mapping of str to Paper
        All papers.
    claims : sequence of Claim
        What is wanted.
    setting : Setting
        How large the runs are.
    store : Store
        Where results of before are.
    """
    parts: dict[str, Part] = {}
    for each in claims:
        for name in needs(read, each):
            owner, _, part = name.rpartition("/")
            parts[name] = read[owner].parts[part]
    points = {
        name: points_of(part, _of_paper(setting, read[name.partition("/")[0]]))
        for name, part in parts.items()
    }
    kept, cpu_s = set[str](), 0.0
    for name, listed in points.items():
        found = {each.key for each in listed if store.has(each)}
        kept |= found
        missing = sum(each.key not in found for each in listed)
        cpu_s += parts[name].cpu_s[0 if setting.quick else 1] * missing / max(1, len(listed))
    every = {each.key for listed in points.values() for each in listed}
    return Plan(tuple(claims), points, len(kept), len(every), cpu_s)


def _of_paper(setting: Setting, paper: Paper) -> Setting:
    """The setting with what is given for this paper alone."""
    names = {each.name for each in paper.open}
    given = {name: value for name, value in setting.given.items() if name in names}
    return replace(setting, given=given)


def needs(read: Mapping[str, Paper], each: Claim) -> list[str]:
    """The parts that a claim needs, as ``paper/part``.

    Parameters
    ----------
    read : mapping of str to Paper
        All papers.
    each : Claim
        The claim.
    """
    judging = read[each.paper].judges.get(each.id)
    return [
        need if "/" in need else f"{each.paper}/{need}"
        for need in (judging.needs if judging is not None else ())
    ]


def keys(read: Mapping[str, Paper], made: Plan, each: Claim) -> set[str]:
    """The keys of the runs that a claim rests on.

    Parameters
    ----------
    read : mapping of str to Paper
        All papers.
    made : Plan
        In which the claim's parts are.
    each : Claim
        The claim.
    """
    return {point.key for need in needs(read, each) for point in made.points[need]}


def checked_given(
    read: Mapping[str, Paper], claims: Sequence[Claim], given: Mapping[str, Value]
) -> dict[str, Value]:
    """What is given, checked against what the papers of the claims leave open.

    Parameters
    ----------
    read : mapping of str to Paper
        All papers.
    claims : sequence of Claim
        What is judged.
    given : mapping of str to value
        By name, as text or as the value itself.

    Raises
    ------
    ConfigError
        If no paper of the claims leaves that open, or it does not allow the value.
    """
    known = {each.name: each for name in {c.paper for c in claims} for each in read[name].open}
    checked_: dict[str, Value] = {}
    for name, value in given.items():
        if name not in known:
            raise ConfigError(
                f"given: found {name!r}, expected one of {', '.join(sorted(known)) or 'nothing'}",
                "`flashwright reproduce --list` names what each paper leaves open",
                parameters=["given"],
            )
        checked_[name] = _allowed(known[name], value)
    return checked_


def _allowed(left_open: Open, value: Value) -> Value:
    """The value for what a paper leaves open: one of its values, or a number between the least and the largest."""
    allowed = (left_open.taken, *left_open.others)
    numbers = [each for each in allowed if not isinstance(each, str)]
    found = next((each for each in allowed if str(each) == str(value)), None)
    if found is None and len(numbers) == len(allowed):
        with contextlib.suppress(ValueError):
            number = (float if any(isinstance(n, float) for n in numbers) else int)(value)
            found = number if min(numbers) <= number <= max(numbers) else None
    if found is not None:
        return found
    words = f"one of {', '.join(map(str, allowed))}"
    if len(numbers) == len(allowed):
        whole = "" if any(isinstance(n, float) for n in numbers) else "whole "
        words = f"a {whole}number from {min(numbers)} to {max(numbers)}"
    raise ConfigError(
        f"given: {left_open.name}: found {value!r}, expected {words}", "", parameters=["given"]
    )
