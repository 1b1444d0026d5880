"""Arguments of public calls, checked against the types that their signatures name.

A wrong argument is told in one line where the call is made, and not by an exception from somewhere below.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import numbers
import os
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AnySet
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar, Union, Unpack, get_args, get_origin

from flashwright.errors import ArgumentError

__all__ = [
    "belongs",
    "check_fields",
    "check_text",
    "checked",
    "checked_names",
    "is_checked",
    "plain",
]

P = ParamSpec("P")
R = TypeVar("R")


def checked(**limits: tuple[float, float] | None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check what a function is given.

    Parameters
    ----------
    **limits
        The least and the greatest value of numbers, by the name of the parameter; None for a parameter that the
        function checks itself.

    Returns
    -------
    callable
        Decorates the function.

    Examples
    --------
    >>> @checked(share=(0, 1))
    ... def cut(text: str, share: float) -> str:
    ...     return text[: int(len(text) * share)]
    >>> cut("flash", 0.4)
    'fl'
    >>> cut("flash", 2)
    Traceback (most recent call last):
    flashwright.errors.ArgumentError: cut: share: found 2, expected a number from 0 to 1
    >>> cut(5, 0.5)
    Traceback (most recent call last):
    flashwright.errors.ArgumentError: cut: text: found 5, expected text
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        label = _label(function)

        @functools.wraps(function)
        def check_and_call(*args: P.args, **kwargs: P.kwargs) -> R:
            given = _bound(label, signature, args, kwargs)
            owner = getattr(function, _OWNER, None)
            if owner is not None and args and not isinstance(args[0], owner):
                found = f"found {_shown(args[0])}, expected a {owner.__name__}"
                raise ArgumentError(f"{label}: self: {found}")
            hints = _hints_of(function)
            for name, value in given.arguments.items():
                parameter = signature.parameters[name]
                if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                    own_checks = {each for each, limit in limits.items() if limit is None}
                    value.update(_accepted_more(label, value, hints.get(name), own_checks))
                    continue
                value = plain(value)
                own = name in limits and limits[name] is None
                where = f"{label}: {name}"
                if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                    if name in hints and not own:
                        value = tuple(_accepted(where, each, hints[name]) for each in value)
                elif value is not parameter.default and name in hints and not own:
                    value = _accepted(where, value, hints[name])
                    _check_limits(where, value, limits.get(name))
                given.arguments[name] = value
                check_text(where, value)
            return function(*given.args, **given.kwargs)

        setattr(check_and_call, _CHECKED, True)
        return check_and_call

    return decorate


def checked_names(function: Callable[P, R]) -> Callable[P, R]:
    """Check only that the arguments of a call fit its signature.

    Parameters
    ----------
    function : callable
        What checks the values itself, or takes them as they are.

    Examples
    --------
    >>> checked_names(lambda size: size)(sizes=1)
    Traceback (most recent call last):
    flashwright.errors.ArgumentError: <lambda>: missing a required argument: 'size'
    """
    signature = inspect.signature(function)
    label = _label(function)

    @functools.wraps(function)
    def check_and_call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError:
            # Either the arguments don't fit, or it is another error.
            _bound(label, signature, args, kwargs)
            raise

    setattr(check_and_call, _CHECKED, True)
    return check_and_call


def is_checked(function: Any) -> bool:
    """Whether the arguments of a call are checked already."""
    return getattr(function, _CHECKED, False) is True


_CHECKED = "__checked__"
_OWNER = "__owner__"


def belongs(function: Callable[..., Any], owner: type) -> None:
    """Have a checked function refuse what is no instance of its class, as which it was called by the class's name."""
    setattr(inspect.unwrap(function), _OWNER, owner)


def _label(function: Callable[..., Any]) -> str:
    """What a call is called; a class is made by its name."""
    return function.__qualname__.removesuffix(".__init__").rpartition(".")[2]


def _bound(
    label: str, signature: inspect.Signature, args: Any, kwargs: Any
) -> inspect.BoundArguments:
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(f"{label}: {error}") from None


def check_text(where: str, value: Any) -> None:
    r"""Refuse text and names of files that no file, and no part in Rust, can take.

    Parameters
    ----------
    where : str
        What messages begin with: the call and its parameter, or another place.
    value : object
        Text, a path, or a list of them; all else passes.

    Raises
    ------
    ArgumentError
        If it has a NUL, or half a character: Python puts those where the name of a file is not in UTF-8.

    Examples
    --------
    >>> check_text("info: source", os.fsdecode(b"a\xff.spc"))
    Traceback (most recent call last):
    flashwright.errors.ArgumentError: info: source: found 'a\udcff.spc', expected text in UTF-8
    """
    if isinstance(value, list | tuple):
        for each in value:
            check_text(where, each)
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str):
        return
    wrong = next((each for each in value if each == "\0" or "\ud800" <= each <= "\udfff"), None)
    if wrong is not None:
        raise ArgumentError(
            f"{where}: found {_shown(str(value))}, expected text "
            + ("without a NUL" if wrong == "\0" else "in UTF-8"),
            "" if wrong == "\0" else "rename a file whose name is not in UTF-8",
            parameters=_named(where) if ": " in where else (),
        )


