"""The kinds of policy that can be written in Python, and what each is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, SupportsIndex, TypeAlias, Union

from flashwright._core import Buffer, Kinds, Unit

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "BufferPolicy",
    "DriveInfo",
    "Given",
    "PlacementPolicy",
    "Policy",
    "RamInfo",
    "ScoredVictimPolicy",
    "Streams",
    "UnitInfo",
    "VictimPolicy",
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
    """What all kinds of policies share.

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
    _asks: ClassVar[tuple[str, ...]]
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
    _asks = ("pick",)
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


class ScoredVictimPolicy(Policy):
    """Rates kinds of sealed blocks, of which the best is cleaned; in the place of ``gc.victim``, as a VictimPolicy is.

    Blocks are of one kind if they agree in all that the class reads of them. A plane of thousands of blocks has some
    dozens of kinds, so this costs less than ``pick`` over all blocks. Of the kind with the highest score the block
    sealed first is cleaned; with ``age`` the one that has not changed for longest. Among kinds of one score the block
    sealed first decides. A block without a valid page goes before all others, unasked. There is one instance a unit.

    Attributes
    ----------
    reads : tuple of {"age", "erases", "stream"}
        What it reads beside ``kinds.valid``. Without ``age`` scores are kept, and ``score`` is called only for what was
        not there before; so it must not depend on ``kinds.now`` or on chance. With ``age`` it is called once a clean,
        for the oldest block of each kind; a score must not fall as the age grows.

    Examples
    --------
    Greedy, and cost-benefit cleaning, which choose just as ``gc.victim`` of these names does:

    >>> class Greedy(ScoredVictimPolicy):
    ...     def score(self, kinds):
    ...         return -kinds.valid
    >>> class CostBenefit(ScoredVictimPolicy):
    ...     reads = ("age",)
    ...
    ...     def score(self, kinds):
    ...         return (kinds.pages_per_block - kinds.valid) * kinds.age / kinds.valid
    """

    key = "gc.victim"
    reads: tuple[Literal["age", "erases", "stream"], ...] = ()
    _asks = ("score",)
    _info = UnitInfo

    def begin(self, unit: UnitInfo) -> None:
        """Get ready for a unit; called once, when the drive is built.

        Parameters
        ----------
        unit : UnitInfo
            What this instance serves.
        """

    def score(self, kinds: Kinds) -> npt.NDArray[np.float64]:
        """Rate kinds of blocks; the highest is cleaned.

        Parameters
        ----------
        kinds : Kinds
            Their ``valid`` pages (1 or more) and what ``reads`` lists, as arrays; shows them during the call only.

        Returns
        -------
        ndarray of float64
            A number for each kind.
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
    _asks = ("host",)
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
    _asks = ("choose",)
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

    def admit(self, first: int, pages: int, is_write: bool) -> bool:
        """Say whether the pages of a request come into RAM; a class without it takes them all.

        Called once for each write, and, with ``keeps_reads``, for each read of which RAM lacks a page. A write that is
        not admitted goes to flash at once, and what RAM held of its pages is dropped; of a read nothing is kept.

        Parameters
        ----------
        first : int
            The first logical page.
        pages : int
            How many there are.
        is_write : bool
            Whether the host writes them.

        Returns
        -------
        bool
            Whether they come in.
        """
        return True


Given: TypeAlias = Policy | type[Policy]
"""A policy as it is handed to a run: a class, or an object to be copied."""
