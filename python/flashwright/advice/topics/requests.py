"""How to send requests: where they begin, how large they are, how many at once."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from flashwright.advice.lines import Line
from flashwright.advice.space import Advice
from flashwright.advice.topics.known import BEST_REQUEST, Known, rounded_up, sized

__all__ = ["Requests"]

# Hu's dissertation, sections 4.2.6 and 4.3: on three drives, larger or more requests only made them slower.
_FALLBACK_BYTES, _FALLBACK_DEPTH = 64 << 10, 8

_DEPTH_OF = re.compile(r"depth_of_(read|write)s_of_(\d+)_bytes")

# The share of the highest rate that the probe best-request goes by.
_PROBED_SHARE = 0.9

# A kind with a smaller share of the pages does not decide.
_SHARE_LEAST = 0.05


class Requests(Known):
    """Advice for whoever sends requests."""

    def alignment(self) -> Iterator[Line]:
        """Where requests begin and end."""
        topic = "alignment"
        if self.page is not None:
            yield self.line(
                topic,
                f"begin and end requests at multiples of {sized(self.page)}: a write of part of a clustered page makes "
                "the drive read and write the whole",
                "clustered-page",
            )
        elif self.verdict("clustered-page") == "absent":
            yield self.line(topic, "requests may lie anywhere", "clustered-page")
        else:
            yield self.silence(topic, "clustered-page")

    def request_size(self) -> Iterator[Line]:
        """How large requests are."""
        topic = "request size"
        whole = ""
        pages: tuple[str, ...] = ()
        best = _FALLBACK_BYTES if self.best_size is None else int(self.best_size[0])
        if self.page is not None and best % self.page:
            whole = f", {sized(best)} rounded up to whole clustered pages"
            best = rounded_up(best, self.page)
            pages = ("clustered-page",)
        if self.best_size is not None:
            yield self.line(
                topic,
                f"{sized(best)}{whole}: the size at which bandwidth is near its peak and responses are shortest",
                self.best_size[1],
                *pages,
            )
        else:
            yield self.line(
                topic,
                f"{sized(best)}{whole}, as a rule of thumb{self._why_not()}: nobody measured bandwidth over size on "
                "this drive, and that was enough for the peak of three SATA drives of 2012 (Hu 2012, section 4.2.6)",
                *pages,
            )

    def write_size(self) -> Iterator[Line]:
        """How large writes may be that the buffer acknowledges."""
        topic = "largest write"
        buffer = self.size("write-buffer")
        if buffer is not None:
            pieces, pages = self.whole_pages(buffer)
            yield self.line(
                topic,
                f"{sized(pieces)}: what fits the write buffer of {sized(buffer)} is acknowledged before flash has it",
                "write-buffer",
                *pages,
            )
        elif self.verdict("write-buffer") == "absent":
            yield self.line(topic, "any: the drive has no write buffer to fit", "write-buffer")
        else:
            yield self.silence(topic, "write-buffer")

    def queue_depth(self) -> Iterator[Line]:
        """How many requests to keep at work."""
        topic = "queue depth"
        units = self.finding("parallel-units")
        if (by_size := self.depth_by_size()) is not None:
            self.depth, why, parameter = by_size
            yield self.line(topic, f"{self.depth}: {why}", parameter)
        elif self.best_depth is not None:
            self.depth = int(self.best_depth[0])
            size = "" if self.best_size is None else f" of {sized(int(self.best_size[0]))}"
            yield self.line(
                topic,
                f"{self.depth}, for requests{size}: more at a time wait longer and bring no more bandwidth; smaller "
                "requests may need more, which this profile does not say",
                self.best_depth[1],
            )
        elif (
            units is not None and units.verdict == "found" and isinstance(units.value, int | float)
        ):
            self.depth = max(1, round(units.value))
            yield self.line(
                topic,
                f"{self.depth} at least, one for each unit that works by itself",
                "parallel-units",
            )
        else:
            yield self.line(
                topic,
                f"{_FALLBACK_DEPTH}, as a rule of thumb{self._why_not()}: nobody measured it on this drive, and three "
                "SATA drives of 2012 gained nothing from more (Hu 2012, section 4.2.6); drives of today do, so "
                "measure: `flashwright probe TARGET --only best-request`",
            )

    def _why_not(self) -> str:
        """Why short runs of a model did not tell, if they were tried."""
        finding = self.finding(BEST_REQUEST)
        return "" if finding is None or finding.verdict != "unknown" else f" ({finding.why})"

    def depth_by_size(self) -> tuple[int, str, str] | None:
        """The queue depth for the requests of the workload that was played; without one, for the smallest measured.

        Each kind that makes up a twentieth of the pages counts; the kind that needs more decides.
        """
        known: dict[tuple[str, int], int] = {}
        parameter = ""
        for name, finding in self.profile.findings.items():
            for figure, value in finding.figures.items():
                if (found := _DEPTH_OF.fullmatch(figure)) is not None:
                    known[found[1], int(found[2])] = int(value)
                    parameter = name
        if not known:
            return None
        sizes = sorted({size for _, size in known})
        mix = None if self.spare is None else _mix(self.spare)
        if mix is None:
            kinds, size = {"read", "write"}, sizes[0]
            whose = f"for random reads and writes of {sized(size)}, the smallest measured"
        else:
            kinds, mean = mix
            size = min(sizes, key=lambda each: abs(math.log(each / mean)))
            whose = f"for {' and '.join(sorted(f'{kind}s' for kind in kinds))} of {sized(round(mean))}, as played"
            if size != round(mean):
                whose += f" ({sized(size)} is the nearest size measured)"
        depth = max(known[kind, size] for kind in kinds if (kind, size) in known)
        largest = max(
            known[kind, sizes[-1]] for kind in ("read", "write") if (kind, sizes[-1]) in known
        )
        finding = self.profile.findings[parameter]
        share = finding.figures.get("share_of_peak", _PROBED_SHARE)
        why = f"{whose}: {share:.0%} of their highest rate; more wait longer".replace("%", " %")
        if mix is None and largest != depth:
            why += f". {sized(sizes[-1])} reach theirs with {largest}"
        if self.profile.mode == "described":
            why += f". {finding.why}"
        return depth, why, parameter


def _mix(spare: Advice) -> tuple[set[str], float] | None:
    """The kinds of request of the workload that was played, and their mean size in bytes; None without a run."""
    if not spare.points:
        return None
    figures = spare.points[0].result.json
    host = figures["host"]
    pages = {"read": host["pages_read"] or 0, "write": host["pages_written"] or 0}
    moved, requests = sum(pages.values()), figures["measured"]["requests"]
    if not moved or not requests or not host["bytes"]:
        return None
    kinds = {kind for kind, count in pages.items() if count >= _SHARE_LEAST * moved}
    return kinds, host["bytes"] / requests
