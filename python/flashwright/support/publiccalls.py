"""What the package exports, with its arguments checked: one seam for all public calls.

A call that has no checks of its own is wrapped as it is exported: its arguments must fit its signature and its type
hints. Constructors of plain data are held to their signature only.
"""

from __future__ import annotations

import contextlib
import dataclasses
import types
from collections.abc import Callable, Iterator
from typing import Any

from flashwright.errors import MissingPackageError
from flashwright.support.arguments import belongs, checked, checked_names, is_checked

__all__ = ["guarded", "papers_expected"]

_GUARDED = "__guarded__"
_OURS = ("flashwright.", "flashwright_papers.")


@contextlib.contextmanager
def papers_expected(asker: str) -> Iterator[None]:
    """Say how the papers are installed where they are not: the only door from the tool to them.

    Parameters
    ----------
    asker : str
        What asks for them.

    Raises
    ------
    MissingPackageError
        If they are not installed.

    Examples
    --------
    >>> with papers_expected("reproduce"):
    ...     raise ModuleNotFoundError("no such module", name="flashwright_papers")
    Traceback (most recent call last):
    flashwright.errors.MissingPackageError: reproduce: the papers are not installed
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "flashwright_papers":
            raise
        raise MissingPackageError(
            f"{asker}: the papers are not installed",
            "pip install flashwright-papers, or `make build` in the sources",
        ) from None


def guarded(found: Any) -> Any:
    """Check the arguments of a public function, of the calls of a class, or of what a module exports.

    Parameters
    ----------
    found : object
        As it is exported. Classes and modules are changed in place; all else is returned as it is.

    Returns
    -------
    object
        What to export.

    Examples
    --------
    >>> @guarded
    ... def half(number: float) -> float:
    ...     return number / 2
    >>> half("1")
    Traceback (most recent call last):
    flashwright.errors.ArgumentError: half: number: found '1', expected a number
    """
    if isinstance(found, types.ModuleType):
        for name in getattr(found, "__all__", ()):
            each = getattr(found, name)
            if getattr(each, "__module__", "").startswith(_OURS):
                setattr(found, name, guarded(each))
        return found
    if isinstance(found, type):
        for each in found.__mro__:
            _guard_class(each)
        return found
    return _guarded_call(found) if isinstance(found, types.FunctionType) else found


def _guarded_call(function: Callable[..., Any], *, types_too: bool = True) -> Callable[..., Any]:
    if is_checked(function):
        return function
    return checked()(function) if types_too else checked_names(function)


def _guard_class(found: type) -> None:
    if (
        _GUARDED in vars(found)
        or issubclass(found, BaseException)
        or not found.__module__.startswith(_OURS)
        or found.__module__ == "flashwright._core"
        or getattr(found, "_is_protocol", False)
        or issubclass(found, dict)
    ):
        return
    for name, member in list(vars(found).items()):
        if name == "__init__" and isinstance(member, types.FunctionType):
            made = _guarded_call(member, types_too=not dataclasses.is_dataclass(found))
            setattr(found, name, made)
        elif name.startswith("_"):
            continue
        elif isinstance(member, classmethod | staticmethod):
            if isinstance(member.__func__, types.FunctionType):
                setattr(found, name, type(member)(_guarded_call(member.__func__)))
        elif isinstance(member, types.FunctionType):
            belongs(member, found)
            setattr(found, name, _guarded_call(member))
    setattr(found, _GUARDED, True)
