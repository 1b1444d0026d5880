"""The paper's workloads on FAST with the fault of the authors' release, in plain Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .naive_fast import Counts, NaiveFast
from .play import EXTRA, PAGES_PER_BLOCK, SHARES, drive, requests_of

# Table 1, large blocks.
READ_MS, PROGRAM_MS, ERASE_MS = 0.1309, 0.4059, 2.0


def faulty_fast(
    workload: str,
    spec: str,
    pages: int,
    requests: int,
    *,
    extra: float = EXTRA,
    cmt: int = 0,
    missing_copy: bool = True,
) -> dict[str, Any]:
    """A workload that was written once before, as :func:`.play.compare_replayed` plays it; figures as those of a run.

    Operations are served one at a time and requests in order of arrival, as on the drive. DFTL's cache, `cmt`, is of no
    account here.
    """
    logs = math.ceil(extra * math.ceil(pages / PAGES_PER_BLOCK))
    fast = NaiveFast(logs, PAGES_PER_BLOCK, missing_copy=missing_copy)
    run = drive("page", pages).play(spec, requests=requests, seed=1, keep_requests=True)
    played = requests_of(run)
    columns = [played[c].tolist() for c in ("arrival_ns", "lpn", "pages", "read")]
    rows = list(zip(*columns, strict=True))
    for _arrival, lpn, count, _read in rows:
        for page in range(lpn, lpn + count):
            fast.write(page)
    fast.counts = counts = Counts()
    responses, free_ms = [], 0.0
    for arrival, lpn, count, read in rows:
        copies, erases = counts.copies, counts.erases
        if not read:
            for page in range(lpn, lpn + count):
                fast.write(page)
        service_ms = (
            count * (READ_MS if read else PROGRAM_MS)
            + (counts.copies - copies) * (READ_MS + PROGRAM_MS)
            + (counts.erases - erases) * ERASE_MS
        )
        free_ms = max(free_ms, arrival / 1e6) + service_ms
        responses.append(free_ms - arrival / 1e6)
    blocks = counts.blocks_of_reclaims
    return {
        "workload": workload,
        "scheme": "fast",
        "victim": "",
        "error": "",
        "requests": len(rows),
        "erases": counts.erases,
        "switch": counts.switches,
        "partial": counts.partials,
        "full": len(blocks),
        "full_by_data_blocks": [blocks.count(n) for n in range(PAGES_PER_BLOCK + 1)],
        "extra_operations": 2 * counts.copies,
        "response_ms": float(np.mean(responses)),
        "quantiles_ms": [float(x) for x in np.quantile(responses, SHARES)],
        "lost": fast.unreadable(),
        "written": len(fast.newest),
    }
