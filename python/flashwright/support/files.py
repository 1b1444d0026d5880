"""Files that are either whole or not there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flashwright.errors import OutputError

__all__ = [
    "LeftOverWarning",
    "NotSavedWarning",
    "check_folder",
    "check_writable",
    "exists",
    "is_file",
    "is_same_file",
    "parse_toml",
    "reason",
    "remove_left_over_part",
    "write_beside",
    "write_or_warn",
    "writing",
]


class NotSavedWarning(UserWarning):
    """What would be continued later could not be saved on the way; the work goes on, and the last good file stays."""


class LeftOverWarning(UserWarning):
    """What a killed process left of a file was removed."""


def check_writable(path: Path) -> None:
    """Find out before a long run whether its output can be written, and make room: what a killed one left of it goes.

    Parameters
    ----------
    path : Path
        The file to write; it is not changed here.

    Raises
    ------
    OutputError
        If it can't.
    """
    if os.path.isdir(path):
        raise OutputError(
            f"{path}: is a folder; expected the name of a file", "give a file name within it"
        )
    if exists(path) and not os.access(path, os.W_OK):
        raise OutputError(f"{path}: permission denied")
    if _is_special(path):
        return
    path = path.resolve()
    try:
        _try_part(path.parent, path.name)
    except OSError as error:
        raise OutputError(f"{path}: can't be written: {reason(error)}") from None


def check_folder(path: Path) -> None:
    """Find out before a long run whether its output can be written to a folder, which is made if it is not there.

    Parameters
    ----------
    path : Path
        The folder to be; its parent must exist.

    Raises
    ------
    OutputError
        If it can't.
    """
    if exists(path) and not path.is_dir():
        raise OutputError(f"{path}: is a file; expected a folder", "give the name of a folder")
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: can't be created: {reason(error)}") from None
    try:
        _try_part(path, path.resolve().name)
    except OSError as error:
        raise OutputError(f"{path}: can't be written: {reason(error)}") from None


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say of what fails within the block that it is this file which can't be written.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    OutputError
        In place of an ``OSError``, in one line.

    Examples
    --------
    >>> with writing(Path("rows.csv")):
    ...     raise OSError(28, "")
    Traceback (most recent call last):
    flashwright.errors.OutputError: rows.csv: can't be written: no space left on device
    """
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: can't be written: {reason(error)}") from None


@contextlib.contextmanager
def write_beside(path: Path) -> Iterator[Path]:
    """Give the name of a file beside `path`, which takes its place once the block is left without an error.

    What is no regular file, such as a pipe or ``/dev/null``, keeps its place and gets the content; a link stays a link,
    and the file that it points to is replaced and keeps its mode. The name beside it, ``.NAME.RANDOM.partial``, can't
    be guessed and is made anew, so nobody's link is followed. While it is written it is locked; what a killed process
    left of the same file is removed, and a :class:`LeftOverWarning` names it.

    Parameters
    ----------
    path : Path
        The file to be.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with write_beside(Path(folder) / "out.txt") as part:
    ...         _ = part.write_text("done")
    ...     [(file.name, file.read_text()) for file in Path(folder).iterdir()]
    [('out.txt', 'done')]
    """
    special = _is_special(path)
    real = path.resolve()
    folder = Path(tempfile.gettempdir()) if special else real.parent
    part = None
    try:
        with writing(path):
            mode = (
                stat.S_IMODE(real.stat().st_mode) & 0o777 if not special and real.exists() else None
            )
            part, lock = _begin_part(
                folder, real.name, 0o666 if mode is None and not special else 0o600
            )
            try:
                yield part
                if special:
                    with part.open("rb") as content, path.open("wb") as target:
                        shutil.copyfileobj(content, target)
                else:
                    with part.open("rb") as content:
                        if mode is not None:
                            os.fchmod(content.fileno(), mode)
                        os.fsync(content.fileno())
                    part.replace(real)
            finally:
                os.close(lock)
    finally:
        if part is not None:
            with contextlib.suppress(OSError):
                part.unlink()


