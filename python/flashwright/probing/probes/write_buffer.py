"""Up to which size a drive acknowledges a write before flash has it.

Two directions to the size. One large write: latency grows along a line up to what fits, and by the time of programming
beyond it. A burst of small writes: they are fast until the RAM is full. Where the two do not agree, what ends at the
size that one write shows is no buffer: a piece of a map that has to be loaded, or a limit of the length of a request.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from flashwright.drive.findings import Finding, Mark, Plot, Series, unknown
from flashwright.probing.probes.shared import verdicts
from flashwright.probing.probes.shared.buffers import (
    REPEATS,
    SMALLEST_BYTES,
    after_rests,
    buffer_region,
    largest_request,
    request_sizes,
)
from flashwright.probing.probes.shared.edges import Edge, center, find_edge, most
from flashwright.target.arrays import Array
from flashwright.target.question import Context, Cost, kib
from flashwright.target.stats import chance_above
from flashwright.target.target import Target

__all__ = ["Burst", "Line", "WriteBuffer", "burst", "empty_and_write", "fit"]


# Reads that show what flash takes.
_FRESH = 32
# How far behind each of them lies the one that loads its piece of a map, bytes.
_NEAR = 256 << 10
# Bytes of a write of the filler. Chosen: small enough to go into any buffer that is looked for.
_FILLER = 32 << 10
# Least step of the latency that counts as one, in logarithms. Chosen: what programming adds to a write of which the
# link takes most; a twentieth is half of what algorithms 8.3 ask of a gain.
_STEP = 0.05
# Where the border to what does not fit lies above the line, in logarithms, if the step is large. Chosen: far enough
# that a few repeats settle it at 5 % of noise, and below what programming adds on all but the fastest flash.
_BORDER = 0.07
# Sizes that a line is laid through before what follows is compared with it.
_LEAST_SIZES = 5
# Single writes after a rest.
_RESTS = 12
# That rest, nanoseconds. Chosen: a die ends tens of programs in it.
_REST_NS = 100e6
# Their time over that of writes without a rest, below which RAM took them. Chosen: RAM is several times as fast, and
# noise is a tenth.
_RESTED = 0.6
# Time of a write over that of a read, up to which no flash was programmed. Derived: programming takes longer than
# reading.
_OVER_READ = 1.1
# Writes of a burst.
_BURST_WRITES = 128
# Bytes of a burst, in times of the size that is asked about: each is tried until writes slow down.
_BURST_TIMES = (4, 16, 64)
# Bytes of a write of a burst, at least.
_BURST_SMALLEST = 4096
# The same at most.
_BURST_LARGEST = 32 << 10
# Bytes of a burst at most.
_BURST_MOST = 128 << 20
# Bursts of each size. Chosen: the slowest at each place is left out.
_BURST_REPEATS = 4
# Time of the last writes over that of the first, from which on the RAM is full. Chosen: beyond the noise of means.
_BURST_SLOWER = 1.4
# Share of the time of the last writes that writes take on average from the first that waits on. Chosen.
_BURST_AS_AT_END = 0.7
# By how much the size of one write may differ from that of bursts, as a share. Chosen.
_BURST_NEAR = 0.25


@dataclass(frozen=True)
class Line:
    """Latency over size.

    Attributes
    ----------
    fixed_ns : float
        Of a write of no length, nanoseconds.
    ns_a_byte : float
        Slope.
    spread : float
        Root mean square of the relative residuals.
    """

    fixed_ns: float
    ns_a_byte: float
    spread: float

    def at(self, size_bytes: float) -> float:
        """Latency of a size, nanoseconds."""
        return self.fixed_ns + self.ns_a_byte * size_bytes


class WriteBuffer:
    """Writes of growing size to an emptied buffer, to a full one, and the time to empty it.

    Source: Kim 2011, section 4.2.6, procedures 5 and 6; algorithms 8.4. The paper fills the buffer with one large
    write. Drives let such a write pass by their buffer, so it is many small ones here. The writes to the emptied buffer
    show where it ends: their time grows along a line as long as they fit, and by the time of programming where they do
    not. A map that has to be loaded ends such a line as well, so a burst of small writes (:func:`burst`) has to confirm
    the size.
    """

    NAME: ClassVar[str] = "write-buffer"
    ABOUT: ClassVar[str] = (
        "The size of the RAM that acknowledges writes before they reach flash: up to what size is a write to an "
        "emptied buffer as fast as the link (Kim 2011, section 4.2.6)?"
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = ("write-buffer",)

    def cost(self, context: Context) -> Cost:
        """About what it will ask of the drive."""
        sizes, repeats, filled = request_sizes(context), _repeats(context), _filled_sizes(context)
        filler = largest_request(context.target)
        writes = sum(sizes) * repeats + sum(filled) * repeats + filler * len(filled)
        # A dozen sizes of halving, most of them after the first look.
        halving = 16 * 8 * 16 << 20
        # Bursts of small writes, four each.
        bursts = min(4 * (4 + 16 + 64) << 20, 2 * buffer_region(context.target))
        # Without signs of a buffer, small writes and whole pages after rests.
        page = context.size("clustered-page") or 0
        rested = _RESTS * SMALLEST_BYTES + 2 * REPEATS * page + buffer_region(context.target) // 4
        return Cost(
            bytes_read=2 * _FRESH * (SMALLEST_BYTES + page),
            bytes_written=writes + buffer_region(context.target) + halving + bursts + rested,
            requests=2 * repeats * len(sizes)
            + 2 * (_FRESH + _RESTS)
            + filler // _FILLER * len(filled)
            + 512
            + bursts // _FILLER,
        )

    def run(self, context: Context) -> list[Finding]:
        """Ask, and decide."""
        target, rng = context.target, context.rng(self.NAME)
        sizes = request_sizes(context)
        if sizes[-1] < 128 << 10:
            why = f"{target.capacity_bytes:,} B are too small to write around a buffer"
            return [unknown("write-buffer", why, "B")]
        target.fill(end_bytes=buffer_region(target))
        nothing_ns = target.play("flush", np.zeros(32, np.int64), 0).latency_ns[1:]
        fresh_ns = _fresh(target, sizes[0], rng)
        writes: dict[int, list[Array]] = {size: [] for size in sizes}
        flushes: dict[int, list[Array]] = {size: [] for size in sizes}
        passes = 4
        for turn in range(passes):
            for size in rng.permutation(sizes):
                wrote, flushed = empty_and_write(
                    target, int(size), _repeats(context) // passes, rng
                )
                writes[size].append(wrote)
                flushes[size].append(flushed)
            context.progress(0.3 * (turn + 1) / passes)
        empty_ns = {size: np.concatenate(writes[size]) for size in sizes}
        flush_ns = {size: np.concatenate(flushes[size]) for size in sizes}
        full_ns = {size: self._full(context, size, rng) for size in _filled_sizes(context)}
        context.progress(0.5)
        levels = np.array([center(empty_ns[size])[0] for size in sizes])
        signs = _signs(empty_ns, flush_ns, full_ns, nothing_ns, fresh_ns)
        plots = _plots(empty_ns, flush_ns, full_ns, None)
        figures = {
            "write_ns": float(levels[0]),
            "flush_of_nothing_ns": float(np.median(nothing_ns)),
            "flush_after_write_ns": float(np.median(flush_ns[sizes[0]])),
            "read_ns": float(np.median(fresh_ns)),
        }
        if not signs:
            none = _none(sizes, empty_ns, flush_ns, full_ns, fresh_ns, plots, figures)
            if none.verdict == "absent":
                none = _unless_rested(
                    none, _writes_after_rests(target, sizes[0], rng), empty_ns[sizes[0]]
                )
            page = context.size("clustered-page") or 0
            if none.verdict == "absent" and page > sizes[0]:
                none = _unless_whole(none, target, page, rng)
            return [none]
        seen = " and ".join(signs)
        found = self._coarse(context, sizes, empty_ns, rng)
        if found is None:
            why = f"there is a buffer ({seen}), but no size up to {kib(sizes[-1])} at which writes become slower"
            return [unknown("write-buffer", why, "B", plots, **figures)]
        last, line = found
        step = context.up(1024)
        jump = float(np.log(levels[last + 1] / line.at(sizes[last + 1])))

        # Cleaning can make the step look larger than it is right at the edge, so half of it is no border.
        border = min(jump / 2, max(_BORDER, 4 * line.spread))

        def sample(size: int, count: int) -> Array:
            wrote, _ = empty_and_write(target, size, count, rng)
            # What is far beyond the border counts no more than what is beyond it.
            return np.asarray(np.clip(1 - np.log(wrote / line.at(size)) / (2 * border), -1, 3))

        inside, outside = sizes[last] // step * step, -(-sizes[last + 1] // step) * step
        edge = find_edge(sample, inside, outside, step, lambda size: most(context, size), rng)
        context.progress(1.0)
        figures |= {"link_bytes_s": 1e9 / line.ns_a_byte if line.ns_a_byte > 0 else 0.0}
        if edge.confidence:
            beyond_ns = empty_and_write(target, edge.outside, _repeats(context), rng)[0]
            figures["step_ns"] = float(np.median(beyond_ns)) - line.at(edge.outside)
        above = list(range(last + 1, len(sizes)))
        if len(above) >= 2:
            slope = np.polyfit(np.array(sizes, float)[above], levels[above], 1)[0]
            figures["program_bytes_s"] = 1e9 / float(slope) if slope > 0 else 0.0
        plots = _plots(empty_ns, flush_ns, full_ns, edge, line)
        one = _size(edge, step, line, sizes[last + 1], jump, seen, plots, figures)
        return [_confirm_by_bursts(one, burst(context, edge.inside, rng))]

    @staticmethod
    def _full(context: Context, size: int, rng: np.random.Generator) -> Array:
        """Procedure 6: times of writes that find the buffer full."""
        target = context.target
        count = largest_request(target) // _FILLER
        region = buffer_region(target)
        first = int(rng.integers(0, region // _FILLER - count)) * _FILLER
        target.play("write", first + np.arange(count) * _FILLER, _FILLER)
        # Each of them fills it again for the next.
        repeats = _repeats(context)
        places = region // size
        offsets = (int(rng.integers(0, places)) + np.arange(repeats)) % places * size
        times = target.play("write", offsets, size).latency_ns
        target.flush()
        return np.asarray(np.maximum(times, 1.0))

    @staticmethod
    def _coarse(
        context: Context, sizes: list[int], empty_ns: dict[int, Array], rng: np.random.Generator
    ) -> tuple[int, Line] | None:
        """The last size of the grid that fits, and the line of those that do."""
        for last in range(_LEAST_SIZES - 1, len(sizes) - 2):
            line = fit(sizes[: last + 1], empty_ns)
            # Where small writes take longer than large ones the line falls, and says nothing where it is below nothing.
            if min(line.at(size) for size in sizes[: last + 3]) <= 0:
                continue
            for _ in range(6):
                clear = []
                for at in (last + 1, last + 2):
                    excess = np.log(empty_ns[sizes[at]] / line.at(sizes[at]))
                    mean, error = center(excess)
                    least = max(_STEP, 3 * line.spread)
                    clear.append(mean > least if abs(mean - least) > 3 * error else None)
                if None not in clear or False in clear:
                    break
                for at in (last + 1, last + 2):
                    have = empty_ns[sizes[at]]
                    count = min(have.size, most(context, sizes[at]) - have.size)
                    if count > 0:
                        more, _ = empty_and_write(context.target, sizes[at], count, rng)
                        empty_ns[sizes[at]] = np.concatenate([have, more])
            if clear == [True, True]:
                return last, line
        return None


def _fresh(target: Target, size: int, rng: np.random.Generator) -> Array:
    """Times of reads from flash whose piece of the map is in RAM, if there is one: what lies behind was just read."""
    slots = buffer_region(target) // size
    away = min(_NEAR // size, slots - 1)
    places = rng.integers(0, slots - away, _FRESH)
    pairs = np.stack([places + away, places], axis=1).ravel() * size
    return target.play("read", pairs, size).latency_ns[1::2]


def empty_and_write(
    target: Target, size_bytes: int, count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Times of writes that find the buffer empty, and of the flushes after them.

    Parameters
    ----------
    target : Target
        Filled up to :func:`buffer_region`.
    size_bytes : int
        Of each write.
    count : int
        Writes; they go on from a random place, so that they are kind to what maps them.
    rng : numpy Generator
        Chooses the place.

    Returns
    -------
    wrote, flushed : array of count
        Nanoseconds, 1 at least.
    """
    places = buffer_region(target) // size_bytes
    offsets = (int(rng.integers(0, places)) + np.arange(count)) % places * size_bytes
    kinds = np.tile(["flush", "write"], count)
    kinds = np.append(kinds, "flush")
    latency = target.play(kinds, np.append(np.repeat(offsets, 2), 0), size_bytes).latency_ns
    return np.maximum(latency[1::2], 1.0), latency[2::2]


