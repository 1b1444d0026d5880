"""Whether a twin may be relied on: what its record says of how near it comes to its drive."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

__all__ = [
    "FIT_BOUND",
    "KIND_BOUND",
    "MEAN_BOUND",
    "P99_BOUND",
    "TwinWarning",
    "check_record",
    "doubts_of_twin",
    "warn_of_twin",
]

MEAN_BOUND = 0.10
"""A twin's mean latency may be off by this share in its check."""
P99_BOUND = 0.25
"""And its 99th percentile by this one."""
KIND_BOUND = 0.25
"""And the mean of reads alone, and of writes alone, by this one: one must not make up for the other."""
FIT_BOUND = 0.25
"""And what it was fitted to by this much: the root mean square of the logarithms of ratios."""


class TwinWarning(UserWarning):
    """A twin is used whose fit or check was beyond its bound, or that was never checked."""


def check_record(
    mean_ratio: float,
    p99_ratio: float,
    mean_error: float = 0.0,
    p99_error: float = 0.0,
    *,
    reads_ratio: float = 1.0,
    writes_ratio: float = 1.0,
) -> dict[str, Any]:
    """What the record of a twin keeps of its check.

    Parameters
    ----------
    mean_ratio, p99_ratio : float
        Twin over drive, of the latencies of all requests.
    mean_error, p99_error : float, optional
        By how much the ratio of means, and that of 99th percentiles, may be off by chance.
    reads_ratio, writes_ratio : float, optional
        Ratio of means of reads and of writes alone.
    """
    return {
        "mean-ratio": mean_ratio,
        "p99-ratio": p99_ratio,
        "mean-error": mean_error,
        "p99-error": p99_error,
        "reads-ratio": reads_ratio,
        "writes-ratio": writes_ratio,
    }


def doubts_of_twin(record: Mapping[str, Any]) -> list[str]:
    """Why a twin's figures are not to be relied on.

    Parameters
    ----------
    record : mapping
        Of a profile, ``twin-record``. One that is empty belongs to a twin that nobody fitted, of which nothing is said.

    Returns
    -------
    list of str
        A clause each; empty for a twin within its bounds.

    Examples
    --------
    >>> doubts_of_twin({"error": 0.03, "check": check_record(1.04, 0.9)})
    []
    >>> doubts_of_twin({"error": 0.5, "check": check_record(9.5, 1.1)})
    ['its fit is off by 0.50 (bound 0.25)', "in its check the mean was 9.50 times the drive's (bound 10 %)"]
    >>> doubts_of_twin({"error": 0.03})
    ['it was never checked against its drive']
    >>> doubts_of_twin({"error": 0.1, "check": check_record(0.91, 1.0, 0.02)})
    ["in its check the mean was 0.91 times the drive's, give or take 0.02 (bound 10 %)"]
    """
    if not record:
        return []
    doubts = []
    error = record.get("error")
    if isinstance(error, int | float) and not error <= FIT_BOUND:
        doubts.append(f"its fit is off by {error:.2f} (bound {FIT_BOUND:g})")
    checked = record.get("check")
    if not isinstance(checked, Mapping):
        return [*doubts, "it was never checked against its drive"]
    for key, name, bound in (
        ("mean-ratio", "mean", MEAN_BOUND),
        ("p99-ratio", "99th percentile", P99_BOUND),
    ):
        ratio = checked.get(key)
        if not isinstance(ratio, int | float) or not abs(ratio - 1) <= bound:
            said = f"{ratio:.2f} times the drive's" if isinstance(ratio, int | float) else "unknown"
            doubts.append(f"in its check the {name} was {said} (bound {bound * 100:g} %)")
        elif abs(ratio - 1) + (by_chance := _by_chance(checked, key)) > bound:
            # Another check might find it outside.
            doubts.append(
                f"in its check the {name} was {ratio:.2f} times the drive's, give or take {by_chance:.2f} "
                f"(bound {bound * 100:g} %)"
            )
    for key, kind in (("reads-ratio", "reads"), ("writes-ratio", "writes")):
        ratio = checked.get(key, 1.0)
        if not isinstance(ratio, int | float) or not abs(ratio - 1) <= KIND_BOUND:
            # One may make up for the other in the mean of all.
            said = f"{ratio:.2f} times the drive's" if isinstance(ratio, int | float) else "unknown"
            doubts.append(
                f"in its check the mean of {kind} was {said} (bound {KIND_BOUND * 100:g} %)"
            )
    return doubts


def _by_chance(checked: Mapping[str, Any], ratio: str) -> float:
    found = checked.get(ratio.replace("-ratio", "-error"), 0.0)
    return float(found) if isinstance(found, int | float) else 0.0


def warn_of_twin(record: Mapping[str, Any], source: str) -> None:
    """Warn whoever uses a twin that may not be relied on.

    Parameters
    ----------
    record : mapping
        Of its profile.
    source : str
        Where it comes from.
    """
    doubts = doubts_of_twin(record)
    if doubts:
        warnings.warn(
            f"{source}: don't rely on this twin: {'; '.join(doubts)}", TwinWarning, stacklevel=2
        )
