"""Findings on a drive that contradict themselves or one another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from flashwright.drive.findings import Finding
from flashwright.drive.quantities import as_text, needs
from flashwright.support.core import SECTOR_BYTES

__all__ = ["PARAMETERS", "Contradiction", "contradictions", "reconcile"]


@dataclass(frozen=True)
class _Parameter:
    """What a finding may say: numbers of these units, or one of these words."""

    units: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    blocks: bool = False
    """Whether it is a size on the drive, and so made of whole sectors."""


_SIZE = _Parameter(("B",), blocks=True)

_YES_NO = _Parameter(words=("yes", "no"))

PARAMETERS: dict[str, _Parameter] = {
    "kind-of-device": _Parameter(words=("flash",)),
    "clustered-page": _SIZE,
    "clustered-block": _SIZE,
    "read-buffer": _SIZE,
    "read-buffer-least": _SIZE,
    "prefetch": _YES_NO,
    "prefetch-size": _SIZE,
    "write-buffer": _SIZE,
    "buffer-kind": _Parameter(words=("buffer", "cache")),
    "write-buffer-drain": _Parameter(words=("eager", "lazy")),
    "flush-time": _Parameter(("ns",)),
    "flush-honoured": _YES_NO,
    "parallel-units": _Parameter(("units", "")),
    "stripe": _SIZE,
    "cleaning-interval": _Parameter(("B",)),
    "cleaning-stall": _Parameter(("ns",)),
    "slc-cache": _Parameter(("B",)),
    "slc-cache-ratio": _Parameter(("",)),
    "slc-cache-kind": _Parameter(words=("fixed", "dynamic")),
    "slc-cache-folding": _YES_NO,
    "idle-before-folding": _Parameter(("ns",)),
    "steady-cliff": _Parameter(("B",)),
    "sustained-rate": _Parameter(("B/s",)),
    "program-unit": _Parameter(("B",)),
    "map-reach": _Parameter(("B",)),
    "map-miss": _Parameter(("ns",)),
    "pause-period": _Parameter(("ns",)),
    "pause-length": _Parameter(("ns",)),
    "throttled-share": _Parameter(("",)),
    "throttle-recovery": _Parameter(("ns",)),
    "compression": _Parameter(words=("yes", "zeros")),
    "deduplication": _Parameter(words=("yes",)),
    "program-suspension": _YES_NO,
    "erase-suspension": _YES_NO,
    "internal-volumes": _Parameter(("volumes", "")),
    "volume-stride": _SIZE,
    "spare-space": _Parameter(("", "B")),
    "best-request": _SIZE,
    "mapping": _Parameter(words=("page", "log-block")),
}


def reconcile(
    findings: Mapping[str, Finding], capacity_bytes: int | None = None
) -> dict[str, Finding]:
    """Findings that don't contradict each other: of two that do, the less certain one becomes unknown.

    Parameters
    ----------
    findings : mapping of str to Finding
        By parameter, as the probes gave them.
    capacity_bytes : int, optional
        Of the drive, which bounds all sizes.

    Returns
    -------
    dict of str to Finding
        The same, but with ``unknown`` and the contradiction as its reason where there was one.

    Examples
    --------
    >>> page = Finding("clustered-page", "found", 12 << 10, "B", confidence=0.6)
    >>> block = Finding("clustered-block", "found", 4 << 20, "B", confidence=1.0)
    >>> found = reconcile({"clustered-page": page, "clustered-block": block})
    >>> found["clustered-page"].verdict, found["clustered-block"].verdict
    ('unknown', 'found')
    """
    kept = dict(findings)
    # Each round makes one finding unknown, and an unknown one contradicts nothing.
    while (first := next(contradictions(kept, capacity_bytes), None)) is not None:
        of = kept[first.parameter]
        other = kept.get(first.other)
        if other is not None and other.verdict != "unknown" and other.confidence < of.confidence:
            of = other
        why = f"{first.key}: found {first.found}, expected {first.expected}; {of.why}".rstrip("; ")
        kept[of.parameter] = replace(
            of, verdict="unknown", value=None, low=None, high=None, confidence=0.0, why=why
        )
    return kept


@dataclass(frozen=True)
class Contradiction:
    """A finding that contradicts itself or another."""

    parameter: str
    key: str
    found: str
    expected: str
    hint: str
    other: str = ""


def contradictions(
    findings: Mapping[str, Finding], capacity_bytes: int | None
) -> Iterator[Contradiction]:
    """What findings say against each other or against themselves."""
    for parameter, finding in findings.items():
        for key, found, expected, hint in _alone(finding, capacity_bytes):
            yield Contradiction(parameter, f"findings.{parameter}.{key}", found, expected, hint)
    yield from _together(findings)


def _alone(finding: Finding, capacity_bytes: int | None) -> Iterator[tuple[str, str, str, str]]:
    """What is wrong with a finding by itself: key, found, expected, hint."""
    value, low, high, unit = finding.value, finding.low, finding.high, finding.unit

    def shown(number: int | float | str | None) -> str:
        return repr(as_text(number, unit))

    if not 0 <= finding.confidence <= 1:
        yield "confidence", f"{finding.confidence:g}", "0 to 1", "it is a share, not a percentage"
    if (finding.verdict == "found") != (value is not None):
        yield (
            "value",
            "nothing" if value is None else shown(value),
            "a value" if value is None else f"none with the verdict {finding.verdict}",
            "only the verdict `found` has a value",
        )
    if value is None:
        return
    rule = PARAMETERS.get(finding.parameter)
    if isinstance(value, str):
        if rule is not None and value not in rule.words:
            expected = " or ".join(rule.words) or needs(rule.units[0])
            yield "value", shown(value), expected, "a finding is a word or a number with its unit"
        return
    if rule is not None and unit not in rule.units:
        expected = needs(rule.units[0]) if rule.units else " or ".join(rule.words)
        yield "value", shown(value), expected, "a finding is a word or a number with its unit"
        return
    least, most = -math.inf if low is None else low, math.inf if high is None else high
    if not least <= value <= most:
        between = f"{as_text(low, unit)} to {as_text(high, unit)} (low to high)"
        yield "value", shown(value), between, "change low and high too, or leave them out"
    if rule is None or not rule.blocks:
        return
    if value <= 0 or value % SECTOR_BYTES:
        expected = f"a multiple of {SECTOR_BYTES} B"
        yield "value", shown(value), expected, "drives are addressed by sectors"
    elif capacity_bytes is not None and value > capacity_bytes:
        yield "value", shown(value), f"at most the drive's {as_text(capacity_bytes, 'B')}", ""


def _together(findings: Mapping[str, Finding]) -> Iterator[Contradiction]:
    """What findings say against each other."""

    def size(parameter: str) -> int | None:
        finding = findings.get(parameter)
        if finding is None or finding.verdict != "found" or finding.unit != "B":
            return None
        return int(finding.value) if isinstance(finding.value, int | float) else None

    def against(parameter: str, other: str, expected: str, hint: str) -> Contradiction:
        finding = findings[parameter]
        return Contradiction(
            parameter,
            f"findings.{parameter}.value",
            repr(as_text(finding.value, finding.unit)),
            expected,
            hint,
            other,
        )

    page, buffer = size("clustered-page"), size("read-buffer")
    for parameter in ("clustered-block", "stripe"):
        many = size(parameter)
        if page and many and many % page:
            yield against(
                parameter,
                "clustered-page",
                f"a multiple of the clustered page, {as_text(page, 'B')}",
                "change one of the two, or give its verdict as unknown",
            )
    least = size("read-buffer-least")
    if least and buffer and least > buffer:
        yield against(
            "read-buffer-least",
            "read-buffer",
            f"at most the read buffer, {as_text(buffer, 'B')}",
            "it is the smallest read that the buffer serves",
        )
    for parameter, whole in (
        ("read-buffer-least", "read-buffer"),
        ("buffer-kind", "write-buffer"),
        ("write-buffer-drain", "write-buffer"),
    ):
        if _verdict(findings, parameter) == "found" and _verdict(findings, whole) == "absent":
            yield against(
                parameter,
                whole,
                f"none without a {whole.replace('-', ' ')}",
                f"findings.{whole} is absent; give one of the two as unknown",
            )
    prefetch = findings.get("prefetch")
    if _verdict(findings, "prefetch-size") == "found" and (
        prefetch is None or prefetch.value != "yes"
    ):
        yield against(
            "prefetch-size",
            "",
            "none without prefetching",
            'findings.prefetch must be found with the value "yes"',
        )


def _verdict(findings: Mapping[str, Finding], parameter: str) -> str:
    """The verdict; what was never looked for counts as absent."""
    finding = findings.get(parameter)
    return "absent" if finding is None else finding.verdict
