"""Policies from files, and how policies are handed to the core."""

from __future__ import annotations

import ast
import copy
import hashlib
import importlib.util
import inspect
import itertools
import json
import math
import pickle
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from flashwright.drive.policies.kinds import (
    BufferPolicy,
    Given,
    PlacementPolicy,
    Policy,
    ScoredVictimPolicy,
    VictimPolicy,
)
from flashwright.drive.policies.layer import TranslationLayer
from flashwright.drive.policies.parts import (
    CleaningSchedule,
    MapCachePolicy,
    MapPrefetchPolicy,
    ScoredMapCachePolicy,
    WearPolicy,
)
from flashwright.errors import PolicyError
from flashwright.support.arguments import checked
from flashwright.support.files import reason

__all__ = [
    "details_of",
    "expect_policies",
    "from_portable",
    "handed",
    "identity_of",
    "load",
    "name_of",
    "names_a_policy",
    "to_portable",
]

_KINDS = (
    VictimPolicy,
    ScoredVictimPolicy,
    PlacementPolicy,
    BufferPolicy,
    MapCachePolicy,
    MapPrefetchPolicy,
    ScoredMapCachePolicy,
    WearPolicy,
    CleaningSchedule,
    TranslationLayer,
)


_EXPECTED = (
    "expected a class or an object of "
    f"{', '.join(kind.__name__ for kind in _KINDS[:-1])} or {_KINDS[-1].__name__}"
)


_TEXT = re.compile(r"(?P<path>.+\.py):(?P<name>\w+)(?P<call>\(.*\))?")


def names_a_policy(text: str) -> bool:
    """Whether a text is one of those that :func:`load` takes.

    Examples
    --------
    >>> names_a_policy("mine.py:Oldest(alpha=5)"), names_a_policy("greedy")
    (True, False)
    """
    return _TEXT.fullmatch(text) is not None


@checked()
def load(text: str, folder: Path | None = None) -> Given:
    """The class that ``FILE.py:CLASS`` names, or the object that ``FILE.py:CLASS(alpha=5)`` describes. The file is run.

    Parameters
    ----------
    text : str
        The path of a Python file, a colon, and the name of a class in it; then, in brackets, what it is made with:
        plain values as Python writes them.
    folder : Path, optional
        Where a relative path begins; by default where the process runs.

    Returns
    -------
    type or Policy
        The class, or the object where there are brackets.

    Raises
    ------
    PolicyError
        If there is no such file or class, if the file can't be run, or the object can't be made.

    Examples
    --------
    >>> load("mine.py:Greedy")
    Traceback (most recent call last):
    ...
    flashwright.errors.PolicyError: mine.py: no such file or directory
    """
    written = _TEXT.fullmatch(text)
    if written is None:
        raise PolicyError(
            f"policy: found {text!r}, expected FILE.py:CLASS",
            "such as mine.py:CostBenefit, or mine.py:CostBenefit(alpha=5)",
            parameters=["policy"],
        )
    path, name = (folder or Path()) / written["path"], written["name"]
    module = _module(path)
    found = getattr(module, name, None)
    if not (isinstance(found, type) and issubclass(found, Policy)):
        known = [
            each
            for each, value in vars(module).items()
            if isinstance(value, type)
            and issubclass(value, Policy)
            and value.__module__ == module.__name__
        ]
        raise PolicyError(
            f"{path}: found no policy {name}, expected {' or '.join(known) or 'a class of a policy'}"
        )
    return found if written["call"] is None else _object(found, f"{name}{written['call']}", path)


def _object(made: type[Policy], text: str, path: Path) -> Policy:
    """An object of a class, by a call whose arguments are plain values."""
    try:
        call = ast.parse(text, mode="eval").body
        assert isinstance(call, ast.Call)
        given = [ast.literal_eval(each) for each in call.args]
        named = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except (SyntaxError, ValueError, AssertionError):
        raise PolicyError(
            f"{path}: found {text}, expected plain values in the brackets",
            "numbers, truth values and quoted words, such as alpha=5, name='x'",
        ) from None
    try:
        return made(*given, **named)
    except Exception as error:
        raise PolicyError(f"{path}: {text}: {_message_of(error)}") from error


def _module(path: Path) -> ModuleType:
    try:
        path.read_bytes()
    except OSError as error:
        raise PolicyError(f"{path}: {reason(error)}", "") from None
    name = _module_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PolicyError(f"{path}: found no Python file, expected one that ends in .py")
    module = importlib.util.module_from_spec(spec)
    # What looks for a class's source looks here.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise PolicyError(f"{path}: {_message_of(error)}") from error
    return module


