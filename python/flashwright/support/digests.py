"""Digests of code and of files, by which results know what made them."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
from pathlib import Path

from flashwright.errors import SweepError
from flashwright.support.core import _core

__all__ = ["digest_of_code", "digest_of_file", "modules_of"]


@functools.cache
def digest_of_code(*modules: str) -> str:
    """A digest of the simulator's core and of some modules, for what a result depends on.

    Parameters
    ----------
    *modules : str
        Names of modules in Python whose text counts.

    Returns
    -------
    str
        32 hexadecimal digits; the same on every machine that has the same sources.

    Examples
    --------
    >>> digest_of_code("flashwright.simulation.run") == digest_of_code("flashwright.simulation.results")
    False
    """
    digest = hashlib.sha256(_core.source_digest.encode())
    for name in modules:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise SweepError(f"{name}: found no file of this module, expected its text", "")
        digest.update(hashlib.sha256(Path(spec.origin).read_bytes()).digest())
    return digest.hexdigest()[:32]


def modules_of(package: str) -> list[str]:
    """The modules of a package, those of its packages too, by name.

    Parameters
    ----------
    package : str
        Its name.

    Returns
    -------
    list of str
        In order; the package itself is one of them.

    Raises
    ------
    SweepError
        If it is no package.

    Examples
    --------
    >>> modules_of("flashwright.drive")[:2]
    ['flashwright.drive', 'flashwright.drive.catalogue']
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SweepError(f"{package}: found no folder of this package, expected its modules", "")
    root = Path(spec.submodule_search_locations[0])
    below = (path.relative_to(root).with_suffix("").parts for path in root.rglob("*.py"))
    return sorted(
        ".".join((package, *(parts[:-1] if parts[-1] == "__init__" else parts))) for parts in below
    )


def digest_of_file(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's content, which is read again once the file has changed.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    str
        64 hexadecimal digits.

    Raises
    ------
    OSError
        If it can't be read.

    Examples
    --------
    >>> digest_of_file(__file__) == digest_of_file(Path(__file__))
    True
    """
    status = os.stat(path)
    return _digest_of(os.fspath(path), status.st_size, status.st_mtime_ns)


@functools.cache
def _digest_of(path: str, size: int, changed: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
