"""How many clusters of chips work at once, over how many writes are striped, and what one program takes.

A *unit* is what works by itself: a die, or a cluster of dies that are programmed as one. The *stripe* is what writes
in order put on all units before the first one's turn comes again. The *program unit* is what lies on one unit.

Two measurements, of which either may be blind::

    pages of a write     1  2  3 | 4  5  6 | 7 ...        three units: one more page is free until all units have one
    latency              --------+         |              (aligned writes of k clustered pages, each flushed)
                                 +---------+

    distance of a pair   1  2  3  4  5  6  7 ...          three units: two reads at a time wait for each other
    both read after      _  _  ^  _  _  ^  _              where they lie on the same unit

The first needs no command queuing. It shows nothing where the bus to the chips takes longer than the chips do, or where
pages that follow each other go to one unit (log-block mapping). The second needs two commands at once and a drive that
was written in order. Where whole blocks lie on a unit, the distance is taken in blocks, whose size the same pairs show.

What is measured in which order, and which module does it:

1. ``measurements`` and ``periods``: pairs of reads by distance, and writes of more and more pages.
2. ``conflicts`` and ``grouping``: where distances show no period, all pairs of random places. Places on one unit form a
   group that waits for each other; no order of the places and no known page is needed.
3. ``equal_places``: where random places form no clear groups, places that are read in about the same time, and places
   that were just written.
4. ``erases``: on a page map whose clustered block is known. Of a drive that is overwritten in order, as many single
   pages in a row wait for an erase as there are units. No queuing is needed, and no bus hides it.
5. ``rows``: where RAM gathers what a unit programs, the waits of writes in order once that RAM is full.

``findings`` decides. It cannot tell where the measurements disagree, or where something else looks the same:

- Drift in time (heat, credits): distances and lengths come in an order drawn at random, distances in its reverse as
  well, and both runs have to agree.
- A limit by heat or by bytes makes each page of a write cost the same: where that would be the verdict, short writes
  after rests have to show it, growing and shrinking.
- RAM that takes writes: a write that takes no longer than a read shows no flash.
- Members of a RAID, and its parity, make distances recur later than units do: as many pairs of random places must wait
  as the period says, or random places must form as many groups.
- Groups of random places by chance: a second trial takes half as many places again.

Sources: Kim, Seo, Jung, Kim, Huh: "Parameter-aware I/O management for solid state disks" (2011), sections 2.2 and
4.1.1; Chen, Hou, Lee: "Internal parallelism of flash memory-based solid-state drives" (ACM TOS 2016) for pairs of
reads.
"""

from flashwright.probing.probes.parallelism.probe import Parallelism

__all__ = ["Parallelism"]
