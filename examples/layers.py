"""Two translation layers written in Python: a page map in RAM, and DFTL, whose map lies on flash.

Both decide as the native ``page`` and ``dftl`` do under ``placement.allocation = "dynamic"``, ``placement.policy =
"single"`` and ``gc.victim = "greedy"``, so every count of a run is the same. They are short because they leave out what
these settings do not need: streams of placement, other victims, wear levelling and cleaning in steps.
"""

import heapq
from collections import OrderedDict
from collections.abc import Iterator, Mapping

from flashwright.drive.policies import Cause, Flash, FlashInfo, TranslationLayer
from flashwright.errors import OutOfSpaceError


class Plane:
    """A plane's erased blocks, its open block of each stream, and the full ones in the order in which they filled."""

    def __init__(self, number: int, streams: int, drive: FlashInfo, flash: Flash) -> None:
        self.flash, self.pages = flash, drive.pages_per_block
        first = number * drive.blocks_per_plane
        blocks = range(first, first + drive.blocks_per_plane)
        self.free = [(flash.erases(block), block) for block in blocks if flash.is_good(block)]
        heapq.heapify(self.free)  # the least worn one is opened next
        self.next = [0] * streams
        self.end = [0] * streams
        self.full: dict[int, int] = {}  # block: stream

    def room(self, stream: int) -> int:
        """Pages that still fit the open block of a stream."""
        return self.end[stream] - self.next[stream]

    def open(self, stream: int) -> None:
        """Make the least worn erased block the open one of a stream."""
        _, block = heapq.heappop(self.free)
        self.next[stream] = block * self.pages
        self.end[stream] = self.next[stream] + self.pages

    def take(self, stream: int) -> int:
        """The next page of the open block of a stream; to be programmed before :meth:`close`."""
        self.next[stream] += 1
        return self.next[stream] - 1

    def close(self, stream: int) -> None:
        """If the open block of a stream is full, it may be cleaned from now on, or retires where it is worn out."""
        if not self.room(stream):
            block = self.next[stream] // self.pages - 1
            if self.flash.can_erase(block):
                self.full[block] = stream
            else:
                self.flash.retire(block)

    def fewest(self) -> int | None:
        """The full block with the fewest valid pages, of equals the one that filled first."""
        return min(self.full, key=self.flash.valid, default=None)

    def move(self, pages: list[int], stream: int, cause: Cause) -> Iterator[tuple[int, int]]:
        """Copy pages to a stream, and give each owner and its new page."""
        while pages:
            if not self.room(stream):
                self.open(stream)
            count = min(len(pages), self.room(stream))
            to = self.next[stream]
            owners = self.flash.copy(pages[:count], to, cause)
            self.next[stream] += count
            self.close(stream)
            yield from zip(owners, range(to, to + count), strict=True)
            pages = pages[count:]

    def erase(self, block: int, cause: Cause) -> None:
        """Erase a block without valid pages."""
        self.flash.erase(block, cause)
        heapq.heappush(self.free, (self.flash.erases(block), block))


class Planes(TranslationLayer):
    """What both share: planes take turns, and one that is short of erased blocks cleans."""

    streams = 1

    def begin(self, drive: FlashInfo) -> None:
        self.planes = [Plane(n, self.streams, drive, self.flash) for n in range(drive.planes)]
        self.order = [self.planes[n] for n in drive.plane_order]
        self.turn = [0] * self.streams
        self.pages_per_block, self.blocks_per_plane = drive.pages_per_block, drive.blocks_per_plane

    def plane_with_room(self, stream: int) -> Plane:
        """The plane in turn, or the next that can take a page of a stream."""
        turn = self.turn[stream]
        self.turn[stream] = (turn + 1) % len(self.order)
        for step in range(len(self.order)):
            plane = self.order[(turn + step) % len(self.order)]
            if plane.room(stream) or self.make_room(plane, stream):
                return plane
        raise OutOfSpaceError

    def make_room(self, plane: Plane, stream: int) -> bool:
        """Clean until a block can be opened, and open it."""
        raise NotImplementedError


class PageMap(Planes):
    """The whole map in RAM; of each plane the block with the fewest valid pages is cleaned."""

    open_blocks = 1

    def begin(self, drive: FlashInfo) -> None:
        super().begin(drive)
        self.where: list[int | None] = [None] * drive.logical_pages
        self.keeps = drive.free_blocks_min
        self.ram_bytes = drive.logical_pages * drive.entry_bytes

    def lookup(self, lpn: int) -> int | None:
        return self.where[lpn]

    def write(self, first: int, pages: int) -> None:
        for lpn in range(first, first + pages):
            plane = self.plane_with_room(0)
            page = plane.take(0)
            self.flash.program(page, lpn)
            self.where[lpn] = page
            plane.close(0)

    def trim(self, first: int, pages: int) -> None:
        self.where[first : first + pages] = [None] * pages

    def make_room(self, plane: Plane, stream: int) -> bool:
        while not plane.room(0):
            if len(plane.free) > self.keeps:
                plane.open(0)
            elif not self.clean_block(plane):
                return False
        return True

    def clean_block(self, plane: Plane) -> bool:
        """Clean a block, unless none has an invalid page."""
        block = plane.fewest()
        if block is None or self.flash.valid(block) == self.pages_per_block:
            return False
        del plane.full[block]
        pages, _ = self.flash.live(block)
        for lpn, page in plane.move(pages, 0, "gc"):
            self.where[lpn] = page
        plane.erase(block, "gc")
        return True

    def figures(self) -> Mapping[str, float]:
        return {"ram_bytes": self.ram_bytes}


