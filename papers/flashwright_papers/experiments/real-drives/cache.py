"""The fill of an erased drive, which shows an SLC cache (protocol P7)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flashwright import Ssd
from flashwright.traces.blktrace import WRITE

from .models import page_bytes, pages_of
from .requests import Requests, as_trace

Floats = npt.NDArray[np.float64]

BLOCK = 1 << 20
WINDOWS = 200
# A level ends where the rate has changed by so much and stays there for a few windows.
_CHANGES = 0.25
_STAYS = 3


def fill(drive: str, text: str, *, seed: int = 1) -> dict[str, Any]:
    """One thread writes blocks of 1 MiB in order until the drive is full; the reviews write 1 MB.

    Returns
    -------
    dict
        ``levels``: rate in GB/s and where each ends, in bytes and as a share of the drive. ``mean_gb_s``: of the whole
        drive.
    """
    ssd = Ssd.from_text(text)
    size = pages_of(ssd) * page_bytes(ssd)
    requests = size // BLOCK
    window = max(1, requests // WINDOWS)
    run = ssd.precondition("empty").play(
        "sequential:size=1MiB", requests=requests, depth=1, window=f"requests={window}", seed=seed
    )
    ends = run.windows["time_end_ns"].to_numpy().astype(np.float64) / 1e9
    written = run.windows["requests"].to_numpy() * BLOCK
    rates = written / np.diff(ends, prepend=0.0) / 1e9
    starts = levels(rates)
    done = np.concatenate(([0], np.cumsum(written)))
    times = np.concatenate(([0.0], ends))
    found = [
        {
            "gb_s": float((done[end] - done[start]) / (times[end] - times[start]) / 1e9),
            "until_bytes": int(done[end]),
            "until_share": float(done[end] / size),
        }
        for start, end in zip(starts, [*starts[1:], len(rates)], strict=True)
    ]
    return {"drive": drive, "levels": found, "mean_gb_s": float(done[-1] / times[-1] / 1e9)}


def paused(
    drive: str, text: str, share: float, pause_s: float, share_after: float, *, seed: int = 1
) -> dict[str, Any]:
    """The fill, with a pause on the way.

    Parameters
    ----------
    share, share_after : float
        Shares of the drive that are written before and after the pause.
    pause_s : float
        How long, in seconds of the model, which folds as much less data as it is smaller.

    Returns
    -------
    dict
        ``gb_s_before``: over the last tenth before the pause. ``gb_s_after``: over the second half of what follows it;
        the first begins in the normal block that is open.
    """
    ssd = Ssd.from_text(text).with_({"host.queue-depth": 1})
    blocks = pages_of(ssd) * page_bytes(ssd) // BLOCK
    before, after = round(share * blocks), round(share_after * blocks)
    ends = _completions(ssd, np.arange(before), seed)
    begins = int(ends[-1]) + round(pause_s * 1e9)
    first = int(ends[before - 1 - before // 10])
    whole = _completions(ssd, np.concatenate((np.arange(before), begins + np.arange(after))), seed)
    half = int(whole[before + after // 2 - 1])
    return {
        "drive": drive,
        "gb_s_before": float(before // 10 * BLOCK / (int(ends[-1]) - first)),
        "gb_s_after": float((after - after // 2) * BLOCK / (int(whole[-1]) - half)),
    }


def _completions(ssd: Ssd, arrival_ns: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.int64]:
    """When blocks that are written in order complete, in nanoseconds."""
    pages = BLOCK // page_bytes(ssd)
    numbers = np.arange(len(arrival_ns))
    requests = Requests(
        kind=np.full(len(numbers), WRITE, np.uint8),
        first=numbers * pages,
        count=np.full(len(numbers), pages),
        arrival_ns=arrival_ns,
    )
    with as_trace(requests, page_bytes(ssd)) as trace:
        run = ssd.precondition("empty").play(trace, keep_requests=True, window="off", seed=seed)
    return np.sort(run.requests()["completion_ns"].to_numpy().astype(np.int64))


def levels(rates: Floats) -> list[int]:
    """Where levels of a rate start: the first window, and each from which on the rate is another for some windows."""
    starts = [0]
    for at in range(_STAYS, len(rates)):
        level = float(np.median(rates[starts[-1] : at]))
        ahead = rates[at : at + _STAYS]
        off = ahead / level - 1
        if at - starts[-1] >= _STAYS and (np.all(off < -_CHANGES) or np.all(off > _CHANGES)):
            starts.append(at)
    return starts
