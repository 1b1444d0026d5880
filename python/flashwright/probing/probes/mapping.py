"""How a drive maps: every page anywhere, or blocks with logs (Hu 2012, Sections 4.2.2 and 4.2.3).

The dissertation reads the policy from bandwidth over data written: a page map keeps its speed until the flash is full
and then loses the more the wider the writes spread; a log-block map merges from the start. Those curves are drawn here
too. A sharper test decides: on a drive that is mostly empty a page map has nothing to clean, whatever is written where,
while logs are used up and merged all the same. Other causes of a loss of speed there, and how the probe excludes them:

- A full cache of writes, or a limit by time or heat: as much is written in order, which falls as well, so that only the
  ratio counts. Once random writes are slow, writes in order and at random alternate (:func:`alternating_writes`).
- A map that is not in RAM, and seeks: reads at random lose speed as well as writes, against reads in order.

Alternating writes are on a drive on which random writes have become slow. Merges depend on where writes go, so that
writes in order are fast in the very state in which random writes are slow. A full cache, heat, and a limit by time do
not depend on it: both kinds are slow then. A purge and a second run cannot distinguish the two, since either may find
the drive in another state; turns can::

    at random    ____            ____               merges: each turn in order is fast, each at random slow again
    in order         ^^^^            ^^^^
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from flashwright.drive.findings import Finding, Mark, Plot, Series, unknown
from flashwright.probing.probes.shared import verdicts
from flashwright.probing.probes.shared.overwriting import LEAST_BYTES, synced_size
from flashwright.target.arrays import Array, Ints
from flashwright.target.question import Context, Cost, kib
from flashwright.target.stats import change_point, steadiness
from flashwright.target.target import Kind, Target

__all__ = [
    "Curve",
    "Mapping",
    "Turns",
    "alternating_writes",
    "curve",
    "curves_say",
]

Policy = Literal["page", "log-block"]

# Bytes of a write of the curves (Section 4.2.2).
_SIZE = 64 << 10
# Requests outstanding. Source: not stated there; 32 is what SATA drives take (algorithm 8.7).
_DEPTH = 32
# Shares of the address space that the curves are of (Section 4.2.2). Chosen for quick mode: the narrowest and the
# widest.
_SHARES: dict[str, tuple[float, ...]] = {"quick": (0.1, 1.0), "full": (0.1, 0.5, 0.7, 0.9, 1.0)}
# Capacities written for each. Source: 6 in Section 4.2.2; 2 show the knee of spare space up to 0.5.
_FILLS: dict[str, float] = {"quick": 2.0, "full": 6.0}
# The deciding test fills one of so many parts of the drive. Derived: an eighth written, and three eighths on top, leave
# half of the drive's flash empty, while logs of 3 to 10 % of the drive (algorithms 2.4 to 2.7) are used up.
_PART = 8
# How many times that part is then written. Derived: as above; room for half as many blocks again, as groups of blocks
# have, is used up too.
_TIMES = 3.0
# The same where the page is not known. Chosen: a write may cost one and a half times its size and more.
_TIMES_CAREFUL = 1.0
# Bytes of a write where the page is not known.
_CAREFUL_SIZE = 128 << 10
# Batches of the deciding test.
_BATCHES = 24
# Speed that is left at the end, from which on it is a page map. Derived: that loses nothing but what tables cost that
# are not in RAM.
_KEPT = 0.8
# The same, up to which it may be logs. Derived from the costs in pages: a group of blocks with half as many again
# copies about one page for each written, which leaves 0.5; merges of single blocks leave 0.3 to 0.01.
_LOST = 0.6
# Speed of reads at random over reads in order, below which a map is not in RAM, or the drive seeks. Chosen.
_READS_KEPT = 0.75
# What those reads lose, in logarithms, as a share of what writes lose, above which that may be all of it. Chosen.
_READS_TOO = 0.4
# Speed that is left where a page map is written at random all over, at most. Derived: with a third of its flash to
# spare cleaning still copies a page for each one written (algorithm 4.4), so that about half is left.
_NEVER_SLOW = 0.85
# Below this a page costs more than four: a map that is not in RAM reads a table page and writes one for each page at
# most (algorithm 2.8), which with the cleaning of tables is about three; merges go beyond.
_MERGED = 0.25
# Share of a capacity that is written to the purged drive, and then read.
_HISTORY_SHARE = 1 / 16
# How many times as fast writes in order are in each turn, from which on it matters where writes go. Chosen: beyond the
# noise of batches.
_LEAST_GAIN = 1.3
# Batches of a turn in order; the first half may pay for what random writes left.
_IN_ORDER = 4
# Batches at random, at most, until they are as slow as before.
_AT_RANDOM = 12
# Speed over that before, up to which they are as slow. Chosen.
_AS_SLOW = 1.25
# Batches of all turns at most.
_ROUNDS_MOST = 2 * _IN_ORDER + _AT_RANDOM


@dataclass(frozen=True, eq=False)
class Curve:
    """Bandwidth over data written, random writes within the first part of a drive.

    Attributes
    ----------
    share : float
        Of the capacity that is written to, P.
    written : array of float64
        At the end of each window, capacities.
    bandwidth_bytes_per_s : array of float64, one a window
        A window is a hundredth of the capacity.
    """

    share: float
    written: Array
    bandwidth_bytes_per_s: Array

    @property
    def peak(self) -> float:
        """The median over the first half capacity, bytes per second (algorithm 8.7)."""
        return float(np.median(self.bandwidth_bytes_per_s[self.written <= 0.5]))

    @property
    def fresh(self) -> float:
        """The median over the first twentieth of a capacity, bytes per second."""
        return float(np.median(self.bandwidth_bytes_per_s[:5]))

    @property
    def late(self) -> float:
        """The median over the last half capacity, bytes per second."""
        last = self.written > self.written[-1] - 0.5
        return float(np.median(self.bandwidth_bytes_per_s[last]))

    @property
    def kept(self) -> float:
        """The median over the last half capacity, as a share of the peak: rho."""
        return self.late / self.peak

    @property
    def knee(self) -> float:
        """Where the bandwidth turns, capacities: two segments fitted to its logarithm."""
        at, _ = change_point(np.log(self.bandwidth_bytes_per_s))
        return float(self.written[min(at, self.written.size - 1)])


def curve(
    target: Target,
    share: float,
    fills: float,
    rng: np.random.Generator,
    *,
    size_bytes: int = _SIZE,
    depth: int = _DEPTH,
    progress: Callable[[float], None] = lambda share: None,
) -> Curve:
    """Writes at random within the first `share` of a purged drive (Hu 2012, Section 4.2.2; algorithm 8.7).

    It ends early, from two capacities on, where the last capacity was steady by the rule of SNIA (spread 20 %, slope
    10 % over five parts).

    Parameters
    ----------
    target : Target
        The drive; all is purged.
    share : float
        Above 0, up to 1.
    fills : float
        Capacities to write.
    rng : numpy Generator
        Draws the places.
    size_bytes, depth : int, optional
        Of each write, and how many are outstanding.
    progress : callable, optional
        Told the share that is done.

    Returns
    -------
    Curve
        A point for each hundredth of the capacity.

    Examples
    --------
    >>> with Target("sim:default") as drive:
    ...     fresh = curve(drive, 0.1, 0.5, np.random.default_rng(1))
    >>> round(fresh.kept, 1)
    1.0
    """
    slots = max(int(target.capacity_bytes * share) // size_bytes, 1)
    count = max(target.capacity_bytes // 100 // size_bytes, 1)
    target.purge()
    rates: list[float] = []
    windows = max(round(fills * target.capacity_bytes / (count * size_bytes)), 1)
    a_fill = max(windows / fills, 5)
    for at in range(windows):
        times = target.play(
            "write", rng.integers(0, slots, count) * size_bytes, size_bytes, depth=depth
        )
        rates.append(times.rate(count * size_bytes))
        progress((at + 1) / windows)
        if at + 1 >= 2 * a_fill and (at + 1) % 10 == 0 and _steady(np.array(rates[-int(a_fill) :])):
            break
    step = count * size_bytes / target.capacity_bytes
    written = np.linspace(step, step * len(rates), len(rates))
    return Curve(share, written, np.array(rates, np.float64))


def _steady(rates: Array) -> bool:
    return steadiness(np.array([part.mean() for part in np.array_split(rates, 5)])).steady


def curves_say(curves: list[Curve], sequential: float) -> Policy | None:
    """The rule of algorithm 8.8, which has Hu 2012, Section 4.2.3, in numbers.

    Parameters
    ----------
    curves : list of Curve
        By rising share; the last over all of the drive.
    sequential : float
        Bandwidth of writes in order of the same size on a fresh drive, bytes per second.

    Returns
    -------
    {"page", "log-block"} or None
        None where the curves leave it open.

    Examples
    --------
    >>> written = np.arange(1, 301) / 100
    >>> flat = Curve(1.0, written, np.full(300, 1e6))
    >>> curves_say([flat], 5e6), curves_say([flat], 1e6)
    ('log-block', None)
    >>> curves_say([Curve(1.0, written, np.where(written < 1.1, 3e6, 1e6))], 3e6)
    'page'
    """
    kept = [one.kept for one in curves]
    ordered = all(later <= earlier * 1.05 for earlier, later in itertools.pairwise(kept))
    if kept[-1] <= 0.7 and 0.9 <= curves[-1].knee <= 1.5 and ordered:
        return "page"
    # A large spare space is flat as well; but it does not make random writes half as fast.
    if min(kept) >= 0.9 and sequential >= 2 * max(one.peak for one in curves):
        return "log-block"
    return None


@dataclass(frozen=True, eq=False)
class _Part:
    """What the deciding test measured: bandwidths in bytes per second."""

    size_bytes: int
    written: Array
    rates: Array
    """At random."""
    ordered: Array
    """As much in order, again on a drive that is empty otherwise."""
    sequential: float
    reads: float
    """Reads at random over reads in order, of the same part."""
    turns: Turns | None = None
    """Writes in order and at random by turns, where those at random had become slow."""

    @property
    def shares(self) -> Array:
        """Speeds at random as shares of those in order after as much was written."""
        return self.rates / self.ordered[: self.rates.size]

    @property
    def order_kept(self) -> float:
        """What writes in order keep themselves: less than 1 where a cache of writes fills."""
        return float(np.median(self.ordered[-(self.ordered.size // 4) :])) / max(
            self.sequential, float(self.ordered[0])
        )

    @staticmethod
    def kept(shares: Array) -> float:
        """The last quarter, and if the first sixth is faster than in order, against that."""
        first = float(np.median(shares[: max(shares.size // 6, 1)]))
        return float(np.median(shares[-(shares.size // 4) :])) / max(1.0, first)

    def policy(self, shares: Array) -> Policy | None:
        kept = self.kept(shares)
        if kept >= _KEPT:
            return "page"
        fell = np.median(shares[-(shares.size // 4) :]) < 0.8 * np.median(
            shares[: shares.size // 6]
        )
        merged = kept <= _MERGED or (kept <= _LOST and fell)
        if not merged or self.reads_too(kept) or self.turns is None:
            return None
        return "log-block" if self.turns.gain >= _LEAST_GAIN else None

    def reads_too(self, kept: float) -> bool:
        """Whether reads lose so much speed at random that the loss of writes may have the same cause."""
        return self.reads < _READS_KEPT and np.log(self.reads) < _READS_TOO * np.log(kept)


def _history(
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
    part = max(int(target.capacity_bytes * _HISTORY_SHARE) // _SIZE, 16)
    slots = target.capacity_bytes // _SIZE

    def rate(kind: Kind, places: int, count: int = part) -> float:
        offsets = rng.integers(0, places, max(count, 1)) * _SIZE
        times = target.play(kind, offsets, _SIZE, depth=_DEPTH)
        return times.rate(offsets.size * _SIZE)

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


class Mapping:
    """Page map or log blocks."""

    NAME: ClassVar[str] = "mapping"
    ABOUT: ClassVar[str] = (
        "page map or log blocks: random overwrites of an eighth of a drive that is empty otherwise, and the bandwidth "
        "of random 64 KiB writes over data written (Hu 2012, Sections 4.2.2 and 4.2.3)"
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = ("mapping",)

    def cost(self, context: Context) -> Cost:
        """Half a capacity, twice, at most this many capacities for each share, and a little on a drive made new."""
        capacity = context.target.capacity_bytes
        # An eighth in order, three eighths at random and in order, and the turns.
        part = capacity + int(_ROUNDS_MOST * _TIMES / _PART / _BATCHES * capacity)
        curves = int(len(_SHARES[context.mode]) * _FILLS[context.mode] * capacity)
        size, _ = _how(context)
        again = int(2 * _HISTORY_SHARE * capacity)
        read = 2 * (capacity // _PART) + 2 * again
        return Cost(
            read,
            part + curves + again,
            (part + read) // size + (curves + 3 * again) // _SIZE,
        )

    def run(self, context: Context) -> list[Finding]:
        """Overwrite a part of an empty drive, then draw the curves."""
        target = context.target
        if target.capacity_bytes < LEAST_BYTES:
            why = f"the target has {kib(target.capacity_bytes)}, less than {kib(LEAST_BYTES)}: it would hold few blocks"
            return [unknown("mapping", why)]
        if not target.purge():
            why = (
                "the target cannot be purged, and a drive that is full cleans whichever way it maps"
            )
            return [unknown("mapping", why)]
        part = _overwrite(context)
        context.progress(0.2)
        curves = []
        shares = _SHARES[context.mode]
        size = context.up(_SIZE)
        for at, share in enumerate(shares):
            one = curve(
                target,
                share,
                _FILLS[context.mode],
                context.rng(f"mapping.{share}"),
                size_bytes=size,
                progress=lambda done, at=at: context.progress(  # type: ignore[misc]
                    0.2 + 0.8 * (at + done) / len(shares)
                ),
            )
            curves.append(one)
        found = _decide(context, part, curves)
        history = _history(
            target, curves[-1].fresh, curves[-1].late, context.rng("mapping.history")
        )
        return [replace(found, figures={**found.figures, **history})]


def _how(context: Context) -> tuple[int, float]:
    """Size of the writes of the deciding test, and how many times its part is written."""
    if context.size("clustered-page") is None:
        return context.up(_CAREFUL_SIZE), _TIMES_CAREFUL
    return synced_size(context), _TIMES


def _overwrite(context: Context) -> _Part:
    """Fills a part of an empty drive in order, then writes it at random, and anew in order; each batch is flushed."""
    target = context.target
    size, times = _how(context)
    slots = max(target.capacity_bytes // _PART // size, _BATCHES)
    rng = context.rng("mapping.part")
    count = max(int(slots * times) // _BATCHES, 1)

    def timed(offsets: Ints) -> float:
        played = target.play("write", offsets, size, depth=_DEPTH)
        ended = target.play("flush", [0], 0).ended_ns[0]
        return offsets.size * size / max(float(ended - played.submitted_ns[0]), 1.0) * 1e9

    def read(offsets: Ints) -> float:
        return target.play("read", offsets, size, depth=_DEPTH).rate(offsets.size * size)

    def fill() -> list[float]:
        quarters = np.array_split(np.arange(slots, dtype=np.int64) * size, 4)
        return [timed(quarter) for quarter in quarters]

    quarters = fill()
    # Two passes each, in turns, so that what warms up meets both.
    some = np.arange(max(slots // 2, 1), dtype=np.int64) * size
    order, random = zip(
        *[(read(some), read(rng.integers(0, slots, some.size) * size)) for _ in range(2)],
        strict=True,
    )
    rates: list[float] = []
    for at in range(_BATCHES):
        rates.append(timed(rng.integers(0, slots, count) * size))
        context.progress(0.1 * (at + 1) / _BATCHES)
        # Merges from the first log on, and steadily: a real drive would take hours for the rest.
        if at >= 7 and max(rates[2:]) < 0.2 * _MERGED * float(np.median(quarters)):
            break
    places = target.capacity_bytes // size
    turns = None
    slow = float(np.median(rates[-(len(rates) // 4) :]))
    if slow < _KEPT * float(np.median(quarters)):

        def in_order(first: int) -> float:
            return timed((slots + first + np.arange(count, dtype=np.int64)) % places * size)

        turns = alternating_writes(
            slow, count, in_order, lambda: timed(rng.integers(0, slots, count) * size)
        )
    target.purge()
    again = fill()
    # On and on to new places: where pages are written in part, overwriting in order uses up logs as well.
    ordered = [
        timed((slots + at * count + np.arange(count, dtype=np.int64)) % places * size)
        for at in range(len(rates))
    ]
    step = count * size / target.capacity_bytes
    written = np.linspace(step, step * len(rates), len(rates))
    return _Part(
        size,
        written,
        np.array(rates, np.float64),
        np.array(ordered, np.float64),
        float(np.median([*quarters, *again])),
        max(random) / max(order),
        turns,
    )


def _decide(context: Context, part: _Part, curves: list[Curve]) -> Finding:
    kept, policy = part.kept(part.shares), part.policy(part.shares)
    order = curves_say(curves, part.sequential)
    plots = (_plot_part(part), _plot_curves(curves))
    figures: dict[str, float] = {
        "part_kept_share": kept,
        "part_sequential_bytes_per_s": part.sequential,
        "part_kept_in_order_share": part.order_kept,
        "part_reads_share": part.reads,
        "first_hundredth_share": float(
            curves[-1].bandwidth_bytes_per_s[0] / np.median(curves[-1].bandwidth_bytes_per_s)
        ),
        **{f"kept_at_{one.share:g}": one.kept for one in curves},
        **{f"knee_at_{one.share:g}_capacities": one.knee for one in curves},
    }
    seen = (
        f"an eighth of the empty drive, written in order and then {part.written[-1] * _PART:.1f} times at random, "
        f"keeps {kept:.2f} of the speed that it has in order after as much was written (which is {part.order_kept:.2f} "
        "of the first), while at least a third of the flash has never been written"
    )
    if part.turns is not None:
        figures["in_order_over_random_in_turns"] = part.turns.gain
        seen += f"; {part.turns.text}"
    if policy is None:
        why = f"{seen}{_why_unknown(part, kept)}"
        return Finding("mapping", "unknown", why=why + ".", plots=plots, figures=figures)
    # A cache that fills slows down the narrow range alike; cleaning needs the wide one.
    wide = min(curves[-1].late / curves[0].late, 1.0)
    figures["late_wide_over_narrow"] = wide
    if policy == "page" and max(curves[-1].kept, wide) > _NEVER_SLOW:
        why = (
            f"{seen}, but neither does it slow down when all of it is written over and over ({curves[-1].kept:.2f}, "
            f"and {wide:.2f} of a tenth of it): cleaning is hidden, or this is no flash drive"
        )
        return Finding("mapping", "unknown", why=why + ".", plots=plots, figures=figures)
    # Batches drawn anew within each third, so that what comes first stays first.
    rng = context.rng("mapping.bootstrap")
    thirds = np.array_split(np.arange(part.rates.size), 3)
    rounds = [
        part.policy(part.shares[np.concatenate([np.sort(rng.choice(t, t.size)) for t in thirds])])
        for _ in range(200)
    ]
    share = rounds.count(policy) / len(rounds)
    reason = (
        "a page map has nothing to clean there"
        if policy == "page"
        else "only logs that are used up and merged cost that much"
    )
    agreement = {
        policy: "the curves over data written agree (algorithm of Hu 2012, Section 4.2.3)",
        None: "the curves over data written are inconclusive",
    }.get(
        order,
        f"the curves over data written look like {order}, but the test on an empty drive outweighs them",
    )
    if order is not None and order != policy:
        share *= 0.9
    why = f"{seen}: {reason}; {agreement}."
    return verdicts.found("mapping", policy, "", None, share, why, plots, figures)


def _why_unknown(part: _Part, kept: float) -> str:
    """Why what the part keeps gives no verdict."""
    if kept < _KEPT and part.reads_too(kept):
        return (
            f"; reads at random keep only {part.reads:.2f} of their speed in order, so seeks or a map that is not in "
            "RAM may be all of it"
        )
    if kept <= _LOST and part.turns is not None and part.turns.again:
        return ": what slows writes down does not ask where they go, as a full cache or a limit by time"
    return f": less than a page map keeps ({_KEPT}), more than merges leave ({_LOST}, and falling)"


def _plot_part(part: _Part) -> Plot:
    rate = Series("random, each batch flushed", part.written, part.rates, "line")
    level = Series("in order, after as much", part.written, part.ordered, "line")
    title = "Overwriting an eighth of an empty drive"
    return Plot(title, "written [capacities]", "bandwidth [B/s]", (rate, level), y_log=True)


def _plot_curves(curves: list[Curve]) -> Plot:
    lines = tuple(
        Series(f"first {one.share:.0%}", one.written, one.bandwidth_bytes_per_s, "line")
        for one in curves
    )
    title = "Random writes of 64 KiB from empty on"
    mark = Mark(curves[-1].knee, "knee of all of the drive")
    return Plot(title, "written [capacities]", "bandwidth [B/s]", lines, (mark,), y_log=True)


@dataclass(frozen=True)
class Turns:
    """Alternating writes in order and at random.

    Attributes
    ----------
    gain : float
        How many times as fast writes in order are, in the turn in which that is least.
    again : bool
        Whether random writes became slow again in between.
    """

    gain: float
    again: bool

    @property
    def text(self) -> str:
        """In words.

        Examples
        --------
        >>> Turns(7.0, True).text
        'by turns, writes in order are 7.0 times as fast as those at random'
        """
        if not self.again:
            return (
                "after a turn in order random writes are no longer slow, so that turns show nothing"
            )
        return f"by turns, writes in order are {self.gain:.1f} times as fast as those at random"


def alternating_writes(
    slow: float, count: int, in_order: Callable[[int], float], at_random: Callable[[], float]
) -> Turns:
    """Two turns in order, with one at random between them.

    Parameters
    ----------
    slow : float
        Speed of random writes now, in any unit.
    count : int
        Writes of a batch.
    in_order : callable
        Writes a batch in order from a slot on, and answers its speed.
    at_random : callable
        The same at random.

    Returns
    -------
    Turns
        Its `gain` is 0 where random writes did not become slow again.

    Examples
    --------
    >>> alternating_writes(1.0, 8, lambda first: 5.0, lambda: 1.0)
    Turns(gain=5.0, again=True)
    >>> alternating_writes(1.0, 8, lambda first: 1.0, lambda: 1.0).gain
    1.0
    """

    def turn(first: int) -> float:
        speeds = [in_order(first + batch * count) for batch in range(_IN_ORDER)]
        return float(np.median(speeds[_IN_ORDER // 2 :]))

    before = turn(0) / slow
    for _ in range(_AT_RANDOM):
        speed = at_random()
        if speed <= _AS_SLOW * slow:
            return Turns(min(before, turn(_IN_ORDER * count) / speed), True)
    return Turns(0.0, False)
