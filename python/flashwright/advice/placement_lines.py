"""What a Linux host does to place by handle: hints of files, jobs of fio, a rule of udev, a namespace with handles."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["HINTS", "HostLine", "lines"]

HINTS = ("SHORT", "MEDIUM", "LONG", "EXTREME")
"""Lifetimes that ``fcntl(2)`` knows, the shortest first: ``RWH_WRITE_LIFE_...``."""


@dataclass(frozen=True)
class HostLine:
    """One thing to do.

    Attributes
    ----------
    where : str
        Where it is done: fcntl, fio, udev, nvme.
    text : str
        What it does.
    commands : tuple of str
        The lines themselves.
    """

    where: str
    text: str
    commands: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """The documented form."""
        return {**asdict(self), "commands": list(self.commands)}


def lines(handles: int) -> tuple[HostLine, ...]:
    """What to do for so many groups of data.

    Parameters
    ----------
    handles : int
        Groups with a handle of their own; one more is for all else.

    Examples
    --------
    >>> for line in lines(2):
    ...     print(line.where, line.commands[0].partition(", RUN")[0])
    nvme nvme create-ns /dev/nvme0 --nsze=BLOCKS --ncap=BLOCKS --flbas=0 --nphndls=3 --phndls=0,1,2
    fcntl uint64_t life = RWH_WRITE_LIFE_SHORT; fcntl(fd, F_SET_RW_HINT, &life);  /* handle 1 */
    fio --ioengine=io_uring_cmd --cmd_type=nvme --filename=/dev/ng0n1 --fdp=1 --fdp_pli=1  # handle 1
    udev SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", ATTR{queue/max_write_streams}=="0"
    """
    numbers = range(1, handles + 1)
    hinted = min(handles, len(HINTS))
    fewer = (
        ""
        if handles <= len(HINTS)
        else f"; hints name only {len(HINTS)} of the {handles}, write streams of io_uring name all"
    )
    return (
        HostLine(
            "nvme",
            "a namespace with the handles, where the drive has placement on (feature 1Dh)",
            (
                f"nvme create-ns /dev/nvme0 --nsze=BLOCKS --ncap=BLOCKS --flbas=0 --nphndls={handles + 1} "
                f"--phndls={','.join(map(str, range(handles + 1)))}",
            ),
        ),
        HostLine(
            "fcntl",
            f"hints of files, which Linux 6.16 and later passes on as write streams{fewer}",
            tuple(
                f"uint64_t life = RWH_WRITE_LIFE_{HINTS[at]}; fcntl(fd, F_SET_RW_HINT, &life);  /* handle {at + 1} */"
                for at in range(hinted)
            ),
        ),
        HostLine(
            "fio",
            "a job for each, straight to the drive",
            tuple(
                "--ioengine=io_uring_cmd --cmd_type=nvme --filename=/dev/ng0n1 "
                f"--fdp=1 --fdp_pli={number}  # handle {number}"
                for number in numbers
            ),
        ),
        HostLine(
            "udev",
            "a rule that tells of a kernel or drive that would ignore all this",
            (
                'SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", ATTR{queue/max_write_streams}=="0", '
                'RUN+="/usr/bin/logger -t placement %k has no write streams: its data are not placed"',
            ),
        ),
    )
