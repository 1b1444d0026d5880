"""The interface of a probe: what it is given and what it returns.

A probe is a pattern of requests and a rule that decides by their times. It sees the target as a block device and
nothing of its inside: nothing in this package imports the simulator.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol, TypeVar

import numpy as np

from flashwright.drive.findings import Finding
from flashwright.errors import WorkloadError
from flashwright.target.target import FILL_BYTES, Target

__all__ = [
    "UNTESTED",
    "Context",
    "Cost",
    "Mode",
    "Probe",
    "chosen",
    "kib",
    "of_the_whole",
    "reads_alone",
]

Mode = Literal["quick", "full"]

UNTESTED = 0.85
"""The most that a rule may claim where no arm tells apart what else would look the same."""


@dataclass(frozen=True)
class Cost:
    """What a probe will ask of a drive.

    Attributes
    ----------
    bytes_read, bytes_written : int
        About how much.
    requests : int
        About how many, flushes included.
    seconds_max : float or None
        It ends by itself after about so long on the drive's clock; None where only what it asks ends it.
    """

    bytes_read: int = 0
    bytes_written: int = 0
    requests: int = 0
    seconds_max: float | None = None


@dataclass
class Context:
    """What a probe works with.

    Attributes
    ----------
    target : Target
        The drive, purged. Every probe may purge it again and write all of it.
    mode : {"quick", "full"}
        Half an hour of the drive's own time at most, or eight hours.
    seed : int
        Random seed; each probe draws from its own stream.
    known : mapping of str to Finding
        What earlier probes found.
    progress : callable
        Told the share of the probe that is done, 0 to 1.
    """

    target: Target
    mode: Mode = "full"
    seed: int = 1
    known: Mapping[str, Finding] = field(default_factory=dict)
    progress: Callable[[float], None] = lambda share: None
    kept: dict[str, Finding] = field(default_factory=dict)
    """What the probe has found already, should its time run out (:meth:`keep`)."""

    def keep(self, *findings: Finding) -> None:
        """Findings that stay, even if the drive's time runs out before the others are there.

        Parameters
        ----------
        *findings : Finding
            As the probe would give them in the end.
        """
        self.kept |= {finding.parameter: finding for finding in findings}

    def rng(self, name: str) -> np.random.Generator:
        """A seeded stream of random numbers for `name`, independent of all others."""
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])

    def size(self, parameter: str) -> int | None:
        """A size that was found earlier, bytes; None if it was not."""
        finding = self.known.get(parameter)
        if finding is None or finding.verdict != "found" or isinstance(finding.value, str):
            return None
        return None if finding.value is None else int(finding.value)

    @property
    def is_page_mapped(self) -> bool:
        """Whether a page map was found."""
        mapping = self.known.get("mapping")
        return mapping is not None and mapping.verdict == "found" and mapping.value == "page"

    def found_or_open(self, parameter: str) -> bool:
        """Whether something was asked for and not found absent."""
        finding = self.known.get(parameter)
        return finding is not None and finding.verdict != "absent"

    def fill(self, end_bytes: int, size_bytes: int = FILL_BYTES) -> None:
        """Write the start of the target in order; where reads alone are allowed, take what lies there.

        Parameters
        ----------
        end_bytes : int
            How much.
        size_bytes : int, optional
            Of each write.
        """
        if not self.target.read_only:
            self.target.fill(size_bytes=size_bytes, end_bytes=end_bytes)

    def up(self, size_bytes: float) -> int:
        """The size, rounded up to whole blocks of the target."""
        block = self.target.block_bytes
        return -(-int(size_bytes) // block) * block

    def down(self, size_bytes: float) -> int:
        """The size, rounded down to whole blocks of the target, one at least."""
        block = self.target.block_bytes
        return max(int(size_bytes) // block, 1) * block


class Probe(Protocol):
    """A question to a drive. Each is a file or a package of ``probing.probes``, and a line in its list.

    A probe that finds something without a write says so with ``READS_ALONE = True`` (see :func:`reads_alone`); one with
    parameters that cannot be found on a part of a drive names them in ``OF_THE_WHOLE`` (see :func:`of_the_whole`).
    """

    NAME: ClassVar[str]
    """As in ``probe --only``."""
    ABOUT: ClassVar[str]
    """What it asks and how, with the source, in a sentence or two."""
    PARAMETERS: ClassVar[tuple[str, ...]]
    """What its findings are about."""

    def cost(self, context: Context) -> Cost:
        """About what it will ask of the drive; known before anything is asked."""
        ...

    def run(self, context: Context) -> list[Finding]:
        """Ask, and decide; a finding for each of `PARAMETERS`."""
        ...


def reads_alone(probe: Probe) -> bool:
    """Whether a probe can find something without a write."""
    return bool(getattr(probe, "READS_ALONE", False))


def of_the_whole(probe: Probe) -> tuple[str, ...]:
    """Those parameters of a probe that cannot be found on a part of a drive."""
    return tuple(getattr(probe, "OF_THE_WHOLE", ()))


class Named(Protocol):
    """An entry of a list that the command line names."""

    NAME: ClassVar[str]
    """As in ``--only``."""


_N = TypeVar("_N", bound=Named)


def chosen(listed: Sequence[_N], names: Iterable[str], hint: str) -> list[_N]:
    """Those of these names, in the order of the list; all of them without names.

    Parameters
    ----------
    listed : sequence
        Probes, or experiments.
    names : iterable of str
        Which.
    hint : str
        What to try if there is none of a name.

    Raises
    ------
    WorkloadError
        If there is none of a name.
    """
    wanted, known = list(names), [each.NAME for each in listed]
    for name in wanted:
        if name not in known:
            raise WorkloadError(
                f"only: found {name!r}, expected one of {', '.join(known)}",
                hint,
                parameters=["only"],
            )
    return [each for each in listed if not wanted or each.NAME in wanted]


def kib(size_bytes: float) -> str:
    """A size as text, in KiB or MiB; a large one that is round in neither in GiB.

    Examples
    --------
    >>> kib(16384), kib(261120), kib(4 << 20), kib(512), kib(5654712320)
    ('16 KiB', '255 KiB', '4 MiB', '0.5 KiB', '5.266 GiB')
    """
    if size_bytes >= 1 << 20 and size_bytes % (1 << 20) == 0:
        return f"{int(size_bytes) >> 20} MiB"
    if size_bytes >= 1 << 30:
        return f"{size_bytes / (1 << 30):.4g} GiB"
    return f"{size_bytes / 1024:.6g} KiB"
