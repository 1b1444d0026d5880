"""How sure a verdict may be: no surer than its rule was right on drives of families that it was not made on.

Resamplings of the measurements say how well a verdict stands against noise. They say nothing of drives on which
something else looks the same. So each kind of verdict also has a cap: the share of such verdicts that were right on
drives of many families. ``confidences.toml`` has the caps and the counts they come from;
``experiments/alien-drives/confidences.py`` makes that file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from flashwright.drive.findings import Finding
from flashwright.target.question import UNTESTED

__all__ = ["Cap", "cap_of", "capped", "caps", "claim_of"]


@dataclass(frozen=True)
class Cap:
    """The most that a kind of verdict may claim, and what that rests on.

    Attributes
    ----------
    confidence : float
        The cap, 0 to 1.
    claims, right : int
        Verdicts of this kind on drives whose answer is known, and how many of them were right.
    families : int
        How many families those drives belong to.
    """

    confidence: float
    claims: int = 0
    right: int = 0
    families: int = 0


def claim_of(finding: Finding) -> str:
    """What kind of verdict a finding is: its parameter, and the word that it claims.

    Examples
    --------
    >>> claim_of(Finding("mapping", "found", "log-block")), claim_of(Finding("read-buffer", "absent"))
    ('mapping: log-block', 'read-buffer: none')
    >>> claim_of(Finding("write-buffer", "found", 65536, "B"))
    'write-buffer: a value'
    """
    if finding.verdict == "absent":
        return f"{finding.parameter}: none"
    word = finding.value if isinstance(finding.value, str) else "a value"
    return f"{finding.parameter}: {word}"


@cache
def caps() -> Mapping[str, Cap]:
    """The caps by kind of verdict, as :func:`claim_of` names it."""
    text = files("flashwright.probing").joinpath("confidences.toml").read_text(encoding="utf-8")
    return {name: Cap(**row) for name, row in tomllib.loads(text)["caps"].items()}


def cap_of(finding: Finding) -> Cap:
    """The cap of a finding; where no drive has tested such a verdict, that of a rule without a test.

    Examples
    --------
    >>> cap_of(Finding("of-no-probe", "found", 1)).confidence
    0.85
    """
    return caps().get(claim_of(finding), Cap(UNTESTED))


def capped(finding: Finding) -> Finding:
    """The finding, no surer than its cap.

    Parameters
    ----------
    finding : Finding
        As its probe gave it.

    Returns
    -------
    Finding
        Where the cap is lower, with it as ``confidence``; the figure ``evidence_share`` then keeps what the probe gave.

    Examples
    --------
    >>> found = capped(Finding("of-no-probe", "found", 1, confidence=1.0))
    >>> found.confidence, found.figures["evidence_share"]
    (0.85, 1.0)
    """
    cap = cap_of(finding).confidence
    if finding.verdict == "unknown" or finding.confidence <= cap:
        return finding
    figures = {**finding.figures, "evidence_share": finding.confidence}
    return replace(finding, confidence=cap, figures=figures)
