"""What reads tell of a map that is loaded on demand: they are of two kinds, with a piece of the map and without."""

from __future__ import annotations

import math

import numpy as np

from flashwright.twin.calibration import Calibration

__all__ = ["hits_of", "signs_of_loading"]

# Reads whose 90th percentile is between so many times their 10th are of two kinds; what takes longer waits for
# something else.
_TWO_KINDS, _OTHER_WAITS = 1.5, 3.0

# Share of the map in RAM where nothing tells it.
_MAP_SHARE = 0.15


def signs_of_loading(calibration: Calibration) -> tuple[bool, float]:
    """Whether reads are of two kinds, and the share of its time that the same read takes again.

    Of the slower kind, if there are two.

    Parameters
    ----------
    calibration : Calibration
        What was measured of a drive.
    """
    read = calibration["read-block"].levels["read"]
    again = calibration["read-block-again"].levels["read"]
    if _TWO_KINDS < read.p90_ns / read.p10_ns < _OTHER_WAITS:
        return True, again.p90_ns / read.p90_ns
    return False, again.p50_ns / read.p50_ns


def hits_of(calibration: Calibration) -> float:
    """Share of reads that find their piece of the map, by where the mean lies between the two kinds.

    Parameters
    ----------
    calibration : Calibration
        What was measured of a drive.
    """
    read = calibration["read-block"].levels["read"]
    if read.p90_ns < _TWO_KINDS * read.p10_ns:
        return _MAP_SHARE
    # What more than half of the reads do is their median; the rarer kind shows at the end.
    loads = read.p50_ns > math.sqrt(read.p10_ns * read.p90_ns)
    found, loaded = (read.p10_ns, read.p50_ns) if loads else (read.p50_ns, read.p90_ns)
    return float(np.clip((loaded - read.mean_ns) / (loaded - found), 0.01, 0.99))
