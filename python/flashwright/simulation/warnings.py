"""What several runs warn of, each thing once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Gathered", "gathered", "gathered_json"]

# Texts of one kind that are told apart: more differ in their figures only.
_TEXTS_MOST = 3
_LABELS_MOST = 3


@dataclass(frozen=True)
class Gathered:
    """Something that runs warn of.

    Attributes
    ----------
    code : str
        What programs know it by.
    text : str
        What it is, in a sentence with the figures of the first of these runs.
    mend : str or None
        The options that correct it.
    runs : tuple of str
        Labels of the runs that have it.
    of : int
        How many runs there are.
    """

    code: str
    text: str
    mend: str | None
    runs: tuple[str, ...]
    of: int

    @property
    def whose(self) -> str:
        """Which runs have it, as text; empty where all do."""
        if len(self.runs) == self.of:
            return ""
        named = "; ".join(self.runs[:_LABELS_MOST])
        more = len(self.runs) - _LABELS_MOST
        return f"{named}; and {more} more runs" if more > 1 else "; ".join(self.runs)

    def __str__(self) -> str:
        text = self.text if not self.mend else f"{self.text}; try {self.mend}"
        return f"{self.whose}: {text}" if self.whose else text


def gathered(runs: Iterable[tuple[str, Iterable[Mapping[str, Any]]]]) -> list[Gathered]:
    """What runs warn of: each text once, and of those of one code, which differ in their figures, the first few.

    Parameters
    ----------
    runs : iterable of (str, iterable of mapping)
        The label of each run, and its warnings as the JSON of a run has them.

    Returns
    -------
    list of Gathered
        In the order in which they are found, which is that of the importance in a run.

    Examples
    --------
    >>> short = {"code": "not-settled", "text": "not settled: 1 erase", "mend": "--precondition workload"}
    >>> [str(each) for each in gathered([("a", [short]), ("b", [short]), ("c", [])])]
    ['a; b: not settled: 1 erase; try --precondition workload']
    """
    listed = [(label, list(warned)) for label, warned in runs]
    found: dict[tuple[str, str], Gathered] = {}
    last: dict[str, tuple[str, str]] = {}
    for label, warned in listed:
        for each in warned:
            code, text = (
                str(each.get("code") or ""),
                str(each.get("text") or each.get("code") or ""),
            )
            key = code, text
            if key not in found and sum(known == code for known, _ in found) >= _TEXTS_MOST:
                key = last[code]
            if key not in found:
                found[key] = Gathered(code, text, each.get("mend") or None, (), len(listed))
                last[code] = key
            before = found[key]
            if label not in before.runs[-1:]:
                found[key] = Gathered(
                    code, before.text, before.mend, (*before.runs, label), before.of
                )
    return list(found.values())


def gathered_json(found: Iterable[Gathered]) -> list[dict[str, Any]]:
    """The same for JSON: ``code``, ``text``, ``mend``, ``runs`` (labels), ``of`` (how many runs there are)."""
    return [{**asdict(each), "runs": list(each.runs)} for each in found]
