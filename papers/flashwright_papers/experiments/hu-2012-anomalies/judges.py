"""The abstract's claims: those of chapter 4 of the dissertation, on its two drives, from the same runs."""

from __future__ import annotations

from flashwright_experiments.hu_2012 import (
    drives_judge,
    drives_requests_judges,
    drives_space_judges,
)

from flashwright_papers import Answer, Found, Verdict, claim


@claim("H1", needs="hu-2012/drive-example")
def h1(found: Found) -> Answer:
    """What the simulator calls GC efficiency, against blocks counted by hand."""
    rows = found["hu-2012/drive-example"]
    counted = []
    for row in rows:
        victims = [4 - valid for valid in row["valid_by_block"] if valid < 4]
        counted.append(sum(victims) / len(victims) / 4)
    named = [row["efficiency"] for row in rows]
    return Answer(
        Verdict.of(named == counted),
        "gc.efficiency of a run is "
        + " and ".join(f"{100 * value:.0f} %" for value in named)
        + " in the two halves of the dissertation's Figure 4.2, where the victims have "
        + " and ".join(f"{100 * value:.0f} %" for value in counted)
        + " of invalid pages",
    )


@claim("H2", needs=("hu-2012/drive-fills", "hu-2012/drive-spare"))
def h2(found: Found) -> Answer:
    """Bandwidth over data written."""
    return drives_space_judges.fall(found)


@claim("H3", needs="hu-2012/drive-lives")
def h3(found: Found) -> Answer:
    """Residual lifetime."""
    return drives_space_judges.lifetimes(found)


@claim("H4", needs="hu-2012/drive-reads")
def h4(found: Found) -> Answer:
    """Reads among writes."""
    drives = tuple(drives_judge.PUBLISHED)
    return drives_space_judges.both(
        drives_requests_judges.stable(found, drives),
        drives_requests_judges.unpredictable(found, drives),
    )
