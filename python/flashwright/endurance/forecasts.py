"""A drive played to its end, and its end extrapolated from rounds that were played."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

import numpy as np
import numpy.typing as npt

from flashwright.endurance.formulas import Floats
from flashwright.errors import ConfigError, WorkloadError
from flashwright.simulation.results import RunResult
from flashwright.simulation.run import PlaySettings, Run, RunSettings
from flashwright.simulation.ssd import Ssd
from flashwright.support.core import _core
from flashwright.support.progress import Progress
from flashwright.traces import workloads

__all__ = ["Forecast", "begin", "extrapolate", "forecast", "play_to_end", "spare_share"]


# More requests than any run can play: the drive's end is the end.
_FOREVER = 2**62
_REPEATS = 2**32 - 1
_READS_ONLY = 2_000_000


def begin(
    ssd: Ssd,
    workload: workloads.Source | str,
    settings: RunSettings | None = None,
    **by_name: Unpack[PlaySettings],
) -> Run:
    """A run that only the drive's end of life ends; traces are repeated.

    Parameters
    ----------
    ssd : Ssd
        The drive; its ``wear.pe-cycles-max`` limits the erases of a block.
    workload : Workload, Trace or str
        What wears it out.
    settings : RunSettings, optional
        All else; ``requests`` is ignored.
    **by_name
        Settings as :meth:`Ssd.play` takes them; laid over `settings`.

    Returns
    -------
    Run

    Raises
    ------
    ConfigError
        If the drive has no limit of erases.
    """
    if ssd.config["wear"]["pe-cycles-max"] == 0:
        raise ConfigError(
            "wear.pe-cycles-max: found 0 (no limit), expected the erases that a block takes",
            "such as 3000",
        )
    source = workloads.find(workload) if isinstance(workload, str) else workload
    if isinstance(source, workloads.Trace):
        source = replace(source, repeat=_REPEATS)
    made = replace(settings or RunSettings(), **by_name)
    made = replace(made, requests=_FOREVER)
    return Run.create(ssd.toml, ssd.preconditioning or "empty", source, made)


def play_to_end(
    run: Run,
    *,
    progress: Callable[[Progress], None] | None = None,
    stop_after: int | None = None,
    time_limit_s: float | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: float | None = None,
) -> RunResult:
    """Play until the drive can take no more writes.

    Parameters
    ----------
    run : Run
        Of :func:`begin`, or a saved one.
    progress : callable, optional
        Called a few times a second; ``done`` is erases, ``total`` those that all blocks take together.
    stop_after, time_limit_s, checkpoint, checkpoint_every
        As :meth:`Run.go` takes them. A run that is saved and taken up again comes to the same end.

    Returns
    -------
    RunResult
        ``json["ended"]`` is ``"worn-out"``, or ``"interrupted"`` where it was stopped before; :class:`Endurance`
        reads it.

    Raises
    ------
    WorkloadError
        If the workload writes nothing, so that no drive ever wears out.

    Examples
    --------
    >>> from flashwright import Endurance, Ssd
    >>> ssd = Ssd.named("default").with_(blocks_per_plane=16, pages_per_block=32, pe_cycles_max=20, utilization=0.7)
    >>> end = Endurance.of(play_to_end(begin(ssd.with_({"timing.model": "none"}), "uniform")))
    >>> 2 < end.drive_writes < 20, end.efficiency < 1
    (True, True)
    """
    budget = _budget(run)

    def report_progress(now: Progress) -> None:
        erases, host_pages, _ = run.wear
        if host_pages == 0 and now.requests >= _READS_ONLY:
            raise WorkloadError(
                f"workload: found no write in {now.requests:,} requests, expected some",
                "a drive that is only read does not wear out",
            )
        if progress is not None:
            progress(Progress("measured", min(erases, budget), budget, None, now.requests))

    return run.go(
        progress=report_progress,
        stop_after=stop_after,
        time_limit_s=time_limit_s,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    )


def _budget(run: Run) -> int:
    """Erases that all blocks take together."""
    cycles: int = Ssd(run.toml).config["wear"]["pe-cycles-max"]
    return cycles * len(run.erases_per_block)


_STEADY_ROUNDS = 5
_ROUNDS_MAX = 25
_STEPS_A_DRIVE_WRITE = 64
# Of the mean erases; what it separates is measured in experiments/lifetime.
_UNEVEN_SHARE = 0.25


@dataclass(frozen=True)
class Forecast:
    """The end of life as extrapolated from a part of it.

    Attributes
    ----------
    host_pages : float
        Pages that host writes will have touched.
    host_bytes : float
        Bytes that the host will have written.
    measured_pages : int
        Pages that the host had written when the forecast was made.
    share : float
        Share of the erase budget that was used up by then, 0-1.
    steady : bool
        Whether cleaning had become steady.
    write_amplification : float
        Pages programmed per host page over the last rounds, by erases.
    spread : float
        Standard deviation of the blocks' erases when the forecast was made.
    growth : float
        The variance of the erases grows as this power of their mean: 0 where blocks are levelled, 1 where
        victims are independent draws, 2 where blocks keep rates of their own.
    unused : float
        Erases that a block has left at the end, in the mean.
    uneven : bool
        Whether the erases' standard deviation is more than a quarter of their mean. All forecasts of
        ``experiments/lifetime`` that were off by more than 5 % were of such drives.
    """

    host_pages: float
    host_bytes: float
    measured_pages: int
    share: float
    steady: bool
    write_amplification: float
    spread: float
    growth: float
    unused: float
    uneven: bool


def extrapolate(
    host_pages: Sequence[int],
    erases: Sequence[npt.NDArray[np.uint32]],
    *,
    host_bytes: Sequence[int],
    cycles: int,
    pages_per_block: int,
    spare: float,
) -> Forecast:
    """The end of life from the erases of every block at a few moments.

    With N blocks of Np pages that take M erases, r erases per host page over the last rounds, H pages
    written so far and E erases so far::

        end = H + (N (M - d) - E) / r

    d is the correction for uneven wear. Blocks stop to be erased at M, each at another time; the drive ends
    when a share g of them has stopped, where g is its share of spare blocks, for then the rest holds no more
    than the data. With x the blocks' erases less their mean m, over their standard deviation s, and q the
    quantile 1 - g of x, that is when ``m' + s' q = M`` with ``s' = s (m' / m)^(growth / 2)``; the others
    then have ``d = s' mean(max(0, q - x))`` erases left. Growth is measured between the moment of half the
    mean erases and now. That cleaning costs more as blocks stop is left out, so that uneven wear comes out
    a little too well.

    For a whole life on a new drive this is ``N Np (M + 1 - d) / WA``, with one fill more than erases.

    Parameters
    ----------
    host_pages : sequence of int
        Pages that host writes had touched at each moment, rising.
    erases : sequence of array of uint32, shape (blocks,)
        Erases of each block at each moment.
    host_bytes : sequence of int
        Bytes that the host had written at each moment. From now on a page touched brings as many of them as between
        the first moment and the last.
    cycles : int
        M.
    pages_per_block : int
        Np.
    spare : float
        g, share of the blocks beyond those that hold the data or are kept for cleaning, 0-1.

    Returns
    -------
    Forecast

    Examples
    --------
    Four blocks of 10 pages, levelled, that are erased once per 20 host pages, so that WA is 2. The drive was filled
    with whole pages of 4,096 B, and each page touched since brings 512 B:

    >>> even = [np.full(4, n, np.uint32) for n in range(1, 7)]
    >>> pages = [100 + 20 * n for n in range(6)]
    >>> brought = [100 * 4096 + 20 * 512 * n for n in range(6)]
    >>> made = extrapolate(
    ...     pages, even, host_bytes=brought, cycles=50, pages_per_block=10, spare=0.25
    ... )
    >>> made.write_amplification, made.unused, made.host_pages, made.host_bytes - 100 * 4096
    (2.0, 0.0, 1080.0, 501760.0)
    """
    if len(host_pages) < 2:
        raise WorkloadError(
            "forecast: found one moment, expected two or more",
            "the drive ended before its blocks were erased twice: play it to its end",
        )
    first = max(0, len(host_pages) - 1 - _STEADY_ROUNDS)
    now = erases[-1].astype(np.float64)
    rate = (now.sum() - erases[first].sum(dtype=np.float64)) / (host_pages[-1] - host_pages[first])
    mean, spread = float(now.mean()), math.sqrt(_variance(erases[-1]))
    growth = _growth(erases)
    unused = 0.0
    if spread > 0:
        x = (now - mean) / spread
        q = float(np.quantile(x, 1 - spare))

        def spread_at(later: float) -> float:
            return float(spread * (later / mean) ** (growth / 2))

        # Rising in the mean, so halving finds it; where blocks differ much, q keeps M out of reach for long.
        low, high = mean, max(mean, 4.0 * cycles)
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if middle + q * spread_at(middle) < cycles else (low, middle)
        uncapped = low + spread_at(low) * x
        unused = float(np.clip(cycles - uncapped, 0, cycles).mean())
    left = max(0.0, len(now) * (cycles - unused) - now.sum()) / rate
    # Of the load alone, and of all of it: the last rounds are no whole passes of a trace.
    brought = (host_bytes[-1] - host_bytes[0]) / (host_pages[-1] - host_pages[0])
    per_round = np.diff(np.asarray([e.sum(dtype=np.float64) for e in erases]))
    costs = per_round / np.diff(np.asarray(host_pages, dtype=np.float64))
    return Forecast(
        host_pages=float(host_pages[-1] + left),
        host_bytes=float(host_bytes[-1] + left * brought),
        measured_pages=int(host_pages[-1]),
        share=float(now.sum() / (cycles * len(now))),
        steady=_is_steady(costs),
        write_amplification=float(rate * pages_per_block),
        spread=spread,
        growth=growth,
        unused=unused,
        uneven=spread > _UNEVEN_SHARE * mean,
    )


def _variance(erases: npt.NDArray[np.uint32]) -> float:
    """Variance beyond that of levelled blocks, of which some wait for their turn of a round."""
    part = float(erases.mean()) % 1
    return max(0.0, float(erases.var()) - part * (1 - part))


def _growth(erases: Sequence[npt.NDArray[np.uint32]]) -> float:
    """How the variance of the erases grows with their mean, as an exponent."""
    means = np.asarray([e.mean() for e in erases])
    half = int(np.argmin(np.abs(means - means[-1] / 2)))
    before, after = _variance(erases[half]), _variance(erases[-1])
    if half == len(erases) - 1 or before <= 0 or after <= 0 or means[half] <= 0:
        return 1.0
    found = math.log(after / before) / math.log(means[-1] / means[half])
    return float(min(2.0, max(0.0, found)))


def _is_steady(costs: Floats) -> bool:
    """The rule of the SNIA SSS PTS, a range of 20 % and a rise of the fitted line of 10 % of the mean.

    Over the later half of all rounds, five at least, so that a slow drift is not mistaken for a steady state.
    """
    rounds = max(_STEADY_ROUNDS, len(costs) // 2)
    if len(costs) < rounds:
        return False
    last = costs[-rounds:]
    slope = np.polyfit(np.arange(rounds), last, 1)[0]
    mean = float(last.mean())
    rise = abs(float(slope)) * (rounds - 1)
    return bool(np.ptp(last) <= 0.2 * mean and rise <= 0.1 * mean)


def _rounds(run: Run, progress: Callable[[Progress], None] | None, ends: float) -> Iterator[bool]:
    """Step on until the blocks were erased once more in the mean; False once the time has passed. Ends with the run."""
    blocks, budget = len(run.erases_per_block), _budget(run)
    step = max(1, _logical_pages(run) // _STEPS_A_DRIVE_WRITE)
    while run.progress().phase not in ("measured", "done"):
        run.step(step)
        if time.monotonic() > ends:
            yield False
    reached = run.wear[0] // blocks
    while not run.step(step):
        erases, host_pages, _ = run.wear
        requests = run.progress().requests
        if host_pages == 0 and requests >= _READS_ONLY:
            raise WorkloadError(
                f"workload: found no write in {requests:,} requests, expected some",
                "a drive that is only read does not wear out",
            )
        if progress is not None:
            progress(Progress("measured", min(erases, budget), budget, None, requests))
        if erases // blocks > reached:
            reached = erases // blocks
            yield True
        elif time.monotonic() > ends:
            yield False


def _logical_pages(run: Run) -> int:
    return _core.config_check(run.toml)[1]


def spare_share(run: Run) -> float:
    """Share of the blocks that a drive can lose: all but those that hold the data or are kept for cleaning.

    Parameters
    ----------
    run : Run
        A run of the drive.

    Examples
    --------
    >>> ssd = Ssd.named("default").with_({"wear.pe-cycles-max": 9}, utilization=0.5)
    >>> round(spare_share(begin(ssd, "uniform")), 3)
    0.497
    """
    config, blocks = Ssd(run.toml).config, len(run.erases_per_block)
    kept = blocks // config["geometry"]["blocks-per-plane"] * (config["gc"]["free-blocks-min"] + 1)
    data = _logical_pages(run) / config["geometry"]["pages-per-block"]
    return float(max(1 / blocks, 1 - (data + kept) / blocks))


def forecast(
    run: Run,
    *,
    progress: Callable[[Progress], None] | None = None,
    share_min: float = 0.1,
    rounds_min: int = _STEADY_ROUNDS + 1,
    rounds_max: int | None = None,
    seconds: float = math.inf,
) -> Forecast | None:
    """Play a run until its cleaning is steady, and extrapolate from there to the drive's end.

    A round is the time in which all blocks are erased once in the mean. Steady is by the rule of the SNIA
    SSS PTS over the later half of the rounds, five at least, of erases per host page; after `rounds_max` rounds the
    forecast is made all the same, and says that it was not. On a drive that begins empty a skewed workload
    takes long to fill it: fill it first (``precondition("random")``). See :func:`extrapolate` for what is made of it.

    Parameters
    ----------
    run : Run
        Of :func:`begin`; it is left where it was when the forecast was made, and can be played to its end.
    progress : callable, optional
        As of :func:`play_to_end`.
    share_min : float, optional
        Share of the erase budget to use up at least before forecasting, 0-1; more is slower and nearer.
    rounds_min : int, optional
        Rounds to play at least before forecasting.
    rounds_max : int, optional
        Rounds after which the forecast is made, steady or not, at least six; by default 25.
    seconds : float, optional
        After so many seconds the forecast is made of the rounds that there are, steady or not.

    Returns
    -------
    Forecast or None
        None if the drive came to its end before, or the seconds had passed before it was erased twice.

    Examples
    --------
    >>> from flashwright import Endurance, Ssd
    >>> ssd = Ssd.named("default").with_(blocks_per_plane=16, pages_per_block=32, pe_cycles_max=200, utilization=0.7)
    >>> run = begin(ssd.with_({"timing.model": "none"}), "uniform")
    >>> made = forecast(run)
    >>> end = Endurance.of(play_to_end(run))
    >>> made.share < 0.15, abs(made.host_pages / end.host_pages - 1) < 0.05
    (True, True)
    """
    host_pages: list[int] = []
    host_bytes: list[int] = []
    erases: list[npt.NDArray[np.uint32]] = []
    config = Ssd(run.toml).config
    cycles, pages = config["wear"]["pe-cycles-max"], config["geometry"]["pages-per-block"]
    spare = spare_share(run)

    def extrapolated() -> Forecast:
        return extrapolate(
            host_pages,
            erases,
            host_bytes=host_bytes,
            cycles=cycles,
            pages_per_block=pages,
            spare=spare,
        )

    ends = time.monotonic() + seconds
    for at_round in _rounds(run, progress, ends):
        if not at_round:
            break
        _, pages_written, bytes_written = run.wear
        host_pages.append(pages_written)
        host_bytes.append(bytes_written)
        erases.append(run.erases_per_block)
        if len(host_pages) < max(rounds_min, _STEADY_ROUNDS + 1):
            continue
        made = extrapolated()
        if (
            made.steady or len(host_pages) >= (rounds_max or _ROUNDS_MAX)
        ) and made.share >= share_min:
            return made
    if time.monotonic() < ends or len(host_pages) < 2:
        return None
    return extrapolated()
