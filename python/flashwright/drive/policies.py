"""Policies written in Python that run inside the native simulator: one class, handed to the run.

A victim policy says which block is cleaned, a placement policy which stream a page goes to, a buffer policy what
leaves the drive's RAM. Each takes the place of the one that the drive's configuration names; all else stays native. The
drive's tables come as NumPy arrays, so a choice among hundreds of blocks is a few array operations.

Examples
--------
>>> from flashwright import Ssd
>>> from flashwright.drive.policies import VictimPolicy
>>> class Greedy(VictimPolicy):
...     def pick(self, unit):
...         return unit.blocks[unit.valid.argmin()]
>>> ssd = Ssd.named("default").with_(blocks_per_plane=64).precondition("random")
>>> own = ssd.play("uniform", requests=20_000, policies=[Greedy])
>>> native = ssd.with_(victim="greedy").play("uniform", requests=20_000)
>>> own.json["digest"] == native.json["digest"]
True
>>> own.json["config"]["gc"]["victim"]
'python:Greedy'
"""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import inspect
import json
import math
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, SupportsIndex, TypeAlias, Union

from flashwright._core import Buffer, Unit
from flashwright.errors import PolicyError
from flashwright.support.arguments import checked

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "Buffer",
    "BufferPolicy",
    "DriveInfo",
    "Given",
    "PlacementPolicy",
    "Policy",
    "RamInfo",
    "Streams",
    "Unit",
    "UnitInfo",
    "VictimPolicy",
    "expect_policies",
    "handed",
    "load",
    "name_of",
]

# What NumPy is in stands as text, so that a run without such a policy need not import it.
Streams: TypeAlias = Union[
    SupportsIndex,
    Sequence[int],
    "np.bool_",
    "npt.NDArray[np.int64]",
    "npt.NDArray[np.uint8]",
    "npt.NDArray[np.bool_]",
]
"""One stream for all pages, or one for each of them; truth values stand for streams 0 and 1."""


@dataclass(frozen=True)
class UnitInfo:
    """What an instance of a victim policy serves: a unit of cleaning, which is a plane.

    Attributes
    ----------
    number : int
        The unit's number.
    blocks : int
        Its blocks, in whatever state.
    pages_per_block : int
        Pages of a block.
    streams : int
        Streams of placement, each with an open block.
    logical_pages : int
        Pages that the whole drive offers to the host.
    """

    number: int
    blocks: int
    pages_per_block: int
    streams: int
    logical_pages: int


@dataclass(frozen=True)
class DriveInfo:
    """What a placement policy serves: a whole drive.

    Attributes
    ----------
    blocks : int
        Its blocks.
    pages_per_block : int
        Pages of a block.
    physical_pages : int
        Pages of the flash.
    logical_pages : int
        Pages that the drive offers to the host.
    """

    blocks: int
    pages_per_block: int
    physical_pages: int
    logical_pages: int


@dataclass(frozen=True)
class RamInfo:
    """What a buffer policy serves: the RAM of a drive.

    Attributes
    ----------
    pages : int
        Pages that it holds.
    pages_per_block : int
        Pages of a block.
    logical_pages : int
        Pages that the drive offers to the host.
    """

    pages: int
    pages_per_block: int
    logical_pages: int


class Policy:
    """What the three kinds of policies share.

    What is handed to a run is a pattern. A class is called without arguments, an object is copied deeply, once for each
    thing that an instance serves; so nothing is carried from one run to the next, nor from one unit to another.

    Attributes
    ----------
    rng : numpy.random.Generator
        Chance for this instance, drawn from the run's seed. A policy that takes its chance from here gives the same run
        for the same seed.
    """

    key: ClassVar[str]
    """The configuration key of the policy whose place it takes."""
    rng: np.random.Generator
    _asks: ClassVar[str]
    _info: ClassVar[type]