def fit(sizes: list[int], times_ns: dict[int, Array]) -> Line:
    """A line through the latencies of sizes, each with the same relative weight.

    Parameters
    ----------
    sizes : list of int
        Bytes.
    times_ns : mapping of int to array
        Latencies by size, nanoseconds.

    Returns
    -------
    Line
        By least squares of relative residuals.

    Examples
    --------
    >>> line = fit([1000, 2000, 3000], {s: np.full(3, 50.0 + s * 4) for s in (1000, 2000, 3000)})
    >>> round(line.fixed_ns), round(line.ns_a_byte), line.spread < 1e-9
    (50, 4, True)
    """
    x = np.array(sizes, float)
    y = np.array([center(times_ns[size])[0] for size in sizes])
    weighted = np.stack([1 / y, x / y], axis=1)
    fixed, slope = np.linalg.lstsq(weighted, np.ones(x.size), rcond=None)[0]
    spread = float(np.sqrt(np.mean(np.square(1 - weighted @ [fixed, slope]))))
    return Line(float(fixed), float(slope), spread)


def _filled_sizes(context: Context) -> list[int]:
    return request_sizes(context)[::4]


def _repeats(context: Context) -> int:
    return 8 if context.mode == "quick" else 32


def _signs(
    empty_ns: dict[int, Array],
    flush_ns: dict[int, Array],
    full_ns: dict[int, Array],
    nothing_ns: Array,
    fresh_ns: Array,
) -> list[str]:
    """What says that writes are acknowledged before flash has them."""
    signs = []
    smallest = min(empty_ns)
    # A flush that waits has something to wait for: programming at least, so no small part of the write's own time.
    small = [size for size in empty_ns if size <= 32 << 10]
    later = np.concatenate([flush_ns[size] for size in small])
    more = float(np.median(later) - np.median(nothing_ns))
    least = 0.1 * float(np.median(empty_ns[smallest]))
    if more > least and chance_above(later, nothing_ns) < 0.001:
        signs.append(
            f"a flush after a small write takes {more / 1000:,.0f} us longer than an empty one"
        )
    if np.median(empty_ns[smallest]) < 0.8 * np.median(fresh_ns):
        # Programming a page takes longer than reading it in all flash there is (algorithms, section 6.1).
        signs.append(f"writing {kib(smallest)} takes less time than reading it from flash")
    slower = [
        size
        for size in full_ns
        if chance_above(full_ns[size], empty_ns[size]) < 0.001
        and center(full_ns[size])[0] > 1.1 * center(empty_ns[size])[0]
    ]
    # Cleaning may do that too, so it only adds to the others.
    if signs and len(slower) >= 2:
        signs.append(f"writes of {kib(slower[0])} are slower after many others than after a flush")
    return signs