def check_fields(settings: Any, *own: str) -> None:
    """Check the fields of a dataclass; for ``__post_init__``.

    Parameters
    ----------
    settings : dataclass
        With type hints.
    *own : str
        Fields that are checked elsewhere.

    Raises
    ------
    ArgumentError
        If a value is of another type.
    """
    made: Any = type(settings)
    for name, hint in _hints_of(made).items():
        given = getattr(settings, name)
        value = plain(given) if name in own else _accepted(name, plain(given), hint)
        if value is not given:
            object.__setattr__(settings, name, value)


def plain(value: Any) -> Any:
    """NumPy's numbers as Python's own; all else unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> plain(np.float32(0.5)), plain("0.5"), plain(np.bool_(True))
    (0.5, '0.5', True)
    """
    # Where NumPy has not been imported, nothing is of it.
    numpy: Any = sys.modules.get("numpy")
    return value.item() if numpy is not None and isinstance(value, numpy.generic) else value


@functools.cache
def _hints_of(of: Any) -> dict[str, Any]:
    """The types of a class's fields or of a function's parameters.

    What a function returns is left out: it may be of a package that is imported for type checkers only.
    """
    if isinstance(of, type):
        return typing.get_type_hints(of)
    found: dict[str, Any] = {}
    for name, hint in of.__annotations__.items():
        asked: Any = types.SimpleNamespace(__annotations__={name: hint})
        # What a module imports for type checkers only can't be checked here.
        with contextlib.suppress(NameError, AttributeError):
            if name != "return":
                found |= typing.get_type_hints(asked, globalns=inspect.unwrap(of).__globals__)
    return found


def _accepted_more(
    where: str, given: Mapping[str, Any], hint: Any, own: AnySet[str]
) -> dict[str, Any]:
    """Keywords beyond those of the signature, of the type of all or as a ``TypedDict`` says which there are."""
    found = {name: plain(value) for name, value in given.items()}
    if hint is None:
        return found
    if get_origin(hint) is not Unpack:
        for name in found.keys() - own:
            found[name] = _accepted(f"{where}: {name}", found[name], hint)
        return found
    known = _hints_of(get_args(hint)[0])
    for name, value in found.items():
        if name not in known:
            near = get_close_matches(name, known, 1)
            more = f"; did you mean {near[0]}?" if near else ""
            raise ArgumentError(
                f"{where}: {name}: unknown, expected one of {', '.join(known)}{more}"
            )
        if name not in own:
            found[name] = _accepted(f"{where}: {name}", value, known[name])
    return found


def _accepted(where: str, value: Any, hint: Any) -> Any:
    """A value as a function takes it.

    Where it wants a sequence, what can only be gone through becomes a list; where it goes through the values once,
    those of an iterator are checked as they come.
    """
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    several = [part for part in parts if _is_many(get_origin(part))]
    if any(_fits(value, part) for part in parts if part not in several):
        return value
    if any(map(_is_array, several)):
        value = _array_of(value) if isinstance(value, list | tuple) else value
    elif several and _can_be_gone_through(value):
        if any(issubclass(get_origin(part), Sequence) for part in several):
            value = value if isinstance(value, Sequence | AnySet) else list(value)
        elif isinstance(value, Iterator) and len(several) == 1:
            return _each_checked(where, value, get_args(several[0])[0])
    _check(where, value, hint)
    return value


def _each_checked(where: str, values: Iterator[Any], hint: Any) -> Iterator[Any]:
    for value in values:
        _check(where, value, hint)
        yield value


def _can_be_gone_through(value: Any) -> bool:
    # An array of no dimension has no values to go through.
    many = isinstance(value, Iterable) and getattr(value, "ndim", 1) != 0
    return many and not isinstance(value, str | bytes | Mapping)


def _check(where: str, value: Any, hint: Any) -> None:
    if not _fits(value, hint):
        is_long = isinstance(value, numbers.Integral) and not -(2**63) <= int(value) < 2**64
        more = " of 64 bits" if is_long and not isinstance(value, bool) else ""
        raise ArgumentError(
            f"{where}: found {_shown(value)}, expected {_words(hint)}{more}",
            parameters=_named(where),
        )


def _check_limits(where: str, value: Any, limits: tuple[float, float] | None) -> None:
    if limits is None or not isinstance(value, int | float):
        return
    least, most = limits
    if not least <= value <= most:
        kind = "a whole number" if isinstance(least, int) and most != 1 else "a number"
        allowed = f"{least:,} up" if most >= 2**63 else f"{least:,} to {most:,}"
        raise ArgumentError(
            f"{where}: found {_shown(value)}, expected {kind} from {allowed}",
            parameters=_named(where),
        )


