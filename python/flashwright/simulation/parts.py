"""What the result of a run is made of: latencies, looks at all blocks, the verdict on settling, warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from flashwright.errors import WorkloadError
from flashwright.support.arguments import checked
from flashwright.support.tabular import Tabular

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

__all__ = ["Latencies", "Settled", "Snapshots", "Warned", "amplifications_differ"]

_DIFFER = 0.01
"""From this relative difference on, tables show write amplification by pages and by bytes, as the page to watch."""


@dataclass(frozen=True, eq=False, repr=False)
class Latencies(Tabular):
    """Response times of one kind of request, queueing included.

    Attributes
    ----------
    summary : mapping
        ``count``, ``mean``, ``stdev``, ``p50``, ``p90``, ``p99``, ``p99_9``, ``max``, in nanoseconds; None
        where there was no such request, or no time passed.
    times_ns : array of uint64
        Points of the cumulative distribution: times,
    shares : array of float
        and the shares of requests that took at most as long.
    """

    summary: Mapping[str, float | None]
    times_ns: npt.NDArray[np.uint64]
    shares: npt.NDArray[np.float64]

    @property
    def mean(self) -> float | None:
        """Mean in nanoseconds."""
        return self.summary["mean"]

    @overload
    def quantile(self, q: float) -> int | None: ...
    @overload
    def quantile(self, q: Sequence[float]) -> dict[float, int | None]: ...
    @checked(q=(0, 1))
    def quantile(self, q: float | Sequence[float]) -> int | dict[float, int | None] | None:
        """The time below or at which a share of the requests lies.

        Parameters
        ----------
        q : float or sequence of float
            Shares, 0 to 1.

        Returns
        -------
        int or None, or a dict of them by share
            Nanoseconds, to three significant digits for the shares of the summary and to the next point of
            the distribution for others; None without requests.

        Examples
        --------
        >>> from flashwright import Ssd
        >>> run = Ssd.named("default").play("sequential", requests=1000)
        >>> run.latency_ns.quantile([0.5, 0.99])
        {0.5: 620480, 0.99: 620480}
        """
        if not isinstance(q, (int, float)):
            return {share: self.quantile(share) for share in q}
        if not 0 <= q <= 1:
            raise WorkloadError(f"quantile: found {q}, expected a share from 0 to 1", "")
        known = {0.5: "p50", 0.9: "p90", 0.99: "p99", 0.999: "p99_9", 1.0: "max"}.get(q)
        if known is not None:
            value = self.summary[known]
            return None if value is None else int(value)
        if not len(self.times_ns):
            return None
        import numpy as np

        at = int(np.searchsorted(self.shares, q, side="left"))
        return int(self.times_ns[min(at, len(self.times_ns) - 1)])

    def to_arrow(self) -> pa.Table:
        """The cumulative distribution, a row a point: ``time_ns``, and the ``share`` of requests that took no longer.

        Returns
        -------
        pyarrow.Table

        Examples
        --------
        >>> from flashwright import Ssd
        >>> run = Ssd.named("default").play("uniform", requests=1000)
        >>> run.latency_ns.to_arrow().column_names
        ['time_ns', 'share']
        """
        import pyarrow as pa

        return pa.table({"time_ns": self.times_ns, "share": self.shares})

    def __repr__(self) -> str:
        known = (f"{key}={value:,.0f}" for key, value in self.summary.items() if value is not None)
        return f"Latencies({', '.join(known)})"


@dataclass(frozen=True, eq=False, repr=False)
class Snapshots(Tabular):
    """All blocks at moments of a run, spaced evenly; the first where measuring begins, the last at the end.

    Attributes
    ----------
    joined : int
        Neighbouring blocks of a plane that one cell stands for; the last cell of a plane may stand for fewer.
    requests_end : array of uint64, shape (moments,)
        Requests completed by then.
    time_end_ns : array of uint64, shape (moments,)
        The drive's clock.
    erases, valid : array of float32, shape (moments, cells)
        Erases since the drive was new, and valid pages: means of each cell's blocks, cells in order of block.

    Examples
    --------
    >>> from flashwright import Ssd
    >>> run = Ssd.named("default").play("uniform", requests=20_000, snapshots=5)
    >>> run.snapshots.requests_end, run.snapshots.valid.sum(axis=1).max() <= 20_000
    (array([    0,  6400, 12800, 19200, 20000], dtype=uint64), np.True_)
    """

    joined: int
    requests_end: npt.NDArray[np.uint64]
    time_end_ns: npt.NDArray[np.uint64]
    erases: npt.NDArray[np.float32]
    valid: npt.NDArray[np.float32]

    def to_arrow(self) -> pa.Table:
        """A row for each moment and cell: ``requests_end``, ``time_end_ns``, ``cell``, ``erases``, ``valid`` (pages).

        Returns
        -------
        pyarrow.Table
        """
        import numpy as np
        import pyarrow as pa

        moments, cells = self.erases.shape
        return pa.table(
            {
                "requests_end": np.repeat(self.requests_end, cells),
                "time_end_ns": np.repeat(self.time_end_ns, cells),
                "cell": np.tile(np.arange(cells, dtype=np.uint32), moments),
                "erases": self.erases.ravel(),
                "valid": self.valid.ravel(),
            }
        )

    def __repr__(self) -> str:
        moments, cells = self.erases.shape
        return f"Snapshots({moments} moments of {cells:,} cells)"


@dataclass(frozen=True)
class Settled:
    """Whether a run's figures are of a drive that had settled under the workload. True where they are.

    Attributes
    ----------
    verdict : {"settled", "transient", "too-short", "none", "never-cleaned"}
        ``settled``: write amplification no longer changed, and the measurement is long enough. ``transient``: it still
        changed, or too little was erased to tell. ``too-short``: the drive had settled, but the measurement can't say
        its figure to 3 %. ``none``: the host wrote nothing. ``never-cleaned``: nothing changes any more, but cleaning
        moved no page, so that the figures say nothing of what it costs under a load that needs it.
    since_request : int or None
        The measured request from which on the drive was settled; 0 where it was so before.
    confidence : float or None
        How often the verdict ``settled`` was right to 3 % against runs ten times as long (``experiments/settling``).
    write_amplification : float or None
        Of the settled part, preconditioning by the workload included.
    interval : (float, float) or None
        95 % interval of the measured write amplification.
    drift : float or None
        The largest relative difference between spans of the history.
    erases_per_block : float
        Erases a block since the workload began.
    why : str
        The reason, in a sentence.
    mend : str or None
        The option that mends it.

    Examples
    --------
    >>> from flashwright import Ssd
    >>> ssd = Ssd.named("default").with_(blocks_per_plane=64)
    >>> run = ssd.play("uniform:write=1", requests=50_000)
    >>> bool(run.settled), run.settled.verdict, run.settled.mend
    (False, 'transient', '--precondition workload')
    >>> run = ssd.precondition("workload").play("uniform:write=1", requests=50_000)
    >>> bool(run.settled), run.settled.since_request
    (True, 0)
    """

    verdict: str
    since_request: int | None
    confidence: float | None
    write_amplification: float | None
    interval: tuple[float, float] | None
    drift: float | None
    erases_per_block: float
    why: str
    mend: str | None

    @classmethod
    def of(cls, figures: Mapping[str, Any]) -> Settled:
        """Made from the documented figures of a run, section ``settled``."""
        interval = figures["interval"]
        return cls(**{**figures, "interval": None if interval is None else tuple(interval)})

    def __bool__(self) -> bool:
        return self.verdict == "settled"


@dataclass(frozen=True)
class Warned:
    """Something to know before using the figures of a run.

    Attributes
    ----------
    code : str
        What programs know it by, such as ``unmapped-reads``.
    text : str
        What it is, in a sentence with its figures.
    mend : str or None
        The options that mend it.

    Examples
    --------
    >>> from flashwright import Ssd
    >>> run = Ssd.named("default").play("uniform:write=0.5,depth=2", requests=1000, depth=4)
    >>> [warned.code for warned in run.warnings]
    ['not-settled', 'unmapped-reads', 'pace-overridden']
    >>> print(run.warnings[2])
    the workload states depth=2, but depth 4 sets the pace of this run
    """

    code: str
    text: str
    mend: str | None

    def __str__(self) -> str:
        return self.text if self.mend is None else f"{self.text}; try {self.mend}"


def amplifications_differ(figures: Mapping[str, Any]) -> bool:
    """Whether write amplification by bytes is another figure than that by pages, so that both are to be shown.

    Parameters
    ----------
    figures : mapping
        ``write_amplification`` and ``write_amplification_bytes``, as in a run's JSON.

    Examples
    --------
    >>> amplifications_differ({"write_amplification": 2.0, "write_amplification_bytes": 2.001})
    False
    >>> amplifications_differ({"write_amplification": 1.0, "write_amplification_bytes": 16.0})
    True
    """
    by_pages = figures.get("write_amplification")
    by_bytes = figures.get("write_amplification_bytes")
    return bool(by_pages) and by_bytes is not None and abs(by_bytes / by_pages - 1) > _DIFFER
