"""How much of a drive the map in RAM covers, and what a read beyond it costs.

A map that does not fit in RAM is loaded in pieces from flash. Reads at random within a span find it there as long as
the span is covered, and beyond that the more seldom the longer the span is::

    slow reads     ________                 ____----
    span           16 MiB ...      reach  /       ... the drive
                                   1 - reach / span

Other causes of slow reads, and how the probe excludes them:

- A cache of data: each piece of the map is read again by other pages near them, drawn anew for each span.
- Reading ahead: a piece is read backwards.
- Slow places: short spans at the start, in the middle and at the end of the drive must be equally fast.
- Drift in time: spans come in an order drawn at random and then in its reverse, and both runs must agree.
- Seeks: the probe ``plausible`` looks for them.

Pieces of the map of less than 256 KiB of the host's data, or less than eight clustered pages, show no reach: new places
load their own in short spans too. So the verdict "no misses" needs two things more: places that were read long ago are
not faster than new ones, and repeated reads gain nothing or a cache of reads has an end.
"""

from __future__ import annotations

import itertools
from typing import ClassVar

import numpy as np

from flashwright.drive.findings import Finding, Mark, Plot, Series, unknown
from flashwright.probing.probes.shared import verdicts
from flashwright.probing.probes.shared.edges import grid
from flashwright.target.arrays import MIB, Array
from flashwright.target.question import UNTESTED, Context, Cost, kib
from flashwright.target.stats import chance_above
from flashwright.target.target import FILL_BYTES

__all__ = ["MapReach"]


# Bytes of a read.
_SIZE = 4096
# One place is read in each of these bytes. Chosen: a piece of the map covers at least a quarter of it.
_GRAIN = MIB
# Places of the longest span. Chosen: all of 16 GiB; a longer span would skip pieces of the map.
_PLACES = 16 << 10
# Bytes of the shortest span. Chosen: its map fits in any RAM.
_SHORTEST = 16 * MIB
# Reads of a place: the first brings the map, the others are looked at.
_READS = 4
# How far each read of a place lies before the one before, bytes. Chosen: another page, the same piece of the map.
_STEP = 32 << 10
# A read is slow from this many times the usual of the shortest spans on. Derived: loading a piece adds a read of flash.
_SLOW = 1.3
# Share of slow reads up to which a span is covered. Chosen: strays under noise.
_COVERED = 0.1
# Share of slow reads from which on a span clearly is not. Chosen: far from the above.
_BEYOND = 0.4
# The reach by two runs may differ by this factor. Chosen: half of a step of the spans.
_EQUAL_FACTOR = 1.25
# The surest verdict. Chosen: other makes may load their map otherwise.
_SUREST = 0.95
# Places that are read twice.
_TWICE = 256
# The largest cache of reads that is looked for, bytes; other reads fill it in between.
_CACHE = 64 << 20
# How far apart the short ones of those lie, bytes.
_APART = 16 << 10
# How many times as long a place takes as when read again, from which on reads gain. Chosen: a tenth, as algorithms 8.3.
_AGAIN = 1.1
# The chance below which that is none (Mann-Whitney). Chosen.
_CHANCE = 1e-5


