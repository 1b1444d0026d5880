"""Whether a drive pauses by the clock: how often, and for how long.

Housekeeping that goes by time delays whatever is asked meanwhile. Reads one after the other meet each such pause once,
at its beginning. Other causes of long reads, and how the probe excludes them:

- Anything that goes by requests or bytes (a map that is loaded, patrol reads after so many): the same reads at half the
  pace meet a pause by the clock after as much time, and anything else after as many reads.
- Cleaning: nothing is written, and the drive rests before.
- Tails by chance: the gaps between pauses must be equal, in both runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from flashwright.drive.findings import Finding, Mark, Plot, Series, unknown
from flashwright.probing.probes.shared import verdicts
from flashwright.target.arrays import Array
from flashwright.target.question import Context, Cost
from flashwright.target.stats import mad
from flashwright.target.target import FILL_BYTES

__all__ = ["Pauses", "Recurring", "recurring"]


# Bytes that are written once and read. Chosen: the map of so little is in any RAM.
_REGION = 64 << 20
# Bytes of a read.
_SIZE = 4096
# Reads of a run at most.
_READS = {"quick": 200_000, "full": 2_000_000}
# The time after which a run ends, seconds on the drive's clock.
_SECONDS = {"quick": 20.0, "full": 200.0}
# Reads that are handed over together at full pace.
_CHUNK = 4096
# Reads between two rests at half the pace, at most. Chosen: rests stay short.
_TOGETHER = 64
# Rest before the reads, seconds. Chosen: what was written before is at rest then.
_REST_S = 2.0
# A pause is this many times as long as a read, at least. Chosen: more than a read that waits for another.
_TIMES = 3.0
# And this many deviations longer. Chosen: no noise among so many reads reaches it.
_DEVIATIONS = 12.0
# Pauses that must be seen. Chosen: five gaps.
_LEAST = 6
# How near to the period a gap lies, as a share. Chosen.
_NEAR = 0.2
# Share of the gaps that must lie so near. Chosen.
_SHARE = 0.8
# Share of the reads above which long ones are no pauses but what reads cost. Chosen.
_MOST = 0.02
# The surest verdict. Chosen: two paces are all that was tested.
_SUREST = 0.95


@dataclass(frozen=True)
class Recurring:
    """Pauses of a run.

    Attributes
    ----------
    count : int
        Reads that took too long.
    period_ns, length_ns : float
        From one to the next, and what each adds to a read: medians; NaN where there are too few.
    agreeing_share : float
        Share of the gaps near the period.
    reads : float
        Reads from one pause to the next.
    """

    count: int
    period_ns: float
    length_ns: float
    agreeing_share: float
    reads: float

    @property
    def regular(self) -> bool:
        """Whether they recur."""
        return self.count >= _LEAST and self.agreeing_share >= _SHARE


def recurring(started_ns: Array, latency_ns: Array) -> Recurring:
    """The pauses among reads that follow each other.

    Parameters
    ----------
    started_ns, latency_ns : array
        Of each read.

    Examples
    --------
    >>> latency = np.full(5000, 1e5)
    >>> latency[100::500] = 5e6
    >>> seen = recurring(np.cumsum(latency) - latency, latency)
    >>> seen.count, round(seen.period_ns / 1e6, 1), seen.length_ns / 1e6, seen.regular
    (10, 54.9, 4.9, True)
    """
    middle = float(np.median(latency_ns))
    least = max(_TIMES * middle, middle + _DEVIATIONS * mad(latency_ns))
    at = np.flatnonzero(latency_ns > least)
    if at.size < _LEAST:
        return Recurring(int(at.size), float("nan"), float("nan"), 0.0, float("nan"))
    gaps = np.diff(started_ns[at])
    period = float(np.median(gaps))
    agreeing_share = float(np.mean(np.abs(gaps / period - 1) <= _NEAR))
    length = float(np.median(latency_ns[at])) - middle
    return Recurring(int(at.size), period, length, agreeing_share, float(np.median(np.diff(at))))


class Pauses:
    """Pauses that recur with time."""

    NAME: ClassVar[str] = "pauses"
    ABOUT: ClassVar[str] = (
        "Whether the drive stands still by the clock, how often and for how long: reads one after the other, and again "
        "at half the pace."
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = ("pause-period", "pause-length")
    READS_ALONE: ClassVar[bool] = True

    def cost(self, context: Context) -> Cost:
        """A small region, and two runs of reads."""
        reads = 2 * _READS[context.mode]
        written = 0 if context.target.read_only else _region(context)
        requests = reads + written // FILL_BYTES
        # Twice that time, the fill and the rest.
        return Cost(reads * context.up(_SIZE), written, requests, 3 * _SECONDS[context.mode])

    def run(self, context: Context) -> list[Finding]:
        """Read at full and at half the pace, and compare what recurs."""
        context.fill(_region(context))
        context.target.idle(_REST_S * 1e9)
        rng = context.rng(self.NAME)
        started, took = _reads(context, rng)
        fast = recurring(started, took)
        context.progress(0.5)
        slow = None
        if fast.regular:
            usual = float(np.median(took))
            # Rests are shorter than pauses, which cannot hide in them.
            together = int(np.clip(fast.length_ns / usual / 4, 1, _TOGETHER))
            slow = recurring(*_reads(context, rng, together, usual * together))
        context.progress(1.0)
        return _decide(started, took, fast, slow)


def _region(context: Context) -> int:
    return context.down(min(context.target.capacity_bytes, _REGION))


def _reads(
    context: Context, rng: np.random.Generator, together: int = _CHUNK, rest_ns: float = 0.0
) -> tuple[Array, Array]:
    """When reads began and how long they took; with a rest after some of them, where one is wanted."""
    target, size = context.target, context.up(_SIZE)
    slots = _region(context) // size
    begun = target.now_ns
    started: list[Array] = []
    took: list[Array] = []
    done, most = 0, _READS[context.mode] // (2 if rest_ns else 1)
    while done < most and target.now_ns - begun < _SECONDS[context.mode] * 1e9:
        count = min(together, most - done)
        times = target.play("read", rng.integers(0, slots, count) * size, size)
        started.append(times.submitted_ns.astype(np.float64))
        took.append(times.latency_ns)
        target.idle(rest_ns)
        done += count
    return np.concatenate(started), np.concatenate(took)


def _decide(started: Array, took: Array, fast: Recurring, slow: Recurring | None) -> list[Finding]:
    length = float(started[-1] - started[0])
    figures = {
        "pauses": float(fast.count),
        "watched_ns": length,
        "alike_share": fast.agreeing_share,
    }
    shown = np.argsort(took)[-2048:]
    plot = Plot(
        "Reads one after the other; the longest of them",
        "begun [ns]",
        "latency [ns]",
        (Series("read", started[shown] - started[0], took[shown]),),
        (),
        y_log=True,
    )

    def both_unknown(why: str) -> list[Finding]:
        return [
            unknown("pause-period", why, "ns", (plot,), **figures),
            unknown("pause-length", why, "ns", (), **figures),
        ]

    seen = f"{fast.count} of {took.size} reads in {length / 1e9:.3g} s took over {_TIMES:g} times the usual"
    if fast.count < _LEAST:
        why = f"{seen}: nothing recurs within {length / _LEAST / 1e9:.2g} s."
        return [
            verdicts.absent("pause-period", "ns", _SUREST, why, (plot,), figures),
            verdicts.absent("pause-length", "ns", _SUREST, why, (), figures),
        ]
    if fast.count > _MOST * took.size:
        return both_unknown(f"{seen}: so many are what reads cost.")
    if slow is None or not slow.regular:
        return both_unknown(
            f"{seen}: at no steady distance ({fast.agreeing_share:.0%} of the gaps are alike)."
        )
    by_time = slow.period_ns / fast.period_ns
    by_reads = slow.reads / fast.reads
    figures |= {"half_pace_time_ratio": by_time, "half_pace_reads_ratio": by_reads}
    seen += (
        f", every {fast.period_ns / 1e6:.4g} ms, by {fast.length_ns / 1e6:.3g} ms; at half the pace every "
        f"{slow.period_ns / 1e6:.4g} ms"
    )
    if abs(by_time - 1) > _NEAR or abs(by_reads - 1) < _NEAR:
        return both_unknown(f"{seen}: it goes by reads rather than by time.")
    period = float(np.sqrt(fast.period_ns * slow.period_ns))
    sure = min(fast.agreeing_share, slow.agreeing_share, _SUREST)
    why = f"{seen}: it goes by the clock."
    spread = 0.5 * abs(fast.period_ns - slow.period_ns) + fast.length_ns
    mark = Mark(period, "period")
    return [
        verdicts.found(
            "pause-period",
            round(period),
            "ns",
            (period - spread, period + spread),
            sure,
            why,
            (Plot(plot.title, plot.x_label, plot.y_label, plot.series, (mark,), y_log=True),),
            figures,
        ),
        verdicts.found(
            "pause-length",
            round(fast.length_ns),
            "ns",
            (0.8 * fast.length_ns, 1.2 * fast.length_ns),
            sure,
            why,
            (),
            figures,
        ),
    ]
