"""Wrong results made for judges, to see whether each can fail.

    python papers/tests/wrong_results.py [--draw 20] [--seed 37] [--only PAPER/CLAIM ...] [--store FOLDER]

Draws judges from all that gave a verdict in the last full run, or takes those that ``--only`` names, and prints for
each what it says of its own rows, a wrong result made from these, and what it says of that. The rows are those of a
quick run, or of the full one where it agrees with the paper on that alone; traces are looked for in
``FLASHWRIGHT_TRACES``. Rows are spoilt in ways that a wrong simulator could: a figure three times as large or a third
of it, everywhere or in every other place, one more of it, or its values in another order. Of judges that read a
bundled drive's file a setting is changed; one that does not reproduce its own runs has failed on these. The exit
status is 1 if a judge took every wrong result for the paper's.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from flashwright import Ssd
from flashwright.sweeps.compute import compute
from flashwright.sweeps.points import Store
from flashwright_papers import Answer, Paper, Setting, Verdict, papers, planning
from flashwright_papers.papers import Part

ROOT = Path(__file__).parents[2]
TRACES = Path(os.environ.get("FLASHWRIGHT_TRACES") or ROOT.parent / "shared" / "traces")
DRAWN, SEED = 20, 37
Rows = dict[str, list[dict[str, Any]]]
Number = int | float

# Judges without runs, which hold the files of bundled drives against printed tables: a setting that they read.
OF_FILES = {
    "container-marking/M4": ("geometry", "pages-per-block", 16),
    "container-marking/M17": ("timing", "program", "600 us"),
    "dftl/G1": ("timing", "erase", "6 ms"),
    "hu-2012/T2.4": ("timing", "read", "75 us"),
}


@cache
def read() -> dict[str, Paper]:
    """All papers."""
    return dict(papers())


@cache
def recorded() -> dict[str, dict[str, Any]]:
    """What the last full run said, by paper and claim."""
    document = json.loads((ROOT / "docs" / "claims.json").read_text())
    return {f"{each['paper']}/{each['id']}": each for each in document["claims"]}


def judges() -> list[str]:
    """Judges with runs or files whose last full run had a verdict."""
    return [
        name
        for name, each in recorded().items()
        if each["judged"] != Verdict.UNTESTABLE
        and each["id"] in read()[each["paper"]].judges
        and (read()[each["paper"]].judges[each["id"]].needs or name in OF_FILES)
    ]


def parts_of(name: str) -> dict[str, Part]:
    """What a judge needs, by the name under which it asks."""
    paper, _, id_ = name.partition("/")
    [each] = [one for one in read()[paper].claims if one.id == id_]
    found = {}
    wanted = zip(read()[paper].judges[id_].needs, planning.needs(read(), each), strict=True)
    for need, full in wanted:
        owner, _, part = full.rpartition("/")
        found[need] = read()[owner].parts[part]
    return found


def seconds(name: str) -> float:
    """Of one core, for the quick runs of a judge."""
    return sum(each.cpu_s[0] for each in parts_of(name).values())


def rows_of(name: str, store: Store, quick: bool = True) -> Rows:
    """The rows of a judge; what is kept is not played again."""
    paper, _, id_ = name.partition("/")
    [each] = [one for one in read()[paper].claims if one.id == id_]
    setting = Setting(quick, TRACES if TRACES.is_dir() else None)
    points = planning.plan(read(), [each], setting, store).points
    found = {}
    for need, full in zip(parts_of(name), planning.needs(read(), each), strict=True):
        outcomes = compute(points[full], store)
        assert not any(one.error for one in outcomes), [one.error for one in outcomes]
        found[need] = [deepcopy(dict(one.result or {})) for one in outcomes]
    return found


# ---- what can be wrong


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
    """What is there in a row."""
    for key in path:
        row = row[key]
    return row


def put(row: Any, path: tuple[str | int, ...], value: Any) -> None:
    """Write it there."""
    at(row, path[:-1])[path[-1]] = value


def field(path: tuple[str | int, ...]) -> str:
    """The last name on a path: what the number is."""
    return next((key for key in reversed(path) if isinstance(key, str)), "")


def places_of(rows: Rows, name: str) -> list[tuple[Any, tuple[str | int, ...]]]:
    """Where a figure is in all rows."""
    return [
        (row, path)
        for part in rows.values()
        for row in part
        for path in numbers(row)
        if field(path) == name
    ]


def scaled(rows: Rows, name: str, by: float, every: int) -> None:
    """A figure many times as large, in all or in every other place."""
    for row, path in places_of(rows, name)[::every]:
        value = at(row, path)
        wrong = not value if isinstance(value, bool) else value * by
        put(row, path, type(value)(wrong))


def rearranged(rows: Rows, name: str, order: Callable[[list[Any]], list[Any]]) -> None:
    """A figure's values in another order, over all the places where it is."""
    places = places_of(rows, name)
    values = order([at(row, path) for row, path in places])
    for (row, path), value in zip(places, values, strict=True):
        put(row, path, value)