class VictimPolicy(Policy):
    """Says which sealed block is cleaned; in the place of ``gc.victim``, under translation by pages (page, dftl).

    There is one instance a unit.

    Examples
    --------
    Cost-benefit cleaning (Kawaguchi 1995), choosing just as ``gc.victim = "cost-benefit"`` does:

    >>> class CostBenefit(VictimPolicy):
    ...     def pick(self, unit):
    ...         dead = unit.valid.argmin()
    ...         if unit.valid[dead] == 0:
    ...             return unit.blocks[dead]
    ...         score = (unit.pages_per_block - unit.valid) * unit.age / unit.valid
    ...         return unit.blocks[score.argmax()]
    """

    key = "gc.victim"
    _asks = "pick"
    _info = UnitInfo

    def begin(self, unit: UnitInfo) -> None:
        """Get ready for a unit; called once, when the drive is built.

        Parameters
        ----------
        unit : UnitInfo
            What this instance serves.
        """

    def pick(self, unit: Unit) -> SupportsIndex:
        """Name the block to clean. At least one is sealed.

        Parameters
        ----------
        unit : Unit
            The sealed blocks, in the order in which they were sealed; shows them during the call only.

        Returns
        -------
        int
            One of ``unit.blocks``.
        """
        raise NotImplementedError


class PlacementPolicy(Policy):
    """Says which stream a page goes to; in the place of ``placement.policy``, under translation by pages (page, dftl).

    A stream has an open block of its own in each plane, so pages of different streams never share a block. There is one
    instance a drive. It is asked once for all pages of a host request, and once for all pages that a clean moves; plain
    numbers instead of objects keep such a call short.

    Attributes
    ----------
    streams : int
        How many streams there are, 1 to 64.

    Examples
    --------
    What was written again soon is hot, and shares no block with what was not:

    >>> class Recent(PlacementPolicy):
    ...     streams = 2
    ...
    ...     def begin(self, drive):
    ...         self.within = drive.logical_pages // 10
    ...         self.written = [-(2**62)] * drive.logical_pages
    ...
    ...     def host(self, first, pages, stream, now):
    ...         hot = []
    ...         for lpn in range(first, first + pages):
    ...             hot.append(now - self.written[lpn] <= self.within)
    ...             self.written[lpn] = now
    ...         return hot
    ...
    ...     def moved(self, lpns, stream, now):
    ...         return 0
    """

    key = "placement.policy"
    streams: int = 2
    _asks = "host"
    _info = DriveInfo

    def begin(self, drive: DriveInfo) -> None:
        """Get ready for a drive; called once, when it is built.

        Parameters
        ----------
        drive : DriveInfo
            What this instance serves.
        """

    def host(self, first: int, pages: int, stream: int, now: int) -> Streams:
        """Name the stream of pages that the host writes.

        Parameters
        ----------
        first : int
            The first logical page.
        pages : int
            How many follow each other from there.
        stream : int
            The stream that the workload names; 0 where it names none.
        now : int
            Host page writes so far, these included.

        Returns
        -------
        int, sequence of int, or array
            One stream for all, or one for each page.
        """
        raise NotImplementedError

    def moved(self, lpns: npt.NDArray[np.int64], stream: int, now: int) -> Streams:
        """Name the stream of pages that a clean moves. A class without this method leaves them in their stream.

        Under dftl it may be asked twice for the same pages.

        Parameters
        ----------
        lpns : ndarray of int64
            The logical pages, in the order in which they lie.
        stream : int
            The stream of the block that they leave.
        now : int
            Host page writes so far.

        Returns
        -------
        int, sequence of int, or array
            One stream for all, or one for each page.
        """
        return stream


class BufferPolicy(Policy):
    """Says what leaves the RAM of a drive when room is needed; in the place of ``ram.manager``.

    The simulator keeps the pages that RAM holds in groups, in the order of their last use, and the policy names the
    group that leaves: its pages that are newer than flash are written, the others dropped. ``ram.size`` says how much
    RAM there is. There is one instance a drive.

    Attributes
    ----------
    by : {"block", "page"}
        What a group is.
    keeps_reads : bool
        Whether pages read from flash are kept too (a cache), or written ones only (a write buffer).
    reads_are_uses : bool
        Whether a read of a page held is a use of its group. A write always is.
    padding : bool
        Whether a block that leaves is completed with its other pages from flash; needs ``by = "block"``.

    Examples
    --------
    The block with most pages leaves, among equals the one used longest ago (FAB, Jo 2006):

    >>> class Fab(BufferPolicy):
    ...     keeps_reads = reads_are_uses = True
    ...
    ...     def choose(self, buffer):
    ...         return buffer.blocks[buffer.pages.argmax()]
    """

    key = "ram.manager"
    by: Literal["block", "page"] = "block"
    keeps_reads: bool = False
    reads_are_uses: bool = False
    padding: bool = False
    _asks = "choose"
    _info = RamInfo

    def begin(self, ram: RamInfo) -> None:
        """Get ready for a drive; called once, when it is built.

        Parameters
        ----------
        ram : RamInfo
            What this instance serves.
        """

    def choose(self, buffer: Buffer) -> SupportsIndex:
        """Name the block (or the page) that leaves.

        Parameters
        ----------
        buffer : Buffer
            The groups held, the one used longest ago first; shows them during the call only.

        Returns
        -------
        int
            One of ``buffer.blocks``.
        """
        raise NotImplementedError