DATA, MAP = 0, 1

ENTRY_BYTES = 8  # of a cached entry: a logical and a physical page number
COUNTS = (
    *("cleans_switch", "cleans_partial", "cleans_full", "cleans_translation"),
    *("lazy_updates", "evict_updates", "gc_updates", "gc_update_pages", "written_through_pages"),
    *("cache_lookups", "cache_hits", "cache_evictions", "cache_dirty_evictions"),
)


class Dftl(Planes):
    """DFTL (Gupta, Kim and Urgaonkar, ASPLOS 2009): the map on flash, the entries used last in RAM."""

    streams = 2
    open_blocks = 3  # of data, of the map, and one of the map that is cleaned before it is full

    def __init__(self, entries: int = 4096) -> None:
        self.entries = entries

    def begin(self, drive: FlashInfo) -> None:
        super().begin(drive)
        self.logical_pages = drive.logical_pages
        self.on_map_page = drive.page_bytes // drive.entry_bytes
        self.stored: list[int | None] = [None] * drive.logical_pages  # what the map on flash says
        self.cached: OrderedDict[int, int | None] = OrderedDict()  # the entry used last comes last
        # By page of the map: entries that are newer in RAM.
        self.dirty: list[set[int]] = [
            set() for _ in range(-(-drive.logical_pages // self.on_map_page))
        ]
        self.directory: list[int] = []
        self.keeps = max(drive.free_blocks_min, 3)
        self.ram_bytes = self.entries * ENTRY_BYTES + len(self.dirty) * drive.entry_bytes
        self.patience = 2 * (drive.blocks_per_plane + drive.pages_per_block)
        self.reset_figures()
        for number in range(len(self.dirty)):
            plane = self.order[number % len(self.order)]
            if not plane.room(MAP):
                plane.open(MAP)
            self.directory.append(plane.take(MAP))
            self.flash.program(self.directory[-1], self.logical_pages + number, "translation")
            plane.close(MAP)

    def lookup(self, lpn: int) -> int | None:
        return self.cached[lpn] if lpn in self.cached else self.stored[lpn]

    # --- requests ---

    def read(self, first: int, pages: int) -> None:
        for lpn in range(first, first + pages):
            try:
                loaded = self.load(lpn)
            except OutOfSpaceError:  # no room to evict: read the entry past the cache
                loaded = self.read_map(lpn // self.on_map_page)
            page = self.lookup(lpn)
            if page is None:
                self.flash.read_unmapped(lpn)
            else:
                self.flash.read(page, lpn, loaded)

    def write(self, first: int, pages: int) -> None:
        for lpn in range(first, first + pages):
            loaded = self.load(lpn)
            plane = self.plane_with_room(DATA)
            page = plane.take(DATA)
            self.flash.program(page, lpn, "host", loaded)
            plane.close(DATA)
            self.change(lpn, page)

    def trim(self, first: int, pages: int) -> None:
        for lpn in range(first, first + pages):
            try:
                self.load(lpn)
            except OutOfSpaceError:
                self.read_map(lpn // self.on_map_page)
                self.cached[lpn] = self.stored[lpn]
            if self.cached[lpn] is not None:
                self.change(lpn, None)
                self.flash.forget(lpn)

    # --- the map ---

    def load(self, lpn: int) -> int:
        """Have the entry of a page in the cache; returns the mark of the read that loaded it, or 0."""
        self.counts["cache_lookups"] += 1
        if lpn in self.cached:
            self.counts["cache_hits"] += 1
            self.cached.move_to_end(lpn)
            return 0
        if len(self.cached) >= self.entries:
            oldest = next(iter(self.cached))
            if oldest in self.dirty[oldest // self.on_map_page]:
                self.write_back(oldest)
            self.stored[oldest] = self.cached.pop(oldest)
            self.counts["cache_evictions"] += 1
        mark = self.read_map(lpn // self.on_map_page)
        self.cached[lpn] = self.stored[lpn]
        return mark

    def read_map(self, number: int) -> int:
        return self.flash.read_internal(self.directory[number], "translation")

    def change(self, lpn: int, page: int | None) -> None:
        """Change a cached entry."""
        self.cached[lpn] = page
        self.dirty[lpn // self.on_map_page].add(lpn)

    def write_back(self, lpn: int) -> None:
        """Write an entry that leaves, and all others of its page of the map that are newer in RAM."""
        plane = self.plane_with_room(MAP)  # first, since cleaning changes entries
        number = lpn // self.on_map_page
        read = self.read_map(number)
        self.counts["evict_updates"] += len(self.dirty[number])
        for changed in self.dirty[number]:
            self.stored[changed] = self.cached[changed]
        self.dirty[number].clear()
        self.write_map(plane, number, "translation", read)
        self.counts["cache_dirty_evictions"] += 1

    def write_map(self, plane: Plane, number: int, cause: Cause, read: int) -> None:
        page = plane.take(MAP)
        self.flash.program(page, self.logical_pages + number, cause, read)
        plane.close(MAP)
        self.directory[number] = page

    # --- cleaning ---

    def make_room(self, plane: Plane, stream: int) -> bool:
        best, fruitless, desperate = 0, 0, False
        passed_over: int | None = None
        while True:
            if plane.room(stream) and len(plane.free) >= 3:
                return True
            if not plane.room(stream) and len(plane.free) > self.keeps:
                plane.open(stream)
                return True
            if fruitless > self.patience and not desperate:
                best, fruitless, desperate = 0, 0, True
            block, passed_over = self.choose(plane, passed_over, desperate)
            if fruitless > self.patience or block is None:
                return plane.room(stream) > 0
            self.clean_block(plane, block)
            erased = len(plane.free) * self.pages_per_block + plane.room(DATA) + plane.room(MAP)
            fruitless = 0 if erased > best else fruitless + 1
            best = max(best, erased)

    def choose(
        self, plane: Plane, passed_over: int | None, desperate: bool
    ) -> tuple[int | None, int | None]:
        """The block to clean, and the one of fewest valid pages, where a clean of it costs more than it gains."""
        free, block = len(plane.free), plane.fewest()
        scarce = free < 3
        if not desperate and block is not None and not (scarce and block == passed_over):
            gain, opens = self.cost(plane, block)
            is_full = self.flash.valid(block) == self.pages_per_block
            if opens <= free and not (scarce and gain <= 0) and not is_full:
                return block, passed_over
            passed_over = block
        block = self.rescue(plane)
        if block is not None and self.cost(plane, block)[1] > free:
            block = None
        return block, passed_over

    def cost(self, plane: Plane, block: int) -> tuple[int, int]:
        """Pages that a clean gains, and blocks that it opens."""
        pages, owners = self.flash.live(block)
        written = [0, 0]
        if plane.full[block] == MAP:
            written[MAP] = len(pages)
        else:
            written = [len(pages), len(self.changes(owners))]
        opens = sum(
            -(-max(0, count - plane.room(stream)) // self.pages_per_block)
            for stream, count in enumerate(written)
        )
        return self.pages_per_block - sum(written), opens

    def changes(self, owners: list[int]) -> list[int]:
        """The pages of the map that name pages whose entries are not cached."""
        return list(
            dict.fromkeys(lpn // self.on_map_page for lpn in owners if lpn not in self.cached)
        )

    def rescue(self, plane: Plane) -> int | None:
        """The block of the map with the fewest valid pages, or of data if no page of the map is invalid."""
        for stream in (MAP, DATA):
            blocks = sorted(block for block, of in plane.full.items() if of == stream)
            fewest = min(blocks, key=self.flash.valid, default=None)
            if fewest is not None and self.flash.valid(fewest) < self.pages_per_block:
                return fewest
            if stream == MAP and plane.room(MAP):
                block = plane.next[MAP] // self.pages_per_block
                if self.flash.valid(block) < self.flash.written(block) and self.flash.can_erase(
                    block
                ):
                    plane.next[MAP] = plane.end[MAP] = 0
                    plane.full[block] = MAP
                    return block
        return None

    def clean_block(self, plane: Plane, block: int) -> None:
        stream = plane.full.pop(block)
        cause: Cause = "gc-translation" if stream == MAP else "gc"
        pages, owners = self.flash.live(block)
        changes = self.changes(owners) if stream == DATA else []
        for owner, page in plane.move(pages, stream, cause):
            if stream == MAP:
                self.directory[owner - self.logical_pages] = page
            elif owner in self.cached:
                self.change(owner, page)
                self.counts["lazy_updates"] += 1
            else:
                self.stored[owner] = page
                self.counts["gc_updates"] += 1
        for number in changes:
            home = self.planes[
                self.directory[number] // self.pages_per_block // self.blocks_per_plane
            ]
            to = home if home.room(MAP) or len(home.free) > self.keeps else plane
            if not to.room(MAP):
                to.open(MAP)
            read = self.flash.read_internal(self.directory[number], "gc-translation")
            self.write_map(to, number, "gc-translation", read)
            self.counts["gc_update_pages"] += 1
        plane.erase(block, cause)
        gained = self.pages_per_block - len(pages)
        kind = {0: "full", self.pages_per_block: "switch"}.get(gained, "partial")
        self.counts[f"cleans_{kind}"] += 1
        self.counts["cleans_translation"] += stream == MAP

    def figures(self) -> Mapping[str, float]:
        return {
            **self.counts,
            "cmt_entries": self.entries,
            "translation_pages": len(self.directory),
            "ram_bytes": self.ram_bytes,
        }

    def reset_figures(self) -> None:
        self.counts = dict.fromkeys(COUNTS, 0)