WAYS: dict[str, Callable[[Rows, str], None]] = {
    "the other way round": lambda r, n: rearranged(r, n, lambda v: v[::-1]),
    "each the next one's": lambda r, n: rearranged(r, n, lambda v: v[1:] + v[:1]),
    "each the one's before": lambda r, n: rearranged(r, n, lambda v: v[-1:] + v[:-1]),
    "one more": lambda r, n: rearranged(r, n, lambda v: [type(x)(x + 1) for x in v]),
    "three times as large in every other place": lambda r, n: scaled(r, n, 3, 2),
    "a third in every other place": lambda r, n: scaled(r, n, 1 / 3, 2),
    "three times as large": lambda r, n: scaled(r, n, 3, 1),
    "a third": lambda r, n: scaled(r, n, 1 / 3, 1),
}


def wrong_results(rows: Rows, given: set[str]) -> Iterator[tuple[str, Rows]]:
    """Spoilt copies, with what is wrong; what runs were given stays as it is."""
    names = dict.fromkeys(
        name
        for part in rows.values()
        for row in part
        for path in numbers(row)
        if (name := field(path)) not in given
    )
    for name in names:
        for way, spoil in WAYS.items():
            spoilt = deepcopy(rows)
            spoil(spoilt, name)
            if spoilt != rows:
                yield f"{name}: {way}", spoilt


# ---- what judges say of it


def verdict(name: str, rows: Rows) -> Verdict | None:
    """What a judge says of rows; None where it stops, since a row without sense is no wrong result."""
    paper, _, id_ = name.partition("/")
    try:
        found = read()[paper].judges[id_].judge(rows)
    except Exception:  # whatever it meets in rows that no run gives
        return None
    return found.verdict if isinstance(found, Answer) else found[id_].verdict


@dataclass(frozen=True)
class Trial:
    """A judge and a wrong result: what it says of its own rows, what is wrong, and what it says of that."""

    judge: str
    size: str
    said: Verdict | None
    wrong: str
    then: Verdict | None

    @property
    def failed(self) -> bool:
        """Whether the judge told the wrong result from the paper's."""
        return self.then in (Verdict.NOT, Verdict.DIRECTION)


def worst(name: str, rows: Rows) -> tuple[str, Verdict | None]:
    """The first wrong result that a judge does not reproduce at all, else one that it reproduces less; or none."""
    given = {
        key
        for part in parts_of(name).values()
        for job in part.jobs(Setting(quick=True))
        for key in job.arguments
    }
    less, verdict_count = "", 0
    for wrong, spoilt in wrong_results(rows, given):
        said = verdict(name, spoilt)
        verdict_count += said is not None
        if said is Verdict.NOT:
            return wrong, said
        if said is Verdict.DIRECTION and not less:
            less = wrong
    return (less, Verdict.DIRECTION) if less else (f"none of {verdict_count}", Verdict.REPRODUCED)


def tried(name: str, store: Store) -> Trial:
    """A wrong result made for a judge, from the full rows only where it does not agree on quick ones as on these."""
    if name in OF_FILES:
        section, key, value = OF_FILES[name]
        said, then = verdict(name, {}), of_another_file(name)
        return Trial(name, "file", said, f"{section}.{key}: {value}", then)
    agreed = recorded()[name]["judged"] != Verdict.NOT
    for size in ("quick", "full"):
        rows = rows_of(name, store, quick=size == "quick")
        said = verdict(name, rows)
        if not agreed or said in (Verdict.REPRODUCED, Verdict.DIRECTION):
            break
    if said is Verdict.NOT:
        return Trial(name, size, said, "its own runs", said)
    return Trial(name, size, said, *worst(name, rows))


def of_another_file(name: str) -> Verdict | None:
    """What a judge of files says where one setting of a drive is another."""
    section, key, value = OF_FILES[name]
    paper, _, id_ = name.partition("/")

    class Other:
        @staticmethod
        def named(drive: str) -> SimpleNamespace:
            config = deepcopy(Ssd.named(drive).config)
            assert key in config[section]
            config[section][key] = value
            return SimpleNamespace(config=config)

    names = read()[paper].judges[id_].judge.__globals__
    kept = names["Ssd"]
    names["Ssd"] = Other
    try:
        return verdict(name, {})
    finally:
        names["Ssd"] = kept


def main() -> int:
    """Draws, tries and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draw", type=int, default=DRAWN, help="how many judges")
    parser.add_argument("--seed", type=int, default=SEED, help="of the draw")
    parser.add_argument(
        "--only", nargs="+", metavar="PAPER/CLAIM", help="these, in place of a draw"
    )
    parser.add_argument("--store", type=Path, default=Path(".flashwright/claims"))
    given = parser.parse_args()
    every = sorted(judges())
    for name in given.only or []:
        if name not in every:
            parser.error(f"--only: found {name!r}, expected one of {', '.join(every)}")
    drawn = given.only or random.Random(given.seed).sample(every, min(given.draw, len(every)))
    drawn_by = "named" if given.only else f"seed {given.seed}"
    print(f"{len(drawn)} of {len(every)} judges, {drawn_by}\n")
    print("| judge | rows | it says | wrong result | it says |\n| --- | --- | --- | --- | --- |")
    failed = 0
    for name in sorted(drawn):
        each = tried(name, Store(given.store))
        failed += each.failed
        print(f"| {name} | {each.size} | {each.said} | {each.wrong} | {each.then} |", flush=True)
    print(f"\n{failed} of {len(drawn)} fail on a wrong result")
    return 0 if failed == len(drawn) else 1


if __name__ == "__main__":
    sys.exit(main())
