"""The rules that hold Flashwright against the outputs of the DFTL authors' release of FlashSim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flashwright_papers import Answer, Found, Line, Plot, Verdict, claim

from .judges_of_the_comparison import cumulated
from .release import COUNTED, HEAD, PUBLISHED, REQUESTS

Row = Mapping[str, Any]
PLAYED = f"The real {HEAD}: every request written once, then all as they are, counted"


def chosen(found: Found, key: str, value: Any) -> Row | None:
    """The row of the release's part with a value; None where the trace was not given."""
    return next((row for row in found["release"] if row.get(key) == value), None)


def absent() -> Answer:
    """What is said where the trace is not there."""
    return Answer(Verdict.UNTESTABLE, f"{HEAD} is not among the traces (--traces FOLDER).")


def beside(counted: Mapping[str, int], ours: Row) -> str:
    """Counters as ``reads 516 (516)``, ours and in brackets the release's."""
    return ", ".join(
        f"{name.replace('_', ' ')} {ours[name]:,} ({counted[name]:,})" for name in counted
    )


def same(counted: Mapping[str, int], ours: Row) -> bool:
    """Whether all counters of the release that ours has are equal."""
    return all(ours[name] == count for name, count in counted.items() if name in ours)


@claim("F1", needs="release")
def f1(found: Found) -> Answer:
    """The release's page map."""
    ours = chosen(found, "scheme", "page")
    if ours is None:
        return absent()
    counted = COUNTED["page"]
    text = f"Ours and in brackets the release's: {beside(counted, ours)}."
    return Answer(Verdict.of(same(counted, ours)), text, PLAYED)


@claim("F2", needs="release")
def f2(found: Found) -> Answer:
    """The release's DFTL."""
    ours = chosen(found, "scheme", "dftl")
    by_number, by_recency = (chosen(found, "order", order) for order in ("number", "recency"))
    if ours is None or by_number is None or by_recency is None:
        return absent()
    counted = COUNTED["dftl"]
    near = [
        abs(ours[name] - counted[name]) <= 0.002 * counted[name]
        for name in ("reads", "programs", "erases")
    ]
    explained = same(counted, by_number) and same(
        {name: ours[name] for name in counted if name in by_recency}, by_recency
    )
    text = (
        f"Ours and in brackets the release's: {beside(counted, ours)}. A twin in Python gives the release's "
        f"{'to the digit' if same(counted, by_number) else 'not'} with the lists ordered by number, and by recency "
        f"{by_recency['hits']:,} hits and {by_recency['erases']:,} erases."
    )
    return Answer(Verdict.of(all(near) and explained, direction=all(near)), text, PLAYED)


def share_of_20(row: Row) -> float:
    """The share of the reclaimed log blocks that took 20 data blocks or more."""
    return sum(row["blocks_of_reclaims"][20:]) / max(1, row["reclaims"])


@claim("F3", needs="release")
def f3(found: Found) -> Answer:
    """The release's FAST."""
    ours = chosen(found, "scheme", "fast")
    whole, missing = (chosen(found, "missing_copy", each) for each in (False, True))
    if ours is None or whole is None or missing is None:
        return absent()
    counted = COUNTED["fast"]
    names = ("switches", "partials", "fulls", "copies", "erases")
    dftl = chosen(found, "scheme", "dftl")
    assert dftl is not None
    translation = sum(dftl[kind] - ours[kind] for kind in ("reads", "programs"))
    more = [2 * row["copies"] / (translation + 2 * dftl["copies"]) for row in (missing, whole)]
    erases = [row["erases"] / dftl["erases"] for row in (missing, whole)]
    twin = all(ours[name] == whole[name] for name in names)
    lost = f"{missing['lost']:,} of {missing['written']:,} pages are lost"
    shares = [f"{100 * share_of_20(row):.1f} %" for row in (missing, whole)]
    text = (
        f"Ours and in brackets the release's: {beside(counted, ours)}. A twin in Python gives "
        f"{'ours' if twin else 'not ours'} to the digit; with merges that leave out what lies in random logs "
        f"{missing['erases']:,} erases, {missing['copies']:,} copies and {missing['fulls']:,} full merges, of "
        f"{missing['distinct_blocks']:,} data blocks in all. Then {lost}, and {shares[0]} of the reclaimed logs take "
        f"20 data blocks or more, where without the fault {shares[1]} do. FAST's extra operations are {more[0]:.1f} "
        f"times DFTL's with the fault and {more[1]:.1f} without, its erases {erases[0]:.0f} and {erases[1]:.0f} times; "
        f"without it DFTL responds in {dftl['response_ms']:.2f} ms and FAST in {ours['response_ms']:.2f}."
    )
    lines = [
        Line(name, *cumulated(row["blocks_of_reclaims"]))
        for name, row in (("merges that copy all", whole), ("merges as in the release", missing))
    ]
    plot = Plot(
        "Figure 7 with and without the release's fault: data blocks in a full merge",
        "data blocks",
        "share of full merges with at most so many",
        [*lines, Line("paper, Financial", [19], [0.8], paper=True)],
        x_format="count",
        y_format="share",
    )
    return Answer(Verdict.of(twin and same(counted, missing)), text, PLAYED, plots=[plot])


def derived() -> dict[str, float]:
    """What follows from the authors' outputs of the whole trace."""
    page, dftl, fast = (PUBLISHED[name] for name in ("page", "dftl", "fast"))
    read, programmed = (dftl[name] - page[name] for name in ("reads", "programs"))
    # Each dirty eviction reads and programs a translation page, and each miss reads one.
    misses = read - programmed
    extra = read + programmed + 2 * dftl["copies"]
    return {
        "hits": 1 - misses / (page["reads"] + page["programs"]),
        "gain": 1 - dftl["response_ms"] / fast["response_ms"],
        "operations": 2 * fast["copies"] / extra,
        "translation": (read + programmed) / extra,
        "erases": fast["erases"] / dftl["erases"],
    }


@claim("F4")
def f4(found: Found) -> Answer:
    """The paper's figures from the authors' outputs."""
    has = derived()
    met = [
        abs(has["hits"] - 0.63) <= 0.01,
        abs(has["gain"] - 0.78) <= 0.05,
        0.8 <= has["translation"] <= 0.97,
        2 <= has["operations"] <= 5,
        2 <= has["erases"] <= 5,
    ]
    text = (
        f"Of {REQUESTS:,} requests: {100 * has['hits']:.1f} % hits (paper: 63), response {100 * has['gain']:.1f} % "
        f"below FAST's (78), translation {100 * has['translation']:.0f} % of DFTL's extra operations (about 90), "
        f"FAST's extra operations {has['operations']:.1f} times DFTL's (3), its erases {has['erases']:.1f} times (3)."
    )
    verdict = Verdict.of(all(met), direction=sum(met) >= 4)
    return Answer(verdict, text, "None: the outputs that the authors published with the code")
