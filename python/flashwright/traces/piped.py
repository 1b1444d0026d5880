"""Traces from a pipe: kept in a temporary file, because a trace may be read more than once."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

from flashwright.errors import TraceError
from flashwright.support.files import reason

__all__ = ["from_pipe", "is_from_pipe", "kept_file"]

STDIN = "-"
_NAME = "standard input"
_folder: tempfile.TemporaryDirectory[str] | None = None
_files: set[str] = set()


def from_pipe(path: str) -> tuple[str, str] | None:
    """What comes through a pipe, as a file that lasts as long as this process.

    Parameters
    ----------
    path : str
        ``-`` is standard input; also ``/dev/stdin``, a named pipe, or what the shell makes of ``<(...)``.

    Returns
    -------
    (str, str) or None
        The file, and what reports call it; None if `path` is no pipe.

    Raises
    ------
    TraceError
        If nothing came, or it can't be kept.

    Examples
    --------
    >>> from_pipe("requests.spc") is None
    True
    """
    if path != STDIN and not _is_pipe(path):
        return None
    name = _NAME if path in (STDIN, "/dev/stdin") else path
    try:
        kept = kept_file(name)
        with kept.open("wb") as target:
            if path == STDIN:
                shutil.copyfileobj(sys.stdin.buffer, target, 1 << 20)
            else:
                with open(path, "rb") as source:
                    shutil.copyfileobj(source, target, 1 << 20)
    except OSError as error:
        why = reason(error)
        raise TraceError(
            f"{name}: can't be kept in {tempfile.gettempdir()}: {why}",
            "TMPDIR names another folder for temporary files; or save the trace to a file first",
        ) from None
    if kept.stat().st_size == 0:
        raise TraceError(f"{name}: nothing came, expected a trace", "")
    return str(kept), name


def kept_file(name: str) -> Path:
    """The path of a new temporary file called as `name` is, which is gone when the process has ended.

    Raises
    ------
    OSError
        If its folder can't be made.

    Examples
    --------
    >>> kept_file("folder/requests.parquet").name
    'requests.parquet'
    """
    kept = _place() / f"{len(_files)}" / Path(name).name
    kept.parent.mkdir()
    _files.add(str(kept))
    return kept


def is_from_pipe(path: str) -> bool:
    """Whether :func:`from_pipe` made this file, so that it is gone when the process has ended.

    Examples
    --------
    >>> is_from_pipe("requests.spc")
    False
    """
    return path in _files


def _is_pipe(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    if stat.S_ISCHR(mode):
        with open(path, "rb", buffering=0) as device:
            return device.isatty()
    return stat.S_ISFIFO(mode)


def _place() -> Path:
    global _folder
    if _folder is None:
        _folder = tempfile.TemporaryDirectory(prefix="flashwright-")
        atexit.register(_folder.cleanup)
    return Path(_folder.name)
