"""The kernel's passthrough to an NVMe controller, for commands that only read.

The kernel takes a command of 64 B in a structure of 72 B (``struct nvme_passthru_cmd`` of ``linux/nvme_ioctl.h``) and
returns the drive's status. Only Identify, Get Log Page and Zone Management Receive can be sent from here, and log pages
are asked for with "retain asynchronous event", so that the drive is the same afterwards.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from flashwright.errors import FlashwrightError
from flashwright.support.files import reason

__all__ = ["ALL_NAMESPACES", "Nvme", "NvmeError", "Sender", "StatusError"]

ALL_NAMESPACES = 0xFFFFFFFF

_ADMIN = 0xC0484E41  # _IOWR('N', 0x41, struct nvme_passthru_cmd)
_IO = 0xC0484E43
_GET_LOG_PAGE, _IDENTIFY, _ZONE_RECEIVE = 0x02, 0x06, 0x7A
_RETAIN_EVENTS = 1 << 15
_TIMEOUT_MS = 10_000
_COMMAND = struct.Struct("<BBHIIIQQIIIIIIIIII")
_STATUS = 0x7FF
# Status codes with their type above them (NVM Express 2.0, figures 101 to 106).
_WORDS = {
    0x001: "it does not know the command",
    0x002: "it does not know a field of the command",
    0x00B: "it has no such namespace",
    0x109: "it has no such log page",
    0x029: "its flexible data placement is off",
}


class NvmeError(FlashwrightError):
    """A drive can't be asked, or gave no answer."""

    general_hint = "`ls /dev/nvme*` lists controllers (nvme0) and namespaces (nvme0n1)"


