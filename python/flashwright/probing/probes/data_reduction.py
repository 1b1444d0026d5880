"""Whether a drive compresses or deduplicates.

Batches of writes in order differ in their data alone: noise, noise that fills a quarter of each sector, noise that
repeats from MiB to MiB, zeros. Each batch stands between two of noise, with which it is compared::

    data     noise  quarter  noise  repeated  noise  zeros  noise  noise (the control)  noise  quarter ...
    speed    ----   ^^^^^^^  ----   --------  ----   ^^^^^  ----   ----                 ----   ^^^^^^^

Then all are read in that order. Other causes of faster batches, and how the probe excludes them:

- A cache that fills, heat, credits, cleaning that begins: these go by time and by bytes, and strike the noise on both
  sides as well; the control shows how much.
- Compression, where repeats lie in one window: repeated data come again after a MiB and no sooner, and nothing within
  that shrinks.
- Zeros that are only noted in the map, as many drives do: the quarter is no zeros.
- The cost of making the data: it is the same. Buffers are filled once, and later writes change some bytes of a sector.

A drive that writes as fast as its link carries data shows nothing, so "none" is no verdict then. In full mode the drive
is filled with such data and overwritten at random, so that it has to clean: what shrinks leaves it more room, and
"none" needs that it is not faster either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from flashwright.drive.findings import Finding, Plot, Series, unknown
from flashwright.probing.probes.shared import verdicts
from flashwright.probing.probes.shared.overwriting import LEAST_BYTES, stream_write_size
from flashwright.target.arrays import Array
from flashwright.target.contents import NOISE, QUARTER, REPEATED, ZEROS, Contents
from flashwright.target.question import UNTESTED, Context, Cost
from flashwright.target.stats import chance_above

__all__ = ["DataReduction"]


_CONTROL = "noise"
_KINDS: Mapping[str, Contents] = {
    "quarter": QUARTER,
    "repeated": REPEATED,
    "zeros": ZEROS,
    _CONTROL: NOISE,
}
"""What stands between two batches of noise; the last is the control."""
# Rounds of all kinds of data. Chosen: eight that are all above the control leave next to no chance.
_ROUNDS = {"quick": 8, "full": 16}
# Share of the drive that all batches may take. Chosen: no cleaning begins.
_SHARE = 0.75
# Bytes of a batch, as far as the drive has room.
_BATCH = 16 << 20
# And in times of the RAM, if that is more. Chosen: RAM hides a quarter at most.
_TIMES_RAM = 4
# Requests outstanding. Chosen: what SATA drives take.
_DEPTH = 32
# Bytes at the end of the drive that are never written, so that they are read as fast as the link goes.
_UNWRITTEN = 64 << 20
# A gain from which on data make a difference. Chosen: beyond the noise of batches; the quarter should give up to four
# times.
_GAIN = 1.12
# The level of the Mann-Whitney test. Derived: eight rounds that are all above all of the control have a chance of
# 0.0001.
_CHANCE = 0.002
# A link that is less than this many times as fast as the writes hides what they gain. Chosen: above the least gain.
_ROOM = 1.3
# Capacities that are overwritten at random after a fill. Chosen: more than the spare space, so that the drive cleans.
_OVERWRITTEN = 0.5
# The part of them whose speed counts: the last.
_LAST = 1 / 3
# What the drive is filled with, one after the other.
_FILLS = (_CONTROL, "quarter", "repeated", _CONTROL)
# The surest verdict. Chosen: other makes may differ in what is compared.
_SUREST = 0.95


class DataReduction:
    """Compression and deduplication."""

    NAME: ClassVar[str] = "data-reduction"
    ABOUT: ClassVar[str] = (
        "Whether data that shrink, that repeat, or that are zeros are written or read faster than noise: batches by "
        "turns, each between two of noise; in full mode also on a drive that is filled with them and cleans."
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = ("compression", "deduplication")

    def cost(self, context: Context) -> Cost:
        """The batches once written and once read; in full mode four fills that are overwritten in part."""
        rounds, batch = _plan(context)
        written = rounds * 2 * len(_KINDS) * batch + batch
        filled = 0
        if context.mode == "full" and _may_fill(context):
            filled = int(len(_FILLS) * (1 + _OVERWRITTEN) * context.target.capacity_bytes)
        requests = (2 * written + filled) // stream_write_size(context) + 4 * rounds * len(_KINDS)
        return Cost(written + _UNWRITTEN, written + filled, requests)

    def run(self, context: Context) -> list[Finding]:
        """Write and read by turns; where the link hides what that shows, overwrite."""
        target = context.target
        if target.capacity_bytes < LEAST_BYTES:
            why = f"the target has {target.capacity_bytes:,} B, too little for batches larger than RAM"
            return [unknown(name, why) for name in self.PARAMETERS]
        turns = _Batches(context)
        seen = turns.measure()
        findings = seen.decide()
        hidden = [one for one in findings if one.verdict == "unknown"]
        if hidden and context.mode == "full" and _may_fill(context) and seen.room < _ROOM:
            context.keep(*findings)
            findings = _overwritten(context, seen)
        context.progress(1.0)
        return findings


def _may_fill(context: Context) -> bool:
    return context.target.part is None and (context.is_page_mapped or not context.known)


def _plan(context: Context) -> tuple[int, int]:
    """Rounds, and bytes of a batch in whole writes."""
    size = stream_write_size(context)
    rounds = _ROUNDS[context.mode]
    room = int(_SHARE * context.target.capacity_bytes) // (rounds * 2 * len(_KINDS) + 1)
    ram = context.size("write-buffer") or 0
    return rounds, max(min(max(_BATCH, _TIMES_RAM * ram), room) // size, 4) * size


class _Batches:
    """Batches of all kinds of data, each between two of noise."""

    def __init__(self, context: Context) -> None:
        self.context, self.target = context, context.target
        self.rounds, self.batch = _plan(context)
        self.size = stream_write_size(context)
        names = list(_KINDS)
        # The order of the kinds changes from round to round.
        self.order = [
            name for turn in range(self.rounds) for name in names[turn % 4 :] + names[: turn % 4]
        ]

    def rates(self, *, reading: bool) -> tuple[Array, Array]:
        """Speeds of the batches of each turn and of the noise before it and after the last, bytes per second."""
        noise, others = [self.one(0, NOISE, reading)], []
        for turn, name in enumerate(self.order):
            others.append(self.one(2 * turn + 1, _KINDS[name], reading))
            noise.append(self.one(2 * turn + 2, NOISE, reading))
            done = (turn + 1) / len(self.order)
            self.context.progress(0.5 * (done + reading) * (0.5 if self.far else 1.0))
        return np.array(noise), np.array(others)

    @property
    def far(self) -> bool:
        """Whether more may follow."""
        return self.context.mode == "full"

    def one(self, index: int, data: Contents, reading: bool) -> float:
        """Bytes per second of a batch; what it writes is on flash when it ends, as far as a flush waits for that."""
        offsets = index * self.batch + np.arange(self.batch // self.size) * self.size
        begun = self.target.now_ns
        kind = "read" if reading else "write"
        self.target.play(kind, offsets, self.size, depth=_DEPTH, data=data)
        if not reading:
            self.target.flush()
        return self.batch / max(self.target.now_ns - begun, 1) * 1e9

    def link(self) -> float:
        """Speed of reads of what was never written, bytes per second."""
        first = (2 * len(self.order) + 1) * self.batch
        beyond = self.target.capacity_bytes // self.size * self.size
        first = max(first, beyond - _UNWRITTEN // self.size * self.size)
        offsets = np.arange(first, beyond, self.size)
        if not offsets.size:
            return 0.0
        times = self.target.play("read", offsets, self.size, depth=_DEPTH)
        return times.rate(offsets.size * self.size)

    def measure(self) -> _Gains:
        """Write all, read all, and look how fast the link is."""
        noise, written = self.rates(reading=False)
        link = self.link()
        noise_read, read = self.rates(reading=True)
        names = np.array(self.order)

        def gains(rates: Array, beside: Array) -> dict[str, Array]:
            over = rates / np.sqrt(beside[:-1] * beside[1:])
            return {name: over[names == name] for name in _KINDS}

        fastest = max(link, float(noise_read.max()), float(read.max()), float(written.max()))
        room = fastest / float(np.median(noise))
        return _Gains(gains(written, noise), gains(read, noise_read), room, float(np.median(noise)))


class _Gains:
    """How many times as fast batches were as the noise beside them."""

    def __init__(
        self, written: dict[str, Array], read: dict[str, Array], room: float, rate: float
    ) -> None:
        self.written, self.read, self.room, self.rate = written, read, room, rate

    def gain(self, name: str) -> float:
        """The larger of the gains of writing and reading."""
        return max(float(np.median(self.written[name])), float(np.median(self.read[name])))

    def gains(self, name: str) -> bool:
        """Whether these data are faster than noise, beyond what noise differs from noise."""
        return any(
            float(np.median(of[name])) >= _GAIN and chance_above(of[name], of[_CONTROL]) < _CHANCE
            for of in (self.written, self.read)
        )

    @property
    def text(self) -> str:
        """What was seen."""
        ratios = ", ".join(
            f"{name} {np.median(self.written[name]):.2f} and {np.median(self.read[name]):.2f}"
            for name in _KINDS
        )
        return (
            f"written and read, batches are so many times as fast as the noise beside them: {ratios}; noise is written "
            f"at {self.rate / 1e6:,.0f} MB/s, and the link carries {self.room:.1f} times that"
        )

    @property
    def figures(self) -> dict[str, float]:
        """The numbers."""
        found = {"link_over_writes": self.room, "noise_bytes_per_s": self.rate}
        for name in _KINDS:
            found[f"{name}_written_ratio"] = float(np.median(self.written[name]))
            found[f"{name}_read_ratio"] = float(np.median(self.read[name]))
        return found

    def plot(self) -> Plot:
        """The gains of each batch."""
        series = tuple(
            Series(f"{name}: {verb}", np.arange(1.0, of[name].size + 1.0), of[name])
            for verb, of in (("written", self.written), ("read", self.read))
            for name in _KINDS
        )
        title = "Batches of data that shrink or repeat, beside noise"
        return Plot(title, "round", "times as fast as the noise beside it", series)

    def decide(self) -> list[Finding]:
        """What the turns show."""
        plots, figures = (self.plot(),), self.figures
        shrinks, repeats, zeros = (self.gains(name) for name in ("quarter", "repeated", "zeros"))
        if shrinks and not zeros:
            why = f"{self.text}: what shrinks gains, but zeros do not, which shrink most."
            return [unknown(name, why, "", plots, **figures) for name in DataReduction.PARAMETERS]
        hides = self.room < _ROOM
        nothing = (
            f"{self.text}: so writes are as fast as the link, which hides what shrinks; full mode fills the drive "
            "with it."
        )
        found = []
        for name, gains, value in (
            ("compression", shrinks or zeros, "yes" if shrinks else "zeros"),
            ("deduplication", repeats, "yes"),
        ):
            if gains:
                why = (
                    f"{self.text}: "
                    + {
                        "yes": "data that shrink take it less time."
                        if name == "compression"
                        else "noise that it has already takes it less time.",
                        "zeros": "only zeros take it less time: it notes them, and compresses nothing.",
                    }[value]
                )
                found.append(verdicts.found(name, value, "", None, _SUREST, why, plots, figures))
            elif hides:
                found.append(unknown(name, nothing, "", plots, **figures))
            else:
                why = f"{self.text}: it does the same with all data."
                found.append(verdicts.absent(name, "", UNTESTED, why, plots, figures))
        return found


def _overwritten(context: Context, seen: _Gains) -> list[Finding]:
    """The speed of random overwrites on a drive that holds only data of a kind, and cleans."""
    target, size = context.target, stream_write_size(context)
    slots = target.capacity_bytes // size
    count = int(_OVERWRITTEN * slots)
    rates: list[float] = []
    fills: list[float] = []
    for at, name in enumerate(_FILLS):
        # The same places each time.
        rng, data = context.rng("data-reduction.overwrites"), _KINDS[name]
        if not target.purge():
            return seen.decide()
        took = target.play("write", np.arange(slots) * size, size, depth=_DEPTH, data=data)
        fills.append(took.rate(slots * size))
        places = rng.integers(0, slots, count) * size
        first = count - max(int(_LAST * count), 1)
        target.play("write", places[:first], size, depth=_DEPTH, data=data)
        last = target.play("write", places[first:], size, depth=_DEPTH, data=data)
        rates.append(last.rate((count - first) * size))
        context.progress(0.5 + 0.5 * (at + 1) / len(_FILLS))
    noise = float(np.sqrt(rates[0] * rates[-1]))
    differs = max(rates[0], rates[-1]) / min(rates[0], rates[-1])
    plots, found = (seen.plot(),), []
    figures = {
        **seen.figures,
        "overwritten_noise_bytes_per_s": noise,
        "overwritten_control": differs,
    }
    cleans = noise * _ROOM < fills[0]
    for name, kind in (("compression", "quarter"), ("deduplication", "repeated")):
        gain = rates[_FILLS.index(kind)] / noise
        figures[f"{kind}_overwritten_ratio"] = gain
        why = (
            f"{seen.text}, so that it hides what is gained; filled with it and overwritten at random, {kind} is "
            f"{gain:.2f} times as fast as noise ({noise / 1e6:,.0f} MB/s), which differs by {differs:.2f} from itself"
        )
        if gain >= max(_GAIN, 1 + 3 * (differs - 1)):
            why += ": it leaves the drive more room."
            found.append(verdicts.found(name, "yes", "", None, UNTESTED, why, plots, figures))
        elif cleans and differs < _GAIN:
            why += ": it leaves the drive no more room."
            found.append(verdicts.absent(name, "", UNTESTED, why, plots, figures))
        else:
            why += ": cleaning does not slow it down enough to tell."
            found.append(unknown(name, why, "", plots, **figures))
    return found
