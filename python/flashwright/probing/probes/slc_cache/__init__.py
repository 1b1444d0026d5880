"""Whether a drive takes writes faster until a cache is full, how that recovers at rest, and what speed lasts.

Drives program some blocks with one bit per cell, several times as fast, and move the data when they are idle. Written
in order from empty on, such a drive loses speed at once after a number of bytes (``cliffs`` finds where)::

    speed   ________
                    |______________
    written    cache ^

What else loses speed in this way, and the arm that tells it apart:

- A limit by time (heat, credits of a network store): written at half the pace, the cliff lies at half the bytes.
- A limit of the whole device: reads of what was written first become slower by as much, after a purge too.
- A place (the zones of a disk): written from the middle on, the cliff lies at other bytes.
- Cleaning: it does not begin before the flash has been written once, so a cliff in the last part counts for nothing,
  and one beyond the middle only if rest brings the speed back. Writes are whole clustered pages, since parts of pages
  use up flash early; where the page is not known there is no verdict.
- RAM that outlives a loss of power, so that no flush empties it: as much as the largest such RAM is left out at the
  beginning, and if that is faster, a tenth of a second must not suffice to make it fast again.

A cache may also make nothing faster, so none is absent where what was written first is read faster than later data.
"""

from flashwright.probing.probes.slc_cache.probe import SlcCache

__all__ = ["SlcCache"]
