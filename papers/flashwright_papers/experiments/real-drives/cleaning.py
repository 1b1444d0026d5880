"""Cleaning on a drive that is overwritten: protocols P1 (patterns), P2 (used share) and P3 (zones).

Under 4 KiB writes a scaled drive has fewer places than the real one, and a pattern must have the shares that it has
over all places of the full size. Zones are scaled with the drive.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flashwright.traces.sources import Source, Trace

from .models import drive_of, has_time, page_bytes, pages_of
from .requests import as_trace, zone_like

Floats = npt.NDArray[np.float64]

PAGES_AT_FULL_SIZE = 200_000_000
PIECE_GIB = 0.5 / 1024
BYTES = 4096  # of a write of P1 and P2
PER_CAPACITY = 100  # windows
# Write amplification above that before the break, as a share: cleaning has begun.
_DEPARTS = 0.02
# Within this of the steady value a run counts as settled.
_SETTLED = 0.05
# A superblock is cleaned in one go, which takes more than a window: windows over which the effort is averaged.
_HARDEST_OVER, _SETTLED_OVER = 3, 11


def share_of_hottest(s: float, part: float = 0.2, pages: int = PAGES_AT_FULL_SIZE) -> float:
    """Share of accesses that go to the hottest `part` of the pages where rank k has weight k^-s.

    Sums are exact for the first thousand ranks and by Euler and Maclaurin behind them (error below 1e-7).

    Examples: 0.72 for s = 0.8, 0.92 for s = 1.0 at 200 million pages.
    """

    def weight(ranks: int) -> float:
        head = min(1000, ranks)
        total = math.fsum(k**-s for k in range(1, head + 1))
        if ranks > head:
            whole = (
                math.log(ranks / head) if s == 1 else (ranks ** (1 - s) - head ** (1 - s)) / (1 - s)
            )
            total += whole + (ranks**-s - head**-s) / 2
        return total

    return weight(round(part * pages)) / weight(pages)


def uniform() -> str:
    """Every page with the same probability."""
    return "uniform:size=4KiB"


def zipf(s: float) -> str:
    """Zipf over all pages, ranks shuffled, with the share on the hottest fifth that the law has at full size."""
    return f"zipf:accesses={share_of_hottest(s):.4f},space=0.2,chunk=4KiB,size=4KiB"


def two_zone(writes: int) -> str:
    """So many per cent of the writes go uniformly to the rest of the pages, shuffled."""
    shares = f"hot-access={writes / 100},hot-space={1 - writes / 100:.2f}"
    return f"hot-cold:{shares},placement=scattered,size=4KiB"


def static(percent: int) -> str:
    """So many per cent of the pages, drawn at random, are never written again, the others uniformly."""
    return f"dynamic-static:static={percent / 100},size=4KiB"


def overwritten(
    drive: str,
    text: str,
    load: str,
    workload: str,
    capacities: float,
    *,
    pages: int | None = None,
    rows: int | None = None,
    used: float = 1.0,
    depth: int = 512,
    seed: int = 1,
) -> dict[str, Any]:
    """A drive filled in order, then overwritten with 4 KiB (P1, and with `used` below 1 P2).

    With `pages` only counts are simulated; with `rows` time passes (see :func:`models.drive_of`).

    Returns
    -------
    dict
        ``write_amplification``: without the floor, over the last quarter less the last per cent. In capacities after
        the fill: ``break``, where write amplification first rises; ``hardest_at`` and ``settled_from``, from speed
        where time passes, else from write amplification. ``mib_s``, ``mib_s_before``, ``mib_s_lowest``: None where no
        time passes.
    """
    ssd = drive_of(text, pages=pages, rows=rows, used=used)
    window = max(1, pages_of(ssd) * page_bytes(ssd) // BYTES // PER_CAPACITY)
    timed = has_time(ssd)
    run = ssd.precondition("sequential").play(
        workload,
        requests=round(capacities * PER_CAPACITY) * window,
        window=f"requests={window}",
        seed=seed,
        **({"depth": depth} if timed else {}),
    )
    row = {"drive": drive, "load": load, "used": used, "seed": seed}
    return row | read_windows(run.windows, capacities, timed)


def read_windows(windows: Any, capacities: float, timed: bool) -> dict[str, Any]:
    """What protocol P1 takes from the windows of a run, which share out its writes evenly."""
    programs, written = (windows[name].to_numpy() for name in ("programs", "pages_written"))
    amplification = programs / np.maximum(written, 1)
    mib_s = None
    if timed:
        ends = windows["time_end_ns"].to_numpy().astype(np.float64)
        requests = windows["requests"].to_numpy()
        mib_s = requests * BYTES / 2**20 / (np.diff(ends, prepend=0.0) / 1e9)
    # Effort: grows where the drive slows down.
    effort = 1 / mib_s if mib_s is not None else amplification
    each = capacities / len(written)
    last = steady_part(len(written))
    steady = float(np.mean(effort[last]))
    before = first_departure(amplification)
    off = np.flatnonzero(np.abs(smoothed(effort, _SETTLED_OVER) / steady - 1) > _SETTLED)
    step = max(1, len(amplification) // 120)
    return {
        "write_amplification": float(programs[last].sum() / written[last].sum()),
        "break": None if before is None else (before + 0.5) * each,
        "hardest_at": (int(np.argmax(smoothed(effort, _HARDEST_OVER))) + 0.5) * each,
        "settled_from": float(off[-1] + 1) * each if len(off) else 0.0,
        "mib_s": None if mib_s is None else float(1 / np.mean(1 / mib_s[last])),
        "mib_s_before": None if mib_s is None or not before else float(np.median(mib_s[:before])),
        "mib_s_lowest": None if mib_s is None else float(mib_s.min()),
        "series_at": [float((i + step / 2) * each) for i in range(0, len(amplification), step)],
        "series": [
            float(np.mean(amplification[i : i + step])) for i in range(0, len(amplification), step)
        ],
    }


def steady_part(count: int) -> slice:
    """The last quarter of so many windows, less the last per cent of all."""
    return slice(round(0.75 * count), max(round(0.99 * count), round(0.75 * count) + 1))


def smoothed(values: Floats, over: int) -> Floats:
    """Means over so many windows (odd) around each; fewer at both ends."""
    ones = np.convolve(np.ones(len(values)), np.ones(over), "same")
    return np.asarray(np.convolve(values, np.ones(over), "same") / ones)


def first_departure(amplification: Floats) -> int | None:
    """The first window in which write amplification is above that of the first ones; None if there is none.

    The very first window may differ: its last requests are in flight when it ends.
    """
    base = float(np.median(amplification[: max(3, len(amplification) // 100)]))
    above = np.flatnonzero(amplification[1:] > base * (1 + _DEPARTS))
    return int(above[0]) + 1 if len(above) else None


def filled(drive: str, text: str, used: float, *, pages: int | None = None) -> dict[str, Any]:
    """The share of superblocks that are still erased after the fill in order."""
    run = (
        drive_of(text, pages=pages, used=used)
        .precondition("sequential")
        .play("uniform", requests=1)
    )
    valid = run.valid_per_block
    return {"drive": drive, "used": used, "free": float((valid == 0).mean())}


def zoned(
    drive: str,
    text: str,
    load: str,
    active: int,
    zone_gib: float,
    capacity_gib: float,
    capacities: float,
    *,
    pages: int | None = None,
    rows: int | None = None,
    seed: int = 1,
) -> dict[str, Any]:
    """Zones written side by side on a drive that was filled in order (P3); figures over 60 to 99 % of the run.

    Sizes are those of the real drive, of `capacity_gib`, and are scaled with the model's. A write of 512 KiB takes a
    page at least.
    """
    ssd = drive_of(text, pages=pages, rows=rows)
    per_gib = pages_of(ssd) / capacity_gib
    piece = max(1, round(PIECE_GIB * per_gib))
    zone = round(zone_gib * per_gib / piece) * piece
    writes = round(capacities * pages_of(ssd) / piece)
    requests = zone_like(pages_of(ssd), zone, active, piece, writes, seed=seed)
    page, timed = page_bytes(ssd), has_time(ssd)
    with as_trace(requests, page) as trace:
        windows = _played(ssd, trace, len(requests), timed)
    programs, written = (windows[name].to_numpy() for name in ("programs", "pages_written"))

    def between(start: float, end: float) -> float:
        part = slice(round(start * len(written)), round(end * len(written)))
        return float(programs[part].sum() / written[part].sum())

    row = {"drive": drive, "load": load, "seed": seed, "piece": piece}
    return row | {
        "write_amplification": between(0.6, 0.99),
        "quarters": [between(start, start + 0.25) for start in (0.0, 0.25, 0.5, 0.75)],
        "mib_s": _rate(windows, 0.6, 0.99, page) if timed else None,
    }


def _played(ssd: Any, source: Source | Trace, requests: int, timed: bool) -> Any:
    window = max(1, requests // 400)
    settings: dict[str, Any] = {"depth": 1} if timed else {}
    run = ssd.precondition("sequential").play(source, window=f"requests={window}", **settings)
    return run.windows


def _rate(windows: Any, start: float, end: float, page: int) -> float:
    ends = windows["time_end_ns"].to_numpy().astype(np.float64)
    written: Sequence[int] = windows["pages_written"].to_numpy()
    first, last = round(start * len(ends)), round(end * len(ends))
    return float(
        sum(written[first:last]) * page / 2**20 / ((ends[last - 1] - ends[first - 1]) / 1e9)
    )