def _module_name(path: Path) -> str:
    """A name for a policy's file, which no other file has: by it a class finds its source."""
    names = itertools.chain([""], (f"_{n}" for n in itertools.count(2)))
    for more in names:
        name = f"flashwright_policy_{path.stem}{more}"
        known = getattr(sys.modules.get(name), "__file__", None)
        if known is None or Path(known).resolve() == path.resolve():
            break
    return name


def identity_of(policy: Given) -> str:
    """What a policy does, as text: its class, by the text of its file, and its parameters.

    Classes that are made within a function may differ in what they take from it, and so are the same only as objects.

    Examples
    --------
    >>> identity_of(VictimPolicy) == identity_of(BufferPolicy)
    False
    """
    made = _class(policy)
    _, digest = _source(made)
    where = _path(made)
    is_known = digest is not None and where is not None and "<locals>" not in made.__qualname__
    which = [where, digest, made.__qualname__] if is_known else [id(made), made.__qualname__]
    settings = None if isinstance(policy, type) else _digested(vars(policy))
    return json.dumps([which, settings])


def to_portable(policy: Given) -> tuple[dict[str, Any], str]:
    """What makes a policy again in another process: its class, the digest of its file and its parameters; and the file.

    Returns
    -------
    tuple of dict and str
        What JSON can hold, and the path of the file. The file is known by its content, not by what it imports.

    Raises
    ------
    PolicyError
        If its class is not to be had from a file by its name, or JSON has no value for a parameter.

    Examples
    --------
    >>> form, path = to_portable(VictimPolicy)
    >>> form["class"], form["parameters"], Path(path).name
    ('VictimPolicy', None, 'kinds.py')
    >>> from_portable(form, path).__name__
    'VictimPolicy'
    """
    made = _class(policy)
    path, (_, digest) = _path(made), _source(made)
    if path is None or "<locals>" in made.__qualname__ or made.__module__ == "__main__":
        raise PolicyError(
            f"{name_of(policy)}: found a class of this program, expected one of a file that other processes can read",
            "move it to a file of its own and import it, or name it FILE.py:CLASS",
        )
    parameters = None if isinstance(policy, type) else vars(policy)
    try:
        same = json.loads(json.dumps(parameters, allow_nan=False))
    except (TypeError, ValueError):
        same = object()
    if same != parameters:
        raise PolicyError(
            f"{name_of(policy)}: found a parameter that JSON has no value for, expected numbers, truth values, texts "
            "and lists of them",
            "arrays and the like belong into begin()",
        )
    return {"class": made.__qualname__, "source_sha256": digest, "parameters": same}, path


def from_portable(form: Mapping[str, Any], path: str) -> Given:
    """The policy of which :func:`to_portable` has told.

    Parameters
    ----------
    form : mapping
        What it told.
    path : str
        Where the file lies here. It is run.

    Raises
    ------
    PolicyError
        If the file can't be run, or is another.
    """
    file = Path(path)
    module = _module(file)
    if hashlib.sha256(file.read_bytes()).hexdigest() != form["source_sha256"]:
        raise PolicyError(f"{path}: found other content here, expected that from the beginning", "")
    found: Any = module
    for name in form["class"].split("."):
        found = getattr(found, name)
    made: type[Policy] = found
    if form["parameters"] is None:
        return made
    policy = made.__new__(made)
    vars(policy).update(form["parameters"])
    return policy


def _digested(settings: dict[str, Any]) -> str:
    """Parameters as text, of which the pickled form decides; an object that has none is only itself."""
    try:
        return hashlib.sha256(pickle.dumps(settings)).hexdigest()
    except Exception:
        return f"{id(settings)}"


def details_of(policy: Given) -> dict[str, object]:
    """What tells a policy from others of its name: its parameters, and the path of its file."""
    path = _path(_class(policy))
    details = {} if path is None else {"path": path}
    return {**details, **_settings(policy)}


def _path(made: type) -> str | None:
    """The file that holds a class; None where it was not read from one."""
    try:
        path = Path(inspect.getsourcefile(made) or "")
    except (OSError, TypeError):
        return None
    return str(path.resolve()) if path.is_file() else None


def name_of(policy: Given) -> str:
    """What results and messages call a policy.

    Examples
    --------
    >>> name_of(VictimPolicy)
    'python:VictimPolicy'
    """
    return f"python:{_class(policy).__name__}"


