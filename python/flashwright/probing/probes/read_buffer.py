"""How much of what was read a drive keeps in RAM, and from which request size on."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from flashwright.drive.findings import Finding, Mark, Plot, Series, unknown
from flashwright.probing.probes.shared import verdicts
from flashwright.probing.probes.shared.buffers import buffer_region, read_twice, request_sizes
from flashwright.probing.probes.shared.edges import Edge, center, find_edge, is_above, most
from flashwright.target.arrays import Array
from flashwright.target.question import Context, Cost, kib
from flashwright.target.target import FILL_BYTES

__all__ = ["ReadBuffer"]


# The gain of a repeated read, as a share, that is a buffer (algorithms 8.3, step 3); half of it is the border to none.
_GAIN = 0.1
# How much more is measured where times are unclear, for the cost. Measured: at most, on the drives that we drew.
_AGAIN = {"quick": 5.0, "full": 4.0}


class ReadBuffer:
    """Reads at places not read for long, each followed by the same read again.

    Source: Kim 2011, section 4.2.5, procedures 3 and 4. The first read of a place is procedure 4, the second is
    procedure 3; what is read in between stands for their filler of 16 MB, and amounts to more than any buffer that is
    looked for.
    """

    NAME: ClassVar[str] = "read-buffer"
    ABOUT: ClassVar[str] = (
        "The size of the RAM that keeps data that was read: up to what size is a read faster when it is repeated "
        "immediately "
        "(Kim 2011, section 4.2.5)?"
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = ("read-buffer", "read-buffer-least")
    READS_ALONE: ClassVar[bool] = True

    def cost(self, context: Context) -> Cost:
        """About what it will ask of the drive."""
        sizes, repeats = request_sizes(context), _repeats(context)
        written = buffer_region(context.target) if not context.target.read_only else 0
        # Halving decides about a dozen sizes on each of two edges, most of them after the first look.
        halving = 2 * 14 * 2 * 8 * 16 << 20
        return Cost(
            bytes_read=int(_AGAIN[context.mode] * sum(sizes) * 2 * repeats) + halving,
            bytes_written=written,
            requests=2 * repeats * len(sizes) + 2 * 14 * 16 + written // FILL_BYTES,
        )

    def run(self, context: Context) -> list[Finding]:
        """Ask, and decide."""
        target, rng = context.target, context.rng(self.NAME)
        sizes = request_sizes(context)
        if sizes[-1] < 64 << 10:
            why = f"{target.capacity_bytes:,} B are too small to read around a buffer"
            return [unknown(parameter, why, "B") for parameter in self.PARAMETERS]
        context.fill(buffer_region(target))
        values: dict[int, list[Array]] = {size: [] for size in sizes}
        first_ns: dict[int, list[Array]] = {size: [] for size in sizes}
        second_ns: dict[int, list[Array]] = {size: [] for size in sizes}
        # Passes over all sizes in changing order, so that slow changes of the drive strike all of them alike.
        passes = 4
        for turn in range(passes):
            for size in rng.permutation(sizes):
                first, second = read_twice(target, int(size), _repeats(context) // passes, rng)
                first_ns[size].append(first)
                second_ns[size].append(second)
                values[size].append(np.log(first / second))
            context.progress(0.4 * (turn + 1) / passes)
        gains = {size: np.concatenate(values[size]) for size in sizes}
        here: dict[int, bool | None] = {}
        for at, size in enumerate(sizes):

            def sample(count: int, size: int = size) -> Array:
                first, second = read_twice(target, size, count, rng)
                return np.asarray(np.log(first / second))

            mean, error = center(gains[size])
            here[size] = mean > _GAIN / 2
            if abs(mean - _GAIN / 2) <= 3 * error:
                here[size], more = is_above(sample, _GAIN / 2, most(context, 2 * size), 3.0)
                gains[size] = np.concatenate([gains[size], more])
            context.progress(0.4 + 0.2 * (at + 1) / len(sizes))
        arms = [{s: np.concatenate(part[s]) for s in sizes} for part in (first_ns, second_ns)]
        return self._decide(context, sizes, gains, here, (arms[0], arms[1]), rng)

    def _decide(
        self,
        context: Context,
        sizes: list[int],
        gains: dict[int, Array],
        here: dict[int, bool | None],
        arms: tuple[dict[int, Array], dict[int, Array]],
        rng: np.random.Generator,
    ) -> list[Finding]:
        levels = np.array([center(gains[size])[0] for size in sizes])
        errors = np.array([center(gains[size])[1] for size in sizes])
        run = _longest([here[size] for size in sizes])
        if run is None or run[1] - run[0] < 2:
            return self._none(sizes, here, levels, errors, arms)
        first, last = run
        # Kim's step.
        step = context.up(1024)
        beyond = next((s for s in sizes[last + 1 :] if here[s] is False), None)
        top = Edge(sizes[last], sizes[last], 0.0)
        if beyond is not None:
            top = self._edge(context, sizes[last], beyond, levels[last], step, rng)
        context.progress(0.8)
        below = next((s for s in reversed(sizes[:first]) if here[s] is False), None)
        low = None
        if below is not None:
            low = self._edge(context, sizes[first], below, levels[first], step, rng)
        context.progress(1.0)
        plots = _plots(sizes, levels, arms, top.inside, low.inside if low else None)
        figures = {
            "gain_share": 1 - float(np.exp(-np.median(levels[first : last + 1]))),
            "hit_rate_bytes_s": sizes[last] / float(np.median(arms[1][sizes[last]])) * 1e9,
            "miss_rate_bytes_s": sizes[last] / float(np.median(arms[0][sizes[last]])) * 1e9,
        }
        findings = [_size(top, beyond, step, plots, figures)]
        if low is None:
            findings.append(
                verdicts.absent(
                    "read-buffer-least",
                    "B",
                    findings[0].confidence,
                    f"reads from {kib(sizes[first])} on, the smallest tried, are served from the buffer",
                )
            )
        elif low.confidence < 0.9:
            why = f"between {kib(low.outside)} and {kib(low.inside)} repeated measurements are inconclusive"
            findings.append(unknown("read-buffer-least", why, "B", plots))
        else:
            findings.append(
                verdicts.found(
                    "read-buffer-least",
                    low.inside,
                    "B",
                    (float(low.outside), float(low.inside)),
                    low.confidence,
                    f"a repeated read of {kib(low.inside)} is faster, one of {kib(low.outside)} is not",
                )
            )
        return findings

    def _edge(
        self,
        context: Context,
        inside: int,
        outside: int,
        level: float,
        step: int,
        rng: np.random.Generator,
    ) -> Edge:
        inside, outside = (
            (inside // step * step, -(-outside // step) * step)
            if inside < outside
            else (-(-inside // step) * step, outside // step * step)
        )

        def sample(size: int, count: int) -> Array:
            first, second = read_twice(context.target, size, count, rng)
            return np.asarray(np.log(first / second) / level)

        return find_edge(sample, inside, outside, step, lambda size: most(context, 2 * size), rng)

    def _none(
        self,
        sizes: list[int],
        here: dict[int, bool | None],
        levels: Array,
        errors: Array,
        arms: tuple[dict[int, Array], dict[int, Array]],
    ) -> list[Finding]:
        plots = _plots(sizes, levels, arms, None, None)
        # Three neighbours together: nothing shorter than an octave is taken for a buffer.
        three = np.ones(3) / 3
        levels = np.convolve(levels, three, "valid")
        errors = np.sqrt(np.convolve(errors**2, three, "valid") / 3)
        worst = float((levels + 1.645 * errors).max())
        open_ = [here[size] is not False for size in sizes]
        bad = [s for at, s in enumerate(sizes[1:-1], 1) if all(open_[at - 1 : at + 2])]
        bad += [size for size in sizes if here[size] and size not in bad]
        if bad:
            why = (
                f"repeated reads of about {', '.join(kib(size) for size in bad)} may gain up to {worst:.0%}, but no "
                "run of sizes does so clearly"
            )
            return [unknown(parameter, why, "B", plots) for parameter in self.PARAMETERS]
        why = (
            f"a repeated read gains less than {max(worst, 0.001):.1%} at any size from {kib(sizes[0])} to "
            f"{kib(sizes[-1])}; a buffer would save the time that flash takes"
        )
        # One-sided: the chance that a gain of 10 % hides at some size.
        distance = float(np.min((_GAIN - levels) / np.maximum(errors, 1e-9)))
        confidence = float(1 - levels.size * np.exp(-(min(distance, 20.0) ** 2) / 2) / 2)
        finding = verdicts.absent("read-buffer", "B", max(confidence, 0.0), why, plots)
        least = replace(finding, parameter="read-buffer-least", why="no read buffer", plots=())
        return [finding, least]


def _repeats(context: Context) -> int:
    return 8 if context.mode == "quick" else 24


def _longest(here: list[bool | None]) -> tuple[int, int] | None:
    """First and last of the longest run of hits; what is undecided does not end a run."""
    best: tuple[int, int] | None = None
    start = last = None
    for at, hit in enumerate([*here, False]):
        if hit:
            start, last = (at if start is None else start), at
        elif hit is False and start is not None and last is not None:
            if best is None or last - start > best[1] - best[0]:
                best = (start, last)
            start = last = None
    return best


def _size(
    top: Edge,
    beyond: int | None,
    step: int,
    plots: tuple[Plot, ...],
    figures: dict[str, float],
) -> Finding:
    if beyond is None:
        why = f"repeated reads gain up to {kib(top.inside)}, the largest tried: it is larger than that"
        return unknown("read-buffer", why, "B", plots, least_bytes=float(top.inside))
    if top.confidence < 0.9 or abs(top.outside - top.inside) > step:
        why = f"between {kib(top.inside)} and {kib(top.outside)} repeated measurements are inconclusive"
        return unknown(
            "read-buffer",
            why,
            "B",
            plots,
            least_bytes=float(top.inside),
            most_bytes=float(top.outside),
        )
    return verdicts.found(
        "read-buffer",
        top.inside,
        "B",
        (float(top.inside), float(top.outside)),
        top.confidence,
        f"a read of {kib(top.inside)} is {figures['gain_share']:.0%} faster when repeated, one of "
        f"{kib(top.outside)} is not",
        plots,
        figures,
    )


def _plots(
    sizes: list[int],
    levels: Array,
    arms: tuple[dict[int, Array], dict[int, Array]],
    top: int | None,
    low: int | None,
) -> tuple[Plot, ...]:
    x = np.concatenate([np.full(arms[0][size].size, float(size)) for size in sizes])
    marks = [Mark(float(size), kib(size)) for size in (low, top) if size is not None]
    series = tuple(
        Series(name, x, np.concatenate([arm[size] for size in sizes]))
        for name, arm in zip(("first read", "same read again"), arms, strict=True)
    )
    labels = "request size [B]", "latency [ns]"
    share = 1 - np.exp(-levels)
    return (
        Plot("Reads and reads again", *labels, series, tuple(marks), True, True),
        Plot(
            "Share of the time that a repeated read saves",
            labels[0],
            "share",
            (Series("gain", np.array(sizes, float), share, "line"),),
            tuple(marks),
            True,
        ),
    )