def _none(
    sizes: list[int],
    empty_ns: dict[int, Array],
    flush_ns: dict[int, Array],
    full_ns: dict[int, Array],
    fresh_ns: Array,
    plots: tuple[Plot, ...],
    figures: dict[str, float],
) -> Finding:
    smallest = sizes[0]
    margin = float(np.median(empty_ns[smallest]) / np.median(fresh_ns))
    if margin < _OVER_READ:
        why = (
            f"no flush waits and a full buffer slows nothing, yet writing {kib(smallest)} takes no longer than reading "
            "it: flash alone would be slower"
        )
        return unknown("write-buffer", why, "B", plots, **figures)
    # Each size is an independent look at whether a flush waits; what cleaning adds to writes is none of it.
    agree = float(np.mean([np.median(flush_ns[s]) <= 0.1 * np.median(empty_ns[s]) for s in sizes]))
    if agree < 0.9:
        why = f"flushes wait after some sizes of writes, but only after {1 - agree:.0%} of them"
        return unknown("write-buffer", why, "B", plots, **figures)
    same = np.mean([center(full_ns[s])[0] < 1.1 * center(empty_ns[s])[0] for s in full_ns])
    why = (
        f"a flush after a write takes no time, and writing {kib(smallest)} takes {margin:.1f} times as long as reading "
        f"it; after many other writes {same:.0%} of the sizes take what they take after a flush"
    )
    return verdicts.absent("write-buffer", "B", agree, why, plots, figures)