# What of a result's entry of a policy says which it was.
_IDENTITY = ("key", "name", "class", "source_sha256", "settings")


def find_policy(entry: Mapping[str, object], given: Sequence[Given]) -> Given:
    """The policy of which a result tells.

    Parameters
    ----------
    entry : mapping
        One of a result's ``policies``.
    given : sequence
        Policies, this one among them.

    Raises
    ------
    PolicyError
        If none of them has this class, source and parameters.

    Examples
    --------
    >>> entry = {"key": "gc.victim", "name": "python:Mine", "class": "Mine", "file": "mine.py"}
    >>> find_policy(entry, [])
    Traceback (most recent call last):
    ...
    flashwright.errors.PolicyError: python:Mine: found no such policy, expected the class Mine of mine.py
    """
    known = [(each, _about(each)) for each in given]
    for policy, about in known:
        if all(about[name] == entry.get(name) for name in _IDENTITY):
            return policy
    near = [about for _, about in known if about["class"] == entry["class"]]
    expected = f"the class {entry['class']} of {entry['file']}"
    if not near:
        found = "no such policy"
    elif all(each["source_sha256"] != entry["source_sha256"] for each in near):
        found, expected = (
            f"one of another {near[0]['file']}",
            f"the file of SHA-256 {entry['source_sha256']}",
        )
    else:
        found = f"one with the settings {near[0]['settings']}"
        expected += f" with {entry['settings']}"
    raise PolicyError(
        f"{entry['name']}: found {found}, expected {expected}",
        "a result knows a policy written in Python by what it is: hand the same one again",
        parameters=["policies"],
    )


def expect_policies(policies: Sequence[Given]) -> None:
    """Refuse what is no policy, and two for the same thing.

    Raises
    ------
    PolicyError
        With the first that does not fit.

    Examples
    --------
    >>> expect_policies([PlacementPolicy])
    Traceback (most recent call last):
    ...
    flashwright.errors.PolicyError: python:PlacementPolicy: found no method host, expected one
    """
    if not isinstance(policies, Sequence):
        raise PolicyError(
            f"policies: found {policies!r} by itself, expected a list",
            "such as policies=[CostBenefit]",
        )
    known: dict[str, Given] = {}
    for policy in policies:
        if not (
            isinstance(policy, _KINDS) or (isinstance(policy, type) and issubclass(policy, _KINDS))
        ):
            raise PolicyError(f"policies: found {policy!r}, {_EXPECTED}")
        _check(policy)
        if policy.key in known:
            raise PolicyError(
                f"policies: found {name_of(known[policy.key])} and {name_of(policy)}, expected one for {policy.key}"
            )
        known[policy.key] = policy


def _class(policy: Given) -> type[Policy]:
    return policy if isinstance(policy, type) else type(policy)


def _check(policy: Given) -> None:
    made = _class(policy)
    base = next(kind for kind in _KINDS if issubclass(made, kind))
    for method in made._asks:
        if getattr(made, method) is getattr(base, method):
            raise PolicyError(f"{name_of(policy)}: found no method {method}, expected one")
    streams = getattr(policy, "streams", 1)
    if isinstance(streams, bool) or not isinstance(streams, int) or not 1 <= streams <= 64:
        raise PolicyError(f"{name_of(policy)}: streams: found {streams!r}, expected 1 to 64")
    open_blocks = getattr(policy, "open_blocks", 1)
    if isinstance(open_blocks, bool) or not isinstance(open_blocks, int) or open_blocks < 1:
        raise PolicyError(
            f"{name_of(policy)}: open_blocks: found {open_blocks!r}, expected 1 or more"
        )
    batch = getattr(policy, "batch", 0)
    if isinstance(batch, bool) or not isinstance(batch, int) or not 0 <= batch < 2**32:
        raise PolicyError(f"{name_of(policy)}: batch: found {batch!r}, expected 0 or more")
    reads = getattr(policy, "reads", ())
    if not isinstance(reads, tuple) or not set(reads) <= {"age", "erases", "stream"}:
        raise PolicyError(
            f"{name_of(policy)}: reads: found {reads!r}, expected a tuple of 'age', 'erases' and 'stream'"
        )
    by = getattr(policy, "by", "block")
    if by not in ("block", "page"):
        raise PolicyError(f"{name_of(policy)}: by: found {by!r}, expected 'block' or 'page'")
    if by == "page" and getattr(policy, "padding", False):
        raise PolicyError(
            f"{name_of(policy)}: padding: found with by = 'page', expected by = 'block'"
        )


