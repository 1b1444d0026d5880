"""A drive from a file: a description, one that is based on another file, or the twin of a profile."""

from __future__ import annotations

import os
from pathlib import Path

from flashwright.drive.description import base_of, completed
from flashwright.errors import ConfigError
from flashwright.support.files import is_file, reason

__all__ = ["read_file", "read_text"]


def read_file(file: Path, above: tuple[Path, ...] = ()) -> str:
    """The whole description of the drive in a file.

    Parameters
    ----------
    file : Path
        The file.
    above : tuple of Path, optional
        The files that are based on it, each on the next.

    Raises
    ------
    ConfigError
        With every fault of the file.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not text in UTF-8: {error.reason}") from None
    except OSError as error:
        raise ConfigError(f"{file}: {reason(error)}") from None
    return read_text(text, str(file), file.stem, (*above, file))


def read_text(text: str, source: str, name: str, files: tuple[Path, ...] = ()) -> str:
    r"""The whole description of the drive that a text describes.

    Parameters
    ----------
    text : str
        A description or a profile, whose twin is taken.
    source : str
        What messages call it.
    name : str
        The drive's name if it has none.
    files : tuple of Path, optional
        The files that lead to it, each based on the next.

    Raises
    ------
    ConfigError
        With every fault of the text.

    Examples
    --------
    >>> "channels = 8" in read_text("[geometry]\nchannels = 8", "text", "mine")
    True
    """
    # Here, since bundled drives need none of it.
    from flashwright.drive.profilefile import drive_of, is_profile
    from flashwright.drive.profilefile import read as read_profile

    text = text.removeprefix("\ufeff")
    if is_profile(text):
        from flashwright.drive.trust import warn_of_twin

        profile = read_profile(text, source)
        if profile.twin is not None:
            warn_of_twin(profile.twin_record, source)
        return drive_of(profile)
    base = base_of(text)
    over = None if base is None or not files else _based(base, source, files)
    return completed(text, source, name, over)


def _based(base: str, source: str, files: tuple[Path, ...]) -> str:
    """The description in the file that another is based on."""
    file = files[-1].parent / base
    if file.resolve() in [above.resolve() for above in files]:
        circle = " -> ".join(str(each) for each in (*files, file))
        raise ConfigError(
            f"{source}: base: found a circle, expected an end to it: {circle}",
            "one of these files must be based on a bundled drive or on nothing",
        )
    if not is_file(file):
        raise ConfigError(
            f"{source}: base: found {base!r}, expected a drive's file there: {file}: "
            + ("is a folder" if os.path.isdir(file) else "there is no such file"),
            "the path is relative to the file that it stands in",
        )
    return read_file(file, files)
