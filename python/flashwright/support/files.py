"""Files that are either whole or not there."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flashwright.errors import OutputError

__all__ = ["check_writable", "parse_toml", "reason", "write_beside"]


def check_writable(path: Path) -> None:
    """Find out before a long run whether its output can be written.

    Parameters
    ----------
    path : Path
        The file to write; it is not changed here.

    Raises
    ------
    OutputError
        If it can't.
    """
    if path.is_dir():
        raise OutputError(
            f"{path}: is a folder; expected the name of a file", "give a file name within it"
        )
    if path.exists() and not os.access(path, os.W_OK):
        raise OutputError(f"{path}: permission denied")
    if _is_special(path):
        return
    path = path.resolve()
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}."):
            pass
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
    if path.exists() and not path.is_dir():
        raise OutputError(f"{path}: is a file; expected a folder", "give the name of a folder")
    try:
        path.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path):
            pass
    except OSError as error:
        raise OutputError(f"{path}: can't be written: {reason(error)}") from None


@contextlib.contextmanager
def write_beside(path: Path) -> Iterator[Path]:
    """Give the name of a file beside `path`, which takes its place once the block is left without an error.

    What is no regular file, such as a pipe or ``/dev/null``, keeps its place and gets the content; a link stays a link,
    and the file that it points to is replaced.

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
    part = folder / f".{real.name}.{os.getpid()}.partial"
    try:
        yield part
        if special:
            with part.open("rb") as content, path.open("wb") as target:
                shutil.copyfileobj(content, target)
        else:
            with part.open("rb") as content:
                os.fsync(content.fileno())
            part.replace(real)
    except OSError as error:
        raise OutputError(f"{path}: can't be written: {reason(error)}") from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


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
    return path.exists() and not path.is_file()


def reason(error: OSError) -> str:
    """What the system said, in the style of all other messages.

    Examples
    --------
    >>> reason(OSError(28, "No space left on device"))
    'no space left on device'
    """
    # By its number: libraries add words of their own.
    return (os.strerror(error.errno) if error.errno else error.strerror or str(error)).lower()
