"""Whether a drive reads ahead of a reader that continues where it stopped, and how far."""

from __future__ import annotations

from statistics import NormalDist
from typing import ClassVar

import numpy as np

from flashwright.drive.findings import Finding, Mark, Plot, Series, unknown
from flashwright.probing.probes.shared import verdicts
from flashwright.probing.probes.shared.buffers import SMALLEST_BYTES, buffer_region, read_twice
from flashwright.probing.probes.shared.edges import Edge, center, find_edge, grid, most
from flashwright.target.arrays import Array
from flashwright.target.question import UNTESTED, Context, Cost, kib
from flashwright.target.stats import chance_above
from flashwright.target.target import FILL_BYTES, Target

__all__ = ["Prefetch"]


# Reads in order before the timed one. Derived: two is the least that shows a direction. Chosen: drives that need more
# get more.
_WALKS = (2, 4, 16)
# The farthest that is looked for, bytes. Chosen: eight times what Linux reads ahead by itself (128 KiB).
_FARTHEST = 1 << 20
# Bytes between a read and another that gains nothing by it. Chosen: it finds the same piece of the map in RAM.
_AWAY = 2 << 20
# The clustered page where it is not known, bytes: the largest that drives have. Within a page, RAM of the page itself
# would help.
_PAGE_LARGEST = 64 << 10
# The level of the Mann-Whitney test (algorithms 8.5).
_LEVEL = 0.01
# How much faster a read must be, as a share (algorithms 8.5).
_FASTER = 0.1
# Repeats of each arm. Chosen: four times as many follow where these leave it open.
_TRIALS = {"quick": 24, "full": 60}


