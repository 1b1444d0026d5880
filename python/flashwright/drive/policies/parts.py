"""Smaller parts of a drive in Python: when it cleans, how it levels wear, what leaves and enters a cached map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, SupportsIndex, TypeAlias

from flashwright._core import MapEntries, PlaneWear
from flashwright.drive.policies.kinds import Policy

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "CleaningSchedule",
    "MapCacheInfo",
    "MapCachePolicy",
    "MapPrefetchPolicy",
    "Occasion",
    "PlaneInfo",
    "ScheduleInfo",
    "ScoredMapCachePolicy",
    "WearPolicy",
]

Occasion: TypeAlias = Literal["written", "ended", "idle"]
"""Why a schedule is asked: the host wrote to the plane, the plane's last steps have ended, or its die is idle."""


@dataclass(frozen=True)
class ScheduleInfo:
    """What a schedule serves: a plane.

    Attributes
    ----------
    number : int
        The plane's number.
    free_blocks_min : int
        A write cleans whole blocks at once where there are no more free blocks than this (``gc.free-blocks-min``).
    pages_per_block : int
        Pages of a block.
    spare_blocks : int
        The most free blocks that a full plane can have.
    """

    number: int
    free_blocks_min: int
    pages_per_block: int
    spare_blocks: int


class CleaningSchedule(Policy):
    """Says when a plane cleans, and how much; in the place of ``gc.schedule``, under page and dftl.

    There is one instance a plane. A write that finds no room cleans whole blocks at once, whatever a schedule says.

    Attributes
    ----------
    idle : bool
        Whether it is asked too when the plane's die is idle; needs a model of time.
    one_at_a_time : bool
        Whether it is asked after a write only if the plane's last steps have ended; needs a model of time.

    Examples
    --------
    Below a mark of free blocks one step, then the host's turn, as ``gc.schedule = "preemptive"`` does:

    >>> class Preemptive(CleaningSchedule):
    ...     one_at_a_time = True
    ...
    ...     def steps(self, occasion, pages, free_blocks, copies):
    ...         return 1 if free_blocks < 4 else 0
    """

    key = "gc.schedule"
    idle: bool = False
    one_at_a_time: bool = False
    _asks = ("steps",)
    _info = ScheduleInfo

    def begin(self, plane: ScheduleInfo) -> None:
        """Get ready for a plane; called once, when the drive is built.

        Parameters
        ----------
        plane : ScheduleInfo
            What this instance serves.
        """

    def steps(self, occasion: Occasion, pages: int, free_blocks: int, copies: int) -> SupportsIndex:
        """Name the steps of cleaning that the plane makes now; a step is a page copied or a block erased.

        Parameters
        ----------
        occasion : {"written", "ended", "idle"}
            Why it is asked.
        pages : int
            Pages that the host has written to the plane since it was asked last; 0 on other occasions.
        free_blocks : int
            Free blocks of the plane.
        copies : int
            Valid pages of the block that is being cleaned, when it was chosen; of the last one if none is.

        Returns
        -------
        int
            0 or more.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class PlaneInfo:
    """What a wear policy serves: a plane.

    Attributes
    ----------
    number : int
        The plane's number.
    blocks : int
        Its blocks, bad ones included.
    """

    number: int
    blocks: int


class WearPolicy(Policy):
    """Says which data move so that blocks wear evenly; in the place of ``wear.policy``, under page and dftl.

    There is one instance a plane.

    Examples
    --------
    Above a gap, data of the least worn block move into the most worn free one, as ``wear.policy = "threshold"`` does:

    >>> class Threshold(WearPolicy):
    ...     def __init__(self, gap=32):
    ...         self.gap = gap
    ...
    ...     def recycle(self, plane, nth):
    ...         if nth > 0 or not len(plane.sealed) or not len(plane.free):
    ...             return None
    ...         wear, sealed, free = plane.wear, plane.sealed, plane.free
    ...         block, into = sealed[wear[sealed].argmin()], free[wear[free].argmax()]
    ...         too_far = plane.wear_max - wear[block] > self.gap
    ...         return (block, into) if too_far and wear[into] > wear[block] else None
    """

    key = "wear.policy"
    _asks = ("recycle",)
    _info = PlaneInfo

    def begin(self, plane: PlaneInfo) -> None:
        """Get ready for a plane; called once, when the drive is built.

        Parameters
        ----------
        plane : PlaneInfo
            What this instance serves.
        """

    def recycle(
        self, plane: PlaneWear, nth: int
    ) -> SupportsIndex | tuple[SupportsIndex, SupportsIndex] | None:
        """Name a block whose data move, or none. Called once the plane has cleaned, and after each such move again.

        Parameters
        ----------
        plane : PlaneWear
            The blocks: ``wear`` and ``valid`` by block, the numbers of the ``sealed`` and of the ``free`` ones, and
            ``wear_max`` of all in use; shows them during the call only. Wear counts erases, or, where budgets differ,
            how many fewer are left than the largest budget.
        nth : int
            Moves since the clean.

        Returns
        -------
        int, pair of int, or None
            One of ``plane.sealed``; with one of ``plane.free``, which takes its pages.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class MapCacheInfo:
    """What a replacement or a prefetch policy serves: the cached map of a drive.

    Attributes
    ----------
    entries : int
        Entries that it holds. RAM that is shared with a cache of data may change that later.
    entries_per_page : int
        Entries of a translation page.
    """

    entries: int
    entries_per_page: int