class StatusError(NvmeError):
    """The drive refused a command.

    Parameters
    ----------
    status : int
        Status code with its type above it.
    message, hint : str
        As of every error.
    """

    def __init__(self, status: int, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.status = status


class Sender(Protocol):
    """Sends a command and returns what it reads, or raises :class:`NvmeError`; tests have one without a drive."""

    def __call__(
        self,
        opcode: int,
        length: int,
        *,
        nsid: int = 0,
        cdw: tuple[int, ...] = (),
        io: bool = False,
    ) -> bytes:
        """Send a command that reads `length` bytes; `cdw` are its dwords from 10 on."""
        ...


class Nvme:
    """An NVMe controller, open for questions.

    Parameters
    ----------
    path : str or path
        A controller (``/dev/nvme0``) or a namespace (``/dev/nvme0n1``), of which the controller is asked.
    sender : Sender, optional
        What sends commands instead of the kernel.

    Attributes
    ----------
    path : str
        As given.
    nsid : int or None
        Of the namespace that was named; None for a controller.

    Raises
    ------
    NvmeError
        If it is no NVMe device, or can't be opened.
    """

    def __init__(self, path: str | os.PathLike[str], *, sender: Sender | None = None) -> None:
        self.path = os.fspath(path)
        self.nsid: int | None = None
        self._fd: int | None = None
        self._send: Sender = sender or self._ioctl
        if sender is None:
            self._fd = _opened(self.path)
            if Path(os.path.realpath(self.path)).name.count("n") > 1:
                self.nsid = fcntl.ioctl(self._fd, _ID)

    def __enter__(self) -> Nvme:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the device."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def identify(self, kind: int, *, nsid: int = 0, command_set: int = 0) -> bytes:
        """An Identify data structure of 4,096 bytes.

        Parameters
        ----------
        kind : int
            CNS: 0 namespace, 1 controller, 2 list of active namespaces, 5 namespace of a command set.
        nsid : int, optional
            The namespace.
        command_set : int, optional
            CSI: 0 blocks, 2 zones.

        Raises
        ------
        NvmeError
            If there is no answer; :class:`StatusError` if the drive refuses.
        """
        return self._send(_IDENTIFY, 4096, nsid=nsid, cdw=(kind, command_set << 24))

    def log(
        self, page: int, length: int, *, nsid: int = ALL_NAMESPACES, specific: int = 0
    ) -> bytes:
        """The start of a log page.

        Parameters
        ----------
        page : int
            Log page identifier.
        length : int
            Bytes, whole dwords.
        nsid : int, optional
            The namespace; by default the whole controller.
        specific : int, optional
            Log specific identifier, such as an endurance group.

        Raises
        ------
        NvmeError
            If there is no answer; :class:`StatusError` if the drive refuses.
        """
        dwords = length // 4 - 1
        cdw10 = page | _RETAIN_EVENTS | (dwords & 0xFFFF) << 16
        return self._send(
            _GET_LOG_PAGE, length, nsid=nsid, cdw=(cdw10, dwords >> 16 | specific << 16)
        )

    def zones(self, nsid: int, first_block: int, length: int) -> bytes:
        """A report of zones from a block on: Zone Management Receive, Report Zones, all states, partial.

        Parameters
        ----------
        nsid : int
            The zoned namespace.
        first_block : int
            In its logical blocks.
        length : int
            Bytes, whole dwords.

        Raises
        ------
        NvmeError
            If there is no answer; :class:`StatusError` if the drive refuses.
        """
        cdw = (first_block & 0xFFFFFFFF, first_block >> 32, length // 4 - 1, 1 << 16)
        return self._send(_ZONE_RECEIVE, length, nsid=nsid, cdw=cdw, io=True)

    def _ioctl(
        self,
        opcode: int,
        length: int,
        *,
        nsid: int = 0,
        cdw: tuple[int, ...] = (),
        io: bool = False,
    ) -> bytes:
        allowed = (_ZONE_RECEIVE,) if io else (_GET_LOG_PAGE, _IDENTIFY)
        assert opcode in allowed, "no command that could change a drive is sent from here"
        if self._fd is None:
            raise NvmeError(f"{self.path}: found it closed, expected it open", "")
        data = ctypes.create_string_buffer(length)
        dwords = (*cdw, *(0,) * (6 - len(cdw)))
        command = bytearray(
            _COMMAND.pack(
                opcode,
                0,
                0,
                nsid,
                0,
                0,
                0,
                ctypes.addressof(data),
                0,
                length,
                *dwords,
                _TIMEOUT_MS,
                0,
            )
        )
        try:
            status = fcntl.ioctl(self._fd, _IO if io else _ADMIN, command)
        except OSError as error:
            raise _no_answer(self.path, error) from None
        if status:
            code = status & _STATUS
            what = _WORDS.get(code, "NVM Express 2.0, section 3.3.3.2.1, says what it means")
            raise StatusError(code, f"{self.path}: status {code:#05x} from the drive: {what}", "")
        return data.raw


_ID = 0x4E40  # _IO('N', 0x40)
_ERRNO: dict[int, Callable[[], tuple[str, str]]] = {
    errno.EACCES: lambda: (
        "the kernel refuses the question",
        "log pages need root (CAP_SYS_ADMIN)",
    ),
    errno.EPERM: lambda: ("the kernel refuses the question", "log pages need root (CAP_SYS_ADMIN)"),
    errno.ENOTTY: lambda: ("found no NVMe device", "SATA drives: `smartctl -j -a DEVICE`"),
    errno.ENODEV: lambda: ("the drive is gone", "`dmesg` may say why: a reset, or it was removed"),
    errno.ENXIO: lambda: ("the drive is gone", "`dmesg` may say why: a reset, or it was removed"),
    errno.EIO: lambda: ("the drive gave no answer", "`dmesg` may say why: a reset, or a time-out"),
    errno.ETIMEDOUT: lambda: ("the drive gave no answer in 10 s", "`dmesg` may say why"),
    errno.EINTR: lambda: (
        "the drive gave no answer",
        "`dmesg` may say why: a reset, or a time-out",
    ),
}


def _no_answer(path: str, error: OSError) -> NvmeError:
    known = _ERRNO.get(error.errno or 0)
    what, hint = known() if known else (reason(error), "")
    return NvmeError(f"{path}: {what}", hint)


def _opened(path: str) -> int:
    """A descriptor for reads. Only NVMe devices are opened: opening others may have effects."""
    name = Path(os.path.realpath(path)).name
    try:
        kind = os.stat(path).st_mode
    except OSError as error:
        raise NvmeError(f"{path}: {reason(error)}") from None
    if not re.fullmatch(r"nvme\d+(n\d+)?(p\d+)?|ng\d+n\d+", name) or not (
        stat.S_ISCHR(kind) or stat.S_ISBLK(kind)
    ):
        raise NvmeError(f"{path}: found no NVMe device, expected one such as /dev/nvme0")
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM):
            raise NvmeError(
                f"{path}: permission denied", "run it as root, or get read access to the device"
            ) from None
        raise _no_answer(path, error) from None
