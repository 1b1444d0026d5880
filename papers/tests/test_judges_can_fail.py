"""Judges that say *reproduced* are given wrong results, and must say something else.

A judge that says *not reproduced* or *direction only* of our own results has shown that it can. The others are run in
their quick size, and their rows are spoilt in ways that a wrong simulator could: a figure three times as large or a
third of it, everywhere or in every other place, one more of it, or its values in another order. One spoilt result
that a judge does not reproduce shows that it can fail; a judge that takes all of them for the paper's result can't.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import needs
from flashwright import Ssd
from flashwright_papers import Answer, Paper, Setting, Verdict, papers, planning
from flashwright_papers.papers import Part

ROOT = Path(__file__).parents[2]
TRACES = Path(os.environ.get("FLASHWRIGHT_TRACES") or ROOT.parent / "shared" / "traces")
DRAWN, SEED = 20, 37
# Seconds of one core that the quick runs of a judge may take to be tried in each run of the suite.
SOON_S = 2.0
Rows = dict[str, list[dict[str, Any]]]
Number = int | float


def agreeing() -> list[str]:
    """Judges with runs whose verdict on the last full run is that their rule is met."""
    document = json.loads((ROOT / "docs" / "claims.json").read_text())
    met = {each["id"] for each in document["claims"] if each["judged"] == Verdict.REPRODUCED}
    return [
        f"{name}/{each.id}"
        for name, paper in papers().items()
        for each in paper.claims
        if each.id in met and each.id in paper.judges and paper.judges[each.id].needs
    ]


def parts_of(name: str) -> dict[str, Part]:
    """What a judge needs, by the name under which it asks."""
    read = papers()
    paper, _, id_ = name.partition("/")
    [each] = [one for one in read[paper].claims if one.id == id_]
    found = {}
    for need, full in zip(read[paper].judges[id_].needs, planning.needs(read, each), strict=True):
        owner, _, part = full.rpartition("/")
        found[need] = read[owner].parts[part]
    return found


def seconds(name: str) -> float:
    """Of one core, for the quick runs of a judge."""
    return sum(each.cpu_s[0] for each in parts_of(name).values())


ROWS: dict[str, list[dict[str, Any]]] = {}


def rows_of(name: str) -> Rows:
    """The quick rows of a judge; a part is played once."""
    found = {}
    for need, part in parts_of(name).items():
        if part.name not in ROWS:
            jobs = part.jobs(Setting(quick=True, traces=TRACES if TRACES.is_dir() else None))
            ROWS[part.name] = [
                json.loads(json.dumps(job.function(**job.arguments))) for job in jobs
            ]
        found[need] = deepcopy(ROWS[part.name])
    if not any(found.values()):
        pytest.skip(f"{needs.ABSENT}the traces that {name} rests on")
    return found


def numbers(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where the numbers of a row are."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from numbers(each, (*path, key))
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from numbers(each, (*path, at))
    elif isinstance(value, bool | int | float):
        yield path


def at(row: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        row = row[key]
    return row


def put(row: Any, path: tuple[str | int, ...], value: Any) -> None:
    at(row, path[:-1])[path[-1]] = value


def field(path: tuple[str | int, ...]) -> str:
    """The last name on a path: what the number is."""
    return next((key for key in reversed(path) if isinstance(key, str)), "")


def scaled(rows: Rows, name: str, by: float, every: int) -> None:
    """A figure many times as large, in all or in every other place."""
    nth = 0
    for part in rows.values():
        for row in part:
            for path in numbers(row):
                if field(path) == name:
                    value = at(row, path)
                    if nth % every == 0:
                        wrong = not value if isinstance(value, bool) else value * by
                        put(row, path, type(value)(wrong))
                    nth += 1


def rearranged(rows: Rows, name: str, order: Callable[[list[Any]], list[Any]]) -> None:
    """A figure's values in another order, over all the places where it is."""
    places = [
        (row, path)
        for part in rows.values()
        for row in part
        for path in numbers(row)
        if field(path) == name
    ]
    values = order([at(row, path) for row, path in places])
    for (row, path), value in zip(places, values, strict=True):
        put(row, path, value)


