"""What a drive erases together: the clustered block (Kim 2011, Sections 4.1.2 and 4.2.4).

Two signals, independent of each other::

    write and flush   |_______|_______|_______      a drive that is overwritten in order erases one clustered block
    bytes             -> one block <-               for each one written: long writes recur with its size

    random / in order   .3  .5  .8  1.0  1.0        writes at random places are as fast as writes in order
    size of the writes  1/8 1/4 1/2 one  two        once they cover whole clustered blocks (Kim's Procedure 2)

The interval gives the value; random writes confirm or contradict it. Where the clustered page is not known, ``probe``
tries writes of several sizes: those of whole pages agree on the longest interval.

What else makes long writes recur, and the arm that tells it apart:

- Rows of pages that are programmed together, and segments of a map: both recur as long on a drive that was never full,
  where nothing is erased.
- One of several units that clean in turn: random writes of that size are slower than writes in order, which contradicts
  it, unless they are as fast on the grid of the drive's own blocks (``block_grid``).

There is no verdict where long writes recur unevenly or not alike at all sizes, where random writes contradict the
interval, and where those of half the size are as fast.
"""

from flashwright.probing.probes.clustered_block.probe import ClusteredBlock

__all__ = ["ClusteredBlock"]
