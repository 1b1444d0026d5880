"""Findings that are not reported as verdicts: unsteady, in doubt, or contradicted by another finding."""

from __future__ import annotations

from dataclasses import replace

from flashwright.drive.findings import Finding
from flashwright.probing.pages import amount
from flashwright.target.question import kib

__all__ = [
    "suppress_doubted",
    "suppress_map_entries",
    "suppress_one_lane",
    "suppress_rows",
    "suppress_unsteady",
]

# The least confidence of a verdict. Derived: what more than half of the resamplings contradict is none.
_LEAST_CONFIDENCE = 0.5
# Time of a read over that of the same read again, above which it loads its entry of a map first. Chosen: a tenth, as of
# `map-reach`.
_LOADS = 1.1
# Pages of a block at least. Derived: no NAND flash has fewer; small-block NAND has 32.
_PAGES_LEAST = 16


def suppress_unsteady(finding: Finding) -> Finding:
    """The finding, or none where more of the evidence speaks against it than for it."""
    if finding.verdict == "unknown" or finding.confidence >= _LEAST_CONFIDENCE:
        return finding
    return _suppress(finding, f"too unsteady: {finding.confidence:.0%} of the evidence agrees")


def suppress_doubted(finding: Finding, doubt: str) -> Finding:
    """A finding on what may be no drive: what was seen, but no verdict."""
    if finding.verdict == "unknown":
        return finding
    return _suppress(finding, f"{doubt} So this is not reported as a drive's:")


def _suppress(finding: Finding, but: str) -> Finding:
    """A finding that reports what was seen, but gives no verdict."""
    seen = "none" if finding.verdict == "absent" else amount(finding.value, finding.unit)
    return replace(
        finding,
        verdict="unknown",
        value=None,
        low=None,
        high=None,
        confidence=0.0,
        why=f"{but} {seen}. {finding.why}",
    )


def suppress_rows(block: Finding, stripe: Finding | None) -> Finding:
    """The clustered block, or none where it has fewer rows of pages than blocks have.

    Long writes also recur with rows of pages that all units program at once, where RAM collects them.

    Parameters
    ----------
    block, stripe : Finding
        As they were found.

    Examples
    --------
    >>> stripe = Finding("stripe", "found", 131072, "B")
    >>> suppress_rows(Finding("clustered-block", "found", 786432, "B", confidence=0.85), stripe).verdict
    'unknown'
    >>> suppress_rows(Finding("clustered-block", "found", 8388608, "B", confidence=0.85), stripe).verdict
    'found'
    """
    if stripe is None or block.verdict != "found" or stripe.verdict != "found":
        return block
    rows = float(block.value or 0) / float(stripe.value or 1)
    if rows >= _PAGES_LEAST:
        return block
    return _suppress(
        block,
        f"writes in order go to all units every {kib(float(stripe.value or 0))}, and no block has fewer than "
        f"{_PAGES_LEAST} pages; rows of pages that are programmed together look the same. So this is no block:",
    )


def suppress_map_entries(buffer: Finding, reach: Finding | None) -> Finding:
    """What is kept of reads, or none where reads that are repeated save their entries of a map as well.

    A cache of entries makes repeated reads faster too, up to some size, though each is read from flash. It shows where
    a place is read faster again after more than the found cache of data has been read elsewhere.

    Parameters
    ----------
    buffer, reach : Finding
        As they were found.

    Examples
    --------
    >>> loads = Finding("map-reach", "unknown", figures={"first_over_again": 1.9})
    >>> suppress_map_entries(Finding("read-buffer", "found", 55984128, "B", confidence=0.9), loads).verdict
    'unknown'
    >>> suppress_map_entries(Finding("read-buffer", "found", 55984128, "B", confidence=0.9), None).verdict
    'found'
    """
    again = 1.0 if reach is None else reach.figures.get("first_over_again", 1.0)
    if buffer.verdict != "found" or again <= _LOADS:
        return buffer
    return _suppress(
        buffer,
        f"a place takes {again:.2f} times what it takes when read again, though so much else was read meanwhile: what "
        "is kept may be entries of a map and no data. So this is no cache of reads:",
    )


def suppress_one_lane(
    found: Finding, units: Finding | None, ahead: Finding | None, reach: Finding | None
) -> Finding:
    """One unit by pairs of reads, and what rests on it, unless reads bring or load more than their data.

    What a drive reads ahead, or loads of its map, may take units that others wait for, so that any two reads wait.

    Parameters
    ----------
    found : Finding
        The units, the stripe or the program.
    units, ahead, reach : Finding or None
        The units, whether the drive reads ahead, and the reach of its map.

    Examples
    --------
    >>> one = Finding("parallel-units", "found", 1, "units", confidence=0.9, figures={"sharing_units": 1.0})
    >>> no = Finding("prefetch", "found", "no")
    >>> loads = Finding("map-reach", "unknown", figures={"first_over_again": 1.9})
    >>> [suppress_one_lane(one, one, Finding("prefetch", "found", ahead), None).verdict for ahead in ("yes", "no")]
    ['unknown', 'found']
    >>> suppress_one_lane(one, one, no, loads).verdict
    'unknown'
    """
    alone = units is not None and units.value == 1 and units.figures.get("sharing_units") == 1.0
    ahead_too = ahead is not None and ahead.value != "no"
    loads = reach is not None and reach.figures.get("first_over_again", 1.0) > _LOADS
    if found.verdict == "unknown" or not alone or not (ahead_too or loads):
        return found
    return _suppress(
        found,
        "any two reads wait for each other, but each may read ahead or load an entry of a map, which may take units "
        "that others wait for. So this is not reported:",
    )