class MapCachePolicy(Policy):
    """Says which entry leaves the cached map; in the place of ``ftl.dftl.replacement``, under dftl.

    Entries have slots, by which the calls name them; a slot is used again once its entry has left. There is one
    instance a drive. Entries of a translation page leave one by one, as with all native policies but ``grouped``.

    Examples
    --------
    The least recently used entry leaves, as with ``ftl.dftl.replacement = "lru"``:

    >>> class Lru(MapCachePolicy):
    ...     def begin(self, cache):
    ...         self.order = {}
    ...
    ...     def loaded(self, slot, page):
    ...         self.order[slot] = page
    ...
    ...     def used(self, slot):
    ...         self.order[slot] = self.order.pop(slot)
    ...
    ...     def left(self, slot):
    ...         del self.order[slot]
    ...
    ...     def evict(self):
    ...         return next(iter(self.order))
    """

    key = "ftl.dftl.replacement"
    _asks = ("loaded", "used", "left", "evict")
    _info = MapCacheInfo

    def begin(self, cache: MapCacheInfo) -> None:
        """Get ready for an empty cache; called once, when the drive is built.

        Parameters
        ----------
        cache : MapCacheInfo
            What this instance serves.
        """

    def loaded(self, slot: int, page: int) -> None:
        """Take note that an entry came in.

        Parameters
        ----------
        slot : int
            Where it is kept.
        page : int
            Its translation page.
        """
        raise NotImplementedError

    def used(self, slot: int) -> None:
        """Take note that an entry was looked up and found.

        Parameters
        ----------
        slot : int
            Where it is kept.
        """
        raise NotImplementedError

    def left(self, slot: int) -> None:
        """Take note that an entry has left.

        Parameters
        ----------
        slot : int
            Where it was kept.
        """
        raise NotImplementedError

    def evict(self) -> SupportsIndex:
        """Name the slot whose entry leaves. There is at least one.

        Returns
        -------
        int
            A slot with an entry.
        """
        raise NotImplementedError


class ScoredMapCachePolicy(Policy):
    """Rates the entries of the cached map, of which the highest leave; in the place of ``ftl.dftl.replacement``.

    One rating serves many evictions: the entries of the highest scores leave one after another, ``batch`` of them. One
    that is used meanwhile stays, and one that came meanwhile waits for the next rating. Of equal scores the entry used
    longest ago leaves first. There is one instance a drive, under dftl. It hears of no single lookup, so it costs less
    than a MapCachePolicy.

    Attributes
    ----------
    batch : int
        Entries that leave by one rating; 0 for an eighth of those that the cache holds. With 1 each eviction asks.

    Examples
    --------
    The least recently used entry leaves, as with ``ftl.dftl.replacement = "lru"``:

    >>> class Lru(ScoredMapCachePolicy):
    ...     def score(self, entries):
    ...         return entries.age
    """

    key = "ftl.dftl.replacement"
    batch: int = 0
    _asks = ("score",)
    _info = MapCacheInfo

    def begin(self, cache: MapCacheInfo) -> None:
        """Get ready for an empty cache; called once, when the drive is built.

        Parameters
        ----------
        cache : MapCacheInfo
            What this instance serves.
        """

    def score(self, entries: MapEntries) -> npt.NDArray[np.float64]:
        """Rate the entries; the highest leaves first.

        Parameters
        ----------
        entries : MapEntries
            By entry: lookups since its last use (``age``) and since it came (``held_for``), the ``uses`` meanwhile,
            its translation ``page``, and whether it is newer than that (``dirty``), which costs a write; shows them
            during the call only.

        Returns
        -------
        ndarray of float64
            A number for each entry.
        """
        raise NotImplementedError


class MapPrefetchPolicy(Policy):
    """Says which entries come into the cached map with one that was missed; in the place of ``ftl.dftl.prefetch``.

    The translation page of the missing entry is read anyhow, so what is loaded of it costs no read. It costs room:
    other entries leave, which may have to be written. Where ``ftl.dftl.prefetch-evicts`` limits that, or the cache is
    small, fewer entries come in than the policy names, the nearest first. An entry that is cached stays as it is.
    There is one instance a drive, under dftl.

    Examples
    --------
    The rest of the request, as with ``ftl.dftl.prefetch = "request"``:

    >>> class Request(MapPrefetchPolicy):
    ...     def prefetch(self, lpn, rest, after, cached_before):
    ...         return min(rest, after)
    """

    key = "ftl.dftl.prefetch"
    _asks = ("prefetch",)
    _info = MapCacheInfo

    def begin(self, cache: MapCacheInfo) -> None:
        """Get ready for an empty cache; called once, when the drive is built.

        Parameters
        ----------
        cache : MapCacheInfo
            What this instance serves.
        """

    def prefetch(
        self, lpn: int, rest: int, after: int, cached_before: int
    ) -> SupportsIndex | tuple[SupportsIndex, SupportsIndex]:
        """Name the entries that are loaded beside one that was missed.

        Parameters
        ----------
        lpn : int
            The logical page whose entry is missing. Its place in the translation page is ``lpn % entries_per_page``.
        rest : int
            Pages of the request after it.
        after : int
            Entries of its translation page after it.
        cached_before : int
            Cached entries of its translation page that directly precede it, without a gap.

        Returns
        -------
        int or pair of int
            How many of those after it, 0 to ``after``; in a pair also how many of those before it, 0 to
            ``lpn % entries_per_page``.
        """
        raise NotImplementedError

    def page_came(self, page: int) -> None:
        """Take note that a translation page has its first entry in the cache. Called only for a class that has it.

        Parameters
        ----------
        page : int
            The translation page.
        """

    def page_left(self, page: int) -> None:
        """Take note that the last entry of a translation page left the cache. Called only for a class that has it.

        Parameters
        ----------
        page : int
            The translation page.
        """
