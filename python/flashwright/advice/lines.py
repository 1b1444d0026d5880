"""Advice for the host of a drive, as lines, settings and a partition."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flashwright.errors import ConfigError
from flashwright.twin.profile import Profile

__all__ = ["BlockDevice", "HostAdvice", "Line", "Partition"]


@dataclass(frozen=True)
class BlockDevice:
    """A disk of Linux by its name.

    Attributes
    ----------
    path : str
        Such as ``/dev/sdb``.
    """

    path: str

    @classmethod
    def parse(cls, text: str) -> BlockDevice:
        """A disk as the command line takes it; a link, such as one by serial number, stands for what it points to.

        Raises
        ------
        ConfigError
            If it is no name of a device.

        Examples
        --------
        >>> BlockDevice.parse("/dev/nvme9n1").partition
        '/dev/nvme9n1p1'
        """
        path = os.path.realpath(text) if Path(text).is_symlink() else text
        if not re.fullmatch(r"/dev/[A-Za-z0-9][A-Za-z0-9._-]*", path):
            raise ConfigError(
                f"device: found {text!r}, expected the name of a disk such as /dev/sdb",
                "`lsblk --nodeps` lists the disks",
                parameters=["device"],
            )
        return cls(path)

    @property
    def kernel_name(self) -> str:
        """As below ``/sys/block``."""
        return self.path.removeprefix("/dev/")

    @property
    def partition(self) -> str:
        """The path of its first partition."""
        return f"{self.path}{'p' if self.path[-1].isdigit() else ''}1"


@dataclass(frozen=True)
class Line:
    """One piece of advice, or why there is none.

    Attributes
    ----------
    topic : str
        What it is about.
    text : str
        What to do and why; or what is not known.
    given : bool
        Whether it says what to do.
    rests_on : tuple of str
        Findings, or ``"twin"``; empty for a rule of thumb that nothing measured stands behind.
    confidence : float or None
        Of the least certain of them, 0 to 1; None where nothing was measured.
    source : str
        Where what it rests on comes from: ``"probes"``, ``"the drive's description"``, ``"short runs of the model"``,
        ``"runs of the workload"`` or ``"rule of thumb"``; empty where nothing is advised.
    commands : tuple of str
        For a shell, on the machine that has the drive.
    """

    topic: str
    text: str
    given: bool = True
    rests_on: tuple[str, ...] = ()
    confidence: float | None = None
    source: str = ""
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Partition:
    """Where a partition begins and ends.

    Attributes
    ----------
    start_bytes, end_bytes : int
        The end is the first byte behind it; both are multiples of `grain_bytes`.
    grain_bytes : int
        What it is aligned to.
    reserved_bytes : int
        What lies behind it that the host does not use, the table's copy included.
    """

    start_bytes: int
    end_bytes: int
    grain_bytes: int
    reserved_bytes: int


@dataclass(frozen=True)
class HostAdvice:
    """What follows from a profile for the drive's host.

    Attributes
    ----------
    profile : Profile
        What it follows from.
    device : BlockDevice or None
        The disk that commands name; ``/dev/DEVICE`` stands there if nobody said.
    lines : tuple of Line
        The advice.
    queue : mapping of str to str
        Settings below ``/sys/block/DEVICE/queue``, in the order in which they have to be made.
    scheduler : str or None
        For ``host.scheduler``.
    request_bytes, depth : int or None
        The best request size and queue length, where they were measured.
    partition : Partition or None
        Where the first partition lies.
    mkfs : mapping of str to str
        Options of ``mkfs.ext4`` and ``mkfs.xfs``, by that name.
    """

    profile: Profile
    device: BlockDevice | None
    lines: tuple[Line, ...]
    queue: Mapping[str, str] = field(default_factory=dict)
    scheduler: str | None = None
    request_bytes: int | None = None
    depth: int | None = None
    partition: Partition | None = None
    mkfs: Mapping[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """The documented figures."""
        cut = self.partition
        return {
            "drive": self.profile.target.name,
            "block_device": None if self.device is None else self.device.path,
            "lines": [
                {
                    "topic": line.topic,
                    "text": line.text,
                    "given": line.given,
                    "rests_on": list(line.rests_on),
                    "confidence": line.confidence,
                    "source": line.source,
                    "commands": list(line.commands),
                }
                for line in self.lines
            ],
            "queue": dict(self.queue),
            "scheduler": self.scheduler,
            "host_profile": self.profile.host_profile(),
            "request_bytes": self.request_bytes,
            "depth": self.depth,
            "partition": None
            if cut is None
            else {
                "start_bytes": cut.start_bytes,
                "end_bytes": cut.end_bytes,
                "grain_bytes": cut.grain_bytes,
                "reserved_bytes": cut.reserved_bytes,
            },
            "mkfs": dict(self.mkfs),
        }
