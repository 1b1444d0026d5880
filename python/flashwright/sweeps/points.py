"""Things to compute, each known by what makes it: computed once, kept in files, on as many processes as there are.

A *point* names a function and plain arguments. Its key is the hash of both and of whatever else decides the result, so
a store of results can be shared, moved and resumed, and nothing is computed twice.

::

    points ─► kept? ─► store            a file a point, with a digest of its content
                │no                       ▲
                └───► pool or cluster ────┘  each outcome as it comes, whoever computed it
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import json
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from flashwright.errors import FlashwrightError, OutputError, SavedStateError
from flashwright.support.files import reason, remove_left_over_part, write_beside
from flashwright.support.sealed import open_sealed, seal

__all__ = [
    "Outcome",
    "Point",
    "Store",
    "carry_out",
]

_CONTINUES = "what was finished before is kept; the same command continues from there"


@dataclass(frozen=True)
class Point:
    """One thing to compute.

    Attributes
    ----------
    call : str
        The function, as ``"module:function"``. It is given the arguments by name, and returns what JSON can hold.
    arguments : mapping
        What JSON can hold, by name.
    label : str
        What people know it by; makes no difference to the key.
    made_of : str
        What else decides the result, such as the digest of a trace or of the code.
    whereabouts : mapping
        Further arguments that say where things lie and not what they are, such as the path of a trace; they make no
        difference to the key.

    Examples
    --------
    >>> one = Point("math:dist", {"p": [0, 0], "q": [3, 4]}, "a distance")
    >>> one.key == Point("math:dist", {"q": [3, 4], "p": [0, 0]}, "the same").key
    True
    """

    call: str
    arguments: Mapping[str, Any]
    label: str = field(default="", compare=False)
    made_of: str = ""
    whereabouts: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @cached_property
    def key(self) -> str:
        """The hash of what makes it, 32 hexadecimal digits."""
        text = json.dumps([self.call, self.arguments, self.made_of], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Outcome:
    """What became of a point.

    Attributes
    ----------
    point : Point
        Which.
    result : object
        What its function returned; None if it failed.
    error : str or None
        Why it failed, in a line.
    cached : bool
        Whether it had been computed before.
    seconds : float
        How long it took when it was computed: seconds of processor time.
    traceback : str or None
        Where its function failed, as Python prints it; None for faults that a line says all of.
    """

    point: Point
    result: Any
    error: str | None = None
    cached: bool = False
    seconds: float = 0.0
    traceback: str | None = None


# What a kept result calls itself in its first line.
_KIND = "point"


class Store:
    """A folder of results, a file each.

    A file appears once it is whole, and holds a digest of its content. What is found damaged counts as not there.

    Parameters
    ----------
    folder : Path
        Is made if it is not there.

    Attributes
    ----------
    folder : Path
        Where the files are.
    damaged : list of Path
        Files that were found not to be what was written.

    Raises
    ------
    OutputError
        If the folder can't be created.

    Examples
    --------
    >>> import tempfile
    >>> point = Point("math:sqrt", {"x": 2})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder))
    ...     store.write(Outcome(point, 1.414))
    ...     store.read(point).result
    1.414
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged: list[Path] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._tidy()
        except OSError as error:
            raise OutputError(
                f"{folder}: can't be used as a folder of results: {reason(error)}"
            ) from None

    def read(self, point: Point) -> Outcome | None:
        """The result kept for a point, if there is one.

        Parameters
        ----------
        point : Point
            Which.

        Returns
        -------
        Outcome or None
            None also where the file is damaged; it is then in :attr:`damaged`.
        """
        path = self._path(point)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise OutputError(f"{path}: can't be read: {reason(error)}", "") from None
        with contextlib.suppress(SavedStateError):
            kept = _loads(open_sealed(path, content, _KIND).content)
            if kept["key"] == point.key:
                return Outcome(point, kept["result"], None, True, kept["seconds"])
        self.damaged.append(path)
        return None

    def has(self, point: Point) -> bool:
        """Whether a file is there for a point, whatever it holds.

        Parameters
        ----------
        point : Point
            Which.
        """
        return self._path(point).exists()

    def write(self, outcome: Outcome) -> None:
        """Keep a result.

        Parameters
        ----------
        outcome : Outcome
            Of a point that did not fail.

        Raises
        ------
        OutputError
            If it can't be written; nothing is left behind then.
        """
        path = self._path(outcome.point)
        body = json.dumps(
            {
                "key": outcome.point.key,
                "label": outcome.point.label,
                "seconds": outcome.seconds,
                "result": outcome.result,
            }
        ).encode()
        try:
            path.parent.mkdir(exist_ok=True)
            # Another machine may write the same point into the same folder.
            with write_beside(path) as part:
                part.write_bytes(seal(_KIND, body))
            self.traceback_path(outcome.point).unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(f"{path}: can't be written: {reason(error)}", _CONTINUES) from None
        except OutputError as error:
            raise OutputError(str(error), _CONTINUES) from None

    def _path(self, point: Point) -> Path:
        return self.folder / point.key[:2] / f"{point.key}.json"

    def traceback_path(self, point: Point) -> Path:
        """Where the traceback of a point is kept that failed by an exception of its function.

        Parameters
        ----------
        point : Point
            Which.

        Returns
        -------
        Path
            Beside where its result would be; there is no such file if it did not fail so.
        """
        return self._path(point).with_suffix(".traceback")

    def write_traceback(self, outcome: Outcome) -> None:
        """Keep where a point failed; the point is tried again all the same.

        Parameters
        ----------
        outcome : Outcome
            Of a point that failed by an exception.

        Raises
        ------
        OutputError
            If it can't be written.
        """
        path = self.traceback_path(outcome.point)
        try:
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{outcome.point.label}\n\n{outcome.traceback}", encoding="utf-8")
        except OSError as error:
            raise OutputError(
                f"{path}: can't be written: {reason(error)}; what was finished is kept", ""
            ) from None

    def _tidy(self) -> None:
        """Remove what writers that were killed left."""
        for part in self.folder.glob("??/.*.partial"):
            with contextlib.suppress(OSError):
                remove_left_over_part(part)


