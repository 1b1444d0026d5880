"""A whole translation layer in Python: what it is told, what it is asked, and the flash that it works on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from flashwright._core import Flash
from flashwright.drive.policies.kinds import Policy

__all__ = ["Cause", "FlashInfo", "TranslationLayer"]

Cause: TypeAlias = Literal[
    "host", "gc", "merge", "padding", "translation", "gc-translation", "wear"
]
"""What an operation of the flash counts under: ``host`` is what the host asked for, the others are the layer's work."""


@dataclass(frozen=True)
class FlashInfo:
    """The drive that a translation layer is made for.

    Pages, blocks and planes are counted through the drive: page p lies in block ``p // pages_per_block``, block b in
    plane ``b // blocks_per_plane``.

    Attributes
    ----------
    logical_pages : int
        Pages that the drive offers to the host. Pages of the layer's own tables have owners from this number on.
    channels, dies_per_channel, planes_per_die : int
        How planes lie on dies, and dies on channels.
    blocks_per_plane : int
        Blocks of a plane, bad ones included.
    pages_per_block : int
        Pages of a block.
    page_bytes : int
        Bytes of a page.
    plane_order : tuple of int
        The planes in the order in which they take turns (``placement.order``).
    free_blocks_min : int
        Free blocks that a plane keeps for cleaning (``gc.free-blocks-min``).
    entry_bytes : int
        Bytes of an entry of a map (``ftl.entry-bytes``).
    """

    logical_pages: int
    channels: int
    dies_per_channel: int
    planes_per_die: int
    blocks_per_plane: int
    pages_per_block: int
    page_bytes: int
    plane_order: tuple[int, ...]
    free_blocks_min: int
    entry_bytes: int

    @property
    def planes(self) -> int:
        """Planes of the drive."""
        return self.channels * self.dies_per_channel * self.planes_per_die

    @property
    def blocks(self) -> int:
        """Blocks of the drive, bad ones included."""
        return self.planes * self.blocks_per_plane

    @property
    def pages(self) -> int:
        """Pages of the flash."""
        return self.blocks * self.pages_per_block


class TranslationLayer(Policy):
    """Says what the flash does; in the place of ``ftl.scheme``.

    There is one instance a drive. The drive calls it for what the host wants, and it answers by steps of :attr:`flash`,
    which refuses what is not legal (:class:`~flashwright.errors.PolicyError`), counts and times what is, and keeps the
    content of pages. What is programmed last for a logical page is its newest copy, and valid; older copies are not, so
    a layer never marks pages.

    Attributes
    ----------
    flash : Flash
        The flash of the drive. It answers while the drive calls ``begin``, ``read``, ``write``, ``trim`` or ``clean``.
    open_blocks : int
        Blocks of a plane that the layer fills side by side.

    Examples
    --------
    A page map that never cleans, and so takes what fits once:

    >>> from flashwright import Ssd
    >>> from flashwright.errors import OutOfSpaceError
    >>> class Once(TranslationLayer):
    ...     open_blocks = 1
    ...
    ...     def begin(self, drive):
    ...         self.pages, self.next, self.where = drive.pages, 0, {}
    ...
    ...     def write(self, first, pages):
    ...         for lpn in range(first, first + pages):
    ...             if self.next == self.pages:
    ...                 raise OutOfSpaceError
    ...             self.flash.program(self.next, lpn)
    ...             self.where[lpn] = self.next
    ...             self.next += 1
    ...
    ...     def trim(self, first, pages):
    ...         for lpn in range(first, first + pages):
    ...             self.where.pop(lpn, None)
    ...
    ...     def lookup(self, lpn):
    ...         return self.where.get(lpn)
    >>> ssd = Ssd.named("default").with_(blocks_per_plane=64)
    >>> run = ssd.play("uniform:write=0.5", requests=1_000, policies=[Once], verify=True)
    >>> run.json["config"]["ftl"]["scheme"], run.write_amplification
    ('python:Once', 1.0)
    """

    key = "ftl.scheme"
    flash: Flash
    open_blocks: int = 2
    _asks = ("write", "trim", "lookup")
    _info = FlashInfo

    def begin(self, drive: FlashInfo) -> None:
        """Get ready for a drive; called once, over erased flash.

        Pages of the layer's own tables that it programs here are part of making the drive: neither counted nor timed.

        Parameters
        ----------
        drive : FlashInfo
            What this instance serves.
        """

    def read(self, first: int, pages: int) -> None:
        """Answer a read of the host: for each page ``flash.read`` or ``flash.read_unmapped``, once.

        By default from what :meth:`lookup` names.

        Parameters
        ----------
        first : int
            The first logical page.
        pages : int
            How many follow each other from there.
        """
        for lpn in range(first, first + pages):
            page = self.lookup(lpn)
            if page is None:
                self.flash.read_unmapped(lpn)
            else:
                self.flash.read(page, lpn)

    def write(self, first: int, pages: int) -> None:
        """Write what the host sends: ``flash.program`` for each page, once; cleaning first where space is short.

        Parameters
        ----------
        first : int
            The first logical page.
        pages : int
            How many follow each other from there.

        Raises
        ------
        OutOfSpaceError
            If a page can't be placed. Pages before it are written, the others keep their content.
        """
        raise NotImplementedError

    def trim(self, first: int, pages: int) -> None:
        """Forget the content of pages. Their copies are valid until ``flash.forget``, or until this returns.

        Parameters
        ----------
        first : int
            The first logical page.
        pages : int
            How many follow each other from there.
        """
        raise NotImplementedError

    def clean(self, plane: int, budget: int) -> None:
        """Clean a plane while no write waits. Needed for a ``gc.schedule`` other than ``foreground``.

        Parameters
        ----------
        plane : int
            The plane.
        budget : int
            The steps that the schedule asks for: pages copied or programmed, and blocks erased. A layer that may not
            stop half-way makes more.
        """

    def lookup(self, lpn: int) -> int | None:
        """Name the page that the map has for a logical page, without a step of the flash; audits ask for all.

        Parameters
        ----------
        lpn : int
            The logical page.

        Returns
        -------
        int or None
            The page of the flash; None if it holds nothing.
        """
        raise NotImplementedError

    def figures(self) -> Mapping[str, float]:
        """Name figures of the layer's own, which results show.

        ``ram_bytes`` is the RAM of its tables; ``cache_lookups``, ``cache_hits``, ``cache_evictions`` and
        ``cache_dirty_evictions`` are those of a cached map. Cleans and the pages that they gain need not be told.

        Returns
        -------
        mapping
            Numbers by name, the unit last.
        """
        return {}

    def reset_figures(self) -> None:
        """Begin the counts of :meth:`figures` anew: measuring begins."""
