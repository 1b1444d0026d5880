"""A first answer on how long a drive lasts, at once: even wear at the settled write amplification."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from flashwright.endurance.formulas import Endurance
from flashwright.simulation.results import RunResult
from flashwright.simulation.run import Run, RunSettings
from flashwright.simulation.ssd import Ssd
from flashwright.support.progress import Progress
from flashwright.traces import workloads

__all__ = ["EvenWear", "even_wear"]

# Requests of a look at the clock, and of the measurement.
_STEP, _REQUESTS = 1 << 16, 200_000


@dataclass(frozen=True)
class EvenWear:
    """Cycles times flash over write amplification: the end of a drive whose blocks all take their last erase together.

    Attributes
    ----------
    end, least, most : Endurance
        By the write amplification, and by the ends of its 95 % interval.
    write_amplification : float
        Pages programmed per page that the host wrote, of the drive as settled as it was.
    interval : (float, float) or None
        95 % interval of it; None where the run was too short for one.
    settled : str
        The verdict of the run: see :class:`flashwright.simulation.parts.Settled`.
    """

    end: Endurance
    least: Endurance
    most: Endurance
    write_amplification: float
    interval: tuple[float, float] | None
    settled: str

    @classmethod
    def of(cls, result: RunResult, cycles: int) -> EvenWear | None:
        """Of a run; None for one that wrote nothing.

        Parameters
        ----------
        result : RunResult
            The run.
        cycles : int
            Erases that a block takes.
        """
        amplification, interval = result.write_amplification, result.settled.interval
        if amplification is None:
            return None
        so_far = replace(Endurance.of(result), cycles=cycles)
        low, high = interval or (amplification, amplification)
        # A write of part of a page touches a page and brings that part.
        by_bytes = result.json["write_amplification_bytes"] or amplification
        brought = so_far.page_bytes * amplification / by_bytes

        def by(value: float) -> Endurance:
            pages = so_far.physical_pages * cycles / value
            return replace(so_far, host_pages=pages, host_bytes=pages * brought)

        return cls(
            by(amplification), by(high), by(low), amplification, interval, result.settled.verdict
        )


def even_wear(
    ssd: Ssd,
    source: workloads.Source,
    settings: RunSettings,
    *,
    seconds: float,
    progress: Callable[[Progress], None] | None = None,
) -> EvenWear | None:
    """Play a workload until write amplification has settled, and say by even wear how much the drive takes.

    Static data and skewed workloads wear blocks unevenly, and then the drive ends sooner;
    :func:`flashwright.lifetime.forecast` sees that.

    Parameters
    ----------
    ssd : Ssd
        The drive, with its ``wear.pe-cycles-max``. Without a precondition of its own it settles under the workload.
    source : Workload or Trace
        What is played.
    settings : RunSettings
        All else.
    seconds : float
        At most; of a run that is not measured by then there is no answer.
    progress : callable, optional
        Called now and then.

    Returns
    -------
    EvenWear or None

    Examples
    --------
    >>> ssd = Ssd.named("default").with_(blocks_per_plane=16, pages_per_block=32, pe_cycles_max=200, utilization=0.7)
    >>> found = even_wear(ssd, workloads.uniform(), RunSettings(), seconds=60)
    >>> found.settled, 2 < found.write_amplification < 3
    ('settled', True)
    >>> found.least.host_bytes <= found.end.host_bytes <= found.most.host_bytes
    True
    """
    cycles: int = ssd.config["wear"]["pe-cycles-max"]
    ends = time.monotonic() + seconds
    base = (
        ssd.untimed()
        .settling()
        .with_({"wear.pe-cycles-max": 0, "wear.pe-cycles-spread": 0, "wear.pe-cycles-weibull": 0})
    )
    made = replace(settings, requests=_REQUESTS, warmup=0, window=None, verify=False, audit_every=0)
    if isinstance(source, workloads.Trace):
        made = replace(made, requests=None)
    run = Run.create(base.toml, base.preconditioning or "auto", source, made)
    while not run.step(_STEP):
        if progress is not None:
            progress(run.progress())
        if time.monotonic() > ends:
            break
    result = run.result()
    return None if result is None else EvenWear.of(result, cycles)
