"""What the authors' release of FlashSim counts, and the same requests on the drive ``dftl-release``.

The release plays a trace twice: first every request as a write, then as it is, and only that counts.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from flashwright import Ssd, workloads

from .naive_dftl import ByNumber, ByRecency, NaiveDftl
from .naive_dftl import Counts as DftlCounts
from .naive_fast import Counts as FastCounts
from .naive_fast import NaiveFast
from .play import requests_of, written_once

# The first 10,000 of 322,874 requests of application 9 of Financial1, its sectors numbered in order of address. It is
# what is in the folder of traces of what the release calls its trace.
HEAD = "financial1-asu9-first10k.disksim.zst"

# What the release's code counts on that head.
COUNTED = {
    "page": {"reads": 516, "programs": 157_954, "copies": 0, "erases": 0},
    "dftl": {
        "reads": 297_589,
        "programs": 306_454,
        "copies": 0,
        "erases": 1_040,
        "hits": 9_897,
        "evictions": 148_573,
        "dirty_evictions": 148_500,
    },
    "fast": {
        "reads": 516,
        "programs": 157_954,
        "copies": 1_299_655,
        "erases": 59_751,
        "switches": 417,
        "partials": 1_858,
        "fulls": 56_327,
    },
}

REQUESTS = 322_874

# The outputs that the authors published beside the code, of the whole trace: pages read and programmed (those of the
# table included), copied by cleaning, erases, and the mean response.
PUBLISHED = {
    "page": {
        "reads": 75_294,
        "programs": 631_627,
        "copies": 12_691,
        "erases": 10_066,
        "response_ms": 0.429880,
        "access_ms": 0.258183,
    },
    "dftl": {
        "reads": 592_750,
        "programs": 889_644,
        "copies": 28_953,
        "erases": 14_353,
        "response_ms": 0.609340,
        "access_ms": 0.418397,
    },
    "fast": {
        "reads": 75_294,
        "programs": 631_627,
        "copies": 1_586_469,
        "erases": 150_902,
        "response_ms": 3.189379,
        "access_ms": 1.566603,
    },
}

LARGER, SMALLER = 6_552, 1_640
"""Entries of the two lists."""
BLOCKS, LOGS, PER_BLOCK = 8_448, 256, 64
PER_PAGE, TABLE = 512, 1_024
"""Entries in a translation page, and translation pages of 1 GiB."""


def release_drive(scheme: str) -> Ssd:
    """The bundled drive with a scheme; FAST has one block more, into which it merges."""
    settings: dict[str, object] = {"ftl.scheme": scheme}
    if scheme == "fast":
        settings["geometry.blocks-per-plane"] = BLOCKS + 1
    return Ssd.named("dftl-release").with_(settings).precondition("empty")


def head(path: str) -> dict[str, Any]:
    """The requests of the head, as :func:`requests_of` has them."""
    trace = workloads.trace(path, format="disksim")
    return requests_of(release_drive("page").play(trace, seed=1, keep_requests=True))


def served(path: str, scheme: str) -> dict[str, Any]:
    """What the drive counts."""
    played = head(path)
    with tempfile.TemporaryDirectory() as scratch:
        source = written_once(played, Path(scratch) / "twice.mqsim")
        trace = workloads.trace(**source)
        run = release_drive(scheme).play(trace, seed=1, warmup=len(played["lpn"]))
    j = run.json
    reads, programs = (j["flash"][kind] for kind in ("reads", "programs"))
    cache, merges = j["mapping_cache"], j["merges"]
    copies = programs["merge"] + programs["gc"]
    return {
        "scheme": scheme,
        "reads": reads["total"] - reads["merge"] - reads["gc"],
        "programs": programs["total"] - copies,
        "copies": copies,
        "erases": j["flash"]["erases"]["total"],
        **{name: cache[name] for name in ("hits", "evictions", "dirty_evictions")},
        **{f"{kind}s": merges[kind] for kind in ("partial", "full")},
        "switches": merges["switch"],
        "response_ms": j["response_time_ns"]["all"]["mean"] / 1e6,
    }


def dftl_in_python(path: str, order: str, kept: int) -> dict[str, Any]:
    """What DFTL's twin counts with the lists in an order, ``number`` or ``recency``."""
    lists = {"number": ByNumber, "recency": ByRecency}[order](LARGER, SMALLER)
    dftl = NaiveDftl(lists, BLOCKS, PER_BLOCK, PER_PAGE, TABLE, kept)
    played = head(path)
    rows = list(zip(*(played[c].tolist() for c in ("lpn", "pages", "read")), strict=True))
    for twice in (False, True):
        dftl.counts = DftlCounts()
        for lpn, pages, read in rows:
            for page in range(lpn, lpn + pages):
                dftl.serve(page, bool(twice and read))
    return {"order": order} | vars(dftl.counts)


def fast_in_python(path: str, missing_copy: bool) -> dict[str, Any]:
    """What FAST's twin counts, with the copy that the release leaves out or without it."""
    fast = NaiveFast(LOGS, PER_BLOCK, missing_copy=missing_copy)
    played = head(path)
    rows = list(zip(*(played[c].tolist() for c in ("lpn", "pages", "read")), strict=True))
    for twice in (False, True):
        fast.counts = FastCounts()
        for lpn, pages, read in rows:
            if not (twice and read):
                for page in range(lpn, lpn + pages):
                    fast.write(page)
    counts = fast.counts
    blocks = counts.blocks_of_reclaims
    return {
        "missing_copy": missing_copy,
        **{name: vars(counts)[name] for name in ("switches", "partials", "fulls")},
        **{name: vars(counts)[name] for name in ("copies", "erases", "distinct_blocks")},
        "reclaims": counts.reclaims,
        "blocks_of_reclaims": [blocks.count(n) for n in range(PER_BLOCK + 1)],
        "lost": fast.unreadable(),
        "written": len(fast.newest),
    }
