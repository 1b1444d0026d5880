r"""Whether reads wait until a program or an erase has ended, or suspend it.

The probe writes one program for each unit, flushes, and sends one read some time later. Reads of a place that holds
nothing fill the time until then, since they use no unit. Without suspension, a read that meets a program waits for the
rest of it; with suspension it waits equally long whenever it comes::

    extra    \                                extra
    time      \    waits for the end          time   ------------    suspends
               \____________                                    |__________
         came    ...   T ...                       came    ...   T ...

So the rule is what reads waited over what was left of the program. It needs neither the time of a program nor that of a
suspension. Other causes of that picture, and how the probe excludes them:

- Data on their way to the units keep buses busy: the disturbance must last as long where half as many units get a
  program, or it was not the programs'.
- Several short programs one after the other, as in an SLC cache, of which a read only waits for the current one: the
  wait is then anything between nothing and such a program, where a suspension always takes the same.
- RAM hides the programs, or the drive takes one command at a time: no reads are disturbed in the middle, and there is
  no verdict.
- Reads that wait for reads: there is one at a time.

Erases come with a second round over the drive in order, when each block is used again: they delay the flush by more
than a program. The probe compares what a read waited that came during such a delay with what was left of it. That needs
a fill of the whole drive, which only full mode does, and flushes that wait for flash. Where data are moved as well (an
SLC cache that is folded, cleaning ahead), other reads wait long too, or the delays scatter: no verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from flashwright.drive.findings import Finding, Mark, Plot, Series, unknown
from flashwright.probing.probes.shared import verdicts
from flashwright.probing.probes.shared.overwriting import LEAST_BYTES, grain, stream_write_size
from flashwright.target.arrays import MIB, Array, Ints
from flashwright.target.question import UNTESTED, Context, Cost
from flashwright.target.stats import mad

__all__ = ["Delays", "Suspension", "reads_during"]


# Bytes of a read.
_READ = 4096
# Bytes of the region that is read, about.
_REGION = 64 * MIB
# Bytes of a piece of a long write.
_PIECE = MIB
# Reads while nothing is written. Chosen: their 99.5th percentile is that of two or three.
_QUIET = 512
# Writes with a read each that show how long a write disturbs reads.
_FIRST = 96
# Writes with a read each that decide.
_READS = {"quick": 192, "full": 384}
# Bytes of one program for each unit, at most.
_WIDEST = 16 * MIB
# They take one of so many parts of the drive at most. Chosen: hundreds of them fit before anything is cleaned.
_PART_OF = 1024
# The longest disturbance that is looked for, nanoseconds. Chosen: a few times the longest program.
_LONGEST_NS = 8e6
# Rest between two writes, nanoseconds. Chosen: longer than that.
_REST_NS = 10e6
# Requests that fill the time between a write and its read, at most.
_FILLERS = 1500
# A read is disturbed if it takes longer than this quantile of quiet ones. Chosen.
_QUANTILE = 0.995
# And by this share of a quiet one. Chosen.
_LEAST_SHARE = 0.15
# How long half as many units disturb reads, as a share of how long all do, at least. Derived: data on their way would
# take half as long.
_LASTS = 0.75
# Disturbed reads that show how long a write disturbs reads. Chosen.
_LEAST_SEEN = 4
# Reads come up to so many times as late as the last of them. Chosen: the end must show.
_BEYOND = 1.5
# A disturbance has ended within this share of the time in which reads come.
_ENDS = 0.95
# How often reads are given more time, if it has not.
_TRIES = 2
# How many times as many writes go to fewer units, which a read meets more seldom, at most.
_MORE = 4
# A program takes so many times as long as a read. Chosen: or the two are hard to tell apart.
_LONGER = 2.0
# Writes of the second round over a full drive, capacities. Chosen: erases begin within the spare space.
_ROUND = 0.4
# The same in number, at most.
_WRITES = 12_000
# What a flush is held up by an erase, in programs, at least. Chosen.
_HELD = 0.5
# The same, nanoseconds. Chosen: an erase of any chip takes longer.
_HELD_NS = 0.8e6
# Reads that must have come while a flush was held up so. Chosen: for a median.
_ERASES = 10
# The latest that such reads come, nanoseconds. Chosen: within an erase.
_SPAN_NS = 2.5e6
# How far lengths of erases may scatter, as a share. Chosen: more is data that are moved as well.
_EVEN = 0.3
# Share of the reads that met no erase which may have waited longer than a program. Chosen.
_OTHERS = 0.02
# The surest verdict. Chosen: other makes may delay reads otherwise.
_SUREST = 0.95
# The part of a disturbance in which what reads wait is looked at, as shares of it. Chosen: neither its start, where
# data are on their way, nor its end.
_PART = (0.25, 0.7)
# Reads in that part, at least. Chosen: for a median.
_COUNT = 12
# What reads wait over what is left of the disturbance, from which on they wait for its end. Chosen.
_WAITS = 0.7
# The same up to which they suspend it. Chosen: a gap to the above, in which there is no verdict.
_SUSPENDS = 0.3
# How far what they wait may scatter, as a share, if they suspend it. Derived: a suspension takes always about the same.
_SPREAD_MOST = 0.4


class Suspension:
    """Programs and erases that let reads pass."""

    NAME: ClassVar[str] = "suspension"
    ABOUT: ClassVar[str] = (
        "Whether a read that meets a program or an erase of its unit waits until that has ended, or suspends it: what "
        "reads wait that come so much after a write, over what is left of it."
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = ("program-suspension", "erase-suspension")
    OF_THE_WHOLE: ClassVar[tuple[str, ...]] = ("erase-suspension",)

    def cost(self, context: Context) -> Cost:
        """A region, some hundred writes with a read each, and a fill with part of a second round."""
        if context.target.capacity_bytes < LEAST_BYTES:
            return Cost()
        # Where the units are not known yet, they may be as many as are asked about.
        stripe = _stripe(context)[0] or _widest(context)
        fewer = [1 << step for step in range(1, (stripe // grain(context)).bit_length())]
        reads = _READS[context.mode]
        groups = _FIRST + reads * (_TRIES + sum(min(less, _MORE) for less in fewer))
        whole = _FIRST + reads * (_TRIES + sum(min(less, _MORE) / less for less in fewer))
        pieces = -(-stripe // _PIECE) + 1
        region, fillers = _region(context), groups * (_FILLERS // 2 + pieces)
        written = region + int(whole * stripe)
        requests = region // stripe + groups * pieces + fillers
        alone = _QUIET * (2 * pieces + 3) + groups
        if _may_fill(context) and not _outlives(context):
            again = _again(context, stripe)
            written += context.target.capacity_bytes + (again + 32) * stripe
            requests += context.target.capacity_bytes // stream_write_size(context)
            requests += again * (_FILLERS // 4 + pieces)
            fillers += again * (_FILLERS // 4)
            alone += again
        read = fillers * context.target.block_bytes + alone * context.up(_READ)
        return Cost(read, written, requests + alone)

    def run(self, context: Context) -> list[Finding]:
        """Programs first, then erases."""
        stripe, why = _stripe(context)
        if stripe is None:
            return [unknown(name, why) for name in self.PARAMETERS]
        reads = _Reads(context, stripe)
        programs, seen = _programs(context, reads)
        erases = unknown("erase-suspension", programs.why)
        if seen is None:
            return [programs, erases]
        context.keep(programs)
        context.progress(0.4)
        if _outlives(context):
            why = "no flush waits for flash, so that none shows an erase"
            erases = unknown("erase-suspension", why)
        elif not _may_fill(context):
            erases = unknown(
                "erase-suspension",
                "erases come when all of a drive with a page map has been written, which full mode does",
            )
        else:
            erases = _erases(context, reads, seen)
        context.progress(1.0)
        return [programs, erases]


def _stripe(context: Context) -> tuple[int | None, str]:
    """Bytes of one program for each unit; or why that is not known."""
    if context.target.capacity_bytes < LEAST_BYTES:
        return None, f"the target has {context.target.capacity_bytes:,} B, too little"
    units = context.known.get("parallel-units")
    count = units.value if units is not None and units.verdict == "found" else None
    if not isinstance(count, int) or count < 1:
        why = "how many units work at once is not known, so neither is what gives each a program"
        return None, why
    # Of a program whose size is not known several pages may be programmed one after the other.
    row = context.size("stripe")
    program = context.size("program-unit") or (
        row // count if row else context.size("clustered-page")
    )
    if not program:
        return None, "neither a program nor the clustered page is known"
    if count * program > _widest(context):
        return None, "a program for each unit is too large a part of the drive"
    return count * program, ""


def _widest(context: Context) -> int:
    """The most that a program of each unit may take."""
    return context.up(min(context.target.capacity_bytes // _PART_OF, _WIDEST))


def _region(context: Context) -> int:
    kept = max(context.size("write-buffer") or 0, context.size("read-buffer") or 0)
    size = stream_write_size(context)
    return min(max(_REGION, 4 * kept), context.target.capacity_bytes // 4) // size * size


def _may_fill(context: Context) -> bool:
    target = context.target
    return context.mode == "full" and target.part is None and context.is_page_mapped


def _outlives(context: Context) -> bool:
    """Whether RAM outlives a loss of power, or may."""
    honoured = context.known.get("flush-honoured")
    return honoured is not None and (honoured.verdict == "unknown" or honoured.value == "no")


def _again(context: Context, stripe: int) -> int:
    return min(int(_ROUND * context.target.capacity_bytes) // stripe, _WRITES)


class _Reads:
    """Writes, each with a read some time later."""

    def __init__(self, context: Context, stripe: int) -> None:
        self.target, self.rng = context.target, context.rng("suspension")
        self.mode = context.mode
        self.stripe, self.size = stripe, context.up(_READ)
        self.region = -(-_region(context) // stripe) * stripe
        self.end = self.target.capacity_bytes // stripe * stripe
        # A place that is not written before the drive is filled.
        self.nowhere = self.target.capacity_bytes // self.size * self.size - self.size
        self.at = self.region
        self.target.purge()
        self.target.play("write", np.arange(0, self.region, stripe), stripe)
        self.target.flush()
        self.target.idle(_REST_NS)
        empty = np.full(_QUIET, self.nowhere, np.int64)
        fill = self.target.play("read", empty, self.target.block_bytes)
        self.filler_ns = float(np.median(fill.latency_ns))
        quiet = np.array([self.alone() for _ in range(_QUIET)])
        self.usual = float(np.median(quiet))
        noise = float(np.quantile(quiet, _QUANTILE)) - self.usual
        self.least = max(1.2 * noise, _LEAST_SHARE * self.usual)

    def place(self) -> int:
        """Somewhere in what was written first."""
        return int(self.rng.integers(0, self.region // self.size)) * self.size

    def alone(self) -> float:
        """The latency of a read beside the fillers, when nothing is written."""
        depth = -(-self.stripe // _PIECE) + 2
        offsets = np.full(2 * depth + 1, self.nowhere, np.int64)
        sizes = np.full(2 * depth + 1, self.target.block_bytes, np.int64)
        offsets[-1], sizes[-1] = self.place(), self.size
        return float(self.target.play("read", offsets, sizes, depth=depth).latency_ns[-1])

    def one(
        self, size: int, fillers: int, *, first: int | None = None
    ) -> tuple[float, float, float]:
        """A write that is flushed, and a read after so many others.

        Answers when it came, what it took, and when the flush ended.
        """
        at = self.at if first is None else first
        pieces: Ints = np.arange(at, at + size, _PIECE, dtype=np.int64)
        lengths = np.minimum(_PIECE, at + size - pieces)
        count = pieces.size
        kinds = np.zeros(count + 2 + fillers, np.uint8)
        kinds[:count], kinds[count] = 1, 3
        offsets = np.full(kinds.size, self.nowhere, np.int64)
        offsets[:count], offsets[count], offsets[-1] = pieces, 0, self.place()
        sizes = np.full(kinds.size, self.target.block_bytes, np.int64)
        sizes[:count], sizes[-1] = lengths, self.size
        times = self.target.play(kinds, offsets, sizes, depth=count + 2)
        begun = float(times.submitted_ns[0])
        took = float(times.ended_ns[-1] - times.submitted_ns[-1])
        flushed = float(times.ended_ns[count]) - begun
        if first is None:
            self.at = at + self.stripe if at + 2 * self.stripe <= self.nowhere else self.region
        return float(times.submitted_ns[-1]) - begun, took, flushed

    def some(self, size: int, fillers: Array) -> tuple[Array, Array]:
        """How long after its write each read came, and by how much it was slower than a quiet one."""
        rows = []
        for count in fillers:
            came, took, _ = self.one(size, int(count))
            rows.append((came, took - self.usual))
            self.target.idle(_REST_NS)
        came, extra = np.array(rows).T
        return came, extra

    def fillers(self, size: int) -> Array:
        """How many others come before a read, even up to what lies well behind all that a write disturbs."""
        # Short and long programs alike show on a scale of ratios.
        most = min(_LONGEST_NS / max(self.filler_ns, 1.0), _FILLERS)
        tried = np.rint(np.geomspace(1, max(most, 2.0), _FIRST))
        came, extra = self.some(size, tried)
        disturbed = came[extra > self.least]
        if disturbed.size >= _LEAST_SEEN:
            last = float(np.quantile(disturbed, 0.95))
            most = float(np.min(tried[came > _BEYOND * last], initial=most))
        return np.rint(
            most * self.rng.permutation(np.arange(_READS[self.mode]) / _READS[self.mode])
        )


def _programs(context: Context, reads: _Reads) -> tuple[Finding, Delays | None]:
    name, stripe = "program-suspension", reads.stripe
    units = int(context.known["parallel-units"].value or 1)
    fillers = reads.fillers(stripe)
    for _ in range(_TRIES):
        came, extra = reads.some(stripe, fillers)
        seen = reads_during(came, extra, reads.least)
        if seen is None or seen.lasts_ns <= _ENDS * float(came.max()):
            break
        fillers = np.minimum(2 * fillers, _FILLERS)
    context.progress(0.2)
    plot = Plot(
        "Reads after a write of one program for each unit",
        "came after the write [ns]",
        "took more than a quiet read [ns]",
        (Series("read", came, extra),),
        (Mark(seen.lasts_ns, "the last that was disturbed"),) if seen else (),
    )
    figures = {"quiet_read_ns": reads.usual, "disturbed_from_ns": reads.least}
    if seen is None:
        why = (
            f"of {came.size} reads that came up to {came.max() / 1e3:,.0f} us after a write "
            f"{np.count_nonzero(extra > reads.least)} took over {reads.least / 1e3:.0f} us more than quiet ones, too "
            "few in the middle of that time: RAM hides the programs, or nothing delays reads"
        )
        return unknown(name, why, "", (plot,), **figures), None
    figures |= {"disturbed_ns": seen.lasts_ns}
    program, count, lasting = stripe // units, units, [seen.lasts_ns]
    whole, fewer = seen, seen
    while count > 1:
        whole, count = fewer, count // 2
        more = np.tile(fillers, min(units // count, _MORE))
        now = reads_during(*reads.some(count * program, more), reads.least)
        context.progress(0.2 + 0.2 / count)
        if now is None:
            break
        fewer = now
        lasting.append(fewer.lasts_ns)
        if fewer.lasts_ns >= _LASTS * whole.lasts_ns:
            break
    seen = whole
    figures |= {
        "program_ns": seen.lasts_ns,
        "waited_share": seen.share,
        "waited_ns": seen.extra_ns,
        "waited_spread": seen.spread,
    }
    text = (
        f"a write of one program for each of {units} units, or of half as many and so on, disturbs reads that come "
        f"within {', '.join(f'{ns / 1e3:,.0f}' for ns in lasting)} us; in the middle of "
        f"{seen.lasts_ns / 1e3:,.0f} us they wait {seen.extra_ns / 1e3:.0f} us, {seen.share:.2f} of what is left"
    )
    if seen.lasts_ns > _ENDS * float(came.max()):
        why = f"{text}; but that has no end, so that something else delays them."
        return unknown(name, why, "", (plot,), **figures), None
    if units > 1 and (seen is fewer or fewer.lasts_ns < _LASTS * seen.lasts_ns):
        why = f"{text}: with the number of units; it is the way of the data to them, not programs."
        return unknown(name, why, "", (plot,), **figures), None
    if seen.lasts_ns < _LONGER * reads.usual:
        why = f"{text}; that is hardly more than a read takes ({reads.usual / 1e3:.0f} us)."
        return unknown(name, why, "", (plot,), **figures), None

    def verdict(value: str, why: str) -> Finding:
        return verdicts.found(name, value, "", None, _SUREST, why, (plot,), figures)

    if seen.waits and fewer.waits:
        return verdict("no", f"{text}: they wait for its end."), seen
    if seen.suspends and fewer.suspends:
        return verdict("yes", f"{text}, whenever they come: they suspend it."), seen
    why = f"{text}, scattered by {seen.spread:.0%}: neither all of it nor always the same."
    return unknown(name, why, "", (plot,), **figures), seen


def _erases(context: Context, reads: _Reads, programs: Delays) -> Finding:
    """Reads while blocks are used again, in order, on a drive that is full."""
    name, target, stripe = "erase-suspension", context.target, reads.stripe
    size = stream_write_size(context)
    usual = float(np.median([reads.one(stripe, 0)[2] for _ in range(32)]))
    target.purge()
    target.play("write", np.arange(reads.end // size) * size, size, depth=32)
    target.flush()
    # The place that was never written is written now: what fills the time is discarded.
    target.play(
        "trim",
        [reads.nowhere // stripe * stripe],
        [target.capacity_bytes // size * size - reads.nowhere // stripe * stripe],
    )
    held = max(_HELD * programs.lasts_ns, _HELD_NS)
    count, rows, longest = _again(context, stripe), [], 0
    for at in range(count):
        first = at * stripe % max(reads.end - 2 * stripe, stripe)
        # Reads come early more often than late.
        later = int(reads.rng.random() ** 2 * _SPAN_NS / max(reads.filler_ns, 1.0))
        came, took, flushed = reads.one(stripe, min(later, _FILLERS // 2), first=first)
        over = flushed - usual
        rows.append((came, took - reads.usual, over))
        longest += over > held and 0.05 * over < came < 0.8 * over
        if longest >= 4 * _ERASES:
            break
        if at % 64 == 0:
            context.progress(0.45 + 0.55 * at / count)
    came, extra, over = np.array(rows).T
    stalled = over > held
    inside = stalled & (came > 0.05 * over) & (came < 0.8 * over)
    figures = {
        "writes": float(came.size),
        "held_up": float(np.count_nonzero(stalled)),
        "flush_ns": usual,
        "longer_than_programs": float(np.count_nonzero(extra > 1.5 * programs.lasts_ns)),
    }
    shown = inside if inside.any() else stalled
    plot = Plot(
        "Reads while a write waits for an erase",
        "what was left of that [ns]",
        "took more than a quiet read [ns]",
        (Series("read", (over - came)[shown], extra[shown]),),
    )
    found = int(np.count_nonzero(inside))
    text = (
        f"{np.count_nonzero(stalled)} of {came.size} writes in order over a full drive were held up by more than "
        f"{held / 1e6:.2g} ms, and {found} reads came meanwhile"
    )
    if found < _ERASES:
        why = f"{text}: too few to tell; RAM hides erases, or they are done beforehand."
        return unknown(name, why, "", (plot,), **figures)
    share = float(np.median(extra[inside] / (over - came)[inside]))
    figures |= {
        "waited_share": share,
        "waited_ns": float(np.median(extra[inside])),
        "held_up_ns": float(np.median(over[inside])),
    }
    text += (
        f": they waited {figures['waited_ns'] / 1e3:.0f} us, {share:.2f} of what was left of "
        f"{figures['held_up_ns'] / 1e6:.2g} ms"
    )
    others = float(np.mean(extra[~stalled] > 1.5 * programs.lasts_ns)) if (~stalled).any() else 0.0
    figures |= {"others_longer_share": others}
    against = ""
    if mad(over[inside]) > _EVEN * figures["held_up_ns"]:
        against = "these differ among themselves, so that data may have been moved as well"
    elif others > _OTHERS:
        against = f"{others:.0%} of the others waited longer than for a program too: more goes on than erases"
    if against:
        return unknown(name, f"{text}; but {against}.", "", (plot,), **figures)

    def verdict(value: str, why: str) -> Finding:
        why = f"{text}: {why}."
        return verdicts.found(name, value, "", None, UNTESTED, why, (plot,), figures)

    if share >= _WAITS and figures["waited_ns"] > 1.5 * programs.lasts_ns:
        return verdict("no", "they wait for the end")
    # A read that passes at once waits for no program either.
    if share <= _SUSPENDS and figures["waited_ns"] < _SUSPENDS * programs.lasts_ns:
        return verdict("yes", "they suspend it")
    return unknown(name, f"{text}: neither all of it nor little.", "", (plot,), **figures)


@dataclass(frozen=True)
class Delays:
    """How long a write disturbs reads, and what they wait.

    Attributes
    ----------
    lasts_ns : float
        How long it disturbs reads.
    share : float
        What reads wait over what is left of it: the median.
    extra_ns : float
        What they wait, the median of the same.
    spread : float
        How that scatters, as a share of it.
    count : int
        How many reads that is.
    """

    lasts_ns: float
    share: float
    extra_ns: float
    spread: float
    count: int

    @property
    def waits(self) -> bool:
        """Whether reads wait for the end."""
        return self.share >= _WAITS

    @property
    def suspends(self) -> bool:
        """Whether they take their turn at once."""
        return self.share <= _SUSPENDS and self.spread <= _SPREAD_MOST


def reads_during(came_ns: Array, extra_ns: Array, least_ns: float) -> Delays | None:
    """How reads fare that come some time after a write.

    Parameters
    ----------
    came_ns, extra_ns : array
        How long after the write each came, and what it took more than a quiet one.
    least_ns : float
        What takes so much more is disturbed.

    Returns
    -------
    Delays or None
        None if too few were disturbed.

    Examples
    --------
    >>> came = np.linspace(0, 2e6, 400)
    >>> rest = reads_during(came, np.clip(1e6 - came, 0, None), 2e4)
    >>> round(rest.lasts_ns / 1e6, 1), round(rest.share), rest.waits, rest.suspends
    (1.0, 1, True, False)
    >>> same = reads_during(came, np.where(came < 1e6, 5e4, 0.0), 2e4)
    >>> round(same.share, 1), same.waits, same.suspends
    (0.1, False, True)
    """
    disturbed = extra_ns > least_ns
    if np.count_nonzero(disturbed) < _COUNT:
        return None
    # A few may have been disturbed by something else later.
    lasts = float(np.quantile(came_ns[disturbed], 0.98))
    if lasts <= 0:
        # Nothing was disturbed but what came at once.
        return None
    low, high = (share * lasts for share in _PART)
    inside = disturbed & (came_ns >= low) & (came_ns <= high)
    count = int(np.count_nonzero(inside))
    if count < _COUNT:
        return None
    extra = extra_ns[inside]
    share = float(np.median(extra / (lasts - came_ns[inside])))
    middle = float(np.median(extra))
    return Delays(lasts, share, middle, mad(extra) / middle, count)