def _named(where: str) -> tuple[str]:
    """The parameter, which stands last."""
    return (where.rpartition(": ")[2],)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type; types that can't be checked at run time let all pass."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint is None or hint is type(None):
        return value is None
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if hint is bool:
        return isinstance(plain(value), bool)
    if hint is int:
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        # What the core takes.
        return whole and -(2**63) <= int(value) < 2**64
    if hint is float:
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        return number and _is_number(value)
    if origin is Callable or hint is Callable:
        return callable(value) and _takes(value, parts[0] if parts else ...)
    if origin is tuple:
        return _fits_tuple(value, parts)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            _fits(key, parts[0]) and _fits(each, parts[1]) for key, each in value.items()
        )
    if _is_array(hint):
        array: Any = origin
        return isinstance(value, array) and value.dtype.kind in _KINDS_OF_NUMBERS
    if _is_many(origin):
        if getattr(value, "ndim", 0) == 1 and isinstance(parts[0], type):
            # Values of an array are of one kind.
            return all(_fits(each, parts[0]) for each in value[:1])
        # What is gone through once only is left for the call itself.
        once = isinstance(value, Iterator) or not isinstance(value, Collection)
        return _can_be_gone_through(value) and (
            once or all(_fits(each, parts[0]) for each in value)
        )
    if getattr(hint, "_is_protocol", False):
        return all(hasattr(value, name) for name in vars(hint) if name[0] != "_")
    if typing.is_typeddict(hint):
        return isinstance(value, Mapping)
    if origin is not None:
        return not isinstance(origin, type) or isinstance(value, origin)
    return not isinstance(hint, type) or isinstance(value, hint)


def _is_number(value: Any) -> bool:
    """Whether a number fits a ``float``."""
    try:
        return not math.isnan(float(value))
    except OverflowError:
        return False


def _takes(function: Callable[..., Any], arguments: Any) -> bool:
    """Whether a function can be called with so many values; of some of Python's own nobody can say."""
    if not isinstance(arguments, list):
        return True
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True


def _fits_tuple(value: Any, parts: tuple[Any, ...]) -> bool:
    if not isinstance(value, tuple | list):
        return False
    if len(parts) == 2 and parts[1] is Ellipsis:
        return all(_fits(each, parts[0]) for each in value)
    return len(value) == len(parts) and all(map(_fits, value, parts))


def _is_many(origin: Any) -> bool:
    is_iterable = isinstance(origin, type) and issubclass(origin, Iterable)
    return is_iterable and origin is not tuple and not issubclass(origin, Mapping)


# Of NumPy: signed, unsigned, of floating point.
_KINDS_OF_NUMBERS = "iuf"


def _is_array(hint: Any) -> bool:
    """Whether a type is NumPy's array, which nobody imports for this question."""
    origin = get_origin(hint)
    return getattr(origin, "__module__", "") == "numpy" and origin.__name__ == "ndarray"


def _array_of(values: list[Any] | tuple[Any, ...]) -> Any:
    """An array of these values; themselves if they make none."""
    numpy: Any = sys.modules["numpy"]
    try:
        return numpy.asarray(values)
    except ValueError:
        return values


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        # Of an object whose class can't show it.
        text = f"a {type(value).__name__}"
    if not text.isprintable():
        text = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return text if len(text) <= 60 else text[:57] + "..."


_NAMES = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "True or False",
    object: "anything",
    Any: "anything",
    type(None): "None",
    Path: "a path",
}


def _words(hint: Any) -> str:
    """A type as people say it."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint in _NAMES:
        return _NAMES[hint]
    if origin in (Union, types.UnionType):
        words = list(dict.fromkeys(_words(part) for part in parts))
        if "text" in words and "a path" in words:
            words.remove("text")
        return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
    if origin is Literal:
        return " or ".join(str(part) for part in parts)
    if origin is os.PathLike:
        return "a path"
    if origin is Callable or hint is Callable:
        values = len(parts[0]) if parts and isinstance(parts[0], list) else 0
        of = f" of {values} value{'s' * (values > 1)}" if values else ""
        return f"a function{of}"
    if origin is tuple:
        if len(parts) == 2 and parts[1] is Ellipsis:
            return f"a tuple of {_several(parts[0])}"
        return f"a tuple of {len(parts)} ({', '.join(map(_words, parts))})"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"a mapping of {_several(parts[0])} to {_several(parts[1])}"
    if _is_array(hint):
        return "an array of numbers"
    if _is_many(origin):
        return f"a list of {_several(parts[0])}"
    name = getattr(hint, "__name__", str(hint))
    return f"an {name}" if name[0] in "AEIOU" or name == "Ssd" else f"a {name}"


def _several(hint: Any) -> str:
    words = {int: "whole numbers", float: "numbers", str: "texts", object: "values", Any: "values"}
    if hint in words:
        return words[hint]
    origin = get_origin(hint)
    if _is_many(origin):
        return f"lists of {_several(get_args(hint)[0])}"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "mappings"
    return (
        getattr(hint, "__name__", "values") + " objects" if isinstance(hint, type) else _words(hint)
    )
