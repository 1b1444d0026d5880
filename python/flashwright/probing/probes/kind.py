"""Signs of flash: what a drive does differently for what was written before, and what a purge undoes.

That nothing speaks against flash makes no flash. Flash must be erased before it is written anew, so random writes to a
drive that was overwritten all over are slower than to one that was purged. What else becomes slower by use, and the arm
that tells it apart: a limit by heat or by credits lasts over a purge without rest, and strikes reads as well; memory
that is written in place, disks and network stores do not change at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from flashwright.drive.findings import Finding
from flashwright.target.question import UNTESTED
from flashwright.target.target import Kind, Target

__all__ = ["HISTORY_SHARE", "history_of", "judged", "speaks_against"]

HISTORY_SHARE = 1 / 16
"""Share of a capacity that is written to the drive made new, and then read."""

_SIZE, _DEPTH = 64 << 10, 32
# Speed of an overwritten drive over that of a new one from which on there is a difference: noise of windows is some
# per cent, and the least spare space of drives that we know of, a third, leaves 0.8.
_SLOWER = 0.85
# A purge brings back so much of the speed of a new drive.
_BACK = 0.8
# Where reads lose about what writes lose, in logarithms between these shares of it, all of the device is limited.
_READS_TOO = (0.5, 1.5)
# What finds flash by signs that do not hang together with its history.
_OTHER_SIGNS = ("clustered-page", "clustered-block", "parallel-units")
_SUREST = 0.97


def history_of(
    target: Target, fresh: float, late: float, rng: np.random.Generator
) -> dict[str, float]:
    """What overwriting and a purge change; for a drive that was just overwritten all over.

    Parameters
    ----------
    target : Target
        The drive.
    fresh, late : float
        Speed of random writes of 64 KiB after a purge, and now, bytes per second.
    rng : numpy Generator
        Draws the places.

    Returns
    -------
    dict of str to float
        ``history_late_share``: what is left of the speed; ``history_back_share``: what a purge brings back;
        ``history_reads_share``: speed of reads now over that after the purge.
    """
    part = max(int(target.capacity_bytes * HISTORY_SHARE) // _SIZE, 16)
    slots = target.capacity_bytes // _SIZE

    def rate(kind: Kind, places: int, count: int = part) -> float:
        offsets = rng.integers(0, places, max(count, 1)) * _SIZE
        times = target.play(kind, offsets, _SIZE, depth=_DEPTH)
        return offsets.size * _SIZE / max(times.duration_ns, 1.0) * 1e9

    # The second pass: what a map has to load first is no matter here.
    used = max(rate("read", part) for _ in range(2))
    target.purge()
    # As much as `fresh` is of: in hundredths, and the median of five.
    back = float(np.median([rate("write", slots, slots // 100) for _ in range(5)]))
    target.fill(end_bytes=part * _SIZE)
    return {
        "history_late_share": late / fresh,
        "history_back_share": back / fresh,
        "history_reads_share": used / max(rate("read", part) for _ in range(2)),
    }


def speaks_against(kind: Finding) -> bool:
    """Whether something speaks against flash, so that nothing else found is a drive's."""
    return kind.verdict == "unknown" and kind.figures.get("against", 0.0) > 0


def judged(kind: Finding, findings: Mapping[str, Finding]) -> Finding:
    """The kind of device by all that was found.

    Parameters
    ----------
    kind : Finding
        By the times of requests alone (the probe ``plausible``).
    findings : mapping of str to Finding
        Of the session so far.

    Examples
    --------
    >>> kind = Finding("kind-of-device", "unknown", why="No sign of flash.")
    >>> used = {"history_late_share": 0.3, "history_back_share": 1.0, "history_reads_share": 0.9}
    >>> judged(kind, {"mapping": Finding("mapping", "unknown", figures=used)}).value
    'flash'
    >>> judged(kind, {"mapping": Finding("mapping", "unknown", figures=dict(used, history_late_share=1.0))}).verdict
    'unknown'
    """
    mapping = findings.get("mapping")
    if kind.verdict != "unknown" or speaks_against(kind) or mapping is None:
        return kind
    late, back, reads = (
        mapping.figures.get(f"history_{name}_share") for name in ("late", "back", "reads")
    )
    if late is None or back is None or reads is None:
        return kind
    figures = {**kind.figures, "late_share": late, "back_share": back, "reads_share": reads}
    seen = (
        f"Random writes keep {late:.2f} of the speed of a new drive once all of it was overwritten, a purge brings "
        f"back {back:.2f}, and reads keep {reads:.2f}"
    )
    if late > _SLOWER:
        why = f"{seen}: what is written in place keeps its speed, flash does not."
        return replace(kind, why=why, figures={**figures, "against": 1.0})
    if back < _BACK or _READS_TOO[0] < np.log(reads) / np.log(late) < _READS_TOO[1]:
        why = f"{seen}: so it may be a limit of the whole device and nothing of flash."
        return replace(kind, why=why, figures=figures)
    others = [
        name
        for name in _OTHER_SIGNS
        if name in findings
        and findings[name].verdict == "found"
        and findings[name].confidence >= 0.9
    ]
    beside = (
        f"it has a {' and '.join(name.replace('-', ' ') for name in others)}"
        if others
        else "no unit of writing or erasing shows beside it"
    )
    return replace(
        kind,
        verdict="found",
        value="flash",
        confidence=_SUREST if others else UNTESTED,
        why=f"{seen}, as where blocks are erased and cleaned; {beside}. {kind.why}",
        figures=figures,
    )
