"""A claim and what came out for it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from flashwright_papers.claims import TOO_SMALL, Answer, Claim, Verdict

__all__ = ["ClaimVerdict", "Reading", "plain"]


@dataclass(frozen=True)
class Reading:
    """What came out for a claim with another value for something that its source leaves open.

    Attributes
    ----------
    given : str
        The reading in words; empty for the one that is taken, on the drive of the search.
    verdict : Verdict
        By the claim's rule alone.
    ours : str
        Our numbers.
    """

    given: str
    verdict: Verdict
    ours: str


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim and what came out.

    Attributes
    ----------
    claim : Claim
        What was said.
    answer : Answer or None
        What came out; None if the claim could not be judged.
    error : str or None
        Why it could not.
    searched : tuple of Reading
        What a search found, with the reading that is taken first.
    too_small : bool
        Whether this is a quick run that plays less than what decides the claim, so that it gives no verdict.
    """

    claim: Claim
    answer: Answer | None
    error: str | None = None
    searched: tuple[Reading, ...] = ()
    too_small: bool = False

    @property
    def verdict(self) -> Verdict | None:
        """What the claim counts as; None if it could not be judged, or not by this run."""
        if self.answer is None or self.too_small:
            return None
        return self.claim.counted(self.answer.verdict)

    @property
    def reported_verdict(self) -> str | None:
        """The verdict or what stands for it in a quick run; None if the claim could not be judged."""
        return TOO_SMALL if self.too_small and self.answer is not None else self.verdict

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values; ``judged`` is the verdict by the rule alone."""
        said = asdict(self.claim)
        del said["verdict"], said["ours"]
        answer: dict[str, Any] = {
            "verdict": None,
            "judged": None,
            "ours": "",
            "plots": (),
            "tables": (),
            "also": {},
            "used": "",
        }
        if self.answer is not None:
            judgement = None if self.too_small else self.answer.verdict
            answer = asdict(self.answer) | {"verdict": self.reported_verdict, "judged": judgement}
            if self.too_small:
                answer["also"] = {}
            for key in ("workload", "why"):
                answer[key] = answer[key] or said[key]
        searched = [asdict(each) for each in self.searched]
        row: dict[str, Any] = plain(said | answer | {"error": self.error, "searched": searched})
        return row


def plain(value: Any) -> Any:
    """A value as JSON has it: whatever sequences and numbers a judge used, and None for what is no number.

    Parameters
    ----------
    value : object
        Of anything that a judge returns.

    Examples
    --------
    >>> plain({"x": (1, float("nan"))})
    {'x': [1, None]}
    """
    if isinstance(value, str | bool | int | None):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, Iterable):
        return [plain(each) for each in value]
    number = float(value)
    return number if math.isfinite(number) else None