def write_or_warn(path: Path, content: bytes, what: str) -> str | None:
    """Save on the way what is still at work: where that fails, as on a full disk, a warning says so.

    Parameters
    ----------
    path : Path
        The file to be; one that is there stays until the new one is whole.
    content : bytes
        What it is to hold.
    what : str
        What is saved, as the warning names it.

    Returns
    -------
    str or None
        Why it failed.
    """
    try:
        with write_beside(path) as part:
            part.write_bytes(content)
    except OutputError as error:
        warnings.warn(NotSavedWarning(f"{what} is not saved: {error}"), stacklevel=3)
        return str(error)
    return None


def _begin_part(folder: Path, name: str, mode: int) -> tuple[Path, int]:
    """An empty file of a name that can't be guessed, and what holds its lock."""
    _remove_left_over(folder, name)
    while True:
        part = folder / f".{name}.{secrets.token_hex(8)}.partial"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            lock = os.open(part, flags, mode)
        except FileExistsError:
            continue
        # Somebody who clears up may have taken it for one that was left over, before it was locked.
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.lstat(part).st_ino == os.fstat(lock).st_ino:
                return part, lock
        os.close(lock)


def _try_part(folder: Path, name: str) -> None:
    """Make a part of a file, and remove it."""
    part, lock = _begin_part(folder, name, 0o600)
    part.unlink()
    os.close(lock)


def _remove_left_over(folder: Path, name: str) -> None:
    """Remove what killed processes left of a file, and say so: parts that nobody has locked."""
    ours = re.compile(re.escape(f".{name}.") + r"[0-9a-f]{16}\.partial", re.DOTALL)
    with contextlib.suppress(OSError):
        for found in [each.name for each in os.scandir(folder) if ours.fullmatch(each.name)]:
            with contextlib.suppress(OSError):
                remove_left_over_part(folder / found)


def remove_left_over_part(part: Path) -> None:
    """Remove a part of a file that a killed process left, and say so.

    Parameters
    ----------
    part : Path
        The part; if somebody has locked it, it is being written, and stays.

    Raises
    ------
    OSError
        If it stays, or is not there.
    """
    lock = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        size = os.fstat(lock).st_size
        part.unlink()
    finally:
        os.close(lock)
    said = f"removed {part} ({size:,} B), which a process that was killed had left"
    warnings.warn(LeftOverWarning(said), stacklevel=2)


def is_file(name: str | Path) -> bool:
    """Whether there is a file of that name; text that can name none is the name of none.

    Examples
    --------
    >>> is_file("x" * 5000)
    False
    """
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def exists(name: str | Path) -> bool:
    """Whether there is something of that name; text that can name nothing is the name of nothing.

    Examples
    --------
    >>> exists("x" * 5000), exists(".")
    (False, True)
    """
    try:
        return Path(name).exists()
    except (OSError, ValueError):
        return False


def is_same_file(one: Path, other: Path) -> bool:
    """Whether two paths name one regular file, also by links, or would once it is made.

    Parameters
    ----------
    one, other : Path
        The paths. Pipes, devices and folders are never the same: what is written to them replaces nothing.

    Examples
    --------
    >>> is_same_file(Path("a.json"), Path("./a.json")), is_same_file(Path("a"), Path("b"))
    (True, False)
    >>> is_same_file(Path("/dev/null"), Path("/dev/null"))
    False
    """
    try:
        if one.exists() and other.exists():
            return one.is_file() and one.samefile(other)
        return not one.exists() and not other.exists() and one.resolve() == other.resolve()
    except (OSError, RuntimeError, ValueError):
        # Such as a loop of links, or a NUL in a name: whoever opens it says so.
        return False


def parse_toml(text: str) -> dict[str, Any]:
    """What a text in TOML says.

    Parameters
    ----------
    text : str
        The text.

    Raises
    ------
    tomllib.TOMLDecodeError
        If it is not TOML, or nested deeper than can be read.

    Examples
    --------
    >>> parse_toml("a = " + "[" * 9999)
    Traceback (most recent call last):
    tomllib.TOMLDecodeError: nested too deeply
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deeply") from None


def _is_special(path: Path) -> bool:
    return exists(path) and not path.is_file()


def reason(error: OSError) -> str:
    """What the system said, in the style of all other messages.

    Examples
    --------
    >>> reason(OSError(28, "No space left on device"))
    'no space left on device'
    """
    # By its number: libraries add words of their own.
    return (os.strerror(error.errno) if error.errno else error.strerror or str(error)).lower()
