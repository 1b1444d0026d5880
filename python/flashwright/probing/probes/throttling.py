"""Whether minutes of load slow all of a drive down, and how much rest undoes that.

Drives slow down when they are hot, or when a budget of work is spent. The thermometer is reads of a place that the load
leaves alone::

    reads      ~~~~~~___________      ___~~~~~
    load             writes in order, then reads      rest

Other causes of slow writes, and how the probe excludes them:

- A cache of writes that fills, and cleaning: the probe looks at reads, of a place that is never written again, after a
  flush.
- A map that the load pushes out of RAM: a first pass over the place does not count.
- Wear and age: rest undoes neither, so there is no verdict without recovery.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from flashwright.drive.findings import Finding, Mark, Plot, Series, unknown
from flashwright.probing.probes.shared import verdicts
from flashwright.probing.probes.shared.overwriting import LEAST_BYTES, stream_write_size
from flashwright.target.arrays import Array
from flashwright.target.question import UNTESTED, Context, Cost
from flashwright.target.stats import mad
from flashwright.target.target import Kind

__all__ = ["Throttling"]


# Bytes of the place that the load leaves alone.
_PLACE = 16 << 20
# Requests outstanding. Chosen: what SATA drives take.
_DEPTH = 32
# Seconds of load on the drive's clock.
_SECONDS = {"quick": 60.0, "full": 600.0}
# Share of them that are writes, at most. Chosen: reads warm a drive as well, and wear nothing.
_WRITES = 0.4
# The last part and the looks come on top of that time: seconds of all, over those of load.
_PARTS_TOO = 1.5
# Capacities that are written and read at most.
_CAPACITIES = {"write": {"quick": 1.0, "full": 4.0}, "read": {"quick": 48.0, "full": 480.0}}
# Bytes of each at most.
_BYTES = {"quick": 256 << 30, "full": 2 << 40}
# A part of the load, as a share of the capacity; each is followed by a look.
_PART = 1 / 8
# Bytes of a part at most.
_PART_BYTES = 1 << 30
# Speed of reads after the load over that before, up to which the drive is throttled. Chosen.
_FELL = 0.85
# The same that rest must bring back. Chosen: close to all of it.
_BACK = 0.92
# The same from which on nothing fell. Chosen: a gap to the above, in which there is no verdict.
_KEPT = 0.93
# Rests one after the other, seconds: each twice as long, eight and a half minutes in all.
_RESTS_S = tuple(float(2**k) for k in range(9))
# Passes of a look whose median counts.
_LOOKS = 3
# Kinds of load, in order.
_KINDS: tuple[Kind, ...] = ("write", "read")
# The surest verdict. Chosen: other makes may slow down otherwise.
_SUREST = 0.95


class Throttling:
    """The speed that is left after minutes of load, and the rest that brings it back."""

    NAME: ClassVar[str] = "throttling"
    ABOUT: ClassVar[str] = (
        "Whether minutes of load slow all of the drive down, as by heat or a budget, to which share, and how much rest "
        "undoes it: reads of a place that the load leaves alone."
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = ("throttled-share", "throttle-recovery")

    def cost(self, context: Context) -> Cost:
        """A fill of the place, the load, and looks in between."""
        part, place = _part(context), _place(context)
        writes, reads = (_parts(context, kind) for kind in _KINDS)
        looks = (writes + reads + len(_RESTS_S) + 10) * (_LOOKS + 1) * place
        written, read = writes * part + 2 * place, reads * part + looks
        requests = (written + read) // stream_write_size(context) + writes + reads
        return Cost(read, written, requests, _PARTS_TOO * _SECONDS[context.mode])

    def run(self, context: Context) -> list[Finding]:
        """Look, load, look again, and rest."""
        target = context.target
        if target.capacity_bytes < LEAST_BYTES:
            why = f"the target has {target.capacity_bytes:,} B, too little for a place beside the load"
            return [unknown("throttled-share", why), unknown("throttle-recovery", why, "ns")]
        thermometer = _Thermometer(context)
        cold = [thermometer.look() for _ in range(4)]
        times, speeds = thermometer.load(context)
        context.progress(0.8)
        hot = float(np.median(speeds[-5:]))
        return _decide(np.array(cold), times, speeds, hot, thermometer)


def _place(context: Context) -> int:
    size = stream_write_size(context)
    return max(min(_PLACE, context.target.capacity_bytes // 8) // size, 1) * size


def _part(context: Context) -> int:
    return context.down(min(int(context.target.capacity_bytes * _PART), _PART_BYTES))


def _parts(context: Context, kind: Kind) -> int:
    most = _CAPACITIES[kind][context.mode] * context.target.capacity_bytes
    return max(int(min(most, _BYTES[context.mode])) // _part(context), 1)


class _Thermometer:
    """Reads of a place that nothing else touches."""

    def __init__(self, context: Context) -> None:
        self.target, self.size, self.place = (
            context.target,
            stream_write_size(context),
            _place(context),
        )
        self.slots = self.target.capacity_bytes // self.size
        self.first = self.place // self.size
        self.write()

    def write(self) -> None:
        """Write the place."""
        self.target.play("write", np.arange(self.first) * self.size, self.size, depth=_DEPTH)
        self.target.flush()

    def look(self) -> float:
        """Bytes per second, the median of some passes after one that does not count."""
        offsets = np.arange(self.first) * self.size
        speeds = []
        for _ in range(_LOOKS + 1):
            times = self.target.play("read", offsets, self.size, depth=_DEPTH)
            speeds.append(times.rate(self.place))
        return float(np.median(speeds[1:]))

    def load(self, context: Context) -> tuple[Array, Array]:
        """Writes in order and then reads, with a look after each part: when, and how fast."""
        target = self.target
        count = max(_part(context) // self.size, 1)
        beyond = self.slots - self.first
        begun, at, limit = target.now_ns, 0, _SECONDS[context.mode] * 1e9
        times, speeds = [], []
        for kind in _KINDS:
            until = limit * (_WRITES if kind == "write" else 1.0)
            for _ in range(_parts(context, kind)):
                if target.now_ns - begun > until:
                    break
                places = (self.first + (at + np.arange(count)) % beyond) * self.size
                target.play(kind, places, self.size, depth=_DEPTH)
                at += count
                target.flush()
                speeds.append(self.look())
                times.append(float(target.now_ns - begun))
                context.progress(0.8 * min((target.now_ns - begun) / limit, 1.0))
        return np.array(times), np.array(speeds)


def _decide(
    cold: Array, times: Array, speeds: Array, hot: float, thermometer: _Thermometer
) -> list[Finding]:
    fresh = float(np.median(cold))
    share = hot / fresh
    noise = max(mad(speeds / fresh), mad(cold / fresh))
    figures = {
        "fresh_bytes_per_s": fresh,
        "loaded_bytes_per_s": hot,
        "loaded_ns": float(times[-1]) if times.size else 0.0,
        "least_share": float(speeds.min() / fresh),
    }
    plot = Plot(
        "Reads of a place that the load leaves alone",
        "load [ns]",
        "bandwidth [B/s]",
        (Series("after each part of the load", times, speeds, "line"),),
        (Mark(float(times[-1]), "rest"),),
    )
    seen = (
        f"after {times[-1] / 1e9:.0f} s of load, reads of a place that it left alone have {share:.2f} of their speed "
        f"({fresh / 1e6:,.0f} MB/s)"
    )

    def both_unknown(why: str) -> list[Finding]:
        return [
            unknown("throttled-share", why, "", (plot,), **figures),
            unknown("throttle-recovery", why, "ns", (), **figures),
        ]

    if float(np.quantile(speeds, 0.1)) > _KEPT * fresh:
        why = f"{seen}: so long a load does not slow it down."
        return [
            verdicts.absent("throttled-share", "", _SUREST, why, (plot,), figures),
            verdicts.absent("throttle-recovery", "ns", _SUREST, why, (), figures),
        ]
    if share > _FELL or noise > 0.5 * (1 - share):
        return both_unknown(f"{seen}: too near to tell.")
    target = thermometer.target
    rested, needed = 0.0, None
    for rest_s in _RESTS_S:
        target.idle(rest_s * 1e9)
        rested += rest_s
        # Shortly, so that looking is no load.
        if thermometer.look() >= _BACK * fresh:
            needed = rested
            break
    if needed is None:
        why = f"{seen}; {rested:.0f} s of rest do not bring it back"
        late = thermometer.look()
        thermometer.write()
        anew = thermometer.look()
        if hot < _KEPT * late or anew < _BACK * fresh:
            return both_unknown(f"{why}: age, or a longer rest.")
        # That a limit which rest does not lift ends by writing the place is not tested.
        why += (
            f" (the load left {hot / late:.2f} of what it has then), but written anew it is read at "
            f"{anew / fresh:.2f} of its first speed: its data were moved to slower cells, and nothing limits the drive."
        )
        return [
            verdicts.absent(name, unit, UNTESTED, why, plots, figures)
            for name, unit, plots in (
                ("throttled-share", "", (plot,)),
                ("throttle-recovery", "ns", ()),
            )
        ]
    again = thermometer.look()
    sure = _SUREST if again >= _KEPT * fresh else UNTESTED
    why = f"{seen}; {needed:.0f} s of rest bring it back ({again / fresh:.2f})."
    low, high = (float(q) / fresh for q in np.quantile(speeds[-5:], (0.0, 1.0)))
    return [
        verdicts.found(
            "throttled-share", round(share, 3), "", (low, high), sure, why, (plot,), figures
        ),
        verdicts.found(
            "throttle-recovery",
            round(needed * 1e9),
            "ns",
            (0.5 * needed * 1e9, needed * 1e9),
            sure,
            why,
            (),
            figures,
        ),
    ]
