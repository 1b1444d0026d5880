"""Files that Flashwright writes for itself: each says what it is and who wrote it, and a checksum covers all of it.

::

    flashwright saved-run sha256=9f86d081…      what it is, and the digest of all that follows
    {"version": "0.1.0", "code": "3c59…", …}    who wrote it, and what it belongs to
    …                                           the content

The first line stays as it is in later versions. So three things are told apart for certain: a damaged file, one of
another version of Flashwright, and one that belongs to another drive or trace. Recorded traces (``.fwt``) have
checksums of their own, since they are read in chunks.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashwright.errors import SavedStateError
from flashwright.support.core import _core
from flashwright.support.files import reason

__all__ = ["DamagedError", "Opened", "expect_code", "open_sealed", "read_sealed", "seal"]


_OTHER_VERSION = "continue with the version that wrote it, or start over with this one"
# How files began before there were checksums.
_EARLIER = {"saved-run": b"flashwright checkpoint 1\n", "probe-state": b'{"layout":'}


class DamagedError(SavedStateError):
    """A file is not what was written."""

    general_hint = "copy it again from its source, or delete it and start over"


@dataclass(frozen=True)
class Opened:
    """What was in a sealed file.

    Attributes
    ----------
    about : mapping
        Who wrote it (``version``, ``code``), and what it belongs to.
    content : bytes
        What was sealed.
    """

    about: Mapping[str, Any]
    content: bytes


def seal(kind: str, content: bytes, *, code: str = "", **about: object) -> bytes:
    """Put a checksum, and what a reader must know, before some bytes.

    Parameters
    ----------
    kind : str
        What it is, a word.
    content : bytes
        What is to be kept.
    code : str, optional
        A digest of the code that can read it.
    **about
        What it belongs to; what JSON can hold.

    Returns
    -------
    bytes
        To be written to a file.

    Examples
    --------
    >>> open_sealed("a.note", seal("note", b"hello", drive="ssd-a"), "note").content
    b'hello'
    """
    head = json.dumps({"version": _core.__version__, "code": code, **about})
    body = head.encode() + b"\n" + content
    return _first_line(kind, body) + body


def open_sealed(path: str | os.PathLike[str], whole: bytes, kind: str) -> Opened:
    """Check what :func:`seal` made.

    Parameters
    ----------
    path : path
        Where it was read, for messages.
    whole : bytes
        What was read.
    kind : str
        What it must be.

    Raises
    ------
    SavedStateError
        If it is something else.
    DamagedError
        If any byte differs from what was written.

    Examples
    --------
    >>> whole = seal("note", b"hello")
    >>> open_sealed("a.note", whole.replace(b"hello", b"hallo"), "note")
    Traceback (most recent call last):
    flashwright.support.sealed.DamagedError: a.note: damaged: its checksum does not match
    """
    words = kind.replace("-", " ")
    if whole.startswith(_EARLIER.get(kind, b"flashwright earlier")):
        raise SavedStateError(
            f"{os.fspath(path)}: another version: found a {words} of an earlier Flashwright, "
            f"expected one of Flashwright {_core.__version__}",
            _OTHER_VERSION,
        )
    line, newline, body = whole.partition(b"\n")
    if not line.startswith(f"flashwright {kind} sha256=".encode()) or not newline:
        problem = (
            "is empty" if not whole else f"is no {words} of Flashwright, or damaged at its start"
        )
        raise SavedStateError(f"{os.fspath(path)}: {problem}", DamagedError.general_hint)
    if line + newline != _first_line(kind, body):
        raise DamagedError(f"{os.fspath(path)}: damaged: its checksum does not match")
    head, _, content = body.partition(b"\n")
    return Opened(json.loads(head), content)


def read_sealed(path: Path, kind: str) -> Opened:
    """Read and check a sealed file.

    Parameters
    ----------
    path : Path
        The file.
    kind : str
        What it must be.

    Raises
    ------
    SavedStateError
        If it can't be read or is something else.
    DamagedError
        If any byte differs from what was written.
    """
    try:
        whole = path.read_bytes()
    except OSError as error:
        raise SavedStateError(f"{path}: {reason(error)}", "check the path") from None
    return open_sealed(path, whole, kind)


def expect_code(path: Path, opened: Opened, kind: str, code: str) -> None:
    """Refuse what was written by code that differs from this.

    Parameters
    ----------
    path : Path
        Where it was read.
    opened : Opened
        What was in it.
    kind : str
        What it is.
    code : str
        The digest that :func:`seal` would be given now.

    Raises
    ------
    SavedStateError
        If it is of another version.

    Examples
    --------
    >>> found = open_sealed("a.note", seal("note", b"", code="0a1b2c3d4e"), "note")
    >>> expect_code(Path("a.note"), found, "note", "0a1b2c3d4e")
    """
    version = opened.about["version"]
    if version == _core.__version__ and opened.about["code"] == code:
        return
    words = kind.replace("-", " ")
    found, wanted = f"Flashwright {version}", f"Flashwright {_core.__version__}"
    if version == _core.__version__:
        found += f" (build {opened.about['code'][:8]})"
        wanted += f" (build {code[:8]})"
    raise SavedStateError(
        f"{path}: another version: found a {words} of {found}, expected {wanted}",
        _OTHER_VERSION,
    )


def _first_line(kind: str, body: bytes) -> bytes:
    return f"flashwright {kind} sha256={hashlib.sha256(body).hexdigest()}\n".encode()
