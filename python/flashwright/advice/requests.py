"""How to send requests: where they begin, how large they are, how many at once."""

from __future__ import annotations

import math
import re

from flashwright.advice.facts import BEST_REQUEST, Facts, rounded_up, sized
from flashwright.advice.lines import Line
from flashwright.advice.space import Advice
from flashwright.report import text

__all__ = ["alignment", "queue_depth", "request_size", "write_size"]

# Request size, bytes, where nobody measured it. Source: Hu's dissertation, sections 4.2.6 and 4.3: larger requests only
# made three drives slower.
_FALLBACK_BYTES = 64 << 10
# Queue depth, requests, where nobody measured it; from the same sections.
_FALLBACK_DEPTH = 8

_DEPTH_OF = re.compile(r"depth_of_(read|write)s_of_(\d+)_bytes")

# Share of the highest rate that the probe best-request goes by: what its findings have that do not say another.
_PROBED_SHARE = 0.9

# A kind of request with a smaller share of the pages than this does not decide the queue depth. Chosen: a few metadata
# reads must not.
_SHARE_LEAST = 0.05


def alignment(facts: Facts) -> Line:
    """Where requests begin and end."""
    topic = "alignment"
    if facts.page is not None:
        return facts.line(
            topic,
            f"begin and end requests at multiples of {sized(facts.page)}: a write of part of a clustered page makes "
            "the drive read and write the whole",
            "clustered-page",
        )
    if facts.verdict("clustered-page") == "absent":
        return facts.line(topic, "requests may lie anywhere", "clustered-page")
    return facts.silence(topic, "clustered-page")


def request_size(facts: Facts) -> Line:
    """How large requests are."""
    topic = "request size"
    whole = ""
    pages: tuple[str, ...] = ()
    best = _FALLBACK_BYTES if facts.best_size is None else int(facts.best_size[0])
    if facts.page is not None and best % facts.page:
        whole = f", {sized(best)} rounded up to whole clustered pages"
        best = rounded_up(best, facts.page)
        pages = ("clustered-page",)
    if facts.best_size is not None:
        return facts.line(
            topic,
            f"{sized(best)}{whole}: the size at which bandwidth is near its peak and responses are shortest",
            facts.best_size[1],
            *pages,
        )
    return facts.line(
        topic,
        f"{sized(best)}{whole}, as a rule of thumb{_why_not(facts)}: nobody measured bandwidth over size on "
        "this drive, and that was enough for the peak of three SATA drives of 2012 (Hu 2012, section 4.2.6)",
        *pages,
    )


def write_size(facts: Facts) -> Line:
    """How large a write may be for the buffer to acknowledge it."""
    topic = "largest write"
    buffer = facts.size("write-buffer")
    if buffer is not None:
        pieces, pages = facts.whole_pages(buffer)
        return facts.line(
            topic,
            f"{sized(pieces)}: what fits the write buffer of {sized(buffer)} is acknowledged before flash has it",
            "write-buffer",
            *pages,
        )
    if facts.verdict("write-buffer") == "absent":
        return facts.line(topic, "any: the drive has no write buffer to fit", "write-buffer")
    return facts.silence(topic, "write-buffer")


def queue_depth(facts: Facts) -> tuple[Line, int | None]:
    """How many requests to keep outstanding; and the number, unless it is a rule of thumb."""
    topic = "queue depth"
    units = facts.finding("parallel-units")
    if (by_size := _depth_by_size(facts)) is not None:
        depth, why, parameter = by_size
        return facts.line(topic, f"{depth}: {why}", parameter), depth
    if facts.best_depth is not None:
        depth = int(facts.best_depth[0])
        size = "" if facts.best_size is None else f" of {sized(int(facts.best_size[0]))}"
        line = facts.line(
            topic,
            f"{depth}, for requests{size}: more at a time wait longer and bring no more bandwidth; smaller "
            "requests may need more, which this profile does not say",
            facts.best_depth[1],
        )
        return line, depth
    if units is not None and units.verdict == "found" and isinstance(units.value, int | float):
        depth = max(1, round(units.value))
        why = f"{depth} at least, one for each unit that works by itself"
        return facts.line(topic, why, "parallel-units"), depth
    return facts.line(
        topic,
        f"{_FALLBACK_DEPTH}, as a rule of thumb{_why_not(facts)}: nobody measured it on this drive, and three "
        "SATA drives of 2012 gained nothing from more (Hu 2012, section 4.2.6); drives of today do, so "
        "measure: `flashwright probe TARGET --only best-request`",
    ), None


def _why_not(facts: Facts) -> str:
    """Why short runs of a model gave no answer, if they were tried."""
    finding = facts.finding(BEST_REQUEST)
    return "" if finding is None or finding.verdict != "unknown" else f" ({finding.why})"


def _depth_by_size(facts: Facts) -> tuple[int, str, str] | None:
    """The queue depth for the requests of the workload that was played; without one, for the smallest measured.

    Each kind that makes up a twentieth of the pages counts; the kind that needs more decides.
    """
    known: dict[tuple[str, int], int] = {}
    parameter = ""
    for name, finding in facts.profile.findings.items():
        for figure, value in finding.figures.items():
            if (found := _DEPTH_OF.fullmatch(figure)) is not None:
                known[found[1], int(found[2])] = int(value)
                parameter = name
    if not known:
        return None
    sizes = sorted({size for _, size in known})
    mix = None if facts.spare is None else _mix(facts.spare)
    if mix is None:
        kinds, size = {"read", "write"}, sizes[0]
        whose = f"for random reads and writes of {sized(size)}, the smallest measured"
    else:
        kinds, mean = mix
        size = min(sizes, key=lambda each: abs(math.log(each / mean)))
        whose = f"for {' and '.join(sorted(f'{kind}s' for kind in kinds))} of {text.size_bytes(mean)}, as played"
        if size != round(mean):
            whose += f" ({sized(size)} is the nearest size measured)"
    depth = max(known[kind, size] for kind in kinds if (kind, size) in known)
    largest = max(
        known[kind, sizes[-1]] for kind in ("read", "write") if (kind, sizes[-1]) in known
    )
    finding = facts.profile.findings[parameter]
    share = finding.figures.get("share_of_peak", _PROBED_SHARE)
    why = f"{whose}: {share:.0%} of their highest rate; more wait longer".replace("%", " %")
    if mix is None and largest != depth:
        why += f". {sized(sizes[-1])} reach theirs with {largest}"
    if facts.profile.mode == "described":
        why += f". {finding.why}"
    return depth, why, parameter


def _mix(spare: Advice) -> tuple[set[str], float] | None:
    """The kinds of request of the workload that was played, and their mean size in bytes; None without a run."""
    if not spare.points:
        return None
    figures = spare.points[0].result.json
    host = figures["host"]
    pages = {"read": host["pages_read"] or 0, "write": host["pages_written"] or 0}
    moved = sum(pages.values())
    # Trims and flushes move nothing.
    requests = (figures["requests"]["read"] or 0) + (figures["requests"]["write"] or 0)
    if not moved or not requests or not host["bytes"]:
        return None
    kinds = {kind for kind, count in pages.items() if count >= _SHARE_LEAST * moved}
    return kinds, host["bytes"] / requests
