"""Calls every public function with arguments that nobody should give, and says what came out.

Run as a program it makes more calls: ``python tests/python/hostile.py SEED CALLS [NAME]``, in a folder of its own.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import inspect
import os
import random
import signal
import sys
import tempfile
import traceback
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import flashwright
from flashwright.errors import FlashwrightError, InternalError

# These begin a server, or compute for minutes.
_AT_LENGTH = ("reproduce", "Reproduction", "serve", "probes.")
# No calls: types of annotations, what only the core makes, and classes to derive from.
_NO_CALLS = ("workloads.Common", "workloads.Addresses", "policies.", "RunResult.of", "run().of")
# A call that is at work for longer has found nothing wrong with its arguments.
SECONDS_MAX = 4


class OwnError(Exception):
    """A fault of what was given, which passes through."""


class _Odd:
    def __repr__(self) -> str:
        return "odd\n\x1b[31m" * 40

    def __str__(self) -> str:
        raise RuntimeError("str")

    def __iter__(self) -> Iterator[int]:
        raise OwnError


class _Text(str):
    __slots__ = ()


class _Number(enum.IntEnum):
    THREE = 3


class TooLong(BaseException):
    """A call has had its time."""


class Fuzzer:
    """Hostile calls, the same ones for a seed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        trace = folder / "t.spc"
        trace.write_text("0,0,4096,w,0.0\n0,8,4096,r,0.001\n0,64,8192,w,0.002\n")
        self.ssd = flashwright.Ssd.named("default").with_(
            {"geometry.blocks-per-plane": 16, "capacity.utilization": 0.4}
        )
        self.run = self.ssd.play("uniform:write=1", requests=300, depth=2)
        self.trace = flashwright.workloads.trace(trace)
        self.good: dict[str, Any] = {
            "depth": 4,
            "device": "default",
            "file": trace,
            "path": folder / "o.json",
            "requests": 100,
            "result": self.run,
            "run": self.run,
            "runs": [self.run],
            "seed": 1,
            "source": self.trace,
            "ssd": self.ssd,
            "target": "sim:default",
            "trace": self.trace,
            "workload": "uniform:write=1",
        }

    def value(self) -> Any:
        """One that is most often wrong."""
        return self.rng.choice(
            [
                *(None, True, False, 0, 1, -1, 3, 2**31, 2**63, 2**64, -(2**63), 10**30, 10**400),
                *(0.0, 0.5, -0.5, 1e308, float("nan"), float("inf"), float("-inf"), 1 + 2j),
                *(
                    "",
                    "x",
                    "default",
                    "uniform",
                    "zipf:write=0.7",
                    "a\nb",
                    "\0",
                    "\ud800",
                    "x" * 500,
                ),
                *("../x", "nofile.toml", "t.spc", b"x", b"", bytearray(b"q"), memoryview(b"x")),
                *(
                    [],
                    [1],
                    ["x"],
                    [None],
                    (),
                    (1, 2),
                    {},
                    {"a": 1},
                    {"gc.victim": ["greedy"]},
                    {1: 2},
                ),
                *(
                    {"gc.victim": "greedy"},
                    set(),
                    {1},
                    frozenset([1]),
                    range(3),
                    iter([1]),
                    slice(1),
                ),
                *(
                    lambda: 0,
                    lambda *a, **k: None,
                    int,
                    str,
                    object(),
                    _Odd(),
                    _Text("default"),
                    sys,
                ),
                *(
                    _Number.THREE,
                    np.int64(3),
                    np.float64("nan"),
                    np.array([1, 2]),
                    np.array([]),
                    np.array(3),
                ),
                *(
                    np.bool_(True),
                    np.str_("default"),
                    decimal.Decimal("1.5"),
                    datetime.timedelta(1),
                    ...,
                ),
                *(Path("t.spc"), Path("nofile"), Path(), NotImplemented, Exception("x"), type),
                *(self.ssd, self.run, self.trace, flashwright.workloads.uniform()),
                flashwright.RunSettings(requests=100),
            ]
        )

    def calls(self) -> dict[str, Callable[..., Any]]:
        """All that the package exports and can be called, by name; methods of objects too."""
        found: dict[str, Callable[..., Any]] = {}
        for name in flashwright.__all__:
            each = getattr(flashwright, name)
            if isinstance(each, types.ModuleType):
                found |= {f"{name}.{inner}": getattr(each, inner) for inner in each.__all__}
                continue
            found[name] = each
            if isinstance(each, type):
                made = {
                    f"{name}.{inner}": getattr(each, inner)
                    for inner, member in vars(each).items()
                    if inner[0] != "_" and isinstance(member, classmethod | staticmethod)
                }
                found |= made
        for name, instance in (
            ("ssd", self.ssd),
            ("run", self.run),
            ("trace", self.trace),
            ("workload", flashwright.workloads.uniform()),
            ("settings", flashwright.RunSettings()),
        ):
            for inner in dir(instance):
                if inner[0] != "_" and callable(getattr(instance, inner, None)):
                    found[f"{name}().{inner}"] = getattr(instance, inner)
        return {
            name: call
            for name, call in found.items()
            if callable(call)
            and typing.get_origin(call) is not typing.Literal
            and not (isinstance(call, type) and issubclass(call, BaseException))
            and not name.startswith((*_AT_LENGTH, *_NO_CALLS))
        }

    def arguments(self, call: Callable[..., Any]) -> tuple[list[Any], dict[str, Any]]:
        """Good arguments with one or two bad ones among them, or bad ones alone."""
        rng = self.rng
        try:
            parameters = list(inspect.signature(call).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        if not parameters or rng.random() < 0.15:
            named = {rng.choice(["x", "requests", "seed", "path"]): self.value()}
            return [self.value() for _ in range(rng.randrange(4))], rng.choice([{}, named])
        bad = rng.sample(range(len(parameters)), min(len(parameters), rng.choice([1, 1, 2])))
        given: list[Any] = []
        named = {}
        for nth, parameter in enumerate(parameters):
            if parameter.kind is parameter.VAR_POSITIONAL:
                given += [self.value() for _ in range(rng.randrange(3))]
            elif parameter.kind is parameter.VAR_KEYWORD:
                if rng.random() < 0.3:
                    named[rng.choice(["requests", "depth", "verify", "bogus"])] = self.value()
            else:
                if nth in bad:
                    value = self.value()
                elif parameter.name in self.good:
                    value = self.good[parameter.name]
                elif parameter.default is not parameter.empty:
                    continue
                else:
                    value = self.value()
                if parameter.kind is parameter.KEYWORD_ONLY or len(given) < nth:
                    named[parameter.name] = value
                else:
                    given.append(value)
        return given, named


def _is_own(given: object, error: BaseException) -> bool:
    """Whether a class that was given for a function has refused what it was called with."""
    return isinstance(given, type) and str(error).startswith(given.__name__)


def outcome(call: Callable[..., Any], given: list[Any], named: dict[str, Any]) -> str:
    """What is wrong with how a call ended; nothing if it is as it should be."""

    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS_MAX)
    try:
        call(*given, **named)
    except InternalError as error:
        return f"internal error: {error}"
    except FlashwrightError as error:
        text = str(error)
        shown = all(each.isprintable() or each == "\n" for each in text)
        return "" if shown and len(text) < 4000 else f"not fit to be read: {text[:200]!r}"
    except (TooLong, OwnError):
        return ""
    except BaseException as error:
        if any(_is_own(each, error) for each in (*given, *named.values())):
            return ""
        place = traceback.extract_tb(error.__traceback__)
        ours = [each for each in place if "flashwright" in each.filename] or place
        where = f"{ours[-1].filename.rpartition('flashwright/')[2]}:{ours[-1].lineno}"
        return (
            f"{type(error).__name__} at {where}: {type(error).__mro__[1].__name__} {error!r:.100}"
        )
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return ""


def wrong_outcomes(
    folder: Path, seed: int, calls_each: int, only: str = ""
) -> Iterator[tuple[str, str, str]]:
    """Make the calls; the name, what came out, and the arguments of those that ended in a wrong way."""
    fuzzer = Fuzzer(folder, seed)
    for name, call in sorted(fuzzer.calls().items()):
        for _ in range(calls_each if only in name else 0):
            given, named = fuzzer.arguments(call)
            wrong = outcome(call, given, named)
            if wrong:
                try:
                    shown = repr((given, named))[:160]
                except Exception:
                    shown = "?"
                yield name, wrong, shown


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as own:
        os.chdir(own)
        for line in wrong_outcomes(Path(own), int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:4]):
            print(*line, sep=" | ", flush=True)
