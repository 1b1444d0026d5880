"""Whether what a run says holds for longer than the run: tiles, badges and warnings that say so in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flashwright.report import text
from flashwright.report.tables import Badge
from flashwright.simulation.pages.keyfigures import KEY_FIGURES, cells, settled_word
from flashwright.simulation.pages.view import RunView, dig, number
from flashwright.simulation.warnings import gathered

_UNSETTLED = {
    "transient": "transient: not settled",
    "too-short": "settled, but measured too briefly",
    "never-cleaned": "without cleaning: it moved no page",
}


@dataclass(frozen=True)
class Tile:
    """A key figure of a run that stands alone.

    Attributes
    ----------
    name, shown
        What it is, and its value.
    about
        What it means.
    beneath
        Words beneath the value.
    unsettled
        Whether it may not be taken for the drive's lasting behaviour.
    """

    name: str
    shown: str
    about: str
    beneath: str = ""
    unsettled: bool = False


@dataclass(frozen=True)
class Warned:
    """Something that a run warns of.

    Attributes
    ----------
    text
        What is wrong.
    mend
        What to do about it; empty if nothing is known.
    labels
        The runs that it is of; empty if all.
    """

    text: str
    mend: str
    labels: Sequence[str]


def tiles_of(run: RunView) -> list[Tile]:
    """The key figures of a run; those that cleaning decides carry the verdict where it has not settled."""
    unsettled = _UNSETTLED.get(str(dig(run.json, "settled.verdict")), "")
    found = []
    for figure in KEY_FIGURES:
        cell = cells(figure, [run])[0]
        if cell.value is None or not figure.is_shown([run]):
            continue
        beneath = unsettled if figure.cleaning else ""
        if figure.path == "write_amplification":
            beneath = "; ".join(filter(None, (beneath, _interval(run))))
        open_end = bool(unsettled) and figure.cleaning
        found.append(
            Tile(
                text.in_words(figure.name) or figure.name,
                cell.shown,
                figure.about,
                beneath,
                open_end,
            )
        )
    return found


def _interval(run: RunView) -> str:
    """Where write amplification settled and at what, with the interval if there is one."""
    verdict = dig(run.json, "settled.verdict")
    if verdict in (None, "none"):
        return ""
    parts = []
    if verdict == "settled":
        since = number(run.json, "settled.since_request")
        value = number(run.json, "settled.write_amplification")
        at = "" if value is None else f" at {text.significant(value)}"
        parts.append(f"settled{at}" + ("" if since is None else f", from request {text.count(since)} on"))  # fmt: skip
    low, high = (number(run.json, f"settled.interval.{end}") for end in (0, 1))
    if low is not None and high is not None:
        confidence = number(run.json, "settled.confidence")
        share = "" if confidence is None else f"{text.share(confidence)} "
        parts.append(f"{share}interval {text.significant(low)} to {text.significant(high)}")
    return "; ".join(parts)


def settled_badge(run: RunView) -> list[Badge]:
    """A badge that says whether the run settled, with the reason; none where it does not say or wrote nothing."""
    verdict, word = dig(run.json, "settled.verdict"), settled_word(run)
    if word is None or verdict == "none":
        return []
    why = str(dig(run.json, "settled.why") or "")
    mend = dig(run.json, "settled.mend")
    return [Badge(word[1], word[0], f"{why} Try {mend}." if mend else why)]


def warnings_of(runs: Sequence[RunView]) -> list[Warned]:
    """What the runs warn of; equal warnings once, with the runs that they are of."""
    found = gathered((run.label, dig(run.json, "warnings") or []) for run in runs)
    return [
        Warned(each.text, each.mend or "", [] if len(each.runs) == each.of else each.runs)
        for each in found
    ]
