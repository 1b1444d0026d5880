"""What is known of a drive whose host is advised, and how a line of advice names what it rests on."""

from __future__ import annotations

from dataclasses import dataclass

from flashwright.advice import short_runs
from flashwright.advice.lines import BlockDevice, Line
from flashwright.advice.space import Advice
from flashwright.drive.findings import Finding
from flashwright.drive.quantities import as_text
from flashwright.twin import description
from flashwright.twin.profile import Profile

__all__ = [
    "BEST_DEPTH",
    "BEST_REQUEST",
    "BEST_SIZE",
    "FS_BLOCK_BYTES",
    "Facts",
    "rounded_up",
    "sized",
]

# Blocks of ext4 and XFS, and pages of memory, on nearly all machines; bytes.
FS_BLOCK_BYTES = 4096

BEST_REQUEST = "best-request"
"""The finding that short runs of a model give; all others follow from its description."""

BEST_SIZE = "best_size_bytes"
"""A figure of any finding: the request size of the least response time at the peak's bandwidth."""
BEST_DEPTH = "best_depth_requests"
"""The queue depth of the same."""


@dataclass(frozen=True)
class Facts:
    """What is known of a drive.

    Attributes
    ----------
    profile : Profile
        Its findings.
    spare : Advice or None
        What its twin's utilisation costs a workload.
    device : BlockDevice or None
        The disk that commands name.
    """

    profile: Profile
    spare: Advice | None
    device: BlockDevice | None

    @property
    def page(self) -> int | None:
        """The clustered page, bytes."""
        return self.size("clustered-page")

    @property
    def best_size(self) -> tuple[float, str] | None:
        """The best request size, bytes, and the finding that has it."""
        return self.figure(BEST_SIZE)

    @property
    def best_depth(self) -> tuple[float, str] | None:
        """The best queue depth, and the finding that has it."""
        return self.figure(BEST_DEPTH)

    def finding(self, parameter: str) -> Finding | None:
        """The finding on a parameter, if it was looked for."""
        return self.profile.findings.get(parameter)

    def verdict(self, parameter: str) -> str:
        """Whether a parameter was found; unknown if nobody looked."""
        finding = self.finding(parameter)
        return "unknown" if finding is None else finding.verdict

    def size(self, parameter: str) -> int | None:
        """A size that was found, bytes."""
        finding = self.finding(parameter)
        if finding is None or finding.verdict != "found" or finding.unit != "B":
            return None
        return int(finding.value) if isinstance(finding.value, int | float) else None

    def figure(self, name: str) -> tuple[float, str] | None:
        """A figure that some finding has, and which."""
        for parameter, finding in self.profile.findings.items():
            if (value := finding.figures.get(name)) is not None and value >= 1:
                return value, parameter
        return None

    def line(self, topic: str, text: str, *rests_on: str, commands: tuple[str, ...] = ()) -> Line:
        """A line of advice, as certain as the least certain finding that it rests on."""
        certain = [
            finding.confidence
            for name in rests_on
            if (finding := self.finding(name)) is not None and self.profile.mode != "described"
        ]
        source = self._source(rests_on)
        return Line(topic, text, True, rests_on, min(certain, default=None), source, commands)

    def _source(self, rests_on: tuple[str, ...]) -> str:
        """Where the findings that a line rests on come from."""
        if not rests_on:
            return "rule of thumb"
        if self.profile.mode != "described":
            return "probes"
        played = [name for name in rests_on if name == BEST_REQUEST]
        sources = [description.SOURCE] if len(played) < len(rests_on) else []
        return " and ".join([*sources, *([short_runs.SOURCE] if played else [])])

    def silence(self, topic: str, *parameters: str) -> Line:
        """A line that says why nothing is advised: what is not known."""
        reasons = []
        for parameter in parameters:
            finding = self.finding(parameter)
            why = "was not looked for" if finding is None else f"is unknown ({finding.why})"
            reasons.append(f"{parameter} {why.replace(' ()', '')}")
        return Line(topic, f"no advice: {' and '.join(reasons)}", False, parameters)

    def whole_pages(self, size_bytes: int) -> tuple[int, tuple[str, ...]]:
        """The clustered pages that fit, one at least, as PASA cuts them (Kim et al., section 5.2)."""
        if self.page is None:
            return size_bytes, ()
        return max(self.page, size_bytes // self.page * self.page), ("clustered-page",)

    @property
    def disk(self) -> BlockDevice:
        """The disk that commands name."""
        return BlockDevice("/dev/DEVICE") if self.device is None else self.device


def rounded_up(size_bytes: int, grain_bytes: int) -> int:
    """The next multiple of the grain."""
    return -(-size_bytes // grain_bytes) * grain_bytes


def sized(size_bytes: int) -> str:
    """A size as people write it."""
    return str(as_text(size_bytes, "B"))