def _writes_after_rests(target: Target, size: int, rng: np.random.Generator) -> Array:
    """Times of single writes after rests, in which RAM that no flush empties becomes free."""
    places = buffer_region(target) // size
    took = []
    for place in rng.integers(0, places, _RESTS):
        target.idle(_REST_NS)
        took.append(float(target.play("write", [int(place) * size], size).latency_ns[0]))
    return np.array(took)


def _unless_rested(none: Finding, rested_ns: Array, busy_ns: Array) -> Finding:
    """No buffer, unless writes are faster after a rest: then RAM that no flush empties was full."""
    rested = float(np.median(rested_ns))
    figures = {**none.figures, "rested_write_ns": rested}
    # Of those without a rest the fast ones, since others met cleaning.
    share = rested / float(np.quantile(busy_ns, 0.25))
    of_read = rested / none.figures["read_ns"]
    if of_read < _OVER_READ or share < _RESTED:
        why = (
            f"{none.why}; but after {_REST_NS / 1e6:.0f} ms of rest it takes {of_read:.2f} times as long as reading: "
            "RAM that no flush empties, full while requests keep coming, looks the same"
        )
        return unknown("write-buffer", why, "B", none.plots, **figures)
    return replace(none, figures=figures)


def _unless_whole(none: Finding, target: Target, page: int, rng: np.random.Generator) -> Finding:
    """No buffer, unless a whole clustered page is written as fast as it is read: small writes read the rest first.

    On a drive that was purged and is mostly empty: cleaning that is due slows writes down however long they rest.
    """
    target.purge()
    end = max(buffer_region(target) // 4 // page, 1) * page
    target.fill(end_bytes=end)
    rested, read = (np.median(took) for took in after_rests(target, page, end, rng))
    figures = {**none.figures, "rested_page_ns": float(rested), "read_page_ns": float(read)}
    if rested > read:
        return replace(none, figures=figures)
    why = (
        f"{none.why}; but after {_REST_NS / 1e6:.0f} ms of rest a clustered page of {kib(page)} is written in "
        f"{rested / read:.2f} times what reading it takes: RAM that no flush empties, and the rest of a small write is "
        "read first"
    )
    return unknown("write-buffer", why, "B", none.plots, **figures)


def _size(
    edge: Edge,
    step: int,
    line: Line,
    beyond: int,
    jump: float,
    seen: str,
    plots: tuple[Plot, ...],
    figures: dict[str, float],
) -> Finding:
    if edge.confidence < 0.9 or abs(edge.outside - edge.inside) > step:
        why = (
            f"there is a buffer ({seen}); between {kib(edge.inside)} and {kib(edge.outside)} repeats do not settle on "
            "one side"
        )
        bounds = {"least_bytes": float(edge.inside), "most_bytes": float(edge.outside)}
        return unknown("write-buffer", why, "B", plots, **figures, **bounds)
    why = (
        f"writes to an emptied buffer follow a line up to {kib(edge.inside)}; {kib(edge.outside)} do not, and "
        f"{kib(beyond)} take {np.expm1(jump):.0%} longer than it ({seen})"
    )
    low, high = float(edge.inside), float(edge.outside)
    return verdicts.found(
        "write-buffer", edge.inside, "B", (low, high), edge.confidence, why, plots, figures
    )


def _confirm_by_bursts(found: Finding, small: Burst | None) -> Finding:
    """The size by one write, held against that by many small ones."""
    if found.verdict != "found":
        return found
    size = float(found.value or 0)
    if small is None:
        why = f"{found.why}; but many small writes do not fill it, so nothing else bears it out"
        return unknown("write-buffer", why, "B", found.plots, **found.figures, one_write_bytes=size)
    figures = {
        **found.figures,
        "burst_bytes": small.filled_bytes,
        "burst_least_bytes": small.least_bytes,
    }
    if not small.bears_out(size):
        why = f"{found.why}; but {small.text}: one of the two is no end of a buffer"
        return unknown("write-buffer", why, "B", found.plots, **figures)
    low = min(size, max(small.least_bytes // 1024 * 1024, size / 2))
    return replace(found, low=low, why=f"{found.why}; {small.text}", figures=figures)


def _plots(
    empty_ns: dict[int, Array],
    flush_ns: dict[int, Array],
    full_ns: dict[int, Array],
    edge: Edge | None,
    line: Line | None = None,
) -> tuple[Plot, ...]:
    def points(name: str, times: dict[int, Array]) -> Series:
        x = np.concatenate([np.full(times[size].size, float(size)) for size in times])
        return Series(name, x, np.concatenate(list(times.values())))

    series = [points("buffer emptied", empty_ns), points("buffer full", full_ns)]
    marks: tuple[Mark, ...] = ()
    if edge is not None and line is not None:
        x = np.array([size for size in empty_ns if size <= 2 * edge.inside], float)
        series.append(Series("line of what fits", x, line.fixed_ns + line.ns_a_byte * x, "line"))
        marks = (Mark(float(edge.inside), kib(edge.inside)),)
    labels = "request size [B]", "latency [ns]"
    after = points("flush after a write", flush_ns)
    return (
        Plot("Writes to an empty and to a full buffer", *labels, tuple(series), marks, True, True),
        Plot("Flushes after a write", *labels, (after,), marks, True),
    )


@dataclass(frozen=True)
class Burst:
    """What many small writes show.

    Attributes
    ----------
    filled_bytes : float
        Written before writes began to wait.
    least_bytes : float
        That without what may have drained meanwhile.
    first_bytes : float
        Written before the first write from which on writes wait: merges that come and go may make the slope, by which
        `filled_bytes` is found, unsteady.
    """

    filled_bytes: float
    least_bytes: float
    first_bytes: float

    def bears_out(self, size_bytes: float) -> bool:
        """Whether a size lies between what was written until writes waited and the same without what drains."""
        drained = self.least_bytes / self.filled_bytes
        return any(
            (1 - _BURST_NEAR) * drained * filled <= size_bytes <= (1 + _BURST_NEAR) * filled
            for filled in (self.filled_bytes, self.first_bytes)
        )

    @property
    def text(self) -> str:
        """In words."""
        return (
            f"a burst of small writes is taken fast up to {kib(round(self.filled_bytes) >> 10 << 10)}, "
            f"{kib(round(self.least_bytes) >> 10 << 10)} of it without what drains meanwhile"
        )


def burst(context: Context, size_bytes: int, rng: np.random.Generator) -> Burst | None:
    """Small writes in order, without a flush, until they slow down.

    Parameters
    ----------
    context : Context
        The target, filled up to :func:`buffer_region`.
    size_bytes : int
        What the RAM is thought to have.
    rng : numpy Generator
        Draws the places.

    Returns
    -------
    Burst or None
        None where they never slow down: flash keeps up with small writes.
    """
    target, room = context.target, buffer_region(context.target)
    for times in _BURST_TIMES:
        total = min(times * size_bytes, _BURST_MOST, room // 2)
        each = int(
            np.clip(total // _BURST_WRITES, context.up(_BURST_SMALLEST), context.up(_BURST_LARGEST))
        )
        each = context.down(each)
        count = max(total // each, 16)
        runs = []
        for _ in range(_BURST_REPEATS):
            target.flush()
            first = int(rng.integers(0, max(room // (count * each), 1))) * count
            latency = target.play("write", (first + np.arange(count)) * each, each).latency_ns
            runs.append(np.maximum(latency, 1.0))
        target.flush()
        # Programs end at unlike times from run to run: their mean counts, stalls of one run do not.
        mean = np.sort(np.array(runs), axis=0)[:-1].mean(axis=0)
        free = float(np.median(mean[: max(count // 32, 4)]))
        waiting = float(mean[-(count // 4) :].mean())
        if waiting >= _BURST_SLOWER * free:
            excess = float(np.sum(mean - free))
            writes = max(count - excess / (waiting - free), 1.0)
            fast = float(np.median([_first(run, _BURST_SLOWER * free, waiting) for run in runs]))
            filled = writes * each
            return Burst(filled, filled * (1 - free / waiting), max(fast, 1.0) * each)
        if total in (_BURST_MOST, room // 2):
            break
    return None


def _first(latency_ns: Array, slow_ns: float, waiting_ns: float) -> int:
    """Writes before the first slow one from which on writes wait as those at the end do."""
    near = max(latency_ns.size // 8, 4)
    for at in np.flatnonzero(latency_ns > slow_ns).tolist():
        if latency_ns[at : at + near].mean() >= _BURST_AS_AT_END * waiting_ns:
            return int(at)
    return latency_ns.size
