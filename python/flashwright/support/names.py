"""Names for things that differ, where several would have the same one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

__all__ = ["distinct_names"]


def distinct_names(
    names: Sequence[str],
    identities: Sequence[str],
    details: Sequence[Mapping[str, object]] = (),
) -> list[str]:
    """Names of which no two are equal that belong to different things.

    Parameters
    ----------
    names : sequence of str
        What each thing is called.
    identities : sequence of str
        What each is; the same thing may be there more than once.
    details : sequence of mappings, optional
        What is known of each; where names are equal, those in which the things differ are added. A value of the key
        ``path`` is cut to the part that differs.

    Examples
    --------
    >>> distinct_names(["a", "a", "b"], ["1", "2", "3"], [{"k": 1}, {"k": 2}, {"k": 2}])
    ['a (k=1)', 'a (k=2)', 'b']
    >>> distinct_names(["a", "a"], ["1", "2"], [{"path": "x/one/a.py"}, {"path": "x/two/a.py"}])
    ['a (one/a.py)', 'a (two/a.py)']
    >>> distinct_names(["a", "a"], ["1", "2"], [{}, {"k": 2}])
    ['a', 'a (k=2)']
    >>> distinct_names(["a", "a", "a"], ["1", "2", "1"])
    ['a (1)', 'a (2)', 'a (1)']
    """
    found = list(names)
    for name in dict.fromkeys(names):
        kinds: dict[str, list[int]] = {}
        for at, each in enumerate(names):
            if each == name:
                kinds.setdefault(identities[at], []).append(at)
        if len(kinds) < 2:
            continue
        of = [details[members[0]] if details else {} for members in kinds.values()]
        marks = _marks(of)
        if len(set(marks)) < len(marks):
            marks = [f"{mark}, {n}" if mark else str(n) for n, mark in enumerate(marks, 1)]
        for members, mark in zip(kinds.values(), marks, strict=True):
            for at in members:
                found[at] = f"{name} ({mark})" if mark else name
    return found


def _marks(details: Sequence[Mapping[str, object]]) -> list[str]:
    """What some things differ in, as text for each."""
    keys = dict.fromkeys(key for own in details for key in own if key != "path")
    differ = [key for key in keys if len({str(own.get(key, "")) for own in details}) > 1]
    marks = [[f"{key}={own[key]}" for key in differ if key in own] for own in details]
    paths = [str(own.get("path", "")) for own in details]
    distinct_marks = {", ".join(mark) for mark in marks}
    if len(distinct_marks) < len(details) and len(set(paths)) > 1:
        for mark, path in zip(marks, _tails(paths), strict=True):
            mark.insert(0, path)
    return [", ".join(mark) for mark in marks]


def _tails(paths: Sequence[str]) -> list[str]:
    """The ends of some paths, as short as they can be to differ where the paths do."""
    parts = [PurePath(path).parts for path in paths]
    longest = max(len(each) for each in parts)
    for count in range(1, longest + 1):
        tails = [str(PurePath(*each[-count:])) if each else "" for each in parts]
        if len(set(tails)) == len(set(paths)):
            return tails
    return list(paths)
