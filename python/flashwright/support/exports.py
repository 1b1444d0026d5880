"""Addresses of exports of NBD servers, and of subsystems of NVMe/TCP."""

from __future__ import annotations

__all__ = ["TARGET_HELP", "is_export"]

TARGET_HELP = (
    "A block device or a file; an NBD export, nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH; an NVMe/TCP "
    "subsystem, nvme+tcp://HOST:PORT/NQN; or sim:DEVICE, a bundled drive or a TOML file."
)
"""What can be under test, for the help of the commands that take it."""


def is_export(target: str) -> bool:
    """Whether a device under test is an export of an NBD server, or a subsystem of NVMe/TCP.

    Examples
    --------
    >>> is_export("nbd://localhost/"), is_export("nbd+unix:///?socket=s"), is_export("/dev/nbd0")
    (True, True, False)
    >>> is_export("nvme+tcp://localhost/nqn.2014-08.org.example:disk")
    True
    """
    scheme, separator, _ = target.partition("://")
    return bool(separator) and (scheme.startswith("nbd") or scheme == "nvme+tcp")