def _loads(text: str | bytes) -> Any:
    """JSON whose texts are shared among all that is read: results of thousands of points are mostly alike."""
    return json.loads(text, object_pairs_hook=_shared)


def _shared(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {
        sys.intern(key): sys.intern(value) if type(value) is str else value for key, value in pairs
    }


def carry_out(call: str, arguments: Mapping[str, Any]) -> str:
    """Compute one point here.

    Parameters
    ----------
    call : str
        The function, as ``"module:function"``.
    arguments : mapping
        What it is given by name.

    Returns
    -------
    str
        JSON: what it returned (``result``) or why it failed (``error``), and the ``seconds`` of processor time.

    Examples
    --------
    >>> json.loads(carry_out("math:sqrt", {}))["error"]
    'TypeError: math.sqrt() takes exactly one argument (0 given)'
    """
    began = time.process_time()
    module, _, name = call.partition(":")
    answer: dict[str, Any]
    try:
        answer = {"result": getattr(importlib.import_module(module), name)(**arguments)}
        text = json.dumps(answer)
    except FlashwrightError as error:
        text = json.dumps({"error": "; ".join(str(error).splitlines())})
    except Exception as error:
        what = str(error).splitlines()
        answer = {
            "error": f"{type(error).__name__}: {what[0] if what else 'no words'}",
            "traceback": "".join(traceback.format_exception(error)),
        }
        text = json.dumps(answer)
    seconds = time.process_time() - began
    return f'{text[:-1]}, "seconds": {seconds!r}}}'


def outcome_of(point: Point, text: str) -> Outcome:
    """What :func:`carry_out` returned for a point."""
    outcome = _loads(text)
    return Outcome(
        point,
        outcome.get("result"),
        outcome.get("error"),
        False,
        outcome["seconds"],
        outcome.get("traceback"),
    )