class MapReach:
    """The reach of the map in RAM, and the cost of a miss."""

    NAME: ClassVar[str] = "map-reach"
    ABOUT: ClassVar[str] = (
        "How much of the drive the map in RAM covers and what a miss costs: random reads within growing spans, none of "
        "which finds its data in a cache."
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = ("map-reach", "map-miss")
    READS_ALONE: ClassVar[bool] = True
    OF_THE_WHOLE: ClassVar[tuple[str, ...]] = PARAMETERS

    def cost(self, context: Context) -> Cost:
        """A fill, and four reads of each place of each span, twice."""
        reads = 2 * _READS * sum(_places(span) for span in _spans(context)) + 6 * _READS * 16
        longest = max(_spans(context), default=0)
        written = 0 if context.target.read_only else longest
        again = min(2 * (context.size("read-buffer") or _CACHE), longest // 2)
        requests = reads + written // FILL_BYTES + again // MIB + again // _APART + 2 * _TWICE
        return Cost(reads * context.up(_SIZE) + 2 * again, written, requests)

    def run(self, context: Context) -> list[Finding]:
        """Read within spans, in two orders, and look for the one from which on reads are slow."""
        spans = _spans(context)
        if len(spans) < 6:
            why = f"the target has {kib(context.target.capacity_bytes)}, too little for spans of a map"
            return [unknown("map-reach", why, "B"), unknown("map-miss", why, "ns")]
        context.fill(spans[-1])
        rng = context.rng(self.NAME)
        order = rng.permutation(spans)
        runs: list[dict[int, Array]] = []
        for at, these in enumerate((order, order[::-1])):
            runs.append({int(span): _read(context, int(span), 0, rng) for span in these})
            context.progress(0.45 * (at + 1))
        ends = [
            _read(context, _SHORTEST, start, rng)
            for start in np.linspace(0, spans[-1] - _SHORTEST, 3).astype(np.int64) // MIB * MIB
        ]
        again = _again(context, spans[-1], rng)
        context.progress(1.0)
        found = _decide(spans, runs, ends, again, context.target.capacity_bytes)
        return _unless_kept(found, context.known.get("read-buffer"))


def _spans(context: Context) -> list[int]:
    longest = min(context.target.capacity_bytes, _GRAIN * _PLACES) // MIB * MIB
    if longest < 2 * _SHORTEST:
        return []
    return sorted({*grid(_SHORTEST, longest, 2, MIB), longest})


def _places(span: int) -> int:
    return span // _GRAIN


def _read(context: Context, span: int, start: int, rng: np.random.Generator) -> Array:
    """Times of reads at random within a span, whose pieces of the map were just read; each of a page of its own."""
    page = context.size("clustered-page") or context.target.block_bytes
    step = context.up(min(max(_STEP, 2 * page), _GRAIN // _READS))
    size = context.up(_SIZE)
    # Other pages than those that other spans read.
    free = max(_GRAIN - _READS * step, 0) // page
    shift = start + int(rng.integers(0, free + 1)) * page
    took = []
    for turn in range(_READS):
        places = shift + rng.permutation(_places(span)) * _GRAIN + (_READS - 1 - turn) * step
        took.append(context.target.play("read", places, size).latency_ns)
    return np.concatenate(took[1:])


def _again(context: Context, span: int, rng: np.random.Generator) -> float:
    """How much longer places take than when read again, once a cache of reads has been filled with others; 1 if alike.

    Where entries of the map are loaded one by one, each place that is new has to load its own, in short spans too.
    """
    target, size = context.target, context.up(_SIZE)
    cached = context.size("read-buffer") or _CACHE
    others = min(-(-2 * cached // MIB), span // MIB // 2)
    places = rng.integers(others, span // MIB, _TWICE) * MIB
    places += rng.integers(0, MIB // size, _TWICE) * size
    first = target.play("read", places, size).latency_ns
    # Long reads and short ones: a cache may keep only some of them.
    target.play("read", np.arange(others) * MIB, MIB)
    target.play("read", np.arange(others * MIB // _APART) * _APART, size)
    second = target.play("read", places, size).latency_ns
    if chance_above(first, second) > _CHANCE:
        return 1.0
    return float(np.median(first) / max(np.median(second), 1.0))


def _unless_kept(found: list[Finding], buffer: Finding | None) -> list[Finding]:
    """No absence where repeated reads gain and no size of a cache of data was found: entries of a map may be kept."""
    gains = buffer is not None and buffer.verdict == "unknown" and "least_bytes" in buffer.figures
    if found[0].verdict != "absent" or not gains:
        return found
    why = (
        f"{found[0].why.rstrip('.')}; but repeated reads gain, and no end of a cache of reads was found: entries of "
        "the map may be loaded one by one, which no span shows, and be replaced by what is read in between."
    )
    return [unknown(one.parameter, why, one.unit, one.plots, **one.figures) for one in found]


def _slow(took: Array, fast_ns: float) -> float:
    return float((took > _SLOW * fast_ns).mean())


def _reach(
    spans: list[int], run: dict[int, Array], fast_ns: float
) -> tuple[int | None, int, float]:
    """The last span that is covered, the next one, and the reach that the shares beyond it say."""
    shares = {span: _slow(run[span], fast_ns) for span in spans}
    covered = [span for span in spans if shares[span] <= _COVERED]
    if not covered or shares[spans[-1]] < _BEYOND:
        return None, 0, 0.0
    last = next(
        (before for before, span in itertools.pairwise(spans) if shares[span] > _COVERED),
        spans[-1],
    )
    beyond = [span for span in spans if span > last]
    some = [span * (1 - shares[span]) for span in beyond if 0.15 < shares[span] < 0.85]
    reach = float(np.median(some)) if some else float(np.sqrt(last * beyond[0]))
    return last, beyond[0], float(np.clip(reach, last, beyond[0]))


def _decide(
    spans: list[int],
    runs: list[dict[int, Array]],
    ends: list[Array],
    again: float,
    capacity: int,
) -> list[Finding]:
    shortest = np.concatenate([run[span] for run in runs for span in spans[:3]])
    fast = float(np.median(shortest))
    shares = np.array([[_slow(run[span], fast) for span in spans] for run in runs])
    longest = np.concatenate([run[spans[-1]] for run in runs])
    found = [_reach(spans, run, fast) for run in runs]
    x = np.array(spans, np.float64)
    mean = shares.mean(axis=0)
    figures = {
        "hit_ns": fast,
        "slow_share_shortest": float(mean[0]),
        "slow_share_longest": float(mean[-1]),
        "first_over_again": again,
    }

    def plot(*marks: Mark) -> tuple[Plot, ...]:
        lines = tuple(
            Series(name, x, row, "line")
            for name, row in zip(("in an order drawn", "in its reverse"), shares, strict=True)
        )
        title = f"Reads that take over {_SLOW} times the usual, by the span that they lie in"
        return (Plot(title, "span [B]", "slow reads [share]", lines, marks, x_log=True),)

    def both_unknown(why: str) -> list[Finding]:
        return [
            unknown("map-reach", why, "B", plot(), **figures),
            unknown("map-miss", why, "ns", (), **figures),
        ]

    seen = (
        f"of reads within {kib(spans[0])}, {mean[0]:.0%} take over {_SLOW} times the usual {fast / 1e3:.0f} us, within "
        f"{kib(spans[-1])} {mean[-1]:.0%}"
    )
    if max(mean[:3]) > _COVERED:
        return both_unknown(f"{seen}: times are too unsteady for a step to show.")
    worst = max(_slow(took, fast) for took in ends)
    if worst > _BEYOND:
        return both_unknown(
            f"{seen}; but short spans elsewhere are slow too ({worst:.0%}): it is the place."
        )
    if float(mean.max()) <= 2 * _COVERED:
        if spans[-1] < 0.9 * capacity:
            return both_unknown(f"{seen}: no step, but the drive is longer than what was read.")
        if again > _AGAIN:
            return both_unknown(
                f"{seen}; but a place takes {again:.2f} times as long as when it is read again, though no cache of "
                "reads still has it: entries of the map may be loaded one by one, which no span shows."
            )
        why = f"{seen}: no span is too long for the map, which is all in RAM or costs next to nothing to load."
        sure = min(1 - float(mean.max()), _SUREST)
        return [
            verdicts.absent("map-reach", "B", sure, why, plot(), figures),
            verdicts.absent("map-miss", "ns", sure, why, (), figures),
        ]
    if any(last is None for last, _, _ in found):
        return both_unknown(f"{seen}: between all and nothing.")
    reaches = sorted(reach for _, _, reach in found)
    if reaches[1] > _EQUAL_FACTOR * reaches[0]:
        return both_unknown(
            f"{seen}; but one run says {kib(round(reaches[0]) >> 10 << 10)}, the other "
            f"{kib(round(reaches[1]) >> 10 << 10)}."
        )
    reach = float(np.sqrt(reaches[0] * reaches[1]))
    low = float(min(last or 0 for last, _, _ in found))
    high = float(max(beyond for _, beyond, _ in found))
    slow = longest[longest > _SLOW * fast]
    miss = float(np.median(slow)) - fast
    # The share of slow reads follows the reach over the span, or something else makes them slow.
    expected = np.clip(1 - reach / x, 0, None)
    follows = float(np.abs(mean - expected).max())
    sure = _SUREST if follows < 0.2 else UNTESTED
    why = (
        f"{seen}: beyond {kib(round(reach) >> 10 << 10)} a read has to load its piece of the map first, which takes "
        f"{miss / 1e3:.0f} us; the share of such reads follows the span within {follows:.0%}."
    )
    mark = Mark(reach, "reach of the map")
    return [
        verdicts.found("map-reach", round(reach), "B", (low, high), sure, why, plot(mark), figures),
        verdicts.found(
            "map-miss",
            round(miss),
            "ns",
            (float(np.quantile(slow, 0.25)) - fast, float(np.quantile(slow, 0.75)) - fast),
            sure,
            why,
            (),
            figures,
        ),
    ]
