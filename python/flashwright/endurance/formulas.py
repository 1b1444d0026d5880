"""How long a drive lasts by formula, and what its end amounts to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from flashwright.endurance.amounts import YEAR_S
from flashwright.errors import ConfigError
from flashwright.simulation.results import RunResult

__all__ = ["Endurance", "Floats", "effective_range", "residual", "writable"]

Floats = npt.NDArray[np.float64]


def writable(
    capacity: float | Floats, used: float | Floats, cycles: float | Floats
) -> float | Floats:
    """Data that a drive takes in its life, after Hu et al.

    ``S (P + (1 - P) M)``: P S once, until every page is used; then (1 - P) S cost every block one erase.
    The model knows uniform random writes, a new drive, page mapping, no over-provisioning (all S is the
    host's), and victims that hold the average of valid pages. Under its own workload it errs on the safe side,
    by up to 2; static data and uneven wear can turn that around (``experiments/lifetime``).

    Parameters
    ----------
    capacity : float or array
        S, bytes.
    used : float or array
        P, share of the logical page range that is in use, above 0 and below 1. The paper calls it reserved, for data;
        here what is reserved is what the host may not use.
    cycles : float or array
        M, erases that a block takes.

    Returns
    -------
    float or array
        Bytes; arrays are broadcast.

    Raises
    ------
    ConfigError
        If P, S or M is out of its range.

    References
    ----------
    Hu, Jiang, Manden: Understanding Performance Anomalies of SSDs, SIGMETRICS 2012, Equation 1; Hu's
    dissertation (University of Nebraska-Lincoln, 2012), Equation 4.1.

    Examples
    --------
    >>> round(writable(100e9, 0.9, 10_000) / 1e12, 2)
    100.09
    """
    p = np.asarray(used, dtype=np.float64)
    if not np.all((p > 0) & (p < 1)):
        raise ConfigError(
            f"used: found {used}, expected a share above 0 and below 1",
            "",
            parameters=["used"],
        )
    for name, value in (("capacity", capacity), ("cycles", cycles)):
        if not np.all(np.asarray(value) > 0):
            raise ConfigError(f"{name}: found {value}, expected a number above 0", "")
    found = np.asarray(capacity, dtype=np.float64) * (p + (1 - p) * np.asarray(cycles))
    return float(found) if found.ndim == 0 else found


def residual(
    written: float | Floats,
    capacity: float | Floats,
    used: float | Floats,
    cycles: float | Floats,
) -> float | Floats:
    """Residual lifetime, ``1 - A / (S (P + (1 - P) M))``, after Hu et al.

    Parameters
    ----------
    written : float or array
        A, bytes that the host has written to the drive since it was new.
    capacity, used, cycles : float or array
        S, P and M of :func:`writable`.

    Returns
    -------
    float or array
        Share of the life that is left, cut to 0-1.

    References
    ----------
    As :func:`writable`: Equation 1 of the abstract, Figure 2; Equation 4.1 of the dissertation, Figure 4.5.

    Examples
    --------
    >>> residual(50e12, 100e9, np.array([0.5, 0.8, 0.9]), 10_000).round(3).tolist()
    [0.9, 0.75, 0.5]
    """
    if not np.all(np.asarray(written) >= 0):
        raise ConfigError(
            f"written: found {written}, expected a size from 0 up", "", parameters=["written"]
        )
    left = 1 - np.asarray(written) / np.asarray(writable(capacity, used, cycles))
    found = np.clip(left, 0.0, 1.0)
    return float(found) if found.ndim == 0 else found


def effective_range(used: float | Floats, logical: float, physical: float) -> float | Floats:
    """The range in use as a share of the flash, ``P logical / physical``.

    Equation 1 takes the drive's capacity for its flash. On a drive with over-provisioning, put this share
    for P and the size of the flash for S.

    Parameters
    ----------
    used : float or array
        P, share of the logical page range in use.
    logical, physical : float
        Sizes of the logical space and of the flash, in the same unit.

    Returns
    -------
    float or array

    Examples
    --------
    >>> round(effective_range(0.9, 93, 100), 3)
    0.837
    """
    if not 0 < logical <= physical:
        raise ConfigError(
            f"capacity: found {logical:g} logical of {physical:g} physical, expected no more than that",
            "",
        )
    return used * (logical / physical)


class Writing(Protocol):
    """What the host has written by some moment: a forecast says it of the end."""

    @property
    def host_pages(self) -> float: ...
    @property
    def host_bytes(self) -> float: ...


@dataclass(frozen=True)
class Endurance:
    """What a drive took, or will take, until the first write that it can't.

    Attributes
    ----------
    host_pages : float
        Pages that host writes touched, preconditioning included: one for each request, however small its part.
    host_bytes : float
        Long-term data endurance: bytes that the host wrote, preconditioning included.
    page_bytes : int
        Bytes of a page.
    logical_pages, physical_pages : int
        Pages of the logical space and of the flash.
    cycles : int
        Erases that a block takes.

    Examples
    --------
    Half of each page was written at a time:

    >>> end = Endurance(1_200_000, 600_000 * 4096, 4096, 8_000, 10_000, 300)
    >>> end.drive_writes, end.efficiency, round(end.years(1e3), 2)
    (75.0, 0.4, 0.08)
    """

    host_pages: float
    host_bytes: float
    page_bytes: int
    logical_pages: int
    physical_pages: int
    cycles: int

    @classmethod
    def of(cls, result: RunResult, until: Writing | None = None) -> Endurance:
        """Of a run: of all that the host wrote in it, or of what it will have written by a forecast."""
        drive, wear = result.json["drive"], result.json["wear"]
        pages, written = wear["host_pages_written"], wear["host_bytes_written"]
        assert drive is not None and pages is not None and written is not None, "of a run"
        return cls(
            pages if until is None else until.host_pages,
            written if until is None else until.host_bytes,
            drive["logical_bytes"] // drive["logical_pages"],
            drive["logical_pages"],
            drive["physical_pages"],
            result.json["config"]["wear"]["pe-cycles-max"],
        )

    @property
    def efficiency(self) -> float:
        """Endurance efficiency, by pages: host pages over blocks x pages x cycles.

        It tells how well the flash is used, so a page that was written in part counts as a page.

        With perfect levelling and constant write amplification WA it is ``(1 + 1 / cycles) / WA``: a new
        drive is erased, so that each block is filled once more than it is erased.
        """
        return self.host_pages / (self.physical_pages * self.cycles)

    @property
    def drive_writes(self) -> float:
        """Times that the logical space was written, by bytes."""
        return self.host_bytes / (self.logical_pages * self.page_bytes)

    def years(self, bytes_per_s: float) -> float:
        """Years at a constant rate of host writes."""
        return self.host_bytes / bytes_per_s / YEAR_S


def figures(end: Endurance, rate: float | None) -> dict[str, Any]:
    """The documented figures of an end of life.

    Parameters
    ----------
    end : Endurance
        The end.
    rate : float or None
        Bytes a second that the host writes, for the years.
    """
    return {
        "host_pages": end.host_pages,
        "host_bytes": end.host_bytes,
        "drive_writes": end.drive_writes,
        "endurance_efficiency": end.efficiency,
        "pe_cycles_max": end.cycles,
        "write_rate_bytes_per_s": rate,
        "years": None if rate is None else end.years(rate),
    }
