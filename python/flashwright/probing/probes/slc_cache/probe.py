"""Writes in order over an empty and over a full drive, with and without rest, at two paces."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from flashwright.drive.findings import Finding, Mark, Plot, Series, unknown
from flashwright.probing.probes.shared import verdicts
from flashwright.probing.probes.shared.overwriting import LEAST_BYTES, stream_write_size
from flashwright.probing.probes.slc_cache.cliffs import (
    FELL,
    LASTS,
    RAM_REST_S,
    WINDOWS,
    Cliff,
    Pen,
    cliff_of,
)
from flashwright.target.arrays import Array
from flashwright.target.question import UNTESTED, Context, Cost, kib

__all__ = ["SlcCache"]


# A cliff beyond this share of the capacity may be cleaning. Chosen: flash of some drives is used up before the
# capacity.
_LATEST = 0.85
# The same where pages are written in parts. Chosen: RAM of few pages may hand them on in halves.
_HALF = 0.5
# Two measurements of the same cliff differ by less than this share. Chosen.
_SAME = 0.12
# Rest that empties a cache, seconds, at least.
_REST_LEAST_S = 30.0
# At most. Chosen: the session has more to ask.
_REST_MOST_S = 300.0
# And in times of what writing the cache takes at the speed beyond it. Chosen: folding moves as much, with reads
# besides.
_REST_TIMES = 4.0
# Bounds of a size that lie farther apart than this factor are no verdict. Chosen.
_UNSURE = 1.3
# Share of a cache that must come back at rest. Chosen: far from chance, though a rest may be short.
_CAME_BACK = 0.25
# What comes back on a full drive, as a share of that on an empty one, from which on the cache is fixed. Chosen.
_FIXED = 0.85
# The same up to which it is dynamic. Chosen: a gap to the above, in which there is no verdict.
_DYNAMIC = 0.7
# What reads lose, in logarithms, as a share of what writes lose, above which it is a limit of the device. Chosen: half.
_READS_TOO = 0.5
# Rests that are tried for the start of folding, seconds: from 5 ms on, each twice as long.
_RESTS_S = tuple(0.005 * 2**k for k in range(13))
# Bytes of a piece that shows whether writes are fast again, at least. Chosen: RAM and the flush hardly show.
_PIECE = 16 << 20
# At most. Chosen: no large part of a cache.
_PIECE_MOST = 256 << 20
# Speed of writes in order over that of reads, above which the link may hold them back. Chosen.
_LINK = 0.85
# Time of reads of what was written first over that of later data, below which the cells are others. Chosen: they differ
# by less where all cells are alike.
_OTHER_CELLS = 0.95
# The surest verdict. Chosen: other makes may lose speed otherwise.
_SUREST = 0.95

_NAMES = (
    "slc-cache",
    "slc-cache-ratio",
    "slc-cache-kind",
    "slc-cache-folding",
    "idle-before-folding",
    "steady-cliff",
    "sustained-rate",
)
_UNITS = ("B", "", "", "", "ns", "B", "B/s")


class SlcCache:
    """The cache of writes in flash, its recovery, and the speed beyond it."""

    NAME: ClassVar[str] = "slc-cache"
    ABOUT: ClassVar[str] = (
        "Whether writes are faster until a cache in flash is full, how large and how fast it is, whether idle time "
        "empties it, and what speed lasts on a full drive: writes in order, with and without rest, at two paces."
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = _NAMES
    OF_THE_WHOLE: ClassVar[tuple[str, ...]] = PARAMETERS

    def cost(self, context: Context) -> Cost:
        """At most six capacities in order: two fills, the other pace, both recoveries, and the speed that lasts."""
        capacity = context.target.capacity_bytes
        written = 6 * capacity
        read = 8 * max(capacity // 32, _PIECE)
        return Cost(read, written, (written + read) // stream_write_size(context) + 8 * WINDOWS * 9)

    def run(self, context: Context) -> list[Finding]:
        """Fill an empty drive, look for a cliff, and ask again with rest and at another pace."""
        target = context.target
        if target.capacity_bytes < LEAST_BYTES:
            why = f"the target has {kib(target.capacity_bytes)}, less than {kib(LEAST_BYTES)}: it would hold few blocks"
            return _all_unknown(why)
        purged = target.purge()
        pen = Pen(context)
        first = pen.window(pen.lead)
        before_reads = pen.reads()
        filled = np.array(
            [pen.window() for _ in range((target.capacity_bytes - pen.lead) // pen.bytes)]
        )
        after_reads = pen.reads()
        context.progress(0.2)
        cliff = cliff_of(filled, pen.bytes, pen.lead)
        plot = _plot(filled, pen, cliff)

        def blind(why: str) -> list[Finding]:
            cache = unknown("slc-cache", why, "B", (plot,))
            return _with_missing([cache], *_lasting(context, pen, 0.0))

        if not purged:
            return blind(
                "the target cannot be purged, so that nobody knows how full a cache of it is"
            )
        if cliff is None:
            speed = float(np.median(filled))
            why = (
                f"an empty drive takes all of its capacity in order at one speed, {speed / 1e6:,.0f} MB/s in windows "
                f"of {kib(pen.bytes)}; {LASTS} in a row are never slower"
            )
            if speed > _LINK * min(before_reads, after_reads):
                return blind(f"{why}, but reads are hardly faster: the link may hide a cache")
            share = pen.first_over_later()
            if share < _OTHER_CELLS:
                why += f"; but what was written first is read in {share:.2f} times what later data takes"
                return blind(why)
            steady = min(float(np.mean(filled > FELL * speed)), _SUREST)
            if first > speed / FELL and not pen.is_ram(first, float(np.median(filled))):
                why = (
                    f"only {kib(pen.lead)} or less are faster, and {RAM_REST_S * 1e3:.0f} ms of rest do not "
                    "make them fast again: a small cache, or RAM that empties slowly"
                )
                return blind(why)
            none = verdicts.absent("slc-cache", "B", steady, why, (plot,))
            others = [
                verdicts.absent(name, unit, steady, "no such cache")
                for name, unit in zip(_NAMES[1:5], _UNITS[1:5], strict=True)
            ]
            return _with_missing([none, *others], *_lasting(context, pen, 0.0))
        return _with_cliff(context, pen, cliff, plot, (before_reads, after_reads))


def _with_cliff(
    context: Context, pen: Pen, cliff: Cliff, plot: Plot, reads: tuple[float, float]
) -> list[Finding]:
    target = context.target
    if _reads_fell(cliff, reads):
        # Or data has left the cache for slower cells. A limit of the device lasts over a purge without rest.
        reads = reads[0], pen.reads_anew()
    middle = float(np.sqrt(cliff.before * cliff.after))
    rest_s = float(
        np.clip(_REST_TIMES * cliff.size_bytes / cliff.after, _REST_LEAST_S, _REST_MOST_S)
    )
    # On the full drive, after rest: what comes back there, and what lasts.
    lasting, came_full = _lasting(context, pen, rest_s, cliff)
    context.progress(0.5)
    # From the middle on, at half the pace.
    target.purge()
    pen.at = pen.slots // 2
    slowly, ended = pen.until(middle, 1.0 * target.capacity_bytes, pace=2)
    context.progress(0.7)
    # Rest after the cliff of a drive that is mostly empty.
    target.idle(rest_s * 1e9)
    came_back, _ = pen.until(middle, cliff.size_bytes * 1.5)
    context.progress(0.85)
    seen = (
        f"an empty drive takes {kib(round(cliff.size_bytes) >> 10 << 10)} in order at {cliff.before / 1e6:,.0f} MB/s, "
        f"then {cliff.after / 1e6:,.0f} MB/s"
    )
    figures = {
        "cliff_bytes": cliff.size_bytes,
        "before_bytes_per_s": cliff.before,
        "after_bytes_per_s": cliff.after,
        "slowly_bytes": slowly if ended else float("nan"),
        "came_back_bytes": came_back,
        "came_back_full_bytes": came_full,
        "rest_s": rest_s,
        "reads_share": reads[1] / reads[0],
    }
    figures = {name: value for name, value in figures.items() if np.isfinite(value)}
    against = _against(cliff, target.capacity_bytes, slowly, ended, reads)
    if not against and context.size("clustered-page") is None:
        against = (
            "the clustered page is not known, and pages that are written in parts use up the flash early, so that it "
            "may be cleaning."
        )
    if not against and cliff.size_bytes > _HALF * target.capacity_bytes:
        stays = came_back < _CAME_BACK * cliff.size_bytes
        against = "it is late, and rest brings nothing back: it may be cleaning." if stays else ""
    if against:
        why = f"{seen}; but {against}"
        return [*_unknown_cache(why, plot, figures), *lasting]
    fine = float(pen.bytes)
    drains = slowly / cliff.size_bytes - 1 > _SAME
    size, confidence = cliff.size_bytes, 0.8 if drains else _SUREST
    low = min(slowly - fine, size - fine)
    high = max(slowly + fine, size + fine)
    if drains:
        # At half the pace twice as much drains a byte, 1/size = 2/cliff - 1/slowly; or it drains in rests alone.
        low, high = 1 / (2 / size - 1 / slowly), size
        size = float(np.sqrt(low * high))
    evidence = (
        f"{seen}. At half the pace and from the middle on it takes {kib(round(slowly) >> 10 << 10)}"
        + (", so data leaves the cache meanwhile and it is smaller" if drains else "")
        + f"; reads keep {reads[1] / reads[0]:.2f} of their speed"
    )
    cache = verdicts.found(
        "slc-cache", round(size), "B", (low, high), confidence, f"{evidence}.", (plot,), figures
    )
    if drains and high > _UNSURE * low:
        why = f"{evidence}: {kib(int(low))} to {kib(int(high))}, too far apart."
        cache = unknown("slc-cache", why, "B", (plot,), **figures)
    spread = 0.1 * cliff.ratio
    ratio = verdicts.found(
        "slc-cache-ratio",
        round(cliff.ratio, 3),
        "",
        (max(cliff.ratio - spread, 1.0), cliff.ratio + spread),
        confidence,
        f"{seen}: {cliff.ratio:.1f} times as fast.",
    )
    if cliff.size_bytes < pen.lead + 2 * pen.bytes:
        ratio = unknown(
            "slc-cache-ratio",
            f"{seen}: too few windows of {kib(pen.bytes)} before it show its speed.",
        )
    if cliff.before > _LINK * reads[0]:
        ratio = unknown(
            "slc-cache-ratio",
            f"{seen}, {cliff.ratio:.1f} times as fast, but reads are hardly faster: the link may hold it back.",
            least_ratio=cliff.ratio,
        )
    folding, kind = _recovery(cliff, came_back, came_full, rest_s, fine)
    begins = unknown("idle-before-folding", "the cache is not known to empty at rest.", "ns")
    if folding.value == "yes":
        begins = _begins(context, pen, middle, cliff.size_bytes)
    return [cache, ratio, kind, folding, begins, *lasting]


def _reads_fell(cliff: Cliff, reads: tuple[float, float]) -> bool:
    return bool(np.log(reads[0] / reads[1]) > _READS_TOO * np.log(cliff.ratio))


def _against(
    cliff: Cliff, capacity: int, slowly: float, ended: bool, reads: tuple[float, float]
) -> str:
    """Why the cliff may be no cache in flash; empty if nothing contradicts it."""
    if cliff.size_bytes > _LATEST * capacity:
        return "so late that it may be cleaning."
    if not cliff.steep:
        return "it falls slowly or in steps, as by heat or by place, not at once as where a cache is full."
    if _reads_fell(cliff, reads):
        return (
            f"reads of what was written first, even anew, fall to {reads[1] / reads[0]:.2f} too, so that all of the "
            "device is throttled."
        )
    if slowly < (1 - 2 * _SAME) * cliff.size_bytes:
        return (
            f"at half the pace and from another place on it comes after {kib(slowly)}: it goes by time or by place, "
            "not by bytes."
        )
    if not ended:
        return "at half the pace it never comes, as where a speed is granted by time."
    return ""


def _recovery(
    cliff: Cliff, came_back: float, came_full: float, rest_s: float, fine: float
) -> tuple[Finding, Finding]:
    """Whether it empties at rest, and whether it is as large on a full drive."""
    share, full = came_back / cliff.size_bytes, came_full / max(came_back, 1.0)
    if not np.isfinite(came_full):
        rested = f"after {rest_s:.0f} s of rest, {kib(round(came_back) >> 10 << 10)} are fast again"
        kind = unknown(
            "slc-cache-kind",
            f"{rested}; on a full drive cleaning slows writes down before it ends.",
        )
        if share < _CAME_BACK:
            why = f"{rested}: too few to say that it empties."
            return unknown("slc-cache-folding", why), kind
        return verdicts.found("slc-cache-folding", "yes", "", None, _SUREST, f"{rested}."), kind
    rested = (
        f"after {rest_s:.0f} s of rest, {kib(round(came_back) >> 10 << 10)} are fast again on a mostly empty drive, "
        f"{kib(round(came_full) >> 10 << 10)} on a full one"
    )
    if share < _CAME_BACK and came_full < _CAME_BACK * cliff.size_bytes:
        # A longer rest might do: so much was tested and no more.
        why = f"{rested}: it does not empty in that time."
        return (
            verdicts.found("slc-cache-folding", "no", "", None, UNTESTED, why),
            unknown("slc-cache-kind", f"{rested}: a cache that stays full shows no other size."),
        )
    folding = verdicts.found("slc-cache-folding", "yes", "", None, _SUREST, f"{rested}.")
    if came_back < 8 * fine:
        return folding, unknown(
            "slc-cache-kind", f"{rested}: too little to compare in steps of {kib(fine)}."
        )
    if _FIXED <= full <= 1 / _FIXED and share >= _FIXED:
        kind = verdicts.found("slc-cache-kind", "fixed", "", None, 0.92, f"{rested}: the same.")
    elif came_full < 2 * fine and share >= _CAME_BACK:
        kind = unknown(
            "slc-cache-kind",
            f"{rested}: a full drive may need longer to empty it, or has no room for one.",
        )
    elif full <= _DYNAMIC and share >= _CAME_BACK:
        kind = Finding(
            "slc-cache-kind",
            "found",
            "dynamic",
            # The same rest emptied it there; that folding on a full drive is slower is not tested.
            confidence=UNTESTED,
            why=f"{rested}: it shrinks as the drive fills.",
        )
    else:
        kind = unknown("slc-cache-kind", f"{rested}: neither alike nor clearly different.")
    return folding, kind


def _begins(context: Context, pen: Pen, middle: float, size: float) -> Finding:
    """The shortest rest after which some writes are fast again."""
    # Over and over the same part, so that a cache of free blocks does not shrink; by halves, so that little is written.
    context.target.purge()
    pen.at, pen.slots = 0, min(int(1.5 * size / pen.size) + 1, pen.slots)
    # So large that what RAM takes of it at once, and the flush, hardly show; no large part of the cache.
    piece = int(min(max(pen.bytes, _PIECE), _PIECE_MOST, size / 8))
    short, long = -1, len(_RESTS_S)
    while long - short > 1:
        at = (short + long) // 2
        # Nothing is left of what came back before.
        pen.until(middle, 2 * size + pen.bytes)
        context.target.idle(_RESTS_S[at] * 1e9)
        # What is begun without the cache is ended without it, so the first piece alone shows little.
        if max(pen.window(piece) for _ in range(3)) > middle:
            long = at
        else:
            short = at
    if short < 0 or long == len(_RESTS_S):
        why = (
            f"writes are fast again after {_RESTS_S[0] * 1e3:.0f} ms already"
            if short < 0
            else f"{_RESTS_S[-1]:.0f} s of rest make no {kib(piece)} fast"
        )
        return unknown("idle-before-folding", why + ".", "ns")
    before, rest = _RESTS_S[short], _RESTS_S[long]
    why = (
        f"with the cache full, {kib(piece)} are fast again after {rest * 1e3:,.0f} ms of rest, not after "
        f"{before * 1e3:,.0f} ms: the drive begins to fold in between, or earlier by what folding them takes."
    )
    low, high = before * 1e9 / 2, rest * 1e9
    return verdicts.found("idle-before-folding", round(high), "ns", (low, high), UNTESTED, why)


def _lasting(
    context: Context, pen: Pen, rest_s: float, cliff: Cliff | None = None
) -> tuple[list[Finding], float]:
    """On a full drive, after rest: a capacity in order; the cliff, the speed that lasts, and what was fast."""
    target = context.target
    if rest_s:
        target.idle(rest_s * 1e9)
    fine = max(pen.bytes // 2 // pen.size, 1) * pen.size
    count = max(target.capacity_bytes // fine, 8)
    rates = np.array([pen.window(fine) for _ in range(count)])
    tail = rates[-(rates.size // 4) :]
    # Windows of unlike cleaning average out over a few.
    parts = np.array([1 / np.mean(1 / part) for part in np.array_split(tail, 5)])
    speed = float(1 / np.mean(1 / tail))
    early = float(np.median(rates[:3]))
    fast = 0.0
    if cliff is not None and early > max(speed, cliff.after) / FELL:
        # Where cleaning slows down writes to a cache as well, what is fast is measured by what lasts here.
        beyond = cliff.after if early > FELL * cliff.before else speed
        middle = float(np.sqrt(early * beyond))
        low = [at for at in range(rates.size) if np.all(rates[at : at + LASTS] < middle)]
        end = low[0] if low else rates.size
        fast = float(end * fine)
        # What ends at a speed above that beyond the cache ends by cleaning, and the cache may go on.
        if end < rates.size and np.median(rates[end : end + LASTS]) > 1.2 * cliff.after:
            fast = float("nan")
    near = float(np.mean(np.abs(parts / speed - 1) <= 0.1))
    x = np.arange(1, rates.size + 1, dtype=np.float64) * fine
    plot = Plot(
        "Overwriting a full drive in order" + (f" after {rest_s:.0f} s of rest" if rest_s else ""),
        "written [B]",
        "bandwidth [B/s]",
        (Series("windows", x, rates), Series("lasting", x[[0, -1]], np.full(2, speed), "step")),
        y_log=True,
    )
    if near < 0.6:
        why = f"{near:.0%} of the last parts of a capacity are within a tenth of {speed / 1e6:,.0f} MB/s: not steady."
        return [
            unknown("steady-cliff", why, "B", (plot,)),
            unknown("sustained-rate", why, "B/s", (plot,)),
        ], fast
    why = f"the last quarter of a capacity in order on a full drive is written at {speed / 1e6:,.0f} MB/s."
    rate = verdicts.found(
        "sustained-rate",
        round(speed),
        "B/s",
        (float(parts.min()), float(parts.max())),
        min(near, _SUREST),
        why,
        (plot,),
    )
    if not rest_s:
        none = "no cache was found from which speed could fall."
        return [unknown("steady-cliff", none, "B"), rate], fast
    # Means of some windows, so that single stalls count for little.
    joined = np.array([1 / np.mean(1 / rates[at : at + LASTS]) for at in range(rates.size - LASTS)])
    above = np.flatnonzero(joined > 1.15 * speed)
    first = 0
    while first < above.size and above[first] == first:
        first += 1
    end = first * fine
    if end == 0:
        return [
            verdicts.absent(
                "steady-cliff",
                "B",
                min(near, UNTESTED),
                f"on a full drive after {rest_s:.0f} s of rest nothing is faster than what lasts.",
                (plot,),
            ),
            rate,
        ], fast
    why = f"on a full drive, {rest_s:.0f} s at rest, {kib(end)} are written before the speed is that which lasts."
    return [
        verdicts.found(
            "steady-cliff",
            end,
            "B",
            (float(max(end - LASTS * fine, 0)), float(end + LASTS * fine)),
            min(near, UNTESTED),
            why,
            (plot,),
        ),
        rate,
    ], fast


def _with_missing(cache: list[Finding], lasting: list[Finding], fast: float) -> list[Finding]:
    """Findings of the cache, those that are missing as unknown, and those of what lasts."""
    present = {one.parameter for one in cache}
    missing = [
        unknown(name, cache[0].why, unit)
        for name, unit in zip(_NAMES[:5], _UNITS[:5], strict=True)
        if name not in present
    ]
    return [*cache, *missing, *lasting]


def _unknown_cache(why: str, plot: Plot, figures: dict[str, float]) -> list[Finding]:
    first = unknown("slc-cache", why, "B", (plot,), **figures)
    rest = [unknown(n, why, u) for n, u in zip(_NAMES[1:5], _UNITS[1:5], strict=True)]
    return [first, *rest]


def _all_unknown(why: str) -> list[Finding]:
    return [unknown(name, why, unit) for name, unit in zip(_NAMES, _UNITS, strict=True)]


def _plot(rates: Array, pen: Pen, cliff: Cliff | None) -> Plot:
    x = pen.lead + np.arange(1, rates.size + 1, dtype=np.float64) * pen.bytes
    marks = (Mark(cliff.size_bytes, "cliff"),) if cliff else ()
    return Plot(
        "Writing an empty drive in order",
        "written [B]",
        "bandwidth [B/s]",
        (Series("windows", x, rates, "line"),),
        marks,
        y_log=True,
    )