Given: TypeAlias = Policy | type[Policy]
"""A policy as it is handed to a run: a class, or an object to be copied."""

_KINDS = (VictimPolicy, PlacementPolicy, BufferPolicy)
_EXPECTED = "expected a class or an object of VictimPolicy, PlacementPolicy or BufferPolicy"


@checked()
def load(text: str) -> type[Policy]:
    """The class that ``FILE.py:CLASS`` names. The file is run.

    Parameters
    ----------
    text : str
        The path of a Python file, a colon, and the name of a class in it.

    Returns
    -------
    type
        The class.

    Raises
    ------
    PolicyError
        If there is no such file or class, or the file can't be run.

    Examples
    --------
    >>> load("mine.py:Greedy")
    Traceback (most recent call last):
    ...
    flashwright.errors.PolicyError: mine.py: no such file or directory
    """
    path, colon, name = text.rpartition(":")
    if not colon or not path or not name:
        raise PolicyError(
            f"policy: found {text!r}, expected FILE.py:CLASS",
            "such as mine.py:CostBenefit",
            parameters=["policy"],
        )
    module = _module(Path(path))
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
    return found


def _module(path: Path) -> ModuleType:
    try:
        path.read_bytes()
    except OSError as error:
        raise PolicyError(f"{path}: {(error.strerror or str(error)).lower()}", "") from None
    name = f"flashwright_policy_{path.stem}"
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
        raise PolicyError(f"{path}: {_told(error)}") from error
    return module


def name_of(policy: Given) -> str:
    """What results and messages call a policy.

    Examples
    --------
    >>> name_of(VictimPolicy)
    'python:VictimPolicy'
    """
    return f"python:{_class(policy).__name__}"


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
    if getattr(made, made._asks) is getattr(base, made._asks):
        raise PolicyError(f"{name_of(policy)}: found no method {made._asks}, expected one")
    streams = getattr(policy, "streams", 1)
    if isinstance(streams, bool) or not isinstance(streams, int) or not 1 <= streams <= 64:
        raise PolicyError(f"{name_of(policy)}: streams: found {streams!r}, expected 1 to 64")
    by = getattr(policy, "by", "block")
    if by not in ("block", "page"):
        raise PolicyError(f"{name_of(policy)}: by: found {by!r}, expected 'block' or 'page'")
    if by == "page" and getattr(policy, "padding", False):
        raise PolicyError(
            f"{name_of(policy)}: padding: found it with by = 'page', expected by = 'block'"
        )


@dataclass(frozen=True)
class _Handed:
    """A policy as the core takes it."""

    key: str
    name: str
    make: Callable[[int, dict[str, int]], Policy]
    about: str
    streams: int
    moves: bool
    by_block: bool
    keeps_reads: bool
    reads_are_uses: bool
    padding: bool


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
        )
        for policy in policies
    ]


def _maker(policy: Given) -> Callable[[int, dict[str, int]], Policy]:
    def make(seed: int, about: dict[str, int]) -> Policy:
        instance: Any = policy() if isinstance(policy, type) else copy.deepcopy(policy)
        import numpy as np

        instance.rng = np.random.default_rng(seed)
        instance.begin(policy._info(**about))
        made: Policy = instance
        return made

    return make


def _about(policy: Given) -> dict[str, object]:
    """What a result tells of a policy, so that a reader knows what ran."""
    made = _class(policy)
    file, digest = _source(made)
    settings = {} if isinstance(policy, type) else vars(policy)
    plain = (bool, int, float, str, type(None))
    return {
        "key": policy.key,
        "name": name_of(policy),
        "module": made.__module__,
        "class": made.__qualname__,
        "file": file,
        "source_sha256": digest,
        "settings": {
            key: value if isinstance(value, plain) and _is_json(value) else _as_text(value)
            for key, value in settings.items()
        },
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


_LIBRARIES = ("site-packages", "<frozen", str(Path(__file__).parents[1]))


def _told(error: BaseException) -> str:
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
