"""What goes to one unit before the next one's turn: with a page map, what fills one program."""

from __future__ import annotations

from flashwright.drive.findings import Finding, Plot, unknown
from flashwright.probing.probes.periods import Conflicts
from flashwright.target.question import UNTESTED, Context, kib

__all__ = ["program_unit"]


def program_unit(
    page: int,
    seen: Conflicts | None,
    by_steps: int | None,
    plots: tuple[Plot, ...],
    context: Context,
) -> Finding:
    """The finding by pairs of reads.

    Parameters
    ----------
    page : int
        The clustered page, bytes.
    seen : Conflicts or None
        The pairs that show a period, if any do.
    by_steps : int or None
        Units by the steps of writes, if those show any.
    plots : tuple of Plot
        The evidence.
    context : Context
        With what is known: without a page map, what lies on one unit may be a block; in an SLC cache, what one program
        takes of each cell.
    """
    page_mapped, cached = context.is_page_mapped, context.found_or_open("slc-cache")
    if (seen is None or not seen.alike) and by_steps is not None and page_mapped and not cached:
        why = (
            f"Flushed writes of up to {by_steps} clustered pages of {kib(page)} differ by little, and each further "
            f"{by_steps} take a program more: each page is programmed by itself, on the next unit."
        )
        low, high = 0.0, 2.0 * page
        return Finding("program-unit", "found", page, "B", low, high, UNTESTED, why, plots)
    if seen is None or not seen.alike:
        return unknown("program-unit", "No pairs of reads show what lies on one unit.", "B", plots)
    run = seen.grain_bytes
    if cached:
        why = (
            f"Runs of {kib(run)} lie on one unit, but they may be what one program takes in an SLC cache; normal cells "
            "take as much for each of their bits at once."
        )
        return unknown("program-unit", why, "B", plots)
    if not page_mapped:
        why = (
            f"Runs of {kib(run)} lie on one unit, but without a page map these may be blocks rather than what is "
            "programmed at once."
        )
        return unknown("program-unit", why, "B", plots)
    if run == page and by_steps != seen.units:
        # RAM may gather what a die programs at once, while mapping units go to dies in turn.
        why = (
            f"Writes in order put {kib(run)} on one unit before the next one's turn, as small as the mapping unit; but "
            f"writes and their flushes do not step by a program every {seen.units} of these, so that each unit may "
            "gather several in RAM for one program."
        )
        return unknown("program-unit", why, "B", plots)
    why = (
        f"Writes in order put {kib(run)} on one unit before the next one's turn, by pairs of reads; "
        + (
            f"the mapping unit, below which a write has to read first, is {kib(page)}."
            if run != page
            else "a write of less has to read first as well."
        )
    )
    low, high = float(run - page), float(run + page)
    return Finding("program-unit", "found", run, "B", low, high, seen.agree, why, plots)