@dataclass(frozen=True)
class _Handed:
    """A policy as the core takes it."""

    key: str
    name: str
    make: Callable[[int, dict[str, Any]], Policy]
    about: str
    streams: int
    moves: bool
    by_block: bool
    keeps_reads: bool
    reads_are_uses: bool
    padding: bool
    admits: bool
    open_blocks: int
    cleans: bool
    reads: list[str] | None
    batch: int | None
    follows_pages: bool
    idle: bool
    one_at_a_time: bool


@checked(policies=None)
def handed(policies: Sequence[Given]) -> list[_Handed]:
    """The policies of a run as the core takes them."""
    expect_policies(policies)
    return [
        _Handed(
            key=policy.key,
            name=name_of(policy),
            make=_maker(policy),
            about=json.dumps(_about(policy)),
            streams=getattr(policy, "streams", 1),
            moves=getattr(_class(policy), "moved", None) is not PlacementPolicy.moved,
            by_block=getattr(policy, "by", "block") == "block",
            keeps_reads=bool(getattr(policy, "keeps_reads", False)),
            reads_are_uses=bool(getattr(policy, "reads_are_uses", False)),
            padding=bool(getattr(policy, "padding", False)),
            admits=getattr(_class(policy), "admit", None) is not BufferPolicy.admit,
            open_blocks=getattr(policy, "open_blocks", 1),
            cleans=getattr(_class(policy), "clean", None) is not TranslationLayer.clean,
            reads=list(getattr(policy, "reads", ()))
            if issubclass(_class(policy), ScoredVictimPolicy)
            else None,
            batch=getattr(policy, "batch", None)
            if issubclass(_class(policy), ScoredMapCachePolicy)
            else None,
            follows_pages=any(
                getattr(_class(policy), name, None) is not getattr(MapPrefetchPolicy, name)
                for name in ("page_came", "page_left")
            ),
            idle=bool(getattr(policy, "idle", False)),
            one_at_a_time=bool(getattr(policy, "one_at_a_time", False)),
        )
        for policy in policies
    ]


def _maker(policy: Given) -> Callable[[int, dict[str, Any]], Policy]:
    def make(seed: int, about: dict[str, Any]) -> Policy:
        instance: Any = policy() if isinstance(policy, type) else copy.deepcopy(policy)
        import numpy as np

        instance.rng = np.random.default_rng(seed)
        if "flash" in about:
            instance.flash = about.pop("flash")
        instance.begin(policy._info(**about))
        made: Policy = instance
        return made

    return make


def _about(policy: Given) -> dict[str, object]:
    """What a result tells of a policy, so that a reader knows what ran."""
    made = _class(policy)
    file, digest = _source(made)
    return {
        "key": policy.key,
        "name": name_of(policy),
        "module": made.__module__,
        "class": made.__qualname__,
        "file": file,
        "source_sha256": digest,
        "settings": _settings(policy),
    }


def _settings(policy: Given) -> dict[str, object]:
    """The parameters of a policy that is an object; of what JSON has no value for, its type."""
    plain = (bool, int, float, str, type(None))
    settings = {} if isinstance(policy, type) else vars(policy)
    return {
        key: value if isinstance(value, plain) and _is_json(value) else _as_text(value)
        for key, value in settings.items()
    }


def _is_json(value: object) -> bool:
    """Whether JSON has a plain value: it has no infinity."""
    return not isinstance(value, float) or math.isfinite(value)


def _as_text(value: object) -> str:
    return str(value) if isinstance(value, float) else f"<{type(value).__name__}>"


def _source(made: type) -> tuple[str | None, str | None]:
    """The name of the file that holds a class, and the digest of it; of the class's own text where there is no file."""
    try:
        path = Path(inspect.getsourcefile(made) or "")
        if path.is_file():
            return path.name, hashlib.sha256(path.read_bytes()).hexdigest()
        return None, hashlib.sha256(inspect.getsource(made).encode()).hexdigest()
    except (OSError, TypeError):
        return None, None


_LIBRARIES = ("site-packages", "<frozen", str(Path(__file__).parents[2]))


def _message_of(error: BaseException) -> str:
    """What was raised, and where in the user's file, in a line."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not any(part in frame.filename for part in _LIBRARIES)]
    lines = str(error).splitlines()
    what = type(error).__name__ + (f": {lines[0]}" if lines else "")
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return f"{what} (line {error.lineno})"
    for frame in (own or list(frames))[-1:]:
        what += f" ({Path(frame.filename).name}, line {frame.lineno})"
    return what