def wrong_results(rows: Rows, given: set[str]) -> Iterator[tuple[str, Rows]]:
    """Spoilt copies, with what is wrong; what runs were given stays as it is."""
    names = dict.fromkeys(
        name
        for part in rows.values()
        for row in part
        for path in numbers(row)
        if (name := field(path)) not in given
    )
    ways: list[tuple[str, Callable[[Rows, str], None]]] = [
        ("the other way round", lambda r, n: rearranged(r, n, lambda v: v[::-1])),
        ("each the next one's", lambda r, n: rearranged(r, n, lambda v: v[1:] + v[:1])),
        ("each the one's before", lambda r, n: rearranged(r, n, lambda v: v[-1:] + v[:-1])),
        ("one more", lambda r, n: rearranged(r, n, lambda v: [type(x)(x + 1) for x in v])),
        ("three times as large in every other place", lambda r, n: scaled(r, n, 3, 2)),
        ("a third in every other place", lambda r, n: scaled(r, n, 1 / 3, 2)),
        ("three times as large", lambda r, n: scaled(r, n, 3, 1)),
        ("a third", lambda r, n: scaled(r, n, 1 / 3, 1)),
    ]
    for name in names:
        for told, spoil in ways:
            spoilt = deepcopy(rows)
            spoil(spoilt, name)
            if spoilt != rows:
                yield f"{name}: {told}", spoilt


def verdict(read: Mapping[str, Paper], name: str, rows: Rows) -> Verdict | None:
    """What a judge says of rows; None where it stops, since a row without sense is no wrong result."""
    paper, _, id_ = name.partition("/")
    try:
        found = read[paper].judges[id_].judge(rows)
    except Exception:  # whatever it meets in rows that no run gives
        return None
    return found.verdict if isinstance(found, Answer) else found[id_].verdict


def failures(name: str) -> tuple[Verdict | None, list[str], int]:
    """What the judge says of the rows as they are, which spoilt ones it does not reproduce, and how many it judged."""
    read, rows = papers(), rows_of(name)
    failed, judged = [], 0
    given = {
        key
        for part in parts_of(name).values()
        for job in part.jobs(Setting(quick=True))
        for key in job.arguments
    }
    for told, spoilt in wrong_results(rows, given):
        said = verdict(read, name, spoilt)
        judged += said is not None
        if said not in (None, Verdict.REPRODUCED):
            failed.append(told)
    return verdict(read, name, rows), failed, judged


def check(name: str) -> None:
    said, failed, judged = failures(name)
    assert said is not None, f"{name}: its judge stops on rows of a quick run"
    # Where size decides, the smaller run is itself a result that the judge does not take for the paper's.
    if said is Verdict.REPRODUCED:
        assert failed, f"{name}: reproduced whatever is wrong, in {judged} wrong results"


@pytest.mark.parametrize("name", [each for each in agreeing() if seconds(each) <= SOON_S])
def test_a_judge_of_short_runs_fails_on_a_wrong_result(name: str) -> None:
    check(name)


@pytest.mark.long
@pytest.mark.parametrize("name", random.Random(SEED).sample(sorted(agreeing()), DRAWN))
def test_a_judge_drawn_at_random_fails_on_a_wrong_result(name: str) -> None:
    check(name)


# Judges without runs, which hold the files of bundled drives against printed tables: a setting that they read.
OF_FILES = {
    "container-marking/M4": ("geometry", "pages-per-block", 16),
    "container-marking/M17": ("timing", "program", "600 us"),
    "dftl/G1": ("timing", "erase", "6 ms"),
    "hu-2012/T2.4": ("timing", "read", "75 us"),
}


@pytest.mark.parametrize("name", OF_FILES)
def test_a_judge_of_files_fails_on_another_file(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read = papers()
    paper, _, id_ = name.partition("/")
    judge = read[paper].judges[id_].judge
    assert verdict(read, name, {}) is Verdict.REPRODUCED
    section, key, value = OF_FILES[name]

    class Other:
        @staticmethod
        def named(drive: str) -> SimpleNamespace:
            config = deepcopy(Ssd.named(drive).config)
            assert key in config[section]
            config[section][key] = value
            return SimpleNamespace(config=config)

    monkeypatch.setitem(judge.__globals__, "Ssd", Other)  # type: ignore[attr-defined]
    assert verdict(read, name, {}) not in (None, Verdict.REPRODUCED)


def test_what_is_neither_run_nor_read_is_arithmetic_on_the_paper() -> None:
    """Such a judge can't fail on a result of ours, and its claim does not count as reproduced."""
    read = papers()
    document = json.loads((ROOT / "docs" / "claims.json").read_text())
    without = {
        f"{each['paper']}/{each['id']}": each["verdict"]
        for each in document["claims"]
        if each["judged"] == Verdict.REPRODUCED
        and each["id"] in read[each["paper"]].judges
        and not read[each["paper"]].judges[each["id"]].needs
    }
    assert set(without) == {*OF_FILES, "kim-2011/K15"}
    assert set(without.values()) == {Verdict.CONSTRUCTION}