class Prefetch:
    """Reads that go on where earlier ones stopped, against the same reads after others.

    Source: Kim 2011, section 4.3; algorithms 8.5. Between the reads before and the timed one the drive gets time, so
    that what it reads ahead is there. The timed read is never the first piece alone: it ends further and further
    ahead, and the farthest that still comes from RAM is how far the drive had read.

    A drive that reads ahead after any read makes both arms fast. So before the verdict "no", reads just behind a single
    other one are compared with reads 2 MiB from it, which find the same piece of a map in RAM and nothing else.
    """

    NAME: ClassVar[str] = "prefetch"
    ABOUT: ClassVar[str] = (
        "Whether the drive reads ahead of a sequential reader, and how far: is a read faster when it continues where "
        "others stopped (Kim 2011, section 4.3)?"
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = ("prefetch", "prefetch-size")
    READS_ALONE: ClassVar[bool] = True

    def cost(self, context: Context) -> Cost:
        """About what it will ask of the drive."""
        # Two arms of each, about five ends to distinguish, and again where the first result is unclear.
        trials = 2 * _TRIALS[context.mode] * (2 * len(_WALKS) * 5 + 8)
        least = max(SMALLEST_BYTES, context.size("read-buffer-least") or 0)
        written = buffer_region(context.target) if not context.target.read_only else 0
        return Cost(
            bytes_read=trials * (sum(_WALKS) // len(_WALKS) + 1) * (least + (64 << 10)),
            bytes_written=written,
            requests=trials * (sum(_WALKS) // len(_WALKS) + 1) + written // FILL_BYTES,
        )

    def run(self, context: Context) -> list[Finding]:
        """Ask, and decide."""
        target, rng = context.target, context.rng(self.NAME)
        if buffer_region(target) < 64 * _FARTHEST:
            why = f"{target.capacity_bytes:,} B are too small to walk through without coming back"
            return [unknown("prefetch", why), unknown("prefetch-size", why, "B")]
        context.fill(buffer_region(target))
        # Reads that the buffer takes part in at all.
        least = context.up(max(SMALLEST_BYTES, context.size("read-buffer-least") or 0))
        # Time for the drive to read ahead: what four of the longest reads take.
        pause_ns = 4 * float(np.median(read_twice(target, _FARTHEST, 8, rng)[0]))
        farthest = min(_FARTHEST, context.size("read-buffer") or _FARTHEST)
        ends = grid(
            context.up(SMALLEST_BYTES), max(farthest, context.up(SMALLEST_BYTES)), 1, context.up(1)
        )
        for trials in (_TRIALS[context.mode], 4 * _TRIALS[context.mode]):
            findings = self._ask(context, least, ends, farthest, pause_ns, trials, rng)
            if findings[0].verdict == "found":
                break
        return findings

    def _ask(
        self,
        context: Context,
        least: int,
        ends: list[int],
        farthest: int,
        pause_ns: float,
        trials: int,
        rng: np.random.Generator,
    ) -> list[Finding]:
        target = context.target
        best: tuple[int, int] | None = None
        evidence: list[tuple[int, int, Array, Array, float]] = []
        for walk in _WALKS:
            for end in ends:
                on, off = _trial(target, rng, walk, least, end, pause_ns, trials)
                level = chance_above(off, on)
                evidence.append((walk, end, on, off, level))
                if level < _LEVEL / len(ends) and np.median(on) < (1 - _FASTER) * np.median(off):
                    best = (walk, end)
            context.progress(0.6 * (_WALKS.index(walk) + 1) / len(_WALKS))
            if best is not None:
                break
        plot = _plot(evidence, best)
        if best is None:
            around = self._around(context, least, ends, pause_ns, trials, rng)
            return self._no(evidence, plot) if around is None else around
        walk, end = best
        again_on, again_off = _trial(target, rng, walk, least, end, pause_ns, trials)
        # Independent: the share of resampled medians that show the same.
        draws = rng.integers(0, trials, (2, 500, trials))
        confidence = float(
            np.mean(
                np.median(again_on[draws[0]], axis=1)
                < (1 - _FASTER) * np.median(again_off[draws[1]], axis=1)
            )
        )
        gain = 1 - float(np.median(again_on) / np.median(again_off))
        if confidence < 0.9:
            why = f"reads {kib(end)} ahead were faster once, by {gain:.0%} when measured again"
            return [unknown("prefetch", why, "", plot), unknown("prefetch-size", why, "B")]
        why = (
            f"after {walk} reads in order, one that ends {kib(end)} ahead is {gain:.0%} faster than after reads "
            "elsewhere (Mann-Whitney p < .01)"
        )
        figures = {"gain_share": gain, "reads_before": float(walk)}
        found = verdicts.found("prefetch", "yes", "", None, confidence, why, plot, figures)
        edge = self._reach(context, walk, least, end, farthest, pause_ns, gain, rng)
        context.progress(1.0)
        return [found, edge]

    def _reach(
        self,
        context: Context,
        walk: int,
        least: int,
        end: int,
        farthest: int,
        pause_ns: float,
        gain: float,
        rng: np.random.Generator,
    ) -> Finding:
        target, step = context.target, context.up(SMALLEST_BYTES)
        full = -float(np.log(1 - gain))

        def sample(ahead: int, count: int) -> Array:
            on, off = _trial(target, rng, walk, least, ahead, pause_ns, count)
            return np.asarray(np.log(off / on) / full)

        inside, outside = end // step * step, context.up(min(2 * end, farthest) + step)
        outside = -(-outside // step) * step
        edge = find_edge(sample, inside, outside, step, lambda size: most(context, 16 * size), rng)
        if edge.confidence < 0.9:
            why = f"between {kib(edge.inside)} and {kib(edge.outside)} repeated measurements are inconclusive"
            return unknown("prefetch-size", why, "B", (), least_bytes=float(edge.inside))
        return _far(edge, walk)

    def _around(
        self,
        context: Context,
        least: int,
        ends: list[int],
        pause_ns: float,
        trials: int,
        rng: np.random.Generator,
    ) -> list[Finding] | None:
        """Whether any read brings what follows, so that the reads of the other arm were read ahead of too."""
        page = context.size("clustered-page") or _PAGE_LARGEST
        farther = [end for end in ends if end > page and end <= 8 * page]
        for end in farther[:2]:
            # Twice, since the first time is one of several looks.
            looks = [
                _near_and_far(context.target, rng, least, end, pause_ns, trials) for _ in range(2)
            ]
            if all(
                chance_above(far, near) < _LEVEL / 2
                and np.median(near) < (1 - _FASTER) * np.median(far)
                for near, far in looks
            ):
                gain = 1 - float(np.median(looks[1][0]) / np.median(looks[1][1]))
                why = (
                    f"a read that ends {kib(end)} beyond a single other one is {gain:.0%} faster than one that lies "
                    f"{kib(_AWAY)} from it, whether or not others came in order before: any read brings what follows"
                )
                return [
                    verdicts.found("prefetch", "yes", "", None, UNTESTED, why),
                    unknown("prefetch-size", f"{why}; how far is not asked", "B"),
                ]
        return None

    def _no(
        self, evidence: list[tuple[int, int, Array, Array, float]], plot: tuple[Plot, ...]
    ) -> list[Finding]:
        # How much faster it may be all the same, in logarithms. Means: where reads strike one page or two, times have
        # two levels and a median jumps between them.
        bounds = []
        for _, _, on, off, _ in evidence:
            (a, error_a), (b, error_b) = center(np.log(on)), center(np.log(off))
            bounds.append((b - a, float(np.hypot(error_a, error_b))))
        gains, errors = np.array(bounds).T
        # Read ahead would show at the nearest place of some walk at least; the best of them counts.
        near = [at for at, part in enumerate(evidence) if part[1] == evidence[0][1]]
        distance = float(np.min((-np.log(1 - 0.25) - gains[near]) / np.maximum(errors[near], 1e-9)))
        confidence = NormalDist().cdf(distance)
        worst = 1 - float(np.exp(-gains.max()))
        if confidence < 0.9:
            why = f"reads that go on gain up to {worst:.0%}, less than the spread of the times"
            return [unknown("prefetch", why, "", plot), unknown("prefetch-size", why, "B")]
        why = (
            f"reads that go on where up to {max(part[0] for part in evidence)} others stopped gain at most "
            f"{max(worst, 0.0):.1%}"
        )
        return [
            verdicts.found("prefetch", "no", "", None, confidence, why, plot),
            verdicts.absent("prefetch-size", "B", confidence, why),
        ]


def _trial(
    target: Target,
    rng: np.random.Generator,
    walk: int,
    least: int,
    ahead: int,
    pause_ns: float,
    count: int,
) -> tuple[Array, Array]:
    """Times of reads that end `ahead` of a walk's end, after the walk and after the same reads out of order."""
    size = max(ahead, least)
    span = walk * least + ahead
    places = buffer_region(target) // span - 1
    times = np.empty((2, count))
    for at, places_of in enumerate(rng.integers(0, places, (count, 3))):
        on, off, other = (int(place) * span for place in places_of)
        # Out of order: backwards elsewhere, and the last read where a walk has it, so that what is near it was read.
        back = other + np.arange(walk - 1)[::-1] * least
        arms = [(0, on, on + np.arange(walk) * least)]
        arms.append((1, off, np.append(back, off + (walk - 1) * least)))
        # In turns, so that slow changes of the drive strike both alike.
        for arm, base, before in arms if at % 2 else arms[::-1]:
            target.play("read", before, least)
            target.idle(pause_ns)
            first = base + walk * least + ahead - size
            times[arm, at] = max(float(target.play("read", [first], size).latency_ns[0]), 1.0)
    return times[0], times[1]


def _near_and_far(
    target: Target,
    rng: np.random.Generator,
    least: int,
    ahead: int,
    pause_ns: float,
    count: int,
) -> tuple[Array, Array]:
    """Times of reads just behind a single other one, and of reads far from it, yet in the same piece of a map."""
    size = max(ahead - least, least) // least * least
    places = (buffer_region(target) - _AWAY) // _AWAY - 1
    times = np.empty((2, count))
    for at, bases in enumerate(rng.integers(1, places, (count, 2)) * _AWAY):
        for arm in (0, 1) if at % 2 else (1, 0):
            base = int(bases[arm])
            target.play("read", [base - least if arm == 0 else base - _AWAY], least)
            target.idle(pause_ns)
            first = base + ahead - size
            times[arm, at] = max(float(target.play("read", [first], size).latency_ns[0]), 1.0)
    return times[0], times[1]


def _far(edge: Edge, walk: int) -> Finding:
    why = f"after {walk} reads in order, data up to {kib(edge.inside)} ahead comes from RAM, data beyond it does not"
    low, high = float(edge.inside), float(edge.outside)
    return verdicts.found("prefetch-size", edge.inside, "B", (low, high), edge.confidence, why)


def _plot(
    evidence: list[tuple[int, int, Array, Array, float]], best: tuple[int, int] | None
) -> tuple[Plot, ...]:
    walk = evidence[-1][0]
    rows = [row for row in evidence if row[0] == walk]
    x = np.concatenate([np.full(row[2].size, float(row[1])) for row in rows])
    series = (
        Series(f"after {walk} reads in order", x, np.concatenate([row[2] for row in rows])),
        Series("after reads elsewhere", x, np.concatenate([row[3] for row in rows])),
    )
    marks = (Mark(float(best[1]), f"{kib(best[1])} ahead"),) if best else ()
    labels = "end of the read, ahead of the reader [B]", "latency [ns]"
    return (Plot("Reads that continue where others stopped", *labels, series, marks, True, True),)
