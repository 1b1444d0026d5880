"""Spare space of a purged drive, then interval and length of the stalls in steady state."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from flashwright.drive.findings import Finding, Mark, Plot, Series, unknown
from flashwright.probing.probes.cleaning.stalls import LEAST, Kind, Steady, describe, measure
from flashwright.probing.probes.shared import verdicts
from flashwright.probing.probes.shared.overwriting import (
    LEAST_BYTES,
    Base,
    fill_once,
    sequential,
    synced_size,
    write_and_flush,
)
from flashwright.target.arrays import Array, Flags
from flashwright.target.question import Context, Cost, kib
from flashwright.target.stats import steadiness

__all__ = ["Cleaning"]


# Stalls to wait for. Derived: their mean distance is known to 6 and 3 %, one over the root of their number.
_STALLS = {"quick": 300, "full": 1000}
# Writes to the empty drive that show what a write without cleaning takes.
_CONTROL = 2048
# Parts of a measurement whose means are compared with that of all of it.
_SEGMENTS = 5
# Share of the parts that must be near it. Chosen: most of them.
_AGREEING = 0.5
# The surest verdict. Chosen: two arms and the places are all that was tested.
_SUREST = 0.95
# Random writes until their speed is steady: batches of one capacity.
_BATCHES = 50
# Batches at most: three capacities. Chosen: a drive that is not steady by then is measured as it is.
_BATCHES_MOST = 150
# Speed of random writes over that of the fill, below which merges govern from the first batches on. Chosen.
_MERGED = 0.1
# Share of all writes above which long ones are no stalls but what writes cost. Chosen.
_MOST = 1 / 3
# Blocks at the end of the fill in which nothing may recur with the block, since nothing is cleaned yet. Chosen.
_QUIET = 8
# Consecutive stalls at the distance of a block that show the end of the spare space. Chosen: no chance makes six.
_ONSET = 6


class Cleaning:
    """When, how long, and out of how much room a drive cleans."""

    NAME: ClassVar[str] = "cleaning"
    ABOUT: ClassVar[str] = (
        "bytes between the stalls of random writes in steady state, the length of a stall (SSDcheck's cleaning "
        "interval), and the spare space used up before the first stall (Hu 2012, Section 4.2.2)"
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = ("cleaning-interval", "cleaning-stall", "spare-space")
    # The rest of the drive keeps its data, of which nobody knows how much it leaves to clean.
    OF_THE_WHOLE: ClassVar[tuple[str, ...]] = PARAMETERS

    def cost(self, context: Context) -> Cost:
        """Two fills, at most four capacities of random writes, the arms, and the way to the end of the spare space."""
        capacity = context.target.capacity_bytes
        size = synced_size(context)
        # The fills, four capacities until it is steady, and of a page map the quarter that it may have to spare.
        written = int(capacity * (1.3 + 4.5 + (0.25 if _mapping(context) == "page" else 0.0)))
        return Cost(0, written, 2 * written // size)

    def run(self, context: Context) -> list[Finding]:
        """The spare space first, as it needs an empty drive; then the steady state."""
        target = context.target
        if target.capacity_bytes < LEAST_BYTES:
            why = f"the target has {kib(target.capacity_bytes)}, less than {kib(LEAST_BYTES)}: it would hold few blocks"
            units = zip(self.PARAMETERS, ("B", "ns", ""), strict=True)
            return [unknown(parameter, why, unit) for parameter, unit in units]
        size = synced_size(context)
        purged = target.purge()
        base = Base.of(write_and_flush(target, sequential(target, 0, _CONTROL, size), size))
        spare = _spare(context, size, purged)
        context.keep(spare)
        context.progress(0.3)
        _settle(context, size)
        context.progress(0.7)
        findings = _steady(context, size, base)
        context.progress(1.0)
        return [*findings, spare]


def _mapping(context: Context) -> str | None:
    finding = context.known.get("mapping")
    return str(finding.value) if finding is not None and finding.verdict == "found" else None


def _spare(context: Context, size: int, purged: bool) -> Finding:
    """Bytes that an empty drive takes in order before it cleans: its flash less what it keeps for cleaning."""
    target, block = context.target, context.size("clustered-block")
    if not purged or _mapping(context) != "page" or block is None:
        why = (
            "the room beyond the capacity shows where a page map that was purged first cleans, and "
            + (
                "the target cannot be purged"
                if not purged
                else "the drive is not known to have a page map"
                if _mapping(context) != "page"
                else "the clustered block, by which cleaning recurs, is not known"
            )
        )
        return unknown("spare-space", why + ".")
    target.purge()
    slots = target.capacity_bytes // size
    quiet = min(max(_QUIET * block // size, 64), slots // 4)
    fill_once(target, size, (slots - quiet) * size)
    # The last part one by one: what recurs here is no cleaning, since the flash was never full.
    control = write_and_flush(target, sequential(target, slots - quiet, quiet, size), size)
    base = Base.of(control)
    early = np.diff(np.flatnonzero(control > base.stall_ns)) * size
    if np.count_nonzero(np.abs(early - block) <= 0.1 * block) >= _QUIET // 2:
        why = "long writes recur with the clustered block before all of the capacity is written, without cleaning"
        return unknown("spare-space", why + ".")
    count = max(4 * block // size, 64)
    latencies: list[Array] = []
    done = 0
    while done < slots:
        latencies.append(write_and_flush(target, sequential(target, done, count, size), size))
        done += count
        at = np.flatnonzero(np.concatenate(latencies) > base.stall_ns) * size
        # What lies within half a block belongs together: units clean one after the other.
        begins = at[np.append(True, np.diff(at) > block // 2)] if at.size else at
        regular = np.abs(np.diff(begins) - block) <= 0.1 * block
        if regular.size >= _ONSET and regular[-_ONSET:].all():
            breaks = np.flatnonzero(~regular)
            first = int(begins[breaks[-1] + 1 if breaks.size else 0])
            if first < block:
                why = (
                    f"long writes recur with the clustered block from {kib(first)} beyond the capacity on, so that "
                    "their beginning does not show"
                )
                return unknown("spare-space", why + ".")
            share = first / target.capacity_bytes
            row = block / target.capacity_bytes
            tail = np.concatenate(latencies)
            x = np.arange(tail.size, dtype=np.float64) * size
            shown = slice(max(first - 8 * block, 0) // size, None)
            plot = Plot(
                "Overwriting in order after one fill",
                "written beyond the capacity [B]",
                "latency [ns]",
                (Series("write and flush", x[shown], tail[shown]),),
                (Mark(float(first), "first cleaning"),),
                y_log=True,
            )
            why = (
                f"an empty drive took its capacity and {kib(first // 1024 * 1024)} more in order before long writes "
                f"began to recur with the clustered block; what it keeps for cleaning itself is not in it."
            )
            return verdicts.found(
                "spare-space",
                share,
                "",
                (max(share - row, 0.0), share + row),
                1.0 if not breaks.size else 0.9,
                why,
                (plot,),
                {"spare_bytes": float(first)},
            )
    why = (
        "no long writes recur with the clustered block within two capacities: cleaning is hidden, or the spare space "
        "is larger"
    )
    return unknown("spare-space", why + ".")


def _settle(context: Context, size: int) -> None:
    """Fills the drive and writes it at random until the speed is steady."""
    target, rng = context.target, context.rng("cleaning.settle")
    begin, before = target.now_ns, target.bytes_written
    fill_once(target, size)
    full_speed = (target.bytes_written - before) / max(target.now_ns - begin, 1)
    slots = target.capacity_bytes // size
    count = max(slots // _BATCHES, 1)
    rates: list[float] = []
    for done in range(_BATCHES_MOST):
        times = target.play("write", rng.integers(0, slots, count) * size, size)
        rates.append(count * size / max(times.duration_ns, 1.0))
        context.progress(0.3 + 0.4 * done / _BATCHES_MOST)
        last = np.array(rates[-5:])
        # The steady state of SNIA (algorithm 8.12): five rounds within 20 %, their line within 10 %.
        steady = last.size == 5 and steadiness(last).steady
        if steady and (done + 1 >= _BATCHES or last.mean() < _MERGED * full_speed):
            break


def _steady(context: Context, size: int, base: Base) -> list[Finding]:
    """Interval and length of the stalls of random writes, on a drive in steady state."""
    target, rng = context.target, context.rng("cleaning.steady")
    steady: Steady | None = None
    most = max(target.capacity_bytes // size // 4, 4096)
    for step in measure(target, size, _STALLS[context.mode], most, rng):
        if isinstance(step, Steady):
            steady = step
        else:
            context.progress(0.7 + 0.3 * step)
    assert steady is not None
    latencies = steady.latencies_ns
    cleaning = [kind for kind in steady.kinds if kind.goes_by == "bytes"]
    met = steady.of(cleaning) if cleaning else steady.stalled
    count = int(np.count_nonzero(met))
    figures = {
        "stalls": float(count),
        "base_ns": steady.base.median_ns,
        "stall_from_ns": steady.base.stall_ns,
        "stalled_time_share": float(latencies[steady.stalled].sum() / latencies.sum()),
    }
    for at, kind in enumerate(steady.kinds):
        figures |= {
            f"kind_{at}_stalls": float(kind.count),
            f"kind_{at}_by_requests": kind.by_requests,
            f"kind_{at}_by_time": kind.by_time,
        }
    plot = _plot(steady)
    against = _against(context, steady, base, cleaning, met)
    if against:
        return [
            unknown("cleaning-interval", against + ".", "B", (plot,), **figures),
            unknown("cleaning-stall", against + ".", "ns", (plot,), **figures),
        ]
    interval = latencies.size * size / count
    extra = steady.extra_ns[met]
    gaps = np.diff(np.flatnonzero(np.append(True, met))) * float(size)
    draws = rng.integers(0, count, (200, count))
    intervals = gaps[draws].mean(axis=1)
    stalls = np.median(extra[draws], axis=1)
    segments = [part.mean() for part in np.array_split(gaps, _SEGMENTS)]
    middles = [float(np.median(part)) for part in np.array_split(extra, _SEGMENTS)]
    stall = float(np.median(extra))
    seen = (
        f"{count} of {latencies.size} random writes of {kib(size)} stalled, where others take "
        f"{steady.base.median_ns / 1e6:.3g} ms: {describe(cleaning, size)}"
    )
    steadily, agreeing_share = _agreeing(segments, interval), _agreeing(middles, stall)
    if steadily < _AGREEING:
        why = f"{seen}; but irregularly: {steadily:.0%} of {_SEGMENTS} parts are near the mean."
        return [
            unknown("cleaning-interval", why, "B", (plot,), **figures),
            unknown("cleaning-stall", why, "ns", (plot,), **figures),
        ]
    others = [kind for kind in steady.kinds if kind not in cleaning]
    if others:
        seen += f". Not counted: {describe(others, size)}"
    return [
        Finding(
            "cleaning-interval",
            "found",
            round(interval),
            "B",
            float(np.quantile(intervals, 0.025)),
            float(np.quantile(intervals, 0.975)),
            # Within a quarter: a fifth of the stalls is known to about a tenth.
            min(steadily, _SUREST),
            f"{seen}.",
            (plot,),
            figures,
        ),
        verdicts.found(
            "cleaning-stall",
            round(stall),
            "ns",
            (float(np.quantile(stalls, 0.025)), float(np.quantile(stalls, 0.975))),
            min(agreeing_share, _SUREST),
            f"{seen}; this is the median of what they took more.",
            (plot,),
            figures,
        ),
    ]


def _against(context: Context, steady: Steady, base: Base, cleaning: list[Kind], met: Flags) -> str:
    """Why the stalls may not be cleaning; empty if nothing contradicts it."""
    latencies, size = steady.latencies_ns, steady.size_bytes
    count = int(np.count_nonzero(steady.stalled))
    if _mapping(context) != "page" and np.mean(latencies > base.stall_ns) > _MOST:
        return (
            f"{np.mean(latencies > base.stall_ns):.0%} of {latencies.size} random writes take over "
            f"{base.stall_ns / 1e6:.3g} ms, longer than on the empty drive: merges, a cache that is full, or a map "
            "that is not in RAM strike most of them, and what strikes now and then does not show"
        )
    if count < LEAST:
        return f"{count} of {latencies.size} random writes took longer than most: too few to say how often"
    if count > _MOST * latencies.size:
        return f"{count} of {latencies.size} random writes are long: that is what writes cost, not how often it cleans"
    if not cleaning:
        return (
            f"no kind of stall goes by bytes alone, as cleaning does, whatever size writes have and however fast they "
            f"come: {describe(steady.kinds, size)}"
        )
    return steady.placed(met, context.target.capacity_bytes)


def _plot(steady: Steady) -> Plot:
    x = np.arange(steady.latencies_ns.size, dtype=np.float64) * steady.size_bytes
    level = np.full(2, steady.base.stall_ns)
    return Plot(
        "Random writes in steady state",
        "written [B]",
        "latency [ns]",
        (
            Series("write and flush", x[:8192], steady.latencies_ns[:8192]),
            Series("beyond this: stall", x[[0, min(8191, x.size - 1)]], level, "step"),
        ),
        y_log=True,
    )


def _agreeing(parts: list[float], whole: float) -> float:
    """The share of parts within a quarter of the whole."""
    return float(np.mean([abs(part / whole - 1) <= 0.25 for part in parts]))
