"""Addresses of exports of NBD servers."""

from __future__ import annotations

__all__ = ["is_export"]


def is_export(target: str) -> bool:
    """Whether a device under test is an export of an NBD server.

    Examples
    --------
    >>> is_export("nbd://localhost/"), is_export("nbd+unix:///?socket=s"), is_export("/dev/nbd0")
    (True, True, False)
    """
    scheme, separator, _ = target.partition("://")
    return bool(separator) and scheme.startswith("nbd")
